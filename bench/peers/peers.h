/* peers.h - other people's matrix products and conversions on this host, loaded while the program runs.
 * SPDX-License-Identifier: MIT
 *
 * OpenBLAS and oneDNN. Neither is needed: what is not installed is not there. They are loaded and not linked because
 * OpenBLAS picks its kernels once, when it is loaded, and must be told first: release 0.3.21 takes processors younger
 * than itself for a Prescott, a tenth of their speed.
 */
#ifndef BENCH_PEERS_PEERS_H
#define BENCH_PEERS_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <trnmath/trn_cpu.h>
#include <trnmath/trn_format.h>

typedef enum tb_peer_id { TB_OPENBLAS = 0, TB_ONEDNN_F32, TB_ONEDNN_F32_PACKED, TB_ONEDNN_BF16, TB_PEERS } tb_peer_id;

/* C = A x B, binary32, packed rows: a [M, K], b [K, N], c [M, N]. */
typedef struct tb_peer_job {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int threads;
} tb_peer_job;

/* Loads the libraries; `isa` decides which OpenBLAS kernels are asked for, unless OPENBLAS_CORETYPE is set already. */
void tb_peers_load(trn_isa isa, bool with_onednn);
const char *tb_peer_name(tb_peer_id id);
/* What the library calls itself and its kernels: "OpenBLAS 0.3.21 (SkylakeX)"; NULL when it is not there. */
const char *tb_peer_version(tb_peer_id id);
/* Everything that is not the product (handles, packing where the peer's name says so); NULL when the peer cannot. */
void *tb_peer_prepare(tb_peer_id id, const tb_peer_job *job);
void tb_peer_run(tb_peer_id id, void *prepared);
void tb_peer_release(tb_peer_id id, void *prepared);

/* ---- oneDNN's conversions: the primitive that it calls a reorder ---- */

typedef struct tb_reorder_job {
    trn_format from, to;
    void *dst;
    const void *src;
    int64_t n;
    int threads;
} tb_reorder_job;

void tb_onednn_load(void);
const char *tb_onednn_version(void);                 /* NULL: not there */
void *tb_reorder_prepare(const tb_reorder_job *job); /* NULL when it cannot */
void tb_reorder_run(void *prepared);
void tb_reorder_release(void *prepared);

#endif /* BENCH_PEERS_PEERS_H */
