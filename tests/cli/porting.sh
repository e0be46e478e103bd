#!/bin/sh
# examples/porting: dense.c computes what its header says (lib/dense_check.c), also under the sanitizers and with a main
# program compiled with -Ofast; the lines of its page are a patch of two programs, which puts in only what is shown.
# Usage: tests/cli/porting.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$root/examples/porting/dense.c
. "$root/tests/cli/lib/program.sh"
folder=$root/examples/porting
cc=${CC:-cc}
strict='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror'

# shellcheck disable=SC2086
"$(quick_cc)" $strict -O0 -I"$root" -c "$folder/dense.c" -o dense.o 2>log || fail "dense.c: $(cat log)"
# shellcheck disable=SC2086
$cc $strict -O2 -I"$folder" -c "$root/tests/cli/lib/dense_check.c" -o check.o 2>log &&
    $cc check.o dense.o -o check -lm 2>>log || fail "dense_check.c: $(cat log)"
./check >out 2>&1 || fail "dense.c: $(cat out)"
$cc -Ofast -I"$folder" -c "$folder/../../tests/cli/lib/dense_check.c" -o fast.o 2>log && # (its checks need no NaN)
    $cc -Ofast fast.o dense.o -o fast -lm 2>>log && ./fast >out 2>&1 || fail "with -Ofast around it: $(cat log out)"
if echo 'int main(void) { return 0; }' | $cc -fsanitize=address,undefined -x c - -o sanitized 2>/dev/null; then
    # (The matrix has bodies under the sanitizers, kernels and all; without those, one file has bodies of its own.)
    bodies=$programs/libsanitized_bodies.a
    own="-DTRN_SPLIT $bodies"
    [ -f "$bodies" ] && nm "$bodies" | grep -q __asan_init || own=-DTRN_NO_INTRINSICS=1
    # shellcheck disable=SC2086
    $cc -O0 -fsanitize=address,undefined -fno-sanitize-recover=all -I"$root" -I"$folder" \
        "$root/tests/cli/lib/dense_check.c" "$folder/dense.c" $own -o sanitized -lm 2>log && ./sanitized >out 2>&1 ||
        fail "under the sanitizers: $(cat log out | head -n 5)"
else
    echo 'SKIP porting: no sanitizers here'
fi

# The page's patches: what they add is of dense.h, what they take away is nothing, and their hunks are well formed.
awk '/^```diff/ { on = 1; n++; next } /^```/ { on = 0 } on { print >("patch." n) }' "$folder/README.md"
for patch in patch.1 patch.2; do
    [ -s $patch ] || { fail "examples/porting/README.md lacks $patch"; continue; }
    grep '^+' $patch | grep -v '^+++' | grep -v dense && fail "$patch adds something else"
    grep '^-' $patch | grep -v '^---' && fail "$patch takes something away"
    # The lines around what is added, as a file: the patch fits it.
    sed -n '/^[ @]/s/^ //p; /^@@/p' $patch | awk '/^@@/ { split($2, at, "[-,]"); while (line < at[2] - 1) {
        print ""; line++ } next } { print; line++ }' >original
    cp original patched && patch -s patched $patch 2>log >&2 || fail "$patch does not apply: $(cat log)"
    [ "$(diff original patched | grep -c '^>')" = "$(grep -c '^+[^+]' $patch)" ] || fail "$patch adds other lines"
done
[ $failed = 0 ] && echo 'porting: dense.c, and its two patches'
exit $failed
