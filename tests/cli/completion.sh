#!/bin/sh
# The manners of every program's command line: scripts by which bash and zsh complete it, which offer what --help lists
# and only words that the program takes; the name that was meant; no colours where none are wanted; a reader who leaves.
# Usage: tests/cli/completion.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/mxq
. "$root/tests/cli/lib/program.sh"
. "$root/tests/cli/lib/tools.sh"

# ---- completion ----

offered() { bash "$root/tests/cli/lib/offered.bash" ./script.bash "$name" "$@"; }

lacking() { grep -q 'this host does not have it' err; }

# branch [SUBCOMMAND]: options offered are those of --help; every word offered for one is taken.
branch() {
    "$program" "$@" --help >help || fail "$name $* --help"
    sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' help | grep -v '^--version$' | sort -u >want
    offered "$@" -- | grep -v '^--version$' | sort -u >got
    cmp -s want got || fail "$name $*: only --help or completion has $(comm -3 want got | tr '\n\t' '  ')"
    while read -r option; do
        for word in $(offered "$@" "$option" ''); do
            words=$((words + 1))
            "$program" "$@" "$option" "$word" --help >/dev/null 2>err || lacking ||
                fail "$name $* $option $word is offered, and refused: $(cat err)"
        done
    done <got
}

looked=0 words=0
command -v bash >/dev/null || fail 'there is no bash'
for name in $(tools 'tool bench'); do
    program=$programs/$name
    built "$name" || continue
    looked=$((looked + 1))
    works --completion bash && mv out script.bash
    works --completion=bash && cmp -s out script.bash || fail "$name --completion=bash is another script"
    bash -n script.bash 2>err || fail "$name: bash says $(cat err)"
    refuses '--completion fish: expected bash or zsh' --completion fish
    refuses '--completion : expected bash or zsh' --completion
    works --completion zsh && mv out "_$name"
    branches=$(offered '' | grep -v '^-')
    if [ -n "$branches" ]; then
        for each in $branches; do branch "$each"; done
        refuses "${each}x is not a command; did you mean $each?" "${each}x"
    else
        branch
    fi
done
[ $looked -gt 0 ] && [ $words -gt 40 ] || fail "only $looked programs and $words words were looked at"

name=mxq program=$programs/mxq
if [ -x "$program" ]; then
    "$program" --completion bash >script.bash
    [ "$(offered --scales t)" = tensor ] && [ "$(offered --scales = t)" = tensor ] &&
        [ "$(offered --scales =)" = "$(offered --scales '')" ] ||
        fail 'mxq --scales t, --scales=t and --scales= do not complete alike'
    [ "$(offered --gauss)" = --gaussian ] || fail "mxq --gauss completes to $(offered --gauss)"
    [ -z "$(offered --seed '')$(offered --csv '')$(offered x)" ] || fail 'words are offered for a number or a file'
fi

if command -v zsh >/dev/null; then
    for script in _*; do zsh -n "$script" 2>err || fail "zsh says of $script: $(cat err)"; done
    if [ -x "$program" ]; then
        PATH=$programs:$PATH timeout 60 zsh -f "$root/tests/cli/lib/typed.zsh" 'mxq --scales ten' >typed 2>err
        tr -d '\r' <typed | grep -q '<mxq --scales tensor *>' ||
            fail "zsh makes of mxq --scales ten: $(cat -v typed err)"
    fi
else
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" zsh "*) echo 'SKIP zsh: it is not installed (expected)' ;;
    *) fail 'zsh is not installed; if that is so on purpose, put zsh into TRN_EXPECT_SKIPS' ;;
    esac
fi

# ---- what was meant ----

if [ -x "$program" ]; then
    refuses '--gausian is not an option of mxq; did you mean --gaussian?' --gausian 5
    refuses '--gaussain=5 is not an option of mxq; did you mean --gaussian?' --gaussain=5
    refuses '--hepl is not an option of mxq; did you mean --help?' --hepl
    refuses '--gusian is not an option of mxq; did you mean --gaussian?' --gusian 5
    refuses '--gaus is not an option of mxq; mxq --help lists them' --gaus
    refuses '-x is not an option of mxq; mxq --help lists them' -x
    long=--$(printf '%0999d' 0)
    refuses "$long is not an option of mxq; mxq --help lists them" "$long"
fi

# ---- a reader who leaves: no word, and the signal's status ----

for name in $(tools 'tool bench'); do
    program=$programs/$name
    [ -x "$program" ] || continue
    for ignored in '' 'trap "" PIPE;'; do # who starts us may ignore the signal
        rm -f closed status
        sh -c "$ignored"' while [ ! -e closed ]; do sleep 0.05; done
            "$1" --help 2>err; echo $? >status' - "$program" | { exec <&-; : >closed; }
        for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s status ] || sleep 0.2; done
        [ "$(cat status)" = 141 ] || fail "$ignored $name into a closed pipe: status $(cat status)"
        [ ! -s err ] || fail "$ignored $name into a closed pipe says: $(cat err)"
    done
done

# ---- colours: on a terminal, unless NO_COLOR or TERM=dumb ask for none ----

program=$programs/mxq
if [ -x "$program" ] && command -v script >/dev/null; then
    escapes() {
        env "$@" script -qec "$program --gaussian 4096 --format mxfp4" /dev/null </dev/null |
            grep -c "$(printf '\033')"
    }
    [ "$(escapes TERM=xterm)" -gt 0 ] || fail 'no colours on a terminal'
    [ "$(escapes TERM=xterm NO_COLOR=1)" = 0 ] || fail 'colours under NO_COLOR'
    [ "$(escapes TERM=dumb)" = 0 ] || fail 'colours under TERM=dumb'
    [ "$(escapes TERM=xterm NO_COLOR=)" -gt 0 ] || fail 'an empty NO_COLOR forbids colours'
fi
[ $failed = 0 ] && echo "completion: $looked programs, $words words"
exit $failed
