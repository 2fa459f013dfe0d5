/* SPDX-License-Identifier: MIT
 *
 * Tables that identify has to name, made here in plain double arithmetic apart from the library. What counts is that
 * the first candidate is the same table within the noise: bases and denominators that make equal tables are equal.
 */
#include "identify_made.h"

#include "suites.h"

#include "posenc_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST         IDENTIFY_MADE_MOST

/* ---- Chance -------------------------------------------------------------------------------------------- */

static uint64_t chance; /* of this test */

double identify_uniform(void) {
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance >> 11) * 0x1p-53;
}

/* Neighbouring seeds, streams that have nothing in common. */
void identify_begin(uint64_t seed) {
    chance = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    chance = (chance ^ chance >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    chance ^= chance >> 27;
    identify_uniform();
}

static size_t pick(size_t n) {
    return (size_t)(identify_uniform() * (double)n);
}

double identify_normal(void) {
    return sqrt(-2 * log(1 - identify_uniform())) * cos(6.283185307179586 * identify_uniform());
}

#define PICK(list) (list)[pick(COUNT(list))]

/* ---- What is made -------------------------------------------------------------------------------------- */

struct identify_made made; /* big, and of one test's process */

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
    angle /= made.stretch ? made.divisor[pair] : 1;
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
        made.other[i] = identify_normal();
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
    return pick(2) ? PICK(usual) : 10 * pow(1e6, identify_uniform());
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
    made.stretch = 0;
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
        made.offset = floor(1e6 * identify_uniform());
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

/* ---- Stretched frequencies, by the formulas of the papers ---- */

static double yarn_pair(double turns, double original) {
    return (double)made.rotary * log(original / (6.283185307179586 * turns)) / (2 * log(made.base));
}

static void stretch_yarn(double factor, double original) {
    double low = fmax(floor(yarn_pair(32, original)), 0);
    double high = fmin(ceil(yarn_pair(1, original)), (double)made.rotary - 1);
    high += low == high ? 0.001 : 0;
    for (size_t i = 0; i < made.rotary / 2; i++) {
        double ramp = fmax(0, fmin(1, ((double)i - low) / (high - low)));
        made.divisor[i] = 1 / (1 - ramp + ramp / factor);
    }
    made.factor = 0.1 * log(factor) + 1;
}

static void stretch_llama3(double factor, double original) {
    for (size_t i = 0; i < made.rotary / 2; i++) {
        double wavelength = 6.283185307179586 * pow(made.base, 2 * (double)i / (double)made.rotary);
        double smooth = fmax(0, fmin(1, (original / wavelength - 1) / (4 - 1)));
        made.divisor[i] = 1 / ((1 - smooth) / factor + smooth);
    }
}

static void stretch_proportional(double factor, double original) {
    for (size_t i = 0; i < made.rotary / 2; i++) {
        made.divisor[i] = i < made.rotary / 8 ? 1 : INFINITY;
    }
    (void)factor, (void)original;
}

/* Lists that rise, as those that were published do. */
static void stretch_longrope(double factor, double original) {
    double divisor = 1;
    for (size_t i = 0; i < made.rotary / 2; i++) {
        made.divisor[i] = divisor;
        divisor += floor(100 * factor * identify_uniform()) / 100;
    }
    made.factor = original > 8000 ? 1.19 : 1;
}

static void (*const stretches[])(double factor, double original) = {
    NULL, stretch_yarn, stretch_llama3, stretch_proportional, stretch_longrope,
};

static void some_stretch(void) {
    static const double factors[] = {2, 4, 8, 16, 32, 40}, originals[] = {2048, 4096, 8192, 32768};
    static const double bases[] = {10000, 10000, 500000, 1e6, 150000};
    static const size_t widths[] = {32, 64, 96, 128};
    static const size_t rows[] = {64, 100, 200};
    made.rotary = made.width = PICK(widths);
    made.rows = PICK(rows);
    made.base = PICK(bases);
    made.placed = made.clockwise = false;
    made.scale = made.factor = 1;
    made.offset = 0;
    for (size_t i = 0; i < made.rows; i++) {
        made.p[i] = (double)i;
    }
    made.stretch = 1 + (int)pick(COUNT(stretches) - 1);
    double factor = PICK(factors), original = PICK(originals);
    stretches[made.stretch](factor, original);
}

static void some_trig(bool stretched) {
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
    if (stretched) {
        some_stretch();
    }
    make_trig();
}

static void some_turned(bool stretched) {
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
    if (stretched) {
        some_stretch();
        made.rows = made.rows * made.heads * made.width > MOST ? MOST / made.heads / made.width : made.rows;
    }
    make_turned();
}

void identify_some_table(size_t k) {
    size_t of = k % 20;
    made.kind = ABSOLUTE;
    made.copies = 0;
    if (of < 10) {
        some_vectors(false);
    } else if (of < 12) {
        some_vectors(true);
    } else if (of < 16) {
        some_trig(of >= 14);
    } else {
        some_turned(of >= 18);
    }
}

/* ---- The verdict --------------------------------------------------------------------------------------- */

static struct pe_tensor tensor_of(struct identify_ground *g, const double *values, double noise) {
    size_t n = made.rows * made.items;
    static double noisy[MOST];
    struct pe_tensor tensor = {.rank = 2, .dim = {made.rows, made.items}, .dtype = made.dtype};
    bool turn = made.kind == TURNED && made.heads > 1, first = turn && made.heads_first;
    for (size_t i = 0; i < n; i++) {
        size_t row = i / made.items, head = i % made.items / made.width, column = i % made.width;
        noisy[first ? (head * made.rows + row) * made.width + column : i] =
            values[i] + noise * identify_normal();
    }
    if (turn) {
        tensor.rank = 3;
        tensor.dim[0] = first ? made.heads : made.rows;
        tensor.dim[1] = first ? made.rows : made.heads;
        tensor.dim[2] = made.width;
    }
    tensor.data = pe_arena_array(g->arena, n, pe_dtype_size(made.dtype), &g->err);
    pe_dtype_store(made.dtype, noisy, n, tensor.data);
    return tensor;
}

void identify_ask(struct identify_ground *g) {
    struct pe_positions at = {.length = made.rows, .axes = 1, .list = made.p};
    struct pe_tensor first = tensor_of(g, made.clean, made.noise), second;
    struct pe_identify_args args = {.size = sizeof args, .positions = made.placed ? &at : NULL};
    if (made.kind == ABSOLUTE) {
        args.tensor = &first;
    } else {
        second = tensor_of(g, made.other, made.kind == TRIG ? made.noise : 0);
        args.cos = made.kind == TRIG ? &first : NULL;
        args.sin = made.kind == TRIG ? &second : NULL;
        args.after = made.kind == TURNED ? &first : NULL;
        args.before = made.kind == TURNED ? &second : NULL;
    }
    ck_assert_msg(pe_identify_open(g->arena, &g->result, &args, &g->err) == 0, "%s: %s", g->err.path,
                  g->err.text);
}

/* A parameter of a spec, as a number; choices by their value. */
double identify_number(const struct pe_spec *spec, const char *name) {
    const struct pe_field *row = pe_field_find(spec->encoding->fields, spec->encoding->n_fields, name);
    const char *at = (const char *)spec->params + row->offset;
    return row->kind == PE_KIND_REAL  ? *(const double *)(const void *)at
           : row->kind == PE_KIND_INT ? (double)*(const int64_t *)(const void *)at
                                      : (double)*(const int *)(const void *)at;
}

/* The largest distance of the candidate's own table from the clean one. */
double identify_distance(struct identify_ground *g, const struct pe_identify_candidate *candidate) {
    static double values[MOST], shifted[400];
    struct pe_plan *plan;
    struct pe_positions at = {.length = made.rows, .axes = 1, .list = shifted};
    double most = 0;
    for (size_t i = 0; i < made.rows; i++) {
        shifted[i] = made.p[i] + candidate->shift;
    }
    ck_assert(!pe_plan_open(&plan, &candidate->encoding, &g->err));
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
        /* Neighbouring columns that do not turn are as good as those behind the ones that do. */
        bool fewer = made.kind == TURNED && !made.halves && n < made.rotary / 2;
        if (n != made.rotary / 2 && !fewer) {
            pe_plan_close(plan);
            return INFINITY;
        }
        pe_rotary_fill(&rows, 0, made.rows, cosine, sine);
        for (size_t i = 0; i < made.rows * made.rotary / 2; i++) {
            size_t row = i / (made.rotary / 2), pair = i % (made.rotary / 2);
            double angle = turn_of(row, pair), c = pair < n ? cosine[row * n + pair] : 1;
            double s = pair < n ? sine[row * n + pair] : 0;
            most = fmax(most, fabs(candidate->factor * c - made.factor * cos(angle)));
            most = fmax(most, fabs(candidate->factor * s - made.factor * sin(angle)));
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
    return identify_number(&candidate->encoding, "layout") == (halves ? 1 : 2);
}

const char *identify_described(void) {
    static char text[400];
    snprintf(
        text, sizeof text,
        "kind %d [%zu, %zu] halves %d cos_first %d minus_one %d zero %d base %g scale %g offset %g factor %g "
        "padding %g mistake %d stretch %d rotary %zu copies %zu clockwise %d %s noise %g placed %d last %g",
        made.kind, made.rows, made.width, made.halves, made.cos_first, made.minus_one, made.zero_column,
        made.base, made.scale, made.offset, made.factor, made.padding, made.exponents, made.stretch,
        made.rotary, made.copies, made.clockwise, pe_dtype_name(made.dtype), made.noise, made.placed,
        made.p[made.rows - 1]);
    return text;
}

bool identify_is_right(struct identify_ground *g) {
    static const double eps[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 1e-9, [PE_DTYPE_F32] = 1e-7, [PE_DTYPE_F16] = 5e-4, [PE_DTYPE_BF16] = 4e-3};
    const struct pe_identify_candidate *first = &g->result.candidates[0];
    if (g->result.n == 0) {
        return false;
    }
    if (made.exponents) {
        return first->mistake && strstr(first->mistake, mistakes[made.exponents].says);
    }
    /* The noise of an angle is that of a vector over its length. */
    double allowed = (made.kind == TURNED ? 5 : 3) * made.noise + 2 * eps[made.dtype];
    return strcmp(first->encoding.encoding->type, made.kind == ABSOLUTE ? "sinusoidal" : "rope") == 0 &&
           layout_is_right(first) && identify_distance(g, first) <= allowed;
}
