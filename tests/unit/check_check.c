/* SPDX-License-Identifier: MIT
 *
 * check: what is right passes, every form of a table, and what is refused. Tables of float32 code are in
 * check_check_tables.c.
 */
#include "call_run.h"
#include "suites.h"

#include "posenc.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_plan *plan;
static struct pe_work work;
static struct pe_check_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    plan = NULL;
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
}

static struct pe_plan *plan_of(const char *type, const char *params) {
    struct pe_spec spec;
    struct pe_plan *made;
    char text[300];
    snprintf(text, sizeof text, "%s", params);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    for (char *at = text, *name; (name = strtok_r(at, " ", &at));) {
        char *value = strchr(name, '=');
        *value = '\0';
        ck_assert_int_eq(pe_spec_set(arena, &spec, name, value + 1, &err), 0);
    }
    ck_assert_msg(pe_plan_open(&made, &spec, &err) == 0, "%s: %s", err.path, err.text);
    return made;
}

static void open_plan(const char *type, const char *params) {
    pe_plan_close(plan);
    plan = plan_of(type, params);
}

static const struct pe_check_report *check(struct pe_check_args *args) {
    args->size = sizeof *args;
    args->plan = plan;
    ck_assert_msg(pe_check_open(arena, &work, &result, args, &err) == 0, "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    return result.report;
}

/* ---- What is right ---------------------------------------------------------------------------------------
 */

/* The library's own table passes in every type, and is off by half a unit of the last place at most. */
START_TEST(rounded_tables_pass) {
    static const enum pe_dtype dtypes[] = {PE_DTYPE_F64, PE_DTYPE_F32, PE_DTYPE_F16, PE_DTYPE_BF16};
    const struct pe_positions at = {.length = 3000, .axes = 1, .start = -1500, .step = 1};
    struct pe_tensor table;
    open_plan("sinusoidal", "d_model=10");
    ck_assert_int_eq(pe_encode_open(arena, &work, &table, plan, &at, dtypes[_i], &err), 0);
    ck_assert(pe_work_run(&work));
    const struct pe_check_report *report = check(&(struct pe_check_args){.tensor = &table, .positions = &at});
    ck_assert(report->pass);
    ck_assert_msg(report->max_ulp <= 0.5 + 1e-6, "%g", report->max_ulp);
    ck_assert_msg(dtypes[_i] == PE_DTYPE_F64 ? report->max_ulp == 0 : report->max_ulp > 0.49, "%g",
                  report->max_ulp);
}
END_TEST

/* ---- Rotary forms -------------------------------------------------------------------------------------- */

enum { ROWS = 60, PAIRS = 5 };

/* Every form, named and as `tensor`, [T] and [B, T]: right as it is, and one element off is found where it
 * is. */
START_TEST(forms_of_rotary_tables) {
    static const enum pe_trig_form forms[] = {PE_TRIG_HALF, PE_TRIG_FULL, PE_TRIG_PACKED, PE_TRIG_COMPLEX};
    enum pe_trig_form form = forms[_i / 2];
    const bool one = form == PE_TRIG_PACKED || form == PE_TRIG_COMPLEX;
    struct pe_positions at = {.length = ROWS, .axes = 1, .start = 3, .step = 2};
    double list[ROWS];
    pe_positions_read(&at, 0, ROWS, list);
    if (_i % 2) {
        at = (struct pe_positions){.batch = 4, .length = ROWS / 4, .axes = 1, .list = list};
    }
    open_plan("rope", "layout=interleaved head_dim=12 rotary_dim=10");
    const struct pe_rotary_args made = {
        .size = sizeof made, .plan = plan, .positions = &at, .form = form, .outputs = 7};
    struct pe_rotary_result tables;
    ck_assert(!pe_rotary_open(arena, &work, &tables, &made, &err) && pe_work_run(&work));
    struct pe_tensor *table = form == PE_TRIG_PACKED ? &tables.packed
                              : one                  ? &tables.as_complex
                                                     : &tables.sin;
    for (int whole = 0; whole < 2; whole++) {
        struct pe_check_args args = {.positions = &at};
        if (one) {
            *(whole ? &args.tensor : form == PE_TRIG_PACKED ? &args.packed : &args.as_complex) = table;
        } else {
            args.sin = table;
            args.cos = whole ? &tables.cos : NULL;
        }
        const struct pe_check_report *report = check(&args);
        ck_assert(report->pass && report->max_ulp <= 0.5);
        ck_assert(report->first_bad.tensor == NULL);
        size_t items = pe_tensor_count(table) / ROWS, row = 37, column = items - 2;
        float *element = (float *)table->data + row * items + column, right = *element;
        *element += 0.25F;
        report = check(&args);
        *element = right;
        ck_assert(!report->pass && fabs(report->max_abs - 0.25) < 1e-7);
        ck_assert_uint_eq(report->first_bad.row, row);
        ck_assert_uint_eq(report->first_bad.column, column);
        ck_assert(report->first_bad.position[0] == list[row]);
        ck_assert_str_eq(report->first_bad.tensor, !one                     ? "sin"
                                                   : whole                  ? "tensor"
                                                   : form == PE_TRIG_PACKED ? "packed"
                                                                            : "complex");
        ck_assert_int_eq(result.batched, _i % 2);
    }
}
END_TEST

/* Of two tables the first row that fails counts, whichever it is in; positions may stand for all of a batch.
 */
START_TEST(the_first_bad_row_of_two_tables) {
    float cos[2][3][1] = {{{1}, {.54030231F}, {-.4161468F}}, {{1}, {.54030231F}, {0}}};
    float sin[2][3][1] = {{{0}, {.84147098F}, {1}}, {{0}, {.84147098F}, {.9092974F}}};
    const struct pe_tensor c = {.data = cos, .dtype = PE_DTYPE_F32, .rank = 3, .dim = {2, 3, 1}},
                           s = {.data = sin, .dtype = PE_DTYPE_F32, .rank = 3, .dim = {2, 3, 1}};
    open_plan("rope", "layout=halves head_dim=2");
    const struct pe_check_report *report = check(&(struct pe_check_args){.cos = &c, .sin = &s});
    ck_assert_str_eq(report->first_bad.tensor, "sin");
    ck_assert_uint_eq(report->first_bad.row, 2);
    ck_assert(report->first_bad.position[0] == 2);
    sin[0][2][0] = .9092974F;
    report = check(&(struct pe_check_args){.cos = &c, .sin = &s});
    ck_assert_str_eq(report->first_bad.tensor, "cos");
    ck_assert_uint_eq(report->first_bad.row, 5);
    ck_assert(report->first_bad.position[0] == 2);
    ck_assert_uint_eq(report->octaves[2].n, 4); /* position 2, in two tables, twice */
}
END_TEST

START_TEST(keys_and_coordinates) {
    const double places[] = {1, 9, 100, 3};
    const struct pe_positions at = {.length = 2, .axes = 2, .list = places},
                              line = {.length = 2, .axes = 1, .step = 40};
    struct pe_rotary_result tables;
    struct pe_rotary_args made = {
        .size = sizeof made, .positions = &at, .form = PE_TRIG_PACKED, .outputs = PE_ROTARY_TABLE};
    open_plan("rope", "layout=halves head_dim=8 sections=2,2");
    made.plan = plan;
    ck_assert(!pe_rotary_open(arena, &work, &tables, &made, &err) && pe_work_run(&work));
    ((float *)tables.packed.data)[8] += 1;
    const struct pe_check_report *report =
        check(&(struct pe_check_args){.packed = &tables.packed, .positions = &at});
    ck_assert(report->first_bad.position[0] == 100 && report->first_bad.position[1] == 3);
    ck_assert(report->octaves[4].n == 1 && report->octaves[7].n == 1); /* 9 and 100, the larger ones */
    open_plan("rope", "layout=halves head_dim=8 xpos.center=0");
    made.plan = plan;
    made.positions = &line;
    made.keys = true;
    ck_assert(!pe_rotary_open(arena, &work, &tables, &made, &err) && pe_work_run(&work));
    struct pe_check_args args = {.packed = &tables.packed, .positions = &line, .keys = true};
    ck_assert(check(&args)->pass);
    args.keys = false;
    ck_assert(!check(&args)->pass);
}
END_TEST

/* ---- Edges --------------------------------------------------------------------------------------------- */

START_TEST(no_rows_pass) {
    double nothing[1];
    const struct pe_tensor table = {.data = nothing, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {0, 4}};
    open_plan("sinusoidal", "d_model=4");
    const struct pe_check_report *report = check(&(struct pe_check_args){.tensor = &table});
    ck_assert(report->pass && report->max_abs == 0 && report->n_columns == 0);
}
END_TEST

/* Numbers that are as wrong as can be stay finite. */
START_TEST(far_off_is_finite) {
    double values[2] = {-DBL_MAX, DBL_MAX}, largest[2] = {DBL_MAX, -DBL_MAX};
    const struct pe_tensor table = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, 2}},
                           learned = {.data = largest, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, 2}};
    struct pe_spec spec;
    ck_assert(!pe_spec_init(arena, &spec, "learned", &err) &&
              !pe_spec_set_tensor(&spec, "table", &learned, &err) && !pe_plan_open(&plan, &spec, &err));
    const struct pe_check_report *report = check(&(struct pe_check_args){.tensor = &table});
    ck_assert(!report->pass && report->max_abs == DBL_MAX && isfinite(report->max_ulp));
    open_plan("sinusoidal", "d_model=2");
    report = check(&(struct pe_check_args){.tensor = &table});
    ck_assert(report->max_ulp == DBL_MAX); /* where the exact value is 0, a unit is the smallest number */
}
END_TEST

START_TEST(errors_name_the_field) {
    double zeros[64] = {0}, nan[4] = {0, 0, NAN, 0}, minus = -1, infinite = INFINITY;
    float narrow[8] = {0};
    const struct pe_tensor vectors = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 4}},
                           deep = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 4, .dim = {1, 1, 3, 4}},
                           one = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 0},
                           half = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {4, 2}},
                           less = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 2}},
                           singles = {.data = narrow, .dtype = PE_DTYPE_F32, .rank = 2, .dim = {4, 2}},
                           odd = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {4, 3}},
                           points = {.data = zeros, .dtype = PE_DTYPE_F64, .rank = 3, .dim = {4, 2, 2}},
                           broken = {.data = nan, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, 4}};
    const struct pe_positions two = {.length = 2, .axes = 1, .step = 1},
                              far = {.length = 4, .axes = 1, .start = 1e6};
    const struct {
        const char *type;
        struct pe_check_args args;
        int code;
        const char *path, *text;
    } all[] = {
        {"sinusoidal", {0}, PE_ERR_MISSING, "tensor", "is missing: the vectors"},
        {"sinusoidal", {.cos = &half}, PE_ERR_CONFLICT, "cos", "is of rotary encodings, got sinusoidal"},
        {"sinusoidal", {.sin = &half}, PE_ERR_CONFLICT, "sin", "is of rotary"},
        {"sinusoidal", {.tensor = &vectors, .packed = &half}, PE_ERR_CONFLICT, "packed", "is of rotary"},
        {"sinusoidal", {.as_complex = &half}, PE_ERR_CONFLICT, "complex", "is of rotary"},
        {"sinusoidal",
         {.tensor = &half},
         PE_ERR_SHAPE,
         "tensor",
         "has shape [4, 2], allowed are [T, 4] and [B, T, 4]"},
        {"sinusoidal", {.tensor = &deep}, PE_ERR_SHAPE, "tensor", "has shape [1, 1, 3, 4], allowed are"},
        {"sinusoidal", {.tensor = &one}, PE_ERR_SHAPE, "tensor", "has shape []"},
        {"sinusoidal", {.tensor = &broken}, PE_ERR_NONFINITE, "tensor[0][2]", "got nan"},
        {"sinusoidal", {.tensor = &vectors, .positions = &two}, PE_ERR_SHAPE, "positions", "has shape [2]"},
        {"sinusoidal", {.tensor = &vectors, .rtol = &minus}, PE_ERR_RANGE, "rtol", "got -1"},
        {"sinusoidal", {.tensor = &vectors, .atol = &infinite}, PE_ERR_RANGE, "atol", "got inf"},
        {"none", {.tensor = &vectors}, PE_ERR_UNSUPPORTED, "encoding.type", "makes no vectors to check"},
        {"rope", {0}, PE_ERR_MISSING, "cos", "is missing: cos and sin, packed or complex"},
        {"rope", {.cos = &odd}, PE_ERR_SHAPE, "cos", "has shape [4, 3], allowed are [T, 2] and [T, 4]"},
        {"rope", {.cos = &half, .sin = &less}, PE_ERR_SHAPE, "sin", "has not the rows of cos, [4, 2]"},
        {"rope", {.cos = &half, .sin = &singles}, PE_ERR_DTYPE, "sin", "is float32, but cos is float64"},
        {"rope", {.cos = &half, .packed = &vectors}, PE_ERR_CONFLICT, "packed", "cos is there, too"},
        {"rope", {.packed = &points}, PE_ERR_SHAPE, "packed", "complex [T, 2, 2]"},
        {"rope", {.as_complex = &vectors}, PE_ERR_SHAPE, "complex", "has shape [3, 4]"},
        {"rope",
         {.as_complex = &points, .tensor = &vectors},
         PE_ERR_CONFLICT,
         "tensor",
         "complex is there, too"},
        {"rope", {.tensor = &one}, PE_ERR_SHAPE, "tensor", "has shape []"},
        {"rope arithmetic=float16_positions",
         {.cos = &half, .positions = &far},
         PE_ERR_RANGE,
         "positions[0]",
         "float16"},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        struct pe_check_args args = all[i].args;
        const char *more = strchr(all[i].type, ' ');
        char params[100], type[20];
        snprintf(type, sizeof type, "%.*s", (int)strcspn(all[i].type, " "), all[i].type);
        snprintf(params, sizeof params, "%s%s",
                 type[0] == 'r'   ? "layout=halves head_dim=4"
                 : type[0] == 's' ? "d_model=4"
                                  : "",
                 more ? more : "");
        memset(&err, 0, sizeof err);
        open_plan(type, params);
        args.size = sizeof args;
        args.plan = plan;
        int code = pe_check_open(arena, &work, &result, &args, &err);
        ck_assert_msg(code == all[i].code && strcmp(err.path, all[i].path) == 0 &&
                          strstr(err.text, all[i].text),
                      "%zu: %d at %s: %s", i, code, err.path, err.text);
    }
    struct pe_check_args args = {.size = sizeof args};
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(pe_check_open(arena, &work, &result, &args, &err), PE_ERR_MISSING);
    ck_assert_str_eq(err.path, "encoding");
}
END_TEST

/* ---- Over the wire ------------------------------------------------------------------------------------- */

/* A table [3, 4] as npy; the reply is JSON, and its bytes do not depend on the pieces that it is pulled in.
 */
START_TEST(a_binary_table_is_answered_in_json) {
    static struct call_ground ground;
    char body[PE_NPY_HEADER_MAX + 48];
    struct pe_positions at = {.length = 3, .axes = 1, .step = 1};
    struct pe_tensor table;
    open_plan("sinusoidal", "d_model=4");
    ck_assert(!pe_encode_open(arena, &work, &table, plan, &at, PE_DTYPE_F32, &err) && pe_work_run(&work));
    ((float *)table.data)[9] = 0;
    size_t n = pe_npy_header(body, sizeof body, &table);
    memcpy(body + n, table.data, 48);
    call_ground_open(&ground);
    struct call_try whole = {.request = "POST /v1/check?type=sinusoidal",
                             .body = body,
                             .body_n = n + 48,
                             .head.content_type = "application/x-npy"};
    call_try(&ground, &whole);
    ck_assert_msg(whole.status == 200, "%s", whole.reply);
    ck_assert(json_is_false(json_object_get(whole.json, "pass")));
    const json_t *bad = json_object_get(whole.json, "first_bad_row");
    ck_assert_int_eq(json_integer_value(json_object_get(bad, "index")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(bad, "column")), 1);
    for (size_t room = 128; room < 500; room += 61) {
        struct call_try pieces = {.request = whole.request,
                                  .body = body,
                                  .body_n = whole.body_n,
                                  .head.content_type = whole.head.content_type,
                                  .room = room};
        call_try(&ground, &pieces);
        ck_assert_uint_eq(pieces.reply_n, whole.reply_n);
        ck_assert(memcmp(pieces.reply, whole.reply, whole.reply_n) == 0);
        call_try_close(&pieces);
    }
    struct call_try npy = {.request = "POST /v1/check?type=sinusoidal&format=npy",
                           .body = body,
                           .body_n = n + 48,
                           .head.content_type = "application/x-npy"};
    call_expect_problem(&ground, &npy, 406, "not_acceptable", "format",
                        "npy cannot hold this reply (no tensor); use json");
    call_try_close(&npy);
    call_try_close(&whole);
    call_ground_close(&ground);
}
END_TEST

/* The longest report there is fits its place: every octave, the longest numbers, coordinates, a batch. */
START_TEST(the_longest_report) {
    static struct call_ground ground;
    char *body = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&body, &n);
    fputs("{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":12,\"sections\":[2,2,1,1]},"
          "\"positions\":[[",
          out);
    for (int k = 0; k < PE_CHECK_OCTAVES; k++) {
        double p = k == 54 ? 0x1p53 : ldexp(-1.2345678901234567, k - 1);
        fprintf(out, "%s[%.17g,%.17g,%.17g,%.17g]", k ? "," : "", p, p / 3, p / 7, p / 11);
    }
    fputs("]],\"tensor\":{\"dtype\":\"float64\",\"data\":[[", out);
    for (int k = 0; k < PE_CHECK_OCTAVES; k++) {
        fputs(k ? ",[" : "[", out);
        for (int i = 0; i < 12; i++) {
            fprintf(out, "%s-0.00012345678901234567", i ? "," : "");
        }
        fputs("]", out);
    }
    fputs("]]},\"rtol\":0,\"atol\":0}", out);
    fclose(out);
    call_ground_open(&ground);
    struct call_try try = {.request = "POST /v1/check", .body = body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    ck_assert_uint_eq(json_array_size(json_object_get(try.json, "octaves")), PE_CHECK_OCTAVES);
    ck_assert_uint_eq(json_array_size(json_object_get(try.json, "worst_columns")), PE_CHECK_COLUMNS);
    const json_t *bad = json_object_get(try.json, "first_bad_row");
    ck_assert_uint_eq(json_array_size(json_object_get(bad, "position")), 4);
    ck_assert_uint_eq(json_array_size(json_object_get(bad, "index")), 2);
    ck_assert_str_eq(json_string_value(json_object_get(bad, "tensor")), "tensor");
    call_try_close(&try);
    call_ground_close(&ground);
    free(body);
}
END_TEST

Suite *check_suite(void) {
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, rounded_tables_pass, 0, 4);
    tcase_add_loop_test(tests, forms_of_rotary_tables, 0, 8);
    tcase_add_test(tests, the_first_bad_row_of_two_tables);
    tcase_add_test(tests, keys_and_coordinates);
    tcase_add_test(tests, no_rows_pass);
    tcase_add_test(tests, far_off_is_finite);
    tcase_add_test(tests, errors_name_the_field);
    tcase_add_test(tests, a_binary_table_is_answered_in_json);
    tcase_add_test(tests, the_longest_report);
    return suite;
}
