/* SPDX-License-Identifier: MIT
 *
 * Content negotiation after DESIGN's order: the query wins, since a link must give the same bytes whoever
 * follows it. Accept is read as RFC 9110 says: media ranges with weights; ranges with a star are not specific
 * and decide nothing.
 */
#include "wire/format.h"

#include "wire/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BIT(dtype) (1u << (dtype))
#define WIDE       (BIT(PE_DTYPE_F64) | BIT(PE_DTYPE_F32))
#define IEEE       (WIDE | BIT(PE_DTYPE_F16))
#define ALL        (IEEE | BIT(PE_DTYPE_BF16))
#define NO_WEIGHT  (-1.0)

static const struct format formats[FORMAT_COUNT] = {
    [FORMAT_JSON] =
        {FORMAT_JSON, "json", "application/json", {"text/json"}, true, true, false, PE_MAX_RANK, WIDE},
    [FORMAT_NPY] =
        {FORMAT_NPY, "npy", "application/x-npy", {"application/npy"}, true, false, false, PE_MAX_RANK, IEEE},
    [FORMAT_RAW] = {FORMAT_RAW, "raw", "application/octet-stream", {0}, true, false, false, PE_MAX_RANK, ALL},
    [FORMAT_SAFETENSORS] = {FORMAT_SAFETENSORS,
                            "safetensors",
                            "application/x-safetensors",
                            {"application/safetensors", "application/vnd.safetensors"},
                            true,
                            true,
                            false,
                            PE_MAX_RANK,
                            ALL},
    [FORMAT_CSV] = {FORMAT_CSV, "csv", "text/csv", {0}, false, false, false, 2, WIDE},
    [FORMAT_PNG] = {FORMAT_PNG, "png", "image/png", {0}, false, false, true, 2, WIDE},
};

const struct format *format_at(enum format_id id) {
    return &formats[id];
}

const struct format *format_find(const char *name) {
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

static bool media_is(const char *media, const char *text, size_t length) {
    return media && strlen(media) == length && strncasecmp(media, text, length) == 0;
}

static const struct format *media_find(const char *text, size_t length) {
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (media_is(formats[i].media, text, length)) {
            return &formats[i];
        }
        for (size_t a = 0; a < PE_COUNT(formats[i].aliases); a++) {
            if (media_is(formats[i].aliases[a], text, length)) {
                return &formats[i];
            }
        }
    }
    return NULL;
}

/* The media type at the start of a header value, without parameters and surrounding blanks. */
static size_t media_length(const char *text) {
    size_t n = strcspn(text, ";,");
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t')) {
        n--;
    }
    return n;
}

const struct format *format_of_body(const char *content_type, struct pe_error *err) {
    static const char form[] = "application/x-www-form-urlencoded";
    if (!content_type || !content_type[0] || media_is(form, content_type, media_length(content_type))) {
        return &formats[FORMAT_JSON];
    }
    size_t n = media_length(content_type);
    const struct format *format = media_find(content_type, n);
    if (!format && n > 5 && strncasecmp(content_type + n - 5, "+json", 5) == 0) {
        format = &formats[FORMAT_JSON];
    }
    if (format && format->body) {
        return format;
    }
    pe_fail(err, SERVER_MEDIA_TYPE, "Content-Type",
            "must be one of application/json, application/x-npy, application/octet-stream, "
            "application/x-safetensors, got \"%.80s\"",
            content_type);
    return NULL;
}

static void names_of(unsigned set, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0, at = 0; i < FORMAT_COUNT && at < size; i++) {
        if (set & (1u << i)) {
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", formats[i].name);
        }
    }
}

/* The bytes up to the next of `marks` that is not inside a quoted string. */
static size_t span_to(const char *text, size_t length, const char *marks) {
    bool quoted = false;
    size_t i = 0;
    for (; i < length && (quoted || !strchr(marks, text[i])); i++) {
        if (quoted && text[i] == '\\' && i + 1 < length) {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        }
    }
    return i;
}

/* Digits with at most one point, up to 1; else NO_WEIGHT. Java's q=.2, and more than the three digits of RFC 9110, are
 * none by its grammar, but clear. */
static double weight_read(const char *text) {
    static const char digits[] = "0123456789";
    size_t whole = strspn(text, digits), point = text[whole] == '.';
    size_t part = strspn(text + whole + point, digits), n = whole + point + part;
    n += strspn(text + n, " \t");
    bool ends = !text[n] || strchr(";,", text[n]);
    double weight = whole + part > 0 && ends ? strtod(text, NULL) : NO_WEIGHT;
    return weight <= 1 ? weight : NO_WEIGHT;
}

/* The weight of a media range or coding: q=0.5; 1 where it is not given. An element with NO_WEIGHT is passed over, as
 * nobody knows whether it asks or refuses. */
static double weight_of(const char *range, size_t length) {
    for (size_t i = span_to(range, length, ";"); i < length; i += span_to(range + i, length - i, ";")) {
        i++;
        i += strspn(range + i, " \t");
        if ((range[i] | 0x20) == 'q' && range[i + 1] == '=') {
            return weight_read(range + i + 2);
        }
    }
    return 1;
}

/* What an Accept says: the specific type with the highest weight, those it refuses (q=0), and whether it takes
 * anything else, as one does that says nothing. Browsers that ask for a page (text/html) take pictures in its place,
 * some by name, and anything: whoever follows a link did not ask for a picture of the numbers. */
struct accept {
    const struct format *best;
    double best_weight;
    unsigned refused; /* bits by enum format_id */
    bool said, open, page;
};

static void accept_range(struct accept *accept, const char *range, size_t length) {
    double weight = weight_of(range, length);
    const struct format *format = media_find(range, media_length(range));
    if (weight == NO_WEIGHT) {
        return;
    }
    accept->said = true;
    if (format && weight == 0) {
        accept->refused |= 1u << format->id;
    } else if (format && weight > accept->best_weight) {
        accept->best = format;
        accept->best_weight = weight;
    } else if (!format && weight > 0 && length && memchr(range, '*', media_length(range))) {
        accept->open = true;
    } else if (weight > 0 && media_is("text/html", range, media_length(range))) {
        accept->page = true;
    }
}

static struct accept accept_read(const char *text) {
    struct accept accept = {0};
    for (const char *p = text + strspn(text, " \t,"); *p; p += strspn(p, " \t,")) {
        size_t length = span_to(p, strlen(p), ",");
        accept_range(&accept, p, length);
        p += length;
    }
    if (accept.best && accept.best->image && accept.page && accept.open) {
        accept.best = NULL;
    }
    accept.open = accept.open || !accept.said;
    return accept;
}

/* Where gzip is not welcome all goes out as it is, also to who refuses `identity`, as the replies of operations do, which
 * have no other coding: RFC 9110 lets a server pass over what it cannot serve, and 406 would help nobody. */
bool format_takes_gzip(const char *text) {
    static const char *const codings[] = {"gzip", "x-gzip", "identity", "*"};
    double weights[] = {NO_WEIGHT, NO_WEIGHT, NO_WEIGHT, NO_WEIGHT};
    for (const char *p = text ? text + strspn(text, " \t,") : ""; *p; p += strspn(p, " \t,")) {
        size_t length = span_to(p, strlen(p), ",");
        double weight = weight_of(p, length);
        for (size_t i = 0; i < PE_COUNT(codings) && weight != NO_WEIGHT; i++) {
            weights[i] = media_is(codings[i], p, media_length(p)) ? weight : weights[i];
        }
        p += length;
    }
    double gzip = weights[0] >= 0 ? weights[0] : weights[1] >= 0 ? weights[1] : weights[3];
    return gzip > 0 && gzip >= weights[2];
}

/* Where anything goes: this one, or the first that is not refused; NULL when all are. */
static const struct format *not_refused(const struct format *format, unsigned refused) {
    for (size_t i = 0; refused & (1u << format->id); i++) {
        if (i == FORMAT_COUNT) {
            return NULL;
        }
        format = &formats[i];
    }
    return format;
}

const struct format *format_choose(const char *asked, const char *accept, const struct format *body,
                                   struct pe_error *err) {
    char names[100];
    if (asked) {
        const struct format *format = format_find(asked);
        if (!format) {
            names_of(~0u, names, sizeof names);
            pe_fail(err, PE_ERR_CHOICE, "format", "must be one of %s, got \"%.60s\"", names, asked);
        }
        return format;
    }
    struct accept read = accept_read(accept ? accept : "");
    if (!read.best && read.open) {
        read.best = not_refused(body ? body : &formats[FORMAT_JSON], read.refused);
    }
    if (!read.best) {
        names_of(~0u, names, sizeof names);
        pe_fail(err, SERVER_NOT_ACCEPTABLE, "Accept", "no format fits \"%.80s\"; there are %s", accept,
                names);
    }
    return read.best;
}

static bool holds(const struct format *format, const struct pe_tensor *tensor) {
    bool shape = format->image ? picture_holds(tensor) : tensor->rank <= format->max_rank;
    return shape && (format->dtypes & BIT(tensor->dtype));
}

/* Can this format hold all tensors of the result? */
static bool fits(const struct format *format, const struct result *result) {
    if (result_n_tensors(result) > 1 && !format->many) {
        return false;
    }
    for (size_t i = 0; i < result->n; i++) {
        const struct result_item *item = &result->items[i];
        if (result_is_tensor(item) && !holds(format, &item->tensor)) {
            return false;
        }
    }
    return result_n_tensors(result) > 0 || format->id == FORMAT_JSON;
}

static void tensors_of(const struct result *result, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0, at = 0; i < result->n && at < size; i++) {
        if (result_is_tensor(&result->items[i])) {
            const struct pe_tensor *tensor = &result->items[i].tensor;
            at += (size_t)snprintf(text + at, size - at, "%s%s %s of rank %d%s", at ? ", " : "",
                                   result->items[i].name, pe_dtype_name(tensor->dtype), tensor->rank,
                                   pe_tensor_count(tensor) ? "" : " without elements");
        }
    }
}

int format_check(const struct format *format, const struct result *result, struct pe_error *err) {
    if (fits(format, result)) {
        return PE_OK;
    }
    unsigned others = 0;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        others |= fits(&formats[i], result) ? 1u << i : 0;
    }
    char names[100], tensors[160];
    names_of(others, names, sizeof names);
    tensors_of(result, tensors, sizeof tensors);
    bool one_of_many = result_n_tensors(result) > 1 && !format->many;
    return pe_fail(err, SERVER_NOT_ACCEPTABLE, "format", "%s cannot hold this reply (%s); use %s%s",
                   format->name, tensors[0] ? tensors : "no tensor", names,
                   one_of_many ? ", or name one tensor by return=" : "");
}

int format_check_look(const struct format *format, const struct picture_look *look, struct pe_error *err) {
    for (size_t i = 0; look && !format->image && i < PICTURE_N_FIELDS; i++) {
        if (pe_field_given(picture_fields, &picture_fields[i], look)) {
            pe_fail(err, PE_ERR_CONFLICT, picture_fields[i].name,
                    "is of format=png alone, and this reply is %s", format->name);
            return pe_error_at(err, "png");
        }
    }
    return PE_OK;
}
