"""What there is: formats, systems, instructions and the rest, as rows of the library's own tables.

Rows are dicts. Units stand in their keys (bytes, flops_per_s: SI, GB is 1e9), or under "unit". SPDX-License-Identifier:
MIT
"""
from __future__ import annotations

from typing import Any, TypedDict

from ._library import format_name, format_number, sheet, table, text

Row = dict[str, Any]


def formats() -> list[Row]:
    """Every number format: name, kind, bits of a code, bytes in an array, exponent and mantissa bits, bias, max,
    lowest, min_normal, min_subnormal, epsilon, has_infinity, has_nan, and the names of safetensors and OCP."""
    return table("formats")


def format_of(name: object) -> Row:
    """The row of one format, by any of its spellings or a dtype: "bf16", "float8_e4m3", "F8_E4M3" (which is
    float8_e4m3fn), numpy.float16. Error: it is none."""
    spelled = format_name(format_number(name))
    return next(row for row in table("formats") if row["name"] == spelled)


def generations() -> list[Row]:
    """Trainium 1, 2 and 3: a chip's cores, HBM, SBUF and PSUM in bytes, published flop/s in BF16 and FP8."""
    return table("generations")


def systems() -> list[Row]:
    """Every system, from one chip to 400,000: name, title, chip, servers, chips, cores, HBM in bytes and bytes/s, one
    chip's NeuronLink in bytes/s one way, EFA in bit/s, published BF16 flop/s."""
    return table("systems")


class Spec(TypedDict):
    """A system's numbers. tflops, sparse_tflops: the published rate of the whole system by format, 1e12 flop/s (int8:
    op/s); fields: every number with level, owner, unit, and where it is known from."""
    name: str
    chips: int
    tflops: dict[str, float]
    sparse_tflops: dict[str, float]
    totals: dict[str, float]
    fields: list[Row]


def spec(system: str = "trn2.48xlarge") -> Spec:
    """All that is published of a system: its rates by format, its totals (HBM, NeuronLink, EFA, host; the unit stands
    in the name), and every number of its chips, servers and cores with the page that it stands on. Error: there is no
    such system."""
    fields, rates = table("spec", system), table("rates", system)
    totals = {row["field"]: row["value"] for row in fields if row["level"] == "total"}
    return {"name": system, "chips": int(totals["chips"]), "tflops": {row["format"]: row["tflops"] for row in rates},
            "sparse_tflops": {row["format"]: row["sparse_tflops"] for row in rates if row["sparse_tflops"] is not None},
            "totals": totals, "fields": fields}


def alternatives() -> list[Row]:
    """Every contradiction between sources: the field, the value and source that trnmath holds, the other value and its
    source, and why."""
    return table("alternatives")


def instructions() -> list[Row]:
    """Every call of nki.isa (NKI 0.6.0): name, arguments with their defaults, engine, generations ("1 2 3"), and what
    is known of its numerics and its cost (d documented, m measured, a assumed)."""
    return table("instructions")


def engine_rules() -> list[Row]:
    """What instructions of Vector, Scalar and GpSimd cost: cycles per element of a partition, fixed and least cycles,
    speed-ups, and the source."""
    return table("rules")


def activations() -> list[Row]:
    """The Scalar engine's functions: name, formula, the range where the table holds, what is outside, and the
    source."""
    return table("activations")


def presets() -> list[Row]:
    """Names that `numerics` takes: each sets fields, and has a source."""
    return table("presets")


def _names(of: str) -> list[str]:
    return [row["name"] for row in table(of)]


def collectives() -> list[str]:
    """What collective() and collective_cost() take as `op`."""
    return _names("collectives")


def algorithms() -> list[str]:
    """What they take as `algorithm`."""
    return _names("algorithms")


def roundings() -> list[str]:
    """What functions take as `rounding`."""
    return _names("roundings")


def engines() -> list[str]:
    """The engines of a core."""
    return _names("engines")


def explain(numerics: str = "") -> list[str]:
    """What is assumed of the engines, and why: a text for each field of the numerics, with its value here, its default,
    the alternatives, and the source. Error: the text sets what does not exist."""
    return sheet("explain", text(numerics))
