#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values of the encoding `random`, computed apart from the library: writes random_values.h.

Philox4x32-10 from its definition (checked here against three published vectors of the Random123 distribution), Box
and Muller in 60 decimal digits with mpmath, and one rounding to the nearest double at the end. Needs python3-mpmath.
Run it in this folder; the result is committed, so the tests need neither Python nor mpmath.
"""
from mpmath import cos, log, mp, mpf, pi, sqrt

mp.dps = 60
M0, M1, W0, W1, WORD = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        left, right = M0 * c[0], M1 * c[2]
        c = [(right >> 32) ^ c[1] ^ k[0], right & WORD, (left >> 32) ^ c[3] ^ k[1], left & WORD]
        k = [(k[0] + W0) & WORD, (k[1] + W1) & WORD]
    return c


KNOWN = [  # counter, key, words: Random123, kat_vectors, philox4x32 10
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([WORD] * 4, [WORD] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]
for known_counter, known_key, known_words in KNOWN:
    assert philox(known_counter, known_key) == known_words


def value(seed, position, column, distribution, std):
    p = position % 2**64
    return of_words(philox([p & WORD, p >> 32, column, 0], [seed & WORD, seed >> 32]), distribution, std)


def of_words(w, distribution, std):
    first, second = (w[1] << 32 | w[0]) >> 11, (w[3] << 32 | w[2]) >> 11
    if distribution == "uniform":
        return mpf(std) * sqrt(mpf(3)) * (2 * mpf(first) / 2**53 - 1)
    u1, u2 = (first + mpf(1) / 2) / 2**53, mpf(second) / 2**53
    return mpf(std) * sqrt(-2 * log(u1)) * cos(2 * pi * u2)


def main():
    cases = [(seed, position, column)
             for seed in (0, 1, 42, 2**32 + 7, 2**53)
             for position in (0, 1, -1, 1000003, 2**32 + 5, -2**53, 2**53)
             for column in (0, 1, 2, 511, 65535)]
    cases += [(7, position, column) for position in range(-4, 5) for column in range(8)]
    rows = []
    for i, (seed, position, column) in enumerate(cases):
        std = (1.0, 0.02, 3.5)[i % 3]
        for name in ("gaussian", "uniform"):
            rows.append(f'    {{{seed}, {position}, {column}, "{name}", {std}, '
                        f'{float(value(seed, position, column, name, std)).hex()}}},')
    with open("random_values.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_random.py: do not edit. seed, position, column,"
                  " distribution, std, value.\n */\n")
        out.write("/* clang-format off */\nstatic const struct random_value random_values[] = {\n")
        out.write("\n".join(rows) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
