/* SPDX-License-Identifier: MIT
 *
 * identify: its hypotheses. A row rather than a branch: to know another convention or mistake, add its row.
 */
#include "ops/identify.h"

#define RIGHT .first = {0, 0}, .step = {2, 2}

const struct pe_shape pe_identify_shapes[] = {
    {.name = "vaswani", RIGHT},
    {.name = "roformer", .halves = true, RIGHT, .penalty = 1},
    {.name = "tensor2tensor", .halves = true, .minus_one = true, RIGHT, .penalty = 2},
    {.name = "interleaved, cosines first", .cos_first = true, RIGHT, .penalty = 3},
    {.name = "halves, cosines first", .halves = true, .cos_first = true, RIGHT, .penalty = 3},
    {.name = "interleaved, half_minus_one", .minus_one = true, RIGHT, .penalty = 3},
    {.name = "halves, cosines first, half_minus_one",
     .halves = true,
     .cos_first = true,
     .minus_one = true,
     RIGHT,
     .penalty = 4},
    {.name = "interleaved, cosines first, half_minus_one",
     .cos_first = true,
     .minus_one = true,
     RIGHT,
     .penalty = 4},
    {.name = "vaswani",
     .first = {0, 2},
     .step = {4, 4},
     .penalty = 8,
     .mistake = "the exponent of column j is 2*j/d, which counts columns where the formula counts pairs"},
    {.name = "vaswani",
     .first = {0, 1},
     .step = {2, 2},
     .penalty = 8,
     .mistake = "the exponent of column j is j/d, so that a cosine turns more slowly than its sine"},
    {.name = "vaswani",
     .first = {0, 2},
     .step = {2, 2},
     .penalty = 8,
     .mistake = "cosines have the exponent 2(i+1)/d in place of 2i/d, that of the next pair"},
    {.name = "roformer",
     .halves = true,
     .first = {0, 2},
     .step = {2, 2},
     .penalty = 9,
     .mistake = "cosines have the exponent 2(i+1)/d in place of 2i/d, that of the next pair"},
    {.name = "roformer",
     .halves = true,
     .first = {0, 1},
     .step = {2, 2},
     .penalty = 9,
     .mistake = "cosines have the exponent (2i+1)/d in place of 2i/d, so that they turn more slowly than "
                "their sines"},
};
const size_t pe_identify_n_shapes = PE_COUNT(pe_identify_shapes);

const struct pe_shape pe_identify_rotary = {.name = "rope", .halves = true, .cos_first = true, RIGHT};

const struct pe_identify_arithmetic pe_identify_arithmetics[] = {
    {PE_ARITHMETIC_EXACT, 0, NULL, NULL, false},
    {PE_ARITHMETIC_FLOAT32_EXP, 3, "float32 angles", "angles in float32 (frequencies by exp)", false},
    {PE_ARITHMETIC_FLOAT32_POW, 3.5, "float32 angles", "angles in float32 (frequencies by pow)", false},
    {PE_ARITHMETIC_FLOAT32_POW, 4, "float32 angles", "angles in float32 (positions over powers of the base)",
     true},
    {PE_ARITHMETIC_GGML, 6, "float32 angles of ggml", "angles in float32, step by step as in ggml", false},
    {PE_ARITHMETIC_BFLOAT16_POSITIONS, 5, "bfloat16 positions", "positions rounded to bfloat16", false},
    {PE_ARITHMETIC_FLOAT16_POSITIONS, 5, "float16 positions", "positions rounded to float16", false},
};
const size_t pe_identify_n_arithmetics = PE_COUNT(pe_identify_arithmetics);

const struct pe_identify_pass pe_identify_passes[] = {
    {.arithmetic = PE_ARITHMETIC_EXACT},
    {PE_ARITHMETIC_BFLOAT16_POSITIONS, PE_DTYPE_BF16, 0},
    {PE_ARITHMETIC_BFLOAT16_POSITIONS, PE_DTYPE_BF16, 1},
    {PE_ARITHMETIC_BFLOAT16_POSITIONS, PE_DTYPE_BF16, 2},
    {PE_ARITHMETIC_FLOAT16_POSITIONS, PE_DTYPE_F16, 0},
    {PE_ARITHMETIC_FLOAT16_POSITIONS, PE_DTYPE_F16, 1},
    {PE_ARITHMETIC_FLOAT16_POSITIONS, PE_DTYPE_F16, 2},
};
const size_t pe_identify_n_passes = PE_COUNT(pe_identify_passes);
