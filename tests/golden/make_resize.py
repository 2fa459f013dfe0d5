#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of learned tables that are resized: ../cases/convert/resize_*, and learned_* of grids in encode and apply.
Run it in this folder: /usr/bin/python3 make_resize.py. The result is committed.

The numbers are torch's interpolate and grid_sample in float64. It has no cubic kernel with a = -1/2 and repeated edges:
that one is in fractions here, from the formula, and the same code agrees with torch at a = -3/4.
"""
import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as nnf

from make_cases import LINE, case, tensor

KERNELS = {"linear": ("bilinear", False), "bilinear": ("bilinear", False), "bilinear_antialias": ("bilinear", True),
           "bicubic": ("bicubic", False), "bicubic_antialias": ("bicubic", True)}
TOLERANCE = 4e-15


def cubic(x, a):
    x = abs(x)
    if x < 1:
        return (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1
    return a * x ** 3 - 5 * a * x ** 2 + 8 * a * x - 4 * a if x < 2 else 0


def cubic_line(values, to, a):
    """Half-pixel centres, edges repeated, in fractions."""
    out = []
    for t in range(to):
        at = Fraction(2 * t + 1, 2) * len(values) / to - Fraction(1, 2)
        near = math.floor(at)
        out.append(sum(cubic(at - j, a) * Fraction(values[min(max(j, 0), len(values) - 1)]) for j in range(near - 1, near + 3)))
    return [float(v) for v in out]


def cubic_grid(grid, to, a):
    lines = np.apply_along_axis(lambda v: cubic_line(v, to[0], a), 0, grid)
    return np.apply_along_axis(lambda v: cubic_line(v, to[1], a), 1, lines)


def resized(grid, to, kernel, align=False):
    """[h, w, D] to [H, W, D]."""
    grid = np.asarray(grid, float)
    if kernel == "bicubic_keys":
        return cubic_grid(grid, to, Fraction(-1, 2))
    mode, antialias = KERNELS[kernel]
    made = nnf.interpolate(torch.tensor(grid).permute(2, 0, 1)[None], size=to, mode=mode, align_corners=align, antialias=antialias)
    return made[0].permute(1, 2, 0).numpy()


def numbers(*shape):
    """Multiples of 1/32, so that they are exact in every type."""
    rng = np.random.default_rng(list(shape))
    return rng.integers(-64, 65, shape) / 32


def resize(name, table, out, source=None, tolerance=TOLERANCE, dtype="float64", **how):
    case("convert/resize_" + name, "POST /v1/convert", {"tensor": tensor(out, dtype)}, tolerance,
         {"tensor": np.asarray(table).tolist(), "resize": how, "dtype": dtype}, source=source)


def lines():
    ramp = np.arange(4.)[:, None]
    published = {("bicubic", 6): [-.08680556, .40625, 1.21296296, 1.78703704, 2.59375, 3.08680556],
                 ("bicubic", 8): [-.10546875, .19140625, .66796875, 1.296875, 1.703125, 2.33203125, 2.80859375, 3.10546875],
                 ("bicubic_keys", 6): [-.05787037, .4375, 1.16666667, 1.83333333, 2.5625, 3.05787037],
                 ("linear", 6): [0, .5, 1.16666667, 1.83333333, 2.5, 3]}
    for kernel in ("linear", "bicubic", "bicubic_keys"):
        for to in (6, 8, 3):
            out = cubic_line([0, 1, 2, 3], to, Fraction(-1, 2)) if kernel == "bicubic_keys" else resized(
                ramp[:, None], (to, 1), kernel)[:, 0, 0]
            assert np.allclose(out, published.get((kernel, to), out), atol=6e-9, rtol=0), (kernel, to)
            resize(f"line_{kernel}_{to}", ramp, np.reshape(out, (-1, 1)), to_rows=to, kernel=kernel)
    assert np.allclose(cubic_line([0, 1, 2, 3], 6, Fraction(-3, 4)), published["bicubic", 6], atol=6e-9)
    corners = resized(ramp[:, None], (6, 1), "linear", True)[:, 0]
    assert np.allclose(corners[:, 0], [0, .6, 1.2, 1.8, 2.4, 3])
    resize("line_corners", ramp, corners, to_rows=6, kernel="linear", align_corners=True)
    table = numbers(5, 3)
    resize("sam", table, resized(table[:, None], (3, 1), "linear")[:, 0], source="get_rel_pos: relative positions for another window",
           to_rows=3, kernel="linear")
    resize("one", table, table[2:3], to_rows=1, kernel="linear", tolerance=0)
    resize("line_antialias", numbers(9, 2), resized(numbers(9, 2)[:, None], (4, 1), "bicubic_antialias")[:, 0], to_rows=4,
           kernel="bicubic_antialias")


def grids():
    cls, table = numbers(1, 3), numbers(3, 3, 3)
    rows = np.concatenate([cls, table.reshape(9, 3)])

    def with_cls(cells):
        return np.concatenate([cls, cells.reshape(-1, 3)])

    resize("mae", [rows], [with_cls(resized(table, (4, 4), "bicubic"))], "interpolate_pos_embed of MAE: 3 x 3 to 4 x 4",
           to_grid=[4, 4], prefix_rows=1, kernel="bicubic")
    resize("vit", [rows], [with_cls(resized(table, (2, 5), "bicubic"))], "interpolate_pos_encoding of ViT: 3 x 3 to 2 x 5",
           to_grid=[2, 5], from_grid=[3, 3], prefix_rows=1, kernel="bicubic")
    for kernel, note in (("bicubic_antialias", "timm resample_abs_pos_embed, antialias"), ("bilinear", "timm, bilinear"),
                         ("bicubic_keys", None)):
        resize("up_" + kernel, rows, with_cls(resized(table, (5, 5), kernel)), note, to_grid=[5, 5], prefix_rows=1, kernel=kernel)
    wide = numbers(6, 9, 2)
    for kernel in KERNELS:
        if kernel != "linear":
            resize("down_" + kernel, wide, resized(wide, (4, 2), kernel), to_grid=[4, 2], kernel=kernel)
    resize("tall", numbers(2, 7, 2), resized(numbers(2, 7, 2), (11, 1), "bicubic"), "the second axis first is cheaper",
           to_grid=[11, 1], kernel="bicubic")
    for kernel in ("bilinear", "bicubic"):
        resize("corners_" + kernel, [wide], [resized(wide, (5, 12), kernel, True)], to_grid=[5, 12], kernel=kernel, align_corners=True)
    relative = numbers(3 * 5 + 3, 2)
    resize("beit", relative, np.concatenate([resized(relative[:15].reshape(3, 5, 2), (5, 7), "bicubic").reshape(-1, 2), relative[15:]]),
           "a relative table with three rows of class tokens behind it", to_grid=[5, 7], from_grid=[3, 5], suffix_rows=3, kernel="bicubic")
    resize("float32", rows, with_cls(resized(table, (4, 4), "bicubic")), None, 1e-7, "float32", to_grid=[4, 4], prefix_rows=1,
           kernel="bicubic")


def learned(table, **more):
    return {"type": "learned", "table": {"shape": list(np.shape(table)), "dtype": "float64"}, "offset": 0, "out_of_range": "error",
            "interpolate": "none", **LINE, **more}


def encode(name, table, positions, out, more, source=None, echo=None, tolerance=TOLERANCE):
    given = {"type": "learned", "table": {"dtype": "float64", "data": table.tolist()}, **more}
    resolved = learned(table, **more)
    resolved["grid"] = resolved.get("grid", [3, 3])
    reply = {"encoding": resolved, "vectors": tensor(out, "float64")}
    if echo is not None:
        reply["positions"] = echo
    case("encode/learned_" + name, "POST /v1/encode", reply, tolerance,
         {"encoding": given, "positions": positions, "dtype": "float64"}, source=source)


def vectors():
    cls, table = numbers(1, 3), numbers(3, 3, 3)
    rows = np.concatenate([cls, table.reshape(9, 3)])
    cells = [[y, x] for y in range(2) for x in range(5)]
    encode("grid", rows, [[2, 1], [0, 0]], rows[[8, 1]], {"cls_rows": 1}, tolerance=0)
    encode("tokens", rows, "0:10", rows, {"cls_rows": 1}, tolerance=0)
    for kernel in ("bicubic", "bicubic_antialias", "bilinear"):
        small = resized(table, (2, 5), kernel).reshape(-1, 3)
        encode("image_" + kernel, rows, "0:11", np.concatenate([cls, small]),
               {"cls_rows": 1, "interpolate": kernel, "image_grid": [2, 5]}, "a model's tokens for an image of another size")
    encode("image_cells", rows, {"grid": [2, 5]}, resized(table, (2, 5), "bicubic").reshape(-1, 3),
           {"cls_rows": 1, "interpolate": "bicubic", "image_grid": [2, 5]}, echo=cells)
    encode("image_corners", rows, "0:11", np.concatenate([cls, resized(table, (2, 5), "bicubic", True).reshape(-1, 3)]),
           {"cls_rows": 1, "interpolate": "bicubic", "image_grid": [2, 5], "align_corners": True})
    between = np.array([[.5, 1.25], [-.5, 2.5], [1.75, -.25], [2, 0]])
    for kernel in ("bilinear", "bicubic"):
        places = torch.tensor(between[None, None, :, ::-1] - 1.)  # corners of 3 numbers are -1 and 1
        out = nnf.grid_sample(torch.tensor(table).permute(2, 0, 1)[None], places, mode=kernel, padding_mode="border", align_corners=True)
        encode("between_" + kernel, rows, between.tolist(), out[0, :, 0].T.numpy(), {"cls_rows": 1, "interpolate": kernel},
               "grid_sample: places between cells, and beyond their centres at the edges")
    scaled = learned(rows, table_scale=.25)
    case("encode/learned_scaled", "POST /v1/encode", {"encoding": scaled, "vectors": tensor(rows[:2] / 4, "float64")}, 0,
         {"encoding": {"type": "learned", "table": {"dtype": "float64", "data": rows.tolist()}, "table_scale": .25}, "positions": "0:2"})
    wide = numbers(4, 16)
    case("encode/learned_rsqrt", "POST /v1/encode",
         {"encoding": learned(wide, table_scale="rsqrt_d_model"), "vectors": tensor(wide[[2, 0]] / 4, "float64")}, 0,
         {"encoding": {"type": "learned", "table": {"dtype": "float64", "data": wide.tolist()}, "table_scale": "rsqrt_d_model"},
          "positions": [2, 0]}, source="AbsolutePositionalEmbedding of x-transformers, d = 16")
    x = numbers(1, 11, 3)
    added = x + np.concatenate([cls, resized(table, (2, 5), "bicubic").reshape(-1, 3)])
    more = {"cls_rows": 1, "interpolate": "bicubic", "image_grid": [2, 5], "grid": [3, 3]}
    case("apply/learned_image", "POST /v1/apply", {"encoding": learned(rows, **more), "embeddings": tensor(added, "float64")}, TOLERANCE,
         {"encoding": {"type": "learned", "table": {"dtype": "float64", "data": rows.tolist()}, **more},
          "embeddings": {"dtype": "float64", "data": x.tolist()}}, source="the class row, and patches of an image of another size")


if __name__ == "__main__":
    lines()
    grids()
    vectors()
