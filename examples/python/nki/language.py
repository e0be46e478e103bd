"""nki.language: formats, memories, tiles, loops, operators. Names and arguments are those of NKI 0.6.0.

SPDX-License-Identifier: MIT
"""
import enum as _enum

from . import _core, dtypes as _dtypes, operators as _operators, tensor as _tensor
from .index import Register as _Register, scalar as _scalar
from .record import NKIObject
from .simulator import current as _current
from .tensor import NkiTensor

try:
    import numpy as _np
except ImportError:
    _np = None

# ---- formats ----

DType = _dtypes.DType
for _name, _dtype in _dtypes.ALL.items():
    globals()[_name] = _dtype
bool_ = _dtypes.ALL["bool_"]
float8e4, float8e5 = _dtypes.ALL["float8_e4m3"], _dtypes.ALL["float8_e5m2"]
fp32 = _dtypes.ALL["float32"]


# ---- memories ----

class MemoryRegion(_enum.Enum):
    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"


sbuf, psum, hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.hbm
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm
_SPACE = {"sbuf": _tensor.SBUF, "psum": _tensor.PSUM, "hbm": _tensor.HBM, "private_hbm": _tensor.HBM,
          "shared_hbm": _tensor.HBM}
_REGION = {_tensor.SBUF: sbuf, _tensor.PSUM: psum, _tensor.HBM: shared_hbm}


def buffer_of(tensor):
    return _REGION[tensor.space]


def _space_of(buffer):
    name = getattr(buffer, "name", None) or str(buffer)
    if hasattr(buffer, "buffer_name"):
        name = buffer.buffer_name
    if name not in _SPACE:
        raise _core.Error(f"{buffer!r} is no memory: sbuf, psum, hbm, private_hbm, shared_hbm")
    return _SPACE[name]


def is_hbm(buffer):
    return _space_of(buffer) == _tensor.HBM


def is_psum(buffer):
    return _space_of(buffer) == _tensor.PSUM


def is_sbuf(buffer):
    return _space_of(buffer) == _tensor.SBUF


def is_on_chip(buffer):
    return not is_hbm(buffer)


class _TileSize:
    """Sizes of the core that a kernel runs on."""

    pmax, psum_fmax, gemm_stationary_fmax, gemm_moving_fmax = 128, 512, 128, 512
    bn_stats_fmax, psum_min_align, sbuf_min_align = 512, 4, 1
    psum_num_banks, psum_bank_bytes = 8, 2048

    @property
    def sbuf_size_bytes(self):
        return _current().report()["sbuf_bytes"] // 128

    sbuf_fmax_bytes = total_available_sbuf_size = sbuf_size_bytes

    @property
    def sbuf_fmax(self):
        return self.sbuf_size_bytes // 4


tile_size = _TileSize()


# ---- tiles ----

class par_dim(int):
    """The axis of a tile that lies across partitions; axes before it count tiles."""


def ndarray(shape, dtype, buffer=sbuf, name="", address=None, **_):
    """A tile [P, ...] of SBUF or PSUM with nothing in it, or a tensor in HBM."""
    if buffer is None:
        buffer = sbuf
    shape = tuple(shape) if not isinstance(shape, int) else (shape,)
    blocks = next((n for n, s in enumerate(shape) if type(s) is par_dim), 0)
    space, to = _space_of(buffer), _dtypes.of(dtype)
    if blocks and space != _tensor.HBM:
        from .blocks import Blocks
        return Blocks([int(s) for s in shape[:blocks]], [int(s) for s in shape[blocks:]], to, buffer, name)
    core = _current()
    shape = tuple(int(s) for s in shape)
    if space == _tensor.HBM:
        return _simulator().hbm(name, to, shape, (getattr(buffer, "name", None) or str(buffer)) == "shared_hbm")
    if address is None and hasattr(buffer, "address"):
        address = _placed(buffer, (), shape, to)
    start, byte = (0, None) if address is None else address if isinstance(address, (tuple, list)) else (0, address)
    if byte is not None and int(byte) < 0:
        raise _core.Error(f"'{name or 'tile'}' is to begin at byte {int(byte)} of its partitions")
    return core.tile(name or "tile", space, to.format, shape if len(shape) > 1 else shape + (1,), to, int(start or 0),
                     -1 if byte is None else int(byte))


def _placed(buffer, block, shape, dtype):
    """Where a buffer of neuronxcc.nki.compiler puts the tile of this block, of [P, ...]."""
    elements = 1
    for size in shape[1:]:
        elements *= size
    return buffer.address(block, shape[0], elements * dtype.itemsize)


def zeros(shape, dtype, buffer=sbuf, name="", mask=None, **_):
    return full(shape, 0, dtype, buffer, name, mask)


def ones(shape, dtype, buffer=sbuf, name="", mask=None, **_):
    return full(shape, 1, dtype, buffer, name, mask)


def fill(tile, value):
    """memset of all of a new tile."""
    from . import isa
    isa.memset(tile, value)
    if value and tile.space == _tensor.PSUM:
        _simulator().preset(tile)


def full(shape, fill_value, dtype, buffer=sbuf, name="", mask=None, **_):
    if mask is not None:
        from . import sugar
        return sugar.full(shape, fill_value, dtype, mask, _space_of(buffer or sbuf))
    made = ndarray(shape, dtype, buffer, name)
    if isinstance(made, NkiTensor) and made.space == _tensor.HBM:
        from .arrays import Given
        array = Given(_np.full(shape, fill_value), _dtypes.of(dtype)).array
        return _current().hbm(name or "hbm", _dtypes.of(dtype).format, made.shape, _dtypes.of(dtype), array)
    if isinstance(made, NkiTensor):
        fill(made, fill_value)
    else:
        made.fill = fill_value
    return made


def zeros_like(x, dtype=None, buffer=None, name=""):
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def shared_constant(constant, dtype=None, **_):
    """A tensor in HBM with these numbers: an array, or the path of a .npy file."""
    from .arrays import Given, given
    if isinstance(constant, str):
        constant = _np.load(constant)
    array = given(_np.asarray(constant)) if dtype is None else Given(constant, dtype)
    return _current().hbm("constant", array.dtype.format, array.shape, array.dtype, array.array, False)


def shared_identity_matrix(n, dtype=_dtypes.ALL["uint8"], dst=None):
    """An identity [n, n]: a tile of SBUF (dst, or a new one)."""
    from . import isa
    from .arrays import Given
    array = Given(_np.eye(n, dtype=_np.float32), dtype)
    made = _current().hbm("identity", array.dtype.format, array.shape, array.dtype, array.array, False)
    tile = ndarray((n, n), dtype, sbuf, "identity") if dst is None else dst
    isa.dma_copy(tile, made)
    return tile


# ---- indices and loops ----

def ds(start, size):
    """A slice of `size` from `start`, which may be a register or a tile of one element."""
    start = _scalar(start)
    return slice(start, start + _scalar(size))


def arange(*args):
    return _np.arange(*args)


class _Grid:
    def __getitem__(self, key):
        return _np.mgrid[key]


mgrid = _Grid()


def _range(start, stop=None, step=1, **_):
    start, stop = (0, start) if stop is None else (start, stop)
    return range(_scalar(start), _scalar(stop), _scalar(step))


affine_range = sequential_range = static_range = dynamic_range = _range


def fori_loop(lower, upper, body_fun, step=1):
    for i in _range(lower, upper, step):
        body_fun(i)


def while_loop(init, body_fun):
    register = init
    while register:
        register = body_fun(register)


def program_id(axis=0):
    return _simulator().grid_id(axis)


def num_programs(axes=None):
    return _simulator().grid_size(axes)


def program_ndim():
    return _simulator().grid_rank()


def _simulator():
    from . import simulator
    return simulator


def no_reorder():
    import contextlib
    return contextlib.nullcontext()


def device_print(print_prefix, tensor):
    print(print_prefix, tensor.numpy() if isinstance(tensor, NkiTensor) else tensor)


# ---- operators ----

for _name, _op in _operators.ALL.items():
    globals()[_name] = _op
average, prelu, bypass = (_operators.ALL[n] for n in ("average", "prelu", "bypass"))
max, min, sum = _operators.Operator("maximum", "max"), _operators.Operator("minimum", "min"), \
    _operators.Operator("add", "sum")


def __getattr__(name):
    """What is made of several instructions lies in sugar.py."""
    if name == "range":
        return _range
    found = None
    if not name.startswith("_"):
        from . import sugar
        found = getattr(sugar, name, None)
    if found is None:
        raise AttributeError(f"nki.language has no '{name}'")
    return found
