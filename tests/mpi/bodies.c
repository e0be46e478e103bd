/* bodies.c - the public functions across processes, once for all programs that are started by mpirun.
 * SPDX-License-Identifier: MIT
 *
 * Compiled by gcc with -DTRNI_INSIDE=1: what they call is private, and compiled here, or public, and linked. So all but
 * the last headers are declarations, and the functions of the last are for others to link with.
 */
#include <trnmath/trn_cores.h>
#include <trnmath/trn_reshard.h>

#undef TRN_API
#define TRN_API
#include <trnmath/trn_mpi.h>
