#!/bin/sh
# Debian packages of this checkout: libtrnmath-dev, trnmath-tools and python3-trnmath, in .build/packages/. The same
# sources on the same Debian give the same bytes. With --check they are looked at by lintian, installed into a scratch
# root and tried there.
set -u
. "$(dirname -- "$0")/setup.sh"
. "$root/examples/tools/list.sh"

tools=$(tools 'tool bench')

check=false
for argument; do
    case $argument in
    --check) check=true ;;
    -h | --help)
        cat <<END
usage: scripts/package.sh [--check]

Builds libtrnmath-dev (headers, CMake, pkg-config, the single header), trnmath-tools (programs with their manual pages:
$(echo $tools | sed 's/ /, /g')) and python3-trnmath (shared object and module) into
.build/packages/.

  --check   lintian, and a trial in a scratch root: every program, a C program through pkg-config and through CMake,
            the module from Python, the files against their checksums

DEBFULLNAME, DEBEMAIL   the maintainer that the packages name
END
        exit 0
        ;;
    *)
        say "'$argument' is not an option; --help tells which there are"
        exit 2
        ;;
    esac
done

need gcc cmake make pkgconf dpkg-dev python3 libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev \
    libprotobuf-c-dev protobuf-c-compiler \
    libmpfr-dev libsleef-dev

version=$(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h")
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-the trnmath authors} <${DEBEMAIL:-trnmath@localhost}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/LICENSE")}
export SOURCE_DATE_EPOCH

build=$root/.build/package
# shellcheck disable=SC2086
build_in "$build" -DCMAKE_C_COMPILER="${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -DTRN_PORTABLE=ON \
    -DTRN_GOLDEN_DIR=/usr/share/trnmath/golden "-DCMAKE_C_FLAGS=-ffile-prefix-map=$root=." -- $tools trnmath_flat

stage=$build/stage
packages=$root/.build/packages
rm -rf "$stage" "$packages"
mkdir -p "$stage/debian" "$packages"

# ---- pieces ----

put() { # MODE DIRECTORY FILE...: files into a directory of the package
    mode=$1 directory=$2
    shift 2
    mkdir -p "$directory"
    for file; do install -m "$mode" "$file" "$directory/"; done
}

page() { # PACKAGE-ROOT FILE.SECTION
    directory=$1/usr/share/man/man${2##*.}
    mkdir -p "$directory"
    gzip -9n <"$2" >"$directory/$(basename "$2").gz"
    chmod 644 "$directory/$(basename "$2").gz"
}

strip_into() { # FILE TARGET MODE
    mkdir -p "$(dirname "$2")"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$1" -o "$2"
    chmod "$3" "$2"
}

completes() { # PROGRAM SHELL FILE: what the program says of itself
    mkdir -p "${3%/*}"
    "$build/$1" --completion "$2" >"$3" || { say "$1 --completion $2 fails"; exit 2; }
    chmod 644 "$3"
}

needs() { # FILE...: the packages that these programs load, by dpkg-shlibdeps
    printf 'Source: trnmath\n\nPackage: trnmath\nArchitecture: any\n' >"$stage/debian/control"
    (cd "$stage" && dpkg-shlibdeps -O --ignore-missing-info "$@" 2>"$build/shlibdeps.log") | sed 's/^shlibs:Depends=//'
}

documents() { # PACKAGE
    directory=$stage/$1/usr/share/doc/$1
    mkdir -p "$directory"
    {
        echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
        echo 'Upstream-Name: trnmath'
        printf '\nFiles: *\n'
        sed -n 's/^Copyright (c) /Copyright: /p' "$root/LICENSE"
        echo 'License: Expat'
        sed '1,/^Copyright/d; 1,/^$/{/^$/d}; s/^$/./; s/^/ /' "$root/LICENSE" | sed '1{/^ \.$/d}'
    } >"$directory/copyright"
    {
        printf 'trnmath (%s) unstable; urgency=medium\n\n' "$version"
        sed -n "/^## $version/,/^## /{/^## /d;/^\$/d;s/\*\*//g;p}" "$root/trnmath/CHANGELOG.md" | fmt -w 74 |
            sed '1s/^/  * /; 2,$s/^/    /'
        printf '\n -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$directory/changelog.gz"
    chmod 644 "$directory/copyright" "$directory/changelog.gz"
}

# wrap NAME ARCHITECTURE SECTION FIELDS SUMMARY TEXT: what is staged becomes NAME_VERSION_ARCHITECTURE.deb
wrap() {
    documents "$1"
    mkdir -p "$stage/$1/DEBIAN"
    (cd "$stage/$1" && find usr -type f | sort | xargs md5sum) >"$stage/$1/DEBIAN/md5sums"
    {
        printf 'Package: %s\nSource: trnmath\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$2"
        printf 'Maintainer: %s\n' "$maintainer"
        printf 'Installed-Size: %s\n' "$(du -k -s --apparent-size "$stage/$1/usr" | cut -f1)"
        printf '%s\n' "$4" | grep -v '^$'
        printf 'Section: %s\nPriority: optional\nDescription: %s\n' "$3" "$5"
        printf '%s\n' "$6" | fold -s -w 78 | sed 's/ *$//; s/^$/./; s/^/ /'
    } >"$stage/$1/DEBIAN/control"
    chmod -R u=rwX,go=rX "$stage/$1"
    if ! dpkg-deb --root-owner-group --build "$stage/$1" "$packages/$1_${version}_$2.deb" \
        >"$build/dpkg-deb.log" 2>&1; then
        say "dpkg-deb could not build $1: $(head -n 3 "$build/dpkg-deb.log")"
        exit 2
    fi
}

about='trnmath computes what the Tensor, Vector, Scalar and GpSimd engines of
Trainium 1, 2 and 3 compute, bit for bit as far as is publicly known, and says
what the same work costs on one chip or many.
'

# ---- libtrnmath-dev ----

to=$stage/libtrnmath-dev
if ! cmake -S "$root/trnmath" -B "$build/trnmath-install" -DTRN_LIBRARY=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    >"$build/install.log" 2>&1 ||
    ! DESTDIR=$to cmake --install "$build/trnmath-install" >>"$build/install.log" 2>&1; then
    say "cmake --install fails: $(tail -n 3 "$build/install.log")"
    exit 2
fi
rm -r "$to/usr/share/man" "$to/usr/share/licenses" # pages are compressed, and the copyright is Debian's own file
page "$to" "$root/trnmath/trnmath.3"
mkdir -p "$to/usr/share/trnmath/single"
python3 "$root/scripts/amalgamate.py" --output "$to/usr/share/trnmath/single/trnmath.h" 2>/dev/null || exit 2
wrap libtrnmath-dev all libdevel "Depends: libc6-dev | libc-dev
Suggests: trnmath-tools, libsleef-dev" 'what the engines of Trainium compute, as C headers' "$about
These are the headers, for C11 and C++17, with what CMake and pkg-config need;
all of them in one file are /usr/share/trnmath/single/trnmath.h."

# ---- trnmath-tools ----

to=$stage/trnmath-tools
for tool in $tools; do
    strip_into "$build/$tool" "$to/usr/bin/$tool" 755
    page "$to" "$(tool_page "$tool")"
    completes "$tool" bash "$to/usr/share/bash-completion/completions/$tool"
    completes "$tool" zsh "$to/usr/share/zsh/vendor-completions/_$tool"
done
put 644 "$to/usr/share/trnmath/golden" "$build"/golden/*.txt
put 644 "$to/usr/share/trnmath/models" "$root"/examples/tools/shardplan/models/*.json
wrap trnmath-tools "$architecture" science "Depends: $(needs "$to"/usr/bin/*)
Recommends: libopenblas0" "programs around Trainium's arithmetic" "$about
The programs: $(echo $tools | sed 's/ /, /g'). Each has a manual page, and
bash and zsh complete its options.
Models for shardplan are in /usr/share/trnmath/models."

# ---- python3-trnmath ----

to=$stage/python3-trnmath
module=$to/usr/lib/python3/dist-packages/trnmath
strip_into "$build/libtrnmath_flat.so" "$module/libtrnmath_flat.so" 644
cp "$root"/examples/python/src/trnmath/*.py "$root/examples/python/src/trnmath/py.typed" "$module/"
put 644 "$to/usr/share/doc/python3-trnmath/examples" "$root"/examples/python/ext/trnmath_flat.[hc] \
    "$root"/examples/python/ext/flat_*.h
wrap python3-trnmath "$architecture" python "Depends: $(needs "$module/libtrnmath_flat.so"), python3, python3-numpy" \
    "Trainium's numbers on NumPy arrays" "$about
This is the Python module: conversions, products, activations, block scaling,
sparsity, collectives and plans on NumPy arrays, without a copy."

for file in "$packages"/*.deb; do say "built ${file#"$root"/}, $(wc -c <"$file") bytes"; done
$check || exit 0

# ---- the check ----

need lintian man-db python3-numpy
failures=0
trial() { # TEXT COMMAND...: quietly, unless it fails
    text=$1
    shift
    if "$@" >"$build/trial.log" 2>&1; then
        printf '  ok  %s\n' "$text"
    else
        failures=$((failures + 1))
        printf 'FAIL  %s\n' "$text"
        sed -n '1,8s/^/    | /p' "$build/trial.log"
    fi
}

inside=$build/root
rm -rf "$inside"
mkdir -p "$inside/var/lib/dpkg"
: >"$inside/var/lib/dpkg/status"
suppressed=initial-upload-closes-no-bugs
[ -n "${DEBEMAIL:-}" ] || suppressed=$suppressed,bogus-mail-host,bogus-mail-host-in-debian-changelog
for file in "$packages"/*.deb; do
    trial "lintian $(basename "$file")" \
        lintian --allow-root --fail-on error,warning --suppress-tags "$suppressed" "$file"
done
if [ "$(id -u)" -eq 0 ]; then
    trial 'dpkg installs them into a scratch root' \
        dpkg --root="$inside" --force-depends --log=/dev/null -i "$packages"/*.deb
    trial 'dpkg --verify: every file as its checksum says' \
        sh -c 'said=$(dpkg --root="$1" --verify) && [ -z "$said" ]' - "$inside"
else
    for file in "$packages"/*.deb; do trial "dpkg -x $(basename "$file")" dpkg -x "$file" "$inside"; done
fi
trial 'packed again, the same bytes' sh -c 'for p in "$1"/*/DEBIAN; do
    p=${p%/DEBIAN}; dpkg-deb --root-owner-group --build "$p" "$1/again.deb" >/dev/null &&
    cmp "$1/again.deb" "$2/${p##*/}"_*.deb || exit 1; done' - "$stage" "$packages"

for tool in $tools; do
    trial "$tool --version" sh -c '"$1" --version | grep -qF "$2"' - "$inside/usr/bin/$tool" "$version"
    trial "bash completes $tool" bash -c '. "$1" && complete -p "$2"' - \
        "$inside/usr/share/bash-completion/completions/$tool" "$tool"
    trial "man $tool" sh -c 'man -l "$1" | grep -q "^NAME"' - "$inside/usr/share/man/man1/$tool.1.gz"
done
trial 'probe --list' "$inside/usr/bin/probe" --list
trial 'shardplan plans a model' "$inside/usr/bin/shardplan" "$inside/usr/share/trnmath/models/llama-3-8b.json" --top 1
trial 'trnbench convert finds its vectors' "$inside/usr/bin/trnbench" convert --to e4m3 --check-only \
    --golden "$inside/usr/share/trnmath/golden"
trial 'trnbench collective' "$inside/usr/bin/trnbench" collective --maxbytes 1MB

cat >"$build/app.c" <<'END'
#include <trnmath/trnmath.h>
int main(void) { return puts(trn_version()) < 0 || trn_bf16_from_f32(1.0f) != 0x3f80; }
END
trial 'a C program through pkg-config' env "PKG_CONFIG_PATH=$inside/usr/share/pkgconfig" sh -c '
    "$1" -O0 "$2.c" -o "$2" $(pkg-config --define-prefix --cflags --libs trnmath) && "$2"' - "${CC:-gcc}" "$build/app"
trial 'a C program with the single header' sh -c '
    sed "s,trnmath/trnmath.h,trnmath.h," "$2.c" >"$2_single.c" &&
    "$1" -O0 -I"$3" "$2_single.c" -o "$2_single" -lm && "$2_single"' \
    - "${CC:-gcc}" "$build/app" "$inside/usr/share/trnmath/single"
mkdir -p "$build/foreign"
cat >"$build/foreign/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(foreign LANGUAGES C)
find_package(trnmath REQUIRED)
add_executable(foreign ../app.c)
target_link_libraries(foreign PRIVATE trnmath::trnmath)
END
trial 'a C program through CMake' sh -c 'cmake -S "$1" -B "$1/b" --fresh -DCMAKE_PREFIX_PATH="$2/usr" &&
    cmake --build "$1/b" && "$1/b/foreign"' - "$build/foreign" "$inside"
trial 'the module from Python' env -u TRNMATH_LIBRARY "PYTHONPATH=$inside/usr/lib/python3/dist-packages" \
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m trnmath
trial "the module's own test" env -u TRNMATH_LIBRARY "PYTHONPATH=$inside/usr/lib/python3/dist-packages" \
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$root/tests/cli/lib/check_trnmath.py"
[ "$failures" -eq 0 ] || say "$failures trials failed"
[ "$failures" -eq 0 ]
