#!/bin/sh
# The colours of all pages, by numbers; and every HTML report and every picture, made from small inputs, opened in a
# headless Chromium at 400 and at 1280 pixels, light and dark: nothing overlaps, is cut off, leaves its picture, is too
# small or too faint to read, or scrolls unseen; nor is anything cut off on paper.
# Usage: tests/cli/pages.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd)
program=$programs/pages
. "$here/lib/program.sh"
. "$here/lib/tools.sh"
. "$here/lib/pictures.sh"

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

all_pictures
for tool in $(tools 'tool bench'); do
    case " $made " in *" $tool "*) continue ;; esac
    [ -x "$programs/$tool" ] || continue
    for command in '' $(commands_of "$tool"); do
        "$programs/$tool" $command --help | grep -qE '^  --(html|report|svg) ' &&
            fail "$tool writes pages, and pages() in tests/cli/tools/$tool.sh makes none"
    done
done
python3 "$root/scripts/docs/gallery.py" pictures.tsv || fail "gallery.py"

# shellcheck disable=SC2086
python3 "$here/lib/pages.py" "$browser" index.html $files || fail "pages"
[ -z "${KEEP:-}" ] || cp index.html ./*.svg $files "$KEEP" # to look at them
exit $failed
