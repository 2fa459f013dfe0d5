/* SPDX-License-Identifier: MIT
 *
 * Blocks for AVX2, as wave_avx512.c has them: half a group is a register. The rest of wave_rows.h is left to the
 * compiler.
 */

/* In lower words the lesser distances above a tie, as a tie moved up by 3 is the least of all numbers; in upper
 * ones the lesser magnitudes, of which the sign was moved out. */
static PE_INLINE __m256i nearest_avx2(__m256d v, __m256d w) {
    const __m256i up = _mm256_set1_epi64x(0x100000003);
    return _mm256_min_epi32(_mm256_sllv_epi32(_mm256_castpd_si256(v), up),
                            _mm256_sllv_epi32(_mm256_castpd_si256(w), up));
}

static PE_INLINE bool doubtful_avx2(__m256i least) {
    const __m256i limit = _mm256_set1_epi64x((long long)WAVE_NEAR_SHIFTED);
    return !_mm256_testz_si256(_mm256_cmpgt_epi32(limit, least), _mm256_set1_epi32(-1));
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

/* Pairs at .. at+3 of a group. */
static PE_INLINE __m256i half_avx2(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                   size_t at, const struct target *to, __m256i least) {
    const __m256d lift = _mm256_set1_pd(WAVE_LIFT);
    const __m256d ca = _mm256_mul_pd(_mm256_loadu_pd(anchor->cos + at), lift);
    const __m256d sa = _mm256_mul_pd(_mm256_loadu_pd(anchor->sin + at), lift);
    for (size_t k = 0; k < PE_WAVE_TURNINGS - 1; k++) {
        const __m256d cb = _mm256_loadu_pd(step->cos[k] + at), sb = _mm256_loadu_pd(step->sin[k] + at);
        const __m256d p = _mm256_mul_pd(sa, cb), q = _mm256_mul_pd(ca, sb);
        const __m256d r = _mm256_mul_pd(ca, cb), s = _mm256_mul_pd(sa, sb);
        const __m256d sin_before = _mm256_sub_pd(p, q), sin_after = _mm256_add_pd(p, q);
        const __m256d cos_before = _mm256_add_pd(r, s), cos_after = _mm256_sub_pd(r, s);
        float *row = to->first + at * to->step;
        least = _mm256_min_epi32(least, _mm256_min_epi32(nearest_avx2(sin_before, cos_before),
                                                         nearest_avx2(sin_after, cos_after)));
        put_avx2(to, row + (3 - k) * to->stride, sin_before, cos_before);
        put_avx2(to, row + (4 + k) * to->stride, sin_after, cos_after);
    }
    return least;
}

static PE_INLINE uint32_t quick_avx2(const struct pe_wave_step *steps, size_t n, struct wave_anchor *anchors,
                                     struct target to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        const struct pe_wave_step *step = &steps[g];
        struct wave_anchor *anchor = &anchors[g], kept = *anchor;
        __m256i least = half_avx2(step, anchor, 0, &to, _mm256_set1_epi32(INT32_MAX));
        least = half_avx2(step, anchor, 4, &to, least);
        EACH_LANE(l) {
            const double cb = step->cos[PE_WAVE_TURNINGS - 1][l], sb = step->sin[PE_WAVE_TURNINGS - 1][l];
            anchor->cos[l] = kept.cos[l] * cb - kept.sin[l] * sb;
            anchor->sin[l] = kept.sin[l] * cb + kept.cos[l] * sb;
        }
        if (doubtful_avx2(least)) {
            bad |= block_of_avx2(step, 1, &kept, to) << g;
        }
        to.first += PE_WAVE_LANES * to.step;
    }
    return bad;
}

static uint32_t block_avx2(const struct pe_wave_step *steps, size_t n, struct wave_anchor *anchors,
                           const struct pe_wave_out *out) {
    BY_TARGET(quick_avx2, steps, n, anchors)
}
