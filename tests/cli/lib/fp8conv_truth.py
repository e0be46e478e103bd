"""Is what fp8conv says true, is all there, and does a second run change nothing? By rules of their own, in fractions.

    fp8conv_truth.py exact PROGRAM    is every code the nearest, by exact fractions?
    fp8conv_truth.py twice PROGRAM    every mode twice: the same bytes, or a sentence
    fp8conv_truth.py config PROGRAM   what config.json says after every mode, against what is in the files
    fp8conv_truth.py text PROGRAM     JSON as Python's json has it; what is not understood stays as it is
    fp8conv_truth.py files PROGRAM    shards outside of the index, and all else that lies beside the weights
    fp8conv_truth.py runs PROGRAM     scales of activations and caches, under every name
    fp8conv_truth.py names PROGRAM    names of 255 bytes
    fp8conv_truth.py full PROGRAM     a file that may not grow
"""
import itertools, json, os, resource, shutil, sys
from fractions import Fraction
import numpy as np
from fp8conv import NEURON, OCP, codes, encode, f32, load_file, numbers, save, to_bf16
from fp8conv_kinds import R, bf16, every_kind, fp8, model, plain, put, run, some

DEEP = int(os.environ.get('TRN_TEST_LEVEL', '1')) >= 2
NOTHING = 'there is nothing to convert'
L = 'model.layers.0.'


def files_of(folder):
    out = {}
    for path, _, names in os.walk(folder):
        for n in names:
            with open(os.path.join(path, n), 'rb') as f:
                out[os.path.relpath(os.path.join(path, n), folder)] = f.read()
    return out


def convert(program, source, target, *arguments):
    shutil.rmtree(target, ignore_errors=True)
    return run(program, source, target, *arguments)


# ---- codes against fractions ----


def units(table):
    """Magnitudes in units of 2^-9, which all of them are whole numbers of."""
    return [int(v * 512) for v in table[:128] if np.isfinite(v)]


def nearest(target, scale, values):
    """The magnitude whose product with the scale is nearest, ties to even: fractions, compared in whole numbers."""
    left, right = 2 * 512 * target.numerator * scale.denominator, scale.numerator * target.denominator
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        other = (values[middle] + values[middle + 1]) * right
        if left > other or (left == other and middle % 2):
            low = middle + 1
        else:
            high = middle
    return low


def fraction(x):
    return Fraction(float(x))


def awkward(rows):
    """Scales of all sizes, and some whose ratios are short."""
    s = np.exp2(R.uniform(-14, 14, rows)).astype(np.float32)
    s[::5] = (R.integers(1, 64, s[::5].size) / 60).astype(np.float32)
    s[0], s[1] = 1, np.float32(2.7e-4)
    return s


def exact(program):
    """All finite codes under many pairs of scales; numbers that stand on middles between codes and beside them."""
    rows = 3000 if DEEP else 60
    finite = np.array([c for c in range(128) if c != 127], np.uint8)
    near = checked = 0
    for to, grain in itertools.product(('neuron', 'ocp'), ('channel', 'block')):
        s = awkward(rows)
        table = NEURON if to == 'neuron' else OCP
        values = units(table)
        put('x', {}, {'w.weight': ('F8_E4M3', [rows, 127], np.tile(finite, (rows, 1)).tobytes()),
                      'w.weight_scale': ('F32', [rows, 1], f32(s))})
        words = ['--from', 'ocp' if to == 'neuron' else 'neuron', '--to', to, '--mode', 'requant', '--scales', grain]
        done = convert(program, 'x', 'y', *words, '--block', '20x30', '--verify')
        assert done.returncode == 0, done.stderr
        after, _ = load_file('y/model.safetensors')
        got, source = codes(after['w.weight']), OCP if to == 'neuron' else NEURON
        z = spread_of(numbers(next(after[n] for n in after if 'scale' in n)), rows)
        for r in range(rows):
            for k in np.flatnonzero(np.isfinite(source[:127])):
                want = nearest(fraction(source[k]) * fraction(s[r]), fraction(z[r, k]), values)
                assert got[r, k] == want, (to, grain, r, k, got[r, k], want)
                checked += 1
        rounded = source[:127].astype(np.float32) * s[:, None] / z  # what a quotient in binary32 would have made of it
        miss = encode(np.nan_to_num(rounded.astype(float), posinf=0), table) != got
        near += int((miss & np.isfinite(source[:127])).sum())
    assert near > 0, 'no pair of scales on which a rounded quotient would err: the test is blunt'
    values, n = units(NEURON), 2000 if DEEP else 60
    for kind in 'F32', 'BF16':
        most = np.exp2(R.uniform(-8, 8, n)).astype(np.float32)
        if kind == 'BF16':
            most = numbers(bf16(most))
        scale = (most.astype(float) / 240).astype(np.float32)
        middles = ((NEURON[1:120] + NEURON[:119]) / 2)[R.integers(0, 119, (n, 64))]
        x = (middles * scale[:, None].astype(float)).astype(np.float32)
        x += R.integers(-1, 2, x.shape) * np.spacing(x)
        x = numbers(bf16(x)) if kind == 'BF16' else x
        x[:, 0] = most
        put('x', {}, {'w.weight': ('F32', [n, 64], f32(x)) if kind == 'F32' else bf16(x)})
        done = convert(program, 'x', 'y', '--scales', 'channel', '--verify')
        assert done.returncode == 0, done.stderr
        after, _ = load_file('y/model.safetensors')
        got, z = codes(after['w.weight']), numbers(after['w.weight_scale'])
        for r, k in itertools.product(range(n), range(64)):
            assert got[r, k] == nearest(fraction(x[r, k]), fraction(z[r, 0]), values), (kind, r, k)
    print(checked, 'codes,', near, 'of which a rounded quotient would have missed')
    cut_before(program)


def cut_before(program):
    """NVFP4's numbers have 30 bits and more. Quantised anew, one that binary32 does not hold is compared as it is: of
    these, whose quotients by the new scale stand beside the middles between codes, a number that was cut first errs."""
    fp4, e4m3 = [0, .5, 1, 1.5, 2, 3, 4, 6], lambda x: int(np.flatnonzero(OCP[:127] == x)[0])
    small, values, missed = [OCP[c] for c in range(0x20, 0x57)], units(NEURON), 0
    for over, many in itertools.product((False, True), [400 if DEEP else 40]):
        tensors, parts = {}, []
        for i in range(many):
            second = np.float32(R.uniform(1e-4, 1e-2) if not over else R.uniform(100, 9000))
            scales = R.choice([x for x in small if x <= 10], (1, 4)).astype(float)
            code = R.integers(0, 16, (1, 64))
            scales[0, 0], code[0, 0] = 10, 7
            end = 'weight_packed' if over else 'weight'
            packed = (code[:, ::2] | code[:, 1::2] << 4).astype(np.uint8)
            tensors[f'm.{i}.up_proj.{end}'] = ('U8', [1, 32], packed.tobytes())
            tensors[f'm.{i}.up_proj.weight_scale'] = ('F8_E4M3', [1, 4], bytes(e4m3(x) for x in scales[0]))
            tensors[f'm.{i}.up_proj.weight_{"global_scale" if over else "scale_2"}'] = ('F32', [1], f32([second]))
            parts.append((second, scales, code))
        put('x', {'quantization_config': {'quant_method': 'compressed-tensors', 'format': 'nvfp4-pack-quantized'} if over
                  else {'quant_method': 'modelopt', 'quant_algo': 'NVFP4'}}, tensors)
        done = convert(program, 'x', 'y', '--nvfp4', 'fp8', '--scales', 'channel', '--verify')
        assert done.returncode == 0, done.stderr
        after, _ = load_file('y/model.safetensors')
        for i, (second, scales, code) in enumerate(parts):
            got = codes(after[f'm.{i}.up_proj.weight'])
            z = fraction(numbers(after[f'm.{i}.up_proj.weight_scale']).reshape(-1)[0])
            for k in range(64):
                size = fraction(fp4[code[0, k] & 7]) * fraction(scales[0, k // 16])
                v = size / fraction(second) if over else size * fraction(second)
                want = nearest(v, z, values) if v else 0
                assert got[0, k] & 127 == want, (over, i, k, got[0, k], want)
                low = np.float32(float(v))
                missed += nearest(fraction(low), z, values) != want if v else 0
    assert missed > 0, 'binary32 holds what matters of these numbers: the test is blunt'
    print(missed, 'codes that a number cut to binary32 would have missed')


def spread_of(z, rows):
    """Scales of rows, or of blocks of 20x30, for each element of [rows, 127]."""
    if z.shape[1] == 1 and z.shape[0] == rows:
        return np.repeat(z, 127, 1)
    return np.repeat(np.repeat(z, 20, 0)[:rows], 30, 1)[:, :127]


# ---- twice ----

CACHE = {L + 'self_attn.k_scale': bf16([0.031]), L + 'self_attn.v_scale': ('F32', [1], f32([0.5]))}
FP4 = {'gptoss': '--mxfp4', 'openai': '--mxfp4', 'ctmx': '--mxfp4', 'modelopt4': '--nvfp4', 'ct4': '--nvfp4'}


def ways(kind):
    if kind in FP4:
        yield from ([FP4[kind], form] for form in ('fp8', 'bf16', 'mx'))
        yield [FP4[kind], 'fp8', '--scales', 'block', '--power-of-two']
        return
    yield []
    if kind not in ('mxfp8', 'numbers'):
        yield ['--mode', 'ratio']
    for grain in 'kept', 'tensor', 'channel', 'block':
        yield ['--mode', 'requant', '--scales', grain]
    yield ['--mode', 'requant', '--power-of-two']
    yield ['--mode', 'requant', '--power-of-two', '--scales', 'channel']
    yield ['--fp8', 'bf16'] if kind != 'numbers' else ['--scales', 'block', '--block', '16x16']
    if kind != 'numbers':
        yield ['--fp8', 'mx']
        yield ['--fp8', 'bf16', '--keep-run-scales']


def sources():
    for kind, config, tensors in every_kind():
        if kind in ('square', 'quark') or (kind in ('openai', 'ct4', 'powers') and not DEEP):
            continue
        yield kind, config, {**tensors, **CACHE}
    yield 'numbers', {'tie_word_embeddings': False}, {**model(), **CACHE}
    dense = {'quant_method': 'compressed-tensors', 'format': 'dense'}
    dense['kv_cache_scheme'] = {'num_bits': 8, 'type': 'float'}
    yield 'cache', {'quantization_config': dense}, {**model(), **CACHE}


def twice(program):
    """Once more with the same words, and with none: the same bytes, or nothing to convert; scales move once."""
    done = refused = 0
    for kind, config, tensors in sources():
        put('x', config, tensors)
        for words in ways(kind):
            if kind == 'cache' and 'kept' not in words and words:
                continue
            first = convert(program, 'x', 'one', *words)
            assert first.returncode == 0, (kind, words, first.stderr)
            one = files_of('one')
            scales = {n: t for n, t in load_file('one/model.safetensors')[0].items() if n in CACHE}
            for again in (words, []):
                second = convert(program, 'one', 'two', *again)
                if second.returncode:
                    assert second.returncode == 2 and NOTHING in second.stderr, (kind, words, again, second.stderr)
                    assert not os.path.exists('two'), 'refused, and written'
                    refused += 1
                    continue
                after = load_file('two/model.safetensors')[0]
                kept = '--keep-run-scales' in words and not again
                assert kept or {n: after[n] for n in scales} == scales, (kind, words, again, 'the scales moved again')
                if again == words and words:
                    two = files_of('two')
                    assert two == one, (kind, words, [n for n in one if two.get(n) != one[n]])
                done += 1
    for words in [], ['--mode', 'requant'], ['--mode', 'requant', '--scales', 'channel']:  # and back
        put('x', {}, {'w.weight': fp8(64, 64), 'w.weight_scale': some(1), **CACHE})
        assert convert(program, 'x', 'one').returncode == 0
        assert convert(program, 'one', 'back', '--to', 'ocp', *words).returncode == 0
        second = convert(program, 'back', 'two', '--to', 'ocp', *words)
        assert files_of('two') == files_of('back') if words else NOTHING in second.stderr, (words, second.stderr)
    put('x', {'quantization_config': {'quant_method': 'fp8'}}, {'w.weight': fp8(64, 64), 'w.weight_scale': some(1)})
    assert convert(program, 'x', 'one').returncode == 0  # who saves it again may lose the mark of the file
    tensors, _ = load_file('one/model.safetensors')
    save('one/model.safetensors', tensors, {'format': 'pt'})
    assert NOTHING in convert(program, 'one', 'two').stderr
    put('x', {}, {'w.weight': ('F8_E5M2', [4, 4], bytes(16)), 'v.weight': plain(8, 8)})
    assert 'E5M2, the same on both sides' in convert(program, 'x', 'two').stderr
    print(done, 'runs changed nothing,', refused, 'found nothing to convert')


# ---- config.json ----

FP8 = {'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': 'dynamic'}
BLOCKS = {**FP8, 'weight_block_size': [64, 64], 'scale_fmt': 'ue8m0'}
CHANNELS = {
    'quant_method': 'compressed-tensors', 'format': 'float-quantized', 'ignore': ['lm_head'],
    'kv_cache_scheme': {'num_bits': 8, 'type': 'float', 'x': 1e-05},
    'config_groups': {
        'group_0': {'targets': ['Linear'], 'weights': {'num_bits': 8, 'type': 'float', 'strategy': 'channel'}}
    },
}
MODELOPT = {'quant_method': 'modelopt', 'quant_algo': 'FP8', 'kv_cache_quant_algo': 'FP8', 'ignore': ['lm_head']}


def weights(scale, **more):
    both = [L + 'mlp.up_proj.weight', L + 'mlp.down_proj.weight']
    quantised = {w + n: t for w in both for n, t in {'': fp8(128, 128), **scale}.items()}
    return {'model.embed_tokens.weight': plain(16, 128), 'lm_head.weight': plain(16, 128), **quantised, **more}


def powers(*shape):
    return 'F32', list(shape), f32(np.exp2(R.integers(-9, 3, shape)))


def described():
    """(what, config.json, hf_quant_config.json, tensors)"""
    yield 'nothing is said', {'a': 1}, None, weights({'_scale': some(1)})
    yield 'fp8', {'quantization_config': FP8, 'z': 2}, None, weights({'_scale': some(1)})
    yield 'fp8, a null', {'quantization_config': {**FP8, 'weight_block_size': None}}, None, weights({'_scale': some(1)})
    yield 'blocks of powers', {'a': 1, 'quantization_config': BLOCKS}, None, weights({'_scale_inv': powers(2, 2)})
    left = {**BLOCKS, 'modules_to_not_convert': [L + 'self_attn', 'lm_head']}
    yield 'blocks, mixed', {'quantization_config': left}, None, weights(
        {'_scale_inv': powers(2, 2)}, **{L + 'self_attn.q_proj.weight': plain(64, 64)})
    yield 'channels', {'quantization_config': CHANNELS}, None, weights({'_scale': some(128, 1)}, **CACHE)
    yield 'modelopt', {'quantization_config': MODELOPT}, {'quantization': {'quant_algo': 'FP8'}}, weights(
        {'_scale': some(1)}, **CACHE, **{L + 'mlp.up_proj.input_scale': some(1)})
    nvidia = {'quant_algo': 'FP8', 'kv_cache_quant_algo': 'FP8'}
    yield 'TensorRT-LLM', {'architecture': 'L', 'quantization': nvidia}, None, weights({'_scale': some(1)}, **CACHE)
    yield 'inside', {'text_config': {'quantization_config': FP8, 'b': 1}, 'c': 2}, None, weights({'_scale': some(1)})
    yield 'in two places', {'text_config': {'quantization_config': FP8}, 'quantization_config': FP8,
                            'compression_config': FP8}, None, weights({'_scale': some(1)})
    yield 'the older name', {'compression_config': CHANNELS}, None, weights({'_scale': some(128, 1)})
    yield 'experts', {'model_type': 'llama4', 'quantization_config': FP8}, None, {
        L + 'mlp.experts.gate_up_proj': fp8(2, 64, 32), L + 'mlp.experts.gate_up_proj_scale': some(2, 1, 32)}


def places(config):
    found = []
    for outer in config, config.get('text_config') or {}:
        for key in 'quantization_config', 'compression_config', 'quantization':
            if isinstance(outer.get(key), dict):
                found.append(outer[key])
    return found


def is_fp8(t):
    return t[0] == 'F8_E4M3' and len(t[1]) >= 2


def scale_of(tensors, name):
    return next(tensors[name + e] for e in ('_scale_inv', '_scale') if name + e in tensors)


def ceil_shape(shape, block):
    return [*shape[:-2], -(-shape[-2] // block[0]), -(-shape[-1] // block[1])]


def assert_true_of(what, tensors, metadata, config, neuron):
    """Is what the description says so in the tensors?"""
    found, fp8s = places(config), [n for n, t in tensors.items() if is_fp8(t)]
    words = {n for n in tensors if n.endswith('_words')}
    caches = [n for n in CACHE if n in tensors]
    if not fp8s and not words and not caches:
        assert not found, (what, found)
        return
    assert found, what
    for q in found:
        marked = neuron and bool(fp8s or caches)
        assert (q.get('fp8_format') == 'float8_e4m3') == marked, (what, q)
        assert (metadata.get('fp8_format') == 'float8_e4m3') == marked, (what, metadata)
        assert set(q.get('mx_words', [])) == words, (what, q)
        if not fp8s and not words:
            assert q.get('format') == 'dense' or q.get('quant_algo') is None, (what, q)
            assert q.get('kv_cache_scheme') or q.get('kv_cache_quant_algo'), (what, q)
            continue
        groups = [g['weights'] for g in (q.get('config_groups') or {}).values()]
        for n in fp8s:
            s, shape = scale_of(tensors, n), tensors[n][1]
            size = int(np.prod(s[1])) if s[1] else 1
            if q.get('scale_fmt') == 'ue8m0':
                assert (np.log2(numbers(s)) % 1 == 0).all(), (what, 'scales are no powers of two')
            if 'weight_block_size' in q:
                block = q['weight_block_size']
                assert size == 1 if block is None else s[1] == ceil_shape(shape, block), (what, n, s[1], block)
            if groups and groups[0].get('strategy') == 'channel':
                assert s[1] in ([shape[0], 1], [shape[0]]), (what, n, s[1])
            if q.get('quant_method') == 'modelopt':
                assert size == 1, (what, n, s[1])
        listed = (q.get('modules_to_not_convert') or []) + (q.get('ignore') or [])
        for n, t in tensors.items():
            if t[0] == 'BF16' and len(t[1]) == 2 and n.endswith('.weight') and ('proj' in n or 'head' in n):
                module = n[:-7]
                covered = any(module == e or module.startswith(e + '.') for e in listed)
                assert covered or not listed, (what, module, listed)


def loader_is_known(tensors):
    """None is known for other shapes than these, for static activations beside blocks, and for Trainium3's words."""
    if any(n.endswith('_words') for n in tensors):
        return False
    kinds = set()
    for n, t in tensors.items():
        if is_fp8(t):
            s = scale_of(tensors, n)[1]
            one = int(np.prod(s)) == 1 and n + '_scale_inv' not in tensors
            row = len(t[1]) == 2 and s == [t[1][0], 1]
            kinds.add('one' if one else 'row' if row else 'blocks' if s == ceil_shape(t[1], [128, 128]) else 'other')
    static = any(n.endswith('input_scale') for n in tensors)
    return len(kinds) <= 1 and 'other' not in kinds and not (static and 'blocks' in kinds)


MODES = '|--mode ratio|--mode requant|--mode requant --power-of-two|--fp8 bf16|--fp8 mx|--quantize|'
MODES += '--mode requant --scales tensor|--mode requant --scales channel|--mode requant --scales block|'
MODES += '--mode requant --scales block --block 32x64|--mode requant --to ocp'


def config(program):
    rows = 0
    for what, said, modelopt, tensors in described():
        put('x', said, tensors)
        if modelopt:
            json.dump(modelopt, open('x/hf_quant_config.json', 'w'))
        for words in (line.split() for line in MODES.split('|')):
            done = convert(program, 'x', 'y', *words)
            if done.returncode:
                assert NOTHING in done.stderr or 'powers of two' in done.stderr or 'inputs' in done.stderr, done.stderr
                continue
            after, metadata = load_file('y/model.safetensors')
            new = json.load(open('y/config.json'))
            label = (what, *words)
            assert_true_of(label, after, metadata, new, 'ocp' not in words)
            rest = lambda c: {k: rest(v) if isinstance(v, dict) else v for k, v in c.items() if k not in (
                'quantization_config', 'compression_config', 'quantization')}
            assert rest(new) == rest(said), (label, 'the rest changed')
            layout = all(n in after and after[n][:2] == t[:2] for n, t in tensors.items())
            if layout:
                assert 'No loader' not in done.stdout, (label, done.stdout)
                assert len(places(new)) == (len(places(said)) or 1), label
            else:
                assert len(places(new)) <= 1, label
                known = loader_is_known(after) and not (what == 'TensorRT-LLM' and any(map(is_fp8, after.values())))
                assert ('No loader' in done.stdout) == (not known), (label, done.stdout, new)
            path = 'y/hf_quant_config.json'
            if os.path.exists(path):
                q = json.load(open(path))['quantization']
                assert layout and (q.get('fp8_format') == 'float8_e4m3') == ('ocp' not in words), (label, q)
            rows += 1
    print(rows, 'descriptions are true')


# ---- JSON as Python has it ----

MEMBERS = [
    '"time_step_limit": [0.0, Infinity]', '"a": -Infinity', '"a": [[1, [-Infinity]], {"b": NaN}]', '"a": NaN',
    '"eps": 1e-05', '"big": 123456789012345678901234567890', '"a": 1, "a":   2', '"a": {"b": 1, "b": [2]}',
    '"u": "\\ud83d\\ude00 \\ud800 lone"', '"e": "\\u00e9\\/\\"\\\\"', '"deep": ' + '[' * 300 + ']' * 300,
    '"t":\t[ ]\r\n',
    '"model_type": "llama", "model_type": "mistral"', '"neg": -0.0, "x": 1E+2',
]


def text(program):
    tensors = {'w.weight': fp8(16, 16), 'w.weight_scale': some(1)}
    for member, mark in itertools.product(MEMBERS, ('', '\ufeff')):
        for quantisation in '"quantization_config": {"quant_method": "fp8", "nan": NaN, "low": [-Infinity]}', None:
            before = mark + '{\n ' + member + (',  ' + quantisation if quantisation else '') + ' }\n'
            put('x', before, tensors)
            done = convert(program, 'x', 'y')
            assert done.returncode == 0, (before, done.stderr)
            with open('y/config.json', encoding='utf-8', newline='') as f:
                after = f.read()
            added = ', "fp8_format": "float8_e4m3"'
            if quantisation:
                assert after.replace(added, '') == before, (before, after)
            else:
                assert after.startswith(before.rstrip(' }\r\n')), (before, after)
            q = json.loads(after.encode())['quantization_config']
            assert q['fp8_format'] == 'float8_e4m3'
    twice_said = '{"quantization_config": {"fp8_format": "float8_e4m3"}, '
    twice_said += '"quantization_config": {"quant_method": "fp8", "a": 1, "a": 2}}'
    put('x', twice_said, tensors)  # the last one counts, for what is read and for what is written
    assert convert(program, 'x', 'y').returncode == 0
    q = json.load(open('y/config.json'))['quantization_config']
    assert q == {'quant_method': 'fp8', 'a': 2, 'fp8_format': 'float8_e4m3'}, q
    assert convert(program, 'x', 'y', '--fp8', 'bf16').returncode == 0
    assert json.load(open('y/config.json')) == {}, open('y/config.json').read()
    for wrong in '{"a": Infinit}', '{"a": +Infinity}', '{"a": nan}', '{"a": InfinityX}', '{Infinity: 1}', '{"a": 1,}':
        put('x', wrong, tensors)
        done = convert(program, 'x', 'y')
        assert done.returncode == 2 and 'it is not a JSON object' in done.stderr, (wrong, done)
        assert not os.path.exists('y'), wrong
    put('x', {}, tensors)  # an index with a mark, a line twice, metadata of its own, and Infinity in it
    index = '\ufeff{"metadata": {"total_size": 1, "total_parameters": 9, "x": [Infinity]}, '
    index += '"weight_map": {"w.weight": "no.safetensors", "w.weight": "model.safetensors", '
    index += '"w.weight_scale": "model.safetensors"}}'
    open('x/model.safetensors.index.json', 'w').write(index)
    assert convert(program, 'x', 'y', '--verify').returncode == 0
    new = json.load(open('y/model.safetensors.index.json'))
    assert new['metadata'] == {'total_size': 256 + 4, 'total_parameters': 9, 'x': [float('inf')]}, new
    raw = open('x/model.safetensors', 'rb').read()  # a header is one thing to every reader
    head = raw[8:8 + int.from_bytes(raw[:8], 'little')]
    again = head.replace(b'"w.weight_scale"', b'"w.weight"')
    for spoilt in again, b'\xef\xbb\xbf' + head, head.replace(b'[16, 16]', b'[16, Infinity]'):
        open('z.safetensors', 'wb').write(len(spoilt).to_bytes(8, 'little') + spoilt + raw[8 + len(head):])
        done = run(program, 'z.safetensors', 'z.out')
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
    print(len(MEMBERS), 'texts')


# ---- what lies beside the weights ----


def indexed(folder, shards, forget=(), metadata=None):
    where = {}
    for file, tensors in shards.items():
        save(os.path.join(folder, file), tensors, metadata)
        where.update({n: file for n in tensors if n not in forget})
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w') as f:
        json.dump({'metadata': {'total_size': 1}, 'weight_map': where}, f)


def pair(base, shape=(16, 16)):
    return {base + '.weight': fp8(*shape), base + '.weight_scale': some(1)}


def fresh(name):
    shutil.rmtree(name, ignore_errors=True)
    os.makedirs(name)


def files(program):
    many = {f'key{i}': 'text' for i in range(100)}
    fresh('x')
    indexed('x', {'model-1.safetensors': {**pair('a'), **pair('b')}, 'model-2.safetensors': pair('c')},
            ('b.weight', 'b.weight_scale'), many)
    save('x/mtp-0.safetensors', pair('mtp.0'), many)  # heads that predict further tokens
    save('x/model-extra.safetensors', {**pair('extra'), 'extra.norm.weight': plain(8)})
    save('x/model.fp16.safetensors', pair('a'))  # the same once more
    save('x/consolidated.safetensors', pair('layers.0.attention.wq'))  # the model under other names
    beside = ['tokenizer.json', 'README.md', 'LICENSE', 'modeling_x.py', 'chat_template.jinja', '1_Pooling/config.json',
              'assets/deep/a.txt', 'blobs/5e', 'generation_config.json']
    for n in beside:
        os.makedirs(os.path.dirname('x/' + n) or 'x', exist_ok=True)
        open('x/' + n, 'w').write(n)
    os.symlink('blobs/5e', 'x/linked.txt')  # as in a cache of downloads
    os.symlink('nowhere', 'x/broken.txt')
    os.symlink('assets', 'x/elsewhere')
    os.mkdir('x/onnx')
    os.mkfifo('x/pipe')
    for n in 'pytorch_model.bin', 'onnx/model.onnx', '.gitattributes', 'y.part', '1_Pooling/dense.safetensors':
        open('x/' + n, 'w').write('no')
    open('x/config.json', 'w').write('{}')
    done = convert(program, 'x', 'y', '--verify', '--json', 'r.json')
    assert done.returncode == 0, done.stderr
    got = files_of('y')
    left = ['model.fp16.safetensors', 'consolidated.safetensors', 'pytorch_model.bin', 'onnx/model.onnx',
            '.gitattributes', 'y.part', '1_Pooling/dense.safetensors', 'broken.txt', 'elsewhere', 'pipe']
    for n in left:
        assert n not in got and f'{n}: not copied: ' in done.stderr, (n, done.stderr)
    for n in beside:
        assert got[n] == n.encode(), n
    assert got['linked.txt'] == b'blobs/5e' and not os.path.islink('y/linked.txt')
    shards = {n + '.safetensors' for n in ('model-1', 'model-2', 'mtp-0', 'model-extra')}
    assert set(got) == shards | {'model.safetensors.index.json'} | set(beside) | {'linked.txt', 'config.json'}, set(got)
    said = {f['name']: f['what'] for f in json.load(open('r.json'))['files']}
    assert {n for n, w in said.items() if w == 'left'} == set(left) and said['mtp-0.safetensors'] == 'converted', said
    assert said['config.json'] == 'changed' and said['linked.txt'] == 'copied', said
    where = json.load(open('y/model.safetensors.index.json'))['weight_map']
    assert where['b.weight'] == 'model-1.safetensors' and not any(n.startswith(('mtp', 'extra')) for n in where), where
    for file, name in ('mtp-0', 'mtp.0'), ('model-extra', 'extra'), ('model-1', 'b'):
        tensors, metadata = load_file(f'y/{file}.safetensors')
        before = load_file(f'x/{file}.safetensors')[0]
        assert numbers(tensors[name + '.weight_scale']) == 2 * numbers(before[name + '.weight_scale']), name
        assert metadata['fp8_format'] == 'float8_e4m3' and (file == 'model-extra' or len(metadata) == 101), metadata
    text = run(program, 'x', '--check').stdout
    assert 'mtp-0.safetensors, weights beside those that are named: converted, too.' in text, text
    assert run(program, 'x', 'y', '--force').returncode == 0 and files_of('y') == got  # over its own directories
    os.mkdir('y/mine')
    assert 'directories in it that the input lacks' in run(program, 'x', 'y', '--force').stderr
    done = run(program, 'x/model.safetensors.index.json', 'z')  # who names the index gets what it names
    assert done.returncode == 0, done.stderr
    assert 'mtp-0.safetensors: not copied: the index that was named does not name it' in done.stderr
    save('x/half.safetensors', {**pair('a'), **pair('new')})  # neither the one nor the other
    done = convert(program, 'x', 'w')
    assert done.returncode == 2, done.stderr
    assert "2 of its 4 tensors are in the other files too, and 'new.weight" in done.stderr, done.stderr
    os.remove('x/half.safetensors')
    fresh('x')  # without an index: the usual name, and what is beside it
    save('x/model.safetensors', pair('a'))
    save('x/mtp.safetensors', pair('mtp'))
    assert convert(program, 'x', 'y', '--verify').returncode == 0
    assert sorted(files_of('y')) == ['model.safetensors', 'mtp.safetensors']
    open('x/broken.safetensors', 'w').write('version https://git-lfs.github.com/spec/v1\n')
    assert convert(program, 'x', 'w').returncode == 2 and not os.path.exists('w')
    print(len(left), 'left,', len(beside), 'copied')


# ---- scales of what is quantised at run time ----

ACTIVATIONS = ['{m}.input_scale', '{m}.act_scale', '{m}.activation_scale', '{m}.scale_input', '{m}.qscale_act',
               '{m}.activation_scaling_factor']
CACHES = ['attn.k_scale', 'attn.v_scale', 'attn.q_scale', 'attn.kv_scale', 'attn.k_proj.k_scale', 'attn_k_scale',
          'attn.v_proj.output_scale', 'attn.prob_scale', 'attn.prob_output_scale', 'attention.kv_cache_scaling_factor']
OTHERS = ['{m}.input_scale_ub', 'altup.correct_output_scale', 'attn.mask_scale', 'mlp.block_scale', 'conv_scale',
          'attn.logit_scale', 'layer_scale', 'q.inv_scale']


def runs(program):
    def built(kind):
        t = {f'{L}p{i}.weight': kind for i in range(len(ACTIVATIONS))}
        t.update({f'{L}p{i}.weight_scale': some(1) for i in range(len(ACTIVATIONS)) if kind[0] == 'F8_E4M3'})
        t.update({L + n.format(m=f'p{i}'): ('F32', [1], f32([.5 + i])) for i, n in enumerate(ACTIVATIONS)})
        t.update({L + n: bf16([1.5 + i]) for i, n in enumerate(CACHES)})
        t.update({L + n.format(m='p0'): ('F32', [1], f32([.25 + i])) for i, n in enumerate(OTHERS)})
        t.update({L + 'experts.gate_up_proj': fp8(2, 32, 32), L + 'experts.gate_up_proj_scale': some(1),
                  L + 'experts.gate_up_proj_input_scale': ('F32', [2], f32([1, 3])),
                  L + 'i.weight': ('I8', [2, 2], bytes(4)), L + 'i.input_scale': some(1), L + 'i_input_scale': some(1)})
        return t

    moving = {L + n.format(m=f'p{i}') for i, n in enumerate(ACTIVATIONS)} | {L + n for n in CACHES}
    moving.add(L + 'experts.gate_up_proj_input_scale')
    for line, factor in ('', 2), ('--mode requant', 28 / 15), ('--mode ratio', 28 / 15), ('--keep-run-scales', 1):
        words = line.split()
        before = built(fp8(16, 16))
        del before[L + 'i.weight'], before[L + 'i_input_scale'], before[L + 'i.input_scale']
        put('x', {}, before)
        done = convert(program, 'x', 'y', *words)
        assert done.returncode == 0, done.stderr
        after = load_file('y/model.safetensors')[0]
        for n, t in before.items():
            if 'scal' in n and 'weight_scale' not in n and not n.endswith('gate_up_proj_scale'):
                want = numbers(t) * np.float32(factor) if n in moving else numbers(t)
                want = (to_bf16(want).astype(np.uint32) << 16).view(np.float32) if t[0] == 'BF16' else want
                assert (numbers(after[n]) == want.reshape(t[1])).all(), (words, n, numbers(t), numbers(after[n]))
        if words == []:
            assert convert(program, 'y', 'z', '--to', 'ocp').returncode == 0
            again = load_file('z/model.safetensors')[0]
            assert all(again[n] == before[n] for n in moving), 'not what they were'
    after = convert(program, 'x', 'y', '--fp8', 'bf16')  # without the weights there are no activations to be scaled
    assert after.returncode == 0, after.stderr
    names = set(load_file('y/model.safetensors')[0])
    assert not names & {L + n.format(m=f'p{i}') for i, n in enumerate(ACTIVATIONS)}, names
    assert L + 'experts.gate_up_proj_input_scale' not in names and L + 'p0.input_scale_ub' not in names
    whole = {'kv_cache_scheme': {'num_bits': 8, 'type': 'int'}}
    for q in whole, {'kv_cache_quant_algo': 'INT8'}, {'kv_cache_quant_algo': 'NVFP4'}:
        put('x', {'quantization_config': {'quant_method': 'x', **q}}, {**pair('a'), **CACHE})  # a cache that is no FP8
        assert convert(program, 'x', 'y').returncode == 0
        after = load_file('y/model.safetensors')[0]
        assert all(after[n] == CACHE[n] for n in CACHE), q
    print(len(moving), 'scales move,', len(OTHERS), 'do not')


# ---- long names; no room ----


def names(program):
    for length, stem in (255, 'x'), (250, 'y'), (255, '\u00e9'), (235, 'z'):
        name = (stem * 300).encode()[: length - 12].decode(errors='ignore') + '.safetensors'
        save('in.safetensors', pair('a'))
        assert len(name.encode()) <= 255
        os.rename('in.safetensors', name)
        out = name.replace(stem, 'o', 1)
        for words in [], ['--force'], ['--csv', out[: -len('.safetensors')] + '.csv', '--force']:
            done = run(program, name, out, *words)
            assert done.returncode == 0, (length, words, done.stderr)
        fresh('d')
        os.rename(name, 'd/' + name)
        folder = stem * (length // len(stem.encode()))
        done = run(program, 'd', folder, '--verify')
        assert done.returncode == 0 and os.listdir(folder) == [name], (length, done.stderr)
        open('d/' + folder + '', 'w').write('beside')
        assert run(program, 'd', folder, '--force').returncode == 0 and len(os.listdir(folder)) == 2
        assert not [n for n in os.listdir('.') if n.endswith('.part')], os.listdir('.')
        for n in os.listdir('.'):
            shutil.rmtree(n) if os.path.isdir(n) else os.remove(n)
    print('long names')


def full(program):
    """A limit on the size of files is a full disk: a sentence, and status 2."""
    save('in.safetensors', pair('a', (256, 256)))
    for words in ['out.safetensors'], ['out.safetensors', '--force'], ['folder/']:
        pid = os.fork()
        if not pid:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            os.dup2(os.open('err', os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open('/dev/null', os.O_WRONLY), 1)
            os.execv(program, [program, 'in.safetensors', *words])
        status = os.waitpid(pid, 0)[1]
        said = open('err').read()
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 2, (words, status, said)
        assert said.count('\n') == 1 and 'File too large' in said, said
        assert not [n for n in os.listdir('.') if 'out' in n or 'folder' in n], os.listdir('.')
    print('no room')


if __name__ == '__main__':
    globals()[sys.argv[1]](sys.argv[2])
