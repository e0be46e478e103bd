# What test.sh and bench.sh share: where the checkout is, and getting the Debian packages that are missing.
# Sourced, POSIX sh. Nothing is printed or installed when everything is there.

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
script=$(basename -- "$0")
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

say() { printf '%s: %s\n' "$script" "$*" >&2; }

# progress TEXT: over the last one on a terminal; elsewhere a line for every tenth part.
told=
progress() {
    [ -n "$1" ] || return 0
    if [ -t 2 ]; then printf '\r%s: %s ' "$script" "$1" >&2
    elif [ "${1%?%}" != "$told" ]; then say "$1"; fi
    told=${1%?%}
}
progress_end() { [ ! -t 2 ] || [ -z "$told" ] || printf '\r%s: 100%%\n' "$script" >&2; told=; }

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

# need PACKAGE...: installs those that are missing, or explains why it cannot and exits with 2.
need() {
    if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
        say "this system has no apt-get, so nothing is installed here; on Debian these packages would be used: $*"
        command -v cmake >/dev/null 2>&1 || { say 'cmake is missing: install it and start again'; exit 2; }
        return 0
    fi
    missing=
    for package; do installed "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || return 0

    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            say "these Debian packages are missing and neither root nor sudo is at hand to install them:$missing"
            say "as root, run: apt-get install --no-install-recommends$missing"
            exit 2
        fi
        as_root=sudo
    fi
    say "installing these Debian packages:$missing"
    log=$root/.build/install.log
    mkdir -p "$root/.build"
    # shellcheck disable=SC2086
    if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 ||
        ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
            >>"$log" 2>&1; then
        say "apt-get could not install them; the end of .build/install.log:"
        tail -n 12 "$log" >&2
        exit 2
    fi
}

# one_folder USUAL ARGUMENTS...: makes the folder that is the one argument there may be, or the usual one, and leaves
# its path in $folder. Help, and arguments that are wrong, end here with the script's usage.
one_folder() {
    folder=$1
    shift
    case ${1:-} in
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        usage >&2
        exit 2
        ;;
    esac
    [ $# -le 1 ] || { usage >&2; exit 2; }
    folder=${1:-$folder}
    mkdir -p "$folder" || exit 2
    folder=$(CDPATH= cd -- "$folder" && pwd)
}

# build_in DIRECTORY CMAKE-OPTION... [-- TARGET...]: configures and builds, quietly unless it fails (status 2).
build_in() {
    directory=$1
    shift
    targets=
    options=
    while [ $# -gt 0 ]; do
        if [ "$1" = -- ]; then
            shift
            targets=$*
            break
        fi
        options="$options $1" # our own options only: none has a space
        shift
    done
    mkdir -p "$directory"
    # shellcheck disable=SC2086
    if ! cmake -S "$root/tests" -B "$directory" $options >"$directory/configure.log" 2>&1; then
        say "cmake could not configure the build; from ${directory#"$root"/}/configure.log:"
        grep -v '^--' "$directory/configure.log" | head -n 40 >&2
        exit 2
    fi
    say "building in ${directory#"$root"/} with $jobs jobs"
    # shellcheck disable=SC2086
    cmake --build "$directory" --parallel "$jobs" ${targets:+--target $targets} >"$directory/build.log" 2>&1 &
    builder=$!
    while sleep 2 && kill -0 $builder 2>/dev/null; do
        progress "$(grep -o '^\[ *[0-9]*%\]' "$directory/build.log" | tail -n 1 | tr -d '[] ')"
    done
    progress_end
    if ! wait $builder; then
        say "the build failed; from ${directory#"$root"/}/build.log:"
        grep -E -A 6 'error|warning|Error' "$directory/build.log" | head -n 60 >&2
        exit 2
    fi
}
