/* SPDX-License-Identifier: MIT
 *
 * The text of softmax for one type and instruction set; softmax.c includes it and says what the names
 * mean.
 *
 * Sums and maxima go by LANES independent columns, which is a vector register or a few on any machine, so the
 * order of a sum is written here and does not follow the instruction set. Four entries of a lane are added in
 * REAL, those sums in double.
 */

/* row += bias + hidden, where there are any. */
static void NAMED(add)(REAL *restrict row, const REAL *restrict more, size_t n) {
    for (size_t j = 0; j < n; j++) {
        row[j] += more[j];
    }
}

static REAL NAMED(larger)(REAL a, REAL b) {
    return a > b ? a : b;
}

static REAL NAMED(largest)(const REAL *row, size_t n) {
    REAL lane[LANES];
    for (size_t l = 0; l < LANES; l++) {
        lane[l] = -INFINITY;
    }
    size_t j = 0;
    for (; j + 4 * LANES <= n; j += 4 * LANES) {
        const REAL *a = row + j, *b = a + LANES, *c = b + LANES, *d = c + LANES;
        for (size_t l = 0; l < LANES; l++) {
            REAL most = NAMED(larger)(NAMED(larger)(a[l], b[l]), NAMED(larger)(c[l], d[l]));
            lane[l] = NAMED(larger)(most, lane[l]);
        }
    }
    for (; j < n; j++) {
        lane[j % LANES] = NAMED(larger)(row[j], lane[j % LANES]);
    }
    for (size_t l = 1; l < LANES; l++) {
        lane[0] = NAMED(larger)(lane[l], lane[0]);
    }
    return lane[0];
}

/* exp(x) for x <= 0. */
static inline REAL NAMED(power)(REAL x) {
    REAL shifted = x * LOG2E + TO_HALF;
    REAL n = shifted - TO_HALF;
    REAL r = (x - n * LN2_HIGH) - n * LN2_LOW;
    REAL e = 1 + (r + r * r * POLYNOMIAL(r));
    const REAL lowest = LOWEST;
    BITS n_bits, e_bits, x_bits, lowest_bits;
    memcpy(&n_bits, &shifted, sizeof n_bits);
    memcpy(&e_bits, &e, sizeof e_bits);
    memcpy(&x_bits, &x, sizeof x_bits);
    memcpy(&lowest_bits, &lowest, sizeof lowest_bits);
    e_bits += n_bits << FRACTION; /* e * 2^n: n onto the exponent; what TO_HALF added falls off the end */
    /* The bits of positive floats are in their order, so the sign of a difference says: 1 when |x| >
     * |LOWEST|. */
    BITS is_lower = ((lowest_bits & MAGNITUDE) - (x_bits & MAGNITUDE)) >> (8 * sizeof(BITS) - 1);
    e_bits &= is_lower - 1;
    memcpy(&e, &e_bits, sizeof e);
    return e;
}

static double NAMED(sum)(const REAL *row, size_t n) {
    double total[LANES] = {0};
    size_t j = 0;
    for (; j + 4 * LANES <= n; j += 4 * LANES) {
        const REAL *a = row + j, *b = a + LANES, *c = b + LANES, *d = c + LANES;
        for (size_t l = 0; l < LANES; l++) {
            total[l] += (double)((a[l] + b[l]) + (c[l] + d[l]));
        }
    }
    for (; j < n; j++) {
        total[j % LANES] += (double)row[j];
    }
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            total[l] += total[l + half];
        }
    }
    return total[0];
}

static void NAMED(softmax)(const struct pe_softmax *s, void *numbers) {
    REAL *row = numbers, *out = s->out ? s->out : row;
    REAL *seen = row + s->first;
    size_t n = s->end > s->first ? s->end - s->first : 0;
    if (n && s->bias) {
        NAMED(add)(seen, (const REAL *)s->bias + s->first, n);
    }
    if (n && s->hidden) {
        NAMED(add)(seen, (const REAL *)s->hidden + s->first, n);
    }
    REAL most = s->most ? NAMED(largest)(s->most, PE_SOFTMAX_MOST) : NAMED(largest)(seen, n);
    if (n == 0 || most == -INFINITY) {
        memset(out, 0, s->n * sizeof *out);
        return;
    }
    memset(out, 0, s->first * sizeof *out);
    memset(out + s->end, 0, (s->n - s->end) * sizeof *out);
    if (is_stopped(s, n)) {
        return;
    }
    for (size_t j = 0; j < n; j++) {
        seen[j] = NAMED(power)(seen[j] - most);
    }
    if (is_stopped(s, n)) {
        return;
    }
    double total = NAMED(sum)(seen, n); /* at least 1, but of logits that overflowed: then all is NaN */
    REAL share = (REAL)(total > 0 ? 1 / total : (double)NAN);
    out += s->first;
    for (size_t j = 0; j < n; j++) {
        out[j] = seen[j] * share;
    }
}

#undef REAL
#undef BITS
#undef NAMED
#undef LANES
#undef FRACTION
#undef MAGNITUDE
#undef LOWEST
#undef TO_HALF
#undef LOG2E
#undef LN2_HIGH
#undef LN2_LOW
#undef POLYNOMIAL
