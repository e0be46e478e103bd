#!/bin/sh
# What it costs to compile a file that uses trnmath: one table, file x compiler x mode, beside the headers of others.
# Usage: bench/speed/compile_speed.sh [--runs N] [--file NAME]... [--compiler NAME]... [--csv FILE]
# It reports, and fails only when a file does not compile: seconds belong to the machine.
set -u
LC_ALL=C
export LC_ALL
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
sources=$root/bench/speed/compile
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trn-compile.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

usage() {
    cat <<'END'
usage: scripts/bench.sh compile [options]

What it costs to compile a file that uses trnmath. Each row is one file of bench/speed/compile with one compiler in one
mode: medians of the user's and of the wall time, the object's bytes, and the functions that stand in it. The modes of a
file are compiled in turn, so that a busy moment of the machine hits all of them alike.

  --runs N         compile everything so many times (default: 3)
  --file NAME      only this one (repeatable): math, include, matmul, convert, vector, activation, collective, xxhash,
                   stb_image
  --compiler NAME  only this one (repeatable; default: gcc and clang)
  --csv FILE       the same rows for programs
  --help           this text

Modes: -O2 and -O0 as they are; without intrinsics (TRN_NO_INTRINSICS); split (TRN_SPLIT: declarations only) and, for
include, the one file of a program that holds the bodies (TRN_SPLIT and TRN_IMPLEMENTATION).
END
}

say() { printf 'compile_speed.sh: %s\n' "$*" >&2; }

refuse() {
    say "$1; --help tells the options"
    exit 2
}

runs=3 files= compilers= csv=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --runs | --file | --compiler | --csv) [ $# -gt 1 ] || refuse "$1 needs a value" ;;
    *) refuse "$1 is not an option" ;;
    esac
    case $1 in
    --runs) runs=$2 ;;
    --file) files="$files $2" ;;
    --compiler) compilers="$compilers $2" ;;
    --csv) csv=$2 ;;
    esac
    shift 2
done
case $runs in '' | *[!0-9]* | 0*) refuse "--runs $runs: expected a whole number from 1" ;; esac
for file in $files; do [ -f "$sources/$file.c" ] || refuse "--file $file: there is no such file"; done
[ -z "$csv" ] || : 2>/dev/null >>"$csv" || refuse "--csv $csv: it cannot be written"

# ---- what there is ----

[ -n "$files" ] || files='math include matmul convert vector activation collective xxhash stb_image'
present=
for compiler in ${compilers:-gcc clang}; do
    if command -v "$compiler" >/dev/null 2>&1; then
        present="$present $compiler"
    else
        say "skipped: $compiler, which is not installed"
    fi
done
set -- $present
[ $# -gt 0 ] || refuse 'there is no compiler'
first=$1

# A peer that is not installed is said and left out.
kept=
for file in $files; do
    case $file in
    xxhash | stb_image)
        if ! "$first" -fsyntax-only "$sources/$file.c" 2>/dev/null; then
            say "skipped: $file, whose header is not installed"
            continue
        fi
        ;;
    esac
    kept="$kept $file"
done
"$first" -O2 "$root/tests/house/stopwatch.c" -o "$scratch/stopwatch" || exit 2

text() { "$first" -E -P "$@" -I"$root" "$sources/include.c" | cksum; }
split=yes
if [ "$(text)" = "$(text -DTRN_SPLIT)" ]; then
    split=no
    say 'skipped: the split modes, because TRN_SPLIT changes nothing in these headers'
fi

# modes FILE: a line for each, its name and its flags with a tab between them
modes() {
    printf '%s\t%s\n' -O2 -O2 -O0 -O0
    case $1 in math | xxhash | stb_image) return ;; esac
    printf '%s\t%s\n' '-O2, no intrinsics' '-O2 -DTRN_NO_INTRINSICS'
    [ $split = yes ] || return 0
    printf '%s\t%s\n' '-O2, split' '-O2 -DTRN_SPLIT'
    [ "$1" != include ] || printf '%s\t%s\n' '-O2, split, bodies' '-O2 -DTRN_SPLIT -DTRN_IMPLEMENTATION'
}

# ---- progress ----

terminal=no
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then terminal=yes; fi
number=0
of=$(($(echo $kept | wc -w) * $#))

progress() {
    if [ $terminal = yes ]; then printf '\r%-79.79s' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}

progress_done() { [ $terminal = no ] || printf '\r%79s\r' '' >&2; }

# ---- one file with one compiler ----

# measure FILE COMPILER: its rows, in the order of the CSV
measure() {
    failed=0
    : >"$scratch/objects"
    set -- "$1" "$2" "$sources/$1.c" # and then stopwatch's commands
    modes "$1" >"$scratch/modes"
    while IFS="$(printf '\t')" read -r mode flags; do
        object=$scratch/$(wc -l <"$scratch/objects" | tr -d ' ').o
        # shellcheck disable=SC2086
        if ! "$2" $flags -I"$root" -c "$3" -o "$object" 2>"$scratch/log"; then
            progress_done
            say "$2 $flags cannot compile $1.c: $(grep -m 1 error "$scratch/log")"
            failed=1
            continue
        fi
        functions=$(nm "$object" | grep -c ' [tTwW] ')
        printf '%s\t%s\t%s\n' "$mode" "$(wc -c <"$object")" "$functions" >>"$scratch/objects"
        # shellcheck disable=SC2086
        set -- "$@" -- "$2" $flags -I"$root" -c "$3" -o "$object"
    done <"$scratch/modes"
    file=$1 compiler=$2
    shift 3
    [ $# -eq 0 ] || "$scratch/stopwatch" "$runs" "$@" >"$scratch/times" || failed=1
    [ $# -eq 0 ] || paste "$scratch/objects" "$scratch/times" |
        awk -F '\t' -v file="$file" -v compiler="$compiler" -v OFS=, '
        { split($4, ms, " "); print file, compiler, "\"" $1 "\"", ms[4] / 1e3, ms[2] / 1e3, $2 + 0, $3 }'
    return $failed
}

status=0
echo 'file,compiler,mode,user_s,wall_s,object_bytes,functions' >"$scratch/rows"
for file in $kept; do
    for compiler in $present; do
        number=$((number + 1))
        progress "compiling $file with $compiler, $number of $of"
        measure "$file" "$compiler" >>"$scratch/rows" || status=1
    done
done
progress_done

# ---- the table ----

awk -F '"' '
    function counted(n,   text) {
        for (text = ""; length(n) > 3; n = substr(n, 1, length(n) - 3)) text = "," substr(n, length(n) - 2) text
        return n text
    }
    function row(a, b, c, d, e, f, g) { printf "  %-11s  %-8s  %-18s  %8s  %8s  %12s  %9s\n", a, b, c, d, e, f, g }
    function seconds(s) { return sprintf("%.2f", s) }
    BEGIN { row("file", "compiler", "mode", "user (s)", "wall (s)", "object bytes", "functions") }
    NR > 1 {
        split($1, name, ","); split($3, cell, ",")
        row(name[1], name[2], $2, seconds(cell[2]), seconds(cell[3]), counted(cell[4]), counted(cell[5]))
    }' "$scratch/rows"
printf '\nMedians (--runs %d), all modes of a file in turn:' "$runs"
for compiler in $present; do
    printf ' %s %s;' "$compiler" "$("$compiler" -dumpfullversion -dumpversion | head -n 1)"
done
printf ' %s.\n' "$(uname -m)"
[ -z "$csv" ] || cp "$scratch/rows" "$csv" || status=2
exit $status
