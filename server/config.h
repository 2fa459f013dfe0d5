/* SPDX-License-Identifier: MIT
 *
 * The daemon's options: one struct, one table of rows (config.c). Precedence: flag, environment, file,
 * default. Each option is a row: config key, POSENC_* environment twin and --flag follow from its name.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "posenc_fields.h"

#include <stdio.h>

struct config {
    uint64_t given;
    const char *listen;         /* "127.0.0.1:8080", "[::]:8080" */
    const char *admin_listen;   /* health and metrics; "" = none */
    const char *presets_file;   /* "" = the built-in presets only */
    const char *tables_dir;     /* *.npy and *.safetensors; "" = none */
    int log_format;             /* enum config_log */
    int64_t workers;            /* 0 = follows the CPU quota */
    int64_t queue_depth;        /* requests waiting for a worker */
    int64_t connections;        /* at once */
    int64_t connections_per_ip; /* 0 = no limit of its own */
    int64_t idle_timeout_s;     /* keep-alive */
    int64_t stream_timeout_s;   /* a reader that takes nothing for so long is cut */
    int64_t deadline_ms;        /* of one request */
    int64_t drain_delay_ms;     /* still accepting while not ready */
    int64_t drain_timeout_ms;   /* for what is in flight */
    int64_t body_bytes;         /* posted */
    int64_t expanded_bytes;     /* a request's memory: inflated, parsed, results */
    int64_t envelope_bytes;     /* JSON without its arrays of numbers */
    int64_t reply_bytes;        /* buffered reply */
    int64_t stream_bytes;       /* streamed reply */
    int64_t streams;            /* at once */
    int64_t batch_requests;     /* in one batch */
};

enum config_log { CONFIG_LOG_AUTO = 1, CONFIG_LOG_JSON, CONFIG_LOG_TEXT, CONFIG_LOG_OFF };

extern const struct pe_field config_fields[];
extern const size_t config_n_fields;

#endif
