#!/bin/sh
# The gallery: builds the tools, lets each draw its pictures, and makes one page of them, with the commands. Exits with
# 0, 1 when a picture could not be made, 2 when it cannot run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END_OF_USAGE'
usage: scripts/gallery.sh [DIRECTORY]

Draws into DIRECTORY, which it empties first; .build/gallery unless given. Open index.html.
END_OF_USAGE
}

one_folder "$root/.build/gallery" "$@"
gallery=$folder
if [ -n "$(ls -A "$gallery")" ] && [ ! -f "$gallery/pictures.tsv" ]; then
    say "$gallery has other files in it than a gallery's: name another folder"
    exit 2
fi

need gcc cmake make pkgconf libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev libprotobuf-c-dev protobuf-c-compiler \
    libmpfr-dev python3-numpy
programs=$root/.build/tools
. "$root/tests/cli/lib/tools.sh"
. "$root/tests/cli/lib/pictures.sh"
# shellcheck disable=SC2046
build_in "$programs" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- $(tools 'tool bench') \
    conformance kernels_run trnmath_flat

rm -rf "$gallery"
mkdir -p "$gallery" && cd "$gallery" || exit 2
failed=0
fail() { say "$*"; failed=1; }
all_pictures
python3 "$root/scripts/docs/gallery.py" pictures.tsv || exit 2
say "$(wc -l <pictures.tsv) commands, $(grep -c '<figure>' index.html) pictures: $gallery/index.html"
exit $failed
