#!/bin/sh
# The program modelrun as a user meets it: tiny models of every family, whose logits lib/modelrun.py knows from NumPy
# alone; every setting; caches; what is refused; random weights.
# Usage: tests/cli/modelrun.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$1/modelrun
[ -x "$program" ] || { echo "SKIP modelrun: it was not built (a library of its row in list.txt is missing)"; exit 0; }
. "$lib/program.sh"
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY

# ---- usage ----

refuses "which model? give its folder; modelrun --help tells more"
refuses "which text? give --tokens FILE or --text FILE" a
refuses "b: one model; there is a second" a b
refuses "--frob is not an option of modelrun; modelrun --help lists them" --frob
refuses "--write-random needs --random CONFIG" --write-random x
refuses "a: --random takes the place of a model" a --random c.json --tokens t
refuses "--setting bf17: 'bf17' is neither a setting, nor a word of one, nor numerics; --list shows them" --setting bf17
refuses "--setting : it is empty" --setting ''
refuses "--setting bf16,chains=3: chains takes 1, 2, 4, 8, 16, not '3'" \
    --setting bf16,chains=3
refuses "--setting f32,tp=8: f32 is the reference and takes nothing else; fp32 is the engines' binary32" \
    --setting f32,tp=8
refuses "--setting mxfp8,trn2: only trn3 multiplies MX" --setting mxfp8,trn2
refuses "--setting tp=65: expected a whole number from 1 to 64" --setting tp=65
refuses "--context 0: expected a whole number from 1 to 1048576" --context 0
refuses "missing: it is not a directory with a config.json" missing --tokens t
for word in --help --version --schema --list; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "modelrun $word: nothing on standard output, or something on standard error"
done

. "$lib/numpy.sh"
. "$lib/served.sh"
twin() { served "$lib/modelrun.py" "$@" || fail "modelrun.py $*"; }

# ---- every family: the reference, and the engines in binary32, against NumPy in binary64 ----

for model in $(twin make); do
    works "$model" --tokens "$model/tokens.txt" --logits "$model/reference.npy"
    works "$model" --tokens "$model/tokens.txt" --setting fp32,act=ideal --logits "$model/engine.npy"
done
twin check reference.npy 2e-6 engine.npy 2e-5

# ---- every setting ----

for model in llama gpt_oss gpt2 deepseek llama4 qwen3_moe; do
    works "$model" --tokens "$model/tokens.txt" --csv all.csv
    works "$model" --tokens "$model/tokens.txt" --json - --setting bf16 --setting bf16,tp=2,wire=f32
    says '"family": '
    awk -F, 'NR > 1 && ($2 == "" || $3 == "" || $8 != 0) { exit 1 }' all.csv || fail "$model: a setting has no figures"
done
[ "$(grep -c '^' all.csv)" -ge 14 ] || fail "fewer than 13 settings ran"
# what each must be: better than, in dB of the logits
db() { awk -F, -v s="$1" '$1 == s { print $6 }' all.csv; }
works llama --tokens llama/tokens.txt --csv all.csv
worse() {
    awk -v a="$(db "$1")" -v b="$(db "$2")" 'BEGIN { exit !(a != "" && b != "" && a < b) }' ||
        fail "$1 ($(db "$1") dB) is not worse than $2 ($(db "$2") dB)"
}
worse fp8-halve bf16
worse mxfp4 mxfp8
worse kv-fp8 bf16
worse tp16 bf16
above() {
    awk -v a="$(db "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }' || fail "$1: $(db "$1") dB, not above $2"
}
above bf16 30
above tp16 28
above kv-fp8 15
above fp8-halve 12
above fp8-ratio 11
above fp8-requant 11
above mxfp8 11
above mxfp4 3
[ "$(db trn1)" = "$(db bf16)" ] || fail "the first generation's BF16 is not the second's"
works llama --tokens llama/tokens.txt --setting fp8=ratio --setting fp8=ratio,weights-only --csv all.csv
grep -q '^"fp8=ratio,weights-only"' all.csv || fail "there is no row for a combination"
"$program" llama --tokens llama/tokens.txt --setting mxfp4 --max-kl 1e-9 >out 2>err
[ $? = 1 ] || fail "--max-kl was exceeded, and the status is not 1"
works llama --tokens llama/tokens.txt --setting bf16 --max-kl 1

# ---- caches of FP8: of latents it is they that are kept ----

for model in llama deepseek; do
    works $model --tokens llama/tokens.txt --setting fp32,act=ideal,kv=fp8 --logits kept.npy
    twin cached $model kept.npy 2e-5
done

# ---- noise beside BF16's, and routers that choose otherwise ----

works qwen2_moe --tokens llama/tokens.txt --setting bf16 --setting mxfp4 --setting fp32,act=ideal --json report.json
twin noise report.json >flips
grep -q 'f32=\[0, None, 0\].*fp32,act=ideal=\[0, None, 0\]' flips ||
    fail "the same numbers choose otherwise: $(cat flips)"
grep -q 'mxfp4=\[[1-9][0-9.]*, None, [1-9]' flips || fail "MXFP4 changes no choice: $(cat flips)"
works llama --tokens llama/tokens.txt --setting bf16 --setting fp8-halve --json report.json
twin noise report.json >flips
works llama --tokens llama/tokens.txt --setting fp8-halve --json -
says '"R": null'

# ---- caches, several sequences ----

for model in llama qwen2_window gpt_oss gpt2 qwen3 deepseek phi3_long gemma3 llama4 ministral3 qwen3_next nemotron; do
    works "$model" --tokens "$model/tokens.txt" --generate 9 --setting f32
    [ "$(cat out)" = "f32 0: $(twin greedy "$model" 9)" ] || fail "$model: greedy tokens differ: $(cat out)"
done
tr ' ' '\n' <llama/tokens.txt | sed -n 1,11p | tr '\n' ' ' >a.txt
tr ' ' '\n' <llama/tokens.txt | sed -n 12,18p | tr '\n' ' ' >b.txt
{ cat a.txt; printf '\n\n'; cat b.txt; } >both.txt
for setting in bf16 fp8-halve mxfp8 tp8; do
    works llama --tokens both.txt --generate 6 --setting $setting
    cp out together
    works llama --tokens a.txt --generate 6 --setting $setting
    cp out apart
    works llama --tokens b.txt --generate 6 --setting $setting
    sed 's/ 0: / 1: /' out >>apart
    # cores that share a message round as its parts lie: alone they may differ
    [ $setting = tp8 ] || cmp -s together apart || fail "$setting: two sequences are not what each is: $(cat together)"
    works llama --tokens both.txt --generate 6 --setting $setting --pack
    [ $setting = tp8 ] || cmp -s together out || fail "$setting: packed weights give other tokens"
done
works nemotron --tokens both.txt --generate 6 # states, too, are of one sequence
cp out together
works nemotron --tokens a.txt --generate 6
cp out apart
works nemotron --tokens b.txt --generate 6
sed 's/ 0: / 1: /' out >>apart
cmp -s together apart || fail "nemotron: two sequences are not what each is: $(cat together)"

# ---- words ----

printf 'the other thing, then that' >words.txt
twin tokenizer llama 'the other thing, then that' >words.ids
works llama --text words.txt --logits words.npy --html page.html
grep -q "</html>" page.html || fail "the page does not end"
works llama --tokens words.ids --logits numbers.npy
cmp -s words.npy numbers.npy || fail "words and their numbers are not the same text"
works llama --text words.txt --generate 5 --setting f32
[ "$(wc -c <out)" -ge 12 ] || fail "no words came: $(cat out)"
refuses "gpt2/tokenizer.json: it cannot be opened (No such file or directory)" gpt2 --text words.txt

# ---- windows of the text ----

works llama --tokens llama/tokens.txt --context 8 --setting bf16 --json -
says '"windows": 3'
says '"predicted": 21'

# ---- what is refused ----

edited() {
    rm -rf bad
    cp -r "$1" bad
    twin edit bad "$2" "$3"
}
edited llama model_type '"mamba2"'
refuses "bad/config.json: its 'model_type' is 'mamba2'; supported are llama, llama4_text, mistral, ministral,\
 ministral3, mixtral, qwen2, qwen3, qwen2_moe, qwen3_moe, qwen3_next, deepseek_v3, kimi_k2, glm4_moe, minimax_m2, phi3,\
 gemma3_text, nemotron_h, gpt_oss, gpt2, srlab_char" bad --tokens llama/tokens.txt
edited llama rope_scaling '{"rope_type": "proportional"}'
refuses "bad/config.json: its scaling of positions is 'proportional'; known are default, dynamic, linear, llama3, yarn\
 and longrope" bad --tokens llama/tokens.txt
edited llama rope_scaling '{"rope_type": "linear"}'
refuses "bad/config.json: its scaling of positions has no 'factor'" bad --tokens llama/tokens.txt
edited llama hidden_act '"selu"'
refuses "bad/config.json: its 'hidden_act' is 'selu'; known are silu, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu and\
 relu" bad --tokens llama/tokens.txt
edited llama intermediate_size 95
refuses "bad: tensor 'model.layers.0.mlp.gate_proj' is [96, 64], and the configuration asks for [95, 64]" \
    bad --tokens llama/tokens.txt
edited llama num_hidden_layers 4
refuses "bad: tensor 'model.layers.3.input_layernorm' is not in the checkpoint (its weight or bias), and the\
 configuration asks for it" bad --tokens llama/tokens.txt
edited llama partial_rotary_factor 0.5
refuses "bad/config.json: its 'partial_rotary_factor' is not 1, and heads that turn in part are not supported" \
    bad --tokens llama/tokens.txt

# a text that does not say what it is, inside of a model that does
edited gemma3 model_type null
works bad --tokens gemma3/tokens.txt --logits named.npy
cmp -s named.npy gemma3/reference.npy || fail "gemma3's text is not gemma3_text"

# one field alone is wrong: a configuration, the field, what it is; and what is said
cat >wrong.txt <<'END'
deepseek|topk_method|"greedy"
its 'topk_method' is not noaux_tc, and anything else is not supported for deepseek_v3
deepseek|scoring_func|"softmax"
its 'scoring_func' is not sigmoid, and anything else is not supported for deepseek_v3
kimi|moe_layer_freq|2
its 'moe_layer_freq' is not 1, and anything else is not supported for kimi_k2
gemma3|final_logit_softcapping|30.0
its 'final_logit_softcapping' is not null, and anything else is not supported for gemma3_text
gemma3|attn_logit_softcapping|50.0
its 'attn_logit_softcapping' is not null, and anything else is not supported for gemma3_text
gemma3|use_bidirectional_attention|true
its 'use_bidirectional_attention' is not false, and anything else is not supported for gemma3_text
minimax|qk_norm_type|"per_head"
its 'qk_norm_type' is not per_layer, and anything else is not supported for minimax_m2
minimax|use_routing_bias|false
its 'use_routing_bias' is not true, and anything else is not supported for minimax_m2
minimax|attn_type_list|[1, 0]
its 'attn_type_list' is not 1, and anything else is not supported for minimax_m2
deepseek|n_group|3
its 8 experts do not divide into 3 groups of two or more
deepseek|n_group|null
its 'n_group' is null
deepseek|topk_group|1
its 'num_experts_per_tok' is 3, and the chosen groups have 2
qwen3_moe|num_experts_per_tok|null
it has no 'num_experts_per_tok', and the usual 8 are more than its 6 experts
deepseek|num_key_value_heads|2
its 'num_key_value_heads' is 2, and from latents come as many as there are heads, 4
deepseek|qk_rope_head_dim|7
its 'qk_rope_head_dim' 7 is odd
deepseek|partial_rotary_factor|0.5
its 'partial_rotary_factor' is not 1, and heads that turn in part are not supported
glm|partial_rotary_factor|0.2
3 of its 16 dimensions of a head turn, which are no pairs
minimax|rotary_dim|17
its 'rotary_dim' is 17; expected 2 to 16
qwen3_next|linear_num_key_heads|3
its 4 'linear_num_value_heads' do not divide by its 3 'linear_num_key_heads'
qwen3_next|layer_types|["linear_attention", "sliding_attention", "full_attention", "full_attention"]
its 'layer_types' has 'sliding_attention'; known are full_attention and linear_attention
nemotron|hybrid_override_pattern|"M-*E"
its 'layers_block_type' or 'hybrid_override_pattern' is not of 5 layers
nemotron|hybrid_override_pattern|"M-*EX"
its layer 4 is of a kind that is not known; known are M, *, - and E, or linear_attention, full_attention, mlp and moe
nemotron|time_step_limit|[1, 0.5]
its 'time_step_limit' is not a list of two numbers, the larger one last
nemotron|n_groups|4
its 6 'mamba_num_heads' do not divide by its 4 'n_groups'
nemotron|moe_latent_size|16
its 'moe_latent_size' is not null, and anything else is not supported for nemotron_h
llama|hidden_act|"relu2"
its 'hidden_act' is 'relu2'; known are silu, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu and relu
llama4|attention_chunk_size|null
its 'attention_chunk_size' is null
llama4|no_rope_layers|[1, 0]
its 'no_rope_layers' is not a list of 4 numbers
llama4|no_rope_layers|[1, 0, 2, 1]
its 'no_rope_layers' has something that is neither 0 nor 1
llama|rope_scaling|{"type": "default", "llama_4_scaling_beta": 0.1}
its 'llama_4_scaling_beta' is 0.1, which is not supported for llama
ministral3|rope_parameters|{"rope_type": "default"}
its positions have no 'llama_4_scaling_beta'
phi3|rope_scaling|{"type": "longrope", "short_factor": [1, 2], "long_factor": 3}
its 'short_factor' is not a list of 6 numbers, one for each pair that turns
phi3|rope_scaling|{"type": "su", "short_factor": [1, 2, 3, 4, 5, 0]}
its 'short_factor' has something that is no number from 1e-06 to 1e+09
gemma3_types|rope_parameters|{"rope_type": "default"}
its 'rope_parameters' have no 'full_attention'
END
twin wrong wrong.txt
n=0
while read -r _ && read -r sentence; do
    n=$((n + 1))
    refuses "wrong$n/config.json: $sentence" "wrong$n" --tokens llama/tokens.txt
done <wrong.txt
[ $n -ge 30 ] || fail "only $n wrong fields"
refuses "phi3_short: its positions turn otherwise in texts beyond 32 tokens (longrope), and from 24 on 20 were asked\
 for; end before, or begin beyond" phi3_short --tokens llama/tokens.txt --generate 20
rm -rf bad
cp -r llama bad
twin rename bad layers.1.mlp.up_proj.weight layers.1.mlp.up_proj.qweigh
refuses "bad: tensor 'model.layers.1.mlp.up_proj' is not in the checkpoint, and the configuration asks for it" \
    bad --tokens llama/tokens.txt
twin rename bad layers.1.mlp.gate_proj.weight layers.1.mlp.up_proj.qweight0
cp llama/model.safetensors bad/model.safetensors
twin rename bad layers.1.self_attn.q_proj.weight layers.1.self_attn.q_pr0j.qweigh
refuses "bad: tensor 'model.layers.1.self_attn.q_proj' is not in the checkpoint, and the configuration asks for it" \
    bad --tokens llama/tokens.txt
printf '1 2 97\n' >t
refuses "t: line 1 has a token of 97 or more, and the vocabulary has 97" llama --tokens t
printf '1 2\n3 x\n' >t
refuses "t: line 2 has something that is no number of a token" llama --tokens t
printf '\n \n' >t
refuses "t: it has no tokens" llama --tokens t
refuses "llama: it takes 64 positions, and 124 were asked for" llama --tokens llama/tokens.txt --generate 100
refuses "bf16,tp=5: tp=5: the width of all heads of this model, 64, does not divide into parts of one size" \
    llama --tokens llama/tokens.txt --setting bf16,tp=5
printf 'junk' >bad/config.json
refuses "bad/config.json: it is not JSON" bad --tokens llama/tokens.txt
for bytes in 1 2 40 120 200 280; do
    head -c $bytes llama/config.json >bad/config.json
    refuses "bad/config.json: it is not JSON" bad --tokens llama/tokens.txt
done
head -c 3000 llama/model.safetensors >bad/model.safetensors
cp llama/config.json bad
"$program" bad --tokens llama/tokens.txt >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "half a file: $(cat err)"

# ---- random weights ----

for model in llama gpt_oss_plain gpt2 qwen2_moe deepseek minimax phi3 gemma3 llama4 qwen3_next nemotron; do
    works --random "$model/config.json" --write-random "random_$model"
    works "random_$model" --tokens "$model/tokens.txt" --setting bf16 --csv all.csv
    awk -F, 'NR > 1 && ($2 == "" || $8 != 0) { exit 1 }' all.csv || fail "random $model: no figures"
done
works --random llama/config.json --tokens llama/tokens.txt --generate 3
refuses "random_llama: it is there already; name another" --random llama/config.json --write-random random_llama

exit $failed
