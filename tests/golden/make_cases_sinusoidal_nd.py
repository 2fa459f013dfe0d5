#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of sinusoids with several axes, after those of make_cases.py; see there. Values have 50 digits and one
rounding at the end; each function below is one project's code, written from its formula alone.
Run it in this folder: /usr/bin/python3 make_cases_sinusoidal_nd.py. The result is committed.
"""
import itertools
import json

import numpy as np
from mpmath import cos, mpf, pi, sin

from make_cases import F32, added, case, single, tensor
from make_cases_ops import softmax

USUAL = {"mae": ("last_axis_first", "halves"), "timm": ("first_axis_first", "kinds"),
         "timm_interleaved": ("first_axis_first", "halves"), "detr": ("first_axis_first", "interleaved"),
         "tatp22": ("first_axis_first", "interleaved"), "t2t": ("first_axis_first", "halves")}


def spec(d_model, combine, **more):
    order, layout = USUAL[combine]
    out = {"type": "sinusoidal_nd", "d_model": d_model, "combine": combine, "n_axes": 2, "axes_order": order, "layout": layout,
           "base": 10000.0, "cls_rows": 0, "normalize": False, "start": 0.0}
    return {**out, **more}


def ladder(x, m, base, down):
    omega = [mpf(base) ** (-mpf(i) / down) if i else mpf(1) for i in range(m)]
    return [sin(x * o) for o in omega], [cos(x * o) for o in omega]


def mix(blocks):
    return [v for s, c in blocks for pair in zip(s, c) for v in pair]


def vector(e, position):
    combine, n, d, base = e["combine"], e["n_axes"], e["d_model"], e["base"]
    if e["cls_rows"] and all(p == -1 for p in position):
        return [mpf(0)] * d
    x = [mpf(p) + mpf(e["start"]) for p in position]
    if e["normalize"]:
        x = [v / (mpf(size) + mpf(e["eps"])) * mpf(e.get("full_scale", 2 * pi)) for v, size in zip(x, e["grid"])]
    if combine == "tatp22":  # get_emb of every axis, side by side, cut
        return mix([ladder(v, -(-d // (2 * n)), base, -(-d // (2 * n))) for v in x])[:d]
    m = d // (2 * n)
    if combine == "t2t":
        out = [v for a in x for kind in ladder(a, m, base, max(m - 1, 1)) for v in kind]
        return out + [mpf(0)] * (d - len(out))
    blocks = [ladder(v, m, base, m) for v in x]
    if combine == "detr":
        return mix(blocks)
    if combine == "timm":
        return [v for kind in (0, 1) for b in blocks for v in b[kind]]
    if combine == "mae":
        blocks = blocks[::-1]
    return [v for b in blocks for kind in b for v in kind]


def rows(e, positions, dtype="float32"):
    return [[single(v) if dtype == "float32" else float(v) for v in vector(e, p)] for p in positions]


def cells(*sizes):
    return [list(at) for at in itertools.product(*map(range, sizes))]


def nd(name, query, e, positions, echo=True, dtype="float32", published=None, source=None):
    data = rows(e, positions, dtype)
    for got, wanted in zip(data, published or []):
        for a, b in zip(got, wanted):
            assert b is None or abs(a - b) <= 1.1e-6, (name, a, b)
    reply = {"encoding": e, **({"positions": positions} if echo else {}), "vectors": tensor(data, dtype)}
    case("encode/nd_" + name, "GET /v1/encode?type=sinusoidal_nd&" + query, reply, 0 if dtype == "float32" else 2.3e-16, None,
         (), source)


def published():
    s1, s2 = [.841471, .01, .540302, .99995], [.909297, .019999, -.416147, .9998]
    o = [0, 0, 1, 1]
    nd("mae_2x3", "combine=mae&d_model=8&positions.grid=2,3", spec(8, "mae"), cells(2, 3),
       published=[o + o, s1 + o, s2 + o, o + s1, s1 + s1, s2 + s1],
       source="facebookresearch/mae util/pos_embed.py: the first half is the column; transformers PR 41380: rows are tokens")
    nd("mae_cls", "combine=mae&d_model=16&cls_rows=1&positions.grid=4,4", spec(16, "mae", cls_rows=1), [[-1, -1]] + cells(4, 4),
       source="transformers modeling_vit_mae.py with its class token: a row of zeros")
    nd("cls_no_cells", "combine=mae&d_model=4&cls_rows=1&positions.grid=4,0", spec(4, "mae", cls_rows=1), [[-1, -1]],
       source="an image without patches has its class token")
    nd("timm_2x3", "combine=timm&d_model=8&positions.grid=2,3", spec(8, "timm"), cells(2, 3),
       published=[[], [0, 0, .841471, .01, 1, 1, .540302, .99995], [], [.841471, .01, 0, 0, .540302, .99995, 1, 1]],
       source="timm build_sincos2d_pos_embed")
    nd("timm_3x2_base", "combine=timm&d_model=16&base=100&positions.grid=3,2", spec(16, "timm", base=100.0), cells(3, 2),
       published=[[], [], [.84147096, .3109836, .09983342, .031617507, 0, 0, 0, 0, .54030234, .9504153, .9950042, .99950004]],
       source="timm build_sincos2d_pos_embed, temperature 100")
    nd("timm_interleaved", "combine=timm_interleaved&d_model=8&positions.grid=2,3", spec(8, "timm_interleaved"), cells(2, 3),
       published=[[], o + s1, [], s1 + o], source="timm build_sincos2d_pos_embed, interleave_sin_cos")
    q = [.84147096, .54030234, .04639922, .99892294]
    nd("tatp22_cut", "combine=tatp22&d_model=10&positions.grid=2,2", spec(10, "tatp22"), cells(2, 2),
       published=[[0, 1] * 5, [0, 1] * 3 + q, q + [.0021544327, .9999977, 0, 1, 0, 1], q + [.0021544327, .9999977] + q],
       source="tatp22 PositionalEncoding2D(10)")
    nd("tatp22_3d", "combine=tatp22&d_model=11&n_axes=3&positions.grid=2,1,3", spec(11, "tatp22", n_axes=3), cells(2, 1, 3))
    t = [.841471, 1e-4, .5403023, 1]
    nd("t2t_3d", "combine=t2t&d_model=13&n_axes=3&positions.grid=2,2,2", spec(13, "t2t", n_axes=3), cells(2, 2, 2),
       published=[(o * 3) + [0], o + o + t + [0], o + t + o + [0], o + t + t + [0], t + o + o + [0]],
       source="tensor2tensor add_timing_signal_nd, zeros at the end")
    given = [[x, x + 4] for x in range(4)]
    nd("t2t_given", "combine=t2t&d_model=8&positions=" + json.dumps(given, separators=(",", ":")), spec(8, "t2t"), given, False,
       published=[[float(f(k * v)) for v in p for f in (np.sin, np.cos) for k in (1, 1e-4)] for p in given],
       source="tensor2tensor common_attention_test.py, add_timing_signals_given_positions")
    nd("t2t_fractions", "combine=t2t&d_model=9&positions=[[0.5,-1.25],[1000000.75,9007199254740991]]", spec(9, "t2t"),
       [[.5, -1.25], [1000000.75, 9007199254740991]], False)


def detr():
    nd("detr", "combine=detr&d_model=8&start=1&positions.grid=2,3", spec(8, "detr", start=1.0), cells(2, 3),
       published=[[.841471, .540302, .01, .99995] * 2, [.841471, .540302, .01, .99995, .909297, -.416147, .019999, .9998]],
       source="DETR PositionEmbeddingSine: rows first, counted from 1")
    for name, more in (("detr_normalize", {}), ("detr_scale", {"full_scale": 3.5, "eps": .25})):
        e = spec(8, "detr", normalize=True, start=1.0, grid=[2, 3], **{"eps": 1e-6, **more})
        query = "".join(f"&{k}={v}" for k, v in more.items())
        nd(name, "combine=detr&d_model=8&start=1&normalize=true&grid=2,3&positions.grid=2,3" + query, e, cells(2, 3),
           source="DETR PositionEmbeddingSine, normalize: (p + 1)/(last + 1e-6)*2pi")
    e = spec(12, "detr", normalize=True, start=1.0, grid=[7, 5], eps=1e-6)
    nd("detr_float64", "combine=detr&d_model=12&start=1&normalize=true&grid=7,5&dtype=float64&positions=[[0,0],[6,4],[3,1]]", e,
       [[0, 0], [6, 4], [3, 1]], False, "float64")


def choices():
    e = spec(8, "mae", axes_order="first_axis_first")
    assert rows(spec(8, "timm_interleaved"), [[1, 2]]) == rows(spec(8, "mae"), [[2, 1]])
    case("encode/nd_axes_order", "GET /v1/encode?type=sinusoidal_nd&combine=mae&axes_order=first_axis_first&d_model=8&positions=[[1,2]]",
         {"encoding": e, "vectors": tensor(rows(spec(8, "timm_interleaved"), [[1, 2]]))})
    far = [[2**53, -2**53 + 1], [123456789012, 0.1]]
    nd("far", "combine=timm&d_model=16&positions=" + json.dumps(far, separators=(",", ":")), spec(16, "timm"), far, False)
    line = [[p] for p in (-1, -1, 0, 1, 2)]
    e = spec(4, "mae", n_axes=1, cls_rows=2)
    case("encode/nd_cls_line", "GET /v1/encode?type=sinusoidal_nd&combine=mae&d_model=4&n_axes=1&cls_rows=2&positions.grid=3",
         {"encoding": e, "positions": sum(line, []), "vectors": tensor(rows(e, line))}, 0, None, (),
         "a grid of one axis has its class tokens as one of two has")
    near = [[-1, -1], [-1, 0]]
    nd("minus_one", "combine=mae&d_model=4&positions=[[-1,-1],[-1,0]]", spec(4, "mae"), near, False,
       source="without cls_rows -1 is a coordinate like others")
    beside = [[-1, -1], [-1, 0], [0, -1]]
    nd("minus_one_cls", "combine=mae&d_model=4&cls_rows=1&positions=[[-1,-1],[-1,0],[0,-1]]", spec(4, "mae", cls_rows=1), beside,
       False, source="a class token has -1 in every coordinate, not in one")


def images():
    e = spec(4, "mae")
    x = (np.arange(2 * 2 * 3 * 4).reshape(2, 2, 3, 4) / 4 - 3).tolist()
    pe = np.asarray(rows(e, cells(2, 3))).reshape(2, 3, 4)
    body = {"encoding": {"type": "sinusoidal_nd", "combine": "mae"}, "embeddings": x, "axes": "bhwd"}
    out = np.vectorize(single)(added(x, 1, [pe, pe]))
    case("apply/nd_images", "POST /v1/apply", {"encoding": e, "embeddings": tensor(out)}, 0, body)
    body = {**body, "embeddings": x[0], "axes": "hwd"}
    case("apply/nd_image", "POST /v1/apply", {"encoding": e, "embeddings": tensor(out[0])}, 0, body)
    tokens = np.arange(7 * 4).reshape(7, 4) / 8
    e = spec(4, "mae", cls_rows=1)
    at = [[-1, -1]] + cells(2, 3)
    case("apply/nd_cls", "POST /v1/apply", {"encoding": e, "positions": at, "embeddings": tensor(
        np.vectorize(single)(added(tokens, 1, rows(e, at), F32)))}, 0,
        {"encoding": {"type": "sinusoidal_nd", "combine": "mae", "cls_rows": 1}, "embeddings": tokens.tolist(),
         "positions": {"grid": [2, 3]}}, (), "ViTMAE adds the same to patches and class token")
    x = tokens / 8 + np.array(rows(e, at))
    case("attention/nd_cls", "POST /v1/attention", {"encoding": e, "query_positions": at, "key_positions": at,
                                                    "weights": tensor(softmax(x @ x.T / 2, True))}, 1e-6,
         {"encoding": {"type": "sinusoidal_nd", "combine": "mae", "cls_rows": 1}, "embeddings": (tokens / 8).tolist(),
          "query_positions": {"grid": [2, 3]}, "key_positions": {"grid": [2, 3]}}, (), "the class token stands before the patches")
    e, at = spec(4, "mae"), [[1, 0], [0, 2], [5, 5]]
    x = tokens[:3] / 8 + np.array(rows(e, at))
    case("attention/nd_rows", "POST /v1/attention", {"encoding": e, "weights": tensor(softmax(x @ x.T / 2, True))}, 1e-6,
         {"encoding": {"type": "sinusoidal_nd", "combine": "mae"}, "embeddings": (tokens[:3] / 8).tolist(),
          "query_positions": at, "key_positions": at}, (), "the rows of a list may be coordinates, as those of a grid")


if __name__ == "__main__":
    for cases in (published, detr, choices, images):
        cases()
