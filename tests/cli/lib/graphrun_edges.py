"""Where XLA and NumPy differ: texts, their operands, and what XLA makes of them, for check_graphrun.py.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any
Case = tuple[str, str, dict[str, Array], list[Any]]  # what it is about, text, operands, results

PAIR = """{NAME} {{
  {NAME}.a = {T}[] parameter(0)
  {NAME}.b = {T}[] parameter(1)
  ROOT {NAME}.r = {OUT}[] {OP}
}}
"""


def pair(name: str, op: str, kind: str = "f32", out: str = "") -> str:
    """A computation of two scalars, {name}.a and {name}.b."""
    return PAIR.format(NAME=name, T=kind, OUT=out or kind, OP=op)


def module(body: str, before: str = "", head: str = "") -> str:
    """One HLO text; body: lines of the entry, the last is what it brings."""
    lines = [line.strip() for line in body.strip().split("\n")]
    lines[-1] = "ROOT " + lines[-1]
    return f"HloModule m{head}\n{before}ENTRY e {{\n" + "\n".join("  " + line for line in lines) + "\n}\n"


def mlir(body: str, types: dict[str, str], result: str) -> str:
    """One StableHLO text that brings %r."""
    head = ", ".join(f"%{name}: tensor<{type_}>" for name, type_ in types.items())
    return f"module {{ func.func @main({head}) -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}} }}"


def draws(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def simple(name: str, op: str, result: str, want: Any, **given: tuple[str, Any]) -> Case:
    """One operation of parameters."""
    lines = [f"{key} = {type_} parameter({n})" for n, (key, (type_, _)) in enumerate(given.items())]
    given_ = {k: np.asarray(v) for k, (_, v) in given.items()}
    return name, module("\n".join([*lines, f"r = {result} {op}"])), given_, [want]


def whole_numbers() -> Iterator[Case]:
    x, y = np.array([7, -7, 7, -7, 5, -128], np.int8), np.array([2, 2, -2, -2, 0, -1], np.int8)
    two = {"x": ("s8[6]", x), "y": ("s8[6]", y)}
    yield simple("division towards zero", "divide(x, y)", "s8[6]", [3, -3, -3, 3, -1, -128], **two)
    yield simple("remainder", "remainder(x, y)", "s8[6]", [1, -1, 1, -1, 5, 0], **two)
    yield simple("overflow", "multiply(x, x)", "s8[6]", [49, 49, 49, 49, 25, 0], **two)
    u = np.array([3, 2**32 - 1], np.uint32)
    pair_ = {"x": ("u32[2]", u), "y": ("u32[2]", u[::-1].copy())}
    yield simple("unsigned order", "compare(x, y), direction=GT", "pred[2]", [False, True], **pair_)
    yield simple("unsigned difference", "subtract(x, y)", "u32[2]", [4, 2**32 - 4], **pair_)
    by = ("s32[4]", np.array([1, 31, 32, -1], np.int32))
    for op, want in (("shift-left", [-10, -2**31, 0, 0]), ("shift-right-arithmetic", [-3, -1, -1, -1]),
                     ("shift-right-logical", [2**31 - 3, 1, 0, 0])):
        yield simple(op, f"{op}(x, by)", "s32[4]", want, x=("s32[4]", np.full(4, -5, np.int32)), by=by)
    f = ("f32[5]", np.array([-3.7, 300.9, np.nan, 1e30, -np.inf], np.float32))
    yield simple("floats to u8", "convert(x)", "u8[5]", [0, 255, 0, 255, 0], x=f)
    yield simple("floats to s32", "convert(x)", "s32[5]", [-3, 300, 0, 2**31 - 1, -2**31], x=f)
    yield simple("floats to s64", "convert(x)", "s64[5]", [-3, 300, 0, 2**63 - 1, -2**63], x=f)
    yield simple("floats to s4", "convert(x)", "s4[5]", [-3, 7, 0, 7, -8], x=f)
    four = ("s4[2]", np.array([7, -8], np.int8))
    yield simple("four bits", "add(x, x)", "s4[2]", [-2, 0], x=four)
    yield simple("a convolution of s8", "convolution(x, w), window={size=2}, dim_labels=bf0_oi0->bf0", "s32[1,1,2]",
                 [[[25400, 25400]]],
                 x=("s8[1,1,3]", np.full((1, 1, 3), 127, np.int8)), w=("s8[1,1,2]", np.full((1, 1, 2), 100, np.int8)))
    half = np.array([0.49999999999999994, -2.5, 2.5, 4503599627370497.0, -0.5])
    text = module("x = f64[5] parameter(0)\ny = f64[5] round-nearest-afz(x)\nr = f64[5] subtract(y, x)")
    yield "away from zero", text, {"x": half}, [[-0.5, -0.5, 0.5, 0, -0.5]]
    text = module("x = u32[] parameter(0)\nb = u32[3] broadcast(x), dimensions={}\nr = u32[3] popcnt(b)")
    yield "bits that many elements share", text, {"x": np.array(7, np.uint32)}, [[3, 3, 3]]


def moves() -> Iterator[Case]:
    a, b = draws(2, 3, 4, 5), draws(5, 4, 6, 2, seed=4)
    two = {"a": ("f32[2,3,4,5]", a), "b": ("f32[5,4,6,2]", b)}
    yield simple("a product with axes in odd orders",
                 "dot(a, b), lhs_batch_dims={2,0}, rhs_batch_dims={1,3}, "
                 "lhs_contracting_dims={3}, rhs_contracting_dims={0}", "f32[4,2,3,6]",
                 np.einsum("nijk,kjmn->jnim", a.astype(float), b.astype(float)), **two)
    yield simple("two contracted axes in odd orders",
                 "dot(a, b), lhs_batch_dims={2}, rhs_batch_dims={1}, "
                 "lhs_contracting_dims={3,0}, rhs_contracting_dims={0,3}", "f32[4,3,6]",
                 np.einsum("nijk,kjmn->jim", a.astype(float), b.astype(float)), **two)
    x = draws(2, 3)
    yield simple("broadcast with axes out of order", "broadcast(x), dimensions={2,0}", "f32[3,4,2]",
                 np.broadcast_to(x.T[:, None, :], (3, 4, 2)), x=("f32[2,3]", x))
    yield simple("clamp by scalars", "clamp(l, x, h)", "f32[3]", [-1, 0.5, np.nan], l=("f32[]", np.float32(-1)),
                 x=("f32[3]", np.array([-4, 0.5, np.nan], np.float32)), h=("f32[]", np.float32(2)))
    yield simple("a slice that begins outside", "dynamic-slice(x, i, j), dynamic_slice_sizes={2,2}", "f32[2,2]",
                 x[:2, 1:3], x=("f32[2,3]", x), i=("s32[]", np.int32(-5)), j=("u32[]", np.uint32(2**32 - 1)))
    yield simple("an update that begins outside", "dynamic-update-slice(x, y, i, j)", "f32[2,3]",
                 np.array([[x[0, 0], 9, 9], x[1]]),
                 x=("f32[2,3]", x), y=("f32[1,2]", np.full((1, 2), 9, np.float32)), i=("s32[]", np.int32(-1)),
                 j=("s32[]", np.int32(7)))
    yield simple("pad with negative edges between", "pad(x, z), padding=-1_-2_1x0_1_0", "f32[0,4]", np.zeros((0, 4)),
                 x=("f32[2,3]", x), z=("f32[]", np.float32(9)))
    nan = np.array([1, np.nan, -np.inf], np.float32)
    yield simple("NaN is the largest", "maximum(x, y)", "f32[3]", [np.nan, np.nan, 2], x=("f32[3]", nan),
                 y=("f32[3]", np.array([np.nan, 1, 2], np.float32)))
    left, right = np.array([np.nan, -0.0, 1.0, -np.nan]), np.array([np.inf, 0.0, 1 + 2.0**-40, -np.inf])
    yield simple("the total order", "compare(x, y), direction=LT, type=TOTALORDER", "pred[4]",
                 [False, True, True, True], x=("f64[4]", left), y=("f64[4]", right))
    text = module("x = f32[1] parameter(0)\ny = f32[1] parameter(1)\nc = c64[1] complex(x, y)\nr = f32[1] real(c)")
    yield "an infinite imaginary part", text, {"x": np.ones(1, np.float32), "y": np.full(1, np.inf, np.float32)}, [[1]]


def layouts() -> Iterator[Case]:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield ("a bitcast to another layout", module("x = f32[2,3]{1,0} parameter(0)\n"
           "r = f32[3,2]{0,1} bitcast(f32[2,3]{1,0} x)"), {"x": x}, [x.T])
    yield ("a bitcast within one layout", module("x = f32[2,3]{1,0} parameter(0)\nr = f32[3,2]{1,0} bitcast(x)"),
           {"x": x}, [x.reshape(3, 2)])
    yield ("a bitcast to bits", module("x = f32[2,3]{1,0} parameter(0)\nr = s32[2,3]{1,0} bitcast(x)"), {"x": x},
           [x.view(np.int32)])
    text = module(
        "x = bf16[2] parameter(0)\nc = bf16[2] constant({1.01, -nan})\ny = bf16[2] add(x, c)\n"
        "r = u16[2] bitcast-convert(c)")
    yield "bits of BF16 constants", text, {"x": np.zeros(2, np.float32)}, [[0x3f81, 0xffc0]]
    text = module(
        "x = f32[2] parameter(0)\ny = s32[] parameter(1)\nt = (f32[2], s32[]) tuple(x, y)\n"
        "n = ((f32[2], s32[]), f32[2]) tuple(t, x)\n"
        "b = ((f32[2], s32[]), f32[2]) opt-barrier(n)\ng = (f32[2], s32[]) get-tuple-element(b), index=0\n"
        "r = f32[2] get-tuple-element(g), index=0")
    yield "tuples in tuples behind a barrier", text, {"x": x[0, :2], "y": np.int32(3)}, [x[0, :2]]
    text = mlir('%r = stablehlo.constant dense<"0x05"> : tensor<3xi1>', {}, "3xi1")
    yield "three booleans in a byte", text, {}, [[True, False, True]]
    yield ("a comment before the module", "// of a compiler\n" + module("r = u32[] replica-id()",
           head=", replica_count=1"), {}, [0])


def bodies() -> Iterator[Case]:
    x = draws(2, 3, 4)
    both = (
        "larger {\n  p = f32[] parameter(0)\n  i = s32[] parameter(1)\n  q = f32[] parameter(2)\n"
        "  j = s32[] parameter(3)\n"
        "  c = pred[] compare(p, q), direction=GE\n  v = f32[] select(c, p, q)\n  k = s32[] select(c, i, j)\n"
        "  ROOT t = (f32[], s32[]) tuple(v, k)\n}\n")
    text = module(
        "x = f32[2,3,4] parameter(0)\nn = s32[24] iota(), iota_dimension=0\ni = s32[2,3,4] reshape(n)\n"
        "l = f32[] constant(-inf)\n"
        "z = s32[] constant(0)\nt = (f32[3], s32[3]) reduce(x, i, l, z), dimensions={2,0}, to_apply=larger\n"
        "r = s32[3] get-tuple-element(t), index=1", both)
    flat = np.arange(24).reshape(2, 3, 4)
    want = [flat[:, n].ravel()[x[:, n].ravel().argmax()] for n in range(3)]
    yield "the place of the largest, over two axes", text, {"x": x}, [want]
    ties = np.array([1, 2, 2, 0, np.nan, 3, np.nan, 5], np.float32)
    for name, op, want_ in (("GE", "compare(s.a, s.b), direction=GE", [0, 7, 0, 0, 0, 0, 0, 17]),
                            ("GT", "compare(s.a, s.b), direction=GT", [0, 0, 7, 0, 0, 0, 0, 17]),
                            ("operands exchanged", "compare(s.b, s.a), direction=LE", [0, 7, 0, 0, 0, 0, 0, 17])):
        text = module("x = f32[8] parameter(0)\nu = f32[2] parameter(1)\nz = f32[] constant(0)\n"
                      "r = f32[8] select-and-scatter(x, u, z), window={size=4 stride=4}, select=s, scatter=add",
                      pair("s", op, out="pred") + pair("add", "add(add.a, add.b)"))
        yield f"of equal ones in a window, {name}", text, {"x": ties, "u": np.array([7, 17], np.float32)}, [want_]
    text = module(
        "x = f32[5] parameter(0)\nz = f32[] constant(9)\n"
        "r = f32[3] reduce-window(x, z), window={size=1 pad=-1_-1}, to_apply=add",
        pair("add", "add(add.a, add.b)"))
    yield "windows within", text, {"x": ties[:5]}, [ties[1:4] + 9]
    text = module("x = f32[5] parameter(0)\ni = u64[1,1] parameter(1)\nr = f32[1] gather(x, i), offset_dims={}, "
                  "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}")
    far = np.array([[2**63 + 1]], np.uint64)
    yield "an index beyond 63 bits", text, {"x": np.arange(5, dtype=np.float32), "i": far}, [[4]]
    x = draws(4, 3, 5)
    i = np.array([[[0], [2]], [[9], [1]], [[-3], [0]], [[1], [1]]], np.int32)
    text = module(
        "x = f32[4,3,5] parameter(0)\ni = s32[4,2,1] parameter(1)\nr = f32[4,2,5] gather(x, i), offset_dims={2}, "
        "collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
        "index_vector_dim=2, slice_sizes={1,1,5}")
    yield ("gather of each batch", text, {"x": x, "i": i}, [[[x[n, min(max(int(k), 0), 2)] for k in i[n, :, 0]]
           for n in range(4)]])
    text = module(
        "x = f32[4,3,5] parameter(0)\ni = s32[4,2,1] parameter(1)\nu = f32[4,2,5] parameter(2)\n"
        "r = f32[4,3,5] scatter(x, i, u), "
        "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
        "scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add",
        pair("add", "add(add.a, add.b)"))
    u, want3 = draws(4, 2, 5, seed=6), x.astype(float)
    for n in range(4):
        for m in range(2):
            if 0 <= i[n, m, 0] < 3:
                want3[n, i[n, m, 0]] += u[n, m]
    yield "scatter of each batch", text, {"x": x, "i": i, "u": u}, [want3]
    text = module(
        "x = f32[3] parameter(0)\ni = s32[0,1] parameter(1)\nu = f32[0] parameter(2)\nr = f32[3] scatter(x, i, u), "
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add",
        pair("add", "add(add.a, add.b)"))
    yield "no updates", text, {"x": ties[:3], "i": np.zeros((0, 1), np.int32), "u": np.zeros(0, np.float32)}, [ties[:3]]
    part = lambda n: (f"b{n} {{\n  b{n}.p = f32[] parameter(0)\n  b{n}.c = f32[] constant({n})\n"
                      f"  ROOT b{n}.r = f32[] add(b{n}.p, b{n}.c)\n}}\n")
    text = module(
        "i = s32[] parameter(0)\nx = f32[] parameter(1)\n"
        "r = f32[] conditional(i, x, x, x), branch_computations={b1, b2, b3}",
        part(1) + part(2) + part(3))
    for index, want4 in ((-1, 13), (0, 11), (2, 13), (3, 13)):
        yield f"branch {index}", text, {"i": np.int32(index), "x": np.float32(10)}, [want4]


def norms() -> Iterator[Case]:
    x, w = draws(4, 3, 2), draws(2, 2, 4, seed=5)
    kernel = w[::-1].astype(float)
    text = module(
        "x = f32[4,3,2] parameter(0)\nw = f32[2,2,4] parameter(1)\n"
        "r = f32[2,2,4] convolution(x, w), window={size=2 rhs_reversal=1}, "
        "dim_labels=b0f_0io->b0f, batch_group_count=2")
    want = np.zeros((2, 2, 4))
    for n, j, o in np.ndindex(2, 2, 4):
        want[n, j, o] = (x[(o // 2) * 2 + n, j:j + 2].astype(float) * kernel[:, :, o]).sum()
    yield "a convolution in groups of a batch, its kernel turned", text, {"x": x, "w": w}, [want]
    x, s, up = draws(5, 3), draws(3, seed=6), draws(5, 3, seed=7)
    mean, var = x.astype(float).mean(0), x.astype(float).var(0)

    def loss(y: Array) -> Array:
        return ((y - y.mean(0)) / np.sqrt(y.var(0) + 1e-3) * s * up).sum()
    slope = np.zeros((5, 3))
    for at in np.ndindex(5, 3):
        step = np.zeros((5, 3))
        step[at] = 1e-5
        slope[at] = (loss(x.astype(float) + step) - loss(x.astype(float) - step)) / 2e-5
    text = module(
        "x = f64[5,3] parameter(0)\ns = f64[3] parameter(1)\nm = f64[3] parameter(2)\nv = f64[3] parameter(3)\n"
        "u = f64[5,3] parameter(4)\n"
        "t = (f64[5,3], f64[3], f64[3]) batch-norm-grad(x, s, m, v, u), epsilon=0.001, feature_index=1\n"
        "r = f64[5,3] get-tuple-element(t), index=0")
    yield "the slope of a norm", text, {"x": x, "s": s, "m": mean, "v": var, "u": up}, [slope]


def forms() -> Iterator[Case]:
    """Ways to write what is the same: MLIR's generic form, aliases, constants at the end; sizes as operands; XLA's starts
    and ends; operations of older frameworks."""
    x, y = draws(2, 3), draws(3, 4, seed=4)
    yield "the generic form", """"builtin.module"() <{sym_name = "m"}> ({
      "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x3xf32>, sym_name = "main"}> ({
      ^bb0(%x: tensor<2x3xf32>):
        %0 = "stablehlo.negate"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
        %1 = "func.call"(%0) <{callee = @twice}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
        "func.return"(%1) : (tensor<2x3xf32>) -> ()
      }) : () -> ()
      "func.func"() ({
      ^bb0(%x: tensor<2x3xf32>):
        %0 = "stablehlo.add"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        "func.return"(%0) : (tensor<2x3xf32>) -> ()
      }) {function_type = (tensor<2x3xf32>) -> tensor<2x3xf32>, sym_name = "twice"} : () -> ()
    }) : () -> ()""", {"x": x}, [-2 * x]
    yield "an alias of a type", """!pair = tuple<tensor<2xf32>, tensor<2xf32>>
    module { func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "mhlo.tuple"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> !pair
      %r = "mhlo.get_tuple_element"(%0) {index = 1 : i32} : (!pair) -> tensor<2xf32>
      return %r : tensor<2xf32> } }""", {"x": x[0, :2]}, [x[0, :2]]
    yield "a constant at the end", """module { func.func @main() -> tensor<2xf32> {
      %r = stablehlo.constant dense_resource<two> : tensor<2xf32>
      return %r : tensor<2xf32> } }
    {-# dialect_resources: { builtin: { two: "0x040000000000803F000000C0" } } #-}""", {}, [[1.0, -2.0]]
    yield "sizes as operands", mlir("""%s = stablehlo.constant dense<[3, 2]> : tensor<2xi64>
      %a = stablehlo.dynamic_reshape %x, %s : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<3x2xf32>
      %w = stablehlo.constant dense<[3, 2, 4]> : tensor<3xi64>
      %b = stablehlo.dynamic_broadcast_in_dim %a, %w, dims = [0, 1] : (tensor<3x2xf32>, tensor<3xi64>) -> tensor<3x2x4xf32>
      %z = stablehlo.constant dense<[0, 1, 0]> : tensor<3xi64>
      %l = stablehlo.constant dense<[3, 2, 4]> : tensor<3xi64>
      %t = stablehlo.constant dense<[2, 1, 3]> : tensor<3xi64>
      %c = stablehlo.real_dynamic_slice %b, %z, %l, %t :
        (tensor<3x2x4xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<2x1x2xf32>
      %i = stablehlo.dynamic_iota %t, dim = 2 : (tensor<3xi64>) -> tensor<2x1x2xf32>
      %r = stablehlo.add %c, %i : tensor<2x1x2xf32>""", {"x": "2x3xf32"}, "2x1x2xf32"), {"x": x}, [
        np.broadcast_to(x.reshape(3, 2)[::2, 1:, None], (2, 1, 2)) + [0, 1]]
    yield "how long an axis is", mlir("%r = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>",
                                      {"x": "2x3xf32"}, "i32"), {"x": x}, [3]
    yield "einsum", mlir('%r = "stablehlo.einsum"(%x, %y) <{einsum_config = "ij,jk->ki"}> : '
                         "(tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>", {"x": "2x3xf32", "y": "3x4xf32"}, "4x2xf32"), {
                             "x": x, "y": y}, [(x @ y).T]
    yield "torch_index_select", mlir('%r = "mhlo.torch_index_select"(%x, %i) {dim = 1 : i64, batch_dims = 0 : i64} : '
                                     "(tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x4xf32>",
                                     {"x": "2x3xf32", "i": "4xi64"}, "2x4xf32"), {"x": x, "i": np.array([2, 0, 0, 1])}, [
                                         x[:, [2, 0, 0, 1]]]
    yield "mhlo.broadcast", mlir('%r = "mhlo.broadcast"(%x) {broadcast_sizes = dense<[4]> : tensor<1xi64>} : '
                                 "(tensor<2x3xf32>) -> tensor<4x2x3xf32>", {"x": "2x3xf32"}, "4x2x3xf32"), {"x": x}, [
                                     np.broadcast_to(x, (4, 2, 3))]
    yield "mhlo.topk", mlir("""%t:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true},
      mhlo.version = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
      %a = stablehlo.convert %t#1 : (tensor<2x2xi32>) -> tensor<2x2xf32>
      %r = stablehlo.add %a, %t#0 : tensor<2x2xf32>""", {"x": "2x3xf32"}, "2x2xf32"), {"x": x}, [
        np.argsort(-x, -1)[:, :2] - np.sort(-x, -1)[:, :2]]
    yield "mhlo.asinh", mlir("%r = stablehlo.custom_call @mhlo.asinh(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64} : "
                             "(tensor<2x3xf32>) -> tensor<2x3xf32>", {"x": "2x3xf32"}, "2x3xf32"), {"x": x}, [np.arcsinh(x)]
    yield "map", module("x = f32[2,3] parameter(0)\nr = f32[2,3] map(x, x), dimensions={0,1}, to_apply=f",
                        pair("f", "multiply(f.a, f.b)")), {"x": x}, [x * x]
    yield "starts and ends", module("""x = f32[2,3] parameter(0)
      c = (f32[2,3], f32[2,3], u32[]) copy-start(x)
      d = f32[2,3] copy-done(c)
      s = ((f32[2,3]), f32[2,3], s32[]) async-start(d), calls=wrapped
      u = ((f32[2,3]), f32[2,3], s32[]) async-update(s)
      a = f32[2,3] async-done(u)
      g = (f32[2,3], f32[2,3]) all-gather-start(a), replica_groups={{0}}, dimensions={0}
      r = f32[2,3] all-gather-done(g)""", "wrapped {\n  p = f32[2,3] parameter(0)\n  ROOT n = f32[2,3] negate(p)\n}\n"), {
          "x": x}, [-x]


    yield "an index of no numbers", mlir("""%r = "stablehlo.scatter"(%x, %i, %y) <{indices_are_sorted = true,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0]>, unique_indices = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        "stablehlo.return"(%b) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<0xi64>, tensor<3xf32>) -> tensor<4xf32>""",
                                         {"x": "4xf32", "i": "0xi64", "y": "3xf32"}, "4xf32"), {
        "x": y[0], "i": np.zeros(0, np.int64), "y": x[0]}, [[*x[0], y[0, 3]]]
    yield "the least whole number", mlir("%r = stablehlo.constant dense<[9223372036854775808, -1, 7]> : tensor<3xi64>", {},
                                         "3xi64"), {}, [[-2**63, -1, 7]]
    yield "a piece without a module", """// a comment
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

fusion {
  x = f32[2, 3] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[2]
    reduce(x, zero), dimensions={1},
      to_apply=add
}
// the end""", {"x": x}, [x.sum(1)]


def sorts() -> Iterator[Case]:
    """Longer than a run of merges, with equal ones, and by more than one key."""
    x, y = np.random.default_rng(1).integers(-9, 9, (2, 301)).astype(np.float32), draws(2, 301)
    keys = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  then = pred[] compare(c, d), direction=LT
  both = pred[] and(same, then)
  ROOT r = pred[] or(more, both)
}
"""
    order = np.stack([np.lexsort((y[n], -x[n])) for n in range(2)])
    want = [np.take_along_axis(a, order, -1) for a in (x, y)]
    text = module("x = f32[2,301] parameter(0)\ny = f32[2,301] parameter(1)\n"
                  "s = (f32[2,301], f32[2,301]) sort(x, y), dimensions={1}, to_apply=less\n"
                  "f = f32[2,301] get-tuple-element(s), index=0\ng = f32[2,301] get-tuple-element(s), index=1\n"
                  "t = f32[2,301] multiply(f, f)\nr = f32[2,301] add(t, g)", keys)
    yield "a sort by two keys", text, {"x": x, "y": y}, [want[0] * want[0] + want[1]]
    text = module("x = f32[2,301] parameter(0)\ni = s32[2,301] iota(), iota_dimension=1\n"
                  "s = (f32[2,301], s32[2,301]) sort(x, i), dimensions={1}, is_stable=true, to_apply=less\n"
                  "r = s32[2,301] get-tuple-element(s), index=1", keys.replace("c = f32", "c = s32").replace(
                      "d = f32", "d = s32").replace("ROOT r = pred[] or(more, both)", "ROOT r = pred[] copy(more)"))
    yield "equal ones stay in order", text, {"x": x}, [np.argsort(-x, -1, kind="stable")]


def specials() -> Iterator[Case]:
    """Values from tables."""
    x = np.array([1.0, 0.5, 10.0, -0.5, 1e4])
    for kind, want in (("digamma", [-0.5772156649015329, -1.9635100260214235, 2.251752589066721, 0.03648997397857652,
                                    9.210290371142849]),
                       ("bessel_i1e", [0.20791041534970844, 0.1564208032071837, 0.1212626813844555, -0.1564208032071837,
                                       0.003989273198436])):
        yield kind, mlir(f"%r = chlo.{kind} %x : tensor<5xf64> -> tensor<5xf64>", {"x": "5xf64"}, "5xf64"), {"x": x}, [want]
    y = np.array([1, np.nan, -np.inf, 2, -0.0, 0.0], np.float32)
    y[1] = np.copysign(np.nan, 1.0)
    yield "top_k with a NaN", mlir("""%t:2 = chlo.top_k(%x, k = 4) : tensor<6xf32> -> (tensor<4xf32>, tensor<4xi32>)
      %r = stablehlo.convert %t#1 : (tensor<4xi32>) -> tensor<4xf32>""", {"x": "6xf32"}, "4xf32"), {"x": y}, [[1, 3, 0, 5]]


def solves() -> Iterator[Case]:
    """Beside NumPy's general solver; the other triangle holds what must not be read."""
    draw = np.random.default_rng(8)
    a = draw.standard_normal((2, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
    b = draw.standard_normal((2, 4, 3)).astype(np.float32)
    wide = a.astype(np.float64)
    for lower in (True, False):
        half = np.tril(wide) if lower else np.triu(wide)
        for turn in ("NO_TRANSPOSE", "TRANSPOSE"):
            matrix = half if turn == "NO_TRANSPOSE" else half.swapaxes(1, 2)
            words = f"lower={str(lower).lower()}, transpose_a={turn}"
            yield simple(f"triangular-solve, {words}", f"triangular-solve(a, b), left_side=true, {words}, unit_diagonal=false",
                         "f32[2,4,3]", np.linalg.solve(matrix, b), a=("f32[2,4,4]", a), b=("f32[2,4,3]", b))
            right = np.linalg.solve(matrix.swapaxes(1, 2), b).swapaxes(1, 2)
            yield simple(f"from the right, {words}", f"triangular-solve(a, b), left_side=false, {words}", "f32[2,3,4]", right,
                         a=("f32[2,4,4]", a), b=("f32[2,3,4]", b.swapaxes(1, 2).copy()))
        unit = half * (1 - np.eye(4)) + np.eye(4)
        yield simple(f"a unit diagonal, {lower}", f"triangular-solve(a, b), left_side=true, lower={str(lower).lower()}, "
                     "transpose_a=NO_TRANSPOSE, unit_diagonal=true", "f32[2,4,3]", np.linalg.solve(unit, b),
                     a=("f32[2,4,4]", a), b=("f32[2,4,3]", b))
        square = (wide @ wide.swapaxes(1, 2)).astype(np.float32)
        root = np.linalg.cholesky(square.astype(np.float64))
        read = np.tril(square) if lower else np.triu(square)
        yield simple(f"cholesky, {lower}", f"cholesky(a), lower={str(lower).lower()}", "f32[2,4,4]",
                     root if lower else root.swapaxes(1, 2), a=("f32[2,4,4]", read))


def cases() -> Iterator[Case]:
    """All of them, each of one device."""
    for part in (whole_numbers, moves, layouts, bodies, norms, forms, sorts, solves, specials):
        yield from part()


# Two devices: operand n of device d is 8 numbers from 8 d + 100 n on.
EXCHANGE = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[2,4] parameter(0)
  y = f32[2,4] parameter(1)
  a = (f32[2,4], f32[2,4]) all-to-all(x, y), replica_groups={{0,1}}
  g = (f32[4,4], f32[4,4]) all-gather(x, y), replica_groups={{0,1}}, dimensions={0}
  i = u32[] replica-id()
  ROOT t = ((f32[2,4], f32[2,4]), (f32[4,4], f32[4,4]), u32[]) tuple(a, g, i)
}
"""
SPLIT = """module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %a:2 = "stablehlo.all_to_all"(%x, %y) <{concat_dimension = 0 : i64, split_count = 2 : i64, split_dimension = 1 : i64,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> :
    (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>)
  return %a#0, %a#1 : tensor<4x2xf32>, tensor<4x2xf32>
} }
"""


# What XLA refuses and NumPy would take.
MISFITS = [(module(body), "does not fit its operands") for body in (
    "p = pred[2,3] parameter(0)\na = f32[1,3] parameter(1)\nb = f32[2,3] parameter(2)\nr = f32[2,3] select(p, a, b)",
    "l = f32[3] parameter(0)\na = f32[2,3] parameter(1)\nr = f32[2,3] clamp(l, a, a)",
    "a = f32[2,3] parameter(0)\nv = f32[3] parameter(1)\nr = f32[2,3] pad(a, v), padding=0_0x0_0",
    "a = f32[2,3] parameter(0)\nr = f32[2,3] slice(a), slice={[0:9], [0:3]}",
    "a = f32[3] parameter(0)\nb = s32[3] parameter(1)\nr = f32[3] add(a, b)",
    "a = f32[3] parameter(0)\nr = s32[3] add(a, a)", "a = f32[3] parameter(0)\nr = f32[3] compare(a, a), direction=EQ",
    "a = f32[1,2,3] parameter(0)\nb = f32[2,3,2] parameter(1)\nr = f32[1,2,2] dot(a, b), lhs_batch_dims={0}, "
    "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")]


# ---- dumps of a device ----

Dump = tuple[str, str, dict[str, Array], dict[str, Array], Any]  # what, text, operands, what the device has, verdict


def single(line: str, kinds: dict[str, str], before: str = "") -> str:
    """A module of one operation r, its operands parameters."""
    return module("\n".join([*(f"{k} = {t} parameter({n})" for n, (k, t) in enumerate(kinds.items())), line]), before)


def narrow(x: Array) -> Array:
    """Rounded to BF16, as float32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


def sums() -> Iterator[Dump]:
    """Along axes and windows."""
    add, largest = pair("add", "add(add.a, add.b)"), pair("most", "maximum(most.a, most.b)")
    x = draws(4, 1024)
    reduced = "z = f32[] constant({})\nr = f32[4] reduce(x, z), dimensions={{1}}, to_apply={}"
    second = np.sort(x, 1)[:, -1] * np.float32(1 - 1e-3)
    yield ("a largest that none of them is", single(reduced.format("-inf", "most"), {"x": "f32[4,1024]"}, largest),
           {"x": x}, {"r": second}, "bug")
    yield ("another order", single(reduced.format("0", "add"), {"x": "f32[4,1024]"}, add), {"x": x},
           {"r": np.add.accumulate(x[:, ::-1], 1)[:, -1]}, "rounding")
    yield ("no number", single(reduced.format("0", "add"), {"x": "f32[4,1024]"}, add), {"x": x},
           {"r": np.full(4, np.nan, np.float32)}, "bug")
    yield ("one number", single(reduced.format("0", "add"), {"x": "f32[4,1024]"}, add), {"x": x},
           {"r": np.full(4, 7, np.float32)}, "bug")
    big = (1000 * x[:1, :64]).reshape(64)
    pooled = single(
        "z = f32[] constant(0)\nr = f32[33] reduce-window(x, z), window={size=32}, to_apply=add", {"x": "f32[64]"}, add)
    windows = np.lib.stride_tricks.sliding_window_view(big, 32)
    yield ("windows in another order", pooled, {"x": big}, {"r": np.add.accumulate(windows[:, ::-1], 1)[:, -1]},
           ("same", "rounding"))
    yield "windows of one element less", pooled, {"x": big}, {"r": np.add.accumulate(windows[:, 1:], 1)[:, -1]}, "bug"
    low = narrow(abs(x[:, :200]))
    text = single("z = bf16[] constant(0)\nr = bf16[4] reduce(x, z), dimensions={1}, to_apply=add",
                  {"x": "bf16[4,200]"}, pair("add", "add(add.a, add.b)", "bf16"))
    held = np.zeros(4, np.float32)
    for n in range(200):
        held = narrow(held + low[:, n])
    yield "sums in BF16", text, {"x": low}, {"r": held}, "numerics: as if its sums were rounded to bf16"
    a, b = draws(3, 8192), draws(8192, 5, seed=4)
    product = single(
        "r = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        {"a": "f32[3,8192]", "b": "f32[8192,5]"})
    whole = np.add.accumulate(a[:, ::-1, None] * b[None, ::-1], 1)[:, -1]
    yield "a long product in another order", product, {"a": a, "b": b}, {"r": whole}, "rounding"
    yield "a long product without its end", product, {"a": a, "b": b}, {"r": a[:, :8190] @ b[:8190]}, "bug"


def elements() -> Iterator[Dump]:
    """Element by element."""
    one = lambda op, kind="f32[5]": single(f"r = {kind} {op}", {"x": kind})
    small = np.array([1e-39, -1e-41, 1, 2, 3], np.float32)
    flushed = np.where(small < 1e-30, 0, small).astype(np.float32)
    yield "below the normal numbers", one("multiply(x, x)"), {"x": np.sqrt(abs(small))}, {"r": flushed}, "rounding"
    ones = np.array([1, 1.0001, 0.9999, 1.00001, 2], np.float32)
    yield ("beside a logarithm's zero", one("log(x)"), {"x": ones},
           {"r": (np.log(ones.astype(float)) + 2e-7).astype(np.float32)}, "rounding")
    yield "a logarithm to another base", one("log(x)"), {"x": ones}, {"r": np.log2(ones)}, "bug"
    large = np.array([100, 80, -90, 1, 0], np.float32)
    with np.errstate(over="ignore"):
        yield ("an exponential that overflows", one("exponential(x)"), {"x": large},
               {"r": np.exp(large) * np.float32(1 + 1e-5)}, "rounding")
    scores = np.linspace(-20, 0, 64).astype(np.float32)
    yield ("an exponential of scores that were not rounded", one("exponential(x)", "bf16[64]"), {"x": narrow(scores)},
           {"r": narrow(np.exp(scores))}, "numerics: as if its operands had more digits")
    yield ("an exponential of half", one("exponential(x)", "bf16[64]"), {"x": narrow(scores)},
           {"r": narrow(np.exp(scores / 2))}, "bug")
    parts, values = np.exp(draws(8, 64)) / 64, draws(64, 8, seed=5)
    text = single("r = bf16[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                  {"a": "bf16[8,64]", "b": "bf16[64,8]"})
    given = {"a": narrow(parts), "b": narrow(values)}
    yield ("a product of shares that were not rounded", text, given, {"r": narrow(parts @ given["b"])},
           "numerics: as if its operands had more digits")
    yield "a product without its first terms", text, given, {"r": narrow(given["a"][:, 4:] @ given["b"][4:])}, "bug"
    text = single("r = f32[8,64] convert(a)", {"a": "bf16[8,64]"})
    yield ("digits that were never lost", text, {"a": given["a"]}, {"r": parts},
           "numerics: as if its operands had more digits")
    yield ("whole numbers beyond their format", one("add(x, x)", "s32[2]"), {"x": np.array([2, 3], np.int32)},
           {"r": np.array([4, 6 + 2**32])}, "bug")
    y = np.array([200, 1, 2, 3] + [0.5] * 200, np.float32)
    text = single("e = f32[204] exponential(x)\nm = f32[204] minimum(e, e)\nr = f32[204] add(m, m)", {"x": "f32[204]"})
    with np.errstate(over="ignore"):
        wrong = 2 * np.exp(y) + np.where(np.arange(204) == 1, np.float32(0.5), 0)
    yield "one overflow excuses nothing else", text, {"x": y}, {"r": wrong.astype(np.float32)}, "bug"


def dumps() -> Iterator[Dump]:
    """All of them."""
    for part in (sums, elements):
        yield from part()
    given = {"x": draws(8, 3), "s": np.ones(3, np.float32), "o": np.zeros(3, np.float32)}
    far = given | {"x": given["x"] + np.float32(1000)}
    centred = far["x"] - far["x"].mean(0)
    yield "beside a norm's zero", SECOND, far, {"a": centred / np.sqrt(far["x"].var(0) + np.float32(1e-3))}, "rounding"
    yield "a norm without its mean", SECOND, given, {"a": given["x"] / given["x"].std(0)}, "bug"
    yield "a second result", SECOND, given, {"b": given["x"].mean(0) + np.float32(0.1)}, "bug"
    yield "a second result that is right", SECOND, given, {"b": given["x"].mean(0)}, ("same", "rounding")


SECOND = mlir(
    """%a, %b, %c = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.001 : f32, feature_index = 1 : i64}> :
  (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %r = stablehlo.negate %b : tensor<3xf32>""", {
        "x": "8x3xf32", "s": "3xf32", "o": "3xf32"}, "3xf32")
