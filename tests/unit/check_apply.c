/* SPDX-License-Identifier: MIT
 *
 * apply: the published example, the rounding of every step against the plain expression, batches, and what is
 * refused.
 */
#include "suites.h"

#include "core/dtype.h"
#include "posenc_fields.h"

#include <math.h>
#include <string.h>

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static struct pe_tensor out;
static struct pe_plan *plan;

static struct pe_plan *plan_open(const char *type, size_t width) {
    struct pe_spec spec;
    struct pe_plan *opened = NULL;
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    ck_assert_int_eq(pe_spec_fit(&spec, width, 0, &err), 0);
    ck_assert_int_eq(pe_plan_open(&opened, &spec, &err), 0);
    return opened;
}

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    plan = NULL;
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
}

static void apply(struct pe_apply_args args) {
    args.size = sizeof args;
    int code = pe_apply_open(arena, &work, &out, &args, &err);
    ck_assert_msg(code == 0, "%s: %s", err.path, err.text);
    pe_work_run(&work);
}

static void refused(struct pe_apply_args args, int code, const char *path, const char *text) {
    memset(&err, 0, sizeof err);
    args.size = sizeof args;
    ck_assert_int_eq(pe_apply_open(arena, &work, &out, &args, &err), code);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
}

#define ARGS(...) ((struct pe_apply_args){__VA_ARGS__})

/* x [n], multiples of 1/64 of both signs. */
static void numbers_fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((int)(i * 7919 % 1021) - 510) / 64;
    }
}

/* sin and cos of 0 and 1 and of 0 and 0.01, to nine digits. */
START_TEST(example_as_published) {
    float x[8] = {0.5F, -1, 2, 0.25F, 1, 0, -0.5F, 4};
    const double expected[8] = {.5, 0, 2, 1.25, 1.84147096, .540302277, -.490000159, 4.99994993};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 4}};
    plan = plan_open("sinusoidal", 4);
    apply(ARGS(.plan = plan, .embeddings = &embeddings));
    ck_assert_int_eq(out.dtype, PE_DTYPE_F32);
    for (size_t i = 0; i < 8; i++) {
        ck_assert(fabs((double)((float *)out.data)[i] - expected[i]) < 1e-8);
    }
}
END_TEST

/* Every type, scale and kind of positions against the plain expression on the vectors of encode. */
static void expression_check(enum pe_dtype dtype, size_t batch, size_t t, size_t width, bool own,
                             double scale) {
    enum pe_dtype real = dtype == PE_DTYPE_F64 ? dtype : PE_DTYPE_F32;
    size_t n = batch * t * width;
    struct pe_tensor x, widened, p;
    struct pe_positions positions = {.length = t, .axes = 1, .start = 3, .step = 1.5};
    double *list = pe_arena_array(arena, batch * t, sizeof *list, &err);
    float *numbers = pe_arena_array(arena, n, sizeof *numbers, &err);
    numbers_fill(numbers, n);
    for (size_t i = 0; i < batch * t; i++) {
        list[i] = (double)(i * 37 % 1000);
    }
    if (own) {
        positions = (struct pe_positions){.batch = batch, .length = t, .axes = 1, .list = list};
    }
    struct pe_tensor plain = {numbers, PE_DTYPE_F32, 3, {batch, t, width}};
    ck_assert_int_eq(pe_tensor_convert(arena, &x, &plain, dtype, &err), 0);
    ck_assert_int_eq(pe_tensor_convert(arena, &widened, &x, real, &err), 0);
    plan = plan_open("sinusoidal", width);
    apply(ARGS(.plan = plan, .embeddings = &x, .positions = &positions, .scale = scale,
               .scale_mode = PE_EMBEDDING_SCALE_NUMBER));
    ck_assert_int_eq(out.dtype, dtype);
    struct pe_tensor got = out;
    ck_assert_int_eq(pe_encode_open(arena, &work, &p, plan, &positions, real, &err), 0);
    pe_work_run(&work);
    for (size_t i = 0; i < n; i++) {
        size_t place = own ? i : i % (t * width);
        double sum;
        if (real == PE_DTYPE_F64) {
            volatile double product = ((double *)widened.data)[i] * scale; /* volatile: no contraction */
            sum = product + ((double *)p.data)[place];
        } else {
            volatile float product = ((float *)widened.data)[i] * (float)scale;
            volatile float narrow = product + ((float *)p.data)[place];
            sum = (double)narrow;
        }
        unsigned char expected[8];
        pe_dtype_store(dtype, &sum, 1, expected);
        size_t size = pe_dtype_size(dtype);
        ck_assert_mem_eq((unsigned char *)got.data + i * size, expected, size);
    }
    pe_plan_close(plan);
    plan = NULL;
}

START_TEST(each_step_is_rounded_once) {
    static const enum pe_dtype dtypes[] = {PE_DTYPE_F64, PE_DTYPE_F32, PE_DTYPE_F16, PE_DTYPE_BF16};
    expression_check(dtypes[_i], 1, 5, 6, false, 1);
    expression_check(dtypes[_i], 3, 7, 5, false, 1.1);
    expression_check(dtypes[_i], 3, 7, 5, true, sqrt(512));
    expression_check(dtypes[_i], 2, 700, 64, false, 0.1); /* several parts */
}
END_TEST

START_TEST(scale_by_the_root_of_the_width) {
    float x[4] = {1, 2, -3, 4};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 3, {1, 1, 4}};
    struct pe_positions zero = {.length = 1, .axes = 1};
    plan = plan_open("sinusoidal", 4);
    apply(ARGS(.plan = plan, .embeddings = &embeddings, .positions = &zero,
               .scale_mode = PE_EMBEDDING_SCALE_SQRT_D_MODEL));
    const float expected[4] = {2, 5, -6, 9};
    ck_assert_mem_eq(out.data, expected, sizeof expected);
    apply(ARGS(.embeddings = &embeddings, .scale_mode = PE_EMBEDDING_SCALE_NUMBER, .scale = -1));
    ck_assert(((float *)out.data)[3] == -4);
}
END_TEST

START_TEST(none_adds_nothing) {
    float x[4] = {1, 2, -0.0F, 4};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 2}};
    plan = plan_open("none", 2);
    apply(ARGS(.plan = plan, .embeddings = &embeddings));
    ck_assert_mem_eq(out.data, x, sizeof x);
}
END_TEST

START_TEST(views_at_any_address) {
    unsigned char bytes[17];
    const float x[4] = {1, 2, 3, 4};
    memcpy(bytes + 1, x, sizeof x);
    struct pe_tensor embeddings = {bytes + 1, PE_DTYPE_F32, 2, {2, 2}};
    apply(ARGS(.embeddings = &embeddings));
    ck_assert_mem_eq(out.data, x, sizeof x);
}
END_TEST

/* In place is the same result, for rows that fit the stack and for wider ones. */
START_TEST(results_in_the_place_of_embeddings) {
    static const struct {
        enum pe_dtype dtype;
        size_t batch, rows, width;
    } setups[] = {{PE_DTYPE_F32, 1, 37, 7},   {PE_DTYPE_F32, 3, 70, 512},  {PE_DTYPE_F64, 2, 9, 1025},
                  {PE_DTYPE_BF16, 2, 33, 34}, {PE_DTYPE_F32, 2, 3, 40000}, {PE_DTYPE_F16, 1, 2, 40001}};
    for (size_t i = 0; i < PE_COUNT(setups); i++) {
        const size_t dim[] = {setups[i].batch, setups[i].rows, setups[i].width}, n = dim[0] * dim[1] * dim[2];
        const size_t size = pe_dtype_size(setups[i].dtype);
        struct pe_tensor x;
        memset(&err, 0, sizeof err);
        ck_assert_int_eq(pe_tensor_alloc(arena, &x, setups[i].dtype, 3, dim, &err), 0);
        for (size_t j = 0; j < n; j++) {
            const double v = (double)((int)(j * 7919 % 1021) - 510) / 64;
            pe_dtype_store(setups[i].dtype, &v, 1, (char *)x.data + j * size);
        }
        plan = plan_open("sinusoidal", dim[2]);
        apply(ARGS(.plan = plan, .embeddings = &x, .scale_mode = PE_EMBEDDING_SCALE_NUMBER, .scale = 1.25));
        const void *apart = out.data;
        apply(ARGS(.plan = plan, .embeddings = &x, .scale_mode = PE_EMBEDDING_SCALE_NUMBER, .scale = 1.25,
                   .in_place = true));
        ck_assert(out.data == x.data && memcmp(out.data, apart, n * size) == 0);
        apply(ARGS(.embeddings = &x));
        apart = out.data;
        apply(ARGS(.embeddings = &x, .in_place = true));
        ck_assert(out.data == x.data && memcmp(out.data, apart, n * size) == 0);
        pe_plan_close(plan);
        plan = NULL;
    }
    float x[4] = {0};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 2}};
    refused(ARGS(.embeddings = &embeddings, .dtype = PE_DTYPE_F64, .in_place = true), PE_ERR_CONFLICT,
            "dtype", "is float64, but the embeddings whose place the result takes are float32");
}
END_TEST

/* What is close to the largest number is looked for before, without touching x. */
START_TEST(in_place_is_looked_at_before) {
    const float most = 0x1.fffffep127F;
    float x[2] = {most, most};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {1, 2}};
    plan = plan_open("sinusoidal", 2);
    apply(ARGS(.plan = plan, .embeddings = &embeddings, .in_place = true));
    ck_assert(x[0] == most && x[1] == most); /* + 0 and + 1 */
    x[1] = most;
    refused(ARGS(.embeddings = &embeddings, .scale_mode = PE_EMBEDDING_SCALE_NUMBER, .scale = 2,
                 .in_place = true),
            PE_ERR_RANGE, "embeddings[0][0]", "beyond the largest");
    ck_assert(x[0] == most && x[1] == most);
}
END_TEST

START_TEST(no_tokens) {
    struct pe_tensor embeddings = {&(float){0}, PE_DTYPE_F32, 3, {2, 0, 4}};
    plan = plan_open("sinusoidal", 4);
    apply(ARGS(.plan = plan, .embeddings = &embeddings));
    ck_assert_uint_eq(work.n_parts, 0);
    ck_assert_uint_eq(pe_tensor_count(&out), 0);
}
END_TEST

START_TEST(shapes_name_both_sides) {
    float x[24] = {0};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 3, {2, 3, 4}}, flat = {x, PE_DTYPE_F32, 1, {4}};
    struct pe_positions four = {.length = 4, .axes = 1, .step = 1};
    struct pe_positions rows = {.batch = 3, .length = 3, .axes = 1, .list = (double[9]){0}};
    plan = plan_open("sinusoidal", 6);
    refused(ARGS(.plan = plan), PE_ERR_MISSING, "embeddings", "missing");
    refused(ARGS(.plan = plan, .embeddings = &flat), PE_ERR_SHAPE, "embeddings", "[4]");
    refused(ARGS(.plan = plan, .embeddings = &embeddings), PE_ERR_SHAPE, "embeddings",
            "D = 4, but the encoding has D = 6");
    pe_plan_close(plan);
    plan = plan_open("sinusoidal", 4);
    refused(ARGS(.plan = plan, .embeddings = &embeddings, .positions = &four), PE_ERR_SHAPE, "positions",
            "has shape [4] but the tokens need [3] or [2, 3]");
    refused(ARGS(.plan = plan, .embeddings = &embeddings, .positions = &rows), PE_ERR_SHAPE, "positions",
            "has shape [3, 3]");
}
END_TEST

/* The last finite sum is given, the first infinite one is refused at its index. */
START_TEST(overflow_is_refused) {
    float x[4] = {1, 1, 1, 0x1.fffffep127F};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 2}};
    plan = plan_open("naive", 2);
    apply(ARGS(.plan = plan, .embeddings = &embeddings)); /* + 1 is lost in the rounding */
    ck_assert(((float *)out.data)[3] == 0x1.fffffep127F);
    refused(ARGS(.embeddings = &embeddings, .scale = 2, .scale_mode = PE_EMBEDDING_SCALE_NUMBER),
            PE_ERR_RANGE, "embeddings[1][1]", "float32");
    refused(ARGS(.embeddings = &embeddings, .dtype = PE_DTYPE_F16), PE_ERR_RANGE, "embeddings[1][1]",
            "float16");
    refused(ARGS(.embeddings = &embeddings, .scale = 1e39, .scale_mode = PE_EMBEDDING_SCALE_NUMBER),
            PE_ERR_RANGE, "embedding_scale", "1e+39");
    memset(&err, 0, sizeof err);
    x[3] = 1;
    struct pe_positions far = {.length = 2, .axes = 1, .start = 65517, .step = 1};
    apply(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F16, .positions = &far));
    far.start = 65519; /* + 1 rounds to 65536, which float16 has not: the tie at 65520 goes up */
    refused(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F16, .positions = &far),
            PE_ERR_RANGE, "embeddings[0][0]", "float16");
    x[0] = NAN;
    refused(ARGS(.plan = plan, .embeddings = &embeddings), PE_ERR_NONFINITE, "embeddings[0][0]", "nan");
    x[0] = -INFINITY;
    refused(ARGS(.plan = plan, .embeddings = &embeddings), PE_ERR_NONFINITE, "embeddings[0][0]", "infinity");
}
END_TEST

/* A table of float64 may hold what float32 does not: that is no embedding's fault. */
START_TEST(a_vector_beyond_the_arithmetic_is_refused) {
    float x[4] = {1, 1, 1, 1};
    double rows[4] = {1, 2, -0x1.ffffffp127, 3}; /* the first number that rounds to infinity */
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 2}}, table = {rows, PE_DTYPE_F64, 2, {2, 2}};
    struct pe_spec spec;
    ck_assert(!pe_spec_init(arena, &spec, "learned", &err) &&
              !pe_spec_set_tensor(&spec, "table", &table, &err) && !pe_plan_open(&plan, &spec, &err));
    refused(ARGS(.plan = plan, .embeddings = &embeddings), PE_ERR_RANGE, "positions[1]", "float32");
    refused(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F16), PE_ERR_RANGE,
            "positions[1]", "float32");
    memset(&err, 0, sizeof err);
    apply(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F64));
    ck_assert(((double *)out.data)[2] == 1 - 0x1.ffffffp127);
}
END_TEST

/* Sums at the end of float16, of either sign: 65504 is its largest number, and to 65519.99 all round to it.
 */
START_TEST(the_last_sums_of_float16_are_given) {
    float x[4] = {65504, 65519, -65519, 65504};
    struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {2, 2}};
    plan = plan_open("sinusoidal", 2);
    struct pe_positions back = {
        .length = 2, .axes = 1, .start = 3, .step = 1}; /* cos 3 = -0.99, sin 4 = -0.76 */
    apply(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F16, .positions = &back));
    const uint16_t most[4] = {0x7bff, 0x7bff, 0xfbff, 0x7bff};
    ck_assert_mem_eq(out.data, most, sizeof most);
    back.step = 0; /* cos 3 - 65519.2 is beyond */
    x[3] = -65519.2F;
    refused(ARGS(.plan = plan, .embeddings = &embeddings, .dtype = PE_DTYPE_F16, .positions = &back),
            PE_ERR_RANGE, "embeddings[1][1]", "float16");
}
END_TEST

Suite *apply_suite(void) {
    Suite *suite = suite_create("apply");
    TCase *tests = tcase_create("apply");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, example_as_published);
    tcase_add_loop_test(tests, each_step_is_rounded_once, 0, 4);
    tcase_add_test(tests, scale_by_the_root_of_the_width);
    tcase_add_test(tests, none_adds_nothing);
    tcase_add_test(tests, views_at_any_address);
    tcase_add_test(tests, results_in_the_place_of_embeddings);
    tcase_add_test(tests, in_place_is_looked_at_before);
    tcase_add_test(tests, no_tokens);
    tcase_add_test(tests, shapes_name_both_sides);
    tcase_add_test(tests, overflow_is_refused);
    tcase_add_test(tests, a_vector_beyond_the_arithmetic_is_refused);
    tcase_add_test(tests, the_last_sums_of_float16_are_given);
    suite_add_tcase(suite, tests);
    return suite;
}
