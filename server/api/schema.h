/* SPDX-License-Identifier: MIT
 *
 * Field rows as JSON Schema.
 */
#ifndef SCHEMA_H
#define SCHEMA_H

#include "posenc_fields.h"
#include "wire/text.h"

/* {"type":"object","properties":{...},"required":[...],"additionalProperties":false} */
void schema_object(struct text *text, const struct pe_field *fields, size_t n);

#endif
