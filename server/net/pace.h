/* SPDX-License-Identifier: MIT
 *
 * A minimum rate, kept as a purse of bytes: what a client moves is put in, the rate is taken out for the time
 * that it owes, and an empty purse is too slow. The purse starts with what the patience is worth and never
 * holds more than `most`, so that somebody who was fast once cannot be slow for ever.
 */
#ifndef PACE_H
#define PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace_rule {
    double rate;        /* bytes per second; 0 = no rule */
    double start, most; /* bytes in the purse */
};

struct pace {
    double purse;
    int64_t moved; /* at the last look; -1 = there was none */
    int64_t looked_ns;
};

/* `step`: bytes that may move at once and then none for long, as the client's kernel takes in steps. */
struct pace_rule pace_rule(double rate, double patience_s, double step);
void pace_begin(struct pace *pace, const struct pace_rule *rule);
/* `moved` so far since any start, `owes`: it is the client that is waited for. false = too slow. The first
 * look only remembers. */
bool pace_holds(struct pace *pace, const struct pace_rule *rule, int64_t moved, bool owes, int64_t now_ns);

#endif
