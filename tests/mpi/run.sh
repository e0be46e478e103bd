#!/bin/sh
# run.sh PROGRAM N...: the program by itself in 1, 2, ... processes, which must all print the same digest; then one
# process that misbehaves, where the others have to say so and write nothing.
set -u
program=${1:?usage: run.sh PROGRAM N...}
shift
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root; mpirun asks twice
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
passed=0
failed=0
result() {
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $2"; fi
}
start() { mpirun --oversubscribe --mca mpi_yield_when_idle 0 --mca btl_vader_single_copy_mechanism none -n "$@"; }

first=
for n; do
    said=$(start "$n" "$program" 2>&1)
    result $? "$n processes: $said"
    digest=$(echo "$said" | sed -n 's/.*digest //p')
    echo "$n processes: digest $digest"
    [ -n "$first" ] || first=$digest
    [ -n "$digest" ] && [ "$digest" = "$first" ]
    result $? "$n processes: digest $digest, expected $first"
done
for how in $("$program" --misbehaviours 2>/dev/null); do
    said=$(start 3 "$program" "$how" 2>/dev/null)
    case $said in
    *WRITTEN*) status=1 ;;
    *"nothing written"*) status=0 ;;
    *) status=1 ;;
    esac
    echo "$said"
    result $status "$how: a destination was written, or nobody complained"
done

# A process that is lost: plain mpirun ends the whole job, with a status; asked to recover, it lets the others end, and
# both of them have to say who it was.
for how in $("$program" --losses 2>/dev/null); do
    said=$(start 3 "$program" "$how" 2>&1)
    status=$?
    case $status$said in
    0* | *WRITTEN*) status=1 ;;
    *) status=0 ;;
    esac
    result $status "$how: mpirun ended as if all were well, or a destination was written: $said"
    if ! mpirun --version 2>&1 | grep -q 'Open MPI) [34]\.'; then
        echo "$how: only Open MPI 3 and 4 are known to have --enable-recovery"
        continue
    fi
    said=$(start 3 --enable-recovery "$program" "$how" 2>/dev/null)
    echo "$said"
    [ "$(echo "$said" | grep -c 'process 1 has not answered .*nothing written$')" -eq 2 ]
    result $? "$how: not both of the others say that process 1 has not answered"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
