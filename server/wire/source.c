/* SPDX-License-Identifier: MIT
 *
 * Tensors become text element by element: `[` before the first element of a row, `]` after its last, for
 * every axis whose index turns over there. Element i of a tensor [.., C] starts axis k when i is a multiple
 * of the product of the dims from k on.
 */
#include "wire/source.h"

#include "wire/echo.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BLOCK_BYTES    ((size_t)64 << 10)
#define TURN_PIXELS    ((uint64_t)1 << 18) /* made within a millisecond, or five where they look like noise */
#define LISTS_TOGETHER 4096                /* between two questions whether to stop */
#define TEXT_F32       20 /* a number of each type with its comma, at most: -9876543000000000.0, */
#define TEXT_F64       26 /* -0.000012345678901234567, */

static size_t row_length(const struct pe_tensor *tensor) {
    return tensor->rank ? tensor->dim[tensor->rank - 1] : 1;
}

static void piece_add(struct source *source, enum piece_kind kind, size_t start,
                      const struct result_item *item) {
    if (kind == PIECE_TEXT && start == source->text.n) {
        return;
    }
    source->pieces[source->n++] =
        (struct piece){.kind = kind, .start = start, .end = source->text.n, .item = item};
}

/* "[[],[]]": a tensor without elements. Lists stop at the axis of size 0. */
static void empty_lists(struct text *text, const struct pe_tensor *tensor, int axis, struct pe_error *err) {
    size_t n = axis + 1 < tensor->rank ? tensor->dim[axis] : 0;
    text_puts(text, "[");
    for (size_t i = 0; i < n && (i % LISTS_TOGETHER || !pe_error_poll(err)); i++) {
        text_puts(text, i ? "," : "");
        empty_lists(text, tensor, axis + 1, err);
    }
    text_puts(text, "]");
}

/* What stands before a tensor's numbers. */
static void json_tensor(struct source *source, const struct result_item *item) {
    struct text *text = &source->text;
    text_key(text, item->name);
    if (item->bare) {
        return;
    }
    text_puts(text, "{");
    echo_tensor(text, &item->tensor);
    text_key(text, "data");
}

/* The key, and a place for what the work will have written. */
static size_t json_late(struct source *source, const struct result_item *item, size_t start) {
    text_key(&source->text, item->name);
    piece_add(source, PIECE_TEXT, start, NULL);
    piece_add(source, PIECE_LATE, source->text.n, item);
    return source->text.n;
}

static void json_pieces(struct source *source, const struct result *result, struct pe_error *err) {
    struct text *text = &source->text;
    size_t start = 0;
    text_puts(text, "{");
    for (size_t i = 0; i < result->n; i++) {
        const struct result_item *item = &result->items[i];
        if (item->json) {
            text_key(text, item->name);
            text_puts(text, item->json);
            continue;
        }
        if (item->late) {
            start = json_late(source, item, start);
            continue;
        }
        json_tensor(source, item);
        if (pe_tensor_count(&item->tensor)) {
            piece_add(source, PIECE_TEXT, start, NULL);
            start = text->n;
            piece_add(source, PIECE_NESTED, start, item);
        } else if (source->flat && !item->bare) {
            text_puts(text, "[]");
        } else {
            empty_lists(text, &item->tensor, 0, err);
        }
        text_puts(text, item->bare ? "" : "}");
    }
    text_puts(text, "}");
    piece_add(source, PIECE_TEXT, start, NULL);
}

static void npy_pieces(struct source *source, const struct result *result) {
    char header[PE_NPY_HEADER_MAX];
    const struct result_item *item = result_first(result);
    text_add(&source->text, header, pe_npy_header(header, sizeof header, &item->tensor));
    piece_add(source, PIECE_TEXT, 0, NULL);
    piece_add(source, PIECE_BINARY, 0, item);
}

static bool in_safetensors(const struct result_item *item) {
    return result_is_tensor(item) || result_is_list(item);
}

static int safetensors_pieces(struct source *source, struct pe_arena *arena, const struct result *result,
                              struct pe_error *err) {
    struct pe_named_tensor tensors[RESULT_MAX];
    struct pe_safetensors_header header;
    size_t n = 0;
    for (size_t i = 0; i < result->n; i++) {
        if (in_safetensors(&result->items[i])) {
            tensors[n++] = (struct pe_named_tensor){result->items[i].name, result->items[i].tensor};
        }
    }
    if (pe_safetensors_write(arena, &header, tensors, n, err)) {
        return err->code;
    }
    text_add(&source->text, header.text, header.bytes);
    piece_add(source, PIECE_TEXT, 0, NULL);
    for (size_t i = 0; i < result->n; i++) {
        if (in_safetensors(&result->items[i])) {
            piece_add(source, PIECE_BINARY, 0, &result->items[i]);
        }
    }
    return PE_OK;
}

static int picture_pieces(struct source *source, struct pe_arena *arena, const struct picture_look *look,
                          const struct result *result, struct pe_error *err) {
    const struct result_item *item = result_first(result);
    const char *encoding = NULL;
    for (size_t i = 0; i < result->n; i++) {
        encoding = strcmp(result->items[i].name, "encoding") == 0 ? result->items[i].json : encoding;
    }
    source->picture = picture_open(arena, look, item, encoding, &source->text, err);
    if (!source->picture) {
        return err->code;
    }
    piece_add(source, PIECE_TEXT, 0, NULL);
    piece_add(source, PIECE_PNG, 0, item);
    return PE_OK;
}

/* One block of memory for all tensors that are made row by row. */
static int rows_reserve(struct source *source, struct pe_arena *arena, const struct result *result,
                        struct pe_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < result->n; i++) {
        const struct pe_tensor *tensor = &result->items[i].tensor;
        size_t row = row_length(tensor) * pe_dtype_size(tensor->dtype);
        if (result_is_tensor(&result->items[i]) && !tensor->data && row > bytes) {
            bytes = row;
        }
    }
    if (!bytes) {
        return PE_OK;
    }
    source->rows_room = bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1;
    source->rows = pe_arena_alloc(arena, bytes * source->rows_room, err);
    return source->rows ? PE_OK : err->code;
}

int source_open(struct source *source, struct pe_arena *arena, const struct format *format,
                const struct result *result, const struct source_style *style, struct pe_error *err) {
    *source = (struct source){.flat = style->flat};
    switch (format->id) {
    case FORMAT_NPY:
        npy_pieces(source, result);
        break;
    case FORMAT_SAFETENSORS:
        if (safetensors_pieces(source, arena, result, err)) {
            return err->code;
        }
        break;
    case FORMAT_RAW:
        piece_add(source, PIECE_BINARY, 0, result_first(result));
        break;
    case FORMAT_PNG:
        if (picture_pieces(source, arena, style->look, result, err)) {
            return err->code;
        }
        break;
    case FORMAT_CSV:
        piece_add(source, PIECE_CSV, 0, result_first(result));
        break;
    default:
        json_pieces(source, result, err);
        break;
    }
    if (source->text.failed) {
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory for the reply");
    }
    return rows_reserve(source, arena, result, err);
}

int64_t source_length(const struct source *source) {
    uint64_t length = 0;
    for (size_t i = 0; i < source->n; i++) {
        const struct piece *piece = &source->pieces[i];
        if (piece->kind == PIECE_TEXT) {
            length += piece->end - piece->start;
        } else if (piece->kind == PIECE_BINARY) {
            length += pe_tensor_bytes(&piece->item->tensor);
        } else {
            return -1;
        }
    }
    return length > INT64_MAX ? -1 : (int64_t)length;
}

static uint64_t text_bound(const struct pe_tensor *tensor) {
    uint64_t count = pe_tensor_count(tensor), row = row_length(tensor);
    uint64_t brackets = row ? count / row * 2 * (uint64_t)(tensor->rank + 1) : 0;
    return count * (tensor->dtype == PE_DTYPE_F64 ? TEXT_F64 : TEXT_F32) + brackets + 2;
}

uint64_t source_tensor_bound(const struct format *format, const struct source_style *style,
                             const struct pe_tensor *tensor) {
    if (format->image) {
        return picture_bound(style->look, tensor);
    }
    bool text = format->id == FORMAT_JSON || format->id == FORMAT_CSV;
    return text ? text_bound(tensor) : pe_tensor_bytes(tensor);
}

uint64_t source_bound(const struct source *source) {
    uint64_t bound = 0;
    for (size_t i = 0; i < source->n; i++) {
        const struct piece *piece = &source->pieces[i];
        const struct pe_tensor *tensor = piece->item ? &piece->item->tensor : NULL;
        if (piece->kind == PIECE_TEXT) {
            bound += piece->end - piece->start;
        } else if (piece->kind == PIECE_LATE) {
            bound += piece->item->late->room;
        } else if (piece->kind == PIECE_BINARY) {
            bound += pe_tensor_bytes(tensor);
        } else if (piece->kind == PIECE_PNG) {
            bound += picture_bound(picture_look(source->picture), tensor);
        } else {
            bound += text_bound(tensor);
        }
    }
    return bound;
}

size_t source_parts(const struct source *source, struct source_part *parts) {
    for (size_t i = 0; i < source->n; i++) {
        const struct piece *piece = &source->pieces[i];
        if (piece->kind == PIECE_TEXT) {
            parts[i] = (struct source_part){source->text.data + piece->start, piece->end - piece->start};
        } else if (piece->kind == PIECE_BINARY && piece->item->tensor.data) {
            parts[i] = (struct source_part){piece->item->tensor.data, pe_tensor_bytes(&piece->item->tensor)};
        } else {
            return 0;
        }
    }
    return source->n;
}

static size_t rows_left(const struct source *source, const struct result_item *item) {
    size_t row = row_length(&item->tensor);
    return row ? pe_tensor_count(&item->tensor) / row - source->rows_done : 0;
}

/* The next n rows. They come out infinite where a value is beyond the largest number of their type: nobody looked
 * before. */
static void make_rows(struct source *source, const struct result_item *item, size_t n, void *out) {
    struct pe_tensor made = {.data = out, .dtype = item->tensor.dtype, .rank = 1};
    struct pe_error ignored = {0};
    made.dim[0] = n * row_length(&item->tensor);
    item->rows(item->state, source->rows_done, n, out);
    source->rows_done += n;
    source->failed = pe_tensor_check_finite(&made, item->minus_inf, &ignored) != PE_OK;
}

/* Are there more elements, ready or to be made? */
static bool block_more(const struct source *source, const struct result_item *item) {
    if (source->block_at < source->block_n) {
        return true;
    }
    return item->tensor.data ? !source->block && pe_tensor_count(&item->tensor) > 0
                             : rows_left(source, item) > 0;
}

/* Makes more elements ready; false when the tensor is done, or failed. */
static bool block_next(struct source *source, const struct result_item *item) {
    if (source->block_at < source->block_n) {
        return true;
    }
    source->block_at = source->block_n = 0;
    if (item->tensor.data) {
        source->block_n = source->block ? 0 : pe_tensor_count(&item->tensor);
        source->block = item->tensor.data;
        return source->block_n > 0;
    }
    size_t left = rows_left(source, item);
    size_t rows = left < source->rows_room ? left : source->rows_room;
    if (!rows) {
        return false;
    }
    make_rows(source, item, rows, source->rows);
    source->block = source->rows;
    source->block_n = rows * row_length(&item->tensor);
    return !source->failed;
}

static size_t pull_bytes(struct source *source, const char *text, size_t length, char *out, size_t room) {
    size_t left = length - source->done;
    size_t n = left < room ? left : room;
    memcpy(out, text + source->done, n);
    source->done += n;
    return n;
}

static size_t pull_text(struct source *source, const struct piece *piece, char *out, size_t room) {
    return pull_bytes(source, source->text.data + piece->start, piece->end - piece->start, out, room);
}

static size_t pull_late(struct source *source, const struct piece *piece, char *out, size_t room) {
    return pull_bytes(source, piece->item->late->text, piece->item->late->n, out, room);
}

/* Whole rows straight to where they are wanted, as many as a block has: what is made is looked through while it is in
 * a cache. 0: they are made in the source's memory, and parts of them copied. */
static size_t pull_rows(struct source *source, const struct result_item *item, char *out, size_t room) {
    size_t size = pe_dtype_size(item->tensor.dtype), row_bytes = row_length(&item->tensor) * size;
    if (item->tensor.data || source->block_at < source->block_n || !row_bytes || (uintptr_t)out % size) {
        return 0;
    }
    size_t n = room / row_bytes, left = rows_left(source, item);
    n = n < left ? n : left;
    n = n < source->rows_room ? n : source->rows_room;
    if (n) {
        make_rows(source, item, n, out);
    }
    return source->failed ? 0 : n * row_bytes;
}

static size_t pull_binary(struct source *source, const struct piece *piece, char *out, size_t room) {
    size_t size = pe_dtype_size(piece->item->tensor.dtype), total = 0;
    while (room - total >= size && !source->failed) {
        size_t made = pull_rows(source, piece->item, out + total, room - total);
        total += made;
        if (made) {
            continue;
        }
        if (source->failed || !block_next(source, piece->item)) {
            break;
        }
        size_t n = source->block_n - source->block_at, fit = (room - total) / size;
        n = n < fit ? n : fit;
        memcpy(out + total, source->block + source->block_at * size, n * size);
        source->block_at += n;
        total += n * size;
    }
    return total;
}

static size_t write_number(struct source *source, const struct result_item *item, char *out) {
    size_t at = source->block_at++;
    double wide;
    float narrow = 0;
    if (item->tensor.dtype == PE_DTYPE_F32) {
        memcpy(&narrow, source->block + at * sizeof narrow, sizeof narrow);
        wide = narrow;
    } else {
        memcpy(&wide, source->block + at * sizeof wide, sizeof wide);
    }
    if (!isfinite(wide)) {
        source->failed = source->failed || !(item->minus_inf && wide < 0);
        memcpy(out, "null", 4);
        return 4;
    }
    return item->tensor.dtype == PE_DTYPE_F32 ? pe_number_write_f32(out, narrow)
                                              : pe_number_write_f64(out, wide);
}

/* From the next element on, at most n that are ready and have their texts in `room`: all of them finite, or one. */
static size_t run_length(const struct source *source, const struct result_item *item, size_t n, size_t room) {
    size_t ready = source->block_n - source->block_at, fit = (room - PE_NUMBER_ROOM) / TEXT_F32;
    n = n < ready ? n : ready;
    n = n < fit ? n : fit;
    if (item->tensor.dtype != PE_DTYPE_F32 || n < 2) {
        return 1;
    }
    const float *values = (const float *)(const void *)source->block + source->block_at;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= fabsf(values[i]) <= FLT_MAX;
    }
    return finite ? n : 1;
}

/* So many elements with commas between them. */
static size_t write_run(struct source *source, const struct result_item *item, size_t n, char *out) {
    if (n == 1) {
        return write_number(source, item, out);
    }
    const float *values = (const float *)(const void *)source->block + source->block_at;
    source->block_at += n;
    return pe_numbers_write_f32(out, values, n) - 1;
}

/* How many axes turn over at element i: all of [.., C] whose block of elements i is a multiple of. */
static int turns(const struct pe_tensor *tensor, size_t i) {
    size_t inner = 1;
    int n = 0;
    while (n < tensor->rank) {
        inner *= tensor->dim[tensor->rank - 1 - n];
        if (i % inner) {
            break;
        }
        n++;
    }
    return n;
}

static size_t pull_nested(struct source *source, const struct piece *piece, char *out, size_t room) {
    const struct pe_tensor *tensor = &piece->item->tensor;
    struct pe_tensor list = {.rank = 1, .dim = {pe_tensor_count(tensor)}};
    const struct pe_tensor *shape = source->flat && !piece->item->bare && tensor->rank ? &list : tensor;
    size_t total = 0, row = row_length(shape);
    while (room - total >= PE_NUMBER_ROOM + 2 * PE_MAX_RANK + 2 && block_next(source, piece->item)) {
        size_t i = source->done;
        if (i) {
            out[total++] = ',';
        }
        for (int n = i % row ? 0 : turns(shape, i); n > 0; n--) {
            out[total++] = '[';
        }
        size_t run = run_length(source, piece->item, row - i % row, room - total - PE_MAX_RANK);
        total += write_run(source, piece->item, run, out + total);
        source->done = i += run;
        for (int n = i % row ? 0 : turns(shape, i); n > 0; n--) {
            out[total++] = ']';
        }
    }
    return total;
}

static size_t pull_csv(struct source *source, const struct piece *piece, char *out, size_t room) {
    const struct pe_tensor *tensor = &piece->item->tensor;
    size_t total = 0, row = tensor->rank == 2 ? tensor->dim[1] : 1;
    while (room - total >= PE_NUMBER_ROOM + 2 && block_next(source, piece->item)) {
        size_t n = run_length(source, piece->item, row - source->done % row, room - total - 1);
        total += write_run(source, piece->item, n, out + total);
        source->done += n;
        out[total++] = source->done % row ? ',' : '\n';
    }
    return total;
}

/* Another line of the picture; false when there is none, or none yet, or none in this turn. */
static bool picture_next(struct source *source, const struct result_item *item) {
    struct picture *picture = source->picture;
    size_t size = pe_dtype_size(item->tensor.dtype);
    if (picture_done(picture) || picture_stopped(picture) || !source->pixels_left) {
        return false;
    }
    if (!picture_wants_row(picture)) {
        size_t pixels = picture_line(picture);
        source->pixels_left -= pixels < source->pixels_left ? pixels : source->pixels_left;
    } else if (block_next(source, item)) {
        picture_row(picture, source->block + source->block_at * size);
        source->block_at += row_length(&item->tensor);
    } else if (!source->failed) {
        picture_end(picture);
    }
    source->failed = source->failed || picture_failed(picture);
    return !source->failed;
}

static size_t pull_picture(struct source *source, const struct piece *piece, char *out, size_t room) {
    size_t total = 0;
    do {
        total += picture_take(source->picture, out + total, room - total);
    } while (total < room && picture_next(source, piece->item));
    return total;
}

static size_t pull_piece(struct source *source, const struct piece *piece, char *out, size_t room) {
    static size_t (*const pullers[])(struct source *, const struct piece *, char *, size_t) = {
        [PIECE_TEXT] = pull_text,     [PIECE_LATE] = pull_late, [PIECE_BINARY] = pull_binary,
        [PIECE_NESTED] = pull_nested, [PIECE_CSV] = pull_csv,   [PIECE_PNG] = pull_picture,
    };
    return pullers[piece->kind](source, piece, out, room);
}

static bool piece_done(struct source *source, const struct piece *piece) {
    if (piece->kind == PIECE_TEXT) {
        return source->done == piece->end - piece->start;
    }
    if (piece->kind == PIECE_LATE) {
        return source->done == piece->item->late->n;
    }
    if (piece->kind == PIECE_PNG) {
        return picture_done(source->picture);
    }
    return !block_more(source, piece->item);
}

/* Bytes of the pieces as they fit, in whole numbers; at least one while there are any and room >=
 * SOURCE_ROOM. */
static size_t pull_pieces(struct source *source, char *out, size_t room) {
    size_t total = 0;
    while (source->at < source->n && !source->failed) {
        const struct piece *piece = &source->pieces[source->at];
        total += pull_piece(source, piece, out + total, room - total);
        if (!piece_done(source, piece)) {
            break; /* no room */
        }
        source->at++;
        source->done = source->rows_done = source->block_n = source->block_at = 0;
        source->block = NULL;
    }
    return total;
}

static size_t pull(struct source *source, char *out, size_t room) {
    size_t total = 0;
    while (total < room) {
        if (source->spill_at < source->spill_n) {
            size_t left = source->spill_n - source->spill_at, n = left < room - total ? left : room - total;
            memcpy(out + total, source->spill + source->spill_at, n);
            source->spill_at += n;
            total += n;
            continue;
        }
        bool direct = room - total >= SOURCE_ROOM;
        size_t n = direct ? pull_pieces(source, out + total, room - total)
                          : pull_pieces(source, source->spill, SOURCE_ROOM);
        if (!n) {
            break;
        }
        if (direct) {
            total += n;
        } else {
            source->spill_n = n;
            source->spill_at = 0;
        }
    }
    return total;
}

size_t source_pull(struct source *source, char *out, size_t room) {
    source->pixels_left = UINT64_MAX;
    return pull(source, out, room);
}

size_t source_pull_turn(struct source *source, char *out, size_t room, bool *more) {
    source->pixels_left = TURN_PIXELS;
    size_t n = pull(source, out, room);
    *more = !source->failed && (source->at < source->n || source->spill_at < source->spill_n);
    return n;
}

void source_close(struct source *source) {
    text_free(&source->text);
}
