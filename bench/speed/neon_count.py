#!/usr/bin/env python3
"""neon_count.py [ARM-COMPILER...]: instructions of inner loops in NEON and in AVX2, for each element.

Compiles the same three doors with gcc for x86-64 and with aarch64-linux-gnu-gcc (or ARM-COMPILER) for aarch64, at -O2,
and reads the loops from objdump. No Arm processor is needed: nothing runs. A loop is found by its function and by an
instruction whose elements are known; where several loops of a function have as many of them, the shortest counts, and
of a loop with branches the shortest way round.
A NEON vector has half the lanes of an AVX2 vector, so that the last column is 1.00 when a vector takes as many
instructions in both.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = """
#include <trnmath/trn_convert.h>
#include <trnmath/trn_scalar_engine.h>
#include <trnmath/trn_sparse.h>
#include <trnmath/trn_matmul.h>
trn_status product(const trn_matmul_args *a) { return trn_matmul(a); }
trn_status sparse(const trn_sparse_matmul_args *a) { return trn_sparse_matmul(a); }
trn_status cast(const trn_convert_args *a) { return trn_convert(a); }
trn_status act(const trn_activation_args *a) { return trn_activation(a); }
"""

# What; then for AVX2 and for NEON: the function, and the instructions that tell its loops (a loop for each), with the
# elements that each of them stands for. Elements of products are multiply-adds.
ROWS = [
    ("panels, one product a row", "simd_micro_6x1_avx2", {"vfmadd": 8}, "simd_micro_6x1_neon", {"fmla": 4}),
    ("panels, pairs", "simd_micro_4x2_avx2", {"vmulps": 16}, "simd_micro_4x2_neon", {"fmul": 8}),
    ("panels, quads", "simd_micro_4x4_avx2", {"vmulps": 32}, "simd_micro_4x4_neon", {"fmul": 16}),
    ("stream of F32", "simd_stream_f32_avx2", {"vfmadd...ps": 8}, "simd_stream_f32_neon", {"fmla": 4}),
    ("stream of TF32", "simd_stream_tf32_avx2", {"vfmadd...ps": 8}, "simd_stream_tf32_neon", {"fmla": 4}),
    ("stream of BF16", "simd_stream_bf16_avx2", {"vfmadd...ps": 8}, "simd_stream_bf16_neon", {"fmla": 4}),
    ("stream of F16", "simd_stream_f16_avx2", {"vcvtph2ps": 8}, "simd_stream_f16_neon", {"fmla": 4}),
    ("sparse, halves", "simd_sparse_halves_avx2", {"vfmadd": 8}, "simd_sparse_halves_neon", {"fmla": 4}),
    ("sparse, floats", "simd_sparse_floats_avx2", {"vfmadd": 8}, "simd_sparse_floats_neon", {"fmla": 4}),
    ("F32 to F16", "simd256_f32_f16", {"vcvtps2ph": 8}, "neon_f32_f16", {"fcvtn2?": 4}),
    ("F16 to F32", "simd256_f16_f32", {"vcvtph2ps": 8}, "neon_f16_f32", {"fcvtl2?": 4}),
    ("F32 to a byte", "simd256_nearest", {"vfmadd": 8}, "neon_nearest", {"fmla": 4}),
    ("F32 to BF16", "cast_f32_bf16_avx2", {"vpackusdw": 16}, "cast_f32_bf16_portable", {"[su]max": 4}),
    ("BF16 to F32", "cast_bf16_f32_avx2", {"vpmovzxwd": 8}, "cast_bf16_f32_portable", {"shll2?": 4}),
    ("a byte to F32", "read_float_avx2", {"vcvtdq2ps": 8}, "read_float_portable", {"scvtf": 4}),
    ("activation, tables", "simd_act_buckets_avx2", {"vpsrlvd": 4, "vfmadd": 8 / 3}, "simd_act_buckets_neon",
     {"fmla": 4 / 3}),
]


BRANCH = r"j|b$|b\.|cbn?z|tbn?z"


def functions(command, objdump):
    """Each function's instructions: address, name, operands."""
    with tempfile.TemporaryDirectory() as folder:
        source, thing = os.path.join(folder, "count.c"), os.path.join(folder, "count.o")
        with open(source, "w") as f:
            f.write(SOURCE)
        subprocess.run([*command, "-std=c11", "-O2", "-I", ROOT, "-c", source, "-o", thing], check=True)
        text = subprocess.run([objdump, "-d", "--no-show-raw-insn", thing], check=True, capture_output=True,
                              text=True).stdout
    found = {}
    for block in text.split("\n\n"):
        name = re.match(r"[0-9a-f]+ <(\S+)>:", block.strip())
        if name:
            found[name.group(1)] = [(int(a, 16), op, rest) for a, op, rest in
                                    re.findall(r"^\s*([0-9a-f]+):\s+(\S+)[ \t]*(.*)$", block, re.M)]
    return found


def shortest(body, first, last):
    """Instructions of the shortest way round a loop: what a block of NaNs takes beside it does not count."""
    at = {address: i for i, (address, _, _) in enumerate(body)}
    way = {first: (1, None)}
    for i in range(first, last):
        if i not in way:
            continue
        _, op, rest = body[i]
        target = re.search(r"\b([0-9a-f]+) <", rest)
        to = at.get(int(target.group(1), 16), -1) if target and re.match(BRANCH, op) else -1
        for following in ([] if re.match(r"jmp|b$|ret", op) else [i + 1]) + ([to] if i < to <= last else []):
            if following not in way or way[following][0] > way[i][0] + 1:
                way[following] = (way[i][0] + 1, i)
    names, i = [], last if last in way else None
    while i is not None:
        names.append(body[i][1])
        i = way[i][1]
    return collections.Counter(names)


def loops(body):
    """The instructions of each innermost loop."""
    at = {address: i for i, (address, _, _) in enumerate(body)}
    spans = []
    for i, (_, op, rest) in enumerate(body):
        target = re.search(r"\b([0-9a-f]+) <", rest)
        if target and re.match(BRANCH, op) and at.get(int(target.group(1), 16), i + 1) <= i:
            spans.append((at[int(target.group(1), 16)], i))
    for first, last in spans:
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in spans):
            yield shortest(body, first, last)


def per_element(found, name, marks):
    total = 0.0
    for mark, elements in marks.items():
        counted = [(sum(n for op, n in c.items() if re.match(mark + ("$" if mark.endswith("?") else ""), op)),
                    sum(c.values())) for c in loops(found["trni_" + name])]
        most, length = max(counted, key=lambda c: (c[0], -c[1]))
        total += length / (most * elements)
    return total


def main():
    x86 = functions(["gcc"], "objdump")
    arm = functions(sys.argv[1:] or ["aarch64-linux-gnu-gcc"], "aarch64-linux-gnu-objdump")
    print(f"{'':28}{'AVX2':>7}{'NEON':>7}{'ratio/2':>9}")
    for what, wide, wide_marks, narrow, narrow_marks in ROWS:
        a, b = per_element(x86, wide, wide_marks), per_element(arm, narrow, narrow_marks)
        print(f"{what:28}{a:7.3f}{b:7.3f}{b / a / 2:9.2f}")


if __name__ == "__main__":
    main()
