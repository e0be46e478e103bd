/* test_spec.c - the machines as data, held against figures that were published as totals.
 * SPDX-License-Identifier: MIT
 *
 * trn_spec.h states each number once, at the lowest level; here stand the vendor's totals, copied as they are printed
 * and never computed from the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "published/machines.h"

/* Equal to the digits that were printed: half a unit of the last one is the tolerance. */
static void same(double found, double published, double unit, const char *name, const char *what)
{
    if (fabs(found - published) <= unit / 2 * 1.000001) return;
    fail_msg("%s, %s: %.9g, published %.9g", name, what, found, published);
}

/* ---- names ---- */

static const char *const names[] = { "trn1.2xlarge",          "trn1.32xlarge",         "trn1n.32xlarge",
                                     "trn2.48xlarge",         "trn2u.48xlarge",        "trn2-ultraserver",
                                     "trn3-gen1-ultraserver", "trn3-gen2-ultraserver", "trn1-ultracluster",
                                     "project-rainier" };

static void system_names(void **state)
{
    (void)state;
    assert_int_equal(TRN_SYSTEM_COUNT, 10);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        assert_string_equal(trn_system_name((trn_system)i), names[i]);
        assert_int_equal(trn_system_from_name(names[i]), i);
        assert_int_equal(trn_system_spec_of((trn_system)i)->system, i);
    }
    assert_int_equal(trn_system_from_name("trn2-ultraserver"), TRN_TRN2_ULTRASERVER);
    assert_int_equal(trn_system_from_name("trn1n.32xlarge"), TRN_TRN1N_32XLARGE);
    assert_int_equal(trn_system_from_name("project-rainier"), TRN_PROJECT_RAINIER);
}

static void unknown_names(void **state)
{
    (void)state;
    static const char *const wrong[] = { "", "trn2", "TRN2.48xlarge", "trn2.48xlarge ", "trn4" };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(trn_system_from_name(wrong[i]), TRN_SYSTEM_COUNT);
    assert_int_equal(trn_system_from_name(NULL), TRN_SYSTEM_COUNT);
    assert_null(trn_system_spec_of(TRN_SYSTEM_COUNT));
    assert_null(trn_system_spec_of((trn_system)-1));
    assert_string_equal(trn_system_name(TRN_SYSTEM_COUNT), "an unknown system");
}

static void generations(void **state)
{
    (void)state;
    static const int wrong[] = { -1, 1, 5, 1000 };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_null(trn_core_spec_of((trn_generation)wrong[i]));
        assert_null(trn_chip_spec_of((trn_generation)wrong[i]));
        assert_string_equal(trn_generation_name((trn_generation)wrong[i]), "an unknown generation");
    }
    assert_ptr_equal(trn_core_spec_of(TRN_GENERATION_DEFAULT), trn_core_spec_of(TRN_TRAINIUM2));
    assert_string_equal(trn_core_spec_of(TRN_TRAINIUM1)->name, "NeuronCore-v2");
    assert_string_equal(trn_core_spec_of(TRN_TRAINIUM2)->name, "NeuronCore-v3");
    assert_string_equal(trn_core_spec_of(TRN_TRAINIUM3)->name, "NeuronCore-v4");
    assert_string_equal(trn_generation_name(TRN_TRAINIUM1), "Trainium1");
    assert_string_equal(trn_generation_name(TRN_GENERATION_DEFAULT), "Trainium2");
    for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g++) {
        assert_int_equal(trn_core_spec_of((trn_generation)g)->generation, g);
        assert_int_equal(trn_chip_spec_of((trn_generation)g)->core->generation, g);
    }
}

/* ---- one core ---- */

static void tile_limits(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        int n, n_bf16, tile;
        bool double_row, mx, sparse, bf16_psum, transpose;
    } row[] = {
        { TRN_TRAINIUM1, 512, 512, 64, false, false, false, false, false },
        { TRN_TRAINIUM2, 512, 512, 32, true, false, true, false, true },
        { TRN_TRAINIUM3, 4096, 8192, 32, true, true, true, true, true },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_core_spec *core = trn_core_spec_of(row[i].generation);
        assert_int_equal(core->max_k, 128);
        assert_int_equal(core->max_m, 128);
        assert_int_equal(core->max_n, row[i].n);
        assert_int_equal(core->max_n_bf16, row[i].n_bf16);
        assert_int_equal(core->row_tile_min, row[i].tile);
        assert_int_equal(core->column_tile_min, row[i].tile);
        assert_int_equal(core->double_row, row[i].double_row);
        assert_int_equal(core->mx, row[i].mx);
        assert_int_equal(core->sparse, row[i].sparse);
        assert_int_equal(core->bf16_psum, row[i].bf16_psum);
        assert_int_equal(core->transpose_mode, row[i].transpose);
    }
}

static void clocks_and_widths(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        double tensor_ghz, vector_ghz, scalar_ghz, gpsimd_ghz, vector_tflops, scalar_tflops;
        int vector, vector_16bit;
    } row[] = {
        { TRN_TRAINIUM1, 2.8, 1.12, 1.4, 1.4, 2.3, 2.9, 128, 128 },
        { TRN_TRAINIUM2, 2.4, 0.96, 1.2, 1.2, 1.0, 1.2, 256, 512 },
        { TRN_TRAINIUM3, 2.4, 1.2, 1.2, 1.2, 1.2, 1.2, 256, 512 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_core_spec *core = trn_core_spec_of(row[i].generation);
        same(core->tensor_clock_hz / 1e9, row[i].tensor_ghz, 1e-9, core->name, "TensorE clock");
        same(core->vector_clock_hz / 1e9, row[i].vector_ghz, 1e-9, core->name, "VectorE clock");
        same(core->scalar_clock_hz / 1e9, row[i].scalar_ghz, 1e-9, core->name, "ScalarE clock");
        same(core->gpsimd_clock_hz / 1e9, row[i].gpsimd_ghz, 1e-9, core->name, "GpSimdE clock");
        same(core->vector_flops_per_s / 1e12, row[i].vector_tflops, 1e-9, core->name, "VectorE TFLOPS");
        same(core->scalar_flops_per_s / 1e12, row[i].scalar_tflops, 1e-9, core->name, "ScalarE TFLOPS");
        assert_int_equal(core->pe_rows, 128);
        assert_int_equal(core->pe_columns, 128);
        assert_int_equal(core->vector_elements, row[i].vector);
        assert_int_equal(core->vector_elements_16bit, row[i].vector_16bit);
        assert_int_equal(core->scalar_elements, 128);
        assert_int_equal(core->gpsimd_elements, 128);
    }
}

static void core_memories(void **state)
{
    (void)state;
    static const double sbuf_mib[] = { 24, 28, 32 }, dma_gb_per_s[] = { 272, 368, 528 };
    for (int g = 0; g < 3; g++) {
        const trn_core_spec *core = trn_core_spec_of((trn_generation)(TRN_TRAINIUM1 + g));
        same(trn_core_sbuf_bytes(core), sbuf_mib[g] * 1048576, 0, core->name, "SBUF");
        same(trn_core_psum_bytes(core), 2097152, 0, core->name, "PSUM");
        same(core->psum_partition_bytes / core->psum_banks, 2048, 0, core->name, "PSUM bank of one partition");
        same(core->dma_engines * core->dma_engine_bytes_per_s, dma_gb_per_s[g] * 1e9, 0, core->name, "DMA");
        same(core->dma_latency_s, 1.3e-6, 0, core->name, "DMA start");
    }
}

/* TFLOPS of one core as its page prints them, against PEs x clock x products. The pages round, and differ by one
 * between guides, so the tolerance is one TFLOPS. */
static void core_peaks(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        bool sparse;
        double tflops;
    } row[] = {
        { TRN_TRAINIUM1, TRN_F32, false, 23 },      { TRN_TRAINIUM1, TRN_BF16, false, 92 },
        { TRN_TRAINIUM1, TRN_F16, false, 92 },      { TRN_TRAINIUM1, TRN_CFP8, false, 92 },
        { TRN_TRAINIUM2, TRN_F32, false, 20 },      { TRN_TRAINIUM2, TRN_TF32, false, 79 },
        { TRN_TRAINIUM2, TRN_F8_E4M3, false, 158 }, { TRN_TRAINIUM2, TRN_F8_E5M2, false, 158 },
        { TRN_TRAINIUM2, TRN_F8_E3M4, false, 79 },  { TRN_TRAINIUM2, TRN_BF16, true, 316 },
        { TRN_TRAINIUM2, TRN_F8_E4M3, true, 316 },  { TRN_TRAINIUM3, TRN_F32, false, 20 },
        { TRN_TRAINIUM3, TRN_BF16, false, 79 },     { TRN_TRAINIUM3, TRN_F8_E4M3FN, false, 315 },
        { TRN_TRAINIUM3, TRN_F4_E2M1, false, 315 }, { TRN_TRAINIUM3, TRN_BF16, true, 315 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_core_spec *core = trn_core_spec_of(row[i].generation);
        const double peak = trn_core_peak_flops_per_s(core, row[i].format, row[i].sparse);
        if (isnan(peak)) fail_msg("%s has no peak for %s", core->name, trn_format_name(row[i].format));
        same(peak / 1e12, row[i].tflops, 2.9, core->name, trn_format_name(row[i].format));
    }
    same(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM1), TRN_BF16, false), 91.7504e12, 1e3, "v2", "exactly");
    same(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM2), TRN_BF16, false), 78.6432e12, 1e3, "v3", "exactly");
    assert_true(isnan(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM1), TRN_BF16, true)));
    assert_true(isnan(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM2), TRN_F4_E2M1, false)));
    same(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM1), TRN_I8, false), 183.5008e12, 1e3, "v2", "INT8");
    assert_true(isnan(trn_core_peak_flops_per_s(trn_core_spec_of(TRN_TRAINIUM2), TRN_I8, false)));
}

static void core_rounded_figures(void **state)
{
    (void)state;
    for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g++) {
        const trn_core_spec *core = trn_core_spec_of((trn_generation)g);
        const double peak = 2.0 * 128 * 128 * core->tensor_clock_hz;
        same(core->bf16_flops_per_s, peak, 1e12, core->name, "BF16");
        same(core->f32_flops_per_s, peak / 4, 1e12, core->name, "F32");
        if (core->sparse) same(core->sparse_flops_per_s, peak * 4, 3e12, core->name, "sparse");
        if (core->mx) same(core->mx_flops_per_s, peak * 4, 3e12, core->name, "MX");
    }
}

/* ---- one chip ---- */

static void chips(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PUBLISHED_CHIPS; i++) {
        const trn_chip_spec *chip = trn_chip_spec_of(published_chips[i].generation);
        const trn_core_spec *core = chip->core;
        assert_int_equal(chip->cores, published_chips[i].cores);
        assert_int_equal(chip->cores * core->dma_engines, published_chips[i].dma_engines);
        assert_int_equal(chip->cc_cores, published_chips[i].cc_cores);
        same(chip->cores * trn_core_sbuf_bytes(core) / 1048576, published_chips[i].sbuf_mib, 0, chip->name, "SBUF");
        same(chip->hbm_bytes / 1073741824, published_chips[i].hbm_gib, 0, chip->name, "HBM");
        same(chip->hbm_bytes_per_s / 1e12, published_chips[i].hbm_tb_per_s, 1e-9, chip->name, "HBM rate");
        same(published_chips[i].dma_engines * core->dma_engine_peak_bytes_per_s / 1e12, published_chips[i].dma_tb_per_s,
             0.01, chip->name, "all DMA engines");
        same(chip->f32_flops_per_s, published_chips[i].f32 * 1e12, 0, chip->name, "F32");
        same(chip->bf16_flops_per_s, published_chips[i].bf16 * 1e12, 0, chip->name, "BF16");
        same(chip->f8_flops_per_s, published_chips[i].f8 * 1e12, 0, chip->name, "FP8");
        same(chip->mx_flops_per_s, published_chips[i].mx * 1e12, 0, chip->name, "MX");
        same(chip->int8_ops_per_s, published_chips[i].int8 * 1e12, 0, chip->name, "INT8");
        same(chip->sparse_bf16_flops_per_s, published_chips[i].sparse * 1e12, 0, chip->name, "sparse");
    }
}

/* ---- systems ---- */

static void published_totals(void **state)
{
    (void)state;
    assert_int_equal(PUBLISHED_SYSTEMS, TRN_SYSTEM_COUNT);
    for (unsigned i = 0; i < PUBLISHED_SYSTEMS; i++) {
        const trn_system_spec *spec = trn_system_spec_of(published_systems[i].system);
        const trn_spec_totals t = trn_spec_totals_of(spec);
        const struct {
            printed published;
            double found;
            const char *what;
        } pair[] = {
            { published_systems[i].bf16_pf, t.bf16_flops_per_s / 1e15, "BF16 PFLOPS" },
            { published_systems[i].f8_pf, fmax(t.f8_flops_per_s, t.mx_flops_per_s) / 1e15, "FP8 PFLOPS" },
            { published_systems[i].f32_pf, t.f32_flops_per_s / 1e15, "F32 PFLOPS" },
            { published_systems[i].sparse_pf, t.sparse_bf16_flops_per_s / 1e15, "sparse PFLOPS" },
            { published_systems[i].hbm_gib, t.hbm_bytes / 1073741824, "HBM GiB" },
            { published_systems[i].hbm_tb_per_s, t.hbm_bytes_per_s / 1e12, "HBM TB/s" },
            { published_systems[i].efa_gbit_per_s, t.efa_bits_per_s / 1e9, "EFA Gbit/s" },
            { published_systems[i].vcpus, t.vcpus, "vCPUs" },
            { published_systems[i].host_gib, t.host_bytes / 1073741824, "host GiB" },
        };
        assert_int_equal(trn_spec_chips(spec), published_systems[i].chips);
        same(t.chips, published_systems[i].chips, 0, spec->name, "chips");
        same(t.cores, published_systems[i].cores, 0, spec->name, "cores");
        same(t.logical_cores, published_systems[i].ranks, 0, spec->name, "logical cores");
        for (unsigned j = 0; j < sizeof pair / sizeof pair[0]; j++)
            if (pair[j].published.value >= 0)
                same(pair[j].found, pair[j].published.value, pair[j].published.unit, spec->name, pair[j].what);
    }
}

/* One chip's DMA engines, at their peak and in practice: engines x rate, by hand. */
static void dma_rates(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        double peak_gb, practice_gb;
    } row[] = {
        { TRN_TRN1_2XLARGE, 870.4, 544 },
        { TRN_TRN1_ULTRACLUSTER, 870.4, 544 },
        { TRN_TRN2_48XLARGE, 3481.6, 2944 },
        { TRN_PROJECT_RAINIER, 3481.6, 2944 },
        { TRN_TRN3_GEN1_ULTRASERVER, 4915.2, 4224 },
        { TRN_TRN3_GEN2_ULTRASERVER, 4915.2, 4224 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_spec_totals t = trn_spec_totals_of(trn_system_spec_of(row[i].system));
        same(t.dma_chip_peak_bytes_per_s, row[i].peak_gb * 1e9, 1, trn_system_name(row[i].system), "DMA peak");
        same(t.dma_chip_bytes_per_s, row[i].practice_gb * 1e9, 1, trn_system_name(row[i].system), "DMA in practice");
    }
}

/* An unconnected port leads nowhere. */
static void neuronlink(void **state)
{
    (void)state;
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)i);
        same(2 * trn_spec_totals_of(spec).neuronlink_chip_bytes_per_s / 1e9, published_both_ways_gb_per_s[i], 0,
             spec->name, "NeuronLink, both ways");
        assert_int_equal(spec->servers % spec->servers_per_domain, 0);
    }
}

static void tflops(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        trn_format format;
        bool sparse;
        double tflops;
    } row[] = {
        { TRN_TRN1_2XLARGE, TRN_F32, false, 47.5 },
        { TRN_TRN1_2XLARGE, TRN_TF32, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_BF16, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_F16, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_CFP8, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_F8_E4M3, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_F8_E5M2, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_F8_E3M4, false, 190 },
        { TRN_TRN1_2XLARGE, TRN_I8, false, 380 },
        { TRN_TRN1_32XLARGE, TRN_I8, false, 6080 },
        { TRN_TRN1N_32XLARGE, TRN_BF16, false, 3040 },
        { TRN_TRN2_48XLARGE, TRN_F32, false, 2896 },
        { TRN_TRN2_48XLARGE, TRN_BF16, false, 10672 },
        { TRN_TRN2_48XLARGE, TRN_F16, true, 41008 },
        { TRN_TRN2U_48XLARGE, TRN_F8_E4M3, false, 20784 },
        { TRN_TRN2U_48XLARGE, TRN_F8_E5M2, true, 41008 },
        { TRN_TRN2U_48XLARGE, TRN_F8_E3M4, false, 10672 },
        { TRN_TRN2_ULTRASERVER, TRN_CFP8, false, 83136 },
        { TRN_TRN3_GEN1_ULTRASERVER, TRN_F8_E4M3FN, false, 161088 },
        { TRN_TRN3_GEN1_ULTRASERVER, TRN_F8_E5M2, false, 161088 },
        { TRN_TRN3_GEN1_ULTRASERVER, TRN_F8_E4M3, false, 161088 },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F8_E4M3, false, 362448 },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F4_E2M1, false, 362448 },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_TF32, true, 362448 },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F32, false, 26352 },
        { TRN_TRN1_ULTRACLUSTER, TRN_BF16, false, 5.7e6 },
        { TRN_PROJECT_RAINIER, TRN_BF16, false, 266.8e6 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_system_spec *spec = trn_system_spec_of(row[i].system);
        const double found = trn_spec_tflops(spec, row[i].format, row[i].sparse);
        if (isnan(found)) fail_msg("%s has no rate for %s", spec->name, trn_format_name(row[i].format));
        same(found, row[i].tflops, 1e-6, spec->name, trn_format_name(row[i].format));
    }
}

static void tflops_absent(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        trn_format format;
        bool sparse;
    } row[] = {
        { TRN_TRN1_32XLARGE, TRN_BF16, true },
        { TRN_TRN1_32XLARGE, TRN_F8_E4M3FN, false },
        { TRN_TRN1_32XLARGE, TRN_F4_E2M1, false },
        { TRN_TRN1_32XLARGE, TRN_U8, false },
        { TRN_TRN2_48XLARGE, TRN_F32, true },
        { TRN_TRN2_48XLARGE, TRN_F8_E4M3FN, false },
        { TRN_TRN2_48XLARGE, TRN_F4_E2M1, false },
        { TRN_TRN2_48XLARGE, TRN_I8, false },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F8_E4M3, true },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F8_E4M3FN, true },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F32, true },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F8_E3M4, false },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_F6_E2M3, false },
        { TRN_TRN3_GEN2_ULTRASERVER, TRN_I32, false },
        { TRN_TRN2_48XLARGE, TRN_FORMAT_UNSET, false },
        { TRN_TRN2_48XLARGE, (trn_format)99, false },
        { TRN_TRN2_48XLARGE, TRN_F8_E8M0, false },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_system_spec *spec = trn_system_spec_of(row[i].system);
        const double found = trn_spec_tflops(spec, row[i].format, row[i].sparse);
        if (!isnan(found)) fail_msg("%s, %s: %g", spec->name, trn_format_name(row[i].format), found);
    }
}

/* Another number is tried by copying its row and the rows that point at it: the rating of 2022. */
static void a_row_of_ones_own(void **state)
{
    (void)state;
    trn_system_spec spec = *trn_system_spec_of(TRN_TRN1_32XLARGE);
    trn_server_spec server = *spec.server;
    trn_chip_spec chip = *server.chip;
    chip.bf16_flops_per_s = 210e12;
    server.chip = &chip;
    spec.server = &server;
    same(trn_spec_tflops(&spec, TRN_BF16, false), 3360, 0, "trn1.32xlarge of 2022", "BF16");
    same(trn_spec_totals_of(&spec).bf16_flops_per_s, 3.36e15, 1, "trn1.32xlarge of 2022", "BF16");
    trn_spec_field field;
    assert_true(trn_spec_field_named(&spec, "chip", "bf16_flops_per_s", &field));
    same(field.value, 210e12, 0, "trn1.32xlarge of 2022", "the field");
    same(trn_spec_tflops(trn_system_spec_of(TRN_TRN1_32XLARGE), TRN_BF16, false), 3040, 0, "the table", "is as it was");
}

/* ---- sources ---- */

static const trn_source *source_of(const trn_system_spec *spec, const char *level, int position)
{
    if (strcmp(level, "system") == 0) return &spec->source[position];
    if (strcmp(level, "server") == 0) return &spec->server->source[position];
    if (strcmp(level, "chip") == 0) return &spec->server->chip->source[position];
    return &spec->server->chip->core->source[position];
}

/* Every field of every level of every system has a unit or is a flag, and a source filed under the field's own name. */
static void every_field_has_its_source(void **state)
{
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        trn_spec_field field;
        const char *level = "";
        int position = 0, fields = 0, levels = 0;
        for (; trn_spec_field_at(spec, fields, &field); fields++) {
            if (strcmp(level, field.level) != 0) {
                level = field.level;
                position = 0;
                levels++;
            }
            assert_true(strlen(field.owner) > 3 && strlen(field.field) > 1 && strlen(field.where) > 8);
            assert_true(field.value >= 0 && field.value < 1e30);
            assert_true((unsigned)field.known <= TRN_ASSUMED);
            if (!*field.unit) assert_true(field.value == 0 || field.value == 1);
            if (strcmp(level, "total") == 0) {
                assert_int_equal(field.known, TRN_DERIVED);
                continue;
            }
            const trn_source *source = source_of(spec, level, position++);
            if (strcmp(source->field, field.field) != 0)
                fail_msg("%s: the source of %s is filed under %s", field.owner, field.field, source->field);
            assert_ptr_equal(source->where, field.where);
        }
        assert_int_equal(levels, 5);
        assert_true(fields > 80);
        assert_false(trn_spec_field_at(spec, fields, &field));
        assert_false(trn_spec_field_at(spec, -1, &field));
    }
}

static void provenance_names(void **state)
{
    (void)state;
    assert_string_equal(trn_provenance_text(TRN_DOCUMENTED), "documented");
    assert_string_equal(trn_provenance_text(TRN_THIRD_PARTY), "third party");
    assert_string_equal(trn_provenance_text(TRN_ASSUMED), "assumed");
    assert_string_equal(trn_provenance_text((trn_provenance)77), "unknown");
    trn_spec_field field;
    const trn_system_spec *spec = trn_system_spec_of(TRN_TRN3_GEN2_ULTRASERVER);
    assert_true(trn_spec_field_named(spec, "core", "fp32r_passes", &field));
    assert_int_equal(field.known, TRN_ASSUMED); /* a number here that nobody has published */
    assert_false(trn_spec_field_named(spec, "core", "flux", &field));
    assert_false(trn_spec_field_named(spec, "server", "hbm_bytes", &field));
}

/* ---- contradictions ---- */

static void alternatives(void **state)
{
    (void)state;
    trn_spec_alternative a;
    int count = 0;
    for (; trn_spec_alternative_at(count, &a); count++) {
        assert_true((unsigned)a.system < TRN_SYSTEM_COUNT && (unsigned)a.known <= TRN_ASSUMED);
        assert_true(strlen(a.where) > 8 && strlen(a.why) > 8 && *a.chosen.unit);
        if (!(fabs(a.value - a.chosen.value) > 0)) fail_msg("alternative %d, %s: no difference", count, a.chosen.field);
        assert_true(a.value >= a.chosen.value / 5 || a.value <= 0); /* a slip of units would be a factor of ten */
        assert_true(a.value <= a.chosen.value * 5);
    }
    assert_false(trn_spec_alternative_at(count, &a));
    assert_false(trn_spec_alternative_at(-1, &a));
    assert_true(count >= 30);
}

/* The contradictions that a reader will look for, with both numbers. */
static void known_contradictions(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        const char *level, *field;
        double chosen, other;
    } row[] = {
        { TRN_TRN1_32XLARGE, "chip", "bf16_flops_per_s", 190e12, 210e12 },
        { TRN_TRN1_32XLARGE, "chip", "f32_flops_per_s", 47.5e12, 52.5e12 },
        { TRN_TRN1_32XLARGE, "chip", "int8_ops_per_s", 380e12, 420e12 },
        { TRN_TRN1_32XLARGE, "chip", "hbm_bytes", 34359738368.0, 32e9 },
        { TRN_TRN1_32XLARGE, "chip", "hbm_bytes_per_s", 820e9, 880468295680.0 },
        { TRN_TRN2_48XLARGE, "chip", "bf16_flops_per_s", 667e12, 650e12 },
        { TRN_TRN2_48XLARGE, "total", "hbm_bytes_per_s", 46.4e12, 46e12 },
        { TRN_TRN2_48XLARGE, "chip", "cc_cores", 16, 20 },
        { TRN_TRN2_48XLARGE, "server", "server_link_bytes_per_s", 128e9, 256e9 },
        { TRN_TRN2_ULTRASERVER, "total", "efa_bits_per_s", 12.8e12, 3.2e12 },
        { TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1152e9, 1280e9 },
        { TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1152e9, 1099511627776.0 },
        { TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1152e9, 704e9 },
        { TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1152e9, 1.2e12 },
        { TRN_TRN3_GEN1_ULTRASERVER, "server", "chips", 16, 4 },
        { TRN_TRN1_2XLARGE, "server", "efa_bits_per_s", 25e9, 12.5e9 },
        { TRN_TRN1_32XLARGE, "total", "dma_chip_peak_bytes_per_s", 870.4e9, 1e12 },
        { TRN_TRN2_48XLARGE, "total", "dma_chip_peak_bytes_per_s", 3481.6e9, 3.5e12 },
        { TRN_TRN3_GEN1_ULTRASERVER, "total", "dma_chip_peak_bytes_per_s", 4915.2e9, 4.9e12 },
        { TRN_TRN3_GEN1_ULTRASERVER, "chip", "f8_flops_per_s", 2517e12, 1258.2912e12 },
        { TRN_TRN3_GEN1_ULTRASERVER, "core", "f8_products", 2, 1 },
        { TRN_TRN1_ULTRACLUSTER, "total", "chips", 30000, 100000 },
        { TRN_PROJECT_RAINIER, "total", "chips", 400000, 500000 },
        { TRN_PROJECT_RAINIER, "total", "chips", 400000, 1000000 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_spec_alternative a;
        bool found = false;
        for (int j = 0; trn_spec_alternative_at(j, &a); j++)
            found = found || (a.system == row[i].system && strcmp(a.chosen.level, row[i].level) == 0 &&
                              strcmp(a.chosen.field, row[i].field) == 0 &&
                              fabs(a.chosen.value - row[i].chosen) <= 1e-9 * row[i].chosen &&
                              fabs(a.value - row[i].other) <= 1e-9 * row[i].other);
        if (!found)
            fail_msg("%s %s: %g against %g is not listed", trn_system_name(row[i].system), row[i].field, row[i].chosen,
                     row[i].other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_names),
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(generations),
        cmocka_unit_test(tile_limits),
        cmocka_unit_test(clocks_and_widths),
        cmocka_unit_test(core_memories),
        cmocka_unit_test(core_peaks),
        cmocka_unit_test(core_rounded_figures),
        cmocka_unit_test(chips),
        cmocka_unit_test(published_totals),
        cmocka_unit_test(dma_rates),
        cmocka_unit_test(neuronlink),
        cmocka_unit_test(tflops),
        cmocka_unit_test(tflops_absent),
        cmocka_unit_test(a_row_of_ones_own),
        cmocka_unit_test(every_field_has_its_source),
        cmocka_unit_test(provenance_names),
        cmocka_unit_test(alternatives),
        cmocka_unit_test(known_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
