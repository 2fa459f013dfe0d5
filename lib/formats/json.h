/* SPDX-License-Identifier: MIT
 *
 * A scanner for JSON headers of a fixed schema, from bytes that are not trusted.
 */
#ifndef PE_JSON_H
#define PE_JSON_H

#include "posenc.h"

/* Each function takes one thing from the text, after spaces, or fails with PE_ERR_FORMAT. */
struct pe_json {
    const unsigned char *start, *at, *end;
    char *texts; /* where the next text goes. Unescaped it is no longer than before, and its zero takes the
                    place of a quote: so all texts fit into as many bytes as the whole has */
    struct pe_error *err;
};

/* A short list of whole numbers. */
struct pe_json_sizes {
    size_t n, v[PE_MAX_RANK]; /* all are counted, the first kept */
    size_t product;
    bool overflow; /* the product does not fit size_t */
};

/* "... where `wanted` should be". */
int pe_json_fail(struct pe_json *json, const char *wanted);
void pe_json_space(struct pe_json *json);
int pe_json_expect(struct pe_json *json, char c, const char *wanted);
/* "text": UTF-8 without control characters, unescaped, with a zero at its end, into json->texts. */
int pe_json_text(struct pe_json *json, const char **text, const char *wanted);
/* [2,3] */
int pe_json_sizes(struct pe_json *json, struct pe_json_sizes *sizes);
/* {"key": value, ...}: `item` takes one key with its value. */
int pe_json_object(struct pe_json *json, int (*item)(struct pe_json *json, void *context), void *context);

#endif
