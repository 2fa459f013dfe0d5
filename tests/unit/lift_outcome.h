/* SPDX-License-Identifier: MIT
 *
 * What the tests of the lift share: feeding a text in pieces and telling as text all that came out.
 */
#ifndef LIFT_OUTCOME_H
#define LIFT_OUTCOME_H

#include "posenc_fields.h"
#include "random.h"
#include "unit/expect.h"
#include "wire/lift.h"

size_t random_below(uint64_t *state, size_t n);

/* A text that grows; free(bytes). */
struct text {
    char *bytes;
    size_t n, room;
};
void outcome_add(struct text *text, const char *format, ...) PE_PRINTF(2, 3);

/* Is this path one of those the tests lift? For struct lift_options, as in lift_defaults. */
bool lift_watched(void *context, const char *const *keys, size_t depth);
extern const struct lift_options lift_defaults;

/* Feeds the text and finishes. Every chunk is in memory of its own size, so that a sanitizer sees reads
 * beyond. LIFT_CUT_AT: in two, the first of *state bytes. */
enum lift_cut { LIFT_CUT_WHOLE, LIFT_CUT_BYTES, LIFT_CUT_RANDOM, LIFT_CUT_AT };
int lift_feed_cut(struct lift *lift, const char *text, size_t n, enum lift_cut cut, uint64_t *state,
                  struct pe_error *err);
/* "envelope | array | array", or "slug path: text" of the failure. To be freed; NULL when it is empty. */
char *lift_outcome(const struct lift_options *options, const char *text, size_t n, enum lift_cut cut,
                   uint64_t *state);

#endif
