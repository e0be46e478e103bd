#!/bin/sh
# The programs of examples/cores as a user meets them: one kernel on many cores, its errors against binary64, the same
# bits for any number of threads and processes, files, and one sentence for each mistake.
# Usage: tests/cli/cores.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
programs=$1/cores
program=$programs/block
. "$(dirname -- "$0")/lib/program.sh"

use() {
    name=$1
    program=$programs/$name
}

# same ARGUMENTS...: one digest for 1, 2 and 3 threads, and for 1, 2 and 4 processes where there is MPI
same() {
    works "$@" --threads 1
    digest=$(sed -n 's/^digest *\([0-9a-f]*\).*/\1/p' out)
    [ ${#digest} = 16 ] || fail "$name $*: no digest: $(cat out)"
    cp out one
    for threads in 2 3; do
        works "$@" --threads $threads
        cmp -s out one || fail "$name $*: $threads threads print something else: $(cat out)"
    done
    [ -x "$program"_mpi ] && command -v mpirun >/dev/null || return 0
    for processes in ${counts:-1 2 4}; do
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca mpi_yield_when_idle 0 \
            --mca btl_vader_single_copy_mechanism none -n $processes "$program"_mpi "$@" --threads 1 >out 2>err ||
            fail "$name $*, $processes processes: exit $?: $(cat err)"
        [ "$(grep -c "^digest  *$digest" out)" = 1 ] || fail "$name $*: $processes processes, not $digest: $(cat out)"
    done
}

json() {
    if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"; fi
}

# ---- usage ----

for name in block ring_attention moe; do
    use $name
    refuses "--frob is not an option of $name; $name --help lists them" --frob
    refuses "--chips needs a value: N" --chips
    refuses "--chips 0: expected a whole number from 1 to 4096" --chips 0
    refuses "--threads x: expected a whole number from 1 to 256" --threads x
    refuses "--system trn9: no such system, such as trn2.48xlarge" --system trn9
    refuses "--chips 17: trn2.48xlarge has 16" --system trn2.48xlarge --chips 17
    refuses "--ranks 5: 4 chips have 1 to 8 each, all as many" --ranks 5 --chips 4
    refuses "--ranks 36: 4 chips have 1 to 8 each, all as many" --ranks 36 --chips 4
    refuses "--json /nonexistent/x.json: it cannot be created (No such file or directory)" --json /nonexistent/x.json
    for word in --help --version; do
        works $word
        [ -s out ] && [ ! -s err ] || fail "$name $word: nothing on standard output, or something on standard error"
    done
done

use block
refuses "--heads 5 does not divide by 4 ranks" --ranks 4 --heads 5
refuses "--ffn 10 does not divide by 4 ranks" --ranks 4 --ffn 10
refuses "--head 129: expected a whole number from 1 to 128" --head 129
"$program" --ranks 2 --tokens 8192 --width 1 --head 128 --heads 2 --ffn 2 --no-check >out 2>err
[ $? = 2 ] && [ ! -s out ] && grep -q "^block: rank 0: .*SBUF" err || fail "what does not fit SBUF: $(cat err)"
use moe
refuses "--top 9: expected a whole number from 1 to 8" --top 9
refuses "--top 4: there are 3 experts" --ranks 3 --top 4
refuses "64 ranks of 2048 tokens of width 256 are more than 2^24 numbers, which a core's counts hold" --tokens 2048 \
    --width 256

# ---- the block ----

use block
same --ranks 4
counts=5 same --ranks 7 --tokens 8 --width 16 --no-check # 7 chips for 5 processes: 2, 1, 2, 1, 1
says "what all ranks have to have alike is alike"
works --tokens 32 --width 64
says "projections 4 of 4 have the bits of trn_sharded_matmul"
says "plan        expects "
[ "$(grep -c '^            because of ' out)" = 3 ] || fail "the plan's time is not explained: $(cat out)"
works --system trn3-gen2-ultraserver --forward --tokens 16 --width 64 --head 8 # 144 chips
says "projections 4 of 4 have the bits of trn_sharded_matmul"
grep -q FAILED out && fail "an error is too large: $(cat out)"
# Odd sizes: short tiles at every end, several ranks on a chip, other seeds, one rank.
works --ranks 3 --tokens 200 --width 300 --heads 6 --head 24 --ffn 390 --seed 2
works --ranks 8 --chips 4 --tokens 5 --width 40 --heads 16 --head 128 --ffn 8 --seed 3
works --ranks 1 --tokens 1 --width 1 --head 1 --ffn 1
works --ranks 1 --tokens 257 --width 130 --head 16 --ffn 520 --seed 4
works --ranks 4 --spread 10 # scores far beyond what an exponential takes
works --ranks 2 --system trn3-gen1-ultraserver --tokens 130 --width 129 --head 65 --ffn 130
works --ranks 4 --json block.json --trace trace.json
json block.json
json trace.json
for key in digest time_s errors alike; do grep -q "\"$key\": " block.json || fail "block.json has no $key"; done
grep -q 'r3 TensorE' trace.json && grep -q 'r0 CC' trace.json || fail "trace.json has no track for each engine"
[ "$(grep -c '"passed": true' block.json)" = 8 ] || fail "block.json: not eight errors within their bounds"
works --ranks 4 --json -
cmp -s out block.json || fail "--json - is not what --json FILE writes"

# ---- ring attention ----

use ring_attention
same --ranks 8
says "without overlap the same"
works --ranks 4 --causal --tokens 200 --heads 2 --head 40
works --ranks 16 --chips 4 --tokens 3 --causal --seed 2
works --ranks 1 --tokens 130 --head 128
works --ranks 4 --spread 200 # scores far beyond what an exponential takes
works --ranks 8 --json ring.json --trace trace.json
json ring.json
json trace.json
if command -v python3 >/dev/null; then
    python3 - ring.json <<'END' || fail "the overlap does not help: $(cat ring.json)"
import json, sys
r = json.load(open(sys.argv[1]))
assert 1.2 * r["time_s"] < r["without_overlap_s"] < 3 * r["time_s"]
END
fi

# ---- experts ----

use moe
same --ranks 8
says "; 0 choices are wrong"
works --ranks 12 --tokens 200 --width 96 --ffn 200 --top 3 --seed 2
works --ranks 24 --chips 12 --tokens 5 --width 33 --ffn 7 --top 8
works --ranks 3 --tokens 2 --top 3 # fewer experts than max8 compares
works --ranks 1 --top 1 --tokens 129
works --ranks 40 --tokens 1 --top 1 # many experts have nothing to do
works --ranks 8 --json moe.json --trace trace.json
json moe.json
json trace.json

exit $failed
