/* SPDX-License-Identifier: MIT
 *
 * Figures that projects publish for their rotary encodings, in tests, papers and reports, asked for as a user
 * would. Each line names where it is from; a figure agrees to its last digit. (The errors of float32 and
 * bfloat16 angles that were published are in check_arithmetic.c.)
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENCODE "GET /v1/encode?dtype=float64&type=rope&layout=halves&"

static double number_at(const json_t *json, size_t i) {
    return json_number_value(json_is_array(json) ? json_array_get(json, i) : json);
}

/* ---- Frequencies --------------------------------------------------------------------------------------- */

#define MAX_FIGURES 14
struct frequencies {
    const char *source, *query;
    struct {
        size_t pair;
        double value;
    } figures[MAX_FIGURES]; /* to the last digit: relative to 10^-digits */
    int digits;
};

#define YARN4   "scaling.rope_type=yarn&scaling.factor=4&scaling.original_max_position_embeddings="
#define DYNAMIC "scaling.rope_type=dynamic&scaling.original_max_position_embeddings="
#define LLAMA3                                                                                               \
    "scaling.rope_type=llama3&scaling.low_freq_factor=1&scaling.high_freq_factor=4&scaling.original_max_"    \
    "position_embeddings="

static const struct frequencies frequencies[] = {
    {"transformers, default, d=128",
     "head_dim=128",
     {{0, 1}, {1, .865964}, {2, .749894}, {3, .649382}, {63, 1.15478e-4}},
     6},
    {"transformers tests/utils/test_modeling_rope_utils.py, dynamic, f=10, S=16384",
     "head_dim=128&seq_len=16384&scaling.factor=10&" DYNAMIC "2048",
     {{1, .8093101}, {2, .6549828}, {62, 2.009679e-06}, {63, 1.626454e-06}},
     7},
    {"transformers tests/utils/test_modeling_rope_utils.py, yarn, f=10",
     "head_dim=128&scaling.rope_type=yarn&scaling.factor=10&scaling.original_max_position_embeddings=2048",
     {{16, 1.0e-1},
      {17, 8.347896e-2},
      {18, 6.959018e-2},
      {40, 4.300698e-4},
      {41, 2.738420e-4},
      {63, 1.154782e-5}},
     7},
    {"YaRN, f=4, L=4096",
     "head_dim=128&" YARN4 "4096",
     {{0, 1},
      {20, 5.623413252e-2},
      {21, 4.729203850e-2},
      {22, 3.973678590e-2},
      {25, 2.343455264e-2},
      {30, 9.488517883e-3},
      {35, 3.683991948e-3},
      {40, 1.337886702e-3},
      {45, 4.294025890e-4},
      {46, 3.333803580e-4},
      {63, 2.886954962e-5}},
     10},
    {"gpt-oss, also in vLLM PR 28244",
     "head_dim=64&base=150000&scaling.truncate=false&scaling.rope_type=yarn&scaling.factor=32&"
     "scaling.original_max_position_embeddings=4096",
     {{8, 5.081327e-2},
      {9, 3.170570e-2},
      {10, 1.933500e-2},
      {12, 6.794959e-3},
      {16, 4.564839e-4},
      {17, 1.293187e-4},
      {18, 3.830881e-5},
      {31, 3.023511e-7}},
     7},
    {"Llama-3.1-8B",
     "head_dim=128&base=500000&scaling.factor=8&" LLAMA3 "8192",
     {{28, 3.211445995e-3},
      {29, 2.166570764e-3},
      {30, 1.371893568e-3},
      {31, 8.567514129e-4},
      {32, 5.248461610e-4},
      {33, 3.126937504e-4},
      {34, 1.785078128e-4},
      {35, 9.556212354e-5},
      {63, 3.068925989e-7}},
     10},
    {"Llama-3.2-1B",
     "head_dim=64&base=500000&scaling.factor=32&" LLAMA3 "8192",
     {{14, 3.211445995e-3},
      {15, 1.290547928e-3},
      {16, 4.295567966e-4},
      {17, 9.708287803e-5},
      {18, 1.946163818e-5},
      {31, 9.418306725e-8}},
     10},
    {"transformers tests/utils/test_modeling_rope_utils.py, llama3, f=10",
     "head_dim=128&scaling.factor=10&" LLAMA3 "2048",
     {{30, 1.3335214e-2},
      {31, 1.0730248e-2},
      {32, 7.77848e-3},
      {33, 5.6009e-3},
      {34, 3.9991e-3},
      {35, 2.8248e-3},
      {36, 1.9675e-3},
      {37, 1.3449e-3},
      {38, 8.9549e-4},
      {39, 5.7363e-4},
      {40, 3.45392e-4},
      {41, 2.73842e-4}},
     5},
    {"Gemma 4, proportional, d=512",
     "head_dim=512&base=1000000&partial_rotary_factor=0.25&scaling.rope_type=proportional",
     {{0, 1}, {1, .94746353}, {2, .89768713}, {31, .18768843}, {63, .03337625}},
     7},
};

START_TEST(frequencies_of_projects) {
    const struct frequencies *row = &frequencies[_i];
    char request[400];
    snprintf(request, sizeof request, ENCODE "positions=1&%s", row->query);
    struct report_tensor got = report_tensor(request, NULL, "inv_freq");
    for (size_t i = 0; i < MAX_FIGURES && row->figures[i].value != 0; i++) {
        double value = got.values[row->figures[i].pair], wanted = row->figures[i].value;
        double place = pow(10, floor(log10(wanted)) + 1 - row->digits);
        ck_assert_msg(fabs(value - wanted) <= 0.51 * place, "%s: pair %zu is %.12g, not %.12g", row->source,
                      row->figures[i].pair, value, wanted);
    }
}
END_TEST

/* Gemma's pairs 64 to 255 do not turn at all. */
START_TEST(proportional_ends_in_zeros) {
    struct report_tensor got = report_tensor(
        ENCODE
        "head_dim=512&base=1000000&partial_rotary_factor=0.25&scaling.rope_type=proportional&positions=1",
        NULL, "inv_freq");
    ck_assert_uint_eq(got.n, 256);
    for (size_t i = 0; i < got.n; i++) {
        ck_assert((got.values[i] != 0) == (i < 64));
    }
}
END_TEST

/* ---- Facts --------------------------------------------------------------------------------------------- */

struct fact {
    const char *source, *query, *name;
    double value[2], tolerance;
};

#define LONGROPE                                                                                             \
    "head_dim=2&seq_len=1&scaling.rope_type=longrope&scaling.short_factor=1&scaling.long_factor=1&"
#define ORIGINAL "&scaling.original_max_position_embeddings="
#define DEEPSEEK(mscale)                                                                                     \
    "head_dim=64&qk_head_dim=192&scaling.rope_type=yarn&scaling.factor=40&"                                  \
    "scaling.original_max_position_embeddings=4096&scaling.mscale=" mscale "&scaling.mscale_all_dim=" mscale

static const struct fact facts[] = {
    {"transformers, dynamic",
     "head_dim=128&seq_len=16384&scaling.factor=10&" DYNAMIC "2048",
     "base_used",
     {759702.231148},
     1e-6},
    {"vLLM issue 41236, dynamic, f=2",
     "head_dim=128&seq_len=4096&scaling.factor=2&" DYNAMIC "2048",
     "base_used",
     {30527.7367},
     1e-4},
    {"dynamic, f=4",
     "head_dim=128&seq_len=8192&scaling.factor=4&" DYNAMIC "4096",
     "base_used",
     {51293.7873},
     1e-4},
    {"NTK-aware, alpha 2",
     "head_dim=128&scaling.rope_type=ntk&scaling.factor=2",
     "base_used",
     {20221.2617},
     1e-4},
    {"NTK-aware, alpha 4",
     "head_dim=128&scaling.rope_type=ntk&scaling.factor=4",
     "base_used",
     {40889.9424},
     1e-4},
    {"NTK-aware, alpha 10",
     "head_dim=128&scaling.rope_type=ntk&scaling.factor=10",
     "base_used",
     {103722.5095},
     1e-4},
    {"transformers, yarn, f=10",
     "head_dim=128&scaling.rope_type=yarn&scaling.factor=10" ORIGINAL "2048",
     "correction_range",
     {16, 41},
     0},
    {"the same before it is cut to pairs",
     "head_dim=128&scaling.truncate=false&scaling.rope_type=yarn&scaling.factor=10" ORIGINAL "2048",
     "correction_range",
     {16.128001690, 40.210401343},
     1e-9},
    {"YaRN, f=4", "head_dim=128&" YARN4 "4096", "correction_range", {20, 46}, 0},
    {"YaRN, f=4, not cut",
     "head_dim=128&scaling.truncate=false&" YARN4 "4096",
     "correction_range",
     {20.944481621, 45.026881274},
     1e-9},
    {"YaRN, f=4", "head_dim=128&" YARN4 "4096", "attention_factor", {1.138629436111989}, 1e-15},
    {"gpt-oss",
     "head_dim=64&base=150000&scaling.truncate=false&scaling.rope_type=yarn&scaling.factor=32" ORIGINAL
     "4096",
     "correction_range",
     {8.092779115512402, 17.39802450158856},
     1e-14},
    {"gpt-oss",
     "head_dim=64&base=150000&scaling.truncate=false&scaling.rope_type=yarn&scaling.factor=32" ORIGINAL
     "4096",
     "attention_factor",
     {1.3465735902799727},
     1e-15},
    {"Qwen2.5 and Qwen3", "head_dim=128&base=1000000&" YARN4 "32768", "correction_range", {23, 40}, 0},
    {"Qwen2.5, not cut",
     "head_dim=128&base=1000000&scaling.truncate=false&" YARN4 "32768",
     "correction_range",
     {23.595948, 39.650881},
     1e-6},
    {"DeepSeek-V3", DEEPSEEK("1.0"), "correction_range", {10, 23}, 0},
    {"DeepSeek, not cut",
     DEEPSEEK("1.0") "&scaling.truncate=false",
     "correction_range",
     {10.472241, 22.513441},
     1e-6},
    {"DeepSeek-V3: 192^-0.5 * 1.8738542071", DEEPSEEK("1.0"), "softmax_scale", {.1352337789}, 1e-10},
    {"DeepSeek-V2-Lite: 192^-0.5 * 1.5896261652", DEEPSEEK("0.707"), "softmax_scale", {.1147213868}, 1e-10},
    {"Phi-3, 32 times 4096",
     LONGROPE "scaling.factor=32" ORIGINAL "4096",
     "attention_factor",
     {1.1902380714},
     1e-10},
    {"longrope, 16 times 4096",
     LONGROPE "scaling.factor=16" ORIGINAL "4096",
     "attention_factor",
     {1.1547005384},
     1e-10},
    {"longrope, 32 times 8192",
     LONGROPE "scaling.factor=32" ORIGINAL "8192",
     "attention_factor",
     {1.1766968108},
     1e-10},
    {"transformers, longrope, f=2",
     LONGROPE "scaling.factor=2" ORIGINAL "2048",
     "attention_factor",
     {1.0444659357},
     1e-10},
    {"transformers, longrope, f=10",
     LONGROPE "scaling.factor=10" ORIGINAL "2048",
     "attention_factor",
     {1.1410492817},
     1e-10},
    {"transformers, longrope, f=20",
     LONGROPE "scaling.factor=20" ORIGINAL "2048",
     "attention_factor",
     {1.1802129274},
     1e-10},
};

static void check_fact(const struct fact *row) {
    char request[400];
    snprintf(request, sizeof request, ENCODE "positions=1&%s", row->query);
    struct call_try try = {.request = request};
    call_try(&report_ground, &try);
    const json_t *got = json_object_get(try.json, row->name);
    ck_assert_msg(got != NULL, "%s: no %s in %.300s", row->source, row->name, try.reply);
    for (size_t i = 0; i < (json_is_array(got) ? 2 : 1); i++) {
        ck_assert_msg(fabs(number_at(got, i) - row->value[i]) <= row->tolerance, "%s: %s is %.17g, not %.17g",
                      row->source, row->name, number_at(got, i), row->value[i]);
    }
    call_try_close(&try);
}

START_TEST(facts_of_projects) {
    check_fact(&facts[_i]);
}
END_TEST

/* 0.1 ln f + 1 of the paper. */
START_TEST(yarn_attention_factors) {
    static const struct {
        int factor;
        double value;
    } all[] = {{2, 1.0693147181},  {4, 1.1386294361},  {8, 1.2079441542},  {10, 1.2302585093},
               {16, 1.2772588722}, {32, 1.3465735903}, {40, 1.3688879454}, {64, 1.4158883083}};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        char query[200];
        snprintf(query, sizeof query, "head_dim=64&scaling.rope_type=yarn&scaling.factor=%d" ORIGINAL "4096",
                 all[i].factor);
        check_fact(&(struct fact){"YaRN", query, "attention_factor", {all[i].value}, 1e-10});
    }
}
END_TEST

/* ---- Turned vectors ------------------------------------------------------------------------------------ */

struct turned {
    const char *source, *encoding, *x; /* rows of positions [..] */
    const char *positions;
    double tolerance, values[16];
    size_t n;
};

#define HALVES      "\"layout\":\"halves\""
#define INTERLEAVED "\"layout\":\"interleaved\""
#define LINEAR(f)   HALVES ",\"scaling\":{\"rope_type\":\"linear\",\"factor\":" f "}"
#define ORT_ROW     "[-1.0574,-0.1188,-0.9078,0.3452,-0.5713,-0.2351]"

static const struct turned turned[] = {
    {"keras-hub rotary_embedding_test.py, ones, d=6",
     HALVES,
     "[1,1,1,1,1,1]",
     "3",
     5.1e-5,
     {-1.1311, .8515, .9935, -.8489, 1.1291, 1.0064},
     6},
    {"keras-hub, linear f=2, from transformers, p=1",
     LINEAR("2"),
     "[1,1,1,1]",
     "1",
     1e-7,
     {.398157001, .994987488, 1.357008100, 1.004987478},
     4},
    {"keras-hub, linear f=2, p=2",
     LINEAR("2"),
     "[1,1,1,1]",
     "2",
     1e-7,
     {-.301168621, .989950180, 1.381773233, 1.009949803},
     4},
    {"keras-hub, linear f=5, p=12",
     LINEAR("5"),
     "[1,1,1,1]",
     "12",
     5.1e-7,
     {-1.412857, .975714, -.061931, 1.023710},
     4},
    {"keras-hub, from flax: the last row of numpy default_rng(0).standard_normal((2, 2, 1, 16))",
     HALVES,
     "[1.80163487,1.31510376,0.357380411,-1.20831863,-0.00445413312,0.656474935,-1.28836146,0.39512206,0."
     "429863695,"
     "0.696042724,-1.18411797,-0.661702572,-0.436435247,-1.16980191,1.73936788,-0.495910728]",
     "1",
     2e-7,
     {.611709595, 1.03343689, .47380957, -1.18679309, -8.96309502e-05, .660170913, -1.29010022, .395278841,
      1.74827969, 1.07050526, -1.14252377, -.699575782, -.436457992, -1.1677202, 1.73807859, -.495785743},
     16},
    {"nanochat issue 264 and others: the two layouts",
     INTERLEAVED,
     "[1,2,3,4]",
     "1",
     5.1e-6,
     {-1.14264, 1.922076, 2.959851, 4.0298},
     4},
    {"nanochat issue 264 and others: the two layouts",
     HALVES,
     "[1,2,3,4]",
     "1",
     5.1e-7,
     {-1.984111, 1.959901, 2.462378, 4.019800},
     4},
    {"onnxruntime rotary_embedding_op_test.cc, interleaved",
     INTERLEAVED,
     ORT_ROW,
     "1",
     1.01e-4,
     {-.4713, -.9540, -.9229, .3027, -.5708, -.2363},
     6},
    {"onnxruntime rotary_embedding_op_test.cc, half",
     HALVES,
     ORT_ROW,
     "1",
     1.01e-4,
     {-.8618, -.0922, -.9073, -.7032, -.5762, -.2371},
     6},
};

START_TEST(turned_vectors_of_projects) {
    const struct turned *row = &turned[_i];
    char body[800];
    size_t dim[] = {1, row->n};
    snprintf(
        body, sizeof body,
        "{\"encoding\":{\"type\":\"rope\",%s},\"embeddings\":[%s],\"positions\":[%s],\"dtype\":\"float64\"}",
        row->encoding, row->x, row->positions);
    report_expect("POST /v1/apply", body, "embeddings", dim, 2, row->tolerance, row->values, row->n);
}
END_TEST

/* transformers tests/models/roformer: q = arange(2*12*16*64)/100 as [2, 12, 16, 64], of head 0 the first
 * eight columns of six rows. */
START_TEST(roformer_rows) {
    static const double wanted[6][8] = {
        {0, .01, .02, .03, .04, .05, .06, .07},
        {-.2012, .8897, .0263, .9401, .2074, .9463, .3481, .9343},
        {-1.7057, .6271, -1.2145, 1.3897, -.6303, 1.7647, -.1173, 1.8985},
        {-2.1731, -1.6397, -2.7358, .2854, -2.1840, 1.7183, -1.3018, 2.4871},
        {.2717, -3.6173, -2.9206, -2.1988, -3.6638, .3858, -2.9155, 2.2980},
        {3.9859, -2.1580, -.7984, -4.4904, -4.1181, -2.0252, -4.4782, 1.1253}};
    static const size_t dim[] = {6, 64};
    double *q = report_doubles(6 * 64);
    for (size_t i = 0; i < 6 * 64; i++) {
        q[i] = (double)i / 100;
    }
    struct report_tensor got =
        report_tensor_raw("POST /v1/apply?type=rope&layout=interleaved&format=raw", q, dim, 2, "embeddings");
    for (size_t t = 0; t < 6; t++) {
        report_row(&got, t * 64, 5.1e-5, wanted[t], 8);
    }
}
END_TEST

/* ---- Tables -------------------------------------------------------------------------------------------- */

struct table {
    const char *source, *query, *name;
    double tolerance, values[4];
    size_t n;
};

static const struct table tables[] = {
    {"onnxruntime rotary_embedding_op_test.cc, row 1",
     "head_dim=6&positions=1",
     "cos",
     5.1e-5,
     {.5403, .9989, 1.0},
     3},
    {"onnxruntime, row 1", "head_dim=6&positions=1", "sin", 5.1e-5, {.8415, .0464, .0022}, 3},
    {"onnxruntime, row 15", "head_dim=6&positions=15", "cos", 5.1e-5, {-.7597, .7673, .9995}, 3},
    {"onnxruntime, row 15", "head_dim=6&positions=15", "sin", 5.1e-5, {.6503, .6413, .0323}, 3},
    {"fairseq tests/test_rotary_positional_embedding.py",
     "head_dim=2&positions=0:3",
     "cos",
     5.1e-5,
     {1, .5403, -.4161},
     3},
    {"fairseq", "head_dim=2&positions=0:3", "sin", 5.1e-5, {0, .8415, .9093}, 3},
    {"candle PR 3520: 15962 and what bfloat16 makes of it",
     "head_dim=2&positions=15962,15968,15936",
     "cos",
     5.1e-10,
     {-.908015901, -.754792760, -.267950071},
     3},
    {"sglang-jax issue 1472: 4095", "head_dim=2&positions=4095", "cos", 5.1e-11, {-.0659759966}, 1},
    {"sglang-jax issue 1472: 4095", "head_dim=2&positions=4095", "sin", 5.1e-11, {-.9978212104}, 1},
};

START_TEST(tables_of_projects) {
    const struct table *row = &tables[_i];
    char request[200];
    snprintf(request, sizeof request, ENCODE "%s", row->query);
    struct report_tensor got = report_tensor(request, NULL, row->name);
    ck_assert_uint_eq(got.n, row->n);
    report_row(&got, 0, row->tolerance, row->values, row->n);
}
END_TEST

/* torchtune tests/torchtune/models/llama3_1/test_position_embeddings.py: the sum and the mean of the cache
 * [4096, 64, 2] in float32; the float64 sums are of the same table in double precision. */
START_TEST(torchtune_cache) {
    static const struct {
        const char *base;
        double sum;
    } all[] = {{"10000", 91141.7593}, {"500000", 141648.6612}};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        char request[400];
        double sum = 0;
        snprintf(
            request, sizeof request,
            "GET "
            "/v1/encode?type=rope&layout=interleaved&head_dim=128&dtype=float64&trig_form=packed&format=raw&"
            "positions=0:4096&scaling.factor=8&" LLAMA3 "8192&base=%s",
            all[i].base);
        struct report_tensor got = report_tensor(request, NULL, "packed");
        ck_assert_uint_eq(got.n, (size_t)4096 * 128);
        for (size_t k = 0; k < got.n; k++) {
            sum += got.values[k];
        }
        ck_assert_double_eq_tol(sum, all[i].sum, 1e-4);
        ck_assert(i > 0 || (fabs(sum - 91141.7656) < 0.01 && fabs(sum / (4096 * 128) - .17383911) < 1e-8));
    }
}
END_TEST

/* torchscale, d=64: zeta of the pairs, as the length of a query at position 512, and zeta_0^(2048/512). */
START_TEST(xpos_scales) {
    struct report_tensor cos =
        report_tensor(ENCODE "head_dim=64&xpos.scale_base=512&positions=512,2048", NULL, "cos");
    struct report_tensor sin =
        report_tensor(ENCODE "head_dim=64&xpos.scale_base=512&positions=512,2048", NULL, "sin");
    static const double zeta[] = {.28571429, .30803571, .33035714};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(hypot(cos.values[i], sin.values[i]), zeta[i], 5.1e-9);
    }
    ck_assert_double_eq_tol(hypot(cos.values[31], sin.values[31]), .97767857, 5.1e-9);
    ck_assert_double_eq_tol(hypot(cos.values[32], sin.values[32]), .00666389, 5.1e-9);
}
END_TEST

/* d=2, q = k = [1, 0]: the score is cos(m - n). */
START_TEST(scores_of_one_pair) {
    report_expect(
        "POST /v1/attention?dtype=float64",
        "{\"encoding\":{\"type\":\"rope\"," HALVES "},\"q\":[[1,0]],\"k\":[[1,0],[1,0],[1,0],[1,0],[1,0]],"
        "\"query_positions\":[4],\"scale\":1,\"return\":[\"logits\"]}",
        "logits", REPORT_SHAPE(1, 5), 5.1e-8, REPORT_VALUES(-.6536436, -.9899925, -.4161468, .5403023, 1));
}
END_TEST

Suite *rope_published_suite(void) {
    Suite *suite = suite_create("rope_published");
    TCase *tests = tcase_create("published");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, frequencies_of_projects, 0, (int)PE_COUNT(frequencies));
    tcase_add_test(tests, proportional_ends_in_zeros);
    tcase_add_loop_test(tests, facts_of_projects, 0, (int)PE_COUNT(facts));
    tcase_add_test(tests, yarn_attention_factors);
    tcase_add_loop_test(tests, turned_vectors_of_projects, 0, (int)PE_COUNT(turned));
    tcase_add_test(tests, roformer_rows);
    tcase_add_loop_test(tests, tables_of_projects, 0, (int)PE_COUNT(tables));
    tcase_add_test(tests, torchtune_cache);
    tcase_add_test(tests, xpos_scales);
    tcase_add_test(tests, scores_of_one_pair);
    return suite;
}
