# Sets $python to a python3 that has NumPy, and ends the test when there is none. A path that nobody expects to be
# skipped is a failure: TRN_EXPECT_SKIPS lists what this machine is known to lack. Read by tests/cli/*.sh;
# $expected_as, if set, is the word for it there.
python=
for candidate in python3 /usr/bin/python3; do # the second is the one that Debian's python3-numpy is for
    [ -n "$python" ] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
if [ -z "$python" ]; then
    word=${expected_as:-numpy}
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" $word "*)
        echo "SKIP $word: no python3 here has NumPy (expected)"
        exit "${failed:-0}"
        ;;
    esac
    echo "FAILED: no python3 here has NumPy (Debian: python3-numpy);" \
        "if that is so on purpose, put $word into TRN_EXPECT_SKIPS"
    exit 1
fi
