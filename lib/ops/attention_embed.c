/* SPDX-License-Identifier: MIT
 *
 * Attention on embeddings x [B, T, D]: q = (x + p)Wq, k = (x + p)Wk, v = (x + p)Wv, with p from an absolute
 * encoding and the identity for a weight that is not given. Head h has the columns h*d .. h*d+d-1 of q, as in
 * Vaswani et al. 2017, section 3.2.2, so without weights the heads are slices of the embeddings. p is made
 * here; the projections are left to the parts.
 */
#include "ops/attention_input.h"

#include "kernels/vector.h"

/* Rows [B, T, D] that streams are made of: the embeddings, the vectors of positions, or their sum. */
struct source {
    const unsigned char *data;
    size_t batch; /* stride; 0 when shared */
    double largest;
};

static int embeddings_bind(struct pe_reader *r, struct pe_error *err) {
    static const enum pe_letter of_x[] = {PE_AXIS_B, PE_AXIS_TK, PE_AXIS_D_MODEL};
    const struct pe_attention_args *args = r->args;
    const struct pe_tensor *x = args->embeddings;
    char shape[128];
    const char *posted = args->q ? "q" : args->k ? "k" : args->v ? "v" : NULL;
    if (posted) {
        return pe_fail(err, PE_ERR_CONFLICT, posted, "post either q and k, or embeddings, not both");
    }
    if (x->rank != 2 && x->rank != 3) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings", "has shape %s, allowed are [T, D] and [B, T, D]",
                       pe_tensor_shape_text(x, shape, sizeof shape));
    }
    if (pe_axes_bind(&r->axes, "embeddings", x, of_x, 3, err)) {
        return err->code;
    }
    struct pe_attention *a = r->a;
    /* As with q: [T, D] without a word on heads is one head without an axis. */
    a->rank = x->rank == 2 && !r->args->heads ? 2 : x->rank + 1;
    a->batched = x->rank == 3;
    a->batch = a->batched ? x->dim[0] : 1;
    a->queries = a->keys = r->axes.size[PE_AXIS_TK];
    r->adds = args->plan && pe_encoding_adds(pe_plan_row(args->plan));
    a->split = r->adds || r->rotary;
    if (r->adds && pe_plan_width(args->plan) != r->axes.size[PE_AXIS_D_MODEL]) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings", "has D = %zu but the encoding has D = %zu",
                       r->axes.size[PE_AXIS_D_MODEL], pe_plan_width(args->plan));
    }
    return PE_OK;
}

/* The columns of w, or of the identity that stands for it, in groups. */
static int columns_split(const struct pe_reader *r, const struct pe_tensor *w, const char *field,
                         size_t divisor, size_t *quotient, struct pe_error *err) {
    size_t columns = w ? w->dim[1] : r->axes.size[PE_AXIS_D_MODEL];
    *quotient = columns / divisor;
    if (*quotient && columns % divisor == 0) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, w ? field : "heads", "%s %zu columns, not a multiple of %zu",
                   w ? "has" : "without weights the embeddings have", columns, divisor);
}

static int weights_bind(struct pe_reader *r, struct pe_error *err) {
    const struct pe_attention_args *args = r->args;
    const struct pe_tensor *w[3] = {args->w_q, args->w_k, args->w_v};
    static const char *const fields[3] = {"w_q", "w_k", "w_v"};
    const enum pe_letter of_w[] = {PE_AXIS_D_MODEL, PE_AXIS_H};
    char shape[128];
    for (int i = 0; i < 3; i++) {
        if (w[i] && w[i]->rank != 2) {
            return pe_fail(err, PE_ERR_SHAPE, fields[i], "has shape %s, allowed is [D, heads * d]",
                           pe_tensor_shape_text(w[i], shape, sizeof shape));
        }
        r->axes.owner[PE_AXIS_H] = NULL; /* each has columns of its own */
        if (w[i] && pe_axes_bind(&r->axes, fields[i], w[i], of_w, 2, err)) {
            return err->code;
        }
    }
    struct pe_attention *a = r->a;
    a->heads = args->heads ? args->heads : 1;
    if (columns_split(r, args->w_q, "w_q", a->heads, &a->width, err) ||
        columns_split(r, args->w_k, "w_k", a->width, &a->key_heads, err)) {
        return err->code;
    }
    if (a->heads % a->key_heads) {
        return pe_fail(
            err, PE_ERR_SHAPE, args->w_k ? "w_k" : "w_q",
            "gives keys of %zu heads of d = %zu, which does not divide the %zu heads of the queries",
            a->key_heads, a->width, a->heads);
    }
    return columns_split(r, args->w_v, "w_v", a->key_heads, &a->value_width, err);
}

/* p for the positions of one side, [T, D] or [B, T, D]. */
static int position_source(struct pe_reader *r, struct source *out, const struct pe_positions *positions,
                           const char *field, struct pe_error *err) {
    struct pe_attention *a = r->a;
    const struct pe_plan *plan = r->args->plan;
    size_t width = r->axes.size[PE_AXIS_D_MODEL], n = pe_positions_count(positions);
    struct pe_tensor p;
    if (pe_positions_admit(plan, positions, a->real, field, err) ||
        pe_tensor_alloc(r->arena, &p, a->real, 2, (size_t[2]){n, width}, err)) {
        return err->code;
    }
    const struct pe_rows rows = {.plan = plan, .positions = positions, .dtype = a->real, .stop = err->stop};
    pe_rows_encode(&rows, 0, n, p.data);
    *out = (struct source){.data = p.data,
                           .batch = positions->batch > 1 ? a->keys * width : 0,
                           .largest = pe_largest_find(a->real, p.data, n * width, false, err)};
    return err->code;
}

/* out = x + p, [n] each. */
static int add(enum pe_dtype real, unsigned char *out, const unsigned char *x, const unsigned char *p,
               size_t n, struct pe_error *err) {
    size_t item = pe_dtype_size(real);
    for (size_t i = 0, step; i < n && !pe_error_poll(err); i += step) {
        step = pe_stop_step(n, i);
        pe_vector_add(real, out + i * item, x + i * item, p + i * item, step);
    }
    return err->code;
}

/* x + p. */
static int sum_source(struct pe_reader *r, struct source *out, const struct source *x, const struct source *p,
                      struct pe_error *err) {
    struct pe_attention *a = r->a;
    size_t width = r->axes.size[PE_AXIS_D_MODEL], n = a->keys * width;
    struct pe_tensor sum;
    if (pe_tensor_alloc(r->arena, &sum, a->real, 2, (size_t[2]){a->batch * a->keys, width}, err)) {
        return pe_error_at(err, "embeddings");
    }
    for (size_t b = 0; n && b < a->batch; b++) { /* [B, 0, D] may have any B */
        if (add(a->real, (unsigned char *)sum.data + b * n * a->real_size,
                x->data + b * x->batch * a->real_size, p->data + b * p->batch * a->real_size, n, err)) {
            return err->code;
        }
    }
    *out = (struct source){.data = sum.data,
                           .batch = n,
                           .largest = pe_largest_find(a->real, sum.data, a->batch * n, false, err)};
    return err->code;
}

static int embedded_stream(struct pe_reader *r, enum pe_stream_name name, const struct source *source,
                           const struct pe_operand *w, struct pe_error *err) {
    struct pe_attention *a = r->a;
    bool is_query = name == PE_STREAM_Q || name == PE_STREAM_Q_CONTENT || name == PE_STREAM_Q_POSITION;
    size_t width = r->axes.size[PE_AXIS_D_MODEL];
    struct pe_stream *s = &a->stream[name];
    *s = (struct pe_stream){.data = source->data, .batch = source->batch, .ld = width, .rows = a->keys};
    s->heads = is_query ? a->heads : a->key_heads;
    s->width = name == PE_STREAM_V ? a->value_width : a->width;
    s->head = s->width;
    r->largest[name] = source->largest;
    if (!w) {
        return PE_OK;
    }
    struct pe_tensor projected;
    if (pe_tensor_alloc(r->arena, &projected, a->real, 4, (size_t[4]){a->batch, s->heads, s->rows, s->width},
                        err)) {
        return pe_error_at(err, "embeddings");
    }
    s->source = source->data;
    s->source_batch = source->batch;
    s->inner = width;
    s->w = w->tensor.data;
    s->data = s->projected = projected.data;
    s->ld = s->width;
    s->head = s->rows * s->width;
    s->batch = s->heads * s->head;
    r->largest[name] = source->largest * w->largest * (double)width;
    a->projects = true;
    return PE_OK;
}

/* The sources of queries and keys: [0] x, [1] p, [2] what is projected. */
static int sources_read(struct pe_reader *r, struct source q[3], struct source k[3], struct pe_error *err) {
    const struct pe_attention_args *args = r->args;
    struct pe_attention *a = r->a;
    struct pe_operand x;
    if (pe_reader_operand(r, &x, args->embeddings, "embeddings", err)) {
        return err->code;
    }
    q[0] = q[2] = (struct source){
        .data = x.tensor.data, .largest = x.largest, .batch = a->keys * r->axes.size[PE_AXIS_D_MODEL]};
    k[0] = k[2] = q[0];
    if (!r->adds) {
        return PE_OK;
    }
    const struct pe_positions rule = {.length = a->keys, .axes = 1, .step = 1};
    const struct pe_positions *of_q = r->positions[0], *of_k = r->positions[1];
    const char *field = of_q ? "query_positions" : "key_positions";
    const struct pe_positions *first = of_q ? of_q : of_k ? of_k : &rule;
    if (position_source(r, &q[1], first, field, err) || sum_source(r, &q[2], &q[0], &q[1], err)) {
        return err->code;
    }
    k[1] = q[1];
    k[2] = q[2];
    if (of_q && of_k && args->query_positions != args->key_positions &&
        (position_source(r, &k[1], of_k, "key_positions", err) || sum_source(r, &k[2], &k[0], &k[1], err))) {
        return err->code;
    }
    return PE_OK;
}

/* weights[i] is NULL where the identity stands for it. */
static int weights_read(struct pe_reader *r, const struct pe_operand *weights[3], struct pe_error *err) {
    const struct pe_tensor *posted[3] = {r->args->w_q, r->args->w_k, r->args->w_v};
    static const char *const fields[3] = {"w_q", "w_k", "w_v"};
    struct pe_operand *read = pe_arena_array(r->arena, 3, sizeof *read, err);
    if (!read) {
        return err->code;
    }
    for (int i = 0; i < 3; i++) {
        weights[i] = posted[i] ? &read[i] : NULL;
        if (posted[i] && pe_reader_operand(r, &read[i], posted[i], fields[i], err)) {
            return err->code;
        }
    }
    return PE_OK;
}

int pe_reader_embeddings(struct pe_reader *r, struct pe_error *err) {
    struct source q[3], k[3];
    const struct pe_operand *w[3];
    if (embeddings_bind(r, err) || weights_bind(r, err) || pe_reader_positions(r, err) ||
        sources_read(r, q, k, err) || weights_read(r, w, err)) {
        return err->code;
    }
    const unsigned explained = PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION | PE_ATTENTION_TERMS;
    bool content = r->a->split && (r->outputs & explained);
    bool terms = r->adds && (r->outputs & PE_ATTENTION_TERMS);
    const struct {
        enum pe_stream_name name;
        bool needed;
        const struct source *source;
        const struct pe_operand *w;
    } streams[] = {
        {PE_STREAM_Q, true, &q[2], w[0]},
        {PE_STREAM_K, true, &k[2], w[1]},
        {PE_STREAM_V, r->outputs & PE_ATTENTION_OUTPUT, &k[2], w[2]},
        {PE_STREAM_Q_CONTENT, content, &q[0], w[0]},
        {PE_STREAM_K_CONTENT, content, &k[0], w[1]},
        {PE_STREAM_Q_POSITION, terms, &q[1], w[0]},
        {PE_STREAM_K_POSITION, terms, &k[1], w[1]},
    };
    for (size_t i = 0; i < PE_COUNT(streams); i++) {
        if (streams[i].needed && embedded_stream(r, streams[i].name, streams[i].source, streams[i].w, err)) {
            return err->code;
        }
    }
    return r->rotary ? pe_reader_turn(r, err) : PE_OK;
}
