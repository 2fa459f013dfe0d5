/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON text. Independent of the locale both ways (strtod is only ever asked in the C locale, which
 * the daemon never leaves).
 *
 * Writing: the fewest digits that read back to the same value, and of those the nearest. Fixed notation where
 * 1e-5 <= |x| < 1e16 (`0.00001`, `16777216.0`), else an exponent (`1e-7`, `1.5e20`); a whole number keeps its
 * ".0", and -0 is `-0.0`, so what was a float is read back as one.
 *
 * Reading: the grammar of RFC 8259 and nothing more, rounded once to the nearest double, ties to even.
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every writer may use this much of `out`, though no text is longer than 25 bytes. No terminating zero. */
#define NUMBER_ROOM 48

/* Each returns the length of the text. NaN and the infinities, which JSON does not have, give `null`. */
size_t number_write_f32(char *out, float value);
size_t number_write_f64(char *out, double value);
size_t number_write_int(char *out, int64_t value);

enum number_status {
    NUMBER_OK,
    NUMBER_SYNTAX,  /* not a JSON number: 01, +1, .5, 5., 1e, NaN ... */
    NUMBER_OVERFLOW /* beyond the largest double, as 1e400 */
};

struct number {
    double value; /* on overflow the infinity of its sign; too small is zero */
    float single; /* the text rounded once to float */
    bool twice;   /* (float)value is another: rounding twice would go wrong */
};

/* Reads the number that begins at *text and ends before `end` or at the first byte that cannot continue it.
 * *text becomes its end, or on NUMBER_SYNTAX the byte that is wrong (`end` when bytes are missing). */
enum number_status number_scan(const char **text, const char *end, struct number *out);
/* The whole of text[0..length) must be the number. */
enum number_status number_parse(const char *text, size_t length, struct number *out);

#endif
