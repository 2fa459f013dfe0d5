#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What comes in on a socket, byte by byte, and what may go out: test_protocol.py DAEMON [TEST...].

Tables of requests, each with the status it must get. A hostile one is refused as a problem document and its
connection closed; nothing that follows on the connection may be taken for a request, and a request on a fresh
connection must get its exact usual bytes. What libmicrohttpd 0.9.75 answers before the daemon sees it, in HTML or by
closing, is a table of its own: that of the README, row for row. Good requests must leave the connection in step: the
one behind them gets its exact bytes, too. The rules are those of RFC 9110 and RFC 9112.
"""
import http.client
import json
import pathlib
import random
import re
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, receive_all, receive_reply, run_tests, split_replies  # noqa: E402

PATH = sys.argv[1]
README = pathlib.Path(__file__).parents[2] / "README.md"
SMALL = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
HOST = "Host: x\r\n"
GET = f"GET {SMALL} HTTP/1.1\r\n"
POST = f"POST /v1/encode HTTP/1.1\r\n{HOST}"
CHUNKED = f"{POST}Transfer-Encoding: chunked\r\n\r\n"
BODY = '{"encoding":{"type":"sinusoidal","d_model":6},"positions":"0:4"}'  # 0x40 bytes
SMUGGLED = "GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
MALFORMED = 'posenc_http_rejected_total{reason="malformed"}'
WAIT_S = 30  # for a connection to be closed: a limit, never waited for when all is well
ENOUGH = 10  # faults, after which a table is given up


def start(*options, **more):
    return Daemon(PATH, *options, **more)


def exchange(daemon, data, piece=None):
    """(all that came, was the connection closed by the daemon) for bytes sent at once, or a piece at a time."""
    data = data if isinstance(data, bytes) else data.encode("latin-1")
    with daemon.connect(timeout=WAIT_S) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for i in range(0, len(data), piece or len(data)):
                sock.sendall(data[i:i + (piece or len(data))])
        except OSError:
            pass  # refused before its end
        got = b""
        try:
            while more := sock.recv(1 << 16):
                got += more
        except ConnectionResetError:
            pass
        except TimeoutError:
            return got, False
        return got, True


class Probe:
    """The request that everybody sends, and the bytes it always gets."""

    def __init__(self, daemon):
        self.daemon = daemon
        status, _, self.body = daemon.get(SMALL)
        assert status == 200 and b"0.84147096" in self.body, self.body

    def faults(self, name):
        status, _, body = self.daemon.get(SMALL)
        return [] if (status, body) == (200, self.body) else [f"{name}: the probe got {status} {body[:100]!r}"]


def head_of(data):
    """(status, headers by lower-case name, body) of one reply that ends with the connection."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines)
    return int(first.split(" ")[1]), {name.lower(): value for name, value in fields.items()}, body


def problem_faults(data, status):
    """Where bytes are not exactly one refusal of that status which closes the connection."""
    if data.count(b"HTTP/1.1 ") != 1 or not data.startswith(b"HTTP/1.1 "):
        return [f"{data[:200]!r} is not one reply"]
    got, headers, body = head_of(data)
    if got != status or headers.get("content-type") != "application/problem+json":
        return [f"got {got} {body[:200]!r}, expected {status}"]
    value = json.loads(body)
    good = (int(headers["content-length"]) == len(body) and headers.get("connection", "").lower() == "close"
            and value["status"] == status and value["type"].startswith("urn:posenc:error:") and value["title"]
            and value["detail"] and value["request_id"] == headers["x-request-id"]
            and all(0x20 <= byte < 0x7f for byte in body))
    return [] if good else [f"{headers} {body!r} is no good problem"]


def assert_nothing_smuggled(daemon):
    """Call it after the daemon has ended, so that the log is complete."""
    assert not daemon.requests("/v1/smuggled"), "a request was hidden in another and was answered"


# ---- refused by the daemon ------------------------------------------------------------------------------------------

HOSTILE = [
    # two readings of where the body ends
    ("Content-Length twice, different", POST + "Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc", 400),
    ("Content-Length twice, equal", POST + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("Content-Length twice, spelt differently", POST + "Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", 400),
    ("Content-Length before Transfer-Encoding", POST + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("Transfer-Encoding before Content-Length", POST + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    ("Content-Length of a GET twice", GET + HOST + "Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc", 400),
    ("coding gzip", POST + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", 501),
    ("coding gzip, chunked", POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("coding chunked, chunked", POST + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
    ("coding chunked, identity", POST + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    ("coding identity", POST + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501),
    ("coding identity and Content-Length", POST + "Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc", 501),
    ("coding xchunked", POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("coding of nothing", POST + "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 501),
    ("coding in quotes", POST + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501),
    ("coding with a parameter", POST + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 501),
    ("coding with a space behind", POST + "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n", 501),
    ("coding behind a vertical tab", POST + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    ("Transfer-Encoding twice", POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("Transfer-Encoding in HTTP/1.0", POST.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    # hosts
    ("two Hosts", GET + HOST + "Host: y\r\n\r\n", 400),
    ("the same Host twice", GET + HOST + HOST + "\r\n", 400),
    ("empty Host", GET + "Host:\r\n\r\n", 400),
    ("Host of spaces", GET + "Host:  \r\n\r\n", 400),
    ("Host of two words", GET + "Host: x y\r\n\r\n", 400),
    ("Host of a list", GET + "Host: x,y\r\n\r\n", 400),
    ("Host with a path", GET + "Host: x/y\r\n\r\n", 400),
    ("Host with a user", GET + "Host: u@x\r\n\r\n", 400),
    ("Host with a port of letters", GET + "Host: x:y\r\n\r\n", 400),
    # names
    ("space before the colon", POST + "Content-Length : 3\r\n\r\nabc", 400),
    ("tab before the colon", POST + "Content-Length\t: 3\r\n\r\nabc", 400),
    ("space in a name", GET + HOST + "X Y: z\r\n\r\n", 400),
    ("space before the first name", GET + " X: y\r\n" + HOST + "\r\n", 400),
    ("control in a name", GET + HOST + "X\x01: z\r\n\r\n", 400),
    ("CR in a name", GET + HOST + "X\rY: z\r\n\r\n", 400),
    ("bracket in a name", GET + HOST + "X(: z\r\n\r\n", 400),
    ("name in quotes", GET + HOST + "\"X\": z\r\n\r\n", 400),
    ("a name beyond ASCII", GET + HOST + "X\xe9: z\r\n\r\n", 400),
    ("no name", GET + HOST + ": z\r\n\r\n", 400),
    ("no name before a length", POST + ": 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("a request behind a line without a name", GET + HOST + ": z\r\n" + SMUGGLED, 400),
    ("a request behind a line that begins with NUL", GET + HOST + "\0\r\n" + SMUGGLED, 400),
    ("NUL before a name", POST + "\0Content-Length: 3\r\n\r\nabc", 400),
    # values
    ("NUL in a value", GET + HOST + "X: a\0b\r\n\r\n", 400),
    ("NUL at the beginning of a value", GET + HOST + "X: \0b\r\n\r\n", 400),
    ("NUL at the end of a value", GET + HOST + "X: a\0\r\n\r\n", 400),
    ("NUL in Content-Length", POST + "Content-Length: 3\x000\r\n\r\nabc", 400),
    ("NUL in Transfer-Encoding", POST + "Transfer-Encoding: chunked\0x\r\n\r\n0\r\n\r\n", 400),
    ("CR in a value", GET + HOST + "X: a\rb\r\n\r\n", 400),
    ("CR at the end of a value", GET + HOST + "X: a\r\r\n\r\n", 400),
    ("CR for the end of a line", GET + "Host: x\rX: y\r\n\r\n", 400),
    ("a length behind a CR", POST + "X: y\rContent-Length: 3\r\n\r\nabc", 400),
    ("escape in a value", GET + HOST + "X: a\x1b[31mb\r\n\r\n", 400),
    ("DEL in a value", GET + HOST + "X: a\x7f\r\n\r\n", 400),
    # lines
    ("folded line", GET + HOST + "X: a\r\n b\r\n\r\n", 400),
    ("folded line with a tab", GET + HOST + "X: a\r\n\tb\r\n\r\n", 400),
    ("folded Content-Length", POST + "Content-Length: 3\r\n 0\r\n\r\nabc", 400),
    ("folded Transfer-Encoding", POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
    ("length in a folded line", POST + "X: a\r\n Content-Length: 3\r\n\r\nabc", 400),
    ("bare LF everywhere", (GET + HOST + "\r\n").replace("\r\n", "\n"), 400),
    ("bare LF behind the request line", GET.replace("\r\n", "\n") + HOST + "\r\n", 400),
    ("bare LF behind a field", GET + "Host: x\nX: y\r\n\r\n", 400),
    ("bare LF behind the last field", GET + "Host: x\n\r\n", 400),
    ("bare LF for the empty line", GET + HOST + "\n", 400),
    ("length behind a bare LF", POST + "X: y\nContent-Length: 3\r\n\r\nabc", 400),
    ("129 fields", GET + HOST + "X: y\r\n" * 128 + "\r\n", 400),
    ("request id twice", GET + HOST + "X-Request-Id: a\r\nX-Request-Id: b\r\n\r\n", 400),
    ("content type twice", POST + "Content-Type: a/b\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n", 400),
    # request lines
    ("%00 in the path", f"GET /v1/limits%00x HTTP/1.1\r\n{HOST}\r\n", 400),
    ("%0a in the path", f"GET /v1/limits%0a HTTP/1.1\r\n{HOST}\r\n", 400),
    ("%7F in the path", f"GET /v1/limits%7F HTTP/1.1\r\n{HOST}\r\n", 400),
    ("half an escape in the path", f"GET /v1/limits%2 HTTP/1.1\r\n{HOST}\r\n", 400),
    ("no escape in the path", f"GET /v1/%zz HTTP/1.1\r\n{HOST}\r\n", 400),
    ("NUL in the path", f"GET /v1/limits\0x HTTP/1.1\r\n{HOST}\r\n", 400),
    ("NUL in the query", f"GET {SMALL}\0x HTTP/1.1\r\n{HOST}\r\n", 400),
    ("control in the path", f"GET /v1/lim\x01its HTTP/1.1\r\n{HOST}\r\n", 400),
    ("CR in the path", f"GET /v1/lim\rits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("tab in the path", f"GET /v1/lim\tits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("raw UTF-8 in the target", f"GET /v1/limits?a=\xc3\xa9 HTTP/1.1\r\n{HOST}\r\n", 400),
    ("fragment", f"GET /v1/limits#a HTTP/1.1\r\n{HOST}\r\n", 400),
    ("target without a slash", f"GET v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("target *", f"GET * HTTP/1.1\r\n{HOST}\r\n", 400),
    ("foreign scheme", f"GET ftp://x/v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("absolute form without a host", f"GET http:///v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("NUL in the method", f"G\0T /v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("bracket in the method", f"G(T /v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    ("CR before the method", f"\rGET /v1/limits HTTP/1.1\r\n{HOST}\r\n", 400),
    # lengths that are numbers
    ("Content-Length 2^64 - 1", POST + "Content-Length: 18446744073709551615\r\n\r\nabc", 413),
    ("Content-Length 2^63", POST + "Content-Length: 9223372036854775808\r\n\r\nabc", 413),
    ("Content-Length 10^18", POST + "Content-Length: 1000000000000000000\r\n\r\nabc", 413),
]


def test_hostile_requests_are_refused():
    """At once, and in small pieces."""
    faults = []
    with start() as daemon:
        probe = Probe(daemon)
        for name, request, status in HOSTILE:
            for piece in (None, 7):
                data, closed = exchange(daemon, request + SMUGGLED, piece)
                where = name if piece is None else name + " in pieces"
                faults += [f"{where}: {fault}" for fault in problem_faults(data, status)]
                faults += [] if closed else [f"{where}: not closed"]
            faults += probe.faults(name)
            if len(faults) > ENOUGH:
                break
    assert not faults, "; ".join(faults)
    assert_nothing_smuggled(daemon)


def test_refused_head_has_no_body():
    with start() as daemon:
        data, closed = exchange(daemon, f"HEAD {SMALL} HTTP/1.1\r\n{HOST}Host: y\r\n\r\n" + SMUGGLED)
        status, headers, body = head_of(data)
        assert (status, headers["content-type"], body, closed) == (400, "application/problem+json", b"", True), data
    assert_nothing_smuggled(daemon)


def test_heads_that_never_end_are_recorded():
    """Refused by the library: 400 and malformed, whatever it answered. Left by the client in their middle: 499."""
    reset = struct.pack("ii", 1, 0)
    with start() as daemon:
        assert b" 431 " in exchange(daemon, f"GET /long HTTP/1.1\r\n{HOST}X: {'y' * 40000}\r\n\r\n")[0]
        assert b" 400 " in exchange(daemon, "GET /nowhere HTTP/1.1\r\n\r\n")[0]
        assert exchange(daemon, f"GET /parts?{'a=b&' * 1000} HTTP/1.1\r\n{HOST}\r\n")[0] == b""
        for linger in (None, reset):
            with daemon.connect() as sock:
                sock.sendall(f"GET /left HTTP/1.1\r\n{HOST}X: ".encode())
                time.sleep(0.1)  # so that the library has read it, and meets the close before the sweep does
                if linger:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        daemon.wait_metric(MALFORMED, 3)
        daemon.wait_metric(MALFORMED.replace("malformed", "client_gone"), 2)
        recorded = {e["target"].split("?")[0]: e["status"] for e in daemon.requests()}
        assert recorded.items() >= {"/long": 400, "/nowhere": 400, "/parts": 400, "/left": 499}.items(), recorded


def test_refused_requests_are_counted():
    with start() as daemon:
        before = daemon.metrics()[MALFORMED]
        for request in ("\0: x\r\n\r\n", "Host: y\r\n\r\n"):
            exchange(daemon, GET + HOST + request)
        assert daemon.metrics()[MALFORMED] == before + 2


# ---- answered by the library ----------------------------------------------------------------------------------------

CLOSED = 0  # without an answer
# By the rows of the table in the README. A reply that the library sends for a bad length has its header twice.
LIBRARY = {
    "a field without a colon, a NUL in its name": (400, [
        ("no colon", GET + HOST + "Foo\r\n\r\n"),
        ("no colon before a length", POST + "Foo\r\nContent-Length: 3\r\n\r\nabc"),
        ("NUL in a name", GET + HOST + "X\0Y: z\r\n\r\n"),
        ("NUL in the name of a length", POST + "Content-Length\0: 3\r\n\r\nabc"),
    ]),
    "no `Host`, but in HTTP/1.0": (400, [
        ("missing Host", GET + "\r\n"), ("missing Host, with others", GET + "X: y\r\n\r\n"),
        ("missing Host in HTTP/1.2", GET.replace("1.1", "1.2") + "\r\n"),
    ]),
    "a `Content-Length` that is not digits alone": (400, [
        ("length +3", POST + "Content-Length: +3\r\n\r\nabc"), ("length 0x3", POST + "Content-Length: 0x3\r\n\r\nabc"),
        ("length -1", POST + "Content-Length: -1\r\n\r\nabc"), ("length 3abc", POST + "Content-Length: 3abc\r\n\r\nabc"),
        ("length 3, 3", POST + "Content-Length: 3, 3\r\n\r\nabc"), ("length 3, 4", POST + "Content-Length: 3, 4\r\n\r\nabc"),
        ("length 6 4", POST + "Content-Length: 6 4\r\n\r\nabc"), ("length 3.0", POST + "Content-Length: 3.0\r\n\r\nabc"),
        ("length of nothing", POST + "Content-Length:\r\n\r\nabc"), ("length and a space", POST + "Content-Length: 3 \r\n\r\nabc"),
        ("length and a CR", POST + "Content-Length: 3\r\r\n\r\nabc"),
    ]),
    "a chunk without a hexadecimal size, or without an end": (400, [
        ("size 0x3", CHUNKED + "0x3\r\nabc\r\n0\r\n\r\n"), ("size +3", CHUNKED + "+3\r\nabc\r\n0\r\n\r\n"),
        ("size -3", CHUNKED + "-3\r\nabc\r\n0\r\n\r\n"), ("size g", CHUNKED + "g\r\nabc\r\n0\r\n\r\n"),
        ("size 3xyz", CHUNKED + "3xyz\r\nabc\r\n0\r\n\r\n"), ("no size", CHUNKED + "\r\nabc\r\n0\r\n\r\n"),
        ("space before the size", CHUNKED + " 3\r\nabc\r\n0\r\n\r\n"), ("space behind the size", CHUNKED + "3 \r\nabc\r\n0\r\n\r\n"),
        ("missing CRLF", CHUNKED + "3\r\nabc0\r\n\r\n"), ("one byte too many", CHUNKED + "3\r\nabcd\r\n0\r\n\r\n"),
        ("LF in an extension", CHUNKED + "3;a\nb\r\nabc\r\n0\r\n\r\n"),
    ]),
    "a trailer without a colon": (400, [("trailer", CHUNKED + "3\r\nabc\r\n0\r\nXY\r\n\r\n")]),
    "a request line without a version, or with an odd one": (400, [
        ("HTTP/0.9", f"GET {SMALL}\r\n\r\n"), ("HTTP/0.9 with a space", "GET /v1/lim its\r\n\r\n"),
        ("http/1.1", GET.replace("HTTP/1.1", "http/1.1") + HOST + "\r\n"), ("HTTP/1.10", GET.replace("1.1", "1.10") + HOST + "\r\n"),
        ("HTTP/1", GET.replace("1.1", "1") + HOST + "\r\n"), ("HTTP/01.1", GET.replace("1.1", "01.1") + HOST + "\r\n"),
        ("a space behind", GET.replace("1.1", "1.1 ") + HOST + "\r\n"), ("XTTP/1.1", GET.replace("HTTP", "XTTP") + HOST + "\r\n"),
    ]),
    "a length or a chunk's size of 2^64 or more": (413, [
        ("length 2^64", POST + "Content-Length: 18446744073709551616\r\n\r\nabc"),
        ("size 2^64", CHUNKED + "10000000000000000\r\nabc"), ("size of 17 digits", CHUNKED + "FFFFFFFFFFFFFFFFF\r\nabc"),
    ]),
    "a target or method over 32 KiB": (414, [
        ("target", f"GET /{'y' * 33000} HTTP/1.1\r\n{HOST}\r\n"), ("query", f"GET /?{'y' * 33000} HTTP/1.1\r\n{HOST}\r\n"),
        ("method", f"{'G' * 33000} / HTTP/1.1\r\n{HOST}\r\n"),
    ]),
    "a header or trailers over 32 KiB, some hundreds of fields": (431, [
        ("one field", GET + HOST + "X: " + "y" * 33000 + "\r\n\r\n"), ("80 long fields", GET + HOST + f"X: {'y' * 500}\r\n" * 80 + "\r\n"),
        ("500 fields", GET + HOST + "X: y\r\n" * 500 + "\r\n"), ("2000 fields", GET + HOST + "X: y\r\n" * 2000 + "\r\n"),
        ("trailer", CHUNKED + "3\r\nabc\r\n0\r\nX: " + "y" * 33000 + "\r\n\r\n"),
        ("5000 trailers", CHUNKED + "3\r\nabc\r\n0\r\n" + "X: y\r\n" * 5000 + "\r\n"),
    ]),
    "another version of HTTP": (505, [
        ("HTTP/2.0", GET.replace("1.1", "2.0") + HOST + "\r\n"), ("HTTP/3.0", GET.replace("1.1", "3.0") + HOST + "\r\n"),
        ("HTTP/0.9 spelt out", GET.replace("1.1", "0.9") + "\r\n"), ("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ]),
    "a request line not in three parts; TLS": (CLOSED, [
        ("space in the path", f"GET /v1/lim its HTTP/1.1\r\n{HOST}\r\n"), ("space in front", " " + GET + HOST + "\r\n"),
        ("two spaces", f"GET  {SMALL}  HTTP/1.1\r\n{HOST}\r\n"), ("tabs", f"GET\t{SMALL}\tHTTP/1.1\r\n{HOST}\r\n"),
        ("a method alone", "GET\r\n\r\n"), ("TLS hello", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(1, 33)) + bytes(120)
                                           + b"\n\r\n\r\n"),
    ]),
    "a head that fits but leaves no room for its parts or the reply": (CLOSED, [
        ("1000 parameters", "GET /v1/version?" + "a=b&" * 1000 + f" HTTP/1.1\r\n{HOST}\r\n"),
        ("2000 cookies", GET + HOST + "Cookie: " + "a=b; " * 2000 + "\r\n\r\n"),
        ("all but 32 KiB", GET + HOST + "X: " + "y" * 32300 + "\r\n\r\n"),
    ]),
}


def library_faults(data, status):
    if status == CLOSED:
        return [] if data == b"" else [f"got {data[:100]!r}, expected nothing"]
    found = [int(line) for line in re.findall(rb"HTTP/1\.1 (\d+)", data)]
    html = b"<html>" in data and b"problem+json" not in data
    return [] if html and set(found) == {status} and len(found) <= 2 else [f"got {data[:200]!r}, expected {status} in HTML"]


def test_what_the_library_answers_itself():
    """In HTML or not at all, and the connection is closed. A row that turns into a problem document is good news: move it."""
    faults = []
    with start() as daemon:
        probe = Probe(daemon)
        for row, status, name, request in [(row, status, *case) for row, (status, cases) in LIBRARY.items() for case in cases]:
            smuggled = SMUGGLED.encode() if isinstance(request, bytes) else SMUGGLED
            data, closed = exchange(daemon, request + smuggled)
            faults += [f"{row}, {name}: {fault}" for fault in library_faults(data, status)]
            faults += [] if closed else [f"{row}, {name}: not closed"]
            faults += probe.faults(name)
            if len(faults) > ENOUGH:
                break
    assert not faults, "; ".join(faults)
    assert_nothing_smuggled(daemon)


def test_the_readme_lists_what_the_library_answers():
    table = README.read_text().split("\n| what came | answer |\n", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[1:]]
    listed = {what: CLOSED if answer == "closed" else int(answer) for what, answer in cells}
    assert listed == {row: status for row, (status, _) in LIBRARY.items()}, listed


# ---- what the library hides -----------------------------------------------------------------------------------------

# It overwrites the two bytes between lines with NULs, so two others look the same. Each is let in, and followed by
# SMALL, or (by another version) refused: both are right, and nothing else is.
HIDDEN = [
    ("NUL LF behind a field", GET + HOST + "X: a\0\nY: b\r\n\r\n"),
    ("a length behind NUL LF", POST + f"X: a\0\nContent-Length: 64\r\n\r\n{BODY}"),
    ("a coding behind NUL LF", POST + f"X: a\0\nTransfer-Encoding: chunked\r\n\r\n40\r\n{BODY}\r\n0\r\n\r\n"),
    ("NUL LF for the empty line", GET + HOST + "X: a\r\n\0\n"),
    ("colon LF for the empty line", GET + HOST + "X: a\r\n:\n"),
]


def test_known_limits_of_the_gate():
    faults = []
    with start() as daemon:
        probe = Probe(daemon)
        for name, request in HIDDEN:
            data, _ = exchange(daemon, request + GET + HOST + "Connection: close\r\n\r\n")
            if data.startswith(b"HTTP/1.1 4"):
                print(f"   {name}: refused, no limit any more", flush=True)
            elif split_replies(data) != [(200, probe.body)] * 2:
                faults.append(f"{name}: {data[:300]!r}")
    assert not faults, "; ".join(faults)


# ---- let in ---------------------------------------------------------------------------------------------------------

IN_STEP = [
    # name, request, status
    ("plain", GET + HOST + "\r\n", 200),
    ("leading CRLF", "\r\n" + GET + HOST + "\r\n", 200),
    ("many leading CRLFs", "\r\n" * 100 + GET + HOST + "\r\n", 200),
    ("no space behind the colon", GET + "host:x\r\n\r\n", 200),
    ("white space around values", GET + "Host: \t x \t\r\nAccept:  application/json \r\nX-Posenc-Timeout-Ms: 1000 \r\n\r\n", 200),
    ("an address for Host", GET + "Host: [::1]:8080\r\n\r\n", 200),
    ("bytes beyond ASCII in a value", GET + HOST + "X: \xc3\xa9\xff\r\n\r\n", 200),
    ("an empty value", GET + HOST + "X:\r\n\r\n", 200),
    ("127 more fields", GET + HOST + "X: y\r\n" * 127 + "\r\n", 200),
    ("a field of 30 KB", GET + HOST + "X: " + "y" * 30000 + "\r\n\r\n", 200),
    ("400 parameters", "GET /v1/version?" + "a=b&" * 400 + f" HTTP/1.1\r\n{HOST}\r\n", 400),
    ("a target of 30 KB", f"GET /{'y' * 30000} HTTP/1.1\r\n{HOST}\r\n", 404),
    ("absolute form", f"GET http://x:8080{SMALL} HTTP/1.1\r\n{HOST}\r\n", 200),
    ("absolute form of another host", f"GET HTTPS://y{SMALL} HTTP/1.1\r\n{HOST}\r\n", 200),
    ("escapes in path and query", GET.replace("v1", "%76%31").replace("sin", "%73in") + HOST + "\r\n", 200),
    ("%00 in the query", f"GET {SMALL}%00 HTTP/1.1\r\n{HOST}\r\n", 400),
    ("dots in the path", f"GET /v1/../v1/version HTTP/1.1\r\n{HOST}\r\n", 404),
    ("HTTP/1.2", GET.replace("1.1", "1.2") + HOST + "\r\n", 200),
    ("HTTP/1.0 with keep-alive", GET.replace("1.1", "1.0") + "Connection: keep-alive\r\n\r\n", 200),
    ("upgrade to HTTP/2", GET + HOST + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", 200),
    ("unknown Expect", GET + HOST + "Expect: banana\r\n\r\n", 200),
    ("unknown Expect with a body", POST + f"Expect: banana\r\nContent-Length: 64\r\n\r\n{BODY}", 200),
    ("GET with a body", GET + HOST + "Content-Length: 3\r\n\r\nabc", 200),
    ("GET with a body in chunks", GET + HOST + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200),
    ("GET with the content type of a body", GET + HOST + "Content-Type: application/json\r\n\r\n", 200),
    ("GET with a body of 0 bytes", GET + HOST + "Content-Length: 0\r\n\r\n", 200),
    ("POST without a length", POST + "\r\n", 400),
    ("POST of 0 bytes", POST + "Content-Length: 0\r\n\r\n", 400),
    ("POST of no chunks", CHUNKED + "0\r\n\r\n", 400),
    ("POST", POST + f"Content-Length: 64\r\n\r\n{BODY}", 200),
    ("length with zeros in front", POST + f"Content-Length: {'0' * 30}64\r\n\r\n{BODY}", 200),
    ("Chunked", POST + f"Transfer-Encoding: Chunked\r\n\r\n40\r\n{BODY}\r\n0\r\n\r\n", 200),
    ("size with zeros in front", CHUNKED + f"{'0' * 30}40\r\n{BODY}\r\n000\r\n\r\n", 200),
    ("extension", CHUNKED + f"40;a=b\r\n{BODY}\r\n0;c\r\n\r\n", 200),
    ("trailer", CHUNKED + f"40\r\n{BODY}\r\n0\r\nX-Sum: 1\r\n\r\n", 200),
    ("trailers that are no trailers", CHUNKED + f"40\r\n{BODY}\r\n0\r\nContent-Length: 3\r\nHost: y\r\n\r\n", 200),
    ("body of a route that is not there", f"POST /nothing HTTP/1.1\r\n{HOST}Content-Length: 64\r\n\r\n{BODY}", 404),
    ("body of a method that is not there", f"BREW /v1/encode HTTP/1.1\r\n{HOST}Content-Length: 64\r\n\r\n{BODY}", 501),
    ("body of a method that is not allowed", f"DELETE /v1/encode HTTP/1.1\r\n{HOST}Content-Length: 64\r\n\r\n{BODY}", 405),
    ("an odd name that is a token", GET + HOST + "Transfer_Encoding: chunked\r\n!#$%&'*+-.^_`|~: y\r\n\r\n", 200),
    # which the library takes in chunked bodies and nobody behind it sees
    ("LF behind sizes and chunks", CHUNKED + f"40\n{BODY}\n0\n\n", 200),
    ("NUL in an extension", CHUNKED + f"40;\0\r\n{BODY}\r\n0\r\n\r\n", 200),
]


def test_good_requests_stay_in_step():
    """The request behind each gets its exact bytes on the same connection, and then the connection ends as it asked."""
    faults = []
    with start() as daemon:
        probe = Probe(daemon)
        for name, request, status in IN_STEP:
            for piece in (None, 11):
                data, _ = exchange(daemon, request + GET + HOST + "Connection: close\r\n\r\n", piece)
                replies = split_replies(data)
                if [reply[0] for reply in replies] != [status, 200] or replies[1][1] != probe.body:
                    faults.append(f"{name}: {data[:300]!r}")
                elif status != 200 and json.loads(replies[0][1])["status"] != status:
                    faults.append(f"{name}: {replies[0][1]!r}")
    assert not faults, "; ".join(faults)


def test_heads_in_any_pieces():
    """Any good head, whatever the pieces it comes in and the requests around it, is let in."""
    rng = random.Random(11)
    with start() as daemon:
        for _ in range(40):
            requests = []
            for _ in range(rng.randrange(1, 5)):
                fields = ["Host: x"] + [f"X{i}:{' ' * rng.randrange(3)}{'v' * rng.choice([0, 1, 30, 200])}{' ' * rng.randrange(2)}"
                                        for i in range(rng.choice([0, 2, 50, 110]))]
                numbers = ",".join("1" for _ in range(rng.randrange(1, 400)))
                table = f"GET /v1/encode?type=learned&table=[[{numbers}]]&positions=0 HTTP/1.1"
                line, body = rng.choice([(GET.strip(), ""), (table, ""), (POST.split("\r\n")[0], BODY)])
                fields += [f"Content-Length: {len(body)}"] if body else []
                rng.shuffle(fields)
                requests.append("\r\n".join([line] + fields) + "\r\n\r\n" + body)
            data, _ = exchange(daemon, "".join(requests) + GET + HOST + "Connection: close\r\n\r\n", rng.choice([None, 100, 700, 5000]))
            statuses = [status for status, _ in split_replies(data)]
            assert statuses == [200] * (len(requests) + 1), (statuses, requests)


# ---- methods --------------------------------------------------------------------------------------------------------

ALL = "GET, HEAD, POST, OPTIONS"
METHODS = [
    # method, target, status, Allow
    ("OPTIONS", "/v1/encode", 204, ALL), ("OPTIONS", "/v1/apply", 204, "POST, OPTIONS"),
    ("OPTIONS", "/v1/version", 204, "GET, HEAD, OPTIONS"), ("OPTIONS", "*", 204, ALL), ("OPTIONS", "/nothing", 404, None),
    ("TRACE", "/v1/encode", 405, ALL), ("CONNECT", "x:443", 405, ALL), ("CONNECT", "/v1/encode", 405, ALL),
    ("PUT", "/v1/encode", 405, ALL), ("DELETE", "/v1/encode", 405, ALL), ("PATCH", "/v1/version", 405, "GET, HEAD, OPTIONS"),
    ("GET", "/v1/apply", 405, "POST, OPTIONS"), ("POST", "/v1/version", 405, "GET, HEAD, OPTIONS"), ("PUT", "/nothing", 404, None),
    ("get", "/v1/encode", 501, None), ("Get", "/v1/encode", 501, None), ("post", "/v1/encode", 501, None),
    ("GETS", "/v1/encode", 501, None), ("G", "/v1/encode", 501, None), ("BREW", "/v1/encode", 501, None),
    ("BREW", "/nothing", 501, None), ("PROPFIND", "/", 501, None), ("M-SEARCH", "/", 501, None), ("PRI", "/", 501, None),
    ("X" * 1000, "/", 501, None),
]


def test_methods():
    with start() as daemon, daemon.connect() as sock:
        for method, target, status, allow in METHODS:
            sock.sendall(f"{method} {target} HTTP/1.1\r\n{HOST}\r\n".encode())
            got, headers, body = receive_reply(sock)
            assert (got, headers.get("allow")) == (status, allow), (method, target, got, headers)
            if status == 204:
                assert body == b"" and "content-length" not in headers and "transfer-encoding" not in headers, headers
            else:
                assert json.loads(body)["status"] == status, (method, target, body)
        # HEAD of what is not allowed has the headers and no body.
        sock.sendall(f"HEAD /v1/apply HTTP/1.1\r\n{HOST}\r\n".encode())
        got, headers, body = receive_reply(sock, head=True)
        assert (got, headers["allow"], body) == (405, "POST, OPTIONS", b""), headers
        sock.sendall((GET + HOST + "\r\n").encode())
        assert receive_reply(sock)[0] == 200


# What a GET of each route needs to be a good one.
EXAMPLES = {
    "/v1/encode": ["type=sinusoidal&d_model=6&positions=0:4", "type=sinusoidal&d_model=6&positions=0:4&format=npy",
                   "type=sinusoidal&d_model=6&positions=0:4&format=raw", "type=sinusoidal&d_model=6&positions=0:4&format=csv",
                   "type=sinusoidal&d_model=6&positions=0:4&format=safetensors", "type=sinusoidal&d_model=6&positions=0:4&dtype=float64",
                   "type=sinusoidal&d_model=64&positions=0:3000&format=npy", "type=sinusoidal&d_model=64&positions=0:3000",
                   "type=nothing&positions=0:4", "type=sinusoidal&positions=0:4"],
    "/v1/shift": ["type=sinusoidal&d_model=4&distance=1", "type=random&seed=1&d_model=4&positions=0:8&distance=1"],
    "/v1/positions": ["mask=[[0,0,1,1,1]]&rule=opt"],
    "/v1/encodings/{type}": [""], "/v1/tables/{name}": [""],
}
NAMES = {"{type}": "sinusoidal", "{name}": "none"}
OWN = {"date", "x-request-id", "server-timing"}  # differ between any two replies


def fields(daemon, method, target):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=WAIT_S)
    connection.request(method, target)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    assert method == "GET" or body == b"", target
    named = {name.lower(): value for name, value in reply.getheaders() if name.lower() not in OWN}
    assert {name.lower() for name, _ in reply.getheaders()} >= {"date", "x-request-id"}, (method, target)
    return reply.status, named


def test_head_of_every_get():
    """The same status and headers. Where the length is not known before its end, HEAD has no framing and closes."""
    with start(admin=False) as daemon:
        routes = json.loads(daemon.get("/v1")[2])["routes"]
        paths = [route[4:] for route in routes if route.startswith("GET ")]
        assert len(paths) > 10 and set(EXAMPLES) <= set(paths), paths
        for path in paths:
            for query in EXAMPLES.get(path, [""]):
                target = re.sub(r"{\w+}", lambda name: NAMES[name[0]], path) + ("?" if query else "") + query
                status, want = fields(daemon, "GET", target)
                got_status, got = fields(daemon, "HEAD", target)
                if want.pop("transfer-encoding", None):
                    assert got.pop("connection") == "close", target
                if path == "/metrics":  # its numbers change
                    assert want.pop("content-length") and got.pop("content-length")
                assert status in (200, 400, 404) and (got_status, got) == (status, want), (target, got, want)


# ---- versions and connections ---------------------------------------------------------------------------------------

def test_http_1_0():
    """Closed after each reply unless it is kept alive; never chunked; Host is not asked for."""
    with start() as daemon:
        probe = Probe(daemon)
        old = GET.replace("1.1", "1.0")
        for request in (old + "\r\n", old + HOST + "\r\n", old + "Connection: close\r\n\r\n"):
            data, closed = exchange(daemon, request + SMUGGLED)
            status, headers, body = head_of(data)
            assert (status, body, closed) == (200, probe.body, True) and "transfer-encoding" not in headers, data
        with daemon.connect() as sock:
            for _ in range(3):
                sock.sendall((old + "Connection: Keep-Alive\r\n\r\n").encode())
                status, headers, body = receive_reply(sock)
                assert (status, body, headers["connection"].lower()) == (200, probe.body, "keep-alive"), headers
        long = old.replace("d_model=6&positions=0:4", "d_model=64&positions=0:10000")
        data, closed = exchange(daemon, long + "Connection: keep-alive\r\n\r\n")
        status, headers, body = head_of(data)
        assert status == 200 and closed and "transfer-encoding" not in headers and json.loads(body), headers
    assert_nothing_smuggled(daemon)


def test_connection_close_is_the_end():
    for field in ("Connection: close\r\n", "Connection: Close\r\n", "Connection: keep-alive, close\r\n"):
        with start() as daemon:
            data, closed = exchange(daemon, GET + HOST + field + "\r\n" + SMUGGLED)
            status, headers, _ = head_of(data)
            assert (status, headers["connection"].lower(), closed) == (200, "close", True), (field, data)
        assert_nothing_smuggled(daemon)


def test_pipelining():
    """2 to 50 requests in one piece: all answered, in order, each with its own bytes."""
    with start() as daemon:
        for n in (2, 3, 10, 50):
            rows = [f"type=sinusoidal&d_model={2 * (i % 7 + 1)}&positions={i}:{i + 3}" for i in range(n)]
            wants = [daemon.get("/v1/encode?" + row) for row in rows]
            posted = [json.dumps({"encoding": {"type": "sinusoidal", "d_model": 2 * (i % 7 + 1)}, "positions": f"{i}:{i + 3}"})
                      for i in range(n)]
            requests = [f"GET /v1/encode?{row} HTTP/1.1\r\n{HOST}\r\n" if i % 2 == 0 else
                        f"{POST}Content-Length: {len(posted[i])}\r\n\r\n{posted[i]}" for i, row in enumerate(rows)]
            data, _ = exchange(daemon, "".join(requests) + GET + HOST + "Connection: close\r\n\r\n")
            replies = split_replies(data)
            assert [body for _, body in replies[:-1]] == [body for _, _, body in wants], n
            assert [status for status, _ in replies] == [200] * (n + 1), n


# ---- bodies ---------------------------------------------------------------------------------------------------------

def in_chunks(body, size, trailers=b"", extension=b""):
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


def test_chunked_uploads_are_the_body_in_one_piece():
    import gzip
    numbers = b",".join(b"%d.25" % i for i in range(40))
    embeddings = b'{"encoding":{"type":"sinusoidal"},"embeddings":[[' + numbers + b"]]}"
    raw = bytes(range(0, 64)) * 3
    uploads = [("/v1/encode", "", BODY.encode()), ("/v1/apply", "", embeddings), ("/v1/encode", "", b"{nonsense"),
               ("/v1/apply?type=sinusoidal&shape=4,12", "Content-Type: application/octet-stream\r\n", raw),
               ("/v1/apply", "Content-Encoding: gzip\r\n", gzip.compress(embeddings))]
    with start() as daemon:
        for target, more, body in uploads:
            line = f"POST {target} HTTP/1.1\r\n{HOST}{more}X-Request-Id: same\r\nConnection: close\r\n".encode()
            data, _ = exchange(daemon, line + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            status, _, want = head_of(data)
            assert status in (200, 400) and (status == 400) == (b"nonsense" in body), data
            for upload in (in_chunks(body, 1), in_chunks(body, 7, b"X-Sum: 1\r\nX-Other: 2\r\n"), in_chunks(body, 1, b"X: y\r\n", b";a=b"),
                           in_chunks(body, len(body)), in_chunks(body, 16, b"", b";quoted=\"x y\"")):
                for piece in (None, 5):
                    data, _ = exchange(daemon, line + b"Transfer-Encoding: chunked\r\n\r\n" + upload, piece)
                    assert head_of(data)[::2] == (status, want), (target, upload, data)


def test_expect_100():
    """Continued only when the body is wanted, and never for another expectation."""
    with start("--body-bytes", "1024") as daemon:
        probe = Probe(daemon)
        with daemon.connect(timeout=WAIT_S) as sock:
            sock.sendall((POST + "Expect: 100-continue\r\nContent-Length: 64\r\n\r\n").encode())
            assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(BODY.encode())
            assert receive_reply(sock)[2] == probe.body
        for request, status in [(POST + "Content-Length: 1025\r\n", 413), (POST + "Content-Length: 3\r\nContent-Length: 3\r\n", 400),
                                (POST.replace("encode", "nothing") + "Content-Length: 64\r\n", 404),
                                (POST.replace("encode", "version") + "Content-Length: 64\r\n", 405)]:
            data, closed = exchange(daemon, request + "Expect: 100-continue\r\n\r\n")  # and no body
            assert not problem_faults(data, status) and closed, data
        data, _ = exchange(daemon, POST + f"Expect: banana\r\nConnection: close\r\nContent-Length: 64\r\n\r\n{BODY}")
        assert data.startswith(b"HTTP/1.1 200 ") and data.endswith(probe.body), data


def test_chunk_of_almost_2_to_the_64():
    """Its size cannot be seen, but what comes of it is counted: the limit of a body holds."""
    with start("--body-bytes", "100000") as daemon:
        probe = Probe(daemon)
        for size in ("ffffffffffffffff", "8000000000000000", "7fffffffffffffff"):
            data, closed = exchange(daemon, CHUNKED + size + "\r\n" + " " * 1000000)
            assert closed and b" 200 " not in data, data
            assert not probe.faults(size)


def cpu_seconds(daemon):
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        user, system = file.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / 100


def test_extension_that_fills_the_buffer():
    """Nothing can come of it and the library has no answer, so it is cut long before any timeout: a crowd of these would
    keep the loop busy."""
    with start() as daemon:
        probe = Probe(daemon)
        data, closed = exchange(daemon, CHUNKED + "40;" + "a" * 60000 + "\r\n" + BODY + "\r\n0\r\n\r\n" + SMUGGLED)
        assert data == b"" and closed, data
        entry = daemon.wait_log(lambda e: e.get("target") == "/v1/encode")
        assert entry["status"] == 408 and "chunk" in entry["detail"], entry
        spent = cpu_seconds(daemon)
        daemon.wait_metric("posenc_connections", 1)
        time.sleep(0.5)
        assert cpu_seconds(daemon) - spent < 0.25, "the loop is busy with a connection that is gone"
        assert not probe.faults("extension")
    assert_nothing_smuggled(daemon)


def test_long_extensions_get_on():
    """Those that fit are no reason to cut, however slowly they come, nor is a body that comes faster than it is read."""
    with start() as daemon:
        probe = Probe(daemon)
        with daemon.connect(timeout=WAIT_S) as sock:
            sock.sendall((CHUNKED + "10;" + "a" * 25000).encode())
            for i in range(4):
                time.sleep(0.6)
                more = "10;" + "a" * 25000 if i < 3 else "0\r\n\r\n"
                sock.sendall(f"b\r\n{BODY[16 * i:16 * i + 16]}\r\n{more}".encode())
            assert receive_reply(sock)[::2] == (200, probe.body)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
