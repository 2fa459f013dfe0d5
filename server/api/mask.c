/* SPDX-License-Identifier: MIT
 *
 * The mask of attention, which several operations take.
 */
#include "api/api.h"

const struct pe_field api_mask_fields[API_MASK_FIELDS] = {
    {PE_FIELD(api_mask, causal), .def = "false",
     .doc = "query i sees keys j <= i + Tk - Tq: aligned to the right"},
    {PE_FIELD(api_mask, lengths), .flags = PE_FIELD_NUMBERS, .shape = "[B]",
     .doc = "real keys of each batch row; those after them are padding"},
    {PE_FIELD(api_mask, documents), .flags = PE_FIELD_NUMBERS, .shape = "[N]",
     .doc = "lengths of packed documents, which sum to Tk; each sees only itself"},
    {PE_FIELD(api_mask, keep), .flags = PE_FIELD_NUMBERS, .shape = "[Tk], [B, Tk], [Tq, Tk] or [B, Tq, Tk]",
     .doc = "1 = visible, 0 = hidden"},
    {PE_FIELD(api_mask, window), .min = 0, .max = PE_POSITION_MAX,
     .doc = "one number w: |i - j| < w; two: [back, ahead]"},
};

int api_mask_make(const struct api_mask *in, struct pe_attention_mask *out, struct pe_error *err) {
    if (in->window.n > 2) {
        return pe_fail(err, PE_ERR_SHAPE, "mask.window",
                       "must be one number or [back, ahead], got %zu numbers", in->window.n);
    }
    *out = (struct pe_attention_mask){
        .size = sizeof *out,
        .causal = in->causal,
        .lengths = in->lengths,
        .documents = in->documents,
        .keep = in->keep,
        .n_window = (int)in->window.n,
        .window = {in->window.v[0], in->window.v[1]},
    };
    return PE_OK;
}
