#!/bin/sh
# Proves by Gappa what the fast kernels stand on: sums that do not round, products that are exact. Limits are read from
# the headers; with the next weaker one each proof must fail. README.md has the table.
# Usage: tests/proof/exact.sh
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
array=$here/../../trnmath/array
. "$here/gappa.sh"

# claim NAME FILE SED: proved, or that is a failure. fails NAME FILE SED: the same with a weaker limit must not be.
proved=0
claim() {
    sed "$3" "$here/$2" | gappa >/dev/null 2>&1 || { echo "FAILED: $1 is not proved"; exit 1; }
    proved=$((proved + 1))
}
fails() {
    sed "$3" "$here/$2" | gappa >/dev/null 2>&1 && { echo "FAILED: $1 is proved, too"; exit 1; }
}

# read_limit NAME HEADER PATTERN: a number of a header
read_limit() {
    found=$(sed -n "s/$3/\1/p" "$array/$2")
    [ -n "$found" ] || { echo "FAILED: $2 has no $1"; exit 1; }
}

read_limit 'limit of sums' unit_words.h '.*Below 2^\([0-9]*\) u it has.*'
bits=$found
read_limit 'least ulp' unit_words.h '.*all ulps at least 2^\(-[0-9]*\) .*'
for unit in $((2 * found)) -60 -23 0 60 100; do
    claim "a sum of multiples of 2^$unit" chain.g "s/UNIT/$unit/g; s/TOP\b/1b$((unit + bits))/"
    fails "a sum of multiples of 2^$unit with a bit more" chain.g "s/UNIT/$unit/g; s/TOP\b/1b$((unit + bits + 1))/"
done

read_limit 'limit of digits' operand_range.h '.*digits(b) <= \([0-9]*\) .*'
digits=$found
read_limit 'least exponent' operand_range.h '.*least(b) >= \(-[0-9]*\) .*'
least=$found
product() { # DIGITS-OF-A DIGITS-OF-B LEAST-EXPONENT: the sed of product.g
    echo "s/DA/$1/; s/DB/$2/; s/XX/$((1 - $1))/; s/YY/$(($3 + 1 - $2))/"
}
a=1
while [ $a -lt "$digits" ]; do
    claim "a product of $a and $((digits - a)) digits" product.g "$(product $a $((digits - a)) "$least")"
    [ $a -eq 1 ] || [ $a -eq $((digits - 1)) ] || # a power of two rounds nothing
        fails "a product of $a and $((digits - a + 1)) digits" product.g "$(product $a $((digits - a + 1)) "$least")"
    a=$((a + 1))
done

claim 'a product of binary32 in a double' wide.g 's/FORMAT/ieee_64/'
fails 'a product of binary32 in binary32' wide.g 's/FORMAT/ieee_32/'

grep -q 'trni_high_part(float x) { return trni_float(trni_bits(x) & ~0xfffu); }' "$array/systolic.h" ||
    { echo 'FAILED: trni_high_part takes other bits off than 12'; exit 1; }
claim 'products of halves of 12 bits' split.g 's/HH/11/g'
fails 'products of halves of 11 and 13 bits' split.g 's/HH/10/g'
fails 'products of halves of 13 and 11 bits' split.g 's/HH/12/g'
echo "proof.exact: $proved claims"
