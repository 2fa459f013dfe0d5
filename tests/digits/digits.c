/* SPDX-License-Identifier: MIT
 *
 * digits [step] [texts]: floats as text and back, counted.
 *
 *     floats   every step-th of the 2^32, in lists as a reply has them: with each instruction set the very bytes that
 *              std::to_chars leads to, laid out by the rule of posenc_formats.h, and the same bits when read back
 *     texts    so many random ones, with more digits than a float has and any exponent, against strtod and strtof
 *
 * Without arguments a sample of some seconds; `make soak` asks for all: digits 1 20000000.
 */
#include "instructions.h"
#include "posenc_fields.h"
#include "random.h"
#include "to_chars.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 1024

/* ---- Floats -------------------------------------------------------------------------------------------- */

/* Fixed notation of n digits, `point` of them before the point: zeros where there are none. */
static char *fixed_put(char *at, const char *digits, int n, int point) {
    int first = point < 1 ? point - 1 : 0, last = n < point + 1 ? point + 1 : n;
    for (int i = first; i < last; i++) {
        if (i == point) {
            *at++ = '.';
        }
        *at++ = i >= 0 && i < n ? digits[i] : '0';
    }
    return at;
}

/* What posenc_formats.h says of a float, from the digits and the exponent of to_chars. */
static char *wanted_put(char *at, float value) {
    char text[33] = "", digits[16];
    if (!isfinite(value)) {
        return (char *)memcpy(at, "null", 4) + 4;
    }
    size_t length = to_chars_f32(text, fabsf(value));
    int n = 0;
    for (size_t i = 0; i < length && text[i] != 'e'; i++) {
        if (text[i] != '.') {
            digits[n++] = text[i];
        }
    }
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (signbit(value)) {
        *at++ = '-';
    }
    if (exponent >= -5 && exponent < 16) {
        return fixed_put(at, digits, n, exponent + 1);
    }
    *at++ = digits[0];
    for (int i = 1; i < n; i++) {
        if (i == 1) {
            *at++ = '.';
        }
        *at++ = digits[i];
    }
    return at + snprintf(at, 8, "e%d", exponent);
}

struct counts {
    uint64_t floats, wrong, texts, wrong_texts;
};

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The list back to floats; what has no place in a list of decimals by itself, and null as it was. */
static void list_read(const char *text, const char *end, const float *values, uint32_t *out, size_t n) {
    int8_t exponents[BLOCK];
    uint32_t digits[BLOCK];
    for (size_t i = 0; i < n && text < end;) {
        struct pe_decimals list = {.digits = digits, .exponents = exponents, .room = n - i};
        struct pe_number number = {.single = values[i]};
        text = pe_decimals_scan(&list, text, end);
        pe_decimals_f32(out + i, digits, exponents, list.n);
        i += list.n;
        if (i < n) {
            if (*text == 'n') {
                text += 4;
                number.single = values[i];
            } else if (pe_number_scan(&text, end, &number) != PE_NUMBER_OK) {
                return;
            }
            text++;
            out[i++] = bits_of(number.single);
        }
    }
}

static void block_check(struct counts *counts, const float *values, size_t n) {
    static char want[PE_NUMBERS_ROOM(BLOCK)], got[PE_NUMBERS_ROOM(BLOCK)];
    static uint32_t read[BLOCK];
    char *end = want;
    for (size_t i = 0; i < n; i++) {
        end = wanted_put(end, values[i]);
        *end++ = ',';
    }
    for (int set = 0; set < PE_INSTRUCTIONS_COUNT; set++) {
        instructions_limit((enum pe_instructions)set);
        if ((int)pe_instructions() != set) {
            continue;
        }
        size_t length = pe_numbers_write_f32(got, values, n);
        bool same = length == (size_t)(end - want) && memcmp(got, want, length) == 0;
        memset(read, 0xaa, sizeof read);
        list_read(got, got + length, values, read, n);
        same = same && memcmp(read, values, n * sizeof *values) == 0;
        if (!same && counts->wrong++ < 10) {
            fprintf(stderr, "digits: among the floats from %a on, %s\n", (double)values[0],
                    instructions_name((enum pe_instructions)set));
        }
    }
    counts->floats += n;
}

static void floats_check(struct counts *counts, uint64_t step) {
    float values[BLOCK];
    size_t n = 0;
    for (uint64_t bits = 0; bits >> 32 == 0; bits += step) {
        uint32_t word = (uint32_t)bits;
        memcpy(&values[n++], &word, sizeof word);
        if (n == BLOCK) {
            block_check(counts, values, n);
            n = 0;
        }
    }
    block_check(counts, values, n);
}

/* ---- Texts --------------------------------------------------------------------------------------------- */

static void text_make(uint64_t *state, char *text, size_t size) {
    uint64_t word = random_next(state);
    uint32_t bits = (uint32_t)word & 0xff7fffff;
    float value;
    memcpy(&value, &bits, sizeof value);
    int digits = (int)(word >> 59);
    if (word >> 32 & 1) { /* at the middle to the next float and around it */
        double next = (double)nextafterf(value, HUGE_VALF);
        snprintf(text, size, "%.*g", digits + 1, isfinite(next) ? ((double)value + next) / 2 : (double)value);
    } else if (word >> 33 & 1) {
        snprintf(text, size, "%" PRIu64 ".%0*" PRIu64 "e%d", word % 1000, digits + 1, word >> 34 & 0xffff,
                 (int)(word >> 50 & 127) - 64);
    } else {
        snprintf(text, size, "%.*g", digits + 1, (double)value);
    }
}

static void texts_check(struct counts *counts, uint64_t n) {
    uint64_t state = 1;
    char text[128];
    for (; counts->texts < n; counts->texts++) {
        struct pe_number number;
        text_make(&state, text, sizeof text);
        double value = strtod(text, NULL);
        float single = strtof(text, NULL);
        bool read = pe_number_parse(text, strlen(text), &number) == PE_NUMBER_OK;
        if ((!read || memcmp(&value, &number.value, sizeof value) != 0 ||
             bits_of(single) != bits_of(number.single)) &&
            counts->wrong_texts++ < 10) {
            fprintf(stderr, "digits: %s\n", text);
        }
    }
}

int main(int argc, char **argv) {
    struct counts counts = {0};
    uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 2003;
    floats_check(&counts, step > 0 ? step : 1);
    texts_check(&counts, argc > 2 ? strtoull(argv[2], NULL, 10) : 300000);
    printf("floats %" PRIu64 " written and read, %" PRIu64 " lists wrong; texts %" PRIu64 ", %" PRIu64
           " wrong\n",
           counts.floats, counts.wrong, counts.texts, counts.wrong_texts);
    return counts.wrong || counts.wrong_texts;
}
