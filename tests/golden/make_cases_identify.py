#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of identify that nothing explains, after those of make_cases.py; see there. Tables that something explains
are in tests/unit/check_identify.c.
Run it in this folder: /usr/bin/python3 make_cases_identify.py. The result is committed.
"""
import numpy as np

from make_cases import case

NONE = ("none of these: no encoding known here makes this table; a learned or random one, whose numbers follow no formula, "
        "is not told from others")

if __name__ == "__main__":
    for name, table, verdict in (("none", np.random.default_rng(3).normal(size=(20, 6)), NONE),
                                 ("zeros", np.zeros((3, 4)), "none of these: every number is 0 in float32")):
        case("identify/" + name, "POST /v1/identify", {"candidates": [], "verdict": verdict}, 0, {"tensor": table.tolist()})
