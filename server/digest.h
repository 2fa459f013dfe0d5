/* SPDX-License-Identifier: MIT
 *
 * A hash that tells contents apart: of tables, and of requests for entity tags. No protection against people
 * who look for two contents of one hash.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_START UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`, DIGEST_START at first. n 0: bytes may be NULL. */
uint64_t digest_bytes(uint64_t hash, const void *bytes, size_t n);
/* The same, another hash and several times as fast: for what is made anew with each request. */
uint64_t digest_words(uint64_t hash, const void *bytes, size_t n);

#endif
