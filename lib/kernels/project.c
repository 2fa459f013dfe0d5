/* SPDX-License-Identifier: MIT
 *
 * A panel of rows by a panel of columns at a time, so that only these are doubles besides the result.
 */
#include "kernels/project.h"

#include "core/stop.h"
#include "kernels/linalg.h"

#define PANEL ((size_t)64)   /* rows and columns */
#define ROWS  ((size_t)1024) /* of a panel, between two questions whether to stop */

static size_t panel(size_t n) {
    return n < PANEL ? n : PANEL;
}

size_t pe_project_panels(const struct pe_tensor *x, const struct pe_tensor *w) {
    return (panel(x->dim[0]) + panel(w->dim[1])) * x->dim[1];
}

static void load(const struct pe_tensor *tensor, size_t first, size_t n, double *out) {
    const unsigned char *data = tensor->data;
    pe_dtype_load(tensor->dtype, data + first * pe_dtype_size(tensor->dtype), n, out);
}

/* Panels of PANEL rows of x [n, D] and of as many columns of w [D, n]. */
static int multiply(const struct pe_projection *is, double *out, struct pe_error *err) {
    size_t rows = is->x->dim[0], width = is->x->dim[1], columns = is->w->dim[1];
    double *left = is->panels, *right = is->panels + panel(rows) * width;
    for (size_t c = 0, n; c < columns && !err->code; c += n) {
        n = panel(columns - c);
        for (size_t r = 0; r < width && (r % PANEL || !pe_error_poll(err)); r++) {
            load(is->w, r * columns + c, n, right + r * n);
        }
        for (size_t r = 0, m; r < rows && !pe_error_poll(err); r += m) {
            m = panel(rows - r);
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

static void bias_add(const struct pe_tensor *bias, size_t rows, double *out, struct pe_error *err) {
    size_t columns = bias->dim[0];
    double more[PANEL];
    for (size_t c = 0, n; c < columns; c += n) {
        n = panel(columns - c);
        load(bias, c, n, more);
        for (size_t r = 0; r < rows && (r % ROWS || !pe_error_poll(err)); r++) {
            for (size_t i = 0; i < n; i++) {
                out[r * columns + c + i] += more[i];
            }
        }
    }
}

static void copy(const struct pe_tensor *x, double *out, struct pe_error *err) {
    size_t n = pe_tensor_count(x);
    for (size_t done = 0, step; done < n && !pe_error_poll(err); done += step) {
        step = pe_stop_step(n, done);
        load(x, done, step, out + done);
    }
}

int pe_project(const struct pe_projection *projection, double *out, struct pe_error *err) {
    if (!projection->w) {
        copy(projection->x, out, err);
    } else if (multiply(projection, out, err)) {
        return err->code;
    }
    if (projection->bias) {
        bias_add(projection->bias, projection->x->dim[0], out, err);
    }
    return err->code;
}
