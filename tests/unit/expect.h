/* SPDX-License-Identifier: MIT
 *
 * libcheck's assertions, without what makes them slow: its own tell the runner their place each time they hold, in
 * case that what follows crashes, and that took up to nine tenths of a suite's time. A crash is now told with the
 * name of its test; where it was a sanitizer says, or a debugger (CK_FORK=no).
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <check.h>

#undef ck_assert_msg
#define ck_assert_msg(condition, ...)                                                                        \
    ((condition) ? (void)0                                                                                   \
                 : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #condition "' failed", __VA_ARGS__))

#define EXPECT(condition, ...) ck_assert_msg(condition, __VA_ARGS__)

#endif
