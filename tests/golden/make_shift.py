#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Best linear maps between rows of small tables, into shift_cases.h: python3 make_shift.py

numpy.linalg.lstsq (singular values, minimum norm). Tables are multiples of 1/64.
"""
import os
import numpy as np

rng = np.random.default_rng(7)


def table(rows, columns):
    return rng.integers(-128, 129, (rows, columns)) / 64.0


def case(name, t, distance, n):
    a, b = t[:n], t[distance:distance + n]
    x = np.linalg.lstsq(a, b, rcond=None)[0]
    off = a @ x - b
    return name, t, distance, n, x.T, np.abs(off).max(), np.sqrt((off**2).mean())


low = table(12, 2) @ table(2, 5)
equal = table(9, 4)[:, [0, 1, 1, 2, 0]]
empty = table(9, 4) * [1, 0, 1, 0]
CASES = [case("tall", table(14, 5), 2, 12), case("wide", table(6, 8), 1, 4), case("square", table(7, 6), 1, 6),
         case("rank_two", low, 1, 11), case("equal_columns", equal, 1, 8), case("zero_columns", empty, 1, 8),
         case("one_position", table(4, 3), 3, 1), case("all_zero", np.zeros((5, 3)), 1, 4)]

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shift_cases.h"), "w") as f:
    f.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_shift.py; not edited by hand.\n */\n/* clang-format off */\n")
    rows = ""
    for name, t, distance, n, m, residual, rms in CASES:
        for what, values in (("table", t), ("matrix", m)):
            f.write("static const double %s_%s[] = {%s};\n" % (name, what, ", ".join(repr(float(x)) for x in values.ravel())))
        rows += "    {\"%s\", %d, %d, %d, %d, %s_table, %s_matrix, %r, %r},\n" % (
            name, t.shape[0], t.shape[1], distance, n, name, name, float(residual), float(rms))
    f.write("static const struct shift_case shift_cases[] = {\n%s};\n/* clang-format on */\n" % rows)
