/* SPDX-License-Identifier: MIT
 *
 * rope from the inside: private to rope*.c. Its parameters, and its plan, which the scalings and the axes
 * fill.
 */
#ifndef PE_ROPE_H
#define PE_ROPE_H

#include "core/ladder.h"
#include "core/replay.h"
#include "encodings/encoding.h"
#include "kernels/wave.h"
#include "kernels/wave64.h"

/* The order of rope.c's rows. */
enum {
    ROPE_HEAD_DIM,
    ROPE_ROTARY_DIM,
    ROPE_PARTIAL,
    ROPE_BASE,
    ROPE_LAYOUT,
    ROPE_DIRECTION,
    ROPE_SCALING,
    ROPE_SEQ_LEN,
    ROPE_SECTIONS,
    ROPE_SECTION_LAYOUT,
    ROPE_AXES,
    ROPE_XPOS,
    ROPE_QK_HEAD_DIM,
    ROPE_HF_CONFIG,
    ROPE_LAYER_TYPE,
    ROPE_GGML,
    ROPE_ARITHMETIC
};

/* The types of scaling, and the order of its rows. Which type takes which is in rope_scaling.c's table. */
enum {
    ROPE_TYPE_DEFAULT = 1,
    ROPE_TYPE_LINEAR,
    ROPE_TYPE_NTK,
    ROPE_TYPE_DYNAMIC,
    ROPE_TYPE_PROPORTIONAL,
    ROPE_TYPE_YARN,
    ROPE_TYPE_LONGROPE,
    ROPE_TYPE_LLAMA3,
    ROPE_TYPE_GGML,
    ROPE_TYPE_COUNT
};
/* Each file with a table of the types says by this that it knows them all: a row that is missing would be
 * computed as if it were default. */
#define ROPE_TYPES_KNOWN(n) _Static_assert(ROPE_TYPE_COUNT == (n), "a type of scaling is not in this table")
enum {
    ROPE_KEY_ROPE_TYPE,
    ROPE_KEY_FACTOR,
    ROPE_KEY_ROPE_THETA,
    ROPE_KEY_PARTIAL,
    ROPE_KEY_ORIGINAL,
    ROPE_KEY_ATTENTION,
    ROPE_KEY_MSCALE,
    ROPE_KEY_MSCALE_ALL,
    ROPE_KEY_BETA_FAST,
    ROPE_KEY_BETA_SLOW,
    ROPE_KEY_TRUNCATE,
    ROPE_KEY_LOW,
    ROPE_KEY_HIGH,
    ROPE_KEY_SHORT,
    ROPE_KEY_LONG,
    ROPE_KEY_FREQ_SCALE,
    ROPE_KEY_EXT,
    ROPE_KEY_ATTN,
    ROPE_KEY_FREQ_FACTORS
};
#define ROPE_BIT(key) (UINT64_C(1) << (key))

struct rope_scaling {
    uint64_t given;
    int rope_type;
    double factor, rope_theta, partial_rotary_factor;
    int64_t original_max_position_embeddings;
    double attention_factor, mscale, mscale_all_dim, beta_fast, beta_slow;
    bool truncate;
    double low_freq_factor, high_freq_factor;
    const struct pe_tensor *short_factor, *long_factor;
    double freq_scale, ext_factor, attn_factor;
    const struct pe_tensor *freq_factors;
};
#define ROPE_SCALING_N_FIELDS 19
extern const struct pe_field pe_rope_scaling_fields[ROPE_SCALING_N_FIELDS];

struct rope {
    uint64_t given;
    int64_t head_dim, rotary_dim;
    double partial_rotary_factor;
    double base;
    int layout, direction;
    const void *scaling; /* struct rope_scaling; NULL = none */
    int64_t seq_len;
    struct pe_ints sections;
    int section_layout;
    const void *rope_axes; /* struct rope_axes; NULL = one axis, or sections */
    const void *xpos;      /* struct rope_xpos; NULL = none */
    int64_t qk_head_dim;
    struct pe_config hf_config;
    const void *ggml; /* struct rope_ggml; NULL = none */
    const char *layer_type;
    int arithmetic;              /* enum pe_arithmetic */
    struct rope_scaling adopted; /* what hf_config or ggml becomes */
};

enum { ROPE_LAYOUT_HALVES = PE_ROTARY_HALVES, ROPE_LAYOUT_INTERLEAVED = PE_ROTARY_INTERLEAVED };
enum { ROPE_COUNTERCLOCKWISE = 1, ROPE_CLOCKWISE };
enum { ROPE_CONTIGUOUS = 1, ROPE_INTERLEAVED };

/* Zhao et al. 2022: queries grow by zeta_i^(x/scale_base) and keys shrink by it, x = p - center. */
struct rope_xpos {
    uint64_t given;
    double scale_base, center;
};
/* Rotation by the axes of an image: rope_axes.c. */
struct rope_axes {
    uint64_t given;
    int64_t n_axes;
    int frequencies, coordinates;
    double max_freq;
    struct pe_ints grid;
};
#define ROPE_AXES_N_FIELDS 5
extern const struct pe_field pe_rope_axes_fields[ROPE_AXES_N_FIELDS];

#define ROPE_MAX_AXES  PE_MAX_AXES
#define ROPE_ALIGNMENT 64 /* of the wave's tables */
#define ROPE_N_LISTS   3  /* of a scaling */

struct rope_plan {
    size_t n_pairs;
    size_t n_slow; /* of them, see pe_turn_is_slow */
    int axes;      /* coordinates of a position */
    bool has_gain; /* the attention factor is not 1 */
    struct pe_gain gain;
    double base_used;              /* 0: none */
    bool has_range;                /* YaRN */
    double low, high;              /* its correction range */
    struct pe_wide softmax_factor; /* of 1/sqrt(d) */
    /* Coordinates are (scale*p + offset) / divisor; the divisor is in the turns already. */
    double scale[ROPE_MAX_AXES], offset[ROPE_MAX_AXES];
    uint32_t divisor[ROPE_MAX_AXES];
    struct rope_scaling scaling;          /* resolved */
    struct pe_tensor lists[ROPE_N_LISTS]; /* what it points to; their numbers lie behind the turns */
    struct rope_xpos xpos;
    struct rope_axes rope_axes;
    struct pe_replay replay; /* not used where the arithmetic is exact */
    struct pe_wide *rates;   /* xPos [n_pairs]: ln(zeta)/scale_base; NULL = none */
    unsigned char *axis;     /* [n_pairs]: the coordinate that turns it */
    bool is_fast;            /* the waves are for all pairs, in float32 and float64 */
    struct pe_wave wave;
    struct pe_wave64 wave64;
    struct pe_turn turns[]; /* [n_pairs] */
};

/* rope.c: was a field given; the width that turns; the base */
bool pe_rope_given(const struct rope *params, int field);
int64_t pe_rope_width(const struct rope *params);
size_t pe_rope_lists_bytes(const struct rope *params); /* the lists of its scaling as float64 */
double pe_rope_base(const struct rope *params);

/* rope_turn.c: hooks */
bool pe_rope_exact(const struct pe_plan_view *view); /* not a replay */
int pe_rope_plan_fill(struct pe_plan_view *view, struct pe_error *err);
int pe_rope_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                  struct pe_error *err);
int pe_rope_fits(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                 double limit, struct pe_error *err);
struct pe_pairs pe_rope_pairs(const struct pe_plan_view *view);
int pe_rope_n_axes(const struct pe_plan_view *view);
size_t pe_rope_grid_size(const struct pe_plan_view *view, int axis);
void pe_rope_angles(const struct pe_plan_view *view, const struct pe_spot *spot, enum pe_dtype dtype,
                    const struct pe_angles *out);
void pe_rope_angles_rows(const struct pe_plan_view *view, const struct pe_spot *spots, size_t n,
                         const struct pe_angles_rows *out);
void pe_rope_encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                    void *out);
size_t pe_rope_shift_pairs(const struct pe_plan_view *view);
void pe_rope_shift(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                   size_t columns[2]);
void pe_rope_frequencies(const struct pe_plan_view *view, enum pe_dtype dtype, void *out);

/* rope_scaling.c */
bool pe_rope_scaling_has(const struct rope_scaling *scaling, int key); /* was it given */
int pe_rope_scaling_check(const struct rope *params, struct pe_error *err);
int pe_rope_scaling_type(const char *name); /* 0 = none such */
bool pe_rope_scaling_takes(int type, int key);
bool pe_rope_scaling_needs(int type, int key);
/* All of the head is in the formula, whatever part of it turns. */
bool pe_rope_scaling_keeps_width(int type);
void pe_rope_scaling_resolve(struct rope_scaling *scaling);

/* rope_scaling_formulas.c: the frequencies of one axis, and the plan's facts */
int pe_rope_scaling_fill(struct rope_plan *plan, const struct rope *params, struct pe_error *err);
/* The attention factor that mscale and mscale_all_dim make, both above 0. */
double pe_rope_scaling_quotient(const struct rope_scaling *scaling);

/* A number of a list, of any type; longrope's list for seq_len; how many pairs turn of proportional. */
double pe_rope_scaling_number(const struct pe_tensor *list, size_t i);
const struct pe_tensor *pe_rope_scaling_list(const struct rope *params, const struct rope_scaling *scaling);
size_t pe_rope_scaling_turning(const struct rope *params, const struct rope_scaling *scaling);

/* rope_replay.c: may this be replayed; float32 numbers into rates [2*n_pairs] */
int pe_rope_replay_check(const struct rope *params, struct pe_error *err);
int pe_rope_replay_fill(struct rope_plan *plan, const struct rope *params, float *rates,
                        struct pe_error *err);
/* Its ladder, without `upward`; and which of llama3's bands a frequency is in. s: between keep (1) and divide
 * (0). */
struct pe_replay_ladder pe_rope_replay_ladder(const struct rope *params);
enum pe_rope_band { ROPE_BAND_KEEP, ROPE_BAND_DIVIDE, ROPE_BAND_BETWEEN };
enum pe_rope_band pe_rope_llama3_band(const struct rope_scaling *scaling, float rate, float *s);

/* rope_replay_ggml.c: the same for ggml */
int pe_rope_replay_ggml_check(const struct rope *params, struct pe_error *err);
int pe_rope_replay_ggml(struct rope_plan *plan, const struct rope *params, float *rates,
                        struct pe_error *err);

/* rope_axes.c */
int pe_rope_axes_check(const struct rope *params, struct pe_error *err);
bool pe_rope_axes_use_base(const struct rope_axes *axes);
void pe_rope_axes_resolve(struct rope_axes *axes);
/* Shares the pairs out to the axes, in place of one ladder for all. */
int pe_rope_axes_fill(struct rope_plan *plan, const struct rope *params, struct pe_error *err);

/* rope_adopt.c: fields that a source says; PE_ERR_CONFLICT where the request says otherwise. */
struct rope_source {
    const char *name, *model; /* "hf_config", "model_type llama" */
    double part;              /* of the head that turns; 0 = not said */
};
/* Of ROPE_HEAD_DIM, ROPE_ROTARY_DIM or ROPE_QK_HEAD_DIM. */
int pe_rope_adopt_whole(struct rope *params, const struct rope_source *source, int field, int64_t value,
                        struct pe_error *err);
int pe_rope_adopt_base(struct rope *params, const struct rope_source *source, double base,
                       struct pe_error *err);
int pe_rope_adopt_layout(struct rope *params, const struct rope_source *source, int layout,
                         struct pe_error *err);
int pe_rope_adopt_sections(struct rope *params, const struct rope_source *source,
                           const struct pe_ints *sections, int layout, struct pe_error *err);
int pe_rope_adopt_scaling(struct rope *params, const struct rope_source *source,
                          const struct rope_scaling *told, struct pe_error *err);

/* rope_ggml.c: sets the fields that ggml says. May be called again. */
struct rope_ggml {
    uint64_t given;
    double freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow;
    const struct pe_tensor *freq_factors;
    int64_t mode, n_ctx_orig;
    struct pe_ints sections;
};
#define ROPE_GGML_N_FIELDS 10
extern const struct pe_field pe_rope_ggml_fields[ROPE_GGML_N_FIELDS];
int pe_rope_ggml_adopt(struct rope *params, struct pe_error *err);

/* rope_config.c: sets the fields that hf_config says. May be called again. */
int pe_rope_config_adopt(struct rope *params, struct pe_error *err);

#endif
