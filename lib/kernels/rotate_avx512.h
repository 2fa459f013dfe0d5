/* SPDX-License-Identifier: MIT
 *
 * rotate.c's loops over float32 for AVX-512, eight pairs at a time, the last of them masked. Nothing is fused.
 */

struct turned {
    __m256 a, b;
};

static inline struct turned turned_avx512(__m256 first, __m256 second, __m512d c, __m512d s) {
    const __m512d a = _mm512_cvtps_pd(first), b = _mm512_cvtps_pd(second);
    return (struct turned){
        _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_mul_pd(a, c), _mm512_mul_pd(b, s))),
        _mm512_cvtpd_ps(_mm512_add_pd(_mm512_mul_pd(b, c), _mm512_mul_pd(a, s))),
    };
}

static inline __mmask16 first_lanes(size_t n) {
    return (__mmask16)((1U << n) - 1);
}

static void halves_avx512(const float *x, float *out, const struct pe_turn_pairs *pairs) {
    const size_t apart = pairs->apart;
    const bool far = pairs->far && ((uintptr_t)out | (uintptr_t)(out + apart)) % 32 == 0;
    size_t i = 0;
    for (; i + 8 <= pairs->n; i += 8) {
        const struct turned t =
            turned_avx512(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + apart + i),
                          _mm512_loadu_pd(pairs->cos + i), _mm512_loadu_pd(pairs->sin + i));
        if (far) {
            _mm256_stream_ps(out + i, t.a);
            _mm256_stream_ps(out + apart + i, t.b);
        } else {
            _mm256_storeu_ps(out + i, t.a);
            _mm256_storeu_ps(out + apart + i, t.b);
        }
    }
    if (i < pairs->n) {
        const __mmask8 some = (__mmask8)first_lanes(pairs->n - i);
        const struct turned t = turned_avx512(
            _mm256_maskz_loadu_ps(some, x + i), _mm256_maskz_loadu_ps(some, x + apart + i),
            _mm512_maskz_loadu_pd(some, pairs->cos + i), _mm512_maskz_loadu_pd(some, pairs->sin + i));
        _mm256_mask_storeu_ps(out + i, some, t.a);
        _mm256_mask_storeu_ps(out + apart + i, some, t.b);
    }
}

static inline __m512 neighbours_of(__m512 x, __m512d c, __m512d s) {
    const __m512i apart = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i joined = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512 kinds = _mm512_permutexvar_ps(apart, x);
    const struct turned t =
        turned_avx512(_mm512_castps512_ps256(kinds), _mm512_extractf32x8_ps(kinds, 1), c, s);
    return _mm512_permutex2var_ps(_mm512_castps256_ps512(t.a), joined, _mm512_castps256_ps512(t.b));
}

static void neighbours_avx512(const float *x, float *out, const struct pe_turn_pairs *pairs) {
    const bool far = pairs->far && (uintptr_t)out % 64 == 0;
    size_t i = 0;
    for (; i + 8 <= pairs->n; i += 8) {
        const __m512 t = neighbours_of(_mm512_loadu_ps(x + 2 * i), _mm512_loadu_pd(pairs->cos + i),
                                       _mm512_loadu_pd(pairs->sin + i));
        if (far) {
            _mm512_stream_ps(out + 2 * i, t);
        } else {
            _mm512_storeu_ps(out + 2 * i, t);
        }
    }
    if (i < pairs->n) {
        const __mmask16 pair = first_lanes(pairs->n - i), both = first_lanes(2 * (pairs->n - i));
        const __m512 t = neighbours_of(_mm512_maskz_loadu_ps(both, x + 2 * i),
                                       _mm512_maskz_loadu_pd((__mmask8)pair, pairs->cos + i),
                                       _mm512_maskz_loadu_pd((__mmask8)pair, pairs->sin + i));
        _mm512_mask_storeu_ps(out + 2 * i, both, t);
    }
}

static void rotate_float_avx512(const void *x, void *out, const struct pe_turn_pairs *pairs) {
    if (pairs->step == 2) {
        neighbours_avx512(x, out, pairs);
    } else {
        halves_avx512(x, out, pairs);
    }
}
