/* SPDX-License-Identifier: MIT
 *
 * batch: a list of requests, each with its operation's name, answered together: {"requests": [{"op":
 * "encode",
 * ...}]} -> {"responses": [{"status": 200, "body": {...}}]}. The call (call_batch.c) carries it out, one
 * entry a part of its work.
 */
#include "api/api.h"

const struct api_op api_batch = {
    .name = "batch",
    .doc = "Several requests at once, computed in parallel, answered in order; each entry succeeds or fails "
           "alone.",
    .post = "POST /v1/batch",
    .batch = true,
};
