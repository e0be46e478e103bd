"""Arrays in and out of trnmath by DLPack: a producer of capsules made by hand, versioned or not, whose deleter is
counted; NumPy as the other side; and capsules that are wrong. Run by tests/cli/python.sh."""
import ctypes as C
import gc
import sys
import unittest
import weakref

import numpy as np

import trnmath
from trnmath import _dlpack

Deleter = C.CFUNCTYPE(None, C.c_void_p)
new_capsule = C.PYFUNCTYPE(C.py_object, C.c_void_p, C.c_char_p, C.c_void_p)(("PyCapsule_New", C.pythonapi))
BF16, E4M3, E4M3FN, E5M2, F32 = (4, 16), (8, 8), (10, 8), (12, 8), (2, 32)


class Producer:
    """An array of somebody else's: its memory is `codes`, of the DLPack type (code, bits)."""

    def __init__(self, codes, kind, versioned=False, read_only=False, **wrong):
        self.codes, self.kind, self.versioned, self.read_only, self.wrong = codes, kind, versioned, read_only, wrong
        self.freed = []

    def __dlpack_device__(self):
        return self.wrong.get("device", 1), 0

    def __dlpack__(self, **asked):
        if asked and not self.versioned:
            raise TypeError("no such argument")
        codes = self.codes
        keep = [(C.c_int64 * 8)(*codes.shape), (C.c_int64 * 8)(*[s // codes.itemsize for s in codes.strides]), codes]
        self.refs = keep
        data = codes.ctypes.data - self.wrong.get("offset", 0)
        tensor = _dlpack._Tensor(data, self.wrong.get("inner_device", 1), 0, self.wrong.get("ndim", codes.ndim),
                                 self.kind[0], self.kind[1], self.wrong.get("lanes", 1), keep[0],
                                 None if self.wrong.get("packed") else keep[1], self.wrong.get("offset", 0))
        self.deleter = Deleter(self.freed.append)
        pointer = C.cast(self.deleter, C.c_void_p)
        if self.versioned:
            self.managed = _dlpack._Versioned(self.wrong.get("major", 1), 0, None, pointer, int(self.read_only), tensor)
        else:
            self.managed = _dlpack._Managed(tensor, None, pointer)
        name = _dlpack._NEW if self.versioned else _dlpack._PLAIN
        self.capsule = new_capsule(C.addressof(self.managed), self.wrong.get("name", name), None)
        return self.capsule


def codes_of(x, name):
    return trnmath.convert(x, name)


class In(unittest.TestCase):
    X = np.random.default_rng(7).standard_normal((6, 8)).astype(np.float32)

    def test_every_type_is_read_where_it_lies(self):
        for name, kind in (("bfloat16", BF16), ("float8_e4m3", E4M3), ("float8_e4m3fn", E4M3FN), ("float8_e5m2", E5M2),
                           ("float32", F32)):
            codes = codes_of(self.X, name)
            want = trnmath.convert((codes, name), "float32")
            for versioned in (False, True):
                for part, same in ((codes, want), (codes.T, want.T), (codes[1::2, ::3], want[1::2, ::3])):
                    given = Producer(part, kind, versioned)
                    array, found = _dlpack.borrowed("x", given)
                    self.assertEqual((array.ctypes.data, found, array.strides), (part.ctypes.data, name, part.strides))
                    self.assertTrue(_dlpack._is(given.capsule, _dlpack._USED_NEW if versioned else _dlpack._USED))
                    self.assertEqual(given.freed, [])
                    del array
                    self.assertEqual(len(given.freed), 1)
                    self.assertTrue((trnmath.convert(given, "float32") == same).all())
                    self.assertEqual(len(given.freed), 2)

    def test_memory_outlives_every_view_of_it(self):
        given = Producer(codes_of(self.X, "bfloat16"), BF16)
        array = _dlpack.borrowed("x", given)[0]
        part = array[2:, ::2].T
        del array
        gc.collect()
        self.assertEqual(given.freed, [])
        self.assertEqual(part[1, 1], given.codes[3, 2])
        del part
        self.assertEqual(len(given.freed), 1)

    def test_offsets_packed_rows_and_empty_arrays(self):
        codes = codes_of(self.X, "bfloat16")
        want = trnmath.convert((codes, "bfloat16"), "float32")
        self.assertTrue((trnmath.convert(Producer(codes, BF16, packed=True), "float32") == want).all())
        self.assertTrue((trnmath.convert(Producer(codes, BF16, offset=64), "float32") == want).all())
        empty = Producer(codes[:0], BF16)
        self.assertEqual(trnmath.convert(empty, "float32").shape, (0, 8))
        self.assertEqual(len(empty.freed), 1)

    def test_results_go_there(self):
        for versioned in (False, True):
            given = Producer(np.zeros((6, 8), np.uint16), BF16, versioned)
            self.assertIs(trnmath.convert(self.X, out=given), given)
            self.assertTrue((given.codes == codes_of(self.X, "bfloat16")).all())
        fixed = Producer(np.zeros((6, 8), np.uint16), BF16, True, read_only=True)
        with self.assertRaisesRegex(trnmath.Error, "^out: the array is read-only$"):
            trnmath.convert(self.X, out=fixed)
        self.assertEqual(len(fixed.freed), 1)

    def test_products_and_collectives_take_them(self):
        a = Producer(codes_of(self.X, "bfloat16"), BF16)
        b = Producer(codes_of(self.X.T, "bfloat16"), BF16, True)
        pairs = (a.codes, "bfloat16"), (b.codes, "bfloat16")
        self.assertTrue((trnmath.matmul(a, b) == trnmath.matmul(*pairs)).all())
        ranks = [Producer(np.full(4, 0x3f80, np.uint16), BF16) for _ in range(4)]
        trnmath.collective("all_reduce", ranks, ranks, chips=4)
        self.assertEqual({int(r.codes[0]) for r in ranks}, {0x4080})

    def test_what_is_wrong_has_a_sentence_and_is_given_back(self):
        codes = codes_of(self.X, "bfloat16")
        for text, given in (
                ("x: it lies on another device (DLPack's kind 2), which would need a copy",
                 Producer(codes, BF16, device=2)),
                ("x: a DLPack capsule of device kind 2 with 2 axes", Producer(codes, BF16, inner_device=2)),
                ("x: a DLPack capsule of device kind 1 with -1 axes", Producer(codes, BF16, ndim=-1)),
                ("x: DLPack's type 4 of 16 bits in 2 lanes is no format of trnmath", Producer(codes, BF16, lanes=2)),
                ("x: DLPack's type 2 of 64 bits in 1 lanes is no format of trnmath", Producer(codes, (2, 64))),
                ("x: DLPack's type 17 of 4 bits in 1 lanes is no format of trnmath", Producer(codes, (17, 4))),
                ("x: a DLPack capsule of version 2, expected 1", Producer(codes, BF16, True, major=2)),
                ("x: __dlpack__ of Producer gives no fresh DLPack capsule", Producer(codes, BF16, name=b"other")),
                ("x: __dlpack__ of Producer gives no fresh DLPack capsule",
                 Producer(codes, BF16, name=b"used_dltensor")),
        ):
            with self.assertRaises(trnmath.Error) as caught:
                trnmath.convert(given, "float32")
            self.assertEqual(str(caught.exception), text)
            self.assertEqual(given.freed, [])  # a capsule that was not taken is its maker's to free

        class Broken:
            def __dlpack_device__(self):
                raise RuntimeError("gone")

            __dlpack__ = __dlpack_device__
        with self.assertRaisesRegex(trnmath.Error, r"^x: Broken gives nothing by DLPack \(gone\)$"):
            trnmath.convert(Broken(), "float32")
        with self.assertRaisesRegex(trnmath.Error, "holds no codes|have 16 bits"):
            trnmath.convert((Producer(codes, BF16), "float8_e4m3"), "float32")


class Out(unittest.TestCase):
    X = In.X

    def test_codes_go_out_with_their_format(self):
        codes = codes_of(self.X, "bfloat16")
        for part in (codes, codes.T, codes[::2, 1:5], codes[:0]):
            before = sys.getrefcount(part) + 1
            out = trnmath.typed(part, "bf16")
            self.assertEqual((out.format, out.shape, out.__dlpack_device__()), ("bfloat16", part.shape, (1, 0)))
            array, name = _dlpack.borrowed("x", out)
            self.assertEqual((name, array.shape), ("bfloat16", part.shape))
            self.assertTrue((array == part).all() and (array.size == 0 or array.ctypes.data == part.ctypes.data))
            del array
            self.assertEqual(sys.getrefcount(part), before)
        self.assertTrue((trnmath.convert(trnmath.typed(codes, "bfloat16"), "float32") ==
                         trnmath.convert((codes, "bfloat16"), "float32")).all())

    def test_what_nobody_takes_is_freed(self):
        codes = codes_of(self.X, "bfloat16")
        gone = weakref.ref(codes)
        capsule = trnmath.typed(codes, "bfloat16").__dlpack__()
        del codes
        self.assertIsNotNone(gone())
        del capsule
        self.assertIsNone(gone())

    def test_numpy_takes_what_it_knows(self):
        codes = codes_of(self.X, "bfloat16")
        gone = weakref.ref(codes)
        with self.assertRaises((RuntimeError, BufferError, TypeError)):
            np.from_dlpack(trnmath.typed(codes, "bfloat16"))
        plain = np.from_dlpack(codes)  # what a result is without typed()
        self.assertEqual(plain.dtype, np.uint16)
        del codes, plain
        self.assertIsNone(gone())
        with self.assertRaisesRegex(trnmath.Error, "holds no codes of float32"):
            trnmath.typed(self.X.astype(np.float16), "float32")
        back = np.from_dlpack(trnmath.typed(self.X, "float32"))
        self.assertTrue((back == self.X).all() and back.ctypes.data == self.X.ctypes.data)

    def test_memory_stays_while_others_hold_it(self):
        out = trnmath.typed(np.full((3, 3), 0x4040, np.uint16), "bfloat16")
        array = _dlpack.borrowed("x", out)[0]
        del out
        gc.collect()
        self.assertTrue((array == 0x4040).all())

    def test_refusals(self):
        codes = codes_of(self.X, "bfloat16")
        for text, *args in (
                ("DLPack has no type for arrays of float4_e2m1fn, a byte for each code", codes, "float4_e2m1fn"),
                ("codes: uint16 holds no codes of float8_e4m3; pass them as uint8", codes, "float8_e4m3"),
                ("codes: expected a NumPy array of unsigned integers, not list", [1], "bfloat16")):
            with self.assertRaises(trnmath.Error) as caught:
                trnmath.typed(*args)
            self.assertEqual(str(caught.exception), text)
        codes.flags.writeable = False
        with self.assertRaises(BufferError):
            trnmath.typed(codes, "bfloat16").__dlpack__()
        with self.assertRaises(BufferError):
            trnmath.typed(codes.copy(), "bfloat16").__dlpack__(dl_device=(2, 0))
        self.assertEqual(trnmath.convert(codes_of(self.X, "float32"), "float16").dtype, np.float16)


if __name__ == "__main__":
    unittest.main()
