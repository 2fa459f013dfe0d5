/* SPDX-License-Identifier: MIT
 *
 * What the tests of the service share: one request through all six steps, as HTTP would carry it, and what
 * came out of it.
 *
 *     struct call_ground ground;                         the service, with all options at their defaults
 *     call_ground_open(&ground);
 *     struct call_try try = {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4"};
 *     call_try(&ground, &try);
 *     ck_assert_int_eq(try.status, 200);
 *     call_try_close(&try);
 *     call_ground_close(&ground);                        fails where a block was not given back
 */
#ifndef CALL_RUN_H
#define CALL_RUN_H

#include "call.h"
#include "config.h"
#include "expect.h"

#include <jansson.h>

/* A service of its own. */
struct call_ground {
    struct config config; /* may be changed before a call */
    struct service service;
    struct presets *presets;
    struct tables *tables;
    struct plans *plans;
    atomic_size_t blocks, bytes; /* of the service's allocator, not given back */
};
void call_ground_open(struct call_ground *ground);
/* The same with the tables of a folder. */
void call_ground_open_tables(struct call_ground *ground, const char *folder);
void call_ground_close(struct call_ground *ground);

struct call_try {
    /* In. */
    const char *request;        /* "POST /v1/apply?dtype=float64" */
    struct call_head head;      /* method and target come from `request` */
    const void *body;           /* NULL: none */
    size_t body_n;              /* 0: body is a text */
    size_t chunk;               /* bytes of the body fed at a time; 0 = all at once */
    size_t room;                /* bytes of the reply pulled at a time; 0 = 64 KiB */
    bool no_length;             /* Content-Length is not known */
    int threads;                /* 0: the parts in order, on this thread; -1: the last first; n: on so many */
    enum call_stop_reason stop; /* asked for before the parts run */
    bool stop_first;            /* and even before call_finish */
    /* Out, until call_try_close. */
    int status;
    char *reply; /* zero-terminated beyond reply_n */
    size_t reply_n, n_parts;
    json_t *json; /* of a JSON reply, else NULL */
    struct call *call;
    char method[16];
};
void call_try(const struct call_ground *ground, struct call_try *try);
void call_try_close(struct call_try *try);

/* A header of the reply; "" when it is not there. */
const char *call_try_header(const struct call_try *try, const char *name);
/* A text of the reply's JSON by its name: "detail". "" when it is not there. */
const char *call_try_text(const struct call_try *try, const char *name);
/* The slug of a problem's `type`, or "". */
const char *call_try_slug(const struct call_try *try);
/* The reply as a tensor, read by the library's readers: npy, safetensors (by name) or raw (by its headers).
 */
struct pe_tensor call_try_tensor(const struct call_try *try, struct pe_arena *arena, const char *name);

/* Runs a request and compares status, slug, field and (unless NULL) detail of its problem; lists in `detail`
 * are written as wanted.h says. */
void call_expect_problem(const struct call_ground *ground, struct call_try *try, int status, const char *slug,
                         const char *field, const char *detail);

#endif
