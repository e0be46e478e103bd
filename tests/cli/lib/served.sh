# served SCRIPT ARGUMENTS...: what "$python" SCRIPT ARGUMENTS... prints and returns, for scripts with NumPy that a test
# runs often: one process has imported it (served.py). Sourced after program.sh and numpy.sh.
served_by=$(mktemp -d) || exit 1
trap 'exec 8>&- 9<&-; wait; rm -rf "$scratch" "$served_by"' EXIT
mkfifo "$served_by/ask" "$served_by/answer"
"$python" "$lib/served.py" "$served_by/request" <"$served_by/ask" >"$served_by/answer" &
exec 8>"$served_by/ask" 9<"$served_by/answer"

served() {
    printf '%s\0' "$@" >"$served_by/request"
    pwd >&8
    read -r served_status <&9 || { echo "served.py has ended"; return 1; }
    cat "$served_by/request.out"
    cat "$served_by/request.err" >&2
    return "$served_status"
}
