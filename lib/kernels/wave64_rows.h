/* SPDX-License-Identifier: MIT
 *
 * The kernels of wave64.c, compiled once per instruction set: TARGETED(x) names a function for it. Loops go over the
 * lanes of a group, without branches or calls, so that compilers make vectors of them.
 */

static PE_INLINE void TARGETED(anchor_of)(const struct phases *p, struct pe_wave64_angles *out) {
    EACH_LANE(l) {
        /* the rest of the angle in radians: main is exact, 53 bits of two numbers of 26 */
        const double main = p->upper[l] * (TWO_PI_HIGH * 0x1p-35);
        const double less = p->upper[l] * (TWO_PI_LOW * 0x1p-35) + p->lower[l] * (TWO_PI * 0x1p-88);
        const double a = main + less, z = a * a;
        /* its sine: near, and what is left */
        const double near = (main + GRID) - GRID, off = (main - near) + less;
        const double cubic =
            a * z *
            (-0x1.5555555555555p-3 +
             z * (0x1.1111111111111p-7 + z * (-0x1.a01a01a01a01ap-13 + z * 0x1.71de3a556c734p-19)));
        const double s1 = near, s2 = off + cubic;
        /* its cosine: near^2/2 is exact */
        const double square = 0.5 * near * near, large = (square + GRID) - GRID;
        const double quartic =
            z * z * (0x1.5555555555555p-5 + z * (-0x1.6c16c16c16c17p-10 + z * 0x1.a01a01a01a01ap-16));
        const double c1 = 1 - large, c2 = (large - square) + (quartic - (near * off + 0.5 * off * off));
        /* turned by the part of the circle */
        const double ch = p->cos_high[l], cl = p->cos_low[l], sh = p->sin_high[l], sl = p->sin_low[l];
        const double cf = ch + cl, sf = sh + sl;
        const double cos_main = ch * c1 - sh * s1, cos_rest = (cf * c2 + cl * c1) - (sf * s2 + sl * s1);
        const double sin_main = sh * c1 + ch * s1, sin_rest = (sf * c2 + sl * c1) + (cf * s2 + cl * s1);
        /* and by the quarter */
        const uint64_t quarter = p->quarter[l], odd = 0 - (quarter & 1);
        const uint64_t main_change = (pe_bits_of(cos_main) ^ pe_bits_of(sin_main)) & odd;
        const uint64_t rest_change = (pe_bits_of(cos_rest) ^ pe_bits_of(sin_rest)) & odd;
        const uint64_t cos_sign = ((quarter + 1) & 2) << 62, sin_sign = (quarter & 2) << 62;
        const double cm = pe_bits_double(pe_bits_of(cos_main) ^ main_change ^ cos_sign);
        const double cr = pe_bits_double(pe_bits_of(cos_rest) ^ rest_change ^ cos_sign);
        const double sm = pe_bits_double(pe_bits_of(sin_main) ^ main_change ^ sin_sign);
        const double sr = pe_bits_double(pe_bits_of(sin_rest) ^ rest_change ^ sin_sign);
        out->cos_high[l] = ((cm + cr) + GRID) - GRID;
        out->cos_low[l] = (cm - out->cos_high[l]) + cr;
        out->sin_high[l] = ((sm + sr) + GRID) - GRID;
        out->sin_low[l] = (sm - out->sin_high[l]) + sr;
    }
}

static void TARGETED(anchor)(const struct pe_wave64_group *group, int64_t twice,
                             struct pe_wave64_angles *out) {
    struct phases p;
    phases_of(group, twice, &p);
    TARGETED(anchor_of)(&p, out);
}

/* The rows before and behind the middle by what b tells. The top bit of the result: a value is too small. */
static PE_INLINE uint64_t TARGETED(two)(const struct pe_wave64_angles *restrict a,
                                        const struct pe_wave64_angles *restrict b,
                                        double *restrict cos_before, double *restrict sin_before,
                                        double *restrict cos_after, double *restrict sin_after) {
    const uint64_t magnitude = UINT64_MAX >> 1;
    uint64_t small = 0;
    EACH_LANE(l) {
        const double c1 = b->cos_high[l], c2 = b->cos_low[l], s1 = b->sin_high[l], s2 = b->sin_low[l];
        const double ch = a->cos_high[l], cl = a->cos_low[l], sh = a->sin_high[l], sl = a->sin_low[l];
        const double cf = ch + cl, sf = sh + sl;
        const double p = sh * c1, q = ch * s1, r = ch * c1, t = sh * s1;
        const double p_rest = sf * c2 + sl * c1, q_rest = cf * s2 + cl * s1;
        const double r_rest = cf * c2 + cl * c1, t_rest = sf * s2 + sl * s1;
        const double sb = (p - q) + (p_rest - q_rest), sa = (p + q) + (p_rest + q_rest);
        const double cb = (r + t) + (r_rest + t_rest), ca = (r - t) + (r_rest - t_rest);
        /* differences below 0 have the top bit */
        small |= ((pe_bits_of(sb) & magnitude) - LEAST_BITS) | ((pe_bits_of(sa) & magnitude) - LEAST_BITS) |
                 ((pe_bits_of(cb) & magnitude) - LEAST_BITS) | ((pe_bits_of(ca) & magnitude) - LEAST_BITS);
        cos_before[l] = cb;
        sin_before[l] = sb;
        cos_after[l] = ca;
        sin_after[l] = sa;
    }
    return small;
}

static bool TARGETED(block)(const struct pe_wave64_group *group, const struct pe_wave64_angles *anchor,
                            const struct target *to) {
    uint64_t small = 0;
    for (unsigned k = 0; k < ROWS / 2; k++) {
        const unsigned rows[2] = {ROWS / 2 - 1 - k, ROWS / 2 + k};
        double spare[4][LANES], *cos[2] = {spare[0], spare[1]}, *sin[2] = {spare[2], spare[3]};
        bool any = false;
        for (int i = 0; i < 2; i++) {
            if (rows[i] >= to->from && rows[i] < to->end) {
                cos[i] = to->cos + (rows[i] - to->from) * to->stride;
                sin[i] = to->sin + (rows[i] - to->from) * to->stride;
                any = true;
            }
        }
        if (any) {
            small |= TARGETED(two)(anchor, &group->aside[k], cos[0], sin[0], cos[1], sin[1]);
        }
    }
    return small >> 63;
}
