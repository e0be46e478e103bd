#!/bin/sh
# The opening comment of every door: name, SPDX line, DOES, DOES NOT, CONTENTS, KNOWN FROM. CONTENTS names the door's
# parts; each name in it exists in the door or in a part of it, and each public type and function that these define is
# in it, and behind no other door. A name such as trn_<format>_from_f32 stands for all that fit. The opening comment of
# every part and room: two lines, its name and what it does, and whose it is.
. "$(dirname -- "$0")/lib.sh"

parts_and_doors >"$scratch/of"
for header in $(doors); do
    checked
    awk -v door="$header" '$2 == door { print $1 }' "$scratch/of" >"$scratch/parts_here"
    sed -n 's,^ \*   \([a-z]*/[a-z0-9_]*\.h\): .*,\1,p' "$root/trnmath/$header" | sort >"$scratch/named"
    comm -3 "$scratch/parts_here" "$scratch/named" | tr -d '\t' >"$scratch/list"
    fail_each "$scratch/list" "$header: %s is a part that CONTENTS does not name, or is named and is none"
    checked
    # shellcheck disable=SC2046
    awk -v header="$header" -v names="$scratch/names" '
        function tell(text) { print "FAIL " header ": " text }

        # CONTENTS lines: names with commas between them, two spaces, a phrase. A line whose first word is no name of
        # ours continues the phrase above it.
        function list_names(line,    n, part, i, name) {
            sub(/^ \*     /, "", line)
            if (line !~ /^(trni?|TRNI?)_/) return
            sub(/   *[^ ].*$/, "", line)
            n = split(line, part, /, */)
            for (i = 1; i <= n; i++) {
                name = part[i]
                sub(/ .*$/, "", name)
                sub(/\(.*$/, "", name)
                if (name ~ /^(trni?|TRNI?)_[A-Za-z0-9_<>*]+$/) listed[name] = 1
            }
        }

        function pattern_of(name) {
            gsub(/<[a-z_]+>/, "[A-Za-z0-9_]+", name)
            gsub(/\*/, "[A-Za-z0-9_]*", name)
            return "^" name "$"
        }

        FNR == 1 && NR > 1 { opening = 1 } # of a part
        opening {
            if (/\*\//) opening = 0
            next
        }
        NR == 1 {
            comment = 1
            if (index($0, "/* " header " - ") != 1)
                tell("line 1 does not read \"/* " header " - what it is in one sentence\"")
        }
        NR == 2 && !/SPDX-License-Identifier: MIT/ { tell("line 2 is not the SPDX line") }

        comment {
            if (/^ \* DOES:/) does = 1
            if (/^ \* DOES NOT:/) does_not = 1
            if (/^ \* KNOWN FROM:/) known = 1
            if (/^ \* CONTENTS/) { contents = 1; in_contents = 1; next }
            if (in_contents && (/^ \*$/ || /^ \* [^ ]/ || /\*\//)) in_contents = 0
            if (in_contents) list_names($0)
            if (/\*\//) comment = 0
            next
        }

        {
            text = $0
            while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
                exists[substr(text, RSTART, RLENGTH)] = 1
                text = substr(text, RSTART + RLENGTH)
            }
            # functions and types at file scope; a function in a macro body (## in it) is covered by a pattern
            head = $0
            sub(/ \{.*/, "", head)
            if (/^(TRN_API|TRNI_FN|TRNI_INLINE|TRNI_KERNEL|static|__attribute__|TRNI_DATA)/ &&
                match(head, /[^A-Za-z0-9_]trn_[a-z0-9_]+\(/))
                defined[substr(head, RSTART + 1, RLENGTH - 2)] = FNR
            if (/^typedef (enum|struct|union) trn_/) defined[$3] = FNR
            else if (/^typedef .* \**trn_[a-z0-9_]+;/) {
                name = $0
                sub(/;.*/, "", name)
                sub(/^.*[^a-z0-9_]/, "", name)
                defined[name] = FNR
            }
            else if (/^} trn_[a-z0-9_]+;/) { name = $2; sub(/;.*/, "", name); defined[name] = FNR }
        }

        END {
            if (!does) tell("its opening comment has no DOES: section")
            if (!does_not) tell("its opening comment has no DOES NOT: section")
            if (!known) tell("its opening comment has no KNOWN FROM: section")
            if (!contents) tell("its opening comment has no CONTENTS section")
            for (name in listed) {
                if (name in exists) continue
                found = 0
                pattern = pattern_of(name)
                if (pattern != "^" name "$") {
                    for (other in exists) if (other ~ pattern) { found = 1; break }
                    # made by a macro: its pieces are there (trn_##name##_from_f32)
                    n = split(name, piece, /<[a-z_]+>|\*/)
                    for (other in exists) if (!found && n > 1 && piece[n] != "" && other == piece[n]) found = 1
                }
                if (!found) tell("CONTENTS names " name ", which the file does not define")
            }
            for (name in defined) {
                print name, header >>names
                if (name in listed) continue
                found = 0
                for (other in listed) if (name ~ pattern_of(other)) { found = 1; break }
                if (!found) tell("line " defined[name] " defines " name ", which CONTENTS does not mention")
            }
            n = 0
            for (name in listed) n++
            if (contents && !n && header !~ /^trnmath\.h$/) tell("CONTENTS lists no name that this check understands")
        }' "$root/trnmath/$header" $(sed "s,^,$root/trnmath/," "$scratch/parts_here") | sort >"$scratch/found"
    cat "$scratch/found"
    failures=$((failures + $(wc -l <"$scratch/found")))
done
sort -u "$scratch/names" | cut -d' ' -f1 | uniq -d >"$scratch/list"
fail_each "$scratch/list" '%s is declared behind two doors'

for room in $(headers | grep /); do
    checked
    awk -v room="$room" '
        FNR == 1 && index($0, "/* " room " - ") != 1 { print "line 1 does not read \"/* " room " - what it does\"" }
        FNR == 2 && /^ \* A part of / { part = 1 }
        FNR == 2 && !/^ \* (Behind|A room of|A part of) .*SPDX-License-Identifier: MIT$/ {
            print "line 2 does not say whose it is, and its licence"
        }
        /#include <trnmath/ && /^ \*/ && !part { print "shows a program, but nobody may include a room" }
        FNR == 60 { exit }' "$root/trnmath/$room" | sed "s,^,$room: ,"
done >"$scratch/list"
fail_each "$scratch/list" '%s'
# Calls that take arguments refuse NULL and the wrong flags, and compute in modes of their own, on each thread. (Where
# arguments come through another call, that one does.)
handed_on='trn_replica_group_check trn_mx_to_sbuf trn_mx_from_sbuf trn_topology_svg'
for header in $(headers); do
    checked
    awk -v handed_on=" $handed_on " '
        /^TRN_API trn_status trn_[a-z0-9_]+\(const trn_[a-z0-9_]+_args \*args/ || /^TRN_API trn_status trn_mpi_/ {
            name = $3
            sub(/\(.*/, "", name)
            entered = index(handed_on, " " name " ") > 0
            inside = 1
        }
        inside && /;$/ && !/^    / { inside = 0 } # a prototype
        /TRNI_ENTER\(/ { entered = 1 }
        inside && /^}/ {
            if (!entered) printf "%s: %s does not begin with TRNI_ENTER\n", FILENAME, name
            inside = 0
        }
        /#pragma omp parallel/ { printf "%s, line %d: a parallel region without TRNI_PARALLEL\n", FILENAME, FNR }
        /^ +TRNI_PARALLEL/ { region = FNR }
        region && FNR == region + 2 && !/^ +TRNI_FLOATS;$/ {
            printf "%s, line %d: a parallel region does not begin with TRNI_FLOATS\n", FILENAME, region
        }
        region && /^ +TRNI_PARALLEL.*/ && !/num_threads\(/ {
            printf "%s, line %d: a parallel region without num_threads\n", FILENAME, FNR
        }' "$root/trnmath/$header"
done >"$scratch/list"
fail_each "$scratch/list" '%s'

# The umbrella defines nothing, so its contents are its includes; house.sh checks those.
finish
