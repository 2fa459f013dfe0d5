#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GETs have the same bits and the same tag whichever kind of processor kernels, OpenBLAS and the C library have code
for, and on however many threads they are computed.

    python3 tests/http/test_bits.py build/posencd

The environment variable OPENBLAS_CORETYPE chooses among the kinds that OpenBLAS has code for, as far as this machine
can run it, and GLIBC_TUNABLES takes the fused operations away from glibc's functions. The daemon's own kernels ask
nobody; the daemon posencd-limited beside the one that is tested is linked so that PE_INSTRUCTIONS limits them.
"""
import contextlib
import json
import os
import subprocess
import sys

from _daemon import Daemon, NotTried, run_tests

PATH = sys.argv[1]
CORES = [("Prescott", "pni"), ("Nehalem", "sse4_2"), ("Haswell", "avx2"), ("SkylakeX", "avx512f")]
BLOCK = "/v1/block?tokens=the,dog,bites,the,man&width=96&layers=2&heads=3&weights_seed=1"
ENCODED = ["", "&type=rope&layout=halves", "&type=alibi", "&type=t5&seed=1", "&type=shaw&clip=4&seed=1",
           "&type=transformer_xl&seed=1", "&type=deberta&seed=1", "&type=cope&seed=1", "&type=wavlm&seed=1"]
GETS = [*(BLOCK + encoding for encoding in ENCODED),
        BLOCK + "&dtype=float64&naming=gpt2&activation=relu&format=safetensors",
        "/v1/similarity?type=sinusoidal&d_model=96&positions=0:40&w_seed=1&dtype=float64",
        "/v1/similarity?type=random&d_model=96&seed=1&positions=0:40&metric=cosine&dtype=float64",
        "/v1/head?type=sinusoidal&d_model=64&goal.attend=-1",
        "/v1/shift?type=random&d_model=48&seed=1&distance=3&dtype=float64",
        "/v1/properties?type=sinusoidal&d_model=96&positions=0:40",
        "/v1/bias?type=t5&seed=1&heads=4&query_positions=0:9&key_positions=0:9"]

# What a type needs beside its required parameters to be asked by a GET; tables from a seed where there is one.
SMALL = "[[0.5,-1,2.25],[1,0.125,-3],[0,7,0.1],[2,4,8]]"
NEEDS = {"learned": "table=" + SMALL, "custom": "by_distance=[[0.5,-1,2,0.25,3,1,0,1,2]]", "kerple": "p=1,2&a=0.5,0.25",
         "swin": "window=3,3&seed=1", "swin_v2": "window=3,3&seed=1", "time2vec": "d_model=24&seed=1",
         "fourier": "features=gaussian&n_frequencies=12&n_axes=1&seed=1", "shaw": "clip=4&seed=1"}
FILL = {"d_model": "24", "head_dim": "24", "layout": "halves", "seed": "1"}
# More of those whose kernels differ most: odd widths, far positions, fractions, rotary in all its forms.
MORE = ["/v1/encode?type=sinusoidal&d_model=515&positions=0:70&format=npy",
        "/v1/encode?type=sinusoidal&d_model=512&positions=4503599627370000:4503599627370064&format=npy",
        "/v1/encode?type=sinusoidal&d_model=96&positions=0.5,-3,1e6,7.25&dtype=float64&format=npy",
        "/v1/encode?type=sinusoidal&d_model=512&positions=0:600&format=npy",
        "/v1/encode?type=sinusoidal&d_model=96&positions=0:40&arithmetic=float32_pow&format=npy",
        "/v1/encode?type=rope&head_dim=96&layout=halves&positions=0:70:0.5&format=safetensors",
        "/v1/encode?encoding=llama-3.1-8b&positions=100000:100033&format=safetensors"]

WORDS = ",".join(map(str, range(30)))
WIDE = [f"/v1/block?tokens={WORDS}&width=96&layers=2&heads=3&weights_seed=1&dtype=float64&activation={activation}&format=raw"
        "&return=output" for activation in ("relu", "gelu", "gelu_tanh")]


@contextlib.contextmanager
def daemon_for(name, value, path=PATH, *options):
    """A daemon that a variable of the environment has take this machine for another one."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        with Daemon(path, *options, admin=False) as daemon:
            yield daemon
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def cores():
    """Those that this machine can be taken for; none where it is not one of this family."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        flags = []
    return [core for core, flag in CORES if flag in flags]


def expect_alike(replies, targets):
    """The same replies and tags under every name."""
    first, *others = replies
    for name in others:
        for target, (status, headers, body), wanted in zip(targets, replies[name], replies[first]):
            assert status == wanted[0] == 200, (target, body[:300])
            assert body == wanted[2], (name, target)
            assert headers["ETag"] == wanted[1]["ETag"] and headers["ETag"].startswith('"'), (name, target)


def test_gets_do_not_depend_on_the_blas():
    """Replies and tags are equal byte for byte; products of posted tensors, which are a BLAS's, differ."""
    rows = [[(i * 31 + c * 17) % 61 / 7 - 4 for c in range(96)] for i in range(24)]
    posted = json.dumps({"q": rows, "k": rows[::-1], "return": ["logits"]})
    replies, products = {}, {}
    for core in cores():
        with daemon_for("OPENBLAS_CORETYPE", core) as daemon:
            products[core] = daemon.post("/v1/attention", posted)[2]
            replies[core] = [daemon.get(target) for target in GETS]
    if len(set(products.values())) < 2:
        raise NotTried("this BLAS has the same sums for every kind of processor")
    expect_alike(replies, GETS)


def test_gets_do_not_depend_on_fused_operations():
    """glibc rounds some exponentials otherwise where the processor has them."""
    program = "import math; print([math.exp(-i / 97) for i in range(20000)])"
    exps, replies = set(), {}
    for tunables in ("glibc.malloc.check=0", "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4"):
        exps.add(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True,
                                env={**os.environ, "GLIBC_TUNABLES": tunables}).stdout)
        with daemon_for("GLIBC_TUNABLES", tunables) as daemon:
            replies[tunables] = [daemon.get(target) for target in WIDE]
    if len(exps) < 2:
        raise NotTried("this C library has the same exponentials with and without fused operations")
    expect_alike(replies, WIDE)


def query_of(row, schema):
    """type=rope&head_dim=24&layout=halves: what the type requires, and of a relative one also a seed and a width."""
    properties, required = schema["properties"], schema.get("required", [])
    query = f"type={row['type']}" + ("&" + NEEDS[row["type"]] if row["type"] in NEEDS else "")
    wanted = required + (["head_dim", "seed"] if row["family"] != "absolute" else [])
    for name in dict.fromkeys(wanted):
        if name in properties and f"&{name}=" not in query:
            choices = properties[name].get("enum", [FILL.get(name)])
            query += f"&{name}={FILL[name] if FILL.get(name) in choices else choices[0]}"
    return query


def targets_of(daemon):
    """GETs for every type that the daemon lists."""
    targets = []
    for row in json.loads(daemon.get("/v1/encodings")[2])["encodings"]:
        query = query_of(row, json.loads(daemon.get("/v1/encodings/" + row["type"])[2])["parameters"])
        if "encode" in row["operations"]:
            encode = f"/v1/encode?{query}&positions=" + ("[[0,1],[2,3]]" if row["type"] == "sinusoidal_nd" else "0:3")
            targets += [encode, encode + "&dtype=float64&format=safetensors"]
        elif "bias" in row["operations"]:
            n, heads = 9 if row["type"].startswith("swin") else 4, 2 if row["type"] == "kerple" else 1
            targets.append(f"/v1/bias?{query}&heads={heads}&query_positions=0:{n}&key_positions=0:{n}")
        else:
            targets.append(f"{BLOCK}&{query.replace('head_dim=24', 'head_dim=32')}")
    return targets


def test_gets_do_not_depend_on_instructions_and_workers():
    """Of every type: kernels for plain C, AVX2 and what there is, one worker and two."""
    limited = os.path.join(os.path.dirname(os.path.realpath(PATH)), "posencd-limited")
    if not os.path.exists(limited):
        raise NotTried(f"there is no {limited} (make limited)")
    asked = subprocess.run([limited, "--call", "GET " + MORE[0]], capture_output=True, check=False,
                           env={**os.environ, "PE_INSTRUCTIONS": "none of them"})
    assert asked.returncode != 0 and b"PE_INSTRUCTIONS" in asked.stderr, asked.stderr  # it does look at the variable
    replies, targets = {}, None
    for name, workers in (("plain", 2), ("avx2", 2), ("", 1), ("", 2)):
        with daemon_for("PE_INSTRUCTIONS", name, limited, "--workers", str(workers)) as daemon:
            targets = targets or targets_of(daemon) + GETS + MORE
            replies[name, workers] = [daemon.get(target) for target in targets]
    expect_alike(replies, targets)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
