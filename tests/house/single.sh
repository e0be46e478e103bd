#!/bin/sh
# single.sh LIBRARY: the generated single headers, all of trnmath and the popular parts
# (scripts/amalgamate.py --modules).
# Each is copied alone into an empty folder and used there: the program in its opening comment compiles as C11 by each
# compiler and runs, compiles as C++17, and, with declarations only, links LIBRARY.
. "$(dirname -- "$0")/lib.sh"

library=${1:-}
if ! have python3; then
    checked
    skip python3 'python3 is not installed, so nothing makes the single headers'
    finish
fi
mkdir "$scratch/made"
step 'amalgamate.py --modules fails' python3 "$root/scripts/amalgamate.py" --modules "$scratch/made" || finish
checked
[ "$(find "$scratch/made" -name '*.h' | wc -l)" -eq 7 ] || fail 'amalgamate.py --modules: not seven headers'

for header in "$scratch"/made/*.h; do
    name=$(basename "$header")
    alone=$scratch/alone_$name
    mkdir "$alone"
    cp "$header" "$alone/"
    usage_block "$root/trnmath/$name" | sed "s,<trnmath/$name>,\"$name\"," >"$alone/app.c"
    cd "$alone" || exit 1
    # Level 1 has the quick compiler make it, without intrinsics, and gcc read it.
    made_by=gcc quickly=
    if [ "$level" -lt 2 ] && have clang; then
        made_by=clang
        quickly=-DTRN_NO_INTRINSICS=1
        step "$name alone: gcc does not compile it" gcc -std=c11 $strict -fsyntax-only app.c
    fi
    # shellcheck disable=SC2086
    if step "$name alone: its program does not compile" $made_by -std=c11 -O0 $quickly $strict app.c -o app -lm; then
        checked
        ./app >"$scratch/log" 2>&1 || fail_log "$scratch/log" "$name alone: its program fails"
    fi
    echo "#include \"$name\"" >alone.cc
    [ "$level$name" = 1trnmath.h ] || # ways.sh asks
        step "$name alone: no C++17" g++ -std=c++17 $strict -fsyntax-only alone.cc
    if [ -n "$library" ] &&
        step "$name alone: its program does not link the library" \
            gcc -std=c11 -O0 $strict -DTRN_SPLIT app.c "$library" -o split -fopenmp -lm; then
        checked
        ./split >"$scratch/log" 2>&1 || fail_log "$scratch/log" "$name alone, with the library: its program fails"
    fi
done
cd "$root" || exit 1
finish
