#!/usr/bin/env python3
"""Breaks the library in many small ways, one at a time, and asks whether its tests notice.

    tests/mutation/mutate.py core                   20 mutants of the room `core`, the same ones each time
    tests/mutation/mutate.py core plan --seed 2,3   others, of two rooms, a score for each seed
    tests/mutation/mutate.py io --count all         every mutant of a room
    tests/mutation/mutate.py plan --at trnmath/plan/plan_cost.h:538      those of one line
    tests/mutation/mutate.py core --list            says what would be tried, and tries nothing

Rooms, their files and the tests that guard them are in rooms.txt. A mutant dies when a test that passes without it
fails, crashes or takes too long with it. Those that change no behaviour are in equivalent.txt, each with the reason,
and are not counted; nor are those that do not compile, or that the preprocessor leaves out of this build. The status
is 0 when each room has 95 % of the others die.
"""
import argparse
import concurrent.futures
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mutants as finder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / ".build/mutation"
TREE, BUILD = WORK / "tree", WORK / "build"
ENOUGH = 95  # percent
MUTANTS = 1 << 17  # of mutant.h
CAREFUL = next(iter(Path("/lib").glob("*/libc_malloc_debug.so.0")), None)  # glibc's memory that looks after itself
ERROR = re.compile(r"^(?:.*/tree/)?((?:trnmath|examples)/[^:\n]*):(\d+):(\d+): error", re.M)
# An index behind an array's end ends the program, whatever lies there.
BOUNDS = "-fsanitize=bounds -fsanitize-undefined-trap-on-error"
# What of -Wall -Werror still tells a mutant that no compiler should take.
WARNINGS = "-Werror=int-conversion;-Werror=incompatible-pointer-types"


def say(text):
    print(text, flush=True)


# ---- the lists ----

def read_rooms():
    rooms, room = {}, None
    for line in (HERE / "rooms.txt").read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not line[0].isspace():
            room = rooms[words[0]] = {"files": [], "tests": [], "programs": []}
        else:
            room[words[0]] += words[1:]
    for room in rooms.values():  # "fuzz_x:20" is fuzz_x with the argument 20
        pairs = [word.partition(":") for word in room["tests"]]
        room["tests"] = {name: [argument] if argument else [] for name, _, argument in pairs}
    return rooms


def read_equivalent():
    """{(file, function, before, after): reason}"""
    found, place, before, after = {}, None, "", ""
    for number, line in enumerate((HERE / "equivalent.txt").read_text(encoding="utf-8").splitlines(), 1):
        mark, rest = line[:2], line[2:].strip()
        if mark == "@ ":
            place = tuple(rest.split())
        elif mark == "- ":
            before = rest
        elif mark == "+ ":
            after = rest
        elif mark == "= ":
            found[(*place, before, after)] = rest
        elif line.strip() and line[0] != "#":
            sys.exit("equivalent.txt:%d: a line begins with '@ ', '- ', '+ ', '= ' or '#'" % number)
    return found


class Mutant:
    def __init__(self, room, text, found, again):
        self.room, self.found, self.file = room, found, found.file
        self.line = text.count("\n", 0, found.edits[0][0] if found.edits else found.start) + 1
        self.before, self.after = finder.shown(text, found)
        self.key = (found.file, found.function, self.before, self.after)
        self.again = again
        self.fate = self.by = self.reason = None
        self.seeds = set()

    def rank(self, seed):
        return hashlib.sha256(repr((seed, self.key, self.again)).encode()).digest()

    def __str__(self):
        return "%s:%d %s\n    - %s\n    + %s" % (self.file, self.line, self.found.function, self.before, self.after)


def all_mutants(room, files, texts):
    seen, out = {}, []
    but = {path for pattern in files if pattern[0] == "-" for path in ROOT.glob(pattern[1:])}
    for pattern in files:
        for path in sorted(set(ROOT.glob(pattern)) - but if pattern[0] != "-" else ()):
            name = str(path.relative_to(ROOT))
            if name not in texts:
                texts[name] = path.read_text(encoding="utf-8")
            for found in finder.mutants(name, texts[name]):
                mutant = Mutant(room, texts[name], found, 0)
                mutant.again = seen[mutant.key] = seen.get(mutant.key, -1) + 1
                out.append(mutant)
    return out


def apart(chosen):
    """Leaves out what overlaps another without lying inside it."""
    kept, open_ = [], []
    for m in sorted(chosen, key=lambda m: (m.file, m.found.start, -m.found.end)):
        while open_ and (open_[-1].file != m.file or open_[-1].found.end <= m.found.start):
            open_.pop()
        if open_ and open_[-1].found.end < m.found.end:
            continue
        open_.append(m)
        kept.append(m)
    return kept


# ---- one build that holds them all ----

def put(path, text):
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def copy_tree(texts):
    """A copy of the sources, in which what did not change keeps its time."""
    wanted = set()
    for top in ("trnmath", "examples", "bench", "tests", "scripts"):
        for path in (ROOT / top).rglob("*"):
            name = path.relative_to(ROOT)
            if path.is_file() and "__pycache__" not in path.parts:
                wanted.add(name)
                to = TREE / name
                if str(name) not in texts and (not to.exists() or to.stat().st_mtime < path.stat().st_mtime
                                               or to.stat().st_size != path.stat().st_size):
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, to)
                    shutil.copymode(path, to)
    for path in list(TREE.rglob("*")):
        if path.is_file() and path.relative_to(TREE) not in wanted and "__pycache__" not in path.parts:
            path.unlink()


def weave(texts, mutants):
    """Writes the sources with all mutants that may still compile. {file: {number: (start, end)}}, {file: text}"""
    where, out = {}, {}
    for name, text in texts.items():
        chosen = {n: m.found for n, m in enumerate(mutants) if m.file == name and m.fate != "stillborn"}
        out[name], where[name] = finder.woven(text, chosen)
        put(TREE / name, out[name].encode())
    return where, out


def bury(errors, where, woven, mutants):
    """Marks the mutants that a compiler's errors lie in."""
    buried = 0
    for name, row, column in set(ERROR.findall(errors)):
        name = os.path.normpath(name)  # "trnmath/network/../base/parse.h"
        if name not in woven:
            continue
        lines = woven[name].split("\n")
        at = sum(len(line) + 1 for line in lines[:int(row) - 1]) + int(column) - 1
        inside = [n for n, (start, end) in where[name].items() if start <= at <= end]
        if not inside:  # somewhere in the line
            start = at - int(column) + 1
            inside = [n for n, (a, b) in where[name].items() if a < start + len(lines[int(row) - 1]) and b > start]
            inside = inside[:1]
        elif len(inside) > 1:  # the innermost
            inside = [min(inside, key=lambda n: where[name][n][1] - where[name][n][0])]
        for n in inside:
            if mutants[n].fate != "stillborn":
                mutants[n].fate, buried = "stillborn", buried + 1
    return buried


def compiled(command):
    """The numbers of the mutants that the preprocessor leaves in this build; all, where it cannot say."""
    command = ["-E" if word == "-fsyntax-only" else word for word in command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return frozenset(range(MUTANTS))
    return frozenset(int(n) for n in re.findall(r"trn_mutant\((\d+)\)", done.stdout))


def checked_by_compiler(texts, mutants):
    """Weaves until the compiler takes the result. The numbers of what it sees at all."""
    probe = WORK / "probe.c"
    shims = "".join('#include "%s"\n' % name for name in texts if name.startswith("examples/"))
    defined = "_POSIX_C_SOURCE 200809L", "TRN_SPLIT 1", "TRN_IMPLEMENTATION 1"
    top = "".join("#define %s\n" % name for name in defined) + '#include "trnmath/trnmath.h"\n'
    put(probe, (top + shims).encode())
    command = ["gcc", "-std=c11", "-fsyntax-only", "-fmax-errors=0", "-DTRN_NO_INTRINSICS=1", "-I" + str(TREE),
               "-I" + str(TREE / "examples/tools/common"), "-include", str(HERE / "mutant.h"), *WARNINGS.split(";"),
               str(probe)]
    for _ in range(12):
        where, woven = weave(texts, mutants)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 or not bury(done.stderr, where, woven, mutants):
            return compiled(command)
    sys.exit("the woven sources do not compile:\n" + done.stderr)


def build(texts, mutants, targets, jobs):
    unit = WORK / "mutant.o"
    subprocess.run(["gcc", "-std=c11", "-O1", "-fPIC", "-c", str(HERE / "mutant.c"), "-o", str(unit)], check=True)
    seen = checked_by_compiler(texts, mutants)
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    configure = ["cmake", "-S", str(TREE / "tests"), "-B", str(BUILD), "-DCMAKE_BUILD_TYPE=None", "-DTRN_OPENMP=OFF",
                 "-DTRN_INTRINSICS=OFF", "-DTRN_HOUSE=OFF", "-DTRN_MATRIX=OFF", "-DTRN_WARNINGS=" + WARNINGS,
                 "-DCMAKE_C_FLAGS=-O0 %s -include %s/mutant.h" % (BOUNDS, HERE), "-DCMAKE_EXE_LINKER_FLAGS=%s" % unit,
                 "-DCMAKE_SHARED_LINKER_FLAGS=%s" % unit, *launcher]
    make = ["cmake", "--build", str(BUILD), "--parallel", str(jobs), "--target"]
    for _ in range(6):
        done = subprocess.run(configure, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        where, woven = weave(texts, mutants)
        for wanted in ["bodies"], targets:  # what all programs need comes first, or each would try it again
            done = subprocess.run([*make, *wanted, "--", "-k"], capture_output=True, text=True)
            if done.returncode:
                break
        else:
            return seen
        if not bury(done.stdout + done.stderr, where, woven, mutants):
            break
    sys.exit("the woven sources do not build:\n" + done.stdout[-4000:] + done.stderr[-8000:])


# ---- runs ----

def as_from_a_shell(limit):
    """In the child: so many seconds of a processor, and no signal is ignored, as behind nohup or '&'."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


class Test:
    def __init__(self, entry, arguments):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name, self.command = entry["name"], entry["command"] + arguments
        self.folder = properties.get("WORKING_DIRECTORY", str(BUILD))
        self.seconds, self.reaches, self.careful = 0.0, frozenset(), CAREFUL is not None

    def run(self, mutant=None, notes=None, limit=600, scratch="."):
        """Whether it passed."""
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", TMPDIR=str(scratch))
        environment.pop("TRN_MUTANT_AT", None)
        environment["TRN_MUTANT"] = str(-1 if mutant is None else mutant)
        if self.careful:  # what is written behind a piece of memory ends the program that frees it
            environment.update(LD_PRELOAD=str(CAREFUL), MALLOC_CHECK_="3")
        if notes:
            environment["TRN_MUTANT_AT"] = str(notes)
        with subprocess.Popen(self.command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                              preexec_fn=lambda: as_from_a_shell(limit)) as child:
            try:
                return child.wait(timeout=30 + 10 * limit) == 0  # the processor's time is what counts, unless it sleeps
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                return False


def read_tests(names):
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=BUILD, capture_output=True, text=True, check=True)
    tests = {e["name"]: Test(e, names[e["name"]]) for e in json.loads(done.stdout)["tests"] if e["name"] in names}
    missing = sorted(set(names) - set(tests))
    if missing:
        sys.exit("rooms.txt names %s, which ctest does not know" % ", ".join(missing))
    return tests


def look(test):
    """A run without a mutant: it must pass, and says how long it takes and where it comes. A program with memory of its
    own, or that ends by a signal of a child's, may not want to be looked after."""
    scratch = WORK / "scratch" / test.name
    scratch.mkdir(parents=True, exist_ok=True)
    notes = scratch / "notes"
    notes.write_bytes(bytes(MUTANTS))
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    passed = test.run(notes=notes, scratch=scratch)
    if not passed and test.careful:
        test.careful = False
        passed = test.run(notes=notes, scratch=scratch)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    test.seconds = min(time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    test.reaches = frozenset(n for n, byte in enumerate(notes.read_bytes()) if byte)
    return passed


def judge(number, mutant, tests, loud):
    scratch = WORK / "scratch" / ("mutant%d" % number)
    scratch.mkdir(parents=True, exist_ok=True)
    mutant.by = [t.name for t in tests if number in t.reaches]
    for test in sorted((t for t in tests if number in t.reaches), key=lambda t: t.seconds):
        if not test.run(mutant=number, limit=int(4 + 4 * test.seconds), scratch=scratch):
            mutant.fate, mutant.by = "dead", [test.name]
            break
    else:
        mutant.fate = "alive"
    shutil.rmtree(scratch, ignore_errors=True)
    if loud:
        say("%s, %s: %s" % (mutant.fate, " ".join(mutant.by), mutant))


# ---- the whole ----

def choose(args, rooms, texts):
    equivalent, used, chosen = read_equivalent(), set(), []
    for room in args.room:
        found = all_mutants(room, rooms[room]["files"], texts)
        if args.at:
            found = [m for m in found if "%s:%d" % (m.file, m.line) in args.at]
        for m in found:
            m.reason = equivalent.get(m.key)
            used.add(m.key)
        for seed in args.seed:
            ranked = sorted(found, key=lambda m: m.rank(seed))
            for m in ranked if args.count == "all" or args.at else ranked[:int(args.count)]:
                m.seeds.add(seed)
        chosen += [m for m in found if m.seeds]
        for key in equivalent:
            if key not in used and any(Path(key[0]).match(p) for p in rooms[room]["files"]):
                say("equivalent.txt: no such mutant now: %s %s: %s" % (key[0], key[1], key[3]))
    return apart(chosen)


def score(room, seed, here):
    """Prints a line of the table; says whether it is enough."""
    dead, alive = (sum(m.fate == fate for m in here) for fate in ("dead", "alive"))
    percent = 100 * dead / (dead + alive) if dead + alive else 100
    fates = ["equivalent", "stillborn", "elsewhere"]
    say("%-9s seed %-3s %4d of %4d die, %5.1f %%; %d equivalent, %d do not compile, %d are of other builds" %
        (room, seed, dead, dead + alive, percent, *(sum(m.fate == fate for m in here) for fate in fates)))
    return percent >= ENOUGH


def table(args, mutants):
    for m in mutants:
        if m.fate == "alive":
            say("\nalive in %s, %s: %s" % (m.room, "reached by " + " ".join(m.by) if m.by else "reached by no test", m))
    say("")
    scores = [score(room, seed, [m for m in mutants if m.room == room and seed in m.seeds])
              for room in args.room for seed in args.seed]
    return all(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", nargs="+", help="a room of rooms.txt, or 'every'")
    parser.add_argument("--seed", default="1", help="chooses the mutants; several, with commas between them")
    parser.add_argument("--count", default="20", help="mutants of each room, or 'all' (20)")
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="only those of this line; may be repeated")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--loud", action="store_true", help="say each mutant's fate at once")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    args.seed = args.seed.split(",")
    rooms = read_rooms()
    args.room = list(rooms) if args.room == ["every"] else args.room
    for room in args.room:
        if room not in rooms:
            parser.error("rooms.txt has no room '%s'; it has %s" % (room, ", ".join(rooms)))
    if args.count != "all" and not args.count.isdigit():
        parser.error("--count is '%s', expected a number or 'all'" % args.count)
    texts = {}
    mutants = choose(args, rooms, texts)
    for m in mutants:
        if m.reason:
            m.fate = "equivalent"
    if args.list:
        for m in mutants:
            say("%s%s" % (m, "\n    = " + m.reason if m.reason else ""))
        return 0
    if len(mutants) >= MUTANTS:
        parser.error("%d mutants at once; at most %d" % (len(mutants), MUTANTS - 1))
    names = {t: more for room in args.room for t, more in rooms[room]["tests"].items()}
    programs = sorted({p for room in args.room for p in rooms[room]["programs"]})
    say("%d mutants; building %s" % (len(mutants), " ".join(names)))
    WORK.mkdir(parents=True, exist_ok=True)
    alone = open(WORK / "lock", "w", encoding="utf-8")  # one run at a time has the folder, until it ends
    fcntl.flock(alone, fcntl.LOCK_EX)
    copy_tree(texts)
    seen = build(texts, mutants, [n for n in names if not n.startswith("cli.")] + programs, args.jobs)
    tests = read_tests(names)
    for test in tests.values():  # one after the other: times are taken
        if not look(test):
            sys.exit("%s fails without a mutant: %s" % (test.name, " ".join(test.command)))
        say("%-24s %6.2f s, comes to %d mutants" % (test.name, test.seconds, len(test.reaches)))
    for n, m in enumerate(mutants):
        if m.fate is None and n not in seen and not any(n in t.reaches for t in tests.values()):
            m.fate = "elsewhere"
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(judge, n, m, [tests[t] for t in rooms[m.room]["tests"]], args.loud)
                   for n, m in enumerate(mutants) if m.fate is None]
        for done in concurrent.futures.as_completed(waiting):
            done.result()
    return 0 if table(args, mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
