/* flat_tables.h - what there is: formats, systems, collectives, instructions and the rest, a table each.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * DOES: writes the rows of the library's own tables as cells.
 * DOES NOT: hold a fact of its own; instructions are those of flat_instructions.h, made from the published list.
 */
#ifndef TRNMATH_FLAT_TABLES_H
#define TRNMATH_FLAT_TABLES_H

#include "flat_instructions.h"
#include "flat_words.h"

/* A table: `of` is what it is asked about, where it is about something. */
typedef struct table {
    const char *name;
    trn_status (*write)(sheet *s, const char *of, trn_error *error);
} table;

static trn_status find_spec(const char *name, const trn_system_spec **spec, trn_error *error)
{
    *spec = trn_system_spec_of(trn_system_from_name(name));
    return *spec ? TRN_OK : failed(error, TRN_EINVAL, "system \"%.60s\" is unknown", name ? name : "");
}

/* ---- formats ---- */

static const char *kind_name(trn_format_kind kind)
{
    static const char *const name[] = { "none", "float", "scale", "signed", "unsigned" };
    return name[kind];
}

static trn_status write_formats(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "kind:text", "bits:integer", "bytes:integer", "exponent_bits:integer", "mantissa_bits:integer",
            "bias:integer", "max:number", "lowest:number", "min_normal:number", "min_subnormal:number",
            "epsilon:number", "has_infinity:flag", "has_nan:flag", "safetensors:text", "ocp:text");
    for (int i = 1; i < TRN_CFP8; i++) {
        const trn_format_info *f = trn_format_info_of((trn_format)i);
        const trn_format_limits l = trn_format_limits_of((trn_format)i);
        cell(s, f->name);
        cell(s, kind_name(f->kind));
        cell_integer(s, f->bits);
        cell_integer(s, (int64_t)trn_format_bytes((trn_format)i));
        cell_integer(s, f->exponent_bits);
        cell_integer(s, f->mantissa_bits);
        cell_integer(s, f->bias);
        const double number[] = { l.max, l.lowest, l.min_normal, l.min_subnormal, l.epsilon };
        cell_numbers(s, COUNT(number), number);
        cell_flag(s, l.has_infinity);
        cell_flag(s, l.nan_first <= l.nan_last);
        cell(s, f->safetensors);
        cell(s, f->ocp);
        end_row(s);
    }
    return TRN_OK;
}

/* ---- machines ---- */

static trn_status write_generations(sheet *s, const char *of, trn_error *error)
{
    static const trn_generation generation[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    (void)of, (void)error;
    COLUMNS("generation:integer", "name:text", "cores:integer", "hbm_bytes:number", "hbm_bytes_per_s:number",
            "sbuf_bytes:number", "psum_bytes:number", "bf16_flops_per_s:number", "f8_flops_per_s:number");
    for (int i = 0; i < 3; i++) {
        const trn_chip_spec *chip = trn_chip_spec_of(generation[i]);
        cell_integer(s, i + 1);
        cell(s, chip->name);
        cell_integer(s, chip->cores);
        const double number[] = { chip->hbm_bytes,
                                  chip->hbm_bytes_per_s,
                                  (double)trn_core_sbuf_bytes(chip->core) * chip->cores,
                                  (double)trn_core_psum_bytes(chip->core) * chip->cores,
                                  chip->bf16_flops_per_s,
                                  chip->f8_flops_per_s };
        cell_numbers(s, COUNT(number), number);
        end_row(s);
    }
    return TRN_OK;
}

static trn_status write_systems(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "title:text", "chip:text", "servers:integer", "chips:integer", "cores:integer",
            "hbm_bytes:number", "hbm_bytes_per_s:number", "neuronlink_chip_bytes_per_s:number", "efa_bits_per_s:number",
            "bf16_flops_per_s:number");
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)i);
        const trn_spec_totals t = trn_spec_totals_of(spec);
        cell(s, spec->name);
        cell(s, spec->title);
        cell(s, spec->server->chip->name);
        cell_integer(s, spec->servers);
        cell_integer(s, trn_spec_chips(spec));
        cell_integer(s, (int64_t)t.cores);
        const double number[] = { t.hbm_bytes, t.hbm_bytes_per_s, t.neuronlink_chip_bytes_per_s, t.efa_bits_per_s,
                                  t.bf16_flops_per_s };
        cell_numbers(s, COUNT(number), number);
        end_row(s);
    }
    return TRN_OK;
}

static trn_status write_rates(sheet *s, const char *of, trn_error *error)
{
    const trn_system_spec *spec;
    const trn_status status = find_spec(of, &spec, error);
    if (status != TRN_OK) return status;
    COLUMNS("format:text", "tflops:number", "sparse_tflops:number");
    for (int i = 1; i < TRN_CFP8; i++) {
        const double rate = trn_spec_tflops(spec, (trn_format)i, false);
        if (isnan(rate)) continue;
        cell(s, trn_format_name((trn_format)i));
        cell_number(s, rate);
        cell_number(s, trn_spec_tflops(spec, (trn_format)i, true));
        end_row(s);
    }
    return TRN_OK;
}

static void spec_cells(sheet *s, const trn_spec_field *f)
{
    cell(s, f->level);
    cell(s, f->owner);
    cell(s, f->field);
    cell_number(s, f->value);
    cell(s, f->unit);
    cell(s, trn_provenance_text(f->known));
    cell(s, f->where);
}

#define SPEC_COLUMNS "level:text", "owner:text", "field:text", "value:number", "unit:text", "known:text", "where:text"

static trn_status write_spec(sheet *s, const char *of, trn_error *error)
{
    const trn_system_spec *spec;
    trn_spec_field field;
    const trn_status status = find_spec(of, &spec, error);
    if (status != TRN_OK) return status;
    COLUMNS(SPEC_COLUMNS);
    for (int i = 0; trn_spec_field_at(spec, i, &field); i++) {
        spec_cells(s, &field);
        end_row(s);
    }
    return TRN_OK;
}

static trn_status write_alternatives(sheet *s, const char *of, trn_error *error)
{
    trn_spec_alternative a;
    (void)of, (void)error;
    COLUMNS("system:text", SPEC_COLUMNS, "other_value:number", "other_known:text", "other_where:text", "why:text");
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        cell(s, trn_system_name(a.system));
        spec_cells(s, &a.chosen);
        cell_number(s, a.value);
        cell(s, trn_provenance_text(a.known));
        cell(s, a.where);
        cell(s, a.why);
        end_row(s);
    }
    return TRN_OK;
}

/* ---- instructions and what they cost ---- */

static trn_status write_instructions(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "arguments:text", "engine:text", "generations:text", "numerics:text", "cost:text");
    for (size_t i = 0; i < COUNT(flat_instruction); i++) {
        for (int k = 0; k < FLAT_INSTRUCTION_CELLS; k++) cell(s, flat_instruction[i][k]);
        end_row(s);
    }
    return TRN_OK;
}

static trn_status write_rules(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "engine:text", "cycles_per_element:number", "fixed_cycles:number", "least_cycles:number",
            "speed_ups:text", "known:text", "where:text");
    for (int i = 0; i < TRN_RULE_COUNT; i++) {
        const trn_engine_rule *r = trn_engine_rule_of((trn_rule)i);
        cell(s, r->name);
        cell(s, r->engine);
        cell_number(s, r->per_element);
        cell_number(s, r->fixed);
        cell_number(s, r->minimum);
        cell(s, r->speeds);
        cell(s, trn_provenance_text(r->known));
        cell(s, r->where);
        end_row(s);
    }
    return TRN_OK;
}

static trn_status write_activations(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "formula:text", "low:number", "high:number", "outside:text", "source:text");
    for (int i = 0; i < TRN_ACT_COUNT; i++) {
        const trn_act_info *a = trn_act_info_of((trn_act)i);
        cell(s, a->name);
        cell(s, a->formula);
        cell_number(s, a->low);
        cell_number(s, a->high);
        cell(s, a->outside);
        cell(s, a->source);
        end_row(s);
    }
    return TRN_OK;
}

/* ---- numerics ---- */

static trn_status write_presets(sheet *s, const char *of, trn_error *error)
{
    const char *name, *setting, *source;
    (void)of, (void)error;
    COLUMNS("name:text", "setting:text", "source:text");
    for (int i = 0; (name = trn_numerics_preset(i, &setting, &source)) != NULL; i++) {
        cell(s, name);
        cell(s, setting);
        cell(s, source);
        end_row(s);
    }
    return TRN_OK;
}

/* ---- names alone ---- */

/* Numbers first to last - 1 of an enumeration, by their names. */
static trn_status write_names(sheet *s, int first, int last, const char *(*name_of)(int i))
{
    COLUMNS("name:text");
    for (int i = first; i < last; i++) {
        cell(s, name_of(i));
        end_row(s);
    }
    return TRN_OK;
}

#define NAMES(table, first, last, type, function)                                                                      \
    static const char *table##_name(int i) { return function((type)i); }                                               \
    static trn_status write_##table(sheet *s, const char *of, trn_error *error)                                        \
    {                                                                                                                  \
        (void)of, (void)error;                                                                                         \
        return write_names(s, first, last, table##_name);                                                              \
    }
NAMES(collectives, 0, TRN_COLLECTIVE_COUNT, trn_collective, trn_collective_name)
NAMES(algorithms, 0, TRN_ALGORITHM_COUNT, trn_algorithm, trn_algorithm_name)
NAMES(roundings, 0, TRN_ROUNDING_COUNT, trn_rounding, trn_round_text)
NAMES(engines, TRN_ENGINE_TENSOR, TRN_ENGINE_COUNT, trn_engine, trn_engine_name)
NAMES(parts, 0, TRN_PART_COUNT, trn_plan_part, trn_plan_part_name)
#undef NAMES

#endif /* TRNMATH_FLAT_TABLES_H */
