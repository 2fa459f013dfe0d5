/* SPDX-License-Identifier: MIT
 *
 * Random numbers that are functions of a key and a counter, with the same bits on every machine.
 */
#ifndef PE_RNG_H
#define PE_RNG_H

#include <stdint.h>

/* Philox4x32-10: 128 random bits for each of the 2^128 counters of a key. */
void pe_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
/* Numbers of mean 0 and standard deviation std from four random words, within 1 ulp. */
double pe_random_uniform(const uint32_t words[4], double std);  /* |x| <= sqrt(3) std; from words 0 and 1 */
double pe_random_gaussian(const uint32_t words[4], double std); /* |x| < 8.66 std */

#endif
