#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The slopes of ALiBi, computed apart from the library: writes alibi_values.h.

Slopes are 2^(-bias_max m / 128), where m says which: of H = 1 to 64 heads by the code of the paper's authors and by that
of MPT, which differ in how they go about it, and are compared here. The powers are mpmath's, rounded once.
Run it in this folder: /usr/bin/python3 make_alibi.py. The result is committed.
"""
from fractions import Fraction

from mpmath import mp, mpf

mp.dps = 60
HEADS, UNIT = 64, 128
BIAS_MAX = ("8", "12", "6", "4.5", "1000", "0.0625")


def press(heads):
    """Exponents in units of bias_max. The power of two below, then every other one of twice that."""
    def of_power(n):
        return [Fraction(i + 1, n) for i in range(n)]

    closest = 2 ** (heads.bit_length() - 1)
    return of_power(closest) + of_power(2 * closest)[0::2][:heads - closest]


def mpt(heads):
    """All of the power of two above, the odd ones moved to the front, then as many as there are heads."""
    above = 2 ** (heads - 1).bit_length()
    m = [Fraction(i, above) for i in range(1, above + 1)]
    return m if above == heads else (m[1::2] + m[::2])[:heads]


def wrapped(items):
    text = ", ".join(items) + ","
    while text:
        cut = text.rfind(",", 0, 106) + 1
        yield "    " + text[:cut]
        text = text[cut:].lstrip()


def main():
    lines = []
    for heads in range(1, HEADS + 1):
        assert press(heads) == mpt(heads), heads
        lines.append(f"    {{{', '.join(str(m * UNIT) for m in press(heads))}}},")
    powers = []
    for bias_max in BIAS_MAX:
        values = [float(mpf(2) ** (-mpf(bias_max) * m / UNIT)).hex() for m in range(UNIT + 1)]
        powers += [f"    {{\"{bias_max}\", {{", *wrapped(values), "    }},"]
    with open("alibi_values.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_alibi.py: do not edit. Of each number of heads, which "
                  "powers the slopes are; and\n * 2^(-bias_max m / 128) for m = 0 to 128.\n */\n/* clang-format off */\n")
        out.write(f"static const unsigned char alibi_slopes[][{HEADS}] = {{\n" + "\n".join(lines) + "\n};\n")
        out.write("static const struct alibi_power alibi_powers[] = {\n" + "\n".join(powers) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
