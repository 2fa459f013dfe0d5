/* SPDX-License-Identifier: MIT
 *
 * The attempts that come to mind first, and that fail; sinusoids are what is left when each fault is mended.
 *
 *     integer      PE(p)[c] = p        grows without bound: at p = 1000 it drowns an embedding of size 1, and
 *                                      a model meets sizes in use that it never met in training
 *     normalized   PE(p)[c] = p / N    bounded, but one step is 1/N: "the next token" looks different in a
 *                                      sequence of another length
 *     binary       PE(p)[c] = bit c of p   unique and bounded, but not smooth: from 7 to 8 four columns jump
 *                                      at once, from 8 to 9 one, so distance in p is not distance of vectors.
 *                                      A sinusoid of each column's wavelength is its smooth version.
 */
#include "encodings/encoding.h"

#include "core/admit.h"

#include <math.h>
#include <string.h>

enum form { FORM_INTEGER = 1, FORM_NORMALIZED, FORM_BINARY };

struct naive {
    uint64_t given;
    int64_t d_model;
    int form;
    int64_t seq_len;
};

static const struct pe_choice forms[] = {
    {"integer", FORM_INTEGER, "every column is p: it grows without bound and drowns the embedding"},
    {"normalized", FORM_NORMALIZED,
     "every column is p / seq_len: bounded, but the step depends on the length"},
    {"binary", FORM_BINARY, "column c is bit c of p, least significant first: unique, but it jumps"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(naive, d_model), .min = 1, .max = 65536, .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH,
     .doc = "width of the vectors"},
    {PE_FIELD(naive, form), .choices = forms, .def = "integer", .doc = "which of the attempts"},
    {PE_FIELD(naive, seq_len), .min = 1, .max = PE_POSITION_MAX, .flags = PE_FIELD_LENGTH,
     .doc = "the N of p / N, used by normalized only; follows the number of positions where not given"},
};

static int naive_check(const void *params, struct pe_error *err) {
    const struct naive *naive = params;
    if (naive->form == FORM_NORMALIZED && naive->seq_len == 0) {
        return pe_fail(err, PE_ERR_MISSING, "seq_len",
                       "form normalized divides by it, and no positions tell it");
    }
    return PE_OK;
}

static size_t naive_width(const void *params) {
    const struct naive *naive = params;
    return (size_t)naive->d_model;
}

static void naive_bounds(const struct pe_plan_view *view, double *min, double *max) {
    const struct naive *naive = view->params;
    if (naive->form == FORM_BINARY) { /* positions end at 2^53, so more columns allow no more of them */
        *min = 0;
        *max = ldexp(1, naive->d_model < 54 ? (int)naive->d_model : 54) - 1;
    }
}

static int naive_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                       struct pe_error *err) {
    const struct naive *naive = view->params;
    if (naive->form != FORM_BINARY) {
        return PE_OK;
    }
    int bits = naive->d_model < 54 ? (int)naive->d_model : 54;
    struct pe_admit rule = {.whole = true};
    naive_bounds(view, &rule.min, &rule.max);
    struct pe_stray stray;
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    char path[64];
    pe_positions_index_text(positions, stray.index, path, sizeof path);
    return pe_fail(err, PE_ERR_RANGE, path, "got %.17g, allowed are whole numbers from 0 to %.0f (%d bits)",
                   stray.position, rule.max, bits);
}

/* |p| < limit, or |p / seq_len| < limit, for whole intervals of p; bits are at most 1. */
static int naive_fits(const struct pe_plan_view *view, const struct pe_positions *positions,
                      enum pe_dtype dtype, double limit, struct pe_error *err) {
    const struct naive *naive = view->params;
    if (naive->form == FORM_BINARY) {
        return limit > 1 ? PE_OK : pe_positions_overflow(positions, 0, 1, dtype, limit, err);
    }
    double unit = naive->form == FORM_NORMALIZED ? (double)naive->seq_len : 1;
    double most = nextafter(limit * unit, 0);
    struct pe_admit rule = {.min = -most, .max = most};
    struct pe_stray stray;
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_positions_overflow(positions, stray.index, stray.position / unit, dtype, limit, err);
}

/* p / n for n > 0, rounded to odd: when the quotient of doubles is not exact, its last bit is made 1 on the
 * side of the true value. A second rounding to a type of at most 51 bits then is right as if it were the
 * first: it can neither see a tie that is none, nor miss on which side of one the true value lies. */
static double divide_to_odd(double p, double n) {
    double quotient = p / n;
    double rest = fma(-quotient, n, p); /* exact */
    uint64_t bits;
    memcpy(&bits, &quotient, sizeof bits);
    if (rest == 0 || quotient == 0 || (bits & 1)) {
        return quotient;
    }
    bool away_from_zero = (rest > 0) == (quotient > 0);
    bits = away_from_zero ? bits + 1 : bits - 1;
    memcpy(&quotient, &bits, sizeof bits);
    return quotient;
}

/* One value in all columns: out [D]. */
static void fill(double value, enum pe_dtype dtype, size_t width, unsigned char *out) {
    size_t size = pe_dtype_size(dtype);
    pe_dtype_store(dtype, &value, 1, out);
    for (size_t c = 1; c < width; c++) {
        memcpy(out + c * size, out, size);
    }
}

/* Column c is bit c: out [D]. */
static void spell(double position, enum pe_dtype dtype, size_t width, unsigned char *out) {
    size_t size = pe_dtype_size(dtype);
    uint64_t bits = (uint64_t)position;
    for (size_t c = 0; c < width; c++, bits >>= 1) {
        double bit = (double)(bits & 1);
        pe_dtype_store(dtype, &bit, 1, out + c * size);
    }
}

static void naive_encode(const struct pe_plan_view *view, const double *positions, size_t n,
                         enum pe_dtype dtype, void *out) {
    const struct naive *naive = view->params;
    double length = (double)naive->seq_len;
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t t = 0; t < n; t++) {
        unsigned char *row = (unsigned char *)out + t * row_bytes;
        if (naive->form == FORM_INTEGER) {
            fill(positions[t], dtype, view->width, row);
        } else if (naive->form == FORM_BINARY) {
            spell(positions[t], dtype, view->width, row);
        } else {
            fill(dtype == PE_DTYPE_F64 ? positions[t] / length : divide_to_odd(positions[t], length), dtype,
                 view->width, row);
        }
    }
}

const struct pe_encoding pe_naive = {
    .info =
        {
            .type = "naive",
            .title = "Naive attempts",
            .doc = "Three attempts that fail: the position itself grows without bound, the position divided "
                   "by the length changes its step with the length, and the bits of the position jump from "
                   "one neighbour to the next.",
            .reference = "Kazemnejad 2019, Transformer Architecture: The Positional Encoding",
            .family = PE_FAMILY_ABSOLUTE,
            .params_size = sizeof(struct naive),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = naive_check,
    .width = naive_width,
    .admit = naive_admit,
    .bounds = naive_bounds,
    .fits = naive_fits,
    .encode = naive_encode,
};
