#!/bin/sh
# The colours of all pages, by numbers; and every HTML report and every picture, made from small inputs, opened in a
# headless Chromium at 400 and at 1280 pixels, light and dark: nothing overlaps, is cut off, leaves its picture, is too
# small or too faint to read, or scrolls unseen; nor is anything cut off on paper.
# Usage: tests/cli/pages.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
models=$root/examples/tools/shardplan/models
programs=$(CDPATH= cd -- "$1" && pwd)
program=$programs/pages
. "$here/lib/program.sh"
. "$here/lib/tools.sh"

python3 "$here/lib/check_colours.py" "$root/examples/tools/common/app/colours.c" || fail "colours"

browser=
for candidate in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $candidate)
done
if [ -z "$browser" ]; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" chromium "*)
        echo "SKIP chromium: there is no browser here (expected)"
        exit $failed
        ;;
    esac
    echo "FAILED: there is no browser here (Debian: chromium); if that is so on purpose, put chromium into" \
        "TRN_EXPECT_SKIPS"
    exit 1
fi

# make FILE PROGRAM ARGUMENTS...: the program, if it was built, writes that file.
files= made=
make() {
    file=$1
    tool=$2
    shift 2
    built "$tool" || return
    made="$made $tool"
    "$programs/$tool" "$@" >out 2>err
    status=$?
    [ $status = "${expected:-0}" ] || fail "$tool $*: exit $status: $(cat err)"
    [ -s "$file" ] || { fail "$tool $*: there is no $file"; return; }
    files="$files $file"
}

each_tool pages
for tool in $(tools 'tool bench'); do
    case " $made " in *" $tool "*) continue ;; esac
    [ -x "$programs/$tool" ] || continue
    for command in '' $(commands_of "$tool"); do
        "$programs/$tool" $command --help | grep -qE '^  --(html|report|svg) ' &&
            fail "$tool writes pages, and pages() in tests/cli/tools/$tool.sh makes none"
    done
done
make conformance.html conformance --only cost.chip --html conformance.html
for kernel in flash_attention softmax; do
    make $kernel.svg kernels/run $kernel --generation trn2 --svg $kernel.svg
done

# shellcheck disable=SC2086
python3 "$here/lib/pages.py" "$browser" $files || fail "pages"
[ -z "${KEEP:-}" ] || cp $files "$KEEP" # to look at them
exit $failed
