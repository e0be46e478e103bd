#!/bin/sh
# Our names only, identifiers: everything a header declares at file scope (functions, variables, types, tags, enum
# constants) starts with trn_, TRN_, trni_ or TRNI_, and an object file that uses the library exports nothing of it.
. "$(dirname -- "$0")/lib.sh"
require_compilers

# ---- what is declared: clang's syntax tree with the header, less the same tree without it ----

# Depth 0 of the tree is file scope; enum constants, one level down, are in the same scope.
declared() {
    # shellcheck disable=SC2086
    clang -std=c11 $2 -I"$root" -fsyntax-only -Xclang -ast-dump "$1" 2>"$scratch/log" | awk '
        /^[|`]-(Function|Var|Typedef|Enum|Record)Decl / || /^[| ] [|`]-EnumConstantDecl / {
            if ($0 ~ / implicit /) next # a compiler builtin that somebody called
            tag = /^[|`]-(Enum|Record)Decl /
            quote = sprintf("%c", 39)
            if (i = index($0, quote)) $0 = substr($0, 1, i - 1)
            sub(/ definition$/, "")
            sub(/ +$/, "")
            name = $NF
            if (tag && name !~ /^[A-Za-z_][A-Za-z0-9_]*$/) next # no name: an anonymous struct or enum
            if (tag && (name == "struct" || name == "union")) next
            print name
        }' | sort -u
}

if have clang; then
    foreign_includes >"$scratch/before.c"
    # The umbrella shows the names of all headers at once (house.sh sees to it that it includes them all).
    for header in trnmath.h trn_mpi.h; do
        available "$header" || continue
        declared "$scratch/before.c" "$(flags_of "$header")" >"$scratch/before"
        cp "$scratch/before.c" "$scratch/after.c"
        echo "#include <trnmath/$header>" >>"$scratch/after.c"
        declared "$scratch/after.c" "$(flags_of "$header")" >"$scratch/after"
        if [ -s "$scratch/log" ]; then fail_log "$scratch/log" "$header: clang cannot parse it"; fi
        comm -13 "$scratch/before" "$scratch/after" >"$scratch/ours"
        checks=$((checks + $(wc -l <"$scratch/ours")))
        # An empty list would mean a blind check.
        grep -q '^trn_status$' "$scratch/ours" ||
            fail "$header: trn_status was not seen among its names, so this check is blind"
        grep -v -E '^(trni?|TRNI?)_' "$scratch/ours" | while read -r name; do
            echo "$(cd "$root/trnmath" && headers | xargs grep -l -w -e "$name" | head -n 1): declares $name"
        done >"$scratch/foreign_names"
        fail_each "$scratch/foreign_names" "%s at file scope; ours start with trn_, TRN_, trni_ or TRNI_"
    done
fi

# ---- what is exported: a user's object has the user's names only ----

top=trnmath.h
cat >"$scratch/user.c" <<END
#include <trnmath/$top>
unsigned user_function(float x);
unsigned user_function(float x) { return trn_fp_check() + trn_bf16_from_f32(x) + (trn_isa_name()[0] == 'a'); }
END
for compiler in $(compilers); do
    for flags in -O0 '-O2 -fopenmp' '-O0 -fkeep-inline-functions'; do
        case "$level $compiler $flags" in *"clang "*keep* | "1 "*keep*) continue ;; esac # gcc's: all bodies become code
        case "$level $compiler $flags" in "1 gcc "*-O0) continue ;; esac # clang asks, in a third of the time
        # shellcheck disable=SC2086
        if ! "$compiler" -std=c11 $flags -I"$root" -c "$scratch/user.c" -o "$scratch/user.o" 2>"$scratch/log"; then
            fail_log "$scratch/log" "$top: $compiler $flags cannot compile a user's file"
            continue
        fi
        nm -g --defined-only "$scratch/user.o" | awk '{ print $NF }' >"$scratch/exported"
        grep -q -x user_function "$scratch/exported" ||
            fail "$compiler $flags: nm does not show user_function, so this check is blind"
        grep -v -x user_function "$scratch/exported" >"$scratch/ours"
        fail_each "$scratch/ours" "$top ($compiler $flags): the user's object exports %s; it should be static"
        nm -g --undefined-only "$scratch/user.o" | awk '{ print $NF }' | grep -E '^(trni?|TRNI?)_' >"$scratch/wanted"
        fail_each "$scratch/wanted" \
            "$top ($compiler $flags): the user's object needs an external %s, which nothing defines"
        checked
    done
done
finish
