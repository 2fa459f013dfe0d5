#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of Fourier features, Time2Vec, diffusion timesteps and sampled positions, after those of make_cases.py; see
there. Values have 50 digits and one rounding at the end.
Run it in this folder: /usr/bin/python3 make_cases_fourier.py. The result is committed.
"""
import json

from mpmath import cos, mp, mpf, pi, sin

from make_cases import case, single, tensor
from make_random import of_words, philox

mp.dps = 80  # 2^53 * 2^53 radians need 32 digits before the point


def normal(row, column, table, seed, std):
    """The cell of core/cells.h as a double."""
    return mpf(float(of_words(philox((row, column, table, 1), (seed, 0)), "gaussian", std)))


def rounded(rows, dtype="float32"):
    return [[single(v) if dtype == "float32" else float(v) for v in row] for row in rows]


def write(name, query, e, rows, published=None, source=None, dtype="float32"):
    rows = rounded(rows, dtype)
    for got, wanted in zip(rows, published or []):
        for a, b in zip(got, wanted):
            assert b is None or abs(a - b) <= 1.1e-6, (name, a, b)
    case("encode/" + name, f"GET /v1/encode?type={e['type']}&{query}",
         {"encoding": e, "vectors": tensor(rows, dtype)}, 0 if dtype == "float32" else 2.3e-16, None, (), source)


def text(value):
    return json.dumps(value, separators=(",", ":"))


# ---- Fourier --------------------------------------------------------------------------------------------------------

def bands(angles_of, position, include):
    """sin of all axes, cos of all axes, for one frequency after the other: bmild/nerf's embed_fns."""
    x = [mpf(p) for p in position]
    return (x if include else []) + [f(a) for of in angles_of for f in (sin, cos) for a in [of(v) for v in x]]


def nerf():
    for name, with_pi, include, places, wanted in (
            ("pi", True, False, [[.5]], [[1, 0, 0, -1]]), ("code", False, False, [[.5]], [[.479426, .877583, .841471, .540302]]),
            ("input", False, True, [[.25, -3], [2**53 - 1, 1e-9]], None), ("far_pi", True, False, [[-2**53, 3.7]], None)):
        n, count = len(places[0]), 2 if wanted else 10
        c = pi if with_pi else mpf(1)
        e = {"type": "fourier", "features": "nerf", "n_axes": n, "n_frequencies": count, "pi": with_pi, "include_input": include}
        rows = [bands([lambda v, k=k: v * c * 2**k for k in range(count)], p, include) for p in places]
        if with_pi:  # mpmath's pi ends somewhere
            rows = [[mpf(0) if abs(v) < mpf(10)**-50 else v for v in row] for row in rows]
        where = text(places if n > 1 else [p[0] for p in places])
        write("fourier_nerf_" + name, f"features=nerf&n_frequencies={count}&n_axes={n}&pi={text(with_pi)}"
              f"&include_input={text(include)}&positions={where}", e, rows, wanted,
              "bmild/nerf #12: with pi as in the paper, or without as in its code")


def gaussian_features():
    b = [[.5, -1.25], [3, .125], [-2.75, 1e6]]
    places = [[.5, 2], [0, 0], [123456789.25, -.3]]
    full = [[2 * pi * sum(mpf(w) * mpf(x) for w, x in zip(row, p)) for row in b] for p in places]
    e = {"type": "fourier", "features": "gaussian", "n_axes": 2, "include_input": False,
         "b": {"shape": [3, 2], "dtype": "float32"}}
    for order, kinds in (("cos_sin", (cos, sin)), ("sin_cos", (sin, cos))):
        rows = [[mpf(0) if abs(f(a)) < mpf(10)**-50 else f(a) for f in kinds for a in angles] for angles in full]
        write("fourier_gaussian_" + order, f"features=gaussian&n_axes=2&b={text(b)}&order={order}&positions={text(places)}",
              {**e, "order": order}, rows, source="Tancik et al. 2020: cosines of 2 pi B v, then sines")
    sigma, seed, places = 10.0, 5, [[.5, 2], [0, 0], [3, -.25]]  # a double of a normal number may be 1 ulp off
    rows = []
    for p in places:
        angles = [2 * pi * sum(normal(i, a, 0, seed, sigma) * mpf(x) for a, x in enumerate(p))
                  for i in range(4)]
        rows.append([f(a) for f in (cos, sin) for a in angles])
    write("fourier_gaussian_seed", f"features=gaussian&n_axes=2&n_frequencies=4&seed={seed}&sigma=10&positions={text(places)}",
          {"type": "fourier", "features": "gaussian", "n_axes": 2, "n_frequencies": 4, "include_input": False, "seed": seed,
           "sigma": sigma, "order": "cos_sin"}, rows)


def periods():
    times = [0, 6, 1700000000.5, -31.25]
    given = [24, 168, 8766]
    e = {"type": "fourier", "features": "periods", "n_axes": 1, "include_input": False}
    rows = [bands([lambda v, p=p: 2 * pi * v / p for p in given], [t], False) for t in times]
    rows = [[mpf(0) if abs(v) < mpf(10)**-50 else v for v in row] for row in rows]
    write("fourier_periods", f"features=periods&periods=24,168,8766&positions={text(times)}",
          {**e, "periods": [24.0, 168.0, 8766.0]}, rows, source="hours: days, weeks, years")
    low, high, n = mpf(2), mpf(5000), 5
    rows = [bands([lambda v, i=i: 2 * pi * v / (low * (high / low) ** (mpf(i) / (n - 1))) for i in range(n)], [t], False)
            for t in times]
    rows = [[mpf(0) if abs(v) < mpf(10)**-50 else v for v in row] for row in rows]
    write("fourier_geometric", f"features=periods&min_period=2&max_period=5000&n_frequencies=5&positions={text(times)}",
          {**e, "n_frequencies": 5, "min_period": 2.0, "max_period": 5000.0}, rows)


# ---- Time2Vec -------------------------------------------------------------------------------------------------------

def time2vec():
    w, b = [.5, 2, -.75, 1e5], [.25, 0, 3, -1.5]
    times = [0, 1.5, 1700000000.125, -2.0**40]
    for function, linear in (("sin", "first"), ("cos", "last")):
        e = {"type": "time2vec", "w": {"shape": [4], "dtype": "float32"}, "b": {"shape": [4], "dtype": "float32"}, "std": 1.0,
             "function": function, "linear": linear}
        f, at = (sin if function == "sin" else cos), 0 if linear == "first" else 3
        rows = [[mpf(wi) * mpf(t) + mpf(bi) if i == at else f(mpf(wi) * mpf(t) + mpf(bi))
                 for i, (wi, bi) in enumerate(zip(w, b))] for t in times]
        write(f"time2vec_{linear}", f"w={text(w)}&b={text(b)}&function={function}&linear={linear}&positions={text(times)}", e,
              rows, source="Kazemi et al. 2019: linear first and sines; several copies have it last, or cosines")
    e = {"type": "time2vec", "w": {"shape": [1], "dtype": "float64"}, "b": {"shape": [1], "dtype": "float64"}, "std": 1.0,
         "function": "sin", "linear": "first"}
    case("encode/time2vec_tiny", "GET /v1/encode?type=time2vec&w=[3e-303]&b=[0]&positions=[1,-2.5]&dtype=float64",
         {"encoding": e, "vectors": tensor([[3e-303], [float(mpf(3e-303) * mpf(-2.5))]], "float64")}, 0, None, (),
         "a slope near the end of doubles is one all the same")
    seed, times = 9, [0, 1.5, -40]
    w, b = ([normal(c, 0, t, seed, 2.0) for c in range(3)] for t in (0, 1))
    rows = [[w[0] * t + b[0]] + [sin(w[c] * t + b[c]) for c in (1, 2)] for t in map(mpf, times)]
    write("time2vec_seed", f"d_model=3&seed={seed}&std=2&positions={text(times)}",
          {"type": "time2vec", "d_model": 3, "seed": seed, "std": 2.0, "function": "sin", "linear": "first"}, rows)


# ---- Timesteps ------------------------------------------------------------------------------------------------------

def timestep():
    for name, d, shift, flip, scale, base, times, wanted in (
            ("ddpm", 8, 1, False, 1, 10000, [1, 999], [
                [.84147098, .04639922, .00215443, .0001, .54030231, .99892298, .99999768, 1],
                [-.02646075, .68486423, .8356485, .09973392, .99964985, -.7286707, -.54926458, .99501414]]),
            ("dit", 8, 0, True, 1, 10000, [999], [
                [.99964985, .80745866, -.8444697, .54114351, -.02646075, -.58992416, -.53560333, .84093026]]),
            ("odd", 7, 1, False, 1, 10000, [1, 2.5], None), ("scaled", 6, 0, True, 1000, 250, [0, .5, .999], None),
            ("shift_2", 10, 2, False, -1, 10000, [3], None), ("narrow", 3, 1, False, 1, 10000, [7], None)):
        h = d // 2
        omega = [mpf(base) ** (-mpf(i) / (h - shift)) if i else mpf(1) for i in range(h)]
        rows = []
        for t in times:
            s, c = ([f(mpf(t) * scale * o) for o in omega] for f in (sin, cos))
            rows.append((c + s if flip else s + c) + [mpf(0)] * (d % 2))
        query = f"d_model={d}&downscale_freq_shift={shift}&flip_sin_to_cos={text(flip)}&position_scale={scale}&max_period={base}"
        write("timestep_" + name, f"{query}&positions={text(times)}",
              {"type": "timestep", "d_model": d, "downscale_freq_shift": shift, "flip_sin_to_cos": flip,
               "position_scale": float(scale), "max_period": float(base)}, rows, wanted,
              "diffusers get_timestep_embedding" + ("; hojonathanho/diffusion #15" if wanted else ""))


# ---- Sampled positions ----------------------------------------------------------------------------------------------

def draw(seed, i, n):
    top = 2**64 - 1
    end, attempt = top - top % n, 0
    while True:
        words = philox((i & 0xffffffff, i >> 32, attempt, 2), (seed & 0xffffffff, seed >> 32))
        word = int(words[1]) << 32 | int(words[0])
        if word < end:
            return word % n
        attempt += 1


def sample(count, below, seed):
    taken = set()
    for i in range(count):
        j = below - count + i
        r = draw(seed, i, j + 1)
        taken.add(j if r in taken else r)
    return sorted(taken)


def samples():
    for name, count, below, seed in (("short", 5, 20, 3), ("all", 9, 9, 0), ("long", 300, 70000, 2**40 + 1), ("far", 40, 2**53, 1),
                                     ("again", 1, 2**53, 632)):  # whose first word is beyond the last multiple of 2^53
        got = [float(p) for p in sample(count, below, seed)]
        assert len(set(got)) == count and got == sorted(got)
        case("positions/sample_" + name, f"GET /v1/positions?sample=[{count},{below}]&seed={seed}",
             {"positions": tensor(got, "float64")}, source="Floyd's sampling, Bentley and Floyd 1987; Ruoss et al. 2023")
    e = {"type": "timestep", "d_model": 4, "downscale_freq_shift": 1, "flip_sin_to_cos": False, "position_scale": 1.0,
         "max_period": 10000.0}
    at = sample(3, 1000, 0)
    rows = [[f(p * o) for f in (sin, cos) for o in (mpf(1), mpf(1) / 10000)] for p in map(mpf, at)]
    case("encode/sample", "GET /v1/encode?type=timestep&d_model=4&positions.sample=3,1000",
         {"encoding": e, "positions": at, "vectors": tensor(rounded(rows))})


if __name__ == "__main__":
    for cases in (nerf, gaussian_features, periods, time2vec, timestep, samples):
        cases()
