#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values of rotary encodings, computed apart from the library: writes rope_values.h.

    python3 tests/golden/make_rope.py > tests/golden/rope_values.h

The truth is the formulas in 150 decimal digits (mpmath), rounded once, to nearest even, to float64 and float32:
frequencies, and cosines and sines with their factor, at positions near and far. Second sources hold the conventions:
the functions of public projects, written as those write them, in numpy's float64 and, where it is installed, in
torch's. They must agree with the truth wherever they have the case; how many that were is told on standard error, and
too few are an error.

Needs python3-mpmath and python3-numpy; python3-torch only adds a source. The result is committed, so that the tests
need none of them.
"""
import math
import sys

import mpmath
import numpy as np
from mpmath import mpf

from make_sinusoidal import bits

try:
    import torch
except ImportError:
    torch = None

mpmath.mp.dps = 150
PI2 = 2 * mpmath.pi


# ---- The truth: frequencies ------------------------------------------------------------------------------------------

def ladder(base, d, n):
    """base^(-2i/d) for i < n."""
    return [mpf(1) if i == 0 else mpmath.power(mpf(base), -mpf(2 * i) / d) for i in range(n)]


def mscale(factor, weight):
    """YaRN: 0.1 s ln f + 1, but 1 where nothing is stretched."""
    return mpf(1) if factor <= 1 else mpf(weight) * mpmath.log(mpf(factor)) / 10 + 1


def changed_base(c, stretch):
    """base * stretch^(d/(d-2))."""
    return mpf(c["base"]) * mpmath.power(stretch, mpf(c["d"]) / (c["d"] - 2))


def default(c, s, inv):
    return inv, {}


def linear(c, s, inv):
    return [f / mpf(s["factor"]) for f in inv], {}


def ntk(c, s, inv):
    base = changed_base(c, mpf(s["factor"]))
    return ladder(base, c["d"], len(inv)), {"base_used": base}


def dynamic(c, s, inv):
    top, f = s["original_max_position_embeddings"], mpf(s["factor"])
    base = changed_base(c, f * max(c["seq_len"], top) / top - (f - 1))
    return ladder(base, c["d"], len(inv)), {"base_used": base}


def proportional(c, s, inv):
    turning = int(s.get("partial_rotary_factor", c.get("partial_rotary_factor")) * c["head_dim"] // 2)
    return [f / mpf(s.get("factor", 1)) if i < turning else mpf(0) for i, f in enumerate(inv)], {}


def yarn(c, s, inv):
    f, top, d = mpf(s["factor"]), s["original_max_position_embeddings"], c["d"]

    def pair_of(turns):
        return d * mpmath.log(mpf(top) / (mpf(turns) * PI2)) / (2 * mpmath.log(mpf(c["base"])))
    low, high = pair_of(s.get("beta_fast", 32)), pair_of(s.get("beta_slow", 1))
    if s.get("truncate", True):
        low, high = mpmath.floor(low), mpmath.ceil(high)
    low, high = max(low, mpf(0)), min(high, mpf(d - 1))
    width = high - low if high != low else mpf(1) / 1000
    ramp = [min(max((i - low) / width, mpf(0)), mpf(1)) for i in range(len(inv))]
    mixed = [w * (1 - r) + w / f * r for w, r in zip(inv, ramp)]
    one, all_dim = s.get("mscale", 0), s.get("mscale_all_dim", 0)
    gain = mscale(f, one) / mscale(f, all_dim) if one and all_dim else mscale(f, 1)
    facts = {"correction_range": [low, high], "attention_factor": mpf(s.get("attention_factor", gain))}
    if all_dim:
        facts["softmax_scale"] = mscale(f, all_dim) ** 2 / mpmath.sqrt(c.get("qk_head_dim", c["head_dim"]))
    return mixed, facts


def longrope(c, s, inv):
    top = s["original_max_position_embeddings"]
    ext = s["long_factor"] if c["seq_len"] > top else s["short_factor"]
    f = mpf(s.get("factor", 1))
    gain = mpf(1) if f <= 1 else mpmath.sqrt(1 + mpmath.log(f) / mpmath.log(top))
    return [w / mpf(e) for w, e in zip(inv, ext)], {"attention_factor": mpf(s.get("attention_factor", gain))}


def llama3(c, s, inv):
    top, f, low, high = (s["original_max_position_embeddings"], mpf(s["factor"]), mpf(s["low_freq_factor"]),
                         mpf(s["high_freq_factor"]))
    out = []
    for w in inv:
        length = PI2 / w
        if length < top / high:
            out.append(w)
        elif length > top / low:
            out.append(w / f)
        else:
            smooth = (top / length - low) / (high - low)
            out.append((1 - smooth) * w / f + smooth * w)
    return out, {}


SCALINGS = {f.__name__: f for f in (default, linear, ntk, dynamic, proportional, yarn, longrope, llama3)}


def axis_frequencies(c, a, axis, m):
    """The m frequencies per unit of coordinate of one axis."""
    base, n = mpf(c["base"]), a["n_axes"]
    if a["frequencies"] == "pixel":
        top = mpf(a.get("max_freq", 10)) / 2
        return [mpmath.pi * (1 + (top - 1) * j / (m - 1) if m > 1 else 1) for j in range(m)]
    if a["frequencies"] == "shared":
        return [ladder(base, c["d"], n * m)[n * j + axis] for j in range(m)]
    return [(PI2 if a["frequencies"] == "period" else 1) * f for f in ladder(base, 2 * m, m)]


def coordinate(a, axis, p):
    p, how = mpf(p), a.get("coordinates", "positions")
    if how == "positions":
        return p
    size, grid = a["grid"][axis], a["grid"]
    if how == "unit":
        return mpf(-1) if size == 1 else -1 + 2 * p / (size - 1)
    size = {"centered": size, "centered_max": max(grid), "centered_min": min(grid)}[how]
    return (2 * p + 1) / size - 1


# ---- The truth: angles -----------------------------------------------------------------------------------------------

def axis_of(c, pair):
    """Which coordinate turns a pair."""
    sections = c.get("sections")
    if "rope_axes" in c:
        return pair // (c["d"] // 2 // c["rope_axes"]["n_axes"])
    if not sections:
        return 0
    if c.get("section_layout") == "interleaved":
        left = 3 if len(sections) == 4 else 0  # ggml leaves it to the fourth, transformers to t
        return pair % 3 if pair < 3 * sections[pair % 3] else left
    return sum(pair >= end for end in np.cumsum(sections))


def model(c):
    """Frequencies [pairs], facts."""
    n, s = c["d"] // 2, c.get("scaling", {"rope_type": "default"})
    if "rope_axes" in c:
        a = c["rope_axes"]
        inv = [f for axis in range(a["n_axes"]) for f in axis_frequencies(c, a, axis, n // a["n_axes"])]
        return inv, {"attention_factor": mpf(1), "base_used": mpf(0 if a["frequencies"] == "pixel" else c["base"])}
    exponent = c["head_dim"] if s["rope_type"] == "proportional" else c["d"]
    inv, facts = SCALINGS[s["rope_type"]](c, s, ladder(c["base"], exponent, n))
    usual = 1 / mpmath.sqrt(c.get("qk_head_dim", c["head_dim"]))
    return inv, {"attention_factor": mpf(1), "base_used": mpf(c["base"]), "softmax_scale": usual, **facts}


def values(c, inv, facts, position, keys=False):
    """cos, sin of every pair at a position (a number or one for each coordinate), with their factor."""
    out = []
    for i, w in enumerate(inv):
        axis = axis_of(c, i)
        p = position[axis] if isinstance(position, (list, tuple)) else position
        angle = w * (coordinate(c["rope_axes"], axis, p) if "rope_axes" in c else mpf(p))
        gain = facts["attention_factor"]
        if "xpos" in c:
            zeta = (2 * i + mpf(4) * c["d"] / 10) / (mpf(14) * c["d"] / 10)
            power = (mpf(p) - c["xpos"].get("center", 0)) / c["xpos"].get("scale_base", 512)
            gain = mpmath.power(zeta, -power if keys else power)
        sign = -1 if c.get("direction") == "clockwise" else 1
        both = mpmath.cos(angle), sign * mpmath.sin(angle)
        out += [mpf(0) if abs(v) < 1e-120 and abs(angle) > 1 else gain * v for v in both]  # whole quarter turns, whose 0 has no sign
    return out


# ---- Second sources: the functions of projects, as those write them ---------------------------------------------------

def hf_yarn(c, s, lib):
    """transformers, _compute_yarn_parameters."""
    dim, base, factor, top = c["d"], c["base"], s["factor"], s["original_max_position_embeddings"]
    fast, slow = s.get("beta_fast", 32), s.get("beta_slow", 1)

    def find_dim(rotations):
        return (dim * math.log(top / (rotations * 2 * math.pi))) / (2 * math.log(base))
    low, high = find_dim(fast), find_dim(slow)
    if s.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high = high + 0.001 if low == high else high
    kind = {} if lib is np else {"dtype": torch.float64}
    freqs = base ** (lib.arange(0, dim, 2, **kind) / dim)
    ramp = (lib.arange(dim // 2, **kind) - low) / (high - low)
    keep = 1 - (np.clip(ramp, 0, 1) if lib is np else torch.clamp(ramp, 0, 1))
    return 1.0 / (factor * freqs) * (1 - keep) + 1.0 / freqs * keep


def hf_llama3(c, s, lib):
    """transformers, _compute_llama3_parameters."""
    kind = {} if lib is np else {"dtype": torch.float64}
    inv = 1.0 / (c["base"] ** (lib.arange(0, c["d"], 2, **kind) / c["d"]))
    factor, low, high = s["factor"], s["low_freq_factor"], s["high_freq_factor"]
    top = s["original_max_position_embeddings"]
    wavelen = 2 * math.pi / inv
    out = lib.where(wavelen > top / low, inv / factor, inv)
    smooth = (top / wavelen - low) / (high - low)
    smoothed = (1 - smooth) * out / factor + smooth * out
    medium = ~(wavelen < top / high) & ~(wavelen > top / low)
    return lib.where(medium, smoothed, out)


def hf_dynamic(c, s, lib):
    """transformers, _compute_dynamic_ntk_parameters."""
    dim, top, factor = c["d"], s["original_max_position_embeddings"], s["factor"]
    seq_len = max(c["seq_len"], top)
    base = c["base"] * ((factor * seq_len / top) - (factor - 1)) ** (dim / (dim - 2))
    kind = {} if lib is np else {"dtype": torch.float64}
    return 1.0 / (base ** (lib.arange(0, dim, 2, **kind) / dim))


def hf_longrope(c, s, lib):
    """transformers, _compute_longrope_parameters."""
    ext = s["long_factor"] if c["seq_len"] > s["original_max_position_embeddings"] else s["short_factor"]
    shape = np.arange(0, c["d"], 2) / c["d"]
    if lib is np:
        return 1.0 / (np.array(ext) * c["base"] ** shape)
    return 1.0 / (torch.tensor(ext, dtype=torch.float64) * c["base"] ** torch.from_numpy(shape))


def hf_linear(c, s, lib):
    """transformers, _compute_linear_scaling_rope_parameters; and the default without a factor."""
    kind = {} if lib is np else {"dtype": torch.float64}
    return 1.0 / (c["base"] ** (lib.arange(0, c["d"], 2, **kind) / c["d"])) / s.get("factor", 1)


def hf_proportional(c, s, lib):
    """transformers, _compute_proportional_rope_parameters."""
    head = c["head_dim"]
    angles = int(s.get("partial_rotary_factor", c.get("partial_rotary_factor")) * head // 2)
    rotated = 1.0 / (c["base"] ** (np.arange(0, 2 * angles, 2, dtype=np.float64) / head))
    inv = np.concatenate([rotated, np.zeros(head // 2 - angles)]) / s.get("factor", 1)
    return inv if lib is np else torch.from_numpy(inv)


SECOND = {"default": hf_linear, "linear": hf_linear, "dynamic": hf_dynamic, "yarn": hf_yarn, "longrope": hf_longrope,
          "llama3": hf_llama3, "proportional": hf_proportional}


def qwen_vl(c, inv, position, lib):
    """transformers, Qwen2-VL (split by mrope_section) and Qwen3-VL (apply_interleaved_mrope): angles [pairs]."""
    freqs = np.array([[p * w for w in inv] for p in position[:3]], dtype=np.float64)  # [3, pairs]
    if c.get("section_layout") == "interleaved":
        out = freqs[0].copy()
        for dim, offset in enumerate((1, 2), start=1):
            index = slice(offset, c["sections"][dim] * 3, 3)
            out[index] = freqs[dim, index]
    else:
        ends = np.cumsum(c["sections"])[:-1]
        out = np.concatenate([part[i % 3] for i, part in enumerate(np.split(freqs, ends, axis=-1))])
    return out if lib is np else torch.from_numpy(out)


def dinov3(c, position, lib):
    """DINOv3ViTRopePositionEmbedding: patch centres in [-1, 1], angles 2 pi coords / period."""
    height, width = c["rope_axes"]["grid"]
    inv = 1 / c["base"] ** np.arange(0, 1, 4 / c["head_dim"], dtype=np.float64)
    coords = np.array([(position[0] + .5) / height, (position[1] + .5) / width]) * 2 - 1
    angles = (2 * math.pi * coords[:, None] * inv[None, :]).reshape(-1)
    return angles if lib is np else torch.from_numpy(angles)


def near(got, wanted, tolerance, what):
    worst = max(abs(float(a) - float(b)) / max(abs(float(b)), 1e-300) if float(b) else abs(float(a))
                for a, b in zip(got, wanted))
    assert len(got) == len(wanted) and worst <= tolerance, (what, worst)


def compare(c, inv, agreed):
    s = c.get("scaling", {"rope_type": "default"})
    if "rope_axes" in c or s["rope_type"] not in SECOND or c["base"] > 1e100:
        return
    for lib in (np, torch):
        if lib is not None:
            near(SECOND[s["rope_type"]](c, s, lib), inv, 1e-12, c)
            key = f"{SECOND[s['rope_type']].__name__} in {lib.__name__}"
            agreed[key] = agreed.get(key, 0) + 1


def compare_angles(c, inv, position, row, agreed):
    """Several coordinates: which of them turns which pair."""
    if not isinstance(position, list) or max(map(abs, position)) > 1e4:
        return
    for lib in (np, torch):
        if lib is None:
            continue
        if "sections" in c and len(c["sections"]) == 3:
            angles, key = qwen_vl(c, inv, position, lib), "qwen_vl"
        elif c.get("rope_axes", {}).get("frequencies") == "period" and c["rope_axes"]["coordinates"] == "centered":
            angles, key = dinov3(c, position, lib), "dinov3"
        else:
            continue
        near(lib.cos(angles), row[0::2], 1e-9, c)
        key = f"{key} in {lib.__name__}"
        agreed[key] = agreed.get(key, 0) + 1


# ---- The cases -------------------------------------------------------------------------------------------------------

FAR = [0, 1, 4095, 131071, 1e6, -3, 2.5, 2.0**53]
FEW = [0, 1, 131071, -2.5]


def listed(first, last, n):
    return [round(first + (last - first) * i / (n - 1), 4) for i in range(n)]


def rope(positions=FEW, **given):
    """A case, with what the formulas ask for beside the parameters: the base, and d, the width that turns."""
    s = given.get("scaling", {})
    c = {"head_dim": 16, "layout": "halves", **given}
    part = c.get("partial_rotary_factor", s.get("partial_rotary_factor", 1))
    d = c.get("rotary_dim", c["head_dim"] if s.get("rope_type") == "proportional" else int(c["head_dim"] * part))
    return c, {**c, "base": c.get("base", s.get("rope_theta", 10000)), "d": d}, positions


def scaled(kind, top=None, **members):
    more = {} if top is None else {"original_max_position_embeddings": top}
    return {"rope_type": kind, **members, **more}


def scaling_cases():
    yield rope(FAR)
    yield rope(FAR, layout="interleaved", base=500000)
    yield rope(FEW, head_dim=64)
    yield rope([1], head_dim=128)
    for base in (1, 1.5, 1e300):
        yield rope([0, 1, 1e6 + .5], base=base)
    yield rope(FAR, scaling=scaled("default"))
    for factor in (2, 2.5, 8, .5):
        yield rope(FEW, scaling=scaled("linear", factor=factor))
        yield rope(FEW, scaling=scaled("ntk", factor=factor), head_dim=8)
    yield rope(FAR, scaling=scaled("linear", factor=3), layout="interleaved")
    yield rope(FAR, scaling=scaled("ntk", factor=4), base=1e6)
    for seq_len in (1, 2047, 2048, 2049, 4096, 1000000):
        yield rope([1, 4095], scaling=scaled("dynamic", 2048, factor=2), seq_len=seq_len)
    yield rope(FAR, scaling=scaled("dynamic", 4096, factor=10.5), seq_len=16384, head_dim=10)
    yield rope(FEW, scaling=scaled("proportional"), partial_rotary_factor=.25, base=1e6)
    yield rope(FAR, scaling=scaled("proportional", partial_rotary_factor=.7, factor=3, rope_theta=50000), head_dim=12)
    yield rope(FAR, scaling=scaled("yarn", 2048, factor=10), head_dim=32)
    yield rope(FAR, scaling=scaled("yarn", 4096, factor=4), layout="interleaved")
    yield rope(FEW, scaling=scaled("yarn", 4096, factor=32, truncate=False), base=150000, head_dim=64)
    yield rope(FEW, scaling=scaled("yarn", 32768, factor=4), base=1e6, head_dim=32)
    yield rope(FEW, scaling=scaled("yarn", 1024, factor=4, beta_fast=16, beta_slow=2), head_dim=32)
    yield rope(FEW, scaling=scaled("yarn", 1024, factor=8, mscale=1, mscale_all_dim=.5))
    yield rope(FEW, scaling=scaled("yarn", 4096, factor=40, mscale=1, mscale_all_dim=1), qk_head_dim=192, head_dim=64)
    yield rope(FEW, scaling=scaled("yarn", 4096, factor=40, mscale=.707, mscale_all_dim=.707), qk_head_dim=192)
    yield rope(FEW, scaling=scaled("yarn", 4096, factor=16, attention_factor=1.25))
    yield rope(FEW, scaling=scaled("yarn", 4096, factor=.5))
    yield rope(FEW, scaling=scaled("yarn", 4, factor=4), head_dim=8)  # the range is one point
    yield rope(FEW, scaling=scaled("yarn", 4, factor=4), head_dim=64)  # the range is upside down
    for seq_len in (64, 65):
        yield rope(FAR if seq_len == 65 else FEW, seq_len=seq_len, head_dim=8, scaling=scaled(
            "longrope", 64, factor=4, short_factor=[1, 1.05, 1.1, 1.2], long_factor=[1, 1.5, 3, 6.5]))
    for factor in (.5, 1, 32):
        yield rope([0, 1], seq_len=9000, scaling=scaled("longrope", 4096, factor=factor, short_factor=[1] * 8,
                                                        long_factor=listed(1, 60, 8)))
    yield rope(FEW, seq_len=5, scaling=scaled("longrope", 4096, attention_factor=1.19, short_factor=listed(1, 2, 8),
                                              long_factor=[2] * 8), layout="interleaved")
    yield rope(FAR, scaling=scaled("llama3", 8192, factor=8, low_freq_factor=1, high_freq_factor=4), base=500000,
               head_dim=32)
    yield rope(FEW, scaling=scaled("llama3", 128, factor=4, low_freq_factor=1, high_freq_factor=4))
    yield rope(FEW, scaling=scaled("llama3", 8192, factor=32, low_freq_factor=.5, high_freq_factor=6),
               layout="interleaved", base=500000, head_dim=64)


def other_cases():
    for layout in ("halves", "interleaved"):
        yield rope(FEW, layout=layout, rotary_dim=4)
        yield rope(FEW, layout=layout, partial_rotary_factor=.4, head_dim=80)
        yield rope(FEW, layout=layout, direction="clockwise")
        yield rope(FEW, layout=layout, rotary_dim=8, scaling=scaled("yarn", 512, factor=4), direction="clockwise")
        yield rope([0, 1, -3, 2.5, 1000, 4095], layout=layout, xpos={})
    yield rope([0, 1, 511.5, 4000], xpos={"scale_base": 64, "center": 1000}, rotary_dim=8)
    yield rope([4450, 4482, 4500, 4520], xpos={"scale_base": 64}, rotary_dim=8)  # float32's least and largest numbers
    yield rope([0, 3, 16], xpos={"scale_base": 512, "center": 2.5}, direction="clockwise")
    three = [[0, 0, 0], [5, 5, 5], [7, 8, 11], [100, 131071, -3], [2.5, 0, 1e6], 9]
    yield rope(three, sections=[2, 3, 3], base=1e6)
    yield rope(three, sections=[2, 3, 3], base=1e6, layout="interleaved", section_layout="contiguous")
    yield rope(three, sections=[4, 2, 2], section_layout="interleaved")
    yield rope(three, sections=[24, 20, 20], section_layout="interleaved", head_dim=128, base=5000000)
    yield rope([[3, 14, 15]], sections=[16, 24, 24], head_dim=128, base=1e6)
    yield rope([[1, 2, 3, 4], [7, 0, 0, 0], 2], sections=[2, 3, 2, 1])
    yield rope([[1, 2, 3, 9]], sections=[4, 2, 2, 0], section_layout="interleaved")
    yield rope([[1, 20]], sections=[3, 5], scaling=scaled("yarn", 64, factor=4))


def axes_cases():
    grid = [[0, 0], [0, 1], [1, 0], [1, 2], [-1, 2.5], [4095, 131071]]
    for layout in ("halves", "interleaved"):
        yield rope(grid, layout=layout, rope_axes={"n_axes": 2, "frequencies": "language"})
        yield rope(grid, layout=layout, rope_axes={"n_axes": 2, "frequencies": "shared"})
    yield rope([[1, 2, 3]], head_dim=12, rope_axes={"n_axes": 3, "frequencies": "shared"})
    yield rope([[1, 2, 3], [0, 0, 0]], head_dim=12, rope_axes={"n_axes": 3, "frequencies": "language"})
    yield rope(grid, rope_axes={"n_axes": 2, "frequencies": "pixel"})
    yield rope([[0, 3]], head_dim=4, rope_axes={"n_axes": 2, "frequencies": "pixel", "max_freq": 224})
    for how in ("unit", "centered", "centered_max", "centered_min"):
        points = [[0, 0], [0, 2], [1, 1], [1, 2], [.5, -1]]
        for frequencies in ("language", "shared", "pixel", "period"):
            base = {} if frequencies == "pixel" else {"base": 100}
            yield rope(points, head_dim=8, **base, rope_axes={"n_axes": 2, "frequencies": frequencies, "coordinates": how,
                                                              "grid": [2, 3]})
    yield rope([[0, 0], [0, 13]], base=100, head_dim=64, rope_axes={
        "n_axes": 2, "frequencies": "period", "coordinates": "centered", "grid": [14, 14]})
    yield rope([[0, 0], [0, 6]], rope_axes={"n_axes": 2, "frequencies": "pixel", "max_freq": 256, "coordinates": "unit",
                                            "grid": [1, 7]})
    yield rope([[1, 2, 3]], head_dim=12, base=100, direction="clockwise", rope_axes={
        "n_axes": 3, "frequencies": "period", "coordinates": "centered_max", "grid": [4, 5, 6]})


# ---- Writing ---------------------------------------------------------------------------------------------------------

def word(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, list):
        return ",".join(map(word, x))
    return x if isinstance(x, str) else repr(x)


def parameters(c):
    """As text: "head_dim=16 scaling.factor=4"."""
    out = []
    for name, v in c.items():
        if isinstance(v, dict) and v:
            out += [f"{name}.{member}={word(x)}" for member, x in v.items()]
        elif isinstance(v, dict):
            out.append(f"{name}.scale_base=512")
        else:
            out.append(f"{name}={word(v)}")
    return " ".join(out)


def lines(items, n):
    return "\n".join("    " + " ".join(items[i:i + n]) for i in range(0, len(items), n))


def main():
    cases, places, numbers, agreed = [], [], [], {}
    for given, c, positions in [*scaling_cases(), *other_cases(), *axes_cases()]:
        inv, facts = model(c)
        compare(c, inv, agreed)
        told = [facts.get(name, mpf(0)) for name in ("attention_factor", "base_used", "softmax_scale")]
        told += facts.get("correction_range", [mpf(0), mpf(0)])
        cases.append(f'{{"{parameters(given)}", {len(inv)}, {len(numbers)}, {len(places)}, '
                     f'{len(positions) * (2 if "xpos" in c else 1)}, {{{", ".join(float(f).hex() for f in told)}}}}},')
        numbers += inv
        for position in positions:
            for keys in (False, True) if "xpos" in c else (False,):
                row = values(c, inv, facts, position, keys)
                compare_angles(c, inv, position, row, agreed)
                at = position if isinstance(position, list) else [position]
                places.append(f'{{{{{", ".join(float(p).hex() for p in at)}}}, {len(at)}, {str(keys).lower()}, {len(numbers)}}},')
                numbers += row
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by make_rope.py: do not edit.\n */\n/* clang-format off */")
    print("/* Frequencies are values[first] ..., facts are attention_factor, base_used, softmax_scale and both ends of the\n"
          " * correction range; 0 is none. */")
    print("static const struct rope_case {\n    const char *params;\n    size_t n_pairs, first, first_place, n_places;\n"
          "    double facts[5];\n} rope_cases[] = {")
    print(lines(cases, 1) + "\n};")
    print("/* cos, sin, cos, sin ... of the pairs are values[first] ... */")
    print("static const struct rope_place {\n    double position[4];\n    int axes;\n    bool keys;\n    size_t first;\n"
          "} rope_places[] = {")
    print(lines(places, 4) + "\n};")
    print("static const struct rope_value {\n    uint64_t float64;\n    uint32_t float32;\n} rope_values[] = {")
    print(lines([f"{{{bits(v, 'float64'):#x},{bits(v, 'float32'):#x}}}," for v in numbers], 32) + "\n};")
    print(f"{len(cases)} cases, {len(places)} positions, {len(numbers)} values", file=sys.stderr)
    print("torch " + torch.__version__ if torch else "no torch here: numpy alone is the second source", file=sys.stderr)
    for key, count in sorted(agreed.items()):
        print(f"  {count} cases agree with {key}", file=sys.stderr)
    assert len({key for key in agreed if key.endswith("numpy")}) == 8, agreed


if __name__ == "__main__":
    main()
