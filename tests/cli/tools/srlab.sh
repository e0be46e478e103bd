# What the tests of all tools ask of srlab. Read by lib/tools.sh; each function is what the test of its name asks.

reads='--text' # options that name what is read

collisions() {
    collide "srlab sums" ""
    collide "srlab logistic" "" --steps 1
    collide "srlab mlp" "" --steps 1
    collide "srlab char" in/text --text in/text --steps 1
    unheard srlab sums
    unheard srlab sums --csv -
}

memory() {
    i=0
    while [ $i -lt 20 ]; do
        echo "the quick brown fox $i jumps over the lazy dog, and packs my box with five dozen jugs"
        i=$((i + 1))
    done >text.txt
    starve "s.json s.csv s.html s.svg" srlab sums --json s.json --csv s.csv --html s.html --svg s.svg
    seconds='s/"*seconds": [^,}]*//g; s/[0-9.]* s$//; s/, [0-9.]* s / /; s/\( *[0-9]*[.][0-9]\)\{2\}$//'
    seconds="$seconds; s/\(<td> *[0-9]*[.][0-9]<.td>\)\{2\}<.tr>//"
    starve "s.json" srlab logistic --steps 2 --json s.json
    starve "s.json s.html" srlab mlp --arms f32,bf16-sr --steps 2 --json s.json --html s.html
    starve "s.csv" srlab char --text "$here/text.txt" --width 32 --layers 1 --heads 2 --context 16 --steps 1 \
        --arms f32,fp8-sr --words 1 --csv s.csv
    seconds=
}

pages() {
    make sums.html "sums of many small numbers, rounded in four ways" srlab sums --html sums.html --svg sums.svg
    make sums.svg "sums of many small numbers: the picture alone" srlab sums --svg sums.svg
    make mlp.html "a training whose weights are rounded in four ways" \
        srlab mlp --arms f32,bf16-rne,bf16-sr,bf16-kahan --steps 300 --html mlp.html
    make sweep.svg "the loss at several learning rates" \
        srlab logistic --arms f32,bf16-sr --steps 100 --sweep-lr 1e-4,1e-2 --svg sweep.svg
}
