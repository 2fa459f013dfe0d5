#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of similarity and properties, after those of make_cases.py; see there. Vectors are mpmath's in 50 digits,
products and distances numpy's in float64.
Run it in this folder: /usr/bin/python3 make_cases_similarity.py. The result is committed.
"""
import numpy as np
from mpmath import cos, mpf, sin

import make_cases_sinusoidal_nd as nd
from make_cases import LINE, case, sinusoid, spec, tensor
from make_random import WORD, of_words, philox

SINGLE, DOUBLE = 1e-6, 1e-13
ROPE = {"type": "rope", "head_dim": 6, "rotary_dim": 6, "base": 10000.0, "layout": "halves", "direction": "counterclockwise",
        "arithmetic": "exact"}


def vectors(e, positions):
    return np.array([[float(v) for v in sinusoid(e, p)] for p in positions])


def offsets(gram):
    """Mean and spread of each diagonal, from the lowest."""
    n = len(gram)
    rows = [np.diagonal(gram, r) for r in range(1 - n, n)]
    return [row.mean() for row in rows], [row.max() - row.min() for row in rows]


def similarity(name, query, e, gram, tolerance=SINGLE, even=True, body=None, source=None):
    dtype = "float64" if tolerance == DOUBLE else "float32"
    reply = {"encoding": e, "gram": tensor(gram, dtype)}
    if even:
        mean, spread = offsets(gram)
        reply.update(by_offset=tensor(mean, dtype), spread=tensor(spread, dtype))
    case("similarity/" + name, ("POST /v1/similarity" if body else "GET /v1/similarity?") + query, reply, tolerance, body, (), source)


def cell(seed, row, column, table, std):
    """A number of a table that is made from a seed: Philox, whose last word of the counter is 1."""
    return float(of_words(philox([row, column, table, 1], [seed & WORD, seed >> 32]), "gaussian", std))


def similarities():
    e = spec(d_model=128)
    x = vectors(e, range(6))
    published = [64, 62.09368, 57.38186, 47.18501]
    gram = x @ x.T
    for k, wanted in zip((0, 1, 2, 5), published):
        assert abs(gram[0, k] - wanted) < 6e-6, (k, gram[0, k])
    similarity("d128", "type=sinusoidal&d_model=128&positions=0:6", e, gram, source="PE(0).PE(k) of width 128: 64, 62.09368, 57.38186")
    e = spec(d_model=6)
    x = vectors(e, [3, 10, 4.5])
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity("cosine_list", "type=sinusoidal&d_model=6&positions=3,10,4.5&metric=cosine&dtype=float64", e, unit @ unit.T, DOUBLE, even=False)
    points = [[f(mpf(p) * mpf(10000) ** (-mpf(i) / 3)) for f in (cos, sin) for i in range(3)] for p in range(4)]
    x = np.array(points, float)
    similarity("rotary", "type=rope&layout=halves&head_dim=6&positions=0:4", ROPE, x @ x.T)
    image, at = nd.spec(8, "mae", cls_rows=1), [[-1, -1]] + nd.cells(2, 2)
    x = np.array(nd.rows(image, at, "float64"))
    reply = {"encoding": image, "positions": at, "gram": tensor(x @ x.T)}
    case("similarity/nd_cls", "GET /v1/similarity?type=sinusoidal_nd&combine=mae&d_model=8&cls_rows=1&positions.grid=2,2", reply, SINGLE,
         None, (), "the tokens of encode: the class token first")
    rng = np.random.default_rng(5)
    w_q, w_k = (np.round(rng.normal(size=(6, 3)) * 8) / 8 for _ in range(2))
    x = vectors(e, range(2, 6))
    gram = (x @ w_q) @ (x @ w_k).T
    body = {"encoding": {"type": "sinusoidal", "d_model": 6}, "positions": "2:6", "w_q": w_q.tolist(), "w_k": w_k.tolist(), "dtype": "float64"}
    similarity("projected", "", e, gram, DOUBLE, body=body)
    x = vectors(e, range(4))
    w = [np.array([[cell(7, row, column, table, 1 / 6 ** .5) for column in range(6)] for row in range(6)]) for table in range(2)]
    gram = (x @ w[0]) @ (x @ w[1]).T
    assert max(offsets(gram)[1]) > .1  # it is no function of the distance
    similarity("w_seed", "type=sinusoidal&d_model=6&positions=0:4&w_seed=7", e, gram)


def scorecard(name, query, e, x, longer, far, **more):
    """From vectors [T, D]: here, in a sequence twice as long, and ten times as far (None: there are none)."""
    n, d = x.shape
    pairs = [(np.linalg.norm(x[i] - x[j]), i, j) for i in range(n) for j in range(i + 1, n)]
    closest = min(pairs)
    norms, steps = np.linalg.norm(x, axis=1), np.linalg.norm(np.diff(x, axis=0), axis=1)
    change = float(np.abs(x - longer).max())
    beside = {key: more[key] for key in ("positions", "wavelengths") if key in more}
    reply = {"encoding": e, **beside,
             "unique": {"holds": bool(closest[0] > 0), "closest": closest[0], "indices": list(closest[1:])},
             "bounded": {"holds": more.get("bounded", True), "largest": np.abs(x).max(),
                         "largest_far": np.abs(x if far is None else far).max()},
             "same_lengths": {"holds": change == 0, "change": change},
             "beyond": {"holds": far is not None, **({"detail": more["detail"]} if far is None else {})},
             "norm": {"min": norms.min(), "max": norms.max()}, "step": {"min": steps.min(), "max": steps.max()},
             "costs": {"parameters": more.get("parameters", 0), "bytes": 4 * n * d, "flops_per_token": d}}
    case("properties/" + name, query, reply, 1e-12, more.get("body"))


def scorecards():
    e = spec(d_model=6)
    waves = [float(2 * np.pi * 10000 ** (i / 3)) for i in range(3)]
    x, far = vectors(e, range(5)), vectors(e, range(0, 50, 10))
    scorecard("sinusoidal", "GET /v1/properties?type=sinusoidal&d_model=6&positions=0:5", e, x, x, far, wavelengths=waves)
    at = [0, 1, 2, 0, 1]
    x = vectors(e, at)
    scorecard("lengths", "GET /v1/properties?type=sinusoidal&d_model=6&positions.lengths=3,2", e, x, x, far, wavelengths=waves, positions=at)
    x = np.repeat(np.arange(4)[:, None] / 4, 2, 1)
    scorecard("naive_normalized", "GET /v1/properties?type=naive&d_model=2&form=normalized&positions=0:4",
              {"type": "naive", "d_model": 2, "form": "normalized", "seq_len": 4}, x, x / 2, x * 10, bounded=False)
    x = np.array([[(p >> bit) & 1 for bit in range(3)] for p in range(4)], float)
    scorecard("naive_binary", "GET /v1/properties?type=naive&d_model=3&form=binary&positions=0:4",
              {"type": "naive", "d_model": 3, "form": "binary", "seq_len": 4}, x, x, None,
              detail="got 10, allowed are whole numbers from 0 to 7 (3 bits)")
    table = np.array([[1, 2], [3, -4], [.5, 2]])
    scorecard("learned", "POST /v1/properties", {"type": "learned", "table": {"shape": [3, 2], "dtype": "float32"}, "offset": 0,
              "out_of_range": "error", "interpolate": "none", **LINE}, table, table, None, parameters=6,
              detail="position 10 with offset 0 is row 10, but the table has 3 rows, 0 to 2",
              body={"encoding": {"type": "learned", "table": table.tolist()}, "positions": "0:3"})


if __name__ == "__main__":
    similarities()
    scorecards()
