/* SPDX-License-Identifier: MIT
 *
 * What the operations share: reading their arguments and posted tensors.
 */
#ifndef PE_OPERAND_H
#define PE_OPERAND_H

#include "core/stop.h"
#include "encodings/encoding.h"

/* A caller's struct of arguments, which may be older (shorter) or newer than ours, into ours [size bytes];
 * the rest is cleared. A newer one may ask for what this library does not know: only zeros may be there. */
int pe_args_copy(void *ours, size_t size, const void *theirs, size_t their_size, struct pe_error *err);

/* PE_ERR_DTYPE at `dtype` when that is none of the types. */
int pe_dtype_check(enum pe_dtype dtype, struct pe_error *err);

/* A posted tensor, checked and ready for arithmetic in `real` (float32 or float64). */
struct pe_operand {
    struct pe_tensor tensor; /* aligned, of dtype real: a view of what was posted, or an arena copy */
    double largest;          /* of the finite |x| */
};

/* `name` is the field. minus_infinity: allowed. */
struct pe_operand_rule {
    const char *name;
    enum pe_dtype real;
    bool minus_infinity;
};
int pe_operand_read(struct pe_arena *arena, struct pe_operand *out, const struct pe_tensor *in,
                    const struct pe_operand_rule *rule, struct pe_error *err);

/* The tensor of apply's result: of its own, or the embeddings themselves. */
int pe_operand_result(struct pe_arena *arena, struct pe_tensor *out, const struct pe_apply_args *args,
                      enum pe_dtype dtype, struct pe_error *err);

/* What embeddings are multiplied by. */
struct pe_operand_scale {
    enum pe_embedding_scale mode;
    double number;
};
/* As a number of type `real`; errors are at `embedding_scale`. */
int pe_operand_scale_read(const struct pe_operand_scale *scale, size_t width, enum pe_dtype real, double *out,
                          struct pe_error *err);

/* Is it added to embeddings? */
bool pe_encoding_adds(const struct pe_encoding *row);
/* PE_ERR_UNSUPPORTED at `encoding.type`: "alibi <cannot>; it can: bias, attention". */
int pe_encoding_unsupported(const struct pe_encoding *row, const char *cannot, struct pe_error *err);
/* Coordinates of its positions. */
int pe_plan_axes(const struct pe_plan *plan);
/* A rough cost of one vector of this type. */
double pe_encoding_row_ns(const struct pe_plan *plan, enum pe_dtype dtype);
/* Positions as the encoding takes them, for sequences of this length: a list of lists is rows [T, axes], but
 * where only [B, T] fits. */
struct pe_positions pe_positions_for(const struct pe_plan *plan, const struct pe_positions *given,
                                     size_t batch, size_t length);
/* The positions of an image [rows, columns], row by row, where the encoding takes two coordinates. */
int pe_positions_image(struct pe_arena *arena, struct pe_positions *out, const struct pe_plan *plan,
                       const size_t image[2], struct pe_error *err);
/* The positions for n rows [batch, length]: PE_ERR_SHAPE at `field` otherwise. batch 0: no such axis. The
 * plan tells how many coordinates the message speaks of; whether its encoding takes as many as there are is for
 * pe_positions_admit to say. Without a plan, NULL, there is one. */
int pe_positions_fit(const struct pe_plan *plan, const struct pe_positions *positions, size_t batch,
                     size_t length, const char *field, struct pe_error *err);
/* Does the encoding take these positions, and do its vectors fit the dtype? Errors are at `field`. */
int pe_positions_admit(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                       const char *field, struct pe_error *err);
/* The same where vectors are made (the hooks `encode` and, of several coordinates, `encode_axes`). */
int pe_vectors_admit(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                     const char *field, struct pe_error *err);
/* Fails as `wrong` says of n positions that nobody gave: they are as many as `source` has tokens. */
int pe_positions_not_given(const struct pe_error *wrong, size_t n, const char *field, const char *source,
                           struct pe_error *err);
/* pe_positions_admit for positions that were not given, but are 0, 1, 2 ...: those that the encoding does not take are
 * too many tokens of `source`. */
int pe_positions_admit_default(const struct pe_plan *plan, const struct pe_positions *positions,
                               enum pe_dtype dtype, const char *field, const char *source,
                               struct pe_error *err);
/* Is every |value| of the vectors of these positions, which were admitted, below limit? false also when
 * `stop` asked for an end. */
bool pe_encoding_below(const struct pe_plan *plan, const struct pe_positions *positions, double limit,
                       const struct pe_stop *stop);
/* encode.c: rows first .. first+n-1 of the vectors into out [n, D]. What is not done when `stop` asks for an
 * end is left as it was. */
struct pe_rows {
    const struct pe_plan *plan;
    const struct pe_positions *positions;
    enum pe_dtype dtype;
    const struct pe_stop *stop;
    bool far; /* see pe_plan_view */
};
void pe_rows_encode(const struct pe_rows *rows, size_t first, size_t n, void *out);
/* The largest |x| of [n] numbers, as pe_vector_largest; any number when err->stop asks for an end, and then
 * err says so. */
double pe_largest_find(enum pe_dtype dtype, const void *x, size_t n, bool skip_minus_infinity,
                       struct pe_error *err);

#endif
