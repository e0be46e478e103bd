#!/bin/sh
# Releases, calibration files and fits as a user of both programs meets them: a machine with other numbers is made up,
# its times are printed as nccom-test prints them, and the fit finds the numbers again.
# Usage: tests/cli/calibration.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
models=$(CDPATH= cd -- ../examples/tools/shardplan/models && pwd)
planner=$1/shardplan
program=$1/trnbench
. "$(dirname -- "$0")/lib/program.sh"

# one FIELD FILE: the values of that column of a CSV, one a line
one() {
    sed 's/"[^"]*"/quoted/g' "$2" |
        awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }'
}

# more THEN A B: is B more than THEN times A?
more() { awk -v f="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(b > f * a) }'; }

# ---- releases ----

works collective -b 1K -e 1K --csv newer.csv
works collective -b 1K -e 1K --release older --csv older.csv
[ "$(one time_us newer.csv)" != "" ] || fail "no time: $(cat newer.csv)"
[ "$(one bound_us newer.csv)" = "$(one bound_us older.csv)" ] || fail "the bound depends on the release"
more 5 "$(one expected_us newer.csv)" "$(one expected_us older.csv)" ||
    fail "older software starts as fast as newer: $(cat newer.csv older.csv)"
refuses "--release latest: expected newer or older" collective --release latest

# ---- files ----

printf 'release = newer\nhbm = 0.21 # of its rate\nlaunch_s = 0.000005\n' >mine
works collective -b 1G -e 1G --csv usual.csv
works collective -b 1G -e 1G --calibration mine --csv mine.csv
more 1.3 "$(one expected_us usual.csv)" "$(one expected_us mine.csv)" ||
    fail "--calibration changes nothing: $(cat usual.csv mine.csv)"
cp mine.csv before.csv
{ printf '\357\273\277'; sed 's/$/\r/' mine; } >marked # as an editor of Windows keeps it
works collective -b 1G -e 1G --calibration marked --csv marked.csv
cmp -s mine.csv marked.csv || fail "a mark and other ends of lines change a calibration: $(cat marked.csv)"
printf 'hbm = 0.2\nhbn = 0.4\n' >wrong
refuses '--calibration wrong: line 2: "hbn" is no field of a calibration' collective --calibration wrong
printf 'hbm = 20\n' >wrong
refuses '--calibration wrong: line 1: hbm = 20: expected 0, or 1e-06 to 1' collective \
    --calibration wrong
refuses '--calibration nowhere: it cannot be opened (No such file or directory)' collective --calibration nowhere
cmp -s mine.csv before.csv || fail "a refusal wrote mine.csv"

# ---- fits ----

# table OP RANKS INSTANCES SYSTEM SIZES...: as nccom-test would print it on the machine of the file truth
table() {
    op=$1 ranks=$2 instances=$3 system=$4
    shift 4
    echo "$ nccom-test -r $ranks -N $instances -d fp32 $op"
    echo "  size(B)  count(elems)  type  time:avg(us)  algbw(GB/s)  busbw(GB/s)"
    for size in "$@"; do
        "$program" collective "$op" -r "$ranks" --wire f32 --system "$system" -b "$size" -e "$size" \
            --calibration truth --csv - >row.csv 2>row.err || fail "$op $ranks $size: $(cat row.err)"
        echo "$(one size_b row.csv) 0 fp32 $(one expected_us row.csv) 0 0"
    done
    echo "Avg bus bandwidth: 1.0GB/s"
}

printf 'launch_s = 0.000009\nstep_s = 0.0000011\ntorus = 0.37\nhbm = 0.27\n' >truth
{
    table allg 32 1 trn1.32xlarge 1K 64K 1M 16M 256M
    table allr 2 1 trn1.32xlarge 1K 1M 16M 256M
    table allr 32 1 trn1.32xlarge 1K 64K 4M 64M 1G
} >log
works collective --calibrate log --system trn1.32xlarge --csv fit.csv -b 1K -e 1K
[ -s log.calibration ] || fail "no log.calibration"
for pair in $(sed 's/ = /=/' truth); do
    field=${pair%%=*} value=${pair#*=}
    found=$(awk -v f="$field" '$1 == f { print $3 }' log.calibration)
    more 0.98 "$value" "$found" && more 0.98 "$found" "$value" ||
        fail "$field is $value and was found as $found"
done
says "measured_us"
works collective -b 1M -e 1M --system trn1.32xlarge --calibration log.calibration
works collective --calibrate - --system trn1.32xlarge -b 1K -e 1K <log

echo '{"results": [{"size(B)": 1024, "type": "fp32", "time:avg(us)": 21.5}, {"size(B)": 1048576, "type": "fp32",
"time:avg(us)": 80.25}, {"size(B)": 268435456, "type": "fp32", "time:avg(us)": 8000}]}' >report.json
works collective all_gather -r 32 --calibrate report.json --system trn1.32xlarge -b 1K -e 1K
[ -s report.json.calibration ] || fail "no report.json.calibration"

cp log.calibration kept
: >empty
refuses "--calibrate empty: no row of nccom-test: expected the columns size(B) and time(us)" \
    collective --calibrate empty
refuses "--calibrate nowhere: it cannot be opened (No such file or directory)" collective --calibrate nowhere
echo '{"results": [{"size(B)": "many"}]}' >wrong.json
refuses "--calibrate wrong.json: result 1 has no size(B) from 1 to 1e18" collective --calibrate wrong.json
[ ! -e empty.calibration ] && [ ! -e wrong.json.calibration ] || fail "a refusal wrote a calibration"
cmp -s kept log.calibration || fail "a refusal changed log.calibration"

# ---- the planner takes the same ----

program=$planner name=shardplan
works "$models/llama-3-8b.json" --system trn1.32xlarge --tp 8 --top 1 --csv usual.csv
works "$models/llama-3-8b.json" --system trn1.32xlarge --tp 8 --top 1 --calibration log.calibration --csv slow.csv
more 1 "$(one expected_s usual.csv | head -n 1)" "$(one expected_s slow.csv | head -n 1)" ||
    fail "a slower network makes no plan slower: $(head -n 2 usual.csv slow.csv)"
[ "$(one time_s usual.csv | head -n 1)" != "" ] || fail "no ideal time: $(head -n 2 usual.csv)"
rm log.calibration
works "$models/llama-3-8b.json" --system trn1.32xlarge --tp 8 --top 1 --calibrate log
cmp -s kept log.calibration || fail "both programs fit the same file to different numbers: $(diff kept log.calibration)"
refuses '--calibration wrong: line 1: hbm = 20: expected 0, or 1e-06 to 1' \
    "$models/llama-3-8b.json" --calibration wrong

# ---- what serving benchmarks and profiles say ----

# A planner with other numbers is made up; what it expects is what a benchmark would have printed.
serve="$models/llama-3-8b.json --system trn2.48xlarge --chips 2 --job decode --tp 8 --lnc 2 --top 1"
slow=kernel_s=3e-5,hbm_share=0.6,first_s=0.02
for batch in 1 16; do
    works $serve --batch $batch --prompt 1000 --seq 1250 --csv true.csv --assume $slow
    tpot=$(awk "BEGIN { print 1000 * $(one expected_s true.csv) }")
    ttft=$(awk "BEGIN { print 1000 * $(one expected_ttft_s true.csv) }")
    echo "{\"max_concurrency\": $batch, \"completed\": 10,
        \"total_input_tokens\": 10000, \"total_output_tokens\": 2500,
        \"median_ttft_ms\": $ttft, \"mean_ttft_ms\": 9999, \"median_tpot_ms\": $tpot}" >vllm$batch.json
done
echo "Metric,avg,min,p50
Time To First Token (ms),\"9,999\",1,$ttft
Inter Token Latency (ms),9999,1,$tpot
Input Sequence Length (tokens),1000,1000,1000
Output Sequence Length (tokens),250,250,250" >genai.csv
echo "{\"time_to_first_token\": {\"unit\": \"ms\", \"avg\": $ttft},
    \"inter_token_latency\": {\"avg\": 1, \"p50\": $tpot},
    \"input_config\": {\"loadgen\": {\"concurrency\": 16}}, \"input_sequence_length\": {\"avg\": 1000},
    \"output_sequence_length\": {\"avg\": 250}}" >genai.json
for kept in vllm16.json genai.csv; do # as a spreadsheet or an editor of Windows keeps it
    works $serve --batch 16 --calibrate $kept
    cp out plain.out
    mkdir -p marked.d
    { printf '\357\273\277'; sed 's/$/\r/' $kept; } >marked.d/$kept
    (cd marked.d && works $serve --batch 16 --calibrate $kept && cmp -s out ../plain.out) ||
        fail "a mark before $kept changes what it says"
done
works $serve --batch 16 --calibrate vllm1.json --calibrate vllm16.json --calibrate genai.csv --calibrate genai.json
[ "$(awk '/^  (vllm|genai).*token/ { if ($NF < 0.97 || $NF > 1.03) exit; n++ } END { print n }' out)" = 8 ] ||
    fail "not eight rows within 3 % after the fit: $(cat out)"
says "first_s"
works $serve --batch 16 --prompt 1000 --seq 1250 --calibration vllm1.json.calibration --csv found.csv
more 0.97 "$(one expected_s found.csv)" "$(one expected_s true.csv)" &&
    more 0.97 "$(one expected_s true.csv)" "$(one expected_s found.csv)" || fail "--calibration forgets plan. numbers"
works $serve --calibration vllm1.json.calibration --assume kernel_s=1 --csv asked.csv
more 100 "$(one expected_s found.csv)" "$(one expected_s asked.csv)" || fail "--assume comes after a calibration"
summary='"total_time": 0.01, "hbm_read_bytes": 2e9, "hbm_write_bytes": 1e8, "dma_active_time": 0.0056'
echo "{\"f00\": {$summary, \"hfu_estimated_percent\": 0.2, \"tensor_engine_active_time_percent\": 0.4}}" >profile.json
works $serve --calibrate profile.json
says "tensor_share        0.5, 0.46 before"
grep -q '^plan.hbm_share = 0.517' profile.json.calibration || fail "a profile's HBM: $(cat profile.json.calibration)"
printf 'total_time,hbm_read_bytes,hbm_write_bytes,dma_active_time\n0.01,2e9,1e8,0.0056\n' >profile.csv
works $serve --calibrate profile.csv
says "hbm_share        0.5172, 0.8 before"
program=$1/trnbench
"$program" collective -b 1K -e 1K --calibration vllm1.json.calibration >out 2>err || fail "trnbench: $(cat err)"
program=$planner
echo '{"median_ttft_ms": -3}' >wrong.json
refuses "--calibrate wrong.json: neither a time to the first token nor one of a token between 0 and 10000 s" \
    $serve --calibrate wrong.json
echo '{"total_time": 1}' >wrong.json
refuses "--calibrate wrong.json: a summary without hbm_read_bytes, hbm_write_bytes and dma_active_time, and \
without hfu_estimated_percent and tensor_engine_active_time_percent" $serve --calibrate wrong.json
echo 'PAR1' >wrong.parquet
refuses "--calibrate wrong.parquet: it is parquet: neuron-explorer view --output-format summary-json prints the same \
as JSON, and pandas (read_parquet, to_csv) makes CSV of it" \
    $serve --calibrate wrong.parquet
echo '{"median_tpot_ms": 9, "mean_ttft_ms": 9, "max_concurrency": 1000000}' >wrong.json
refuses "--calibrate wrong.json: no plan serves 1000000 sequences: HBM short by 250338.4 GiB: 250434.4 of 96 GiB, \
250000.0 of them KV cache" $serve --calibrate wrong.json
printf 'plan.luck = 3\n' >wrong
refuses "--calibration wrong: plan.luck: no such assumption; --assumptions lists them" $serve --calibration wrong
cp log log2
refuses "--calibrate log2: one output of nccom-test at a time: put the tables into one file" \
    "$models/llama-3-8b.json" --system trn1.32xlarge --tp 8 --top 1 --calibrate log --calibrate log2

[ $failed = 0 ] && echo "calibration: all as it should be"
exit $failed
