/* SPDX-License-Identifier: MIT
 *
 * identify: what is unusual about a table, in words. A remark is a row: it says something, or nothing.
 */
#include "ops/identify.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM 900

struct words {
    char text[ROOM];
    size_t n;
};

static void say(struct words *words, const char *joint, const char *format, ...) PE_PRINTF(3, 4);
static void say(struct words *words, const char *joint, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (words->n && words->n < ROOM - 1) {
        words->n += (size_t)snprintf(words->text + words->n, ROOM - words->n, "%s", joint);
    }
    if (words->n < ROOM - 1) {
        words->n += (size_t)vsnprintf(words->text + words->n, ROOM - words->n, format, list);
    }
    va_end(list);
}

static const char *keep(struct pe_arena *arena, const struct words *words, struct pe_error *err) {
    size_t n = strlen(words->text) + 1;
    char *copy = pe_arena_alloc(arena, n, err);
    if (copy) {
        memcpy(copy, words->text, n);
    }
    return copy;
}

struct subject {
    const struct pe_identify *op;
    const struct pe_trial *trial;
    const struct pe_finding *finding;
    double base, scale, offset;
    bool rotary;
};

#define JOINT "; "

/* No ladder says what it is. */
static bool subject_is_other(const struct pe_trial *trial) {
    return trial->naive || trial->grid || trial->nerf;
}

/* ---- Remarks ------------------------------------------------------------------------------------------- */

static void of_shape(const struct subject *s, struct words *out) {
    const struct pe_shape *shape = s->trial->shape;
    if (!shape || s->rotary) {
        return;
    }
    if (shape->halves) {
        say(out, JOINT, "halves layout, not interleaved: all %s, then all %s",
            shape->cos_first ? "cosines" : "sines", shape->cos_first ? "sines" : "cosines");
    } else if (shape->cos_first) {
        say(out, JOINT, "cosines come before sines");
    }
    if (shape->minus_one) {
        say(out, JOINT, "the denominator is d/2 - 1, not d/2");
    }
    if (shape->mistake) {
        say(out, JOINT, "%s", shape->mistake);
    }
    if (s->trial->width < s->op->width) {
        say(out, JOINT, "the last column is zeros, as the width is odd");
    }
}

static void of_grid(const struct subject *s, struct words *out) {
    const struct pe_identify_grid *grid = s->trial->grid;
    if (!grid) {
        return;
    }
    if (grid->before) {
        say(out, JOINT, "%zu row%s of zeros stand%s before the grid, as class tokens have them", grid->before,
            grid->before > 1 ? "s" : "", grid->before > 1 ? "" : "s");
    }
    if (fabs(grid->base / 10000 - 1) > 1e-12) {
        say(out, JOINT, "the base is %.10g, not 10000", grid->base);
    }
    if (grid->start != 0) {
        say(out, JOINT, "coordinates start at %.10g, not 0", grid->start);
    }
    if (grid->normalized) {
        say(out, JOINT, "coordinates are divided by the size of the grid and multiplied by %.10g",
            grid->full);
    }
}

static void of_wrap(const struct subject *s, struct words *out) {
    if (s->trial->wrap > 0) {
        say(out, JOINT, "%zu columns hold positions up to %.0f: from %.0f on they begin again at 0",
            s->op->width, s->trial->wrap - 1, s->trial->wrap);
    }
}

static void of_layout(const struct subject *s, struct words *out) {
    if (!s->rotary) {
        return;
    }
    bool halves = s->trial->layout == PE_ROTARY_HALVES;
    if (s->op->kind == PE_IDENTIFY_TRIG && s->op->form == PE_TRIG_HALF) {
        say(out, JOINT, "one column for each pair does not tell whether the layout is halves or interleaved");
    } else {
        say(out, JOINT, "%s", halves ? "halves layout, not interleaved" : "interleaved layout, not halves");
    }
    if (s->trial->width < s->op->width) {
        say(out, JOINT, "only the first %zu of %zu columns turn", s->trial->width, s->op->width);
    }
    if (s->trial->ladder.sign < 0) {
        say(out, JOINT, "pairs turn clockwise: the rotation is transposed, or the sines are negated");
    }
}

/* NTK-aware scaling is another base: base * factor^(d/(d-2)). */
static double ntk_factor(const struct subject *s) {
    static const double factors[] = {2, 3, 4, 8, 10, 16, 32};
    double width = (double)s->trial->width;
    for (size_t i = 0; i < PE_COUNT(factors) && width > 2; i++) {
        if (fabs(s->base / (10000 * pow(factors[i], width / (width - 2))) - 1) < 1e-6) {
            return factors[i];
        }
    }
    return 0;
}

static const struct {
    double base;
    const char *why;
} bases[] = {
    {100, "sqrt(10000): the exponent is i/d in place of 2i/d"},
    {1e8, "10000^2: the exponent is 4i/d in place of 2i/d"},
    {1000, "a zero is missing"},
    {100000, "a zero too many"},
};

static void of_base(const struct subject *s, struct words *out) {
    double ntk = s->rotary ? ntk_factor(s) : 0;
    if (fabs(s->base / 10000 - 1) < 1e-12 || subject_is_other(s->trial) || s->trial->width <= 2) {
        return;
    }
    for (size_t i = 0; i < PE_COUNT(bases) && !s->rotary; i++) {
        if (fabs(s->base / bases[i].base - 1) < 1e-9) {
            say(out, JOINT, "the base is %g, not 10000: %s", s->base, bases[i].why);
            return;
        }
    }
    say(out, JOINT, "the base is %.10g, not 10000", s->base);
    if (ntk > 0) {
        say(out, ": ", "NTK-aware scaling by %g", ntk);
    }
}

static void of_shift(const struct subject *s, struct words *out) {
    double shift = s->rotary || s->trial->naive ? s->trial->shift : s->offset;
    bool whole = fabs(shift - nearbyint(shift)) < 1e-9 && s->op->positions.list == NULL;
    if (whole && shift != 0) {
        double first = s->op->positions.start * (s->rotary ? 1 : s->scale) + shift;
        say(out, JOINT, "positions start at %.10g%s", first, s->op->positions.start == 0 ? ", not 0" : "");
    } else if (fabs(shift) > 1e-12) {
        say(out, JOINT, "%.10g is added to positions", shift);
    }
}

static void of_stretch(const struct subject *s, struct words *out) {
    const struct pe_stretch *stretch = s->trial->stretch;
    if (stretch->type == PE_STRETCH_LONGROPE) {
        say(out, JOINT,
            "the frequencies follow no formula known here: per-pair divisors of base^(2i/d), as longrope or "
            "`freqs` have them, from %.6g to %.6g",
            stretch->divisors[0], stretch->divisors[s->trial->width / 2 - 1]);
    } else if (stretch->type == PE_STRETCH_PROPORTIONAL) {
        say(out, JOINT, "only the first %zu of %zu pairs turn: proportional", stretch->turning,
            s->trial->width / 2);
    } else {
        say(out, JOINT, "the frequencies are scaled: %s, factor %.10g, original context %.10g",
            pe_stretch_name(stretch), stretch->factor, stretch->original);
    }
    if (s->trial->attention > 0) {
        say(out, JOINT, "the attention factor is %.7g", s->trial->attention);
    }
}

static void of_scale(const struct subject *s, struct words *out) {
    if (subject_is_other(s->trial)) {
        return;
    }
    if (s->trial->stretch) {
        of_stretch(s, out);
    } else if (fabs(s->scale - 1) > 1e-12) {
        bool divided = s->scale < 1;
        say(out, JOINT, "positions are %s by %.10g%s", divided ? "divided" : "multiplied",
            divided ? 1 / s->scale : s->scale, s->rotary ? ": linear scaling" : "");
    }
    if (s->trial->ladder.sign < 0 && !s->rotary) {
        say(out, JOINT, "positions count backwards");
    }
}

#define STRETCH_MOST 1000.0 /* of a context, by which one may believe that it was */

static void of_factor(const struct subject *s, struct words *out) {
    double factor = s->trial->factor, root = sqrt((double)s->op->width), stretched = exp((factor - 1) / 0.1);
    bool is_yarn = s->rotary && factor > 1.05 && stretched < STRETCH_MOST &&
                   fabs(stretched - nearbyint(stretched)) < fmin(1e-2 * stretched, 0.02);
    static const char *const what[] = {NULL, "every value", "every cosine and sine", "every turned value"};
    if (fabs(factor - 1) < 1e-12) {
        return;
    }
    say(out, JOINT, "%s is multiplied by %.7g", what[s->op->kind], factor);
    if (fabs(factor / root - 1) < 1e-9) {
        say(out, " ", "= sqrt(d), which is meant for the embeddings");
    } else if (fabs(factor * root - 1) < 1e-9) {
        say(out, " ", "= 1/sqrt(d)");
    } else if (is_yarn) {
        say(out, " ", "= 0.1*ln(%.0f) + 1, the attention factor of YaRN", stretched);
    }
}

static void of_growth(const struct subject *s, struct words *out) {
    const struct pe_xpos *xpos = &s->trial->xpos;
    if (xpos->scale_base > 0) {
        say(out, JOINT,
            "lengths %s with the position, as xPos has it for %s: scale_base %.10g, around position %.10g",
            xpos->keys ? "grow" : "shrink", xpos->keys ? "keys" : "queries", xpos->scale_base, xpos->center);
    }
}

static void of_zeros(const struct subject *s, struct words *out) {
    if (s->finding->n_padding == 1) {
        say(out, JOINT, "row %zu is zeros, as that of padding (padding_idx)", s->finding->padding);
    } else if (s->finding->n_padding > 1) {
        say(out, JOINT, "%zu rows are zeros, from row %zu on, as those of padding", s->finding->n_padding,
            s->finding->padding);
    }
}

static void of_arithmetic(const struct subject *s, struct words *out) {
    if (s->trial->arithmetic->sentence) {
        say(out, JOINT, "%s: error %.2g at position %.10g", s->trial->arithmetic->sentence, s->finding->fault,
            s->finding->fault_position);
    }
    if (s->finding->rounding_shows) {
        say(out, JOINT, "values are rounded to %s", pe_dtype_name(s->op->stored));
    }
    if (s->finding->is_near) {
        say(out, JOINT,
            "something else is different, too: %.2g (root mean square) are left, too much for noise",
            s->finding->miss);
    }
}

static void (*const remarks[])(const struct subject *s, struct words *out) = {
    of_grid,  of_wrap,   of_shape,  of_layout, of_base,       of_shift,
    of_scale, of_growth, of_factor, of_zeros,  of_arithmetic,
};

static struct subject subject_of(const struct pe_identify *op, const struct pe_trial *trial) {
    return (struct subject){.op = op,
                            .trial = trial,
                            .base = exp(trial->ladder.v[PE_LADDER_BASE]),
                            .scale = pe_ladder_scale(&trial->ladder),
                            .offset = trial->ladder.v[PE_LADDER_OFFSET],
                            .rotary = op->kind != PE_IDENTIFY_TABLE};
}

const char *pe_trial_mistake(const struct pe_identify *op, const struct pe_trial *trial,
                             const struct pe_finding *finding, struct pe_error *err) {
    struct subject subject = subject_of(op, trial);
    struct words words = {.n = 0};
    subject.finding = finding;
    for (size_t i = 0; i < PE_COUNT(remarks); i++) {
        remarks[i](&subject, &words);
    }
    return words.n ? keep(op->arena, &words, err) : NULL;
}

/* ---- The name ------------------------------------------------------------------------------------------ */

static void name_of_kind(const struct subject *s, struct words *out) {
    const struct pe_trial *trial = s->trial;
    if (trial->naive) {
        say(out, ", ", "naive %s", trial->naive);
    } else if (trial->nerf) {
        say(out, ", ", "fourier features of nerf");
    } else if (trial->grid) {
        say(out, ", ", "%s, grid of %zu x %zu", trial->grid->combine, trial->grid->rows,
            trial->grid->columns);
    } else {
        say(out, ", ", "%s", trial->xpos.scale_base > 0 ? "xpos" : trial->shape->name);
    }
    if (s->rotary) {
        say(out, " ", "%s", trial->layout == PE_ROTARY_HALVES ? "halves" : "interleaved");
    }
}

static void name_of_ladder(const struct subject *s, struct words *out) {
    const struct pe_stretch *stretch = s->trial->stretch;
    if (s->trial->width > 2 && fabs(s->base / 10000 - 1) > 1e-12) {
        say(out, ", ", "base %.10g", s->base);
    }
    if (s->trial->xpos.scale_base > 0 && s->trial->xpos.scale_base != 512) {
        say(out, ", ", "scale_base %.10g", s->trial->xpos.scale_base);
    }
    if (stretch && stretch->factor != 1) {
        say(out, ", ", "%s scaling by %.10g", pe_stretch_name(stretch), stretch->factor);
    } else if (stretch) {
        say(out, ", ", "%s", pe_stretch_name(stretch));
    } else if (fabs(s->scale - 1) > 1e-12) {
        say(out, ", ", "scale %.10g", s->scale);
    }
}

const char *pe_trial_name(const struct pe_identify *op, const struct pe_trial *trial,
                          const struct pe_finding *finding, struct pe_error *err) {
    const struct subject s = subject_of(op, trial);
    struct words words = {.n = 0};
    name_of_kind(&s, &words);
    if (!subject_is_other(trial)) {
        name_of_ladder(&s, &words);
    }
    if (s.offset != 0) {
        say(&words, ", ", "offset %.10g", s.offset);
    }
    if (trial->arithmetic->name) {
        say(&words, ", ", "%s", trial->arithmetic->name);
    }
    if (trial->shape && trial->shape->mistake) {
        say(&words, ", ", "other exponents");
    }
    if (finding->is_near) {
        say(&words, ", ", "but not exactly");
    }
    return keep(op->arena, &words, err);
}
