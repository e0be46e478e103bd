#!/bin/sh
# What if a number were another one, as a user of shardplan meets it: each row of a sweep and of a tornado is what a
# plain run with that value gives, to the last digit; money and energy are what a hand calculates; a pool of KV caches;
# and one sentence for each mistake. Usage: tests/cli/whatif.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
topologies=$(CDPATH= cd -- "$(dirname -- "$0")/../../examples/topologies" && pwd) || exit 1
models=$(CDPATH= cd -- "$(dirname -- "$0")/../../examples/tools/shardplan/models" && pwd)
program=$1/shardplan
[ -x "$program" ] || { echo "SKIP shardplan: it was not built (cJSON is not installed)"; exit 0; }
. "$(dirname -- "$0")/lib/program.sh"
small=$models/llama-3-8b.json
large=$models/llama-3-70b.json

json() {
    if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"; fi
}

# ---- mistakes ----

refuses "--sweep link_rate: expected NAME=A,B,C or NAME=FROM:TO[:STEPS]" "$small" --sweep link_rate
refuses "--sweep luck=1,2: no number is called luck; --help and --assumptions list them" "$small" --sweep luck=1,2
refuses "--sweep link_rate=1:2:1: expected a whole number from 2 to 1000" "$small" --sweep link_rate=1:2:1
refuses "--sweep link_rate=1:x: expected a number, 0 or more" "$small" --sweep link_rate=1:x
refuses "--sweep batch=0:4: batch has whole numbers only, from 1 on" "$small" --sweep batch=0:4
refuses "--sweep batch=1.5: expected a whole number from 1 to 4294967296" "$small" --sweep batch=1.5
refuses "--sweep link_rate=0: expected a factor from 0.001 to 1000" "$small" --sweep link_rate=1,0
refuses "--sweep calibration.hbm=20: expected a share from 0.000001 to 1" "$small" --sweep calibration.hbm=20
refuses "--sweep chips=48: no part of trn2-ultraserver (64 chips)" "$small" --sweep chips=16,48
refuses "--sweep batch=8: one sweep at a time" "$small" --sweep batch=4 --sweep batch=8
refuses "--sweep and --tornado exclude each other: one table at a time" "$small" --sweep batch=4 --tornado
refuses "--published excludes --sweep and --tornado: one table at a time" --published --tornado
refuses "--price-hour x: expected a number from 0 to 1e+15" "$small" --price-hour x
refuses "--watts -1: expected a number from 0 to 1e+15" "$small" --watts -1

refuses "--pareto, --ttft-below, --tpot-below and --arrivals are for --job decode" "$small" --pareto
refuses "--pareto, targets and --prefill-chips are for networks where nothing is down or slow" "$small" --job decode \
    --pareto --down "chip 3"
refuses "--tpot-below 3h: expected a time such as 20ms or 1.5s" "$small" --job decode --tpot-below 3h
refuses "--sweep, --tornado, --arrivals and --pareto or a target exclude each other: one table at a time" \
    "$small" --job decode --pareto --sweep batch=1,2
refuses "--answer, --requests, --prefix-hit, --chunk, --draft and --prefill-chips belong to --arrivals" \
    "$small" --job decode --chunk 8
refuses "--arrivals: a prompt of 4000 and an answer of 256 tokens are more than --seq 4096" "$small" --job decode \
    --arrivals 1 --prompt 4000
refuses "--draft-tokens and --acceptance belong to --draft" "$small" --job decode --arrivals 1 --acceptance 0.5
refuses "--prefill-chips 3: no part of trn2.48xlarge (16 chips)" "$small" --system trn2.48xlarge --job decode \
    --arrivals 1 --prefill-chips 3
refuses "--draft: t5-base has 32128 tokens in its vocabulary, llama-3-8b 128256" "$small" --job decode --arrivals 1 \
    --draft "$models/t5-base.json"

# ---- a sweep: every row is a plain run ----

# best PLAIN.csv: degrees, bound, ideal, expected, range, tokens, MFU of its first row
best() { awk -F, 'NR == 2 { print $2, $3, $4, $5, $6, $16, $17, $18, $19, $20, $24, $26 }' "$1"; }
# row SWEEP.csv VALUE: the same of a row of a sweep
row() {
    awk -F, -v value="$2" 'NR > 1 && $3 == value { print $5, $6, $7, $8, $9, $13, $14, $15, $16, $17, $18, $19 }' "$1"
}
# alike NAME VALUE ARGUMENTS...: a sweep with this value, and a run with these arguments
alike() {
    what=$1 value=$2
    shift 2
    works "$large" $job --sweep "$what=$value,1" --csv swept.csv
    works "$large" $job "$@" --csv plain.csv
    [ -n "$(best plain.csv)" ] && [ "$(row swept.csv "$value")" = "$(best plain.csv)" ] ||
        fail "--sweep $what=$value: $(row swept.csv "$value"), but $*: $(best plain.csv)"
}

job="--system trn2.48xlarge --job decode --batch 64"
alike seq 6000 --seq 6000
alike kernel_s 0.00001 --assume kernel_s=0.00001
alike contention 0.3 --assume contention=0.3
printf 'torus = 0.4\nlaunch_s = 0.0000026\n' >mine # what it does not name is that of newer software
alike calibration.torus 0.4 --calibration mine
job="--system trn2.48xlarge --seq 2048"
alike batch 256 --batch 256
job="--system trn2-ultraserver --seq 2048"
alike chips 16 --chips 16

# Factors of what the network has: against a file with those numbers.
net=$topologies/trn2.48xlarge.txt
sed 's/^rate = 128$/rate = 64/' "$net" >half.txt
sed 's/^latency = 0.1$/latency = 0.3/' "$net" >late.txt
sed 's/^start = 1.4$/start = 2.8/' "$net" >start.txt
cmp -s half.txt "$net" || cmp -s late.txt "$net" || cmp -s start.txt "$net" && fail "the files say nothing new"
job="--job decode --batch 64"
for factor in "link_rate 0.5 half" "link_latency 3 late" "dma_start 2 start"; do
    set -- $factor
    works "$large" $job --topology "$net" --sweep "$1=$2,1" --csv swept.csv
    works "$large" $job --system trn2.48xlarge --sweep "$1=$2,1" --csv preset.csv
    cmp -s swept.csv preset.csv || fail "--sweep $1: of a file, other rows than of its preset"
    works "$large" $job --topology "$3.txt" --csv plain.csv
    found=$(row swept.csv "$2") wanted=$(best plain.csv)
    echo "$found $wanted" | awk '{ for (i = 1; i <= 12; i++) if ($i > $(i + 12) * (1 + 1e-12) ||
        $i < $(i + 12) * (1 - 1e-12)) exit 1 }' || fail "--sweep $1=$2: $found, but the file: $wanted"
    works "$large" $job --topology "$net" --csv plain.csv
    [ "$(row swept.csv 1)" = "$(best plain.csv)" ] || fail "--sweep $1=1 is not the run without"
    [ "$(row swept.csv "$2")" != "$(row swept.csv 1)" ] || fail "--sweep $1 changes nothing"
done
works "$large" $job --sweep hbm_rate=0.5:2:3 --csv swept.csv --json swept.json --html swept.html --top 0
json swept.json
[ "$(cut -d, -f3 swept.csv | tr '\n' ' ')" = "value 0.5 1 2 " ] || fail "0.5:2:3 is not 0.5, 1, 2: $(cat swept.csv)"
awk -F, 'NR > 2 && $15 >= last { exit 1 } { last = $15 }' swept.csv || fail "faster HBM is not faster: $(cat swept.csv)"
awk -F, 'NR == 2 { a = $13 } NR == 4 && a / $13 != 4 { exit 1 }' swept.csv || fail "the bound is not HBM's"
says "hbm_rate (times the chips' own), and the best plan for each value"
grep -q '"sweep": \[' swept.json && ! grep -q '"plans"' swept.json || fail "swept.json has no sweep"
grep -q '<h2>What if hbm_rate were another</h2>' swept.html && grep -q 'svg class="chart w0"' swept.html ||
    fail "swept.html has no curve"
works "$small" --system trn2.48xlarge --sweep batch=64:80:5 --csv swept.csv
[ "$(cut -d, -f3 swept.csv | tr '\n' ' ')" = "value 64 68 72 76 80 " ] || fail "64:80:5: $(cut -d, -f3 swept.csv)"
works "$small" --system trn2.48xlarge --sweep contention=0:0.5:3 --csv swept.csv
[ "$(cut -d, -f3 swept.csv | tr '\n' ' ')" = "value 0 0.25 0.5 " ] || fail "0:0.5:3: $(cut -d, -f3 swept.csv)"
works "$small" --system trn2.48xlarge --sweep batch=8:1 --csv -
[ "$(cut -d, -f3 out | tr '\n' ' ')" = "value 8 6 4 3 2 1 " ] || fail "8:1, each number once: $(cut -d, -f3 out)"

# A value that no plan has is a row; no plan for any value is a failure.
works "$large" --system trn1.32xlarge --job decode --sweep batch=16,4096 --seq 32768
says "no plan; the nearest"
"$program" "$models/llama-3.1-405b.json" --system trn1.32xlarge --sweep batch=16,32 >out 2>err
[ $? = 1 ] || fail "405b on trn1.32xlarge has no plan for any batch: not status 1"
"$program" "$models/llama-3.1-405b.json" --system trn1.32xlarge --tornado >out 2>err
[ $? = 1 ] || fail "405b on trn1.32xlarge has no plan to move: not status 1"

# ---- a tornado: every end is a run with that number ----

job="--system trn2.48xlarge --job decode --batch 64 --assume hbm_share=0.85"
works "$large" $job --tornado --csv tornado.csv --json tornado.json --html tornado.html
json tornado.json
says "with one number moved down and up"
grep -q '<h2>What matters</h2>' tornado.html && grep -q 'svg class="chart w0"' tornado.html ||
    fail "no picture of a tornado"
grep -q '"tornado": \[' tornado.json || fail "tornado.json has no tornado"
awk -F, 'NR > 2 && $10 > last { exit 1 } { last = $10 }' tornado.csv || fail "not sorted: $(cut -d, -f1,10 tornado.csv)"
awk -F, 'NR > 1 { a = $7; b = $7; for (i = 8; i <= 9; i++) if ($i != "") { if ($i < a) a = $i; if ($i > b) b = $i }
    if ($10 - (b - a) > 1e-12 || b - a - $10 > 1e-12) exit 1 }' tornado.csv || fail "swings are not what rows say"
[ "$(wc -l <tornado.csv)" -gt 25 ] || fail "tornado.csv has fewer than 25 numbers"
works "$large" $job --csv plain.csv
degrees=$(awk -F, 'NR == 2 { print "--tp", $2, "--cp", $3, "--ep", $4, "--dp", $5, "--pp", $6 }' plain.csv)
[ "$(awk -F, 'NR == 2 { print $7 }' tornado.csv)" = "$(awk -F, 'NR == 2 { print $18 }' plain.csv)" ] ||
    fail "the tornado does not stand on the best plan"
checked=0
for name in kernel_s layer_kernels tensor_share hbm_share hidden_passes contention; do
    line=$(grep "^$name," tornado.csv)
    set -- $(echo "$line" | awk -F, '{ print $3 == "x0.8 to x1.25" || $3 == "x0.8 to 1", $5, $6, $8, $9 }')
    [ "$1" = 1 ] || fail "$name: another range: $line"
    for end in "$2 $4" "$3 $5"; do
        works "$large" $job $degrees --assume "$name=${end% *}" --csv plain.csv
        [ "$(awk -F, 'NR == 2 { print $18 }' plain.csv)" = "${end#* }" ] || fail "$name=${end% *}: $line"
        checked=$((checked + 1))
    done
done
[ $checked = 12 ] || fail "only $checked ends were looked at"
grep -q '^dma_start,times,documented: 1 to 2 us a hop,1,0.6428' tornado.csv || fail "a hop of 1 us: $(cat tornado.csv)"
grep -q '^hbm_share,share,x0.8 to 1,0.85,0.68,1,' tornado.csv || fail "a share above 1: $(cat tornado.csv)"

# ---- money and energy ----

works "$large" $job --top 1 --csv none.csv
works "$large" $job --top 1 --price-hour 36 --watts 500 --csv paid.csv
says "at 36 USD an hour for all 16 chips:"
says "at 500 W a chip:"
cut -d, -f1-69 none.csv >a && cut -d, -f1-69 paid.csv | cmp -s - a || fail "a price changes a plan"
awk -F, 'NR == 2 && $(NF - 3) $(NF - 2) $(NF - 1) $NF != "" { exit 1 }' none.csv || fail "a cost without a price"
awk -F, 'function near(a, b) { return a < b * 1.000001 && a > b * 0.999999 } NR == 2 {
    exit !(near($(NF - 3), 0.01 * $18) && near($(NF - 2), 0.01 * $18 / 64 * 1e6) &&
           near($(NF - 1), 16 * 500 * $18 / 3600 / 1000) && near($NF, 8000 * $18 / 64)) }' paid.csv ||
    fail "0.01 USD a second and 8 kW are not what paid.csv has: $(sed -n 2p paid.csv)"
works "$small" --system trn2-ultraserver --price-hour 64 --sweep chips=16,64 --csv swept.csv
awk -F, 'NR > 1 { d = $(NF - 3) / ($4 / 3600 * $15); if (d < 0.999999 || d > 1.000001) exit 1 }' swept.csv ||
    fail "a chip has not the same price everywhere: $(cat swept.csv)"
works --schema
for column in user_tokens_per_s capacity_per_s kv_elsewhere_bytes step_usd million_tokens_usd step_kwh token_j \
    swing_s parameter; do
    says "  $column "
done

# ---- targets, and what is fast or cheap ----

job="--system trn2.48xlarge --job decode --top 0"
works "$large" $job --pareto --price-hour 16 --csv pareto.csv --json pareto.json --html pareto.html
json pareto.json
says "those that no other beats at both rates"
grep -q '"pareto": \[' pareto.json && grep -q '<h2>Fast for a user, or cheap</h2>' pareto.html || fail "no front"
# The front: a user's rate falls, a chip's grows, a million tokens get cheaper; a dollar a chip and hour.
awk -F, 'function near(a, b) { return a < b * 1.000001 && a > b * 0.999999 }
    NR > 1 { if (!($8 < user || NR == 2) || !($9 > chip) || !near($(NF - 2), 1e6 / 3600 / $9)) bad = 1
        if (!near($8 * $10, 1)) bad = 1
        user = $8; chip = $9 } END { exit bad || NR < 6 }' pareto.csv || fail "no front: $(cat pareto.csv)"
# A point of it is what a plain run gives.
set -- $(awk -F, 'NR == 3 { print $1, $2, $3, $4, $5, $6, $7, $10, $13 }' pareto.csv)
works "$large" --system trn2.48xlarge --job decode --chips "$1" --batch "$2" --tp "$3" --cp "$4" --ep "$5" --dp "$6" \
    --pp "$7" --csv plain.csv
awk -F, -v token="$8" -v first="$9" 'NR == 2 { exit !($18 == token && $22 == first) }' plain.csv ||
    fail "a point of the front is no plan: $* $(cat plain.csv)"
# The cheapest that is fast enough: no plan of the front that is fast enough is cheaper.
works "$large" $job --tpot-below 25ms --ttft-below 0.5s --csv fast.csv
awk -F, 'FNR == 1 { file++; next } file == 1 && $10 <= 0.025 && $13 <= 0.5 && $9 > best { best = $9 }
    file == 2 && ($10 > 0.025 || $13 > 0.5 || (FNR > 2 && $9 > last)) { bad = 1 }
    file == 2 { if (FNR == 2 && $9 < best) bad = 1; last = $9; n++ } END { exit bad || !n }' pareto.csv fast.csv ||
    fail "not the cheapest first: $(cat fast.csv)"
says " meet the targets; the cheapest first"
# Surely: at the upper end of the range of first tokens, which is wider than that of a token (157 ms, up to 228).
works "$small" --system trn2.48xlarge --job decode --chips 2 --tp 2 --batch 2 --ttft-below 200ms
says "157 ms  expected  tp 2"
works "$small" --system trn2.48xlarge --job decode --chips 2 --tp 2 --batch 2 --ttft-below 240ms
says "157 ms  surely    tp 2"
"$program" "$large" $job --tpot-below 1ms >out 2>err
[ $? = 1 ] || fail "a token in 1 ms: not status 1"
says "no plan meets the targets; the shortest token takes"

# ---- a queue ----

job="--system trn2.48xlarge --job decode --tp 8 --batch 64 --seq 2048 --prompt 1024 --top 1"
# served NAME OPTIONS: rates 0.01 (nobody waits), 4 and 50 (more than can be done)
served() {
    what=$1
    shift
    works "$large" $job --requests 2000 --arrivals 0.01,4,50 "$@" --csv "$what.csv"
    awk -F, -v what="$what" 'NR > 1 { t[NR] = $4; o[NR] = $6; sat[NR] = $3; rate[NR] = $10; cap = $2 }
        END { exit !(NR == 4 && sat[2] sat[3] sat[4] == "nonoyes" && t[2] <= t[3] && t[3] < t[4] && o[2] <= o[3] &&
            rate[4] < cap * 256 * 1.001 && rate[4] > cap * 256 * 0.9) }' "$what.csv" ||
        fail "served $what: $(cat "$what.csv")"
}
served plain --price-hour 16 --json served.json --html served.html
json served.json
grep -q '"served": \[' served.json && grep -q '<h2>Served</h2>' served.html || fail "nothing is served"
says "saturated: the queue grows"
served chunked --chunk 256
served hit --prefix-hit 0.5
served apart --prefill-chips 16
says "keys and values"
served drafted --draft "$small" --acceptance 0.8
says "which brings 3.36 tokens a sequence" # (1 - 0.8^5) / (1 - 0.8)
# column FILE N: of the row of 4 requests a second
column() { awk -F, -v n="$2" 'NR == 3 { print $n }' "$1"; }
# less A B: is it?
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
less "$(column hit.csv 4)" "$(column plain.csv 4)" || fail "a prompt that is in the cache is no faster"
less "$(column plain.csv 4)" "$(column chunked.csv 4)" || fail "a prompt in pieces is not slower"
less "$(column apart.csv 7)" "$(column plain.csv 7)" || fail "tokens are no steadier without prompts between them"
# Where nobody waits: a prompt alone, then a token at a time.
works "$large" --system trn2.48xlarge --job decode --tp 8 --dp 2 --batch 2 --seq 1152 --prompt 1024 --csv alone.csv
awk -F, 'function near(a, b) { return a < b * 1.001 && a > b * 0.999 } FNR == 2 && NR == 2 { token = $18; first = $22 }
    FNR == 2 && NR > 2 { exit !(near($4, first) && near($6, token)) }' alone.csv plain.csv ||
    fail "one request alone: $(cat alone.csv plain.csv)"

# ---- a pool ----

job="--system trn2.48xlarge --job decode --batch 384 --seq 8192 --tp 16"
"$program" "$large" $job >out 2>err
[ $? = 1 ] || fail "384 caches fit in one chip each"
works "$large" $job --kv-pool --csv pool.csv
says "KV cache elsewhere"
awk -F, 'NR == 2 { all = 384 * 8192 * 80 * 2 * 128 * 2; d = ($(NF - 4) + $(NF - 9)) / all
    exit !($(NF - 4) > 0 && d > 0.999999 && d < 1.000001) }' pool.csv ||
    fail "the cache is not all there: $(cat pool.csv)"
works "$large" --system trn2.48xlarge --job decode --batch 16 --top 3
cp out alone.txt
works "$large" --system trn2.48xlarge --job decode --batch 16 --top 3 --kv-pool
cmp -s out alone.txt || fail "plans that fit use the pool"

exit $failed
