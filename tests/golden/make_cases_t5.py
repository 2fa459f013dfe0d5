#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of T5's relative bias, after those of make_cases.py; see there. Buckets are by whole numbers of any size.
Run it in this folder: /usr/bin/python3 make_cases_t5.py. The result is committed.
"""
import numpy as np

from make_buckets import Rule
from make_cases import case, tensor
from make_cases_ops import DOUBLE, attention, grid, qkv, softmax
from make_random import of_words, philox


def echo(table=None, dtype="float32", **changes):
    e = {"type": "t5", "num_buckets": 32, "max_distance": 128, "bidirectional": True, "table_axes": "buckets_heads",
         "std": 1.0, "bias_scale": 1.0, **changes}
    return {**e, "table": {"shape": list(np.shape(table)), "dtype": dtype}} if table is not None else e


def asked(e, table=None):
    e = {name: value for name, value in e.items() if name != "std" or "seed" in e}
    return {**e, "table": np.asarray(table).tolist()} if table is not None else e


def biases(e, table, q, k):
    """[H, Tq, Tk] of a table [buckets, H]."""
    rule = Rule(e["num_buckets"], e["max_distance"], e["bidirectional"])
    index = np.array([[rule.bucket(int(b - a)) for b in k] for a in q])
    return e["bias_scale"] * np.moveaxis(np.asarray(table, float)[index], -1, 0)


def published():
    """onnxruntime/test/contrib_ops/relative_attention_bias_test.cc: two positions, four buckets to 128."""
    two, three = np.arange(1.0, 9).reshape(4, 2), np.arange(1.0, 13).reshape(4, 3)
    for name, table, both, wanted in (("2_heads", two, True, [[1, 7, 3, 1], [2, 8, 4, 2]]),
                                      ("3_heads", three, True, [[1, 10, 4, 1], [2, 11, 5, 2], [3, 12, 6, 3]]),
                                      ("causal", three, False, [[1, 1, 4, 1], [2, 2, 5, 2], [3, 3, 6, 3]])):
        got = biases(echo(num_buckets=4, bidirectional=both), table, range(2), range(2))
        assert got.reshape(len(got), 4).tolist() == wanted, name
        for order in ("buckets_heads", "heads_buckets"):
            posted = table if order == "buckets_heads" else table.T
            e = echo(posted, num_buckets=4, bidirectional=both, table_axes=order)
            case(f"bias/t5_onnxruntime_{name}_{order}", "POST /v1/bias", {"encoding": e, "bias": tensor(got)}, 0,
                 {"encoding": asked(e, posted), "heads": len(got), "query_positions": "0:2"},
                 source="onnxruntime relative_attention_bias_test.cc, whose table is [H, num_buckets]")
    table = np.arange(32.0).reshape(32, 1)
    for name, both in (("encoder", True), ("decoder", False)):
        e = echo(table, bidirectional=both)
        keys = [-9007199254740992, -200, -128, -127, -113, -112, -91, -90, -64, -63, -16, -15, -8, -7, -1, 0, 1, 7, 8, 11,
                12, 64, 90, 91, 127, 128, 4096, 9007199254740992]
        case(f"bias/t5_buckets_{name}", "POST /v1/bias", {"encoding": e, "bias": tensor(biases(e, table, [0], keys))}, 0,
             {"encoding": asked(e, table), "heads": 1, "query_positions": [0], "key_positions": keys},
             source="the numbers of the buckets of T5, 32 to 128: 64 is the first of bucket 14")


def numbers(rng, *dims):
    return np.round(rng.normal(size=dims) * 64) / 64


def bias_cases():
    rng = np.random.default_rng(21)
    table = numbers(rng, 16, 3)
    e = echo(table, num_buckets=16, max_distance=64, bidirectional=False, bias_scale=.75)
    q, k = [[5, 40, 63], [70, 0, 64]], [[0, 5, 41, 62, 2], [-100, 63, 64, 65, 2]]
    rows = np.stack([biases(e, table, a, b)[[2, 0]] for a, b in zip(q, k)])
    case("bias/t5_batch_some_heads", "POST /v1/bias", {"encoding": e, "bias": tensor(rows)}, 0,
         {"encoding": asked(e, table), "heads": 3, "head_index": [2, 0], "query_positions": q, "key_positions": k})
    cells = lambda seed, std, n, heads: [
        [of_words(philox([r, c, 0, 1], [seed & 0xFFFFFFFF, seed >> 32]), "gaussian", std) for c in range(heads)]
        for r in range(n)]
    e = echo(num_buckets=8, max_distance=20, seed=2**32 + 7, std=.5)
    q, k = range(4, 14), range(0, 30)
    rows = biases(e, cells(e["seed"], e["std"], 8, 2), q, k)
    case("bias/t5_seed", "GET /v1/bias?type=t5&num_buckets=8&max_distance=20&seed=4294967303&std=0.5&heads=2"
         "&query_positions=4:14&key_positions=0:30", {"encoding": e, "bias": tensor(rows)}, 1e-7,
         source="the table made from a seed: Philox4x32-10, counter (bucket, head, 0, 1)")
    case("bias/t5_seed_float64", "GET /v1/bias?type=t5&num_buckets=8&max_distance=20&seed=4294967303&std=0.5&heads=2"
         "&query_positions=4:14&key_positions=0:30&dtype=float64", {"encoding": e, "bias": tensor(rows, "float64")},
         DOUBLE)


ALL = ["weights", "logits", "content", "position", "output"]


def heads_of(q, k, v):
    """Key heads shared by neighbours: as many as q has."""
    share = q.shape[-3] // k.shape[-3]
    return np.repeat(k, share, -3), np.repeat(v, share, -3)


def parts(q, k, v, bias, seen, scale):
    kk, vv = heads_of(q, k, v)
    content = scale * q @ kk.swapaxes(-1, -2)
    weights = softmax(content + bias, np.broadcast_to(seen, content.shape))
    return {"weights": weights, "logits": content + bias, "content": content,
            "position": np.broadcast_to(bias, content.shape), "output": weights @ vv}


def attention_cases():
    rng = np.random.default_rng(22)
    table = numbers(rng, 12, 4)
    e = echo(table, "float64", num_buckets=12, max_distance=16)
    q, k, v = qkv(rng, 4, 3, 4), qkv(rng, 2, 7, 4), qkv(rng, 2, 7, 3)
    i, j = grid(3, 7)
    bias = biases(e, table, range(4, 7), range(7))
    body = {"encoding": asked(e, table), "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL}
    full = parts(q, k, v, bias, j <= i, 1)
    attention("t5_causal", {"encoding": e, **full}, {**body, "mask": "causal", "dtype": "float64"}, DOUBLE,
              "grouped key heads; the scale is 1")
    step = {name: x[:, -1:] for name, x in full.items()}
    attention("t5_step", {"encoding": e, **step}, {**body, "q": q[:, -1:].tolist(), "mask": "causal", "dtype": "float64"},
              DOUBLE, "with cached keys the last query gives the last row of the whole")
    e = echo(table, num_buckets=12, max_distance=16)
    attention("t5_window", {"encoding": e, **parts(q, k, v, bias, np.abs(i - j) < 3, 1)}, {**body, "mask": {"window": 3}})
    e = echo(table, num_buckets=12, max_distance=16, bias_scale=2.0)
    attention("t5_scaled", {"encoding": e, **parts(q, k, v, 2 * bias, j >= 0, .5)},
              {**body, "encoding": asked(e, table), "scale": .5}, source="as x-transformers: scale 1/sqrt(d), bias times sqrt(d)")
    batch = {"q": qkv(rng, 2, 4, 2, 4), "k": qkv(rng, 2, 4, 5, 4), "v": qkv(rng, 2, 4, 5, 2)}
    e = echo(table.T, num_buckets=12, max_distance=16, table_axes="heads_buckets", bidirectional=False)
    at_q, at_k = [[3, 4], [1, 2]], [[0, 1, 2, 3, 4], [-2, -1, 0, 1, 2]]
    bias = np.stack([biases(e, table, a, b) for a, b in zip(at_q, at_k)])
    seen = (np.arange(5)[None, :] < np.array([5, 3])[:, None])[:, None, None, :]
    attention("t5_batch", {"encoding": e, **parts(*batch.values(), bias, seen, 1)},
              {**{name: x.tolist() for name, x in batch.items()}, "encoding": asked(e, table.T), "return": ALL,
               "query_positions": at_q, "key_positions": at_k, "mask": {"lengths": [5, 3]}})
    x, w_q, w_k, w_v = qkv(rng, 5, 6), qkv(rng, 6, 8), qkv(rng, 6, 8), qkv(rng, 6, 8)
    e = echo(table, num_buckets=12, max_distance=16)
    split = lambda m: m.reshape(5, 4, 2).transpose(1, 0, 2)
    bias = biases(e, table, range(5), range(5))
    attention("t5_embeddings", {"encoding": e, **parts(split(x @ w_q), split(x @ w_k), split(x @ w_v), bias, True, 1)},
              {"encoding": asked(e, table), "embeddings": x.tolist(), "w_q": w_q.tolist(), "w_k": w_k.tolist(),
               "w_v": w_v.tolist(), "heads": 4, "return": ALL}, 4e-6)


if __name__ == "__main__":
    published()
    bias_cases()
    attention_cases()
