/* SPDX-License-Identifier: MIT
 *
 * What attention is given: either q, k, v (attention_posted.c), or embeddings with weights (attention_embed.c).
 * Both become streams of vectors per head, and the rest of attention does not know which it was. Along the way
 * every size is compared with those before it, and every magnitude kept, to know before the run that no product
 * can overflow.
 */
#include "ops/attention_input.h"

#include "core/scale.h"
#include "kernels/vector.h"

#include <math.h>

int pe_reader_operand(const struct pe_reader *r, struct pe_operand *out, const struct pe_tensor *in,
                      const char *field, struct pe_error *err) {
    struct pe_operand_rule rule = {.name = field, .real = r->a->real};
    return pe_operand_read(r->arena, out, in, &rule, err);
}

int pe_reader_own(struct pe_reader *r, enum pe_stream_name name, struct pe_error *err) {
    struct pe_attention *a = r->a;
    struct pe_stream *s = &a->stream[name];
    struct pe_tensor own;
    a->projects = true;
    if (s->w) {
        return PE_OK;
    }
    if (pe_tensor_alloc(r->arena, &own, a->real, 4, (size_t[4]){a->batch, s->heads, s->rows, s->width},
                        err)) {
        return pe_error_at(err, r->args->q ? (name == PE_STREAM_Q ? "q" : "k") : "embeddings");
    }
    s->source = s->data;
    s->source_batch = s->batch;
    s->source_head = s->head;
    s->source_ld = s->ld;
    s->data = s->projected = own.data;
    s->ld = s->width;
    s->head = s->rows * s->width;
    s->batch = s->heads * s->head;
    return PE_OK;
}

static int bias_read(struct pe_reader *r, struct pe_error *err) {
    const struct pe_tensor *in = r->args->bias;
    struct pe_attention *a = r->a;
    if (!in) {
        return PE_OK;
    }
    struct pe_tensor full = {.rank = 4, .dim = {a->batch, a->heads, a->queries, a->keys}};
    size_t dim[4] = {1, 1, 1, 1}, lead = 4 - (size_t)in->rank;
    bool fits = in->rank >= 1 && in->rank <= 4;
    for (size_t i = 0; fits && i < (size_t)in->rank; i++) {
        dim[lead + i] = in->dim[i];
        fits = in->dim[i] == full.dim[lead + i] || (in->dim[i] == 1 && lead + i < 3);
    }
    char got[128], wanted[128];
    if (!fits) {
        return pe_fail(
            err, PE_ERR_SHAPE, "bias", "has shape %s, which does not broadcast to [B, H, Tq, Tk] = %s",
            pe_tensor_shape_text(in, got, sizeof got), pe_tensor_shape_text(&full, wanted, sizeof wanted));
    }
    struct pe_operand operand;
    struct pe_operand_rule rule = {.name = "bias", .real = a->real, .minus_infinity = true};
    if (pe_operand_read(r->arena, &operand, in, &rule, err)) {
        return err->code;
    }
    a->bias.data = operand.tensor.data;
    a->bias.largest = operand.largest;
    a->bias.row = dim[2] == 1 ? 0 : dim[3];
    a->bias.head = dim[1] == 1 ? 0 : dim[2] * dim[3];
    a->bias.batch = dim[0] == 1 ? 0 : dim[1] * dim[2] * dim[3];
    return PE_OK;
}

/* The type of the results, and that of the arithmetic. */
static void dtype_choose(struct pe_attention *a, const struct pe_attention_args *args) {
    const struct pe_tensor *posted[] = {args->q,   args->k,   args->v,   args->embeddings,
                                        args->w_q, args->w_k, args->w_v, args->bias};
    enum pe_dtype widest = PE_DTYPE_NONE;
    for (size_t i = 0; i < PE_COUNT(posted); i++) {
        enum pe_dtype dtype = posted[i] ? posted[i]->dtype : widest;
        if (widest == PE_DTYPE_NONE || dtype == PE_DTYPE_F64) {
            widest = dtype;
        } else if (dtype != widest && widest != PE_DTYPE_F64) {
            widest = PE_DTYPE_F32;
        }
    }
    a->dtype = args->dtype ? args->dtype : widest;
    a->real = widest == PE_DTYPE_F64 || a->dtype == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    a->size = pe_dtype_size(a->dtype);
    a->real_size = pe_dtype_size(a->real);
}

static double default_scale(const struct pe_reader *r) {
    const struct pe_plan *plan = r->args->plan;
    const struct pe_encoding *row = plan ? pe_plan_row(plan) : NULL;
    double usual = pe_scale_usual(r->a->width);
    return row && row->scale ? row->scale(pe_plan_view(plan), usual) : usual;
}

static int scale_read(const struct pe_reader *r, struct pe_error *err) {
    struct pe_attention *a = r->a;
    a->scale = r->args->scale ? *r->args->scale : default_scale(r);
    if (!isfinite(a->scale)) {
        return pe_fail(err, PE_ERR_NONFINITE, "scale", "got %g, allowed are finite numbers", a->scale);
    }
    if (fabs(a->scale) > pe_vector_limit(a->real)) {
        return pe_fail(err, PE_ERR_RANGE, "scale", "got %g, allowed are numbers up to %g in %s", a->scale,
                       pe_vector_limit(a->real), pe_dtype_name(a->real));
    }
    return PE_OK;
}

/* Could a logit, whose product is at most `most`, overflow in dtype? A bias up to the largest number is
 * common (it stands for -infinity) and does no harm to products below its last place. */
static int logit_check(const struct pe_reader *r, double most, enum pe_dtype dtype, struct pe_error *err) {
    double bias = r->a->bias.largest, limit = pe_vector_limit(dtype) / 4;
    double term = r->a->relative ? r->a->relative->reach : 0;
    const char *field = r->args->q ? "q" : "embeddings";
    if (term > limit) {
        return pe_fail(err, PE_ERR_RANGE, "encoding",
                       "adds numbers that may reach %g to the logits, too near the largest %s, %g", term,
                       pe_dtype_name(dtype), pe_vector_limit(dtype));
    }
    most = most < limit ? most + term : most;
    if (most < limit && (most < pe_vector_harmless(dtype) || most + bias < limit)) {
        return PE_OK;
    }
    if (most < limit) {
        return pe_fail(err, PE_ERR_RANGE, "bias",
                       "with %g in it and products up to %g the logits may be beyond the "
                       "largest %s, %g",
                       bias, most, pe_dtype_name(dtype), pe_vector_limit(dtype));
    }
    return pe_fail(err, PE_ERR_RANGE, field,
                   "the products with the keys may reach %g, too near the largest %s, %g", most,
                   pe_dtype_name(dtype), pe_vector_limit(dtype));
}

static int overflow_check(const struct pe_reader *r, struct pe_error *err) {
    const struct pe_attention *a = r->a;
    const double *of = r->largest;
    const unsigned logits =
        PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION | PE_ATTENTION_TERMS;
    double q = fmax(of[PE_STREAM_Q], fmax(of[PE_STREAM_Q_CONTENT], of[PE_STREAM_Q_POSITION]));
    double k = fmax(of[PE_STREAM_K], fmax(of[PE_STREAM_K_CONTENT], of[PE_STREAM_K_POSITION]));
    double most = fmax(q, k); /* 0 times infinity is not to be asked */
    if (most < pe_vector_limit(a->real)) {
        most = fmax(most, q * k * (double)a->width * fmax(1, fabs(a->scale)));
    }
    if (logit_check(r, most, a->real, err) ||
        ((r->outputs & logits) && logit_check(r, most, a->dtype, err))) {
        return err->code;
    }
    double v = of[PE_STREAM_V], v_limit = pe_vector_limit(a->dtype);
    double mixed = a->relative ? a->relative->mix_reach : 0;
    if (v + mixed > (a->dtype == a->real ? v_limit / 2 : v_limit)) {
        const char *values = r->args->q ? "v" : "embeddings";
        return pe_fail(err, PE_ERR_RANGE, mixed > v ? "encoding" : values,
                       "the values may reach %g, too near the largest %s, %g", v + mixed,
                       pe_dtype_name(a->dtype), v_limit);
    }
    return PE_OK;
}

static int outputs_check(const struct pe_reader *r, struct pe_error *err) {
    const unsigned known = PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT |
                           PE_ATTENTION_POSITION | PE_ATTENTION_OUTPUT | PE_ATTENTION_TERMS;
    const struct pe_attention_args *args = r->args;
    const struct pe_encoding *row = args->plan ? pe_plan_row(args->plan) : NULL;
    bool adds = row && pe_encoding_adds(row);
    if (r->outputs & ~known) {
        return pe_fail(err, PE_ERR_CHOICE, "return", "got the bits %#x, allowed are those in %#x", r->outputs,
                       known);
    }
    if (row && !adds && !r->rotary && !r->relative && row->info.family != PE_FAMILY_NONE) {
        return pe_encoding_unsupported(row, "has no place in attention", err);
    }
    if ((r->outputs & PE_ATTENTION_TERMS) && args->embeddings && !adds) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "return",
                       "terms are those of an encoding added to the embeddings, and %s is not added",
                       row ? row->info.type : "none");
    }
    if ((r->outputs & PE_ATTENTION_TERMS) && args->q) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "return",
                       "terms need embeddings and an absolute encoding, got q");
    }
    return PE_OK;
}

/* Which heads these are matters to relative encodings alone, and to posted q. */
static int head_index_check(const struct pe_reader *r, struct pe_error *err) {
    if (!r->args->head_index) {
        return PE_OK;
    }
    if (!r->args->heads) {
        return pe_fail(err, PE_ERR_MISSING, "heads", "is missing: how many the model has, of head_index");
    }
    if (!r->relative || (r->args->embeddings && !r->args->q)) {
        return pe_fail(err, PE_ERR_CONFLICT, "head_index",
                       r->relative ? "is for posted q and k: embeddings make all heads"
                                   : "says which heads of a relative encoding these are, and there is none");
    }
    return PE_OK;
}

static void family_read(struct pe_reader *r) {
    const struct pe_encoding *row = r->args->plan ? pe_plan_row(r->args->plan) : NULL;
    r->rotary = row && row->angles;
    r->relative = row && (row->bias || row->term);
}

int pe_attention_read(struct pe_arena *arena, struct pe_attention *a, const struct pe_attention_args *args,
                      struct pe_error *err) {
    struct pe_reader r = {.arena = arena, .args = args, .a = a};
    r.outputs = args->outputs ? args->outputs : PE_ATTENTION_WEIGHTS;
    family_read(&r);
    dtype_choose(a, args);
    if ((args->dtype && pe_dtype_check(args->dtype, err)) || outputs_check(&r, err) ||
        head_index_check(&r, err)) {
        return err->code;
    }
    bool embedded = args->embeddings && !args->q;
    if (embedded ? pe_reader_embeddings(&r, err) : pe_reader_posted(&r, err)) {
        return err->code;
    }
    struct pe_mask_shape shape = {
        .batch = a->batched ? a->batch : 0, .queries = a->queries, .keys = a->keys, .real = a->real};
    if (bias_read(&r, err) || pe_mask_open(arena, &a->mask, args->mask, &shape, err) || scale_read(&r, err) ||
        pe_reader_relate(&r, err)) {
        return err->code;
    }
    return overflow_check(&r, err);
}
