#!/bin/sh
# The program run of examples/kernels as a user meets it: every kernel on every generation within its error bound, what
# a generation refuses, the files it writes, real inputs, and one sentence for each mistake.
# Usage: tests/cli/kernels.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
data=$(CDPATH= cd -- "$(dirname -- "$0")/../data" && pwd)
program=$1/kernels/run
. "$(dirname -- "$0")/lib/program.sh"

json() {
    if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"; fi
}

# ---- usage ----

refuses "frob is not a kernel; run --list names them" frob
refuses "--frob is not an option of run; run --help lists them" --frob
refuses "--seed needs a value: N" --seed
refuses "--seed x: expected a whole number" --seed x
refuses "--generation trn9: expected trn1, trn2, trn3 or all" --generation trn9
refuses "--trace and --svg show one kernel on one generation" --trace t.json softmax
refuses "--trace and --svg show one kernel on one generation" --svg t.svg --generation trn2
refuses "--json - and --csv - exclude each other" --json - --csv -
refuses "--size rows: expected NAME=N with commas between" softmax --size rows
refuses "--size rows=x: expected NAME=N with commas between" softmax --size rows=x
refuses "--size hidden: no kernel that runs has this size; run --list names them" softmax --size hidden=128
refuses "softmax: rows is 0; this kernel takes 1 to 65536" softmax --size rows=0
refuses "gelu_mlp: columns is 100; this kernel takes 128 to 4096 in steps of the first" gelu_mlp --size columns=100
refuses "--json /nonexistent/x.json: it cannot be created (No such file or directory)" rope --json /nonexistent/x.json
for word in --help --version --list; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "run $word: nothing on standard output, or something on standard error"
done

# ---- everything, small ----

works --size rows=128,columns=256,hidden=512,n=256,states=3 softmax rmsnorm layernorm rope gelu_mlp swiglu_mlp matmul \
    mamba_scan topk_router mlp_int8 mlp_fp8 mlp_mxfp8 --json all.json --csv all.csv
cp out table
works flash_attention --size rows=256,columns=64
cat out >>table
grep -q FAILED table && fail "a kernel is beyond its bound: $(grep FAILED table)"
[ "$(grep -c '  not legal: ' table)" = 4 ] || fail "not four refusals: $(cat table)"
[ "$(grep -c '; error: ' table)" = 35 ] || fail "not every run explains its error: $(cat table)"
grep -q "$(printf '\033')" table && fail "colours in a file"
json all.json
[ "$(grep -c '^  {"kernel": ' all.json)" = 36 ] || fail "all.json has not 36 runs"
[ "$(grep -c '"passed": true' all.json)" = 37 ] || fail "all.json: not all passed"
[ "$(wc -l <all.csv)" = 37 ] || fail "all.csv has not a head and 36 lines"
cp table out
says "stationary is int8, which Trainium2 does not multiply"
says "stationary is int8, which Trainium3 does not multiply"
says "quantize_mx is not available on Trainium1"
says "quantize_mx is not available on Trainium2"

# Odd sizes: short tiles at every end.
works softmax rmsnorm layernorm mamba_scan --size rows=131,columns=77
works rope --size rows=3,columns=2
works matmul --size rows=300,columns=130,n=515
works layernorm --size rows=1,columns=1300
works gelu_mlp swiglu_mlp --size rows=33,columns=640,hidden=128 --generation trn1
works mlp_fp8 --size rows=5,columns=256,hidden=256
works mlp_mxfp8 --size rows=6,columns=640,hidden=512 --generation trn3
works topk_router --size rows=130,columns=40,top=24
works flash_attention --size rows=768,columns=32 --generation trn3

# One seed, one result; another seed, another.
works softmax --size rows=8 --csv one.csv
works softmax --size rows=8 --csv two.csv --seed 1
cmp -s one.csv two.csv || fail "one seed, two results"
works softmax --size rows=8 --csv two.csv --seed 2
cmp -s one.csv two.csv && fail "two seeds, one result"
works softmax --size rows=8 --csv -
cmp -s out one.csv || fail "--csv - is not what --csv FILE writes"

# ---- the timeline ----

works flash_attention --generation trn2 --size rows=512 --trace trace.json --svg picture.svg
json trace.json
grep -q '</svg>' picture.svg || fail "picture.svg does not end"
for engine in TensorE VectorE ScalarE GpSimdE DMA; do
    grep -q "$engine" trace.json || fail "trace.json has no track of $engine"
    grep -q "$engine" picture.svg || fail "picture.svg has no lane of $engine"
done
if command -v python3 >/dev/null; then
    python3 - trace.json <<'END' || fail "trace.json: events of one track overlap, or an engine has none"
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
tracks = {}
for e in events:
    tracks.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
assert len(tracks) == 5, len(tracks)
for spans in tracks.values():
    spans.sort()
    assert all(a[1] <= b[0] + 1e-9 for a, b in zip(spans, spans[1:]))
END
fi

# The picture that the README shows is what the program draws.
works flash_attention --generation trn2 --svg flash_attention.svg
cmp -s flash_attention.svg "$data/../../examples/flash_attention.svg" ||
    fail "examples/flash_attention.svg is old: run flash_attention --generation trn2 --svg examples/flash_attention.svg"

# ---- real inputs ----

works softmax rope --input "$data/a_f4.npy" --csv one.csv # the same numbers, twice
works softmax rope --input "$data/a_f2.npy" --csv two.csv
[ "$(grep -c ',9x140,yes,' one.csv)" = 6 ] || fail "a_f4.npy is not what ran: $(cat one.csv)"
cmp -s one.csv two.csv || fail "float32 and float16 inputs differ"
works softmax --input "$data/b_f4.npy" --csv one.csv
works softmax --input "$data/b_f4_fortran.npy" --csv two.csv
cmp -s one.csv two.csv || fail "the order of an input's axes matters"
cp "$data/a_f4.npy" zeros.npy # no signal, and no noise
dd if=/dev/zero of=zeros.npy bs=4 seek=32 count=1260 conv=notrunc 2>dd.log
works rmsnorm --generation trn2 --input zeros.npy
says " inf "
! grep -q nan out || fail "what has neither signal nor noise has no ratio: $(cat out)"
refuses "missing.npy: it cannot be opened (No such file or directory)" softmax --input missing.npy
refuses "$data/a_bf16.npy: its type is <u2; float32 (<f4) and float16 (<f2) are read" softmax --input "$data/a_bf16.npy"
cp "$data/a_f4.npy" infinite.npy
printf '\000\000\200\177' | dd of=infinite.npy bs=1 seek=$((128 + 4 * 142)) conv=notrunc 2>dd.log
refuses "infinite.npy: element [1, 2] is not finite" softmax --input infinite.npy
refuses "$data/rank3.npy: it has 3 axes; a kernel's input is a matrix" softmax --input "$data/rank3.npy"
refuses "--size: rows and columns are those of $data/a_f4.npy" softmax --input "$data/a_f4.npy" --size rows=4

exit $failed
