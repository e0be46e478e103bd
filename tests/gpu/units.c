/* units.c - the table of instructions, what each is held against, and the text of its kernel.
 * SPDX-License-Identifier: MIT
 */
#include "units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

#define MMA "mma.sync.aligned."
#define WGMMA "wgmma.mma_async.sync.aligned."
#define SCALED "mma.sync.aligned.kind::"

enum { NEVER = 999 };

static const gpu_unit unit[] = {
    { "mma.f16.m8n8k4", GPU_QUADS, 8, 8, 4, TRN_F16, TRN_F16, TRN_F32, 16, 0, "sm_70", "6.4",
      MMA "m8n8k4.row.col.f32.f16.f16.f32", 70, 72 },
    { "mma.f16.m8n8k4.f16", GPU_QUADS, 8, 8, 4, TRN_F16, TRN_F16, TRN_F16, 16, 0, "sm_70", "6.4",
      MMA "m8n8k4.row.col.f16.f16.f16.f16", 70, 72 },
    { "mma.f16.m16n8k8", GPU_WARP, 16, 8, 8, TRN_F16, TRN_F16, TRN_F32, 16, 0, "sm_75", "6.5",
      MMA "m16n8k8.row.col.f32.f16.f16.f32", 75, NEVER },
    { "mma.f16.m16n8k8.f16", GPU_WARP, 16, 8, 8, TRN_F16, TRN_F16, TRN_F16, 16, 0, "sm_75", "6.5",
      MMA "m16n8k8.row.col.f16.f16.f16.f16", 75, NEVER },
    { "mma.f16.m16n8k16", GPU_WARP, 16, 8, 16, TRN_F16, TRN_F16, TRN_F32, 16, 0, "sm_80", "7.0",
      MMA "m16n8k16.row.col.f32.f16.f16.f32", 80, NEVER },
    { "mma.f16.m16n8k16.f16", GPU_WARP, 16, 8, 16, TRN_F16, TRN_F16, TRN_F16, 16, 0, "sm_80", "7.0",
      MMA "m16n8k16.row.col.f16.f16.f16.f16", 80, NEVER },
    { "mma.bf16.m16n8k8", GPU_WARP, 16, 8, 8, TRN_BF16, TRN_BF16, TRN_F32, 16, 0, "sm_80", "7.0",
      MMA "m16n8k8.row.col.f32.bf16.bf16.f32", 80, NEVER },
    { "mma.bf16.m16n8k16", GPU_WARP, 16, 8, 16, TRN_BF16, TRN_BF16, TRN_F32, 16, 0, "sm_80", "7.0",
      MMA "m16n8k16.row.col.f32.bf16.bf16.f32", 80, NEVER },
    { "mma.tf32.m16n8k4", GPU_WARP, 16, 8, 4, TRN_TF32, TRN_TF32, TRN_F32, 32, 0, "sm_80", "7.0",
      MMA "m16n8k4.row.col.f32.tf32.tf32.f32", 80, NEVER },
    { "mma.tf32.m16n8k8", GPU_WARP, 16, 8, 8, TRN_TF32, TRN_TF32, TRN_F32, 32, 0, "sm_80", "7.0",
      MMA "m16n8k8.row.col.f32.tf32.tf32.f32", 80, NEVER },
    { "mma.e4m3.m16n8k32", GPU_WARP, 16, 8, 32, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, 8, 0, "sm_89", "8.4",
      MMA "m16n8k32.row.col.f32.e4m3.e4m3.f32", 89, NEVER },
    { "mma.e5m2.m16n8k32", GPU_WARP, 16, 8, 32, TRN_F8_E5M2, TRN_F8_E5M2, TRN_F32, 8, 0, "sm_89", "8.4",
      MMA "m16n8k32.row.col.f32.e5m2.e5m2.f32", 89, NEVER },
    { "mma.e4m3_e5m2.m16n8k32", GPU_WARP, 16, 8, 32, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F32, 8, 0, "sm_89", "8.4",
      MMA "m16n8k32.row.col.f32.e4m3.e5m2.f32", 89, NEVER },
    { "mma.int8.m8n8k16", GPU_WARP, 8, 8, 16, TRN_I8, TRN_I8, TRN_I32, 8, 0, "sm_75", "6.5",
      MMA "m8n8k16.row.col.s32.s8.s8.s32", 75, 75 },
    { "mma.int8.m16n8k32", GPU_WARP, 16, 8, 32, TRN_I8, TRN_I8, TRN_I32, 8, 0, "sm_80", "7.0",
      MMA "m16n8k32.row.col.s32.s8.s8.s32", 80, NEVER },
    { "wgmma.f16.m64n8k16", GPU_GROUP, 64, 8, 16, TRN_F16, TRN_F16, TRN_F32, 16, 0, "sm_90a", "8.0",
      WGMMA "m64n8k16.f32.f16.f16", 90, 90 },
    { "wgmma.f16.m64n8k16.f16", GPU_GROUP, 64, 8, 16, TRN_F16, TRN_F16, TRN_F16, 16, 0, "sm_90a", "8.0",
      WGMMA "m64n8k16.f16.f16.f16", 90, 90 },
    { "wgmma.bf16.m64n8k16", GPU_GROUP, 64, 8, 16, TRN_BF16, TRN_BF16, TRN_F32, 16, 0, "sm_90a", "8.0",
      WGMMA "m64n8k16.f32.bf16.bf16", 90, 90 },
    { "wgmma.tf32.m64n8k8", GPU_GROUP, 64, 8, 8, TRN_TF32, TRN_TF32, TRN_F32, 32, 0, "sm_90a", "8.0",
      WGMMA "m64n8k8.f32.tf32.tf32", 90, 90 },
    { "wgmma.e4m3.m64n8k32", GPU_GROUP, 64, 8, 32, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, 8, 0, "sm_90a", "8.0",
      WGMMA "m64n8k32.f32.e4m3.e4m3", 90, 90 },
    { "wgmma.e5m2.m64n8k32", GPU_GROUP, 64, 8, 32, TRN_F8_E5M2, TRN_F8_E5M2, TRN_F32, 8, 0, "sm_90a", "8.0",
      WGMMA "m64n8k32.f32.e5m2.e5m2", 90, 90 },
    { "wgmma.e4m3_e5m2.m64n8k32", GPU_GROUP, 64, 8, 32, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F32, 8, 0, "sm_90a", "8.0",
      WGMMA "m64n8k32.f32.e4m3.e5m2", 90, 90 },
    { "wgmma.int8.m64n8k32", GPU_GROUP, 64, 8, 32, TRN_I8, TRN_I8, TRN_I32, 8, 0, "sm_90a", "8.0",
      WGMMA "m64n8k32.s32.s8.s8", 90, 90 },
    { "mma.mxfp8_e4m3.m16n8k32", GPU_WARP, 16, 8, 32, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, 8, 32, "sm_120a", "8.7",
      SCALED "mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0", 120, 120 },
    { "mma.mxfp8_e5m2.m16n8k32", GPU_WARP, 16, 8, 32, TRN_F8_E5M2, TRN_F8_E5M2, TRN_F32, 8, 32, "sm_120a", "8.7",
      SCALED "mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e5m2.e5m2.f32.ue8m0", 120, 120 },
    { "mma.mxfp4.m16n8k64", GPU_WARP, 16, 8, 64, TRN_F4_E2M1, TRN_F4_E2M1, TRN_F32, 4, 32, "sm_120a", "8.7",
      SCALED "mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 120, 120 },
};

const gpu_unit *gpu_unit_at(int index)
{
    return index >= 0 && index < (int)(sizeof unit / sizeof unit[0]) ? &unit[index] : NULL;
}

/* ---- claims ---- */

#define KM "Khattak and Mikaitis 2025"
#define INTEGERS "integers: every order gives the same"

/* The rows are asked from the top: the first that fits. `part` is a part of the unit's name, null for all. */
static const struct rule {
    int low, high;
    const char *part;
    gpu_claim claim;
} rule[] = {
    { 70, NEVER, ".int8.", { "trn1", GPU_PRODUCT, true, INTEGERS } },
    { 70, 72, "k4.f16", { "nv_volta", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 70, 72, NULL, { "nv_volta", GPU_PRODUCT, true, KM ", V100" } },
    { 75, 75, "k8.f16", { "nv_turing", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 75, 75, NULL, { "nv_turing", GPU_PRODUCT, true, "Fasi et al. 2021, T4" } },
    { 80, 88, "8k8.f16", { "nv_ampere", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 80, 88, "k16.f16", { "nv_ampere", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 80, 88, NULL, { "nv_ampere", GPU_PRODUCT, true, KM ", A100 and A2" } },
    { 89, 89, "8k8.f16", { "nv_ada", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 89, 89, "k16.f16", { "nv_ada", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 89, 89, ".e4m3_e5m2.", { "nv_ada_fp8", GPU_PRODUCT, true, "MMA-Sim 2025" } },
    { 89, 89, ".e", { "nv_ada_fp8", GPU_PRODUCT, true, KM ", RTX 1000 Ada and L40S" } },
    { 89, 89, NULL, { "nv_ada", GPU_PRODUCT, true, KM ", RTX 1000 Ada and L40S" } },
    { 90, 90, "8k8.f16", { "nv_hopper", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 90, 90, "k16.f16", { "nv_hopper", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 90, 90, "wgmma.e", { "nv_hopper_fp8", GPU_PRODUCT, true, KM ", H100 and H200, onto zero; MMA-Sim 2025 onto C" } },
    { 90, 90, "mma.e", { "nv_hopper", GPU_HALF_FIRST, true, "ptxas 13.0: two F16 instructions, then additions" } },
    { 90, 90, NULL, { "nv_hopper", GPU_PRODUCT, true, KM ", H100 and H200" } },
    { 100, NEVER, "8k8.f16", { "nv_blackwell", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 100, NEVER, "k16.f16", { "nv_blackwell", GPU_BLOCKS, false, "nobody: F16 results" } },
    { 100, 100, "mma.e", { "nv_blackwell", GPU_HALF_FIRST, true, KM ", B200" } },
    { 100, 100, NULL, { "nv_blackwell", GPU_PRODUCT, true, KM ", B200" } },
    { 101, 119, "mma.e", { "nv_blackwell", GPU_HALF_FIRST, false, "nobody on this chip: as measured on B200" } },
    { 101, NEVER, NULL, { "nv_blackwell", GPU_PRODUCT, false, "nobody on this chip: as measured on B200" } },
};

bool gpu_claim_of(const gpu_unit *u, int capability, gpu_claim *claim)
{
    if (capability < u->low || capability > u->high) return false;
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
        if (capability < rule[i].low || capability > rule[i].high) continue;
        if (rule[i].part && !strstr(u->name, rule[i].part)) continue;
        *claim = rule[i].claim;
        return true;
    }
    return false;
}

/* ---- sizes ---- */

int gpu_products(const gpu_unit *u) { return u->layout == GPU_QUADS ? 4 : 1; }
int gpu_lanes(const gpu_unit *u) { return u->layout == GPU_GROUP ? 128 : 32; }
int gpu_row_bytes(const gpu_unit *u) { return u->k * u->bits / 8; }

int gpu_a_registers(const gpu_unit *u) { return gpu_products(u) * u->m * gpu_row_bytes(u) / 4 / gpu_lanes(u); }
int gpu_b_words(const gpu_unit *u) { return gpu_products(u) * u->n * gpu_row_bytes(u) / 4; }

int gpu_c_registers(const gpu_unit *u)
{
    const int bytes = u->result == TRN_F16 ? 2 : 4;
    return gpu_products(u) * u->m * u->n * bytes / 4 / gpu_lanes(u);
}

/* ---- the kernel ---- */

typedef struct writer {
    char *text;
    size_t at;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int wrote = vsnprintf(w->text + w->at, GPU_PTX - w->at, format, list);
    va_end(list);
    if (wrote > 0) w->at += (size_t)wrote < GPU_PTX - w->at ? (size_t)wrote : GPU_PTX - w->at - 1;
}

/* "{%a0, %a1}" */
static void put_vector(writer *w, char letter, int count)
{
    put(w, "{");
    for (int i = 0; i < count; i++) put(w, "%s%%%c%d", i ? ", " : "", letter, i);
    put(w, "}");
}

/* `count` words of this lane, from the array that the parameter points to, or to it. */
static void put_move(writer *w, const char *parameter, char letter, int count, bool store)
{
    put(w, "    ld.param.u64 %%x0, [%s];\n    cvta.to.global.u64 %%x0, %%x0;\n", parameter);
    put(w, "    mul.wide.u32 %%x1, %%r2, %d;\n    add.u64 %%x0, %%x0, %%x1;\n", 4 * count);
    for (int i = 0; i < count; i++)
        if (store)
            put(w, "    st.global.b32 [%%x0+%d], %%%c%d;\n", 4 * i, letter, i);
        else
            put(w, "    ld.global.b32 %%%c%d, [%%x0+%d];\n", letter, i, 4 * i);
}

/* b's words lie in shared memory as the descriptor says: cores of 8 columns by 16 bytes, one after the other along K.
 * There are two of them, 128 bytes apart, so that both strides of the descriptor may say so. */
static void put_shared(writer *w)
{
    put(w, "    setp.ge.u32 %%p, %%r0, 64;\n    @%%p bra loaded;\n    mad.lo.u32 %%r5, %%r1, 64, %%r0;\n"
           "    ld.param.u64 %%x0, [in_b];\n    cvta.to.global.u64 %%x0, %%x0;\n    mul.wide.u32 %%x1, %%r5, 4;\n"
           "    add.u64 %%x0, %%x0, %%x1;\n    ld.global.b32 %%b0, [%%x0+0];\n    mov.u32 %%r6, tile;\n"
           "    shl.b32 %%r5, %%r0, 2;\n    add.u32 %%r6, %%r6, %%r5;\n    st.shared.b32 [%%r6+0], %%b0;\n"
           "loaded:\n    fence.proxy.async.shared::cta;\n    bar.sync 0;\n    mov.u32 %%r6, tile;\n"
           "    cvt.u64.u32 %%x2, %%r6;\n    shr.u64 %%x2, %%x2, 4;\n    and.b64 %%x2, %%x2, 16383;\n"
           "    or.b64 %%x2, %%x2, 34360262656;\n"); /* 128 / 16 at bits 16 and 32; no swizzle */
}

static void put_instruction(writer *w, const gpu_unit *u)
{
    const int c = gpu_c_registers(u);
    const bool group = u->layout == GPU_GROUP;
    if (group) put(w, "    wgmma.fence.sync.aligned;\n");
    put(w, "    %s ", u->instruction);
    put_vector(w, group ? 'c' : 'd', c);
    put(w, ", ");
    put_vector(w, 'a', gpu_a_registers(u));
    put(w, ", ");
    if (group) {
        const char *more = u->result == TRN_I32 ? "" : u->bits == 16 ? ", 1, 1, 0" : ", 1, 1";
        put(w, "%%x2, 1%s;\n    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n", more);
        return;
    }
    put_vector(w, 'b', gpu_b_words(u) / 32);
    put(w, ", ");
    put_vector(w, 'c', c);
    if (u->scale) put(w, ", %%s0, {0, 0}, %%s1, {0, 0}");
    put(w, ";\n");
}

void gpu_ptx(const gpu_unit *u, char text[GPU_PTX])
{
    const bool group = u->layout == GPU_GROUP;
    writer w = { text, 0 };
    text[0] = '\0';
    put(&w, ".version %s\n.target %s\n.address_size 64\n\n", u->version, u->target);
    put(&w, ".visible .entry unit(.param .u64 in_a, .param .u64 in_b, .param .u64 in_c, .param .u64 in_s,\n"
            "    .param .u64 out_d, .param .u32 threads)\n{\n    .reg .pred %%p;\n    .reg .b32 %%r<8>;\n"
            "    .reg .b32 %%a<4>;\n    .reg .b32 %%b<2>;\n    .reg .b32 %%c<8>;\n    .reg .b32 %%d<8>;\n"
            "    .reg .b32 %%s<2>;\n    .reg .b64 %%x<4>;\n");
    if (group) put(&w, "    .shared .align 128 .b8 tile[256];\n");
    put(&w,
        "    mov.u32 %%r0, %%tid.x;\n    mov.u32 %%r1, %%ctaid.x;\n    mad.lo.u32 %%r2, %%r1, %d, %%r0;\n"
        "    ld.param.u32 %%r3, [threads];\n    setp.ge.u32 %%p, %%r2, %%r3;\n    @%%p bra done;\n",
        GPU_THREADS);
    put_move(&w, "in_a", 'a', gpu_a_registers(u), false);
    if (group)
        put_shared(&w);
    else
        put_move(&w, "in_b", 'b', gpu_b_words(u) / 32, false);
    put_move(&w, "in_c", 'c', gpu_c_registers(u), false);
    if (u->scale) put_move(&w, "in_s", 's', 2, false);
    put_instruction(&w, u);
    put_move(&w, "out_d", group ? 'c' : 'd', gpu_c_registers(u), true);
    put(&w, "done:\n    ret;\n}\n");
}
