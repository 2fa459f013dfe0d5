#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GETs have the same bits and the same tag whichever kind of processor OpenBLAS and the C library have code for.

    python3 tests/http/test_bits.py build/posencd

The environment variable OPENBLAS_CORETYPE chooses among the kinds that OpenBLAS has code for, as far as this machine
can run it, and GLIBC_TUNABLES takes the fused operations away from glibc's functions.
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

WORDS = ",".join(map(str, range(30)))
WIDE = [f"/v1/block?tokens={WORDS}&width=96&layers=2&heads=3&weights_seed=1&dtype=float64&activation={activation}&format=raw"
        "&return=output" for activation in ("relu", "gelu", "gelu_tanh")]


@contextlib.contextmanager
def daemon_for(name, value):
    """A daemon that a variable of the environment has take this machine for another one."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        with Daemon(PATH, admin=False) as daemon:
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


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
