#!/bin/sh
# The page a sceptic reads first: installs what is missing, builds the conformance kit and runs it. Arguments go to it;
# without any the results are also left in .build/conformance/. Exits with its status.
set -u
. "$(dirname -- "$0")/setup.sh"

case ${1:-} in
-h | --help)
    cat <<'END'
usage: scripts/conformance.sh                every published figure we know of, beside ours; the results also go to
                                             .build/conformance/conformance.{txt,json,csv,html}
       scripts/conformance.sh OPTIONS        for instance:
       scripts/conformance.sh --only sr --all        stochastic rounding, each vector; * stands for anything
       scripts/conformance.sh --list                 the names
       scripts/conformance.sh --long                 also the sweeps that take minutes
       scripts/conformance.sh --html page.html       one page; --json FILE and --csv FILE, too
       scripts/conformance.sh --schema               the columns of the CSV

Exit status: 0 all pass, 1 a failure, 2 bad usage, or it cannot be built.
END
    exit 0
    ;;
esac

need gcc cmake make pkgconf libcjson-dev zlib1g-dev libmpfr-dev

build=$root/.build/conformance
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- conformance

if [ $# -gt 0 ]; then exec "$build/conformance" "$@"; fi

results=.build/conformance
cd "$root" || exit 2
"$build/conformance" --json $results/conformance.json --csv $results/conformance.csv --html $results/conformance.html \
    >"$results/conformance.txt"
status=$?
cat "$results/conformance.txt"
say "also written: $results/conformance.txt, conformance.json, conformance.csv, conformance.html"
exit $status
