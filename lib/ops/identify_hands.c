/* SPDX-License-Identifier: MIT
 *
 * identify: how fast the columns of a sheet turn, given which are sines and which cosines.
 *
 * A pair of columns is a hand on a clock, z(p) = cos + i sin. How fast it turns is told by pairs of rows: the
 * angle from z(s) to z(t) is omega*(p_t - p_s), up to whole turns. Rows close together tell omega roughly but
 * without doubt, rows twice as far apart twice as well where omega is known well enough to count the turns;
 * so the precision doubles from level to level up to the whole span, whatever the gaps are. Hands whose turns
 * cannot be counted even between neighbours are foretold by the others, as log(omega) is a straight line.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>

#define STARTS 24 /* pairs of rows on a level */
#define LEVELS 40 /* gaps up to 2^40 times the smallest */
#define LINES  PE_HANDS_VOTING

static double weight_of(const struct pe_sheet *sheet, size_t at) {
    return sheet->weight ? sheet->weight[at] : 1;
}

void pe_hand_at(const struct pe_hands *hands, size_t pair, size_t row, double z[2]) {
    size_t width = hands->sheet->width, firsts = (width + 1) / 2;
    const double *x = hands->sheet->x + row * width;
    size_t a = hands->shape->halves ? pair : 2 * pair, b = hands->shape->halves ? firsts + pair : a + 1;
    double weight = sqrt(weight_of(hands->sheet, row * width + a));
    z[0] = weight * (hands->shape->cos_first ? x[a] : x[b]);
    z[1] = weight * (hands->shape->cos_first ? x[b] : x[a]);
}

/* Every hand has the same length. Sets the noise; false where lengths differ as if these were no hands. */
bool pe_hands_are_round(struct pe_hands *hands) {
    double sum = 0, square = 0, weight = 0;
    for (size_t row = 0; row < hands->sheet->rows; row++) {
        for (size_t i = 0; i < hands->n; i++) {
            double z[2];
            pe_hand_at(hands, i, row, z);
            double w = weight_of(hands->sheet, row * hands->sheet->width + i);
            double length = w > 0 ? hypot(z[0], z[1]) / sqrt(w) : 0;
            sum += w * length;
            square += w * length * length;
            weight += w;
        }
    }
    double mean = weight > 0 ? sum / weight : 0;
    double spread = weight > 0 ? fmax(square / weight - mean * mean, 0) : 0;
    double rounding = 0.5 * hands->sheet->floor / sqrt(fmax(hands->sheet->power, DBL_MIN));
    hands->noise = fmax(sqrt(spread) / fmax(mean, DBL_MIN), fmax(rounding, 1e-13));
    return mean > 0 && hands->noise < 0.25;
}

/* The first row behind `row` whose gap is at least so large. */
static size_t row_behind(const struct pe_sheet *sheet, size_t row, double gap) {
    size_t low = row + 1, high = sheet->rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sheet->p[middle] - sheet->p[row] < gap) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* omega of a hand from pairs of rows whose gaps are from `gap` to twice that. `foretold`: turns are counted.
 */
static void level_measure(const struct pe_hands *hands, size_t pair, double gap, bool foretold) {
    const struct pe_sheet *sheet = hands->sheet;
    double up = 0, down = 0, omega = hands->omega[pair];
    for (size_t k = 0; k < STARTS && k < sheet->rows; k++) {
        size_t s = sheet->rows <= STARTS ? k : k * sheet->rows / STARTS;
        size_t t = row_behind(sheet, s, gap * (1 - 1e-9));
        double a[2], b[2];
        if (t == sheet->rows || sheet->p[t] - sheet->p[s] > 2 * gap) {
            continue;
        }
        double g = sheet->p[t] - sheet->p[s];
        pe_hand_at(hands, pair, s, a);
        pe_hand_at(hands, pair, t, b);
        double angle = atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]);
        double weight = hypot(a[0], a[1]) * hypot(b[0], b[1]);
        if (foretold) {
            angle += pe_whole_turns(omega * g - angle);
        }
        up += weight * g * angle;
        down += weight * g * g;
    }
    hands->omega[pair] = down > 0 ? up / down : omega;
}

void pe_hand_measure(const struct pe_hands *hands, size_t pair, bool foretold) {
    double gap = hands->smallest;
    for (int level = 0; level < LEVELS && gap <= hands->span * (1 + 1e-9); level++, gap *= 2) {
        level_measure(hands, pair, gap, foretold || level > 0);
    }
}

/* ---- The line that they are on ------------------------------------------------------------------------- */

/* Does this straight line through log(omega) foretell the hand? The weight with which it does, else 0. */
static double agreement(const struct pe_hands *hands, size_t pair, double log_first, double slope) {
    double expected = exp(log_first - slope * (double)pair);
    double off = fabs(fabs(hands->omega[pair]) - expected);
    double blur = 6 * hands->noise / hands->span;
    return off < fmax(0.02 * expected, blur) && expected > blur ? 1 : 0;
}

/* The line that most hands are on, through two of them. */
static bool line_vote(const struct pe_hands *hands, double *log_first, double *slope) {
    double best = 0;
    size_t stride = hands->n > LINES ? hands->n / LINES : 1;
    for (size_t i = 0; i < hands->n; i += stride) {
        for (size_t j = i + stride; j < hands->n; j += stride) {
            double a = hands->omega[i], b = hands->omega[j];
            if (!(a * b > 0)) {
                continue;
            }
            double line = log(a / b) / (double)(j - i), first = log(fabs(a)) + line * (double)i, votes = 0;
            for (size_t k = 0; k < hands->n; k += stride) {
                votes += agreement(hands, k, first, line);
            }
            if (votes > best && line > -1e-6) {
                best = votes;
                *log_first = first;
                *slope = line;
            }
        }
    }
    return best >= 2;
}

/* The straight line through log(omega) of the hands that agree: each counts by how well it is known. */
static void line_fit(const struct pe_hands *hands, double *log_first, double *slope) {
    double w = 0, wi = 0, wii = 0, wy = 0, wiy = 0;
    for (size_t i = 0; i < hands->n; i++) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            double at = (double)i, y = log(fabs(hands->omega[i]));
            double weight = hands->omega[i] * hands->omega[i];
            w += weight;
            wi += weight * at;
            wii += weight * at * at;
            wy += weight * y;
            wiy += weight * at * y;
        }
    }
    double down = w * wii - wi * wi;
    if (down > 1e-12 * w * wii) {
        *slope = (wi * wy - w * wiy) / down;
        *log_first = (wy + *slope * wi) / w;
    }
}

/* Hands whose turns could not be counted, from slow to fast. */
static void hands_foretell(const struct pe_hands *hands, double *log_first, double *slope) {
    size_t voters = 0;
    double sign = 0;
    for (size_t i = 0; i < hands->n; i++) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            voters++;
            sign += hands->omega[i];
        }
    }
    for (size_t i = hands->n; i-- > 0 && voters >= 2;) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            continue;
        }
        hands->omega[i] = copysign(exp(*log_first - *slope * (double)i), sign);
        pe_hand_measure(hands, i, true);
        line_fit(hands, log_first, slope);
    }
}

size_t pe_hands_against(const struct pe_hands *hands, double log_first, double slope) {
    size_t n = 0;
    for (size_t i = 0; i < hands->n; i++) {
        double expected = exp(log_first - slope * (double)i), blur = 6 * hands->noise / hands->span;
        n += fabs(fabs(hands->omega[i]) - expected) > fmax(0.1 * expected, blur);
    }
    return n;
}

bool pe_hands_line(const struct pe_hands *hands, double *log_first, double *slope) {
    *log_first = *slope = 0;
    if (!line_vote(hands, log_first, slope)) {
        return false;
    }
    line_fit(hands, log_first, slope);
    hands_foretell(hands, log_first, slope);
    line_fit(hands, log_first, slope);
    return true;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* The angle of a hand at row `zero`, from all rows. */
double pe_hand_stand(const struct pe_hands *hands, size_t pair, double omega) {
    double sine = 0, cosine = 0;
    for (size_t row = 0; row < hands->sheet->rows; row++) {
        double z[2], angle = -omega * (hands->sheet->p[row] - hands->sheet->p[hands->zero]);
        pe_hand_at(hands, pair, row, z);
        double s = sin(angle), c = cos(angle);
        cosine += z[0] * c - z[1] * s;
        sine += z[0] * s + z[1] * c;
    }
    return atan2(sine, cosine);
}

/* Least squares over all rows, whose turns are counted by omega as it is measured. */
void pe_hand_refine(const struct pe_hands *hands, size_t pair) {
    for (int round = 0; round < 3; round++) {
        double w = 0, wp = 0, wpp = 0, wa = 0, wpa = 0,
               stand = pe_hand_stand(hands, pair, hands->omega[pair]);
        for (size_t row = 0; row < hands->sheet->rows; row++) {
            double z[2], p = hands->sheet->p[row] - hands->sheet->p[hands->zero];
            pe_hand_at(hands, pair, row, z);
            double angle = atan2(z[1], z[0]) - stand - hands->omega[pair] * p;
            double weight = z[0] * z[0] + z[1] * z[1];
            angle -= pe_whole_turns(angle);
            w += weight;
            wp += weight * p;
            wpp += weight * p * p;
            wa += weight * angle;
            wpa += weight * p * angle;
        }
        double down = w * wpp - wp * wp;
        hands->omega[pair] += down > 0 ? (w * wpa - wp * wa) / down : 0;
    }
}

struct pe_hands pe_hands_open(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch) {
    struct pe_hands hands = {.sheet = sheet,
                             .shape = shape,
                             .n = sheet->width / 2,
                             .omega = scratch,
                             .phase = scratch + sheet->width,
                             .smallest = DBL_MAX};
    for (size_t i = 1; i < sheet->rows; i++) {
        double gap = sheet->p[i] - sheet->p[i - 1];
        hands.smallest = gap > 0 ? fmin(hands.smallest, gap) : hands.smallest;
        hands.zero = fabs(sheet->p[i]) < fabs(sheet->p[hands.zero]) ? i : hands.zero;
    }
    hands.span = sheet->rows ? sheet->p[sheet->rows - 1] - sheet->p[0] : 0;
    return hands;
}
