#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of shaw, after those of make_cases.py; see there. Everything is the papers' form, with a vector for each pair.
Run it in this folder: /usr/bin/python3 make_cases_shaw.py. The result is committed.

Nobody has published numbers of it. So the form with [T, T, d] vectors is held against two others that projects compute
in its place: BERT's, which looks a row up by query - key + rows - 1, and Music Transformer's, which pads, reshapes and cuts
("skewing").
"""
import numpy as np

from make_cases import case, tensor
from make_cases_ops import qkv, softmax

SUMS = 2e-14  # what sums of some numbers may differ by in another order
ECHO = {"type": "shaw", "head_dim": 4, "clip": [2, 2], "outside": "clip", "sign": "key_minus_query", "scaled": True,
        "key_side": False, "std": 1.0}
ALL = ["weights", "logits", "content", "position", "output"]


def vectors(table, clip, queries, keys, sign=1, zero=False):
    """[Tq, Tk, d] of a table [rows, d]."""
    r = sign * (np.asarray(keys)[None, :] - np.asarray(queries)[:, None])
    inside = (r >= -clip[0]) & (r <= clip[1])
    made = np.asarray(table)[np.clip(r, -clip[0], clip[1]) + clip[0]]
    return np.where(inside[..., None], made, 0) if zero else made



def results(q, k, v, keys_of, values_of, seen, scale=None, scaled=True, key_side=False):
    """q [.., H, Tq, d], k and v [.., Hk, Tk, d]; keys_of and values_of [.., H, Tq, Tk, d]."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    content = scale * q @ np.swapaxes(k, -1, -2)
    position = np.einsum("...id,...ijd->...ij", q, keys_of)
    if key_side:
        position = position + np.einsum("...jd,...ijd->...ij", k, keys_of)
    position = position * (scale if scaled else 1)
    weights = softmax(content + position, seen)
    output = weights @ v
    if values_of is not None:
        output = output + np.einsum("...ij,...ijd->...id", weights, values_of)
    return {"weights": weights, "logits": content + position, "content": content, "position": position, "output": output}


def skewed(q, table, t):
    """Music Transformer: q [H, T, d], a table [T, d] whose last row is distance 0; right below the diagonal alone."""
    products = np.einsum("htd,md->htm", q, table)
    padded = np.pad(products, ((0, 0), (0, 0), (1, 0)))
    return padded.reshape(-1, t + 1, t)[:, 1:, :]


def attention(name, reply, body, echo, digits="float64", tolerance=SUMS, source=None):
    reply = {"encoding": echo, **{n: tensor(reply[n], digits) for n in body["return"]}}
    body = {n: x.tolist() if isinstance(x, np.ndarray) else x for n, x in body.items()}
    case("attention/" + name, "POST /v1/attention", reply, tolerance, body, (), source)


def posted(table):
    return {"shape": list(np.shape(table)), "dtype": "float64"}


def plain(rng):
    q, k, v = qkv(rng, 2, 5, 4), qkv(rng, 2, 5, 4), qkv(rng, 2, 5, 3)
    keys, values = qkv(rng, 5, 4), qkv(rng, 5, 3)
    t = np.arange(5)
    i, j = t[:, None], t[None, :]
    made = results(q, k, v, vectors(keys, (2, 2), t, t), vectors(values, (2, 2), t, t), True)
    attention("shaw", made, {"q": q, "k": k, "v": v, "dtype": "float64", "return": ALL,
                             "encoding": {"type": "shaw", "keys": keys.tolist(), "values": values.tolist()}},
              {**ECHO, "keys": posted(keys), "values": posted(values)}, source="Shaw et al. 2018, equations 3 and 4")
    # BERT: distance_embedding[query - key + max_position - 1], keys' products as well
    table = qkv(rng, 9, 4)
    rows = table[i - j + 5 - 1]
    assert np.array_equal(rows, vectors(table, (4, 4), t, t, -1))
    made = results(q, k, v, rows, None, j <= i, key_side=True)
    attention("shaw_relative_key_query", made,
              {"q": q, "k": k, "v": v, "dtype": "float64", "mask": "causal", "return": ALL,
               "encoding": {"type": "shaw", "sign": "query_minus_key", "key_side": True, "keys": table.tolist()}},
              {**ECHO, "clip": [4, 4], "sign": "query_minus_key", "key_side": True, "keys": posted(table)},
              source="BERT's relative_key_query")
    # Music Transformer: one-sided, no vector beyond the table, nothing scaled
    keys, values = qkv(rng, 5, 4), qkv(rng, 5, 3)
    made = results(q, k, v, vectors(keys, (4, 0), t, t, zero=True), vectors(values, (4, 0), t, t, zero=True), j <= i, 1)
    assert np.allclose(np.tril(made["position"]), np.tril(skewed(q, keys, 5)), atol=1e-14)
    keys, values = keys[2:], values[2:]
    made = results(q, k, v, vectors(keys, (2, 0), t, t, zero=True), vectors(values, (2, 0), t, t, zero=True), j <= i, 1)
    attention("shaw_music_transformer", made,
              {"q": q, "k": k, "v": v, "dtype": "float64", "mask": "causal", "scale": 1, "return": ALL,
               "encoding": {"type": "shaw", "clip": [2, 0], "outside": "zero", "keys": keys.tolist(), "values": values.tolist()}},
              {**ECHO, "clip": [2, 0], "outside": "zero", "keys": posted(keys), "values": posted(values)},
              source="Huang et al. 2018: the last row is distance 0, farther keys have no vector, q is not scaled")
    table = qkv(rng, 6, 4)
    made = results(q, k, v, vectors(table, (3, 2), t, t, -1), None, True, scaled=False)
    attention("shaw_unscaled", made,
              {"q": q, "k": k, "v": v, "dtype": "float64", "return": ALL,
               "encoding": {"type": "shaw", "sign": "query_minus_key", "scaled": False, "clip": [3, 2], "keys": table.tolist()}},
              {**ECHO, "clip": [3, 2], "sign": "query_minus_key", "scaled": False, "keys": posted(table)},
              source="SpeechT5 clips to -m .. m - 1; here the vectors' products are not scaled")


def batches(rng):
    """Left-padded sequences, grouped keys, tables for each head, and the last row alone with the keys of a cache."""
    q, k, v = qkv(rng, 2, 4, 3, 4), qkv(rng, 2, 2, 6, 4), qkv(rng, 2, 2, 6, 3)
    keys, values = qkv(rng, 4, 5, 4), qkv(rng, 4, 5, 3)
    places = np.array([[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]])
    keep = np.array([[0, 0, 1, 1, 1, 1], [1] * 6])
    of_keys, of_values = (np.stack([[vectors(x, (3, 1), p[3:], p) for x in table] for p in places]) for table in (keys, values))
    seen = keep[:, None, None, :] * (np.arange(6)[None, :] <= np.arange(3)[:, None] + 3) > 0
    made = results(q, k, v, of_keys, of_values, seen)
    encoding = {"type": "shaw", "clip": [3, 1], "keys": keys.tolist(), "values": values.tolist()}
    echo = {**ECHO, "clip": [3, 1], "keys": posted(keys), "values": posted(values)}
    body = {"k": k, "v": v, "dtype": "float64", "return": ALL, "encoding": encoding, "key_positions": places,
            "mask": {"keep": keep.tolist(), "causal": True}}
    attention("shaw_padded_batch", made, {**body, "q": q, "query_positions": places[:, 3:]}, echo)
    attention("shaw_cached", {n: x[..., -1:, :] for n, x in made.items()},
              {**body, "q": q[..., -1:, :], "query_positions": places[:, 5:]}, echo,
              source="the last row of shaw_padded_batch: its keys come from a cache")


if __name__ == "__main__":
    generator = np.random.default_rng(5)
    plain(generator)
    batches(generator)
