/* SPDX-License-Identifier: MIT
 *
 * Want at the start: whatever the daemon opens either opens, or says in one line why not, and leaves nothing
 * behind: no block, no descriptor, no thread.
 */
#include "faults/fault_call.h"
#include "unit/suites.h"

#include "config.h"
#include "launch.h"
#include "log.h"
#include "metrics.h"
#include "net/buffers.h"
#include "net/done.h"
#include "net/http.h"
#include "net/pool.h"
#include "tables.h"
#include "wire/bind.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FAULTS 5000

static char folder[] = "/tmp/check_faults_XXXXXX";
static char presets_path[100], config_path[100];
static struct config config;

/* ---- The ground ---------------------------------------------------------------------------------------- */

static void write_file(const char *name, const void *bytes, size_t n) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void write_tables(void) {
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {2, 3}};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_safetensors_header header;
    const struct pe_named_tensor named = {"weight", shape};
    char bytes[1024];
    size_t n = pe_npy_header(bytes, sizeof bytes, &shape);
    memcpy(bytes + n, data, sizeof data);
    write_file("a.npy", bytes, n + sizeof data);
    ck_assert(!pe_safetensors_write(arena, &header, &named, 1, &err));
    memcpy(bytes, header.text, header.bytes);
    memcpy(bytes + header.bytes, data, sizeof data);
    write_file("b.safetensors", bytes, header.bytes + sizeof data);
    pe_arena_close(arena);
}

static void setup(void) {
    static const char presets[] = "{\"mine_with_a_name_of_some_length\": {\"doc\": \"mine\", \"encoding\": "
                                  "{\"type\": \"sinusoidal\", \"base\": 123456789.123456789}}}";
    static const char options[] = "{\"deadline_ms\": 1234567, \"admin_listen\": \"\", \"workers\": 2}";
    fault_setup();
    memcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX",
           sizeof "XXXXXX"); /* the last test's is there */
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(presets_path, sizeof presets_path, "%s/presets.json", folder);
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    write_file("presets.json", presets, sizeof presets - 1);
    write_file("config.json", options, sizeof options - 1);
    write_tables();
    pe_fields_init(config_fields, config_n_fields, &config, sizeof config);
    config.tables_dir = folder;
    config.presets_file = presets_path;
    config.connections = 8;
}

static void teardown(void) {
    static const char *const names[] = {"a.npy", "b.safetensors", "presets.json", "config.json"};
    char path[200];
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    remove(folder);
}

/* ---- Sweeping ------------------------------------------------------------------------------------------ */

static int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

/* `step` opens and closes again. Returns how many faults it met. */
static size_t sweep_mode(int (*step)(struct pe_error *err), enum fault_mode mode) {
    int before = open_descriptors(), code = PE_OK;
    size_t n = 0;
    for (bool struck = true; struck;) {
        struct pe_error err = {0};
        fault_arm(++n, mode);
        code = step(&err);
        struck = fault_disarm();
        ck_assert_msg(code == err.code && (code == PE_OK || (struck && err.text[0])),
                      "fault %zu: code %d, %d: \"%s\"", n, code, err.code, err.text);
        /* A folder or a file that cannot be opened is one that cannot be read; the reason is in the text. */
        ck_assert_msg(code == PE_OK || code == PE_ERR_MEMORY ||
                          (code == PE_ERR_UNKNOWN_NAME && strstr(err.text, "annot allocate memory")),
                      "fault %zu: %s \"%s\"", n, pe_code_slug(code), err.text);
        ck_assert_msg(fault_live() == 0, "fault %zu: %zu blocks", n, fault_live());
        ck_assert_int_eq(open_descriptors(), before);
        ck_assert_uint_lt(n, MAX_FAULTS);
    }
    ck_assert_int_eq(code, PE_OK);
    return n - 1;
}

static void sweep(int (*step)(struct pe_error *err)) {
    ck_assert_uint_gt(sweep_mode(step, FAULT_ONCE), 0);
    ck_assert_uint_gt(sweep_mode(step, FAULT_ONWARDS), 0);
}

/* ---- What is opened ------------------------------------------------------------------------------------ */

static int open_pool(struct pe_error *err) {
    struct pool_options options = {.n_workers = 3, .n_waiting = 1};
    struct pool *pool;
    int code = pool_open(&pool, &options, err);
    pool_close(pool);
    return code;
}

static int open_tables(struct pe_error *err) {
    struct tables *tables = NULL;
    int code = tables_open(&tables, folder, 1 << 20, err);
    tables_close(tables);
    return code;
}

static int open_presets(struct pe_error *err) {
    struct presets *presets;
    int code = presets_open(&presets, presets_path, err);
    presets_close(presets);
    return code;
}

static int load_config(struct pe_error *err) {
    struct config loaded;
    struct config_command command;
    static char flag[] = "--config", workers[] = "--workers=3", streams[] = "POSENC_STREAMS=3";
    char *argv[] = {flag, flag, config_path, workers, NULL}, *envp[] = {streams, NULL};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, err);
    if (arena) {
        int code = config_load(arena, &loaded, &command, 4, argv, envp, err);
        (void)code; /* err has it */
    }
    pe_arena_close(arena);
    return err->code;
}

static int open_metrics(struct pe_error *err) {
    static const char *const names[] = {"GET /v1/encode", "POST /v1/encode"};
    metrics_close(metrics_open(names, 2, err));
    return err->code;
}

static int use_buffers(struct pe_error *err) {
    static const size_t sizes[] = {100, (size_t)1 << 18, (size_t)5 << 20};
    struct buffers *buffers = buffers_open((size_t)16 << 20, NULL);
    for (size_t i = 0; buffers && i < 2 * PE_COUNT(sizes); i++) {
        struct pe_allocator allocator = buffers_allocator(buffers);
        size_t bytes = sizes[i % PE_COUNT(sizes)];
        char *block = allocator.alloc(allocator.context, bytes);
        if (block) {
            block[0] = block[bytes - 1] = 1;
            allocator.release(allocator.context, block, bytes);
        } else {
            pe_fail(err, PE_ERR_MEMORY, "", "no block");
        }
    }
    buffers_close(buffers);
    return buffers ? err->code : pe_fail(err, PE_ERR_MEMORY, "", "no buffers");
}

static int open_done(struct pe_error *err) {
    struct done done;
    bool good = done_open(&done);
    done_close(&done);
    return good ? PE_OK : pe_fail(err, PE_ERR_MEMORY, "", "no descriptor");
}

static int load_all(struct pe_error *err) {
    struct launch launch;
    int code = launch_load(&launch, &config, err);
    if (!code) {
        launch_unload(&launch);
    }
    return code;
}

/* With a socket, a loop and its thread. */
static int open_http(struct pe_error *err) {
    struct service service = {.config = &config};
    struct log log;
    struct pool *pool = NULL;
    struct http *http = NULL;
    struct pool_options workers = {.n_workers = 1, .n_waiting = 1};
    log_init(&log, STDERR_FILENO, CONFIG_LOG_OFF);
    struct http_options options = {
        .service = &service, .log = &log, .address = "127.0.0.1:0", .option = "--listen"};
    if (pool_open(&pool, &workers, err) == PE_OK) {
        options.pool = pool;
        int code = http_open(&http, &options, err);
        (void)code; /* err has it */
    }
    if (http) {
        http_drain(http, 0);
        http_join(http);
    }
    pool_close(pool);
    http_close(http);
    return err->code;
}

static int (*const steps[])(struct pe_error *err) = {open_pool,   open_tables,  open_presets,
                                                     load_config, open_metrics, use_buffers,
                                                     open_done,   load_all,     open_http};

START_TEST(a_start) {
    sweep(steps[_i]);
}
END_TEST

Suite *faults_start_suite(void) {
    Suite *suite = suite_create("faults_start");
    TCase *tests = tcase_create("faults_start");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_start, 0, PE_COUNT(steps));
    return suite;
}
