#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of transformer_xl, after those of make_cases.py; see there. Sinusoids of the distances have 50 digits (mpmath).
Run it in this folder: /usr/bin/python3 make_cases_transformer_xl.py. The result is committed.

Nobody has published numbers of it. So the formula of the paper's section 3.3, pair by pair, is held against what the projects
compute in its place: products with all rows, shifted into place (rel_shift), for Transformer-XL's rows T-1 .. 0 under a causal
mask and for XLNet's rows T .. -T+1.
"""
import numpy as np
from mpmath import cos, mpf, sin

from make_cases_ops import qkv
from make_cases_shaw import ALL, attention, posted, softmax


def sinusoid(n, d_model, base=10000):
    omega = [mpf(base) ** (-mpf(2 * m) / d_model) for m in range(d_model // 2)]
    return [float(sin(n * o)) for o in omega] + [float(cos(n * o)) for o in omega]


def results(q, k, v, u, b, rows, seen):
    """rows [.., Tq, Tk, H, d]: W_R R of each pair; u, b: content_bias and position_bias [H, d]."""
    scale = 1 / np.sqrt(q.shape[-1])
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    content = scale * q @ np.swapaxes(k, -1, -2)
    position = scale * (np.einsum("hd,...hjd->...hj", u, k)[..., None, :]
                        + np.einsum("...hid,...ijhd->...hij", q + b[:, None], rows))
    weights = softmax(content + position, seen)
    return {"weights": weights, "logits": content + position, "content": content, "position": position, "output": weights @ v}


def of_pairs(w_r, queries, keys, heads, base=10000):
    """[.., Tq, Tk, H, d] of positions [.., Tq] and [.., Tk]."""
    distances = np.asarray(queries)[..., :, None] - np.asarray(keys)[..., None, :]
    made = {n: np.asarray(sinusoid(mpf(n), len(w_r), base)) @ w_r for n in sorted(set(distances.ravel().tolist()))}
    flat = np.array([made[n] for n in distances.ravel().tolist()])
    return flat.reshape(*distances.shape, heads, -1)


def shifted(products):
    """Transformer-XL: [H, T, rows], as torch: a column of zeros in front, rows and columns regarded the other way round."""
    h, t, n = products.shape
    padded = np.concatenate([np.zeros((h, t, 1)), products], -1)
    return padded.reshape(h, n + 1, t)[:, 1:].reshape(h, t, n)


def shifted_xlnet(products, klen):
    h, t, n = products.shape
    return products.reshape(h, n, t)[:, 1:].reshape(h, t, n - 1)[:, :, :klen]


def cases(rng):
    q, k, v = qkv(rng, 2, 4, 4), qkv(rng, 2, 4, 4), qkv(rng, 2, 4, 3)
    w_r, u, b = qkv(rng, 6, 8), qkv(rng, 2, 4), qkv(rng, 2, 4)
    t = np.arange(4)
    i, j = t[:, None], t[None, :]
    pairs = of_pairs(w_r, t, t, 2)
    made = results(q, k, v, u, b, pairs, j <= i)
    past = of_pairs(w_r, t[::-1], [0], 2)[:, 0]  # rows 3, 2, 1, 0
    moved = shifted(np.einsum("hid,rhd->hir", q + b[:, None], past))
    wanted = np.einsum("hid,ijhd->hij", q + b[:, None], pairs)
    assert np.allclose(np.tril(moved), np.tril(wanted), atol=1e-13)
    body = {"q": q, "k": k, "v": v, "dtype": "float64", "mask": "causal", "return": ALL}
    given = {"content_bias": u.tolist(), "position_bias": b.tolist()}
    echo = {"content_bias": posted(u), "position_bias": posted(b), "std": 1.0}
    attention("transformer_xl", made, {**body, "encoding": {"type": "transformer_xl", "w_r": w_r.tolist(), **given}},
              {"type": "transformer_xl", "d_model": 6, "base": 10000.0, "w_r": posted(w_r), **echo},
              source="Dai et al. 2019, section 3.3")
    table = of_pairs(w_r, np.arange(4, -4, -1), [0], 2)[:, 0]  # XLNet: T .. -T+1
    moved = shifted_xlnet(np.einsum("hid,rhd->hir", q + b[:, None], table), 4)
    assert np.allclose(moved, wanted, atol=1e-13)
    made = results(q, k, v, u, b, pairs, True)
    del body["mask"]
    attention("transformer_xl_xlnet_rows", made,
              {**body, "encoding": {"type": "transformer_xl", "table": table.tolist(), "first_distance": 4, **given}},
              {"type": "transformer_xl", "base": 10000.0, "table": posted(table), "first_distance": 4, **echo},
              source="XLNet's rows T .. -T+1")


def batches(rng):
    """Left-padded and real positions, grouped keys, and the last row alone with the keys of a cache."""
    q, k, v = qkv(rng, 2, 4, 3, 2), qkv(rng, 2, 2, 5, 2), qkv(rng, 2, 2, 5, 3)
    w_r, b = qkv(rng, 4, 8), qkv(rng, 4, 2)
    places = np.array([[0, 0, 0, 1, 2], [0.5, 1.25, 7, 1000, 1000.75]])
    keep = np.array([[0, 0, 1, 1, 1], [1] * 5])
    seen = keep[:, None, None, :] * (np.arange(5)[None, :] <= np.arange(3)[:, None] + 2) > 0
    made = results(q, k, v, np.zeros((4, 2)), b, of_pairs(w_r, places[:, 2:], places, 4, 100), seen)
    body = {"k": k, "v": v, "dtype": "float64", "return": ALL, "key_positions": places,
            "encoding": {"type": "transformer_xl", "base": 100, "w_r": w_r.tolist(), "position_bias": b.tolist()},
            "mask": {"keep": keep.tolist(), "causal": True}}
    echo = {"type": "transformer_xl", "d_model": 4, "base": 100.0, "w_r": posted(w_r), "position_bias": posted(b), "std": 1.0}
    attention("transformer_xl_padded_batch", made, {**body, "q": q, "query_positions": places[:, 2:]}, echo)
    attention("transformer_xl_cached", {n: x[..., -1:, :] for n, x in made.items()},
              {**body, "q": q[..., -1:, :], "query_positions": places[:, 4:]}, echo,
              source="the last row of transformer_xl_padded_batch: its keys come from a cache")


if __name__ == "__main__":
    generator = np.random.default_rng(6)
    cases(generator)
    batches(generator)
