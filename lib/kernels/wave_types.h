/* SPDX-License-Identifier: MIT
 *
 * What the kernels of wave.c and wave_avx512.c share: the table that each instruction set fills in, and the
 * numbers of the method, which wave.c explains.
 */
#ifndef PE_WAVE_TYPES_H
#define PE_WAVE_TYPES_H

#include "kernels/wave.h"

#define WAVE_GROUPS 16 /* at a time, at most: 256 columns, of which the nearest cache holds the tables */
#define WAVE_BLOCK  8  /* rows */
#define WAVE_BLOCKS 8  /* between anchors that are computed */

/* |x| = whole + fraction * 2^-64, to within 2^-64. */
struct wave_x {
    uint64_t whole, fraction;
    bool negative;
};

struct wave_angle {
    double cos[PE_WAVE_LANES], sin[PE_WAVE_LANES];
};

/* The columns of a group in a middle of rows, lifted. */
struct wave_anchor {
    _Alignas(64) double column[PE_WAVE_COLUMNS];
};

/* In which order columns are, and, of pairs, whether cosines come first. Then rows go backward: cosines and sines of
 * an angle are sines and cosines of what it lacks of a quarter. */
struct wave_order {
    bool pairs, swap;
};

/* Of the error bounds see wave.c. */
#define WAVE_SLACK_ROW   0x1p-50
#define WAVE_SLACK_BLOCK 0x1.4p-49

/* The cheap test of blocks: values are lifted by RAISE, and doubtful where as integers, below their 29 lowest bits,
 * they are less than 2^17 above a tie of floats, or their magnitude is below 2^-12. That can be seen in their halves
 * moved up by 1 and 3, for signed comparisons. */
#define WAVE_RAISE        (1 + 0x1.6p-37)
#define WAVE_LOWER        (1 - 0x1.6p-37)
#define WAVE_NEAR_SHIFTED UINT64_C(0x7e60000080100000)

/* In plain C lower words are told from a tie as floats, to whose exponent a bit is added that keeps them from being
 * subnormal. Magnitudes are seen of what is rounded: TO_LARGE added, those above 2^-12 have the bit LARGE_FLOAT. 2^-12
 * itself has not, as smaller ones are rounded to it. */
#define WAVE_LACKING     UINT32_C(0x1fffffff)
#define WAVE_TIE_FLOAT   UINT32_C(0x50000000)
#define WAVE_NEAR_FLOAT  0x1.04p+1F /* 2^17 above a tie */
#define WAVE_TO_LARGE    UINT32_C(0x067fffff)
#define WAVE_LARGE_FLOAT UINT32_C(0x40000000)

/* The same for AVX-512, where magnitudes are doubtful below 2^-11, in the upper words of halves. */
#define WAVE_SEEN_WORDS 0x7fff1fff
#define WAVE_TIE_WORDS  0x00001000
#define WAVE_NEAR_WORDS 0x3f400002

/* That of rows: they are lifted by LIFT, doubtful less than 3.25 * 2^16 above a tie, or below 2^-11. */
#define WAVE_LIFT (1 + 0x1.2p-36)
#define WAVE_SEEN UINT64_C(0x7fffffff1fffffff)
#define WAVE_TIE  UINT64_C(0x0000000010000000)
#define WAVE_NEAR UINT64_C(0x3f40000000034000) /* 2^-11, and 3.25 * 2^16 */
/* The same moved up by 1 and 3. */
#define WAVE_NEAR_ROW_SHIFTED UINT64_C(0x7e800000801a0000)

/* cos(2*pi*u) and sin(2*pi*u)/u for |u| <= 1/8, in z = u^2: those polynomials of their length whose largest
 * absolute error, of sin itself, is least, found by Remez' exchange. With rounded coefficients it is 2^-55.9 and
 * 2^-58 (the first of the sine in two parts), and of the rough ones 2^-53.1 and 2^-49. */
#define WAVE_COS_1       (-0x1.3bd3cc9be45dep+4)
#define WAVE_COS_2       0x1.03c1f081b5aacp+6
#define WAVE_COS_3       (-0x1.55d3c7e3c90fdp+6)
#define WAVE_COS_4       0x1.e1f50683565a9p+5
#define WAVE_COS_5       (-0x1.a6d1ec795faf9p+4)
#define WAVE_COS_6       0x1.f9cc4154b7f1bp+2
#define WAVE_COS_7       (-0x1.b264cc8f5a8a1p+0)
#define WAVE_SIN_0       0x1.921fb54442d18p+2
#define WAVE_SIN_0_REST  0x1.1a62633145c07p-52
#define WAVE_SIN_1       (-0x1.4abbce625be21p+5)
#define WAVE_SIN_2       0x1.466bc6775679ep+6
#define WAVE_SIN_3       (-0x1.32d2cce12a10dp+6)
#define WAVE_SIN_4       0x1.50782e686846ap+5
#define WAVE_SIN_5       (-0x1.e2ff49f812bfbp+3)
#define WAVE_SIN_6       0x1.e398872c1a8a2p+1
#define WAVE_ROUGH_COS_1 (-0x1.3bd3cc9be458bp+4)
#define WAVE_ROUGH_COS_2 0x1.03c1f081b078ep+6
#define WAVE_ROUGH_COS_3 (-0x1.55d3c7dbfe0edp+6)
#define WAVE_ROUGH_COS_4 0x1.e1f4fb611a514p+5
#define WAVE_ROUGH_COS_5 (-0x1.a6c9c22a3f358p+4)
#define WAVE_ROUGH_COS_6 0x1.f3dbf28400fdep+2
#define WAVE_ROUGH_SIN_0 0x1.921fb54442c54p+2
#define WAVE_ROUGH_SIN_1 (-0x1.4abbce625124dp+5)
#define WAVE_ROUGH_SIN_2 0x1.466bc66c98e0ap+6
#define WAVE_ROUGH_SIN_3 (-0x1.32d2c3ac1f05bp+6)
#define WAVE_ROUGH_SIN_4 0x1.5070820b03f8ep+5
#define WAVE_ROUGH_SIN_5 (-0x1.dcdbb0e4600eep+3)

/* Phases are shifted by 1/8 turn, so that the two bits on top tell the nearest quarter; the 52 bits below them
 * become the mantissa of a double in [1/4, 1/2), of which 3/8 is the middle. The ten that are left are cut, with
 * half of them added before (ROUNDING), or brought in as the mantissa's end of a LARGE number. */
#define WAVE_EIGHTH     (UINT64_C(1) << 61)
#define WAVE_ROUNDING   (WAVE_EIGHTH + (UINT64_C(1) << 9))
#define WAVE_MANTISSA   (UINT64_MAX >> 12)
#define WAVE_QUARTER    UINT64_C(0x3fd0000000000000)
#define WAVE_MIDDLE     0.375
#define WAVE_CUT        UINT64_C(0x3ff)
#define WAVE_LARGE      0x1p52
#define WAVE_LARGE_BITS UINT64_C(0x4330000000000000)
#define WAVE_CUT_UNIT   0x1.921fb54442d18p-62 /* 2*pi * 2^-64 */

/* Groups are counted from the pointers given; a set bit of the result says that a value of the group may be
 * rounded wrongly. */
struct wave_kernel {
    /* The angles themselves, at x. */
    void (*angles)(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                   struct wave_angle *out);
    /* A row at x. */
    uint32_t (*row)(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                    const struct pe_wave_out *out);
    /* The middles of the eight blocks around x. leaps NULL: x itself, of one block. */
    void (*middles)(const struct pe_wave_turns *turns, const struct pe_wave_step *leaps, size_t n,
                    const struct wave_x *x, struct wave_order order, struct wave_anchor (*out)[WAVE_GROUPS]);
    /* The rows of blocks around their middles; what is bad of each. */
    void (*blocks)(const struct pe_wave_step *steps, size_t n,
                   const struct wave_anchor (*middles)[WAVE_GROUPS], size_t n_blocks,
                   const struct pe_wave_out *out, uint32_t bad[WAVE_BLOCKS]);
    /* Has what was written past the caches arrive before what is written next. NULL: there is no such. */
    void (*settle)(void);
};

static inline struct wave_order wave_order_of(const struct pe_wave_out *out) {
    return (struct wave_order){.pairs = out->step == 2, .swap = out->step == 2 && out->cos < out->sin};
}

extern const struct wave_kernel pe_wave_avx512; /* wave_avx512.c, where PE_AVX2 */

#endif
