"""MMA-Sim's model of Hopper's tensor cores on the operands of Trainium's dot products: how far the two orders differ.

PYTHONPATH=MMA-SIM python3 check.py --with with/mma_sim_peer.py FOLDER

Not a fault of either: Hopper adds 16 products of float16 at once, cut at 25 bits below the largest, Trainium one after
another in four chains. It needs PyTorch; a release without FP8 will do.
"""
import numpy as np
import torch
from values import floats

if not hasattr(torch, "uint32"):
    torch.uint32 = torch.int32  # it makes a NaN of 31 ones
for name in ("float8_e8m0fnu", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"):
    if not hasattr(torch, name):  # keys of a table that is not asked for them
        setattr(torch, name, name)

from mmasim.simulator.arithmetic import nv_fused_dot_add  # noqa: E402

TYPES = {"float16": (torch.float16, 16), "bfloat16": (torch.bfloat16, 16), "tfloat32": (torch.float32, 8)}


def tensor(codes, kind):
    if kind == torch.float32:
        return torch.from_numpy(floats(codes).copy())
    return torch.from_numpy(codes.astype(np.uint16).view(np.int16)).view(kind)


def one(a, b, c, kind, step):
    total = torch.tensor(c, dtype=torch.float32)
    for first in range(0, len(a), step):
        total = nv_fused_dot_add(a[first:first + step], b[first:first + step], total, n_fractional_bits=25,
                                 output_type="f32")
        if not isinstance(total, torch.Tensor):
            total = torch.tensor(total, dtype=torch.float32)
    return float(total)


def dot(file, a, b, c=None, **scales):
    if file.head["a"] not in TYPES or file.head["psum"] != "float32":
        return None
    kind, step = TYPES[file.head["a"]]
    start = floats(c) if c is not None else np.zeros(len(a), np.float32)
    found = [one(tensor(x, kind), tensor(y, kind), float(s), kind, step) for x, y, s in zip(a, b, start)]
    return np.array(found, np.float32).view(np.uint32)
