/* SPDX-License-Identifier: MIT
 *
 * The library under want: every function that takes memory, with the n-th allocation failing, and in an arena
 * of every size from 0 until it succeeds. It fails with PE_ERR_MEMORY or PE_ERR_LIMIT; what it was to fill is
 * then as before or cleared, never half filled.
 */
#include "unit/suites.h"

#include "faults/fault.h"
#include "posenc_fields.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 100000

/* What the functions are given; made once, in an arena that has room. */
static struct pe_arena *ground;
static struct pe_tensor x, halves, mask, lengths, grid, table;
static struct pe_plan *sinusoidal, *learned;
static struct pe_positions positions;
static unsigned char npy[400], archive[1000];
static size_t npy_n, archive_n;
static struct pe_safetensors archive_file;

union out {
    struct pe_tensor tensor;
    struct pe_positions positions;
    struct pe_spec spec;
    struct pe_plan *plan;
    struct pe_safetensors file;
    struct pe_safetensors_header header;
    struct {
        struct pe_work work;
        struct pe_attention_result attention;
        struct pe_block_result block;
        struct pe_shift_result shift;
        struct pe_convert_result convert;
        struct pe_check_result check;
        struct pe_tensor tensor;
    } op;
};

/* ---- The ground ---------------------------------------------------------------------------------------- */

static struct pe_tensor numbers(enum pe_dtype dtype, int rank, const size_t *dim, int modulus) {
    struct pe_tensor tensor;
    struct pe_error err = {0};
    ck_assert(!pe_tensor_alloc(ground, &tensor, dtype, rank, dim, &err));
    for (size_t i = 0; i < pe_tensor_count(&tensor); i++) {
        double value = (double)(i % (size_t)modulus);
        pe_dtype_store(dtype, &value, 1, (char *)tensor.data + i * pe_dtype_size(dtype));
    }
    return tensor;
}

static struct pe_plan *plan_of(const char *type, const char *name, const char *value,
                               const struct pe_tensor *tensor) {
    struct pe_spec spec;
    struct pe_plan *plan;
    struct pe_error err = {0};
    bool good = !pe_spec_init(ground, &spec, type, &err) &&
                !(tensor ? pe_spec_set_tensor(&spec, name, tensor, &err)
                         : pe_spec_set(ground, &spec, name, value, &err)) &&
                !pe_plan_open(&plan, &spec, &err);
    ck_assert_msg(good, "%s", err.text);
    return plan;
}

static void make_files(void) {
    struct pe_error err = {0};
    struct pe_safetensors_header header;
    const struct pe_named_tensor named = {"a name with \\ and \" in it", halves};
    npy_n = pe_npy_header((char *)npy, sizeof npy, &x);
    *strstr((char *)npy + 10, "<f4") = '>'; /* behind the version; so that it must be copied */
    memcpy(npy + npy_n, x.data, pe_tensor_bytes(&x));
    npy_n += pe_tensor_bytes(&x);
    ck_assert(!pe_safetensors_write(ground, &header, &named, 1, &err));
    archive_n = header.file_bytes;
    ck_assert_uint_le(archive_n, sizeof archive - 1);
    memcpy(archive + 1, header.text, header.bytes); /* not aligned: it must be copied */
    memcpy(archive + 1 + header.bytes, halves.data, pe_tensor_bytes(&halves));
    ck_assert(!pe_safetensors_open(ground, &archive_file, archive + 1, archive_n, &err));
}

static void setup(void) {
    struct pe_error err = {0};
    ground = pe_arena_open((size_t)1 << 24, NULL, &err);
    pe_linalg_init();
    x = numbers(PE_DTYPE_F32, 2, (const size_t[]){4, 6}, 5);
    halves = numbers(PE_DTYPE_F16, 2, (const size_t[]){4, 6}, 5);
    mask = numbers(PE_DTYPE_F64, 2, (const size_t[]){3, 5}, 2);
    lengths = numbers(PE_DTYPE_F64, 1, (const size_t[]){4}, 4);
    grid = numbers(PE_DTYPE_F64, 1, (const size_t[]){3}, 4);
    table = numbers(PE_DTYPE_F32, 2, (const size_t[]){9, 6}, 7);
    sinusoidal = plan_of("sinusoidal", "d_model", "6", NULL);
    learned = plan_of("learned", "table", NULL, &table);
    ck_assert(!pe_positions_parse(ground, &positions, "[0,3,2,1]", &err));
    make_files();
}

static void teardown(void) {
    pe_plan_close(sinusoidal);
    pe_plan_close(learned);
    pe_arena_close(ground);
}

/* ---- The functions ------------------------------------------------------------------------------------- */

static int tensor_alloc(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_tensor_alloc(arena, &out->tensor, PE_DTYPE_F32, 2, (const size_t[]){3, 11}, err);
}

static int tensor_convert(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_tensor_convert(arena, &out->tensor, &x, PE_DTYPE_F64, err);
}

static int positions_list(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_positions_parse(arena, &out->positions, "[[0,1,2],[3,4,5.5]]", err);
}

static int positions_tensor(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_positions_tensor(arena, &out->positions, &x, 6, err);
}

static int positions_mask(struct pe_arena *arena, union out *out, struct pe_error *err) {
    struct pe_positions_rule rule;
    pe_fields_init(pe_positions_fields, pe_positions_n_fields, &rule, sizeof rule);
    rule.mask = &mask;
    rule.rule = PE_POSITION_RULE_OPT;
    return pe_positions_make(arena, &out->positions, &rule, err);
}

static int positions_lengths(struct pe_arena *arena, union out *out, struct pe_error *err) {
    struct pe_positions_rule rule;
    pe_fields_init(pe_positions_fields, pe_positions_n_fields, &rule, sizeof rule);
    rule.lengths = &lengths;
    return pe_positions_make(arena, &out->positions, &rule, err);
}

static int spec_init(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_spec_init(arena, &out->spec, "sinusoidal", err);
}

static int plan_sinusoidal(struct pe_arena *arena, union out *out, struct pe_error *err) {
    struct pe_spec spec;
    (void)out;
    if (pe_spec_init(arena, &spec, "sinusoidal", err) || pe_spec_set(arena, &spec, "d_model", "12", err)) {
        return err->code;
    }
    int code = pe_plan_open(&out->plan, &spec, err);
    if (!code) {
        pe_plan_close(out->plan);
    }
    return code;
}

static int spec_table(struct pe_arena *arena, union out *out, struct pe_error *err) {
    struct pe_spec spec;
    (void)out;
    return pe_spec_init(arena, &spec, "learned", err) || pe_spec_set(arena, &spec, "table", "a_name", err);
}

static int encode(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_encode_open(arena, &out->op.work, &out->op.tensor, sinusoidal, &positions, PE_DTYPE_F16, err);
}

static int apply(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_apply_args args = {
        .size = sizeof args, .plan = sinusoidal, .embeddings = &halves, .positions = &positions};
    return pe_apply_open(arena, &out->op.work, &out->op.tensor, &args, err);
}

static int attention(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_attention_mask seen = {.size = sizeof seen, .causal = true, .n_window = 1, .window = {2}};
    const struct pe_attention_args args = {.size = sizeof args,
                                           .q = &halves,
                                           .k = &x,
                                           .v = &x,
                                           .mask = &seen,
                                           .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS |
                                                      PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION |
                                                      PE_ATTENTION_OUTPUT,
                                           .dtype = PE_DTYPE_F16};
    return pe_attention_open(arena, &out->op.work, &out->op.attention, &args, err);
}

static int attention_terms(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_attention_args args = {.size = sizeof args,
                                           .plan = sinusoidal,
                                           .embeddings = &halves,
                                           .heads = 2,
                                           .query_positions = &positions,
                                           .outputs = PE_ATTENTION_TERMS | PE_ATTENTION_OUTPUT};
    return pe_attention_open(arena, &out->op.work, &out->op.attention, &args, err);
}

static int block(struct pe_arena *arena, union out *out, struct pe_error *err) {
    static const uint64_t seed = 1;
    const struct pe_attention_mask seen = {.size = sizeof seen, .causal = true};
    const struct pe_block_args args = {.size = sizeof args,
                                       .plan = sinusoidal,
                                       .embeddings = &halves,
                                       .weights_seed = &seed,
                                       .layers = 2,
                                       .mask = &seen,
                                       .dtype = PE_DTYPE_F64};
    return pe_block_open(arena, &out->op.work, &out->op.block, &args, err);
}

static int shift_exact(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_shift_args args = {
        .size = sizeof args, .plan = sinusoidal, .distance = 2, .positions = &positions, .matrix = true};
    return pe_shift_open(arena, &out->op.work, &out->op.shift, &args, err);
}

static int shift_fitted(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_shift_args args = {
        .size = sizeof args, .plan = learned, .distance = 2, .positions = &positions};
    return pe_shift_open(arena, &out->op.work, &out->op.shift, &args, err);
}

static int convert(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_convert_args args = {.size = sizeof args,
                                         .from = PE_ROTARY_HALVES,
                                         .to = PE_ROTARY_INTERLEAVED,
                                         .head_dim = x.dim[x.rank - 1],
                                         .tensor = &x,
                                         .axis = (size_t)x.rank - 1,
                                         .dtype = PE_DTYPE_BF16};
    return pe_convert_open(arena, &out->op.work, &out->op.convert, &args, err);
}

static int check(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_check_args args = {.size = sizeof args, .plan = sinusoidal, .tensor = &halves};
    return pe_check_open(arena, &out->op.work, &out->op.check, &args, err);
}

static int npy_read(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_npy_read(arena, &out->tensor, npy, npy_n, err);
}

static int safetensors_open(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_safetensors_open(arena, &out->file, archive + 1, archive_n, err);
}

static int safetensors_get(struct pe_arena *arena, union out *out, struct pe_error *err) {
    return pe_safetensors_get(arena, &out->tensor, &archive_file, NULL, err);
}

static int safetensors_write(struct pe_arena *arena, union out *out, struct pe_error *err) {
    const struct pe_named_tensor named[] = {{"q", x}, {"a \" b", halves}};
    return pe_safetensors_write(arena, &out->header, named, 2, err);
}

#define ROW(function)                                                                                        \
    { #function, function }
static const struct {
    const char *name;
    int (*call)(struct pe_arena *arena, union out *out, struct pe_error *err);
} rows[] = {
    ROW(tensor_alloc),    ROW(tensor_convert),
    ROW(positions_list),  ROW(positions_tensor),
    ROW(positions_mask),  ROW(positions_lengths),
    ROW(spec_init),       ROW(plan_sinusoidal),
    ROW(spec_table),      ROW(encode),
    ROW(apply),           ROW(attention),
    ROW(attention_terms), ROW(block),
    ROW(shift_exact),     ROW(shift_fitted),
    ROW(convert),         ROW(check),
    ROW(npy_read),        ROW(safetensors_open),
    ROW(safetensors_get), ROW(safetensors_write),
};

/* ---- Sweeping ------------------------------------------------------------------------------------------ */

/* Byte by byte as before, or all bytes of it cleared. */
static bool is_untouched(const union out *out) {
    const unsigned char *bytes = (const void *)out;
    bool good = true;
    for (size_t i = 0; good && i < sizeof *out; i++) {
        good = bytes[i] == 0x5a || bytes[i] == 0;
    }
    return good;
}

static void check_failure(const char *name, size_t step, int code, const struct pe_error *err, int wanted,
                          const union out *out) {
    ck_assert_msg(err->code == wanted && code != 0 && err->text[0], "%s at %zu: %d, %s \"%s\"", name, step,
                  code, err->code ? pe_code_slug(err->code) : "no error", err->text);
    ck_assert_msg(is_untouched(out), "%s at %zu: half filled", name, step);
}

START_TEST(an_allocation_fails) {
    static union out out;
    size_t n = 0;
    for (bool struck = true; struck;) {
        struct pe_error err = {0};
        memset(&out, 0x5a, sizeof out);
        fault_arm(++n, FAULT_ONCE);
        struct pe_arena *arena = pe_arena_open((size_t)1 << 20, NULL, &err);
        int code = arena ? rows[_i].call(arena, &out, &err) : err.code;
        pe_arena_close(arena);
        struck = fault_disarm();
        if (struck) {
            check_failure(rows[_i].name, n, code, &err, PE_ERR_MEMORY, &out);
        } else {
            ck_assert_msg(code == 0 && err.code == 0, "%s: %s", rows[_i].name, err.text);
        }
        ck_assert_uint_eq(fault_live(), 0);
        ck_assert_uint_lt(n, MAX_STEPS);
    }
    ck_assert_uint_gt(n, 2); /* the arena, and one more at least */
}
END_TEST

START_TEST(an_arena_of_every_size) {
    static union out out;
    int code = -1;
    size_t limit = 0;
    for (; code != 0; limit++) {
        struct pe_error err = {0};
        memset(&out, 0x5a, sizeof out);
        struct pe_arena *arena = pe_arena_open(limit, NULL, &err);
        ck_assert_ptr_nonnull(arena);
        code = rows[_i].call(arena, &out, &err);
        if (code) {
            check_failure(rows[_i].name, limit, code, &err, PE_ERR_LIMIT, &out);
            ck_assert_str_eq(err.limit_name, "request_memory");
            ck_assert_uint_eq(err.limit, limit);
            ck_assert_uint_gt(err.got, limit);
        }
        ck_assert_uint_le(pe_arena_used(arena), limit);
        pe_arena_close(arena);
        ck_assert_uint_lt(limit, MAX_STEPS);
    }
    ck_assert_uint_gt(limit, 1);
}
END_TEST

Suite *faults_lib_suite(void) {
    Suite *suite = suite_create("faults_lib");
    TCase *tests = tcase_create("faults_lib");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, an_allocation_fails, 0, PE_COUNT(rows));
    tcase_add_loop_test(tests, an_arena_of_every_size, 0, PE_COUNT(rows));
    return suite;
}
