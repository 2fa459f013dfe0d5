/* SPDX-License-Identifier: MIT
 *
 * A panel of keys stays in the nearest cache while the rows of queries pass, some rows at a time; their sums are in
 * registers (scores_tile.h). What follows the last whole tile is done by lower ones.
 *
 * A BLAS packs the keys anew in every call, and heads are narrow: that and its larger tiles take a good part of its
 * time.
 */
#include "kernels/scores.h"

#include "kernels/target.h"

#include <math.h>
#include <string.h>
#if PE_AVX2
#include <immintrin.h>
#endif

#define COLUMNS    PE_SCORES_COLUMNS
#define ROWS_MOST  8
#define STOP_ITEMS ((size_t)1 << 22) /* products between two questions */

/* Some rows and columns of c. */
struct tile {
    const float *a, *panel;
    float *c;
    const float *bias; /* anything that may be fetched, where there is none */
    float *most;
    size_t a_ld, c_ld, bias_ld, k;
    bool has_bias;
    float alpha;
};

/* For any processor: a row of sums, for which the compiler finds registers. */
static void tile_plain(const struct tile *t) {
    float sum[COLUMNS] = {0};
    const float *panel = t->panel;
    for (size_t l = 0; l < t->k; l++, panel += COLUMNS) {
        for (size_t c = 0; c < COLUMNS; c++) {
            sum[c] += t->a[l] * panel[c];
        }
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        sum[c] *= t->alpha;
    }
    for (size_t c = 0; t->has_bias && c < COLUMNS; c++) {
        sum[c] += t->bias[c];
    }
    for (size_t c = 0; t->most && c < COLUMNS; c++) {
        t->most[c] = sum[c] > t->most[c] ? sum[c] : t->most[c];
    }
    memcpy(t->c, sum, sizeof sum);
}

#if PE_AVX2
#define UNROLLED _Pragma("GCC unroll 8")

#include "kernels/fma_begin.h"
#define VECTOR    __m256
#define LANES     8
#define WIDE      2
#define ZERO      _mm256_setzero_ps()
#define LOAD      _mm256_loadu_ps
#define BROADCAST _mm256_set1_ps
#define FUSED     _mm256_fmadd_ps
#define PRODUCT   _mm256_mul_ps
#define SUM       _mm256_add_ps
#define LARGER    _mm256_max_ps
#define STORE     _mm256_storeu_ps
#define ROWS      6
#define NAMED     tile_avx2_6
#include "kernels/scores_tile.h"
#define ROWS  4
#define NAMED tile_avx2_4
#include "kernels/scores_tile.h"
#define ROWS  1
#define NAMED tile_avx2_1
#include "kernels/scores_tile.h"
#undef VECTOR
#undef LANES
#undef WIDE
#undef ZERO
#undef LOAD
#undef BROADCAST
#undef FUSED
#undef PRODUCT
#undef SUM
#undef LARGER
#undef STORE
#include "kernels/avx2_end.h"

#include "kernels/avx512_begin.h"
#define VECTOR    __m512
#define LANES     16
#define WIDE      2
#define ZERO      _mm512_setzero_ps()
#define LOAD      _mm512_loadu_ps
#define BROADCAST _mm512_set1_ps
#define FUSED     _mm512_fmadd_ps
#define PRODUCT   _mm512_mul_ps
#define SUM       _mm512_add_ps
#define LARGER    _mm512_max_ps
#define STORE     _mm512_storeu_ps
#define ROWS      8
#define NAMED     tile_avx512_8
#include "kernels/scores_tile.h"
#define ROWS  4
#define NAMED tile_avx512_4
#include "kernels/scores_tile.h"
#define ROWS  1
#define NAMED tile_avx512_1
#include "kernels/scores_tile.h"
#include "kernels/avx512_end.h"
#endif

/* Which rows go over the keys together: tiles of so many rows, `tiles` of them. */
struct height {
    size_t rows, tiles;
    void (*run)(const struct tile *tile);
};
static const struct kernel {
    size_t columns;           /* of a tile */
    struct height heights[3]; /* the highest first */
} kernels[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] = {COLUMNS, {{1, 8, tile_plain}, {1, 1, tile_plain}}},
#if PE_AVX2
    [PE_INSTRUCTIONS_AVX2] = {16, {{6, 1, tile_avx2_6}, {4, 1, tile_avx2_4}, {1, 1, tile_avx2_1}}},
    [PE_INSTRUCTIONS_AVX512] = {32, {{8, 1, tile_avx512_8}, {4, 1, tile_avx512_4}, {1, 1, tile_avx512_1}}},
#endif
};

static size_t panels_of(size_t n) {
    return n / COLUMNS + (n % COLUMNS != 0);
}

size_t pe_scores_packed(size_t n, size_t k) {
    return panels_of(n) * COLUMNS * k;
}

/* A panel of `some` keys. */
static void panel_pack(const float *keys, size_t ld, size_t some, size_t k, float *panel) {
    for (size_t l = 0; l < k; l++) {
        for (size_t c = 0; c < some; c++) {
            panel[l * COLUMNS + c] = keys[c * ld + l];
        }
        memset(panel + l * COLUMNS + some, 0, (COLUMNS - some) * sizeof *panel);
    }
}

#if PE_AVX2
/* The first 4*floor(k/4) numbers of COLUMNS keys, four by four. These instructions every x86-64 has. */
static size_t panel_turn(const float *keys, size_t ld, size_t k, float *panel) {
    size_t l = 0;
    for (; l + 4 <= k; l += 4) {
        for (size_t c = 0; c < COLUMNS; c += 4) {
            const float *from = keys + c * ld + l;
            __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + ld);
            __m128 x = _mm_loadu_ps(from + 2 * ld), y = _mm_loadu_ps(from + 3 * ld);
            _MM_TRANSPOSE4_PS(a, b, x, y);
            float *to = panel + l * COLUMNS + c;
            _mm_storeu_ps(to, a);
            _mm_storeu_ps(to + COLUMNS, b);
            _mm_storeu_ps(to + 2 * COLUMNS, x);
            _mm_storeu_ps(to + 3 * COLUMNS, y);
        }
    }
    return l;
}
#else
static size_t panel_turn(const float *keys, size_t ld, size_t k, float *panel) {
    (void)keys, (void)ld, (void)k, (void)panel;
    return 0;
}
#endif

void pe_scores_pack(struct pe_const_matrix keys, size_t n, size_t k, float *packed) {
    const float *from = keys.data;
    for (size_t j = 0; j < n; j += COLUMNS, packed += COLUMNS * k) {
        const size_t some = n - j < COLUMNS ? n - j : COLUMNS;
        const size_t done = some == COLUMNS ? panel_turn(from + j * keys.ld, keys.ld, k, packed) : 0;
        panel_pack(from + j * keys.ld + done, keys.ld, some, k - done, packed + done * COLUMNS);
    }
}

/* Fewer columns than the tile makes. Those behind them have a bias that hides them. */
static void tile_cut(const struct height *height, const struct tile *whole, size_t n) {
    float made[ROWS_MOST * COLUMNS], bias[ROWS_MOST * COLUMNS];
    struct tile tile = *whole;
    tile.c = made;
    tile.bias = bias;
    tile.c_ld = tile.bias_ld = COLUMNS;
    tile.has_bias = true;
    for (size_t r = 0; r < height->rows; r++) {
        for (size_t c = 0; c < COLUMNS; c++) {
            bias[r * COLUMNS + c] = c >= n            ? -INFINITY
                                    : whole->has_bias ? whole->bias[r * whole->bias_ld + c]
                                                      : 0;
        }
    }
    height->run(&tile);
    for (size_t r = 0; r < height->rows; r++) {
        memcpy(whole->c + r * whole->c_ld, made + r * COLUMNS, n * sizeof *made);
    }
}

/* The tile of columns j .. of some rows. */
static struct tile tile_at(const struct pe_scores *s, size_t i, size_t j) {
    const float *a = s->a.data, *bias = s->bias.data;
    a += i * s->a.ld;
    return (struct tile){.a = a,
                         .panel = s->packed + j / COLUMNS * COLUMNS * s->k + j % COLUMNS,
                         .c = (float *)s->c.data + i * s->c.ld + j,
                         .bias = bias ? bias + i * s->bias.ld + j : a,
                         .most = s->most ? s->most + i * COLUMNS : NULL,
                         .a_ld = s->a.ld,
                         .c_ld = s->c.ld,
                         .bias_ld = s->bias.ld,
                         .k = s->k,
                         .has_bias = bias != NULL,
                         .alpha = s->alpha};
}

/* Some rows, and all columns. */
static void rows_run(const struct pe_scores *s, size_t columns, const struct height *height, size_t first) {
    for (size_t j = 0; j < s->n; j += columns) {
        for (size_t t = 0; t < height->tiles; t++) {
            const struct tile tile = tile_at(s, first + t * height->rows, j);
            if (s->n - j >= columns) {
                height->run(&tile);
            } else {
                tile_cut(height, &tile, s->n - j);
            }
        }
    }
}

void pe_scores_run(const struct pe_scores *s) {
    const struct kernel *kernel = &kernels[s->instructions];
    const struct height *height = kernel->heights;
    for (size_t i = 0; i < s->m && !pe_stop_asked(s->stop); i += height->rows * height->tiles) {
        while (height->rows * height->tiles > s->m - i) {
            height++;
        }
        rows_run(s, kernel->columns, height, i);
    }
}
