/* codes.c - values of codes, and the tables of 256 entries that convert them.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <math.h>

#include <trnmath/data/cast.h>

static const struct {
    const char *name;
    trn_format format;
    float limit;
} sides[] = { { "ocp", TRN_F8_E4M3FN, 448.0f }, { "neuron", TRN_F8_E4M3, 240.0f } };

static const char *const modes[FC_MODES] = { "halve", "ratio", "requant", "relabel" };

trn_format fc_format_of(fc_side side) { return sides[side].format; }
const char *fc_side_text(fc_side side) { return sides[side].name; }
float fc_limit(fc_side side) { return sides[side].limit; }
const char *fc_mode_text(fc_mode mode) { return modes[mode]; }

const float *fc_values(trn_format format)
{
    static float value[2][256];
    float *const of = value[format == TRN_F8_E4M3];
    if (of[1] == 0)
        for (uint32_t code = 0; code < 256; code++) of[code] = trn_decode(format, code);
    return of;
}

fc_factor fc_factor_of(fc_mode mode, fc_side to)
{
    static const fc_factor down[FC_MODES] = { { 2, 1 }, { 28, 15 }, { 28, 15 }, { 1, 1 } };
    const fc_factor f = down[mode];
    return to == FC_NEURON ? f : (fc_factor){ f.down, f.up };
}

/* The vendor's recipe holds the quotient in bfloat16 before it becomes FP8. */
static float ratio_of(float value, fc_factor f)
{
    return trn_bf16_to_f32(trn_bf16_from_f32(value / ((float)f.up / (float)f.down)));
}

void fc_table_of_mode(fc_mode mode, fc_side from, fc_side to, fc_table *table)
{
    const float *const value = fc_values(fc_format_of(from));
    const fc_factor f = fc_factor_of(mode, to);
    for (uint32_t code = 0; code < 256; code++) {
        const float x = mode == FC_RATIO ? ratio_of(value[code], f) : value[code] * (float)f.down / (float)f.up;
        const uint32_t rounded = trn_encode(fc_format_of(to), x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        table->to[code] = (uint16_t)(mode == FC_RELABEL ? code : rounded);
    }
}

/* Dequantised with one scale, quantised with another: never beyond the limit. */
void fc_table_of_scales(fc_side from, fc_side to, float in_scale, float out_scale, fc_table *table)
{
    const float *const value = fc_values(fc_format_of(from));
    for (uint32_t code = 0; code < 256; code++)
        table->to[code] = (uint16_t)trn_encode(fc_format_of(to), value[code] * in_scale / out_scale, TRN_NEAREST_EVEN,
                                               TRN_SATURATE, 0);
}

void fc_convert_codes(const fc_table *table, void *out, const void *in, size_t n)
{
    trni_lookup_pick(1, trn_isa_default())(table->to, out, in, n);
}
