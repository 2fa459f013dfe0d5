# SPDX-License-Identifier: MIT
"""Whole requests, as clients see them: posencd against FastAPI with PyTorch (peer_service.py), and against nginx that
sends files of the same bytes. bench.py runs this:

    /usr/bin/python3 tests/bench/serve.py build/release [GROUP...]

A round measures one server while the other one is stopped, then the other way around; ratios are medians over rounds.
Groups are the functions measure_... below.
"""
import io
import json
import os
import statistics
import sys
import tempfile

from _rounds import (BUILD, ROUNDS, TINY, WINDOW_S, body_file, by_turns, median, median_ratio, npy_of, request,
                     run_groups, speed_ratio, tell, tell_missing, tell_points)
from _servers import Load, Missing, Nginx, bare, cores, fastapi, posencd

MANY_STREAMS = ("--streams", "64", "--streams-per-ip", "0")  # GETs of 2 MiB and more are: encode_512_json


class Bodies:
    """Files with the bodies that are posted."""

    def __init__(self, folder):
        try:
            import numpy
        except ImportError:
            raise Missing("numpy for this Python: /usr/bin/python3 has it with python3-numpy") from None
        self.folder = folder
        random = numpy.random.default_rng(1)
        x = random.standard_normal((512, 512)).astype("float32")
        heads = random.standard_normal((2, 8, 128, 64)).astype("float32")
        npy = io.BytesIO()
        numpy.save(npy, x)
        shortest = [[float(str(value)) for value in row] for row in x]
        q, k = ([[[float(str(value)) for value in row] for row in head] for head in side] for side in heads)
        self.files = {"apply.json": json.dumps({"encoding": {"type": "sinusoidal"}, "embeddings": shortest}).encode(),
                      "apply.npy": npy.getvalue(),
                      "attention.json": json.dumps({"q": q, "k": k}).encode()}
        for name, data in self.files.items():
            with open(self.path(name), "wb") as file:
                file.write(data)

    def path(self, name):
        return os.path.join(self.folder, name)


# ---- FastAPI and torch ----------------------------------------------------------------------------------------------

# name: our target, theirs, body, and which tensor of the reply is the same in both
PEER_ROWS = {
    "apply_512_json": ("/v1/apply", "/v1/apply", "apply.json", "embeddings"),
    "apply_512_json_by_hand": ("/v1/apply", "/v1/by_hand/apply", "apply.json", "embeddings"),
    "apply_512_npy": ("/v1/apply?type=sinusoidal", "/v1/apply_npy", "apply.npy", None),
    "encode_8_json": ("/v1/encode?type=sinusoidal&d_model=8&positions=0:8", "/v1/encode?tokens=8&d_model=8", None,
                      "vectors"),
    "encode_512_json": ("/v1/encode?type=sinusoidal&d_model=512&positions=0:512",
                        "/v1/encode?tokens=512&d_model=512", None, "vectors"),
    "encode_512_npy": ("/v1/encode?type=sinusoidal&d_model=512&positions=0:512&format=npy",
                       "/v1/encode?tokens=512&d_model=512&format=npy", None, None),
    "attention_128_json": ("/v1/attention", "/v1/attention", "attention.json", "weights"),
    "attention_128_json_by_hand": ("/v1/attention", "/v1/by_hand/attention", "attention.json", "weights"),
}
# What a service on libmicrohttpd could reach if the numbers cost nothing: it alone answers with a file at hand.
BARE_ROWS = {"npy_echo_1mb": ("/echo", "/v1/apply_npy", "apply.npy", None)}


def check_same(name, replies, member):
    """Both compute the same, or the ratio would say nothing."""
    import numpy
    if member:
        tensors = [numpy.array(json.loads(reply)[member]["data"]) for reply in replies]
    else:
        tensors = [numpy.load(io.BytesIO(reply)) for reply in replies]
    assert tensors[0].shape == tensors[1].shape and abs(tensors[0] - tensors[1]).max() < 1e-3, name


def kind_of(body):
    return "application/x-npy" if body and body.endswith(".npy") else "application/json" if body else None


def check_row(name, row, servers, bodies):
    *targets, body, member = row
    check_same(name, [request(server, "POST" if body else "GET", target, bodies.files.get(body), kind_of(body))
                      for server, target in zip(servers, targets)], member)


def peer_row(name, row, servers, bodies, connections):
    """How much faster the first server is than the second."""
    *targets, body, _ = row
    path, kind = bodies.path(body) if body else None, kind_of(body)
    with Load(BUILD, servers[0], connections, targets[0], path, kind) as ours, \
            Load(BUILD, servers[1], connections, targets[1], path, kind) as theirs:
        measured = by_turns([ours, theirs], WINDOW_S / 2, 2 if connections == 1 else 2 * cores())
    suffix = "" if connections == 1 else f"_{connections}"
    tell(f"{name}{suffix}/fastapi", speed_ratio(measured, connections), median(measured, "p50_us") / 1e3,
         measured)


def measure_peer():
    names = [f"{name}{suffix}/fastapi" for suffix in ("", "_32") for name in (*PEER_ROWS, *BARE_ROWS)]
    try:
        with tempfile.TemporaryDirectory() as folder, fastapi() as theirs, bare(BUILD) as library, \
                posencd(BUILD, *MANY_STREAMS) as ours:
            bodies = Bodies(folder)
            for connections in (1, 32):
                for name, row in PEER_ROWS.items():
                    check_row(name, row, (ours, theirs), bodies)
                    peer_row(name, row, (ours, theirs), bodies, connections)
                for name, row in BARE_ROWS.items():
                    peer_row(name, row, (library, theirs), bodies, connections)
    except Missing as what:
        tell_missing(names, what)


# ---- nginx ----------------------------------------------------------------------------------------------------------

MEGABYTE = "/v1/encode?type=sinusoidal&d_model=512&positions=0:512&format=npy"


def measure_tiny():
    names = ["tiny_get/nginx", "tiny_get_p99/nginx_time", "tiny_get_cpu/nginx_time", "tiny_get/nginx_tuned"]
    with posencd(BUILD) as ours:
        try:
            with Nginx({"tiny.json": request(ours, "GET", TINY)}) as nginx, Load(BUILD, ours, 32, TINY) as load:
                with Load(BUILD, nginx, 32, "/tiny.json") as nginx_load:
                    measured = by_turns([load, nginx_load])
                with Load(BUILD, nginx, 32, "/kept/tiny.json") as nginx_load:
                    tuned = by_turns([load, nginx_load])
        except Missing as what:
            tell_missing(names, what)
            return
    cpu = [statistics.fmean(pair[i]["cpu_us"] for pair in measured) for i in (0, 1)]
    ratios = (median_ratio(measured), median_ratio(measured, "p99_us"), cpu[0] / cpu[1], median_ratio(tuned))
    for name, ratio in zip(names, ratios):
        tell(name, ratio, cpu[0] / 1e3 if "cpu" in name else median(measured, "p50_us") / 1e3)


def measure_megabyte():
    with posencd(BUILD) as ours, bare(BUILD) as library:
        data = request(ours, "GET", MEGABYTE)
        try:
            with Nginx({"x.npy": data}) as nginx:
                with Load(BUILD, ours, 32, MEGABYTE) as load, Load(BUILD, nginx, 32, "/read/x.npy") as nginx_load:
                    measured = by_turns([load, nginx_load])
                    tell("npy_get_1mb/nginx", median_ratio(measured), median(measured, "p50_us") / 1e3, measured)
                # One token of a quarter of a million numbers: the upload is all there is to it.
                with open(nginx.path("wide.npy"), "wb") as file:
                    file.write(npy_of(1, 512 * 512))
                post = (nginx.path("wide.npy"), "application/x-npy")
                with Load(BUILD, nginx, 32, "/discard", *post) as nginx_load:
                    for name, server, target in (("npy_post_1mb", ours, "/v1/attention?encoding=none"),
                                                 ("npy_post_1mb_discarded", library, "/discard")):
                        with Load(BUILD, server, 32, target, *post) as load:
                            measured = by_turns([load, nginx_load])
                        tell(name + "/nginx", median_ratio(measured), median(measured, "p50_us") / 1e3, measured)
        except Missing as what:
            tell_missing(["npy_get_1mb/nginx", "npy_post_1mb/nginx", "npy_post_1mb_discarded/nginx"], what)


# ---- posencd against itself -----------------------------------------------------------------------------------------

HEAVY = "/v1/attention?type=sinusoidal&heads=8&return=output&format=npy"


def heavy_body(server, wanted_us=20000):
    """One whose request takes so much work: that grows nearly with the square of tokens."""
    tokens = 512
    for _ in range(2):
        with body_file(npy_of(tokens, 256)) as path, Load(BUILD, server, 1, HEAVY, path, "application/x-npy") as load:
            load.window(0.1, 3)
            each = load.window(0.2, 10)["cpu_us"]
        tokens = max(64, round(tokens * (wanted_us / each) ** 0.5)) if each else tokens
    print(f"serve: {tokens} tokens are some {wanted_us / 1e3:g} ms of work", file=sys.stderr)
    return npy_of(tokens, 256)


def measure_beside():
    with posencd(BUILD) as ours, body_file(heavy_body(ours)) as path, \
            Load(BUILD, ours, 4, HEAVY, path, "application/x-npy") as heavy, Load(BUILD, ours, 4, TINY) as tiny:
        heavy.begin(ROUNDS * 0.5)
        measured = [[tiny.window(0.5)] for _ in range(ROUNDS)]
        beside = heavy.figures()
        print(f"serve: beside {beside['requests_per_s']:.0f} large requests/s", file=sys.stderr)
        tell("tiny_beside_p50_time", median(measured, "p50_us"))
        tell("tiny_beside_p99_time", median(measured, "p99_us"))


def measure_connections():
    with posencd(BUILD) as ours, posencd(BUILD) as base, Load(BUILD, base, 64, TINY) as base_load:
        for n in (127, 128, 129, 256, 384, 512):
            with Load(BUILD, ours, n, TINY) as load:
                tell(f"connections_{n}/64", median_ratio(by_turns([load, base_load], WINDOW_S / 2, n)))


def measure_growth():
    """Milliseconds to a tiny request, by connections that ask at once: the best of all rounds."""
    sizes, rates = (1, 4, 16, 64, 256, 512), {}
    with posencd(BUILD) as ours:
        for _ in range(ROUNDS):
            for n in sizes:
                with Load(BUILD, ours, n, TINY) as load:
                    rates.setdefault(n, []).append(load.window(WINDOW_S / 3, n)["requests_per_s"])
    tell_points("tiny_get_by_connections", [(n, 1e3 / max(rates[n])) for n in sizes])


def measure_workers():
    # One thread reads and sends the JSON, 22 MB, however many work: 20 ms of it were measured beside 140 ms of work in 8
    # entries of 2048 rows, so that 1.79 was the most there could be. 4 entries of 4096 rows are as much JSON and twice
    # the work.
    embeddings = [[((i * 31 + j * 17) % 257) / 256 for j in range(64)] for i in range(4096)]
    entry = {"op": "attention", "encoding": {"type": "sinusoidal"}, "embeddings": embeddings, "heads": 2,
             "return": "output"}
    with body_file(json.dumps({"requests": [entry] * 4}).encode()) as path, posencd(BUILD, "--workers", "2") as two, \
            posencd(BUILD, "--workers", "1") as one, Load(BUILD, two, 1, "/v1/batch", path) as two_load, \
            Load(BUILD, one, 1, "/v1/batch", path) as one_load:
        measured = by_turns([two_load, one_load], WINDOW_S / 2, 2)
        best = [max(pair[i]["requests_per_s"] for pair in measured) for i in (0, 1)]
        tell("workers_2/1", best[0] / best[1], 1e3 / best[0])
        tell_points("batch_by_workers", [(2 - i, 1e3 / best[i]) for i in (1, 0)])


if __name__ == "__main__":
    run_groups(globals())
