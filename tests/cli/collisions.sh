#!/bin/sh
# No program writes over what it reads, or twice over what it writes: every program, every input, every output that its
# --help knows, by every name that a file can have. And what could not be printed is a failure, of every program.
# Usage: tests/cli/collisions.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
programs=$(CDPATH= cd -- "$1" && pwd)
data=$(CDPATH= cd -- "$(dirname -- "$0")/../data" && pwd)
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
program=$programs/collisions
. "$root/tests/cli/lib/program.sh"
. "$root/tests/cli/lib/tools.sh"
checks=0

# ---- what is read ----

mkdir -p in start start/sub
cp "$data"/sharded/* in/ 2>/dev/null
cp "$data/a_f4.npy" in/a.npy
cp "$data/b_f4.npy" in/b.npy
cp "$data/a_f4.npy" in/c.npy
cp "$data/stored.npz" in/z.npz
cp "$data/official.safetensors" in/o.safetensors
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
mkdir in/golden && cp $(ls -S "$programs"/golden/bracket_*.txt | tail -n 2) in/golden/
cp -R in start/in

# add PATH...: what a tool alone reads, made in in/, is also there whenever it runs
add() { intact= && cp -R "$@" start/in/; }

# A copy of start/, a new one unless the last run is known to have left it alone.
intact=
fresh() {
    [ -n "$intact" ] || { rm -rf work && cp -R start work; }
    intact=
    cd work || exit 1
}

# ---- what its --help says it writes: options whose value is a file, but for those that are read ----

# outputs PROGRAM [COMMAND]: names of options, but for those in $reads, which each tool has
outputs() {
    "$programs/$1" ${2:-} --help | sed -n 's/^  \(--[a-z-]*\) \(FILE\|DIR\|PATH\|[^ ]*\.npy\)[^ ]* .*/\1/p' |
        while read -r option; do
            case " $reads " in *" $option "*) ;; *) echo "$option" ;; esac
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

# ---- what could not be printed ----

# unheard PROGRAM ARGUMENTS...: its standard output is a full disk, or closed
unheard() {
    [ -c /dev/full ] || return 0
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

# Whatever the program is: what it says of itself, and of each command.
unheard_manners() {
    unheard "$1" --version
    for command in '' $(commands_of "$1"); do
        unheard "$1" $command --help
        ! "$programs/$1" $command --help | grep -q '^  --schema ' || unheard "$1" $command --schema
    done
}

for tool in $(tools 'tool bench') kernels/run cores/block cores/ring_attention cores/moe conformance; do
    ! built "$tool" || unheard_manners "$tool"
done

# ---- each tool ----

many='in/many/x-1.safetensors in/many/x-2.safetensors in/many/model.safetensors.index.json in/many/config.json'
each_tool collisions

# ---- other programs ----

if built kernels/run; then
    reads=--input
    collide kernels/run in/a.npy softmax --input in/a.npy --generation trn2
    unheard kernels/run --list
    unheard kernels/run softmax
fi
! built cores/block || unheard cores/block --ranks 2
for example in matmul ideal_activation; do
    [ -c /dev/full ] && [ -x "$programs/$example" ] && "$programs/$example" >/dev/full 2>err &&
        fail "examples/$example: exit 0, and nobody read what it printed"
done

# ---- whoever reads a file says so: one place opens each kind ----
# (But for examples/vectors: what others compile reads alone, and what makes the vectors writes alone.)

openers='^examples/(tools/common/io/(mapped|npy|hf_config|output|stage)\.h:|vectors/)'
(cd "$root" && grep -rnE '[^_a-z](fopen|open|freopen|app_open)\(' examples bench --include='*.c' --include='*.h' |
    grep -vE "$openers|/(proc|sys)/|^[^:]*:[0-9]+: \*") >opened
while IFS=: read -r file line text; do
    checks=$((checks + 1))
    sed -n "$((line > 6 ? line - 6 : 1)),${line}p" "$root/$file" | grep -q 'io_reading(\|/dev/null\|/sys/' ||
        fail "$file, line $line, opens a file, and nobody knows (io_reading):$text"
done <opened

echo "collisions: $checks checks"
exit $failed
