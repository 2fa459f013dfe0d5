/* SPDX-License-Identifier: MIT
 *
 * The kernels of wave.c for AVX-512: one group is one register of doubles, and a row of it, sines and cosines,
 * one store of 64 bytes. Products are fused with the addition of the slack.
 */
#include "kernels/wave_types.h"

#if PE_AVX2

#include "core/bits.h"

#include <immintrin.h>

#include "kernels/avx512_begin.h"

#include "kernels/wave_avx512_angles.h"

static void angles(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                   struct wave_angle *out) {
    for (size_t g = 0; g < n; g++) {
        struct angles a = fine(&turns[g], x);
        _mm512_storeu_pd(out[g].cos, a.cos);
        _mm512_storeu_pd(out[g].sin, a.sin);
    }
}

/* Where sines and cosines go, in bytes from row to row and group to group. */
struct target {
    bool halves;
    __m512i order;   /* of sixteen numbers, sines first, in memory */
    char *sin, *cos; /* unless halves the first kind is at `sin` */
};

static PE_INLINE struct target target_of(const struct pe_wave_out *out, bool halves) {
    const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    bool swap = !halves && out->cos < out->sin;
    return (struct target){.halves = halves,
                           .order = _mm512_xor_si512(order, _mm512_set1_epi32(swap ? 16 : 0)),
                           .sin = (char *)(swap ? out->cos : out->sin),
                           .cos = (char *)out->cos};
}

static PE_INLINE void put(const struct target *to, size_t at, __m256 s, __m256 c) {
    float *sin = (float *)(void *)(to->sin + at);
    if (to->halves) {
        _mm256_storeu_ps(sin, s);
        _mm256_storeu_ps((float *)(void *)(to->cos + at), c);
    } else {
        _mm512_storeu_ps(
            sin, _mm512_permutex2var_ps(_mm512_castps256_ps512(s), to->order, _mm512_castps256_ps512(c)));
    }
}

/* ---- The cheap test, by the bits of doubles ------------------------------------------------------------ */

/* In lower words distances above a tie, in upper ones magnitudes. */
static PE_INLINE __m512i seen(__m512d v) {
    /* (a & b) ^ c */
    return _mm512_ternarylogic_epi64(_mm512_castpd_si512(v), _mm512_set1_epi64((long long)WAVE_SEEN),
                                     _mm512_set1_epi64((long long)WAVE_TIE), 0x6a);
}

static PE_INLINE bool doubtful(__m512i least) {
    return _mm512_cmplt_epu32_mask(least, _mm512_set1_epi64((long long)WAVE_NEAR)) != 0;
}

/* The least of what is seen of both. */
static PE_INLINE __m512i put_rough(const struct target *to, size_t at, __m512d s, __m512d c) {
    put(to, at, _mm512_cvtpd_ps(s), _mm512_cvtpd_ps(c));
    return _mm512_min_epu32(seen(s), seen(c));
}

/* ---- The sharp test: round both bounds ----------------------------------------------------------------- */

static PE_INLINE __m256i differing(__m256i differ, __m512d v, __m512d slack) {
    const __m256 up = _mm512_cvtpd_ps(_mm512_add_pd(v, slack)),
                 down = _mm512_cvtpd_ps(_mm512_sub_pd(v, slack));
    /* a | (b ^ c) */
    return _mm256_ternarylogic_epi32(differ, _mm256_castps_si256(up), _mm256_castps_si256(down), 0xf6);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static bool row_again(const struct pe_wave_turns *turns, const struct wave_x *x, const struct target *to,
                      size_t at) {
    const struct angles a = fine(turns, x);
    const __m512d slack = _mm512_set1_pd(WAVE_SLACK_ROW);
    put(to, at, _mm512_cvtpd_ps(a.sin), _mm512_cvtpd_ps(a.cos));
    const __m256i differ = differing(differing(_mm256_setzero_si256(), a.sin, slack), a.cos, slack);
    return !_mm256_testz_si256(differ, differ);
}

static PE_INLINE uint32_t row_of(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                                 const struct pe_wave_out *out, bool halves, bool is_short) {
    const struct target to = target_of(out, halves);
    const size_t group = halves ? 32 : 64;
    uint32_t bad = 0;
    size_t g = 0;
    struct phases next = n < ABREAST ? (struct phases){0} : phases_of(turns, x, is_short);
    for (; g + ABREAST <= n; g += ABREAST) {
        struct angles a[ABREAST];
        __m512i least[ABREAST], all = _mm512_set1_epi32(-1);
        const struct phases now = next;
        /* before polynomials, which keep the processor waiting; of the last groups in vain */
        next = phases_of(&turns[g + 2 * ABREAST <= n ? g + ABREAST : g], x, is_short);
        rough(&now, a);
        EACH least[j] = put_rough(&to, (g + (size_t)j) * group, a[j].sin, a[j].cos);
        EACH all = _mm512_min_epu32(all, least[j]);
        for (size_t j = 0; doubtful(all) && j < ABREAST; j++) {
            if (doubtful(least[j])) {
                bad |= (uint32_t)row_again(&turns[g + j], x, &to, (g + j) * group) << (g + j);
            }
        }
    }
    for (; g < n; g++) {
        bad |= (uint32_t)row_again(&turns[g], x, &to, g * group) << g;
    }
    return bad;
}

static uint32_t row(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                    const struct pe_wave_out *out) {
    if (x->whole >> 32 == 0 && x->fraction == 0 && !x->negative) {
        return out->step == 1 ? row_of(turns, n, x, out, true, true) : row_of(turns, n, x, out, false, true);
    }
    return out->step == 1 ? row_of(turns, n, x, out, true, false) : row_of(turns, n, x, out, false, false);
}

/* ---- Middles of blocks --------------------------------------------------------------------------------- */

/* Sixteen columns, and their partners. */
struct columns {
    __m512d v[2], w[2];
};

static PE_INLINE struct columns partnered(__m512d first, __m512d second, bool pairs) {
    return (struct columns){
        {first, second},
        {pairs ? _mm512_permute_pd(first, 0x55) : second, pairs ? _mm512_permute_pd(second, 0x55) : first}};
}

static PE_INLINE struct columns arranged(struct angles a, struct wave_order order) {
    const __m512d raise = _mm512_set1_pd(WAVE_RAISE);
    const __m512d s = _mm512_mul_pd(a.sin, raise), c = _mm512_mul_pd(a.cos, raise);
    const __m512i flip = _mm512_set1_epi64(order.swap ? 8 : 0);
    const __m512i low = _mm512_xor_si512(_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), flip);
    const __m512i high = _mm512_xor_si512(_mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), flip);
    return order.pairs
               ? partnered(_mm512_permutex2var_pd(s, low, c), _mm512_permutex2var_pd(s, high, c), true)
               : partnered(s, c, false);
}

/* Eight columns turned by an angle, both ways. */
struct turned {
    __m512d lower, upper;
};

static PE_INLINE struct turned turn(const struct columns *a, size_t half, const double *cos,
                                    const double *sin) {
    const __m512d cb = _mm512_loadu_pd(cos + 8 * half), sb = _mm512_loadu_pd(sin + 8 * half);
    const __m512d p = _mm512_mul_pd(a->v[half], cb);
    return (struct turned){_mm512_fnmadd_pd(a->w[half], sb, p), _mm512_fmadd_pd(a->w[half], sb, p)};
}

static void middles(const struct pe_wave_turns *turns, const struct pe_wave_step *leaps, size_t n,
                    const struct wave_x *x, struct wave_order order, struct wave_anchor (*out)[WAVE_GROUPS]) {
    for (size_t g = 0; g < n; g++) {
        const struct columns a = arranged(fine(&turns[g], x), order);
        for (size_t half = 0; half < 2; half++) {
            if (!leaps) {
                _mm512_storeu_pd(out[0][g].column + 8 * half, a.v[half]);
                continue;
            }
            for (size_t k = 0; k < 4; k++) {
                const struct turned t = turn(&a, half, leaps[g].cos[k], leaps[g].sin[k]);
                _mm512_storeu_pd(out[order.swap ? 4 + k : 3 - k][g].column + 8 * half, t.lower);
                _mm512_storeu_pd(out[order.swap ? 3 - k : 4 + k][g].column + 8 * half, t.upper);
            }
        }
    }
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* Where rows of a block begin, of either half of a group's columns, and how to write. */
struct place {
    char *half[2];
    ptrdiff_t row, block; /* bytes from one to the next */
    bool pairs, far;
};

static PE_INLINE float *place_at(const struct place *to, ptrdiff_t row, size_t half, size_t g) {
    return (float *)(void *)(to->half[half] + row * to->row + (ptrdiff_t)(g * (to->pairs ? 64 : 32)));
}

/* A group's columns of a row. Past the caches whole lines go in one piece: halves of eight rows at a time would be more
 * than processors gather. */
static PE_INLINE void place_put(const struct place *to, ptrdiff_t row, size_t g, __m512d first,
                                __m512d second) {
    const __m256 a = _mm512_cvtpd_ps(first), b = _mm512_cvtpd_ps(second);
    if (to->far) {
        _mm512_stream_ps(place_at(to, row, 0, g), _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1));
    } else {
        _mm256_storeu_ps(place_at(to, row, 0, g), a);
        _mm256_storeu_ps(place_at(to, row, 1, g), b);
    }
}

/* Of sixteen doubles those words that tell distances above a tie, and magnitudes. */
static PE_INLINE __m512i seen_words(__m512d a, __m512d b) {
    const __m512i words = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31,
                                           29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    const __m512i both = _mm512_permutex2var_epi16(_mm512_castpd_si512(a), words, _mm512_castpd_si512(b));
    /* (a & b) ^ c */
    return _mm512_ternarylogic_epi32(both, _mm512_set1_epi32(WAVE_SEEN_WORDS),
                                     _mm512_set1_epi32(WAVE_TIE_WORDS), 0x6a);
}

/* Two bits for each of sixteen columns. */
static PE_INLINE uint32_t doubtful_columns(__m512i least) {
    return _mm512_cmplt_epu16_mask(least, _mm512_set1_epi32(WAVE_NEAR_WORDS));
}

static PE_INLINE struct columns columns_of(const struct wave_anchor *anchor, bool pairs) {
    return partnered(_mm512_loadu_pd(anchor->column), _mm512_loadu_pd(anchor->column + 8), pairs);
}

/* Two rows of a group, one at either side of its middle. */
struct rows {
    struct turned first, second; /* halves of them */
};

/* What is at the other side. */
static PE_INLINE struct turned opposite(struct turned a) {
    return (struct turned){a.upper, a.lower};
}

/* One row farther from the middle. */
static PE_INLINE struct turned farther(struct turned now, struct turned before, const double *twice_cos) {
    const __m512d c = _mm512_loadu_pd(twice_cos);
    return (struct turned){_mm512_fmsub_pd(c, now.lower, before.lower),
                           _mm512_fmsub_pd(c, now.upper, before.upper)};
}

/* Unless it is unrolled all registers are moved in each round. */
#define EACH_ROW(k) _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)

static PE_INLINE __m512i least_of(const struct rows *rows) {
    return _mm512_min_epu16(seen_words(rows->first.lower, rows->second.lower),
                            seen_words(rows->first.upper, rows->second.upper));
}

/* doubts: of each group, as doubtful_columns has them. They are looked at when all blocks are made: a branch here would
 * be one that no processor foretells. */
static PE_INLINE void block_of(const struct pe_wave_step *steps, size_t n, const struct wave_anchor *anchors,
                               const struct place *to, uint32_t doubts[WAVE_GROUPS]) {
    for (size_t g = 0; g < n; g++) {
        const struct columns a = columns_of(&anchors[g], to->pairs);
        struct rows rows = {turn(&a, 0, steps[g].cos[0], steps[g].sin[0]),
                            turn(&a, 1, steps[g].cos[0], steps[g].sin[0])};
        struct rows before = {opposite(rows.first), opposite(rows.second)};
        __m512i least = _mm512_set1_epi32(-1);
        EACH_ROW(k) {
            place_put(to, 3 - k, g, rows.first.lower, rows.second.lower);
            place_put(to, 4 + k, g, rows.first.upper, rows.second.upper);
            least = _mm512_min_epu16(least, least_of(&rows));
            const struct rows next = {farther(rows.first, before.first, steps[g].twice_cos),
                                      farther(rows.second, before.second, steps[g].twice_cos + 8)};
            before = rows;
            rows = next;
        }
        doubts[g] = doubtful_columns(least);
    }
}

#include "kernels/wave_avx512_doubts.h"

static PE_INLINE void blocks_of(const struct pe_wave_step *steps, size_t n,
                                const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                                const struct place *first, uint32_t bad[WAVE_BLOCKS]) {
    uint32_t doubts[WAVE_BLOCKS][WAVE_GROUPS];
    for (size_t block = 0; block < n_blocks; block++) {
        const struct place to = place_block(first, block);
        block_of(steps, n, middles[block], &to, doubts[block]);
        bad[block] = 0;
    }
    for (size_t half = 0; half < n_blocks; half += WAVE_BLOCKS / 2) {
        const size_t some = n_blocks - half < WAVE_BLOCKS / 2 ? n_blocks - half : WAVE_BLOCKS / 2;
        for (uint64_t left = doubtful_groups(&doubts[half], n, some); left; left &= left - 1) {
            const size_t i = (size_t)__builtin_ctzll(left), g = i % WAVE_GROUPS,
                         block = half + i / WAVE_GROUPS;
            const struct place to = place_block(first, block);
            bad[block] |= (uint32_t)group_again(&steps[g], &middles[block][g], &to, g, doubts[block][g]) << g;
        }
    }
}

static void blocks(const struct pe_wave_step *steps, size_t n,
                   const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                   const struct pe_wave_out *out, uint32_t bad[WAVE_BLOCKS]) {
    const struct wave_order order = wave_order_of(out);
    const ptrdiff_t row = (ptrdiff_t)(out->stride * sizeof(float)), block = WAVE_BLOCK * row;
    if (!order.pairs) {
        const struct place to = {{(char *)out->sin, (char *)out->cos}, row, block, false, false};
        blocks_of(steps, n, middles, n_blocks, &to, bad);
        return;
    }
    char *first = (char *)(order.swap ? out->cos : out->sin) + (order.swap ? 7 * row : 0);
    const ptrdiff_t next = order.swap ? -row : row;
    if (out->far && (uintptr_t)first % 64 == 0 && row % 64 == 0) {
        blocks_of(steps, n, middles, n_blocks, &(struct place){{first, first + 32}, next, block, true, true},
                  bad);
    } else {
        blocks_of(steps, n, middles, n_blocks, &(struct place){{first, first + 32}, next, block, true, false},
                  bad);
    }
}

static void settle(void) {
    _mm_sfence();
}

const struct wave_kernel pe_wave_avx512 = {angles, row, middles, blocks, settle};

#include "kernels/avx512_end.h"

#endif
