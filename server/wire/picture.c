/* SPDX-License-Identifier: MIT
 *
 * The colour of a number v in the domain [-d, d] is entry
 *
 *     i = floor((v + d) / (2 * d) * 255 + 0.5),    at least 0, at most 255,
 *
 * of 256, computed in float64 in this order (what is beyond the domain, -infinity too, has the colour of its end).
 * The domain is never taken from the numbers, so that pictures can be compared.
 *
 * The entries run from blue by a neutral colour, the background of the theme, to orange. In OKLab
 * (https://bottosson.github.io/posts/oklab/), with s = |2 * i / 255 - 1|:
 *
 *     L = middle + (end - middle) * s,    C = chroma * s,    hue = i < 128 ? 255 : 50 degrees
 *
 *     theme   middle   end    chroma
 *     light   0.97     0.42   0.145
 *     dark    0.22     0.86   0.15
 *
 *     a = C cos(hue),  b = C sin(hue)
 *     l = (L + 0.3963377774 a + 0.2158037573 b)^3      R =  4.0767416621 l - 3.3077115913 m + 0.2309699292 s
 *     m = (L - 0.1055613458 a - 0.0638541728 b)^3      G = -1.2684380046 l + 2.6097574011 m - 0.3413193965 s
 *     s = (L - 0.0894841775 a - 1.2914855480 b)^3      B = -0.0041960863 l - 0.7034186147 m + 1.7076147010 s
 *
 * Where R, G or B of either hue leaves [0, 1], C is the largest chroma at which none does, found between 0 and C by 40
 * halvings: the same for both hues, so that their lightness stays alike. A linear value x becomes
 * floor(255 * y + 0.5) with y = 12.92 x up to 0.0031308, else 1.055 x^(1/2.4) - 0.055. The web page computes its colours
 * by this text; here they are a table (tests/golden/make_colours.py), as powers and sines differ between C libraries.
 *
 * libpng writes: 8 bits a pixel, no filter (neighbours among palette entries say little), compression and its buffers
 * as fixed here, no time. So the same request gives the same bytes. Its memory is the arena's; its errors jump to
 * picture_try, past frames of libpng alone.
 */
#include "wire/picture.h"

#include "wire/picture_colours.h"
#include "wire/problem.h"
#include "wire/text.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define SIDE_MAX     ((size_t)65536) /* pixels: more is shown by no browser */
#define SIDE_DEFAULT ((size_t)1024)
#define CELL_DEFAULT ((size_t)16)
#define CHUNK_BYTES  ((size_t)8192)
#define CHUNK_FRAME  12 /* length, name, checksum */
#define LONG_TEXT    ((size_t)1024)
/* Of zlib, 268 KiB by zconf.h, and libpng beside a line; and of what both may have kept back and write at once. */
#define WORK_BYTES ((size_t)320 << 10)
#define WORK_ALIGN ((size_t)16)
#define OUT_BYTES  ((size_t)96 << 10)
#define LEVEL      4 /* two thirds of the time of 6, for a few per cent more bytes where cells are small */
/* One more with each change of LEVEL, palettes, rounding or whatever else makes other bytes of the same numbers: caches
 * ask by it whether what they keep still holds. */
#define PICTURE_VERSION 1

static const struct pe_choice themes[] = {
    {"light", PICTURE_LIGHT, "zero is nearly white"}, {"dark", PICTURE_DARK, "zero is nearly black"}, {0}};

const struct pe_field picture_fields[PICTURE_N_FIELDS] = {
    {PE_FIELD(picture_look, domain), .min = 0, .max = 1e300, .flags = PE_FIELD_OPEN_MIN, .def = "1",
     .doc = "format png: the numbers from -domain to domain have colours of their own, others those of the "
            "ends"},
    {PE_FIELD(picture_look, cell), .min = 1, .max = 64, .unit = "pixels",
     .doc = "format png: sides of the square for each number; default: the largest of 1 to 16 with which the "
            "picture is within 1024 x 1024"},
    {PE_FIELD(picture_look, theme), .choices = themes, .def = "light",
     .doc = "format png: colours for this background"},
};

struct picture {
    struct pe_arena *arena;
    struct pe_error err; /* of the arena */
    const struct pe_stop *stop;
    struct picture_look look;
    enum pe_dtype dtype;
    size_t columns, rows, width, height; /* of numbers, of pixels */
    unsigned char *pixels;               /* a line, [width] */
    size_t lines_left;                   /* of the row */
    unsigned char *work; /* memory for the lines, reserved before there are any: [work_left] */
    size_t work_left;
    struct text *head; /* where libpng's bytes go, or NULL: */
    char *out;         /* [out_room], `out_n` of which it wrote and `taken` are gone */
    size_t out_room, out_n, taken;
    const char *title, *encoding;
    png_structp writer;
    png_infop info;
    bool ended, failed;
};

/* ---- sizes ------------------------------------------------------------------------------------------- */

static int leading_ones(const struct pe_tensor *tensor) {
    int n = 0;
    while (n < tensor->rank && tensor->dim[n] == 1) {
        n++;
    }
    return n;
}

bool picture_holds(const struct pe_tensor *tensor) {
    return tensor->rank - leading_ones(tensor) <= 2 && pe_tensor_count(tensor) > 0;
}

/* Rows and columns of what picture_holds. */
static size_t columns_of(const struct pe_tensor *tensor) {
    return tensor->rank ? tensor->dim[tensor->rank - 1] : 1;
}

static size_t rows_of(const struct pe_tensor *tensor) {
    return pe_tensor_count(tensor) / columns_of(tensor);
}

static size_t cell_of(const struct picture_look *look, const struct pe_tensor *tensor) {
    if (look && pe_field_given(picture_fields, &picture_fields[1], look)) {
        return (size_t)look->cell;
    }
    size_t rows = rows_of(tensor), columns = columns_of(tensor);
    size_t fit = SIDE_DEFAULT / (rows > columns ? rows : columns);
    return fit < 1 ? 1 : fit > CELL_DEFAULT ? CELL_DEFAULT : fit;
}

static bool side_fits(size_t n, size_t cell) {
    return n <= SIDE_MAX / cell;
}

/* zlib's own bound, of any window: a ninth more at most. */
uint64_t picture_bound(const struct picture_look *look, const struct pe_tensor *tensor) {
    size_t cell = picture_holds(tensor) ? cell_of(look, tensor) : 0;
    if (!cell || !side_fits(rows_of(tensor), cell) || !side_fits(columns_of(tensor), cell)) {
        return pe_tensor_bytes(tensor); /* it is going to be refused */
    }
    uint64_t plain = (uint64_t)rows_of(tensor) * cell * ((uint64_t)columns_of(tensor) * cell + 1);
    uint64_t packed = plain + plain / 8 + plain / 64 + 64;
    return packed + (packed / CHUNK_BYTES + 2) * CHUNK_FRAME;
}

/* ---- libpng ------------------------------------------------------------------------------------------ */

static png_voidp give_memory(png_structp writer, png_alloc_size_t bytes) {
    struct picture *picture = png_get_mem_ptr(writer);
    size_t whole = bytes + (WORK_ALIGN - bytes % WORK_ALIGN) % WORK_ALIGN;
    if (whole > picture->work_left) {
        return pe_arena_alloc(picture->arena, bytes, &picture->err);
    }
    picture->work_left -= whole;
    return picture->work + picture->work_left;
}

static void keep_memory(png_structp writer, png_voidp block) {
    (void)writer; /* it goes with the arena */
    (void)block;
}

static void write_bytes(png_structp writer, png_bytep bytes, size_t n) {
    struct picture *picture = png_get_io_ptr(writer);
    if (picture->head) {
        text_add(picture->head, (const char *)bytes, n);
        return;
    }
    if (n > picture->out_room - picture->out_n) {
        png_error(writer, "no room");
    }
    memcpy(picture->out + picture->out_n, bytes, n);
    picture->out_n += n;
}

static void flush_nothing(png_structp writer) {
    (void)writer;
}

static void fail(png_structp writer, png_const_charp text) {
    (void)text;
    png_longjmp(writer, 1);
}

static void warn_nobody(png_structp writer, png_const_charp text) {
    (void)writer;
    (void)text;
}

/* A step that may jump out. */
static bool picture_try(struct picture *picture, void (*step)(struct picture *picture)) {
    if (setjmp(png_jmpbuf(picture->writer))) {
        picture->failed = true;
    } else {
        step(picture);
    }
    return !picture->failed;
}

static void set_text(struct picture *picture, const char *key, const char *value) {
    bool is_long = strlen(value) > LONG_TEXT;
    png_text text = {.compression = is_long ? PNG_TEXT_COMPRESSION_zTXt : PNG_TEXT_COMPRESSION_NONE,
                     .key = (png_charp)(uintptr_t)key,
                     .text = (png_charp)(uintptr_t)value};
    png_set_text(picture->writer, picture->info, &text, 1);
}

static void set_texts(struct picture *picture) {
    char domain[2 * PE_NUMBER_ROOM + 8] = "[";
    char *end = domain + 1;
    end += pe_number_write_f64(end, -picture->look.domain);
    memcpy(end, ", ", 2);
    end += 2 + pe_number_write_f64(end + 2, picture->look.domain);
    memcpy(end, "]", 2);
    set_text(picture, "Software", "posenc");
    set_text(picture, "Title", picture->title);
    set_text(picture, "Domain", domain);
    if (picture->encoding) {
        set_text(picture, "Encoding", picture->encoding);
    }
}

static void step_head(struct picture *picture) {
    const unsigned char(*colours)[3] = picture->look.theme == PICTURE_DARK ? picture_dark : picture_light;
    png_color palette[256];
    for (size_t i = 0; i < 256; i++) {
        palette[i] = (png_color){colours[i][0], colours[i][1], colours[i][2]};
    }
    png_set_write_fn(picture->writer, picture, write_bytes, flush_nothing);
    png_set_filter(picture->writer, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_compression_level(picture->writer, LEVEL);
    png_set_compression_strategy(picture->writer, 0);
    png_set_compression_mem_level(picture->writer, 8);
    png_set_compression_buffer_size(picture->writer, CHUNK_BYTES);
    picture->info = png_create_info_struct(picture->writer);
    if (!picture->info) {
        png_error(picture->writer, "no memory");
    }
    png_set_IHDR(picture->writer, picture->info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_PLTE(picture->writer, picture->info, palette, 256);
    set_texts(picture);
    png_write_info(picture->writer, picture->info);
}

static void step_line(struct picture *picture) {
    png_write_row(picture->writer, picture->pixels);
}

static void step_end(struct picture *picture) {
    png_write_end(picture->writer, NULL);
}

/* ---- from outside ------------------------------------------------------------------------------------ */

/* Whoever reads a picture as it is made must not lose the rest of it for want of memory. */
static bool reserve(struct picture *picture, struct pe_error *err) {
    size_t bytes = WORK_BYTES + picture->width + WORK_ALIGN - picture->width % WORK_ALIGN;
    picture->out_room = OUT_BYTES + 2 * picture->width;
    picture->pixels = pe_arena_alloc(picture->arena, picture->width, err);
    picture->out = picture->pixels ? pe_arena_alloc(picture->arena, picture->out_room, err) : NULL;
    picture->work = picture->out ? pe_arena_alloc(picture->arena, bytes, err) : NULL;
    picture->work_left = picture->work ? bytes : 0;
    return picture->work != NULL;
}

/* The struct with its sizes; NULL where there are too many pixels, or no memory. */
static struct picture *picture_plan(struct pe_arena *arena, const struct picture_look *look,
                                    const struct result_item *item, struct pe_error *err) {
    const struct pe_tensor *tensor = &item->tensor;
    size_t cell = cell_of(look, tensor), rows = rows_of(tensor), columns = columns_of(tensor);
    if (!side_fits(rows, cell) || !side_fits(columns, cell)) {
        pe_fail(
            err, SERVER_NOT_ACCEPTABLE, "format",
            "png cannot hold %zu x %zu numbers with %zu pixels a side for each: a side of the picture may "
            "have %zu pixels",
            rows, columns, cell, SIDE_MAX);
        return NULL;
    }
    struct picture *picture = pe_arena_array(arena, 1, sizeof *picture, err);
    if (!picture) {
        return NULL;
    }
    *picture = (struct picture){.arena = arena,
                                .stop = err->stop,
                                .dtype = tensor->dtype,
                                .rows = rows,
                                .columns = columns,
                                .width = columns * cell,
                                .height = rows * cell,
                                .title = item->name};
    pe_fields_init(picture_fields, PICTURE_N_FIELDS, &picture->look, sizeof picture->look);
    if (look) {
        picture->look = *look;
    }
    picture->look.cell = (int64_t)cell;
    return picture;
}

struct picture *picture_open(struct pe_arena *arena, const struct picture_look *look,
                             const struct result_item *item, const char *encoding, struct text *head,
                             struct pe_error *err) {
    struct picture *picture = picture_plan(arena, look, item, err);
    if (!picture) {
        return NULL;
    }
    picture->encoding = encoding;
    picture->head = head;
    picture->writer = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, fail, warn_nobody, picture,
                                                give_memory, keep_memory);
    if (!picture->writer || !picture_try(picture, step_head)) {
        int code = picture->err.code ? picture->err.code : PE_ERR_MEMORY;
        pe_fail(err, code, picture->err.path, "%s",
                picture->err.code ? picture->err.text : "no memory for the picture");
        return NULL;
    }
    picture->head = NULL;
    return reserve(picture, err) ? picture : NULL;
}

void picture_maker(char text[PICTURE_MAKER_ROOM]) {
    snprintf(text, PICTURE_MAKER_ROOM, "picture %d, libpng %s, zlib %s", PICTURE_VERSION,
             png_get_libpng_ver(NULL), zlibVersion());
}

const struct picture_look *picture_look(const struct picture *picture) {
    return &picture->look;
}

size_t picture_take(struct picture *picture, char *out, size_t room) {
    size_t left = picture->out_n - picture->taken, n = left < room ? left : room;
    memcpy(out, picture->out + picture->taken, n);
    picture->taken += n;
    if (picture->taken == picture->out_n) {
        picture->taken = picture->out_n = 0;
    }
    return n;
}

bool picture_wants_row(const struct picture *picture) {
    return picture->lines_left == 0;
}

static unsigned char entry_of(double value, double domain) {
    double i = floor((value + domain) / (2 * domain) * 255 + 0.5);
    double held = i > 255 ? 255 : i > 0 ? i : 0;
    return (unsigned char)held;
}

void picture_row(struct picture *picture, const void *numbers) {
    size_t size = pe_dtype_size(picture->dtype), cell = (size_t)picture->look.cell;
    for (size_t i = 0; i < picture->columns; i++) {
        double value;
        pe_dtype_load(picture->dtype, (const char *)numbers + i * size, 1, &value);
        memset(picture->pixels + i * cell, entry_of(value, picture->look.domain), cell);
    }
    picture->lines_left = cell;
}

size_t picture_line(struct picture *picture) {
    picture->lines_left--;
    picture_try(picture, step_line);
    return picture->width;
}

void picture_end(struct picture *picture) {
    picture->ended = true;
    picture_try(picture, step_end);
}

bool picture_failed(const struct picture *picture) {
    return picture->failed;
}

bool picture_stopped(const struct picture *picture) {
    return pe_stop_asked(picture->stop);
}

bool picture_done(const struct picture *picture) {
    return picture->ended && picture->out_n == 0;
}
