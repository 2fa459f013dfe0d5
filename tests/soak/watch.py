# SPDX-License-Identifier: MIT
"""What a daemon holds while nobody asks it for anything: memory, descriptors, gauges."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "http"))
from _daemon import Daemon  # noqa: E402

GAUGES = {"posenc_connections": 1, "posenc_http_requests_in_flight": 1, "posenc_workers_busy": 0, "posenc_queue_depth": 0,
          "posenc_streams_active": 0}  # one connection and one request: those that ask
KEPT_LINES = 200


def flavour(path):
    """One of the slow ones, or release for all that run at full speed."""
    real = os.path.realpath(path)
    return next((name for name in ("asan", "tsan", "cov") if f"/{name}/" in real), "release")


class LastOnes(list):
    """Forgets what was appended long ago."""

    def append(self, value):
        super().append(value)
        if len(self) >= 2 * KEPT_LINES:
            del self[:KEPT_LINES]


class QuietDaemon(Daemon):
    """Forgets its log but for the last lines: a line per request would fill the memory of the test."""

    def __init__(self, path, *options, **more):
        super().__init__(path, *options, **more)
        with self.new_line:
            self.lines, self.log = LastOnes(self.lines), LastOnes(self.log)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def at_rest(self, seconds=30):
        """Waits until nothing goes on in it. (resident bytes, open descriptors)"""
        for name, value in GAUGES.items():
            self.wait_metric(name, value, seconds)
        return self.resident_bytes(), self.files_at_rest(seconds)

    def begin_ease(self):
        """One large request, so that there is something to give back, and from now on none."""
        with self.new_line:
            del self.log[:]
        status, _, _ = self.post("/v1/encode?type=sinusoidal&d_model=512&positions=0:4096&format=raw", b"{}")
        assert status == 200

    def at_ease(self, seconds=60):
        """Resident bytes once the daemon has given back what it kept for large requests: it does so some seconds after
        the last one."""
        self.wait_log(lambda entry: entry.get("msg") == "unused memory given back", seconds)
        return self.at_rest()[0]

    def files_at_rest(self, seconds=30):
        """Descriptors once the connection that asked last is closed: the least of what is seen until it stays."""
        least, since, end = self.open_files(), time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < min(end, since + 0.2):
            now = self.open_files()
            if now < least:
                least, since = now, time.monotonic()
            time.sleep(0.02)
        return least
