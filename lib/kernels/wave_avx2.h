/* SPDX-License-Identifier: MIT
 *
 * Rows and blocks for AVX2, as wave_avx512.c has them: half a group, or a quarter of its columns, is a register. The
 * rest of wave_rows.h is left to the compiler.
 */

/* ---- The cheap test ------------------------------------------------------------------------------------ */

/* In lower words the lesser distances above a tie, as a tie moved up by 3 is the least of all numbers; in upper
 * ones the lesser magnitudes, of which the sign was moved out. */
static PE_INLINE __m256i nearest_avx2(__m256d v, __m256d w) {
    const __m256i up = _mm256_set1_epi64x(0x100000003);
    return _mm256_min_epi32(_mm256_sllv_epi32(_mm256_castpd_si256(v), up),
                            _mm256_sllv_epi32(_mm256_castpd_si256(w), up));
}

static PE_INLINE bool doubtful_avx2(__m256i least, uint64_t near) {
    const __m256i limit = _mm256_set1_epi64x((long long)near);
    return !_mm256_testz_si256(_mm256_cmpgt_epi32(limit, least), _mm256_set1_epi32(-1));
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* x, prepared for products with 32 bits. */
struct factors {
    __m256i w0, w1, y0, y1; /* of what is whole, of the fraction, lower half first */
    bool high, fraction, negative;
};

static PE_INLINE __m256i times_avx2(__m256i a, __m256i b) {
    return _mm256_mul_epu32(a, b);
}

/* The phases of four frequencies, in 2^-64 turns. */
static PE_INLINE __m256i half_phase_avx2(const uint64_t *turns_high, const uint64_t *turns_low,
                                         const struct factors *x) {
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)turns_high);
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)turns_low);
    const __m256i high_upper = _mm256_srli_epi64(high, 32), low_upper = _mm256_srli_epi64(low, 32);
    __m256i upper = times_avx2(high_upper, x->w0); /* of 2^32 */
    __m256i p =
        _mm256_add_epi64(times_avx2(high, x->w0), _mm256_srli_epi64(times_avx2(low_upper, x->w0), 32));
    if (x->high) {
        upper = _mm256_add_epi64(upper, times_avx2(high, x->w1));
        p = _mm256_add_epi64(p, times_avx2(low_upper, x->w1));
        p = _mm256_add_epi64(p, _mm256_srli_epi64(times_avx2(low, x->w1), 32));
    }
    if (x->fraction) {
        p = _mm256_add_epi64(p, times_avx2(high_upper, x->y1));
        p = _mm256_add_epi64(p, _mm256_srli_epi64(times_avx2(high, x->y1), 32));
        p = _mm256_add_epi64(p, _mm256_srli_epi64(times_avx2(high_upper, x->y0), 32));
    }
    p = _mm256_add_epi64(p, _mm256_slli_epi64(upper, 32));
    return x->negative ? _mm256_sub_epi64(_mm256_setzero_si256(), p) : p;
}

/* Sines and cosines of half a group, roughly, and raised. */
static PE_INLINE void rough_avx2(__m256i p, __m256d *sin, __m256d *cos) {
    p = _mm256_add_epi64(p, _mm256_set1_epi64x((long long)WAVE_ROUNDING));
    const __m256i mantissa =
        _mm256_and_si256(_mm256_srli_epi64(p, 10), _mm256_set1_epi64x((long long)WAVE_MANTISSA));
    const __m256i quarter = _mm256_or_si256(mantissa, _mm256_set1_epi64x((long long)WAVE_QUARTER));
    const __m256d u = _mm256_sub_pd(_mm256_castsi256_pd(quarter), _mm256_set1_pd(WAVE_MIDDLE));
    const __m256d z = _mm256_mul_pd(u, u);
#define TERM_AVX2(sum, coefficient) sum = _mm256_fmadd_pd(sum, z, _mm256_set1_pd((coefficient)*WAVE_LIFT))
    __m256d s = _mm256_set1_pd(WAVE_ROUGH_SIN_5 * WAVE_LIFT),
            c = _mm256_set1_pd(WAVE_ROUGH_COS_6 * WAVE_LIFT);
    TERM_AVX2(c, WAVE_ROUGH_COS_5);
    TERM_AVX2(s, WAVE_ROUGH_SIN_4);
    TERM_AVX2(c, WAVE_ROUGH_COS_4);
    TERM_AVX2(s, WAVE_ROUGH_SIN_3);
    TERM_AVX2(c, WAVE_ROUGH_COS_3);
    TERM_AVX2(s, WAVE_ROUGH_SIN_2);
    TERM_AVX2(c, WAVE_ROUGH_COS_2);
    TERM_AVX2(s, WAVE_ROUGH_SIN_1);
    TERM_AVX2(c, WAVE_ROUGH_COS_1);
    TERM_AVX2(s, WAVE_ROUGH_SIN_0);
    TERM_AVX2(c, 1.0);
#undef TERM_AVX2
    s = _mm256_mul_pd(s, u);
    /* from the octant to the quarter that the two bits on top tell */
    const __m256d odd = _mm256_castsi256_pd(_mm256_slli_epi64(p, 1)), top = _mm256_set1_pd(-0.0);
    const __m256i next = _mm256_add_epi64(p, _mm256_set1_epi64x(INT64_C(1) << 62));
    *sin = _mm256_xor_pd(_mm256_blendv_pd(s, c, odd), _mm256_and_pd(_mm256_castsi256_pd(p), top));
    *cos = _mm256_xor_pd(_mm256_blendv_pd(c, s, odd), _mm256_and_pd(_mm256_castsi256_pd(next), top));
}

/* Four values of either kind. */
static PE_INLINE void put_avx2(const struct target *to, float *at, __m256d s, __m256d c) {
    const __m128 first = _mm256_cvtpd_ps(to->swap ? c : s), second = _mm256_cvtpd_ps(to->swap ? s : c);
    if (to->step == 1) {
        _mm_storeu_ps(at, first);
        _mm_storeu_ps(at + to->behind, second);
    } else {
        _mm_storeu_ps(at, _mm_unpacklo_ps(first, second));
        _mm_storeu_ps(at + 4, _mm_unpackhi_ps(first, second));
    }
}

static PE_INLINE uint32_t quick_row_avx2(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                                         struct target to) {
    const struct factors f = {.w0 = _mm256_set1_epi64x((long long)(x->whole & UINT32_MAX)),
                              .w1 = _mm256_set1_epi64x((long long)(x->whole >> 32)),
                              .y0 = _mm256_set1_epi64x((long long)(x->fraction & UINT32_MAX)),
                              .y1 = _mm256_set1_epi64x((long long)(x->fraction >> 32)),
                              .high = x->whole >> 32 != 0,
                              .fraction = x->fraction != 0,
                              .negative = x->negative};
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++, to.first += PE_WAVE_LANES * to.step) {
        __m256d s[2], c[2];
        for (size_t half = 0; half < 2; half++) {
            rough_avx2(half_phase_avx2(turns[g].high + 4 * half, turns[g].low + 4 * half, &f), &s[half],
                       &c[half]);
            put_avx2(&to, to.first + 4 * half * to.step, s[half], c[half]);
        }
        const __m256i least = _mm256_min_epi32(nearest_avx2(s[0], c[0]), nearest_avx2(s[1], c[1]));
        if (doubtful_avx2(least, WAVE_NEAR_ROW_SHIFTED)) {
            bad |= row_of_avx2(&turns[g], 1, x, to) << g;
        }
    }
    return bad;
}

static uint32_t row_avx2(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                         const struct pe_wave_out *out) {
    BY_TARGET(quick_row_avx2, turns, n, x)
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* Columns j .. j+3 of a group. */
static PE_INLINE __m256i quarter_avx2(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                      size_t j, float *at, const struct place *to, __m256i least) {
    const double *partner = anchor->column + (to->pairs ? j : j ^ PE_WAVE_LANES);
    const __m256d v = _mm256_loadu_pd(anchor->column + j);
    const __m256d w = to->pairs ? _mm256_permute_pd(v, 5) : _mm256_loadu_pd(partner);
    for (int k = 0; k < WAVE_BLOCK / 2; k++) {
        const __m256d cb = _mm256_loadu_pd(step->cos[k] + j), sb = _mm256_loadu_pd(step->sin[k] + j);
        const __m256d p = _mm256_mul_pd(v, cb);
        const __m256d lower = _mm256_fnmadd_pd(w, sb, p), upper = _mm256_fmadd_pd(w, sb, p);
        _mm_storeu_ps(at + (3 - k) * to->row, _mm256_cvtpd_ps(lower));
        _mm_storeu_ps(at + (4 + k) * to->row, _mm256_cvtpd_ps(upper));
        least = _mm256_min_epi32(least, nearest_avx2(lower, upper));
    }
    return least;
}

static PE_INLINE uint32_t block_of_avx2(const struct pe_wave_step *steps, size_t n,
                                        const struct wave_anchor *anchors, const struct place *to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        float *first = to->half[0] + g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES);
        float *second = to->half[1] + g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES);
        __m256i least = _mm256_set1_epi32(INT32_MAX);
        least = quarter_avx2(&steps[g], &anchors[g], 0, first, to, least);
        least = quarter_avx2(&steps[g], &anchors[g], 4, first + 4, to, least);
        least = quarter_avx2(&steps[g], &anchors[g], 8, second, to, least);
        least = quarter_avx2(&steps[g], &anchors[g], 12, second + 4, to, least);
        if (doubtful_avx2(least, WAVE_NEAR_SHIFTED)) {
            bad |= (uint32_t)group_of_avx2(&steps[g], &anchors[g], to, g) << g;
        }
    }
    return bad;
}

static void blocks_avx2(const struct pe_wave_step *steps, size_t n,
                        const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                        const struct pe_wave_out *out, uint32_t bad[WAVE_BLOCKS]) {
    BY_PLACE(block_of_avx2)
}
