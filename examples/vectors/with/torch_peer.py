"""PyTorch on a CPU as what check.py checks: casts of float16 and bfloat16, operators, functions.

python3 check.py --with with/torch_peer.py FOLDER
"""
import numpy as np
import torch
from values import floats

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
OPERATORS = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "maximum": torch.maximum,
             "minimum": torch.minimum, "equal": torch.eq, "not_equal": torch.ne, "greater": torch.gt,
             "greater_equal": torch.ge, "less": torch.lt, "less_equal": torch.le, "relu": torch.relu,
             "reciprocal": torch.reciprocal, "square": torch.square, "abs": torch.abs}


def single(words):
    return torch.from_numpy(floats(words).copy())


def encode(file, x, random=None):
    to = TYPES.get(file.head["to"])
    if to is None or file.head["rounding"] != "nearest_even" or file.head["overflow"] != "default":
        return None
    return single(x).to(to).view(torch.int16).numpy().view(np.uint16)


def decode(file, code):
    to = TYPES.get(file.head["from"])
    if to is None:
        return None
    return torch.from_numpy(code.astype(np.uint16).view(np.int16)).view(to).to(torch.float32).numpy().view(np.uint32)


def alu(file, a, b=None):
    function = OPERATORS.get(file.head["operator"])
    if function is None:
        return None
    return function(*(single(part) for part in (a, b) if part is not None)).to(torch.float32).numpy().view(np.uint32)
