/* SPDX-License-Identifier: MIT
 *
 * Floyd's way to draw T of L in O(T) memory and time, whatever L is: for j = L-T .. L-1 in turn, draw r from
 * 0..j, and take r, or j where r is taken already. With i = j - (L-T), r is w mod (j+1) of the first word
 *
 *     w = words 0 (low) and 1 of Philox4x32-10(key = seed (low, high), counter = (i (low, high), attempt, 2))
 *
 * that is below the largest multiple of j+1 up to 2^64 - 1, for attempt = 0, 1 ...: so all r are equally
 * likely. The counter's 2 keeps it apart from other users of a seed. What is taken is a hash table of at most
 * half its cells; the sort is by the digits of base 256, in the same memory.
 */
#include "core/sample.h"

#include "core/rng.h"
#include "core/stop.h"

#include <string.h>

#define FREE    UINT64_MAX
#define DIGITS  7 /* 56 bits hold 2^53 */
#define BUCKETS 256

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t n) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint64_t end = UINT64_MAX - UINT64_MAX % n;
    uint64_t word = UINT64_MAX;
    for (uint32_t attempt = 0; word >= end; attempt++) {
        const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), attempt, 2};
        uint32_t words[4];
        pe_philox(words, counter, key);
        word = (uint64_t)words[1] << 32 | words[0];
    }
    return word % n;
}

/* Puts a value into the table of cells [mask + 1]; false when it is there. */
static bool take(uint64_t *cells, uint64_t mask, uint64_t value) {
    uint64_t at = value * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 over the golden ratio spreads neighbours */
    for (at = (at ^ at >> 32) & mask; cells[at] != FREE; at = (at + 1) & mask) {
        if (cells[at] == value) {
            return false;
        }
    }
    cells[at] = value;
    return true;
}

/* One pass of the sort: from [n] to `to`, by a digit, keeping the order of equal ones. */
static int sort_by(const uint64_t *from, uint64_t *to, size_t n, int digit, struct pe_error *err) {
    size_t start[BUCKETS + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        start[(from[i] >> 8 * digit & 255) + 1]++;
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
    }
    for (size_t b = 0; b < BUCKETS; b++) {
        start[b + 1] += start[b];
    }
    for (size_t i = 0; i < n; i++) {
        to[start[from[i] >> 8 * digit & 255]++] = from[i];
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* The values to the front of the cells. */
static int gather(uint64_t *cells, size_t n_cells, struct pe_error *err) {
    for (size_t i = 0, n = 0; i < n_cells; i++) {
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        if (cells[i] != FREE) {
            cells[n++] = cells[i];
        }
    }
    return PE_OK;
}

static int fill(uint64_t *cells, size_t n_cells, size_t count, size_t below, uint64_t seed,
                struct pe_error *err) {
    for (size_t i = 0; i < n_cells; i++) {
        cells[i] = FREE;
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t j = below - count + i;
        if (!take(cells, n_cells - 1, draw(seed, i, j + 1))) {
            (void)take(cells, n_cells - 1, j);
        }
        if (i % (PE_STOP_ITEMS / 16) == 0 && pe_error_poll(err)) { /* a draw is some 50 ns */
            return err->code;
        }
    }
    return PE_OK;
}

double *pe_sample(struct pe_arena *arena, size_t count, size_t below, uint64_t seed, struct pe_error *err) {
    size_t n_cells = 2;
    while (n_cells / 2 < count && n_cells <= SIZE_MAX / 32) {
        n_cells *= 2;
    }
    double *out = pe_arena_array(arena, count, sizeof *out, err);
    uint64_t *cells = out ? pe_arena_array(arena, n_cells, sizeof *cells, err) : NULL;
    if (!cells || fill(cells, n_cells, count, below, seed, err) || gather(cells, n_cells, err)) {
        return NULL;
    }
    uint64_t *from = cells, *to = cells + n_cells / 2;
    for (int digit = 0; digit < DIGITS && (below - 1) >> 8 * digit != 0 && count > 1; digit++) {
        if (sort_by(from, to, count, digit, err)) {
            return NULL;
        }
        uint64_t *other = from;
        from = to;
        to = other;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (double)from[i];
    }
    return out;
}
