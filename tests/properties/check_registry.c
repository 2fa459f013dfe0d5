/* SPDX-License-Identifier: MIT
 *
 * What holds for every encoding, with its defaults and with every value of every choice, whichever encodings
 * there are: the rows of the registry are asked, none is named here. An encoding that is added is tested by
 * being added.
 */
#include "unit/call_run.h"
#include "unit/suites.h"

#include "ops/operand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VARIANTS 400
#define ROWS         49 /* of the loaded table: a square, which a grid may be of */
#define MAX_WIDTH    64

struct variant {
    const struct pe_encoding_info *info;
    int width;       /* of vectors */
    int axes;        /* coordinates of a position, where the vectors are added */
    char query[200]; /* "type=sinusoidal&d_model=6&layout=halves" */
};
static struct variant variants[MAX_VARIANTS];
static int n_variants;

static struct call_ground ground;

/* A table [ROWS, 6] is loaded under the name `test_table`. */
static void setup(void) {
    char folder[] = "/tmp/check_registry_XXXXXX", path[100], header[PE_NPY_HEADER_MAX];
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
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* ---- Variants ------------------------------------------------------------------------------------------ */

static void query_add(struct variant *v, const char *name, const char *value) {
    size_t at = strlen(v->query);
    snprintf(v->query + at, sizeof v->query - at, "&%s=%s", name, value);
}

/* What has to be given, but for `chosen`. */
static void query_add_required(struct variant *v, const struct pe_field *row, const char *chosen) {
    if (chosen && strcmp(row->name, chosen) == 0) {
        return;
    }
    if (row->flags & PE_FIELD_WIDTH) {
        char digits[20];
        snprintf(digits, sizeof digits, "%d", v->width);
        query_add(v, row->name, digits);
    } else if (row->flags & PE_FIELD_LENGTH) {
        query_add(v, row->name, "7");
    } else if (row->kind == PE_KIND_TABLE && (row->flags & PE_FIELD_REQUIRED)) {
        query_add(v, row->name, "test_table");
    } else if (row->choices && (row->flags & PE_FIELD_REQUIRED)) {
        query_add(v, row->name, row->choices[0].name);
    }
}

/* A plan of it, as far as the library alone goes: tables keep their names. Returns the code of the error. */
static int plan_try(struct variant *v, struct pe_error *err) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_arena *own = pe_arena_open(1 << 20, NULL, err);
    char query[sizeof v->query], *save = NULL;
    memcpy(query, v->query, sizeof query);
    bool bad = pe_spec_init(own, &spec, v->info->type, err) != PE_OK;
    strtok_r(query, "&", &save); /* its type */
    for (char *pair; !bad && (pair = strtok_r(NULL, "&", &save)) != NULL;) {
        char *value = strchr(pair, '=');
        *value = '\0';
        bad = pe_spec_set(own, &spec, pair, value + 1, err) != PE_OK;
    }
    bad = bad || pe_plan_open(&plan, &spec, err) != PE_OK;
    if (!bad && v->info->family == PE_FAMILY_ABSOLUTE) {
        v->width = (int)pe_plan_width(plan);
        v->axes = pe_plan_axes(plan);
    }
    pe_plan_close(plan);
    pe_arena_close(own);
    return err->code;
}

/* Some value of the row's kind. */
static void query_add_any(struct variant *v, const struct pe_field *row) {
    const struct pe_field *seed = pe_field_find(v->info->fields, v->info->n_fields, "seed");
    if (row->kind == PE_KIND_TABLE && seed) {
        query_add(v, "seed", "1");
    } else {
        query_add(v, row->name,
                  row->kind == PE_KIND_TABLE  ? "test_table"
                  : row->kind == PE_KIND_INTS ? "2,2"
                  : row->choices              ? row->choices[0].name
                                              : "2");
    }
}

/* Gives what the encoding says is missing, one after the other, but for `chosen`. */
static void variant_complete(struct variant *v, const char *chosen) {
    for (int tries = 0; tries < 8; tries++) {
        struct pe_error err = {0};
        if (plan_try(v, &err) != PE_ERR_MISSING) {
            return;
        }
        const struct pe_field *row = pe_field_find(v->info->fields, v->info->n_fields, err.path);
        if (!row || (chosen && strcmp(row->name, chosen) == 0)) {
            return;
        }
        query_add_any(v, row);
    }
}

static void variant_add(const struct pe_encoding_info *info, int width, const char *name, const char *value) {
    if (n_variants == MAX_VARIANTS) {
        abort(); /* outside of any test; a larger array is all it takes */
    }
    struct variant *v = &variants[n_variants++];
    bool has_width = false;
    *v = (struct variant){.info = info, .axes = 1};
    for (size_t i = 0; i < info->n_fields; i++) {
        has_width = has_width || (info->fields[i].flags & PE_FIELD_WIDTH);
    }
    v->width = has_width ? width : 6; /* that of the table */
    snprintf(v->query, sizeof v->query, "type=%s", info->type);
    for (size_t i = 0; i < info->n_fields; i++) {
        query_add_required(v, &info->fields[i], name);
    }
    variant_complete(v, name);
    if (name) {
        const struct pe_field *row = pe_field_find(info->fields, info->n_fields, name);
        query_add(v, name, value);
        if ((row->flags & PE_FIELD_REQUIRED) || row->kind == PE_KIND_BOOL) { /* it may need others */
            variant_complete(v, NULL);
        }
    }
}

/* A choice that need not be made and has no default says how something else is taken, which is not there:
 * then there is no such variant. */
static bool stands_alone(struct variant *v, const struct pe_field *row) {
    if (row->def || (row->flags & PE_FIELD_REQUIRED)) {
        return true;
    }
    struct pe_error err = {0};
    return plan_try(v, &err) != PE_ERR_MISSING;
}

/* A parameter that another choice would need is refused with this one: then there is no such variant, either.
 */
static bool goes_together(struct variant *v) {
    struct pe_error err = {0};
    return plan_try(v, &err) != PE_ERR_CONFLICT;
}

static void variants_make(void) {
    static const int widths[] = {12, 7}; /* one that pairs of two and of three axes divide */
    for (size_t e = 0; e < pe_encoding_count(); e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        for (size_t w = 0; w < PE_COUNT(widths); w++) {
            variant_add(info, widths[w], NULL, NULL);
            for (size_t i = 0; i < info->n_fields; i++) {
                const struct pe_field *row = &info->fields[i];
                for (const struct pe_choice *c = row->choices; c && c->name; c++) {
                    variant_add(info, widths[w], row->name, c->name);
                    n_variants -= !stands_alone(&variants[n_variants - 1], row) ||
                                  !goes_together(&variants[n_variants - 1]);
                }
                for (int yes = 0; row->kind == PE_KIND_BOOL && yes < 2; yes++) {
                    variant_add(info, widths[w], row->name, yes ? "true" : "false");
                    n_variants -= !goes_together(&variants[n_variants - 1]);
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

static bool turns(const struct variant *v) {
    return v->info->family == PE_FAMILY_ROTARY;
}

/* Positions with the coordinates that it takes, the first of them as given, in `text` [200]. */
static const char *places(const struct variant *v, const char *positions, char *text) {
    size_t at = 0;
    for (const char *c = positions; *c; c++) {
        size_t digits = v->axes > 1 ? strspn(c, "0123456789") : 0;
        at += (size_t)(digits ? snprintf(text + at, 200 - at, "[%.*s,1%s]", (int)digits, c,
                                         v->axes > 2 ? ",2" : "")
                              : snprintf(text + at, 200 - at, "%c", *c));
        c += digits ? digits - 1 : 0;
    }
    return text;
}

static const char *width_field(const struct variant *v) {
    for (size_t i = 0; i < v->info->n_fields; i++) {
        if (v->info->fields[i].flags & PE_FIELD_WIDTH) {
            return v->info->fields[i].name;
        }
    }
    return "";
}

/* float32 vectors [rows, width] of positions, for rotary types their angles in the form of one table; NULL
 * where this width is refused, which must name it. */
static float *vectors_of(const struct variant *v, const char *positions, size_t rows) {
    char more[300], field[80], text[200];
    snprintf(field, sizeof field, "encoding.%s", width_field(v));
    snprintf(more, sizeof more, "&positions=%s&format=raw%s", places(v, positions, text),
             turns(v) ? "&trig_form=packed" : "");
    struct call_try try = call_of("GET /v1/encode", v, more, NULL);
    float *out = NULL;
    if (try.status == 400) {
        ck_assert_msg(v->width % 2 == 1 && strcmp(call_try_text(&try, "field"), field) == 0, "%s: %s",
                      v->query, try.reply);
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
    float *all = vectors_of(v, "[0,1,2,3,4,5,6]", 7), *again = vectors_of(v, "[0,1,2,3,4,5,6]", 7),
          *batch = vectors_of(v, "[[5,5,3,2,1],[0,6,1,4,3]]", 10); /* too many to be coordinates */
    if (!all) {
        return;
    }
    size_t width = (size_t)v->width;
    for (size_t i = 0; i < 7 * width; i++) {
        ck_assert_msg(isfinite(all[i]), "%s: number %zu", v->query, i);
    }
    ck_assert_mem_eq(all, again, 7 * width * sizeof *all);
    static const size_t rows[] = {5, 5, 3, 2, 1, 0, 6, 1, 4, 3};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
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
    if (!can(v, PE_CAN_APPLY) || turns(v)) { /* the others are in check_rotary.c */
        return;
    }
    char shape[40], text[200];
    float x[3][MAX_WIDTH], *pe = can(v, PE_CAN_ENCODE) ? vectors_of(v, "[0,1,2]", 3)
                                                       : calloc(PE_COUNT(x) * MAX_WIDTH, sizeof *pe);
    size_t n = 3 * (size_t)v->width;
    if (!pe) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ((float *)x)[i] = (float)i * 0.3F - 2;
    }
    snprintf(shape, sizeof shape, "3,%d", v->width);
    char request[600];
    snprintf(request, sizeof request, "POST /v1/apply?%s&positions=%s", v->query, places(v, "[0,1,2]", text));
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
        float *none = vectors_of(v, "[]", 0);
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
    char more[240], text[200];
    if (!can(v, PE_CAN_ENCODE)) {
        return;
    }
    snprintf(more, sizeof more, "&positions=%s", places(v, "[0,1,2]", text));
    struct call_try first = call_of("GET /v1/encode", v, more, NULL);
    if (first.status == 200) {
        char *echo =
            json_dumps(json_object_get(first.json, "encoding"), JSON_COMPACT | JSON_REAL_PRECISION(17));
        char body[1000];
        snprintf(body, sizeof body, "{\"encoding\":%s,\"positions\":%s}", echo, text);
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

/* What the catalogue says can be shifted is, in some variant, and what it says cannot be is refused. */
START_TEST(who_can_shift_is_shifted) {
    const struct pe_encoding_info *info = pe_encoding_at((size_t)_i);
    bool can_shift = pe_encoding_abilities(info) & PE_CAN_SHIFT;
    int shifted = 0, refused = 0;
    for (int i = 0; i < n_variants; i++) {
        if (variants[i].info != info) {
            continue;
        }
        struct call_try try = call_of("GET /v1/shift", &variants[i], "&distance=1", NULL);
        const char *field = json_string_value(json_object_get(try.json, "field"));
        shifted += try.status == 200;
        refused += field && strcmp(field, "encoding.type") == 0;
        call_end(&try);
    }
    ck_assert_msg(can_shift ? shifted && !refused : refused && !shifted, "%s: %d shifted, %d refused",
                  info->type, shifted, refused);
}
END_TEST

Suite *registry_suite(void) {
    Suite *suite = suite_create("registry");
    TCase *each = tcase_create("every variant");
    if (n_variants == 0) {
        variants_make();
    }
    suite_add_tcase(suite, each);
    tcase_add_checked_fixture(each, setup, teardown);
    tcase_add_loop_test(each, vectors_are_finite_and_rows_independent, 0, n_variants);
    tcase_add_loop_test(each, apply_adds_the_vectors, 0, n_variants);
    tcase_add_loop_test(each, nothing_gives_nothing, 0, n_variants);
    tcase_add_loop_test(each, echo_binds_back, 0, n_variants);
    tcase_add_loop_test(each, exact_shifts_are_exact, 0, n_variants);
    tcase_add_loop_test(each, who_can_shift_is_shifted, 0, (int)pe_encoding_count());
    return suite;
}
