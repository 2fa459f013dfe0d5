#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A daemon under many requests, right ones and wrong ones, for long: soak.py DAEMON.

    make soak [FLAVOUR=asan] [SEED=7] [SOAK_REQUESTS=50000] [SOAK_MUTATIONS=100000] [SOAK_CLIENTS=3]

First right requests of all kinds, formats and sizes: every reply is judged, and at the end the daemon holds no more
memory, descriptors or work than after its warm-up. Then wrong ones: after each, the same process asks on another
connection for something that is known, and gets the same bytes. A request that fails is kept in build/soak/, with
the command that sends it again. The same seed makes the same requests.
"""
import array
import collections
import multiprocessing
import os
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import hostile  # noqa: E402
import mixed  # noqa: E402
from watch import QuietDaemon, flavour  # noqa: E402
from wire import Pace, Wire, WireError, ends, field, request  # noqa: E402

KEPT = pathlib.Path(__file__).parent.parent.parent / "build" / "soak"
GROWTH = 5 << 20      # bytes that may be held more at the end than after the warm-up
HEAPS = 16 << 20      # of malloc: the ends of two busy threads' heaps, each of them empty or full by chance
MOST_FAULTS = 20      # of one client; then something is wrong for good
PATIENCE = {"release": 60, "cov": 120, "asan": 180, "tsan": 300}  # seconds for one request
PROBES = ["/v1/encode?type=sinusoidal&d_model=6&positions=0:4", "/v1/encode?encoding=fairseq&d_model=40&positions=0:30&format=npy",
          "/v1/shift?type=sinusoidal&d_model=8&distance=3", "/v1/positions?lengths=3,1,2", "/v1/encode?type=random&seed=1&d_model=8&positions=0:9"]


class Outcome:
    """What clients saw: counts by (what, status), faults in words, the longest wait."""

    def __init__(self):
        self.counts, self.faults, self.pace, self.probes = collections.Counter(), [], Pace(), 0

    def add(self, other):
        self.counts += other.counts
        self.faults += other.faults
        self.probes += other.probes
        if other.pace.longest > self.pace.longest:
            self.pace = other.pace

    def total(self):
        return sum(self.counts.values())

    def by_status(self):
        sums = collections.Counter()
        for (_, status), n in self.counts.items():
            sums[status] += n
        return " ".join(f"{status or 'closed'}:{n}" for status, n in sorted(sums.items()))


def keep(name, data):
    """A request that failed, for later; how to send it again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}.request"
    path.write_bytes(data[:100 << 20])
    return f"again: /usr/bin/python3 tests/soak/replay.py build/posencd {path}"


# ---- clients: functions that run in processes of their own -----------------------------------------------------------

def ask_mixed(job, outcome):
    """job.count right requests on one connection, and another where one ends."""
    rng, wire = random.Random(job.seed), Wire(job.port, job.patience)
    for i in range(job.count):
        ask = mixed.draw(rng, job.facts, job.pool, job.largest, job.share)
        began, what = time.monotonic(), None
        try:
            wire.send(*ask.data)
            reply = wire.receive(ask.method, ask.most)
            what, over = ask.fault(reply), ends(reply)
            outcome.counts[ask.name, reply.status] += 1
        except (OSError, WireError) as error:
            what, over = f"{ask.name}: {type(error).__name__}: {error}", True
        outcome.pace.note(began, ask.name)
        if what:
            outcome.faults.append(f"{what}\n      {keep(f'mixed-{job.seed}-{i}'.replace('/', '-'), b''.join(ask.data))}")
        if over:
            wire.close(reset=rng.random() < 0.5)
            wire = Wire(job.port, job.patience)
        if len(outcome.faults) >= MOST_FAULTS:
            break
    wire.close()


def probe(wire, known, i):
    """What is wrong with the answer to a right request beside the wrong ones, or None."""
    target = PROBES[i % len(PROBES)]
    reply = wire.ask(request("GET", target))
    same = reply.status == 200 and reply.body == known[target][0] and field(reply.head, b"etag") == known[target][1]
    return None if same else f"the probe {target} is answered {reply.status} {bytes(reply.body[:200])!r}"


def ask_hostile(job, outcome):
    """job.count wrong requests, and a probe after every job.each of them."""
    rng, wire, deliverer = random.Random(job.seed), Wire(job.port, job.patience), hostile.Deliverer(job.port, job.patience)
    recent = collections.deque(maxlen=job.each)
    for i in range(job.count):
        mutation = hostile.mutate(rng, job.corpus)
        recent.append(mutation.data)
        began = time.monotonic()
        try:
            statuses, what = deliverer.deliver(mutation)
            for status in statuses:
                outcome.counts[mutation.how, status] += 1
            if not statuses and not what:
                outcome.counts["left", 0] += 1
            outcome.pace.note(began, f"{mutation.how} {mutation.data[:100]!r}")
            if not what and i % job.each == job.each - 1:
                began = time.monotonic()
                what = probe(wire, job.known, i // job.each)
                outcome.probes += 1
                outcome.pace.note(began, "a probe")
        except (OSError, WireError) as error:
            what = f"{type(error).__name__}: {error}"
        if what:
            again = keep(f"hostile-{job.seed}-{i}".replace("/", "-"), b"".join(recent))
            cut = f" --cut {mutation.at}" if mutation.how == "cut" else ""
            outcome.faults.append(f"{mutation.how}: {what}\n      {again}{cut}")
            wire.close()
            wire = Wire(job.port, job.patience)
        if len(outcome.faults) >= MOST_FAULTS:
            break
    deliverer.drop()
    wire.close()


class Job:
    """What a client is told."""

    def __init__(self, port, patience, **more):
        self.port, self.patience = port, patience
        self.__dict__.update(more)


def client(ask, job, out):
    outcome = Outcome()
    try:
        ask(job, outcome)
    except Exception:  # whatever it is, the parent must hear of it
        outcome.faults.append(f"client {job.seed}: {traceback.format_exc(limit=3)}")
    out.send(outcome)
    out.close()


def run_clients(ask, jobs):
    """All of them at once; their outcomes as one."""
    total, running = Outcome(), []
    for job in jobs:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=client, args=(ask, job, sender))
        process.start()
        sender.close()
        running.append((process, receiver, job))
    for process, receiver, job in running:
        try:
            total.add(receiver.recv())
        except EOFError:
            total.faults.append(f"client {job.seed} died")
        process.join()
    return total


# ---- phases ---------------------------------------------------------------------------------------------------------

def shares(count, clients):
    """count as a sum of that many whole numbers."""
    return [count // clients + (i < count % clients) for i in range(clients)]


def ease_now(daemon):
    daemon.begin_ease()
    return daemon.at_ease()


class Soak:
    """One daemon and its clients. `say` gets lines of progress."""

    def __init__(self, path, seed, clients=3, largest=mixed.LIMIT, share=0.02, each=1, say=print):
        self.path, self.seed, self.clients, self.say = path, seed, clients, say
        self.largest, self.share, self.each = largest, share, each
        self.flavour = flavour(path)
        self.patience = PATIENCE[self.flavour]
        draw = random.Random(seed)
        row = array.array("f", [draw.randrange(-8000, 8000) / 8 for _ in range(1 << 14)]).tobytes()
        self.pool = row * max(1, largest // len(row))

    def start(self):
        return QuietDaemon(self.path, "--deadline-ms", str(self.patience * 500), "--workers", "2")

    def judge(self, outcome):
        assert not outcome.faults, f"{len(outcome.faults)} faults, SEED={self.seed}:\n    " + "\n    ".join(outcome.faults[:MOST_FAULTS])

    def mixed(self, daemon, requests, rounds=10, ease=False):
        """Right requests in rounds; between them the daemon is at rest and its memory is looked at: as it is, or (`ease`:
        after each second round) when it has given back what it keeps for a while. Returns the outcome and those bytes."""
        wire = Wire(daemon.port, self.patience)
        facts = mixed.Facts(wire)
        wire.close()
        _, files = daemon.at_rest()
        outcome, curve = Outcome(), []
        for number, count in enumerate(shares(requests, rounds)):
            began = time.monotonic()
            jobs = [Job(daemon.port, self.patience, count=n, seed=f"{self.seed}/{number}/{i}", facts=facts, pool=self.pool,
                        largest=self.largest, share=self.share) for i, n in enumerate(shares(count, self.clients))]
            outcome.add(run_clients(ask_mixed, jobs))
            self.judge(outcome)
            took = time.monotonic() - began
            resident, now = daemon.at_rest(self.patience)
            eased = ease and number % 2 == 1
            resident = ease_now(daemon) if eased else resident
            if eased or not ease:
                curve.append(resident)
            self.say(f"   round {number + 1:2}: {count} requests, {count / took:.0f}/s, {resident / 2**20:.1f} MiB, {now} descriptors"
                     + (", at ease" if eased else ""))
            assert now == files, f"{now} descriptors at rest, {files} at the beginning"
        return outcome, curve

    def hostile(self, daemon, mutations, ease=False):
        """Wrong requests, with probes between them; the memory as in mixed()."""
        known, wire = {}, Wire(daemon.port, self.patience)
        for target in PROBES:
            reply = wire.ask(request("GET", target))
            assert reply.status == 200, (target, reply)
            known[target] = bytes(reply.body), field(reply.head, b"etag")
        wire.close()
        _, files = daemon.at_rest()
        before = ease_now(daemon) if ease else daemon.resident_bytes()
        corpus = hostile.corpus()
        jobs = [Job(daemon.port, self.patience, count=n, seed=f"{self.seed}/hostile/{i}", corpus=corpus, known=known, each=self.each)
                for i, n in enumerate(shares(mutations, self.clients))]
        outcome = run_clients(ask_hostile, jobs)
        self.judge(outcome)
        after, now = daemon.at_rest(self.patience)
        after = ease_now(daemon) if ease else after
        assert now == files, f"{now} descriptors at rest, {files} at the beginning"
        self.say(f"   memory {before / 2**20:.1f} MiB before, {after / 2**20:.1f} MiB after, {now} descriptors")
        assert not ease or after <= before + HEAPS, f"memory grew by {(after - before) / 2**20:.1f} MiB"
        return outcome


def report(name, outcome, began):
    took = time.monotonic() - began
    print(f"{name}: {outcome.total()} replies in {took:.0f} s; {outcome.by_status()}; {outcome.probes} probes; "
          f"longest {outcome.pace.longest:.2f} s ({outcome.pace.what})", flush=True)


def check_growth(curve, warm):
    """The end against the end of the warm-up, which is `warm` entries of the curve. Of two neighbours, as the ends of
    malloc's heaps are now full, now empty; what leaks is in all of them."""
    start, end = max(curve[warm - 1:warm + 1]), min(curve[-2:])
    print(f"memory: {start / 2**20:.1f} MiB after warm-up, {end / 2**20:.1f} MiB at the end, "
          f"curve {' '.join(f'{bytes_ / 2**20:.0f}' for bytes_ in curve)}")
    assert end <= start + GROWTH, f"memory grew by {(end - start) / 2**20:.1f} MiB"


def number(name, default):
    """From the environment."""
    return int(os.environ.get(name) or default)


def main():
    path = sys.argv[1]
    seed = number("SEED", random.SystemRandom().randrange(1 << 31))
    reduced = 1 if flavour(path) == "release" else 10
    requests, mutations = number("SOAK_REQUESTS", 50000 // reduced), number("SOAK_MUTATIONS", 100000 // reduced)
    soak = Soak(path, seed, number("SOAK_CLIENTS", 3), mixed.LIMIT if reduced == 1 else 4 << 20,
                say=lambda line: print(line, flush=True))
    print(f"SEED={seed} SOAK_REQUESTS={requests} SOAK_MUTATIONS={mutations}: {path}, {soak.flavour}", flush=True)
    release = soak.flavour == "release"  # a sanitizer keeps what was freed
    with soak.start() as daemon:
        began = time.monotonic()
        outcome, curve = soak.mixed(daemon, requests, ease=release)
        report("mixed", outcome, began)
        if release:
            check_growth(curve, 1)
        began = time.monotonic()
        report("hostile", soak.hostile(daemon, mutations, ease=release), began)
    print("soak: the daemon ended with 0")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"soak: FAILED: {error}")
