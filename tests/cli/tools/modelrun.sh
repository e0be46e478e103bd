# What the tests of all tools ask of modelrun. Read by lib/tools.sh; each function is what the test of its name asks.

# random_model FOLDER: a model of few weights, and four tokens beside it
random_model() {
    tiny='"model_type":"llama","vocab_size":7,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":1,'
    tiny=$tiny'"num_attention_heads":1,"num_key_value_heads":1,"max_position_embeddings":8,"rms_norm_eps":1e-5'
    echo "{$tiny}" >"$1.json"
    echo '1 2 3 4' >"$1.ids"
    "$programs/modelrun" --random "$1.json" --write-random "$1" >/dev/null 2>&1 ||
        fail 'modelrun does not write random weights'
}

reads='--tokens --text' # options that name what is read

collisions() {
    random_model in/tiny && add in/tiny in/tiny.ids
    collide modelrun "in/tiny/config.json in/tiny/model.safetensors in/tiny.ids" \
        in/tiny --tokens in/tiny.ids --setting bf16
    unheard modelrun --list
    unheard modelrun in/tiny --tokens in/tiny.ids --setting bf16
    unheard modelrun in/tiny --tokens in/tiny.ids --setting bf16 --json -
}

memory() {
    random_model model
    seconds='s/"seconds": [^,}]*//; s/"peak_bytes": [0-9]*//; s/^\(\(f32\|bf16\)\(,[^,]*\)\{7\}\),[^,]*/\1/'
    seconds="$seconds; s/[0-9.]* MB of memory.*//; s/<b>[0-9.]* MB<.b><span>of memory//; s/ *[0-9.e-]* *[0-9.e-]*\$//"
    starve "m.csv m.json m.html" modelrun "$here/model" --tokens "$here/model.ids" --setting bf16 --csv m.csv \
        --json m.json --html m.html
    seconds=
    starve "" modelrun --random "$here/model.json" --write-random fresh
}

pages() {
    cat >tiny.json <<'END'
{ "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "torch_dtype": "bfloat16" }
END
    seq 1 48 >tiny.ids
    make modelrun.html "where a language model loses accuracy, by layer" \
        modelrun --random tiny.json --tokens tiny.ids --context 16 --html modelrun.html
    make modelrun_certify.html "what a token's bits depend on, and what cures it" \
        modelrun --random tiny.json --tokens tiny.ids --certify batch --context 3 --setting bf16,tp=4 \
        --html modelrun_certify.html
}
