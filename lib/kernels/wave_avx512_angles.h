/* SPDX-License-Identifier: MIT
 *
 * Part of wave_avx512.c: sines and cosines of a group at any place, by polynomials.
 */

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

/* The same where x is whole and in 0 .. 2^32-1, with shuffles for shifts, of which fewer are done at a time. */
static PE_INLINE __m512i phase_short(const struct pe_wave_turns *turns, const struct wave_x *x) {
    const __m512i high = _mm512_loadu_si512(turns->high), low = _mm512_loadu_si512(turns->low);
    const __m512i whole = _mm512_set1_epi64((long long)x->whole);
    const __m512i q = _mm512_mul_epu32(_mm512_shuffle_epi32(low, _MM_PERM_DDBB), whole);
    return _mm512_add_epi64(_mm512_mullo_epi64(high, whole),
                            _mm512_maskz_shuffle_epi32(0x5555, q, _MM_PERM_DDBB));
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

struct phases {
    __m512i p[ABREAST];
};

static PE_INLINE struct phases phases_of(const struct pe_wave_turns *turns, const struct wave_x *x,
                                         bool is_short) {
    const __m512i rounding = _mm512_set1_epi64((long long)WAVE_ROUNDING);
    struct phases out;
    EACH out.p[j] = _mm512_add_epi64(is_short ? phase_short(&turns[j], x) : phase(&turns[j], x), rounding);
    return out;
}

static PE_INLINE void rough(const struct phases *of, struct angles out[ABREAST]) {
    const __m512i *p = of->p;
    __m512d u[ABREAST], z[ABREAST], s[ABREAST], c[ABREAST];
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
