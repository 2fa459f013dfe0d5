#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time and turns: test_time.py DAEMON [TEST...].

Clients that send or take too slowly, that want more than their share, that leave at any stage, that come and go by
the hundred; deadlines at each stage; stopping with a full queue. Nobody's slowness may cost the others their answers,
and what is cut is told, counted and logged. FULL=1 takes the longer forms.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import NotTried, receive_all, receive_reply, run_tests  # noqa: E402
from test_http import GET, HOST, SANITIZED, SMALL, STREAM, Work, problem, start, text  # noqa: E402

FULL = os.environ.get("FULL") == "1"
LATE_S = 15 if SANITIZED else 4  # more than that after its time is late, on a machine that is busy with other things
REJECTED = 'posenc_http_rejected_total{reason="%s"}'
GAUGES = {"posenc_http_requests_in_flight": 1, "posenc_connections": 1, "posenc_queue_depth": 0, "posenc_streams_active": 0,
          "posenc_workers_busy": 0}  # 1: the request that asks
POST = "POST /v1/encode?format=npy HTTP/1.1\r\n" + HOST


def at_rest(daemon):
    for name, value in GAUGES.items():
        daemon.wait_metric(name, value, LATE_S)


def side_by_side(cases, function):
    """{name: function(*case)}, all at the same time."""
    results = {}

    def run(name, case):
        try:
            results[name] = function(*case)
        except Exception as error:  # the caller's asserts show it
            results[name] = error
    threads = [threading.Thread(target=run, args=item) for item in cases.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def long_part():
    """A request whose work is one part of a second or so."""
    size = "d_model=320&positions=0:330" if SANITIZED else "d_model=512&positions=0:1000"
    return text(f"GET /v1/shift?type=random&seed=1&distance=1&{size} HTTP/1.1\r\n{HOST}\r\n")


# ---- slow senders ---------------------------------------------------------------------------------------------------

def seconds_open(daemon, first, pieces, pause_s, limit_s):
    """Sends `first`, then a piece every pause_s; the seconds until the daemon closes, None = it did not, and what it
    said."""
    said = b""
    with daemon.connect() as sock:
        for request in first[:-1]:
            sock.sendall(text(request))
            assert receive_reply(sock)[0] == 200
        began = time.monotonic()
        sock.sendall(text(first[-1]))
        sock.settimeout(pause_s)
        while time.monotonic() - began < limit_s:
            try:
                got = sock.recv(65536)
                said += got
                if not got:
                    return time.monotonic() - began, said
            except TimeoutError:
                pass
            except OSError:
                return time.monotonic() - began, said
            try:
                sock.sendall(next(pieces, b""))
            except OSError:
                return time.monotonic() - began, said
    return None, said


def headers_have_their_time():
    """From the first byte of the request line, on new connections and on kept ones; who says nothing may stay."""
    small = GET + HOST + "\r\n"
    cases = {"in the request line": ([""], "GET /v1/limits?and_so_on"), "in the header": ([GET + HOST], "X: y\r\n" * 9),
             "in the request line of a kept connection": ([small, ""], "GET /v1/limits?and_so_on"),
             "in the header of a kept connection": ([small, small, GET], "X: y\r\n" * 9),
             "nothing after the first byte": (["G"], "")}
    with start("--header-timeout-s", "2") as daemon:
        def case(first, rest):
            return seconds_open(daemon, first, iter([text(c) for c in rest]), 0.5, 2 + 3 * LATE_S)[0]
        quiet = daemon.connect()
        results = side_by_side(cases, case)
        assert all(isinstance(took, float) and took > 1.4 for took in results.values()), results
        quiet.sendall(text(small))
        assert receive_reply(quiet)[0] == 200
        quiet.close()
        assert daemon.metrics()[REJECTED % "idle_timeout"] == len(cases)
        slow = [e for e in daemon.requests() if e["status"] == 408]  # a request line that is not complete is no request
        assert len(slow) == 2 and all("header_timeout_s" in e["detail"] for e in slow), slow
        at_rest(daemon)


def bodies_have_to_get_on():
    size = 60000
    head = POST + f"Content-Length: {size}\r\n\r\n"
    cases = {"trickle": ([head], iter([b" " * 20] * 1000), 0.2, 4 + 4 * LATE_S),
             "trickle after a good start": ([head + " " * 30000], iter([b" " * 20] * 1000), 0.2, 4 + 4 * LATE_S),
             "stall": ([head + " " * 100], iter([]), 0.5, 4 + 4 * LATE_S),
             "pauses": ([head], iter([b" " * 15000] * 4), 0.8, 5)}
    with start("--min-rate-bytes", "8KiB", "--rate-patience-s", "2") as daemon:
        results = side_by_side(cases, lambda *case: seconds_open(daemon, *case))
        assert b"400 Bad Request" in results["pauses"][1], results  # it is no JSON, but it was read to its end
        for name in ("trickle", "trickle after a good start", "stall"):
            assert results[name][0] > 1, results
        slow = [e for e in daemon.requests() if e["status"] == 408]
        assert len(slow) == 3 and all(e["error"] == "timeout" and "min_rate_bytes" in e["detail"] for e in slow), slow
        assert daemon.metrics()[REJECTED % "idle_timeout"] == 3
        at_rest(daemon)


def no_rule_no_cut():
    with start("--min-rate-bytes", "0", "--rate-patience-s", "1") as daemon:
        head = POST + "Content-Length: 60000\r\n\r\n"
        assert seconds_open(daemon, [head], iter([b" " * 20] * 1000), 0.2, 3)[0] is None


def our_pauses_are_not_the_senders():
    """The daemon does not run for longer than a header or a body may take; what came meanwhile was in time."""
    with start("--header-timeout-s", "2", "--rate-patience-s", "2") as daemon:
        with daemon.connect() as header, daemon.connect() as body:
            header.sendall(text(GET + HOST))
            body.sendall(text(f"{POST}Content-Length: 4000\r\n\r\n" + " " * 100))
            daemon.wait_metric("posenc_http_requests_in_flight", 2)
            daemon.signal(signal.SIGSTOP)
            try:
                header.sendall(b"\r\n")
                body.sendall(b" " * 3898 + b"{}")
                time.sleep(3)
            finally:
                daemon.signal(signal.SIGCONT)
            assert receive_reply(header)[0] == 200
            assert receive_reply(body)[0] == 400  # it is no encoding, but it was read


# ---- slow readers ---------------------------------------------------------------------------------------------------

def read_slowly(daemon, request, piece, pause_s, limit_s):
    """Reads `piece` bytes every pause_s through a small buffer: seconds until the end, None = it did not come, and how
    much there was."""
    size = 0
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        sock.connect(("127.0.0.1", daemon.port))
        sock.sendall(text(request))
        began = time.monotonic()
        while time.monotonic() - began < limit_s:
            time.sleep(pause_s)
            try:
                got = sock.recv(piece)
            except OSError:
                return time.monotonic() - began, size
            size += len(got)
            if not got:
                return time.monotonic() - began, size
    return None, size


def readers_have_to_get_on():
    """Streams, and replies that are made before they are sent. Progress is what the client took, not what went into the
    kernel's buffers."""
    document = json.dumps({"encoding": {"type": "sinusoidal", "d_model": 512}, "positions": "0:8000"})
    buffered = f"{POST}Content-Length: {len(document)}\r\n\r\n{document}"
    stream = f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"
    with start("--min-rate-bytes", "64KiB", "--rate-patience-s", "2") as daemon:
        cases = {"slow stream": (daemon, stream, 1000, 0.1, 4 * LATE_S + 8),
                 "slow buffered": (daemon, buffered, 1000, 0.1, 4 * LATE_S + 8),
                 "good stream": (daemon, stream, 40000, 0.1, 4), "good buffered": (daemon, buffered, 40000, 0.1, 4)}
        results = side_by_side(cases, read_slowly)
        assert results["good stream"][0] is None and results["good buffered"][0] is None, results
        for name in ("slow stream", "slow buffered"):
            assert results[name][0] is not None and results[name][0] > 1.5, results
        at_rest(daemon)
        entries = [e for e in daemon.requests() if e["status"] == 408]
        assert len(entries) == 2 and all("min_rate_bytes" in e["detail"] for e in entries), daemon.requests()
        assert daemon.metrics()[REJECTED % "idle_timeout"] == 2
        assert daemon.metrics()[REJECTED % "client_gone"] == 2  # the good ones, who left in the middle


def test_our_time_is_not_the_readers():
    """A stream that waits for the only worker owes nothing."""
    with start("--workers", "1", "--min-rate-bytes", "1MiB", "--rate-patience-s", "1") as daemon:
        with daemon.connect() as sock:
            sock.sendall(text(f"GET {STREAM}1000000 HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"))
            size, gap, blockers = len(sock.recv(65536)), 0, []
            for _ in range(4):
                blockers.append(daemon.connect())
                blockers[-1].sendall(long_part())
            last = time.monotonic()
            while gap < 1.5 and (piece := sock.recv(1 << 20)):
                size, gap, last = size + len(piece), max(gap, time.monotonic() - last), time.monotonic()
            assert size > 1000000 * 2048 or len(sock.recv(65536)) > 0, f"cut after {size} bytes, with gaps of {gap} s"
            if gap < 1.5:
                raise NotTried(f"this machine is too fast: the stream waited {gap:.1f} s for the worker")
        for blocker in blockers:
            blocker.close()


# ---- one client's share ---------------------------------------------------------------------------------------------

def connect_as(daemon, host):
    """From another address of the loopback."""
    return socket.create_connection(("127.0.0.1", daemon.port), timeout=60, source_address=(host, 0))


def ask(sock, request):
    sock.sendall(text(request))
    return receive_reply(sock)


def refused_share(reply, option, limit):
    status, headers, body = reply
    value = problem(body)
    assert status == 429 and int(headers["retry-after"]) >= 1, reply
    assert headers["content-type"] == "application/problem+json" and value["type"] == "urn:posenc:error:client_limit", reply
    assert value["option"] == option and value["limit"] == limit and value["got"] == limit + 1, value


def test_streams_of_one_client():
    stream = f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"
    short = f"GET {STREAM}3000 HTTP/1.1\r\n{HOST}\r\n"
    with start() as daemon:  # 4 of 8 by default
        mine = [daemon.connect() for _ in range(4)]
        for sock in mine:
            sock.sendall(text(stream))
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
        with daemon.connect() as sock:
            refused_share(ask(sock, short), "streams_per_ip", 4)
            refused_share(ask(sock, short), "streams_per_ip", 4)
            assert ask(sock, GET + HOST + "\r\n")[0] == 200
            with connect_as(daemon, "127.0.0.2") as other:
                assert ask(other, short)[0] == 200
            mine.pop().close()
            daemon.wait_metric("posenc_streams_active", 3, LATE_S)
            assert ask(sock, short)[0] == 200
        assert daemon.metrics()[REJECTED % "client_limit"] == 2
        assert daemon.requests(f"{STREAM}3000")[0]["error"] == "client_limit"
        for sock in mine:
            sock.close()
        at_rest(daemon)


def test_requests_of_one_client():
    with start("--workers", "1", "--requests-per-ip", "2") as daemon:
        work = Work(daemon, 0.5)
        mine = [work.send(daemon) for _ in range(2)]
        daemon.wait_metric("posenc_http_requests_in_flight", 3)
        with work.send(daemon) as third, connect_as(daemon, "127.0.0.2") as other:
            refused_share(receive_reply(third), "requests_per_ip", 2)
            assert ask(third, GET + HOST + "\r\n")[0] == 200  # a quick one waits for nobody
            other.sendall(text(f"{POST}Content-Length: {len(work.body)}\r\n\r\n") + work.body)
            assert work.good(receive_reply(mine[0]))
            assert work.good(receive_reply(mine[1])) and work.good(receive_reply(other))
            third.sendall(text(f"{POST}Content-Length: {len(work.body)}\r\n\r\n") + work.body)
            assert work.good(receive_reply(third))
        # Those that are given up leave their places, too.
        late = [work.send(daemon, "X-Posenc-Timeout-Ms: 100\r\n") for _ in range(2)]
        assert [receive_reply(sock)[0] for sock in late] == [504, 504]
        gone = [work.send(daemon) for _ in range(2)]
        daemon.wait_metric("posenc_http_requests_in_flight", 3)
        for sock in gone:
            sock.close()
        daemon.wait_metric("posenc_http_requests_in_flight", 1, LATE_S)
        with work.send(daemon) as sock:
            assert work.good(receive_reply(sock))
        for sock in mine + late:
            sock.close()
        at_rest(daemon)
    limits = {"requests_per_ip": 3, "streams_per_ip": 2, "header_timeout_s": 7, "min_rate_bytes": 2048, "rate_patience_s": 9}
    with start(*(word for name, value in limits.items() for word in ("--" + name.replace("_", "-"), str(value)))) as daemon:
        told = json.loads(daemon.get("/v1/limits")[2])
        assert limits.items() <= told.items(), told


def test_connections_of_one_client():
    with start("--connections-per-ip", "2") as daemon:
        mine = [daemon.connect() for _ in range(2)]
        assert all(ask(sock, GET + HOST + "\r\n")[0] == 200 for sock in mine)
        with daemon.connect(timeout=10) as third:
            assert receive_all(third) == b""  # closed, not left to wait
        with connect_as(daemon, "127.0.0.2") as other:
            assert ask(other, GET + HOST + "\r\n")[0] == 200
        assert daemon.get("/healthz", port=daemon.admin_port)[0] == 200
        mine.pop().close()
        daemon.wait_metric("posenc_connections", 2, LATE_S)
        with daemon.connect(timeout=10) as third:
            assert ask(third, GET + HOST + "\r\n")[0] == 200
        mine.pop().close()


# ---- deadlines ------------------------------------------------------------------------------------------------------

def deadline_while_the_body_arrives():
    """It counts, and the client is told, although its body is not complete. A body in time is served."""
    document = json.dumps({"encoding": {"type": "sinusoidal", "d_model": 6}, "positions": "0:4"})
    head = f"{POST}X-Posenc-Timeout-Ms: 1000\r\nContent-Length: 100000\r\n"
    good = f"{POST}X-Posenc-Timeout-Ms: 100000\r\nContent-Length: {len(document)}\r\n\r\n"
    cases = {"slow": ([head + "\r\n"], iter([b" " * 400] * 60), 0.1, 4 * LATE_S),
             "not sent at all": ([head + "\r\n"], iter([]), 0.3, 4 * LATE_S),
             "waiting for 100": ([head + "Expect: 100-continue\r\n\r\n"], iter([]), 0.3, 4 * LATE_S),
             "in time": ([good], iter([c.encode() for c in document]), 0.02, 4)}
    with start() as daemon:
        results = side_by_side(cases, lambda *case: seconds_open(daemon, *case))
        assert b"HTTP/1.1 200" in results.pop("in time")[1]
        for took, said in results.values():
            status, _, rest = said.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n")
            headers, _, body = rest.partition(b"\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 504 ") and b"Connection: close" in headers, said
            assert problem(body)["type"] == "urn:posenc:error:deadline" and "body" in problem(body)["detail"], said
            assert took > 0.9, results
        at_rest(daemon)
        late = [e for e in daemon.requests() if e["status"] == 504]
        assert len(late) == 3 and all(e["error"] == "deadline" and e["bytes"] > 100 for e in late), late
        assert daemon.metrics()[REJECTED % "deadline"] == 3
        with daemon.connect() as sock:
            sock.sendall(text(f"HEAD /v1/version HTTP/1.1\r\n{HOST}X-Posenc-Timeout-Ms: 1\r\nContent-Length: 9\r\n\r\n"))
            said = receive_all(sock)
        assert said.startswith(b"HTTP/1.1 504 ") and said.endswith(b"\r\n\r\n"), said
        assert daemon.get(SMALL)[0] == 200


def test_slow_clients():
    """They take their time, so they take it together."""
    checks = (headers_have_their_time, bodies_have_to_get_on, no_rule_no_cut, our_pauses_are_not_the_senders, readers_have_to_get_on,
              deadline_while_the_body_arrives)
    results = side_by_side({check.__name__: (check,) for check in checks}, lambda check: check())
    assert not any(results.values()), results


def test_deadline_of_what_waits():
    """Behind a long part: work, planning, and a stream before its first byte. All are told in time."""
    grid = json.dumps({"grid": [500, 500]})
    timeout = "X-Posenc-Timeout-Ms: 100\r\n"
    with start("--workers", "1") as daemon:
        work = Work(daemon, 0.2)
        requests = {"work": text(f"{POST}{timeout}Content-Length: {len(work.body)}\r\n\r\n") + work.body,
                    "planning": text(f"POST /v1/positions HTTP/1.1\r\n{HOST}{timeout}Content-Length: {len(grid)}\r\n\r\n{grid}"),
                    "a stream": text(f"GET {STREAM}100000 HTTP/1.1\r\n{HOST}{timeout}\r\n")}
        with daemon.connect() as blocker:
            blocker.sendall(long_part())
            daemon.wait_metric("posenc_workers_busy", 1)
            socks = {name: daemon.connect() for name in requests}
            for name, request in requests.items():
                socks[name].sendall(request)
            for name, sock in socks.items():
                status, _, body = receive_reply(sock)
                assert status == 504 and problem(body)["type"] == "urn:posenc:error:deadline", (name, body)
            assert daemon.metrics()["posenc_workers_busy"] == 1, "the long part was over too soon to tell"
            for name, sock in socks.items():
                assert ask(sock, GET + HOST + "\r\n")[0] == 200, name
                sock.close()
            assert receive_reply(blocker)[0] == 200
        at_rest(daemon)


def test_deadline_is_the_servers_at_most():
    with start("--workers", "1", "--deadline-ms", "200") as daemon:
        work = Work(daemon, 0.1)
        work.rows, work.body = 30000, json.dumps(work.document(30000)).encode()
        for headers in ("", "X-Posenc-Timeout-Ms: 60000\r\n"):
            with work.send(daemon, headers) as sock:
                status, _, body = receive_reply(sock)
                assert status == 504 and "200 ms" in problem(body)["detail"], body


# ---- clients that leave ---------------------------------------------------------------------------------------------

def test_clients_leave_at_any_stage():
    with start("--workers", "1") as daemon:
        work = Work(daemon, 0.8)
        posted = text(f"{POST}Content-Length: {len(work.body)}\r\n\r\n") + work.body
        buffered = json.dumps({"encoding": {"type": "sinusoidal", "d_model": 512}, "positions": "0:8000"})
        grid = json.dumps({"grid": [3000, 3000]})
        cases = [  # name, what is sent, what shows that it is there, how it goes on
            ("after its header", text(f"{POST}Content-Length: 1000\r\n\r\n"), ("posenc_http_requests_in_flight", 2), False),
            ("in its body", text(f"{POST}Content-Length: 1000\r\n\r\n") + b" " * 500, ("posenc_http_requests_in_flight", 2), False),
            ("waiting to be planned", text(f"POST /v1/positions HTTP/1.1\r\n{HOST}Content-Length: {len(grid)}\r\n\r\n{grid}"),
             ("posenc_http_requests_in_flight", 3), True),
            ("computed", posted, ("posenc_workers_busy", 1), False),
            ("waiting", posted, ("posenc_http_requests_in_flight", 3), True),
            ("taking its reply", text(f"{POST}Content-Length: {len(buffered)}\r\n\r\n{buffered}"), "reply", False),
            ("taking its stream", text(f"GET {STREAM}10000000 HTTP/1.1\r\n{HOST}\r\n"), "reply", False)]
        gone = 0
        for reset in (False, True):
            for name, request, sign, behind in cases:
                blocker = work.send(daemon) if behind else None
                if blocker:
                    daemon.wait_metric("posenc_workers_busy", 1)
                sock = daemon.connect()
                sock.sendall(request)
                if sign == "reply":
                    assert sock.recv(1000).startswith(b"HTTP/1.1 200"), name
                elif sign:
                    daemon.wait_metric(*sign)
                if reset:  # the other way to go: RST in place of FIN
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
                gone += 1
                daemon.wait_metric(REJECTED % "client_gone", gone, LATE_S)
                if blocker:
                    assert work.good(receive_reply(blocker)), name
                    blocker.close()
                at_rest(daemon)
        statuses = [e["status"] for e in daemon.requests()]
        assert statuses.count(499) == gone == 2 * len(cases), statuses


def test_half_closed_clients():
    """Who has shut its sending side down is answered at once or not at all: it cannot be told from one that left, so no
    work is done for it."""
    with start("--workers", "1") as daemon:
        for request in (GET + HOST + "\r\n", f"GET {SMALL} HTTP/1.0\r\n\r\n"):
            with daemon.connect() as sock:
                sock.sendall(text(request))
                sock.shutdown(socket.SHUT_WR)
                assert receive_all(sock).startswith(b"HTTP/1.1 200")
        work = Work(daemon, 1.0)
        with work.send(daemon) as sock:
            daemon.wait_metric("posenc_workers_busy", 1)
            sock.shutdown(socket.SHUT_WR)
            assert receive_all(sock) == b""
        daemon.wait_metric(REJECTED % "client_gone", 1, LATE_S)
        at_rest(daemon)


def test_who_leaves_an_error_has_left():
    """A client that resets while 404s are sent to it: it is not us who failed."""
    miss = text(f"GET /v1/nothing HTTP/1.1\r\n{HOST}\r\n")
    with start() as daemon:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", daemon.port))
            sock.settimeout(1)
            try:
                for _ in range(100000):  # until the daemon reads no more, as it cannot send
                    sock.sendall(miss * 10)
                raise NotTried("the kernel's buffers have no end")
            except TimeoutError:
                daemon.wait_metric("posenc_http_requests_in_flight", 2, LATE_S)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        at_rest(daemon)
        numbers = daemon.metrics()
        assert [numbers[REJECTED % reason] for reason in ("client_gone", "draining")] == [1, 0]


# ---- crowds ---------------------------------------------------------------------------------------------------------

def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def test_clients_come_and_go():
    """Hundreds a second, politely and not: nothing stays behind, and a probe is answered meanwhile."""
    seconds = 20 if FULL else 2
    kinds = [b"", b"GET ", text(GET + HOST), text(GET + HOST + "\r\n"), text(POST + "Content-Length: 100\r\n\r\nabc"),
             text(f"GET {STREAM}5000 HTTP/1.1\r\n{HOST}\r\n")]
    with start() as daemon:
        at_rest(daemon)
        time.sleep(0.1)
        before, end, n, slowest = descriptors(daemon), time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            due = time.monotonic() + 0.1
            for _ in range(50):
                with daemon.connect() as sock:
                    sock.sendall(kinds[n % len(kinds)])
                    if n % 4 == 3:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                n += 1
            began = time.monotonic()
            assert daemon.get("/healthz", port=daemon.admin_port)[0] == 200 and daemon.get(SMALL)[0] == 200
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(max(0, due - time.monotonic()))
        print(f"   {n / seconds:.0f} connections a second; two probes took {slowest * 1000:.0f} ms at most", flush=True)
        assert slowest < 2 + LATE_S, slowest
        at_rest(daemon)
        end = time.monotonic() + LATE_S
        while descriptors(daemon) != before:  # the connection of the last question may be closing still
            assert time.monotonic() < end, (descriptors(daemon), before)
            time.sleep(0.02)


def test_stop_with_a_full_house():
    """SIGTERM with ten jobs running and waiting: all are answered, and the exit code is 0."""
    with start("--workers", "2") as daemon:
        work = Work(daemon, 1.0 if FULL else 0.3)
        posted = [work.send(daemon) for _ in range(10)]
        daemon.wait_metric("posenc_http_requests_in_flight", 11)
        daemon.signal()
        replies = [receive_reply(sock) for sock in posted]
        assert all(work.good(reply) for reply in replies), [reply[0] for reply in replies]
        assert daemon.wait() == 0
        for sock in posted:
            sock.close()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
