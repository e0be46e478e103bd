#!/bin/sh
# What static analysers find: clang-tidy (bugprone, cert) and cppcheck over the library, the programs and the fuzzers,
# gcc's -fanalyzer over the programs and the fuzzers (over the library it does not end within minutes). Every finding
# has a row in analysis.txt that says why it stays, and every row a finding.
. "$(dirname -- "$0")/lib.sh"
cd "$root" || exit 1

known=tests/house/analysis.txt
: >"$scratch/found"
library='-std=c11 -I. -Itests -DTRN_SPLIT=1 -DTRN_IMPLEMENTATION=1'
program="-std=c11 -I. -Iexamples -Iexamples/tools -Iexamples/tools/common -Itests -DTRN_SPLIT=1"
program="$program -DTRN_SOURCE_DIR=\"\" -DTRN_DATA_DIR=\"\" -DTRN_GOLDEN_DIR=\"\""
made= # where a header is that protoc-c makes; cppcheck does without
if have protoc-c; then
    protoc-c --c_out="$scratch" --proto_path=examples/tools/common/io chakra.proto
    made="-isystem $scratch"
fi
programs=$(ls examples/tools/*/*.c examples/tools/common/*/*.c examples/kernels/*.c examples/cores/*.c \
    examples/python/ext/trnmath_flat.c examples/vectors/make/*.c tests/fuzz/fuzz_*.c)

# keep TOOL PATTERN: lines of gcc's kind, "FILE:LINE:...: warning: TEXT [CHECK]", as "TOOL CHECK FILE:LINE TEXT".
keep() {
    finding='^\([^: ]*\):\([0-9]*\):[0-9]*: [a-z]*: \(.*\) \[\([A-Za-z0-9,.=_-]*\)\]$'
    sed -n "s,^$root/,,; s,^\./,,; s/$finding/\4 \1:\2 \3/p" |
        sed -e ':up' -e 's,[^/ ]*/\.\./,,' -e 'tup' -e "s/^-W//; s/^/$1 /" >>"$scratch/found"
}

# Each source is one process; as many at once as there are processors.
tidy() { # tidy FLAGS SOURCE...
    flags=$1
    shift
    # shellcheck disable=SC2086
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I '{}' sh -c 'clang-tidy --quiet -checks="-*,bugprone-*,cert-*" \
        -header-filter="(trnmath|examples|tests)/.*" "$0" -- "$@" 2>/dev/null' '{}' $flags >"$scratch/tidy"
    keep clang-tidy <"$scratch/tidy"
}

analyse() { # analyse FLAGS SOURCE...
    flags=$1
    shift
    # shellcheck disable=SC2086
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I '{}' sh -c 'gcc -O1 -fanalyzer -fdiagnostics-plain-output "$@" -c "$0" \
        -o /dev/null 2>&1' '{}' $flags >"$scratch/gcc"
    grep 'Wanalyzer' "$scratch/gcc" | keep gcc
}

check_c() { # check_c FLAGS SOURCE...
    flags=$1
    shift
    # shellcheck disable=SC2086
    cppcheck --enable=warning,portability --std=c11 --platform=unix64 --quiet --max-configs=1 --library=posix \
        -j "$(nproc)" --template='{file}:{line}:{column}: {severity}: {message} [{id}]' $flags \
        -D__x86_64__=1 -D__GNUC__=12 -D__BYTE_ORDER__=1234 -D__ORDER_LITTLE_ENDIAN__=1234 "$@" 2>"$scratch/cpp"
    keep cppcheck <"$scratch/cpp"
}

if have clang-tidy; then
    checked
    tidy "$library" trnmath/trnmath.c
    tidy "$library -DTRN_NO_INTRINSICS=1" trnmath/trnmath.c
    # shellcheck disable=SC2086
    tidy "$program $made" $programs
else
    skip clang-tidy 'clang-tidy is not installed'
fi
if have cppcheck; then
    checked
    check_c "$(printf %s "$library" | sed 's/-std=c11//') -DTRN_NO_INTRINSICS=1" trnmath/trnmath.c
    # shellcheck disable=SC2086
    check_c "$(printf %s "$program" | sed 's/-std=c11//')" $programs
else
    skip cppcheck 'cppcheck is not installed'
fi
if have gcc; then
    checked
    # shellcheck disable=SC2086
    analyse "$program $made" $programs
else
    skip gcc 'gcc is not installed'
fi

sort -u "$scratch/found" -o "$scratch/found"
awk '{ print $1, $2 }' "$scratch/found" | sort | uniq -c | sort -rn
[ -z "${TRN_TEST_TELL:-}" ] || cat "$scratch/found"

# Every finding against every row: "*" in a row's file is any text.
awk '
    function pattern_of(glob) { gsub(/[.]/, "[.]", glob); gsub(/\*/, ".*", glob); return "^" glob ":" }
    FNR == NR {
        if (/^#/ || NF < 4) next
        rows++
        tool[rows] = $1
        check[rows] = $2
        file[rows] = pattern_of($3)
        text[rows] = $0
        next
    }
    {
        explained = 0
        for (i = 1; i <= rows; i++)
            if ($1 == tool[i] && index("," $2 ",", "," check[i] ",") && $3 ~ file[i]) { used[i] = 1; explained = 1 }
        if (!explained) print
    }
    END { for (i = 1; i <= rows; i++) if (!(i in used)) print "nothing is found any more for the row: " text[i] }
' "$known" "$scratch/found" >"$scratch/list"
checks=$((checks + $(wc -l <"$scratch/found")))
fail_each "$scratch/list" '%s'
finish
