# What the tests of all tools ask of trnbench. Read by lib/tools.sh; each function is what the test of its name asks.

reads='--a --b --golden --topology --calibration --calibrate' # options that name what is read

collisions() {
    collide "trnbench matmul" "in/a.npy in/b.npy" --a in/a.npy --b in/b.npy --format f32
    golden=$(cd in && ls -d golden/*.txt 2>/dev/null | head -n 1)
    collide "trnbench convert" "${golden:+in/$golden}" --golden in/golden --quick
    for command in activation sparse collective spec; do collide "trnbench $command" ""; done
    unheard trnbench spec --json -
    unheard trnbench collective
}

memory() {
    starve "m.csv m.json m.html" trnbench matmul --shape 2x2x2 --format f32 --system trn1.2xlarge --csv m.csv \
        --json m.json --report m.html --no-host
    seconds='s/.*//' # it measures: only how many lines there are
    # shellcheck disable=SC2086
    starve "C.npy" trnbench $product --out C.npy
    seconds=
    starve "c.csv" trnbench spec --csv c.csv --system trn1.2xlarge
    starve "c.csv c.json" trnbench collective -b 64 -e 64 --chips 0-3 --check --csv c.csv --json c.json
    starve "c.csv c.json" trnbench collective -b 64 -e 64 --groups "0-3,12-15;4-11" --algorithm all --csv c.csv \
        --json c.json
    starve "s.csv" trnbench sparse --pattern 4:16 --shape 8x8x48 --check --csv s.csv
    starve "a.csv" trnbench activation --function exp --check --between 0 --size 64 --csv a.csv
    starve "c.csv c.json" trnbench convert --from f32 --to mxfp4 --check-only --size 4096 --peers none --csv c.csv \
        --json c.json
}

pages() {
    make matmul.html "rooflines of the systems, and the products of Mixtral 8x7B on them" \
        trnbench matmul --no-host --model mixtral-8x7b --report matmul.html
    make host.html "how fast this machine computes products in each format" \
        trnbench matmul --shape 256x192x320 --all --format all --seconds 0.02 --report host.html
    make activation.html "how far the functions of the Scalar engine are off" \
        trnbench activation --check --between 0 --format f32 --report activation.html
    make convert.html "how fast this machine converts formats" trnbench convert --quick --report convert.html
}
