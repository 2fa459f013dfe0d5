/* SPDX-License-Identifier: MIT
 *
 * The kernels of wave.c in plain C, compiled once per instruction set: TARGETED(x) names a function for it.
 * All loops go over the lanes of a group, and have neither branches nor calls, so that compilers make vectors of
 * them.
 */

static PE_INLINE void TARGETED(phase)(const struct pe_wave_turns *turns, const struct wave_x *x,
                                      uint64_t p[PE_WAVE_LANES]) {
    const uint64_t w0 = x->whole & UINT32_MAX, w1 = x->whole >> 32;
    const uint64_t y0 = x->fraction & UINT32_MAX, y1 = x->fraction >> 32, sign = 0 - (uint64_t)x->negative;
    EACH_LANE(l) {
        p[l] = x->whole * turns->high[l] + (w0 * (turns->low[l] >> 32) >> 32);
    }
    if (w1) {
        EACH_LANE(l) {
            p[l] += w1 * (turns->low[l] >> 32) + (w1 * (turns->low[l] & UINT32_MAX) >> 32);
        }
    }
    if (x->fraction) {
        EACH_LANE(l) {
            const uint64_t upper = turns->high[l] >> 32;
            p[l] += y1 * upper + (y1 * (turns->high[l] & UINT32_MAX) >> 32) + (y0 * upper >> 32);
        }
    }
    EACH_LANE(l) {
        p[l] = ((p[l] ^ sign) - sign) + WAVE_EIGHTH;
    }
}

static PE_INLINE void TARGETED(fine)(const struct pe_wave_turns *turns, const struct wave_x *x,
                                     struct wave_anchor *out) {
    uint64_t p[PE_WAVE_LANES];
    TARGETED(phase)(turns, x, p);
    EACH_LANE(l) {
        const double u = pe_bits_double((p[l] >> 10 & WAVE_MANTISSA) | WAVE_QUARTER) - WAVE_MIDDLE, z = u * u;
        const double rest =
            (pe_bits_double((p[l] & WAVE_CUT) | WAVE_LARGE_BITS) - WAVE_LARGE) * WAVE_CUT_UNIT;
        const uint64_t quarter = p[l] >> 62;
        double s = WAVE_SIN_5 + z * WAVE_SIN_6, c = WAVE_COS_6 + z * WAVE_COS_7;
        s = WAVE_SIN_3 + z * (WAVE_SIN_4 + z * s);
        c = WAVE_COS_4 + z * (WAVE_COS_5 + z * c);
        s = WAVE_SIN_1 + z * (WAVE_SIN_2 + z * s);
        c = WAVE_COS_2 + z * (WAVE_COS_3 + z * c);
        c = 1 + z * (WAVE_COS_1 + z * c);
        s = u * WAVE_SIN_0 + u * (WAVE_SIN_0_REST + z * s);
        const uint64_t sine = pe_bits_of(s + c * rest), cosine = pe_bits_of(c - s * rest);
        const uint64_t change = (sine ^ cosine) & (0 - (quarter & 1));
        out->sin[l] = pe_bits_double(sine ^ change ^ (quarter & 2) << 62);
        out->cos[l] = pe_bits_double(cosine ^ change ^ ((quarter + 1) & 2) << 62);
    }
}

static void TARGETED(anchors)(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                              struct wave_anchor *out) {
    for (size_t g = 0; g < n; g++) {
        TARGETED(fine)(&turns[g], x, &out[g]);
    }
}

static PE_INLINE uint32_t TARGETED(row_of)(const struct pe_wave_turns *turns, size_t n,
                                           const struct wave_x *x, struct target to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        struct wave_anchor a;
        uint32_t differ = 0;
        TARGETED(fine)(&turns[g], x, &a);
        EACH_LANE(l) {
            const float sin = (float)(a.sin[l] + WAVE_SLACK_ROW), cos = (float)(a.cos[l] + WAVE_SLACK_ROW);
            differ |= float_bits(sin) ^ float_bits((float)(a.sin[l] - WAVE_SLACK_ROW));
            differ |= float_bits(cos) ^ float_bits((float)(a.cos[l] - WAVE_SLACK_ROW));
            to.first[l * (int)to.step] = to.swap ? cos : sin;
            to.first[l * (int)to.step + to.behind] = to.swap ? sin : cos;
        }
        to.first += PE_WAVE_LANES * to.step;
        bad |= (uint32_t)(differ != 0) << g;
    }
    return bad;
}

static uint32_t TARGETED(row)(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                              const struct pe_wave_out *out) {
    BY_TARGET(TARGETED(row_of), turns, n, x)
}

static PE_INLINE uint32_t TARGETED(block_of)(const struct pe_wave_step *steps, size_t n,
                                             struct wave_anchor *anchors, struct target to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        const struct wave_anchor a = anchors[g];
        uint32_t differ = 0;
        for (size_t k = 0; k < PE_WAVE_TURNINGS - 1; k++) {
            const double *cb = steps[g].cos[k], *sb = steps[g].sin[k];
            float *before = to.first + (3 - k) * to.stride, *after = to.first + (4 + k) * to.stride;
            EACH_LANE(l) {
                const double p = a.sin[l] * cb[l], q = a.cos[l] * sb[l];
                const double r = a.cos[l] * cb[l], s = a.sin[l] * sb[l];
                /* the upper bounds of all four, rounded, and in which bits the lower ones differ */
                const double p_up = p + WAVE_SLACK_BLOCK, p_down = p - WAVE_SLACK_BLOCK;
                const double r_up = r + WAVE_SLACK_BLOCK, r_down = r - WAVE_SLACK_BLOCK;
                const float sin_before = (float)(p_up - q), sin_after = (float)(p_up + q);
                const float cos_before = (float)(r_up + s), cos_after = (float)(r_up - s);
                const int at = l * (int)to.step;
                differ |= float_bits(sin_before) ^ float_bits((float)(p_down - q));
                differ |= float_bits(sin_after) ^ float_bits((float)(p_down + q));
                differ |= float_bits(cos_before) ^ float_bits((float)(r_down + s));
                differ |= float_bits(cos_after) ^ float_bits((float)(r_down - s));
                before[at] = to.swap ? cos_before : sin_before;
                before[at + to.behind] = to.swap ? sin_before : cos_before;
                after[at] = to.swap ? cos_after : sin_after;
                after[at + to.behind] = to.swap ? sin_after : cos_after;
            }
        }
        to.first += PE_WAVE_LANES * to.step;
        bad |= (uint32_t)(differ != 0) << g;
        const double *cb = steps[g].cos[PE_WAVE_TURNINGS - 1], *sb = steps[g].sin[PE_WAVE_TURNINGS - 1];
        EACH_LANE(l) {
            anchors[g].cos[l] = a.cos[l] * cb[l] - a.sin[l] * sb[l];
            anchors[g].sin[l] = a.sin[l] * cb[l] + a.cos[l] * sb[l];
        }
    }
    return bad;
}
