/* SPDX-License-Identifier: MIT
 *
 * identify: the table of an image, [cls + h*w, D], whose tokens come row by row. Half of its columns stay the same
 * along a row, the other half repeat from row to row: that tells the grid, and which columns belong to which axis.
 * Those of one axis are an ordinary table of few positions.
 */
#include "ops/identify.h"

#include <math.h>
#include <string.h>

#define SAME      0.02 /* of the amplitude: numbers that are meant to be equal */
#define MOST_ROWS 128  /* that tell whether columns repeat */

/* A number of the sample's own table: rows are those posted. */
struct image {
    const struct pe_identify *op;
    size_t before, tokens, width;
    const double *x; /* [tokens, width] */
    double same;
};

static double at(const struct image *image, size_t token, size_t column) {
    return image->x[token * image->width + column];
}

/* Does a column of a grid w wide stay the same along rows, or repeat from row to row? */
static bool stays(const struct image *image, size_t w, size_t column) {
    for (size_t t = 0; t + 1 < image->tokens && t < MOST_ROWS; t++) {
        if (t % w != w - 1 && fabs(at(image, t, column) - at(image, t + 1, column)) > image->same) {
            return false;
        }
    }
    return true;
}

static bool repeats(const struct image *image, size_t w, size_t column) {
    for (size_t t = 0; t + w < image->tokens && t < MOST_ROWS; t++) {
        if (fabs(at(image, t, column) - at(image, t + w, column)) > image->same) {
            return false;
        }
    }
    return true;
}

/* Slow columns tell nothing: the order that the quarters which are told are in. */
static bool order_find(const size_t told[4], bool first[4]) {
    static const bool orders[][4] = {{1, 1, 0, 0}, {0, 0, 1, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}};
    bool both[2] = {false, false};
    for (size_t q = 0; q < 4; q++) {
        both[first[q]] = both[first[q]] || told[q];
    }
    for (size_t k = 0; k < PE_COUNT(orders) && both[0] && both[1]; k++) {
        bool fits = true;
        for (size_t q = 0; q < 4; q++) {
            fits = fits && (!told[q] || first[q] == orders[k][q]);
        }
        if (fits) {
            memcpy(first, orders[k], sizeof orders[k]);
            return true;
        }
    }
    return false;
}

/* Which halves, or quarters, of the columns are of the first axis: 1010 is alternating. false: it is no grid. */
static bool quarters_find(const struct image *image, size_t w, bool first[4]) {
    size_t told[4] = {0};
    for (size_t c = 0; c < image->width; c++) {
        size_t quarter = c * 4 / image->width;
        bool of_first = stays(image, w, c), of_second = repeats(image, w, c);
        if (!of_first && !of_second) {
            return false;
        }
        if (of_first != of_second) {
            if (told[quarter]++ && first[quarter] != of_first) {
                return false;
            }
            first[quarter] = of_first;
        }
    }
    return order_find(told, first);
}

static size_t width_find(const struct image *image, bool first[4], struct pe_error *err) {
    for (size_t w = 2; w <= image->tokens / 2 && !pe_error_poll(err); w++) {
        bool told = image->op->columns == 0 || image->op->columns == w;
        if (told && image->tokens % w == 0 && quarters_find(image, w, first)) {
            return w;
        }
    }
    return 0;
}

/* ---- One axis ------------------------------------------------------------------------------------------ */

/* The columns of an axis, at positions 0, 1 ... of it while the other stands still. */
static int axis_sheet(const struct image *image, const bool first[4], bool of_first, size_t w,
                      struct pe_sheet *sheet, struct pe_error *err) {
    size_t rows = of_first ? image->tokens / w : w, n = 0;
    double *x = pe_arena_array(image->op->arena, rows * image->width, sizeof *x, err);
    double *p = pe_arena_array(image->op->arena, rows, sizeof *p, err);
    if (err->code) {
        return err->code;
    }
    for (size_t r = 0; r < rows; r++) {
        p[r] = (double)r;
        for (size_t c = 0; c < image->width; c++) {
            if (first[c * 4 / image->width] == of_first) {
                x[n++] = at(image, of_first ? r * w : r, c);
            }
        }
    }
    *sheet = (struct pe_sheet){
        .rows = rows, .width = n / rows, .p = p, .x = x, .floor = image->op->floor, .power = 0.5, .err = err};
    return PE_OK;
}

/* The shapes that axes have. The best one and its ladder; NULL: none. */
static const struct pe_shape *axis_fit(const struct pe_sheet *sheet, double *scratch,
                                       struct pe_ladder *ladder) {
    const struct pe_shape *best = NULL;
    double least = 0.01 * sheet->power;
    for (size_t i = 0; i < 3; i++) { /* interleaved, halves, halves with d/2 - 1 */
        struct pe_ladder found;
        if (!pe_ladder_find(sheet, &pe_identify_shapes[i], scratch, &found)) {
            continue;
        }
        pe_ladder_refine(sheet, &pe_identify_shapes[i], &found, 15, 12);
        pe_ladder_simplify(sheet, &pe_identify_shapes[i], &found, false);
        double miss = pe_ladder_miss(sheet, &pe_identify_shapes[i], &found) + sheet->floor * sheet->floor;
        bool usual = fabs(exp(found.v[PE_LADDER_BASE]) / 10000 - 1) < 1e-9;
        if (miss < least * (usual ? 2 : 0.5)) {
            least = miss;
            best = &pe_identify_shapes[i];
            *ladder = found;
        }
    }
    return best;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* The convention, by its shape and the order of its columns. */
static const char *combine_of(const struct pe_shape *shape, const bool first[4], bool shifted) {
    bool kinds = first[0] != first[1];
    if (!shape->halves) {
        return kinds ? NULL : shifted ? "detr" : "tatp22";
    }
    if (shape->minus_one) {
        return kinds ? NULL : "t2t";
    }
    return kinds ? "timm" : first[0] ? "timm_interleaved" : "mae";
}

static int image_try(struct pe_identify *op, const struct image *image, size_t w, const bool first[4],
                     struct pe_error *err) {
    struct pe_sheet sheet;
    struct pe_ladder ladder = {.sign = 1};
    struct pe_identify_grid *grid = pe_arena_array(op->arena, 1, sizeof *grid, err);
    double *scratch = pe_arena_array(op->arena, 2 * image->width, sizeof *scratch, err);
    bool by_rows = image->tokens / w >= w; /* the longer axis tells more */
    if (err->code || axis_sheet(image, first, by_rows, w, &sheet, err)) {
        return err->code;
    }
    const struct pe_shape *shape = axis_fit(&sheet, scratch, &ladder);
    double scale = pe_ladder_scale(&ladder), size = by_rows ? (double)(image->tokens / w) : (double)w;
    if (!shape) {
        return err->code;
    }
    *grid = (struct pe_identify_grid){.rows = image->tokens / w,
                                      .columns = w,
                                      .before = image->before,
                                      .last_first = !first[0],
                                      .normalized = fabs(scale - 1) > 1e-3,
                                      .base = exp(ladder.v[PE_LADDER_BASE]),
                                      .start = ladder.v[PE_LADDER_OFFSET] / scale};
    grid->full = grid->normalized ? scale * (size + 1e-6) : 0;
    grid->start = fabs(grid->start - nearbyint(grid->start)) < 1e-2 ? nearbyint(grid->start) : grid->start;
    grid->origin = op->origin;
    grid->start -= op->origin;
    grid->combine = combine_of(shape, first, grid->normalized || grid->start != 0);
    if (fabs(grid->full / PE_TURN - 1) < 2e-3) {
        grid->full = PE_TURN;
    }
    struct pe_trial trial = {
        .grid = grid, .arithmetic = &pe_identify_arithmetics[0], .width = op->width, .penalty = 6};
    return grid->combine ? pe_trial_add(op, &trial, err) : PE_OK;
}

static int image_read(struct image *image, struct pe_error *err) {
    const struct pe_identify *op = image->op;
    size_t n = 0;
    double *x = pe_arena_array(op->arena, op->length * op->items, sizeof *x, err);
    for (size_t row = 0; row < op->length && !pe_error_poll(err); row++) {
        double *to = x + n * op->items, sum = 0;
        pe_identify_load(op, row, to, NULL);
        for (size_t i = 0; i < op->items; i++) {
            sum += to[i] * to[i];
        }
        bool zeros = n == 0 && sum < 0.01 * op->power * (double)op->items;
        image->before += zeros;
        n += !zeros;
    }
    image->x = x;
    image->tokens = n;
    image->same = SAME * sqrt(2 * op->power) + 8 * op->floor;
    return err->code;
}

int pe_identify_image(struct pe_identify *op, struct pe_error *err) {
    struct image image = {.op = op, .width = op->items};
    bool first[4] = {false};
    if (op->positions.list || op->positions.start != 0 || op->positions.step != 1 || op->items % 4 != 0 ||
        op->length < 4 || image_read(&image, err)) {
        return err->code;
    }
    size_t w = image.before < 16 ? width_find(&image, first, err) : 0;
    return w ? image_try(op, &image, w, first, err) : PE_OK;
}
