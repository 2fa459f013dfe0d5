#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Many at once: test_threads.py DAEMON [TEST...].

The replies of many connections at the same time are, byte for byte and tag for tag, those of one after the other,
with any number of workers; no number of connections makes the service stall; and what comes and goes leaves nothing.
"""
import itertools
import json
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, receive_all, run_tests  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "soak"))
import mixed  # noqa: E402
from watch import QuietDaemon  # noqa: E402
from wire import Wire, field, request  # noqa: E402

PATH = sys.argv[1]
SLOW = any(flavour in PATH for flavour in ("asan", "tsan", "cov"))
LOAD = pathlib.Path(PATH).resolve().parent / "load"  # made by `make load`
CONNECTIONS = 32
SMALL = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
FORMATS = ("json", "npy", "raw", "safetensors", "csv")


# ---- the same bytes -------------------------------------------------------------------------------------------------

def big_requests():
    """Of every operation, in several parts and formats: these meet on the workers."""
    rows = 300 if SLOW else 600
    data = struct.pack(f"<{rows * 64}f", *(random.Random(5).randrange(-512, 512) / 64 for _ in range(rows * 64)))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 64), }}".ljust(117) + "\n"
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
    kind = ["Content-Type: application/x-npy"]
    for form in FORMATS:
        yield "GET", request("GET", f"/v1/encode?type=sinusoidal&d_model=64&positions=7:{7 + rows}&format={form}")
        yield "POST", request("POST", f"/v1/encode?type=random&seed=4&d_model=64&positions=0:{rows}&format={form}", b"{}")
        yield "POST", request("POST", f"/v1/apply?type=sinusoidal&format={form}", npy, kind)
        yield "POST", request("POST", f"/v1/attention?type=sinusoidal&heads=4&mask.causal=true&return=output&format={form}",
                              npy[:128].replace(b"(%d" % rows, b"(256").ljust(128) + data[:256 * 256], kind)
        yield "GET", request("GET", f"/v1/positions?positions=0:{rows}:0.25&format={form}")
    for form in ("json", "npy"):
        yield "GET", request("GET", f"/v1/shift?type=random&seed=2&d_model=24&distance=1&positions=0:200&format={form}")
        yield "GET", request("GET", f"/v1/shift?type=sinusoidal&d_model=512&distance=5&format={form}")
    yield "POST", request("POST", "/v1/attention?type=sinusoidal&return=weights,logits&format=safetensors",
                          npy[:128].replace(b"(%d" % rows, b"(256").ljust(128) + data[:256 * 256], kind)
    entries = [{"op": "encode", "encoding": {"type": "sinusoidal", "d_model": d}, "positions": "0:50"} for d in range(1, 30)]
    entries += [{"op": "attention", "q": [[1, 0], [0, 1]], "k": [[1, 0], [0, 1]], "mask": "causal"}] * 20 + [{"op": "nothing"}]
    yield "POST", request("POST", "/v1/batch", json.dumps({"requests": entries}).encode())
    yield "HEAD", request("HEAD", SMALL)


def all_requests():
    """Those, and every case of tests/cases, so that no operation is left out."""
    cases = [(method, data) for _, method, data, _ in mixed.case_requests()]
    return cases + list(big_requests())


def essence(reply):
    """What has to be the same each time."""
    names = (b"etag", b"content-type", b"x-posenc-encoding", b"x-posenc-shape", b"x-posenc-dtype")
    return reply.status, [field(reply.head, name) for name in names], bytes(mixed.bare(reply.body))


def one_after_the_other(daemon, asked):
    wire = Wire(daemon.port, 300)
    replies = [essence(wire.ask(data, method)) for method, data in asked]
    wire.close()
    return replies


def test_concurrent_is_serial():
    """Every request of all operations on 32 connections at once, in another order on each, has the serial bytes."""
    asked = all_requests()
    wanted = None
    for workers in (2, 8) if SLOW else (1, 2, 8):
        with QuietDaemon(PATH, "--workers", str(workers), "--streams", "64", "--deadline-ms", "600000") as daemon:
            serial = one_after_the_other(daemon, asked)
            wanted = wanted or serial
            assert [i for i, reply in enumerate(serial) if reply != wanted[i]] == [], workers
            wires = [Wire(daemon.port, 300) for _ in range(CONNECTIONS)]
            orders = [random.Random(n).sample(range(len(asked)), len(asked)) for n in range(CONNECTIONS)]
            for turn in range(0, len(asked), 16 if SLOW else 10):
                for wire, order in zip(wires, orders):
                    wire.send(*asked[order[turn]][1])
                for wire, order in zip(wires, orders):
                    method, data = asked[order[turn]]
                    got = essence(wire.receive(method))
                    assert got == wanted[order[turn]], (workers, data[0], got[:2], got[2][:200])
            for wire in wires:
                wire.close()
            daemon.at_rest()
    statuses = {reply[0] for reply in wanted}
    assert statuses >= {200, 400} and not statuses & {500, 503, 504}, statuses


def test_every_operation_is_asked():
    """The list above has all operations that the service names."""
    with Daemon(PATH) as daemon:
        routes = json.loads(daemon.get("/v1")[2])["routes"]
    operations = {route.split("/")[2] for route in routes if route.startswith("POST /v1/") and route.count("/") == 2}
    asked = {data[0].split(b" ")[1].split(b"?")[0].decode().split("/")[2] for _, data in big_requests()}
    assert {"encode", "apply", "attention", "shift", "positions", "batch"} <= operations, routes
    cases = {data[0].split(b" ")[1].split(b"?")[0].decode().split("/")[2] for _, data in all_requests()}
    assert operations <= cases and asked <= cases, operations - cases


# ---- numbers of connections -----------------------------------------------------------------------------------------

def load(daemon, connections, seconds, target=SMALL):
    """What the load generator measured: {'requests_per_s': ..., 'errors': ...}."""
    command = [LOAD, f"127.0.0.1:{daemon.port}", str(connections), str(seconds), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), (LOAD, done.stderr)
    return {name: float(value) for name, value in (pair.split("=") for pair in done.stdout.split())}


def test_no_number_of_connections_stalls():
    """From 64 to 384 connections that are always ready: none is less than half as fast as 64, by the median of rounds that
    take turns. Other things run on the machine, too, so there may be more rounds. A slow build only has to be right."""
    numbers, rates = (64, 127, 128, 129, 256, 384), {}
    with QuietDaemon(PATH) as daemon:
        length = len(daemon.get(SMALL)[2])
        for _ in range(1 if SLOW else 3):
            for _, n in itertools.product(range(1 if SLOW else 3), numbers):
                got = load(daemon, n, 0.15)
                assert got["errors"] == 0 and got["requests"] >= n and got["body_bytes"] == length, got
                rates.setdefault(n, []).append(got["requests_per_s"])
            medians = {n: statistics.median(rates[n]) for n in numbers}
            print("   requests/s: " + ", ".join(f"{n}: {rate:.0f}" for n, rate in medians.items()), flush=True)
            fair = all(rate >= medians[64] / 2 for rate in medians.values())
            if fair:
                break
        assert fair or SLOW, medians
        daemon.at_rest()


def test_load_tells_errors():
    """The load generator fails on replies that are not 200, and on nothing to connect to."""
    with Daemon(PATH) as daemon:
        assert load(daemon, 2, 0.1, "/nothing")["errors"] > 0
        port = daemon.port
    done = subprocess.run([LOAD, f"127.0.0.1:{port}", "2", "0.1", SMALL], capture_output=True, timeout=60)
    assert done.returncode == 2 and b"cannot begin" in done.stderr, done


def test_connections_that_come_and_go():
    """Hundreds of connections a second, with and without a request, closed in order or not: nothing of them stays."""
    with QuietDaemon(PATH) as daemon:
        _, files = daemon.at_rest()
        begin, count = time.monotonic(), 300 if SLOW else 1000
        for i in range(count):
            wire = Wire(daemon.port, 60)
            if i % 3 == 0:
                wire.send(*request("GET", SMALL))
            if i % 9 == 0:
                assert wire.receive().status == 200
            wire.close(reset=i % 2 == 0)
            time.sleep(max(0, begin + i / 500 - time.monotonic()))
        _, now = daemon.at_rest(60)
        assert now == files, (files, now)
        assert daemon.metrics()["posenc_connections_total"] >= count


def test_half_closed_connections_end():
    """A client that says with its last bytes that no more will come is not kept waiting, wherever it stopped."""
    beginnings = [b"GET /v1/lim", b"GET /v1/limits HTTP/1.1\r\nHost", b"GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n",
                  b"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}"]
    with Daemon(PATH) as daemon:  # its idle timeout is 75 s
        socks = []
        for beginning in beginnings * 10:
            sock = daemon.connect(timeout=30)
            sock.sendall(beginning)
            sock.shutdown(socket.SHUT_WR)
            socks.append((sock, beginning))
        began = time.monotonic()
        for sock, beginning in socks:
            whole = beginning.endswith(b"x\r\n\r\n")
            assert receive_all(sock)[:12] == (b"HTTP/1.1 200" if whole else b""), beginning
            sock.close()
        took = time.monotonic() - began
        assert took < 25, took
        daemon.wait_metric("posenc_connections", 1)


if __name__ == "__main__":
    assert os.access(LOAD, os.X_OK), f"{LOAD} is missing: make load"
    sys.exit(run_tests(globals()))
