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
works "$small" --sweep batch=64:80:5 --csv swept.csv
[ "$(cut -d, -f3 swept.csv | tr '\n' ' ')" = "value 64 68 72 76 80 " ] || fail "64:80:5: $(cut -d, -f3 swept.csv)"
works "$small" --sweep contention=0:0.5:3 --csv swept.csv
[ "$(cut -d, -f3 swept.csv | tr '\n' ' ')" = "value 0 0.25 0.5 " ] || fail "0:0.5:3: $(cut -d, -f3 swept.csv)"
works "$small" --sweep batch=8:1 --csv -
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
for column in kv_elsewhere_bytes step_usd million_tokens_usd step_kwh token_j swing_s parameter; do
    says "  $column "
done

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
