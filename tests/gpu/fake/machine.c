/* machine.c - the part of PTX that gpu_check's kernels use, executed.
 * SPDX-License-Identifier: MIT
 *
 * The threads of a block advance together: those that are farthest behind execute, so that after a branch forward they
 * meet again. An instruction of matrices needs whole warps; an instruction that is not known is refused at once.
 *
 * KNOWN FROM: NVIDIA's PTX ISA 9.0 (documented).
 */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 26, REGISTERS = 10, SHARED_AT = 1024, PARAMETERS = 6 };

typedef struct thread {
    uint64_t reg[LETTERS][REGISTERS];
    bool p;
    int pc;
} thread;

typedef struct block {
    thread t[FAKE_THREADS];
    unsigned char shared[FAKE_SHARED];
    unsigned number;
    const fake_module *m;
    void **parameter;
} block;

/* ---- operands ---- */

static uint64_t *reg(thread *t, const char *name)
{
    const int letter = name[0] == '%' ? name[1] - 'a' : -1, number = letter >= 0 ? atoi(name + 2) : -1;
    if (letter < 0 || letter >= LETTERS || number < 0 || number >= REGISTERS) return NULL;
    return &t->reg[letter][number];
}

static uint64_t read(const block *b, thread *t, const char *operand)
{
    const uint64_t *r = reg(t, operand);
    if (strcmp(operand, "%tid.x") == 0) return (uint64_t)(t - b->t);
    if (strcmp(operand, "%ctaid.x") == 0) return b->number;
    if (strcmp(operand, "tile") == 0) return SHARED_AT;
    return r ? *r : strtoull(operand, NULL, 10);
}

/* "[%x0+4]": the address. */
static uint64_t address(thread *t, const char *operand)
{
    const char *plus = strchr(operand, '+');
    const uint64_t *r = reg(t, operand + 1);
    return (r ? *r : 0) + (plus ? strtoull(plus + 1, NULL, 10) : 0);
}

/* The words that a vector "{%a0, %a1}" names, from `t` to `into` or back. */
static void vector(thread *t, const char *operand, uint32_t *word, int most, bool back)
{
    const char *at = strchr(operand, '%');
    for (int i = 0; at && i < most; i++, at = strchr(at + 1, '%')) {
        uint64_t *r = reg(t, at);
        if (!r) return;
        if (back)
            *r = word[i];
        else
            word[i] = (uint32_t)*r;
    }
}

/* ---- plain instructions: of one thread ---- */

static int parameter_of(const char *name)
{
    static const char *const known[PARAMETERS] = { "[in_a]", "[in_b]", "[in_c]", "[in_s]", "[out_d]", "[threads]" };
    for (int i = 0; i < PARAMETERS; i++)
        if (strcmp(known[i], name) == 0) return i;
    return 0;
}

static int nothing(block *b, thread *t, const fake_op *o)
{
    (void)b, (void)t, (void)o;
    return 0;
}

static int set(thread *t, const char *name, uint64_t value, int bits)
{
    uint64_t *r = reg(t, name);
    if (!r) return FAKE_ILLEGAL_INSTRUCTION;
    *r = bits == 32 ? (uint32_t)value : value;
    return 0;
}

#define READ(i) read(b, t, o->operand[i])
#define SIMPLE(function, bits, value)                                                                                  \
    static int function(block *b, thread *t, const fake_op *o) { return set(t, o->operand[0], (value), bits); }
SIMPLE(op_mov, 32, READ(1))
SIMPLE(op_copy, 64, READ(1))
SIMPLE(op_mad, 32, READ(1) * READ(2) + READ(3))
SIMPLE(op_wide, 64, READ(1) * READ(2))
SIMPLE(op_add64, 64, READ(1) + READ(2))
SIMPLE(op_add32, 32, READ(1) + READ(2))
SIMPLE(op_shl32, 32, READ(1) << READ(2))
SIMPLE(op_shr64, 64, READ(1) >> READ(2))
SIMPLE(op_and64, 64, READ(1) & READ(2))
SIMPLE(op_or64, 64, READ(1) | READ(2))

static int op_parameter32(block *b, thread *t, const fake_op *o)
{
    uint32_t value;
    memcpy(&value, b->parameter[parameter_of(o->operand[1])], sizeof value);
    return set(t, o->operand[0], value, 32);
}

static int op_parameter64(block *b, thread *t, const fake_op *o)
{
    uint64_t value;
    memcpy(&value, b->parameter[parameter_of(o->operand[1])], sizeof value);
    return set(t, o->operand[0], value, 64);
}

static int op_not_below(block *b, thread *t, const fake_op *o)
{
    t->p = READ(1) >= READ(2);
    return 0;
}

static int op_branch(block *b, thread *t, const fake_op *o)
{
    for (int i = 0; i < b->m->labels; i++)
        if (strcmp(b->m->label[i].name, o->operand[0]) == 0) {
            t->pc = b->m->label[i].at;
            return 0;
        }
    return FAKE_ILLEGAL_INSTRUCTION;
}

static int op_return(block *b, thread *t, const fake_op *o)
{
    (void)o;
    t->pc = b->m->ops;
    return 0;
}

static int op_load(block *b, thread *t, const fake_op *o)
{
    uint32_t word;
    (void)b;
    const unsigned char *from = fake_memory(address(t, o->operand[1]), 4);
    if (!from) return FAKE_ILLEGAL_ADDRESS;
    memcpy(&word, from, 4);
    return set(t, o->operand[0], word, 32);
}

static int op_store(block *b, thread *t, const fake_op *o)
{
    const uint32_t word = (uint32_t)READ(1);
    unsigned char *to = fake_memory(address(t, o->operand[0]), 4);
    if (!to) return FAKE_ILLEGAL_ADDRESS;
    memcpy(to, &word, 4);
    return 0;
}

static int op_store_shared(block *b, thread *t, const fake_op *o)
{
    const uint32_t word = (uint32_t)READ(1);
    const uint64_t at = address(t, o->operand[0]);
    if (at > FAKE_SHARED - 4) return FAKE_ILLEGAL_ADDRESS;
    memcpy(b->shared + at, &word, 4);
    return 0;
}

static const struct meaning {
    const char *code;
    int (*execute)(block *b, thread *t, const fake_op *o);
} meaning[] = {
    { "mov.u32", op_mov },
    { "mad.lo.u32", op_mad },
    { "mul.wide.u32", op_wide },
    { "add.u64", op_add64 },
    { "add.u32", op_add32 },
    { "shl.b32", op_shl32 },
    { "shr.u64", op_shr64 },
    { "and.b64", op_and64 },
    { "or.b64", op_or64 },
    { "cvt.u64.u32", op_copy },
    { "cvta.to.global.u64", op_copy },
    { "ld.param.u32", op_parameter32 },
    { "ld.param.u64", op_parameter64 },
    { "setp.ge.u32", op_not_below },
    { "bra", op_branch },
    { "ret", op_return },
    { "ld.global.b32", op_load },
    { "st.global.b32", op_store },
    { "st.shared.b32", op_store_shared },
    { "bar.sync", nothing },
    { "fence.proxy.async.shared::cta", nothing },
    { "wgmma.fence.sync.aligned", nothing },
    { "wgmma.commit_group.sync.aligned", nothing },
    { "wgmma.wait_group.sync.aligned", nothing },
};

static const struct meaning *meaning_of(const char *code)
{
    for (size_t i = 0; i < sizeof meaning / sizeof meaning[0]; i++)
        if (strcmp(meaning[i].code, code) == 0) return &meaning[i];
    return NULL;
}

/* ---- instructions of matrices: of 32 threads, or of 128 ---- */

static bool is_wgmma(const fake_op *o) { return strncmp(o->code, "wgmma.mma_async.", 16) == 0; }
static bool is_matrix(const fake_op *o) { return is_wgmma(o) || strncmp(o->code, "mma.sync.", 9) == 0; }

static int matrix(block *b, int first, int lanes, const fake_op *o)
{
    fake_fragments f;
    memset(&f, 0, sizeof f);
    f.lanes = lanes;
    f.shared = b->shared;
    const int pc = b->t[first].pc;
    for (int i = 0; i < lanes; i++) {
        thread *t = &b->t[first + i];
        if (t->pc != pc) return FAKE_ILLEGAL_INSTRUCTION;
        vector(t, o->operand[1], f.a[i], 4, false);
        if (is_wgmma(o)) {
            vector(t, o->operand[0], f.c[i], 8, false);
            f.descriptor = read(b, t, o->operand[2]);
            continue;
        }
        vector(t, o->operand[2], f.b[i], 4, false);
        vector(t, o->operand[3], f.c[i], 8, false);
        if (o->operands > 6) {
            vector(t, o->operand[4], &f.scale[i][0], 1, false);
            vector(t, o->operand[6], &f.scale[i][1], 1, false);
        }
    }
    const int error = fake_matrix(o->code, &f);
    for (int i = 0; i < lanes; i++) {
        vector(&b->t[first + i], o->operand[0], f.c[i], 8, true);
        b->t[first + i].pc = pc + 1;
    }
    return error;
}

/* ---- a block ---- */

static int behind(const block *b)
{
    int pc = b->m->ops;
    for (int i = 0; i < FAKE_THREADS; i++)
        if (b->t[i].pc < pc) pc = b->t[i].pc;
    return pc;
}

static int step(block *b, int pc)
{
    const fake_op *o = &b->m->op[pc];
    const struct meaning *known = meaning_of(o->code);
    const int lanes = is_wgmma(o) ? FAKE_THREADS : 32;
    int error = 0;
    for (int i = 0; i < FAKE_THREADS && !error; i++) {
        thread *t = &b->t[i];
        if (t->pc != pc) continue; /* or a warp has done it already */
        if (!known) {
            error = i % lanes == 0 ? matrix(b, i, lanes, o) : FAKE_ILLEGAL_INSTRUCTION;
            continue;
        }
        t->pc = pc + 1;
        if (!o->guarded || t->p) error = known->execute(b, t, o);
    }
    return error;
}

int fake_execute(const fake_module *m, unsigned blocks, void **parameter)
{
    static block b;
    int error = 0;
    for (unsigned number = 0; number < blocks && !error; number++) {
        memset(&b, 0, sizeof b);
        b.number = number;
        b.m = m;
        b.parameter = parameter;
        for (int pc = behind(&b); pc < m->ops && !error; pc = behind(&b)) error = step(&b, pc);
    }
    return error;
}

/* ---- reading ---- */

static const char *word(const char *at, char *into)
{
    size_t n = 0;
    while (isspace((unsigned char)*at)) at++;
    while (*at && !isspace((unsigned char)*at) && *at != ',' && *at != ';' && n + 1 < FAKE_WORD) into[n++] = *at++;
    into[n] = '\0';
    return at;
}

/* One operand: up to a comma outside of braces. */
static const char *operand(const char *at, char *into)
{
    int depth = 0;
    size_t n = 0;
    while (isspace((unsigned char)*at)) at++;
    for (; *at && *at != ';' && (depth || *at != ','); at++) {
        depth += (*at == '{') - (*at == '}');
        if (n + 1 < FAKE_WORD) into[n++] = *at;
    }
    while (n && isspace((unsigned char)into[n - 1])) n--;
    into[n] = '\0';
    return at;
}

static const char *read_op(fake_op *o, const char *at)
{
    char guard[FAKE_WORD];
    if (*at == '@') {
        at = word(at, guard);
        o->guarded = strcmp(guard, "@%p") == 0;
    }
    at = word(at, o->code);
    while (*at && *at != ';' && o->operands < FAKE_OPERANDS) {
        at = operand(at, o->operand[o->operands++]);
        if (*at == ',') at++;
    }
    return *at == ';' ? at + 1 : at;
}

/* "name:" before the next end of a line or of an instruction. */
static bool read_label(fake_module *m, const char **at)
{
    const size_t length = strcspn(*at, " \t\n:;");
    if ((*at)[length] != ':' || length == 0 || length >= FAKE_WORD || m->labels == FAKE_LABELS) return false;
    if ((*at)[length + 1] == ':') return false;
    memcpy(m->label[m->labels].name, *at, length);
    m->label[m->labels++].at = m->ops;
    *at += length + 1;
    return true;
}

static int check_target(const char *text, char *log, size_t size)
{
    const char *target = strstr(text, ".target sm_");
    char *end = NULL;
    const long wanted = target ? strtol(target + 11, &end, 10) : 0;
    const bool only = end && *end == 'a';
    if (wanted == fake_capability() || (wanted && !only && wanted < fake_capability())) return 0;
    snprintf(log, size, "the module is for sm_%ld\nand the device is of %d", wanted, fake_capability());
    return FAKE_NO_BINARY;
}

int fake_assemble(fake_module *m, const char *text, char *log, size_t size)
{
    const int error = check_target(text, log, size);
    const char *entry = strstr(text, ".entry "), *at = strstr(text, "\n{");
    if (error) return error;
    if (!entry || !at) return FAKE_INVALID_PTX;
    snprintf(m->entry, sizeof m->entry, "%.*s", (int)strcspn(entry + 7, "("), entry + 7);
    for (at += 2; *at && *at != '}';) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (*at == '.') {
            at += strcspn(at, ";") + 1;
        } else if (!read_label(m, &at)) {
            if (m->ops == FAKE_MOST_OPS) return FAKE_INVALID_PTX;
            fake_op *o = &m->op[m->ops++];
            at = read_op(o, at);
            if (meaning_of(o->code) || is_matrix(o)) continue;
            snprintf(log, size, "unknown instruction %s", o->code);
            return FAKE_INVALID_PTX;
        }
    }
    return 0;
}
