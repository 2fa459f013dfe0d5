/* SPDX-License-Identifier: MIT
 *
 * Masks. All rules but `keep` leave one interval of keys for each query, so a mask costs two numbers per row,
 * nothing is ever stored as [Tq, Tk], and keys outside the interval are not even exponentiated:
 *
 *     i' = i + Tk - Tq                     the query's place among the keys: the last query is the last key
 *     causal        j <= i'                (Vaswani et al. 2017, section 3.2.3)
 *     window        i' - back <= j <= i' + ahead         (Beltagy et al. 2020; Mistral 7B: back, causal)
 *     lengths       j < lengths[b]         what follows is padding
 *     documents     first(i') <= j < end(i')             packed sequences do not see each other
 *
 * They are combined by "and", which for intervals is the largest first and the smallest end. `keep` may be
 * anything and becomes a row of 0 and -infinity that is added to the logits.
 */
#include "ops/mask.h"

#include "ops/operand.h"

#include <math.h>
#include <stdio.h>

#define CHUNK 128 /* numbers on the stack */

/* Element i of a tensor of whole numbers low..high. */
static int whole_read(const struct pe_tensor *tensor, size_t i, double high, size_t *out,
                      struct pe_error *err) {
    double value;
    const unsigned char *data = tensor->data;
    pe_dtype_load(tensor->dtype, data + i * pe_dtype_size(tensor->dtype), 1, &value);
    char path[sizeof err->path];
    if (!(value >= 0 && value <= high && value == floor(value))) {
        return pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(tensor, i, path, sizeof path),
                       "got %.17g, allowed are whole numbers from 0 to %.17g", value, high);
    }
    *out = (size_t)value;
    return PE_OK;
}

/* Whole numbers [n] into the arena. */
static const size_t *wholes_read(struct pe_arena *arena, const struct pe_tensor *tensor, double high,
                                 struct pe_error *err) {
    size_t *out = pe_arena_array(arena, tensor->dim[0], sizeof *out, err);
    for (size_t i = 0; out && i < tensor->dim[0]; i++) {
        if (whole_read(tensor, i, high, &out[i], err) || (i % PE_STOP_ITEMS == 0 && pe_error_poll(err))) {
            return NULL;
        }
    }
    return out;
}

static int shape_fail(const struct pe_tensor *tensor, const char *field, const char *wanted,
                      struct pe_error *err) {
    char shape[128];
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, %s",
                   pe_tensor_shape_text(tensor, shape, sizeof shape), wanted);
}

static int lengths_open(struct pe_arena *arena, struct pe_mask *out, const struct pe_tensor *lengths,
                        struct pe_error *err) {
    size_t batch = out->shape.batch ? out->shape.batch : 1;
    char wanted[80];
    snprintf(wanted, sizeof wanted, "allowed is [%zu], one length for each sequence", batch);
    if (lengths->rank != 1 || lengths->dim[0] != batch) {
        return shape_fail(lengths, "mask.lengths", wanted, err);
    }
    out->lengths = wholes_read(arena, lengths, (double)out->shape.keys, err);
    return out->lengths ? PE_OK : pe_error_at(err, "mask.lengths");
}

static int documents_open(struct pe_arena *arena, struct pe_mask *out, const struct pe_tensor *documents,
                          struct pe_error *err) {
    size_t keys = out->shape.keys, start = 0;
    if (documents->rank != 1) {
        return shape_fail(documents, "mask.documents", "allowed is [N], the lengths of the documents", err);
    }
    if (out->shape.queries > keys) {
        return pe_fail(err, PE_ERR_SHAPE, "mask.documents", "there are %zu queries but %zu keys to be packed",
                       out->shape.queries, keys);
    }
    const size_t *lengths = wholes_read(arena, documents, (double)keys, err);
    size_t *first = pe_arena_array(arena, keys, sizeof *first, err);
    size_t *end = pe_arena_array(arena, keys, sizeof *end, err);
    if (!lengths || !first || !end) {
        return pe_error_at(err, "mask.documents");
    }
    for (size_t d = 0; d < documents->dim[0]; d++) {
        for (size_t j = start; j < start + lengths[d] && j < keys; j++) {
            first[j] = start;
            end[j] = start + lengths[d];
        }
        start += lengths[d];
        if (start > keys) {
            break;
        }
    }
    if (start != keys) {
        return pe_fail(err, PE_ERR_SHAPE, "mask.documents",
                       "the lengths add up to %zu%s but there are %zu keys", start,
                       start > keys ? " or more" : "", keys);
    }
    out->document_first = first;
    out->document_end = end;
    return PE_OK;
}

/* The axes of keep as [b, q, k], each 1 or whole. */
static int keep_axes(const struct pe_tensor *keep, const struct pe_mask_shape *shape, size_t axes[3],
                     struct pe_error *err) {
    const char *allowed = "allowed are [Tk], [B, Tk], [Tq, Tk] and [B, Tq, Tk], axes of size 1 broadcast";
    axes[0] = axes[1] = 1;
    if (keep->rank < 1 || keep->rank > 3) {
        return shape_fail(keep, "mask.keep", allowed, err);
    }
    axes[2] = keep->dim[keep->rank - 1];
    if (keep->rank == 3) {
        axes[0] = keep->dim[0];
        axes[1] = keep->dim[1];
    } else if (keep->rank == 2 && keep->dim[0] != 1) {
        bool per_batch = keep->dim[0] == shape->batch, per_query = keep->dim[0] == shape->queries;
        if (per_batch && per_query) {
            return shape_fail(keep, "mask.keep",
                              "which may mean [B, Tk] or [Tq, Tk]: give it as [B, 1, Tk] or [1, Tq, Tk]",
                              err);
        }
        axes[per_batch ? 0 : 1] = keep->dim[0];
    }
    size_t batch = shape->batch ? shape->batch : 1;
    if ((axes[0] != 1 && axes[0] != batch) || (axes[1] != 1 && axes[1] != shape->queries) ||
        axes[2] != shape->keys) {
        char wanted[160];
        snprintf(wanted, sizeof wanted, "but B = %zu, Tq = %zu and Tk = %zu; %s", batch, shape->queries,
                 shape->keys, allowed);
        return shape_fail(keep, "mask.keep", wanted, err);
    }
    return PE_OK;
}

/* 1 and 0 become 0 and -infinity. */
static int keep_read(const struct pe_tensor *keep, enum pe_dtype real, unsigned char *hidden,
                     struct pe_error *err) {
    size_t n = pe_tensor_count(keep);
    double chunk[CHUNK];
    for (size_t first = 0, step; first < n; first += step) {
        step = n - first < CHUNK ? n - first : CHUNK;
        pe_dtype_load(keep->dtype, (const unsigned char *)keep->data + first * pe_dtype_size(keep->dtype),
                      step, chunk);
        if (pe_error_poll(err)) {
            return err->code;
        }
        for (size_t i = 0; i < step; i++) {
            if (chunk[i] != 0 && chunk[i] != 1) {
                char path[sizeof err->path];
                pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(keep, first + i, path, sizeof path),
                        "got %.17g, allowed are 0 and 1", chunk[i]);
                return pe_error_at(err, "mask.keep");
            }
            chunk[i] = chunk[i] != 0 ? 0 : -INFINITY;
        }
        pe_dtype_store(real, chunk, step, hidden + first * pe_dtype_size(real));
    }
    return PE_OK;
}

static int keep_open(struct pe_arena *arena, struct pe_mask *out, const struct pe_tensor *keep,
                     struct pe_error *err) {
    size_t axes[3], n = pe_tensor_count(keep), size = pe_dtype_size(out->shape.real);
    if (keep_axes(keep, &out->shape, axes, err)) {
        return err->code;
    }
    struct pe_tensor hidden;
    if (pe_tensor_alloc(arena, &hidden, out->shape.real, 1, &n, err)) {
        return pe_error_at(err, "mask.keep");
    }
    if (keep_read(keep, out->shape.real, hidden.data, err)) {
        return err->code;
    }
    out->hidden = hidden.data;
    out->hidden_row = axes[1] == 1 ? 0 : axes[2] * size;
    out->hidden_batch = axes[0] == 1 ? 0 : axes[1] * axes[2] * size;
    return PE_OK;
}

static int window_open(struct pe_mask *out, const struct pe_attention_mask *mask, struct pe_error *err) {
    const int64_t most = INT64_C(1) << 53, *w = mask->window;
    if (mask->n_window < 0 || mask->n_window > 2) {
        return pe_fail(err, PE_ERR_SHAPE, "mask.window", "got %d numbers, allowed are one or two",
                       mask->n_window);
    }
    int64_t least = mask->n_window == 1 ? 1 : 0;
    for (int i = 0; i < mask->n_window; i++) {
        if (w[i] < least || w[i] > most) {
            return pe_fail(err, PE_ERR_RANGE, "mask.window", "got %lld, allowed are %lld to 2^53",
                           (long long)w[i], (long long)least);
        }
    }
    out->windowed = mask->n_window > 0;
    out->back = mask->n_window == 1 ? w[0] - 1 : w[0];
    out->ahead = mask->n_window == 1 ? w[0] - 1 : w[1];
    return PE_OK;
}

int pe_mask_open(struct pe_arena *arena, struct pe_mask *out, const struct pe_attention_mask *theirs,
                 const struct pe_mask_shape *shape, struct pe_error *err) {
    struct pe_attention_mask mask;
    *out = (struct pe_mask){.shape = *shape};
    if (!theirs || pe_args_copy(&mask, sizeof mask, theirs, theirs->size, err)) {
        return err->code;
    }
    out->causal = mask.causal;
    if (window_open(out, &mask, err) || (mask.lengths && lengths_open(arena, out, mask.lengths, err)) ||
        (mask.documents && documents_open(arena, out, mask.documents, err)) ||
        (mask.keep && keep_open(arena, out, mask.keep, err))) {
        return err->code;
    }
    return PE_OK;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

void pe_mask_row(const struct pe_mask *mask, size_t b, size_t i, struct pe_softmax *row) {
    int64_t place = (int64_t)i + (int64_t)mask->shape.keys - (int64_t)mask->shape.queries;
    int64_t first = 0, end = (int64_t)mask->shape.keys;
    if (mask->lengths) {
        end = (int64_t)mask->lengths[b];
    }
    if (mask->causal) {
        end = smaller(end, place + 1);
    }
    if (mask->windowed) {
        first = larger(first, place - mask->back);
        end = smaller(end, place + mask->ahead + 1);
    }
    if (mask->document_end) {
        first = larger(first, (int64_t)mask->document_first[place]);
        end = smaller(end, (int64_t)mask->document_end[place]);
    }
    row->first = first < end ? (size_t)first : 0;
    row->end = first < end ? (size_t)end : 0;
    row->hidden = mask->hidden ? mask->hidden + b * mask->hidden_batch + i * mask->hidden_row : NULL;
}
