/* SPDX-License-Identifier: MIT
 *
 * The formats of replies and bodies: one row each, and the choice between them.
 */
#ifndef FORMAT_H
#define FORMAT_H

#include "wire/picture.h"
#include "wire/result.h"

enum format_id {
    FORMAT_JSON,
    FORMAT_NPY,
    FORMAT_RAW,
    FORMAT_SAFETENSORS,
    FORMAT_CSV,
    FORMAT_PNG,
    FORMAT_COUNT
};

struct format {
    enum format_id id;
    const char *name;
    const char *media;      /* Content-Type of a reply */
    const char *aliases[4]; /* also understood, in Accept and Content-Type */
    bool body;              /* may be posted */
    bool many;              /* holds several tensors, and fields beside them */
    bool image;             /* a picture of one matrix: what picture_holds */
    int max_rank;
    unsigned dtypes; /* bit set of 1 << enum pe_dtype */
};

const struct format *format_at(enum format_id id);
const struct format *format_find(const char *name); /* NULL when unknown */

/* What a body of that Content-Type is; JSON where it is missing or a form's (curl -d). 415 for others. */
const struct format *format_of_body(const char *content_type, struct pe_error *err);
/* ?format= over a specific Accept over a posted binary format over JSON. Unknown name 400, Accept 406. */
const struct format *format_choose(const char *asked, const char *accept, const struct format *body,
                                   struct pe_error *err);
/* Is a reply in gzip as welcome as it is without? */
bool format_takes_gzip(const char *accept_encoding);
/* 406, naming the formats that would do, where the format cannot hold these tensors. */
int format_check(const struct format *format, const struct result *result, struct pe_error *err);
/* PE_ERR_CONFLICT where a request says how a picture looks (NULL: it does not), and its reply is none. */
int format_check_look(const struct format *format, const struct picture_look *look, struct pe_error *err);

#endif
