#!/bin/sh
# The program shardplan as a user meets it: a ranked table, reasons, the files it writes, and one sentence for each
# mistake. Usage: tests/cli/shardplan.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
topologies=$(CDPATH= cd -- "$(dirname -- "$0")/../../examples/topologies" && pwd) || exit 1
models=$(CDPATH= cd -- "$(dirname -- "$0")/../../examples/tools/shardplan/models" && pwd)
program=$1/shardplan
[ -x "$program" ] || { echo "SKIP shardplan: it was not built (cJSON is not installed)"; exit 0; }
. "$(dirname -- "$0")/lib/program.sh"

json() {
    if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"; fi
}

small=$models/llama-3-8b.json
large=$models/llama-3-70b.json

# ---- usage ----

refuses "which model? give a config.json; shardplan --help tells more"
refuses "--frob is not an option of shardplan; shardplan --help lists them" --frob
refuses "--seq needs a value: N" "$small" --seq
refuses "--seq x: expected a whole number from 1 to 4294967296" "$small" --seq x
refuses "--seq x\\ny: expected a whole number from 1 to 4294967296" "$small" --seq "x
y"
refuses "--batch 0: expected a whole number from 1 to 4294967296" "$small" --batch 0
refuses "--why takes no value" "$small" --why=1
refuses "--system trn9: no such system; --help lists them" "$small" --system trn9
refuses "--job sleep: expected train, prefill or decode" "$small" --job sleep
refuses "--zero 3: expected auto, none, optimizer, gradients, weights or any" "$small" --zero 3
refuses "--recompute some: expected auto, none, selective or full" "$small" --recompute some
refuses "--format kv: expected NAME=VALUE with commas between" "$small" --format kv
refuses "--format kv=fp3: 'fp3' is no number format; there are float32, tfloat32, bfloat16, float16, float8_e4m3, \
float8_e4m3fn, float8_e5m2, float8_e3m4 and others" "$small" --format kv=fp3
refuses "--format cache=bfloat16: expected weights, attention, experts, lm_head, activations, gradients, optimizer, \
kv, wire or compute" "$small" --format cache=bfloat16
refuses "--format gradients=mxfp8: block scales are for weights, attention, experts, lm_head, kv and compute, not for \
gradients" "$small" --format gradients=mxfp8
refuses "weights of several formats, or with block scales, are for prefill and decode: training keeps one format, \
without scales" "$small" --format weights=mxfp4
refuses "--assume contention=x: expected a number, 0 or more" "$small" --assume contention=x
refuses "--assume luck=1: no such assumption; --assumptions lists them" "$small" --assume luck=1
refuses "--preset new: trn3-gen2-ultraserver has no such preset" "$small" --system trn3-gen2-ultraserver --preset new
refuses "--chips 128: trn2-ultraserver has 64; --topology takes a file that describes a larger network" \
    "$small" --chips 128
refuses "--chips: this instance has 12 chips" "$small" --system inf2.48xlarge --chips 16
refuses "--chips 48: no part of trn2-ultraserver (64 chips)" "$small" --chips 48
refuses "no plan of 64 chips has these degrees (0 = any): tp 3, cp 0, ep 0, dp 0, pp 0" "$small" --tp 3
refuses "formats.compute: a_format: the matrix instructions of Trainium2 do not take float8_e4m3fn" \
    "$small" --format compute=float8_e4m3fn
refuses "--precision half: expected autocast, bf16 or fp32" "$small" --precision half
refuses "$large: one model at a time, and $small is one" "$small" "$large"
refuses "--json - and --csv - exclude each other" "$small" --json - --csv -
refuses "--html /nonexistent/x.html: it cannot be created (No such file or directory)" \
    "$small" --html /nonexistent/x.html
refuses "missing.json: it cannot be opened (No such file or directory)" missing.json
echo '{"model_type": "llama"}' >poor.json
refuses "poor.json: it has no 'num_hidden_layers', which llama needs" poor.json
sed 's/"num_key_value_heads": 8/"num_key_value_heads": -8/' "$small" >negative.json
refuses "negative.json: its 'num_key_value_heads' is -8; expected 1 to 16384" negative.json
sed 's/"vocab_size"/"num_hash_layers": 3, "vocab_size"/' "$small" >odd.json
refuses "odd.json: its 'num_hash_layers' may change sizes or times, and is not known for the model type llama" odd.json
refuses "$models/t5-base.json: t5 is two models, encoder and decoder, each of which has a plan of its own (part)" \
    "$models/t5-base.json"
refuses "$small: llama is one model: it has no part 'text'" "$small" --part text
refuses "experts_over is 4, but llama-3-8b has no experts" "$small" --experts-over 4
for word in --help --version --assumptions --schema; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "shardplan $word: nothing on standard output, or something on standard error"
done

echo '{"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
       "intermediate_size": 8, "num_channels": 3, "patch_size": 16}' >blind.json
refuses "blind.json: it has no 'image_size', which vit needs" blind.json
refuses "bert-base is an encoder, which keeps no cache: there is nothing to decode (prefill is its forward pass)" \
    "$models/bert-base.json" --job decode
refuses "sequence is 4096, but the model has positions for 512 tokens" "$models/bert-base.json" --seq 4096
refuses "sequence is 196, but an image is 197 tokens" "$models/vit-base.json" --seq 196

echo '{"model_type": "dlrm", "embedding_dim": 8, "num_embeddings_per_feature": [9]}' >tables.json
refuses "tables.json: it has no 'dense_in_features', which dlrm needs" tables.json
refuses "a recommender keeps no cache: there is nothing to decode (prefill is its forward pass)" \
    "$models/dlrm.json" --job decode

# ---- answers ----

works "$large" --batch 256 --seq 8192 --why --no-replicate-kv
says "llama-3-70b: 70.6 G parameters, 163,840 KV elements a token"
says "119 sets of degrees, 56 legal"
says "8 KV heads do not divide by tp 16, and may not be copied (no_replicate_kv)"
says "80 layers do not divide by pp 64, unless the last stage may have fewer (uneven_stages)"
says "where the axes lie, from the inside"
says "Results of a model, never measurements."
grep -q "$(printf '\033')" out && fail "colours in a file"

works "$models/bert-base.json"
says "bert-base: 110 M parameters, an encoder"
says "a training step of 256 sequences of 512 tokens"
works "$models/vit-base.json" --job prefill --html page.html --trace trace.json --scaling
says "vit-base: 86.6 M parameters, an encoder"
says "a forward pass of 64 sequences of 197 tokens"
says "the first: dp 64; a batch in"
grep -q "KV cache" out && fail "an encoder with a cache"
json trace.json

works "$models/dlrm.json" --html page.html --trace trace.json --why --scaling
says "dlrm: 26.2 G parameters, 16.1 M of them for a sample, 26 tables of embeddings"
says "a training step of 65,536 samples"
says "  embedding lookups "
says "26 tables, which are not cut, do not fill ep 32"
[ ! -s err ] || grep -v '^page.html$\|^trace.json$' err && fail "dlrm: something else on standard error: $(cat err)"
grep -q '</html>' page.html || fail "page.html of a recommender does not end"
json trace.json

works - --tp 8 --top 2 <"$large"
[ "$(grep -c '^     [12]    8 ' out)" = 2 ] || fail "not two plans of tp 8: $(cat out)"

# No plan fits: status 1, and the nearest one.
"$program" "$models/llama-3.1-405b.json" --system trn1.32xlarge >out 2>err
[ $? = 1 ] || fail "405b on trn1.32xlarge: not status 1"
says "no plan is legal; the nearest,"
says "HBM short by"

works "$models/deepseek-v3.json" --system trn3-gen2-ultraserver --job decode --batch 288 --seq 8192 \
    --csv all.csv --json all.json --html page.html --trace trace.json
json all.json
json trace.json
[ "$(wc -l <all.csv)" = 1485 ] || fail "all.csv has not a head and 1,484 rows"
[ "$(grep -c '^    {"rank": ' all.json)" = 1484 ] || fail "all.json has not 1,484 plans"
[ "$(head -n 1 all.csv | tr ',' '\n' | wc -l)" = 73 ] || fail "all.csv: not 73 columns"
awk -F, 'NR > 1 && $13 == "yes" && $2 * $3 * $4 * $5 * $6 != 144 { exit 1 }' all.csv ||
    fail "all.csv: degrees are not 144"
grep -q '</html>' page.html || fail "page.html does not end"
[ "$(grep -c 'data:image/svg+xml;base64,' page.html)" = 2 ] || fail "page.html has not two pictures"
grep -q 'href=\|src=\|<script' page.html && fail "page.html loads something"
works "$small" --csv -
cp out one.csv
works "$small" --csv two.csv
cmp -s one.csv two.csv || fail "--csv - is not what --csv FILE writes"
mkfifo pipe # opened once: its reader sees the rows and one end
timeout 20 cat pipe >piped.csv &
timeout 20 "$program" "$small" --csv pipe >out 2>err || fail "--csv PIPE: exit $?: $(cat err)"
wait
cmp -s one.csv piped.csv || fail "--csv PIPE is not what --csv FILE writes"
refuses "--html -: standard output takes one of them" "$small" --csv - --html -
works "$small" --json -
cp out one.json
json one.json

works "$small" --system trn3-gen2-ultraserver --preset doc --top 1 --csv doc.csv
works "$small" --system trn3-gen2-ultraserver --top 1 --csv sa.csv
cmp -s doc.csv sa.csv && fail "slower links, the same plans"

# Formats, assumptions, parts of a system.
works "$small" --system trn2.48xlarge --job decode --csv f8.csv \
    --format weights=float8_e4m3,compute=float8_e4m3,kv=float8_e4m3
works "$small" --system trn2.48xlarge --job decode --csv bf16.csv
awk -F, 'FNR == 2 { time[FILENAME] = $16 } END { exit !(time["f8.csv"] < time["bf16.csv"]) }' f8.csv bf16.csv ||
    fail "FP8 is no faster"
works "$large" --system trn2.48xlarge --job decode --tp 16 --format weights=int8 --json int8.json
says "weights int8, products in bfloat16, activations bfloat16, KV cache bfloat16; no speculative decoding"
grep -q '"formats": {"weights": "int8", "activations": "bfloat16"' int8.json || fail "int8.json: no formats"
works "$small" --precision bf16
says "weights bfloat16, products in bfloat16, activations bfloat16, gradients bfloat16, optimizer bfloat16"
works "$small"
says "gradients float32, optimizer float32 with a copy of the weights"
works "$small" --assume contention=0,reserve_bytes=0 --chips 16 --ranks-per-chip 4 \
    --no-sp --overlap --zero optimizer
says "trn2-ultraserver: 16 chips"

# What a configuration says of formats: the checkpoint of gpt-oss-120b has 65,248,815,744 bytes.
excluded='"model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"'
packed='"frobnicate": 3, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert"'
sed "s/}\$/, $packed: [$excluded]}}/" "$models/gpt-oss-120b.json" >packed.json
works packed.json --system trn2.48xlarge --chips 1 --job decode --csv packed.csv --json packed.json.out --html page.html
json packed.json.out
says "note: fields without effect: 'frobnicate'"
says "note: bits of an element, scales and exclusions counted: weights 16, attention 16, experts 4.25"
says "note: sources disagree"
grep -q '"notes": \[' packed.json.out || fail "no notes in JSON"
grep -q '<li>fields without effect' page.html || fail "no notes in HTML"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "weights_bytes") back = NF - i }
    NR == 2 { exit !($(NF - back) > 65.1e9 && $(NF - back) < 65.3e9) }' packed.csv ||
    fail "gpt-oss-120b has other bytes: $(cat packed.csv)"
works packed.json --chips 1 --job decode --format weights=float8_e4m3,experts=mxfp4,kv=mxfp8
says "note: --format takes the place of the file's quantization_config"
says "weights 8, attention 8, experts 4.25, embeddings and head 8, KV cache 8.25"
for part in "t5-base encoder prefill" "whisper-large-v3 decoder decode" "clip-vit-large image prefill" \
    "dit-xl-2 whole prefill"; do
    set -- $part
    works "$models/$1.json" --part "$2" --job "$3" --top 1
    says "the first:"
done
# Heads that tp does not divide, and experts over the ranks of tp.
works "$models/llama-4-scout.json" --system trn2.48xlarge --job decode --tp 64 --lnc 2 --batch 8 --pad-heads
says "note: the first plan: 40 heads are padded with zeros to 64, for 64 ranks of tp"
says "note: the first plan: 8 KV heads are replicated, one for each of 64 ranks of tp"
works "$models/deepseek-v3.json" --system trn2.48xlarge --job decode --tp 64 --lnc 2 --batch 1 --experts-over 64
says "note: 256 experts lie over 64 of the ranks of tp, 4 each"
"$program" "$models/deepseek-v3.json" --system trn2.48xlarge --job decode --tp 64 --lnc 2 --batch 1 --experts-over 3 \
    >out 2>err
[ $? = 1 ] || fail "256 experts over 3: not status 1"
says "256 experts over 3 of the ranks of tp 64 (16 chips): one of both does not divide"

# tp as the vendor's pages count it: in logical cores.
works "$large" --system trn2.48xlarge --job decode --batch 4 --tp 64 --lnc 2
says "     1   64     16    1    1      1    1"
says "  chip          4  tp 4"
# ZeRO-1 unless more is asked.
works "$large" --batch 256 --seq 8192 --top 1 --csv optimizer.csv
works "$large" --batch 256 --seq 8192 --top 1 --zero any --csv any.csv
awk -F, 'FNR > 1 && $1 != "" { n[FILENAME $11]++ } END { exit n["optimizer.csvweights"] || !n["any.csvweights"] }' \
    optimizer.csv any.csv || fail "--zero any is not told from ZeRO-1"

works "$large" --tp 16 --top 1
cp out copied.txt
works "$large" --tp 16 --top 1 --replicate-kv
cmp -s out copied.txt || fail "--replicate-kv is not the default"
works "$small" --system trn2.48xlarge --batch 256 --tp 2 --lnc 2 --csv shared.csv --html page.html
says "     1    2    1/2    2    1      8    2"
says "the first: tp 2 cores, cp 2, dp 8, pp 2"
says "  chip          4  tp 2 x dp 2"
awk -F, 'NR == 2 && ($2 != 1 || $(NF - 5) != 2 || $5 != 8) { exit 1 }' shared.csv || fail "shared.csv: not half a chip"
refuses "--lnc 3: expected a whole number from 1 to 2" "$small" --lnc 3
refuses "lnc is 2; a logical core of Trainium1 has 1 core" "$small" --system trn1.32xlarge --lnc 2
refuses "tp 6 is neither a divisor nor a multiple of the 4 logical cores of a chip" "$small" --lnc 2 --tp 6
# Instances that are parts of systems, or other boards with their chips; --top and ranges in HTML; a layer in the trace.
works "$small" --system trn2.48xlarge --chips 1 --job decode --csv part.csv
works "$small" --system trn2.3xlarge --job decode --csv instance.csv
cmp -s part.csv instance.csv || fail "trn2.3xlarge is not one chip of trn2.48xlarge"
says "trn2.3xlarge: 1 chips"
works "$small" --system inf2.48xlarge --job decode --batch 24 --top 2 --html page.html --trace trace.json
says "note: twelve Inferentia2 in a ring, planned as Trainium1"
json trace.json
grep -q '"one layer: products"' trace.json && grep -q '"name":"down"' trace.json || fail "no operations of a layer"
grep -q '<h3>Roofline</h3>' page.html && grep -q 'four of five' page.html || fail "no roofline, or no ranges"
[ "$(grep -c '^<tr.*<td class=r>1 x ' page.html)" = 2 ] || fail "--top 2: other rows in HTML"
# Networks from files, and what is broken.
works "$small" --system trn2.48xlarge --top 1 --csv system.csv
works "$small" --topology "$topologies/trn2.48xlarge.txt" --top 1 --csv file.csv
cmp -s system.csv file.csv || fail "the file of a preset, other plans"
{ printf '\357\273\277'; sed 's/$/\r/' "$topologies/trn2.48xlarge.txt"; } >marked.txt # as an editor of Windows keeps it
works "$small" --topology marked.txt --top 1 --csv marked.csv
cmp -s file.csv marked.csv || fail "a mark and other ends of lines change a topology"
works "$small" --topology "$topologies/trn2.48xlarge.txt" --slow "link 0->1 0.1" --top 1 --csv slow.csv
cmp -s slow.csv file.csv && fail "a slow link, the same plans"
sed 's/^system = .*//' "$topologies/trn2.48xlarge.txt" >custom.txt
refuses "--topology: trn2.48xlarge names no system, and a plan needs its chips: system = trn2.48xlarge, for instance" \
    "$small" --topology custom.txt
refuses "--topology excludes --system: one network at a time" "$small" --topology custom.txt --system trn2.48xlarge

# The whole of the largest system.
works "$small" --system trn1-ultracluster --batch 30000 --top 1
says "trn1-ultracluster: 30,000 chips"
works "$small" --system trn1-ultracluster --batch 30000 --job decode --scaling --top 1 --html page.html
says "   30,000    30,000 "
[ "$(grep -c '<svg class="chart w0"' page.html)" = 4 ] || fail "page.html has not three curves and a roofline"
works "$large" --system project-rainier --batch 400000 --seq 8192 --top 1
says "project-rainier: 400,000 chips"

exit $failed
