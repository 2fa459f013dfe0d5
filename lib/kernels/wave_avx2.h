/* SPDX-License-Identifier: MIT
 *
 * Blocks for AVX2, as wave_avx512.c has them: a quarter of a group's columns is a register. The rest of wave_rows.h
 * is left to the compiler.
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
        if (doubtful_avx2(least)) {
            bad |= (uint32_t)group_of_avx2(&steps[g], &anchors[g], to, g) << g;
        }
    }
    return bad;
}

static uint32_t block_avx2(const struct pe_wave_step *steps, size_t n, const struct wave_anchor *anchors,
                           const struct pe_wave_out *out) {
    BY_PLACE(block_of_avx2)
}
