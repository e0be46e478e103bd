"""What fp8conv does, a second time, in NumPy and from the formats' definitions: makes checkpoints, checks results.

    fp8conv.py make DIRECTORY                      checkpoints to convert
    fp8conv.py check MODE GROUPS POW2 IN OUT CSV   was IN converted to OUT as the mode says, and does the report agree?
    fp8conv.py quantised TO GROUPS IN OUT          the same for numbers that became FP8
    fp8conv.py back IN OUT                         do both hold the same products of code and scale, exactly?
    fp8conv.py big FILE MIB                        a large checkpoint of one tensor
    fp8conv.py memory PROGRAM FILE MIB             does a conversion stay below so much memory?
    fp8conv.py interrupt PROGRAM FILE SIGNAL       does an interrupted one leave nothing behind?
"""
import csv, glob, json, os, resource, signal, struct, subprocess, sys, time
import numpy as np

WIDTH = {'F32': 4, 'BF16': 2, 'F16': 2, 'F8_E4M3': 1, 'F8_E8M0': 1, 'F8_E5M2': 1, 'U8': 1}


def values(limit):
    """What each of 256 codes means: E4M3, bias 7; up to 448 without infinities, or up to 240 with them."""
    out = []
    for code in range(256):
        exponent, mantissa = code >> 3 & 15, code & 7
        x = mantissa * 2.0 ** -9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
        if limit == 240 and exponent == 15:
            x = float('nan') if mantissa else float('inf')
        if limit == 448 and code & 127 == 127:
            x = float('nan')
        out.append(-x if code > 127 else x)
    return np.array(out)


OCP, NEURON = values(448), values(240)


def save(path, tensors, metadata=None):
    head, at = {}, 0
    if metadata:
        head['__metadata__'] = metadata
    for name, (kind, shape, data) in tensors.items():
        head[name] = {'dtype': kind, 'shape': list(shape), 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for kind, shape, data in tensors.values():
            f.write(data)


def load_file(path):
    with open(path, 'rb') as f:
        raw = f.read()
    length = struct.unpack('<Q', raw[:8])[0]
    head = json.loads(raw[8:8 + length])
    metadata = head.pop('__metadata__', {})
    out = {}
    for name, t in head.items():
        begin, end = t['data_offsets']
        out[name] = (t['dtype'], t['shape'], raw[8 + length + begin:8 + length + end])
    return out, metadata


def assert_aligned(path):
    """Wide numbers first: other readers view the data where it lies."""
    for name in os.listdir(path) if os.path.isdir(path) else ['']:
        if name.endswith('.safetensors') or not name:
            with open(os.path.join(path, name) if name else path, 'rb') as f:
                head = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
            for tensor, t in head.items():
                if tensor != '__metadata__':
                    assert t['data_offsets'][0] % WIDTH[t['dtype']] == 0, f'{name}: {tensor} is not aligned'


def load(path):
    if not os.path.isdir(path):
        return load_file(path)
    index = [f for f in os.listdir(path) if f.endswith('.index.json')][0]
    names = json.load(open(os.path.join(path, index)))
    out, total = {}, 0
    for shard in sorted(set(names['weight_map'].values())):
        tensors, metadata = load_file(os.path.join(path, shard))
        for name in tensors:
            assert names['weight_map'][name] == shard, name
        out.update(tensors)
    assert set(out) == set(names['weight_map'])
    assert names['metadata']['total_size'] == sum(len(t[2]) for t in out.values())
    return out, metadata


def f32(a): return np.asarray(a, np.float32).tobytes()


def to_bf16(a):
    bits = np.asarray(a, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def numbers(t):
    kind, shape, data = t
    if kind == 'F32': a = np.frombuffer(data, '<f4')
    elif kind == 'F16': a = np.frombuffer(data, '<f2').astype(np.float32)
    elif kind == 'BF16': a = (np.frombuffer(data, '<u2').astype(np.uint32) << 16).view(np.float32)
    elif kind == 'F8_E8M0': a = np.ldexp(np.float32(1), np.frombuffer(data, 'u1').astype(int) - 127).astype(np.float32)
    else: raise SystemExit(f'{kind} is not a scale')
    return a.reshape(shape)


def codes(t):
    assert t[0] == 'F8_E4M3', t[0]
    return np.frombuffer(t[2], np.uint8).reshape(t[1])


def encode(x, to):
    """Nearest even among the finite magnitudes, by search; never beyond the largest. Ties are exact in float64, and so
    is on which side of one a quotient of 28 bits by 24 is: where it is not the middle it is 2^-30 of it away."""
    finite = to[:128][np.isfinite(to[:128])]
    middle = (finite[1:] + finite[:-1]) / 2
    m = np.searchsorted(middle, np.abs(x), side='left')          # at a middle: the lower one
    tie = (m < len(middle)) & (np.abs(x) == middle[np.minimum(m, len(middle) - 1)])
    m = np.where(tie & (m % 2 == 1), m + 1, m)
    return (m + 128 * np.signbit(x)).astype(np.uint8)


def spread(scale, shape):
    """A scale for each element: one for all, or blocks of 128, or an axis of its own."""
    scale = np.asarray(scale)
    if scale.size == 1:
        return np.broadcast_to(scale.reshape(()), shape)
    if scale.ndim == 1:
        scale = scale[:, None]
    for axis in range(len(shape)):
        have, want = scale.shape[axis], shape[axis]
        if have not in (1, want):
            block = 128 if -(-want // 128) == have else want // have
            scale = np.take(scale, np.arange(want) // block, axis)
    return np.broadcast_to(scale, shape)


def groups(a, kind):
    """Largest magnitude of each group, in the shape of its scale."""
    a = np.where(np.isfinite(a), np.abs(a), 0)
    if kind == 'tensor' or a.ndim < 2:
        return a.max(initial=0).reshape(1)
    if kind == 'channel':
        return a.max(-1, keepdims=True, initial=0)
    rows, columns = -(-a.shape[-2] // 128), -(-a.shape[-1] // 128)
    out = np.zeros(a.shape[:-2] + (rows, columns), a.dtype)
    for i in range(rows):
        for k in range(columns):
            out[..., i, k] = a[..., 128 * i:128 * i + 128, 128 * k:128 * k + 128].max((-2, -1))
    return out


def fresh(amax, limit, power_of_two):
    scale = (amax.astype(np.float64) / limit).astype(np.float32)
    if power_of_two:
        scale = np.exp2(np.ceil(np.log2(np.where(amax > 0, scale, 1)))).astype(np.float32)
    return np.where(amax > 0, scale, np.float32(1))


def scale_of(tensors, name):
    base = name[:-7] if name.endswith('.weight') else name
    for s in (name + '_scale_inv', name + '_scale', base + '.scale'):
        if s in tensors:
            return s
    return None


# ---- what is converted ----

def make(folder):
    r = np.random.default_rng(1)
    every = np.arange(256, dtype=np.uint8)
    finite = every[every & 127 != 127]
    some = lambda *shape: r.choice(finite, shape).tobytes()
    first = {
        'bare': ('F8_E4M3', [2, 127], finite.tobytes()),
        'a.q_proj.weight': ('F8_E4M3', [16, 16], every.tobytes()),
        'a.q_proj.weight_scale': ('F32', [1], f32([0.0123])),
        'a.q_proj.input_scale': ('F32', [], f32(0.5)),
        'a.attn.k_scale': ('BF16', [1], to_bf16([0.75]).tobytes()),
        'a.attn.v_scale': ('F32', [1], f32([1])),
        'a.int8.weight': ('U8', [4], b'1234'),
        'a.int8.input_scale': ('F32', [1], f32([3])),
        'a.rows.weight': ('F8_E4M3', [5, 33], some(5, 33)),
        'a.rows.weight_scale': ('BF16', [5, 1], to_bf16(r.random(5) + .1).tobytes()),
        'empty.weight': ('F8_E4M3', [0, 7], b''),
        'empty.weight_scale': ('F32', [1], f32([1])),
        'model.norm.weight': ('BF16', [7], to_bf16(np.ones(7)).tobytes()),
    }
    second = {
        'b.blocks.weight': ('F8_E4M3', [257, 129], some(257, 129)),
        'b.vector.weight': ('F8_E4M3', [3, 700], some(3, 700)),
        'b.vector.scale': ('F16', [3], (r.random(3) + .1).astype('<f2').tobytes()),
        'b.experts.gate_up_proj': ('F8_E4M3', [3, 130, 40], some(3, 130, 40)),
        'b.experts.gate_up_proj_scale': ('F32', [3, 1, 40], f32(r.random(120) + .1)),
        'b.mx.weight': ('F8_E4M3', [4, 96], some(4, 96)),
        'b.mx.weight_scale': ('F8_E8M0', [4, 3], bytes(range(120, 132))),
        'b.wide.weight': ('F8_E4M3', [2, 600000], some(2, 600000)),
        'b.wide.weight_scale': ('F32', [2, 1], f32([3e-4, 7e-4])),
    }
    third = {'b.blocks.weight_scale_inv': ('F32', [3, 2], f32(r.random(6) + .1)),
             'lm_head.weight': ('F8_E5M2', [16, 16], every.tobytes())}
    save(os.path.join(folder, 'one.safetensors'), {**first, **second, **third}, {'format': 'pt'})
    no_mx = {k: v for k, v in {**first, **second, **third}.items() if '.mx.' not in k}
    save(os.path.join(folder, 'nomx.safetensors'), no_mx, {'format': 'pt'})
    os.mkdir(os.path.join(folder, 'many'))
    where, total = {}, 0
    for i, part in enumerate((first, second, third)):
        name = f'model-{i + 1:05}-of-00003.safetensors'
        save(os.path.join(folder, 'many', name), part, {'format': 'pt'})
        for tensor in part:
            where[tensor] = name
            total += len(part[tensor][2])
    with open(os.path.join(folder, 'many', 'model.safetensors.index.json'), 'w') as f:
        json.dump({'metadata': {'total_size': total}, 'weight_map': where}, f)
    with open(os.path.join(folder, 'many', 'config.json'), 'w') as f:
        f.write('{}')
    with open(os.path.join(folder, 'many', 'generation_config.json'), 'w') as f:
        f.write('{"top_k":  5}')
    save(os.path.join(folder, 'low.safetensors'),
         {'w': ('F8_E4M3', [240], every[every & 127 < 120].tobytes()), 'w_scale': ('F32', [1], f32([2]))})
    wild = r.standard_normal((300, 260)) * np.exp2(r.integers(-12, 4, (300, 260)))
    wild[0, :3] = [np.nan, np.inf, -np.inf]
    wild[7] = 0
    plain = {
        'm.embed_tokens.weight': ('BF16', [40, 40], to_bf16(r.standard_normal(1600)).tobytes()),
        'm.0.up_proj.weight': ('BF16', [200, 300], to_bf16(r.standard_normal(60000) * .02).tobytes()),
        'm.0.down_proj.weight': ('F16', [129, 70], (r.standard_normal(9030) * .02).astype('<f2').tobytes()),
        'm.0.wild.weight': ('F32', [300, 260], f32(wild)),
        'm.0.gate.weight': ('F32', [16, 16], f32(np.ones(256))),
        'm.0.norm.weight': ('BF16', [16], to_bf16(np.ones(16)).tobytes()),
        'lm_head.weight': ('BF16', [40, 40], to_bf16(r.standard_normal(1600)).tobytes()),
    }
    save(os.path.join(folder, 'plain.safetensors'), plain)


# ---- was it done right? ----

FACTOR = {'halve': (2, 1), 'ratio': (28, 15), 'relabel': (1, 1)}


def check(mode, kind, power_of_two, source, target, report):
    before, _ = load(source)
    after, metadata = load(target)
    assert_aligned(target)
    rows = {row['tensor']: row for row in csv.DictReader(open(report))}
    assert metadata['fp8_format'] == 'float8_e4m3' and metadata['format'] == 'pt', metadata
    seen, power_of_two = set(), power_of_two == 'yes'
    for name, t in before.items():
        if t[0] != 'F8_E4M3':
            continue
        x, y, old, new = codes(t), codes(after[name]), scale_of(before, name), scale_of(after, name)
        s = numbers(before[old]) if old else np.ones(1, np.float32)
        z = numbers(after[new])
        seen |= {name, old, new}
        finite = np.isfinite(OCP[x])
        assert ((y[~finite] & 127) > 120).all() and ((x ^ y)[~finite] < 128).all(), f'{name}: NaN'
        each, fresh_each = spread(s, x.shape), spread(z, x.shape)
        if mode == 'requant':
            amax = np.abs(np.where(finite, OCP[x], 0)) * each.astype(float)
            if kind == 'kept' and s.size > 1:  # its own groups
                want = np.zeros(s.shape)
                place = spread(np.arange(s.size).reshape(s.shape), x.shape)
                np.maximum.at(want.reshape(-1), place.reshape(-1), amax.reshape(-1))
            else:
                want = groups(amax, 'tensor' if kind == 'kept' else kind)
            want = fresh(want, 240, power_of_two)
            right = encode(OCP[x] * each.astype(float) / fresh_each.astype(float), NEURON)
            exact = OCP[x] * each.astype(float) == NEURON[right] * fresh_each.astype(float)
        else:
            up, down = FACTOR[mode]
            want = s * (np.float32(up) / np.float32(down))
            if after[new][0] == 'BF16': want = numbers(('BF16', want.shape, to_bf16(want).tobytes()))
            if after[new][0] == 'F16': want = want.astype('<f2')
            q = OCP[x] * down / up
            if mode == 'ratio':
                q = OCP[x].astype(np.float32) / (np.float32(28) / np.float32(15))
                q = numbers(('BF16', x.shape, to_bf16(q).tobytes()))
            right = encode(q.astype(np.float64), NEURON)
            exact = NEURON[right] * up == OCP[x] * down
        if old and s.ndim == 1 and z.shape == s.shape:  # the same groups keep the shape their scale had
            want = want.reshape(s.shape)
        assert z.shape == want.shape and (z == want).all(), f'{name}: scale {z} is not {want}'
        assert (y[finite] == right[finite]).all(), f'{name}: {np.argwhere((y != right) & finite)[:3]}'
        a, b = (OCP[x] * each.astype(float))[finite], (NEURON[y] * fresh_each.astype(float))[finite]
        row = rows[name]
        assert int(row['elements']) == x.size and int(row['not_finite']) == 0
        assert int(row['over_240']) == (np.abs(OCP[x][finite]) > 240).sum()
        assert int(row['relabelled_inf']) == np.isinf(NEURON[x][finite]).sum()
        assert int(row['relabelled_nan']) == np.isnan(NEURON[x][finite]).sum()
        assert int(row['was_not_finite']) == (~finite).sum()
        assert int(row['inexact']) == (~exact & finite).sum(), (name, row['inexact'], (~exact & finite).sum())
        if (a != b).any():
            sqnr = 10 * np.log10((a ** 2).sum() / ((a - b) ** 2).sum())
            assert abs(float(row['sqnr_db']) - sqnr) < 1e-6, (name, row['sqnr_db'], sqnr)
            worst = (np.abs(a - b)[a != 0] / np.abs(a[a != 0])).max()
            assert abs(float(row['worst']) / worst - 1) < 1e-6, (name, row['worst'], worst)
    for name, t in before.items():
        if name in seen or name not in after:
            continue
        runs = name.endswith(('k_scale', 'v_scale')) or name == 'a.q_proj.input_scale'
        up, down = FACTOR.get(mode, (28, 15)) if runs else (1, 1)
        if not runs:
            assert after[name] == t, f'{name} changed'
        else:
            error = np.abs(numbers(after[name]) - numbers(t) * up / down)
            assert (error <= .004 * numbers(t) * (mode != 'halve')).all(), name
    print(f'{mode} {kind}: {len(rows)} tensors')


def quantised(to, kind, source, target):
    before, _ = load(source)
    after, _ = load(target)
    limit, table = (240, NEURON) if to == 'neuron' else (448, OCP)
    done = [n for n in after if after[n][0] == 'F8_E4M3']
    assert done == ['m.0.up_proj.weight', 'm.0.down_proj.weight', 'm.0.wild.weight'], done
    for name in done:
        x = numbers(before[name])
        scale = numbers(after[scale_of(after, name)])
        want = fresh(groups(x, kind), limit, False)
        assert scale.shape == want.shape and (scale == want).all(), name
        finite = np.isfinite(x)
        right = encode(np.where(finite, x, 0).astype(float) / spread(scale, x.shape).astype(float), table)
        assert (codes(after[name])[finite] == right[finite]).all(), name
        assert not np.isfinite(table[codes(after[name])[~finite]]).any(), name
    for name in before:
        assert name in done or after[name] == before[name], name


def back(a, b):
    x, _ = load(a)
    y, metadata = load(b)
    assert 'fp8_format' not in metadata, metadata
    for name, t in x.items():
        if t[0] == 'F8_E4M3':
            one, two = (codes(q[name]) for q in (x, y))
            s, z = (numbers(q[scale_of(q, name)]) if scale_of(q, name) else np.ones(1) for q in (x, y))
            p, q = OCP[one] * spread(s, one.shape), OCP[two] * spread(z, two.shape)
            odd = (np.abs(OCP[one]) < 2.0 ** -5) & (np.abs(OCP[one] * 512) % 2 == 1)
            keep = np.isfinite(p) & ~odd
            assert (p[keep] == q[keep]).all(), name


def big(path, mib):
    size = int(mib) << 20
    head = {'w.weight': {'dtype': 'F8_E4M3', 'shape': [size // 4096, 4096], 'data_offsets': [4, 4 + size]},
            'w.weight_scale': {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]}}
    text = json.dumps(head).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + f32([1]))
        f.truncate(8 + len(text) + 4 + size)


def memory(program, path, mib):
    subprocess.run([program, path, 'large.out'], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    assert used < int(mib), f'{used} MiB'


def interrupt(program, path, number):
    number = signal.Signals[number]
    process = subprocess.Popen([program, path, 'gone.safetensors'], stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while not glob.glob('gone.*.part') and process.poll() is None:
        time.sleep(.002)
    process.send_signal(number)
    assert process.wait() == -number, f'it ended with {process.returncode}'
    assert not glob.glob('gone*'), glob.glob('gone*')


if __name__ == '__main__':
    {'make': make, 'check': check, 'quantised': quantised, 'back': back, 'big': big, 'memory': memory,
     'interrupt': interrupt}[sys.argv[1]](*sys.argv[2:])
