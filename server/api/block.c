/* SPDX-License-Identifier: MIT
 *
 * block: real Transformer blocks over tokens or embeddings, with weights that are posted or come from a seed
 * -> attention's `weights` of each layer, the `output`, and the `residual` stream.
 *
 * GPT-2 adds learned positions, the tensor wpe among its weights. So by that naming, and with no encoding
 * said, wpe is the encoding where it is posted: `learned` with wpe as its table. The same where the encoding
 * is `learned` and has no table of its own. Any other encoding (also none) stands in its place, and wpe is
 * ignored.
 */
#include "api/api.h"

#include "wire/text.h"

#include <string.h>

struct block_request {
    uint64_t given;
    struct pe_spec encoding;
    const struct pe_tensor *embeddings;
    struct pe_texts tokens;
    const struct pe_tensor *token_ids;
    struct pe_scale embedding_scale;
    int64_t token_seed, width;
    struct pe_positions positions;
    int naming;
    struct pe_tensors weights;
    int64_t weights_seed;
    double init_std;
    int64_t layers, heads, d_ff;
    int norm, activation;
    bool residual, final_norm;
    double norm_eps;
    const void *mask; /* struct api_mask */
};

static const struct pe_choice namings[] = {
    {"torch", PE_BLOCK_TORCH,
     "TransformerEncoderLayer: weights [out, in]; post-norm, relu and no mask where nothing else is said"},
    {"gpt2", PE_BLOCK_GPT2,
     "GPT-2 of transformers: kernels [in, out]; pre-norm, gelu_tanh, a causal mask and the final norm where "
     "nothing else is said"},
    {"nanogpt", PE_BLOCK_NANOGPT,
     "nanoGPT and minGPT: the names of GPT-2, weights [out, in]; pre-norm, gelu, a causal mask and the final "
     "norm where nothing else is said"},
    {0},
};

static const struct pe_choice norms[] = {
    {"pre", PE_BLOCK_NORM_PRE, "x + f(norm(x))"},
    {"post", PE_BLOCK_NORM_POST, "norm(x + f(x))"},
    {"none", PE_BLOCK_NORM_NONE, "x + f(x)"},
    {0},
};

static const struct pe_choice activations[] = {
    {"gelu", PE_BLOCK_GELU, "x/2 (1 + erf(x/sqrt(2)))"},
    {"gelu_tanh", PE_BLOCK_GELU_TANH, "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"},
    {"relu", PE_BLOCK_RELU, "max(0, x)"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(block_request, encoding),
     .doc = "an absolute one is added before the first layer, a rotary or relative one acts in the attention "
            "of every layer; default none, or by gpt2 and nanogpt the posted wpe.weight, which is also the "
            "table of `learned` without one"},
    {PE_FIELD(block_request, embeddings), .shape = "[T, D] or [B, T, D]", .doc = "what goes in"},
    {PE_FIELD(block_request, tokens), .max = PE_BLOCK_TOKENS_MAX,
     .doc = "in place of embeddings: texts, each with a vector of normal numbers that follows from its bytes "
            "and token_seed"},
    {PE_FIELD(block_request, token_ids), .shape = "[T] or [B, T]",
     .doc = "in place of embeddings: rows of the posted wte.weight, by the namings gpt2 and nanogpt"},
    {PE_FIELD(block_request, embedding_scale), .choices = api_embedding_scales, .def = "1",
     .doc = "what embeddings or vectors of tokens are multiplied by first: a number or sqrt_d_model"},
    {PE_FIELD(block_request, token_seed), .min = 0, .max = PE_POSITION_MAX, .def = "0",
     .doc = "another seed, other vectors of tokens"},
    {PE_FIELD(block_request, width), .min = 1, .max = PE_BLOCK_WIDTH_MAX, .alias = "d_model",
     .doc = "D of tokens; default: that of the encoding or of the weights"},
    {PE_FIELD(block_request, positions), .doc = "of the tokens; default 0..T-1"},
    {PE_FIELD(block_request, naming), .choices = namings, .def = "torch",
     .doc = "whose names and orientation the weights have"},
    {PE_FIELD(block_request, weights), .max = PE_BLOCK_TENSORS_MAX,
     .doc =
         "tensors under their names, \"layers.0.linear1.weight\"; a safetensors body has them as they are"},
    {PE_FIELD(block_request, weights_seed), .min = 0, .max = PE_POSITION_MAX,
     .doc = "in place of weights: normal numbers, biases 0"},
    {PE_FIELD(block_request, init_std), .min = 0, .max = 1000, .flags = PE_FIELD_OPEN_MIN,
     .doc = "standard deviation of weights from a seed; default sqrt(2/(in + out)) of each matrix"},
    {PE_FIELD(block_request, layers), .min = 1, .max = PE_BLOCK_LAYERS_MAX,
     .doc = "L; default as many as the weights have, else 1"},
    {PE_FIELD(block_request, heads), .min = 1, .max = PE_BLOCK_WIDTH_MAX,
     .doc = "H; required with posted weights, whose shapes do not tell it; else default 1"},
    {PE_FIELD(block_request, d_ff), .min = 1, .max = 16 * PE_BLOCK_WIDTH_MAX,
     .doc = "width inside the feed-forward network; default as the weights have it, else 4 D"},
    {PE_FIELD(block_request, norm), .choices = norms, .doc = "where the norms are; default by the naming"},
    {PE_FIELD(block_request, activation), .choices = activations,
     .doc = "of the feed-forward network; default by the naming"},
    {PE_FIELD(block_request, residual), .def = "true", .doc = "false: f(x) in place of x + f(x)"},
    {PE_FIELD(block_request, final_norm),
     .doc = "one more norm behind the last layer; default: torch where `norm.weight` is posted, others true"},
    {PE_FIELD(block_request, norm_eps), .min = 0, .max = 1, .def = "1e-5",
     .doc = "what the norms add to the variance"},
    {PE_FIELD(block_request, mask), .fields = api_mask_fields, .n_fields = API_MASK_FIELDS,
     .object_size = sizeof(struct api_mask),
     .doc = "which keys a query sees, in every layer; \"causal\" for short; default by the naming"},
};

static const struct {
    const char *name;
    unsigned bit;
} outputs[] = {
    {"weights", PE_BLOCK_WEIGHTS},
    {"output", PE_BLOCK_OUTPUT},
    {"residual", PE_BLOCK_STREAM},
};

static bool given(const struct block_request *request, const char *name) {
    return pe_field_given(fields, pe_field_find(fields, PE_COUNT(fields), name), request);
}

/* ---- The encoding -------------------------------------------------------------------------------------- */

/* The row of `learned` that holds its table, where it was not given one. */
static bool lacks_table(const struct pe_spec *spec) {
    const struct pe_encoding_info *info = spec->encoding;
    const struct pe_field *row = pe_field_find(info->fields, info->n_fields, "table");
    return strcmp(info->type, "learned") == 0 && !pe_field_given(info->fields, row, spec->params);
}

/* Makes wpe the table of the encoding, where it is to be: *table is it then. */
static int take_table(struct task *task, struct block_request *request, const struct pe_block_args *args,
                      const struct pe_named_tensor **table, struct pe_error *err) {
    const struct pe_named_tensor *wpe = pe_block_position_table(args);
    bool said = given(request, "encoding");
    if (!wpe || (said && !lacks_table(&request->encoding))) {
        return PE_OK;
    }
    if ((!said && pe_spec_init(task->arena, &request->encoding, "learned", err)) ||
        pe_spec_set_tensor(&request->encoding, "table", &wpe->tensor, err)) {
        return pe_error_at(err, "encoding");
    }
    *table = wpe;
    return PE_OK;
}

/* D, as far as it is known before the plan; 0: it is not. */
static size_t width_of(const struct pe_block_args *args) {
    const struct pe_tensor *x = args->embeddings;
    if (x) {
        return x->rank > 0 ? x->dim[x->rank - 1] : 0;
    }
    return args->width ? args->width : pe_block_width(args);
}

static size_t length_of(const struct pe_block_args *args) {
    const struct pe_tensor *x = args->embeddings, *ids = args->token_ids;
    if (ids) {
        return ids->rank > 0 ? ids->dim[ids->rank - 1] : 0;
    }
    return x && x->rank > 1 ? x->dim[x->rank - 2] : args->n_tokens;
}

static int make_plan(struct task *task, struct block_request *request, struct pe_block_args *args,
                     struct pe_plan **plan, struct pe_error *err) {
    size_t width = width_of(args), heads = args->heads ? args->heads : 1;
    *plan = NULL;
    if (!request->encoding.encoding) {
        return PE_OK;
    }
    bool absolute = request->encoding.encoding->family == PE_FAMILY_ABSOLUTE;
    if (!absolute) {
        width = width % heads == 0 ? width / heads : 0;
    }
    if (task_plan(task, plan, &request->encoding, width, absolute ? length_of(args) : 0, err) ||
        task_facts(task, *plan, err)) {
        return err->code;
    }
    args->plan = *plan;
    return PE_OK;
}

/* ---- The reply ----------------------------------------------------------------------------------------- */

/* {"naming":"torch","layers":2,...}: what was computed, with all defaults. */
static int echo_facts(struct task *task, const struct pe_block_result *made, struct pe_error *err) {
    struct text text = {0};
    const struct {
        const char *name;
        const struct pe_choice *choices;
        int value;
    } names[] = {{"naming", namings, (int)made->naming},
                 {"norm", norms, (int)made->norm},
                 {"activation", activations, (int)made->activation}};
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        {"layers", made->layers}, {"heads", made->heads}, {"width", made->width}, {"d_ff", made->d_ff}};
    const struct {
        const char *name;
        bool value;
    } switches[] = {{"residual", made->residual},
                    {"final_norm", made->final_norm},
                    {"bias", made->bias},
                    {"causal", made->causal}};
    text_puts(&text, "{");
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        text_key(&text, names[i].name);
        text_string(&text, pe_choice_name(names[i].choices, names[i].value));
    }
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        text_key(&text, sizes[i].name);
        text_int(&text, (int64_t)sizes[i].value);
    }
    for (size_t i = 0; i < PE_COUNT(switches); i++) {
        text_key(&text, switches[i].name);
        text_bool(&text, switches[i].value);
    }
    text_key(&text, "norm_eps");
    text_real(&text, made->norm_eps);
    text_puts(&text, "}");
    return task_json(task, "block", &text, err);
}

/* Which of the posted tensors were used: ["h.0.ln_1.weight", ...]. */
static int echo_names(struct task *task, const struct pe_block_args *args, const struct pe_block_result *made,
                      const struct pe_named_tensor *table, struct pe_error *err) {
    static const char *const names[] = {"ignored", "used"};
    for (int used = 1; used >= 0 && args->n_weights; used--) {
        struct text text = {0};
        text_puts(&text, "[");
        for (size_t i = 0, n = 0; i < args->n_weights; i++) {
            bool was = made->used[i] || &args->weights[i] == table;
            if (was == (used != 0)) {
                text_puts(&text, n++ ? "," : "");
                text_string(&text, args->weights[i].name);
            }
        }
        text_puts(&text, "]");
        if (task_json(task, names[used], &text, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static void declare(struct task *task, const struct pe_block_result *made) {
    const struct pe_tensor *tensors[] = {&made->weights, &made->output, &made->stream};
    for (size_t i = 0; i < PE_COUNT(outputs); i++) {
        if (tensors[i]->data) {
            result_tensor(&task->result, outputs[i].name, tensors[i]);
        }
    }
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static struct pe_block_args args_of(const struct task *task, const struct block_request *request) {
    const struct pe_scale *scale = &request->embedding_scale;
    unsigned wanted = 0;
    for (size_t i = 0; i < PE_COUNT(outputs); i++) {
        wanted |= task_wants(task, outputs[i].name, true) ? outputs[i].bit : 0;
    }
    return (struct pe_block_args){
        .size = sizeof(struct pe_block_args),
        .embeddings = request->embeddings,
        .token_ids = request->token_ids,
        .scale_mode = api_embedding_scale_mode(scale, given(request, "embedding_scale")),
        .scale = scale->number,
        .tokens = given(request, "tokens") ? request->tokens.v : NULL,
        .n_tokens = request->tokens.n,
        .token_seed = (uint64_t)request->token_seed,
        .width = (size_t)request->width,
        .positions = given(request, "positions") ? &request->positions : NULL,
        .naming = (enum pe_block_naming)request->naming,
        .weights = request->weights.v,
        .n_weights = request->weights.n,
        .init_std = request->init_std,
        .layers = (size_t)request->layers,
        .heads = (size_t)request->heads,
        .d_ff = (size_t)request->d_ff,
        .norm = (enum pe_block_norm)request->norm,
        .activation = (enum pe_block_activation)request->activation,
        .residual = request->residual ? PE_BLOCK_YES : PE_BLOCK_NO,
        .final_norm = !given(request, "final_norm") ? PE_BLOCK_DEFAULT
                      : request->final_norm         ? PE_BLOCK_YES
                                                    : PE_BLOCK_NO,
        .norm_eps = &request->norm_eps,
        .outputs = wanted,
        .dtype = (enum pe_dtype)task->common.dtype, /* else by the tensors that are used */
    };
}

static int block_open(struct task *task, struct pe_error *err) {
    struct block_request *request = task->request;
    struct pe_block_args args = args_of(task, request);
    uint64_t seed = (uint64_t)request->weights_seed;
    struct pe_attention_mask mask;
    const struct pe_named_tensor *table = NULL;
    struct pe_plan *plan;
    args.weights_seed = given(request, "weights_seed") ? &seed : NULL;
    if ((request->mask && api_mask_make(request->mask, &mask, err)) ||
        take_table(task, request, &args, &table, err) || make_plan(task, request, &args, &plan, err)) {
        return err->code;
    }
    args.mask = request->mask ? &mask : NULL;
    if (plan && args.positions && pe_positions_lead(task->arena, plan, &request->positions, err)) {
        return pe_error_at(err, "positions");
    }
    struct pe_block_result made;
    if (pe_block_open(task->arena, &task->work, &made, &args, err) || echo_facts(task, &made, err) ||
        echo_names(task, &args, &made, table, err)) {
        return err->code;
    }
    if (args.positions) {
        task_echo_positions(task, "positions", args.positions);
    }
    declare(task, &made);
    return PE_OK;
}

const struct api_op api_block = {
    .name = "block",
    .doc = "Transformer blocks over tokens or embeddings: attention weights, output and residual stream of "
           "each layer.",
    .get = "GET /v1/block",
    .post = "POST /v1/block",
    .request_size = sizeof(struct block_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "embeddings",
    .tensors = "weights, output, residual",
    .open = block_open,
};
