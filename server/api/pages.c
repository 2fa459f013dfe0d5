/* SPDX-License-Identifier: MIT
 *
 * The small documents: what there is, in what limits, in what state.
 */
#include "budget.h"
#include "config.h"
#include "api/page.h"
#include "api/schema.h"
#include "metrics.h"
#include "tables.h"
#include "wire/bind.h"
#include "wire/echo.h"
#include "wire/lift.h"
#include "wire/problem.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const abilities[] = {"encode", "apply", "bias", "attention", "shift"};

static const char *family_name(enum pe_family family) {
    static const char *const names[] = {"none", "absolute", "rotary", "bias", "query"};
    return names[family];
}

static void describe(struct text *text, const struct pe_encoding_info *info) {
    const struct {
        const char *key, *value;
    } facts[] = {{"type", info->type},
                 {"title", info->title},
                 {"doc", info->doc},
                 {"reference", info->reference},
                 {"family", family_name(info->family)}};
    text_puts(text, "{");
    for (size_t i = 0; i < PE_COUNT(facts); i++) {
        text_key(text, facts[i].key);
        text_string(text, facts[i].value);
    }
    text_key(text, "operations");
    text_puts(text, "[");
    unsigned can = pe_encoding_abilities(info);
    for (size_t i = 0, n = 0; i < PE_COUNT(abilities); i++) {
        if (can & (1u << i)) {
            text_puts(text, n++ ? "," : "");
            text_string(text, abilities[i]);
        }
    }
    text_puts(text, "]");
    text_key(text, "parameters");
    schema_object(text, info->fields, info->n_fields);
    text_puts(text, "}");
}

int page_encodings(struct page *page, struct pe_error *err) {
    (void)err;
    text_puts(page->text, "{\"encodings\":[");
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        text_puts(page->text, i ? "," : "");
        describe(page->text, pe_encoding_at(i));
    }
    text_puts(page->text, "]}");
    return PE_OK;
}

int page_encoding(struct page *page, struct pe_error *err) {
    const struct pe_encoding_info *info = pe_encoding_find(page->argument);
    if (!info) {
        return pe_fail(err, SERVER_NOT_FOUND, "path", "there is no type of encoding \"%.60s\"",
                       page->argument);
    }
    describe(page->text, info);
    return PE_OK;
}

int page_presets(struct page *page, struct pe_error *err) {
    (void)err;
    text_puts(page->text, "{\"presets\":{");
    for (size_t i = 0; i < presets_count(page->service->presets); i++) {
        const struct preset *preset = presets_at(page->service->presets, i);
        text_key(page->text, preset->name);
        text_puts(page->text, "{\"doc\":");
        text_string(page->text, preset->doc);
        if (preset->source[0]) {
            text_key(page->text, "source");
            text_string(page->text, preset->source);
        }
        text_key(page->text, "family");
        text_string(page->text, family_name(pe_encoding_find(preset->type)->family));
        text_key(page->text, "encoding");
        text_puts(page->text, preset->json);
        text_puts(page->text, "}");
    }
    text_puts(page->text, "}}");
    return PE_OK;
}

static void text_digest(struct text *text, uint64_t digest) {
    char hex[32];
    snprintf(hex, sizeof hex, "fnv1a64:%016llx", (unsigned long long)digest);
    text_string(text, hex);
}

static void describe_table(struct text *text, const struct table *table) {
    text_puts(text, "{");
    text_key(text, "name");
    text_string(text, table->name);
    text_key(text, "file");
    text_string(text, table->file);
    text_key(text, "bytes");
    text_int(text, (int64_t)table->bytes);
    text_key(text, "digest");
    text_digest(text, table->digest);
    text_key(text, "tensors");
    text_puts(text, "{");
    for (size_t i = 0; i < table->n_tensors; i++) {
        const struct table_tensor *tensor = &table->tensors[i];
        text_key(text, tensor->name);
        text_puts(text, "{");
        echo_tensor(text, &tensor->tensor);
        text_key(text, "digest");
        text_digest(text, tensor->digest);
        text_puts(text, "}");
    }
    text_puts(text, "}}");
}

int page_tables(struct page *page, struct pe_error *err) {
    (void)err;
    text_puts(page->text, "{\"tables\":[");
    for (size_t i = 0; i < tables_count(page->service->tables); i++) {
        text_puts(page->text, i ? "," : "");
        describe_table(page->text, tables_at(page->service->tables, i));
    }
    text_puts(page->text, "]}");
    return PE_OK;
}

int page_table(struct page *page, struct pe_error *err) {
    const struct table *table = tables_table(page->service->tables, page->argument, err);
    if (!table) {
        struct pe_error why = *err;
        *err = (struct pe_error){.stop = why.stop};
        return pe_fail(err, SERVER_NOT_FOUND, "path", "%s", why.text);
    }
    describe_table(page->text, table);
    return PE_OK;
}

int page_limits(struct page *page, struct pe_error *err) {
    static const char *const names[] = {
        "body_bytes",      "expanded_bytes",   "envelope_bytes",     "reply_bytes",      "stream_bytes",
        "streams",         "streams_per_ip",   "deadline_ms",        "queue_depth",      "requests_per_ip",
        "batch_requests",  "connections",      "connections_per_ip", "header_timeout_s", "min_rate_bytes",
        "rate_patience_s", "stream_timeout_s", "idle_timeout_s",
    };
    (void)err;
    text_puts(page->text, "{");
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        const struct pe_field *row = pe_field_find(config_fields, config_n_fields, names[i]);
        text_key(page->text, names[i]);
        text_int(page->text,
                 *(const int64_t *)(const void *)((const char *)page->service->config + row->offset));
    }
    text_key(page->text, "memory_bytes");
    text_int(page->text, page->service->budget ? (int64_t)page->service->budget->limit : 0);
    /* What no option changes. */
    text_key(page->text, "shift_items");
    text_int(page->text, (int64_t)PE_SHIFT_ITEMS_MAX);
    text_key(page->text, "shift_work");
    text_int(page->text, (int64_t)PE_SHIFT_WORK_MAX);
    text_key(page->text, "number_characters");
    text_int(page->text, LIFT_MAX_NUMBER);
    text_key(page->text, "position_max");
    text_int(page->text, (int64_t)PE_POSITION_MAX);
    text_key(page->text, "rank_max");
    text_int(page->text, PE_MAX_RANK);
    text_puts(page->text, "}");
    return PE_OK;
}

int page_version(struct page *page, struct pe_error *err) {
    (void)err;
    text_puts(page->text, "{\"version\":");
    text_string(page->text, pe_version());
    text_key(page->text, "numerics");
    text_int(page->text, PE_NUMERICS_VERSION);
    text_key(page->text, "api");
    text_string(page->text, "v1");
    text_puts(page->text, "}");
    return PE_OK;
}

int page_health(struct page *page, struct pe_error *err) {
    (void)err;
    page->fresh = true;
    text_puts(page->text, "{\"live\":true}");
    return PE_OK;
}

int page_ready(struct page *page, struct pe_error *err) {
    bool ready = !page->service->metrics || metrics_get(page->service->metrics, METRICS_READY) > 0;
    (void)err;
    page->fresh = true;
    page->status = ready ? 200 : 503;
    text_puts(page->text, ready ? "{\"ready\":true}" : "{\"ready\":false}");
    return PE_OK;
}

int page_metrics(struct page *page, struct pe_error *err) {
    size_t bound = page->service->metrics ? metrics_bound(page->service->metrics) : 1;
    char *text = malloc(bound);
    page->fresh = true;
    page->media = METRICS_CONTENT_TYPE;
    if (!text) {
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory for the metrics");
    }
    if (page->service->metrics) {
        text_add(page->text, text, metrics_write(page->service->metrics, text, bound));
    }
    free(text);
    return PE_OK;
}
