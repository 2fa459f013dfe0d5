#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What models' configurations mean for rope, computed apart from the library: writes rope_configs.h.

    python3 tests/golden/make_rope_configs.py > tests/golden/rope_configs.h

tests/golden/configs holds the config.json files that the models were published with, without the keys that say
nothing of their kind; its README says where each is from. Each model is read by a few lines of its own, as its code in transformers reads it; the scalings
are the formulas of the papers in 60 digits (mpmath). Frequencies, attention factors and bounds are rounded once.

Needs python3-mpmath. The result is committed, so that the tests need none of it.
"""
import json
import pathlib

from mpmath import mp, mpf

mp.dps = 60
FOLDER = pathlib.Path(__file__).parent / "configs"


# ---- the scalings ----------------------------------------------------------------------------------------------------

def powers(base, d, n=None):
    return [mpf(base) ** (-mpf(2 * i) / d) for i in range(d // 2 if n is None else n)]


def plain(base, d):
    return {"inv_freq": powers(base, d), "attention": mpf(1)}


def divided(base, d, factor):
    return {"inv_freq": [t / mpf(factor) for t in powers(base, d)], "attention": mpf(1)}


def llama3(base, d, scaling):
    low, high, length = (mpf(scaling[k]) for k in ("low_freq_factor", "high_freq_factor",
                                                    "original_max_position_embeddings"))
    out = []
    for t in powers(base, d):
        wavelength = 2 * mp.pi / t
        smooth = (length / wavelength - low) / (high - low) if high > low else mpf(0)  # Llama 4: nothing is between
        mixed = (1 - smooth) * t / mpf(scaling["factor"]) + smooth * t
        out.append(t if wavelength < length / high else t / mpf(scaling["factor"]) if wavelength > length / low else mixed)
    return {"inv_freq": out, "attention": mpf(1)}


def grown(factor, weight):
    return mpf("0.1") * mpf(weight) * mp.log(mpf(factor)) + 1


def yarn(base, d, scaling):
    factor, length = mpf(scaling["factor"]), mpf(scaling["original_max_position_embeddings"])

    def pair(turns):
        return d * mp.log(length / (mpf(turns) * 2 * mp.pi)) / (2 * mp.log(mpf(base)))
    low, high = pair(scaling.get("beta_fast", 32)), pair(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = mp.floor(low), mp.ceil(high)
    low, high = max(low, mpf(0)), min(high, mpf(d - 1))
    out = []
    for i, t in enumerate(powers(base, d)):
        ramp = min(max((i - low) / (high - low), mpf(0)), mpf(1))
        out.append(t * (1 - ramp) + t / factor * ramp)
    attention = mpf(scaling["attention_factor"]) if "attention_factor" in scaling else grown(scaling["factor"], 1)
    return {"inv_freq": out, "attention": attention, "range": (low, high)}


def longrope(base, d, scaling, config, seq_len):
    original = config["original_max_position_embeddings"]
    factors = scaling["long_factor" if seq_len > original else "short_factor"]
    attention = mp.sqrt(1 + mp.log(mpf(config["max_position_embeddings"]) / original) / mp.log(mpf(original)))
    return {"inv_freq": [t / mpf(f) for t, f in zip(powers(base, d), factors)], "attention": attention}


def proportional(base, head, part):
    turning = int(part * head // 2)
    return {"inv_freq": powers(base, head, turning) + [mpf(0)] * (head // 2 - turning), "attention": mpf(1)}


# ---- the models: head_dim, rotary_dim, layout, what the softmax takes the root of, frequencies -----------------------

def shared(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def llama(c, layer, seq_len):
    head, base, scaling = shared(c), c.get("rope_theta", 10000.0), c.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    d = int(head * c.get("partial_rotary_factor", 1.0))
    made = {"default": lambda: plain(base, d), "mrope": lambda: plain(base, d), "llama3": lambda: llama3(base, d, scaling),
            "yarn": lambda: yarn(base, d, scaling), "su": lambda: longrope(base, d, scaling, c, seq_len),
            "longrope": lambda: longrope(base, d, scaling, c, seq_len)}[kind]()
    root = 1 / mpf(c["attention_multiplier"]) ** 2 if "attention_multiplier" in c else c.get("query_pre_attn_scalar", head)
    return head, d, "halves", root, made


def interleaved(c, layer, seq_len):
    """As Llama but for the columns of a pair."""
    head, d, _, root, made = llama(c, layer, seq_len)
    return head, d, "interleaved", root, made


def olmo3(c, layer, seq_len):
    return llama(c if layer == "full_attention" else {**c, "rope_scaling": None}, layer, seq_len)


def gemma3n(c, layer, seq_len):
    head, d, layout, _, made = gemma3(c, layer, seq_len)
    return head, d, layout, 1, made


def gemma3(c, layer, seq_len):
    head, root = c.get("head_dim", 256), c.get("query_pre_attn_scalar", 256)  # what the smallest files leave out
    scaling = c.get("rope_scaling")
    if layer == "sliding_attention":
        made = plain(c.get("rope_local_base_freq", 10000), head)
    elif scaling:
        made = divided(c.get("rope_theta", 1000000), head, scaling["factor"])
    else:
        made = plain(c.get("rope_theta", 1000000), head)
    return head, head, "halves", root, made


def gemma4(c, layer, seq_len):
    rope = c["rope_parameters"][layer]
    if layer == "sliding_attention":
        return c["head_dim"], c["head_dim"], "halves", 1, plain(rope["rope_theta"], c["head_dim"])
    head = c["global_head_dim"]
    return head, head, "halves", 1, proportional(rope["rope_theta"], head, rope["partial_rotary_factor"])


def modernbert(c, layer, seq_len):
    head = shared(c)
    base = c["global_rope_theta" if layer == "full_attention" else "local_rope_theta"]
    return head, head, "halves", head, plain(base, head)


def gpt_neox(c, layer, seq_len):
    head = shared(c)
    d = int(head * c["rotary_pct"])
    return head, d, "halves", head, plain(c["rotary_emb_base"], d)


def gptj(c, layer, seq_len):
    head = c["n_embd"] // c["n_head"]
    return head, c["rotary_dim"], "interleaved", head, plain(10000, c["rotary_dim"])


def deepseek(c, layer, seq_len):
    d, scaling = c["qk_rope_head_dim"], c["rope_scaling"]
    made = yarn(c["rope_theta"], d, scaling)
    above, below = grown(scaling["factor"], scaling["mscale"]), grown(scaling["factor"], scaling["mscale_all_dim"])
    made["attention"], made["softmax"] = above / below, below ** 2
    return d, d, "interleaved", d + c["qk_nope_head_dim"], made


READERS = {"gemma3": gemma3, "gemma3_text": gemma3, "gemma3n": gemma3n, "gemma4": gemma4, "modernbert": modernbert,
           "gpt_neox": gpt_neox, "gptj": gptj, "deepseek_v2": deepseek, "deepseek_v3": deepseek, "llama4": interleaved,
           "cohere2": interleaved, "glm4": interleaved, "olmo3": olmo3}
BOTH = ("full_attention", "sliding_attention")
# The layers that turn, where they are not all alike.
LAYERS = {"gemma3": BOTH, "gemma3_text": BOTH, "gemma3n": BOTH, "gemma4": BOTH, "modernbert": BOTH, "olmo3": BOTH,
          "llama4": ("chunked_attention",), "cohere2": ("sliding_attention",), "exaone4": ("sliding_attention",)}


# ---- writing ---------------------------------------------------------------------------------------------------------

def hexed(x):
    """The nearest double: mpmath rounds to nearest even, once."""
    return float(x).hex()


def cases():
    for path in sorted(FOLDER.glob("*.json")):
        config = json.loads(path.read_text())
        kind = config["model_type"]
        layers = (None,) if kind == "exaone4" and config["sliding_window"] is None else LAYERS.get(kind, (None,))
        lengths = (4096, 4097) if "original_max_position_embeddings" in config else (0,)
        for layer in layers:
            for seq_len in lengths:
                inner = config.get("text_config", config)
                yield (path.stem, layer, seq_len) + READERS.get(kind, llama)(inner, layer, seq_len)


def main():
    rows, values = [], []
    for name, layer, seq_len, head, d, layout, root, made in cases():
        low, high = made.get("range", (mpf(-1), mpf(-1)))
        scale = made.get("softmax", mpf(1)) / mp.sqrt(root)
        rows.append(f'    {{"{name}", {chr(34) + layer + chr(34) if layer else "NULL"}, {seq_len}, {head}, {d}, "{layout}", '
                    f'{hexed(made["attention"])}, {hexed(scale)}, {hexed(low)}, {hexed(high)}, {len(values)}}},')
        assert len(made["inv_freq"]) == d // 2
        values += [hexed(t) for t in made["inv_freq"]]
    lines = [", ".join(values[i:i + 8]) for i in range(0, len(values), 8)]
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by make_rope_configs.py: do not edit.\n */\n/* clang-format off */")
    print("static const struct rope_config_case {\n    const char *name, *layer_type;\n    int seq_len, head_dim, rotary_dim;\n"
          "    const char *layout;\n    double attention_factor, softmax_scale, low, high; /* -1: no range */\n"
          "    int first;\n} rope_config_cases[] = {")
    print("\n".join(rows) + "\n};\nstatic const double rope_config_values[] = {")
    print("    " + ",\n    ".join(lines) + "\n};\n/* clang-format on */")


main()
