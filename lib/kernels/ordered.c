/* SPDX-License-Identifier: MIT
 *
 * Products in a fixed order, for any processor and for AVX2, from one text (ordered_text.h).
 *
 * A BLAS adds in an order that follows from the registers of the processor it runs on. Here the sum of an
 * element goes straight along k, and what stands side by side in a register are columns of c, so the order
 * does not follow from how wide it is.
 *
 * COLUMNS of b are packed, some of k at a time, so that panel and sums stay in the cache. That takes some two to
 * four times as long as a BLAS that has fused operations.
 */
#include "kernels/ordered.h"

#include "kernels/target.h"

#define ROWS  ((size_t)64) /* of a, for which a panel is packed once */
#define DEPTH ((size_t)64) /* of k, in a panel */

#define COLUMNS  ((size_t)8) /* four registers of sums */
#define NAMED(x) x##_plain
#include "kernels/ordered_text.h"

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define COLUMNS  ((size_t)32) /* eight registers */
#define NAMED(x) x##_avx2
#include "kernels/ordered_text.h"
#include "kernels/avx2_end.h"
#endif

void pe_ordered_run(const struct pe_gemm *gemm) {
    static void (*const run[])(const struct pe_gemm *) = {
        product_plain,
#if PE_AVX2
        product_avx2,
#endif
    };
    run[pe_has_avx2()](gemm);
}
