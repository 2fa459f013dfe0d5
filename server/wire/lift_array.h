/* SPDX-License-Identifier: MIT
 *
 * One JSON array of numbers, read while its text arrives: a part of the lift. lift_text.c knows the text,
 * lift_array.c what each element does to the array.
 */
#ifndef LIFT_ARRAY_H
#define LIFT_ARRAY_H

#include "wire/lift.h"
/* How many numbers all arrays of a text may hold, and hold. */
struct lift_budget {
    size_t limit, used;
};

#define LIFT_LENGTH_UNKNOWN SIZE_MAX /* of rows, before the first has closed */

enum lift_reader_state {
    LIFT_FIRST, /* after an opening bracket: a value or the closing bracket */
    LIFT_VALUE, /* after a comma */
    LIFT_AFTER, /* after a value */
    LIFT_TOKEN, /* inside a number that the chunk cut */
    LIFT_NIL,   /* inside `null` */
    LIFT_SKIP,  /* the array has an error: on to its end */
    LIFT_DONE
};

struct lift_reader {
    struct lift_budget *budget;
    struct lift_array *array;
    enum lift_reader_state state;
    int depth;                  /* levels open */
    int leaf;                   /* level of the numbers; 0 = not known */
    size_t count[PE_MAX_RANK];  /* elements of the open row of each level */
    size_t length[PE_MAX_RANK]; /* of the rows of each level, or LIFT_LENGTH_UNKNOWN */
    size_t room;                /* of array->values or array->decimals */
    size_t room_fixes;
    size_t token_offset; /* place of the token in the whole text */
    size_t n_token;
    char token[LIFT_MAX_NUMBER + 1]; /* and the byte behind it */
    size_t n_nil;                    /* letters of null seen */
    size_t skip_depth;
    bool skip_string, skip_escape;
    const char *chunk; /* the chunk and its place in the whole text */
    size_t offset;
};

/* ---- lift_array.c -------------------------------------------------------------------------------------- */

/* A record of its own for the next array (lift_array_free it), or NULL with a failure. */
struct lift_array *lift_reader_begin(struct lift_reader *reader, const char *path, struct pe_error *err);
void lift_array_free(struct lift_array *array);
/* The shape is known; room that was not needed goes back. */
void lift_array_complete(struct lift_reader *reader);

/* The path of the element that is being read, of its row with one level less. Returns path. */
#define LIFT_PATH_ROOM (LIFT_MAX_PATH + 1 + PE_MAX_RANK * 22)
const char *lift_element_path(const struct lift_reader *reader, int levels, char *path, size_t size);
/* "a number": what may come here. */
const char *lift_expected(const struct lift_reader *reader);

/* The array is no tensor: its values go, its error stays, and the rest of it will be passed over. */
void lift_array_refuse(struct lift_reader *reader, int code, const char *got);
void lift_array_overflow(struct lift_reader *reader);
/* May a number come here? Else the array has been refused. */
bool lift_number_allowed(struct lift_reader *reader, const char *got);
/* Numbers from `text` on that each have a comma behind them, in one row and with few digits: as many as are there and
 * go in at once. They become the next elements. Returns where the next one begins. */
const char *lift_numbers_read(struct lift_reader *reader, const char *text, const char *end,
                              struct pe_error *err);
/* It becomes the next element. */
int lift_number_add(struct lift_reader *reader, const struct pe_number *number, struct pe_error *err);
/* A bracket. false: the array has been refused. */
bool lift_row_open(struct lift_reader *reader);
bool lift_row_close(struct lift_reader *reader);

/* ---- lift_text.c --------------------------------------------------------------------------------------- */

/* Reads on at text, whose place in the whole is `offset`; the first byte of all must be the opening bracket.
 * Returns where it stopped: behind the closing bracket (*done), at `end`, or at a failure. */
const char *lift_reader_feed(struct lift_reader *reader, const char *text, const char *end, size_t offset,
                             bool *done, struct pe_error *err);
/* The text has ended inside the array: that failure. */
int lift_reader_cut(struct lift_reader *reader, size_t offset, struct pe_error *err);

#endif
