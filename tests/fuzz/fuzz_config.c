/* SPDX-License-Identifier: MIT
 *
 * The configuration file: the input is its text, over the defaults. What is accepted is JSON to jansson as
 * well, keeps the bounds of its rows, and printed as --print-config does it is read back to the same.
 */
#include "fuzz/target.h"

#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)1 << 20)

static void check_bounds(const struct config *config) {
    for (size_t i = 0; i < config_n_fields; i++) {
        const struct pe_field *row = &config_fields[i];
        const char *at = (const char *)config + row->offset;
        if (row->kind == PE_KIND_INT) {
            double value = (double)*(const int64_t *)(const void *)at;
            FUZZ_EXPECT(value >= row->min && value <= row->max, "%s is %.17g", row->name, value);
        } else if (row->kind == PE_KIND_CHOICE) {
            int value = *(const int *)(const void *)at;
            FUZZ_EXPECT(pe_choice_name(row->choices, value), "%s is %d", row->name, value);
        } else {
            FUZZ_EXPECT(row->kind == PE_KIND_TEXT && *(const char *const *)(const void *)at,
                        "%s is of kind %d, or NULL", row->name, (int)row->kind);
        }
    }
}

static char *print(const struct config *config, size_t *n) {
    char *text = NULL;
    FILE *out = open_memstream(&text, n);
    FUZZ_EXPECT(out, "no memory");
    config_print(out, config);
    fclose(out);
    return text;
}

static void check_printed(struct pe_arena *arena, const struct config *config) {
    struct config again;
    struct pe_error err = {0};
    size_t n, n_again;
    char *text = print(config, &n);
    pe_fields_init(config_fields, config_n_fields, &again, sizeof again);
    FUZZ_EXPECT(config_parse_json(arena, &again, text, n, "printed", &err) == PE_OK, "%s: %s\n%s", err.path,
                err.text, text);
    char *text_again = print(&again, &n_again);
    FUZZ_EXPECT(n == n_again && memcmp(text, text_again, n) == 0, "%s\nis read back as\n%s", text,
                text_again);
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    struct config config;
    struct pe_error err = {0};
    struct pe_arena *arena = fuzz_arena(LIMIT);
    pe_fields_init(config_fields, config_n_fields, &config, sizeof config);
    int code = config_parse_json(arena, &config, text, size, "posencd.json", &err);
    fuzz_error_check(code, &err);
    FUZZ_EXPECT(!code || strncmp(err.path, "posencd.json", 12) == 0, "the fault is at \"%s\"", err.path);
    if (code == PE_OK) {
        json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        FUZZ_EXPECT(json_is_object(json), "is no JSON object");
        json_decref(json);
        check_bounds(&config);
        check_printed(arena, &config);
        code = config_check(&config, &err);
        fuzz_error_check(code, &err);
    }
    free(text);
    pe_arena_close(arena);
    return 0;
}
