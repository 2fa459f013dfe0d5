/* SPDX-License-Identifier: MIT
 *
 * Presets: what config/presets.json says is what is served and what is computed; a file of one's own adds to
 * it, and is refused at start where it could not be used.
 */
#include "call_run.h"
#include "config_jansson.h"
#include "suites.h"
#include "wire/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static json_t *built_in(void) {
    char path[300];
    snprintf(path, sizeof path, "%.*s../../config/presets.json", (int)(strrchr(__FILE__, '/') + 1 - __FILE__),
             __FILE__);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(json), "%s: run the tests at the root of the project", path);
    return json;
}

struct outside {
    json_t *made;
};

static void make_text(void *context) {
    struct outside *outside = context;
    outside->made = json_string("kept");
}

static void guarded(void *context) {
    json_decref(json_string("not kept"));
    jansson_outside(make_text, context);
}

/* What is made outside of the guard is malloc's, and lives on; and within it a budget is kept to. */
START_TEST(in_and_outside_of_the_guard) {
    struct pe_error err = {0};
    struct outside outside = {NULL};
    struct pe_arena *budget = pe_arena_open(4096, NULL, &err);
    ck_assert_int_eq(jansson_guard(guarded, &outside, budget, &err), PE_OK);
    ck_assert_str_eq(json_string_value(outside.made), "kept");
    json_decref(outside.made);
    ck_assert_uint_eq(pe_arena_used(budget), 0);
    ck_assert_int_eq(pe_arena_charge(budget, 4096, &err), PE_OK);
    outside.made = NULL;
    ck_assert_int_eq(jansson_guard(guarded, &outside, budget, &err), PE_ERR_LIMIT);
    ck_assert_ptr_null(outside.made);
    ck_assert_uint_eq(err.limit, 4096);
    ck_assert_uint_eq(pe_arena_used(budget), 4096);
    pe_arena_close(budget);
}
END_TEST

/* The page tells more than the file does: which family the encoding's type is of. */
static void check_family(const char *name, json_t *served) {
    char request[200];
    const json_t *encoding = json_object_get(served, "encoding"), *family = json_object_get(served, "family");
    snprintf(request, sizeof request, "GET /v1/encodings/%s",
             json_string_value(json_object_get(encoding, "type")));
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_msg(json_is_string(family) && json_equal(json_object_get(try.json, "family"), family), "%s: %s",
                  name, json_string_value(family));
    ck_assert_int_eq(json_object_del(served, "family"), 0);
    ck_assert_msg(json_is_string(json_object_get(served, "source")), "%s has no source", name);
    call_try_close(&try);
}

START_TEST(the_file_is_what_is_served) {
    json_t *file = built_in(), *entry;
    const char *name;
    struct call_try try = {.request = "GET /v1/presets"};
    call_try(&ground, &try);
    ck_assert_uint_ge(json_object_size(file), 40);
    json_object_foreach(json_object_get(try.json, "presets"), name, entry) {
        check_family(name, entry);
    }
    ck_assert_msg(json_equal(json_object_get(try.json, "presets"), file), "%s", try.reply);
    call_try_close(&try);
    json_decref(file);
}
END_TEST

/* Names that are promised: they stay, whatever else there is. */
START_TEST(names_of_models_stay) {
    static const char *const names[] = {"attention-is-all-you-need",
                                        "bert-base",
                                        "roberta-base",
                                        "gpt2",
                                        "opt",
                                        "whisper-base",
                                        "vit-mae-base",
                                        "t5-small",
                                        "bloom",
                                        "mpt-7b",
                                        "llama-2-7b",
                                        "llama-3.1-8b",
                                        "llama-3.2-1b",
                                        "qwen2.5-7b",
                                        "phi-3-mini-128k",
                                        "gpt-oss-20b",
                                        "swin-tiny",
                                        "deberta-v3-base"};
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        ck_assert_msg(presets_find(ground.presets, names[i]) != NULL, "%s is no preset", names[i]);
    }
}
END_TEST

/* What a preset still needs, asked of its rows: its width, or a table. */
static const struct pe_field *needed(const struct pe_encoding_info *info, unsigned flag, enum pe_kind kind) {
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct pe_field *row = &info->fields[i];
        if ((row->flags & PE_FIELD_REQUIRED) && (flag ? (row->flags & flag) != 0 : row->kind == kind)) {
            return row;
        }
    }
    return NULL;
}

/* Its own words are in the echo. */
static void check_echo(const char *name, const json_t *encoding, const struct call_try *try) {
    const char *key;
    json_t *value;
    ck_assert_msg(try->status == 200, "%s: %s", name, try->reply);
    json_object_foreach((json_t *)(uintptr_t)encoding, key, value) {
        ck_assert_msg(json_equal(json_object_get(json_object_get(try->json, "encoding"), key), value),
                      "%s: %s", name, key);
    }
}

static bool is_table(const struct pe_encoding_info *info, const char *name) {
    const struct pe_field *row = pe_field_find(info->fields, info->n_fields, name);
    return row && row->kind == PE_KIND_TABLE;
}

static void check_preset(const char *name, const json_t *encoding) {
    const struct pe_encoding_info *info =
        pe_encoding_find(json_string_value(json_object_get(encoding, "type")));
    ck_assert_msg(info != NULL, "%s is of no type", name);
    const struct pe_field *width = needed(info, PE_FIELD_WIDTH, PE_KIND_INT),
                          *table = needed(info, 0, PE_KIND_TABLE);
    char request[200], field[100];
    bool has_width = width && json_object_get(encoding, width->name);
    snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=0:3%s%s%s", name,
             width && !has_width ? "&" : "", width && !has_width ? width->name : "",
             width && !has_width ? "=6" : "");
    struct call_try try = {.request = request};
    if (!(pe_encoding_abilities(info) & PE_CAN_ENCODE)) {
        call_try(&ground, &try);
        const char *at = call_try_text(&try, "field");
        bool tables = strncmp(at, "encoding.", 9) == 0 && is_table(info, at + 9);
        ck_assert_msg(try.status == 400 && (tables || strcmp(at, "encoding.type") == 0), "%s: %s", name,
                      try.reply);
    } else if (table) {
        snprintf(field, sizeof field, "encoding.%s", table->name);
        call_expect_problem(&ground, &try, 400, "missing", field, NULL);
    } else {
        call_try(&ground, &try);
        if (strcmp(call_try_text(&try, "field"), "encoding.seq_len") == 0) { /* frequencies depend on it */
            call_try_close(&try);
            snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=0:3&seq_len=5000", name);
            try = (struct call_try){.request = request};
            call_try(&ground, &try);
        }
        for (int axes = 2; axes <= 3 && strcmp(call_try_text(&try, "field"), "positions") == 0; axes++) {
            call_try_close(&try); /* its positions have coordinates */
            snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions.grid=2,2%s", name,
                     axes > 2 ? ",2" : "");
            try = (struct call_try){.request = request};
            call_try(&ground, &try);
        }
        check_echo(name, encoding, &try);
    }
    call_try_close(&try);
}

/* Each gives vectors of the width asked, says that it needs its table, or that its type makes no vectors. */
START_TEST(every_preset_is_of_use) {
    json_t *file = built_in(), *entry;
    const char *name;
    json_object_foreach(file, name, entry) {
        check_preset(name, json_object_get(entry, "encoding"));
    }
    json_decref(file);
}
END_TEST

/* What is learned is named, where the preset can be used at all: a table, or tables of other names. */
START_TEST(presets_name_the_table_they_need) {
    static const struct {
        const char *preset, *request, *field;
    } rows[] = {
        {"t5-small", "bias", "encoding.table"},          {"mt5-small-decoder", "bias", "encoding.table"},
        {"swin-tiny", "bias", "encoding.table"},         {"beit-base", "bias", "encoding.table"},
        {"swin-v2-tiny", "bias", "encoding.table"},      {"wavlm-base", "attention", "encoding.table"},
        {"w2v-bert-2.0", "attention", "encoding.keys"},  {"transformer-xl", "attention", "encoding.w_r"},
        {"vit-base-16-224", "encode", "encoding.table"}, {"gpt2", "encode", "encoding.table"},
    };
    char zeros[3 * 64 + 1] = "", body[600], request[40];
    for (size_t i = 0; i < 64; i++) {
        snprintf(zeros + strlen(zeros), 3, i ? ",0" : "0");
    }
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        const char *op = rows[i].request;
        snprintf(request, sizeof request, "POST /v1/%s", op);
        snprintf(body, sizeof body,
                 strcmp(op, "attention") == 0 ? "{\"encoding\":\"%s\",\"q\":[[%s]],\"k\":[[%s]]}"
                 : strcmp(op, "bias") == 0    ? "{\"encoding\":\"%s\",\"heads\":1}"
                                              : "{\"encoding\":\"%s\",\"positions\":[0]}",
                 rows[i].preset, zeros, zeros);
        struct call_try try = {.request = request, .body = body};
        call_expect_problem(&ground, &try, 400, "missing", rows[i].field, NULL);
        call_try_close(&try);
    }
}
END_TEST

/* A query may change what a preset says, once. */
START_TEST(presets_may_be_changed) {
    struct call_try try = {.request = "GET /v1/encode?encoding=whisper&d_model=4&positions=0&base=100"};
    call_try(&ground, &try);
    ck_assert_msg(strstr(try.reply, "\"base\":100.0,\"layout\":\"halves\"") != NULL, "%s", try.reply);
    call_try_close(&try);
    struct call_try layout = {.request =
                                  "GET /v1/encode?layout=interleaved&encoding=whisper&d_model=4&positions=0"};
    call_try(&ground, &layout);
    ck_assert_msg(strstr(layout.reply, "\"layout\":\"interleaved\"") != NULL, "%s", layout.reply);
    call_try_close(&layout);
    struct call_try twice = {
        .request = "GET /v1/encode?encoding=whisper&d_model=4&positions=0&layout=halves&layout=halves"};
    call_expect_problem(&ground, &twice, 400, "conflict", "encoding.layout", "is given twice");
    call_try_close(&twice);
}
END_TEST

/* Opens presets with a file of this text. */
static struct presets *open_text(const char *text, struct pe_error *err) {
    char path[] = "/tmp/check_presets_XXXXXX";
    struct presets *presets = NULL;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int code = presets_open(&presets, path, err);
    unlink(path);
    ck_assert_int_eq(code == 0, presets != NULL);
    return presets;
}

/* The same holds for each member of an object, a table among the tensors of a body, and the numbers of a table. */
START_TEST(members_of_presets_may_be_changed) {
    static const struct {
        const char *request, *echo, *conflict;
    } rows[] = {
        {"?encoding=llama-3.1-8b&positions=0&scaling.factor=4",
         "\"rope_type\":\"llama3\",\"factor\":4.0,\"original_max_position_embeddings\":8192,", NULL},
        {"?scaling.high_freq_factor=5&scaling.factor=4&encoding=llama-3.1-8b&positions=0",
         "\"high_freq_factor\":5.0", NULL},
        {"?encoding=llama-3.1-8b&positions=0&rope_scaling.factor=4", "\"factor\":4.0,", NULL},
        {"?encoding=llama-3.1-8b&positions=0&scaling.factor=4&scaling.factor=4", NULL,
         "encoding.scaling.factor"},
        {"?encoding=mine&positions=0&table=[[3,4]]", "\"table\":{\"shape\":[1,2],", NULL},
    };
    struct pe_error err = {0};
    struct presets *presets =
        open_text("{\"mine\":{\"doc\":\"d\",\"encoding\":{\"type\":\"learned\","
                  "\"table\":\"nowhere\"}},\"llama-3.1-8b\":{\"doc\":\"d\",\"encoding\":"
                  "{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":8,\"scaling\":{"
                  "\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
                  "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}}}",
                  &err);
    ck_assert_ptr_nonnull(presets);
    ground.service.presets = presets;
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char request[160];
        snprintf(request, sizeof request, "GET /v1/encode%s", rows[i].request);
        struct call_try try = {.request = request};
        if (rows[i].conflict) {
            call_expect_problem(&ground, &try, 400, "conflict", rows[i].conflict, "is given twice");
        } else {
            call_try(&ground, &try);
            ck_assert_msg(strstr(try.reply, rows[i].echo) != NULL, "%s: %s", request, try.reply);
        }
        call_try_close(&try);
    }
    struct call_try table = {.request = "POST /v1/apply?encoding=mine", .body = "{\"embeddings\":[[1,1]]}"};
    call_expect_problem(&ground, &table, 400, "unknown_name", "encoding.table", NULL);
    call_try_close(&table);
    presets_close(presets);
}
END_TEST

/* Of hundreds of names the likest are told. */
static const struct {
    const char *asked, *first;
} nearly[] = {
    {"wisper", "whisper"},
    {"sinusoida", "sinusoidal"},
    {"Llama-3.1-8B", "llama-3.1-8b"},
};

START_TEST(a_name_nearly_right_is_told_the_right_one) {
    char request[100], want[300];
    snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=0", nearly[_i].asked);
    struct call_try try = {.request = request};
    snprintf(want, sizeof want, "of these %zu names the nearest are: %s",
             pe_encoding_count() + presets_count(ground.presets), nearly[_i].first);
    call_try(&ground, &try);
    ck_assert_msg(strstr(try.reply, want) != NULL, "%s", try.reply);
    call_try_close(&try);
}
END_TEST

START_TEST(files_add_and_replace) {
    struct pe_error err = {0};
    struct presets *presets =
        open_text("{\"mine\":{\"doc\":\"d\",\"encoding\":{\"type\":\"random\",\"seed\":7}},"
                  "\"bert\":{\"doc\":\"other\",\"encoding\":{\"type\":\"none\"}}}",
                  &err);
    ck_assert_msg(presets != NULL, "%s", err.text);
    ck_assert_uint_eq(presets_count(presets), presets_count(ground.presets) + 1);
    ck_assert_str_eq(presets_find(presets, "mine")->json, "{\"type\":\"random\",\"seed\":7}");
    ck_assert_str_eq(presets_find(presets, "bert")->doc, "other");
    ground.service.presets = presets;
    struct call_try try = {.request = "GET /v1/encode?encoding=mine&d_model=2&positions=0"};
    call_try(&ground, &try);
    ck_assert_msg(strstr(try.reply, "{\"type\":\"random\",\"d_model\":2,\"seed\":7,") != NULL, "%s",
                  try.reply);
    call_try_close(&try);
    presets_close(presets);
}
END_TEST

/* A table [2, 2] of the number 7. */
static void write_table(const char *folder, const char *name) {
    static const float sevens[4] = {7, 7, 7, 7};
    const struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {2, 2}};
    char path[200], header[PE_NPY_HEADER_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, pe_npy_header(header, sizeof header, &shape), file);
    fwrite(sevens, 1, sizeof sevens, file);
    fclose(file);
}

static void expect_part(const char *request, const char *part) {
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_msg(strstr(try.reply, part) != NULL, "%s: %s is not in %s", request, part, try.reply);
    call_try_close(&try);
}

/* What a name means: the preset, else the type, else the table. Each is still to be had in the long form. */
START_TEST(presets_before_types_before_tables) {
    static const char *const files[] = {"vaswani.npy", "random.npy", "test_only.npy"};
    char folder[] = "/tmp/check_presets_XXXXXX", path[200];
    struct pe_error err = {0};
    struct presets *presets =
        open_text("{\"none\":{\"doc\":\"d\",\"encoding\":{\"type\":\"random\",\"seed\":7}}}", &err);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < PE_COUNT(files); i++) {
        write_table(folder, files[i]);
    }
    call_ground_close(&ground);
    call_ground_open_tables(&ground, folder);
    ground.service.presets = presets;
    expect_part("GET /v1/encode?encoding=none&d_model=2&positions=0", "\"seed\":7");
    expect_part("GET /v1/encode?type=none&positions=0", "none makes no vectors");
    expect_part("GET /v1/encode?encoding=vaswani&d_model=2&positions=0", "\"type\":\"sinusoidal\"");
    expect_part("GET /v1/encode?encoding=random&d_model=2&positions=0", "\"type\":\"random\"");
    expect_part("GET /v1/encode?encoding=test_only&positions=0", "[[7.0,7.0]]");
    expect_part("GET /v1/encode?type=learned&table=random&positions=0", "[[7.0,7.0]]");
    for (size_t i = 0; i < PE_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    presets_close(presets);
}
END_TEST

START_TEST(files_that_are_refused) {
    static const struct {
        const char *text;
        int code;
        const char *path;
    } rows[] = {
        {"", PE_ERR_SYNTAX, "presets_file"},
        {"[]", PE_ERR_TYPE, "presets_file"},
        {"{\"a\":1}", PE_ERR_TYPE, "presets_file"},
        {"{\"a\":{\"doc\":\"d\"}}", PE_ERR_TYPE, "presets_file"},
        {"{\"a\":{\"doc\":\"d\",\"source\":1,\"encoding\":{\"type\":\"none\"}}}", PE_ERR_TYPE,
         "presets_file"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"none\"},\"x\":1}}", PE_ERR_TYPE, "presets_file"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{}}}", PE_ERR_MISSING, "encoding.type"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"nope\"}}}", PE_ERR_UNKNOWN_NAME, "encoding.type"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"random\",\"std\":0}}}", PE_ERR_RANGE,
         "encoding.std"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"random\",\"nope\":0}}}", PE_ERR_UNKNOWN_FIELD,
         "encoding.nope"},
        /* A table is loaded, or posted with a request; there is none to post here. */
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"learned\",\"table\":null}}}", PE_ERR_TYPE,
         "encoding.table"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"learned\",\"table\":[[1,2]]}}}", PE_ERR_TYPE,
         "encoding.table"},
        {"{\"a\":{\"doc\":\"d\",\"encoding\":{\"type\":\"learned\",\"table\":{\"data\":[1]}}}}",
         PE_ERR_MISSING, "encoding.table.data"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        ck_assert_ptr_null(open_text(rows[i].text, &err));
        ck_assert_msg(err.code == rows[i].code && strcmp(err.path, rows[i].path) == 0, "%s: %d %s: %s",
                      rows[i].text, err.code, err.path, err.text);
    }
    struct pe_error err = {0};
    struct presets *presets;
    ck_assert_int_eq(presets_open(&presets, "/nonexistent/file", &err), PE_ERR_UNKNOWN_NAME);
    ck_assert_ptr_null(presets);
}
END_TEST

Suite *presets_suite(void) {
    Suite *suite = suite_create("presets");
    TCase *tests = tcase_create("presets");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, in_and_outside_of_the_guard);
    tcase_add_test(tests, the_file_is_what_is_served);
    tcase_add_test(tests, names_of_models_stay);
    tcase_add_test(tests, every_preset_is_of_use);
    tcase_add_test(tests, presets_name_the_table_they_need);
    tcase_add_test(tests, members_of_presets_may_be_changed);
    tcase_add_loop_test(tests, a_name_nearly_right_is_told_the_right_one, 0, (int)PE_COUNT(nearly));
    tcase_add_test(tests, presets_may_be_changed);
    tcase_add_test(tests, files_add_and_replace);
    tcase_add_test(tests, presets_before_types_before_tables);
    tcase_add_test(tests, files_that_are_refused);
    return suite;
}
