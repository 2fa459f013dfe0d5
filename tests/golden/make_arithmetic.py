#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What float32 code computes in place of exact angles: arithmetic_values.h and the folders arithmetic_* of ../cases/encode.
Run it in this folder: /usr/bin/python3 make_arithmetic.py. The result is committed.

The frequencies are PyTorch's (make_torch.py), the steps behind them numpy's float32, in the order of the deployed code; what
ggml raises, and sines and cosines of float32 numbers, have 60 decimal digits (mpmath) and one rounding, as no two C libraries
agree on the last bit of theirs. numpy's own float32 functions are held against them here: frequencies to 3 units of the last
place, values to 2, and PyTorch's values to 1. The figures that were published for such tables are asserted by make_check.py.
"""
import math
import os

import make_torch
import mpmath
import numpy as np
import torch

from make_cases import case, tensor

mpmath.mp.dps = 60
F32, F64 = np.float32, np.float64
POSITIONS = [0, 1, 2, 257, 2049, 4095, 15962, 65519, 131071, 1048575, 9007199254740992, -3, .3, 1e-30]


def single(x):
    """A number of 60 digits rounded once: to 53 bits that are never a tie of 24, then to 24."""
    if x == 0:
        return F32(0)
    mantissa, exponent = mpmath.frexp(x)
    whole = int(mpmath.floor(mpmath.ldexp(abs(mantissa), 52)))
    odd = whole | (mpmath.ldexp(abs(mantissa), 52) != whole)
    return F32(math.ldexp(odd, int(exponent) - 52) * (1 if x > 0 else -1))


def of(function, *values):
    return single(function(*[mpmath.mpf(float(v)) for v in values]))


def raised(base, n, num, den):
    return [F32(v) for v in make_torch.powers(base, n, num, den).numpy()]


def power_rates(base, n, num, den):
    return [F32(1) / v for v in raised(base, n, num, den)]


def exp_rates(base, n, num, den):
    return [F32(v) for v in make_torch.exp_rates(base, n, num, den)]


def bfloat16(p):
    mantissa, exponent = math.frexp(p)
    return F32(math.ldexp(round(mantissa * 256), exponent - 8))  # round() takes ties to even


def linear(rate, f=3.0, **_):
    return rate / F32(f)


LLAMA3 = dict(f=8.0, low=1.0, high=4.0, context=8192)


def smooth(rate, f, low, high, context):
    """None outside the middle band; True where the frequency is divided."""
    wave = (F32(1) / rate) * F32(2 * math.pi)
    if wave > F32(context / low) or wave < F32(context / high):
        return None, wave > F32(context / low)
    return ((F32(1) / wave) * F32(context) - F32(low)) / F32(high - low), False


def llama3(rate, **k):
    s, divide = smooth(rate, **k)
    if s is None:
        return rate / F32(k["f"]) if divide else rate
    return ((F32(1) - s) * rate) / F32(k["f"]) + s * rate


def llama3_divisor(rate, **k):
    s, divide = smooth(rate, **k)
    if s is None:
        return F32(k["f"]) if divide else F32(1)
    return F32(1) / ((F32(1) - s) / F32(k["f"]) + s)


def angles(arithmetic, position, base, n, num, den, scaling=None):
    p = F32(position)
    if arithmetic == "ggml":
        step = of(mpmath.power, F32(base), F32(-num) / F32(den))
        divisors = [F32(1)] * n
        if scaling == "llama3":
            divisors = [llama3_divisor(r, **LLAMA3) for r in power_rates(base, n, num, den)]
        stretch, out = F32(1) / F32(3) if scaling == "linear" else F32(1), []
        for i in range(n):
            out.append(stretch * (p / divisors[i]))
            p = p * step
        return out
    rates = (exp_rates if arithmetic == "float32_exp" else power_rates)(base, n, num, den)
    if scaling:
        rates = [{"linear": linear, "llama3": llama3}[scaling](r, **LLAMA3) if scaling == "llama3" else linear(r) for r in rates]
    if arithmetic == "bfloat16_positions":
        p = bfloat16(position)
    elif arithmetic == "float16_positions":
        p = F32(np.float16(position))
    return [p * r for r in rates]


def points(angle_list):
    return [of(mpmath.cos, a) for a in angle_list], [of(mpmath.sin, a) for a in angle_list]


# ---- Against the libraries ------------------------------------------------------------------------------------------

def ulps(a, b):
    a, b = np.asarray(a, F32), np.asarray(b, F32)
    return float(np.max(np.abs(a.astype(F64) - b.astype(F64)) / np.spacing(np.maximum(np.abs(a), F32(1e-30))).astype(F64)))


def libraries():
    d, positions = 128, np.array([0, 1, 5, 257, 8191, 131071, 1048575], F32)
    for base in (10000.0, 500000.0, 1e6):
        pow_rates, our_exp = power_rates(base, d // 2, 2, d), exp_rates(base, d // 2, 2, d)
        steps = np.arange(0, d, 2).astype(F32)
        assert ulps(pow_rates, F32(1) / F32(base) ** (steps / F32(d))) <= 3
        assert ulps(our_exp, np.exp(steps * F32(-math.log(base) / d))) <= 3
        table = positions[:, None] * np.array(pow_rates, F32)
        ours = np.array([points(row)[0] for row in table], F32)
        assert ulps(ours, np.cos(table)) <= 2, ulps(ours, np.cos(table))
        assert ulps(ours, torch.cos(torch.from_numpy(table)).numpy()) <= 1
        with_torch = torch.tensor(np.array(pow_rates, F32))
        low, high, f, old = LLAMA3["low"], LLAMA3["high"], LLAMA3["f"], LLAMA3["context"]
        wave = 2 * math.pi / with_torch
        scaled = torch.where(wave > old / low, with_torch / f, with_torch)
        s = (old / wave - low) / (high - low)
        middle = ~(wave < old / high) * ~(wave > old / low)
        scaled = torch.where(middle, (1 - s) * scaled / f + s * scaled, scaled).numpy()
        assert [float(x) for x in scaled] == [float(llama3(F32(r), **LLAMA3)) for r in with_torch.numpy()]


# ---- Writing --------------------------------------------------------------------------------------------------------

ARITHMETICS = ["float32_pow", "float32_exp", "bfloat16_positions", "float16_positions", "ggml"]
SCALINGS = {None: "", "linear": " scaling.rope_type=linear scaling.factor=3",
            "llama3": " scaling.rope_type=llama3 scaling.factor=8 scaling.low_freq_factor=1 scaling.high_freq_factor=4"
                      " scaling.original_max_position_embeddings=8192"}
ROPES = [(10000.0, 12), (500000.0, 32)]
SINES = [("d_model=8", 8, 2, 8), ("d_model=7 base=500", 7, 2, 7), ("d_model=10 denominator=half_minus_one", 10, 2, 8),
         ("d_model=2 denominator=half_minus_one", 2, 0, 1), ("d_model=6 position_scale=1000 offset=0.5", 6, 2, 6)]


def bits(values):
    return ", ".join(hex(int(np.array(v, F32).view(np.uint32))) for v in values)


def rows():
    for arithmetic in ARITHMETICS:
        for p in POSITIONS:
            if arithmetic == "float16_positions" and abs(p) >= 65520:
                continue
            for base, d in ROPES:
                for scaling, text in SCALINGS.items():
                    if scaling and p not in (257, 131071, 1048575, .3):
                        continue
                    c, s = points(angles(arithmetic, p, base, d // 2, 2, d, scaling))
                    yield "rope", f"layout=halves head_dim={d} base={base:g}{text}", arithmetic, p, c + s
            for params, w, num, den in SINES:
                base = 500.0 if "base" in params else 10000.0
                x = p * 1000 + .5 if "scale" in params else p
                if arithmetic == "float16_positions" and abs(x) >= 65520:
                    continue
                c, s = points(angles(arithmetic, x, base, (w + 1) // 2, num, den))
                yield "sinusoidal", params, arithmetic, p, [(s if i % 2 == 0 else c)[i // 2] for i in range(w)]


def header():
    lines = []
    for kind, params, arithmetic, p, values in rows():
        lines.append(f'    {{"{kind}", "{params} arithmetic={arithmetic}", {p!r}, {len(values)}, {{{bits(values)}}}}},\n')
    with open("arithmetic_values.h", "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_arithmetic.py; not edited by hand.\n */\n/* clang-format off */\n"
                  f"static const struct arithmetic_row arithmetic_rows[] = {{\n{''.join(lines)}}};\n/* clang-format on */\n")
    print(len(lines), "rows")


def listed(values):
    return [float(str(F32(v))) for v in values]


def cases():
    sine = {"type": "sinusoidal", "d_model": 8, "base": 10000.0, "layout": "interleaved", "order": "sin_cos",
            "denominator": "half", "odd": "truncate", "position_scale": 1.0, "offset": 0.0, "arithmetic": "float32_exp"}
    table = []
    for p in range(0, 1000001, 250000):
        c, s = points(angles("float32_exp", p, 10000.0, 4, 2, 8))
        table.append(listed(v for pair in zip(s, c) for v in pair))
    case("encode/arithmetic_tutorial", "GET /v1/encode?type=sinusoidal&d_model=8&positions=0:1000001:250000&arithmetic=float32_exp",
         {"encoding": sine, "vectors": tensor(table)}, source="the PyTorch tutorial's table, and what becomes of it at a million")
    rope = {"type": "rope", "head_dim": 8, "rotary_dim": 8, "base": 10000.0, "layout": "halves",
            "direction": "counterclockwise", "arithmetic": "bfloat16_positions"}
    both = [points(angles("bfloat16_positions", p, 10000.0, 4, 2, 8)) for p in (256, 257, 4095, 15962)]
    rates = power_rates(10000.0, 4, 2, 8)
    case("encode/arithmetic_bfloat16", "GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=256,257,4095,15962"
         "&arithmetic=bfloat16_positions",
         {"encoding": rope, "attention_factor": 1.0, "base_used": 10000.0, "softmax_scale": 8 ** -.5,
          "cos": tensor([listed(c) for c, _ in both]), "sin": tensor([listed(s) for _, s in both]),
          "inv_freq": tensor(listed(rates))},
         source="positions as bfloat16: 257 is 256, 4095 is 4096 and 15962 is 15936, whose cosine is -.267950071")
    assert abs(float(both[3][0][0]) + .267950071) < 5e-8


if __name__ == "__main__":
    libraries()
    header()
    cases()
