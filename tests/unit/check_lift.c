/* SPDX-License-Identifier: MIT
 *
 * The lift: every text is fed whole, byte by byte, in two wherever the cut is, and cut at random places, which must
 * make no difference.
 * The expected envelopes and arrays are written by hand.
 */
#include "lift_outcome.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_outcome_of(const struct lift_options *options, const char *text, size_t n,
                              const char *expected) {
    uint64_t state = n;
    const size_t cuts = n > 0 && n < 2000 ? n - 1 : 0;
    for (size_t i = 0; i < 10 + cuts; i++) {
        const enum lift_cut cut = i == 0   ? LIFT_CUT_WHOLE
                                  : i == 1 ? LIFT_CUT_BYTES
                                  : i < 10 ? LIFT_CUT_RANDOM
                                           : LIFT_CUT_AT;
        uint64_t at = i - 9;
        char *got = lift_outcome(options, text, n, cut, cut == LIFT_CUT_AT ? &at : &state);
        EXPECT(strcmp(got ? got : "", expected) == 0,
               "%.300s (way %zu)\n  gave     %.300s\n  expected %.300s", text, i, got, expected);
        free(got);
    }
}

static void expect_outcome(const char *text, const char *expected) {
    expect_outcome_of(&lift_defaults, text, strlen(text), expected);
}

struct row {
    const char *text, *expected;
};

static void expect_rows(const struct row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        expect_outcome(rows[i].text, rows[i].expected);
    }
}

/* ---- What is lifted ------------------------------------------------------------------------------------ */

static const struct row lifted[] = {
    {"{\"embeddings\":[1,2,3]}", "{\"embeddings\":null} | embeddings[3] 1 2 3"},
    {"{\"embeddings\":[[1,2],[3,4]]}", "{\"embeddings\":null} | embeddings[2,2] 1 2 3 4"},
    {" { \"op\" : \"x\" , \"embeddings\" :\n[ [ 1 , 2 ] ,\t[ 3 ,4\r] ] , \"b\":[1,{\"c\":[2]}] } ",
     " { \"op\" : \"x\" , \"embeddings\" :\nnull , \"b\":[1,{\"c\":[2]}] }  | embeddings[2,2] 1 2 3 4"},
    {"{\"embeddings\":[[[[[[[[-0,0.5e1]]]]]]]]}", "{\"embeddings\":null} | embeddings[1,1,1,1,1,1,1,2] -0 5"},
    {"{\"q\":{\"shape\":[1,2],\"data\":[[7,8]]}}",
     "{\"q\":{\"shape\":[1,2],\"data\":null}} | q.data[1,2] 7 8"},
    {"{\"requests\":[{\"q\":[1]},{},{\"q\":[2]},[{\"q\":[3]}]]}",
     "{\"requests\":[{\"q\":null},{},{\"q\":null},[{\"q\":[3]}]]} | requests[0].q[1] 1 | requests[2].q[1] 2"},
    {"{\"requests\":[[{\"q\":[3]}],{\"q\":{\"q\":[1]}}]}",
     "{\"requests\":[[{\"q\":[3]}],{\"q\":{\"q\":[1]}}]}"},
    {"{\"positions\":{\"mask\":[[1,0]],\"rule\":\"bert\"},\"mask\":[1]}",
     "{\"positions\":{\"mask\":null,\"rule\":\"bert\"},\"mask\":[1]} | positions.mask[1,2] 1 0"},
    /* the same key elsewhere, as a text, or with another value is not lifted */
    {"{\"a\":{\"embeddings\":[1]},\"b\":\"embeddings\",\"c\":[\"embeddings\",[1]]}",
     "{\"a\":{\"embeddings\":[1]},\"b\":\"embeddings\",\"c\":[\"embeddings\",[1]]}"},
    {"{\"embeddings\":\"[1,2]\",\"q\":7,\"weights\":{\"w\":{\"x\":[1]}}}",
     "{\"embeddings\":\"[1,2]\",\"q\":7,\"weights\":{\"w\":{\"x\":[1]}}}"},
    {"[1,[2,3]]", "[1,[2,3]]"},
    {"", ""},
    {"{", "{"},
    {"null", "null"},
    /* empty arrays */
    {"{\"embeddings\":[]}", "{\"embeddings\":null} | embeddings[0]"},
    {"{\"embeddings\":[[],[ ]]}", "{\"embeddings\":null} | embeddings[2,0]"},
    {"{\"embeddings\":[[[]]]}", "{\"embeddings\":null} | embeddings[1,1,0]"},
    /* null is an element */
    {"{\"embeddings\":[[1,null],[null,2]]}",
     "{\"embeddings\":null} | embeddings[2,2] 1 -inf -inf 2 null at 1"},
    {"{\"embeddings\":[null]}", "{\"embeddings\":null} | embeddings[1] -inf null at 0"},
    /* the decimal is just above the middle of two floats, the double is on it */
    {"{\"embeddings\":[1,1.00000005960464477539062500001,2]}",
     "{\"embeddings\":null} | embeddings[3] 1 1.0000000596046448 2 fix 1 1.00000012"},
    /* both are there, and jansson refuses the repeat */
    {"{\"q\":[1],\"q\":[2]}", "{\"q\":null,\"q\":null} | q[1] 1 | q[1] 2"},
    /* keys that need quotes in the path */
    {"{\"weights\":{\"h.0.w\":[1],\"0\":[2],\"\":[3],\"a b\":[4]},\"a/b\":[5]}",
     "{\"weights\":{\"h.0.w\":null,\"0\":null,\"\":null,\"a b\":null},\"a/b\":null} | weights[\"h.0.w\"][1] "
     "1 | "
     "weights.0[1] 2 | weights[\"\"][1] 3 | weights[\"a b\"][1] 4 | [\"a/b\"][1] 5"},
};

START_TEST(lifts_watched_arrays) {
    expect_rows(lifted, PE_COUNT(lifted));
}
END_TEST

static const struct row escapes[] = {
    {"{\"\\u0065mbeddings\":[1]}", "{\"\\u0065mbeddings\":null} | embeddings[1] 1"},
    {"{\"\\u0071\":[1],\"a\\/b\":[2]}", "{\"\\u0071\":null,\"a\\/b\":null} | q[1] 1 | [\"a/b\"][1] 2"},
    {"{\"\\u002F\":1,\"weights\":{\"\\u007a\\u007A\":[1]}}",
     "{\"\\u002F\":1,\"weights\":{\"\\u007a\\u007A\":null}} | weights.zz[1] 1"},
    /* strings full of brackets, quotes and backslashes */
    {"{\"a\":\"\\\"],[{\",\"b\\\"\":\"\\\\\",\"embeddings\":[1]}",
     "{\"a\":\"\\\"],[{\",\"b\\\"\":\"\\\\\",\"embeddings\":null} | embeddings[1] 1"},
    {"{\"a\":\"\\u005d\\\\\\\"\",\"q\":[1]}", "{\"a\":\"\\u005d\\\\\\\"\",\"q\":null} | q[1] 1"},
    {"{\"a\\\\\":{\"q\":[1]},\"q\":[2]}", "{\"a\\\\\":{\"q\":[1]},\"q\":null} | q[1] 2"},
};

START_TEST(decodes_keys) {
    expect_rows(escapes, PE_COUNT(escapes));
}
END_TEST

/* ---- Forging ------------------------------------------------------------------------------------------- */

/* Keys that would make another path, and bytes that could be taken for the filter's own. */
static const struct row forgeries[] = {
    {"{\"q.data\":[1]}", "{\"q.data\":[1]}"},
    {"{\"positions.mask\":[1]}", "{\"positions.mask\":[1]}"},
    {"{\"requests[0].q\":[1]}", "{\"requests[0].q\":[1]}"},
    {"{\"requests\":{\"[0]\":{\"q\":[1]}}}", "{\"requests\":{\"[0]\":{\"q\":[1]}}}"},
    {"{\"requests\":{\"\\u005b0]\":{\"q\":[1]}}}", "{\"requests\":{\"\\u005b0]\":{\"q\":[1]}}}"},
    {"{\"weights\":{\"[0]\":[1],\"a\\\"\":[2],\"b\\\\\":[3],\"c]\":[4],\"d\\n\":[5],\"\xc3\xa9\":[6],"
     "\"\\u00e9\":[7],"
     "\"\\u0000\":[8],\"\\u00\":[9],\"\\ud83d\\ude00\":[10],\"\\x\":[11]}}",
     "{\"weights\":{\"[0]\":[1],\"a\\\"\":[2],\"b\\\\\":[3],\"c]\":[4],\"d\\n\":[5],\"\xc3\xa9\":[6],"
     "\"\\u00e9\":[7],"
     "\"\\u0000\":[8],\"\\u00\":[9],\"\\ud83d\\ude00\":[10],\"\\x\":[11]}}"},
    {"{\"weights\":{\"x[\":[1],\"x]\":[2]}}", "{\"weights\":{\"x[\":[1],\"x]\":[2]}}"},
    {"{\"embeddings\":null,\"q\":null}", "{\"embeddings\":null,\"q\":null}"},
    /* text that is not JSON: jansson gets to see what is wrong */
    {"{\"embeddings\" [1]}", "{\"embeddings\" [1]}"},
    {"{\"q\":1:[2]}", "{\"q\":1:[2]}"},
    {"{\"embeddings\"::[1]}", "{\"embeddings\"::null} | embeddings[1] 1"},
    {"{\"embeddings\":1[2]}", "{\"embeddings\":1[2]}"},
    {"]]{\"embeddings\":[1]}", "]]{\"embeddings\":null} | embeddings[1] 1"},
    {"{\"embeddings\":[1]]}", "{\"embeddings\":null]} | embeddings[1] 1"},
    {"{\"embeddings\":[1][2]}", "{\"embeddings\":null[2]} | embeddings[1] 1"},
};

START_TEST(cannot_be_forged) {
    expect_rows(forgeries, PE_COUNT(forgeries));
    struct pe_error err = {0};
    struct lift *lift = lift_open(&lift_defaults, &err);
    static const char text[] = "{\"q\":null,\"embeddings\":[1],\"requests\":[{\"q\":[]}]}";
    ck_assert_int_eq(lift_feed(lift, text, strlen(text), &err), PE_OK);
    ck_assert_ptr_null(lift_find(lift, "embeddings")); /* not complete */
    ck_assert_int_eq(lift_finish(lift, &err), PE_OK);
    ck_assert_ptr_null(lift_find(lift, "q"));
    ck_assert_ptr_null(lift_find(lift, ""));
    ck_assert_ptr_null(lift_find(lift, "requests[0]"));
    ck_assert_ptr_eq(lift_find(lift, "embeddings"), lift_at(lift, 0));
    ck_assert_ptr_eq(lift_find(lift, "requests[0].q"), lift_at(lift, 1));
    lift_array_drop(lift_at(lift, 0));
    ck_assert_ptr_null(lift_array_doubles(lift_at(lift, 0), &err));
    lift_close(lift);
}
END_TEST

/* A key longer than the watched ones can be, and a path that is. */
START_TEST(long_keys) {
    for (int n = LIFT_MAX_KEY - 1; n <= LIFT_MAX_KEY + 1; n++) {
        char text[512], expected[512];
        snprintf(text, sizeof text, "{\"weights\":{\"%0*d\":[1]},\"q\":[2]}", n, 7);
        if (n <= LIFT_MAX_KEY) {
            snprintf(expected, sizeof expected,
                     "{\"weights\":{\"%0*d\":null},\"q\":null} | weights.%0*d[1] 1 | q[1] 2", n, 7, n, 7);
        } else {
            snprintf(expected, sizeof expected, "{\"weights\":{\"%0*d\":[1]},\"q\":null} | q[1] 2", n, 7);
        }
        expect_outcome(text, expected);
    }
}
END_TEST

START_TEST(joins_paths) {
    char path[16] = "";
    ck_assert(lift_path_add(path, sizeof path, "q"));
    ck_assert(lift_path_add(path, sizeof path, "[12]"));
    ck_assert(lift_path_add(path, sizeof path, "data"));
    ck_assert_str_eq(path, "q[12].data");
    ck_assert(!lift_path_add(path, sizeof path, "a.b")); /* 17 bytes with the zero */
    ck_assert_str_eq(path, "q[12].data");
    ck_assert(lift_path_add(path, sizeof path, "."));
    ck_assert_str_eq(path, "q[12].data[\".\"]");
    ck_assert(!lift_path_add(path, sizeof path, "x"));
}
END_TEST

/* ---- Faults -------------------------------------------------------------------------------------------- */

/* No tensors: each keeps its error, the rest goes on. */
static const struct row refused[] = {
    {"{\"embeddings\":[[1,2],[3]],\"q\":[4]}", "{\"embeddings\":null,\"q\":null} | embeddings! shape "
                                               "embeddings[1]: row has 1 elements, the rows before it have 2 "
                                               "| q[1] 4"},
    {"{\"embeddings\":[[1,2],[3,4,5]]}", "{\"embeddings\":null} | embeddings! shape embeddings[1]: row has "
                                         "more than 2 elements, the rows before it have 2"},
    {"{\"embeddings\":[[[1],[2]],[[3],[4],[5]]]}",
     "{\"embeddings\":null} | embeddings! shape embeddings[1]: row has more "
     "than 2 elements, the rows before it have 2"},
    {"{\"embeddings\":[[[1],[2]],[[3]],9]}", "{\"embeddings\":null} | embeddings! shape embeddings[1]: row "
                                             "has 1 elements, the rows before it have 2"},
    {"{\"embeddings\":[[],[1]]}", "{\"embeddings\":null} | embeddings! shape embeddings[1]: row has more "
                                  "than 0 elements, the rows before it have 0"},
    {"{\"embeddings\":[[1],[]]}", "{\"embeddings\":null} | embeddings! shape embeddings[1]: row has 0 "
                                  "elements, the rows before it have 1"},
    {"{\"embeddings\":[[1],[null,2]]}", "{\"embeddings\":null} | embeddings! shape embeddings[1]: row has "
                                        "more than 1 elements, the rows before it have 1"},
    {"{\"embeddings\":[[1,2],3]}",
     "{\"embeddings\":null} | embeddings! shape embeddings[1]: got a number, expected an array"},
    {"{\"embeddings\":[[1,2],null]}",
     "{\"embeddings\":null} | embeddings! shape embeddings[1]: got null, expected an array"},
    {"{\"embeddings\":[1,[2]]}",
     "{\"embeddings\":null} | embeddings! shape embeddings[1]: got an array, expected a number"},
    {"{\"embeddings\":[[],[[1]]]}",
     "{\"embeddings\":null} | embeddings! shape embeddings[1][0]: got an array, expected a number"},
    {"{\"embeddings\":[[1,2],[3,\"x]\\\"[\"]],\"q\":[1]}",
     "{\"embeddings\":null,\"q\":null} | embeddings! type embeddings[1][1]: got a string, expected a number "
     "| q[1] 1"},
    {"{\"embeddings\":[\"x\"]}",
     "{\"embeddings\":null} | embeddings! type embeddings[0]: got a string, expected a number or an array"},
    {"{\"embeddings\":[[1],{\"a\":[1,{}]},2],\"q\":[1]}",
     "{\"embeddings\":null,\"q\":null} | embeddings! type embeddings[1]: got an object, expected an array | "
     "q[1] 1"},
    {"{\"embeddings\":[1,true]}",
     "{\"embeddings\":null} | embeddings! type embeddings[1]: got a boolean, expected a number"},
    {"{\"embeddings\":[false]}",
     "{\"embeddings\":null} | embeddings! type embeddings[0]: got a boolean, expected a number or an array"},
    {"{\"embeddings\":[1,1e400,3],\"q\":[-1e309]}",
     "{\"embeddings\":null,\"q\":null} | embeddings! range embeddings[1]: number is beyond the largest "
     "double, 1.8e308 | "
     "q! range q[0]: number is beyond the largest double, 1.8e308"},
    {"{\"embeddings\":[[[[[[[[[1]]]]]]]]],\"q\":[1]}",
     "{\"embeddings\":null,\"q\":null} | embeddings! shape embeddings[0][0][0][0][0][0][0][0]: array is "
     "nested deeper "
     "than 8 levels | q[1] 1"},
    {"{\"requests\":[{\"q\":[\"\"]},{\"q\":[[1],[2,3]]}]}",
     "{\"requests\":[{\"q\":null},{\"q\":null}]} | requests[0].q! type requests[0].q[0]: got a string, "
     "expected a number "
     "or an array | requests[1].q! shape requests[1].q[1]: row has more than 1 elements, the rows before it "
     "have 1"},
};

START_TEST(keeps_errors_of_arrays) {
    expect_rows(refused, PE_COUNT(refused));
    struct pe_error err = {0};
    struct lift *lift = lift_open(&lift_defaults, &err);
    static const char text[] = "{\"q\":[1],\"embeddings\":[{}],\"weights\":{\"a\":[[[]],1]}}";
    ck_assert_int_eq(lift_feed(lift, text, strlen(text), &err), PE_OK);
    ck_assert_int_eq(lift_finish(lift, &err), PE_OK);
    ck_assert_ptr_eq(lift_first_error(lift), lift_at(lift, 1));
    lift_close(lift);
}
END_TEST

/* No JSON: over at once, with the place. */
static const struct row broken[] = {
    {"{\"q\":[1,,2]}", "syntax q[1]: got ',', expected a number, at byte 8"},
    {"{\"q\":[,1]}", "syntax q[0]: got ',', expected a number or an array, at byte 6"},
    {"{\"q\":[1,]}", "syntax q[1]: got ']', expected a number, at byte 8"},
    {"{\"q\":[[1],]}", "syntax q[1]: got ']', expected an array, at byte 10"},
    {"{\"q\":[1 2]}", "syntax q[1]: got '2', expected ',' or ']', at byte 8"},
    {"{\"q\":[1}", "syntax q[1]: got '}', expected ',' or ']', at byte 7"},
    {"{\"q\":[1:2]}", "syntax q[1]: got ':', expected ',' or ']', at byte 7"},
    {"{\"q\":[[1][2]]}", "syntax q[1]: got '[', expected ',' or ']', at byte 9"},
    {"{\"q\":[NaN]}", "syntax q[0]: NaN and infinities are not JSON, at byte 6"},
    {"{\"q\":[1,Infinity]}", "syntax q[1]: NaN and infinities are not JSON, at byte 8"},
    {"{\"q\":[[0],[-Infinity]]}", "syntax q[1][0]: NaN and infinities are not JSON, at byte 12"},
    {"{\"q\":[nan]}", "syntax q[0]: got 'a', expected null, at byte 7"},
    {"{\"q\":[nul]}", "syntax q[0]: got ']', expected null, at byte 9"},
    {"{\"q\":[nulll]}", "syntax q[1]: got 'l', expected ',' or ']', at byte 10"},
    {"{\"q\":[inf]}", "syntax q[0]: got 'i', expected a number or an array, at byte 6"},
    {"{\"q\":[01]}", "syntax q[0]: got '1', expected no digit after a leading zero, at byte 7"},
    {"{\"q\":[+1]}", "syntax q[0]: got '+', expected a number or an array, at byte 6"},
    {"{\"q\":[.5]}", "syntax q[0]: got '.', expected a number or an array, at byte 6"},
    {"{\"q\":[5.]}", "syntax q[0]: got ']', expected a digit, at byte 8"},
    {"{\"q\":[1e]}", "syntax q[0]: got ']', expected a digit, at byte 8"},
    {"{\"q\":[1e+,2]}", "syntax q[0]: got ',', expected a digit, at byte 9"},
    {"{\"q\":[-]}", "syntax q[0]: got ']', expected a digit, at byte 7"},
    {"{\"q\":[--1]}", "syntax q[0]: got '-', expected a digit, at byte 7"},
    {"{\"q\":[1.2.3]}", "syntax q[0]: got '.', expected ',' or ']', at byte 9"},
    {"{\"q\":[1-2]}", "syntax q[0]: got '-', expected ',' or ']', at byte 7"},
    {"{\"q\":[1e400.5]}", "syntax q[0]: got '.', expected ',' or ']', at byte 11"},
    {"{\"q\":[0x1]}", "syntax q[1]: got 'x', expected ',' or ']', at byte 7"},
    {"{\"q\":[1\xc3\xa9]}", "syntax q[1]: got byte 0xc3, expected ',' or ']', at byte 7"},
    {"{\"q\":[1,\v2]}", "syntax q[1]: got byte 0x0b, expected a number, at byte 8"},
    {"{\"q\":[1,'2']}", "syntax q[1]: got ''', expected a number, at byte 8"},
    {"{\"q\":[1/*2*/]}", "syntax q[1]: got '/', expected ',' or ']', at byte 7"},
    {"{\"q\":[1,2", "syntax q[1]: text ends inside an array, at byte 9"},
    {"{\"q\":[1,2,", "syntax q[2]: text ends inside an array, at byte 10"},
    {"{\"q\":[", "syntax q[0]: text ends inside an array, at byte 6"},
    {"{\"q\":[nu", "syntax q[0]: text ends inside an array, at byte 8"},
    {"{\"q\":[\"x", "syntax q[0]: text ends inside an array, at byte 8"},
};

START_TEST(stops_at_broken_text) {
    for (size_t i = 0; i < PE_COUNT(broken); i++) {
        expect_outcome(broken[i].text, broken[i].expected);
    }
    static const char zero[] = "{\"q\":[1,\0]}";
    expect_outcome_of(&lift_defaults, zero, sizeof zero - 1,
                      "syntax q[1]: got byte 0x00, expected a number, at byte 8");
}
END_TEST

/* ---- Limits -------------------------------------------------------------------------------------------- */

/* text `unit` n times, then `end`, after `start` */
static char *repeated(const char *start, const char *unit, size_t n, const char *end) {
    size_t n_start = strlen(start), n_unit = strlen(unit), n_end = strlen(end);
    char *text = malloc(n_start + n * n_unit + n_end + 1);
    EXPECT(text, "no memory");
    memcpy(text, start, n_start);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + n_start + i * n_unit, unit, n_unit);
    }
    memcpy(text + n_start + n * n_unit, end, n_end + 1);
    return text;
}

START_TEST(limits_depth) {
    char *text = repeated("{\"q\":", "[", 10000, "");
    expect_outcome(text, "syntax q[0][0][0][0][0][0][0][0]: text ends inside an array, at byte 10005");
    free(text);
    char *inner = repeated("", "]", 10000, ",\"embeddings\":[1]}");
    text = repeated("{\"q\":", "[", 10000, inner);
    expect_outcome(
        text, "{\"q\":null,\"embeddings\":null} | q! shape q[0][0][0][0][0][0][0][0]: array is nested deeper "
              "than 8 levels | embeddings[1] 1");
    free(inner);
    free(text);
    text = repeated("{\"x\":", "[", 10000, "");
    expect_outcome(text, "syntax : nested deeper than 64 levels, at byte 68");
    free(text);
    text = repeated("", "{\"a\":", 65, "");
    expect_outcome(text, "syntax : nested deeper than 64 levels, at byte 320");
    free(text);
    text = repeated("", "[", 64, "");
    expect_outcome(text, text);
    free(text);
}
END_TEST

START_TEST(limits_values) {
    struct lift_options options = lift_defaults;
    options.value_limit = LIFT_ARRAY_COST + 100;
    char *text = repeated("{\"q\":[", "1,", 99, "1]}");
    char *expected = repeated("{\"q\":null} | q[100]", " 1", 100, "");
    expect_outcome_of(&options, text, strlen(text), expected);
    free(text);
    text = repeated("{\"q\":[", "1,", 100, "1]}");
    expect_outcome_of(&options, text, strlen(text), "limit q[100]: more than 228 numbers in all arrays");
    free(text);
    static const char two[] = "{\"q\":[1],\"embeddings\":[1]}";
    expect_outcome_of(
        &options, two, strlen(two),
        "limit embeddings: more than 228 numbers in all arrays, each array counting for 128 more");
    /* what was reserved for the first and not needed is there for the second */
    options.value_limit = 2 * LIFT_ARRAY_COST + 2;
    expect_outcome_of(&options, two, strlen(two),
                      "{\"q\":null,\"embeddings\":null} | q[1] 1 | embeddings[1] 1");
    /* what an array that is no tensor held is free again */
    options.value_limit = 2 * LIFT_ARRAY_COST + 100;
    text = repeated("{\"embeddings\":[", "1,", 99, "\"\"],\"q\":[");
    char *more = repeated(text, "1,", 99, "1]}");
    free(expected);
    expected = repeated(
        "{\"embeddings\":null,\"q\":null} | embeddings! type embeddings[99]: got a string, expected a number"
        " | q[100]",
        " 1", 100, "");
    expect_outcome_of(&options, more, strlen(more), expected);
    free(expected);
    free(more);
    free(text);
    struct pe_error err = {0};
    struct lift *lift = lift_open(&options, &err);
    text = repeated("{\"q\":[", "1,", 300, "1]}");
    ck_assert_int_eq(lift_feed(lift, text, strlen(text), &err), PE_ERR_LIMIT);
    ck_assert_str_eq(err.limit_name, LIFT_LIMIT_VALUES);
    ck_assert_uint_eq(err.limit, options.value_limit);
    ck_assert_uint_gt(err.got, err.limit);
    free(text);
    lift_close(lift);
}
END_TEST

START_TEST(limits_envelope) {
    static const char text[] = "{\"a\":\"0123456789\",\"q\":[1,2,3,4,5,6,7,8,9]}",
                      envelope[] = "{\"a\":\"0123456789\",\"q\":null}";
    struct lift_options options = lift_defaults;
    for (size_t limit = 0; limit < 40; limit++) {
        char expected[200];
        options.envelope_limit = limit;
        if (limit < strlen(envelope)) {
            snprintf(expected, sizeof expected, "limit : JSON outside its tensors is longer than %zu bytes",
                     limit);
        } else {
            snprintf(expected, sizeof expected, "%s | q[9] 1 2 3 4 5 6 7 8 9", envelope);
        }
        expect_outcome_of(&options, text, strlen(text), expected);
    }
}
END_TEST

START_TEST(limits_number) {
    char *text = repeated("{\"q\":[2,0.", "0", LIFT_MAX_NUMBER - 3, "1]}");
    expect_outcome(text, "{\"q\":null} | q[2] 2 0");
    free(text);
    static const char *const ends[] = {"11]}", "1.1]}", "1x]}", ".5.5.5.5]}", "eeeee]}"};
    text = repeated("{\"q\":[2,1", "0", LIFT_MAX_NUMBER - 1, ",1]}");
    expect_outcome(text, "{\"q\":null} | q! range q[1]: number is beyond the largest double, 1.8e308");
    free(text);
    for (size_t i = 0; i < PE_COUNT(ends); i++) {
        text = repeated("{\"q\":[2,0.", "0", LIFT_MAX_NUMBER - 2, ends[i]);
        expect_outcome(text, "limit q[1]: number of more than 4096 bytes, at byte 8");
        free(text);
    }
}
END_TEST

Suite *lift_suite(void) {
    Suite *suite = suite_create("lift");
    TCase *tests = tcase_create("lift");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, lifts_watched_arrays);
    tcase_add_test(tests, decodes_keys);
    tcase_add_test(tests, cannot_be_forged);
    tcase_add_test(tests, long_keys);
    tcase_add_test(tests, joins_paths);
    tcase_add_test(tests, keeps_errors_of_arrays);
    tcase_add_test(tests, stops_at_broken_text);
    tcase_add_test(tests, limits_depth);
    tcase_add_test(tests, limits_values);
    tcase_add_test(tests, limits_envelope);
    tcase_add_test(tests, limits_number);
    suite_add_tcase(suite, tests);
    return suite;
}
