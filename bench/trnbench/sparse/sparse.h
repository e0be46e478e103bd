/* sparse.h - subcommand sparse: structured sparsity beside the dense product.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_SPARSE_SPARSE_H
#define BENCH_SPARSE_SPARSE_H

int tb_main_sparse(int argc, char **argv);

#endif /* BENCH_SPARSE_SPARSE_H */
