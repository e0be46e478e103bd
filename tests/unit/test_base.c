/* test_base.c - the ground: statuses, error sentences, the float guard at run time, and the choice of instruction set.
 * SPDX-License-Identifier: MIT
 *
 * What only shows in a fresh process (the environment's TRN_ISA is read once) is asked of this program itself, started
 * again with a question as its argument. Which bits of trn_fp_check() which compiler flag raises is
 * tests/house/fp_check.sh.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fenv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trnmath/trn_convert.h"
#include "unit/base/groups.h"

static char self[4096]; /* this program's file */

/* ---- version ---- */

static void the_version_is_its_three_numbers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", TRN_VERSION_MAJOR, TRN_VERSION_MINOR, TRN_VERSION_PATCH);
    assert_string_equal(trn_version(), text);
    assert_string_equal(trn_version(), TRN_VERSION);
}

/* ---- statuses and errors ---- */

static void statuses_have_the_documented_order(void **state)
{
    (void)state;
    const trn_status order[] = { TRN_OK,     TRN_EINVAL, TRN_ESHAPE,       TRN_EFORMAT,
                                 TRN_ELIMIT, TRN_ENOSPC, TRN_EUNSUPPORTED, TRN_EIO };
    for (int i = 0; i < 8; i++) assert_int_equal(order[i], i);
}

static void every_status_has_its_own_text(void **state)
{
    (void)state;
    for (int i = TRN_OK; i <= TRN_EIO; i++) {
        assert_true(strlen(trn_status_text((trn_status)i)) > 1);
        for (int j = TRN_OK; j < i; j++)
            assert_string_not_equal(trn_status_text((trn_status)i), trn_status_text((trn_status)j));
    }
    assert_string_equal(trn_status_text((trn_status)(TRN_EIO + 1)), "an unknown status");
    assert_string_equal(trn_status_text((trn_status)-1), "an unknown status");
}

static void a_failure_fills_the_error(void **state)
{
    (void)state;
    trn_error error = { TRN_OK, "as it was" };
    assert_int_equal(trni_fail(&error, TRN_ELIMIT, "moving free size %d exceeds %d", 600, 512), TRN_ELIMIT);
    assert_int_equal(error.status, TRN_ELIMIT);
    assert_string_equal(error.text, "moving free size 600 exceeds 512");
    assert_int_equal(trni_fail(NULL, TRN_EIO, "nobody reads %s", "this"), TRN_EIO);
}

static void a_long_sentence_is_cut_not_overrun(void **state)
{
    (void)state;
    struct {
        trn_error error;
        char after[16];
    } room;
    memset(&room, 0x5a, sizeof room);
    trni_fail(&room.error, TRN_EINVAL, "%0400d", 7);
    assert_int_equal(strlen(room.error.text), sizeof room.error.text - 1);
    for (size_t i = 0; i < sizeof room.after; i++) assert_int_equal(room.after[i], 0x5a);
}

/* ---- the float guard ---- */

/* clang may contract where the processor can (aarch64 always can); that bit is harmless to the library's results, and
 * stays what it is whatever else goes wrong. */
static unsigned contraction;

static void nothing_is_wrong_here(void **state)
{
    (void)state;
    contraction = trn_fp_check() & TRN_FP_CONTRACTION;
    assert_int_equal(trn_fp_check(), contraction);
}

/* What lay on the stack before plays no part: large numbers, and none. */
__attribute__((noinline)) static void litter(int byte)
{
    volatile unsigned char room[4096];
    for (size_t i = 0; i < sizeof room; i++) room[i] = (unsigned char)byte;
}

static void what_was_on_the_stack_is_not_looked_at(void **state)
{
    (void)state;
    const int byte[] = { 0x7f, 0xff, 0x42 };
    for (int i = 0; i < 3; i++) {
        litter(byte[i]);
        assert_int_equal(trn_fp_check(), contraction);
    }
}

static void each_rounding_mode_is_seen(void **state)
{
    (void)state;
    const int mode[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(mode[i]), 0);
        const unsigned bits = trn_fp_check();
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_int_equal(bits, TRN_FP_ROUNDING | contraction);
    }
    assert_int_equal(trn_fp_check(), contraction);
}

#if defined(__x86_64__)
static unsigned with_control_bits(unsigned bits)
{
    unsigned before, during;
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    during = before | bits;
    __asm__ volatile("ldmxcsr %0" : : "m"(during));
    const unsigned result = trn_fp_check();
    __asm__ volatile("ldmxcsr %0" : : "m"(before));
    return result & ~contraction;
}

static void ftz_and_daz_are_seen_apart(void **state)
{
    (void)state;
    enum { daz = 1 << 6, ftz = 1 << 15 };
    assert_int_equal(with_control_bits(0), 0);
    assert_int_equal(with_control_bits(ftz), TRN_FP_FTZ);
    assert_int_equal(with_control_bits(daz), TRN_FP_DAZ);
    assert_int_equal(with_control_bits(ftz | daz), TRN_FP_FTZ | TRN_FP_DAZ);
}
#elif defined(__aarch64__)
static void ftz_and_daz_are_seen_apart(void **state) /* one bit, FPCR.FZ, does both on this machine */
{
    (void)state;
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | 1u << 24));
    const unsigned result = trn_fp_check();
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
    assert_int_equal(result & ~contraction, TRN_FP_FTZ | TRN_FP_DAZ);
}
#endif

static void every_bit_has_its_own_text(void **state)
{
    (void)state;
    const unsigned bit[] = { TRN_FP_FTZ,         TRN_FP_DAZ,           TRN_FP_ROUNDING,
                             TRN_FP_CONTRACTION, TRN_FP_REASSOCIATION, TRN_FP_FINITE_ONLY };
    assert_string_equal(trn_fp_check_text(0), "floating point behaves");
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(bit[i], 1u << i);
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(trn_fp_check_text(bit[i]), trn_fp_check_text(bit[j]));
            assert_string_equal(trn_fp_check_text(bit[i] | bit[j]), trn_fp_check_text(bit[j]));
        }
    }
}

/* ---- the instruction set ---- */

static void names_go_there_and_back(void **state)
{
    (void)state;
    for (int i = TRN_ISA_AUTO; i < TRN_ISA_COUNT; i++) assert_int_equal(trn_isa_from_name(trn_isa_text((trn_isa)i)), i);
    assert_int_equal(trn_isa_from_name("AVX2"), TRN_ISA_COUNT);
    assert_int_equal(trn_isa_from_name(""), TRN_ISA_COUNT);
    assert_string_equal(trn_isa_text(TRN_ISA_COUNT), "unknown");
    assert_string_equal(trn_isa_text((trn_isa)-1), "unknown");
}

/* The second opinion: what the kernel says of the processor. */
static bool cpuinfo_has(const char *flag)
{
    static char line[1 << 16];
    bool has = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return false;
    while (!has && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) != 0) continue;
        for (const char *word = strtok(line, " \t\n:"); word && !has; word = strtok(NULL, " \t\n:"))
            has = strcmp(word, flag) == 0;
        break;
    }
    fclose(file);
    return has;
}

static bool expected(trn_isa isa)
{
    const bool avx2 = cpuinfo_has("avx2") && cpuinfo_has("fma") && cpuinfo_has("f16c");
    switch (isa) {
    case TRN_ISA_PORTABLE: return true;
    case TRN_ISA_AVX2: return avx2;
    case TRN_ISA_AVX512:
        return avx2 && cpuinfo_has("avx512f") && cpuinfo_has("avx512bw") && cpuinfo_has("avx512dq") &&
               cpuinfo_has("avx512vl");
    case TRN_ISA_AVX512_BF16: return expected(TRN_ISA_AVX512) && cpuinfo_has("avx512_bf16");
    case TRN_ISA_AMX: /* Linux shows them where a process may ask for them */
        return expected(TRN_ISA_AVX512) && cpuinfo_has("amx_tile") && cpuinfo_has("amx_bf16") &&
               cpuinfo_has("amx_int8");
    case TRN_ISA_AMX_EMULATED:
    case TRN_ISA_PAIRS_EMULATED: return true;
#if defined(__aarch64__)
    case TRN_ISA_NEON: return true;
#endif
    default: return false;
    }
}

static const char *best(void)
{
    const trn_isa order[] = { TRN_ISA_AVX512, TRN_ISA_AVX2, TRN_ISA_NEON };
    for (int i = 0; i < 3; i++)
        if (expected(order[i])) return trn_isa_text(order[i]);
    return "portable";
}

static void the_kernel_agrees_with_what_is_detected(void **state)
{
    (void)state;
    for (int i = TRN_ISA_AUTO; i <= TRN_ISA_COUNT; i++)
        assert_int_equal(trn_isa_supported((trn_isa)i), expected((trn_isa)i));
    assert_false(trn_isa_supported((trn_isa)-1));
}

/* What a call with this .isa says, and whether it wrote. */
static trn_status convert_with(trn_isa isa, uint16_t *out, trn_error *error)
{
    float one = 1.0f;
    const trn_convert_args args = {
        .dst = trn_tensor_1d(TRN_BF16, out, 1), .src = trn_tensor_1d(TRN_F32, &one, 1), .isa = isa, .error = error
    };
    return trn_convert(&args);
}

static void the_argument_decides(void **state)
{
    (void)state;
    for (int i = TRN_ISA_PORTABLE; i <= TRN_ISA_COUNT; i++) {
        uint16_t out = 0xabcd;
        trn_error error = { TRN_EIO, "as it was" };
        const trn_status status = convert_with((trn_isa)i, &out, &error);
        if (expected((trn_isa)i)) {
            assert_int_equal(status, TRN_OK);
            assert_int_equal(out, 0x3f80);
            assert_int_equal(error.status, TRN_EIO);
            assert_string_equal(error.text, "as it was");
        } else {
            assert_int_equal(status, TRN_EUNSUPPORTED);
            assert_int_equal(out, 0xabcd);
            assert_int_equal(error.status, TRN_EUNSUPPORTED);
            assert_non_null(strstr(error.text, trn_isa_text((trn_isa)i)));
        }
    }
}

/* ---- the environment, in fresh processes ---- */

/* Answers on stdout: what runs, and what calls with .isa = 0 and with .isa = portable say. */
static int answer(void)
{
    uint16_t out = 0xabcd, explicit_out = 0xabcd;
    trn_error error = { TRN_OK, "" };
    const trn_status status = convert_with(TRN_ISA_AUTO, &out, &error);
    const trn_status explicit_status = convert_with(TRN_ISA_PORTABLE, &explicit_out, NULL);
    printf("%s %d %04x %d %04x|%s\n", trn_isa_name(), (int)status, out, (int)explicit_status, explicit_out, error.text);
    return 0;
}

/* The answer of a process started with TRN_ISA=value; NULL: without TRN_ISA. */
static const char *ask(const char *value)
{
    static char line[1024];
    char command[sizeof self + 128];
    if (value)
        snprintf(command, sizeof command, "TRN_ISA='%s' '%s' --answer", value, self);
    else
        snprintf(command, sizeof command, "unset TRN_ISA; '%s' --answer", self);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    line[0] = 0;
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_int_equal(pclose(pipe), 0);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static void the_environment_is_obeyed(void **state)
{
    (void)state;
    char want[1024];
    const char *const automatic[] = { NULL, "", "auto" };
    for (int i = 0; i < 3; i++) {
        snprintf(want, sizeof want, "%s 0 3f80 0 3f80|", best());
        assert_string_equal(ask(automatic[i]), want);
    }
    for (int i = TRN_ISA_PORTABLE; i < TRN_ISA_COUNT; i++) {
        const char *name = trn_isa_text((trn_isa)i);
        if (!expected((trn_isa)i)) continue;
        snprintf(want, sizeof want, "%s 0 3f80 0 3f80|", name);
        assert_string_equal(ask(name), want);
    }
}

/* Unknown or missing here: never quietly ignored, nothing written, the name is in the sentence; an explicit .isa
 * works. */
static void a_wrong_environment_is_an_error(void **state)
{
    (void)state;
    char want[1024];
    const char *wrong[4 + TRN_ISA_COUNT] = { "bogus", "AVX512", "count", "unknown" };
    int count = 4;
    for (int i = TRN_ISA_PORTABLE; i < TRN_ISA_COUNT; i++)
        if (!expected((trn_isa)i)) wrong[count++] = trn_isa_text((trn_isa)i);
    for (int i = 0; i < count; i++) {
        snprintf(want, sizeof want, "unsupported %d abcd 0 3f80|", TRN_EUNSUPPORTED);
        const char *got = ask(wrong[i]);
        assert_memory_equal(got, want, strlen(want));
        snprintf(want, sizeof want, "TRN_ISA=%s ", wrong[i]);
        assert_non_null(strstr(got, want));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--answer") == 0) return answer();
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        fprintf(stderr, "test_base: /proc/self/exe cannot be read, so this program cannot start itself\n");
        return 1;
    }
    unsetenv("TRN_ISA"); /* before the first call: what follows is about this host, not about who runs the test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_its_three_numbers),
        cmocka_unit_test(statuses_have_the_documented_order),
        cmocka_unit_test(every_status_has_its_own_text),
        cmocka_unit_test(a_failure_fills_the_error),
        cmocka_unit_test(a_long_sentence_is_cut_not_overrun),
        cmocka_unit_test(nothing_is_wrong_here),
        cmocka_unit_test(what_was_on_the_stack_is_not_looked_at),
        cmocka_unit_test(each_rounding_mode_is_seen),
        cmocka_unit_test(ftz_and_daz_are_seen_apart),
        cmocka_unit_test(every_bit_has_its_own_text),
        cmocka_unit_test(names_go_there_and_back),
        cmocka_unit_test(the_kernel_agrees_with_what_is_detected),
        cmocka_unit_test(the_argument_decides),
        cmocka_unit_test(the_environment_is_obeyed),
        cmocka_unit_test(a_wrong_environment_is_an_error),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL) + base_parse() + base_workspace() + base_hosts() +
           base_fit();
}
