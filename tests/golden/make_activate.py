#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The functions between the layers of feed-forward networks, and rows brought to mean 0 and variance 1, in 60 decimal
digits (mpmath) with one rounding to the nearest double at the end: writes activate_values.h.
Run it in this folder: /usr/bin/python3 make_activate.py. The result is committed.
"""
from mpmath import erfc, exp, mp, mpf, pi, sqrt

mp.dps = 60
POINTS = [0.0, 1.0, -1.0, 0.5, -0.5, 1e-8, -1e-8, 2.75, -2.75, 5.0, -5.0, 8.25, -8.25, 12.0, -12.0, 30.0, -30.0, 100.0, -100.0,
          1e30, -1e30, 5e-300]
# A mean that is large beside the differences, whose squares have no room beside it.
ROWS = [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [1e8, 1e8 + 1, 1e8 + 2, 1e8 + 4], [-2.0 ** 23, -2.0 ** 23 + 1],
        [0.25, -0.125, 0.0], [3.0]]
EPS = mpf(1e-5)


def gelu(x):
    return x / 2 * erfc(-x / sqrt(mpf(2)))


def gelu_tanh(x):
    return x / (1 + exp(-2 * sqrt(2 / pi) * (x + mpf("0.044715") * x ** 3)))  # 1 + tanh(u) = 2/(1 + exp(-2u))


def norm(row):
    row = [mpf(x) for x in row]
    mean = sum(row) / len(row)
    return [(x - mean) / sqrt(sum((y - mean) ** 2 for y in row) / len(row) + EPS) for x in row]


def main():
    lines = ["static const struct activate_value activate_values[] = {"]
    lines += [f"    {{{x.hex()}, {float(gelu(mpf(x))).hex()}, {float(gelu_tanh(mpf(x))).hex()}}}," for x in POINTS]
    lines += ["};", "static const struct norm_row norm_rows[] = {"]
    for row in ROWS:
        lines.append(f"    {{{len(row)}, {{{', '.join(x.hex() for x in row)}}},")
        lines.append(f"     {{{', '.join(float(x).hex() for x in norm(row))}}}}},")
    with open("activate_values.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_activate.py: do not edit. x, gelu(x), gelu_tanh(x); and "
                  "rows with what their\n * normalisation is for eps = 1e-5.\n */\n/* clang-format off */\n")
        out.write("\n".join(lines) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
