/* SPDX-License-Identifier: MIT
 *
 * identify: single tables. Those of all variants are in check_identify_tables.c, and those that need no search in
 * check_identify_plain.c.
 */
#include "identify_made.h"
#include "suites.h"

#include "posenc_fields.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_identify_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* ---- One by one ---------------------------------------------------------------------------------------- */

static struct pe_spec spec_of(const char *type, const char *params) {
    struct pe_spec spec;
    char text[300], *at = text;
    snprintf(text, sizeof text, "%s", params);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    for (char *name; (name = strtok_r(at, " ", &at));) {
        char *value = strchr(name, '=');
        *value = '\0';
        ck_assert_int_eq(pe_spec_set(arena, &spec, name, value + 1, &err), 0);
    }
    return spec;
}

/* The candidate's parameters are those of the encoding that made the table, one by one. */
static void same_encoding(const struct pe_spec *spec) {
    const struct pe_spec *found = &result.candidates[0].encoding;
    struct pe_plan *plans[2];
    struct pe_fact facts[2][PE_MAX_FACTS];
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(found->encoding->type, spec->encoding->type);
    ck_assert(!pe_plan_open(&plans[0], spec, &err) && !pe_plan_open(&plans[1], found, &err));
    ck_assert_uint_eq(pe_plan_facts(plans[0], facts[0], PE_MAX_FACTS),
                      pe_plan_facts(plans[1], facts[1], PE_MAX_FACTS));
    ck_assert_double_eq(identify_number(found, "base"), identify_number(spec, "base"));
    ck_assert_double_eq(identify_number(found, "layout"), identify_number(spec, "layout"));
    ck_assert_msg(result.candidates[0].max_abs < 1e-6, "%g", result.candidates[0].max_abs);
    pe_plan_close(plans[0]);
    pe_plan_close(plans[1]);
}

static struct pe_tensor encoded(const struct pe_spec *spec, const struct pe_positions *at,
                                enum pe_dtype dtype) {
    struct pe_tensor table;
    struct pe_plan *plan;
    struct pe_work work;
    ck_assert(!pe_plan_open(&plan, spec, &err));
    ck_assert(!pe_encode_open(arena, &work, &table, plan, at, dtype, &err) && pe_work_run(&work));
    pe_plan_close(plan);
    return table;
}

/* Posted without positions unless `placed`, as a table is found in weights. */
static void ask_encoded(const struct pe_spec *spec, struct pe_positions at, enum pe_dtype dtype,
                        bool placed) {
    struct pe_tensor table = encoded(spec, &at, dtype);
    struct pe_identify_args asked = {
        .size = sizeof asked, .tensor = &table, .positions = placed ? &at : NULL};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s", err.text);
}

static const struct {
    const char *params, *says;
} scaled[] = {
    {"layout=halves head_dim=128 base=500000 scaling.rope_type=llama3 scaling.factor=8 "
     "scaling.low_freq_factor=1 scaling.high_freq_factor=4 scaling.original_max_position_embeddings=8192",
     "llama3, factor 8, original context 8192"},
    {"layout=halves head_dim=64 base=1000000 scaling.rope_type=yarn scaling.factor=4 "
     "scaling.original_max_position_embeddings=32768",
     "yarn, factor 4, original context 32768"},
    {"layout=interleaved head_dim=64 base=150000 scaling.rope_type=yarn scaling.factor=32 "
     "scaling.original_max_position_embeddings=4096 scaling.truncate=false",
     "yarn, factor 32, original context 4096"},
    {"layout=interleaved head_dim=64 scaling.rope_type=linear scaling.factor=4",
     "positions are divided by 4: linear scaling"},
    {"layout=halves head_dim=64 arithmetic=bfloat16_positions", "positions rounded to bfloat16"},
};

START_TEST(scaled_frequencies) {
    struct pe_spec spec = spec_of("rope", scaled[_i].params);
    struct pe_positions at = {.length = 600, .axes = 1, .step = 1};
    struct pe_rotary_args args = {.size = sizeof args,
                                  .positions = &at,
                                  .form = PE_TRIG_FULL,
                                  .outputs = PE_ROTARY_COS | PE_ROTARY_SIN};
    struct pe_rotary_result tables;
    struct pe_plan *plan;
    struct pe_work work;
    ck_assert(!pe_plan_open(&plan, &spec, &err));
    args.plan = plan;
    ck_assert(!pe_rotary_open(arena, &work, &tables, &args, &err) && pe_work_run(&work));
    pe_plan_close(plan);
    struct pe_identify_args asked = {.size = sizeof asked, .cos = &tables.cos, .sin = &tables.sin};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s", err.text);
    same_encoding(&spec);
    ck_assert_msg(strstr(result.candidates[0].mistake, scaled[_i].says), "%s", result.candidates[0].mistake);
}
END_TEST

/* The PyTorch tutorial's code, as float32 tables of 50, 500 and 5000 rows (core/torch.h has its exponentials
 * to the bit, which make_torch.py tests). */
static const struct {
    double factor;
    const char *says, *not ;
} factors[] = {
    {1.1386294361119891, "= 0.1*ln(4) + 1, the attention factor of YaRN", NULL}, /* mpmath */
    {2, "every cosine and sine is multiplied by 2", "YaRN"},
    {10, "every cosine and sine is multiplied by 10", "YaRN"},
    {1.37, "every cosine and sine is multiplied by 1.37", "YaRN"}, /* exp(3.7) = 40.45 */
};

START_TEST(factors_are_explained_where_they_can_be) {
    double cosines[60 * 16], sines[60 * 16];
    for (size_t i = 0; i < COUNT(cosines); i++) {
        double angle = (double)(i / 16) * pow(10000, -(double)(i % 16) / 16);
        cosines[i] = factors[_i].factor * cos(angle);
        sines[i] = factors[_i].factor * sin(angle);
    }
    struct pe_tensor tables[] = {{cosines, PE_DTYPE_F64, 2, {60, 16}}, {sines, PE_DTYPE_F64, 2, {60, 16}}};
    struct pe_identify_args asked = {.size = sizeof asked, .cos = &tables[0], .sin = &tables[1]};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s", err.text);
    ck_assert_uint_ge(result.n, 1);
    const char *mistake = result.candidates[0].mistake;
    ck_assert_msg(strstr(mistake, factors[_i].says), "%s", mistake);
    ck_assert_msg(!factors[_i].not || !strstr(mistake, factors[_i].not ), "%s", mistake);
}
END_TEST

START_TEST(the_tutorial_has_float32_angles) {
    static const char *const params[] = {"d_model=16 arithmetic=float32_exp",
                                         "d_model=32 arithmetic=float32_exp",
                                         "d_model=512 arithmetic=float32_exp"};
    static const size_t rows[] = {100, 500, 5000};
    struct pe_spec spec = spec_of("sinusoidal", params[_i]);
    ask_encoded(&spec, (struct pe_positions){.length = rows[_i], .axes = 1, .step = 1}, PE_DTYPE_F32, false);
    same_encoding(&spec);
    ck_assert_str_eq(result.candidates[0].name, "vaswani, float32 angles");
    ck_assert(strstr(result.candidates[0].mistake, "angles in float32"));
    ck_assert(result.candidates[0].parts);
}
END_TEST

/* ---- Pairs that grow ---------------------------------------------------------------------------------- */

struct grown {
    bool turned;
    size_t rows, heads, width;
    double scale_base, center;
    bool keys, halves;
    double base;
    double *one, *two;
};
#include "../golden/identify_values.h" /* make_identify.py */

static double xpos_number(const struct pe_spec *spec, const char *name) {
    const struct pe_field *row = pe_field_find(spec->encoding->fields, spec->encoding->n_fields, "xpos");
    const char *object = *(const char *const *)(const void *)((const char *)spec->params + row->offset);
    const struct pe_field *field = pe_field_find(row->fields, row->n_fields, name);
    return object ? *(const double *)(const void *)(object + field->offset) : 0;
}

static void ask_grown(const struct grown *g) {
    struct pe_tensor one = {g->one, PE_DTYPE_F64, 2, {g->rows, g->width}}, two;
    if (g->heads > 1) {
        one = (struct pe_tensor){g->one, PE_DTYPE_F64, 3, {g->rows, g->heads, g->width}};
    }
    two = one;
    two.data = g->two;
    struct pe_identify_args asked = {.size = sizeof asked};
    *(g->turned ? &asked.before : &asked.cos) = &one;
    *(g->turned ? &asked.after : &asked.sin) = &two;
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s", err.text);
    ck_assert_uint_ge(result.n, 1);
}

START_TEST(growing_pairs_are_xpos) {
    const struct grown *g = &grown[_i];
    ask_grown(g);
    const struct pe_identify_candidate *first = &result.candidates[0];
    if (g->scale_base == 0) { /* is like one of them, and is said to be none */
        ck_assert_msg(strstr(first->name, "but not exactly"), "%s", first->name);
        ck_assert(strstr(result.verdict, "none of these exactly") == result.verdict);
        ck_assert(first->parts && first->part_index < 4);
        return;
    }
    ck_assert_msg(strstr(first->name, "xpos ") == first->name, "%s", first->name);
    ck_assert(strstr(result.verdict, "none") == NULL);
    ck_assert_double_eq(xpos_number(&first->encoding, "scale_base"), g->scale_base);
    ck_assert_double_eq(xpos_number(&first->encoding, "center"), g->center);
    double base = identify_number(&first->encoding, "base");
    ck_assert_double_eq(base > 0 ? base : 10000, g->base); /* 0: it is not said */
    ck_assert_double_eq(identify_number(&first->encoding, "layout"), g->halves ? 1 : 2);
    ck_assert_int_eq(first->keys, g->keys);
    ck_assert_msg(first->max_abs < 1e-9, "%g", first->max_abs);
}
END_TEST

/* ---- Images, and other forms --------------------------------------------------------------------------- */

static const struct {
    const char *params, *grid, *name;
} images[] = {
    {"combine=mae d_model=32 cls_rows=1", "14,14", "mae, grid of 14 x 14"},
    {"combine=timm d_model=64", "7,12", "timm, grid of 7 x 12"},
    {"combine=timm_interleaved d_model=16 base=100", "12,7", "timm_interleaved, grid of 12 x 7"},
    {"combine=detr d_model=128 start=1", "10,8", "detr, grid of 10 x 8"},
    {"combine=detr d_model=32 start=1 normalize=true grid=9,9", "9,9", "detr, grid of 9 x 9"},
    {"combine=tatp22 d_model=256", "16,16", "tatp22, grid of 16 x 16"},
    {"combine=t2t d_model=32", "8,10", "t2t, grid of 8 x 10"},
};

START_TEST(images_are_named) {
    static const enum pe_dtype dtypes[] = {PE_DTYPE_F32, PE_DTYPE_BF16};
    bool placed = (size_t)_i / 2 / COUNT(images) > 0; /* with the coordinates of each token */
    double sizes[2], *list;
    _i %= 2 * (int)COUNT(images);
    struct pe_spec spec = spec_of("sinusoidal_nd", images[_i / 2].params);
    ck_assert_int_eq(sscanf(images[_i / 2].grid, "%lf,%lf", &sizes[0], &sizes[1]), 2);
    size_t before = (size_t)identify_number(&spec, "cls_rows"), n = before + (size_t)(sizes[0] * sizes[1]);
    list = pe_arena_array(arena, n, 2 * sizeof *list, &err);
    for (size_t t = 0; t < n; t++) {
        list[2 * t] = t < before ? -1 : floor((double)(t - before) / sizes[1]);
        list[2 * t + 1] = t < before ? -1 : fmod((double)(t - before), sizes[1]);
    }
    ask_encoded(&spec, (struct pe_positions){.length = n, .axes = 2, .list = list}, dtypes[_i % 2], placed);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_msg(strstr(result.candidates[0].name, images[_i / 2].name), "%s", result.candidates[0].name);
    ck_assert_msg(result.candidates[0].max_abs < (_i % 2 ? 0.02 : 1e-4), "%g", result.candidates[0].max_abs);
}
END_TEST

/* Which come as a batch of rows of two where nobody knows what they are. */
START_TEST(coordinates_that_are_no_grid_are_refused) {
    double values[6 * 4] = {0}, list[] = {1, 1, 1, 2, 2, 1, 2, 2, 3, 1, 3, 2};
    struct pe_tensor table = {values, PE_DTYPE_F64, 2, {6, 4}};
    struct pe_positions at = {.batch = 6, .length = 2, .axes = 1, .list = list};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table, .positions = &at};
    list[7] = _i ? 3 : 2;
    ck_assert_int_eq(pe_identify_open(arena, &result, &asked, &err), _i ? PE_ERR_UNSUPPORTED : PE_OK);
    ck_assert_str_eq(err.path, _i ? "positions" : "");
}
END_TEST

START_TEST(features_of_nerf_are_named) {
    struct pe_spec spec = spec_of("fourier", _i ? "features=nerf n_frequencies=6 pi=false include_input=true"
                                                : "features=nerf n_frequencies=10");
    double list[40];
    for (size_t i = 0; i < COUNT(list); i++) {
        list[i] = 0.05 * (double)i - 1 + 0.001 * (double)(i * i % 7);
    }
    ask_encoded(&spec, (struct pe_positions){.length = COUNT(list), .axes = 1, .list = list}, PE_DTYPE_F32,
                true);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "fourier features of nerf");
    ck_assert_msg(result.candidates[0].max_abs < 1e-4, "%g", result.candidates[0].max_abs);
}
END_TEST

/* Code that divides positions by powers, float32 at each step: another error than that of frequencies. */
START_TEST(divided_positions_have_float32_angles) {
    size_t rows = _i ? 5000 : 1000, width = _i ? 10 : 64;
    float *x = pe_arena_array(arena, rows * width, sizeof *x, &err);
    for (size_t i = 0; i < rows * width; i++) {
        float exponent = (float)(i % width / 2 * 2) / (float)width;
        float angle = (float)(i / width) / (float)pow(10000, exponent);
        x[i] = (float)(i % 2 ? cos(angle) : sin(angle));
    }
    struct pe_tensor table = {x, PE_DTYPE_F32, 2, {rows, width}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "vaswani, float32 angles");
}
END_TEST

/* 512 columns of numbers around 1/sqrt(512), whose noise is 1e-3. */
START_TEST(small_numbers_with_noise_are_named) {
    size_t rows = 200, width = 512;
    double *x = pe_arena_array(arena, rows * width, sizeof *x, &err);
    identify_begin(9);
    for (size_t i = 0; i < rows * width; i++) {
        double angle = (double)(i / width) * pow(10000, -(double)(i % width / 2 * 2) / (double)width);
        x[i] = (i % 2 ? cos(angle) : sin(angle)) / sqrt((double)width) + 1e-3 * identify_normal();
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {rows, width}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "vaswani");
    ck_assert(strstr(result.candidates[0].mistake, "1/sqrt(d)"));
}
END_TEST

/* Zeros, and what is small beside the rest, are of padding only where the encoding has other numbers. Row `zeroed` was
 * made one of padding, if any. */
static const struct {
    const char *params, *mistake;
    size_t rows, zeroed;
} plain[] = {
    {"d_model=4", NULL, 16, 0},
    {"d_model=4", NULL, 1000, 0},
    {"d_model=4 form=normalized seq_len=16", NULL, 16, 0},
    {"d_model=4 form=binary", NULL, 16, 0},
    {"d_model=4", "row 5 is zeros, as that of padding (padding_idx)", 16, 5},
    {"d_model=4 form=normalized seq_len=16", "row 15 is zeros, as that of padding (padding_idx)", 16, 15},
    {"d_model=4 form=binary", "row 7 is zeros, as that of padding (padding_idx)", 16, 7},
    {"d_model=4", "row 700 is zeros, as that of padding (padding_idx)", 1000, 700},
};

START_TEST(zeros_of_its_own_are_no_padding) {
    struct pe_spec spec = spec_of("naive", plain[_i].params);
    struct pe_positions at = {.length = plain[_i].rows, .axes = 1, .step = 1};
    struct pe_tensor table = encoded(&spec, &at, PE_DTYPE_F64);
    memset((double *)table.data + 4 * plain[_i].zeroed, 0, 4 * sizeof(double)); /* row 0 is so already */
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_eq(result.n, 1); /* not p/1 beside p */
    ck_assert_str_eq(result.candidates[0].encoding.encoding->type, "naive");
    ck_assert_double_eq(identify_number(&result.candidates[0].encoding, "form"),
                        identify_number(&spec, "form"));
    ck_assert_double_eq(result.candidates[0].max_abs, 0);
    ck_assert_pstr_eq(result.candidates[0].mistake, plain[_i].mistake);
}
END_TEST

/* Fewer bits than positions need. */
START_TEST(bits_that_begin_again_are_named) {
    double x[64 * 4];
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = (double)(i / 4 >> i % 4 & 1);
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {64, 4}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "naive binary");
    ck_assert(strstr(result.candidates[0].mistake, "from 16 on they begin again"));
    ck_assert_double_eq(result.candidates[0].max_abs, 0);
}
END_TEST

/* Eight columns of the tutorial are as near to another base and denominator: the usual ones are named. */
START_TEST(of_equal_tables_the_usual_one_is_first) {
    struct pe_spec spec = spec_of("sinusoidal", "d_model=8 arithmetic=float32_exp");
    ask_encoded(&spec, (struct pe_positions){.length = 60, .axes = 1, .step = 1}, PE_DTYPE_F32, false);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "vaswani, float32 angles");
}
END_TEST

/* A buffer keeps axes for batches and heads. */
START_TEST(axes_of_one_are_passed_over) {
    static const size_t shapes[][4] = {{60, 1, 16}, {1, 60, 16}, {1, 1, 60, 16}, {1, 60, 1, 16}};
    static const int ranks[] = {3, 3, 4, 4};
    struct pe_spec spec = spec_of("sinusoidal", "d_model=16");
    struct pe_positions at = {.length = 60, .axes = 1, .step = 1};
    struct pe_tensor table = encoded(&spec, &at, PE_DTYPE_F32);
    table.rank = ranks[_i];
    memcpy(table.dim, shapes[_i], sizeof shapes[_i]);
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s: %s", err.path, err.text);
    ck_assert_str_eq(result.candidates[0].name, "vaswani");
}
END_TEST

/* The tutorial with `//` for `/`: its exponents are twice as large, as if the base were squared. */
START_TEST(the_squared_base_is_explained) {
    static const char *const params[] = {"d_model=64 base=1e8 arithmetic=float32_exp",
                                         "d_model=512 base=1e8 arithmetic=float32_exp",
                                         "d_model=64 base=1e8"};
    struct pe_spec spec = spec_of("sinusoidal", params[_i]);
    ask_encoded(&spec, (struct pe_positions){.length = 100, .axes = 1, .step = 1}, PE_DTYPE_F32, false);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_msg(strstr(result.candidates[0].mistake, "10000^2"), "%s", result.candidates[0].mistake);
}
END_TEST

/* Sinusoids that rows tell too little of to be measured. */
static const struct {
    const char *params, *name;
    size_t rows;
    double first, step;
} sparse[] = {
    {"d_model=16 position_scale=10", "vaswani, scale 10", 4, 0, 1},
    {"d_model=6 base=50000 denominator=half_minus_one", "interleaved, half_minus_one, base 50000", 6, 123457,
     98765},
    {"d_model=4 base=700 offset=0.5", "vaswani, base 700, offset 0.5", 32, 71, 30011},
    {"d_model=3 base=100 position_scale=0.5", "vaswani, base 100, scale 0.5", 100, 0, 1},
    {"d_model=5 base=256 position_scale=4 odd=zero", "vaswani, base 256, scale 4", 32, 0, 1},
    {"d_model=128 base=12345", "vaswani, base 12345, offset 900000", 50, -900000, 1},
    {"d_model=8 denominator=half_minus_one position_scale=10",
     "interleaved, half_minus_one, scale 10, offset 9000000", 200, -900000, 1},
};

/* A first row below 0: begins there without saying so. */
START_TEST(rows_that_cannot_be_measured_are_named) {
    struct pe_spec spec = spec_of("sinusoidal", sparse[_i].params);
    double list[200];
    for (size_t i = 0; i < sparse[_i].rows; i++) {
        list[i] = fabs(sparse[_i].first) + sparse[_i].step * (double)i;
    }
    ask_encoded(&spec, (struct pe_positions){.length = sparse[_i].rows, .axes = 1, .list = list},
                PE_DTYPE_F64, sparse[_i].first >= 0);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, sparse[_i].name);
    ck_assert_msg(result.candidates[0].max_abs < 1e-6, "%g", result.candidates[0].max_abs);
}
END_TEST

/* A few rows that none explains, at positions that float16 does not hold: such positions are not tried in it. */
START_TEST(rows_that_are_not_turned_are_none) {
    double p[7] = {0, 1, 2, 3, 4, 5, 1e6}, x[7 * 8], y[7 * 8];
    uint64_t state = 5;
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = (double)(random_next(&state) >> 11) * 0x1p-52 - 1;
    }
    memcpy(y, x, sizeof y);
    for (size_t i = 0; i < 8; i++) {
        y[6 * 8 + i] *= 1.25;
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {7, 8}}, other = {y, PE_DTYPE_F64, 2, {7, 8}};
    struct pe_positions at = {.length = 7, .axes = 1, .list = p};
    struct pe_identify_args asked = {
        .size = sizeof asked, .before = &table, .after = &other, .positions = &at};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_eq(result.n, 0);
}
END_TEST

static void *counted(void *context, size_t bytes) {
    *(size_t *)context += bytes;
    return malloc(bytes);
}

static void released(void *context, void *block, size_t bytes) {
    (void)context, (void)bytes;
    free(block);
}

/* Plans are no memory of the arena, but of the request: what is charged is more than what the arena took by the two
 * plans that a candidate is compared with. */
START_TEST(plans_count_as_memory) {
    size_t taken = 0, bytes;
    const struct pe_allocator allocator = {counted, released, &taken};
    struct pe_plan *plan;
    pe_arena_close(arena);
    arena = pe_arena_open((size_t)256 << 20, &allocator, &err);
    struct pe_spec spec = spec_of("sinusoidal", "d_model=32768");
    ck_assert(!pe_plan_open(&plan, &spec, &err));
    bytes = pe_plan_bytes(plan);
    pe_plan_close(plan);
    ask_encoded(&spec, (struct pe_positions){.length = 4, .axes = 1, .step = 1}, PE_DTYPE_F64, false);
    ck_assert_str_eq(result.candidates[0].name, "vaswani");
    ck_assert_uint_gt(pe_arena_used(arena), taken + bytes);
}
END_TEST

Suite *identify_suite(void) {
    Suite *suite = suite_create("identify");
    TCase *single = tcase_create("one by one");
    suite_add_tcase(suite, single);
    tcase_add_checked_fixture(single, setup, teardown);
    tcase_add_loop_test(single, scaled_frequencies, 0, COUNT(scaled));
    tcase_add_loop_test(single, factors_are_explained_where_they_can_be, 0, COUNT(factors));
    tcase_add_loop_test(single, the_tutorial_has_float32_angles, 0, 3);
    tcase_add_loop_test(single, axes_of_one_are_passed_over, 0, 4);
    tcase_add_loop_test(single, the_squared_base_is_explained, 0, 3);
    tcase_add_loop_test(single, growing_pairs_are_xpos, 0, COUNT(grown));
    tcase_add_loop_test(single, images_are_named, 0, 4 * COUNT(images));
    tcase_add_loop_test(single, coordinates_that_are_no_grid_are_refused, 0, 2);
    tcase_add_loop_test(single, features_of_nerf_are_named, 0, 2);
    tcase_add_loop_test(single, divided_positions_have_float32_angles, 0, 2);
    tcase_add_test(single, small_numbers_with_noise_are_named);
    tcase_add_loop_test(single, zeros_of_its_own_are_no_padding, 0, COUNT(plain));
    tcase_add_test(single, bits_that_begin_again_are_named);
    tcase_add_test(single, of_equal_tables_the_usual_one_is_first);
    tcase_add_loop_test(single, rows_that_cannot_be_measured_are_named, 0, COUNT(sparse));
    tcase_add_test(single, rows_that_are_not_turned_are_none);
    tcase_add_test(single, plans_count_as_memory);
    return suite;
}
