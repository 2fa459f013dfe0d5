/* SPDX-License-Identifier: MIT
 *
 * The unit tests: one row per file tests/unit/check_<module>.c, which defines `Suite *<module>_suite(void)`.
 * To add a file, add its row; `make lint` tells when one is missing.
 */
#ifndef SUITES_H
#define SUITES_H

#include "expect.h"

/* clang-format off */
#define SUITES(X)         \
    X(alibi)              \
    X(apply)              \
    X(arena)              \
    X(arithmetic)         \
    X(attention)          \
    X(attention_errors)   \
    X(attention_kernels)  \
    X(attention_memory)   \
    X(axes)               \
    X(block)              \
    X(block_inside)       \
    X(block_kernels)      \
    X(block_limits)       \
    X(budget)             \
    X(buffers)            \
    X(call)               \
    X(call_bad)           \
    X(call_batch)         \
    X(call_bits)          \
    X(call_block)         \
    X(call_body)          \
    X(call_formats)       \
    X(call_http)          \
    X(cases)              \
    X(check)              \
    X(check_tables)       \
    X(config)             \
    X(convert)            \
    X(cope)               \
    X(cpus)               \
    X(deberta)            \
    X(dtype)              \
    X(error)              \
    X(error_places)       \
    X(faults)             \
    X(faults_cases)       \
    X(faults_lib)         \
    X(faults_net)         \
    X(faults_start)       \
    X(faults_stop)        \
    X(fourier)            \
    X(gate)               \
    X(golden)             \
    X(identify)           \
    X(identify_plain)     \
    X(identify_tables)    \
    X(lanes)              \
    X(learned)            \
    X(lift)               \
    X(lift_random)        \
    X(log)                \
    X(loops)              \
    X(masks)              \
    X(metrics)            \
    X(naive)              \
    X(npy)                \
    X(number)             \
    X(numbers)            \
    X(pace)               \
    X(peers)              \
    X(phase)              \
    X(plans)              \
    X(picture)            \
    X(picture_tag)          \
    X(pool)               \
    X(positions)          \
    X(positions_rule)     \
    X(presets)            \
    X(random)             \
    X(registry)           \
    X(relative)           \
    X(relative_errors)    \
    X(relative_limits)    \
    X(reports_batch)      \
    X(reports_grids)      \
    X(reports_images)     \
    X(reports_length)     \
    X(reports_padding)    \
    X(reports_precision)  \
    X(reports_relative_bias) \
    X(reports_relative_deberta) \
    X(reports_relative_terms) \
    X(reports_relative_window) \
    X(reports_rotary)     \
    X(reports_scaling)    \
    X(reports_width)      \
    X(resample)            \
    X(resize)             \
    X(rope)               \
    X(rope_config)        \
    X(rope_config_errors) \
    X(rope_errors)        \
    X(rope_families)      \
    X(rope_formats)       \
    X(rope_ggml)          \
    X(rope_published)     \
    X(rope_replay)        \
    X(rotary)             \
    X(rotary_attention)   \
    X(rotate)             \
    X(rows)               \
    X(safetensors)        \
    X(shaw)               \
    X(shift)              \
    X(similarity)         \
    X(sinusoidal)         \
    X(site)               \
    X(softmax)            \
    X(source)             \
    X(stop)               \
    X(stream)             \
    X(swin)               \
    X(t5)                 \
    X(tables)             \
    X(tcp)                \
    X(tensor)             \
    X(text)               \
    X(torch)              \
    X(transformer_xl)     \
    X(wave)               \
    X(wave64)             \
    X(wave_add)           \
    X(wave_bounds)        \
    X(wavlm)
/* clang-format on */

#define SUITE_DECLARE(module) Suite *module##_suite(void);
SUITES(SUITE_DECLARE)
#undef SUITE_DECLARE

#endif
