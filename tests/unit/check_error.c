/* SPDX-License-Identifier: MIT
 *
 * Errors: the first failure wins, layers only prefix the path, and what comes out is one line of valid UTF-8.
 */
#include "suites.h"

#include "posenc_fields.h"

#include <string.h>

START_TEST(first_failure_wins) {
    struct pe_error err = {0};
    ck_assert_int_eq(pe_fail(&err, PE_ERR_RANGE, "a", "got %d", 7), PE_ERR_RANGE);
    ck_assert_int_eq(pe_fail(&err, PE_ERR_SHAPE, "b", "got %d", 8), PE_ERR_RANGE);
    ck_assert_int_eq(pe_fail_limit(&err, "c", "memory", 1, 2, "too much"), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "a");
    ck_assert_str_eq(err.text, "got 7");
    ck_assert_ptr_null(err.limit_name);
}
END_TEST

START_TEST(limit_carries_its_numbers) {
    struct pe_error err = {0};
    ck_assert_int_eq(pe_fail_limit(&err, "x", "memory", 10, 11, "needs %d", 11), PE_ERR_LIMIT);
    ck_assert_str_eq(err.limit_name, "memory");
    ck_assert_uint_eq(err.limit, 10);
    ck_assert_uint_eq(err.got, 11);
    ck_assert_str_eq(err.text, "needs 11");
}
END_TEST

/* A caller may start again by clearing the code alone: nothing of the old failure may show. */
START_TEST(reused_error_keeps_no_old_limit) {
    struct pe_error err = {0};
    pe_fail_limit(&err, "x", "memory", 10, 11, "needs 11");
    err.code = PE_OK;
    pe_fail(&err, PE_ERR_TYPE, "", "got text");
    ck_assert_ptr_null(err.limit_name);
    ck_assert_uint_eq(err.limit, 0);
    ck_assert_uint_eq(err.got, 0);
    ck_assert_str_eq(err.path, "");
}
END_TEST

START_TEST(layers_prefix_the_path) {
    static const struct {
        const char *path, *segment, *expected;
    } rows[] = {
        {"base", "encoding", "encoding.base"},
        {"[1][3]", "embeddings", "embeddings[1][3]"},
        {"", "positions", "positions"},
        {"base", "[2]", "[2].base"},
        {"base", "", "base"},
        {"", "", ""},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        pe_fail(&err, PE_ERR_RANGE, rows[i].path, "text");
        ck_assert_int_eq(pe_error_at(&err, rows[i].segment), PE_ERR_RANGE);
        ck_assert_str_eq(err.path, rows[i].expected);
        ck_assert_str_eq(err.text, "text");
    }
}
END_TEST

START_TEST(no_failure_gets_no_path) {
    struct pe_error err = {0};
    ck_assert_int_eq(pe_error_at(&err, "encoding"), PE_OK);
    ck_assert_str_eq(err.path, "");
}
END_TEST

/* `count` times `unit`, terminated, into text of `size` bytes. */
static void repeat(char *text, size_t size, const char *unit, size_t count) {
    const size_t length = strlen(unit);
    ck_assert_uint_lt(length * count, size);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * length, unit, length);
    }
    text[length * count] = '\0';
}

START_TEST(what_just_fits_is_kept) {
    struct pe_error err = {0};
    char path[sizeof err.path], text[sizeof err.text];
    repeat(path, sizeof path, "p", sizeof path - 1);
    repeat(text, sizeof text, "t", sizeof text - 1);
    pe_fail(&err, PE_ERR_TYPE, path, "%s", text);
    ck_assert_str_eq(err.path, path);
    ck_assert_str_eq(err.text, text);
}
END_TEST

START_TEST(what_is_too_long_ends_in_dots) {
    struct pe_error err = {0};
    char path[sizeof err.path + 1], text[sizeof err.text + 1];
    repeat(path, sizeof path, "p", sizeof path - 1);
    repeat(text, sizeof text, "t", sizeof text - 1);
    pe_fail(&err, PE_ERR_TYPE, path, "%s", text);
    ck_assert_uint_eq(strlen(err.path), sizeof err.path - 1);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_str_eq(err.path + sizeof err.path - 6, "pp...");
    ck_assert_str_eq(err.text + sizeof err.text - 6, "tt...");
}
END_TEST

START_TEST(prefix_of_a_full_path_keeps_its_head) {
    struct pe_error err = {0};
    char path[sizeof err.path];
    repeat(path, sizeof path, "p", sizeof path - 1);
    pe_fail(&err, PE_ERR_TYPE, path, "text");
    pe_error_at(&err, "encoding");
    ck_assert_uint_eq(strlen(err.path), sizeof err.path - 1);
    ck_assert_mem_eq(err.path, "encoding.ppp", 12);
    ck_assert_str_eq(err.path + sizeof err.path - 6, "pp...");
    repeat(path, sizeof path, "q", sizeof path - 1);
    pe_error_at(&err, path); /* a segment that leaves no room at all */
    ck_assert_str_eq(err.path + sizeof err.path - 6, "qq...");
}
END_TEST

/* Cut at any place within letters of 2, 3 and 4 bytes, the rest stays whole letters. */
START_TEST(cut_falls_between_letters) {
    static const char *const letters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < PE_COUNT(letters); i++) {
        for (size_t offset = 0; offset < 4; offset++) {
            struct pe_error err = {0};
            const size_t length = strlen(letters[i]);
            char path[2 * sizeof err.path];
            repeat(path, 5, "p", offset);
            repeat(path + offset, sizeof path - offset, letters[i], 200 / length);
            pe_fail(&err, PE_ERR_TYPE, path, "text");
            const size_t kept = strlen(err.path) - 3;
            ck_assert_str_eq(err.path + kept, "...");
            ck_assert_uint_eq((kept - offset) % length, 0);
            ck_assert_uint_gt(kept, sizeof err.path - 1 - 3 - length);
            ck_assert_mem_eq(err.path, path, kept);
        }
    }
}
END_TEST

/* Well-formed by Unicode, table 3-7; each other byte becomes a question mark of its own. */
START_TEST(text_becomes_one_line_of_valid_utf8) {
    static const struct {
        const char *in, *expected;
    } rows[] = {
        {"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\nb\tc\x1b[0m\x7f", "a?b?c?[0m?"},
        {"\xff\xfe", "??"},
        {"\x80", "?"},
        {"\xc3", "?"},
        {"\xc3(", "?("},
        {"\xe2\x82", "??"},
        {"\xf0\x9f\x98", "???"},
        {"\xc0\xaf", "??"},                                                    /* overlong / */
        {"\xc1\xbf \xe0\x9f\xbf \xf0\x8f\xbf\xbf", "?? ??? ????"},             /* overlong */
        {"\xed\xa0\x80", "???"},                                               /* a surrogate */
        {"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},              /* its neighbours */
        {"\xf4\x8f\xbf\xbf \xf4\x90\x80\x80 \xf5", "\xf4\x8f\xbf\xbf ???? ?"}, /* U+10FFFF is the last */
        {"\xe0\xa0\x80\xf0\x90\x80\x80\xc2\x80",
         "\xe0\xa0\x80\xf0\x90\x80\x80\xc2\x80"}, /* shortest of each */
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        pe_fail(&err, PE_ERR_UNKNOWN_FIELD, rows[i].in, "%s", rows[i].in);
        ck_assert_str_eq(err.path, rows[i].expected);
        ck_assert_str_eq(err.text, rows[i].expected);
        pe_error_at(&err, "\xff");
        ck_assert_int_eq(err.path[0], '?');
    }
}
END_TEST

START_TEST(every_code_has_its_own_slug_and_title) {
    for (int code = 0; code < PE_ERR_COUNT; code++) {
        ck_assert_ptr_nonnull(pe_code_slug(code));
        ck_assert_ptr_nonnull(pe_code_title(code));
        for (int other = 0; other < code; other++) {
            ck_assert_str_ne(pe_code_slug(code), pe_code_slug(other));
            ck_assert_str_ne(pe_code_title(code), pe_code_title(other));
        }
    }
    ck_assert_str_eq(pe_code_slug(PE_ERR_RANGE), "range");
    ck_assert_str_eq(pe_code_title(PE_ERR_RANGE), "value out of range");
    ck_assert_ptr_null(pe_code_slug(-1));
    ck_assert_ptr_null(pe_code_slug(PE_ERR_COUNT));
    ck_assert_ptr_null(pe_code_title(PE_ERR_HOST));
}
END_TEST

START_TEST(codes_of_the_embedding_program_pass) {
    struct pe_error err = {0};
    ck_assert_int_eq(pe_fail(&err, PE_ERR_HOST + 3, "", "busy"), PE_ERR_HOST + 3);
    ck_assert_int_eq(err.code, PE_ERR_HOST + 3);
}
END_TEST

/* The example on top of the header, with a fault in step _i: everything after it does nothing. */
START_TEST(a_chain_is_checked_once) {
    static const struct {
        const char *type, *width, *positions, *path;
        int code;
    } rows[] = {
        {"sinusoidal", "4", "0:3", "", PE_OK},
        {"sine", "4", "0:3", "type", PE_ERR_UNKNOWN_NAME},
        {"sinusoidal", "many", "0:3", "d_model", PE_ERR_TYPE},
        {"sinusoidal", "4", "0:3:0", "", PE_ERR_RANGE},
        {"none", "4", "0:3", "d_model", PE_ERR_UNKNOWN_FIELD},
        {"naive", "4", "0:70000", "positions[65520]", PE_ERR_RANGE},
    };
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan;
    struct pe_positions positions;
    struct pe_tensor vectors, sum;
    struct pe_work work[4];
    struct pe_attention_result weights;
    struct pe_shift_result map;
    (void)!pe_spec_init(arena, &spec, rows[_i].type, &err);
    (void)!pe_spec_set(arena, &spec, "d_model", rows[_i].width, &err);
    (void)!pe_spec_fit(&spec, 4, 3, &err);
    (void)!pe_plan_open(&plan, &spec, &err);
    (void)!pe_positions_parse(arena, &positions, rows[_i].positions, &err);
    (void)!pe_encode_open(arena, &work[0], &vectors, plan, &positions, PE_DTYPE_F16, &err);
    (void)pe_work_run(&work[0]); /* what follows reads the vectors: without a fault there must be numbers */
    (void)!pe_apply_open(
        arena, &work[1], &sum,
        &(struct pe_apply_args){.size = sizeof(struct pe_apply_args), .plan = plan, .embeddings = &vectors},
        &err);
    (void)!pe_attention_open(arena, &work[2], &weights,
                             &(struct pe_attention_args){.size = sizeof(struct pe_attention_args),
                                                         .plan = plan,
                                                         .embeddings = &vectors},
                             &err);
    (void)!pe_shift_open(
        arena, &work[3], &map,
        &(struct pe_shift_args){.size = sizeof(struct pe_shift_args), .plan = plan, .positions = &positions},
        &err);
    ck_assert_int_eq(err.code, rows[_i].code);
    ck_assert_str_eq(err.path, rows[_i].path);
    for (size_t i = 0; i < 4; i++) {
        ck_assert((work[i].n_parts > 0) == (err.code == PE_OK));
        ck_assert(pe_work_run(&work[i]));
    }
    if (err.code) {
        ck_assert(!vectors.data && !sum.data && !weights.weights.data && !map.residual.data);
        ck_assert_int_eq(pe_npy_read(arena, &sum, NULL, 100, &err), err.code);
        ck_assert_ptr_null(pe_arena_open(100, NULL, &err));
    }
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

START_TEST(version_is_the_one_of_the_header) {
    ck_assert_str_eq(pe_version(), PE_VERSION);
}
END_TEST

Suite *error_suite(void) {
    Suite *suite = suite_create("error");
    TCase *tests = tcase_create("error");
    tcase_add_test(tests, first_failure_wins);
    tcase_add_test(tests, limit_carries_its_numbers);
    tcase_add_test(tests, reused_error_keeps_no_old_limit);
    tcase_add_test(tests, layers_prefix_the_path);
    tcase_add_test(tests, no_failure_gets_no_path);
    tcase_add_test(tests, what_just_fits_is_kept);
    tcase_add_test(tests, what_is_too_long_ends_in_dots);
    tcase_add_test(tests, prefix_of_a_full_path_keeps_its_head);
    tcase_add_test(tests, cut_falls_between_letters);
    tcase_add_test(tests, text_becomes_one_line_of_valid_utf8);
    tcase_add_test(tests, every_code_has_its_own_slug_and_title);
    tcase_add_test(tests, codes_of_the_embedding_program_pass);
    tcase_add_loop_test(tests, a_chain_is_checked_once, 0, 6);
    tcase_add_test(tests, version_is_the_one_of_the_header);
    suite_add_tcase(suite, tests);
    return suite;
}
