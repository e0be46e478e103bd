/* core_run/layout.c - where the parts of a core lie in the memory that it is given.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: apart from the others, so that those need no bodies of their own.
 */
#include "unit/core_run/groups.h"
#include "unit/one_core.h"

/* What a core keeps lies within the memory that it asks for, and no two parts of it share a byte. */
static void parts_of_a_core_lie_apart(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        const trni_memory *const m = core.memory;
        const struct {
            const void *at;
            size_t bytes;
        } part[] = {
            { m[0].base, (size_t)(128 * m[0].pitch) },
            { m[0].written, (size_t)(128 * m[0].pitch / 8) },
            { m[0].tile, TRNI_TILES * sizeof(trni_allocation) },
            { m[0].segment[0], 4 * TRNI_SEGMENTS * sizeof(trni_segment) },
            { m[1].base, (size_t)(128 * m[1].pitch) },
            { m[1].written, (size_t)(128 * m[1].pitch / 8) },
            { m[1].by_matmul, (size_t)(128 * m[1].pitch / 8) },
            { m[1].tile, TRNI_TILES * sizeof(trni_allocation) },
            { m[1].segment[0], 4 * TRNI_SEGMENTS * sizeof(trni_segment) },
            { core.cells, sizeof(trni_cells) },
            { core.journal, TRNI_JOURNAL * sizeof(trni_poison_entry) },
            { core.part, TRNI_CORE_PARTS * sizeof(trn_tensor) },
            { core.hbm, TRNI_HBM_TENSORS * sizeof(trni_hbm) },
            { core.history.access, TRNI_ACCESSES * sizeof(trni_access) },
            { core.indirect, sizeof(trni_indirect) },
            { core.indirect ? core.indirect->room : NULL, TRNI_INDIRECT_ROOM },
        };
        const char *const first = (const char *)room, *const end = first + trn_core_memory_bytes(g);
        for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
            const char *const at = (const char *)part[i].at;
            if (!at) continue;
            assert_true(at >= first && at + part[i].bytes <= end);
            for (size_t k = 0; k < i; k++) {
                const char *const other = (const char *)part[k].at;
                if (other && at < other + part[k].bytes && other < at + part[i].bytes)
                    fail_msg("%s: parts %zu and %zu meet", trn_generation_name(g), k, i);
            }
        }
        assert_int_equal(core.indirect != NULL, g >= TRN_TRAINIUM3);
    }
}

int core_run_layout(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_core_lie_apart),
    };
    return cmocka_run_group_tests_name("core_run_layout", tests, NULL, NULL);
}
