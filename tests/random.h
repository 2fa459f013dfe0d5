/* SPDX-License-Identifier: MIT
 *
 * Random bits for tests, the same on every run and machine: splitmix64 (Steele, Lea, Flood 2014).
 *
 * What values come out is proved by plain builds. Sanitizers look for what a path does to memory, and a tenth of the
 * inputs takes the same paths: RANDOM_ROUNDS(n) is n, or a tenth.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RANDOM_ROUNDS(n) ((n) / 10)
#else
#define RANDOM_ROUNDS(n) (n)
#endif

static inline uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
