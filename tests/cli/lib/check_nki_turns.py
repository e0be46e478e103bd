"""Block tensors whose tiles are over after a turn of a loop: which the text of a kernel says are so, beside cases where it
must not say so; random kernels give the same with and without. Views by arrays of indices, as the extension and as
index.py make them. SPDX-License-Identifier: MIT"""
import inspect
import linecache
import random
import unittest
from unittest import mock

import numpy as np

import nki
import nki.language as nl
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as ol
from nki import index, turns


# ---- what the text of a function says ----

def plain(v):
    a = ol.ndarray((4, 2, ol.par_dim(8), 16))  # 2
    b = ol.zeros((4, ol.par_dim(8), 16))  # 1
    c = ol.ndarray((2, 4, ol.par_dim(8), 16))  # 2
    for i in ol.affine_range(4):
        b[i] = v[i]
        for j in nl.sequential_range(2):
            a[i, j, 0:8, 0:16] = b[i] + c[j, i, 0:8, 0:16]


def made_within(v):
    for i in range(4):
        a = ol.ndarray((4, ol.par_dim(8), 16))  # 1
        for j in range(4):
            a[j] = v[i]


def shared_loop_only(v):
    a = ol.ndarray((4, 2, ol.par_dim(8), 16))  # 1
    for i in range(4):
        for j in range(2):
            a[i, j] = v
        for k in range(2):
            a[i, k] += v


def comes_again(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(3):
        for j in range(4):
            a[j] = v


def while_again(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    while v:
        for j in range(4):
            a[j] = v


def two_loops(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] = v
    for i in range(4):
        v(a[i])


def used_behind(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] = v
    v(a[3])


def other_numbers(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] = a[i - 1]
        b[3 - i] = v


def other_names(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = a
    c = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] = b[i]
        c[i] = v
    c = v


def handed_on(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    c = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        v(a)
        a[i] = v
        b.reshape((2, 2, 8, 16))
        b[i] = v
        c[:] = v
        c[i] = v


def at_another_time(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    late = []
    for i in range(4):
        a[i] = v
        late.append(lambda: a[i])
        b[i] = v

    def reads():
        for i in range(4):
            v(b[i])
    reads()


def loops_of_other_kinds(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    c = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    d = ol.ndarray((4, 4, ol.par_dim(8), 16))  # 0
    for i in [0, 1, 0]:
        a[i] = v
    for i, k in enumerate(v):
        b[i] = k
    for n in range(4):
        n = 0
        c[n] = v
    for m in range(4):
        for m in range(4):
            d[m, m] = v


def counted(v):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    b = v(ol.ndarray((4, ol.par_dim(8), 16)))  # 0
    for i in range(4):
        a[i], b[i] = v, v
    for a in v:
        v(a)


def in_a_condition(v, i):
    a = ol.ndarray((4, ol.par_dim(8), 16))  # 1
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    for k in range(4):
        if v:
            with v:
                a[k] = v
    for i in range(4):
        b[i] = v


def made_at_times(v):
    for i in range(4):
        if i == 0:
            a = ol.zeros((4, ol.par_dim(8), 16))  # 0
        for j in range(4):
            a[j] += v
        if i:
            b = ol.zeros((4, ol.par_dim(8), 16))  # 1
            for j in range(4):
                b[j] += v


def made_behind(v):
    for i in range(4):
        for j in range(4):
            if i:
                v(a[j])
        if i:
            continue
        a = ol.zeros((4, ol.par_dim(8), 16))  # 0


def turned_about(v):
    a = ol.zeros((4, 4, ol.par_dim(8), 16))  # 0
    b = ol.zeros((4, 4, ol.par_dim(8), 16))  # 2
    for i in range(4):
        for j in range(4):
            a[i, j] += a[j, i]
            b[j, i] += v


def in_one_line(v):
    a = ol.zeros((4, ol.par_dim(8), 16)); b = v(ol.zeros((4, ol.par_dim(8), 16)))  # 0
    for i in range(4):
        a[i] += b[i]


def other_bindings(v):
    a = ol.zeros((4, ol.par_dim(8), 16))  # 0
    b = ol.zeros((4, ol.par_dim(8), 16))  # 0
    c = ol.zeros((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        import n as i
        a[i] += v
    for j in range(4):
        try:
            b[j] += v
        except v as j:
            pass
    for k in range(4):
        def k():
            pass
        c[k] += v


def own_functions(v, zeros):
    from v import range
    a = ol.zeros((4, ol.par_dim(8), 16))  # 0
    b = ol.zeros((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] += v
        c = zeros((4, ol.par_dim(8), 16))  # 0
        for j in ol.affine_range(4):
            c[j] += v
    for i in v.my_range(4):
        b[i] += v


def in_other_places(v):
    a = ol.ndarray((3, 2, 4, 2, ol.par_dim(8), 16))  # 2
    b = ol.ndarray((2, 2, 4, ol.par_dim(8), 16))  # 1
    c = ol.ndarray((2, 2, 4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        for j in range(2):
            for k in range(2):
                a[2 - k, k, i, j] = v
                a[k + 1, 0, i, j, 0:8, 0:16] += v
                b[k, j, i] = b[j, k, i]
                c[k, j, i] = c[i, j, k]


def hidden_places(v):
    a = ol.ndarray((3, 2, 4, ol.par_dim(8), 16))  # 0
    b = ol.ndarray((4, ol.par_dim(8), 16))  # 0
    c = ol.ndarray((4, ol.par_dim(8), 16))  # 1
    for i in range(4):
        for pair in v:
            a[(*pair, i)] = v
    for i in range(3, -5, -1):
        b[i] = v
    for i in range(0, 4, 2):
        c[i] = v


def by_its_name(v):
    a = ol.zeros((4, ol.par_dim(8), 16))  # 0
    for i in range(4):
        a[i] += v
    eval("a[0]")


TEXTS = (hidden_places, in_other_places, made_at_times, made_behind, turned_about, in_one_line, other_bindings, own_functions, by_its_name, plain, made_within, shared_loop_only, comes_again, while_again, two_loops, used_behind, other_numbers,
         other_names, handed_on, at_another_time, loops_of_other_kinds, counted, in_a_condition)


def said_of(function):
    return turns._of(function.__code__, function.__code__.co_filename)


class Text(unittest.TestCase):
    def test_what_it_says(self):
        seen = 0
        for function in TEXTS:
            lines, first = inspect.getsourcelines(function)
            said = said_of(function)
            for number, line in enumerate(lines, first):
                if "par_dim" in line:
                    found = [len(axes) for axes in said.get(number, [])]
                    self.assertEqual(max(found, default=0), int(line.split("#")[1]), f"{function.__name__}: {line}")
                    seen += 1
        self.assertGreater(seen, 25)

    def test_another_text(self):
        """A file that changed after it was compiled says nothing."""
        made = {}
        text = inspect.getsource(plain)
        for name, now in (("same", text), ("other", text.replace("b[i] + c", "b[i] + b[0] + c")), ("gone", "")):
            exec(compile(text, name, "exec"), {"ol": ol, "nl": nl}, made)
            linecache.cache[name] = (len(now), None, now.splitlines(True), name)
            axes = sorted(max(found) for found in said_of(made["plain"]).values())
            self.assertEqual(axes, [(0,), (0, 1), (1, 0)] if name == "same" else [], name)


# ---- kernels, with and without ----

def chained(v):
    """Tiles that live for a turn, and one that the last turn leaves to those behind."""
    out = ol.ndarray((8, 128, 64), v.dtype, buffer=ol.shared_hbm)
    x = ol.ndarray((8, ol.par_dim(128), 64), v.dtype, buffer=ol.sbuf)
    y = ol.zeros((8, 2, ol.par_dim(128), 64), v.dtype, buffer=ol.sbuf)
    kept = None
    for i in ol.affine_range(8):
        x[i] = ol.load(v[i])
        for j in ol.affine_range(2):
            y[i, j] += x[i]
            y[i, j] = oisa.tensor_scalar(data=y[i, j], op0=ol.multiply, operand0=float(j + 1))
        before, kept = kept, y[i, 1]
        if before is None:
            ol.store(out[i], y[i, 0])
        else:
            ol.store(out[i], ol.add(y[i, 0], before))
    return out


class Kernels(unittest.TestCase):
    def test_tiles_of_the_turn_before(self):
        v = np.random.default_rng(1).standard_normal((8, 128, 64)).astype(np.float32)
        want = v.copy()
        want[1:] += 2 * v[:-1]
        self.assertEqual(list(said_of(chained).values()), [[(0,)], [(0,)]])
        self.assertTrue(np.array_equal(nki.simulate(chained)(v), want))

    def test_a_turn_that_comes_twice(self):
        """Should the text ever be read wrongly, a kernel is refused, and not wrong."""
        with mock.patch.object(turns, "here", lambda axes: (0,)):
            def again(v):
                a = nl.zeros((2, nl.par_dim(128), 64), nl.float32)
                for i in (0, 1, 0):
                    a[i] += nl.load(v)
            with self.assertRaisesRegex(nki.Error, r"turn \[0\] of 'tile' \[2, 128, 64\] comes twice"):
                nki.simulate(again)(np.ones((128, 64), np.float32))

    def test_turns_from_the_end(self):
        """-4 and 0 are the same tile."""
        def around(v):
            out = nl.ndarray((8, 128, 64), v.dtype, buffer=nl.shared_hbm)
            a = nl.zeros((4, nl.par_dim(128), 64), nl.float32)
            for i in range(-4, 4):
                a[i] += nl.load(v[i % 4])
                nl.store(out[i + 4], a[i])
            return out
        self.assertEqual(list(said_of(around).values()), [[(0,)]])
        v = np.random.default_rng(1).standard_normal((4, 128, 64)).astype(np.float32)
        self.assertTrue(np.array_equal(nki.simulate(around)(v), np.concatenate([v, v + v])))

    def test_turns_that_descend(self):
        """3 and -1 are the same tile, and 3 comes first; of indices in a star the text does not tell how many."""
        def down(v):
            out = nl.ndarray((8, 128, 64), v.dtype, buffer=nl.shared_hbm)
            a = nl.zeros((4, nl.par_dim(128), 64), nl.float32)
            for i in range(3, -5, -1):
                a[i] += nl.load(v[i % 4])
                nl.store(out[3 - i], a[i])
            return out

        def starred(v):
            out = nl.ndarray((4, 128, 64), v.dtype, buffer=nl.shared_hbm)
            a = nl.zeros((2, 2, 4, nl.par_dim(128), 64), nl.float32)
            for i in range(4):
                for j in range(2):
                    pair = j, 0
                    a[(*pair, i)] += nl.load(v[i])
                    a[(*pair, i)] += nl.load(v[i])
                nl.store(out[i], a[(*pair, i)])
            return out
        v = np.random.default_rng(1).standard_normal((4, 128, 64)).astype(np.float32)
        self.assertTrue(np.array_equal(nki.simulate(down)(v), np.concatenate([v[::-1], v[::-1] + v[::-1]])))
        self.assertTrue(np.array_equal(nki.simulate(starred)(v), v + v))

    def test_an_index_within_a_tile(self):
        """The outer loop's variable names rows of all tiles, none of which is over before the loop is."""
        def rows(v):
            out = nl.ndarray((4, 2, 64), v.dtype, buffer=nl.shared_hbm)
            free = ol.arange(64)[None, :]
            a = nl.zeros((2, nl.par_dim(128), 64), nl.float32)
            for i in range(4):
                for j in range(2):
                    a[j, i, free] = nl.load(v[i, j, free])
                    nl.store(out[i, j, free], a[j, i, free])
            return out
        self.assertEqual(list(said_of(rows).values()), [[(1,), (1, 0)]])
        v = np.random.default_rng(1).standard_normal((4, 2, 64)).astype(np.float32)
        self.assertTrue(np.array_equal(nki.simulate(rows)(v), v))

    def test_random(self):
        """Loops, block tensors and uses of them at random: the same numbers, or the same refusal."""
        outcomes = {"numbers": 0, "refused": 0, "with turns": 0}
        for seed in range(150):
            text = program(random.Random(seed))
            name = f"random{seed}"
            made = {}
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            exec(compile(text, name, "exec"), {"nl": nl}, made)
            found = said_of(made["kernel"])
            with mock.patch.object(turns, "here", lambda axes: ()):
                without = outcome(made["kernel"])
            self.assertEqual(outcome(made["kernel"]), without, text)
            outcomes["numbers" if isinstance(without, list) else "refused"] += 1
            outcomes["with turns"] += any(found.values())
        self.assertTrue(all(count > 15 for count in outcomes.values()), outcomes)


def outcome(kernel):
    try:
        return np.asarray(nki.simulate(kernel)(np.arange(32, dtype=np.float32).reshape(4, 8))).tolist()
    except nki.Error as refusal:
        return str(refusal)


def program(rng):
    """A kernel over block tensors of two numbers, whose indices are mostly the variables of its loops."""
    lines = ["def kernel(v):", "    out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)",
             "    total = nl.zeros((4, 8), nl.float32)", "    one = nl.load(v)"]
    names = "abc"[:rng.randint(1, 3)]
    made_at = {name: rng.choice((0, 0, 1)) for name in names}

    def makes(depth, variables):
        for name in names:
            if made_at[name] == depth:
                how = rng.choice(("ndarray", "zeros"))
                if variables and rng.random() < 0.3:
                    lines.append("    " * (depth + 1) + f"if {variables[0]} == 0:")
                    lines.append("    ")
                else:
                    lines.append("")
                lines[-1] += ("    " * (depth + 1) + f"{name} = nl.{how}((3, 3, nl.par_dim(4), 8), nl.float32)")

    def number(variables):
        return rng.choice(variables) if variables and rng.random() < 0.85 else str(rng.randint(0, 2))

    def tile(depth, variables):
        pair = [variables[0], variables[1]] if len(variables) > 1 and rng.random() < 0.8 else \
            [number(variables), number(variables)]
        if rng.random() < 0.1:
            pair.reverse()
        return f"{rng.choice([n for n in names if made_at[n] <= depth] or ['total'])}[{pair[0]}, {pair[1]}]"

    def body(depth, variables):
        makes(depth, variables)
        usable = any(made_at[n] <= depth for n in names)
        for _ in range(rng.randint(1, 3)):
            indent = "    " * (depth + 1)
            kind = rng.random()
            if depth < 2 and (depth == 0 or kind < 0.5):
                variable = rng.choice("ijk")
                lines.append(indent + f"for {variable} in nl.affine_range({rng.randint(2, 3)}):")
                body(depth + 1, variables + [variable] if variable not in variables else variables)
            elif usable and kind < 0.8:
                lines.append(indent + f"{tile(depth, variables)} {rng.choice(('=', '=', '+='))} nl.multiply(one, 2.0)")
            elif usable:
                lines.append(indent + f"total += {tile(depth, variables)}")
            else:
                lines.append(indent + "total += one")
    body(0, [])
    lines += ["    nl.store(out, total)", "    return out"]
    return "\n".join(lines) + "\n"


# ---- views by arrays of indices ----

class Grids(unittest.TestCase):
    def test_random(self):
        """The extension's views are those of index.py, and it leaves alone what it does not know."""
        rng = np.random.default_rng(2)
        seen = {"made": 0, "left": 0}

        def compare(tensor, key):
            try:
                view = tensor.index(key)
            except IndexError:  # an int before all arrays
                view = NotImplemented
            if view is NotImplemented:
                seen["left"] += 1
                return
            want = index._grid(tensor, [index._plain(i) for i in key])
            self.assertIs(type(view), type(want), key)
            self.assertEqual((tuple(view.shape), tuple(view.strides), view.element_offset),
                             (tuple(want.shape), tuple(want.strides), want.element_offset), key)
            seen["made"] += 1

        def kernel(v):
            tensors = [v, nl.ndarray((4, 6, 8), nl.float32), nl.ndarray((4, 6, 8), nl.bfloat16, buffer=nl.psum)]
            for _ in range(3000):
                tensor = tensors[rng.integers(3)]
                key = tuple(some_index(rng, size) for size in tensor.shape)
                if any(isinstance(item, np.ndarray) for item in key):
                    compare(tensor, key)
        nki.simulate(kernel)(np.zeros((4, 6, 8), np.float32))
        self.assertGreater(seen["made"], 300)
        self.assertGreater(seen["left"], 300)

    def test_numbers_beyond_64_bits(self):
        """Steps whose sums wrap around are no view: what is outside is outside."""
        def kernel(v):
            tile = nl.ndarray((4, 6), nl.float32)
            for tensor in (v, tile):
                for line in ([5, -2 ** 63], [0, 2 ** 62, -2 ** 63, -2 ** 62, 0], [0, 2 ** 61, 2 ** 62]):
                    array = np.array(line)
                    for key in ((0, array), (array, 0), (array[:, None], array[None, :])):
                        self.assertIs(tensor.index(key), NotImplemented, line)
                        with self.assertRaises((nki.Error, IndexError)):
                            nl.add(tensor[key], 1.0)
        nki.simulate(kernel)(np.zeros((4, 6), np.float32))


def some_index(rng, size):
    """An int, an even array along some axes of a grid of three, or something that is none of these."""
    kind = rng.random()
    if kind < 0.25:
        return int(rng.integers(0, size))
    if kind < 0.3:
        return int(rng.integers(-2, size + 2))
    shape = [1, 1, 1]
    for axis in rng.permutation(3)[:1 if rng.random() < 0.7 else 2]:
        shape[axis] = int(rng.integers(1, 4))
    made = np.zeros(shape, np.int64) + int(rng.integers(0, 2))
    for axis in range(3):
        step = int(rng.integers(-1 if rng.random() < 0.1 else 0, 3))
        made = made + (step * np.arange(shape[axis])).reshape([-1 if a == axis else 1 for a in range(3)])
    if kind < 0.4:
        made = made.reshape(shape[int(rng.integers(0, 3)):][:3]) if made.size == 1 else made[0]
    if kind > 0.95:
        made.flat[-1] += 1
    if 0.9 < kind < 0.95:
        made = made.astype(rng.choice(["int32", "uint8", "int16"]))
    if 0.85 < kind < 0.9:
        made = np.broadcast_to(made, [max(n, 2) if n == 1 else n for n in made.shape])
    return made


if __name__ == "__main__":
    unittest.main()
