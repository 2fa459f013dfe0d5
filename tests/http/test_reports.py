#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Public reports about other services that serve numbers over HTTP, each tried here: test_reports.py DAEMON [TEST...].

A test is named after a project and its report, gives the trigger of the report and asserts what is right. Reports on
the numbers themselves are in tests/unit/check_reports_*.c. Not applicable, as there is no such feature: reports on
CORS (llama.cpp 6544 and 4511, ollama 4001, llamafile 600), on API keys (llama.cpp 5837, tt-inference-server 874), and
on the v2 inference protocol alone (its binary extension, parameters and model states).
"""
import gzip
import http.client
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, receive_all, receive_reply, run_tests, split_replies  # noqa: E402

PATH = sys.argv[1]
SMALL = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
HOST = "Host: x\r\n"
DOCUMENT = {"encoding": {"type": "sinusoidal", "d_model": 6}, "positions": "0:4"}
# Plenty: several parts of some seconds each in all, which no test waits for.
LONG = json.dumps({"encoding": {"type": "random", "seed": 1, "d_model": 512}, "positions": "0:30000"}).encode()
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")  # RFC 8259 section 6


def start(*options, **more):
    return Daemon(PATH, *options, **more)


def refused(reply, status=400):
    """The problem of a refusal, whose text is printable ASCII."""
    got, headers, body = reply
    assert got == status and headers["Content-Type"] == "application/problem+json", (got, body[:300])
    assert all(0x20 <= byte < 0x7f for byte in body), body
    return json.loads(body)


def none_of(constant):
    raise ValueError(constant + " is not JSON")


def strict(body):
    """A reply parsed by a parser that knows no NaN."""
    return json.loads(body, parse_constant=none_of)


def long_work(daemon, headers=""):
    """A socket on which work of seconds has been asked for."""
    sock = daemon.connect(timeout=120)
    sock.sendall(f"POST /v1/encode?format=npy HTTP/1.1\r\n{HOST}{headers}Content-Length: {len(LONG)}\r\n\r\n".encode() + LONG)
    return sock


def run(*arguments, **more):
    return subprocess.run([os.path.abspath(PATH), *arguments], capture_output=True, text=True, timeout=60,
                          env=Daemon.environment(), **more)


# ---- JSON and numbers -----------------------------------------------------------------------------------------------

def test_triton_server_5095_1963_3386_lists_of_floats_and_a_binary_way():
    """Long JSON lists were slow and the only way: here binary bodies give the same bits, and each reply tells its parts."""
    values = [math.sin(i) for i in range(20000)]
    rows = [values[i:i + 500] for i in range(0, len(values), 500)]
    with start() as daemon:
        target = "/v1/apply?type=sinusoidal&format=raw"
        status, headers, by_json = daemon.post("/v1/apply?format=raw", {"encoding": {"type": "sinusoidal"}, "embeddings": rows})
        assert status == 200, by_json
        for part in ("parse", "queue", "compute", "write"):
            assert re.search(rf"\b{part};dur=[0-9.]+", headers["Server-Timing"]), headers["Server-Timing"]
        binary = {"Content-Type": "application/octet-stream", "X-Posenc-Shape": "40,500", "X-Posenc-Dtype": "float32"}
        status, _, by_bytes = daemon.post(target, struct.pack("<20000f", *values), binary)
        assert status == 200 and by_bytes == by_json


def test_tensorflow_serving_989_1014_whole_numbers_are_json():
    """9e-07.0 was in a reply: every number is one of JSON's grammar and reads back as what was sent."""
    values = [9e-07, 1e16, 1e22, 1e-7, 123456789.0, 1e-45, -0.0, 0.0, 1.0, 16777216.0, 1e20, 3.4028234663852886e38, 1e21, 5e-5]
    narrow = [struct.unpack("<f", struct.pack("<f", value))[0] for value in values]
    with start() as daemon:
        for dtype, want, code in (("float32", narrow, "<f"), ("float64", values, "<d")):
            status, _, body = daemon.post("/v1/apply", {"encoding": {"type": "none"}, "dtype": dtype, "embeddings": [values]})
            assert status == 200, body
            tokens = body.decode().split("[[")[-1].split("]]")[0].split(",")
            assert len(tokens) == len(want) and all(NUMBER.fullmatch(token) for token in tokens), tokens
            got = [struct.pack(code, float(token)) for token in tokens]
            assert got == [struct.pack(code, value) for value in want], tokens


def test_tensorflow_serving_1136_0_96_is_accepted():
    """0.96 and 1.24 were refused for loss of precision: a number is rounded, and only one beyond the type is refused."""
    with start() as daemon:
        document = {"encoding": {"type": "none"}, "embeddings": [[0.96, 1.24, 0.1, 16777217, 1e-60]]}
        status, _, body = daemon.post("/v1/apply", document)
        assert status == 200 and strict(body)["embeddings"]["data"] == [[0.96, 1.24, 0.1, 16777216.0, 0.0]], body
        document["embeddings"] = [[0.96, 1e39]]
        assert refused(daemon.post("/v1/apply", document))["field"] == "embeddings[0][1]"


def test_pytorch_serve_1304_openvino_model_server_4337_no_nan_in_a_reply():
    """NaN in a reply, or a number left out: hidden keys are null in JSON and kept in binary, and an overflow is refused."""
    hidden = {"q": [[1, 0], [0, 1]], "k": [[1, 0], [0, 1]], "bias": [[0, None], [None, None]], "return": ["weights", "logits"]}
    with start() as daemon:
        status, _, body = daemon.post("/v1/attention", hidden)
        reply = strict(body)
        assert status == 200 and reply["weights"]["data"] == [[1.0, 0.0], [0.0, 0.0]], body
        assert reply["logits"]["data"][0][1] is None and reply["logits"]["data"][1] == [None, None], body
        status, _, body = daemon.post("/v1/attention?format=safetensors", hidden)
        logits = struct.unpack("<4f", body[-16:])
        assert status == 200 and logits[0] > 0 and logits[1:] == (-math.inf,) * 3, body
        large = {"encoding": {"type": "none"}, "embedding_scale": 10, "embeddings": [[1.0, 3e38]]}
        assert refused(daemon.post("/v1/apply", large))["field"] == "embeddings[0][1]"


def test_triton_client_bare_nan_is_refused_with_its_place():
    """Clients write NaN, Infinity and -Infinity into JSON: refused, with the place and a word on what is wrong."""
    with start() as daemon:
        for word in (b"NaN", b"Infinity", b"-Infinity", b"nan", b"inf"):
            body = b'{"encoding":{"type":"none"},"embeddings":[[0.96,' + word + b"]]}"
            problem = refused(daemon.post("/v1/apply", body))
            assert problem["field"] == "embeddings[0][1]" and "byte" in problem["detail"], problem
            refused(daemon.post("/v1/apply", b'{"encoding":{"type":"none"},"embedding_scale":' + word + b',"embeddings":[[1]]}'))


def test_ds4_43_rapidjson_2282_jsoncpp_1704_deep_nesting():
    """8,500 to 250,000 brackets ended the process: refused, in fields that are known and that are not, and it lives."""
    with start() as daemon:
        for n in (100, 8500, 10000, 250000):
            deep = b"[" * n + b"]" * n
            for body in (b'{"encoding":{"type":"none","d_model":2},"nothing":' + deep + b',"positions":"0:2"}', deep,
                         b'{"encoding":{"type":"none"},"embeddings":' + deep + b"}", b'{"encoding":' + b'{"a":' * n + b"1" + b"}" * n,
                         b'{"encoding":{"type":"none"},"embeddings":' + b"[" * n, b'{"requests":[' + b'{"requests":[' * n):
                for target in ("/v1/encode", "/v1/apply", "/v1/batch"):
                    assert len(json.dumps(refused(daemon.post(target, body)))) < 1000
        assert daemon.get(SMALL)[0] == 200


def test_llama_cpp_11738_9195_9210_6396_bytes_that_are_no_utf_8():
    """An error that quoted them ended the process: refused, in strings and in names, without an echo of the bytes."""
    with start() as daemon:
        for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\\ud800", b"\xc4\xe3\xba\xc3", b"\xf5\x80\x80\x80", b"\xe4\xb8", b"\\u0000"):
            for body in (b'{"encoding":{"type":"' + bad + b'"},"positions":"0:2"}', b'{"' + bad + b'":1,"positions":"0:2"}',
                         b'{"encoding":"' + bad * 1000 + b'"}', b'{"encoding":{"type":"none","d_model":2},"positions":"0:2' + bad + b'"}'):
                assert len(refused(daemon.post("/v1/encode", body))["detail"]) < 300
        for quoted in ("\x1b[31m", "\u202e", "\U0001f600", "\n", "\"", "\\"):  # good UTF-8 that is still not to be quoted as it is
            status, _, body = daemon.post("/v1/encode", {"encoding": quoted * 100, "positions": "0:2"})
            excerpt = json.loads(body)["detail"].split('" is not')[0]  # behind it are the names of all presets
            assert status == 400 and len(excerpt) < 100 and b"\x1b" not in body and b"\n" not in body, body
        assert daemon.get(SMALL)[0] == 200


def test_triton_server_140_unknown_output_names():
    """200 for the name of a tensor that there is not: refused, with the list of those that there are."""
    with start() as daemon:
        document = {"q": [[1, 0]], "k": [[1, 0]], "return": ["weights", "wieghts"]}
        problem = refused(daemon.post("/v1/attention", document))
        assert problem["field"] == "return" and "wieghts" in problem["detail"], problem
        assert all(name in problem["detail"] for name in ("weights", "logits", "output")), problem


def test_robotoff_942_only_the_tensors_asked_for():
    """150 MB came because of a tensor that nobody wanted: one by default, others by name, and a limit to the reply."""
    embeddings = {"embeddings": [[0.5, 1.0]] * 64, "encoding": {"type": "sinusoidal"}}
    with start("--reply-bytes", "131072") as daemon:
        _, _, body = daemon.post("/v1/attention", embeddings)
        assert "weights" in strict(body) and not {"logits", "content", "output", "terms"} & set(strict(body)), body[:200]
        _, _, body = daemon.post("/v1/attention", {**embeddings, "return": ["output"]})
        assert "output" in strict(body) and "weights" not in strict(body) and len(body) < 5000, body[:200]
        problem = refused(daemon.post("/v1/attention", {**embeddings, "return": ["weights", "logits", "terms"]}), 413)
        assert problem["option"] == "reply_bytes" and problem["limit"] == 131072 and problem["got"] > 131072, problem


# ---- HTTP -----------------------------------------------------------------------------------------------------------

def test_cpp_httplib_349_liblifthttp_45_hhvm_1384_continue_is_said_at_once():
    """Clients waited a second for a 100 that did not come: it comes before any of the body, or the final answer does."""
    body = json.dumps(DOCUMENT).encode() + b" " * 1000000
    with start("--body-bytes", "1200000") as daemon, daemon.connect() as sock:
        head = f"POST /v1/encode HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nContent-Length: "
        sock.sendall(f"{head}{len(body)}\r\n\r\n".encode())
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"  # and nothing of the body was sent
        sock.sendall(body)
        assert receive_reply(sock)[0] == 200
        sock.sendall(f"{head}1200001\r\n\r\n".encode())
        status, headers, _ = receive_reply(sock)
        assert status == 413 and headers["connection"] == "close", headers


def test_text_embeddings_inference_50_267_torchserve_430_3357_335_1094_632_limits_that_say_so():
    """A 413 in plain text at an undocumented limit, and a flag without effect: the limit, its option, and its exact edge."""
    limit = 100000
    with start("--body-bytes", str(limit), "--expanded-bytes", "1MiB") as daemon:
        assert json.loads(daemon.get("/v1/limits")[2])["body_bytes"] == limit

        def post(n, chunked=False):
            body = json.dumps(DOCUMENT).encode()
            body += b" " * (n - len(body))
            if not chunked:
                return daemon.post("/v1/encode", body)
            pieces = (body[i:i + 4096] for i in range(0, n, 4096))
            return daemon.request("POST", "/v1/encode", pieces)  # in chunks, as its length is not known
        for chunked in (False, True):
            assert post(limit - 1, chunked)[0] == post(limit, chunked)[0] == 200
            problem = refused(post(limit + 1, chunked), 413)
            assert (problem["limit"], problem["option"], problem["field"]) == (limit, "body_bytes", "body"), problem
            assert chunked or problem["got"] == limit + 1, problem
        for bomb in (b" " * (20 << 20), b'{"embeddings":[' + b"1," * (4 << 20), b'{"encoding":"' + b"x" * (20 << 20)):
            problem = refused(daemon.post("/v1/apply", gzip.compress(bomb), {"Content-Encoding": "gzip"}), 413)
            assert problem["limit"] > 0 and problem["option"] in ("expanded_bytes", "envelope_bytes"), problem
        assert daemon.get(SMALL)[0] == 200


def test_libevhtp_84_http_1_0_keep_alive():
    """ab, which speaks it, hung for 40 s: each reply has its length and the connection lives on; without, it ends."""
    with start() as daemon:
        with daemon.connect() as sock:
            for _ in range(3):
                sock.sendall(f"GET {SMALL} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n".encode())
                status, headers, body = receive_reply(sock)
                assert status == 200 and int(headers["content-length"]) == len(body), headers
                assert headers["connection"].lower() == "keep-alive" and "transfer-encoding" not in headers, headers
        data = daemon.raw(f"GET {SMALL} HTTP/1.0\r\n\r\n".encode())  # returns when it is closed
        assert [status for status, _ in split_replies(data)] == [200], data


def test_helix_shared_593_llama_cpp_11738_empty_bodies():
    """500 for an empty body: a 400 that says it is empty; and a GET that announces JSON is a GET."""
    with start() as daemon:
        for fields in ("", "Content-Length: 0\r\n", "Content-Type: application/json\r\n", "Transfer-Encoding: chunked\r\n"):
            end = "0\r\n\r\n" if "chunked" in fields else ""
            data = daemon.raw(f"POST /v1/encode HTTP/1.1\r\n{HOST}{fields}Connection: close\r\n\r\n{end}".encode())
            [(status, body)] = split_replies(data)
            assert status == 400 and "empty" in json.loads(body)["detail"], data
        assert daemon.get(SMALL, {"Content-Type": "application/json"})[0] == 200


def test_triton_server_3581_7086_8982_torchserve_2814_work_of_clients_that_left():
    """Work went on for nobody: what waits is dropped, what runs is stopped, and both are counted and logged as 499."""
    with start("--workers", "1") as daemon:
        socks = [long_work(daemon) for _ in range(4)]
        daemon.wait_metric("posenc_workers_busy", 1)
        daemon.wait_metric("posenc_http_requests_in_flight", 5, 30)  # with the one that asks
        for sock in socks:
            sock.close()
        daemon.wait_metric("posenc_http_requests_in_flight", 1, 30)
        daemon.wait_metric("posenc_workers_busy", 0, 30)
        assert daemon.metrics()['posenc_http_rejected_total{reason="client_gone"}'] == 4
        assert [entry["status"] for entry in daemon.requests("/v1/encode?format=npy")] == [499] * 4


def test_fleet_51461_modelence_346_dotcom_rendering_10450_triton_server_6909_idle_connections():
    """Balancers keep connections for 60 s and networks forget them after 900: the default lies between, and is documented."""
    idle_s = json.loads(run("--print-config").stdout)["idle_timeout_s"]
    assert 65 <= idle_s < 900, idle_s
    assert re.search(rf"--idle-timeout-s SECONDS\n(?: +[^- ].*\n)+? +.*default {idle_s};", run("--help").stdout)
    with start("--idle-timeout-s", "1") as daemon, daemon.connect() as sock:
        sock.sendall(f"GET {SMALL} HTTP/1.1\r\n{HOST}\r\n".encode())
        assert receive_reply(sock)[0] == 200
        assert receive_all(sock) == b""  # and the option has its effect: closed, without a word


# ---- starting, stopping, health -------------------------------------------------------------------------------------

def test_tensorflow_serving_1853_huggingface_toolkit_94_sigterm_ends_it():
    """SIGTERM was ignored: it ends the daemon, by either signal, and early in its start as well."""
    for number in (signal.SIGTERM, signal.SIGINT):
        with start() as daemon:
            daemon.signal(number)
            assert daemon.wait() == 0
    for wait_s in (0, 0.001, 0.005, 0.02):
        early = subprocess.Popen([os.path.abspath(PATH), "--listen", "127.0.0.1:0", "--admin-listen="], env=Daemon.environment(),
                                 stderr=subprocess.DEVNULL)
        time.sleep(wait_s)
        early.terminate()
        assert early.wait(60) in (0, -signal.SIGTERM), early.returncode


def test_livekit_egress_1384_signals_as_process_1():
    """The first process of a container has no default action for signals."""
    isolated = ["unshare", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], capture_output=True, check=False).returncode != 0:
        return  # needs rights
    process = subprocess.Popen([*isolated, os.path.abspath(PATH), "--listen", "127.0.0.1:0", "--admin-listen=", "--log-format", "json"],
                               stderr=subprocess.PIPE, env=Daemon.environment())
    try:
        entry = {}
        while entry.get("msg") != "listening":
            entry = json.loads(process.stderr.readline())
        assert entry["pid"] == 1, entry
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)
        process.stderr.read()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.stderr.close()


def test_sparkinfer_1079_hyper_3188_triton_server_6986_idle_connections_do_not_hold_it_up():
    """Stopping always took the whole grace of 30 s, or as long as somebody kept a connection open."""
    with start("--drain-timeout-ms", "600000") as daemon:
        socks = [daemon.connect() for _ in range(10)]
        for sock in socks[:5]:
            sock.sendall(f"GET {SMALL} HTTP/1.1\r\n{HOST}\r\n".encode())
            assert receive_reply(sock)[0] == 200
        daemon.signal()
        assert daemon.wait(60) == 0  # far less than the drain timeout
        for sock in socks:
            assert receive_all(sock) == b""
            sock.close()


def test_janus_42_235_conky_1649_libhttpserver_75_stop_with_suspended_connections():
    """The HTTP library hangs or aborts when it is stopped with connections that wait: here each gets its answer."""
    with start("--workers", "1", "--drain-timeout-ms", "0") as daemon:
        idle = [daemon.connect() for _ in range(5)]  # as browsers open ahead of need
        waiting = [long_work(daemon) for _ in range(4)]
        daemon.wait_metric("posenc_http_requests_in_flight", 5, 30)
        daemon.signal()
        statuses = [receive_reply(sock)[0] for sock in waiting]
        assert statuses == [503] * 4, statuses
        assert daemon.wait() == 0
        for sock in idle + waiting:
            sock.close()


def test_vllm_36960_omlx_1884_toolkit_13_llm_d_1734_gpustack_3189_health_beside_work():
    """Health checks waited behind the users' work, or said yes of an engine that hung: answered with the workers full."""
    with start("--workers", "1", "--queue-depth", "2") as daemon:
        socks = [long_work(daemon) for _ in range(3)]
        daemon.wait_metric("posenc_http_requests_in_flight", 4, 30)
        for port in (daemon.port, daemon.admin_port):
            for path in ("/healthz", "/readyz"):
                status, _, body = daemon.get(path, port=port)
                assert status == 200 and json.loads(body), body
        assert daemon.metrics()["posenc_workers_busy"] == 1, "the work was over before the health was asked for"
        for sock in socks:
            sock.close()


def test_distroless_183_1350_imgproxy_323_cloudflared_1126_crowdsec_bouncer_6_healthcheck_without_a_shell():
    """An image without curl has no health check: the daemon is its own, by the same configuration, with 0 or 1."""
    with tempfile.TemporaryDirectory() as folder, start() as daemon:
        file = pathlib.Path(folder) / "posencd.json"
        file.write_text(json.dumps({"admin_listen": f"127.0.0.1:{daemon.admin_port}"}))
        good = run("--config", str(file), "--healthcheck")
        assert good.returncode == 0, good
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = run("--healthcheck", "--admin-listen", f"127.0.0.1:{free.getsockname()[1]}")
        assert nobody.returncode == 1 and nobody.stderr, nobody


def test_triton_server_2600_text_generation_inference_3082_any_user():
    """Images that ran as their own user only: any id will do, without a home, a name or a place to write."""
    if os.getuid() != 0:
        return  # then all the others are this test
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = shutil.copy(PATH, folder)
        done = subprocess.run([path, "--call", f"GET {SMALL}"], capture_output=True, timeout=60, check=False, user=12345, group=0,
                              extra_groups=[], cwd="/", env={"PATH": "/nowhere"})
        assert done.returncode == 0 and b"0.84147096" in done.stdout, done
        process = subprocess.Popen([path, "--listen", "127.0.0.1:0", "--admin-listen=", "--log-format", "json"], user=12345, group=0,
                                   extra_groups=[], cwd="/", env={}, stderr=subprocess.PIPE)
        lines = (json.loads(line) for line in process.stderr)
        assert any(entry["msg"] == "listening" for entry in lines)
        process.terminate()
        process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 0


# ---- processors -----------------------------------------------------------------------------------------------------

def test_ollama_17916_xgboost_7653_openblas_6059_1155_4545_threads_follow_the_processors():
    """Eight threads on a quota of four were 45 times slower: as many workers as may run, said in the log, and BLAS adds
    none. The quota of a cgroup is in tests/unit/check_cpus.c."""
    one = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {one})
        with start() as daemon:
            entry = daemon.wait_log(lambda e: e.get("msg") == "listening")
            assert entry["workers"] == entry["cpus_allowed"] == 1, entry
            assert "cpu_quota_percent" in entry, entry
    finally:
        os.sched_setaffinity(0, before)
    with start("--workers", "2") as daemon:
        tasks = pathlib.Path(f"/proc/{daemon.process.pid}/task")
        threads = len(list(tasks.iterdir()))
        q = [[math.sin(i * j) for j in range(64)] for i in range(256)]
        assert daemon.post("/v1/attention?format=npy", {"q": q, "k": q})[0] == 200
        assert len(list(tasks.iterdir())) == threads


def test_openblas_2126_1755_4030_2136_4680_1844_concurrent_products():
    """Wrong products when several threads called a BLAS that was built for one: each reply has the bits it has alone."""
    documents = [json.dumps({"q": [[math.sin(n + 3 * i * j) for j in range(32)] for i in range(96)],
                             "k": [[math.cos(n + i * j) for j in range(32)] for i in range(96)]}).encode() for n in range(4)]
    with start("--workers", "4") as daemon:
        alone = [daemon.post("/v1/attention?format=npy", document)[2] for document in documents]
        assert len(set(alone)) == 4 and all(body.startswith(b"\x93NUMPY") for body in alone)
        wrong = []

        def client(n):
            connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
            for i in range(20):
                connection.request("POST", "/v1/attention?format=npy", documents[(n + i) % 4])
                if connection.getresponse().read() != alone[(n + i) % 4]:
                    wrong.append((n, i))
            connection.close()
        threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong


# ---- metrics and logs -----------------------------------------------------------------------------------------------

def test_rtl_433_3106_nfs_ganesha_1317_bifromq_271_content_type_of_metrics():
    """Prometheus 3 refuses a blank or wrong one."""
    with start() as daemon:
        for accept in ("*/*", "text/plain", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"):
            status, headers, body = daemon.get("/metrics", {"Accept": accept}, port=daemon.admin_port)
            assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers
            assert body.startswith(b"# HELP ") and body.endswith(b"\n")


def test_triton_server_3060_7672_histograms():
    """Sums and counts alone tell no percentiles: buckets that add up, to +Inf, which is the count."""
    with start() as daemon:
        for _ in range(5):
            daemon.get(SMALL)
        daemon.wait_metric('posenc_http_request_duration_seconds_count{route="/v1/encode"}', 5)
        metrics = daemon.metrics()
        name = 'posenc_http_request_duration_seconds_bucket{route="/v1/encode",le="'
        buckets = [(float(key[len(name):-2]), value) for key, value in metrics.items() if key.startswith(name)]
        assert len(buckets) > 5 and buckets[-1] == (math.inf, 5.0), buckets
        assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets), buckets
        assert metrics['posenc_http_request_duration_seconds_sum{route="/v1/encode"}'] > 0


def test_triton_server_6181_4718_text_embeddings_inference_374_vllm_27983_10968_request_ids():
    """An id of a megabyte was echoed, a malformed trace was passed on: a good id comes back and is in the log, another is
    replaced, and a trace is taken when it is one."""
    trace = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
    with start() as daemon:
        for asked, kept in [("mine-1", True), ("a" * 128, True), ("a" * 129, False), ("a" * 20000, False), ("with space", False),
                            ("caf\xe9", False), ("", False)]:
            data = daemon.raw(f"GET {SMALL} HTTP/1.1\r\n{HOST}X-Request-Id: {asked}\r\nConnection: close\r\n\r\n".encode("latin-1"))
            got = re.search(rb"\r\nX-Request-Id: ([^\r]*)\r\n", data)[1].decode()
            assert (got == asked) == kept and 0 < len(got) <= 128, (asked[:40], got)
            daemon.wait_log(lambda e, got=got: e.get("request_id") == got)
        for number, (sent, taken) in enumerate([(f"00-{trace}-01", True), (f"00-{trace}", False), (f"00-{trace}-01-x", False),
                                                (f"00-{'0' * 32}-b7ad6b7169203331-01", False), (f"ff-{trace}-01", False),
                                                (f"00-{trace.upper()}-01", False), ("x" * 5000, False)]):
            daemon.get(SMALL, {"X-Request-Id": f"trace-{number}", "traceparent": sent})
            entry = daemon.wait_log(lambda e, number=number: e.get("request_id") == f"trace-{number}")
            assert entry.get("trace_id") == (trace[:32] if taken else None), (sent, entry)
        problem = json.loads(daemon.get("/nothing", {"X-Request-Id": "mine-2"})[2])
        assert problem["request_id"] == "mine-2", problem


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
