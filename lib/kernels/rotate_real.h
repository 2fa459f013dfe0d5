/* SPDX-License-Identifier: MIT
 *
 * The loops of rotate.c for one type and instruction set: NAMED(x) names a function for them. In place or not is
 * told apart, so that compilers know what does not overlap.
 */

static void NAMED(halves_in)(REAL *restrict a, REAL *restrict b, const double *restrict cos,
                             const double *restrict sin, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double first = (double)a[i], second = (double)b[i];
        a[i] = (REAL)(first * cos[i] - second * sin[i]);
        b[i] = (REAL)(second * cos[i] + first * sin[i]);
    }
}

static void NAMED(halves_to)(const REAL *restrict a, const REAL *restrict b, REAL *restrict to_a,
                             REAL *restrict to_b, const struct pe_turn_pairs *pairs) {
    const double *restrict cos = pairs->cos, *restrict sin = pairs->sin;
    const size_t n = pairs->n;
    for (size_t i = 0; i < n; i++) {
        const double first = (double)a[i], second = (double)b[i];
        to_a[i] = (REAL)(first * cos[i] - second * sin[i]);
        to_b[i] = (REAL)(second * cos[i] + first * sin[i]);
    }
}

static void NAMED(neighbours_in)(REAL *restrict x, const double *restrict cos, const double *restrict sin,
                                 size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double first = (double)x[2 * i], second = (double)x[2 * i + 1];
        x[2 * i] = (REAL)(first * cos[i] - second * sin[i]);
        x[2 * i + 1] = (REAL)(second * cos[i] + first * sin[i]);
    }
}

static void NAMED(neighbours_to)(const REAL *restrict x, REAL *restrict out,
                                 const struct pe_turn_pairs *pairs) {
    const double *restrict cos = pairs->cos, *restrict sin = pairs->sin;
    const size_t n = pairs->n;
    for (size_t i = 0; i < n; i++) {
        const double first = (double)x[2 * i], second = (double)x[2 * i + 1];
        out[2 * i] = (REAL)(first * cos[i] - second * sin[i]);
        out[2 * i + 1] = (REAL)(second * cos[i] + first * sin[i]);
    }
}

static void NAMED(rotate)(const void *from, void *to, const struct pe_turn_pairs *pairs) {
    const REAL *x = from;
    REAL *out = to;
    if (pairs->step == 2) {
        if (x == out) {
            NAMED(neighbours_in)(out, pairs->cos, pairs->sin, pairs->n);
        } else {
            NAMED(neighbours_to)(x, out, pairs);
        }
    } else if (x == out) {
        NAMED(halves_in)(out, out + pairs->apart, pairs->cos, pairs->sin, pairs->n);
    } else {
        NAMED(halves_to)(x, x + pairs->apart, out, out + pairs->apart, pairs);
    }
}

#undef REAL
#undef NAMED
