#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values of the encoding `sinusoidal`, computed apart from the library: writes sinusoidal_values.h.

    python3 tests/golden/make_sinusoidal.py > tests/golden/sinusoidal_values.h

The truth is the formula in 150 decimal digits (mpmath), rounded once, to nearest even, to float64, float32, float16
and bfloat16. Second sources hold the conventions: the formulas of public projects, written as those write them, in
numpy's float64 and, where it is installed, in torch's. They must agree with the truth wherever a convention has such
a project and float64 is good enough; how many rows that were is told on standard error, and too few are an error.

Needs python3-mpmath and python3-numpy; python3-torch only adds a source. The result is committed, so that the tests
need none of them.
"""
import itertools
import math
import sys

import mpmath
import numpy as np

try:
    import torch
except ImportError:
    torch = None

mpmath.mp.dps = 150
DEFAULTS = {"base": 10000.0, "layout": "interleaved", "order": "sin_cos", "denominator": "half", "odd": "truncate",
            "position_scale": 1.0, "offset": 0.0, "padding_idx": None}
FORMATS = {"float64": (53, -1022, 64), "float32": (24, -126, 32), "float16": (11, -14, 16), "bfloat16": (8, -126, 16)}


# ---- the truth -------------------------------------------------------------------------------------------------------

def vector(case):
    """The row of one position as mpmath numbers; None where a column is exactly zero by definition."""
    d = case["d_model"]
    w = d - 1 if case["odd"] == "zero" and d % 2 else d
    x = mpmath.mpf(case["position_scale"]) * mpmath.mpf(case["position"]) + mpmath.mpf(case["offset"])
    if case["padding_idx"] is not None and x == case["padding_idx"]:
        return [None] * d
    first, second = [], []
    for i in range((w + 1) // 2):
        exponent = mpmath.mpf(0) if i == 0 else mpmath.mpf(2 * i) / (w if case["denominator"] == "half" else w - 2)
        angle = x * mpmath.power(mpmath.mpf(case["base"]), -exponent)
        pair = (mpmath.sin(angle), mpmath.cos(angle))
        first.append(pair[case["order"] == "cos_sin"])
        if 2 * i + 1 < w:
            second.append(pair[case["order"] == "sin_cos"])
    if case["layout"] == "halves":
        row = first + second
    else:
        row = [second[j // 2] if j % 2 else first[j // 2] for j in range(w)]
    return row + [None] * (d - w)


def bits(x, name):
    """The bits of the number of a format that is nearest to x, |x| <= 1."""
    precision, lowest, size = FORMATS[name]
    if x is None:
        return 0
    negative, mantissa, exponent, length = x._mpf_  # x = (-1)^negative * mantissa * 2^exponent, exactly
    if mantissa == 0:
        return 0
    mantissa = int(mantissa)
    place = max(exponent + length - 1, lowest) - (precision - 1)  # of the last bit
    shift = place - exponent
    if shift <= 0:
        rounded = mantissa << -shift
    else:
        rounded, rest = mantissa >> shift, mantissa & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        far = abs(rest - half) << 300 > mantissa  # 2^-300 of x: the truth cannot be on the other side
        assert far or length < 60, "too near to a midpoint to be told"
        rounded += rest > half or (rest == half and rounded % 2)
    if exponent + length - 1 >= lowest:  # normal: a carry runs into the exponent, as it should
        rounded += (place + precision - 1 - lowest) << (precision - 1)
    return rounded | negative << (size - 1)


# ---- second sources: (name, which conventions, row in float64) ------------------------------------------------------

def annotated_transformer(case, lib):
    """pe[:, 0::2] = sin(p * exp(2i * -(ln base / d))), pe[:, 1::2] = cos(...): interleaved, d even."""
    d = case["d_model"]
    if lib is np:
        div = np.exp(np.arange(0, d, 2, dtype=np.float64) * -(math.log(case["base"]) / d))
        pe = np.zeros(d)
    else:
        div = torch.exp(torch.arange(0, d, 2, dtype=torch.float64) * -(math.log(case["base"]) / d))
        pe = torch.zeros(d, dtype=torch.float64)
    pe[0::2] = lib.sin(case["x"] * div)
    pe[1::2] = lib.cos(case["x"] * div)
    return pe


def keras_hub(case, lib):
    """Column j: angle p * (1/base)^(2*(j//2)/d); sines where j is even, cosines where it is odd; any width."""
    d = case["d_model"]
    j = lib.arange(d)
    rate = (1 / case["base"]) ** (2 * np.floor_divide(np.arange(d), 2) / d)
    rate = rate if lib is np else torch.from_numpy(rate)
    angle = case["x"] * rate
    return lib.where(j % 2 == 0, lib.sin(angle), lib.cos(angle))


def tensor2tensor(case, lib):
    """get_timing_signal_1d: num = d//2, increment ln(base)/max(num - 1, 1), sines then cosines, zeros to the end."""
    d = case["d_model"]
    increment = math.log(case["base"]) / max(d // 2 - 1, 1)
    scales = np.exp(np.arange(d // 2, dtype=np.float64) * -increment)
    scales = scales if lib is np else torch.from_numpy(scales)
    parts = [lib.sin(case["x"] * scales), lib.cos(case["x"] * scales)]
    signal = np.concatenate(parts) if lib is np else torch.cat(parts)
    return np.pad(signal, (0, d % 2)) if lib is np else torch.nn.functional.pad(signal, (0, d % 2))


def diffusers(case, lib):
    """get_timestep_embedding: exponent -ln(base) * i/(half - shift), flip_sin_to_cos, scale; a zero column if odd."""
    half = case["d_model"] // 2
    shift = 1 if case["denominator"] == "half_minus_one" else 0
    exponent = -math.log(case["base"]) * np.arange(half, dtype=np.float64) / (half - shift)
    angle = case["position_scale"] * case["position"] * np.exp(exponent)
    if lib is np:
        both = np.concatenate([np.sin(angle), np.cos(angle)])
        if case["order"] == "cos_sin":
            both = np.concatenate([both[half:], both[:half]])
        return np.pad(both, (0, case["d_model"] % 2))
    angle = torch.from_numpy(angle)
    both = torch.cat([torch.sin(angle), torch.cos(angle)])
    if case["order"] == "cos_sin":
        both = torch.cat([both[half:], both[:half]])
    return torch.nn.functional.pad(both, (0, case["d_model"] % 2))


def marian(case, lib):
    """np.power(base, 2*(j//2)/dim) per column; sines of the even columns fill the first half, which is the longer."""
    d = case["d_model"]
    sentinel = d // 2 + d % 2
    angle = np.array([case["x"] / np.power(case["base"], 2 * (j // 2) / d) for j in range(d)])
    out = np.zeros(d)
    out[:sentinel] = np.sin(angle[0::2])
    out[sentinel:] = np.cos(angle[1::2])
    return out


SOURCES = [
    (annotated_transformer, lambda c, even: even and c["layout"] == "interleaved" and c["order"] == "sin_cos"
     and c["denominator"] == "half"),
    (keras_hub, lambda c, even: c["layout"] == "interleaved" and c["order"] == "sin_cos" and c["denominator"] == "half"
     and (even or c["odd"] == "truncate")),
    (tensor2tensor, lambda c, even: c["layout"] == "halves" and c["order"] == "sin_cos"
     and c["denominator"] == "half_minus_one" and (even or c["odd"] == "zero")),
    (diffusers, lambda c, even: c["layout"] == "halves" and c["offset"] == 0 and (even or c["odd"] == "zero")
     and c["d_model"] // 2 > (c["denominator"] == "half_minus_one")),  # 0/0 there, as in fairseq
    (marian, lambda c, even: c["layout"] == "halves" and c["order"] == "sin_cos" and c["denominator"] == "half"
     and (even or c["odd"] == "truncate")),
]


def compare(case, row, agreed):
    """Holds a row against every source that has its convention; counts (source, library)."""
    x = case["position_scale"] * case["position"] + case["offset"]
    if abs(x) > 2000 or case["padding_idx"] is not None:
        return  # float64 angles are off by |x| * 2^-52 and more
    for source, has in SOURCES:
        for lib in (np, torch):
            if lib is None or (lib is torch and source is marian) or not has(case, case["d_model"] % 2 == 0):
                continue
            got = [float(v) for v in source(dict(case, x=x), lib)]
            want = [0.0 if v is None else float(v) for v in row]
            assert len(got) == len(want), (source.__name__, case)
            worst = max(abs(a - b) for a, b in zip(got, want))
            assert worst <= 1e-15 * (2 + 20 * abs(x)), (source.__name__, lib.__name__, case, worst)
            key = f"{source.__name__} in {lib.__name__}"
            agreed[key] = agreed.get(key, 0) + 1


# ---- the cases -------------------------------------------------------------------------------------------------------

INTEGERS = [0, 1, 2, 7, 100, 4095, 65535, 1000000, 16777217, 1e9, 2.0**40, 2.0**53 - 1, 2.0**53]
REALS = [0.5, -3, 1234.56789, -0.1, 1e-5, 1e-300, 5e-324, -1e-300, 2.0**52 + 0.5, -(2.0**53), -1e6 - 0.375]


def cases():
    for layout, order, denominator, odd in itertools.product(
            ["interleaved", "halves"], ["sin_cos", "cos_sin"], ["half", "half_minus_one"], ["truncate", "zero", "reject"]):
        for d in (2, 6) if odd == "reject" else (1, 2, 3, 5, 6, 7):
            for position in (3, -1234.56789):
                yield {"d_model": d, "layout": layout, "order": order, "denominator": denominator, "odd": odd,
                       "position": position}
    for base, denominator in itertools.product([10000, 500000, 10, 12345.678], ["half", "half_minus_one"]):
        for position in INTEGERS + REALS:
            yield {"d_model": 8 if base >= 1e4 and base % 1 == 0 else 4, "base": base, "denominator": denominator,
                   "position": position}
    for base in (1, 1e300):
        for position in (1, 2.0**53 - 1, 0.1):
            yield {"d_model": 8, "base": base, "position": position}
    for scale, offset, position in [(1000, 0, 0.999), (-0.5, 2, 1.5), (1, 2.0**53, 1), (2.0**53, 0, 2.0**53 - 1),
                                    (0.001, -7, 123456.789), (1e-300, 0, 1e10), (1, -5, 5), (3, 1e-17, 1e15 + 0.125),
                                    (2.0**53, 2.0**53, -1), (0.1, 0.1, 0.3)]:
        for denominator, layout in (("half", "interleaved"), ("half_minus_one", "halves")):
            yield {"d_model": 6, "position_scale": scale, "offset": offset, "position": position,
                   "denominator": denominator, "layout": layout}
    for padding_idx, offset, position in [(1, 0, 1), (1, 0, 2), (0, 0, 0), (2, 1.5, 0.5), (1, 1e-17, 1), (-3, 0, -3)]:
        yield {"d_model": 4, "padding_idx": padding_idx, "offset": offset, "position": position}
    yield {"d_model": 512, "position": 4999}
    yield {"d_model": 256, "position": 131071, "layout": "halves", "denominator": "half_minus_one"}
    yield {"d_model": 127, "position": 77, "base": 500000, "layout": "halves"}
    yield {"d_model": 129, "position": 1000003, "odd": "zero", "order": "cos_sin"}


def number(x):
    """The shortest decimal text that is x, for a parameter or a C literal."""
    return repr(float(x)) if float(x) % 1 or abs(x) > 2**53 else str(int(x))


def lines(items, n):
    return "\n".join("    " + " ".join(items[i:i + n]) for i in range(0, len(items), n))


def main():
    rows, values, index, agreed = [], [], 0, {}
    for given in cases():
        case = dict(DEFAULTS, **given)
        row = vector(case)
        compare(case, row, agreed)
        params = " ".join(f"{name}={number(v) if not isinstance(v, str) else v}" for name, v in given.items() if name != "position")
        rows.append(f'{{"{params}", {float(case["position"]).hex()}, {case["d_model"]}, {index}}},')
        values += ["{" + ",".join(f"{bits(v, name):#x}" for name in FORMATS) + "}," for v in row]
        index += len(row)
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by make_sinusoidal.py: do not edit.\n */\n/* clang-format off */")
    print("static const struct sinusoidal_case {\n    const char *params;\n    double position;\n    size_t d_model, first;\n"
          "} sinusoidal_cases[] = {")
    print(lines(rows, 3) + "\n};")
    print("static const struct sinusoidal_value {\n    uint64_t float64;\n    uint32_t float32;\n    uint16_t float16, bfloat16;\n"
          "} sinusoidal_values[] = {")
    print(lines(values, 24) + "\n};")
    print(f"{len(rows)} rows, {index} values", file=sys.stderr)
    print("torch " + torch.__version__ if torch else "no torch here: numpy alone is the second source", file=sys.stderr)
    for key, count in sorted(agreed.items()):
        print(f"  {count} rows agree with {key}", file=sys.stderr)
    assert sum(count for key, count in agreed.items() if key.endswith("numpy")) > 250, agreed


if __name__ == "__main__":
    main()
