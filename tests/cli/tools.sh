#!/bin/sh
# A new tool is in everything. In a copy of what goes over all tools, a tool hello is added. With its row in
# examples/tools/list.txt alone, scripts, CMake, completion and packages have it, and each test that asks something of
# every tool names what is still to be written. When that is written, each test runs it. In this checkout, every tool
# has its files and its row of examples/README.md, and no other file lists the tools again.
# Usage: tests/cli/tools.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
program=$root/scripts/tool.sh
. "$root/tests/cli/lib/program.sh"
. "$root/examples/tools/list.sh"
checkout=$root
checks=0

# has WHAT TEXT FILE: a line of FILE has TEXT
has() {
    checks=$((checks + 1))
    grep -qF -- "$2" "$3" || fail "$1: nothing says '$2': $(head -c 1500 "$3")"
}

# homes: what is missing of a tool that $root lists
homes() {
    for tool in $(tools tool); do
        for file in main.c "$tool.1" README.md; do
            [ -s "$root/examples/tools/$tool/$file" ] || echo "examples/tools/$tool/$file is missing"
        done
        row="| [$tool](tools/$tool/README.md) | $(tool_field "$tool" 5) |"
        grep -qxF -- "$row" "$root/examples/README.md" || echo "examples/README.md has no row '$row'"
    done
}

# ---- this checkout ----

homes >missing
checks=$((checks + 1))
[ ! -s missing ] || fail "$(cat missing)"

# A file that names six of the tools, or four on one line, is a list. The first page, the page of the programs and the
# history are for readers; names of tests (cli.NAME) are none.
readers='README.md examples/README.md examples/tools/list.txt trnmath/CHANGELOG.md'
sources='[.](c|h|cpp|sh|py|pyi|awk|bash|zsh|js|txt|md|cmake|json|toml|1|3)$'
(cd "$root" && find README.md bench examples scripts tests trnmath -type f ! -path 'tests/golden/*' \
    ! -path 'tests/data/*' | grep -E "$sources" |
    xargs awk -v names="$(tools tool | tr '\n' ' ')" -v readers=" $readers " '
        BEGIN { n = split(names, name, " ") }
        FNR == 1 {
            count = 0
            split("", seen)
        }
        {
            here = 0
            line = $0
            gsub(/cli[.][a-z_0-9]+/, "", line)
            gsub(/[^A-Za-z0-9_]+/, " ", line)
            for (i = 1; i <= n; i++)
                if (index(" " line " ", " " name[i] " ")) {
                    here++
                    if (!(name[i] in seen)) {
                        seen[name[i]] = 1
                        count++
                    }
                }
            if (here == 4 || (here && count >= 6))
                if (!index(readers, " " FILENAME " ") && !(FILENAME in told)) {
                    told[FILENAME] = 1
                    print FILENAME ", line " FNR
                }
        }') >lists
checks=$((checks + 1))
[ ! -s lists ] || fail "lists of tools beside examples/tools/list.txt, which they should read: $(cat lists)"

# The page says where a tool has what is written for it, below, and nowhere else.
grep '^| a tool |' "$root/trnmath/README.md" >page
for place in examples/tools/list.txt examples/tools/NAME/ examples/README.md tests/cli/tools/NAME.sh \
    tests/cli/tools/NAME.py; do
    has 'trnmath/README.md, "Where do I change X?", a tool' "\`$place\`" page
done

# ---- the copy: what hello changes is copied, all else is linked ----

mkdir -p copy/examples/tools copy/tests bin programs
root=$PWD/copy
ln -s "$checkout"/* copy/ 2>/dev/null # all but the two that are there
ln -s "$checkout"/examples/* copy/examples/ 2>/dev/null
ln -s "$checkout"/examples/tools/* copy/examples/tools/ 2>/dev/null
ln -s "$checkout"/tests/* copy/tests/ 2>/dev/null
(cd copy && rm scripts tests/cli tests/house examples/README.md examples/tools/list.txt examples/tools/list.sh)
cp -R "$checkout/scripts" copy/
cp -R "$checkout/tests/cli" "$checkout/tests/house" copy/tests/
cp "$checkout/examples/README.md" copy/examples/
cp "$checkout/examples/tools/list.txt" "$checkout/examples/tools/list.sh" copy/examples/tools/
for slow in pages check_colours; do : >"copy/tests/cli/lib/$slow.py"; done # no tool is asked by them
for peer in strace chromium man mandoc clang zsh; do printf '#!/bin/sh\n' >"bin/$peer"; done # nor by these

cat >programs/hello <<'END'
#!/bin/sh
echo 'usage: hello [options]

options:
  --html FILE               a page'
END
chmod +x programs/hello bin/*

# asked TEST: that test, of the programs of which there is only hello
asked() { (cd copy/tests && PATH=$scratch/bin:$PATH CC=true sh "cli/$1.sh" "$scratch/programs") >"$1" 2>&1; }

# ---- a row in the list, and nothing else ----

echo 'tool | hello | CJSON fp8conv_parts | - | says hello' >>copy/examples/tools/list.txt

sh copy/scripts/tool.sh --help >help
has 'scripts/tool.sh --help' '  hello       says hello' help
sh copy/scripts/package.sh --help >help
has 'scripts/package.sh --help' ', hello)' help
homes >missing
for file in main.c hello.1 README.md; do has homes "examples/tools/hello/$file is missing" missing; done
has homes "examples/README.md has no row '| [hello]" missing
rows='collisions memory pages crash_points evil_names'
for test in completion manpages $rows; do
    asked $test && fail "cli.$test passes, and knows nothing of hello"
done
has completion 'FAILED: hello --completion fish' completion
has manpages 'FAILED: examples/tools/hello/hello.1 is missing' manpages
for test in collisions memory pages; do
    has $test "nobody says what $test.sh asks of it: write $test() into tests/cli/tools/hello.sh" $test
done
for test in crash_points evil_names; do
    has $test "nobody says what $test.py asks of it: write $test() into tests/cli/tools/hello.py" $test
done

# ---- what the page says that a tool has ----

mkdir copy/examples/tools/hello
for file in main.c part.c hello.1 README.md; do echo hello >"copy/examples/tools/hello/$file"; done
echo '| [hello](tools/hello/README.md) | says hello |' >>copy/examples/README.md
for test in collisions memory pages; do
    echo "$test() { echo 'hello is asked by $test'; }"
done >copy/tests/cli/tools/hello.sh
for test in crash_points evil_names; do
    printf "def %s():\n    print('hello is asked by %s')\n    return ()\n\n\n" $test $test
done >copy/tests/cli/tools/hello.py
homes >missing
checks=$((checks + 1))
[ ! -s missing ] || fail "$(cat missing)"
for test in manpages $rows; do asked $test; done
for test in $rows; do has $test "hello is asked by $test" $test; done
has manpages 'hello.1: --help has --html, the page has not' manpages
has pages 'hello writes pages, and pages() in tests/cli/tools/hello.sh makes none' pages
has evil_names 'hello --help lists no options' evil_names
(cd copy && eval "$(sed -n '/^programs=/,/)$/p' tests/house/analysis.sh)" && echo "$programs") >analysis
has house.analysis examples/tools/hello/part.c analysis

# ---- CMake, of which only what makes targets is said ----

mkdir stub
cat >stub/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.21)
project(stub LANGUAGES NONE)
set(root "${CMAKE_CURRENT_SOURCE_DIR}/../copy")
set(CJSON_FOUND ${WITH})
set(ZLIB_FOUND ${WITH})
foreach(what trn_program trn_parts trn_use target_link_libraries)
    cmake_language(EVAL CODE "function(${what})
        string(JOIN \" \" words \${ARGN})
        message(STATUS \"${what} \${words}\")
    endfunction()")
endforeach()
include("${root}/tests/tools.cmake")
END
for with in ON OFF; do
    cmake -S stub -B "stub/$with" -DWITH=$with >"cmake_$with" 2>&1 || fail "CMake: $(cat cmake_$with)"
done
has CMake "trn_parts hello_parts $scratch/stub/../copy/examples/tools/hello/part.c" cmake_ON
has CMake "trn_program hello $scratch/stub/../copy/examples/tools/hello/main.c" cmake_ON
has CMake 'trn_use hello_parts CJSON' cmake_ON
has CMake 'target_link_libraries hello_parts PRIVATE fp8conv_parts' cmake_ON
has CMake 'hello is not built: there is no CJSON' cmake_OFF
has CMake 'include(tools.cmake)' "$checkout/tests/CMakeLists.txt"

[ $failed = 0 ] && echo "tools: $checks checks"
exit $failed
