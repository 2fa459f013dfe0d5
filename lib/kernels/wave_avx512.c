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

struct angles {
    __m512d cos, sin;
};

/* The phase of a group at x, in 2^-64 turns. */
static PE_INLINE __m512i phase(const struct pe_wave_turns *turns, const struct wave_x *x) {
    const __m512i high = _mm512_loadu_si512(turns->high), low = _mm512_loadu_si512(turns->low);
    const __m512i w0 = _mm512_set1_epi64((long long)(x->whole & UINT32_MAX));
    const __m512i low_upper = _mm512_srli_epi64(low, 32);
    __m512i p = _mm512_mullo_epi64(high, _mm512_set1_epi64((long long)x->whole));
    p = _mm512_add_epi64(p, _mm512_srli_epi64(_mm512_mul_epu32(low_upper, w0), 32));
    if (x->whole >> 32) {
        const __m512i w1 = _mm512_set1_epi64((long long)(x->whole >> 32));
        p = _mm512_add_epi64(p, _mm512_mul_epu32(low_upper, w1));
        p = _mm512_add_epi64(p, _mm512_srli_epi64(_mm512_mul_epu32(low, w1), 32));
    }
    if (x->fraction) {
        const __m512i y0 = _mm512_set1_epi64((long long)(x->fraction & UINT32_MAX));
        const __m512i y1 = _mm512_set1_epi64((long long)(x->fraction >> 32));
        const __m512i high_upper = _mm512_srli_epi64(high, 32);
        p = _mm512_add_epi64(p, _mm512_mul_epu32(high_upper, y1));
        p = _mm512_add_epi64(p, _mm512_srli_epi64(_mm512_mul_epu32(high, y1), 32));
        p = _mm512_add_epi64(p, _mm512_srli_epi64(_mm512_mul_epu32(high_upper, y0), 32));
    }
    return x->negative ? _mm512_sub_epi64(_mm512_setzero_si512(), p) : p;
}

/* The doubles [1/4, 1/2) whose mantissas are the 52 bits below the two on top. */
static PE_INLINE __m512d mantissa(__m512i p) {
    /* (p >> 10 & mantissa) | quarter */
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(_mm512_srli_epi64(p, 10),
                                                         _mm512_set1_epi64((long long)WAVE_MANTISSA),
                                                         _mm512_set1_epi64((long long)WAVE_QUARTER), 0xea));
}

/* From the octant to the quarter that the two bits on top of p tell. */
static PE_INLINE struct angles unfold(__m512d s, __m512d c, __m512i p) {
    const __m512i top = _mm512_set1_epi64(INT64_MIN);
    const __mmask8 odd = _mm512_test_epi64_mask(p, _mm512_set1_epi64(INT64_C(1) << 62));
    const __m512i sine = _mm512_castpd_si512(_mm512_mask_blend_pd(odd, s, c));
    const __m512i cosine = _mm512_castpd_si512(_mm512_mask_blend_pd(odd, c, s));
    const __m512i shifted = _mm512_add_epi64(p, _mm512_set1_epi64(INT64_C(1) << 62));
    /* the signs: a ^ (b & top) */
    return (struct angles){
        .sin = _mm512_castsi512_pd(_mm512_ternarylogic_epi64(sine, p, top, 0x78)),
        .cos = _mm512_castsi512_pd(_mm512_ternarylogic_epi64(cosine, shifted, top, 0x78)),
    };
}

#define TERM(sum, coefficient) _mm512_fmadd_pd(sum, z, _mm512_set1_pd(coefficient))

/* The same less exactly, and of several groups side by side: one alone would wait for its own results. */
#define ABREAST 4
#define EACH    for (int j = 0; j < ABREAST; j++)

static PE_INLINE void rough(const struct pe_wave_turns *turns, const struct wave_x *x,
                            struct angles out[ABREAST]) {
    __m512i p[ABREAST];
    __m512d u[ABREAST], z[ABREAST], s[ABREAST], c[ABREAST];
    EACH p[j] = _mm512_add_epi64(phase(&turns[j], x), _mm512_set1_epi64((long long)WAVE_ROUNDING));
    EACH u[j] = _mm512_sub_pd(mantissa(p[j]), _mm512_set1_pd(WAVE_MIDDLE));
    EACH z[j] = _mm512_mul_pd(u[j], u[j]);
#define TERM_EACH(sum, coefficient)                                                                          \
    EACH sum[j] = _mm512_fmadd_pd(sum[j], z[j], _mm512_set1_pd((coefficient)*WAVE_LIFT));
    EACH s[j] = _mm512_set1_pd(WAVE_ROUGH_SIN_5 * WAVE_LIFT);
    EACH c[j] = _mm512_set1_pd(WAVE_ROUGH_COS_6 * WAVE_LIFT);
    TERM_EACH(c, WAVE_ROUGH_COS_5)
    TERM_EACH(s, WAVE_ROUGH_SIN_4)
    TERM_EACH(c, WAVE_ROUGH_COS_4)
    TERM_EACH(s, WAVE_ROUGH_SIN_3)
    TERM_EACH(c, WAVE_ROUGH_COS_3)
    TERM_EACH(s, WAVE_ROUGH_SIN_2)
    TERM_EACH(c, WAVE_ROUGH_COS_2)
    TERM_EACH(s, WAVE_ROUGH_SIN_1)
    TERM_EACH(c, WAVE_ROUGH_COS_1)
    TERM_EACH(s, WAVE_ROUGH_SIN_0)
    TERM_EACH(c, 1.0)
    EACH s[j] = _mm512_mul_pd(s[j], u[j]);
    EACH out[j] = unfold(s[j], c[j], p[j]);
}

static PE_INLINE struct angles fine(const struct pe_wave_turns *turns, const struct wave_x *x) {
    const __m512i p = _mm512_add_epi64(phase(turns, x), _mm512_set1_epi64((long long)WAVE_EIGHTH));
    const __m512d u = _mm512_sub_pd(mantissa(p), _mm512_set1_pd(WAVE_MIDDLE));
    const __m512d z = _mm512_mul_pd(u, u);
    /* what of the phase is not in u: ten bits */
    const __m512i cut = _mm512_ternarylogic_epi64(p, _mm512_set1_epi64((long long)WAVE_CUT),
                                                  _mm512_castpd_si512(_mm512_set1_pd(WAVE_LARGE)), 0xea);
    const __m512d rest = _mm512_mul_pd(_mm512_sub_pd(_mm512_castsi512_pd(cut), _mm512_set1_pd(WAVE_LARGE)),
                                       _mm512_set1_pd(WAVE_CUT_UNIT));
    __m512d s = TERM(_mm512_set1_pd(WAVE_SIN_6), WAVE_SIN_5);
    __m512d c = TERM(_mm512_set1_pd(WAVE_COS_7), WAVE_COS_6);
    s = TERM(TERM(s, WAVE_SIN_4), WAVE_SIN_3);
    c = TERM(TERM(c, WAVE_COS_5), WAVE_COS_4);
    s = TERM(TERM(s, WAVE_SIN_2), WAVE_SIN_1);
    c = TERM(TERM(c, WAVE_COS_3), WAVE_COS_2);
    c = TERM(TERM(c, WAVE_COS_1), 1.0);
    s = _mm512_mul_pd(TERM(s, WAVE_SIN_0_REST), u);
    s = _mm512_fmadd_pd(u, _mm512_set1_pd(WAVE_SIN_0), s);
    return unfold(_mm512_fmadd_pd(c, rest, s), _mm512_fnmadd_pd(s, rest, c), p);
}

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
                                 const struct pe_wave_out *out, bool halves) {
    const struct target to = target_of(out, halves);
    const size_t group = halves ? 32 : 64;
    uint32_t bad = 0;
    size_t g = 0;
    for (; g + ABREAST <= n; g += ABREAST) {
        struct angles a[ABREAST];
        __m512i least[ABREAST], all = _mm512_set1_epi32(-1);
        rough(&turns[g], x, a);
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
    return out->step == 1 ? row_of(turns, n, x, out, true) : row_of(turns, n, x, out, false);
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

static PE_INLINE bool doubtful_words(__m512i least) {
    return _mm512_cmplt_epu16_mask(least, _mm512_set1_epi32(WAVE_NEAR_WORDS)) != 0;
}

static PE_INLINE struct columns columns_of(const struct wave_anchor *anchor, bool pairs) {
    return partnered(_mm512_loadu_pd(anchor->column), _mm512_loadu_pd(anchor->column + 8), pairs);
}

/* Two rows of a group, one at either side of its middle. */
struct rows {
    struct turned first, second; /* halves of them */
};

static PE_INLINE struct rows rows_of(const struct columns *a, const struct pe_wave_step *step, int k) {
    return (struct rows){turn(a, 0, step->cos[k], step->sin[k]), turn(a, 1, step->cos[k], step->sin[k])};
}

static PE_INLINE __m512i least_of(const struct rows *rows) {
    return _mm512_min_epu16(seen_words(rows->first.lower, rows->second.lower),
                            seen_words(rows->first.upper, rows->second.upper));
}

/* The doubtful rows of a group, found once more and taken through the sharp test. What went past the caches goes there
 * again: any other store would first fetch the line. */
static bool block_again(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                        const struct place *to, size_t g) {
    const __m512d lower = _mm512_set1_pd(WAVE_LOWER), slack = _mm512_set1_pd(WAVE_SLACK_BLOCK);
    const struct columns raised = columns_of(anchor, to->pairs);
    const struct columns a =
        partnered(_mm512_mul_pd(raised.v[0], lower), _mm512_mul_pd(raised.v[1], lower), to->pairs);
    __m256i differ = _mm256_setzero_si256();
    for (int k = 0; k < 4; k++) {
        const struct rows seen = rows_of(&raised, step, k);
        if (!doubtful_words(least_of(&seen))) {
            continue;
        }
        const struct turned t = turn(&a, 0, step->cos[k], step->sin[k]);
        const struct turned u = turn(&a, 1, step->cos[k], step->sin[k]);
        place_put(to, 3 - k, g, t.lower, u.lower);
        place_put(to, 4 + k, g, t.upper, u.upper);
        differ = differing(differing(differ, t.lower, slack), t.upper, slack);
        differ = differing(differing(differ, u.lower, slack), u.upper, slack);
    }
    return !_mm256_testz_si256(differ, differ);
}

static PE_INLINE uint32_t block_of(const struct pe_wave_step *steps, size_t n,
                                   const struct wave_anchor *anchors, const struct place *to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        const struct columns a = columns_of(&anchors[g], to->pairs);
        __m512i least = _mm512_set1_epi32(-1);
        for (int k = 0; k < 4; k++) {
            const struct rows rows = rows_of(&a, &steps[g], k);
            place_put(to, 3 - k, g, rows.first.lower, rows.second.lower);
            place_put(to, 4 + k, g, rows.first.upper, rows.second.upper);
            least = _mm512_min_epu16(least, least_of(&rows));
        }
        if (doubtful_words(least)) {
            bad |= (uint32_t)block_again(&steps[g], &anchors[g], to, g) << g;
        }
    }
    return bad;
}

static PE_INLINE void blocks_of(const struct pe_wave_step *steps, size_t n,
                                const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                                const struct place *first, uint32_t bad[WAVE_BLOCKS]) {
    struct place to = *first;
    for (size_t block = 0; block < n_blocks; block++) {
        bad[block] = block_of(steps, n, middles[block], &to);
        to.half[0] += to.block;
        to.half[1] += to.block;
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
