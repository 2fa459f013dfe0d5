/* SPDX-License-Identifier: MIT
 *
 * How alike two names are: the characters that they share at their beginnings and at their ends, which is what a
 * prefix too many, or a slip in the middle, leaves as it is, as a part of all that they have.
 */
#include "names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Letters of either case. */
static bool is_like(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* From 0 to 1000. */
static size_t likeness(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b), least = na < nb ? na : nb, first = 0, last = 0;
    while (first < least && is_like(a[first], b[first])) {
        first++;
    }
    while (first + last < least && is_like(a[na - 1 - last], b[nb - 1 - last])) {
        last++;
    }
    return na + nb ? 2000 * (first + last) / (na + nb) : 0;
}

/* Names stand in the order of their likeness, and of their places where that is the same: the one behind `before`,
 * or the first, where `before` is n. n: there is none. */
static size_t next_like(const struct names *names, const char *asked, size_t before) {
    size_t best = names->n, best_like = 0;
    size_t most = before < names->n ? likeness(names->at(names->of, before), asked) : SIZE_MAX;
    for (size_t i = 0; i < names->n; i++) {
        size_t like = likeness(names->at(names->of, i), asked);
        bool behind = like < most || (like == most && i > before);
        if (behind && (best == names->n || like > best_like)) {
            best = i;
            best_like = like;
        }
    }
    return best;
}

/* ", name" after what is there already; "..." for those that do not fit. False: no more. */
static bool add_name(char *text, size_t size, const char *name) {
    size_t at = strlen(text);
    if (at + 2 + strlen(name) + sizeof ", ..." > size) {
        snprintf(text + at, size - at, "%s...", at ? ", " : "");
        return false;
    }
    snprintf(text + at, size - at, "%s%s", at ? ", " : "", name);
    return true;
}

char *names_write(const struct names *names, const char *asked, char *text, size_t size) {
    text[0] = '\0';
    size_t i = asked ? next_like(names, asked, names->n) : 0;
    while (i < names->n && add_name(text, size, names->at(names->of, i))) {
        i = asked ? next_like(names, asked, i) : i + 1;
    }
    return text;
}
