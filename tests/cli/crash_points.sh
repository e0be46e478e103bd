#!/bin/sh
# Programs that are ended at each of their steps, and whose disk is full from each of them on: afterwards the old or the
# new is there, whole; lib/crash_points.py says what is asked, and tests/cli/tools/TOOL.py of which runs. Level 1 takes
# some steps of each program and all around the last ones, level 2 takes all.
# Usage: tests/cli/crash_points.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/fp8conv
. "$root/tests/cli/lib/program.sh"

if ! command -v python3 >/dev/null || ! strace -f -o /dev/null true 2>/dev/null; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" strace "*) echo "SKIP strace: it does not run here, or there is no python3 (expected)" && exit 0 ;;
    esac
    echo "FAILED: strace does not run here, or there is no python3 (Debian: strace, python3);" \
        "if that is so on purpose, put strace into TRN_EXPECT_SKIPS"
    exit 1
fi

most=5
[ "${TRN_TEST_LEVEL:-1}" -ge 2 ] && most=0
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/cli/lib/crash_points.py" "$programs" "$root" $most || failed=1

if [ ! -x "$program" ]; then
    echo "SKIP fp8conv: it was not built"
    exit $failed
fi

# No room for a second conversion: the old one is whole, and nothing else is there.
mkdir full && cp -R start-first/in full/in && cd full || exit 1
head -c 5000 /dev/zero >in/tokenizer.json
works in new
cp -R new kept
(
    trap '' XFSZ # the write fails instead
    ulimit -f 1  # no file longer than 512 or 1024 bytes: shards fit in part, what is copied does not
    exec "$program" in new --mode ratio --force --json new.json
) >/dev/null 2>&1 && fail "it fits where there is no room"
diff -r kept new >/dev/null || fail "no room: the old one is not whole"
[ "$(ls | tr '\n' ' ')" = "err in kept new out " ] || fail "no room: left behind: $(ls)"
[ $failed = 0 ] && echo "crash_points: all is well"
exit $failed
