#!/bin/sh
# trnmath-vectors: what the engines' arithmetic gives, in text files, with two programs that hold any implementation
# against them. Installs what is missing, builds the program that writes them, and runs it. Exits with 0, or 2 when it
# cannot run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END_OF_USAGE'
usage: scripts/vectors.sh [FOLDER]

Writes the vectors into FOLDER, which it empties first; .build/vectors unless given. The same bytes every time.

TRN_PEERS     a directory with checkouts of ml_dtypes, eigen, cpfloat (with deps/pcg-c), softfloat, ggml, gfloat,
              microxcaling and MMA-Sim: those that are there are held against the vectors, and a table says who differs
TRN_PROGRAMS  a directory that has the program `vectors` already: nothing is built
END_OF_USAGE
}

one_folder "$root/.build/vectors" "$@"
if [ -n "$(ls -A "$folder")" ] && [ ! -f "$folder/check.py" ]; then
    say "$folder has other files in it than vectors: name another folder"
    exit 2
fi

programs=${TRN_PROGRAMS:-}
if [ -z "$programs" ]; then
    need gcc cmake make pkgconf
    programs=$root/.build/tools
    build_in "$programs" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- vectors
fi

programs=$(CDPATH= cd -- "$programs" && pwd) || exit 2
hold=$(mktemp -d "$folder.XXXXXX") || exit 2 # beside it, and nobody else's
new=$hold/new
trap 'rm -rf "$hold"' EXIT
(
    from=$root/examples/vectors
    mkdir "$new" && cd "$new" && mkdir cast collective decode dot function mx operator random &&
        "$programs/vectors" . && cp "$from/check.c" "$from/check.py" "$root/LICENSE" . &&
        cp "$from/format.md" README.md &&
        find . -type f ! -name SHA256SUMS | sed 's,^\./,,' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
) || { say "the vectors could not be written into $new"; exit 2; }
mv "$folder" "$hold/old" || exit 2
mv "$new" "$folder" || { mv "$hold/old" "$folder"; exit 2; }
bytes=$(find "$folder" -name '*.txt' -exec cat {} + | wc -c)
say "$(find "$folder" -name '*.txt' | wc -l) files, $bytes bytes: $folder"

[ -z "${TRN_PEERS:-}" ] || sh "$root/examples/vectors/with/run.sh" "$folder" "$TRN_PEERS"
