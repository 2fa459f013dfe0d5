#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Work that takes long ends at its deadline, whichever operation it is: test_stop.py build/posencd

Each request is sent twice: with the daemon's deadline, and with 100 ms of its own, which must be answered with 504 in
less than half the time. Both are measured on the machine as it is, and a machine that is busy with other things gets
more than one chance.
"""
import array
import json
import struct
import sys
import time

from _daemon import Daemon, run_tests

ATTEMPTS = 5
OPTIONS = ["--deadline-ms", "600000", "--workers", "1"]
PERIOD = 1021
PATTERN = array.array("f", (i / PERIOD - 0.5 for i in range(PERIOD))).tobytes()


def safetensors(**tensors):
    """A file of float32 tensors of shape (rows, columns), their numbers small and not all the same."""
    header, data = {}, b""
    for name, (rows, columns) in tensors.items():
        count = rows * columns
        numbers = (PATTERN * (count // PERIOD + 1))[:4 * count]
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def timed(daemon, method, target, body, headers):
    began = time.monotonic()
    status, _, reply = daemon.request(method, target, body, headers, timeout=900)
    return time.monotonic() - began, status, reply


def ends_early(method, target, body=None, media="application/json"):
    """The request is answered with 504 in less than half of its time; where its body takes longer to come than the
    deadline, nothing has been computed yet, and it is tried with a later one."""
    headers = {"Content-Type": media}
    times, deadline = [], 100
    with Daemon(sys.argv[1], *OPTIONS) as daemon:
        while len(times) < ATTEMPTS:
            cut, status, reply = timed(daemon, method, target, body, {**headers, "X-Posenc-Timeout-Ms": str(deadline)})
            assert status == 504, (target, status, reply[:300])
            if b"before the body was complete" in reply and deadline < 10000:
                deadline *= 2
                continue
            assert b"the deadline of %d ms passed" % deadline in reply, reply
            whole, status, reply = timed(daemon, method, target, body, headers)
            assert status == 200, (target, status, reply[:300])
            times.append((cut, whole))
            if cut < whole / 2:
                return
    raise AssertionError(f"{target} took {times} (with {deadline} ms, with all the time)")


def test_attention_in_one_part():
    """One head of projected embeddings is one part."""
    body = safetensors(embeddings=(1200, 1500), w_q=(1500, 1500), w_k=(1500, 1500))
    ends_early("POST", "/v1/attention?type=none&format=npy", body, "application/safetensors")


def test_positions_of_attention_while_they_are_planned():
    """The vectors that are added to embeddings are made before the parts."""
    ends_early("POST", "/v1/attention?type=random&format=npy&return=output",
               safetensors(embeddings=(800, 12000)), "application/safetensors")


def test_a_fit():
    """Least squares are one part."""
    ends_early("GET", "/v1/shift?type=random&d_model=400&positions=0:1600&distance=1&format=npy")


def test_an_exact_map():
    """As is the trial of an exact map."""
    ends_early("GET", "/v1/shift?type=sinusoidal&d_model=16&positions=0:1000000&distance=1&format=npy")


def test_apply():
    """Many short parts."""
    ends_early("POST", "/v1/apply?type=random&format=npy", safetensors(embeddings=(800, 12000)),
               "application/safetensors")


def test_encode():
    """Many short parts, from nothing but a range."""
    ends_early("POST", "/v1/encode?type=random&d_model=512&positions=0:24000&format=npy", b"{}")


def test_batch():
    """Every entry ends."""
    entry = {"op": "shift", "encoding": {"type": "random", "d_model": 200}, "positions": "0:1600", "distance": 1}
    ends_early("POST", "/v1/batch", json.dumps({"requests": [entry] * 4}))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
