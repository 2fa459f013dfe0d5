#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pictures, and their colours: test_png.py DAEMON [TEST...].

The pictures are decoded here, by what the PNG standard says, and every pixel is held against the rule that
server/wire/picture.c tells; the colours against its formula, written down once more, against the web page's, and against
what a colour map must be: alike to both sides of zero in lightness, even in its steps, and told apart by whoever does
not see all colours.
"""
import json
import math
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, NotTried, run_tests  # noqa: E402

PATH = sys.argv[1]
PAGE = pathlib.Path(__file__).resolve().parents[2] / "server/www/page/colour.js"
MATRIX = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
THEMES = {"light": (0.97, 0.42, 0.145), "dark": (0.22, 0.86, 0.15)}  # middle, end, chroma
BLUE, ORANGE = 255, 50


class Picture:
    """A PNG of one palette entry a pixel: `lines` of them, its `colours`, its `texts`."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
        self.names, self.texts, packed, at = [], {}, b"", 8
        while at < len(data):
            length, name = struct.unpack(">I4s", data[at:at + 8])
            body, (check,) = data[at + 8:at + 8 + length], struct.unpack(">I", data[at + 8 + length:at + 12 + length])
            assert zlib.crc32(name + body) == check, name
            self.names.append(name.decode())
            if name == b"IHDR":
                self.width, self.height, *rest = struct.unpack(">IIBBBBB", body)
                assert rest == [8, 3, 0, 0, 0], rest  # 8 bits of palette, not interlaced
            elif name == b"PLTE":
                self.colours = [tuple(body[i:i + 3]) for i in range(0, length, 3)]
            elif name in (b"tEXt", b"zTXt"):
                key, value = body.split(b"\0", 1)
                self.texts[key.decode()] = (value if name == b"tEXt" else zlib.decompress(value[1:])).decode()
            elif name == b"IDAT":
                packed += body
            at += 12 + length
        assert self.names[0] == "IHDR" and self.names[-1] == "IEND" and at == len(data)
        self.lines = self.unfilter(zlib.decompress(packed))

    def unfilter(self, plain):
        """Without filters, which would be a kind before each line."""
        step = self.width + 1
        assert len(plain) == step * self.height and not any(plain[::step]), "a line is missing, or filtered"
        return [plain[i + 1:i + step] for i in range(0, len(plain), step)]


def picture(daemon, target, headers=None):
    status, got, body = daemon.get(target, headers)
    assert status == 200 and got["Content-Type"] == "image/png", body[:300]
    return Picture(body)


def entry(value, domain):
    return min(255, max(0, math.floor((value + domain) / (2 * domain) * 255 + 0.5)))


def expect_cells(image, numbers, columns, cell, domain):
    """Row 0 on top, column 0 on the left."""
    rows = [numbers[i:i + columns] for i in range(0, len(numbers), columns)]
    assert (image.width, image.height) == (columns * cell, len(rows) * cell), (image.width, image.height)
    for y, row in enumerate(rows):
        line = bytes(entry(value, domain) for value in row for _ in range(cell))
        for k in range(cell):
            assert image.lines[y * cell + k] == line, f"row {y} is not as the rule says"


# ---- colours ---------------------------------------------------------------------------------------------------------

def linear(lightness, chroma, hue):
    """Linear sRGB of an OKLab colour, by https://bottosson.github.io/posts/oklab/."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)


def shown(lightness, chroma):
    return all(0 <= x <= 1 for hue in (BLUE, ORANGE) for x in linear(lightness, chroma, hue))


def clip(lightness, chroma):
    if shown(lightness, chroma):
        return chroma
    low, high = 0, chroma
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(lightness, middle) else (low, middle)
    return low


def colours(theme):
    """The formula, as linear sRGB."""
    middle, end, chroma = THEMES[theme]
    for i in range(256):
        s = abs(2 * i / 255 - 1)
        lightness = middle + (end - middle) * s
        yield linear(lightness, clip(lightness, chroma * s), BLUE if i < 128 else ORANGE)


def eight_bits(x):
    x = min(1, max(0, x))
    return math.floor(255 * (12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055) + 0.5)


def linear_of(colour):
    return [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]


def lab(rgb):
    """CIELAB, D65, of linear sRGB."""
    white = (0.95047, 1, 1.08883)
    rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    shares = [sum(k * x for k, x in zip(row, rgb)) / w for row, w in zip(rows, white)]
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in shares)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def ciede2000(one, two):
    """Sharma, Wu, Dalal 2005."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    grey = 1 + (1 - math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7))) / 2
    c1, c2 = math.hypot(a1 * grey, b1), math.hypot(a2 * grey, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1 * grey)) % 360, math.degrees(math.atan2(b2, a2 * grey)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    d_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, chroma, hue = (l1 + l2) / 2, (c1 + c2) / 2, h1 + turn / 2 if c1 * c2 else h1 + h2
    t = (1 - 0.17 * math.cos(math.radians(hue - 30)) + 0.24 * math.cos(math.radians(2 * hue))
         + 0.32 * math.cos(math.radians(3 * hue + 6)) - 0.2 * math.cos(math.radians(4 * hue - 63)))
    s_light = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    s_chroma, s_hue = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    blue = (-2 * math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7))
            * math.sin(math.radians(60 * math.exp(-(((hue % 360) - 275) / 25) ** 2))))
    x, y, z = (l2 - l1) / s_light, (c2 - c1) / s_chroma, d_hue / s_hue
    return math.sqrt(x * x + y * y + z * z + blue * y * z)


# Machado, Oliveira, Fernandes 2009, severity 1: what linear sRGB looks like to who lacks one kind of cones.
SIGHTS = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(sight, colour):
    rgb = linear_of(colour)
    return lab([min(1, max(0, sum(k * x for k, x in zip(row, rgb)))) for row in SIGHTS[sight]])


def served(daemon, theme):
    return picture(daemon, f"{MATRIX}&format=png&png.theme={theme}").colours


def test_colours_are_the_formulas():
    """Both themes, all 256 entries: as the text in server/wire/picture.c computes them in float64."""
    with Daemon(PATH) as daemon:
        for theme in THEMES:
            want = [tuple(map(eight_bits, rgb)) for rgb in colours(theme)]
            assert served(daemon, theme) == want, theme


def test_colours_are_the_pages():
    """The web page computes its heat maps' colours itself: the same ones."""
    if not shutil.which("node"):
        raise NotTried("there is no node to run the page's code")
    code = (f"import({json.dumps(PAGE.as_uri())}).then((page) => console.log(JSON.stringify({{"
            "light: page.palette('light'), dark: page.palette('dark'), entries: [...Array(401).keys()].map((k) =>"
            " page.colourIndex((k - 200) / 180, 1.0625))})))")
    done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, check=True, timeout=60)
    page = json.loads(done.stdout)
    with Daemon(PATH) as daemon:
        for theme in THEMES:
            assert served(daemon, theme) == [tuple(colour) for colour in page[theme]], theme
    assert page["entries"] == [entry((k - 200) / 180, 1.0625) for k in range(401)]


def test_ciede2000():
    """Pairs of the paper's table, with its distances: the measure itself is right."""
    pairs = [((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
             ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792), ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
             ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
             ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082)]
    for one, two, want in pairs:
        assert abs(ciede2000(one, two) - want) < 1e-4, (one, two, ciede2000(one, two))


def test_lightness():
    """It rises or falls all the way from the middle to either end, and is alike at both sides."""
    with Daemon(PATH) as daemon:
        for theme, (middle, end, _) in THEMES.items():
            light = [lab(linear_of(colour))[0] for colour in served(daemon, theme)]
            sign = 1 if end > middle else -1
            for i in range(128, 255):
                assert sign * (light[i + 1] - light[i]) > 0, (theme, i)
                assert sign * (light[254 - i] - light[255 - i]) > 0, (theme, 255 - i)
            assert max(abs(a - b) for a, b in zip(light, reversed(light))) < 1.5, theme


def test_steps_are_even():
    """Their distances vary by less than 15 %: one by one before they are rounded to 8 bits, every 8 of them after."""
    with Daemon(PATH) as daemon:
        for theme in THEMES:
            exact = [lab([min(1, max(0, x)) for x in rgb]) for rgb in colours(theme)]
            rounded = [lab(linear_of(colour)) for colour in served(daemon, theme)][::8]
            for map_ in (exact, rounded):
                steps = [ciede2000(one, two) for one, two in zip(map_, map_[1:])]
                assert statistics.pstdev(steps) < 0.15 * statistics.mean(steps), theme


def test_both_sides_are_told_apart():
    """-v and v, from half of the domain on, for every kind of eyes; nearer to zero both are pale on purpose."""
    with Daemon(PATH) as daemon:
        for theme in THEMES:
            map_ = served(daemon, theme)
            for sight in SIGHTS:
                least = min(ciede2000(seen(sight, map_[255 - i]), seen(sight, map_[i])) for i in range(192, 256))
                assert least > 20, (theme, sight, least)


# ---- cells -----------------------------------------------------------------------------------------------------------

def test_cells():
    """Random numbers, shapes, cells and domains, also numbers beyond the domain."""
    draw = random.Random(9)
    with Daemon(PATH) as daemon:
        for rows, columns, cell in ((1, 1, 64), (1, 9, 3), (9, 1, 1), (17, 5, 7), (3, 1500, 1), (40, 33, None)):
            domain = draw.choice((1, 0.125, 3.7, 1e30))
            numbers = [domain * draw.uniform(-1.3, 1.3) for _ in range(rows * columns)]
            target = f"/v1/apply?type=none&format=png&shape={rows},{columns}&body_dtype=float64&png.domain={domain}"
            target = target.replace("+", "%2B") + (f"&png.cell={cell}" if cell else "")
            status, _, body = daemon.post(target, struct.pack(f"<{len(numbers)}d", *numbers),
                                          {"Content-Type": "application/octet-stream"})
            assert status == 200, body
            expect_cells(Picture(body), numbers, columns, cell or 16, domain)


def test_usual_cell():
    """The largest of 1 to 16 with which no side is longer than 1024 pixels."""
    with Daemon(PATH) as daemon:
        for rows, columns, cell in ((2, 64, 16), (2, 65, 15), (1, 512, 2), (513, 2, 1), (1024, 1, 1), (1025, 2, 1)):
            image = picture(daemon, f"/v1/encode?type=naive&d_model={columns}&positions=0:{rows}&format=png")
            assert (image.width, image.height) == (columns * cell, rows * cell), (rows, columns, image.width)


def test_operations():
    """A picture of whatever has one matrix, as the raw numbers of the same request are; block's weights are [1, 1, T, T]."""
    targets = {MATRIX: 6, "/v1/bias?type=alibi&heads=8&head_index=0&query_positions=2:4&key_positions=0:4": 4,
               "/v1/block?tokens=to,be,or,not,to,be&width=8&weights_seed=1&return=weights": 6,
               "/v1/shift?type=random&d_model=8&seed=1&distance=1&return=matrix&dtype=float32": 8,
               "/v1/similarity?type=sinusoidal&d_model=16&positions=0:9&metric=cosine&return=gram&dtype=float32": 9,
               "/v1/positions?grid=2,3&dtype=float32": 2}
    with Daemon(PATH) as daemon:
        for target, columns in targets.items():
            status, headers, raw = daemon.get(target + "&format=raw")
            assert status == 200 and headers["X-Posenc-Dtype"] == "float32", raw[:300]
            numbers = struct.unpack(f"<{len(raw) // 4}f", raw)
            expect_cells(picture(daemon, target + "&format=png&png.cell=2"), numbers, columns, 2, 1)


def test_streams():
    """A picture too large for a buffer is written while it is made."""
    target = "/v1/encode?type=sinusoidal&d_model=64&positions=0:6000"
    with Daemon(PATH, "--reply-bytes=1048576") as daemon:
        status, headers, body = daemon.get(target + "&format=png")
        assert status == 200 and headers["Transfer-Encoding"] == "chunked" and len(body) > 50000, headers
        image, raw = Picture(body), daemon.get(target + "&format=raw")[2]
        expect_cells(image, struct.unpack(f"<{len(raw) // 4}f", raw), 64, 1, 1)
        status, _, body = daemon.get(MATRIX + "&format=png&png.cell=64")
        assert status == 200, body
        image = picture(daemon, MATRIX.replace("0:4", "0:99") + "&format=png&png.cell=64")
        assert (image.width, image.height) == (6 * 64, 99 * 64)


def test_too_large():
    """Where a picture cannot be streamed, one that may be too large for a buffer is a 413 that says what makes it smaller."""
    large = MATRIX.replace("0:4", "0:99")
    with Daemon(PATH, "--reply-bytes=1048576") as daemon:
        status, _, body = daemon.post("/v1/encode?format=png&png.cell=64", {
            "encoding": {"type": "sinusoidal", "d_model": 6}, "positions": "0:99"})
        problem = json.loads(body)
        assert status == 413 and problem["option"] == "reply_bytes" and "png.cell" in problem["detail"], problem
        assert daemon.request("HEAD", large + "&format=png&png.cell=64")[0] == 200
    with Daemon(PATH, "--reply-bytes=1048576", "--streams=0") as daemon:
        status, headers, body = daemon.get(large + "&format=png&png.cell=64")
        problem = json.loads(body)
        assert status == 413 and problem["option"] == "reply_bytes" and "png.cell" in problem["detail"], problem
        assert "Retry-After" not in headers
        assert picture(daemon, large + "&format=png").height == 99 * 10


# ---- what stands beside them -----------------------------------------------------------------------------------------

def test_negotiation():
    """By the query, by an img element's Accept; not where a browser follows a link."""
    image = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
    page = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8"
    with Daemon(PATH) as daemon:
        picture(daemon, MATRIX, {"Accept": "image/png"})
        picture(daemon, MATRIX, {"Accept": image})
        picture(daemon, MATRIX + "&format=png", {"Accept": "application/json"})
        assert daemon.get(MATRIX, {"Accept": page})[1]["Content-Type"] == "application/json"


def test_texts():
    """A figure says what it shows."""
    with Daemon(PATH) as daemon:
        status, headers, body = daemon.get(MATRIX + "&format=png&png.domain=0.5")
        image = Picture(body)
        assert status == 200 and image.texts == {"Software": "posenc", "Title": "vectors", "Domain": "[-0.5, 0.5]",
                                                 "Encoding": headers["X-Posenc-Encoding"]}, image.texts
        assert json.loads(image.texts["Encoding"])["base"] == 10000
        assert set(image.names) == {"IHDR", "PLTE", "tEXt", "IDAT", "IEND"}, image.names


def test_tags():
    """The same bytes again, a 304 for whoever has them, and other tags for other looks."""
    looks = ["", "&png.domain=2", "&png.cell=3", "&png.theme=dark"]
    with Daemon(PATH) as daemon:
        replies = [daemon.get(MATRIX + "&format=png" + look) for look in looks]
        assert len({headers["ETag"] for _, headers, _ in replies}) == len({body for _, _, body in replies}) == len(looks)
        for look, (_, headers, body) in zip(looks, replies):
            assert daemon.get(MATRIX + "&format=png" + look)[2] == body
            status, again, nothing = daemon.get(MATRIX + "&format=png" + look, {"If-None-Match": headers["ETag"]})
            assert (status, nothing, again["ETag"]) == (304, b"", headers["ETag"])
        status, headers, nothing = daemon.request("HEAD", MATRIX + "&format=png")
        assert (status, nothing, headers["ETag"]) == (200, b"", replies[0][1]["ETag"])


def test_refused():
    """Looks of no picture, and no matrix."""
    with Daemon(PATH) as daemon:
        for query, status, field in (("&png.cell=2", 400, "png.cell"), ("&format=npy&png.domain=2", 400, "png.domain"),
                                     ("&format=png&png.cell=0", 400, "png.cell"), ("&format=png&png.domain=inf", 400, "png.domain"),
                                     ("&format=png&dtype=bfloat16", 406, "format")):
            got, _, body = daemon.get(MATRIX + query)
            assert got == status and json.loads(body)["field"] == field, body
        got, _, body = daemon.get("/v1/shift?type=sinusoidal&d_model=8&distance=1&format=png&return=blocks")
        assert got == 406 and json.loads(body)["field"] == "format" and "of rank 3; use json" in json.loads(body)["detail"].replace(")", ""), body


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
