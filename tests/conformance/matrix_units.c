/* matrix_units.c - what other makers' matrix units returned, with their numerics, on each instruction set of the host.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/matrix_units.h"
#include "twin/host.h"

typedef struct asking {
    const struct units_file *file;
    trn_isa isa;
    bool instruction;
    cf_answer *answer;
} asking;

static void compared(void *user, const char *what, const units_vector *v, uint32_t expected, uint32_t got)
{
    cf_count(((const asking *)user)->answer, expected == got, "%s, %s, %s times %s onto %08x: %08x, expected %08x",
             what, v->preset, v->code[0], v->code[1], v->c, (unsigned)got, (unsigned)expected);
}

static bool ask(units_batch *t, void *user)
{
    const asking *q = user;
    trn_numerics n;
    if (trn_numerics_parse(&n, t->v[0].preset) != TRN_OK) return false;
    if (q->instruction) return units_instruction(t, &n, true);
    return q->file->how == UNITS_SCALED    ? units_scaled(t, &n, q->isa)
           : q->file->how == UNITS_MMA_FP8 ? units_mma_fp8(t, &n, q->isa)
                                           : units_matmul(t, &n, q->isa, true);
}

static void check_file(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static units_batch t;
    const struct units_file *f = v->about;
    asking q = { f, v->isa, v->of, a };
    t.compared = compared;
    t.user = &q;
    const int seen = units_read(o->golden, f, &t, ask, &q);
    if (seen == -1)
        cf_fail(a, "tensor_core_%s.txt: it cannot be opened", f->name);
    else if (seen < 0)
        cf_fail(a, "tensor_core_%s.txt: a line is no vector, or is refused: %s", f->name, t.error.text);
    else if (seen != f->vectors)
        cf_fail(a, "tensor_core_%s.txt: %d vectors, expected %d", f->name, seen, f->vectors);
}

static void add(cf_list *list, const struct units_file *f, trn_isa isa, bool instruction)
{
    const char *how = instruction ? "instruction" : trn_isa_text(isa);
    const bool simulated = strncmp(f->name, "mma_sim", 7) == 0;
    cf_add(list,
           (cf_vector){ .id = cf_id(list, "matrix_unit.%s.%s", f->name, how),
                        .what = cf_text(list, "%s: D = A*B + C, %s%s", f->unit, instruction ? "one " : "",
                                        instruction ? "instruction" : cf_text(list, "%s kernels", how)),
                        .source = simulated ? "MMA-Sim, github.com/microsoft/MMA-Sim c785138, arXiv 2511.10909"
                                            : "Khattak and Mikaitis, doi 10.1145/3830409, MATLAB-tensor-core b12b5a7",
                        .kind = simulated ? CF_PAPER : CF_MEASURED,
                        CF_NONE_WRONG,
                        .test = check_file,
                        .about = f,
                        .isa = isa,
                        .of = instruction });
}

void cf_fill_matrix_units(cf_list *list)
{
    for (int f = 0; f < UNITS_FILES; f++) {
        if (units_files[f].how == UNITS_PLAIN) add(list, &units_files[f], TRN_ISA_AUTO, true);
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++)
            add(list, &units_files[f], all_isas[i], false);
    }
}
