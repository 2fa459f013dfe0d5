/* SPDX-License-Identifier: MIT
 *
 * The text of the loops for one type; vector.c includes it once for each and says what the names mean.
 */

/* The bits of positive numbers are in their order, with the infinity above all numbers and NaN above it. */
static REAL NAMED(largest)(const REAL *x, size_t n, bool skip_minus_infinity) {
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

static void NAMED(scale_to)(REAL *restrict out, const REAL *restrict x, REAL scale, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale;
}

static void NAMED(scale_add_to)(REAL *restrict out, const REAL *restrict x, REAL scale,
                                const REAL *restrict added, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale + added[i];
}

static void NAMED(scale_add_in)(REAL *restrict out, const REAL *restrict x, REAL scale, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale + out[i];
}

static void NAMED(scale_add)(REAL *out, const REAL *x, REAL scale, const REAL *added, size_t n) {
    if (!added)
        NAMED(scale_to)(out, x, scale, n);
    else if (added == out)
        NAMED(scale_add_in)(out, x, scale, n);
    else
        NAMED(scale_add_to)(out, x, scale, added, n);
}

static void NAMED(add)(REAL *out, const REAL *a, const REAL *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void NAMED(subtract)(REAL *out, const REAL *a, const REAL *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] - b[i];
}

#undef REAL
#undef BITS
#undef NAMED
#undef MAGNITUDE
#undef INFINITE
