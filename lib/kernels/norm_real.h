/* SPDX-License-Identifier: MIT
 *
 * The text of layer normalisation for one type; norm.c includes it once for each and says what the names
 * mean.
 */

static double NAMED(mean)(const REAL *x, size_t n) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lane[l] += (double)x[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lane[l] += (double)x[i];
    }
    return lanes_sum(lane) / (double)n;
}

static double NAMED(variance)(const REAL *x, size_t n, double mean) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            double off = (double)x[i + l] - mean;
            lane[l] += off * off;
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        double off = (double)x[i] - mean;
        lane[l] += off * off;
    }
    return lanes_sum(lane) / (double)n;
}

static void NAMED(norm)(const struct pe_norm *norm, const REAL *x, REAL *out) {
    const REAL *weight = norm->weight, *bias = norm->bias;
    size_t n = norm->width;
    double mean = NAMED(mean)(x, n), spread = sqrt(NAMED(variance)(x, n, mean) + norm->eps);
    double share = spread == 0 ? 0 : isinf(spread) ? (double)NAN : 1 / spread;
    for (size_t i = 0; i < n; i++) {
        out[i] = (REAL)(((double)x[i] - mean) * share * (double)weight[i] + (double)bias[i]);
    }
}

#undef REAL
#undef NAMED
