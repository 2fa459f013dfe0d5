/* SPDX-License-Identifier: MIT
 *
 * Blocks from the inside: block.c plans, block_weights.c and block_input.c read, block_run.c computes.
 */
#ifndef PE_BLOCK_H
#define PE_BLOCK_H

#include "ops/attention.h"
#include "ops/operand.h"

/* The tensors of a layer. */
enum pe_block_part {
    PE_BLOCK_NORM1_WEIGHT,
    PE_BLOCK_NORM1_BIAS,
    PE_BLOCK_QKV_WEIGHT,
    PE_BLOCK_QKV_BIAS,
    PE_BLOCK_PROJECTION_WEIGHT,
    PE_BLOCK_PROJECTION_BIAS,
    PE_BLOCK_NORM2_WEIGHT,
    PE_BLOCK_NORM2_BIAS,
    PE_BLOCK_UP_WEIGHT,
    PE_BLOCK_UP_BIAS,
    PE_BLOCK_DOWN_WEIGHT,
    PE_BLOCK_DOWN_BIAS,
    PE_BLOCK_PARTS
};

struct pe_block_layer {
    const unsigned char *part[PE_BLOCK_PARTS]; /* NULL: not needed */
};

/* The memory of all sequences, [B, T, ..] in the type of the arithmetic, or of one. */
struct pe_block_scratch {
    unsigned char *x, *h, *y; /* D: the stream, what goes into a product, what comes out */
    unsigned char *ff;        /* d_ff */
    unsigned char *relative;  /* relative_bytes for each: of the encoding's term; NULL: it needs none */
};

struct pe_block {
    enum pe_dtype real, dtype; /* of the arithmetic and of the results */
    size_t real_size, size;
    bool batched;
    size_t batch, length, width, heads, head_width, d_ff, layers;
    enum pe_block_norm norm;
    enum pe_block_activation activation;
    bool residual, final_norm, transposed; /* transposed: matrices are [out, in] */
    bool ordered;                          /* products are, as in pe_gemm */
    double norm_eps;
    struct pe_block_layer *layer; /* [layers] */
    const unsigned char *final_weight, *final_bias;
    const unsigned char *input; /* [B, T, D] */
    double input_scale;
    const unsigned char *positions;   /* what is added to it, [T, D] or [B, T, D]; NULL: nothing */
    size_t positions_batch;           /* stride; 0 where it is the same for all */
    unsigned char *q, *k, *v, *mixed; /* [B, H, T, d] */
    struct pe_attention *attention;   /* [layers], which differ in where their weights go */
    struct pe_block_scratch scratch;
    size_t relative_bytes;
    unsigned char *stream, *output; /* of the results; NULL: not asked for */
    const struct pe_stop *stop;
};

/* While reading. */
struct pe_block_reader {
    struct pe_arena *arena;
    const struct pe_block_args *args;
    struct pe_block *block;
    enum pe_block_naming naming;
    struct pe_block_names *names; /* which posted tensor is which; NULL without posted ones */
    bool causal;                  /* where nothing is said of a mask */
    bool *used;                   /* [n_weights] */
    unsigned char **seeded; /* matrices that are to be filled, of all layers; NULL with posted weights */
};

/* block_weights.c. The names of what is posted, and the sizes that follow: PE_ERR_UNKNOWN_NAME at one that is
 * not known, PE_ERR_CONFLICT at a second one of the same meaning. */
int pe_block_names_read(struct pe_block_reader *r, struct pe_error *err);
/* Layers that they name, the width of their feed-forward networks (0: they do not tell), and is there a final
 * norm? */
size_t pe_block_names_layers(const struct pe_block_names *names);
size_t pe_block_names_d_ff(const struct pe_block_reader *r);
bool pe_block_names_final(const struct pe_block_names *names);
/* Is any bias of a layer posted? Models that are made without have none at all. */
bool pe_block_names_biased(const struct pe_block_names *names);
/* wte.weight, and marks it as used; NULL with an error where it is not posted. */
const struct pe_tensor *pe_block_vocabulary(struct pe_block_reader *r, struct pe_error *err);
/* Is tensor i one of a layer or of the final norm, or the table of the posted token ids? */
bool pe_block_names_need(const struct pe_block_reader *r, size_t i);
/* All tensors of all layers, as they were posted, in the type of the arithmetic. */
int pe_block_weights_read(struct pe_block_reader *r, struct pe_error *err);
/* block_seed.c: the memory of all tensors, and the numbers that a seed makes, which take time. */
int pe_block_seed_open(struct pe_block_reader *r, struct pe_error *err);
int pe_block_seed_fill(const struct pe_block_reader *r, struct pe_error *err);
/* n numbers of the type of the arithmetic, all `value`. */
unsigned char *pe_block_alike(const struct pe_block_reader *r, size_t n, double value, struct pe_error *err);
/* Is that result asked for? All are where none is named. */
static inline bool pe_block_wants(const struct pe_block_reader *r, unsigned bit) {
    return !r->args->outputs || (r->args->outputs & bit);
}
/* block_input.c: the field that holds the sequence; B, T, D, then the vectors. */
const char *pe_block_input_field(const struct pe_block_args *args);
int pe_block_input_bind(struct pe_block_reader *r, struct pe_error *err);
int pe_block_input_read(struct pe_block_reader *r, struct pe_error *err);
/* block_attention.c: the attention of all layers. */
int pe_block_attention_open(struct pe_block_reader *r, struct pe_block_result *result, struct pe_error *err);
/* n dimensions without the batch, which is number 1, where there is none; returns how many are left. */
int pe_block_dims(const struct pe_block *block, const size_t *full, int n, size_t *dim);
/* A pe_work's run: sequence b. */
void pe_block_sequence(const void *block, size_t b);

#endif
