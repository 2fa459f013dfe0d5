/* SPDX-License-Identifier: MIT
 *
 * apply for rotary encodings: every vector of every head is turned by the angles of its position,
 *
 *     (a, b) -> (a cos x - b sin x, b cos x + a sin x)
 *
 * with cosines and sines in float64 and one rounding at the end. Whatever the order of the axes, the last is
 * the vector, and each other one has a stride. A part is some positions: their angles are made once, in
 * pieces that fit on the stack, and used for all heads (and all of the batch, where it shares the positions).
 *
 * Turning back divides by the square of the attention factor m, as the way there multiplied by m: the inverse
 * of m R is R^T / m.
 */
#include "ops/rotate.h"

#include "core/dtype.h"
#include "core/stop.h"
#include "kernels/rotate.h"
#include "kernels/vector.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

#define PART_ITEMS ((size_t)65536)
#define FAR_BYTES  ((size_t)8 << 20) /* of a result that caches will not keep */
#define ROWS       16                /* positions at a time */
#define PIECE      64                /* and pairs, a multiple of PE_ANGLES_GROUP */

/* An axis other than the vector's own: its size, and from one to the next in vectors. */
struct axis {
    size_t n, stride;
};

struct rotate {
    const struct pe_plan *plan;
    struct pe_positions positions;
    const char *x; /* real */
    char *out;     /* dtype */
    enum pe_dtype real, dtype;
    size_t real_size, size, width;
    struct axis batch, time, heads; /* n 1 where there is none */
    bool own_positions;             /* each sequence of the batch has its own */
    bool inverse, keys, far;
    enum pe_instructions instructions;
    size_t n_positions, part_positions;
    const struct pe_stop *stop;
};

/* ---- Running ------------------------------------------------------------------------------------------- */

/* The angles of some pairs at some positions, rows of ANGLES. */
struct piece {
    double cos[ROWS][PIECE], sin[ROWS][PIECE];
    size_t first, n; /* pairs */
    size_t position, rows;
};

static void turn_vector(const struct rotate *op, size_t vector, const struct piece *piece, size_t row,
                        const struct pe_pairs *pairs) {
    const struct pe_turn_pairs turn = {piece->cos[row], piece->sin[row],  piece->n, pairs->step,
                                       pairs->apart,    op->instructions, op->far};
    size_t at = vector * op->width + pairs->first + piece->first * pairs->step;
    pe_rotate(op->real, op->x + at * op->real_size, op->dtype, op->out + at * op->size, &turn);
}

/* All vectors at these positions, in the order in which they lie in memory. */
static void turn_positions(const struct rotate *op, const struct piece *piece, const struct pe_pairs *pairs) {
    const bool by_heads = op->time.stride < op->heads.stride;
    const size_t outer = by_heads ? op->heads.n : piece->rows, inner = by_heads ? piece->rows : op->heads.n;
    const size_t n_batch = op->own_positions ? 1 : op->batch.n;
    for (size_t i = 0; i < n_batch * outer; i++) {
        for (size_t j = 0; j < inner; j++) {
            const size_t row = by_heads ? j : i % outer, head = by_heads ? i % outer : j;
            const size_t t = (piece->position + row) % op->time.n, own = (piece->position + row) / op->time.n;
            const size_t b = op->own_positions ? own : i / outer;
            const size_t vector = b * op->batch.stride + t * op->time.stride + head * op->heads.stride;
            turn_vector(op, vector, piece, row, pairs);
        }
    }
}

/* R^T / m from m R. Powers of two come out exactly, so xPos may grow beyond where a square is a number. */
static void turn_back(double *cos, double *sin) {
    int exponent;
    frexp(fabs(*cos) > fabs(*sin) ? *cos : *sin, &exponent);
    double c = ldexp(*cos, -exponent), s = ldexp(*sin, -exponent), square = c * c + s * s;
    *cos = ldexp(c / square, -exponent);
    *sin = ldexp(-s / square, -exponent);
}

static void piece_inverse(struct piece *piece) {
    for (size_t row = 0; row < piece->rows; row++) {
        double *cos = piece->cos[row], *sin = piece->sin[row];
        for (size_t i = 0; i < piece->n; i++) {
            turn_back(&cos[i], &sin[i]);
        }
    }
}

static void rotate_positions(const struct rotate *op, size_t position, size_t rows,
                             const struct pe_pairs *pairs) {
    const struct pe_encoding *row = pe_plan_row(op->plan);
    struct piece piece;
    piece.first = 0;
    piece.position = position;
    piece.rows = rows;
    double coordinates[ROWS * PE_MAX_AXES];
    struct pe_spot spots = {.position = coordinates, .axes = op->positions.axes, .keys = op->keys};
    pe_positions_read(&op->positions, position, rows, coordinates);
    for (; piece.first < pairs->n; piece.first += PIECE) {
        piece.n = pairs->n - piece.first < PIECE ? pairs->n - piece.first : PIECE;
        const struct pe_angles_rows angles = {piece.first, piece.n, PIECE, piece.cos[0], piece.sin[0]};
        row->angles_rows(pe_plan_view(op->plan), &spots, rows, &angles);
        if (op->inverse) {
            piece_inverse(&piece);
        }
        turn_positions(op, &piece, pairs);
    }
}

/* Columns that do not turn. */
static void pass_columns(const struct rotate *op, size_t first_vector, size_t n, size_t column) {
    for (size_t v = first_vector; v < first_vector + n; v++) {
        size_t at = v * op->width + column;
        const char *x = op->x + at * op->real_size;
        char *out = op->out + at * op->size;
        if (op->real == op->dtype) {
            memmove(out, x, (op->width - column) * op->size);
        } else {
            pe_vector_store(op->real, x, op->width - column, op->dtype, out);
        }
    }
}

static void pass_position(const struct rotate *op, size_t position, size_t column) {
    size_t t = position % op->time.n, b = position / op->time.n;
    size_t n_batch = op->own_positions ? 1 : op->batch.n;
    for (size_t i = 0; i < n_batch; i++) {
        for (size_t h = 0; h < op->heads.n; h++) {
            size_t vector =
                (op->own_positions ? b : i) * op->batch.stride + t * op->time.stride + h * op->heads.stride;
            pass_columns(op, vector, 1, column);
        }
    }
}

static void rotate_part(const void *state, size_t part) {
    const struct rotate *op = state;
    struct pe_pairs pairs = pe_plan_row(op->plan)->pairs(pe_plan_view(op->plan));
    size_t first = part * op->part_positions;
    size_t end = op->n_positions - first < op->part_positions ? op->n_positions : first + op->part_positions;
    for (size_t i = first, rows; i < end && !pe_stop_asked(op->stop); i += rows) {
        rows = end - i < ROWS ? end - i : ROWS;
        for (size_t row = 0; row < rows && 2 * pairs.n < op->width; row++) {
            pass_position(op, i + row, 2 * pairs.n);
        }
        rotate_positions(op, i, rows, &pairs);
    }
    if (op->far) {
        pe_rotate_settle();
    }
}

/* ---- Axes ---------------------------------------------------------------------------------------------- */

static int axes_fail(const char *axes, const struct pe_tensor *x, struct pe_error *err) {
    char shape[128];
    return pe_fail(
        err, PE_ERR_CHOICE, "axes",
        "\"%.20s\" for embeddings of shape %s: a letter for each axis, d last, each once: b, t, h, or h and "
        "w for the rows and columns of images",
        axes, pe_tensor_shape_text(x, shape, sizeof shape));
}

static int axes_default(const struct pe_tensor *x, const char **axes, struct pe_error *err) {
    static const char *const usual[] = {NULL, NULL, "td", "btd"};
    char shape[128];
    if (x->rank == 4) {
        return pe_fail(
            err, PE_ERR_MISSING, "axes",
            "is missing, embeddings of shape %s could be bthd or bhtd, and each turns other vectors alike",
            pe_tensor_shape_text(x, shape, sizeof shape));
    }
    if (x->rank < 2 || x->rank > 3) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings", "has shape %s, allowed are ranks 2 to 4",
                       pe_tensor_shape_text(x, shape, sizeof shape));
    }
    *axes = usual[x->rank];
    return PE_OK;
}

/* The axis of a letter; NULL = no such letter. */
static struct axis *axis_of(struct rotate *op, char letter) {
    switch (letter) {
    case 'b':
        return &op->batch;
    case 't':
    case 'w':
        return &op->time;
    case 'h':
        return &op->heads;
    default:
        return NULL;
    }
}

static bool letters_fit(const char *axes, int rank) {
    size_t length = strlen(axes);
    bool image = strchr(axes, 'w') != NULL;
    return length > 0 && length == (size_t)rank && axes[length - 1] == 'd' &&
           (!image || (strstr(axes, "hw") && !strchr(axes, 't')));
}

/* Gives each letter its axis. An image's two become one of all its points, row by row. */
static int axes_read(struct rotate *op, const struct pe_tensor *x, const char *axes, struct pe_error *err) {
    size_t stride = 1;
    if (!letters_fit(axes, x->rank)) {
        return axes_fail(axes, x, err);
    }
    op->batch = op->time = op->heads = (struct axis){0, 0};
    for (size_t i = (size_t)x->rank - 1; i-- > 0;) {
        struct axis *axis = axis_of(op, axes[i]);
        if (!axis || axis->stride) {
            return axes_fail(axes, x, err);
        }
        *axis = (struct axis){x->dim[i], stride};
        stride *= x->dim[i];
    }
    if (strchr(axes, 'w')) { /* time is the columns, heads the rows */
        op->time.n *= op->heads.n;
        op->heads = (struct axis){0, 0};
    }
    if (!op->time.stride) {
        return axes_fail(axes, x, err);
    }
    op->batch.n = op->batch.stride ? op->batch.n : 1;
    op->heads.n = op->heads.stride ? op->heads.n : 1;
    return PE_OK;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

static int positions_read(struct pe_arena *arena, struct rotate *op, const struct pe_apply_args *args,
                          const char *axes, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    op->positions = (struct pe_positions){.length = op->time.n, .axes = 1, .step = 1};
    if (args->positions) {
        size_t batch = op->batch.stride ? op->batch.n : 0;
        op->positions = pe_positions_for(op->plan, args->positions, batch, op->time.n);
        if (pe_positions_fit(op->plan, &op->positions, batch, op->time.n, "positions", err)) {
            return err->code;
        }
    } else if (strchr(axes, 'w') && pe_plan_axes(op->plan) == 2 &&
               pe_positions_image(arena, &op->positions, op->plan, &x->dim[x->rank - 3], err)) {
        return err->code;
    }
    op->own_positions = op->positions.batch != 0;
    op->n_positions = op->time.n * (op->own_positions ? op->batch.n : 1);
    return args->positions ? pe_positions_admit(op->plan, &op->positions, op->real, "positions", err)
                           : pe_positions_admit_default(op->plan, &op->positions, op->real, "positions",
                                                        "embeddings", err);
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int args_check(const struct pe_apply_args *args, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    char shape[128];
    size_t width = x->rank > 0 ? x->dim[x->rank - 1] : 0;
    if (args->scale_mode != PE_EMBEDDING_SCALE_NONE) {
        return pe_fail(err, PE_ERR_CONFLICT, "embedding_scale",
                       "is for encodings that are added, a rotary one turns");
    }
    if (x->rank > 0 && width != pe_plan_width(args->plan)) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings",
                       "has shape %s, so heads of width %zu, but the encoding has head_dim %zu",
                       pe_tensor_shape_text(x, shape, sizeof shape), width, pe_plan_width(args->plan));
    }
    return PE_OK;
}

/* |a cos x - b sin x| is at most |a| + |b|, times the attention factor m and the growth; on the way back over
 * m, and as the encoding's values hold m, it is m*m that makes the difference. */
static int overflow_check(const struct rotate *op, const struct pe_operand *x, struct pe_error *err) {
    const struct pe_pairs pairs = pe_plan_row(op->plan)->pairs(pe_plan_view(op->plan));
    double limit = op->dtype == op->real ? pe_vector_limit(op->real) : pe_dtype_overflow(op->dtype);
    double room = limit * (1 - 0x1p-20) / (2 * x->largest + 0x1p-1000);
    bool pass = room > 1 || 2 * pairs.n == op->width; /* columns that do not turn */
    room *= op->inverse ? pairs.factor * pairs.factor : 1;
    if (pass && pe_encoding_below(op->plan, &op->positions, room, op->stop)) {
        return PE_OK;
    }
    if (pe_error_poll(err)) {
        return err->code;
    }
    return pe_fail(err, PE_ERR_RANGE, "embeddings",
                   "holds numbers up to %g, which may be beyond the largest %s when turned", x->largest,
                   pe_dtype_name(op->dtype));
}

/* Positions in parts of about PART_ITEMS numbers. */
static void work_fill(struct pe_work *work, struct rotate *op) {
    size_t items = op->width * op->heads.n * (op->own_positions ? 1 : op->batch.n);
    size_t n = items ? op->n_positions : 0;
    op->part_positions = items && items < PART_ITEMS ? PART_ITEMS / items : 1;
    *work = (struct pe_work){
        .n_parts = n / op->part_positions + (n % op->part_positions != 0),
        .cost_ns = (double)op->n_positions * (pe_encoding_row_ns(op->plan, op->dtype) + 0.5 * (double)items),
        .state = op,
        .run = rotate_part,
        .stop = op->stop,
    };
}

int pe_rotate_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *out,
                   const struct pe_apply_args *args, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    const char *axes = args->axes;
    struct rotate *op = pe_arena_array(arena, 1, sizeof *op, err);
    struct pe_operand operand;
    if (!op || args_check(args, err) || (!axes && axes_default(x, &axes, err)) ||
        axes_read(op, x, axes, err)) {
        return err->code;
    }
    op->plan = args->plan;
    op->dtype = args->dtype ? args->dtype : x->dtype;
    op->real = op->dtype == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    op->real_size = pe_dtype_size(op->real);
    op->size = pe_dtype_size(op->dtype);
    op->width = x->dim[x->rank - 1];
    op->inverse = args->inverse;
    op->keys = args->keys;
    op->stop = err->stop;
    struct pe_operand_rule rule = {.name = "embeddings", .real = op->real};
    if (pe_result_ask(arena, op->dtype, x->rank, x->dim, err) || positions_read(arena, op, args, axes, err) ||
        pe_operand_read(arena, &operand, x, &rule, err) || overflow_check(op, &operand, err)) {
        return err->code;
    }
    if (pe_operand_result(arena, out, args, op->dtype, err)) {
        return err->code;
    }
    op->x = operand.tensor.data;
    op->out = out->data;
    op->instructions = pe_instructions();
    op->far = !args->in_place && pe_tensor_bytes(out) >= FAR_BYTES;
    work_fill(work, op);
    return PE_OK;
}
