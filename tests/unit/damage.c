/* SPDX-License-Identifier: MIT
 *
 * The loop over cuts and changed bytes.
 */
#include "damage.h"
#include "expect.h"

#include <stdlib.h>
#include <string.h>

void damage_file(const void *file, size_t n, unsigned step, damage_reader *reader) {
    unsigned char *bytes = malloc(n);
    memcpy(bytes, file, n);
    for (size_t cut = 0; cut < n; cut++) {
        ck_assert_int_ne(reader(bytes, cut), 0);
    }
    for (size_t at = 0; at < n; at++) {
        for (unsigned change = 1; change < 256; change += step) {
            bytes[at] ^= (unsigned char)change;
            reader(bytes, n);
            bytes[at] ^= (unsigned char)change;
        }
    }
    free(bytes);
}
