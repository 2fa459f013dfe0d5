/* SPDX-License-Identifier: MIT
 *
 * What softmax_lanes.h is written in, for AVX-512. Past the end of a row lanes are -infinity, whose exponential is 0.
 */

#define VECTOR   __m512
#define NAMED(x) x##_avx512

struct totals_avx512 {
    __m512d low, high;
};

static PE_INLINE __mmask16 first_avx512(size_t n) {
    return (__mmask16)((1U << n) - 1);
}

static PE_INLINE __m512 all_avx512(float x) {
    return _mm512_set1_ps(x);
}

static PE_INLINE __m512 load_avx512(const float *x, size_t n) {
    return n == LANES ? _mm512_loadu_ps(x)
                      : _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), first_avx512(n), x);
}

static PE_INLINE void store_avx512(float *out, __m512 x, size_t n) {
    if (n == LANES) {
        _mm512_storeu_ps(out, x);
    } else {
        _mm512_mask_storeu_ps(out, first_avx512(n), x);
    }
}

static PE_INLINE void stream_avx512(float *out, __m512 x) {
    _mm512_stream_ps(out, x);
}

static PE_INLINE __m512 sum_avx512(__m512 a, __m512 b) {
    return _mm512_add_ps(a, b);
}

static PE_INLINE __m512 difference_avx512(__m512 a, __m512 b) {
    return _mm512_sub_ps(a, b);
}

static PE_INLINE __m512 product_avx512(__m512 a, __m512 b) {
    return _mm512_mul_ps(a, b);
}

static PE_INLINE __m512 larger_avx512(__m512 a, __m512 b) {
    return _mm512_max_ps(a, b);
}

/* a - n*high, where the product has all its bits: fused or not, it is the same. */
static PE_INLINE __m512 less_exact_avx512(__m512 a, __m512 n, __m512 high) {
    return _mm512_fnmadd_ps(n, high, a);
}

static PE_INLINE float largest_avx512(__m512 x) {
    return _mm512_reduce_max_ps(x);
}

/* e * 2^n, of which the bits are the low ones of `shifted`; 0 where x is below LOWEST. */
static PE_INLINE __m512 raise_avx512(__m512 e, __m512 shifted, __m512 x) {
    const __mmask16 kept = _mm512_cmp_ps_mask(x, _mm512_set1_ps(LOWEST), _CMP_GE_OQ);
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), FRACTION);
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(kept, _mm512_castps_si512(e), n));
}

static PE_INLINE void count_avx512(struct totals_avx512 *total, __m512 x) {
    total->low = _mm512_add_pd(total->low, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    total->high = _mm512_add_pd(total->high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
}

static PE_INLINE double total_avx512(const struct totals_avx512 *total) {
    double lane[LANES / 2];
    _mm512_storeu_pd(lane, _mm512_add_pd(total->low, total->high));
    return total_of(lane);
}

#include "kernels/softmax_lanes.h"
