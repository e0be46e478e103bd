#!/bin/sh
# The program probe as a user meets it: exit codes, one sentence for each mistake, the directory, and the loop from
# inputs over outputs to the setting that made them.
# Usage: tests/cli/probe.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
probe=$1/probe program=$1/probe
. "$(dirname -- "$0")/lib/program.sh"

# ---- usage ----

refuses "one of --write, --run, --identify, --self-test, --list is needed; probe --help tells more"
refuses "--write, --run, --identify, --self-test and --list exclude each other; probe --help tells more" \
    --write a --run a
refuses "--frob is not an option of probe; probe --help lists them" --frob
refuses "--write needs a value: DIR" --write
refuses "--generation trn9: expected trn1, trn2 or trn3" --write a --generation trn9
refuses "--generation goes with --write" --run a --generation trn1
refuses "--numerics goes with --run" --identify a --numerics chains=1
refuses "--json goes with --identify" --run a --json -
refuses "--seed goes with --run or --self-test" --identify a --seed 1
refuses "--seed x: expected a whole number" --run a --seed x
refuses "--self-test -1: expected a whole number from 0 to 1000000" --self-test -1
refuses "--numerics chains=3: chains takes 1, 2, 4, 8, 16, not '3'" \
    --run a --numerics chains=3
for what in --identify --run; do
    refuses "missing/generation.txt: it cannot be opened (No such file or directory); probe --write makes such a \
directory" $what missing
done
refuses "/proc/none: it cannot be created (No such file or directory)" --write /proc/none
for word in --help --version --list; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "probe $word: nothing on standard output, or something on standard error"
done

# ---- the directory ----

for generation in trn1 trn2 trn3; do
    works --write $generation --generation=$generation
    tiles=$(ls $generation/in | grep -c '_stationary.npy$')
    [ "$(grep -c '^    ("' $generation/probe_kernel.py)" = "$tiles" ] ||
        fail "$generation: the kernel does not run all $tiles tiles"
    [ "$(grep -c '^| `[a-z0-9_]*` | ' $generation/README.md)" = "$tiles" ] ||
        fail "$generation: the README does not list $tiles tiles"
    # Whatever calls NKI or PyTorch has not been run, and says so.
    grep -E '(nki|nisa|nl|torch)(\.|$)|import (nki|torch)' $generation/probe_kernel.py |
        grep -vE '^#|# untested$' >unmarked
    [ ! -s unmarked ] || fail "$generation: untested lines without a mark: $(cat unmarked)"
    if command -v python3 >/dev/null; then
        python3 -c "compile(open('$generation/probe_kernel.py').read(), 'probe_kernel.py', 'exec')" ||
            fail "$generation: no Python"
    fi
done
refuses "trn1/out: it holds no outputs; run probe_kernel.py on a chip, or probe --run" --identify trn1

# ---- the loop ----

# loop GENERATION NUMERICS EXPECTED: run as NUMERICS, find EXPECTED
loop() {
    works --run "$1" --force --numerics "$2"
    works --identify "$1"
    [ "$(grep '^match: ' out)" = "match: $3" ] || fail "$1 as '$2' is identified as: $(cat out)"
}

loop trn1 "" "the defaults"
loop trn1 "int32_overflow=saturate,fp8_bias=5" "fp8_bias=5,int32_overflow=saturate"
loop trn2 "chains=16,chain_layout=blocked,merge=pairwise,product=bf16" \
    "chains=16,chain_layout=blocked,merge=pairwise,product=bf16"
loop trn2 "accumulator=toward_zero,accumulator_bits=53,flush_sums=on" \
    "accumulator=toward_zero,accumulator_bits=53,flush_sums=on"
loop trn2 "chains=1,merge=pairwise,fp32_mode=split" "chains=1,fp32_mode=split"
says "merge             any: two sums are added in one way only"
loop trn2 nv_hopper "accumulator=aligned,aligned_bytes=32,aligned_bits=25,aligned_floor=133,\
aligned_rounding=toward_zero,tf32_input=truncate"
loop trn3 "accumulator=exact,chains=8" "accumulator=exact"
loop trn3 "group=exact,psum_format=bfloat16" "group=exact,psum_format=bfloat16"
loop trn3 "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=2" \
    "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=2"

# Two runs with one seed are the same, with another seed they differ, and both are recognised.
works --run trn3 --force --numerics psum_format=bfloat16,psum_rounding=stochastic --seed 5
cp trn3/out/psum_bf16.npy five.npy
works --run trn3 --force --numerics psum_format=bfloat16,psum_rounding=stochastic --seed 5
cmp -s five.npy trn3/out/psum_bf16.npy || fail "one seed, two samples"
works --run trn3 --force --numerics psum_format=bfloat16,psum_rounding=stochastic --seed 6
cmp -s five.npy trn3/out/psum_bf16.npy && fail "two seeds, one sample"
works --identify trn3
says "(open: these outputs do not tell which)"

# ---- what is missing stays open ----

works --run trn2 --force
rm trn2/out/tf32_input.npy
works --identify trn2
says "tf32_input        nearest_even, truncate   (open; tile tf32_input, every generation, was not run)"
says "group             not seen: tile quad (trn3) was not run"

# ---- what contradicts ----

cp -R trn2 other
works --run other --force --numerics chains=16,chain_layout=blocked
cp other/out/order_f32.npy trn2/out/
"$probe" --identify trn2 --json both.json >out 2>err
[ $? = 1 ] || fail "outputs of two engines match one setting"
says "no setting predicts these outputs; the nearest: the defaults"
says "order_f32              [0, 0] is 0x1p-28, expected 0x0p+0"
says "each path through the array by itself:"
grep -q "$(printf '\033')" out && fail "colours in a file"

"$probe" --identify trn2 --json - >out 2>err
cmp -s out both.json || fail "--json - is not what --json FILE writes"
says '"match": false'
says '{"name": "order_f32", "outputs": 24, "contradictions": 12, "element": [0, 0], '\
'"seen": "0x1p-28", "expected": "0x0p+0"}'
if command -v python3 >/dev/null; then
    python3 -m json.tool both.json >/dev/null || fail "both.json is not JSON"
fi
refuses "--json /nonexistent/x.json: it cannot be created (No such file or directory)" \
    --identify trn2 --json /nonexistent/x.json

# ---- what is there stays ----

refuses "trn2: it is there already; --force replaces it" --write trn2
refuses "trn2/out: it is there already; --force replaces it" --run trn2
refuses "--force goes with --write or --run" --identify trn2 --force
mkdir mine && echo >mine/notes
refuses "mine: it is not what probe --write makes, and --force replaces nothing else" --write mine --force
echo >trn2/out/notes
refuses "trn2/out: it has more in it than outputs, and --force replaces nothing else" --run trn2 --force
rm trn2/out/notes
refuses "--json trn2/README.md: it would replace the input" --identify trn2 --json trn2/README.md

# ---- bad files ----

cp trn2/in/order_f32_moving.npy kept.npy
cp trn2/in/order_bf16_moving.npy trn2/in/order_f32_moving.npy
refuses "trn2/in/order_f32_moving.npy: it is not the input that this version of probe writes" --identify trn2
cp kept.npy trn2/in/order_f32_moving.npy
cp trn2/out/bits_f32.npy trn2/out/order_f32.npy
refuses "trn2/out/order_f32.npy: expected 2 x 12 numbers of type <f4" --identify trn2
head -c 100 trn2/out/bits_f32.npy >trn2/out/order_f32.npy
refuses "trn2/out/order_f32.npy: its header claims 118 bytes but the file ends after 90" --identify trn2
echo trn9 >trn2/generation.txt
refuses "trn2/generation.txt: expected trn1, trn2 or trn3" --identify trn2

# ---- 200 random settings recovered, and every setting of the array told from every other ----

settings=200
[ "${TRN_TEST_LEVEL:-1}" -ge 2 ] && settings=3000
works --self-test $settings
says "recovered $settings of $settings random settings"
says "told apart 173120 of 173120 settings of the array"
cat out

[ $failed = 0 ] && echo "probe: all is well"
exit $failed
