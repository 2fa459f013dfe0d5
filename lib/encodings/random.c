/* SPDX-License-Identifier: MIT
 *
 * A random vector for every position: value (p, c) is a function of seed, position and column alone, so
 * nothing is stored, any position can be asked for at once, and the vector of a position has the same bits in
 * any sequence. In high dimensions random vectors are nearly orthogonal: unique and bounded, but the vectors
 * of neighbours are no closer than any others. What sinusoids add to that is smoothness and the shift map.
 *
 *     words = Philox4x32-10(key = seed (low word, high word),
 *                           counter = p as two's complement of 64 bits (low word, high word), c, 0)
 *     gaussian:  std * n(words)             n standard normal, by Box and Muller
 *     uniform:   std * sqrt(3) * u(words)   u in [-1, 1), whose standard deviation is 1/sqrt(3)
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/rng.h"

#define BUFFER  256  /* doubles made at a time, on the stack */
#define LARGEST 8.66 /* no value is larger, in units of std */

enum distribution { DISTRIBUTION_GAUSSIAN = 1, DISTRIBUTION_UNIFORM };

struct random {
    uint64_t given;
    int64_t d_model;
    int64_t seed;
    int distribution;
    double std;
};

static const struct pe_choice distributions[] = {
    {"gaussian", DISTRIBUTION_GAUSSIAN, "normal with mean 0"},
    {"uniform", DISTRIBUTION_UNIFORM, "even on [-sqrt(3) std, sqrt(3) std)"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(random, d_model), .min = 1, .max = 65536, .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH,
     .doc = "width of the vectors"},
    {PE_FIELD(random, seed), .min = 0, .max = PE_POSITION_MAX, .def = "0",
     .doc = "another seed, other vectors"},
    {PE_FIELD(random, distribution), .choices = distributions, .def = "gaussian",
     .doc = "distribution of a value; its mean is 0"},
    /* LARGEST times this is far from the end of float16. */
    {PE_FIELD(random, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
     .doc = "standard deviation of a value"},
};

static size_t random_width(const void *params) {
    const struct random *random = params;
    return (size_t)random->d_model;
}

static int random_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                        struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "there is nothing between them", err);
}

static int random_fits(const struct pe_plan_view *view, const struct pe_positions *positions,
                       enum pe_dtype dtype, double limit, struct pe_error *err) {
    const struct random *random = view->params;
    double most = LARGEST * random->std;
    return most < limit ? PE_OK : pe_positions_overflow(positions, 0, most, dtype, limit, err);
}

static double random_value(const struct random *random, uint64_t position, uint32_t column) {
    uint64_t seed = (uint64_t)random->seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), column, 0};
    uint32_t words[4];
    pe_philox(words, counter, key);
    if (random->distribution == DISTRIBUTION_UNIFORM) {
        return pe_random_uniform(words, random->std);
    }
    return pe_random_gaussian(words, random->std);
}

static void random_row(const struct pe_plan_view *view, uint64_t position, enum pe_dtype dtype,
                       unsigned char *out) {
    double values[BUFFER];
    for (size_t c = 0; c < view->width; c += BUFFER) {
        size_t columns = view->width - c < BUFFER ? view->width - c : BUFFER;
        for (size_t i = 0; i < columns; i++) {
            values[i] = random_value(view->params, position, (uint32_t)(c + i));
        }
        pe_dtype_store(dtype, values, columns, out + c * pe_dtype_size(dtype));
    }
}

static void random_encode(const struct pe_plan_view *view, const double *positions, size_t n,
                          enum pe_dtype dtype, void *out) {
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t t = 0; t < n; t++) {
        random_row(view, (uint64_t)(int64_t)positions[t], dtype, (unsigned char *)out + t * row_bytes);
    }
}

static double random_row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    return 80.0 * (double)view->width; /* ten rounds of Philox, a logarithm, a cosine, a root */
}

const struct pe_encoding pe_random = {
    .info =
        {
            .type = "random",
            .title = "Random vectors",
            .doc =
                "A random vector for every whole position, made from seed, position and column alone: unique "
                "and bounded, but neighbouring positions are no closer than any two others.",
            .reference = "Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3 (Philox)",
            .family = PE_FAMILY_ABSOLUTE,
            .params_size = sizeof(struct random),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .width = random_width,
    .admit = random_admit,
    .fits = random_fits,
    .encode = random_encode,
    .row_cost_ns = random_row_cost_ns,
};
