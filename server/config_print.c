/* SPDX-License-Identifier: MIT
 *
 * The options for people: --print-config, --help, --version, all written from the rows.
 */
#include "config_source.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define WIDTH  100 /* of --help */
#define INDENT 4

/* In the largest unit in which it is a whole number; returns whether that is plain bytes. */
static bool bytes_text(int64_t bytes, char *text, size_t size) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; unit + 1 < PE_COUNT(units) && bytes != 0 && bytes % 1024 == 0; unit++) {
        bytes /= 1024;
    }
    snprintf(text, size, "%" PRId64 "%s", bytes, units[unit]);
    return unit == 0;
}

bool config_value_text(const struct pe_field *row, const void *base, char *text, size_t size) {
    const void *member = (const char *)base + row->offset;
    if (row->flags & PE_FIELD_SECRET) {
        snprintf(text, size, "***");
        return false;
    }
    if (row->kind == PE_KIND_INT) {
        int64_t value = *(const int64_t *)member;
        bool automatic = (row->flags & PE_FIELD_AUTO) && value == 0;
        if ((row->flags & PE_FIELD_BYTES) && !automatic) {
            return bytes_text(value, text, size);
        }
        snprintf(text, size, automatic ? "auto" : "%" PRId64, value);
        return !automatic;
    }
    const char *name = row->kind == PE_KIND_CHOICE ? pe_choice_name(row->choices, *(const int *)member)
                                                   : *(const char *const *)member;
    snprintf(text, size, "%s", name ? name : "");
    return false;
}

/* Texts hold no control characters (config_set_text refuses them), so two characters need an escape. */
static void print_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    fputc('"', out);
}

void config_print(FILE *out, const struct config *config) {
    for (size_t i = 0; i < config_n_fields; i++) {
        const struct pe_field *row = &config_fields[i];
        char value[64];
        fprintf(out, "%s\"%s\": ", i ? ",\n    " : "{\n    ", row->name);
        if (row->kind == PE_KIND_TEXT && !(row->flags & PE_FIELD_SECRET)) {
            print_string(out, *(const char *const *)(const void *)((const char *)config + row->offset));
        } else if (config_value_text(row, config, value, sizeof value)) {
            fputs(value, out);
        } else {
            print_string(out, value);
        }
    }
    fprintf(out, "\n}\n");
}

/* The words of `text`, wrapped, each line indented. */
static void print_wrapped(FILE *out, const char *text) {
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s%.*s", column ? 1 : 2 * INDENT, "", (int)length, text);
        column += length + (column ? 1 : 2 * INDENT);
        text += length + strspn(text + length, " ");
    }
    fputc('\n', out);
}

static void bound_text(const struct pe_field *row, double bound, char *text, size_t size) {
    if (row->flags & PE_FIELD_BYTES) {
        bytes_text((int64_t)bound, text, size);
    } else {
        snprintf(text, size, "%.0f", bound);
    }
}

static void option_help(FILE *out, const struct pe_field *row, const struct config *defaults) {
    char flag[CONFIG_NAME_SIZE], variable[CONFIG_NAME_SIZE], value[64], low[32], high[32], facts[320],
        names[100];
    fprintf(out, "%*s%s %s\n", INDENT, "", config_flag_name(row, flag), row->unit);
    print_wrapped(out, row->doc);
    config_value_text(row, defaults, value, sizeof value);
    if (row->kind == PE_KIND_INT) {
        bound_text(row, row->min, low, sizeof low);
        bound_text(row, row->max, high, sizeof high);
        snprintf(facts, sizeof facts, "%s to %s; ", low, high);
    } else if (row->kind == PE_KIND_CHOICE) {
        snprintf(facts, sizeof facts, "one of %s; ", pe_choices_names(row->choices, names, sizeof names));
    } else {
        facts[0] = '\0';
    }
    size_t n = strlen(facts);
    snprintf(facts + n, sizeof facts - n, "default %s; %s%s", value[0] ? value : "none",
             config_env_name(row, variable),
             row->flags & PE_FIELD_RELOAD ? "; may change while running" : "");
    print_wrapped(out, facts);
}

void config_help(FILE *out) {
    struct config defaults;
    pe_fields_init(config_fields, config_n_fields, &defaults, sizeof defaults);
    fprintf(
        out,
        "posencd " PE_VERSION ": positional encodings of Transformers over HTTP\n\n"
        "usage: posencd [--OPTION VALUE | --OPTION=VALUE] ... [COMMAND]\n\n"
        "A value comes from its flag, else from its environment variable, else from the\n"
        "configuration file (a JSON object with the same names, deadline_ms for --deadline-ms),\n"
        "else it has its default. Without a command the daemon serves until SIGTERM or SIGINT.\n"
        "Exit codes: 0 done, 1 failed, %d configuration refused, 3 address to listen on not to be had.\n\n"
        "commands:\n",
        CONFIG_EXIT_BAD);
    for (size_t i = 0; i < config_n_verbs; i++) {
        const struct config_verb *verb = &config_verbs[i];
        fprintf(out, "%*s%s%s%s\n", INDENT, "", verb->flag, verb->argument ? " " : "",
                verb->argument ? verb->argument : "");
        print_wrapped(out, verb->doc);
    }
    fprintf(out, "\noptions:\n%*s--config FILE\n", INDENT, "");
    print_wrapped(out, "the configuration file");
    print_wrapped(out, "default none; POSENC_CONFIG");
    for (size_t i = 0; i < config_n_fields; i++) {
        option_help(out, &config_fields[i], &defaults);
    }
    fprintf(out, "\nSizes are bytes, or numbers with KiB, MiB, GiB or TiB.\n");
}

const char *config_commit(void) {
#ifdef PE_COMMIT
    return PE_COMMIT;
#else
    return "unknown";
#endif
}

void config_version(FILE *out, const char *http, const char *blas) {
    fprintf(out, "posencd %s\ncommit %s\nnumerics %d\n", pe_version(), config_commit(), PE_NUMERICS_VERSION);
    fprintf(out, "libmicrohttpd %s\njansson %s\n%s\n", http ? http : "unknown", jansson_version_str(),
            blas ? blas : "unknown");
}
