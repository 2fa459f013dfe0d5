/* SPDX-License-Identifier: MIT
 *
 * Positions: an arithmetic progression that takes no memory, or a list.
 *
 * Element i of a progression is fl(start + i*step), one rounding by fma, so that position 10^9 of a range
 * is the same number whether one begins at it or arrives there; adding the step up would drift. Rounding is
 * monotone: the elements of a positive step never descend. Hence the number of elements before `stop` is told by
 * the very expression that makes them, of the elements next to the quotient (stop - start) / step, which by its own
 * roundings may be off by one; only where it is off by more are they searched by bisection.
 *
 * Beyond 2^53 neighbouring whole numbers are the same double; such positions are refused, not merged, also where they
 * would round to 2^53. So are steps that are smaller than those from one double to the next.
 *
 * Text is a range, start:stop[:step], or a list. Numbers follow the JSON grammar and stand without spaces, so
 * that a query has one spelling; negative numbers are positions and never count from the end.
 */
#include "posenc.h"

#include "core/number_array.h"
#include "core/stop.h"

#include <math.h>
#include <string.h>

#define ALLOWED   "allowed are -2^53 to 2^53"
#define SHOWN_MAX 40 /* characters of a wrong text that a message repeats */

/* At most 2^53 elements, so that an index is exact as a double. */
static const size_t count_max =
    SIZE_MAX < UINT64_C(9007199254740992) ? SIZE_MAX : (size_t)UINT64_C(9007199254740992);

static double progression(double start, double step, size_t i) {
    return fma((double)i, step, start);
}

static int number_check(const char *name, double value, struct pe_error *err) {
    if (isfinite(value)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_NONFINITE, "", "got %s %g, allowed are finite numbers", name, value);
}

static int position_check(double value, struct pe_error *err) {
    if (fabs(value) <= PE_POSITION_MAX) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, "", "got position %.17g, " ALLOWED, value);
}

/* Positions that are different numbers stay so: from here to `end` doubles lie at most a step from each other. Where
 * they lie exactly a step from each other, a start between two of them has elements that all are halfway. */
static int step_check(double start, double step, double end, struct pe_error *err) {
    double far = fmin(fmax(fabs(start), fabs(end)), PE_POSITION_MAX), gap = far - nextafter(far, 0);
    bool halfway = fabs(step) == gap && 2 * fabs(fmod(start, gap)) == gap;
    if (step == 0 || (fabs(step) >= gap && !halfway)) { /* 0: one position, many times */
        return PE_OK;
    }
    return pe_fail(
        err, PE_ERR_RANGE, "",
        "got step %.17g from %.17g, but at a distance of %.17g there are numbers only every %.17g, "
        "and positions would fall together",
        step, start, far, gap);
}

/* An end that is the double 2^53 by rounding lies beyond it where start + i*step - end, all of it, is on the outer side.
 * Steps that passed step_check are of 1 or more there, so that each part below is exact: none has digits under 2^-52. */
static int end_check(double start, double step, size_t i, struct pe_error *err) {
    double end = progression(start, step, i);
    double rest = start - end, lost = start - (rest + end); /* start = end + rest + lost */
    if (fabs(end) < PE_POSITION_MAX || (fma((double)i, step, rest) + lost) * end <= 0) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, "", "got positions beyond %.17g, " ALLOWED, end);
}

int pe_positions_steps(struct pe_positions *out, double start, double step, size_t count,
                       struct pe_error *err) {
    if (err->code || number_check("start", start, err) || number_check("step", step, err)) {
        return err->code;
    }
    if (count > count_max) {
        return pe_fail(err, PE_ERR_RANGE, "", "got %zu positions, allowed are up to 2^53", count);
    }
    double last = progression(start, step, count ? count - 1 : 0);
    if (count && (position_check(start, err) || position_check(last, err))) {
        return err->code;
    }
    if (count > 1 && (step_check(start, step, last, err) || end_check(start, step, count - 1, err))) {
        return err->code;
    }
    *out = (struct pe_positions){.length = count, .axes = 1, .start = start, .step = step};
    return PE_OK;
}

/* Does element i come before stop? If one does, so do all before it: roundings keep the order. */
static bool is_before(double start, double stop, double step, size_t i) {
    double element = progression(start, step, i);
    return step > 0 ? element < stop : element > stop;
}

/* The number of elements before stop; count_max + 1 when there are more than count_max. It nearly always is what the
 * quotient says, or one more, and else is searched for. */
static size_t range_count(double start, double stop, double step) {
    size_t low = 0, high = count_max + 1; /* elements before low come before stop, those from high do not */
    double quotient = (stop - start) / step;
    if (quotient >= 1 && quotient < (double)count_max) {
        size_t near = (size_t)quotient;
        low = is_before(start, stop, step, near - 1) ? near : 0;
        high = is_before(start, stop, step, near + 1) ? high : near + 1;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(start, stop, step, middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int pe_positions_range(struct pe_positions *out, double start, double stop, double step,
                       struct pe_error *err) {
    if (err->code || number_check("start", start, err) || number_check("stop", stop, err) ||
        number_check("step", step, err)) {
        return err->code;
    }
    if (step == 0) {
        return pe_fail(err, PE_ERR_RANGE, "", "got step 0, allowed is any other finite number");
    }
    size_t count = range_count(start, stop, step);
    if (count && position_check(start, err)) {
        return err->code;
    }
    if (count > count_max && fabs(stop) > PE_POSITION_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "", "got positions up to %.17g, " ALLOWED, stop);
    }
    if (count > count_max) {
        return pe_fail(err, PE_ERR_RANGE, "", "got more than 2^53 positions from %.17g to %.17g by %.17g",
                       start, stop, step);
    }
    if (count && step_check(start, step, stop, err)) { /* which may have hidden some of them */
        return err->code;
    }
    return pe_positions_steps(out, start, step, count, err);
}

size_t pe_positions_count(const struct pe_positions *positions) {
    return (positions->batch ? positions->batch : 1) * positions->length;
}

static int shape_fail(const struct pe_tensor *tensor, int axes, struct pe_error *err) {
    char shape[128];
    pe_tensor_shape_text(tensor, shape, sizeof shape);
    if (axes == 1) {
        return pe_fail(
            err, PE_ERR_SHAPE, "",
            "got shape %s, allowed are [T] and [B, T]; or [B, T, n], a row of n coordinates for each", shape);
    }
    return pe_fail(err, PE_ERR_SHAPE, "", "got shape %s, allowed are [T, %d] and [B, T, %d]", shape, axes,
                   axes);
}

/* [T] or [B, T], and behind it [axes] when there are several. */
static int shape_check(const struct pe_tensor *tensor, int axes, struct pe_error *err) {
    if (axes < 1) {
        return pe_fail(err, PE_ERR_SHAPE, "", "got %d coordinates for a position, at least 1 is needed",
                       axes);
    }
    int rank = tensor->rank - (axes > 1);
    bool fits = rank == 1 || rank == 2;
    if (fits && axes > 1) {
        fits = tensor->dim[rank] == (size_t)axes;
    }
    if (!fits) {
        return shape_fail(tensor, axes, err);
    }
    if (rank == 2 && tensor->dim[0] == 0) {
        return pe_fail(err, PE_ERR_SHAPE, "", "got a batch of 0 rows, at least 1 is needed");
    }
    return PE_OK;
}

/* out becomes a view of a list of doubles, once its shape and elements are found right. */
static int adopt(struct pe_positions *out, const struct pe_tensor *list, int axes, struct pe_error *err) {
    if (shape_check(list, axes, err) || pe_tensor_check_finite(list, false, err)) {
        return err->code;
    }
    const double *values = list->data;
    const size_t count = pe_tensor_count(list);
    for (size_t i = 0; i < count; i++) {
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        if (position_check(values[i], err)) {
            char path[sizeof err->path];
            return pe_error_at(err, pe_tensor_index_text(list, i, path, sizeof path));
        }
    }
    const int rank = list->rank - (axes > 1);
    *out = (struct pe_positions){
        .batch = rank == 2 ? list->dim[0] : 0, .length = list->dim[rank - 1], .axes = axes, .list = values};
    return PE_OK;
}

int pe_positions_tensor(struct pe_arena *arena, struct pe_positions *out, const struct pe_tensor *tensor,
                        int axes, struct pe_error *err) {
    if (err->code || shape_check(tensor, axes, err)) {
        return err->code;
    }
    struct pe_tensor list; /* a copy even of float64: a view of posted bytes may not be aligned */
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, tensor->rank, tensor->dim, err)) {
        return err->code;
    }
    if (pe_tensor_load(tensor, list.data, err)) {
        return err->code;
    }
    return adopt(out, &list, axes, err);
}

#define RANGE_PARTS 3

/* "start:stop" or "start:stop:step" into numbers; a part that is not there stays. */
static int range_split(const char *text, double part[RANGE_PARTS], struct pe_error *err) {
    static const char *const names[RANGE_PARTS] = {"start", "stop", "step"};
    size_t n = 0;
    for (bool more = true; more; n++) {
        if (n == RANGE_PARTS) {
            return pe_fail(err, PE_ERR_SYNTAX, "",
                           "got more than three numbers, a range is start:stop or start:stop:step");
        }
        size_t length = strcspn(text, ":");
        struct pe_number number;
        enum pe_number_status result = pe_number_parse(text, length, &number);
        int shown = length < SHOWN_MAX ? (int)length : SHOWN_MAX;
        if (result == PE_NUMBER_OVERFLOW || (result == PE_NUMBER_OK && number.beyond)) {
            return pe_fail(err, PE_ERR_RANGE, "", "got %s %.*s, " ALLOWED, names[n], shown, text);
        }
        if (result != PE_NUMBER_OK) {
            return pe_fail(err, PE_ERR_SYNTAX, "", "got \"%.*s\" for the %s of a range, a number is needed",
                           shown, text, names[n]);
        }
        part[n] = number.value;
        more = text[length] == ':';
        text += length + more;
    }
    return PE_OK;
}

int pe_positions_parse(struct pe_arena *arena, struct pe_positions *out, const char *text,
                       struct pe_error *err) {
    if (err->code) {
        return err->code;
    }
    if (text[0] == '\0') {
        return pe_fail(err, PE_ERR_SYNTAX, "", "got no text, allowed are a list and start:stop:step");
    }
    if (text[0] != '[' && strchr(text, ':')) {
        double part[RANGE_PARTS] = {0, 0, 1};
        if (range_split(text, part, err)) {
            return err->code;
        }
        return pe_positions_range(out, part[0], part[1], part[2], err);
    }
    struct pe_tensor list;
    if (pe_number_array(arena, &list, text, PE_DTYPE_F64, err)) {
        return err->code;
    }
    bool rows = list.rank == 3 && list.dim[2] > 1 && list.dim[2] <= PE_MAX_AXES; /* of coordinates */
    return adopt(out, &list, rows ? (int)list.dim[2] : 1, err);
}

int pe_positions_fill(const struct pe_positions *positions, double *out, struct pe_error *err) {
    size_t n = pe_positions_count(positions), axes = (size_t)positions->axes;
    for (size_t first = 0, step; first < n && !pe_error_poll(err); first += step) {
        step = pe_stop_step(n, first);
        pe_positions_read(positions, first, step, out + first * axes);
    }
    return err->code;
}

void pe_positions_read(const struct pe_positions *positions, size_t first, size_t n, double *out) {
    const size_t axes = (size_t)positions->axes;
    if (n == 0) {
        return;
    }
    if (positions->list) {
        memcpy(out, positions->list + first * axes, n * axes * sizeof *out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = progression(positions->start, positions->step, first + i);
    }
}
