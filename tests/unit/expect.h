/* SPDX-License-Identifier: MIT
 *
 * An assertion for loops over millions: ck_assert reports its place to the runner on every pass, which costs more
 * than what is checked.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <check.h>

#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                       \
        }                                                                                                    \
    } while (0)

#endif
