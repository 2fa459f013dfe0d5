#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The short form of `make soak`, with a fixed seed: test_soak.py DAEMON [TEST...].

Some thousand right requests, each judged, and as many wrong ones with a right one between them; memory, descriptors
and gauges are at the end what they were after the warm-up. SEED, SOAK_REQUESTS and SOAK_MUTATIONS change it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import run_tests  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "soak"))
import mixed  # noqa: E402
import soak  # noqa: E402
from watch import flavour  # noqa: E402

PATH = sys.argv[1]
FLAVOUR = flavour(PATH)
REDUCED = 1 if FLAVOUR == "release" else 4
SEED = soak.number("SEED", 20170612)  # when Attention Is All You Need was submitted


def show(outcome):
    print(f"   {outcome.total()} replies, {outcome.by_status()}; {outcome.probes} probes; longest {outcome.pace.longest:.2f} s", flush=True)


def test_right_requests_leave_nothing():
    """Requests of all kinds. With those up to 64 KiB memory is flat after the warm-up; some seconds after larger ones it
    is that of a daemon that had none. But where a sanitizer keeps it."""
    release = REDUCED == 1
    large = soak.Soak(PATH, SEED, clients=2, largest=mixed.LIMIT if release else 1 << 20, share=0.2)
    small = soak.Soak(PATH, SEED, clients=2, largest=1 << 16)
    with large.start() as burst, small.start() as daemon:
        before, _ = burst.at_rest()
        show(large.mixed(burst, 150 // REDUCED, rounds=1)[0])
        burst.begin_ease()
        outcome, curve = small.mixed(daemon, soak.number("SOAK_REQUESTS", 1800 // REDUCED), rounds=6 if release else 2)
        show(outcome)
        if release:
            soak.check_growth(curve, 3)
            after = burst.at_ease()
            print(f"   {before / 2**20:.1f} MiB before the large ones, {after / 2**20:.1f} MiB some seconds after", flush=True)
            assert after < before + (16 << 20), (before, after)


def test_wrong_requests_harm_nobody():
    """Mutated and cut requests: no crash, no hang, no 5xx without its meaning, and right answers beside them."""
    run = soak.Soak(PATH, SEED, clients=2, largest=1 << 16, each=8)
    with run.start() as daemon:
        outcome = run.hostile(daemon, soak.number("SOAK_MUTATIONS", 2000 // REDUCED))
    show(outcome)
    assert outcome.probes > 0 and any(400 <= status < 500 for _, status in outcome.counts), outcome.by_status()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
