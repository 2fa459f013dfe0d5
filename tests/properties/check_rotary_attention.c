/* SPDX-License-Identifier: MIT
 *
 * What holds for every rotary encoding in attention (rotary_setups.c): tokens may come one by one, padded,
 * packed or with shared keys, and the weights are those of the whole.
 */
#include "rotary_setups.h"
#include "unit/call_run.h"
#include "unit/suites.h"

#include <math.h>
#include <string.h>

#define W ROTARY_WIDTH
enum { T = 5 };

static struct rotary r;

static void teardown(void) {
    rotary_close(&r);
}

static struct pe_tensor tensor(const double *data, int rank, const size_t *dim) {
    struct pe_tensor out = {.data = (void *)(uintptr_t)data, .dtype = PE_DTYPE_F64, .rank = rank};
    memcpy(out.dim, dim, (size_t)rank * sizeof *dim);
    return out;
}

static struct pe_tensor rows(const double *data, size_t n) {
    return tensor(data, 2, (const size_t[]){n, W});
}

static struct pe_attention_result attend(const struct pe_attention_args *args) {
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_attention_result out;
    struct pe_attention_args mine = *args;
    mine.size = sizeof mine;
    mine.plan = r.plan;
    size_t n_q = args->q ? args->q->dim[args->q->rank - 2] : 0,
           n_k = args->k ? args->k->dim[args->k->rank - 2] : T;
    struct pe_positions of_q = rotary_positions(&r, n_q ? n_q : T, n_q ? (double)n_k - (double)n_q : 0, 1),
                        of_k = rotary_positions(&r, n_k, 0, 1);
    if (r.axes > 1 && !args->query_positions &&
        !args->key_positions) { /* points of a line, then: no default */
        mine.query_positions = &of_q;
        mine.key_positions = &of_k;
    }
    ck_assert_msg(pe_attention_open(r.arena, &work, &out, &mine, &err) == PE_OK, "%s: %s: %s",
                  r.setup->params, err.path, err.text);
    ck_assert(pe_work_run(&work));
    return out;
}

static const double *weights(const struct pe_attention_args *args) {
    return attend(args).weights.data;
}

static void expect_near(const double *got, const double *wanted, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(fabs(got[i] - wanted[i]) <= 1e-12, "%s: number %zu is %.17g, not %.17g",
                      r.setup->params, i, got[i], wanted[i]);
    }
}

static const struct pe_attention_mask causal = {.size = sizeof causal, .causal = true};

/* A query alone, aligned to the right, is the last row of all queries; and where it stands may be said, too.
 */
START_TEST(cached_decoding_is_the_last_row) {
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, T * W, 1), *y = rotary_numbers(&r, T * W, 2);
    struct pe_tensor q = rows(x, T), k = rows(y, T), last = rows(x + (T - 1) * W, 1);
    const double *all = weights(&(struct pe_attention_args){.q = &q, .k = &k, .mask = &causal});
    const double *one = weights(&(struct pe_attention_args){.q = &last, .k = &k, .mask = &causal});
    struct pe_positions at = rotary_positions(&r, 1, T - 1, 1), of_k = rotary_positions(&r, T, 0, 1);
    const double *said = weights(&(struct pe_attention_args){
        .q = &last, .k = &k, .query_positions = &at, .key_positions = &of_k, .mask = &causal});
    expect_near(one, all + (T - 1) * T, T);
    expect_near(said, one, T);
}
END_TEST

/* Keys that were turned before they were kept, as caches keep them, and a query turned alone. */
START_TEST(attention_is_apply_and_a_product) {
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, T * W, 3), *y = rotary_numbers(&r, T * W, 4);
    struct pe_positions at = rotary_positions(&r, T, 0, 1);
    const double *turned =
        rotary_apply(&r, x, &(struct pe_apply_args){.positions = &at}, 2, (const size_t[]){T, W});
    const double *kept = rotary_apply(&r, y, &(struct pe_apply_args){.positions = &at, .keys = true}, 2,
                                      (const size_t[]){T, W});
    struct pe_tensor q = rows(x, T), k = rows(y, T);
    struct pe_attention_result got = attend(&(struct pe_attention_args){
        .q = &q, .k = &k, .outputs = PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION});
    const double *logits = got.logits.data, *content = got.content.data, *position = got.position.data;
    struct pe_fact facts[PE_MAX_FACTS];
    double scale = 1 / sqrt(W);
    for (size_t i = 0, n = pe_plan_facts(r.plan, facts, PE_MAX_FACTS); i < n; i++) {
        scale = strcmp(facts[i].name, "softmax_scale") == 0 ? facts[i].value[0] : scale;
    }
    for (size_t i = 0; i < T * T; i++) {
        double sum = 0;
        for (size_t c = 0; c < W; c++) {
            sum += turned[i / T * W + c] * kept[i % T * W + c];
        }
        ck_assert_double_eq_tol(logits[i], sum * scale, 1e-12);
        ck_assert_double_eq_tol(content[i] + position[i], logits[i], 1e-12);
    }
}
END_TEST

/* Two of padding on the left, positions counted from the first token: the tokens' weights are as without. */
START_TEST(left_padding_changes_nothing) {
    enum { PAD = 2, N = PAD + T };
    static const double seen[N] = {0, 0, 1, 1, 1, 1, 1};
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, N * W, 5), *y = rotary_numbers(&r, N * W, 6);
    struct pe_tensor q = rows(x, N), k = rows(y, N), keep = tensor(seen, 1, (const size_t[]){N});
    struct pe_tensor q_alone = rows(x + PAD * W, T), k_alone = rows(y + PAD * W, T);
    struct pe_positions at = rotary_positions(&r, N, -PAD, 1);
    for (size_t i = 0; i < PAD * (size_t)r.axes; i++) {
        ((double *)(uintptr_t)at.list)[i] = 1; /* as generate() fills padding */
    }
    struct pe_attention_mask mask = {.size = sizeof mask, .causal = true, .keep = &keep};
    const double *padded = weights(&(struct pe_attention_args){
        .q = &q, .k = &k, .query_positions = &at, .key_positions = &at, .mask = &mask});
    const double *alone = weights(&(struct pe_attention_args){.q = &q_alone, .k = &k_alone, .mask = &causal});
    for (size_t i = 0; i < T; i++) {
        expect_near(padded + (PAD + i) * N + PAD, alone + i * T, T);
        ck_assert(padded[(PAD + i) * N] == 0 && padded[(PAD + i) * N + 1] == 0);
    }
}
END_TEST

/* Documents packed one after the other, each from position 0, see what they see alone. */
START_TEST(packed_documents_are_alone) {
    static const size_t lengths[] = {3, 1, 2};
    static const double lengths_list[] = {3, 1, 2};
    enum { N = 6 };
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, N * W, 7), *y = rotary_numbers(&r, N * W, 8);
    struct pe_tensor q = rows(x, N), k = rows(y, N), documents = tensor(lengths_list, 1, (const size_t[]){3});
    struct pe_positions at = rotary_positions(&r, N, 0, 1);
    double *list = (double *)(uintptr_t)at.list;
    for (size_t d = 0, first = 0; d < 3; first += lengths[d++]) {
        for (size_t i = 0; i < lengths[d] * (size_t)r.axes; i++) {
            list[first * (size_t)r.axes + i] = (double)(i / (size_t)r.axes);
        }
    }
    struct pe_attention_mask mask = {.size = sizeof mask, .causal = true, .documents = &documents};
    const double *packed = weights(&(struct pe_attention_args){
        .q = &q, .k = &k, .query_positions = &at, .key_positions = &at, .mask = &mask});
    for (size_t d = 0, first = 0; d < 3; first += lengths[d++]) {
        struct pe_tensor q_alone = rows(x + first * W, lengths[d]), k_alone = rows(y + first * W, lengths[d]);
        const double *alone =
            weights(&(struct pe_attention_args){.q = &q_alone, .k = &k_alone, .mask = &causal});
        for (size_t i = 0; i < lengths[d]; i++) {
            expect_near(packed + (first + i) * N + first, alone + i * lengths[d], lengths[d]);
        }
    }
}
END_TEST

/* Two key heads for four query heads are these keys written out twice each. */
START_TEST(grouped_key_heads_are_repeated_ones) {
    enum { HEADS = 4, KEY_HEADS = 2, N = T * W };
    double repeated[HEADS * N];
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, HEADS * N, 9), *y = rotary_numbers(&r, KEY_HEADS * N, 10);
    for (size_t h = 0; h < HEADS; h++) {
        memcpy(repeated + h * N, y + h / 2 * N, N * sizeof *y);
    }
    struct pe_tensor q = tensor(x, 3, (const size_t[]){HEADS, T, W}),
                     k = tensor(y, 3, (const size_t[]){KEY_HEADS, T, W}),
                     k_all = tensor(repeated, 3, (const size_t[]){HEADS, T, W});
    const double *grouped = weights(&(struct pe_attention_args){.q = &q, .k = &k});
    expect_near(grouped, weights(&(struct pe_attention_args){.q = &q, .k = &k_all}), HEADS * T * T);
    struct pe_tensor one = rows(x + N, T), its_keys = rows(y, T); /* head 1, which uses key head 0 */
    expect_near(grouped + T * T, weights(&(struct pe_attention_args){.q = &one, .k = &its_keys}), T * T);
}
END_TEST

/* Sequences of a batch are each computed alone, with positions of their own. */
START_TEST(sequences_of_a_batch_are_alone) {
    enum { B = 2, N = T * W };
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, B * N, 11), *y = rotary_numbers(&r, B * N, 12);
    struct pe_tensor q = tensor(x, 4, (const size_t[]){B, 1, T, W}),
                     k = tensor(y, 4, (const size_t[]){B, 1, T, W});
    struct pe_positions at = rotary_positions(&r, B * T, 0, 1); /* the second begins at T */
    at.batch = B;
    at.length = T;
    const double *both =
        weights(&(struct pe_attention_args){.q = &q, .k = &k, .query_positions = &at, .key_positions = &at});
    for (size_t b = 0; b < B; b++) {
        struct pe_tensor q_alone = rows(x + b * N, T), k_alone = rows(y + b * N, T);
        struct pe_positions its = rotary_positions(&r, T, (double)(b * T), 1);
        expect_near(both + b * T * T,
                    weights(&(struct pe_attention_args){
                        .q = &q_alone, .k = &k_alone, .query_positions = &its, .key_positions = &its}),
                    T * T);
    }
}
END_TEST

/* Embeddings that are projected by the identity are the queries and keys that they are. */
START_TEST(embeddings_are_their_own_queries) {
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, T * W, 13);
    struct pe_tensor tokens = rows(x, T);
    const double *wanted = weights(&(struct pe_attention_args){.q = &tokens, .k = &tokens});
    expect_near(weights(&(struct pe_attention_args){.embeddings = &tokens}), wanted, T * T);
    struct pe_positions at = rotary_positions(&r, T, 4, 3);
    wanted = weights(&(struct pe_attention_args){
        .q = &tokens, .k = &tokens, .query_positions = &at, .key_positions = &at});
    expect_near(weights(&(struct pe_attention_args){.embeddings = &tokens, .query_positions = &at}), wanted,
                T * T);
    expect_near(weights(&(struct pe_attention_args){.embeddings = &tokens, .key_positions = &at}), wanted,
                T * T);
}
END_TEST

/* ---- The setups themselves ----------------------------------------------------------------------------- */

static bool is_set_up(const char *type, const char *choice) {
    for (int i = 0; i < rotary_setup_count; i++) {
        const char *at = strstr(rotary_setups[i].params, choice), end = at ? at[strlen(choice)] : '?';
        if (strcmp(rotary_setups[i].type, type) == 0 && at && (end == ' ' || end == '\0')) {
            return true;
        }
    }
    return false;
}

static void check_choices(const char *type, const char *within, const struct pe_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char path[120];
        snprintf(path, sizeof path, "%s%s", within, fields[i].name);
        if (strcmp(path, "arithmetic") ==
            0) { /* replays are as inexact as what they replay: check_arithmetic.c */
            continue;
        }
        for (const struct pe_choice *c = fields[i].choices; c && c->name; c++) {
            char choice[200];
            snprintf(choice, sizeof choice, "%s=%s", path, c->name);
            bool layout = strcmp(path, "layout") == 0 && (strcmp(c->name, rotary_layouts[0]) == 0 ||
                                                          strcmp(c->name, rotary_layouts[1]) == 0);
            ck_assert_msg(layout || is_set_up(type, choice), "%s %s is not among the setups", type, choice);
        }
        if (fields[i].fields) {
            snprintf(path, sizeof path, "%s%s.", within, fields[i].name);
            check_choices(type, path, fields[i].fields, fields[i].n_fields);
        }
    }
}

START_TEST(every_choice_is_set_up) {
    rotary_open(&r, 0);
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        if (pe_encoding_row(info)->pairs) {
            check_choices(info->type, "", info->fields, info->n_fields);
        }
    }
}
END_TEST

Suite *rotary_attention_suite(void) {
    Suite *suite = suite_create("rotary_attention");
    TCase *each = tcase_create("every setup");
    int n = ROTARY_LAYOUTS * rotary_setup_count;
    suite_add_tcase(suite, each);
    tcase_add_checked_fixture(each, NULL, teardown);
    tcase_add_loop_test(each, cached_decoding_is_the_last_row, 0, n);
    tcase_add_loop_test(each, attention_is_apply_and_a_product, 0, n);
    tcase_add_loop_test(each, left_padding_changes_nothing, 0, n);
    tcase_add_loop_test(each, packed_documents_are_alone, 0, n);
    tcase_add_loop_test(each, grouped_key_heads_are_repeated_ones, 0, n);
    tcase_add_loop_test(each, sequences_of_a_batch_are_alone, 0, n);
    tcase_add_loop_test(each, embeddings_are_their_own_queries, 0, n);
    tcase_add_test(each, every_choice_is_set_up);
    return suite;
}
