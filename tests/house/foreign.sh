#!/bin/sh
# Foreign surroundings: our headers read the same, token by token, after any of the macros of foreign_macros.txt (those
# of windows.h, curses.h, macOS, X11, Perl, tgmath.h and others), and leave each as it was. So nothing that was included
# before them can change what they mean. What would change it all the same, flags of the compiler, is refused. And a
# shared object with our threads in it can be closed, and numbers in texts have a point where the locale has a comma.
. "$(dirname -- "$0")/lib.sh"
require_compilers

list=$root/tests/house/foreign_macros.txt
words=$root/trnmath/base/words
sed '/^#/d' "$list" | tr -s ' ' '\n' | sed '/^$/d' >"$scratch/macros"

# ---- one list: what is put aside is what comes back, and no word twice ----

sed -n 's/^#pragma push_macro("\(.*\)")$/\1/p' "${words}_begin.h" >"$scratch/pushed"
sed -n 's/^#undef //p' "${words}_begin.h" >"$scratch/undefined"
sed -n 's/^#pragma pop_macro("\(.*\)")$/\1/p' "${words}_end.h" >"$scratch/popped"
checked
cmp -s "$scratch/pushed" "$scratch/undefined" || fail 'words_begin.h puts a word aside and does not undefine it'
cmp -s "$scratch/pushed" "$scratch/popped" || fail 'words_end.h does not bring back what words_begin.h puts aside'
sort "$scratch/pushed" | uniq -d >"$scratch/twice"
fail_each "$scratch/twice" 'words_begin.h puts %s aside twice'
[ "$(wc -l <"$scratch/macros")" -ge 300 ] || fail 'foreign_macros.txt has fewer than 300 macros, so this check is blind'

# Every door has both, so that each can be the first.
for header in $(doors); do
    [ "$header" = trnmath.h ] && continue
    checked
    grep -q '^#include "base/words_begin.h"$' "$root/trnmath/$header" &&
        grep -q '^#include "base/words_end.h"$' "$root/trnmath/$header" ||
        fail "$header does not include base/words_begin.h and base/words_end.h"
done

# ---- the same tokens ----

awk '
    /^(and_eq|bitand|bitor|compl|not_eq|or_eq|xor_eq)$/ {
        printf "#ifndef __cplusplus\n#define %s )\n#endif\n", $0
        next
    }
    /\(\)$/ { sub(/\(\)$/, ""); printf "#undef %s\n#define %s(...) ) taken (\n", $0, $0; next }
    { printf "#undef %s\n#define %s ) taken (\n", $0, $0 }' "$scratch/macros" >"$scratch/taken.h"

# reads NAME LANGUAGE COMPILER HEADER FILE: our headers' tokens, after C libraries' headers and FILE; false with a log.
foreign_includes >"$scratch/foreign.h"
reads() {
    { cat "$scratch/foreign.h" "$5"; printf 'int from_here_on;\n#include <trnmath/%s>\n' "$4"; } >"$scratch/$1.c"
    # shellcheck disable=SC2046,SC2086
    "$3" -x $2 $(flags_of "$4") -I"$root" -E -P "$scratch/$1.c" >"$scratch/all" 2>"$scratch/log" || return 1
    sed '1,/^int from_here_on;$/d' "$scratch/all" >"$scratch/$1"
}

printf '#ifndef __cplusplus\n#include <tgmath.h>\n#endif\n' >"$scratch/tgmath.h"

# compared COMPILER HEADER LANGUAGE: after other people's macros, with what nobody stands before.
compared() {
    checked
    if ! reads alone "$3" "$1" "$2" /dev/null || [ "$(wc -l <"$scratch/alone")" -lt 1000 ]; then
        fail_log "$scratch/log" "$2 ($1, $3): hardly any text was seen, so this check is blind"
        return
    fi
    for before in taken tgmath; do
        if ! reads later "$3" "$1" "$2" "$scratch/$before.h"; then
            fail_log "$scratch/log" "$2 after $before.h: $1 ($3) cannot read it"
        elif ! cmp -s "$scratch/alone" "$scratch/later"; then
            diff "$scratch/alone" "$scratch/later" | grep '^[<>]' >"$scratch/log"
            fail_log "$scratch/log" "$2 after $before.h: $1 ($3) reads something else; such words belong into" \
                "trnmath/base/words_begin.h and words_end.h"
        fi
    done
}

for header in trnmath.h trn_mpi.h; do
    available "$header" || continue
    for compiler in $(compilers); do
        for language in 'c -std=c11' 'c -std=c11 -DTRN_SPLIT' 'c++ -std=c++17'; do
            compared "$compiler" "$header" "$language"
        done
    done
done

# ---- and the macros are their owners' again ----

for compiler in $(compilers); do
    cat "$scratch/foreign.h" "$scratch/taken.h" >"$scratch/before.c"
    { cat "$scratch/before.c"; echo '#include <trnmath/trnmath.h>'; } >"$scratch/after.c"
    for file in before after; do
        "$compiler" -std=c11 -I"$root" -dM -E "$scratch/$file.c" 2>"$scratch/log" | sort >"$scratch/$file"
    done
    checked
    comm -23 "$scratch/before" "$scratch/after" >"$scratch/changed"
    fail_each "$scratch/changed" "trnmath.h ($compiler) takes away or changes: %s"
done

# ---- flags that would change types or constants: a sentence, not a riddle ----

# refuses COMPILER FLAGS WORDS: it does not compile, and one line of what it says has these words.
refuses() {
    checked
    # shellcheck disable=SC2086
    if $1 $2 -I"$root" -c "$scratch/user.c" -o "$scratch/user.o" 2>"$scratch/log"; then
        fail "trnmath.h compiles under $1 $2, and should say why it does not"
    elif ! grep -q "trnmath: .*$3" "$scratch/log"; then
        fail_log "$scratch/log" "trnmath.h under $1 $2: no sentence of ours with '$3'"
    fi
}
echo '#include <trnmath/trn_base.h>' >"$scratch/user.c"
for compiler in $(compilers); do
    refuses "$compiler -std=c11" -fshort-enums -fshort-enums
    refuses "$(cxx_of "$compiler") -x c++ -std=c++17" -fshort-enums -fshort-enums
done
if have gcc; then
    for flag in -fsingle-precision-constant -fpack-struct; do
        refuses 'gcc -std=c11' $flag $flag
        refuses 'g++ -x c++ -std=c++17' $flag $flag
    done
    refuses 'gcc -std=c11' -fpack-struct=4 -fpack-struct
fi
# ---- numbers in JSON, SVG, files and sentences, where the locale writes a comma ----

cat >"$scratch/writes.c" <<'END'
#include <locale.h>
#include <stdio.h>
#include <trnmath/trn_calibration_fit.h>
#include <trnmath/trn_topology.h>
static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }
int main(int argc, char **argv)
{
    trn_trace_event event[4];
    trn_trace trace = { .event = event, .capacity = 4, .track = { "TensorE", "VectorE" }, .tracks = 2 };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_topology_svg_args picture = { .net = &net, .write = keep, .user = stdout };
    const trn_trace_svg_args lanes = { .trace = &trace, .write = keep, .user = stdout };
    const double half = 0.5;
    double number = 2.5;
    trn_error error;
    trn_fit_args fit = { .numbers = 1, .samples = 1, .measured = &half, .low = &half, .high = &half, .error = &error };
    if (argc > 1 && !setlocale(LC_ALL, argv[1])) return 2;
    trn_trace_add(&trace, 0, "nc_matmul", 0, 213.5e-9, "128 x 128");
    trn_trace_json(&trace, keep, stdout);
    trn_trace_svg(&lanes);
    if (trn_topology_svg(&picture) != TRN_OK) return 3;
    fit.model = (trn_fit_model)0;
    if (trn_fit(&fit, &number) == TRN_OK) return 4;
    puts(error.text);
    if (trni_fail(&error, TRN_EINVAL, "%g, %.3e", 1.25, 1.5) == TRN_OK) return 5;
    puts(error.text);
    return 0;
}
END
cat >"$scratch/comma" <<'END'
escape_char /
comment_char %
LC_NUMERIC
decimal_point "<U002C>"
thousands_sep "<U002E>"
grouping 3;3
END LC_NUMERIC
END
if have localedef; then
    localedef -c -i "$scratch/comma" -f ANSI_X3.4-1968 "$scratch/xx_COMMA" >/dev/null 2>&1
    step 'the program that writes texts does not build' gcc -std=c11 -O0 -I"$root" "$scratch/writes.c" \
        -o "$scratch/writes" -lm && {
        "$scratch/writes" >"$scratch/point" || fail 'the program that writes texts ends badly'
        LOCPATH=$scratch "$scratch/writes" xx_COMMA >"$scratch/comma_out" ||
            fail "the program that writes texts ends with $? in a locale with a comma (2: there is no such locale)"
        checked
        cmp -s "$scratch/point" "$scratch/comma_out" || {
            diff "$scratch/point" "$scratch/comma_out" >"$scratch/log"
            fail_log "$scratch/log" 'a locale with a decimal comma changes JSON, SVG or a sentence'
        }
    }
else
    skip localedef 'no locale with a comma can be made (glibc: libc-bin)'
fi

# ---- a shared object that is closed while threads of OpenMP wait ----

cat >"$scratch/object.c" <<'END'
#include <trnmath/trn_convert.h>
__attribute__((visibility("default"))) int convert(void)
{
    static float x[1 << 20];
    static uint16_t y[1 << 20];
    trn_convert_args args = { .dst = trn_tensor_1d(TRN_BF16, y, 1 << 20), .src = trn_tensor_1d(TRN_F32, x, 1 << 20) };
    return trn_convert(&args) != TRN_OK;
}
END
cat >"$scratch/closes.c" <<'END'
#include <dlfcn.h>
#include <time.h>
int main(int argc, char **argv)
{
    const struct timespec moment = { 0, 10000000 };
    for (int i = 0; argc > 1 && i < 8; i++) {
        void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*convert)(void) = 0;
        if (!object) return 2;
        *(void **)&convert = dlsym(object, "convert");
        if (!convert || convert()) return 3;
        if (dlclose(object)) return 4;
        nanosleep(&moment, 0);
    }
    return 0;
}
END
for compiler in $(compilers); do
    [ "$level" -ge 2 ] || [ "$compiler" = gcc ] || continue # clang's threads end by themselves
    step "a shared object with OpenMP: $compiler cannot build it" "$compiler" -std=c11 -O1 -fopenmp -fPIC -shared \
        -I"$root" "$scratch/object.c" -o "$scratch/object.so" -lm || continue
    step "a program that closes it: $compiler cannot build it" "$compiler" -std=gnu11 "$scratch/closes.c" \
        -o "$scratch/closes" -ldl || continue
    OMP_NUM_THREADS=4 step "$compiler: a program that closes a shared object with OpenMP in it ends badly" \
        "$scratch/closes" "$scratch/object.so"
done
finish
