#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of lib/kernels/wave64_parts.h, by mpmath.

    python3 tests/golden/make_wave64.py > lib/kernels/wave64_parts.h
"""
from mpmath import cos, mp, mpf, nint, pi, sin

mp.prec = 300


def split(value):
    high = nint(value * 2**26) / mpf(2)**26
    return f'{float(high).hex()}, {float(value - high).hex()}'


print('''/* SPDX-License-Identifier: MIT
 *
 * cos and sin of k/256 turn for k = -32 .. 32, each as a multiple of 2^-26 and what is left: cos, cos, sin, sin. Made
 * by tests/golden/make_wave64.py.
 */
#ifndef PE_WAVE64_PARTS_H
#define PE_WAVE64_PARTS_H

static const double wave64_parts[65][4] = {''')
for k in range(-32, 33):
    angle = 2 * pi * k / 256
    print(f'    {{{split(cos(angle))}, {split(sin(angle))}}},')
print('''};

#endif''')
