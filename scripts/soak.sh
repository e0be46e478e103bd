#!/bin/sh
# Hours of random cases: builds the fuzzers plain and under AddressSanitizer and UBSan, and runs all of them in rounds,
# with seeds that were never used before. Its state is a journal, one line for each run; all else is counted from it.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END_OF_USAGE'
usage: scripts/soak.sh --hours H [--state FILE] [--slice SECONDS] [--programs DIRECTORY]

  --hours H         until the runs in FILE make H hours together; 0.1 is six minutes
  --state FILE      .build/soak/state unless given. A soak that was ended goes on where it was; one that has its hours
                    needs more of them, or another file. FILE.summary is the page printed at the end, and FILE.failures/
                    holds what failing runs said
  --slice SECONDS   how long each run of a fuzzer is; 10 unless given
  --programs DIR    runs the programs fuzz_* and sanitized_fuzz_* found there and builds none

A round runs each fuzzer once, plain with -O2 or under the sanitizers, and the next round the other way. A fuzzer that
failed three times is left out from then on. Ctrl-C ends the run of now, which does not count, and prints the page.

Exit status: 0 nothing failed, 1 something did, 2 bad usage, it cannot be built, or another soak uses FILE.
END_OF_USAGE
}

# ---- what is asked ----

die() {
    say "$*"
    exit 2
}

# number OPTION VALUE: a decimal number above zero.
number() {
    case $2 in
    '' | *[!0-9.]* | *.*.* | .) die "$1 is '$2', expected a number above 0" ;;
    esac
    awk "BEGIN { exit !($2 > 0 && $2 < 1e6) }" || die "$1 is '$2', expected a number above 0"
}

hours=
slice=10
programs=
mkdir -p "$root/.build/soak" || exit 2
state=$root/.build/soak/state
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --hours | --state | --slice | --programs) [ $# -gt 1 ] || die "$1 needs a value; --help lists them" ;;
    *) die "'$1' is not an option; --help lists them" ;;
    esac
    case $1 in
    --hours) hours=$2 ;;
    --state) state=$2 ;;
    --slice) slice=$2 ;;
    --programs) programs=$2 ;;
    esac
    shift 2
done
[ -n "$hours" ] || die '--hours is missing: how long to run, such as --hours 1'
number --hours "$hours"
number --slice "$slice"
case $state in
/*) ;;
*) state=$PWD/$state ;;
esac

# ---- one soak at a time; the journal ----

command -v flock >/dev/null || die 'flock is missing; it is in util-linux'
exec 9>"$state.lock" || exit 2
flock -n 9 || die "another soak uses $state"
if [ ! -s "$state" ]; then echo "soak 1 from $(date +%s)000" >"$state" || exit 2; fi
read -r word version from first <"$state"
[ "$word $version $from" = 'soak 1 from' ] || die "$state is not the state of a soak"
if [ -n "$(tail -c 1 "$state")" ]; then echo >>"$state"; fi # killed while writing: such a line has no end mark

# from_journal ACTIONS LAST: awk over the lines that are whole:
#     run FUZZER plain|sanitized FIRST-SEED LAST-SEED CASES SECONDS STATUS CASE .       CASE: that failed, else -
#     skip FUZZER plain|sanitized .      it cannot run as it was built
#     out FUZZER plain|sanitized .       its turn, but it was left out
from_journal() { awk -v name="${3:-}" "\$NF != \".\" { next } $1 END { $2 }" "$state"; }
seconds_done() { from_journal '$1 == "run" { s += $7 }' 'printf "%.1f", s'; }
turns_done() { from_journal '{ n++ }' 'print n + 0'; }
failures() { from_journal '$1 == "run" && $8 { n++ }' 'print n + 0'; }
next_seed() { from_journal '$1 == "run" && $2 == name { s = $5 + 1 }' "printf \"%.0f\", s ? s : $first" "$1"; }
left_out() { from_journal '$2 == name && ($1 == "skip" || $8) { n += $1 == "skip" ? 3 : 1 }' 'exit !(n >= 3)' "$1"; }
seconds_left() {
    awk "BEGIN { left = 3600 * $hours - $(seconds_done); printf \"%.1f\", left < $slice ? left : $slice }"
}

# ---- the page ----

summary() {
    awk -v hours="$hours" -v programs="$programs" -v state="$state" -v root="$root/" '
    function short(path) { return index(path, root) == 1 ? substr(path, length(root) + 1) : path }
    function cell(f, way) { return sprintf(" %14.0f %9.0f %8d", cases[f, way], time[f, way], failed[f, way]) }
    $NF != "." { next }
    $1 == "out" { next }
    $1 == "skip" { skipped = skipped " " $2; next }
    {
        if (!($2 in seen)) { seen[$2] = 1; name[++names] = $2 }
        runs++
        n = split($2 " total", of, " ")
        for (i = 1; i <= n; i++) {
            cases[of[i], $3] += $6; time[of[i], $3] += $7; failed[of[i], $3] += $8 != 0
        }
        total += $7
        if ($8 == 0) next
        program = ($3 == "plain" ? "" : "sanitized_") $2
        why = why "\n" program ": seed " ($9 == "-" ? $4 : $5 ", case " $9) ", status " $8
        why = why "\n    what it said: " short(state) ".failures/" program "-" $4 ".txt\n    once more: "
        if ($9 == "-") why = why "TRN_FUZZ_SEED=" $4 " TRN_FUZZ_SECONDS=" $7 " " short(programs) "/" program
        else why = why short(programs) "/" program " " $9 + 1 " " $5
    }
    END {
        printf "Soak: %.4g of %g hours, %d runs of %d fuzzers.\n\n", total / 3600, hours, runs, names
        printf "%-18s %33s %33s\n", "", "plain, -O2   ", "ASan and UBSan   "
        printf "%-18s %14s %9s %8s %14s %9s %8s\n", "", "cases", "seconds", "failures", "cases", "seconds", "failures"
        name[names + 1] = "total"
        for (i = 1; i <= names + 1; i++)
            printf "%-18s%s%s\n", name[i], cell(name[i], "plain"), cell(name[i], "sanitized")
        if (skipped) print "\nNot run, because they were built without what they need:" skipped
        print why ? why : "\nNothing failed."
    }' "$state"
}

# finish: prints the page, leaves it beside the state, and ends.
finish() {
    summary >"$state.summary.new" && mv "$state.summary.new" "$state.summary"
    cat "$state.summary"
    [ "$(failures)" -eq 0 ]
    exit
}

# ---- the programs ----

if [ -z "$programs" ]; then
    programs=$root/.build/soak/build
    fuzzers=$(cd "$root/tests/fuzz" && ls fuzz_*.c | sed 's/[.]c$//')
    need gcc cmake make pkgconf libcmocka-dev libmpfr-dev libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev \
        libprotobuf-c-dev protobuf-c-compiler
    # shellcheck disable=SC2046,SC2086
    build_in "$programs" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_SANITIZED_TWINS=FUZZERS -DTRN_PROGRAMS=OFF \
        -DTRN_HOUSE=OFF -- $fuzzers $(for fuzzer in $fuzzers; do echo "sanitized_$fuzzer"; done)
else
    named=$programs
    programs=$(CDPATH= cd -- "$named" 2>/dev/null && pwd) || die "--programs $named: there is no such directory"
    fuzzers=$(cd "$programs" && ls | sed -n 's/^sanitized_\(fuzz_[a-z0-9_]*\)$/\1/p')
    [ -n "$fuzzers" ] || die "--programs $named: there is no sanitized_fuzz_* in it"
    for fuzzer in $fuzzers; do
        [ -x "$programs/$fuzzer" ] || die "--programs $named: sanitized_$fuzzer is there and $fuzzer is not"
    done
fi

# ---- the rounds ----

child=
stop=
trap 'stop=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' INT TERM
said=$state.said
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY

# run FUZZER WAY SECONDS: one run, and its line in the journal.
run() {
    program=$1
    [ "$2" = plain ] || program=sanitized_$1
    seed=$(next_seed "$1")
    began=$(date +%s)
    (cd "$root/tests" && TRN_FUZZ_SECONDS=$3 TRN_FUZZ_SEED=$seed exec timeout -k 10 "$((${3%.*} + 150))" \
        "$programs/$program") >"$said" 2>&1 9>&- &
    child=$!
    wait $child
    status=$?
    if [ -n "$stop" ]; then
        wait $child 2>/dev/null
        return
    fi
    child=
    # "fuzz_x: CASES cases, seeds FIRST to LAST, SECONDS s" of a run that came to its end
    counts=$(sed -n 's/^.*: \([0-9]*\) cases, seeds \([0-9]*\) to \([0-9]*\), \([0-9.]*\) s$/\3 \1 \4/p' "$said")
    # "seed SEED, case CASE failed; once more: ..."
    failed=$(sed -n 's/^seed \([0-9]*\), case \([0-9]*\) failed; .*/\1 \2/p' "$said" | head -n 1)
    if [ -z "$counts" ] && [ $status -eq 0 ]; then
        echo "skip $1 $2 ." >>"$state"
        return
    fi
    if [ $status -ne 0 ]; then
        mkdir -p "$state.failures" && cp "$said" "$state.failures/$program-$seed.txt"
        say "$program failed with status $status, seed ${failed%% *}"
    fi
    if [ -n "$failed" ]; then
        counts="${failed% *} $((${failed#* } + 1)) $(($(date +%s) - began))"
    elif [ -z "$counts" ]; then
        counts="$seed 0 $(($(date +%s) - began))"
    fi
    case=${failed#* }
    echo "run $1 $2 $seed $counts $status ${case:--} ." >>"$state"
}

say "$(seconds_done) s of $hours h are done; the state is in $state"
# shellcheck disable=SC2086
set -- $fuzzers
idle=0 # turns in a row of fuzzers that are left out
while [ -z "$stop" ] && [ $idle -lt $# ]; do
    seconds=$(seconds_left)
    awk "BEGIN { exit !($seconds >= 0.1) }" || break
    turn=$(turns_done)
    fuzzer=$(echo "$*" | cut -d ' ' -f $((turn % $# + 1)))
    way=plain
    [ $(((turn / $# + turn % $#) % 2)) -eq 0 ] || way=sanitized
    if left_out "$fuzzer"; then
        idle=$((idle + 1))
        echo "out $fuzzer $way ." >>"$state"
    else
        idle=0
        run "$fuzzer" "$way" "$seconds"
    fi
done
finish
