#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of WavLM's gated relative bias, after those of make_cases.py; see there. numpy, in float64.
Run it in this folder: /usr/bin/python3 make_cases_wavlm.py. The result is committed.
"""
import numpy as np

from make_buckets import Rule
from make_cases import case, tensor
from make_cases_ops import DOUBLE, attention, grid, qkv
from make_cases_t5 import ALL, numbers, parts
from make_random import of_words, philox

NAMES = ("table", "gate_weight", "gate_bias", "gate_const")


def echo(tables, dtype="float32", **changes):
    e = {"type": "wavlm", "num_buckets": 320, "max_distance": 800, "head_dim": tables[1].shape[1], **changes, "std": 1.0}
    return {**e, **{name: {"shape": list(x.shape), "dtype": dtype} for name, x in zip(NAMES, tables)}}


def asked(e, tables):
    e = {name: e[name] for name in ("type", "num_buckets", "max_distance")}
    return {**e, **{name: x.tolist() for name, x in zip(NAMES, tables)}}


def gates(q, weight, bias, constant):
    """[.., H, T, d] -> [.., H, T, 1], as transformers' WavLMAttention and onnxruntime's generator write it."""
    sums = (q @ weight.T + bias).reshape(*q.shape[:-1], 2, len(bias) // 2).sum(-1)
    u, r = np.moveaxis(1 / (1 + np.exp(-sums)), -1, 0)
    return (u * (r * constant.reshape(-1, 1) - 1) + 2)[..., None]


def term(e, tables, q, at_q, at_k):
    rule = Rule(e["num_buckets"], e["max_distance"], True)
    index = np.array([[rule.bucket(int(b - a)) for b in at_k] for a in at_q])
    return gates(q, *tables[1:]) * np.moveaxis(tables[0][index], -1, 0)


def published():
    """GatedRelativePositionBiasTest, FP32_BSNHD_2x3x2x4x8. Its biases are of pairs, not of distances: each query stands
    in a sequence of its own here, whose keys are at distances that nobody else has."""
    f = lambda text, *shape: np.array(text.split(), float).reshape(shape)
    layer = f("""0.4962566 0.7682218 0.08847743 0.13203049 0.30742282 0.6340787 0.4900934 0.89644474
        0.45562798 0.6323063 0.34889346 0.4017173 0.022325754 0.16885895 0.29388845 0.5185218
        0.6976676 0.8000114 0.16102946 0.28226858 0.68160856 0.915194 0.3970999 0.8741559
        0.41940832 0.55290705 0.9527381 0.03616482 0.18523103 0.37341738 0.30510002 0.9320004
        0.17591017 0.26983356 0.15067977 0.031719506 0.20812976 0.929799 0.7231092 0.7423363
        0.5262958 0.24365824 0.58459234 0.03315264 0.13871688 0.242235 0.81546897 0.7931606""", 2, 3, 8)
    bias = f("0.27825248 0.4819588 0.81978035 0.99706656 0.6984411 0.5675464 0.83524317 0.20559883", 8)
    pairs = f("""0.593172 0.112347245 0.15345693 0.24170822 0.7262365 0.7010802 0.20382375 0.65105355 0.774486
        0.43689132 0.5190908 0.61585236 0.8101883 0.98009706 0.11468822 0.31676513 0.69650495 0.9142747""", 2, 3, 3)
    weight = f("""0.93510365 0.9411784 0.5995073 0.06520867 0.54599625 0.18719733 0.034022927 0.94424623
        0.8801799 0.0012360215 0.593586 0.41577 0.41771942 0.27112156 0.6922781 0.20384824
        0.68329567 0.75285405 0.8579358 0.6869556 0.005132377 0.17565155 0.7496575 0.6046507
        0.10995799 0.21209025 0.97037464 0.83690894 0.28198743 0.3741576 0.023700953 0.49101293""", 4, 8).T
    gate_bias = f("0.123470545 0.11432165 0.4724502 0.5750725 0.29523486 0.7966888 0.19573045 0.95368505", 8)
    eco_a = f("0.84264994 0.07835853", 1, 2, 1, 1)
    wanted = f("""1.0928818 0.20699267 0.28273466 0.44534987 1.3380982 1.2917475 0.3755537 1.1995932
        1.4270226 0.47112367 0.5597638 0.6641071 0.87368786 1.0569134 0.12367705 0.34158573
        0.75108063 0.98591405 1.0929474 0.2070051 0.28275162 0.4451845 1.3376014 1.2912678
        0.37552574 1.1995038 1.4269164 0.47112313 0.5597632 0.6641063 0.87367094 1.056893
        0.12367466 0.34158388 0.7510766 0.98590875""", 2, 2, 3, 3)
    q = (layer + bias).reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    got = gates(q, weight, gate_bias, eco_a) * pairs
    assert np.abs(got - wanted).max() < 3e-7
    table = np.zeros((40, 2))
    table[:9] = pairs.reshape(2, 9).T  # row 3i + j, the bucket of as many keys back
    tables = (table, weight, gate_bias, eco_a)
    e = echo(tables, num_buckets=40)
    each = q.transpose(0, 2, 1, 3).reshape(6, 2, 1, 4)
    at = [[-3.0 * i - j for j in range(3)] for i in range(3)] * 2
    case("attention/wavlm_onnxruntime", "POST /v1/attention",
         {"encoding": e, "position": tensor(wanted.transpose(0, 2, 1, 3).reshape(6, 2, 1, 3))}, 1e-6,
         {"encoding": asked(e, tables), "q": each.tolist(), "k": np.zeros((6, 2, 3, 4)).tolist(), "return": ["position"],
          "query_positions": [[0]] * 6, "key_positions": at},
         source="onnxruntime relative_attention_bias_test.cc, FP32_BSNHD_2x3x2x4x8")


def make(rng, buckets, heads, rows, d):
    return numbers(rng, buckets, heads), numbers(rng, rows, d), numbers(rng, rows), numbers(rng, heads)


def attention_cases():
    rng = np.random.default_rng(31)
    tables = make(rng, 12, 4, 6, 4)
    e = echo(tables, "float64", num_buckets=12, max_distance=16)
    q, k, v = qkv(rng, 4, 3, 4), qkv(rng, 2, 7, 4), qkv(rng, 2, 7, 3)
    i, j = grid(3, 7)
    bias = term(e, tables, q, range(4, 7), range(7))
    body = {"encoding": asked(e, tables), "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "return": ALL}
    full = parts(q, k, v, bias, j <= i, .5)
    attention("wavlm_causal", {"encoding": e, **full}, {**body, "mask": "causal", "dtype": "float64"}, DOUBLE,
              "grouped key heads")
    step = {name: x[:, -1:] for name, x in full.items()}
    attention("wavlm_step", {"encoding": e, **step}, {**body, "q": q[:, -1:].tolist(), "mask": "causal",
                                                     "dtype": "float64"}, DOUBLE)
    e = echo(tables, num_buckets=12, max_distance=16)
    of = (tables[0][:, [3, 1]], *tables[1:3], tables[3][[3, 1]])
    bias = term(e, of, q[[3, 1]], range(4, 7), range(7))
    attention("wavlm_some_heads", {"encoding": e, **parts(q[[3, 1]], k, v, bias, np.abs(i - j) < 3, .5)},
              {**body, "q": q[[3, 1]].tolist(), "heads": 4, "head_index": [3, 1], "mask": {"window": 3}})
    q, k, v = qkv(rng, 2, 4, 2, 4), qkv(rng, 2, 4, 5, 4), qkv(rng, 2, 4, 5, 2)
    at_q, at_k = [[3, 4], [1, 2]], [[0, 1, 2, 3, 4], [-20, -1, 0, 1, 2]]
    bias = np.stack([term(e, tables, q[b], at_q[b], at_k[b]) for b in range(2)])
    seen = (np.arange(5)[None, :] < np.array([5, 3])[:, None])[:, None, None, :]
    attention("wavlm_batch", {"encoding": e, **parts(q, k, v, bias, seen, .5)},
              {"q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "encoding": asked(e, tables), "return": ALL,
               "query_positions": at_q, "key_positions": at_k, "mask": {"lengths": [5, 3]}})


def layer():
    """A whole layer: the gates see the input x of the head, not the query; so both are posted side by side."""
    rng = np.random.default_rng(32)
    heads, d, t = 2, 4, 6
    tables = make(rng, 320, heads, 8, d)
    x = qkv(rng, t, heads * d)
    q, k, v = (x @ qkv(rng, heads * d, heads * d) for _ in range(3))
    split = lambda m: m.reshape(t, heads, d).transpose(1, 0, 2)
    bias = term({"num_buckets": 320, "max_distance": 800}, tables, split(x), range(t), range(t))
    reply = parts(split(q), split(k), split(v), bias, True, .5)
    wide = (tables[0], np.concatenate([np.zeros((8, d)), tables[1]], 1), *tables[2:])
    e = echo(wide)
    post = {"q": np.concatenate([split(q), split(x)], -1), "k": np.concatenate([split(k), 0 * split(k)], -1), "v": split(v)}
    attention("wavlm_layer", {"encoding": e, **reply}, {**{name: x.tolist() for name, x in post.items()}, "scale": .5,
              "encoding": asked(e, wide), "return": ALL}, 4e-6, "transformers WavLMAttention: gates of the layer's input")


def seeded():
    def cells(number, rows, columns):
        return np.array([[float(of_words(philox([r, c, number, 1], [9, 0]), "gaussian", .5)) for c in range(columns)]
                         for r in range(rows)])
    rng = np.random.default_rng(33)
    tables = (cells(0, 16, 3), cells(1, 8, 5), cells(2, 8, 1)[:, 0], cells(3, 3, 1)[:, 0])
    e = {"type": "wavlm", "num_buckets": 16, "max_distance": 20, "head_dim": 5, "seed": 9, "std": .5}
    q = qkv(rng, 3, 4, 5)
    bias = term(e, tables, q, range(4), range(4))
    attention("wavlm_seed", {"encoding": e, "position": bias},
              {"encoding": {name: value for name, value in e.items() if name != "head_dim"}, "q": q.tolist(),
               "k": (0 * q).tolist(), "return": ["position"], "dtype": "float64"}, DOUBLE)


if __name__ == "__main__":
    published()
    attention_cases()
    layer()
    seeded()
