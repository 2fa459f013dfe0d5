#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of CoPE, after those of make_cases.py; see there. Positions are summed up pair by pair; under a causal mask that is
held against the listing in the paper, which flips, accumulates and flips back.
Run it in this folder: /usr/bin/python3 make_cases_cope.py. The result is committed.
"""
import numpy as np

from make_cases import case, tensor
from make_cases_ops import qkv, softmax
from make_random import of_words, philox

SUMS = 2e-14
ALL = ["weights", "logits", "content", "position", "output"]


def listing(query, logits, pos_emb):
    """The paper's class CoPE, with numpy's functions in place of torch's; pos_emb is [d, npos_max], logits are masked."""
    with np.errstate(over="ignore"):
        gates = 1 / (1 + np.exp(-logits))
    pos = np.flip(np.flip(gates, -1).cumsum(-1), -1)
    pos = np.minimum(pos, pos_emb.shape[1] - 1)
    pos_ceil, pos_floor = np.ceil(pos).astype(int), np.floor(pos).astype(int)
    logits_int = query @ pos_emb
    logits_ceil = np.take_along_axis(logits_int, pos_ceil, -1)
    logits_floor = np.take_along_axis(logits_int, pos_floor, -1)
    w = pos - pos_floor
    return logits_ceil * w + logits_floor * (1 - w)


def term(q, content, table, seen, queries, keys):
    """[Tq, Tk] of one head: every pair by itself."""
    out = np.zeros(content.shape)
    for i in range(len(queries)):
        for j in range(len(keys)):
            between = [t for t in range(len(keys)) if seen[i, t] and keys[j] <= keys[t] <= queries[i]]
            p = min(sum(1 / (1 + np.exp(-content[i, t])) for t in between), len(table) - 1)
            low, high = int(np.floor(p)), int(np.ceil(p))
            out[i, j] = q[i] @ table[low] * (1 - (p - low)) + q[i] @ table[high] * (p - low)
    return out


def results(q, k, v, table, seen, queries, keys, scale=None):
    """q [H, Tq, d], k and v [Hk, Tk, d], table [npos_max, d] or [H, npos_max, d]."""
    k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
    content = (scale or 1 / np.sqrt(q.shape[-1])) * q @ k.swapaxes(-1, -2)
    seen = np.broadcast_to(seen, content.shape[1:])
    tables = np.broadcast_to(table, (len(q),) + table.shape[-2:])
    position = np.stack([term(*x, seen, queries, keys) for x in zip(q, content, tables)])
    weights = softmax(content + position, np.broadcast_to(seen, content.shape))
    return {"weights": weights, "logits": content + position, "content": content, "position": position,
            "output": weights @ v}


def attention(name, reply, body, table, dtype="float64", tolerance=SUMS, source=None, **more):
    echo = {"type": "cope", "head_dim": np.shape(table)[-1], "npos_max": np.shape(table)[-2], "std": 1.0, **more}
    asked = {"type": "cope", **more}
    if "seed" in more:
        asked["npos_max"] = echo["npos_max"]
    else:
        asked["pos_emb"], echo["pos_emb"] = np.asarray(table).tolist(), {"shape": list(np.shape(table)), "dtype": dtype}
    reply = {"encoding": echo, **{n: tensor(reply[n], dtype) for n in ALL}}
    body = {n: x.tolist() if isinstance(x, np.ndarray) else x for n, x in body.items()}
    body = {**body, "dtype": dtype, "return": ALL, "encoding": asked}
    case("attention/" + name, "POST /v1/attention", reply, tolerance, body, (), source)


def published(rng):
    """The paper's listing under its mask, long enough that positions are clamped."""
    t = 9
    q, k, v, table = qkv(rng, 2, t, 4), qkv(rng, 2, t, 4), qkv(rng, 2, t, 3), qkv(rng, 4, 4)
    seen = np.tril(np.ones((t, t))) > 0
    made = results(q, k, v, table, seen, range(t), range(t))
    with np.errstate(divide="ignore"):
        masked = made["content"] + np.log(seen)
    assert np.allclose(listing(q, masked, table.T), made["position"], atol=1e-12, rtol=0)
    attention("cope", made, {"q": q, "k": k, "v": v, "mask": "causal"}, table, source="the listing in Golovneva et al. 2024")
    single = {n: x for n, x in made.items()}
    attention("cope_float32", single, {"q": q, "k": k, "v": v, "mask": "causal"}, table, "float32", 4e-6)
    attention("cope_everywhere", results(q, k, v, table, True, range(t), range(t)), {"q": q, "k": k, "v": v}, table,
              source="without a mask keys behind the query have position 0 and count nothing")
    zeros = np.zeros((1, t, 4))
    counted = np.array([[float(max(i - j + 1, 0)) / 2 for j in range(t)] for i in range(t)])
    ramp = np.arange(8.0)[:, None] * np.ones(4)
    ones = np.ones((1, t, 4))
    made = results(ones, zeros, v[:1], ramp, seen, range(t), range(t))
    assert np.allclose(made["position"], 4 * np.minimum(counted, 7)), "gates of 0 are half open: half of all keys"
    attention("cope_half_open", made, {"q": ones, "k": zeros, "v": v[:1], "mask": "causal"}, ramp,
              source="keys of zeros: every gate is half open, and positions are half of the distances")


def masks(rng):
    """Rectangular, grouped, a vector of positions for each head; a window; keys left out; the last row with cached keys."""
    q, k, v, table = qkv(rng, 4, 3, 2), qkv(rng, 2, 8, 2), qkv(rng, 2, 8, 3), qkv(rng, 4, 5, 2)
    queries, keys = range(5, 8), range(8)
    causal = np.arange(8)[None, :] <= np.arange(5, 8)[:, None]
    full = results(q, k, v, table, causal, queries, keys, .5)
    body = {"q": q, "k": k, "v": v, "mask": "causal", "scale": .5}
    attention("cope_grouped", full, body, table, source="gates take the logits as the request scales them")
    attention("cope_cached", {n: x[:, -1:] for n, x in full.items()}, {**body, "q": q[:, -1:]}, table,
              source="the last row of cope_grouped: its keys come from a cache")
    keep = np.array([1, 0, 1, 1, 0, 1, 1, 0])
    near = causal & (np.arange(8)[None, :] > np.arange(5, 8)[:, None] - 5) & (keep > 0)
    attention("cope_window_keep", results(q, k, v, table, near, queries, keys),
              {**body, "scale": 1 / np.sqrt(2), "mask": {"causal": True, "window": 5, "keep": keep.tolist()}}, table,
              source="keys that are hidden count nothing, and have a position")
    order = [6, 1, 3, 0, 3, 7, 2, 3]
    seen = np.array(order)[None, :] <= 9
    attention("cope_places", results(q, k, v, table, seen, [3, 7, 2], order),
              {"q": q, "k": k, "v": v, "query_positions": [3, 7, 2], "key_positions": order}, table,
              source="places in no order, and three keys at one place")


def batches(rng):
    """Left-padded sequences."""
    q, k, v, table = qkv(rng, 2, 2, 3, 2), qkv(rng, 2, 2, 6, 2), qkv(rng, 2, 2, 6, 3), qkv(rng, 3, 2)
    places = np.array([[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]])
    keep = np.array([[0, 0, 1, 1, 1, 1], [1] * 6])
    causal = np.arange(6)[None, :] <= np.arange(3)[:, None] + 3
    each = [results(q[b], k[b], v[b], table, causal & (keep[b] > 0), places[b][3:], places[b]) for b in range(2)]
    attention("cope_padded_batch", {n: np.stack([x[n] for x in each]) for n in ALL},
              {"q": q, "k": k, "v": v, "query_positions": places[:, 3:], "key_positions": places,
               "mask": {"keep": keep.tolist(), "causal": True}}, table)
    seed, std = 2**32 + 9, .5
    made = np.array([[of_words(philox([r, c, 0, 1], [seed & 0xFFFFFFFF, seed >> 32]), "gaussian", std) for c in range(2)]
                     for r in range(3)], dtype=float)
    attention("cope_seed", results(q[0], k[0], v[0], made, causal, range(3, 6), range(6)),
              {"q": q[0], "k": k[0], "v": v[0], "mask": "causal"}, made, seed=seed, std=std)


if __name__ == "__main__":
    generator = np.random.default_rng(41)
    published(generator)
    masks(generator)
    batches(generator)
