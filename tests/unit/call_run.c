/* SPDX-License-Identifier: MIT
 *
 * Bodies are fed and replies pulled in memory of their exact size, so that a sanitizer sees every step beyond
 * them. The service's allocator counts: what a call takes it must give back, with the size it took.
 */
#include "call_run.h"

#include "api/plans.h"
#include "tables.h"
#include "wanted.h"
#include "wire/bind.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The service --------------------------------------------------------------------------------------- */

static void *count_alloc(void *context, size_t bytes) {
    struct call_ground *ground = context;
    void *block = malloc(bytes);
    if (block) {
        atomic_fetch_add(&ground->blocks, 1);
        atomic_fetch_add(&ground->bytes, bytes);
    }
    return block;
}

static void count_release(void *context, void *block, size_t bytes) {
    struct call_ground *ground = context;
    atomic_fetch_sub(&ground->blocks, 1);
    atomic_fetch_sub(&ground->bytes, bytes);
    free(block);
}

void call_ground_open_tables(struct call_ground *ground, const char *folder) {
    struct pe_error err = {0};
    *ground = (struct call_ground){0};
    pe_fields_init(config_fields, config_n_fields, &ground->config, sizeof ground->config);
    pe_linalg_init();
    ck_assert_msg(!presets_open(&ground->presets, "", &err), "%s", err.text);
    ck_assert_msg(!folder || !tables_open(&ground->tables, folder, 1 << 20, &err), "%s", err.text);
    ground->plans = plans_open(1 << 20, NULL); /* as the daemon has them: what is kept must not matter */
    ck_assert_ptr_nonnull(ground->plans);
    ground->service = (struct service){
        .config = &ground->config,
        .presets = ground->presets,
        .tables = ground->tables,
        .plans = ground->plans,
        .allocator = {count_alloc, count_release, ground},
    };
}

void call_ground_open(struct call_ground *ground) {
    call_ground_open_tables(ground, NULL);
}

void call_ground_close(struct call_ground *ground) {
    plans_close(ground->plans);
    presets_close(ground->presets);
    tables_close(ground->tables);
    ck_assert_uint_eq(atomic_load(&ground->blocks), 0);
    ck_assert_uint_eq(atomic_load(&ground->bytes), 0);
}

/* ---- The six steps ------------------------------------------------------------------------------------- */

static void open_call(const struct call_ground *ground, struct call_try *try) {
    size_t method = strcspn(try->request, " ");
    ck_assert(try->request[method] == ' ' && method < sizeof try->method);
    memcpy(try->method, try->request, method);
    try->method[method] = '\0';
    if (try->body && !try->body_n) {
        try->body_n = strlen(try->body);
    }
    try->head.method = try->method;
    try->head.target = try->request + method + 1;
    try->head.content_length = try->no_length ? -1 : (int64_t)try->body_n;
    try->call = call_open(&ground->service, &try->head);
    ck_assert_ptr_nonnull(try->call);
}

static void feed(struct call_try *try) {
    size_t step = try->chunk ? try->chunk : try->body_n;
    bool more = !call_answered(try->call);
    for (size_t at = 0; more && at < try->body_n; at += step) {
        size_t n = try->body_n - at < step ? try->body_n - at : step;
        char *own = malloc(n);
        memcpy(own, (const char *)try->body + at, n);
        more = call_feed(try->call, own, n);
        free(own);
    }
}

struct crew {
    struct call *call;
    size_t n_parts;
    atomic_size_t next;
};

static void *crew_member(void *context) {
    struct crew *crew = context;
    for (size_t part; (part = atomic_fetch_add(&crew->next, 1)) < crew->n_parts;) {
        call_run(crew->call, part);
    }
    return NULL;
}

static void work(struct call_try *try) {
    struct crew crew = {.call = try->call, .n_parts = try->n_parts};
    pthread_t threads[64];
    ck_assert_int_lt(try->threads, 64);
    for (int i = 0; i < try->threads; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, crew_member, &crew), 0);
    }
    for (int i = 0; i < try->threads; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; try->threads <= 0 && i < try->n_parts; i++) {
        call_run(try->call, try->threads ? try->n_parts - 1 - i : i);
    }
}

static void pull(struct call_try *try) {
    size_t step = try->room ? try->room : 65536, room = 0, n;
    const struct call_reply *reply = call_reply(try->call);
    char *own = malloc(step);
    do {
        n = call_pull(try->call, own, step);
        if (try->reply_n + n + 1 > room) {
            room = 2 * room + n + 1;
            try->reply = realloc(try->reply, room);
        }
        memcpy(try->reply + try->reply_n, own, n);
        try->reply_n += n;
        try->reply[try->reply_n] = '\0';
    } while (n > 0);
    free(own);
    if (reply->length >= 0 && !call_failed_short(try->call)) {
        ck_assert_int_eq(reply->length, (int64_t)try->reply_n);
    }
}

void call_try(const struct call_ground *ground, struct call_try *try) {
    open_call(ground, try);
    feed(try);
    if (try->stop_first) {
        call_stop(try->call, try->stop);
    }
    if (!call_answered(try->call)) {
        call_finish(try->call);
    }
    if (try->stop) {
        call_stop(try->call, try->stop);
    }
    if (!call_answered(try->call)) {
        try->n_parts = call_work(try->call)->n_parts;
        work(try);
        call_write(try->call);
    }
    ck_assert(call_answered(try->call));
    try->status = call_reply(try->call)->status;
    if (strcmp(try->method, "HEAD") != 0) {
        pull(try);
    }
    const char *type = call_try_header(try, "Content-Type");
    if (try->reply_n && strstr(type, "json")) {
        json_error_t error;
        try->json = json_loadb(try->reply, try->reply_n, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(try->json != NULL, "%s: %s in %.300s", try->request, error.text, try->reply);
    }
}

void call_try_close(struct call_try *try) {
    json_decref(try->json);
    free(try->reply);
    call_close(try->call);
}

/* ---- What came out ------------------------------------------------------------------------------------- */

const char *call_try_header(const struct call_try *try, const char *name) {
    const struct call_reply *reply = call_reply(try->call);
    for (size_t i = 0; i < reply->n_headers; i++) {
        if (strcmp(reply->headers[i].name, name) == 0) {
            return reply->headers[i].value;
        }
    }
    return "";
}

const char *call_try_text(const struct call_try *try, const char *name) {
    const char *text = json_string_value(json_object_get(try->json, name));
    return text ? text : "";
}

const char *call_try_slug(const struct call_try *try) {
    static const char urn[] = "urn:posenc:error:";
    const char *type = call_try_text(try, "type");
    return strncmp(type, urn, sizeof urn - 1) == 0 ? type + sizeof urn - 1 : "";
}

static struct pe_tensor raw_tensor(const struct call_try *try) {
    struct pe_tensor tensor = {.data = try->reply,
                               .dtype = pe_dtype_find(call_try_header(try, "X-Posenc-Dtype"))};
    const char *shape = call_try_header(try, "X-Posenc-Shape");
    for (char *end; *shape; shape = *end ? end + 1 : end) {
        tensor.dim[tensor.rank++] = (size_t)strtoull(shape, &end, 10);
    }
    ck_assert_uint_eq(pe_tensor_bytes(&tensor), try->reply_n);
    return tensor;
}

struct pe_tensor call_try_tensor(const struct call_try *try, struct pe_arena *arena, const char *name) {
    struct pe_error err = {0};
    struct pe_tensor tensor = {0};
    struct pe_safetensors file;
    const char *type = call_try_header(try, "Content-Type");
    if (strcmp(type, "application/octet-stream") == 0) {
        tensor = raw_tensor(try);
    } else if (strcmp(type, "application/x-npy") == 0) {
        ck_assert_msg(!pe_npy_read(arena, &tensor, try->reply, try->reply_n, &err), "%s", err.text);
    } else {
        ck_assert_msg(!pe_safetensors_open(arena, &file, try->reply, try->reply_n, &err) &&
                          !pe_safetensors_get(arena, &tensor, &file, name, &err),
                      "%s: %s", type, err.text);
    }
    return tensor;
}

static bool same(const char *got, const char *wanted) {
    return !wanted || strcmp(got, wanted) == 0;
}

/* A detail too long for a message is cut at its end, "...". */
static bool same_detail(const char *got, const char *wanted) {
    size_t n = strlen(got);
    bool cut = wanted && strlen(wanted) > n && n > 300 && strcmp(got + n - 3, "...") == 0;
    return cut ? strncmp(got, wanted, n - 3) == 0 : same(got, wanted);
}

void call_expect_problem(const struct call_ground *ground, struct call_try *try, int status, const char *slug,
                         const char *field, const char *detail) {
    char *wanted = detail ? wanted_text(ground->presets, detail) : NULL;
    call_try(ground, try);
    bool good = try->status == status && same(call_try_slug(try), slug) &&
                same(call_try_text(try, "field"), field) && same_detail(call_try_text(try, "detail"), wanted);
    ck_assert_msg(good,
                  "%s %.200s\n"
                  "wanted %d %s at %s: %s\n"
                  "got    %d %s at %s: %s",
                  try->request, try->body ? (const char *)try->body : "", status, slug, field,
                  wanted ? wanted : "(any)", try->status, call_try_slug(try), call_try_text(try, "field"),
                  call_try_text(try, "detail"));
    free(wanted);
    ck_assert_int_eq(json_integer_value(json_object_get(try->json, "status")), status);
    ck_assert_str_eq(call_try_header(try, "Content-Type"), "application/problem+json");
}
