/* SPDX-License-Identifier: MIT
 *
 * Loops over rows of numbers of one type, float32 or float64. Nothing is contracted: each operation rounds
 * once, in the type. (The largest number is also found among those of other types.)
 */
#ifndef PE_VECTOR_H
#define PE_VECTOR_H

#include "posenc.h"

/* The largest |x|; 0 when n is 0, infinity when there is a NaN or an infinity. -infinity may be passed over.
 * Stopped, it is any number. */
double pe_vector_largest(enum pe_dtype dtype, const void *x, size_t n, bool skip_minus_infinity,
                         const struct pe_stop *stop);
/* Of a tensor; 0 where there is none. */
double pe_vector_largest_of(const struct pe_tensor *tensor, const struct pe_stop *stop);
/* The largest finite number of any type. */
double pe_vector_limit(enum pe_dtype dtype);
/* A quarter of its last place: any finite number plus this, and the sum plus this, stays finite. */
double pe_vector_harmless(enum pe_dtype dtype);
/* out = x*scale + added. added may be NULL for nothing; it or x, not both, may be out itself. */
void pe_vector_scale_add(enum pe_dtype dtype, void *out, const void *x, double scale, const void *added,
                         size_t n);
/* out = a + b and out = a - b; out may be a. */
void pe_vector_add(enum pe_dtype dtype, void *out, const void *a, const void *b, size_t n);
void pe_vector_subtract(enum pe_dtype dtype, void *out, const void *a, const void *b, size_t n);
/* x becomes x * length / |x|, computed in double; below 1e-12 |x| counts as that (so zeros stay zeros). */
void pe_vector_unit(enum pe_dtype dtype, void *x, size_t n, double length);
/* The sum of a[i]*b[i], in an order that is the same on every machine. */
double pe_vector_dot(const double *a, const double *b, size_t n);
/* out, of any type, = x rounded once. out may be x when the types are the same. */
void pe_vector_store(enum pe_dtype dtype, const void *x, size_t n, enum pe_dtype out_dtype, void *out);

#endif
