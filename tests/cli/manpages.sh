#!/bin/sh
# Manual pages: every program has one, the options it names are those of --help (of all subcommands), it renders without
# a warning, it tells this version, and the library's example compiles and prints what the page says.
# Usage: tests/cli/manpages.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/manpages
. "$root/tests/cli/lib/program.sh"
. "$root/tests/cli/lib/tools.sh"
looked=0

version=$(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h")

# options TEXT-FILE: every --word in it; "--fail-..." is none
options() {
    sed 's/--[a-z-]*[.][.][.]//g' "$1" | tr -c 'A-Za-z0-9-' '\n' | grep -E '^--[a-z][a-z0-9-]*$' | sort -u
}

# helped TOOL: --help, and that of each subcommand
helped() {
    "$programs/$1" --help
    for command in $(commands_of "$1"); do "$programs/$1" "$command" --help; done
}

# page FILE: what every page has
page() {
    looked=$((looked + 1))
    title=$(sed -n 's/^\.TH //p' "$1")
    name=$(basename "${1%.*}")
    case $title in
    [A-Z]*"\"trnmath $version\""*) ;;
    *) fail "${1#"$root/"}: its .TH line does not say \"trnmath $version\": $title" ;;
    esac
    for section in NAME SYNOPSIS DESCRIPTION EXAMPLES; do
        grep -q "^\.SH \"*$section" "$1" || fail "${1#"$root/"}: it has no section $section"
    done
    grep -A1 '^\.SH NAME' "$1" | grep -q "^$name \\\\- " || fail "${1#"$root/"}: NAME does not begin with '$name \\-'"
    # (Whether long tables fit is not the page's fault: wide enough.)
    if command -v man >/dev/null && command -v groff >/dev/null; then
        LC_ALL=C.UTF-8 MANWIDTH=200 man --warnings=w -l "$1" >rendered 2>warnings
        [ -s rendered ] && [ ! -s warnings ] || fail "${1#"$root/"}: man says: $(head -n 3 warnings)"
    fi
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$1" >warnings 2>&1 || fail "${1#"$root/"}: mandoc says: $(head -n 3 warnings)"
    fi
}

for tool in $(tools 'tool bench'); do
    file=$(tool_page "$tool")
    if [ ! -f "$file" ]; then
        fail "${file#"$root/"} is missing"
        continue
    fi
    built "$tool" || continue
    page "$file"
    helped "$tool" >help 2>&1
    options help >want
    sed 's/\\&//g; s/\\-/-/g; s/\\f[BIRP]/ /g' "$file" >plain
    options plain >got
    [ -s want ] || fail "$tool --help names no options, so this check is blind"
    for option in $(comm -23 want got); do fail "$tool.1: --help has $option, the page has not"; done
    for option in $(comm -13 want got); do fail "$tool.1: the page has $option, --help has not"; done
done

library=$root/trnmath/trnmath.3
page "$library"
sed -n '/^\.SH EXAMPLES/,$p' "$library" | sed -n '/^#include/,/^\.fi/p' | sed '/^\.fi/d; s/\\e/\\/g' >example.c
cc=${CC:-cc}
command -v clang >/dev/null && cc=clang # four times as fast as gcc without optimising
if "$cc" -std=c11 -O0 -I"$root" example.c -o example -lm 2>log; then
    ./example >out || fail "trnmath.3: its example exits with $?"
    while IFS= read -r line; do
        grep -qxF -- "$line" "$library" || fail "trnmath.3: its example prints '$line', which the page has not"
    done <out
    [ -s out ] || fail 'trnmath.3: its example prints nothing'
else
    fail "trnmath.3: its example does not compile: $(head -n 5 log)"
fi
[ $looked -gt 2 ] || fail "only $looked pages were looked at: no programs in $programs?"
[ $failed = 0 ] && echo "manpages: $looked pages are as their programs are"
exit $failed
