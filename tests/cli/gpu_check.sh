#!/bin/sh
# The program gpu_check, with a stand-in for the driver (tests/gpu/fake): every chip agrees with its preset, every fault
# of a chip is found, every call that fails is one sentence.
# Usage: tests/cli/gpu_check.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
program=$1/gpu_check
fake=$1/gpu_fake
. "$(dirname -- "$0")/lib/program.sh"
unset FAKE_CUDA_CAPABILITY FAKE_CUDA_FAIL FAKE_CUDA_ERROR FAKE_CUDA_DEVICES FAKE_CUDA_FAULT

# ---- without a GPU ----

refuses "--cases 0: expected a whole number from 1 to 4611686018427387903" --cases 0
refuses "--seconds x: expected a whole number from 1 to 1000000" --seconds x
refuses "--device -1: expected a whole number from 0 to 1023" --device -1
refuses "--capability goes with --list" --capability 90
refuses "--ptx none: no instruction has this name; --list prints them" --ptx none
refuses "no instruction has such a name or such a chip; --list prints them" --list --only none
refuses "--frob is not an option of gpu_check; gpu_check --help lists them" --frob
for word in --help --version --list; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "$word: nothing on standard output, or something on standard error"
done
works --list --capability 90
says "wgmma.e4m3.m64n8k32        nv_hopper_fp8  yes"

LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# ends STATUS "SENTENCE" ARGUMENTS...: one line on standard error, and this status
ends() {
    wanted=$1
    sentence=$2
    shift 2
    "$program" "$@" >out 2>err
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit $status, expected $wanted"
    [ "$(cat err)" = "gpu_check: $sentence" ] || fail "$*: it said: $(cat err)"
}

FAKE_CUDA_DEVICES=0 ends 77 "there is no GPU here: the driver counts none"
FAKE_CUDA_FAIL=cuInit FAKE_CUDA_ERROR=100 ends 77 "there is no GPU that works here: the driver says CUDA error 100"
FAKE_CUDA_FAIL=cuInit ends 2 "cuInit: unknown error (CUDA error 999)"
FAKE_CUDA_FAIL=cuInit FAKE_CUDA_ERROR=4 ends 2 "cuInit: an error that the driver has no words for (CUDA error 4)"
FAKE_CUDA_CAPABILITY=61 ends 77 \
    "no instruction of the Fake, \"0\" (compute capability 6.1) is known here; --list prints them"
ends 2 "no instruction of the Fake, \"0\" (compute capability 9.0) is asked for; --list prints them" --only none
ends 2 "--device 1: there are 1, counted from 0" --device 1
for call in cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute \
    cuDevicePrimaryCtxRetain cuCtxSetCurrent; do
    FAKE_CUDA_FAIL=$call ends 2 "$call: unknown error (CUDA error 999)" --cases 1
done

# ---- every chip agrees with its preset ----

# column NAME: that column of out, a CSV in which only the device's name has quotes
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }' out
}

cases=4000
[ "${TRN_TEST_LEVEL:-1}" -lt 2 ] || cases=200000
for chip in 70 72 75 80 86 89 90 100 103 120; do
    FAKE_CUDA_CAPABILITY=$chip works --all --cases $cases --save - --seed $chip
    [ "$(column cases)" = "$(column equal)" ] || fail "chip $chip differs: $(cat out)"
    [ "$(column unit | wc -l)" -ge 2 ] || fail "chip $chip: too few instructions: $(cat out)"
    [ -z "$(column cases | awk -v least=$cases '$1 < least')" ] || fail "chip $chip: too few cases: $(cat out)"
done

# ---- every fault is found ----

# finds FAULT CHIP UNIT...: with it each of these instructions differs, and the first difference is told
finds() {
    fault=$1
    chip=$2
    shift 2
    for unit; do
        FAKE_CUDA_FAULT=$fault FAKE_CUDA_CAPABILITY=$chip "$program" --all --cases 8000 --only "$unit" >out 2>err
        status=$?
        [ $status = 1 ] || fail "$fault of chip $chip is not found by $unit: exit $status: $(cat out err)"
        says 'first difference, "'
    done
}

for fault in bit_more bit_less result_less nearest; do
    finds $fault 70 mma.f16.m8n8k4
    finds $fault 80 mma.f16.m16n8k16 mma.bf16.m16n8k16 mma.tf32.m16n8k8
    finds $fault 89 mma.e4m3.m16n8k32 mma.e5m2.m16n8k32
    finds $fault 90 mma.f16.m16n8k16 wgmma.bf16 wgmma.tf32 wgmma.e4m3.m64 wgmma.e5m2
    finds $fault 120 mma.mxfp8_e4m3 mma.mxfp4
done
finds block_half 70 mma.f16.m8n8k4
finds block_half 90 mma.f16.m16n8k16 wgmma.e4m3.m64
finds block_double 80 mma.f16.m16n8k16 mma.bf16.m16n8k16
finds floor 80 mma.bf16.m16n8k16
finds flush 75 mma.f16.m16n8k8
finds flush 90 wgmma.f16.m64n8k16 wgmma.e5m2
finds tf32_rounded 90 mma.tf32.m16n8k8 wgmma.tf32
for fault in lanes_a registers_b lanes_d; do # the fragments' layout
    finds $fault 70 mma.f16.m8n8k4
    finds $fault 75 mma.int8.m8n8k16
    finds $fault 90 mma.f16.m16n8k8 mma.bf16.m16n8k16 mma.tf32.m16n8k4 mma.e4m3.m16n8k32 mma.int8.m16n8k32
    finds $fault 120 mma.mxfp4
done
finds lanes_a 90 wgmma.f16.m64n8k16 wgmma.tf32 wgmma.int8
finds lanes_d 90 wgmma.f16.m64n8k16 wgmma.tf32 wgmma.int8

# A difference comes with its operands: 16 codes of four digits each, C, the device's result and ours.
FAKE_CUDA_FAULT=bit_less "$program" --cases 8000 --only mma.bf16.m16n8k16 >out 2>err
grep -Eq '^  nv_hopper bfloat16 bfloat16 [0-9a-f]{64} [0-9a-f]{64} [0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}$' out ||
    fail "a difference without its operands: $(cat out)"
says 'differences in "'

# ---- a call that fails while it works: a sentence, and the next instruction is asked ----

for call in cuModuleLoadDataEx cuModuleGetFunction cuMemAlloc_v2:3 cuMemcpyHtoD_v2:2 cuLaunchKernel cuCtxSynchronize \
    cuMemcpyDtoH_v2; do
    FAKE_CUDA_FAIL=$call "$program" --cases 100 --only bf16 >out 2>err
    status=$?
    [ $status = 2 ] || fail "$call: exit $status, expected 2"
    told=${call%%:*}
    grep -q "^mma.bf16.m16n8k8 *${told%_v2}: unknown error (CUDA error 999)\$" out ||
        fail "$call is not told: $(cat out)"
    grep -Eq '^mma.bf16.m16n8k16 .* 128 +128 +0 ' out || fail "$call ends everything: $(cat out)"
done

# ---- files, time, seeds ----

works --cases 100 --only bf16 --save results.csv
says 'mma.bf16.m16n8k8'
columns=unit,format,preset,cases,equal,claimed,source,seed,seconds,gpu,capability,driver,error
[ "$(head -n 1 results.csv)" = $columns ] ||
    fail "the CSV begins with: $(head -n 1 results.csv)"
grep -q '^mma.bf16.m16n8k16,bfloat16,nv_hopper,128,128,yes,.*,"Fake, ""0""",9.0,' results.csv ||
    fail "$(cat results.csv)"
refuses "--save /nonexistent/x.csv: it cannot be created (No such file or directory)" --save /nonexistent/x.csv
works --seconds 3 --cases 100000000000 --only mma.f16.m16n8k16
says "the time was over before 100,000,000,000 cases"
FAKE_CUDA_FAULT=bit_less "$program" --cases 2000 --only mma.bf16.m16n8k16 --seed 5 >one 2>err
FAKE_CUDA_FAULT=bit_less "$program" --cases 2000 --only mma.bf16.m16n8k16 --seed 5 >two 2>err
FAKE_CUDA_FAULT=bit_less "$program" --cases 2000 --only mma.bf16.m16n8k16 --seed 6 >three 2>err
cmp -s one two || fail "one seed, two runs"
cmp -s one three && fail "two seeds, one run"

[ $failed = 0 ] && echo "gpu_check: all is well"
exit $failed
