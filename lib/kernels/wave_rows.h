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
                                     struct wave_angle *out) {
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

static void TARGETED(angles)(const struct pe_wave_turns *turns, size_t n, const struct wave_x *x,
                             struct wave_angle *out) {
    for (size_t g = 0; g < n; g++) {
        TARGETED(fine)(&turns[g], x, &out[g]);
    }
}

static PE_INLINE uint32_t TARGETED(row_of)(const struct pe_wave_turns *turns, size_t n,
                                           const struct wave_x *x, struct target to) {
    uint32_t bad = 0;
    for (size_t g = 0; g < n; g++) {
        struct wave_angle a;
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

/* Columns and their partners. */
static PE_INLINE void TARGETED(partner)(const double v[PE_WAVE_COLUMNS], double w[PE_WAVE_COLUMNS],
                                        bool pairs) {
    for (size_t j = 0; j < PE_WAVE_COLUMNS; j++) {
        w[j] = v[j ^ (pairs ? 1 : PE_WAVE_LANES)];
    }
}

static PE_INLINE void TARGETED(arrange)(const struct wave_angle *a, struct wave_order order,
                                        double v[PE_WAVE_COLUMNS]) {
    const double *first = order.swap ? a->cos : a->sin, *second = order.swap ? a->sin : a->cos;
    const size_t step = order.pairs ? 2 : 1, behind = order.pairs ? 1 : PE_WAVE_LANES;
    EACH_LANE(l) {
        v[(size_t)l * step] = first[l] * WAVE_RAISE;
        v[(size_t)l * step + behind] = second[l] * WAVE_RAISE;
    }
}

static void TARGETED(middles)(const struct pe_wave_turns *turns, const struct pe_wave_step *leaps, size_t n,
                              const struct wave_x *x, struct wave_order order,
                              struct wave_anchor (*out)[WAVE_GROUPS]) {
    for (size_t g = 0; g < n; g++) {
        double v[PE_WAVE_COLUMNS], w[PE_WAVE_COLUMNS];
        struct wave_angle angle;
        TARGETED(fine)(&turns[g], x, &angle);
        TARGETED(arrange)(&angle, order, v);
        if (!leaps) {
            memcpy(out[0][g].column, v, sizeof v);
            continue;
        }
        TARGETED(partner)(v, w, order.pairs);
        for (size_t k = 0; k < WAVE_BLOCKS / 2; k++) {
            const double *cb = leaps[g].cos[k], *sb = leaps[g].sin[k];
            double *lower = out[order.swap ? 4 + k : 3 - k][g].column,
                   *upper = out[order.swap ? 3 - k : 4 + k][g].column;
            EACH_COLUMN(j) {
                const double p = v[j] * cb[j], q = w[j] * sb[j];
                lower[j] = p - q;
                upper[j] = p + q;
            }
        }
    }
}

/* A group's rows of a block, with the sharp test. */
static PE_INLINE bool TARGETED(group_of)(const struct pe_wave_step *step, const struct wave_anchor *anchor,
                                         const struct place *to, size_t g) {
    double v[PE_WAVE_COLUMNS], w[PE_WAVE_COLUMNS];
    uint32_t differ = 0;
    EACH_COLUMN(j) {
        v[j] = anchor->column[j] * WAVE_LOWER;
    }
    TARGETED(partner)(v, w, to->pairs);
    for (int k = 0; k < WAVE_BLOCK / 2; k++) {
        const double *cb = step->cos[k], *sb = step->sin[k];
        float lower[PE_WAVE_COLUMNS], upper[PE_WAVE_COLUMNS];
        EACH_COLUMN(j) {
            const double p = v[j] * cb[j], q = w[j] * sb[j];
            /* the upper bounds of both, rounded, and in which bits the lower ones differ */
            const double up = p + WAVE_SLACK_BLOCK, down = p - WAVE_SLACK_BLOCK;
            lower[j] = (float)(up - q);
            upper[j] = (float)(up + q);
            differ |= float_bits(lower[j]) ^ float_bits((float)(down - q));
            differ |= float_bits(upper[j]) ^ float_bits((float)(down + q));
        }
        place_put(to, 3 - k, g, lower);
        place_put(to, 4 + k, g, upper);
    }
    return differ != 0;
}
