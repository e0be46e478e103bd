#!/bin/sh
# Does NVIDIA's assembler take each kernel of gpu_check, for each architecture that runs it? Without ptxas: skipped.
# Usage: tests/gpu/ptxas.sh gpu_check
set -u
program=$1
ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null)
if [ -z "$ptxas" ]; then
    echo 'SKIP ptxas: it is not installed'
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
taken=0

# assemble UNIT TARGET
assemble() {
    "$ptxas" -arch="$2" "$scratch/unit.ptx" -o "$scratch/unit.cubin" >"$scratch/log" 2>&1
    status=$?
    if grep -q "is not defined for option 'gpu-name'" "$scratch/log"; then return; fi # this release has left it behind
    if [ $status -ne 0 ]; then
        failed=1
        echo "FAILED: $1 for $2: $(head -n 3 "$scratch/log")"
    fi
    taken=$((taken + 1))
}

"$program" --list >"$scratch/list" || exit 1
while read -r unit target rest; do
    "$program" --ptx "$unit" >"$scratch/unit.ptx" || exit 1
    case $target in
    *a) assemble "$unit" "$target" ;;
    *)
        for newer in sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
            [ "${newer#sm_}" -lt "${target#sm_}" ] || assemble "$unit" $newer
        done
        ;;
    esac
done <"$scratch/list"
[ $taken -gt 0 ] || failed=1
echo "ptxas: $taken kernels assembled"
exit $failed
