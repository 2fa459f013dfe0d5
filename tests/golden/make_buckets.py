#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Buckets of relative positions, computed apart from the library: writes bucket_edges.h.

bucket(n) = me + the largest k <= q - 1 with n^q me^k >= md^k me^q, where q = n_b - me, for n >= me: the definition with
logarithms, raised to a power that makes it one of whole numbers, which Python has in any size. Of each configuration the
table has the first distance that is in each bucket or a later one. What was published is checked here.
Run it in this folder: /usr/bin/python3 make_buckets.py. The result is committed.
"""


class Rule:
    def __init__(self, num_buckets, max_distance, bidirectional):
        self.half = num_buckets // 2 if bidirectional else num_buckets
        self.me, self.md, self.both = self.half // 2, max_distance, bidirectional
        self.q = self.half - self.me

    def reached(self, n, k):
        return n**self.q * self.me**k >= self.md**k * self.me**self.q

    def of_distance(self, n):
        if n < self.me:
            return n
        k = 0
        while k < self.q - 1 and self.reached(n, k + 1):
            k += 1
        return self.me + k

    def bucket(self, offset):
        """offset = key - query"""
        if not self.both:
            return self.of_distance(max(-offset, 0))
        return self.of_distance(abs(offset)) + (self.half if offset > 0 else 0)

    def first(self, bucket):
        """The first distance that is in this bucket or a later one."""
        if bucket <= self.me:
            return bucket
        low, high = self.me, self.md
        while low < high:
            middle = (low + high) // 2
            if self.reached(middle, bucket - self.me):
                high = middle
            else:
                low = middle + 1
        return low


def runs(rule, n):
    """{bucket: first distance} up to n."""
    out = {}
    for d in range(n):
        out.setdefault(rule.of_distance(d), d)
    return out


def published():
    encoder = {**{d: d for d in range(8)}, 8: 8, 9: 12, 10: 16, 11: 23, 12: 32, 13: 46, 14: 64, 15: 91}
    decoder = {**{d: d for d in range(16)}, 16: 16, 17: 19, 18: 21, 19: 24, 20: 27, 21: 31, 22: 35, 23: 40, 24: 46, 25: 52,
               26: 59, 27: 67, 28: 77, 29: 87, 30: 99, 31: 113}
    assert runs(Rule(32, 128, True), 300) == encoder
    assert runs(Rule(32, 128, False), 300) == decoder


# num_buckets, max_distance, bidirectional. In the third line every edge is a whole number, a power of 2 or 3
# times me; then the smallest rules, and wide or narrow ones.
CONFIGURATIONS = [
    (32, 128, True), (32, 128, False), (32, 256, True), (32, 256, False),
    (320, 800, True), (16, 64, False), (8, 1000, False), (64, 128, False), (128, 128, True),
    (64, 1048576, True), (18, 177147, False),
    (2, 2, False), (3, 2, False), (4, 2, True), (4, 128, False), (5, 3, False), (6, 1000003, True),
    (250, 2147483647, True), (100, 51, False),
]


def main():
    published()
    lines, first = [], 0
    rows = []
    for num_buckets, max_distance, both in CONFIGURATIONS:
        rule = Rule(num_buckets, max_distance, both)
        edges = [rule.first(b) for b in range(rule.half)]
        for d in range(0, 4097, 7):
            assert rule.of_distance(d) == max(b for b in range(rule.half) if edges[b] <= d)
        rows.append(f"    {{{num_buckets}, {max_distance}, {str(both).lower()}, {rule.half}, {first}}},")
        first += rule.half
        text = ", ".join(map(str, edges)) + ","
        while text:
            cut = text.rfind(",", 0, 106) + 1
            lines.append("    " + text[:cut])
            text = text[cut:].lstrip()
    with open("bucket_edges.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_buckets.py: do not edit. The first distance of each "
                  "bucket of one direction, and for\n * each rule num_buckets, max_distance, bidirectional, the number of "
                  "those and where they begin.\n */\n/* clang-format off */\nstatic const double bucket_edges[] = {\n")
        out.write("\n".join(lines) + "\n};\nstatic const struct bucket_config bucket_configs[] = {\n")
        out.write("\n".join(rows) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
