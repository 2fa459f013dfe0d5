#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes lib/core/powers.c: the powers of ten, in 128 bits, that the number reader and writer share.

    python3 tests/golden/make_shortest_table.py > lib/core/powers.c

Row k holds g = floor(10^k * 2^(127 - floor(log2(10^k)))) + 1, so 2^127 < g <= 2^128 - 1 and
g - 1 <= 10^k * 2^(...) < g: whole numbers only, so the rows are exact whatever machine makes them.
The range -292..324 is what the shortest decimals of all doubles need (largest 1.8e308, smallest 4.9e-324).
"""
FIRST, LAST = -292, 324


def power(k):
    numerator, denominator = (10**k, 1) if k >= 0 else (1, 10**-k)
    log2 = numerator.bit_length() - denominator.bit_length()  # floor(log2(10^k)), or one too many
    if numerator < denominator << log2 if log2 >= 0 else numerator << -log2 < denominator:
        log2 -= 1
    shift = 127 - log2
    scaled = numerator << shift if shift >= 0 else numerator >> -shift
    return scaled // denominator + 1


def row(k):
    g = power(k)
    assert 2**127 < g < 2**128
    return "{0x%016x, 0x%016x}," % (g >> 64, g & (2**64 - 1))


print("/* SPDX-License-Identifier: MIT")
print(" *")
print(" * The powers of ten 10^%d .. 10^%d in 128 bits, rounded up. Made by" % (FIRST, LAST))
print(" * tests/golden/make_shortest_table.py; do not edit. */")
print('#include "core/powers.h"\n')
print("/* clang-format off */")
print("const struct pe_u128 pe_powers[PE_POWER_MAX - PE_POWER_MIN + 1] = {")
for first in range(FIRST, LAST + 1, 2):
    print("    " + " ".join(row(k) for k in range(first, min(first + 2, LAST + 1))))
print("};")
