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

static void anchors(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                    struct wave_anchor *out) {
    for (size_t g = 0; g < n; g++) {
        struct angles a = fine(&turns[g], x);
        _mm512_storeu_pd(out[g].cos, a.cos);
        _mm512_storeu_pd(out[g].sin, a.sin);
    }
}

/* Where sines and cosines go, in bytes from row to row and group to group. */
struct target {
    bool halves, far;
    __m512i order;   /* of sixteen numbers, sines first, in memory */
    char *sin, *cos; /* unless halves the first kind is at `sin` */
    size_t row;
};

static PE_INLINE struct target target_of(const struct pe_wave_out *out, bool halves, bool far) {
    const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    bool swap = !halves && out->cos < out->sin;
    return (struct target){.halves = halves,
                           .far = far,
                           .order = _mm512_xor_si512(order, _mm512_set1_epi32(swap ? 16 : 0)),
                           .sin = (char *)(swap ? out->cos : out->sin),
                           .cos = (char *)out->cos,
                           .row = out->stride * sizeof(float)};
}

static PE_INLINE void put(const struct target *to, size_t at, __m256 s, __m256 c) {
    float *sin = (float *)(void *)(to->sin + at);
    if (to->halves) {
        _mm256_storeu_ps(sin, s);
        _mm256_storeu_ps((float *)(void *)(to->cos + at), c);
        return;
    }
    const __m512 both =
        _mm512_permutex2var_ps(_mm512_castps256_ps512(s), to->order, _mm512_castps256_ps512(c));
    if (to->far) {
        _mm512_stream_ps(sin, both);
    } else {
        _mm512_storeu_ps(sin, both);
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

static PE_INLINE __m256i put_sharp(const struct target *to, size_t at, __m256i differ, double slack,
                                   __m512d s, __m512d c) {
    put(to, at, _mm512_cvtpd_ps(s), _mm512_cvtpd_ps(c));
    return differing(differing(differ, s, _mm512_set1_pd(slack)), c, _mm512_set1_pd(slack));
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static bool row_again(const struct pe_wave_turns *turns, const struct wave_x *x, const struct target *to,
                      size_t at) {
    const struct angles a = fine(turns, x);
    const __m256i differ = put_sharp(to, at, _mm256_setzero_si256(), WAVE_SLACK_ROW, a.sin, a.cos);
    return !_mm256_testz_si256(differ, differ);
}

static PE_INLINE uint32_t row_of(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                                 const struct pe_wave_out *out, bool halves) {
    const struct target to = target_of(out, halves, false);
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

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* Those rows of a block of which `least` tells, two for each of four. */
static bool block_again(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                        const struct target *to, size_t at, const __m512i least[4]) {
    const __m512d ca = _mm512_loadu_pd(anchor->cos), sa = _mm512_loadu_pd(anchor->sin);
    __m256i differ = _mm256_setzero_si256();
    for (size_t k = 0; k < 4; k++) {
        if (!doubtful(least[k])) {
            continue;
        }
        const __m512d cb = _mm512_loadu_pd(step->cos[k]), sb = _mm512_loadu_pd(step->sin[k]);
        const __m512d p = _mm512_mul_pd(sa, cb), q = _mm512_mul_pd(ca, sb);
        const __m512d r = _mm512_mul_pd(ca, cb), s = _mm512_mul_pd(sa, sb);
        differ = put_sharp(to, at + (3 - k) * to->row, differ, WAVE_SLACK_BLOCK, _mm512_sub_pd(p, q),
                           _mm512_add_pd(r, s));
        differ = put_sharp(to, at + (4 + k) * to->row, differ, WAVE_SLACK_BLOCK, _mm512_add_pd(p, q),
                           _mm512_sub_pd(r, s));
    }
    return !_mm256_testz_si256(differ, differ);
}

static PE_INLINE uint32_t block_of(const struct pe_wave_step *steps, size_t n, struct wave_anchor *anchors,
                                   const struct pe_wave_out *out, bool halves, bool far) {
    const struct target to = target_of(out, halves, far);
    const __m512d lift = _mm512_set1_pd(WAVE_LIFT);
    uint32_t bad = 0;
    for (size_t g = 0, at = 0; g < n; g++, at += halves ? 32 : 64) {
        const __m512d ca = _mm512_loadu_pd(anchors[g].cos), sa = _mm512_loadu_pd(anchors[g].sin);
        const __m512d cl = _mm512_mul_pd(ca, lift), sl = _mm512_mul_pd(sa, lift);
        __m512i least[4], all = _mm512_set1_epi32(-1);
        for (size_t k = 0; k < 4; k++) {
            const __m512d cb = _mm512_loadu_pd(steps[g].cos[k]), sb = _mm512_loadu_pd(steps[g].sin[k]);
            const __m512d p = _mm512_mul_pd(sl, cb), r = _mm512_mul_pd(cl, cb);
            const __m512i before = put_rough(&to, at + (3 - k) * to.row, _mm512_fnmadd_pd(cl, sb, p),
                                             _mm512_fmadd_pd(sl, sb, r));
            const __m512i after = put_rough(&to, at + (4 + k) * to.row, _mm512_fmadd_pd(cl, sb, p),
                                            _mm512_fnmadd_pd(sl, sb, r));
            least[k] = _mm512_min_epu32(before, after);
            all = _mm512_min_epu32(all, least[k]);
        }
        if (doubtful(all)) {
            bad |= (uint32_t)block_again(&steps[g], &anchors[g], &to, at, least) << g;
        }
        const __m512d cb = _mm512_loadu_pd(steps[g].cos[4]), sb = _mm512_loadu_pd(steps[g].sin[4]);
        _mm512_storeu_pd(anchors[g].cos, _mm512_fmsub_pd(ca, cb, _mm512_mul_pd(sa, sb)));
        _mm512_storeu_pd(anchors[g].sin, _mm512_fmadd_pd(sa, cb, _mm512_mul_pd(ca, sb)));
    }
    return bad;
}

static uint32_t block(const struct pe_wave_step *steps, size_t n, struct wave_anchor *anchors,
                      const struct pe_wave_out *out) {
    const float *first = out->sin < out->cos ? out->sin : out->cos;
    if (out->step == 1) {
        return block_of(steps, n, anchors, out, true, false);
    }
    if (out->far && (uintptr_t)first % 64 == 0 && out->stride % 16 == 0) {
        return block_of(steps, n, anchors, out, false, true);
    }
    return block_of(steps, n, anchors, out, false, false);
}

static void settle(void) {
    _mm_sfence();
}

const struct wave_kernel pe_wave_avx512 = {anchors, row, block, settle};

#include "kernels/avx512_end.h"

#endif
