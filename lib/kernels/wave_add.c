/* SPDX-License-Identifier: MIT
 *
 * Some rows of some pairs at a time: as many rows as make anchors cheap, and as many pairs as leave the nearest
 * cache room for what they are added to.
 */
#include "kernels/wave_add.h"

#include "kernels/vector.h"

#define PAIRS 32         /* a multiple of PE_WAVE_LANES; with ROWS, 16 KiB of values */
#define LINE  16         /* numbers in a line of a cache */
#define ROWS  64         /* of one middle */
#define MOST  (ROWS + 8) /* rather than to leave fewer than eight, which come singly */

/* One kind of value or, where both are neighbours, both. */
struct segment {
    size_t at, from, n; /* in a row of the sum, in a row of the band */
};

/* Asks for what will be added to, while the values are made: so short pieces of rows no processor foresees. */
static void segment_call(const struct pe_wave_sum *sum, size_t row, const struct segment *segment) {
#if defined(__GNUC__)
    const float *x = sum->x + row + segment->at;
    for (size_t i = 0; i < segment->n; i += LINE) {
        __builtin_prefetch(x + i, 1, 2);
    }
#else
    (void)sum, (void)row, (void)segment;
#endif
}

static void segment_add(const struct pe_wave_sum *sum, size_t row, const struct segment *segment,
                        const float *band) {
    const size_t at = row + segment->at;
    pe_vector_scale_add(PE_DTYPE_F32, sum->out + at, sum->x + at, sum->scale, band + segment->from,
                        segment->n);
}

/* Pairs from `pair` on of `rows` rows. */
static void band_add(const struct pe_wave *part, int64_t x, int64_t step, size_t rows,
                     const struct pe_wave_out *to, const struct pe_wave_sum *sum) {
    float band[MOST][2 * PAIRS];
    const bool both = to->step == 2, swap = to->cos < to->sin;
    float *first = band[0], *second = first + (both ? 1 : PAIRS);
    const struct pe_wave_out out = {.sin = swap ? second : first,
                                    .cos = swap ? first : second,
                                    .step = to->step,
                                    .n_sin = to->n_sin,
                                    .n_cos = to->n_cos,
                                    .stride = 2 * PAIRS};
    const struct segment sines = {(size_t)(to->sin - sum->out), swap && !both ? PAIRS : 0, to->n_sin};
    const struct segment cosines = {(size_t)(to->cos - sum->out), swap || both ? 0 : PAIRS, to->n_cos};
    const struct segment all = {swap ? cosines.at : sines.at, 0, to->n_sin + to->n_cos};
    for (size_t row = 0; row < rows; row++) {
        segment_call(sum, row * to->stride, both ? &all : &sines);
        if (!both) {
            segment_call(sum, row * to->stride, &cosines);
        }
    }
    pe_wave_run(part, x, step, rows, &out);
    for (size_t row = 0; row < rows; row++) {
        if (both) {
            segment_add(sum, row * to->stride, &all, band[row]);
        } else {
            segment_add(sum, row * to->stride, &sines, band[row]);
            segment_add(sum, row * to->stride, &cosines, band[row]);
        }
    }
}

void pe_wave_add(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                 const struct pe_wave_out *rows, const struct pe_wave_sum *sum) {
    for (size_t row = 0, some; row < n; row += some) {
        some = n - row <= MOST ? n - row : ROWS;
        for (size_t pair = 0; pair < wave->n; pair += PAIRS) {
            const size_t left = wave->n - pair, pairs = left < PAIRS ? left : PAIRS;
            const struct pe_wave part = pe_wave_part(wave, pair, pairs);
            struct pe_wave_out to = *rows;
            to.sin += row * rows->stride + pair * rows->step;
            to.cos += row * rows->stride + pair * rows->step;
            to.n_sin = rows->n_sin - pair < pairs ? rows->n_sin - pair : pairs;
            to.n_cos = rows->n_cos - pair < pairs ? rows->n_cos - pair : pairs;
            band_add(&part, x + (int64_t)row * step, step, some, &to, sum);
        }
    }
}
