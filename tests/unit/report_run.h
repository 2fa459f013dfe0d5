/* SPDX-License-Identifier: MIT
 *
 * What the tests made from public bug reports share. A report is asked of the service as its user would ask
 * it, and the numbers that come back are compared with the right ones, which a comment names the source of.
 *
 *     report_expect("GET /v1/encode?type=sinusoidal&d_model=2&positions=1", NULL, "vectors",
 *                   REPORT_SHAPE(1, 2), 1e-6, REPORT_VALUES(.841471, .540302));
 */
#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include "call_run.h"

/* A tensor of a reply as doubles, in memory that lives as long as a test. */
struct report_tensor {
    int rank;
    size_t dim[PE_MAX_RANK], n;
    double *values;
};

void report_setup(void);
void report_teardown(void);
extern struct call_ground report_ground;
/* Memory that lives as long as a test. */
double *report_doubles(size_t n);

/* The tensor `name` of a JSON or raw (`format=raw`) reply with status 200; "positions" may be a plain list.
 */
struct report_tensor report_tensor(const char *request, const char *body, const char *name);
/* The same for a body of doubles [.., ..] in raw form. */
struct report_tensor report_tensor_raw(const char *request, const double *values, const size_t *dim, int rank,
                                       const char *name);
/* Shape, and every number up to the tolerance. */
void report_expect(const char *request, const char *body, const char *name, const size_t *dim, int rank,
                   double tolerance, const double *values, size_t n);
/* Numbers of a row up to the tolerance. */
void report_row(const struct report_tensor *got, size_t first, double tolerance, const double *values,
                size_t n);
/* A refusal: 400, its slug and field, and all words that its detail must hold. */
void report_refused(const char *request, const char *body, const char *slug, const char *field,
                    const char *const *words);

#define REPORT_SHAPE(...)                                                                                    \
    (const size_t[]){__VA_ARGS__}, (int)(sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define REPORT_VALUES(...)                                                                                   \
    (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)
#define REPORT_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The paper's formula in plain C, to about 1e-16*(1 + |p|): column c of position p at width d. */
double report_paper(double p, size_t c, size_t d);

#endif
