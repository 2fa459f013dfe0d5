#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The daemon's HTTP as clients meet it, good ones and bad ones: test_http.py DAEMON [TEST...].

HTTP/1.0 and pipelining, HEAD and Expect, bodies in pieces and bodies too big, clients that leave, a
full queue, streams and their memory, slow clients, and stopping with work in flight. Each check is a function named
test_...; the last line says how many passed.
"""
import errno
import http.client
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, NotTried, needs_localhost, receive_all, receive_reply, run_tests, split_replies  # noqa: E402

PATH = sys.argv[1]
SANITIZED = any(flavour in PATH for flavour in ("asan", "tsan", "cov"))
SMALL = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
GET = f"GET {SMALL} HTTP/1.1\r\n"
HOST = "Host: x\r\n"
STREAM = "/v1/encode?type=sinusoidal&d_model=512&format=npy&positions=0:"


def start(*options, **more):
    return Daemon(PATH, *options, **more)


def text(data):
    return data.encode("latin-1") if isinstance(data, str) else data


def problem(body):
    """The parsed problem of a refusal, checked to be one."""
    value = json.loads(body)
    assert value["type"].startswith("urn:posenc:error:") and value["detail"] and value["request_id"], value
    return value


class Work:
    """A POST that keeps one worker busy for about `seconds`, in many parts: random vectors, which cost the most per
    byte. Their rate is measured once."""
    rate = None

    def __init__(self, daemon, seconds):
        if Work.rate is None:
            began, rows = time.monotonic(), 1000
            status, _, body = daemon.post("/v1/encode?format=npy", self.document(rows))
            assert status == 200, body
            Work.rate = rows / (time.monotonic() - began)
        self.rows = min(int(Work.rate * seconds), 30000)
        self.body = json.dumps(self.document(self.rows)).encode()

    @staticmethod
    def document(rows):
        return {"encoding": {"type": "random", "seed": 1, "d_model": 512}, "positions": f"0:{rows}"}

    def send(self, daemon, headers="", timeout=120):
        """A socket on which the work has been asked for."""
        sock = daemon.connect(timeout=timeout)
        head = f"POST /v1/encode?format=npy HTTP/1.1\r\n{HOST}{headers}Content-Length: {len(self.body)}\r\n\r\n"
        sock.sendall(head.encode() + self.body)
        return sock

    def good(self, reply):
        status, _, body = reply
        return status == 200 and len(body) == 128 + self.rows * 512 * 4


# ---- versions, methods, connections ---------------------------------------------------------------------------------

def test_http_1_0():
    with start() as daemon:
        data = daemon.raw(text(f"GET {SMALL} HTTP/1.0\r\n\r\n"))
        head, _, body = data.partition(b"\r\n\r\n")
        assert b" 200 " in head and b"Content-Length: %d" % len(body) in head and b"chunked" not in head, head
        with daemon.connect() as sock:
            for _ in range(2):
                sock.sendall(text(f"GET {SMALL} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"))
                status, headers, got = receive_reply(sock)
                assert status == 200 and got == body and headers["connection"].lower() == "keep-alive"
        # A reply of unknown length ends with the connection.
        data = daemon.raw(text("GET /v1/encode?type=sinusoidal&d_model=64&positions=0:5000 HTTP/1.0\r\n\r\n"))
        head, _, body = data.partition(b"\r\n\r\n")
        assert b"chunked" not in head and json.loads(body)["vectors"]["shape"] == [5000, 64]


def test_keep_alive_and_pipelining():
    with start() as daemon:
        with daemon.connect() as sock:
            for _ in range(3):
                sock.sendall(text(GET + HOST + "\r\n"))
                assert receive_reply(sock)[0] == 200
            fds = daemon.metrics()["posenc_connections_total"]
        targets = [SMALL, "/v1/limits", "/nothing", SMALL + "&format=npy"] * 5
        data = "".join(f"GET {t} HTTP/1.1\r\n{HOST}\r\n" for t in targets[:-1])
        data += f"GET {targets[-1]} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"
        replies = split_replies(daemon.raw(text(data)))
        assert [status for status, _ in replies] == [200, 200, 404, 200] * 5, replies
        assert replies[3][1] == replies[19][1] and replies[3][1].startswith(b"\x93NUMPY")
        assert fds <= daemon.metrics()["posenc_connections_total"]


def test_pipelining_behind_work():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 0.3)
        with work.send(daemon) as sock:
            sock.sendall(text(GET + HOST + "Connection: close\r\n\r\n"))
            (first, vectors), (second, small) = split_replies(receive_all(sock))
            assert work.good((first, None, vectors)) and second == 200 and b"0.84147096" in small


def test_head_is_get_without_body():
    with start() as daemon:
        for target in (SMALL, SMALL + "&format=npy", "/nothing", STREAM + "5000", "/v1/limits"):
            with daemon.connect() as sock:
                sock.sendall(text(f"HEAD {target} HTTP/1.1\r\n{HOST}\r\n"))
                status, headers, body = receive_reply(sock, head=True)
                assert body == b""
                want_status, want, got = daemon.get(target)
                assert status == want_status and int(headers["content-length"]) == len(got), (target, headers)
                assert headers.get("etag") == want.get("etag") and headers["content-type"] == want["content-type"]
                sock.sendall(text(GET + HOST + "\r\n"))  # and the connection is in step
                assert receive_reply(sock)[0] == 200
        # Of unknown length: no body, no length, and the end of the connection.
        data = daemon.raw(text("HEAD /v1/encode?type=sinusoidal&d_model=64&positions=0:50000 HTTP/1.1\r\n" + HOST + "\r\n"))
        head, _, body = data.partition(b"\r\n\r\n")
        assert b" 200 " in head and body == b"" and b"content-length" not in head.lower(), data
        assert daemon.metrics()["posenc_streams_total"] == 1  # that of the GET


def test_options_and_methods():
    with start() as daemon:
        with daemon.connect() as sock:
            for method, target, status, allow in [
                    ("OPTIONS", "/v1/encode", 204, "GET, HEAD, POST, OPTIONS"), ("OPTIONS", "/v1/apply", 204, "POST, OPTIONS"),
                    ("DELETE", "/v1/encode", 405, "GET, HEAD, POST, OPTIONS"), ("GET", "/v1/apply", 405, "POST, OPTIONS"),
                    ("BREW", "/v1/encode", 501, None), ("get", "/v1/encode", 501, None)]:
                sock.sendall(text(f"{method} {target} HTTP/1.1\r\n{HOST}\r\n"))
                got, headers, body = receive_reply(sock)
                assert got == status and headers.get("allow") == allow, (method, target, got, headers)
                assert status != 204 or (body == b"" and "content-length" not in headers), headers


def test_not_modified_has_no_body():
    with start() as daemon:
        _, headers, _ = daemon.get(SMALL)
        with daemon.connect() as sock:
            for _ in range(2):
                sock.sendall(text(GET + HOST + f"If-None-Match: \"other\", {headers['ETag']}\r\n\r\n"))
                status, got, body = receive_reply(sock)
                assert status == 304 and body == b"" and got["etag"] == headers["ETag"], (status, got)


# ---- bodies ---------------------------------------------------------------------------------------------------------

DOCUMENT = b'{"encoding":{"type":"sinusoidal","d_model":6},"positions":"0:4"}'


def test_body_in_any_pieces():
    with start() as daemon:
        _, _, want = daemon.post("/v1/encode", DOCUMENT)
        with daemon.connect() as sock:  # chunks of one byte
            chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in DOCUMENT)
            sock.sendall(text(f"POST /v1/encode HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n") + chunks + b"0\r\n\r\n")
            assert receive_reply(sock)[2] == want
            # one byte per packet, with a chunk extension and a trailer
            whole = (f"POST /v1/encode HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"
                     f"{len(DOCUMENT):x};a=b\r\n").encode() + DOCUMENT + b"\r\n0\r\nX-Trailer: y\r\n\r\n"
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(whole)):
                sock.sendall(whole[i:i + 1])
            assert receive_reply(sock)[2] == want


def test_refused_body_keeps_the_connection():
    with start() as daemon:
        with daemon.connect() as sock:
            body = b"x" * 200000
            sock.sendall(text(f"POST /nothing HTTP/1.1\r\n{HOST}Content-Length: {len(body)}\r\n\r\n") + body)
            assert receive_reply(sock)[0] == 404
            sock.sendall(text(GET + HOST + "\r\n"))
            assert receive_reply(sock)[0] == 200


def test_big_bodies():
    """Those that are planned on the pool: right ones, wrong ones, and small requests beside them."""
    import struct
    rows = 3000
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 64), }}".ljust(117) + "\n"
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(rows * 64 * 4)
    kind = {"Content-Type": "application/x-npy"}
    with start("--workers", "1") as daemon:
        status, _, body = daemon.post("/v1/apply?type=sinusoidal", npy, kind)
        assert status == 200 and len(body) == len(npy), body[:300]
        _, _, vectors = daemon.get(f"/v1/encode?type=sinusoidal&d_model=64&positions=0:{rows}&format=npy")
        assert body[128:] == vectors[128:]  # added to zeros
        status, _, body = daemon.post("/v1/apply?type=sinusoidal&d_model=6", npy, kind)
        assert status == 400 and problem(body), body
        document = {"encoding": {"type": "sinusoidal"}, "embeddings": [[0.5] * 64] * 2000}
        document["embeddings"][1999] = [0.5] * 63 + [None]
        status, _, body = daemon.post("/v1/apply", document)
        assert status == 400 and "embeddings" in problem(body)["field"], body
        work = Work(daemon, 1.0)
        with work.send(daemon) as sock:
            daemon.wait_metric("posenc_workers_busy", 1)
            status, _, body = daemon.post("/v1/apply?type=sinusoidal", npy, {**kind, "X-Posenc-Timeout-Ms": "30000"})
            assert status == 200, body
            assert work.good(receive_reply(sock))


def test_a_body_costs_no_look_elsewhere():
    """While a body comes piece by piece, the loop does not read after each whether workers have something for it."""
    def reads():
        try:
            counts = pathlib.Path(f"/proc/{daemon.process.pid}/io").read_text(encoding="ascii")
        except OSError as error:
            raise NotTried("this system does not count what a process reads") from error
        return int(counts.split("syscr:")[1].split()[0])  # those of sockets are not among them

    with start() as daemon:
        body = b"x" * (8 << 20)
        before = reads()
        assert daemon.post("/nothing", body)[0] == 404
        assert reads() - before < 100, reads() - before  # in pieces of the library's buffer: more than 256


def test_big_replies():
    """They leave from where they were computed, in as many pieces as the client takes, and are counted."""
    sinusoids = "/v1/encode?type=sinusoidal&d_model=500&positions=0:700&format="
    rope = "/v1/encode?type=rope&head_dim=600&layout=halves&positions=0:800&format=safetensors"
    with start() as daemon:
        for target in (*(sinusoids + form for form in ("npy", "raw", "json", "csv")), rope):
            want = subprocess.run([PATH, "--call", "GET " + target], capture_output=True, check=True).stdout
            assert len(want) > 1 << 20
            with daemon.connect() as sock:
                for name in ("slow", "again"):  # the second in step behind the first
                    sock.sendall(text(f"GET {target} HTTP/1.1\r\n{HOST}X-Request-Id: {name}-{target}\r\n\r\n"))
                    time.sleep(0.05 if name == "slow" else 0)  # the kernel's buffers are full by now
                    status, headers, body = receive_reply(sock)
                    assert status == 200 and body == want, (target, headers, len(body))
                    entry = daemon.wait_log(lambda e, i=f"{name}-{target}": e.get("request_id") == i)
                    assert entry["bytes"] == len(want), entry
        assert daemon.metrics()["posenc_streams_total"] == 0
        with daemon.connect() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            big = "/v1/apply?type=sinusoidal"
            body = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (8000, 500), }".ljust(117) + b"\n"
            body += bytes(8000 * 500 * 4)
            sock.sendall(text(f"POST {big} HTTP/1.1\r\n{HOST}X-Request-Id: left\r\nContent-Type: application/x-npy\r\n"
                              f"Content-Length: {len(body)}\r\n\r\n") + body)
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
        entry = daemon.wait_log(lambda e: e.get("request_id") == "left")
        assert entry["status"] == 499 and 0 < entry["bytes"] < len(body), entry


def test_ids_are_drawn_anew():
    """Random bytes are drawn for many requests at once; no two get the same."""
    with start() as daemon:
        with daemon.connect() as sock:
            ids = set()
            for _ in range(300):
                sock.sendall(text(f"GET {SMALL} HTTP/1.1\r\n{HOST}\r\n"))
                _, headers, _ = receive_reply(sock)
                ids.add(headers["x-request-id"])
            assert len(ids) == 300, len(ids)


def test_expect_continue():
    limit = ("--body-bytes", "100000")
    with start(*limit) as daemon:
        with daemon.connect(timeout=5) as sock:
            sock.sendall(text(f"POST /v1/encode HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nContent-Length: {len(DOCUMENT)}\r\n\r\n"))
            assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(DOCUMENT)
            assert receive_reply(sock)[0] == 200
        for head, status in [("POST /v1/encode HTTP/1.1\r\nContent-Length: 100001\r\n", 413),
                             ("POST /nothing HTTP/1.1\r\nContent-Length: 5\r\n", 404),
                             ("POST /v1/limits HTTP/1.1\r\nContent-Length: 5\r\n", 405)]:
            data = daemon.raw(text(head + HOST + "Expect: 100-continue\r\n\r\n"), timeout=5)  # no body at all
            assert data.startswith(b"HTTP/1.1 %d " % status), data
            assert b"connection: close" in data.lower(), data


def test_body_too_large():
    limit = 1 << 20
    with start("--body-bytes", str(limit)) as daemon:
        # At the limit it is read (and found to be no JSON); one more byte is too much, however it is sent.
        assert daemon.post("/v1/encode", b" " * limit)[0] == 400
        for size in (limit + 1, 3 * limit):
            status, _, body = daemon.post("/v1/encode", b" " * size)
            assert status == 413 and problem(body)["limit"] == limit, body
        def chunked(n):
            for _ in range(n):
                yield b" " * 65536
        for n, status in ((16, 400), (17, 413), (48, 413)):
            connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
            connection.request("POST", "/v1/encode", chunked(n), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
            assert connection.getresponse().status == status, n
            connection.close()
        # Curl without and with Expect, as people call it.
        for extra in (["-H", "Expect:"], []):
            done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *extra, "--data-binary", "@-",
                                   f"http://127.0.0.1:{daemon.port}/v1/encode"], input=b" " * (2 * limit),
                                  capture_output=True, timeout=60)
            assert done.stdout == b"413", done
        # A body without end is not read for ever.
        with daemon.connect(timeout=30) as sock:
            sock.sendall(text(f"POST /v1/encode HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"))
            sent, chunk = 0, b"10000\r\n" + b" " * 65536 + b"\r\n"
            try:
                while sent < 64 * limit:
                    sock.sendall(chunk)
                    sent += 65536
            except OSError:
                pass
            assert sent < 32 * limit, sent
        assert daemon.get(SMALL)[0] == 200


def test_body_cut_short():
    with start() as daemon:
        with daemon.connect() as sock:
            sock.sendall(text(f"POST /v1/cut HTTP/1.1\r\n{HOST}Content-Length: 100\r\n\r\nabc"))
        with daemon.connect() as sock:
            sock.sendall(text(f"POST /v1/encode HTTP/1.1\r\n{HOST}Content-Length: 100\r\n\r\nabc"))
        entry = daemon.wait_log(lambda e: e.get("target") == "/v1/encode")
        assert entry["status"] == 499, entry
        daemon.wait_metric("posenc_http_requests_in_flight", 1)  # the one that asks
        assert daemon.metrics()['posenc_http_rejected_total{reason="client_gone"}'] >= 1


# ---- work -----------------------------------------------------------------------------------------------------------

def test_small_requests_beside_work():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 1.0)
        busy = [work.send(daemon) for _ in range(3)]
        daemon.wait_metric("posenc_workers_busy", 1)
        worst = 0
        with daemon.connect() as sock:
            for _ in range(100):
                began = time.monotonic()
                sock.sendall(text(GET + HOST + "\r\n"))
                assert receive_reply(sock)[0] == 200
                worst = max(worst, time.monotonic() - began)
        assert daemon.metrics()["posenc_workers_busy"] == 1, "the work was over too soon to tell"
        assert worst < (2.0 if SANITIZED else 0.5), worst
        for sock in busy:
            assert work.good(receive_reply(sock))
            sock.close()


def test_jobs_share_the_workers():
    """A short job that comes after long ones is done before them."""
    with start("--workers", "1") as daemon:
        longer, shorter = Work(daemon, 1.5), Work(daemon, 0.1)
        busy = [longer.send(daemon) for _ in range(2)]
        daemon.wait_metric("posenc_workers_busy", 1)
        with shorter.send(daemon) as sock:
            assert shorter.good(receive_reply(sock))
        assert daemon.metrics()["posenc_workers_busy"] == 1, "the long ones were over first"
        for sock in busy:
            assert longer.good(receive_reply(sock))
            sock.close()


def test_queue_full():
    with start("--workers", "1", "--queue-depth", "1") as daemon:
        work = Work(daemon, 1.0)
        first = work.send(daemon)
        daemon.wait_metric("posenc_workers_busy", 1)
        second = work.send(daemon)
        daemon.wait_metric("posenc_http_requests_in_flight", 3)
        with work.send(daemon) as sock:
            status, headers, body = receive_reply(sock)
            assert status == 503 and int(headers["retry-after"]) >= 1, (status, headers)
            assert problem(body)["type"] == "urn:posenc:error:busy"
        assert daemon.get(SMALL)[0] == 200
        assert daemon.metrics()['posenc_http_rejected_total{reason="queue_full"}'] == 1
        for sock in (first, second):
            assert work.good(receive_reply(sock))
            sock.close()


def test_deadline():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 2.0)
        # Alone it runs past its deadline; behind another it has not even begun.
        for headers, others in (("X-Posenc-Timeout-Ms: 150\r\n", 0), ("X-Posenc-Timeout-Ms: 100\r\n", 2)):
            busy = [work.send(daemon) for _ in range(others)]
            began = time.monotonic()
            with work.send(daemon, headers) as sock:
                status, _, body = receive_reply(sock)
                took = time.monotonic() - began
                assert status == 504 and problem(body)["type"] == "urn:posenc:error:deadline", body
                assert 0.09 < took < (5 if SANITIZED else 2), took
                sock.sendall(text(GET + HOST + "\r\n"))
                assert receive_reply(sock)[0] == 200
            for sock in busy:
                assert work.good(receive_reply(sock))
                sock.close()
        assert daemon.metrics()['posenc_http_rejected_total{reason="deadline"}'] == 2


def test_deadline_behind_a_long_part():
    """The only worker is in the middle of one long part: who waits behind it is told in time all the same."""
    size = "d_model=320&positions=0:330" if SANITIZED else "d_model=512&positions=0:1000"
    with start("--workers", "1") as daemon:
        work = Work(daemon, 0.5)
        with daemon.connect() as sock:
            sock.sendall(text(f"GET /v1/shift?type=random&seed=1&distance=1&{size} HTTP/1.1\r\n{HOST}\r\n"))
            daemon.wait_metric("posenc_workers_busy", 1)
            with work.send(daemon, "X-Posenc-Timeout-Ms: 100\r\n") as late:
                status, _, body = receive_reply(late)
                assert status == 504 and problem(body)["type"] == "urn:posenc:error:deadline", body
            assert daemon.metrics()["posenc_workers_busy"] == 1, "the long part was over too soon to tell"
            assert receive_reply(sock)[0] == 200


def test_client_leaves():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 2.0)
        daemon.wait_metric("posenc_workers_busy", 0)
        running = work.send(daemon)
        daemon.wait_metric("posenc_workers_busy", 1)
        waiting = [work.send(daemon) for _ in range(3)]
        daemon.wait_metric("posenc_http_requests_in_flight", 5)
        for sock in waiting:
            sock.close()
        daemon.wait_metric("posenc_http_requests_in_flight", 2, 2)
        assert daemon.metrics()["posenc_workers_busy"] == 1
        running.close()
        daemon.wait_metric("posenc_http_requests_in_flight", 1, 5 if SANITIZED else 1)
        daemon.wait_metric("posenc_workers_busy", 0, 5 if SANITIZED else 1)
        assert daemon.metrics()['posenc_http_rejected_total{reason="client_gone"}'] == 4
        assert [e["status"] for e in daemon.requests("/v1/encode?format=npy")].count(499) == 4
        assert daemon.metrics()["posenc_queue_depth"] == 0


def test_many_connections_at_once():
    """128 and 256 ready at once are where the library's own loop stalls."""
    with start() as daemon:
        for n in (1, 127, 128, 129, 256, 300):
            socks = [daemon.connect() for _ in range(n)]
            began = time.monotonic()
            for _ in range(3):
                for sock in socks:
                    sock.sendall(text(GET + HOST + "\r\n"))
                for sock in socks:
                    assert receive_reply(sock)[0] == 200
            took = time.monotonic() - began
            assert took < (30 if SANITIZED else 5), (n, took)
            daemon.wait_metric("posenc_connections", n + 1)
            for sock in socks:
                sock.close()
            daemon.wait_metric("posenc_connections", 1)


def test_work_of_many_connections():
    with start("--workers", "2") as daemon:
        work = Work(daemon, 0.02)
        faults = []

        def client():
            connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
            for _ in range(5):
                connection.request("POST", "/v1/encode?format=npy", work.body)
                reply = connection.getresponse()
                if not work.good((reply.status, None, reply.read())):
                    faults.append(reply.status)
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults, faults
        assert daemon.metrics()["posenc_queue_depth"] == 0


# ---- streams --------------------------------------------------------------------------------------------------------

def test_stream_has_flat_memory():
    rows = 20000 if SANITIZED else 300000
    with start() as daemon:
        daemon.get(STREAM + "20000")
        before, peak, size = daemon.resident_bytes(), 0, 0
        with daemon.connect() as sock:
            sock.sendall(text(f"GET {STREAM}{rows} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"))
            while piece := sock.recv(1 << 20):
                size += len(piece)
                if size % 64 < 8:
                    peak = max(peak, daemon.resident_bytes())
        assert size > rows * 2048
        assert peak - before < 16 << 20, (before, peak)


def test_stream_is_the_posted_reply():
    for form in ("npy", "json", "csv"):
        with start() as daemon:
            query = f"type=sinusoidal&d_model=64&positions=0:10000&format={form}"
            status, headers, streamed = daemon.get("/v1/encode?" + query)
            document = {"encoding": {"type": "sinusoidal", "d_model": 64}, "positions": "0:10000"}
            _, _, posted = daemon.post("/v1/encode?format=" + form, document)
            assert status == 200 and streamed == posted, form
            metrics = daemon.metrics()
            assert metrics["posenc_streams_total"] == 1 and metrics["posenc_streams_active"] == 0


def test_stream_of_a_client_that_leaves():
    with start() as daemon:
        for wait_s in (0, 0.3):  # at once, and while it is stalled on us
            socks = []
            for _ in range(4):
                sock = daemon.connect()
                sock.sendall(text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"))
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
                socks.append(sock)
            daemon.wait_metric("posenc_streams_active", 4)
            time.sleep(wait_s)
            for sock in socks:
                sock.close()
            daemon.wait_metric("posenc_streams_active", 0, 5 if SANITIZED else 1)
            daemon.wait_metric("posenc_http_requests_in_flight", 1, 1)
            daemon.wait_metric("posenc_workers_busy", 0, 1)
        # In the middle of reading, when a block is being filled and another being sent.
        for i in range(40):
            with daemon.connect() as sock:
                sock.sendall(text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"))
                left = 100000 * i
                while left > 0:
                    left -= len(sock.recv(65536))
        # While a block is being filled and the one before is stuck, because the client has hardly any buffer.
        for i in range(10):
            with socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.connect(("127.0.0.1", daemon.port))
                sock.sendall(text(f"GET {STREAM.replace('sinusoidal', 'random&seed=1')}1000000 HTTP/1.1\r\n{HOST}\r\n"))
                sock.recv(100)
                time.sleep(0.002 * i)
        daemon.wait_metric("posenc_streams_active", 0, 5 if SANITIZED else 1)
        daemon.wait_metric("posenc_http_requests_in_flight", 1, 1)
        assert all(e["status"] == 499 for e in daemon.requests() if "1000000" in e["target"])


def test_streams_are_limited():
    with start("--streams", "2") as daemon:
        socks = [daemon.connect() for _ in range(2)]
        for sock in socks:
            sock.sendall(text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"))
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
        status, headers, body = daemon.get(STREAM + "5000")
        assert status == 503 and int(headers["Retry-After"]) >= 1, status
        assert "streams" in problem(body)["detail"]
        assert daemon.request("HEAD", STREAM + "5000")[0] == 200  # computes nothing
        assert daemon.get(SMALL)[0] == 200
        for sock in socks:
            sock.close()
        daemon.wait_metric("posenc_streams_active", 0, 5)
        assert daemon.get(STREAM + "5000")[0] == 200


def test_stalled_reader_is_cut():
    with start("--stream-timeout-s", "2", "--idle-timeout-s", "60") as daemon:
        with daemon.connect(timeout=30) as sock:
            sock.sendall(text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"))
            daemon.wait_metric("posenc_streams_active", 1)
            began = time.monotonic()
            daemon.wait_metric("posenc_streams_active", 0, 10)
            assert 1 < time.monotonic() - began < 8
            assert len(receive_all(sock)) < 10000000 * 2048
        # Between two requests the ordinary limit holds again.
        with daemon.connect(timeout=30) as sock:
            sock.sendall(text(f"GET {STREAM}5000 HTTP/1.1\r\n{HOST}\r\n"))
            assert len(receive_reply(sock)[2]) > 5000 * 2048
            sock.sendall(text(GET + HOST + "\r\n"))
            assert receive_reply(sock)[0] == 200
            time.sleep(4)
            sock.sendall(text(GET + HOST + "\r\n"))
            assert receive_reply(sock)[0] == 200


# ---- slow and idle clients ------------------------------------------------------------------------------------------

def trickle(daemon, first, byte, limit_s):
    """Seconds until the daemon closes a connection on which a byte comes every 0.3 s; None = not within the limit."""
    with daemon.connect(timeout=0.3) as sock:
        began = time.monotonic()
        sock.sendall(text(first))
        while time.monotonic() - began < limit_s:
            try:
                if sock.recv(1000) == b"":
                    return time.monotonic() - began
            except TimeoutError:
                pass
            except ConnectionError:
                return time.monotonic() - began
            try:
                sock.sendall(byte)
            except OSError:
                return time.monotonic() - began
    return None


def test_slow_clients_are_cut():
    with start("--idle-timeout-s", "2", "--header-timeout-s", "2", "--rate-patience-s", "2") as daemon:
        results = {}
        cases = {"in the request line": ("GE", b"T"), "in the header": (GET + HOST, b"X: y\r\n"),
                 "in the body": (f"POST /v1/encode HTTP/1.1\r\n{HOST}Content-Length: 100000\r\n\r\n", b" "),
                 "idle": ("", b"")}
        threads = [threading.Thread(target=lambda n=n, c=c: results.update({n: trickle(daemon, *c, 12)}))
                   for n, c in cases.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(took is not None and 1 < took < 8 for took in results.values()), results
        assert daemon.get(SMALL)[0] == 200
        daemon.wait_metric("posenc_connections", 1)


def test_connection_limit():
    """Over the limit connections wait, and the admin listener still answers."""
    with start("--connections", "4") as daemon:
        socks = [daemon.connect(timeout=5) for _ in range(8)]
        for sock in socks:
            sock.sendall(text(GET + HOST + "\r\n"))
        for sock in socks[:4]:
            assert receive_reply(sock)[0] == 200
        assert daemon.get("/healthz", port=daemon.admin_port)[0] == 200
        for sock in socks[:4]:
            sock.close()
        for sock in socks[4:]:
            assert receive_reply(sock)[0] == 200
            sock.close()
    with start("--connections-per-ip", "3") as daemon:
        socks = [daemon.connect(timeout=5) for _ in range(6)]
        answered = 0
        for sock in socks:
            try:
                sock.sendall(text(GET + HOST + "\r\n"))
                answered += receive_reply(sock)[0] == 200
            except (OSError, http.client.HTTPException):
                pass
        assert answered == 3, answered


# ---- listeners, start and stop --------------------------------------------------------------------------------------

def test_admin_listener_has_only_its_routes():
    with start() as daemon:
        assert daemon.get("/healthz", port=daemon.admin_port)[0] == 200
        assert daemon.get("/readyz", port=daemon.admin_port)[0] == 200
        assert daemon.get(SMALL, port=daemon.admin_port)[0] == 404
    with start(admin=False) as daemon:
        assert daemon.get("/healthz")[0] == 200 and daemon.get("/metrics")[0] == 200


def refused_start(*options):
    done = subprocess.run([PATH, *options], capture_output=True, text=True, timeout=30, env=Daemon.environment())
    return done.returncode, done.stderr


def test_address_in_use():
    with start() as daemon:
        taken, admin = f"127.0.0.1:{daemon.port}", f"127.0.0.1:{daemon.admin_port}"
        for options, option, address in [(("--listen", taken, "--admin-listen", ""), "--listen", taken),
                                         (("--listen", "127.0.0.1:0", "--admin-listen", admin), "--admin-listen", admin)]:
            code, message = refused_start(*options)
            assert code == 3 and option in message and address in message and "in use" in message, (code, message)
            assert message.count("\n") == 1, message
    code, message = refused_start("--listen", "192.0.2.1:1", "--admin-listen", "")  # an address of nobody (RFC 5737)
    assert code == 3 and "192.0.2.1:1" in message, (code, message)


def test_address_again_after_stop():
    with start() as daemon:
        sock = daemon.connect()
        sock.sendall(text(GET + HOST + "\r\n"))
        receive_reply(sock)
        port = daemon.port
    with start("--listen", f"127.0.0.1:{port}") as daemon:  # although the old connection is in TIME_WAIT
        assert daemon.port == port and daemon.get(SMALL)[0] == 200
    sock.close()


def test_all_addresses():
    with start("--listen", "[::]:0") as daemon:
        assert daemon.get(SMALL)[0] == 200
        entry = daemon.wait_log(lambda e: e.get("target") == SMALL)
        assert entry["client"].startswith("127.0.0.1:"), entry


def test_all_addresses_ipv6():
    with start("--listen", "[::]:0") as daemon:
        try:
            with socket.create_connection(("::1", daemon.port), timeout=10) as sock:
                sock.sendall(text(GET + HOST + "\r\n"))
                assert receive_reply(sock)[0] == 200
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise NotTried("this machine has no IPv6") from None
            raise


def test_a_name():
    needs_localhost()
    with start("--listen", "localhost:0") as daemon:
        connection = http.client.HTTPConnection("localhost", daemon.port, timeout=60)
        connection.request("GET", SMALL)
        assert connection.getresponse().status == 200
        connection.close()


def test_idle_stop_is_quick():
    with start() as daemon:
        idle = [daemon.connect() for _ in range(20)]  # as browsers do, ahead of need
        kept = [daemon.connect() for _ in range(20)]
        for sock in kept:
            sock.sendall(text(GET + HOST + "\r\n"))
            assert receive_reply(sock)[0] == 200
        began = time.monotonic()
        daemon.signal()
        assert daemon.wait() == 0
        took = time.monotonic() - began
        assert took < (5 if SANITIZED else 1), took
        for sock in idle + kept:
            assert receive_all(sock) == b""
            sock.close()


def test_stop_loses_no_work():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 0.6)
        posted = [work.send(daemon) for _ in range(4)]
        stream = daemon.connect()
        stream.sendall(text(f"GET {STREAM}20000 HTTP/1.1\r\n{HOST}\r\n"))
        assert stream.recv(9) == b"HTTP/1.1 "
        daemon.wait_metric("posenc_http_requests_in_flight", 6)
        daemon.signal()
        daemon.wait_log(lambda e: e.get("msg") == "draining")
        refused = False
        while not refused:  # soon, and while the work still goes on
            try:
                daemon.connect(timeout=5).close()
            except (ConnectionRefusedError, ConnectionResetError):
                refused = True
        assert daemon.process.poll() is None
        for sock in posted:
            reply = receive_reply(sock)
            assert work.good(reply), reply[:2]
            assert reply[1]["connection"] == "close", reply[1]
            assert receive_all(sock) == b""
        assert len(receive_all(stream)) > 20000 * 2048
        assert daemon.wait() == 0


def test_drain_delay_serves_on():
    with start("--drain-delay-ms", "1500") as daemon:
        kept = daemon.connect()
        daemon.signal()
        daemon.wait_log(lambda e: e.get("msg") == "draining")
        status, _, body = daemon.get("/readyz")
        assert status == 503 and json.loads(body)["ready"] is False
        assert daemon.get("/healthz")[0] == 200
        assert daemon.get(SMALL)[0] == 200  # a new connection
        kept.sendall(text(GET + HOST + "\r\n"))
        assert receive_reply(kept)[0] == 200
        kept.close()
        assert daemon.wait() == 0


def test_drain_timeout_cuts():
    with start("--workers", "1", "--drain-timeout-ms", "300") as daemon:
        work = Work(daemon, 3.0)
        posted = [work.send(daemon) for _ in range(3)]
        stream = daemon.connect()
        stream.sendall(text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"))
        assert stream.recv(9) == b"HTTP/1.1 "
        daemon.wait_metric("posenc_http_requests_in_flight", 5)
        began = time.monotonic()
        daemon.signal()
        for sock in posted:
            status, _, body = receive_reply(sock)
            assert status == 503 and problem(body)["type"] == "urn:posenc:error:draining", (status, body)
        receive_all(stream)
        assert daemon.wait() == 0
        cut = daemon.wait_log(lambda e: e.get("target") == f"{STREAM}10000000")
        assert cut["status"] == 200, cut  # by us: it is no client that left
        took = time.monotonic() - began
        assert 0.25 < took < (10 if SANITIZED else 3), took


def test_stop_waits_for_a_part():
    """A part that cannot be interrupted outlasts the drain timeout: the daemon still ends in order."""
    size = "d_model=256&positions=0:300" if SANITIZED else "d_model=448&positions=0:1300"
    with start("--workers", "1", "--drain-timeout-ms", "0") as daemon:
        with daemon.connect() as sock:
            sock.sendall(text(f"GET /v1/shift?type=random&seed=1&distance=1&{size} HTTP/1.1\r\n{HOST}\r\n"))
            daemon.wait_metric("posenc_workers_busy", 1)
            daemon.signal()
            status, _, body = receive_reply(sock)
            assert status == 503 and problem(body)["type"] == "urn:posenc:error:draining", body
        assert daemon.wait() == 0


def test_stop_under_load():
    """Requests that keep coming on open connections, past the drain timeout: no abort, and no reply that is wrong."""
    for timeout_ms in ("0", "200"):
        with start("--workers", "2", "--drain-timeout-ms", timeout_ms) as daemon:
            work, statuses = Work(daemon, 0.01), set()

            def client():
                connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
                try:
                    while True:
                        connection.request("POST", "/v1/encode?format=npy", work.body)
                        reply = connection.getresponse()
                        body = reply.read()
                        statuses.add(reply.status if reply.status != 200 or work.good((200, None, body)) else "cut")
                except (OSError, http.client.HTTPException):
                    connection.close()

            threads = [threading.Thread(target=client) for _ in range(20)]
            for thread in threads:
                thread.start()
            time.sleep(1)
            daemon.signal()
            assert daemon.wait(20) == 0
            for thread in threads:
                thread.join()
            assert statuses <= {200, 503} and 200 in statuses, statuses


def test_second_signal_ends_at_once():
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        with start("--workers", "1") as daemon:
            work = Work(daemon, 3.0)
            sock = work.send(daemon)
            daemon.wait_metric("posenc_workers_busy", 1)
            daemon.signal(signal.SIGTERM)
            daemon.wait_log(lambda e: e.get("msg") == "draining")
            daemon.signal(number)
            daemon.expected_exit = code
            assert daemon.wait(2) == code
            sock.close()


def test_call_without_a_socket():
    def call(*words, stdin=b""):
        done = subprocess.run([PATH, *words], input=stdin, capture_output=True, timeout=60, env=Daemon.environment())
        return done.returncode, done.stdout
    with start() as daemon:
        assert call("--call", f"GET {SMALL}") == (0, daemon.get(SMALL)[2])
        assert call("--call", f"GET {SMALL}&format=npy") == (0, daemon.get(SMALL + "&format=npy")[2])
        assert call("--call", f"GET {STREAM}3000") == (0, daemon.get(STREAM + "3000")[2])
        assert call("--call", "POST /v1/encode", "-", stdin=DOCUMENT) == (0, daemon.post("/v1/encode", DOCUMENT)[2])
        code, body = call("--call", "GET /nothing")
        assert code == 1 and problem(body)["status"] == 404, body
        code, body = call("--call", f"HEAD {SMALL}")
        assert code == 0 and body == b"", body
        for words in (["--call", "GET"], ["--call", " /"], ["--call", "POST /v1/encode", "/does/not/exist"]):
            code, body = call(*words)
            assert code in (1, 2) and body == b"", (words, code, body)


def test_call_takes_as_long_a_target_as_http():
    """What is asked by HTTP may be asked on the command line; what is too long for one is for both, and is said."""
    def call(target):
        return subprocess.run([PATH, "--call", "GET " + target], capture_output=True, timeout=60, check=False, env=Daemon.environment())
    head = "/v1/encode?type=sinusoidal&d_model=2&positions=1"
    with start() as daemon:
        for length in (8100, 8200, 31000):
            target = head + ",1" * ((length - len(head)) // 2)
            status, _, body = daemon.get(target)
            done = call(target)
            assert status == 200 and (done.returncode, done.stdout) == (0, body), (length, status, done)
        long = head + ",1" * 16500
        assert daemon.get(long)[0] == 414
        done = call(long)
        assert done.returncode == 2 and done.stdout == b"" and b"32768" in done.stderr, done


def test_log_of_requests():
    with start() as daemon:
        trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
        daemon.get(SMALL, {"X-Request-Id": "mine-1", "traceparent": trace})
        entry = daemon.wait_log(lambda e: e.get("request_id") == "mine-1")
        assert entry["status"] == 200 and entry["route"] == "GET /v1/encode" and entry["method"] == "GET", entry
        assert entry["trace_id"] == trace[3:35] and entry["bytes"] > 100 and entry["duration_ms"] >= 0, entry
        daemon.get("/v1/encode?type=nothing&positions=0:4", {"X-Request-Id": "mine-2"})
        entry = daemon.wait_log(lambda e: e.get("request_id") == "mine-2")
        assert entry["status"] == 400 and entry["error"] and entry["field"], entry


def test_random_bytes():
    """Nothing that is sent ends the daemon, and every connection comes to an end."""
    import random
    rng = random.Random(5)
    pieces = [text(p) for p in ("GET ", "POST ", SMALL, " HTTP/1.1", "\r\n", HOST, "Content-Length: 5\r\n", "\r\n\r\n", "\0", ":",
                                "Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\n", "0\r\n\r\n", " ", "\n", "Expect: 100-continue\r\n",
                                "\xff\xfe", "HEAD ", "/", "%", "Connection: close\r\n", "HTTP/1.0", "{\"encoding\":")]
    with start("--idle-timeout-s", "1") as daemon:
        for _ in range(150 if SANITIZED else 400):
            data = b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 25)))
            with daemon.connect(timeout=10) as sock:
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    receive_all(sock)
                except OSError:
                    pass
        assert daemon.get(SMALL)[0] == 200
        daemon.wait_metric("posenc_connections", 1, 5)
        daemon.wait_metric("posenc_http_requests_in_flight", 1, 5)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
