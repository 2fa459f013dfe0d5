/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on learned tables of images: tables of one size with images of another, and kernels that
 * differ under one name. Each test is named after a project and its report.
 */
#include "report_run.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A body with a table of n rows [n, 1] whose numbers are 1, in memory that lives until free. */
static char *with_table(const char *before, size_t rows, const char *after) {
    size_t size = strlen(before) + strlen(after) + 4 * rows + 10, used;
    char *body = malloc(size);
    used = (size_t)snprintf(body, size, "%s[", before);
    for (size_t i = 0; i < rows; i++) {
        used += (size_t)snprintf(body + used, size - used, i ? ",[1]" : "[1]");
    }
    snprintf(body + used, size - used, "]%s", after);
    return body;
}

static void refused(const char *request, char *body, const char *slug, const char *field,
                    const char *const *words) {
    report_refused(request, body, slug, field, words);
    free(body);
}

/* A checkpoint for images of 384 was loaded into a model for 224: "shape [1, 577, 1024] from checkpoint, the
 * shape in current model is [1, 197, 1024]". 577 = 24*24 + 1, 197 = 14*14 + 1. */
START_TEST(comfyui_reactor_20_577_rows_for_197) {
    refused("POST /v1/encode",
            with_table("{\"encoding\":{\"type\":\"learned\",\"grid\":[14,14],\"cls_rows\":1,\"table\":", 577,
                       "},\"positions\":\"0:197\"}"),
            "shape", "encoding.table", REPORT_WORDS("577", "24 x 24", "14 x 14", "197", "convert", "resize"));
    refused("POST /v1/encode",
            with_table("{\"encoding\":{\"type\":\"learned\",\"table\":", 197, "},\"positions\":\"0:577\"}"),
            "range", "positions[197]",
            REPORT_WORDS("197 rows", "14 x 14", "577", "24 x 24", "convert", "resize"));
    char *body = with_table(
        "{\"resize\":{\"to_grid\":[14,14],\"prefix_rows\":1,\"kernel\":\"bicubic\"},\"tensor\":", 577, "}");
    struct report_tensor got = report_tensor("POST /v1/convert", body, "tensor");
    ck_assert(got.rank == 2 && got.dim[0] == 197 && got.dim[1] == 1);
    for (size_t i = 0; i < got.n; i++) {
        ck_assert_double_eq_tol(got.values[i], 1, 1e-7);
    }
    free(body);
}
END_TEST

/* Relative tables of BEiT for 24 x 24 and 14 x 14 patches: 2212 = 47*47 + 3 and 732 = 27*27 + 3, where the
 * three are behind the grid. */
START_TEST(x2_vlm_15_2212_rows_for_732) {
    char *body = with_table(
        "{\"resize\":{\"to_grid\":[47,47],\"suffix_rows\":3,\"kernel\":\"bicubic\"},\"tensor\":", 732, "}");
    struct report_tensor got = report_tensor("POST /v1/convert", body, "tensor");
    ck_assert(got.rank == 2 && got.dim[0] == 2212);
    free(body);
    refused("POST /v1/convert",
            with_table("{\"resize\":{\"to_grid\":[27,27],\"from_grid\":[27,27],\"suffix_rows\":3,"
                       "\"kernel\":\"bicubic\"},\"tensor\":",
                       2212, "}"),
            "shape", "tensor", REPORT_WORDS("2212", "27 x 27", "732", "47 x 47 and 3"));
}
END_TEST

#define LINE(kernel, to)                                                                                     \
    "POST /v1/convert?dtype=float64",                                                                        \
        "{\"tensor\":[[0],[1],[2],[3]],\"resize\":{\"to_rows\":" #to ",\"kernel\":\"" kernel "\"}}",         \
        "tensor", REPORT_SHAPE(to, 1), 6e-9

/* An own bicubic kernel differed from torch's: a is -3/4 there, and the last number repeats at the edges. */
START_TEST(mlx_vlm_1241_1243_bicubic_is_torchs) {
    report_expect(LINE("bicubic", 6),
                  REPORT_VALUES(-.08680556, .40625, 1.21296296, 1.78703704, 2.59375, 3.08680556));
    report_expect(LINE("bicubic", 8), REPORT_VALUES(-.10546875, .19140625, .66796875, 1.296875, 1.703125,
                                                    2.33203125, 2.80859375, 3.10546875));
}
END_TEST

/* "cubic" there has a = -1/2: images and tables that were resized by the other kernel differ. Both have their
 * names here, and so has what happens at the edges: weights of what is not there left out (jax: 0.9375 and
 * -0.0578704 by their sum) or given to the last number. */
START_TEST(jax_15768_cmmd_5_two_cubic_kernels) {
    report_expect(LINE("bicubic_keys", 6),
                  REPORT_VALUES(-.05787037, .4375, 1.16666667, 1.83333333, 2.5625, 3.05787037));
    report_expect(LINE("bicubic_antialias", 6),
                  REPORT_VALUES(-.06578947, .41176471, 1.16666667, 1.83333333, 2.58823529, 3.06578947));
    report_refused("POST /v1/convert", "{\"tensor\":[[0],[1]],\"resize\":{\"to_rows\":3}}", "missing",
                   "resize.kernel", REPORT_WORDS("bicubic", "bicubic_keys", "bicubic_antialias"));
}
END_TEST

/* A table for images of another size was resized with the class row in the grid, or as a square where it was
 * none, or without antialiasing: each is said. The class row comes out as it is. */
START_TEST(timm_750_2543_tables_of_images) {
    report_expect("POST /v1/convert",
                  "{\"tensor\":[[9],[0],[1],[2],[3]],\"resize\":{\"to_grid\":[1,4],\"from_grid\":[1,4],"
                  "\"prefix_rows\":1,\"kernel\":\"bicubic\"}}",
                  "tensor", REPORT_SHAPE(5, 1), 0, REPORT_VALUES(9, 0, 1, 2, 3));
    report_refused("POST /v1/convert",
                   "{\"tensor\":[[9],[0],[1],[2],[3]],\"resize\":{\"to_grid\":[3,3],\"kernel\":\"bicubic\"}}",
                   "missing", "resize.from_grid", REPORT_WORDS("5 rows", "no square", "2 x 2 and 1"));
    /* From 8 to 2 by a kernel that is four times as wide: torch's interpolate with antialias. */
    report_expect("POST /v1/convert",
                  "{\"tensor\":[[1],[0],[0],[0],[0],[0],[0],[0]],\"resize\":{\"to_rows\":2,"
                  "\"kernel\":\"bilinear_antialias\"},\"dtype\":\"float64\"}",
                  "tensor", REPORT_SHAPE(2, 1), 1e-15, REPORT_VALUES(2.5 / 14, 0));
}
END_TEST

Suite *reports_images_suite(void) {
    Suite *suite = suite_create("reports_images");
    TCase *tests = tcase_create("images");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, comfyui_reactor_20_577_rows_for_197);
    tcase_add_test(tests, x2_vlm_15_2212_rows_for_732);
    tcase_add_test(tests, mlx_vlm_1241_1243_bicubic_is_torchs);
    tcase_add_test(tests, jax_15768_cmmd_5_two_cubic_kernels);
    tcase_add_test(tests, timm_750_2543_tables_of_images);
    return suite;
}
