/* SPDX-License-Identifier: MIT
 *
 * The routes of pages are rows here; those of operations follow from the operations' own rows.
 */
#include "routes.h"

#include <string.h>

static int page_without_site(struct page *page, struct pe_error *err);
static int page_index(struct page *page, struct pe_error *err);

static const struct route pages[] = {
    {"/", "GET /", NULL, NULL, page_without_site, false, "the web page, with all its files"},
    {"/v1", "GET /v1", NULL, NULL, page_index, false, "what there is"},
    {"/healthz", "GET /healthz", NULL, NULL, page_health, true, "the process runs"},
    {"/readyz", "GET /readyz", NULL, NULL, page_ready, true, "requests are welcome"},
    {"/metrics", "GET /metrics", NULL, NULL, page_metrics, true, "counters and gauges for Prometheus"},
    {"/v1/encodings", "GET /v1/encodings", NULL, NULL, page_encodings, false, "the catalogue of encodings"},
    {"/v1/encodings/{type}", "GET /v1/encodings/{type}", NULL, NULL, page_encoding, false, "one encoding"},
    {"/v1/presets", "GET /v1/presets", NULL, NULL, page_presets, false, "encodings by the names of projects"},
    {"/v1/tables", "GET /v1/tables", NULL, NULL, page_tables, false, "the loaded tables"},
    {"/v1/tables/{name}", "GET /v1/tables/{name}", NULL, NULL, page_table, false, "one table"},
    {"/v1/limits", "GET /v1/limits", NULL, NULL, page_limits, false, "the limits in force"},
    {"/v1/version", "GET /v1/version", NULL, NULL, page_version, false, "versions of program and numbers"},
};

/* Does the path fit the pattern? {name} stands for one segment that is not empty. */
static bool path_fits(const char *pattern, const char *path, const char **argument) {
    const char *brace = strchr(pattern, '{');
    *argument = NULL;
    if (!brace) {
        return strcmp(pattern, path) == 0;
    }
    size_t head = (size_t)(brace - pattern);
    if (strncmp(pattern, path, head) != 0 || !path[head] || strchr(path + head, '/')) {
        return false;
    }
    *argument = path + head;
    return true;
}

static const char *op_path(const struct api_op *op) {
    return op->post ? op->post + strlen("POST ") : op->get + strlen("GET ");
}

static struct route op_route(const struct api_op *op) {
    return (struct route){.path = op_path(op), .get = op->get, .post = op->post, .op = op, .doc = op->doc};
}

bool routes_find(const char *path, struct route *out, const char **argument) {
    *argument = NULL;
    for (size_t i = 0; i < api_op_count(); i++) {
        if (strcmp(op_path(api_op_at(i)), path) == 0) {
            *out = op_route(api_op_at(i));
            return true;
        }
    }
    for (size_t i = 0; i < PE_COUNT(pages); i++) {
        if (path_fits(pages[i].path, path, argument)) {
            *out = pages[i];
            return true;
        }
    }
    return false;
}

size_t routes_names(const char **names, size_t max) {
    size_t n = 0;
    for (size_t i = 0; i < api_op_count() + PE_COUNT(pages); i++) {
        struct route route = i < api_op_count() ? op_route(api_op_at(i)) : pages[i - api_op_count()];
        if (route.get && n < max) {
            names[n++] = route.get;
        }
        if (route.post && n < max) {
            names[n++] = route.post;
        }
    }
    return n;
}

/* In place of the web page, where it was left out: call.c answers with its files else. */
static int page_without_site(struct page *page, struct pe_error *err) {
    (void)err;
    page->fresh = true;
    text_puts(page->text, "{\"name\":\"posenc\",\"version\":");
    text_string(page->text, pe_version());
    text_key(page->text, "detail");
    text_string(page->text, "built without its web page, for which make needs nodejs (18 or later) and npm; "
                            "GET /v1 lists what there is");
    text_puts(page->text, "}");
    return PE_OK;
}

static int page_index(struct page *page, struct pe_error *err) {
    const char *names[64];
    size_t n = routes_names(names, PE_COUNT(names));
    (void)err;
    text_puts(page->text, "{\"name\":\"posenc\",\"version\":");
    text_string(page->text, pe_version());
    text_key(page->text, "routes");
    text_puts(page->text, "[");
    for (size_t i = 0; i < n; i++) {
        text_puts(page->text, i ? "," : "");
        text_string(page->text, names[i]);
    }
    text_puts(page->text, "]}");
    return PE_OK;
}
