/* machine/spec_system.h - chips, servers and systems as rows: what is in which, and totals of a system.
 * A part of trn_spec.h. SPDX-License-Identifier: MIT
 *
 * DOES: three tables, each pointing at the one before, and the first at that of machine/spec_core.h: core -> chip ->
 *     server -> system.
 * DOES NOT: know dies, drives and racks (machine/spec_physical.h).
 *
 * KNOWN FROM: the source of each row and field.
 */
#ifndef TRNI_MACHINE_SPEC_SYSTEM_H
#define TRNI_MACHINE_SPEC_SYSTEM_H

#include "spec_core.h"
#include "spec_alternative_rows.h"
#include "spec_system_rows.h"

/* ---- one chip ---- */

#define TRNI_CHIP_FIELDS(X)                                                                                            \
    X(int, cores, "cores")                                                                                             \
    X(int, cores_per_logical_core, "cores") /* by default; a logical core is one rank of a collective */               \
    X(int, cc_cores, "cores")               /* that run collectives */                                                 \
    X(double, hbm_bytes, "B")                                                                                          \
    X(double, hbm_bytes_per_s, "B/s")                                                                                  \
    X(double, f32_flops_per_s, "flop/s")                                                                               \
    X(double, bf16_flops_per_s, "flop/s")        /* TF32 and F16 too */                                                \
    X(double, f8_flops_per_s, "flop/s")          /* FP8; of Trainium3 it is printed with block scales only */          \
    X(double, mx_flops_per_s, "flop/s")          /* block-scaled FP8 and FP4; 0 = none */                              \
    X(double, int8_ops_per_s, "op/s")            /* 0 = none */                                                        \
    X(double, sparse_bf16_flops_per_s, "flop/s") /* structured sparsity, BF16, F16, TF32; 0 = none */                  \
    X(double, sparse_f8_flops_per_s, "flop/s")   /* the same with FP8 */

typedef struct trn_chip_spec {
    const char *name; /* "Trainium2" */
    const trn_core_spec *core;
    const trn_source *source; /* of each field below, in order */
    TRNI_CHIP_FIELDS(TRNI_DECLARE)
} trn_chip_spec;

/* NULL for a generation that does not exist. */
TRN_API const trn_chip_spec *trn_chip_spec_of(trn_generation generation);

/* "Trainium2"; "an unknown generation" for anything else. */
TRN_API const char *trn_generation_name(trn_generation generation);

/* ---- one server: what is sold as one instance, or one server of an UltraServer ---- */

/* NeuronLink of one chip, as numbers of links and one-way rates: to chips of its own server, to the switch of its rack,
 * and to one chip of each neighbouring server (Trainium2: ring of four) or of the other rack (Trainium3). */
#define TRNI_SERVER_FIELDS(X)                                                                                          \
    X(int, chips, "chips")                                                                                             \
    X(double, efa_bits_per_s, "bit/s")                                                                                 \
    X(int, vcpus, "vCPUs")                                                                                             \
    X(double, host_bytes, "B")                                                                                         \
    X(int, server_links, "links/chip")                                                                                 \
    X(double, server_link_bytes_per_s, "B/s one way")                                                                  \
    X(int, rack_links, "links/chip")                                                                                   \
    X(double, rack_link_bytes_per_s, "B/s one way")                                                                    \
    X(int, peer_links, "links/chip")                                                                                   \
    X(double, peer_link_bytes_per_s, "B/s one way")

typedef struct trn_server_spec {
    const char *name;
    const trn_chip_spec *chip;
    const trn_source *source; /* of each field below, in order */
    TRNI_SERVER_FIELDS(TRNI_DECLARE)
} trn_server_spec;

/* ---- one system: how many servers of which kind ---- */

#define TRNI_SYSTEM_FIELDS(X)                                                                                          \
    X(int, servers, "servers")                                                                                         \
    X(int, servers_per_domain, "servers") /* that NeuronLink joins; between domains there is EFA only */

typedef enum trn_system {
#define TRNI_X(system, name, title, server, servers, domain, known, where) system,
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
        TRN_SYSTEM_COUNT
} trn_system;

typedef struct trn_system_spec {
    trn_system system;
    const char *name;  /* "trn2-ultraserver" */
    const char *title; /* "Trn2 UltraServer" */
    const trn_server_spec *server;
    const trn_source *source; /* of each field below, in order */
    TRNI_SYSTEM_FIELDS(TRNI_DECLARE)
} trn_system_spec;

/* NULL for a system that does not exist. */
TRN_API const trn_system_spec *trn_system_spec_of(trn_system system);

/* Such as "trn2.48xlarge"; "an unknown system" for one that does not exist. */
TRN_API const char *trn_system_name(trn_system system);

/* Exact case. TRN_SYSTEM_COUNT when unknown. */
TRN_API trn_system trn_system_from_name(const char *name);

/* ---- the whole system ---- */

/* Chips of all its servers. */
TRN_API int trn_spec_chips(const trn_system_spec *spec);

/* Published rate of the whole system in 1e12 flop/s (INT8: op/s); NaN when the chip has no such rate. On Trainium3 the
 * formats of the MX instructions (E4M3FN, E5M2, E2M1) have the MX rate, and E4M3, which MX does not know, the FP8 rate
 * that the vendor prints, which is the same; without block scales half of it is reached (trn_spec_alternative_at). */
TRN_API double trn_spec_tflops(const trn_system_spec *spec, trn_format format, bool sparse);

#define TRNI_TOTAL_FIELDS(X)                                                                                           \
    X(double, chips, "chips")                                                                                          \
    X(double, cores, "cores")                                                                                          \
    X(double, logical_cores, "cores")                                                                                  \
    X(double, sbuf_bytes, "B")                                                                                         \
    X(double, hbm_bytes, "B")                                                                                          \
    X(double, hbm_bytes_per_s, "B/s")                                                                                  \
    X(double, dma_engines, "engines")                                                                                  \
    X(double, dma_chip_bytes_per_s, "B/s")                /* of ONE chip: all its engines, in practice */              \
    X(double, dma_chip_peak_bytes_per_s, "B/s")           /* of ONE chip: all its engines, at their peak */            \
    X(double, neuronlink_chip_bytes_per_s, "B/s one way") /* of ONE chip: all its links that lead somewhere */         \
    X(double, efa_bits_per_s, "bit/s")                                                                                 \
    X(double, vcpus, "vCPUs")                                                                                          \
    X(double, host_bytes, "B")                                                                                         \
    X(double, f32_flops_per_s, "flop/s")                                                                               \
    X(double, bf16_flops_per_s, "flop/s")                                                                              \
    X(double, f8_flops_per_s, "flop/s")                                                                                \
    X(double, mx_flops_per_s, "flop/s")                                                                                \
    X(double, int8_ops_per_s, "op/s")                                                                                  \
    X(double, sparse_bf16_flops_per_s, "flop/s")                                                                       \
    X(double, sparse_f8_flops_per_s, "flop/s")

typedef struct trn_spec_totals {
    TRNI_TOTAL_FIELDS(TRNI_DECLARE)
} trn_spec_totals;

/* Numbers of the whole system: those of the rows, multiplied. 0 where a chip has no such rate. */
TRN_API trn_spec_totals trn_spec_totals_of(const trn_system_spec *spec);

/* ---- every number in turn ---- */

typedef struct trn_spec_field {
    const char *level; /* "system", "server", "chip", "core", or "total" */
    const char *owner; /* the name of that system, server, chip or core */
    const char *field;
    const char *unit;
    double value; /* flags: 1 or 0 */
    trn_provenance known;
    const char *where;
} trn_spec_field;

/* Field number index of a system: its own, then its server's, its chip's and its core's, then the totals. False when
 * there is no such number, so that a loop from 0 sees them all. */
TRN_API bool trn_spec_field_at(const trn_system_spec *spec, int index, trn_spec_field *out);

/* ---- where the sources contradict each other ---- */

typedef struct trn_spec_alternative {
    trn_system system;     /* a system that shows the field */
    trn_spec_field chosen; /* what the tables hold */
    double value;          /* what the other source says, in chosen.unit */
    trn_provenance known;
    const char *where;
    const char *why; /* the table holds what it holds */
} trn_spec_alternative;

/* The value of one field by its names; false when there is none. */
TRN_API bool trn_spec_field_named(const trn_system_spec *spec, const char *level, const char *field,
                                  trn_spec_field *out);

/* Contradiction number index; false when there is no such number, so that a loop from 0 sees them all. */
TRN_API bool trn_spec_alternative_at(int index, trn_spec_alternative *out);

#if TRNI_BODIES

/* ---- one chip ---- */

enum { TRNI_CHIP_FIELD_COUNT = 0 TRNI_CHIP_FIELDS(TRNI_ONE) };

TRNI_DATA trn_source trni_chip_source[][TRNI_CHIP_FIELD_COUNT] = { { TRNI_CHIP_V2(TRNI_SOURCE) },
                                                                   { TRNI_CHIP_V3(TRNI_SOURCE) },
                                                                   { TRNI_CHIP_V4(TRNI_SOURCE) } };

TRNI_DATA char trni_chip_name[][10] = { "Trainium1", "Trainium2", "Trainium3" };

TRNI_DATA trn_chip_spec trni_chip[] = {
    { trni_chip_name[0], &trni_core[0], trni_chip_source[0], TRNI_CHIP_V2(TRNI_VALUE) },
    { trni_chip_name[1], &trni_core[1], trni_chip_source[1], TRNI_CHIP_V3(TRNI_VALUE) },
    { trni_chip_name[2], &trni_core[2], trni_chip_source[2], TRNI_CHIP_V4(TRNI_VALUE) },
};

TRN_API const trn_chip_spec *trn_chip_spec_of(trn_generation generation)
{
    const int i = trni_generation_index(generation);
    return i < 0 ? NULL : &trni_chip[i];
}

TRN_API const char *trn_generation_name(trn_generation generation)
{
    const int i = trni_generation_index(generation);
    return i < 0 ? "an unknown generation" : trni_chip_name[i];
}

/* Published flop/s of one chip; 0 when absent. */
TRNI_FN double trni_chip_flops_per_s(const trn_chip_spec *chip, trn_format format, bool sparse)
{
    const double dense_rate[TRNI_RATE_COUNT] = { 0,
                                                 0,
                                                 chip->f32_flops_per_s,
                                                 chip->bf16_flops_per_s,
                                                 chip->f8_flops_per_s,
                                                 chip->mx_flops_per_s,
                                                 chip->int8_ops_per_s };
    const double sparse_rate[TRNI_RATE_COUNT] = { 0, 0, 0, chip->sparse_bf16_flops_per_s, chip->sparse_f8_flops_per_s,
                                                  0, 0 };
    return (sparse ? sparse_rate : dense_rate)[trni_rate_of(chip->core->generation, format)];
}

/* ---- one server: what is sold as one instance, or one server of an UltraServer ---- */

enum { TRNI_SERVER_FIELD_COUNT = 0 TRNI_SERVER_FIELDS(TRNI_ONE) };

enum {
#define TRNI_X(at, name, chip, FIELDS) at,
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
        TRNI_SERVER_COUNT
};

TRNI_DATA trn_source trni_server_source[][TRNI_SERVER_FIELD_COUNT] = {
#define TRNI_X(at, name, chip, FIELDS) { FIELDS(TRNI_SOURCE) },
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
};

TRNI_DATA trn_server_spec trni_server[] = {
#define TRNI_X(at, name, chip, FIELDS) { name, &trni_chip[chip], trni_server_source[at], FIELDS(TRNI_VALUE) },
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
};

/* ---- one system: how many servers of which kind ---- */

enum { TRNI_SYSTEM_FIELD_COUNT = 0 TRNI_SYSTEM_FIELDS(TRNI_ONE) };

TRNI_DATA trn_source trni_system_source[][TRNI_SYSTEM_FIELD_COUNT] = {
#define TRNI_X(system, name, title, server, servers, domain, known, where)                                             \
    { { "servers", TRN_##known, where }, { "servers_per_domain", TRN_##known, where } },
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
};

TRNI_DATA trn_system_spec trni_system[] = {
#define TRNI_X(system, name, title, server, servers, domain, known, where)                                             \
    { system, name, title, &trni_server[server], trni_system_source[system], servers, domain },
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
};

TRN_API const trn_system_spec *trn_system_spec_of(trn_system system)
{
    return (unsigned)system < TRN_SYSTEM_COUNT ? &trni_system[(unsigned)system] : NULL;
}

TRN_API const char *trn_system_name(trn_system system)
{
    const trn_system_spec *spec = trn_system_spec_of(system);
    return spec ? spec->name : "an unknown system";
}

TRN_API trn_system trn_system_from_name(const char *name)
{
    for (unsigned i = 0; name && i < TRN_SYSTEM_COUNT; i++)
        if (strcmp(name, trni_system[i].name) == 0) return trni_system[i].system;
    return TRN_SYSTEM_COUNT;
}

/* ---- the whole system ---- */

TRN_API int trn_spec_chips(const trn_system_spec *spec) { return spec->servers * spec->server->chips; }

TRN_API double trn_spec_tflops(const trn_system_spec *spec, trn_format format, bool sparse)
{
    TRNI_FLOATS;
    const double rate = trni_chip_flops_per_s(spec->server->chip, format, sparse);
    return rate > 0 ? rate / 1e12 * trn_spec_chips(spec) : TRNI_NAN;
}

enum { TRNI_TOTAL_FIELD_COUNT = 0 TRNI_TOTAL_FIELDS(TRNI_ONE) };

TRNI_FN double trni_neuronlink_bytes_per_s(const trn_system_spec *spec)
{
    const trn_server_spec *s = spec->server;
    const bool joined = spec->servers_per_domain > 1;
    return (s->chips > 1 ? s->server_links * s->server_link_bytes_per_s : 0) +
           (joined ? s->rack_links * s->rack_link_bytes_per_s + s->peer_links * s->peer_link_bytes_per_s : 0);
}

TRN_API trn_spec_totals trn_spec_totals_of(const trn_system_spec *spec)
{
    TRNI_FLOATS;
    const trn_server_spec *server = spec->server;
    const trn_chip_spec *chip = server->chip;
    const double chips = trn_spec_chips(spec), cores = chips * chip->cores;
    const double engines = (double)chip->cores * chip->core->dma_engines;
    trn_spec_totals t;
    t.chips = chips;
    t.cores = cores;
    t.logical_cores = cores / chip->cores_per_logical_core;
    t.sbuf_bytes = cores * trn_core_sbuf_bytes(chip->core);
    t.hbm_bytes = chips * chip->hbm_bytes;
    t.hbm_bytes_per_s = chips * chip->hbm_bytes_per_s;
    t.dma_engines = chips * engines;
    t.dma_chip_bytes_per_s = engines * chip->core->dma_engine_bytes_per_s;
    t.dma_chip_peak_bytes_per_s = engines * chip->core->dma_engine_peak_bytes_per_s;
    t.neuronlink_chip_bytes_per_s = trni_neuronlink_bytes_per_s(spec);
    t.efa_bits_per_s = spec->servers * server->efa_bits_per_s;
    t.vcpus = (double)spec->servers * server->vcpus;
    t.host_bytes = spec->servers * server->host_bytes;
    t.f32_flops_per_s = chips * chip->f32_flops_per_s;
    t.bf16_flops_per_s = chips * chip->bf16_flops_per_s;
    t.f8_flops_per_s = chips * chip->f8_flops_per_s;
    t.mx_flops_per_s = chips * chip->mx_flops_per_s;
    t.int8_ops_per_s = chips * chip->int8_ops_per_s;
    t.sparse_bf16_flops_per_s = chips * chip->sparse_bf16_flops_per_s;
    t.sparse_f8_flops_per_s = chips * chip->sparse_f8_flops_per_s;
    return t;
}

/* ---- every number in turn ---- */

#define TRNI_READ(type, field, unit) (double)row->field,
#define TRNI_UNIT(type, field, unit) unit,
#define TRNI_NAME(type, field, unit) #field,

/* Sources are in the order of the fields, which the tests hold against the names that the sources carry. */
#define TRNI_FIELD_AT(level_, row_t, FIELDS, OWNER)                                                                    \
    TRNI_FN void trni_##level_##_field(const row_t *row, int i, trn_spec_field *out)                                   \
    {                                                                                                                  \
        static const char *const unit[] = { FIELDS(TRNI_UNIT) };                                                       \
        static const char *const name[] = { FIELDS(TRNI_NAME) };                                                       \
        const double value[] = { FIELDS(TRNI_READ) };                                                                  \
        out->level = #level_;                                                                                          \
        out->owner = OWNER;                                                                                            \
        out->field = name[i];                                                                                          \
        out->unit = unit[i];                                                                                           \
        out->value = value[i];                                                                                         \
        out->known = row->source[i].known;                                                                             \
        out->where = row->source[i].where;                                                                             \
    }

TRNI_FIELD_AT(core, trn_core_spec, TRNI_CORE_FIELDS, row->name)
TRNI_FIELD_AT(chip, trn_chip_spec, TRNI_CHIP_FIELDS, row->name)
TRNI_FIELD_AT(server, trn_server_spec, TRNI_SERVER_FIELDS, row->name)
TRNI_FIELD_AT(system, trn_system_spec, TRNI_SYSTEM_FIELDS, row->name)

TRNI_FN void trni_total_field(const trn_system_spec *spec, int i, trn_spec_field *out)
{
    static const char *const unit[] = { TRNI_TOTAL_FIELDS(TRNI_UNIT) };
    static const char *const name[] = { TRNI_TOTAL_FIELDS(TRNI_NAME) };
    const trn_spec_totals totals = trn_spec_totals_of(spec), *row = &totals;
    const double value[] = { TRNI_TOTAL_FIELDS(TRNI_READ) };
    out->level = "total";
    out->owner = spec->name;
    out->field = name[i];
    out->unit = unit[i];
    out->value = value[i];
    out->known = TRN_DERIVED;
    out->where = "the rows of the server, the chip and the core, multiplied";
}

#undef TRNI_READ
#undef TRNI_UNIT
#undef TRNI_NAME
#undef TRNI_FIELD_AT

TRN_API bool trn_spec_field_at(const trn_system_spec *spec, int index, trn_spec_field *out)
{
    TRNI_FLOATS;
    if (index < 0) return false;
    int i = index;
    if (i < TRNI_SYSTEM_FIELD_COUNT)
        trni_system_field(spec, i, out);
    else if ((i -= TRNI_SYSTEM_FIELD_COUNT) < TRNI_SERVER_FIELD_COUNT)
        trni_server_field(spec->server, i, out);
    else if ((i -= TRNI_SERVER_FIELD_COUNT) < TRNI_CHIP_FIELD_COUNT)
        trni_chip_field(spec->server->chip, i, out);
    else if ((i -= TRNI_CHIP_FIELD_COUNT) < TRNI_CORE_FIELD_COUNT)
        trni_core_field(spec->server->chip->core, i, out);
    else if ((i -= TRNI_CORE_FIELD_COUNT) < TRNI_TOTAL_FIELD_COUNT)
        trni_total_field(spec, i, out);
    else
        return false;
    return true;
}

/* ---- where the sources contradict each other ---- */

TRN_API bool trn_spec_field_named(const trn_system_spec *spec, const char *level, const char *field,
                                  trn_spec_field *out)
{
    TRNI_FLOATS;
    for (int i = 0; trn_spec_field_at(spec, i, out); i++)
        if (strcmp(out->level, level) == 0 && strcmp(out->field, field) == 0) return true;
    return false;
}

TRN_API bool trn_spec_alternative_at(int index, trn_spec_alternative *out)
{
    static const struct {
        trn_system system;
        const char *level, *field;
        double value;
        trn_provenance known;
        const char *where, *why;
    } row[] = {
#define TRNI_X(system, level, field, value, known, where, why) { system, level, field, value, TRN_##known, where, why },
        TRNI_ALTERNATIVE_LIST(TRNI_X)
#undef TRNI_X
    };
    if (index < 0 || index >= (int)(sizeof row / sizeof row[0])) return false;
    out->system = row[index].system;
    out->value = row[index].value;
    out->known = row[index].known;
    out->where = row[index].where;
    out->why = row[index].why;
    return trn_spec_field_named(trn_system_spec_of(out->system), row[index].level, row[index].field, &out->chosen);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_SPEC_SYSTEM_H */
