/* SPDX-License-Identifier: MIT
 *
 * Replies are read by jansson or by the library's readers, which have tests of their own.
 */
#include "report_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct call_ground report_ground;
static struct pe_arena *arena;

void report_setup(void) {
    struct pe_error err = {0};
    call_ground_open(&report_ground);
    arena = pe_arena_open((size_t)512 << 20, NULL, &err);
    ck_assert_ptr_nonnull(arena);
}

void report_teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&report_ground);
}

double *report_doubles(size_t n) {
    struct pe_error err = {0};
    double *values = pe_arena_array(arena, n, sizeof *values, &err);
    ck_assert_msg(values != NULL, "%s", err.text);
    return values;
}

/* ---- Replies ------------------------------------------------------------------------------------------- */

/* The numbers of nested lists, in order; counts only where out is NULL. */
static size_t flatten(json_t *data, double *out) {
    if (!json_is_array(data)) {
        ck_assert_msg(json_is_number(data), "not a number in the reply");
        if (out) {
            *out = json_number_value(data);
        }
        return 1;
    }
    size_t n = 0, i;
    json_t *item;
    json_array_foreach(data, i, item) {
        n += flatten(item, out ? out + n : NULL);
    }
    return n;
}

static void shape_of_lists(json_t *data, struct report_tensor *out) {
    for (; json_is_array(data); data = json_array_get(data, 0)) {
        out->dim[out->rank++] = json_array_size(data);
    }
}

static struct report_tensor read_json(const struct call_try *try, const char *name) {
    struct report_tensor out = {0};
    json_t *item = json_object_get(try->json, name), *data = item;
    ck_assert_msg(item != NULL, "%s: no %s in %.300s", try->request, name, try->reply);
    if (json_is_object(item)) {
        json_t *shape = json_object_get(item, "shape");
        data = json_object_get(item, "data");
        for (size_t i = 0; i < json_array_size(shape); i++) {
            out.dim[out.rank++] = (size_t)json_integer_value(json_array_get(shape, i));
        }
    } else {
        shape_of_lists(data, &out);
    }
    out.n = flatten(data, NULL);
    out.values = report_doubles(out.n);
    flatten(data, out.values);
    return out;
}

static struct report_tensor read_binary(const struct call_try *try, const char *name) {
    struct pe_tensor tensor = call_try_tensor(try, arena, name);
    struct report_tensor out = {.rank = tensor.rank, .n = pe_tensor_count(&tensor)};
    memcpy(out.dim, tensor.dim, sizeof out.dim);
    out.values = report_doubles(out.n);
    pe_dtype_load(tensor.dtype, tensor.data, out.n, out.values);
    return out;
}

static struct report_tensor ask(struct call_try *try, const char *name) {
    call_try(&report_ground, try);
    ck_assert_msg(try->status == 200, "%s: %d %.300s", try->request, try->status, try->reply);
    struct report_tensor out = try->json ? read_json(try, name) : read_binary(try, name);
    call_try_close(try);
    return out;
}

struct report_tensor report_tensor(const char *request, const char *body, const char *name) {
    return ask(&(struct call_try){.request = request, .body = body}, name);
}

struct report_tensor report_tensor_raw(const char *request, const double *values, const size_t *dim, int rank,
                                       const char *name) {
    char shape[128] = "";
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        size_t at = strlen(shape);
        snprintf(shape + at, sizeof shape - at, i ? ",%zu" : "%zu", dim[i]);
        n *= dim[i];
    }
    return ask(
        &(struct call_try){
            .request = request,
            .body = values,
            .body_n = n * sizeof *values,
            .head = {.content_type = "application/octet-stream", .raw_shape = shape, .raw_dtype = "float64"}},
        name);
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

void report_row(const struct report_tensor *got, size_t first, double tolerance, const double *values,
                size_t n) {
    ck_assert_uint_le(first + n, got->n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(fabs(got->values[first + i] - values[i]) <= tolerance, "number %zu is %.17g, not %.17g",
                      first + i, got->values[first + i], values[i]);
    }
}

void report_expect(const char *request, const char *body, const char *name, const size_t *dim, int rank,
                   double tolerance, const double *values, size_t n) {
    struct report_tensor got = report_tensor(request, body, name);
    ck_assert_int_eq(got.rank, rank);
    for (int i = 0; i < rank; i++) {
        ck_assert_uint_eq(got.dim[i], dim[i]);
    }
    ck_assert_uint_eq(got.n, n);
    report_row(&got, 0, tolerance, values, n);
}

void report_refused(const char *request, const char *body, const char *slug, const char *field,
                    const char *const *words) {
    struct call_try try = {.request = request, .body = body};
    call_expect_problem(&report_ground, &try, 400, slug, field, NULL);
    for (; *words; words++) {
        ck_assert_msg(strstr(call_try_text(&try, "detail"), *words) != NULL, "no \"%s\" in: %s", *words,
                      call_try_text(&try, "detail"));
    }
    call_try_close(&try);
}

double report_paper(double p, size_t c, size_t d) {
    double angle = p * pow(10000, -2.0 * (double)(c / 2) / (double)d);
    return c % 2 ? cos(angle) : sin(angle);
}
