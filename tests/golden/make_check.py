#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables as float32 code makes them and how far they are off, for check: check_values.h and ../cases/check.
Run it in this folder: /usr/bin/python3 make_check.py. The result is committed.

The tables are numpy's own float32, with the frequencies exp(-2i*ln(base)/d) of the PyTorch tutorial or 1/base^(2i/d); their
errors are held against 50 decimal digits (mpmath). Asserted besides: the figures that were published for such tables of
width 512, 1024 rows each, and for single angles of width 128.
"""
import math

import make_torch
import mpmath
import numpy as np

from make_cases import case, spec

mpmath.mp.dps = 50
F32, WIDE = np.float32, np.longdouble


def exp_rates(d, base=10000.0):
    return np.exp(np.arange(0, d, 2).astype(F32) * F32(-math.log(base) / d))


def pow_rates(d, base=10000.0):
    return F32(1) / F32(base) ** (np.arange(0, d, 2).astype(F32) / F32(d))


def angles(positions, rates):
    return np.asarray(positions, F32)[:, None] * rates[None]


def exact_rates(d, base=10000.0):
    return WIDE(base) ** (-2 * np.arange(d // 2, dtype=WIDE) / d)


# ---- Published figures ----------------------------------------------------------------------------------------------

# The cosines of one position, width 128: base, position, the largest error.
FIGURES = {10000: {2047: 4.1e-5, 8191: 2.7e-4, 32767: 4.9e-4, 131071: 3.2e-3, 1048575: 2.5e-2, 10**7: .39},
           500000: {8191: 1.8e-4, 131071: 1.9e-3, 1048575: 3.9e-2}, 1000000: {131071: 4.4e-3}}
# They are numpy's. PyTorch's powers, of AVX2, give these of them.
OF_TORCH = {(10000, 2047), (10000, 8191), (10000, 1048575), (10000, 10**7)}


def worst(first, rates, n=1024):
    """The largest error of sines and cosines alone: their own rounding is left out, it does not show."""
    positions = np.arange(first, first + n)
    got = angles(positions, rates).astype(WIDE)
    exact = positions.astype(WIDE)[:, None] * exact_rates(2 * len(rates))[None]
    return max(float(np.abs(f(got) - f(exact)).max()) for f in (np.sin, np.cos))


def near(got, published):
    return abs(got - float(published)) <= .051 * 10 ** math.floor(math.log10(float(published)))


def same(got, published):
    assert near(got, published), (got, published)


def published():
    for first, of_numpy, of_torch in ((0, "9.4e-5", "6.0e-5"), (2**20, ".10", ".062"), (2**24 - 1024, "1.47", ".95")):
        same(worst(first, exp_rates(512)), of_numpy)
        same(worst(first, make_torch.exp_rates(10000.0, 256, 2, 512)), of_torch)
    same(worst(10**6, make_torch.exp_rates(10000.0, 256, 2, 512), 1), ".045")  # the README's
    for base, figures in FIGURES.items():
        for p, figure in figures.items():
            off = np.cos(angles([p], pow_rates(128, base))[0].astype(WIDE)) - np.cos(WIDE(p) * exact_rates(128, base))
            same(float(np.abs(off).max()), figure)
            by_torch = np.cos(angles([p], make_torch.pow_rates(float(base), 64, 2, 128))[0].astype(WIDE))
            error = float(np.abs(by_torch - np.cos(WIDE(p) * exact_rates(128, base))).max())
            assert near(error, figure) == ((base, p) in OF_TORCH), (base, p, error)


# ---- A table for the unit test --------------------------------------------------------------------------------------

POSITIONS = [0, 1] + [p for k in range(1, 24) for p in (2**k, 3 * 2**(k - 1), 2**(k + 1) - 1)]


def exact_row(p, d):
    out = []
    for i in range(d // 2):
        x = mpmath.mpf(p) * mpmath.mpf(10000) ** (mpmath.mpf(-2 * i) / d)
        out += [mpmath.sin(x), mpmath.cos(x)]
    return out


def errors(table, positions, d):
    return np.array([[float(abs(mpmath.mpf(float(v)) - e)) for v, e in zip(row, exact_row(p, d))]
                     for row, p in zip(table, positions)])


def made(positions, rates):
    a = angles(positions, rates)
    return np.stack([np.sin(a), np.cos(a)], -1).reshape(len(positions), -1)


def octaves(off, positions):
    found = {}
    for row, p in zip(off, positions):
        k = 0 if p < 1 else int(math.log2(p)) + 1
        found[k] = max(found.get(k, 0.0), float(row.max()))
    return [{"from": float(2**(k - 1)) if k else 0.0, "to": float(2**k), "max_abs": e} for k, e in sorted(found.items())]


def header():
    out = ["/* SPDX-License-Identifier: MIT\n *\n * Made by make_check.py; not edited by hand.\n */\n/* clang-format off */\n",
           f"static const double check_positions[] = {{{', '.join(str(p) for p in POSITIONS)}}};\n"]
    rows = ""
    for name, rates in (("float32_exp", exp_rates(16)), ("float32_pow", pow_rates(16))):
        table = made(POSITIONS, rates)
        off = errors(table, POSITIONS, 16)
        out.append(f"static const float {name}_table[][16] = {{\n" +
                   "".join("    {" + ", ".join(float(v).hex() for v in row) + "},\n" for row in table) + "};\n")
        out.append(f"static const double {name}_octaves[] = {{" +
                   ", ".join(repr(o["max_abs"]) for o in octaves(off, POSITIONS)) + "};\n")
        out.append(f"static const double {name}_columns[] = {{" + ", ".join(repr(float(v)) for v in off.max(0)) + "};\n")
        bad = int(np.argmax((off > 1e-3).any(1)))
        rows += f'    {{"{name}", {name}_table, {name}_octaves, {name}_columns, {bad}, {int(np.argmax(off[bad] > 1e-3))}}},\n'
    out.append(f"static const struct check_table check_tables[] = {{\n{rows}}};\n")
    rows = ""
    for base, figures in FIGURES.items():
        out.append(f"static const float rates_{base}[64] = {{" +
                   ", ".join(float(v).hex() for v in pow_rates(128, base)) + "};\n")
        rows += "".join(f'    {{"layout=halves head_dim=128 base={base}", rates_{base}, {p}, {e!r}, {str((base, p) in OF_TORCH).lower()}}},\n'
                        for p, e in figures.items())
    out.append("static const float numpy_exp_rates[256] = {" + ", ".join(float(v).hex() for v in exp_rates(512)) + "};\n")
    out.append(f"static const struct check_figure check_figures[] = {{\n{rows}}};\n/* clang-format on */\n")
    with open("check_values.h", "w", encoding="utf-8") as file:
        file.write("".join(out))


# ---- Cases ----------------------------------------------------------------------------------------------------------

def spacing(e):
    return 2.0 ** (max(math.frexp(float(e))[1], -125) - 24) if e else 2.0 ** -149


def report(table, positions, d, atol, names=lambda c: {"column": c}, rtol=1.3e-6):
    off, exact = errors(table, positions, d), [exact_row(p, d) for p in positions]
    bad = [[e > atol + rtol * abs(float(x)) for e, x in zip(r, xs)] for r, xs in zip(off, exact)]
    row = next((i for i, r in enumerate(bad) if any(r)), None)
    order = sorted(range(d), key=lambda c: -off[:, c].max())[:8]
    first = None
    if row is not None:
        c = bad[row].index(True)
        first = {"index": row, "position": float(positions[row]), "column": c, "got": float(table[row][c]),
                 "exact": float(exact[row][c])}
    return {"rtol": rtol, "atol": atol, "pass": row is None, "max_abs": float(off.max()),
            "max_ulp": max(o / spacing(x) for r, xs in zip(off, exact) for o, x in zip(r, xs)), "first_bad_row": first,
            "worst_columns": [{**names(c), "max_abs": float(off[:, c].max())} for c in order if off[:, c].max() > 0],
            "octaves": octaves(off, positions)}


def cases():
    positions, e = [0, 1, 5, 100, 511], spec(d_model=8)
    table = [[float(str(v)) for v in row] for row in made(positions, exp_rates(8))]
    body = {"encoding": {"type": "sinusoidal"}, "tensor": table, "positions": positions}
    held = [[F32(v) for v in row] for row in table]
    case("check/tutorial", "POST /v1/check", {"encoding": e, **report(held, positions, 8, 1e-5)}, 1e-10, body,
         source="the PyTorch tutorial's table: off by some 1e-5 at position 511")
    case("check/strict", "POST /v1/check", {"encoding": e, **report(held, positions, 8, 1e-7, rtol=0.0)}, 1e-10,
         {**body, "atol": 1e-7, "rtol": 0})
    rope = {"type": "rope", "head_dim": 4, "rotary_dim": 4, "base": 10000.0, "layout": "interleaved",
            "direction": "counterclockwise", "arithmetic": "exact"}
    facts = {"encoding": rope, "attention_factor": 1.0, "base_used": 10000.0, "softmax_scale": .5}
    interleaved = made([0, 1, 2], pow_rates(4))
    sin, cos = interleaved[:, 0::2], interleaved[:, 1::2]
    fake = np.stack([cos, sin], 1).reshape(3, -1)  # cosines in front: sines are held against cosines
    wanted = np.stack([sin, cos], 1).reshape(3, -1)
    case("check/sines_first", "POST /v1/check", {**facts, **swapped(wanted, fake)}, 1e-7,
         {"encoding": {"type": "rope", "head_dim": 4, "layout": "interleaved"}, "packed": wanted.astype(float).tolist()},
         source="sines where the cosines should be: wrong from the first row on")


def swapped(got, wanted):
    off = np.abs(got.astype(float) - wanted.astype(float))
    order = sorted(range(4), key=lambda c: -off[:, c].max())
    ulp = max(o / spacing(x) for r, xs in zip(off, wanted.astype(float)) for o, x in zip(r, xs))
    return {"rtol": 1.3e-6, "atol": 1e-5, "pass": False, "max_abs": float(off.max()), "max_ulp": ulp,
            "first_bad_row": {"index": 0, "position": 0.0, "tensor": "packed", "column": 0, "got": 0.0, "exact": 1.0},
            "worst_columns": [{"tensor": "packed", "column": c, "max_abs": float(off[:, c].max())} for c in order],
            "octaves": [{"from": f, "to": t, "max_abs": float(off[i].max())} for i, (f, t) in enumerate(((0., 1.), (1., 2.), (2., 4.)))]}


if __name__ == "__main__":
    published()
    header()
    cases()
