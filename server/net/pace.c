/* SPDX-License-Identifier: MIT
 *
 * Rejected: the average since the start, by which a client that took a gigabyte quickly may hold its
 * connection for days; and a rate per window, which cuts clients whose kernel takes a large step every other
 * window.
 */
#include "pace.h"

struct pace_rule pace_rule(double rate, double patience_s, double step) {
    double start = rate * patience_s;
    return (struct pace_rule){.rate = rate, .start = start, .most = start + step};
}

void pace_begin(struct pace *pace, const struct pace_rule *rule) {
    *pace = (struct pace){.purse = rule->start, .moved = -1};
}

bool pace_holds(struct pace *pace, const struct pace_rule *rule, int64_t moved, bool owes, int64_t now_ns) {
    if (pace->moved >= 0) {
        pace->purse += (double)(moved - pace->moved);
        pace->purse = pace->purse < rule->most ? pace->purse : rule->most;
        pace->purse -= owes ? rule->rate * (double)(now_ns - pace->looked_ns) / 1e9 : 0;
    }
    pace->moved = moved;
    pace->looked_ns = now_ns;
    return rule->rate <= 0 || pace->purse >= 0;
}
