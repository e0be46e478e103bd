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

# two_pairs: files of two matrices and of two vectors, which differ a little
two_pairs() {
    python3 - <<'END' || fail "python3 cannot write the arrays"
import struct
def npy(name, rows, columns, value):
    shape = f"{rows}, {columns}" if columns else f"{rows},"
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % shape
    head += " " * (-(len(head) + 11) % 64) + "\n"
    flat = [value(i // (columns or 1), i % (columns or 1)) for i in range(rows * (columns or 1))]
    with open(name, "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack(f"<{len(flat)}f", *flat))
def noise(r, c): return ((r * 7919 + c * 104729) % 1009 - 504) / 64 * 2.0 ** ((r + c) % 13 - 6)
def bent(r, c):
    if (r, c) == (100, 300): return float("nan")
    return noise(r, c) * (1 + 2.0 ** -23 * ((r * c) % 5 if c > 200 else 0) + (2.0 ** -12 if r % 64 == 9 else 0))
npy("a.npy", 300, 700, noise)
npy("b.npy", 300, 700, bent)
npy("c.npy", 40, 0, noise)
npy("d.npy", 40, 0, lambda r, c: noise(r, c) * (1 + 2.0 ** -20 * (r % 3)))
END
}

pages() {
    two_pairs
    expected=1 # a NaN
    make ulpdiff.html "where two matrices differ, and by how many ulps" ulpdiff a.npy b.npy --html ulpdiff.html
    expected=0
    make vector.html "where two vectors differ" ulpdiff c.npy d.npy --html vector.html
}
