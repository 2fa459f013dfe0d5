/* SPDX-License-Identifier: MIT
 *
 * Pictures: every pixel of a decoded one against the rule of server/wire/picture.c, for random numbers, shapes, cells and
 * domains; the texts in them; what is refused; and that want of memory, a stop or a limit end them honestly. The
 * colours themselves are looked at by tests/http/test_png.py.
 */
#include "call_run.h"
#include "random.h"
#include "suites.h"
#include "wire/source.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "/v1/encode?type=sinusoidal&d_model=4&positions=0:3"

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

struct image {
    const struct call_try *try;
    size_t at;
    png_structp reader;
    png_infop info;
    png_bytepp lines;
    size_t width, height;
};

static void read_bytes(png_structp reader, png_bytep out, size_t n) {
    struct image *image = png_get_io_ptr(reader);
    if (n > image->try->reply_n - image->at) {
        png_error(reader, "the picture ends early");
    }
    memcpy(out, image->try->reply + image->at, n);
    image->at += n;
}

static void give_up(png_structp reader, png_const_charp text) {
    (void)reader;
    ck_abort_msg("libpng: %s", text);
}

static struct image image_open(const struct call_try *try) {
    struct image image = {.try = try};
    ck_assert_msg(try->status == 200, "%s: %s", try->request, try->reply);
    ck_assert_str_eq(call_try_header(try, "Content-Type"), "image/png");
    image.reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, give_up, give_up);
    image.info = png_create_info_struct(image.reader);
    png_set_read_fn(image.reader, &image, read_bytes);
    png_read_png(image.reader, image.info, PNG_TRANSFORM_IDENTITY, NULL);
    ck_assert_uint_eq(image.at, try->reply_n);
    ck_assert_int_eq(png_get_color_type(image.reader, image.info), PNG_COLOR_TYPE_PALETTE);
    ck_assert_int_eq(png_get_bit_depth(image.reader, image.info), 8);
    image.lines = png_get_rows(image.reader, image.info);
    image.width = png_get_image_width(image.reader, image.info);
    image.height = png_get_image_height(image.reader, image.info);
    return image;
}

static void image_close(struct image *image) {
    png_destroy_read_struct(&image->reader, &image->info, NULL);
}

static const char *text_of(const struct image *image, const char *key) {
    png_textp texts;
    int n = png_get_text(image->reader, image->info, &texts, NULL);
    for (int i = 0; i < n; i++) {
        if (strcmp(texts[i].key, key) == 0) {
            return texts[i].text;
        }
    }
    return "";
}

/* The rule, written once more: the nearest of the 256 points of [-d, d], the upper one of two. */
static int rule(double v, double d) {
    double share = (v + d) / (2 * d);
    if (share >= 1) {
        return 255;
    }
    return share > 0 ? (int)floor(share * 255 + 0.5) : 0;
}

static void expect_cells(const struct image *image, const double *numbers, size_t rows, size_t columns,
                         size_t cell, double domain) {
    ck_assert_uint_eq(image->width, columns * cell);
    ck_assert_uint_eq(image->height, rows * cell);
    for (size_t y = 0; y < image->height; y++) {
        for (size_t x = 0; x < image->width; x++) {
            int wanted = rule(numbers[y / cell * columns + x / cell], domain);
            if (image->lines[y][x] != wanted) {
                ck_abort_msg("pixel %zu, %zu is %d, not %d", x, y, image->lines[y][x], wanted);
            }
        }
    }
}

/* ---- Cells --------------------------------------------------------------------------------------------- */

#define MOST 4096

/* The size that cells have where nothing is said. */
static size_t usual_cell(size_t rows, size_t columns) {
    size_t cell = 16;
    while (cell > 1 && cell * (rows > columns ? rows : columns) > 1024) {
        cell--;
    }
    return cell;
}

/* For a query, where a plus is a blank. */
static const char *domain_text(double domain) {
    static char text[PE_NUMBER_ROOM + 1];
    text[pe_number_write_f64(text, domain)] = '\0';
    ck_assert_ptr_null(strchr(text, '+'));
    return text;
}

static void expect_posted(const double *numbers, size_t rows, size_t columns, size_t cell, double domain) {
    char request[200], shape[60];
    int n = snprintf(request, sizeof request, "POST /v1/apply?type=none&format=png&png.domain=%s",
                     domain_text(domain));
    if (cell) {
        snprintf(request + n, sizeof request - (size_t)n, "&png.cell=%zu", cell);
    }
    snprintf(shape, sizeof shape, "%zu,%zu", rows, columns);
    struct call_try try = {.request = request,
                           .body = numbers,
                           .body_n = rows * columns * sizeof *numbers,
                           .head.content_type = "application/octet-stream",
                           .head.raw_shape = shape,
                           .head.raw_dtype = "float64"};
    call_try(&ground, &try);
    struct image image = image_open(&try);
    expect_cells(&image, numbers, rows, columns, cell ? cell : usual_cell(rows, columns), domain);
    image_close(&image);
    call_try_close(&try);
}

START_TEST(random_cells) {
    static const size_t shapes[][2] = {{1, 1}, {1, 7}, {7, 1}, {5, 9}, {1, 1025}, {63, 64}, {2, 2000}};
    static const double domains[] = {1, 0.25, 3.7, 1e-300, 0x1p900};
    static double numbers[MOST];
    uint64_t seed = 1;
    for (size_t i = 0; i < PE_COUNT(shapes) * PE_COUNT(domains); i++) {
        const size_t *shape = shapes[i / PE_COUNT(domains)];
        double domain = domains[i % PE_COUNT(domains)];
        for (size_t k = 0; k < shape[0] * shape[1]; k++) {
            numbers[k] = domain * (2.4 * ((double)(random_next(&seed) >> 11) * 0x1p-53) - 1.2);
        }
        expect_posted(numbers, shape[0], shape[1], 0, domain);
        expect_posted(numbers, shape[0], shape[1], 1 + i % 5, domain);
    }
    expect_posted(numbers, 3, 2, 64, 1);
}
END_TEST

/* By hand: the ends, what is beyond them, zero, and numbers on both sides of where an entry begins. */
START_TEST(entries) {
    static const struct {
        double value, domain;
        int entry;
    } rows[] = {{-1, 1, 0},
                {1, 1, 255},
                {-7, 1, 0},
                {1e308, 1, 255},
                {0, 1, 128},
                {-0.0, 1, 128},
                {-0x1p-50, 1, 127},
                {0.5, 1, 191},
                {-0.5, 1, 64},
                {0.5, 2, 159},
                {-2, 2, 0},
                {5e-324, 0x1p900, 128},
                {-253.99 / 255, 1, 1},
                {-254.01 / 255, 1, 0},
                {-1e308, 0x1p900, 0}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char request[100];
        snprintf(request, sizeof request, "POST /v1/apply?type=none&format=png&png.cell=1&png.domain=%s",
                 domain_text(rows[i].domain));
        struct call_try try = {.request = request,
                               .body = &rows[i].value,
                               .body_n = sizeof(double),
                               .head.content_type = "application/octet-stream",
                               .head.raw_shape = "1,1",
                               .head.raw_dtype = "float64"};
        call_try(&ground, &try);
        struct image image = image_open(&try);
        ck_assert_msg(image.lines[0][0] == rows[i].entry, "%g in %g: entry %d, not %d", rows[i].value,
                      rows[i].domain, image.lines[0][0], rows[i].entry);
        image_close(&image);
        call_try_close(&try);
    }
}
END_TEST

/* A picture and the numbers that the same request gives as raw float32. */
static void expect_alike(const char *get, size_t rows, size_t columns, bool streamed) {
    char request[300];
    snprintf(request, sizeof request, "GET %s&format=raw", get);
    struct call_try raw = {.request = request};
    call_try(&ground, &raw);
    ck_assert_msg(raw.status == 200 && raw.reply_n == rows * columns * sizeof(float), "%s", get);
    double *numbers = malloc(rows * columns * sizeof *numbers);
    pe_dtype_load(PE_DTYPE_F32, raw.reply, rows * columns, numbers);
    call_try_close(&raw);
    snprintf(request, sizeof request, "GET %s&format=png", get);
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_int_eq(call_reply(try.call)->stream, streamed);
    struct image image = image_open(&try);
    expect_cells(&image, numbers, rows, columns, usual_cell(rows, columns), 1);
    image_close(&image);
    call_try_close(&try);
    free(numbers);
}

/* Row 0 is on top and column 0 on the left; leading axes of length 1 do not count; a vector is one row. */
START_TEST(operations) {
    expect_alike("/v1/encode?type=sinusoidal&d_model=6&positions=0:4", 4, 6, false);
    expect_alike("/v1/encode?type=sinusoidal&d_model=6&positions=[[0,1,2]]", 3, 6, false);
    expect_alike("/v1/encode?type=rope&layout=halves&head_dim=8&positions=0:4&return=inv_freq", 1, 4, false);
    expect_alike("/v1/bias?type=alibi&heads=8&head_index=0&query_positions=2:4&key_positions=0:4", 2, 4,
                 false);
    expect_alike("/v1/block?tokens=to,be,or&width=8&weights_seed=1&return=weights", 3, 3, false);
    expect_alike("/v1/similarity?type=sinusoidal&d_model=16&positions=0:9&return=gram&metric=cosine", 9, 9,
                 false);
    ground.config.reply_bytes = 1 << 20;
    expect_alike("/v1/encode?type=sinusoidal&d_model=64&positions=0:2100", 2100, 64, true);
}
END_TEST

/* What a key that is hidden adds is far below every domain. */
START_TEST(minus_infinity) {
    struct call_try try = {.request = "POST /v1/bias?format=png&png.cell=1",
                           .body =
                               "{\"encoding\":{\"type\":\"custom\",\"matrix\":[[0,null],[1,-1]]},\"heads\":1,"
                               "\"query_positions\":[0,1],\"key_positions\":[0,1]}"};
    static const unsigned char wanted[2][2] = {{128, 0}, {255, 0}};
    call_try(&ground, &try);
    struct image image = image_open(&try);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_mem_eq(image.lines[i], wanted[i], 2);
    }
    image_close(&image);
    call_try_close(&try);
}
END_TEST

/* ---- What stands beside the cells ---------------------------------------------------------------------- */

START_TEST(texts) {
    struct call_try try = {
        .request = "GET /v1/encode?type=sinusoidal&d_model=4&positions=0:2&format=png&png.domain=2.5"};
    call_try(&ground, &try);
    struct image image = image_open(&try);
    ck_assert_str_eq(text_of(&image, "Software"), "posenc");
    ck_assert_str_eq(text_of(&image, "Title"), "vectors");
    ck_assert_str_eq(text_of(&image, "Domain"), "[-2.5, 2.5]");
    ck_assert_str_eq(text_of(&image, "Encoding"), call_try_header(&try, "X-Posenc-Encoding"));
    ck_assert_ptr_nonnull(strstr(text_of(&image, "Encoding"), "\"base\":10000.0"));
    ck_assert(!png_get_valid(image.reader, image.info, PNG_INFO_tIME));
    image_close(&image);
    call_try_close(&try);
}
END_TEST

/* A long one is packed, and whole. */
START_TEST(a_long_text) {
    char request[2000];
    int n = snprintf(request, sizeof request,
                     "GET /v1/encode?type=rope&layout=halves&head_dim=128&positions=0:2"
                     "&return=cos&format=png&scaling.rope_type=longrope"
                     "&scaling.original_max_position_embeddings=4096&seq_len=4096"
                     "&scaling.factor=32");
    for (int list = 0; list < 2; list++) {
        n += snprintf(request + n, sizeof request - (size_t)n,
                      "&scaling.%s=", list ? "long_factor" : "short_factor");
        for (int i = 0; i < 64; i++) {
            n += snprintf(request + n, sizeof request - (size_t)n, "%s1.0%d", i ? "," : "", 100 + i);
        }
    }
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    struct image image = image_open(&try);
    ck_assert_uint_gt(strlen(text_of(&image, "Encoding")), 1024);
    ck_assert_str_eq(text_of(&image, "Encoding"), call_try_header(&try, "X-Posenc-Encoding"));
    png_textp found;
    png_get_text(image.reader, image.info, &found, NULL);
    ck_assert_int_eq(found[3].compression, PNG_TEXT_COMPRESSION_zTXt);
    image_close(&image);
    call_try_close(&try);
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------- */

START_TEST(refused) {
    static const struct {
        const char *query;
        int status;
        const char *slug, *field;
    } rows[] = {
        {"&png.domain=2", 400, "conflict", "png.domain"},
        {"&format=csv&png.cell=2", 400, "conflict", "png.cell"},
        {"&format=npy&png.theme=dark", 400, "conflict", "png.theme"},
        {"&format=png&png.cell=0", 400, "range", "png.cell"},
        {"&format=png&png.cell=65", 400, "range", "png.cell"},
        {"&format=png&png.cell=1.5", 400, "type", "png.cell"},
        {"&format=png&png.domain=0", 400, "range", "png.domain"},
        {"&format=png&png.domain=-1", 400, "range", "png.domain"},
        {"&format=png&png.domain=nan", 400, "type", "png.domain"},
        {"&format=png&png.domain=1e999", 400, "range", "png.domain"},
        {"&format=png&png.theme=red", 400, "choice", "png.theme"},
        {"&format=png&png.size=2", 400, "unknown_field", "png.size"},
        {"&format=png&png.cell=2&png.cell=2", 400, "conflict", "png.cell"},
        {"&format=png&dtype=float16", 406, "not_acceptable", "format"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char request[200];
        snprintf(request, sizeof request, "GET " TARGET "%s", rows[i].query);
        struct call_try try = {.request = request};
        call_expect_problem(&ground, &try, rows[i].status, rows[i].slug, rows[i].field, NULL);
        call_try_close(&try);
    }
    struct call_try json = {.request = "POST /v1/encode",
                            .body = "{\"encoding\":\"vaswani\",\"positions\":[1],\"png\":{\"cell\":2}}"};
    call_expect_problem(&ground, &json, 400, "conflict", "png.cell", NULL);
    call_try_close(&json);
}
END_TEST

START_TEST(no_picture) {
    static const char *const rows[] = {
        "GET /v1/encode?type=sinusoidal&d_model=4&positions=[[0],[1]]&format=png",
        "GET /v1/encode?type=sinusoidal&d_model=4&positions=[]&format=png",
        "GET /v1/encode?type=sinusoidal&d_model=65536&positions=0:1&format=png&png.cell=2",
        "GET /v1/encode?type=sinusoidal&d_model=2&positions=0:65537&format=png",
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = rows[i]};
        call_expect_problem(&ground, &try, 406, "not_acceptable", "format", NULL);
        call_try_close(&try);
    }
    expect_alike("/v1/encode?type=sinusoidal&d_model=2&positions=0:65536", 65536, 2, false);
}
END_TEST

/* One million pixels for 256 numbers: told before there is memory for them, where it cannot be streamed. */
START_TEST(the_limit) {
    static const char get[] =
        "GET /v1/encode?type=sinusoidal&d_model=16&positions=0:16&format=png&png.cell=64";
    struct call_try posted = {.request = "POST /v1/encode?format=png&png.cell=64",
                              .body = "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":16},"
                                      "\"positions\":\"0:16\"}"};
    struct call_try no_streams = {.request = get}, small_streams = {.request = get};
    ground.config.reply_bytes = 1 << 20;
    call_expect_problem(&ground, &posted, 413, "limit", "body", NULL);
    ck_assert_ptr_nonnull(strstr(call_try_text(&posted, "detail"), "png.cell"));
    ground.config.stream_bytes = (1 << 20) + 1;
    call_expect_problem(&ground, &small_streams, 413, "limit", "body", NULL);
    ck_assert_str_eq(call_try_text(&small_streams, "option"), "stream_bytes");
    ground.config.stream_bytes = 1 << 30;
    ground.config.streams = 0;
    call_expect_problem(&ground, &no_streams, 413, "limit", "body", NULL);
    ck_assert_str_eq(call_try_text(&no_streams, "option"), "reply_bytes");
    call_try_close(&posted);
    call_try_close(&small_streams);
    call_try_close(&no_streams);
}
END_TEST

/* More numbers, or larger squares, are never let in where fewer or smaller ones are not: what a buffer may not hold is
 * streamed, whether its numbers are computed before or meanwhile. */
START_TEST(streamed) {
    static const char *const requests[] = {
        "encode?type=sinusoidal&d_model=16&png.cell=32&positions=0:",
        "bias?type=alibi&heads=2&head_index=0&key_positions=0:64&png.cell=8&query_positions=0:",
        "similarity?type=sinusoidal&d_model=8&metric=cosine&return=gram&png.cell=2&positions=0:"};
    bool streams[2] = {false};
    ground.config.reply_bytes = 1 << 17;
    for (size_t i = 0; i < PE_COUNT(requests); i++) {
        for (int n = 1; n < 300; n *= 2) {
            char request[160];
            snprintf(request, sizeof request, "GET /v1/%s%d&format=png", requests[i], n);
            struct call_try try = {.request = request};
            call_try(&ground, &try);
            ck_assert_msg(try.status == 200, "%s: %d, %s", request, try.status, try.reply);
            streams[call_reply(try.call)->stream] = true;
            call_try_close(&try);
        }
        ck_assert(streams[0] && streams[1]);
        streams[0] = streams[1] = false;
    }
}
END_TEST

struct patience {
    size_t asked, enough;
};

static bool ends(void *context) {
    struct patience *patience = context;
    return ++patience->asked > patience->enough;
}

/* Zeros are packed to nearly nothing, so that one piece of the reply is many lines of pixels: also between them it is
 * asked whether to stop. */
START_TEST(stopped) {
    static float zeros[1024 * 64];
    struct patience patience = {.enough = 20};
    const struct pe_stop stop = {ends, &patience};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)1 << 20, NULL, &err);
    const struct source_style style = {.flat = false};
    const struct pe_tensor tensor = {.data = zeros, .dtype = PE_DTYPE_F32, .rank = 2, .dim = {1024, 64}};
    struct result result = {0};
    struct source source;
    static char out[1 << 16];
    result_tensor(&result, "vectors", &tensor);
    err.stop = &stop;
    ck_assert_int_eq(source_open(&source, arena, format_at(FORMAT_PNG), &result, &style, &err), PE_OK);
    ck_assert_uint_gt(source_pull(&source, out, sizeof out), 0);
    ck_assert(source.at < source.n && !source.failed);
    ck_assert_uint_le(patience.asked, patience.enough + 2);
    source_close(&source);
    pe_arena_close(arena);
}
END_TEST

/* A turn is so many pixels, whatever they are packed to, and all turns together are the whole. */
START_TEST(turns) {
    static float zeros[64 * 64];
    static char whole[1 << 17], out[1 << 17];
    const struct picture_look look = {.given = 2, .domain = 1, .cell = 64, .theme = PICTURE_LIGHT};
    const struct source_style style = {.look = &look};
    const struct pe_tensor tensor = {.data = zeros, .dtype = PE_DTYPE_F32, .rank = 2, .dim = {64, 64}};
    const size_t lines = ((size_t)1 << 18) / (64 * 64);
    struct patience patience = {.enough = SIZE_MAX - 1};
    const struct pe_stop stop = {ends, &patience};
    struct pe_error err = {.stop = &stop};
    struct pe_arena *arena = pe_arena_open((size_t)2 << 20, NULL, &err);
    struct result result = {0};
    struct source source;
    result_tensor(&result, "vectors", &tensor);
    ck_assert_int_eq(source_open(&source, arena, format_at(FORMAT_PNG), &result, &style, &err), PE_OK);
    size_t n_whole = source_pull(&source, whole, sizeof whole), n = 0, n_empty = 0;
    source_close(&source);
    ck_assert_int_eq(source_open(&source, arena, format_at(FORMAT_PNG), &result, &style, &err), PE_OK);
    for (bool more = true; more;) {
        patience.asked = 0;
        size_t got = source_pull_turn(&source, out + n, sizeof out - n, &more);
        ck_assert_uint_le(patience.asked, lines + 4); /* once a line, and for each row */
        n_empty += more && got == 0;
        n += got;
    }
    ck_assert_uint_eq(n, n_whole);
    ck_assert_mem_eq(out, whole, n);
    ck_assert_uint_gt(n_empty, 0);
    source_close(&source);
    pe_arena_close(arena);
}
END_TEST

/* Once it is open it takes no more memory, whatever its numbers and texts: it might be sent by then. */
START_TEST(memory_is_reserved) {
    static double noise[300 * 1000];
    static char out[1 << 16], text[5000];
    uint64_t seed = 3;
    for (size_t i = 0; i < PE_COUNT(noise); i++) {
        noise[i] = 2 * (double)(random_next(&seed) >> 11) * 0x1p-53 - 1;
    }
    memset(text, 'x', sizeof text - 1);
    const struct picture_look looks[] = {{.given = 2, .domain = 1, .cell = 1, .theme = PICTURE_LIGHT},
                                         {.given = 2, .domain = 1e9, .cell = 5, .theme = PICTURE_LIGHT}};
    const struct pe_tensor tensor = {.data = noise, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {300, 1000}};
    for (size_t i = 0; i < PE_COUNT(looks); i++) {
        struct pe_error err = {0};
        struct pe_arena *arena = pe_arena_open((size_t)8 << 20, NULL, &err);
        const struct source_style style = {.look = &looks[i]};
        struct result result = {0};
        struct source source;
        result_json(&result, "encoding", text);
        result_tensor(&result, "vectors", &tensor);
        ck_assert_int_eq(source_open(&source, arena, format_at(FORMAT_PNG), &result, &style, &err), PE_OK);
        size_t used = pe_arena_used(arena), total = 0;
        for (size_t n = 1; n > 0; total += n) {
            n = source_pull(&source, out, sizeof out);
        }
        ck_assert(source.at == source.n && !source.failed && total <= source_bound(&source));
        ck_assert_uint_eq(pe_arena_used(arena), used);
        source_close(&source);
        pe_arena_close(arena);
    }
}
END_TEST

/* Where an arena is too small even for the beginning, there is no picture. */
START_TEST(no_memory) {
    static float zeros[64];
    const struct pe_tensor tensor = {.data = zeros, .dtype = PE_DTYPE_F32, .rank = 1, .dim = {64}};
    const struct source_style style = {.flat = false};
    struct result result = {0};
    result_tensor(&result, "vectors", &tensor);
    for (size_t bytes = 1 << 10; bytes < 1 << 19; bytes *= 2) {
        struct pe_error err = {0}, open = {0};
        struct source source;
        struct pe_arena *arena = pe_arena_open(bytes, NULL, &open);
        if (arena) {
            ck_assert_int_eq(source_open(&source, arena, format_at(FORMAT_PNG), &result, &style, &err),
                             PE_ERR_LIMIT);
            source_close(&source);
        }
        pe_arena_close(arena);
    }
}
END_TEST

Suite *picture_suite(void) {
    Suite *suite = suite_create("picture");
    TCase *tests = tcase_create("pictures");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, random_cells);
    tcase_add_test(tests, entries);
    tcase_add_test(tests, operations);
    tcase_add_test(tests, minus_infinity);
    tcase_add_test(tests, texts);
    tcase_add_test(tests, a_long_text);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, no_picture);
    tcase_add_test(tests, the_limit);
    tcase_add_test(tests, streamed);
    tcase_add_test(tests, turns);
    tcase_add_test(tests, stopped);
    tcase_add_test(tests, memory_is_reserved);
    tcase_add_test(tests, no_memory);
    return suite;
}
