"""trnmath: Trainium's numbers on NumPy arrays, without a copy.

    import numpy as np, trnmath
    x = np.random.default_rng(0).standard_normal((64, 256), dtype=np.float32)
    codes = trnmath.convert(x, "float8_e4m3")                           # uint8, round to nearest even
    y = trnmath.matmul((codes, "float8_e4m3"), (codes.T, "float8_e4m3"))  # what the Tensor engine returns
    z = trnmath.activation(y, "gelu_apprx_tanh", to="bfloat16")         # uint16
    time = trnmath.collective_cost("all_reduce", 1 << 30, system="trn2-ultraserver")["time_s"]

An array argument is a NumPy array whose dtype says its format (float32, float16, int8, ...; ml_dtypes' dtypes too), or
a pair (array of unsigned integers, "format") for codes of formats that NumPy lacks: "bfloat16", "float8_e4m3",
"float8_e5m2", "float4_e2m1fn", ... or whatever has __dlpack__ on a CPU, such as PyTorch's tensors, bfloat16 and FP8
among them. Functions work on the arrays' memory, with their strides. What would need a copy, or has no format, is
refused with one sentence (trnmath.Error). Results go to new arrays, or to `out`, which is returned. Where `to` is a
dtype (ml_dtypes.bfloat16, numpy.float16), results have it; where it is a name that NumPy lacks, they are codes: uint8,
uint16. NumPy's arrays go out by DLPack as they are, so such codes as unsigned integers; typed(codes, "bfloat16") goes
out as bfloat16. Other threads of Python go on during a call. Shapes are written [rows, columns].

Common options: rounding ("nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd"),
seed and stream of stochastic rounding (the same ones give the same bits), sr_bits, saturate (overflow stops at the
largest number), generation (1, 2, 3), numerics ("chains=1,product=bf16", or a preset such as "trn3").

The shared object is $TRNMATH_LIBRARY, or libtrnmath_flat.so in this folder, or the system's. To build it here:

    cc -O2 -fPIC -shared -fvisibility=hidden -fopenmp -I../../../.. ../../ext/trnmath_flat.c -o libtrnmath_flat.so -lm

SPDX-License-Identifier: MIT
"""
from . import plots
from ._arrays import Array, Format
from ._chips import Cost, Redistribution, collective, collective_cost, redistribute_cost
from ._core import activation, convert, matmul, tolerance
from ._dlpack import Typed, typed
from ._facts import (Spec, activations, algorithms, alternatives, collectives, engine_rules, engines, explain,
                     format_of, formats, generations, instructions, presets, roundings, spec, systems)
from ._library import Error, Rounding, __version__, isa
from ._plans import Model, Plan, assumptions, job_fields, model_fields, model_of, plan, plans
from ._small import (mx_dequantize, mx_from_sbuf, mx_fp4_to_fp8, mx_quantize, mx_to_sbuf, sparse_matmul, sparse_pack,
                     sparse_unpack)

__all__ = [
    "Array", "Cost", "Error", "Format", "Model", "Plan", "Redistribution", "Rounding", "Spec", "Typed",
    "__version__", "activation", "activations", "algorithms", "alternatives", "assumptions", "collective",
    "collective_cost", "collectives", "convert", "engine_rules", "engines", "explain", "format_of", "formats",
    "generations", "instructions", "isa", "job_fields", "matmul", "model_fields", "model_of", "mx_dequantize",
    "mx_from_sbuf", "mx_fp4_to_fp8", "mx_quantize", "mx_to_sbuf", "plan", "plans", "plots", "presets",
    "redistribute_cost", "roundings", "sparse_matmul", "sparse_pack", "sparse_unpack", "spec", "systems", "tolerance",
    "typed"
]
