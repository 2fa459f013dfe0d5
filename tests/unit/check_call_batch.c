/* SPDX-License-Identifier: MIT
 *
 * batch: entries succeed and fail alone, in order, as they would one by one.
 */
#include "call_run.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static struct call_try batch(const char *body) {
    return (struct call_try){.request = "POST /v1/batch", .body = body};
}

/* Entry i of the reply: its status, and one text of its body. */
static int entry_status(const struct call_try *try, size_t i) {
    const json_t *entry = json_array_get(json_object_get(try->json, "responses"), i);
    return (int)json_integer_value(json_object_get(entry, "status"));
}

static const json_t *entry_body(const struct call_try *try, size_t i) {
    return json_object_get(json_array_get(json_object_get(try->json, "responses"), i), "body");
}

static const char *entry_text(const struct call_try *try, size_t i, const char *name) {
    const char *text = json_string_value(json_object_get(entry_body(try, i), name));
    return text ? text : "";
}

#define ENCODE "{\"op\":\"encode\",\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"positions\":[0,1]}"

/* The body of an entry is what the operation answers alone, to the byte. */
START_TEST(as_one_by_one) {
    static const char *const ops[] = {"encode", "apply", "attention", "shift", "positions"};
    static const char *const members[] = {
        "\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"positions\":\"0:3\"",
        "\"encoding\":\"vaswani\",\"embeddings\":[[1,2],[3,4]],\"flat\":true",
        "\"q\":[[1,0],[0,1]],\"k\":[[1,0],[0,1]],\"bias\":[[0,null],[0.5,0]],\"dtype\":\"float64\"",
        "\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"distance\":2.5",
        "\"mask\":[[0,1,1]],\"rule\":\"opt\"",
    };
    for (int threads = -1; threads < 9; threads++) {
        char body[2000] = "{\"requests\":[";
        for (size_t i = 0; i < PE_COUNT(ops); i++) {
            snprintf(body + strlen(body), sizeof body - strlen(body), "%s{%s,\"op\":\"%s\"}", i ? "," : "",
                     members[i], ops[i]);
        }
        snprintf(body + strlen(body), sizeof body - strlen(body), "]}");
        struct call_try all = batch(body);
        all.threads = threads;
        call_try(&ground, &all);
        ck_assert_int_eq(all.status, 200);
        const char *at = all.reply;
        for (size_t i = 0; i < PE_COUNT(ops); i++) {
            char request[100], alone[1000];
            snprintf(request, sizeof request, "POST /v1/%s", ops[i]);
            snprintf(alone, sizeof alone, "{%s}", members[i]);
            struct call_try one = {.request = request, .body = alone};
            call_try(&ground, &one);
            ck_assert_int_eq(one.status, 200);
            ck_assert_int_eq(entry_status(&all, i), 200);
            at = strstr(at, "\"body\":") + strlen("\"body\":");
            ck_assert_msg(strncmp(at, one.reply, one.reply_n) == 0, "%s in %s", one.reply, at);
            call_try_close(&one);
        }
        call_try_close(&all);
    }
}
END_TEST

START_TEST(entries_fail_alone) {
    struct call_try try =
        batch("{\"requests\":["
              "{\"op\":\"apply\",\"encoding\":\"none\",\"embeddings\":[[1],[2,3]]},"
              "7,{},{\"op\":1},{\"op\":\"nope\"},{\"op\":\"batch\",\"requests\":[]},"
              "{\"op\":\"encode\",\"nope\":1},"
              "{\"op\":\"encode\",\"encoding\":\"bert\",\"positions\":[0]},"
              "{\"op\":\"encode\",\"encoding\":\"none\",\"format\":\"npy\",\"positions\":[0]},"
              "{\"op\":\"encode\",\"encoding\":{\"type\":\"random\",\"d_model\":4},"
              "\"positions\":[0],\"dtype\":\"float16\"},"
              "{\"op\":\"encode\",\"encoding\":{\"type\":\"random\",\"d_model\":4},"
              "\"positions\":[0],\"shape\":[1]},"
              "{\"op\":\"encode\",\"encoding\":{\"type\":\"random\",\"d_model\":4},"
              "\"positions\":\"0:9000000000000000\"}," ENCODE "]}");
    static const struct {
        int status;
        const char *field;
    } rows[] = {{400, "embeddings[1]"},
                {400, "body"},
                {400, "op"},
                {400, "op"},
                {400, "op"},
                {400, "op"},
                {400, "nope"},
                {400, "encoding.table"},
                {406, "format"},
                {406, "format"},
                {400, "shape"},
                {413, "positions"},
                {200, ""}};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    ck_assert_uint_eq(json_array_size(json_object_get(try.json, "responses")), PE_COUNT(rows));
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        ck_assert_msg(entry_status(&try, i) == rows[i].status &&
                          strcmp(entry_text(&try, i, "field"), rows[i].field) == 0,
                      "entry %zu: %d at %s, wanted %d at %s", i, entry_status(&try, i),
                      entry_text(&try, i, "field"), rows[i].status, rows[i].field);
    }
    ck_assert(strstr(entry_text(&try, 4, "detail"), "allowed are encode, apply, "));
    call_try_close(&try);
}
END_TEST

/* A list of one operation's field is none of another's that has its name, and the message says what was sent.
 */
START_TEST(lists_for_other_fields) {
    struct call_try try =
        batch("{\"requests\":[{\"op\":\"attention\",\"q\":[[1]],\"k\":[[1]],\"mask\":[1]}]}");
    call_try(&ground, &try);
    ck_assert_str_eq(entry_text(&try, 0, "field"), "mask");
    ck_assert_str_eq(
        entry_text(&try, 0, "detail"),
        "must be an object with causal, lengths, documents, keep, window, or the word causal, got a list");
    call_try_close(&try);
}
END_TEST

START_TEST(lists_that_are_none) {
    static const struct {
        const char *body, *slug, *field;
    } rows[] = {{"", "missing", "body"},
                {"{}", "missing", "requests"},
                {"{\"requests\":7}", "type", "requests"},
                {"{\"requests\":[],\"nope\":1}", "unknown_field", "nope"},
                {"{\"requests\":[{\"op\":\"apply\",\"embeddings\":[[1,x]]}]}", "syntax",
                 "requests[0].embeddings[0][1]"},
                {"{\"requests\":[", "syntax", "body"}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = batch(rows[i].body);
        call_expect_problem(&ground, &try, 400, rows[i].slug, rows[i].field, NULL);
        call_try_close(&try);
    }
    struct call_try query = batch("{\"requests\":[]}"), accept = query, empty = query;
    query.request = "POST /v1/batch?dtype=float32";
    call_expect_problem(&ground, &query, 400, "unknown_field", "query", "a batch takes no parameters");
    call_try_close(&query);
    accept.head.accept = "application/x-npy";
    call_expect_problem(&ground, &accept, 406, "not_acceptable", "Accept", "the replies of a batch are JSON");
    call_try_close(&accept);
    empty.head.accept = "application/json";
    call_try(&ground, &empty);
    ck_assert_str_eq(empty.reply, "{\"responses\":[]}");
    call_try_close(&empty);
}
END_TEST

START_TEST(too_many_entries) {
    ground.config.batch_requests = 2;
    struct call_try two = batch("{\"requests\":[" ENCODE "," ENCODE "]}"),
                    three = batch("{\"requests\":[" ENCODE "," ENCODE "," ENCODE "]}");
    call_try(&ground, &two);
    ck_assert_int_eq(two.status, 200);
    call_try_close(&two);
    call_expect_problem(&ground, &three, 413, "limit", "requests", "has 3 entries, at most 2 are allowed");
    ck_assert_str_eq(call_try_text(&three, "option"), "batch_requests");
    call_try_close(&three);
}
END_TEST

/* What a batch may have costs nothing until it has it. */
START_TEST(memory_for_the_entries_there_are) {
    ground.config.batch_requests = 65536;
    struct call_try try = batch("{\"requests\":[" ENCODE "]}");
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    call_try_close(&try);
}
END_TEST

/* Plans take memory outside of the arena, and count all the same: 32 of 2 MiB do not fit 16 MiB. */
START_TEST(memory_of_plans) {
    char body[8192] = "{\"requests\":[";
    for (int i = 0; i < 32; i++) {
        size_t used = strlen(body);
        snprintf(body + used, sizeof body - used,
                 "%s{\"op\":\"encode\",\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":65536},"
                 "\"positions\":\"0:0\"}",
                 i ? "," : "");
    }
    size_t used = strlen(body);
    snprintf(body + used, sizeof body - used, "]}");
    ground.config.expanded_bytes = 16 << 20;
    struct call_try try = {.request = "POST /v1/batch", .body = body};
    call_try(&ground, &try);
    const json_t *responses = json_object_get(try.json, "responses");
    ck_assert_uint_eq(json_array_size(responses), 32);
    ck_assert_int_eq((int)json_integer_value(json_object_get(json_array_get(responses, 0), "status")), 200);
    ck_assert_int_eq((int)json_integer_value(json_object_get(json_array_get(responses, 31), "status")), 413);
    call_try_close(&try);
}
END_TEST

/* One reply that is too large does not take the room of those after it. */
START_TEST(one_large_reply) {
    ground.config.reply_bytes = 4096;
    struct call_try try =
        batch("{\"requests\":[" ENCODE ",{\"op\":\"positions\",\"positions\":\"0:1000\"}," ENCODE "," ENCODE
              "," ENCODE "," ENCODE "]}");
    call_try(&ground, &try);
    ck_assert_int_eq(entry_status(&try, 0), 200);
    ck_assert_int_eq(entry_status(&try, 1), 413);
    ck_assert_str_eq(entry_text(&try, 1, "option"), "reply_bytes");
    for (size_t i = 2; i < 6; i++) {
        ck_assert_msg(entry_status(&try, i) == 200, "%zu: %s", i, try.reply);
    }
    call_try_close(&try);
}
END_TEST

/* The bytes of a reply do not depend on the pieces in which they are asked for; some entries have failed. */
START_TEST(pulled_in_pieces) {
    const char *body = "{\"requests\":[{\"op\":\"none\"}," ENCODE ",{\"op\":\"positions\"}," ENCODE "]}";
    struct call_try whole = batch(body);
    whole.head.request_id = "one";
    call_try(&ground, &whole);
    ck_assert_int_eq(entry_status(&whole, 0), 400);
    ck_assert_int_eq(entry_status(&whole, 3), 200);
    for (size_t room = 1; room < 300; room += room < 60 ? 1 : 97) {
        struct call_try pieces = {.request = whole.request, .body = body, .room = room};
        pieces.head.request_id = "one";
        call_try(&ground, &pieces);
        ck_assert_str_eq(pieces.reply, whole.reply);
        call_try_close(&pieces);
    }
    call_try_close(&whole);
}
END_TEST

START_TEST(stopped) {
    struct call_try try = batch("{\"requests\":[" ENCODE "," ENCODE "]}");
    try.stop = CALL_STOP_DEADLINE;
    call_expect_problem(&ground, &try, 504, "deadline", "body", NULL);
    call_try_close(&try);
}
END_TEST

/* A message full of what JSON must escape still is JSON. */
START_TEST(messages_that_need_escapes) {
    char body[2000], name[400] = "";
    for (int i = 0; i < 60; i++) {
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s", i % 2 ? "\\u007f" : "\\\"");
    }
    snprintf(body, sizeof body,
             "{\"requests\":[{\"op\":\"%s\"},{\"op\":\"encode\",\"encoding\":\"%s\"},{\"op\":\"encode\",\"%"
             "s\":1}]}",
             name, name, name);
    struct call_try try = batch(body);
    call_try(&ground, &try);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(entry_status(&try, i), 400);
        ck_assert_uint_gt(strlen(entry_text(&try, i, "detail")), 0);
    }
    call_try_close(&try);
}
END_TEST

Suite *call_batch_suite(void) {
    Suite *suite = suite_create("call_batch");
    TCase *tests = tcase_create("batches");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, as_one_by_one);
    tcase_add_test(tests, entries_fail_alone);
    tcase_add_test(tests, lists_for_other_fields);
    tcase_add_test(tests, lists_that_are_none);
    tcase_add_test(tests, too_many_entries);
    tcase_add_test(tests, memory_for_the_entries_there_are);
    tcase_add_test(tests, memory_of_plans);
    tcase_add_test(tests, one_large_reply);
    tcase_add_test(tests, pulled_in_pieces);
    tcase_add_test(tests, stopped);
    tcase_add_test(tests, messages_that_need_escapes);
    return suite;
}
