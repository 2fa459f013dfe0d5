/* SPDX-License-Identifier: MIT
 *
 * identify: what its files share. Whatever was posted becomes a sheet, some of its rows as float64 numbers,
 * every column of which should be a sine or cosine. A shape says which columns are what and which step of the
 * ladder each stands on; a ladder is four numbers. Column c at position p, where x = scale*p + offset:
 *
 *     factor * sin or cos (x * base^(-(first + step*pair)/denominator))
 *
 *     identify_axes.c     which axis of turned vectors is tokens
 *     identify_posted.c   what was posted, checked
 *     identify_sheet.c    a sample of it as a sheet
 *     identify_plain.c    what is told without a search
 *     identify_hands.c    columns as hands of clocks: how fast they turn
 *     identify_stand.c    and where they stand: the ladder of a sheet from nothing, given the shape
 *     identify_usual.c    usual numbers tried, where hands tell nothing
 *     identify_fit.c      the ladder nearby that fits best
 *     identify_bridge.c   the same where rows are far from each other
 *     identify_round.c    the simplest numbers that explain it as well
 *     identify_stretch.c  rotary frequencies that are no ladder
 *     identify_xpos.c     pairs that grow as they turn
 *     identify_rows.c     hypotheses: shapes, arithmetics
 *     identify_trial.c    one hypothesis as an encoding, carried out by the library and compared
 *     identify_search.c   the shapes that are tried over one sheet
 *     identify_grid.c     tables of images
 *     identify_table.c    what vectors may be
 *     identify_turns.c    what rotary tables and turned vectors may be
 *     identify_say.c      what is unusual about one, in words
 *     identify.c          the verdict
 */
#ifndef PE_IDENTIFY_H
#define PE_IDENTIFY_H

#include "core/replay.h"
#include "core/stop.h"
#include "encodings/encoding.h"

#include "posenc_identify.h"

#include <math.h>

/* Rows by rising position. Of turned vectors a sheet is [cosines, sines] of the angles that they turned by.
 */
struct pe_sheet {
    size_t rows, width;
    const double *p;      /* [rows] */
    double *x;            /* [rows, width] */
    double *weight;       /* [rows, width]; NULL: all are 1 */
    double floor;         /* root mean square below which differences are rounding */
    double power;         /* mean of the weighted squares */
    bool rounded;         /* positions are, so that it is no place for the longest searches */
    struct pe_error *err; /* long searches ask it */
};

enum { PE_LADDER_BASE, PE_LADDER_SCALE, PE_LADDER_OFFSET, PE_LADDER_FACTOR, PE_LADDER_N };
/* Logarithms but for the offset. */
struct pe_ladder {
    double v[PE_LADDER_N];
    double sign; /* of the scale */
};

/* The scale's magnitude, which is a number whatever a fit came to: neither 0 nor infinite. */
static inline double pe_ladder_scale(const struct pe_ladder *ladder) {
    return exp(fmax(-300, fmin(300, ladder->v[PE_LADDER_SCALE])));
}

struct pe_shape {
    const char *name; /* of the convention */
    bool halves, cos_first, minus_one;
    int first[2], step[2]; /* exponents of sines and of cosines: (first + step*pair)/denominator */
    double penalty;        /* what it takes to be believed, in nats */
    const char *mistake;   /* a sentence; NULL: none */
};

/* ---- identify_fit.c ---- */

/* Is the column a cosine, and what is its exponent? */
struct pe_column {
    bool cosine;
    double exponent;
};
struct pe_column pe_shape_column(const struct pe_shape *shape, size_t width, size_t column);
/* One number, and the place on the wave: an angle. */
double pe_ladder_value(const struct pe_ladder *ladder, const struct pe_column *column, double p);
/* The mean square by which the ladder misses a sample of the sheet. */
double pe_ladder_miss(const struct pe_sheet *sheet, const struct pe_shape *shape,
                      const struct pe_ladder *ladder);
/* The same of rows near position 0 alone. */
double pe_ladder_miss_near(const struct pe_sheet *sheet, const struct pe_shape *shape,
                           const struct pe_ladder *ladder);
/* Gauss-Newton from where the ladder stands, over those numbers whose bit is set in `free`.
 * Returns the mean square. */
double pe_ladder_refine(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                        unsigned free, int rounds);
/* The same from a rough guess: first over rows near position 0, where angles are small, then over all. */
double pe_ladder_approach(const struct pe_sheet *sheet, const struct pe_shape *shape,
                          struct pe_ladder *ladder, unsigned free);

/* ---- identify_hands.c ---- */

#define PE_TURN         6.283185307179586
#define PE_HANDS_VOTING 24 /* hands that take part in a vote */

/* Pairs of columns as hands of clocks. */
struct pe_hands {
    const struct pe_sheet *sheet;
    const struct pe_shape *shape;
    size_t n;
    double *omega, *phase; /* [n]: per unit of position; where it stands at row `zero` */
    double noise;          /* of an angle */
    size_t zero;
    bool whole;            /* the scale is a number that one would write */
    double smallest, span; /* of the gaps */
};

static inline double pe_whole_turns(double angle) {
    return PE_TURN * nearbyint(angle / PE_TURN);
}

/* The scratch is [2 * width]. */
struct pe_hands pe_hands_open(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch);
/* Every hand has the same length. Sets the noise; false where lengths differ as if these were no hands. */
bool pe_hands_are_round(struct pe_hands *hands);
void pe_hand_at(const struct pe_hands *hands, size_t pair, size_t row, double z[2]);
/* How fast a hand turns. `foretold`: omega is known well enough to count turns between neighbours. */
void pe_hand_measure(const struct pe_hands *hands, size_t pair, bool foretold);
void pe_hand_refine(const struct pe_hands *hands, size_t pair);
/* The angle of a hand at row `zero`, from all rows. */
double pe_hand_stand(const struct pe_hands *hands, size_t pair, double omega);
/* The straight line log_first - slope*pair that log(omega) is on, which foretells hands that turn too fast to be
 * measured; false: no two hands agree. */
bool pe_hands_line(const struct pe_hands *hands, double *log_first, double *slope);
/* How many hands do not turn as the line says. */
size_t pe_hands_against(const struct pe_hands *hands, double log_first, double slope);

/* ---- identify_stand.c ---- */

/* From nothing: false where it finds none. The scratch is [2 * width]. */
bool pe_ladder_find(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                    struct pe_ladder *ladder);
/* A shape whose pairs are no hands of a clock, or too few rows: ladders in a grid. */
void pe_ladder_scan(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder);

/* ---- identify_usual.c ---- */

/* Usual numbers, one by one; far: perhaps rows begin far away; quick: bases of two digits alone. false where none
 * fits. */
bool pe_ladder_usual(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch, bool far,
                     bool quick, struct pe_ladder *ladder);

/* ---- identify_bridge.c ---- */

/* From rows that stand together to others far away. With scratch [2 * width] from nothing, without from where
 * the ladder stands. false where there is no such gap, or the near rows are not explained. */
bool pe_ladder_bridge(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                      struct pe_ladder *ladder);

/* From the first n rows, which the ladder explains at their distance from 0, to all. Returns the mean square. */
double pe_ladder_chain(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                       size_t n, bool from_zero);

/* ---- identify_round.c ---- */

/* How improbable these numbers are, before anything was seen: nats, 0 for the usual ones. */
double pe_ladder_penalty(const struct pe_ladder *ladder, size_t width);
/* The simplest ladder that explains the sheet as well; `bold`: also where it is a little worse, as code that
 * computes angles badly pulls at all numbers. */
void pe_ladder_simplify(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                        bool bold);
/* Nats: the lower the better. */
double pe_sheet_score(const struct pe_sheet *sheet, double square, double penalty);

/* ---- identify_rows.c ---- */

extern const struct pe_shape pe_identify_shapes[];
extern const size_t pe_identify_n_shapes;

extern const struct pe_shape pe_identify_rotary; /* [cosines, sines] */

/* Arithmetics that deployed code used. */
struct pe_identify_arithmetic {
    enum pe_arithmetic arithmetic;
    double penalty;
    const char *name, *sentence;
    bool divides; /* of vectors: p / base^(2i/d), which no encoding here replays */
};
extern const struct pe_identify_arithmetic pe_identify_arithmetics[];
extern const size_t pe_identify_n_arithmetics;

/* Positions that were rounded before they became angles: the sheet is fitted over those. */
struct pe_identify_pass {
    enum pe_arithmetic arithmetic;
    enum pe_dtype rounded; /* 0: not at all */
    double start;
};
extern const struct pe_identify_pass pe_identify_passes[];
extern const size_t pe_identify_n_passes;

/* ---- identify_stretch.c ---- */

enum { PE_STRETCH_YARN, PE_STRETCH_LLAMA3, PE_STRETCH_PROPORTIONAL, PE_STRETCH_LONGROPE };
/* Rotary frequencies that no straight ladder explains. */
struct pe_stretch {
    int type;
    double base, factor, original; /* the context before it */
    double fast, slow;             /* yarn: beta_fast, beta_slow; llama3: high_freq_factor, low_freq_factor */
    bool truncate;
    size_t turning;         /* proportional: so many pairs */
    const double *divisors; /* longrope: [pairs] */
};
const char *pe_stretch_name(const struct pe_stretch *stretch);
#define PE_STRETCH_BEST 6
struct pe_stretches {
    struct pe_stretch found[PE_STRETCH_BEST + 1];
    size_t n;
    double sign, gain, noise;
    double *divisors; /* [width / 2], given */
};
/* What the frequencies of a rotary sheet may be, the best first. The scratch is [4 * width]. */
size_t pe_stretch_search(struct pe_stretches *out, const struct pe_sheet *sheet, double hint,
                         double *scratch);
/* What is added to positions, a whole number; far: perhaps very many. */
double pe_stretch_start(const struct pe_stretch *stretch, double sign, const struct pe_sheet *sheet, bool far,
                        double *scratch);

/* ---- identify_xpos.c ---- */

struct pe_xpos {
    double scale_base, center; /* 0: none */
    bool keys;                 /* which grow as queries shrink */
};
/* Do the lengths of a rotary sheet tell that pairs grow? */
bool pe_xpos_find(const struct pe_sheet *sheet, struct pe_xpos *out);
/* The sheet as it would be without. */
void pe_xpos_take_off(const struct pe_xpos *xpos, struct pe_sheet *sheet);

/* ---- identify_axes.c ---- */

/* Are vectors of three axes [H, T, d], not [T, H, d]? positions NULL: none were given. false also on failure. */
bool pe_identify_heads_first(struct pe_arena *arena, const struct pe_tensor *after,
                             const struct pe_tensor *before, const struct pe_positions *positions,
                             struct pe_error *err);

/* ---- identify_posted.c ---- */

enum pe_identify_kind { PE_IDENTIFY_TABLE = 1, PE_IDENTIFY_TRIG, PE_IDENTIFY_TURNED };

/* What was posted, some of its rows as numbers. A row of `got` is what somebody's code made: vectors;
 * cosines, then sines; turned vectors of all heads. */
struct pe_identify {
    enum pe_identify_kind kind;
    struct pe_arena *arena;
    struct pe_tensor posted[2];      /* as views without axes of 1 that are too many */
    const struct pe_tensor *made[2]; /* tensor; cos, sin; after */
    const struct pe_tensor *before;
    struct pe_positions positions;
    size_t columns; /* of the grid whose coordinates were posted; 0: positions are plain */
    double origin;  /* its first coordinates */
    size_t length, items, heads, width; /* rows; numbers in a row; of turned vectors; of a vector or head */
    bool heads_first;                   /* these are [H, T, d], their rows apart */
    enum pe_dtype stored;               /* the narrowest type that holds the numbers */
    size_t n;                           /* rows of the sample, by rising position */
    size_t *row;                        /* [n] */
    double *p, *got, *was;              /* [n], [n, items], [n, items] of `before` */
    bool *zero;                         /* [n]: rows of zeros, of padding or of what made the table */
    size_t n_zero;
    double floor, power; /* as of a sheet */
    enum pe_trig_form form;
    int layout; /* of full tables of cosines; 0: they do not tell */
    double hint_base;
    int hint_layout;
    const char *hint_type;
    double *scratch; /* [n * items + 2 * items] */
    struct pe_trial *trials;
    size_t n_trials;
    size_t charged; /* bytes of plans, of which few are open at once */
};

int pe_identify_read(struct pe_arena *arena, struct pe_identify *op, const struct pe_identify_args *args,
                     struct pe_error *err);
/* One row of those posted: what was made, and what was there before (where that is). */
void pe_identify_load(const struct pe_identify *op, size_t row, double *got, double *was);

/* ---- identify_sheet.c ---- */

/* Is a row of a table, beside the others, as good as zeros? */
bool pe_identify_is_zero(const struct pe_identify *op, const double *row);
/* Reads a sample of the rows, and measures it. */
int pe_identify_sample(struct pe_identify *op, struct pe_error *err);
/* The sheet of a width. `layout`: of turned vectors. */
int pe_identify_sheet(const struct pe_identify *op, struct pe_sheet *sheet, size_t width, int layout,
                      struct pe_error *err);

/* ---- identify_plain.c ---- */

/* The verdict, where no search is needed: an ARENA text. NULL: there is one, or err says why not. */
const char *pe_identify_plain(const struct pe_identify *op, struct pe_error *err);

/* ---- identify_trial.c ---- */

/* A hypothesis in all its details. */
struct pe_trial {
    struct pe_spec spec;
    const struct pe_shape *shape; /* NULL: naive, or a scaling of frequencies */
    const struct pe_identify_arithmetic *arithmetic;
    const struct pe_stretch *stretch; /* NULL: none */
    struct pe_ladder ladder;
    size_t width;                        /* of its sheet */
    int layout;                          /* of rotary ones */
    const char *naive;                   /* the form of a naive one, else NULL */
    const struct pe_identify_grid *grid; /* NULL: none */
    int nerf;                            /* features of NeRF: 1 with pi, 2 without */
    double length;                       /* of that, where it has one */
    bool padded;                         /* with padding_idx where zeros are */
    double wrap;                         /* positions begin again at this one; 0: nowhere */
    struct pe_xpos xpos;
    double attention; /* of a stretch: its attention factor, 0: what its formula has */
    double factor;    /* of every number, beside the encoding */
    double shift;     /* of positions, beside the encoding */
    double penalty, score, square, largest;
};

#define PE_IDENTIFY_TRIALS 96
/* Numbers of the sample that a trial is compared with: scores are of so many. */
#define PE_IDENTIFY_COMPARED ((size_t)4096)

/* The encoding of a trial, as far as it can be said. */
int pe_trial_spec(const struct pe_identify *op, struct pe_trial *trial, struct pe_error *err);
/* Is it carried out by the library, or by the ladder, as no encoding is so wrong? */
bool pe_trial_is_encoding(const struct pe_trial *trial);
/* Row by row what the trial makes at positions p [n], into out [n, items]. exact: without its faults of
 * arithmetic. `was` is what is turned. */
struct pe_trial_rows {
    const struct pe_identify *op;
    const struct pe_trial *trial;
    const struct pe_plan *plan;
    const double *p, *was;
    size_t n;
};
void pe_trial_make(const struct pe_trial_rows *rows, double *shifted, double *out);
/* Of a table: is row `got` nearly zeros, where the trial has `made`, which is further from it than zeros are? */
bool pe_trial_pads(const struct pe_identify *op, const struct pe_trial *trial, const double *got,
                   const double *made);
/* Plans are no memory of the arena: the most bytes that are open at once are charged to it. */
int pe_identify_charge(struct pe_identify *op, size_t bytes, struct pe_error *err);
/* Compares a trial with the sample and keeps it. A trial that the encoding refuses is dropped. */
int pe_trial_add(struct pe_identify *op, struct pe_trial *trial, struct pe_error *err);
/* The best so far; NULL: none. */
const struct pe_trial *pe_trial_best(const struct pe_identify *op);

/* ---- identify_search.c ---- */

struct pe_search {
    struct pe_identify *op;
    struct pe_sheet sheet;
    const struct pe_identify_pass *pass;
    struct pe_xpos xpos; /* taken off the sheet */
    int layout;
    double *scratch;
    struct pe_ladder found[4]; /* by halves and cos_first */
    bool has[4], tried[4];
    double best; /* the least miss of a shape that is no mistake, in parts of the power */
    struct pe_ladder best_ladder;
};

int pe_search_open(struct pe_search *search, struct pe_identify *op, size_t width, int layout,
                   struct pe_error *err);
/* Every shape is fitted over the positions as pass `pass` rounds them, and tried. */
int pe_search_over(struct pe_search *search, const struct pe_shape *shapes, size_t n, size_t pass,
                   struct pe_error *err);
/* Usual numbers, where nothing has explained what was posted, or only unusual ones. */
int pe_search_usual(struct pe_search *search, const struct pe_shape *shapes, size_t n, struct pe_error *err);
struct pe_trial pe_search_trial(const struct pe_search *search, const struct pe_shape *shape,
                                const struct pe_ladder *ladder);
/* In the arithmetics that it may be in. */
int pe_search_add(const struct pe_search *search, const struct pe_trial *trial, struct pe_error *err);
/* Something explains what was posted; as close as noise lets one come. */
bool pe_search_is_good(const struct pe_identify *op);
bool pe_search_is_close(const struct pe_identify *op);

/* ---- identify_grid.c ---- */

/* The tokens of an image, row by row, behind so many of zeros. */
struct pe_identify_grid {
    size_t rows, columns, before;
    const char *combine; /* of sinusoidal_nd */
    bool last_first;     /* the columns of a vector begin with the last axis */
    bool normalized;
    double base, start, full;
    double origin; /* coordinates of the first token */
};
/* Is the table one of a grid? Then it is tried. */
int pe_identify_image(struct pe_identify *op, struct pe_error *err);

/* ---- identify_table.c, identify_turns.c ---- */

/* All hypotheses about vectors, about rotary ones, tried. */
int pe_identify_table(struct pe_identify *op, struct pe_error *err);
int pe_identify_turns(struct pe_identify *op, struct pe_error *err);

/* ---- identify_say.c ---- */

/* What was found out about a trial, beside what it says itself. */
struct pe_finding {
    double fault;          /* the largest difference to the encoding without its faults */
    double fault_position; /* where that is */
    double miss;           /* root mean square of what it does not explain */
    size_t n_padding;      /* rows of zeros that only padding explains, */
    size_t padding;        /* and the first of them */
    bool is_near;          /* that is too much for noise */
    bool rounding_shows;   /* the numbers tell that they were rounded to `stored` */
};
/* ARENA texts; NULL on failure, and for `mistake` where nothing is unusual. */
const char *pe_trial_name(const struct pe_identify *op, const struct pe_trial *trial,
                          const struct pe_finding *finding, struct pe_error *err);
const char *pe_trial_mistake(const struct pe_identify *op, const struct pe_trial *trial,
                             const struct pe_finding *finding, struct pe_error *err);

#endif
