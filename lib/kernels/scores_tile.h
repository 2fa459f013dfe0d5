/* SPDX-License-Identifier: MIT
 *
 * The text of a tile of scores for one instruction set and number of rows; scores.c includes it and says what the
 * names mean. Sums stay in registers, WIDE of them a row, which compilers see once the short loops are unrolled.
 */

static void NAMED(const struct tile *tile) {
    const struct tile t = *tile;
    VECTOR sum[ROWS][WIDE];
    UNROLLED
    for (size_t r = 0; r < ROWS; r++) {
        UNROLLED
        for (size_t w = 0; w < WIDE; w++) {
            sum[r][w] = ZERO;
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t w = 0; w < WIDE; w++) {
            _mm_prefetch((const char *)(t.c + r * t.c_ld + w * LANES), _MM_HINT_T0);
            _mm_prefetch((const char *)(t.bias + r * t.bias_ld + w * LANES), _MM_HINT_T0);
        }
    }
    const float *panel = t.panel;
    for (size_t l = 0; l < t.k; l++, panel += PE_SCORES_COLUMNS) {
        VECTOR key[WIDE];
        UNROLLED
        for (size_t w = 0; w < WIDE; w++) {
            key[w] = LOAD(panel + w * LANES);
        }
        UNROLLED
        for (size_t r = 0; r < ROWS; r++) {
            const VECTOR query = BROADCAST(t.a[r * t.a_ld + l]);
            UNROLLED
            for (size_t w = 0; w < WIDE; w++) {
                sum[r][w] = FUSED(query, key[w], sum[r][w]);
            }
        }
    }
    const VECTOR alpha = BROADCAST(t.alpha);
    UNROLLED
    for (size_t r = 0; r < ROWS; r++) {
        UNROLLED
        for (size_t w = 0; w < WIDE; w++) {
            VECTOR x = PRODUCT(sum[r][w], alpha);
            if (t.has_bias) {
                x = SUM(x, LOAD(t.bias + r * t.bias_ld + w * LANES));
            }
            STORE(t.c + r * t.c_ld + w * LANES, x);
            if (t.most) {
                float *most = t.most + r * PE_SCORES_COLUMNS + w * LANES;
                STORE(most, LARGER(x, LOAD(most)));
            }
        }
    }
}

#undef NAMED
#undef ROWS
