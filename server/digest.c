/* SPDX-License-Identifier: MIT
 *
 * FNV-1a, 64 bits: h = (h ^ byte) * prime, from the offset basis on. And a hash by words of eight bytes, the first
 * the lowest, whose every step is one to one: texts that differ in one word never meet.
 */
#include "digest.h"

#include <string.h>

#define PRIME UINT64_C(0x100000001b3)
#define ODD   UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio */

uint64_t digest_bytes(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * PRIME;
    }
    return hash;
}

static uint64_t word_add(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * ODD;
    return hash ^ hash >> 32;
}

uint64_t digest_words(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(&word, p, sizeof word);
#else
        for (int i = 0; i < 8; i++) {
            word |= (uint64_t)p[i] << 8 * i;
        }
#endif
        hash = word_add(hash, word);
    }
    uint64_t last = 0;
    for (size_t i = 0; i < left; i++) {
        last |= (uint64_t)p[i] << 8 * i;
    }
    return word_add(word_add(hash, last), n);
}
