/* base/hosts.c - which instruction sets a processor is taken to have, for processors that are made up here, and what
 * this one is asked.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: this host is one. Bits are those of Intel's and AMD's manuals: leaf 1 ECX, leaf 7 EBX, ECX and EDX,
 * and XCR0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trnmath/trn_cpu.h"
#include "unit/base/groups.h"

#if TRNI_X86
#include <cpuid.h>

static const uint32_t FMA = 1u << 12, OSXSAVE = 1u << 27, AVX = 1u << 28, F16C = 1u << 29;
static const uint32_t AVX2 = 1u << 5, F = 1u << 16, DQ = 1u << 17, BW = 1u << 30, VL = 1u << 31;
static const uint32_t VNNI = 1u << 11, AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25;
static const uint32_t TILES = 3u << 17;

/* One that has all of it. */
static trni_host everything(void)
{
    trni_host h;
    memset(&h, 0, sizeof h);
    h.leaf0[0] = 7;
    h.leaf1[2] = FMA | OSXSAVE | AVX | F16C;
    h.leaf7[0] = 1;
    h.leaf7[1] = AVX2 | F | DQ | BW | VL;
    h.leaf7[2] = VNNI;
    h.leaf7[3] = AMX_BF16 | AMX_TILE | AMX_INT8;
    h.leaf7_1[0] = 1u << 5;
    h.saved = 0xe7 | TILES;
    return h;
}

typedef struct answer {
    bool avx2, avx512, dots, bf16, tiles;
} answer;

static answer about(const trni_host *h)
{
    answer a;
    a.avx2 = trni_host_has(h, TRN_ISA_AVX2);
    a.avx512 = trni_host_has(h, TRN_ISA_AVX512);
    a.dots = trni_host_has_dots(h);
    a.bf16 = trni_host_has(h, TRN_ISA_AVX512_BF16);
    a.tiles = trni_host_has(h, TRN_ISA_AMX);
    return a;
}

static void same(const trni_host *h, answer expected, size_t row)
{
    const answer a = about(h);
    if (a.avx2 != expected.avx2 || a.avx512 != expected.avx512 || a.dots != expected.dots || a.bf16 != expected.bf16 ||
        a.tiles != expected.tiles)
        fail_msg("row %zu: %d %d %d %d %d", row, a.avx2, a.avx512, a.dots, a.bf16, a.tiles);
}

/* One bit less each: what needs it is gone, and nothing else. */
static void every_bit_counts(void **state)
{
    (void)state;
    trni_host h = everything();
    const struct {
        uint32_t *at, bits;
        answer left;
    } row[] = {
        { &h.leaf1[2], FMA, { false, false, true, true, true } },
        { &h.leaf1[2], AVX, { false, false, true, true, true } },
        { &h.leaf1[2], F16C, { false, false, true, true, true } },
        { &h.leaf7[1], AVX2, { false, false, true, true, true } },
        { &h.leaf7[1], F, { true, false, true, true, true } },
        { &h.leaf7[1], DQ, { true, false, true, true, true } },
        { &h.leaf7[1], BW, { true, false, true, true, true } },
        { &h.leaf7[1], VL, { true, false, true, true, true } },
        { &h.saved, 0x02, { false, false, true, true, true } },
        { &h.saved, 0x04, { false, false, true, true, true } },
        { &h.saved, 0x20, { true, false, true, true, true } },
        { &h.saved, 0x40, { true, false, true, true, true } },
        { &h.saved, 0x80, { true, false, true, true, true } },
        { &h.saved, 1u << 17, { true, true, true, true, false } },
        { &h.saved, 1u << 18, { true, true, true, true, false } },
        { &h.leaf7[2], VNNI, { true, true, false, true, true } },
        { &h.leaf7[3], AMX_BF16, { true, true, true, true, false } },
        { &h.leaf7[3], AMX_TILE, { true, true, true, true, false } },
        { &h.leaf7[3], AMX_INT8, { true, true, true, true, false } },
        { &h.leaf7[0], 1, { true, true, true, false, true } },
        { &h.leaf7_1[0], 1u << 5, { true, true, true, false, true } },
        { &h.leaf0[0], 1, { false, false, true, true, true } }, /* leaf 6 is the last */
    };
    same(&h, (answer){ true, true, true, true, true }, 99);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        h = everything();
        assert_int_equal(*row[i].at & row[i].bits, row[i].bits);
        *row[i].at &= ~row[i].bits;
        same(&h, row[i].left, i);
    }
}

/* Everything but what is asked for may be there: it does not stand for it. */
static void no_other_bit_counts(void **state)
{
    (void)state;
    trni_host h;
    memset(&h, 0xff, sizeof h);
    h.leaf1[2] &= ~AVX;
    h.leaf7[1] &= ~AVX2;
    h.leaf7[2] &= ~VNNI;
    h.leaf7[3] &= ~AMX_TILE;
    h.leaf7_1[0] &= ~(1u << 5);
    same(&h, (answer){ false, false, false, false, false }, 0);
    memset(&h, 0, sizeof h);
    same(&h, (answer){ false, false, false, false, false }, 1);
    h = everything(); /* with later leaves, of whichever maker */
    h.leaf0[0] = 0x20, h.leaf0[1] = 1;
    same(&h, (answer){ true, true, true, true, true }, 2);
}

/* Both runners arrive, and nothing that was in registers is lost on the way. */
static void the_race_is_run(void **state)
{
    (void)state;
#if !defined(TRN_NO_INTRINSICS)
    volatile float kept[16];
    float sum[16];
    for (int i = 0; i < 16; i++) kept[i] = (float)i;
    for (int i = 0; i < 16; i++) sum[i] = kept[i] + 1;
    if (!trn_isa_supported(TRN_ISA_AVX512_BF16)) return;
    assert_true(trni_race_pairs() > 0 && trni_race_multiply_adds() > 0);
    (void)trni_host_pairs_pay();
    for (int i = 0; i < 16; i++) assert_true(sum[i] == (float)(i + 1));
#endif
}

/* This host is asked for all of it, whatever lay there before; the compiler's own header has the last word. */
static void every_leaf_is_asked_for(void **state)
{
    (void)state;
    static const int before[] = { 0, 0xff };
    for (int i = 0; i < 2; i++) {
        trni_host h;
        uint32_t r[4];
        memset(&h, before[i], sizeof h);
        trni_host_ask(&h);
        __cpuid_count(0, 0, r[0], r[1], r[2], r[3]);
        assert_memory_equal(h.leaf0, r, sizeof r);
        __cpuid_count(1, 0, r[0], r[1], r[2], r[3]); /* EBX: which processor of several it is */
        assert_int_equal(h.leaf1[0], r[0]);
        assert_int_equal(h.leaf1[2], r[2]);
        __cpuid_count(7, 0, r[0], r[1], r[2], r[3]);
        assert_memory_equal(h.leaf7, r, sizeof r);
        __cpuid_count(7, 1, r[0], r[1], r[2], r[3]);
        assert_memory_equal(h.leaf7_1, r, sizeof r);
        assert_int_equal(h.saved, h.leaf1[2] & OSXSAVE ? trni_saved_state() : 0);
    }
}

#else

static void the_race_is_run(void **state) { (void)state; }
static void every_bit_counts(void **state) { (void)state; }
static void no_other_bit_counts(void **state) { (void)state; }
static void every_leaf_is_asked_for(void **state) { (void)state; }

#endif

int base_hosts(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_bit_counts), cmocka_unit_test(no_other_bit_counts),
                                        cmocka_unit_test(every_leaf_is_asked_for), cmocka_unit_test(the_race_is_run) };
    return cmocka_run_group_tests_name("base_hosts", tests, NULL, NULL);
}
