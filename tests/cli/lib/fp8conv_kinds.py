"""Checkpoints of every kind that fp8conv reads, written and decoded a second time, in NumPy and from the definitions.

    fp8conv_kinds.py make DIRECTORY           one folder for each kind
    fp8conv_kinds.py check FORM IN OUT        is OUT what IN becomes as fp8, bf16 or mx? The numbers, and config.json
    fp8conv_kinds.py kept IN OUT              the same where FP8 keeps the scales that it has
    fp8conv_kinds.py shard IN OUT             the same checkpoint in two files
    fp8conv_kinds.py same A B                 do both hold the same?
    fp8conv_kinds.py rules PROGRAM            which matrices stay, for each form of a rule, both ways
    fp8conv_kinds.py refusals PROGRAM         what is refused, by which sentence, and that nothing is written
    fp8conv_kinds.py advice PROGRAM DIRECTORY the routes of --advise: shares, bytes, cycles
"""
import csv, io, json, os, shutil, subprocess, sys
import numpy as np
from fp8conv import NEURON, OCP, WIDTH, encode, f32, load, numbers, save, spread, to_bf16

WIDTH.update({'U16': 2, 'U32': 4, 'I32': 4, 'I8': 1})
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
R = np.random.default_rng(7)


def bf16(a):
    return 'BF16', list(np.shape(a)), to_bf16(a).tobytes()


def plain(*shape):
    return bf16(R.standard_normal(shape) * 0.02)


def u8(shape, low=0, high=256):
    return 'U8', list(shape), R.integers(low, high, shape).astype(np.uint8).tobytes()


def raw(t):
    return np.frombuffer(
        t[2], {'U8': 'u1', 'F8_E4M3': 'u1', 'U16': '<u2', 'U32': '<u4', 'F8_E8M0': 'u1'}[t[0]]
    ).reshape(t[1])


def fp8(*shape):
    finite = np.arange(256, dtype=np.uint8)
    return 'F8_E4M3', list(shape), R.choice(finite[finite & 127 != 127], shape).tobytes()


def some(*shape):
    return 'F32', list(shape), f32(R.random(shape) * 0.01 + 1e-4)


# ---- checkpoints ----


def blocks(name, shape, sep='_', scales=(100, 140)):
    """gpt-oss: 16 bytes for 32 inputs."""
    *lead, k = shape
    return {f'{name}{sep}blocks': u8((*lead, k // 32, 16)), f'{name}{sep}scales': u8((*lead, k // 32), *scales)}


def nvfp4(base, n, k, second, packed, low=1):
    weight = 'weight_packed' if packed else 'weight'
    scale = R.integers(low, 0x7F, (n, k // 16)).astype(np.uint8)
    tail = (
        {f'{base}.weight_global_scale': ('F32', [1], f32([second])), f'{base}.input_global_scale': some(1)}
        if packed
        else {f'{base}.weight_scale_2': ('F32', [], f32(second)), f'{base}.input_scale': some()}
    )
    return {
        f'{base}.{weight}': u8((n, k // 2)),
        f'{base}.weight_scale': ('F8_E4M3', [n, k // 16], scale.tobytes()),
        **tail,
    }


def frame(**more):
    """What every model has beside its layers."""
    return {
        'model.embed_tokens.weight': plain(48, 96),
        'lm_head.weight': plain(48, 96),
        'model.norm.weight': plain(96),
        **more,
    }


GPT_OSS = {
    'architectures': ['GptOssForCausalLM'],
    'model_type': 'gpt_oss',
    'rms_norm_eps': 1e-05,
    'vocab_size': 48,
    'quantization_config': {
        'modules_to_not_convert': [
            'model.layers.*.self_attn',
            'model.layers.*.mlp.router',
            'model.embed_tokens',
            'lm_head',
        ],
        'quant_method': 'mxfp4',
    },
    'tie_word_embeddings': False,
}
CT = {
    'config_groups': {
        'group_0': {
            'targets': ['Linear'],
            'weights': {'num_bits': 8, 'type': 'float'},
            'input_activations': {'dynamic': True},
        }
    },
    'ignore': ['lm_head', 're:.*self_attn.*'],
    'quant_method': 'compressed-tensors',
    'format': 'float-quantized',
}


def every_kind():
    layer, experts = 'model.layers.0.', 'model.layers.0.mlp.experts.'
    yield 'gptoss', GPT_OSS, frame(
        **blocks(experts + 'gate_up_proj', (2, 64, 96)),
        **blocks(experts + 'down_proj', (2, 96, 32)),
        **{
            experts + 'gate_up_proj_bias': plain(2, 64),
            layer + 'self_attn.q_proj.weight': plain(64, 96),
            layer + 'self_attn.sinks': plain(8),
            layer + 'mlp.router.weight': plain(2, 96),
            layer + 'mlp.router.bias': plain(2),
        },
    )
    yield 'square', GPT_OSS, frame(**blocks(experts + 'down_proj', (3, 96, 96), scales=(0, 254)))
    yield 'openai', None, blocks('block.0.mlp.mlp1_weight', (2, 40, 64), '.')
    w = layer + 'mlp.up_proj.weight'
    yield 'ctmx', {
        'quantization_config': {
            'quant_method': 'compressed-tensors',
            'format': 'mxfp4-pack-quantized',
            'ignore': ['lm_head'],
        }
    }, frame(**{w + '_packed': u8((70, 48)), w + '_scale': u8((70, 3), 110, 130)})
    yield 'quark', {'quantization_config': {'quant_method': 'quark', 'exclude': ['lm_head']}}, frame(
        **{w: u8((70, 48)), w + '_scale': u8((70, 3), 110, 130)}
    )
    yield 'modelopt4', {
        'x': 1,
        'quantization_config': {'quant_method': 'modelopt', 'quant_algo': 'NVFP4', 'ignore': ['lm_head', '*router*']},
    }, frame(
        **nvfp4(layer + 'mlp.up_proj', 70, 96, 3.1e-4, False),
        **nvfp4(layer + 'mlp.down_proj', 33, 64, 1.7e-3, False, 0),
    )
    yield 'ct4', {
        'quantization_config': {
            'quant_method': 'compressed-tensors',
            'format': 'nvfp4-pack-quantized',
            'ignore': ['lm_head'],
        }
    }, frame(**nvfp4(layer + 'mlp.up_proj', 70, 96, 5217.3, True))
    ragged = {
        layer + 'mlp.up_proj.weight': fp8(200, 320),
        layer + 'mlp.up_proj.weight_scale_inv': some(2, 3),
        layer + 'mlp.down_proj.weight': fp8(96, 64),
        layer + 'mlp.down_proj.weight_scale_inv': some(1, 1),
    }
    yield 'deepseek', {
        'model_type': 'deepseek_v3',
        'quantization_config': {
            'activation_scheme': 'dynamic',
            'fmt': 'e4m3',
            'quant_method': 'fp8',
            'weight_block_size': [128, 128],
        },
        'z': [1, 2],
    }, frame(**ragged)
    yield 'ct8', {'quantization_config': CT}, frame(
        **{
            w: fp8(70, 96),
            w + '_scale': bf16(R.random((70, 1)) + 0.1),
            layer + 'mlp.down_proj.weight': fp8(96, 64),
            layer + 'mlp.down_proj.weight_scale': some(1),
            layer + 'mlp.down_proj.input_scale': some(1),
        }
    )
    yield 'mxfp8', {'quantization_config': {'quant_method': 'mxfp8'}}, frame(
        **{w: fp8(70, 96), w + '_scale': u8((70, 3), 100, 130)}
    )
    yield 'powers', None, {w: fp8(70, 96), w + '_scale': ('F32', [70, 1], f32(np.exp2(R.integers(-9, 3, (70, 1)))))}
    yield 'experts8', {
        'model_type': 'llama4',
        'quantization_config': {'quant_method': 'fp8', 'activation_scheme': 'dynamic'},
    }, frame(**{experts + 'gate_up_proj': fp8(2, 96, 40), experts + 'gate_up_proj_scale': some(2, 1, 40)})


def make(folder):
    for name, config, tensors in every_kind():
        put(os.path.join(folder, name), config, tensors)
    with open(os.path.join(folder, 'modelopt4', 'hf_quant_config.json'), 'w') as f:
        json.dump(
            {
                'producer': {'name': 'modelopt'},
                'quantization': {'quant_algo': 'NVFP4', 'exclude_modules': ['lm_head']},
            },
            f,
        )


def shard(source, target):
    """The same in two files, a weight here and its scale there."""
    tensors, _ = load(os.path.join(source, 'model.safetensors'))
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    where = {n: f'model-{1 + ("scale" in n)}.safetensors' for n in tensors}
    for file in set(where.values()):
        save(os.path.join(target, file), {n: t for n, t in tensors.items() if where[n] == file}, {'format': 'pt'})
    with open(os.path.join(target, 'model.safetensors.index.json'), 'w') as f:
        json.dump({'metadata': {'total_size': 1}, 'weight_map': where}, f)
    if os.path.exists(os.path.join(source, 'config.json')):
        shutil.copy(os.path.join(source, 'config.json'), target)


def same(a, b):
    """Do two checkpoints hold the same tensors, and do their configurations say the same?"""
    x, y = load(a)[0], load(b)[0]
    assert x == y, [n for n in x.keys() | y.keys() if x.get(n) != y.get(n)]
    c, d = (
        json.load(open(os.path.join(p if os.path.isdir(p) else os.path.dirname(p), 'config.json'))) for p in (a, b)
    )
    for q in c.get('quantization_config', {}), d.get('quantization_config', {}):
        q['mx_words'] = sorted(q.get('mx_words', []))
        q['modules_to_not_convert'] = sorted(q.get('modules_to_not_convert', []))
    assert c == d, (c, d)


def put(path, config, tensors):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    save(os.path.join(path, 'model.safetensors'), tensors, {'format': 'pt'})
    if config is not None:
        with open(os.path.join(path, 'config.json'), 'w') as f:
            f.write(config if isinstance(config, str) else json.dumps(config, indent=2) + '\n')


# ---- what they hold: name -> (values as outputs x inputs, kind) ----


def nibbles(b):
    return FP4[np.stack([b & 15, b >> 4], -1).reshape(*b.shape[:-1], -1)]


def stored(tensors):
    out = {}
    for name, t in tensors.items():
        base = name[:-7]
        if name.endswith(('_blocks', '.blocks')):
            s = raw(tensors[name[:-6] + 'scales'])
            x = nibbles(raw(t)).reshape(*s.shape[:-1], -1)
            out[base] = (
                x * np.exp2(s.astype(float) - 127).repeat(32, -1),
                'mxfp4',
                name.endswith('_blocks') and x.ndim > 2,
            )
        elif t[0] == 'U8' and name.endswith(('.weight', '.weight_packed')):
            base = name[: name.index('.weight')]
            s = tensors[base + '.weight_scale']
            if s[0] == 'U8':
                x = nibbles(raw(t)) * np.exp2(raw(s).astype(float) - 127).repeat(32, -1)
            else:
                x = nibbles(raw(t)) * OCP[raw(s)].repeat(16, -1)
                if base + '.weight_scale_2' in tensors:
                    x = x * float(numbers(tensors[base + '.weight_scale_2']))
                else:
                    x = x / float(numbers(tensors[base + '.weight_global_scale']).reshape(()))
            out[base + '.weight'] = x, 'mxfp4' if s[0] == 'U8' else 'nvfp4', False
        elif t[0] == 'F8_E4M3' and not name.endswith('weight_scale'):
            s = next((tensors[name + e] for e in ('_scale_inv', '_scale') if name + e in tensors), None)
            a = numbers(('F8_E8M0', *s[1:]) if s[0] == 'U8' else s).astype(float) if s else np.ones(1)
            a = a.repeat(32, -1) if s and s[0] == 'U8' else spread(a, t[1])
            out[name] = OCP[raw(t)] * a, 'fp8', False
    return out


def nearest_bf16(x):
    """Each number's nearest with 8 bits, from float64 in one step."""
    _, e = np.frexp(x)
    unit = np.exp2(np.maximum(e - 8.0, -133))
    return np.where(x == 0, x, np.rint(x / unit) * unit)


def mx_of(x):
    """The instruction's rule: the scale is 2^(floor(log2 amax) - 7), and codes of E4M3FN under it. [K, N]."""
    k, n = x.shape
    amax = np.abs(x).reshape(k // 32, 32, n).max(1)
    scale = np.where(amax > 0, np.floor(np.log2(np.where(amax > 0, amax, 1))) - 7 + 127, 0).astype(int)
    return encode(x / np.exp2(scale.repeat(32, 0) - 127.0), OCP), scale


def check_mx(name, x, kind, after, tensors):
    words, scale = raw(after[name + '_mx_words']), raw(after[name + '_mx_scales'])
    four = kind == 'mxfp4'
    assert after[name + '_mx_words'][0] == ('U16' if four else 'U32') and after[name + '_mx_scales'][0] == 'U8'
    slots = [words >> (i * (4 if four else 8)) & (15 if four else 255) for i in range(4)]
    codes = np.stack(slots, -2).reshape(*words.shape[:-2], -1, words.shape[-1])  # k = 4 p + slot
    values = (FP4 if four else OCP)[codes] * np.exp2(scale.astype(float) - 127).repeat(32, -2)
    if name.endswith('_proj') and kind == 'fp8':
        want = x  # it had its inputs first
    else:
        want = np.swapaxes(x, -1, -2)
    assert values.shape == want.shape, (values.shape, want.shape)
    if four:
        assert (values == want).all(), f'{name}: not the same values'
        return
    kept = np.frexp(powers(name, tensors, x.shape))[0] == 0.5 if kind == 'fp8' else np.zeros(x.shape, bool)
    kept = kept if want is x else np.swapaxes(kept, -1, -2)
    kept = kept & (want is not x)  # those are quantised anew
    assert (values[kept] == want[kept]).all(), f'{name}: powers of two do not stay'
    for v, w, c, s, same in zip(*(a.reshape(-1, *a.shape[-2:]) for a in (values, want, codes, scale, kept))):
        code, right = mx_of(w)
        block = same.reshape(s.shape[0], 32, -1).all(1)
        assert ((s == right) | block).all(), f'{name}: scales'
        assert ((OCP[c] == OCP[code]) | same).all(), f'{name}: codes'


def powers(name, tensors, shape):
    s = next((tensors[name + e] for e in ('_scale_inv', '_scale') if name + e in tensors), None)
    if s is None:
        return np.ones(shape)
    return numbers(('F8_E8M0', *s[1:])).repeat(32, -1) if s[0] == 'U8' else spread(numbers(s), shape)


def check(form, source, target, kept=False):
    before, _ = load(os.path.join(source, 'model.safetensors'))
    after, metadata = load(os.path.join(target, 'model.safetensors'))
    done = stored(before)
    assert done
    for name, (x, kind, turned) in done.items():
        y = np.swapaxes(x, -1, -2) if turned and form != 'mx' else x
        if form == 'mx':
            check_mx(name, x, kind, after, before)
            continue
        t = after[name]
        assert t[1] == list(y.shape), (name, t[1], y.shape)
        if form == 'bf16':
            assert t[0] == 'BF16' and (numbers(t) == nearest_bf16(y)).all(), f'{name}: not the nearest BF16'
            assert not any(n.startswith(name + '_scale') for n in after), name
            continue
        scale = next(after[name + e] for e in ('_scale_inv', '_scale') if name + e in after)
        z = numbers(('F8_E8M0', *scale[1:]) if scale[0] == 'U8' else scale).astype(float)
        if kept:
            z = z.repeat(32, -1) if scale[0] == 'U8' else spread(z, t[1])
        else:
            z = z.repeat(y.shape[-2] // z.shape[-2], -2).repeat(y.shape[-1] // z.shape[-1], -1)
        values = NEURON[raw(t)] * z
        if kept:
            small = np.abs(OCP[raw(before[name])]) < 2.0**-5
            ok = np.isfinite(y) & ~small
            loss = 2.0**-8 if scale[0] == 'BF16' else 0
            assert (np.abs(values - y)[ok] <= loss * np.abs(y)[ok]).all(), f'{name}: another product'
        elif kind == 'mxfp4':
            assert (values == y).all(), f'{name}: another value'
        else:
            assert (np.abs(values - y) <= 2.0**-23 * np.abs(y)).all(), f'{name}: beyond one rounding'
            assert (np.abs(NEURON[raw(t)]) == np.abs(FP4[raw_codes(before, name)])).all(), f'{name}: another code'
    gone = (
        '_blocks',
        '.blocks',
        '_scales',
        '.scales',
        '.weight_packed',
        '_global_scale',
        '_scale',
        '_scale_2',
        '_scale_inv',
        '_words',
    )
    for name, t in before.items():
        if name not in done and not name.endswith(gone):
            assert after[name] == t, f'{name} changed'
    assert set(after) >= {n for n in before if not n.endswith(gone) and n not in done}
    fp8_left = any(t[0] == 'F8_E4M3' for t in after.values())
    assert (metadata.get('fp8_format') == 'float8_e4m3') == fp8_left, metadata
    check_config(form, source, target, after, kept)
    print(form, source, len(done))


def raw_codes(before, name):
    base = name[: -len('.weight')]
    b = raw(before[base + '.weight_packed' if base + '.weight_packed' in before else base + '.weight'])
    return np.stack([b & 15, b >> 4], -1).reshape(b.shape[0], -1)


def check_config(form, source, target, after, kept):
    path = os.path.join(source, 'config.json')
    if not os.path.exists(path):
        return
    old, new = open(path).read(), open(os.path.join(target, 'config.json')).read()
    a, b = json.loads(old), json.loads(new)
    q, was = b.pop('quantization_config', None), a.pop('quantization_config')
    assert a == b and [k for k in a] == [k for k in b], 'the rest of config.json changed'
    at = old.index('"quantization_config"')
    assert new.startswith(old[:at].rstrip(' \n,')), 'what stands before changed'
    if form == 'bf16':
        assert q is None, q
    elif kept:
        assert q.pop('fp8_format') == 'float8_e4m3' and q == was, q
    elif form == 'fp8':
        assert q['quant_method'] == 'fp8' and q['fp8_format'] == 'float8_e4m3', q
        assert q['activation_scheme'] == 'dynamic' and q['weight_block_size'] == [
            1,
            32 if 'mx' in str(was) or 'quark' in str(was) else 16,
        ], q
    else:
        assert (
            q['quant_method'] == 'mx'
            and q['mx_words'] == [n for n in after if n.endswith('_words')]
            or set(q['mx_words']) == {n for n in after if n.endswith('_words')}
        ), q
    if q and not kept and 'modules_to_not_convert' in was:
        assert q['modules_to_not_convert'][: len(was['modules_to_not_convert'])] == was['modules_to_not_convert'], q
    if q and not kept:
        assert 'lm_head' in q['modules_to_not_convert'], q
    assert not os.path.exists(os.path.join(target, 'hf_quant_config.json'))


# ---- rules ----

NAMES = [
    f'model.layers.{i}.{m}.weight'
    for i in (0, 1, 10)
    for m in (
        'self_attn.q_proj',
        'self_attn.o_proj',
        'mlp.gate_proj',
        'mlp.down_proj',
        'mlp.gate',
        'mlp.shared_expert.up_proj',
    )
]
ALL = {n for n in NAMES if not n.endswith('mlp.gate.weight')}


def without(*parts):
    return {n for n in ALL if not any(p in n for p in parts)}


def only(*parts):
    return ALL - without(*parts)


def q(**fields):
    return {'quantization_config': {'quant_method': 'fp8', **fields}}


RULES = [
    ('nothing is said', {}, ALL),
    ('an empty list', q(modules_to_not_convert=[]), ALL),
    ('no list', q(modules_to_not_convert=None), ALL),
    ('a module', q(modules_to_not_convert=['model.layers.0.mlp.down_proj']), without('layers.0.mlp.down_proj')),
    ('a subtree', q(modules_to_not_convert=['model.layers.1']), without('layers.1.')),
    ('a subtree with a dot', q(modules_to_not_convert=['model.layers.1.']), without('layers.1.')),
    ('an end', q(modules_to_not_convert=['o_proj']), without('o_proj')),
    ('no part of a word', q(modules_to_not_convert=['gate', 'proj', 'layers.1.mlp.down']), ALL),
    ('any layer', q(modules_to_not_convert=['model.layers.*.self_attn']), without('self_attn')),
    ('one layer and a star', q(modules_to_not_convert=['model.layers.1.*']), without('layers.1.')),
    ('ignored_layers', q(ignored_layers=['model.layers.10.self_attn.q_proj']), without('10.self_attn.q_proj')),
    ('skip_modules', q(llm_int8_skip_modules=['self_attn']), without('self_attn')),
    ('a regex among modules', q(modules_to_not_convert=[r'model\.layers\.(0|10)\.mlp']), without('0.mlp')),
    ('ignore, exact', q(ignore=['lm_head', 'model.layers.1.mlp.down_proj']), without('.1.mlp.down_proj')),
    ('ignore, not an end', q(ignore=['down_proj']), ALL),
    ('ignore, regex', q(ignore=['re:.*self_attn.*']), without('self_attn')),
    ('ignore, regex with an end', q(ignore=['re:.*mlp.gate$', 're:.*o_proj$']), without('o_proj')),
    ('ignore, anchored', q(ignore=['re:self_attn']), ALL),
    ('ignore, looking ahead', q(ignore=[r're:^(?!.*self_attn).*']), only('self_attn')),
    ('ignore, wildcard', q(ignore=['*shared_expert*']), without('shared_expert')),
    ('exclude_modules', q(exclude_modules=['*self_attn*', 'lm_head']), without('self_attn')),
    ('exclude_modules, one layer', q(exclude_modules=['model.layers.0*']), without('layers.0.')),
    ('exclude', q(exclude=['*.q_proj']), without('q_proj')),
    ('dynamic, minus', q(dynamic={r'-:.*shared_expert.*': {}}), without('shared_expert')),
    (
        'dynamic, the first counts',
        q(dynamic={r'+:.*\.0\..*shared_expert.*': {'bits': 8}, r'-:.*shared_expert.*': {}}),
        without('.1.mlp.shared', '.10.mlp.shared'),
    ),
    (
        'dynamic, the other order',
        q(dynamic={r'-:.*shared_expert.*': {}, r'+:.*\.0\..*': {'bits': 8}}),
        without('shared_expert'),
    ),
    ('targets, a class', q(config_groups={'group_0': {'targets': ['Linear']}}), ALL),
    ('targets, regex', q(config_groups={'group_0': {'targets': ['re:.*self_attn.*']}}), only('self_attn')),
    (
        'targets, two groups',
        q(config_groups={'a': {'targets': ['re:.*q_proj']}, 'b': {'targets': ['model.layers.0.mlp.down_proj']}}),
        only('q_proj', 'layers.0.mlp.down_proj'),
    ),
    ('targets and ignore', q(config_groups={'a': {'targets': ['Linear']}}, ignore=['re:.*mlp.*']), without('mlp')),
    (
        'quantized_layers',
        q(quantized_layers={'model.layers.0.self_attn.q_proj': {'quant_algo': 'FP8'}}),
        only('layers.0.self_attn.q_proj'),
    ),
    ('inside of text_config', {'text_config': q(modules_to_not_convert=['self_attn'])}, without('self_attn')),
    (
        'the older name',
        {'compression_config': {'quant_method': 'compressed-tensors', 'ignore': ['re:.*q_proj']}},
        without('q_proj'),
    ),
    (
        'a method without its tensors',
        {'quantization_config': {'quant_method': 'gptq', 'bits': 8, 'dynamic': {'-:.*q_proj': {}}}},
        without('q_proj'),
    ),
]


def model():
    t = {n: plain(8, 16) for n in NAMES}
    return {
        **t,
        'model.embed_tokens.weight': plain(8, 16),
        'model.norm.weight': plain(16),
        'lm_head.weight': plain(8, 16),
    }


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def quantised_of(path):
    return {n for n, t in load(path)[0].items() if t[0] == 'F8_E4M3'}


def rules(program):
    put('r', q(ignore=['re:(', 'LlamaAttention'], dynamic={'+:.*': {'bits': 4}}), model())
    assert run(program, 'r', 'r.out').returncode == 2
    assert run(program, 'r', 'r.out', '--no-rules').returncode == 0 and quantised_of('r.out/model.safetensors') == ALL
    shutil.rmtree('r.out')
    for what, config, want in RULES:
        put('r', {'a': 1, **config}, model())
        shutil.rmtree('r.out', ignore_errors=True)
        done = run(program, 'r', 'r.out', '--verify')
        if not want:
            assert done.returncode == 2, what
            continue
        assert done.returncode == 0, (what, done.stderr)
        got = quantised_of('r.out/model.safetensors')
        assert got == want, (what, sorted(got ^ want))
        said = json.load(open('r.out/config.json'))
        said = (
            said.get('text_config', {}).get('quantization_config')
            or said.get('quantization_config')
            or said['compression_config']
        )
        assert said['quant_method'] == 'fp8' and said['weight_block_size'] is None, said
        put('again', {'quantization_config': said}, model())  # its own words choose the same
        shutil.rmtree('r.out')
        assert run(program, 'again', 'r.out').returncode == 0
        assert quantised_of('r.out/model.safetensors') == want, (what, 'again')
        shutil.rmtree('r.out')
        assert run(program, 'r', 'r.out', '--no-rules').returncode == 0
        assert quantised_of('r.out/model.safetensors') == ALL, (what, '--no-rules')
    put('r', None, model())
    json.dump(
        {'quantization': {'quant_algo': 'FP8', 'exclude_modules': ['*self_attn*']}},
        open('r/hf_quant_config.json', 'w'),
    )
    shutil.rmtree('r.out')
    assert run(program, 'r', 'r.out').returncode == 0
    assert quantised_of('r.out/model.safetensors') == without('self_attn'), 'hf_quant_config.json'
    recipe = 'quant_stage:\n  quant_modifiers:\n    QuantizationModifier:\n'
    recipe += '      targets: %s\n      scheme: FP8\n      ignore: %s\n'
    for targets, ignore, want in (
        ('[Linear]', "['re:.*self_attn.*', lm_head]", without('self_attn')),
        ('Linear', '# what stays\n      - lm_head  # the head\n      - "re:.*\\\\.q_proj$"\n', without('q_proj')),
        ("['re:.*mlp.*',\n   're:.*o_proj']", '[]', only('mlp', 'o_proj')),
        ('Linear', 'null', ALL),
        ('Linear', "\n        - 're:.*it''s'", ALL),
    ):
        put('r', {'a': 1}, model())
        open('r/recipe.yaml', 'w').write(recipe % (targets, ignore))
        shutil.rmtree('r.out')
        done = run(program, 'r', 'r.out')
        assert done.returncode == 0, done.stderr
        assert quantised_of('r.out/model.safetensors') == want, (targets, ignore)
    for ignore in '[a, b', "'a", '[a, "b" c]':
        open('r/recipe.yaml', 'w').write(recipe % ('Linear', ignore))
        done = run(program, 'r', 'r.no')
        assert done.returncode == 2 and 'recipe.yaml: a list of its modules' in done.stderr, (ignore, done.stderr)
    put('r', q(ignore=['re:.*mlp.*']), model())  # what is in config.json counts
    open('r/recipe.yaml', 'w').write(recipe % ('Linear', '[re:.*self_attn.*]'))
    shutil.rmtree('r.out')
    assert run(program, 'r', 'r.out').returncode == 0
    assert quantised_of('r.out/model.safetensors') == without('mlp')
    # experts in one tensor, one scale for each output
    joint = {**model(), 'model.layers.0.mlp.experts.gate_up_proj': plain(3, 64, 24)}
    put('r', {}, joint)
    shutil.rmtree('r.out')
    done = run(program, 'r', 'r.out', '--scales', 'channel')
    assert done.returncode == 2 and 'which of its axes counts outputs' in done.stderr, done.stderr
    put('r', {'model_type': 'gpt_oss'}, joint)
    assert run(program, 'r', 'r.out', '--scales', 'channel', '--verify').returncode == 0
    assert load('r.out/model.safetensors')[0]['model.layers.0.mlp.experts.gate_up_proj_scale'][1] == [3, 1, 24]
    # the texts around are as they were
    for text in (
        '{}',
        '{ }',
        '{"a":1}',
        '{"a": 1, "b": [1, 2]}',
        '{\n    "a": 1e-05,\n\t"b": {}\n}\n',
        '{"quantization_config": {"quant_method": "fp8"}, "a":   2}',
    ):
        put('r', text, model())
        shutil.rmtree('r.out')
        assert run(program, 'r', 'r.out').returncode == 0, text
        new = json.loads(open('r.out/config.json').read())
        assert new.pop('quantization_config')['fp8_format'] == 'float8_e4m3'
        old = json.loads(text)
        old.pop('quantization_config', None)
        assert new == old, (text, new)


# ---- refusals ----


def refusals(program):
    w, e = 'a.q_proj.weight', 'm.experts.down_proj'
    ok4 = nvfp4('a.q_proj', 8, 32, 0.1, False)
    ct4 = nvfp4('a.q_proj', 8, 32, 9.0, True)
    mx = blocks(e, (2, 8, 64))
    block = {w: fp8(201, 301), w + '_scale_inv': some(2, 3)}
    fp8q = q(weight_block_size=[128, 128])

    def drop(t, name):
        return {k: v for k, v in t.items() if k != name}

    def swap(t, name, value):
        return {**t, name: value}

    rows = [
        (
            'MXFP4 unasked',
            mx,
            {},
            [],
            e + '_blocks: it is MXFP4: say what it becomes, --mxfp4 fp8, --mxfp4 bf16 or --mxfp4 mx',
        ),
        ('NVFP4 unasked', ok4, {}, [], 'a.q_proj.weight: it is NVFP4: say what it becomes'),
        ('scales missing', drop(mx, e + '_scales'), {}, ['--mxfp4', 'fp8'], e + '_blocks: its scales are missing'),
        ('blocks missing', {**drop(mx, e + '_blocks'), **block}, fp8q, [], e + '_scales: its blocks are missing'),
        ('groups differ', swap(mx, e + '_scales', u8((2, 8, 3))), {}, ['--mxfp4', 'fp8'], 'do not fit'),
        ('rows differ', swap(mx, e + '_scales', u8((2, 9, 2))), {}, ['--mxfp4', 'bf16'], 'do not fit'),
        ('17 bytes', swap(mx, e + '_blocks', u8((2, 8, 2, 17))), {}, ['--mxfp4', 'mx'], 'do not fit'),
        (
            'blocks of another type',
            swap(mx, e + '_blocks', plain(2, 8, 2, 16)),
            {},
            ['--mxfp4', 'fp8'],
            'it is BF16; blocks of MXFP4 are U8',
        ),
        (
            'scales of another type',
            swap(mx, e + '_scales', some(2, 8, 2)),
            {},
            ['--mxfp4', 'fp8'],
            'its scales are F32',
        ),
        (
            'a scale that is NaN',
            swap(mx, e + '_scales', u8((2, 8, 2), 255, 256)),
            {},
            ['--mxfp4', 'fp8'],
            'scale 0 is NaN',
        ),
        ('the name is taken', {**mx, e: plain(2, 64, 8)}, {}, ['--mxfp4', 'bf16'], 'that is another tensor'),
        (
            'no multiple of 32',
            {w: fp8(32, 40), w + '_scale': some(1)},
            {},
            ['--fp8', 'mx'],
            'its 40 inputs are no multiple of 32',
        ),
        (
            'NVFP4 without its second scale',
            drop(ok4, w + '_scale_2'),
            {},
            ['--nvfp4', 'fp8'],
            'its second scale weight_scale_2 is missing',
        ),
        (
            'NVFP4 without its first scale',
            drop(ct4, w + '_scale'),
            {},
            ['--nvfp4', 'fp8'],
            'its weight_scale is missing',
        ),
        ('NVFP4, a shape', swap(ok4, w + '_scale', fp8(8, 3)), {}, ['--nvfp4', 'fp8'], 'do not fit'),
        (
            'NVFP4, a negative scale',
            swap(ok4, w + '_scale', ('F8_E4M3', [8, 2], b'\x81' * 16)),
            {},
            ['--nvfp4', 'fp8'],
            'is negative',
        ),
        (
            'NVFP4, a scale that is NaN',
            swap(ok4, w + '_scale', ('F8_E4M3', [8, 2], b'\x7f' * 16)),
            {},
            ['--nvfp4', 'bf16'],
            'is NaN',
        ),
        ('NVFP4, a type', swap(ok4, w + '_scale', some(8, 2)), {}, ['--nvfp4', 'fp8'], 'NVFP4 has F8_E4M3'),
        ('NVFP4, two second scales', swap(ok4, w + '_scale_2', some(2)), {}, ['--nvfp4', 'fp8'], 'is not one F32'),
        (
            'NVFP4, a divisor of 0',
            swap(ct4, 'a.q_proj.weight_global_scale', ('F32', [1], f32([0]))),
            {},
            ['--nvfp4', 'mx'],
            'positive',
        ),
        ('FP8, a shape', swap(block, w + '_scale_inv', some(2, 4)), fp8q, [], 'weight_block_size [128, 128]'),
        (
            'FP8, another block',
            swap(block, w + '_scale_inv', some(4, 5)),
            q(weight_block_size=[64, 128]),
            [],
            'weight_block_size [64, 128]',
        ),
        ('FP8, no scale', {w: fp8(201, 301)}, fp8q, [], 'its scale is missing'),
        ('FP8, no weight', drop(block, w), fp8q, [], 'its weight a.q_proj.weight is missing'),
        ('a scale beside BF16', swap(block, w, plain(201, 301)), fp8q, [], 'is BF16, which has no scale'),
        (
            'FP8, a scale of integers',
            swap(block, w + '_scale_inv', ('I32', [2, 3], bytes(24))),
            fp8q,
            [],
            'is I32; expected',
        ),
        ('a size', block, q(weight_block_size=[128]), [], 'is not a list of two sizes'),
        ('a list', block, q(ignore='lm_head'), ['--quantize'], 'its ignore is not a list of names'),
        ('an entry', block, q(ignore=[3]), ['--quantize'], 'has an entry that is no name'),
        ('a class', block, q(ignore=['LlamaAttention']), ['--quantize'], 'names do not tell which modules are of it'),
        ('a regex', block, q(ignore=['re:(']), ['--quantize'], 'a group that does not close'),
        ('looking behind', block, q(ignore=['re:(?<=a)b']), ['--quantize'], 'a group of this kind'),
        ('dynamic bits', block, q(dynamic={'+:.*': {'bits': 4}}), ['--quantize'], 'asks for more than 8 bits'),
        ('no JSON', block, '{"a": ', [], 'it is not a JSON object'),
        (
            'GPTQ',
            {'a.qweight': ('I32', [4, 8], bytes(128)), 'a.g_idx': ('I32', [4], bytes(16)), 'a.scales': plain(1, 8)},
            {'quantization_config': {'quant_method': 'gptq'}},
            [],
            'config.json says GPTQ with 0 bits',
        ),
        (
            'AWQ',
            {
                'a.qweight': ('I32', [4, 8], bytes(128)),
                'a.qzeros': ('I32', [1, 1], bytes(4)),
                'a.scales': plain(1, 8),
            },
            {'quantization_config': {'quant_method': 'awq'}},
            [],
            'the shape of its scales is [1, 8]; expected [.., 64]',
        ),
        (
            'AWQ, by its tensors',
            {'a.qweight': ('I32', [4, 8], bytes(128)), 'a.qzeros': ('I32', [1, 1], bytes(4))},
            None,
            [],
            'its weights are AWQ',
        ),
        (
            'bitsandbytes, 4 bits',
            {w: u8((64, 1)), w + '.absmax': some(4), w + '.quant_state.bitsandbytes__nf4': u8((80,))},
            None,
            [],
            'its quant_state does not say quant_type',
        ),
        (
            'bitsandbytes, 8 bits',
            {w: ('I8', [4, 4], bytes(16)), 'a.q_proj.SCB': some(4)},
            None,
            [],
            'its weights are bitsandbytes',
        ),
        ('HQQ', {'a.W_q': u8((4, 4)), 'a.scale': some(1), 'a.zero': some(1)}, None, [], 'its weights are HQQ'),
        (
            'integers of compressed-tensors',
            {
                'a.weight_packed': ('I32', [4, 4], bytes(64)),
                'a.weight_shape': ('I32', [2], bytes(8)),
                'a.weight_scale': plain(4, 1),
            },
            {'quantization_config': {'quant_method': 'compressed-tensors', 'format': 'pack-quantized'}},
            [],
            'config.json says num_bits 0',
        ),
        (
            'int8',
            {w: ('I8', [4, 4], bytes(16)), w + '_scale': plain(4, 1)},
            {'quantization_config': {'quant_method': 'compressed-tensors'}},
            [],
            'it is INT8: say what it becomes, --int8 fp8, --int8 bf16 or --int8 mx',
        ),
        ('FNUZ', {w: ('F8_E4M3FNUZ', [4, 4], bytes(16))}, None, [], 'FP8 of AMD'),
        ('a pattern for nothing', model(), {}, ['--include', '*nothing*'], "--include '*nothing*' names no tensor"),
        (
            'against a rule',
            model(),
            q(ignore=['re:.*q_proj']),
            ['--include', '*q_proj*'],
            'is to stay as it is (config.json, ignore: re:.*q_proj)',
        ),
        (
            'tied',
            model(),
            {'tie_word_embeddings': True},
            ['--include', '*lm_head*'],
            'embedding and output are one matrix',
        ),
        (
            'tied, the other',
            model(),
            {'text_config': {'tie_word_embeddings': True}},
            ['--include', '*embed*'],
            'embedding and output are one matrix',
        ),
        (
            'tied for want of a head',
            drop(model(), 'lm_head.weight'),
            {},
            ['--include', '*embed*'],
            'embedding and output are one matrix',
        ),
    ]
    WIDTH['F8_E4M3FNUZ'] = 1
    for what, tensors, config, arguments, sentence in rows:
        put('h', config, tensors)
        done = run(program, 'h', 'h.out', *arguments)
        lines = done.stderr.splitlines()
        assert done.returncode == 2 and len(lines) == 1 and not done.stdout, (
            what,
            done.returncode,
            done.stderr,
            done.stdout,
        )
        assert sentence in lines[0], (what, lines[0])
        assert not [f for f in os.listdir('.') if f.startswith('h.out')], (what, os.listdir('.'))
        assert run(program, 'h', '--check', *arguments).returncode == 2, (what, '--check')
    put('h', q(ignore=['re:(', 'LlamaAttention']), block)  # rules that are not needed need not be understood
    assert run(program, 'h', 'h.out').returncode == 0
    shutil.rmtree('h.out')
    put('h', {'tie_word_embeddings': False}, model())  # and what is not tied may be asked for
    assert run(program, 'h', 'h.out', '--include', '*lm_head*').returncode == 0
    assert quantised_of('h.out/model.safetensors') == {'lm_head.weight'}
    put('h', q(ignore=['re:.*q_proj']), model())
    shutil.rmtree('h.out')
    assert run(program, 'h', 'h.out', '--include', '*q_proj*', '--no-rules').returncode == 0
    assert quantised_of('h.out/model.safetensors') == only('q_proj')
    shutil.rmtree('h.out')
    os.makedirs('g', exist_ok=True)
    open('g/m.gguf', 'wb').write(b'GGUF' + bytes(60))
    for path in 'g', 'g/m.gguf':  # what becomes of a whole one: gguf_layouts.py
        done = run(program, path, 'h.out')
        assert done.returncode == 2 and 'it is GGUF' in done.stderr, done.stderr
    print(len(rows), 'refusals')


# ---- advice ----


def answers(program, *arguments):
    done = run(program, '--advise', *arguments, '--json', '-')
    assert done.returncode == 0, done.stderr
    return {(r['generation'], r['route']): r for r in json.loads(done.stdout)['routes']}


def advice(program, folder):
    """FP8 in blocks of 128, NVFP4 and MXFP4: what is counted here from codes, and what the cost rules say by hand."""
    path = os.path.join(folder, 'deepseek')
    got = answers(program, path)
    assert {g for g, _ in got} == {1, 2, 3}
    before, _ = load(os.path.join(path, 'model.safetensors'))
    codes = np.concatenate([raw(t).ravel() for t in before.values() if t[0] == 'F8_E4M3'])
    scales = sum(len(t[2]) for n, t in before.items() if n.endswith('_scale_inv'))
    x, n = OCP[codes], codes.size
    tiles = sum(-(-t[1][1] // 128) * -(-t[1][0] // 512) for t in before.values() if t[0] == 'F8_E4M3')
    ratio = encode(
        numbers(('BF16', [n], to_bf16(x.astype(np.float32) / np.float32(28 / 15)).tobytes())).astype(float), NEURON
    )
    share = {
        'halve': NEURON[encode(x / 2, NEURON)] * 2 == x,
        'ratio': NEURON[ratio] * 28 == x * 15,
        'relabel': np.abs(x) <= 240,
        'native': x == x,
        'table': x == x,
        'bits': x == x,
    }
    for (g, route), r in got.items():
        if route in share:
            assert abs(r['exact'] - share[route].mean()) < 1e-9, (route, r['exact'], share[route].mean())
            assert r['weight_bytes'] == n and r['scale_bytes'] == scales, r
        assert r['not_finite'] == (int((np.abs(x) > 240).sum()) if route == 'relabel' else 0), r
        assert (r['legal'] == 'yes') == (g == 3 or route not in ('native', 'mx')), (g, route)
        assert (r['why'] is not None) == (r['legal'] == 'no' or route in ('relabel', 'table', 'bits')), r
    for g in 1, 2, 3:
        assert got[g, 'bf16']['weight_bytes'] == 2 * n and got[g, 'bf16']['scale_bytes'] == 0
        assert got[g, 'mx']['scale_bytes'] == n // 32
        assert got[g, 'table']['known'] == 'assumed' and got[g, 'halve']['known'] == 'documented'
        assert sum(r['advised'] == 'yes' for (k, _), r in got.items() if k == g) == 1
        hbm = {1: 0.82e12, 2: 2.9e12, 3: 4.9e12}[g]
        r = got[g, 'halve']  # 512 columns; 512 sums of each block, two inputs
        assert r['tensor_cycles'] == (512 if g == 1 else 256) and r['decode_cycles'] == 1024, r
        assert r['engines'] == 'VectorE'
        assert abs(r['memory_us'] / (1e6 * (n + scales) / hbm) - 1) < 0.05, (g, r['memory_us'])
        assert got[g, 'table']['decode_cycles'] == 512 + 150 + 512 + 1024 and got[g, 'table']['tensor_cycles'] == 512
    assert got[3, 'mx']['tensor_cycles'] == 128 and got[3, 'mx']['decode_cycles'] == 0
    assert got[1, 'halve']['advised'] == got[2, 'halve']['advised'] == got[3, 'native']['advised'] == 'yes'
    one = answers(program, path, '--generation', '2')
    assert one == {k: r for k, r in got.items() if k[0] == 2}
    four = answers(program, os.path.join(folder, 'gptoss'))
    assert {r for _, r in four} == {'widen', 'table', 'bf16', 'mx'} and four[3, 'mx']['advised'] == 'yes'
    assert all(r['exact'] == 1 for r in four.values()) and four[2, 'mx']['legal'] == 'no'
    assert 'Trainium2' in four[2, 'mx']['why'], four[2, 'mx']
    elements = 2 * 64 * 96 + 2 * 96 * 32
    assert four[2, 'widen']['weight_bytes'] == elements and four[2, 'widen']['scale_bytes'] == elements / 32 * 4
    assert four[3, 'mx']['weight_bytes'] == elements / 2 and four[3, 'mx']['scale_bytes'] == elements / 32
    nv = answers(program, os.path.join(folder, 'ct4'))
    assert nv[2, 'table']['weight_bytes'] == 70 * 48 and nv[2, 'table']['scale_bytes'] == 70 * 6 + 4
    assert 20 < nv[3, 'mx']['sqnr_db'] < 60 and nv[2, 'widen']['sqnr_db'] > 140
    done = run(program, '--advise', path, '--csv', '-')
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.returncode == 0 and len(rows) == len(got), done.stderr
    assert 'Advised: halve' in run(program, '--advise', path, '--generation', '2').stdout


if __name__ == '__main__':
    if sys.argv[1] == 'kept':
        check('fp8', *sys.argv[2:], kept=True)
    else:
        {
            'make': make,
            'check': check,
            'shard': shard,
            'same': same,
            'rules': rules,
            'refusals': refusals,
            'advice': advice,
        }[sys.argv[1]](*sys.argv[2:])
