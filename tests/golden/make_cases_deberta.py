#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of DeBERTa, after those of make_cases.py; see there. Buckets are by whole numbers of any size, and the terms have
a vector for each pair; both are held against the deployed form: logarithms, and a gather that is transposed.
Run it in this folder: /usr/bin/python3 make_cases_deberta.py. The result is committed.
"""
import numpy as np

from make_cases import case, tensor
from make_cases_ops import qkv, softmax
from make_random import of_words, philox

SUMS = 2e-14
ALL = ["weights", "logits", "content", "position", "output"]


def bucket(r, size, most):
    """mid + k where k - 1 < (mid-1) ln(n/mid) / ln((most-1)/mid) <= k, which powers of whole numbers decide."""
    n, mid = abs(r), size // 2
    if size <= 0 or n <= mid:
        return r
    q, k = mid - 1, 0
    while k <= q and q and n ** q > (most - 1) ** k * mid ** (q - k):
        k += 1
    return (1 if r > 0 else -1) * (mid + k)


def deployed(r, size, most, real):
    """make_log_bucket_position of transformers (float32) and of the original (float64), operation by operation."""
    r, mid = np.asarray(r), size // 2
    n = np.where(abs(r) < mid, mid - 1, abs(r))
    ratio = np.log((n / mid).astype(real)) / np.log(real((most - 1) / mid))
    far = np.ceil(ratio * real(mid - 1)) + real(mid)
    return np.where(n <= mid, r, far.astype(int) * np.sign(r))


def index(r, size, most):
    span = size if size > 0 else most
    return min(max(bucket(r, size, most) + span, 0), 2 * span - 1)


def published():
    """Figures of 256 buckets to 512, where all codes agree at every distance, and where they leave whole numbers."""
    wanted = {127: 127, 128: 128, 129: 129, 130: 130, 200: 169, 255: 192, 256: 192, 300: 207, 400: 233, 510: 255, 511: 255}
    for r, b in wanted.items():
        assert bucket(r, 256, 512) == b and bucket(-r, 256, 512) == -b, r
    far = range(-4096, 4097)
    for real in (np.float32, np.float64):
        got = np.clip(deployed(far, 256, 512, real) + 256, 0, 511)
        assert got.tolist() == [index(r, 256, 512) for r in far], real
    # edges that are whole numbers, or nearly: the deployed codes part from them, and from each other
    for size, most, n, exact, single, double in ((18, 65, 24, 13, 14, 13), (32, 129, 32, 21, 21, 22), (32, 129, 64, 26, 26, 27),
                                                 (26, 311, 238, 25, 24, 25)):
        assert bucket(n, size, most) == exact, (size, most, n)
        assert (deployed(n, size, most, np.float32), deployed(n, size, most, np.float64)) == (single, double), (size, most, n)


def buckets():
    for size, most, keys in ((256, 512, [-2**53, -4096, -513, -512, -511, -510, -400, -300, -256, -255, -200, -130, -129, -128,
                                         -127, -1, 0, 1, 127, 128, 129, 130, 200, 255, 256, 300, 400, 510, 511, 512, 513, 2**53]),
                             (18, 65, list(range(-66, 67))), (32, 129, [-129, -128, -64, -63, -32, -31, 31, 32, 33, 63, 64, 65, 128, 129]),
                             (26, 311, [-238, 237, 238, 239]), (8, 32, list(range(-40, 41))), (4, 5, list(range(-9, 10))),
                             (2, 9, list(range(-12, 13))), (0, 6, list(range(-9, 10)))):
        span = size or most
        table = np.arange(2.0 * span)[:, None]
        row = [float(index(-k, size, most)) for k in keys]
        echo = {"type": "deberta", "position_buckets": size, "max_relative_positions": most, "pos_att_type": ["c2p"],
                "pos_keys": {"shape": [2 * span, 1], "dtype": "float32"}, "std": 1.0}
        case(f"attention/deberta_rows_{size}_{most}", "POST /v1/attention", {"encoding": echo, "position": tensor([row])}, 0,
             {"q": [[1]], "k": [[0]] * len(keys), "query_positions": [0], "key_positions": keys, "scale": 1, "return": "position",
              "encoding": {**{n: x for n, x in echo.items() if n != "std"}, "pos_keys": table.tolist()}},
             source="DeBERTa's log buckets: query - key, by whole numbers; row r of the table is r")


def heads(table, h):
    return np.asarray(table).reshape(len(table), h, -1).swapaxes(0, 1)


def results(q, k, v, keys, queries, rows, seen, scale=None):
    """q [.., H, Tq, d]; keys and queries [2 span, H*d] or None; rows [.., Tq, Tk]."""
    h, group = q.shape[-3], q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    scale = scale or 1 / np.sqrt(q.shape[-1] * (1 + (keys is not None) + (queries is not None)))
    position = 0
    if keys is not None:
        of = np.moveaxis(heads(keys, h)[:, rows], 0, -4)  # [.., H, Tq, Tk, d]
        position = position + np.einsum("...id,...ijd->...ij", q, of)
    if queries is not None:
        of = np.moveaxis(heads(queries, h)[:, rows], 0, -4)
        position = position + np.einsum("...jd,...ijd->...ij", k, of)
    content, position = scale * q @ k.swapaxes(-1, -2), scale * position
    weights = softmax(content + position, np.broadcast_to(seen, content.shape))
    return {"weights": weights, "logits": content + position, "content": content, "position": position,
            "output": weights @ v}


def gathered(q, k, keys, queries, size, most):
    """The two terms, unscaled, as disentangled_attention_bias has them, of [H, T, d]."""
    h, t = q.shape[0], q.shape[1]
    span = size if size > 0 else most
    place = np.array([[bucket(i - j, size, most) for j in range(t)] for i in range(t)])
    c2p_pos, p2c_pos = np.clip(place + span, 0, 2 * span - 1), np.clip(-place + span, 0, 2 * span - 1)
    c2p = np.take_along_axis(q @ heads(keys, h).swapaxes(-1, -2), np.broadcast_to(c2p_pos, (h, t, t)), -1)
    p2c = np.take_along_axis(k @ heads(queries, h).swapaxes(-1, -2), np.broadcast_to(p2c_pos, (h, t, t)), -1)
    return c2p + p2c.swapaxes(-1, -2)


def rows_of(queries, keys, size, most):
    return np.array([[index(int(i - j), size, most) for j in keys] for i in queries])


def attention(name, reply, body, echo, dtype="float64", tolerance=SUMS, source=None):
    reply = {"encoding": echo, **{n: tensor(reply[n], dtype) for n in body["return"]}}
    body = {n: x.tolist() if isinstance(x, np.ndarray) else x for n, x in body.items()}
    case("attention/" + name, "POST /v1/attention", reply, tolerance, body, (), source)


def parts(size, most, terms=("c2p", "p2c"), dtype="float64", **tables):
    """Asked for and echoed."""
    e = {"type": "deberta", "position_buckets": size, "max_relative_positions": most, "pos_att_type": list(terms)}
    echo = {**e, **{n: {"shape": list(np.shape(x)), "dtype": dtype} for n, x in tables.items()}, "std": 1.0}
    return {**e, **{n: np.asarray(x).tolist() for n, x in tables.items()}}, echo


def projected(rng):
    size, most, t = 6, 12, 9
    q, k, v, rel = qkv(rng, 2, t, 4), qkv(rng, 2, t, 4), qkv(rng, 2, t, 3), qkv(rng, 12, 5)
    w_k, b_k, w_q, b_q = qkv(rng, 5, 8), qkv(rng, 8), qkv(rng, 5, 8), qkv(rng, 8)
    keys, queries = rel @ w_k + b_k, rel @ w_q + b_q
    rows = rows_of(range(t), range(t), size, most)
    made = results(q, k, v, keys, queries, rows, True)
    assert np.allclose(made["position"] * np.sqrt(12), gathered(q, k, keys, queries, size, most), atol=1e-12)
    e, echo = parts(size, most, rel_embeddings=rel, pos_key_proj=w_k, pos_key_bias=b_k, pos_query_proj=w_q, pos_query_bias=b_q)
    body = {"q": q, "k": k, "v": v, "dtype": "float64", "return": ALL}
    attention("deberta", made, {**body, "encoding": {n: x for n, x in e.items() if n != "pos_att_type"}}, echo,
              source="DeBERTa-v2's terms and scale, 1/sqrt(3 d) of all three")
    e, echo = parts(size, most, pos_keys=keys, pos_queries=queries)
    attention("deberta_projected_already", made, {**body, "encoding": e}, echo, source="the tables that case deberta projects")
    lone = rng.integers(-8, 9, (12, 8)) / 8
    for term, tables in (("c2p", (lone, None)), ("p2c", (None, lone))):
        e, echo = parts(size, most, (term,), rel_embeddings=lone)
        attention("deberta_" + term, results(q, k, v, *tables, rows, np.tril(np.ones((t, t))) > 0),
                  {**body, "mask": "causal", "encoding": e}, echo, source="one term, 1/sqrt(2 d); the table is not projected")
    single = results(*(x.astype(np.float32).astype(float) for x in (q, k, v)), lone, lone, rows, True, .25)
    e, echo = parts(size, most, dtype="float32", rel_embeddings=lone)
    attention("deberta_float32", single, {**body, "scale": .25, "dtype": "float32", "encoding": e}, echo, "float32", 2e-6,
              "a scale of the request is of all terms")


def batches(rng):
    """Left-padded sequences, grouped key heads, and the last row alone with the keys of a cache."""
    size, most = 4, 7
    q, k, v = qkv(rng, 2, 4, 3, 2), qkv(rng, 2, 2, 8, 2), qkv(rng, 2, 2, 8, 3)
    keys, queries = qkv(rng, 8, 8), qkv(rng, 8, 8)
    places = np.array([[0, 0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7]])
    keep = np.array([[0, 0, 1, 1, 1, 1, 1, 1], [1] * 8])
    rows = np.stack([rows_of(p[5:], p, size, most) for p in places])
    seen = keep[:, None, None, :] * (np.arange(8)[None, :] <= np.arange(3)[:, None] + 5) > 0
    made = results(q, k, v, keys, queries, rows, seen)
    e, echo = parts(size, most, pos_keys=keys, pos_queries=queries)
    body = {"k": k, "v": v, "dtype": "float64", "return": ALL, "encoding": e, "key_positions": places,
            "mask": {"keep": keep.tolist(), "causal": True}}
    attention("deberta_padded_batch", made, {**body, "q": q, "query_positions": places[:, 5:]}, echo)
    attention("deberta_cached", {n: x[..., -1:, :] for n, x in made.items()},
              {**body, "q": q[..., -1:, :], "query_positions": places[:, 7:]}, echo,
              source="the last row of deberta_padded_batch: its keys come from a cache")


def from_seed(rng):
    seed, std = 2**32 + 5, .25
    cells = lambda t: np.array([[of_words(philox([r, c, t, 1], [seed & 0xFFFFFFFF, seed >> 32]), "gaussian", std)
                                 for c in range(6)] for r in range(8)], dtype=float)
    q, k, v = qkv(rng, 2, 6, 3), qkv(rng, 2, 6, 3), qkv(rng, 2, 6, 2)
    made = results(q, k, v, cells(0), cells(1), rows_of(range(6), range(6), 4, 9), True)
    e, echo = parts(4, 9)
    e, echo = ({**x, "seed": seed, "std": std} for x in (e, echo))
    attention("deberta_seed", made, {"q": q, "k": k, "v": v, "dtype": "float64", "return": ALL, "encoding": e}, echo)


if __name__ == "__main__":
    published()
    buckets()
    generator = np.random.default_rng(31)
    projected(generator)
    batches(generator)
    from_seed(generator)
