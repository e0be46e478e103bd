#!/bin/sh
# Collectives and a sharded product across processes: installs Open MPI if it is missing, builds, runs, compares
# digests.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END'
usage: scripts/mpi.sh [PROCESSES...]

Runs the tests of tests/mpi in 1, 2, 3 and 4 processes (or as many as are named): every collective, a sharded matrix
product and a kernel on many cores, each process with a share of the chips; hops of collectives are messages. The digest
of all results is the same for any number of processes. One that is late, is lost or was asked anything else, field by
field, ends the call with a sentence.
END
}

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
esac
for argument; do
    case $argument in
    '' | *[!0-9]*)
        say "'$argument' is not a number of processes"
        exit 2
        ;;
    esac
done
[ $# -gt 0 ] || set -- 1 2 3 4
need gcc g++ cmake make pkgconf libopenmpi-dev openmpi-bin
build=$root/.build/mpi
build_in "$build" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- mpi_collective mpi_matmul mpi_signature mpi_cores
status=0
for program in mpi_collective mpi_matmul mpi_signature mpi_cores; do
    echo "$program"
    sh "$root/tests/mpi/run.sh" "$build/mpi/$program" "$@" || status=1
done
exit $status
