/* SPDX-License-Identifier: MIT
 *
 * Whole Transformer blocks. Part of posenc.h, which explains how a work is opened and run.
 */
#ifndef POSENC_BLOCK_H
#define POSENC_BLOCK_H

#include "posenc_formats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pe_plan;
struct pe_work;
struct pe_attention_mask;

/* How the weights' names and orientation are those of a class of others; what is left at its default is as
 * that class has it. Layer l of several is prefixed. */
enum pe_block_naming {
    PE_BLOCK_TORCH = 1, /* TransformerEncoderLayer, weights [out, in], `layers.l.` as in TransformerEncoder's
                           state (also after `encoder.`), final norm `norm.`: post-norm, relu, no mask */
    PE_BLOCK_GPT2,      /* GPT-2 of transformers, kernels [in, out], `h.l.` (also after `transformer.`), final
                           norm `ln_f.`: pre-norm, gelu_tanh, causal, with the final norm */
    PE_BLOCK_NANOGPT /* nanoGPT and others that have the names of GPT-2 with torch's Linear, weights [out, in]:
                           pre-norm, gelu, causal, with the final norm */
};
enum pe_block_norm {
    PE_BLOCK_NORM_PRE = 1, /* x += f(norm(x)) */
    PE_BLOCK_NORM_POST,    /* x = norm(x + f(x)) */
    PE_BLOCK_NORM_NONE     /* x += f(x) */
};
enum pe_block_activation {
    PE_BLOCK_GELU = 1, /* exact, by erf */
    PE_BLOCK_GELU_TANH,
    PE_BLOCK_RELU
};
enum pe_block_switch { PE_BLOCK_DEFAULT = 0, PE_BLOCK_YES, PE_BLOCK_NO };

enum pe_block_output {
    PE_BLOCK_WEIGHTS = 1 << 0, /* attention's, of every layer: [L, H, T, T] or [L, B, H, T, T] */
    PE_BLOCK_OUTPUT = 1 << 1,  /* after the last layer and the final norm: shaped as the embeddings */
    PE_BLOCK_STREAM = 1 << 2   /* what goes into the first layer and comes out of each: [L+1, T, D] or
                                  [L+1, B, T, D]; the final norm is not in it */
};

/* Up to so many multiplications and numbers in matrices, posted weights are computed with in float64, in an order
 * that is the same on every machine; beyond, by a BLAS. Those from a seed always are. */
#define PE_BLOCK_ORDERED_PRODUCTS 0x1p30
#define PE_BLOCK_ORDERED_WEIGHTS  0x1p23

#define PE_BLOCK_LAYERS_MAX  64
#define PE_BLOCK_TENSORS_MAX 2048
#define PE_BLOCK_TOKENS_MAX  4096
#define PE_BLOCK_WIDTH_MAX   65536

struct pe_block_args {
    size_t size;
    /* An absolute one is added before the first layer; rotary and relative ones act in the attention of every
     * layer. NULL: none. */
    const struct pe_plan *plan;
    /* What goes in: embeddings [T, D] or [B, T, D], or tokens, whose vectors are normal numbers that follow
     * from token_seed and the token's text: Philox4x32-10 with the key token_seed (low word, high word) and
     * the counter (h low, h high, column, 1), h = FNV-1a (64 bits) of the token's bytes; as in the type
     * `random`. */
    const struct pe_tensor *embeddings;
    const char *const *tokens;
    size_t n_tokens;
    uint64_t token_seed;
    size_t width;                         /* D of tokens; default: that of the encoding or of the weights */
    const struct pe_positions *positions; /* [T] or [B, T]; default 0..T-1 */
    enum pe_block_naming naming;          /* default torch */
    /* Each named tensor that is needed has to be there, and no unknown one; biases are 0 where no layer has
     * any. Some that GPTs have beside are known and not used: lm_head.weight, the masks h.l.attn.bias and
     * masked_bias, wte.weight (but by token_ids), and wpe.weight (see pe_block_position_table). Before all
     * names may be what wraps a model: `module.`, `_orig_mod.`. */
    const struct pe_named_tensor *weights;
    size_t n_weights;
    /* Or, without weights, from a seed: matrices normal with standard deviation init_std, 0 meaning
     * sqrt(2/(in + out)) (Glorot and Bengio 2010; in_proj counts as three), biases 0, norms 1 and 0. Number i
     * of matrix m (in_proj, out_proj, linear1, linear2, each [out, in]) of layer l has the counter (i low, i
     * high, 4*l + m, 2). */
    const uint64_t *weights_seed;
    double init_std;
    size_t layers, heads, d_ff; /* default: as many layers as weights name, 1 head without weights; 4*D, or as
                                   the weights have */
    enum pe_block_norm norm;
    enum pe_block_activation activation;
    enum pe_block_switch residual;        /* default yes; no: f(x) in the place of x + f(x) */
    enum pe_block_switch final_norm;      /* default: torch where its tensors are posted, GPT-2 yes */
    const double *norm_eps;               /* default 1e-5 */
    const struct pe_attention_mask *mask; /* one for all layers */
    unsigned outputs;                     /* enum pe_block_output; default all */
    enum pe_dtype dtype;                  /* of the results; default: the widest of embeddings and layers */
    /* In place of embeddings: rows of the posted wte.weight, [T] or [B, T]. */
    const struct pe_tensor *token_ids;
    /* What embeddings, or vectors of tokens, are multiplied by before an encoding is added; default 1. */
    enum pe_embedding_scale scale_mode;
    double scale; /* of PE_EMBEDDING_SCALE_NUMBER */
};

/* What was asked for, of the others rank 0 and data NULL; and how the defaults came out. */
struct pe_block_result {
    struct pe_tensor weights, output, stream;
    enum pe_block_naming naming;
    size_t layers, heads, width, d_ff;
    enum pe_block_norm norm;
    enum pe_block_activation activation;
    bool residual, final_norm, causal; /* causal: among what the mask says */
    bool bias;                         /* there are biases in the layers: posted, or from a seed, zeros */
    double norm_eps;
    const bool *used; /* [n_weights], ARENA */
};

/* block: Transformer blocks (Vaswani et al. 2017, section 3.1), with their norms before or behind (Xiong et
 * al. 2020). A part of the work is one sequence through all layers. Computed in float64 when any of the
 * tensors or the dtype asked is float64, or where the order is fixed (see above); else in float32. What
 * cannot be known beforehand is whether numbers grow beyond the largest: then results hold infinities or NaN.
 * Errors are at the field's name, those of a weight at `weights["h.0.ln_1.weight"]`. */
PE_API int pe_block_open(struct pe_arena *arena, struct pe_work *work, struct pe_block_result *result,
                         const struct pe_block_args *args, struct pe_error *err) PE_CHECKED;
/* D as the posted weights have it, wte.weight included; 0 where they do not tell. */
PE_API size_t pe_block_width(const struct pe_block_args *args);
/* GPT-2's learned positions among the weights, `wpe.weight`; NULL when there are none. The block does not add
 * them by itself: whoever wants them opens a plan `learned` with this table. */
PE_API const struct pe_named_tensor *pe_block_position_table(const struct pe_block_args *args);

#ifdef __cplusplus
}
#endif

#endif
