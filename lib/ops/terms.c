/* SPDX-License-Identifier: MIT
 *
 * Where a logit comes from. With an absolute encoding p added to the content x before the projections,
 *
 *     (x_i + p_i)Wq . (x_j + p_j)Wk = x_iWq . x_jWk   content to content: what the token asks for
 *                                   + x_iWq . p_jWk   content to position: which places this token looks at
 *                                   + p_iWq . x_jWk   position to content: which tokens this place looks for
 *                                   + p_iWq . p_jWk   position to position: the attention of the places alone
 *
 * (Ke et al. 2021, "Rethinking positional encoding", equation 6). The terms are products of their own and not
 * parts of the logits' sum, so their sum is the logit only up to the roundings.
 */
#include "ops/attention.h"

#include "kernels/vector.h"

#include <string.h>

/* out [n, Tk] = scores + bias. */
static void logits_run(const struct pe_attention_block *block, const unsigned char *scores,
                       unsigned char *out) {
    const struct pe_attention *a = block->a;
    size_t row_bytes = a->keys * a->real_size;
    for (size_t i = 0; i < block->n && !pe_stop_asked(a->stop); i++) {
        const unsigned char *bias = pe_block_bias(block, block->first + i);
        if (bias) {
            pe_vector_add(a->real, out + i * row_bytes, scores + i * row_bytes, bias, a->keys);
        } else if (row_bytes) {
            memcpy(out + i * row_bytes, scores + i * row_bytes, row_bytes);
        }
    }
}

void pe_block_content(const struct pe_attention_block *block, const unsigned char *scores) {
    const struct pe_attention *a = block->a;
    size_t row_bytes = a->keys * a->real_size;
    if (!pe_rows_made(&a->content)) {
        return;
    }
    unsigned char *out = pe_block_place(block, &a->content);
    if (a->split) {
        pe_block_multiply(block, PE_STREAM_Q_CONTENT, PE_STREAM_K_CONTENT, out);
        return;
    }
    for (size_t i = 0; row_bytes && i < block->n && !pe_stop_asked(a->stop); i++) {
        memcpy(out + i * row_bytes, scores + i * row_bytes, row_bytes);
    }
}

/* What the encoding changed in the logits. */
static void position_of_added(const struct pe_attention_block *block, unsigned char *out) {
    const struct pe_attention *a = block->a;
    const unsigned char *logits = pe_block_place(block, &a->logits);
    const unsigned char *content = pe_block_place(block, &a->content);
    size_t row_bytes = a->keys * a->real_size;
    for (size_t i = 0; i < block->n && !pe_stop_asked(a->stop); i++) {
        pe_vector_subtract(a->real, out + i * row_bytes, logits + i * row_bytes, content + i * row_bytes,
                           a->keys);
    }
}

/* The posted bias, which comes after the term of a relative encoding that stands there already. */
static void position_of_bias(const struct pe_attention_block *block, unsigned char *out) {
    const struct pe_attention *a = block->a;
    size_t row_bytes = a->keys * a->real_size;
    for (size_t i = 0; i < block->n && !pe_stop_asked(a->stop); i++) {
        const unsigned char *bias = pe_block_bias(block, block->first + i);
        if (bias && a->relative) {
            pe_vector_add(a->real, out + i * row_bytes, out + i * row_bytes, bias, a->keys);
        } else if (bias) {
            memcpy(out + i * row_bytes, bias, row_bytes);
        } else if (!a->relative) {
            memset(out + i * row_bytes, 0, row_bytes);
        }
    }
}

void pe_block_explain(const struct pe_attention_block *block, const unsigned char *scores) {
    static const enum pe_stream_name terms[PE_TERMS][2] = {
        {PE_STREAM_Q_CONTENT, PE_STREAM_K_CONTENT},
        {PE_STREAM_Q_CONTENT, PE_STREAM_K_POSITION},
        {PE_STREAM_Q_POSITION, PE_STREAM_K_CONTENT},
        {PE_STREAM_Q_POSITION, PE_STREAM_K_POSITION},
    };
    const struct pe_attention *a = block->a;
    if (pe_rows_made(&a->logits)) {
        logits_run(block, scores, pe_block_place(block, &a->logits));
    }
    if (pe_rows_made(&a->position)) {
        unsigned char *out = pe_block_place(block, &a->position);
        (a->split ? position_of_added : position_of_bias)(block, out);
    }
    for (size_t i = 0; i < PE_TERMS && pe_rows_made(&a->terms[i]); i++) {
        pe_block_multiply(block, terms[i][0], terms[i][1], pe_block_place(block, &a->terms[i]));
    }
}
