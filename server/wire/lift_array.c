/* SPDX-License-Identifier: MIT
 *
 * What each bracket and number does to the array that is being read.
 *
 * The shape follows from the text. Each open bracket is a level with a count of its elements. The first
 * number (or the first empty row) says at which level the numbers are; the first row that closes on a level
 * says how long the rows of that level are, and all later ones must agree. So a wrong array is known at its
 * first wrong byte, and nothing but the numbers is ever kept.
 */
#include "wire/lift_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Faults -------------------------------------------------------------------------------------------- */

/* The path of the element that is being read, of its row when levels is depth - 1. */
const char *lift_element_path(const struct lift_reader *reader, int levels, char *path, size_t size) {
    size_t n = (size_t)snprintf(path, size, "%s", reader->array->path);
    for (int i = 0; i < levels && n < size; i++) {
        n += (size_t)snprintf(path + n, size - n, "[%zu]", reader->count[i]);
    }
    return path;
}

const char *lift_expected(const struct lift_reader *reader) {
    return reader->leaf == 0               ? "a number or an array"
           : reader->depth == reader->leaf ? "a number"
                                           : "an array";
}

static void values_drop(struct lift_reader *reader) {
    reader->budget->used -= reader->room + 2 * reader->room_fixes;
    reader->room = reader->room_fixes = 0;
    lift_array_drop(reader->array);
}

/* The array is no tensor: its values go, its error stays, and the rest of it is passed over. */
static void array_spoil(struct lift_reader *reader) {
    values_drop(reader);
    reader->state = LIFT_SKIP;
    reader->skip_depth = (size_t)reader->depth;
    reader->skip_string = reader->skip_escape = false;
}

void lift_array_refuse(struct lift_reader *reader, int code, const char *got) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    pe_fail(&reader->array->error, code, path, "got %s, expected %s", got, lift_expected(reader));
    array_spoil(reader);
}

/* A row whose length is not that of the rows before it; `more`: it goes on. */
static void array_ragged(struct lift_reader *reader, bool more) {
    char path[LIFT_PATH_ROOM];
    int level = reader->depth - 1;
    lift_element_path(reader, level, path, sizeof path);
    pe_fail(&reader->array->error, PE_ERR_SHAPE, path, "row has %s%zu elements, the rows before it have %zu",
            more ? "more than " : "", reader->count[level], reader->length[level]);
    array_spoil(reader);
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Twice the room, as far as the budget goes; `cost` numbers an item. 0 when there is no budget left. */
static size_t room_next(const struct lift_budget *budget, size_t room, size_t cost) {
    size_t left = (budget->limit - budget->used) / cost, more = room < 32 ? 32 : room;
    return room + (more < left ? more : left);
}

static int room_fail(const struct lift_reader *reader, bool limit, struct pe_error *err) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    if (!limit) {
        return pe_fail(err, PE_ERR_MEMORY, path, "no memory for the numbers of this array");
    }
    size_t most = reader->budget->limit;
    return pe_fail_limit(err, path, LIFT_LIMIT_VALUES, most, most + 1, "more than %zu numbers in all arrays",
                         most);
}

/* Memory for `room` numbers: doubles, or digits and exponents. What is there stays. */
static bool room_take(struct lift_array *array, bool wide, size_t room) {
    if (wide) {
        double *values = realloc(array->values, room * sizeof *values);
        array->values = values ? values : array->values;
        return values != NULL;
    }
    struct pe_decimals *list = &array->decimals;
    uint32_t *digits = realloc(list->digits, room * sizeof *digits);
    list->digits = digits ? digits : list->digits;
    int8_t *exponents = digits ? realloc(list->exponents, room * sizeof *exponents) : NULL;
    list->exponents = exponents ? exponents : list->exponents;
    list->room = exponents ? room : list->room;
    return exponents != NULL;
}

static int values_grow(struct lift_reader *reader, struct pe_error *err) {
    size_t room = room_next(reader->budget, reader->room, 1);
    if (room == reader->room) {
        return room_fail(reader, true, err);
    }
    if (!room_take(reader->array, reader->array->values, room)) {
        return room_fail(reader, false, err);
    }
    reader->budget->used += room - reader->room;
    reader->room = room;
    return PE_OK;
}

static int fix_add(struct lift_reader *reader, size_t index, float single, struct pe_error *err) {
    struct lift_array *array = reader->array;
    if (array->n_fixes == reader->room_fixes) {
        size_t room = room_next(reader->budget, reader->room_fixes, 2);
        if (room == reader->room_fixes) {
            return room_fail(reader, true, err);
        }
        struct lift_fix *fixes = realloc(array->fixes, room * sizeof *fixes);
        if (!fixes) {
            return room_fail(reader, false, err);
        }
        array->fixes = fixes;
        reader->budget->used += 2 * (room - reader->room_fixes);
        reader->room_fixes = room;
    }
    array->fixes[array->n_fixes++] = (struct lift_fix){index, single};
    return PE_OK;
}

static void decimals_drop(struct lift_array *array) {
    free(array->decimals.digits);
    free(array->decimals.exponents);
    array->decimals = (struct pe_decimals){0};
}

/* All numbers as doubles, and what has to be put right where they become floats. */
static int values_widen(struct lift_reader *reader, struct pe_error *err) {
    struct lift_array *array = reader->array;
    if (!room_take(array, true, reader->room)) {
        return room_fail(reader, false, err);
    }
    for (size_t i = 0; i < array->n; i++) {
        struct pe_number number;
        pe_decimal_number(array->decimals.digits[i], array->decimals.exponents[i], &number);
        array->values[i] = number.value;
        if (number.twice && fix_add(reader, i, number.single, err)) {
            return err->code;
        }
    }
    decimals_drop(array);
    return PE_OK;
}

/* May a number come here? Else the array is refused. */
bool lift_number_allowed(struct lift_reader *reader, const char *got) {
    if (reader->leaf == 0) {
        reader->leaf = reader->depth;
    }
    if (reader->leaf != reader->depth) {
        lift_array_refuse(reader, PE_ERR_SHAPE, got);
        return false;
    }
    if (reader->count[reader->depth - 1] == reader->length[reader->depth - 1]) {
        array_ragged(reader, true);
        return false;
    }
    return true;
}

/* A number, or what stands for one, becomes the next element. */
static void decimal_add(struct lift_array *array, uint32_t digits, int8_t exponent) {
    array->decimals.digits[array->n] = digits;
    array->decimals.exponents[array->n] = exponent;
    array->decimals.n = ++array->n;
}

static int double_add(struct lift_reader *reader, const struct pe_number *number, struct pe_error *err) {
    struct lift_array *array = reader->array;
    if (!array->values && values_widen(reader, err)) {
        return err->code;
    }
    if (number->twice && fix_add(reader, array->n, number->single, err)) {
        return err->code;
    }
    if (number->beyond && !array->has_beyond) {
        array->has_beyond = true;
        array->first_beyond = array->n;
    }
    array->values[array->n++] = number->value;
    return PE_OK;
}

int lift_number_add(struct lift_reader *reader, const struct pe_number *number, struct pe_error *err) {
    struct lift_array *array = reader->array;
    bool null = isinf(number->value);
    if (array->n == reader->room && values_grow(reader, err)) {
        return err->code;
    }
    if (!array->values && (number->decimal || null)) {
        decimal_add(array, null ? 1 : number->digits, null ? PE_DECIMAL_MINUS_INF : number->exponent);
    } else if (double_add(reader, number, err)) {
        return err->code;
    }
    reader->count[reader->depth - 1]++;
    reader->state = LIFT_AFTER;
    return PE_OK;
}

const char *lift_numbers_read(struct lift_reader *reader, const char *text, const char *end,
                              struct pe_error *err) {
    struct lift_array *array = reader->array;
    size_t *count = &reader->count[reader->depth - 1], left = reader->length[reader->depth - 1] - *count;
    if (array->values || (array->n == reader->room && values_grow(reader, err))) {
        return text;
    }
    struct pe_decimals row = array->decimals; /* and no further than to the end of the row */
    row.room = left < row.room - row.n ? row.n + left : row.room;
    text = pe_decimals_scan(&row, text, end);
    if (row.n > array->n) {
        *count += row.n - array->n;
        array->n = array->decimals.n = row.n;
        reader->state = LIFT_VALUE;
    }
    return text;
}

void lift_array_overflow(struct lift_reader *reader) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    pe_fail(&reader->array->error, PE_ERR_RANGE, path, "number is beyond the largest double, 1.8e308");
    array_spoil(reader);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* An opening bracket; not passed over when the array is refused, as the skipping counts it. */
bool lift_row_open(struct lift_reader *reader) {
    if (reader->depth == PE_MAX_RANK) {
        char path[LIFT_PATH_ROOM];
        lift_element_path(reader, reader->depth, path, sizeof path);
        pe_fail(&reader->array->error, PE_ERR_SHAPE, path, "array is nested deeper than %d levels",
                PE_MAX_RANK);
        array_spoil(reader);
        return false;
    }
    if (reader->leaf > 0 && reader->depth == reader->leaf) {
        lift_array_refuse(reader, PE_ERR_SHAPE, "an array");
        return false;
    }
    int level = reader->depth - 1;
    if (level >= 0 && reader->count[level] == reader->length[level]) {
        array_ragged(reader, true);
        return false;
    }
    reader->count[reader->depth++] = 0;
    reader->state = LIFT_FIRST;
    return true;
}

bool lift_row_close(struct lift_reader *reader) {
    int level = reader->depth - 1;
    if (reader->leaf == 0) { /* the first row of all is empty */
        reader->leaf = reader->depth;
    }
    if (reader->length[level] == LIFT_LENGTH_UNKNOWN) {
        reader->length[level] = reader->count[level];
    }
    if (reader->count[level] != reader->length[level]) {
        array_ragged(reader, false);
        return false;
    }
    reader->depth--;
    if (level > 0) {
        reader->count[level - 1]++;
    }
    reader->state = level > 0 ? LIFT_AFTER : LIFT_DONE;
    return true;
}

/* The shape is known; room that was not needed goes back. */
void lift_array_complete(struct lift_reader *reader) {
    struct lift_array *array = reader->array;
    array->rank = reader->leaf;
    memcpy(array->dim, reader->length, (size_t)array->rank * sizeof array->dim[0]);
    if (array->n > 0 && array->n < reader->room) {
        room_take(array, array->values, array->n);
        reader->budget->used -= reader->room - array->n;
        reader->room = array->n;
    }
    if (array->n_fixes > 0 && array->n_fixes < reader->room_fixes) {
        struct lift_fix *fixes = realloc(array->fixes, array->n_fixes * sizeof *fixes);
        if (fixes) {
            array->fixes = fixes;
        }
        reader->budget->used -= 2 * (reader->room_fixes - array->n_fixes);
        reader->room_fixes = array->n_fixes;
    }
}

/* ---- Life ---------------------------------------------------------------------------------------------- */

struct lift_array *lift_reader_begin(struct lift_reader *reader, const char *path, struct pe_error *err) {
    struct lift_budget *budget = reader->budget;
    if (budget->limit - budget->used < LIFT_ARRAY_COST) {
        pe_fail_limit(err, path, LIFT_LIMIT_VALUES, budget->limit, budget->limit + 1,
                      "more than %zu numbers in all arrays, each array counting for %d more", budget->limit,
                      LIFT_ARRAY_COST);
        return NULL;
    }
    size_t n_path = strlen(path) + 1;
    struct lift_array *array = calloc(1, sizeof *array + n_path); /* its path stands behind it */
    if (!array) {
        pe_fail(err, PE_ERR_MEMORY, path, "no memory for the record of this array");
        return NULL;
    }
    array->path = memcpy(array + 1, path, n_path);
    budget->used += LIFT_ARRAY_COST;
    reader->array = array;
    reader->state = LIFT_FIRST;
    reader->depth = reader->leaf = 0;
    reader->room = reader->room_fixes = 0;
    for (int i = 0; i < PE_MAX_RANK; i++) {
        reader->length[i] = LIFT_LENGTH_UNKNOWN;
    }
    return array;
}

size_t lift_array_bytes(const struct lift_array *array) {
    return array->n * sizeof *array->values + array->n_fixes * sizeof *array->fixes;
}

double *lift_array_doubles(struct lift_array *array, struct pe_error *err) {
    if (array->values || array->n == 0) {
        return array->values;
    }
    double *values = malloc(array->n * sizeof *values);
    if (!values) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for the numbers of this array");
        return NULL;
    }
    for (size_t i = 0; i < array->n; i++) {
        struct pe_number number;
        pe_decimal_number(array->decimals.digits[i], array->decimals.exponents[i], &number);
        values[i] = number.value;
    }
    decimals_drop(array);
    return array->values = values;
}

/* Each double lies behind or at the place of its float, so that none is lost; both are read and written as bytes. */
static void doubles_narrow(struct lift_array *array) {
    char *bytes = (char *)array->values;
    for (size_t i = 0; i < array->n_fixes; i++) {
        array->values[array->fixes[i].index] = array->fixes[i].single;
    }
    for (size_t i = 0; i < array->n; i++) {
        double value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        float single = (float)value;
        memcpy(bytes + i * sizeof single, &single, sizeof single);
    }
}

float *lift_array_singles(struct lift_array *array) {
    if (array->values) {
        doubles_narrow(array);
        return (float *)(void *)array->values;
    }
    const struct pe_decimals *list = &array->decimals;
    pe_decimals_f32(list->digits, list->digits, list->exponents, array->n);
    free(array->decimals.exponents);
    array->decimals.exponents = NULL;
    return (float *)(void *)list->digits;
}

/* Digits below 2^31 times 10^28 are below 2^128, and so stay a float. */
static bool decimal_is_large(uint32_t digits, int8_t exponent) {
    struct pe_number number = {0};
    if (exponent > 28) {
        pe_decimal_number(digits, exponent, &number);
    }
    return isinf(number.single);
}

bool lift_array_is_large(const struct lift_array *array) {
    bool large = false;
    for (size_t i = 0; array->values && i < array->n; i++) {
        large |= !(fabs(array->values[i]) < 0x1p127);
    }
    for (size_t i = 0; !array->values && i < array->n; i++) {
        large |= decimal_is_large(array->decimals.digits[i], array->decimals.exponents[i]);
    }
    return large;
}

void lift_array_drop(struct lift_array *array) {
    decimals_drop(array);
    free(array->values);
    free(array->fixes);
    array->values = NULL;
    array->fixes = NULL;
    array->n = array->n_fixes = 0;
}

void lift_array_free(struct lift_array *array) {
    lift_array_drop(array);
    free(array);
}
