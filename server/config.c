/* SPDX-License-Identifier: MIT
 *
 * The options as rows, and what is allowed beyond one row's bounds. To add an option: a member in config.h
 * and a row here; its config key, environment variable, flag, help, printed form and log entry follow.
 *
 * The defaults are for a machine one works at: loopback only. An image sets listen by its environment.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define KIB 1024.0
#define MIB (1024.0 * KIB)
#define GIB (1024.0 * MIB)
#define TIB (1024.0 * GIB)

static const struct pe_choice log_choices[] = {
    {"auto", CONFIG_LOG_AUTO, "text on a terminal, else json"},
    {"json", CONFIG_LOG_JSON, "one object per line"},
    {"text", CONFIG_LOG_TEXT, "one readable line per request"},
    {"off", CONFIG_LOG_OFF, "warnings and errors of the daemon only, as json"},
    {0},
};

/* clang-format off */
const struct pe_field config_fields[] = {
    {PE_FIELD(config, listen), .def = "127.0.0.1:8080", .unit = "ADDRESS:PORT",
     .doc = "where requests are served; [::]:8080 is every address, port 0 a free one"},
    {PE_FIELD(config, admin_listen), .def = "127.0.0.1:9090", .unit = "ADDRESS:PORT",
     .doc = "where health and metrics are served as well, out of reach of the load; empty for nowhere"},
    {PE_FIELD(config, presets_file), .def = "", .unit = "FILE",
     .doc = "JSON file of named encodings, beside the built-in ones"},
    {PE_FIELD(config, tables_dir), .def = "", .unit = "FOLDER",
     .doc = "folder of *.npy and *.safetensors files, loaded at start as tables"},
    {PE_FIELD(config, log_format), .def = "auto", .choices = log_choices, .unit = "FORMAT",
     .doc = "how requests are logged, to standard error"},
    {PE_FIELD(config, workers), .def = "0", .min = 0, .max = 1024, .unit = "N", .flags = PE_FIELD_AUTO,
     .doc = "threads that compute; auto follows the CPU quota"},
    {PE_FIELD(config, queue_depth), .def = "256", .min = 1, .max = 65536, .unit = "N",
     .doc = "requests that may wait for a worker; more are answered 503"},
    {PE_FIELD(config, connections), .def = "4096", .min = 1, .max = 1000000, .unit = "N",
     .doc = "connections at once; more wait until one closes"},
    {PE_FIELD(config, connections_per_ip), .def = "0", .min = 0, .max = 1000000, .unit = "N",
     .doc = "connections at once from one address (IPv6: of one /64), more are closed; 0 is no limit of its own, as "
            "is right behind a proxy, where all clients have one address"},
    {PE_FIELD(config, requests_per_ip), .def = "0", .min = 0, .max = 65536, .unit = "N",
     .doc = "requests of one address (IPv6: of one /64) that wait or are computed at once; more are answered 429; 0 "
            "is no limit of its own, as is right behind a proxy"},
    {PE_FIELD(config, idle_timeout_s), .def = "75", .min = 1, .max = 86400, .unit = "SECONDS",
     .doc = "a connection on which nothing happens is closed after that time; where that is long, keep-alive probes "
            "close it three minutes after its client vanished"},
    {PE_FIELD(config, header_timeout_s), .def = "10", .min = 1, .max = 3600, .unit = "SECONDS",
     .doc = "time for a request's header to be complete, from its first byte; then the connection is closed"},
    {PE_FIELD(config, min_rate_bytes), .def = "1024", .min = 0, .max = GIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "bytes per second that a client has to send of a body and to take of a reply; time in "
            "which it waits for us does not count; 0 for no such rule"},
    {PE_FIELD(config, rate_patience_s), .def = "20", .min = 1, .max = 3600, .unit = "SECONDS",
     .doc = "how long a client may be slower than min_rate_bytes before its connection is closed"},
    {PE_FIELD(config, stream_timeout_s), .def = "60", .min = 1, .max = 86400, .unit = "SECONDS",
     .doc = "a streamed reply of which nothing is read for that time is cut"},
    {PE_FIELD(config, deadline_ms), .def = "30000", .min = 1, .max = 3600000, .unit = "MILLISECONDS",
     .doc = "time that one request may take from the end of its header until its reply is made or its stream begins, "
            "the arrival of its body included; a client may ask for less; then it is answered 504"},
    {PE_FIELD(config, drain_delay_ms), .def = "0", .min = 0, .max = 3600000, .unit = "MILLISECONDS",
     .doc = "on SIGTERM: how long to serve on while /readyz says no, so that balancers notice"},
    {PE_FIELD(config, drain_timeout_ms), .def = "25000", .min = 0, .max = 3600000, .unit = "MILLISECONDS",
     .doc = "on SIGTERM: how long requests in flight may take before they are cut"},
    {PE_FIELD(config, body_bytes), .def = "67108864", .min = KIB, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "largest posted body, as sent; more is answered 413"},
    {PE_FIELD(config, memory_bytes), .def = "0", .min = 0, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES | PE_FIELD_AUTO,
     .doc = "most memory of all requests together, for bodies, results and replies; what would go beyond is answered 503; "
            "auto is half of the machine's, or of the container's"},
    {PE_FIELD(config, expanded_bytes), .def = "268435456", .min = 64 * KIB, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "most memory of one request: its body, inflated and parsed, and all that is computed from it, "
            "together; a body being inflated (body_bytes) and the reply (reply_bytes) come on top"},
    {PE_FIELD(config, envelope_bytes), .def = "1048576", .min = KIB, .max = GIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "largest JSON body, its arrays of numbers not counted"},
    {PE_FIELD(config, reply_bytes), .def = "67108864", .min = KIB, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "largest reply that is made before it is sent"},
    {PE_FIELD(config, stream_bytes), .def = "68719476736", .min = KIB, .max = PE_POSITION_MAX, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "largest reply that is computed while it is sent"},
    {PE_FIELD(config, streams), .def = "8", .min = 0, .max = 4096, .unit = "N",
     .doc = "streamed replies at once; 0 for none"},
    {PE_FIELD(config, streams_per_ip), .def = "4", .min = 0, .max = 4096, .unit = "N",
     .doc = "streamed replies at once to one address (IPv6: to one /64); more are answered 429; 0 is no limit of its "
            "own, as is right behind a proxy"},
    {PE_FIELD(config, batch_requests), .def = "256", .min = 1, .max = 65536, .unit = "N",
     .doc = "most requests in one POST /v1/batch"},
    {PE_FIELD(config, tables_bytes), .def = "1073741824", .min = 0, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "most that all files in tables_dir may have together"},
    {PE_FIELD(config, plan_bytes), .def = "67108864", .min = 0, .max = TIB, .unit = "SIZE",
     .flags = PE_FIELD_BYTES, .doc = "memory for what was computed of encodings (frequencies, tables of a seed) and is kept "
            "for requests to come, of 1024 encodings at most, beside memory_bytes and at most an eighth of that; "
            "0 for none"},
};
/* clang-format on */
const size_t config_n_fields = PE_COUNT(config_fields);

char *config_flag_name(const struct pe_field *row, char *text) {
    snprintf(text, CONFIG_NAME_SIZE, "--%s", row->name);
    for (char *c = text; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    return text;
}

char *config_env_name(const struct pe_field *row, char *text) {
    snprintf(text, CONFIG_NAME_SIZE, "POSENC_%s", row->name);
    for (char *c = text; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return text;
}

static int bytes_malformed(const char *text, struct pe_error *err) {
    return pe_fail(err, PE_ERR_TYPE, "",
                   "must be a whole number of bytes, or one followed by KiB, MiB, GiB or TiB, got \"%.60s\"",
                   text);
}

int config_bytes_parse(const char *text, int64_t *bytes, struct pe_error *err) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int64_t value = 0;
    const char *rest = text;
    for (; isdigit((unsigned char)*rest); rest++) {
        if (value > (INT64_MAX - 9) / 10) {
            return pe_fail(err, PE_ERR_RANGE, "", "\"%.60s\" is too large a size", text);
        }
        value = value * 10 + (*rest - '0');
    }
    if (rest == text) {
        return bytes_malformed(text, err);
    }
    for (size_t i = 0; i < PE_COUNT(units); i++) {
        if (strcmp(rest, units[i]) == 0) {
            if (value > INT64_MAX >> (10 * i)) {
                return pe_fail(err, PE_ERR_RANGE, "", "\"%.60s\" is too large a size", text);
            }
            *bytes = value * ((int64_t)1 << (10 * i));
            return PE_OK;
        }
    }
    return bytes_malformed(text, err);
}

static int address_malformed(const char *text, struct pe_error *err) {
    return pe_fail(
        err, PE_ERR_SYNTAX, "",
        "must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080, with a port up to 65535, got \"%.60s\"",
        text);
}

static bool is_port(const char *text) {
    size_t n = strlen(text);
    long value = 0;
    for (size_t i = 0; i < n && i < 6; i++) {
        if (!isdigit((unsigned char)text[i])) {
            return false;
        }
        value = value * 10 + (text[i] - '0');
    }
    return n > 0 && n < 6 && value <= 65535;
}

int config_address_parse(const char *text, struct config_address *address, struct pe_error *err) {
    const char *colon = strrchr(text, ':');
    if (!colon || !is_port(colon + 1)) {
        return address_malformed(text, err);
    }
    const char *host = text;
    size_t length = (size_t)(colon - text);
    bool brackets = length >= 2 && host[0] == '[' && host[length - 1] == ']';
    if (brackets) {
        host++;
        length -= 2;
    }
    /* A colon in the host needs brackets, and brackets hold an address of version 6: nothing else has colons.
     */
    bool colons = memchr(host, ':', length) != NULL;
    if (brackets != colons || length >= sizeof address->host || strcspn(host, "[] \t/") < length) {
        return address_malformed(text, err);
    }
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    snprintf(address->port, sizeof address->port, "%s", colon + 1);
    return PE_OK;
}

static bool is_given(const struct config *config, const char *name) {
    const struct pe_field *row = pe_field_find(config_fields, config_n_fields, name);
    return row && pe_field_given(config_fields, row, config);
}

static int check_listen(const struct config *config, struct pe_error *err) {
    struct config_address served, admin;
    if (config_address_parse(config->listen, &served, err)) {
        return pe_error_at(err, "listen");
    }
    if (config->admin_listen[0] == '\0') {
        return PE_OK;
    }
    if (config_address_parse(config->admin_listen, &admin, err)) {
        return pe_error_at(err, "admin_listen");
    }
    if (strcmp(config->listen, config->admin_listen) == 0 && strcmp(admin.port, "0") != 0) {
        bool admin_given = is_given(config, "admin_listen");
        return pe_fail(err, PE_ERR_CONFLICT, admin_given ? "admin_listen" : "listen",
                       "must not be the same as %s, %s", admin_given ? "listen" : "admin_listen",
                       config->listen);
    }
    return PE_OK;
}

/* A part of a request's memory is no larger than the whole. The fault is told at what the user wrote. */
static int check_part(const struct config *config, const char *name, int64_t bytes, struct pe_error *err) {
    if (bytes <= config->expanded_bytes) {
        return PE_OK;
    }
    if (is_given(config, name) || !is_given(config, "expanded_bytes")) {
        return pe_fail(err, PE_ERR_CONFLICT, name, "must be at most expanded_bytes, %lld, got %lld",
                       (long long)config->expanded_bytes, (long long)bytes);
    }
    return pe_fail(err, PE_ERR_CONFLICT, "expanded_bytes", "must be at least %s, %lld, got %lld", name,
                   (long long)bytes, (long long)config->expanded_bytes);
}

int config_check(const struct config *config, struct pe_error *err) {
    if (check_listen(config, err) || check_part(config, "body_bytes", config->body_bytes, err)) {
        return err->code;
    }
    return check_part(config, "envelope_bytes", config->envelope_bytes, err);
}
