/* many_cores.h - what tests of several cores share: a run that goes well, one that is refused, and tiles of numbers.
 * SPDX-License-Identifier: MIT
 *
 * Each source that includes this has cores of its own.
 */
#ifndef MANY_CORES_H
#define MANY_CORES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "trnmath/trn_cores.h"

static trn_cores cores;

static inline trn_cores_args chip_of(int ranks, int lnc)
{
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = ranks;
    args.lnc = lnc;
    return args;
}

static inline void run(const trn_cores_args *args, trn_cores_kernel *kernel, void *user)
{
    if (trn_cores_begin(&cores, args)) fail_msg("begin: %s", cores.failure.text);
    if (trn_cores_run(&cores, kernel, user)) fail_msg("run: %s", cores.failure.text);
}

static inline void refuse(const trn_cores_args *args, trn_cores_kernel *kernel, void *user, const char *sentence)
{
    if (trn_cores_begin(&cores, args)) {
        assert_string_equal(cores.failure.text, sentence);
        return;
    }
    if (!trn_cores_run(&cores, kernel, user)) fail_msg("nothing failed; expected: %s", sentence);
    assert_string_equal(cores.failure.text, sentence);
    assert_int_equal(trn_cores_run(&cores, kernel, user), cores.failure.status); /* it stays */
    trn_cores_end(&cores);
}

static inline trn_tensor filled(trn_core *core, const char *name, trn_format format, int64_t p, int64_t f,
                                uint32_t seed)
{
    trn_tensor t = trn_core_sbuf(core, name, format, p, f);
    for (int64_t i = 0; i < p; i++)
        for (int64_t k = 0; k < f; k++) {
            seed = seed * 1664525u + 1013904223u;
            const float value = (float)((int)(seed >> 20) - 2048) / 64;
            const trn_tensor one = trn_tensor_slice(trn_tensor_slice(t, 0, i, 1), 1, k, 1);
            if (format == TRN_F32)
                memcpy(one.data, &value, sizeof value);
            else {
                const uint16_t code = trn_bf16_from_f32(value);
                memcpy(one.data, &code, sizeof code);
            }
        }
    trn_core_written(core, t);
    return t;
}

static inline void packed(void *to, trn_tensor t)
{
    const size_t row = (size_t)t.shape[1] * trn_format_bytes(t.format);
    for (int64_t p = 0; p < t.shape[0]; p++)
        memcpy((char *)to + (size_t)p * row, trn_tensor_slice(t, 0, p, 1).data, row);
}

#endif /* MANY_CORES_H */
