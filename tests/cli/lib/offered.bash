# What bash offers: bash offered.bash SCRIPT PROGRAM WORD..., the last of which is being typed. It sets what bash sets
# when it calls a completion's function. Used by tests/cli/completion.sh.
. "$1"
name=$2
shift 2
way="complete -o bashdefault -o default -F _trnmath_$name $name"
[ "$(complete -p "$name")" = "$way" ] || echo "complete says: $(complete -p "$name")"
COMP_WORDS=("$name" "$@")
COMP_CWORD=$#
"_trnmath_$name"
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
