/* SPDX-License-Identifier: MIT
 *
 * simdjson behind C: for the benchmark of numbers alone.
 */
#ifndef NUMBERS_SIMDJSON_H
#define NUMBERS_SIMDJSON_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "" where this was built without it. */
extern const char *const numbers_simdjson_version;
/* The numbers of the rows of "embeddings"; how many. Behind the document are 64 bytes that may be read. */
size_t numbers_simdjson_read(const char *document, size_t length, float *out);

#ifdef __cplusplus
}
#endif

#endif
