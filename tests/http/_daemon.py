# SPDX-License-Identifier: MIT
"""A running daemon for black-box tests.

    with Daemon(path, "--workers", "1") as daemon:
        status, headers, body = daemon.get("/v1/limits")

It listens on free ports of the loopback address, which its own log tells. Leaving the block stops it by SIGTERM and
fails when its exit code is not 0, so a leak or a race that a sanitizer found fails the test. Needs nothing but
Python's own library.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time


def knows_localhost():
    """Does this machine resolve the name? A bare root without /etc/hosts does not."""
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except OSError:
        return False


class NotTried(Exception):
    """Raised by a test that cannot be tried on this machine; says what is missing."""


def needs_localhost():
    if not knows_localhost():
        raise NotTried("this machine does not resolve localhost")


class Daemon:
    def __init__(self, path, *options, admin=True, ready_s=30):
        defaults = {"--listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0" if admin else "", "--log-format": "json"}
        command = [os.path.abspath(path), *options]
        for name, value in defaults.items():
            command += [] if name in options else [name, value]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL, env=self.environment())
        self.lines, self.log = [], []  # standard error: as text, and what of it is JSON
        self.new_line = threading.Condition()
        self.read_up_to = 0  # marks in the log so far
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        try:
            start = self.wait_log(lambda entry: entry.get("msg") == "listening", ready_s)
        except AssertionError:
            self.process.kill()
            raise
        self.port = int(start["address"].rsplit(":", 1)[1])
        self.admin_port = int(start["admin_address"].rsplit(":", 1)[1]) if admin else None
        self.expected_exit = 0

    @staticmethod
    def environment():
        """This process's, without options for a daemon."""
        return {name: value for name, value in os.environ.items() if not name.startswith("POSENC_")}

    # ---- the log

    def _read_log(self):
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            with self.new_line:
                self.lines.append(line)
                if isinstance(entry, dict):
                    self.log.append(entry)
                self.new_line.notify_all()
        with self.new_line:
            self.lines.append(None)
            self.new_line.notify_all()

    def wait_log(self, wanted, seconds=10):
        """The first log entry for which wanted(entry) is true."""
        seen, end = 0, time.monotonic() + seconds
        with self.new_line:
            while True:
                while seen < len(self.log):
                    seen += 1
                    if wanted(self.log[seen - 1]):
                        return self.log[seen - 1]
                left = end - time.monotonic()
                over = self.lines and self.lines[-1] is None
                assert left > 0 and not over, "not in the log: " + "\n".join(str(line) for line in self.lines[-30:])
                self.new_line.wait(left)

    def requests(self, target=None):
        """The log's entries of all requests finished so far: one more follows them, and is waited for."""
        if self.process.poll() is None:  # else stop() has waited for the end of the log
            self.read_up_to += 1
            mark = f"/read-up-to/{self.read_up_to}"
            self.get(mark)
            self.wait_log(lambda entry: entry.get("target") == mark, 60)
        with self.new_line:
            return [e for e in self.log if e.get("msg") == "request" and not e["target"].startswith("/read-up-to/")
                    and (target is None or e["target"] == target)]

    # ---- talking

    def connect(self, port=None, timeout=60):
        return socket.create_connection(("127.0.0.1", port or self.port), timeout=timeout)

    def raw(self, data, timeout=60):
        """Sends bytes on a fresh connection, returns all that comes until it is closed (or `timeout` passed)."""
        with self.connect(timeout=timeout) as sock:
            sock.sendall(data)
            return receive_all(sock)

    def request(self, method, target, body=None, headers=None, port=None, timeout=120):
        """(status, headers, body) on a connection of its own. The target goes out as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=timeout)
        try:
            connection.request(method, target, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def get(self, target, headers=None, **more):
        return self.request("GET", target, None, headers, **more)

    def post(self, target, body, headers=None, **more):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", target, body, headers, **more)

    # ---- watching

    def metrics(self):
        """The numbers of /metrics on the admin listener, by series: {'posenc_ready': 1.0, ...}."""
        status, _, body = self.get("/metrics", port=self.admin_port)
        assert status == 200, body
        rows = (line.rsplit(" ", 1) for line in body.decode().split("\n") if line and not line.startswith("#"))
        return {name: float(value) for name, value in rows}

    def wait_metric(self, name, value, seconds=10):
        """Waits until a series has the value."""
        end = time.monotonic() + seconds
        while True:
            got = self.metrics()[name]
            if got == value:
                return
            assert time.monotonic() < end, f"{name} is {got}, expected {value} within {seconds} s"
            time.sleep(0.02)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    # ---- stopping

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        """Its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"not ended within {seconds} s") from None

    def stop(self, seconds=60):
        if self.process.poll() is None:
            self.signal()
        code = self.wait(seconds)
        self.reader.join(10)
        tail = "\n".join(str(line) for line in self.lines[-40:])
        assert code == self.expected_exit, f"exit code {code}:\n{tail}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.stop()
        except AssertionError:
            if kind is None:
                raise


def receive_all(sock):
    """All bytes until the other side closes; what came before a reset or the socket's timeout counts."""
    data = b""
    try:
        while True:
            piece = sock.recv(1 << 20)
            if not piece:
                return data
            data += piece
    except (ConnectionResetError, TimeoutError):
        return data


def receive_reply(sock, head=False):
    """One reply from a socket: (status, headers by lower-case name, body). `head`: it has no body."""
    reply = http.client.HTTPResponse(sock, method="HEAD" if head else "GET")
    reply.begin()
    body = reply.read()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def split_replies(data):
    """All replies with a Content-Length in a row of bytes: [(status, body), ...]."""
    replies = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        replies.append((int(head.split(b" ")[1]), rest[:length]))
        data = rest[length:]
    return replies


def run_tests(namespace):
    """Calls every test_... function in order of the source; prints a line each and the counts; returns the exit code.

    One that raises NotTried is neither passed nor failed, and its line says so: `skip NAME reason`.
    """
    import sys
    import traceback
    only = sys.argv[2:]
    passed = failed = 0
    for name, function in list(namespace.items()):
        if not name.startswith("test_") or (only and name not in only and name[5:] not in only):
            continue
        start = time.monotonic()
        try:
            function()
            passed += 1
            print(f"ok {name} {time.monotonic() - start:.1f} s", flush=True)
        except NotTried as reason:
            print(f"skip {name} {reason}", flush=True)
        except Exception as error:  # any exception is a failed test, and the others still run
            failed += 1
            where = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in reversed(where) if f.filename == namespace["__file__"]), 0)
            print(f"FAIL {name} line {line}: {type(error).__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
