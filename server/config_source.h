/* SPDX-License-Identifier: MIT
 *
 * What the readers of flags, environment and file share; private to config*.c.
 */
#ifndef CONFIG_SOURCE_H
#define CONFIG_SOURCE_H

#include "config.h"

/* A command of the command line that is not an option row. */
struct config_verb {
    const char *flag;
    enum config_action action;
    const char *argument; /* for --help; NULL = none */
    const char *doc;
};
extern const struct config_verb config_verbs[];
extern const size_t config_n_verbs;

/* The row gets a value written as text: a flag's, a variable's or a JSON string's. Copied into the arena. */
int config_set_text(struct pe_arena *arena, struct config *config, const struct pe_field *row,
                    const char *text, struct pe_error *err) PE_CHECKED;
/* Reads the file and applies it. */
int config_read_file(struct pe_arena *arena, struct config *config, const char *path,
                     struct pe_error *err) PE_CHECKED;
/* err's path becomes "ORIGIN: KEY" (or "ORIGIN" when key is NULL), long names of files cut in front. */
int config_error_from(struct pe_error *err, const char *origin, const char *key);

/* Keeps the nearest of the names offered to it (by the number of letters to change). */
struct config_nearest {
    const char *wanted;
    size_t distance;
    char name[CONFIG_NAME_SIZE];
};
void config_nearest_init(struct config_nearest *nearest, const char *wanted);
void config_nearest_offer(struct config_nearest *nearest, const char *name);

#endif
