# SPDX-License-Identifier: MIT
"""What the scripts that measure servers have in common: requests, rounds by turns, medians, and the lines that bench.py
reads. BENCH_ROUNDS=3 is for trying things out.
"""
import contextlib
import http.client
import json
import os
import signal
import statistics
import struct
import sys
import tempfile
import traceback

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
WINDOW_S = 0.3
BUILD = sys.argv[1]
TINY = "/v1/encode?type=sinusoidal&d_model=8&positions=0:8"


def short(value):
    return float(f"{value:.6g}")


def tell(name, ratio, ms=0.0, measured=None):
    """With the rounds of two servers the line also says how many times as much processor time a request takes the
    other: not in the table, but steady where others want the processor, too."""
    line = {"name": name, "ms": short(ms), "ratio": short(ratio)}
    if measured:
        line["cpu_ratio"] = short(1 / median_ratio(measured, "cpu_us"))
    print(json.dumps(line), flush=True)


def tell_points(name, points):
    print(json.dumps({"name": name, "points": [[x, short(y)] for x, y in points]}), flush=True)


def tell_missing(names, what):
    for name in names:
        print(json.dumps({"name": name, "missing": str(what)}), flush=True)


def request(server, method, target, body=None, content_type=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request(method, target, body, {"Content-Type": content_type} if content_type else {})
        reply = connection.getresponse()
        data = reply.read()
        assert reply.status == 200, (target, reply.status, data[:300])
        return data
    finally:
        connection.close()


def by_turns(loads, seconds=WINDOW_S, replies=0, rounds=ROUNDS):
    """[figures of each load] of every round."""
    measured = []
    for load in loads:
        load.server.pause()
    for i in range(rounds + 1):
        figures = {}
        for load in loads if i % 2 else reversed(loads):
            figures[load] = load.window(seconds, replies)
            load.server.pause()
        measured.append([figures[load] for load in loads])
    for load in loads:
        load.server.resume()
    return measured[1:]  # the first is warming up


def median_ratio(measured, name="requests_per_s"):
    """Of the first load's figure over the second's."""
    return statistics.median(ours[name] / theirs[name] for ours, theirs in measured)


def speed_ratio(measured, connections):
    """A single connection's speed is that of its middle request: how often the system took the processor away for a
    while, as it does where others want it, too, does not count."""
    return median_ratio(measured) if connections > 1 else 1 / median_ratio(measured, "p50_us")


def median(measured, name):
    return statistics.median(figures[0][name] for figures in measured)


def npy_of(rows, columns):
    """A file of such a shape with numbers that are not all alike."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    numbers = (((i * 2654435761) % 65521) / 65536 - 0.5 for i in range(rows * columns))
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + \
        struct.pack(f"<{rows * columns}f", *numbers)


@contextlib.contextmanager
def body_file(data):
    with tempfile.NamedTemporaryFile(prefix="posenc-bench-") as file:
        file.write(data)
        file.flush()
        yield file.name


def run_groups(namespace):
    """The functions measure_X of a script, or those that its arguments name. One that fails does not keep the others
    from running; bench.py tells what is missing then.
    """
    groups = {name[len("measure_"):]: function for name, function in namespace.items() if name.startswith("measure_")}
    failed = False
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended on the way out
    for name in sys.argv[2:] or groups:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        try:
            groups[name]()
        except Exception:
            traceback.print_exc()
            failed = True
    sys.exit(1 if failed else 0)
