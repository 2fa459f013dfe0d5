/* SPDX-License-Identifier: MIT
 *
 * Elements as files store them, made into tensors: what npy and safetensors share.
 */
#ifndef PE_ELEMENTS_H
#define PE_ELEMENTS_H

#include "posenc.h"

enum pe_element_kind { PE_ELEMENT_FLOAT, PE_ELEMENT_INT, PE_ELEMENT_UNSIGNED, PE_ELEMENT_BOOL };

/* How the elements of a file lie. */
struct pe_elements {
    enum pe_element_kind kind;
    enum pe_dtype dtype; /* of floats */
    size_t size;         /* bytes of one: 1, 2, 4 or 8 */
    bool big_endian;
    bool fortran; /* first axis fastest */
};

/* out->rank and out->dim are set, and `bytes` holds that many elements: sets out's dtype and data. A VIEW
 * where the elements lie as a tensor wants them, else an ARENA copy. Numbers that are not floats become
 * float64: PE_ERR_RANGE at the first that would not be exact, PE_ERR_FORMAT at a boolean not 0 or 1. */
int pe_elements_read(struct pe_arena *arena, struct pe_tensor *out, const struct pe_elements *elements,
                     const void *bytes, struct pe_error *err) PE_CHECKED;
/* 0xFEFF is stored as FF FE here. */
bool pe_host_little_endian(void);

#endif
