/* SPDX-License-Identifier: MIT
 *
 * The list of what an operation answers with. Its room is fixed: an operation's outputs are few and known.
 */
#include "wire/result.h"

#include <assert.h>

static struct result_item *result_add(struct result *result, const char *name) {
    assert(result->n < RESULT_MAX);
    struct result_item *item = &result->items[result->n++];
    *item = (struct result_item){.name = name};
    return item;
}

void result_tensor(struct result *result, const char *name, const struct pe_tensor *tensor) {
    result_add(result, name)->tensor = *tensor;
}

void result_numbers(struct result *result, const char *name, const struct pe_tensor *numbers) {
    struct result_item *item = result_add(result, name);
    item->tensor = *numbers;
    item->bare = true;
}

bool result_is_tensor(const struct result_item *item) {
    return !item->json && !item->late && !item->bare;
}

bool result_is_list(const struct result_item *item) {
    return item->bare && item->tensor.rank > 0;
}

void result_json(struct result *result, const char *name, const char *json) {
    result_add(result, name)->json = json;
}

void result_json_late(struct result *result, const char *name, const struct result_late *late) {
    result_add(result, name)->late = late;
}

size_t result_n_tensors(const struct result *result) {
    size_t n = 0;
    for (size_t i = 0; i < result->n; i++) {
        n += result_is_tensor(&result->items[i]);
    }
    return n;
}

const struct result_item *result_first(const struct result *result) {
    for (size_t i = 0; i < result->n; i++) {
        if (result_is_tensor(&result->items[i])) {
            return &result->items[i];
        }
    }
    return NULL;
}

int result_check_finite(const struct result *result, struct pe_error *err) {
    for (size_t i = 0; i < result->n; i++) {
        const struct result_item *item = &result->items[i];
        if (item->json || !item->tensor.data) {
            continue;
        }
        struct pe_error inner = {.stop = err->stop};
        if (pe_tensor_check_finite(&item->tensor, item->minus_inf, &inner) == PE_ERR_STOPPED) {
            return pe_error_poll(err);
        }
        if (inner.code) {
            pe_error_at(&inner, item->name);
            return pe_fail(err, PE_ERR_NONFINITE, inner.path,
                           "the result does not fit %s: it came out infinite",
                           pe_dtype_name(item->tensor.dtype));
        }
    }
    return PE_OK;
}
