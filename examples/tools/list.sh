# Reads list.txt, for scripts and tests: sourced, with $root the checkout. Not a command.

# tools "KIND..." [FIELD]: of each row of those kinds the name, or that field
tools() {
    awk -F ' *[|] *' -v kinds=" $1 " -v field="${2:-2}" '
        /^[a-z]/ && index(kinds, " " $1 " ") { print $field }' "$root/examples/tools/list.txt"
}

# tool_field NAME FIELD: one field of one row, and nothing for "-"
tool_field() {
    awk -F ' *[|] *' -v name="$1" -v field="$2" '
        /^[a-z]/ && $2 == name && $field != "-" { print $field }' "$root/examples/tools/list.txt"
}

# tool_page NAME: where its manual page lies
tool_page() {
    case $(tool_field "$1" 1) in
    bench) echo "$root/bench/$1.1" ;;
    *) echo "$root/examples/tools/$1/$1.1" ;;
    esac
}
