#!/usr/bin/env python3
"""Makes tests/golden/positions_table.h: elements of progressions, counts of ranges, and ends of both by
exact fractions.

    python3 tests/golden/make_positions_table.py > tests/golden/positions_table.h

Element i is start + i*step rounded once; Python's float(Fraction) is correctly rounded. The elements are chosen
so that rounding the product and then the sum gives another double. A count is the number of rounded elements
before stop, found by going through them; the stops are elements and their neighbours, where a quotient of
rounded numbers is off by one. At the edge all last elements are the double 2^53 or -2^53, many of them by rounding:
whether they lie beyond it is told by the fraction.
"""
import math
import random
from fractions import Fraction

source = random.Random(20240301)


def element(start, step, i):
    return float(Fraction(start) + i * Fraction(step))


def count(start, stop, step):
    n = 0
    while element(start, step, n) < stop if step > 0 else element(start, step, n) > stop:
        n += 1
    return n


def elements():
    rows = []
    while len(rows) < 24:
        start, step = round(source.uniform(-9, 9), 1), round(source.uniform(-3, 3), 2)
        i = source.randint(2, 10 ** source.randint(1, 9))
        if element(start, step, i) != float(i) * step + start:
            rows.append((start, step, i))
    return rows


def ranges():
    rows = []
    while len(rows) < 36:
        start, step = round(source.uniform(-2, 2), 1), round(source.uniform(-1, 1), 1)
        if step == 0:
            continue
        at = element(start, step, source.randint(1, 60))
        for stop in (math.nextafter(at, -math.inf), at, math.nextafter(at, math.inf)):
            if math.ceil((stop - start) / step) != count(start, stop, step):
                rows.append((start, stop, step))
    return rows[:36] + [(0.0, 0.3, 0.1), (0.0, 1.0, 0.1), (0.0, 5.0, 1e300), (5e-324, 2e-323, 5e-324)]


EDGE = 2 ** 53


def edges():
    """The last element is found on one side of the edge and on the other, from near and from afar."""
    at_edge = random.Random(53)
    within, beyond = [], []
    while len(within) < 16 or len(beyond) < 16:
        near = at_edge.random() < 0.5
        last = at_edge.randint(1, 9) if near else 10 ** at_edge.randint(0, 9)
        start = float(EDGE - at_edge.randint(0, 30)) if near else round(at_edge.uniform(-9, 9), 1)
        step = float((Fraction(EDGE) + at_edge.randint(-2, 4) * Fraction(1, 4) - Fraction(start)) / last)
        side = at_edge.choice((-1, 1))
        if step > 1 and abs(element(start, step, last)) == EDGE:
            is_within = Fraction(start) + last * Fraction(step) <= EDGE
            (within if is_within else beyond).append((side * start, side * step, last + 1, int(is_within)))
    return within[:16] + beyond[:16]


def main():
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(" * Elements of progressions, counts of ranges, and ends at 2^53. Made by make_positions_table.py, not by hand.")
    print(" */")
    print("#include <stddef.h>\n\n/* clang-format off */")
    print("static const struct {\n    double start, step;\n    size_t i;\n    double expected;\n} element_table[] = {")
    for start, step, i in elements():
        print("    {%r, %r, %d, %r}," % (start, step, i, element(start, step, i)))
    print("};\n\nstatic const struct {\n    double start, stop, step;\n    size_t count;\n} range_table[] = {")
    for start, stop, step in ranges():
        print("    {%r, %r, %r, %d}," % (start, stop, step, count(start, stop, step)))
    print("};\n\nstatic const struct {\n    double start, step;\n    size_t count;\n    int within;\n} edge_table[] = {")
    for row in edges():
        print("    {%r, %r, %d, %d}," % row)
    print("};")


main()
