/* SPDX-License-Identifier: MIT
 *
 * From the command line, the environment and the file to one struct config. The sources are applied from the
 * weakest to the strongest, file, environment, flags, so a value that is overruled is checked all the same: a
 * typing error is not found out on the day that a flag is dropped.
 */
#include "config_source.h"

#include <stdio.h>
#include <string.h>

const struct config_verb config_verbs[] = {
    {"--check-config", CONFIG_CHECK, NULL,
     "load everything (configuration, presets, tables), say so, and exit"},
    {"--print-config", CONFIG_PRINT, NULL, "print the effective configuration as JSON and exit"},
    {"--healthcheck", CONFIG_HEALTHCHECK, NULL, "ask the running daemon whether it lives: exit code 0 or 1"},
    {"--call", CONFIG_CALL, "REQUEST [FILE]",
     "answer one request, 'GET /v1/encode?...', without a socket; FILE (- is standard input) is its body"},
    {"--version", CONFIG_VERSION, NULL, "print the versions and exit"},
    {"--help", CONFIG_HELP, NULL, "print this and exit"},
};
const size_t config_n_verbs = PE_COUNT(config_verbs);

#define ENV_PREFIX "POSENC_"

/* The words of the command line, one at a time; "--name=value" is taken apart. */
struct words {
    int argc, at;
    char **argv;
    char name[CONFIG_NAME_SIZE]; /* of the last word; "" when it is no flag */
    const char *value;           /* what follows its "=", NULL = nothing */
};

static bool words_next(struct words *words) {
    if (words->at >= words->argc) {
        return false;
    }
    const char *word = words->argv[words->at++];
    size_t length = strcspn(word, "=");
    words->value = word[length] == '=' ? word + length + 1 : NULL;
    bool flag = word[0] == '-' && word[1] != '\0';
    snprintf(words->name, sizeof words->name, "%.*s", flag ? (int)length : 0, word);
    return true;
}

/* The value of the last word: behind its "=", or the next word; NULL when there is none. */
static const char *words_value(struct words *words) {
    if (!words->value && words->at < words->argc) {
        words->value = words->argv[words->at++];
    }
    return words->value;
}

static const struct config_verb *find_verb(const char *flag) {
    const char *name = strcmp(flag, "-h") == 0 ? "--help" : flag;
    for (size_t i = 0; i < config_n_verbs; i++) {
        if (strcmp(name, config_verbs[i].flag) == 0) {
            return &config_verbs[i];
        }
    }
    return NULL;
}

static const struct pe_field *find_row(const char *name, char *(*name_of)(const struct pe_field *, char *)) {
    char text[CONFIG_NAME_SIZE];
    for (size_t i = 0; i < config_n_fields; i++) {
        if (strcmp(name, name_of(&config_fields[i], text)) == 0) {
            return &config_fields[i];
        }
    }
    return NULL;
}

static int unknown_word(const struct words *words, struct pe_error *err) {
    const char *word = words->argv[words->at - 1];
    if (words->name[0] == '\0') {
        return pe_fail(err, PE_ERR_UNKNOWN_FIELD, "command line", "got \"%.60s\", which belongs to no flag",
                       word);
    }
    struct config_nearest nearest;
    config_nearest_init(&nearest, words->name);
    config_nearest_offer(&nearest, "--config");
    for (size_t i = 0; i < config_n_verbs; i++) {
        config_nearest_offer(&nearest, config_verbs[i].flag);
    }
    for (size_t i = 0; i < config_n_fields; i++) {
        char text[CONFIG_NAME_SIZE];
        config_nearest_offer(&nearest, config_flag_name(&config_fields[i], text));
    }
    return pe_fail(err, PE_ERR_UNKNOWN_FIELD, words->name, "is not a flag, the nearest is %s", nearest.name);
}

static int need_value(const struct words *words, struct pe_error *err) {
    return pe_fail(err, PE_ERR_MISSING, words->name, "needs a value");
}

/* --call REQUEST [FILE] */
static int read_call(struct words *words, struct config_command *command, struct pe_error *err) {
    command->call = words_value(words);
    if (!command->call) {
        return pe_fail(err, PE_ERR_MISSING, words->name, "needs a request such as 'GET /v1/limits'");
    }
    bool more = words->at < words->argc;
    const char *next = more ? words->argv[words->at] : "";
    if (more && (next[0] != '-' || next[1] == '\0')) {
        command->call_body = next;
        words->at++;
    }
    return PE_OK;
}

static int read_verb(struct words *words, const struct config_verb *verb, struct config_command *command,
                     struct pe_error *err) {
    if (command->action != CONFIG_RUN) {
        return pe_fail(err, PE_ERR_CONFLICT, words->name, "cannot go together with another command");
    }
    command->action = verb->action;
    if (verb->action == CONFIG_CALL) {
        return read_call(words, command, err);
    }
    if (words->value) {
        return pe_fail(err, PE_ERR_TYPE, verb->flag, "takes no value, got \"%.60s\"", words->value);
    }
    return PE_OK;
}

/* The first look at the command line: what is wanted, and from which file. Values are left for apply_flags.
 */
static int read_command(struct words words, struct config_command *command, struct pe_error *err) {
    while (words_next(&words) && command->action != CONFIG_HELP && command->action != CONFIG_VERSION) {
        const struct config_verb *verb = find_verb(words.name);
        bool file = strcmp(words.name, "--config") == 0;
        if (verb) {
            if (read_verb(&words, verb, command, err)) {
                return err->code;
            }
            continue;
        }
        if (!file && !find_row(words.name, config_flag_name)) {
            return unknown_word(&words, err);
        }
        const char *value = words_value(&words);
        if (!value) {
            return need_value(&words, err);
        }
        if (file && command->file) {
            return pe_fail(err, PE_ERR_CONFLICT, "--config", "is given twice");
        }
        if (file) {
            command->file = value;
        }
    }
    return PE_OK;
}

static int apply_flags(struct pe_arena *arena, struct config *config, struct words words,
                       struct pe_error *err) {
    struct config_command skipped = {0};
    while (words_next(&words)) {
        const struct config_verb *verb = find_verb(words.name);
        if (verb) {
            skipped.action = CONFIG_RUN;
            if (read_verb(&words, verb, &skipped, err)) {
                return err->code;
            }
            continue;
        }
        char name[CONFIG_NAME_SIZE];
        memcpy(name, words.name, sizeof name);
        const struct pe_field *row = find_row(name, config_flag_name);
        const char *value = words_value(&words);
        if (row && value && config_set_text(arena, config, row, value, err)) {
            return config_error_from(err, name, NULL);
        }
    }
    return PE_OK;
}

/* Kubernetes gives every container variables that describe the services around it: a service named posenc
 * makes POSENC_SERVICE_HOST, POSENC_SERVICE_PORT_HTTP, POSENC_PORT=tcp://10.0.0.1:8080,
 * POSENC_PORT_8080_TCP_ADDR, and one named posenc-admin the same behind POSENC_ADMIN_. They are none of ours.
 */
static bool is_service_variable(const char *name, const char *value) {
    const char *port = strstr(name, "_PORT");
    return strstr(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") ||
           (port && (strstr(value, "://") || strspn(port + 5, "_0123456789") > 1));
}

static int unknown_variable(const char *name, struct pe_error *err) {
    struct config_nearest nearest;
    config_nearest_init(&nearest, name);
    config_nearest_offer(&nearest, ENV_PREFIX "CONFIG");
    for (size_t i = 0; i < config_n_fields; i++) {
        char text[CONFIG_NAME_SIZE];
        config_nearest_offer(&nearest, config_env_name(&config_fields[i], text));
    }
    pe_fail(err, PE_ERR_UNKNOWN_FIELD, "", "is not a variable of this program, the nearest is %s",
            nearest.name);
    return config_error_from(err, name, NULL);
}

/* One NAME=VALUE; *file becomes the value of POSENC_CONFIG. */
static int apply_variable(struct pe_arena *arena, struct config *config, const char *variable,
                          const char **file, struct pe_error *err) {
    size_t length = strcspn(variable, "=");
    if (strncmp(variable, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || variable[length] == '\0') {
        return PE_OK;
    }
    const char *name = pe_arena_text(arena, variable, length, err), *value = variable + length + 1;
    if (!name) {
        return err->code;
    }
    if (strcmp(name, ENV_PREFIX "CONFIG") == 0) {
        *file = value;
        return PE_OK;
    }
    const struct pe_field *row = find_row(name, config_env_name);
    if (!row) {
        return is_service_variable(name, value) ? PE_OK : unknown_variable(name, err);
    }
    if (config_set_text(arena, config, row, value, err)) {
        return config_error_from(err, name, NULL);
    }
    return PE_OK;
}

static int apply_environment(struct pe_arena *arena, struct config *config, char **envp, const char **file,
                             struct pe_error *err) {
    for (; envp && *envp; envp++) {
        if (apply_variable(arena, config, *envp, file, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* Which rows each source gave; a struct config holds only whether any did. */
struct sources {
    uint64_t file, environment, flags;
};

/* A fault between several options is told where one of them was given. */
static int check_all(const struct config *config, const struct sources *sources, const char *file,
                     struct pe_error *err) {
    if (!config_check(config, err)) {
        return PE_OK;
    }
    const struct pe_field *row = pe_field_find(config_fields, config_n_fields, err->path);
    if (!row) {
        return err->code;
    }
    char name[CONFIG_NAME_SIZE];
    uint64_t bit = (uint64_t)1 << (row - config_fields);
    if (sources->flags & bit) {
        return config_error_from(err, config_flag_name(row, name), NULL);
    }
    if (sources->environment & bit) {
        return config_error_from(err, config_env_name(row, name), NULL);
    }
    return sources->file & bit ? config_error_from(err, file, row->name) : err->code;
}

/* What a source gave, so that the next one may give it again. */
static uint64_t take_given(struct config *config) {
    uint64_t given = config->given;
    config->given = 0;
    return given;
}

/* The file's name may come from the environment, so that is read twice: for the name, then for the values. */
static int find_file(struct pe_arena *arena, const struct config *config, struct config_command *command,
                     char **envp, struct pe_error *err) {
    struct config scratch = *config;
    const char *file = NULL;
    if (apply_environment(arena, &scratch, envp, &file, err)) {
        return err->code;
    }
    if (!command->file && file && file[0] != '\0') {
        command->file = file;
    }
    return PE_OK;
}

int config_load(struct pe_arena *arena, struct config *config, struct config_command *command, int argc,
                char **argv, char **envp, struct pe_error *err) {
    struct words words = {.argc = argc, .at = argc > 0 ? 1 : 0, .argv = argv};
    struct sources sources = {0};
    const char *ignored = NULL;
    *command = (struct config_command){.action = CONFIG_RUN};
    pe_fields_init(config_fields, config_n_fields, config, sizeof *config);
    if (read_command(words, command, err)) {
        return err->code;
    }
    if (command->action == CONFIG_HELP || command->action == CONFIG_VERSION) {
        return PE_OK;
    }
    if (find_file(arena, config, command, envp, err)) {
        return err->code;
    }
    if (command->file && config_read_file(arena, config, command->file, err)) {
        return err->code;
    }
    sources.file = take_given(config);
    if (apply_environment(arena, config, envp, &ignored, err)) {
        return err->code;
    }
    sources.environment = take_given(config);
    if (apply_flags(arena, config, words, err)) {
        return err->code;
    }
    sources.flags = take_given(config);
    config->given = sources.file | sources.environment | sources.flags;
    return check_all(config, &sources, command->file ? command->file : "", err);
}
