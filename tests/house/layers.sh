#!/bin/sh
# Includes point only downward (layers.txt), the umbrella includes every public header but trn_mpi*.h, and the headers
# of other libraries stay behind the one door that each of them has.
. "$(dirname -- "$0")/lib.sh"

table=$root/tests/house/layers.txt

# One line per finding from awk, and a last one with the number of includes that were looked at.
(cd "$root/trnmath" && headers | xargs awk -v table="$table" '
    function tell(text) { printf "FAIL %s:%d: %s\n", FILENAME, FNR, text }

    # simd/trn_matmul_avx512.h serves trn_matmul.h and stands just below it; so does all that serves the same module.
    function module_of(header) {
        sub(/^simd\//, "", header)
        sub(/_[a-z0-9]+\.h$/, ".h", header)
        return header
    }
    function number_of(header,    module) {
        if (header in number) return number[header]
        module = module_of(header)
        return header ~ /^simd\// && module in number ? number[module] - 0.5 : -1
    }

    BEGIN {
        while ((getline line < table) > 0) {
            n = split(line, word, " ")
            if (n == 0 || word[1] ~ /^#/) continue
            if (word[1] == "system") for (i = 2; i <= n; i++) system_header[word[i]] = 1
            else if (word[1] == "guest") door[word[2]] = word[3]
            else number[word[2]] = word[1] + 0
        }
        close(table)
    }

    FNR == 1 {
        here = number_of(FILENAME)
        files++
        if (here < 0) tell("this header has no floor: add a line for it to tests/house/layers.txt")
        if (FILENAME ~ /^trn_/) is_public[FILENAME] = 1
    }

    /^[ \t]*#[ \t]*include/ {
        looked++
        target = $0
        sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
        quoted = target ~ /^"/
        sub(/^["<]/, "", target)
        sub(/[">].*$/, "", target)
        if (!quoted) {
            if (target in system_header) next
            if (!(target in door)) tell("includes <" target ">, which no rule of layers.txt allows")
            else if (door[target] == "simd/*" ? FILENAME !~ /^simd\// : FILENAME != door[target])
                tell("includes <" target ">, which only " door[target] " may include")
            next
        }
        if (FILENAME ~ /^simd\//) {
            if (target ~ /^\.\.\//) sub(/^\.\.\//, "", target)
            else target = "simd/" target
        }
        # A guest that needs the plain kernels of its module may ask the module to bring it in at the right place, and
        # the guests of one module may share a text.
        if (FILENAME ~ /^simd\// && target == module_of(FILENAME)) next
        if (FILENAME ~ /^simd\// && target ~ /^simd\// && module_of(target) == module_of(FILENAME)) next
        there = number_of(target)
        if (there < 0) tell("includes \"" target "\", which has no floor in layers.txt")
        else if (here >= 0 && there >= here)
            tell("includes \"" target "\" (" there "), which is not below it (" here ")")
        if (FILENAME == "trnmath.h") umbrella[target] = 1
    }

    END {
        if ("trnmath.h" in number && here == number["trnmath.h"] || umbrella["trn_base.h"])
            for (header in is_public)
                if (header !~ /^trn_mpi/ && !(header in umbrella))
                    printf "FAIL trnmath.h: does not include %s, so the umbrella has a hole\n", header
        printf "looked at %d includes of %d headers\n", looked, files
    }
') >"$scratch/found"

checks=$(awk '/^looked at/ { print $3 }' "$scratch/found")
failures=$(grep -c '^FAIL' "$scratch/found")
cat "$scratch/found"
[ -f "$root/trnmath/trnmath.h" ] || fail "trnmath/trnmath.h, the umbrella, is missing"
finish
