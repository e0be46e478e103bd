# What goes over all tools of examples/tools/list.txt. Sourced after program.sh, with $root and $programs set.
#
# Each test NAME.sh that asks something of every tool finds what it asks of one, with inputs of that tool's own, in
# tests/cli/tools/TOOL.sh: the function NAME. (Tests in Python find it in TOOL.py; lib/tools.py reads that.)
. "$root/examples/tools/list.sh"

# built TOOL: is it there? Otherwise that is said.
built() {
    [ -x "$programs/$1" ] || { echo "SKIP $1: it was not built"; return 1; }
}

# each_tool TEST: calls that function of each tool. A tool without one is a failure, whether it was built or not.
each_tool() {
    for asked in $(tools 'tool bench'); do
        rows=$root/tests/cli/tools/$asked.sh
        unset -f "$1"
        reads= # collisions.sh asks for it
        # shellcheck disable=SC1090
        [ ! -f "$rows" ] || . "$rows"
        if [ "$(command -v "$1")" != "$1" ]; then
            fail "$asked is a tool, and nobody says what $1.sh asks of it: write $1() into tests/cli/tools/$asked.sh"
        elif built "$asked"; then
            "$1"
        fi
    done
    unset -f "$1"
}

# commands_of TOOL: its subcommands, by its --help; none has nothing to say
commands_of() {
    "$programs/$1" --help |
        sed -n "s/^  ${1##*/} \([a-z]*\) .*/\1/p; /^commands:/,/^\$/s/^  \([a-z]*\) .*/\1/p" | sort -u
}
