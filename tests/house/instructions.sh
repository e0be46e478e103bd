#!/bin/sh
# The table of nki.isa in trnmath/engines.md is true: every instruction it names is a function of the headers and of a
# core, and every instruction of a core is in the table.
. "$(dirname -- "$0")/lib.sh"

page=$root/trnmath/engines.md
table=$scratch/table
sed -n '/^## Every instruction of nki.isa/,/^<!-- end of arguments/p' "$page" | grep '^| *`' | cut -d'|' -f2 >"$table"
tr ',' '\n' <"$table" | sed -n 's/.*`\([a-z_0-9]*\)`.*/\1/p' | sort -u >"$scratch/named"
sed -n 's/^    X(\([a-z_0-9]*\), .*/\1/p' "$root/trnmath/core/core_rows.h" | sort -u >"$scratch/core"
grep -ho 'trn_status trn_[a-z_0-9]*(const trn_[a-z_0-9]*_args' "$root"/trnmath/*/*.h |
    sed 's/trn_status trn_\([a-z_0-9]*\)(.*/\1/' | sort -u >"$scratch/functions"

checked
[ "$(wc -l <"$scratch/core")" -ge 40 ] || fail "core/core_rows.h: fewer than 40 instructions were found"
while read -r name; do
    checked
    plain=${name#trn_}
    case $plain in
    get_nc_version | get_nc_sub_version | register_*) continue ;; # a field and a table; variables
    core_barrier | sendrecv) # of many cores
        grep -q "trn_status trn_cores_${plain#core_}(" "$root/trnmath/cores/cores.h" ||
            fail "trnmath/engines.md names $name, but cores/cores.h has none"
        continue
        ;;
    esac
    grep -qx "$plain" "$scratch/functions" || fail "trnmath/engines.md names $name, but there is no trn_$plain"
    grep -qx "$plain" "$scratch/core" || fail "trnmath/engines.md names $name, but a core does not run it"
done <"$scratch/named"
while read -r name; do
    checked
    case $name in
    vector_transpose) continue ;;    # nc_transpose's row
    partition_broadcast) continue ;; # nl.broadcast_to's: nki.isa has none
    esac
    grep -Eqx "(trn_)?$name" "$scratch/named" || fail "a core runs $name, which the table of trnmath/engines.md lacks"
done <"$scratch/core"

# ---- the page is made from the file of NKI's calls, each of whose arguments is answered ----

checked
python3 "$root/tests/house/nki_isa.py" >"$scratch/made" || fail "$(cat "$scratch/made")"
finish
