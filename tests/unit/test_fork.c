/* A process that has used all of its threads forks: the child computes the same bits, on one thread, and ends.
 * SPDX-License-Identifier: MIT
 */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trnmath/trnmath.h>

enum { N = 512, RANKS = 16, GIVEN_UP_S = 120 };

/* ---- what each process does ---- */

static float a[N * N], b[N * N], c[N * N], part[RANKS][N * 8];

static void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) x[i] = (float)(int)((seed = seed * 1664525u + 1013904223u) >> 16) / 65536.0f - 0.5f;
}

/* One of each kind of parallel region: blocks, tiles, tasks, panels, spans, devices. */
static trn_status product(void)
{
    return trn_matmul(&(trn_matmul_args){ .a = trn_tensor_2d(TRN_F32, a, N, N),
                                          .b = trn_tensor_2d(TRN_F32, b, N, N),
                                          .dst = trn_tensor_2d(TRN_F32, c, N, N) });
}

static trn_status conversion(void)
{
    return trn_convert(
        &(trn_convert_args){ .dst = trn_tensor_1d(TRN_BF16, c, N * N), .src = trn_tensor_1d(TRN_F32, a, N * N) });
}

static trn_status block_scaling(void)
{
    return trn_mx_quantize(&(trn_mx_quantize_args){ .src = trn_tensor_2d(TRN_F32, a, N, N),
                                                    .dst = trn_tensor_2d(TRN_F8_E4M3FN, c, N, N),
                                                    .dst_scale = trn_tensor_2d(TRN_F8_E8M0, c + N * N / 2, N, N / 32),
                                                    .axis = 1 });
}

static trn_status instruction(void)
{
    return trn_activation(&(trn_activation_args){
        .dst = trn_tensor_2d(TRN_F32, c, 128, 2048), .op = TRN_ACT_EXP, .src = trn_tensor_2d(TRN_F32, a, 128, 2048) });
}

static trn_status collective(void)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_tensor view[RANKS];
    for (int r = 0; r < RANKS; r++) {
        memcpy(part[r], a + r * N, sizeof part[r]);
        view[r] = trn_tensor_1d(TRN_F32, part[r], N * 8);
    }
    const trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .src = view, .dst = view };
    const trn_status status = trn_collective_run(&args);
    memcpy(c, part, sizeof part);
    return status;
}

static trn_status (*const work[])(void) = { product, conversion, block_scaling, instruction, collective };
enum { WORKS = sizeof work / sizeof work[0] };

static uint64_t results(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < WORKS; i++) {
        memset(c, 0, sizeof c);
        if (work[i]() != TRN_OK) return 0;
        const unsigned char *byte = (const unsigned char *)c;
        for (size_t k = 0; k < sizeof c; k++) hash = (hash ^ byte[k]) * 0x100000001b3u;
    }
    return hash;
}

/* ---- the tests ---- */

/* What a child found; 0 when it did not end well. */
static uint64_t in_a_child(int generations)
{
    int pipes[2];
    uint64_t found = 0;
    int status = -1;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(GIVEN_UP_S); /* for a hang, which is the failure */
        found = generations > 1 ? in_a_child(generations - 1) : results();
        const bool wrote = write(pipes[1], &found, sizeof found) == sizeof found;
        _exit(wrote ? 0 : 1);
    }
    close(pipes[1]);
    const bool got = read(pipes[0], &found, sizeof found) == sizeof found;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return got && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? found : 0;
}

static void a_child_computes_the_same(void **state)
{
    (void)state;
    fill(a, N * N, 1);
    fill(b, N * N, 2);
    const uint64_t before = in_a_child(1); /* of a parent that has had no threads yet */
    const uint64_t mine = results();
    assert_true(mine != 0);
    assert_true(before == mine);
    assert_true(in_a_child(1) == mine);
    assert_true(in_a_child(2) == mine); /* a child's child */
    assert_true(results() == mine);     /* and the parent goes on */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_child_computes_the_same) };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
