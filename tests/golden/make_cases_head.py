#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of head, after those of make_cases.py; see there. Weights from the addition theorem in float64, written down
as matrices here; that they put 0.95 of the mass where they should is asserted.
Run it in this folder: /usr/bin/python3 make_cases_head.py. The result is committed.
"""
import numpy as np

from make_cases import case, sinusoid, spec, tensor
from make_cases_ops import softmax
from make_cases_similarity import ROPE

N = 12
OK = "the head looks where it is told"


def rotation(a):
    return np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])


def reply(e, w_q, w_k, scores, targets, causal=True):
    """From scores with gain 1; targets[i] is the key wanted, or None."""
    n = len(scores)
    seen = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
    rows = [i for i, t in enumerate(targets) if t is not None and 0 <= t < n and seen[i, t]]
    gap = min(scores[i, targets[i]] - scores[i, j] for i in rows for j in range(n) if seen[i, j] and j != targets[i])
    gain = np.log(n / .01) / gap
    weights = softmax(gain * scores, seen)
    mass = [weights[i, targets[i]] for i in rows]
    assert min(mass) > .95, mass
    return {"encoding": e, "w_q": tensor(gain * w_q, "float64"), "w_k": tensor(w_k, "float64"), "weights": tensor(weights, "float64"),
            "mass": {"possible": True, "min": min(mass), "mean": float(np.mean(mass)), "queries": len(rows), "gain": gain, "detail": OK}}


def added(name, query, d, width, offset, n=N, **more):
    """offset None: the first token."""
    e = spec(d_model=d)
    x = np.array([[float(v) for v in sinusoid(e, p)] for p in range(n)])
    omega = [10000 ** (-2 * i / d) for i in range(d // 2)]
    w_q, w_k = np.zeros((d, width)), np.zeros((d, width))
    for f in range(width // 2):
        at = slice(2 * f, 2 * f + 2)
        w_k[at, at] = np.eye(2)
        if offset is None:
            w_q[d - 1, at] = x[0, at]  # the slowest cosine stands for a 1
        else:
            w_q[at, at] = rotation(offset * omega[f]).T  # PE(p + offset) = M.PE(p)
    scores = (x @ w_q) @ (x @ w_k).T / np.sqrt(width)
    targets = [0 if offset is None else i + offset for i in range(n)]
    case("head/" + name, "GET /v1/head?" + query + "&dtype=float64", {**reply(e, w_q, w_k, scores, targets), **more}, 1e-9)


def turned(name, query, offset):
    d, omega = 6, [10000 ** (-i / 3) for i in range(3)]
    w_q, w_k = np.zeros((1, d)), np.zeros((1, d))
    if offset is None:
        f = next(i for i, o in enumerate(omega) if o * (N - 1) <= np.pi / 3)
        w_k[0, f], w_q[0, f + 3] = 1, -1
        scores = np.array([[np.sin(omega[f] * (i - j)) for j in range(N)] for i in range(N)])
    else:
        w_k[0, :3], w_q[0, :3], w_q[0, 3:] = 1, np.cos(np.multiply(offset, omega)), np.sin(np.multiply(offset, omega))
        scores = np.array([[sum(np.cos(o * (i + offset - j)) for o in omega) for j in range(N)] for i in range(N)])
    targets = [0 if offset is None else i + offset for i in range(N)]
    case("head/" + name, "GET /v1/head?" + query + "&dtype=float64",
         reply({**ROPE}, w_q, w_k, scores / np.sqrt(d), targets), 1e-9)


def none():
    """Equal tokens have equal scores, so every weight is one over the tokens seen."""
    weights = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    mass = [weights[i, i - 1] for i in range(1, 4)]
    case("head/none", "GET /v1/head?type=none&goal.attend=-1&positions=0:4",
         {"encoding": {"type": "none"}, "weights": tensor(weights),
          "mass": {"possible": False, "min": min(mass), "mean": float(np.mean(mass)), "queries": 3, "gain": 1.0, "tries": 100,
                   "detail": "without an encoding equal tokens get equal weights, whatever the head"}}, 1e-6)


if __name__ == "__main__":
    for k in (1, 2, 3):
        added(f"back_{k}", f"type=sinusoidal&d_model=64&goal.attend=-{k}", 64, 64, -k)
        turned(f"rotary_back_{k}", f"type=rope&layout=halves&head_dim=6&goal.attend=-{k}", -k)
    added("narrow", "type=sinusoidal&d_model=64&width=8&goal.attend=-1", 64, 8, -1)
    added("first", "type=sinusoidal&d_model=64&goal=first", 64, 64, None)
    added("lengths", "type=sinusoidal&d_model=8&goal.attend=-1&positions.lengths=5", 8, 8, -1, 5, positions=list(range(5)))
    turned("rotary_first", "type=rope&layout=halves&head_dim=6&goal.attend=first", None)
    none()
