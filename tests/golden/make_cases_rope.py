#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of rotary encodings, after those of make_cases.py; see there. Angles are those of make_rope.py, in 150
digits; products and attention are numpy's in float64.
Run it in this folder: /usr/bin/python3 make_cases_rope.py. The result is committed.
"""
import numpy as np

import make_cases
from make_cases import case, single, tensor
from make_rope import model, rope, values

EXACT, DOUBLE, SINGLE = 1e-15, 1e-13, 1e-6


def echo(given, c):
    """The encoding as a reply tells it: with what was given, and all defaults."""
    out = {"type": "rope", "base": float(c["base"]), "rotary_dim": c["d"], "direction": "counterclockwise",
           "arithmetic": "exact", **given}
    if "sections" in given:
        out.setdefault("section_layout", "contiguous")
    if given.get("scaling", {}).get("rope_type") == "yarn":
        out["scaling"] = {"beta_fast": 32, "beta_slow": 1, "truncate": True, **given["scaling"]}
    if "rope_axes" in given:
        out["rope_axes"] = {"n_axes": 2, "coordinates": "positions", **given["rope_axes"]}
    if "xpos" in given:
        out["xpos"] = {"scale_base": 512, "center": 0, **given["xpos"]}
    return out


def told(facts):
    """What a reply tells beside its tensors."""
    out = {name: float(v) for name, v in facts.items() if name != "correction_range"}
    if "correction_range" in facts:
        out["correction_range"] = [float(v) for v in facts["correction_range"]]
    return out


def angles(c, positions, keys=False):
    """cos, sin [T, pairs] as mpmath numbers, and what stands beside them."""
    inv, facts = model(c)
    rows = [values(c, inv, facts, p, keys) for p in positions]
    return [row[0::2] for row in rows], [row[1::2] for row in rows], inv, facts


def columns(c):
    """The two columns of each pair."""
    n = c["d"] // 2
    return [(i, i + n) if c["layout"] == "halves" else (2 * i, 2 * i + 1) for i in range(n)]


def turn(c, x, positions, keys=False):
    """x [T, D], turned in float64."""
    cos, sin, _, _ = angles(c, positions, keys)
    out = np.array(x, float)
    for t, row in enumerate(np.asarray(x, float)):
        for (a, b), k, s in zip(columns(c), map(float, cos[t]), map(float, sin[t])):
            out[t, a], out[t, b] = row[a] * k - row[b] * s, row[b] * k + row[a] * s
    return out


def rounded(rows, dtype):
    return [[single(v) if dtype == "float32" else float(v) for v in row] for row in rows]


# ---- encode ----------------------------------------------------------------------------------------------------------

def encode(name, request, positions, given, form="half", dtype="float32", body=None, source=None, keys=False, wanted=None):
    _, c, _ = rope(positions, **given)
    cos, sin, inv, facts = angles(c, positions, keys)
    tables = {"cos": cos, "sin": sin}
    if form == "full":
        spread = lambda rows: [[row[i] for k in range(c["d"]) for i, pair in enumerate(columns(c)) if k in pair] for row in rows]
        tables = {"cos": spread(cos), "sin": spread(sin)}
    elif form == "packed":
        tables = {"packed": [a + b for a, b in zip(cos, sin)]}
    reply = {n: tensor(rounded(rows, dtype), dtype) for n, rows in tables.items()}
    if form == "complex":
        pairs = [[list(pair) for pair in zip(a, b)] for a, b in zip(cos, sin)]
        reply = {"complex": tensor([rounded(row, dtype) for row in pairs], dtype)}
    reply["inv_freq"] = rounded([inv], dtype)[0] if form in ("packed", "complex") else tensor(rounded([inv], dtype)[0], dtype)
    reply = {n: v for n, v in reply.items() if not wanted or n in wanted}
    case("encode/rope_" + name, request, {"encoding": echo(given, c), **told(facts), **reply}, EXACT, body, (), source)


def encode_cases():
    q = "GET /v1/encode?type=rope&"
    encode("halves", q + "layout=halves&head_dim=8&positions=0:3", [0, 1, 2], {"head_dim": 8, "layout": "halves"})
    encode("far_float64", q + "layout=interleaved&head_dim=8&base=500000&positions=131071,-3,2.5&dtype=float64",
           [131071, -3, 2.5], {"head_dim": 8, "layout": "interleaved", "base": 500000.0}, dtype="float64")
    for form in ("full", "packed", "complex"):
        encode(form, q + f"layout=interleaved&head_dim=6&rotary_dim=4&positions=1,3&trig_form={form}", [1, 3],
               {"head_dim": 6, "rotary_dim": 4, "layout": "interleaved"}, form)
    encode("full_halves", q + "layout=halves&head_dim=4&positions=1&trig_form=full", [1], {"head_dim": 4, "layout": "halves"},
           "full")
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    dotted = "scaling.rope_type=yarn&scaling.factor=4&scaling.original_max_position_embeddings=512"
    given = {"head_dim": 16, "layout": "halves", "scaling": yarn}
    encode("yarn", q + f"layout=halves&head_dim=16&positions=100&{dotted}", [100], given,
           source="YaRN, Peng et al. 2023: a scaling in a query is dotted")
    encode("yarn_post", "POST /v1/encode", [100], given, body={
        "encoding": {"type": "rope", "layout": "halves", "head_dim": 16, "rope_scaling": {"type": "yarn", **{
            k: v for k, v in yarn.items() if k != "rope_type"}}}, "positions": [100]},
           source="rope_scaling and type are what configurations call scaling and rope_type")
    encode("return", q + f"layout=halves&head_dim=16&positions=100&return=inv_freq&{dotted}", [100], given, wanted=["inv_freq"])
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 128}
    encode("llama3", q + "layout=halves&head_dim=16&positions=7&" + "&".join(f"scaling.{k}={v}" for k, v in llama3.items()),
           [7], {"head_dim": 16, "layout": "halves", "scaling": llama3}, source="Llama 3.1's bands")
    longrope = {"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 64,
                "short_factor": [1.0, 1.05], "long_factor": [1.5, 3.0]}
    encode("longrope", q + "layout=halves&head_dim=4&seq_len=65&positions=7&scaling.rope_type=longrope&scaling.factor=4&"
           "scaling.original_max_position_embeddings=64&scaling.short_factor=1,1.05&scaling.long_factor=1.5,3", [7],
           {"head_dim": 4, "layout": "halves", "seq_len": 65, "scaling": longrope})
    encode("sections", "POST /v1/encode", [[5, 7, 11], [6, 7, 12]], {"head_dim": 16, "layout": "halves", "sections": [2, 3, 3]},
           body={"encoding": {"type": "rope", "layout": "halves", "head_dim": 16, "mrope_section": [2, 3, 3]},
                 "positions": [[5, 7, 11], [6, 7, 12]]}, source="M-RoPE: rows of t, h and w")
    encode("sections_text", q + "layout=halves&head_dim=16&sections=4,2,2&section_layout=interleaved&positions=0:2", [0, 1],
           {"head_dim": 16, "layout": "halves", "sections": [4, 2, 2], "section_layout": "interleaved"},
           source="M-RoPE: one coordinate stands for t, h and w")
    axes = {"frequencies": "period", "coordinates": "centered", "grid": [2, 2]}
    _, c, _ = rope([[0, 0]], head_dim=8, layout="halves", base=100.0, rope_axes={"n_axes": 2, **axes})
    points = [[0, 0], [0, 1], [1, 0], [1, 1]]
    cos, sin, inv, facts = angles(c, points)
    given = {"head_dim": 8, "layout": "halves", "base": 100.0, "rope_axes": axes}
    reply = {"cos": tensor(rounded(cos, "float32")), "sin": tensor(rounded(sin, "float32")),
             "inv_freq": tensor(rounded([inv], "float32")[0]), "positions": points}
    beside = {"attention_factor": 1, "base_used": 100, "softmax_scale": 8 ** -.5}
    case("encode/rope_dinov3", "POST /v1/encode", {"encoding": echo(given, c), **beside, **reply}, EXACT,
         {"encoding": {"type": "rope", "layout": "halves", "head_dim": 8, "base": 100, "rope_axes": axes},
          "positions": {"grid": [2, 2]}}, (), "DINOv3: patches between -1 and 1, periods from 1 to 10")
    for role in ("query", "key"):
        encode("xpos_" + role, q + f"layout=interleaved&head_dim=4&xpos.scale_base=512&positions=100&role={role}", [100],
               {"head_dim": 4, "layout": "interleaved", "xpos": {"scale_base": 512.0}}, keys=role == "key")


# ---- apply, shift, attention -------------------------------------------------------------------------------------------

def apply_case(name, x, given, positions, y, source=None, dtype="float64", tolerance=DOUBLE, **more):
    """`given` without head_dim, which follows from x."""
    width = np.asarray(x).shape[-1]
    _, c, _ = rope([0], head_dim=width, **given)
    _, facts = model(c)
    body = {"encoding": {"type": "rope", **given}, "embeddings": np.asarray(x).tolist(), "dtype": dtype, **more}
    if positions is not None:
        body["positions"] = positions
    case("apply/rope_" + name, "POST /v1/apply", {"encoding": echo({"head_dim": width, **given}, c), **told(facts),
                                                  "embeddings": tensor(y, dtype)}, tolerance, body, (), source)


def numbers(seed, *dims):
    return np.round(np.random.default_rng(seed).normal(size=dims) * 8) / 8


def apply_cases():
    for layout, wanted in (("halves", [-1.984111, 1.959901, 2.462378, 4.019800]),
                           ("interleaved", [-1.14264, 1.922076, 2.959851, 4.0298])):
        x = [[1, 2, 3, 4]]
        _, c, _ = rope([1], head_dim=4, layout=layout)
        y = turn(c, x, [1])
        assert np.allclose(y[0], wanted, atol=1e-5)
        apply_case(layout, x, {"layout": layout}, [1], y, "the two layouts, published in many reports")
    x = numbers(1, 2, 3, 2, 6)
    given = {"layout": "halves", "rotary_dim": 4}
    _, c, _ = rope([0], head_dim=6, **given)
    y = np.stack([np.stack([turn(c, x[b, :, h], range(3)) for h in range(2)], 1) for b in range(2)])
    apply_case("bthd", x, given, None, y, axes="bthd")
    apply_case("bhtd", x.transpose(0, 2, 1, 3), given, None, y.transpose(0, 2, 1, 3), axes="bhtd")
    apply_case("inverse", y, given, None, x, "what was turned, turned back", axes="bthd", inverse=True)
    axes = {"frequencies": "shared"}
    x = numbers(2, 2, 3, 8)
    _, c, _ = rope([[0, 0]], head_dim=8, layout="interleaved", rope_axes={"n_axes": 2, **axes})
    y = turn(c, x.reshape(6, 8), [[h, w] for h in range(2) for w in range(3)]).reshape(2, 3, 8)
    width = {"attention_factor": 1, "base_used": 10000, "softmax_scale": 8 ** -.5}
    given = {"head_dim": 8, "layout": "interleaved", "rope_axes": axes}
    case("apply/rope_image", "POST /v1/apply", {"encoding": echo(given, c), **width, "embeddings": tensor(y, "float64")},
         DOUBLE, {"encoding": {"type": "rope", "layout": "interleaved", "rope_axes": axes}, "embeddings": x.tolist(),
                  "axes": "hwd", "dtype": "float64"}, (), "Pixtral: rows and columns of an image are its positions")
    x = numbers(3, 2, 4)
    _, c, _ = rope([0], head_dim=4, layout="halves", xpos={"scale_base": 64.0})
    apply_case("xpos_key", x, {"layout": "halves", "xpos": {"scale_base": 64.0}}, [3, 70], turn(c, x, [3, 70], True),
               role="key")
    x = numbers(4, 1, 4)
    _, c, _ = rope([0], head_dim=4, layout="halves")
    y = [[single(v) for v in turn(c, x, [4095])[0]]]
    apply_case("float32", x, {"layout": "halves"}, [4095], y, "turned in float64 and rounded once", "float32", EXACT)


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention_cases():
    q, k = numbers(5, 4, 2, 4), numbers(6, 2, 5, 4)
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 0.5}
    for name, given, more, of_q, of_k in (
            ("default", {"layout": "halves"}, {}, [3, 4], range(5)),
            ("yarn", {"layout": "interleaved", "scaling": yarn}, {"query_positions": [70, 71], "key_positions": "67:72"},
             [70, 71], range(67, 72)),
            ("sections", {"layout": "halves", "sections": [1, 1]},
             {"query_positions": [[3, 1], [4, 2]], "key_positions": [[i, 2 * i] for i in range(5)]}, [[3, 1], [4, 2]],
             [[i, 2 * i] for i in range(5)])):
        _, c, _ = rope([0], head_dim=4, **given)
        _, facts = model(c)
        scale = float(facts["softmax_scale"])
        logits = np.stack([turn(c, q[h], of_q) @ turn(c, k[h // 2], of_k, True).T for h in range(4)]) * scale
        content = np.stack([q[h] @ k[h // 2].T for h in range(4)]) * scale
        reply = {"weights": softmax(logits), "logits": logits, "content": content, "position": logits - content}
        case("attention/rope_" + name, "POST /v1/attention?dtype=float64",
             {"encoding": echo({"head_dim": 4, **given}, c), **told(facts),
              **{n: tensor(v, "float64") for n, v in reply.items()}}, DOUBLE,
             {"encoding": {"type": "rope", **given}, "q": q.tolist(), "k": k.tolist(), "return": list(reply), **more}, (),
             "4 query heads share 2 key heads; queries are the last tokens" if name == "default" else None)


def shift_cases():
    for layout in ("halves", "interleaved"):
        given = {"head_dim": 4, "layout": layout}
        _, c, _ = rope([0], **given)
        cos, sin, _, _ = angles(c, [7])
        blocks = [[[float(a), float(-b)], [float(b), float(a)]] for a, b in zip(cos[0], sin[0])]
        case("shift/rope_" + layout, f"GET /v1/shift?type=rope&layout={layout}&head_dim=4&distance=7",
             {"encoding": echo(given, c), "blocks": tensor(blocks, "float64"), "exact": True, "residual": 0, "rms": 0}, 1e-12,
             source="a pair as a point on its circle (cos, sin), 7 positions on")


def main():
    for cases in (encode_cases, apply_cases, attention_cases, shift_cases):
        cases()
    print(f"{make_cases.N_CASES} cases")


if __name__ == "__main__":
    main()
