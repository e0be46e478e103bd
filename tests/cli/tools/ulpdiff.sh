# What the tests of all tools ask of ulpdiff. Read by lib/tools.sh; each function is what the test of its name asks.

reads='--a --b --inputs' # options that name what is read

collisions() {
    collide ulpdiff "in/a.npy in/c.npy" in/a.npy in/c.npy
    collide ulpdiff "in/a.npy in/b.npy" in/a.npy in/a.npy --op matmul --inputs in/c.npy --inputs in/b.npy
    collide ulpdiff "in/z.npz in/o.safetensors" in/z.npz in/o.safetensors
    collide ulpdiff "$many" in/many in/many
    unheard ulpdiff in/a.npy in/a.npy
    unheard ulpdiff in/a.npy in/a.npy --json -
}

memory() {
    starve "x.json x.csv" ulpdiff "$data/b_f4.npy" "$data/b_f4.npy" --json x.json --csv x.csv
    starve "x.csv x.html" ulpdiff "$data/sharded" "$data/sharded" --csv x.csv --html x.html
    seconds='s/; [0-9.]* s$//'
    starve "x.json" ulpdiff "$here/product.npy" "$here/product.npy" --json x.json --op matmul \
        --inputs "$data/a_f4.npy" "$data/b_f4.npy"
    seconds=
    starve "" ulpdiff "$data/deflated.npz" "$data/deflated.npz"
}

pages() {
    expected=1 # a NaN
    make ulpdiff.html ulpdiff a.npy b.npy --html ulpdiff.html
    expected=0
    make vector.html ulpdiff c.npy d.npy --html vector.html
}
