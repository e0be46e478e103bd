"""graphrun against NumPy, against slow definitions of operations, and against planted bugs.

    python3 check_graphrun.py [--table] [STABLEHLO-CHECKOUT]

With a checkout of openxla/stablehlo all of its test data (values that JAX made) is run, too. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import collections
import contextlib
import io
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import trnmath
from trnmath.graphrun import __main__ as command
from trnmath.graphrun import collectives, device, hlo, inputs, job, measure, run, sharding, stablehlo
from trnmath.graphrun.graph import Trouble
from trnmath.graphrun.machine import Engines, Settings

import graphrun_block as block
import graphrun_edges as edges
import graphrun_sharded as sharded

Array = Any
failed = 0


def check(right: bool, words: str) -> None:
    global failed
    if not right:
        failed += 1
        print(f"FAILED: {words}")


def values_of(text: str, given: dict[str, Array] | None = None, settings: Settings = Settings(), devices: int = 1,
              side: str = "wide", each: list[dict[str, Array]] | None = None) -> list[list[Array]]:
    """Results of a text, of each the devices' arrays."""
    graph = (hlo if hlo.is_hlo(text) else stablehlo).read(text)
    sharding.resolve(graph)
    made, _ = inputs.values(graph, given or {}, devices, 0, (0, 2), graph.parts)
    for name, type_ in zip(graph.main.parameters, graph.main.types):
        if each is not None:
            pairs = [inputs.both(np.asarray(one[name.lstrip("%")]), type_) for one in each]
            made[name] = run.Value(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    found = run.Runner(graph, Engines(settings), devices).run(made)
    return [list(getattr(v, side)) for v in found]


def one(body: str, given: dict[str, Array], types: dict[str, str], result: str) -> Array:
    """What a StableHLO function of one result gives in float64."""
    head = ", ".join(f"%{name}: tensor<{type_}>" for name, type_ in types.items())
    text = f"module {{ func.func @main({head}) -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}} }}"
    return values_of(text, given)[0][0]


# ---- a whole block, in both texts ----

def blocks() -> None:
    for narrow in (False, True):
        name, mlir = ("bf16", "bf16") if narrow else ("f32", "f32")
        given = block.operands(1)
        given |= {k: block.bf16(given[k]) for k in ("wq", "wk", "wv", "bias")} if narrow else {}
        want = block.Device(wide=True).run(given)["out"]
        for text in (block.HLO.replace("T[", f"{name}["), block.STABLEHLO.replace("xT>", f"x{mlir}>")):
            got = values_of(text, given)[0][0]
            check(got.dtype == np.float64 and abs(got - want).max() < 1e-12 * abs(want).max(),
                  f"the block in {text[:9]}, {name}: {abs(got - want).max():.1e} from NumPy")
            near = values_of(text, given, side="near")[0][0]
            off = np.linalg.norm(near - want) / np.linalg.norm(want)
            check((1e-7 < off < 2e-4) if not narrow else (1e-4 < off < 2e-2), f"the engines' block, {name}: {off:.1e}")
    # the engines' bits are the library's own
    a, b = (np.random.default_rng(n).standard_normal((64, 64)).astype(np.float32) for n in (1, 2))
    text = ("HloModule m\nENTRY e {\n  a = f32[64,64] parameter(0)\n  b = f32[64,64] parameter(1)\n"
            "  ROOT d = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n")
    for settings, want in ((Settings(), trnmath.matmul(a, b, generation=2)),
                           (Settings("matmult"), trnmath.matmul(*((trnmath.convert(x, "bfloat16"), "bfloat16") for x in (a, b)))),
                           (Settings("matmult", "fp8_e4m3"), trnmath.matmul(*((trnmath.convert(x, "float8_e4m3"), "float8_e4m3")
                                                                             for x in (a, b))))):
        got = values_of(text, {"a": a, "b": b}, settings, side="near")[0][0]
        check(np.array_equal(got, want), f"a product with {settings.words()} has not trn_matmul's bits")


# ---- operations by their slow definitions ----

def draws(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def convolutions() -> None:
    x, w = draws(2, 7, 6, 4).astype(np.float32), draws(3, 2, 2, 6, seed=4).astype(np.float32)
    stride, low, spread, dilate, groups = (2, 1), (1, 0), (1, 2), (2, 1), 2
    got = one(f"""%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{stride = [2, 1], pad = [[1, 2], [0, 1]], lhs_dilate = [1, 2], rhs_dilate = [2, 1]}}
      {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64, precision_config = [#stablehlo<precision DEFAULT>]}}
      : (tensor<2x7x6x4xf32>, tensor<3x2x2x6xf32>) -> tensor<2x3x11x6xf32>""", {"x": x, "w": w},
              {"x": "2x7x6x4xf32", "w": "3x2x2x6xf32"}, "2x3x11x6xf32")
    at = lambda n, i, j, c: float(x[n, i // spread[0], j // spread[1], c]) if (
        0 <= i < (7 - 1) * spread[0] + 1 and 0 <= j < (6 - 1) * spread[1] + 1 and i % spread[0] == 0 and j % spread[1] == 0) else 0.0
    want = np.zeros((2, 3, 11, 6))
    for n, i, j, o in np.ndindex(*want.shape):
        want[n, i, j, o] = sum(
            at(n, i * stride[0] + p * dilate[0] - low[0], j * stride[1] + q * dilate[1] - low[1], o // 3 * 2 + c) * float(w[p, q, c, o])
            for p in range(3) for q in range(2) for c in range(2))
    check(abs(got - want).max() < 1e-12, f"convolution: {abs(got - want).max():.1e}")


def gathers() -> None:
    x = draws(5, 6, 7).astype(np.float32)
    i = np.array([[[0, 9], [3, 2]], [[-4, 1], [4, 6]], [[2, 5], [1, 1]]], np.int32)
    got = one("""%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 3],
      collapsed_slice_dims = [1], start_index_map = [2, 0], index_vector_dim = 2>, slice_sizes = array<i64: 2, 1, 3>}>
      : (tensor<5x6x7xf32>, tensor<3x2x2xi32>) -> tensor<3x2x2x3xf32>""", {"x": x, "i": i},
              {"x": "5x6x7xf32", "i": "3x2x2xi32"}, "3x2x2x3xf32")
    for a, b in np.ndindex(3, 2):
        s, t = min(max(i[a, b, 1], 0), 5 - 2), min(max(i[a, b, 0], 0), 7 - 3)
        check(np.array_equal(got[a, :, b, :], x[s:s + 2, 0, t:t + 3]), f"gather at {a}, {b}")


def scatters() -> None:
    x, u = draws(6, 5).astype(np.float32), draws(4, 2, 5, seed=5).astype(np.float32)
    i = np.array([[1], [4], [1], [5]], np.int32)  # the last does not lie inside as a whole
    body = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.OP %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      })"""
    text = """%r = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers =
      #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
      unique_indices = false}> BODY : (tensor<6x5xf32>, tensor<4x1xi32>, tensor<4x2x5xf32>) -> tensor<6x5xf32>"""
    for kind in ("add", "subtract"):
        got = one(text.replace("BODY", body.replace("OP", kind)), {"x": x, "i": i, "u": u},
                  {"x": "6x5xf32", "i": "4x1xi32", "u": "4x2x5xf32"}, "6x5xf32")
        want = x.astype(np.float64)
        for n in range(3):
            want[i[n, 0]:i[n, 0] + 2] += u[n] if kind == "add" else -u[n]
        check(abs(got - want).max() < 1e-12, f"scatter by {kind}: {abs(got - want).max():.1e}")


def windows() -> None:
    x = draws(5, 6).astype(np.float32)
    got = one("""%c = stablehlo.constant dense<0.0> : tensor<f32>
      %r = "stablehlo.reduce_window"(%x, %c) <{base_dilations = array<i64: 1, 2>, padding = dense<[[1, 0], [0, 2]]> : tensor<2x2xi64>,
      window_dilations = array<i64: 2, 1>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<5x6xf32>, tensor<f32>) -> tensor<4x6xf32>""", {"x": x}, {"x": "5x6xf32"}, "4x6xf32")
    wide = np.zeros((6, 13))
    wide[1:, 0:11:2] = x
    want = [[wide[i:i + 3:2, 2 * j:2 * j + 3].sum() for j in range(6)] for i in range(4)]
    check(abs(got - np.array(want)).max() < 1e-12, "reduce_window")
    padded = one("""%c = stablehlo.constant dense<9.0> : tensor<f32>
      %r = stablehlo.pad %x, %c, low = [-1, 2], high = [1, -3], interior = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<5x10xf32>""",
                 {"x": x}, {"x": "5x6xf32"}, "5x10xf32")
    spread = np.full((6, 13), 9.0)
    spread[0:5, 2:13:2] = x
    check(np.array_equal(padded, spread[1:6, :10]), "pad")


def sorts_and_loops() -> None:
    x = draws(3, 9).astype(np.float32)
    got = one("""%k = stablehlo.iota dim = 1 : tensor<3x9xi32>
      %s:2 = "stablehlo.sort"(%x, %k) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
        %p = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }) : (tensor<3x9xf32>, tensor<3x9xi32>) -> (tensor<3x9xf32>, tensor<3x9xi32>)
      %r = stablehlo.convert %s#1 : (tensor<3x9xi32>) -> tensor<3x9xf32>""", {"x": x}, {"x": "3x9xf32"}, "3x9xf32")
    check(np.array_equal(got, np.argsort(-x, 1, kind="stable")), "sort")
    got = one("""%z = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<5> : tensor<i32>
      %w:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<4xf32>
       cond {
        %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %o = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %o : tensor<i32>
        %d = stablehlo.multiply %v, %x : tensor<4xf32>
        stablehlo.return %j, %d : tensor<i32>, tensor<4xf32>
      }
      %r = stablehlo.negate %w#1 : tensor<4xf32>""", {"x": x[0, :4]}, {"x": "4xf32"}, "4xf32")
    check(abs(got + x[0, :4].astype(np.float64)**6).max() < 1e-12, "while")


def odd_ends() -> None:
    """Where XLA and NumPy differ, on both machines."""
    for name, text, given, wants in edges.cases():
        for side in ("wide", "near"):
            try:
                found = [values[0] for values in values_of(text, given, side=side)]
            except Trouble as trouble:
                check(False, f"{name}: {trouble}")
                break
            for got, want in zip(found, wants):
                want = np.asarray(want)
                right = got.shape == want.shape and np.allclose(got, want, rtol=1e-6, atol=2e-5, equal_nan=True)
                exact = want.dtype.kind == "f" or np.array_equal(got, want)
                check(right and exact, f"{name}, {side}: {got.tolist()}, expected {want.tolist()}")


def exchanges() -> None:
    numbers = np.arange(8, dtype=np.float32).reshape(2, 4)
    each = [{k: numbers + 8 * d + 100 * n for n, k in enumerate("xy")} for d in range(2)]
    for d, ((a, b), (g, h), i) in enumerate(values_of(edges.EXCHANGE, devices=2, each=each)[0]):
        came = all(np.array_equal(part, e["xy"[d]]) for part, e in zip((a, b), each))
        check(came, f"all-to-all of operands, {d}")
        whole = all(np.array_equal(w, np.vstack([e[k] for e in each])) for w, k in ((g, "x"), (h, "y")))
        check(whole, f"all-gather of two, {d}")
        check(i == 0, "the replica's number")
    for k, found in zip("xy", values_of(edges.SPLIT, devices=2, each=each)):
        for d, got in enumerate(found):
            check(np.array_equal(got, np.vstack([e[k][:, 2 * d:2 * d + 2] for e in each])), f"all_to_all of {k}, {d}")


# ---- several devices ----

def several() -> None:
    text = """HloModule m, num_partitions=4
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}
ENTRY %e (x: f32[8,6]) -> (f32[8,6], f32[4,6], f32[16,6], f32[8,6], u32[]) {
  %x = f32[8,6]{1,0} parameter(0)
  %r = f32[8,6]{1,0} all-reduce(f32[8,6]{1,0} %x), replica_groups={{0,1,2,3}}, to_apply=%add
  %s = f32[4,6]{1,0} reduce-scatter(f32[8,6]{1,0} %x), replica_groups={{0,2},{1,3}}, dimensions={0}, to_apply=%add
  %g = f32[16,6]{1,0} all-gather(f32[8,6]{1,0} %x), replica_groups=[2,2]<=[4], dimensions={0}
  %p = f32[8,6]{1,0} collective-permute(f32[8,6]{1,0} %x), source_target_pairs={{0,1},{1,2},{2,3}}
  %i = u32[] partition-id()
  ROOT %t = (f32[8,6]{1,0}, f32[4,6]{1,0}, f32[16,6]{1,0}, f32[8,6]{1,0}, u32[]) tuple(%r, %s, %g, %p, %i)
}
"""
    each = [{"x": draws(8, 6, seed=n).astype(np.float32)} for n in range(4)]
    xs = [e["x"].astype(np.float64) for e in each]
    check(collectives.devices_of(hlo.read(text)) == 4, "the devices of a module")
    for side in ("wide", "near"):
        found = values_of(text, devices=4, side=side, each=each)[0]
        for d, (r, s, g, p, i) in enumerate(found):
            pair, place = ([0, 2], [1, 3])[d % 2], d // 2
            close = lambda a, b: np.allclose(a, b, rtol=0, atol=1e-12 if side == "wide" else 1e-5)
            check(close(r, sum(xs)), f"all-reduce, {side}, {d}")
            check(close(s, (xs[pair[0]] + xs[pair[1]])[4 * place:4 * place + 4]), f"reduce-scatter, {side}, {d}")
            check(np.array_equal(g, np.concatenate(xs[:2] if d < 2 else xs[2:])), f"all-gather, {side}, {d}")
            check(np.array_equal(p, xs[d - 1] if d else 0 * xs[0]) and i == d, f"collective-permute, {side}, {d}")
    whole = text.replace(", replica_groups={{0,1,2,3}}", "")
    check(np.array_equal(values_of(whole, devices=4, each=each)[0][1][0], xs[1]), "without a channel a partition is alone")
    whole = text.replace(", replica_groups={{0,1,2,3}}", ", channel_id=1, replica_groups={}")
    check(np.allclose(values_of(whole, devices=4, each=each)[0][1][0], sum(xs), atol=1e-12), "with one, all add")
    same = np.full(4, 3.0)  # devices share the reference's array, and one of them the engines', too
    check(measure.relative((same, same + 1), (same, same)) == np.sqrt(4 / 72), "a distance is of all devices")
    out = [np.empty(48, np.float32) for _ in each]
    trnmath.collective("all_reduce", [e["x"].reshape(-1) for e in each], out, "trn2.48xlarge", None, 4)
    check(np.array_equal(found[0][0].reshape(-1), out[0]), "the engines' all-reduce has not the algorithm's order")


# ---- a device's dump ----

def parts() -> None:
    """Programs of parts are the whole one, on both machines; what does not fit is refused."""
    given = sharded.operands()
    want = sharded.wanted(given)
    for name, text in sharded.programs():
        graph = stablehlo.read(text)
        sharding.resolve(graph)
        check(collectives.devices_of(graph) == 8, f"{name}: devices")
        for side, within in (("wide", 1e-12), ("near", 1e-5)):
            found = values_of(text, given, devices=8, side=side)[0]
            check(all(np.allclose(x, want, within, within) for x in found), f"{name}: {side}")
    x = given["x"].astype(np.float64)
    found = values_of(sharded.hlo(), {"x": given["x"]}, devices=4)[0]
    check(all(np.allclose(f, x.reshape(4, 2, 12).sum(0), 1e-12, 1e-12) for f in found), "HLO: the sum of parts")
    found = values_of(sharded.hlo("{devices=[4,1]<=[4]}", 8), {"x": given["x"]}, devices=4)[0]
    check(np.allclose(found[3], np.tile(x.reshape(4, 2, 12).sum(0), (4, 1)), 1e-12, 1e-12), "HLO: parts put together")
    found = values_of(sharded.TURNS, {"x": given["x"]}, devices=8)[0]
    check(np.array_equal(found[5], x.reshape(2, 4, 12).swapaxes(0, 1).reshape(8, 12)), "Shardy: two axes of one")
    for words, text in sharded.refused():
        try:
            values_of(text, given, devices=8)
            check(False, f"not refused: {words}")
        except Trouble as trouble:
            check(words in str(trouble), f"'{words}' is expected: {trouble}")


def dumped(folder: Path, values: dict[str, Array], leave: int, draw: random.Random) -> None:
    """Some of the values as files: leave of four operations are not there."""
    folder.mkdir()
    for name, x in values.items():
        if not leave or draw.randrange(4) >= leave or name in block.BUGS.values() or name == "out":
            np.save(folder / f"{name}.npy", x)


def judged(home: Path, number: int, made: block.Device, narrow: bool, leave: int, size: float) -> dict[str, Any]:
    draw, given = random.Random(number), block.operands(number, size)
    if narrow:
        given |= {k: block.bf16(given[k]) for k in ("wq", "wk", "wv", "bias")}
    dumped(home / f"dump{number}", made.run(given), leave, draw)
    np.savez(home / f"in{number}.npz", **given)
    text = home / f"block{number}.hlo"
    text.write_text(block.HLO.replace("T[", "bf16[" if narrow else "f32["))
    return told(["--inputs", str(home / f"in{number}.npz"), "--device", str(home / f"dump{number}"), str(text)])


def told(words: list[str]) -> dict[str, Any]:
    """What the command says as JSON, with its status."""
    with tempfile.TemporaryDirectory() as home, contextlib.redirect_stdout(io.StringIO()):
        status = command.main([*words, "--json", f"{home}/said.json"])
        return json.loads(Path(home, "said.json").read_text()) | {"status": status}


def bugs(table: bool) -> None:
    """20 dumps with a bug each, 20 that differ by rounding alone."""
    with tempfile.TemporaryDirectory() as folder:
        home, named, false = Path(folder), 0, 0
        for n in range(40):
            narrow, order = n % 2 == 1, ("forwards", "backwards", "halves")[n % 3]
            bug = list(block.BUGS)[n // 5] if n < 20 else ""
            leave, size = (n % 5) // 2, (1.0 if bug != "wrong epsilon" or not (n % 5) // 2 else 0.01)
            said = judged(home, n, block.Device(narrow=narrow, order=order, bug=bug), narrow, leave, size)
            found = [r["name"] for r in said["rows"] if r["verdict"] == "bug"]
            if bug:
                right = found == [block.BUGS[bug]] and said["status"] == 1
                named += right
                why = next((r["why"] for r in said["rows"] if r["verdict"] == "bug"), "")
                check(right, f"dump {n}, {bug} in {block.BUGS[bug]}: found {found}")
            else:
                false += bool(found)
                why = ""
                check(not found and said["status"] == 0, f"dump {n}, no bug: found {found}")
            if table:
                print(f"{n:3} {bug or 'rounding alone':18} {'bf16' if narrow else 'f32':5} {order:10} {said['judged']:3} judged, "
                      f"{said['same']:2} same, {said['rounding']:2} rounding, bugs {', '.join(found) or '-'} {why}")
        print(f"planted bugs named: {named} of 20; rounding called a bug: {false} of 20")
        cast = told([str(home / "block0.hlo"), "--inputs", str(home / "in0.npz"), "--auto-cast", "matmult", "--dump", str(home / "cast")])
        said = told([str(home / "block0.hlo"), "--inputs", str(home / "in0.npz"), "--device", str(home / "cast")])
        found = {r["name"]: r["why"] for r in said["rows"] if r["verdict"] == "numerics"}
        check(set(found) == {"q", "k", "v", "scores", "mixed"} and set(found.values()) == {"--auto-cast matmult --auto-cast-type bf16"}
              and said["bugs"] == 0, f"a run with --auto-cast matmult: {found}")
        check(cast["adds_most"] != [] and cast["first_that_differs"] is not None, "a run says where it parts")


def verdicts() -> None:
    """Dumps of one operation each: rounding that looks like a bug, and bugs that look like rounding."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text, given, dump, want) in enumerate(edges.dumps()):
            home = Path(folder, str(number))
            home.mkdir()
            for key, x in dump.items():
                np.save(home / f"{key}.npy", x)
            np.savez(home / "in.npz", **given)
            module = home / "m.hlo"
            module.write_text(text)
            said = told(["--inputs", str(home / "in.npz"), "--device", str(home), str(module)])
            found = {r["name"].lstrip("%"): f"{r['verdict']}: {r['why']}" for r in said["rows"]}
            check(all(found[key].startswith(want) for key in dump), f"{name}: {found}, expected {want}")


# ---- what is refused ----

REFUSED = [("HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] frob(a)\n}\n", "operation frob is not known here"),
           ("HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[5] negate(a)\n}\n", "is f32[5], and an operand f32[4]"),
           ("HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] add(a, c)\n}\n", "uses 'c', which is not there"),
           ("HloModule m\nENTRY e {\n  a = f32[2,2] parameter(0)\n  ROOT b = f32[2,2] transpose(a), dimensions={-1,0}\n}\n",
            "a negative number in dimensions"),
           ("HloModule m\nENTRY e {\n  a = f4e2m1[4] parameter(0)\n  ROOT b = f4e2m1[4] negate(a)\n}\n", "f4e2m1 cannot be run"),
           ("HloModule m\nENTRY e {\n  ROOT b = f32[4] constant({...})\n}\n", "was left out when the module was printed"),
           ("HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n", "does not end"),
           ("module { func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> } }", "known only when it runs"),
           ("module { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %b = tosa.add %a, %a : tensor<2xf32>\n return %b : "
            "tensor<2xf32> } }", "tosa.add is no operation of StableHLO"),
           ("hello", "no function of StableHLO"), *edges.MISFITS]


TWICE = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


def several_modules() -> None:
    """A file with two: the one that is asked for, with its lines."""
    Path("two.mlir").write_text(TWICE)
    for which, kind, line in ((1, "negate", 2), (2, "add", 7)):
        op = job.read("two.mlir", which).main.ops[0]
        check((op.kind, op.line) == (kind, line), f"module {which}: {op.kind}, line {op.line}")


def refusals() -> None:
    for text, words in REFUSED:
        with contextlib.suppress(Trouble):
            values_of(text)
            check(False, f"it runs: {text[:60]}")
            continue
        try:
            values_of(text)
        except Trouble as trouble:
            check(words in str(trouble) and "\n" not in str(trouble), f"'{trouble}' where '{words}' is expected")
    several_modules()
    huge = "func.func @main(%x: tensor<99999x99999x99xf32>) -> tensor<99999x99999x99xf32> { return %x : tensor<99999x99999x99xf32> }"
    for name, text, words in (("huge.mlir", huge, "GiB of memory are needed"), ("two.mlir", TWICE, "--module 1 to 2")):
        Path(name).write_text(text)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            check(command.main([name]) == 2 and words in said.getvalue(), f"{name}: {said.getvalue()}")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        check(command.main(["/nowhere.hlo"]) == 2 and said.getvalue() == "graphrun: /nowhere.hlo: No such file or directory\n",
              f"a file that is not there: {said.getvalue()}")


def broken(count: int) -> None:
    """Texts with pieces cut, moved and exchanged: each runs or is refused in a sentence."""
    draw, ends = random.Random(7), collections.Counter[str]()
    texts = [block.HLO.replace("T[", "f32["), block.STABLEHLO.replace("xT>", "xf32>")]
    for _ in range(count):
        text = draw.choice(texts)
        for _ in range(draw.randint(1, 3)):
            i = draw.randrange(len(text))
            j = min(len(text), i + draw.randint(1, 12))
            k = draw.randrange(len(text))
            text = draw.choice((text[:i] + text[j:], text[:i], text[:i] + draw.choice('0123456789-{}[]()<>,:=%"#xe \n') + text[i + 1:],
                                text[:i] + text[k:k + draw.randint(1, 30)] + text[i:]))
        try:
            values_of(text)
            ends["ran"] += 1
        except (Trouble, trnmath.Error) as trouble:
            ends["refused"] += 1
            check("\n" not in str(trouble) and 0 < len(str(trouble)) < 300, f"a sentence: {trouble}")
        except Exception as trouble:  # noqa: BLE001: the very thing that is looked for
            check(False, f"{type(trouble).__name__}: {trouble}: {text[-200:]!r}")
    print(f"broken texts: {dict(ends)}")


# ---- other people's values ----

_UNKNOWN = ("rng_bit_generator",)
_NEAR = {"f64": 1e-12, "c128": 1e-12, "f32": 2e-5, "c64": 2e-5, "bf16": 2e-2, "f16": 3e-3}


def others(checkout: str) -> None:
    files = sorted(Path(checkout, "stablehlo/testdata").glob("*.mlir"))
    right = 0
    for file in files:
        seen: list[tuple[Any, Array, Array]] = []

        def see(name: str, op: Any, operands: list[run.Value], results: list[run.Value]) -> None:
            if str(op.attributes.get("target", "")).startswith("check."):
                seen.append((op.attributes["formats"], operands[0].wide[0], operands[1].wide[0]))
        try:
            run.Runner(stablehlo.read(file.read_text()), Engines(Settings()), 1, see).run({})
            good = bool(seen) and all(_near(x, y, max(_NEAR.get(f, 0) for f in formats)) for formats, x, y in seen)
        except Trouble as trouble:
            good = False
            check(file.name.startswith(_UNKNOWN), f"{file.name}: {trouble}")
        right += good
        check(good or file.name.startswith(_UNKNOWN), f"{file.name}: other values than JAX's")
    print(f"StableHLO's test data: {right} of {len(files)} as JAX has it")


def _near(x: Array, y: Array, within: float) -> bool:
    if not within:
        return bool(np.array_equal(x, y))
    finite = y[np.isfinite(y)]
    scale = np.maximum(abs(y), np.sqrt(np.mean(np.square(abs(finite)))) if finite.size else 0)
    with np.errstate(all="ignore"):
        return bool(((x == y) | ((x != x) & (y != y)) | (abs(x - y) <= within * scale)).all())


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "--table"]
    for part in (blocks, convolutions, gathers, scatters, windows, sorts_and_loops, odd_ends, exchanges, several,
                 parts, refusals, verdicts):
        part()
    bugs("--table" in sys.argv)
    broken(400)
    if words:
        others(words[0])
    print(f"graphrun: {'all is well' if not failed else f'{failed} failed'}")
    sys.exit(1 if failed else 0)
