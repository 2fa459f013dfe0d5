/* SPDX-License-Identifier: MIT
 *
 * Positions that lie too close together for an encoding to tell them apart: what is computed is right, and most
 * likely not what was meant.
 */
#include "core/stop.h"
#include "encodings/encoding.h"

#include <math.h>

#define FEW  3   /* positions below which nothing is said */
#define TURN 1.0 /* radians */

struct ends {
    double least, most;
};

static int ends_find(const struct pe_positions *positions, struct ends *ends, struct pe_error *err) {
    double some[256];
    size_t n = pe_positions_count(positions);
    *ends = (struct ends){INFINITY, -INFINITY};
    for (size_t done = 0, step; done < n && !pe_error_poll(err); done += step) {
        step = n - done < PE_COUNT(some) ? n - done : PE_COUNT(some);
        pe_positions_read(positions, done, step, some);
        for (size_t i = 0; i < step; i++) {
            ends->least = fmin(ends->least, some[i]);
            ends->most = fmax(ends->most, some[i]);
        }
    }
    return err->code;
}

bool pe_positions_crowd(const struct pe_plan *plan, const struct pe_positions *positions, double *span,
                        struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    double step = fabs(positions->step) * ((double)positions->length - 1);
    struct ends ends = {0,
                        step}; /* of a range, whose ends may be the result of a rounding that matters not */
    if (!row->fastest || positions->axes != 1 || pe_positions_count(positions) < FEW) {
        return false;
    }
    if (positions->list && ends_find(positions, &ends, err)) {
        return false;
    }
    *span = ends.most - ends.least;
    return *span > 0 && *span * row->fastest(pe_plan_view(plan)) < TURN;
}
