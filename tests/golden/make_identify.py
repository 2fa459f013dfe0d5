#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rotary tables that identify has to name, where lengths change as pairs turn: writes identify_values.h.

xPos (Sun et al. 2022, as torchscale has it): pair i of a query at position p is multiplied by
zeta_i^((p - center)/scale_base), zeta_i = (2i/d + 0.4)/1.4, that of a key by 1 over it. The last table is none of the
known ones: its lengths go up and down by a tenth. Run it in this folder: /usr/bin/python3 make_identify.py.
"""
import numpy as np

RNG = np.random.default_rng(5)


def turns(rows, d, scale_base, center, keys, base=10000.0):
    p, i = np.arange(rows)[:, None], np.arange(d // 2)
    angle = p * base ** (-2.0 * i / d)
    power = (p - center) / scale_base
    gain = ((2.0 * i / d + 0.4) / 1.4) ** (-power if keys else power)
    return gain * np.cos(angle), gain * np.sin(angle)


def turned(cos, sin, layout, heads):
    rows, pairs = cos.shape
    before = RNG.standard_normal((rows, heads, 2 * pairs)).round(3)
    after, cos, sin = before.copy(), cos[:, None], sin[:, None]
    one, two = (slice(0, pairs), slice(pairs, None)) if layout == "halves" else (slice(0, None, 2), slice(1, None, 2))
    after[..., one] = before[..., one] * cos - before[..., two] * sin
    after[..., two] = before[..., two] * cos + before[..., one] * sin
    return before, after


def full(x, layout):
    return np.concatenate([x, x], 1) if layout == "halves" else np.repeat(x, 2, 1)


def row(kind, rows, d, scale_base, center, keys, layout, heads=1, base=10000.0):
    cos, sin = turns(rows, d, scale_base, center, keys, base)
    if kind == "turned":
        one, two = turned(cos, sin, layout, heads)
    else:
        one, two = full(cos, layout), full(sin, layout)
    return kind, rows, heads, d, scale_base, center, keys, layout, base, one, two


def wavy(rows, d):
    _, _, heads, _, _, _, _, layout, base, cos, sin = row("trig", rows, d, 512, 0, False, "halves")
    p, i = np.arange(rows)[:, None], np.arange(d) % (d // 2)
    angle, gain = p * base ** (-2.0 * i / d), 1 + 0.1 * np.sin(1.7 * p + i)
    return "trig", rows, heads, d, 0, 0, False, layout, base, gain * np.cos(angle), gain * np.sin(angle)


def main():
    rows = [row("trig", 20, 16, 512, 10, False, "halves"), row("trig", 24, 8, 512, 12, True, "interleaved"),
            row("trig", 16, 8, 300, 0, False, "halves"), row("turned", 16, 16, 512, 8, False, "interleaved"),
            row("turned", 12, 8, 512, 0, True, "halves", 2, 500000.0), row("turned", 24, 8, 128, 12, True, "interleaved"),
            wavy(24, 8)]
    with open("identify_values.h", "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Made by make_identify.py: do not edit.\n */\n/* clang-format off */\n")
        for k, (*_, one, two) in enumerate(rows):
            for name, x in (("one", one), ("two", two)):
                text = ",\n    ".join(", ".join(f"{v:.13g}" for v in x.ravel()[j:j + 6]) for j in range(0, x.size, 6))
                out.write(f"static double identify_{name}_{k}[] = {{\n    {text}}};\n")
        out.write("/* turned, rows, heads, width, scale_base (0: none), center, keys, halves, base, cos or before, sin or after */\n"
                  "static const struct grown grown[] = {\n")
        for k, (kind, n, heads, d, scale_base, center, keys, layout, base, _, _) in enumerate(rows):
            out.write(f"    {{{'true' if kind == 'turned' else 'false'}, {n}, {heads}, {d}, {scale_base}, {center}, "
                      f"{str(keys).lower()}, {str(layout == 'halves').lower()}, {base:g}, identify_one_{k}, identify_two_{k}}},\n")
        out.write("};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
