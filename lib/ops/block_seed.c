/* SPDX-License-Identifier: MIT
 *
 * Weights from a seed: a network as it is before training, of which every number is a function of the seed
 * and its own place, so that more layers or another type change none of them.
 *
 *     words = Philox4x32-10(key = seed (low word, high word), counter = (i low, i high, 4*l + m, 2))
 *     value = std * n(words)                n standard normal, as in the type `random`
 *
 * for number i of matrix m (in_proj, out_proj, linear1, linear2, each [out, in]) of layer l. std is given, or
 * sqrt(2/(in + out)), which keeps the size of vectors and of gradients about the same from layer to layer
 * (Glorot and Bengio 2010); in_proj is three matrices [D, D] there. Biases are 0, the norms' weights 1.
 */
#include "core/rng.h"
#include "ops/block.h"

#include <math.h>

/* Numbers between two questions whether to stop: some 50 ns each. */
#define STEP ((size_t)1 << 12)

#define STREAM 2 /* the last word of the counter: 0 is that of `random`, 1 that of tokens */

unsigned char *pe_block_alike(const struct pe_block_reader *r, size_t n, double value, struct pe_error *err) {
    size_t item = r->block->real_size;
    unsigned char *out = pe_arena_array(r->arena, n, item, err);
    for (size_t i = 0; out && value != 0 && i < n; i++) {
        pe_dtype_store(r->block->real, &value, 1, out + i * item);
    }
    return out;
}

/* [out, in] of a layer. */
struct matrix {
    size_t layer, number, out, in;
    double std;
};

static int matrix_seed(const struct pe_block_reader *r, const struct matrix *m, unsigned char **out,
                       struct pe_error *err) {
    enum pe_dtype real = r->block->real;
    uint64_t seed = *r->args->weights_seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    struct pe_tensor made;
    if (pe_tensor_alloc(r->arena, &made, real, 2, (size_t[2]){m->out, m->in}, err)) {
        return pe_error_at(err, "weights_seed");
    }
    *out = made.data;
    size_t n = m->out * m->in;
    for (size_t i = 0; i < n && (i % STEP || !pe_error_poll(err)); i++) {
        const uint32_t counter[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32),
                                     (uint32_t)(4 * m->layer + m->number), STREAM};
        uint32_t words[4];
        pe_philox(words, counter, key);
        double value = pe_random_gaussian(words, m->std);
        pe_dtype_store(real, &value, 1, *out + i * r->block->real_size);
    }
    return err->code;
}

static double std_of(const struct pe_block_reader *r, size_t in, size_t out) {
    return r->args->init_std > 0 ? r->args->init_std : sqrt(2 / ((double)in + (double)out));
}

static int layer_seed(struct pe_block_reader *r, size_t l, struct pe_error *err) {
    const struct pe_block *block = r->block;
    size_t d = block->width, f = block->d_ff;
    const struct matrix matrices[] = {{l, 0, 3 * d, d, std_of(r, d, d)},
                                      {l, 1, d, d, std_of(r, d, d)},
                                      {l, 2, f, d, std_of(r, d, f)},
                                      {l, 3, d, f, std_of(r, f, d)}};
    static const enum pe_block_part parts[] = {PE_BLOCK_QKV_WEIGHT, PE_BLOCK_PROJECTION_WEIGHT,
                                               PE_BLOCK_UP_WEIGHT, PE_BLOCK_DOWN_WEIGHT};
    for (size_t i = 0; i < PE_COUNT(parts); i++) {
        unsigned char *made = NULL;
        if (matrix_seed(r, &matrices[i], &made, err)) {
            return err->code;
        }
        block->layer[l].part[parts[i]] = made;
    }
    return PE_OK;
}

int pe_block_weights_seed(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    size_t longest = block->d_ff > 3 * block->width ? block->d_ff : 3 * block->width;
    unsigned char *zeros = pe_block_alike(r, longest, 0, err);
    unsigned char *ones = pe_block_alike(r, block->width, 1, err);
    if (!zeros || !ones) {
        return err->code;
    }
    for (size_t l = 0; l < block->layers; l++) {
        const unsigned char **part = block->layer[l].part;
        part[PE_BLOCK_NORM1_WEIGHT] = part[PE_BLOCK_NORM2_WEIGHT] = ones;
        part[PE_BLOCK_NORM1_BIAS] = part[PE_BLOCK_NORM2_BIAS] = zeros;
        part[PE_BLOCK_QKV_BIAS] = part[PE_BLOCK_PROJECTION_BIAS] = zeros;
        part[PE_BLOCK_UP_BIAS] = part[PE_BLOCK_DOWN_BIAS] = zeros;
        if (layer_seed(r, l, err)) {
            return err->code;
        }
    }
    block->final_weight = ones;
    block->final_bias = zeros;
    return PE_OK;
}
