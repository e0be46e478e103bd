#!/bin/sh
# The API reference as pages with a search box, out of the headers' own comments: a page a door. Installs Doxygen when
# it is missing; warnings are errors. Exits with 0, 1 when something is wrong with the comments, 2 when it cannot run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END_OF_USAGE'
usage: scripts/docs.sh [DIRECTORY]

Writes the pages into DIRECTORY/html; .build/docs unless given. Open html/index.html.
END_OF_USAGE
}

one_folder "$root/.build/docs" "$@"
pages=$folder
need doxygen python3
command -v doxygen >/dev/null 2>&1 || { say 'doxygen is missing: install it and start again'; exit 2; }

cd "$root" || exit 2
rm -rf "$pages/html" "$pages/headers"
mkdir "$pages/headers" && python3 scripts/docs/filter.py "$pages/headers" >"$pages/inputs" || exit 2
{
    cat scripts/docs/Doxyfile
    echo "PROJECT_NUMBER = $(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' trnmath/base/base.h)"
    echo "OUTPUT_DIRECTORY = \"$pages\""
    echo "WARN_LOGFILE = \"$pages/warnings\""
    echo "LAYOUT_FILE = \"$pages/layout.xml\""
    echo "HTML_EXTRA_STYLESHEET = \"$root/scripts/docs/docs.css\""
    echo "INPUT = $(tr '\n' ' ' <"$pages/inputs")"
} >"$pages/Doxyfile"
# A door's page begins with its opening, the usage block first; then its names.
doxygen -l "$pages/layout" || exit 2
awk '/<group>/ { group = 1 }
    /<\/group>/ { group = 0 }
    group && /<detaileddescription/ { next }
    { print }
    group && /<briefdescription/ { print "    <detaileddescription title=\"\"/>" }' "$pages/layout" >"$pages/layout.xml"
cd "$pages/headers" || exit 2
doxygen "$pages/Doxyfile" >"$pages/log" 2>&1 || {
    say 'doxygen ended with an error:'
    tail -n 12 "$pages/log" >&2
    exit 2
}
if [ -s "$pages/warnings" ]; then
    say "$(wc -l <"$pages/warnings") warnings:"
    sed "s,^$pages/headers/,,; 20q" "$pages/warnings" >&2
    exit 1
fi
say "$(find "$pages/html" -name '*.html' | wc -l) pages: ${pages#"$root"/}/html/index.html"
