/* test_convert_calls.c - trn_convert as a call: the same bits for any threads, ISA and float modes; what it refuses.
 * SPDX-License-Identifier: MIT
 */
#include "twin/convert.h"

/* ---- same bits everywhere ---- */

/* Thread counts and instruction sets, on arrays large enough for threads and, the last ones, for streaming stores. */
static void same_bits_for_any_threads_and_isa(void **state)
{
    (void)state;
    static const struct {
        int to, from;
        trn_rounding rounding;
        int bits;
        int64_t n;
        bool transposed;
    } list[] = {
        { BF16, F32, TRN_NEAREST_EVEN, 0, 300007, false },   { F16, F32, TRN_NEAREST_EVEN, 0, 300007, false },
        { TF32, F32, TRN_NEAREST_EVEN, 0, 300007, false },   { F32, BF16, TRN_NEAREST_EVEN, 0, 300007, false },
        { F32, F16, TRN_NEAREST_EVEN, 0, 300007, false },    { F32, TF32, TRN_NEAREST_EVEN, 0, 300007, false },
        { F16, BF16, TRN_NEAREST_EVEN, 0, 300007, false },   { BF16, F32, TRN_STOCHASTIC, 0, 300007, false },
        { BF16, F32, TRN_STOCHASTIC, 16, 300007, false },    { BF16, F32, TRN_STOCHASTIC, 8, 300007, false },
        { TF32, F32, TRN_STOCHASTIC, 5, 300007, false },     { F16, F32, TRN_STOCHASTIC, 21, 200003, false },
        { BF16, F32, TRN_NEAREST_EVEN, 0, 401 * 701, true }, { BF16, F32, TRN_STOCHASTIC, 0, 401 * 701, true },
        { BF16, F32, TRN_NEAREST_EVEN, 0, 4500001, false },  { F32, F16, TRN_NEAREST_EVEN, 0, 2500001, false },
        { BF16, F32, TRN_STOCHASTIC, 0, 4500001, false },    { E4M3, F32, TRN_NEAREST_EVEN, 0, 300007, false },
        { E4M3, F32, TRN_STOCHASTIC, 0, 300007, false },     { E5M2, E4M3, TRN_NEAREST_EVEN, 0, 300007, false },
        { F32, E4M3, TRN_NEAREST_EVEN, 0, 2500001, false },  { E4M3, BF16, TRN_NEAREST_EVEN, 0, 8500001, false },
        { I8, F32, TRN_NEAREST_EVEN, 0, 300007, false },     { E5M2, F32, TRN_TOWARD_ZERO, 0, 401 * 701, true },
    };
    static const int threads[] = { 1, 2, 3, 7 }, offset[] = { 0, 2, 1, 3 };
    static unsigned char in[4500001 * 4], out[4500001 * 4 + 8];
    uint64_t rng = 40;
    for (int64_t i = 0; i < 4500001; i++) store(in + 4 * i, 4, cases_float(&rng));
    for (int c = 0; c < COUNT(list); c++) {
        uint64_t first = 0;
        for (int i = 0; i < COUNT(all_isas); i++)
            for (int t = 0; t < COUNT(threads); t++) {
                const kind *to = &kinds[list[c].to], *from = &kinds[list[c].from];
                unsigned char *y = out + offset[t]; /* not always at the start of a line, or of an element */
                trn_convert_args a = arguments(to, y, from, in, list[c].n);
                if (!trn_isa_supported(all_isas[i])) continue;
                if (list[c].transposed) {
                    a.dst = trn_tensor_2d(to->format, y, 401, 701);
                    a.src = trn_tensor_transposed(trn_tensor_2d(from->format, in, 701, 401));
                }
                a.isa = all_isas[i];
                a.rounding = list[c].rounding;
                a.sr_bits = list[c].bits;
                with_threads(threads[t]);
                memset(out, 0xee, (size_t)(list[c].n * to->bytes) + 8);
                must(a);
                const uint64_t found = digest(y, (size_t)(list[c].n * to->bytes));
                if (first == 0) {
                    first = found;
                    if (!list[c].transposed) check_row(&a, to, y, from, in, list[c].n, 7);
                } else if (found != first) {
                    fail_msg("case %d: isa %s with %d threads gives other bits", c, trn_isa_text(a.isa), threads[t]);
                }
                for (size_t b = (size_t)(y - out) + (size_t)(list[c].n * to->bytes), end = b + 4; b < end; b++)
                    assert_int_equal(out[b], 0xee);
            }
        with_threads(1);
    }
#if !defined(_OPENMP)
    print_message("compiled without OpenMP: one thread only\n");
#endif
}

/* The process may have set a rounding mode, or flush subnormals: the codecs are integers, the kernels exact. */
static void the_floating_point_environment_does_not_matter(void **state)
{
    (void)state;
    static const int float_kinds[] = { F32, TF32, BF16, F16 };
    static unsigned char in[40000], out[40000], plain[40000];
    const int64_t n = 10000;
    uint64_t rng = 41;
    for (int f = 0; f < 4; f++)
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < COUNT(all_isas); i++)
                for (int m = 0; m < ENVIRONMENTS; m++) {
                    const kind *to = &kinds[float_kinds[t]], *from = &kinds[float_kinds[f]];
                    trn_convert_args a = arguments(to, out, from, in, n);
                    if (!trn_isa_supported(all_isas[i])) continue;
                    a.isa = all_isas[i];
                    if (m == 0) fill_random(from, in, n, &rng);
                    host_enter(m);
                    const trn_status status = trn_convert(&a);
                    host_leave();
                    assert_int_equal(status, TRN_OK);
                    const size_t bytes = (size_t)(n * to->bytes);
                    if (m == 0)
                        memcpy(plain, out, bytes);
                    else if (memcmp(plain, out, bytes) != 0)
                        fail_msg("%s to %s, isa %s: the environment %d changes the bits", from->name, to->name,
                                 trn_isa_text(a.isa), m);
                }
}

/* ---- refusals ---- */

static unsigned char memory[256];

static void refuse(trn_convert_args a, trn_status status, const char *words)
{
    unsigned char before[sizeof memory];
    trn_error error = { TRN_OK, "" };
    memcpy(before, memory, sizeof memory);
    a.error = &error;
    const trn_status found = trn_convert(&a);
    if (found != status || error.status != status || !strstr(error.text, words))
        fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, words, (int)found, error.text);
    a.error = NULL;
    assert_int_equal(trn_convert(&a), status);
    assert_memory_equal(before, memory, sizeof memory); /* nothing is written */
}

static trn_convert_args good(void)
{
    trn_convert_args a = arguments(&kinds[BF16], memory, &kinds[F32], memory + 128, 1);
    a.dst = trn_tensor_2d(TRN_BF16, memory, 4, 4);
    a.src = trn_tensor_2d(TRN_F32, memory + 128, 4, 4);
    return a;
}

static void wrong_calls_are_refused_and_write_nothing(void **state)
{
    (void)state;
    uint64_t rng = 50;
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)cases_u32(&rng);
    assert_int_equal(trn_convert(NULL), TRN_EINVAL);
    trn_convert_args a = good();
    a.dst.shape[1] = 5, refuse(a, TRN_ESHAPE, "5 on axis 1 but src has 4");
    a = good(), a.src.rank = 1, refuse(a, TRN_ESHAPE, "rank 2 but src has rank 1");
    a = good(), a.dst.rank = 0, refuse(a, TRN_ESHAPE, "dst has rank 0, expected 1 to 6");
    a = good(), a.src.rank = 7, refuse(a, TRN_ESHAPE, "src has rank 7");
    a = good(), a.dst.format = TRN_FORMAT_UNSET, refuse(a, TRN_EFORMAT, "dst");
    a = good(), a.src.format = (trn_format)99, refuse(a, TRN_EFORMAT, "src");
    a = good(), a.dst.data = NULL, refuse(a, TRN_EINVAL, "dst");
    a = good(), a.src.data = NULL, refuse(a, TRN_EINVAL, "src");
    a = good(), a.src.stride[0] = -4, a.src.stride[1] = 1, refuse(a, TRN_ESHAPE, "negative stride");
    a = good(), a.dst.stride[0] = 4, refuse(a, TRN_ESHAPE, "dst has stride 0 on axis 1");
    a = good(), a.dst.stride[0] = 2, a.dst.stride[1] = 1, refuse(a, TRN_ESHAPE, "same memory");
    a = good(), a.dst.shape[0] = a.src.shape[0] = INT64_MAX, refuse(a, TRN_ESHAPE, "spans more");
    a = good(), a.sr_bits = -1, refuse(a, TRN_EINVAL, "sr_bits is -1");
    a = good(), a.sr_bits = 33, refuse(a, TRN_EINVAL, "sr_bits is 33");
    a = good(), a.rounding = (trn_rounding)6, refuse(a, TRN_EINVAL, "rounding 6");
    a = good(), a.rounding = (trn_rounding)-1, refuse(a, TRN_EINVAL, "rounding -1");
    a = good(), a.overflow = (trn_overflow)2, refuse(a, TRN_EINVAL, "overflow 2");
    a = good(), a.isa = (trn_isa)99, refuse(a, TRN_EUNSUPPORTED, "99");
    a = good(), a.isa = (trn_isa)-1, refuse(a, TRN_EUNSUPPORTED, "-1");
    a = good(), a.dst.format = TRN_CFP8, a.dst.cfp8.exponent_bits = 6;
    refuse(a, TRN_EFORMAT, "dst is cfp8 with 6");
    a = good(), a.src.format = TRN_CFP8, a.src.cfp8.exponent_bits = 4, a.src.cfp8.bias = 125;
    refuse(a, TRN_EFORMAT, "bias 125");
    static trn_xorwow_vector g; /* all zero: never seeded */
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "xorwow was never seeded");
    memset(&g, 0xff, sizeof g);
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "xorwow is no state");
    trn_xorwow_vector_seed(&g, 1);
    g.row[0][5] = g.row[1][5] = g.row[2][5] = g.row[3][5] = g.row[4][5] = 0;
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "lane 1, state 1");
    a = good(), a.xorwow = (trn_xorwow_vector *)a.dst.data, refuse(a, TRN_EINVAL, "dst overlaps the generator");
    for (int i = 0; i < COUNT(all_isas); i++)
        if (!trn_isa_supported(all_isas[i])) a = good(), a.isa = all_isas[i], refuse(a, TRN_EUNSUPPORTED, "isa");
}

static void overlaps_are_refused_unless_in_place(void **state)
{
    (void)state;
    trn_convert_args a = good();
    a.src.data = memory + 4, refuse(a, TRN_EINVAL, "overlaps");         /* shifted */
    a = good(), a.src.data = memory, refuse(a, TRN_EINVAL, "overlaps"); /* another element size */
    a = good(), a.src.format = TRN_F16, a.src.data = memory + 1, refuse(a, TRN_EINVAL, "overlaps"); /* half */
    a = good(), a.src.format = TRN_F16, a.src.data = memory;
    a.src = trn_tensor_transposed(a.src), refuse(a, TRN_EINVAL, "overlaps"); /* the same bytes in another order */
    a = good(), a.src.format = TRN_BF16, a.src.data = memory + 2, refuse(a, TRN_EINVAL, "overlaps"); /* a copy, too */
    a = good(), a.src.format = TRN_F16, a.src.data = memory;
    must(a);
    a.src.stride[0] = 4, a.src.stride[1] = 1; /* packed, said in another way */
    must(a);
    /* even and odd columns of one matrix lie between each other and share nothing */
    a = arguments(&kinds[F16], memory, &kinds[BF16], memory + 2, 1);
    a.dst = trn_tensor_2d(TRN_F16, memory, 8, 8);
    a.src = trn_tensor_2d(TRN_BF16, memory + 2, 8, 8);
    a.dst.stride[0] = a.src.stride[0] = 16;
    a.dst.stride[1] = a.src.stride[1] = 2;
    must(a);
}

static void empty_arrays_are_legal(void **state)
{
    (void)state;
    trn_convert_args a = arguments(&kinds[BF16], NULL, &kinds[F32], NULL, 0);
    must(a);
    a = good(), a.dst.shape[0] = a.src.shape[0] = 0;
    a.dst.data = a.src.data = NULL;
    must(a);
    a.src.shape[1] = 3, refuse(a, TRN_ESHAPE, "axis 1"); /* still checked */
    a.src.shape[1] = 4, a.sr_bits = 40, refuse(a, TRN_EINVAL, "sr_bits");
    a = good(), a.dst.shape[1] = a.src.shape[1] = 0; /* data given, but not touched */
    unsigned char before[sizeof memory];
    memcpy(before, memory, sizeof memory);
    must(a);
    assert_memory_equal(before, memory, sizeof memory);
}

/* What goes past the cache says so: only where there is a kernel that can, which some hosts do not have. */
static void past_the_cache(void **state)
{
    (void)state;
    static const uint16_t bf16[64] = { 0x3f80, 0x4000, 0xc040 };
    static TRNI_LINES(uint32_t) f32[64];
    trni_convert_plan p;
    memset(&p, 0, sizeof p);
    trni_decoder_init(&p.decoder, trn_format_info_of(TRN_BF16), TRN_ISA_AUTO);
    assert_false(trni_convert_past(&p, (char *)f32, (const char *)bf16, 64)); /* neither decodes nor encodes */
    assert_true(f32[0] == 0);
    p.decodes = true;
    const bool done = trni_convert_past(&p, (char *)f32, (const char *)bf16, 64);
    assert_int_equal(done, p.decoder.lookup_past != NULL);
    assert_true(f32[0] == (done ? 0x3f800000u : 0) && f32[2] == (done ? 0xc0400000u : 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_threads_and_isa),
        cmocka_unit_test(the_floating_point_environment_does_not_matter),
        cmocka_unit_test(wrong_calls_are_refused_and_write_nothing),
        cmocka_unit_test(overlaps_are_refused_unless_in_place),
        cmocka_unit_test(empty_arrays_are_legal),
        cmocka_unit_test(past_the_cache),
    };
    return cmocka_run_group_tests_name("convert_calls", tests, NULL, NULL);
}
