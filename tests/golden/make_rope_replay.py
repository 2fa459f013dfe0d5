#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The scalings of rope in the float32 steps of deployed code: writes rope_replay_values.h.

    python3 tests/golden/make_rope_replay.py > tests/golden/rope_replay_values.h

The steps are numpy's float32 and Python's doubles, in the order of transformers' modeling_rope_utils.py and of ggml's
ggml_rope_cache_init with what llama.cpp hands to it; powers of tensors are PyTorch's, ggml's powers, logarithms, sines and
cosines are make_arithmetic.py's, 60 digits rounded once. The formulas of transformers are written a second time with tensors
and Python's numbers alone, so that it is PyTorch who decides what is a double and what a float32: frequencies must be equal
bit for bit.

Needs python3-mpmath, python3-numpy and python3-torch. The result is committed, so that the tests need none of it.
"""
import math

import make_arithmetic
import mpmath
import numpy as np
import torch

from make_arithmetic import F32, bfloat16, bits, exp_rates, of, points, power_rates

POSITIONS = [0, 1, 4096, 131071, .3]
LISTS = {"short": [1.05, 1.1, 1.2500000000000002, 1.9000000000000008, 2.3499999999999996, 3.049999999999997],
         "long": [1.0299999713897705, 1.2299998998641968, 5.419999599456787, 30.009998321533203, 59.29000473022461, 64.81001281738281]}


# ---- transformers ----------------------------------------------------------------------------------------------------

def raised(base, d, n=None):
    """base ** (arange(0, d, 2).float() / d)"""
    return make_arithmetic.raised(base, d // 2 if n is None else n, 2, d)


def ntk_base(base, d, f):
    return base * f ** (d / (d - 2))


def dynamic_base(base, d, f, context, seq_len):
    if seq_len <= context:
        return base * ((f * context / context) - (f - 1)) ** (d / (d - 2))
    growth = F32(f) * F32(seq_len) / F32(context) - F32(f - 1)
    return float(F32(base) * F32(float(growth) ** (d / (d - 2))))  # a lone tensor's power is a double's


def proportional(base, d, p, f=1.0):
    turning = int(p * d // 2)
    return [F32(1) / t / F32(f) for t in raised(base, d, turning)] + [F32(0)] * (d // 2 - turning)


def yarn_bounds(base, d, context, beta_fast, beta_slow, truncate):
    def pair(turns):
        return (d * math.log(context / (turns * 2 * math.pi))) / (2 * math.log(base))
    low, high = pair(beta_fast), pair(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    return low, high + 0.001 if low == high else high


def yarn(base, d, f, context, beta_fast=32.0, beta_slow=1.0, truncate=True):
    low, high = yarn_bounds(base, d, context, beta_fast, beta_slow, truncate)
    out = []
    for i, p in enumerate(raised(base, d)):
        ramp = min(max((F32(i) - F32(low)) / F32(high - low), F32(0)), F32(1))
        kept = F32(1) - ramp
        out.append((F32(1) / (F32(f) * p)) * (F32(1) - kept) + (F32(1) / p) * kept)
    return out


def longrope(base, d, factors):
    return [F32(1) / (F32(e) * p) for e, p in zip(factors, raised(base, d))]


def mscale(f, weight=1.0):
    return 1.0 if f <= 1 else 0.1 * weight * math.log(f) + 1.0


def longrope_attention(f, context):
    return 1.0 if f <= 1 else math.sqrt(1 + math.log(f) / math.log(context))


# ---- ggml ------------------------------------------------------------------------------------------------------------

def logf(x):
    return of(mpmath.log, x)


def ggml_ramp(base, d, context, beta_fast, beta_slow, i):
    def pair(turns):
        return F32(d) * logf(F32(context) / (F32(turns) * F32(2) * F32(math.pi))) / (F32(2) * logf(F32(base)))
    low = max(F32(0), np.floor(pair(beta_fast)))
    high = min(F32(d - 1), np.ceil(pair(beta_slow)))
    y = (F32(i) - low) / max(F32(.001), high - low)
    return F32(1) - min(F32(1), max(F32(0), y))


def magnitude(freq_scale):
    return F32(1) + F32(.1) * logf(F32(1) / freq_scale)


def ggml(position, base, d, freq_scale=F32(1), ext=F32(0), attn=F32(1), factors=None, context=0, beta_fast=32.0, beta_slow=1.0):
    """Angles, and what sines and cosines are times."""
    theta, step, out = F32(position), of(mpmath.power, F32(base), F32(-2) / F32(d)), []
    for i in range(d // 2):
        extrap = theta / (factors[i] if factors else F32(1))
        angle = freq_scale * extrap
        if ext != 0:
            mix = ggml_ramp(base, d, context, beta_fast, beta_slow, i) * ext
            angle = angle * (F32(1) - mix) + extrap * mix
        out.append(angle)
        theta = theta * step
    return out, attn * magnitude(freq_scale) if ext != 0 else attn


def ggml_yarn(f, same_mscales=False):
    """What llama.cpp makes of a configuration's factor."""
    freq_scale = F32(1) / F32(f)
    factor = F32(1) / freq_scale
    wanted = F32(1) if factor <= 1 or same_mscales else F32(1) + F32(.1) * logf(factor)
    return {"freq_scale": freq_scale, "ext": F32(1), "attn": wanted * (F32(1) / (F32(1) + F32(.1) * logf(factor)))}


# ---- The cases: a request's scaling, and the angles at a position -----------------------------------------------------

def scaling(**members):
    def text(value):
        return (",".join(repr(v) for v in value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool)
                else repr(value) if isinstance(value, float) else str(value))
    return "".join(f" scaling.{name}={text(value)}" for name, value in members.items())


def fixed(rates, attention=1.0):
    """Of frequencies that do not depend on the position."""
    return lambda p: ([p * r for r in rates], F32(attention))


def transformers(base, d):
    """Of float32_pow and of rounded positions."""
    yield scaling(rope_type="ntk", factor=2.5), fixed(power_rates(ntk_base(base, d, 2.5), d // 2, 2, d))
    for seq_len in (1, 2048, 2049, 5000, 1000003):
        grown = dynamic_base(base, d, 2.7, 2048, seq_len)
        yield (scaling(rope_type="dynamic", factor=2.7, original_max_position_embeddings=2048) + f" seq_len={seq_len}",
               fixed(power_rates(grown, d // 2, 2, d)))
    for p, f in ((.25, 1.0), (.7, 3.0), (1.0, 1.5)):
        yield (scaling(rope_type="proportional", partial_rotary_factor=p, factor=f), fixed(proportional(base, d, p, f)))
    for f, context, more in ((4.0, 32768, {}), (40.0, 4096, {"mscale": 1.0, "mscale_all_dim": .707}), (.5, 2048, {}),
                             (32.0, 4096, {"beta_fast": 30.5, "beta_slow": 1.5, "truncate": False}),
                             (3.0, 5, {}), (8.0, 4096, {"attention_factor": 1.1, "beta_fast": 1.0})):
        told = {k: more[k] for k in ("beta_fast", "beta_slow", "truncate") if k in more}
        attention = more.get("attention_factor") or (mscale(f, more["mscale"]) / mscale(f, more["mscale_all_dim"])
                                                     if "mscale" in more else mscale(f))
        yield (scaling(rope_type="yarn", factor=f, original_max_position_embeddings=context, **more),
               fixed(yarn(base, d, f, context, **told), attention))
    if d // 2 == 6:
        for name, seq_len in (("short", 4096), ("long", 4097)):
            yield (scaling(rope_type="longrope", factor=32.0, original_max_position_embeddings=4096,
                           short_factor=LISTS["short"], long_factor=LISTS["long"]) + f" seq_len={seq_len}",
                   fixed(longrope(base, d, LISTS[name]), longrope_attention(32.0, 4096)))


def by_exponential(base, d):
    """Of float32_exp: what only changes the base, or leaves frequencies out."""
    yield scaling(rope_type="ntk", factor=2.5), fixed(exp_rates(ntk_base(base, d, 2.5), d // 2, 2, d))
    yield (scaling(rope_type="proportional", partial_rotary_factor=.5, factor=3.0),
           fixed([r / F32(3) if i < d // 4 else F32(0) for i, r in enumerate(exp_rates(base, d // 2, 2, d))]))


def llama_cpp(base, d):
    """Of ggml."""
    stand = [F32(1)] * (d // 8) + [F32(1e30)] * (d // 2 - d // 8)
    yield scaling(rope_type="ntk", factor=2.5), lambda p: ggml(p, ntk_base(base, d, 2.5), d)
    yield (scaling(rope_type="proportional", partial_rotary_factor=.25, factor=3.0),
           lambda p: ggml(p, base, d, freq_scale=F32(1) / F32(3), factors=stand))
    for f, context in ((4.0, 32768), (40.0, 4096), (.5, 2048), (3.0, 5)):
        yield (scaling(rope_type="yarn", factor=f, original_max_position_embeddings=context),
               lambda p, f=f, context=context: ggml(p, base, d, context=context, **ggml_yarn(f)))
    yield (scaling(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096, mscale=.707, mscale_all_dim=.707),
           lambda p: ggml(p, base, d, context=4096, **ggml_yarn(40.0, True)))
    yield (scaling(rope_type="ggml", freq_scale=.3, ext_factor=.7, attn_factor=1.3, original_max_position_embeddings=9000,
                   beta_fast=20.0, beta_slow=2.0),
           lambda p: ggml(p, base, d, F32(.3), F32(.7), F32(1.3), None, 9000, 20.0, 2.0))
    yield (scaling(rope_type="ggml", freq_scale=.3, attn_factor=1.3), lambda p: ggml(p, base, d, F32(.3), attn=F32(1.3)))
    if d // 2 == 6:
        long = [F32(e) for e in LISTS["long"]]
        yield (scaling(rope_type="longrope", factor=32.0, original_max_position_embeddings=4096, short_factor=LISTS["short"],
                       long_factor=LISTS["long"]) + " seq_len=9999",
               lambda p: ggml(p, base, d, attn=F32(longrope_attention(32.0, 4096)), factors=long))
        yield (scaling(rope_type="ggml", freq_factors=LISTS["long"], ext_factor=1.0, freq_scale=.25,
                       original_max_position_embeddings=9000),
               lambda p: ggml(p, base, d, F32(.25), F32(1), F32(1), long, 9000))


ARITHMETICS = {"float32_pow": (transformers, F32), "bfloat16_positions": (transformers, bfloat16),
               "float16_positions": (transformers, lambda p: F32(np.float16(p))), "float32_exp": (by_exponential, F32),
               "ggml": (llama_cpp, F32)}


def rows():
    for arithmetic, (families, rounded) in ARITHMETICS.items():
        for base, d in ((10000.0, 12), (150000.0, 32), (500000.0, 10)):
            for text, angles_at in families(base, d):
                for p in POSITIONS if arithmetic in ("float32_pow", "ggml") else [.3]:
                    angles, gain = angles_at(rounded(p))
                    c, s = points(angles)
                    yield (f"layout=halves head_dim={d} base={base:g} arithmetic={arithmetic}{text}", p,
                           [v * gain for v in c + s])


# ---- PyTorch ---------------------------------------------------------------------------------------------------------

def held_against_torch():
    def ladder(d, n=None):
        return torch.arange(0, d if n is None else 2 * n, 2, dtype=torch.int64).float() / d

    def torch_dynamic(base, d, f, context, seq_len):
        seq_len = torch.tensor(seq_len) if seq_len > context else context
        base = base * ((f * seq_len / context) - (f - 1)) ** (d / (d - 2))
        return 1.0 / (base ** ladder(d))

    def torch_proportional(base, d, p, f):
        turning = int(p * d // 2)
        out = torch.cat((1.0 / (base ** ladder(d, turning)), torch.zeros(d // 2 - turning)))
        out /= f
        return out

    def torch_yarn(base, d, f, low, high):
        p = base ** ladder(d)
        ramp = torch.clamp((torch.arange(d // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
        kept = 1 - ramp
        return (1.0 / (f * p)) * (1 - kept) + (1.0 / p) * kept

    def torch_longrope(base, d, factors):
        return 1.0 / (torch.tensor(factors, dtype=torch.float32) * (base ** ladder(d)))

    def compare(wanted, got):
        assert (got.numpy() == np.array(wanted, F32)).all(), (wanted, got)

    for base, d in ((10000.0, 12), (150000.0, 32), (500000.0, 10), (1e6, 128)):
        for seq_len in (1, 2048, 2049, 5000, 1000003, 2 ** 31 + 77):
            for f in (1.1, 2.7, 8.0, 1000.1):
                compare(power_rates(dynamic_base(base, d, f, 2048, seq_len), d // 2, 2, d),
                        torch_dynamic(base, d, f, 2048, seq_len))
        for p, f in ((.25, 1.0), (.7, 3.0), (1.0, 1.5)):
            compare(proportional(base, d, p, f), torch_proportional(base, d, p, f))
        for f, context, truncate in ((4.0, 32768, True), (40.0, 4096, False), (.5, 2048, True), (3.0, 5, True), (3.1, 70, False)):
            low, high = yarn_bounds(base, d, context, 32.0, 1.0, truncate)
            compare(yarn(base, d, f, context, truncate=truncate), torch_yarn(base, d, f, low, high))
        factors = [1 + .37 * i for i in range(d // 2)]
        compare(longrope(base, d, factors), torch_longrope(base, d, factors))
    cosines = torch.cos(torch.arange(1000) * .1)
    for attention in (1.1386294361119891, 1.1902380714238083):
        assert ((cosines * attention).numpy() == cosines.numpy() * F32(attention)).all()


def main():
    held_against_torch()
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by make_rope_replay.py: do not edit.\n */\n/* clang-format off */\n"
          "static const struct arithmetic_row rope_replay_rows[] = {")
    for params, p, values in rows():
        print(f'    {{"rope", "{params}", {p!r}, {len(values)}, {{{bits(values)}}}}},')
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
