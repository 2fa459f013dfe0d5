# SPDX-License-Identifier: MIT
"""Whole requests, as clients see them: posencd against FastAPI with PyTorch (peer_service.py), and against nginx that
sends files of the same bytes. bench.py runs this:

    python3 tests/bench/serve.py build/release [GROUP...]

A round measures one server while the other one is stopped, then the other way around; ratios are medians over rounds.
Groups are the functions serve_... below.
"""
import contextlib
import http.client
import io
import json
import os
import resource
import socket
import statistics
import struct
import sys
import tempfile
import time
import traceback

from _servers import Load, Missing, Nginx, cores, fastapi, posencd

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
WINDOW_S = 0.3
BUILD = sys.argv[1]
MANY_STREAMS = ("--streams", "64", "--streams-per-ip", "0")  # replies of a megabyte are streams


def tell(name, ratio, ms=0.0):
    print(json.dumps({"name": name, "ms": float(f"{ms:.6g}"), "ratio": float(f"{ratio:.6g}")}), flush=True)


def tell_points(name, points):
    print(json.dumps({"name": name, "points": [[x, float(f"{y:.6g}")] for x, y in points]}), flush=True)


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


class Bodies:
    """Files with the bodies that are posted."""

    def __init__(self, folder):
        import numpy  # whoever has FastAPI's peers has it
        self.folder = folder
        random = numpy.random.default_rng(1)
        x = random.standard_normal((512, 512)).astype("float32")
        heads = random.standard_normal((2, 8, 128, 64)).astype("float32")
        npy = io.BytesIO()
        numpy.save(npy, x)
        shortest = [[float(str(value)) for value in row] for row in x]
        q, k = ([[[float(str(value)) for value in row] for row in head] for head in side] for side in heads)
        self.files = {"apply.json": json.dumps({"encoding": {"type": "sinusoidal"}, "embeddings": shortest}).encode(),
                      "apply.npy": npy.getvalue(),
                      "attention.json": json.dumps({"q": q, "k": k}).encode()}
        for name, data in self.files.items():
            with open(self.path(name), "wb") as file:
                file.write(data)

    def path(self, name):
        return os.path.join(self.folder, name)


# ---- FastAPI and torch ----------------------------------------------------------------------------------------------

# name: our target, theirs, body, and which tensor of the reply is the same in both
PEER_ROWS = {
    "apply_512_json": ("/v1/apply", "/v1/apply", "apply.json", "embeddings"),
    "apply_512_npy": ("/v1/apply?type=sinusoidal", "/v1/apply", "apply.npy", None),
    "encode_8_json": ("/v1/encode?type=sinusoidal&d_model=8&positions=0:8", "/v1/encode?tokens=8&d_model=8", None,
                      "vectors"),
    "encode_512_json": ("/v1/encode?type=sinusoidal&d_model=512&positions=0:512",
                        "/v1/encode?tokens=512&d_model=512", None, "vectors"),
    "encode_512_npy": ("/v1/encode?type=sinusoidal&d_model=512&positions=0:512&format=npy",
                       "/v1/encode?tokens=512&d_model=512&format=npy", None, None),
    "attention_128_json": ("/v1/attention", "/v1/attention", "attention.json", "weights"),
}


def check_same(name, replies, member):
    """Both compute the same, or the ratio would say nothing."""
    import numpy
    if member:
        tensors = [numpy.array(json.loads(reply)[member]["data"]) for reply in replies]
    else:
        tensors = [numpy.load(io.BytesIO(reply)) for reply in replies]
    assert tensors[0].shape == tensors[1].shape and abs(tensors[0] - tensors[1]).max() < 1e-3, name


def peer_row(name, servers, bodies, connections):
    *targets, body, member = PEER_ROWS[name]
    path = bodies.path(body) if body else None
    kind = "application/x-npy" if body and body.endswith(".npy") else "application/json" if body else None
    check_same(name, [request(server, "POST" if body else "GET", target, bodies.files.get(body), kind)
                      for server, target in zip(servers, targets)], member)
    with Load(BUILD, servers[0], connections, targets[0], path, kind) as ours, \
            Load(BUILD, servers[1], connections, targets[1], path, kind) as theirs:
        measured = by_turns([ours, theirs], WINDOW_S / 2, 2 if connections == 1 else 2 * cores())
    suffix = "" if connections == 1 else f"_{connections}"
    tell(f"{name}{suffix}/fastapi", speed_ratio(measured, connections), median(measured, "p50_us") / 1e3)


def serve_peer():
    names = [f"{name}{suffix}/fastapi" for suffix in ("", "_32") for name in PEER_ROWS]
    try:
        with tempfile.TemporaryDirectory() as folder, fastapi() as theirs, \
                posencd(BUILD, *MANY_STREAMS) as ours:
            bodies = Bodies(folder)
            for connections in (1, 32):
                for name in PEER_ROWS:
                    peer_row(name, (ours, theirs), bodies, connections)
    except Missing as what:
        tell_missing(names, what)


# ---- nginx ----------------------------------------------------------------------------------------------------------

TINY = "/v1/encode?type=sinusoidal&d_model=8&positions=0:8"
MEGABYTE = "/v1/encode?type=sinusoidal&d_model=512&positions=0:512&format=npy"


def serve_tiny():
    names = ["tiny_get/nginx", "tiny_get_p99/nginx_time", "tiny_get_cpu/nginx_time", "tiny_get/nginx_tuned"]
    with posencd(BUILD) as ours:
        try:
            with Nginx({"tiny.json": request(ours, "GET", TINY)}) as nginx, Load(BUILD, ours, 32, TINY) as load:
                with Load(BUILD, nginx, 32, "/tiny.json") as nginx_load:
                    measured = by_turns([load, nginx_load])
                with Load(BUILD, nginx, 32, "/kept/tiny.json") as nginx_load:
                    tuned = by_turns([load, nginx_load])
        except Missing as what:
            tell_missing(names, what)
            return
    cpu = [statistics.fmean(pair[i]["cpu_us"] for pair in measured) for i in (0, 1)]
    ratios = (median_ratio(measured), median_ratio(measured, "p99_us"), cpu[0] / cpu[1], median_ratio(tuned))
    for name, ratio in zip(names, ratios):
        tell(name, ratio, cpu[0] / 1e3 if "cpu" in name else median(measured, "p50_us") / 1e3)


def serve_megabyte():
    with posencd(BUILD, *MANY_STREAMS) as ours:
        data = request(ours, "GET", MEGABYTE)
        try:
            with Nginx({"x.npy": data}) as nginx:
                with Load(BUILD, ours, 32, MEGABYTE) as load, Load(BUILD, nginx, 32, "/read/x.npy") as nginx_load:
                    tell("npy_get_1mb/nginx", median_ratio(by_turns([load, nginx_load])))
                # One token of a quarter of a million numbers: the upload is all there is to it.
                with open(nginx.path("wide.npy"), "wb") as file:
                    file.write(npy_of(1, 512 * 512))
                post = (nginx.path("wide.npy"), "application/x-npy")
                with Load(BUILD, ours, 32, "/v1/attention?encoding=none", *post) as load, \
                        Load(BUILD, nginx, 32, "/discard", *post) as nginx_load:
                    tell("npy_post_1mb/nginx", median_ratio(by_turns([load, nginx_load])))
        except Missing as what:
            tell_missing(["npy_get_1mb/nginx", "npy_post_1mb/nginx"], what)


# ---- posencd against itself -----------------------------------------------------------------------------------------

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


HEAVY = "/v1/attention?type=sinusoidal&heads=8&return=output&format=npy"


def heavy_body(server, wanted_us=20000):
    """One whose request takes so much work: that grows nearly with the square of tokens."""
    tokens = 512
    for _ in range(2):
        with body_file(npy_of(tokens, 256)) as path, Load(BUILD, server, 1, HEAVY, path, "application/x-npy") as load:
            load.window(0.1, 3)
            each = load.window(0.2, 10)["cpu_us"]
        tokens = max(64, round(tokens * (wanted_us / each) ** 0.5)) if each else tokens
    print(f"serve: {tokens} tokens are some {wanted_us / 1e3:g} ms of work", file=sys.stderr)
    return npy_of(tokens, 256)


def serve_beside():
    with posencd(BUILD) as ours, body_file(heavy_body(ours)) as path, \
            Load(BUILD, ours, 4, HEAVY, path, "application/x-npy") as heavy, Load(BUILD, ours, 4, TINY) as tiny:
        heavy.begin(ROUNDS * 0.5)
        measured = [[tiny.window(0.5)] for _ in range(ROUNDS)]
        beside = heavy.figures()
        print(f"serve: beside {beside['requests_per_s']:.0f} large requests/s", file=sys.stderr)
        tell("tiny_beside_p50_time", median(measured, "p50_us"))
        tell("tiny_beside_p99_time", median(measured, "p99_us"))


def serve_connections():
    with posencd(BUILD) as ours, posencd(BUILD) as base, Load(BUILD, base, 64, TINY) as base_load:
        for n in (127, 128, 129, 256, 384, 512):
            with Load(BUILD, ours, n, TINY) as load:
                tell(f"connections_{n}/64", median_ratio(by_turns([load, base_load], WINDOW_S / 2, n)))


def serve_growth():
    """Milliseconds to a tiny request, by connections that ask at once: the best of all rounds."""
    sizes, rates = (1, 4, 16, 64, 256, 512), {}
    with posencd(BUILD) as ours:
        for _ in range(ROUNDS):
            for n in sizes:
                with Load(BUILD, ours, n, TINY) as load:
                    rates.setdefault(n, []).append(load.window(WINDOW_S / 3, n)["requests_per_s"])
    tell_points("tiny_get_by_connections", [(n, 1e3 / max(rates[n])) for n in sizes])


def serve_workers():
    embeddings = [[((i * 31 + j * 17) % 257) / 256 for j in range(64)] for i in range(2048)]
    entry = {"op": "attention", "encoding": {"type": "sinusoidal"}, "embeddings": embeddings, "heads": 2,
             "return": "output"}
    with body_file(json.dumps({"requests": [entry] * 8}).encode()) as path, posencd(BUILD, "--workers", "2") as two, \
            posencd(BUILD, "--workers", "1") as one, Load(BUILD, two, 1, "/v1/batch", path) as two_load, \
            Load(BUILD, one, 1, "/v1/batch", path) as one_load:
        measured = by_turns([two_load, one_load], WINDOW_S / 2, 2)
        best = [max(pair[i]["requests_per_s"] for pair in measured) for i in (0, 1)]
        tell("workers_2/1", best[0] / best[1], 1e3 / best[0])
        tell_points("batch_by_workers", [(2 - i, 1e3 / best[i]) for i in (1, 0)])


# ---- Streams --------------------------------------------------------------------------------------------------------

class Stream:
    """A long reply that is read in pieces, a round each."""

    def __init__(self, server, target):
        self.server = server
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        self.buffer = bytearray(1 << 20)
        head = self.socket.recv(4096)
        assert head.startswith(b"HTTP/1.1 200 "), head

    def read(self, n):
        """How many seconds these bytes took; the server is stopped before and after."""
        self.server.resume()
        start, left = time.perf_counter(), n
        while left > 0:
            got = self.socket.recv_into(self.buffer)
            assert got > 0, "the stream ended early"
            left -= got
        took = time.perf_counter() - start
        self.server.pause()
        return took

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.resume()
        self.socket.close()


STREAM_BYTES, NPY_ROWS, JSON_ROWS = 2048000128, 1000000, 370000  # 5.6 KB a row as text
PIECE = 2000000000 // (15 + 1)


def stream_of(rows, form):
    return f"/v1/encode?type=sinusoidal&d_model=512&positions=0:{rows}&format={form}"


def read_stream(server, rows, form, other=None):
    """Seconds per piece of ours, and of the other stream; and how much memory it took."""
    request(server, "GET", TINY)
    before, times = server.status_bytes("VmRSS"), []
    with Stream(server, stream_of(rows, form)) as stream:
        for _ in range(15 + 1):
            times.append((stream.read(PIECE), other.read(PIECE) if other else None))
        server.resume()
        grown = server.status_bytes("VmHWM") - before
    return times[1:], grown


def serve_stream():
    with posencd(BUILD) as ours:
        try:
            with Nginx({"long.npy": b""}) as nginx:
                os.truncate(nginx.path("long.npy"), STREAM_BYTES)
                with Stream(nginx, "/read/long.npy") as warm:  # into the page cache
                    warm.read(STREAM_BYTES - 8192)
                with Stream(nginx, "/read/long.npy") as theirs:
                    times, grown = read_stream(ours, NPY_ROWS, "npy", theirs)
                tell("stream_npy_2gb/nginx", statistics.median(b / a for a, b in times))
        except Missing as what:
            tell_missing(["stream_npy_2gb/nginx"], what)
            _, grown = read_stream(ours, NPY_ROWS, "npy")
    with posencd(BUILD) as ours:
        times, grown_json = read_stream(ours, JSON_ROWS, "json")
        tell("stream_json_gb_per_s", statistics.median(PIECE / 1e9 / a for a, _ in times))
    tell("stream_growth_bytes", max(grown, grown_json))


# ---- Idle connections -----------------------------------------------------------------------------------------------

IDLE = 8000


def open_idle(server):
    """Connections that have each had an answer."""
    opened = []
    for _ in range(IDLE):
        sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        sock.sendall(f"GET {TINY} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        opened.append(sock)
    return opened


def serve_idle():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE + 200:
        tell_missing(["idle_8000/without", "idle_connection_bytes"], f"{IDLE} open files (limit {hard})")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard > 0 else 65536, hard))
    with posencd(BUILD, "--connections", "10000", "--idle-timeout-s", "3600") as ours, posencd(BUILD) as base, \
            Load(BUILD, base, 32, TINY) as base_load:
        request(ours, "GET", TINY)
        before = ours.status_bytes("VmRSS")
        opened = open_idle(ours)
        tell("idle_connection_bytes", (ours.status_bytes("VmRSS") - before) / IDLE)
        with Load(BUILD, ours, 32, TINY) as load:
            tell("idle_8000/without", median_ratio(by_turns([load, base_load])))
        for sock in opened:
            sock.close()


# ---- Memory ---------------------------------------------------------------------------------------------------------

def grown_by(method, target, body=None, kind=None):
    """Peak memory of a fresh daemon over that which has answered one tiny request, in MB."""
    with posencd(BUILD) as ours:
        request(ours, "GET", TINY)
        before = ours.status_bytes("VmRSS")
        request(ours, method, target, body, kind)
        return (ours.status_bytes("VmHWM") - before) / 1e6


def serve_memory():
    """By the megabytes of numbers [n, 512] in a request; they are as many in its reply."""
    rows = (64, 256, 1024, 4096)
    points = {"memory_apply_npy": [], "memory_apply_json": [], "memory_encode_json": []}
    for n in rows:
        npy = npy_of(n, 512)
        size = n * 512 * 4 / 1e6
        text = json.dumps({"encoding": {"type": "sinusoidal"}, "embeddings": [[0.12345678] * 512] * n}).encode()
        points["memory_apply_npy"].append((size, grown_by("POST", "/v1/apply?type=sinusoidal", npy, "application/x-npy")))
        points["memory_apply_json"].append((size, grown_by("POST", "/v1/apply", text)))
        points["memory_encode_json"].append((size, grown_by("GET", stream_of(n, "json"))))
    for name, found in points.items():
        tell_points(name, found)


def main():
    failed = False
    groups = {name[6:]: function for name, function in globals().items() if name.startswith("serve_")}
    for name in sys.argv[2:] or groups:
        print(f"serve: {name}", file=sys.stderr, flush=True)
        try:
            groups[name]()
        except Exception:  # the other groups still run; bench.py tells what is missing
            traceback.print_exc()
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
