/* SPDX-License-Identifier: MIT
 *
 * Bad input as a table: each request, and the status, slug, field and detail of its answer, exactly. The
 * first error in the document is the one that is told, whatever the order in which the program looks. Lists
 * of what there is are named, not repeated (wanted.h).
 */
#include "call_run.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

struct row {
    const char *request, *body;
    int status;
    const char *slug, *field, *detail;
};

#define GET       "GET /v1/encode?"
#define ATTENTION "POST /v1/attention"
#define APPLY     "POST /v1/apply"
#define ATTEND    "POST /v1/attention"
#define ENCODE    "POST /v1/encode"
#define SIN4      "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},"

static const struct row queries[] = {
    {"GET /v1/head?type=sinusoidal&d_model=4", NULL, 400, "missing", "goal",
     "is required: an object with attend, first, or the word first"},
    {GET, NULL, 400, "missing", "encoding",
     "is required: an object with a type, or the name of a preset, table or type"},
    {GET "type=sinusoidal&d_model=4", NULL, 400, "missing", "positions",
     "is required: a list of numbers, a range \"start:stop:step\", or an object"},
    {GET "type=sinusoidal&positions=0:4", NULL, 400, "missing", "encoding.d_model",
     "is required: a whole number, width of a vector, the model's hidden size"},
    {"GET /v1/bias?type=t5&table=[[1,2],[3,4]]&query_positions=0:2", NULL, 400, "missing", "heads",
     "is required: a whole number, H, how many heads the model has"},
    {"GET /v1/block?width=8&weights_seed=1&token_ids=0:20", NULL, 400, "syntax", "token_ids",
     "must be a list of numbers such as 0,1,2, got \"0:20\": a range stands for positions alone, and without "
     "brackets"},
    {GET "type=none&positions=[0:4]", NULL, 400, "syntax", "positions",
     "must be a list of numbers such as 0,1,2, got \"[0:4]\": a range stands for positions alone, and "
     "without "
     "brackets"},
    {GET "type=sinusoidal&d_model=4&positions=-6084843033884922:-6084843033884890.0:0.5", NULL, 400, "range",
     "positions",
     "got step 0.5 from -6084843033884922, but at a distance of 6084843033884922 there are numbers only "
     "every 1, "
     "and positions would fall together"},
    /* What cannot be done is said before what is missing for it. */
    {"GET /v1/encode?type=alibi", NULL, 400, "unsupported", "encoding.type",
     "alibi makes no vectors; it can: bias, attention"},
    {"GET /v1/bias?type=shaw", NULL, 400, "unsupported", "encoding.type",
     "shaw depends on the queries and has no bias of its own: attention returns it as position; it can: "
     "attention"},
    {"GET /v1/bias?type=rope", NULL, 400, "unsupported", "encoding.type",
     "rope adds no bias to the logits; it can: encode, apply, attention, shift"},
    {"GET /v1/head?encoding=naive", NULL, 400, "unsupported", "encoding.type",
     "naive has no exact map from a position to the next, of which a head is built; it can: encode, apply, "
     "attention, shift"},
    {"GET /v1/shift?type=rope", NULL, 400, "missing", "distance",
     "is required: a number, k in M.PE(p) = PE(p + k)"},
    {"GET /v1/shift?type=learned&table=[[1,2],[3,4]]&distance=-4", NULL, 400, "range", "distance",
     "is -4, but the encoding takes positions from 0 to 1, of which no two are so far from each other"},
    {"POST /v1/attention",
     "{\"encoding\":{\"type\":\"custom\",\"matrix\":[[1,2],[3,4]]},\"q\":[[1],[1],[1]],\"k\":[[1],[1],[1]]}",
     400, "range", "q",
     "has 3 tokens, whose query_positions are not given: 2 is not in the matrix, which has 0 to 1"},
    {"POST /v1/attention",
     "{\"encoding\":{\"type\":\"custom\",\"matrix\":[[1,2],[3,4]]},\"q\":[[1],[1]],\"k\":[[1],[1]],"
     "\"query_positions\":[1,2]}",
     400, "range", "query_positions", "2 is not in the matrix, which has 0 to 1"},
    {"GET /v1/head?type=sinusoidal&d_model=1&goal=first&positions=0:2", NULL, 400, "unsupported",
     "encoding.d_model", "is 1, which has no sine and cosine in pairs, of which a head is built"},
    {"GET /v1/shift?type=t5", NULL, 400, "unsupported", "encoding.type", NULL},
    {"GET /v1/similarity?type=t5", NULL, 400, "unsupported", "encoding.type",
     "t5 has no vectors to compare; it can: bias, attention"},
    {"GET /v1/properties?type=t5", NULL, 400, "unsupported", "encoding.type",
     "t5 has no vectors to measure; it can: bias, attention"},
    {"POST /v1/check", "{\"encoding\":\"t5\"}", 400, "unsupported", "encoding.type",
     "t5 makes no vectors to check; it can: bias, attention"},
    {"POST /v1/apply", "{\"encoding\":\"t5\"}", 400, "unsupported", "encoding.type",
     "t5 is not added to embeddings; it can: bias, attention"},
    {"GET /v1/convert", NULL, 400, "missing", "from",
     "is missing: weights of queries and keys need from and to (halves or interleaved) and head_dim; a "
     "learned "
     "table of another size is posted as tensor, with resize"},
    {"GET /v1/convert?from=halves&head_dim=4", NULL, 400, "missing", "to", NULL},
    {"GET /v1/convert?from=halves&to=halves", NULL, 400, "missing", "head_dim", NULL},
    {GET "type=nope&positions=0:4", NULL, 400, "unknown_name", "encoding.type",
     "must be one of {types}, got \"nope\""},
    {GET "encoding=nope&positions=0:4", NULL, 400, "unknown_name", "encoding", NULL},
    {GET "encoding=%7B%22type%22:%22none%22%7D&positions=0:4", NULL, 400, "type", "encoding",
     "must be a name here; in a query the members of an object are parameters: "
     "type=rope&layout=halves&scaling.factor=2"},
    {GET "type=rope&hf_config=x&positions=0:4", NULL, 400, "type", "encoding.hf_config",
     "must be an object in a JSON body (a query takes the fields of the encoding that is echoed for it), got "
     "the string \"x\""},
    {GET "type=sinusoidal&d_model=2&positions=9007199254740993", NULL, 400, "range", "positions[0]",
     "is beyond 2^53, allowed are -2^53 to 2^53"},
    {GET "type=sinusoidal&d_model=2&positions=9007199254740990:9007199254740993", NULL, 400, "range",
     "positions", NULL},
    {GET "type=sinusoidal&d_model=2&positions=0&offset=-9007199254740993", NULL, 400, "range",
     "encoding.offset", "must be at most 2^53 from zero, got -9007199254740993"},
    {GET "type=random&d_model=2&positions=0&seed=9007199254740993", NULL, 400, "range", "encoding.seed",
     "must be at most 2^53 from zero, got 9007199254740993"},
    {GET "d_model=6&positions=0:4", NULL, 400, "unknown_field", "d_model",
     "unknown parameter; there are type, {fields of encode}, {common}, and those of the encoding, "
     "once its type is given"},
    {GET "type=none&type=none&positions=0:4", NULL, 400, "conflict", "encoding",
     "is given twice; give one of type and encoding"},
    {GET "type=none&encoding=none&positions=0:4", NULL, 400, "conflict", "encoding",
     "is given twice; give one of type and encoding"},
    {GET "type=sinusoidal&d_model=0&positions=0:4", NULL, 400, "range", "encoding.d_model",
     "must be at least 1 and at most 65536, got 0"},
    {GET "type=sinusoidal&d_model=-4&positions=0:4", NULL, 400, "range", "encoding.d_model",
     "must be at least 1 and at most 65536, got -4"},
    {GET "type=sinusoidal&d_model=4.5&positions=0:4", NULL, 400, "type", "encoding.d_model",
     "must be a whole number, got 4.5"},
    {GET "type=sinusoidal&d_model=99999999999999999999&positions=0:4", NULL, 400, "range", "encoding.d_model",
     "must be at least 1 and at most 65536, got 1e+20"},
    {GET "type=sinusoidal&d_model=x&positions=0:4", NULL, 400, "type", "encoding.d_model",
     "must be a whole number, got \"x\""},
    {GET "type=sinusoidal&d_model=0x8&positions=0:4", NULL, 400, "type", "encoding.d_model",
     "must be a whole number, got \"0x8\""},
    {GET "type=sinusoidal&d_model=4&d_model=4&positions=0:4", NULL, 400, "conflict", "encoding.d_model",
     "is given twice"},
    {GET "type=sinusoidal&d_model=4&base=1e400&positions=0:4", NULL, 400, "range", "encoding.base",
     "\"1e400\" is too large for a double"},
    {GET "type=sinusoidal&d_model=4&base=NaN&positions=0:4", NULL, 400, "type", "encoding.base",
     "must be a number, got \"NaN\""},
    {GET "type=sinusoidal&d_model=4&layout=rows&positions=0:4", NULL, 400, "choice", "encoding.layout",
     "must be one of interleaved, halves, got \"rows\""},
    {GET "type=sinusoidal&d_model=3&odd=reject&positions=0:4", NULL, 400, "range", "encoding.d_model",
     "is 3, must be even because odd is \"reject\""},
    {GET "type=sinusoidal&d_model=4&positions=4:0:0", NULL, 400, "range", "positions",
     "got step 0, allowed is any other finite number"},
    {GET "type=sinusoidal&d_model=4&positions=abc", NULL, 400, "type", "positions[0]", NULL},
    {GET "type=sinusoidal&d_model=4&positions=", NULL, 400, "syntax", "positions",
     "got no text, allowed are a list and start:stop:step"},
    {GET "type=sinusoidal&d_model=4&positions=0,1e400", NULL, 400, "range", "positions[1]", NULL},
    {GET "type=sinusoidal&d_model=4&positions=9007199254740993:9007199254740995", NULL, 400, "range",
     "positions", NULL},
    {GET "type=sinusoidal&d_model=4&positions=0,9007199254740994", NULL, 400, "range", "positions[1]",
     "got position 9007199254740994, allowed are -2^53 to 2^53"},
    {GET "type=sinusoidal&d_model=4&positions=0:9223372036854775807", NULL, 400, "range", "positions",
     "got positions up to 9.2233720368547758e+18, allowed are -2^53 to 2^53"},
    {GET "type=sinusoidal&d_model=4&positions=[[0,1],[2]]", NULL, 400, "shape", "positions[1]", NULL},
    {GET "type=sinusoidal&d_model=4&positions=0:4&positions.count=4", NULL, 400, "conflict", "positions",
     "is given twice"},
    {GET "type=sinusoidal&d_model=4&positions.count=4&positions.grid=2,2", NULL, 400, "conflict",
     "positions.grid", "got count and grid, allowed is one of count, grid, mask, lengths and sample"},
    {GET "type=sinusoidal&d_model=4&positions.nope=4", NULL, 400, "unknown_field", "positions.nope",
     "unknown field; there are {positions}"},
    {GET "type=sinusoidal&d_model=4&positions=0:4&nope=1", NULL, 400, "unknown_field", "nope", NULL},
    {GET "type=sinusoidal&d_model=4&positions=0:4&=1", NULL, 400, "unknown_field", "query", NULL},
    {GET "type=sinusoidal&d_model=4&positions=0:4&shape=2", NULL, 400, "unknown_field", "shape", NULL},
    {GET "type=sinusoidal&d_model=4&positions=0:4&body_dtype=float32", NULL, 400, "unknown_field",
     "body_dtype", NULL},
    {GET "type=none&d_model=4&positions=0:4", NULL, 400, "unknown_field", "d_model", NULL},
    {GET "type=none&positions=0:4", NULL, 400, "unsupported", "encoding.type",
     "none makes no vectors; it can: apply, attention"},
    {GET "type=sinusoidal&d_model=4&positions=0:4&format=nope", NULL, 400, "choice", "format",
     "must be one of {formats}, got \"nope\""},
    {GET "type=sinusoidal&d_model=4&positions=0:4&dtype=int8", NULL, 400, "choice", "dtype",
     "must be one of float64, float32, float16, bfloat16, got \"int8\""},
    {GET "type=sinusoidal&d_model=4&positions=0:4&flat=maybe", NULL, 400, "type", "flat",
     "must be true or false, got \"maybe\""},
    {GET "type=sinusoidal&d_model=4&positions=0:4&return=weights", NULL, 400, "choice", "return",
     "encode can return {tensors of encode}, got \"weights\""},
    {GET "type=sinusoidal&d_model=4&positions=0:4&return=", NULL, 400, "choice", "return",
     "encode can return {tensors of encode}, got \"\""},
    {GET "type=sinusoidal&d_model=4&positions=0:4&return=vectors,cos", NULL, 400, "choice", "return",
     "sinusoidal has vectors alone, cos is of rotary encodings"},
    {GET "type=sinusoidal&d_model=4&positions=%zz", NULL, 400, "bad_request", "positions",
     "malformed percent-encoding or control character at byte 1"},
    {GET "type=sinusoidal&d_mo%00del=4", NULL, 400, "bad_request", "query", NULL},
    {"GET /v1/encode%zz", NULL, 400, "bad_request", "path", NULL},
    {GET "type=none&positions=0:4&format=png&png=1", NULL, 400, "type", "png",
     "must be an object with domain, cell, theme (in a query each by itself, as png.domain=), got \"1\""},
    {GET "encoding=bert&positions=0:4", NULL, 400, "missing", "encoding.table", NULL},
    {GET "type=learned&table=nope&positions=0:4", NULL, 400, "unknown_name", "encoding.table", NULL},
    {GET "type=learned&table=[[1,2],[3,4]]&positions=0:3", NULL, 400, "range", "positions[2]",
     "position 2 with offset 0 is row 2, but the table has 2 rows, 0 to 1"},
    {GET "type=learned&table=[[1,2],[3,4]]&positions=-1", NULL, 400, "range", "positions[0]", NULL},
    {GET "type=learned&table=[[1,2],[3,4]]&positions=0.5", NULL, 400, "range", "positions[0]", NULL},
    {GET "type=random&d_model=4&positions=0,0.5", NULL, 400, "range", "positions[1]", NULL},
    {GET "type=naive&form=binary&d_model=3&positions=0:9", NULL, 400, "range", "positions[8]", NULL},
    {"GET /v1/shift?type=sinusoidal&d_model=4", NULL, 400, "missing", "distance",
     "is required: a number, k in M.PE(p) = PE(p + k)"},
    {"GET /v1/positions?", NULL, 400, "missing", "positions", NULL},
    {"GET /v1/positions?rule=opt", NULL, 400, "missing", "mask", NULL},
    {"GET /v1/positions?mask=1,1", NULL, 400, "missing", "rule", NULL},
    {"GET /v1/positions?mask=1,2&rule=opt", NULL, 400, "range", "mask[1]", NULL},
    {"GET /v1/positions?mask=1,1&rule=opt&padding_idx=1", NULL, 400, "conflict", "padding_idx", NULL},
    {"GET /v1/positions?positions=0:4&mask=1,1", NULL, 400, "conflict", "positions", NULL},
    {"GET /v1/positions?lengths=1,-1", NULL, 400, "range", "lengths[1]", NULL},
    {"GET /v1/positions?type=none&positions=0:4", NULL, 400, "unknown_field", "type", NULL},
    {"GET /v1/version?x=1", NULL, 400, "unknown_field", "query", "this resource takes no parameters"},
};

static const struct row bodies[] = {
    {APPLY, "", 400, "missing", "body", "is empty; an object is expected"},
    {APPLY, "[]", 400, "type", "body", "must be an object, got a list"},
    {APPLY, "null", 400, "type", "body", "must be an object, got null"},
    {APPLY, "{", 400, "syntax", "body", NULL},
    {APPLY, "{}", 400, "missing", "encoding",
     "is required: an object with a type, or the name of a preset, table or type"},
    {APPLY, "{\"encoding\":\"none\"}", 400, "missing", "embeddings",
     "is required: an array of numbers, the token embeddings; rotary: queries or keys"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]]} x", 400, "syntax", "body", NULL},
    {APPLY, "{\"encoding\":{},\"embeddings\":[[1,2]]}", 400, "missing", "encoding.type",
     "is required: the type of the encoding"},
    {APPLY, "{\"encoding\":{\"type\":1},\"embeddings\":[[1,2]]}", 400, "type", "encoding.type",
     "must be a string, got a number"},
    {APPLY, "{\"encoding\":7,\"embeddings\":[[1,2]]}", 400, "type", "encoding",
     "must be an object with a type, or the name of a preset, table or type, got a number"},
    {ENCODE, "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":2},\"positions\":[0,-9007199254740993]}",
     400, "range", "positions[1]", "is beyond 2^53, allowed are -2^53 to 2^53"},
    {ENCODE,
     "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":2},\"positions\":{\"start\":9007199254740993,"
     "\"count\":1}}",
     400, "range", "positions.start", NULL},
    {ENCODE, "{\"encoding\":{\"type\":\"random\",\"d_model\":2,\"seed\":9007199254740993},\"positions\":[0]}",
     400, "range", "encoding.seed", NULL},
    {ENCODE, "{\"encoding\":{\"type\":\"random\",\"d_model\":99999999999999999999},\"positions\":[0]}", 400,
     "range", "encoding.d_model", NULL},
    {APPLY, "{\"encoding\":{\"type\":\"nope\"},\"embeddings\":[[1]]}", 400, "unknown_name", "encoding.type",
     "must be one of {types}, got \"nope\""},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"base\":0},\"embeddings\":[[1,2]]}", 400, "range",
     "encoding.base", "must be at least 1 and at most 1e+300, got 0"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"base\":\"10\"},\"embeddings\":[[1,2]]}", 400, "type",
     "encoding.base", "must be a number, got the string \"10\""},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"base\":null},\"embeddings\":[[1,2]]}", 400, "type",
     "encoding.base",
     "must be a number, got null, which is not allowed: leave the field out for its default"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"base\":[1]},\"embeddings\":[[1,2]]}", 400, "type",
     "encoding.base", "must be a number, got a list"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":true},\"embeddings\":[[1,2]]}", 400, "type",
     "encoding.d_model", "must be a whole number, got true"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"layout\":{}},\"embeddings\":[[1,2]]}", 400, "type",
     "encoding.layout", "must be one of interleaved, halves, got an object"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"embeddings\":[[1,2]]}", 400, "conflict",
     "encoding.d_model", "is 4 but the embeddings have width 2"},
    {APPLY, "{\"encoding\":{\"type\":\"sinusoidal\",\"nope\":1},\"embeddings\":[[1,2]]}", 400,
     "unknown_field", "encoding.nope", "unknown field; there are {fields of sinusoidal}"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"extra\":1}", 400, "unknown_field", "extra",
     "unknown field; there are {fields of apply}, {common}"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"\":1}", 400, "unknown_field", "[\"\"]", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"a.b\":1}", 400, "unknown_field", "[\"a.b\"]",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"sh\\u0061pe\":[2]}", 400, "unknown_field",
     "shape", NULL},
    {APPLY, "{\"encoding\":\"none\",\"encoding\":\"none\",\"embeddings\":[[1,2]]}", 400, "syntax", "body",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1]],\"embeddings\":[[1]]}", 400, "syntax", "body", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3]]}", 400, "shape", "embeddings[1]", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3,4],[5,6,7]]}", 400, "shape", "embeddings[2]",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3,\"4\"]]}", 400, "type", "embeddings[1][1]",
     "got a string, expected a number"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3,null]]}", 400, "type", "embeddings[1][1]",
     "must be a number, got null"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3,1e400]]}", 400, "range", "embeddings[1][1]",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3,1e39]]}", 400, "range", "embeddings[1][1]",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,NaN]]}", 400, "syntax", "embeddings[0][1]", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,01]]}", 400, "syntax", "embeddings[0][1]", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":\"x\"}", 400, "type", "embeddings",
     "must be an array of numbers, got a string"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":null}", 400, "type", "embeddings",
     "must be an array of numbers, got null"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[1,2]}", 400, "shape", "embeddings", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[[[1]]]]}", 400, "shape", "embeddings", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[[[[[[[[1]]]]]]]]]}", 400, "shape",
     "embeddings[0][0][0][0][0][0][0][0]", NULL},
    {APPLY, "{\"encoding\":\"sinusoidal\",\"embeddings\":[[]]}", 400, "shape", "embeddings", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[],[]]}", 400, "shape", "embeddings", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[2,2],\"data\":[1,2,3]}}", 400, "shape",
     "embeddings.shape", "is [2, 2] but data have shape [3]"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[1,4],\"data\":[[1,2],[3,4]]}}", 400, "shape",
     "embeddings.shape", "is [1, 4] but data have shape [2, 2]"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[1,-1],\"data\":[1]}}", 400, "type",
     "embeddings.shape", "must be a list of whole numbers"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[4294967296,4294967296],\"data\":[1]}}", 400,
     "shape", "embeddings.shape", "is [4294967296, 4294967296] but data have shape [1]"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[1,1]}}", 400, "missing", "embeddings.data",
     "must be an array of numbers"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"data\":[[1]],\"dtype\":\"float16\"}}", 400, "dtype",
     "embeddings.dtype", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"data\":[[1]],\"size\":1}}", 400, "unknown_field",
     "embeddings.size", "unknown field; a tensor has shape, dtype, data"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":{\"data\":[[1],[2,3]]}}", 400, "shape",
     "embeddings.data[1]", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"positions\":[0,1]}", 400, "shape", "positions",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"positions\":true}", 400, "type", "positions",
     "must be a list of numbers, a range \"start:stop:step\" or an object, got true"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"positions\":{}}", 400, "missing", "positions",
     NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"positions\":{\"mask\":[1,0],\"rule\":\"x\"}}",
     400, "choice", "positions.rule", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"embedding_scale\":\"root\"}", 400, "choice",
     "embedding_scale", "must be a number or sqrt_d_model, got \"root\""},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"positions\":null}", 400, "type", "positions",
     "must be a list of numbers, a range \"start:stop:step\", or an object, got null, which is not allowed: "
     "leave the field out for its default"},
    {APPLY, "{\"encoding\":null,\"embeddings\":[[1,2]]}", 400, "type", "encoding",
     "must be an object with a type, or the name of a preset, table or type, got null"},
    {ATTENTION, "{\"q\":[[1]],\"k\":[[1]],\"mask\":\"casual\"}", 400, "type", "mask",
     "must be an object with causal, lengths, documents, keep, window, or the word causal, got \"casual\""},
    {ATTENTION, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"window\":[null]}}", 400, "type", "mask.window",
     "must be a list of whole numbers, got null"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"embedding_scale\":1e39}", 400, "range",
     "embedding_scale", NULL},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"dtype\":\"int8\"}", 400, "choice", "dtype",
     NULL},
    {APPLY "?dtype=float64", "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"dtype\":\"float64\"}", 400,
     "conflict", "dtype", "is given twice"},
    {APPLY "?encoding=none", "{\"encoding\":\"none\",\"embeddings\":[[1,2]]}", 400, "conflict", "encoding",
     "is given twice"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"return\":[1]}", 400, "type", "return",
     "must be a list of strings, got a number"},
    {APPLY, "{\"encoding\":\"none\",\"embeddings\":[[1,2]],\"flat\":1}", 400, "type", "flat",
     "must be true or false, got 1"},
    {ATTEND, "{\"k\":[[1]]}", 400, "missing", "q", NULL},
    {ATTEND, "{\"q\":[[1]]}", 400, "missing", "k", NULL},
    {ATTEND, "{\"q\":[[1,2]],\"k\":[[1]]}", 400, "shape", "k", "has d = 1 but q has d = 2"},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"embeddings\":[[1]]}", 400, "conflict", "embeddings", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"encoding\":\"vaswani\"}", 400, "conflict", "encoding", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":\"triangle\"}", 400, "type", "mask", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"causal\":1}}", 400, "type", "mask.causal",
     "must be true or false, got 1"},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"window\":[1,2,3]}}", 400, "shape", "mask.window", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"window\":[1,-2]}}", 400, "range", "mask.window[1]", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"keep\":[2]}}", 400, "range", "mask.keep[0]", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"lengths\":[2]}}", 400, "range", "mask.lengths[0]", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"mask\":{\"documents\":[2]}}", 400, "range", "mask.documents[0]",
     NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"bias\":[[1,2]]}", 400, "shape", "bias", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"bias\":[[-1e400]]}", 400, "range", "bias[0][0]", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"return\":[\"output\"]}", 400, "missing", "v", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"return\":[\"terms\"]}", 400, "unsupported", "return", NULL},
    {ATTEND, "{\"q\":[[1]],\"k\":[[1]],\"return\":[\"weight\"]}", 400, "choice", "return", NULL},
    {ATTEND, "{\"embeddings\":[[1,2]],\"heads\":3}", 400, "shape", "heads", NULL},
    {ATTEND, "{\"embeddings\":[1,2],\"encoding\":\"vaswani\"}", 400, "shape", "embeddings", NULL},
    {ENCODE, SIN4 "\"positions\":[0,1,1e16]}", 400, "range", "positions[2]", NULL},
    {ENCODE, SIN4 "\"positions\":[[0,1],[1]]}", 400, "shape", "positions[1]", NULL},
    {ENCODE, SIN4 "\"positions\":{\"count\":1.5}}", 400, "type", "positions.count", NULL},
    {ENCODE, SIN4 "\"positions\":{\"count\":4,\"start\":\"0\"}}", 400, "type", "positions.start", NULL},
    {ENCODE, SIN4 "\"positions\":{\"grid\":[2,2]}}", 400, "shape", "positions", NULL},
    {ENCODE, SIN4 "\"positions\":{\"mask\":[[1,0],[1]],\"rule\":\"opt\"}}", 400, "shape", "positions.mask[1]",
     NULL},
    {ENCODE, "{\"encoding\":{\"type\":\"learned\",\"table\":[1,2]},\"positions\":[0]}", 400, "shape",
     "encoding.table", NULL},
    {ENCODE, "{\"encoding\":{\"type\":\"learned\",\"table\":[[1],[null]]},\"positions\":[0]}", 400, "type",
     "encoding.table[1][0]", NULL},
    {ENCODE, "{\"encoding\":{\"type\":\"learned\",\"table\":7},\"positions\":[0]}", 400, "type",
     "encoding.table", "must be the name of a table or an array of numbers, got a number"},
    {ENCODE, "{\"encoding\":{\"type\":\"learned\",\"table\":null},\"positions\":[0]}", 400, "type",
     "encoding.table", "must be the name of a table or an array of numbers, got null"},
    {ENCODE, "{\"encoding\":\"bert\",\"positions\":[0]}", 400, "missing", "encoding.table", NULL},
    /* The first in the document, not the first that the program comes to. */
    {APPLY, "{\"embeddings\":[[1],[2,3]],\"nope\":1}", 400, "shape", "embeddings[1]", NULL},
    {APPLY, "{\"nope\":1,\"embeddings\":[[1],[2,3]]}", 400, "unknown_field", "nope", NULL},
    {APPLY, "{\"positions\":\"x:y\",\"encoding\":{\"type\":\"nope\"}}", 400, "syntax", "positions", NULL},
    {APPLY, "{\"encoding\":{\"type\":\"nope\"},\"positions\":\"x:y\"}", 400, "unknown_name", "encoding.type",
     NULL},
    {APPLY, "{\"encoding\":{\"base\":0,\"d_model\":0,\"type\":\"sinusoidal\"}}", 400, "range",
     "encoding.base", NULL},
    {APPLY "?nope=1", "{\"also\":", 400, "unknown_field", "nope", NULL},
    {APPLY "?nope=1", "{\"also\":1}", 400, "unknown_field", "nope", NULL},
};

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static void check_row(const struct row *row) {
    struct call_try try = {.request = row->request, .body = row->body};
    call_expect_problem(&ground, &try, row->status, row->slug, row->field, row->detail);
    call_try_close(&try);
}

START_TEST(bad_queries) {
    check_row(&queries[_i]);
}
END_TEST

START_TEST(bad_bodies) {
    check_row(&bodies[_i]);
}
END_TEST

/* Deep nesting ends at a fixed depth, in a tensor and outside of one, not on the stack. */
START_TEST(nesting_of_ten_thousand) {
    static const char *const heads[] = {"", "{\"embeddings\":", "{\"nope\":", "{\"encoding\":"};
    for (size_t i = 0; i < PE_COUNT(heads); i++) {
        char body[10100];
        size_t n = strlen(heads[i]);
        memcpy(body, heads[i], n);
        memset(body + n, '[', 10000);
        struct call_try try = {.request = APPLY, .body = body, .body_n = n + 10000};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 400);
        ck_assert_str_ne(call_try_text(&try, "field"), "");
        call_try_close(&try);
    }
}
END_TEST

/* What is no text is refused, and never repeated as it came: every byte of an answer is printable ASCII. */
START_TEST(bytes_that_are_no_text) {
    static const struct row rows[] = {
        {APPLY, "\xff\xfe", 400, "syntax", "body", NULL},
        {APPLY, "{\"\xff\":1}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"\xc0\x80\"}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"\xed\xa0\x80\"}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"\\ud800\"}", 400, "syntax", "body", NULL},
        {APPLY, "{\"\\udfff\":1}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"a\\u0000b\"}", 400, "syntax", "body", NULL},
        {APPLY, "{\"a\\u0000b\":1}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"a\nb\"}", 400, "syntax", "body", NULL},
        {APPLY, "{\"encoding\":\"\\u00e4\\n\\ud83d\\ude00\"}", 400, "unknown_name", "encoding", NULL},
        {APPLY, "{\"\xc3\xa4\\u0001\":1}", 400, "unknown_field", NULL, NULL},
        {APPLY, "{\"embeddings\":[[1,\"\xff\"]]}", 400, NULL, NULL, NULL},
        {APPLY, "{\"embeddings\":[[1,\xff]]}", 400, "syntax", "embeddings[0][1]", NULL},
        {GET "type=%ff%fe&positions=0", NULL, 400, "unknown_name", "encoding.type", NULL},
        {GET "type=none&%c3%28=0", NULL, 400, "unknown_field", NULL, NULL},
        {GET "type=none&positions=\xff", NULL, 400, NULL, NULL, NULL},
        {"GET /v1/%ff\xc3", NULL, 404, "not_found", "path", NULL},
        {"B\xff /v1/encode", NULL, 501, "not_implemented", "method", NULL},
        {"GET /v1/encodings/%f0%9f", NULL, 404, "not_found", "path", NULL},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = rows[i].request, .body = rows[i].body};
        call_expect_problem(&ground, &try, rows[i].status, rows[i].slug, rows[i].field, NULL);
        for (size_t k = 0; k < try.reply_n; k++) {
            ck_assert_msg(try.reply[k] >= 0x20 && try.reply[k] < 0x7f, "%s", try.reply);
        }
        call_try_close(&try);
    }
    struct call_try zero = {.request = APPLY, .body = "{\"encoding\":1\0}", .body_n = 15};
    call_expect_problem(&ground, &zero, 400, "syntax", "body", NULL);
    call_try_close(&zero);
    struct call_try type = {.request = APPLY, .body = "{}", .head.content_type = "text/\xff\x01\""};
    call_expect_problem(&ground, &type, 415, "media_type", "Content-Type", NULL);
    call_try_close(&type);
}
END_TEST

Suite *call_bad_suite(void) {
    Suite *suite = suite_create("call_bad");
    TCase *tests = tcase_create("bad input");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, bad_queries, 0, (int)PE_COUNT(queries));
    tcase_add_loop_test(tests, bad_bodies, 0, (int)PE_COUNT(bodies));
    tcase_add_test(tests, nesting_of_ten_thousand);
    tcase_add_test(tests, bytes_that_are_no_text);
    return suite;
}
