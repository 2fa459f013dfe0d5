#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of biases that are computed or looked up: KERPLE, FIRE, Sandwich, Swin, Swin V2 and custom ones, after those of
make_cases.py; see there. Biases are mpmath's, rounded once.
Run it in this folder: /usr/bin/python3 make_cases_bias.py. The result is committed.
"""
import numpy as np
from mpmath import cos, exp, log, mpf

from make_cases import case, single, tensor
from make_cases_ops import DOUBLE, attention, grid, qkv
from make_cases_t5 import ALL, numbers, parts
from make_random import of_words, philox

EXACT = 2e-7  # of float32: one rounding, of the reference or of the service


def near(got, wanted, digits=8):
    for a, b in zip(got, wanted, strict=True):
        assert abs(a - mpf(b)) <= mpf(10) ** -digits, (a, b)


def table(x, dtype="float32"):
    return {"shape": list(np.shape(x)), "dtype": dtype}


def doubles(values):
    return np.vectorize(float, otypes=[float])(np.array(values, dtype=object))


def bias(name, echo, values, body, source=None, tolerance=EXACT):
    values = np.array(values, dtype=object)
    rounded = doubles(values) if tolerance == DOUBLE else np.vectorize(single, otypes=[float])(values)
    case("bias/" + name, "POST /v1/bias", {"encoding": echo, "bias": tensor(rounded, "float64" if tolerance == DOUBLE else "float32")},
         tolerance, {**body, "dtype": "float64"} if tolerance == DOUBLE else body, (), source)


# ---- KERPLE ---------------------------------------------------------------------------------------------------------

def kerple(form, p, a, queries, keys):
    """[H, Tq, Tk]"""
    at = lambda p, a, d: -a * mpf(d) ** p if form == "power" else -p * log(1 + a * mpf(d))
    return [[[at(mpf(p[h]), mpf(a[h]), abs(j - i)) if i != j else mpf(0) for j in keys] for i in queries] for h in range(len(p))]


def kerple_cases():
    one = kerple("log", [1, 2], [1, .5], [0], range(6))
    near(one[0][0], ["0", "-.69314718", "-1.09861229", "-1.38629436", "-1.60943791", "-1.79175947"])
    near(one[1][0], ["0", "-.81093022", "-1.38629436", "-1.83258146", "-2.19722458", "-2.50552594"])
    e = {"type": "kerple", "form": "log", "p": [1.0, 2.0], "a": [1.0, .5]}
    source = "KERPLE, p=a=1 and p=2, a=1/2, distances 0 to 5"
    bias("kerple_log", e, one, {"encoding": e, "heads": 2, "query_positions": [0], "key_positions": "0:6"}, source)
    q, k = [3, 0.25, -7], [0, 3, 4.5, 2.0 ** 40]
    e = {"type": "kerple", "form": "power", "p": [.5, 2.0, 1.25], "a": [.75]}
    bias("kerple_power", e, kerple("power", e["p"], [.75] * 3, q, k),
         {"encoding": e, "heads": 3, "query_positions": q, "key_positions": k}, tolerance=DOUBLE)
    rng = np.random.default_rng(41)
    e = {"type": "kerple", "form": "log", "p": [1.5, .25], "a": [2.0, .01]}
    x = {"q": qkv(rng, 2, 2, 3, 4), "k": qkv(rng, 2, 1, 5, 4), "v": qkv(rng, 2, 1, 5, 3)}
    at_q, at_k = [[4, 2, 3], [2, 1, 0]], [[0, 1, 2, 3, 4], [-2, -1, 0, 1, 2]]
    b = np.stack([doubles(kerple("log", e["p"], e["a"], *of)) for of in zip(at_q, at_k)])
    seen = (np.arange(5)[None, :] < np.array([5, 3])[:, None])[:, None, None, :]
    attention("kerple_batch", {"encoding": e, **parts(*x.values(), b, seen, .5)},
              {**{name: v.tolist() for name, v in x.items()}, "encoding": e, "return": ALL, "query_positions": at_q,
               "key_positions": at_k, "mask": {"lengths": [5, 3]}})


# ---- FIRE -----------------------------------------------------------------------------------------------------------

FIRE = {"type": "fire", "c": .1, "L": 512.0, "eps": 1e-6, "std": 1.0}


def fire_inputs(e, queries, keys):
    c = mpf(e["c"])
    return [[log(c * abs(mpf(i) - mpf(j)) + 1) / (log(c * max(mpf(i), mpf(e["L"])) + 1) + mpf(e["eps"])) for j in keys] for i in queries]


def fire(e, layers, queries, keys):
    w1, b1, w2, b2 = layers
    f = lambda x, h: sum((max(x * mpf(w1[n]) + mpf(b1[n]), 0) * mpf(w2[n][h]) for n in range(len(w1))), mpf(b2[h]))
    inputs = fire_inputs(e, queries, keys)
    return [[[f(x, h) for x in row] for row in inputs] for h in range(len(b2))]


def layers_of(w1, b1, w2, b2):
    return dict(zip(("w1", "b1", "w2", "b2"), (w1, b1, w2, b2)))


def fire_cases():
    q, k = [10, 10, 1000, 1000], [0, 5, 999]
    x = fire_inputs(FIRE, q, k)
    near([x[0][0], x[0][1], x[2][0], x[2][2]], [".17525475", ".10251746", ".99999978", ".02065172"])
    plain = layers_of([1], [0], [[1]], [0])
    asked = {name: v for name, v in FIRE.items() if name != "std"}
    bias("fire_inputs", {**FIRE, **{name: table(v) for name, v in plain.items()}}, [x],
         {"encoding": {**asked, **plain}, "heads": 1, "query_positions": q, "key_positions": k},
         "FIRE, c=0.1, L=512: what the network is given; a network that returns it")
    seed, std = 2 ** 33 + 5, .5
    cell = lambda r, c, t: of_words(philox([r, c, t, 1], [seed & 0xFFFFFFFF, seed >> 32]), "gaussian", std)
    made = ([cell(n, 0, 0) for n in range(32)], [cell(n, 0, 1) for n in range(32)],
            [[cell(n, h, 2) for h in range(3)] for n in range(32)], [cell(h, 0, 3) for h in range(3)])
    e = {**FIRE, "c": .25, "L": 4.0, "seed": seed, "std": std}
    q, k = [-3, 0, 2.5, 700], [0, 1, 9, -2, 2.0 ** 30]
    bias("fire_seed", e, fire(e, made, q, k), {"encoding": e, "heads": 3, "query_positions": q, "key_positions": k},
         "a network from a seed: Philox4x32-10, counter (row, column, table, 1)", tolerance=DOUBLE)
    rng = np.random.default_rng(42)
    given = layers_of(*(numbers(rng, *d).tolist() for d in ((70,), (70,), (70, 4), (4,))))
    e = {**asked, "c": .5, "L": 3.0}
    b = doubles(fire(e, given.values(), range(3, 8), range(8)))
    q, k, v = qkv(rng, 4, 5, 4), qkv(rng, 2, 8, 4), qkv(rng, 2, 8, 3)
    i, j = grid(5, 8)
    full = parts(q, k, v, b, j <= i, .5)
    echo = {**FIRE, **e, **{name: table(x, "float64") for name, x in given.items()}}
    body = {"encoding": {**e, **given}, "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL, "mask": "causal",
            "dtype": "float64"}
    case("attention/fire_causal", "POST /v1/attention", {"encoding": echo, **{n: tensor(x, "float64") for n, x in full.items()}}, 2e-13,
         body, (), "grouped key heads")
    case("attention/fire_step", "POST /v1/attention", {"encoding": echo, **{n: tensor(x[:, -1:], "float64") for n, x in full.items()}},
         2e-13, {**body, "q": q[:, -1:].tolist()}, (), "with cached keys the last query gives the last row of the whole")


# ---- Sandwich -------------------------------------------------------------------------------------------------------

def sandwich_sum(d, base, r):
    return sum(cos(mpf(r) * mpf(base) ** (-mpf(2 * i) / d)) for i in range(1, d // 2 + 1))


def sandwich(e, heads, queries, keys):
    d = e["d_model"]
    of = {r: sandwich_sum(d, e["base"], r) - d // 2 for r in {abs(j - i) for i in queries for j in keys}}
    return [[[of[abs(j - i)] / (mpf(8) * h / heads) for j in keys] for i in queries] for h in range(1, heads + 1)]


def sandwich_cases():
    far = [0, 1, 2, 5, 10, 100]
    near([sandwich_sum(64, 10000, r) for r in far], ["32", "31.37652935", "29.72000882", "24.2203085", "22.89069985", "18.01229991"], 7)
    e = {"type": "sandwich", "d_model": 64, "base": 10000.0}
    got = sandwich(e, 4, [0], far)
    near(got[0][0], ["0", "-.31173532", "-1.13999559", "-3.88984575", "-4.55465007", "-6.99385004"])
    near(got[3][0], [x / 4 for x in got[0][0]], 40)
    bias("sandwich", e, got, {"encoding": e, "heads": 4, "query_positions": [0], "key_positions": far},
         "Sandwich, d=64 and 4 heads, distances 0, 1, 2, 5, 10 and 100")
    e = {"type": "sandwich", "d_model": 150, "base": 500.0}
    q, k = [0, 2.5, 2.0 ** 52], [2.0 ** 52 + 7, -1, .125, 3]
    bias("sandwich_far", e, sandwich(e, 3, q, k), {"encoding": e, "heads": 3, "query_positions": q, "key_positions": k},
         "a frequency 1 is not among them, and angles are exact at any distance", tolerance=DOUBLE)
    rng = np.random.default_rng(43)
    e = {"type": "sandwich", "d_model": 8, "base": 10000.0}
    q, k, v = qkv(rng, 2, 9, 4), qkv(rng, 2, 12, 4), qkv(rng, 2, 12, 2)
    b = doubles(sandwich(e, 2, range(3, 12), range(12)))
    i, j = grid(9, 12)
    attention("sandwich_window", {"encoding": e, **parts(q, k, v, b, (j <= i) & (i - j < 5), .5)},
              {"encoding": e, "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL, "mask": {"causal": True, "window": 5}})


# ---- Windows --------------------------------------------------------------------------------------------------------

def offsets(h, w, cls=0, folded=False):
    """Rows of a table for all pairs of tokens, from the loops of Swin's and BEiT's code."""
    n = cls + h * w
    index, count = np.zeros((n, n), int), h * w if folded else (2 * h - 1) * (2 * w - 1)
    for i in range(h * w):
        for j in range(h * w):
            dy, dx = i // w - j // w, i % w - j % w
            index[cls + i, cls + j] = abs(dy) * w + abs(dx) if folded else (dy + h - 1) * (2 * w - 1) + dx + w - 1
    if cls:
        index[0, :], index[:, 0], index[0, 0] = count, count + 1, count + 2
    return index


def swin_cases():
    echo = {"type": "swin", "window": [2, 3], "cls_rows": 0, "offsets": "signed", "std": 1.0}
    asked = {"type": "swin", "window": [2, 3]}
    rows = np.arange(15.0).reshape(15, 1)
    index = offsets(2, 3)
    assert index[0].tolist() == [7, 6, 5, 2, 1, 0] and index[5].tolist() == [14, 13, 12, 9, 8, 7]
    bias("swin_2x3", {**echo, "table": table(rows)}, [index], {"encoding": {**asked, "table": rows.tolist()}, "heads": 1},
         "a window that is not square: the factor of the rows is 2w - 1; tokens by default", tolerance=0)
    rows = np.arange(18.0).reshape(18, 1)
    index = offsets(2, 3, 1)
    assert index[0, 0] == 17 and (index[0, 1:] == 15).all() and (index[1:, 0] == 16).all()
    bias("swin_beit", {**echo, "cls_rows": 1, "table": table(rows)}, [index],
         {"encoding": {**asked, "cls_rows": 1, "table": rows.tolist()}, "heads": 1},
         "BEiT: class to patch, patch to class, class to class are the last three rows", tolerance=0)
    rows = np.arange(6.0).reshape(6, 1)
    bias("swin_levit", {**echo, "offsets": "absolute", "table": table(rows)}, [offsets(2, 3, folded=True)],
         {"encoding": {**asked, "offsets": "absolute", "table": rows.tolist()}, "heads": 1}, "LeViT: |dy| w + |dx|", tolerance=0)
    rng = np.random.default_rng(44)
    x = {"q": qkv(rng, 2, 4, 5, 4), "k": qkv(rng, 2, 2, 5, 4), "v": qkv(rng, 2, 2, 5, 3)}
    of = numbers(rng, 9 + 3, 4)
    b = np.moveaxis(of[offsets(2, 2, 1)], -1, 0)
    attention("swin_windows", {"encoding": {**echo, "window": [2, 2], "cls_rows": 1, "table": table(of, "float64")},
                               **parts(*x.values(), b, True, .5)},
              {**{name: v.tolist() for name, v in x.items()}, "return": ALL, "dtype": "float64",
               "encoding": {"type": "swin", "window": [2, 2], "cls_rows": 1, "table": of.tolist()}}, DOUBLE,
              "windows are a batch, with one bias for all")


def coordinate(mode, d, side):
    if mode == "cr":
        return np.sign(d) * log(1 + abs(mpf(d)))
    u = 8 * mpf(d) / (side - 1) if side > 1 else mpf(0)
    return np.sign(d) * log(1 + abs(u)) / log(8)


def swin_v2(h, w, trained, mode, layers, squash):
    w1, b1, w2, b2 = layers
    heads, out = len(w2[0]), np.zeros((len(w2[0]), h * w, h * w), object)
    for i in range(h * w):
        for j in range(h * w):
            y, x = coordinate(mode, i // w - j // w, trained[0]), coordinate(mode, i % w - j % w, trained[1])
            units = [max(y * w1[0][n] + x * w1[1][n] + b1[n], 0) for n in range(len(b1))]
            for head in range(heads):
                v = sum(u * w2[n][head] for n, u in enumerate(units)) + (b2[head] if b2 else 0)
                out[head, i, j] = 16 / (1 + exp(-v)) if squash else v
    return out


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def swin_v2_cases():
    rng = np.random.default_rng(45)
    layers = [numbers(rng, *d).tolist() for d in ((2, 6), (6,), (6, 2), (2,))]
    network = dict(zip(("w1", "b1", "w2"), layers))
    echo = {"type": "swin_v2", "window": [2, 3], "coordinates": "swin", "squash": True, "cls_rows": 0, "std": 1.0,
            **{name: table(x) for name, x in network.items()}}
    asked = {"type": "swin_v2", "window": [2, 3], **network}
    none = layers[:3] + [None]
    bias("swin_v2", echo, swin_v2(2, 3, (2, 3), "swin", none, True), {"encoding": asked, "heads": 2}, tolerance=2e-6)
    bias("swin_v2_pretrained", {**echo, "pretrained_window": [8, 12]}, swin_v2(2, 3, (8, 12), "swin", none, True),
         {"encoding": {**asked, "pretrained_window": [8, 12]}, "heads": 2}, "offsets are divided by the window of the training", 2e-6)
    wide = {**echo, "coordinates": "cr", "squash": False, "cls_rows": 1, **{n: table(x, "float64") for n, x in network.items()},
            "b2": table(layers[3], "float64")}
    padded = np.pad(swin_v2(2, 3, (2, 3), "cr", layers, False), ((0, 0), (1, 0), (1, 0)), constant_values=mpf(0))
    bias("swin_v2_cr", wide, padded, {"encoding": {**asked, "coordinates": "cr", "squash": False, "cls_rows": 1, "b2": layers[3]}, "heads": 2},
         "timm RelPosMlp, mode cr, whose prefix tokens have a bias of 0", DOUBLE)
    bias("swin_v2_one_side", {**echo, "window": [1, 2]}, swin_v2(1, 2, (1, 2), "swin", none, True),
         {"encoding": {**asked, "window": [1, 2]}, "heads": 2}, "a side of one patch has one offset", 2e-6)
    scale = [1.0, 7.0]
    q, k, v = qkv(rng, 2, 6, 4), qkv(rng, 1, 6, 4), qkv(rng, 1, 6, 3)
    q[0, 2] = 0
    tau = np.minimum(np.exp(scale), 100).reshape(2, 1, 1)
    b = doubles(swin_v2(2, 3, (2, 3), "swin", none, True))
    e = {**echo, "logit_scale": scale, **{name: table(x, "float64") for name, x in network.items()}}
    reply = parts(tau * unit(q), unit(k), v, b, True, 1)
    case("attention/swin_v2_cosine", "POST /v1/attention", {"encoding": e, **{n: tensor(x, "float64") for n, x in reply.items()}}, 2e-13,
         {"encoding": {**asked, "logit_scale": scale}, "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL,
          "dtype": "float64"}, (), "exp(min(logit_scale, ln 100)) times the cosine; that of a vector of zeros is 0")
    rows = np.array([[0.0], [1], [-1], [2], [700], [-700], [3], [-4], [.5]])
    e = {name: x for name, x in echo.items() if name not in network}
    squashed = [[[16 / (1 + exp(-mpf(rows[r, 0]))) for r in row] for row in offsets(2, 2)]]
    bias("swin_v2_table", {**e, "window": [2, 2], "table": table(rows)}, squashed,
         {"encoding": {"type": "swin_v2", "window": [2, 2], "table": rows.tolist()}, "heads": 1}, tolerance=1e-6)


# ---- Biases of one's own --------------------------------------------------------------------------------------------

def nulls(x):
    return [nulls(y) for y in x] if isinstance(x, list) else x if x is None or np.isfinite(x) else None


def custom_cases():
    matrix = [[.5, -1, None], [2, 0, 3]]
    e = {"type": "custom", "matrix": matrix}
    case("bias/custom_matrix", "POST /v1/bias",
         {"encoding": {"type": "custom", "matrix": table(np.zeros((2, 3)))},
          "bias": {"shape": [2, 2, 3], "dtype": "float32", "data": [matrix] * 2}}, 0, {"encoding": e, "heads": 2}, (),
         "one matrix for all heads, at the places it has; null is -infinity")
    by = [[-2, -1, 0, 1, 2], [9, 8, 7, 6, 5]]
    rows = [[[of[j - i + 2] for j in (3, 5, 4)] for i in (5, 3)] for of in by]
    bias("custom_by_distance", {"type": "custom", "by_distance": table(by)}, rows,
         {"encoding": {"type": "custom", "by_distance": by}, "heads": 2, "query_positions": [5, 3], "key_positions": [3, 5, 4]},
         tolerance=0)
    rng = np.random.default_rng(46)
    q, k, v = qkv(rng, 2, 2, 4), qkv(rng, 2, 3, 4), qkv(rng, 2, 3, 2)
    b = np.array([[.5, -1, -np.inf], [2, 0, 3]])
    with np.errstate(invalid="ignore"):
        full = parts(q, k, v, np.stack([b] * 2), np.isfinite(b), .5)
    reply = {name: {**tensor(np.where(np.isfinite(x), x, 0)), "data": nulls(x.tolist())} for name, x in full.items()}
    case("attention/custom_matrix", "POST /v1/attention", {"encoding": {"type": "custom", "matrix": table(b)}, **reply}, 1e-6,
         {"encoding": e, "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL}, (),
         "as many queries and keys as the matrix has: each at its row and column")


if __name__ == "__main__":
    for cases in (kerple_cases, fire_cases, sandwich_cases, swin_cases, swin_v2_cases, custom_cases):
        cases()
