#!/bin/sh
# The playground: the library as WebAssembly, and a page around it, in one folder that needs no server. Installs what is
# missing, and says how large the first screen is. Exits with 0, 1 when that is too large, 2 when it cannot run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END_OF_USAGE'
usage: scripts/web.sh [FOLDER]

Writes the page into FOLDER; .build/web unless given. Open FOLDER/index.html, from a file or a server.
END_OF_USAGE
}

one_folder "$root/.build/web" "$@"
need emscripten gcc libc6-dev libcjson-dev
command -v emcc >/dev/null 2>&1 || { say 'emcc is missing: install emscripten and start again'; exit 2; }

cd "$root" || exit 2
work=.build/wasm
mkdir -p $work || exit 2
NODE_PATH=/usr/share/nodejs${NODE_PATH:+:$NODE_PATH} # where Debian has what emcc asks node for, if node is not Debian's
export NODE_PATH

# run WORDS...: quiet unless it fails.
run() {
    "$@" >"$work/log" 2>&1 && return
    say "this failed: $*"
    head -n 20 "$work/log" >&2
    exit 2
}

say 'the configurations of models, read by a program of this machine'
run gcc -std=c11 -O0 -DTRN_NO_INTRINSICS=1 -I. -Iexamples/tools -Iexamples/tools/common \
    examples/web/models.c -o "$work/models" -lcjson -lm
"$work/models" examples/tools/shardplan/models/*.json >"$work/models.h" || exit 2

# What becomes vectors is the portable text: no flag but -msimd128 says so. Straight lines stay scalar, because Debian's
# clang 14 for WebAssembly joins some of them wrongly: the HBM time of an all_gather came out as 0. The test that holds
# each answer against this machine's own finds that. (A clang of another day may fuse products with sums.)
flags='-std=c11 -O2 -msimd128 -fno-slp-vectorize -ffp-contract=off -Wall -Wextra -Werror'
flags="$flags -s STANDALONE_WASM=1 -s ALLOW_MEMORY_GROWTH=1"
say 'the library as WebAssembly (half a minute), and the digest (another)'
# shellcheck disable=SC2086
run emcc $flags -s INITIAL_MEMORY=16777216 --no-entry -I. -I"$work" examples/web/playground.c -o "$work/playground.wasm"
# shellcheck disable=SC2086
run emcc $flags -s INITIAL_MEMORY=83886080 -I. tests/digest/digest.c -o "$work/digest.wasm"

# ---- the folder: a page that is opened from a file may load scripts, and nothing else ----

cp examples/web/page/* "$folder/" || exit 2
for program in playground digest; do
    printf "web.programs.%s = '%s';\n" $program "$(base64 -w 0 "$work/$program.wasm")" >"$folder/$program.js" || exit 2
done
{
    echo 'web.recorded = ['
    sed -n "s/^digest \(.*\)/    ['digest', '\1'],/p" tests/digest/expected.txt
    sed -n "s/^section \(.*\) \(.*\)/    ['\1', '\2'],/p" tests/digest/expected.txt
    echo '];'
} >"$folder/recorded.js"

# colours NUMBER: the light ones (2) or the dark ones (3) of all reports.
colours() {
    sed -n "s/^    { \"\([a-z0-9]*\)\", \"\(#[0-9a-f]*\)\", \"\(#[0-9a-f]*\)\" },\$/    --\1: \\$1;/p" \
        examples/tools/common/app/colours.c
}
printf ':root {\n%s\n}\n@media (prefers-color-scheme: dark) {\n:root {\n%s\n}\n}\n' "$(colours 2)" "$(colours 3)" \
    >"$folder/colours.css"

total=0
for file in index.html $(sed -n -e 's/.* src="\([a-z_]*\.js\)".*/\1/p' -e 's/.* href="\([a-z_]*\.css\)".*/\1/p' \
    "$folder/index.html"); do
    total=$((total + $(wc -c <"$folder/$file")))
done
more=$(wc -c <"$folder/digest.js")
say "${folder#"$root"/}/index.html: the first screen is $total bytes, the digest $more more when asked for"
[ "$total" -le 1500000 ] || { say 'the first screen is more than 1,500,000 bytes'; exit 1; }
