#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of convert: ../cases/convert. Run it in this folder: /usr/bin/python3 make_convert.py. The result is committed.

The order of rows is found as conversion scripts do it, by reshaping and transposing an array of row numbers, and checked
here on scores: turned in either layout, products of queries and keys are the same.
"""
import numpy as np

from make_cases import case, tensor


def rows(to, head_dim, heads, rotary_dim=None):
    d = rotary_dim or head_dim
    table = np.arange(heads * head_dim).reshape(heads, head_dim)
    shape = (heads, d // 2, 2) if to == "halves" else (heads, 2, d // 2)
    turned = table[:, :d].reshape(shape).transpose(0, 2, 1).reshape(heads, d)
    return np.concatenate([turned, table[:, d:]], 1).ravel()


def turn(x, position, layout, d):
    angle = position * 10000.0 ** (-np.arange(0, d, 2) / d)
    first, second = (slice(0, d, 2), slice(1, d, 2)) if layout == "interleaved" else (slice(0, d // 2), slice(d // 2, d))
    out = x.copy()
    out[:, first] = x[:, first] * np.cos(angle) - x[:, second] * np.sin(angle)
    out[:, second] = x[:, second] * np.cos(angle) + x[:, first] * np.sin(angle)
    return out


def check(head_dim, heads, kv_heads, d):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 9))
    w_q, w_k = rng.standard_normal((heads * head_dim, 9)), rng.standard_normal((kv_heads * head_dim, 9))
    products = []
    for layout, p_q, p_k in (("interleaved", slice(None), slice(None)),
                             ("halves", rows("halves", head_dim, heads, d), rows("halves", head_dim, kv_heads, d))):
        q = turn((w_q[p_q] @ x).reshape(heads, head_dim), 11, layout, d)
        k = turn((w_k[p_k] @ y).reshape(kv_heads, head_dim), 4, layout, d)
        products.append((q * np.repeat(k, heads // kv_heads, 0)).sum(1))
    assert np.allclose(*products, rtol=1e-12)


def listed(permutation):
    return tensor(permutation, "float64")


def main():
    for sizes in ((8, 4, 2, 8), (10, 4, 4, 6)):
        check(*sizes)
    case("convert/to_halves", "GET /v1/convert?from=interleaved&to=halves&head_dim=8&heads=2&kv_heads=1",
         {"permutation": listed(rows("halves", 8, 2)), "permutation_k": listed(rows("halves", 8, 1))},
         source="Meta's Llama to transformers': per head the even rows, then the odd ones")
    case("convert/to_interleaved", "GET /v1/convert?from=halves&to=interleaved&head_dim=6&heads=2",
         {"permutation": listed(rows("interleaved", 6, 2)), "permutation_k": listed(rows("interleaved", 6, 2))})
    case("convert/partial", "GET /v1/convert?from=interleaved&to=halves&head_dim=6&rotary_dim=4&heads=2&return=permutation",
         {"permutation": listed(rows("halves", 6, 2, 4))}, source="GPT-J to GPT-NeoX: only the first rotary_dim rows move")
    case("convert/same", "GET /v1/convert?from=halves&to=halves&head_dim=4", {"permutation": listed(range(4)),
                                                                             "permutation_k": listed(range(4))})
    weight = (np.arange(24).reshape(8, 3) / 4 - 3).tolist()
    moved = np.array(weight)[rows("halves", 4, 2)]
    case("convert/weight", "POST /v1/convert", {"tensor": tensor(moved)}, 0,
         {"from": "interleaved", "to": "halves", "head_dim": 4, "heads": 2, "tensor": weight})
    case("convert/kernel_of_keys", "POST /v1/convert",
         {"tensor": tensor(np.array(weight)[:4].T[:, rows("halves", 4, 1)], "float64"),
          "permutation_k": listed(rows("halves", 4, 1))}, 0,
         {"from": "interleaved", "to": "halves", "head_dim": 4, "heads": 2, "kv_heads": 1, "of": "k", "axis": 1,
          "tensor": {"dtype": "float64", "data": np.array(weight)[:4].T.tolist()}, "return": ["tensor", "permutation_k"]})
    case("convert/bias", "POST /v1/convert", {"tensor": tensor(np.array([5, 6, 7, 8])[rows("interleaved", 4, 1)])}, 0,
         {"from": "halves", "to": "interleaved", "head_dim": 4, "tensor": [5, 6, 7, 8]})


if __name__ == "__main__":
    main()
