"""The oracle for assistants: the Model Context Protocol (JSON-RPC 2.0, a message a line, standard input and output).

Two tools, with the requests of schema.json as arguments: check_kernel, rank_kernels. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .schema import schema
from .service import LONGEST, Pool, lines_of

_PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # the newest first
_PARSE, _INVALID, _METHOD, _PARAMS = -32700, -32600, -32601, -32602
_TOOLS = {
    "check_kernel": ("Is an NKI kernel for AWS Trainium legal, is it right beside a NumPy reference, how far off, how "
                     "long does it take, and which line is to blame? Runs it on a simulated NeuronCore, in a sandbox.",
                     [{"required": ["source"]}, {"required": ["file"]}], ("variants",)),
    "rank_kernels": ("The same of several variants of an NKI kernel: an answer for each, and the right ones ranked by "
                     "time.", [{"required": ["variants"]}], ("source", "file")),
}


class Wrong(Exception):
    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def _tool(name: str) -> dict[str, Any]:
    """As tools/list tells it: the schema, without what the other tool is for."""
    description, needed, without = _TOOLS[name]
    defs = dict(schema()["$defs"])
    request = defs.pop("request")
    del defs["answer"], defs["error"]
    members = {k: v for k, v in request["properties"].items() if k not in (*without, "id", "version")}
    return {"name": name, "description": description, "annotations": {"readOnlyHint": True, "openWorldHint": False},
            "inputSchema": {"type": "object", "properties": members, "anyOf": needed, "additionalProperties": False,
                            "$defs": defs}}


def _initialize(params: dict[str, Any], pool: Pool) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    about = {"name": "trnmath-oracle", "title": "trnmath: NKI kernels on a simulated Trainium", "version": "1"}
    return {"protocolVersion": asked if asked in _PROTOCOLS else _PROTOCOLS[0], "capabilities": {"tools": {}},
            "serverInfo": about}


def _list(params: dict[str, Any], pool: Pool) -> dict[str, Any]:
    return {"tools": [_tool(name) for name in _TOOLS]}


def _call(params: dict[str, Any], pool: Pool) -> dict[str, Any]:
    name, given = params.get("name"), params.get("arguments", {})
    if name not in _TOOLS:
        raise Wrong(_PARAMS, f"there is no tool {json.dumps(name)}; there are {', '.join(_TOOLS)}")
    if not isinstance(given, dict):
        raise Wrong(_PARAMS, "a tool's arguments are an object")
    answer = pool.asked(json.dumps({k: v for k, v in given.items() if k not in ("id", "version")}).encode())
    del answer["id"]
    return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer,
            "isError": answer["legal"] is None}


_METHODS = {"initialize": _initialize, "tools/list": _list, "tools/call": _call, "ping": lambda params, pool: {}}


def _answered(message: Any, pool: Pool) -> dict[str, Any] | None:
    """The response; None: a notification, or a response to what we never asked."""
    number = message.get("id") if isinstance(message, dict) else None
    try:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Wrong(_INVALID, "a message is an object of JSON-RPC 2.0")
        if "method" not in message or "id" not in message:
            return None
        method, params = message["method"], message.get("params", {})
        if not isinstance(method, str) or method not in _METHODS:
            raise Wrong(_METHOD, f"there is no method {json.dumps(method)}")
        if not isinstance(params, dict):
            raise Wrong(_PARAMS, "params are an object")
        return {"jsonrpc": "2.0", "id": number, "result": _METHODS[method](params, pool)}
    except Wrong as trouble:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": trouble.code, "message": str(trouble)}}


def _line(line: bytes, pool: Pool) -> str | None:
    try:
        message = json.loads(line.decode()) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": _PARSE, "message": "a line is no JSON"}})
    if isinstance(message, list) and message:  # a batch, as the protocol of 2025-03-26 has them
        several = [made for made in (_answered(m, pool) for m in message) if made is not None]
        return json.dumps(several) if several else None
    made = _answered(message, pool)
    return None if made is None else json.dumps(made, allow_nan=False)


def serve(pool: Pool) -> int:
    """Until standard input ends; messages are worked on at once, and answered as they come."""
    lock = threading.Lock()

    def tell(line: bytes) -> None:
        said = _line(line, pool)
        if said is not None:
            with lock:
                sys.stdout.write(said + "\n")
                sys.stdout.flush()
    with ThreadPoolExecutor(pool.size + 1) as at_once:
        for line in lines_of(sys.stdin.buffer):
            if line.strip():
                at_once.submit(tell, line)
    return 0
