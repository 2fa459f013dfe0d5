// The colour map of heat maps: blue below zero, orange above, and zero the colour of the page, so that "nothing" looks
// empty. In OKLab, where equal steps look equal; the service's format=png has the same map, by the same formula.
//
// Entry i of 256 stands for t = (i - 127.5)/127.5 in -1..1. Lightness and chroma go linearly from the middle to either
// end; the hue is 255 degrees below and 50 above. Where a screen cannot show one of the two hues, both have the largest
// chroma that it can, found by halving: so their lightness stays alike. (server/wire/picture.c has the formula in full.)

const MAPS = {
  light: { middle: 0.97, end: 0.42, chroma: 0.145 },
  dark: { middle: 0.22, end: 0.86, chroma: 0.15 },
};

const gamma = (v) => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);

/** Linear red, green, blue of an OKLab colour (Ottosson 2020). */
function linear(L, a, b) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

const BLUE = 255, ORANGE = 50;

function colour(L, C, hue) {
  const turn = (hue * Math.PI) / 180;
  return linear(L, C * Math.cos(turn), C * Math.sin(turn));
}

/** Can a screen show both hues? */
const shown = (L, C) => [BLUE, ORANGE].every((hue) => colour(L, C, hue).every((v) => v >= 0 && v <= 1));

function clip(L, C) {
  if (shown(L, C)) return C;
  let low = 0, high = C;
  for (let n = 0; n < 40; n++) {
    const middle = (low + high) / 2;
    if (shown(L, middle)) low = middle;
    else high = middle;
  }
  return low;
}

function entry(map, i) {
  const t = (i - 127.5) / 127.5;
  const L = map.middle + (map.end - map.middle) * Math.abs(t);
  return colour(L, clip(L, map.chroma * Math.abs(t)), t < 0 ? BLUE : ORANGE).map((v) =>
    Math.floor(255 * gamma(Math.min(1, Math.max(0, v))) + 0.5),
  );
}

/** [256][3] of a theme, "light" or "dark". */
export const palette = (theme) => Array.from({ length: 256 }, (_, i) => entry(MAPS[theme], i));

/** The same as pixels of ImageData: red in the lowest byte. */
export const pixels = (theme) =>
  Uint32Array.from(palette(theme), ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);

/** The entry of a value in the domain -d..d. */
export const colourIndex = (v, d) => Math.min(255, Math.max(0, Math.floor(((v + d) / (2 * d)) * 255 + 0.5)));
