/* SPDX-License-Identifier: MIT
 *
 * What holds for every rotary encoding, whatever its frequencies, layout, sections and axes
 * (rotary_setups.c): the reasons why one rotates.
 */
#include "rotary_setups.h"
#include "unit/call_run.h"
#include "unit/suites.h"

#include <math.h>
#include <string.h>

#define W ROTARY_WIDTH

static struct rotary r;
static const size_t one_row[] = {1, W};

static void teardown(void) {
    rotary_close(&r);
}

/* x [W] at one position. */
static double *turned(const double *x, double position, bool keys, bool inverse) {
    struct pe_positions at = rotary_positions(&r, 1, position, 0);
    return rotary_apply(&r, x, &(struct pe_apply_args){.positions = &at, .keys = keys, .inverse = inverse}, 2,
                        one_row);
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < W; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* cos and sin of all pairs at a position. */
static void angles_at(double position, bool keys, double *cos, double *sin) {
    double coordinates[PE_MAX_AXES] = {position, position, position, position};
    struct pe_spot spot = {.position = coordinates, .axes = r.axes, .keys = keys};
    struct pe_angles out = {.n = r.pairs.n, .cos = cos, .sin = sin, .step = 1};
    pe_plan_row(r.plan)->angles(pe_plan_view(r.plan), &spot, PE_DTYPE_F64, &out);
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

/* Rm q . Rn k is that of m + s and n + s, however far: frequencies are of pairs, not of columns. */
START_TEST(scores_depend_on_the_distance_alone) {
    static const double far[] = {1, -7.5, 1000, 1048576};
    rotary_open(&r, _i);
    const double *q = rotary_numbers(&r, W, 1), *k = rotary_numbers(&r, W, 2);
    double wanted = dot(turned(q, 12, false, false), turned(k, 5, true, false));
    ck_assert_double_ne(wanted, dot(turned(q, 13, false, false), turned(k, 5, true, false)));
    for (size_t i = 0; i < PE_COUNT(far); i++) {
        if (r.setup->grows && far[i] > 2000) {
            continue; /* out of its range, or near it */
        }
        double got = dot(turned(q, 12 + far[i], false, false), turned(k, 5 + far[i], true, false));
        double room = r.setup->grows && far[i] > 100 ? 1e-9 : 1e-13; /* large and small add up to the same */
        ck_assert_msg(fabs(got - wanted) <= room * r.gain * r.gain * 16, "%s: %.17g, not %.17g at %g",
                      r.setup->params, got, wanted, far[i]);
    }
}
END_TEST

/* cos^2 + sin^2 is the square of the attention factor; what a query grows by its key shrinks by. */
START_TEST(lengths_are_kept_times_the_factor) {
    static const double positions[] = {0, 1, -3.25, 77, 1500};
    double cos[W], sin[W], cos_k[W], sin_k[W];
    rotary_open(&r, _i);
    for (size_t i = 0; i < PE_COUNT(positions); i++) {
        angles_at(positions[i], false, cos, sin);
        angles_at(positions[i], true, cos_k, sin_k);
        for (size_t p = 0; p < r.pairs.n; p++) {
            double square = hypot(cos[p], sin[p]) * hypot(cos_k[p], sin_k[p]), wanted = r.gain * r.gain;
            ck_assert_msg(fabs(square - wanted) <= 1e-15 * wanted, "%s: pair %zu at %g", r.setup->params, p,
                          positions[i]);
            ck_assert(r.setup->grows || (cos[p] == cos_k[p] && sin[p] == sin_k[p]));
        }
    }
    const double *x = rotary_numbers(&r, W, 3);
    const double *y = turned(x, 123, false, false);
    for (size_t c = 2 * r.pairs.n; c < W; c++) { /* columns that are in no pair pass */
        ck_assert_mem_eq(&x[c], &y[c], sizeof *x);
    }
    if (!r.setup->grows) {
        double before = dot(x, x), after = dot(y, y);
        for (size_t c = 2 * r.pairs.n; c < W; c++) {
            before -= x[c] * x[c];
            after -= x[c] * x[c];
        }
        ck_assert_double_eq_tol(after, before * r.gain * r.gain, 1e-13);
    }
}
END_TEST

START_TEST(position_0_is_the_identity) {
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, W, 4), *y = turned(x, 0, false, false);
    for (size_t c = 0; c < W && !r.setup->starts_turned; c++) {
        double wanted = c < 2 * r.pairs.n ? x[c] * r.gain : x[c];
        ck_assert_msg(y[c] == wanted, "%s: column %zu is %.17g, not %.17g", r.setup->params, c, y[c], wanted);
    }
}
END_TEST

START_TEST(the_inverse_turns_back) {
    static const double positions[] = {0, 1, -3.25, 77, 1500, 20000, 1e5};
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, W, 5);
    for (size_t i = 0; i < PE_COUNT(positions) * 2; i++) {
        double position = positions[i / 2];
        if (r.setup->grows && position > (i % 2 ? 10000 : 30000)) {
            continue; /* numbers beyond 1e150, which are refused as they might grow as much again */
        }
        const double *back = turned(turned(x, position, i % 2, false), position, i % 2, true);
        for (size_t c = 0; c < W; c++) {
            ck_assert_msg(fabs(back[c] - x[c]) <= 4e-15, "%s: column %zu at %g is %.17g, not %.17g",
                          r.setup->params, c, position, back[c], x[c]);
        }
    }
}
END_TEST

/* What is turned to p and shifted by k is what is turned to p + k, the columns that pass included. */
START_TEST(the_shift_turns_on) {
    static const double distances[] = {1, -2.5, 100};
    rotary_open(&r, _i);
    const double *x = rotary_numbers(&r, W, 8);
    struct pe_positions at = {.length = 3, .axes = 1, .start = 0, .step = 1};
    for (size_t i = 0; i < PE_COUNT(distances); i++) {
        struct pe_error err = {0};
        struct pe_work work;
        struct pe_shift_result out;
        const struct pe_shift_args args = {
            .size = sizeof args, .plan = r.plan, .distance = distances[i], .positions = &at, .matrix = true};
        if (pe_shift_open(r.arena, &work, &out, &args, &err)) {
            ck_assert_msg(strstr(r.setup->params, "rope_axes") != NULL, "%s: %s", r.setup->params, err.text);
            return; /* the axes of an image are not shifted by one number */
        }
        ck_assert(pe_work_run(&work) && out.exact);
        const double *m = out.matrix.data, *from = turned(x, 7, false, false),
                     *wanted = turned(x, 7 + distances[i], false, false);
        for (size_t c = 0; c < W; c++) {
            double got = dot(m + c * W, from);
            ck_assert_msg(fabs(got - wanted[c]) <= 1e-13, "%s: column %zu by %g is %.17g, not %.17g",
                          r.setup->params, c, distances[i], got, wanted[c]);
        }
    }
}
END_TEST

/* Back to float16, of numbers that are `part` of what comes to its largest. */
static int back_to_halves(double part, struct pe_tensor *out) {
    double *x = rotary_numbers(&r, W, 6);
    const struct pe_positions at = rotary_positions(&r, 1, 0, 0);
    const struct pe_tensor vectors = {.data = x, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, W}};
    struct pe_error err = {0};
    struct pe_work work;
    for (size_t c = 0; c < W; c++) {
        x[c] = (c % 2 ? -1 : 1) * part * 65504 * r.gain;
    }
    const struct pe_apply_args args = {.size = sizeof args,
                                       .plan = r.plan,
                                       .embeddings = &vectors,
                                       .positions = &at,
                                       .dtype = PE_DTYPE_F16,
                                       .inverse = true};
    if (pe_apply_open(r.arena, &work, out, &args, &err) == PE_OK) {
        ck_assert(pe_work_run(&work));
    }
    return err.code;
}

/* What is refused is what may overflow, whatever the attention factor: the way back divides by it. */
START_TEST(the_inverse_fits_where_its_numbers_do) {
    struct pe_tensor out;
    struct pe_error err = {0};
    rotary_open(&r, _i);
    ck_assert_msg(back_to_halves(0.4, &out) == PE_OK, "%s", r.setup->params);
    ck_assert_msg(pe_tensor_check_finite(&out, false, &err) == PE_OK, "%s", r.setup->params);
    ck_assert_msg(back_to_halves(1.2, &out) == PE_ERR_RANGE, "%s", r.setup->params);
}
END_TEST

/* Pairs of one angle at once, some at a time, or one: the bits are those of the pair and the position. */
START_TEST(pieces_have_the_bits_of_the_whole) {
    double cos[W], sin[W], piece[2], coordinates[PE_MAX_AXES] = {3, -1, 2.5, 7};
    rotary_open(&r, _i);
    struct pe_spot spot = {.position = coordinates, .axes = r.axes};
    struct pe_angles all = {.n = r.pairs.n, .cos = cos, .sin = sin, .step = 1};
    const struct pe_encoding *row = pe_plan_row(r.plan);
    row->angles(pe_plan_view(r.plan), &spot, PE_DTYPE_F64, &all);
    for (size_t p = 0; p < r.pairs.n; p++) {
        struct pe_angles one = {.first = p, .n = 1, .cos = piece, .sin = piece + 1, .step = 1};
        row->angles(pe_plan_view(r.plan), &spot, PE_DTYPE_F64, &one);
        ck_assert(piece[0] == cos[p] && piece[1] == sin[p]);
        one.sin = NULL;
        piece[0] = 9;
        row->angles(pe_plan_view(r.plan), &spot, PE_DTYPE_F64, &one);
        ck_assert(piece[0] == cos[p]);
    }
}
END_TEST

/* ---- Layouts and axes ---------------------------------------------------------------------------------- */

/* Columns taken to the other layout, turned there, and taken back are those turned here: bit by bit. */
START_TEST(layouts_are_permutations_of_each_other) {
    double moved[W];
    struct pe_pairs here, there;
    rotary_open(&r, ROTARY_LAYOUTS * _i);
    const double *x = rotary_numbers(&r, W, 6), *wanted = turned(x, 41.5, false, false);
    double keep[2][W];
    here = r.pairs;
    memcpy(keep[0], x, sizeof keep[0]);
    memcpy(keep[1], wanted, sizeof keep[1]);
    rotary_close(&r);
    rotary_open(&r, ROTARY_LAYOUTS * _i + 1);
    there = r.pairs;
    ck_assert_uint_eq(here.n, there.n);
    memcpy(moved, keep[0], sizeof moved);
    for (size_t p = 0; p < 2 * here.n; p++) {
        size_t from = p / 2 * here.step + p % 2 * here.apart, to = p / 2 * there.step + p % 2 * there.apart;
        moved[to] = keep[0][from];
    }
    const double *got = turned(moved, 41.5, false, false);
    for (size_t p = 0; p < 2 * here.n; p++) {
        size_t from = p / 2 * here.step + p % 2 * here.apart, to = p / 2 * there.step + p % 2 * there.apart;
        ck_assert_mem_eq(&got[to], &keep[1][from], sizeof *got);
    }
}
END_TEST

enum { B = 2, T = 3, H = 2 };

/* Rows of a batch turn alike, heads too, and the order of the axes changes nothing but the order. */
START_TEST(batch_and_heads_turn_alike) {
    static const size_t bthd[] = {B, T, H, W}, bhtd[] = {B, H, T, W};
    double other[B * T * H * W];
    rotary_open(&r, _i);
    struct pe_positions at = rotary_positions(&r, T, 3, 2);
    const double *x = rotary_numbers(&r, B * T * H * W, 7);
    const double *got =
        rotary_apply(&r, x, &(struct pe_apply_args){.positions = &at, .axes = "bthd"}, 4, bthd);
    for (size_t i = 0; i < B * T * H; i++) {
        size_t b = i / (T * H), t = i / H % T, h = i % H;
        const double *alone = turned(x + i * W, 3 + 2 * (double)t, false, false);
        ck_assert_mem_eq(got + i * W, alone, W * sizeof *got);
        memcpy(other + ((b * H + h) * T + t) * W, x + i * W, W * sizeof *x);
    }
    const double *swapped =
        rotary_apply(&r, other, &(struct pe_apply_args){.positions = &at, .axes = "bhtd"}, 4, bhtd);
    for (size_t i = 0; i < B * T * H; i++) {
        size_t b = i / (T * H), t = i / H % T, h = i % H;
        ck_assert_mem_eq(swapped + ((b * H + h) * T + t) * W, got + i * W, W * sizeof *got);
    }
}
END_TEST

/* ---- Tables -------------------------------------------------------------------------------------------- */

static struct pe_tensor table_of(enum pe_trig_form form, unsigned output, const struct pe_positions *at) {
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_rotary_result out;
    struct pe_rotary_args args = {.size = sizeof args,
                                  .plan = r.plan,
                                  .positions = at,
                                  .form = form,
                                  .outputs = output,
                                  .dtype = PE_DTYPE_F32};
    ck_assert_msg(pe_rotary_open(r.arena, &work, &out, &args, &err) == PE_OK, "%s", err.text);
    ck_assert(pe_work_run(&work));
    return form == PE_TRIG_PACKED    ? out.packed
           : form == PE_TRIG_COMPLEX ? out.as_complex
           : output == PE_ROTARY_SIN ? out.sin
                                     : out.cos;
}

/* The forms hold the same numbers in other places. */
START_TEST(forms_hold_the_same_numbers) {
    rotary_open(&r, _i);
    struct pe_positions at = rotary_positions(&r, T, -1, 1.5);
    const float *cos = table_of(PE_TRIG_HALF, PE_ROTARY_COS, &at).data;
    const float *sin = table_of(PE_TRIG_HALF, PE_ROTARY_SIN, &at).data;
    const float *cos_full = table_of(PE_TRIG_FULL, PE_ROTARY_COS, &at).data;
    const float *sin_full = table_of(PE_TRIG_FULL, PE_ROTARY_SIN, &at).data;
    const float *packed = table_of(PE_TRIG_PACKED, PE_ROTARY_TABLE, &at).data;
    const float *complex = table_of(PE_TRIG_COMPLEX, PE_ROTARY_TABLE, &at).data;
    size_t n = r.pairs.n;
    for (size_t i = 0; i < T * n; i++) {
        size_t t = i / n, p = i % n, first = 2 * t * n + p * r.pairs.step, second = first + r.pairs.apart;
        ck_assert(cos[i] == cos_full[first] && cos[i] == cos_full[second]);
        ck_assert(sin[i] == sin_full[first] && sin[i] == sin_full[second]);
        ck_assert(cos[i] == packed[2 * t * n + p] && sin[i] == packed[(2 * t + 1) * n + p]);
        ck_assert(cos[i] == complex[2 * i] && sin[i] == complex[2 * i + 1]);
    }
}
END_TEST

Suite *rotary_suite(void) {
    Suite *suite = suite_create("rotary");
    TCase *each = tcase_create("every setup");
    int n = ROTARY_LAYOUTS * rotary_setup_count;
    suite_add_tcase(suite, each);
    tcase_add_checked_fixture(each, NULL, teardown);
    tcase_add_loop_test(each, scores_depend_on_the_distance_alone, 0, n);
    tcase_add_loop_test(each, lengths_are_kept_times_the_factor, 0, n);
    tcase_add_loop_test(each, position_0_is_the_identity, 0, n);
    tcase_add_loop_test(each, the_inverse_turns_back, 0, n);
    tcase_add_loop_test(each, the_shift_turns_on, 0, n);
    tcase_add_loop_test(each, the_inverse_fits_where_its_numbers_do, 0, n);
    tcase_add_loop_test(each, pieces_have_the_bits_of_the_whole, 0, n);
    tcase_add_loop_test(each, layouts_are_permutations_of_each_other, 0, rotary_setup_count);
    tcase_add_loop_test(each, batch_and_heads_turn_alike, 0, n);
    tcase_add_loop_test(each, forms_hold_the_same_numbers, 0, n);
    return suite;
}
