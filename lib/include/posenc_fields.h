/* SPDX-License-Identifier: MIT
 *
 * Field rows: one row describes one member of a struct: its name, kind, bounds, default, choices and doc.
 * The same rows drive the parameters of encodings, the bodies and queries of requests, the options of the
 * daemon, the catalogue and the property tests. A struct described by rows starts with `uint64_t given`, a
 * bit for each row that was set by its user; a row's bit is its index in the table.
 *
 *     struct sinusoidal { uint64_t given; int64_t d_model; double base; int layout; };
 *     static const struct pe_field fields[] = {
 *         {PE_FIELD(sinusoidal, d_model), .min = 1, .max = 65536, .flags = PE_FIELD_REQUIRED, .doc = "..."},
 *         {PE_FIELD(sinusoidal, base), .min = 1, .max = 1e12, .def = "10000", .doc = "..."},
 *         {PE_FIELD(sinusoidal, layout), .choices = layouts, .def = "interleaved", .doc = "..."},
 *     };
 *
 * C11: the kind follows from the member's type, so name, kind and offset cannot drift apart.
 */
#ifndef POSENC_FIELDS_H
#define POSENC_FIELDS_H

#include "posenc.h"

enum pe_kind {
    PE_KIND_BOOL,      /* bool */
    PE_KIND_INT,       /* int64_t */
    PE_KIND_REAL,      /* double */
    PE_KIND_TEXT,      /* const char *, NULL = absent */
    PE_KIND_CHOICE,    /* int, a value of .choices; 0 = absent */
    PE_KIND_SCALE,     /* struct pe_scale: a number, or one of .choices */
    PE_KIND_INTS,      /* struct pe_ints: a short list of whole numbers */
    PE_KIND_NAMES,     /* struct pe_names: a short list of texts */
    PE_KIND_TEXTS,     /* struct pe_texts: a list of texts, as long as the row's max */
    PE_KIND_TENSOR,    /* const struct pe_tensor *, NULL = absent */
    PE_KIND_TABLE,     /* struct pe_table: a tensor, or the name of a loaded table */
    PE_KIND_TENSORS,   /* struct pe_tensors: tensors under names of their own, a model's weights */
    PE_KIND_POSITIONS, /* struct pe_positions */
    PE_KIND_ENCODING,  /* struct pe_spec, encoding NULL = absent */
    PE_KIND_CONFIG,    /* struct pe_config: somebody else's object, as it is */
    PE_KIND_OBJECT     /* const void *: a struct of its own rows (.fields, .object_size), NULL = absent */
};

struct pe_choice {
    const char *name;
    int value; /* not 0 */
    const char *doc;
}; /* tables end with a row whose name is NULL */

struct pe_scale {
    double number; /* where choice is 0 */
    int choice;
};
#define PE_MAX_INTS 64
struct pe_ints {
    size_t n;
    int64_t v[PE_MAX_INTS];
};
#define PE_MAX_NAMES 16
struct pe_names {
    size_t n;
    const char *v[PE_MAX_NAMES];
};
struct pe_texts {
    size_t n;
    const char *const *v; /* VIEW */
};
/* A table is named or posted. Whoever owns the loaded tables resolves `name` to `tensor` before a plan is
 * made; the name is kept for the echo. */
struct pe_table {
    const char *name;
    const struct pe_tensor *tensor;
};
/* Their names are not ours, and each is there once. */
struct pe_tensors {
    size_t n;
    const struct pe_named_tensor *v;
};

/* An object whose keys are not ours, flattened: "rope_scaling.factor". Whoever reads it marks what he used.
 */
enum pe_config_kind {
    PE_CONFIG_NULL,
    PE_CONFIG_BOOL,
    PE_CONFIG_NUMBER,
    PE_CONFIG_TEXT,
    PE_CONFIG_NUMBERS, /* a list of numbers: float64 [n] */
    PE_CONFIG_OTHER,   /* another list, or an object that is nested too deeply */
    PE_CONFIG_EMPTY    /* an object without members */
};
struct pe_config_item {
    const char *key;
    enum pe_config_kind kind;
    bool flag;
    double number;
    const char *text;
    const struct pe_tensor *list;
    bool used;
};
struct pe_config {
    size_t n;
    struct pe_config_item *items;
};

enum pe_field_flag {
    PE_FIELD_REQUIRED = 1 << 0,  /* must be given (or follow from the data, below) */
    PE_FIELD_WIDTH = 1 << 1,     /* where not given: the width of the posted embeddings */
    PE_FIELD_LENGTH = 1 << 2,    /* where not given: the number of positions */
    PE_FIELD_MINUS_INF = 1 << 3, /* a tensor that may hold -infinity (null in JSON) */
    PE_FIELD_OPEN_MIN = 1 << 4,  /* the minimum itself is not allowed */
    PE_FIELD_RELOAD = 1 << 5,    /* option: may change while running */
    PE_FIELD_SECRET = 1 << 6,    /* option: never printed */
    PE_FIELD_AUTO = 1 << 7,      /* option: 0 means that it follows the machine, written "auto" */
    PE_FIELD_BYTES = 1 << 8,     /* a size in bytes */
    PE_FIELD_NUMBERS = 1 << 9    /* a tensor of plain numbers (a mask, lengths): always kept as float64 */
};

struct pe_field {
    const char *name;
    enum pe_kind kind;
    size_t offset;
    double min, max;                 /* numbers; both 0 = no bounds. TEXTS, TENSORS: max is how many */
    const char *def;                 /* default as text; NULL = absent */
    const struct pe_choice *choices; /* CHOICE and SCALE */
    const char *shape;               /* tensors, for people: "[T, D] or [B, T, D]" */
    unsigned flags;
    const char *unit;
    const char *alias; /* other names that are taken, by blanks: those of models' configurations */
    const struct pe_field *fields; /* OBJECT: its rows */
    size_t n_fields, object_size;
    const char *doc;
};

#define PE_KIND_OF(type, member)                                                                             \
    _Generic(((struct type *)0)->member,                                                                    \
        bool: PE_KIND_BOOL,                                                                                 \
        int64_t: PE_KIND_INT,                                                                               \
        double: PE_KIND_REAL,                                                                               \
        const char *: PE_KIND_TEXT,                                                                         \
        int: PE_KIND_CHOICE,                                                                                \
        struct pe_scale: PE_KIND_SCALE,                                                                     \
        struct pe_ints: PE_KIND_INTS,                                                                       \
        struct pe_names: PE_KIND_NAMES,                                                                     \
        struct pe_texts: PE_KIND_TEXTS,                                                                     \
        const struct pe_tensor *: PE_KIND_TENSOR,                                                           \
        struct pe_table: PE_KIND_TABLE,                                                                     \
        struct pe_tensors: PE_KIND_TENSORS,                                                                 \
        struct pe_positions: PE_KIND_POSITIONS,                                                             \
        struct pe_spec: PE_KIND_ENCODING,                                                                   \
        struct pe_config: PE_KIND_CONFIG,                                                                   \
        const void *: PE_KIND_OBJECT)
#define PE_FIELD(type, member)                                                                               \
    .name = #member, .kind = PE_KIND_OF(type, member), .offset = offsetof(struct type, member)
#define PE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Finds a row by name; NULL when there is none. */
PE_API const struct pe_field *pe_field_find(const struct pe_field *fields, size_t n, const char *name);
/* Clears the struct of `size` bytes at base and fills in the defaults. One that its row refuses, or that needs memory,
 * is left out: a test of every table's rows tells. */
PE_API void pe_fields_init(const struct pe_field *fields, size_t n, void *base, size_t size);
/* Was this row set (not a default)? `fields` is the table that the row is in. */
PE_API bool pe_field_given(const struct pe_field *fields, const struct pe_field *row, const void *base);

/* Setters: check kind, bounds and choices, store, mark as given. A second setting of the same row is
 * PE_ERR_CONFLICT. The error's path is the row's name. */
PE_API int pe_field_set_bool(const struct pe_field *fields, const struct pe_field *row, void *base,
                             bool value, struct pe_error *err) PE_CHECKED;
/* To INT, REAL and SCALE rows. */
PE_API int pe_field_set_int(const struct pe_field *fields, const struct pe_field *row, void *base,
                            int64_t value, struct pe_error *err) PE_CHECKED;
/* To REAL and SCALE rows, and to INT rows when the value is whole. */
PE_API int pe_field_set_real(const struct pe_field *fields, const struct pe_field *row, void *base,
                             double value, struct pe_error *err) PE_CHECKED;
/* To TEXT, CHOICE, SCALE (by name) and TABLE rows. The text is a VIEW that must outlive the struct. */
PE_API int pe_field_set_text(const struct pe_field *fields, const struct pe_field *row, void *base,
                             const char *text, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_ints(const struct pe_field *fields, const struct pe_field *row, void *base,
                             const struct pe_ints *value, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_names(const struct pe_field *fields, const struct pe_field *row, void *base,
                              const struct pe_names *value, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_texts(const struct pe_field *fields, const struct pe_field *row, void *base,
                              const struct pe_texts *value, struct pe_error *err) PE_CHECKED;
/* To TENSOR and TABLE rows (VIEW). Refuses NaN and infinities (but see PE_FIELD_MINUS_INF). */
PE_API int pe_field_set_tensor(const struct pe_field *fields, const struct pe_field *row, void *base,
                               const struct pe_tensor *value, struct pe_error *err) PE_CHECKED;
/* To TENSORS rows (VIEW). The same for each of them, and PE_ERR_CONFLICT for a name that comes twice. */
PE_API int pe_field_set_tensors(const struct pe_field *fields, const struct pe_field *row, void *base,
                                const struct pe_tensors *value, struct pe_error *err) PE_CHECKED;
/* The path of a member of any name, `["h.0.ln_1.weight"]` or `wpe`, into text; returns text. */
PE_API char *pe_member_path(const char *name, char *text, size_t size);
PE_API int pe_field_set_positions(const struct pe_field *fields, const struct pe_field *row, void *base,
                                  const struct pe_positions *value, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_encoding(const struct pe_field *fields, const struct pe_field *row, void *base,
                                 const struct pe_spec *value, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_config(const struct pe_field *fields, const struct pe_field *row, void *base,
                               const struct pe_config *value, struct pe_error *err) PE_CHECKED;
PE_API int pe_field_set_object(const struct pe_field *fields, const struct pe_field *row, void *base,
                               const void *value, struct pe_error *err) PE_CHECKED;
/* From the text of a query string, by the row's kind (not ENCODING). Copies into the arena. An OBJECT row
 * accepts the name of one of its BOOL rows ("causal"). Defaults are parsed without an arena, and their text is kept as
 * it is: what needs memory (tensors, objects, lists of positions, names that are no choices) is PE_ERR_MEMORY then. */
PE_API int pe_field_parse(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                          void *base, const char *text, struct pe_error *err) PE_CHECKED;
/* pe_field_parse for a row that is a TENSOR or a TABLE: "1,2,3" or "[[1,2],[3,4]]", a list of positions' spelling,
 * each number rounded once to float64 or float32; pe_field_parse keeps float64. Rows of plain numbers (PE_FIELD_NUMBERS)
 * always are float64. A table's text without brackets is a name. */
PE_API int pe_field_parse_tensor(struct pe_arena *arena, const struct pe_field *fields,
                                 const struct pe_field *row, void *base, const char *text,
                                 enum pe_dtype dtype, struct pe_error *err) PE_CHECKED;
/* The struct of an OBJECT row, with its defaults when it is named first: ARENA memory. NULL on failure. */
PE_API void *pe_field_open_object(struct pe_arena *arena, const struct pe_field *fields,
                                  const struct pe_field *row, void *base, struct pe_error *err);
/* PE_ERR_MISSING at the first required row that was not given, also of objects that were. */
PE_API int pe_fields_check(const struct pe_field *fields, size_t n, const void *base,
                           struct pe_error *err) PE_CHECKED;
/* The names of the rows, "base, layout, ...", into text: for messages. Returns text. */
PE_API char *pe_fields_names(const struct pe_field *fields, size_t n, char *text, size_t size);
/* The names of the choices, "half, half_minus_one". Returns text. */
PE_API char *pe_choices_names(const struct pe_choice *choices, char *text, size_t size);
/* "a whole number", "one of error, clamp, zero", "an object with ...": what the row takes, in words. */
PE_API char *pe_field_words(const struct pe_field *row, char *text, size_t size);
/* The name of a choice's value; NULL when there is none. */
PE_API const char *pe_choice_name(const struct pe_choice *choices, int value);

/* The character that text[0..left) begins with: its bytes (0 when it is not UTF-8, RFC 3629) and its value.
 * left > 0. */
PE_API size_t pe_utf8_read(const char *text, size_t left, uint32_t *value);

/* Rows that several tables share. */
PE_API extern const struct pe_choice pe_dtype_choices[];         /* enum pe_dtype by name */
PE_API extern const struct pe_choice pe_position_rule_choices[]; /* enum pe_position_rule by name */
PE_API extern const struct pe_field pe_positions_fields[];       /* struct pe_positions_rule */
PE_API extern const size_t pe_positions_n_fields;

#endif
