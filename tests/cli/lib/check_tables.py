"""What trnmath tells in Python, against the headers, NumPy, published totals and shardplan; sparsity, MX in SBUF, and
bad arguments. Usage: check_tables.py [SHARDPLAN [MODELS]]. Run by tests/cli/python.sh."""
import ast
import csv
import inspect
import io
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import trnmath

HEADERS = Path(__file__).resolve().parents[3] / "trnmath"
LLAMA = dict(layers=32, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocab=128256)
SHARDPLAN = sys.argv[1] if len(sys.argv) > 1 else None
MODELS = Path(sys.argv[2]) if len(sys.argv) > 2 else None


def members(header, struct):
    """Names of a struct's members in C's text, in order; `name` and pointers are left out."""
    text = (HEADERS / header).read_text(encoding="utf-8")
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (struct, struct), text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    found = []
    for declared in body.split(";"):
        if "*" not in declared and "char" not in declared:
            found += re.findall(r"\b([a-z_0-9]+)(?:\[[^\]]*\])?\s*(?=,|$)", declared.strip())
    return found


class Facts(unittest.TestCase):
    def test_formats_are_numpys_where_it_has_them(self):
        rows = {row["name"]: row for row in trnmath.formats()}
        self.assertEqual(len(rows), 18)
        for name in ("float32", "float16"):
            info, row = np.finfo(name), rows[name]
            self.assertEqual([row["max"], row["min_normal"], row["epsilon"], row["min_subnormal"], row["lowest"]],
                             [float(x) for x in (info.max, info.tiny, info.eps, info.smallest_subnormal, info.min)])
            self.assertTrue(row["has_infinity"] and row["has_nan"])
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
            self.assertEqual([rows[name]["max"], rows[name]["lowest"]], [np.iinfo(name).max, np.iinfo(name).min])
        self.assertEqual([rows[n]["max"] for n in ("float8_e4m3", "float8_e4m3fn")], [240, 448])
        self.assertEqual([rows[n]["has_infinity"] for n in ("float8_e4m3", "float8_e4m3fn")], [True, False])
        self.assertEqual(rows["float4_e2m1fn"]["has_nan"], False)
        self.assertEqual(trnmath.format_of("F8_E4M3")["name"], "float8_e4m3fn")
        self.assertEqual(trnmath.format_of(np.float16), trnmath.format_of(np.dtype("float16")))

    def test_every_format_holds_what_its_row_says(self):
        for row in trnmath.formats():
            if row["kind"] != "float" or row["name"] in ("float32", "tfloat32"):
                continue
            least = np.float32([row["max"], row["min_normal"], row["min_subnormal"], 1 + row["epsilon"]])
            codes = trnmath.convert(least, row["name"])
            back = trnmath.convert((codes, row["name"]) if codes.dtype.kind == "u" else codes, "float32")
            self.assertEqual(back.tolist(), least.tolist(), row["name"])
            self.assertEqual(codes.itemsize, row["bytes"])

    def test_systems(self):
        rows = {row["name"]: row for row in trnmath.systems()}
        self.assertEqual([rows[n]["chips"] for n in ("trn2.48xlarge", "trn2-ultraserver", "project-rainier")],
                         [16, 64, 400000])
        for name in rows:
            spec = trnmath.spec(name)
            self.assertEqual(spec["chips"], rows[name]["chips"])
            self.assertAlmostEqual(spec["tflops"]["bfloat16"] * 1e12 / rows[name]["bf16_flops_per_s"], 1, 9)
            self.assertTrue(all(row["where"] and row["unit"] is not None for row in spec["fields"]))
        spec = trnmath.spec("trn2.48xlarge")  # EC2's page: 20.8 petaflops in FP8, 1.5 TB, 46 TB/s
        self.assertEqual([round(spec["tflops"]["float8_e4m3"], -2), round(spec["totals"]["hbm_bytes"] / 2**40, 1),
                          round(spec["totals"]["hbm_bytes_per_s"] / 1e12)], [20800, 1.5, 46])
        self.assertEqual([row["name"] for row in trnmath.generations()], ["Trainium1", "Trainium2", "Trainium3"])
        self.assertGreater(len(trnmath.alternatives()), 20)

    def test_instructions_are_nkis(self):
        rows = trnmath.instructions()
        front = ast.parse((HEADERS.parent / "examples/python/src/nki/isa.py").read_text(encoding="utf-8"))
        have = {f.name: [a.arg for a in f.args.args] for f in front.body if isinstance(f, ast.FunctionDef)}
        for row in rows:
            given = [a for a in have[row["name"]] if a != "name"]
            self.assertEqual([a.split("=")[0].strip() for a in row["arguments"].split(", ") if a], given, row["name"])
        self.assertEqual(len(rows), 52)

    def test_names_are_what_functions_take(self):
        x = np.float32([1.3])
        for name in trnmath.roundings():
            trnmath.convert(x, "bfloat16", rounding=name)
        for row in trnmath.activations():
            trnmath.activation(x, row["name"])
        for row in trnmath.presets():
            self.assertEqual(len(trnmath.explain(row["name"])), len(trnmath.explain()))
            trnmath.explain(row["setting"])
        for op in trnmath.collectives():
            if op not in ("permute", "send_recv"):
                self.assertGreater(trnmath.collective_cost(op, 1 << 20)["time_s"], 0)
        self.assertIn("ring", trnmath.algorithms())
        self.assertEqual(trnmath.engines(), ["tensor", "vector", "scalar", "gpsimd", "dma"])
        self.assertTrue(all(row["where"] for row in trnmath.engine_rules()))

    def test_every_name_is_explained(self):
        for name in trnmath.__all__:
            thing = getattr(trnmath, name)
            if inspect.isfunction(thing):
                self.assertTrue(inspect.getdoc(thing), name)
                self.assertNotIn(inspect.Parameter.empty, inspect.signature(thing).parameters, name)
        self.assertEqual(sorted(trnmath.__all__), sorted(set(trnmath.__all__)))


class Plans(unittest.TestCase):
    def test_every_field_of_the_structs_has_a_name(self):
        self.assertEqual(sorted(trnmath.model_fields()), sorted(members("plan/plan_model.h", "trn_model")))
        want = members("plan/plan_args.h", "trn_plan_formats") + members("plan/plan_args.h", "trn_plan_args")
        want = set(want) - {"formats", "assumptions", "degree", "replicate_kv"} | {"tp", "cp", "ep", "dp", "pp"}
        self.assertEqual(sorted(trnmath.job_fields()), sorted(want))

    def test_a_plan(self):
        found = trnmath.plans(LLAMA, "trn2.48xlarge", 500, job="decode", batch=8, sequence=8192)
        legal = [p for p in found if p["legal"]]
        self.assertTrue(10 < len(legal) < len(found))
        self.assertEqual([p["expected_s"] for p in legal], sorted(p["expected_s"] for p in legal))
        for p in legal:
            self.assertEqual(p["tp"] * p["cp"] * p["ep"] * p["dp"] * p["pp"], 16)
            self.assertTrue(p["bound_s"] <= p["time_s"] <= p["expected_s"])
            total = sum(p["time"].values()) - 2 * p["time"]["hidden"]
            self.assertAlmostEqual(total / p["time_s"], 1, 9)
            memory = dict(p["memory"])
            memory.pop("kv_elsewhere")
            self.assertAlmostEqual(sum(memory.values()) / p["memory_bytes"], 1, 9)
            self.assertLessEqual(p["memory_bytes"], p["memory_capacity_bytes"])
        self.assertTrue(all(p["why"] and p["expected_s"] is None for p in found if not p["legal"]))
        best = trnmath.plan(LLAMA, job="decode", batch=8, sequence=8192)
        self.assertEqual(best, found[0])
        one = trnmath.plan(LLAMA, job="decode", batch=8, sequence=8192, tp=8, cp=1, ep=1, dp=2, pp=1)
        self.assertIn(one, found)

    def test_what_does_not_fit_says_why(self):
        big = dict(layers=126, hidden=16384, heads=128, kv_heads=8, intermediate=53248, vocab=128256)
        with self.assertRaisesRegex(trnmath.Error, "no plan is possible; one of them: .*GiB"):
            trnmath.plan(big, "trn1.2xlarge", job="decode", batch=1, sequence=2048)

    @unittest.skipUnless(SHARDPLAN and MODELS, "without shardplan")
    def test_it_is_shardplans(self):
        self.assertEqual(trnmath.model_of(MODELS / "llama-3-8b.json"), ({**LLAMA, "norms": 2}, {}))
        for name, job in (("llama-3-8b", "train"), ("llama-3-8b", "decode"), ("mixtral-8x7b", "train"),
                          ("deepseek-v3.2", "decode"), ("qwen3-next-80b-a3b", "prefill")):
            path = str(MODELS / f"{name}.json")
            asked = [SHARDPLAN, path, "--system", "trn2.48xlarge", "--job", job, "--batch", "64", "--seq", "4096"]
            told = subprocess.run([*asked, "--csv", "-"], check=True, capture_output=True, text=True).stdout
            model, formats = trnmath.model_of(path, job)
            mine = trnmath.plans(model, "trn2.48xlarge", 20000, job=job, batch=64, sequence=4096, **formats)
            self.same(list(csv.DictReader(io.StringIO(told))), mine)

    def same(self, table, mine):
        self.assertEqual(len(table), len(mine))
        for row, p in zip(table, mine):
            self.assertEqual([row[a] for a in ("tp", "cp", "ep", "dp", "pp", "why")],
                             [str(p[a]) for a in ("tp", "cp", "ep", "dp", "pp", "why")])
            for name in ("time_s", "expected_s", "bound_s", "mfu", "ttft_s"):
                want = float(row[name]) if row[name] else None
                self.assertTrue(p[name] is None if want is None else abs(p[name] / want - 1) < 1e-5, name)

    def test_a_config_has_its_sentence(self):
        with self.assertRaisesRegex(trnmath.Error, "^/nowhere/c.json: it cannot be read"):
            trnmath.model_of("/nowhere/c.json")
        with self.assertRaisesRegex(trnmath.Error, "^config: expected a path or a dict, not int$"):
            trnmath.model_of(3)
        with self.assertRaisesRegex(trnmath.Error, "built without cJSON|the config: its 'model_type' is 'soup', which is not one"):
            trnmath.model_of({"model_type": "soup"})


class Small(unittest.TestCase):
    RNG = np.random.default_rng(35)

    def test_sparse(self):
        x = self.RNG.integers(-8, 9, (6, 64)).astype(np.float32)
        b = self.RNG.integers(-8, 9, (64, 5)).astype(np.float32)
        for pattern, (m, n) in (("4:16", (4, 16)), ((2, 4), (2, 4)), ([1, 2], (1, 2))):
            values, tags = trnmath.sparse_pack(x, pattern, prune=True)
            self.assertEqual(values.shape, (6, 64 * m // n))
            back = trnmath.sparse_unpack(values, tags, pattern)
            order = np.argsort(-abs(x).reshape(6, -1, n), axis=2, kind="stable")[..., :m]
            want = np.zeros_like(x).reshape(6, -1, n)
            np.put_along_axis(want, order, np.take_along_axis(x.reshape(6, -1, n), order, 2), 2)
            self.assertTrue((back == want.reshape(6, 64)).all(), str(pattern))
            self.assertTrue((trnmath.sparse_matmul(values, tags, b, pattern) == back @ b).all())
        codes = trnmath.convert(x, "bfloat16")
        values, tags = trnmath.sparse_pack((codes, "bfloat16"), prune=True)
        self.assertEqual(values.dtype, np.uint16)
        self.assertTrue((trnmath.sparse_unpack((values, "bfloat16"), tags) != 0).sum() <= 6 * 16)
        with self.assertRaisesRegex(trnmath.Error, "row 0"):
            trnmath.sparse_pack(np.ones((1, 16), np.float32))

    def test_mx_in_sbuf(self):
        for name, kind in (("float8_e4m3fn", np.uint32), ("float4_e2m1fn", np.uint16)):
            codes = self.RNG.integers(0, 8, (96, 7)).astype(np.uint8)
            scales = self.RNG.integers(100, 140, (3, 7)).astype(np.uint8)
            for offset in (0, 12):
                words, tile = trnmath.mx_to_sbuf((codes, name), scales, offset)
                self.assertEqual((words.shape, words.dtype), ((24, 7), kind))
                self.assertTrue((words[0] & 7 == codes[0]).all())
                self.assertTrue((tile[offset:offset + 3] == scales).all() and (tile[:offset] == 0).all())
                back = trnmath.mx_from_sbuf(words, tile, name, offset)
                self.assertTrue((back[0] == codes).all() and (back[1] == scales).all())

    def test_fp4_on_its_way_to_the_multiplier(self):
        codes = np.arange(16, dtype=np.uint8)
        got = trnmath.mx_fp4_to_fp8((codes, "float4_e2m1fn"))
        for pair in ((got, "float8_e4m3fn"), (codes, "float4_e2m1fn")):
            self.assertEqual(trnmath.convert(pair, "float32").tolist()[:8], [0, 0.5, 1, 1.5, 2, 3, 4, 6])
        swapped = trnmath.mx_fp4_to_fp8((codes, "float4_e2m1fn"), table=got[::-1].tolist())
        self.assertTrue((swapped == got[::-1]).all())


class Errors(unittest.TestCase):
    def test_each_has_its_sentence(self):
        x, codes = np.zeros((4, 6), np.float32), np.zeros((32, 2), np.uint8)
        for text, call, *args in (
                ("system \"trn9\" is unknown", trnmath.spec, "trn9"),
                ("'float9' is no format of trnmath", trnmath.format_of, "float9"),
                ("'a\\x00b' has a zero byte", trnmath.spec, "a\0b"),
                ("the model has no field 'width'", trnmath.plans, {"width": 3}),
                ("the model: layers is 'many', expected an integer", trnmath.plans, {"layers": "many"}),
                ("layers: expected a number or a name, not dict", trnmath.plans, {"layers": {}}),
                ("layers: '1,heads=2' is no value", trnmath.plans, {"layers": "1,heads=2"}),
                ("most is 0, expected 1 to 20000", trnmath.plans, LLAMA, "trn2.48xlarge", 0),
                ("most: expected a whole number, not str", trnmath.plans, LLAMA, "trn2.48xlarge", "3"),
                ("pattern: expected m of n such as (4, 16), not 'x'", trnmath.sparse_pack, x, "x"),
                ("pattern: there is no 17:32", trnmath.sparse_pack, x, (17, 32)),
                ("x: expected two axes, not 1", trnmath.sparse_pack, x[0]),
                ("codes and scales: expected two axes each, not 2 and 1", trnmath.mx_to_sbuf, codes, codes[0]),
                ("table: expected 16 codes of 0 to 255", trnmath.mx_fp4_to_fp8, (codes, "float4_e2m1fn"),
                 "float8_e5m2", [1]),
                ("scale: expected a number, not str", trnmath.activation, x, "exp", None, None, "two"),
                ("nbytes: 9223372036854775808 does not fit 64 bits", trnmath.collective_cost, "all_reduce", 2**63),
                ("chips: a chip's number does not fit 32 bits", trnmath.collective_cost, "all_reduce", 1,
                 "trn2.48xlarge", None, [2**31]),
                ("chips: expected a whole number, not float", trnmath.collective_cost, "all_reduce", 1,
                 "trn2.48xlarge", None, [1.5]),
        ):
            with self.assertRaises(trnmath.Error) as caught:
                call(*args)
            self.assertEqual(str(caught.exception), text)
        for seed in (-1, 2**64, 1.5):
            with self.assertRaisesRegex(trnmath.Error, "^seed: "):
                trnmath.convert(x, "bfloat16", rounding="stochastic", seed=seed)
        for job in (dict(job="rest"), dict(batch=-3), dict(tp=3), dict(weights="fp99"), dict(spread="x"), dict(lnc=7)):
            with self.assertRaises(trnmath.Error):
                trnmath.plan(LLAMA, **{"batch": 64, "sequence": 4096, **job})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
