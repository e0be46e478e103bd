#!/bin/sh
# The playground: what its program answers (lib/check_web.py). At level 2 also its page, as scripts/web.sh makes it, in
# headless Chromium and Firefox (lib/web.mjs, with puppeteer and Lighthouse from npm): the same answers as the
# program's, text for text, the same digest as everywhere, at 400 and 1400 pixels, by keyboard, asking nobody.
# Usage: tests/cli/web.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/playground
[ -x "$program" ] || { echo 'SKIP web: without cJSON there are no models to offer'; exit 0; }
. "$root/tests/cli/lib/program.sh"

python3 "$root/tests/cli/lib/check_web.py" "$program" questions >log 2>&1 || fail "check_web.py: $(cat log)"
cat log
[ "${TRN_TEST_LEVEL:-1}" -ge 2 ] || exit $failed

timeout 500 sh "$root/scripts/web.sh" "$scratch/page" >log 2>&1 || fail "web.sh: $(cat log)"
tail -n 1 log
mkdir npm && cp "$root/tests/cli/lib/web.mjs" "$root/tests/cli/lib/pages.js" npm/
(cd npm && npm install --silent --no-audit --no-fund lighthouse@12 puppeteer-core@24 &&
    timeout 500 node web.mjs "$scratch/page" "$program" ../questions) >log 2>&1 || fail "web.mjs: $(tail -n 40 log)"
grep -v '^FAILED' log
exit $failed
