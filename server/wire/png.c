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
 * png_try, past frames of libpng alone.
 */
#include "wire/png.h"

#include "wire/png_colours.h"
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
    {"light", PNG_LIGHT, "zero is nearly white"}, {"dark", PNG_DARK, "zero is nearly black"}, {0}};

const struct pe_field png_fields[PNG_N_FIELDS] = {
    {PE_FIELD(png_look, domain), .min = 0, .max = 1e300, .flags = PE_FIELD_OPEN_MIN, .def = "1",
     .doc = "format png: the numbers from -domain to domain have colours of their own, others those of the "
            "ends"},
    {PE_FIELD(png_look, cell), .min = 1, .max = 64, .unit = "pixels",
     .doc = "format png: sides of the square for each number; default: the largest of 1 to 16 with which the "
            "picture is within 1024 x 1024"},
    {PE_FIELD(png_look, theme), .choices = themes, .def = "light",
     .doc = "format png: colours for this background"},
};

struct png {
    struct pe_arena *arena;
    struct pe_error err; /* of the arena */
    const struct pe_stop *stop;
    struct png_look look;
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

bool png_holds(const struct pe_tensor *tensor) {
    return tensor->rank - leading_ones(tensor) <= 2 && pe_tensor_count(tensor) > 0;
}

/* Rows and columns of what png_holds. */
static size_t columns_of(const struct pe_tensor *tensor) {
    return tensor->rank ? tensor->dim[tensor->rank - 1] : 1;
}

static size_t rows_of(const struct pe_tensor *tensor) {
    return pe_tensor_count(tensor) / columns_of(tensor);
}

static size_t cell_of(const struct png_look *look, const struct pe_tensor *tensor) {
    if (look && pe_field_given(png_fields, &png_fields[1], look)) {
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
uint64_t png_bound(const struct png_look *look, const struct pe_tensor *tensor) {
    size_t cell = png_holds(tensor) ? cell_of(look, tensor) : 0;
    if (!cell || !side_fits(rows_of(tensor), cell) || !side_fits(columns_of(tensor), cell)) {
        return pe_tensor_bytes(tensor); /* it is going to be refused */
    }
    uint64_t plain = (uint64_t)rows_of(tensor) * cell * ((uint64_t)columns_of(tensor) * cell + 1);
    uint64_t packed = plain + plain / 8 + plain / 64 + 64;
    return packed + (packed / CHUNK_BYTES + 2) * CHUNK_FRAME;
}

/* ---- libpng ------------------------------------------------------------------------------------------ */

static png_voidp give_memory(png_structp writer, png_alloc_size_t bytes) {
    struct png *png = png_get_mem_ptr(writer);
    size_t whole = bytes + (WORK_ALIGN - bytes % WORK_ALIGN) % WORK_ALIGN;
    if (whole > png->work_left) {
        return pe_arena_alloc(png->arena, bytes, &png->err);
    }
    png->work_left -= whole;
    return png->work + png->work_left;
}

static void keep_memory(png_structp writer, png_voidp block) {
    (void)writer; /* it goes with the arena */
    (void)block;
}

static void write_bytes(png_structp writer, png_bytep bytes, size_t n) {
    struct png *png = png_get_io_ptr(writer);
    if (png->head) {
        text_add(png->head, (const char *)bytes, n);
        return;
    }
    if (n > png->out_room - png->out_n) {
        png_error(writer, "no room");
    }
    memcpy(png->out + png->out_n, bytes, n);
    png->out_n += n;
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
static bool png_try(struct png *png, void (*step)(struct png *png)) {
    if (setjmp(png_jmpbuf(png->writer))) {
        png->failed = true;
    } else {
        step(png);
    }
    return !png->failed;
}

static void set_text(struct png *png, const char *key, const char *value) {
    bool is_long = strlen(value) > LONG_TEXT;
    png_text text = {.compression = is_long ? PNG_TEXT_COMPRESSION_zTXt : PNG_TEXT_COMPRESSION_NONE,
                     .key = (png_charp)(uintptr_t)key,
                     .text = (png_charp)(uintptr_t)value};
    png_set_text(png->writer, png->info, &text, 1);
}

static void set_texts(struct png *png) {
    char domain[2 * PE_NUMBER_ROOM + 8] = "[";
    char *end = domain + 1;
    end += pe_number_write_f64(end, -png->look.domain);
    memcpy(end, ", ", 2);
    end += 2 + pe_number_write_f64(end + 2, png->look.domain);
    memcpy(end, "]", 2);
    set_text(png, "Software", "posenc");
    set_text(png, "Title", png->title);
    set_text(png, "Domain", domain);
    if (png->encoding) {
        set_text(png, "Encoding", png->encoding);
    }
}

static void step_head(struct png *png) {
    const unsigned char(*colours)[3] = png->look.theme == PNG_DARK ? png_dark : png_light;
    png_color palette[256];
    for (size_t i = 0; i < 256; i++) {
        palette[i] = (png_color){colours[i][0], colours[i][1], colours[i][2]};
    }
    png_set_write_fn(png->writer, png, write_bytes, flush_nothing);
    png_set_filter(png->writer, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_compression_level(png->writer, LEVEL);
    png_set_compression_strategy(png->writer, 0);
    png_set_compression_mem_level(png->writer, 8);
    png_set_compression_buffer_size(png->writer, CHUNK_BYTES);
    png->info = png_create_info_struct(png->writer);
    if (!png->info) {
        png_error(png->writer, "no memory");
    }
    png_set_IHDR(png->writer, png->info, (png_uint_32)png->width, (png_uint_32)png->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_PLTE(png->writer, png->info, palette, 256);
    set_texts(png);
    png_write_info(png->writer, png->info);
}

static void step_line(struct png *png) {
    png_write_row(png->writer, png->pixels);
}

static void step_end(struct png *png) {
    png_write_end(png->writer, NULL);
}

/* ---- from outside ------------------------------------------------------------------------------------ */

/* Whoever reads a picture as it is made must not lose the rest of it for want of memory. */
static bool reserve(struct png *png, struct pe_error *err) {
    size_t bytes = WORK_BYTES + png->width + WORK_ALIGN - png->width % WORK_ALIGN;
    png->out_room = OUT_BYTES + 2 * png->width;
    png->pixels = pe_arena_alloc(png->arena, png->width, err);
    png->out = png->pixels ? pe_arena_alloc(png->arena, png->out_room, err) : NULL;
    png->work = png->out ? pe_arena_alloc(png->arena, bytes, err) : NULL;
    png->work_left = png->work ? bytes : 0;
    return png->work != NULL;
}

/* The struct with its sizes; NULL where there are too many pixels, or no memory. */
static struct png *png_plan(struct pe_arena *arena, const struct png_look *look,
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
    struct png *png = pe_arena_array(arena, 1, sizeof *png, err);
    if (!png) {
        return NULL;
    }
    *png = (struct png){.arena = arena,
                        .stop = err->stop,
                        .dtype = tensor->dtype,
                        .rows = rows,
                        .columns = columns,
                        .width = columns * cell,
                        .height = rows * cell,
                        .title = item->name};
    pe_fields_init(png_fields, PNG_N_FIELDS, &png->look, sizeof png->look);
    if (look) {
        png->look = *look;
    }
    png->look.cell = (int64_t)cell;
    return png;
}

struct png *png_open(struct pe_arena *arena, const struct png_look *look, const struct result_item *item,
                     const char *encoding, struct text *head, struct pe_error *err) {
    struct png *png = png_plan(arena, look, item, err);
    if (!png) {
        return NULL;
    }
    png->encoding = encoding;
    png->head = head;
    png->writer = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, fail, warn_nobody, png, give_memory,
                                            keep_memory);
    if (!png->writer || !png_try(png, step_head)) {
        int code = png->err.code ? png->err.code : PE_ERR_MEMORY;
        pe_fail(err, code, png->err.path, "%s", png->err.code ? png->err.text : "no memory for the picture");
        return NULL;
    }
    png->head = NULL;
    return reserve(png, err) ? png : NULL;
}

void png_maker(char text[PNG_MAKER_ROOM]) {
    snprintf(text, PNG_MAKER_ROOM, "picture %d, libpng %s, zlib %s", PICTURE_VERSION,
             png_get_libpng_ver(NULL), zlibVersion());
}

const struct png_look *png_look(const struct png *png) {
    return &png->look;
}

size_t png_take(struct png *png, char *out, size_t room) {
    size_t left = png->out_n - png->taken, n = left < room ? left : room;
    memcpy(out, png->out + png->taken, n);
    png->taken += n;
    if (png->taken == png->out_n) {
        png->taken = png->out_n = 0;
    }
    return n;
}

bool png_wants_row(const struct png *png) {
    return png->lines_left == 0;
}

static unsigned char entry_of(double value, double domain) {
    double i = floor((value + domain) / (2 * domain) * 255 + 0.5);
    double held = i > 255 ? 255 : i > 0 ? i : 0;
    return (unsigned char)held;
}

void png_row(struct png *png, const void *numbers) {
    size_t size = pe_dtype_size(png->dtype), cell = (size_t)png->look.cell;
    for (size_t i = 0; i < png->columns; i++) {
        double value;
        pe_dtype_load(png->dtype, (const char *)numbers + i * size, 1, &value);
        memset(png->pixels + i * cell, entry_of(value, png->look.domain), cell);
    }
    png->lines_left = cell;
}

size_t png_line(struct png *png) {
    png->lines_left--;
    png_try(png, step_line);
    return png->width;
}

void png_end(struct png *png) {
    png->ended = true;
    png_try(png, step_end);
}

bool png_failed(const struct png *png) {
    return png->failed;
}

bool png_stopped(const struct png *png) {
    return pe_stop_asked(png->stop);
}

bool png_done(const struct png *png) {
    return png->ended && png->out_n == 0;
}
