#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Requests with their replies, computed apart from the library: writes the folders of ../cases.

Sinusoids have 50 decimal digits (mpmath) and one rounding at the end; attention and fits are numpy's in float64. Where a
figure was published its name is the first line of the reply, and `published` checks here that it agrees.
Run it in this folder: /usr/bin/python3 make_cases.py. The result is committed. Cases of bad input are not made here.
"""
import json
import os

import numpy as np
from mpmath import cos, mp, mpf, sin

from make_random import value as random_value

mp.dps = 50
F32 = np.float32
N_CASES = 0


def single(x):
    """The nearest float32, as the double that its shortest text reads back to."""
    return float(str(F32(float(x)) if not isinstance(x, F32) else x))


def case(name, request, reply, tolerance=0, body=None, headers=(), source=None):
    global N_CASES
    N_CASES += 1
    folder = os.path.join("..", "cases", name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "request"), "w", encoding="utf-8") as out:
        out.write("\n".join([request, *headers, "", json.dumps(body) if body is not None else ""]).rstrip("\n") + "\n")
        if body is None:
            out.write("\n")
    with open(os.path.join(folder, "reply"), "w", encoding="utf-8") as out:
        if source:
            out.write(f"# {source}\n")
        out.write(f"200 {tolerance:g}\n" if tolerance else "200\n")
        out.write(json.dumps(reply) + "\n")


def tensor(values, dtype="float32"):
    values = np.asarray(values, dtype=float)
    return {"shape": list(values.shape), "dtype": dtype, "data": values.tolist()}


# ---- Encodings ------------------------------------------------------------------------------------------------------

SIN = {"type": "sinusoidal", "d_model": 4, "base": 10000.0, "layout": "interleaved", "order": "sin_cos",
       "denominator": "half", "odd": "truncate", "position_scale": 1.0, "offset": 0.0,
       "arithmetic": "exact"}


# What a learned table says of grids where it is none.
LINE = {"cls_rows": 0, "align_corners": False, "table_scale": 1.0}


def spec(**changes):
    return {**SIN, **changes}


def sinusoid(e, position):
    """One vector in 50 digits, from the definitions of the parameters."""
    d = e["d_model"]
    x = mpf(e["position_scale"]) * mpf(position) + mpf(e["offset"])
    w = d - 1 if e["odd"] == "zero" and d % 2 else d
    if "padding_idx" in e and x == e["padding_idx"]:
        return [mpf(0)] * d
    first, second = (sin, cos) if e["order"] == "sin_cos" else (cos, sin)
    down = w if e["denominator"] == "half" else w - 2
    omega = [mpf(e["base"]) ** (-mpf(2 * i) / down) if i else mpf(1) for i in range((w + 1) // 2)]
    a, b = [first(x * o) for o in omega], [second(x * o) for o in omega[:w // 2]]
    if e["layout"] == "halves":
        out = a + b
    else:
        out = [v for i in range(w) for v in [(a if i % 2 == 0 else b)[i // 2]]]
    return out + [mpf(0)] * (d - w)


def vectors(e, positions, dtype="float32"):
    return [[single(v) if dtype == "float32" else float(v) for v in sinusoid(e, p)] for p in positions]


def encode(name, query, e, positions, dtype="float32", published=None, digits=6, source=None, echo=None, body=None,
           shape=None, tolerance=0):
    rows = vectors(e, positions, dtype)
    for got, wanted in zip(rows, published or []):
        for column, v in wanted.items():
            assert abs(got[column] - v) <= 0.5001 * 10.0 ** -digits + 1e-7 * abs(v), (name, column, got[column], v)
    data = np.asarray(rows)
    if shape:
        data = data.reshape(shape)
    reply = {"encoding": e, "vectors": tensor(data, dtype)}
    if echo is not None:
        reply["positions"] = echo
    if dtype == "float64" and not tolerance:
        tolerance = 1.2e-16  # 1 ulp below 1
    case("encode/" + name, ("POST /v1/encode" if body else "GET /v1/encode?") + query, reply, tolerance, body, (), source)


def columns(*values):
    return dict(enumerate(values))


def encode_cases():
    q = "type=sinusoidal&d_model="
    encode("mlm_tutorial", q + "4&base=100&positions=0:4", spec(base=100.0), range(4), digits=8,
           source="machinelearningmastery.com, positional encoding tutorial: n=100, d=4", published=[
               columns(0, 1, 0, 1), columns(.84147098, .54030231, .09983342, .99500417),
               columns(.90929743, -.41614684, .19866933, .98006658), columns(.14112001, -.9899925, .29552021, .95533649)])
    encode("keras_d6", q + "6&positions=0:4", spec(d_model=6), range(4), digits=6,
           source="keras-hub sine_position_encoding_test.py, d=6", published=[
               columns(0, 1, 0, 1, 0, 1), columns(.841471, .540302, .046399, .998923, .002154, .999998),
               columns(.909297, -.416147, .092699, .995694, .004309, .999991),
               columns(.141120, -.989992, .138798, .990321, .006463, .999979)])
    encode("roformer_halves", q + "6&layout=halves&positions=1:3", spec(d_model=6, layout="halves"), [1, 2], digits=4,
           source="transformers tests/models/roformer, d=6", published=[
               columns(.8415, .0464, .0022, .5403, .9989, 1.0), columns(.9093, .0927, .0043, -.4161, .9957, 1.0)])
    t2t = dict(layout="halves", denominator="half_minus_one", odd="zero")
    encode("tensor2tensor", "encoding=tensor2tensor&d_model=6&positions=1:4", spec(d_model=6, **t2t), [1, 2, 3], digits=6,
           source="tensor2tensor get_timing_signal_1d; also the M2M100 and Speech2Text tests of transformers", published=[
               columns(.841471, .01, .0001, .540302, .99995, 1), columns(.909297, .019999, .0002, -.416147, .9998, 1),
               columns(.141120, .029996, .0003, -.989992, .99955, 1)])
    encode("odd_truncate", "encoding=vaswani&d_model=5&positions=1,2", spec(d_model=5), [1, 2], digits=6,
           source="an odd width by the paper's formula: the last column is a sine", published=[
               columns(.841471, .540302, .025116, .999685, .000631), columns(.909297, -.416147, .050217, .998738, .001262)])
    encode("odd_zero", "encoding=tensor2tensor&d_model=5&positions=1", spec(d_model=5, **t2t), [1], digits=6,
           source="tensor2tensor: one zero column at the end", published=[columns(.841471, .0001, .540302, 1, 0)])
    encode("d1", q + "1&positions=0:3", spec(d_model=1), range(3))
    encode("d2_guard", "encoding=tensor2tensor&d_model=2&positions=1", spec(d_model=2, **t2t), [1],
           source="d=2: tensor2tensor's guard against 0/0", published=[columns(.841471, .540302)])
    encode("d3_zero", "encoding=fairseq&d_model=3&positions=0:4", spec(d_model=3, **t2t, padding_idx=1), range(4))
    encode("d16", q + "16&positions=1,3", spec(d_model=16), [1, 3], digits=6, source="d=16, p=1 and 3", published=[
        columns(.841471, .540302, .310984, .950415, .099833, .995004, .031618, .9995, .01, .99995, .003162, .999995, .001),
        columns(.141120, -.989992, .812649, .582754, .295520, .955336, .094726, .995503)])
    encode("annotated_transformer", q + "20&positions=10,50,99", spec(d_model=20), [10, 50, 99], digits=6,
           source="The Annotated Transformer, the figure of dimensions 4 to 7, d=20", published=[
               {4: .999901, 5: -.014096, 6: .589918, 7: .807463}, {4: .997517, 5: -.070426, 6: -.013194, 7: -.999913},
               {4: .017520, 5: -.999847, 6: -.036699, 7: .999326}])
    encode("marian", "encoding=marian&d_model=512&positions=1:3", spec(d_model=512, **{**t2t, "odd": "reject"}), [1, 2],
           digits=6, source="transformers tests/models/marian, d=512", published=[
               columns(.84147096, .82177866, .80180490, .78165019, .76140374),
               columns(.90929741, .93651021, .95829457, .97505713, .98720258)])
    encode("whisper", "encoding=whisper&d_model=384&positions=1,1499",
           spec(d_model=384, layout="halves", denominator="half_minus_one", odd="reject"), [1, 1499], digits=6,
           source="openai/whisper sinusoids(1500, 384)", published=[
               {0: .841471, 1: .815112, 2: .788312, 192: .540302, 193: .579303, 194: .615275}, {191: .149339}])
    encode("fractional", q + "4&positions=0.5,1.25,2.75,-1", spec(), [.5, 1.25, 2.75, -1], digits=8,
           source="real positions, d=4", published=[
               columns(.47942554, .87758256, .00499998, .99998750), columns(.94898462, .31532236, .01249967, .99992188),
               columns(.38166099, -.92430238, .02749653, .99962190), columns(-.84147098, .54030231, -.00999983, .99995)])
    encode("ddpm", "encoding=ddpm&d_model=8&positions=1,999", spec(d_model=8, **t2t), [1, 999], digits=6,
           source="diffusers get_timestep_embedding, downscale_freq_shift 1, d=8", published=[
               columns(.84147098, .04639922, .00215443, .0001, .54030231, .99892298, .99999768, 1),
               columns(-.02646075, .68486423, .8356485, .09973392, .99964985, -.7286707, -.54926458, .99501414)])
    encode("ddpm_shift_0", q + "8&layout=halves&positions=999", spec(d_model=8, layout="halves"), [999], digits=6,
           source="diffusers get_timestep_embedding, downscale_freq_shift 0, d=8", published=[
               columns(-.02646075, -.58992416, -.53560333, .84093026, .99964985, .80745866, -.8444697, .54114351)])
    encode("dit_cos_first", q + "8&layout=halves&order=cos_sin&positions=999",
           spec(d_model=8, layout="halves", order="cos_sin"), [999])
    far = [1000, 4095, 8191, 16384, 100000, 131071, 1000000, 1000000000, 10000000000]
    far_sin = [.8268795405, -.9978212104, -.7630067894, -.5599384657, .0357487980, -.5752416838, -.3499935022, .5458434494,
               -.4875060251]
    far_cos = [.5623790763, -.0659759966, -.6463904698, -.8285341964, -.9993608074, -.8179834994, .9367521275, .8378871814,
               .8731196227]
    encode("far_float64", q + "2&dtype=float64&positions=" + ",".join(map(str, far)), spec(d_model=2), far, "float64",
           digits=10, source="sin p and cos p at long positions",
           published=[columns(s, c) for s, c in zip(far_sin, far_cos)])
    encode("far_float32", q + "128&positions=9007199254740992,-9007199254740991", spec(d_model=128),
           [2**53, -2**53 + 1])
    encode("float64", q + "10&dtype=float64&positions=0:6", spec(d_model=10), range(6), "float64")
    encode("scale_and_offset", q + "4&position_scale=1000&offset=-0.5&positions=0,0.001,0.25,1",
           spec(position_scale=1000.0, offset=-0.5), [0, .001, .25, 1])
    fairseq = spec(d_model=6, **t2t, padding_idx=1)
    ids = [[2, 3, 4, 1, 1], [1, 1, 2, 3, 4]]
    encode("fairseq_rule", "encoding=fairseq&d_model=6&positions.mask=[[1,1,1,0,0],[0,0,1,1,1]]&positions.rule=fairseq",
           fairseq, sum(ids, []), echo=ids, shape=(2, 5, 6),
           source="fairseq: padding has row 1, which is zero; tokens count from 2")
    encode("fairseq_rule_post", "", fairseq, sum(ids, []), echo=ids, shape=(2, 5, 6), body={
        "encoding": {"type": "sinusoidal", "d_model": 6, **t2t, "padding_idx": 1},
        "positions": {"mask": [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], "rule": "fairseq"}})
    at = {"encoding": {"type": "sinusoidal", "d_model": 4}}
    spellings = {
        "positions_list": ([0, 1, 2.5], [0, 1, 2.5], None, None),
        "positions_batch": ([[0, 1], [5, 6]], [0, 1, 5, 6], (2, 2, 4), None),
        "positions_range": ("5:0:-2", [5, 3, 1], None, None),
        "positions_steps": ({"start": -1, "count": 3, "step": 0.5}, [-1, -.5, 0], None, None),
        "positions_lengths": ({"lengths": [3, 1, 2]}, [0, 1, 2, 0, 0, 1], None, [0, 1, 2, 0, 0, 1]),
        "positions_flat": ({"shape": [2, 2], "data": [0, 1, 5, 6]}, [0, 1, 5, 6], (2, 2, 4), None),
    }
    for name, (given, positions, shape, echo) in spellings.items():
        encode(name, "", spec(), positions, body={**at, "positions": given}, shape=shape, echo=echo)


def exact(name, query, encoding, data, dtype="float32", body=None, source=None, op="encode", tensor_name="vectors", **more):
    request = ("POST" if body else "GET") + f" /v1/{op}" + ("?" if query else "") + query
    case(f"{op}/{name}", request, {"encoding": encoding, tensor_name: tensor(data, dtype), **more}, 0, body, (), source)


def other_encodings():
    naive = {"type": "naive", "d_model": 3, "form": "integer"}
    exact("naive_integer", "type=naive&d_model=3&positions=0,7,-2.5", {**naive, "seq_len": 3},
          [[0] * 3, [7] * 3, [-2.5] * 3])
    exact("naive_normalized", "type=naive&d_model=2&form=normalized&seq_len=3&positions=0:4",
          {"type": "naive", "d_model": 2, "form": "normalized", "seq_len": 3},
          [[single(F32(p) / F32(3))] * 2 for p in range(4)])
    exact("naive_binary", "type=naive&d_model=4&form=binary&positions=7:10",
          {"type": "naive", "d_model": 4, "form": "binary", "seq_len": 3}, [[1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 1]])
    for distribution in ("gaussian", "uniform"):
        rows = [[single(random_value(7, p, c, distribution, .5)) for c in range(5)] for p in (0, 1, -3)]
        exact("random_" + distribution, f"type=random&d_model=5&seed=7&std=0.5&distribution={distribution}&positions=0,1,-3",
              {"type": "random", "d_model": 5, "seed": 7, "distribution": distribution, "std": .5}, rows)
    table = [[p + .25, -p] for p in range(6)]
    learned = {"type": "learned", "table": {"shape": [6, 2], "dtype": "float32"}, "offset": 0, "out_of_range": "error",
               "interpolate": "none", **LINE}
    mask = {"mask": [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]]}
    ids = {"bert": [[0, 1, 2, 3, 4]] * 2, "roberta": [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]],
           "opt": [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]], "gpt2": [[1, 1, 0, 1, 2], [0, 1, 2, 1, 1]]}
    for rule, rows in ids.items():
        exact("learned_" + rule, "", learned, [[table[p] for p in row] for row in rows], positions=rows, body={
            "encoding": {"type": "learned", "table": table}, "positions": {**mask, "rule": rule}},
            source="position ids as transformers makes them: rows of the table")
    exact("learned_offset_2", "type=learned&offset=2&table=" + json.dumps(table, separators=(",", ":")) + "&positions=0:4",
          {**learned, "offset": 2}, table[2:6], source="OPT and BART: plain position 0 is row 2")
    text, once = "1.00000005960464477539062500001", 1 + 2**-23  # just beyond the middle of two floats; as a double the middle
    exact("learned_query_once", f"type=learned&table=[[0.03,{text}]]&table_scale=3&positions=0:1",
          {**learned, "table": {"shape": [1, 2], "dtype": "float32"}, "table_scale": 3.0},
          [[single(3 * float(F32(.03))), single(3 * once)]],
          source="a table in a query is float32, as one in JSON is, each number rounded once")
    for out, ends in (("clamp", (table[0], table[5])), ("zero", ([0, 0], [0, 0]))):
        exact("learned_" + out, "", {**learned, "out_of_range": out}, [ends[0], table[5], ends[1]], body={
            "encoding": {"type": "learned", "table": table, "out_of_range": out}, "positions": [-1, 5, 6]})
    exact("learned_linear", "", {**learned, "interpolate": "linear"}, [[.5, -.25], [3.75, -3.5]], body={
        "encoding": {"type": "learned", "table": table, "interpolate": "linear"}, "positions": [.25, 3.5]})


# ---- apply ----------------------------------------------------------------------------------------------------------

def added(x, scale, pe, dtype=F32):
    """fl(fl(x*scale) + fl(PE))"""
    return (np.asarray(x, dtype) * dtype(scale) + np.asarray(pe, dtype)).astype(dtype)


def apply(name, e, x, scale, pe, real=F32, source=None, more=None, **body):
    out = added(x, scale, pe, real)
    data = np.vectorize(single)(out) if real is F32 else out
    tolerance = 0 if real is F32 else 2e-16
    case("apply/" + name, "POST /v1/apply", {"encoding": e, "embeddings": tensor(data, real.__name__), **(more or {})},
         tolerance, {"embeddings": x, **body}, (), source)


def apply_cases():
    x = [[.5, -1, 2, .25], [1, 0, -.5, 4]]
    e = spec()
    pe = vectors(e, [0, 1])
    apply("example", e, x, 1, pe, encoding={"type": "sinusoidal"}, source="the example of the README")
    apply("by_preset", e, x, 1, pe, encoding="vaswani")
    apply("sqrt_d_model", e, x, 2, pe, encoding="vaswani", embedding_scale="sqrt_d_model",
          source="Vaswani et al. 2017, section 3.4: embeddings times sqrt(d_model)")
    apply("scale", e, x, F32(.1), pe, encoding="vaswani", embedding_scale=.1)
    batch = [x, [[3, 1, 4, 1], [5, 9, 2, 6]]]
    apply("batch", e, batch, 1, [pe, pe], encoding="vaswani")
    apply("batch_positions", e, batch, 1, [pe, vectors(e, [7, 8])], encoding="vaswani", positions=[[0, 1], [7, 8]])
    apply("mask_rule", spec(layout="halves", denominator="half_minus_one", odd="zero", padding_idx=1), batch, 1,
          [vectors(spec(layout="halves", denominator="half_minus_one", odd="zero", padding_idx=1), p)
           for p in ([1, 2], [2, 3])], encoding="fairseq", positions={"mask": [[0, 1], [1, 1]], "rule": "fairseq"},
          more={"positions": [[1, 2], [2, 3]]})
    apply("float64", e, x, 1, [[float(v) for v in sinusoid(e, p)] for p in (0, 1)], np.float64, encoding="vaswani",
          dtype="float64")
    apply("none", {"type": "none"}, x, F32(3), np.zeros((2, 4)), encoding="none", embedding_scale=3)
    apply("learned", {"type": "learned", "table": {"shape": [3, 4], "dtype": "float32"}, "offset": 1, "out_of_range": "error",
                      "interpolate": "none", **LINE}, x, 1, [[5, 6, 7, 8], [9, 10, 11, 12]],
          encoding={"type": "learned", "table": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], "offset": 1})
    flat = added(x, 1, pe).ravel()
    reply = {"shape": [2, 4], "dtype": "float32", "data": [single(v) for v in flat]}
    case("apply/flat", "POST /v1/apply?flat=1", {"encoding": e, "embeddings": reply}, 0,
         {"encoding": "vaswani", "embeddings": {"shape": [2, 4], "data": sum(x, [])}})


if __name__ == "__main__":
    for cases in (encode_cases, other_encodings, apply_cases):
        cases()
