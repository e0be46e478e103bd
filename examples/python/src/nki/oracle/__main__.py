"""python -m nki.oracle: the program. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import argparse
import json
import os
import socket
import socketserver
import sys
from collections.abc import Sequence
from typing import Any

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _alone() -> None:
    """Each process works in one thread: there are as many as processors. Libraries read this as they are loaded."""
    if any(os.environ.get(name) != "1" for name in _ONE_THREAD):
        os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
        os.execv(sys.executable, [sys.executable, "-m", "nki.oracle", *sys.argv[1:]])


def _worker(no_sandbox: bool) -> int:
    from . import program, sandbox, seccomp
    from .answers import Oracle, refused
    try:
        oracle = Oracle(sandbox.Sandbox(program.WORKS, program.PRELOADED, no_sandbox))
    except seccomp.Unsafe as trouble:
        for line in sys.stdin.buffer:
            print(json.dumps(refused(f"{trouble}; --no-sandbox runs programs without it", "oracle")), flush=True)
        return 1
    program.preload()
    for line in sys.stdin.buffer:
        try:
            said = oracle.answer(json.loads(line))
        except Exception as trouble:  # never without an answer
            said = refused(f"{type(trouble).__name__}: {trouble}", "oracle")
        print(json.dumps(said, allow_nan=False), flush=True)
    return 0


class _Client(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        from . import service

        def write(line: str) -> None:
            try:
                self.wfile.write(line.encode())
            except OSError:
                pass  # the client has gone; the others have not
        service.serve(service.lines_of(self.rfile), write, self.server.pool)  # type: ignore[attr-defined]


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    pool: Any = None


def _listen(path: str, pool: Any) -> int:
    if os.path.exists(path):
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(path)
            print(f"oracle: {path} is answered by another", file=sys.stderr)
            return 2
        except ConnectionRefusedError:
            os.unlink(path)  # of one that has ended
        except OSError as trouble:
            print(f"oracle: {path}: {trouble.strerror}", file=sys.stderr)
            return 2
    before = os.umask(0o077)
    try:
        server = _Server(path, _Client)
    except OSError as trouble:
        print(f"oracle: {path}: {trouble.strerror or trouble}", file=sys.stderr)
        return 2
    finally:
        os.umask(before)
    server.pool = pool
    try:
        print(f"oracle: listening on {path}", file=sys.stderr, flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        os.unlink(path)
    return 0


# ---- for a person ----

def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _argument(text: str) -> Any:
    """128x512:bfloat16, a file.npy, or a value."""
    shape, _, dtype = text.partition(":")
    sizes = shape.split("x")
    if all(s.isdecimal() for s in sizes) and (len(sizes) > 1 or dtype):
        return {"shape": [int(s) for s in sizes]} | ({"dtype": dtype} if dtype else {})
    return {"npy": text} if text.endswith(".npy") else _literal(text)


def _person(said: Any, pool: Any) -> int:
    request: dict[str, Any] = {"file": said.file, "arguments": [_argument(a) for a in said.arguments]}
    request |= {k: v for k, v in (("entry", said.entry), ("generation", _literal(said.generation)), ("lnc", said.lnc),
                                  ("precision", said.precision)) if v is not None}
    if said.reference:
        path, _, entry = said.reference.partition(":")
        request["reference"] = {"file": path} | ({"entry": entry} if entry else {})
    answer = pool.asked(json.dumps(request).encode())
    print(_sentences(answer))
    return 0 if answer["right"] else 1 if answer["legal"] is not None else 2


_VERDICTS = {True: "legal and right", False: "legal, and wrong", None: "legal; whether it is right is not known"}


def _sentences(answer: dict[str, Any]) -> str:
    if "error" in answer:
        e = answer["error"]
        said = "not legal" if answer["legal"] is False else f"no answer ({e.get('of', 'oracle')})"
        return f"{said}: {e['sentence']}"
    lines = [_VERDICTS[answer["right"]]]
    lines += [answer["why"]] if "why" in answer else []
    if "distance" in answer:
        known = {name: value for name, value in answer["distance"].items() if value is not None}
        lines.append(", ".join(f"{name} {value:.3g}" for name, value in known.items()))
    if "where" in answer:
        w = answer["where"]
        lines.append(f"element {tuple(w['index'])} is {w['got']}, the reference's {w['want']}"
                     + (f" ({w['file']}, line {w['line']}, {w['instruction']})" if w.get("line") else ""))
    lines.append(f"{answer['time_us']:.2f} us, at least {answer['bound_us']:.2f}; limited by {answer['limited_by']}")
    return "\n".join(lines + ["  " + one for one in answer.get("suggest", [])])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nki.oracle", description=(
        "Is a kernel legal, is it right, how far off and how slow? Reads a JSON request a line and answers one a line; "
        "schema.json beside the program says what is in them. Status 0: all requests were answered; with FILE 0: "
        "right, 1: not, 2: it was not asked well."))
    parser.add_argument("file", nargs="?", metavar="FILE.py", help="a kernel, for a person to read the answer")
    parser.add_argument("entry", nargs="?", metavar="ENTRY", help="its function")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="128x512, 128x512:bfloat16, a.npy, 1e-5")
    parser.add_argument("--reference", metavar="FILE.py[:ENTRY]", help="what is right, in NumPy")
    parser.add_argument("--generation", default="2", metavar="1|2|3", help="of Trainium (2)")
    parser.add_argument("--lnc", type=int, help="programs: kernel[LNC]")
    parser.add_argument("--precision", help="the narrowest format that the kernel may cast to")
    parser.add_argument("--listen", metavar="SOCKET", help="answer many clients on a Unix socket")
    parser.add_argument("--mcp", action="store_true", help="the Model Context Protocol on standard input and output")
    parser.add_argument("--schema", action="store_true", help="print the schema of requests and answers")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="processes")
    parser.add_argument("--no-sandbox", action="store_true", help="where there is no seccomp: trust the programs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    said = _parser().parse_args(arguments)
    if said.schema:
        from .schema import schema
        print(json.dumps(schema(), indent=2))
        return 0
    if said.workers < 1:
        print(f"oracle: --workers is {said.workers}, at least 1 is needed", file=sys.stderr)
        return 2
    _alone()
    if said.worker:
        return _worker(said.no_sandbox)
    from . import service
    pool = service.Pool(1 if said.file else said.workers, ["--no-sandbox"] if said.no_sandbox else [])
    try:
        if said.file:
            return _person(said, pool)
        if said.listen:
            return _listen(said.listen, pool)
        if said.mcp:
            from . import mcp
            return mcp.serve(pool)
        service.serve(service.lines_of(sys.stdin.buffer), _out, pool)
        return 0
    finally:
        pool.end()


def _out(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
