"""How long graphrun takes for a language model: a decoder of the LLaMA kind as StableHLO text, in BF16, with random weights.

    python3 examples/python/nki_build.py && python3 bench/speed/graphrun_speed.py [LAYERS [TOKENS]]

16 layers (the default) have 1.24 billion parameters, as LLaMA 3.2 1B; 64 tokens. What is timed is graphrun's: reading the
text, drawing the weights, both runs, and what every operation adds. SPDX-License-Identifier: MIT
"""
import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python/src"))
from trnmath.graphrun import __main__ as graphrun  # noqa: E402
from trnmath.graphrun.job import Job  # noqa: E402
from trnmath.graphrun.measure import Measure  # noqa: E402

WIDTH, HEADS, KEYS, HEAD, INNER, WORDS = 2048, 32, 8, 64, 8192, 128256


class Text:
    """A function of StableHLO, line by line."""

    def __init__(self):
        self.lines, self.parameters, self.count, self.constants = [], [], 0, {}

    def given(self, name, *dims, kind="bf16"):
        self.parameters.append(f"%{name}: {self.tensor(dims, kind)}")
        return f"%{name}", dims, kind

    @staticmethod
    def tensor(dims, kind):
        return "tensor<" + "".join(f"{n}x" for n in dims) + kind + ">"

    def add(self, words, dims, kind, *operands):
        """words with {0}, {1}, ... for operands; all types behind."""
        self.count += 1
        types = ", ".join(self.tensor(d, k) for _, d, k in operands)
        line = words.format(*(name for name, _, _ in operands))
        self.lines.append(f"%{self.count} = stablehlo.{line} : ({types}) -> {self.tensor(dims, kind)}")
        return f"%{self.count}", dims, kind

    def each(self, op, *operands, kind=None):
        _, dims, own = operands[0]
        names = ", ".join(f"{{{n}}}" for n in range(len(operands)))
        return self.add(f"{op} {names}", dims, kind or own, *operands)

    def constant(self, value, kind):
        key = value, kind
        if key not in self.constants:
            self.count += 1
            self.lines.append(f"%{self.count} = stablehlo.constant dense<{value}> : {self.tensor((), kind)}")
            self.constants[key] = f"%{self.count}", (), kind
        return self.constants[key]

    def spread(self, x, dims, axes):
        return self.add(f"broadcast_in_dim {{0}}, dims = {list(axes)}", dims, x[2], x)

    def dot(self, a, b, inner, dims, batch=None):
        shared = f"batching_dims = {batch[0]} x {batch[1]}, " if batch else ""
        return self.add(f"dot_general {{0}}, {{1}}, {shared}contracting_dims = {inner[0]} x {inner[1]}", dims, a[2], a, b)

    def fold(self, x, op, start):
        zero = self.constant(start, x[2])
        self.count += 1
        dims = x[1][:-1]
        self.lines.append(f"%{self.count} = stablehlo.reduce({x[0]} init: {zero[0]}) applies stablehlo.{op} across dimensions = "
                          f"[{len(dims)}] : ({self.tensor(x[1], x[2])}, {self.tensor((), x[2])}) -> {self.tensor(dims, x[2])}")
        return f"%{self.count}", dims, x[2]


def norm(t, x, name):
    """x / sqrt(mean of squares + 1e-5), times a gain, in FP32."""
    dims = x[1]
    wide = t.each("convert", x, kind="f32")
    mean = t.each("multiply", t.fold(t.each("multiply", wide, wide), "add", "0.0"),
                  t.spread(t.constant(f"{1 / WIDTH:.9e}", "f32"), dims[:1], []))
    root = t.each("rsqrt", t.each("add", mean, t.spread(t.constant("1.0e-05", "f32"), dims[:1], [])))
    scaled = t.each("convert", t.each("multiply", wide, t.spread(root, dims, [0])), kind="bf16")
    return t.each("multiply", scaled, t.spread(t.given(name, WIDTH), dims, [1]))


def attention(t, x, n, tokens):
    """Eight heads of keys and values for 32 of queries; a mask of what comes later."""
    q, k, v = (t.dot(x, t.given(f"{c}{n}", WIDTH, heads * HEAD), ([1], [0]), (tokens, heads * HEAD))
               for c, heads in (("q", HEADS), ("k", KEYS), ("v", KEYS)))
    group = HEADS // KEYS
    q = t.each("reshape", q)[0], (tokens, KEYS, group, HEAD), "bf16"
    t.lines[-1] = t.lines[-1].rsplit("->", 1)[0] + "-> " + t.tensor(q[1], "bf16")
    k, v = (t.add("reshape {0}", (tokens, KEYS, HEAD), "bf16", one) for one in (k, v))
    scores = t.dot(q, k, ([3], [2]), (KEYS, tokens, group, tokens), ([1], [1]))
    scores = t.each("convert", scores, kind="f32")
    scores = t.each("multiply", scores, t.spread(t.constant("0.125", "f32"), scores[1], []))
    row, column = (t.add(f"iota dim = {axis}", scores[1], "s32".replace("s", "i")) for axis in (1, 3))
    late = t.add("compare GT, {0}, {1}", scores[1], "i1", column, row)
    far = t.spread(t.constant("-1.0e+30", "f32"), scores[1], [])
    scores = t.add("select {0}, {1}, {2}", scores[1], "f32", late, far, scores)
    top = t.spread(t.fold(scores, "maximum", "0xFF800000"), scores[1], [0, 1, 2])
    power = t.each("exponential", t.each("subtract", scores, top))
    weight = t.each("divide", power, t.spread(t.fold(power, "add", "0.0"), scores[1], [0, 1, 2]))
    mixed = t.dot(t.each("convert", weight, kind="bf16"), v, ([3], [0]), (KEYS, tokens, group, HEAD), ([0], [1]))
    mixed = t.add("transpose {0}, dims = [1, 0, 2, 3]", (tokens, KEYS, group, HEAD), "bf16", mixed)
    mixed = t.add("reshape {0}", (tokens, HEADS * HEAD), "bf16", mixed)
    return t.dot(mixed, t.given(f"o{n}", HEADS * HEAD, WIDTH), ([1], [0]), (tokens, WIDTH))


def perceptron(t, x, n, tokens):
    """SiLU of the gate, times the other."""
    gate, up = (t.dot(x, t.given(f"{c}{n}", WIDTH, INNER), ([1], [0]), (tokens, INNER)) for c in ("gate", "up"))
    hidden = t.each("multiply", t.each("multiply", gate, t.each("logistic", gate)), up)
    return t.dot(hidden, t.given(f"down{n}", INNER, WIDTH), ([1], [0]), (tokens, WIDTH))


def model(layers, tokens):
    """The text, and how many parameters it has."""
    t = Text()
    ids, table = t.given("ids", tokens, 1, kind="i32"), t.given("table", WORDS, WIDTH)
    numbers = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
    t.count += 1
    t.lines.append(f'%{t.count} = "stablehlo.gather"({table[0]}, {ids[0]}) <{{dimension_numbers = {numbers}, slice_sizes = '
                   f"array<i64: 1, {WIDTH}>}}> : ({t.tensor(table[1], 'bf16')}, {t.tensor(ids[1], 'i32')}) -> "
                   f"{t.tensor((tokens, WIDTH), 'bf16')}")
    x = f"%{t.count}", (tokens, WIDTH), "bf16"
    for n in range(layers):
        x = t.each("add", x, attention(t, norm(t, x, f"before{n}"), n, tokens))
        x = t.each("add", x, perceptron(t, norm(t, x, f"after{n}"), n, tokens))
    logits = t.dot(norm(t, x, "last"), table, ([1], [1]), (tokens, WORDS))
    whole = t.tensor(logits[1], logits[2])
    text = (f"module {{ func.func @main({', '.join(t.parameters)}) -> {whole} {{\n" + "\n".join(t.lines) +
            f"\nreturn {logits[0]} : {whole}\n}} }}\n")
    return text, WORDS * WIDTH + WIDTH + layers * (
        2 * WIDTH + 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * KEYS * HEAD + 3 * WIDTH * INNER)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("layers", nargs="?", type=int, default=16)
    words.add_argument("tokens", nargs="?", type=int, default=64)
    asked = words.parse_args()
    text, count = model(asked.layers, asked.tokens)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlir")
        path.write_text(text)
        began = time.monotonic()
        job = Job(graphrun.arguments([str(path), "--auto-cast", "matmult", "--ints", f"0:{WORDS}"]))
        drawn = time.monotonic()
        measure = Measure()
        job.run(measure.see)
        ended = time.monotonic()
    last = list(measure.rows.values())[-1]
    print(f"{count / 1e9:.2f} billion parameters, {asked.tokens} tokens, {len(measure.rows)} operations: weights drawn in "
          f"{drawn - began:.1f} s, run in {ended - drawn:.1f} s, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB at most; logits rel-L2 {last.total:.2e}")


if __name__ == "__main__":
    main()
