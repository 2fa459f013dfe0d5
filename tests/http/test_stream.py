#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Long replies, computed while they are sent: test_stream.py DAEMON [TEST...].

    FULL=1 python3 tests/http/test_stream.py build/posencd

Memory stays flat whatever the length, the bytes are those of single positions, and when a client goes away nothing of
it is left. By default the streams are of some hundred MB (less where a sanitizer watches); FULL=1 takes them to a
million positions of width 512, 2 GB as npy and 6 GB as JSON. Each stream's size, time and memory are printed.
"""
import hashlib
import http.client
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, run_tests  # noqa: E402

PATH = sys.argv[1]
SANITIZED = any(flavour in PATH for flavour in ("asan", "tsan", "cov"))
FULL = os.environ.get("FULL") == "1"
WIDTH, ROW = 512, 512 * 4
MEMORY = 64 << 20  # above idle
GAUGES = {"posenc_streams_active": 0, "posenc_queue_depth": 0, "posenc_workers_busy": 0,
          "posenc_http_requests_in_flight": 1}  # which asks for the gauges
SOON_S = 5 if SANITIZED else 1


def rows(full, reduced, sanitized):
    return full if FULL else sanitized if SANITIZED else reduced


def target(count, form="npy", start=0):
    return f"/v1/encode?type=sinusoidal&d_model={WIDTH}&positions={start}:{start + count}&format={form}"


def status_bytes(daemon, name):
    """VmRSS or VmHWM, the memory held now and at most ever."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name}")


def idle(daemon):
    """Memory of a daemon that has answered something, but no stream yet."""
    assert daemon.get(target(10))[0] == 200
    return status_bytes(daemon, "VmRSS")


def at_rest(daemon):
    for name, value in GAUGES.items():
        daemon.wait_metric(name, value, SOON_S)


class Stream:
    """One GET, read piece by piece: keeps its beginning, its end, its length and its digest."""

    def __init__(self, daemon, path, keep=4 * 65536):
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
        self.keep, self.size, self.first, self.last = keep, 0, b"", b""
        self.digest, self.separators, self.peak, self.samples = hashlib.blake2b(), 0, 0, {}
        self.began = time.monotonic()
        self.connection.request("GET", path)
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.length = self.reply.length

    def read(self, n):
        piece = self.reply.read(n)
        if len(self.first) < self.keep:
            self.first += piece[:self.keep - len(self.first)]
        self.size += len(piece)
        return piece

    def sample(self, piece, head):
        """Keeps the first whole row of a piece, when a file's rows follow its first `head` bytes."""
        row = -(-(self.size - len(piece) - head) // ROW)
        at = head + row * ROW - (self.size - len(piece))
        if len(self.samples) < 200 and row >= 0 and at + ROW <= len(piece):
            self.samples[row] = piece[at:at + ROW]

    def read_all(self, daemon, pause=lambda stream: None, count=b"", hashed=False, head=None):
        """To the end; a row's separator may lie across two pieces. The digest costs more than the stream."""
        while piece := self.read(1 << 20):
            if head is not None and (self.size >> 20) % (9 if FULL else 2) == 0:
                self.sample(piece, head)
            if count:
                self.separators += (self.last[len(self.last) - len(count) + 1:] + piece).count(count)
            if hashed:
                self.digest.update(piece)
            self.last = piece if len(piece) >= self.keep else (self.last + piece)[-self.keep:]
            self.peak = max(self.peak, status_bytes(daemon, "VmRSS"))
            pause(self)
        self.seconds = time.monotonic() - self.began
        self.connection.close()
        return self


def single(daemon, position):
    """The bytes of one position, asked for alone."""
    status, _, body = daemon.get(f"/v1/encode?type=sinusoidal&d_model={WIDTH}&positions={position}&format=raw")
    assert status == 200 and len(body) == ROW
    return body


def report(daemon, stream, before, what):
    most = status_bytes(daemon, "VmHWM") - before
    print(f"   {what}: {stream.size} bytes in {stream.seconds:.2f} s, {stream.size / stream.seconds / 1e6:.0f} MB/s, "
          f"{(stream.peak - before) / 2**20:.1f} MiB above idle while it ran, {most / 2**20:.1f} MiB at most", flush=True)
    if not SANITIZED:
        assert most < MEMORY, (before, most)
        assert stream.peak - before < MEMORY


# ---- size and memory ------------------------------------------------------------------------------------------------

def test_npy():
    count = rows(1000000, 200000, 20000)
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        stream = Stream(daemon, target(count)).read_all(daemon, head=128)
        assert stream.reply.headers["Content-Type"] == "application/x-npy"
        assert stream.length == stream.size == 128 + count * ROW, (stream.length, stream.size)
        assert b"'shape': (%d, 512)" % count in stream.first[:128] and b"'<f4'" in stream.first[:128]
        report(daemon, stream, before, f"npy of {count} x {WIDTH}")
        for position in (0, 1, 99):
            assert stream.first[128 + position * ROW:128 + (position + 1) * ROW] == single(daemon, position), position
        for back in (1, 2, 100):
            end = len(stream.last) - (back - 1) * ROW
            assert stream.last[end - ROW:end] == single(daemon, count - back), back
        assert SANITIZED or len(stream.samples) > 50, len(stream.samples)
        for position, row in stream.samples.items():  # from all over it
            assert row == single(daemon, position), position
        at_rest(daemon)


def json_row(text):
    """The bytes of a row of JSON numbers."""
    return struct.pack(f"<{WIDTH}f", *json.loads(text))


def test_json():
    count = rows(1000000, 30000, 2000)
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        stream = Stream(daemon, target(count, "json")).read_all(daemon, count=b"],[")
        assert stream.reply.headers["Content-Type"] == "application/json"
        report(daemon, stream, before, f"JSON of {count} x {WIDTH}")
        head, _, body = stream.first.partition(b'"data":[')
        assert head.endswith(b'"vectors":{"shape":[%d,512],"dtype":"float32",' % count), head
        assert json.loads(head.partition(b',"vectors"')[0] + b"}")["encoding"]["d_model"] == WIDTH
        assert stream.last.endswith(b"]]}}"), stream.last[-20:]
        assert stream.separators == count - 1
        first = body.split(b"],[")
        assert json_row(first[0] + b"]") == single(daemon, 0)
        assert json_row(b"[" + first[1] + b"]") == single(daemon, 1)
        last = stream.last[:-4].split(b"],[")
        assert json_row(b"[" + last[-1] + b"]") == single(daemon, count - 1)
        assert json_row(b"[" + last[-2] + b"]") == single(daemon, count - 2)
        at_rest(daemon)


def test_other_formats():
    """raw, csv and safetensors, and a 16-bit type: their bytes are those of single positions too."""
    count = rows(100000, 20000, 1000)
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        raw = Stream(daemon, target(count, "raw", 10 ** 9)).read_all(daemon)
        assert raw.size == raw.length == count * ROW and raw.reply.headers["X-Posenc-Shape"] == f"{count},512"
        assert raw.first[:ROW] == single(daemon, 10 ** 9) and raw.last[-ROW:] == single(daemon, 10 ** 9 + count - 1)
        report(daemon, raw, before, f"raw of {count} x {WIDTH}")
        half = Stream(daemon, target(count, "raw") + "&dtype=bfloat16").read_all(daemon)
        assert half.size == count * WIDTH * 2
        safe = Stream(daemon, target(count, "safetensors")).read_all(daemon)
        length = struct.unpack("<Q", safe.first[:8])[0]
        assert json.loads(safe.first[8:8 + length])["vectors"]["data_offsets"] == [0, count * ROW]
        assert safe.size == safe.length == 8 + length + count * ROW, (safe.size, safe.length, length)
        assert safe.last[-ROW:] == single(daemon, count - 1)
        csv = Stream(daemon, target(count, "csv")).read_all(daemon, count=b"\n")
        lines = csv.last.rstrip().split(b"\n")
        assert csv.separators == count and json_row(b"[" + lines[-1] + b"]") == single(daemon, count - 1)
        report(daemon, csv, before, f"csv of {count} x {WIDTH}")
        at_rest(daemon)


def test_far_more_than_memory():
    """A stream is limited by patience only: 60 GB are begun at once, as nothing is computed ahead."""
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        stream = Stream(daemon, target(30000000))
        assert stream.length == 128 + 30000000 * ROW
        assert stream.read(1 << 20)[128:128 + ROW] == single(daemon, 0)
        assert time.monotonic() - stream.began < SOON_S
        time.sleep(0.5)
        if not SANITIZED:
            assert status_bytes(daemon, "VmHWM") - before < MEMORY
        stream.connection.close()
        at_rest(daemon)


def test_head():
    """All of the headers, none of the work, at any size."""
    with Daemon(PATH) as daemon:
        for count, form in ((1000000, "npy"), (30000000, "raw"), (1000000, "json")):
            began = time.monotonic()
            status, headers, body = daemon.request("HEAD", target(count, form))
            assert (status, body) == (200, b"") and headers["ETag"] and time.monotonic() - began < SOON_S
            if form != "json":
                assert int(headers["Content-Length"]) == (128 if form == "npy" else 0) + count * ROW
        at_rest(daemon)
        status, headers, body = daemon.get(target(1000000), {"If-None-Match": daemon.request("HEAD", target(1000000))[1]["ETag"]})
        assert (status, body) == (304, b"")
        status, _, body = daemon.get(target(1000000000000))
        problem = json.loads(body)
        assert status == 413 and problem["option"] == "stream_bytes" and problem["got"] > problem["limit"], problem


def test_no_streams():
    """Where none are allowed, what fits is buffered, and what does not is too large: later it would be, too."""
    with Daemon(PATH, "--streams=0", "--reply-bytes=1MiB") as daemon:
        for form in ("npy", "raw", "json", "csv", "safetensors"):
            status, headers, body = daemon.get(target(50, form))
            assert status == 200 and "Transfer-Encoding" not in headers, (form, status)
            status, headers, body = daemon.get(target(5000, form))
            assert status == 413 and json.loads(body)["option"] == "reply_bytes" and "Retry-After" not in headers, (form, body)


# ---- clients --------------------------------------------------------------------------------------------------------

def curl(daemon, path, *options):
    return subprocess.Popen(["curl", "-sS", "-o", "/dev/null", *options, f"http://127.0.0.1:{daemon.port}{path}"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_curl_is_killed():
    """Whether it was fast or slow, at any moment, in any format: within a second nothing of it is left."""
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        for form, options, wait_s in (("npy", (), 0.3), ("npy", ("--limit-rate", "1M"), 0.5), ("json", (), 0.3),
                                      ("json", ("--limit-rate", "100k"), 0.5), ("csv", (), 0.05)):
            clients = [curl(daemon, target(30000000, form), *options) for _ in range(3)]
            daemon.wait_metric("posenc_streams_active", 3)
            time.sleep(wait_s)
            for client in clients:
                client.kill()
                client.communicate()
            at_rest(daemon)
        assert daemon.get(target(10))[0] == 200
        if not SANITIZED:
            assert status_bytes(daemon, "VmHWM") - before < MEMORY
        entries = [e for e in daemon.requests() if "30000000" in e["target"]]
        assert len(entries) == 15 and all(e["status"] == 499 for e in entries), entries


def test_curl_is_stopped_and_goes_on():
    """A client that stalls for a while gets every byte in the end."""
    count = rows(20000, 20000, 4000)
    with Daemon(PATH) as daemon:
        client = curl(daemon, target(count), "--limit-rate", f"{count * ROW // 4}", "-w", "%{size_download} %{http_code}")
        daemon.wait_metric("posenc_streams_active", 1)
        for _ in range(3):
            client.send_signal(signal.SIGSTOP)
            time.sleep(0.6)
            client.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        out, _ = client.communicate(timeout=60)
        assert out == b"%d 200" % (128 + count * ROW), out
        at_rest(daemon)


def test_slow_reader():
    """Small pieces with pauses: the same bytes, and no more memory than the fast one."""
    count = 4000
    with Daemon(PATH) as daemon:
        before = idle(daemon)
        fast = Stream(daemon, target(count)).read_all(daemon, hashed=True)
        slow = Stream(daemon, target(count)).read_all(daemon, lambda _: time.sleep(0.15), hashed=True)
        assert slow.digest.digest() == fast.digest.digest() and slow.size == fast.size
        report(daemon, slow, before, "a slow reader")
        at_rest(daemon)


def test_several_at_once():
    """Each stream has its own bytes, and a short request between them does not wait for their ends."""
    count = rows(50000, 15000, 1500)
    with Daemon(PATH, "--streams", "6", "--streams-per-ip", "6", "--workers", "2") as daemon:
        before = idle(daemon)
        alone = {start: Stream(daemon, target(count, "npy", start)).read_all(daemon, hashed=True) for start in (0, 10 ** 6, 10 ** 12)}
        streams, faults = [], []

        def read(start):
            try:
                streams.append((start, Stream(daemon, target(count, "npy", start)).read_all(daemon, hashed=True)))
            except Exception as error:  # told by the test
                faults.append(error)

        threads = [threading.Thread(target=read, args=(start,)) for start in list(alone) * 2]
        for thread in threads:
            thread.start()
        slowest = 0
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            assert daemon.get("/v1/encode?type=sinusoidal&d_model=6&positions=0:4")[0] == 200
            slowest = max(slowest, time.monotonic() - began)
        for thread in threads:
            thread.join()
        assert not faults and len(streams) == 6, faults
        for start, stream in streams:
            assert stream.digest.digest() == alone[start].digest.digest(), start
        assert SANITIZED or slowest < 1, slowest
        print(f"   a short request between six streams took {slowest * 1000:.0f} ms at most", flush=True)
        if not SANITIZED:
            assert status_bytes(daemon, "VmHWM") - before < MEMORY
        at_rest(daemon)


def test_limit():
    """One more than --streams is told to come back, and is welcome when another has ended."""
    with Daemon(PATH, "--streams", "2") as daemon:
        clients = [curl(daemon, target(30000000), "--limit-rate", "1M") for _ in range(2)]
        daemon.wait_metric("posenc_streams_active", 2)
        status, headers, body = daemon.get(target(5000))
        problem = json.loads(body)
        assert status == 503 and int(headers["Retry-After"]) >= 1 and problem["status"] == 503, (status, body)
        assert headers["Content-Type"] == "application/problem+json" and "streams" in problem["detail"], problem
        client = curl(daemon, target(5000), "--fail")
        assert client.wait(10) == 22  # curl's code for a status of 400 and more
        client.communicate()
        assert daemon.get(target(100))[0] == 200  # not a stream
        assert daemon.metrics()['posenc_http_rejected_total{reason="streams_full"}'] == 2
        clients[0].kill()
        clients[0].communicate()
        daemon.wait_metric("posenc_streams_active", 1, SOON_S)
        assert len(daemon.get(target(5000))[2]) == 128 + 5000 * ROW
        clients[1].kill()
        clients[1].communicate()
        at_rest(daemon)


def test_stop_with_streams():
    """SIGTERM lets a stream end that is nearly done, and a client that has gone does not hold the daemon up."""
    with Daemon(PATH) as daemon:
        stream = Stream(daemon, target(10000))
        gone = curl(daemon, target(30000000), "--limit-rate", "1M")
        daemon.wait_metric("posenc_streams_active", 2)
        daemon.signal()
        time.sleep(0.2)
        gone.kill()
        gone.communicate()
        stream.read_all(daemon)
        assert stream.size == 128 + 10000 * ROW
        assert daemon.wait(20) == 0


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
