/* SPDX-License-Identifier: MIT
 *
 * exact [n] [seed] [values]: compares sinusoids, and rotations (exact_rope.c), with MPFR and counts what is not
 * rounded right; of each magnitude of position so many values from each instruction set (exact_wave.c).
 *
 * The reference shares nothing with the library: the frequency is a power in 640 bits, the position is
 * scale*p + offset in 4096 bits, and MPFR rounds sin and cos of their product once to each element type,
 * subnormals included. It knows an encoding by its documentation only: which pair and which function a column
 * holds. The library is called as a user would, through posenc.h.
 *
 *     random      n positions in random encodings: all layouts, orders, denominators, odd rules, several
 * bases near zero   positions whose angle nearly is a multiple of a quarter turn: the denominators below 2^53
 * of the continued fractions of 2*omega/pi, and 2 and 3 times these
 *
 * float32, float16 and bfloat16 must have the very bits of the reference, float64 must be within 1 ulp.
 */
#include "exact.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREC_FREQUENCY 640
#define PREC_POSITION  4096

/* ---- Random numbers ------------------------------------------------------------------------------------ */

uint64_t random_bits(struct random *r) {
    return random_next(&r->state);
}

size_t random_below(struct random *r, size_t n) {
    return (size_t)(random_bits(r) % n);
}

/* ---- One encoding under test --------------------------------------------------------------------------- */

struct setup {
    int d, halves, cos_first, minus_one, zero_column;
    double base, scale, offset;
    bool padded;
    double padding;
};

struct bench {
    struct setup setup;
    struct pe_arena *arena;
    struct pe_plan *plan;
    void *row;
    struct counts counts;
    mpfr_t frequency, angle, scratch, position;
};

static void fail(const struct pe_error *err) {
    fprintf(stderr, "exact: %s: %s\n", err->path, err->text);
    abort();
}

static void set_number(struct bench *b, struct pe_spec *spec, const char *name, double value,
                       struct pe_error *err) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    if (pe_spec_set(b->arena, spec, name, text, err)) {
        fail(err);
    }
}

static void set_choice(struct bench *b, struct pe_spec *spec, const char *name, const char *value,
                       struct pe_error *err) {
    if (pe_spec_set(b->arena, spec, name, value, err)) {
        fail(err);
    }
}

static void bench_open(struct bench *b, const struct setup *setup) {
    struct pe_error err = {0};
    struct pe_spec spec;
    b->setup = *setup;
    b->arena = pe_arena_open((size_t)1 << 22, NULL, &err);
    if (!b->arena || pe_spec_init(b->arena, &spec, "sinusoidal", &err)) {
        fail(&err);
    }
    set_number(b, &spec, "d_model", setup->d, &err);
    set_number(b, &spec, "base", setup->base, &err);
    set_number(b, &spec, "position_scale", setup->scale, &err);
    set_number(b, &spec, "offset", setup->offset, &err);
    set_choice(b, &spec, "layout", setup->halves ? "halves" : "interleaved", &err);
    set_choice(b, &spec, "order", setup->cos_first ? "cos_sin" : "sin_cos", &err);
    set_choice(b, &spec, "denominator", setup->minus_one ? "half_minus_one" : "half", &err);
    set_choice(b, &spec, "odd",
               setup->d % 2 == 0    ? "reject"
               : setup->zero_column ? "zero"
                                    : "truncate",
               &err);
    if (setup->padded) {
        set_number(b, &spec, "padding_idx", setup->padding, &err);
    }
    b->row = pe_arena_alloc(b->arena, (size_t)setup->d * 8, &err);
    if (!b->row || pe_plan_open(&b->plan, &spec, &err)) {
        fail(&err);
    }
}

static void bench_close(struct bench *b) {
    pe_plan_close(b->plan);
    pe_arena_close(b->arena);
}

/* ---- The reference ------------------------------------------------------------------------------------- */

/* Which pair and function a column holds; false for the zero column. */
static bool column_of(const struct setup *s, int column, int *pair, bool *is_cos) {
    int w = s->zero_column && s->d % 2 ? s->d - 1 : s->d, first = (w + 1) / 2;
    if (column >= w) {
        return false;
    }
    bool second = s->halves ? column >= first : column % 2 == 1;
    *pair = !s->halves ? column / 2 : second ? column - first : column;
    *is_cos = second != (s->cos_first != 0);
    return true;
}

/* omega = base^(-2i/w) or base^(-2i/(w-2)) into b->frequency. */
static void reference_frequency(struct bench *b, int pair) {
    const struct setup *s = &b->setup;
    long w = s->zero_column && s->d % 2 ? s->d - 1 : s->d;
    mpfr_set_ui(b->frequency, 1, MPFR_RNDN);
    if (pair == 0) {
        return;
    }
    mpfr_set_si(b->scratch, -2L * pair, MPFR_RNDN);
    mpfr_div_si(b->scratch, b->scratch, s->minus_one ? w - 2 : w, MPFR_RNDN);
    mpfr_set_d(b->frequency, s->base, MPFR_RNDN);
    mpfr_pow(b->frequency, b->frequency, b->scratch, MPFR_RNDN);
}

/* x = scale*p + offset into b->position, without rounding. */
static void reference_position(struct bench *b, double p) {
    int rounded = mpfr_set_d(b->position, p, MPFR_RNDN);
    rounded |= mpfr_mul_d(b->position, b->position, b->setup.scale, MPFR_RNDN);
    rounded |= mpfr_add_d(b->position, b->position, b->setup.offset, MPFR_RNDN);
    if (rounded) {
        fprintf(stderr, "exact: the reference position was rounded\n");
        abort();
    }
}

static const struct {
    int bits, exponent_min, exponent_max; /* MPFR's: |v| in [2^(e-1), 2^e); the minimum with subnormals */
} formats[PE_DTYPE_COUNT] = {
    [PE_DTYPE_F64] = {53, -1073, 1024},
    [PE_DTYPE_F32] = {24, -148, 128},
    [PE_DTYPE_F16] = {11, -23, 16},
    [PE_DTYPE_BF16] = {8, -132, 128},
};

int exact_bits(enum pe_dtype dtype) {
    return formats[dtype].bits;
}

double exact_number(mpfr_ptr v, int ternary, enum pe_dtype dtype) {
    mpfr_exp_t low = mpfr_get_emin(), high = mpfr_get_emax();
    mpfr_set_emin(formats[dtype].exponent_min);
    mpfr_set_emax(formats[dtype].exponent_max);
    ternary = mpfr_check_range(v, ternary, MPFR_RNDN);
    mpfr_subnormalize(v, ternary, MPFR_RNDN);
    double value = mpfr_get_d(v, MPFR_RNDN);
    mpfr_set_emin(low);
    mpfr_set_emax(high);
    return value;
}

/* sin or cos of b->angle, rounded once to the element type. */
static double reference_value(struct bench *b, enum pe_dtype dtype, bool is_cos) {
    mpfr_t v;
    mpfr_init2(v, formats[dtype].bits);
    int ternary = is_cos ? mpfr_cos(v, b->angle, MPFR_RNDN) : mpfr_sin(v, b->angle, MPFR_RNDN);
    double value = exact_number(v, ternary, dtype);
    mpfr_clear(v);
    return value;
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

/* The distance of two doubles in units of the last place, by their order as integers. */
static double ulps(double a, double b) {
    int64_t i, j;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    i = i < 0 ? INT64_MIN - i : i;
    j = j < 0 ? INT64_MIN - j : j;
    return i > j ? (double)((uint64_t)i - (uint64_t)j) : (double)((uint64_t)j - (uint64_t)i);
}

static bool same_bits(double a, double b) {
    uint64_t i, j;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    return i == j;
}

bool exact_compare(struct counts *counts, enum pe_dtype dtype, double got, double want) {
    double distance = dtype == PE_DTYPE_F64 ? ulps(got, want) : 0;
    bool right = dtype == PE_DTYPE_F64 ? distance <= 1 : same_bits(got, want);
    counts->checked[dtype]++;
    counts->worst = fmax(counts->worst, distance);
    return !right && counts->wrong[dtype]++ < 5;
}

static void complain(const struct bench *b, double p, int column, enum pe_dtype dtype, double got,
                     double want) {
    const struct setup *s = &b->setup;
    printf("%s d=%d base=%.17g %s %s %s%s scale=%.17g offset=%.17g: position %.17g column %d is %a, must be "
           "%a\n",
           pe_dtype_name(dtype), s->d, s->base, s->halves ? "halves" : "interleaved",
           s->cos_first ? "cos_sin" : "sin_cos", s->minus_one ? "half_minus_one" : "half",
           s->zero_column ? " zero" : "", s->scale, s->offset, p, column, got, want);
}

static void compare(struct bench *b, double p, int column, enum pe_dtype dtype, double want) {
    double got;
    const char *at = (const char *)b->row + (size_t)column * pe_dtype_size(dtype);
    pe_dtype_load(dtype, at, 1, &got);
    if (exact_compare(&b->counts, dtype, got, want)) {
        complain(b, p, column, dtype, got, want);
    }
}

/* One column of one position in all element types; b->frequency is that of the column's pair. */
static void check_column(struct bench *b, double p, int column) {
    struct pe_positions positions = {.length = 1, .axes = 1, .list = &p};
    int pair = 0;
    bool is_cos = false, zero = !column_of(&b->setup, column, &pair, &is_cos);
    reference_position(b, p);
    zero = zero || (b->setup.padded && mpfr_cmp_d(b->position, b->setup.padding) == 0);
    mpfr_mul(b->angle, b->position, b->frequency, MPFR_RNDN);
    if (mpfr_zero_p(b->angle)) { /* sin 0 is +0, whatever the sign of the zero */
        mpfr_set_zero(b->angle, 1);
    }
    for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        pe_encode_rows(b->plan, &positions, dtype, 0, 1, b->row);
        compare(b, p, column, dtype, zero ? 0 : reference_value(b, dtype, is_cos));
    }
}

/* ---- Random positions ---------------------------------------------------------------------------------- */

static const double bases[] = {10000, 500000, 10, 10000, 1e6, 1, 2, 65536, 1.5, 123.456, 1e12, 1e300};
static const double scales[] = {1,    1,       1,       1,   -1, 1000, 0.5, 0.1, 6.283185307179586,
                                1e-9, 1 / 3.0, 1048577, 1e15};
static const double offsets[] = {0, 0, 0, 2, -7, 0.25, 0.1, 1e-30, 4503599627370497.5, 1e9};
static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 64, 65, 128, 127};
static const int wide_widths[] = {512, 513, 1023, 65536}; /* dear: every row is computed whole */

static struct setup random_setup(struct random *r) {
    struct setup s = {.d = widths[random_below(r, sizeof widths / sizeof *widths)],
                      .base = bases[random_below(r, sizeof bases / sizeof *bases)],
                      .scale = scales[random_below(r, sizeof scales / sizeof *scales)],
                      .offset = offsets[random_below(r, sizeof offsets / sizeof *offsets)]};
    uint64_t bits = random_bits(r);
    if ((bits >> 9 & 127) == 0) {
        s.d = wide_widths[random_below(r, sizeof wide_widths / sizeof *wide_widths)];
    }
    s.halves = bits & 1;
    s.cos_first = bits >> 1 & 1;
    s.minus_one = bits >> 2 & 1;
    s.zero_column = (bits >> 3 & 1) && s.d % 2;
    s.padded = (bits >> 4 & 7) == 0;
    s.padding = (double)(bits >> 7 & 3);
    return s;
}

double random_position(struct random *r) {
    uint64_t bits = random_bits(r) >> 11;
    double sign = random_bits(r) & 1 ? -1 : 1;
    switch (random_below(r, 8)) {
    case 0:
        return sign * (double)(bits & 15);
    case 1:
        return sign * (double)(bits & 1023);
    case 2:
        return sign * ldexp((double)bits, -(int)random_below(r, 53));
    case 3:
        return sign * ldexp((double)bits, -(int)random_below(r, 1074));
    case 4: /* halfway between two float32, float16 or bfloat16, and tiny: sin x rounds down */
        return sign * ldexp((double)(2 * (bits & 127) + 257), -(int)random_below(r, 160));
    case 5:
        return sign * ldexp((double)(2 * (bits & 0x7fffff) + 16777217), -(int)random_below(r, 180));
    default:
        return sign * (double)(bits >> random_below(r, 53));
    }
}

static void check_random(struct bench *b, struct random *r, long n) {
    while (n > 0) {
        struct setup s = random_setup(r);
        bench_open(b, &s);
        for (int columns = 0; columns < 4 && n > 0; columns++) {
            int column = (int)random_below(r, (size_t)s.d), pair;
            bool is_cos;
            if (column_of(&s, column, &pair, &is_cos)) {
                reference_frequency(b, pair);
            }
            for (int i = 0; i < 8 && n > 0; i++, n--) {
                check_column(b, random_position(r), column);
            }
        }
        bench_close(b);
    }
}

/* ---- Positions next to a zero ---------------------------------------------------------------------------
 */

/* |p| * omega is nearly a multiple of pi/2 where p is the denominator of a convergent of 2*omega/pi. */
int exact_convergents(mpfr_srcptr frequency, double denominators[MAX_CONVERGENTS]) {
    mpfr_t rest, whole;
    double q = 0, q_next = 1;
    int n = 0;
    mpfr_inits2(PREC_FREQUENCY, rest, whole, (mpfr_ptr)NULL);
    mpfr_const_pi(rest, MPFR_RNDN);
    mpfr_div(rest, frequency, rest, MPFR_RNDN);
    mpfr_mul_ui(rest, rest, 2, MPFR_RNDN);
    for (;;) {
        mpfr_floor(whole, rest);
        mpfr_sub(rest, rest, whole, MPFR_RNDN);
        if (mpfr_zero_p(rest)) {
            break;
        }
        mpfr_ui_div(rest, 1, rest, MPFR_RNDN);
        mpfr_floor(whole, rest);
        double larger = mpfr_get_d(whole, MPFR_RNDN) * q_next + q; /* exact below 2^53 */
        if (!(larger <= PE_POSITION_MAX)) {
            break;
        }
        q = q_next;
        q_next = larger;
        denominators[n++] = larger;
    }
    mpfr_clears(rest, whole, (mpfr_ptr)NULL);
    return n;
}

static void check_convergents(struct bench *b, int pair, int sin_column, int cos_column) {
    double denominators[MAX_CONVERGENTS];
    reference_frequency(b, pair);
    int n = exact_convergents(b->frequency, denominators);
    for (int i = 0; i < n; i++) {
        for (int multiple = 1; multiple <= 3 && multiple * denominators[i] <= PE_POSITION_MAX; multiple++) {
            check_column(b, multiple * denominators[i], sin_column);
            check_column(b, -multiple * denominators[i], cos_column);
        }
    }
}

static void check_near_zero(struct bench *b) {
    static const double near_bases[] = {10000, 500000, 10};
    for (size_t i = 0; i < sizeof near_bases / sizeof *near_bases; i++) {
        for (int minus_one = 0; minus_one < 2; minus_one++) {
            struct setup s = {.d = 128, .base = near_bases[i], .minus_one = minus_one, .scale = 1};
            bench_open(b, &s);
            for (int pair = 0; pair < 64; pair++) {
                check_convergents(b, pair, 2 * pair, 2 * pair + 1);
            }
            bench_close(b);
        }
    }
}

int main(int argc, char **argv) {
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    struct random r = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    long values = argc > 3 ? strtol(argv[3], NULL, 10) : n;
    struct bench b = {0};
    long wrong = 0;
    mpfr_inits2(PREC_FREQUENCY, b.frequency, b.scratch, (mpfr_ptr)NULL);
    mpfr_init2(b.position, PREC_POSITION);
    mpfr_init2(b.angle, PREC_FREQUENCY);
    check_near_zero(&b);
    check_random(&b, &r, n);
    exact_rope(&b.counts, &r, n / 2);
    exact_wave(&b.counts, &r, values);
    for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        printf("%-8s %ld values, %ld wrong\n", pe_dtype_name(dtype), b.counts.checked[dtype],
               b.counts.wrong[dtype]);
        wrong += b.counts.wrong[dtype];
    }
    printf("float64 is at most %.0f ulp from the rounded value\n", b.counts.worst);
    mpfr_clears(b.frequency, b.scratch, b.position, b.angle, (mpfr_ptr)NULL);
    mpfr_free_cache();
    return wrong != 0;
}
