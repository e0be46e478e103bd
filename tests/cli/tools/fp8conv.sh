# What the tests of all tools ask of fp8conv. Read by lib/tools.sh; each function is what the test of its name asks.

# beside ARGUMENTS...: OUT is not written with an input in it, nor with a report in it, nor as a report
beside() {
    fresh
    "$programs/fp8conv" "$@" >../out 2>../err
    status=$?
    refused "fp8conv $*"
    cd ..
}

collisions() {
    collide fp8conv "$many" in/many new
    collide fp8conv "$many" in/many --check
    collide fp8conv "$many" in/many new --verify
    collide fp8conv "$many" in/many/model.safetensors.index.json --check
    collide fp8conv in/one.safetensors in/one.safetensors new.safetensors
    collide fp8conv "" --codes
    beside in/many in/many
    beside in/many in/many/ --force
    beside in/many/model.safetensors.index.json in/many --force
    beside in/one.safetensors in --force
    beside in/many in --force
    beside in/many new --json new/report.json
    beside in/many new --csv ./new
    beside in/one.safetensors new --json new
    beside in/many sub/new --json sub/new/report.json
    unheard fp8conv --codes
    unheard fp8conv --codes --csv -
    unheard fp8conv in/many --check
    unheard fp8conv in/many new --json -
    [ ! -e new ] && [ ! -e new.part ] || fail "fp8conv: OUT appeared, and nobody read the report"
    # A closed standard output is not the first file that a program opens.
    "$programs/fp8conv" in/one.safetensors kept.safetensors >&- 2>err
    [ ! -e kept.safetensors ] || fail "fp8conv >&-: it went on"
}

memory() {
    starve "o.safetensors x.csv" fp8conv "$here/fp8.safetensors" o.safetensors --force --verify --csv x.csv
    starve "" fp8conv "$here/shards" out --json x.json
    starve "out=shards x.json" fp8conv "$here/shards" out --force --mode ratio --json x.json
    starve "" fp8conv "$here/shards" out --quantize --scales channel
    starve "x.csv" fp8conv --codes --csv x.csv
}

pages() { :; } # it writes none
