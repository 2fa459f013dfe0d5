/* SPDX-License-Identifier: MIT
 *
 * libposenc: Transformer positional encodings.
 *
 * The library knows no HTTP and no JSON, and has no global state but const tables. Its own code starts no
 * thread; OpenBLAS, which it is linked with, may (see pe_linalg_init).
 *
 *     struct pe_error err = {0};
 *     struct pe_arena *arena = pe_arena_open(64 << 20, NULL, &err);
 *     struct pe_spec spec;
 *     struct pe_plan *plan = NULL;
 *     struct pe_positions positions;
 *     struct pe_tensor vectors;
 *     struct pe_work work = {0};
 *     if (pe_spec_init(arena, &spec, "sinusoidal", &err) ||       // which encoding
 *         pe_spec_set(arena, &spec, "d_model", "512", &err) ||    // its parameters, by name
 *         pe_plan_open(&plan, &spec, &err) ||                     // checked, precomputed, immutable
 *         pe_positions_parse(arena, &positions, "0:100", &err) ||
 *         pe_encode_open(arena, &work, &vectors, plan, &positions, PE_DTYPE_F32, &err))
 *         fprintf(stderr, "%s: %s\n", err.path, err.text);
 *     pe_work_run(&work); // the numbers: ((float *)vectors.data)[512 * t + column], t < 100
 *     pe_plan_close(plan);
 *     pe_arena_close(arena);
 *
 * Every function that can fail returns enum pe_code, PE_OK (0) on success, and fills the caller's struct
 * pe_error; the first failure wins, and what is called after it does nothing, so a chain of calls may be
 * checked once, at its end. On failure nothing is left to release but what the caller had opened before; a
 * plan is NULL and may be closed, a work has no parts and may be run.
 *
 * Three words for memory: a VIEW is borrowed and must outlive its user; ARENA memory dies with the arena; a
 * HANDLE is opened and closed. One arena belongs to one thread at a time; plans are immutable and may be
 * shared.
 */
#ifndef POSENC_H
#define POSENC_H

#include "posenc_block.h"
#include "posenc_formats.h"
#include "posenc_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, and of the numbers it makes: the second changes when any output bit may. */
#define PE_VERSION          "0.2.0"
#define PE_NUMERICS_VERSION 4
PE_API const char *pe_version(void);

/* ---- Encodings ---------------------------------------------------------------------------------------- */

struct pe_field; /* posenc_fields.h: one row describing one parameter */

enum pe_family {
    PE_FAMILY_NONE,     /* nothing is added */
    PE_FAMILY_ABSOLUTE, /* vectors added to embeddings */
    PE_FAMILY_ROTARY,   /* query and key rotated */
    PE_FAMILY_BIAS,     /* a bias added to the logits */
    PE_FAMILY_QUERY     /* a term of the logits that depends on the query */
};

/* What an encoding can do, computed from the hooks it has. */
enum pe_ability {
    PE_CAN_ENCODE = 1 << 0,
    PE_CAN_APPLY = 1 << 1,
    PE_CAN_BIAS = 1 << 2,
    PE_CAN_ATTENTION = 1 << 3,
    PE_CAN_SHIFT = 1 << 4
};

/* The facts of one encoding: static and const. */
struct pe_encoding_info {
    const char *type;      /* its name in the contract */
    const char *title;     /* for people */
    const char *doc;       /* what it is, in one or two sentences */
    const char *reference; /* paper or project */
    enum pe_family family;
    size_t params_size;
    const struct pe_field *fields;
    size_t n_fields;
};

PE_API size_t pe_encoding_count(void);
PE_API const struct pe_encoding_info *pe_encoding_at(size_t i);
PE_API const struct pe_encoding_info *pe_encoding_find(const char *type); /* NULL when unknown */
PE_API unsigned pe_encoding_abilities(const struct pe_encoding_info *encoding);

/* An encoding with its parameters, still changeable. params is ARENA memory laid out by encoding->fields. */
struct pe_spec {
    const struct pe_encoding_info *encoding;
    void *params;
};

/* All parameters at their defaults. PE_ERR_UNKNOWN_NAME at `type`. */
PE_API int pe_spec_init(struct pe_arena *arena, struct pe_spec *spec, const char *type,
                        struct pe_error *err) PE_CHECKED;
/* Sets one parameter from text, as a query string would; "scaling.factor" is one of an object. Lists by
 * comma. What the text becomes is ARENA memory. PE_ERR_UNKNOWN_FIELD, PE_ERR_CONFLICT for a second setting,
 * and what is wrong with the value, at `name`. */
PE_API int pe_spec_set(struct pe_arena *arena, struct pe_spec *spec, const char *name, const char *text,
                       struct pe_error *err) PE_CHECKED;
/* Gives a tensor parameter (VIEW; must outlive the plan). */
PE_API int pe_spec_set_tensor(struct pe_spec *spec, const char *name, const struct pe_tensor *tensor,
                              struct pe_error *err) PE_CHECKED;
/* Fills what follows from the data where it was not given: the width of the vectors (0 = not known) and
 * the number of positions. A given width that differs is PE_ERR_CONFLICT. */
PE_API int pe_spec_fit(struct pe_spec *spec, size_t width, size_t length, struct pe_error *err) PE_CHECKED;

/* HANDLE, reference counted: parameters checked, frequencies precomputed; immutable, shareable between
 * threads. Tensors and texts of the spec stay VIEWS. Errors are at the parameter's name. */
struct pe_plan;
PE_API int pe_plan_open(struct pe_plan **plan, const struct pe_spec *spec, struct pe_error *err) PE_CHECKED;
/* The same, of large ones from `allocator`; counts in `arena`, before any is taken. Either may be NULL. */
PE_API int pe_plan_open_within(struct pe_plan **plan, const struct pe_spec *spec, struct pe_arena *arena,
                               const struct pe_allocator *allocator, struct pe_error *err) PE_CHECKED;
PE_API struct pe_plan *pe_plan_share(struct pe_plan *plan); /* one more reference; returns plan */
PE_API void pe_plan_close(struct pe_plan *plan);            /* NULL is allowed */
PE_API const struct pe_encoding_info *pe_plan_encoding(const struct pe_plan *plan);
/* The parameters as they were resolved, laid out by the encoding's fields: a VIEW. */
PE_API const void *pe_plan_params(const struct pe_plan *plan);
PE_API size_t pe_plan_bytes(const struct pe_plan *plan); /* of memory that it takes */
/* The least and the largest position that the encoding takes. */
PE_API void pe_plan_bounds(const struct pe_plan *plan, double *min, double *max);
PE_API size_t pe_plan_width(const struct pe_plan *plan); /* width of a vector; 0 where there is none */

/* ---- Work: what an operation still has to compute ------------------------------------------------------ */

/* Everything that can fail has happened and all memory is reserved; the plan, tensors and positions that the
 * work was opened with are VIEWS and must outlive it, as must the arena. The parts are independent, may run
 * in any order on any threads, each once; their number does not depend on the number of threads, so neither
 * do the bits. A part may be long, and asks `stop` while it runs. */
struct pe_work {
    size_t n_parts;
    double cost_ns; /* a rough estimate of the whole, on one core */
    const void *state;
    void (*run)(const void *state, size_t part);
    const struct pe_stop *stop; /* VIEW: that of the error it was opened with */
};
/* All parts, on this thread. false: it was stopped, by the `stop` of the error that it was opened with. */
PE_API bool pe_work_run(const struct pe_work *work);

/* ---- Operations --------------------------------------------------------------------------------------- */

/* encode: vectors [T, D] or [B, T, D], each value rounded once from the exact one. PE_ERR_RANGE at the first
 * position that the encoding does not take, or whose vector does not fit the dtype. */
PE_API int pe_encode_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *vectors,
                          const struct pe_plan *plan, const struct pe_positions *positions,
                          enum pe_dtype dtype, struct pe_error *err) PE_CHECKED;
/* Do the positions, of a batch all together, turn even the fastest of its sines by less than a radian? So do
 * times within [0, 1] where the frequencies are made for whole numbers: the vectors are nearly equal. true: *span
 * is by how much they differ. false for other encodings, for one position or two, which may well be close, and
 * for positions that are all the same. */
PE_API bool pe_positions_crowd(const struct pe_plan *plan, const struct pe_positions *positions, double *span,
                               struct pe_error *err);
/* encode without memory for the whole: pe_encode_check once, then any rows of the flattened [B*T, D] into
 * out [n, D], in that dtype, from any thread. */
PE_API int pe_encode_check(const struct pe_plan *plan, const struct pe_positions *positions,
                           enum pe_dtype dtype, struct pe_error *err) PE_CHECKED;
PE_API void pe_encode_rows(const struct pe_plan *plan, const struct pe_positions *positions,
                           enum pe_dtype dtype, size_t first, size_t n, void *out);

/* ---- Rotary encodings: encode gives the angles' cosines and sines ---- */

enum pe_trig_form {
    PE_TRIG_HALF = 1, /* cos, sin [.., T, n], n = rotary_dim/2 pairs; the default */
    PE_TRIG_FULL,     /* cos, sin [.., T, 2n]: each at both columns of its pair, in the encoding's layout */
    PE_TRIG_PACKED,   /* packed [.., T, 2n]: the cosines, then the sines */
    PE_TRIG_COMPLEX   /* complex [.., T, n, 2]: cos + i sin */
};

/* One table row by row, without memory for the whole: pe_rotary_check once, then any rows of the flattened
 * positions, from any thread. cos or sin may be NULL; the forms of one tensor go to cos. All are VIEWS. */
struct pe_rotary_rows {
    const struct pe_plan *plan;
    const struct pe_positions *positions;
    enum pe_dtype dtype;
    enum pe_trig_form form;
    bool keys; /* as keys turn, where that differs from queries (xPos) */
    const struct pe_stop *stop;
};
PE_API int pe_rotary_check(const struct pe_plan *plan, const struct pe_positions *positions,
                           enum pe_dtype dtype, struct pe_error *err) PE_CHECKED;
PE_API size_t pe_rotary_row_items(const struct pe_rotary_rows *rows); /* numbers in one row */
PE_API void pe_rotary_fill(const struct pe_rotary_rows *rows, size_t first, size_t n, void *cos, void *sin);

enum pe_rotary_output {
    PE_ROTARY_COS = 1 << 0,
    PE_ROTARY_SIN = 1 << 1,
    PE_ROTARY_TABLE = 1 << 2, /* packed or complex, by the form */
    PE_ROTARY_INV_FREQ = 1 << 3
};

struct pe_rotary_args {
    size_t size;
    const struct pe_plan *plan;
    const struct pe_positions *positions;
    enum pe_trig_form form;
    bool keys;
    unsigned outputs;    /* enum pe_rotary_output */
    enum pe_dtype dtype; /* default float32 */
};

/* Those asked for that the form has; of the others rank 0 and data NULL. ARENA. */
struct pe_rotary_result {
    struct pe_tensor cos, sin, packed, as_complex; /* `complex` is a macro of complex.h */
    struct pe_tensor inv_freq;                     /* [n]: the angles per unit of position, after scaling */
};

/* encode of a rotary encoding: cosines and sines of p * inv_freq, times the attention factor, each rounded
 * once from the exact value (Su et al. 2021). */
PE_API int pe_rotary_open(struct pe_arena *arena, struct pe_work *work, struct pe_rotary_result *result,
                          const struct pe_rotary_args *args, struct pe_error *err) PE_CHECKED;

/* What a plan found out on its way: "attention_factor" 1.1386, "correction_range" 20 46. */
struct pe_fact {
    const char *name; /* static text */
    int n;            /* numbers of value: 1, or 2 for a range */
    double value[2];
};
#define PE_MAX_FACTS 8
/* Returns their number, never above PE_MAX_FACTS; those that there is room for are written. */
PE_API size_t pe_plan_facts(const struct pe_plan *plan, struct pe_fact *facts, size_t room);

/* The operations below take a struct of arguments: clear it, set size = sizeof of the struct, then the
 * members that matter. NULL and zero mean the default. A posted tensor with NaN or an infinity is
 * PE_ERR_NONFINITE at its index, one whose numbers are so large that a result could overflow is PE_ERR_RANGE.
 * Results are ARENA tensors. */

/* Gives BLAS one thread per call: the parts of the work are what is spread over threads. It is a setting of
 * the whole process, so a program makes it once, before the first attention. */
PE_API void pe_linalg_init(void);
/* The BLAS in use and the processor it chose its code for, as it names them: static text. */
PE_API const char *pe_linalg_name(void);

struct pe_apply_args {
    size_t size;
    const struct pe_plan *plan;           /* NULL: nothing is added, as with the type `none` */
    const struct pe_tensor *embeddings;   /* [T, D] or [B, T, D]; rotary: any axes */
    const struct pe_positions *positions; /* [T] for all of the batch or [B, T]; default 0..T-1 */
    enum pe_embedding_scale scale_mode;
    double scale;
    enum pe_dtype dtype; /* default: that of embeddings */
    /* Rotary: a letter for each axis, d last: b batch, t position, h heads, d the head's width ("bthd",
     * "bhtd", "htd"); images have h and w for t ("bhwd", "hwd"), with the grid's rows and columns as default
     * positions. NULL: "td", "btd"; the four axes of rank 4 have to be named. */
    const char *axes;
    bool inverse; /* rotary: turn back, and divide by the attention factor */
    bool keys;    /* rotary: as keys turn, where that differs from queries (xPos) */
    /* The result goes where the embeddings are, whose type it has: `out` is them. They are read when the work is
     * opened and written when it runs, once. */
    bool in_place;
};

/* apply: out = fl(x*scale) + fl(PE), shaped as the embeddings (Vaswani et al. 2017, sections 3.4 and 3.5). In
 * float64 for float64 results, else in float32, where x, scale, PE, the product and the sum are each rounded
 * once; 16-bit results are rounded once more, from the float32 sum. PE_ERR_SHAPE at `positions`, or at
 * `embeddings` when D is not the encoding's width; PE_ERR_UNSUPPORTED at `encoding.type` for an encoding that
 * is not added; PE_ERR_RANGE at the element of `embeddings` whose result is beyond the largest number.
 *
 * A rotary encoding turns the pairs of every head instead (Su et al. 2021): in float64 and rounded once to
 * the dtype. Columns beyond rotary_dim pass. */
PE_API int pe_apply_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *out,
                         const struct pe_apply_args *args, struct pe_error *err) PE_CHECKED;

#define PE_HEADS_MAX 65536 /* of a model, as slopes and seeds count heads in 32 bits */

struct pe_bias_args {
    size_t size;
    const struct pe_plan *plan;
    size_t heads; /* H, of the model, up to PE_HEADS_MAX */
    const struct pe_tensor
        *head_index; /* [n]: only these heads of it, in any order, some perhaps twice; NULL: all */
    /* [T] or [B, T]. Where one is not given the other stands for both; neither has to be for an encoding that
     * is made for a fixed number of tokens. */
    const struct pe_positions *query_positions, *key_positions;
    enum pe_dtype dtype; /* default float32 */
};

/* bias: what a relative encoding adds to the logits of query i and key j, [H, Tq, Tk], or [B, H, Tq, Tk] for
 * positions [B, T]; each number made in float64 and rounded once. PE_ERR_UNSUPPORTED at `encoding.type` for
 * an encoding without a bias, or whose term depends on the query; PE_ERR_RANGE at `heads`, `head_index` and
 * at positions that it does not take; PE_ERR_SHAPE at a parameter whose table is for other heads. */
PE_API int pe_bias_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *bias,
                        const struct pe_bias_args *args, struct pe_error *err) PE_CHECKED;
/* dtype and shape of that, without data. */
PE_API int pe_bias_shape(const struct pe_bias_args *args, struct pe_tensor *shape,
                         struct pe_error *err) PE_CHECKED;
/* The same without memory for the whole: ARENA rows of the flattened [B*H*Tq, Tk], any of them from any
 * thread. The arguments and what they point to are VIEWS. */
struct pe_bias_rows;
PE_API int pe_bias_rows_open(struct pe_arena *arena, const struct pe_bias_rows **rows,
                             const struct pe_bias_args *args, struct pe_error *err) PE_CHECKED;
PE_API void pe_bias_rows_fill(const struct pe_bias_rows *rows, size_t first, size_t n, void *out);

/* Which keys j a query i sees: those that every given member allows. Queries are aligned to the right: query
 * i stands at i' = i + Tk - Tq among the keys. */
struct pe_attention_mask {
    size_t size;
    bool causal;                     /* j <= i' */
    const struct pe_tensor *lengths; /* [B]: only the first lengths[b] keys are real */
    const struct pe_tensor
        *documents;               /* [N] lengths of packed documents, their sum is Tk: each sees itself */
    const struct pe_tensor *keep; /* 1 = visible, 0 = hidden: [Tk], [B, Tk], [Tq, Tk] or [B, Tq, Tk];
                                     axes of size 1 broadcast */
    int n_window;                 /* 0: none; 1: |i' - j| < window[0]; */
    int64_t window[2];            /* 2: i' - j <= window[0] and j - i' <= window[1] */
};

enum pe_attention_output {
    PE_ATTENTION_WEIGHTS = 1 << 0,  /* softmax over the visible keys; 0 for hidden ones */
    PE_ATTENTION_LOGITS = 1 << 1,   /* scale*q.k + bias, before the mask; -infinity where the bias is */
    PE_ATTENTION_CONTENT = 1 << 2,  /* scale*q.k; with an absolute encoding its content-content part */
    PE_ATTENTION_POSITION = 1 << 3, /* the bias; with an absolute encoding logits - content */
    PE_ATTENTION_OUTPUT = 1 << 4,   /* weights . v */
    PE_ATTENTION_TERMS = 1 << 5     /* of an absolute encoding: x.x, x.p, p.x, p.p, each scaled */
};

struct pe_attention_args {
    size_t size;
    const struct pe_plan *plan; /* NULL: no encoding, as with the type `none` */
    /* Either q [.., Tq, d], k [.., Tk, d] and perhaps v [.., Tk, dv], all of rank 2, rank 3 [H, T, d] or rank
     * 4 [B, H, T, d]; k and v may have fewer heads Hk, a divisor of H: query head h uses key head h / (H/Hk).
     */
    const struct pe_tensor *q, *k, *v;
    /* Or embeddings [T, D] or [B, T, D], to which an absolute encoding is added, projected by x.w; a weight
     * that is not given is the identity. w_q [D, H*d], w_k [D, Hk*d], w_v [D, Hk*dv]. */
    const struct pe_tensor *embeddings, *w_q, *w_k, *w_v;
    size_t heads; /* H; default 1 for embeddings, the heads of q otherwise */
    /* q, k and v are of these heads [n] of the `heads` of the model, in any order, some perhaps twice:
     * relative encodings differ by head. */
    const struct pe_tensor *head_index;
    const struct pe_tensor *bias; /* added to the logits, may hold -infinity: [Tq, Tk], [H, Tq, Tk] or
                                     [B, H, Tq, Tk]; axes of size 1 before the last broadcast */
    /* [T] or [B, T], for an encoding that takes them; PE_ERR_CONFLICT without one. Default: keys 0..Tk-1 and
     * queries Tk-Tq..Tk-1; with embeddings, whose queries and keys are the same tokens, one that is given
     * stands for both. */
    const struct pe_positions *query_positions, *key_positions;
    const struct pe_attention_mask *mask;
    const double *scale; /* of q.k, not of the bias; default 1/sqrt(d), or the encoding's own (T5: 1) */
    unsigned outputs;    /* enum pe_attention_output; default weights */
    enum pe_dtype dtype; /* of the results; default: the widest of what is posted */
};

/* Those asked for; of the others rank 0 and data NULL. weights, logits, content and position have the rank of
 * q, [.., Tq, Tk]; output [.., Tq, dv]. Embeddings [T, D] without `heads` count as one head without an
 * axis, so [T, T]; else [H, T, T] or [B, H, T, T]. terms has an axis of 4 in front. */
struct pe_attention_result {
    struct pe_tensor weights, logits, content, position, output, terms;
};

/* attention: softmax_j(scale*q_i.k_j + bias_ij) . v_j over the visible keys (Vaswani et al. 2017, equation 1;
 * an additive bias is not scaled, as in Press et al. 2022). A query that sees no key gets zeros. Computed in
 * float64 when any of the tensors or the dtype asked is float64, else in float32; rounded once to the dtype.
 * A weight below the smallest normal number is 0. Errors are at the field's name: PE_ERR_MISSING,
 * PE_ERR_CONFLICT (at `encoding` for an absolute one with q and k), PE_ERR_SHAPE, PE_ERR_RANGE. */
PE_API int pe_attention_open(struct pe_arena *arena, struct pe_work *work, struct pe_attention_result *result,
                             const struct pe_attention_args *args, struct pe_error *err) PE_CHECKED;

/* Most of the work of shift, which is one part that cannot be shared: positions times width where the map is
 * exact, positions times width squared where it is fitted. */
#define PE_SHIFT_ITEMS_MAX (UINT64_C(1) << 24)
#define PE_SHIFT_WORK_MAX  (UINT64_C(1) << 28)

struct pe_shift_args {
    size_t size;
    const struct pe_plan *plan;
    double distance;                      /* any real number with |distance| <= 2^53 */
    const struct pe_positions *positions; /* [T] or [B, T]: where the map is tried, or fitted */
    bool matrix;                          /* the whole matrix too, where the map is exact */
};

/* All float64. rank 0 with data NULL: not there. residual and rms are single numbers (rank 0 with data). */
struct pe_shift_result {
    bool exact;                /* the map holds at every position; else it is the best fit to these */
    struct pe_tensor blocks;   /* exact: [D/2, 2, 2], each acting on its pair of columns */
    struct pe_tensor matrix;   /* [D, D] with matrix . PE(p) = PE(p + distance) */
    struct pe_tensor residual; /* the largest |matrix . PE(p) - PE(p + distance)|, but where one is padding */
    struct pe_tensor rms;      /* the root of their mean square */
};

/* shift: the linear map from PE(p) to PE(p + distance), which for sinusoids is a rotation of each pair and
 * the same at every position (Vaswani et al. 2017, section 3.5). Encodings without such a map get the
 * least-squares one, of minimum norm among the best, and what it misses. A zero column maps to zero, and a
 * column that a rotary encoding lets pass to itself; a sine without its cosine has no map: PE_ERR_UNSUPPORTED
 * at `encoding.d_model`. PE_ERR_RANGE at `distance` when a shifted position is not one of the encoding's;
 * PE_ERR_LIMIT on the work. */
PE_API int pe_shift_open(struct pe_arena *arena, struct pe_work *work, struct pe_shift_result *result,
                         const struct pe_shift_args *args, struct pe_error *err) PE_CHECKED;

enum pe_similarity_metric { PE_SIMILARITY_DOT = 1, PE_SIMILARITY_COSINE };
#define PE_SIMILARITY_WORK_MAX (UINT64_C(1) << 34) /* multiplications */

struct pe_similarity_args {
    size_t size;
    const struct pe_plan *plan;
    const struct pe_positions *positions; /* [T] or [B, T] */
    enum pe_similarity_metric metric;     /* default dot */
    /* Projections [D, n] of the vectors as queries and as keys: both, or random ones [D, D] from a seed,
     * normal with standard deviation 1/sqrt(D); or none. */
    const struct pe_tensor *w_q, *w_k;
    const int64_t *w_seed;
    enum pe_dtype dtype; /* of the results, which are made in float64; default float32 */
};

/* With an axis B in front for positions [B, T]. by_offset and spread are there where positions
 * go in even steps: element r + T-1 is the mean (and the largest less the smallest) of gram[i, i + r]. */
struct pe_similarity_result {
    struct pe_tensor gram;              /* [T, T] */
    struct pe_tensor by_offset, spread; /* [2T - 1] */
};

/* similarity: products (or cosines) of the vectors of all pairs of positions; of a rotary encoding the
 * vectors are the cosines and sines of its pairs. Where the product is a function of the distance, the spread
 * is zero but for rounding (Vaswani et al. 2017, section 3.5). PE_ERR_UNSUPPORTED at `encoding.type` for an
 * encoding without vectors, PE_ERR_LIMIT at `positions`. */
PE_API int pe_similarity_open(struct pe_arena *arena, struct pe_work *work,
                              struct pe_similarity_result *result, const struct pe_similarity_args *args,
                              struct pe_error *err) PE_CHECKED;

struct pe_properties_args {
    size_t size;
    const struct pe_plan *plan;
    const struct pe_plan *longer; /* the same for twice the length, where that is a parameter; or NULL */
    const struct pe_positions *positions; /* [T] */
};

/* [2] is the smallest and the largest. */
struct pe_properties {
    bool unique;
    double closest;         /* distance of the closest pair */
    size_t closest_pair[2]; /* their indices */
    bool bounded;
    double largest, largest_far; /* |x| here, and at ten times the positions */
    bool same_lengths;
    double length_change; /* the largest change of a number in a sequence twice as long */
    bool beyond;
    const char *beyond_text; /* why not */
    double norm[2], step[2]; /* of vectors, and of the change from one to the next */
    size_t parameters;       /* learned numbers */
    size_t bytes, flops;     /* of these vectors in float32; to use one */
};
struct pe_properties_result {
    const struct pe_properties *properties; /* ARENA; filled in by the work */
    struct pe_tensor wavelengths;           /* float64 [pairs], where there are frequencies; 0 for none */
};

/* properties: what a good encoding has, measured on the vectors of these positions: unique, bounded, the same
 * in sequences of any length, and there beyond them. Of a rotary encoding the vectors are the cosines and
 * sines of its pairs. PE_ERR_UNSUPPORTED at `encoding.type` for an encoding without vectors, PE_ERR_LIMIT at
 * `positions` (PE_SIMILARITY_WORK_MAX). */
PE_API int pe_properties_open(struct pe_arena *arena, struct pe_work *work,
                              struct pe_properties_result *result, const struct pe_properties_args *args,
                              struct pe_error *err) PE_CHECKED;

#define PE_HEAD_TOKENS_MAX 512

struct pe_head_args {
    size_t size;
    const struct pe_plan *plan;
    const struct pe_positions *positions; /* [T], evenly spaced, of the sequence it is tried on */
    bool first;                           /* look at the first token; else at the one so many on: */
    int64_t offset;                       /* -1 is the one before */
    bool causal;
    size_t width; /* of the head, even: the fastest pairs; default all of them; rotary: its own */
};

struct pe_head {
    bool possible;
    double gain;                  /* that w_q holds */
    size_t rows;                  /* queries that have the wanted token before them */
    double mass_least, mass_mean; /* weight on it */
    size_t tries;                 /* random heads, without an encoding; else 0 */
};
/* All float64. */
struct pe_head_result {
    struct pe_tensor w_q,
        w_k; /* [D, width]; of a rotary encoding [1, width], of a constant 1 in every token */
    struct pe_tensor weights;   /* [T, T] */
    const struct pe_head *head; /* ARENA; filled in by the work */
};

/* head: the weights of an attention head that looks k tokens back, or at the first token, in closed form from
 * the encoding's shift maps (Vaswani et al. 2017, section 3.5: "easily learn to attend by relative
 * positions"), and what it sees in a sequence without content. Without an encoding (type none) random heads
 * are tried on equal tokens, and none can. PE_ERR_UNSUPPORTED at `encoding.type` for an encoding without a
 * shift map; PE_ERR_RANGE at `positions`, `goal.attend`, `width`. */
PE_API int pe_head_open(struct pe_arena *arena, struct pe_work *work, struct pe_head_result *result,
                        const struct pe_head_args *args, struct pe_error *err) PE_CHECKED;

enum pe_rotary_layout { PE_ROTARY_HALVES = 1, PE_ROTARY_INTERLEAVED };

struct pe_convert_args {
    size_t size;
    enum pe_rotary_layout from, to;
    size_t head_dim, rotary_dim;    /* rotary_dim: default head_dim */
    size_t heads, kv_heads;         /* default 1, and heads */
    const struct pe_tensor *tensor; /* to be converted: a weight [out, in] or a bias [out]; or NULL */
    size_t axis;                    /* of its output rows: 1 for kernels [in, out] */
    bool keys;                      /* it makes keys, not queries */
    enum pe_dtype dtype;            /* of the converted tensor; default: its own */
};

/* The permutations are float64, all whole numbers. */
struct pe_convert_result {
    struct pe_tensor permutation;   /* of queries [heads*head_dim] */
    struct pe_tensor permutation_k; /* of keys [kv_heads*head_dim] */
    struct pe_tensor tensor;        /* shaped as the one posted */
};

/* convert: which rows of the weights that make queries and keys go where when a model moves from one rotary
 * layout to the other: W_new[i] = W_old[permutation[i]] for x.W^T weights, biases and quantised weights
 * alike. Scores stay the same, stored queries and keys do not. Errors are at the field's name. */
PE_API int pe_convert_open(struct pe_arena *arena, struct pe_work *work, struct pe_convert_result *result,
                           const struct pe_convert_args *args, struct pe_error *err) PE_CHECKED;

/* How numbers between those of a table are made (lib/kernels/resample.h has the formulas). */
enum pe_resample {
    PE_RESAMPLE_LINEAR = 1,         /* of the two nearest, by the distance to each */
    PE_RESAMPLE_BILINEAR,           /* the same; the name for two axes */
    PE_RESAMPLE_BILINEAR_ANTIALIAS, /* wider when shrinking */
    PE_RESAMPLE_BICUBIC,            /* a = -3/4, edges repeated: torch's interpolate */
    PE_RESAMPLE_BICUBIC_KEYS,       /* a = -1/2, edges repeated */
    PE_RESAMPLE_BICUBIC_ANTIALIAS   /* a = -1/2, edges left out, wider when shrinking: Pillow, jax, timm */
};

struct pe_resize_args {
    size_t size;
    const struct pe_tensor *table;   /* [rows, D] or [1, rows, D]; of a grid also [h, w, D] or [1, h, w, D] */
    size_t to_rows;                  /* a table in a line; or */
    size_t to_grid[2];               /* height and width: a grid, row by row */
    size_t from_grid[2];             /* default: a square of the rows that are not beside the grid */
    size_t prefix_rows, suffix_rows; /* before and behind what is resized, kept as they are */
    enum pe_resample kernel;
    bool align_corners;  /* ends stay at ends; default: centres of cells, half a step from the edges */
    enum pe_dtype dtype; /* of the result; default: the table's own */
};

/* convert's other half, resize: a learned table for sequences or images of another size, [rows, D] with as
 * many axes as it had. Sums are in float64 and rounded once. Errors are at `tensor` and the field's name. */
PE_API int pe_resize_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *resized,
                          const struct pe_resize_args *args, struct pe_error *err) PE_CHECKED;

struct pe_check_args {
    size_t size;
    const struct pe_plan *plan;
    const struct pe_positions *positions; /* [T] for all of the batch or [B, T]; default 0..T-1 */
    /* One table. Absolute encodings: tensor, vectors [T, D] or [B, T, D]. Rotary ones: cos and sin (or one of
     * them) in the forms half or full, packed, or complex; tensor is packed or complex, by its shape. */
    const struct pe_tensor *tensor, *cos, *sin, *packed, *as_complex;
    bool keys; /* rotary: as keys turn, where that differs (xPos) */
    /* Allowed is |got - exact| <= atol + rtol*|exact|. NULL: by the table's type float64 1e-7 and 1e-7,
     * float32 1.3e-6 and 1e-5, float16 1e-3 and 1e-5, bfloat16 1.6e-2 and 1e-5. */
    const double *rtol, *atol;
};

struct pe_check_bad {
    const char *tensor; /* the argument */
    size_t row, column; /* of the flattened [B*T, columns] */
    double position[PE_MAX_AXES];
    double got, exact;
};
struct pe_check_column {
    const char *tensor;
    size_t column;
    double max_abs;
};
/* Positions with from <= |p| < to; of several coordinates the largest counts. */
struct pe_check_octave {
    double from, to;
    size_t n; /* rows of tables */
    double max_abs;
};
#define PE_CHECK_COLUMNS 8
#define PE_CHECK_OCTAVES 55 /* [0, 1), [1, 2), [2, 4) ... up to positions of 2^53 */

struct pe_check_report {
    bool pass;
    double max_abs, max_ulp; /* max_ulp: in units of the last place of the exact value in the table's type */
    struct pe_check_bad first_bad;                    /* of the first row that fails; not when all pass */
    size_t n_columns;                                 /* those with the largest errors, if there are any */
    struct pe_check_column columns[PE_CHECK_COLUMNS]; /* in the order of their errors */
    struct pe_check_octave octaves[PE_CHECK_OCTAVES];
};

struct pe_check_result {
    double rtol, atol;                    /* as they were used */
    size_t length;                        /* T of the rows */
    bool batched;                         /* they are [B, T] */
    const struct pe_check_report *report; /* ARENA; filled in by the work */
};

/* check: a table that other code made against the exact one; with an encoding whose arithmetic is a replay,
 * against that. PE_ERR_SHAPE at the tensor or `positions`, PE_ERR_DTYPE where cos and sin differ. */
PE_API int pe_check_open(struct pe_arena *arena, struct pe_work *work, struct pe_check_result *result,
                         const struct pe_check_args *args, struct pe_error *err) PE_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
