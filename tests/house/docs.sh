#!/bin/sh
# The API reference: scripts/docs.sh makes it without a warning; the search box finds every public function and type of
# the doors' CONTENTS, and no private name; no link is dead; no page is wider than the screen at 400 and at 1400 pixels;
# and a name that is gone is an error.
. "$(dirname -- "$0")/lib.sh"

have doxygen || {
    skip doxygen 'doxygen is not installed (Debian: doxygen), so the API reference was not made'
    finish
}
step 'scripts/docs.sh does not make the API reference' sh "$root/scripts/docs.sh" "$scratch/docs" || finish
python3 "$root/scripts/docs/filter.py" --names >"$scratch/names"
browser=
for candidate in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $candidate)
done
[ -n "$browser" ] || skip chromium 'there is no browser (Debian: chromium), so nobody looked at the pages'
python3 "$root/tests/house/docs.py" "$scratch/docs/html" "$scratch/names" "$browser" >"$scratch/found"
checks=$((checks + $(sed -n 's/^looked at \([0-9]*\).*/\1/p' "$scratch/found")))
grep '^looked at' "$scratch/found" || fail_log "$scratch/found" 'tests/house/docs.py came to no end'
grep -v '^looked at' "$scratch/found" >"$scratch/list"
fail_each "$scratch/list" '%s'

# Level 2: a name of CONTENTS that is gone, in a copy, must be an error.
[ "$level" -ge 2 ] || finish
checked
mkdir "$scratch/copy" && cp -R "$root/trnmath" "$root/scripts" "$scratch/copy/"
sed 's,trn_act_from_name(const,trn_act_from_nowhere(const,' "$root/trnmath/engine/act.h" \
    >"$scratch/copy/trnmath/engine/act.h"
sh "$scratch/copy/scripts/docs.sh" "$scratch/bad" >"$scratch/log" 2>&1 &&
    fail 'scripts/docs.sh does not mind that CONTENTS names what is not there'
finish
