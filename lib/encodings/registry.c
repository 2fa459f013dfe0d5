/* SPDX-License-Identifier: MIT
 *
 * The table of encodings. To add one: its file in this folder, and its line here.
 */
#include "encodings/encoding.h"

#include <string.h>

/* One line an encoding; the list stands here once, for its declarations and its table. */
#define ENCODINGS(ROW)                                                                                       \
    ROW(pe_none)                                                                                             \
    ROW(pe_naive)                                                                                            \
    ROW(pe_sinusoidal)                                                                                       \
    ROW(pe_sinusoidal_nd)                                                                                    \
    ROW(pe_fourier)                                                                                          \
    ROW(pe_time2vec)                                                                                         \
    ROW(pe_timestep)                                                                                         \
    ROW(pe_learned)                                                                                          \
    ROW(pe_random)                                                                                           \
    ROW(pe_rope)                                                                                             \
    ROW(pe_alibi)                                                                                            \
    ROW(pe_t5)                                                                                               \
    ROW(pe_wavlm)                                                                                            \
    ROW(pe_kerple)                                                                                           \
    ROW(pe_fire)                                                                                             \
    ROW(pe_sandwich)                                                                                         \
    ROW(pe_custom)                                                                                           \
    ROW(pe_swin)                                                                                             \
    ROW(pe_swin_v2)                                                                                          \
    ROW(pe_shaw)                                                                                             \
    ROW(pe_transformer_xl)                                                                                   \
    ROW(pe_deberta)                                                                                          \
    ROW(pe_cope)

#define DECLARE(name) extern const struct pe_encoding name;
ENCODINGS(DECLARE)

#define ENTRY(name) &name,
static const struct pe_encoding *const registry[] = {ENCODINGS(ENTRY)};

size_t pe_encoding_count(void) {
    return PE_COUNT(registry);
}

const struct pe_encoding_info *pe_encoding_at(size_t i) {
    return i < PE_COUNT(registry) ? &registry[i]->info : NULL;
}

const struct pe_encoding_info *pe_encoding_find(const char *type) {
    for (size_t i = 0; i < PE_COUNT(registry); i++) {
        if (strcmp(registry[i]->info.type, type) == 0) {
            return &registry[i]->info;
        }
    }
    return NULL;
}

const struct pe_encoding *pe_encoding_row(const struct pe_encoding_info *info) {
    for (size_t i = 0; i < PE_COUNT(registry); i++) {
        if (&registry[i]->info == info) {
            return registry[i];
        }
    }
    return NULL;
}

unsigned pe_encoding_abilities(const struct pe_encoding_info *info) {
    const struct pe_encoding *row = pe_encoding_row(info);
    unsigned can = PE_CAN_ATTENTION; /* every family has its place in attention; `none` is the control */
    if (row->encode) {
        can |= PE_CAN_ENCODE;
        can |= row->unshifted ? 0 : PE_CAN_SHIFT; /* without the exact map the best linear one is fitted */
    }
    if (row->angles) {
        can |= PE_CAN_ENCODE;
    }
    if (row->bias) {
        can |= PE_CAN_BIAS;
    }
    if (row->encode || row->angles || info->family == PE_FAMILY_NONE) {
        can |= PE_CAN_APPLY;
    }
    return can;
}
