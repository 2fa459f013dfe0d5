# SPDX-License-Identifier: MIT
"""Servers that are measured, each on a free port of the loopback address, and the load on them.

A server can be stopped in mid-work (SIGSTOP) while another one is measured, so that what it has left to do does not
take the other's processor. Whatever is started here is ended here: each server is a process group of its own.
"""
import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KEEPING_MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"


class Missing(Exception):
    """Says what is not installed."""


def cores():
    return len(os.sched_getaffinity(0))


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server:
    def __init__(self, port, command, patience_s=60, **more):
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL, start_new_session=True, **more)
        end = time.monotonic() + patience_s
        while not self.listens():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise Missing(f"{os.path.basename(command[0])} did not start")
            time.sleep(0.02)

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def stop(self):
        self.resume()
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        self.signal(signal.SIGKILL)
        self.process.wait()

    def cpu_s(self):
        """Processor time of all threads of all its processes so far."""
        ns = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.getpgid(int(pid)) == self.process.pid:
                    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                        with open(path, encoding="ascii") as file:
                            ns += int(file.read().split()[0])
        return ns / 1e9

    def status_bytes(self, name):
        """VmRSS or VmHWM: the memory of its first process, now and at most ever."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def posencd(build, *options):
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSENC_")}
    return Server(port, [os.path.join(build, "posencd"), "--listen", f"127.0.0.1:{port}", "--admin-listen=",
                         "--log-format", "off", *options], env=environment)


def bare(build):
    """libmicrohttpd alone (discard.c): /discard throws bodies away, /echo answers them with a megabyte."""
    port = free_port()
    return Server(port, [os.path.join(build, "bench-discard"), str(port)])


def fastapi():
    modules = "import torch, numpy, ujson, uvicorn, uvloop, httptools, fastapi"
    if subprocess.run(["/usr/bin/python3", "-c", modules], stderr=subprocess.DEVNULL).returncode != 0:
        raise Missing("FastAPI, uvicorn or torch")
    port = free_port()
    server = Server(port, ["/usr/bin/python3", os.path.join(HERE, "peer_service.py"), str(port), str(cores())],
                    env=dict(os.environ, GLIBC_TUNABLES=KEEPING_MALLOC))
    return server


NGINX = """daemon off;
worker_processes 1;
user root;
error_log /dev/null crit;
pid FOLDER/pid;
events { worker_connections 1024; }
http {
    access_log off;
    default_type application/json;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 300;
    keepalive_requests 1000000000;
    client_max_body_size 64m;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    server {
        listen 127.0.0.1:PORT backlog=4096;
        root FOLDER/files;
        location /read/ { alias FOLDER/files/; sendfile off; output_buffers 2 256k; }
        location /kept/ { alias FOLDER/files/; sendfile off; open_file_cache max=100; }
        location /discard { return 200 "{}"; }
    }
}
"""


class Nginx(Server):
    """One worker. files: {name: bytes}, served under /name as Debian's configuration has it, under /read/name without
    sendfile, and under /kept/name so that they are not opened for every request, either."""

    def __init__(self, files):
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise Missing("nginx")
        self.folder = tempfile.mkdtemp(prefix="posenc-bench-")
        os.mkdir(os.path.join(self.folder, "files"))
        for name, data in files.items():
            with open(self.path(name), "wb") as file:
                file.write(data)
        port = free_port()
        config = os.path.join(self.folder, "conf")
        with open(config, "w", encoding="ascii") as file:
            text = NGINX if os.geteuid() == 0 else NGINX.replace("user root;\n", "")
            file.write(text.replace("FOLDER", self.folder).replace("PORT", str(port)))
        super().__init__(port, [program, "-p", self.folder, "-c", config])

    def path(self, name):
        return os.path.join(self.folder, "files", name)

    def stop(self):
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """Connections that are kept busy with one request, as tests/load says."""

    def __init__(self, build, server, connections, target, body_file=None, content_type=None):
        command = [os.path.join(build, "load"), f"127.0.0.1:{server.port}", str(connections), "-", target]
        command += [body_file] if body_file else []
        command += [content_type] if content_type else []
        self.server = server
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, seconds, replies=0):
        self.server.resume()
        self.process.stdin.write(f"{seconds} {replies}\n")
        self.process.stdin.flush()

    def figures(self):
        """Of the window begun, when it is over."""
        line = self.process.stdout.readline()
        figures = {name: float(value) for name, value in (word.split("=") for word in line.split())}
        if not figures or figures["errors"] or not figures["requests"]:
            raise RuntimeError(f"load on {self.process.args}: {line!r}")
        return figures

    def window(self, seconds, replies=0):
        """Figures of at least so long and so many replies."""
        before = self.server.cpu_s()
        self.begin(seconds, replies)
        figures = self.figures()
        figures["cpu_us"] = (self.server.cpu_s() - before) * 1e6 / figures["requests"]
        return figures

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill() if self.process.poll() is None else None
        self.process.wait()
        self.process.stdout.close()
        self.server.resume()
