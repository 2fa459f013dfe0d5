/* SPDX-License-Identifier: MIT
 *
 * A matrix as a picture: an image/png with a square of pixels for each number, written line by line.
 */
#ifndef WIRE_PNG_H
#define WIRE_PNG_H

#include "wire/result.h"

enum png_theme { PNG_LIGHT = 1, PNG_DARK };

/* How it looks: fields of every request. */
struct png_look {
    uint64_t given;
    double domain; /* numbers from -domain to domain have colours of their own */
    int64_t cell;  /* pixels a side; not given: what makes a picture of a good size */
    int theme;
};
#define PNG_N_FIELDS 3
extern const struct pe_field png_fields[PNG_N_FIELDS];

/* Is this a matrix, a vector or a number, with elements? Leading axes of length 1 do not count. */
bool png_holds(const struct pe_tensor *tensor);
/* The picture takes no more than so many bytes, without what stands before its lines. look NULL: the defaults. */
uint64_t png_bound(const struct png_look *look, const struct pe_tensor *tensor);

struct text; /* wire/text.h */
struct png;  /* ARENA; all its memory is, and there before its lines are */
/* All that stands before the lines goes into `head`: sizes, colours, and as texts the tensor's name, the domain and
 * the encoding (JSON, NULL = none). Whoever asks err to stop stops the picture. NULL on failure. */
struct png *png_open(struct pe_arena *arena, const struct png_look *look, const struct result_item *item,
                     const char *encoding, struct text *head, struct pe_error *err);
/* What the bytes follow from beside numbers, look and texts: this file's version, and those of the libraries. */
#define PNG_MAKER_ROOM 96
void png_maker(char text[PNG_MAKER_ROOM]);
/* The look with what was not given. */
const struct png_look *png_look(const struct png *png);
/* The next bytes of those that are ready. */
size_t png_take(struct png *png, char *out, size_t room);
/* Is it time for another row of numbers? Then png_row, which reads them, or png_end after the last. */
bool png_wants_row(const struct png *png);
void png_row(struct png *png, const void *numbers);
/* The next line of pixels of the row; returns their number. */
size_t png_line(struct png *png);
void png_end(struct png *png);
/* No line will come any more: there was no memory, or it was asked to stop. */
bool png_failed(const struct png *png);
bool png_stopped(const struct png *png);
/* Was all of it taken? */
bool png_done(const struct png *png);

#endif
