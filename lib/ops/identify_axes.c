/* SPDX-License-Identifier: MIT
 *
 * identify: which of the first two axes of turned vectors are tokens, [T, H, d] or, as attention has them, [H, T, d].
 * All heads of a token turn alike. So where an axis is heads, the turns (after times the conjugate of before) of a
 * pair add up along it without loss, whatever its angle is; along tokens they point everywhere. A sample of both axes
 * is enough, and which columns are a pair need not be known: the right ones lose nothing, others do.
 */
#include "ops/identify.h"

#include <string.h>

#define MOST  8    /* tokens and heads that tell */
#define WIDE  512  /* heads of which not every width is tried */
#define ALIKE 1e-4 /* of all: what is lost by noise */

struct sample {
    size_t n[2], width;
    double *got, *was; /* [n[0], n[1], width] */
};

/* What part is lost where turns of a pair are added up along the axis, pairs being those of so many columns. */
static double lost_of(const struct sample *s, int axis, int layout, size_t width) {
    size_t step = axis ? s->width : s->n[1] * s->width, across = axis ? s->n[1] * s->width : s->width;
    double all = 0, kept = 0;
    for (size_t k = 0; k < s->n[1 - axis] * (width / 2); k++) {
        size_t i = k % (width / 2), at = k / (width / 2) * across;
        size_t a = at + (layout == PE_ROTARY_HALVES ? i : 2 * i),
               b = layout == PE_ROTARY_HALVES ? a + width / 2 : a + 1;
        double re = 0, im = 0;
        for (size_t j = 0; j < s->n[axis]; j++, a += step, b += step) {
            double x = s->got[a] * s->was[a] + s->got[b] * s->was[b],
                   y = s->got[b] * s->was[a] - s->got[a] * s->was[b];
            re += x;
            im += y;
            all += hypot(x, y);
        }
        kept += hypot(re, im);
    }
    return all > 0 ? 1 - kept / all : 0;
}

/* By the pairs by which it is least. */
static double lost(const struct sample *s, int axis, struct pe_error *err) {
    size_t stride = s->width > WIDE ? s->width / 4 / 2 * 2 : 2;
    double least = 1;
    for (size_t width = stride; width <= s->width && !pe_error_poll(err); width += stride) {
        least = fmin(least, lost_of(s, axis, PE_ROTARY_HALVES, width));
        least = fmin(least, lost_of(s, axis, PE_ROTARY_INTERLEAVED, width));
    }
    return least;
}

/* Row i of the sample, first and last included. */
static size_t place(size_t i, size_t n, size_t of) {
    return n > 1 ? i * (of - 1) / (n - 1) : 0;
}

static int sample_read(struct pe_arena *arena, struct sample *s, const struct pe_tensor *got,
                       const struct pe_tensor *was, struct pe_error *err) {
    s->width = got->dim[2];
    for (int axis = 0; axis < 2; axis++) {
        s->n[axis] = got->dim[axis] < MOST ? got->dim[axis] : MOST;
    }
    s->got = pe_arena_array(arena, s->n[0] * s->n[1], s->width * sizeof(double), err);
    s->was = pe_arena_array(arena, s->n[0] * s->n[1], s->width * sizeof(double), err);
    for (size_t i = 0; i < s->n[0] * s->n[1] && !err->code; i++) {
        size_t row =
            place(i / s->n[1], s->n[0], got->dim[0]) * got->dim[1] + place(i % s->n[1], s->n[1], got->dim[1]);
        size_t at = row * s->width;
        pe_dtype_load(got->dtype, (const char *)got->data + at * pe_dtype_size(got->dtype), s->width,
                      s->got + i * s->width);
        pe_dtype_load(was->dtype, (const char *)was->data + at * pe_dtype_size(was->dtype), s->width,
                      s->was + i * s->width);
    }
    return err->code;
}

bool pe_identify_heads_first(struct pe_arena *arena, const struct pe_tensor *after,
                             const struct pe_tensor *before, const struct pe_positions *positions,
                             struct pe_error *err) {
    struct sample s;
    size_t length = positions ? positions->length : 0;
    if (positions && after->dim[0] != after->dim[1]) {
        return length == after->dim[1]; /* they tell */
    }
    if (sample_read(arena, &s, after, before, err)) {
        return false;
    }
    double tokens_first = lost(&s, 1, err), heads_first = lost(&s, 0, err);
    if (s.n[0] == 1 || s.n[1] == 1) { /* a single one loses nothing */
        return tokens_first > ALIKE;
    }
    return heads_first < tokens_first / 2;
}
