#!/usr/bin/env python3
"""trnmath: Trainium's numbers on NumPy arrays, without a copy.

    import numpy as np, trnmath
    x = np.random.default_rng(0).standard_normal((64, 256), dtype=np.float32)
    codes = trnmath.convert(x, "float8_e4m3")                           # uint8, round to nearest even
    y = trnmath.matmul((codes, "float8_e4m3"), (codes.T, "float8_e4m3"))  # what the Tensor engine returns
    z = trnmath.activation(y, "gelu_apprx_tanh", to="bfloat16")         # uint16

An array argument is a NumPy array whose dtype says its format (float32, float16, int8, ...; ml_dtypes' dtypes too), or
a pair (array of unsigned integers, "format") for codes of formats that NumPy lacks: "bfloat16", "float8_e4m3",
"float8_e5m2", "float4_e2m1fn", ... Functions work on the arrays' memory, with their strides. What would need a copy, or
has no format, is refused with one sentence (trnmath.Error). Results go to new arrays, or to `out`, which is returned.
Where `to` is a dtype (ml_dtypes.bfloat16, numpy.float16), results have it; where it is a name that NumPy lacks, they
are codes: uint8, uint16. Other threads of Python go on during a call. Shapes are written [rows, columns].

Common options: rounding ("nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd"),
seed and stream of stochastic rounding (the same ones give the same bits), sr_bits, saturate (overflow stops at the
largest number), generation (1, 2, 3), numerics ("chains=1,product=bf16", or a preset such as "trn3").

The shared object is $TRNMATH_LIBRARY, or libtrnmath_flat.so beside this file, or the system's. To build it here:

    cc -O2 -fPIC -shared -fvisibility=hidden -fopenmp -I../../.. ../ext/trnmath_flat.c -o libtrnmath_flat.so -lm

SPDX-License-Identifier: MIT
"""
import ctypes as C
import os
import sys
from pathlib import Path

import numpy as np

_I64 = C.c_int64


class Error(ValueError):
    """One sentence that says what is wrong; .status is trnmath's number for it, 0 if it was found before any call."""

    def __init__(self, text, status=0):  # names in it do not steer a terminal
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))
        self.status = status


# ---- the shared object ----

class _View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("format", _I64), ("rank", _I64), ("shape", _I64 * 6), ("stride", _I64 * 6)]


class _Options(C.Structure):
    _fields_ = [("numerics", C.c_char_p), ("rounding", C.c_char_p), ("seed", C.c_uint64), ("stream", C.c_uint64),
                ("sr_bits", _I64), ("generation", _I64), ("saturate", _I64), ("accumulate", _I64), ("double_row", _I64)]


class _Ask(C.Structure):
    _fields_ = [("system", C.c_char_p), ("op", C.c_char_p), ("algorithm", C.c_char_p), ("wire", C.c_char_p),
                ("chips", C.POINTER(C.c_int32)), ("count", _I64), ("ranks_per_chip", _I64), ("bytes", _I64)]


class _Answer(C.Structure):
    _fields_ = [("time_s", C.c_double), ("lower_bound_s", C.c_double), ("latency_s", C.c_double),
                ("bytes_per_s", C.c_double), ("bus_bytes_per_s", C.c_double), ("steps", _I64),
                ("algorithm", C.c_char * 32), ("bottleneck", C.c_char * 64)]


def _open():
    beside = Path(__file__).resolve().parent / "libtrnmath_flat.so"
    named = os.environ.get("TRNMATH_LIBRARY")
    for path in [named] if named else [str(beside)] * beside.exists() + ["libtrnmath_flat.so.0.3", beside.name]:
        try:
            return C.CDLL(path)  # calls release the interpreter's lock
        except OSError as trouble:
            why = trouble
    raise ImportError(f"libtrnmath_flat.so cannot be loaded ({why}); the module's text says how to build it")


_lib = _open()
_lib.trnmath_version.restype = _lib.trnmath_isa.restype = _lib.trnmath_format_name.restype = C.c_char_p
_lib.trnmath_format.restype = _lib.trnmath_format_bytes.restype = _I64
_lib.trnmath_format_name.argtypes = _lib.trnmath_format_bytes.argtypes = [_I64]
__version__ = _lib.trnmath_version().decode()


def isa():
    """The instruction set that the kernels use here; results do not depend on it."""
    return _lib.trnmath_isa().decode()


def _call(name, *args):
    why = C.create_string_buffer(256)
    status = getattr(_lib, "trnmath_" + name)(*args, why)
    if status:
        raise Error(why.value.decode(errors="replace"), status)


# ---- arrays and formats ----

_NATIVE = {"float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32"}


def _format(name):
    number = _lib.trnmath_format(str(getattr(name, "__name__", name)).encode())
    if not number:
        raise Error(f"{name!r} is no format of trnmath")
    return number


def _empty(shape, to):
    """A new array for numbers of this format, and the pair that goes into calls."""
    name, bits = _lib.trnmath_format_name(_format(to)).decode(), 8 * _lib.trnmath_format_bytes(_format(to))
    try:
        own = None if isinstance(to, str) else np.dtype(to)
    except TypeError:  # somebody else's object that has a format's name
        own = None
    if own is not None and own.name == name:
        return np.empty(shape, own), name
    return np.empty(shape, name if name in _NATIVE else "float32" if name == "tfloat32" else f"uint{bits}"), name


def _view(what, argument, write=False):
    """The view that C sees, of the array's own memory; or the reason why there is none."""
    if argument is None:
        return None
    array, name = argument if isinstance(argument, tuple) and len(argument) == 2 else (argument, None)
    if not isinstance(array, np.ndarray):
        raise Error(f"{what}: expected a NumPy array or a pair (array, \"format\"), not {type(argument).__name__}")
    own = array.dtype.name
    if name is None and not _lib.trnmath_format(own.encode()):
        raise Error(f"{what}: {own} is no format of trnmath; convert it first, for example with .astype(numpy.float32)")
    number = _format(name or own)
    spelled, size = _lib.trnmath_format_name(number).decode(), _lib.trnmath_format_bytes(number)
    if array.itemsize != size:
        bits = 8 * array.itemsize
        raise Error(f"{what}: elements of {own} have {bits} bits, those of {spelled} are stored in {8 * size}")
    if array.dtype.kind not in "uV" and own != spelled and (own, spelled) != ("float32", "tfloat32"):
        raise Error(f"{what}: an array of {own} holds no codes of {spelled}; pass them as uint{8 * size}")
    if not array.dtype.isnative:
        raise Error(f"{what}: its bytes are in the other order, which would need a copy")
    if write and not array.flags.writeable:
        raise Error(f"{what}: the array is read-only")
    if array.ndim > 6:
        raise Error(f"{what}: it has {array.ndim} axes, at most 6 are possible")
    return _strided(what, array if array.ndim else array.reshape(1), number)


def _strided(what, array, number):
    view = _View(array.ctypes.data, number, array.ndim)
    view.shape[:array.ndim] = array.shape
    if array.flags.c_contiguous:
        return view  # strides 0: packed rows
    if any(step % array.itemsize or step < 0 for size, step in zip(array.shape, array.strides) if size > 1):
        raise Error(f"{what}: strides {array.strides} are negative or no whole elements, which would need a copy")
    steps = [step // array.itemsize if size > 1 else 1 for size, step in zip(array.shape, array.strides)]
    if not any(steps):
        raise Error(f"{what}: one element that stands for all of {array.shape} would need a copy along some axis")
    view.stride[:array.ndim] = steps
    return view


def _result(out, to, shape, default=None):
    """out, or a new array; the pair for the call and the array to return."""
    if out is None:
        if to is None and default is None:
            raise Error("to: which format? (or give out)")
        pair = _empty(shape, to or default)
        return pair, pair[0]
    pair = (out, to) if to is not None and not isinstance(out, tuple) else out
    return pair, out[0] if isinstance(out, tuple) else out


def _shape(argument):
    return np.shape(argument[0] if isinstance(argument, tuple) else argument)


def _text(value):
    return None if value is None else str(value).encode()


def _options(numerics=None, rounding=None, seed=0, stream=0, sr_bits=0, generation=0, saturate=False, accumulate=False,
             double_row=False):
    return C.byref(_Options(_text(numerics), _text(rounding), seed, stream, sr_bits, generation, saturate, accumulate,
                            double_row))


def _at(view):
    return None if view is None else C.byref(view)


# ---- one core ----

def convert(x, to=None, out=None, **options):
    """The numbers of x, of any shape, in another format, each rounded once; a result of the same shape. Options:
    rounding, saturate, seed, stream, sr_bits."""
    pair, result = _result(out, to, _shape(x))
    _call("convert", _at(_view("out", pair, True)), _at(_view("x", x)), _options(**options))
    return result


def _product(a, b, out, to, scales):
    """What a call about a @ b passes, and the array of the result."""
    if len(_shape(a)) != 2 or len(_shape(b)) != 2:
        raise Error(f"a and b: expected two axes each, not {len(_shape(a))} and {len(_shape(b))}")
    pair, result = _result(out, to, (_shape(a)[0], _shape(b)[1]), "float32")
    scales = [s if s is None or isinstance(s, tuple) else (s, "float8_e8m0fnu") for s in scales]
    return [_at(_view("out", pair, True)), _at(_view("a", a)), _at(_view("b", b)), _at(_view("a_scale", scales[0])),
            _at(_view("b_scale", scales[1]))], result


def matmul(a, b, out=None, to=None, a_scale=None, b_scale=None, **options):
    """a [M, K] @ b [K, N] as the Tensor engine computes it; float32 unless `to` or `out` says otherwise. MX operands
    come with uint8 scales [M, K/32] and [N, K/32]. Options: all common ones, accumulate (out += a @ b), double_row."""
    views, result = _product(a, b, out, to, (a_scale, b_scale))
    _call("matmul", *views, _options(**options))
    return result


def tolerance(a, b, out=None, to=None, a_scale=None, b_scale=None, **options):
    """How far each element of what matmul returns for the same arguments may be from the exact product, and how far it
    usually is: (worst, sigma), float32 [M, N], by the roundings of these numerics. out is read under accumulate."""
    views, result = _product(a, b, out, to, (a_scale, b_scale))
    worst, sigma = np.empty(result.shape, np.float32), np.empty(result.shape, np.float32)
    _call("tolerance", _at(_view("worst", worst)), _at(_view("sigma", sigma)), *views, _options(**options))
    return worst, sigma


def activation(x, function, out=None, to=None, scale=1.0, bias=0.0, **options):
    """function(scale x + bias) by the Scalar engine's tables, for instance "exp", "gelu_apprx_tanh", "reciprocal". The
    shape of x; float32 unless `to` or `out` says otherwise."""
    pair, result = _result(out, to, _shape(x), "float32")
    _call("activation", _at(_view("out", pair, True)), _at(_view("x", x)), _text(function), C.c_float(scale),
          C.c_float(bias), _options(**options))
    return result


def mx_quantize(x, to="float8_e4m3fn", axis=-1, rule="neuron", out=None, out_scale=None, **options):
    """Blocks of 32 along `axis` with a power of two each: (codes, scales), of x [M, K] along the last axis: codes
    [M, K], scales uint8 [M, K/32] (ml_dtypes' where `to` is). rule: "neuron", "ocp_floor", "even", ..."""
    axis, shape = _axis(axis, _shape(x))
    scale_shape = tuple(n // 32 if i == len(shape) + axis else n for i, n in enumerate(shape))
    pair, codes = _result(out, to, shape)
    module = None if codes.dtype.kind == "u" else sys.modules.get("ml_dtypes")  # whose dtype `to` was, so it is there
    scale_pair, scales = _result(out_scale, getattr(module, "float8_e8m0fnu", "float8_e8m0fnu"), scale_shape)
    _call("mx_quantize", _at(_view("out", pair, True)), _at(_view("out_scale", scale_pair, True)), _at(_view("x", x)),
          _text(rule), _I64(axis), _options(**options))
    return codes, scales


def mx_dequantize(codes, scales, to=None, axis=-1, out=None):
    """The numbers of such blocks: codes [M, K], ml_dtypes' or a pair (array, "format"), and scales [M, K/32], uint8,
    give float32 [M, K]."""
    axis, shape = _axis(axis, _shape(codes))
    pair, result = _result(out, to, shape, "float32")
    scale_pair = scales if isinstance(scales, tuple) else (scales, "float8_e8m0fnu")
    _call("mx_dequantize", _at(_view("out", pair, True)), _at(_view("codes", codes)), _at(_view("scales", scale_pair)),
          _I64(axis))
    return result


def _axis(axis, shape):
    if not -len(shape) <= axis < len(shape):
        raise Error(f"axis {axis}: there are {len(shape)} axes")
    return (axis if axis < 0 else axis - len(shape)), shape


# ---- many chips ----

def _ask(op, system, algorithm, chips, ranks_per_chip, wire=None, nbytes=0):
    """chips: None = all of the system; a number = so many; or a list of them, in rank order."""
    listed = None if np.ndim(chips) == 0 else (C.c_int32 * len(chips))(*chips)
    count = len(listed) if listed is not None else int(chips or 0)
    return _Ask(_text(system), _text(op), _text(algorithm), _text(wire), listed, count, ranks_per_chip, nbytes)


def collective_cost(op, nbytes, system="trn2.48xlarge", algorithm=None, chips=None, ranks_per_chip=1):
    """What an "all_reduce", "all_gather", ... of so many bytes per rank takes: a dict of seconds and rates."""
    answer = _Answer()
    _call("collective_cost", C.byref(_ask(op, system, algorithm, chips, ranks_per_chip, None, nbytes)), C.byref(answer))
    values = {name: getattr(answer, name) for name, _ in _Answer._fields_}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def collective(op, sources, out, system="trn2.48xlarge", algorithm=None, chips=None, ranks_per_chip=1, wire=None,
               **options):
    """The values: sources and out are lists with an array per rank (the same list: in place). Each sum is rounded to
    `wire`, or to the sources' format, in the order of the algorithm. Returns out."""
    if len(sources) != len(out):
        raise Error(f"{len(sources)} sources and {len(out)} results; there is one of each per rank")
    to, of = [(_View * max(len(arrays), 1))(*[_view(f"{what}[{i}]", a, what == "out") for i, a in enumerate(arrays)])
              for what, arrays in (("out", out), ("sources", sources))]
    _call("collective", C.byref(_ask(op, system, algorithm, chips, ranks_per_chip, wire)), to, of, _I64(len(sources)),
          _options(**options))
    return out


def redistribute_cost(shape, source, target, mesh, system="trn2.48xlarge", format="bfloat16"):
    """The cheapest way from one sharding to another, such as "(data, *) + sum(tensor)" to "(data, tensor)" on the mesh
    "data=4,tensor=4": a dict of time_s, lower_bound_s and steps (texts)."""
    seconds, steps = (C.c_double * 2)(), C.create_string_buffer(8192)
    _call("redistribute_cost", _text(system), _text(mesh), _text(source), _text(target), _text(format),
          (_I64 * max(len(shape), 1))(*shape), _I64(len(shape)), seconds, steps, C.c_size_t(len(steps)))
    return {"time_s": seconds[0], "lower_bound_s": seconds[1], "steps": steps.value.decode().splitlines()}


def explain(numerics=""):
    """What is assumed of the engines, and why: a text for each field of the numerics."""
    _call("explain", _text(numerics), lines := C.create_string_buffer(1 << 15), C.c_size_t(len(lines)))
    return lines.value.decode().splitlines()


def _demonstration():
    print(f"trnmath {__version__}, kernels run as {isa()}\n")
    x = np.random.default_rng(1).standard_normal((128, 512), dtype=np.float32)
    sqnr = lambda back: 10 * np.log10((x**2).sum() / ((back - x)**2).sum())
    print("128 x 512 Gaussian numbers, there and back; SQNR = signal over error")
    for name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        for rounding in ("nearest_even", "stochastic"):
            back = convert((convert(x, name, rounding=rounding, seed=7), name), "float32")
            print(f"  {name:14} {rounding:13} {sqnr(back):6.2f} dB")
    for name in ("float8_e4m3fn", "float4_e2m1fn"):
        codes, scales = mx_quantize(x, name)
        print(f"  {name:14} {'MX blocks':13} {sqnr(mx_dequantize((codes, name), scales)):6.2f} dB")
    print("\nx @ x.T, 128 x 128 sums of 512 products on the Tensor engine; error against float64")
    for numerics in ("chains=4", "chains=1", "product=bf16"):
        print(f"  {numerics:14} largest {abs(matmul(x, x.T, numerics=numerics) - x.astype(float) @ x.T).max():.1e}")


if __name__ == "__main__":
    _demonstration()
