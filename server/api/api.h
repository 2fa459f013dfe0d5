/* SPDX-License-Identifier: MIT
 *
 * The operation row: what one file in this folder provides. Its fields describe the request, its `open`
 * checks it, plans it and declares the result; what remains is work in parts. To add an operation: one file
 * with one const row, and one line in ops.c.
 */
#ifndef API_H
#define API_H

#include "service.h"
#include "wire/result.h"

#include <stdatomic.h>

/* Fields that every operation takes. */
struct api_common {
    uint64_t given;
    int dtype;              /* of the result; 0 = as posted, else float32 */
    const char *format;     /* of the reply: its name */
    bool flat;              /* JSON: flat data */
    struct pe_names wanted; /* `return`: the tensors to send; none given = the operation's default */
    const void *png;        /* struct picture_look */
    struct pe_ints shape;   /* of a raw body */
    int body_dtype;         /* of a raw body */
};

extern const struct pe_field api_common_fields[];
extern const size_t api_common_n_fields;     /* without those of a raw body, which come last */
extern const size_t api_common_n_fields_raw; /* with them */

/* As what rotary encodings turn a vector. */
enum api_role { API_ROLE_QUERY = 1, API_ROLE_KEY };
extern const struct pe_choice api_roles[];

/* embedding_scale: the names beside a number, and how it was given. */
extern const struct pe_choice api_embedding_scales[];
enum pe_embedding_scale api_embedding_scale_mode(const struct pe_scale *scale, bool given);

/* mask.c: the mask of attention. */
struct api_mask {
    uint64_t given;
    bool causal;
    const struct pe_tensor *lengths, *documents, *keep;
    struct pe_ints window;
};
#define API_MASK_FIELDS 5
extern const struct pe_field api_mask_fields[];
int api_mask_make(const struct api_mask *in, struct pe_attention_mask *out, struct pe_error *err);

#define API_MAX_PLANS 2

/* Long loops over plain numbers handle so many between two questions whether to stop: under a millisecond. */
#define API_STOP_ITEMS ((size_t)1 << 16)
/* The next so many of n, of which `done` are done. */
static inline size_t api_stop_step(size_t n, size_t done) {
    return n - done < API_STOP_ITEMS ? n - done : API_STOP_ITEMS;
}

/* One operation being carried out. */
struct task {
    const struct service *service;
    const struct api_op *op;
    struct pe_arena *arena;
    struct api_common common;
    void *request;        /* op->request_size, laid out by op->fields */
    enum pe_dtype posted; /* of the posted tensors; NONE without any */
    bool stream_ok;       /* the reply may be made while it is sent (GET) */
    struct result result;
    struct pe_work work;
    const char *encoding_json; /* the resolved encoding; NULL = the operation has none */
    struct pe_plan *plans[API_MAX_PLANS];
    size_t n_plans;
    struct narrow *narrow; /* narrow.c */
    struct pe_error err;
};

struct api_op {
    const char *name, *doc;
    const char *get, *post; /* "GET /v1/encode", "POST /v1/encode"; NULL = not by that method */
    bool batch;             /* a list of other operations, carried out by the call itself */
    bool brief;             /* its opening is short where its query is: it takes no memory for results */
    size_t request_size;
    const struct pe_field *fields;
    size_t n_fields;
    const char *tensor;  /* the field that an npy or raw body fills; NULL = none */
    const char *tensors; /* the names it may return, for messages: "weights, logits" */
    int (*admits)(const struct pe_encoding_info *encoding, struct pe_error *err); /* NULL = all of them */
    int (*open)(struct task *task, struct pe_error *err);
};

/* The operations, in the order of the documentation (ops.c). */
size_t api_op_count(void);
const struct api_op *api_op_at(size_t i);
const struct api_op *api_op_find(const char *name);

/* task.c: steps that operations share. */

/* All memory and checks of a task whose request is bound: what cannot be done with the encoding, required fields, then op->open. */
int task_open(struct task *task, struct pe_error *err);
void task_close(struct task *task);
/* The dtype of the result: asked, else posted, else float32. */
enum pe_dtype task_dtype(const struct task *task);
/* Are these bytes of numbers so many that a GET streams them? */
bool task_is_large(const struct task *task, size_t bytes);
/* The plan of an encoding, closed with the task. width and length are what the data say (0 = nothing). Puts
 * the resolved encoding first in the result. Error paths start with "encoding". */
int task_plan(struct task *task, struct pe_plan **plan, struct pe_spec *spec, size_t width, size_t length,
              struct pe_error *err);
/* The same for embeddings x [.., T, D], which the encoding may follow. */
int task_plan_embeddings(struct task *task, struct pe_plan **plan, struct pe_spec *spec,
                         const struct pe_tensor *x, struct pe_error *err);
/* Their shape, [B, T, axes] without what is not there, into dim [3]; returns its rank. */
int task_positions_shape(const struct pe_positions *positions, size_t *dim);
/* Positions that a rule made, into the result: a VIEW. Others the caller knows. */
void task_echo_positions(struct task *task, const char *name, const struct pe_positions *positions);
/* The same of those that a request's field `name` gave, with the class tokens that the encoding (NULL: none)
 * has before a grid. */
int task_place(struct task *task, const struct pe_plan *plan, const char *name,
               struct pe_positions *positions, struct pe_error *err);
/* The same of the field positions, which become rows of the encoding's coordinates. */
int task_positions(struct task *task, const struct pe_plan *plan, struct pe_positions *positions,
                   struct pe_error *err);
/* `warnings` of the result, where the encoding can hardly tell these positions apart. */
int task_warn(struct task *task, const struct pe_plan *plan, const struct pe_positions *positions,
              struct pe_error *err);
/* Is this tensor wanted? `by_default` where the request has no `return`. */
bool task_wants(const struct task *task, const char *name, bool by_default);
/* What the plan found out, as JSON fields of the result. */
int task_facts(struct task *task, const struct pe_plan *plan, struct pe_error *err);
/* end.c: work in parts, and something to be done after the last of them. */
struct api_end {
    struct pe_work work;
    atomic_size_t *undone; /* parts; ARENA */
};
/* end takes the place of the task's work, whose state and run the operation sets next. */
int task_end_open(struct task *task, struct api_end *end, struct pe_error *err);
/* Runs a part. true: all are done, and nobody asked to stop. */
bool api_end_reached(const struct api_end *end, size_t part);
/* Declares a result that the work makes in float64 as one in `dtype`. After the operation has set the work;
 * at most four, and then no other run is put in its place. */
int task_narrow(struct task *task, const char *name, const struct pe_tensor *wide, enum pe_dtype dtype,
                struct pe_error *err);
struct text; /* wire/text.h */
/* A text as a JSON field of the result, in the arena. Frees the text. */
int task_json(struct task *task, const char *name, struct text *text, struct pe_error *err);
/* A number as a JSON field of the result. */
int task_number(struct task *task, const char *name, double value, struct pe_error *err);

#endif
