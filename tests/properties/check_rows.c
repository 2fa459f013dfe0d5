/* SPDX-License-Identifier: MIT
 *
 * What holds for every row of the tables of fields: those of the encodings, of the operations, of positions.
 * They are documented, their defaults are allowed values, no name means two things in a query, and the schema
 * that the catalogue gives has them all.
 */
#include "unit/call_run.h"
#include "unit/suites.h"

#include "api/api.h"

#include <string.h>

static struct call_ground ground;
static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    call_ground_open(&ground);
    arena = pe_arena_open(1 << 24, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&ground);
}

/* Every text that the catalogue shows says something: more than `least` characters. */
static void check_text(const char *of, const char *name, const char *what, const char *text, size_t least) {
    ck_assert_msg(text && strlen(text) > least,
                  "%s%s%s: its %s must be longer than %zu characters, is \"%s\"", of, name[0] ? "." : "",
                  name, what, least, text ? text : "");
}

static void check_docs(const char *of, const struct pe_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        check_text(of, fields[i].name, "doc", fields[i].doc, 5);
        for (const struct pe_choice *c = fields[i].choices; c && c->name; c++) {
            check_text(fields[i].name, c->name, "doc", c->doc, 0);
            ck_assert_msg(c->value != 0, "%s.%s=%s: its value must not be 0, which stands for none", of,
                          fields[i].name, c->name);
        }
        for (size_t k = 0; k < i; k++) {
            ck_assert_msg(strcmp(fields[k].name, fields[i].name) != 0,
                          "%s.%s: there are two rows of this name", of, fields[i].name);
        }
        if (fields[i].kind == PE_KIND_OBJECT) {
            check_docs(fields[i].name, fields[i].fields, fields[i].n_fields);
        }
    }
}

START_TEST(everything_is_documented) {
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        check_text(info->type, "", "title", info->title, 0);
        check_text(info->type, "", "doc", info->doc, 20);
        check_text(info->type, "", "reference", info->reference, 0);
        ck_assert_ptr_eq(pe_encoding_find(info->type), info);
        ck_assert_msg(info->params_size >= sizeof(uint64_t) && info->n_fields <= 64,
                      "%s: its parameters begin with `uint64_t given`, a bit for each of at most 64",
                      info->type);
        check_docs(info->type, info->fields, info->n_fields);
    }
    for (size_t i = 0; i < api_op_count(); i++) {
        check_text(api_op_at(i)->name, "", "doc", api_op_at(i)->doc, 10);
        check_docs(api_op_at(i)->name, api_op_at(i)->fields, api_op_at(i)->n_fields);
    }
    check_docs("common", api_common_fields, api_common_n_fields_raw);
    check_docs("positions", pe_positions_fields, pe_positions_n_fields);
}
END_TEST

/* Defaults are texts; one that does not parse would be dropped in silence. Without an arena, as pe_fields_init has none. */
static void check_defaults(const char *of, const struct pe_field *fields, size_t n, size_t size) {
    for (size_t i = 0; i < n; i++) {
        struct pe_error err = {0};
        char *base = pe_arena_array(arena, 1, size, &err);
        if (fields[i].def) {
            ck_assert_msg(!pe_field_parse(NULL, fields, &fields[i], base, fields[i].def, &err), "%s.%s: %s",
                          of, fields[i].name, err.text);
        }
        ck_assert_msg(fields[i].min <= fields[i].max, "%s.%s: its min is over its max", of, fields[i].name);
        ck_assert_msg(!(fields[i].def && (fields[i].flags & PE_FIELD_REQUIRED)),
                      "%s.%s: what is required has no default", of, fields[i].name);
        if (fields[i].kind == PE_KIND_OBJECT) {
            check_defaults(fields[i].name, fields[i].fields, fields[i].n_fields, fields[i].object_size);
        }
    }
}

START_TEST(defaults_are_allowed_values) {
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        check_defaults(info->type, info->fields, info->n_fields, info->params_size);
    }
    for (size_t i = 0; i < api_op_count(); i++) {
        check_defaults(api_op_at(i)->name, api_op_at(i)->fields, api_op_at(i)->n_fields,
                       api_op_at(i)->request_size);
    }
    check_defaults("common", api_common_fields, api_common_n_fields_raw, sizeof(struct api_common));
    check_defaults("positions", pe_positions_fields, pe_positions_n_fields, sizeof(struct pe_positions_rule));
}
END_TEST

/* A row of each kind whose values may need memory, with a default. */
struct with_lists {
    uint64_t given;
    struct pe_names chosen, free;
    const struct pe_tensor *tensor;
    struct pe_table posted, named;
    struct pe_positions range, list;
    const void *object;
};
static const struct pe_choice colours[] = {{"red", 1, "as blood"}, {"blue", 2, "as the sea"}, {0}};
static const struct pe_field switches[] = {{.name = "on", .kind = PE_KIND_BOOL, .offset = sizeof(uint64_t)}};
static const struct pe_field with_lists_fields[] = {
    {PE_FIELD(with_lists, chosen), .choices = colours, .def = "blue,\"red\""},
    {PE_FIELD(with_lists, free), .def = "a,b"},
    {PE_FIELD(with_lists, tensor), .def = "1,2"},
    {PE_FIELD(with_lists, posted), .def = "[1,2]"},
    {PE_FIELD(with_lists, named), .def = "mine"},
    {PE_FIELD(with_lists, range), .def = "0:4"},
    {PE_FIELD(with_lists, list), .def = "0,4"},
    {PE_FIELD(with_lists, object), .fields = switches, .n_fields = 1, .object_size = 16, .def = "on"},
};

/* A default has no arena: what static texts and the struct can hold is taken, what needs memory is an error that
 * defaults_are_allowed_values would show. */
START_TEST(defaults_take_no_memory) {
    static const char *const NEED_MEMORY[] = {"free", "tensor", "posted", "list", "object"};
    struct with_lists lists;
    pe_fields_init(with_lists_fields, PE_COUNT(with_lists_fields), &lists, sizeof lists);
    ck_assert_uint_eq(lists.chosen.n, 2);
    ck_assert_str_eq(lists.chosen.v[0], "blue");
    ck_assert_str_eq(lists.chosen.v[1], "red");
    ck_assert_str_eq(lists.named.name, "mine");
    ck_assert_uint_eq(pe_positions_count(&lists.range), 4);
    ck_assert(lists.free.n == 0 && !lists.tensor && !lists.posted.tensor && !lists.list.list &&
              !lists.object);
    for (size_t i = 0; i < PE_COUNT(NEED_MEMORY); i++) {
        struct pe_error err = {0};
        const struct pe_field *row =
            pe_field_find(with_lists_fields, PE_COUNT(with_lists_fields), NEED_MEMORY[i]);
        ck_assert_int_eq(pe_field_parse(NULL, with_lists_fields, row, &lists, row->def, &err), PE_ERR_MEMORY);
        ck_assert_msg(strstr(err.text, "no arena") != NULL, "%s: %s", row->name, err.text);
    }
}
END_TEST

/* In a query the fields of an operation and of its encoding stand side by side. */
START_TEST(no_name_is_of_two) {
    for (size_t e = 0; e < pe_encoding_count(); e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        for (size_t i = 0; i < info->n_fields; i++) {
            const char *name = info->fields[i].name;
            ck_assert_msg(strcmp(name, "type") != 0 && strcmp(name, "encoding") != 0 && !strchr(name, '.'),
                          "%s.%s: no parameter is called type or encoding, or has a dot", info->type, name);
            ck_assert_msg(!pe_field_find(api_common_fields, api_common_n_fields_raw, name),
                          "%s.%s: every operation has a field of this name", info->type, name);
            for (size_t k = 0; k < api_op_count(); k++) {
                const struct api_op *op = api_op_at(k);
                bool takes_one = pe_field_find(op->fields, op->n_fields, "encoding") != NULL;
                const struct pe_field *row = pe_field_find(op->fields, op->n_fields, name);
                ck_assert_msg(!takes_one || !row || strcmp(row->name, name) != 0, /* it may be an alias */
                              "%s.%s: the operation %s has a field of this name", info->type, name, op->name);
            }
        }
    }
    for (size_t k = 0; k < api_op_count(); k++) {
        for (size_t i = 0; i < api_op_at(k)->n_fields; i++) {
            const char *name = api_op_at(k)->fields[i].name;
            ck_assert_msg(!pe_field_find(api_common_fields, api_common_n_fields_raw, name),
                          "%s.%s: every operation has a field of this name", api_op_at(k)->name, name);
        }
    }
}
END_TEST

START_TEST(schema_lists_every_parameter) {
    const struct pe_encoding_info *info = pe_encoding_at((size_t)_i);
    char request[100];
    snprintf(request, sizeof request, "GET /v1/encodings/%s", info->type);
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    const json_t *schema = json_object_get(try.json, "parameters"),
                 *all = json_object_get(schema, "properties");
    ck_assert_uint_eq(json_object_size(all), info->n_fields);
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct pe_field *row = &info->fields[i];
        const json_t *one = json_object_get(all, row->name);
        bool list = row->kind == PE_KIND_NAMES;
        const json_t *choices = json_object_get(list ? json_object_get(one, "items") : one, "enum");
        const json_t *kind = json_object_get(one, "$ref") /* of an object: its own schema */
                                 ? json_object_get(json_object_get(schema, "$defs"), row->name)
                                 : one;
        size_t n = 0;
        while (row->choices && row->choices[n].name) {
            n++;
        }
        ck_assert_msg(
            json_object_get(kind, "type") && json_string_length(json_object_get(one, "description")) > 5,
            "%s.%s: its schema has no type, or a description of 5 characters or less", info->type, row->name);
        ck_assert_int_eq(json_object_get(one, "default") != NULL, row->def != NULL);
        ck_assert_uint_eq(json_array_size(choices), row->kind == PE_KIND_CHOICE || list ? n : 0);
    }
    call_try_close(&try);
}
END_TEST

/* The operation `positions` takes the fields of a rule at its top: they are the rule's, in all that they say of
 * what is allowed. */
START_TEST(flat_fields_of_positions_are_the_rules) {
    const struct api_op *op = api_op_find("positions");
    size_t n = 0;
    for (size_t i = 0; i < op->n_fields; i++) {
        const struct pe_field *flat = &op->fields[i];
        const struct pe_field *own = pe_field_find(pe_positions_fields, pe_positions_n_fields, flat->name);
        if (!own) {
            continue;
        }
        n++;
        ck_assert_msg(flat->kind == own->kind && flat->flags == own->flags, "%s: its kind", flat->name);
        ck_assert_msg(flat->min == own->min && flat->max == own->max, "%s: %g to %g, not %g to %g",
                      flat->name, flat->min, flat->max, own->min, own->max);
        ck_assert_msg(!flat->def == !own->def && (!own->def || strcmp(flat->def, own->def) == 0),
                      "%s: its default", flat->name);
        ck_assert_msg(flat->choices == own->choices, "%s: its choices", flat->name);
    }
    ck_assert_uint_gt(n, 5);
}
END_TEST

Suite *rows_suite(void) {
    Suite *suite = suite_create("rows");
    TCase *rows = tcase_create("rows");
    suite_add_tcase(suite, rows);
    tcase_add_checked_fixture(rows, setup, teardown);
    tcase_add_test(rows, everything_is_documented);
    tcase_add_test(rows, defaults_are_allowed_values);
    tcase_add_test(rows, defaults_take_no_memory);
    tcase_add_test(rows, no_name_is_of_two);
    tcase_add_test(rows, flat_fields_of_positions_are_the_rules);
    tcase_add_loop_test(rows, schema_lists_every_parameter, 0, (int)pe_encoding_count());
    return suite;
}
