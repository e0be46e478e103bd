#!/bin/sh
# modelrun --certify: what a token's bits depend on, setting by setting, against a judgement of its own; the pairs that
# show it against rings, cores, scales and windows in NumPy (lib/certify.py); cures, and what is refused.
# Usage: tests/cli/modelrun_certify.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$1/modelrun
trnbench=$1/trnbench
[ -x "$program" ] || { echo "SKIP modelrun: it was not built (a library of its row in list.txt is missing)"; exit 0; }
. "$lib/program.sh"
OMP_NUM_THREADS=1 # products are small: threads would only wait for each other
export OMP_NUM_THREADS

# ---- usage ----

refuses "--certify cores: expected batch" --certify cores
refuses "--system trn9: no such system; trnbench spec lists them" --system trn9
refuses "--certify goes without --generate, --logits, --pack and --max-kl" a --tokens t --certify batch --generate 2
refuses "--certify goes without --generate, --logits, --pack and --max-kl" a --tokens t --certify batch --max-kl 1
refuses "--setting f32: the reference has no engines to certify; begin with bf16" a --tokens t --certify batch \
    --setting f32
refuses "--setting bf16,scale=tensor: it follows fp8=...: only FP8 activations have such scales" \
    --setting bf16,scale=tensor
refuses "--setting split=outputs,reduce=token: there is no all-reduce where cores share outputs (split=outputs)" \
    --setting split=outputs,reduce=token
refuses "--setting f32,reduce=token: the reference has one core; begin with bf16" --setting f32,reduce=token
refuses "--setting f32,keys=aligned: the reference has no tiles; begin with bf16" --setting f32,keys=aligned
works --certify batch --schema
says 'of what depends'

. "$lib/numpy.sh"
. "$lib/served.sh"
twin() { served "$lib/certify.py" "$@" || fail "certify.py $*"; }
for model in llama window moe long hard; do twin make $model; done

# certified MODEL TOKENS SETTING...: the report in r.json
certified() {
    model=$1 tokens=$2
    shift 2
    for setting; do set -- "$@" --setting "$setting" && shift; done
    works "$model" --tokens "$model/tokens.txt" --certify batch --context "$tokens" --json r.json "$@"
}

# ---- verdicts, and cures ----

ideal=bf16,act=ideal
random=bf16,trn3,psum_format=bfloat16,psum_rounding=stochastic
certified llama 6 bf16 $ideal,tp=2 $ideal,tp=4 bf16,tp=4,reduce=token bf16,tp=4,reduce=ordered \
    bf16,tp=4,split=outputs bf16,fp8=halve,scale=tensor $random,tp=4,reduce=token
twin verdicts r.json
cp r.json llama.json
certified llama 4 bf16,mxfp8
twin verdicts r.json whole
certified moe 4 bf16,tp=4
twin verdicts r.json
certified window 12 bf16 bf16,keys=aligned bf16,chains=1
twin verdicts r.json window
certified long 7 bf16
twin verdicts r.json long
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ]; then
    certified llama 24 bf16,tp=4,wire=f32 bf16,tp=8 f16,tp=4 fp32,tp=4 bf16,kv=fp8 bf16,fp8=halve \
        bf16,fp8=requant,tp=2 $random
    twin verdicts r.json
    certified moe 24 $random,tp=4,reduce=token bf16,tp=8,reduce=ordered bf16,fp8=ratio,tp=4,scale=tensor
    twin verdicts r.json
    certified window 24 f16,tp=2 bf16,tp=4,reduce=ordered $random
    twin verdicts r.json window
fi

# ---- pairs ----

for setting in $ideal,tp=4 $ideal,tp=2; do twin pairs llama llama.json $setting; done
twin scales llama llama.json bf16,fp8=halve,scale=tensor
certified hard 20 $ideal
twin window hard r.json

# ---- the cures' own numbers ----

for words in reduce=ring reduce=token reduce=ordered split=outputs; do
    works llama --tokens llama/tokens.txt --limit 7 --setting $ideal,tp=8,$words --logits l.npy
    twin logits llama l.npy $ideal,tp=8,$words 7
done

# ---- what a cure costs: the same as trnbench says of the collective ----

if [ -x "$trnbench" ]; then
    for bytes in 8192 128; do
        "$trnbench" collective --op all_reduce --algorithm ring --ranks 4 --minbytes $bytes --maxbytes $bytes --json - \
            >ring.$bytes || fail "trnbench does not say what a ring of $bytes bytes takes"
    done
    twin cost llama.json $ideal,tp=4 ring.8192 ring.128
fi

# ---- few rows, whose products the tool computes one by one: their random words are those of the whole ----

cat >few.json <<'END'
{ "model_type": "llama", "hidden_size": 16, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 1,
  "num_key_value_heads": 1, "vocab_size": 16, "max_position_embeddings": 8 }
END
echo '1 2' >few.txt
works --random few.json --tokens few.txt --certify batch --setting $random
grep '^gate, up, batch: ' out | grep -q '(2 sequences decode, the last of them)' || fail "two rows have one's words"

# ---- reports ----

works llama --tokens llama/tokens.txt --certify batch --context 2 --setting bf16,tp=4 --csv r.csv --html r.html
says "attention's all-reduce"
says "reduce=ordered against [ring]: 0 of"
awk '{ gsub(/"[^"]*"/, "x"); n = split($0, part, ",") } NR == 1 { head = n } n != head { exit 1 }' r.csv ||
    fail "a row of the CSV has other fields than its head"
works llama --tokens llama/tokens.txt --certify batch --context 1 --setting bf16,tp=8 --system trn1.2xlarge
says "numbers differ; no time: trn1.2xlarge has too few chips for 8 cores"
grep -q "</html>" r.html || fail "the page does not end"
printf '5\n' >one
works llama --tokens one --certify batch --setting bf16
says 'chunks'

exit $failed
