/* SPDX-License-Identifier: MIT
 *
 * Sines and cosines of x * omega for many x, correctly rounded to float32 at the speed of memory.
 *
 * A phase is the fraction of a turn in 64 bits, by integer products as in core/phase.c: whole turns drop out,
 * however large x is. A polynomial in double makes sine and cosine of it (`row`). Where rows follow in equal steps
 * that is done once in 64 rows, at an angle a in their middle. From there to either side
 *
 *     sin(a + b) = sin a cos b + cos a sin b          cos(a + b) = cos a cos b - sin a sin b
 *     sin(a - b) = sin a cos b - cos a sin b          cos(a - b) = cos a cos b + sin a sin b
 *
 * so that for each column two products, a sum and a difference make two values. By b of 4, 12, 20 and 28 steps that
 * goes to the middles of eight blocks of eight rows (`middles`), and from these by 1/2, 3/2, 5/2 and 7/2 to the rows
 * (`block`). Where columns are pairs of neighbours they are so in registers, too: nothing has to be interleaved.
 * AVX-512 turns by 1/2 alone, and goes on, w being the angle from row to row, by
 *
 *     sin(a + w) = 2 cos w sin a - sin(a - w)         cos(a + w) = 2 cos w cos a - cos(a - w)
 *
 * which is one product for a value, and less to load, but errors grow with each step.
 *
 * Rounding is decided as in core/phase.c, after Ziv. The sharp test: v is within a bound of the true value, so
 * when v - bound and v + bound round to the same float, the true value does, too, as rounding is monotonic. Groups
 * where they do not are computed again by `row`, whose bound is smaller, and then by pe_phase_row. So the bits are
 * those of pe_phase_row on every instruction set, in every order of rows, and whether the compiler fuses or not.
 *
 * The cheap test saves the second rounding. In units of its last place, v of magnitude 2^-12 or more is within
 * 1.25 * 2^15 of the true value if the bound is 1.25 * 2^-49. It is raised: made larger by 1.375 * 2^-37 of itself,
 * which is 1.375 to 2.75 of 2^15 units. So in magnitude it is beyond the true value, by less than 4 of 2^15 units. If
 * the two round differently there is a tie between them, less than 2^17 units below the raised value; and floats are
 * the doubles without their lower 29 bits, ties where these are 2^28. What is so near, or smaller than 2^-12, takes the
 * sharp test: one value in 2,500. The sharp test leaves one in a million. For rows the bound is 2^-47, and
 * magnitudes from 2^-11 on, lifts and units are larger in the same way. For blocks of AVX-512 it is 1.25 * 2^-48, which
 * in units of magnitudes from 2^-11 on is the same: one value in 1,800.
 *
 * The bounds, absolute; a double of magnitude up to 1 is rounded by at most 2^-54. 8 of 2^-64 turns that t, x and
 * products may lack, and the square of the ten bits that are brought in by one term, count for nothing.
 *
 *     sine       u * 2 pi, the sum of both parts, the sum with the last bits: 3 * 2^-54; the second part, at most
 *                0.08, to 2^-52 of itself: 2^-55.6; polynomial 2^-58                                  2^-52.1
 *     cosine     the sum with 1, the one with the last bits: 2 * 2^-54; of what is subtracted, at most 0.29, its
 *                product 2^-55, the coefficient's sum 2^-55, z 2^-54.8; polynomial 2^-55.9             2^-52.0
 *     ROW        one of them, and 2^-53 for adding the bound                                    below 2^-51.4
 *     BLOCK      in units of 2^-54, as vectors (cos, sin): a in the middle and a turning are off by
 *                sqrt(2) * 2^-52: 5.7; a turn adds its turning's error, and two products and a sum, 3 in each
 *                component or, as raised values may be a little above 1, where all is doubled, 5 in one: 10.7. So two
 *                turns are off by 5.7 + 2 * 10.7 = 27.1; raising, lowering, and adding the bound by 2 each
 *                                                                                  33.1, and the bound is 40
 *     FARTHER    blocks of AVX-512, in the same units: a middle, raised, is off by 5.7 + 10.7 + 2 = 18.4. Seen from
 *                there the row at m = 1/2, 3/2, 5/2 or 7/2 has P(m) = cos mw / cos w/2 times the error that those at
 *                +-1/2 have in common, and Q(m) = sin mw / sin w/2 times half of that in which they differ:
 *                  - angles are computed to 2^-51 of themselves, 8 units, small ones, too: the turning's cosine is off
 *                    by 8 cos w/2 and counts P times, its sine by 8 sin w/2 and Q times, together, as vectors, 8; and
 *                    0.4 for the turns that are lacking
 *                  - the common product is rounded by at most 2 units of itself: 2
 *                  - the sums are rounded by 1 each, and count U(3) and U(2) times, which are sin 4w / sin w and
 *                    sin 3w / sin w: 7
 *                  - a step adds 1, and the error of 2 cos w times what it multiplies; steps count U(2), U(1) and 1
 *                    times, 6 at most. That error is 4.6 where w is next to nothing (cosine, above: what is
 *                    subtracted vanishes), and at most 7.5 from where these sum up to 3.4: 34.5 with what is rounded
 *                70.3. What is above 1 is rounded by 2: of one row, that is 4 more. Of several it can only be where 1, 2,
 *                3 or 4 w (rows -1/2 to 7/2) are next to a multiple of pi. For 2, 3 and 4 these sums are small: with 4,
 *                sin 4w is next to nothing. Where w itself, or what it lacks of pi, is below 2^-10, they are 14, and the
 *                steps 39.6; but one part of the turning is next to nothing, and the other off by 2.3:
 *                                                                                  76.7, and the bound is 80
 *     rough      polynomials of 2^-49 and 2^-53.1, the phase to 2^-55 turns (2^-52.4), and roundings as above:
 *                                                                                              below 2^-48.6
 *
 * WAVE_SLACK_ROW is 2^-50, WAVE_SLACK_BLOCK 1.25 * 2^-49, also of AVX-512, whose sharp test turns by 7/2, too. The
 * cheap test of rows is made for 2^-47.
 */
#include "kernels/wave_types.h"

#include "core/bits.h"

#include <string.h>
#if PE_AVX2
#include <immintrin.h>
#endif

#define BLOCK WAVE_BLOCK
#define SPAN  (BLOCK * WAVE_BLOCKS)
#define FEW   (3 * BLOCK) /* rows for which a middle each is less work */

static PE_INLINE uint32_t float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* gcc unrolls so short a loop before it looks for vectors in it, and then finds few. */
#define EACH_LANE(l) _Pragma("GCC unroll 1") for (int l = 0; l < PE_WAVE_LANES; l++)

/* Where values go: the first kind of a pair at `first`, the second so many numbers behind; swapped, cosines are
 * the first kind. With step 2 all but the pointer and the stride are constants where this is used, so that both
 * kinds are written at once. */
struct target {
    float *first;
    ptrdiff_t behind;
    size_t step, stride;
    bool swap;
};

#define BY_TARGET(kernel, ...)                                                                               \
    if (out->step == 1) {                                                                                    \
        return kernel(__VA_ARGS__, (struct target){out->sin, out->cos - out->sin, 1, out->stride, false});   \
    }                                                                                                        \
    if (out->sin < out->cos) {                                                                               \
        return kernel(__VA_ARGS__, (struct target){out->sin, 1, 2, out->stride, false});                     \
    }                                                                                                        \
    return kernel(__VA_ARGS__, (struct target){out->cos, 1, 2, out->stride, true});

/* Where rows of a block begin, of either half of a group's columns. */
struct place {
    float *half[2];
    ptrdiff_t row; /* numbers */
    bool pairs;
};

static PE_INLINE void place_put(const struct place *to, ptrdiff_t row, size_t g,
                                const float v[PE_WAVE_COLUMNS]) {
    const size_t at = g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES), half = PE_WAVE_LANES * sizeof(float);
    memcpy(to->half[0] + row * to->row + at, v, half);
    memcpy(to->half[1] + row * to->row + at, v + PE_WAVE_LANES, half);
}

/* Blocks one after the other, with pairs or without as a constant. */
#define BY_PLACE(kernel)                                                                                     \
    const struct wave_order order = wave_order_of(out);                                                      \
    const ptrdiff_t row = (ptrdiff_t)out->stride, next = order.swap ? -row : row;                            \
    for (size_t block = 0; block < n_blocks; block++) {                                                      \
        const size_t at = block * WAVE_BLOCK * out->stride;                                                  \
        float *const first = order.swap ? out->cos + at + 7 * row : out->sin + at;                           \
        bad[block] = order.pairs ? kernel(steps, n, middles[block],                                          \
                                          &(struct place){{first, first + PE_WAVE_LANES}, next, true})       \
                                 : kernel(steps, n, middles[block],                                          \
                                          &(struct place){{first, out->cos + at}, row, false});              \
    }

#define EACH_COLUMN(j) _Pragma("GCC unroll 1") for (size_t j = 0; j < PE_WAVE_COLUMNS; j++)

#define TARGETED(x) x##_plain
#include "kernels/wave_rows.h"
#undef TARGETED

#include "kernels/wave_plain.h"

#if PE_AVX2
#include "kernels/fma_begin.h"
#define TARGETED(x) x##_avx2
#include "kernels/wave_rows.h"
#undef TARGETED
#include "kernels/wave_avx2.h"
#include "kernels/avx2_end.h"
#endif

static const struct wave_kernel *const kernels[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] =
        &(const struct wave_kernel){angles_plain, row_plain, middles_plain, blocks_plain, NULL},
#if PE_AVX2
    [PE_INSTRUCTIONS_AVX2] =
        &(const struct wave_kernel){angles_avx2, row_avx2, middles_avx2, blocks_avx2, NULL},
    [PE_INSTRUCTIONS_AVX512] = &pe_wave_avx512,
#endif
};

/* ---- Tables -------------------------------------------------------------------------------------------- */

static size_t groups_of(size_t n) {
    return n / PE_WAVE_LANES + (n % PE_WAVE_LANES != 0);
}

size_t pe_wave_bytes(size_t n) {
    return groups_of(n) * (sizeof(struct pe_wave_turns) + 2 * sizeof(struct pe_wave_step));
}

/* The number twice/2, which is a whole one or in the middle of two. */
static struct wave_x x_of_half(int64_t twice) {
    uint64_t magnitude = twice < 0 ? 0 - (uint64_t)twice : (uint64_t)twice;
    return (struct wave_x){.whole = magnitude >> 1, .fraction = magnitude << 63, .negative = twice < 0};
}

/* A turning for the columns of a group. */
static void step_put(struct pe_wave_step *step, int k, const struct wave_angle *angle, bool pairs) {
    for (size_t l = 0; l < PE_WAVE_LANES; l++) {
        const size_t sine = pairs ? 2 * l : l, cosine = pairs ? 2 * l + 1 : PE_WAVE_LANES + l;
        step->cos[k][sine] = step->cos[k][cosine] = angle->cos[l];
        step->sin[k][sine] = angle->sin[l];
        step->sin[k][cosine] = -angle->sin[l];
    }
}

/* unit: twice the least of them, which are 1, 3, 5 and 7 halves of it. */
static void steps_fill(const struct wave_kernel *kernel, const struct pe_wave_turns *turns, size_t n,
                       int64_t unit, bool pairs, struct pe_wave_step *steps) {
    struct wave_angle angle;
    for (int k = 0; k < PE_WAVE_TURNINGS; k++) {
        struct wave_x x = x_of_half((2 * k + 1) * unit);
        for (size_t g = 0; g < n; g++) {
            kernel->angles(turns + g, 1, &x, &angle);
            step_put(&steps[g], k, &angle, pairs);
        }
    }
    const struct wave_x whole = x_of_half(2 * unit);
    for (size_t g = 0; g < n; g++) {
        kernel->angles(turns + g, 1, &whole, &angle);
        for (size_t j = 0; j < PE_WAVE_COLUMNS; j++) {
            steps[g].twice_cos[j] = 2 * angle.cos[pairs ? j / 2 : j % PE_WAVE_LANES];
        }
    }
}

void pe_wave_open(struct pe_wave *wave, void *memory, const struct pe_turn *turns, size_t n, int64_t step,
                  bool pairs) {
    size_t groups = groups_of(n);
    *wave = (struct pe_wave){.exact = turns, .n = n, .step = step, .pairs = pairs, .turns = memory};
    wave->instructions = pe_instructions();
    for (size_t i = 0; i < groups * PE_WAVE_LANES; i++) {
        /* behind the last pair it again: at a phase of 0 rows would never be decided */
        const uint64_t *fraction = turns[i < n ? i : n - 1].fraction;
        wave->turns[i / PE_WAVE_LANES].high[i % PE_WAVE_LANES] = fraction[3];
        wave->turns[i / PE_WAVE_LANES].low[i % PE_WAVE_LANES] = fraction[2];
    }
    if (step) {
        wave->steps = (struct pe_wave_step *)(void *)(wave->turns + groups);
        wave->leaps = wave->steps + groups;
        steps_fill(kernels[wave->instructions], wave->turns, groups, step, pairs, wave->steps);
        steps_fill(kernels[wave->instructions], wave->turns, groups, BLOCK * step, pairs, wave->leaps);
    }
}

double pe_wave_value_ns(const struct pe_wave *wave) {
    static const double measured[PE_INSTRUCTIONS_COUNT] = {
        [PE_INSTRUCTIONS_PLAIN] = 3.5, [PE_INSTRUCTIONS_AVX2] = 1.8, [PE_INSTRUCTIONS_AVX512] = 0.6};
    return measured[wave->instructions];
}

struct pe_wave pe_wave_part(const struct pe_wave *wave, size_t first, size_t n) {
    struct pe_wave part = *wave;
    part.exact += first;
    part.turns += first / PE_WAVE_LANES;
    part.steps += wave->steps ? first / PE_WAVE_LANES : 0;
    part.leaps += wave->leaps ? first / PE_WAVE_LANES : 0;
    part.n = n;
    return part;
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* Groups first .. first+n-1 of some rows. */
struct chunk {
    const struct pe_wave *wave;
    const struct wave_kernel *kernel;
    size_t first, n;
    struct pe_wave_out out; /* of its first pair and row */
};

static struct pe_wave_out out_at(const struct pe_wave_out *out, size_t pair, size_t row) {
    struct pe_wave_out at = *out;
    at.sin += pair * out->step + row * out->stride;
    at.cos += pair * out->step + row * out->stride;
    return at;
}

/* A row's place, prepared for kernels; for what these leave over, too, if it is not the whole number `x`. */
struct where {
    struct wave_x words;
    const struct pe_place *place;
    int64_t x;
};

static struct where where_of(int64_t x) {
    return (struct where){.words = x_of_half(2 * x), .x = x};
}

/* Groups of a row that no kernel decided. */
static void row_exact(const struct chunk *chunk, const struct where *where, uint32_t bad,
                      const struct pe_wave_out *out) {
    struct pe_place place;
    if (where->place) {
        place = *where->place;
    } else {
        pe_place_of(&place, (double)where->x, 1, 0);
    }
    for (size_t g = 0; bad; g++, bad >>= 1) {
        size_t pair = (chunk->first + g) * PE_WAVE_LANES, left = chunk->wave->n - pair;
        struct pe_wave_out at = out_at(out, g * PE_WAVE_LANES, 0);
        if (bad & 1) {
            pe_phase_row(&place, chunk->wave->exact + pair, left < PE_WAVE_LANES ? left : PE_WAVE_LANES,
                         PE_DTYPE_F32, &(struct pe_phase_out){at.sin, at.cos, at.step, NULL});
        }
    }
}

static void chunk_row(const struct chunk *chunk, const struct where *where) {
    const struct pe_wave_turns *turns = chunk->wave->turns + chunk->first;
    uint32_t bad = chunk->kernel->row(turns, chunk->n, &where->words, &chunk->out);
    if (bad) {
        row_exact(chunk, where, bad, &chunk->out);
    }
}

/* Groups of a block that are in doubt, by rows. */
static void block_again(const struct chunk *chunk, int64_t x, int64_t step, uint32_t bad,
                        const struct pe_wave_out *out) {
    for (size_t g = 0; bad; g++, bad >>= 1) {
        for (size_t row = 0; bad & 1 && row < BLOCK; row++) {
            const struct where where = where_of(x + (int64_t)row * step);
            struct chunk one = *chunk;
            one.first += g;
            one.n = 1;
            one.out = out_at(out, g * PE_WAVE_LANES, row);
            chunk_row(&one, &where);
        }
    }
}

/* Rows x, x + step ..., at least eight, of some groups; the last eight may come twice, with the same bits. */
static void chunk_run(const struct chunk *chunk, int64_t x, int64_t step, size_t n) {
    const struct pe_wave *wave = chunk->wave;
    const struct pe_wave_turns *turns = wave->turns + chunk->first;
    const struct wave_order order = wave_order_of(&chunk->out);
    struct pe_wave_step made[2][WAVE_GROUPS];
    struct wave_anchor middles[WAVE_BLOCKS][WAVE_GROUPS];
    const struct pe_wave_step *steps = made[0], *leaps = made[1];
    if (wave->steps && wave->step == step && wave->pairs == order.pairs) {
        steps = wave->steps + chunk->first;
        leaps = wave->leaps + chunk->first;
    } else {
        steps_fill(chunk->kernel, turns, chunk->n, step, order.pairs, made[0]);
        if (n > FEW) {
            steps_fill(chunk->kernel, turns, chunk->n, BLOCK * step, order.pairs, made[1]);
        }
    }
    for (size_t done = 0, some; done < n; done += some) {
        done = n - done < BLOCK ? n - BLOCK : done;
        const bool alone = n - done < 2 * BLOCK || n <= FEW;
        some = alone ? BLOCK : n - done < SPAN ? (n - done) / BLOCK * BLOCK : SPAN;
        const int64_t at = x + (int64_t)done * step;
        const struct wave_x middle = x_of_half(2 * at + ((alone ? BLOCK : SPAN) - 1) * step);
        const struct pe_wave_out out = out_at(&chunk->out, 0, done);
        uint32_t bad[WAVE_BLOCKS];
        chunk->kernel->middles(turns, alone ? NULL : leaps, chunk->n, &middle, order, middles);
        chunk->kernel->blocks(steps, chunk->n, (const struct wave_anchor(*)[WAVE_GROUPS])middles,
                              some / BLOCK, &out, bad);
        for (size_t block = 0; block < some / BLOCK; block++) {
            const struct pe_wave_out to = out_at(&out, 0, block * BLOCK);
            block_again(chunk, at + (int64_t)(block * BLOCK) * step, step, bad[block], &to);
        }
    }
}

/* ---- Groups of which not all columns are there --------------------------------------------------------- */

/* Such a group, the last, is computed apart: */
struct margin {
    float values[SPAN][2 * PE_WAVE_LANES];
    size_t pair; /* its first */
};

static struct pe_wave_out margin_out(struct margin *margin, const struct pe_wave_out *out) {
    bool halves = out->step == 1, swap = out->cos < out->sin;
    float *first = margin->values[0], *second = first + (halves ? PE_WAVE_LANES : 1);
    return (struct pe_wave_out){.sin = swap ? second : first,
                                .cos = swap ? first : second,
                                .step = out->step,
                                .stride = 2 * PE_WAVE_LANES};
}

/* What there is of it, to rows row .. row+n-1. */
static void margin_copy(const struct margin *margin, size_t row, size_t n, const struct pe_wave_out *from,
                        const struct pe_wave_out *out) {
    struct pe_wave_out to = out_at(out, margin->pair, row);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * from->stride, behind = i * to.stride;
        for (size_t l = 0; margin->pair + l < out->n_sin; l++) {
            to.sin[behind + l * to.step] = from->sin[at + l * to.step];
        }
        for (size_t l = 0; margin->pair + l < out->n_cos; l++) {
            to.cos[behind + l * to.step] = from->cos[at + l * to.step];
        }
    }
}

/* Groups of which all columns are there. */
static size_t whole_groups(const struct pe_wave_out *out) {
    return (out->n_sin < out->n_cos ? out->n_sin : out->n_cos) / PE_WAVE_LANES;
}

/* ---- Any place ----------------------------------------------------------------------------------------- */

/* |x| in words; false if it is 2^64 or more. */
static bool words_of(const struct pe_place *place, struct wave_x *x) {
    const uint64_t *fixed = place->fixed;
    int bits = place->fraction_bits;
    *x = (struct wave_x){.negative = place->negative};
    if (place->n_fixed == 4) {
        x->whole = fixed[2];
        x->fraction = fixed[1];
        return fixed[3] == 0;
    }
    x->whole = bits < 64 ? fixed[0] >> bits : 0;
    if (bits > 0 && bits < 128) {
        x->fraction = bits <= 64 ? fixed[0] << (64 - bits) : fixed[0] >> (bits - 64);
    }
    return true;
}

/* x = 0. */
static void row_still(const struct pe_wave_out *out) {
    for (size_t i = 0; i < out->n_sin; i++) {
        out->sin[i * out->step] = 0;
    }
    for (size_t i = 0; i < out->n_cos; i++) {
        out->cos[i * out->step] = 1;
    }
}

static void row_moving(const struct pe_wave *wave, const struct where *where, const struct pe_wave_out *out) {
    struct chunk chunk = {.wave = wave, .kernel = kernels[wave->instructions]};
    size_t groups = whole_groups(out);
    for (; chunk.first < groups; chunk.first += chunk.n) {
        chunk.n = groups - chunk.first < WAVE_GROUPS ? groups - chunk.first : WAVE_GROUPS;
        chunk.out = out_at(out, chunk.first * PE_WAVE_LANES, 0);
        chunk_row(&chunk, where);
    }
    if (groups < groups_of(wave->n)) {
        struct margin margin;
        margin.pair = groups * PE_WAVE_LANES;
        chunk.n = 1;
        chunk.out = margin_out(&margin, out);
        chunk_row(&chunk, where);
        margin_copy(&margin, 0, 1, &chunk.out, out);
    }
}

void pe_wave_row(const struct pe_wave *wave, const struct pe_place *place, const struct pe_wave_out *out) {
    struct where where = {.place = place};
    if (place->zero) {
        row_still(out);
    } else if (words_of(place, &where.words)) {
        row_moving(wave, &where, out);
    } else {
        pe_phase_row(place, wave->exact, out->n_sin < out->n_cos ? out->n_sin : out->n_cos, PE_DTYPE_F32,
                     &(struct pe_phase_out){out->sin, out->cos, out->step, NULL});
        if (out->n_sin != out->n_cos) {
            size_t last = wave->n - 1;
            bool sine = out->n_sin > out->n_cos;
            pe_phase_row(place, wave->exact + last, 1, PE_DTYPE_F32,
                         &(struct pe_phase_out){.sin = sine ? out->sin + last * out->step : NULL,
                                                .cos = sine ? NULL : out->cos + last * out->step,
                                                .step = 1});
        }
    }
}

/* ---- Rows in equal steps ------------------------------------------------------------------------------- */

/* The last, incomplete group. */
static void margin_run(struct chunk *chunk, int64_t x, int64_t step, size_t n,
                       const struct pe_wave_out *out) {
    struct margin margin;
    margin.pair = chunk->first * PE_WAVE_LANES;
    chunk->n = 1;
    chunk->out = margin_out(&margin, out);
    for (size_t done = 0, some; done < n; done += some) {
        done = n - done < BLOCK ? n - BLOCK : done;
        some = n - done < SPAN ? n - done : SPAN;
        chunk_run(chunk, x + (int64_t)done * step, step, some);
        margin_copy(&margin, done, some, &chunk->out, out);
    }
}

/* Rows none of which is at 0. */
static void rows_moving(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                        const struct pe_wave_out *out) {
    struct chunk chunk = {.wave = wave, .kernel = kernels[wave->instructions]};
    size_t groups = whole_groups(out);
    if (n < BLOCK) {
        for (size_t row = 0; row < n; row++) {
            const struct where where = where_of(x + (int64_t)row * step);
            const struct pe_wave_out at = out_at(out, 0, row);
            row_moving(wave, &where, &at);
        }
        return;
    }
    for (; chunk.first < groups; chunk.first += chunk.n) {
        chunk.n = groups - chunk.first < WAVE_GROUPS ? groups - chunk.first : WAVE_GROUPS;
        chunk.out = out_at(out, chunk.first * PE_WAVE_LANES, 0);
        chunk_run(&chunk, x, step, n);
    }
    if (groups < groups_of(wave->n)) {
        margin_run(&chunk, x, step, n, out);
    }
}

void pe_wave_run(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                 const struct pe_wave_out *out) {
    /* rows at 0 are told apart: their sines are exact, and so never decided above */
    size_t before = n, still = 0;
    if (step == 0 && x == 0) {
        before = 0;
        still = n;
    } else if (step != 0 && x % step == 0 && x / step <= 0 && (uint64_t) - (x / step) < n) {
        before = (size_t) - (x / step);
        still = 1;
    }
    rows_moving(wave, x, step, before, out);
    for (size_t row = before; row < before + still; row++) {
        const struct pe_wave_out at = out_at(out, 0, row);
        row_still(&at);
    }
    if (before + still < n) {
        const struct pe_wave_out at = out_at(out, 0, before + still);
        rows_moving(wave, x + (int64_t)(before + still) * step, step, n - before - still, &at);
    }
    if (out->far && kernels[wave->instructions]->settle) {
        kernels[wave->instructions]->settle();
    }
}
