# How a test compiles what looks inside the library in a fifth of the time, as tests/CMakeLists.txt does: private
# functions in the file, public ones linked from the bodies that the build has. Read by tests/cli/*.sh, which set $root
# and $programs; $linked has the flags, gcc's, or those of a whole but quick compilation where the build has other
# bodies or the compiler is another one.
linked='-DTRN_NO_INTRINSICS=1'
bodies=$programs/libbodies.a
if [ -f "$bodies" ] && ! nm "$bodies" 2>/dev/null | grep -q '__asan_init\|__kmpc' &&
    ${CC:-cc} -dM -E -x c /dev/null | grep -q __GNUC__ && ! ${CC:-cc} -dM -E -x c /dev/null | grep -q __clang__; then
    linked="-DTRN_SPLIT=1 -DTRNI_INSIDE=1 -isystem $root -fopenmp"
    linked="$linked -Wl,--exclude-libs,ALL -Wl,--whole-archive,$bodies,--no-whole-archive"
fi
