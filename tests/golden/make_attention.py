#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cases of attention with expected numbers, into attention_cases.h: python3 make_attention.py

numpy in float64, one query at a time, straight from the definition; where torch is installed its softmax and
scaled products must agree to 1e-12, or nothing is written. Inputs are multiples of 1/64, exact in float32.
"""
import math
import os
import numpy as np

try:
    import torch
except ImportError:
    torch = None

rng = np.random.default_rng(20240601)
INF = float("inf")


def make(*shape):
    return rng.integers(-128, 129, shape) / 64.0


def visible(c, b, i, j):
    """Does query i of sequence b see key j?"""
    place = i + c["tk"] - c["tq"]
    m = c["mask"]
    if m.get("causal") and j > place:
        return False
    if "lengths" in m and j >= m["lengths"][b]:
        return False
    if "documents" in m:
        owner = np.repeat(np.arange(len(m["documents"])), m["documents"])
        if owner[place] != owner[j]:
            return False
    if "window" in m:
        w = m["window"]
        back, ahead = (w[0] - 1, w[0] - 1) if len(w) == 1 else w
        if place - j > back or j - place > ahead:
            return False
    if "keep" in m:
        keep = np.array(m["keep"])
        keep = keep.reshape((1,) * (3 - keep.ndim) + keep.shape) if m.get("keep_axis") != "batch" else keep[:, None, :]
        if not np.broadcast_to(keep, (c["b"], c["tq"], c["tk"]))[b, i, j]:
            return False
    return True


def attention(c):
    b, h, hk, tq, tk = c["b"], c["h"], c["hk"], c["tq"], c["tk"]
    q = c["q"].reshape(b, h, tq, -1)
    k = c["k"].reshape(b, hk, tk, -1)
    v = c["v"].reshape(b, hk, tk, -1)
    scale = c["scale"] or 1 / math.sqrt(q.shape[-1])
    bias = np.broadcast_to(c["bias"] if c["bias"] is not None else 0.0, (b, h, tq, tk))
    weights = np.zeros((b, h, tq, tk))
    output = np.zeros((b, h, tq, v.shape[-1]))
    for x in np.ndindex(b, h, tq):
        keys = [j for j in range(tk) if visible(c, x[0], x[2], j)]
        keys = [j for j in keys if bias[x][j] != -INF]
        if not keys:
            continue
        logits = [scale * math.fsum(q[x] * k[x[0], x[1] // (h // hk), j]) + bias[x][j] for j in keys]
        powers = [math.exp(s - max(logits)) for s in logits]
        for j, p in zip(keys, powers):
            weights[x][j] = p / math.fsum(powers)
        output[x] = weights[x] @ v[x[0], x[1] // (h // hk)]
    if torch:
        second(c, q, k, v, scale, bias, weights, output)
    return weights, output


def second(c, q, k, v, scale, bias, weights, output):
    group = c["h"] // c["hk"]
    q, k, v, bias = (torch.from_numpy(np.array(t)) for t in (q, k, v, bias))
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    seen = torch.tensor([[[visible(c, b, i, j) for j in range(c["tk"])] for i in range(c["tq"])]
                         for b in range(c["b"])], dtype=torch.bool)[:, None]
    logits = (q @ k.transpose(-1, -2) * scale + bias).masked_fill(~seen, -INF)
    w = torch.nan_to_num(torch.softmax(logits, -1), nan=0.0)
    assert np.abs(w.numpy() - weights).max() < 1e-12, c["name"]
    assert np.abs((w @ v).numpy() - output).max() < 1e-12, c["name"]


def case(name, b, h, hk, tq, tk, d, dv, rank, bias=None, scale=0.0, mask=None, factor=1.0):
    c = dict(name=name, b=b, h=h, hk=hk, tq=tq, tk=tk, d=d, dv=dv, rank=rank, bias=bias, scale=scale,
             mask=mask or {}, q=make(b, h, tq, d) * factor, k=make(b, hk, tk, d), v=make(b, hk, tk, dv))
    c["weights"], c["output"] = attention(c)
    return c


hidden = make(2, 1, 3, 5)
hidden[0, 0, 1, :] = -INF
hidden[1, 0, 2, 1:] = -INF
slopes = np.array([0.5, 0.25])[None, :, None, None]
distance = np.abs(np.arange(5)[:, None] - np.arange(5)[None, :])
CASES = [
    case("plain", 1, 1, 1, 5, 5, 4, 3, 2),
    case("scale_one_three_heads", 1, 3, 3, 4, 6, 5, 5, 3, scale=1.0),
    case("batch_of_grouped_heads", 2, 6, 2, 3, 7, 8, 4, 4),
    case("one_key_head", 1, 4, 1, 3, 3, 2, 2, 3),
    case("bias_by_head", 1, 2, 2, 5, 5, 4, 4, 3, bias=-slopes * distance),
    case("bias_with_minus_infinity", 2, 2, 2, 3, 5, 4, 4, 4, bias=hidden),
    case("bias_one_value_for_all", 1, 2, 2, 4, 4, 4, 4, 3, bias=np.full((1, 1, 1, 4), -1e9)),
    case("bias_is_not_scaled", 1, 1, 1, 3, 3, 64, 2, 2, bias=np.array([[[[0, -10, 0], [-10, 0, 0], [0, 0, -10.]]]])),
    case("causal", 1, 2, 2, 5, 5, 4, 4, 3, mask={"causal": 1}),
    case("causal_with_a_cache", 1, 2, 1, 3, 7, 4, 4, 3, mask={"causal": 1}),
    case("causal_more_queries", 1, 1, 1, 6, 4, 4, 4, 2, mask={"causal": 1}),
    case("window_one_number", 1, 1, 1, 6, 6, 4, 4, 2, mask={"window": [2]}),
    case("window_back_and_ahead", 1, 1, 1, 4, 6, 4, 4, 2, mask={"window": [2, 0]}),
    case("lengths", 3, 2, 2, 4, 4, 4, 4, 4, mask={"lengths": [4, 1, 0]}),
    case("documents_causal", 1, 2, 2, 7, 7, 4, 4, 3, mask={"documents": [3, 0, 1, 3], "causal": 1}),
    case("keep_of_keys", 1, 2, 2, 3, 5, 4, 4, 3, mask={"keep": [1, 0, 1, 1, 0]}),
    case("keep_by_batch", 2, 1, 1, 3, 4, 4, 4, 4, mask={"keep": [[1, 1, 0, 0], [0, 0, 1, 1]], "keep_axis": "batch"}),
    case("keep_by_query", 2, 1, 1, 3, 4, 4, 4, 4, mask={"keep": [[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]]}),
    case("all_at_once", 2, 4, 2, 5, 7, 4, 3, 4, bias=make(1, 4, 5, 7),
         mask={"causal": 1, "window": [3, 3], "lengths": [7, 4], "keep": [1, 1, 0, 1, 1, 1, 1], "documents": [2, 5]}),
    case("sharp", 1, 1, 1, 3, 9, 4, 4, 2, factor=40.0),
]


# ---- Embeddings with sinusoids ----------------------------------------------------------------------------------

def embedded(name, b, t, d_model, heads, key_heads, d, dv, positions):
    x, w_q, w_k, w_v = make(b, t, d_model), make(d_model, heads * d) / 2, make(d_model, key_heads * d) / 2, \
        make(d_model, key_heads * dv) / 2
    p = np.array([[(math.sin if c % 2 == 0 else math.cos)(pos / 10000 ** ((c - c % 2) / d_model))
                   for c in range(d_model)] for pos in positions])

    def split(m, n):
        return m.reshape(m.shape[:-1] + (n, -1)).swapaxes(-2, -3)

    scale, group = 1 / math.sqrt(d), heads // key_heads
    sides = [(split(s @ w_q, heads), np.repeat(split(s @ w_k, key_heads), group, -3))
             for s in (x, np.broadcast_to(p, x.shape))]
    terms = np.stack([scale * sides[i][0] @ sides[j][1].swapaxes(-1, -2) for i in (0, 1) for j in (0, 1)])
    logits = scale * split((x + p) @ w_q, heads) @ np.repeat(split((x + p) @ w_k, key_heads), group, -3).swapaxes(-1, -2)
    assert np.abs(terms.sum(0) - logits).max() < 1e-12
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    output = weights @ np.repeat(split((x + p) @ w_v, key_heads), group, -3)
    return dict(name=name, b=b, t=t, d_model=d_model, heads=heads, key_heads=key_heads, d=d, dv=dv,
                positions=np.array(positions, float), x=x, w_q=w_q, w_k=w_k, w_v=w_v, logits=logits, weights=weights,
                terms=terms, output=output)


EMBEDDED = [embedded("one_head", 1, 4, 6, 1, 1, 3, 2, [0, 1, 2, 3]),
            embedded("grouped_heads", 2, 5, 8, 4, 2, 3, 4, [7, 8, 9.5, 100, 101])]


# ---- Writing ------------------------------------------------------------------------------------------------------

def number(x):
    return "-INFINITY" if x == -INF else repr(float(x))


def array(f, name, values):
    text = ", ".join(number(x) for x in np.asarray(values, float).ravel())
    f.write("static const double %s[] = {%s};\n" % (name, text))
    return name


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "attention_cases.h"), "w") as f:
        f.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_attention.py; not edited by hand.\n */\n")
        f.write("/* clang-format off */\n")
        rows, embedded_rows = [], []
        for c in CASES:
            m, n = c["mask"], c["name"]
            row = [".name = \"%s\"" % n, ".rank = %d" % c["rank"]]
            row += [".%s = %d" % (key, c[key]) for key in ("b", "h", "hk", "tq", "tk", "d", "dv")]
            row += [".%s = %s" % (key, array(f, n + "_" + key, c[key])) for key in ("q", "k", "v", "weights", "output")]
            if c["bias"] is not None:
                row += [".bias = " + array(f, n + "_bias", c["bias"]),
                        ".bias_dim = {%s}" % ", ".join(map(str, c["bias"].shape))]
            row += [".scale = " + number(c["scale"]), ".causal = %d" % m.get("causal", 0)]
            if "window" in m:
                row += [".n_window = %d, .window = {%s}" % (len(m["window"]), ", ".join(map(str, m["window"])))]
            for key in ("lengths", "documents"):
                if key in m:
                    row += [".%s = %s, .n_%s = %d" % (key, array(f, n + "_" + key, m[key]), key, len(m[key]))]
            if "keep" in m:
                shape = np.array(m["keep"]).shape
                row += [".keep = %s, .keep_rank = %d, .keep_dim = {%s}" %
                        (array(f, n + "_keep", m["keep"]), len(shape), ", ".join(map(str, shape)))]
            rows.append("    {%s},\n" % ", ".join(row))
        for c in EMBEDDED:
            row = [".name = \"%s\"" % c["name"]]
            row += [".%s = %d" % (key, c[key]) for key in ("b", "t", "d_model", "heads", "key_heads", "d", "dv")]
            row += [".%s = %s" % (key, array(f, c["name"] + "_" + key, c[key])) for key in
                    ("positions", "x", "w_q", "w_k", "w_v", "logits", "weights", "terms", "output")]
            embedded_rows.append("    {%s},\n" % ", ".join(row))
        f.write("static const struct attention_case attention_cases[] = {\n%s};\n" % "".join(rows))
        f.write("static const struct embedded_case embedded_cases[] = {\n%s};\n" % "".join(embedded_rows))
        f.write("/* clang-format on */\n")
    print("attention_cases.h: %d cases%s" % (len(CASES) + len(EMBEDDED), "" if torch else ", without torch"))


main()
