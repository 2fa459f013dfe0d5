/* SPDX-License-Identifier: MIT
 *
 * simdjson on demand, the way its documentation has numbers read: one parser that keeps its memory, and the text
 * where it lies. C++, as simdjson is; without it an empty stand-in.
 */
#include "numbers_simdjson.h"

#if __has_include(<simdjson.h>)
#include <simdjson.h>

const char *const numbers_simdjson_version = SIMDJSON_STRINGIFY(SIMDJSON_VERSION);

size_t numbers_simdjson_read(const char *document, size_t length, float *out) {
    static simdjson::ondemand::parser parser;
    auto json = parser.iterate(document, length, length + simdjson::SIMDJSON_PADDING);
    size_t n = 0;
    for (auto row : json["embeddings"].get_array()) {
        for (auto number : row.get_array()) {
            out[n++] = static_cast<float>(number.get_double().value());
        }
    }
    return n;
}
#else
const char *const numbers_simdjson_version = "";

size_t numbers_simdjson_read(const char *, size_t, float *) {
    return 0;
}
#endif
