/* SPDX-License-Identifier: MIT
 *
 * What holds for every encoding, with its defaults and with every value of every choice, whichever encodings
 * there are: the rows of the registry are asked, none is named here. An encoding that is added is tested by
 * being added.
 */
#include "unit/call_run.h"
#include "unit/suites.h"

#include "api/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VARIANTS 200
#define ROWS         40 /* of the loaded table */

struct variant {
    const struct pe_encoding_info *info;
    int width;       /* of vectors, where it can be chosen */
    char query[200]; /* "type=sinusoidal&d_model=6&layout=halves" */
};
static struct variant variants[MAX_VARIANTS];
static int n_variants;

static struct call_ground ground;
static struct pe_arena *arena;

/* A table [ROWS, 6] is loaded under the name `test_table`. */
static void setup(void) {
    char folder[] = "/tmp/check_registry_XXXXXX", path[100], header[PE_NPY_HEADER_MAX];
    struct pe_error err = {0};
    struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {ROWS, 6}};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/test_table.npy", folder);
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, pe_npy_header(header, sizeof header, &shape), file);
    for (int i = 0; i < ROWS * 6; i++) {
        float x = (float)(i * 37 % 101) / 8.0F - 6;
        fwrite(&x, sizeof x, 1, file);
    }
    fclose(file);
    call_ground_open_tables(&ground, folder);
    remove(path);
    remove(folder);
    arena = pe_arena_open(1 << 24, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&ground);
}

/* ---- Variants ------------------------------------------------------------------------------------------ */

static void variant_add(const struct pe_encoding_info *info, int width, const char *name, const char *value) {
    if (n_variants == MAX_VARIANTS) {
        abort(); /* outside of any test; a larger array is all it takes */
    }
    struct variant *v = &variants[n_variants++];
    *v = (struct variant){.info = info, .width = 6};
    int at = snprintf(v->query, sizeof v->query, "type=%s", info->type);
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct pe_field *row = &info->fields[i];
        if (row->flags & PE_FIELD_WIDTH) {
            at +=
                snprintf(v->query + at, sizeof v->query - (size_t)at, "&%s=%d", row->name, v->width = width);
        } else if (row->flags & PE_FIELD_LENGTH) {
            at += snprintf(v->query + at, sizeof v->query - (size_t)at, "&%s=7", row->name);
        } else if (row->kind == PE_KIND_TABLE && (row->flags & PE_FIELD_REQUIRED)) {
            at += snprintf(v->query + at, sizeof v->query - (size_t)at, "&%s=test_table", row->name);
        }
    }
    if (name) {
        snprintf(v->query + at, sizeof v->query - (size_t)at, "&%s=%s", name, value);
    }
}

static void variants_make(void) {
    static const int widths[] = {6, 7};
    for (size_t e = 0; e < pe_encoding_count(); e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        for (size_t w = 0; w < PE_COUNT(widths); w++) {
            variant_add(info, widths[w], NULL, NULL);
            for (size_t i = 0; i < info->n_fields; i++) {
                const struct pe_field *row = &info->fields[i];
                for (const struct pe_choice *c = row->choices; c && c->name; c++) {
                    variant_add(info, widths[w], row->name, c->name);
                }
                for (int yes = 0; row->kind == PE_KIND_BOOL && yes < 2; yes++) {
                    variant_add(info, widths[w], row->name, yes ? "true" : "false");
                }
            }
        }
    }
}

static bool can(const struct variant *v, unsigned ability) {
    return (pe_encoding_abilities(v->info) & ability) != 0;
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static struct call_try call_of(const char *operation, const struct variant *v, const char *more,
                               const char *body) {
    char *request = malloc(600);
    struct call_try try = {.request = request, .body = body};
    snprintf(request, 600, "%s?%s%s", operation, v->query, more);
    call_try(&ground, &try);
    return try;
}

static void call_end(struct call_try *try) {
    free((void *)(uintptr_t)try->request);
    call_try_close(try);
}

/* float32 vectors [rows, width] of positions; NULL where this width is refused, which must name it. */
static float *vectors_of(const struct variant *v, const char *positions, size_t rows) {
    char more[200];
    snprintf(more, sizeof more, "&positions=%s&format=raw", positions);
    struct call_try try = call_of("GET /v1/encode", v, more, NULL);
    float *out = NULL;
    if (try.status == 400) {
        ck_assert_msg(v->width % 2 == 1 && strcmp(call_try_text(&try, "field"), "encoding.d_model") == 0,
                      "%s: %s", v->query, try.reply);
    } else {
        ck_assert_msg(try.status == 200, "%s: %s", v->query, try.reply);
        ck_assert_uint_eq(try.reply_n, rows * (size_t)v->width * sizeof(float));
        out = malloc(try.reply_n + 1);
        memcpy(out, try.reply, try.reply_n);
    }
    call_end(&try);
    return out;
}

/* ---- Vectors ------------------------------------------------------------------------------------------- */

START_TEST(vectors_are_finite_and_rows_independent) {
    const struct variant *v = &variants[_i];
    if (!can(v, PE_CAN_ENCODE)) {
        struct call_try try = call_of("GET /v1/encode", v, "&positions=0:3", NULL);
        ck_assert_str_eq(call_try_slug(&try), "unsupported");
        ck_assert_str_eq(call_try_text(&try, "field"), "encoding.type");
        call_end(&try);
        return;
    }
    float *all = vectors_of(v, "0:7", 7), *again = vectors_of(v, "0:7", 7),
          *batch = vectors_of(v, "[[5,5],[0,6]]", 4);
    if (!all) {
        return;
    }
    size_t width = (size_t)v->width;
    for (size_t i = 0; i < 7 * width; i++) {
        ck_assert_msg(isfinite(all[i]), "%s: number %zu", v->query, i);
    }
    ck_assert_mem_eq(all, again, 7 * width * sizeof *all);
    static const size_t rows[] = {5, 5, 0, 6};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(memcmp(batch + i * width, all + rows[i] * width, width * sizeof *all) == 0,
                      "%s: row %zu", v->query, i);
    }
    free(all);
    free(again);
    free(batch);
}
END_TEST

/* fl(x*1) + fl(PE), with the very bits. */
START_TEST(apply_adds_the_vectors) {
    const struct variant *v = &variants[_i];
    if (!can(v, PE_CAN_APPLY)) {
        return;
    }
    char shape[40], more[240];
    float x[3][7], *pe = can(v, PE_CAN_ENCODE) ? vectors_of(v, "0:3", 3) : calloc(21, sizeof *pe);
    size_t n = 3 * (size_t)v->width;
    if (!pe) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ((float *)x)[i] = (float)i * 0.3F - 2;
    }
    snprintf(shape, sizeof shape, "3,%d", v->width);
    snprintf(more, sizeof more, "/v1/apply?%s", v->query);
    char request[400];
    snprintf(request, sizeof request, "POST %s", more);
    struct call_try try = {.request = request,
                           .body = x,
                           .body_n = n * sizeof(float),
                           .head.raw_shape = shape,
                           .head.content_type = "application/octet-stream"};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200 && try.reply_n == n * sizeof(float), "%s: %s", request, try.reply);
    for (size_t i = 0; i < n; i++) {
        float got, wanted = ((float *)x)[i] + pe[i];
        memcpy(&got, try.reply + i * sizeof got, sizeof got);
        ck_assert_msg(memcmp(&got, &wanted, sizeof got) == 0, "%s: number %zu: %a, not %a", v->query, i,
                      (double)got, (double)wanted);
    }
    free(pe);
    call_try_close(&try);
}
END_TEST

START_TEST(nothing_gives_nothing) {
    const struct variant *v = &variants[_i];
    char wanted[100], body[100];
    if (can(v, PE_CAN_ENCODE)) {
        float *none = vectors_of(v, "0:0", 0);
        if (!none) {
            return;
        }
        free(none);
    }
    if (!can(v, PE_CAN_APPLY)) {
        return;
    }
    snprintf(body, sizeof body, "{\"embeddings\":{\"shape\":[0,%d],\"data\":[]}}", v->width);
    snprintf(wanted, sizeof wanted, "\"embeddings\":{\"shape\":[0,%d],\"dtype\":\"float32\",\"data\":[]}",
             v->width);
    struct call_try try = call_of("POST /v1/apply", v, "", body);
    ck_assert_msg(strstr(try.reply, wanted) != NULL, "%s: %s", v->query, try.reply);
    call_end(&try);
}
END_TEST

/* What is echoed is the encoding: posted again it is echoed alike, and gives the same bytes. */
START_TEST(echo_binds_back) {
    const struct variant *v = &variants[_i];
    if (!can(v, PE_CAN_ENCODE)) {
        return;
    }
    struct call_try first = call_of("GET /v1/encode", v, "&positions=0:3", NULL);
    if (first.status == 200) {
        char *echo =
            json_dumps(json_object_get(first.json, "encoding"), JSON_COMPACT | JSON_REAL_PRECISION(17));
        char body[1000];
        snprintf(body, sizeof body, "{\"encoding\":%s,\"positions\":[0,1,2]}", echo);
        struct call_try again = {.request = "POST /v1/encode", .body = body};
        call_try(&ground, &again);
        ck_assert_str_eq(again.reply, first.reply);
        call_try_close(&again);
        free(echo);
        for (size_t i = 0; i < v->info->n_fields; i++) { /* resolved: every default is told */
            ck_assert_msg(!v->info->fields[i].def || json_object_get(json_object_get(first.json, "encoding"),
                                                                     v->info->fields[i].name),
                          "%s: %s is not echoed", v->query, v->info->fields[i].name);
        }
    }
    call_end(&first);
}
END_TEST

START_TEST(exact_shifts_are_exact) {
    static const char *const distances[] = {"&distance=1", "&distance=-3.5", "&distance=0", "&distance=1000"};
    const struct variant *v = &variants[_i];
    if (!can(v, PE_CAN_SHIFT)) {
        return;
    }
    for (size_t i = 0; i < PE_COUNT(distances); i++) {
        struct call_try try = call_of("GET /v1/shift", v, distances[i], NULL);
        bool exact = json_is_true(json_object_get(try.json, "exact"));
        double residual = json_number_value(json_object_get(try.json, "residual"));
        ck_assert_msg(try.status == 200 || try.status == 400, "%s: %s", v->query, try.reply);
        ck_assert_msg(!exact || residual <= 1e-12, "%s%s: %g", v->query, distances[i], residual);
        ck_assert_msg(try.status == 400 || residual >= 0, "%s: %s", v->query, try.reply);
        call_end(&try);
    }
}
END_TEST

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* Every text that the catalogue shows says something: more than `least` characters. */
static void check_text(const char *of, const char *name, const char *what, const char *text, size_t least) {
    ck_assert_msg(text && strlen(text) > least,
                  "%s%s%s: its %s must be longer than %zu characters, is \"%s\"", of, name[0] ? "." : "",
                  name, what, least, text ? text : "");
}

static void check_docs(const char *of, const struct pe_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        check_text(of, fields[i].name, "doc", fields[i].doc, 5);
        for (const struct pe_choice *c = fields[i].choices; c && c->name; c++) {
            check_text(fields[i].name, c->name, "doc", c->doc, 0);
            ck_assert_msg(c->value != 0, "%s.%s=%s: its value must not be 0, which stands for none", of,
                          fields[i].name, c->name);
        }
        for (size_t k = 0; k < i; k++) {
            ck_assert_msg(strcmp(fields[k].name, fields[i].name) != 0,
                          "%s.%s: there are two rows of this name", of, fields[i].name);
        }
        if (fields[i].kind == PE_KIND_OBJECT) {
            check_docs(fields[i].name, fields[i].fields, fields[i].n_fields);
        }
    }
}

START_TEST(everything_is_documented) {
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        check_text(info->type, "", "title", info->title, 0);
        check_text(info->type, "", "doc", info->doc, 20);
        check_text(info->type, "", "reference", info->reference, 0);
        ck_assert_ptr_eq(pe_encoding_find(info->type), info);
        ck_assert_msg(info->params_size >= sizeof(uint64_t) && info->n_fields <= 64,
                      "%s: its parameters begin with `uint64_t given`, a bit for each of at most 64",
                      info->type);
        check_docs(info->type, info->fields, info->n_fields);
    }
    for (size_t i = 0; i < api_op_count(); i++) {
        check_text(api_op_at(i)->name, "", "doc", api_op_at(i)->doc, 10);
        check_docs(api_op_at(i)->name, api_op_at(i)->fields, api_op_at(i)->n_fields);
    }
    check_docs("common", api_common_fields, api_common_n_fields_raw);
    check_docs("positions", pe_positions_fields, pe_positions_n_fields);
}
END_TEST

/* Defaults are texts; one that does not parse would be dropped in silence. */
static void check_defaults(const char *of, const struct pe_field *fields, size_t n, size_t size) {
    for (size_t i = 0; i < n; i++) {
        struct pe_error err = {0};
        char *base = pe_arena_array(arena, 1, size, &err);
        if (fields[i].def) {
            ck_assert_msg(!pe_field_parse(arena, fields, &fields[i], base, fields[i].def, &err), "%s.%s: %s",
                          of, fields[i].name, err.text);
        }
        ck_assert_msg(fields[i].min <= fields[i].max, "%s.%s: its min is over its max", of, fields[i].name);
        ck_assert_msg(!(fields[i].def && (fields[i].flags & PE_FIELD_REQUIRED)),
                      "%s.%s: what is required has no default", of, fields[i].name);
    }
}

START_TEST(defaults_are_allowed_values) {
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        check_defaults(info->type, info->fields, info->n_fields, info->params_size);
    }
    for (size_t i = 0; i < api_op_count(); i++) {
        check_defaults(api_op_at(i)->name, api_op_at(i)->fields, api_op_at(i)->n_fields,
                       api_op_at(i)->request_size);
    }
    check_defaults("common", api_common_fields, api_common_n_fields_raw, sizeof(struct api_common));
}
END_TEST

/* In a query the fields of an operation and of its encoding stand side by side. */
START_TEST(no_name_is_of_two) {
    for (size_t e = 0; e < pe_encoding_count(); e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        for (size_t i = 0; i < info->n_fields; i++) {
            const char *name = info->fields[i].name;
            ck_assert_msg(strcmp(name, "type") != 0 && strcmp(name, "encoding") != 0 && !strchr(name, '.'),
                          "%s.%s: no parameter is called type or encoding, or has a dot", info->type, name);
            ck_assert_msg(!pe_field_find(api_common_fields, api_common_n_fields_raw, name),
                          "%s.%s: every operation has a field of this name", info->type, name);
            for (size_t k = 0; k < api_op_count(); k++) {
                const struct api_op *op = api_op_at(k);
                bool takes_one = pe_field_find(op->fields, op->n_fields, "encoding") != NULL;
                ck_assert_msg(!takes_one || !pe_field_find(op->fields, op->n_fields, name),
                              "%s.%s: the operation %s has a field of this name", info->type, name, op->name);
            }
        }
    }
    for (size_t k = 0; k < api_op_count(); k++) {
        for (size_t i = 0; i < api_op_at(k)->n_fields; i++) {
            const char *name = api_op_at(k)->fields[i].name;
            ck_assert_msg(!pe_field_find(api_common_fields, api_common_n_fields_raw, name),
                          "%s.%s: every operation has a field of this name", api_op_at(k)->name, name);
        }
    }
}
END_TEST

START_TEST(schema_lists_every_parameter) {
    const struct pe_encoding_info *info = pe_encoding_at((size_t)_i);
    char request[100];
    snprintf(request, sizeof request, "GET /v1/encodings/%s", info->type);
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    const json_t *schema = json_object_get(try.json, "parameters"),
                 *all = json_object_get(schema, "properties");
    ck_assert_uint_eq(json_object_size(all), info->n_fields);
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct pe_field *row = &info->fields[i];
        const json_t *one = json_object_get(all, row->name), *choices = json_object_get(one, "enum");
        size_t n = 0;
        while (row->choices && row->choices[n].name) {
            n++;
        }
        ck_assert_msg(
            json_object_get(one, "type") && json_string_length(json_object_get(one, "description")) > 5,
            "%s.%s: its schema has no type, or a description of 5 characters or less", info->type, row->name);
        ck_assert_int_eq(json_object_get(one, "default") != NULL, row->def != NULL);
        ck_assert_uint_eq(json_array_size(choices), row->kind == PE_KIND_CHOICE ? n : 0);
    }
    call_try_close(&try);
}
END_TEST

Suite *registry_suite(void) {
    Suite *suite = suite_create("registry");
    TCase *each = tcase_create("every variant"), *rows = tcase_create("rows");
    if (n_variants == 0) {
        variants_make();
    }
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, rows);
    tcase_add_checked_fixture(each, setup, teardown);
    tcase_add_checked_fixture(rows, setup, teardown);
    tcase_add_loop_test(each, vectors_are_finite_and_rows_independent, 0, n_variants);
    tcase_add_loop_test(each, apply_adds_the_vectors, 0, n_variants);
    tcase_add_loop_test(each, nothing_gives_nothing, 0, n_variants);
    tcase_add_loop_test(each, echo_binds_back, 0, n_variants);
    tcase_add_loop_test(each, exact_shifts_are_exact, 0, n_variants);
    tcase_add_test(rows, everything_is_documented);
    tcase_add_test(rows, defaults_are_allowed_values);
    tcase_add_test(rows, no_name_is_of_two);
    tcase_add_loop_test(rows, schema_lists_every_parameter, 0, (int)pe_encoding_count());
    return suite;
}
