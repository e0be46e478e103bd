"""Microsoft's microxcaling, the emulation that OCP's MX was tried with, as what check.py checks: elements and blocks.

PYTHONPATH=MICROXCALING python3 check.py --with with/microxcaling_peer.py FOLDER

It needs PyTorch. Its values become codes here; a scale cannot be seen in them, so that blocks are compared as values:
the scale of the vector is taken where it gives codes that stand for them.
"""
import numpy as np
import torch
from mx.elemwise_ops import _quantize_bfloat, _quantize_elemwise
from mx.mx_ops import _quantize_mx
from values import codes, floats

ELEMENTS = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "float6_e2m3fn": "fp6_e2m3",
            "float6_e3m2fn": "fp6_e3m2", "float4_e2m1fn": "fp4_e2m1", "float16": "float16"}
ROUNDINGS = {"nearest_even": "even", "toward_zero": "floor"}


def encode(file, x, random=None):
    name, rounding = file.head["to"], ROUNDINGS.get(file.head["rounding"])
    if rounding is None or (name not in ELEMENTS and name != "bfloat16"):
        return None
    saturate = file.head["overflow"] == "saturate"
    value = torch.from_numpy(floats(x).copy())
    if name == "bfloat16":
        if saturate:
            return None
        found = _quantize_bfloat(value, 16, round=rounding)
    else:
        found = _quantize_elemwise(value, ELEMENTS[name], round=rounding, saturate_normals=saturate)
    return codes(file.head, "to", found.numpy())


def mx_quantize(file, x):
    name = file.head["to"]
    if name not in ELEMENTS or file.head["scale_rule"] != "ocp_floor":
        return None
    value = torch.from_numpy(floats(x).reshape(x.shape).copy())
    found = _quantize_mx(value, 8, ELEMENTS[name], axes=[-1], block_size=32, round="even").numpy().astype(np.float64)
    scale = file.expected()[:, 0].astype(np.int64)
    with np.errstate(all="ignore"):
        code = np.ma.getdata(codes(file.head, "to", found * np.ldexp(1.0, 127 - scale)[:, None]))
    usual = np.isfinite(found).all(axis=1)
    scale = np.where(usual, scale, 0xff)
    return scale, np.where(usual[:, None], code, 0)
