/* SPDX-License-Identifier: MIT
 *
 * Tokens of a window and the offsets between them.
 */
#include "core/window.h"

#include "core/admit.h"

#define WORTH_MOST ((size_t)1 << 20) /* numbers of all heads: 8 MiB */

int pe_window_read(struct pe_window *window, const struct pe_ints *sides, int64_t cls, const char *field,
                   struct pe_error *err) {
    if (sides->n != 2) {
        return pe_fail(err, PE_ERR_SHAPE, field, "must be [h, w], got %zu numbers", sides->n);
    }
    *window = (struct pe_window){.h = (size_t)sides->v[0], .w = (size_t)sides->v[1], .cls = (size_t)cls};
    return PE_OK;
}

size_t pe_window_tokens(const struct pe_window *window) {
    return window->cls + window->h * window->w;
}

int pe_window_admit(const struct pe_window *window, const struct pe_positions *positions,
                    struct pe_error *err) {
    size_t tokens = pe_window_tokens(window);
    struct pe_admit rule = {.whole = true, .min = 0, .max = (double)(tokens - 1)};
    struct pe_stray stray;
    char path[64];
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    pe_positions_index_text(positions, stray.index, path, sizeof path);
    return pe_fail(err, PE_ERR_RANGE, path,
                   "got %.17g, allowed are the %zu tokens of the window, row by row from 0", stray.position,
                   tokens);
}

static size_t offsets_of(const struct pe_window *window) {
    return window->folded ? window->h * window->w : (2 * window->h - 1) * (2 * window->w - 1);
}

size_t pe_window_rows(const struct pe_window *window) {
    return offsets_of(window) + 3 * window->cls;
}

size_t pe_window_worth(const struct pe_window *window, double pairs, size_t heads) {
    size_t rows = pe_window_rows(window);
    return pairs >= (double)rows && rows <= WORTH_MOST / heads ? rows : 0;
}

static uint32_t apart(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

size_t pe_window_row(const struct pe_window *window, size_t query, size_t key) {
    if (query < window->cls || key < window->cls) {
        return offsets_of(window) + (query >= window->cls ? 1 : key >= window->cls ? 0 : 2);
    }
    /* of 32 bits, whose division takes a third of the time: there are at most PE_WINDOW_MAX^2 patches */
    uint32_t q = (uint32_t)(query - window->cls), k = (uint32_t)(key - window->cls);
    uint32_t h = (uint32_t)window->h, w = (uint32_t)window->w;
    if (window->folded) {
        return apart(q / w, k / w) * w + apart(q % w, k % w);
    }
    uint32_t down = q / w + h - 1 - k / w, across = q % w + w - 1 - k % w;
    return down * (2 * w - 1) + across;
}
