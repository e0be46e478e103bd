"""Names that releases of NKI removed, moved or changed, and what to write instead: one row each. The sentences that
refuse a name, `python -m nki.lint` and the page names.md are all made of these rows.

A name is spelt in full, as of today's packages: nki.isa.affine_select(pred=) is a keyword, nki.isa.*(mask=) one of each
instruction, <...> a way of writing that has no name of its own. Releases are NKI's, by its migration guides and release
notes up to 0.6.0 of August 2026. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import difflib
import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from . import _core

OLDER = "neuronxcc.nki"


class Row(NamedTuple):
    """instead: what to write, which nki.* names in it are there; change: as in "NKI 0.4.0 removed it"; both: False
    where it is about today's packages alone, and neuronxcc.nki.* may say it."""

    name: str
    release: str
    change: str
    instead: str
    both: bool = True

    def said(self, name: str) -> str:
        """The sentence about a name as somebody wrote it."""
        return f"{name}: NKI {self.release} {self.change}; {self.instead}"


_SCHEDULED = "leave it out"
_COMPILED = "these kernels come with the vendor's compiler; nki-library publishes many as sources"
_INSIDE = "it is the vendor's compiler, which is not here: nki.jit and nki.simulate run kernels"
_PLACED = "give nki.language.ndarray an address=(partition, byte)"

_TABLE: list[tuple[Any, ...]] = [
    # ---- 0.2.0: another compiler, other packages ----
    ("nki.language.arange", "0.2.0", "removed it", "write slices, t[0:128, 0:64], or t.ap(pattern)"),
    ("nki.language.mgrid", "0.2.0", "removed it", "write slices, t[0:128, 0:64], or t.ap(pattern)"),
    ("nki.language.par_dim", "0.2.0", "removed block dimensions",
     "write a list of tiles, or make the axis of blocks a free one"),
    ("nki.language.loop_reduce", "0.2.0", "removed it", "keep the sum in a tile: nki.isa.tensor_tensor onto itself"),
    ("nki.language.atomic_rmw", "0.2.0", "removed it", "write nki.isa.dma_compute"),
    ("nki.language.all_reduce", "0.2.0", "moved it", "write nki.collectives.all_reduce"),
    ("nki.language.layer_norm", "0.6.0", "lacks it", "write nki.isa.bn_stats and nki.isa.bn_aggr"),
    ("nki.language.static_cast", "0.6.0", "lacks it", "write nki.language.copy(x, dtype=...)"),
    ("nki.language.any", "0.6.0", "lacks it", "write nki.language.max of what is compared with 0"),
    ("nki.language.fp32", "0.6.0", "lacks it", "write numpy.finfo(numpy.float32)"),
    ("nki.language.nc", "0.2.0", "removed it", "launch the kernel as kernel[2]"),
    ("nki.language.spmd_dim", "0.2.0", "removed it", "launch the kernel as kernel[2]"),
    ("nki.language.constants", "0.6.0", "lacks it", "write .itemsize of a tile or format"),
    ("nki.language.*(mask=)", "0.2.0", "removed it", "cut the operands: t[0:rows, 0:columns]"),
    ("nki.language.*(lazy_initialization=)", "0.6.0", "lacks it", _SCHEDULED),
    ("nki.language.*(precise_schedule=)", "0.6.0", "lacks it", _SCHEDULED),
    ("nki.language.device_print(x=)", "0.2.0", "renamed it", "write device_print(print_prefix, tensor)"),
    ("nki.isa.*(mask=)", "0.2.0", "removed it", "cut dst and the operands: t[0:rows, 0:columns]"),
    ("nki.isa.*(dtype=)", "0.2.0", "removed it", "give dst the format"),
    ("nki.isa.memset(shape=)", "0.2.0", "removed it", "give dst the shape: memset(dst, value)"),
    ("nki.isa.iota(expr=)", "0.2.0", "replaced it", "write pattern=, offset= and channel_multiplier="),
    ("nki.isa.affine_select(pred=)", "0.2.0", "replaced it",
     "write pattern=, offset=, channel_multiplier= and cmp_op="),
    ("nki.isa.nc_matmul(psumAccumulateFlag=)", "0.2.0", "removed it", "write accumulate=, or leave it out"),
    ("nki.isa.nc_matmul(is_moving_zero=)", "0.2.0", "renamed it", "write is_moving_onezero="),
    ("nki.isa.tensor_tensor_reduce", "0.6.0", "lacks it", "write nki.isa.tensor_tensor and nki.isa.tensor_reduce"),
    ("nki.isa.dma_start", "0.6.0", "lacks it", "write nki.isa.dma_copy"),
    ("<a value of an instruction>", "0.2.0", "returns none", "give dst first: nki.isa.reciprocal(dst, data)"),
    ("<a kernel in a kernel>", "0.2.0", "takes one decorator",
     "call the plain function, and decorate it where it is launched"),
    ("nki.jit(debug_kernel=)", "0.6.0", "lacks it", _SCHEDULED),
    ("nki.jit(show_compiler_tb=)", "0.6.0", "lacks it", _SCHEDULED),
    ("nki.jit(kernel_return=)", "0.6.0", "lacks it", "return the results"),
    ("nki.baremetal", "0.6.0", "lacks it", "call the kernel; the report of nki.simulate has the model's time"),
    ("nki.benchmark", "0.2.0", "removed it", "call the kernel; the report of nki.simulate has the model's time"),
    ("nki.profile", "0.2.0", "removed it",
     "call the kernel; the report of nki.simulate(kernel, trace=True) has a timeline"),
    ("nki.trace", "0.6.0", "lacks it", "write nki.jit"),
    ("nki.simulate_kernel", "0.3.0", "replaced it", "write nki.simulate(kernel)(arguments)"),
    ("nki.typing.mutable_tensor", "0.2.0", "removed it",
     "return what the kernel makes; the annotation is nki.typing.tensor"),
    ("nki.compiler.skip_middle_end_transformations", "0.2.0", "removed it", _SCHEDULED),
    ("nki.compiler.enable_stack_allocator", "0.2.0", "removed it", _SCHEDULED),
    ("nki.compiler.force_auto_alloc", "0.2.0", "removed it", _SCHEDULED),
    ("nki.compiler.sbuf", "0.2.0", "removed it", _PLACED),
    ("nki.compiler.psum", "0.2.0", "removed it", _PLACED),
    ("nki.compiler.under_dynamic_control", "0.2.0", "removed it", _SCHEDULED),
    ("nki.compiler.no_reorder", "0.2.0", "moved it", "write nki.language.no_reorder"),
    ("nki.compiler", "0.6.0", "does not document it", _INSIDE, False),
    ("nki.compile", "0.6.0", "does not document it", _INSIDE),
    ("nki.framework", "0.6.0", "does not document it", _INSIDE),
    ("nki.runtime", "0.6.0", "does not document it", _INSIDE),
    ("nki.kernels", "0.6.0", "does not document it", _COMPILED),
    ("nki._private_kernels", "0.6.0", "does not document it", _COMPILED),
    ("nki._pre_prod_kernels", "0.6.0", "does not document it", _COMPILED),
    # ---- 0.3.0 ----
    ("nki.jit(mode=)", "0.3.0", "ignores it", "leave it out: the arguments say which framework"),
    ("nki.jit(platform_target=)", "0.3.0", "refuses it", "set the variable NEURON_PLATFORM_TARGET_OVERRIDE"),
    ("nki.isa.dma_copy(dst_rmw_op=)", "0.3.0", "removed it", "write nki.isa.dma_compute(dst, [src, dst], reduce_op)"),
    ("nki.isa.dma_copy(unique_indices=)", "0.3.0", "removed it", "write nki.isa.dma_compute(..., unique_indices=True)"),
    ("nki.isa.sendrecv(use_gpsimd_dma=)", "0.3.0", "replaced it", "write dma_engine=nki.isa.dma_engine.gpsimd_dma"),
    ("nki.isa.register_move(imm=)", "0.3.0", "renamed it", "write src=nki.isa.register_alloc(42)"),
    ("nki.collectives.collective_permute_implicit_current_processing_rank_id(num_channels=)", "0.3.0", "removed it",
     "give nki.collectives.collective_permute_implicit its channel_ids="),
    ("<offset of affine_select by position>", "0.3.0", "moved it", "write offset="),
    ("<scales of dma_compute before reduce_op>", "0.3.0", "turned their order",
     "write dma_compute(dst, srcs, reduce_op, scales)"),
    ("<a number for an enum>", "0.3.0", "refuses it", "write the member, nki.isa.dge_mode.hwdge"),
    ("<a buffer's name as a string>", "0.3.0", "refuses it", "write the object, nki.language.sbuf"),
    ("<a result in nl.hbm>", "0.3.0", "refuses it", "write buffer=nki.language.shared_hbm"),
    ("<* in a kernel's signature>", "0.3.0", "refuses it", "put parameters with defaults last, without the *"),
    ("<is in a kernel>", "0.3.0", "refuses it", "write == or !="),
    ("<a list as a kernel's argument>", "0.3.0", "refuses it", "write a tuple"),
    # ---- 0.4.0 ----
    (OLDER, "0.4.0", "refuses it inside kernels", "import nki, whose instructions take dst first"),
    ("nki.isa.tensor_copy_dynamic_src", "0.4.0", "removed it",
     "write nki.isa.tensor_copy of t.ap(pattern, scalar_offset=...)"),
    ("nki.isa.tensor_copy_dynamic_dst", "0.4.0", "removed it",
     "write nki.isa.tensor_copy to t.ap(pattern, scalar_offset=...)"),
    ("nki.language.tile_size.total_available_sbuf_size", "0.4.0", "deprecates it",
     "write nki.language.tile_size.sbuf_fmax_bytes (of a partition), sbuf_size_bytes (of all)"),
    ("nki.language.tile_size.psum_fmax", "0.4.0", "deprecates it", "write nki.language.tile_size.psum_bank_fmax"),
    ("nki.language.divide", "0.4.0", "runs it in simulation alone",
     "write nki.language.multiply by nki.language.reciprocal", False),
    ("nki.language.mod", "0.4.0", "runs it in simulation alone", "no engine divides", False),
    ("nki.language.fmod", "0.4.0", "runs it in simulation alone", "no engine divides", False),
    ("<matmul without transpose_x>", "0.4.0", "refuses it on the device",
     "turn the left side and write nki.language.matmul(x, y, transpose_x=True)"),
    # ---- 0.6.0 ----
    ("nki.language.affine_range", "0.6.0", "deprecates it", "write range"),
    ("nki.language.sequential_range", "0.6.0", "deprecates it", "write range"),
    ("nki.language.static_range", "0.6.0", "deprecates it", "write range"),
    ("nki.language.dynamic_range", "0.6.0", "deprecates it", "write nki.language.fori_loop"),
]
ROWS = [Row(*cells) for cells in _TABLE]

_BY_NAME = {row.name: row for row in ROWS}
older = _BY_NAME[OLDER]


def today(name: str) -> str:
    """neuronxcc.nki.isa.iota as of today's packages: nki.isa.iota."""
    return "nki" + name[len(OLDER):] if name.startswith((OLDER + ".", OLDER + "(")) else name


def find(name: str) -> Row | None:
    """The row of a name, or else of what it lies in."""
    now = today(name)
    head, bracket, keyword = now.partition("(")
    if bracket:
        found = _BY_NAME.get(now) or _BY_NAME.get(f"{head.rpartition('.')[0]}.*({keyword}")
        return found if found is not None and (found.both or now == name) else None
    while head and head != OLDER or head == name:
        found = _BY_NAME.get(head)
        if found is not None and (found.both or now == name):
            return found
        head = head.rpartition(".")[0]
    return None


def known(name: str) -> bool:
    """Has this very name a row?"""
    return today(name) in _BY_NAME


def way(name: str) -> Row:
    """The row of a way of writing."""
    return _BY_NAME[f"<{name}>"]


# ---- refusals ----

class Removed(_core.Error, AttributeError):
    """A name that is not there."""


def missing(module: str, name: str, known: Sequence[str]) -> Removed:
    """What somebody is told who asks for it."""
    row = find(f"{module}.{name}")
    if row is not None and row.name != OLDER:
        return Removed(row.said(f"{module}.{name}"))
    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1)
    return Removed(f"{module} has no '{name}'" + (f"; the nearest name is '{near[0]}'" if near else ""))


def told(module: str) -> None:
    """From now on this module says what became of a name that it lacks, also of one that is imported from it."""
    def refuse(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise missing(module, name, list(vars(sys.modules[module])))
    here = vars(sys.modules[module])
    here["__getattr__"] = refuse
    here.setdefault("__path__", [])


def unexpected(trouble: Exception) -> str | None:
    """What is said of "f() got an unexpected keyword argument 'k'" where a release had it, and of `and` between
    comparisons of indices; None: nothing is known."""
    if isinstance(trouble, ValueError) and str(trouble).startswith("The truth value of an array"):
        return "a comparison of indices has no truth value of its own: write & for `and`, | for `or`, ~ for `not`"
    if isinstance(trouble, AttributeError):
        if not isinstance(trouble.obj, _core.View):
            return None
        return f"a tile has no {trouble.name!r}{_nearest(trouble.name, dir(trouble.obj))}"
    words = str(trouble).split("'")
    if "() got an unexpected keyword argument" not in words[0] or len(words) < 2:
        return None
    function = words[0].split("(")[0].rsplit(".", 1)[-1]
    rows = (find(f"nki.{part}.{function}({words[1]}=)") for part in ("isa", "language", "collectives"))
    row = next((r for r in rows if r is not None), None)
    return None if row is None else row.said(f"{function}({words[1]}=)")


# Arguments of any release that change no number here.
_SILENT = frozenset({"name", "engine", "lazy_initialization", "precise_schedule", "dge_mode", "priority",
                     "multi_buffer", "directives"})


def surplus(function: str, known: Iterable[str], more: Iterable[str]) -> None:
    """Refuses arguments that a function does not have: one that were left out would change its result."""
    for name in more:
        if name not in known and name not in _SILENT:
            raise _core.Error(f"{function} has no argument {name!r}{_nearest(name, known)}")


def _nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 1)
    return f"; the nearest is {near[0]!r}" if near else ""


def strict(module: dict[str, Any]) -> None:
    """From now on functions of a module that end in **_ refuse what they would leave out."""
    for name, function in list(module.items()):
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        parameters = inspect.signature(function).parameters
        if parameters.get("_") is not None and parameters["_"].kind is inspect.Parameter.VAR_KEYWORD:
            module[name] = _strict(name, function, frozenset(parameters))


def _strict(name: str, function: Callable[..., Any], known: frozenset[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not known.issuperset(options):
            surplus(name, known, options)
        return function(*args, **options)
    return call


class _Absent(importlib.abc.MetaPathFinder):
    """Says of modules that no finder had what became of them."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(("nki.", OLDER + ".")):
            row = find(fullname)
            if row is not None and row.name != OLDER:
                raise ModuleNotFoundError(row.said(fullname))  # with name= the import would be silent
        return None


sys.meta_path.append(_Absent())
