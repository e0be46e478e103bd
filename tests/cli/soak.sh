#!/bin/sh
# scripts/soak.sh with fuzzers of some lines each: what it counts, that no seed comes twice, that it goes on after a
# kill, ends on a signal, runs once at a time, and ends with 1 when something failed; and one real fuzzer, where built.
# Usage: tests/cli/soak.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
built=$1
program=$(CDPATH= cd -- "$(dirname -- "$0")/../../scripts" && pwd)/soak.sh
if ! command -v flock >/dev/null; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *' flock '*) exit 0 ;;
    esac
    echo 'FAILED: flock is missing; where it is meant to be, put flock into TRN_EXPECT_SKIPS'
    exit 1
fi
. "$(dirname -- "$0")/lib/program.sh"

# fake NAME COMMANDS: a fuzzer, plain and sanitized
fake() {
    printf '#!/bin/sh\nself=${0##*/}\n%s\n' "$2" >"p/$1"
    chmod +x "p/$1"
    cp "p/$1" "p/sanitized_$1"
}
good='echo "$self: 7 cases, seeds $TRN_FUZZ_SEED to $((TRN_FUZZ_SEED + 1)), 0.6 s"'
bad='echo "seed $TRN_FUZZ_SEED, case 41 failed; once more: $self 42 $TRN_FUZZ_SEED" >&2; exit 134'

# soaks STATUS ARGUMENTS...: it ends with that status
soaks() {
    want=$1
    shift
    "$program" "$@" >out 2>err
    status=$?
    [ $status = "$want" ] || fail "soak.sh $*: exit $status, expected $want: $(cat out err)"
}

# runs_of FUZZER: lines "FIRST LAST" of its runs, from the state
runs_of() { awk -v name="$1" '$NF == "." && $1 == "run" && $2 == name { print $4, $5 }' state; }

# every first seed is beyond the last seed before it
fresh() {
    runs_of "$1" | awk 'NR > 1 && $1 <= last { exit 1 } { last = $2 }' || fail "a seed of $1 came twice: $(cat state)"
}

# ---- usage ----

mkdir p
refuses '--hours is missing: how long to run, such as --hours 1'
refuses "--hours is '0', expected a number above 0" --hours 0 --state state
refuses "--hours is '1h', expected a number above 0" --hours 1h --state state
refuses "--slice is '', expected a number above 0" --hours 1 --slice '' --state state
refuses '--hours needs a value; --help lists them' --hours
refuses "'--frob' is not an option; --help lists them" --frob
refuses "--programs p: there is no sanitized_fuzz_* in it" --hours 1 --state state --programs p
refuses "--programs q: there is no such directory" --hours 1 --state state --programs q
echo 'something else' >other
refuses "$PWD/other is not the state of a soak" --hours 1 --state other --programs p
[ "$(cat other)" = 'something else' ] || fail 'a file that is no state was written to'
works --help
says 'usage: scripts/soak.sh --hours H'
rm -f state

# ---- what it counts ----

fake fuzz_a "$good"
fake fuzz_b "$good"
works --hours 0.001 --slice 1 --state state --programs p
says 'Soak: 0.001 of 0.001 hours, 6 runs of 2 fuzzers.'
[ "$(grep '^fuzz_a' out | tr -s ' ')" = 'fuzz_a 14 1 0 7 1 0' ] || fail "other counts: $(cat out)"
[ "$(grep '^total' out | tr -s ' ')" = 'total 21 2 0 21 2 0' ] || fail "other totals: $(cat out)"
says 'Nothing failed.'
cmp -s out state.summary || fail 'the page beside the state is another'
fresh fuzz_a
works --hours 0.001 --slice 1 --state state --programs p
says '6 runs of 2 fuzzers'
works --hours 0.0015 --slice 1 --state state --programs p
says '9 runs of 2 fuzzers'
fresh fuzz_a
fresh fuzz_b

# ---- killed while it wrote a line, and started again ----

printf 'run fuzz_b plain 1 99999' >>state
works --hours 0.0017 --slice 1 --state state --programs p
says '11 runs of 2 fuzzers'
fresh fuzz_b

# ---- what fails ----

fake fuzz_bad "$bad"
fake fuzz_without 'echo nothing to run'
rm state
soaks 1 --hours 0.001 --slice 1 --state state --programs p
says 'Not run, because they were built without what they need: fuzz_without'
first=$(runs_of fuzz_bad | head -n 1)
says "fuzz_bad: seed ${first% *}, case 41, status 134"
says "once more: $PWD/p/fuzz_bad 42 ${first% *}"
says "what it said: $PWD/state.failures/fuzz_bad-${first% *}.txt"
grep -qx "seed ${first% *}, case 41 failed; once more: fuzz_bad 42 ${first% *}" \
    "state.failures/fuzz_bad-${first% *}.txt" || fail 'what the failing run said is not kept'
[ "$(runs_of fuzz_bad | wc -l)" -le 3 ] || fail 'a fuzzer that failed three times was not left out'
soaks 1 --hours 0.001 --slice 1 --state state --programs p
rm -f p/*fuzz_a p/*fuzz_b p/*fuzz_without state
soaks 1 --hours 1 --slice 1 --state state --programs p # all are left out, so it ends
fake fuzz_bad 'exit 3'
rm -f state
soaks 1 --hours 1 --slice 1 --state state --programs p # nor did it say which case
first=$(runs_of fuzz_bad | head -n 1)
says "once more: TRN_FUZZ_SEED=${first% *} TRN_FUZZ_SECONDS="
fake fuzz_bad "$good; exit 1" # the end was not as it should be
rm -f state
soaks 1 --hours 0.0001 --slice 1 --state state --programs p

# ---- ended by a signal, one at a time, and killed ----

rm -f p/* state
# begins NAME: a soak in the background, until its fuzzer runs
begins() {
    rm -f "$started"
    "$program" --hours 1 --state state --programs p >out 2>err &
    soak=$!
    for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ ! -e "$started" ] || return
        sleep 0.5
    done
    fail 'the fuzzer was not started'
}
started=$PWD/started
fake fuzz_slow "echo \$\$ >$started; exec sleep 100"
begins
"$program" --hours 1 --state state --programs p >out2 2>err2 && fail 'a second soak with one state was not refused'
[ "$(cat err2)" = "soak.sh: another soak uses $PWD/state" ] || fail "the second soak said: $(cat err2)"
kill -TERM $soak
wait $soak || fail "ended by a signal, it said $?"
says 'Soak: 0 of 1 hours, 0 runs of 0 fuzzers.'
sleep 0.5
kill -0 "$(cat "$started")" 2>/dev/null && fail 'its fuzzer was left behind'
begins
kill -KILL $soak
wait $soak 2>/dev/null
rm p/*
fake fuzz_a "$good"
works --hours 0.0001 --slice 1 --state state --programs p
kill "$(cat "$started")" 2>/dev/null

# ---- a real one ----

if [ -x "$built/fuzz_pspec" ]; then
    rm -f p/* state
    for way in '' sanitized_; do
        if [ -x "$built/${way}fuzz_pspec" ]; then from=$built/${way}fuzz_pspec; else from=$built/fuzz_pspec; fi
        ln -s "$from" "p/${way}fuzz_pspec"
    done
    works --hours 0.0008 --slice 1 --state state --programs p
    says 'Nothing failed.'
    fresh fuzz_pspec
    awk '$1 == "run" && $6 < 1 { exit 1 }' state || fail 'a real fuzzer made no case'
fi

[ $failed = 0 ] && echo 'soak: all as expected'
exit $failed
