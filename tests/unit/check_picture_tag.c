/* SPDX-License-Identifier: MIT
 *
 * Entity tags of pictures: a hash of all that their bytes follow from, also of the libraries that make them.
 */
#include "call_run.h"
#include "suites.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

#define TARGET "/v1/encode?type=sinusoidal&d_model=4&positions=0:3"

/* The same look, said or not, has the same tag and the same bytes; another one has another tag. */
START_TEST(tags) {
    static const char *const same[] = {"&format=png", "&format=png&png.domain=1&png.theme=light",
                                       "&png.cell=16&format=png"};
    static const char *const others[] = {"&format=png&png.domain=2", "&format=png&png.cell=15",
                                         "&format=png&png.theme=dark", "&format=csv"};
    char request[200], tag[40] = "";
    struct call_try first = {.request = "GET " TARGET "&format=png"};
    call_try(&ground, &first);
    snprintf(tag, sizeof tag, "%s", call_try_header(&first, "ETag"));
    for (size_t i = 0; i < PE_COUNT(same) + PE_COUNT(others); i++) {
        bool alike = i < PE_COUNT(same);
        snprintf(request, sizeof request, "GET " TARGET "%s", alike ? same[i] : others[i - PE_COUNT(same)]);
        struct call_try try = {.request = request};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 200);
        ck_assert_msg((strcmp(call_try_header(&try, "ETag"), tag) == 0) == alike, "%s", request);
        ck_assert(!alike ||
                  (try.reply_n == first.reply_n && memcmp(try.reply, first.reply, try.reply_n) == 0));
        call_try_close(&try);
    }
    call_try_close(&first);
}
END_TEST

/* Pretended versions of what makes a picture's bytes; NULL: the real one's. The Makefile has all ask here. */
static const char *pretended_zlib, *pretended_libpng;

const char *__real_zlibVersion(void);
const char *__wrap_zlibVersion(void);
png_const_charp __real_png_get_libpng_ver(png_const_structrp writer);
png_const_charp __wrap_png_get_libpng_ver(png_const_structrp writer);

const char *__wrap_zlibVersion(void) {
    return pretended_zlib ? pretended_zlib : __real_zlibVersion();
}

png_const_charp __wrap_png_get_libpng_ver(png_const_structrp writer) {
    return pretended_libpng ? pretended_libpng : __real_png_get_libpng_ver(writer);
}

static void tag_of(char tag[40], const char *format, const char *zlib, const char *libpng) {
    char request[200];
    snprintf(request, sizeof request, "GET " TARGET "&format=%s", format);
    struct call_try try = {.request = request};
    pretended_zlib = zlib;
    pretended_libpng = libpng;
    call_try(&ground, &try);
    pretended_zlib = pretended_libpng = NULL;
    ck_assert_int_eq(try.status, 200);
    snprintf(tag, 40, "%s", call_try_header(&try, "ETag"));
    call_try_close(&try);
}

/* Other libraries may compress to other bytes: who has the old ones must not be told that they still hold. What is no
 * picture is not made by them. */
START_TEST(tags_tell_what_makes_the_bytes) {
    static const struct {
        const char *format, *zlib, *libpng;
        bool alike;
    } rows[] = {{"png", NULL, NULL, true},    {"png", "1.9.9", NULL, false}, {"png", NULL, "1.9.9", false},
                {"npy", "1.9.9", NULL, true}, {"npy", NULL, "1.9.9", true},  {"json", "1.9.9", "1.9", true}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char real[40], tag[40];
        tag_of(real, rows[i].format, NULL, NULL);
        tag_of(tag, rows[i].format, rows[i].zlib, rows[i].libpng);
        ck_assert_msg((strcmp(tag, real) == 0) == rows[i].alike, "row %zu: %s, %s", i, tag, real);
    }
    char one[40], other[40]; /* nor do two texts become one */
    tag_of(one, "png", "1.9.91", ".9");
    tag_of(other, "png", "1.9.9", "1.9");
    ck_assert_str_ne(one, other);
}
END_TEST

Suite *picture_tag_suite(void) {
    Suite *suite = suite_create("picture_tag");
    TCase *tests = tcase_create("tags");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, tags);
    tcase_add_test(tests, tags_tell_what_makes_the_bytes);
    suite_add_tcase(suite, tests);
    return suite;
}
