/* SPDX-License-Identifier: MIT
 *
 * What softmax_lanes.h is written in, for AVX2: sixteen lanes are two registers.
 */

struct lanes_avx2 {
    __m256 a, b;
};
struct totals_avx2 {
    __m256d a[2], b[2];
};

#define VECTOR   struct lanes_avx2
#define NAMED(x) x##_avx2

static PE_INLINE VECTOR all_avx2(float x) {
    return (VECTOR){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

/* Lanes `from` .. from + 7 of those before n. */
static PE_INLINE __m256i first_avx2(size_t n, int from) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - from), lane);
}

static PE_INLINE __m256 some_avx2(const float *x, __m256i which) {
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_maskload_ps(x, which),
                            _mm256_castsi256_ps(which));
}

static PE_INLINE VECTOR load_avx2(const float *x, size_t n) {
    if (n == LANES) {
        return (VECTOR){_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
    }
    return (VECTOR){some_avx2(x, first_avx2(n, 0)), some_avx2(x + (n > 8 ? 8 : 0), first_avx2(n, 8))};
}

static PE_INLINE void store_avx2(float *out, VECTOR x, size_t n) {
    if (n == LANES) {
        _mm256_storeu_ps(out, x.a);
        _mm256_storeu_ps(out + 8, x.b);
    } else {
        _mm256_maskstore_ps(out, first_avx2(n, 0), x.a);
        _mm256_maskstore_ps(out + (n > 8 ? 8 : 0), first_avx2(n, 8), x.b);
    }
}

static PE_INLINE void stream_avx2(float *out, VECTOR x) {
    _mm256_stream_ps(out, x.a);
    _mm256_stream_ps(out + 8, x.b);
}

static PE_INLINE VECTOR sum_avx2(VECTOR a, VECTOR b) {
    return (VECTOR){_mm256_add_ps(a.a, b.a), _mm256_add_ps(a.b, b.b)};
}

static PE_INLINE VECTOR difference_avx2(VECTOR a, VECTOR b) {
    return (VECTOR){_mm256_sub_ps(a.a, b.a), _mm256_sub_ps(a.b, b.b)};
}

static PE_INLINE VECTOR product_avx2(VECTOR a, VECTOR b) {
    return (VECTOR){_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
}

static PE_INLINE VECTOR larger_avx2(VECTOR a, VECTOR b) {
    return (VECTOR){_mm256_max_ps(a.a, b.a), _mm256_max_ps(a.b, b.b)};
}

static PE_INLINE VECTOR less_exact_avx2(VECTOR a, VECTOR n, VECTOR high) {
    return difference_avx2(a, product_avx2(n, high));
}

static PE_INLINE float largest_avx2(VECTOR x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* As raise_avx512. */
static PE_INLINE __m256 half_raised_avx2(__m256 e, __m256 shifted, __m256 x) {
    const __m256 kept = _mm256_cmp_ps(x, _mm256_set1_ps(LOWEST), _CMP_GE_OQ);
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), FRACTION);
    return _mm256_and_ps(kept, _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(e), n)));
}

static PE_INLINE VECTOR raise_avx2(VECTOR e, VECTOR shifted, VECTOR x) {
    return (VECTOR){half_raised_avx2(e.a, shifted.a, x.a), half_raised_avx2(e.b, shifted.b, x.b)};
}

static PE_INLINE void half_count_avx2(__m256d total[2], __m256 x) {
    total[0] = _mm256_add_pd(total[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    total[1] = _mm256_add_pd(total[1], _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

static PE_INLINE void count_avx2(struct totals_avx2 *total, VECTOR x) {
    half_count_avx2(total->a, x.a);
    half_count_avx2(total->b, x.b);
}

static PE_INLINE double total_avx2(const struct totals_avx2 *total) {
    double lane[LANES / 2];
    for (size_t i = 0; i < 2; i++) {
        _mm256_storeu_pd(lane + 4 * i, _mm256_add_pd(total->a[i], total->b[i]));
    }
    return total_of(lane);
}

#include "kernels/softmax_lanes.h"
