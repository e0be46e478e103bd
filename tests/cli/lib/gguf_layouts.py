"""GGUF files, written and decoded here with NumPy alone, and what fp8conv, mxq and modelrun make of them.

    gguf_layouts.py convert FP8CONV                 blocks become the nearest BF16, all else keeps its bytes
    gguf_layouts.py measure MXQ                     mxq sees those numbers: its figures are those of the dense array
    gguf_layouts.py refuse FP8CONV MXQ MODELRUN     one sentence, and nothing is written

KNOWN FROM: ggml's docs/gguf.md (the container), ggml-quants.c (dequantize_row_*: the loops that are followed here).
"""
import json, os, shutil, struct, sys
import numpy as np
from fp8conv import load_file, save, to_bf16
from quant_layouts import FP4, nearest_bf16, odd, run

R = np.random.default_rng(31)
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'data', 'ggml.gguf')

# ---- blocks: bytes [blocks, size] to binary64 [blocks, elements] ----


def half(b): return np.ascontiguousarray(b).view('<f2').astype(float)


def pairs(b): return np.concatenate([b & 15, b >> 4], 1).astype(int)


def q4_0(b): return half(b[:, :2]) * (pairs(b[:, 2:]) - 8)


def q8_0(b): return half(b[:, :2]) * b[:, 2:].view('i1')


def mxfp4(b): return FP4[pairs(b[:, 1:])] * np.where(b[:, :1] == 255, np.nan, np.exp2(b[:, :1].astype(float) - 127))


def q2_k(b):
    out, at = np.zeros((len(b), 256)), 0
    d, least = half(b[:, 80:82]), half(b[:, 82:84])
    for n in 0, 32:
        for shift in 0, 2, 4, 6:
            for l in 0, 16:
                s = b[:, at // 16, None].astype(int)
                out[:, at : at + 16] = d * (s & 15) * (b[:, 16 + n + l : 32 + n + l] >> shift & 3) - least * (s >> 4)
                at += 16
    return out


def q4_k(b):
    out, s = np.zeros((len(b), 256)), b[:, 4:16].astype(int)
    d, least = half(b[:, :2]), half(b[:, 2:4])
    for j in range(8):
        low = s[:, j] & 63 if j < 4 else s[:, j + 4] & 15 | s[:, j - 4] >> 6 << 4
        high = s[:, j + 4] & 63 if j < 4 else s[:, j + 4] >> 4 | s[:, j] >> 6 << 4
        q = b[:, 16 + j // 2 * 32 : 48 + j // 2 * 32] >> j % 2 * 4 & 15
        out[:, 32 * j : 32 * j + 32] = d * low[:, None] * q - least * high[:, None]
    return out


def q6_k(b):
    out, scale, d = np.zeros((len(b), 256)), b[:, 192:208].view('i1').astype(int), half(b[:, 208:210])
    for n in 0, 1:
        for l in range(32):
            low, more, top = (b[:, i].astype(int) for i in (64 * n + l, 64 * n + l + 32, 128 + 32 * n + l))
            for k, q in enumerate((low & 15, more & 15, low >> 4, more >> 4)):
                w = d[:, 0] * scale[:, 8 * n + l // 16 + 2 * k] * ((q | (top >> 2 * k & 3) << 4) - 32)
                out[:, 128 * n + 32 * k + l] = w
    return out


# name: number in the file, elements and bytes of a block, decoder, where FP16 and E8M0 stand
TYPES = {
    'F32': (0, 1, 4, None, ()), 'F16': (1, 1, 2, None, ()), 'BF16': (30, 1, 2, None, ()), 'I32': (26, 1, 4, None, ()),
    'F64': (28, 1, 8, None, ()), 'Q4_0': (2, 32, 18, q4_0, (0,)), 'Q8_0': (8, 32, 34, q8_0, (0,)),
    'Q2_K': (10, 256, 84, q2_k, (80, 82)), 'Q4_K': (12, 256, 144, q4_k, (0, 2)), 'Q6_K': (14, 256, 210, q6_k, (208,)),
    'MXFP4': (39, 32, 17, mxfp4, ()),
}


def drawn(kind, shape):
    """Bytes of blocks whose scales are finite: of all sizes, negative and subnormal ones as well."""
    _, elements, size, _, halves = TYPES[kind]
    b = R.integers(0, 256, (int(np.prod(shape)) // elements, size)).astype(np.uint8)
    for at in halves:
        b[:, at : at + 2] = (R.integers(0, 0x7C00, len(b)) | R.integers(0, 2, len(b)) << 15).astype('<u2')[:, None].view('u1')
    if kind == 'MXFP4':
        b[:, 0] = R.integers(0, 250, len(b))
    return b.tobytes()


def dense(kind, data, shape):
    _, _, size, decode, _ = TYPES[kind]
    return decode(np.frombuffer(data, 'u1').reshape(-1, size)).reshape(shape)


# ---- the file ----


def text(s): return struct.pack('<Q', len(s.encode())) + s.encode()


def key(name, value):
    return text(name) + (struct.pack('<I', 8) + text(value) if isinstance(value, str) else struct.pack('<II', 4, value))


def write(path, tensors, keys=(('general.architecture', 'llama'),), version=3):
    """tensors: name, kind or (number, kind's bytes), shape with the axis that runs fastest last, bytes."""
    head = b'GGUF' + struct.pack('<IQQ', version, len(tensors), len(keys)) + b''.join(key(*k) for k in keys)
    data = b''
    for name, kind, shape, bytes_of in tensors:
        number = TYPES[kind][0] if kind in TYPES else kind
        head += text(name) + struct.pack('<I', len(shape)) + struct.pack(f'<{len(shape)}Q', *shape[::-1])
        head += struct.pack('<IQ', number, len(data))
        data += bytes_of + bytes(-len(bytes_of) % 32)
    whole = head + bytes(-len(head) % 32) + data
    open(path, 'wb').write(whole)
    return whole


MODEL = [
    (name, kind, shape, R.standard_normal(shape).astype('<f4').tobytes() if kind == 'F32' else drawn(kind, shape))
    for name, kind, shape in [
        ('token_embd.weight', 'Q6_K', (5, 512)), ('blk.0.attn_norm.weight', 'F32', (512,)),
        ('blk.0.attn_q.weight', 'Q4_K', (7, 512)), ('blk.0.attn_k.weight', 'Q4_0', (3, 96)),
        ('blk.0.attn_v.weight', 'Q8_0', (9, 32)), ('blk.0.ffn_up_exps.weight', 'MXFP4', (2, 3, 64)),
        ('blk.0.ffn_down.weight', 'F16', (4, 6)), ('blk.0.ffn_gate.weight', 'Q2_K', (2, 256)),
        ('blk.0.bias', 'BF16', (3,)), ('rope.ids', 'I32', (2,)), ('blk.0.wide', 'F64', (1, 3)),
    ]
]


def ggml():
    kinds, shapes = ['F32', 'F16', 'Q4_0', 'Q8_0', 'Q4_K', 'Q6_K', 'MXFP4', 'Q2_K'], [(512,), (3, 256), (3, 2, 256)]
    for i, kind in enumerate(kinds):
        shape = shapes[i % 3]
        size = int(np.prod(shape)) // TYPES[kind][1] * TYPES[kind][2]
        yield f'blk.{i}.weight', kind, shape, ((37 * np.arange(size) + 11 * i) % 101).astype(np.uint8).tobytes()


# ---- what becomes of them ----


def same(path, tensors):
    found, metadata = load_file(path)
    assert set(found) == {t[0] for t in tensors}, (path, set(found))
    for name, kind, shape, data in tensors:
        want = data
        if TYPES[kind][3]:
            want = to_bf16(nearest_bf16(dense(kind, data, shape)).astype(np.float32)).tobytes()
        assert found[name][0] == ('BF16' if TYPES[kind][3] else kind), (name, found[name][0])
        assert tuple(found[name][1]) == shape, (name, found[name][1])
        assert found[name][2] == want, (path, name)
    return metadata


def convert(program):
    write('m.gguf', MODEL)
    write('2.gguf', MODEL, version=2, keys=())
    for path, tensors in (('m.gguf', MODEL), ('2.gguf', MODEL), (DATA, list(ggml()))):
        for options in ((), ('--verify', '--force')):
            done = run(program, path, 'o.safetensors', '--gguf', 'bf16', *options)
            assert done.returncode == 0 and not done.stderr, (path, done.stderr)
            metadata = same('o.safetensors', tensors)
        assert 'Verified' in done.stdout and 'llama.cpp' in done.stdout and 'attn_q' in done.stdout, done.stdout
        os.remove('o.safetensors')
        done = run(program, path, '--check', '--gguf', 'bf16')
        assert done.returncode == 0 and 'Verified' not in done.stdout and not os.path.exists('o.safetensors')
    assert metadata['general.architecture'] == 'trn' or metadata['format'] == 'pt', metadata
    nan = bytes([255]) + bytes(range(16))  # a scale that is NaN, and a zero with a sign
    write('n.gguf', [('nan', 'MXFP4', (32,), nan), ('zero', 'MXFP4', (32,), bytes([127]) + bytes([0x80] * 16))])
    assert run(program, 'n.gguf', 'n.safetensors', '--gguf', 'bf16', '--verify').returncode == 0
    found, _ = load_file('n.safetensors')
    assert (np.frombuffer(found['nan'][2], '<u2') & 0x7FFF > 0x7F80).all()
    assert np.frombuffer(found['zero'][2], '<u2').tolist() == [0] * 16 + [0x8000] * 16
    large = bytes([253]) + bytes([0x55] * 16)  # 3 * 2^126 is a number of BF16, 4 and 6 * 2^126 are not
    write('l.gguf', [('large', 'MXFP4', (32,), large)])
    assert run(program, 'l.gguf', 'l.safetensors', '--gguf', 'bf16', '--verify').returncode == 0
    write('l.gguf', [('large', 'MXFP4', (32,), large[:5] + b'\x66' + large[6:])])
    done = run(program, 'l.gguf', 'h.safetensors', '--gguf', 'bf16')
    assert done.returncode == 1 and '2 finite numbers would become infinity' in done.stderr, done.stderr
    assert not os.path.exists('h.safetensors')
    second(program)


def second(program):
    """What was written is a checkpoint like any other: its matrices become FP8, not the embedding or the router."""
    write('m.gguf', [(n, 'Q8_0', (64, 64), drawn('Q8_0', (64, 64))) for n in (
        'token_embd.weight', 'output.weight', 'blk.0.attn_q.weight', 'blk.0.ffn_gate_inp.weight', 'blk.0.ffn_gate.weight')])
    assert run(program, 'm.gguf', 'b.safetensors', '--gguf', 'bf16').returncode == 0
    done = run(program, 'b.safetensors', 'q.safetensors', '--verify')
    assert done.returncode == 0, done.stderr
    eight = {n for n, t in load_file('q.safetensors')[0].items() if t[0] == 'F8_E4M3'}
    assert eight == {'blk.0.attn_q.weight', 'blk.0.ffn_gate.weight'}, eight


def rows_of(program, *arguments):
    done = run(program, *arguments, '--format', 'fp8_e4m3', '--json', '-')
    assert done.returncode == 0, (arguments, done.stderr)
    return {r['tensor']: {k: v for k, v in r.items() if k not in ('tensor', 'type')} for r in json.loads(done.stdout)['rows']}


def measure(program):
    for path, tensors in (('m.gguf', MODEL), (DATA, list(ggml()))):
        if tensors is MODEL:
            write(path, tensors)
        seen = rows_of(program, path)
        assert set(seen) == {t[0] for t in tensors if t[1] != 'I32'}, set(seen)
        for name, kind, shape, data in tensors:
            if not TYPES[kind][3]:
                continue
            np.save('want.npy', odd(dense(kind, data, shape)).reshape(-1, shape[-1]))
            want = rows_of(program, 'want.npy')['want.npy']
            assert seen[name] == want, (path, name, seen[name], want)


# ---- what is refused ----


def sentence(program, *arguments):
    before = sorted(os.listdir('.'))
    done = run(program, *arguments)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and len(lines) == 1 and not done.stdout, (arguments, done.returncode, done.stdout, done.stderr)
    assert sorted(os.listdir('.')) == before, (arguments, os.listdir('.'))
    return lines[0]


def refuse(program, mxq, modelrun):
    whole = write('m.gguf', MODEL[1:4])
    to = 'o.safetensors', '--gguf', 'bf16'
    assert '--gguf bf16' in sentence(program, 'm.gguf', 'o.safetensors')
    for flag in (['--quantize'], ['--to', 'ocp'], ['--mode', 'requant'], ['--scales', 'channel'], ['--mxfp4', 'fp8'],
                 ['--include', '*'], ['--json', 'r.json'], ['--each'], ['--block', '32x32']):
        said = sentence(program, 'm.gguf', *to, *flag)
        assert flag[0] in said and 'second run' in said, said
    for form in 'fp8', 'mx', 'f16':
        assert 'second run' in sentence(program, 'm.gguf', 'o.safetensors', '--gguf', form)
    assert '--gguf bf16' in sentence(program, '--advise', 'm.gguf')
    assert 'input' in sentence(program, 'm.gguf', 'm.gguf', '--gguf', 'bf16', '--force')
    os.makedirs('folder', exist_ok=True)
    shutil.copy('m.gguf', 'folder')
    assert 'directory' in sentence(program, 'm.gguf', 'folder', '--gguf', 'bf16')
    for arguments in ('folder', 'o.safetensors'), ('folder', '--check'):
        assert 'it is GGUF' in sentence(program, *arguments)
    for path in 'm.gguf', 'folder':
        said = sentence(modelrun, path, '--text', 'm.gguf')
        assert 'GGUF' in said and 'save_pretrained' in said, said
    save('plain.safetensors', {'x': ('F32', [2], bytes(8))})
    assert 'no GGUF' in sentence(program, 'plain.safetensors', *to)
    for number, name, elements, size in ((16, 'IQ2_XXS', 256, 66), (18, 'IQ3_XXS', 256, 98), (19, 'IQ1_S', 256, 50),
                                         (34, 'TQ1_0', 256, 54), (40, 'NVFP4', 64, 36), (9, 'Q8_1', 32, 36)):
        write('t.gguf', [MODEL[1], ('w', number, (2, elements), bytes(2 * size))])
        for said in sentence(program, 't.gguf', *to), sentence(program, 't.gguf', '--check', *to[1:]), sentence(mxq, 't.gguf'):
            assert name in said and 'w: ' in said, said
    for number in 4, 31, 99:
        write('t.gguf', [('w', number, (2, 256), bytes(1024))])
        for said in sentence(program, 't.gguf', *to), sentence(mxq, 't.gguf'):
            assert 'w' in said, said
    start = len(whole) - len(whole) % 32
    for size in [*range(4, 400, 13), start // 2, len(whole) - 64]:
        open('t.gguf', 'wb').write(whole[:size])
        sentence(program, 't.gguf', *to)
        sentence(mxq, 't.gguf')
    write('t.gguf', MODEL[1:2], keys=(('split.count', 3),))
    assert 'merge' in sentence(program, 't.gguf', *to)


if __name__ == '__main__':
    {'convert': convert, 'measure': measure, 'refuse': refuse}[sys.argv[1]](*sys.argv[2:])
