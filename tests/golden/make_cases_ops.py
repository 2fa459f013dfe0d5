#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of attention, shift, positions and batch, after those of make_cases.py; see there.
Run it in this folder: /usr/bin/python3 make_cases_ops.py. The result is committed.
"""
import numpy as np
from mpmath import cos, mpf, sin

import make_cases
from make_cases import apply_cases, case, encode_cases, other_encodings, spec, tensor, vectors
from make_random import value as random_value

SINGLE, DOUBLE = 1e-6, 1e-14  # what numpy's float64 and one rounding may differ by


def softmax(logits, seen):
    logits = np.where(seen, logits, -np.inf)
    top = logits.max(-1, keepdims=True, initial=-np.inf)
    e = np.where(seen, np.exp(logits - np.where(np.isfinite(top), top, 0)), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def attention(name, reply, body, tolerance=SINGLE, source=None, query=""):
    dtype = "float64" if tolerance == DOUBLE else "float32"
    reply = {k: v if k == "encoding" or k.endswith("positions") else tensor(v, dtype) for k, v in reply.items()}
    case("attention/" + name, "POST /v1/attention" + query, reply, tolerance, body, (), source)


def grid(tq, tk):
    """i' of each query and j of each key, queries aligned to the right."""
    return np.arange(tq)[:, None] + tk - tq, np.arange(tk)[None, :]


def published_attention():
    eye = [[1, 0], [0, 1]]
    attention("biased", {"weights": [[.84646064, .15353936], [.44840759, .55159241]]},
              {"q": eye, "k": eye, "bias": [[0, -1], [.5, 0]]}, 1e-7, "softmax(I/sqrt(2) + bias), published to 8 digits")
    attention("plain", {"weights": [[.66976155, .33023845], [.33023845, .66976155]]}, {"q": eye, "k": eye}, 1e-7,
              "the same without bias")
    zeros = [[0.0]] * 4
    for slope, rows in ((.5, [[1, 0, 0, 0], [.37754067, .62245933, 0, 0], [.18632372, .30719589, .50648039, 0],
                              [.10153632, .1674051, .27600434, .45505423]]),
                        (.25, [None, None, None, [.16529618, .21224449, .27252732, .34993201]])):
        i, j = grid(4, 4)
        bias = -slope * np.abs(i - j)
        weights = softmax(bias, j <= i)
        for row, wanted in enumerate(rows):
            assert wanted is None or np.allclose(weights[row], wanted, atol=1e-8), (slope, row)
        attention(f"alibi_{slope:g}", {"weights": weights},
                  {"q": zeros, "k": zeros, "bias": bias.tolist(), "mask": "causal"},
                  source="Press et al. 2022: slopes 1/2 and 1/4, no content, causal")
    attention("scale_not_on_bias", {"weights": softmax(np.array([[0.0, -10.0]]), True)},
              {"q": [[0] * 64], "k": [[0] * 64] * 2, "bias": [[0, -10]]},
              source="the scale 1/sqrt(d) is of q.k, not of the bias")


def qkv(rng, *dims):
    return np.round(rng.normal(size=dims) * 8) / 8


def masks():
    rng = np.random.default_rng(3)
    q, k, v = qkv(rng, 3, 4), qkv(rng, 5, 4), qkv(rng, 5, 2)
    logits = q @ k.T / 2
    i, j = grid(3, 5)
    at = {"q": q.tolist(), "k": k.tolist()}
    bounds = np.array([0, 0, 1, 1, 1])  # documents of 2 and 3
    seen = {
        "causal_right_aligned": ("causal", j <= i),
        "causal_object": ({"causal": True}, j <= i),
        "window_1": ({"window": 2}, np.abs(i - j) < 2),
        "window_2": ({"window": [1, 0]}, (i - j <= 1) & (j - i <= 0)),
        "documents": ({"documents": [2, 3]}, bounds[i] == bounds[j]),
        "lengths": ({"lengths": [2]}, (j < 2) & (i >= 0)),
        "lengths_0": ({"lengths": [0]}, (j < 0) & (i >= 0)),
        "keep_keys": ({"keep": [1, 0, 1, 0, 1]}, (j % 2 == 0) & (i >= 0)),
        "keep_pairs": ({"keep": [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]}, np.array(
            [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)),
        "all_together": ({"causal": True, "window": 3, "keep": [1, 1, 0, 1, 1]},
                         (j <= i) & (np.abs(i - j) < 3) & (j != 2)),
    }
    for name, (mask, shown) in seen.items():
        attention("mask_" + name, {"weights": softmax(logits, shown)}, {**at, "mask": mask})
    weights = softmax(logits, j <= i)
    attention("output", {"weights": weights, "logits": logits, "content": logits, "output": weights @ v},
              {**at, "v": v.tolist(), "mask": "causal", "return": ["output", "weights", "logits", "content"]})
    attention("float64", {"weights": softmax(logits, True)}, {**at, "dtype": "float64"}, DOUBLE)
    attention("scale", {"weights": softmax(q @ k.T * .125, True)}, {**at, "scale": .125})
    bias = [[0, None, 1, 2, None], [None] * 5, [0, 0, 0, 0, 0]]
    b = np.array([[-np.inf if x is None else x for x in row] for row in bias])
    reply = {"weights": softmax(logits + b, np.isfinite(b)), "position": np.where(np.isfinite(b), b, 0)}
    reply = {name: tensor(x) for name, x in reply.items()}
    reply["position"]["data"] = bias
    case("attention/bias_null", "POST /v1/attention?return=weights,position", reply, SINGLE, {**at, "bias": bias},
         source="null in a bias is -infinity; a query that sees nothing has weights 0")


def heads():
    rng = np.random.default_rng(4)
    q, k = qkv(rng, 4, 3, 2), qkv(rng, 2, 3, 2)
    logits = np.stack([q[h] @ k[h // 2].T / np.sqrt(2) for h in range(4)])
    attention("grouped_heads", {"weights": softmax(logits, True)}, {"q": q.tolist(), "k": k.tolist()},
              source="4 query heads share 2 key heads")
    q, k = qkv(rng, 2, 2, 2, 3), qkv(rng, 2, 2, 3, 3)
    logits = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(3)
    j = np.arange(3)
    shown = (j[None, None, None, :] < np.array([3, 1])[:, None, None, None]) & np.ones_like(logits, bool)
    attention("batch_lengths", {"weights": softmax(logits, shown)},
              {"q": q.tolist(), "k": k.tolist(), "mask": {"lengths": [3, 1]}})
    x, d = qkv(rng, 3, 4), 4
    e = spec()
    p = np.array(vectors(e, range(3)), float)
    w_q, w_k, w_v = qkv(rng, 4, 4), qkv(rng, 4, 4), qkv(rng, 4, 2)
    scores = (x + p) @ (x + p).T / np.sqrt(d)
    attention("embeddings", {"encoding": e, "weights": softmax(scores, True)},
              {"encoding": "vaswani", "embeddings": x.tolist()})
    split = lambda m: m.reshape(3, 2, 2).transpose(1, 0, 2)
    terms = np.stack([split(a @ w_q) @ split(b @ w_k).transpose(0, 2, 1) / np.sqrt(2)
                      for a, b in ((x, x), (x, p), (p, x), (p, p))])
    logits = terms.sum(0)
    value = ((x + p) @ w_v).reshape(3, 2, 1).transpose(1, 0, 2)
    weights = softmax(logits, True)
    attention("terms", {"encoding": e, "weights": weights, "logits": logits, "content": terms[0],
                        "position": logits - terms[0], "output": weights @ value, "terms": terms},
              {"encoding": "vaswani", "embeddings": x.tolist(), "w_q": w_q.tolist(), "w_k": w_k.tolist(),
               "w_v": w_v.tolist(), "heads": 2,
               "return": ["weights", "logits", "content", "position", "output", "terms"]}, 4e-6,
              "content and position: (x + p)Wq.(x + p)Wk taken apart")
    ids = [1, 1, 2]
    p = np.array(vectors(spec(), ids), float)
    attention("rule_positions", {"encoding": e, "query_positions": ids,
                                 "weights": softmax((x + p) @ (x + p).T / 2, True)},
              {"encoding": "vaswani", "embeddings": x.tolist(), "query_positions": {"mask": [0, 0, 1], "rule": "opt"}})


# ---- shift ----------------------------------------------------------------------------------------------------------

def rotation(e, k):
    """M of each pair: (sin, cos) at p + k is M times (sin, cos) at p."""
    d, blocks = e["d_model"], []
    for i in range(d // 2):
        a = mpf(k) * mpf(e["base"]) ** (-mpf(2 * i) / d)
        s = sin(a) if e["order"] == "sin_cos" else -sin(a)
        blocks.append([[float(cos(a)), float(s)], [float(-s), float(cos(a))]])
    return blocks


def shift_cases():
    for name, query, e, k in (("one", "", spec(), 1), ("back", "", spec(), -3.5), ("far", "", spec(), 1000000),
                              ("cos_first", "&order=cos_sin", spec(order="cos_sin"), 2)):
        case("shift/" + name, f"GET /v1/shift?type=sinusoidal&d_model=4&distance={k}{query}",
             {"encoding": e, "blocks": tensor(rotation(e, k), "float64"), "exact": True, "residual": 0, "rms": 0}, 1e-12,
             source="the addition theorem: a rotation of each pair, the same at every position")
    e, blocks = spec(layout="halves"), rotation(spec(), 2)
    matrix = np.zeros((4, 4))
    for i in range(2):
        matrix[np.ix_([i, i + 2], [i, i + 2])] = blocks[i]
    case("shift/matrix", "POST /v1/shift", {"encoding": e, "matrix": tensor(matrix, "float64"), "exact": True,
                                            "residual": 0, "rms": 0}, 1e-12,
         {"encoding": {"type": "sinusoidal", "d_model": 4, "layout": "halves"}, "distance": 2, "return": ["matrix"]})
    row = lambda p: [float(random_value(5, p, c, "gaussian", 1)) for c in range(3)]
    before, after = (np.array([row(p + k) for p in range(20)]) for k in (0, 1))
    fit = np.linalg.lstsq(before, after, rcond=None)[0].T
    off = before @ fit.T - after
    case("shift/fitted", "GET /v1/shift?type=random&seed=5&d_model=3&distance=1&positions=0:20", {
        "encoding": {"type": "random", "d_model": 3, "seed": 5, "distribution": "gaussian", "std": 1.0},
        "matrix": tensor(fit, "float64"), "exact": False, "residual": float(np.abs(off).max()),
        "rms": float(np.sqrt((off ** 2).mean()))}, 1e-12, source="numpy.linalg.lstsq: random vectors have no map")


# ---- positions and batch --------------------------------------------------------------------------------------------

def positions(name, query, data, body=None, source=None, dtype="float64"):
    request = ("POST" if body else "GET") + " /v1/positions" + ("?" if query else "") + query
    case("positions/" + name, request, {"positions": tensor(data, dtype)}, 0, body, (), source)


def position_cases():
    source = "transformers: ids that models make of a padding mask"
    mask = [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]]
    rows = {"bert": [[0, 1, 2, 3, 4]] * 2, "roberta": [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]],
            "opt": [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]], "gpt2": [[1, 1, 0, 1, 2], [0, 1, 2, 1, 1]],
            "bloom": [[0, 0, 0, 1, 2], [0, 1, 2, 0, 0]], "fairseq": [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]]}
    for rule, ids in rows.items():
        positions("rule_" + rule, "", ids, {"mask": mask, "rule": rule}, source)
    positions("rule_get", "mask=[[0,0,1,1,1],[1,1,1,0,0]]&rule=opt", rows["opt"], source=source)
    positions("padding_idx_3", "", [[4, 5, 6], [4, 3, 3]],
              {"mask": [[1, 1, 1], [1, 0, 0]], "rule": "roberta", "padding_idx": 3}, "transformers issue 9116")
    positions("nested", "", rows["bloom"], {"positions": {"mask": mask, "rule": "bloom"}}, source)
    positions("lengths", "lengths=3,1,2", [0, 1, 2, 0, 0, 1], source="packed documents each count from 0")
    positions("grid", "grid=2,3", [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], source="row-major")
    positions("range", "positions=2:-3:-2", [2, 0, -2])
    positions("steps", "positions.start=0.25&positions.step=0.5&positions.count=3", [.25, .75, 1.25])
    positions("one", "positions=7", [7])
    positions("float32", "positions=0:3&dtype=float32", [0, 1, 2], dtype="float32")


def batch_cases():
    e = spec(d_model=2)
    one = {"status": 200, "body": {"encoding": e, "vectors": tensor(vectors(e, [0, 1]))}}
    two = {"status": 200, "body": {"positions": tensor([0, 0, 1], "float64")}}
    body = {"requests": [{"op": "encode", "encoding": {"type": "sinusoidal", "d_model": 2}, "positions": "0:2"},
                         {"op": "positions", "lengths": [1, 2]}]}
    case("batch/two", "POST /v1/batch", {"responses": [one, two]}, 0, body)
    case("batch/none", "POST /v1/batch", {"responses": []}, 0, {"requests": []})


def main():
    for cases in (encode_cases, other_encodings, apply_cases, published_attention, masks, heads, shift_cases,
                  position_cases, batch_cases):
        cases()
    print(f"{make_cases.N_CASES} cases")


if __name__ == "__main__":
    main()
