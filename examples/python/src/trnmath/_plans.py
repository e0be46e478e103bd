"""How to spread a transformer over the chips of a system: all ways, which are possible, which is fastest.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._library import I64, Error, rows, sheet, table, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

Model = dict[str, Any]
Plan = dict[str, Any]

def model_of(config: str | os.PathLike[str] | Mapping[str, Any], job: str = "train") -> tuple[Model, dict[str, Any]]:
    """A config.json of Hugging Face (a path, or its dict) as (model, formats): plan(model, system, **formats, ...). The
    families are shardplan's; formats are what quantization_config says of the weights, empty where it says nothing.
    job: "decode" takes the decoder of a model that is two. Error: no such file or family, a field that is not known and
    may change sizes, or a library without cJSON (wheels have none; Debian's package and this repository's builds
    do)."""
    given: Any = config
    if hasattr(given, "keys"):
        said, name = json.dumps(dict(given), default=str), "the config"
    elif not isinstance(given, (str, os.PathLike)):
        raise Error(f"config: expected a path or a dict, not {type(given).__name__}")
    else:
        name = str(os.fspath(given))
        try:
            said = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as trouble:
            reason = getattr(trouble, "strerror", None) or "it is no text"
            raise Error(f"{name}: it cannot be read ({reason})") from None
    row = rows(sheet("config", text(said), text(name), I64(job == "decode")))[0]
    formats = {key: value for key, value in row.pop("formats").items() if value}
    return {key: value for key, value in row.items() if value}, formats


def model_fields() -> list[str]:
    """The numbers that a model may have; what is not given has its usual value. (trnmath/plan/plan_model.h tells what
    each means: layers, hidden, heads, kv_heads, intermediate, vocab, experts, experts_per_token, ...)"""
    return [row["name"] for row in table("model_fields")]


def job_fields() -> list[str]:
    """What plans() and plan() take beside the model and the system: job ("train", "prefill", "decode"), batch and
    sequence (of the whole machine), degrees (tp, cp, ep, dp, pp; given ones are not searched), formats (weights,
    activations, kv, ...), and settings. (trnmath/plan/plan_args.h)"""
    return [row["name"] for row in table("job_fields")]


def assumptions() -> list[dict[str, Any]]:
    """What the planner assumes where nothing is published: name, value, unit, why. Each may be given to plans()."""
    return table("assumptions")


def _setting(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = ":".join(str(whole(name, part)) for part in value)
    elif isinstance(value, bool):
        value = int(value)
    elif not isinstance(value, (int, float, str)):
        raise Error(f"{name}: expected a number or a name, not {type(value).__name__}")
    if any(c in f"{name}{value}" for c in ",=\0"):
        raise Error(f"{name}: {value!r} is no value")
    return f"{name}={value}"


def plans(model: Mapping[str, Any], system: str = "trn2.48xlarge", most: int = 20, **job: Any) -> list[Plan]:
    """The best `most` ways to run a job on all chips of a system, the fastest first, those that cannot be last. model:
    model_fields() by name: llama 3 8B is dict(layers=32, hidden=4096, heads=32, kv_heads=8, intermediate=14336,
    vocab=128256); model_of() reads a config.json. job: job_fields() and assumptions() by name.

    Of each plan: tp, cp, ep, dp, pp (chips); legal, and if it is not, why (a sentence); bound_s, time_s (ideal),
    expected_s with expected_low_s and expected_high_s: seconds of a step, a batch of prompts, or one token; ttft_s to
    the first token; tokens_per_s; mfu; bottleneck; memory (bytes on the fullest chip by part), memory_bytes and
    memory_capacity_bytes; time and expected (seconds by part: their sum less hidden plus contention is the time). All
    are results of a model, never measured. None stands where a plan has no such number. Error: a field that does not
    exist, or no such model."""
    count = whole("most", most)
    if not 0 < count <= 20000:
        raise Error(f"most is {count}, expected 1 to 20000")
    if not hasattr(model, "keys"):
        raise Error(f"model: expected a dict of numbers, not {type(model).__name__}")
    words = [",".join(_setting(name, value) for name, value in fields.items() if value is not None)
             for fields in (dict(model), job)]
    return rows(sheet("plans", text(system), text(words[0]), text(words[1]), I64(count), room=4096 * (count + 1)))


def plan(model: Mapping[str, Any], system: str = "trn2.48xlarge", **job: Any) -> Plan:
    """The best plan, as plans() has it; with all degrees given, that one. Error: there is none, with the reason of the
    first that was refused."""
    found = plans(model, system, 1, **job)
    if not found:
        raise Error(f"no degrees of this kind make up the chips of {system}")
    if not found[0]["legal"]:
        raise Error(f"no plan is possible; one of them: {found[0]['why']}")
    return found[0]
