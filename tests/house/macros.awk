# macros.awk: reads what `cc -dD -E` prints of a file that includes our headers, and keeps the table of macros as the
# compiler does, by #define, #undef and the pragmas that put a macro aside and bring it back. For each of our headers
# (their folder is -v ours) it prints, where it ends, what is other than where it began:
#
#     seen HEADER               its text was read, from beginning to end
#     new HEADER NAME FILE      a macro that was not there before, which FILE defines
#     changed HEADER NAME       a macro that was there before and is another now, or gone (ours may: a file that is
#                               included once for each instruction set takes them as arguments, and ends them)
#
# and at the end `table #define ...`, each macro that is left, for -dM to say the same.

function set(name, text) { # "" is: not defined
    logged[++changes] = name
    before[changes] = table[name]
    table[name] = text
    if (text != "") origin[name] = file[depth]
}

# What changed since our header, the innermost file, began.
function ends(header, first,    i, name, told) {
    print "seen", header
    for (i = first; i <= changes; i++) {
        name = logged[i]
        if (name in told) continue
        told[name] = 1
        if (before[i] == table[name]) continue
        if (before[i] == "") print "new", header, name, origin[name]
        else print "changed", header, name
    }
}

/^# [0-9]+ "/ {
    path = $0
    sub(/^# [0-9]+ "/, "", path)
    flags = path
    sub(/".*/, "", path)
    sub(/^[^"]*"/, "", flags)
    while (sub(/[^\/]+\/\.\.\//, "", path)) continue
    if (flags ~ /^ 1/) {
        depth++
        file[depth] = path
        began[depth] = changes + 1
    } else if (flags ~ /^ 2/ && depth > 0) {
        if (index(file[depth], ours) == 1) ends(substr(file[depth], length(ours) + 1), began[depth])
        depth--
    }
    next
}
/^#define / {
    name = $2
    sub(/\(.*/, "", name)
    set(name, $0)
    next
}
/^#undef / { set($2, ""); next }
/^#pragma push_macro ?\("/ {
    split($0, part, "\"")
    name = part[2]
    aside[name, ++height[name]] = table[name]
    next
}
/^#pragma pop_macro ?\("/ {
    split($0, part, "\"")
    name = part[2]
    if (height[name] > 0) set(name, aside[name, height[name]--])
}
END { for (name in table) if (table[name] != "") print "table", table[name] }
