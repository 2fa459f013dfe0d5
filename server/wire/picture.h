/* SPDX-License-Identifier: MIT
 *
 * A matrix as a picture: an image/png with a square of pixels for each number, written line by line.
 */
#ifndef WIRE_PICTURE_H
#define WIRE_PICTURE_H

#include "wire/result.h"

enum picture_theme { PICTURE_LIGHT = 1, PICTURE_DARK };

/* How it looks: fields of every request. */
struct picture_look {
    uint64_t given;
    double domain; /* numbers from -domain to domain have colours of their own */
    int64_t cell;  /* pixels a side; not given: what makes a picture of a good size */
    int theme;
};
#define PICTURE_N_FIELDS 3
extern const struct pe_field picture_fields[PICTURE_N_FIELDS];

/* Is this a matrix, a vector or a number, with elements? Leading axes of length 1 do not count. */
bool picture_holds(const struct pe_tensor *tensor);
/* The picture takes no more than so many bytes, without what stands before its lines. look NULL: the defaults. */
uint64_t picture_bound(const struct picture_look *look, const struct pe_tensor *tensor);

struct text;    /* wire/text.h */
struct picture; /* ARENA; all its memory is, and there before its lines are */
/* All that stands before the lines goes into `head`: sizes, colours, and as texts the tensor's name, the domain and
 * the encoding (JSON, NULL = none). Whoever asks err to stop stops the picture. NULL on failure. */
struct picture *picture_open(struct pe_arena *arena, const struct picture_look *look,
                             const struct result_item *item, const char *encoding, struct text *head,
                             struct pe_error *err);
/* What the bytes follow from beside numbers, look and texts: this file's version, and those of the libraries. */
#define PICTURE_MAKER_ROOM 96
void picture_maker(char text[PICTURE_MAKER_ROOM]);
/* The look with what was not given. */
const struct picture_look *picture_look(const struct picture *picture);
/* The next bytes of those that are ready. */
size_t picture_take(struct picture *picture, char *out, size_t room);
/* Is it time for another row of numbers? Then picture_row, which reads them, or picture_end after the last. */
bool picture_wants_row(const struct picture *picture);
void picture_row(struct picture *picture, const void *numbers);
/* The next line of pixels of the row; returns their number. */
size_t picture_line(struct picture *picture);
void picture_end(struct picture *picture);
/* No line will come any more: there was no memory, or it was asked to stop. */
bool picture_failed(const struct picture *picture);
bool picture_stopped(const struct picture *picture);
/* Was all of it taken? */
bool picture_done(const struct picture *picture);

#endif
