/* every_door.h - one plausible call of each door that computes: for tests that care how a call runs, not what it gives.
 * SPDX-License-Identifier: MIT
 *
 * Inputs are shared and only read, outputs are the caller's own: calls may run side by side. Shapes are those of whole
 * tiles, so that every buffer is needed.
 */
#ifndef TWIN_EVERY_DOOR_H
#define TWIN_EVERY_DOOR_H

#include <trnmath/trnmath.h>

enum { DOOR_P = 128, DOOR_F = 2048, DOOR_ALL = DOOR_P * DOOR_F, DOOR_RANKS = 4 };

typedef struct door_room {
    float out[2][DOOR_ALL];
    float part[DOOR_RANKS][DOOR_ALL / DOOR_RANKS];
    trn_vector_state vector;
    trn_gpsimd_state gpsimd;
    trn_error error;
    trn_isa isa;
    trn_trace_event event[64];
} door_room;

static float door_in[2][DOOR_ALL]; /* any bits but of infinities and NaNs, ones in columns for transposes */
static uint32_t door_index[DOOR_ALL];
static uint16_t door_seeds[DOOR_ALL];
static unsigned char door_tags[DOOR_ALL];

static inline void door_inputs(void)
{
    uint32_t seed = 1;
    for (int i = 0; i < 2 * DOOR_ALL; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t bits = (seed & 0x81ffffffu) | 0x3e000000u; /* of each half a small finite BF16, too */
        memcpy(&door_in[i / DOOR_ALL][i % DOOR_ALL], &bits, sizeof bits);
    }
    for (int i = 0; i < DOOR_ALL; i++) {
        door_index[i] = (uint32_t)(i * 7 % 64);
        door_seeds[i] = (uint16_t)(i * 7 % 64);
        door_tags[i] = (unsigned char)(i % 4);
    }
}

static inline void door_room_init(door_room *r)
{
    memset(r, 0, sizeof *r);
    trn_vector_state_init(&r->vector, 1);
    trn_gpsimd_state_init(&r->gpsimd, 1);
    memset(r->out, 0x5a, sizeof r->out);
    memset(r->part, 0x5a, sizeof r->part);
}

/* Views of the shared inputs and of the room's outputs. */
static inline trn_tensor door_x(trn_format f, int64_t p, int64_t n) { return trn_tensor_2d(f, door_in[0], p, n); }
static inline trn_tensor door_w(trn_format f, int64_t p, int64_t n) { return trn_tensor_2d(f, door_in[1], p, n); }
static inline trn_tensor door_y(door_room *r, trn_format f, int64_t p, int64_t n)
{
    return trn_tensor_2d(f, r->out[0], p, n);
}
static inline trn_tensor door_z(door_room *r, trn_format f, int64_t p, int64_t n)
{
    return trn_tensor_2d(f, r->out[1], p, n);
}

#define DOOR(name) static trn_status door_##name(door_room *r)
#define DOOR_CALL(call, ...) trn_##call(&(trn_##call##_args){ __VA_ARGS__, .isa = r->isa, .error = &r->error })
#define DOOR_X door_x(TRN_F32, DOOR_P, DOOR_F)
#define DOOR_W door_w(TRN_F32, DOOR_P, DOOR_F)
#define DOOR_Y door_y(r, TRN_F32, DOOR_P, DOOR_F)

/* ---- arrays ---- */

DOOR(convert)
{
    return DOOR_CALL(convert, .dst = door_y(r, TRN_BF16, DOOR_F, DOOR_P), .src = trn_tensor_transposed(DOOR_X),
                     .rounding = TRN_STOCHASTIC);
}

DOOR(convert_codes)
{
    return DOOR_CALL(convert, .dst = door_y(r, TRN_F8_E4M3, DOOR_P, DOOR_F), .src = door_x(TRN_BF16, DOOR_P, DOOR_F));
}

DOOR(pack)
{
    return DOOR_CALL(pack, .dst = door_y(r, TRN_U8, DOOR_P, DOOR_F / 2),
                     .src = trn_tensor_2d(TRN_F4_E2M1, door_tags, DOOR_P, DOOR_F));
}

DOOR(mx_quantize)
{
    return DOOR_CALL(mx_quantize, .dst = door_y(r, TRN_F8_E4M3FN, DOOR_P, DOOR_F), .src = DOOR_X, .axis = 1,
                     .dst_scale = door_z(r, TRN_F8_E8M0, DOOR_P, DOOR_F / 32), .rounding = TRN_STOCHASTIC);
}

DOOR(mx_dequantize)
{
    return DOOR_CALL(mx_dequantize, .dst = DOOR_Y, .src = door_x(TRN_F8_E4M3FN, DOOR_P, DOOR_F), .axis = 1,
                     .src_scale = door_w(TRN_F8_E8M0, DOOR_P, DOOR_F / 32));
}

static trn_status door_product(door_room *r, trn_format in, int64_t m, int64_t n, int64_t k, const char *rules,
                               trn_format out)
{
    trn_numerics numerics = trn_numerics_default(TRN_TRAINIUM2);
    if (trn_numerics_parse(&numerics, rules)) return TRN_EINVAL;
    return DOOR_CALL(matmul, .dst = door_y(r, out, m, n), .a = door_x(in, m, k), .b = door_w(in, k, n),
                     .numerics = &numerics);
}

DOOR(matmul) { return door_product(r, TRN_BF16, 128, 512, 300, "", TRN_F32); }
DOOR(matmul_f32) { return door_product(r, TRN_F32, 65, 300, 300, "", TRN_BF16); }
DOOR(matmul_pairs) { return door_product(r, TRN_BF16, 130, 300, 300, "chains=16,merge=pairwise", TRN_F32); }
DOOR(matmul_row)
{
    return door_product(r, TRN_BF16, 1, 2048, 128, "psum_format=bfloat16,psum_rounding=stochastic", TRN_F32);
}

DOOR(matmul_lanes) { return door_product(r, TRN_BF16, 40, 70, 300, "product=bf16", TRN_F32); }
DOOR(matmul_flush) { return door_product(r, TRN_BF16, 40, 70, 300, "flush_sums=on", TRN_F32); }

DOOR(tolerance)
{
    const trn_matmul_args product = { .dst = door_y(r, TRN_BF16, 60, 300),
                                      .a = door_x(TRN_BF16, 60, 300),
                                      .b = door_w(TRN_BF16, 300, 300),
                                      .isa = r->isa,
                                      .error = &r->error };
    const trn_tolerance_args a = { .matmul = &product,
                                   .sigma = trn_tensor_2d(TRN_F32, r->out[1], 60, 300),
                                   .error = &r->error };
    return trn_tolerance(&a);
}

DOOR(nc_matmul)
{
    bool written = false;
    return DOOR_CALL(nc_matmul, .dst = door_y(r, TRN_F32, 128, 512), .stationary = door_x(TRN_BF16, 128, 128),
                     .moving = door_w(TRN_BF16, 128, 512), .psum_written = &written);
}

DOOR(nc_transpose)
{
    return DOOR_CALL(nc_transpose, .dst = door_y(r, TRN_F32, 128, 128), .data = door_x(TRN_F32, 128, 128));
}

DOOR(sparse_pack)
{
    const trn_sparse_pack_args a = { .values = door_y(r, TRN_BF16, 64, DOOR_F / 4),
                                     .tags = door_z(r, TRN_U8, 64, DOOR_F / 4),
                                     .src = door_x(TRN_BF16, 64, DOOR_F),
                                     .pattern = { 4, 16 },
                                     .prune = true,
                                     .error = &r->error };
    return trn_sparse_pack(&a);
}

DOOR(sparse_matmul)
{
    return DOOR_CALL(sparse_matmul, .dst = door_y(r, TRN_F32, 64, 300), .values = door_x(TRN_BF16, 64, 128),
                     .tags = trn_tensor_2d(TRN_U8, door_tags, 64, 128), .pattern = { 4, 16 },
                     .b = door_w(TRN_BF16, 512, 300));
}

/* ---- the Vector engine ---- */

DOOR(tensor_tensor)
{
    return DOOR_CALL(tensor_tensor, .dst = DOOR_Y, .data1 = door_x(TRN_BF16, DOOR_P, DOOR_F), .data2 = DOOR_W,
                     .op = TRN_ALU_ADD);
}

DOOR(tensor_scalar)
{
    return DOOR_CALL(tensor_scalar, .dst = door_y(r, TRN_BF16, DOOR_P, DOOR_F), .data = DOOR_X, .op0 = TRN_ALU_MULTIPLY,
                     .operand0 = 3, .op1 = TRN_ALU_ADD, .operand1 = 1, .rounding = TRN_STOCHASTIC);
}

DOOR(scalar_tensor_tensor)
{
    return DOOR_CALL(scalar_tensor_tensor, .dst = DOOR_Y, .data = DOOR_X, .op0 = TRN_ALU_MULTIPLY, .operand0 = 3,
                     .op1 = TRN_ALU_ADD, .operand1 = DOOR_W);
}

DOOR(reciprocal) { return DOOR_CALL(reciprocal, .dst = DOOR_Y, .data = DOOR_X); }

DOOR(tensor_copy) { return DOOR_CALL(tensor_copy, .dst = door_y(r, TRN_F8_E5M2, DOOR_P, DOOR_F), .src = DOOR_X); }

DOOR(tensor_copy_predicated)
{
    return DOOR_CALL(tensor_copy_predicated, .dst = door_y(r, TRN_BF16, DOOR_P, DOOR_F),
                     .src = door_x(TRN_BF16, DOOR_P, DOOR_F),
                     .predicate = trn_tensor_2d(TRN_U8, door_tags, DOOR_P, DOOR_F));
}

DOOR(memset) { return DOOR_CALL(memset, .dst = DOOR_Y, .value = 2); }

DOOR(tensor_reduce)
{
    return DOOR_CALL(tensor_reduce, .dst = door_y(r, TRN_F32, DOOR_P, 1), .data = DOOR_X, .op = TRN_ALU_ADD, .axes = 1);
}

DOOR(tensor_scalar_reduce)
{
    return DOOR_CALL(tensor_scalar_reduce, .dst = DOOR_Y, .data = DOOR_X, .op0 = TRN_ALU_MULTIPLY, .operand0 = 2,
                     .reduce_op = TRN_ALU_ADD, .reduce_res = door_z(r, TRN_F32, DOOR_P, 1));
}

DOOR(tensor_scalar_cumulative)
{
    return DOOR_CALL(tensor_scalar_cumulative, .dst = DOOR_Y, .src = DOOR_X, .op0 = TRN_ALU_MULTIPLY, .imm0 = 2,
                     .op1 = TRN_ALU_ADD);
}

DOOR(tensor_tensor_scan)
{
    return DOOR_CALL(tensor_tensor_scan, .dst = DOOR_Y, .data0 = DOOR_X, .data1 = DOOR_W, .op0 = TRN_ALU_MULTIPLY,
                     .op1 = TRN_ALU_ADD);
}

DOOR(exponential)
{
    return DOOR_CALL(exponential, .dst = DOOR_Y, .src = DOOR_X, .reduce_res = door_z(r, TRN_F32, DOOR_P, 1),
                     .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
}

DOOR(max8) { return DOOR_CALL(max8, .dst = door_y(r, TRN_F32, DOOR_P, 8), .src = DOOR_X); }

DOOR(nc_find_index8)
{
    return DOOR_CALL(nc_find_index8, .dst = door_y(r, TRN_U32, DOOR_P, 8), .data = DOOR_X,
                     .vals = door_x(TRN_F32, DOOR_P, 8));
}

DOOR(nc_stream_shuffle)
{
    trn_nc_stream_shuffle_args a = { .dst = DOOR_Y, .src = DOOR_X, .isa = r->isa, .error = &r->error };
    for (int i = 0; i < 32; i++) a.shuffle_mask[i] = 31 - i;
    return trn_nc_stream_shuffle(&a);
}

DOOR(partition_broadcast)
{
    return DOOR_CALL(partition_broadcast, .dst = DOOR_Y, .src = trn_tensor_slice(DOOR_X, 0, 0, 1));
}

DOOR(vector_transpose)
{
    return DOOR_CALL(vector_transpose, .dst = door_y(r, TRN_F32, 32, 32), .data = door_x(TRN_F32, 32, 32));
}

DOOR(rand2) { return DOOR_CALL(rand2, .dst = DOOR_Y, .max = 1, .state = &r->vector); }

DOOR(dropout) { return DOOR_CALL(dropout, .dst = DOOR_Y, .data = DOOR_X, .prob = 0.5f, .state = &r->vector); }

DOOR(bn_stats)
{
    return DOOR_CALL(bn_stats, .dst = door_y(r, TRN_F32, DOOR_P, 6), .data = door_x(TRN_F32, DOOR_P, 512));
}

/* ---- the Scalar and GpSimd engines, DMA ---- */

DOOR(activation) { return DOOR_CALL(activation, .dst = DOOR_Y, .src = DOOR_X, .op = TRN_ACT_GELU, .scale = 0.7f); }

DOOR(activation_reduce)
{
    const trn_activation_args a = { .dst = DOOR_Y,
                                    .src = DOOR_X,
                                    .op = TRN_ACT_EXP,
                                    .reduce_res = door_z(r, TRN_F32, DOOR_P, 1),
                                    .isa = r->isa,
                                    .error = &r->error };
    return trn_activation_reduce(&a);
}

DOOR(iota)
{
    return DOOR_CALL(iota, .dst = door_y(r, TRN_I32, DOOR_P, 512), .pattern = { .rank = 1, .axis = { { 1, 512 } } });
}

DOOR(nc_n_gather)
{
    return DOOR_CALL(nc_n_gather, .dst = door_y(r, TRN_F32, DOOR_P, 512), .data = door_x(TRN_F32, DOOR_P, 512),
                     .indices = trn_tensor_2d(TRN_U32, door_index, DOOR_P, 512));
}

DOOR(tensor_partition_reduce)
{
    return DOOR_CALL(tensor_partition_reduce, .dst = door_y(r, TRN_F32, 1, DOOR_F), .data = DOOR_X, .op = TRN_ALU_ADD);
}

DOOR(topk)
{
    return DOOR_CALL(topk, .val_dst = door_y(r, TRN_BF16, 16, 64), .idx_dst = door_z(r, TRN_U32, 16, 64),
                     .src = door_x(TRN_BF16, 16, 512), .n = 8192);
}

static trn_status door_custom_op(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)user, (void)error;
    memset(part->local, 1, (size_t)part->local_bytes);
    return TRN_OK;
}

DOOR(gpsimd_custom)
{
    return DOOR_CALL(gpsimd_custom, .dst = { DOOR_Y }, .dsts = 1, .src = { DOOR_X }, .srcs = 1, .op = door_custom_op);
}

DOOR(dma_copy) { return DOOR_CALL(dma_copy, .dst = door_y(r, TRN_BF16, DOOR_P, DOOR_F), .src = DOOR_X); }

DOOR(dma_compute)
{
    const trn_tensor srcs[2] = { DOOR_X, DOOR_W };
    const float scales[2] = { 1, 1 };
    return DOOR_CALL(dma_compute, .dst = DOOR_Y, .srcs = srcs, .count = 2, .scales = scales, .reduce_op = TRN_ALU_ADD);
}

/* ---- a core, networks, plans ---- */

DOOR(core)
{
    trn_core core;
    const trn_core_args args = { .generation = TRN_TRAINIUM2, .error = &r->error };
    const trn_status begun = trn_core_begin(&core, &args);
    if (begun) return begun;
    const trn_tensor in = trn_core_hbm(&core, "x", door_x(TRN_F32, 128, 512));
    const trn_tensor out = trn_core_hbm(&core, "y", door_y(r, TRN_F32, 128, 512));
    const trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 128, 512);
    trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = tile, .src = in });
    trn_core_activation(&core, &(trn_activation_args){ .dst = tile, .src = tile, .op = TRN_ACT_EXP });
    trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = out, .src = tile });
    const char *text;
    const trn_status status = trn_core_status(&core, &text);
    if (status) snprintf(r->error.text, sizeof r->error.text, "%s", text);
    trn_core_end(&core);
    return status;
}

static uint32_t door_cores_table[2][2] = { { 3, 3 }, { 1, 1 } };

/* Everything that a kernel on many cores may do, each on its own thread of the host. */
static trn_status door_cores_kernel(trn_cores_rank *self, void *user)
{
    door_room *r = (door_room *)user;
    trn_core *core = &self->core;
    const int64_t shape[] = { 8, 8 };
    const trn_tensor u = trn_core_sbuf(core, "u", TRN_F32, 128, 64), v = trn_core_sbuf(core, "v", TRN_F32, 128, 64);
    const trn_tensor both = trn_cores_hbm(self, "both", TRN_F32, 2, shape);
    const trn_tensor table = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, door_cores_table, 2, 2));
    trn_core_memset(core, &(trn_memset_args){ .dst = u, .value = 1 });
    trn_cores_barrier(self, &(trn_cores_barrier_args){ .data = both });
    trn_cores_sendrecv(
        self, &(trn_cores_sendrecv_args){
                  .dst = v, .src = u, .send_to_rank = 1 - self->program_id, .recv_from_rank = 1 - self->program_id });
    trn_cores_collective_args a = { .dst = v, .src = u };
    trn_cores_all_reduce(self, &a);
    a.op = TRN_ALU_MAXIMUM;
    trn_cores_all_reduce(self, &a);
    a.op = TRN_ALU_ADD;
    a.src1 = u;
    trn_cores_collective_permute_implicit_reduce(self, &a);
    const trn_cores_collective_args some = { .dst = trn_tensor_slice(both, 0, 4 * self->program_id, 2),
                                             .src = trn_tensor_slice(both, 0, 4 * self->program_id + 2, 2),
                                             .metadata = table };
    trn_cores_all_gather_v(self, &some);
    if (trn_core_status(core, NULL) || self->rank) return TRN_OK;
    const trn_tensor out = trn_core_hbm(core, "y", door_y(r, TRN_F32, 128, 64));
    return trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = out, .src = v });
}

DOOR(cores)
{
    trn_trace trace = { .event = r->event, .capacity = 64 };
    trn_cores cores;
    const trn_cores_args args = {
        .core = { .generation = TRN_TRAINIUM2 }, .ranks = 4, .lnc = 2, .threads = 1, .trace = &trace, .error = &r->error
    };
    trn_status status = trn_cores_begin(&cores, &args);
    if (status) return status;
    status = trn_cores_run(&cores, door_cores_kernel, r);
    trn_cores_end(&cores);
    return status;
}

DOOR(collective_run)
{
    const trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    trn_tensor src[DOOR_RANKS], dst[DOOR_RANKS];
    for (int i = 0; i < DOOR_RANKS; i++) {
        src[i] = trn_tensor_1d(TRN_F32, door_in[0] + i * DOOR_F, DOOR_F);
        dst[i] = trn_tensor_1d(TRN_F32, r->part[i], DOOR_F);
    }
    const trn_collective_args a = { .net = &net, .op = TRN_ALL_REDUCE, .src = src, .dst = dst, .error = &r->error };
    return trn_collective_run(&a);
}

DOOR(collective_cost)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    const trn_collective_args a = { .net = &net, .op = TRN_ALL_REDUCE, .bytes = 1 << 20, .error = &r->error };
    trn_cost cost;
    return trn_collective_cost(&a, &cost);
}

/* Two at once, on a ring whose one link is down. */
DOOR(traffic)
{
    trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    const trn_status broken = trn_topology_down(&net, "link 0->1", &r->error);
    const trn_collective_args two[2] = { { .net = &net, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING, .bytes = 1 << 20 },
                                         { .net = &net, .op = TRN_ALL_TO_ALL, .bytes = 1 << 20 } };
    const trn_traffic_args a = { .collective = two,
                                 .count = 2,
                                 .late = TRN_LATE_NORMAL,
                                 .late_mean_s = 1e-5,
                                 .late_spread_s = 1e-5,
                                 .samples = 3,
                                 .error = &r->error };
    trn_traffic_time each[2], all;
    return broken ? broken : trn_traffic(&a, each, &all);
}

DOOR(sharded_matmul)
{
    const trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    trn_tensor part[3][DOOR_RANKS];
    trn_mesh mesh;
    trn_sharded_matmul_args a = { .mesh = &mesh, .m = 64, .n = 64, .k = 256, .error = &r->error };
    for (int i = 0; i < DOOR_RANKS; i++) {
        part[0][i] = trn_tensor_2d(TRN_BF16, door_in[0] + i * DOOR_F, 64, 64);
        part[1][i] = trn_tensor_2d(TRN_BF16, door_in[1] + i * DOOR_F, 64, 64);
        part[2][i] = trn_tensor_2d(TRN_F32, r->part[i], 64, 64);
    }
    a.a = part[0], a.b = part[1], a.dst = part[2];
    if (trn_mesh_init(&mesh, &net, "tensor=4")) return TRN_EINVAL;
    trn_pspec_parse(&a.a_spec, &mesh, "(*, tensor)");
    trn_pspec_parse(&a.b_spec, &mesh, "(tensor, *)");
    return trn_sharded_matmul(&a);
}

DOOR(redistribute)
{
    const trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    trn_tensor src[DOOR_RANKS], dst[DOOR_RANKS];
    trn_mesh mesh;
    trn_redistribute_args a = { .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, NULL, 64, 64), .error = &r->error };
    for (int i = 0; i < DOOR_RANKS; i++) {
        src[i] = trn_tensor_2d(TRN_F32, door_in[0] + i * DOOR_F, 16, 64);
        dst[i] = trn_tensor_2d(TRN_F32, r->part[i], 64, 16);
    }
    a.src = src, a.dst = dst;
    if (trn_mesh_init(&mesh, &net, "tensor=4")) return TRN_EINVAL;
    trn_pspec_parse(&a.from, &mesh, "(tensor, *)");
    trn_pspec_parse(&a.to, &mesh, "(*, tensor)");
    return trn_redistribute(&a);
}

/* One time of a ring, half as fast as it should be. */
DOOR(calibration_fit)
{
    trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    net.level[0].kind = TRN_LINK_TORUS;
    const trn_collective_args ask = { .net = &net, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING, .bytes = 1 << 20 };
    const trn_calibration_sample one = { .ask = ask, .measured_s = 1e-4 };
    const trn_calibration_fit_args a = {
        .sample = &one, .samples = 1, .fields = "torus", .is_near = true, .error = &r->error
    };
    trn_calibration found;
    return trn_calibration_fit(&a, &found);
}

DOOR(plan_search)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_model model = {
        .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .intermediate = 14336, .vocab = 128256
    };
    const trn_plan_args a = { .model = &model, .net = &net, .batch = 2, .sequence = 4096, .error = &r->error };
    trn_plan *plan = (trn_plan *)(void *)r->out; /* a plan is larger than one would think */
    trn_plan_list list;
    return trn_plan_search(&a, plan, 4, &list);
}

DOOR(matmul_cost)
{
    const trn_matmul_cost_args a = {
        .generation = TRN_TRAINIUM2, .a_format = TRN_BF16, .m = 999, .n = 999, .k = 999, .error = &r->error
    };
    trn_core_cost cost;
    return trn_matmul_cost(&a, &cost);
}

static const struct every_door {
    const char *name;
    trn_status (*call)(door_room *r);
} every_door[] = {
#define DOOR_ROW(name) #name, door_##name
    { DOOR_ROW(convert) },
    { DOOR_ROW(convert_codes) },
    { DOOR_ROW(pack) },
    { DOOR_ROW(mx_quantize) },
    { DOOR_ROW(mx_dequantize) },
    { DOOR_ROW(matmul) },
    { DOOR_ROW(matmul_f32) },
    { DOOR_ROW(matmul_pairs) },
    { DOOR_ROW(matmul_row) },
    { DOOR_ROW(matmul_lanes) },
    { DOOR_ROW(matmul_flush) },
    { DOOR_ROW(tolerance) },
    { DOOR_ROW(nc_matmul) },
    { DOOR_ROW(nc_transpose) },
    { DOOR_ROW(sparse_pack) },
    { DOOR_ROW(sparse_matmul) },
    { DOOR_ROW(tensor_tensor) },
    { DOOR_ROW(tensor_scalar) },
    { DOOR_ROW(scalar_tensor_tensor) },
    { DOOR_ROW(reciprocal) },
    { DOOR_ROW(tensor_copy) },
    { DOOR_ROW(tensor_copy_predicated) },
    { DOOR_ROW(memset) },
    { DOOR_ROW(tensor_reduce) },
    { DOOR_ROW(tensor_scalar_reduce) },
    { DOOR_ROW(tensor_scalar_cumulative) },
    { DOOR_ROW(tensor_tensor_scan) },
    { DOOR_ROW(exponential) },
    { DOOR_ROW(max8) },
    { DOOR_ROW(nc_find_index8) },
    { DOOR_ROW(nc_stream_shuffle) },
    { DOOR_ROW(partition_broadcast) },
    { DOOR_ROW(vector_transpose) },
    { DOOR_ROW(rand2) },
    { DOOR_ROW(dropout) },
    { DOOR_ROW(bn_stats) },
    { DOOR_ROW(activation) },
    { DOOR_ROW(activation_reduce) },
    { DOOR_ROW(iota) },
    { DOOR_ROW(nc_n_gather) },
    { DOOR_ROW(tensor_partition_reduce) },
    { DOOR_ROW(topk) },
    { DOOR_ROW(gpsimd_custom) },
    { DOOR_ROW(dma_copy) },
    { DOOR_ROW(dma_compute) },
    { DOOR_ROW(core) },
    { DOOR_ROW(cores) },
    { DOOR_ROW(collective_run) },
    { DOOR_ROW(collective_cost) },
    { DOOR_ROW(traffic) },
    { DOOR_ROW(sharded_matmul) },
    { DOOR_ROW(redistribute) },
    { DOOR_ROW(calibration_fit) },
    { DOOR_ROW(plan_search) },
    { DOOR_ROW(matmul_cost) },
};
enum { EVERY_DOOR = sizeof every_door / sizeof every_door[0] };

#endif /* TWIN_EVERY_DOOR_H */
