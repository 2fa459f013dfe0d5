#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A daemon to which the system is unkind: test_faults.py DAEMON [TEST...].

Folders of tables with all that is wrong in them, and files that change under the daemon; readers and writers of one
byte at a time, and processes that are stopped in the middle; too few descriptors, no room in memory; standard streams
that are closed or full. Each check is a function named test_...; the last line says how many passed.
"""
import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, receive_all, receive_reply, run_tests  # noqa: E402

PATH = os.path.abspath(sys.argv[1])
SANITIZED = any(flavour in PATH for flavour in ("asan", "tsan"))
SMALL = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
TABLE = "/v1/encode?encoding=table&positions=0:3"


def npy(rows):
    """A file of float32."""
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    head = head.ljust(117) + "\n"
    values = [value for row in rows for value in row]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values)


GOOD = npy([[0, 1], [2, 3], [4, 5]])


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


@contextlib.contextmanager
def shell(line):
    """A program that sets the stage and then becomes the daemon: `line` with its path and options as "$@"."""
    with folder() as where:
        script = where / "posencd"
        script.write_text(f'#!/bin/sh\nset -- {PATH} "$@"\n{line}\n')
        script.chmod(0o755)
        yield str(script)


def start_of(*options, path=PATH, seconds=60):
    """(exit code, what it said) of a start that is to end by itself."""
    done = subprocess.run([path, "--listen", "127.0.0.1:0", "--admin-listen", "", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False,
                          env=Daemon.environment())
    return done.returncode, done.stdout.decode("utf-8", "strict")


# ---- Tables ------------------------------------------------------------------------------------------------------------


def refused(where, *says):
    code, text = start_of("--tables-dir", str(where))
    assert code == 2, (code, text)
    assert text.startswith("posencd: ") and text.count("\n") == 1, text
    for word in says:
        assert word in text, (word, text)


def test_files_that_stop_the_start():
    """Each alone in a folder; the one line that is said names it."""
    def link(path):
        path.symlink_to("nowhere")

    def circle(path):
        path.symlink_to(path.name)

    rows = [
        ("dangling.npy", link, "No such file"),
        ("circle.npy", circle, ""),
        ("folder.npy", pathlib.Path.mkdir, "not a regular file"),
        ("pipe.npy", os.mkfifo, "not a regular file"),
        ("socket.npy", lambda path: socket.socket(socket.AF_UNIX).bind(str(path)), "not a regular file"),
        ("empty.npy", pathlib.Path.touch, ""),
        ("short.npy", lambda path: path.write_bytes(GOOD[:-1]), ""),
        ("long.npy", lambda path: path.write_bytes(GOOD + b"x"), ""),
        ("head.npy", lambda path: path.write_bytes(GOOD[:9]), ""),
        ("none.safetensors", pathlib.Path.touch, ""),
        ("short.safetensors", lambda path: path.write_bytes(b"\x40\0\0\0\0\0\0\0{"), ""),
    ]
    for name, make, says in rows:
        with folder() as where:
            make(where / name)
            refused(where, name, says)


def test_names_of_any_bytes():
    """They are refused, and the line that says so stays one line of UTF-8."""
    for name in (b"new\nline.npy", b"not\xffutf8.npy", b"sp ace.npy", b"\x1b[31m.npy", b"x" * 200 + b".npy"):
        with folder() as where:
            with open(os.path.join(os.fsencode(where), name), "wb") as file:
                file.write(GOOD)
            refused(where, "a table's name must be")


def test_folders_that_stop_the_start():
    with folder() as where:
        refused(where / "nowhere", "nowhere", "No such file")
        (where / "file").touch()
        refused(where / "file", "Not a directory")
        (where / "table.npy").write_bytes(GOOD)
        code, text = start_of("--tables-dir", str(where), "--tables-bytes", str(len(GOOD) - 1))
        assert code == 2 and "table.npy" in text and "tables_bytes" in text, (code, text)


def test_files_that_are_left_out():
    with folder() as where:
        (where / "table.npy").write_bytes(GOOD)
        for name in (".hidden.npy", "table.npy~", "notes.txt", "npy", ".npy"):
            (where / name).write_bytes(b"no table")
        with Daemon(PATH, "--tables-dir", str(where)) as daemon:
            status, _, body = daemon.get("/v1/tables")
            assert status == 200 and body.count(b'"name"') == 1, body


def test_files_that_change_while_they_serve():
    """The daemon goes on with what it loaded: cut short, written over, replaced, removed, and the folder with it."""
    big = npy([[i + 0.5] * 64 for i in range(20000)])  # 5 MB, many pages
    target = "/v1/encode?encoding=table&positions=0:20000&format=raw"
    with folder() as where:
        path = where / "table.npy"
        path.write_bytes(big)
        with Daemon(PATH, "--tables-dir", str(where)) as daemon:
            status, headers, first = daemon.get(target)
            assert status == 200 and len(first) == 20000 * 64 * 4
            with daemon.connect() as sock:  # one that has begun when the file goes
                sock.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                begun = sock.recv(1000)
                os.truncate(path, 100)
                assert (begun + receive_all(sock)).endswith(first)
            other = where / "other"
            other.write_bytes(npy([[9, 9]]))
            changes = [lambda: path.write_bytes(b"\xff" * len(big)), lambda: os.replace(other, path), path.unlink,
                       where.rmdir]
            for change in changes:
                change()
                status, after, body = daemon.get(target)
                assert status == 200 and body == first and after["ETag"] == headers["ETag"]
        where.mkdir()  # for the one that removes it


# ---- Few bytes at a time -------------------------------------------------------------------------------------------------


def slow_client(daemon, request, want):
    """Sends and receives single bytes through the smallest of buffers, for a while; then the rest."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(120)
    with sock:
        sock.connect(("127.0.0.1", daemon.port))
        for i in range(len(request)):
            sock.sendall(request[i:i + 1])
        got = bytearray()
        while len(got) < 4000:
            piece = sock.recv(1)
            if not piece:
                break
            got += piece
        got += receive_all(sock)
        head, _, body = bytes(got).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        assert body == want, (len(body), len(want))


def test_one_byte_at_a_time():
    """Buffered replies, streams of known length, and a big body on the way in."""
    body = b'{"encoding":{"type":"sinusoidal"},"embeddings":[[' + b",".join([b"0.25"] * 300) + b"]]}"
    with Daemon(PATH) as daemon:
        requests = [("GET", "/v1/encode?type=sinusoidal&d_model=64&positions=0:200&format=npy", b""),
                    ("GET", "/v1/encode?type=sinusoidal&d_model=64&positions=0:4000&format=npy", b""),
                    ("POST", "/v1/apply", body)]
        for method, target, data in requests:
            status, _, want = daemon.request(method, target, data or None)
            assert status == 200, want
            head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
            slow_client(daemon, head.encode() + data, want)


def test_stopped_in_the_middle():
    """SIGSTOP and SIGCONT make every wait of the daemon end early (EINTR): bytes neither get lost nor come twice."""
    target = "/v1/encode?type=sinusoidal&d_model=256&positions=0:20000&format=raw"
    with Daemon(PATH) as daemon:
        status, _, want = daemon.get(target)
        assert status == 200
        over = threading.Event()

        def disturb():
            while not over.is_set():
                daemon.signal(signal.SIGSTOP)
                time.sleep(0.005)
                daemon.signal(signal.SIGCONT)
                time.sleep(0.02)

        disturber = threading.Thread(target=disturb)
        disturber.start()
        try:
            for _ in range(3):
                status, _, body = daemon.get(target)
                assert status == 200 and body == want
                assert daemon.get(SMALL)[0] == 200
        finally:
            over.set()
            disturber.join()


# ---- Too few descriptors, no memory ----------------------------------------------------------------------------------------


def test_out_of_descriptors():
    """More connections than descriptors: the daemon lives, tells at its start, and serves when they are closed."""
    with shell('ulimit -n 40; exec "$@"') as path, Daemon(path, "--workers", "1") as daemon:
        assert any("too few file descriptors" in str(line) for line in daemon.lines), daemon.lines
        for _ in range(2):
            socks = [daemon.connect() for _ in range(100)]
            for sock in socks[:3]:
                sock.sendall(f"GET {SMALL} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            for sock in socks[:3]:  # those that came first are served all the same
                assert receive_reply(sock)[0] == 200
            assert daemon.process.poll() is None
            for sock in socks:
                sock.close()
            end = time.monotonic() + 60
            while True:
                try:
                    status = daemon.get(SMALL, timeout=5)[0]
                    break
                except OSError:
                    assert time.monotonic() < end, "no service after the crowd had left"
            assert status == 200


def test_too_few_descriptors_at_the_start():
    """It serves, or ends by itself with a line that tells why: never does it listen without being able to serve."""
    told = 0
    for limit in (5, 8, 12, 16, 24, 31):
        with shell(f'ulimit -n {limit}; exec "$@"') as path:
            code, text = start_of(path=path)
            assert code == 1 or (code == 127 and "shared librar" in text), (limit, code, text)
            told += text == f"posencd: the system allows {limit} file descriptors (ulimit -n), at least 32 are needed\n"
    assert told >= 4, told
    with shell('ulimit -n 32; exec "$@"') as path, Daemon(path, "--workers", "1") as daemon:
        assert daemon.get(SMALL)[0] == 200


def test_no_memory_at_the_start():
    """Address space from little to enough: it starts, or ends by itself (not by a signal), and says why."""
    if SANITIZED:
        return  # they need terabytes of it
    for megabytes in (16, 32, 64, 128, 256, 511, 512, 4096):
        with shell(f'ulimit -v {megabytes * 1024}; exec "$@"') as path:
            code, text = start_of("--check-config", "--workers", "2", path=path)
            told = f"posencd: the system allows {megabytes} MiB of address space (ulimit -v), at least 512 are needed\n"
            if megabytes < 512:
                assert (code == 1 and text == told) or (code == 127 and "shared librar" in text), (megabytes, code, text)
            else:
                assert code == 0, (megabytes, code, text)


# ---- Standard streams ------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def unseen(line):
    """A daemon whose log cannot be read: its port is chosen here. It is ready when it answers."""
    port = free_port()
    with shell(line) as path:
        process = subprocess.Popen([path, "--listen", f"127.0.0.1:{port}", "--admin-listen", "", "--log-format", "json"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=Daemon.environment())
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=10).close()
                    break
                except OSError:
                    assert process.poll() is None, f"ended with {process.returncode}"
                    assert time.monotonic() < end, "does not listen"
                    time.sleep(0.02)
            yield process, port
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, process.returncode
        finally:
            process.kill()
            process.wait()


def exchange(port, target):
    """All bytes of a reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return receive_all(sock)


def test_streams_closed_or_full():
    """Without somebody to talk to it serves; above all no line of the log goes to where a client reads."""
    closings = ["2>/dev/full", "2>&-", ">&-", "<&-", "<&- >&- 2>&-", ">/dev/full 2>&1"]
    for closing in closings:
        with unseen(f'exec "$@" {closing}') as (process, port):
            for _ in range(5):
                reply = exchange(port, SMALL)
                head, _, body = reply.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 "), (closing, reply)
                assert body.startswith(b'{"encoding"') and body.endswith(b"}") and b"request_id" not in body, (closing, reply)
                assert exchange(port, "/v1/none").count(b"HTTP/1.1 404") == 1
            for number in (0, 1, 2):  # never a socket, where a library's last words could go
                name = os.readlink(f"/proc/{process.pid}/fd/{number}")
                assert name.startswith("/dev/") or "pipe:" in name or name.startswith("/"), (closing, number, name)


def test_a_log_that_nobody_reads():
    """A pipe whose reader is gone: every line fails, no request does."""
    read, write = os.pipe()
    os.close(read)
    port = free_port()
    process = subprocess.Popen([PATH, "--listen", f"127.0.0.1:{port}", "--admin-listen", ""], stderr=write,
                               env=Daemon.environment())
    os.close(write)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                assert exchange(port, SMALL).startswith(b"HTTP/1.1 200 ")
                break
            except ConnectionRefusedError:
                assert process.poll() is None and time.monotonic() < end, process.returncode
                time.sleep(0.02)
        for _ in range(20):
            assert exchange(port, SMALL).startswith(b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, process.returncode
    finally:
        process.kill()
        process.wait()


def test_memory_of_all_requests():
    """Many replies that nobody reads: what would go beyond memory_bytes is a 503, and there is room again afterwards."""
    body = b'{"encoding":{"type":"none"},"embeddings":[[0]]}'
    target = "/v1/positions?format=raw"
    grid = b'{"positions":{"grid":[1000,1000]}}'  # 16 MB of positions
    with Daemon(PATH, "--memory-bytes", "256MiB", "--workers", "1") as daemon:
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(grid)}\r\n\r\n".encode()
        slow = []
        for _ in range(12):
            sock = daemon.connect()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(head + grid)
            slow.append(sock)
        first = [sock.recv(12) for sock in slow]
        assert first.count(b"HTTP/1.1 503") >= 1 and first.count(b"HTTP/1.1 200") >= 1, first
        assert daemon.resident_bytes() < (2 << 30 if SANITIZED else 400 << 20), daemon.resident_bytes()
        for sock in slow:
            sock.close()
        daemon.wait_metric("posenc_http_requests_in_flight", 1)
        status, _, reply = daemon.post("/v1/apply", body)
        assert status == 200, reply
        status, _, reply = daemon.post(target, grid)
        assert status == 200 and len(reply) == 16000000, (status, len(reply))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
