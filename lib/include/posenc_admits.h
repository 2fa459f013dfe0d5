/* SPDX-License-Identifier: MIT
 *
 * libposenc: what can be done with an encoding at all. A header of its own, which includes posenc.h.
 */
#ifndef POSENC_ADMITS_H
#define POSENC_ADMITS_H

#include "posenc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is there anything that the operation could do with this encoding, whatever its parameters are? Operations ask it
 * themselves; who is still to say the parameters may ask it first. PE_ERR_UNSUPPORTED at `encoding.type`. */
PE_API int pe_encode_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_apply_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_bias_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_shift_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_similarity_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_properties_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_head_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;
PE_API int pe_check_admits(const struct pe_encoding_info *encoding, struct pe_error *err) PE_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
