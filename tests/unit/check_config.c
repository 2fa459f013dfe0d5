/* SPDX-License-Identifier: MIT
 *
 * The options: what is the default, which source wins, what is refused and where the message says it came
 * from. Expected values are the documented ones, written out here.
 */
#include "suites.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 8

/* One start of the daemon: words after the program's name, variables, and the text of a file named by a first
 * flag (NULL = none). */
struct start {
    const char *words[MAX_WORDS], *variables[MAX_WORDS], *file;
};

struct outcome {
    struct pe_arena *arena;
    struct config config;
    struct config_command command;
    struct pe_error err;
    char path[64];
};

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}

static char *mutable(struct pe_arena *arena, const char *text) {
    struct pe_error err = {0};
    char *copy = pe_arena_text(arena, text, strlen(text), &err);
    ck_assert_ptr_nonnull(copy);
    return copy;
}

static void load(struct outcome *out, const struct start *start) {
    char *argv[MAX_WORDS + 4] = {NULL}, *envp[MAX_WORDS + 1] = {NULL};
    int argc = 0, code;
    memset(out, 0, sizeof *out);
    out->arena = pe_arena_open(1 << 20, NULL, &out->err);
    argv[argc++] = mutable(out->arena, "posencd");
    if (start->file) {
        snprintf(out->path, sizeof out->path, "/tmp/check_config_%ld.json", (long)getpid());
        write_file(out->path, start->file);
        argv[argc++] = mutable(out->arena, "--config");
        argv[argc++] = out->path;
    }
    for (int i = 0; i < MAX_WORDS && start->words[i]; i++) {
        argv[argc++] = mutable(out->arena, start->words[i]);
    }
    for (int i = 0; i < MAX_WORDS && start->variables[i]; i++) {
        envp[i] = mutable(out->arena, start->variables[i]);
    }
    code = config_load(out->arena, &out->config, &out->command, argc, argv, envp, &out->err);
    ck_assert_int_eq(code, out->err.code);
    if (start->file) {
        unlink(out->path);
    }
}

static void load_good(struct outcome *out, const struct start *start) {
    load(out, start);
    ck_assert_msg(out->err.code == PE_OK, "%s: %s", out->err.path, out->err.text);
}

static void done(struct outcome *out) {
    pe_arena_close(out->arena);
}

START_TEST(defaults_are_the_documented_ones) {
    struct outcome out;
    load_good(&out, &(struct start){0});
    const struct config *c = &out.config;
    ck_assert_str_eq(c->listen, "127.0.0.1:8080");
    ck_assert_str_eq(c->admin_listen, "127.0.0.1:9090");
    ck_assert_str_eq(c->presets_file, "");
    ck_assert_str_eq(c->tables_dir, "");
    ck_assert_int_eq(c->log_format, CONFIG_LOG_AUTO);
    const int64_t got[] = {c->workers,          c->queue_depth,      c->connections,   c->connections_per_ip,
                           c->idle_timeout_s,   c->stream_timeout_s, c->deadline_ms,   c->drain_delay_ms,
                           c->drain_timeout_ms, c->streams,          c->batch_requests};
    const int64_t want[] = {0, 256, 4096, 0, 75, 60, 30000, 0, 25000, 8, 256};
    for (size_t i = 0; i < PE_COUNT(want); i++) {
        ck_assert_int_eq(got[i], want[i]);
    }
    ck_assert_int_eq(c->body_bytes, 64LL << 20);
    ck_assert_int_eq(c->memory_bytes, 0);
    ck_assert_int_eq(c->expanded_bytes, 256LL << 20);
    ck_assert_int_eq(c->envelope_bytes, 1LL << 20);
    ck_assert_int_eq(c->reply_bytes, 64LL << 20);
    ck_assert_int_eq(c->stream_bytes, 64LL << 30);
    ck_assert_int_eq(c->tables_bytes, 1LL << 30);
    ck_assert_int_eq(c->plan_bytes, 64LL << 20);
    ck_assert_uint_eq(c->given, 0);
    ck_assert_int_eq(out.command.action, CONFIG_RUN);
    done(&out);
}
END_TEST

/* pe_fields_init swallows a default that its own row refuses: here it is set as a user would. */
START_TEST(each_row_is_complete) {
    const struct pe_field *row = &config_fields[_i];
    struct pe_error err = {0};
    struct config config;
    char flag[CONFIG_NAME_SIZE];
    ck_assert_ptr_nonnull(row->def);
    ck_assert_ptr_nonnull(row->doc);
    ck_assert_ptr_nonnull(row->unit);
    ck_assert(row->kind != PE_KIND_INT || row->max > row->min);
    memset(&config, 0, sizeof config);
    ck_assert_msg(pe_field_parse(NULL, config_fields, row, &config, row->def, &err) == PE_OK, "%s: %s",
                  row->name, err.text);
    ck_assert_uint_lt(strlen(config_flag_name(row, flag)), CONFIG_NAME_SIZE - 8);
    ck_assert(pe_field_find(config_fields, config_n_fields, row->name) == row);
}
END_TEST

START_TEST(flag_over_variable_over_file_over_default) {
    static const struct {
        struct start start;
        int64_t want;
    } rows[] = {
        {{.words = {"--deadline-ms", "1"},
          .variables = {"POSENC_DEADLINE_MS=2"},
          .file = "{\"deadline_ms\":3}"},
         1},
        {{.words = {"--deadline-ms=1"}, .file = "{\"deadline_ms\":3}"}, 1},
        {{.variables = {"HOME=/", "POSENC_DEADLINE_MS=2"}, .file = "{\"deadline_ms\":3}"}, 2},
        {{.file = "{\"deadline_ms\":3}"}, 3},
        {{.file = "{}"}, 30000},
    };
    struct outcome out;
    load_good(&out, &rows[_i].start);
    ck_assert_int_eq(out.config.deadline_ms, rows[_i].want);
    ck_assert(pe_field_given(config_fields, pe_field_find(config_fields, config_n_fields, "deadline_ms"),
                             &out.config) == (rows[_i].want != 30000));
    done(&out);
}
END_TEST

START_TEST(sources_mix) {
    struct outcome out;
    load_good(&out,
              &(struct start){.words = {"--workers", "3", "--body-bytes=32MiB"},
                              .variables = {"POSENC_ADMIN_LISTEN=", "POSENC_EXPANDED_BYTES=1GiB"},
                              .file = "{\"workers\":\"auto\",\"listen\":\"[::]:80\",\"log_format\":\"json\","
                                      "\"reply_bytes\":\"2MiB\",\"stream_bytes\":4096}"});
    ck_assert_int_eq(out.config.workers, 3);
    ck_assert_int_eq(out.config.body_bytes, 32LL << 20);
    ck_assert_int_eq(out.config.expanded_bytes, 1LL << 30);
    ck_assert_int_eq(out.config.reply_bytes, 2LL << 20);
    ck_assert_int_eq(out.config.stream_bytes, 4096);
    ck_assert_int_eq(out.config.log_format, CONFIG_LOG_JSON);
    ck_assert_str_eq(out.config.listen, "[::]:80");
    ck_assert_str_eq(out.config.admin_listen, "");
    done(&out);
}
END_TEST

START_TEST(the_file_may_be_named_by_a_variable_and_a_flag_wins) {
    struct outcome out;
    load(&out, &(struct start){.variables = {"POSENC_CONFIG=/nonexistent/a.json"}});
    ck_assert_str_eq(out.err.path, "/nonexistent/a.json");
    done(&out);
    load_good(&out,
              &(struct start){.variables = {"POSENC_CONFIG=/nonexistent/a.json"}, .file = "{\"streams\":2}"});
    ck_assert_int_eq(out.config.streams, 2);
    ck_assert_str_eq(out.command.file, out.path);
    done(&out);
}
END_TEST

/* Path "FILE" stands for the file's own name. */
static const struct refusal {
    struct start start;
    int code;
    const char *path, *text;
} refusals[] = {
    {{.words = {"--workers", "-1"}},
     PE_ERR_RANGE,
     "--workers",
     "must be at least 0 and at most 1024, got -1"},
    {{.words = {"--workers=many"}}, PE_ERR_TYPE, "--workers", "must be a whole number, got \"many\""},
    {{.words = {"--queue-depth", "1.5"}}, PE_ERR_TYPE, "--queue-depth", "must be a whole number, got 1.5"},
    {{.words = {"--queue-depth", "auto"}}, PE_ERR_TYPE, "--queue-depth", "got \"auto\""},
    {{.words = {"--queue-depth", "1", "--queue-depth=2"}},
     PE_ERR_CONFLICT,
     "--queue-depth",
     "is given twice"},
    {{.words = {"--queue-depth"}}, PE_ERR_MISSING, "--queue-depth", "needs a value"},
    {{.words = {"--dealine-ms", "5"}}, PE_ERR_UNKNOWN_FIELD, "--dealine-ms", "the nearest is --deadline-ms"},
    {{.words = {"--chek-config"}}, PE_ERR_UNKNOWN_FIELD, "--chek-config", "the nearest is --check-config"},
    {{.words = {"--deadline_ms=5"}}, PE_ERR_UNKNOWN_FIELD, "--deadline_ms", "the nearest is --deadline-ms"},
    {{.words = {"--check-config=1"}}, PE_ERR_TYPE, "--check-config", "takes no value, got \"1\""},
    {{.words = {"--check-config", "--print-config"}}, PE_ERR_CONFLICT, "--print-config", "another command"},
    {{.words = {"serve"}}, PE_ERR_UNKNOWN_FIELD, "command line", "got \"serve\", which belongs to no flag"},
    {{.words = {"--config"}}, PE_ERR_MISSING, "--config", "needs a value"},
    {{.words = {"--config=b"}, .file = "{}"}, PE_ERR_CONFLICT, "--config", "is given twice"},
    {{.words = {"--call"}}, PE_ERR_MISSING, "--call", "needs a request"},
    {{.words = {"--body-bytes", "64MB"}}, PE_ERR_TYPE, "--body-bytes", "KiB, MiB, GiB or TiB, got \"64MB\""},
    {{.words = {"--body-bytes", "512MiB"}},
     PE_ERR_CONFLICT,
     "--body-bytes",
     "at most expanded_bytes, 268435456"},
    {{.words = {"--expanded-bytes", "32MiB"}},
     PE_ERR_CONFLICT,
     "--expanded-bytes",
     "at least body_bytes, 67108864"},
    {{.words = {"--listen", "a:1"}, .variables = {"POSENC_ADMIN_LISTEN=a:1"}},
     PE_ERR_CONFLICT,
     "POSENC_ADMIN_LISTEN",
     "must not be the same as listen, a:1"},
    {{.words = {"--listen", "8080"}}, PE_ERR_SYNTAX, "--listen", "must be ADDRESS:PORT"},
    {{.words = {"--listen", "127.0.0.1:9090"}},
     PE_ERR_CONFLICT,
     "--listen",
     "must not be the same as admin_listen, 127.0.0.1:9090"},
    {{.words = {"--tables-dir", "a\nb"}}, PE_ERR_SYNTAX, "--tables-dir", "without control characters"},
    {{.words = {"--tables-dir", "a\xff"}}, PE_ERR_SYNTAX, "--tables-dir", "must be UTF-8"},
    {{.variables = {"POSENC_WORKERS="}}, PE_ERR_TYPE, "POSENC_WORKERS", "must be a whole number, got \"\""},
    {{.words = {"--workers=2"}, .variables = {"POSENC_WORKERS=x"}},
     PE_ERR_TYPE,
     "POSENC_WORKERS",
     "got \"x\""},
    {{.variables = {"POSENC_WORKRES=2"}},
     PE_ERR_UNKNOWN_FIELD,
     "POSENC_WORKRES",
     "nearest is POSENC_WORKERS"},
    {{.variables = {"POSENC_LISTEN=:x"}}, PE_ERR_SYNTAX, "POSENC_LISTEN", "got \":x\""},
    {{.variables = {"POSENC_LOG_FORMAT=xml"}},
     PE_ERR_CHOICE,
     "POSENC_LOG_FORMAT",
     "auto, json, text, off, got \"xml\""},
    {{.file = "{\"worker\":2}"}, PE_ERR_UNKNOWN_FIELD, "FILE: worker", "the nearest is \"workers\""},
    {{.file = "{\"wor\\nker\":2}"}, PE_ERR_UNKNOWN_FIELD, "FILE: wor?ker", "is not an option"},
    {{.file = "{\"workers\":2,\"workers\":2}"}, PE_ERR_SYNTAX, "FILE", "duplicate object key"},
    {{.file = "{\"workers\":\"2\"}"},
     PE_ERR_TYPE,
     "FILE: workers",
     "must be a whole number, got the string \"2\""},
    {{.file = "{\"workers\":2000}"}, PE_ERR_RANGE, "FILE: workers", "got 2000"},
    {{.file = "{\"workers\":2.5}"}, PE_ERR_TYPE, "FILE: workers", "must be a whole number, got 2.5"},
    {{.file = "{\"workers\":true}"}, PE_ERR_TYPE, "FILE: workers", "got true"},
    {{.file = "{\"workers\":null}"}, PE_ERR_TYPE, "FILE: workers", "got null"},
    {{.file = "{\"listen\":[]}"}, PE_ERR_TYPE, "FILE: listen", "got an array"},
    {{.file = "{\"listen\":8080}"}, PE_ERR_TYPE, "FILE: listen", "must be a string, got 8080"},
    {{.file = "{\"listen\":\"8080\"}"}, PE_ERR_SYNTAX, "FILE: listen", "must be ADDRESS:PORT"},
    {{.file = "{\"body_bytes\":\"1e6\"}"}, PE_ERR_TYPE, "FILE: body_bytes", "got \"1e6\""},
    {{.file = "[1]"}, PE_ERR_TYPE, "FILE", "must be one object"},
    {{.file = "{\"workers\":2"}, PE_ERR_SYNTAX, "FILE", "line 1 column 12"},
    {{.file = "{} x"}, PE_ERR_SYNTAX, "FILE", "end of file expected"},
    {{.words = {"--config", "/"}}, PE_ERR_UNKNOWN_NAME, "/", "cannot be read: Is a directory"},
};

START_TEST(refusals_say_where_and_what) {
    const struct refusal *row = &refusals[_i];
    struct outcome out;
    char path[256];
    load(&out, &row->start);
    bool file = strncmp(row->path, "FILE", 4) == 0;
    snprintf(path, sizeof path, "%s%s", file ? out.path : "", row->path + (file ? 4 : 0));
    ck_assert_str_eq(out.err.path, path);
    ck_assert_msg(strstr(out.err.text, row->text), "row %d: \"%s\" is not in \"%s\"", _i, row->text,
                  out.err.text);
    ck_assert_int_eq(out.err.code, row->code);
    done(&out);
}
END_TEST

START_TEST(variables_of_kubernetes_services_are_none_of_ours) {
    struct outcome out;
    load_good(&out, &(struct start){
                        .variables = {"POSENC_SERVICE_HOST=10.0.0.1", "POSENC_SERVICE_PORT_HTTP=8080",
                                      "POSENC_PORT=tcp://10.0.0.1:8080", "POSENC_PORT_8080_TCP_PORT=8080",
                                      "POSENC_ADMIN_PORT_9090_TCP=tcp://10.0.0.2:9090",
                                      "POSENC_ADMIN_SERVICE_PORT=9090"}});
    done(&out);
    load(&out, &(struct start){.variables = {"POSENC_PORT=8080"}});
    ck_assert_int_eq(out.err.code, PE_ERR_UNKNOWN_FIELD);
    done(&out);
    load(&out, &(struct start){.variables = {"POSENC_PORT_MAX=8080"}});
    ck_assert_int_eq(out.err.code, PE_ERR_UNKNOWN_FIELD);
    done(&out);
}
END_TEST

START_TEST(commands) {
    struct outcome out;
    load_good(&out, &(struct start){.words = {"--call", "GET /v1/limits", "--workers", "1"}});
    ck_assert_int_eq(out.command.action, CONFIG_CALL);
    ck_assert_str_eq(out.command.call, "GET /v1/limits");
    ck_assert_ptr_null(out.command.call_body);
    ck_assert_int_eq(out.config.workers, 1);
    done(&out);
    load_good(&out, &(struct start){.words = {"--call", "POST /v1/apply", "-", "--workers=1"}});
    ck_assert_str_eq(out.command.call_body, "-");
    ck_assert_int_eq(out.config.workers, 1);
    done(&out);
    load_good(&out, &(struct start){.words = {"--workers", "1", "--call=POST /v1/apply?a=b", "x.json"}});
    ck_assert_str_eq(out.command.call, "POST /v1/apply?a=b");
    ck_assert_str_eq(out.command.call_body, "x.json");
    done(&out);
    load_good(&out, &(struct start){.words = {"--healthcheck"}});
    ck_assert_int_eq(out.command.action, CONFIG_HEALTHCHECK);
    done(&out);
    /* Help is given whatever else is wrong. */
    load_good(&out, &(struct start){.words = {"-h", "--bogus"}, .variables = {"POSENC_BOGUS=1"}});
    ck_assert_int_eq(out.command.action, CONFIG_HELP);
    done(&out);
    load_good(&out, &(struct start){.words = {"--version"}, .variables = {"POSENC_WORKERS=x"}});
    ck_assert_int_eq(out.command.action, CONFIG_VERSION);
    done(&out);
}
END_TEST

START_TEST(sizes) {
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {
        {"0", 0},
        {"65536", 65536},
        {"1KiB", 1024},
        {"64MiB", 67108864},
        {"1GiB", 1 << 30},
        {"2TiB", 2LL << 40},
        {"7TiB", 7696581394432},
        {"9223372036854775807TiB", -1},
        {"", -1},
        {"MiB", -1},
        {"1.5MiB", -1},
        {"-1", -1},
        {"1mib", -1},
        {"1 MiB", -1},
        {"1MiBx", -1},
        {"9223372036854775808", -1},
        {"8388608TiB", -1},
        {"1e6", -1},
        {"8388607TiB", 9223370937343148032},
    };
    struct pe_error err = {0};
    int64_t bytes = -1;
    int code = config_bytes_parse(rows[_i].text, &bytes, &err);
    ck_assert_msg(bytes == rows[_i].want, "%s: got %lld", rows[_i].text, (long long)bytes);
    ck_assert_int_eq(code == PE_OK, rows[_i].want >= 0);
}
END_TEST

START_TEST(addresses) {
    static const struct {
        const char *text, *host, *port; /* host NULL: refused */
    } rows[] = {
        {"127.0.0.1:8080", "127.0.0.1", "8080"},
        {"[::1]:8080", "::1", "8080"},
        {"[::]:0", "::", "0"},
        {"localhost:65535", "localhost", "65535"},
        {":8080", "", "8080"},
        {"8080", NULL, NULL},
        {"", NULL, NULL},
        {"a:", NULL, NULL},
        {"a:65536", NULL, NULL},
        {"a:123456", NULL, NULL},
        {"::1:80", NULL, NULL},
        {"[::1]80", NULL, NULL},
        {"[::1:80", NULL, NULL},
        {"[]:80", NULL, NULL},
        {"[127.0.0.1]:80", NULL, NULL},
        {"a b:80", NULL, NULL},
        {"a:-1", NULL, NULL},
        {"http://a:80", NULL, NULL},
    };
    struct pe_error err = {0};
    struct config_address address = {0};
    int code = config_address_parse(rows[_i].text, &address, &err);
    ck_assert_msg((code == PE_OK) == (rows[_i].host != NULL), "%s", rows[_i].text);
    if (code == PE_OK) {
        ck_assert_str_eq(address.host, rows[_i].host);
        ck_assert_str_eq(address.port, rows[_i].port);
    }
}
END_TEST

static char *printed(void (*print)(FILE *, const struct config *), const struct config *config) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    print(out, config);
    fclose(out);
    return text;
}

START_TEST(what_is_printed_loads_again) {
    struct outcome out;
    load_good(&out, &(struct start){.words = {"--tables-dir", "a \"b\\c\" \xc3\xa9", "--body-bytes=1048577",
                                              "--log-format", "off", "--workers=2"}});
    char *text = printed(config_print, &out.config);
    ck_assert_ptr_nonnull(strstr(text, "\"body_bytes\": 1048577"));
    ck_assert_ptr_nonnull(strstr(text, "\"expanded_bytes\": \"256MiB\""));
    struct config again;
    pe_fields_init(config_fields, config_n_fields, &again, sizeof again);
    int code = config_parse_json(out.arena, &again, text, strlen(text), "printed", &out.err);
    ck_assert_msg(code == PE_OK, "%s: %s", out.err.path, out.err.text);
    char *text_again = printed(config_print, &again);
    ck_assert_str_eq(text_again, text);
    ck_assert_str_eq(again.tables_dir, out.config.tables_dir);
    ck_assert_int_eq(again.body_bytes, 1048577);
    free(text);
    free(text_again);
    done(&out);
}
END_TEST

START_TEST(a_number_of_bytes_that_is_no_multiple_stays_a_number) {
    struct outcome out;
    load_good(&out, &(struct start){.words = {"--workers=0", "--body-bytes=1025"}});
    char value[32];
    const struct pe_field *bytes = pe_field_find(config_fields, config_n_fields, "body_bytes");
    const struct pe_field *workers = pe_field_find(config_fields, config_n_fields, "workers");
    config_value_text(bytes, &out.config, value, sizeof value);
    ck_assert_str_eq(value, "1025");
    ck_assert(!config_value_text(workers, &out.config, value, sizeof value));
    ck_assert_str_eq(value, "auto");
    done(&out);
}
END_TEST

START_TEST(a_text_in_memory_is_as_strict_as_a_file) {
    static const char text[] = "{\"streams\":1,\"streams\":2}";
    struct outcome out;
    load_good(&out, &(struct start){0});
    ck_assert_int_eq(config_parse_json(out.arena, &out.config, text, strlen(text), "memory", &out.err),
                     PE_ERR_SYNTAX);
    ck_assert_str_eq(out.err.path, "memory");
    done(&out);
}
END_TEST

START_TEST(secrets_are_never_printed) {
    struct sample {
        uint64_t given;
        const char *key;
    } sample = {.key = "hunter2"};
    const struct pe_field row = {.name = "key",
                                 .kind = PE_KIND_TEXT,
                                 .offset = offsetof(struct sample, key),
                                 .flags = PE_FIELD_SECRET};
    char value[32];
    ck_assert(!config_value_text(&row, &sample, value, sizeof value));
    ck_assert_str_eq(value, "***");
}
END_TEST

static void print_help(FILE *out, const struct config *unused) {
    (void)unused;
    config_help(out);
}

START_TEST(help_names_all_options_in_100_columns) {
    char *text = printed(print_help, NULL);
    for (size_t i = 0; i < config_n_fields; i++) {
        char flag[CONFIG_NAME_SIZE], variable[CONFIG_NAME_SIZE];
        ck_assert_ptr_nonnull(strstr(text, config_flag_name(&config_fields[i], flag)));
        ck_assert_ptr_nonnull(strstr(text, config_env_name(&config_fields[i], variable)));
    }
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        ck_assert_msg(length <= 100, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    free(text);
}
END_TEST

Suite *config_suite(void) {
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_test(tests, defaults_are_the_documented_ones);
    tcase_add_loop_test(tests, each_row_is_complete, 0, (int)config_n_fields);
    tcase_add_loop_test(tests, flag_over_variable_over_file_over_default, 0, 5);
    tcase_add_test(tests, sources_mix);
    tcase_add_test(tests, the_file_may_be_named_by_a_variable_and_a_flag_wins);
    tcase_add_loop_test(tests, refusals_say_where_and_what, 0, (int)PE_COUNT(refusals));
    tcase_add_test(tests, variables_of_kubernetes_services_are_none_of_ours);
    tcase_add_test(tests, commands);
    tcase_add_loop_test(tests, sizes, 0, 19);
    tcase_add_loop_test(tests, addresses, 0, 18);
    tcase_add_test(tests, what_is_printed_loads_again);
    tcase_add_test(tests, a_number_of_bytes_that_is_no_multiple_stays_a_number);
    tcase_add_test(tests, a_text_in_memory_is_as_strict_as_a_file);
    tcase_add_test(tests, secrets_are_never_printed);
    tcase_add_test(tests, help_names_all_options_in_100_columns);
    suite_add_tcase(suite, tests);
    return suite;
}
