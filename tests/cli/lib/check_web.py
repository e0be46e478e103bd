"""The playground's program: what it answers is right where it can be known otherwise; all else gets a sentence.

    python3 check_web.py PROGRAM [QUESTIONS-FILE]

Writes the questions that it asked into the file, for another run of them elsewhere. Its lists of names come from the
program. Exit status: 0 all is well, 1 something is wrong.
"""

import json, random, struct, subprocess, sys
from fractions import Fraction
from urllib.parse import urlencode

PROGRAM = sys.argv[1]
RANDOM = 320  # questions, of which a third are wrong on purpose
wrong = 0


def fail(text):
    global wrong
    wrong += 1
    print("FAILED:", text)


def ask(questions):
    """An answer to each, whatever it is: one line of JSON."""
    run = subprocess.run([PROGRAM], input="".join(q + "\n" for q in questions), capture_output=True, text=True,
                         timeout=120)
    lines = run.stdout.split("\n")[:-1]
    if run.returncode or run.stderr or len(lines) != len(questions):
        fail(f"status {run.returncode}, {len(lines)} answers to {len(questions)} questions: {run.stderr[:300]}")
        sys.exit(1)
    return [json.loads(line) for line in lines]


def question(tool, **fields):
    return f"{tool}?{urlencode(fields)}"


# ---- what is known otherwise ----


def f32(x):
    """A Fraction, rounded to binary32 to nearest even, in its normal range."""
    if x == 0:
        return Fraction(0)
    e = 0
    while abs(x) >= Fraction(2) ** (e + 1):
        e += 1
    while abs(x) < Fraction(2) ** e:
        e -= 1
    unit = Fraction(2) ** (e - 23)
    return round(x / unit) * unit


def check_numbers():
    texts = ["0.1", "-3.5", "448", "65519", "1e-8", "240", "1", "16777217", "0.33333"]
    for text, answer in zip(texts, ask([question("numbers", x=text) for text in texts])):
        rows = {row["format"]: row for row in answer["formats"]}
        x = struct.unpack("f", struct.pack("f", float(text)))[0]
        bits = struct.unpack("I", struct.pack("f", float(text)))[0]
        bf16 = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        wanted = {"float32": bits, "bfloat16": bf16}
        if abs(x) < 65520:
            wanted["float16"] = struct.unpack("H", struct.pack("e", x))[0]
        for name, code in wanted.items():
            if int(rows[name]["code"], 16) != code:
                fail(f"{text} in {name} is {rows[name]['code']}, expected {code:#x}")
        for name, row in rows.items():
            below, above = (float(row[k]["value"]) if k in row else None for k in ("below", "above"))
            value = float(row["value"])
            if (below is not None and not below < value) or (above is not None and not above > value):
                fail(f"{text} in {name}: {row.get('below')}, {value}, {row.get('above')} are not in order")
            modes = {m["mode"]: float(m["value"]) for m in row["modes"]}
            if modes["toward_negative"] > x and below is not None or modes["toward_positive"] < x and above is not None:
                fail(f"{text} in {name}: {modes} go the wrong way")
            if value == x and any(v != x for v in modes.values()):
                fail(f"{text} in {name} is exact, and a mode moves it: {modes}")
    for code, name, x in (("0x7e", "float8_e4m3fn", "448"), ("0x77", "float8_e4m3", "240")):
        answer, = ask([question("numbers", x=code, **{"as": name})])
        if answer["x"] != x:
            fail(f"the largest code of {name} is {answer['x']}, expected {x}")


def check_products():
    """The README's sum; and each chain's sums after each step, added up here."""
    answer, = ask([question("product", a="16777216 1*127", b="1*128")])
    got = answer["tiles"][-1]["psum"], answer["c"][0][0], answer["single_chain"], answer["exact"]
    if got != ("16777312", "16777312", "16777216", "16777344"):
        fail(f"2^24 and 127 ones: {got}")
    source = random.Random(2)
    for chains, layout in ((4, "interleaved"), (2, "blocked"), (1, "interleaved"), (16, "interleaved")):
        a, b = ([source.choice([1, 3, -5, 0.5, 2**20, 2**-12, 7, -(2**24)]) for _ in range(70)] for _ in range(2))
        answer, = ask([question("product", a=" ".join(map(str, a)), b=" ".join(map(str, b)),
                                numerics=f"chains={chains},chain_layout={layout}")])
        sums = [Fraction(0)] * chains
        for k, step in enumerate(answer["steps"]):
            chain = k % chains if layout == "interleaved" else k // (128 // chains)
            sums[chain] = f32(sums[chain] + Fraction(a[k]) * Fraction(b[k]))
            if step["chain"] != chain or Fraction(float(step["sum"])) != sums[chain]:
                fail(f"{chains} {layout} chains, step {k}: {step}, expected chain {chain} to hold {float(sums[chain])}")
                break
        total = sums[0]
        for s in sums[1:]:
            total = f32(total + s)
        if Fraction(float(answer["c"][0][0])) != total or answer["c"][0][0] != answer["tiles"][-1]["psum"]:
            fail(f"{chains} {layout} chains: {answer['c']}, expected {float(total)}")


def check_others():
    ring, chance, exact, plan, other = ask([
        question("collective", system="trn2.48xlarge", algorithm="ring", bytes=1 << 20, values="1 256 1"),
        question("chance", x="0.1", format="bfloat16", draws=20000), question("chance", x="0.5", draws=50),
        question("plan", model="llama-3-8b", system="trn2.48xlarge", batch=64, sequence=8192),
        question("plan", model="llama-3-8b", layers=16)])
    if (ring["sum"], ring["exact_sum"], ring["ranks"]) != ("256", "271", 16) or not ring["svg"].startswith("<svg"):
        fail(f"16 chips add 256 and ones: {ring['sum']}, {ring['exact_sum']}")
    if not 0 < ring["bound_s"] <= ring["ideal_s"] <= ring["expected_s"]:
        fail(f"times of a ring: {ring['bound_s']}, {ring['ideal_s']}, {ring['expected_s']}")
    counts = [o["count"] for o in chance["outcomes"]]
    if sum(counts) != 20000 or abs(counts[1] / 20000 - chance["share"]) > 0.015 or sum(chance["bins"]) != 1250:
        fail(f"draws: {chance}")
    if [o["count"] for o in exact["outcomes"]] != [50] or "bins" in exact:
        fail(f"0.5 is exact: {exact}")
    times = [p["expected_s"] for p in plan["plans"] if p["legal"]]
    if plan["parameters"] != "8030261248" or times != sorted(times) or len(times) != 8 or other["layers"] != 16:
        fail(f"plans: {plan['parameters']}, {times}, {other['layers']}")


# ---- anything ----

BAD = ["", "x", "-1", "1e999", "99999999999999999999", "%", "0x", "nan", "*", "1*", "1*999999", "\u00e9", "\x01", ";;;"]
BAD += ['"\\', "a" * 300]
NUMBERS = ["0.1", "-0", "inf", "nan", "1e40", "-1e-50", "0x7e", "255", "16777217", "3.5e38", "65519", "1e-45"]
MATRICES = ["1 2;3 4", "16777216 1*15", "1*128", "0.1*3\n0.2*3", "nan inf 1", "-0 0 1e-40", "1*16", "5 6;7 8", "2*3"]


def questions(lists):
    source = random.Random(1)
    formats = lists["formats"]
    fields = {
        "lists": {},
        "numbers": {"x": NUMBERS, "as": ["number"] + formats, "overflow": lists["overflows"]},
        "product": {"a": MATRICES, "b": MATRICES, "format": formats, "result": formats, "row": ["0", "1"],
                    "generation": lists["generations"],
                    "numerics": lists["numerics"] + ["chains=16,merge=pairwise", "k_tile=5", "product=bf16"]},
        "collective": {"system": lists["systems"], "op": lists["collectives"], "algorithm": lists["algorithms"],
                       "bytes": ["1", "1000000", "1099511627776"], "cores": ["1", "2", "4"], "wire": formats,
                       "values": ["", "256 1", "1 2 3 4"]},
        "chance": {"x": NUMBERS, "format": formats, "seed": ["0", "1", str(2**63 - 1)],
                   "draws": ["1", "100", "4096"], "bits": ["1", "8", "32"], "group": ["1", "16"]},
        "plan": {"model": lists["models"], "system": lists["systems"], "job": lists["jobs"],
                 "batch": ["1", "64", "1024"], "sequence": ["448", "8192"], "shown": ["3"], "layers": ["", "8"],
                 "heads": ["", "5"]},
    }
    usual = {"product": ["format", "result"], "collective": ["algorithm"]}  # of these one in four is anything
    for _ in range(RANDOM):
        tool = source.choice(list(fields))
        given = {}
        for name, values in fields[tool].items():
            if source.random() < (0.25 if name in usual.get(tool, []) else 0.75):
                given[name] = source.choice(values)
        chance = source.random()
        if chance < 0.25 and given:
            given[source.choice(list(given))] = source.choice(BAD)
        elif chance < 0.3:
            given[source.choice(BAD) or "q"] = source.choice(BAD)
        text = question(tool, **given)
        if source.random() < 0.05:
            at = source.randrange(len(text))
            text = text[:at] + source.choice(["&", "%", "?", "=", "%zz", "%00"]) + text[at:]
        yield text


def check_any(path):
    lists, = ask(["lists"])
    all_of = list(questions(lists)) + ["", "?", "numbers?x=" + "1" * 20000, "numbers?" + "a=1&" * 30]
    refused = 0
    for text, answer in zip(all_of, ask(all_of)):
        if "error" not in answer:
            continue
        refused += 1
        sentence = answer["error"]
        if set(answer) != {"error"} or len(sentence) < 12 or "\n" in sentence:
            fail(f"{text[:200]} is refused with {answer}")
    if not RANDOM // 5 < refused < 4 * RANDOM // 5:
        fail(f"{refused} of {len(all_of)} questions were refused: too few or too many to tell")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(text + "\n" for text in ["lists", *all_of] if text and len(text) < 16000)
    print(f"{len(all_of)} questions, {refused} of them refused with a sentence")


check_numbers()
check_products()
check_others()
check_any(sys.argv[2] if len(sys.argv) > 2 else None)
sys.exit(1 if wrong else 0)
