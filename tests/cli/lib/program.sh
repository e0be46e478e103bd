# What the tests of programs share: a scratch directory to stand in, and what a user expects of any program here.
# Read by tests/cli/*.sh with $program, the program's path, set; not a test itself.
name=${program##*/}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset TRN_ISA NO_COLOR
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# quick_cc: a user's compiler: $CC, or at level 1 clang where it is, as it takes a quarter of gcc's time.
quick_cc() {
    if [ -n "${CC:-}" ]; then
        echo "$CC"
    elif [ "${TRN_TEST_LEVEL:-1}" -lt 2 ] && command -v clang >/dev/null; then
        echo clang
    else
        echo cc
    fi
}

# refuses "SENTENCE" ARGUMENTS...: exit 2, nothing on stdout, exactly that one line on stderr
refuses() {
    sentence=$1
    shift
    "$program" "$@" >out 2>err
    status=$?
    [ $status = 2 ] || fail "$name $*: exit $status, expected 2"
    [ ! -s out ] || fail "$name $*: it wrote to standard output"
    [ "$(cat err)" = "$name: $sentence" ] || fail "$name $*: it said: $(cat err)"
}

# works ARGUMENTS...: exit 0; stdout in the file out
works() {
    "$program" "$@" >out 2>err || fail "$name $*: exit $?: $(cat err)"
}

# says "TEXT": a line of out has it
says() {
    grep -qF -- "$1" out || fail "it does not say '$1': $(cat out)"
}
