/* SPDX-License-Identifier: MIT
 *
 * The text of softmax_row.h for float32 once more, written for registers: sixteen lanes at a time, which is one
 * register or two, as softmax_avx512.h and softmax_avx2.h say. Each operation is the same and in the same order, so
 * the bits are, too. What the compiler makes of the plain text passes over the row six times, this three times.
 */

static PE_INLINE VECTOR NAMED(exponential)(VECTOR x) {
    const VECTOR to_half = NAMED(all)(TO_HALF);
    const VECTOR shifted = NAMED(sum)(NAMED(product)(x, NAMED(all)(LOG2E)), to_half);
    const VECTOR n = NAMED(difference)(shifted, to_half);
    const VECTOR rest = NAMED(less_exact)(x, n, NAMED(all)(LN2_HIGH));
    const VECTOR r = NAMED(difference)(rest, NAMED(product)(n, NAMED(all)(LN2_LOW)));
    VECTOR p = NAMED(all)(POLYNOMIAL_4);
    p = NAMED(sum)(NAMED(all)(POLYNOMIAL_3), NAMED(product)(r, p));
    p = NAMED(sum)(NAMED(all)(POLYNOMIAL_2), NAMED(product)(r, p));
    p = NAMED(sum)(NAMED(all)(POLYNOMIAL_1), NAMED(product)(r, p));
    p = NAMED(sum)(NAMED(all)(POLYNOMIAL_0), NAMED(product)(r, p));
    const VECTOR above = NAMED(sum)(r, NAMED(product)(NAMED(product)(r, r), p));
    return NAMED(raise)(NAMED(sum)(NAMED(all)(1), above), shifted, x);
}

/* row += bias, then hidden; their largest. */
static PE_INLINE float NAMED(logits)(float *row, const float *bias, const float *hidden, size_t n) {
    VECTOR most = NAMED(all)(-INFINITY);
    for (size_t j = 0; j < n; j += LANES) {
        const size_t some = n - j < LANES ? n - j : LANES;
        VECTOR x = NAMED(load)(row + j, some);
        if (bias) {
            x = NAMED(sum)(x, NAMED(load)(bias + j, some));
        }
        if (hidden) {
            x = NAMED(sum)(x, NAMED(load)(hidden + j, some));
        }
        if (bias || hidden) {
            NAMED(store)(row + j, x, some);
        }
        most = NAMED(larger)(x, most);
    }
    return NAMED(largest)(most);
}

static PE_INLINE float NAMED(most)(const float *numbers) {
    const VECTOR a = NAMED(load)(numbers, LANES), b = NAMED(load)(numbers + LANES, LANES);
    return NAMED(largest)(NAMED(larger)(a, b));
}

/* row becomes exp(row - most); returns the sum. */
static PE_INLINE double NAMED(powers)(float *row, float most, size_t n) {
    const VECTOR largest = NAMED(all)(most);
    struct NAMED(totals) total = {0};
    size_t j = 0;
    for (; j + 4 * LANES <= n; j += 4 * LANES) {
        VECTOR e[4];
        for (size_t i = 0; i < 4; i++) {
            e[i] = NAMED(exponential)(NAMED(difference)(NAMED(load)(row + j + i * LANES, LANES), largest));
            NAMED(store)(row + j + i * LANES, e[i], LANES);
        }
        NAMED(count)(&total, NAMED(sum)(NAMED(sum)(e[0], e[1]), NAMED(sum)(e[2], e[3])));
    }
    for (; j < n; j += LANES) {
        const size_t some = n - j < LANES ? n - j : LANES;
        const VECTOR e = NAMED(exponential)(NAMED(difference)(NAMED(load)(row + j, some), largest));
        NAMED(store)(row + j, e, some);
        NAMED(count)(&total, e);
    }
    return NAMED(total)(&total);
}

/* out = row * share. To memory that is far whole lines are written past the caches. */
static PE_INLINE void NAMED(share)(const float *row, float share, float *out, size_t n, bool far) {
    const size_t behind = (uintptr_t)out % LINE / sizeof *out; /* numbers, of the line that out begins in */
    const bool lines = far && (uintptr_t)out % sizeof *out == 0;
    for (size_t j = 0, some; j < n; j += some) {
        some = lines && j == 0 ? LANES - behind : LANES;
        some = some < n - j ? some : n - j;
        const VECTOR x = NAMED(product)(NAMED(load)(row + j, some), NAMED(all)(share));
        if (lines && some == LANES) {
            NAMED(stream)(out + j, x);
        } else {
            NAMED(store)(out + j, x, some);
        }
    }
}

static void NAMED(softmax_lanes)(const struct pe_softmax *s, void *numbers) {
    float *row = numbers, *seen = row + s->first, *out = s->out ? s->out : row;
    const size_t n = s->end > s->first ? s->end - s->first : 0;
    const float *bias = s->bias ? (const float *)s->bias + s->first : NULL;
    const float *hidden = s->hidden ? (const float *)s->hidden + s->first : NULL;
    const float most = s->most ? NAMED(most)(s->most) : NAMED(logits)(seen, bias, hidden, n);
    if (n == 0 || most == -INFINITY) {
        memset(out, 0, s->n * sizeof *out);
        return;
    }
    if (n < s->n) {
        memset(out, 0, s->first * sizeof *out);
        memset(out + s->end, 0, (s->n - s->end) * sizeof *out);
    }
    if (is_stopped(s, n)) {
        return;
    }
    const double total = NAMED(powers)(seen, most, n);
    if (is_stopped(s, n)) {
        return;
    }
    NAMED(share)(seen, (float)(total > 0 ? 1 / total : (double)NAN), out + s->first, n, s->far);
}

#undef NAMED
#undef VECTOR
