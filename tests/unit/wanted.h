/* SPDX-License-Identifier: MIT
 *
 * Messages list what there is: every encoding, every preset. A wanted text names such a list instead of
 * repeating it, so that a row added to a table breaks no test:
 *
 *     {types}         the encodings                {presets}    those of the service
 *     {formats}       of replies               {common}     the fields that every operation takes
 *     {positions}     the fields of positions as an object
 *     {fields of X}   those of an encoding or an operation
 *     {tensors of X}  that an operation can return
 *
 *     "must be one of {types}, got \"nope\""
 */
#ifndef WANTED_H
#define WANTED_H

struct presets;

/* The text with its lists written out; to be freed. A name in braces that is none of these fails the test. */
char *wanted_text(const struct presets *presets, const char *text);

#endif
