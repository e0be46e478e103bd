"""Tensors of a kernel: handles to views of tiles and of HBM, cut without copies.

SPDX-License-Identifier: MIT
"""
from . import _core, dtypes, index as _index

SBUF, PSUM, HBM = 0, 1, 2
BUFFERS = {SBUF: "sbuf", PSUM: "psum", HBM: "hbm"}


class NkiTensor(_core.View):
    """A view [P, ...] of SBUF or PSUM, or of a tensor in HBM."""

    __slots__ = ()

    @property
    def buffer(self):
        from . import language
        return language.buffer_of(self)

    @property
    def base_tensor(self):
        """The tensor that it views."""
        return self.base

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def size(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        view = self.index(key)
        if view is NotImplemented:
            view = _index.view(self, key)
            if type(view) is _index.Wide:
                from . import sugar
                return sugar.packed(view)
        return view

    def place(self, key):
        """What is at this index, to be written."""
        view = self.index(key)
        return _index.view(self, key) if view is NotImplemented else view

    def __setitem__(self, key, value):
        from . import sugar
        sugar.assign(self, key, value)

    def __repr__(self):
        return f"<{BUFFERS[self.space]} '{self.name}' {self.dtype!s}{list(self.shape)}>"

    # ---- views ----

    def ap(self, pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None):
        """A view by [step, number] pairs, outermost first, in elements of the whole tensor, whatever this view of it
        is; offset: where it begins there (None: where this view does). Offsets may lie in tiles."""
        whole = self
        if not self.whole:
            offset = self.offset if offset is None else offset
            whole = self.base if self.base.dtype == self.dtype else self.base.view(self.dtype)
        if dtype is not None and dtypes.of(dtype) != self.dtype:
            whole = whole.view(dtype)
        if scalar_offset is None and vector_offset is None:
            return _index.leaving(whole, pattern, offset or 0)
        return _index.dynamic(whole, pattern, offset or 0, scalar_offset, vector_offset, indirect_dim)

    @property
    def offset(self):
        """Where the view begins, in elements of the whole tensor numbered as if it were packed."""
        if self.space == HBM:
            return self.element_offset
        base = self.base
        pitch = base.strides[0] * base.dtype.itemsize
        byte = self.element_offset * self.dtype.itemsize
        row = base.size // max(base.shape[0], 1) * base.dtype.itemsize
        return (byte // pitch * row + byte % pitch) // self.dtype.itemsize

    def get_pattern(self):
        """[step, number] of each axis, in elements of the tensor that it views."""
        return [[step, number] for step, number in zip(self.element_steps(), self.shape)]

    def element_steps(self):
        """Steps of the axes when the tensor is numbered as if it were packed."""
        if self.space == HBM:
            return self.strides
        base = self.base
        pitch, row = base.strides[0], base.size // max(base.shape[0], 1)
        scale = base.dtype.itemsize / self.dtype.itemsize
        return tuple(int(s // (pitch * scale) * (row * scale)) if abs(s) >= pitch * scale else s for s in self.strides)

    def is_contiguous(self):
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.element_steps())):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def reshape(self, *shape):
        return self.reshaped(tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def reshape_dim(self, dim, shape):
        dim %= self.ndim
        return self.reshaped(self.shape[:dim] + tuple(shape) + self.shape[dim + 1:])

    def flatten_dims(self, start_dim, end_dim):
        start, end = start_dim % self.ndim, end_dim % self.ndim
        return self.reshaped(self.shape[:start] + (-1,) + self.shape[end + 1:])

    def view(self, dtype):
        to = dtypes.of(dtype)
        return self.view_as(to.format, to)

    def permute(self, *dims):
        dims = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
        if sorted(dims) != list(range(self.ndim)):
            raise ValueError(f"permute: {dims} are not the axes of a tensor of {self.ndim}")
        return self.strided(tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims))

    def broadcast(self, dim, size):
        shape, strides = list(self.shape), list(self.strides)
        if shape[dim] != 1:
            raise ValueError(f"broadcast: axis {dim} has {shape[dim]} elements, not one")
        shape[dim], strides[dim] = size, 0
        return self.strided(shape, strides)

    def broadcast_to(self, shape, dtype=None):
        """Axes of one element stand for many. Across partitions a copy is made, as an engine would."""
        from . import sugar
        return sugar.broadcast_to(self, shape)

    def expand_dim(self, dim):
        dim %= self.ndim + 1
        return self.strided(self.shape[:dim] + (1,) + self.shape[dim:], self.strides[:dim] + (1,) + self.strides[dim:])

    expand_dims = expand_dim

    def squeeze_dim(self, dim):
        dim %= self.ndim
        if self.shape[dim] != 1:
            raise ValueError(f"squeeze_dim: axis {dim} has {self.shape[dim]} elements")
        return self.strided(self.shape[:dim] + self.shape[dim + 1:], self.strides[:dim] + self.strides[dim + 1:])

    def slice(self, dim, start, end, step=1):
        return self.index((slice(None),) * (dim % self.ndim) + (slice(start, end, step),))

    def select(self, dim, index):
        if isinstance(index, NkiTensor):
            return _index.selected(self, dim, index)
        return self.index((slice(None),) * (dim % self.ndim) + (index,))

    def vector_select(self, dim, vector_offset):
        """Rows along axis 0 that a tile of indices names: for DMA."""
        if dim % self.ndim:
            raise _core.Error("vector_select: rows are chosen along axis 0")
        return _index.Rows(self, vector_offset if vector_offset.ndim == 2 else
                           vector_offset.reshaped((vector_offset.size, 1)))

    def indirect(self, index, count=0, inner=1):
        """[P, count], or [P, count, inner]: elements along the free axis that a tile of indices names, gathered where
        they are read and scattered where they are written; for the operands that NKI lists. Trainium3."""
        self.core.settle()
        return self.core.indirect(self, index, count or 0, inner)

    def reinterpret_cast(self, dtype):
        return self.view(dtype)

    def assert_shape(self, shape):
        if tuple(self.shape) != tuple(shape):
            raise AssertionError(f"'{self.name}' has the shape {tuple(self.shape)}, not {tuple(shape)}")
        return self

    def rearrange(self, src_pattern, dst_pattern, fixed_sizes=None):
        return _index.rearranged(self, src_pattern, dst_pattern, fixed_sizes or {})

    def four(self):
        """Of an x4 format: the elements, with a last axis of four."""
        size = {18: 4}[self.dtype.format]
        strides = tuple(s * size for s in self.strides) + (1,)
        return self.strided(self.shape + (4,), strides, 0, self.dtype.four, self.dtype)

    # ---- numbers ----

    def numpy(self):
        """The numbers, in a new array; formats that NumPy lacks as float32, which holds them exactly."""
        from . import arrays
        self.core.settle()
        return arrays.out(self)


_core.register(NkiTensor)
