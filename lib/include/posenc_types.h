/* SPDX-License-Identifier: MIT
 *
 * The values of libposenc: errors, memory, element types and tensors, positions. Part of posenc.h, which
 * explains the whole.
 */
#ifndef POSENC_TYPES_H
#define POSENC_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PE_CHECKED             __attribute__((warn_unused_result))
#define PE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PE_API                 __attribute__((visibility("default")))
#else
#define PE_CHECKED
#define PE_PRINTF(text, first)
#define PE_API
#endif

/* ---- Errors ------------------------------------------------------------------------------------------ */

enum pe_code {
    PE_OK = 0,
    PE_ERR_MISSING,       /* a required field was not given */
    PE_ERR_UNKNOWN_FIELD, /* a field that does not exist here */
    PE_ERR_UNKNOWN_NAME,  /* no such type, preset, table or tensor */
    PE_ERR_TYPE,          /* a value of the wrong kind */
    PE_ERR_CHOICE,        /* a name that is not among the choices */
    PE_ERR_RANGE,         /* a number outside what is allowed */
    PE_ERR_SHAPE,         /* a tensor of the wrong rank or size */
    PE_ERR_DTYPE,         /* an element type that is not allowed here */
    PE_ERR_NONFINITE,     /* NaN or an infinity */
    PE_ERR_CONFLICT,      /* two fields that contradict each other */
    PE_ERR_SYNTAX,        /* text that cannot be parsed */
    PE_ERR_FORMAT,        /* a malformed npy or safetensors file */
    PE_ERR_UNSUPPORTED,   /* this encoding cannot do this operation */
    PE_ERR_LIMIT,         /* over a limit on size, memory or work */
    PE_ERR_MEMORY,        /* the system has no memory left */
    PE_ERR_STOPPED,       /* it was asked to end early, see struct pe_stop */
    PE_ERR_COUNT,
    PE_ERR_HOST = 100 /* programs that embed the library number their own codes from here */
};

/* Should long work end early? Whoever gives one is asked again and again, from every thread that works for
 * him, until he says yes; then he must stay with it. A VIEW, as is its context. */
struct pe_stop {
    bool (*asked)(void *context);
    void *context;
};
PE_API bool pe_stop_asked(const struct pe_stop *stop); /* NULL: never */

/* One failure. Zero is "none": clear it whole before its first use, `= {0}`, as a later version may have more
 * members (before 1.0 they are only added, to other structs as well, and programs are compiled anew). The
 * path names the field as the caller wrote it, e.g. `encoding.base`, `embeddings[1][3]`; "" is the whole. For
 * PE_ERR_LIMIT, limit and got hold the two numbers and limit_name (static text or NULL) says which limit it
 * was.
 *
 * Being stopped is a failure, too: where `stop` is set, every function that takes the error and may be long
 * asks it at least every few milliseconds, and fails with PE_ERR_STOPPED; so does work that was opened with
 * it, whose results then mean nothing. */
struct pe_error {
    int code;
    char path[160];
    char text[512];
    const char *limit_name;
    uint64_t limit, got;
    const struct pe_stop *stop; /* VIEW; NULL: nothing stops it */
};

/* Sets err unless it already holds a failure; returns the code that err now holds. `path` may be "". Path and
 * text end up as one line of valid UTF-8 whatever bytes they repeat, cut with "..." where too long. */
PE_API int pe_fail(struct pe_error *err, int code, const char *path, const char *format, ...) PE_PRINTF(4, 5);
/* The same for a limit: `name` is kept by reference and must be static. */
PE_API int pe_fail_limit(struct pe_error *err, const char *path, const char *name, uint64_t limit,
                         uint64_t got, const char *format, ...) PE_PRINTF(6, 7);
/* PE_ERR_STOPPED when err->stop asks for it. Returns err->code. */
PE_API int pe_error_poll(struct pe_error *err);
/* Puts `segment` before the path: a layer adds only what it knows. Returns err->code. */
PE_API int pe_error_at(struct pe_error *err, const char *segment);
/* "range", "unknown_field" ...: the slug of a code; NULL for a code that is not the library's. */
PE_API const char *pe_code_slug(int code);
/* "value out of range": the code in words. */
PE_API const char *pe_code_title(int code);

/* ---- Arena: memory with a hard limit ------------------------------------------------------------------ */

struct pe_arena;

/* Where big blocks come from; NULL members mean malloc and free. `bytes` is the same in both calls. */
struct pe_allocator {
    void *(*alloc)(void *context, size_t bytes);
    void (*release)(void *context, void *block, size_t bytes);
    void *context;
};

/* HANDLE. Its pieces take at most `limit` bytes together; `allocator` (copied) may be NULL. NULL on failure.
 */
PE_API struct pe_arena *pe_arena_open(size_t limit, const struct pe_allocator *allocator,
                                      struct pe_error *err);
PE_API void pe_arena_close(struct pe_arena *arena);
/* ARENA memory, 64-byte aligned, not cleared. NULL with PE_ERR_LIMIT or PE_ERR_MEMORY. bytes 0 is allowed
 * and gives a pointer that may not be read. A piece counts as its size rounded up to 64, but the last one may
 * fill the limit to the byte. */
PE_API void *pe_arena_alloc(struct pe_arena *arena, size_t bytes, struct pe_error *err);
/* n items of `size` bytes, cleared; the product is checked. */
PE_API void *pe_arena_array(struct pe_arena *arena, size_t n, size_t size, struct pe_error *err);
/* A copy of a text with its terminating zero. */
PE_API char *pe_arena_text(struct pe_arena *arena, const char *text, size_t length, struct pe_error *err);
/* Counts bytes that were taken elsewhere (a plan's) against the limit: PE_ERR_LIMIT when they are too many.
 */
PE_API int pe_arena_charge(struct pe_arena *arena, size_t bytes, struct pe_error *err) PE_CHECKED;
/* They were given back: no longer counts them. */
PE_API void pe_arena_discharge(struct pe_arena *arena, size_t bytes);
/* Bytes taken so far, and the limit. */
PE_API size_t pe_arena_used(const struct pe_arena *arena);
PE_API size_t pe_arena_limit(const struct pe_arena *arena);

struct pe_tensor;
/* Who is asked before an operation takes memory for tensors that it returns, each of them by dtype and shape,
 * without data: what could not be sent on is refused, by an error, before there is any. */
struct pe_result_rule {
    int (*allowed)(void *context, const struct pe_tensor *shape, struct pe_error *err);
    void *context;
};
/* The rule (copied) for all that is opened in this arena from now on; NULL: none. What would not fit in the
 * arena is not asked for, and fails as other memory does. */
PE_API void pe_arena_rule_results(struct pe_arena *arena, const struct pe_result_rule *rule);

/* ---- Element types and tensors ------------------------------------------------------------------------ */

enum pe_dtype {
    PE_DTYPE_NONE = 0, /* not chosen */
    PE_DTYPE_F64,
    PE_DTYPE_F32,
    PE_DTYPE_F16,
    PE_DTYPE_BF16,
    PE_DTYPE_COUNT
};

PE_API size_t pe_dtype_size(enum pe_dtype dtype);      /* bytes of one element */
PE_API const char *pe_dtype_name(enum pe_dtype dtype); /* "float32" ... */
PE_API enum pe_dtype pe_dtype_find(const char *name);  /* PE_DTYPE_NONE when unknown */
/* n elements to and from doubles. To a narrower type: one rounding, to nearest even, overflow to infinity. */
PE_API void pe_dtype_load(enum pe_dtype dtype, const void *in, size_t n, double *out);
PE_API void pe_dtype_store(enum pe_dtype dtype, const double *in, size_t n, void *out);

#define PE_MAX_RANK 8

/* VIEW of elements in C order (last axis fastest). Copy it freely; it owns nothing. rank 0 is one number. */
struct pe_tensor {
    void *data;
    enum pe_dtype dtype;
    int rank;
    size_t dim[PE_MAX_RANK];
};

PE_API size_t pe_tensor_count(const struct pe_tensor *tensor); /* number of elements */
PE_API size_t pe_tensor_bytes(const struct pe_tensor *tensor);
/* a*b*c... with overflow told apart: false when the product does not fit size_t. */
PE_API bool pe_size_product(const size_t *factors, size_t n, size_t *product);
/* All elements as doubles. */
PE_API int pe_tensor_load(const struct pe_tensor *tensor, double *out, struct pe_error *err) PE_CHECKED;
/* out becomes an ARENA tensor of that shape, elements not cleared. */
PE_API int pe_tensor_alloc(struct pe_arena *arena, struct pe_tensor *out, enum pe_dtype dtype, int rank,
                           const size_t *dim, struct pe_error *err) PE_CHECKED;
/* Asks the arena's rule whether a result of this shape may be made. Once for each, before memory is taken for
 * the first: a request that is refused has then taken nothing from others. */
PE_API int pe_result_ask(struct pe_arena *arena, enum pe_dtype dtype, int rank, const size_t *dim,
                         struct pe_error *err) PE_CHECKED;
/* out views `in` when it has that dtype already, else an ARENA copy converted with one rounding.
 * A finite element that becomes infinite is PE_ERR_RANGE at its index. */
PE_API int pe_tensor_convert(struct pe_arena *arena, struct pe_tensor *out, const struct pe_tensor *in,
                             enum pe_dtype dtype, struct pe_error *err) PE_CHECKED;
/* PE_ERR_NONFINITE at the index of the first NaN or infinity; -infinity passes when allow_minus_inf. */
PE_API int pe_tensor_check_finite(const struct pe_tensor *tensor, bool allow_minus_inf,
                                  struct pe_error *err) PE_CHECKED;
/* "[2, 5, 16]" into text; returns text. */
PE_API char *pe_tensor_shape_text(const struct pe_tensor *tensor, char *text, size_t size);
/* "[1][3]", the path of element i (counted in C order), into text; returns text. */
PE_API char *pe_tensor_index_text(const struct pe_tensor *tensor, size_t i, char *text, size_t size);

/* ---- Positions ---------------------------------------------------------------------------------------- */

#define PE_POSITION_MAX 9007199254740992.0 /* 2^53: |p| beyond it is refused */

/* Positions [B, T, axes] as a VIEW: a list, or (list NULL) the progression start + i*step, rounded once,
 * which takes no memory however long it is. batch 0 means there is no batch axis: [T, axes]. */
struct pe_positions {
    size_t batch;
    size_t length; /* T */
    int axes;      /* coordinates of one position, usually 1 */
    const double *list;
    double start, step;
    bool by_rule; /* made by a rule (mask, lengths, grid, sample): a reply says which they were */
    bool of_grid; /* by that of a grid, before which class tokens may stand */
};

/* How positions were described: a range, a grid, a mask with a rule, lengths of packed documents, a
 * sample. */
struct pe_positions_rule {
    uint64_t given; /* see posenc_fields.h */
    double start, step;
    int64_t count;
    const struct pe_tensor *grid;    /* [axes] sizes, row-major */
    const struct pe_tensor *mask;    /* [T] or [B, T], 1 = token, 0 = padding */
    int rule;                        /* enum pe_position_rule */
    int64_t padding_idx;             /* for roberta and fairseq; default 1 */
    const struct pe_tensor *lengths; /* [N] lengths of the documents packed one after the other */
    const struct pe_tensor *sample;  /* [2], T and L: T of the whole numbers below L, in order */
    int64_t seed;                    /* of sample */
};

enum pe_position_rule {
    PE_POSITION_RULE_BERT = 1, /* 0..T-1 whatever the mask */
    PE_POSITION_RULE_ROBERTA,  /* cumsum(mask)*mask + padding_idx */
    PE_POSITION_RULE_OPT,      /* cumsum(mask)*mask - 1 + 2: the table row */
    PE_POSITION_RULE_GPT2,     /* cumsum(mask) - 1, padding filled with 1 */
    PE_POSITION_RULE_BLOOM,    /* (cumsum(mask) - 1)*mask */
    PE_POSITION_RULE_FAIRSEQ   /* as roberta: the row of the sinusoidal table */
};

/* The largest padding_idx. */
#define PE_PADDING_IDX_MAX 2147483647

/* What embeddings are multiplied by before an encoding is added. */
enum pe_embedding_scale {
    PE_EMBEDDING_SCALE_NONE = 0, /* 1 */
    PE_EMBEDDING_SCALE_NUMBER,   /* a number given beside */
    PE_EMBEDDING_SCALE_SQRT_D_MODEL
};

/* Coordinates that an encoding's position has at most. */
#define PE_MAX_AXES 4

PE_API size_t pe_positions_count(const struct pe_positions *positions); /* max(batch,1)*length */
/* start, start+step ... below (or, with a negative step, above) stop. An empty range is allowed; PE_ERR_RANGE where
 * doubles are further from each other than a step. */
PE_API int pe_positions_range(struct pe_positions *out, double start, double stop, double step,
                              struct pe_error *err) PE_CHECKED;
PE_API int pe_positions_steps(struct pe_positions *out, double start, double step, size_t count,
                              struct pe_error *err) PE_CHECKED;
/* One axis: "0:100", "5:0:-1", "7", "0,1,2.5", "[0,1,2.5]" [T], "[[0,1],[1,2]]" [B, T]; and [B, T, axes] for
 * 2 to PE_MAX_AXES of them. Numbers as in JSON. Lists become ARENA memory. */
PE_API int pe_positions_parse(struct pe_arena *arena, struct pe_positions *out, const char *text,
                              struct pe_error *err) PE_CHECKED;
/* From a tensor of numbers: [T], [B, T] for one axis; [T, axes], [B, T, axes] for more. Converted to
 * doubles in the arena. */
PE_API int pe_positions_tensor(struct pe_arena *arena, struct pe_positions *out,
                               const struct pe_tensor *tensor, int axes, struct pe_error *err) PE_CHECKED;
PE_API int pe_positions_make(struct pe_arena *arena, struct pe_positions *out,
                             const struct pe_positions_rule *rule, struct pe_error *err) PE_CHECKED;
/* Positions first .. first+n-1 of the flattened [B*T, axes] into out [n, axes]. */
PE_API void pe_positions_read(const struct pe_positions *positions, size_t first, size_t n, double *out);
/* All of them. */
PE_API int pe_positions_fill(const struct pe_positions *positions, double *out,
                             struct pe_error *err) PE_CHECKED;

struct pe_plan;
/* [B, T] read as [T, axes], where that is what the encoding takes: rows of as many numbers as it has
 * coordinates. */
PE_API void pe_positions_suit(const struct pe_plan *plan, struct pe_positions *positions);
/* Puts the tokens in front that an encoding has before a grid (cls_rows), where the positions are a grid's:
 * all their coordinates are -1. */
PE_API int pe_positions_lead(struct pe_arena *arena, const struct pe_plan *plan,
                             struct pe_positions *positions, struct pe_error *err) PE_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
