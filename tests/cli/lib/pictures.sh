# Every report and every picture, made from small inputs in the folder where the caller stands, and a row for each in
# pictures.tsv: file, what it shows, command. cli/pages.sh looks at them, scripts/gallery.sh shows them.
# Sourced after lib/tools.sh, with fail(), $root and $programs set. pages() of tests/cli/tools/TOOL.sh makes TOOL's.

# make FILE "WHAT IT SHOWS" PROGRAM ARGUMENTS...: the program, if it was built, writes that file.
files= made=
make() {
    file=$1 shows=$2 tool=$3
    shift 3
    built "$tool" || return
    made="$made $tool"
    "$programs/$tool" "$@" >out 2>err
    listed $? "$tool $*"
}

# listed STATUS COMMAND: the command has written $file, which shows $shows.
listed() {
    [ "$1" = "${expected:-0}" ] || fail "$2: exit $1: $(cat err)"
    [ -s "$file" ] || { fail "$2: there is no $file"; return; }
    files="$files $file"
    printf '%s\t%s\t%s\n' "$file" "$shows" "$2" >>pictures.tsv
}

# Of the module of graphrun's page; where there is a Python with NumPy.
graph_picture() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import numpy' 2>err || continue
        [ -f "$programs/libtrnmath_flat.so" ] || return
        file=graphrun.html shows="where a graph on the engines parts from float64"
        sed -n '/^```hlo$/,/^```$/p' "$root/examples/python/src/trnmath/graphrun/README.md" | sed '/^```/d' >norm.hlo
        PYTHONPATH=$root/examples/python/src TRNMATH_LIBRARY=$programs/libtrnmath_flat.so PYTHONDONTWRITEBYTECODE=1 \
            "$python" -m trnmath.graphrun norm.hlo --auto-cast matmult --html graphrun.html >out 2>err
        listed $? 'python3 -m trnmath.graphrun norm.hlo --auto-cast matmult --html graphrun.html'
        return
    done
}

all_pictures() {
    cp -R "$root/examples/tools/shardplan/models" . || fail "the models cannot be copied"
    models=models # as commands name them
    each_tool pages
    make conformance.html "published figures, beside ours" conformance --only cost.chip --html conformance.html
    for kernel in flash_attention softmax; do
        make $kernel.svg "what the engines of a NeuronCore do during $kernel" \
            kernels/run $kernel --generation trn2 --svg $kernel.svg
    done
    graph_picture
    rm -f out err
}
