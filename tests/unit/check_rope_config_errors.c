/* SPDX-License-Identifier: MIT
 *
 * hf_config: every way to be wrong, by a row each.
 */
#include "config_run.h"
#include "suites.h"

#include <stdlib.h>

#define MISSING  "missing"
#define TYPE     "type"
#define RANGE    "range"
#define CONFLICT "conflict"
#define CHOICE   "choice"
#define AT       "encoding.hf_config."

static const struct wrong {
    const char *config, *fields, *slug, *field, *detail;
} wrongs[] = {
    {"{}", "{}", TYPE, "encoding.hf_config", "must be an object with keys, got an empty one"},
    {"[1]", "{}", TYPE, "encoding.hf_config", "must be an object with keys, got a list"},
    {"{\"a\":1}", "{}", MISSING, AT "model_type", "is missing, it tells how the rest is read"},
    {"{\"model_type\":5}", "{}", TYPE, AT "model_type", "must be a string"},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":[]}}", "{}", TYPE,
     AT "text_config.model_type", "must be a string"},
    {"{\"model_type\":\"t5\"}", "{}", "unknown_name", AT "model_type",
     "\"t5\" is no rotary model known here: say head_dim, base, layout and scaling instead"},
    /* layers */
    {"{" GEMMA3 "}", "{}", MISSING, "encoding.layer_type",
     "is missing, the layers of this model differ: full_attention or sliding_attention"},
    {"{" GEMMA3 "}", "{\"layer_type\":\"local\"}", CHOICE, "encoding.layer_type",
     "must be full_attention or sliding_attention, got \"local\""},
    {LLAMA(), "{\"layer_type\":\"local\"}", CONFLICT, "encoding.layer_type",
     "is \"local\", but in this model all layers are alike"},
    {LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}"), "{\"layer_type\":\"full_attention\"}",
     CONFLICT, "encoding.layer_type", "is \"full_attention\", but in this model all layers are alike"},
    {"{\"model_type\":\"exaone4\",\"head_dim\":8,\"sliding_window\":null}",
     "{\"layer_type\":\"sliding_attention\"}", CONFLICT, "encoding.layer_type",
     "is \"sliding_attention\", but in this model all layers are alike"},
    {LLAMA(",\"rope_parameters\":{\"a\":{\"rope_theta\":1},\"b\":{\"rope_theta\":2},\"a2\":{\"rope_theta\":2}"
           "}"),
     "{}", MISSING, "encoding.layer_type", "is missing, the layers of this model differ: a or b or a2"},
    {LLAMA(",\"rope_parameters\":{\"a\":{\"rope_theta\":1},\"b\":{\"rope_theta\":2}}"),
     "{\"layer_type\":\"full_attention\"}", CHOICE, "encoding.layer_type",
     "must be a or b, got \"full_attention\""},
    {"{\"model_type\":\"gemma4_text\"}", "{\"layer_type\":\"full_attention\"}", MISSING, AT "rope_parameters",
     "is missing, it tells what each type of layers does"},
    {LLAMA(",\"rope_parameters\":{\"rope_theta\":5},\"rope_scaling\":{\"type\":\"default\"}"), "{}", CONFLICT,
     AT "rope_scaling", "rope_parameters is there, too: the same thing under two names"},
    {NULL, "{\"head_dim\":8,\"layout\":\"halves\",\"layer_type\":\"full_attention\"}", CONFLICT,
     "encoding.layer_type", "is of hf_config, which is not given"},
    /* widths */
    {"{\"model_type\":\"llama\"}", "{}", MISSING, AT "hidden_size",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"llama\",\"hidden_size\":64}", "{}", MISSING, AT "num_attention_heads",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"deepseek_v3\"}", "{}", MISSING, AT "qk_rope_head_dim",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8}", "{}", MISSING, AT "qk_nope_head_dim",
     "is missing, the scale of the softmax follows from it"},
    {"{\"model_type\":\"llama\",\"text_config\":{\"head_dim\":\"8\"}}", "{}", TYPE, AT "text_config.head_dim",
     "must be a number"},
    {"{\"model_type\":\"llama\",\"head_dim\":8.5}", "{}", RANGE, AT "head_dim",
     "got 8.5, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"head_dim\":0}", "{}", RANGE, AT "head_dim",
     "got 0, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"head_dim\":65537}", "{}", RANGE, AT "head_dim",
     "got 65537, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"hidden_size\":4,\"num_attention_heads\":4}", "{}", RANGE, AT "hidden_size",
     "makes heads of width 1 with 4 heads, allowed is 2 and more"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":7,\"qk_nope_head_dim\":8}", "{}", RANGE,
     AT "qk_rope_head_dim",
     "lets 7 columns of a head of width 7 turn, allowed are even numbers from 2: columns turn in pairs"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8,\"qk_nope_head_dim\":65536}", "{}", RANGE,
     AT "qk_nope_head_dim", "makes queries of width 65544, allowed is at most 65536"},
    {LLAMA(",\"partial_rotary_factor\":0.4"), "{}", RANGE, AT "partial_rotary_factor",
     "lets 3 columns of a head of width 8 turn, allowed are even numbers from 2: columns turn in pairs"},
    {LLAMA(",\"partial_rotary_factor\":0"), "{}", RANGE, AT "partial_rotary_factor",
     "got 0, allowed is above 0 up to 1"},
    {LLAMA(",\"rope_parameters\":{\"partial_rotary_factor\":1.5}"), "{}", RANGE,
     AT "rope_parameters.partial_rotary_factor", "got 1.5, allowed is above 0 up to 1"},
    {"{\"model_type\":\"gptj\",\"n_embd\":16,\"n_head\":4,\"rotary_dim\":8}", "{}", RANGE, AT "rotary_dim",
     "lets 8 columns of a head of width 4 turn, allowed are even numbers from 2: columns turn in pairs"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.3}", "{}", RANGE,
     AT "attention_multiplier",
     "got 0.29999999999999999, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0}", "{}", RANGE,
     AT "attention_multiplier", "got 0, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":1e-200}", "{}", RANGE,
     AT "attention_multiplier",
     "got 9.9999999999999998e-201, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {LLAMA(",\"rope_theta\":0"), "{}", RANGE, AT "rope_theta", "got 0, allowed is 1 to 1e+300"},
    {LLAMA(",\"rope_parameters\":{\"rope_theta\":0.5}"), "{}", RANGE, AT "rope_parameters.rope_theta",
     "got 0.5, allowed is 1 to 1e+300"},
    {"{" DEEPSEEK ",\"rope_interleave\":1}", "{}", TYPE, AT "rope_interleave", "must be true or false"},
    /* the type */
    {SCALED("\"factor\":2"), "{}", MISSING, AT "rope_scaling.rope_type",
     "is missing, it tells how the rest is read"},
    {SCALED("\"type\":2"), "{}", TYPE, AT "rope_scaling.type", "must be a string"},
    {SCALED("\"rope_type\":\"lamma3\""), "{}", CHOICE, AT "rope_scaling.rope_type",
     "must be one of default, linear, ntk, dynamic, proportional, yarn, longrope, llama3, mrope, su, got "
     "\"lamma3\""},
    {"{" GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"type\":\"x\"}}}",
     "{\"layer_type\":\"full_attention\"}", CHOICE, AT "rope_parameters.full_attention.type",
     "must be one of default, linear, ntk, dynamic, proportional, yarn, longrope, llama3, mrope, su, got "
     "\"x\""},
    /* members */
    {SCALED("\"type\":\"linear\""), "{}", MISSING, AT "rope_scaling.factor",
     "is missing, its rope_type needs it"},
    {SCALED("\"type\":\"linear\",\"factor\":\"2\""), "{}", TYPE, AT "rope_scaling.factor",
     "must be a number"},
    {SCALED("\"type\":\"linear\",\"factor\":0"), "{}", RANGE, AT "rope_scaling.factor",
     "must be at least 1e-06 and at most 1000000, got 0"},
    {"{\"model_type\":\"a\",\"text_config\":" SCALED("\"type\":\"linear\",\"factor\":0") "}", "{}", RANGE,
     AT "text_config.rope_scaling.factor", "must be at least 1e-06 and at most 1000000, got 0"},
    {SCALED(YARN), "{}", MISSING, AT "rope_scaling.original_max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"max_position_embeddings\":4096,\"rope_scaling\":{" YARN "}"), "{}", MISSING,
     AT "rope_scaling.original_max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"original_max_position_embeddings\":1,\"rope_scaling\":{" YARN "}"), "{}", RANGE,
     AT "original_max_position_embeddings", "got 1, allowed are whole numbers from 2 to 2^53"},
    {SCALED("\"type\":\"yarn\"," ORIGINAL), "{}", MISSING, AT "rope_scaling.factor",
     "is missing, and so is max_position_embeddings, which it would follow from"},
    {LLAMA(",\"max_position_embeddings\":-1,\"rope_scaling\":{\"type\":\"yarn\"," ORIGINAL "}"), "{}", RANGE,
     AT "rope_scaling.factor", "must be at least 1e-06 and at most 1000000, got -0.001953125"},
    {SCALED(FULL_YARN ",\"truncate\":0"), "{}", TYPE, AT "rope_scaling.truncate", "must be true or false"},
    {SCALED("\"type\":\"dynamic\",\"factor\":2"), SEQ, MISSING, AT "max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"), "{}",
     MISSING, "encoding.seq_len",
     "is missing, rope_type dynamic needs the length of the sequence, as frequencies depend on it"},
    {SCALED("\"type\":\"su\"," ORIGINAL ",\"short_factor\":[1,1,1,1]"), SEQ, MISSING,
     AT "rope_scaling.factor", "is missing, and so is max_position_embeddings, which it would follow from"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,1]"), SEQ, MISSING,
     AT "rope_scaling.long_factor", "is missing, its rope_type needs it"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,\"a\"]"), SEQ, TYPE,
     AT "rope_scaling.short_factor", "must be a list of numbers"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,1],\"long_factor\":[1]"), SEQ,
     "shape", "encoding.scaling.long_factor", "has shape [1], allowed is [4], one number for each pair"},
    {SCALED("\"type\":\"llama3\",\"factor\":2,\"low_freq_factor\":1," ORIGINAL), "{}", MISSING,
     AT "rope_scaling.high_freq_factor", "is missing, its rope_type needs it"},
    /* sections */
    {SCALED("\"type\":\"mrope\""), "{}", MISSING, AT "rope_scaling.mrope_section",
     "is missing, type mrope needs it"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":4"), "{}", TYPE, AT "rope_scaling.mrope_section",
     "must be a short list of whole numbers"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1.5,0.5]"), "{}", TYPE, AT "rope_scaling.mrope_section",
     "must be a short list of whole numbers"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1],\"mrope_interleaved\":1"), "{}", TYPE,
     AT "rope_scaling.mrope_interleaved", "must be true or false"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,2]"), "{}", RANGE, "encoding.sections",
     "has the length 3 and the sum 5, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    /* fields that contradict */
    {LLAMA(), "{\"head_dim\":16}", CONFLICT, "encoding.head_dim", "is 16, but hf_config gives 8"},
    {LLAMA(), "{\"rotary_dim\":4}", CONFLICT, "encoding.rotary_dim", "is 4, but hf_config gives 8"},
    {LLAMA(), "{\"partial_rotary_factor\":0.5}", CONFLICT, "encoding.partial_rotary_factor",
     "is 0.5, but of hf_config 8 columns of 8 turn"},
    {LLAMA(), "{\"base\":500}", CONFLICT, "encoding.base", "is 500, but hf_config gives 10000"},
    {LLAMA(), "{\"layout\":\"interleaved\"}", CONFLICT, "encoding.layout",
     "is interleaved, but that of model_type llama is halves"},
    {"{" DEEPSEEK "}", "{\"qk_head_dim\":8}", CONFLICT, "encoding.qk_head_dim",
     "is 8, but hf_config gives 24"},
    {LLAMA(), "{\"scaling\":{\"rope_type\":\"linear\",\"factor\":2}}", CONFLICT, "encoding.scaling.rope_type",
     "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED(FULL_YARN), "{\"scaling\":{\"rope_type\":\"yarn\",\"factor\":8," ORIGINAL "}}", CONFLICT,
     "encoding.scaling.factor", "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED(FULL_YARN), "{\"scaling\":{" FULL_YARN ",\"attention_factor\":1}}", CONFLICT,
     "encoding.scaling.attention_factor", "is there, but hf_config does not give it"},
    {SCALED(FULL_YARN ",\"attention_factor\":2"), "{\"scaling\":{" FULL_YARN "}}", CONFLICT,
     "encoding.scaling.attention_factor", "is missing, but hf_config gives it"},
    {SCALED(FULL_YARN), "{\"scaling\":{" FULL_YARN ",\"rope_theta\":5}}", CONFLICT,
     "encoding.scaling.rope_theta",
     "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1]"), "{\"sections\":[1,2,1]}", CONFLICT,
     "encoding.sections", "differ from those of hf_config"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1]"),
     "{\"sections\":[2,1,1],\"section_layout\":\"interleaved\"}", CONFLICT, "encoding.section_layout",
     "differs from that of hf_config"},
};

START_TEST(configurations_that_are_wrong) {
    const struct wrong *row = &wrongs[_i];
    struct call_try try;
    config_encode(&try, config_encoding(row->fields, row->config ? json_loads(row->config, 0, NULL) : NULL));
    ck_assert_msg(try.status == 400, "%s: %s", row->config, try.reply);
    ck_assert_str_eq(call_try_text(&try, "field"), row->field);
    ck_assert_str_eq(call_try_text(&try, "detail"), row->detail);
    ck_assert_str_eq(call_try_slug(&try), row->slug);
    call_try_close(&try);
}
END_TEST

Suite *rope_config_errors_suite(void) {
    Suite *suite = suite_create("rope_config_errors");
    TCase *all = tcase_create("rope_config_errors");
    tcase_add_checked_fixture(all, report_setup, report_teardown);
    tcase_add_loop_test(all, configurations_that_are_wrong, 0, (int)(sizeof wrongs / sizeof *wrongs));
    suite_add_tcase(suite, all);
    return suite;
}
