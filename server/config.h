/* SPDX-License-Identifier: MIT
 *
 * The daemon's options: one struct, one table of rows (config.c). Precedence: flag, environment, file,
 * default. Each option is a row: config key `deadline_ms`, environment twin POSENC_DEADLINE_MS and flag
 * --deadline-ms follow from its name.
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
    int64_t requests_per_ip;    /* waiting or computed; 0 = no limit of its own */
    int64_t idle_timeout_s;     /* keep-alive */
    int64_t header_timeout_s;   /* from a header's first byte to its end */
    int64_t min_rate_bytes;     /* per second, of bodies and of readers; 0 = none */
    int64_t rate_patience_s;    /* how long a client may be slower */
    int64_t stream_timeout_s;   /* a reader that takes nothing for so long is cut */
    int64_t deadline_ms;        /* of one request */
    int64_t drain_delay_ms;     /* still accepting while not ready */
    int64_t drain_timeout_ms;   /* for what is in flight */
    int64_t body_bytes;         /* posted */
    int64_t memory_bytes;       /* of all requests together; 0 = follows the machine */
    int64_t expanded_bytes;     /* of a request: its body inflated and parsed, with what is computed */
    int64_t envelope_bytes;     /* JSON without its arrays of numbers */
    int64_t reply_bytes;        /* buffered reply */
    int64_t stream_bytes;       /* streamed reply */
    int64_t streams;            /* at once */
    int64_t streams_per_ip;     /* of one client; 0 = no limit of its own */
    int64_t batch_requests;     /* in one batch */
    int64_t tables_bytes;       /* of all files in tables_dir */
    int64_t plan_bytes;         /* of plans that are kept */
};

enum config_log { CONFIG_LOG_AUTO = 1, CONFIG_LOG_JSON, CONFIG_LOG_TEXT, CONFIG_LOG_OFF };

extern const struct pe_field config_fields[];
extern const size_t config_n_fields;

/* ---- Loading ----------------------------------------------------------------------------------------- */

enum config_action {
    CONFIG_RUN,
    CONFIG_CHECK,       /* --check-config */
    CONFIG_PRINT,       /* --print-config */
    CONFIG_HEALTHCHECK, /* --healthcheck */
    CONFIG_CALL,        /* --call 'GET /v1/encode?...' [FILE] */
    CONFIG_VERSION,     /* --version */
    CONFIG_HELP         /* --help */
};

/* What the command line asks for. VIEWS of argv and envp. */
struct config_command {
    enum config_action action;
    const char *call;      /* "GET /v1/encode?type=..." */
    const char *call_body; /* a file, "-" = standard input; NULL = no body */
    const char *file;      /* the configuration file that was read; NULL = none */
};

#define CONFIG_EXIT_BAD 2 /* exit code of a refused configuration */

/* Fills config from argv, envp and the file, all checked. On failure err->path says where the value came
 * from:
 * "--workers", "POSENC_WORKERS", "config/posencd.json: workers". --help and --version look at nothing else.
 * Texts are ARENA memory. */
int config_load(struct pe_arena *arena, struct config *config, struct config_command *command, int argc,
                char **argv, char **envp, struct pe_error *err) PE_CHECKED;

/* The same from one JSON text alone, over what is set already; `origin` is the file's name in messages. */
int config_parse_json(struct pe_arena *arena, struct config *config, const char *text, size_t length,
                      const char *origin, struct pe_error *err) PE_CHECKED;
/* Rules over several options. */
int config_check(const struct config *config, struct pe_error *err) PE_CHECKED;

/* ---- Names and texts --------------------------------------------------------------------------------- */

#define CONFIG_NAME_SIZE 48
/* "--deadline-ms" and "POSENC_DEADLINE_MS" of a row, into a text of CONFIG_NAME_SIZE; return it. */
char *config_flag_name(const struct pe_field *row, char *text);
char *config_env_name(const struct pe_field *row, char *text);
/* "64MiB" or "65536" as a number of bytes. */
int config_bytes_parse(const char *text, int64_t *bytes, struct pe_error *err) PE_CHECKED;
/* A row's value as the configuration file spells it, without quotes: "auto", "64MiB", "***" for a secret.
 * true when it is a number in JSON, else a string. Cut to size. */
bool config_value_text(const struct pe_field *row, const void *base, char *text, size_t size);

/* "host:port" taken apart: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", ":8080" (all addresses). Port 0
 * asks the system for a free one. */
struct config_address {
    char host[256]; /* without brackets; "" = all addresses */
    char port[8];
};
int config_address_parse(const char *text, struct config_address *address, struct pe_error *err) PE_CHECKED;

/* What errno says, into text; returns text. Any thread. */
char *config_errno_text(int number, char *text, size_t size);

/* ---- Printing ---------------------------------------------------------------------------------------- */

/* JSON that --config accepts, in the order of the rows; secrets as "***". */
void config_print(FILE *out, const struct config *config);
void config_help(FILE *out);
/* `http` and `blas` are the versions of those libraries, NULL = not known. */
void config_version(FILE *out, const char *http, const char *blas);
/* The commit that was built (PE_COMMIT, defined by the build for config_print.c), or "unknown". */
const char *config_commit(void);

#endif
