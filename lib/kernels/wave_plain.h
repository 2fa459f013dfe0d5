/* SPDX-License-Identifier: MIT
 *
 * Rows and blocks in plain C, after wave_rows.h. Loops are short enough for their values to stay in registers of two
 * doubles, of which all 64-bit processors have sixteen or more; the cheap test uses operations that these have, too, on
 * four values at a time.
 */

static uint32_t row_plain(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                          const struct pe_wave_out *out) {
    BY_TARGET(row_of_plain, turns, n, x)
}

#define QUARTER 4 /* columns of which both kinds fit into sixteen registers of two doubles */

/* gcc has to see a loop, as in EACH_LANE, and clang has to see none. */
#if defined(__clang__)
#define EACH_QUARTER(i) for (size_t i = 0; i < QUARTER; i++)
#else
#define EACH_QUARTER(i) _Pragma("GCC unroll 1") for (size_t i = 0; i < QUARTER; i++)
#endif

/* What the cheap test has seen of some values of each column of a quarter. */
struct seen {
    float above[QUARTER];    /* the least that one is above a tie: its lower bits as those of a float */
    uint32_t large[QUARTER]; /* has WAVE_LARGE_FLOAT where all are above 2^-12 */
};

/* Floats from 2 to 2^64, in the order of the distances. They are compared in one operation, which for words in these
 * registers takes two. */
static PE_INLINE float above_tie(double v) {
    const uint32_t bits = ((uint32_t)pe_bits_of(v) & WAVE_LACKING) ^ WAVE_TIE_FLOAT;
    float above;
    memcpy(&above, &bits, sizeof above);
    return above;
}

static PE_INLINE float lesser(float a, float b) {
    return a < b ? a : b;
}

static PE_INLINE void seen_join(struct seen *a, const struct seen *b) {
    EACH_QUARTER(i) {
        a->above[i] = lesser(a->above[i], b->above[i]);
        a->large[i] &= b->large[i];
    }
}

static PE_INLINE bool seen_doubtful(const struct seen *seen) {
    uint32_t doubtful = 0;
    EACH_QUARTER(i) {
        doubtful |= (0 - (uint32_t)(seen->above[i] < WAVE_NEAR_FLOAT)) | ~seen->large[i];
    }
    return (doubtful & WAVE_LARGE_FLOAT) != 0;
}

/* Columns j .. j+3 of a group, and where they are in the block's first row. */
struct quarter {
    size_t j;
    const double *v;   /* all columns of the group */
    double w[QUARTER]; /* the partners of these */
    float *at;
    ptrdiff_t row;
};

/* Rows 3-k and 4+k. */
static PE_INLINE struct seen rows_of_plain(const struct pe_wave_step *step, const struct quarter *quarter,
                                           int k) {
    const double *v = quarter->v, *w = quarter->w;
    const size_t j = quarter->j;
    double low[QUARTER], up[QUARTER];
    float lower[QUARTER], upper[QUARTER];
    struct seen seen;
    EACH_QUARTER(i) {
        const double p = v[j + i] * step->cos[k][j + i], q = w[i] * step->sin[k][j + i];
        low[i] = p - q;
        up[i] = p + q;
        lower[i] = (float)low[i];
        upper[i] = (float)up[i];
    }
    memcpy(quarter->at + (3 - k) * quarter->row, lower, sizeof lower);
    memcpy(quarter->at + (4 + k) * quarter->row, upper, sizeof upper);
    EACH_QUARTER(i) {
        seen.above[i] = lesser(above_tie(low[i]), above_tie(up[i]));
        seen.large[i] = (float_bits(lower[i]) + WAVE_TO_LARGE) & (float_bits(upper[i]) + WAVE_TO_LARGE);
    }
    return seen;
}

static PE_INLINE struct seen quarter_plain(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                           size_t j, float *at, const struct place *to) {
    struct quarter quarter = {.j = j, .v = anchor->column, .at = at, .row = to->row};
    for (size_t i = 0; i < QUARTER; i++) {
        quarter.w[i] = anchor->column[(j + i) ^ (to->pairs ? 1 : PE_WAVE_LANES)];
    }
    struct seen seen = rows_of_plain(step, &quarter, 0);
    for (int k = 1; k < WAVE_BLOCK / 2; k++) {
        const struct seen more = rows_of_plain(step, &quarter, k);
        seen_join(&seen, &more);
    }
    return seen;
}

static PE_INLINE uint32_t block_of_plain(const struct pe_wave_step *steps, size_t n,
                                         const struct wave_anchor *anchors, const struct place *to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        float *first = to->half[0] + g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES);
        float *second = to->half[1] + g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES);
        /* each by itself, as where j is a constant compilers know what is aligned */
        struct seen seen = quarter_plain(&steps[g], &anchors[g], 0, first, to), more;
        more = quarter_plain(&steps[g], &anchors[g], 4, first + 4, to);
        seen_join(&seen, &more);
        more = quarter_plain(&steps[g], &anchors[g], 8, second, to);
        seen_join(&seen, &more);
        more = quarter_plain(&steps[g], &anchors[g], 12, second + 4, to);
        seen_join(&seen, &more);
        if (seen_doubtful(&seen)) {
            bad |= (uint32_t)group_of_plain(&steps[g], &anchors[g], to, g) << g;
        }
    }
    return bad;
}

static void blocks_plain(const struct pe_wave_step *steps, size_t n,
                         const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                         const struct pe_wave_out *out, uint32_t bad[WAVE_BLOCKS]) {
    BY_PLACE(block_of_plain)
}
