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
    status=$?
    [ $status = "${expected:-0}" ] || fail "$tool $*: exit $status: $(cat err)"
    [ -s "$file" ] || { fail "$tool $*: there is no $file"; return; }
    files="$files $file"
    printf '%s\t%s\t%s\n' "$file" "$shows" "$tool $*" >>pictures.tsv
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
    rm -f out err
}
