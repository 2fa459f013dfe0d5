/* SPDX-License-Identifier: MIT
 *
 * A reply's body as a source of bytes: pieces of text and tensors in turn, pulled block by block. A tensor
 * that is made row by row is computed while it is pulled, through one block of memory, so a reply of any size
 * takes the same memory.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "wire/format.h"
#include "wire/text.h"

/* How a result is to be written, beside its format. */
struct source_style {
    bool flat;                       /* JSON: the numbers of a tensor in one list */
    const struct picture_look *look; /* png; NULL = the defaults */
};

#define SOURCE_ROOM       160 /* of one number with its brackets, and more */
#define SOURCE_MAX_PIECES (2 * RESULT_MAX + 2)

enum piece_kind { PIECE_TEXT, PIECE_LATE, PIECE_BINARY, PIECE_NESTED, PIECE_CSV, PIECE_PNG };

struct piece {
    enum piece_kind kind;
    size_t start, end; /* PIECE_TEXT: of source->text */
    const struct result_item *item;
};

struct source {
    struct text text; /* all pieces of text, one after the other */
    struct piece pieces[SOURCE_MAX_PIECES];
    size_t n, at;
    /* Where we are in the current piece. */
    size_t done;                /* bytes of text, elements of a tensor */
    const unsigned char *block; /* elements that are ready */
    size_t block_n, block_at;   /* in elements */
    size_t rows_done;
    unsigned char *rows;     /* memory for rows that are made here */
    size_t rows_room;        /* rows that fit in it */
    char spill[SOURCE_ROOM]; /* bytes that did not fit the caller's last block */
    size_t spill_n, spill_at;
    struct picture *picture; /* NULL: it is no picture */
    uint64_t pixels_left;    /* of this turn */
    bool flat;
    bool failed; /* a number that the format cannot hold, a picture without memory: the body ends short */
};

/* Describes the body of a result in a format. Memory for the rows of streamed tensors comes from the arena.
 * A result must have passed format_check. */
int source_open(struct source *source, struct pe_arena *arena, const struct format *format,
                const struct result *result, const struct source_style *style, struct pe_error *err);
/* The exact number of bytes, or -1 where only writing them can tell. */
int64_t source_length(const struct source *source);
/* No more than so many bytes. */
uint64_t source_bound(const struct source *source);
/* Of one tensor's numbers. */
uint64_t source_tensor_bound(const struct format *format, const struct source_style *style,
                             const struct pe_tensor *tensor);
/* The next bytes: all of `room`, but at the end; 0 = the end (or failed). */
size_t source_pull(struct source *source, char *out, size_t room);
/* The same, but no more than what one turn among others may cost: of pictures, whose pixels are packed by any factor
 * up to a thousand, fewer bytes than there is room for, or none yet. *more: are there any to come? */
size_t source_pull_turn(struct source *source, char *out, size_t room, bool *more);
/* All of it where it lies, into parts [SOURCE_MAX_PIECES], until source_close; nothing of it pulled yet. Returns their
 * number, 0 where some of it is still to be made. */
struct source_part {
    const void *bytes;
    size_t n;
};
size_t source_parts(const struct source *source, struct source_part *parts);
void source_close(struct source *source);

#endif
