/* SPDX-License-Identifier: MIT
 *
 * --call 'POST /v1/apply' body.json: the same six steps as for a request by HTTP, on this thread alone. For
 * scripts, and to see what the daemon would answer without starting one. A body's type follows from the
 * file's name. Exit code 0 for a status below 400, else 1.
 */
#include "launch.h"

#include "call.h"
#include "wire/format.h"

#include <stdio.h>
#include <string.h>

#define CALL_BLOCK ((size_t)64 << 10)

/* "POST /v1/apply" taken apart into text. */
static int split_request(const char *request, char *text, size_t size, struct call_head *head,
                         struct pe_error *err) {
    size_t method = strcspn(request, " ");
    const char *target = request + method + strspn(request + method, " ");
    if (strlen(request) >= size) {
        return pe_fail(err, PE_ERR_LIMIT, "--call",
                       "got a request of %zu bytes, allowed are less than %zu, as over HTTP", strlen(request),
                       size);
    }
    if (method == 0 || *target == '\0') {
        return pe_fail(err, PE_ERR_SYNTAX, "--call", "must be a method and a target, as in 'GET /v1/limits'");
    }
    memcpy(text, request, strlen(request) + 1);
    text[method] = '\0';
    head->method = text;
    head->target = text + (target - request);
    return PE_OK;
}

/* The media type of a body by the file's name; NULL = JSON. */
static const char *media_of_file(const char *file) {
    const char *dot = file != NULL ? strrchr(file, '.') : NULL;
    const struct format *format = dot != NULL ? format_find(dot + 1) : NULL;
    return format != NULL ? format->media : NULL;
}

static int feed_file(struct call *call, const char *name, struct pe_error *err) {
    char block[CALL_BLOCK];
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    if (file == NULL) {
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "--call", "cannot read the file %s", name);
    }
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0 && call_feed(call, block, n)) {
    }
    bool failed = ferror(file) != 0;
    if (file != stdin) {
        fclose(file);
    }
    return failed ? pe_fail(err, PE_ERR_SYNTAX, "--call", "reading the file %s failed", name) : PE_OK;
}

static int answer(struct call *call, bool wants_body) {
    char block[CALL_BLOCK];
    call_finish(call);
    if (!call_answered(call)) {
        const struct pe_work *work = call_work(call);
        for (size_t part = 0; part < work->n_parts; part++) {
            call_run(call, part);
        }
        call_write(call);
    }
    const struct call_reply *reply = call_reply(call);
    size_t n = wants_body ? 1 : 0;
    bool written = true;
    while (written && reply->length != 0 && n > 0) {
        n = call_pull(call, block, sizeof block);
        written = fwrite(block, 1, n, stdout) == n;
    }
    written = fflush(stdout) == 0 && written && !call_failed_short(call);
    return reply->status < 400 && written ? LAUNCH_EXIT_OK : LAUNCH_EXIT_FAILED;
}

int launch_call(struct launch *launch, const struct config_command *command, struct pe_error *err) {
    char text[CALL_HEAD_BYTES];
    struct call_head head = {.content_length = -1, .content_type = media_of_file(command->call_body)};
    if (split_request(command->call, text, sizeof text, &head, err) != PE_OK) {
        return CONFIG_EXIT_BAD;
    }
    struct call *call = call_open(&launch->service, &head);
    if (call == NULL) {
        pe_fail(err, PE_ERR_MEMORY, "--call", "no memory for a request");
        return LAUNCH_EXIT_FAILED;
    }
    int status = LAUNCH_EXIT_FAILED;
    if (command->call_body == NULL || feed_file(call, command->call_body, err) == PE_OK) {
        status = answer(call, strncmp(command->call, "HEAD ", 5) != 0);
    }
    call_close(call);
    return status;
}
