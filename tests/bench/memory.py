# SPDX-License-Identifier: MIT
"""What lasts, and what it holds in memory: streams of 2 GB, against nginx sending a file of that length; 8,000 idle
connections; the peak of a request by its size. bench.py runs this:

    /usr/bin/python3 tests/bench/memory.py build/release [GROUP...]

Groups are the functions measure_... below.
"""
import json
import os
import resource
import socket
import statistics
import time

from _rounds import (BUILD, TINY, by_turns, median_ratio, npy_of, request, run_groups, tell, tell_missing, tell_points)
from _servers import Load, Missing, Nginx, posencd

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


def measure_stream():
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
        tell("stream_json_gb_per_cpu_s", (len(times) + 1) * PIECE / 1e9 / ours.cpu_s())
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


def measure_idle():
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


def measure_memory():
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


if __name__ == "__main__":
    run_groups(globals())
