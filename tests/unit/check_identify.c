/* SPDX-License-Identifier: MIT
 *
 * identify: tables of all variants, made here in plain double arithmetic, are named. What counts is that the
 * first candidate is the same table within the noise: bases and denominators that make equal tables are
 * equal.
 */
#include "suites.h"

#include "posenc_fields.h"
#include "posenc_identify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST         32768

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

/* ---- Chance -------------------------------------------------------------------------------------------- */

static uint64_t chance; /* of this test */

static double uniform(void) {
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance >> 11) * 0x1p-53;
}

/* Neighbouring seeds, streams that have nothing in common. */
static void begin(uint64_t seed) {
    chance = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    chance = (chance ^ chance >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    chance ^= chance >> 27;
    uniform();
}

static size_t pick(size_t n) {
    return (size_t)(uniform() * (double)n);
}

static double normal(void) {
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

#define PICK(list) (list)[pick(COUNT(list))]

/* ---- What is made -------------------------------------------------------------------------------------- */

enum kind { ABSOLUTE, TRIG, TURNED };

struct made {
    enum kind kind;
    size_t rows, width, heads; /* width: of vectors; of the head */
    double p[400];
    bool placed; /* positions are posted */
    /* vectors */
    bool halves, cos_first, minus_one, zero_column;
    double base, scale, offset, factor;
    double padding; /* NAN: none */
    int exponents;  /* a row of `mistakes`, 0: right */
    /* rotary */
    size_t rotary, copies; /* copies: 1 half, 2 as halves, 3 as interleaved */
    bool clockwise;
    enum pe_dtype dtype;
    double noise;
    double clean[MOST], other[MOST]; /* [rows, items]; cos and sin; after and before */
    size_t items;
};

static struct made made; /* big, and of one test's process */

/* Exponents of sines and cosines of pair i in interleaved columns: (a + b*i)/d. */
static const struct {
    double sine[2], cosine[2];
    const char *says;
} mistakes[] = {
    {{0, 2}, {0, 2}, NULL},
    {{0, 4}, {2, 4}, "2*j/d"},
    {{0, 2}, {1, 2}, "j/d"},
    {{0, 2}, {2, 2}, "2(i+1)/d"},
};

static double vector_value(size_t row, size_t column) {
    size_t w = made.zero_column ? made.width - 1 : made.width, firsts = (w + 1) / 2;
    size_t pair = made.halves ? column % firsts : column / 2;
    bool second = made.halves ? column >= firsts : column % 2;
    pair = made.halves && second ? column - firsts : pair;
    bool cosine = second != made.cos_first;
    const double *e = cosine ? mistakes[made.exponents].cosine : mistakes[made.exponents].sine;
    double down = (double)(made.minus_one ? w - 2 : w);
    double x = made.scale * made.p[row] + made.offset;
    if (column >= w || x == made.padding) {
        return 0;
    }
    double angle = w <= 2 ? x : x * pow(made.base, -(e[0] + e[1] * (double)pair) / down);
    return made.factor * (cosine ? cos(angle) : sin(angle));
}

static double turn_of(size_t row, size_t pair) {
    double angle =
        (made.scale * made.p[row] + made.offset) * pow(made.base, -2 * (double)pair / (double)made.rotary);
    return made.clockwise ? -angle : angle;
}

static void make_trig(void) {
    size_t pairs = made.rotary / 2;
    made.items = made.copies == 1 ? pairs : made.rotary;
    for (size_t i = 0; i < made.rows * made.items; i++) {
        size_t c = i % made.items, pair = made.copies == 3 ? c / 2 : c % pairs;
        made.clean[i] = made.factor * cos(turn_of(i / made.items, pair));
        made.other[i] = made.factor * sin(turn_of(i / made.items, pair));
    }
}

static void make_turned(void) {
    made.items = made.heads * made.width;
    for (size_t i = 0; i < made.rows * made.items; i++) {
        made.other[i] = normal();
    }
    memcpy(made.clean, made.other, sizeof made.clean);
    for (size_t h = 0; h < made.rows * made.heads; h++) {
        double *out = made.clean + h * made.width;
        const double *in = made.other + h * made.width;
        for (size_t k = 0; k < made.rotary / 2; k++) {
            size_t a = made.halves ? k : 2 * k, b = made.halves ? k + made.rotary / 2 : 2 * k + 1;
            double angle = turn_of(h / made.heads, k), c = cos(angle), s = sin(angle);
            out[a] = made.factor * (in[a] * c - in[b] * s);
            out[b] = made.factor * (in[b] * c + in[a] * s);
        }
    }
}

static void make_vectors(void) {
    made.items = made.width;
    for (size_t i = 0; i < made.rows * made.items; i++) {
        made.clean[i] = vector_value(i / made.items, i % made.items);
    }
}

/* ---- Which ones ---------------------------------------------------------------------------------------- */

static double some_base(void) {
    static const double usual[] = {10000, 10000, 10000, 1000, 100, 500000, 1e6, 10, 1e7};
    return pick(2) ? PICK(usual) : 10 * pow(1e6, uniform());
}

static void some_positions(void) {
    double start = 0, step = 1;
    static const double starts[] = {1, 7, 1000, 1000000};
    made.placed = pick(3) == 0;
    bool sparse = made.placed && made.width >= 16 && made.rows >= 40 && pick(2);
    made.placed = made.placed && made.width >= 8;
    if (made.placed) {
        start = PICK(starts);
    }
    for (size_t i = 0; i < made.rows; i++) {
        made.p[i] = start + step * (double)i;
        /* Neighbours, then far ones, up to a million. */
        made.p[i] = sparse && i > 8 ? floor(1e6 * pow((double)i / (double)made.rows, 3)) + (double)i
                    : sparse        ? (double)i
                                    : made.p[i];
    }
}

static void some_common(void) {
    static const size_t rows[] = {24, 40, 64, 100, 200};
    static const enum pe_dtype dtypes[] = {PE_DTYPE_F64, PE_DTYPE_F64, PE_DTYPE_F32,
                                           PE_DTYPE_F32, PE_DTYPE_F16, PE_DTYPE_BF16};
    made.rows = PICK(rows);
    made.base = some_base();
    made.scale = made.factor = 1;
    made.offset = 0;
    made.heads = 1;
    made.padding = NAN;
    made.dtype = PICK(dtypes);
    made.noise = pick(2) ? 1e-3 : 0;
    made.exponents = 0;
    made.zero_column = made.minus_one = made.cos_first = made.clockwise = false;
    made.halves = pick(2);
}

static void some_vectors(bool wrong) {
    static const size_t widths[] = {4, 5, 6, 7, 8, 16, 17, 32, 33, 64, 128};
    static const double offsets[] = {0, 0, 0, 1, 2, 5, 100, -3};
    static const double scales[] = {1, 1, 1, 1, 0.5, 0.25, 2, 0.1};
    some_common();
    made.width = PICK(widths);
    some_positions();
    made.cos_first = pick(4) == 0;
    made.minus_one = pick(3) == 0;
    made.zero_column = made.width % 2 && pick(2);
    made.offset = PICK(offsets);
    made.scale = PICK(scales);
    made.offset = (made.placed || made.width < 8) && made.offset > 5 ? 0 : made.offset;
    made.factor = pick(8) == 0 ? sqrt((double)made.width) : 1;
    if (pick(6) == 0 && !made.placed && made.width >= 8) { /* begins far away without saying so */
        made.base = 10000;
        made.scale = 1;
        made.offset = floor(1e6 * uniform());
    } else if (pick(6) == 0 && !made.placed && made.scale == 1 && made.offset >= 0 && made.offset < 9) {
        made.padding = made.offset + (double)pick(3);
    }
    if (wrong) {
        static const double bases[] = {10000, 10000, 1000, 10000};
        made.exponents = 1 + (int)pick(3);
        made.halves = made.cos_first = made.minus_one = made.zero_column = false;
        made.width = 8 * (1 + pick(6));
        made.scale = made.factor = 1;
        made.base = PICK(bases);
        made.offset = (double)pick(3);
        made.padding = NAN;
    }
    make_vectors();
}

static void some_trig(void) {
    static const size_t widths[] = {8, 16, 32, 64, 128};
    static const double scales[] = {1, 1, 1, 0.25, 0.125};
    static const double offsets[] = {0, 0, 1};
    some_common();
    made.kind = TRIG;
    made.rotary = made.width = PICK(widths);
    some_positions();
    made.scale = PICK(scales);
    made.offset = made.scale == 1 ? PICK(offsets) : 0;
    made.copies = 1 + pick(3);
    made.factor = pick(5) == 0 ? 0.1 * log(4) + 1 : 1;
    make_trig();
}

static void some_turned(void) {
    static const size_t widths[] = {16, 32, 64};
    some_common();
    made.kind = TURNED;
    made.dtype = made.dtype == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    made.width = PICK(widths);
    made.heads = 1 + pick(3);
    made.rows = made.rows > 64 ? 64 : made.rows;
    some_positions();
    made.rotary = pick(3) ? made.width : made.width / (pick(2) ? 2 : 4);
    made.clockwise = pick(4) == 0;
    made.offset = pick(4) == 0;
    make_turned();
}

/* ---- The verdict --------------------------------------------------------------------------------------- */

static struct pe_tensor tensor_of(const double *values, double noise) {
    size_t n = made.rows * made.items;
    static double noisy[MOST];
    struct pe_tensor tensor = {.rank = 2, .dim = {made.rows, made.items}, .dtype = made.dtype};
    for (size_t i = 0; i < n; i++) {
        noisy[i] = values[i] + noise * normal();
    }
    if (made.kind == TURNED && made.heads > 1) {
        tensor.rank = 3;
        tensor.dim[1] = made.heads;
        tensor.dim[2] = made.width;
    }
    tensor.data = pe_arena_array(arena, n, pe_dtype_size(made.dtype), &err);
    pe_dtype_store(made.dtype, noisy, n, tensor.data);
    return tensor;
}

static void identify(void) {
    struct pe_positions at = {.length = made.rows, .axes = 1, .list = made.p};
    struct pe_tensor first = tensor_of(made.clean, made.noise), second;
    struct pe_identify_args args = {.size = sizeof args, .positions = made.placed ? &at : NULL};
    if (made.kind == ABSOLUTE) {
        args.tensor = &first;
    } else {
        second = tensor_of(made.other, made.kind == TRIG ? made.noise : 0);
        args.cos = made.kind == TRIG ? &first : NULL;
        args.sin = made.kind == TRIG ? &second : NULL;
        args.after = made.kind == TURNED ? &first : NULL;
        args.before = made.kind == TURNED ? &second : NULL;
    }
    ck_assert_msg(pe_identify_open(arena, &result, &args, &err) == 0, "%s: %s", err.path, err.text);
}

/* A parameter of a spec, as a number; choices by their value. */
static double number_of(const struct pe_spec *spec, const char *name) {
    const struct pe_field *row = pe_field_find(spec->encoding->fields, spec->encoding->n_fields, name);
    const char *at = (const char *)spec->params + row->offset;
    return row->kind == PE_KIND_REAL  ? *(const double *)(const void *)at
           : row->kind == PE_KIND_INT ? (double)*(const int64_t *)(const void *)at
                                      : (double)*(const int *)(const void *)at;
}

/* The largest distance of the candidate's own table from the clean one. */
static double distance(const struct pe_identify_candidate *candidate) {
    static double values[MOST], shifted[400];
    struct pe_plan *plan;
    struct pe_positions at = {.length = made.rows, .axes = 1, .list = shifted};
    double most = 0;
    for (size_t i = 0; i < made.rows; i++) {
        shifted[i] = made.p[i] + candidate->shift;
    }
    ck_assert(!pe_plan_open(&plan, &candidate->encoding, &err));
    if (made.kind == ABSOLUTE) {
        pe_encode_rows(plan, &at, PE_DTYPE_F64, 0, made.rows, values);
        for (size_t i = 0; i < made.rows * made.items; i++) {
            most = fmax(most, fabs(candidate->factor * values[i] - made.clean[i]));
        }
    } else {
        static double cosine[MOST], sine[MOST];
        struct pe_rotary_rows rows = {
            .plan = plan, .positions = &at, .dtype = PE_DTYPE_F64, .form = PE_TRIG_HALF};
        size_t n = pe_rotary_row_items(&rows);
        if (n != made.rotary / 2) {
            pe_plan_close(plan);
            return INFINITY;
        }
        pe_rotary_fill(&rows, 0, made.rows, cosine, sine);
        for (size_t i = 0; i < made.rows * made.rotary / 2; i++) {
            double angle = turn_of(i / (made.rotary / 2), i % (made.rotary / 2));
            most = fmax(most, fabs(candidate->factor * cosine[i] - made.factor * cos(angle)));
            most = fmax(most, fabs(candidate->factor * sine[i] - made.factor * sin(angle)));
        }
    }
    pe_plan_close(plan);
    return most / made.factor;
}

/* Layouts of rotary ones, where the table tells. */
static bool layout_is_right(const struct pe_identify_candidate *candidate) {
    if (made.kind == ABSOLUTE || made.copies == 1) {
        return true;
    }
    bool halves = made.kind == TRIG ? made.copies == 2 : made.halves;
    return number_of(&candidate->encoding, "layout") == (halves ? 1 : 2);
}

static const char *described(void) {
    static char text[400];
    snprintf(
        text, sizeof text,
        "kind %d [%zu, %zu] halves %d cos_first %d minus_one %d zero %d base %g scale %g offset %g factor %g "
        "padding %g mistake %d rotary %zu copies %zu clockwise %d %s noise %g placed %d last %g",
        made.kind, made.rows, made.width, made.halves, made.cos_first, made.minus_one, made.zero_column,
        made.base, made.scale, made.offset, made.factor, made.padding, made.exponents, made.rotary,
        made.copies, made.clockwise, pe_dtype_name(made.dtype), made.noise, made.placed,
        made.p[made.rows - 1]);
    return text;
}

static bool is_right(void) {
    static const double eps[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 1e-9, [PE_DTYPE_F32] = 1e-7, [PE_DTYPE_F16] = 5e-4, [PE_DTYPE_BF16] = 4e-3};
    const struct pe_identify_candidate *first = &result.candidates[0];
    if (result.n == 0) {
        return false;
    }
    if (made.exponents) {
        return first->mistake && strstr(first->mistake, mistakes[made.exponents].says);
    }
    /* The noise of an angle is that of a vector over its length. */
    double allowed = (made.kind == TURNED ? 5 : 3) * made.noise + 2 * eps[made.dtype];
    return strcmp(first->encoding.encoding->type, made.kind == ABSOLUTE ? "sinusoidal" : "rope") == 0 &&
           layout_is_right(first) && distance(first) <= allowed;
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

#define TABLES 304
#define PARTS  8 /* tests, which run side by side */

static void some_table(void) {
    made.kind = ABSOLUTE;
    made.copies = 0;
    size_t of = pick(20);
    if (of < 12) {
        some_vectors(false);
    } else if (of < 14) {
        some_vectors(true);
    } else if (of < 17) {
        some_trig();
    } else {
        some_turned();
    }
}

START_TEST(all_variants_are_named) {
    static const uint64_t seeds[] = {1, 20261130};
    size_t wrong = 0;
    for (size_t i = 0; i < TABLES / PARTS; i++) {
        begin(seeds[(size_t)_i / PARTS] * 1000 + (uint64_t)(_i % PARTS) * 100 + i);
        setup();
        some_table();
        identify();
        if (!is_right()) {
            wrong++;
            fprintf(stderr, "WRONG %s -> %s | %s | %g\n", described(),
                    result.n ? result.candidates[0].name : "none",
                    result.n && result.candidates[0].mistake ? result.candidates[0].mistake : "",
                    result.n && !made.exponents ? distance(&result.candidates[0]) : 0);
        }
        teardown();
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(random_tables_are_none) {
    static const size_t widths[] = {2, 8, 32, 64};
    setup();
    begin(77 + (uint64_t)_i);
    memset(&made, 0, sizeof made);
    made.kind = _i % 4 == 3 ? TRIG : ABSOLUTE;
    made.rows = 10 + 5 * (size_t)_i;
    made.items = made.width = widths[_i % 4];
    made.dtype = _i % 2 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    for (size_t i = 0; i < made.rows * made.items; i++) {
        made.clean[i] = _i % 3 ? normal() * 0.02 : 2 * uniform() - 1;
        made.other[i] = normal();
    }
    identify();
    ck_assert_msg(result.n == 0, "%s", result.n ? result.candidates[0].name : "");
    ck_assert(strstr(result.verdict, "none of these") == result.verdict);
    teardown();
}
END_TEST

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
    ck_assert_double_eq(number_of(found, "base"), number_of(spec, "base"));
    ck_assert_double_eq(number_of(found, "layout"), number_of(spec, "layout"));
    ck_assert_msg(result.candidates[0].max_abs < 1e-6, "%g", result.candidates[0].max_abs);
    pe_plan_close(plans[0]);
    pe_plan_close(plans[1]);
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
START_TEST(the_tutorial_has_float32_angles) {
    static const char *const params[] = {"d_model=16 arithmetic=float32_exp",
                                         "d_model=32 arithmetic=float32_exp",
                                         "d_model=512 arithmetic=float32_exp"};
    static const size_t rows[] = {100, 500, 5000};
    struct pe_spec spec = spec_of("sinusoidal", params[_i]);
    struct pe_positions at = {.length = rows[_i], .axes = 1, .step = 1};
    struct pe_tensor table;
    struct pe_plan *plan;
    struct pe_work work;
    ck_assert(!pe_plan_open(&plan, &spec, &err));
    ck_assert(!pe_encode_open(arena, &work, &table, plan, &at, PE_DTYPE_F32, &err) && pe_work_run(&work));
    pe_plan_close(plan);
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s", err.text);
    same_encoding(&spec);
    ck_assert_str_eq(result.candidates[0].name, "vaswani, float32 angles");
    ck_assert(strstr(result.candidates[0].mistake, "angles in float32"));
    ck_assert(result.candidates[0].parts);
}
END_TEST

/* What is posted wrongly, and where that is said. */
static const struct {
    const char *path;
    int code;
    bool tensor, cos, sin, before;
    double base;
    const char *type, *layout;
} bad[] = {
    {.path = "tensor", .code = PE_ERR_MISSING},
    {.path = "sin", .code = PE_ERR_MISSING, .cos = true},
    {.path = "cos", .code = PE_ERR_MISSING, .sin = true},
    {.path = "after", .code = PE_ERR_MISSING, .before = true},
    {.path = "cos", .code = PE_ERR_CONFLICT, .tensor = true, .cos = true, .sin = true},
    {.path = "hints.type", .code = PE_ERR_UNKNOWN_NAME, .tensor = true, .type = "nonesuch"},
    {.path = "hints.layout", .code = PE_ERR_CHOICE, .tensor = true, .layout = "nonesuch"},
    {.path = "hints.base", .code = PE_ERR_RANGE, .tensor = true, .base = 0.5},
};

START_TEST(errors_name_the_field) {
    double values[6] = {0, 1, 2, 3, 4, 5};
    struct pe_tensor tensor = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 2}};
    const struct pe_identify_args args = {.size = sizeof args,
                                          .tensor = bad[_i].tensor ? &tensor : NULL,
                                          .cos = bad[_i].cos ? &tensor : NULL,
                                          .sin = bad[_i].sin ? &tensor : NULL,
                                          .before = bad[_i].before ? &tensor : NULL,
                                          .type = bad[_i].type,
                                          .layout = bad[_i].layout,
                                          .base = bad[_i].base};
    ck_assert_int_eq(pe_identify_open(arena, &result, &args, &err), bad[_i].code);
    ck_assert_str_eq(err.path, bad[_i].path);
}
END_TEST

/* Shapes that are none, and tables that do not belong together. */
START_TEST(shapes_are_checked) {
    double values[12] = {0};
    struct pe_tensor flat = {.data = values, .dtype = PE_DTYPE_F64, .rank = 1, .dim = {12}};
    struct pe_tensor one = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 4}};
    struct pe_tensor other = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {4, 3}};
    struct pe_positions few = {.length = 2, .axes = 1, .step = 1};
    const struct pe_identify_args all[] = {{.size = sizeof all[0], .tensor = &flat},
                                           {.size = sizeof all[0], .cos = &one, .sin = &other},
                                           {.size = sizeof all[0], .tensor = &one, .positions = &few}};
    static const char *const paths[] = {"tensor", "sin", "positions"};
    ck_assert_int_eq(pe_identify_open(arena, &result, &all[_i], &err), PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, paths[_i]);
}
END_TEST

Suite *identify_suite(void) {
    Suite *suite = suite_create("identify");
    TCase *tests = tcase_create("identify");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, all_variants_are_named, 0, 2 * PARTS);
    tcase_add_loop_test(tests, random_tables_are_none, 0, 20);
    TCase *single = tcase_create("one by one");
    suite_add_tcase(suite, single);
    tcase_add_checked_fixture(single, setup, teardown);
    tcase_add_loop_test(single, scaled_frequencies, 0, COUNT(scaled));
    tcase_add_loop_test(single, the_tutorial_has_float32_angles, 0, 3);
    tcase_add_loop_test(single, errors_name_the_field, 0, COUNT(bad));
    tcase_add_loop_test(single, shapes_are_checked, 0, 3);
    return suite;
}
