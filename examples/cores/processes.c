/* processes.c - how processes that share out the chips find each other: MPI, where the program is built with it.
 * SPDX-License-Identifier: MIT
 */
#include "cores.h"

#if defined(TRN_USE_MPI)

#include <trnmath/trn_mpi.h>

static void finish(void) { MPI_Finalize(); }

const trn_cores_exchange *cores_exchange(void)
{
    static trn_cores_exchange exchange;
    static trn_mpi mpi;
    if (exchange.gather) return &exchange;
    MPI_Init(NULL, NULL);
    atexit(finish);
    mpi = trn_mpi_world();
    exchange = trn_mpi_cores_exchange(&mpi);
    return &exchange;
}

#else

const trn_cores_exchange *cores_exchange(void) { return NULL; }

#endif
