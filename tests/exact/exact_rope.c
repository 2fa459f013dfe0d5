/* SPDX-License-Identifier: MIT
 *
 * Rotary encodings against MPFR: every scaling at random factors, lengths, bases and widths. The reference
 * has frequencies and attention factors in 640 bits by the formulas of the projects, the sine or cosine of
 * position times frequency in 700, and their product, which is rounded once.
 */
#include "exact.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREC      640
#define PREC_WIDE 704
#define MAX_PAIRS 64

enum { DEFAULT, LINEAR, NTK, DYNAMIC, PROPORTIONAL, YARN, LONGROPE, LLAMA3, XPOS, N_KINDS };
static const char *const kinds[] = {"default", "linear",   "ntk",    "dynamic", "proportional",
                                    "yarn",    "longrope", "llama3", "xpos"};

struct setup {
    int kind, d, truncate;
    double base, factor, original, seq_len, part, divisor[MAX_PAIRS];
    char text[2000]; /* as parameters */
};

struct reference {
    mpfr_t frequency[MAX_PAIRS], gain, a, b, c;
};

/* ---- Setups -------------------------------------------------------------------------------------------- */

static void add(struct setup *s, const char *name, double value) {
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "%s=%.17g ", name, value);
}

static void add_list(struct setup *s, const char *name) {
    size_t at = strlen(s->text);
    at += (size_t)snprintf(s->text + at, sizeof s->text - at, "%s=", name);
    for (int i = 0; i < s->d / 2; i++) {
        at += (size_t)snprintf(s->text + at, sizeof s->text - at, "%s%.17g", i ? "," : "", s->divisor[i]);
    }
    snprintf(s->text + at, sizeof s->text - at, " ");
}

static void add_scaling(struct setup *s) {
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "scaling.rope_type=%s ", kinds[s->kind]);
    if (s->kind != DEFAULT) {
        add(s, "scaling.factor", s->factor);
    }
    if (s->kind == PROPORTIONAL) {
        add(s, "scaling.partial_rotary_factor", s->part);
    } else if (s->kind >= DYNAMIC) {
        add(s, "scaling.original_max_position_embeddings", s->original);
    }
    if (s->kind == YARN && !s->truncate) {
        at = strlen(s->text);
        snprintf(s->text + at, sizeof s->text - at, "scaling.truncate=false ");
    } else if (s->kind == LONGROPE) {
        add_list(s, "scaling.short_factor");
        add_list(s, "scaling.long_factor");
    } else if (s->kind == LLAMA3) {
        add(s, "scaling.low_freq_factor", 1);
        add(s, "scaling.high_freq_factor", 4);
    }
}

static struct setup setup_make(struct random *r) {
    static const double bases[] = {10000, 500000, 1e6, 12345.678, 150000, 2},
                        lengths[] = {64, 2048, 8192, 131072};
    static const double factors[] = {2, 4, 8, 32, 40, 1.5, 10.7};
    static const int widths[] = {8, 10, 16, 32};
    struct setup s = {.kind = (int)random_below(r, N_KINDS), .d = widths[random_below(r, 4)]};
    s.base = bases[random_below(r, 6)];
    s.factor = factors[random_below(r, 7)];
    s.original = lengths[random_below(r, 4)];
    s.seq_len = (double)(1 + random_below(r, 400000));
    s.part = 0.25 * (double)(1 + random_below(r, 4));
    s.truncate = (int)random_below(r, 2);
    for (int i = 0; i < s.d / 2; i++) {
        s.divisor[i] = 1 + (double)random_below(r, 64000) / 1000;
    }
    snprintf(s.text, sizeof s.text, "layout=halves ");
    add(&s, "head_dim", s.d);
    add(&s, "base", s.base);
    if (s.kind == DYNAMIC || s.kind == LONGROPE) {
        add(&s, "seq_len", s.seq_len);
    }
    if (s.kind == XPOS) {
        add(&s, "xpos.scale_base", 512);
    } else {
        add_scaling(&s);
    }
    return s;
}

static struct pe_plan *plan_open(struct pe_arena *arena, const struct setup *s) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    char name[60], value[1800];
    int used = 0;
    if (pe_spec_init(arena, &spec, "rope", &err) == PE_OK) {
        for (const char *at = s->text; sscanf(at, " %59[^=]=%1799s%n", name, value, &used) == 2; at += used) {
            if (pe_spec_set(arena, &spec, name, value, &err)) {
                break;
            }
        }
    }
    if (pe_plan_open(&plan, &spec, &err)) {
        fprintf(stderr, "exact: %s: %s: %s\n", s->text, err.path, err.text);
        abort();
    }
    return plan;
}

/* ---- The reference ------------------------------------------------------------------------------------- */

/* base^(-2i/d), the base times stretch^(d/(d-2)) where that is not 1. */
static void ladder(struct reference *m, const struct setup *s, mpfr_srcptr stretch) {
    mpfr_set_d(m->b, s->base, MPFR_RNDN);
    if (mpfr_cmp_ui(stretch, 1) != 0) {
        mpfr_set_si(m->c, s->d, MPFR_RNDN);
        mpfr_div_si(m->c, m->c, s->d - 2, MPFR_RNDN);
        mpfr_pow(m->c, stretch, m->c, MPFR_RNDN);
        mpfr_mul(m->b, m->b, m->c, MPFR_RNDN);
    }
    for (int i = 0; i < s->d / 2; i++) {
        mpfr_set_si(m->c, -2L * i, MPFR_RNDN);
        mpfr_div_si(m->c, m->c, s->d, MPFR_RNDN);
        mpfr_pow(m->frequency[i], m->b, m->c, MPFR_RNDN);
    }
}

/* d*ln(L/(2 pi turns))/(2 ln base) into out. */
static void pair_of_turns(struct reference *m, const struct setup *s, unsigned turns, mpfr_ptr out) {
    mpfr_const_pi(out, MPFR_RNDN);
    mpfr_mul_ui(out, out, 2 * turns, MPFR_RNDN);
    mpfr_d_div(out, s->original, out, MPFR_RNDN);
    mpfr_log(out, out, MPFR_RNDN);
    mpfr_set_d(m->c, s->base, MPFR_RNDN);
    mpfr_log(m->c, m->c, MPFR_RNDN);
    mpfr_mul_ui(m->c, m->c, 2, MPFR_RNDN);
    mpfr_div(out, out, m->c, MPFR_RNDN);
    mpfr_mul_si(out, out, s->d, MPFR_RNDN);
}

/* frequency * (1 - r + r/f), into the frequency. */
static void mix(struct reference *m, mpfr_ptr frequency, mpfr_ptr r, double factor) {
    if (mpfr_sgn(r) < 0) {
        mpfr_set_ui(r, 0, MPFR_RNDN);
    } else if (mpfr_cmp_ui(r, 1) > 0) {
        mpfr_set_ui(r, 1, MPFR_RNDN);
    }
    mpfr_div_d(m->c, r, factor, MPFR_RNDN);
    mpfr_ui_sub(r, 1, r, MPFR_RNDN);
    mpfr_add(r, r, m->c, MPFR_RNDN);
    mpfr_mul(frequency, frequency, r, MPFR_RNDN);
}

static void yarn(struct reference *m, const struct setup *s) {
    mpfr_t low, high;
    mpfr_inits2(PREC, low, high, (mpfr_ptr)NULL);
    pair_of_turns(m, s, 32, low);
    pair_of_turns(m, s, 1, high);
    if (s->truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0) {
        mpfr_set_ui(low, 0, MPFR_RNDN);
    }
    if (mpfr_cmp_si(high, s->d - 1) > 0) {
        mpfr_set_si(high, s->d - 1, MPFR_RNDN);
    }
    mpfr_sub(high, high, low, MPFR_RNDN);
    if (mpfr_zero_p(high)) {
        mpfr_set_ui(high, 1, MPFR_RNDN);
        mpfr_div_ui(high, high, 1000, MPFR_RNDN);
    }
    for (int i = 0; i < s->d / 2; i++) {
        mpfr_si_sub(m->a, i, low, MPFR_RNDN);
        mpfr_div(m->a, m->a, high, MPFR_RNDN);
        mix(m, m->frequency[i], m->a, s->factor);
    }
    mpfr_set_d(m->gain, s->factor, MPFR_RNDN);
    mpfr_log(m->gain, m->gain, MPFR_RNDN);
    mpfr_div_ui(m->gain, m->gain, 10, MPFR_RNDN);
    mpfr_add_ui(m->gain, m->gain, 1, MPFR_RNDN);
    mpfr_clears(low, high, (mpfr_ptr)NULL);
}

/* L*w/(2 pi) turns: kept above 4, divided below 1. */
static void llama3(struct reference *m, const struct setup *s) {
    for (int i = 0; i < s->d / 2; i++) {
        mpfr_const_pi(m->a, MPFR_RNDN);
        mpfr_mul_ui(m->a, m->a, 2, MPFR_RNDN);
        mpfr_div(m->a, m->frequency[i], m->a, MPFR_RNDN);
        mpfr_mul_d(m->a, m->a, s->original, MPFR_RNDN);
        mpfr_ui_sub(m->a, 4, m->a, MPFR_RNDN); /* 1 - (x - 1)/(4 - 1) = (4 - x)/3 is the part divided */
        mpfr_div_ui(m->a, m->a, 3, MPFR_RNDN);
        mix(m, m->frequency[i], m->a, s->factor);
    }
}

static void longrope(struct reference *m, const struct setup *s) {
    mpfr_set_d(m->gain, s->factor, MPFR_RNDN);
    mpfr_log(m->gain, m->gain, MPFR_RNDN);
    mpfr_set_d(m->c, s->original, MPFR_RNDN);
    mpfr_log(m->c, m->c, MPFR_RNDN);
    mpfr_div(m->gain, m->gain, m->c, MPFR_RNDN);
    mpfr_add_ui(m->gain, m->gain, 1, MPFR_RNDN);
    mpfr_sqrt(m->gain, m->gain, MPFR_RNDN);
    for (int i = 0; i < s->d / 2; i++) {
        mpfr_div_d(m->frequency[i], m->frequency[i], s->divisor[i], MPFR_RNDN);
    }
}

static void reference_make(struct reference *m, const struct setup *s) {
    double beyond = fmax(s->seq_len - s->original, 0);
    mpfr_set_ui(m->a, 1, MPFR_RNDN);
    if (s->kind == NTK) {
        mpfr_set_d(m->a, s->factor, MPFR_RNDN);
    } else if (s->kind == DYNAMIC) { /* f*S/L - (f-1) = 1 + f*(S-L)/L */
        mpfr_set_d(m->a, s->factor, MPFR_RNDN);
        mpfr_mul_d(m->a, m->a, beyond, MPFR_RNDN);
        mpfr_div_d(m->a, m->a, s->original, MPFR_RNDN);
        mpfr_add_ui(m->a, m->a, 1, MPFR_RNDN);
    }
    ladder(m, s, m->a);
    mpfr_set_ui(m->gain, 1, MPFR_RNDN);
    for (int i = 0; i < s->d / 2 && (s->kind == LINEAR || s->kind == PROPORTIONAL); i++) {
        mpfr_div_d(m->frequency[i], m->frequency[i], s->factor, MPFR_RNDN);
        if (s->kind == PROPORTIONAL && i >= floor(s->part * s->d / 2)) {
            mpfr_set_ui(m->frequency[i], 0, MPFR_RNDN);
        }
    }
    if (s->kind == YARN) {
        yarn(m, s);
    } else if (s->kind == LLAMA3) {
        llama3(m, s);
    } else if (s->kind == LONGROPE) {
        longrope(m, s);
    }
}

/* zeta_i^(+-p/512), zeta_i = (2i + 0.4d)/(1.4d). */
static void grow(struct reference *m, const struct setup *s, int pair, double p, bool keys) {
    mpfr_set_si(m->gain, 10L * pair + 2L * s->d, MPFR_RNDN);
    mpfr_div_si(m->gain, m->gain, 7L * s->d, MPFR_RNDN);
    mpfr_set_d(m->c, keys ? -p : p, MPFR_RNDN);
    mpfr_div_ui(m->c, m->c, 512, MPFR_RNDN);
    mpfr_pow(m->gain, m->gain, m->c, MPFR_RNDN);
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

/* `value` rounded once. */
static double rounded(mpfr_srcptr value, enum pe_dtype dtype) {
    mpfr_t v;
    mpfr_init2(v, exact_bits(dtype));
    double out = exact_number(v, mpfr_set(v, value, MPFR_RNDN), dtype);
    mpfr_clear(v);
    return out;
}

static void compare(struct counts *counts, const struct setup *s, const struct pe_tensor *got, size_t i,
                    double p, double want) {
    double number;
    pe_dtype_load(got->dtype, (const char *)got->data + i * pe_dtype_size(got->dtype), 1, &number);
    if (exact_compare(counts, got->dtype, number, want)) {
        printf("%s rope %s: position %.17g pair %zu is %a, must be %a\n", pe_dtype_name(got->dtype), s->text,
               p, i, number, want);
    }
}

static void check_pair(struct counts *counts, struct reference *m, const struct setup *s,
                       const struct pe_rotary_result *got, size_t i, double p, bool keys) {
    mpfr_t angle, value;
    mpfr_inits2(PREC_WIDE, angle, value, (mpfr_ptr)NULL);
    if (s->kind == XPOS) {
        grow(m, s, (int)i, p, keys);
    }
    mpfr_mul_d(angle, m->frequency[i], p, MPFR_RNDN);
    mpfr_cos(value, angle, MPFR_RNDN);
    mpfr_mul(value, value, m->gain, MPFR_RNDN);
    compare(counts, s, &got->cos, i, p, rounded(value, got->cos.dtype));
    mpfr_sin(value, angle, MPFR_RNDN);
    mpfr_mul(value, value, m->gain, MPFR_RNDN);
    if (mpfr_zero_p(value)) { /* of position -0 */
        mpfr_set_ui(value, 0, MPFR_RNDN);
    }
    compare(counts, s, &got->sin, i, p, rounded(value, got->sin.dtype));
    compare(counts, s, &got->inv_freq, i, 0, rounded(m->frequency[i], got->sin.dtype));
    mpfr_clears(angle, value, (mpfr_ptr)NULL);
}

static long check_position(struct counts *counts, struct reference *m, const struct setup *s,
                           const struct pe_plan *plan, double p, bool keys) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 16, NULL, &err);
    struct pe_positions at = {.length = 1, .axes = 1, .list = &p};
    long n = 0;
    for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        struct pe_work work;
        struct pe_rotary_result got;
        struct pe_rotary_args args = {.size = sizeof args, .plan = plan, .positions = &at, .keys = keys};
        args.dtype = dtype;
        args.outputs = PE_ROTARY_COS | PE_ROTARY_SIN | PE_ROTARY_INV_FREQ;
        if (pe_rotary_open(arena, &work, &got, &args, &err)) {
            break; /* xPos: too far for the type */
        }
        pe_work_run(&work);
        for (size_t i = 0; i < (size_t)s->d / 2; i++, n++) {
            check_pair(counts, m, s, &got, i, p, keys);
        }
    }
    pe_arena_close(arena);
    return n;
}

void exact_rope(struct counts *counts, struct random *r, long n) {
    struct reference m;
    mpfr_inits2(PREC, m.gain, m.a, m.b, m.c, (mpfr_ptr)NULL);
    for (int i = 0; i < MAX_PAIRS; i++) {
        mpfr_init2(m.frequency[i], PREC);
    }
    while (n > 0) {
        struct pe_error err = {0};
        struct setup s = setup_make(r);
        struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
        struct pe_plan *plan = plan_open(arena, &s);
        reference_make(&m, &s);
        for (int i = 0; i < 8; i++) {
            double p = random_position(r);
            p = s.kind == XPOS ? fmod(p, 60000) : p;
            n -= check_position(counts, &m, &s, plan, p, random_below(r, 2) == 1);
        }
        pe_plan_close(plan);
        pe_arena_close(arena);
    }
    mpfr_clears(m.gain, m.a, m.b, m.c, (mpfr_ptr)NULL);
    for (int i = 0; i < MAX_PAIRS; i++) {
        mpfr_clear(m.frequency[i]);
    }
}
