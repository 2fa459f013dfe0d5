/* SPDX-License-Identifier: MIT
 *
 * No positional encoding. Attention without one is blind to order: permute the tokens and the outputs are
 * permuted along (a set, not a sequence). Only a causal mask lets a model find order by itself. It is the
 * control that every other encoding is compared with.
 */
#include "encodings/encoding.h"

struct none {
    uint64_t given;
};

const struct pe_encoding pe_none = {
    .info =
        {
            .type = "none",
            .title = "No positional encoding",
            .doc = "Nothing is added: attention then sees a set of tokens, not a sequence, but for what a "
                   "causal mask tells. The control for every comparison.",
            .reference = "Haviv et al. 2022, arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466",
            .family = PE_FAMILY_NONE,
            .params_size = sizeof(struct none),
        },
};
