#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The options of the daemon as a user meets them: test_config.py DAEMON.

Precedence of flag, environment, file and default; --print-config, --check-config, --help, --version, --healthcheck;
what is refused, with which exit code and message. `test_config.py DAEMON test_name...` runs only those. Needs
nothing but Python's own library.
"""
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _daemon import needs_localhost, run_tests  # noqa: E402

DAEMON = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

DEFAULTS = {
    "listen": "127.0.0.1:8080", "admin_listen": "127.0.0.1:9090", "presets_file": "", "tables_dir": "",
    "log_format": "auto", "workers": "auto", "queue_depth": 256, "connections": 4096, "connections_per_ip": 0,
    "requests_per_ip": 0, "idle_timeout_s": 75, "header_timeout_s": 10, "min_rate_bytes": "1KiB", "rate_patience_s": 20,
    "stream_timeout_s": 60, "deadline_ms": 30000, "drain_delay_ms": 0, "drain_timeout_ms": 25000,
    "body_bytes": "64MiB", "memory_bytes": "auto", "expanded_bytes": "256MiB", "envelope_bytes": "1MiB", "reply_bytes": "64MiB",
    "stream_bytes": "64GiB", "streams": 8, "streams_per_ip": 4, "batch_requests": 256, "tables_bytes": "1GiB",
    "plan_bytes": "64MiB",
}


def run(*args, env=None, timeout=20):
    """The daemon with these arguments and no environment but env."""
    return subprocess.run([DAEMON, *args], env=env or {}, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def effective(*args, env=None):
    result = run(*args, "--print-config", env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def file_with(folder, content):
    path = os.path.join(folder, "c.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def refused(*args, env=None, says=(), command="--print-config"):
    """Exit code 2, nothing on standard output, one line on standard error that holds all of `says`."""
    result = run(*args, *([command] if command else []), env=env)
    assert result.returncode == 2, f"exit code {result.returncode}: {result.stderr}"
    assert result.stdout == "", result.stdout
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), repr(result.stderr)
    for part in says:
        assert part in result.stderr, f"{part!r} is not in {result.stderr!r}"


def test_defaults_in_the_order_of_the_rows():
    config = effective()
    assert config == DEFAULTS, config
    assert list(config) == list(DEFAULTS), list(config)


def test_the_file_in_the_tree_is_what_is_printed():
    with open(os.path.join(ROOT, "config", "posencd.json"), encoding="utf-8") as file:
        assert file.read() == run("--print-config").stdout


def test_precedence():
    with tempfile.TemporaryDirectory() as folder:
        path = file_with(folder, {"deadline_ms": 3, "streams": 4, "workers": 5})
        env = {"POSENC_DEADLINE_MS": "2", "POSENC_STREAMS": "2"}
        config = effective("--deadline-ms", "1", "--config", path, env=env)
        want = dict(DEFAULTS, deadline_ms=1, streams=2, workers=5)
        assert config == want, config


def test_both_spellings_of_a_flag():
    assert effective("--deadline-ms", "7")["deadline_ms"] == 7
    assert effective("--deadline-ms=7")["deadline_ms"] == 7


def test_each_option_has_its_three_twins():
    for name, default in DEFAULTS.items():
        value = {"listen": "127.0.0.1:1", "admin_listen": "", "presets_file": "p.json", "tables_dir": "d",
                 "log_format": "json", "workers": 3, "expanded_bytes": "512MiB"}.get(name)
        if value is None:
            value = "2MiB" if name.endswith("_bytes") else 9
        assert value != default, name
        flag, variable = "--" + name.replace("_", "-"), "POSENC_" + name.upper()
        with tempfile.TemporaryDirectory() as folder:
            path = file_with(folder, {name: value})
            for config in (effective(flag, str(value)), effective(env={variable: str(value)}),
                           effective("--config", path), effective(env={"POSENC_CONFIG": path})):
                assert config == dict(DEFAULTS, **{name: value}), (name, config)


def test_what_is_printed_loads_again():
    args = ["--workers", "3", "--body-bytes", "1000000", "--expanded-bytes", "1GiB", "--tables-dir", 'a "b" \\ \u00e9']
    config = effective(*args)
    assert config["body_bytes"] == 1000000 and config["expanded_bytes"] == "1GiB", config
    with tempfile.TemporaryDirectory() as folder:
        assert effective("--config", file_with(folder, run(*args, "--print-config").stdout)) == config


def test_sizes_in_all_places():
    for text, want in [("65536", "64KiB"), ("64KiB", "64KiB"), ("1536KiB", "1536KiB"), ("2MiB", "2MiB"), ("1000001", 1000001)]:
        with tempfile.TemporaryDirectory() as folder:
            path = file_with(folder, {"body_bytes": text})
            for config in (effective("--body-bytes", text), effective(env={"POSENC_BODY_BYTES": text}),
                           effective("--config", path)):
                assert config["body_bytes"] == want, (text, config["body_bytes"])


def test_refused_flags():
    refused("--workers", "-1", says=["--workers: ", "at most 1024", "-1"])
    refused("--workers", "2", "--workers=2", says=["--workers: is given twice"])
    refused("--worker", "2", says=["--worker: ", "--workers"])
    refused("--listen", "8080", says=["--listen: ", "ADDRESS:PORT", '"8080"'])
    refused("--body-bytes", "1GB", says=["--body-bytes: ", "GiB", '"1GB"'])
    refused("--body-bytes", "1GiB", says=["--body-bytes: ", "expanded_bytes", "268435456"])
    refused("--log-format", "xml", says=["--log-format: ", "json", '"xml"'])
    refused("serve", says=['"serve"'])
    refused("--workers", command=None, says=["--workers: needs a value"])


def test_refused_variables():
    refused(env={"POSENC_WORKERS": "x"}, says=["POSENC_WORKERS: ", '"x"'])
    refused(env={"POSENC_DEADLINE": "1"}, says=["POSENC_DEADLINE: ", "POSENC_DEADLINE_MS"])
    # Also where a flag would have overruled it.
    refused("--workers", "1", env={"POSENC_WORKERS": "x"}, says=["POSENC_WORKERS: "])


def test_variables_of_a_kubernetes_service_are_ignored():
    assert effective(env={"POSENC_SERVICE_HOST": "10.0.0.1", "POSENC_SERVICE_PORT": "80",
                          "POSENC_PORT": "tcp://10.0.0.1:80", "POSENC_PORT_80_TCP_PROTO": "tcp"}) == DEFAULTS


def test_refused_files():
    with tempfile.TemporaryDirectory() as folder:
        for content, says in [
            ('{"worker": 1}', [": worker: ", '"workers"']),
            ('{"workers": 1, "workers": 1}', ["duplicate", "workers"]),
            ('{"workers": "1"}', [": workers: ", "whole number"]),
            ('{"workers": 99999}', [": workers: ", "1024", "99999"]),
            ('{"workers": 1,}', ["line 1"]),
            ('{"listen": "x"}', [": listen: "]),
            ("[]", ["object"]),
            ("", []),
        ]:
            path = file_with(folder, content)
            refused("--config", path, says=[path] + says)
        refused("--config", os.path.join(folder, "none.json"), says=["none.json: cannot be read: No such file"])
        refused("--config", folder, says=["cannot be read"])


def test_check_config():
    result = run("--check-config")
    assert result.returncode == 0, result.stderr
    assert (result.stdout + result.stderr).count("\n") == 1, (result.stdout, result.stderr)
    refused("--workers", "x", command="--check-config", says=["--workers: "])
    refused("--tables-dir", "/nonexistent/folder", command="--check-config", says=["/nonexistent/folder", "No such file"])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "x.npy"), "wb") as file:
            file.write(b"not numpy")
        refused("--tables-dir", folder, command="--check-config", says=["x.npy"])
    refused("--presets-file", "/nonexistent/p.json", command="--check-config", says=["/nonexistent/p.json"])


def test_help():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert all(len(line) <= 100 for line in result.stdout.split("\n"))
    for name in DEFAULTS:
        assert "--" + name.replace("_", "-") in result.stdout and "POSENC_" + name.upper() in result.stdout, name
    assert run("-h").stdout == result.stdout
    # Whoever asks for help gets it, whatever else is wrong.
    assert run("--help", "--bogus", env={"POSENC_BOGUS": "1"}).stdout == result.stdout


def test_version():
    result = run("--version")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert re.match(r"posencd \d+\.\d+\.\d+\n", result.stdout), result.stdout
    for word in ["commit", "numerics", "libmicrohttpd", "jansson", "OpenBLAS"]:
        assert re.search(rf"^{word} \S+", result.stdout, re.M), (word, result.stdout)


class Health(http.server.BaseHTTPRequestHandler):
    """Answers with the status of its server."""

    def do_GET(self):
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *args):
        pass


def with_server(status, check):
    server = http.server.HTTPServer(("127.0.0.1", 0), Health)
    server.status, server.paths = status, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        check(server, server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asks_once(*options):
    """The health check with these options, PORT filled in, is good and makes one request."""
    def check(server, port):
        result = run("--healthcheck", *(option.replace("PORT", str(port)) for option in options))
        assert result.returncode == 0, (options, result.stderr)
        assert server.paths == ["/healthz"], (options, server.paths)
    with_server(200, check)


def test_healthcheck_asks_the_admin_listener():
    for admin in ["127.0.0.1:PORT", "0.0.0.0:PORT", ":PORT", "[::]:PORT"]:
        asks_once("--admin-listen", admin)


def test_healthcheck_knows_names():
    needs_localhost()
    asks_once("--admin-listen", "localhost:PORT")


def test_healthcheck_without_an_admin_listener_asks_the_other():
    asks_once("--admin-listen=", "--listen", "127.0.0.1:PORT")


def test_healthcheck_fails_on_other_answers():
    def check(server, port):
        result = run("--healthcheck", "--admin-listen", f"127.0.0.1:{port}")
        assert result.returncode == 1 and "503" in result.stderr, result
        assert server.paths == ["/healthz"]
    with_server(503, check)


def test_healthcheck_fails_when_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        result = run("--healthcheck", "--admin-listen", f"127.0.0.1:{free.getsockname()[1]}")
    assert result.returncode == 1 and "accepts no connection" in result.stderr, result


def test_healthcheck_fails_on_a_silent_daemon_within_its_time():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        start = time.monotonic()
        result = run("--healthcheck", "--admin-listen", f"127.0.0.1:{silent.getsockname()[1]}")
        took = time.monotonic() - start
    assert result.returncode == 1, result
    assert 1.5 < took < 4, took


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
