/* SPDX-License-Identifier: MIT
 *
 * The folders of tests/cases/<operation>/<case>, each a request and its answer:
 *
 *     request    METHOD TARGET, lines of headers, an empty line, the body
 *     reply      lines of # that name the source, the status and (optional) the tolerance of numbers, JSON
 *     problem    the same for an error
 *
 * Numbers are compared within the tolerance (absolute, and relative where they are over 1), all else exactly,
 * but the id of a request; the detail of a problem names lists as wanted.h says. UPDATE=1 writes the
 * `problem` files that are missing or wrong from what came out, to be read before they are kept; replies are
 * never written: their numbers come from tests/golden/make_cases.py and make_cases_ops.py.
 */
#include "call_run.h"
#include "suites.h"
#include "wanted.h"

#include "api/api.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CASES 2000

static char root[300];
static char *cases[MAX_CASES]; /* "encode/keras_d6" */
static int n_cases;

/* ---- Comparing ----------------------------------------------------------------------------------------- */

static bool near(double got, double wanted, double tolerance) {
    return fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted));
}

/* Writes where the first difference is; "" when there is none. */
static bool differ(char *path, size_t size, const char *format, ...) PE_PRINTF(3, 4);
static bool differ(char *path, size_t size, const char *format, ...) {
    size_t n = strlen(path);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, size - n, format, args);
    va_end(args);
    return true;
}

static bool json_differs(const json_t *got, const json_t *wanted, double tolerance, char *path, size_t size);

static bool object_differs(const json_t *got, const json_t *wanted, double tolerance, char *path,
                           size_t size) {
    const char *key;
    json_t *value;
    size_t n = strlen(path);
    json_object_foreach((json_t *)(uintptr_t)got, key, value) {
        if (!json_object_get(wanted, key) && strcmp(key, "request_id") != 0) {
            return differ(path, size, ".%s: is not expected", key);
        }
    }
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
        if (strcmp(key, "request_id") == 0) {
            continue;
        }
        snprintf(path + n, size - n, ".%s", key);
        if (!json_object_get(got, key)) {
            return differ(path, size, ": is missing");
        }
        if (json_differs(json_object_get(got, key), value, tolerance, path, size)) {
            return true;
        }
        path[n] = '\0';
    }
    return false;
}

static bool array_differs(const json_t *got, const json_t *wanted, double tolerance, char *path,
                          size_t size) {
    size_t n = strlen(path);
    if (json_array_size(got) != json_array_size(wanted)) {
        return differ(path, size, ": %zu items, not %zu", json_array_size(got), json_array_size(wanted));
    }
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        snprintf(path + n, size - n, "[%zu]", i);
        if (json_differs(json_array_get(got, i), json_array_get(wanted, i), tolerance, path, size)) {
            return true;
        }
        path[n] = '\0';
    }
    return false;
}

static bool json_differs(const json_t *got, const json_t *wanted, double tolerance, char *path, size_t size) {
    if (json_is_number(wanted) && json_is_number(got)) {
        double is = json_number_value(got), should = json_number_value(wanted);
        return !near(is, should, tolerance) && differ(path, size, ": %.17g, not %.17g", is, should);
    }
    if (json_typeof(got) != json_typeof(wanted)) {
        return differ(path, size, ": of another kind");
    }
    if (json_is_object(wanted)) {
        return object_differs(got, wanted, tolerance, path, size);
    }
    if (json_is_array(wanted)) {
        return array_differs(got, wanted, tolerance, path, size);
    }
    if (json_is_string(wanted) && strcmp(json_string_value(got), json_string_value(wanted)) != 0) {
        return differ(path, size, ": \"%.200s\", not \"%.200s\"", json_string_value(got),
                      json_string_value(wanted));
    }
    return false;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* A whole file, to be freed; NULL when there is none. */
static char *file_read(const char *name, const char *file) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s/%s", root, name, file);
    FILE *in = fopen(path, "rb");
    if (!in) {
        return NULL;
    }
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, in);
    ck_assert_msg(n < (1 << 20) - 1, "%s is too large", path);
    fclose(in);
    return text;
}

static void problem_write_file(const char *name, const struct call_try *try) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s/problem", root, name);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    json_object_set_new(try->json, "request_id", json_string(""));
    char *text = json_dumps(try->json, JSON_INDENT(2));
    fprintf(out, "%d\n%s\n", try->status, text);
    free(text);
    fclose(out);
}

/* One header line into the head. */
static void header_set(struct call_head *head, const char *name, const char *value) {
    const struct {
        const char *name;
        const char **member;
    } known[] = {{"Accept", &head->accept},
                 {"Content-Type", &head->content_type},
                 {"Content-Encoding", &head->content_encoding},
                 {"If-None-Match", &head->if_none_match},
                 {"X-Posenc-Timeout-Ms", &head->timeout_ms},
                 {"X-Posenc-Shape", &head->raw_shape},
                 {"X-Posenc-Dtype", &head->raw_dtype}};
    for (size_t i = 0; i < PE_COUNT(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *known[i].member = value;
            return;
        }
    }
    ck_abort_msg("the header %s is not one that the tests know", name);
}

/* Cuts one line off a text. */
static char *line_take(char **text) {
    char *line = *text, *end = strchr(line, '\n');
    *text = end ? end + 1 : line + strlen(line);
    if (end) {
        *end = '\0';
    }
    return line;
}

static void request_read(char *text, struct call_try *try) {
    try->request = line_take(&text);
    for (char *line; *(line = line_take(&text)) != '\0';) {
        char *colon = strchr(line, ':');
        ck_assert_msg(colon != NULL, "\"%s\" is no header", line);
        *colon = '\0';
        header_set(&try->head, line, colon + 1 + strspn(colon + 1, " "));
    }
    size_t n = strlen(text); /* without the line end of the file */
    if (n && text[n - 1] == '\n') {
        text[n - 1] = '\0';
    }
    try->body = text[0] ? text : NULL;
}

/* ---- A case -------------------------------------------------------------------------------------------- */

/* What a file wants: its status, tolerance and JSON. */
struct wanted {
    int status;
    double tolerance;
    json_t *json;
};

static struct wanted wanted_read(const char *name, char *text, const struct presets *presets) {
    struct wanted wanted = {0};
    json_error_t error;
    char *line;
    while ((line = line_take(&text))[0] == '#') {
    }
    ck_assert_msg(sscanf(line, "%d %lf", &wanted.status, &wanted.tolerance) >= 1, "%s: no status in \"%s\"",
                  name, line);
    wanted.json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(wanted.json != NULL, "%s: line %d: %s", name, error.line, error.text);
    const char *detail = json_string_value(json_object_get(wanted.json, "detail"));
    if (wanted.status >= 400 && detail) {
        char *all = wanted_text(presets, detail);
        json_object_set_new(wanted.json, "detail", json_string(all));
        free(all);
    }
    return wanted;
}

/* Writes where the answer differs from the file's text, or why it cannot be one. */
static bool answer_differs(const struct wanted *wanted, const struct call_try *try, char *path, size_t size) {
    if (try->status != wanted->status) {
        return differ(path, size, "status %d, not %d", try->status, wanted->status);
    }
    return json_differs(try->json, wanted->json, wanted->tolerance, path, size);
}

static void check_answer(const char *name, char *text, const struct presets *presets,
                         const struct call_try *try) {
    char path[1000] = "";
    struct wanted wanted = wanted_read(name, text, presets);
    bool differs = answer_differs(&wanted, try, path, sizeof path);
    json_decref(wanted.json);
    if (differs && getenv("UPDATE") && wanted.status >= 400 && try->status >= 400) {
        problem_write_file(name, try);
        return;
    }
    ck_assert_msg(!differs, "%s: %s\n%.2000s", name, path, try->reply);
}

START_TEST(one_case) {
    static struct call_ground ground;
    const char *name = cases[_i];
    char *request = file_read(name, "request"), *reply = file_read(name, "reply"),
         *problem = file_read(name, "problem");
    bool add = getenv("UPDATE") && !reply && !problem;
    struct call_try try = {0};
    ck_assert_msg(request && (reply || problem || add), "%s lacks a file", name);
    ck_assert_msg(!(reply && problem), "%s has both a reply and a problem", name);
    call_ground_open(&ground);
    request_read(request, &try);
    call_try(&ground, &try);
    if (!add) {
        check_answer(name, reply ? reply : problem, ground.presets, &try);
    } else {
        ck_assert_msg(try.status >= 400, "%s: no problem: %s", name, try.reply);
        problem_write_file(name, &try);
    }
    call_try_close(&try);
    call_ground_close(&ground);
    free(request);
    free(reply);
    free(problem);
}
END_TEST

/* Every operation has cases, and there are not suddenly few of them. */
START_TEST(all_are_there) {
    ck_assert_int_ge(n_cases, 60);
    for (size_t i = 0; i < api_op_count(); i++) {
        const char *op = api_op_at(i)->name;
        int n = 0;
        for (int k = 0; k < n_cases; k++) {
            n += strncmp(cases[k], op, strlen(op)) == 0 && cases[k][strlen(op)] == '/';
        }
        ck_assert_msg(n > 0, "no cases of %s under %s", op, root);
    }
}
END_TEST

static int is_case(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void find_cases(const char *op) {
    char path[600];
    struct dirent **list;
    snprintf(path, sizeof path, "%s/%s", root, op);
    int n = scandir(path, &list, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        if (n_cases == MAX_CASES) {
            abort(); /* outside of any test; a larger array is all it takes */
        }
        cases[n_cases] = malloc(600);
        snprintf(cases[n_cases++], 600, "%s/%s", op, list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0) {
        free(list);
    }
}

Suite *cases_suite(void) {
    Suite *suite = suite_create("cases");
    TCase *tests = tcase_create("cases");
    struct dirent **list;
    snprintf(root, sizeof root, "%.*s../cases", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    int n = scandir(root, &list, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        find_cases(list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0) {
        free(list);
    }
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, all_are_there);
    tcase_add_loop_test(tests, one_case, 0, n_cases);
    return suite;
}
