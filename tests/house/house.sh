#!/bin/sh
# The house holds together: the doors at the root of trnmath/, at most forty with the umbrella, are those of floors.txt,
# of the umbrella and of the table in trnmath/README.md; a door is a comment and the includes of its parts, and no
# header in a folder includes a door; parts and rooms lie in the folders of floors.txt, and a room defines no public
# name; a header includes what it uses (includes.py), only downward and in no circle; old names lead to doors;
# instruction sets are entered from the room that they speed up; foreign headers have one place each; the one file and
# the installation have the same headers; no line of a source or a script is longer than 120 characters; nothing else
# lies at the top level; and base/base.h names the results that tests/digest/expected.txt has. (What is in a door:
# contents.sh.)
. "$(dirname -- "$0")/lib.sh"

floors=$root/tests/house/floors.txt
cd "$root/trnmath" || exit 1

# What lies at the top level, of what git knows.
if have git && git -C "$root" rev-parse --git-dir >/dev/null 2>&1; then
    checked
    git -C "$root" ls-files | sed 's,/.*,,' | sort -u |
        grep -v -x -E 'README\.md|LICENSE|trnmath|bench|tests|examples|scripts|\..*' >"$scratch/list"
    fail_each "$scratch/list" '%s lies at the top level, which has README.md, LICENSE and five folders'
fi

# differ WANT GOT TEXT TEXT: what only one of two lists has.
differ() {
    checked
    comm -23 "$1" "$2" >"$scratch/list"
    fail_each "$scratch/list" "$3"
    comm -13 "$1" "$2" >"$scratch/list"
    fail_each "$scratch/list" "$4"
}

# A copied folder trnmath/ has its licence with it.
checked
cmp -s "$root/LICENSE" LICENSE || fail 'trnmath/LICENSE is not LICENSE'

# ---- lists of the doors ----

awk '$1 ~ /^[0-9]+$/ { for (i = 3; i <= NF; i++) print "trn_" $i ".h" }' "$floors" | sort >"$scratch/doors"
awk '$1 ~ /^[0-9]+$/ { print $2 } END { print "simd" }' "$floors" | sort -u >"$scratch/folders"
headers | grep -v / | grep -v -x trnmath.h >"$scratch/at_root"
differ "$scratch/doors" "$scratch/at_root" 'floors.txt names %s, which trnmath/ does not have' \
    '%s lies at the root of trnmath/ without a floor: give it one in tests/house/floors.txt, or move it into a folder'

sed -n 's/^#include "\(.*\)"$/\1/p' trnmath.h | sort >"$scratch/umbrella"
differ "$scratch/doors" "$scratch/umbrella" 'trnmath.h does not include %s' 'trnmath.h includes %s, which is no door'

sed -n 's/^| `\(trn_[a-z0-9_]*\.h\)`.*/\1/p' README.md | sort >"$scratch/table"
differ "$scratch/doors" "$scratch/table" "trnmath/README.md's table of doors has no row of its own for %s" \
    "trnmath/README.md's table of doors has a row for %s, which is no door"

checked
count=$(($(wc -l <"$scratch/at_root") + 1)) # and trnmath.h
[ "$count" -le 40 ] || fail "trnmath/ has $count headers at its root, and forty is enough: let some be parts of others"

# Programs read what a door is for at its top; what is in it is in its parts, which headers in folders include, too.
for door in $(cat "$scratch/doors"); do
    checked
    awk -v door="$door" '
        /\*\// && !below { below = FNR; next }
        below && !/^$|^#(include "|ifndef TRN_|define TRN_[A-Z_]*_H$|endif)/ { print door ", line " FNR }' "$door"
done >"$scratch/list"
fail_each "$scratch/list" '%s: below its opening comment a door includes its parts, and has nothing else'

# Old names, for one release: each leads to a door.
checked
(cd forward/trnmath && for old in *.h; do
    door=$(sed -n 's,^#include "\.\./\.\./\(trn_[a-z_]*\.h\)"$,\1,p' "$old")
    [ -n "$door" ] && [ -f "../../$door" ] && [ ! -f "../../$old" ] || echo "$old"
done) >"$scratch/list"
fail_each "$scratch/list" 'forward/trnmath/%s does not lead to a door, or is one'

headers | grep / | sed 's,/.*,,' | sort -u >"$scratch/got"
checked
comm -13 "$scratch/folders" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'trnmath/%s/ is no floor of tests/house/floors.txt'

if have python3; then
    python3 "$root/scripts/amalgamate.py" --list | sort >"$scratch/got"
    headers >"$scratch/want"
    differ "$scratch/want" "$scratch/got" 'the one file (scripts/amalgamate.py) lacks %s' \
        'the one file (scripts/amalgamate.py) has %s, which is no header'
else
    skip python3 'python3 is not installed, so nothing makes the one file'
fi

# ---- rooms have no public names ----

for room in $(rooms); do
    checked
    awk -v room="$room" '
        function tell(name) { printf "%s, line %d: %s\n", room, FNR, name }
        /^[ \t]*\/?\*/ { next }
        /^#[ \t]*define[ \t]+TRN_/ { tell($2) }
        /^(TRN_API|TRNI_FN|TRNI_INLINE|TRNI_DATA|static|typedef|struct|union|enum|extern|__attribute__|})/ {
            text = $0
            sub(/\/\*.*/, "", text)
            if (text ~ /^TRN_API/) tell("TRN_API")
            else if (match(text, /[^A-Za-z0-9_]trn_[a-z0-9_]+\(/) && text !~ /=.*trn_/ &&
                     text !~ /\{.*trn_[a-z0-9_]+\(/)
                tell(substr(text, RSTART + 1, RLENGTH - 2))
            else if (text ~ /^typedef (enum|struct|union) trn_/) tell($3)
            else if (text ~ /^} trn_[a-z0-9_]+;/) tell($2)
        }' "$room"
done >"$scratch/list"
fail_each "$scratch/list" 'a room defines a public name, which belongs behind a door: %s'

# ---- which results ----

checked
said=$(sed -n 's/^#define TRNI_RESULTS_DIGEST 0x\([0-9a-f]*\)u$/\1/p' base/base.h)
recorded=$(sed -n 's/^digest //p' "$root/tests/digest/expected.txt")
[ -n "$said" ] && [ "$said" = "$recorded" ] ||
    fail "base/base.h: TRNI_RESULTS_DIGEST is '$said', but tests/digest/expected.txt has $recorded"

# ---- includes ----

headers | xargs awk -v floors="$floors" -v pairs="$scratch/pairs" '
    function tell(text) { printf "%s, line %d: %s\n", FILENAME, FNR, text }
    function folder_of(header) { return header ~ /\// ? substr(header, 1, index(header, "/") - 1) : door[header] }
    # Its second line says whose a header in a folder is: "A part of trn_plan.h.", "Behind ...", "A room of every door".
    function second_line(header,    line) {
        if (header in second) return second[header]
        if ((getline line < header) > 0) getline line < header
        close(header)
        return second[header] = line
    }
    # Doors are for programs: behind them headers include each other, and a door includes its parts between the words.
    function strange(header, target) {
        if (target !~ /\//) return "a door, for programs: include the header in a folder that has the name"
        if (header ~ /\// || target ~ /^base\/words_/) return ""
        return index(second_line(target), "A part of " header ".") ? "" : "no part of " header
    }
    function module_of(header) {
        sub(/^.*\//, "", header)
        sub(/^trn_/, "", header)
        sub(/\.h$/, "", header)
        return header
    }

    BEGIN {
        while ((getline line < floors) > 0) {
            n = split(line, word, " ")
            if (n == 0 || word[1] ~ /^#/) continue
            if (word[1] == "system") for (i = 2; i <= n; i++) system_header[word[i]] = 1
            else if (word[1] == "foreign") allowed[word[2]] = word[3]
            else {
                floor[word[2]] = word[1] + 0
                for (i = 3; i <= n; i++) door["trn_" word[i] ".h"] = word[2]
            }
        }
        close(floors)
    }

    !/^[ \t]*#[ \t]*include/ { next }
    {
        looked++
        target = $0
        sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
        quoted = target ~ /^"/
        sub(/^["<]/, "", target)
        sub(/[">].*$/, "", target)
        here = folder_of(FILENAME)
        if (!quoted) {
            if (target in system_header) next
            if (!(target in allowed)) tell("<" target "> is no header that floors.txt allows")
            else if (allowed[target] != FILENAME && allowed[target] != here)
                tell("<" target "> belongs to " allowed[target])
            next
        }
        if (FILENAME ~ /\// && target ~ /^\.\.\//) sub(/^\.\.\//, "", target)
        else if (FILENAME ~ /\//) target = here "/" target
        there = folder_of(target)
        if (FILENAME == "trnmath.h") next
        if (what = strange(FILENAME, target)) tell("\"" target "\" is " what)
        if (here == "simd") { # its room has included all else before
            if (there != "simd" && floor[there] > 1)
                tell("\"" target "\" is for the room to include that this kernel speeds up")
        } else if (there == "simd") {
            if (index(module_of(target), module_of(FILENAME) "_") != 1 && module_of(target) !~ /^vector_/)
                tell("\"" target "\" is entered from a room that it does not speed up")
        } else {
            if (!(here in floor)) next # told above
            if (!(there in floor)) tell("\"" target "\" has no floor")
            else if (here != there && floor[there] >= floor[here])
                tell("\"" target "\" (" there ") is not below " here)
            print FILENAME, target >pairs
        }
    }
    END { printf "looked at %d includes\n", looked }' >"$scratch/found"
checks=$((checks + $(sed -n 's/^looked at \([0-9]*\).*/\1/p' "$scratch/found")))
grep -v '^looked at' "$scratch/found" >"$scratch/list"
fail_each "$scratch/list" '%s'
if have python3; then
    checked
    python3 "$root/tests/house/includes.py" "$root/trnmath" >"$scratch/list" ||
        fail "includes.py ends with status $?"
    fail_each "$scratch/list" 'a header does not include what it uses: %s'
fi
checked
tsort "$scratch/pairs" >/dev/null 2>"$scratch/log" || fail_log "$scratch/log" 'headers include each other in a circle'

# ---- lines ----

# In the C locale awk counts bytes: those that continue a character of UTF-8 are taken out first. engine/act_data.h is
# made by a program, one row of a table to a line..
checked
(cd "$root" && find . -name '.?*' -prune -o \( -name '*.h' -o -name '*.c' -o -name '*.sh' \) -print) |
    grep -v '/engine/act_data\.h$' |
    sort >"$scratch/sources"
[ -s "$scratch/sources" ] || fail 'no source was found whose lines could be counted'
(cd "$root" && xargs awk '
    length($0) > 120 {
        text = $0
        gsub(/[\200-\277]/, "", text)
        if (length(text) > 120) printf "%s, line %d: %d characters\n", substr(FILENAME, 3), FNR, length(text)
    }' <"$scratch/sources") >"$scratch/list"
fail_each "$scratch/list" 'a line is longer than 120 characters: %s'
finish
