#!/bin/sh
# Files that comments and pages of trnmath/ name are there: a door, a part, a room, a test, a program. (What changed and
# went is told in CHANGELOG.md; links are readme.sh's.)
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
finish
