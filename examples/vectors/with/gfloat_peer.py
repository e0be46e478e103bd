"""Graphcore's gfloat as what check.py checks: casts in three roundings, with given random bits, and blocks of MX.

PYTHONPATH=GFLOAT/src python3 check.py --with with/gfloat_peer.py FOLDER
"""
import sys
import types

import numpy as np
from values import floats

if "array_api_compat" not in sys.modules:  # gfloat asks it for NumPy, in one place that matters here
    try:
        import array_api_compat  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("array_api_compat")
        stand_in.array_namespace = lambda *arrays: np
        stand_in.is_numpy_array = stand_in.is_torch_array = lambda array: isinstance(array, np.ndarray)
        sys.modules["array_api_compat"] = stand_in

import gfloat  # noqa: E402
import gfloat.formats as known  # noqa: E402

FORMATS = {
    "bfloat16": known.format_info_bfloat16, "float16": known.format_info_binary16,
    "float8_e4m3fn": known.format_info_ocp_e4m3, "float8_e5m2": known.format_info_ocp_e5m2,
    "float6_e2m3fn": known.format_info_ocp_e2m3, "float6_e3m2fn": known.format_info_ocp_e3m2,
    "float4_e2m1fn": known.format_info_ocp_e2m1, "float8_e8m0fnu": known.format_info_ocp_e8m0,
}
BLOCKS = {"float8_e4m3fn": known.format_info_mxfp8_e4m3, "float8_e5m2": known.format_info_mxfp8_e5m2,
          "float6_e2m3fn": known.format_info_mxfp6_e2m3, "float6_e3m2fn": known.format_info_mxfp6_e3m2,
          "float4_e2m1fn": known.format_info_mxfp4_e2m1}
MODES = {"nearest_even": gfloat.RoundMode.TiesToEven, "toward_zero": gfloat.RoundMode.TowardZero,
         "stochastic": gfloat.RoundMode.StochasticFastest}


def encode(file, x, random=None):
    info, mode = FORMATS.get(file.head["to"]), MODES[file.head["rounding"]]
    if info is None:
        return None
    saturate = file.head["overflow"] == "saturate"
    found, refused = [], []
    for i, value in enumerate(floats(x).astype(np.float64)):
        bits = {} if random is None else {"srbits": int(random[i]), "srnumbits": 32}
        try:
            rounded = gfloat.round_float(info, float(value), mode, saturate or info.num_nans == 0, **bits)
            found.append(gfloat.encode_float(info, rounded))
            refused.append(False)
        except ValueError:  # it refuses a NaN for a format that has none
            found.append(0)
            refused.append(True)
    return np.ma.masked_array(np.array(found, np.uint64), refused)


def decode(file, code):
    info = FORMATS.get(file.head["from"])
    if info is None or info.k > 8:
        return None
    with np.errstate(invalid="ignore"):
        values = np.array([gfloat.decode_float(info, int(one)).fval for one in code], np.float64).astype(np.float32)
    return values.view(np.uint32)


def mx_quantize(file, x):
    info = BLOCKS.get(file.head["to"])
    if info is None or file.head["scale_rule"] != "ocp_floor":
        return None
    found, refused = [], []
    for block in floats(x).reshape(x.shape):
        try:
            with np.errstate(all="ignore"):
                scale = gfloat.compute_scale_amax(info.etype.emax, block.astype(np.float64))
                found.append(list(gfloat.encode_block(info, scale, block.astype(np.float64) / scale)))
            refused.append(False)
        except ValueError:
            found.append([0] * 33)
            refused.append(True)
    codes = np.ma.masked_array(np.array(found, np.uint64))
    codes[np.array(refused)] = np.ma.masked
    return codes
