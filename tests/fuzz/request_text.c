/* SPDX-License-Identifier: MIT
 *
 * A request taken out of a text; see request_text.h. The lines are copied into one block, in which zeros take
 * the place of what separates them.
 */
#include "fuzz/request_text.h"

#include "fuzz/target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Takes the next line off; it ends with a zero in place of its \n. */
static char *next_line(char **at, char *end, size_t *n) {
    char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    stop = stop ? stop : end;
    *stop = '\0';
    *n = (size_t)(stop - line);
    *at = stop < end ? stop + 1 : end;
    return line;
}

static void take_request_line(struct gate_request *head, char *line) {
    char *space = strchr(line, ' '), *last = strrchr(line, ' ');
    head->method = line;
    head->target = space ? space + 1 : "";
    head->version = "HTTP/1.1";
    if (space) {
        *space = '\0';
    }
    if (last && last != space && strncmp(last + 1, "HTTP/", 5) == 0) {
        *last = '\0';
        head->version = last + 1;
    }
}

static void take_header(struct gate_request *head, char *line, size_t n) {
    char *colon = memchr(line, ':', n);
    size_t name_size = colon ? (size_t)(colon - line) : n, skip = name_size + (colon != NULL);
    while (skip < n && (line[skip] == ' ' || line[skip] == '\t')) {
        skip++;
    }
    line[name_size] = '\0';
    if (head->n_headers < GATE_MAX_HEADERS) {
        head->headers[head->n_headers] = (struct gate_header){
            .name = line, .name_size = name_size, .value = line + skip, .value_size = n - skip};
    }
    head->n_headers++;
}

void request_text_open(struct request_text *text, const uint8_t *data, size_t size) {
    *text = (struct request_text){.block = malloc(size + 1)};
    FUZZ_EXPECT(text->block, "no memory");
    memcpy(text->block, data, size);
    char *at = text->block, *end = at + size;
    size_t n;
    take_request_line(&text->head, next_line(&at, end, &n));
    while (at < end) {
        char *line = next_line(&at, end, &n);
        if (n == 0) {
            break;
        }
        take_header(&text->head, line, n);
    }
    text->body = data + (at - text->block);
    text->body_n = (size_t)(end - at);
}

void request_text_close(struct request_text *text) {
    free(text->block);
}

const char *request_text_header(const struct request_text *text, const char *name) {
    const struct gate_request *head = &text->head;
    for (size_t i = 0; i < head->n_headers && i < GATE_MAX_HEADERS; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0) {
            return head->headers[i].value;
        }
    }
    return NULL;
}
