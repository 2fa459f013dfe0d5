#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What large replies take: test_memory.py DAEMON [TEST...].

A reply of numbers as they lie in memory takes its result once, from the work to the last byte; a text beside the
numbers that it is made of. What its client does not wait for is freed at once. The peak is the kernel's own, since a
reset of it before the request.
"""
import array
import http.client
import json
import pathlib
import random
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, NotTried, receive_reply, run_tests  # noqa: E402

PATH = sys.argv[1]
SANITIZED = any(flavour in PATH for flavour in ("asan", "tsan", "cov"))
JSON, NPY, SAFETENSORS = "application/json", "application/x-npy", "application/x-safetensors"
KEYS, WIDTH = 4096, 64
ROWS = 4000  # of 4096 float32: 62.5 MiB, within reply_bytes
GAUGES = {"posenc_queue_depth": 0, "posenc_workers_busy": 0, "posenc_streams_active": 0,
          "posenc_http_requests_in_flight": 1}  # which asks for the gauges


def numbers(count, seed):
    """float32 numbers from -1 to 1, little-endian; they repeat."""
    draw = random.Random(seed)
    some = array.array("f", (draw.uniform(-1, 1) for _ in range(4099)))
    if sys.byteorder == "big":
        some.byteswap()
    block = some.tobytes()
    return (block * (count // 4099 + 1))[:count * 4]


def safetensors(**tensors):
    """A file of float32 tensors: name=(shape, bytes)."""
    head, at = {}, 0
    for name, (shape, data) in tensors.items():
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values())


def npy(rows, columns):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + numbers(rows * columns, 1)


def heads(n, rows, keys=KEYS):
    """q and k of n heads."""
    return {"q": ([n, rows, WIDTH], numbers(n * rows * WIDTH, 1)), "k": ([n, keys, WIDTH], numbers(n * keys * WIDTH, 2))}


def one_head(rows):
    """The queries of some rows of the fourth head; their positions are the last ones of the keys."""
    return safetensors(**heads(1, rows), head_index=([1], struct.pack("<f", 3)))


def document(**members):
    return json.dumps(members).encode()


def bias(rows):
    return document(encoding={"type": "alibi"}, heads=16, head_index=[3], query_positions=f"0:{rows}",
                    key_positions=f"0:{KEYS}")


def encode(rows):
    return document(encoding={"type": "sinusoidal", "d_model": 4096}, positions=f"0:{rows}")


# target, media type, body of so many rows of 4096 results
BIG = [("/v1/bias?format=npy", JSON, bias),
       ("/v1/bias?format=raw", JSON, bias),
       ("/v1/encode?format=npy", JSON, encode),
       ("/v1/encode?format=safetensors", JSON, encode),
       ("/v1/attention?type=alibi&heads=16&format=npy", SAFETENSORS, one_head),
       ("/v1/attention?type=alibi&heads=16", SAFETENSORS, one_head),
       ("/v1/attention?type=shaw&clip=64&seed=1&heads=16&format=npy", SAFETENSORS, one_head),
       ("/v1/apply?type=sinusoidal", NPY, lambda rows: npy(rows, 4096))]


class Peak:
    """The most memory above what was in use before, while the block runs."""

    def __init__(self, daemon):
        self.pid, self.bytes = daemon.process.pid, 0

    def _status(self, name):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

    def __enter__(self):
        try:
            pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            raise NotTried("the kernel does not reset the peak of a process's memory") from None
        self.before = self._status("VmRSS")
        return self

    def __exit__(self, *_):
        self.bytes = self._status("VmHWM") - self.before


def needs_own_memory():
    if SANITIZED:
        raise NotTried("a sanitizer's own memory is in the way")


def post(daemon, target, media, body):
    """(status, length) of a reply that is read piece by piece."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
    try:
        connection.request("POST", target, body, {"Content-Type": media})
        reply = connection.getresponse()
        size = 0
        while piece := reply.read(1 << 20):
            size += len(piece)
        return reply.status, size
    finally:
        connection.close()


def send(daemon, target, media, body, room=None):
    """A socket on which it was asked for; `room` bytes of its buffer for what comes back."""
    sock = socket.socket()
    sock.settimeout(120)
    if room:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    sock.connect(("127.0.0.1", daemon.port))
    sock.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def at_rest(daemon):
    for name, value in GAUGES.items():
        daemon.wait_metric(name, value, 30 if SANITIZED else 10)


# ---- what is held ---------------------------------------------------------------------------------------------------

def test_binary_replies_are_held_once():
    """The result and the body that was posted, and little beside."""
    needs_own_memory()
    for target, media, make in BIG:
        with Daemon(PATH, "--workers", "2") as daemon:
            assert post(daemon, target, media, make(12))[0] == 200
            body = make(ROWS)
            with Peak(daemon) as peak:
                status, size = post(daemon, target, media, body)
            result = ROWS * KEYS * 4
            assert status == 200 and result <= size < result + 1000, (target, status, size)
            assert peak.bytes < 1.3 * result + len(body), (target, peak.bytes / result, len(body))


def test_text_is_held_beside_its_numbers():
    """A text of a third of reply_bytes: itself, its numbers, and no copy."""
    needs_own_memory()
    with Daemon(PATH, "--workers", "2") as daemon:
        for flat in ("", "flat=1"):
            target, rows = "/v1/bias?" + flat, 500
            assert post(daemon, target, JSON, bias(12))[0] == 200
            with Peak(daemon) as peak:
                status, size = post(daemon, target, JSON, bias(rows))
            assert status == 200 and size > 4 * rows * KEYS, (status, size)
            assert peak.bytes < 1.3 * (size + rows * KEYS * 4), (peak.bytes, size)


def test_a_batch_holds_its_texts_once():
    needs_own_memory()
    entry = {"op": "bias", "encoding": {"type": "alibi"}, "heads": 1, "key_positions": f"0:{KEYS}"}
    with Daemon(PATH, "--workers", "2") as daemon:
        for rows in (4, 200):
            body = document(requests=3 * [{**entry, "query_positions": f"0:{rows}"}])
            with Peak(daemon) as peak:
                status, size = post(daemon, "/v1/batch", JSON, body)
            assert status == 200, status
        assert size > 3 * rows * KEYS * 4, size
        assert peak.bytes < 1.3 * (size + 3 * rows * KEYS * 4), (peak.bytes, size)


def test_too_large_is_refused_before_memory_is_touched():
    needs_own_memory()
    with Daemon(PATH, "--workers", "2") as daemon:
        for target, media, make in BIG[:-1]:
            assert post(daemon, target, media, make(12))[0] == 200
            body = make(KEYS + 100)
            with Peak(daemon) as peak:
                assert post(daemon, target, media, body)[0] in (400, 413), target
            assert peak.bytes < 8 << 20 and peak.bytes < 4 * len(body) + (4 << 20), (target, peak.bytes)


def beyond_the_reply():
    """Requests whose replies are over 8 MiB, and which with their results are over 16: (target, media, body)."""
    table = npy(4, 4096)
    embeddings = npy(640, 4096)  # 10 MiB
    yield "/v1/bias?format=npy", JSON, bias(2048)
    yield "/v1/encode?format=npy", JSON, encode(2048)
    yield "/v1/encode?format=safetensors", JSON, document(
        encoding={"type": "rope", "head_dim": 512, "layout": "halves"}, positions="0:10000")
    for outputs in ("weights", "logits,position", "content,position,weights"):
        yield f"/v1/attention?type=alibi&heads=16&return={outputs}", SAFETENSORS, one_head(1100)
    yield "/v1/attention?type=alibi&heads=16&format=json", SAFETENSORS, one_head(1100)
    yield "/v1/attention?type=shaw&clip=64&seed=1&heads=16&format=npy", SAFETENSORS, one_head(1100)
    yield "/v1/apply?type=sinusoidal", NPY, embeddings
    yield "/v1/apply?type=rope&layout=halves", NPY, embeddings
    yield "/v1/positions?format=raw", JSON, document(positions="0:2200000")
    yield "/v1/similarity", JSON, document(encoding={"type": "sinusoidal", "d_model": 8}, positions="0:2200")
    yield "/v1/convert?resize.to_rows=1024&resize.kernel=linear", NPY, table
    seeded = {"weights_seed": 1, "token_seed": 1, "tokens": ["a"] * 1200, "width": 8, "heads": 2, "layers": 2}
    yield "/v1/block?format=safetensors", JSON, document(**seeded)
    yield "/v1/convert?from=halves&to=interleaved&head_dim=64&heads=10&kv_heads=10&of=q", NPY, embeddings


def test_too_large_a_reply_takes_no_memory_from_others():
    """What no try could get is a 413, not the 503 of memory that others have; and its result was never reserved."""
    with Daemon(PATH, "--reply-bytes", "8MiB", "--memory-bytes", "16MiB", "--workers", "2") as daemon:
        for target, media, body in beyond_the_reply():
            status, _, reply = daemon.post(target, body, {"Content-Type": media})
            problem = json.loads(reply)
            assert status == 413 and problem["option"] == "reply_bytes", (target, status, problem)
            assert problem["limit"] == 8 << 20 < problem["got"], (target, problem)
        entry = {"op": "bias", "encoding": {"type": "alibi"}, "heads": 1, "key_positions": f"0:{KEYS}",
                 "query_positions": "0:70"}
        large = {**entry, "query_positions": "0:2048"}
        status, _, reply = daemon.post("/v1/batch", {"requests": [entry, large, entry]})
        answers = json.loads(reply)["responses"]
        assert [answer["status"] for answer in answers] == [200, 413, 413], reply[:500]
        assert answers[1]["body"]["option"] == answers[2]["body"]["option"] == "reply_bytes", reply[:500]


def test_a_reply_counts_until_it_is_sent():
    """13.7 MiB each: of those that nobody reads four fit in 64 MiB, and the fifth is told so."""
    rows, target = 875, "/v1/bias?format=npy"
    with Daemon(PATH, "--memory-bytes", "64MiB", "--workers", "1") as daemon:
        slow = []
        for i in range(5):
            slow.append(send(daemon, target, JSON, bias(rows), 4096))
            got = slow[-1].recv(12)
            assert got == (b"HTTP/1.1 200" if i < 4 else b"HTTP/1.1 503"), (i, got)
        slow.pop(0).close()
        daemon.wait_metric("posenc_http_requests_in_flight", 1 + 3)
        again = send(daemon, target, JSON, bias(rows))
        status, headers, body = receive_reply(again)
        assert status == 200 and len(body) == rows * KEYS * 4 + 128 == int(headers["content-length"]), (status, len(body))
        again.sendall(b"GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n")
        assert receive_reply(again)[0] == 200
        for sock in [*slow, again]:
            sock.close()
        at_rest(daemon)


# ---- clients that leave ---------------------------------------------------------------------------------------------

def relative():
    """Large replies of every kind of relative encoding, of queries and keys or of embeddings: (target, media, body)."""
    side = 14 if SANITIZED else 20
    rows = side * side
    pair = safetensors(**heads(4, rows, rows))
    tokens = safetensors(embeddings=([rows, 4 * WIDTH], numbers(rows * 4 * WIDTH, 3)))
    for query in ("type=alibi", "type=t5&seed=1", "type=shaw&seed=1&clip=16", "type=transformer_xl&seed=1",
                  "type=deberta&seed=1", "type=cope&seed=1", f"type=swin&window={side},{side}&seed=1"):
        for body in (pair, tokens):
            yield f"/v1/attention?{query}&heads=4&format=raw", SAFETENSORS, body
    swin = {"type": "swin", "window": [side, side], "seed": 1}
    yield "/v1/bias?format=raw", JSON, document(encoding=swin, heads=4)


def leave(daemon, target, media, body, taken):
    """Asks, takes so many bytes of the reply, and is gone."""
    with send(daemon, target, media, body, 4096) as sock:
        while taken > 0:
            got = sock.recv(min(taken, 65536))
            assert got, target
            taken -= len(got)


def test_clients_that_leave_take_nothing():
    """At once, in the middle of the work, after the first bytes and in the middle of the reply."""
    with Daemon(PATH, "--workers", "2") as daemon:
        asked = list(relative())
        for target, media, body in asked:
            status, size = post(daemon, target, media, body)
            assert status == 200 and size > 500000, (target, status, size)
        before = daemon.resident_bytes()
        for i, (target, media, body) in enumerate(asked):
            leave(daemon, target, media, body, 0)
            with send(daemon, target, media, body, 4096):
                time.sleep(0.001 * (i % 5))
            leave(daemon, target, media, body, 100)
            leave(daemon, target, media, body, 200000)
        at_rest(daemon)
        assert SANITIZED or daemon.resident_bytes() < before + (64 << 20), (before, daemon.resident_bytes())
        for target, _, _ in asked:
            assert {entry["status"] for entry in daemon.requests(target)} <= {200, 499}, target
        assert daemon.metrics()['posenc_http_rejected_total{reason="client_gone"}'] >= 2 * len(asked)


def test_kept_plans_are_little_beside_requests():
    """However much plan_bytes allows: an eighth of memory_bytes, which they are not part of."""
    with Daemon(PATH, "--memory-bytes", "32MiB", "--plan-bytes", "64MiB") as daemon:
        for i in range(100):
            status, *_ = daemon.get(f"/v1/encode?type=sinusoidal&d_model={4096 - 2 * i}&positions=0")
            assert status == 200, status
        kept = daemon.metrics()["posenc_plan_bytes"]
        assert (1 << 20) < kept <= (4 << 20), kept


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
