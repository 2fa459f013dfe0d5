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

/* The matrices of a layer. */
enum { MATRICES = 4 };

static const enum pe_block_part parts[MATRICES] = {PE_BLOCK_QKV_WEIGHT, PE_BLOCK_PROJECTION_WEIGHT,
                                                   PE_BLOCK_UP_WEIGHT, PE_BLOCK_DOWN_WEIGHT};

/* [out, in] */
struct matrix {
    size_t out, in;
    double std;
};

static double std_of(const struct pe_block_reader *r, size_t in, size_t out) {
    return r->args->init_std > 0 ? r->args->init_std : sqrt(2 / ((double)in + (double)out));
}

static struct matrix matrix_of(const struct pe_block_reader *r, size_t number) {
    size_t d = r->block->width, f = r->block->d_ff;
    const struct matrix matrices[MATRICES] = {{3 * d, d, std_of(r, d, d)},
                                              {d, d, std_of(r, d, d)},
                                              {f, d, std_of(r, d, f)},
                                              {d, f, std_of(r, f, d)}};
    return matrices[number];
}

static int matrix_fill(const struct pe_block_reader *r, size_t layer, size_t number, struct pe_error *err) {
    const struct matrix m = matrix_of(r, number);
    unsigned char *out = r->seeded[MATRICES * layer + number];
    uint64_t seed = *r->args->weights_seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    size_t n = m.out * m.in;
    for (size_t i = 0; i < n && (i % STEP || !pe_error_poll(err)); i++) {
        const uint32_t counter[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32),
                                     (uint32_t)(MATRICES * layer + number), STREAM};
        uint32_t words[4];
        pe_philox(words, counter, key);
        double value = pe_random_gaussian(words, m.std);
        pe_dtype_store(r->block->real, &value, 1, out + i * r->block->real_size);
    }
    return err->code;
}

static int layer_open(struct pe_block_reader *r, size_t l, struct pe_error *err) {
    const struct pe_block *block = r->block;
    for (size_t i = 0; i < MATRICES; i++) {
        const struct matrix m = matrix_of(r, i);
        struct pe_tensor made;
        if (pe_tensor_alloc(r->arena, &made, block->real, 2, (size_t[2]){m.out, m.in}, err)) {
            return pe_error_at(err, "weights_seed");
        }
        block->layer[l].part[parts[i]] = r->seeded[MATRICES * l + i] = made.data;
    }
    return PE_OK;
}

int pe_block_seed_open(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    size_t longest = block->d_ff > 3 * block->width ? block->d_ff : 3 * block->width;
    unsigned char *zeros = pe_block_alike(r, longest, 0, err);
    unsigned char *ones = pe_block_alike(r, block->width, 1, err);
    r->seeded = pe_arena_array(r->arena, MATRICES * block->layers, sizeof *r->seeded, err);
    if (!zeros || !ones || !r->seeded) {
        return err->code;
    }
    for (size_t l = 0; l < block->layers; l++) {
        const unsigned char **part = block->layer[l].part;
        part[PE_BLOCK_NORM1_WEIGHT] = part[PE_BLOCK_NORM2_WEIGHT] = ones;
        part[PE_BLOCK_NORM1_BIAS] = part[PE_BLOCK_NORM2_BIAS] = zeros;
        part[PE_BLOCK_QKV_BIAS] = part[PE_BLOCK_PROJECTION_BIAS] = zeros;
        part[PE_BLOCK_UP_BIAS] = part[PE_BLOCK_DOWN_BIAS] = zeros;
        if (layer_open(r, l, err)) {
            return err->code;
        }
    }
    block->final_weight = ones;
    block->final_bias = zeros;
    return PE_OK;
}

int pe_block_seed_fill(const struct pe_block_reader *r, struct pe_error *err) {
    for (size_t i = 0; i < MATRICES * r->block->layers; i++) {
        if (matrix_fill(r, i / MATRICES, i % MATRICES, err)) {
            return err->code;
        }
    }
    return PE_OK;
}
