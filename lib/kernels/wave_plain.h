/* SPDX-License-Identifier: MIT
 *
 * Rows and blocks in plain C, after wave_rows.h. Loops are short enough for their values to stay in registers of two
 * doubles, of which all 64-bit processors have sixteen or more; the cheap test uses operations that these have, too.
 */

static uint32_t row_plain(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                          const struct pe_wave_out *out) {
    BY_TARGET(row_of_plain, turns, n, x)
}

/* Some top bit of WAVE_BORROWED where v is doubtful: a difference of either half went below 0. */
static PE_INLINE uint64_t borrows_of(double v) {
    return ((pe_bits_of(v) & WAVE_SEEN) ^ WAVE_TIE) - WAVE_NEAR_BLOCK;
}

#define QUARTER 4 /* columns of which both kinds fit into sixteen registers of two doubles */

/* Columns j .. j+3 of a group, to `at` in the block's first row. */
static PE_INLINE uint64_t quarter_plain(const struct pe_wave_step *step, const double v[PE_WAVE_COLUMNS],
                                        const double w[PE_WAVE_COLUMNS], size_t j, float *at,
                                        const struct place *to) {
    uint64_t borrows = 0;
    for (int k = 0; k < WAVE_BLOCK / 2; k++) {
        const double *cb = step->cos[k] + j, *sb = step->sin[k] + j;
        float lower[QUARTER], upper[QUARTER];
        _Pragma("GCC unroll 1") for (size_t i = 0; i < QUARTER; i++) {
            const double p = v[j + i] * cb[i], q = w[j + i] * sb[i], low = p - q, up = p + q;
            borrows |= borrows_of(low) | borrows_of(up);
            lower[i] = (float)low;
            upper[i] = (float)up;
        }
        memcpy(at + (3 - k) * to->row, lower, sizeof lower);
        memcpy(at + (4 + k) * to->row, upper, sizeof upper);
    }
    return borrows;
}

static PE_INLINE uint32_t block_of_plain(const struct pe_wave_step *steps, size_t n,
                                         const struct wave_anchor *anchors, const struct place *to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        const size_t behind = g * (to->pairs ? PE_WAVE_COLUMNS : PE_WAVE_LANES);
        const double *v = anchors[g].column;
        double w[PE_WAVE_COLUMNS];
        partner_plain(v, w, to->pairs);
        uint64_t borrows = 0;
        for (size_t j = 0; j < PE_WAVE_LANES; j += QUARTER) {
            borrows |= quarter_plain(&steps[g], v, w, j, to->half[0] + behind + j, to);
            borrows |= quarter_plain(&steps[g], v, w, PE_WAVE_LANES + j, to->half[1] + behind + j, to);
        }
        if (borrows & WAVE_BORROWED) {
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
