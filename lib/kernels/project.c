/* SPDX-License-Identifier: MIT
 *
 * A panel of rows by a panel of columns at a time, so that only these are doubles besides the result.
 */
#include "kernels/project.h"

#include "kernels/linalg.h"

#define PANEL ((size_t)64) /* rows and columns */

size_t pe_project_panels(size_t width) {
    return 2 * PANEL * width;
}

static void load(const struct pe_tensor *tensor, size_t first, size_t n, double *out) {
    const unsigned char *data = tensor->data;
    pe_dtype_load(tensor->dtype, data + first * pe_dtype_size(tensor->dtype), n, out);
}

/* Panels [PANEL, D] of x and [D, PANEL] of w. */
static int multiply(const struct pe_projection *is, double *out, struct pe_error *err) {
    size_t rows = is->x->dim[0], width = is->x->dim[1], columns = is->w->dim[1];
    double *left = is->panels, *right = is->panels + PANEL * width;
    for (size_t c = 0, n; c < columns && !err->code; c += n) {
        n = columns - c < PANEL ? columns - c : PANEL;
        for (size_t r = 0; r < width; r++) {
            load(is->w, r * columns + c, n, right + r * n);
        }
        for (size_t r = 0, m; r < rows && !pe_error_poll(err); r += m) {
            m = rows - r < PANEL ? rows - r : PANEL;
            load(is->x, r * width, m * width, left);
            struct pe_gemm gemm = {
                .dtype = PE_DTYPE_F64,
                .ordered = true,
                .m = m,
                .n = n,
                .k = width,
                .alpha = 1,
                .a = {left, width},
                .b = {right, n},
                .c = {out + r * columns + c, columns},
                .stop = err->stop,
            };
            pe_gemm_run(&gemm);
        }
    }
    return err->code;
}

static void bias_add(const struct pe_tensor *bias, size_t rows, double *out) {
    size_t columns = bias->dim[0];
    for (size_t c = 0; c < columns; c++) {
        double more;
        load(bias, c, 1, &more);
        for (size_t r = 0; r < rows; r++) {
            out[r * columns + c] += more;
        }
    }
}

int pe_project(const struct pe_projection *projection, double *out, struct pe_error *err) {
    if (!projection->w) {
        load(projection->x, 0, pe_tensor_count(projection->x), out);
    } else if (multiply(projection, out, err)) {
        return err->code;
    }
    if (projection->bias) {
        bias_add(projection->bias, projection->x->dim[0], out);
    }
    return err->code;
}
