#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rope in ggml's words, computed apart from the library: writes rope_ggml.h.

    python3 tests/golden/make_rope_ggml.py > tests/golden/rope_ggml.h

The steps of ggml_rope_ext in 60 digits (mpmath): the angle at position 1, and the factor of sine and cosine, each
rounded once to float64.

Needs python3-mpmath. The result is committed, so that the tests need none of it.
"""
import json

from mpmath import mp, mpf

mp.dps = 60
DEFAULTS = {"freq_base": 10000, "freq_scale": 1, "ext_factor": 0, "attn_factor": 1, "beta_fast": 32, "beta_slow": 1}
FACTORS = [1, 1.5, 2, 3.25, 0.5, 8, 16, 31.75]
CASES = [
    (64, {"mode": 2}),
    (64, {"mode": 0, "freq_base": 500000, "freq_scale": 0.25}),
    (16, {"mode": 0, "attn_factor": 1.1902380714238083, "freq_factors": FACTORS}),
    (16, {"mode": 2, "freq_scale": 0.5, "freq_factors": FACTORS}),
    (128, {"mode": 2, "freq_scale": 0.25, "ext_factor": 1, "n_ctx_orig": 4096}),
    (64, {"mode": 2, "freq_base": 150000, "freq_scale": 0.03125, "ext_factor": 1, "n_ctx_orig": 4096}),
    (64, {"mode": 0, "freq_base": 150000, "freq_scale": 0.1, "ext_factor": 0.5, "attn_factor": 1.5, "n_ctx_orig": 2048}),
    (16, {"mode": 0, "freq_scale": 0.3, "ext_factor": 1, "n_ctx_orig": 100000, "freq_factors": FACTORS}),
    (64, {"mode": 0, "freq_scale": 0.125, "ext_factor": 1, "n_ctx_orig": 4096, "beta_fast": 8.5, "beta_slow": 0.25}),
    (64, {"mode": 0, "freq_scale": 0.125, "ext_factor": 1, "n_ctx_orig": 4096, "beta_fast": 1, "beta_slow": 32}),
    (64, {"mode": 0, "freq_scale": 0.125, "ext_factor": 1, "n_ctx_orig": 2}),
    (64, {"mode": 0, "freq_scale": 2, "ext_factor": 1, "n_ctx_orig": 4096}),
    (16, {"mode": 8, "sections": [4, 2, 2, 0], "freq_base": 1000000}),
    (16, {"mode": 40, "sections": [4, 2, 2, 0], "freq_base": 5000000, "freq_scale": 0.5}),
]


def computed(d, given):
    c = dict(DEFAULTS, **given)
    base, scale, e = mpf(c["freq_base"]), mpf(c["freq_scale"]), mpf(c["ext_factor"])
    factor, low, high = mpf(c["attn_factor"]), mpf(-1), mpf(-1)
    if e != 0:
        def pair(beta):
            return d * mp.log(mpf(c["n_ctx_orig"]) / (mpf(beta) * 2 * mp.pi)) / (2 * mp.log(base))
        low, high = max(mpf(0), mp.floor(pair(c["beta_fast"]))), min(mpf(d - 1), mp.ceil(pair(c["beta_slow"])))
        factor *= 1 + mpf(1) / 10 * mp.log(1 / scale)
    angles = []
    for i in range(d // 2):
        extrap = base ** (-mpf(2 * i) / d) / mpf(c.get("freq_factors", [1] * d)[i])
        angle = scale * extrap
        if e != 0:
            mix = e * (1 - min(mpf(1), max(mpf(0), (i - low) / max(mpf(1) / 1000, high - low))))
            angle = angle * (1 - mix) + extrap * mix
        angles.append(angle)
    return angles, factor, low, high


def main():
    rows, values = [], []
    for d, given in CASES:
        angles, factor, low, high = computed(d, given)
        text = json.dumps({"head_dim": d, "ggml": given}).replace('"', '\\"')
        rows.append(f'    {{"{text}", {float(factor).hex()}, {float(low).hex()}, {float(high).hex()}, {d // 2}, {len(values)}}},')
        values += [float(x).hex() for x in angles]
    lines = [", ".join(values[i:i + 4]) for i in range(0, len(values), 4)]
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by make_rope_ggml.py: do not edit.\n */\n/* clang-format off */")
    print("static const struct rope_ggml_case {\n    const char *fields;\n    double attention_factor, low, high; /* -1: no range */\n"
          "    size_t n, first;\n} rope_ggml_cases[] = {")
    print("\n".join(rows) + "\n};\nstatic const double rope_ggml_values[] = {")
    print("    " + ",\n    ".join(lines) + "\n};\n/* clang-format on */")


main()
