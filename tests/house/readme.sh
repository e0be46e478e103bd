#!/bin/sh
# The C in README.md is real: every block marked c compiles as C11 against the checkout, and one with a main runs and
# exits with 0. A block without main may be declarations, or the inside of a function. Every file that README.md and the
# pages below it point to is there.
. "$(dirname -- "$0")/lib.sh"
require_compilers

readme=$root/README.md
if [ ! -f "$readme" ]; then
    checked
    fail "README.md is missing"
    finish
fi

awk -v out="$scratch" '
    /^```c[ \t]*$/ && !inside { inside = 1; file = sprintf("%s/block%02d.c", out, ++n); printf "/* README.md:%d */\n", FNR + 1 >file; next }
    /^```/ && inside { inside = 0; close(file); next }
    inside { print >file }
    END { if (inside) { print "unclosed" >(out "/unclosed") } }' "$readme"
[ ! -f "$scratch/unclosed" ] || fail "README.md: its last block of C is never closed"

flags='-std=c11 -O2 -Wall -Wextra -Werror'
prelude='#include <trnmath/trnmath.h>
#include <stdio.h>
#include <stdlib.h>
'
for block in "$scratch"/block*.c; do
    [ -f "$block" ] || continue
    where=$(sed -n '1s,^/\* \(.*\) \*/$,\1,p' "$block")
    for compiler in $(compilers); do
        checked
        if grep -q 'int main(' "$block"; then
            # shellcheck disable=SC2086
            if ! "$compiler" $flags -I"$root" "$block" -o "$scratch/program" -lm 2>"$scratch/log"; then
                fail_log "$scratch/log" "$where: this program does not compile ($compiler $flags)"
                continue
            fi
            (cd "$scratch" && ./program) >"$scratch/log" 2>&1 </dev/null
            status=$?
            [ $status -eq 0 ] || fail_log "$scratch/log" "$where: this program exits with $status ($compiler)"
            continue
        fi
        { printf '%s' "$prelude"; cat "$block"; } >"$scratch/outside.c"
        { printf '%s' "$prelude"; echo 'void fragment(void); void fragment(void) {'; cat "$block"; echo '}'; } >"$scratch/inside.c"
        # shellcheck disable=SC2086
        "$compiler" $flags -Wno-unused -Wno-missing-prototypes -I"$root" -c "$scratch/outside.c" -o "$scratch/out.o" 2>/dev/null ||
            "$compiler" $flags -Wno-unused -I"$root" -c "$scratch/inside.c" -o "$scratch/out.o" 2>"$scratch/log" ||
            fail_log "$scratch/log" "$where: this fragment compiles neither at file scope nor in a function ($compiler)"
    done
done

for page in README.md trnmath/README.md bench/README.md examples/README.md; do
    checked
    if [ ! -f "$root/$page" ]; then
        fail "$page is missing"
        continue
    fi
    grep -o ']([^)#]*' "$root/$page" | sed 's/^](//' | grep -v '^https\?:' | sort -u | while read -r path; do
        [ -e "$root/$(dirname "$page")/$path" ] || echo "$path"
    done >"$scratch/dead"
    fail_each "$scratch/dead" "$page points to %s, which is not there"
done
finish
