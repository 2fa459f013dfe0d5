/* SPDX-License-Identifier: MIT
 *
 * Every way in which rotary encodings may be asked for wrongly, with the field that is named and what is
 * told.
 */
#include "call_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

#define GET      "GET /v1/encode?positions=1&"
#define HEAD8    GET "type=rope&layout=halves&head_dim=8&"
#define SECTIONS "GET /v1/encode?type=rope&layout=halves&head_dim=8&sections=1,1,1,1"

static const struct bad {
    const char *request, *body;
    int status;
    const char *slug, *field, *detail; /* NULL: any */
} bad[] = {
    /* clang-format off */
    {GET "type=rope&head_dim=8", NULL, 400, "missing", "encoding.layout",
     "is required: one of halves, interleaved"},
    {GET "type=rope&layout=halves", NULL, 400, "missing", "encoding.head_dim",
     "is required: a whole number, width of one head's query or key"},
    {GET "type=rope&layout=half&head_dim=8", NULL, 400, "choice", "encoding.layout",
     "must be one of halves, interleaved, got \"half\""},
    {GET "type=rope&layout=interleave&head_dim=8", NULL, 400, "choice", "encoding.layout",
     "must be one of halves, interleaved, got \"interleave\""},
    {GET "type=rope&layout=halves&head_dim=7", NULL, 400, "range", "encoding.head_dim",
     "makes a width of 7 that turns, allowed are even ones from 2: columns turn in pairs"},
    {GET "type=rope&layout=halves&head_dim=0", NULL, 400, "range", "encoding.head_dim",
     "must be at least 2 and at most 65536, got 0"},
    {GET "type=rope&layout=halves&head_dim=1", NULL, 400, "range", "encoding.head_dim",
     "must be at least 2 and at most 65536, got 1"},
    {GET "type=rope&layout=halves&head_dim=65537", NULL, 400, "range", "encoding.head_dim",
     "must be at least 2 and at most 65536, got 65537"},
    {HEAD8 "rotary_dim=5", NULL, 400, "range", "encoding.rotary_dim",
     "makes a width of 5 that turns, allowed are even ones from 2: columns turn in pairs"},
    {HEAD8 "rotary_dim=10", NULL, 400, "range", "encoding.rotary_dim",
     "is 10, allowed is at most head_dim, 8"},
    {HEAD8 "rotary_dim=0", NULL, 400, "range", "encoding.rotary_dim",
     "must be at least 2 and at most 65536, got 0"},
    {HEAD8 "partial_rotary_factor=0.4", NULL, 400, "range", "encoding.partial_rotary_factor",
     "makes a width of 3 that turns, allowed are even ones from 2: columns turn in pairs"},
    {HEAD8 "partial_rotary_factor=0.1", NULL, 400, "range", "encoding.partial_rotary_factor",
     "makes a width of 0 that turns, allowed are even ones from 2: columns turn in pairs"},
    {HEAD8 "partial_rotary_factor=0", NULL, 400, "range", "encoding.partial_rotary_factor",
     "must be above 0 and at most 1, got 0"},
    {HEAD8 "partial_rotary_factor=1.5", NULL, 400, "range", "encoding.partial_rotary_factor",
     "must be above 0 and at most 1, got 1.5"},
    {HEAD8 "rotary_dim=4&partial_rotary_factor=0.25", NULL, 400, "conflict", "encoding.rotary_dim",
     "is 4, but partial_rotary_factor 0.25 of head_dim 8 is 2"},
    {HEAD8 "base=0", NULL, 400, "range", "encoding.base",
     "must be at least 1 and at most 1e+300, got 0"},
    {HEAD8 "base=-1", NULL, 400, "range", "encoding.base",
     "must be at least 1 and at most 1e+300, got -1"},
    {HEAD8 "base=0.5", NULL, 400, "range", "encoding.base",
     "must be at least 1 and at most 1e+300, got 0.5"},
    {HEAD8 "rope_theta=0", NULL, 400, "range", "encoding.base",
     "must be at least 1 and at most 1e+300, got 0"},
    {HEAD8 "base=1e301", NULL, 400, "range", "encoding.base",
     "must be at least 1 and at most 1e+300, got 1e+301"},
    {HEAD8 "base=nan", NULL, 400, "type", "encoding.base",
     "must be a number, got \"nan\""},
    {HEAD8 "base=10000&rope_theta=10000", NULL, 400, "conflict", "encoding.base",
     "is given twice; it is also named rope_theta"},
    {HEAD8 "direction=left", NULL, 400, "choice", "encoding.direction",
     "must be one of counterclockwise, clockwise, got \"left\""},
    {HEAD8 "frequency=1", NULL, 400, "unknown_field", "frequency",
     NULL},
    {HEAD8 "seq_len=0", NULL, 400, "range", "encoding.seq_len",
     "must be at least 1 and at most 9007199254740992, got 0"},
    {HEAD8 "section_layout=contiguous", NULL, 400, "missing", "encoding.sections",
     "is missing, section_layout tells how they are laid out"},
    {HEAD8 "sections=1,1,1", NULL, 400, "range", "encoding.sections",
     "has the length 3 and the sum 3, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    {HEAD8 "sections=4", NULL, 400, "range", "encoding.sections",
     "has the length 1 and the sum 4, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    {HEAD8 "sections=1,1,1,1,0", NULL, 400, "range", "encoding.sections",
     "has the length 5 and the sum 4, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    {HEAD8 "sections=-1,5", NULL, 400, "range", "encoding.sections[0]",
     "must be at least 0 and at most 32768, got -1"},
    {HEAD8 "sections=2,2&section_layout=interleaved", NULL, 400, "range", "encoding.sections",
     "got 2 numbers, interleaved ones are 3, t, h and w, or ggml's 4"},
    {HEAD8 "sections=1.5,2.5", NULL, 400, "type", "encoding.sections",
     "must be a list of whole numbers, got \"1.5,2.5\""},
    {HEAD8 "sections=2,2&rope_axes.frequencies=language", NULL, 400, "conflict", "encoding.rope_axes",
     "sections are there, too: pairs are shared out by one of them"},
    {HEAD8 "rope_axes.frequencies=language&scaling.rope_type=linear&scaling.factor=2", NULL, 400, "conflict", "encoding.rope_axes",
     "scaling is there, too: it is for one sequence of positions"},
    {HEAD8 "xpos.scale_base=512&sections=2,2", NULL, 400, "conflict", "encoding.xpos",
     "is defined for one coordinate without scaling only"},
    {HEAD8 "xpos.scale_base=512&scaling.rope_type=linear&scaling.factor=2", NULL, 400, "conflict", "encoding.xpos",
     "is defined for one coordinate without scaling only"},
    {HEAD8 "xpos.scale_base=512&rope_axes.frequencies=language", NULL, 400, "conflict", "encoding.xpos",
     "is defined for one coordinate without scaling only"},
    {HEAD8 "xpos.scale_base=0", NULL, 400, "range", "encoding.xpos.scale_base",
     "must be at least 1 and at most 1000000000, got 0"},
    {HEAD8 "xpos.center=1e300", NULL, 400, "range", "encoding.xpos.center",
     "must be at least -9007199254740992 and at most 9007199254740992, got 1e+300"},
    {HEAD8 "xpos.decay=1", NULL, 400, "unknown_field", "encoding.xpos.decay",
     "unknown field; there are scale_base, center"},
    {HEAD8 "layer_type=full_attention", NULL, 400, "conflict", "encoding.layer_type",
     "is of hf_config, which is not given"},
    {HEAD8 "scaling.factor=2", NULL, 400, "missing", "encoding.scaling.rope_type",
     "is required: one of default, linear, ntk, dynamic, proportional, yarn, longrope, llama3, ggml"},
    {HEAD8 "scaling.rope_type=nope", NULL, 400, "choice", "encoding.scaling.rope_type",
     "must be one of default, linear, ntk, dynamic, proportional, yarn, longrope, llama3, ggml, got \"nope\""},
    {HEAD8 "scaling.rope_type=linear", NULL, 400, "missing", "encoding.scaling.factor",
     "is missing, rope_type linear needs it"},
    {HEAD8 "scaling.rope_type=linear&scaling.factor=0", NULL, 400, "range", "encoding.scaling.factor",
     "must be at least 1e-06 and at most 1000000, got 0"},
    {HEAD8 "scaling.rope_type=linear&scaling.factor=2&scaling.beta_fast=3", NULL, 400, "unknown_field", "encoding.scaling.beta_fast",
     "rope_type linear does not use it"},
    {HEAD8 "scaling.rope_type=linear&scaling.factor=2&scaling.nope=3", NULL, 400, "unknown_field", "encoding.scaling.nope",
     "unknown field; there are rope_type, factor, rope_theta, partial_rotary_factor, original_max_position_embeddings, attention_factor, mscale, mscale_all_dim, beta_fast, beta_slow, truncate, low_freq_factor, high_freq_factor, short_factor, long_factor, freq_scale, ext_factor, attn_factor, freq_factors"},
    {HEAD8 "scaling.rope_type=linear&scaling.factor=two", NULL, 400, "type", "encoding.scaling.factor",
     "must be a number, got \"two\""},
    {HEAD8 "scaling=linear", NULL, 400, "type", "encoding.scaling",
     "must be an object with rope_type, factor, rope_theta, partial_rotary_factor, original_max_position_embeddings, attention_factor, mscale, mscale_all_dim, beta_fast, beta_slow, truncate, low_freq_factor, high_freq_factor, short_factor, long_factor, freq_scale, ext_factor, attn_factor, freq_factors, or the word truncate (in a query each by itself, as scaling.rope_type=), got \"linear\""},
    {HEAD8 "scaling.rope_type=default&scaling.factor=2", NULL, 400, "unknown_field", "encoding.scaling.factor",
     "rope_type default does not use it"},
    {HEAD8 "scaling.rope_type=dynamic&scaling.factor=2&scaling.original_max_position_embeddings=64", NULL, 400, "missing", "encoding.seq_len",
     "is missing, rope_type dynamic needs the length of the sequence, as frequencies depend on it"},
    {HEAD8 "scaling.rope_type=dynamic&scaling.factor=2&seq_len=9", NULL, 400, "missing", "encoding.scaling.original_max_position_embeddings",
     "is missing, rope_type dynamic needs it"},
    {GET "type=rope&layout=halves&head_dim=2&scaling.rope_type=ntk&scaling.factor=2", NULL, 400, "range", "encoding.rotary_dim",
     "is 2, rope_type ntk needs 4 or more"},
    {GET "type=rope&layout=halves&head_dim=2&scaling.rope_type=dynamic&scaling.factor=2&seq_len=9&scaling.original_max_position_embeddings=64", NULL, 400, "range", "encoding.rotary_dim",
     "is 2, rope_type dynamic needs 4 or more"},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2", NULL, 400, "missing", "encoding.scaling.original_max_position_embeddings",
     "is missing, rope_type yarn needs it"},
    {HEAD8 "scaling.rope_type=yarn&scaling.original_max_position_embeddings=64", NULL, 400, "missing", "encoding.scaling.factor",
     "is missing, rope_type yarn needs it"},
    {HEAD8 "base=1&scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=64", NULL, 400, "range", "encoding.base",
     "is 1, rope_type yarn needs more: all wavelengths are the same"},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=1", NULL, 400, "range", "encoding.scaling.original_max_position_embeddings",
     "must be at least 2 and at most 9007199254740992, got 1"},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.truncate=maybe&scaling.original_max_position_embeddings=64", NULL, 400, "type", "encoding.scaling.truncate",
     "must be true or false, got \"maybe\""},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.attention_factor=0&scaling.original_max_position_embeddings=64", NULL, 400, "range", "encoding.scaling.attention_factor",
     "must be at least 1e-06 and at most 1000000, got 0"},
    {HEAD8 "scaling.rope_type=llama3&scaling.factor=2&scaling.original_max_position_embeddings=64", NULL, 400, "missing", "encoding.scaling.low_freq_factor",
     "is missing, rope_type llama3 needs it"},
    {HEAD8 "scaling.rope_type=llama3&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.low_freq_factor=1", NULL, 400, "missing", "encoding.scaling.high_freq_factor",
     "is missing, rope_type llama3 needs it"},
    {HEAD8 "scaling.rope_type=llama3&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.low_freq_factor=4&scaling.high_freq_factor=3", NULL, 400, "range", "encoding.scaling.high_freq_factor",
     "is 3, must be low_freq_factor, 4, or above"},
    {GET "type=rope&layout=halves&head_dim=4&scaling.rope_type=longrope&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1&scaling.long_factor=1,1", NULL, 400, "missing", "encoding.seq_len",
     "is missing, rope_type longrope needs the length of the sequence, as frequencies depend on it"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1,1&scaling.long_factor=1,1", NULL, 400, "shape", "encoding.scaling.short_factor",
     "has shape [3], allowed is [2], one number for each pair"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1&scaling.long_factor=[[1,1]]", NULL, 400, "shape", "encoding.scaling.long_factor",
     "has shape [1, 2], allowed is [2], one number for each pair"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1&scaling.long_factor=1,0", NULL, 400, "range", "encoding.scaling.long_factor[1]",
     "got 0, allowed is 1e-06 to 1e+09"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.long_factor=1,1", NULL, 400, "missing", "encoding.scaling.short_factor",
     "is missing, rope_type longrope needs it"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1&scaling.long_factor=1,1", NULL, 400, "missing", "encoding.scaling.factor",
     "is missing, rope_type longrope needs it or attention_factor"},
    {HEAD8 "scaling.rope_type=proportional", NULL, 400, "missing", "encoding.scaling.partial_rotary_factor",
     "is missing, rope_type proportional needs it"},
    {HEAD8 "base=500&scaling.rope_type=linear&scaling.factor=2&scaling.rope_theta=400", NULL, 400, "conflict", "encoding.scaling.rope_theta",
     "differs from the field base"},
    {HEAD8 "partial_rotary_factor=0.5&scaling.rope_type=linear&scaling.factor=2&scaling.partial_rotary_factor=0.25", NULL, 400, "conflict", "encoding.scaling.partial_rotary_factor",
     "differs from the field partial_rotary_factor"},
    {HEAD8 "base=1e300&scaling.rope_type=linear&scaling.factor=8", NULL, 400, "range", "encoding.base",
     "is 1e+300, with this scaling the last frequency may be 1e-301, allowed is from 1e-300"},
    {GET "type=rope&layout=halves&head_dim=4&base=1e299&scaling.rope_type=ntk&scaling.factor=8", NULL, 400, "range", "encoding.base",
     "is 1e+299, with this scaling the last frequency may be 1e-301, allowed is from 1e-300"},
    {GET "type=rope&layout=halves&head_dim=4&base=1e299&seq_len=1000000&scaling.rope_type=dynamic&scaling.factor=8&scaling.original_max_position_embeddings=64", NULL, 400, "range", "encoding.base",
     "is 1e+299, with this scaling the last frequency may be 1e-309, allowed is from 1e-300"},
    {HEAD8 "rope_axes.n_axes=2", NULL, 400, "missing", "encoding.rope_axes.frequencies",
     "is required: one of language, shared, pixel, period"},
    {HEAD8 "rope_axes.n_axes=3&rope_axes.frequencies=language", NULL, 400, "range", "encoding.rope_axes.n_axes",
     "is 3, which does not divide the 4 pairs"},
    {HEAD8 "rope_axes.n_axes=5&rope_axes.frequencies=language", NULL, 400, "range", "encoding.rope_axes.n_axes",
     "must be at least 2 and at most 4, got 5"},
    {HEAD8 "rope_axes.coordinates=unit&rope_axes.frequencies=language", NULL, 400, "missing", "encoding.rope_axes.grid",
     "is missing, coordinates unit need it"},
    {HEAD8 "rope_axes.grid=2,2&rope_axes.frequencies=language", NULL, 400, "unknown_field", "encoding.rope_axes.grid",
     "coordinates positions do not use it"},
    {HEAD8 "rope_axes.coordinates=unit&rope_axes.grid=2,2,2&rope_axes.frequencies=language", NULL, 400, "shape", "encoding.rope_axes.grid",
     "must have a size for each of n_axes"},
    {HEAD8 "rope_axes.max_freq=4&rope_axes.frequencies=language", NULL, 400, "unknown_field", "encoding.rope_axes.max_freq",
     "frequencies language do not use it"},
    {HEAD8 "rope_axes.frequencies=language", NULL, 400, "shape", "positions",
     "have 1 coordinate each, this encoding takes 2"},
    {HEAD8 "rope_axes.coordinates=unit&rope_axes.grid=0,2&rope_axes.frequencies=language", NULL, 400, "range", "encoding.rope_axes.grid[0]",
     "must be at least 1 and at most 16777216, got 0"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&sections=1,1,1,1&positions=[[[1,2]]]", NULL, 400, "shape", "positions",
     "have 2 coordinates each, this encoding takes 4, or one that stands for all"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&sections=1,1,1,1&positions=9007199254740994", NULL, 400, "range", "positions[0]",
     "got position 9007199254740994, allowed are -2^53 to 2^53"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&sections=1,1,1,1&positions=1e400", NULL, 400, "range", "positions[0]",
     "must not be too large for a double, got \"1e400\""},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&sections=1,1,1,1&positions=x", NULL, 400, "type", "positions[0]",
     "must be a number, got \"x\""},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&xpos.scale_base=1&positions=0,1000", NULL, 400, "range", "positions[1]",
     "the vector of position 1000 reaches inf, allowed in float64 is less than 1e+300"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&xpos.scale_base=1&positions=0:1000&dtype=float64", NULL, 400, "range", "positions[552]",
     "the vector of position 552 reaches 2.11621838e+300, allowed in float64 is less than 1e+300"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&trig_form=whole", NULL, 400, "choice", "trig_form",
     "must be one of half, full, packed, complex, got \"whole\""},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&return=vectors", NULL, 400, "choice", "return",
     "a rotary encoding has no vectors in this form, it has cos, sin and inv_freq"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&return=packed", NULL, 400, "choice", "return",
     "a rotary encoding has no packed in this form, it has cos, sin and inv_freq"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&trig_form=packed&return=cos", NULL, 400, "choice", "return",
     "a rotary encoding has no cos in this form, it has packed and inv_freq"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&role=value", NULL, 400, "choice", "role",
     "must be one of query, key, got \"value\""},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&format=npy", NULL, 406, "not_acceptable", "format",
     "npy cannot hold this reply (cos float32 of rank 2, sin float32 of rank 2, inv_freq float32 of rank 1); use json, safetensors, or name one tensor by return="},
    {"GET /v1/encode?type=sinusoidal&d_model=4&positions=1&trig_form=half", NULL, 400, "conflict", "trig_form",
     "is for rotary encodings, got sinusoidal"},
    {"GET /v1/encode?type=sinusoidal&d_model=4&positions=1&role=key", NULL, 400, "conflict", "role",
     "is for rotary encodings, got sinusoidal"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=1&dtype=float16&format=raw&return=cos&scaling.rope_type=yarn&scaling.factor=2&scaling.attention_factor=100000&scaling.original_max_position_embeddings=64", NULL, 400, "range", "positions[0]",
     "the vector of position 1 reaches 100000, allowed in float16 is less than 65520"},
    /* a key of a scaling without effect */
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.mscale=0.7", NULL, 400, "conflict", "encoding.scaling.mscale",
     "has no effect without mscale_all_dim"},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.mscale=0.7&scaling.mscale_all_dim=0", NULL, 400, "conflict", "encoding.scaling.mscale",
     "has no effect without mscale_all_dim"},
    {HEAD8 "scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.mscale=0.7&scaling.mscale_all_dim=1&scaling.attention_factor=1", NULL, 400, "conflict", "encoding.scaling.mscale",
     "has no effect beside attention_factor"},
    {GET "type=rope&layout=halves&head_dim=4&seq_len=3&scaling.rope_type=longrope&scaling.factor=2&scaling.attention_factor=1&scaling.original_max_position_embeddings=64&scaling.short_factor=1,1&scaling.long_factor=1,1", NULL, 400, "conflict", "encoding.scaling.factor",
     "has no effect beside attention_factor"},
    {HEAD8 "scaling.rope_type=ggml&scaling.freq_scale=0.5&scaling.beta_fast=8", NULL, 400, "conflict", "encoding.scaling.beta_fast",
     "has no effect where ext_factor is 0"},
    {HEAD8 "scaling.rope_type=ggml&scaling.freq_scale=0.5&scaling.ext_factor=0&scaling.beta_slow=8", NULL, 400, "conflict", "encoding.scaling.beta_slow",
     "has no effect where ext_factor is 0"},
    {HEAD8 "scaling.rope_type=ggml&scaling.freq_scale=0.5&scaling.original_max_position_embeddings=64", NULL, 400, "conflict", "encoding.scaling.original_max_position_embeddings",
     "has no effect where ext_factor is 0"},
    {HEAD8 "base=100&rope_axes.frequencies=pixel", NULL, 400, "conflict", "encoding.base",
     "is there, but frequencies pixel do not use it"},
    /* interleaved sections without a place */
    {HEAD8 "sections=0,4,0&section_layout=interleaved", NULL, 400, "range", "encoding.sections",
     "has 4 pairs for coordinate 1, but interleaved, t h w t h w ..., 4 pairs have 1 place for it"},
    {HEAD8 "sections=1,1,2&section_layout=interleaved", NULL, 400, "range", "encoding.sections",
     "has 2 pairs for coordinate 2, but interleaved, t h w t h w ..., 4 pairs have 1 place for it"},
    {GET "type=rope&layout=halves&head_dim=4&sections=1,0,1&section_layout=interleaved", NULL, 400, "range", "encoding.sections",
     "has 1 pair for coordinate 2, but interleaved, t h w t h w ..., 2 pairs have 0 places for it"},
    {HEAD8 "sections=0,3,0,1&section_layout=interleaved", NULL, 400, "range", "encoding.sections",
     "has 3 pairs for coordinate 1, but interleaved, t h w t h w ..., 4 pairs have 1 place for it"},
    {HEAD8 "base=1e150&seq_len=131072&scaling.rope_type=dynamic&scaling.factor=8&scaling.original_max_position_embeddings=8192&arithmetic=float32_pow", NULL, 400, "range", "encoding.base",
     "is beyond the largest float32, the arithmetic that was asked for, once the scaling raised it"},
    {HEAD8 "base=1e50&arithmetic=float32_pow", NULL, 400, "range", "encoding.base",
     "is 1e+50, which is infinite in float32, the arithmetic that was asked for"},
    /* a factor below 65520 that is 65520 in float32 */
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=3&dtype=float16&format=raw&return=cos&arithmetic=float32_pow&scaling.rope_type=yarn&scaling.factor=2&scaling.original_max_position_embeddings=64&scaling.attention_factor=65519.999", NULL, 400, "range", "positions[0]",
     "the vector of position 3 reaches 65520, allowed in float16 is less than 65520"},
    {"GET /v1/encode?type=rope&layout=halves&head_dim=8&positions=3&dtype=float16&format=raw&return=cos&arithmetic=ggml&ggml.mode=2&ggml.attn_factor=65519.999", NULL, 400, "range", "positions[0]",
     "the vector of position 3 reaches 65520, allowed in float16 is less than 65520"},
    {SECTIONS "&positions=[[[1,2,3,65519],[4,65520,5,6]]]&arithmetic=float16_positions", NULL, 400, "range", "positions[0][1][1]",
     "got 65520, which arithmetic float16_positions rounds to infinity: allowed is less than 65520 in magnitude, with scale and offset"},
    {SECTIONS "&positions=[[0,0,0,0],[1,2,3,-65520]]&arithmetic=float16_positions", NULL, 400, "range", "positions[1][3]",
     "got -65520, which arithmetic float16_positions rounds to infinity: allowed is less than 65520 in magnitude, with scale and offset"},
    {SECTIONS "&positions=[[[7,2,3,4]]]&dtype=float16&format=raw&return=cos&scaling.rope_type=yarn&scaling.factor=2&scaling.attention_factor=100000&scaling.original_max_position_embeddings=64", NULL, 400, "range", "positions[0][0][0]",
     "the vector of position 7 reaches 100000, allowed in float16 is less than 65520"},
    {"GET /v1/shift?type=rope&layout=halves&head_dim=8&sections=1,1,1,1&distance=1&positions=[[[1,2,3,4],[5,6,7,8]]]", NULL, 400, "shape", "positions",
     "have 4 coordinates each, vectors of rope are of one"},
    {"GET /v1/shift?type=rope&layout=halves&head_dim=8&rope_axes.frequencies=language&distance=1&positions=[[[1,2]]]", NULL, 400, "unsupported", "encoding.rope_axes",
     "is there, and a shift is along one coordinate only"},
    {"GET /v1/shift?type=rope&layout=halves&head_dim=8&rope_axes.frequencies=language&distance=1&positions=0:3", NULL, 400, "unsupported", "encoding.rope_axes",
     "is there, and a shift is along one coordinate only"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"rope_scaling\":\"linear\"}}}", 400, "type", "encoding.hf_config.rope_scaling",
     "must be an object"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"rope_scaling\":[8]}}}", 400, "type", "encoding.hf_config.rope_scaling",
     "must be an object"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"rope_parameters\":8}}}", 400, "type", "encoding.hf_config.rope_parameters",
     "must be an object"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"text_config\":[]}}}", 400, "type", "encoding.hf_config.text_config",
     "must be an object"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"text_config\":{\"head_dim\":8,\"rope_scaling\":true}}}}", 400, "type", "encoding.hf_config.text_config.rope_scaling",
     "must be an object"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"text_config.model_type\":\"llama\",\"head_dim\":8}}}", 400, "missing", "encoding.hf_config.model_type",
     "is missing, it tells how the rest is read"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"llama\",\"\":{\"head_dim\":8}}}}", 400, "missing", "encoding.hf_config.hidden_size",
     "is missing, the width of a head follows from it"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"scaling\":{\"rope_type\":\"linear\",\"factor\":2},\"hf_config\":{\"model_type\":\"llama\",\"head_dim\":8,\"rope_scaling.type\":\"linear\",\"rope_scaling.factor\":2}}}", 400, "conflict", "encoding.scaling.rope_type",
     "differs from what hf_config gives: change it there or leave it out here"},
    {"POST /v1/encode", "{\"positions\":[1],\"encoding\":{\"type\":\"rope\",\"layer_type\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"hf_config\":{\"model_type\":\"gemma3\",\"head_dim\":8,\"rope_parameters\":{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":{\"rope_type\":\"default\"}}}}}", 400, "choice", "encoding.layer_type",
     "must be aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""},
    {HEAD8 "rotary_dim=4&scaling.rope_type=linear&scaling.factor=2&scaling.partial_rotary_factor=0.25", NULL, 400, "conflict", "encoding.rotary_dim",
     "is 4, but partial_rotary_factor 0.25 of head_dim 8 is 2"},
    {HEAD8 "rotary_dim=4&scaling.rope_type=proportional&scaling.partial_rotary_factor=0.5", NULL, 400, "conflict", "encoding.rotary_dim",
     "is 4, but this rope_type is of the whole head, 8"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[1,2,3]]}", 400, "range", "encoding.head_dim",
     "makes a width of 3 that turns, allowed are even ones from 2: columns turn in pairs"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[1,2]]]]}", 400, "missing", "axes",
     "is missing, embeddings of shape [1, 1, 1, 2] could be bthd or bhtd, and each turns other vectors alike"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[1,2]]]],\"axes\":\"bhtw\"}", 400, "choice", "axes",
     "\"bhtw\" for embeddings of shape [1, 1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[1,2]]]],\"axes\":\"btd\"}", 400, "choice", "axes",
     "\"btd\" for embeddings of shape [1, 1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[1,2]]]],\"axes\":\"bttd\"}", 400, "choice", "axes",
     "\"bttd\" for embeddings of shape [1, 1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[1,2]]]],\"axes\":\"bwhd\"}", 400, "choice", "axes",
     "\"bwhd\" for embeddings of shape [1, 1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[1,2]]],\"axes\":\"bhd\"}", 400, "choice", "axes",
     "\"bhd\" for embeddings of shape [1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[1,2]]],\"axes\":\"bxd\"}", 400, "choice", "axes",
     "\"bxd\" for embeddings of shape [1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[1,2]]],\"axes\":\"\"}", 400, "choice", "axes",
     "\"\" for embeddings of shape [1, 1, 2]: a letter for each axis, d last, each once: b, t, h, or h and w for the rows and columns of images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[[[[1,2]]]]]}", 400, "shape", "embeddings",
     "has shape [1, 1, 1, 1, 2], allowed are ranks 2 to 4"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4},\"embeddings\":[[1,2]]}", 400, "conflict", "encoding.head_dim",
     "is 4 but the embeddings have width 2"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[1,2]],\"embedding_scale\":2}", 400, "conflict", "embedding_scale",
     "is for encodings that are added, a rotary one turns"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[1,2]],\"positions\":[1,2]}", 400, "shape", "positions",
     "has shape [2] but the tokens need [1]"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"embeddings\":[[1e38,3e38]]}", 400, "range", "embeddings",
     "holds numbers up to 3e+38, which may be beyond the largest float32 when turned"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"scaling\":{\"rope_type\":\"ggml\",\"freq_scale\":1000,\"ext_factor\":1,\"attn_factor\":1e-6,\"original_max_position_embeddings\":4096}},\"embeddings\":[[1.6e32,-1.6e32]],\"inverse\":true}", 400, "range", "embeddings",
     "holds numbers up to 1.6e+32, which may be beyond the largest float32 when turned"},
    {"POST /v1/apply?dtype=float16&format=raw", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rotary_dim\":2,\"scaling\":{\"rope_type\":\"yarn\",\"factor\":2,\"attention_factor\":0.001,\"original_max_position_embeddings\":4096}},\"embeddings\":[[1,1,1,1e6]]}", 400, "range", "embeddings",
     "holds numbers up to 1e+06, which may be beyond the largest float16 when turned"},
    {"POST /v1/apply?dtype=float16&format=raw", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rotary_dim\":2,\"scaling\":{\"rope_type\":\"yarn\",\"factor\":2,\"attention_factor\":1000,\"original_max_position_embeddings\":4096}},\"embeddings\":[[1,1,1,1e6]],\"inverse\":true}", 400, "range", "embeddings",
     "holds numbers up to 1e+06, which may be beyond the largest float16 when turned"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rope_axes\":{\"frequencies\":\"language\"}},\"embeddings\":[[1,2,3,4]]}", 400, "missing", "positions",
     "is missing, rope takes rows of 2 coordinates here"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"sections\":[1,1,1]},\"embeddings\":[[1,2,3,4,5,6],[1,2,3,4,5,6]],\"positions\":[[0,1],[0,1],[0,1]]}", 400, "shape", "positions",
     "has shape [3, 2] but the tokens need [2], or [2, 3] with the 3 coordinates of each"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"sections\":[1,1,1]},\"embeddings\":[[[1,2,3,4,5,6],[1,2,3,4,5,6]]],\"positions\":[[[0,1,1]]]}", 400, "shape", "positions",
     "has shape [1, 1, 3] but the tokens need [2] or [1, 2], or [2, 3] or [1, 2, 3] with the 3 coordinates of each"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"sections\":[1,1,1]},\"embeddings\":[[1,2,3,4,5,6]],\"positions\":[[[0,1,1,1,1]]]}", 400, "shape", "positions",
     "got shape [1, 1, 5], allowed are [T] and [B, T]; or [B, T, n], a row of n coordinates for each"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rope_axes\":{\"frequencies\":\"period\",\"coordinates\":\"centered\",\"grid\":[2,1]}},\"embeddings\":[[[1,2,3,4],[1,2,3,4]]],\"axes\":\"hwd\"}", 400, "conflict", "embeddings",
     "are images of [1, 2], but the grid of the encoding is [2, 1]"},
    {"POST /v1/check", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4,\"rope_axes\":{\"frequencies\":\"language\"}},\"cos\":[[1,1]],\"sin\":[[0,0]]}", 400, "missing", "positions",
     "is missing, rope takes rows of 2 coordinates here"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"sinusoidal\"},\"embeddings\":[[1,2]],\"axes\":\"bthd\"}", 400, "choice", "axes",
     "\"bthd\" for embeddings of shape [1, 2], allowed are td, btd, and hwd or bhwd for images"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"sinusoidal\"},\"embeddings\":[[1,2]],\"inverse\":true}", 400, "conflict", "inverse",
     "is for rotary encodings"},
    {"POST /v1/apply", "{\"encoding\":{\"type\":\"sinusoidal\"},\"embeddings\":[[1,2]],\"role\":\"key\"}", 400, "conflict", "role",
     "is for rotary encodings"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"q\":[[1,2,3]],\"k\":[[1,2,3]]}", 400, "range", "encoding.head_dim",
     "makes a width of 3 that turns, allowed are even ones from 2: columns turn in pairs"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4},\"q\":[[1,2]],\"k\":[[1,2]]}", 400, "conflict", "encoding.head_dim",
     "is 4 but the embeddings have width 2"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4},\"embeddings\":[[1,2]]}", 400, "conflict", "encoding.head_dim",
     "is 4 but the embeddings have width 2"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"q\":[[1,2]],\"k\":[[1,2]],\"query_positions\":[1,2]}", 400, "shape", "query_positions",
     "has shape [2] but the tokens need [1]"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rope_axes\":{\"frequencies\":\"language\"}},\"q\":[[1,2,3,4]],\"k\":[[1,2,3,4]]}", 400, "missing", "query_positions",
     "is missing, rope takes rows of 2 coordinates here"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"rope_axes\":{\"frequencies\":\"language\"}},\"q\":[[1,2,3,4]],\"k\":[[1,2,3,4]],\"query_positions\":[[1,2]]}", 400, "missing", "key_positions",
     "is missing, rope takes rows of 2 coordinates here"},
    {"POST /v1/attention", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"sections\":[1,1]},\"q\":[[1,2,3,4]],\"k\":[[1,2,3,4]],\"query_positions\":[[1,2,3]]}", 400, "shape", "query_positions",
     "has shape [1, 3] but the tokens need [1], or [1, 2] with the 2 coordinates of each"},
    {"POST /v1/shift", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4,\"xpos\":{\"scale_base\":1}},\"distance\":100000,\"positions\":[]}", 400, "range", "distance",
     "got 100000, so far vectors grow beyond float64"},
    {"POST /v1/encode", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":8,\"scaling\":\"yarn\"},\"positions\":[1]}", 400, "type", "encoding.scaling",
     "must be an object with rope_type, factor, rope_theta, partial_rotary_factor, original_max_position_embeddings, attention_factor, mscale, mscale_all_dim, beta_fast, beta_slow, truncate, low_freq_factor, high_freq_factor, short_factor, long_factor, freq_scale, ext_factor, attn_factor, freq_factors, or the word truncate, got \"yarn\""},
    {"POST /v1/encode", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":8,\"scaling\":{\"rope_type\":\"yarn\",\"type\":\"yarn\",\"factor\":2}},\"positions\":[1]}", 400, "conflict", "encoding.scaling.rope_type",
     "is given twice; it is also named type"},
    {"POST /v1/encode", "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":8,\"rope_scaling\":{\"type\":\"linear\",\"factor\":null}},\"positions\":[1]}", 400, "type", "encoding.scaling.factor",
     "must be a number, got null, which is not allowed: leave the field out for its default"},
    {"GET /v1/encode?type=sinusoidal&d_model=4&positions=[[[1,2]]]", NULL, 400, "shape", "positions",
     "sinusoidal takes one coordinate per position, got 2"},
    /* clang-format on */
};

START_TEST(bad_requests) {
    struct call_try try = {.request = bad[_i].request, .body = bad[_i].body};
    call_expect_problem(&ground, &try, bad[_i].status, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

/* ---- In C, where shapes may be what JSON cannot say ---------------------------------------------------- */

static struct pe_plan *plan_open(struct pe_arena *arena, const char *const *settings) {
    struct pe_error err = {0};
    struct pe_plan *plan = NULL;
    struct pe_spec spec;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), PE_OK);
    for (; *settings; settings += 2) {
        ck_assert_int_eq(pe_spec_set(arena, &spec, settings[0], settings[1], &err), PE_OK);
    }
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    return plan;
}

/* A plan that is not made for the tensors it is used with. */
START_TEST(widths_that_differ) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_plan *plan = plan_open(arena, (const char *const[]){"head_dim", "4", "layout", "halves", NULL});
    static const double numbers[16] = {0};
    struct pe_tensor x = {.data = (void *)(uintptr_t)numbers,
                          .dtype = PE_DTYPE_F64,
                          .rank = 2,
                          .dim = {2, 6}},
                     out;
    struct pe_work work;
    struct pe_apply_args apply = {.size = sizeof apply, .plan = plan, .embeddings = &x};
    ck_assert_int_eq(pe_apply_open(arena, &work, &out, &apply, &err), PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, "embeddings");
    ck_assert_str_eq(err.text, "has shape [2, 6], so heads of width 6, but the encoding has head_dim 4");
    static const char *const fields[] = {"q", "w_q"};
    for (int i = 0; i < 2; i++) {
        struct pe_attention_result made;
        struct pe_attention_args args = {.size = sizeof args, .plan = plan};
        args.q = args.k = i ? NULL : &x;
        args.embeddings = i ? &x : NULL;
        err = (struct pe_error){0};
        ck_assert_int_eq(pe_attention_open(arena, &work, &made, &args, &err), PE_ERR_SHAPE);
        ck_assert_str_eq(err.path, fields[i]);
        ck_assert_str_eq(err.text, "has heads of width 6, but the encoding has head_dim 4");
    }
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* Vectors are of one coordinate, which stands for those of all sections. */
START_TEST(vectors_of_several_coordinates) {
    static const double list[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct pe_positions rows = {.length = 2, .axes = 4, .list = list},
                              line = {.length = 8, .axes = 1, .list = list};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_plan *plan = plan_open(
        arena, (const char *const[]){"head_dim", "8", "layout", "halves", "sections", "1,1,1,1", NULL});
    ck_assert_int_eq(pe_encode_check(plan, &line, PE_DTYPE_F32, &err), PE_OK);
    ck_assert_int_eq(pe_encode_check(plan, &rows, PE_DTYPE_F32, &err), PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, "positions");
    ck_assert_str_eq(err.text, "have 4 coordinates each, vectors of rope are of one");
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* A default that is said, as the echoed encoding does, changes nothing. */
START_TEST(a_default_that_is_said) {
    static const char *const settings[] = {"head_dim",
                                           "8",
                                           "layout",
                                           "halves",
                                           "base",
                                           "1e300",
                                           "scaling.rope_type",
                                           "ggml",
                                           "scaling.attn_factor",
                                           "2",
                                           "scaling.freq_scale",
                                           "1",
                                           NULL,
                                           NULL};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    const char *without[PE_COUNT(settings)];
    memcpy(without, settings, sizeof settings);
    without[10] = NULL;
    pe_plan_close(plan_open(arena, without));
    pe_plan_close(plan_open(arena, settings));
    pe_arena_close(arena);
}
END_TEST

/* An encoding without parameters that are objects, and one coordinate too many. */
START_TEST(members_of_numbers) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_spec spec;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "base.factor", "2", &err), PE_ERR_UNKNOWN_FIELD);
    ck_assert_str_eq(err.path, "base.factor");
    ck_assert_str_eq(err.text, "base has no members");
    pe_arena_close(arena);
}
END_TEST

Suite *rope_errors_suite(void) {
    Suite *suite = suite_create("rope_errors");
    TCase *tests = tcase_create("errors");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, bad_requests, 0, (int)PE_COUNT(bad));
    tcase_add_test(tests, widths_that_differ);
    tcase_add_test(tests, vectors_of_several_coordinates);
    tcase_add_test(tests, a_default_that_is_said);
    tcase_add_test(tests, members_of_numbers);
    return suite;
}
