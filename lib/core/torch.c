/* SPDX-License-Identifier: MIT
 *
 * PyTorch hands vectors of 8 floats to SLEEF, and what is left over by pow to the C library. Both are a few
 * fixed steps, the same on every machine that has fused products, so they are told here step by step. With
 * [a + b] for a sum of two floats that stands for more digits than one has:
 *
 *     exp(x)   q = round(x/ln 2), s = x - q ln 2, with ln 2 in two parts;
 *              2^q (1 + (s + s^2 P(s))), P of degree 5, all fused
 *     b^y      whole blocks of 16 elements: b = m 2^e, m in [3/4, 3/2), z = [(m - 1)/(m + 1)];
 *              ln b = [e ln 2 + 2z + z^3 [2/3 + z^2 Q(z^2)]], then exp of [y ln b] as above, in pairs
 *     b^y      the other n % 16: b = m 2^e, m in 16 pieces each with a centre c;
 *              log2 b = e + log2 c + R(m/c - 1), then 2^(y log2 b) by a table of 2^(k/32), all in doubles
 *
 * The constants of the polynomials are facts of those two: of SLEEF 3.5 (expf, powf of 1 ulp; sleefsimdsp.c)
 * and of glibc since 2.28, musl and others (powf; Arm's optimized routines). 16 because a loop of PyTorch
 * (vectorized_loop in aten/src/ATen/native/cpu/Loops.h) takes two vectors at a time. With AVX-512 it takes
 * 32, with neither all powers and exponentials are the C library's, and builds with MKL take exp from there.
 */
#include "core/torch.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 16

/* ---- Sums of two floats -------------------------------------------------------------------------------- */

struct pair {
    float high, low;
};

/* a + b and b's and a's digits that were lost, exactly. */
static struct pair sum(float a, float b) {
    float s = a + b, of_b = s - a;
    float rest_a = a - (s - of_b), rest_b = b - of_b;
    return (struct pair){s, rest_a + rest_b};
}

static struct pair product(float a, float b) {
    float p = a * b;
    return (struct pair){p, fmaf(a, b, -p)};
}

static struct pair pair_add(struct pair a, struct pair b) {
    struct pair s = sum(a.high, b.high);
    float low = s.low + a.low;
    return (struct pair){s.high, low + b.low};
}

static struct pair pair_add_float(struct pair a, float b) {
    struct pair s = sum(a.high, b);
    return (struct pair){s.high, s.low + a.low};
}

static struct pair pair_mul(struct pair a, struct pair b) {
    struct pair p = product(a.high, b.high);
    return (struct pair){p.high, fmaf(a.high, b.low, fmaf(a.low, b.high, p.low))};
}

static struct pair pair_scale(struct pair a, float b) {
    struct pair p = product(a.high, b);
    return (struct pair){p.high, fmaf(a.low, b, p.low)};
}

static struct pair pair_square(struct pair a) {
    struct pair p = product(a.high, a.high);
    return (struct pair){p.high, fmaf(a.high + a.high, a.low, p.low)};
}

/* a/b, by the reciprocal of b's first part and one step of Newton's. */
static struct pair quotient(float a, struct pair b) {
    float t = 1 / b.high;
    struct pair q = product(a, t);
    float missing = fmaf(-b.low, t, fmaf(-b.high, t, 1));
    return (struct pair){q.high, fmaf(q.high, missing, q.low)};
}

/* ((c[0] x + c[1]) x + c[2]) ... */
static float polynomial(const float *c, size_t n, float x) {
    float value = c[0];
    for (size_t i = 1; i < n; i++) {
        value = fmaf(value, x, c[i]);
    }
    return value;
}

/* ---- SLEEF --------------------------------------------------------------------------------------------- */

#define LOG2_E   0x1.715476p+0F
#define LN2_HIGH 0x1.62e4p-1F /* few bits, so that q times it is exact */
#define LN2_LOW  0x1.7f7d1cp-20F

float pe_torch_exp(float x) {
    static const float p[] = {0x1.a057b4p-13F, 0x1.6d2d92p-10F, 0x1.11114cp-7F,
                              0x1.5554f4p-5F,  0x1.555556p-3F,  0x1p-1F};
    float q = rintf(x * LOG2_E);
    float s = fmaf(q, -LN2_LOW, fmaf(q, -LN2_HIGH, x));
    float above = fmaf(s * s, polynomial(p, 6, s), s);
    return ldexpf(1 + above, (int)q);
}

static struct pair pair_log(float a) {
    static const float q[] = {0x1.ec2d14p-3F, 0x1.23f494p-2F, 0x1.999bb2p-2F};
    const struct pair ln2 = {0x1.62e43p-1F, -0x1.05c61p-29F};
    const struct pair two_thirds = {0x1.555554p-1F, 0x1.fb6706p-29F};
    int e;
    float m = frexpf(a, &e);
    if (m < 0.75F) {
        m *= 2;
        e--;
    }
    struct pair z = quotient(m - 1, sum(1, m)), square = pair_square(z);
    struct pair tail = pair_scale(square, polynomial(q, 3, square.high));
    struct pair factor = sum(tail.high, two_thirds.high);
    factor.low += tail.low + two_thirds.low;
    struct pair log = pair_add(pair_scale(ln2, (float)e), (struct pair){2 * z.high, 2 * z.low});
    return pair_add(log, pair_mul(pair_mul(square, z), factor));
}

static float pair_exp(struct pair x) {
    static const float p[] = {0x1.655decp-10F, 0x1.1222d6p-7F, 0x1.555e98p-5F, 0x1.5554bcp-3F,
                              0x1.fffff6p-2F};
    float q = rintf((x.high + x.low) * LOG2_E);
    struct pair s = pair_add_float(pair_add_float(x, q * -LN2_HIGH), q * -LN2_LOW);
    s = sum(s.high, s.low);
    struct pair above = pair_add(s, pair_scale(pair_square(s), polynomial(p, 5, s.high)));
    struct pair whole = sum(1, above.high);
    whole.low += above.low;
    return ldexpf(whole.high + whole.low, (int)q);
}

static float block_pow(float base, float exponent) {
    return pair_exp(pair_scale(pair_log(base), exponent));
}

/* ---- The C library ------------------------------------------------------------------------------------- */

/* 1/c and log2 c of the centres. */
static const struct {
    double reciprocal, log2;
} pieces[16] = {{0x1.661ec79f8f3bep+0, -0x1.efec65b963019p-2}, {0x1.571ed4aaf883dp+0, -0x1.b0b6832d4fca4p-2},
                {0x1.49539f0f010bp+0, -0x1.7418b0a1fb77bp-2},  {0x1.3c995b0b80385p+0, -0x1.39de91a6dcf7bp-2},
                {0x1.30d190c8864a5p+0, -0x1.01d9bf3f2b631p-2}, {0x1.25e227b0b8eap+0, -0x1.97c1d1b3b7afp-3},
                {0x1.1bb4a4a1a343fp+0, -0x1.2f9e393af3c9fp-3}, {0x1.12358f08ae5bap+0, -0x1.960cbbf788d5cp-4},
                {0x1.0953f419900a7p+0, -0x1.a6f9db6475fcep-5}, {1, 0},
                {0x1.e608cfd9a47acp-1, 0x1.338ca9f24f53dp-4},  {0x1.ca4b31f026aap-1, 0x1.476a9543891bap-3},
                {0x1.b2036576afce6p-1, 0x1.e840b4ac4e4d2p-3},  {0x1.9c2d163a1aa2dp-1, 0x1.40645f0c6651cp-2},
                {0x1.886e6037841edp-1, 0x1.88e9c2c1b9ff8p-2},  {0x1.767dcf5534862p-1, 0x1.ce0a44eb17bccp-2}};
#define PIECES_BEGIN     0x3f330000 /* the bits of 0.699, where the first begins */
#define PIECES_BEGIN_OF  0x1.66p-1F
#define PIECES_BITS_DOWN 19 /* of float32's 23, which leaves 16 pieces to an octave */

/* 2^(k/32), rounded to the nearest. */
static const double roots[32] = {1,
                                 0x1.059b0d3158574p+0,
                                 0x1.0b5586cf9890fp+0,
                                 0x1.11301d0125b51p+0,
                                 0x1.172b83c7d517bp+0,
                                 0x1.1d4873168b9aap+0,
                                 0x1.2387a6e756238p+0,
                                 0x1.29e9df51fdee1p+0,
                                 0x1.306fe0a31b715p+0,
                                 0x1.371a7373aa9cbp+0,
                                 0x1.3dea64c123422p+0,
                                 0x1.44e086061892dp+0,
                                 0x1.4bfdad5362a27p+0,
                                 0x1.5342b569d4f82p+0,
                                 0x1.5ab07dd485429p+0,
                                 0x1.6247eb03a5585p+0,
                                 0x1.6a09e667f3bcdp+0,
                                 0x1.71f75e8ec5f74p+0,
                                 0x1.7a11473eb0187p+0,
                                 0x1.82589994cce13p+0,
                                 0x1.8ace5422aa0dbp+0,
                                 0x1.93737b0cdc5e5p+0,
                                 0x1.9c49182a3f090p+0,
                                 0x1.a5503b23e255dp+0,
                                 0x1.ae89f995ad3adp+0,
                                 0x1.b7f76f2fb5e47p+0,
                                 0x1.c199bdd85529cp+0,
                                 0x1.cb720dcef9069p+0,
                                 0x1.d5818dcfba487p+0,
                                 0x1.dfc97337b9b5fp+0,
                                 0x1.ea4afa2a490dap+0,
                                 0x1.f50765b6e4540p+0};

static double double_log2(float a) {
    static const double r[] = {0x1.27616c9496e0bp-2, -0x1.71969a075c67ap-2, 0x1.ec70a6ca7baddp-2,
                               -0x1.7154748bef6c8p-1, 0x1.71547652ab82bp+0};
    int e;
    uint32_t bits;
    float m = frexpf(a, &e);
    if (m < PIECES_BEGIN_OF) {
        m *= 2;
        e--;
    }
    memcpy(&bits, &m, sizeof bits);
    size_t i = (bits - PIECES_BEGIN) >> PIECES_BITS_DOWN & 15;
    double x = (double)m * pieces[i].reciprocal - 1, square = x * x;
    double high = r[0] * x + r[1], middle = r[2] * x + r[3], low = r[4] * x + (pieces[i].log2 + e);
    low = middle * square + low;
    return high * (square * square) + low;
}

static float double_exp2(double x) {
    double k = rint(x * 32), s = x - k / 32;
    int whole = (int)floor(k / 32);
    double high = 0x1.c6af84b912394p-5 * s + 0x1.ebfce50fac4f3p-3;
    double low = 0x1.62e42ff0c52d6p-1 * s + 1;
    low = high * (s * s) + low;
    return (float)(low * ldexp(roots[(int)k - 32 * whole], whole));
}

static float rest_pow(float base, float exponent) {
    return double_exp2((double)exponent * double_log2(base));
}

float pe_torch_pow(float base, float exponent, size_t i, size_t n) {
    bool in_block = i < n - n % BLOCK;
    return in_block ? block_pow(base, exponent) : rest_pow(base, exponent);
}
