/* SPDX-License-Identifier: MIT
 *
 * Part of wave_avx512.c: what the cheap test of blocks leaves in doubt. A register then holds the eight rows of one
 * column, as mostly one column of a group is in doubt, and mostly it turns out to have been rounded rightly.
 */

/* What turns a column into its eight rows, by the farthest from the middle first, and back again. */
static PE_INLINE __m512d mirrored(const double (*k)[PE_WAVE_COLUMNS], size_t column) {
    const __m256d half = _mm256_setr_pd(k[3][column], k[2][column], k[1][column], k[0][column]);
    return _mm512_permutexvar_pd(_mm512_setr_epi64(0, 1, 2, 3, 3, 2, 1, 0), _mm512_castpd256_pd512(half));
}

#define BACKWARD 0x0f /* which of the eight are turned back */

/* The rows of a column as the sharp test has them. */
static PE_INLINE __m512d column_sharp(const struct pe_wave_step *step, size_t column, __m512d v, __m512d w) {
    const __m512d lower = _mm512_set1_pd(WAVE_LOWER), sin = mirrored(step->sin, column);
    const __m512d q = _mm512_mask_sub_pd(sin, BACKWARD, _mm512_setzero_pd(), sin);
    const __m512d p = _mm512_mul_pd(_mm512_mul_pd(v, lower), mirrored(step->cos, column));
    return _mm512_fmadd_pd(_mm512_mul_pd(w, lower), q, p);
}

/* The same rows as they were written: by the very operations of block_of. */
static PE_INLINE __m512d column_cheap(const struct pe_wave_step *step, size_t column, __m512d v, __m512d w) {
    const __m512d p = _mm512_mul_pd(v, _mm512_set1_pd(step->cos[0][column]));
    const __m512d sin = _mm512_set1_pd(step->sin[0][column]), c = _mm512_set1_pd(step->twice_cos[column]);
    const __m512d back = _mm512_fnmadd_pd(w, sin, p), ahead = _mm512_fmadd_pd(w, sin, p);
    __m512d now = _mm512_mask_blend_pd(BACKWARD, ahead, back);
    __m512d before = _mm512_mask_blend_pd(BACKWARD, back, ahead);
    static const __mmask8 beyond[] = {0xe7, 0xc3, 0x81}; /* those that are farther than 1/2, 3/2, 5/2 */
    for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++) {
        const __m512d next = _mm512_fmsub_pd(c, now, before);
        before = _mm512_mask_mov_pd(before, beyond[k], now);
        now = _mm512_mask_mov_pd(now, beyond[k], next);
    }
    return now;
}

/* A row, and that at the other side of the middle, through the sharp test and written again, past the caches as before:
 * any other store would first fetch the line. */
static bool lines_again(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                        const struct place *to, size_t g, int row) {
    const int k = row < 4 ? 3 - row : row - 4;
    const __m512d lower = _mm512_set1_pd(WAVE_LOWER), slack = _mm512_set1_pd(WAVE_SLACK_BLOCK);
    const struct columns raised = columns_of(anchor, to->pairs);
    const struct columns a =
        partnered(_mm512_mul_pd(raised.v[0], lower), _mm512_mul_pd(raised.v[1], lower), to->pairs);
    const struct turned t = turn(&a, 0, step->cos[k], step->sin[k]);
    const struct turned u = turn(&a, 1, step->cos[k], step->sin[k]);
    __m256i differ = _mm256_setzero_si256();
    place_put(to, 3 - k, g, t.lower, u.lower);
    place_put(to, 4 + k, g, t.upper, u.upper);
    differ = differing(differing(differ, t.lower, slack), t.upper, slack);
    differ = differing(differing(differ, u.lower, slack), u.upper, slack);
    return !_mm256_testz_si256(differ, differ);
}

/* The rows of a doubtful column through the sharp test: those that were rounded wrongly are written again. True: a row
 * is not decided. */
static PE_INLINE bool column_again(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                   const struct place *to, size_t g, size_t column) {
    const __m512d v = _mm512_set1_pd(anchor->column[column]);
    const __m512d w = _mm512_set1_pd(anchor->column[column ^ (to->pairs ? 1 : PE_WAVE_LANES)]);
    const __m512d rows = column_sharp(step, column, v, w), slack = _mm512_set1_pd(WAVE_SLACK_BLOCK);
    const __m256 sharp = _mm512_cvtpd_ps(rows), cheap = _mm512_cvtpd_ps(column_cheap(step, column, v, w));
    const __m256i differ = differing(_mm256_setzero_si256(), rows, slack);
    const __mmask8 wrong = _mm256_cmpneq_epi32_mask(_mm256_castps_si256(sharp), _mm256_castps_si256(cheap));
    bool bad = !_mm256_testz_si256(differ, differ);
    float values[WAVE_BLOCK];
    _mm256_storeu_ps(values, sharp);
    for (uint32_t left = wrong; left; left &= left - 1) {
        const int row = __builtin_ctz(left);
        if (to->far) {
            bad |= lines_again(step, anchor, to, g, row);
        } else {
            place_at(to, row, column / PE_WAVE_LANES, g)[column % PE_WAVE_LANES] = values[row];
        }
    }
    return bad;
}

static PE_INLINE bool group_again(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                  const struct place *to, size_t g, uint32_t doubts) {
    bool bad = false;
    for (uint32_t left = (doubts | doubts >> 1) & 0x55555555; left; left &= left - 1) {
        bad |= column_again(step, anchor, to, g, (size_t)__builtin_ctz(left) / 2);
    }
    return bad;
}

/* The groups in doubt, a bit each, of half of the blocks of a span: sixteen for each block. */
static PE_INLINE uint64_t doubtful_groups(uint32_t doubts[][WAVE_GROUPS], size_t n, size_t n_blocks) {
    uint64_t groups = 0;
    for (size_t block = 0; block < n_blocks; block++) {
        const __m512i columns = _mm512_maskz_loadu_epi32((__mmask16)((1U << n) - 1), doubts[block]);
        groups |= (uint64_t)_mm512_test_epi32_mask(columns, columns) << WAVE_GROUPS * block;
    }
    return groups;
}

static PE_INLINE struct place place_block(const struct place *first, size_t block) {
    struct place to = *first;
    to.half[0] += (ptrdiff_t)block * to.block;
    to.half[1] += (ptrdiff_t)block * to.block;
    return to;
}
