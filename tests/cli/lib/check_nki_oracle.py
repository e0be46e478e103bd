"""python -m nki.oracle: verdicts of kernels that are right and that are wrong, hostile programs, requests that are none
(oracle_cases.py); answers in order, by the schema; clients, assistants, variants, the cache.

Level 1 takes a part of each kind, level 2 (TRN_TEST_LEVEL) all; run by hand with --table it prints how many verdicts were
wrong. Run by tests/cli/nki.sh.
"""
import collections
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import jsonschema
import numpy as np

import oracle_cases
from nki.oracle import schema

ALL = os.environ.get("TRN_TEST_LEVEL") == "2" or "--table" in sys.argv
COMMAND = [sys.executable, "-m", "nki.oracle"]
EXP = {"source": "import nki, nki.isa as nisa, nki.language as nl\n\n@nki.jit\ndef kernel(x):\n"
                 "    t, out = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)\n"
                 "    nisa.dma_copy(dst=t, src=x)\n    nisa.activation(dst=t, op=nl.exp, data=t)\n"
                 "    nisa.dma_copy(dst=out, src=t)\n    return out\n",
       "arguments": [{"shape": [128, 64]}], "reference": {"source": "import numpy as np\ndef f(x):\n    return np.exp(x)\n"}}


class Shared:
    """One program that all ask: it starts in a second."""

    program = None


def setUpModule():
    Shared.program = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def tearDownModule():
    out, err = Shared.program.communicate(timeout=60)
    assert (Shared.program.returncode, out, err) == (0, b"", b""), err.decode()[-2000:]


def line_of(request):
    return request if isinstance(request, bytes) else json.dumps(request).encode()


def parsed(line):
    return json.loads(line, parse_constant=lambda name: 1 / 0)


def answers(requests):
    """Of the shared program; it reads while it answers."""
    requests = [line_of(r) for r in requests]
    sender = threading.Thread(target=lambda: [Shared.program.stdin.write(r + b"\n") for r in requests] +
                              [Shared.program.stdin.flush()])
    sender.start()
    found = [parsed(Shared.program.stdout.readline()) for _ in requests]
    sender.join()
    return found


def alone(requests, *options):
    ran = subprocess.run([*COMMAND, "--workers", "1", *options], input=b"\n".join(map(line_of, requests)) + b"\n",
                         capture_output=True, timeout=900, check=False)
    assert not ran.returncode and not ran.stderr, ran.stderr.decode()[-2000:]
    return [parsed(line) for line in ran.stdout.splitlines()]


def some(cases, step):
    cases = list(cases)
    return cases if ALL else cases[::step]


class Verdicts(unittest.TestCase):
    def verdicts(self, cases, right):
        found = answers(cases)
        self.assertEqual([a["id"] for a in found], [c["id"] for c in cases])
        for answer in found:
            jsonschema.validate(answer, schema.schema()["$defs"]["answer"] | {"$defs": schema.schema()["$defs"]})
            with self.subTest(case=answer["id"]):
                self.assertIs(answer["right"], right, json.dumps(answer)[:900])
        return found

    def test_what_is_right_is_right(self):
        for answer in self.verdicts(some(oracle_cases.right(), 9), True):
            self.assertLess(answer["distance"]["of_bound"], 1.0)
            self.assertGreaterEqual(answer["time_us"], answer["bound_us"])
            self.assertIn("seccomp", answer["sandbox"])

    def test_what_is_wrong_is_wrong(self):
        for answer in self.verdicts(some(oracle_cases.wrong(), 13) + list(oracle_cases.wrong())[-2:], False):
            if answer["legal"]:
                self.assertEqual(len(answer["where"]["index"]), 2)
                self.assertGreater(answer["where"]["line"], 0)
            else:
                self.assertGreater(answer["error"].get("line", 1), 0)

    def test_what_is_wrong_is_described(self):
        names = {"softmax: zeros": "zero everywhere", "softmax: constant": "0.125 everywhere",
                 "swiglu: skipped tile": "[128:256", "scale_add: nearly": "1.0005 times",
                 "softmax: bfloat16": "casts to bfloat16: keep float32", "copied input": "argument 0"}
        found = {a["id"]: a for a in answers([c for c in oracle_cases.wrong() if c["id"] in names])}
        for name, words in names.items():
            self.assertIn(words, " ".join(found[name]["suggest"]), name)

    def test_hostile_programs_answer_and_the_next_request_is_as_ever(self):
        hostile = some(oracle_cases.hostile(), 6)
        good = oracle_cases.request("softmax", 50)
        other = [good | {"id": n, "arguments": oracle_cases.KERNELS["softmax"][2](50 + n)} for n in range(len(hostile))]
        found = answers([case for pair in zip(hostile, other) for case in pair])
        for attacked, case in zip(found[::2], hostile):
            with self.subTest(case=case["id"]):
                self.assertEqual(attacked["id"], case["id"])
                if case["id"] == "a lot of output":  # is dropped
                    self.assertTrue(attacked["right"])
                    continue
                self.assertIs(attacked["right"], None if "had not ended" in attacked["error"]["sentence"] else False)
                sentence = attacked["error"]["sentence"]
                self.assertTrue(sentence.isprintable() and len(sentence) <= 2000, sentence)
        self.assertEqual([a["right"] for a in found[1::2]], [True] * len(hostile))
        self.assertFalse(os.path.exists("/tmp/oracle-was-here"))

    def test_what_is_no_request_is_told_so(self):
        lines = oracle_cases.malformed()
        found = answers(lines)
        self.assertEqual(len(found), len(lines))
        for line, answer in zip(lines, found):
            with self.subTest(line=line[:100]):
                self.assertIsNot(answer["right"], True)
                sentence = answer["error"]["sentence"]
                self.assertTrue(sentence and sentence.isprintable())
                self.assertLess(len(sentence), 400)

    def test_the_schema_says_what_another_reader_of_it_says(self):
        rule = schema.schema()["$defs"]["request"] | {"$defs": schema.schema()["$defs"]}
        every = [json.dumps(r).encode() for r in [*oracle_cases.right(), *oracle_cases.hostile()]] + oracle_cases.MALFORMED
        for line in every:
            try:
                request = json.loads(line)
            except (ValueError, RecursionError):
                continue
            with self.subTest(line=line[:100]):
                valid = jsonschema.Draft202012Validator(rule).is_valid(request)
                try:
                    if not isinstance(request, dict):
                        raise schema.Malformed
                    schema.checked(request)
                    self.assertTrue(valid)
                except schema.Malformed:
                    self.assertFalse(valid)


class Requests(unittest.TestCase):
    def test_a_cast_may_be_asked_for(self):
        text = oracle_cases.PRELUDE.replace("WORK = nl.float32", "WORK = nl.bfloat16")
        case = oracle_cases.request("mlp", 3, text)
        refused, allowed = answers([case, case | {"precision": "bfloat16"}])
        self.assertEqual((refused["right"], allowed["right"]), (False, True))
        self.assertIn("cast to less than float32", refused["why"])
        self.assertEqual(refused["where"]["instruction"], "dma_copy")

    def test_programs_of_a_grid(self):
        text = """import nki, nki.isa as nisa, nki.language as nl
@nki.jit
def kernel(x):
    out, t, n = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.ndarray((128, 32), x.dtype), nl.program_id(0)
    nisa.dma_copy(dst=t, src=x[n * 128:(n + 1) * 128])
    nisa.activation(dst=t, op=nl.square, data=t)
    nisa.dma_copy(dst=out[n * 128:(n + 1) * 128], src=t)
    return out
"""
        case = {"source": text, "arguments": [{"shape": [1280, 32]}], "reference": {"source": "def f(x): return x * x"}}
        both, ten, alone = answers([case | {"lnc": 2, "arguments": [{"shape": [256, 32]}]}, case | {"grid": [10]}, case])
        self.assertEqual((both["right"], ten["right"], alone["legal"]), (True, True, False))

    def test_a_whole_number_that_is_off_by_one_is_wrong(self):
        text = """import nki, nki.isa as nisa, nki.language as nl
@nki.jit
def kernel(x):
    t, w = nl.ndarray(x.shape, nl.float32), nl.ndarray(x.shape, nl.int32)
    out = nl.ndarray(x.shape, nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=w, data=t, op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=1.0)
    nisa.dma_copy(dst=out, src=w)
    return out
"""
        case = {"source": text, "arguments": [{"shape": [128, 8], "distribution": "arange"}],
                "reference": {"source": "def f(x): return 3 * x + 1"}}
        same, other = answers([case, case | {"source": text.replace("operand1=1.0", "operand1=2.0")}])
        self.assertEqual((same["right"], other["right"]), (True, False))

    def test_a_kernel_that_writes_its_arguments(self):
        text = EXP["source"].replace("def kernel(x):", "def kernel(x, out):").replace(
            "t, out = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)",
            "t = nl.ndarray(x.shape, x.dtype)").replace("    return out\n", "")
        case = EXP | {"source": text, "arguments": [{"shape": [128, 64]}, {"shape": [128, 64], "distribution": "zeros"}],
                      "reference": {"source": "import numpy as np\ndef f(x, out):\n    return np.exp(x)\n"}}
        nothing = case | {"source": text.replace("dst=out, src=t", "dst=t, src=x")}
        wrote, wrong, none = answers([case, case | {"source": text.replace("nl.exp", "nl.tanh")}, nothing])
        self.assertEqual((wrote["right"], wrong["right"], none["legal"]), (True, False, False), none)
        self.assertIn("returns nothing", none["error"]["sentence"])

    def test_answers_are_remembered_by_what_is_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel, array = os.path.join(folder, "k.py"), os.path.join(folder, "a.npy")
            with open(kernel, "w", encoding="utf-8") as file:
                file.write(EXP["source"])
            np.save(array, np.ones((128, 16), np.float32))
            case = {"file": kernel, "arguments": [{"npy": array}], "reference": EXP["reference"]}
            first, again, other, refused = alone([case, case | {"id": 7},
                                                  case | {"arguments": [{"npy": array, "dtype": "bfloat16"}]},
                                                  case | {"arguments": [{"npy": kernel}]}])
        self.assertEqual((first["right"], again["right"], other["right"], refused["legal"]), (True, True, True, None))
        self.assertEqual((again["id"], "cached" in other), (7, False))
        self.assertEqual([first.get("cached"), again.get("cached")].count(True), 1)  # whichever came first

    def test_a_file_that_is_too_long_is_not_cut(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel = os.path.join(folder, "k.py")
            with open(kernel, "w", encoding="utf-8") as file:
                file.write(EXP["source"] + "#" * (1 << 20))
            answer = answers([{k: v for k, v in EXP.items() if k != "source"} | {"file": kernel}])[0]
        self.assertIn("at most 1048576 characters", answer["error"]["sentence"])

    def test_what_was_stopped_is_not_remembered(self):
        case = EXP | {"source": EXP["source"].replace("    return out", "    while True: pass"), "limits": {"seconds": 0.2}}
        for answer in answers([case, case]) + answers([case]):
            self.assertEqual((answer["right"], answer["error"]["of"], "cached" in answer), (None, "limits", False))

    def test_variants_are_ranked(self):
        slow = EXP["source"].replace("    nisa.activation", "    nisa.tensor_copy(dst=t, src=t)\n    nisa.activation")
        wrong = EXP["source"].replace("nl.exp", "nl.tanh")
        variants = [{"source": slow, "name": "slow"}, {"source": wrong, "name": "wrong"}, {"source": EXP["source"], "name": "quick"},
                    {"source": "def kernel(x): return x.numpy()", "name": "none"}]
        answer = answers([{k: v for k, v in EXP.items() if k != "source"} | {"variants": variants}])[0]
        self.assertEqual(answer["ranking"], ["quick", "slow"])
        self.assertEqual([v["right"] for v in answer["variants"]], [True, False, True, False])

    def test_a_trace_tells_shares_by_line(self):
        answer = answers([EXP | {"trace": True}])[0]
        self.assertEqual(answer["engines"]["ScalarE"]["lines"], [[7, 1.0]])
        self.assertEqual(sorted(line for line, _ in answer["engines"]["DMA"]["lines"]), [6, 8])

    def test_what_is_not_known_is_not_called_right(self):
        ranks = EXP | {"ranks": 2, "source": EXP["source"].replace("nl.exp", "nl.square"),
                       "reference": {"source": "def f(x): return [x * x * 1.0000001, x * x]"}}
        lacking = EXP | {"source": EXP["source"].replace(
            "nisa.activation(dst=t, op=nl.exp, data=t)",
            "nisa.tensor_scalar_cumulative(dst=t, src=t, op0=nl.multiply, op1=nl.add, imm0=1.0, imm1=0.0)"),
                         "reference": {"source": "def f(x): return x.cumsum(1)"}}
        for answer in answers([ranks, lacking, {k: v for k, v in EXP.items() if k != "reference"}]):
            self.assertEqual((answer["legal"], answer["right"]), (True, None))
            self.assertTrue(answer["why"])

    def test_of_codes_alone_any_precision_will_do(self):
        text = EXP["source"].replace("nl.ndarray(x.shape, x.dtype, buffer", "nl.ndarray(x.shape, nl.bfloat16, buffer").replace(
            "t, out = nl.ndarray(x.shape, x.dtype)", "t, out = nl.ndarray(x.shape, nl.float32)").replace("nl.exp", "nl.copy")
        case = EXP | {"source": text, "arguments": [{"shape": [128, 8], "dtype": "int32", "high": 5000}],
                      "reference": {"source": "def f(x): return x"}}
        codes, floats = answers([case, case | {"arguments": [{"shape": [128, 8], "scale": 1000}]}])
        self.assertEqual((codes["right"], floats["right"]), (True, False))

    def test_numbers_of_all_formats(self):
        cases = [EXP | {"id": dtype, "arguments": [{"shape": [128, 8], "dtype": dtype}],
                        "source": EXP["source"].replace("nl.exp", "nl.copy").replace(
                            "nisa.activation(dst=t, op=nl.copy, data=t)", "nisa.tensor_copy(dst=t, src=t)"),
                        "reference": {"source": "def f(x): return x"}}
                 for dtype in ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "int32", "uint8", "int8")]
        for answer in answers(cases):
            self.assertTrue(answer["right"], answer)


class Clients(unittest.TestCase):
    def test_a_socket_for_many(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with subprocess.Popen([*COMMAND, "--listen", path], stderr=subprocess.PIPE, text=True) as server:
                self.assertIn("listening", server.stderr.readline())
                self.assertEqual(os.stat(path).st_mode & 0o077, 0)
                second = subprocess.run([*COMMAND, "--listen", path], capture_output=True, text=True, check=False)
                self.assertEqual((second.returncode, second.stderr.count("\n")), (2, 1))
                clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
                for n, client in enumerate(clients):
                    client.connect(path)
                    client.sendall(json.dumps(EXP | {"id": n}).encode() + b"\n{}\n")
                for n, client in enumerate(clients):
                    with client, client.makefile("r", encoding="utf-8") as said:
                        first, other = json.loads(said.readline()), json.loads(said.readline())
                        self.assertEqual((first["id"], first["right"], other["legal"]), (n, True, None))
                server.terminate()

    def test_assistants(self):
        def call(number, method, **params):
            return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        given = {k: v for k, v in EXP.items()}
        said = [call(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}),
                {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2, "tools/list"),
                call(3, "tools/call", name="check_kernel", arguments=given), call(4, "tools/call", name="other", arguments={}),
                call("five", "tools/call", name="rank_kernels", arguments={"variants": 3}), call(6, "ping"), call(7, "nothing"),
                {"id": 8}, "text"]
        found = {a["id"]: a for a in alone(said + [b"{"], "--mcp")}
        self.assertEqual(found[1]["result"]["protocolVersion"], "2025-06-18")
        for tool in found[2]["result"]["tools"]:
            jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
            jsonschema.validate(given if tool["name"] == "check_kernel" else {"variants": [{"source": "x"}]}, tool["inputSchema"])
        self.assertTrue(found[3]["result"]["structuredContent"]["right"])
        self.assertEqual(json.loads(found[3]["result"]["content"][0]["text"]), found[3]["result"]["structuredContent"])
        self.assertTrue(found["five"]["result"]["isError"])
        self.assertEqual([found[n]["error"]["code"] for n in (4, 7, 8)], [-32602, -32601, -32600])
        self.assertEqual(found[6]["result"], {})
        self.assertIn(None, found)

    def test_a_person(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("k.py", EXP["source"]), ("r.py", EXP["reference"]["source"])):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)

            def person(*more):
                return subprocess.run([*COMMAND, "k.py", *more], cwd=folder, capture_output=True, text=True, check=False)
            right = person("kernel", "128x64", "--reference", "r.py:f")
            self.assertEqual((right.returncode, right.stdout.split("\n")[0]), (0, "legal and right"), right.stderr)
            self.assertEqual(person("kernel", "128x64:float99").returncode, 2)
            self.assertIn("partitions", person("kernel", "129x64").stdout)
            self.assertEqual(person("nothing", "128x64").returncode, 2)


def table():
    """All requests of all kinds, and how many verdicts were wrong."""
    kinds = {"right": ([*oracle_cases.right()], {True}), "wrong": ([*oracle_cases.wrong()], {False}),
             "hostile": ([*oracle_cases.hostile()], {False, None}), "malformed": (oracle_cases.malformed(), {False, None})}
    for kind, (cases, good) in kinds.items():
        found = answers(cases)
        bad = [a["id"] for a in found if a["right"] not in good and a["id"] != "a lot of output"]
        counts = collections.Counter(str(a["right"]) for a in found)
        print(f"{kind:10} {len(cases):4} requests, {len(found):4} answers, {dict(counts)}, {len(bad)} wrong verdicts {bad[:5]}")


if __name__ == "__main__":
    if "--table" in sys.argv:
        setUpModule()
        table()
        tearDownModule()
    else:
        unittest.main()
