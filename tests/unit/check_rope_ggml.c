/* SPDX-License-Identifier: MIT
 *
 * rope in ggml's words: against tests/golden/rope_ggml.h, which a script makes from the formula alone,
 * against our own YaRN where the two are one, and every way to be wrong.
 */
#include "report_run.h"
#include "suites.h"

#include "golden/rope_ggml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fields of a rope in float64; the caller closes the try. */
static void encode(struct call_try *try, const char *fields) {
    json_t *encoding = json_loads(fields, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(encoding != NULL, "%s", fields);
    json_object_set_new(encoding, "type", json_string("rope"));
    json_t *body =
        json_pack("{s:o,s:[i,f],s:s}", "encoding", encoding, "positions", 3, 1000.5, "dtype", "float64");
    char *text = json_dumps(body, JSON_REAL_PRECISION(17));
    *try = (struct call_try){.request = "POST /v1/encode", .body = text};
    call_try(&report_ground, try);
    free(text);
    json_decref(body);
}

static void encode_well(struct call_try *try, const char *fields) {
    encode(try, fields);
    ck_assert_msg(try->status == 200, "%s: %s", fields, try->reply);
}

static double fact(const struct call_try *try, const char *name) {
    return json_number_value(json_object_get(try->json, name));
}

START_TEST(values_of_the_script) {
    const struct rope_ggml_case *row = &rope_ggml_cases[_i];
    struct call_try try;
    encode_well(&try, row->fields);
    const json_t *data = json_object_get(json_object_get(try.json, "inv_freq"), "data");
    const json_t *range = json_object_get(try.json, "correction_range");
    ck_assert_uint_eq(json_array_size(data), row->n);
    for (size_t i = 0; i < row->n; i++) {
        double got = json_number_value(json_array_get(data, i)), wanted = rope_ggml_values[row->first + i];
        ck_assert_msg(got == wanted, "%s pair %zu: %a, not %a", row->fields, i, got, wanted);
    }
    ck_assert_double_eq(fact(&try, "attention_factor"), row->attention_factor);
    ck_assert_int_eq(json_is_array(range), row->low >= 0);
    if (row->low >= 0) {
        ck_assert_double_eq(json_number_value(json_array_get(range, 0)), row->low);
        ck_assert_double_eq(json_number_value(json_array_get(range, 1)), row->high);
    }
    call_try_close(&try);
}
END_TEST

static const char *const tensors[] = {"cos",     "sin", "inv_freq", "attention_factor", "correction_range",
                                      "encoding"};

static void same(const struct call_try *a, const struct call_try *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(
            json_equal(json_object_get(a->json, tensors[i]), json_object_get(b->json, tensors[i])) ||
                (!json_object_get(a->json, tensors[i]) && !json_object_get(b->json, tensors[i])),
            "%s\n%s\n%s", tensors[i], a->reply, b->reply);
    }
}

/* The echo alone, and the echo beside the words that it comes from. */
START_TEST(the_echo_gives_the_same_bits) {
    const struct rope_ggml_case *row = &rope_ggml_cases[_i];
    struct call_try first, second, third;
    encode_well(&first, row->fields);
    json_t *echo = json_object_get(first.json, "encoding"), *fields = json_loads(row->fields, 0, NULL);
    ck_assert(json_object_get(echo, "ggml") == NULL);
    char *text = json_dumps(echo, JSON_REAL_PRECISION(17));
    encode_well(&second, text);
    json_object_update_missing(fields, echo);
    free(text);
    text = json_dumps(fields, JSON_REAL_PRECISION(17));
    encode_well(&third, text);
    free(text);
    same(&first, &second, 6);
    same(&first, &third, 6);
    json_decref(fields);
    call_try_close(&first);
    call_try_close(&second);
    call_try_close(&third);
}
END_TEST

/* YaRN of a factor that is a power of two, whose inverse is a double: the same bits, in both words. */
START_TEST(yarn_is_the_same) {
    static const struct {
        int d, context;
        double base, fast, slow;
    } rows[] = {{128, 4096, 10000, 32, 1}, {128, 32768, 1000000, 32, 1}, {64, 2048, 500, 40, 0.5},
                {6, 512, 10000, 32, 1},    {64, 100, 10000, 32, 1},      {96, 8192, 1e9, 8, 2}};
    double factor = 2 << (_i % 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_try ours, theirs;
        char fields[400];
        snprintf(fields, sizeof fields,
                 "{\"head_dim\":%d,\"layout\":\"halves\",\"base\":%.17g,\"scaling\":{\"rope_type\":\"yarn\","
                 "\"factor\":%g,"
                 "\"original_max_position_embeddings\":%d,\"beta_fast\":%g,\"beta_slow\":%g}}",
                 rows[i].d, rows[i].base, factor, rows[i].context, rows[i].fast, rows[i].slow);
        encode_well(&ours, fields);
        snprintf(
            fields, sizeof fields,
            "{\"head_dim\":%d,\"ggml\":{\"mode\":2,\"freq_base\":%.17g,\"freq_scale\":%.17g,\"ext_factor\":1,"
            "\"n_ctx_orig\":%d,\"beta_fast\":%g,\"beta_slow\":%g}}",
            rows[i].d, rows[i].base, 1 / factor, rows[i].context, rows[i].fast, rows[i].slow);
        encode_well(&theirs, fields);
        same(&ours, &theirs, 5);
        call_try_close(&ours);
        call_try_close(&theirs);
    }
}
END_TEST

/* Each pair's coordinate, as ggml_rope_multi shares them out: the position of one coordinate is 1, others are
 * 0, so that the pairs of that coordinate alone turn. */
static void check_axes(const char *fields, const char *axes) {
    for (int axis = 0; axis < 4; axis++) {
        char body[400];
        snprintf(body, sizeof body,
                 "{\"encoding\":{\"type\":\"rope\",\"head_dim\":16,%s},\"positions\":[[%d,%d,%d,%d]]}",
                 fields, axis == 0, axis == 1, axis == 2, axis == 3);
        struct report_tensor sin = report_tensor("POST /v1/encode", body, "sin");
        ck_assert_uint_eq(sin.n, strlen(axes));
        for (size_t i = 0; i < sin.n; i++) {
            ck_assert_msg((sin.values[i] != 0) == (axes[i] == "thwe"[axis]), "%s axis %d pair %zu", fields,
                          axis, i);
        }
    }
}

START_TEST(sections_are_shared_out) {
    check_axes("\"ggml\":{\"mode\":8,\"sections\":[4,2,2,0]}", "tttthhww");
    check_axes("\"ggml\":{\"mode\":8,\"sections\":[2,2,2,2]}", "tthhwwee");
    check_axes("\"ggml\":{\"mode\":40,\"sections\":[4,2,2,0]}", "thwthwte");
    check_axes("\"ggml\":{\"mode\":40,\"sections\":[3,3,2,0]}", "thwthwth");
    check_axes("\"ggml\":{\"mode\":40,\"sections\":[1,1,1,5]}", "thweeeee");
}
END_TEST

/* The mode is the layout, and a field that says the same is fine. */
START_TEST(modes_are_layouts) {
    static const struct {
        const char *fields, *layout;
    } rows[] = {{"{\"head_dim\":8,\"ggml\":{\"mode\":0}}", "interleaved"},
                {"{\"head_dim\":8,\"ggml\":{\"mode\":2}}", "halves"},
                {"{\"head_dim\":8,\"ggml\":{\"mode\":2},\"layout\":\"halves\",\"base\":10000}", "halves"},
                {"{\"head_dim\":8,\"ggml\":{\"freq_base\":5},\"layout\":\"interleaved\"}", "interleaved"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_try try;
        encode_well(&try, rows[i].fields);
        const json_t *encoding = json_object_get(try.json, "encoding");
        ck_assert_str_eq(json_string_value(json_object_get(encoding, "layout")), rows[i].layout);
        ck_assert(json_object_get(encoding, "scaling") == NULL);
        call_try_close(&try);
    }
}
END_TEST

START_TEST(from_a_query) {
    struct call_try try = {
        .request = "GET /v1/encode?type=rope&head_dim=8&ggml.mode=2&ggml.freq_scale=0.5&positions=2"};
    call_try(&report_ground, &try);
    ck_assert_msg(strstr(try.reply, "\"scaling\":{\"rope_type\":\"ggml\"") != NULL, "%s", try.reply);
    ck_assert_msg(strstr(try.reply, "\"inv_freq\":{\"shape\":[4],\"dtype\":\"float32\",\"data\":[0.5,") !=
                      NULL,
                  "%s", try.reply);
    call_try_close(&try);
}
END_TEST

#define HEAD(...) "{\"head_dim\":8,\"ggml\":{" __VA_ARGS__ "}}"
#define TOO(...)  "{\"head_dim\":8,\"ggml\":{\"mode\":2}," __VA_ARGS__ "}"

static const struct wrong {
    const char *fields, *slug, *field, *detail;
} wrongs[] = {
    {HEAD("\"freq_base\":5"), "missing", "encoding.ggml.mode",
     "is missing, it tells the layout: 0 (interleaved) or 2 (halves)"},
    {HEAD("\"mode\":24"), "choice", "encoding.ggml.mode",
     "24 (vision) shares the pairs out to the axes of an image: give the field rope_axes in its place"},
    {HEAD("\"mode\":3"), "choice", "encoding.ggml.mode",
     "must be 0 (normal), 2 (NEOX), 8 (MROPE) or 40 (IMROPE), got 3"},
    {HEAD("\"mode\":8"), "missing", "encoding.ggml.sections",
     "is missing, mode 8 shares the pairs out by them"},
    {HEAD("\"mode\":40"), "missing", "encoding.ggml.sections",
     "is missing, mode 40 shares the pairs out by them"},
    {HEAD("\"mode\":0,\"sections\":[1,1,1,1]"), "conflict", "encoding.ggml.sections",
     "are of the modes 8 and 40"},
    {HEAD("\"mode\":8,\"sections\":[2,1,1]"), "shape", "encoding.ggml.sections",
     "got 3 numbers, allowed are 4: t, h, w and e"},
    {HEAD("\"mode\":8,\"sections\":[2,1,1,1]"), "range", "encoding.sections",
     "has the length 4 and the sum 5, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    {HEAD("\"mode\":2,\"ext_factor\":1"), "missing", "encoding.ggml.n_ctx_orig",
     "is missing, ext_factor 1 needs the context of the training, from 2"},
    {HEAD("\"mode\":2,\"ext_factor\":1,\"n_ctx_orig\":512,\"freq_base\":1"), "range", "encoding.base",
     "is 1, rope_type ggml needs more: all wavelengths are the same"},
    {HEAD("\"mode\":2,\"freq_factors\":[1,2,3]"), "shape", "encoding.scaling.freq_factors",
     "has shape [3], allowed is [4], one number for each pair"},
    {HEAD("\"mode\":2,\"freq_factors\":[1,2,0,4]"), "range", "encoding.scaling.freq_factors[2]",
     "got 0, allowed is 1e-06 to 1e+09"},
    {HEAD("\"mode\":2,\"freq_scale\":0"), "range", "encoding.ggml.freq_scale",
     "must be at least 1e-06 and at most 1000, got 0"},
    {HEAD("\"mode\":2,\"ext_factor\":-1"), "range", "encoding.ggml.ext_factor",
     "must be at least 0 and at most 1, got -1"},
    {TOO("\"layout\":\"interleaved\""), "conflict", "encoding.layout",
     "is interleaved, but that of ggml.mode is halves"},
    {TOO("\"base\":500"), "conflict", "encoding.base", "is 500, but ggml gives 10000"},
    {TOO("\"scaling\":{\"rope_type\":\"linear\",\"factor\":2}"), "conflict", "encoding.scaling.rope_type",
     "differs from what ggml gives: change it there or leave it out here"},
    {"{\"head_dim\":8,\"ggml\":{\"mode\":2,\"freq_scale\":0.5},\"scaling\":{\"rope_type\":\"ggml\",\"freq_"
     "scale\":0.25}}",
     "conflict", "encoding.scaling.freq_scale",
     "differs from what ggml gives: change it there or leave it out here"},
    {"{\"head_dim\":8,\"ggml\":{\"mode\":8,\"sections\":[1,1,1,1]},\"sections\":[2,1,1,0]}", "conflict",
     "encoding.sections", "differ from those of ggml"},
    {TOO("\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8}"), "conflict", "encoding.ggml",
     "hf_config is there, too: the model is described by one of them"},
    {"{\"head_dim\":8,\"layout\":\"halves\",\"scaling\":{\"rope_type\":\"ggml\",\"ext_factor\":1}}",
     "missing", "encoding.scaling.original_max_position_embeddings", "is missing, ext_factor needs it"},
    {"{\"head_dim\":8,\"layout\":\"halves\",\"scaling\":{\"rope_type\":\"ggml\",\"factor\":1}}",
     "unknown_field", "encoding.scaling.factor", "rope_type ggml does not use it"},
    {"{\"head_dim\":8,\"layout\":\"halves\",\"scaling\":{\"rope_type\":\"linear\",\"factor\":2,\"freq_"
     "scale\":1}}",
     "unknown_field", "encoding.scaling.freq_scale", "rope_type linear does not use it"},
};

START_TEST(words_that_are_wrong) {
    const struct wrong *row = &wrongs[_i];
    struct call_try try;
    encode(&try, row->fields);
    ck_assert_msg(try.status == 400, "%s: %s", row->fields, try.reply);
    ck_assert_str_eq(call_try_text(&try, "field"), row->field);
    ck_assert_str_eq(call_try_text(&try, "detail"), row->detail);
    ck_assert_str_eq(call_try_slug(&try), row->slug);
    call_try_close(&try);
}
END_TEST

#define N_OF(rows) (int)(sizeof rows / sizeof *rows)

Suite *rope_ggml_suite(void) {
    Suite *suite = suite_create("rope_ggml");
    TCase *all = tcase_create("rope_ggml");
    tcase_add_checked_fixture(all, report_setup, report_teardown);
    tcase_add_loop_test(all, values_of_the_script, 0, N_OF(rope_ggml_cases));
    tcase_add_loop_test(all, the_echo_gives_the_same_bits, 0, N_OF(rope_ggml_cases));
    tcase_add_loop_test(all, yarn_is_the_same, 0, 5);
    tcase_add_test(all, sections_are_shared_out);
    tcase_add_test(all, modes_are_layouts);
    tcase_add_test(all, from_a_query);
    tcase_add_loop_test(all, words_that_are_wrong, 0, N_OF(wrongs));
    suite_add_tcase(suite, all);
    return suite;
}
