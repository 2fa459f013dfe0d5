/* SPDX-License-Identifier: MIT
 *
 * identify: what one look at all numbers tells, without any search: that nothing is there, that nothing depends on the
 * position, that nothing turns, or that numbers are of a size whose squares are none. Searching such tables takes
 * long and finds what is not there.
 *
 * Nothing turns where after = g*before, the g by least squares, to half a unit of the last place.
 */
#include "ops/identify.h"

#include <stdarg.h>
#include <stdio.h>

#define LARGEST 1e60 /* sums of fourth powers are numbers */
#define ROOM    200

struct look {
    const struct pe_identify *op;
    const double *first; /* a row */
    double gain;         /* g */
    double close; /* what is no difference, beside the last place, which is so large a part of a number: */
    double rounded;
    double got, was;           /* the largest numbers */
    bool same, still, upright; /* all rows are; nothing turns; all sines are 0 */
};

static void look_at(struct look *look, const double *got, const double *was) {
    const struct pe_identify *op = look->op;
    for (size_t i = 0; i < op->items; i++) {
        double x = fabs(got[i]);
        look->got = fmax(look->got, x);
        look->same = look->same && fabs(got[i] - look->first[i]) <= look->close;
        look->upright = look->upright && (i < op->items / 2 || x <= look->close);
        if (was) {
            look->was = fmax(look->was, fabs(was[i]));
            look->still =
                look->still && fabs(got[i] - look->gain * was[i]) <= look->close + look->rounded * x;
        }
    }
}

/* 1 where it is not told from that. */
static double gain_of(const struct pe_identify *op, double rounded) {
    double both = 0, square = 0;
    for (size_t i = 0; i < op->n * op->items && op->was; i++) {
        both += op->got[i] * op->was[i];
        square += op->was[i] * op->was[i];
    }
    double gain = square > 0 ? both / square : 1, size = sqrt(op->power);
    return fabs(gain - 1) * size <= rounded * size + op->floor ? 1 : gain;
}

static struct look look_open(const struct pe_identify *op) {
    static const double rounded[PE_DTYPE_COUNT] = {[PE_DTYPE_F64] = 0x1p-53,
                                                   [PE_DTYPE_F32] = 0x1p-24,
                                                   [PE_DTYPE_F16] = 0x1p-11,
                                                   [PE_DTYPE_BF16] = 0x1p-8};
    return (struct look){.op = op,
                         .first = op->got,
                         .gain = gain_of(op, rounded[op->stored]),
                         /* far away the floor is high */
                         .close = fmin(op->floor, 1e-3 * sqrt(op->power)),
                         .rounded = rounded[op->stored],
                         .same = op->length > 1 && op->kind != PE_IDENTIFY_TURNED,
                         .still = op->kind == PE_IDENTIFY_TURNED,
                         .upright = op->kind == PE_IDENTIFY_TRIG};
}

static const char *verdict(const struct pe_identify *op, struct pe_error *err, const char *format, ...)
    PE_PRINTF(3, 4);
static const char *verdict(const struct pe_identify *op, struct pe_error *err, const char *format, ...) {
    char *text = pe_arena_alloc(op->arena, ROOM, err);
    va_list list;
    va_start(list, format);
    if (text) {
        vsnprintf(text, ROOM, format, list);
    }
    va_end(list);
    return text;
}

/* Sizes, of which the first that is none is told. NULL: they can be searched. */
static const char *say_size(const struct look *look, const struct look *sample, struct pe_error *err) {
    const struct pe_identify *op = look->op;
    const double sizes[] = {look->got, op->was ? look->was : look->got}, seen[] = {sample->got, sample->was};
    static const char *const of[] = {"", " of before"};
    for (int i = 0; i < (op->was ? 2 : 1); i++) {
        const struct pe_tensor *tensor = i ? op->before : op->made[0];
        const char *type = tensor->dtype == PE_DTYPE_F64 ? NULL : pe_dtype_name(tensor->dtype);
        if (sizes[i] == 0) {
            return verdict(op, err, "none of these: every number%s is 0%s%s", of[i], type ? " in " : "",
                           type ? type : "");
        }
        if (!(sizes[i] <= LARGEST && sizes[i] >= 1 / LARGEST)) {
            return verdict(
                op, err,
                "none of these: the largest number%s is %.3g, and tables of sizes outside of %g to "
                "%g are not searched: divide by it",
                of[i], sizes[i], 1 / LARGEST, LARGEST);
        }
        if (seen[i] < 1 / LARGEST) {
            return verdict(op, err,
                           "none of these: in all %zu rows that are searched every number%s is %s%.3g", op->n,
                           of[i], seen[i] > 0 ? "below " : "", seen[i] > 0 ? 1 / LARGEST : 0);
        }
    }
    return NULL;
}

static const char *say_same(const struct look *look, const char *rows, struct pe_error *err) {
    const struct pe_identify *op = look->op;
    if (look->still && look->gain != 1) {
        return verdict(op, err, "none of these: nothing turns%s, every number is multiplied by %.7g", rows,
                       look->gain);
    }
    if (look->still) {
        return verdict(op, err, "none of these: nothing turns%s, vectors are the same after as before", rows);
    }
    if (look->same && look->upright) {
        return verdict(op, err, "none of these: nothing turns%s, every sine is 0 and all rows are the same",
                       rows);
    }
    return look->same ? verdict(op, err, "none of these: all rows%s are the same", rows) : NULL;
}

const char *pe_identify_plain(const struct pe_identify *op, struct pe_error *err) {
    struct look sample = look_open(op), whole = sample;
    double *got = op->scratch, *was = op->was ? got + op->items : NULL;
    for (size_t k = 0; k < op->n; k++) {
        look_at(&sample, op->got + k * op->items, op->was ? op->was + k * op->items : NULL);
    }
    for (size_t row = 0; row < op->length && !pe_error_poll(err); row++) {
        pe_identify_load(op, row, got, was);
        look_at(&whole, got, was);
    }
    if (err->code) {
        return NULL;
    }
    const char *said = say_size(&whole, &sample, err);
    bool all = whole.same || whole.still;
    return said || err->code ? said : say_same(all ? &whole : &sample, all ? "" : " that are searched", err);
}
