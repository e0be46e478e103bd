"""Names that releases of NKI removed or changed: what is there works, what is not says what to write instead, and
`python -m nki.lint` finds them line by line. SPDX-License-Identifier: MIT"""
import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import neuronxcc.nki  # noqa: F401
import nki
import nki.isa as nisa
import nki.language as nl
from nki import lint, names

X = np.ones((128, 64), np.float32)
OLD = '''\
import neuronxcc.nki.language as nl
from neuronxcc import nki
from neuronxcc.nki.language import par_dim as axis
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.compiler as ncc

@nki.jit(mode="trace")
def helper(x):
    return nl.load(x, mask=None)

@nki.benchmark(warmup=5)
def kernel(x, *, scale=[1, 2]):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    i = nl.arange(128)[:, None]
    t = nl.zeros((2, axis(128), 64), dtype=x.dtype, buffer="sbuf")
    if x is None:
        t[0] = nisa.reciprocal(helper(x))
    u = nl.ndarray((128, 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    nl.store(out, u)
    return out
'''
NEW = '''\
import nki
from nki import isa, language as nl
import numpy as np

@nki.jit(platform_target="trn2")
def kernel(x, n=nl.tile_size.psum_fmax):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    isa.dma_copy(dst=out, src=x, dge_mode=2)
    isa.dma_copy(out, x, dst_rmw_op=nl.add)
    isa.affine_select(x, [[1, 2]], 0, 1, x, 0.0)
    isa.affine_select(x, [[1, 2]], 1, x, 0.0, offset=3)
    isa.dma_compute(x, [x], [1.0], nl.add)
    isa.dma_compute(x, [x], nl.add, [1.0])
    y = nl.matmul(x, x) if nl.divide else nl.matmul(x, x, True)
    a, v = np.arange(3), isa.register_alloc(3)
    for i in nl.dynamic_range(v):
        isa.register_move(v, imm=3)
    isa.tensor_scalar(x, x, nl.add, 1.0, engine=isa.engine.vector)
    return out
'''


def found(text):
    return [(f.line, f.row.name) for f in lint.findings(text)]


class Table(unittest.TestCase):
    def test_a_name_is_there_or_says_what_to_write(self):
        for row in names.ROWS:
            module, _, name = row.name.rpartition(".")
            if row.name[0] == "<" or "(" in name or row.name == names.OLDER:
                continue
            with self.subTest(row.name):
                try:
                    there = importlib.import_module(module) if module != "nki.compiler" else None
                except ImportError:
                    there = nl.tile_size
                if there is None or name in vars(there) or hasattr(type(there), name):
                    continue
                with self.assertRaises(AttributeError) as caught:
                    getattr(there, name)
                self.assertEqual(str(caught.exception), row.said(row.name))
                self.assertIsInstance(caught.exception, nki.Error)
                self.assertFalse(hasattr(there, name))
                with self.assertRaises(ImportError) as caught:
                    exec(f"from {module} import {name}")
                self.assertIn(row.instead, str(caught.exception))

    def test_what_is_to_be_written_exists(self):
        for row in names.ROWS:
            for path in re.findall(r"\bnki(?:\.\w+)+", row.instead):
                with self.subTest(row.name, path=path):
                    value = nki
                    for part in path.split(".")[1:]:
                        value = type(value) if type(value).__name__ == "_TileSize" else value
                        value = getattr(value, part)

    def test_rows_are_one_each_and_say_a_release(self):
        self.assertEqual(len({r.name for r in names.ROWS}), len(names.ROWS))
        for row in names.ROWS:
            self.assertIn(row.release, ("0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0"))
            self.assertFalse(row.instead.endswith("."), row)

    def test_the_page_has_the_table(self):
        page = os.path.join(os.environ.get("TRN_NKI_SOURCES", os.path.dirname(nki.__file__)), "names.md")
        with open(page, encoding="utf-8") as file:
            self.assertIn(lint.page(), file.read())


class Refused(unittest.TestCase):
    def test_modules_that_are_not_here(self):
        for module, says in (("nki.compiler", "the vendor's compiler"), ("nki.framework.kernel", "nki.simulate"),
                             ("neuronxcc.nki.kernels.attention", "nki-library"),
                             ("neuronxcc.nki._private_kernels.mlp", "nki-library")):
            with self.assertRaises(ImportError) as caught:
                importlib.import_module(module)
            self.assertIn(says, str(caught.exception))
        with self.assertRaises(ModuleNotFoundError) as caught:
            importlib.import_module("nki.nothing")
        self.assertEqual(str(caught.exception), "No module named 'nki.nothing'")

    def test_a_name_nobody_had(self):
        with self.assertRaisesRegex(AttributeError, "nki.language has no 'multply'; the nearest name is 'multiply'"):
            nl.multply
        with self.assertRaisesRegex(ImportError, "cannot import name 'multply'"):
            exec("from nki.language import multply")

    def test_keywords_in_a_kernel_with_its_line(self):
        def rmw(x):
            nisa.dma_copy(dst=x, src=x, dst_rmw_op=nl.add)

        def mask(x):
            t = nl.load(x)
            nisa.reciprocal(t, t, mask=None)

        def gone(x):
            nisa.tensor_copy_dynamic_src(x)

        for kernel, says in ((rmw, r"dst_rmw_op=\): NKI 0.3.0 removed it; write nki.isa.dma_compute"),
                             (mask, r"mask=\): NKI 0.2.0 removed it; cut dst"),
                             (gone, "nki.isa.tensor_copy_dynamic_src: NKI 0.4.0")):
            with self.assertRaisesRegex(nki.Error, says + r".*\(check_nki_names.py, line \d+, generation 2\)"):
                nki.simulate(kernel)(X)

    def test_another_type_error_stays(self):
        def own(x):
            int(x, bse=3)
        with self.assertRaises(TypeError):
            nki.simulate(own)(X)


class Lint(unittest.TestCase):
    def test_the_older_spelling(self):
        self.assertEqual(found(OLD), [
            (1, "neuronxcc.nki"), (2, "neuronxcc.nki"), (3, "neuronxcc.nki"), (3, "nki.language.par_dim"),
            (4, "neuronxcc.nki"), (5, "neuronxcc.nki"), (7, "nki.jit(mode=)"), (9, "nki.language.*(mask=)"),
            (11, "nki.benchmark"), (12, "<* in a kernel's signature>"), (12, "<a list as a kernel's argument>"),
            (13, "<a result in nl.hbm>"), (14, "nki.language.arange"), (15, "<a buffer's name as a string>"),
            (15, "nki.language.par_dim"), (16, "<is in a kernel>"), (17, "<a kernel in a kernel>"),
            (17, "<a value of an instruction>"), (18, "nki.compiler.sbuf")])

    def test_todays_spelling(self):
        self.assertEqual(found(NEW), [
            (5, "nki.jit(platform_target=)"), (6, "nki.language.tile_size.psum_fmax"), (8, "<a number for an enum>"),
            (9, "nki.isa.dma_copy(dst_rmw_op=)"), (10, "<offset of affine_select by position>"),
            (12, "<scales of dma_compute before reduce_op>"), (14, "<matmul without transpose_x>"),
            (14, "nki.language.divide"), (16, "nki.language.dynamic_range"), (17, "nki.isa.register_move(imm=)")])

    def test_what_is_nobody_elses(self):
        self.assertEqual(found("import numpy as nl\nnl.arange(3)\nmask = par_dim(3)\n"), [])
        self.assertEqual(found("from neuronxcc.nki.language import *\nx = arange(3) + ndarray\n"),
                         [(1, "neuronxcc.nki"), (2, "nki.language.arange")])
        self.assertEqual(found("def f():\n    import nki.isa as i\n    h = i.reciprocal(a, b)\n    return g(i.iota(a))\n"),
                         [(4, "<a value of an instruction>")])
        self.assertEqual(found("from neuronxcc.nki.language import divide\n"), [(1, "neuronxcc.nki")])

    def test_lines_and_status(self):
        with tempfile.TemporaryDirectory() as folder:
            new, good, bad = (os.path.join(folder, n) for n in ("new.py", "good.py", "bad.py"))
            for path, text in ((new, NEW), (good, "import nki\n"), (bad, "def (\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            run = subprocess.run([sys.executable, "-m", "nki.lint", new], capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr), (1, ""))
            self.assertIn(f"{new}:16: nki.language.dynamic_range: NKI 0.6.0 deprecates it; write nki.language.fori_loop",
                          run.stdout.split("\n"))
            for arguments, status, says in (([good], 0, ""), ([bad, good], 2, "invalid syntax"), ([], 2, ""),
                                            ([folder + "/none.py"], 2, "No such file"), (["--table"], 0, "")):
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    self.assertEqual(lint.main(arguments), status)
                self.assertIn(says, err.getvalue())
                self.assertLessEqual(err.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
