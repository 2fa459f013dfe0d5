/* SPDX-License-Identifier: MIT
 *
 * Sines and cosines of x * omega for many x, correctly rounded to float32 at the speed of memory.
 *
 * A phase is the fraction of a turn in 64 bits, by integer products as in core/phase.c: whole turns drop out,
 * however large x is. A polynomial in double makes sine and cosine of it (`row`). Where rows follow in equal
 * steps that is done once in 64 rows, at an anchor a in the middle of eight rows; they are a + b and a - b for b
 * of 1/2, 3/2, 5/2 and 7/2 steps, and
 *
 *     sin(a + b) = sin a cos b + cos a sin b          cos(a + b) = cos a cos b - sin a sin b
 *     sin(a - b) = sin a cos b - cos a sin b          cos(a - b) = cos a cos b + sin a sin b
 *
 * so that four products and four sums make four values (`block`). Then the anchor is turned on by 8 steps.
 *
 * Rounding is decided as in core/phase.c, after Ziv: v is within a bound of the true value, so when v - bound and
 * v + bound round to the same float, the true value does, too, as rounding is monotonic. If they do not, eight
 * rows of a block are computed again by `row`, whose bound is smaller, and what that does not decide goes to
 * pe_phase_row. So the bits are those of pe_phase_row, on every instruction set, in every order of rows, and
 * whether the compiler fuses or not.
 *
 * The bounds, absolute; a double of magnitude up to 1 is rounded by at most 2^-54:
 *
 *     phase      t cut to 128 bits, products and x cut: below 8 of 2^-64 turns; then cut to the 54 bits below
 *                an eighth, with half a unit added: 2^-55 turns. Times 2 pi                            2^-52.3
 *     sine       polynomial 2^-55.9; in Horner's scheme each step halves, at least, what the one before left
 *                behind (z * coefficient ratio <= 0.33), so the sum P is right to 2^-53 * 1.5 of 2*pi, z adds
 *                as much, and the product with u rounds once: 2^-51.5 of a value <= 0.71              2^-52.0
 *     cosine     polynomial 2^-53.1; z and the sums before the last: 2^-53 * 3 of a term <= 0.3; the last sum
 *                2^-54                                                                                2^-52.0
 *     ROW        phase and one of them: 2^-52.3 + 2^-52.0 = 2^-51.1; adding the bound rounds v: 2^-53;
 *                together                                                                    below 2^-50.7
 *     BLOCK      as vectors (cos, sin): an anchor is off by sqrt(2) * 2^-51.1 = 2^-50.6, so is a turning; each
 *                turn adds its factor's error and two products and a sum, 2^-54 + 2^-54 + 2^-53 per component
 *                (less when fused), 2^-51.5 as a vector: 2^-50.0 in all; lengths stay below 1 + 2^-46, which
 *                changes nothing of this. Seven turnings on and one aside after the anchor: 2^-50.6 + 8 * 2^-50.0
 *                = 2^-46.9, and 2^-53 for adding the bound                                     below 2^-46.8
 *
 * WAVE_SLACK_ROW is 2^-50, and WAVE_SLACK_BLOCK 2^-46. A value v is in doubt when a tie is as near as that; floats
 * at 2^-k are 2^(-k-24) apart, and values that small are as rare as 2^-k, so each k adds a chance of some 2^-21:
 * one value in 300,000 for BLOCK.
 */
#include "kernels/wave_types.h"

#include <string.h>

#define SPAN  64 /* rows between anchors that are computed, see BLOCK */
#define BLOCK 8  /* rows */

#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

static INLINE double as_double(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static INLINE uint64_t as_bits(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static INLINE uint32_t float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* gcc unrolls so short a loop before it looks for vectors in it, and then finds few. */
#define EACH_LANE(l) _Pragma("GCC unroll 1") for (int l = 0; l < PE_WAVE_LANES; l++)

/* Where values go: the first kind of a pair at `first`, which with step 2 is followed by the second; swapped,
 * cosines are the first kind. All but the pointers and the stride are constants where it is used. */
struct target {
    float *first, *second;
    size_t step, stride;
    bool swap;
};

#define BY_TARGET(kernel, ...)                                                                               \
    const size_t stride = out->stride;                                                                       \
    if (out->step == 1) {                                                                                    \
        return kernel(__VA_ARGS__, (struct target){out->sin, out->cos, 1, stride, false});                   \
    }                                                                                                        \
    if (out->sin < out->cos) {                                                                               \
        return kernel(__VA_ARGS__, (struct target){out->sin, out->sin + 1, 2, stride, false});               \
    }                                                                                                        \
    return kernel(__VA_ARGS__, (struct target){out->cos, out->cos + 1, 2, stride, true});

#define TARGETED(x) x##_plain
#include "kernels/wave_rows.h"
#undef TARGETED

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define TARGETED(x) x##_avx2
#include "kernels/wave_rows.h"
#undef TARGETED
#include "kernels/avx2_end.h"
#endif

static const struct wave_kernel *const kernels[PE_WAVE_SETS] = {
    [PE_WAVE_PLAIN] = &(const struct wave_kernel){anchors_plain, row_plain, block_plain, NULL},
#if PE_AVX2
    [PE_WAVE_AVX2] = &(const struct wave_kernel){anchors_avx2, row_avx2, block_avx2, NULL},
    [PE_WAVE_AVX512] = &pe_wave_avx512,
#endif
};

unsigned pe_wave_sets(void) {
    return 1U << PE_WAVE_PLAIN | (unsigned)pe_has_avx2() << PE_WAVE_AVX2 |
           (unsigned)pe_has_avx512() << PE_WAVE_AVX512;
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

static size_t groups_of(size_t n) {
    return n / PE_WAVE_LANES + (n % PE_WAVE_LANES != 0);
}

size_t pe_wave_bytes(size_t n) {
    return groups_of(n) * (sizeof(struct pe_wave_turns) + sizeof(struct pe_wave_step));
}

/* The number twice/2, which is a whole one or in the middle of two. */
static struct wave_x x_of_half(int64_t twice) {
    uint64_t magnitude = twice < 0 ? 0 - (uint64_t)twice : (uint64_t)twice;
    return (struct wave_x){.whole = magnitude >> 1, .fraction = magnitude << 63, .negative = twice < 0};
}

static void steps_fill(const struct wave_kernel *kernel, const struct pe_wave_turns *turns, size_t n,
                       int64_t step, struct pe_wave_step *steps) {
    static const int64_t twice[PE_WAVE_TURNINGS] = {1, 3, 5, 7, 2 * (int64_t)BLOCK};
    struct wave_anchor angle;
    for (int k = 0; k < PE_WAVE_TURNINGS; k++) {
        struct wave_x x = x_of_half(twice[k] * step);
        for (size_t g = 0; g < n; g++) {
            kernel->anchors(turns + g, 1, &x, &angle);
            memcpy(steps[g].cos[k], angle.cos, sizeof angle.cos);
            memcpy(steps[g].sin[k], angle.sin, sizeof angle.sin);
        }
    }
}

void pe_wave_open(struct pe_wave *wave, void *memory, const struct pe_turn *turns, size_t n, int64_t step,
                  unsigned sets) {
    size_t groups = groups_of(n);
    *wave = (struct pe_wave){.exact = turns, .n = n, .step = step, .turns = memory};
    for (int set = 0; set < PE_WAVE_SETS; set++) {
        wave->set = sets >> set & 1 ? (enum pe_wave_set)set : wave->set;
    }
    for (size_t i = 0; i < groups * PE_WAVE_LANES; i++) {
        /* behind the last pair it again: at a phase of 0 rows would never be decided */
        const uint64_t *fraction = turns[i < n ? i : n - 1].fraction;
        wave->turns[i / PE_WAVE_LANES].high[i % PE_WAVE_LANES] = fraction[3];
        wave->turns[i / PE_WAVE_LANES].low[i % PE_WAVE_LANES] = fraction[2];
    }
    if (step != 0) {
        wave->steps = (struct pe_wave_step *)(void *)(wave->turns + groups);
        steps_fill(kernels[wave->set], wave->turns, groups, step, wave->steps);
    }
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

/* Groups of a row that no kernel decided. */
static void row_exact(const struct chunk *chunk, const struct pe_place *place, uint32_t bad,
                      const struct pe_wave_out *out) {
    for (size_t g = 0; bad; g++, bad >>= 1) {
        size_t pair = (chunk->first + g) * PE_WAVE_LANES, left = chunk->wave->n - pair;
        struct pe_wave_out at = out_at(out, g * PE_WAVE_LANES, 0);
        if (bad & 1) {
            pe_phase_row(place, chunk->wave->exact + pair, left < PE_WAVE_LANES ? left : PE_WAVE_LANES,
                         PE_DTYPE_F32, &(struct pe_phase_out){at.sin, at.cos, at.step, NULL});
        }
    }
}

/* Groups of a block that are in doubt, by rows. */
static void block_again(const struct chunk *chunk, int64_t x, int64_t step, uint32_t bad,
                        const struct pe_wave_out *out) {
    for (size_t g = 0; bad; g++, bad >>= 1) {
        if (!(bad & 1)) {
            continue;
        }
        for (size_t row = 0; row < BLOCK; row++) {
            struct chunk one = *chunk;
            struct pe_wave_out at = out_at(out, g * PE_WAVE_LANES, row);
            struct wave_x x_row = x_of_half(2 * (x + (int64_t)row * step));
            one.first += g;
            if (chunk->kernel->row(chunk->wave->turns + one.first, 1, &x_row, &at)) {
                struct pe_place place;
                pe_place_of(&place, (double)(x + (int64_t)row * step), 1, 0);
                row_exact(&one, &place, 1, &at);
            }
        }
    }
}

/* Rows x, x + step ..., at least eight, of some groups; the last eight may come twice, with the same bits. */
static void chunk_run(const struct chunk *chunk, int64_t x, int64_t step, size_t n) {
    const struct pe_wave *wave = chunk->wave;
    struct pe_wave_step made[WAVE_GROUPS];
    struct wave_anchor anchors[WAVE_GROUPS];
    const struct pe_wave_step *steps = made;
    if (wave->steps && wave->step == step) {
        steps = wave->steps + chunk->first;
    } else {
        steps_fill(chunk->kernel, wave->turns + chunk->first, chunk->n, step, made);
    }
    for (size_t done = 0; done < n; done += BLOCK) {
        bool last = n - done < BLOCK;
        done = last ? n - BLOCK : done;
        int64_t at = x + (int64_t)done * step;
        struct pe_wave_out out = out_at(&chunk->out, 0, done);
        if (last || done % SPAN == 0) {
            struct wave_x middle = x_of_half(2 * at + (BLOCK - 1) * step);
            chunk->kernel->anchors(wave->turns + chunk->first, chunk->n, &middle, anchors);
        }
        uint32_t bad = chunk->kernel->block(steps, chunk->n, anchors, &out);
        if (bad) {
            block_again(chunk, at, step, bad, &out);
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

/* |x| in words, below 2^64. */
static bool x_of_place(const struct pe_place *place, struct wave_x *x) {
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

static void chunk_row(const struct chunk *chunk, const struct pe_place *place) {
    struct wave_x x;
    uint32_t bad = UINT32_MAX >> (32 - chunk->n);
    if (x_of_place(place, &x)) {
        bad = chunk->kernel->row(chunk->wave->turns + chunk->first, chunk->n, &x, &chunk->out);
    }
    row_exact(chunk, place, bad, &chunk->out);
}

void pe_wave_row(const struct pe_wave *wave, const struct pe_place *place, const struct pe_wave_out *out) {
    struct chunk chunk = {.wave = wave, .kernel = kernels[wave->set]};
    size_t groups = whole_groups(out);
    if (place->zero) {
        row_still(out);
        return;
    }
    for (; chunk.first < groups; chunk.first += chunk.n) {
        chunk.n = groups - chunk.first < WAVE_GROUPS ? groups - chunk.first : WAVE_GROUPS;
        chunk.out = out_at(out, chunk.first * PE_WAVE_LANES, 0);
        chunk_row(&chunk, place);
    }
    if (groups < groups_of(wave->n)) {
        struct margin margin = {.pair = groups * PE_WAVE_LANES};
        chunk.n = 1;
        chunk.out = margin_out(&margin, out);
        chunk_row(&chunk, place);
        margin_copy(&margin, 0, 1, &chunk.out, out);
    }
}

/* ---- Rows in equal steps ------------------------------------------------------------------------------- */

static void rows_singly(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                        const struct pe_wave_out *out) {
    for (size_t row = 0; row < n; row++) {
        struct pe_wave_out at = out_at(out, 0, row);
        struct pe_place place;
        pe_place_of(&place, (double)(x + (int64_t)row * step), 1, 0);
        pe_wave_row(wave, &place, &at);
    }
}

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
    struct chunk chunk = {.wave = wave, .kernel = kernels[wave->set]};
    size_t groups = whole_groups(out);
    if (n < BLOCK) {
        rows_singly(wave, x, step, n, out);
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
    size_t before = n; /* rows before one at 0, whose sines are exact, and so never decided above */
    if (step != 0 && x % step == 0 && x / step <= 0 && (uint64_t) - (x / step) < n) {
        before = (size_t) - (x / step);
    } else if (step == 0 && x == 0) {
        before = 0;
    }
    rows_moving(wave, x, step, before, out);
    if (before < n) {
        struct pe_wave_out at = out_at(out, 0, before);
        row_still(&at);
        at = out_at(out, 0, before + 1);
        rows_moving(wave, x + (int64_t)(before + 1) * step, step, n - before - 1, &at);
    }
    if (out->far && kernels[wave->set]->settle) {
        kernels[wave->set]->settle();
    }
}
