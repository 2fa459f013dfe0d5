/* SPDX-License-Identifier: MIT
 *
 * Structs back to JSON by their field rows: the resolved encoding that every reply echoes.
 */
#ifndef ECHO_H
#define ECHO_H

#include "posenc_fields.h"
#include "wire/text.h"

/* {"type":"sinusoidal","d_model":6,...}: every parameter that has a value. */
void echo_encoding(struct text *text, const struct pe_spec *spec);
/* The members of a struct as "name":value, without braces. Absent values are left out. */
void echo_fields(struct text *text, const struct pe_field *fields, size_t n, const void *base);
/* One of them. */
void echo_field(struct text *text, const struct pe_field *fields, const struct pe_field *row,
                const void *base);
/* "shape":[2,3],"dtype":"float32", without braces. */
void echo_tensor(struct text *text, const struct pe_tensor *tensor);

#endif
