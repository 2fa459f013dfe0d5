/* SPDX-License-Identifier: MIT
 *
 * FNV-1a, 64 bits: h = (h ^ byte) * prime, from the offset basis on.
 */
#include "digest.h"

#define PRIME UINT64_C(0x100000001b3)

uint64_t digest_bytes(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * PRIME;
    }
    return hash;
}
