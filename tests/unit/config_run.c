/* SPDX-License-Identifier: MIT
 *
 * See config_run.h.
 */
#include "config_run.h"
#include "expect.h"

#include <stdlib.h>

json_t *config_encoding(const char *fields, json_t *config) {
    json_t *encoding = json_loads(fields, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(encoding != NULL, "%s", fields);
    json_object_set_new(encoding, "type", json_string("rope"));
    if (config) {
        json_object_set_new(encoding, "hf_config", config);
    }
    return encoding;
}

void config_encode(struct call_try *try, json_t *encoding) {
    json_t *body =
        json_pack("{s:o,s:[i,f],s:s}", "encoding", encoding, "positions", 3, 1000.5, "dtype", "float64");
    char *text = json_dumps(body, JSON_REAL_PRECISION(17));
    *try = (struct call_try){.request = "POST /v1/encode", .body = text};
    call_try(&report_ground, try);
    free(text);
    json_decref(body);
}
