# What the tests of all tools ask of probe. Read by lib/tools.sh; each function is what the test of its name asks.

reads='--write --run --identify' # options that name what is read

collisions() {
    { "$programs/probe" --write in/p --generation trn1 && "$programs/probe" --run in/p; } 2>/dev/null && add in/p
    collide probe "in/p/generation.txt in/p/README.md in/p/out/order_f32.npy" --identify in/p
    unheard probe --list
    unheard probe --identify in/p
}

memory() {
    "$programs/probe" --write tiles --generation trn1 >/dev/null && "$programs/probe" --run tiles 2>/dev/null ||
        fail "probe does not write tiles"
    starve "" probe --write tiles
    starve "tiles=tiles" probe --write tiles --force
    starve "tiles=tiles" probe --run tiles --force
    starve "x.json" probe --identify "$here/tiles" --json x.json
}

pages() { :; } # it writes none
