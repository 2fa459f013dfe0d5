#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Quotients p/N whose rounding to a narrow type goes wrong when they are first rounded to double: writes
naive_values.h. p and N are chosen so that p/N lies just beside the midpoint of two neighbours of the narrow type,
closer than a double can tell. The right value is found with exact fractions. Run it in this folder; needs no package.
"""
from fractions import Fraction
from random import Random

FORMATS = {"PE_DTYPE_F32": 24, "PE_DTYPE_F16": 11, "PE_DTYPE_BF16": 8}  # significant bits


def nearest(value, bits):
    """value in [1/2, 1) rounded to that many bits, ties to even, exactly."""
    scaled = value * 2**bits
    low = scaled.numerator // scaled.denominator
    rest = scaled - low
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2)
    return Fraction(low + up, 2**bits)


def main():
    random, rows = Random(1), []
    for dtype, bits in FORMATS.items():
        found = 0
        while found < 12:
            n = 2**53 - 2 * random.randrange(2**30) - 1
            middle = Fraction(2 * random.randrange(2 ** (bits - 1), 2**bits) + 1, 2 ** (bits + 1))
            p = round(middle * n)
            right, twice = nearest(Fraction(p, n), bits), nearest(Fraction(p / n), bits)
            if right != twice:
                rows.append(f"    {{{p}, {n}, {dtype}, {float(right).hex()}}},")
                found += 1
    with open("naive_values.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_naive.py: do not edit. p, N, dtype, p/N rounded"
                  " once.\n */\n/* clang-format off */\nstatic const struct naive_value naive_values[] = {\n"
                  + "\n".join(rows) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
