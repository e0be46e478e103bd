#!/bin/sh
# No program writes over what it reads, or twice over what it writes: every program, every input, every output that its
# --help knows, by every name that a file can have. And what could not be printed is a failure, of every program.
# Usage: tests/cli/collisions.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
programs=$(CDPATH= cd -- "$1" && pwd)
data=$(CDPATH= cd -- "$(dirname -- "$0")/../data" && pwd)
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
program=$programs/fp8conv
[ -x "$program" ] || { echo "SKIP collisions: fp8conv was not built (cJSON or zlib is not installed)"; exit 0; }
. "$(dirname -- "$0")/lib/program.sh"
checks=0

# ---- what is read ----

mkdir -p in start start/sub
cp "$data"/sharded/* in/ 2>/dev/null
cp "$data/a_f4.npy" in/a.npy
cp "$data/b_f4.npy" in/b.npy
cp "$data/a_f4.npy" in/c.npy
cp "$data/stored.npz" in/z.npz
cp "$data/official.safetensors" in/o.safetensors
cp "$root/examples/shardplan/models/llama-3-70b.json" in/model.json
seq 1 3000 >in/text
# small FILE HEADER BYTES: a .safetensors; its header has fewer than 256 bytes
small() {
    printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0%s%b" "$2" "$3" >"$1"
}
w='{"w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]}}'
v='{"v":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]}}'
small in/one.safetensors "$w" '\0001\0002'
mkdir in/many
small in/many/x-1.safetensors "$w" '\0001\0002'
small in/many/x-2.safetensors "$v" '\0003\0004'
echo '{"weight_map":{"w":"x-1.safetensors","v":"x-2.safetensors"}}' >in/many/model.safetensors.index.json
echo '{}' >in/many/config.json
"$programs/probe" --write in/p --generation trn1 2>/dev/null && "$programs/probe" --run in/p 2>/dev/null
mkdir in/golden && cp $(ls -S "$root"/tests/golden/bracket_*.txt | tail -n 2) in/golden/
cp -R in start/in

# A copy of start/, a new one unless the last run is known to have left it alone.
intact=
fresh() {
    [ -n "$intact" ] || { rm -rf work && cp -R start work; }
    intact=
    cd work || exit 1
}

# ---- what its --help says it writes: options whose value is a file, but for those that are read ----

# outputs PROGRAM [COMMAND]: names of options
read_options=' --a --b --input --inputs --text --golden --write --run --identify --topology --calibration --calibrate '
outputs() {
    "$programs/$1" ${2:-} --help | sed -n 's/^  \(--[a-z-]*\) \(FILE\|DIR\|PATH\|[^ ]*\.npy\)[^ ]* .*/\1/p' |
        while read -r option; do
            case "$read_options" in *" $option "*) ;; *) echo "$option" ;; esac
        done
}

# about_it: of standard error, one sentence. (No process is started: it is asked a thousand times.)
about_it() {
    said= more=
    { read -r said && ! read -r more && [ -z "$more" ]; } <../err || return 1
    case $said in
    *'would replace'* | *'also written by'* | *'it lies in'* | *'in it lies'* | *'there is an input in it'*) ;;
    *) return 1 ;;
    esac
}

# refused LABEL: exit 2, one sentence about it, nothing printed, and the files are as they were
refused() {
    checks=$((checks + 1))
    [ "$status" = 2 ] && [ ! -s ../out ] && about_it ||
        fail "$1: exit $status, it said: $(cat ../err)"
    diff -r ../start . >../differences 2>&1 && intact=yes || fail "$1: it changed: $(cat ../differences)"
}

# collide "PROGRAM COMMAND" "INPUTS" ARGUMENTS...: each output with each input, by all its names, and with the others
collide() {
    what=$1 inputs=$2 tool=${1%% *} verb=
    [ "$tool" = "$what" ] || verb=${what#* }
    shift 2
    names=$(outputs $what)
    [ -n "$names" ] || fail "$what: its --help names no output"
    for option in $names; do
        for input in $inputs; do
            for spelling in "$input" "./$input" "sub/../$input" sub/link sub/hard; do
                fresh
                case $spelling in
                *link) ln -s "../$input" sub/link && ln -s "../$input" ../start/sub/link ;;
                *hard) ln "$input" sub/hard && cp "$input" ../start/sub/hard ;;
                esac
                "$programs/$tool" $verb "$@" $option $spelling </dev/null >../out 2>../err
                status=$?
                refused "$what $* $option $spelling"
                cd ..
                case $spelling in sub/link | sub/hard) rm -f "start/$spelling" "work/$spelling" ;; esac
            done
        done
        for other in $names; do
            [ "$option" = "$other" ] && continue
            fresh
            "$programs/$tool" $verb "$@" $option sub/../x $other x \
                </dev/null >../out 2>../err
            status=$?
            refused "$what $* $option x $other x"
            cd ..
        done
    done
}

many='in/many/x-1.safetensors in/many/x-2.safetensors in/many/model.safetensors.index.json in/many/config.json'
collide fp8conv "$many" in/many new
collide fp8conv "$many" in/many --check
collide fp8conv "$many" in/many new --verify
collide fp8conv "$many" in/many/model.safetensors.index.json --check
collide fp8conv in/one.safetensors in/one.safetensors new.safetensors
collide fp8conv "" --codes
collide ulpdiff "in/a.npy in/c.npy" in/a.npy in/c.npy
collide ulpdiff "in/a.npy in/b.npy" in/a.npy in/a.npy --op matmul --inputs in/c.npy --inputs in/b.npy
collide ulpdiff "in/z.npz in/o.safetensors" in/z.npz in/o.safetensors
collide ulpdiff "$many" in/many in/many
collide mxq "in/a.npy in/b.npy" in/a.npy in/b.npy
collide shardplan in/model.json in/model.json
collide shardplan in/model.json in/model.json --sweep batch=64,128
collide probe "in/p/generation.txt in/p/README.md in/p/out/order_f32.npy" --identify in/p
collide kernels/run in/a.npy softmax --input in/a.npy --generation trn2
collide "srlab sums" ""
collide "srlab logistic" "" --steps 1
collide "srlab mlp" "" --steps 1
collide "srlab char" in/text --text in/text --steps 1
if [ -x "$programs/trnbench" ]; then
    collide "trnbench matmul" "in/a.npy in/b.npy" --a in/a.npy --b in/b.npy --format f32
    golden=$(cd in && ls -d golden/*.txt 2>/dev/null | head -n 1)
    collide "trnbench convert" "${golden:+in/$golden}" --golden in/golden --quick
    for command in activation sparse collective spec; do collide "trnbench $command" ""; done
fi

# ---- fp8conv's OUT: not with an input in it, nor with a report in it, nor as a report ----

# beside LABEL ARGUMENTS...
beside() {
    fresh
    "$program" "$@" >../out 2>../err
    status=$?
    refused "fp8conv $*"
    cd ..
}
beside in/many in/many
beside in/many in/many/ --force
beside in/many/model.safetensors.index.json in/many --force
beside in/one.safetensors in --force
beside in/many in --force
beside in/many new --json new/report.json
beside in/many new --csv ./new
beside in/one.safetensors new --json new
beside in/many sub/new --json sub/new/report.json

# ---- what could not be printed ----

# unheard PROGRAM ARGUMENTS...: its standard output is a full disk, or closed
unheard() {
    name=$1
    shift
    for to in /dev/full closed; do
        checks=$((checks + 1))
        if [ $to = closed ]; then "$programs/$name" "$@" </dev/null >&- 2>err
        else "$programs/$name" "$@" </dev/null >$to 2>err; fi
        status=$?
        [ $status = 2 ] && [ "$(grep -c 'standard output cannot be written\|it cannot be written' err)" = 1 ] ||
            fail "$name $* >$to: exit $status, it said: $(cat err)"
    done
}

if [ -c /dev/full ]; then
    for name in fp8conv ulpdiff mxq shardplan probe kernels/run cores/block cores/ring_attention cores/moe srlab \
        trnbench conformance; do
        [ -x "$programs/$name" ] || continue
        unheard $name --help
        unheard $name --version
    done
    for name in fp8conv ulpdiff mxq shardplan conformance; do
        [ ! -x "$programs/$name" ] || unheard $name --schema
    done
    for command in sums logistic mlp char; do
        unheard srlab $command --help
        unheard srlab $command --schema
    done
    if [ -x "$programs/trnbench" ]; then
        for command in matmul convert activation sparse collective spec; do
            unheard trnbench $command --help
            unheard trnbench $command --schema
        done
        unheard trnbench spec --json -
        unheard trnbench collective
    fi
    unheard fp8conv --codes
    unheard fp8conv --codes --csv -
    unheard fp8conv in/many --check
    unheard fp8conv in/many new --json -
    [ ! -e new ] && [ ! -e new.part ] || fail "fp8conv: OUT appeared, and nobody read the report"
    unheard ulpdiff in/a.npy in/a.npy
    unheard ulpdiff in/a.npy in/a.npy --json -
    unheard mxq in/a.npy
    unheard mxq --list
    unheard mxq --theory
    unheard shardplan in/model.json
    unheard shardplan --assumptions
    unheard shardplan in/model.json --sweep batch=64
    unheard shardplan in/model.json --chips 4 --tornado --csv -
    unheard probe --list
    unheard probe --identify in/p
    unheard kernels/run --list
    unheard kernels/run softmax
    unheard cores/block --ranks 2
    unheard srlab sums
    unheard srlab sums --csv -
    for example in matmul ideal_activation; do
        [ -x "$programs/$example" ] && "$programs/$example" >/dev/full 2>err &&
            fail "examples/$example: exit 0, and nobody read what it printed"
    done
fi

# A closed standard output is not the first file that a program opens.
"$program" in/one.safetensors kept.safetensors >&- 2>err
[ ! -e kept.safetensors ] || fail "fp8conv >&-: it went on"

# ---- whoever reads a file says so: one place opens each kind ----

(cd "$root" && grep -rnE '[^_a-z](fopen|open|freopen|app_open)\(' examples bench --include='*.c' --include='*.h' |
    grep -vE '^examples/io/(mapped|npy|hf_config|output|stage)\.h:|/(proc|sys)/|^[^:]*:[0-9]+: \*') >opened
while IFS=: read -r file line text; do
    checks=$((checks + 1))
    sed -n "$((line > 6 ? line - 6 : 1)),${line}p" "$root/$file" | grep -q 'io_reading(\|/dev/null\|/sys/' ||
        fail "$file, line $line, opens a file, and nobody knows (io_reading):$text"
done <opened

echo "collisions: $checks checks"
exit $failed
