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
from .graph import Op, Trouble
from .job import Job
from .machine import Array, Engines, Exact, Settings
from .run import Runner, Value, evaluate, moves

_UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e4m3fn": 2.0**-4,
         "f8e5m2": 2.0**-3}
_LEAST = {"f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "f8e4m3": 2.0**-9, "f8e4m3fn": 2.0**-9, "f8e5m2": 2.0**-16}
# What published errors of devices leave to tables of functions and to divisions by a reciprocal, of the result.
_TABLES = {"exponential": 4e-5, "tanh": 2e-4, "logistic": 2e-4, "log": 2e-4, "log_plus_one": 2e-4, "sqrt": 1e-4,
           "rsqrt": 1e-4, "divide": 4e-5, "erf": 2e-4, "sine": 2e-4, "cosine": 2e-4, "power": 2e-4,
           "exponential_minus_one": 2e-4, "cbrt": 1e-4, "custom_call": 4e-4, "batch_norm_training": 2e-4,
           "batch_norm_grad": 4e-4, "batch_norm_inference": 2e-4}
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

def _spread(op: Op, arrays: list[Array]) -> Array | float:
    """The sum of the magnitudes that a result is made of, times how much each of its roundings may add up to."""
    exact = Exact()
    sizes = [abs(a.astype(np.float64)) if a.dtype.kind == "f" else a for a in arrays]
    if op.kind in ("dot_general", "convolution"):
        terms = _terms(op, arrays)
        return evaluate(exact, _NO_GRAPH, op, sizes)[0] * (8 * np.sqrt(terms) + 8)
    return 0.0


def _terms(op: Op, arrays: list[Array]) -> int:
    if op.kind == "dot_general":
        return int(np.prod([arrays[0].shape[n] for n in op.attributes.get("lhs_contracting", [])], dtype=np.int64))
    return int(np.prod(arrays[1].shape, dtype=np.int64)) // max(arrays[1].shape[op.get("labels")[1].index("o")], 1)


def _summed(op: Op, arrays: list[Array]) -> Array | float:
    """The same for sums along axes."""
    x = abs(arrays[0].astype(np.float64))
    axes = tuple(op.get("dimensions"))
    count = int(np.prod([x.shape[n] for n in axes], dtype=np.int64))
    return np.asarray(x.sum(axes)) * (4 * np.sqrt(count) + 4)


def allowed(op: Op, arrays: list[Array], want: Array, near: Array, alone: bool) -> Array:
    """How far a device's result may be from float64's (want), element by element; alone: the operands were dumped."""
    name = op.shape().format
    if not formats.is_float(name):
        return np.zeros(want.shape)
    held = np.where(np.isfinite(want), abs(want), 0)
    made = held * (2 * _UNIT[name]) + 2 * _LEAST.get(name, 0.0)
    made = made + held * (_TABLES.get(op.kind, 0.0) if name != "f64" else 0.0)
    if alone and op.kind in ("dot_general", "convolution"):
        made = made + _spread(op, arrays) * _UNIT["f32" if name != "f64" else "f64"]
    elif alone and op.kind in ("reduce", "reduce_window") and "dimensions" in op.attributes:
        made = made + _summed(op, arrays) * _UNIT["f32" if name != "f64" else "f64"]
    elif op.kind in ("all_reduce", "reduce_scatter"):
        made = made + held * 16 * _UNIT[name]
    if not alone:
        with np.errstate(invalid="ignore"):
            off = np.where(np.isfinite(near) & np.isfinite(want), near - want, 0)
        made = made + 8 * np.sqrt(np.mean(np.square(off))) + 4 * abs(off) + held * (8 * _UNIT[name])
    return made


# ---- what else would explain it ----

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
        if len(arrays) != 2 or array.size == 0 or (array != array.flat[0]).any() or array.dtype.kind != "f":
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
        if op.kind in ("call", "while", "case") or not op.results or not results:
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
            self.verdicts.append(self._judged(op, operands, value, device, exact))
            both = inputs.both(np.asarray(device), op.shape(n))
            made[n] = Value(tuple([both[0]] * len(value.wide)), tuple([both[1]] * len(value.near)))
            self.known.add(result)
        return made

    def _judged(self, op: Op, operands: list[Value], value: Value, device: Array, alone: bool) -> Verdict:
        want, near = np.asarray(value.wide[0]), np.asarray(value.near[0])
        got = device.astype(want.dtype) if want.dtype != np.bool_ else device.astype(bool)
        arrays = [v.near[0] for v in operands] if not any(isinstance(v.near[0], tuple) for v in operands) else []
        if want.dtype.kind in "biu":
            want, near, got = (x.astype(np.float64) for x in (want, near, got))
        room = allowed(op, arrays, want, near.astype(np.float64), alone and bool(arrays))
        fits, share = _inside(got, want, room)
        nearly, near_share = _inside(got, near.astype(np.float64), room)
        if _inside(got, near.astype(np.float64), np.zeros(want.shape))[0]:
            verdict, why = "same", ""
        elif fits or nearly:
            verdict, why, share = "rounding", "" if alone else "through operations without a dump", min(share, near_share)
        else:
            verdict, why = self._other(op, arrays, got, want, room, alone)
        at = _worst(got, want)
        return Verdict(op.name, op.kind, str(op.shape()), op.line, verdict, share, _relative(got, want), why, at,
                       float(got[at]), float(want[at]))

    def _other(self, op: Op, arrays: list[Array], got: Array, want: Array, room: Array, alone: bool) -> tuple[str, str]:
        """Other settings, or a bug."""
        if alone and formats.is_float(op.shape().format) and self.runner is not None:
            for settings in _OTHERS:
                try:
                    other = evaluate(Engines(settings), self.runner.graph, op, arrays)[0].astype(np.float64)
                except Trouble:
                    continue
                if _inside(got, other, room)[0]:
                    return "numerics", settings.words()
        return "bug", guess(op, arrays, want, got, room)


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
