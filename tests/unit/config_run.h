/* SPDX-License-Identifier: MIT
 *
 * What the tests of hf_config share: a configuration asked for, and small ones to vary.
 */
#ifndef CONFIG_RUN_H
#define CONFIG_RUN_H

#include "report_run.h"

/* The encoding's fields as text, and a configuration beside them unless it is NULL. */
json_t *config_encoding(const char *fields, json_t *config);
/* Takes the encoding; the caller closes the try. */
void config_encode(struct call_try *try, json_t *encoding);

/* A Llama of heads of 4 with more keys behind. */
#define LLAMA(...)  "{\"model_type\":\"llama\",\"head_dim\":8" __VA_ARGS__ "}"
#define SCALED(...) LLAMA(",\"rope_scaling\":{" __VA_ARGS__ "}")
#define YARN        "\"rope_type\":\"yarn\",\"factor\":4"
#define ORIGINAL    "\"original_max_position_embeddings\":512"
#define FULL_YARN   YARN "," ORIGINAL
#define DEEPSEEK    "\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8,\"qk_nope_head_dim\":16"
#define GEMMA3      "\"model_type\":\"gemma3_text\",\"head_dim\":8"
#define SEQ         "{\"seq_len\":4096}"

#endif
