/* SPDX-License-Identifier: MIT
 *
 * The names that weights of blocks go by.
 */
#ifndef PE_BLOCK_NAMES_H
#define PE_BLOCK_NAMES_H

#include "ops/block.h"

/* What a name means. */
enum pe_block_role {
    PE_BLOCK_ROLE_UNKNOWN,
    PE_BLOCK_ROLE_PART,         /* of a layer */
    PE_BLOCK_ROLE_FINAL_WEIGHT, /* of the final norm */
    PE_BLOCK_ROLE_FINAL_BIAS,
    PE_BLOCK_ROLE_TABLE,      /* wpe */
    PE_BLOCK_ROLE_VOCABULARY, /* wte */
    PE_BLOCK_ROLE_OTHER       /* known, but of no use here */
};
struct pe_block_name {
    enum pe_block_role role;
    size_t layer; /* of a part; PE_BLOCK_LAYERS_MAX for any from there on */
    enum pe_block_part part;
};
struct pe_block_name pe_block_name_read(enum pe_block_naming naming, const char *name);
/* How a missing one would be called, beside `like`, which is posted: with its prefixes. layer SIZE_MAX: of
 * the final norm, of which part is 0 for the weight and 1 for the bias. */
char *pe_block_name_write(enum pe_block_naming naming, size_t layer, size_t part, const char *like,
                          char *text, size_t size);
/* "torch", "gpt2", "nanogpt". */
const char *pe_block_naming_name(enum pe_block_naming naming);

#endif
