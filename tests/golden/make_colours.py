#!/usr/bin/env python3
"""The colours of pictures: server/wire/picture_colours.h, by the formula of server/wire/picture.c, in mpmath.

    python3 tests/golden/make_colours.py > server/wire/picture_colours.h

50 digits leave no doubt how an entry is rounded; the script fails where float64, in which a page computes the same
formula, could round another way.
"""

import mpmath

mpmath.mp.dps = 50
BLUE, ORANGE = 255, 50  # hues, degrees
THEMES = {  # lightness in the middle, at the ends, chroma at the ends
    "light": ("0.97", "0.42", "0.145"),
    "dark": ("0.22", "0.86", "0.15"),
}
HALVINGS = 40
MARGIN = mpmath.mpf("1e-6")  # of a unit of a colour's 8 bits: float64 errs by some 1e-12

# Ottosson's, https://bottosson.github.io/posts/oklab/
LMS = (("0.3963377774", "0.2158037573"), ("-0.1055613458", "-0.0638541728"), ("-0.0894841775", "-1.2914855480"))
RGB = (
    ("4.0767416621", "-3.3077115913", "0.2309699292"),
    ("-1.2684380046", "2.6097574011", "-0.3413193965"),
    ("-0.0041960863", "-0.7034186147", "1.7076147010"),
)


def linear(lightness, chroma, hue):
    """Linear sRGB of a colour of OKLab."""
    turn = mpmath.radians(hue)
    a, b = chroma * mpmath.cos(turn), chroma * mpmath.sin(turn)
    lms = [(lightness + mpmath.mpf(ka) * a + mpmath.mpf(kb) * b) ** 3 for ka, kb in LMS]
    return [sum(mpmath.mpf(k) * x for k, x in zip(row, lms)) for row in RGB]


def shown(lightness, chroma):
    """Can a screen show both hues?"""
    return all(0 <= x <= 1 for hue in (BLUE, ORANGE) for x in linear(lightness, chroma, hue))


def clip(lightness, chroma):
    """The chroma, or the largest below it that a screen can show."""
    if shown(lightness, chroma):
        return chroma
    low, high = mpmath.mpf(0), chroma
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(lightness, middle) else (low, middle)
    return low


def eight_bits(x):
    """A linear value as 8 bits of sRGB."""
    x = min(max(x, mpmath.mpf(0)), mpmath.mpf(1))
    scaled = 255 * (mpmath.mpf("12.92") * x if x <= mpmath.mpf("0.0031308") else
                    mpmath.mpf("1.055") * x ** (1 / mpmath.mpf("2.4")) - mpmath.mpf("0.055")) + mpmath.mpf("0.5")
    assert abs(scaled - mpmath.nint(scaled)) > MARGIN, "float64 may round this one differently"
    return int(mpmath.floor(scaled))


def colours(theme):
    """All 256 of a theme."""
    middle, end, chroma = map(mpmath.mpf, THEMES[theme])
    for i in range(256):
        s = abs(2 * mpmath.mpf(i) / 255 - 1)
        lightness = middle + (end - middle) * s
        yield [eight_bits(x) for x in linear(lightness, clip(lightness, chroma * s), BLUE if i < 128 else ORANGE)]


def main():
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(" * Made by tests/golden/make_colours.py: the 256 colours of each theme, red, green and blue. The formula is in")
    print(" * picture.c.")
    print(" */")
    print("#ifndef PICTURE_COLOURS_H\n#define PICTURE_COLOURS_H\n")
    print("/* clang-format off */")
    for theme in THEMES:
        print("static const unsigned char picture_%s[256][3] = {" % theme)
        entries = ["{%d, %d, %d}" % tuple(rgb) for rgb in colours(theme)]
        for i in range(0, 256, 6):
            print("    " + ", ".join(entries[i:i + 6]) + ",")
        print("};")
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
