#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cases of whole blocks, computed by torch in float64: ../cases/block.

`forward` is the block from its definition (Vaswani et al. 2017, section 3.1; Xiong et al. 2020; GPT-2), in plain torch.
Where torch has the same as a module, TransformerEncoder, it is held against that here, and so is its GELU.
Weights are multiples of 1/64, so that float32 takes them as they are.
Run it in this folder: /usr/bin/python3 make_block.py. The result is committed.
"""
import math

import numpy as np
import torch
from torch.nn import functional as F

from make_alibi import press
from make_cases import LINE, case, spec, tensor, vectors
from make_cases_rope import angles, columns, echo as rope_echo, told
from make_random import WORD, of_words, philox
from make_rope import model, rope

torch.set_default_dtype(torch.float64)
SINGLE, DOUBLE = 1e-5, 1e-10
D, HEADS, D_FF, T = 8, 2, 12, 5
EPS = 1e-5
ACTIVATIONS = {"relu": torch.relu, "gelu": lambda x: x / 2 * (1 + torch.erf(x / math.sqrt(2))),
               "gelu_tanh": lambda x: x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}


# ---- Weights --------------------------------------------------------------------------------------------------------

def numbers(rng, *dims, size=0.4, about=0.0):
    return torch.from_numpy(np.round((about + size * rng.normal(size=dims)) * 64) / 64)


def layer(rng, d=D, d_ff=D_FF):
    """One layer by the names of torch's TransformerEncoderLayer."""
    shapes = {"self_attn.in_proj_weight": (3 * d, d), "self_attn.in_proj_bias": (3 * d,),
              "self_attn.out_proj.weight": (d, d), "self_attn.out_proj.bias": (d,), "linear1.weight": (d_ff, d),
              "linear1.bias": (d_ff,), "linear2.weight": (d, d_ff), "linear2.bias": (d,)}
    out = {name: numbers(rng, *dims) for name, dims in shapes.items()}
    for norm in ("norm1", "norm2"):
        out[norm + ".weight"], out[norm + ".bias"] = numbers(rng, d, about=1), numbers(rng, d)
    return out


GPT2 = {"norm1": "ln_1", "self_attn.in_proj_": "attn.c_attn.", "self_attn.out_proj": "attn.c_proj", "norm2": "ln_2",
        "linear1": "mlp.c_fc", "linear2": "mlp.c_proj"}


def as_gpt2(weights, prefix, kernels=True):
    """The same under GPT-2's names, with kernels [in, out], or with the weights [out, in] of nanoGPT."""
    out = {}
    for name, w in weights.items():
        for of_torch, of_gpt2 in GPT2.items():
            if name.startswith(of_torch):
                out[prefix + of_gpt2 + name[len(of_torch):]] = w.T.contiguous() if kernels and w.dim() == 2 else w
    return out


def without_biases(weights):
    """As posted by a model made with bias=False, and as computed."""
    posted = {name: w for name, w in weights.items() if not name.endswith("bias")}
    return posted, {name: w if name in posted else torch.zeros_like(w) for name, w in weights.items()}


def prefixed(layers, prefix):
    return {f"{prefix}{i}.{name}": w for i, one in enumerate(layers) for name, w in one.items()}


# ---- The block ------------------------------------------------------------------------------------------------------

def norm(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + EPS) * weight + bias


def attention(h, w, seen, bias, turned, heads):
    b, t, d = h.shape
    qkv = h @ w["self_attn.in_proj_weight"].T + w["self_attn.in_proj_bias"]
    q, k, v = (part.reshape(b, t, heads, d // heads).transpose(1, 2) for part in qkv.split(d, -1))
    logits = turned(q) @ turned(k).transpose(-1, -2) / math.sqrt(d // heads) + bias
    weights = torch.softmax(logits.masked_fill(~seen, -math.inf), -1)
    mixed = (weights @ v).transpose(1, 2).reshape(b, t, d)
    return weights, mixed @ w["self_attn.out_proj.weight"].T + w["self_attn.out_proj.bias"]


def forward(x, layers, place, activation, seen, final=None, bias=0.0, turned=lambda x: x, residual=True, heads=HEADS):
    """weights [L, B, H, T, T], output [B, T, D], residual [L+1, B, T, D]."""
    f, weights, stream = ACTIVATIONS[activation], [], [x]
    keep = 1.0 if residual else 0.0
    for w in layers:
        norms = [lambda x, i=i: norm(x, w[f"norm{i}.weight"], w[f"norm{i}.bias"]) for i in (1, 2)]
        before, after = [[n if place == p else lambda x: x for n in norms] for p in ("pre", "post")]
        one, y = attention(before[0](x), w, seen, bias, turned, heads)
        x = after[0](keep * x + y)
        up = f(before[1](x) @ w["linear1.weight"].T + w["linear1.bias"])
        x = after[1](keep * x + up @ w["linear2.weight"].T + w["linear2.bias"])
        weights.append(one)
        stream.append(x)
    output = norm(x, final["weight"], final["bias"]) if final else x
    return {"weights": torch.stack(weights), "output": output, "residual": torch.stack(stream)}


def hold_against_torch(x, layers, place, activation, seen, final, got):
    """torch.nn.TransformerEncoder with these weights has the same output."""
    f = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}[activation]
    one = torch.nn.TransformerEncoderLayer(D, HEADS, D_FF, 0, f, EPS, batch_first=True, norm_first=place == "pre")
    encoder = torch.nn.TransformerEncoder(one, len(layers), torch.nn.LayerNorm(D, EPS) if final else None)
    state = prefixed(layers, "layers.")
    if final:
        state.update({"norm." + name: w for name, w in final.items()})
    encoder.load_state_dict(state)
    mask = (~seen).expand(x.shape[0], HEADS, T, T).reshape(-1, T, T)
    wanted = encoder(x, mask=mask)
    assert wanted.requires_grad  # so that it took the path that is written in Python
    assert torch.allclose(wanted, got["output"], rtol=0, atol=1e-12), (place, activation)


# ---- Cases ----------------------------------------------------------------------------------------------------------

FACTS = {"naming": "torch", "norm": "post", "activation": "relu", "layers": 1, "heads": HEADS, "width": D, "d_ff": D_FF,
         "residual": True, "final_norm": False, "bias": True, "causal": False, "norm_eps": EPS}


def block(name, got, body, weights, facts, dtype="float32", encoding=None, more=None, ignored=(), batched=False, source=None):
    tolerance = SINGLE if dtype == "float32" else DOUBLE
    if not batched:
        got = {n: v.squeeze(1 if n != "output" else 0) for n, v in got.items()}
    reply = {"encoding": encoding} if encoding else {}
    reply.update(more or {}, block={**FACTS, **facts})
    reply.update(used=[n for n in weights if n not in ignored], ignored=[n for n in weights if n in ignored])
    reply.update({n: tensor(v.numpy(), dtype) for n, v in got.items()})
    body = {"dtype": dtype, "heads": HEADS, **body, "weights": {n: w.tolist() for n, w in weights.items()}}
    case("block/" + name, "POST /v1/block", reply, tolerance, body, (), source)


ALL = torch.ones(T, T, dtype=torch.bool)
CAUSAL = torch.tril(ALL)


def sines():
    return torch.tensor(vectors(spec(d_model=D), range(T), "float64"))


def torch_cases():
    rng = np.random.default_rng(1)
    x, y = numbers(rng, 2, T, D, size=1), numbers(rng, 1, T, D, size=1)
    final = {"weight": numbers(rng, D, about=1), "bias": numbers(rng, D)}
    lengths = torch.arange(T)[None, None, None, :] < torch.tensor([3, 5])[:, None, None, None]
    layers = [layer(rng) for _ in range(3)]

    def both(name, x, n, place, activation, seen, body, weights, final=None, added=None, **more):
        got = forward(x if added is None else x + added, layers[:n], place, activation, seen, final)
        hold_against_torch(x if added is None else x + added, layers[:n], place, activation, seen, final, got)
        facts = {"norm": place, "activation": activation, "layers": n, "final_norm": final is not None,
                 "causal": body.get("mask") == "causal"}
        block(name, got, {"embeddings": (x if more.get("batched") else x[0]).tolist(), **body}, weights, facts, **more)

    sinusoidal = dict(encoding=spec(d_model=D), added=sines())
    for name, scale in (("scale_sqrt_d_model", "sqrt_d_model"), ("scale_number", 0.375)):
        factor = math.sqrt(D) if scale == "sqrt_d_model" else scale
        got = forward(y * factor + sines(), layers[:1], "post", "relu", ALL)
        block(name, got, {"embeddings": y[0].tolist(), "embedding_scale": scale, "encoding": {"type": "sinusoidal"}}, layers[0],
              {}, "float64", sinusoidal["encoding"], source="x = embeddings*scale + PE (Vaswani et al. 2017, section 3.4)")
    posted, computed = without_biases(layers[0])
    got = forward(y, [computed], "pre", "gelu", ALL)
    hold_against_torch(y, [computed], "pre", "gelu", ALL, None, got)
    block("torch_without_biases", got, {"embeddings": y[0].tolist(), "norm": "pre", "activation": "gelu"}, posted,
          {"norm": "pre", "activation": "gelu", "bias": False}, source="TransformerEncoderLayer(bias=False), as with biases of zeros")
    both("post_relu", y, 1, "post", "relu", ALL, {}, layers[0], source="torch.nn.TransformerEncoderLayer")
    both("post_relu_causal", x, 2, "post", "relu", CAUSAL, {"mask": "causal", "encoding": {"type": "sinusoidal"}},
         prefixed(layers[:2], "layers."), batched=True, source="torch.nn.TransformerEncoder", **sinusoidal)
    both("pre_gelu_lengths", x, 3, "pre", "gelu", lengths, {"norm": "pre", "activation": "gelu", "mask": {"lengths": [3, 5]}},
         {**prefixed(layers, "encoder.layers."), **{"encoder.norm." + n: w for n, w in final.items()}}, final,
         dtype="float64", batched=True, source="torch.nn.TransformerEncoder with a final norm, a batch with padding")
    both("pre_gelu_tanh_keep", y, 1, "pre", "gelu_tanh", ALL & (torch.arange(T) != 1),
         {"norm": "pre", "activation": "gelu_tanh", "mask": {"keep": [1, 0, 1, 1, 1]}, "encoding": {"type": "sinusoidal"}},
         prefixed(layers[:1], "layers."), dtype="float64", **sinusoidal)
    both("post_gelu", y, 1, "post", "gelu", ALL, {"activation": "gelu"}, layers[0])
    for name, place, residual in (("no_norm", "none", True), ("no_residual", "pre", False), ("post_no_residual", "post", False)):
        got = forward(y, layers[:1], place, "relu", ALL, residual=residual)
        block(name, got, {"embeddings": y[0].tolist(), "norm": place, "residual": residual}, layers[0],
              {"norm": place, "residual": residual}, "float64",
              ignored=[n for n in layers[0] if place == "none" and n.startswith("norm")])


def inner_cases():
    """Encodings that act inside of attention, in every layer."""
    rng = np.random.default_rng(2)
    x, layers = numbers(rng, 1, T, D, size=1), [layer(rng) for _ in range(2)]
    weights = prefixed(layers, "layers.")
    facts = {"norm": "pre", "activation": "gelu", "layers": 2, "causal": True}
    body = {"embeddings": x[0].tolist(), "norm": "pre", "activation": "gelu", "mask": "causal"}
    for layout, dtype in (("halves", "float32"), ("interleaved", "float64")):
        _, c, _ = rope([0], head_dim=D // HEADS, layout=layout)
        cosines, sine, _, _ = angles(c, range(T))
        cosines, sine = (torch.tensor([[float(v) for v in row] for row in rows]) for rows in (cosines, sine))
        a, b = (list(half) for half in zip(*columns(c)))

        def turned(q):
            out = q.clone()
            out[..., a], out[..., b] = q[..., a] * cosines - q[..., b] * sine, q[..., b] * cosines + q[..., a] * sine
            return out

        got = forward(x, layers, "pre", "gelu", CAUSAL, turned=turned)
        block("rope_" + layout, got, {**body, "encoding": {"type": "rope", "layout": layout}}, weights, facts, dtype,
              rope_echo({"head_dim": D // HEADS, "layout": layout}, c), told(model(c)[1]))
    slopes = torch.tensor([2.0 ** (-8 * float(m)) for m in press(HEADS)])
    distance = torch.arange(T)[:, None] - torch.arange(T)[None, :]
    got = forward(x, layers, "pre", "gelu", CAUSAL, bias=-slopes[:, None, None] * distance.abs())
    alibi = {"type": "alibi", "rule": "press", "form": "symmetric", "bias_max": 8.0}
    for dtype in ("float32", "float64"):
        block("alibi_" + dtype, got, {**body, "encoding": {"type": "alibi"}}, weights, facts, dtype, alibi)


def gpt2_cases():
    """GPT-2 from its definition: x = wte + wpe, pre-norm, gelu_tanh, causal, a final norm."""
    rng = np.random.default_rng(3)
    layers = [layer(rng) for _ in range(2)]
    wpe, wte, x = numbers(rng, T + 2, D), numbers(rng, 4, D), numbers(rng, 1, T, D, size=1)
    final = {"weight": numbers(rng, D, about=1), "bias": numbers(rng, D)}
    facts = {"naming": "gpt2", "norm": "pre", "activation": "gelu_tanh", "layers": 2, "final_norm": True, "causal": True}
    learned = {"type": "learned", "offset": 0, "out_of_range": "error", "interpolate": "none", **LINE}
    body = {"naming": "gpt2", "embeddings": x[0].tolist()}

    def state(prefix, layers):
        weights = {prefix + "wte.weight": wte, prefix + "wpe.weight": wpe}
        for i, one in enumerate(layers):
            weights.update(as_gpt2(one, f"{prefix}h.{i}."))
            weights[f"{prefix}h.{i}.attn.bias"] = torch.tril(torch.ones(1, 1, T, T))
        return {**weights, **{prefix + "ln_f." + n: w for n, w in final.items()}}

    def unused(weights, table):
        return [n for n in weights if n.endswith(("wte.weight", ".attn.bias")) or (not table and n.endswith("wpe.weight"))]

    def echo(dtype):
        return {**learned, "table": {"shape": list(wpe.shape), "dtype": dtype}}

    got = forward(x + wpe[:T], layers, "pre", "gelu_tanh", CAUSAL, final)
    for name, dtype, prefix, encoding in (("gpt2", "float32", "", None), ("gpt2_model", "float64", "transformer.", None),
                                          ("gpt2_learned", "float64", "", {"type": "learned"})):
        weights = state(prefix, layers)
        block(name, got, {**body, **({"encoding": encoding} if encoding else {})}, weights, facts, dtype, echo(dtype),
              ignored=unused(weights, True), source="GPT-2 from its definition; wpe among its weights is its encoding")
    weights = state("", layers)
    got = forward(x, layers, "pre", "gelu_tanh", CAUSAL, final)
    block("gpt2_without_positions", got, {**body, "encoding": "none"}, weights, facts, "float64", {"type": "none"},
          ignored=unused(weights, False), source="an encoding that is said stands in the place of wpe")
    table = numbers(rng, T, D)
    got = forward(x + table, layers, "pre", "gelu_tanh", CAUSAL, final)
    block("gpt2_other_table", got, {**body, "encoding": {"type": "learned", "table": table.tolist()}}, weights, facts,
          "float64", {**learned, "table": {"shape": [T, D], "dtype": "float64"}}, ignored=unused(weights, False))
    got = forward(x + wpe[1:T + 1], layers[:1], "pre", "gelu", ALL)
    block("gpt2_options", got, {**body, "layers": 1, "activation": "gelu", "mask": {"causal": False}, "final_norm": False,
                                "positions": "1:6"}, weights,
          {**facts, "layers": 1, "activation": "gelu", "causal": False, "final_norm": False}, "float64", echo("float64"),
          ignored=unused(weights, True) + [n for n in weights if n.startswith(("h.1.", "ln_f."))],
          source="the first layer alone, each default undone")


def nanogpt_cases():
    """GPTs with torch's Linear: the names of GPT-2, weights [out, in], an exact GELU, tokens by their numbers."""
    rng = np.random.default_rng(4)
    wte, wpe = numbers(rng, 6, D, size=1), numbers(rng, T + 1, D)
    final = {"weight": numbers(rng, D, about=1), "bias": numbers(rng, D)}
    layers = [layer(rng) for _ in range(2)]
    ids = [[3, 0, 5, 3, 1], [2, 2, 4, 0, 0]]
    facts = {"naming": "nanogpt", "norm": "pre", "activation": "gelu", "layers": 2, "final_norm": True, "causal": True}
    learned = {"type": "learned", "offset": 0, "out_of_range": "error", "interpolate": "none", **LINE}

    def state(layers, final, prefix, kernels=False):
        weights = {prefix + "transformer.wte.weight": wte, prefix + "transformer.wpe.weight": wpe}
        for i, one in enumerate(layers):
            weights.update(as_gpt2(one, f"{prefix}transformer.h.{i}.", kernels))
            weights[f"{prefix}transformer.h.{i}.attn.bias"] = torch.tril(torch.ones(1, 1, T, T))
        weights.update({prefix + "transformer.ln_f." + n: w for n, w in final.items()})
        return {**weights, prefix + "lm_head.weight": wte}

    def run(name, layers, final, posted, prefix, body, dtype, more, kernels=False):
        chosen = torch.tensor(body["token_ids"])
        x = wte[chosen if chosen.dim() == 2 else chosen[None]] + wpe[:T]
        got = forward(x, layers, "pre", more["activation"], CAUSAL, final)
        hold_against_torch(x, layers, "pre", more["activation"], CAUSAL, final, got)
        weights = state(*posted, prefix, kernels)
        echo = {**learned, "table": {"shape": list(wpe.shape), "dtype": dtype}}
        block(name, got, body, weights, {**facts, **more}, dtype, echo, batched=chosen.dim() == 2,
              ignored=[n for n in weights if n.endswith((".attn.bias", "lm_head.weight"))], source="nanoGPT from its definition")

    exact = {"activation": "gelu"}
    run("nanogpt", layers, final, (layers, final), "", {"naming": "nanogpt", "token_ids": ids}, "float64", exact)
    run("nanogpt_compiled", layers, final, (layers, final), "_orig_mod.", {"naming": "nanogpt", "token_ids": ids[0]}, "float32",
        exact)
    posted, computed = zip(*(without_biases(one) for one in layers))
    run("nanogpt_without_biases", computed, {**final, "bias": torch.zeros(D)}, (posted, {"weight": final["weight"]}), "",
        {"naming": "nanogpt", "token_ids": ids[1]}, "float32", {**exact, "bias": False})
    run("mingpt", layers, final, (layers, final), "module.", {"naming": "nanogpt", "token_ids": ids[0], "activation": "gelu_tanh"},
        "float64", {"activation": "gelu_tanh"})
    run("gpt2_token_ids", layers, final, (layers, final), "", {"naming": "gpt2", "token_ids": ids}, "float32",
        {"naming": "gpt2", "activation": "gelu_tanh"}, kernels=True)


# ---- Seeds ----------------------------------------------------------------------------------------------------------

def normal(seed, counter, std=1.0):
    return float(of_words(philox(counter, [seed & WORD, seed >> 32]), "gaussian", std))


def token(text, seed, width):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % 2 ** 64
    return [normal(seed, [h & WORD, h >> 32, c, 1]) for c in range(width)]


def seeded(seed, index, d, d_ff, std=None):
    """A layer of seeded weights: normal numbers, biases 0, norms 1 and 0."""
    out = {}
    for m, (name, rows, cols, fan) in enumerate((
            ("self_attn.in_proj_", 3 * d, d, 2 * d), ("self_attn.out_proj.", d, d, 2 * d),
            ("linear1.", d_ff, d, d + d_ff), ("linear2.", d, d_ff, d + d_ff))):
        size = std or math.sqrt(2 / fan)
        w = [normal(seed, [i, 0, 4 * index + m, 2], size) for i in range(rows * cols)]
        out[name + "weight"], out[name + "bias"] = torch.tensor(w).reshape(rows, cols), torch.zeros(rows)
    for i in (1, 2):
        out[f"norm{i}.weight"], out[f"norm{i}.bias"] = torch.ones(d), torch.zeros(d)
    return out


def seed_cases():
    words, d = ["the", "cat", "sat", "the", "Wörter"], 4
    x = torch.tensor([[token(word, 0, d) for word in words]])
    p = torch.tensor(vectors(spec(d_model=d), range(T), "float64"))
    got = forward(x + p, [seeded(7, i, d, 4 * d) for i in range(2)], "post", "relu", ALL, heads=2)
    facts = {**FACTS, "layers": 2, "width": d, "d_ff": 4 * d}
    reply = {"encoding": spec(d_model=d), "block": facts,
             **{n: tensor(v.squeeze(0 if n == "output" else 1).numpy()) for n, v in got.items()}}
    case("block/tokens", "GET /v1/block?type=sinusoidal&d_model=4&tokens=the,cat,sat,the,W%C3%B6rter&weights_seed=7&layers=2"
         "&heads=2", reply, SINGLE, source="vectors and weights from their seeds, Philox4x32-10 by its definition")
    x = torch.tensor([[token(word, 2 ** 40 + 1, d) for word in words[:3]]])
    got = forward(x, [seeded(2 ** 33, 0, d, 6, 0.5)], "pre", "gelu_tanh", CAUSAL[:3, :3],
                  {"weight": torch.ones(d), "bias": torch.zeros(d)}, heads=1)
    facts = {**FACTS, "naming": "gpt2", "norm": "pre", "activation": "gelu_tanh", "heads": 1, "width": d, "d_ff": 6,
             "final_norm": True, "causal": True}
    case("block/tokens_seeds", "POST /v1/block", {"block": facts, "output": tensor(got["output"][0].numpy(), "float64")}, DOUBLE,
         {"tokens": words[:3], "token_seed": 2 ** 40 + 1, "weights_seed": 2 ** 33, "init_std": .5, "width": d, "d_ff": 6,
          "naming": "gpt2", "dtype": "float64", "return": "output"})


def main():
    for cases in (torch_cases, inner_cases, gpt2_cases, nanogpt_cases, seed_cases):
        cases()


if __name__ == "__main__":
    main()
