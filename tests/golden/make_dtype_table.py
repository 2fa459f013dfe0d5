#!/usr/bin/env python3
"""Makes tests/golden/dtype_table.h: doubles and the float16 and bfloat16 bits nearest to them.

    /usr/bin/python3 tests/golden/make_dtype_table.py > tests/golden/dtype_table.h

The nearest number is found with fractions: of the two neighbours the closer one, on a tie the one with an even
last bit, and infinity from the midpoint above the largest number. numpy's float16, which rounds once from
float64, must agree on every row. Rows are made where mistakes live: at midpoints and one double to either side,
where a float in between would round a second time, around the smallest normal and subnormal numbers, and at the
overflow; and at random over all exponents.
"""
import random
import struct
from fractions import Fraction

import numpy

FORMATS = {"float16": (5, 10), "bfloat16": (8, 7)}  # exponent bits, fraction bits


def bits_of(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def double_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def value_of(half, fmt):
    """The number that the bits of a magnitude stand for; infinity stands for the power of two in its place."""
    exponent_bits, fraction_bits = FORMATS[fmt]
    bias = 2 ** (exponent_bits - 1) - 1
    exponent, fraction = divmod(half, 2**fraction_bits)
    if exponent == 0:
        return Fraction(fraction) * Fraction(2) ** (1 - bias - fraction_bits)
    return (1 + Fraction(fraction, 2**fraction_bits)) * Fraction(2) ** (exponent - bias)


def nearest(x, fmt):
    exponent_bits, fraction_bits = FORMATS[fmt]
    sign, x = (bits_of(x) >> 63) << 15, abs(Fraction(x))
    low, high = 0, (2**exponent_bits - 1) << fraction_bits  # value(low) <= x, or low is 0; high is infinity
    if x >= value_of(high, fmt):
        return sign | high
    while high - low > 1:
        middle = (low + high) // 2
        if value_of(middle, fmt) <= x:
            low = middle
        else:
            high = middle
    below, above = x - value_of(low, fmt), value_of(high, fmt) - x
    return sign | (low if below < above or (below == above and low % 2 == 0) else high)


def inputs():
    picks = []
    for fmt, (exponent_bits, fraction_bits) in FORMATS.items():
        infinity = (2**exponent_bits - 1) << fraction_bits
        one = (2 ** (exponent_bits - 1) - 1) << fraction_bits
        normal = 1 << fraction_bits  # the smallest normal number
        for half in (0, 1, 2, 3, normal - 2, normal - 1, normal, normal + 1, one - 2, one - 1, one, one + 1,
                     infinity - 2, infinity - 1):
            here, after = value_of(half, fmt), value_of(half + 1, fmt)
            midpoint = float((here + after) / 2)
            for bits in (bits_of(midpoint) - 1, bits_of(midpoint), bits_of(midpoint) + 1):
                picks.append(double_of(bits))
            picks += [midpoint * (1 + 2.0**-30), midpoint * (1 - 2.0**-30), float(here), float(after)]
    picks += [2.0**-149, 2.0**-150, 2.0**-1022, 5e-324, 1e300, 1.7976931348623157e308, 65504.0, 65519.0, 65520.0]
    source = random.Random(20240229)
    for fmt, low, high in (("float16", -26, 17), ("bfloat16", -135, 129)):
        for _ in range(100):
            picks.append(source.uniform(1, 2) * 2.0 ** source.randint(low, high))
    return [x if i % 2 else -x for i, x in enumerate(dict.fromkeys(picks))]


def main():
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(" * Doubles and the 16-bit numbers nearest to them. Made by make_dtype_table.py, not by hand.")
    print(" */")
    print("#include <stdint.h>\n\n/* clang-format off */")
    print("static const struct {")
    print("    double value;")
    print("    uint16_t float16, bfloat16;")
    print("} dtype_table[] = {")
    numpy.seterr(over="ignore", under="ignore")
    for x in inputs():
        half = nearest(x, "float16")
        assert half == int(numpy.float64(x).astype(numpy.float16).view(numpy.uint16)), x
        print("    {%s, 0x%04x, 0x%04x}," % (x.hex(), half, nearest(x, "bfloat16")))
    print("};")


main()
