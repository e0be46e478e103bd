"""A device's results of operations, each replayed from the device's own operands: rounding, other numerics, or a bug.

A dump is a folder of NAME.npy, NAME as the module has it (without %). An operation whose operands are there is replayed
from them; what was not dumped is computed from what was, and then the allowance is wider. Verdicts:

    same       the engines' bits
    rounding   inside what rounding explains: units of the result's format, sums' terms, tables of functions
    numerics   inside that of other settings, which are named
    bug        nothing explains it; guesses say what would
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import formats, inputs
from .graph import OUTSIDE, Graph, Op, Trouble
from .job import Job
from .machine import Array, Engines, Exact, Settings
from .reductions import kind_of
from .run import Runner, Value, evaluate, moves

_UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e4m3fn": 2.0**-4,
         "f8e5m2": 2.0**-3}
_LEAST = {"f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "f8e4m3": 2.0**-9, "f8e4m3fn": 2.0**-9, "f8e5m2": 2.0**-16}
# What published errors of devices leave to tables of functions and to divisions by a reciprocal, of the result.
_TABLES = {"exponential": 4e-5, "tanh": 2e-4, "logistic": 2e-4, "log": 2e-4, "log_plus_one": 2e-4, "sqrt": 1e-4,
           "rsqrt": 1e-4, "divide": 4e-5, "erf": 2e-4, "sine": 2e-4, "cosine": 2e-4, "power": 2e-4,
           "exponential_minus_one": 2e-4, "cbrt": 1e-4, "custom_call": 4e-4, "batch_norm_training": 2e-4,
           "batch_norm_grad": 4e-4, "batch_norm_inference": 2e-4}
# The same beside zeros of a function: a part of 1 (of the argument too, where whole turns are taken off).
_BESIDE = {"log": 2.0**-21, "log_plus_one": 2.0**-21, "exponential_minus_one": 2.0**-21, "logistic": 2.0**-24,
           "sine": 2.0**-20, "cosine": 2.0**-20}
_FLUSHED = 2.0**-126  # what is smaller than FP32's normal numbers may be 0
_NORMS = ("batch_norm_training", "batch_norm_inference", "batch_norm_grad")
_OTHERS = (Settings("matmult", "bf16"), Settings("matmult", "tf32"), Settings("matmult", "fp16"),
           Settings("matmult", "fp8_e4m3"), Settings("all", "bf16"), Settings("all", "fp16"), Settings(fp8_products=True))


@dataclass
class Verdict:
    """Of one operation. of_allowed: the largest difference over what is allowed there."""

    name: str
    kind: str
    shape: str
    line: int
    verdict: str
    of_allowed: float
    rel_l2: float
    why: str
    at: tuple[int, ...]
    device: float
    expected: float


# ---- what is allowed ----

def _terms(op: Op, arrays: list[Array]) -> int:
    """How many products, or elements, one element of the result adds."""
    if op.kind == "dot_general":
        return int(np.prod([arrays[0].shape[n] for n in op.attributes.get("lhs_contracting", [])], dtype=np.int64))
    if op.kind == "convolution":
        return int(np.prod(arrays[1].shape, dtype=np.int64)) // max(arrays[1].shape[op.get("labels")[1].index("o")], 1)
    if op.kind == "reduce":
        return int(np.prod([arrays[0].shape[n] for n in op.get("dimensions")], dtype=np.int64))
    return int(np.prod(op.get("window_dimensions"), dtype=np.int64))


def _adds(op: Op, graph: Graph) -> bool:
    """Does a reduction of one operand add, or multiply?"""
    if len(op.operands) != 2:
        return False
    kind = kind_of(graph, op)
    return kind in ("add", "multiply") or kind is None and any(inner.kind == "add" for inner in graph.body(op).ops)


def _summed(op: Op, arrays: list[Array], graph: Graph) -> Array | float:
    """The sum of the magnitudes that a result is made of, times how much each of its roundings may add up to. The
    largest of some numbers is one of them, and is rounded by nothing."""
    if op.kind in ("dot_general", "convolution"):
        factor = 8.0
    elif op.kind in ("reduce", "reduce_window") and _adds(op, graph):
        factor = 4.0
    else:
        return 0.0
    sizes = [abs(a.astype(np.float64)) if a.dtype.kind == "f" else a for a in arrays]
    whole = evaluate(Exact(), graph, op, sizes)[0]
    return np.asarray(whole) * (factor * np.sqrt(_terms(op, arrays)) + factor)


def _norm(op: Op, arrays: list[Array], want: Array) -> Array | float:
    """Of norms over a batch: what was taken away from one another is as large as a feature's largest element."""
    axis = int(op.get("feature_index"))
    if want.ndim != arrays[0].ndim:
        return float(abs(want[np.isfinite(want)]).max(initial=0.0)) * 2e-5
    rest = tuple(n for n in range(want.ndim) if n != axis)
    along = [-1 if n == axis else 1 for n in range(want.ndim)]
    x, scale = abs(arrays[0].astype(np.float64)), abs(arrays[1].astype(np.float64))
    if op.kind == "batch_norm_grad":
        return np.asarray(abs(want).max(rest, keepdims=True, initial=0.0)) * 1e-4
    spread = np.sqrt((arrays[4] if op.kind == "batch_norm_inference" else x.var(rest)) + op.get("epsilon"))
    return x.max(rest, keepdims=True, initial=0.0) * (scale / spread).reshape(along) * 2.0**-18


def _typical(off: Array) -> float:
    """The root of the mean of squares, without the hundredth that is largest: one overflow excuses nothing else."""
    sizes = np.sort(abs(off), axis=None)
    sizes = sizes[:max(int(np.ceil(sizes.size * 0.99)), min(sizes.size, 20))]
    return float(np.sqrt(np.mean(np.square(sizes)))) if sizes.size else 0.0


def _of_kind(op: Op, arrays: list[Array], want: Array, graph: Graph) -> Array | float:
    """What the operation itself leaves to a device whose operands are known, beside units of the result's format."""
    made: Array | float = _summed(op, arrays, graph) * _UNIT["f32"]
    if op.kind in _NORMS:
        made = made + _norm(op, arrays, want)
    if op.kind in _BESIDE:
        turns = np.asarray(1 + abs(arrays[0]) if op.kind in ("sine", "cosine") else 1.0)
        made = made + turns * _BESIDE[op.kind]
    return made


def allowed(op: Op, arrays: list[Array], want: Array, near: Array, alone: bool, graph: Graph, which: int = 0) -> Array:
    """How far a device's result may be from float64's (want), element by element; alone: the operands were dumped."""
    name = op.shape(which).format
    if not formats.is_float(name):
        return np.zeros(want.shape)
    held = np.where(np.isfinite(want), abs(want), 0)
    made = held * (2 * _UNIT[name]) + 2 * _LEAST.get(name, 0.0) + (_FLUSHED if name in ("f32", "bf16") else 0.0)
    made = made + held * (_TABLES.get(op.kind, 0.0) if name != "f64" else 0.0)
    if alone and name == "f64":
        made = made + _summed(op, arrays, graph) * _UNIT["f64"]
    elif alone:
        made = made + _of_kind(op, arrays, want, graph)
    if op.kind in ("all_reduce", "reduce_scatter"):
        made = made + held * 16 * _UNIT[name]
    if not alone:
        with np.errstate(invalid="ignore"):
            off = np.where(np.isfinite(near) & np.isfinite(want), near - want, 0)
        made = made + 8 * _typical(off) + 4 * abs(off) + held * (8 * _UNIT[name])
    return made


# ---- what else would explain it ----

def _either(device: Array, want: Array, near: Array, room: Array) -> Array:
    """The nearer of the reference and of the engines, of each element: where one overflowed the other may not have."""
    with np.errstate(all="ignore"):
        fits = abs(device - want) <= room
    return np.where(fits | (device == want), want, near)


def _inside(device: Array, want: Array, room: Array) -> tuple[bool, float]:
    """Is all within, and the largest share."""
    same = (device == want) | ((device != device) & (want != want))
    with np.errstate(all="ignore"):
        off = np.where(same, 0, abs(device - want))
        share = np.where(off == 0, 0, off / np.where(room > 0, room, 5e-324))
    worst = float(np.nan_to_num(share, nan=np.inf, posinf=np.inf).max(initial=0.0))
    return worst <= 1, worst


def _guesses(op: Op, arrays: list[Array], device: Array) -> Iterator[tuple[str, Array]]:
    """What a result would be by a bug that people make, in words."""
    floats = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    if op.kind == "dot_general":
        for n, side in ((1, "right"), (0, "left")):
            x = floats[n]
            if x.ndim > 1 and x.shape[-1] == x.shape[-2]:
                turned = [np.swapaxes(f, -1, -2) if m == n else f for m, f in enumerate(floats)]
                yield f"the {side} operand is transposed", evaluate(Exact(), _NO_GRAPH, op, turned)[0]
    if len(arrays) == 2 and op.kind in ("add", "subtract", "multiply", "divide"):
        for n, side in ((0, "second"), (1, "first")):
            yield f"the {side} operand is left out", floats[n]
        other = {"add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply"}[op.kind]
        yield f"it is {other}, not {op.kind}", Exact().apply(other, floats, op)
        yield "the operands are exchanged", Exact().apply(op.kind, floats[::-1], op)
    if op.kind == "select":
        yield "the two choices are exchanged", np.where(floats[0], floats[2], floats[1])
    if op.kind == "compare":
        for direction in ("LT", "LE", "GT", "GE", "EQ", "NE"):
            yield f"it compares by {direction}", evaluate(Exact(), _NO_GRAPH, _as(op, direction), floats)[0]


def _as(op: Op, direction: str) -> Op:
    return Op(op.results, op.kind, op.operands, op.types, op.attributes | {"direction": direction}, op.bodies, op.line)


def _moved(want: Array, device: Array, room: Array) -> str:
    """Is it the right result, moved by one, or turned?"""
    for axis in range(want.ndim):
        if want.shape[axis] < 3:
            continue
        for by in (1, -1):
            inner = tuple(slice(1, -1) if n == axis else slice(None) for n in range(want.ndim))
            if _inside(device[inner], np.roll(want, by, axis)[inner], room[inner])[0] and (device[inner] != want[inner]).any():
                return f"it is off by one along axis {axis}"
    if want.ndim > 1 and want.shape[-1] == want.shape[-2]:
        if _inside(device, np.swapaxes(want, -1, -2), np.swapaxes(room, -1, -2))[0]:
            return "its last two axes are exchanged"
    return ""


def _constant_of(op: Op, arrays: list[Array], device: Array) -> str:
    """The number that would have to stand where a constant does."""
    for n, array in enumerate(arrays):
        if len(arrays) != 2 or array.size == 0 or arrays[1 - n].shape != device.shape or array.dtype.kind != "f" or (
                array != array.flat[0]).any():
            continue
        other = arrays[1 - n].astype(np.float64)
        with np.errstate(all="ignore"):
            found = {"add": device - other, "subtract": other - device if n else device + other,
                     "multiply": device / other, "divide": other / device if n else device * other,
                     "maximum": np.where(device > other, device, np.nan)}.get(op.kind)
        if found is None or not np.isfinite(found).any():
            continue
        middle = float(np.nanmedian(found[np.isfinite(found)]))
        return f"{op.kind} by {middle:.6g} would explain most of it, not by {float(array.flat[0]):.6g}"
    return ""


def guess(op: Op, arrays: list[Array], want: Array, device: Array, room: Array) -> str:
    """A sentence, or nothing."""
    if not device.any() and want.any():
        return "it is zero everywhere"
    try:
        for words, value in _guesses(op, arrays, device):
            value = np.broadcast_to(np.asarray(value), want.shape)
            unit = _UNIT.get(op.shape().format, 0.0)
            if _inside(device, value, room + abs(np.nan_to_num(value.astype(np.float64))) * (2 * unit))[0]:
                return words
    except (Trouble, ValueError, KeyError):
        pass
    return _moved(want, device, room) or _constant_of(op, arrays, device)


# ---- the replay ----

class Replay:
    """A watcher that judges each operation of which there is a dump, and goes on from the device's numbers."""

    def __init__(self, job: Job, folder: str) -> None:
        if not Path(folder).is_dir():
            raise Trouble(f"{folder}: there is no such folder")
        self.job, self.found = job, {p.stem: p for p in Path(folder).glob("*.npy")}
        self.used: set[str] = set()
        self.runner: Runner | None = None
        self.verdicts: list[Verdict] = []
        self.known: set[str] = set(job.graph.main.parameters)  # the device's own numbers, or exact ones

    def see(self, name: str, op: Op, operands: list[Value], results: list[Value]) -> list[Value] | None:
        """One operation."""
        exact = all(n in self.known for n in op.operands)
        if op.kind in OUTSIDE or not op.results or not results:
            return None
        if exact and (moves(op) or op.kind in ("tuple", "get_tuple_element")):
            self.known |= set(op.results)
        made = list(results)
        for n, (result, value) in enumerate(zip(op.results, results)):
            stem = inputs.file_name(result)
            if stem not in self.found or isinstance(value.near[0], tuple):
                continue
            device = inputs.fit(inputs.load(self.found[stem]), op.shape(n), result)
            self.used.add(stem)
            self.verdicts.append(self._judged(op, n, operands, value, device, exact))
            both = inputs.both(np.asarray(device), op.shape(n))
            made[n] = Value(tuple([both[0]] * len(value.wide)), tuple([both[1]] * len(value.near)))
            self.known.add(result)
        return made

    def _judged(self, op: Op, which: int, operands: list[Value], value: Value, device: Array, alone: bool) -> Verdict:
        assert self.runner is not None
        want, near = np.asarray(value.wide[0]), np.asarray(value.near[0])
        arrays = [v.near[0] for v in operands] if not any(isinstance(v.near[0], tuple) for v in operands) else []
        alone = alone and bool(arrays)
        if want.dtype.kind in "biu":
            want, near = want.astype(np.float64), near.astype(np.float64)
            device = device.astype(bool) if op.shape(which).format == "pred" else device
        got, near = device.astype(want.dtype), near.astype(want.dtype)
        room = allowed(op, arrays, want, near, alone, self.runner.graph, which)
        fits, share = _inside(got, _either(got, want, near, room), room)
        if _inside(got, near, np.zeros(want.shape))[0]:
            verdict, why = "same", ""
        elif fits:
            verdict, why = "rounding", "" if alone else "through operations without a dump"
        else:
            verdict, why = self._other(op, which, arrays, got, want, room, alone)
        at = _worst(got, want)
        return Verdict(op.results[which], op.kind, str(op.shape(which)), op.line, verdict, share, _relative(got, want),
                       why, at, float(got[at]), float(want[at]))

    def _other(self, op: Op, which: int, arrays: list[Array], got: Array, want: Array, room: Array,
               alone: bool) -> tuple[str, str]:
        """Other settings, more digits of narrow operands, or a bug."""
        assert self.runner is not None
        graph, name = self.runner.graph, op.shape(which).format
        if alone and formats.is_float(name):
            for settings in _OTHERS:
                try:
                    other = evaluate(Engines(settings), graph, op, arrays)[which].astype(np.float64)
                except Trouble:
                    continue
                if _inside(got, other, room)[0]:
                    return "numerics", settings.words()
            if _inside(got, want, room + _unrounded(op, arrays, graph))[0]:
                return "numerics", "as if its operands had more digits when they were read than when they were written"
            if name != "f32" and _inside(got, want, room + _narrow_sums(op, arrays, want, name, graph))[0]:
                return "numerics", f"as if its sums were rounded to {name}"
        return "bug", guess(op, arrays, want, got, room) if which == 0 else ""


def _unrounded(op: Op, arrays: list[Array], graph: Graph) -> Array | float:
    """What the roundings of narrow operands do to a result: a device that fuses operations rounds less often."""
    units = [_UNIT.get(name, 0.0) if name not in ("f32", "f64") else 0.0 for name in op.get("formats")]
    floats, made = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays], np.zeros(op.shape().dims)
    if not any(units) or op.kind in _NORMS:
        return 0.0
    if op.kind in ("dot_general", "convolution") or op.kind == "reduce" and _adds(op, graph):
        squares = evaluate(Exact(), graph, op, [np.square(x) for x in floats])[0]
        return np.sqrt(np.asarray(squares, np.float64)) * (4 * max(units))
    if op.kind not in (*_TABLES, "add", "subtract", "multiply", "convert"):
        return 0.0
    for n, unit in enumerate(units):
        with np.errstate(all="ignore"):
            moved = [[x * (1 + side * unit) if m == n else x for m, x in enumerate(floats)] for side in (0, 1, -1)]
            here, *ends = (evaluate(Exact(), graph, op, given)[0] for given in moved)
            made = made + np.nan_to_num(np.maximum(abs(ends[0] - here), abs(ends[1] - here)))
    return made


def _narrow_sums(op: Op, arrays: list[Array], want: Array, name: str, graph: Graph) -> Array | float:
    """How far sums in the result's format go astray, one element after the other and by halves."""
    if op.kind != "reduce" or len(op.results) != 1 or kind_of(graph, op) != "add" or want.ndim == arrays[0].ndim:
        return 0.0
    axes = sorted(op.get("dimensions"))
    x = np.moveaxis(arrays[0].astype(np.float32), axes, range(len(axes)))
    parts = list(x.reshape(-1, *x.shape[len(axes):]))
    ahead, halves = np.zeros(want.shape, np.float32), parts
    for part in parts:
        ahead = formats.rounded(ahead + part, name)
    while len(halves) > 1:
        halves = [formats.rounded(np.asarray(sum(halves[n:n + 2])), name) for n in range(0, len(halves), 2)]
    off = [abs(made.astype(np.float64) - want) for made in (ahead, *halves[:1])]
    return sum(4 * _typical(o) + 2 * o for o in off)


def _worst(got: Array, want: Array) -> tuple[int, ...]:
    with np.errstate(all="ignore"):
        off = np.nan_to_num(abs(got - want), nan=np.inf)
    return tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape)) if off.size else ()


def _relative(got: Array, want: Array) -> float:
    held = float(np.sqrt(np.square(want[np.isfinite(want)]).sum()))
    with np.errstate(all="ignore"):
        off = np.where((got == want) | ((got != got) & (want != want)), 0, got - want)
    return float(np.sqrt(np.square(off).sum())) / held if held > 0 else float(off.any())


_NO_GRAPH: Any = None  # operations without bodies need none


def report(job: Job, folder: str) -> dict[str, Any]:
    """Runs the graph along the device's numbers."""
    if job.devices != 1:
        raise Trouble(f"--device replays one device, and the module is for {job.devices}: --devices 1 if its groups allow it")
    replay = Replay(job, folder)
    replay.runner, _ = job.run(replay.see)
    rest = sorted(set(replay.found) - replay.used)
    rows = replay.verdicts
    count: Callable[[str], int] = lambda word: sum(v.verdict == word for v in rows)
    return {"file": job.options.file, "device": folder, "settings": job.settings.words(), "random": job.drawn,
            "filled": job.filled, "judged": len(rows), "same": count("same"), "rounding": count("rounding"),
            "numerics": count("numerics"), "bugs": count("bug"), "unused": rest, "rows": [vars(v) for v in rows]}


def told(said: dict[str, Any], top: int) -> str:
    """The report in lines."""
    lines = [f"{said['file']} beside {said['device']}: {said['judged']} operations judged; {said['same']} have our bits, "
             f"{said['rounding']} differ by rounding, {said['numerics']} by other numerics, {said['bugs']} are bugs"]
    if said["unused"]:
        lines.append(f"no operation has these names: {', '.join(said['unused'][:6])}")
    if said["random"] and said["judged"]:
        lines.append(f"random operands (the device had others, so give them): {', '.join(said['random'][:6])}")
    order = {"bug": 0, "numerics": 1}
    for row in sorted((r for r in said["rows"] if r["verdict"] in order), key=lambda r: order[r["verdict"]])[:top]:
        at = f"[{', '.join(map(str, row['at']))}]"
        why = f": {row['why']}" if row["why"] else ""
        lines.append(f"{row['verdict']}: {row['name']} ({row['kind']} {row['shape']}, line {row['line']}){why}; at {at} the "
                     f"device has {row['device']:.9g}, expected is {row['expected']:.9g}")
    return "\n".join(lines)
