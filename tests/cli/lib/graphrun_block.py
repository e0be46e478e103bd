"""A transformer block with one head as HLO and as StableHLO text, and the same in NumPy alone: what a device might make of
it, right or with a bug that people make. Used by check_graphrun.py.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np

N, D = 8, 64  # tokens, width
Array = Any
HLO = """HloModule block, entry_computation_layout={(f32[8,64]{1,0}, f32[64]{0})->f32[8,64]{1,0}}

%add_f32 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}

%max_f32 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(f32[] %a, f32[] %b)
}

ENTRY %main (x: f32[8,64], gain: f32[64], wq: T[64,64], wk: T[64,64], wv: T[64,64], bias: T[64]) -> f32[8,64] {
  %x = f32[8,64]{1,0} parameter(0), metadata={op_type="input" op_name="block/x"}
  %gain = f32[64]{0} parameter(1)
  %wq = T[64,64]{1,0} parameter(2)
  %wk = T[64,64]{1,0} parameter(3)
  %wv = T[64,64]{1,0} parameter(4)
  %bias = T[64]{0} parameter(5)
  %square = f32[8,64]{1,0} multiply(f32[8,64]{1,0} %x, f32[8,64]{1,0} %x)
  %zero = f32[] constant(0)
  %lowest = f32[] constant(-inf)
  %sums = f32[8]{0} reduce(f32[8,64]{1,0} %square, f32[] %zero), dimensions={1}, to_apply=%add_f32
  %width = f32[] constant(64)
  %widths = f32[8]{0} broadcast(f32[] %width), dimensions={}
  %mean = f32[8]{0} divide(f32[8]{0} %sums, f32[8]{0} %widths)
  %eps = f32[] constant(1e-05)
  %epss = f32[8]{0} broadcast(f32[] %eps), dimensions={}
  %shifted = f32[8]{0} add(f32[8]{0} %mean, f32[8]{0} %epss)
  %root = f32[8]{0} rsqrt(f32[8]{0} %shifted)
  %roots = f32[8,64]{1,0} broadcast(f32[8]{0} %root), dimensions={0}
  %scaled = f32[8,64]{1,0} multiply(f32[8,64]{1,0} %x, f32[8,64]{1,0} %roots)
  %gains = f32[8,64]{1,0} broadcast(f32[64]{0} %gain), dimensions={1}
  %normed = f32[8,64]{1,0} multiply(f32[8,64]{1,0} %scaled, f32[8,64]{1,0} %gains)
  %narrow = T[8,64]{1,0} convert(f32[8,64]{1,0} %normed)
  %q = T[8,64]{1,0} dot(T[8,64]{1,0} %narrow, T[64,64]{1,0} %wq), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %k = T[8,64]{1,0} dot(T[8,64]{1,0} %narrow, T[64,64]{1,0} %wk), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %v = T[8,64]{1,0} dot(T[8,64]{1,0} %narrow, T[64,64]{1,0} %wv), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %biases = T[8,64]{1,0} broadcast(T[64]{0} %bias), dimensions={1}
  %values = T[8,64]{1,0} add(T[8,64]{1,0} %v, T[8,64]{1,0} %biases)
  %scores = f32[8,8]{1,0} dot(T[8,64]{1,0} %q, T[8,64]{1,0} %k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %rows = s32[8,8]{1,0} iota(), iota_dimension=0
  %columns = s32[8,8]{1,0} iota(), iota_dimension=1
  %mask = pred[8,8]{1,0} compare(s32[8,8]{1,0} %columns, s32[8,8]{1,0} %rows), direction=LE
  %far = f32[] constant(-30000)
  %fars = f32[8,8]{1,0} broadcast(f32[] %far), dimensions={}
  %masked = f32[8,8]{1,0} select(pred[8,8]{1,0} %mask, f32[8,8]{1,0} %scores, f32[8,8]{1,0} %fars)
  %most = f32[8]{0} reduce(f32[8,8]{1,0} %masked, f32[] %lowest), dimensions={1}, to_apply=%max_f32
  %mosts = f32[8,8]{1,0} broadcast(f32[8]{0} %most), dimensions={0}
  %centred = f32[8,8]{1,0} subtract(f32[8,8]{1,0} %masked, f32[8,8]{1,0} %mosts)
  %power = f32[8,8]{1,0} exponential(f32[8,8]{1,0} %centred)
  %whole = f32[8]{0} reduce(f32[8,8]{1,0} %power, f32[] %zero), dimensions={1}, to_apply=%add_f32
  %wholes = f32[8,8]{1,0} broadcast(f32[8]{0} %whole), dimensions={0}
  %shares = f32[8,8]{1,0} divide(f32[8,8]{1,0} %power, f32[8,8]{1,0} %wholes)
  %weights = T[8,8]{1,0} convert(f32[8,8]{1,0} %shares)
  %mixed = f32[8,64]{1,0} dot(T[8,8]{1,0} %weights, T[8,64]{1,0} %values), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %out = f32[8,64]{1,0} add(f32[8,64]{1,0} %x, f32[8,64]{1,0} %mixed)
}
"""
STABLEHLO = """#loc = loc("block.py":1:0)
module @jit_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8x64xf32> {mhlo.layout_mode = "default"}, %gain: tensor<64xf32>, %wq: tensor<64x64xT>, %wk: tensor<64x64xT>, %wv: tensor<64x64xT>, %bias: tensor<64xT>) -> (tensor<8x64xf32> {jax.result_info = ""}) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %square = stablehlo.multiply %x, %x : tensor<8x64xf32>
    %sums = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32> loc(#loc)
    %widths = stablehlo.constant dense<6.400000e+01> : tensor<8xf32>
    %mean = stablehlo.divide %sums, %widths : tensor<8xf32>
    %eps = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %epss = stablehlo.broadcast_in_dim %eps, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %shifted = stablehlo.add %mean, %epss : tensor<8xf32>
    %root = stablehlo.rsqrt %shifted : tensor<8xf32>
    %roots = stablehlo.broadcast_in_dim %root, dims = [0] : (tensor<8xf32>) -> tensor<8x64xf32>
    %scaled = stablehlo.multiply %x, %roots : tensor<8x64xf32>
    %gains = "stablehlo.broadcast_in_dim"(%gain) <{broadcast_dimensions = array<i64: 1>}> : (tensor<64xf32>) -> tensor<8x64xf32>
    %normed = stablehlo.multiply %scaled, %gains : tensor<8x64xf32>
    %narrow = stablehlo.convert %normed : (tensor<8x64xf32>) -> tensor<8x64xT>
    %q = stablehlo.dot_general %narrow, %wq, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x64xT>, tensor<64x64xT>) -> tensor<8x64xT>
    %k = "stablehlo.dot_general"(%narrow, %wk) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x64xT>, tensor<64x64xT>) -> tensor<8x64xT>
    %v = stablehlo.dot %narrow, %wv : (tensor<8x64xT>, tensor<64x64xT>) -> tensor<8x64xT>
    %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xT>) -> tensor<8x64xT>
    %values = stablehlo.add %v, %biases : tensor<8x64xT>
    %scores = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x64xT>, tensor<8x64xT>) -> tensor<8x8xf32>
    %masked = func.call @masked(%scores) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %most = "stablehlo.reduce"(%masked, %lowest) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %mosts = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
    %centred = stablehlo.subtract %masked, %mosts : tensor<8x8xf32>
    %power = stablehlo.exponential %centred : tensor<8x8xf32>
    %whole = stablehlo.reduce(%power init: %zero) across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
     reducer(%a: tensor<f32>, %b: tensor<f32>)  {
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }
    %wholes = stablehlo.broadcast_in_dim %whole, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
    %shares = stablehlo.divide %power, %wholes : tensor<8x8xf32>
    %weights = stablehlo.convert %shares : (tensor<8x8xf32>) -> tensor<8x8xT>
    %mixed = stablehlo.dot_general %weights, %values, contracting_dims = [1] x [0] : (tensor<8x8xT>, tensor<8x64xT>) -> tensor<8x64xf32>
    %out = stablehlo.add %x, %mixed : tensor<8x64xf32>
    return %out : tensor<8x64xf32>
  }
  func.func private @masked(%scores: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %rows = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %columns = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %mask = stablehlo.compare LE, %columns, %rows, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %fars = stablehlo.constant dense<-3.000000e+04> : tensor<8x8xf32>
    %found = stablehlo.select %mask, %scores, %fars : tensor<8x8xi1>, tensor<8x8xf32>
    return %found : tensor<8x8xf32>
  }
}
"""
BUGS = {"transposed weight": "k", "missing bias": "values", "wrong epsilon": "shifted", "mask off by one": "mask"}


def operands(seed: int, size: float = 1.0) -> dict[str, Array]:
    """Of the block, as float32."""
    draw = np.random.default_rng(seed)
    made = {"x": draw.standard_normal((N, D)) * size, "gain": 1 + 0.1 * draw.standard_normal(D), "bias": draw.standard_normal(D)}
    return {k: v.astype(np.float32) for k, v in
            (made | {n: draw.standard_normal((D, D)) / 8 for n in ("wq", "wk", "wv")}).items()}


def bf16(x: Array) -> Array:
    """To nearest even, by the bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


class Device:
    """The block in float32 (or float64, wide), by NumPy: run(operands) gives every value by its name. narrow: T is
    bfloat16. backwards: sums go from the last term to the first, or by halves."""

    def __init__(self, wide: bool = False, narrow: bool = False, order: str = "forwards", bug: str = "") -> None:
        self.float: Any = np.float64 if wide else np.float32
        self.narrow, self.order, self.bug = narrow, order, bug

    def t(self, x: Array) -> Array:
        return bf16(x) if self.narrow and self.float == np.float32 else x

    def sum(self, x: Array) -> Array:
        if self.order == "halves":
            while x.shape[-1] > 1:
                x = x[..., ::2] + x[..., 1::2]
            return x[..., 0]
        terms = range(x.shape[-1]) if self.order == "forwards" else reversed(range(x.shape[-1]))
        whole = np.zeros(x.shape[:-1], self.float)
        for n in terms:
            whole = whole + x[..., n]
        return whole

    def dot(self, a: Array, b: Array) -> Array:
        return self.sum(a[:, None, :] * b.T[None, :, :])

    def run(self, given: dict[str, Array]) -> dict[str, Array]:
        f, v = self.float, {k: x.astype(self.float) for k, x in given.items()}
        v |= {k: self.t(v[k]) for k in ("wq", "wk", "wv", "bias")}
        v["square"] = v["x"] * v["x"]
        v["sums"] = self.sum(v["square"])
        v["mean"] = v["sums"] / f(D)
        v["shifted"] = v["mean"] + f(np.float32(1e-6 if self.bug == "wrong epsilon" else 1e-5))
        v["root"] = f(1) / np.sqrt(v["shifted"])
        v["scaled"] = v["x"] * v["root"][:, None]
        v["normed"] = v["scaled"] * v["gain"]
        v["narrow"] = self.t(v["normed"])
        v["q"] = self.t(self.dot(v["narrow"], v["wq"]))
        v["k"] = self.t(self.dot(v["narrow"], v["wk"].T if self.bug == "transposed weight" else v["wk"]))
        v["v"] = self.t(self.dot(v["narrow"], v["wv"]))
        v["values"] = v["v"] if self.bug == "missing bias" else self.t(v["v"] + v["bias"])
        v["scores"] = self.dot(v["q"], v["k"].T)
        rows, columns = np.indices((N, N))
        v["mask"] = columns < rows if self.bug == "mask off by one" else columns <= rows
        v["masked"] = np.where(v["mask"], v["scores"], f(-30000))
        v["most"] = v["masked"].max(1)
        v["centred"] = v["masked"] - v["most"][:, None]
        v["power"] = np.exp(v["centred"])
        v["whole"] = self.sum(v["power"])
        v["shares"] = v["power"] / v["whole"][:, None]
        v["weights"] = self.t(v["shares"])
        v["mixed"] = self.dot(v["weights"], v["values"])
        v["out"] = v["x"] + v["mixed"]
        return v
