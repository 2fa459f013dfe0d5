/* SPDX-License-Identifier: MIT
 *
 * The text of the loops for one type; vector.c includes it once for each and says what the names mean.
 */

/* With infinities or NaN among the numbers. The bits of positive numbers are in their order, with the
 * infinity above all numbers and NaN above it. */
static REAL NAMED(largest_of_any)(const REAL *x, size_t n, bool skip_minus_infinity) {
    const BITS skipped = ~MAGNITUDE | (skip_minus_infinity ? INFINITE : 0); /* else -0: no matter */
    BITS most = 0;
    for (size_t i = 0; i < n; i++) {
        BITS bits;
        memcpy(&bits, &x[i], sizeof bits);
        BITS magnitude = bits == skipped ? 0 : bits & MAGNITUDE;
        most = magnitude > most ? magnitude : most;
    }
    most = most > INFINITE ? INFINITE : most;
    REAL result;
    memcpy(&result, &most, sizeof result);
    return result;
}

/* x*0 is 0 for a number and NaN otherwise, so its sum tells whether there are only numbers. */
static REAL NAMED(largest)(const REAL *x, size_t n, bool skip_minus_infinity) {
    REAL high[WIDE] = {0}, low[WIDE] = {0}, other[WIDE] = {0};
    size_t i = 0;
    for (; i + 2 * WIDE <= n; i += 2 * WIDE) {
        for (size_t l = 0; l < WIDE; l++) {
            REAL a = x[i + l], b = x[i + WIDE + l], above = a > b ? a : b, below = a < b ? a : b;
            high[l] = above > high[l] ? above : high[l];
            low[l] = below < low[l] ? below : low[l];
            other[l] += a * 0 + b * 0;
        }
    }
    REAL most = NAMED(largest_of_any)(x + i, n - i, skip_minus_infinity), others = 0;
    for (size_t l = 0; l < WIDE; l++) {
        most = high[l] > most ? high[l] : most;
        most = -low[l] > most ? -low[l] : most;
        others += other[l];
    }
    return others == 0 ? most : NAMED(largest_of_any)(x, n, skip_minus_infinity);
}

static void NAMED(scale_to)(REAL *restrict out, const REAL *restrict x, REAL scale, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * scale;
    }
}

static void NAMED(scale_add_to)(REAL *restrict out, const REAL *restrict x, REAL scale,
                                const REAL *restrict added, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * scale + added[i];
    }
}

static void NAMED(scale_add_in)(REAL *restrict out, const REAL *restrict x, REAL scale, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * scale + out[i];
    }
}

static void NAMED(scale_on)(REAL *x, REAL scale, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
}

static void NAMED(scale_add_on)(REAL *restrict x, REAL scale, const REAL *restrict added, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] * scale + added[i];
    }
}

static void NAMED(scale_add)(REAL *out, const REAL *x, REAL scale, const REAL *added, size_t n) {
    if (x == out && !added) {
        NAMED(scale_on)(out, scale, n);
    } else if (x == out) {
        NAMED(scale_add_on)(out, scale, added, n);
    } else if (!added) {
        NAMED(scale_to)(out, x, scale, n);
    } else if (added == out) {
        NAMED(scale_add_in)(out, x, scale, n);
    } else {
        NAMED(scale_add_to)(out, x, scale, added, n);
    }
}

static void NAMED(add)(REAL *out, const REAL *a, const REAL *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

static void NAMED(subtract)(REAL *out, const REAL *a, const REAL *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] - b[i];
    }
}

#undef REAL
#undef BITS
#undef NAMED
#undef MAGNITUDE
#undef INFINITE
#undef WIDE
