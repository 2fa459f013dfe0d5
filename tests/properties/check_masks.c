/* SPDX-License-Identifier: MIT
 *
 * Masks at random, all rules together, against their definitions: which keys a query sees is asked pair by
 * pair. Queries of zeros see all of them alike, so a weight is 1/n or 0; and under a bias it is the softmax
 * of the visible ones.
 */
#include "posenc.h"
#include "unit/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 24 /* queries, keys */
enum { SETUPS = 400, GROUPS = 8, BATCH = 3, HEADS = 2 };

static uint64_t state;
static unsigned number;

static size_t below(size_t n) { /* 0 .. n-1 */
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % n;
}

static struct setup {
    size_t batch, queries, keys; /* batch 0: no such axis */
    bool biased;
    struct pe_attention_mask mask;
    struct pe_tensor lengths, documents, keep;
    double lengths_of[BATCH], documents_of[MOST], keep_of[BATCH * MOST * MOST];
} s;

static void keep_make(void) {
    size_t b = below(2) && s.batch ? s.batch : 1, q = below(2) ? s.queries : 1;
    s.keep = (struct pe_tensor){.data = s.keep_of, .dtype = PE_DTYPE_F64, .rank = 3, .dim = {b, q, s.keys}};
    if (b == 1 && (q == 1 || q != s.batch) && below(2)) { /* the same without axes in front */
        s.keep.rank = q == 1 ? 1 : 2;
        s.keep.dim[0] = q == 1 ? s.keys : q;
        s.keep.dim[1] = s.keys;
    }
    for (size_t i = 0; i < b * q * s.keys; i++) {
        s.keep_of[i] = below(4) > 0;
    }
    s.mask.keep = &s.keep;
}

static void documents_make(void) {
    size_t n = 0;
    for (size_t left = s.keys, length; left; left -= length) {
        length = below(left + 1); /* one may be empty */
        length = n + 1 == MOST || left == 1 ? left : length;
        s.documents_of[n++] = (double)length;
    }
    s.documents = (struct pe_tensor){.data = s.documents_of, .dtype = PE_DTYPE_F64, .rank = 1, .dim = {n}};
    s.mask.documents = &s.documents;
}

static void setup_make(unsigned seed) {
    memset(&s, 0, sizeof s);
    number = seed;
    state = seed * UINT64_C(0x9E3779B97F4A7C15);
    s.mask.size = sizeof s.mask;
    s.batch = below(BATCH + 1);
    s.queries = 1 + below(MOST);
    s.keys = 1 + below(MOST);
    s.biased = below(2);
    s.mask.causal = below(2);
    if (below(3) == 0) {
        s.lengths = (struct pe_tensor){.data = s.lengths_of, .dtype = PE_DTYPE_F64, .rank = 1};
        s.lengths.dim[0] = s.batch ? s.batch : 1;
        for (size_t b = 0; b < s.lengths.dim[0]; b++) {
            s.lengths_of[b] = (double)below(s.keys + 1);
        }
        s.mask.lengths = &s.lengths;
    }
    if (s.queries <= s.keys && below(3) == 0) {
        documents_make();
    }
    s.mask.n_window = (int)below(3);
    for (int i = 0; i < s.mask.n_window; i++) {
        s.mask.window[i] = (int64_t)(below(MOST / 2) + (s.mask.n_window == 1 ? 1 : 0));
    }
    if (below(2)) {
        keep_make();
    }
}

/* ---- The definitions ----------------------------------------------------------------------------------- */

static long document_of(long at) {
    long d = -1;
    for (size_t i = 0; at >= 0; i++) {
        at -= (long)s.documents_of[i];
        d = (long)i;
    }
    return d;
}

static bool kept(size_t b, size_t i, size_t j) {
    const struct pe_tensor *keep = &s.keep;
    size_t bs = keep->rank == 3 ? keep->dim[0] : 1;
    size_t qs = keep->rank == 3 ? keep->dim[1] : keep->rank == 2 ? keep->dim[0] : 1;
    return s.keep_of[((bs > 1 ? b : 0) * qs + (qs > 1 ? i : 0)) * s.keys + j] == 1;
}

static bool sees(size_t b, size_t i, size_t j) {
    long at = (long)i + (long)s.keys - (long)s.queries, key = (long)j;
    const struct pe_attention_mask *mask = &s.mask;
    if (mask->causal && key > at) {
        return false;
    }
    if (mask->n_window == 1 && labs(at - key) >= mask->window[0]) {
        return false;
    }
    if (mask->n_window == 2 && (at - key > mask->window[0] || key - at > mask->window[1])) {
        return false;
    }
    if (mask->lengths && (double)j >= s.lengths_of[b]) {
        return false;
    }
    if (mask->documents && document_of(at) != document_of(key)) {
        return false;
    }
    return !mask->keep || kept(b, i, j);
}

/* ---- The comparison ------------------------------------------------------------------------------------ */

static double bias_at(size_t h, size_t i, size_t j) {
    return s.biased ? (double)((h * 31 + i * 7 + j * 5) % 9) / 4 - 1 : 0;
}

static void row_compare(const double *weights, size_t b, size_t h, size_t i) {
    double total = 0;
    for (size_t j = 0; j < s.keys; j++) {
        total += sees(b, i, j) ? exp(bias_at(h, i, j)) : 0;
    }
    for (size_t j = 0; j < s.keys; j++) {
        double wanted = sees(b, i, j) ? exp(bias_at(h, i, j)) / total : 0;
        ck_assert_msg(sees(b, i, j) ? fabs(weights[j] - wanted) <= 1e-14 : weights[j] == 0,
                      "setup %u: sequence %zu head %zu query %zu of %zu key %zu of %zu: %.17g, not %.17g",
                      number, b, h, i, s.queries, j, s.keys, weights[j], wanted);
    }
}

static void setup_compare(unsigned seed) {
    static const double zeros[BATCH * HEADS * MOST];
    double biases[HEADS * MOST * MOST];
    setup_make(seed);
    size_t batch = s.batch ? s.batch : 1, lead = s.batch ? 0 : 1;
    size_t of_q[4] = {batch, HEADS, s.queries, 1}, of_k[4] = {batch, HEADS, s.keys, 1};
    struct pe_tensor q = {.data = (void *)(uintptr_t)zeros, .dtype = PE_DTYPE_F64, .rank = (int)(4 - lead)},
                     k = q;
    memcpy(q.dim, of_q + lead, sizeof of_q - lead * sizeof *of_q);
    memcpy(k.dim, of_k + lead, sizeof of_k - lead * sizeof *of_k);
    struct pe_tensor bias = {
        .data = biases, .dtype = PE_DTYPE_F64, .rank = 3, .dim = {HEADS, s.queries, s.keys}};
    for (size_t n = 0; n < HEADS * s.queries * s.keys; n++) {
        biases[n] = bias_at(n / s.keys / s.queries, n / s.keys % s.queries, n % s.keys);
    }
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)1 << 20, NULL, &err);
    struct pe_attention_args args = {
        .size = sizeof args, .q = &q, .k = &k, .mask = &s.mask, .bias = s.biased ? &bias : NULL};
    struct pe_attention_result result;
    struct pe_work work;
    ck_assert_msg(pe_attention_open(arena, &work, &result, &args, &err) == PE_OK, "setup %u: %s: %s", seed,
                  err.path, err.text);
    ck_assert(pe_work_run(&work));
    const double *weights = result.weights.data;
    for (size_t row = 0; row < batch * HEADS * s.queries; row++) {
        row_compare(weights + row * s.keys, row / s.queries / HEADS, row / s.queries % HEADS,
                    row % s.queries);
    }
    pe_arena_close(arena);
}

START_TEST(masks_are_their_definitions) {
    for (unsigned i = 0; i < SETUPS / GROUPS; i++) {
        setup_compare((unsigned)_i * (SETUPS / GROUPS) + i + 1);
    }
}
END_TEST

/* All the rules are among the setups, alone and with each other. */
START_TEST(all_rules_are_tried) {
    int with[6] = {0}, together = 0, longer = 0, blind = 0;
    for (unsigned i = 1; i <= SETUPS; i++) {
        setup_make(i);
        const struct pe_attention_mask *mask = &s.mask;
        int n = mask->causal + (mask->lengths != NULL) + (mask->documents != NULL) + (mask->keep != NULL) +
                (mask->n_window > 0);
        with[0] += mask->causal && n == 1;
        with[1] += mask->lengths && n == 1;
        with[2] += mask->documents && n == 1;
        with[3] += mask->keep && n == 1;
        with[4] += mask->n_window == 1;
        with[5] += mask->n_window == 2;
        together += n == 5;
        longer += s.queries > s.keys;
        bool any = false;
        for (size_t j = 0; j < s.keys; j++) {
            any = any || sees(0, 0, j);
        }
        blind += !any;
    }
    for (int r = 0; r < 6; r++) {
        ck_assert_int_gt(with[r], 0);
    }
    ck_assert(together > 0 && longer > 50 && blind > 20);
}
END_TEST

Suite *masks_suite(void) {
    Suite *suite = suite_create("masks");
    TCase *tests = tcase_create("masks");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, masks_are_their_definitions, 0, GROUPS);
    tcase_add_test(tests, all_rules_are_tried);
    return suite;
}
