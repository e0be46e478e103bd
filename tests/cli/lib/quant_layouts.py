"""Quantised checkpoints in every layout that io/quant reads, each with the dense numbers that it stands for; NumPy alone.

    quant_layouts.py convert FP8CONV     each becomes BF16, the nearest to those numbers, and FP8 that is verified
    quant_layouts.py measure MXQ         mxq sees those numbers: its figures are those of the dense array
    quant_layouts.py run MODELRUN        a tiny model of them has the logits of the dense one
    quant_layouts.py refuse FP8CONV MXQ  what is not told, is refused in one sentence that names it; nothing is written
    quant_layouts.py advise FP8CONV      --advise says of each what the conversion then does
    quant_layouts.py foreign FP8CONV MXQ MODELRUN     what is not read, is refused by its format's name
"""
import json, os, shutil, subprocess, sys
import numpy as np
from fp8conv import NEURON, OCP, WIDTH, f32, load, numbers, save, spread, to_bf16

WIDTH.update({'I32': 4, 'I64': 8, 'I8': 1, 'F4': 0.5, 'U32': 4, 'F8_E5M2': 1})
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
E5M2 = np.array([(-1) ** (c >> 7) * (2.0**-16 * (c & 3) if not c >> 2 & 31 else (4 + (c & 3)) * 2.0 ** ((c >> 2 & 31) - 17)) for c in range(256)])
R = np.random.default_rng(30)

# ---- tensors ----


def raw(kind, a, dtype=np.uint8):
    return kind, list(np.shape(a)), np.ascontiguousarray(a).astype(dtype).tobytes()


def words(a):
    return raw('I32', np.asarray(a).astype(np.uint64).astype(np.uint32), '<u4')


def real(kind, a):
    """The tensor, and its numbers as they are kept."""
    if kind == 'BF16':
        t = kind, list(np.shape(a)), to_bf16(np.atleast_1d(np.asarray(a, np.float32))).tobytes()
    else:
        t = raw(kind, np.asarray(a), {'F32': '<f4', 'F16': '<f2'}[kind])
    return t, numbers(t).astype(float).reshape(np.shape(a))


def codes8(*shape):
    c = R.integers(0, 256, shape)
    return np.where(c & 127 == 127, 1, c).astype(np.uint8)


def small(*shape):
    return R.random(shape) * 0.01 + 1e-4


def block(scale, b, shape):
    return np.repeat(np.repeat(scale, b[0], -2)[..., : shape[-2], :], b[1], -1)[..., : shape[-1]]


# ---- layouts: (base, n, k) -> tensors, {name that is written: dense}; beside them the configuration ----


def fp8(name, scale, shape=lambda n, k: (), kind='F32', b=None, table=OCP, e8=None, type='F8_E4M3'):
    """`name` and `scale` are patterns; b: rows and columns of a block."""

    def make(base, n, k):
        c = codes8(n, k) if table is OCP else R.integers(0, 124, (n, k)).astype(np.uint8)
        s = shape(n, k)
        if e8:
            byte = R.integers(110, 125, s)
            t, x = raw(e8, byte), np.exp2(byte - 127.0)
        else:
            t, x = real(kind, small(*s))
        flat = x.reshape(s[0], s[2]) if len(s) == 4 else x.reshape(n, 1) if len(s) == 3 else x
        if flat.ndim == 1 and flat.size == n:
            flat = flat[:, None]
        full = block(flat, b, (n, k)) if b and flat.size > 1 else flat if flat.size > 1 else flat.reshape(())
        w = name.format(base=base)
        return {w: raw(type, c), scale.format(base=base): t}, {w: table[c] * full}

    return make


def parts(size, b):
    return -(-size // b)


def int8(name, scale, shape, kind='BF16', zero=None, b=None):
    def make(base, n, k):
        q = R.integers(-128, 128, (n, k))
        t, x = real(kind, small(*shape(n, k)))
        if x.ndim == 1 and x.size == n:
            x = x[:, None]
        w, tensors = name.format(base=base), {}
        z = 0
        if zero:
            z = R.integers(-100, 100, shape(n, k))
            tensors[zero.format(base=base)] = raw('I8', z & 255)
        full = lambda a: block(a, b, (n, k)) if b else a
        x, z = full(x) if np.size(x) > 1 else x.reshape(()), full(z) if np.size(z) > 1 else np.reshape(z, ()) if zero else 0
        return {w: raw('I8', q & 255), scale.format(base=base): t, **tensors}, {w: (q - z) * x}

    return make


def mxfp4(name, scale, kind='U8', scales='U8'):
    def make(base, n, k):
        c, e = R.integers(0, 256, (n, k // 2)), R.integers(110, 130, (n, k // 32))
        t = raw(kind, c)
        if kind == 'F4':
            t = kind, [n, k], t[2]
        w = name.format(base=base)
        x = FP4[np.stack([c & 15, c >> 4], -1).reshape(n, k)] * np.exp2(e - 127.0).repeat(32, 1)
        return {w: t, scale.format(base=base): raw(scales, e)}, {w.replace('_packed', ''): x}

    return make


def nvfp4(packed):
    def make(base, n, k):
        c, e = R.integers(0, 256, (n, k // 2)), R.integers(1, 0x7F, (n, k // 16)).astype(np.uint8)
        x = FP4[np.stack([c & 15, c >> 4], -1).reshape(n, k)] * OCP[e].repeat(16, 1)
        two, v = real('F32', np.array([37.3 if packed else 2.3e-4]))
        name = base + '.weight_packed' if packed else base + '.weight'
        second = base + '.weight_global_scale' if packed else base + '.weight_scale_2'
        return {name: raw('U8', c), base + '.weight_scale': raw('F8_E4M3', e), second: two}, {
            base + '.weight': x / v[0] if packed else x * v[0]
        }

    return make


ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def eight(v, order=range(8)):
    return sum((v[..., o::8].astype(np.uint64) & 15) << np.uint64(4 * i) for i, o in enumerate(order))


def awq(g):
    def make(base, n, k):
        group = k if g < 0 else g
        q, z = R.integers(0, 16, (k, n)), R.integers(0, 16, (parts(k, group), n))
        t, s = real('F16', small(parts(k, group), n))
        full = lambda a: a.repeat(group, 0)[:k]
        return {
            base + '.qweight': words(eight(q, ORDER)),
            base + '.qzeros': words(eight(z, ORDER)),
            base + '.scales': t,
        }, {base + '.weight': ((q - full(z)) * full(s)).T}

    return make


def gptq(g, less=1, order=False, bits=4):
    def make(base, n, k):
        each, top = 32 // bits, 1 << bits
        groups = parts(k, g)
        q, z = R.integers(0, top, (k, n)), R.integers(1, top, (groups, n))
        t, s = real('F16', small(groups, n))
        idx = R.permutation(np.arange(k) // g) if order else np.arange(k) // g
        pack = lambda v, axis: sum(
            v.take(range(i, v.shape[axis], each), axis).astype(np.uint64) << np.uint64(bits * i) for i in range(each)
        )
        return {
            base + '.qweight': words(pack(q, 0)),
            base + '.qzeros': words(pack((z - less) & (top - 1), 1)),
            base + '.scales': t,
            base + '.g_idx': words(idx),
        }, {base + '.weight': ((q - z[idx]) * s[idx]).T}

    return make


def packed(g, zero=False):
    def make(base, n, k):
        group = k if g < 0 else g
        q = R.integers(-8, 8, (n, k))
        t, s = real('BF16', small(n, parts(k, group)))
        z = R.integers(0, 16, (n, parts(k, group))) if zero else np.full((n, parts(k, group)), 8)
        full = lambda a: a.repeat(group, 1)[:, :k]
        more = {}
        if zero:
            more[base + '.weight_zero_point'] = words(sum((z[i::8].astype(np.uint64)) << np.uint64(4 * i) for i in range(8)))
        return {
            base + '.weight_packed': words(eight(q + 8)),
            base + '.weight_scale': t,
            base + '.weight_shape': raw('I64', [n, k], '<i8'),
            **more,
        }, {base + '.weight': (q + 8 - full(z)) * full(s)}

    return make


NF = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
      -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
      0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def nf4(size):
    def make(base, n, k):
        c = R.integers(0, 16, n * k)
        t, s = real('F32', small(n * k // size) * 10)
        said = json.dumps({'quant_type': 'nf4', 'blocksize': size, 'dtype': 'bfloat16', 'shape': [n, k]}).encode()
        w = base + '.weight'
        x = (np.array(NF, np.float32)[c] * s.astype(np.float32).repeat(size)).astype(np.float32)
        return {
            w: raw('U8', (c[0::2] << 4 | c[1::2])[:, None]),
            w + '.absmax': t,
            w + '.quant_map': raw('F32', np.array(NF), '<f4'),
            w + '.quant_state.bitsandbytes__nf4': raw('U8', np.frombuffer(said, np.uint8)),
        }, {w: x.reshape(n, k).astype(float)}

    return make


def q(**fields):
    return {'quantization_config': fields}


def ct(**weights):
    return q(quant_method='compressed-tensors', config_groups={'group_0': {'targets': ['Linear'], 'weights': weights}})


row, one, column = (lambda n, k: (n, 1)), (lambda n, k: (1,)), (lambda n, k: (1, k))
W = '{base}.weight'
grid = lambda a, b: lambda n, k: (parts(n, a), parts(k, b))
FINE = {'quant_method': 'fp8', 'weight_block_size': [128, 128]}
LAYOUTS = {
    **{f'fp8 {w} {s}': (fp8(w, s, sh, kind), q(quant_method='fp8')) for w, s, sh, kind in (
        (W, W + '_scale', one, 'F32'), (W, W + '_scale_inv', lambda n, k: (), 'BF16'), (W, '{base}.scale', row, 'F32'),
        (W, '{base}.scale_weight', lambda n, k: (n,), 'F16'), (W, '{base}.qscale_weight', lambda n, k: (), 'BF16'),
        (W, '{base}.weights_scaling_factor', one, 'F32'), (W, '{base}.scales', row, 'BF16'),
        (W, '{base}.weight.scale', one, 'F32'), (W, '{base}.wscale', row, 'F32'), (W, '{base}.w_scale', row, 'F32'),
        (W, '{base}._weight_scale', row, 'F32'), (W, '{base}.weight._scale', row, 'BF16'),
        ('{base}._weight_qdata', '{base}._weight_scale', row, 'F32'),
        ('{base}.weight._data', '{base}.weight._scale', lambda n, k: (), 'F32'),
        (W, W + '_scale', lambda n, k: (n, 1, 1), 'F32'), (W, '{base}.weight_scaling_factor', column, 'F32'))},
    'fp8 of 1 column': (fp8(W, W + '_scale', column), q(quant_method='fp8')),
    'e5m2': (fp8(W, W + '_scale', row, table=E5M2, type='F8_E5M2'), {}),
    'blocks 128': (fp8(W, W + '_scale_inv', grid(128, 128), b=(128, 128)), q(**FINE)),
    'blocks 64 x 32': (fp8(W, W + '_scale_inv', grid(64, 32), 'BF16', (64, 32)),
                       q(quant_method='fp8', weight_block_size=[64, 32])),
    'blocks 64, text_config': (fp8(W, W + '_scale_inv', grid(64, 64), b=(64, 64)),
                               {'text_config': q(quant_method='fp8', weight_block_size=[64, 64])}),
    'blocks 48, compressed': (fp8(W, W + '_scale', grid(48, 48), b=(48, 48)),
                              ct(num_bits=8, type='float', strategy='block', block_structure=[48, 48])),
    'blocks 48, a text': (fp8(W, W + '_scale', grid(48, 16), b=(48, 16)),
                          ct(num_bits=8, type='float', strategy='block', block_structure='48x16')),
    'groups of 48': (fp8(W, W + '_scale', grid(1, 48), b=(1, 48)), ct(num_bits=8, type='float', group_size=48)),
    'modelopt blocks': (fp8(W, W + '_scale', lambda n, k: (parts(n, 128), 1, parts(k, 128), 1), b=(128, 128)),
                        q(quant_method='modelopt', quant_algo='FP8_PB_WO')),
    'blocks of powers': (fp8(W, W + '_scale_inv', grid(128, 128), b=(128, 128), e8='U8'), q(**FINE)),
    'mxfp8': (fp8(W, W + '_scale', grid(1, 32), b=(1, 32), e8='U8'), q(quant_method='mxfp8')),
    'mxfp8, typed': (fp8(W, '{base}.scale', grid(1, 32), b=(1, 32), e8='F8_E8M0'), {}),
    'int8': (int8(W, W + '_scale', row), q(quant_method='compressed-tensors', format='int-quantized')),
    'int8, one': (int8(W, W + '_scale', one, 'F32'), q(quant_method='compressed-tensors', format='int-quantized')),
    'int8, [N]': (int8(W, '{base}.scale', lambda n, k: (n,), 'F16'), {}),
    'int8, zero points': (int8(W, W + '_scale', row, zero=W + '_zero_point'), ct(num_bits=8, type='int', symmetric=False)),
    'int8, groups': (int8(W, W + '_scale', grid(1, 32), b=(1, 32)), ct(num_bits=8, type='int', group_size=32)),
    'int8, torchao': (int8('{base}._weight_qdata', '{base}._weight_scale', row, 'F32'), {}),
    'int8, quanto': (int8('{base}.weight._data', '{base}.weight._scale', row), {}),
    'mxfp4, quark': (mxfp4(W, W + '_scale'), {}),
    'mxfp4, packed': (mxfp4(W + '_packed', W + '_scale', scales='F8_E8M0'), q(quant_method='compressed-tensors')),
    'mxfp4, F4': (mxfp4(W, '{base}.scale', 'F4', 'F8_E8M0'), {}),
    'deepseek v4': (mxfp4(W, '{base}.scale', 'I8', 'F8_E8M0'), {'expert_dtype': 'fp4'}),
    'nvfp4': (nvfp4(False), q(quant_method='modelopt', quant_algo='NVFP4')),
    'nvfp4, over': (nvfp4(True), q(quant_method='compressed-tensors', format='nvfp4-pack-quantized')),
    'awq': (awq(32), q(quant_method='awq', bits=4, group_size=32, version='gemm', zero_point=True)),
    'awq, 64': (awq(64), q(quant_method='awq', w_bit=4, q_group_size=64)),
    'awq, whole': (awq(-1), q(quant_method='awq', bits=4, group_size=-1)),
    'gptq': (gptq(32), q(quant_method='gptq', bits=4, group_size=32, desc_act=False, sym=False, checkpoint_format='gptq')),
    'gptq v2': (gptq(16, 0), q(quant_method='gptq', bits=4, group_size=16, checkpoint_format='gptq_v2')),
    'gptq, order': (gptq(32, order=True), q(quant_method='gptq', bits=4, group_size=32, desc_act=True)),
    'gptq, 8': (gptq(32, bits=8), q(quant_method='gptq', bits=8, group_size=32)),
    'gptq, AutoRound': (gptq(32), q(quant_method='auto-round', bits=4, group_size=32, sym=False, data_type='int',
                                    packing_format='auto_round:auto_gptq')),
    'gptq, AutoRound 0.3': (gptq(32), q(quant_method='intel/auto-round', bits=4, group_size=32, sym=False,
                                        backend='auto_round:gptq:exllamav2')),
    'awq, AutoRound': (awq(32), q(quant_method='auto-round', bits=4, group_size=32, packing_format='auto_round:auto_awq')),
    'gptq, a rule for 8': (gptq(32, bits=8), q(quant_method='gptq', bits=4, group_size=64, dynamic={
        '-:.*lm_head.*': {}, r'+:model\.layers\.\d+\..*_proj': {'bits': 8, 'group_size': 32}, '.*': {'bits': 2}})),
    'gptq, layers of 8': (gptq(32, bits=8), q(quant_method='auto-round', bits=4, group_size=64, packing_format='auto_gptq',
                          extra_config={f'model.layers.0.{m}_proj': {'bits': 8, 'group_size': 32} for m in
                                        [f'self_attn.{p}' for p in 'qkvo'] + [f'mlp.{p}' for p in ('up', 'gate', 'down')]})),
    'packed': (packed(32), {**ct(num_bits=4, type='int', group_size=32, symmetric=True)}),
    'packed, rows': (packed(-1), ct(num_bits=4, type='int', strategy='channel', symmetric=True)),
    'packed, zeros': (packed(32, True), ct(num_bits=4, type='int', group_size=32, symmetric=False)),
    'nf4': (nf4(64), q(quant_method='bitsandbytes', load_in_4bit=True)),
    'nf4, 128': (nf4(128), q(quant_method='bitsandbytes', load_in_4bit=True)),
}
for name in list(LAYOUTS):
    if name.startswith(('packed', 'packed,')):
        LAYOUTS[name][1]['quantization_config']['format'] = 'pack-quantized'


def expert(shape, scale, config, scale_name='_weight_scale', full=None):
    def make(base, n, k):
        c = codes8(*shape)
        t, x = real('F32', small(*scale))
        w = base + '.experts.gate_up_proj'
        return {w: raw('F8_E4M3', c), w + scale_name: t, w + '_input_scale': real('F32', np.float32(0.02))[0]}, {
            w: OCP[c] * (full(x) if full else x)
        }

    return make, config


SIZES = {'hidden_size': 64, 'moe_intermediate_size': 24}
LAYOUTS.update({
    'experts, one': expert((2, 64, 48), (), {'model_type': 'llama4'}),
    'experts, [E]': expert((2, 64, 48), (2,), {}, full=lambda x: x[:, None, None]),
    'experts, [E, 1]': expert((2, 64, 48), (2, 1), {}, full=lambda x: x[:, :, None]),
    'experts, [E, 1, N]': expert((2, 64, 48), (2, 1, 48), {}, '_scale'),
    'experts, [E, N], outputs last': expert((2, 64, 48), (2, 48), SIZES, full=lambda x: x[:, None, :]),
    'experts, [E, N], outputs first': expert((2, 48, 64), (2, 48), SIZES, full=lambda x: x[:, :, None]),
    'experts, square, by model': expert((3, 64, 64), (3, 64), {'model_type': 'gpt_oss'}, full=lambda x: x[:, None, :]),
    'experts, square, newer': expert((3, 64, 64), (3, 64), {'text_config': {'model_type': 'qwen3_5_moe'}}, full=lambda x: x[:, :, None]),
    'experts, blocks': expert((2, 160, 200), (2, 2, 2), q(**FINE), '_scale_inv', lambda x: block(x, (128, 128), (160, 200))),
})
LATER = ('experts',)

# ---- files ----


def put(path, config, tensors):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    save(os.path.join(path, 'model.safetensors'), tensors, {'format': 'pt'})
    json.dump({'model_type': 'x', **config}, open(os.path.join(path, 'config.json'), 'w'), indent=1)


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def nearest_bf16(x):
    _, e = np.frexp(x)
    unit = np.exp2(np.maximum(e - 8.0, -133))
    return np.where(x == 0, x, np.rint(x / unit) * unit)


def odd(x):
    """binary32, cut off, with its last bit set where something was lost."""
    y = x.astype(np.float32)
    away = np.abs(y.astype(float)) > np.abs(x)
    bits = y.view(np.uint32) - away
    return np.where(y == x, y, (bits | 1).astype(np.uint32).view(np.float32))


FORMS = ('--fp8', '--int8', '--int4', '--nf4', '--mxfp4', '--nvfp4')


def all_as(form):
    return [word for flag in FORMS for word in (flag, form)]


def made():
    for name, (make, config) in LAYOUTS.items():
        one, want = make('model.layers.0.mlp.up_proj', 160, 192)
        if not name.startswith(LATER):
            more, wanted = make('model.layers.0.mlp.down_proj', 64, 256)
            one, want = {**one, **more}, {**want, **wanted}
        put('q', config, {**one, 'model.norm.weight': real('BF16', np.ones(8))[0]})
        yield name, want, one


def convert(program):
    for name, want, tensors in made():
        shutil.rmtree('o', ignore_errors=True)
        done = run(program, 'q', 'o', *all_as('bf16'), '--verify')
        assert done.returncode == 0, (name, done.stderr)
        after = load('o/model.safetensors')[0]
        assert set(after) == {*want, 'model.norm.weight'}, (name, sorted(after))
        for n, x in want.items():
            assert after[n][0] == 'BF16' and after[n][1] == list(x.shape), (name, n, after[n][:2])
            assert (numbers(after[n]).reshape(x.shape) == nearest_bf16(x)).all(), (name, n)
        for more in ([], ['--scales', 'channel', '--mode', 'requant']):
            if name == 'e5m2' or (more and 'experts' in name and 'E' in name and 'N' not in name):
                continue
            shutil.rmtree('o', ignore_errors=True)
            done = run(program, 'q', 'o', *all_as('fp8'), '--verify', *more)
            assert done.returncode == 0, (name, more, done.stderr)
            after = load('o/model.safetensors')[0]
            for n, x in want.items():
                assert after[n][0] == 'F8_E4M3' and after[n][1] == list(x.shape), (name, n, after[n][:2])
        if 'awq' in name or name == 'gptq' or 'packed' in name and 'mxfp4' not in name:
            shutil.rmtree('o', ignore_errors=True)
            assert run(program, 'q', 'o', *all_as('fp8')).returncode == 0
            after = load('o/model.safetensors')[0]
            for n, x in want.items():
                s = numbers(after[n + '_scale_inv']).astype(float)
                y = NEURON[np.frombuffer(after[n][2], np.uint8).reshape(x.shape)] * s.repeat(x.shape[1] // s.shape[1], 1)
                assert (y == x).all(), (name, n, 'codes of four bits are not kept')
    print(len(LAYOUTS), 'layouts')


def measure(program):
    for name, want, tensors in made():
        if 'down' in name:
            continue
        for n, x in want.items():
            code = next(t for t in tensors if tensors[t][0] not in ('F32', 'BF16', 'F16') and t.startswith(n.split('.weight')[0]) and not t.endswith(('scale', 'scale_inv', 'point', 'shape', 'zeros', 'idx', 'nf4', 'scales')))
            np.save('want.npy', odd(x).reshape(-1, x.shape[-1]))
            rows = []
            for arguments in (['q', '--tensor', code], ['want.npy']):
                done = run(program, *arguments, '--format', 'fp8_e4m3', '--json', '-')
                assert done.returncode == 0, (name, n, done.stderr)
                rows.append([{k: v for k, v in r.items() if k != 'tensor'} for r in json.loads(done.stdout)['rows']])
            assert rows[0] == rows[1], (name, n, rows)
        done = run(program, 'q', '--format', 'fp8_e4m3', '--json', '-')
        assert done.returncode == 0, (name, done.stderr)
        seen = {r['tensor'] for r in json.loads(done.stdout)['rows']}
        assert len(seen) == len(want) + 1, (name, seen)


LLAMA = {
    'model_type': 'llama', 'vocab_size': 32, 'hidden_size': 64, 'intermediate_size': 128, 'num_hidden_layers': 1,
    'num_attention_heads': 2, 'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'tie_word_embeddings': True,
    'max_position_embeddings': 64, 'hidden_act': 'silu',
}
SHAPES = {
    **{f'self_attn.{p}_proj': (64, 64) for p in 'qkvo'}, 'mlp.gate_proj': (128, 64), 'mlp.up_proj': (128, 64),
    'mlp.down_proj': (64, 128),
}


def run_model(program):
    open('t.txt', 'w').write('1 5 9 2 30 7 7 8')
    for name, (make, config) in LAYOUTS.items():
        if name.startswith(LATER) or name == 'nf4, 128':
            continue
        plain = {'model.embed_tokens.weight': real('F32', R.standard_normal((32, 64)))[0]}
        for n in ('model.norm', 'model.layers.0.input_layernorm', 'model.layers.0.post_attention_layernorm'):
            plain[n + '.weight'] = real('F32', np.ones(64))[0]
        there, dense = dict(plain), dict(plain)
        for module, (n, k) in SHAPES.items():
            base = 'model.layers.0.' + module
            tensors, want = make(base, n, k)
            there.update(tensors)
            dense[base + '.weight'] = raw('F32', odd(next(iter(want.values()))), '<f4')
        put('m', {**LLAMA, **config, 'model_type': 'llama'}, there)
        if 'text_config' in config:
            put('m', {'text_config': {**LLAMA, **config['text_config']}}, there)
        put('d', LLAMA, dense)
        for folder in 'm', 'd':
            done = run(program, folder, '--tokens', 't.txt', '--logits', folder + '.npy', '--setting', 'f32')
            assert done.returncode == 0, (name, folder, done.stderr)
        assert (np.load('m.npy') == np.load('d.npy')).all(), name


# ---- what is not told ----


def sentence(program, what, *arguments):
    shutil.rmtree('o', ignore_errors=True)
    done = run(program, *arguments)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and len(lines) == 1 and not done.stdout, (what, done.returncode, done.stdout, done.stderr)
    assert not os.path.exists('o'), what
    return lines[0]


def refuse(program, *others):
    w = 'model.layers.0.mlp.up_proj'
    named = (
        '{w}.weight_scl', '{w}.s', '{w}.dequant', '{w}.weight_absmax', '{w}.descale', '{w}.weight.sf', '{w}_scl',
        'scales.{w}', 'model.layers.0.mlp.scale.up_proj', '{w}.weight_quant_step', '{w}.w_s', '{w}.weight_exponent',
        '{w}.inv_norm_factor', '{w}_scale', '{w}.zero', 'model.layers.0.mlp.weight_scale_up_proj',
    )
    for kind, c in ('F8_E4M3', codes8(64, 48)), ('F8_E5M2', codes8(64, 48) & 0x3F):
        for n in named:
            n = n.format(w=w)
            for shape in ((), (64, 1)):
                put('q', {}, {w + '.weight': raw(kind, c), n: real('F32', small(*shape))[0]})
                said = sentence(program, n, 'q', 'o', '--fp8', 'bf16')
                assert w + '.weight' in said and n in said and '--scale-name' in said, said
                for other in others:
                    said = sentence(other, n, 'q')
                    assert n in said and '--scale-name' in said, said
    put('q', {}, {w + '.weight': raw('F8_E4M3', codes8(64, 48)), w + '.s': real('F32', small(64, 1))[0]})
    for program_, more in (program, ['o', '--fp8', 'bf16']), *((o, ['--format', 'fp8_e4m3']) for o in others):
        shutil.rmtree('o', ignore_errors=True)
        assert run(program_, 'q', *more, '--scale-name', '{base}.s').returncode == 0
        shutil.rmtree('o', ignore_errors=True)
        assert run(program_, 'q', *more, '--no-rules').returncode == 0
    # what stands there and is none: biases, norms, scales of activations, of another matrix
    fine = {
        w + '.weight': raw('F8_E4M3', codes8(64, 48)), w + '.bias': real('BF16', np.ones(64))[0],
        w + '.input_scale': real('F32', np.ones(1))[0], 'model.layers.0.mlp.norm.weight': real('BF16', np.ones(48))[0],
        w + '.lora_A.weight': real('BF16', np.ones((4, 48)))[0], 'scaled_fp8': raw('F8_E4M3', np.zeros(0)),
        'model.layers.0.mlp.up_proj_2.weight': raw('F8_E4M3', codes8(64, 48)),
        'model.layers.0.mlp.up_proj_2.weight_scale': real('F32', np.ones(1))[0],
    }
    put('q', {}, fine)
    shutil.rmtree('o', ignore_errors=True)
    done = run(program, 'q', 'o', '--each')
    assert done.returncode == 0 and 'have no scale, taken for 1: 1 (' in done.stdout, (done.stdout, done.stderr)
    for other in others:
        done = run(other, 'q')
        assert done.returncode == 0 and 'have no scale, taken for 1: 1 (' in done.stdout, (done.stdout, done.stderr)
    c = codes8(80, 96)

    def one(what, tensors, config, want, *more):
        put('q', config, tensors)
        said = sentence(program, what, 'q', 'o', *all_as('bf16'), *more)
        assert want in said, (what, said)
        for other in others:
            said = sentence(other, what, 'q')
            assert want in said, (what, said)

    s = lambda *shape: real('F32', small(*shape))[0]
    W8 = w + '.weight'
    one('blocks of 64 or 40', {W8: raw('F8_E4M3', c), W8 + '_scale_inv': s(2, 2)}, {}, 'fits blocks of 64 and of 40 rows')
    one('columns of 64 or 48', {W8: raw('F8_E4M3', c), W8 + '_scale': s(80, 2)}, {}, 'fits blocks of 64 and of 48 columns')
    one('other blocks than said', {W8: raw('F8_E4M3', c), W8 + '_scale_inv': s(2, 2)}, q(quant_method='fp8', weight_block_size=[32, 32]), 'weight_block_size [32, 32]')
    one('two scales', {W8: raw('F8_E4M3', c), W8 + '_scale': s(1), w + '.scale_weight': s(1)}, {}, 'could be its scale')
    one('a scale of rows that are columns', {W8: raw('F8_E4M3', c), W8 + '_scale': s(96)}, {}, 'does not fit')
    one('experts, square', {'m.experts.gate_up_proj': raw('F8_E4M3', codes8(2, 64, 64)), 'm.experts.gate_up_proj_scale': s(2, 64)}, {}, 'nothing says which are outputs')
    one('I8 with powers', {W8: raw('I8', R.integers(0, 256, (64, 48))), w + '.scale': raw('F8_E8M0', np.full((64, 3), 120))}, {}, 'expert_dtype fp4')
    one('FP8 whose zero', {W8: raw('I8', R.integers(0, 256, (64, 48))), W8 + '_scale': s(64, 1), W8 + '_zero_point': raw('I8', np.zeros((8, 1)))}, {}, 'zero point')
    one('AWQ, another version', awq(32)(w, 64, 64)[0], q(quant_method='awq', bits=4, group_size=32, version='gemv'), 'gemv')
    one('no method', gptq(32)(w, 64, 64)[0], {}, 'GPTQ')
    one('a negative scale', {W8: raw('F8_E4M3', c), W8 + '_scale': real('F32', np.array([-1.0]))[0]}, {}, 'not negative')
    put('q', {}, {W8: raw('F8_E4M3', c), W8 + '_scale_inv': s(2, 2)})
    shutil.rmtree('o', ignore_errors=True)
    assert run(program, 'q', 'o', '--fp8', 'bf16', '--block', '64x64', '--verify').returncode == 0
    put('q', {}, {W8: raw('F8_E5M2', c & 0x3F), W8 + '_scale': s(1)})
    said = sentence(program, 'E5M2', 'q', 'o')
    assert 'E5M2' in said and 'no FP8' not in said, said


# ---- what --advise says of each route is what the route does ----


def advise(program):
    for name in 'awq', 'gptq, order', 'packed, zeros', 'gptq, AutoRound', 'nf4', 'int8, zero points', 'nvfp4', 'mxfp4, packed':
        make, config = LAYOUTS[name]
        put('q', config, make('model.layers.0.mlp.up_proj', 160, 192)[0])
        done = run(program, 'q', '--advise', '--generation', '2', '--json', '-')
        assert done.returncode == 0, (name, done.stderr)
        routes = {r['route']: r for r in json.loads(done.stdout)['routes']}
        for route, form in ('bf16', 'bf16'), ('widen' if 'widen' in routes else 'requant', 'fp8'):
            done = run(program, 'q', '--check', *all_as(form), '--json', '-')
            assert done.returncode == 0, (name, done.stderr)
            total, said = json.loads(done.stdout)['total'], routes[route]
            share = 1 - (total['inexact'] + total['not_finite']) / total['elements']
            assert abs(said['exact'] - share) < 1e-12 and said['sqnr_db'] == total['sqnr_db'], (name, route, said, total)
            assert said['not_finite'] == total['not_finite'] and said['legal'] == 'yes', (name, route, said)


# ---- formats that are not read ----


def foreign(program, mxq, modelrun):
    w, half = 'model.layers.0.self_attn.q_proj', lambda *shape: real('F16', small(*shape))[0]
    byte = lambda kind, *shape: raw(kind, R.integers(0, 127, shape))
    many = lambda n: raw('I16', R.integers(0, 99, n), '<i2')
    int4, large = gptq(32)(w, 64, 64)[0], gptq(32)(w, 64, 64)[0]
    large[w + '.qzeros'] = words(np.full((2, 8), 0x88888F88))
    own = {'quant_method': 'auto-round', 'bits': 4, 'group_size': 32, 'sym': False}
    maker = {'quant_method': 'gptq', 'bits': 4, 'group_size': 32, 'meta': {'quantizer': ['gptqmodel:1.4.2']}}
    rows = [
        ('bitsandbytes', {w + '.weight': byte('I8', 64, 64), w + '.SCB': real('F32', small(64))[0]},
         [{}, {'quant_method': 'bitsandbytes', 'load_in_8bit': True}]),
        ('HQQ', {w + '.W_q': byte('U8', 32, 64), w + '.scale': half(64, 1), w + '.zero': half(64, 1)},
         [{}, {'quant_method': 'hqq'}]),
        ('AQLM', {w + '.codes': byte('I8', 64, 8, 1), w + '.codebooks': half(1, 256, 1, 8), w + '.scales': half(64, 1, 1, 1)},
         [{}, {'quant_method': 'aqlm'}]),
        ('QuIP#', {w + '.Qidxs': many((64, 8)), w + '.SU': half(64), w + '.SV': half(64)}, [{}, {'quant_method': 'quip'}]),
        ('VPTQ', {w + '.indices': many((1, 64, 8)), w + '.centroids.weight': half(1, 2048), w + '.weight_scale': half(64)},
         [{}, {'quant_method': 'vptq'}]),
        ('EETQ', {w + '.qweight': byte('I8', 64, 64), w + '.weight_scales': half(64)}, [{'quant_method': 'eetq'}]),
        ('qweight', {w + '.qweight': byte('I8', 64, 64), w + '.weight_scales': half(64)}, [{}]),
        ('BitNet', {w + '.weight': byte('I8', 16, 64), w + '.weight_scale': half(1)}, [{'quant_method': 'bitnet'}]),
        ('AutoRound', int4, [{**own, 'packing_format': p} for p in ('auto_round:exllamav2', 'auto_round', 'gptqmodel')] +
         [own, {**own, 'packing_format': 'auto_round:auto_gptq', 'data_type': 'mx_fp'}]),
        ('GPTQModel', large, [maker, {**maker, 'meta': {'quantizer': 'gptqmodel:0.9'}}]),
    ]
    open('t.txt', 'w').write('1 5 9')
    for format, tensors, configs in rows:
        for config in configs:
            put('q', {**LLAMA, 'quantization_config': config} if config else LLAMA, tensors)
            for arguments in ((program, 'q', 'o', *all_as('bf16')), (mxq, 'q'), (modelrun, 'q', '--tokens', 't.txt')):
                said = sentence(arguments[0], format, *arguments[1:])
                assert format in said or arguments[0] == modelrun and 'embed_tokens' in said, (config, said)
    # Experts in one tensor, where the model's own have one each.
    fused = {'model.embed_tokens.weight': half(32, 64), 'model.layers.0.mlp.experts.gate_up_proj': half(2, 256, 64),
             'model.layers.0.mlp.experts.down_proj': half(2, 64, 128), 'model.layers.0.mlp.gate.weight': half(2, 64)}
    fused.update({f'model.layers.0.{m}.weight': half(*s) for m, s in SHAPES.items() if 'attn' in m})
    fused.update({n + '.weight': half(64) for n in ('model.norm', 'model.layers.0.input_layernorm',
                                                    'model.layers.0.post_attention_layernorm')})
    put('q', {**LLAMA, 'model_type': 'mixtral', 'num_local_experts': 2, 'num_experts_per_tok': 1}, fused)
    said = sentence(modelrun, 'experts in one', 'q', '--tokens', 't.txt')
    assert 'experts.gate_up_proj' in said and 'gpt_oss and llama4 alone' in said, said
    # The same zeros by another maker are what they seem.
    put('q', {'quantization_config': {**maker, 'meta': {'quantizer': 'autogptq'}}}, large)
    assert run(program, 'q', 'o', *all_as('bf16'), '--verify').returncode == 0
    shutil.rmtree('o')


if __name__ == '__main__':
    {'convert': convert, 'measure': measure, 'run': run_model, 'refuse': refuse, 'foreign': foreign,
     'advise': advise}[sys.argv[1]](*sys.argv[2:])
