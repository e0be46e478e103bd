#!/bin/sh
# readme.sh [LIBRARY]: what the pages show is real. Every block marked c, in every page, compiles as C11 against the
# checkout, and one with a main runs and exits with 0. A block without main may be declarations, or the inside of a
# function. A block that begins with "$ cc ..." or "$ mpicc ..." is run, for the program above it, and prints what the
# page says ("..." ends what is compared). Every file and heading that a page points to is there. The first page has at
# most 14 KB, its first sentence 25 words. Level 1 reads blocks with declarations only, and has all programs but the
# first page's first link LIBRARY.
. "$(dirname -- "$0")/lib.sh"
require_compilers

pages=$(cd "$root" && find . -name '*.md' \( -path './.github/*' -o ! -path '*/.*/*' \) | sed 's,^\./,,' | sort)
for page in README.md trnmath/README.md tests/README.md bench/README.md examples/README.md; do
    checked
    [ -f "$root/$page" ] || fail "$page is missing"
done

# ---- blocks: block01.c, block02.run, ... in the order of the pages; the first line of each says where it stands ----

for page in $pages; do
    awk -v out="$scratch" -v page="$page" -v n="$(find "$scratch" -name 'block*' | wc -l)" '
        function open_as(kind) {
            file = sprintf("%s/block%03d.%s", out, ++n, kind)
            printf "/* %s:%d */\n", page, FNR >file
        }
        /^```/ && inside { inside = 0; if (file != "") close(file); next }
        /^```/ { inside = 1; first = 1; file = ""; if ($0 ~ /^```c[ \t]*$/) open_as("c"); next }
        inside && first && /^\$ (mpi)?cc / { open_as("run") }
        inside { first = 0; if (file != "") print >file }
        END { if (inside) print page >(out "/unclosed") }' "$root/$page"
done
[ ! -f "$scratch/unclosed" ] || fail_each "$scratch/unclosed" '%s: its last block is never closed'

checked
programs=$(find "$scratch" -name 'block*.run' | wc -l)
[ "$programs" -ge 5 ] || fail "only $programs programs with a compile line were found in all pages"

# ---- compile and run ----

library=${1:-}
[ "$level" -lt 2 ] || library=
flags='-std=c11 -Wall -Wextra -Werror'
split=${library:+-DTRN_SPLIT}
prelude='#include <trnmath/trnmath.h>
#include <stdio.h>
#include <stdlib.h>
'
quick=$(quick_compiler)
small=-DTRN_NO_INTRINSICS=1 # half of what there is to compile
mkdir "$scratch/here"
ln -s "$root/trnmath" "$root/examples" "$scratch/here/"

# Containers run as root, and have fewer processors than a page has processes.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_btl_vader_single_copy_mechanism

# with_main BLOCK WHERE: under the strict flags. One that has a compile line of its own runs below, where the quick
# compiler sees it whole and as strictly, unless it is the first; one for MPI has one.
with_main() {
    if grep -q 'trn_mpi' "$1"; then return; fi
    next=$(find "$scratch" -name 'block*' | sort | grep -A 1 -x "$1" | tail -n 1)
    for compiler in $(compilers); do
        case $level$next/$compiler/$first_shown in 1*.run/$quick/?*) continue ;; esac
        checked
        # shellcheck disable=SC2086
        case $level$next in
        1*.run) "$compiler" $flags $split -fsyntax-only -I"$root" "$1" 2>"$scratch/log" ;;
        *) "$compiler" $flags -O2 -I"$root" "$1" -o "$scratch/program" -lm 2>"$scratch/log" ;;
        esac || {
            fail_log "$scratch/log" "$2: this program does not compile ($compiler $flags)"
            continue
        }
        case $level$next in 1*.run) continue ;; esac
        (cd "$scratch" && ./program) >"$scratch/log" 2>&1 </dev/null
        status=$?
        [ $status -eq 0 ] || fail_log "$scratch/log" "$2: this program exits with $status ($compiler)"
    done
}

# fragment BLOCK WHERE: at file scope or in a function.
fragment() {
    { printf '%s' "$prelude"; cat "$1"; } >"$scratch/outside.c"
    {
        printf '%s' "$prelude"
        echo 'void fragment(void); void fragment(void) {'
        cat "$1"
        echo '}'
    } >"$scratch/inside.c"
    for compiler in $(compilers); do
        checked
        # shellcheck disable=SC2086
        "$compiler" $flags $split -Wno-unused -Wno-missing-prototypes -I"$root" -fsyntax-only "$scratch/outside.c" \
            2>/dev/null ||
            "$compiler" $flags $split -Wno-unused -I"$root" -fsyntax-only "$scratch/inside.c" 2>"$scratch/log" ||
            fail_log "$scratch/log" "$2: this fragment compiles neither at file scope nor in a function ($compiler)"
    done
}

# shown BLOCK WHERE PROGRAM: what a reader would do, and what he is told that he will see.
shown() {
    command=$(sed -n '2s/^\$ //p' "$1")
    case $command in
    *-lsleef*)
        if ! echo '#include <sleef.h>' | cc -E - >/dev/null 2>&1; then
            skip sleef "$2 needs sleef.h"
            return
        fi
        ;;
    esac
    case $command in
    mpicc*)
        if ! have mpicc || ! have mpirun; then
            skip mpi "$2 needs mpicc and mpirun"
            return
        fi
        ;;
    esac
    # Level 1: bodies that no library has (SLEEF's, MPI's) are made by whichever compiler is quick.
    if [ "$level" -lt 2 ] && [ -n "$first_shown" ]; then
        case $command in
        *-lsleef* | mpicc*) quickly="s/^cc -O2/$quick $flags -O0 $small/; s/^mpicc -O2/mpicc -O0 $small/" ;;
        *) quickly="s,^cc -O2,gcc $flags -O0 $split,; s,-lm,$library -fopenmp -lm," ;;
        esac
        command=$(echo "$command" | sed "$quickly")
        export OMPI_CC="$quick"
    fi
    first_shown=$2
    checked
    file=$(printf '%s\n' "$command" | tr ' ' '\n' | grep '\.c$' | head -n 1)
    case $file in */*) ;; *) cp "$3" "$scratch/here/$file" ;; esac
    (cd "$scratch/here" && sh -c "$command") >"$scratch/got" 2>"$scratch/log" </dev/null
    status=$?
    sed '1,2d; /^…$/,$d' "$1" >"$scratch/want"
    if grep -q '^…$' "$1"; then
        head -n "$(wc -l <"$scratch/want")" "$scratch/got" >"$scratch/part"
        mv "$scratch/part" "$scratch/got"
    fi
    [ $status -eq 0 ] || fail_log "$scratch/log" "$2: '$command' exits with $status"
    cmp -s "$scratch/got" "$scratch/want" || fail_log "$scratch/got" "$2: '$command' prints something else"
}

program=
first_shown=
for block in $(find "$scratch" -name 'block*' | sort); do
    where=$(sed -n '1s,^/\* \(.*\) \*/$,\1,p' "$block")
    case $block in
    *.run) shown "$block" "$where" "$program" ;;
    *)
        program=$block
        if grep -q 'int main(' "$block"; then with_main "$block" "$where"; else fragment "$block" "$where"; fi
        ;;
    esac
done

# ---- links ----

# headings PAGE: what #... may name, as GitHub makes it: small letters, spaces become hyphens, signs vanish.
headings() { sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

for page in $pages; do
    checked
    sed '/^```/,/^```/d' "$root/$page" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' | grep -v '^https\?:' |
        sort -u | while read -r link; do
            path=${link%%#*} target=$root/$page
            [ -z "$path" ] || target=$root/$(dirname "$page")/$path
            if [ ! -e "$target" ]; then
                echo "$link"
            elif [ "$path" != "$link" ] && ! headings "$target" | grep -q -x -e "${link#*#}"; then
                echo "$link"
            fi
        done >"$scratch/dead"
    fail_each "$scratch/dead" "$page points to %s, which is not there"
done

# ---- the first page ----

checked
size=$(wc -c <"$root/README.md")
[ "$size" -le 14336 ] || fail "README.md has $size bytes; at most 14336, so that somebody reads it"
checked
words=$(sed -n '1d; /./,/^$/p' "$root/README.md" | sed '/^$/q' | tr '\n' ' ' | sed 's/\. .*//' | wc -w)
[ "$words" -gt 0 ] && [ "$words" -le 25 ] || fail "README.md: its first sentence has $words words; at most 25"
finish
