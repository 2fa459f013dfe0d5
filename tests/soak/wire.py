# SPDX-License-Identifier: MIT
"""HTTP/1.1 over a raw socket, for many requests a second: no library in between that would mend or hide anything.

A request is bytes that are sent as they are; a reply is read strictly, and what is no HTTP raises WireError.
"""
import collections
import re
import socket
import struct
import time

Reply = collections.namedtuple("Reply", "status head body cut")  # cut: more was to come than was wanted
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [\t\x20-\x7e]*\Z")
MOST_HEAD = 1 << 16
PIECE = 1 << 18


class WireError(Exception):
    """What came is no reply, or not all of one."""


class Closed(WireError):
    """The other side closed before the first byte of a reply."""


def field(head, name):
    """The value of a header field, b"" when there is none; the name in lower case."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return b""


def request(method, target, body=b"", fields=()):
    """The bytes of a request: its head, and the body apart, so that a large one is not copied."""
    lines = [f"{method} {target} HTTP/1.1", "Host: soak", *fields]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


class Wire:
    """One connection. Every wait ends after `patience` seconds, with TimeoutError."""

    def __init__(self, port, patience=60):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.patience = patience
        self.rest = b""

    def send(self, *pieces):
        """All bytes; a connection that was closed meanwhile may still hold the reply that says why."""
        try:
            if sum(map(len, pieces)) <= PIECE:
                self.sock.sendall(b"".join(pieces))
                return
            for piece in pieces:
                self.sock.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        """What has come, at least a byte; b"" at the end."""
        try:
            return self.sock.recv(PIECE)
        except ConnectionResetError:
            return b""

    def line_end(self, mark, most):
        """Where the mark begins in what has come and not been used."""
        start = 0
        while (at := self.rest.find(mark, start)) < 0:
            start = max(0, len(self.rest) - len(mark) + 1)
            piece = self.more()
            if not piece:
                raise Closed("closed") if not self.rest else WireError(f"cut in a head or chunk: {self.rest[-200:]!r}")
            self.rest += piece
            if len(self.rest) > most + PIECE:
                raise WireError(f"no end of a head or chunk: {self.rest[:200]!r}")
        return at

    def take_head(self):
        at = self.line_end(b"\r\n\r\n", MOST_HEAD)
        head, self.rest = self.rest[:at], self.rest[at + 4:]
        match = STATUS_LINE.match(head.split(b"\r\n", 1)[0])
        if not match:
            raise WireError(f"no status line: {head[:200]!r}")
        return int(match.group(1)), head

    def take(self, n):
        """The next n bytes."""
        if len(self.rest) >= n:
            body, self.rest = self.rest[:n], self.rest[n:]
            return body
        body, have = bytearray(n), len(self.rest)
        body[:have] = self.rest
        self.rest, view = b"", memoryview(body)
        while have < n:
            try:
                got = self.sock.recv_into(view[have:])
            except ConnectionResetError:
                got = 0
            if not got:
                raise WireError(f"body cut at {have} of {n} bytes")
            have += got
        return body

    def take_chunks(self, most):
        """(body, whether it was left in the middle)"""
        parts, size = [], 0
        while True:
            at = self.line_end(b"\r\n", 100)
            text, self.rest = self.rest[:at], self.rest[at + 2:]
            try:
                n = int(text, 16)
            except ValueError:
                raise WireError(f"chunk size {text[:40]!r}") from None
            part = self.take(n + 2)
            if part[n:] != b"\r\n":
                raise WireError("a chunk without its end")
            if n == 0:
                return b"".join(parts), False
            parts.append(part[:n])
            size += n
            if size > most:
                return b"".join(parts), True

    def take_rest(self, most):
        parts, size = [self.rest], len(self.rest)
        self.rest = b""
        while size <= most and (piece := self.more()):
            parts.append(piece)
            size += len(piece)
        return b"".join(parts), size > most

    def receive(self, method="GET", most=1 << 40):
        """The next reply; of a body over `most` bytes only the beginning, and then the connection is of no more use."""
        status, head = self.take_head()
        while status < 200:
            status, head = self.take_head()
        lower = head.lower()
        if method == "HEAD" or status in (204, 304):
            return Reply(status, head, b"", False)
        if b"\r\ntransfer-encoding: chunked" in lower:
            return Reply(status, head, *self.take_chunks(most))
        length = field(head, b"content-length")
        if not length:
            return Reply(status, head, *self.take_rest(most))
        if not length.isdigit():
            raise WireError(f"length {length!r}")
        n = int(length)
        return Reply(status, head, self.take(min(n, most)), n > most)

    def ask(self, data, method="GET"):
        """One request, as request() makes it, and its reply."""
        self.send(*data)
        return self.receive(method)

    def wait(self, seconds):
        """Has anything come within that time?"""
        if self.rest:
            return True
        self.sock.settimeout(seconds)
        try:
            piece = self.more()
        except TimeoutError:
            return False
        finally:
            self.sock.settimeout(self.patience)
        self.rest += piece
        return True

    def finish(self):
        """No more will be sent."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self, reset=False):
        """`reset`: the other side hears of it by a reset, as from a client that crashed."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def ends(reply):
    """Does the connection end with this reply?"""
    return reply.cut or field(reply.head, b"connection").lower() == b"close" or (
        not field(reply.head, b"content-length") and b"\r\ntransfer-encoding: chunked" not in reply.head.lower()
        and reply.status not in (204, 304))


class Pace:
    """The longest of many waits."""

    def __init__(self):
        self.longest, self.what = 0.0, ""

    def note(self, began, what):
        took = time.monotonic() - began
        if took > self.longest:
            self.longest, self.what = took, what
