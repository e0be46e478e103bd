#!/bin/sh
# Files that comments and pages of trnmath/ name are there: a door, a part, a room, a test, a program. (What changed and
# went is told in CHANGELOG.md; links are readme.sh's.) The version is one everywhere, and so is its day.
. "$(dirname -- "$0")/lib.sh"

cd "$root" || exit 1
find trnmath -name '*.h' -o -name '*.md' | grep -v -e CHANGELOG -e '^trnmath/forward/' | sort >"$scratch/files"
folders=$(cd trnmath && find . -mindepth 1 -maxdepth 1 -type d ! -name forward | sed 's,^\./,,' | sort | paste -sd'|')
names="trn_[a-z0-9_]+|($folders)/[a-z0-9_]+|(tests|bench|examples|scripts|trnmath)/[a-z0-9_/]+"
checks=$(wc -l <"$scratch/files")
xargs grep -noE "(^|[^A-Za-z0-9_/.<])($names)\.(h|c|sh|py)\b" <"$scratch/files" |
    sed 's/^\([^:]*:[0-9]*:\)[^a-z]*/\1/' | sort -u >"$scratch/named"
[ -s "$scratch/named" ] || fail 'nothing names a file, so this check is blind'
while IFS=: read -r file line name; do
    for place in trnmath . "${file%/*}" tests; do
        [ -e "$place/$name" ] && continue 2
    done
    printf '%s, line %s: %s\n' "$file" "$line" "$name"
done <"$scratch/named" >"$scratch/list"
fail_each "$scratch/list" 'a file that is not there is named: %s'

# Wherever the version is spelt, it is that of base/base.h; its day is that of the newest entry of CHANGELOG.md.
version=$(version_of_headers)
day=$(sed -n "s/^## $version (\([0-9-]*\))\$/\1/p" trnmath/CHANGELOG.md)
[ -n "$day" ] || fail "trnmath/CHANGELOG.md has no '## $version (DAY)', which base/base.h says it is"
spelt() { # FILE LINE
    checked
    grep -qxF "$2" "$1" || fail "$1 does not have this line, as base/base.h and CHANGELOG.md do: $2"
}
said() { # FILE WORDS, somewhere in it
    checked
    grep -qF "$2" "$1" || fail "$1 does not say $2, as base/base.h does"
}
spelt .github/CITATION.cff "version: $version"
spelt .github/CITATION.cff "date-released: $day"
spelt scripts/packaging/vcpkg/trnmath/vcpkg.json "  \"version\": \"$version\","
said trnmath/abi.md "\`libtrnmath.so.${version%.*}\`"
said trnmath/abi.md "\`trni_bodies_$(echo "$version" | tr . _)\` for $version"
said examples/python/src/trnmath/_library.py "\"libtrnmath_flat.so.${version%.*}\""
for page in $(find trnmath bench examples -name '*.[13]'); do
    name=$(basename "$page" | tr 'a-z.' 'A-Z ')
    spelt "$page" ".TH $name \"$day\" \"trnmath $version\" \"trnmath\""
done
finish
