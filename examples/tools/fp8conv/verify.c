/* verify.c - what was written, read back and compared with the definition, element by element.
 * SPDX-License-Identifier: MIT
 *
 * Nothing here uses the tables that converted, nor a floating-point sum: a code and its two neighbours are whole
 * numbers of 2^-9, a scale and a number are a whole number and a power of two, and what lies nearer is decided between
 * products of whole numbers; ties go to the even code.
 */
#include "fp8conv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

static const double slack = 0x1p-22; /* of a scale that was rounded once */

typedef struct proof {
    const unsigned char *written;
    const float *in_scale, *out_scale; /* as they stand in the two files; NULL: 1 */
    const unsigned char *mx_scale;
    fc_factor factor; /* up 0: fresh scales */
} proof;

static double scale_at(const float *scale, int64_t group) { return scale ? (double)scale[group] : 1; }

/* ---- exactly, in whole numbers ---- */

typedef struct exact { /* m * 2^e; not negative */
    uint64_t m;
    int e;
} exact;

static exact exact_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((UINT64_C(1) << 52) - 1);
    const exact long_one = { fraction | (exponent ? UINT64_C(1) << 52 : 0), (exponent ? (int)exponent : 1) - 1075 };
    const int zeros = long_one.m ? __builtin_ctzll(long_one.m) : 0; /* so that products stay in 64 bits */
    return (exact){ long_one.m >> zeros, long_one.e + zeros };
}

static exact times(uint64_t n, exact x) { return (exact){ n * x.m, x.e }; }

static int compare(exact a, exact b)
{
    if (a.e < b.e) return -compare(b, a);
    const int up = a.e - b.e;
    const uint64_t whole = up < 64 ? b.m >> up : 0, back = up < 64 ? whole << up : 0;
    if (a.m != whole) return a.m > whole ? 1 : -1;
    return back == b.m ? 0 : -1;
}

/* What a magnitude is in units of 2^-9: the same in both formats, as far as they go. */
static uint64_t units_of(int code)
{
    const int exponent = code >> 3, fraction = code & 7;
    return exponent ? (uint64_t)(8 + fraction) << (exponent - 1) : (uint64_t)fraction;
}

static int largest_of(fc_side side) { return side == FC_OCP ? 0x7e : 0x77; }

/* On which side of the middle between a code and the next one; `twice` the target, in units of 2^-9. */
static int beside(exact twice, int code, exact scale)
{
    return compare(twice, times(units_of(code) + units_of(code + 1), scale));
}

static bool is_nearest(fc_side to, exact twice, int code, exact scale)
{
    const int above = code < largest_of(to) ? beside(twice, code, scale) : -1;
    const int below = code > 0 ? beside(twice, code - 1, scale) : 1;
    return code <= largest_of(to) && (above < 0 || (above == 0 && code % 2 == 0)) &&
           (below > 0 || (below == 0 && code % 2 == 0));
}

typedef struct nearest { /* for one pair of scales */
    float in, out;
    unsigned char code[FC_MAGNITUDES];
} nearest;

static void find_nearest(nearest *n, const fc_options *o, fc_side from, float in, float out)
{
    int code = 0;
    n->in = in;
    n->out = out;
    for (int i = 0; i <= largest_of(from); i++) {
        const exact twice = times(2 * units_of(i), exact_of(in));
        while (code < largest_of(o->to) && !is_nearest(o->to, twice, code, exact_of(out))) code++;
        n->code[i] = (unsigned char)code;
    }
}

static bool same_meaning(float a, float b) { return isnan(a) ? isnan(b) : a == b; }

/* Infinity may have become NaN where there is none. */
static bool stays_not_finite(float before, float after)
{
    return isnan(after) || (isinf(before) && same_meaning(before, after));
}

static bool element_is_right(const nearest *n, const float *from, const float *to, int in, int out)
{
    if (!isfinite(from[in])) return stays_not_finite(from[in], to[out]);
    return out == (n->code[in & 127] | (in & 128));
}

static void prove_codes(const fc_work *w, const fc_piece *piece, unsigned char *unused, fc_tally *tally)
{
    const proof *p = w->user;
    const fc_options *o = w->catalogue->options;
    const float *from = fc_values(fc_format_of(w->item->side)), *to = fc_values(fc_format_of(o->to));
    nearest n = { .out = -1 };
    (void)unused;
    for (fc_tile t = { 0 }; fc_next_tile(w, piece, &t);) {
        const double in_scale = scale_at(p->in_scale, t.in), out_scale = scale_at(p->out_scale, t.out);
        const float in = p->factor.up ? (float)p->factor.down : (float)in_scale;
        const float out = p->factor.up ? (float)p->factor.up : (float)out_scale;
        if (n.in != in || n.out != out) find_nearest(&n, o, w->item->side, in, out);
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = piece->first + t.first + r * piece->columns;
            for (int64_t i = at; i < at + t.columns; i++) {
                const int x = w->bytes[i], y = p->written[i];
                tally->not_finite += !element_is_right(&n, from, to, x, y);
                tally->inexact += (double)from[x] * in_scale != (double)to[y] * out_scale;
            }
        }
        tally->elements += t.rows * t.columns;
    }
}

/* ---- numbers ---- */

static bool number_is_right(fc_side to, double x, int code, double scale)
{
    if (!isfinite(x)) return stays_not_finite((float)x, fc_values(fc_format_of(to))[code]);
    const exact twice = times(2, exact_of(fabs(x)));
    const bool same_sign = x == 0 || (signbit(x) != 0) == (code >= 128);
    return same_sign && is_nearest(to, (exact){ twice.m, twice.e + 9 }, code & 127, exact_of(scale));
}

/* Codes that were kept, with a scale that was rounded once. Beyond binary32, x is its largest number. */
static bool product_is_right(fc_side side, float x, int code, float scale)
{
    const float *to = fc_values(fc_format_of(side));
    const double product = fabs((double)to[code] * (double)scale), target = fabs((double)x);
    if (!isfinite(to[code]) || (x != 0 && (signbit(x) != 0) != (code >= 128))) return false;
    return fabs(fmin(product, (double)FLT_MAX) - target) <= slack * target;
}

static void prove_numbers(const fc_work *w, const fc_piece *piece, unsigned char *unused, fc_tally *tally)
{
    const proof *p = w->user;
    const fc_side side = w->catalogue->options->to;
    const float *to = fc_values(fc_format_of(side));
    const int bytes = w->item->tensor.bits / 8;
    const bool packed = w->item->kind != FC_IS_NUMBERS, kept = fc_keeps_codes(w->item, w->catalogue->options);
    float *decoded = packed ? fc_numbers(w, piece, 0) : NULL;
    quant_values source;
    if (packed) source = fc_source_of(w);
    (void)unused;
    for (fc_tile t = { 0 }; fc_next_tile(w, piece, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = piece->first + t.first + r * piece->columns;
            const double scale = scale_at(p->out_scale, t.out);
            for (int64_t i = at; i < at + t.columns; i++) {
                const uint32_t bits = packed ? 0 : (uint32_t)io_little(w->bytes + i * bytes, bytes);
                const float x = packed ? decoded[i - piece->first] : trn_decode(w->item->tensor.format, bits);
                const int code = p->written[i];
                const double whole =
                    packed ? fc_exact_at(&source, w->item->transposed, t.row + r, t.column + i - at) : (double)x;
                const bool right =
                    kept ? product_is_right(side, x, code, (float)scale) : number_is_right(side, whole, code, scale);
                tally->not_finite += !right;
                tally->inexact += (double)x != (double)to[p->written[i]] * scale;
            }
            tally->elements += t.columns;
        }
    free(decoded);
}

/* BF16: no neighbour is nearer. */
static bool bf16_is_right(float x, uint16_t code)
{
    if (!isfinite(x)) return stays_not_finite(x, trn_bf16_to_f32(code));
    const double here = fabs((double)trn_bf16_to_f32(code) - (double)x);
    const bool even = code % 2 == 0;
    for (int side = -1; side <= 1; side += 2) {
        if ((code & 0x7fff) == 0 && side < 0) continue;
        const double other = fabs((double)trn_bf16_to_f32((uint16_t)(code + side)) - (double)x);
        if (other < here || (other == here && !even)) return false;
    }
    return x == 0 || (signbit(x) != 0) == (code >= 0x8000);
}

static void prove_bf16(const fc_work *w, const fc_piece *piece, unsigned char *unused, fc_tally *tally)
{
    const proof *p = w->user;
    const int64_t n = piece->rows * piece->columns;
    float *x = fc_numbers(w, piece, 0);
    (void)unused;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t code = io_little16(p->written + 2 * (piece->first + i));
        tally->not_finite += !bf16_is_right(x[i], code);
        tally->inexact += isfinite(x[i]) && trn_bf16_to_f32(code) != x[i];
    }
    tally->elements += n;
    free(x);
}

/* MX: no code of the same sign is nearer under the scale that stands there. Four bits: the value is the same. */
static bool mx_is_right(bool four, const float *eight, float x, int code, double scale)
{
    static const float fp4[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    const double product = four ? (double)fp4[code & 7] * scale : 0, large = (double)FLT_MAX;
    if (four) return fmin(product, large) == fabs((double)x) && (code >= 8) == (signbit(x) != 0);
    if (!isfinite(x) || isnan(scale)) return isnan(scale) || stays_not_finite(x, eight[code]);
    return number_is_right(FC_OCP, (double)x, code, scale);
}

static void prove_mx(const fc_work *w, const fc_piece *piece, unsigned char *unused, fc_tally *tally)
{
    const proof *p = w->user;
    const float *eight = fc_values(TRN_F8_E4M3FN);
    const bool four = w->item->mx_fp4;
    float *x = fc_numbers(w, piece, 0);
    (void)unused;
    for (int64_t r = 0; r < piece->rows; r++)
        for (int64_t n = 0; n < piece->columns; n++) {
            const int64_t row = piece->row + r, word = row / 4 * piece->columns + n, slot = row % 4;
            const int byte = p->written[four ? 2 * word + slot / 2 : 4 * word + slot];
            const int code = !four ? byte : slot % 2 ? byte >> 4 : byte & 15;
            const int power = p->mx_scale[row / 32 * piece->columns + n];
            const double scale = power == 255 ? (double)NAN : ldexp(1, power - 127);
            const float value = x[r * piece->columns + n];
            tally->not_finite += !mx_is_right(four, eight, value, code, scale);
            if (!four) tally->inexact += (double)eight[code] * scale != (double)value;
        }
    tally->elements += piece->rows * piece->columns;
    free(x);
}

/* ---- tensors ---- */

typedef struct verdict {
    int64_t elements, exact, copied;
} verdict;

static const fc_item *written_as(const fc_catalogue *out, const st_tensor *t, char *why)
{
    const int i = fc_find(out, t->name);
    const fc_item *item = i < 0 ? NULL : &out->item[i];
    bool same = item && item->tensor.rank == t->rank && strcmp(item->tensor.type, t->type) == 0;
    for (int k = 0; same && k < t->rank; k++) same = item->tensor.shape[k] == t->shape[k];
    if (same) return item;
    io_fail(why, t->name, "it is not in the output with its type and shape");
    return NULL;
}

static bool prove_scales(const fc_item *w, const proof *p, char *why)
{
    for (int64_t i = 0; p->factor.up && w->scale >= 0 && i < w->out.scales; i++) {
        const double in = scale_at(p->in_scale, i), out = scale_at(p->out_scale, i);
        const double error = in * p->factor.up - out * p->factor.down;
        if (fabs(error) > (1 + slack) * w->scale_error * in * p->factor.up)
            return io_fail(why, w->tensor.name, "scale %lld is %.9g", (long long)i, out);
    }
    return true;
}

static bool prove_weight(fc_catalogue *c, fc_catalogue *out, fc_item *w, verdict *v, char *why)
{
    const fc_item *written = written_as(out, &w->result, why);
    static fc_run *const run[FC_FORMS] = { prove_numbers, prove_numbers, prove_bf16, prove_mx };
    const fc_item *scale = w->scale >= 0 && written ? written_as(out, &c->item[w->scale].result, why) : NULL;
    const bool mx = w->form == FC_AS_MX;
    const bool fresh = c->options->mode == FC_REQUANT || w->role == FC_NUMBERS;
    float *in_scale = NULL, *out_scale = NULL;
    const fc_tally kept = w->tally;
    bool ok = written && (w->scale < 0 || scale);
    if (ok && w->old_scale >= 0 && w->role == FC_CODES) ok = fc_scale_read(c, &c->item[w->old_scale], &in_scale, why);
    if (ok && w->role == FC_NUMBERS) ok = fc_source_open(c, w, why);
    if (ok && scale && !mx) {
        fc_item read = *scale;
        read.tensor.format = c->item[w->scale].result.format; /* bytes may be powers of two */
        ok = fc_scale_read(out, &read, &out_scale, why);
    }
    const unsigned char *powers = ok && mx ? fc_bytes(out, scale, why) : NULL;
    const unsigned char *bytes = ok ? fc_bytes(out, written, why) : NULL;
    const fc_factor factor = fc_factor_of(c->options->mode, c->options->to);
    proof p = { bytes, in_scale, out_scale, powers, fresh ? (fc_factor){ 0, 0 } : factor };
    fc_work work = { .item = w, .user = &p, .run = w->role == FC_CODES ? prove_codes : run[w->form] };
    memset(&w->tally, 0, sizeof w->tally);
    ok = bytes && prove_scales(w, &p, why) && fc_run_pieces(c, &work, why);
    if (ok && w->tally.not_finite)
        ok = io_fail(why, w->tensor.name, "%lld of its codes are not the nearest", (long long)w->tally.not_finite);
    v->elements += w->tally.elements;
    v->exact += w->tally.elements - w->tally.inexact;
    w->tally = kept;
    fc_source_close(w);
    free(in_scale);
    free(out_scale);
    return ok;
}

static bool prove_copy(fc_catalogue *c, fc_catalogue *out, const fc_item *item, verdict *v, char *why)
{
    const fc_item *written = written_as(out, &item->result, why);
    const size_t size = (size_t)fc_size(&item->tensor), slice = 8 << 20;
    const unsigned char *a = written ? fc_bytes(c, item, why) : NULL, *b = a ? fc_bytes(out, written, why) : NULL;
    for (size_t at = 0, n; b && at < size; at += n) {
        n = size - at < slice ? size - at : slice;
        if (memcmp(a + at, b + at, n) != 0) return io_fail(why, item->tensor.name, "it is not what it was");
        fc_done(c, item, at, n);
        fc_done(out, written, at, n);
    }
    v->copied += b != NULL;
    return b != NULL;
}

static bool prove_all(fc_catalogue *c, fc_catalogue *out, verdict *v, char *why)
{
    for (int i = 0; i < c->items; i++) {
        fc_item *item = &c->item[i];
        if (fc_is_weight(item) && !prove_weight(c, out, item, v, why)) return false;
        if (item->role == FC_COPIED && !prove_copy(c, out, item, v, why)) return false;
    }
    for (int i = 0; i < out->items && fc_has_fp8(c); i++)
        if (out->item[i].side != c->options->to)
            return io_fail(why, out->item[i].tensor.name, "its file is not marked as %s", fc_side_text(c->options->to));
    return true;
}

bool fc_verify(fc_catalogue *c, char *why)
{
    fc_options o = *c->options;
    fc_catalogue out;
    verdict v = { 0, 0, 0 };
    char a[32], b[32];
    const char *path = fc_written(c);
    o.in = path;
    o.from = FC_BY_MARK;
    if (!path) return io_fail(why, c->options->out, "there is not enough memory to read it back");
    const bool ok = fc_catalogue_open(&o, &out, why) && prove_all(c, &out, &v, why);
    fc_catalogue_close(&out);
    app_progress_done();
    if (ok)
        printf("Verified, read back: %s codes, each the nearest to what it was; %s products of code and scale are\n"
               "the same number; %lld other tensors are the same bytes.\n",
               app_count(a, sizeof a, v.elements), app_count(b, sizeof b, v.exact), (long long)v.copied);
    return ok;
}
