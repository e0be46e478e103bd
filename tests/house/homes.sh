#!/bin/sh
# A format and an instruction have one home each, as trnmath/README.md says. In a copy of the headers a format
# (TRN_F8_E2M5) and an instruction (tensor_twice) are added, in the places that "Where do I change X?" names and in no
# other; programs of homes/ use them. And no other header lists formats or instructions.
. "$(dirname -- "$0")/lib.sh"

# ---- the page names the places, and nothing else is changed below ----

page=$root/trnmath/README.md
# names WHAT PLACE...: the row of WHAT names each of them in its column of what to change
names() {
    what=$1
    shift
    grep "^| $what |" "$page" | cut -d'|' -f3 >"$scratch/row"
    for place; do
        checked
        grep -qF -- "\`$place\`" "$scratch/row" || fail "trnmath/README.md, Where do I change X?, $what: no \`$place\`"
    done
    checked
    [ "$(grep -o '`[^`]*[.]h`' "$scratch/row" | sort -u | wc -l)" -eq $# ] ||
        fail "trnmath/README.md, Where do I change X?, $what: names other headers, too: $(cat "$scratch/row")"
}
names 'a number format' number/format.h
names 'an instruction' engine/vector_elementwise.h core/core_rows.h

# ---- the copy ----

mkdir "$scratch/copy" && cp -R "$root/trnmath" "$scratch/copy/" || exit 1

# change FILE SCRIPT...: FILE of the copy as sed makes it; each script has to do something
change() {
    file=$1
    shift
    for script; do
        checked
        sed "$script" "$scratch/copy/trnmath/$file" >"$scratch/changed"
        ! cmp -s "$scratch/changed" "$scratch/copy/trnmath/$file" || fail "$file: '$script' finds nothing to change"
        cp "$scratch/changed" "$scratch/copy/trnmath/$file"
    done
}

# ---- a format: its name in the enumeration, and its row ----

change number/format.h 's,^    TRN_CFP8 /.*,&\
    \, TRN_F8_E2M5,' '/^    X(CFP8, /,/)$/s,)$,) X(F8_E2M5\, "float8_e2m5"\, ""\, ""\, "e2m5 fp8_e2m5"\, \\\
      FLOAT\, 8\, 2\, 5\, 1\, 0\, 0x5f\, 0x60\, 0x70\, F8\, F8\, F8),'

# ---- an instruction: its args and its function in a part of its engine's door, and its row ----

change engine/vector_elementwise.h '/^#if TRNI_BODIES$/i\
typedef struct trn_tensor_twice_args {\
    TRN_INSTRUCTION_FIELDS;\
    trn_tensor dst, data;\
} trn_tensor_twice_args;\
\
TRN_API trn_status trn_tensor_twice(const trn_tensor_twice_args *args);\
' '/^#endif .* TRNI_BODIES .*$/i\
TRN_API trn_status trn_tensor_twice(const trn_tensor_twice_args *args)\
{\
    trn_tensor_tensor_args sum;\
    memset(&sum, 0, sizeof sum);\
    memcpy(&sum, args, sizeof(trn_instruction));\
    sum.dst = args->dst;\
    sum.data1 = sum.data2 = args->data;\
    sum.op = TRN_ALU_ADD;\
    return trn_tensor_tensor(&sum);\
}\
'
change core/core_rows.h '/^    X(tensor_copy, /i\
    X(tensor_twice, FULL, VECTOR, TRNI_ON_V(TENSOR_COPY), ELEMENTS, TRNI_PLAIN, \\\
      TRNI_W(tensor_twice, dst), TRNI_R(tensor_twice, data)) \\'

# ---- they are there ----

compiler=$(quick_compiler)
flags="-std=c11 $strict -O0 -DTRN_NO_INTRINSICS=1 -I$scratch/copy -I$root/tests"
for program in format instruction; do
    # shellcheck disable=SC2086
    step "homes/$program.c does not compile in the copy" "$compiler" $flags "$root/tests/house/homes/$program.c" \
        -o "$scratch/$program" -lm && step "the copy's $program" "$scratch/$program"
done
# A row that is not in its place is no row: the compiler says so.
change number/format.h '/^    X(TF32, /,/)  *.$/d'
echo '#include <trnmath/trn_format.h>' >"$scratch/place.c"
checked
# shellcheck disable=SC2086
! "$compiler" $flags -fsyntax-only "$scratch/place.c" 2>"$scratch/log" || fail 'a missing row is not noticed'
checked
grep -q 'rows of TRNI_FORMATS stand in the order of trn_format' "$scratch/log" ||
    fail_log "$scratch/log" 'a row of TRNI_FORMATS is missing, and the compiler does not say so'

# ---- no other header has a list of them: nine formats, or twelve instructions, in code ----

sed -n 's/^    X(\([A-Z0-9_]*\), ".*/TRN_\1/p' "$root/trnmath/number/format.h" >"$scratch/formats"
sed -n 's/^    X(\([a-z0-9_]*\), .*/\1/p' "$root/trnmath/core/core_rows.h" >"$scratch/instructions"
checked
[ "$(wc -l <"$scratch/formats")" -ge 19 ] || fail 'number/format.h: fewer than 19 rows were found'
# lists NAMES MANY FILE...: other files that name so MANY of the NAMES
lists() {
    names=$1 many=$2
    shift 2
    checked
    (cd "$root/trnmath" && headers | xargs awk -v names="$names" -v many="$many" -v homes=" $* " '
        # what of a line is no comment
        function code(line,    out, at) {
            out = ""
            while (line != "") {
                at = index(line, inside ? "*/" : "/*")
                if (!inside) out = out (at ? substr(line, 1, at - 1) " " : line)
                if (!at) break
                line = substr(line, at + 2)
                inside = !inside
            }
            return out
        }
        BEGIN { while ((getline name <names) > 0) known[name] = 1 }
        FNR == 1 { inside = count = 0; split("", seen) }
        {
            n = split(code($0), word, /[^A-Za-z0-9_]+/)
            for (i = 1; i <= n; i++) {
                sub(/^TRNI_ORDER_/, "", word[i])
                if (!(word[i] in known) || word[i] in seen) continue
                seen[word[i]] = 1
                if (++count == many && !index(homes, " " FILENAME " ")) print FILENAME ", line " FNR
            }
        }') >"$scratch/list"
    fail_each "$scratch/list" "%s: a list beside $*, which it should read"
}
lists "$scratch/formats" 9 number/format.h
lists "$scratch/instructions" 12 core/core_rows.h machine/engine_cycles.h

# ---- the page of formats has the names of each row; integers share one, and configurable FP8 has none ----

checked
sed -n 's/^    X(\([A-Z0-9_]*\), "\([^"]*\)", "\([^"]*\)", "\([^"]*\)".*/TRN_\1|\2|\3|\4/p' \
    "$root/trnmath/number/format.h" | grep -v -e '^TRN_[IU][0-9]' -e '^TRN_CFP8' | sort >"$scratch/rows"
sed -n 's/^| `\(TRN_[A-Z0-9_]*\)` |/\1|/p' "$root/trnmath/formats.md" | sed 's/[*]//g; s/ (NKI)//; s/ *| */|/g' |
    cut -d'|' -f1-4 | sort >"$scratch/page"
comm -23 "$scratch/rows" "$scratch/page" >"$scratch/list"
fail_each "$scratch/list" 'trnmath/formats.md does not say what the row of number/format.h does: %s'
finish
