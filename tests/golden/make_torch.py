#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""PyTorch's own float32 ladders and tables: torch_values.h. What the other scripts take from PyTorch is here, too.
Run it in this folder: /usr/bin/python3 make_torch.py. The result is committed.

Needs python3-torch of Debian (1.13, without MKL) and a CPU with AVX2. The frequencies are PyTorch's in the words of the
deployed code, and every step is held against it: which spellings give the same bits, which elements of a power are a
vector's and which the C library's. `sums` tell the bits of all frequencies of the widths 2 .. 1024, of powers and exponentials
of other numbers: sum of (2k + 1)*bits[k] mod 2^64. Tables are held against 60 digits: sines and cosines of the float32
angles are the nearest ones or next to them; how many are not the nearest is told.
"""
import math
import os

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"

import mpmath
import numpy as np
import torch

mpmath.mp.dps = 60
F32 = np.float32
BASES = [10000.0, 500000.0, 1e6, 150000.0]
WIDTHS = [16, 32, 48, 64, 80, 96, 128, 192, 256, 512]
POSITIONS = [0, 1, 2, 3, 7, 100, 511, 1000, 2047, 4095, 8191, 15962, 32767, 65535, 131071, 262143, 524287, 1000000, 1048575, 1048576]
BLOCK = 16

torch.set_num_threads(1)
assert "AVX2" in torch.__config__.show() and not torch.backends.mkl.is_available()


def powers(base, n, num, den):
    """base ** (arange(0, d, 2).float() / d)"""
    return base ** ((torch.arange(n, dtype=torch.int64) * num).float() / den)


def pow_rates(base, n, num, den):
    return (1.0 / powers(base, n, num, den)).numpy()


def exp_rates(base, n, num, den):
    return torch.exp((torch.arange(n) * num).float() * (-math.log(base) / den)).numpy()


RATES = {"float32_pow": pow_rates, "float32_exp": exp_rates}


def bits(values):
    return np.asarray(values, F32).view(np.uint32)


def same(a, b):
    return bool((bits(a) == bits(b)).all())


# ---- What the library counts on --------------------------------------------------------------------------------------

def spellings(base, d):
    n, log = d // 2, math.log(base)
    ladder = pow_rates(base, n, 2, d)
    assert same(ladder, (1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.int64).float() / d))).numpy())
    assert same(ladder, 1.0 / (base ** (torch.arange(0, d, 2).float() / torch.tensor(float(d)))))
    assert same(ladder, torch.pow(torch.tensor(base), torch.arange(0, d, 2) / d).reciprocal())
    assert same(ladder, F32(1) / powers(base, n, 2, d).numpy())
    wrong = (1.0 / (base ** (torch.arange(0, d, 2).double() / d))).float()  # exponents of float64 are another ladder
    assert d < 48 or not same(ladder, wrong)
    ladder = exp_rates(base, n, 2, d)
    assert same(ladder, torch.exp(torch.arange(0, d, 2) * (-log / d)))                            # the tutorial: int64 times double
    assert same(ladder, torch.exp(torch.arange(0, d, 2).float() * F32(-log / d)))
    assert same(ladder, torch.exp(torch.arange(n, dtype=torch.float) * -(log / n)))               # fairseq's i for 2i
    assert same(ladder, torch.exp(torch.stack([torch.arange(0, d, 2).float() * (-log / d)] * 2, 1)[:, 0]))  # not contiguous
    inv, p = torch.from_numpy(ladder), torch.tensor(POSITIONS)
    product = np.array(POSITIONS, F32)[:, None] * ladder[None]
    assert same(product, torch.outer(p.float(), inv)) and same(product, p[:, None] * inv)
    assert same(product, torch.einsum("i,j->ij", p.float(), inv))
    assert same(product, (inv[None, :, None] @ p[None, None].float())[0].T)                       # Llama's


def blocks(base, d):
    """Whole blocks of 16 are alike wherever they stand; what is left is powf's, as is all that is not contiguous."""
    exponents = torch.arange(0, d, 2).float() / d
    n = len(exponents)
    whole = n - n % BLOCK
    padded = torch.cat([exponents, torch.zeros(-n % BLOCK)])
    apart = (base ** torch.stack([exponents, exponents], 1)[:, 0]).numpy()
    got = (base ** exponents).numpy()
    assert same(got[:whole], (base ** padded).numpy()[:whole]) and same(got[whole:], apart[whole:])
    assert same(apart, [float(base ** e) for e in exponents])
    return not same(got[:whole], apart[:whole])


# ---- Writing ---------------------------------------------------------------------------------------------------------

def checksum(values):
    k = np.arange(len(values), dtype=np.uint64)
    return int(((2 * k + 1) * bits(values).astype(np.uint64)).sum(dtype=np.uint64))


def hexes(values):
    return ", ".join(float(v).hex() + "F" for v in values)


def ladders():
    for arithmetic, rates in RATES.items():
        for base in BASES:
            for d in WIDTHS:
                yield f'    {{"{arithmetic}", {base!r}, {d}, {{{hexes(rates(base, d // 2, 2, d))}}}}},'


def sums():
    for arithmetic, rates in RATES.items():
        for base in BASES + [100.0, 10000000.0, 3.4e38, 1.5]:
            for first in range(2, 1025, 128):
                all_of = [rates(base, (d + 1) // 2, 2, d) for d in range(first, min(first + 128, 1025))]
                yield f'    {{"{arithmetic}", {base!r}, {first}, UINT64_C({checksum(np.concatenate(all_of))})}},'


def steps(n):
    """Numbers in [0, 1) that C makes alike."""
    return (np.arange(n, dtype=np.uint64) * 2654435761 % 2**32 // 256).astype(F32) / F32(2**24)


def elementary():
    every = np.arange(int(bits(F32(1e-8))), int(bits(F32(88))), 509, dtype=np.uint32).view(F32)
    yield "exp", len(every), checksum(torch.exp(torch.from_numpy(-every)).numpy())
    e = steps(1 << 18)
    base = (F32(1) + steps(1 << 19)[1 << 18:] * F32(1 << 20)).astype(F32)
    yield "pow", len(e), checksum((torch.from_numpy(base) ** torch.from_numpy(e)).numpy())
    alone = torch.stack([torch.from_numpy(e)] * 2, 1)[:, 0]
    yield "rest", len(e), checksum((torch.from_numpy(base) ** alone).numpy())


def nearest(function, a):
    value = function(mpmath.mpf(float(a)))
    return F32(0) if value == 0 else F32(float(value))  # 53 bits, then 24: a tie in between would fail below


def tables():
    d = 64
    for arithmetic, rates in RATES.items():
        for base in BASES[:2]:
            angles = torch.tensor(POSITIONS).float()[:, None] * torch.from_numpy(rates(base, d // 2, 2, d))
            beside = 0
            both = torch.cat([angles.cos(), angles.sin()], 1).numpy()
            for row, a in zip(both, angles.numpy()):
                right = np.array([nearest(mpmath.cos, v) for v in a] + [nearest(mpmath.sin, v) for v in a], F32)
                assert (np.abs(bits(row).astype(np.int64) - bits(right).astype(np.int64)) <= 1).all()
                beside += int((bits(row) != bits(right)).sum())
            rows = ",\n     ".join("{" + hexes(row) + "}" for row in both)
            yield f'    {{"{arithmetic}", {base!r}, {beside},\n     {{{rows}}}}},'


def main():
    differ = 0
    for base in BASES:
        for d in WIDTHS:
            spellings(base, d)
        for d in range(2, 600):
            differ += blocks(base, d)
    assert differ > 100  # powf and the vectors are not the same function
    parts = [("struct torch_ladder torch_ladders", ladders()), ("struct torch_sum torch_sums", sums()),
             ("struct torch_elementary torch_elementaries",
              (f'    {{"{name}", {n}, UINT64_C({value})}},' for name, n, value in elementary())),
             ("struct torch_table torch_tables", tables())]
    with open("torch_values.h", "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_torch.py; not edited by hand.\n */\n/* clang-format off */\n")
        out.write(f"#define TORCH_D 64\nstatic const double torch_positions[] = {{{', '.join(str(p) for p in POSITIONS)}}};\n")
        for head, rows in parts:
            out.write(f"static const {head}[] = {{\n" + "\n".join(rows) + "\n};\n")
        out.write("/* clang-format on */\n")


if __name__ == "__main__":
    main()
