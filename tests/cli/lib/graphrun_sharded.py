"""One product of two layers as whole arrays, as GSPMD's parts and as Shardy's, for check_graphrun.py: all are the same
numbers; and texts whose parts do not fit.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any
ROWS, WIDE, DEEP, OUT = 8, 12, 16, 6  # x [ROWS, WIDE], u [WIDE, DEEP], v [DEEP, OUT]
_TYPES = "tensor<8x12xf32>, tensor<12x16xf32>, tensor<16x6xf32>"

# x's rows are cut in two, u's columns and v's rows in four: of each device a half of the rows and a sum's quarter
_BODY = """
    %h = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x12xf32>, tensor<12x4xf32>) -> tensor<4x4xf32>
    %z = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
    %p = stablehlo.maximum %h, %z : tensor<4x4xf32>
    %q = stablehlo.dot_general %p, %c, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %s = "stablehlo.all_reduce"(%q) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups =
      dense<{GROUPS}> : tensor<2x4xi64>, use_global_device_ids}}> ({{
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %t = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }}) : (tensor<4x6xf32>) -> tensor<4x6xf32>
"""
_GSPMD = """
module @m attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<8x12xf32>, %u: tensor<12x16xf32>, %v: tensor<16x6xf32>) -> tensor<8x6xf32> {{
    %0 = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{X}"}} : (tensor<8x12xf32>) -> tensor<8x12xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} : (tensor<8x12xf32>) -> tensor<4x12xf32>
    %2 = stablehlo.custom_call @Sharding(%u) {{mhlo.sharding = "{U}"}} : (tensor<12x16xf32>) -> tensor<12x16xf32>
    %3 = stablehlo.custom_call @SPMDFullToShardShape(%2) {{mhlo.sharding = "{{manual}}"}} : (tensor<12x16xf32>) -> tensor<12x4xf32>
    %4 = stablehlo.custom_call @Sharding(%v) {{mhlo.sharding = "{V}"}} : (tensor<16x6xf32>) -> tensor<16x6xf32>
    %5 = stablehlo.custom_call @SPMDFullToShardShape(%4) {{mhlo.sharding = "{{manual}}"}} : (tensor<16x6xf32>) -> tensor<4x6xf32>
    %6 = call @part(%1, %3, %5) : (tensor<4x12xf32>, tensor<12x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %7 = stablehlo.custom_call @Sharding(%6) {{mhlo.sharding = "{{manual}}"}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %8 = stablehlo.custom_call @SPMDShardToFullShape(%7) {{mhlo.sharding = "{X}"}} : (tensor<4x6xf32>) -> tensor<8x6xf32>
    return %8 : tensor<8x6xf32>
  }}
  func.func private @part(%a: tensor<4x12xf32>, %b: tensor<12x4xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {{{BODY}
    return %s : tensor<4x6xf32>
  }}
}}
"""
_SDY = """
module @m {{
  sdy.mesh @mesh = <["data"=2, "model"=4]{IDS}>
  func.func public @main(%x: tensor<8x12xf32>, %u: tensor<12x16xf32>, %v: tensor<16x6xf32>) -> tensor<8x6xf32> {{
    %w = sdy.sharding_constraint %x <@mesh, [{{"data"}}, {{?}}]> : tensor<8x12xf32>
    %0 = sdy.manual_computation(%w, %u, %v) in_shardings=[<@mesh, [{{"data"}}, {{}}]>, <@mesh, [{{}}, {{"model"}}]>, {V}]
      out_shardings=[<@mesh, [{{"data"}}, {{}}]>] manual_axes={{"data", "model"}}
      (%a: tensor<4x12xf32>, %b: tensor<12x4xf32>, %c: tensor<4x6xf32>) {{{BODY}
      sdy.return %s : tensor<4x6xf32>
    }} : (""" + _TYPES + """) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }}
}}
"""
_GENERIC = """
"builtin.module"() <{{sym_name = "m"}}> ({{
  "sdy.mesh"() <{{mesh = #sdy.mesh<["data"=2, "model"=4]>, sym_name = "mesh"}}> : () -> ()
  "func.func"() <{{function_type = (""" + _TYPES + """) -> tensor<8x6xf32>, sym_name = "main"}}> ({{
  ^bb0(%x: tensor<8x12xf32>, %u: tensor<12x16xf32>, %v: tensor<16x6xf32>):
    %0 = "sdy.manual_computation"(%x, %u, %v) <{{in_shardings = #sdy.sharding_per_value<[<@mesh, [{{"data"}}, {{}}]>,
      <@mesh, [{{}}, {{"model"}}]>, <@mesh, [{{"model"}}, {{}}]>]>, manual_axes = #sdy<manual_axes{{"data", "model"}}>,
      out_shardings = #sdy.sharding_per_value<[<@mesh, [{{"data"}}, {{}}]>]>}}> ({{
    ^bb0(%a: tensor<4x12xf32>, %b: tensor<12x4xf32>, %c: tensor<4x6xf32>):{BODY}
      "sdy.return"(%s) : (tensor<4x6xf32>) -> ()
    }}) : (""" + _TYPES + """) -> tensor<8x6xf32>
    "func.return"(%0) : (tensor<8x6xf32>) -> ()
  }}) : () -> ()
}}) {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} : () -> ()
"""
_HLO = """HloModule m, num_partitions=4
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[8,12] parameter(0)
  y = f32[8,12] custom-call(x), custom_call_target="Sharding", sharding={{devices=[4,1]<=[4]}}
  part = f32[2,12] custom-call(y), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  sum = f32[2,12] all-reduce(part), channel_id=1, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add
  told = f32[2,12] custom-call(sum), custom_call_target="Sharding", sharding={{manual}}
  ROOT r = f32[{ROWS},12] custom-call(told), custom_call_target="SPMDShardToFullShape", sharding={OUT}
}}
"""
# device (d, m) has row 4 d + m, and brings it as row 2 m + d; "free" is no axis of the parts
TURNS = """
sdy.mesh @mesh = <["data"=2, "free"=1, "model"=4]>
func.func @main(%x: tensor<8x12xf32>) -> tensor<8x12xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data", "model"}, {"free"}]>]
    out_shardings=[<@mesh, [{"model", "data"}, {}]>] manual_axes={"data", "model"} (%a: tensor<1x12xf32>) {
    sdy.return %a : tensor<1x12xf32>
  } : (tensor<8x12xf32>) -> tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}
"""
_IN_ROWS, _TURNED = "[[0, 1, 2, 3], [4, 5, 6, 7]]", "[[0, 2, 4, 6], [1, 3, 5, 7]]"


def operands() -> dict[str, Array]:
    draw = np.random.default_rng(5)
    return {name: draw.standard_normal(shape).astype(np.float32)
            for name, shape in (("x", (ROWS, WIDE)), ("u", (WIDE, DEEP)), ("v", (DEEP, OUT)))}


def wanted(given: dict[str, Array]) -> Array:
    x, u, v = (given[name].astype(np.float64) for name in "xuv")
    return np.maximum(x @ u, 0) @ v


def _sdy(ids: str = "", v: str = '<@mesh, [{"model"}, {}]>', groups: str = _IN_ROWS) -> str:
    return _SDY.format(IDS=ids, V=v, BODY=_BODY.format(GROUPS=groups))


def _gspmd(x: str, u: str, v: str, groups: str = _IN_ROWS) -> str:
    return _GSPMD.format(X=x, U=u, V=v, BODY=_BODY.format(GROUPS=groups))


def programs() -> Iterator[tuple[str, str]]:
    """What it is, and its text: all give `wanted`."""
    yield "GSPMD", _gspmd("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
                          "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dims={replicated}}")
    yield "GSPMD, listed", _gspmd("{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}",
                                  "{devices=[1,4,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}",
                                  "{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", _TURNED)
    yield "Shardy", _sdy()
    yield "Shardy, devices in another order", _sdy(", device_ids=[0, 2, 4, 6, 1, 3, 5, 7]", groups=_TURNED)
    yield "Shardy, the generic form", _GENERIC.format(BODY=_BODY.format(GROUPS=_IN_ROWS))


def hlo(out: str = "{replicated}", rows: int = 2) -> str:
    """The sum of four parts of x's rows."""
    return _HLO.format(OUT=out, ROWS=rows)


def refused() -> Iterator[tuple[str, str]]:
    """A word of the sentence, and the text."""
    right = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
    yield "do not agree", _sdy().replace("%s = ", "%s2 = ").replace("sdy.return %s :", "sdy.return %q :")
    yield "no axis 'deep'", _sdy(v='<@mesh, [{"deep"}, {}]>')
    yield "no axis ':'", _sdy(v='<@mesh, [{"model":(1)2}, {}]>')
    yield "a mesh that is not there", _sdy(v='<@net, [{"model"}, {}]>')
    yield "not complete", _sdy(v='<@mesh, [{"model"}, {}], unreduced={"data"}>')
    yield "equal parts", _sdy(v='<@mesh, [{"model"}, {"model"}]>')
    yield "is not known here", _gspmd("{devices=[2,1,4]<=[8] last_tile_dims={manual}}", right, right)
    yield "each device once", _gspmd("{devices=[2,1,4]0,1,2,3,4,5,6,6 last_tile_dim_replicate}", right, right)
    yield "no sharding is said", _gspmd("{replicated}", right, right).replace("FullToShardShape(%0)", "FullToShardShape(%x)")
