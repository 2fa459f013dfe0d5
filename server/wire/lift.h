/* SPDX-License-Identifier: MIT
 *
 * The lift: takes arrays of numbers out of a JSON text while it arrives, in front of the JSON parser.
 *
 * A tensor as a JSON value costs the parser some 40 bytes and 250 ns a number. So the text first goes through
 * this filter: arrays at watched paths become plain doubles in a side table, and `null` takes their place in
 * what is left, the envelope, which is small and goes to the parser.
 *
 *     {"op": "apply", "embeddings": [[1, 2], [3, 4]]}
 *     envelope  {"op": "apply", "embeddings": null}
 *     arrays    "embeddings": [2, 2] 1 2 3 4
 *
 * The table is keyed by path and filled by this filter only, so no text can forge an array: where the text
 * itself says null, lift_find finds nothing. The parser must refuse repeated keys, which would make two
 * arrays of one path.
 *
 * Three kinds of faults:
 *   - text that is no JSON inside a lifted array, and limits, end the whole at once: lift_feed fails;
 *   - an array that is JSON but no tensor (rows of different lengths, a string inside) keeps its error for
 *     whoever binds it, so that errors can be reported in the order of the document. It is then skipped by
 * its brackets alone, so A TEXT WITH SUCH AN ARRAY MUST BE REFUSED: see lift_first_error;
 *   - faults outside lifted arrays are left to the parser: the envelope keeps them.
 *
 * One lift belongs to one thread at a time; after lift_finish any threads may read it.
 */
#ifndef LIFT_H
#define LIFT_H

#include "posenc.h"

#define LIFT_MAX_DEPTH  64   /* brackets around a value, outside lifted arrays */
#define LIFT_MAX_KEY    95   /* bytes of a key that can be on a watched path */
#define LIFT_MAX_PATH   255  /* bytes of a watched path */
#define LIFT_MAX_NUMBER 4096 /* bytes of one number */
/* What an array counts for beside its numbers, as its record takes memory too. */
#define LIFT_ARRAY_COST 128

/* The names of the limits, for struct pe_error. */
#define LIFT_LIMIT_ENVELOPE "envelope"
#define LIFT_LIMIT_VALUES   "values"
#define LIFT_LIMIT_NUMBER   "number"

struct lift_options {
    size_t envelope_limit; /* bytes of the text without its lifted arrays */
    size_t value_limit;    /* numbers in all arrays together, 8 bytes each */
    /* Is an array at this path wanted? The keys from the root to it: {"requests", "[2]", "q"}. A key "[2]" of
     * an object never gets here, nor anything under it: such keys hold other than printable ASCII, or one of
     * []"\, or are too long. */
    bool (*watches)(void *context, const char *const *keys, size_t depth);
    void *context;
};

/* Element `index` as float: here (float)values[index] would be rounded twice, to another. */
struct lift_fix {
    size_t index;
    float single;
};

struct lift_array {
    const char *path; /* "requests[2].q.data" */
    int rank;         /* [] is rank 1 of dim 0; [[], []] is [2, 0] */
    size_t dim[PE_MAX_RANK];
    size_t n; /* numbers in C order; 0 when there is an error */
    /* As they were written, 5 bytes each, until one has too many digits for that: then all are doubles. */
    struct pe_decimals decimals;
    double *values;         /* [n], or NULL */
    struct lift_fix *fixes; /* [n_fixes] by rising index, of doubles */
    size_t n_fixes;
    bool has_null;     /* some elements were null: minus infinity */
    size_t first_null; /* the first of them */
    bool has_beyond;   /* some are beyond 2^53 as written, and 2^53 as doubles */
    size_t first_beyond;
    struct pe_error error;
};

struct lift;

/* HANDLE. NULL with PE_ERR_MEMORY. */
struct lift *lift_open(const struct lift_options *options, struct pe_error *err);
void lift_close(struct lift *lift);
/* The next n bytes of the text. After a failure every further call fails in the same way. */
int lift_feed(struct lift *lift, const void *bytes, size_t n, struct pe_error *err) PE_CHECKED;
/* The text is complete. */
int lift_finish(struct lift *lift, struct pe_error *err) PE_CHECKED;

/* After lift_finish. VIEWS until lift_close. */
const char *lift_envelope(const struct lift *lift, size_t *length);
size_t lift_count(const struct lift *lift);
struct lift_array *lift_at(const struct lift *lift, size_t i); /* in the order of the text */
struct lift_array *lift_find(const struct lift *lift, const char *path);
/* The first array that is no tensor, or NULL. */
const struct lift_array *lift_first_error(const struct lift *lift);
/* What one array's numbers count for, as doubles, which they may become, and all that the lift holds. */
size_t lift_array_bytes(const struct lift_array *array);
size_t lift_bytes(const struct lift *lift);
/* [n], each number rounded once from its text, for good: an array can be made one of these once, in the memory it
 * has where that is enough. NULL with PE_ERR_MEMORY, or where there are none. */
double *lift_array_doubles(struct lift_array *array, struct pe_error *err);
float *lift_array_singles(struct lift_array *array);
/* Is one beyond the largest float, or might it be? If not, lift_array_singles need not be looked through. */
bool lift_array_is_large(const struct lift_array *array);
/* Gives back the values of one array. */
void lift_array_drop(struct lift_array *array);

/* Appends a key to a path: ".data", "[3]", or ["a.b"] where the key is not of letters, digits, _ and - alone.
 * false (and path is unchanged) when it does not fit. */
bool lift_path_add(char *path, size_t size, const char *key);

#endif
