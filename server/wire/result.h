/* SPDX-License-Identifier: MIT
 *
 * What an operation answers with: named tensors and pieces of JSON, in order. An operation declares them
 * before it computes, so that sizes and formats are checked first; the reply is written from the same list.
 */
#ifndef RESULT_H
#define RESULT_H

#include "posenc_fields.h"

#define RESULT_MAX 16

/* A piece of JSON that is known only when the work is done, which writes it: at most `room` bytes. */
struct result_late {
    char *text; /* [room] */
    size_t n, room;
};

struct result_item {
    const char *name;
    const char *json;               /* a piece of JSON, or */
    const struct result_late *late; /* one that is written later, or both NULL: a tensor */
    struct pe_tensor tensor;        /* data NULL: made row by row, by `rows` */
    void (*rows)(const void *state, size_t first, size_t n, void *out); /* out [n, last axis] */
    const void *state;
    bool minus_inf; /* -infinity may occur; JSON writes null */
    bool bare;      /* numbers alone, a field of the JSON reply */
};

struct result {
    struct result_item items[RESULT_MAX];
    size_t n;
};

/* Appends; names and json are VIEWS that outlive the result. More than RESULT_MAX is a programming error. */
void result_tensor(struct result *result, const char *name, const struct pe_tensor *tensor);
/* Numbers without shape and type, as a field of the JSON reply; one number where the rank is 0. */
void result_numbers(struct result *result, const char *name, const struct pe_tensor *numbers);
void result_json(struct result *result, const char *name, const char *json);
void result_json_late(struct result *result, const char *name, const struct result_late *late);
/* Is it a tensor that every format must hold? */
bool result_is_tensor(const struct result_item *item);
/* Is it a list of numbers beside the tensors: positions that a rule made? safetensors holds it as a tensor.
 */
bool result_is_list(const struct result_item *item);
size_t result_n_tensors(const struct result *result);
/* The first tensor; NULL when there is none. */
const struct result_item *result_first(const struct result *result);
/* A tensor that came out with NaN or an infinity is PE_ERR_NONFINITE at its name and index. */
int result_check_finite(const struct result *result, struct pe_error *err);

#endif
