"""One request to one answer: the reference and the kernel, each in a sandbox, and the verdict, outside of any.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import hashlib
import json
import math
import time
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Given
from . import inputs, judge
from .sandbox import Sandbox, Stopped
from .schema import VERSION, Malformed
from .judge import Result, Verdict

_SECONDS, _BYTES = 20.0, 2 << 30
_RANKS = "roundings are followed on one rank alone"
_KEPT = 1 << 28  # bytes of references' results
_PER_RESULT = 6  # arrays that program.kernel sends for each

Answer = dict[str, Any]


class Refused(Exception):
    """The error of an answer, of the kernel or of its reference."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["sentence"])
        self.error = error


def refused(sentence: str, of: str, **more: Any) -> Answer:
    """An answer that is an error."""
    return {"version": VERSION, "legal": None, "right": None, "error": {"sentence": sentence, "of": of, **more}}


class Oracle:
    """answer(request), of requests that the schema has passed and whose files are read (service.read). An answer is
    lasting unless something was stopped for its time: that might end another time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.late = sandbox, False
        self.references: OrderedDict[str, tuple[list[str], list[NDArray[Any]]]] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> Answer:
        began, self.late = time.monotonic(), False
        try:
            arguments = inputs.made(request.get("arguments", []))
            several = "variants" in request
            made = self._several(request, arguments) if several else self._one(request, request, arguments)
        except Malformed as trouble:
            made = refused(str(trouble), "request")
        except Refused as trouble:
            made = refused("", "") | {"error": trouble.error}
        return made | {"seconds": round(time.monotonic() - began, 4), "sandbox": self.sandbox.layers,
                       "lasting": not self.late}

    def _several(self, request: dict[str, Any], arguments: list[Any]) -> Answer:
        """Variants of a kernel, ranked; the reference runs once."""
        answers: list[Answer] = []
        for n, said in enumerate(request["variants"]):
            one = self._one(said, request, arguments)
            answers.append({"id": n, "name": said.get("called", str(n))} | one)
        right = sorted((float(a["time_us"]), n) for n, a in enumerate(answers) if a["right"])
        return {"version": VERSION, "legal": any(a["legal"] for a in answers), "right": bool(right),
                "variants": answers, "ranking": [answers[n]["name"] for _, n in right]}

    def _run(self, of: str, arguments: tuple[Any, ...], request: dict[str, Any],
             name: str) -> tuple[dict[str, Any], list[Any]]:
        limits = request.get("limits", {})
        try:
            header, arrays = self.sandbox.run(of, arguments, limits.get("seconds", _SECONDS),
                                              limits.get("bytes", _BYTES))
        except Stopped as trouble:
            self.late = self.late or trouble.late
            raise Refused({"sentence": f"the {of} was stopped: {trouble}", "of": "limits" if trouble.late else of,
                           "file": name}) from None
        if "error" in header:
            raise Refused(header["error"])
        return header, arrays

    # ---- the reference ----

    def _reference(self, request: dict[str, Any], arguments: list[Any]) -> tuple[list[str], list[NDArray[Any]]]:
        said = request["reference"]
        key = hashlib.sha256(json.dumps([said, request["arguments"], request.get("files")]).encode()).hexdigest()
        if key in self.references:
            self.references.move_to_end(key)
            return self.references[key]
        ways = [[inputs.for_reference(a, wide) for a in arguments] for wide in (True, False)]
        header, arrays = self._run("reference", (said, ways), request, said["name"])
        self.references[key] = header["formats"], arrays
        while sum(a.nbytes for _, kept in self.references.values() for a in kept) > _KEPT and len(self.references) > 1:
            self.references.popitem(last=False)
        return header["formats"], arrays

    # ---- a kernel ----

    def _kernel(self, said: dict[str, Any], request: dict[str, Any], arguments: list[Any], asked: str | None,
                how: str) -> tuple[dict[str, Any], list[Any]]:
        given = {name: request[name] for name in ("generation", "lnc", "grid", "ranks", "trace") if name in request}
        text = {name: said[name] for name in ("source", "name", "entry") if name in said}
        return self._run("kernel", (text, inputs.packed(arguments), given, asked, how), request, said["name"])

    def _ran(self, said: dict[str, Any], request: dict[str, Any], arguments: list[Any], asked: str | None,
             plain: str) -> tuple[dict[str, Any], list[Any], str]:
        """Followed, or plainly where there is a reason for that; the reason may be that following it took too long."""
        if not plain:
            try:
                return (*self._kernel(said, request, arguments, asked, "followed"), "")
            except Refused as trouble:
                if trouble.error["of"] != "limits":
                    raise
                plain = f"following its roundings stopped: {trouble.error['sentence'].partition(': ')[2]}"
        return (*self._kernel(said, request, arguments, asked, "plain"), plain)

    def _one(self, said: dict[str, Any], request: dict[str, Any], arguments: list[Any]) -> Answer:
        formats, wanted = self._reference(request, arguments) if "reference" in request else ([], None)
        asked = judge.asked(request.get("precision"), inputs.formats(arguments), formats)
        plain = "there is no reference" if wanted is None else _RANKS if "ranks" in request else ""
        try:
            header, arrays, plain = self._ran(said, request, arguments, asked, plain)
        except Refused as trouble:
            legal = False if trouble.error["of"] == "kernel" else None
            return {"version": VERSION, "legal": legal, "right": legal, "error": trouble.error}
        answer: Answer = {"version": VERSION, "legal": True, "right": None}
        answer |= {name: header[name] for name in ("time_us", "bound_us", "limited_by", "engines")}
        if wanted is None or plain:
            return answer | _beside(arrays, wanted, plain) | {"suggest": header["waits"]}
        return answer | self._judged(said, request, arguments, header, arrays, formats, wanted, asked)

    def _judged(self, said: dict[str, Any], request: dict[str, Any], arguments: list[Any], header: dict[str, Any],
                arrays: list[Any], formats: list[str], wanted: list[NDArray[Any]], asked: str | None) -> Answer:
        results = [Result._make((*arrays[n * _PER_RESULT:(n + 1) * _PER_RESULT], name))
                   for n, name in enumerate(header["formats"])]
        if len(results) != len(wanted):
            return {"right": False, "why": f"the kernel has {len(results)} results, the reference {len(wanted)}"}
        verdicts = [judge.judged(*three, asked) for three in zip(results, wanted, formats)]
        n = _worst(verdicts)
        verdict = verdicts[n]
        answer: Answer = {"right": verdict.right, "distance": _over_all(verdicts), "suggest": header["waits"]}
        if verdict.right is None:
            answer["why"] = f"{verdict.why}: no rule follows {', '.join(header['unknown'])}"
        elif not verdict.right:
            answer["why"] = verdict.why
            looks = judge.likeness(results[n], wanted[n], [np.asarray(a.numpy(), np.float64) for a in arguments
                                                           if isinstance(a, Given)])
            answer["suggest"] = looks + _cure(verdict, header, asked) + header["waits"]
        if verdict.at is not None and not verdict.right:
            answer["where"] = self._where(n, verdict, results[n], wanted[n], header) | self._brought(
                n, verdict, said, request, arguments, asked, header)
        return answer

    def _where(self, n: int, verdict: Verdict, result: Result, want: NDArray[Any], header: dict[str, Any]) -> Answer:
        assert verdict.at is not None
        shaped, at = want.reshape(result.got.shape), verdict.at
        place = header["seen"][int(result.writer[at])] if header["seen"] else ("", 0, "")
        return {"result": n, "index": list(at), "got": _plain(result.got[at]), "want": _plain(shaped[at]),
                "exact": _plain(result.exact[at]), "file": place[0], "line": place[1], "instruction": place[2]}

    def _brought(self, n: int, verdict: Verdict, said: dict[str, Any], request: dict[str, Any], arguments: list[Any],
                 asked: str | None, header: dict[str, Any]) -> Answer:
        """The place that brings most of the error: a cast, or by a second run that tells places apart; of another
        formula nobody can say, and the place is the one that wrote the element."""
        if verdict.kind == "narrow":
            file, line, name = header["casts"][0][0]
            return {"file": file, "line": line, "instruction": name}
        if verdict.kind != "far":
            return {}
        more, arrays = self._kernel(said, request, arguments, asked, "places")
        variance = arrays[(_PER_RESULT + 1) * n + _PER_RESULT][(slice(None),) + (verdict.at or ())]
        if not variance.sum() > 0:
            return {}
        file, line, name = more["labels"][int(variance.argmax())]
        share = round(float(variance.max() / variance.sum()), 4)
        return {"file": file, "line": line, "instruction": name, "share": share}


def _cure(verdict: Verdict, header: dict[str, Any], asked: str | None) -> list[str]:
    if verdict.kind != "narrow":
        return []
    casts = sorted({(file, line, to) for (file, line, _), to in header["casts"]})
    return [f"{file}, line {line}, casts to {to}: keep {asked}, or ask with \"precision\": \"{to}\""
            for file, line, to in casts[:3]]


def _worst(verdicts: list[Verdict]) -> int:
    """A wrong one, or else one that is not known, or else the one nearest to its bound."""
    return max(range(len(verdicts)), key=lambda n: (verdicts[n].right is False, verdicts[n].right is None,
                                                    verdicts[n].distance.get("of_bound") or 0))


def _over_all(verdicts: list[Verdict]) -> dict[str, float | None]:
    """Of all results the largest."""
    most: dict[str, float | None] = {}
    for verdict in verdicts:
        for name, value in verdict.distance.items():
            before = most.get(name, 0.0)
            most[name] = None if value is None or before is None else max(value, before)
    return most


def _beside(arrays: list[Any], wanted: list[NDArray[Any]] | None, why: str) -> Answer:
    """Where nothing was followed only the distance is known; equal is right."""
    if wanted is None:
        return {"why": why}
    if not arrays:
        return {"why": f"{why}, and the kernel returns nothing"}
    if [a.size for a in arrays] != [w.size for w in wanted]:
        return {"right": False,
                "why": f"there are {len(arrays)} results, and {len(wanted)} of the reference, or of other sizes"}
    got, want = (np.concatenate([np.ravel(x) for x in of]) for of in (arrays, wanted))
    if np.array_equal(got, want):
        return {"right": True, "distance": {"rel_l2": 0.0}}
    relative = float(np.linalg.norm(got - want)) / max(float(np.linalg.norm(want)), 5e-324)
    return {"distance": {"rel_l2": relative if math.isfinite(relative) else None}, "why": why}


def _plain(x: Any) -> float | str:
    number = float(x)
    return number if math.isfinite(number) else str(number)
