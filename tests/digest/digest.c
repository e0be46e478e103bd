/* digest.c - one 64-bit number over the results of everything that computes, to be the same wherever it is compiled.
 * SPDX-License-Identifier: MIT
 *
 *     digest                 prints "section <name> <hash>" for each section, then "digest <hash>", then what ran
 *     digest EXPECTED-FILE   the same, and exits with 1, naming the sections, when the file says otherwise
 *
 * TRN_DIGEST_MODES in the environment, a name of twin/float_modes.h, puts all threads into such modes first: no result
 * may depend on them, and none may be changed.
 *
 * Inputs are integers turned into codes: this file does no floating-point arithmetic of its own, so that contraction
 * and the like can only show through the library. It is C11 and C++17. matrix.sh builds and runs it in every way.
 */
#include <tests/digest/collectives.h>
#include <tests/digest/engines.h>
#include <tests/digest/modes.h>
#include <tests/digest/numbers.h>
#include <tests/digest/products.h>
#include <tests/digest/sparse.h>
#include <tests/twin/float_modes.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

typedef struct section {
    const char *name;
    bool (*run)(void);
} section;

static const section sections[] = {
    { "codecs", codecs },
    { "conversions", conversions },
    { "matmul-formats", matmul_formats },
    { "matmul-shapes", matmul_shapes },
    { "matmul-threads", matmul_threads },
    { "matmul-numerics", matmul_numerics },
    { "matmul-outputs", matmul_outputs },
    { "instructions", instructions },
    { "narrow-conversions", narrow_conversions },
    { "random-words", random_words },
    { "block-scaling", block_scaling },
    { "stochastic-xorwow", stochastic_xorwow },
    { "f8-pairs", f8_pairs },
    { "double-rows", double_rows },
    { "block-scaled-products", block_scaled_products },
    { "bf16-psum", bf16_psum },
    { "int8-products", int8_products },
    { "transposes", transposes },
    { "sparse-products", sparse_products },
    { "activations", activations },
    { "elementwise", elementwise },
    { "two-operators", two_operators },
    { "reductions-scans", reductions },
    { "statistics", statistics },
    { "searches", searches },
    { "gpsimd", gpsimd },
    { "transfers", transfers },
    { "collectives", collectives },
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

/* The line of `file` that starts with `prefix`, or "". Lines that start with # are comments. */
static const char *line_of(FILE *file, const char *prefix)
{
    static char line[256];
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, prefix, strlen(prefix)) == 0) return line;
    }
    return "";
}

static bool told(FILE *expected, const char *line)
{
    char prefix[64];
    puts(line);
    if (!expected) return true;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(strrchr(line, ' ') - line + 1), line);
    const char *want = line_of(expected, prefix);
    if (strcmp(line, want) == 0) return true;
    fprintf(stderr, "digest: got \"%s\", expected \"%s\"\n", line, want);
    return false;
}

int main(int argc, char **argv)
{
    FILE *expected = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (argc > 1 && !expected) {
        fprintf(stderr, "digest: cannot read %s\n", argv[1]);
        return 2;
    }
    const char *named = getenv("TRN_DIGEST_MODES");
    const float_modes *modes = float_modes_named(named);
    if (named && !modes) {
        fprintf(stderr, "digest: TRN_DIGEST_MODES is %s, which twin/float_modes.h does not have\n", named);
        return 2;
    }
    float_modes_set_all(modes);
    const uint64_t before = float_modes_now();
    uint64_t total[SECTIONS];
    bool same = true;
    char line[128];
    for (int i = 0; i < SECTIONS; i++) {
        hash_start();
        generator = 0x9e3779b97f4a7c15u + (uint64_t)i;
        if (!sections[i].run()) return 2;
        total[i] = hash;
        snprintf(line, sizeof line, "section %s %016llx", sections[i].name, (unsigned long long)hash);
        same = told(expected, line) && same;
    }
    hash_start();
    hash_bytes(total, sizeof total);
    snprintf(line, sizeof line, "digest %016llx", (unsigned long long)hash);
    same = told(expected, line) && same;

#if defined(_OPENMP)
    printf("ran %s threads %d\n", trn_isa_name(), omp_get_max_threads());
#else
    printf("ran %s threads 0\n", trn_isa_name());
#endif
    if (float_modes_now() != before) {
        fprintf(stderr, "digest: the modes of floating point are others than before\n");
        same = false;
    }
    if (expected) fclose(expected);
    return same ? 0 : 1;
}
