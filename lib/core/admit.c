/* SPDX-License-Identifier: MIT
 *
 * Some encodings know only some positions: a table has an end, a counter knows no halves. A list is looked
 * through. A progression start + i*step is monotone, so its elements outside an interval lie at its beginning
 * or at its end: its first and last element decide, and bisection finds the first that strays. So a range of
 * a million million positions costs no more than one of ten. Whether it holds only whole numbers follows from
 * start and step.
 */
#include "core/admit.h"

#include "core/stop.h"

#include <math.h>

static bool is_fraction(double position) {
    return position != floor(position);
}

static bool strays(const struct pe_admit *rule, double position) {
    return (rule->whole && is_fraction(position)) || position < rule->min || position > rule->max;
}

/* Of all coordinates of all positions. Only a list has several of each. */
static size_t count(const struct pe_positions *positions) {
    return pe_positions_count(positions) * (size_t)positions->axes;
}

static double coordinate_at(const struct pe_positions *positions, size_t index) {
    double position;
    if (positions->list) {
        return positions->list[index];
    }
    pe_positions_read(positions, index, 1, &position);
    return position;
}

/* Both return the index of the first that strays, or the number of coordinates. */
static size_t list_search(const struct pe_positions *positions, const struct pe_admit *rule,
                          const struct pe_stop *stop) {
    size_t n = count(positions), i = 0;
    while (i < n && !strays(rule, positions->list[i])) {
        if (i++ % PE_STOP_ITEMS == 0 && pe_stop_asked(stop)) {
            return n;
        }
    }
    return i;
}

static size_t progression_search(const struct pe_positions *positions, const struct pe_admit *rule) {
    size_t n = pe_positions_count(positions);
    if (n == 0 || strays(rule, positions->start)) {
        return 0;
    }
    if (n > 1 && rule->whole && is_fraction(positions->step)) {
        return 1;
    }
    if (!strays(rule, coordinate_at(positions, n - 1))) {
        return n;
    }
    size_t inside = 0, outside = n - 1;
    while (outside - inside > 1) {
        size_t middle = inside + (outside - inside) / 2;
        if (strays(rule, coordinate_at(positions, middle))) {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    return outside;
}

bool pe_positions_stray(const struct pe_positions *positions, const struct pe_admit *rule,
                        const struct pe_stop *stop, struct pe_stray *stray) {
    size_t index = positions->list ? list_search(positions, rule, stop) : progression_search(positions, rule);
    if (index == count(positions)) {
        return false;
    }
    double position = coordinate_at(positions, index);
    bool outside = position < rule->min || position > rule->max;
    *stray = (struct pe_stray){.index = index, .position = position};
    stray->fraction = rule->whole && (is_fraction(position) || !outside);
    return true;
}

char *pe_positions_index_text(const struct pe_positions *positions, size_t index, char *text, size_t size) {
    struct pe_tensor shape = {.rank = 0};
    if (positions->batch) {
        shape.dim[shape.rank++] = positions->batch;
    }
    shape.dim[shape.rank++] = positions->length;
    if (positions->axes > 1) {
        shape.dim[shape.rank++] = (size_t)positions->axes;
    }
    return pe_tensor_index_text(&shape, index, text, size);
}

int pe_positions_whole(const struct pe_positions *positions, const char *why, struct pe_error *err) {
    const struct pe_admit rule = {.whole = true, .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX};
    struct pe_stray stray;
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    char path[64];
    pe_positions_index_text(positions, stray.index, path, sizeof path);
    return pe_fail(err, PE_ERR_RANGE, path, "got %.17g, allowed are whole numbers: %s", stray.position, why);
}

int pe_positions_overflow(const struct pe_positions *positions, size_t index, double value,
                          enum pe_dtype dtype, double limit, struct pe_error *err) {
    char path[64];
    return pe_fail(err, PE_ERR_RANGE, pe_positions_index_text(positions, index, path, sizeof path),
                   "the vector of position %.17g reaches %.9g, allowed in %s is less than %.9g",
                   coordinate_at(positions, index), value, pe_dtype_name(dtype), limit);
}
