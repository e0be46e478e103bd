#!/bin/sh
# The recipes of scripts/packaging: all of them have the version of base/base.h, and each installs what a program finds,
# builds with and runs. The managers' own calls are answered by lib/fake_*, which do the work in a scratch directory.
# Usage: tests/cli/packaging.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
program=$root/scripts/packaging/homebrew.sh
. "$root/tests/cli/lib/program.sh"
recipes=$root/scripts/packaging
lib=$root/tests/cli/lib
PYTHONDONTWRITEBYTECODE=1 CC=$(quick_cc)
export PYTHONDONTWRITEBYTECODE CC
version=$(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h")

# builds PREFIX: the program of Conan's test_package, from a copy of it, against what was installed there
builds() {
    rm -rf example && cp -R "$recipes/conan/test_package" example &&
        cmake -S example -B example/b "-DCMAKE_PREFIX_PATH=$1" >log 2>&1 &&
        grep -q "^trnmath_DIR:PATH=$1/" example/b/CMakeCache.txt && cmake --build example/b >>log 2>&1 ||
        { fail "$1: the program does not build: $(tail -n 5 log)"; return; }
    said=$(./example/b/example)
    [ "$said" = "trnmath $version: 16777312" ] || fail "$1: the program says $said"
}

# whole PREFIX: every header is there
whole() {
    (cd "$root" && find trnmath -name '*.h' | sort) >want
    (cd "$1/include" && find trnmath -name '*.h' | sort) >got
    cmp -s want got || fail "$1: headers differ: $(comm -3 want got | head -n 3 | tr '\n' ' ')"
}

# ---- vcpkg ----

port=$recipes/vcpkg/trnmath
python3 - "$port/vcpkg.json" "$version" <<'PY' || fail 'vcpkg.json'
import json, re, sys
path, version = sys.argv[1:]
text = open(path, encoding="utf-8").read()
port = json.loads(text)
assert text == json.dumps(port, indent=2) + "\n", "not as vcpkg format-manifest writes it"
known = {"name", "version", "description", "homepage", "license", "supports", "dependencies"}
assert set(port) <= known and {"name", "version", "description", "license"} <= set(port), set(port)
assert port["version"] == version, f"vcpkg.json has version {port['version']}, base/base.h has {version}"
assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", port["name"]) and port["license"] == "MIT"
assert re.fullmatch(r"[a-z0-9&|!() ]+", port["supports"])
for of in port["dependencies"]:
    assert set(of) == {"name", "host"} and of["host"] is True, of
PY
cmake -DPORT=trnmath "-DPORT_DIR=$port" "-DCURRENT_PACKAGES_DIR=$PWD/vcpkg" "-DCURRENT_BUILDTREES_DIR=$PWD/trees" \
    -P "$lib/fake_vcpkg.cmake" >log 2>&1 || fail "the portfile: $(tail -n 5 log)"
for file in copyright usage trnmath-config.cmake; do
    [ -s "vcpkg/share/trnmath/$file" ] || fail "the port installs no share/trnmath/$file"
done
[ ! -e vcpkg/lib ] && [ ! -e vcpkg/debug ] || fail 'a port of headers installs lib/ or debug/'
whole "$PWD/vcpkg"
mv vcpkg moved && builds "$PWD/moved"

# ---- Conan ----

said=$(PYTHONPATH=$lib/fake_conan python3 "$lib/fake_conan/create.py" "$recipes/conan/conanfile.py" "$PWD/conan" \
    2>&1)
[ "$said" = "$version" ] || fail "the Conan recipe: $said"
python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipes/conan/test_package/conanfile.py" ||
    fail "Conan's test_package"
whole "$PWD/conan/package"
[ -s conan/package/licenses/LICENSE ] && [ ! -e conan/package/share ] || fail 'the Conan package has other files'
# Conan writes the target itself: its include directory and libm are all that there is to it.
"$CC" -O0 "-I$PWD/conan/package/include" "$recipes/conan/test_package/example.c" -o from_conan -lm 2>log &&
    [ "$(./from_conan)" = "trnmath $version: 16777312" ] || fail "with Conan's package: $(cat log)"

# ---- Homebrew ----

refuses 'usage: homebrew.sh ARCHIVE [URL]'
refuses 'nowhere.tar: there is no such file' nowhere.tar
: >empty.tar
refuses 'empty.tar: it holds no trnmath/base/base.h' empty.tar
mkdir -p unpacked/trnmath-x && cp -R "$root/trnmath" "$root/LICENSE" unpacked/trnmath-x/
tar -czf archive.tar.gz -C unpacked trnmath-x
refuses 'the URL has a character that Ruby would take for its own' archive.tar.gz 'https://x/"'
works archive.tar.gz https://example.org/trnmath.tar.gz
says '  url "https://example.org/trnmath.tar.gz"'
says "  version \"$version\""
works archive.tar.gz && mv out trnmath.rb
if command -v ruby >/dev/null; then
    ruby -c trnmath.rb >/dev/null 2>err || fail "ruby -c: $(cat err)"
    said=$(ruby "$lib/fake_brew.rb" trnmath.rb unpacked/trnmath-x "$PWD/brewed" 2>&1)
    [ "$said" = "$version" ] || fail "the formula: $said"
    [ -s brewed/share/man/man3/trnmath.3 ] || fail 'the formula installs no manual page'
    whole "$PWD/brewed"
else
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" ruby "*) echo 'SKIP ruby: it is not installed (expected)' ;;
    *) fail 'ruby is not installed; if that is so on purpose, put ruby into TRN_EXPECT_SKIPS' ;;
    esac
fi
[ $failed = 0 ] && echo "packaging: vcpkg, Conan and Homebrew install trnmath $version"
exit $failed
