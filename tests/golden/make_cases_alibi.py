#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of ALiBi, after those of make_cases.py; see there. Slopes are mpmath's, the biases one rounding of them.
Run it in this folder: /usr/bin/python3 make_cases_alibi.py. The result is committed.
"""
import numpy as np
from mpmath import mpf

from make_cases import case, single, tensor
from make_cases_ops import SINGLE, grid, softmax

ECHO = {"type": "alibi", "rule": "press", "form": "symmetric", "bias_max": 8.0}


def slopes(heads, bias_max=8):
    """The paper's code: those of the power of two below, then every other one of the next."""
    below = 1 << (heads.bit_length() - 1)

    def of_power(n):
        return [mpf(2) ** (-mpf(bias_max) * (h + 1) / n) for h in range(n)]

    return of_power(below) + of_power(2 * below)[0::2][:heads - below]


def published():
    for heads, wanted in ((1, [.00390625]), (3, [.0625, .00390625, .25]), (6, [.25, .0625, .015625, .00390625, .5, .125]),
                          (8, [2.0 ** -(h + 1) for h in range(8)]),
                          (10, [2.0 ** -(h + 1) for h in range(8)] + [.707106781, .353553391]),
                          (12, [2.0 ** -(h + 1) for h in range(8)] + [.707106781, .353553391, .176776695, .088388348]),
                          (20, [None] * 16 + [.840896415, .594603558, .420448208, .297301779])):
        got = slopes(heads)
        for a, b in zip(got, wanted):
            assert b is None or abs(a - b) <= 6e-10, (heads, a, b)
        case(f"bias/alibi_{heads}_heads", f"GET /v1/bias?type=alibi&heads={heads}&query_positions=1:2&key_positions=0:1",
             {"encoding": ECHO, "bias": tensor([[[single(-m)]] for m in got])}, source="the slopes of the paper's code")
    keys = np.arange(3) - 2.0
    for heads, bias_max in ((2, 12), (3, 6)):
        rows = [[[single(m * mpf(k)) for k in keys]] for m in slopes(heads, bias_max)]
        case(f"bias/alibi_max_{bias_max}",
             f"GET /v1/bias?type=alibi&form=causal_key&bias_max={bias_max}&heads={heads}&query_positions=0:1&key_positions=-2:1",
             {"encoding": {**ECHO, "form": "causal_key", "bias_max": float(bias_max)}, "bias": tensor(rows)},
             source="keras-hub alibi_bias_test.py: alibi_bias_max 12 with 2 heads, 6 with 3")


def forms():
    rows = [[[single(-m * abs(k - q)) for k in (0, 1.5, 9)] for q in (3, 0.25)] for m in slopes(5)]
    case("bias/alibi_lists", "GET /v1/bias?type=alibi&heads=5&query_positions=3,0.25&key_positions=0,1.5,9",
         {"encoding": ECHO, "bias": tensor(rows)})
    case("bias/alibi_some_heads", "GET /v1/bias?type=alibi&heads=5&head_index=4,1&query_positions=3,0.25&key_positions=0,1.5,9",
         {"encoding": ECHO, "bias": tensor([rows[4], rows[1]])})
    i, j = grid(2, 4)
    m = float(slopes(6)[4])
    logits = -m * np.abs(i - j)
    body = {"q": [[[0, 0]] * 2], "k": [[[0, 0]] * 4], "encoding": "alibi", "heads": 6, "head_index": [4], "mask": "causal",
            "return": ["weights", "content", "position", "logits"]}
    case("attention/alibi_one_head", "POST /v1/attention",
         {"encoding": ECHO, "weights": tensor([softmax(logits, j <= i)]), "logits": tensor([logits]),
          "content": tensor(np.zeros((1, 2, 4))), "position": tensor([logits])}, SINGLE, body)


if __name__ == "__main__":
    published()
    forms()
