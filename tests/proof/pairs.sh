#!/bin/sh
# Proves by Gappa, for exponents of BF16 (level 1: nine of them, level 2: all), that dot products of pairs give the bits
# of a chain wherever the library takes them: with the limit of exponents in its header. With one less it must fail.
# Usage: tests/proof/pairs.sh
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
header=$here/../../trnmath/array/matmul_pairs.h
. "$here/gappa.sh"
less=$(sed -n 's/^ *TRNI_PAIRS_EXPONENTS = 2 \* 127 - \([0-9]*\),.*/\1/p' "$header")
[ -n "$less" ] || { echo "FAILED: $header has no limit of exponents"; exit 1; }

proves() { # X LIMIT: X + Y = -LIMIT
    sed "s/XX7/$(($1 - 7))/g; s/YY7/$((-$2 - $1 - 7))/g" "$here/pairs.g" | gappa >/dev/null 2>&1
}

gappa "$here/subnormal.g" >/dev/null 2>&1 || { echo 'FAILED: subnormal.g is not proved'; exit 1; }
[ "${TRN_TEST_LEVEL:-1}" -ge 2 ] && step=1 || step=31
proved=0
x=-126
while [ $x -le 127 ]; do
    proves $x "$less" || { echo "FAILED: exponents $x and $((-less - x)) are not proved"; exit 1; }
    proved=$((proved + 1))
    x=$((x + step))
done
proves 0 $((less + 1)) && { echo "FAILED: exponents that add up to -$((less + 1)) are proved, too"; exit 1; }
echo "proof.pairs: $proved exponents, down to a sum of -$less; -$((less + 1)) is not proved"
