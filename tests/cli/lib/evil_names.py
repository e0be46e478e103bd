"""Text from files and command lines that is more than text, through every tool; run by tests/cli/evil_names.sh.

    evil_names.py PROGRAMS ROOT TOOL...

Each name goes in as a value of every option, as a file that is not there, as the name of a file, and inside of files.
What comes out: on a terminal no control character but the newline, nothing that is no UTF-8, nothing that turns writing
round or hides; JSON, CSV, HTML and SVG that their readers read, in which a name is a text (no formula, no markup) and,
where a program reads it, is there whole. An exit status is 0, 1 or 2, and 1 and 2 come with their sentence.
"""
import csv
import html.parser
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree
import zipfile

PROGRAMS, ROOT, TOOLS = sys.argv[1], sys.argv[2], sys.argv[3:]
MARKUP = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'&amp;]]>'
NAMES = {
    'title': 'a\x1b]0;owned\x07b', 'colour': 'a\x1b[31mb', 'c1': 'a\x9b31mb', 'return': 'good\rbad', 'newline': 'one\ntwo: 3',
    'tab': 'a\tb', 'bell': '\x01\x02\x7f', 'formula': '=cmd()', 'plus': '+1', 'at': '@x', 'minus': '-2+3', 'tabbed': '\t=1',
    'markup': MARKUP, 'rtl': 'a\u202eb.npy', 'isolate': 'a\u2066b', 'narrow': 'a\u200bb\ufeffc', 'lines': 'a\u2028b',
    'soft': 'a\u00adb', 'tag': 'a\U000e0041b', 'percent': '%s%n%999999d', 'quote': 'a,"b"', 'wide': '\u20ac\U0001f600',
}
LONG = 'n' * 2500 + '\u20ac' * 834
PIECES = [n.replace('/', '|') for n in NAMES.values()]
FILE = ''.join(PIECES)[:100]  # a file's name; each piece alone goes inside of files
BAD = b'bad\xff\xc3(\xed\xa0\x80name'
failures = runs = 0


def fail(what, *more):
    global failures
    failures += 1
    if failures < 40:
        print('FAILED:', what, *[repr(m)[:600] for m in more])


# ---- what is asked of what comes out ----

def unseen(text, tabs=False):
    return [c for c in text if c != '\n' and not (tabs and c == '\t') and (unicodedata.category(c) in ('Cc', 'Cf', 'Zl', 'Zp', 'Cs'))]


def is_text(what, data, tabs=False):
    try:
        text = data.decode()
    except UnicodeDecodeError as trouble:
        return fail(f'{what}: no UTF-8', str(trouble), data[:200])
    if unseen(text, tabs):
        fail(f'{what}: it holds {unseen(text, tabs)[:4]!r}', text[:600])
    return text


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in ('script', 'img', 'iframe', 'a', 'link') or any(k.startswith('on') or k == 'src' for k, _ in attrs):
            self.found.append((tag, attrs))


def is_html(what, text):
    page = Page()
    page.feed(text)
    page.close()
    if page.found:
        fail(f'{what}: markup', page.found)


def is_svg(what, text):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as trouble:
        return fail(f'{what}: no XML: {trouble}', text[:200])
    found = [e.tag for e in root.iter() if e.tag.split('}')[-1] in ('script', 'img', 'image', 'foreignObject')]
    if found:
        fail(f'{what}: markup', found)


def number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_csv(what, text):
    rows = list(csv.reader(io.StringIO(text, newline=''), strict=True))
    if len({len(row) for row in rows}) != 1 or len(rows) < 2:
        fail(f'{what}: rows of {sorted({len(row) for row in rows})} fields')
    cells = [c for row in rows for c in row]
    bad = [c for c in cells if len(c) > 1 and c[0] in '=+-@\t\r' and not number(c)]
    if bad:
        fail(f'{what}: formulas', bad[:3])
    return cells


def is_json(what, text):
    try:
        return json.loads(text)
    except ValueError as trouble:
        return fail(f'{what}: no JSON: {trouble}', text[:300])


def texts(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value) + list(value.values())
    return [t for v in value for t in texts(v)] if isinstance(value, list) else []


READERS = {'.html': is_html, '.svg': is_svg, '.csv': is_csv, '.json': is_json, '.txt': lambda *_: None}


def run(*arguments, status=(0,), whole=(), tabs=False):
    """The command; its reports are those of names r.*. whole: texts that JSON has as they are; tabs: they may stay."""
    global runs
    runs += 1
    for name in os.listdir('.'):
        if name.startswith('r.'):
            os.remove(name)
    what = ' '.join(ascii(a)[1:40] for a in arguments)
    done = subprocess.run([os.path.join(PROGRAMS, arguments[0]), *arguments[1:]], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, timeout=120)
    out, err = is_text(what + ' (stdout)', done.stdout, tabs), is_text(what + ' (stderr)', done.stderr)
    if done.returncode not in status:
        fail(f'{what}: exit {done.returncode}', done.stderr[:300])
    if done.returncode and err is not None and not re.search(r'^[a-z_0-9]+: ', err, re.M):
        fail(f'{what}: exit {done.returncode} without a sentence', err[:300])
    if done.returncode == 2 and err is not None and err.count('\n') != 1:
        fail(f'{what}: not one line', err[:500])
    for name in sorted(os.listdir('.')):
        if name.startswith('r.'):
            with open(name, 'rb') as file:
                text = is_text(f'{what}, {name}', file.read())
            found = text is not None and READERS[os.path.splitext(name)[1]](f'{what}, {name}', text)
            if name == 'r.json' and found:
                missing = set(whole) - set(texts(found))
                if missing:
                    fail(f'{what}, {name}: it lacks', sorted(missing)[:3])
    return out, err


# ---- what goes in ----

def safetensors(path, tensors, metadata=None, raw=None):
    header, data = {}, b''
    if metadata:
        header['__metadata__'] = metadata
    for name, (kind, shape, content) in tensors.items():
        header[name] = {'dtype': kind, 'shape': shape, 'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    text = raw or json.dumps(header, ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as out:
        out.write(struct.pack('<Q', len(text)) + text + data)


def npy(path, rows=4, columns=32):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    text += ' ' * (-(len(text) + 11) % 64) + '\n'
    data = b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text)) + text.encode()
    data += struct.pack(f'<{rows * columns}f', *[(i * 37 % 11) / 4 - 1 for i in range(rows * columns)])
    if path:
        with open(path, 'wb') as out:
            out.write(data)
    return data


CODES = bytes(range(8, 72)) * 2


def fp8(names):
    tensors = {}
    for name in names:
        tensors[name + '.weight_scale'] = ('F32', [1], struct.pack('<f', 0.5))
    for name in names:
        tensors[name + '.weight'] = ('F8_E4M3', [4, 32], CODES)
    return tensors


def checkpoint(folder, names, config):
    """Two shards, whose names are evil as well."""
    os.makedirs(folder, exist_ok=True)
    where, half = {}, len(names) // 2 or 1
    for shard, part in ((FILE[:60] + '-1.safetensors', names[:half]), (FILE[:60] + '-2.safetensors', names[half:])):
        safetensors(os.path.join(folder, shard), fp8(part), {FILE: MARKUP})
        where.update({f'{n}.{end}': shard for n in part for end in ('weight', 'weight_scale')})
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w', encoding='utf-8') as out:
        json.dump({'metadata': {FILE: MARKUP}, 'weight_map': where}, out)
    with open(os.path.join(folder, 'config.json'), 'w', encoding='utf-8') as out:
        json.dump(config, out)
    with open(os.path.join(folder, FILE), 'w', encoding='utf-8') as out:
        out.write('copied as it is\n')


def gguf(path, names):
    def text(s):
        return struct.pack('<Q', len(s)) + s
    data = struct.pack('<e', 0.5) + bytes(range(32))
    data += b'\0' * (-len(data) % 32)
    head = b'GGUF' + struct.pack('<IQQ', 3, len(names), 1) + text(b'general.architecture') + struct.pack('<I', 8) + text(b'x')
    for i, name in enumerate(names):
        head += text(name) + struct.pack('<IQIQ', 1, 32, 8, i * len(data))
    with open(path, 'wb') as out:
        out.write(head + b'\0' * (-len(head) % 32) + data * len(names))


ALL = PIECES + [LONG]


def chunks(pieces, most):
    """Names of so many bytes, of pieces one after the other."""
    name = ''
    for piece in pieces:
        piece = piece.encode()[:most].decode(errors='ignore')
        if len((name + piece).encode()) > most:
            yield name
            name = ''
        name += piece
    yield name


# ---- the tools ----

def fp8conv():
    safetensors('e.safetensors', fp8(ALL))
    reports = ['--csv', 'r.csv', '--json', 'r.json']
    whole = [n + '.weight' for n in ALL]
    run('fp8conv', 'e.safetensors', 'o.safetensors', '--each', '--verify', '--force', *reports, whole=whole)
    run('fp8conv', 'e.safetensors', '--check', '--each')
    run('fp8conv', 'e.safetensors', '--advise')
    run('fp8conv', FILE + '.safetensors', '--check', *reports, whole=[FILE + '.safetensors'])
    checkpoint(FILE + '.d', PIECES, {'model_type': MARKUP, 'architectures': [FILE], 'quantization_config': {
        'quant_method': 'fp8', 'modules_to_not_convert': PIECES[2:6], 'x': FILE}})
    run('fp8conv', FILE + '.d', FILE + '.o', '--force', '--verify', *reports, whole=[FILE + '.d'])
    run('fp8conv', FILE + '.d', FILE + '.o', '--force')
    run('fp8conv', FILE + '.d', FILE + '.o', status=(2,))
    quants = [{'quant_method': FILE}, {'quant_method': 'fp8', 'weight_block_size': [FILE, 3]},
              {'quant_method': 'compressed-tensors', 'config_groups': {FILE: {'targets': [MARKUP], 'weights': {'num_bits': FILE}}}},
              {'quant_method': 'gptq', 'checkpoint_format': FILE, 'dynamic': {'-:' + FILE: {}}}]
    for quant in quants:
        checkpoint(FILE + '.d', PIECES[:2], {'model_type': FILE, 'quantization_config': quant})
        run('fp8conv', FILE + '.d', '--check', status=(0, 2))
    for name in (''.join(PIECES), LONG):  # a matrix without a scale, and what stands beside it
        safetensors('n.safetensors', {name: ('F8_E4M3', [4, 32], CODES), name + '_qscale': ('F32', [1], b'\0\0\0?')})
        run('fp8conv', 'n.safetensors', '--check', status=(0, 2))
    gguf('e.gguf', [n.encode()[:60] for n in PIECES])
    run('fp8conv', 'e.gguf', 'g.safetensors', '--gguf', 'bf16', '--force', '--verify')
    gguf('e.gguf', [BAD])
    run('fp8conv', 'e.gguf', 'g.safetensors', '--gguf', 'bf16', '--force', status=(2,))
    for raw in (b'{"a\\u0000b": 1}', b'{"' + BAD + b'": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}',
                json.dumps({FILE: {'dtype': FILE, 'shape': [], 'data_offsets': [0, 4]}}).encode(),
                json.dumps({FILE: {FILE: 3}}).encode(), json.dumps({'__metadata__': {FILE: 3}}).encode(),
                b'{"a": {"dtype": "\x1b]0;x\x07"}}', FILE.encode()):
        safetensors('bad.safetensors', {}, raw=raw)
        run('fp8conv', 'bad.safetensors', '--check', status=(2,))
        run('mxq', 'bad.safetensors', status=(2,))
        run('ulpdiff', 'bad.safetensors', 'bad.safetensors', status=(2,))


def ulpdiff():
    safetensors('f.safetensors', {n: ('F32', [2, 8], struct.pack('<16f', *range(16))) for n in ALL})
    safetensors('g.safetensors', {n: ('F32', [2, 8], struct.pack('<16f', *[1.001 * i for i in range(16)])) for n in ALL})
    reports = ['--csv', 'r.csv', '--json', 'r.json', '--html', 'r.html']
    run('ulpdiff', 'f.safetensors', 'g.safetensors', '--all', *reports, status=(0, 1), whole=ALL)
    run('ulpdiff', 'f.safetensors', 'g.safetensors', '--fail-above', '0', status=(1,))
    run('ulpdiff', FILE + '.npy', 'b.npy', *reports, status=(0, 1))
    run('ulpdiff', FILE + '.npy', FILE + '.npy', '--op', 'cast', '--inputs', FILE + '.npy', '--html', 'r.html')
    run('ulpdiff', FILE + '.npy', FILE + '.npy', '--op', 'activation', '--function', 'exp', '--inputs', FILE + '.npy',
        status=(0, 1, 2))
    with zipfile.ZipFile('z.npz', 'w') as out:
        for n in PIECES:
            out.writestr(n + '.npy', npy(None))
    run('ulpdiff', 'z.npz', 'z.npz', *reports, status=(0, 2))
    run('ulpdiff', 'f.safetensors', 'e.safetensors', status=(1, 2))


def mxq():
    reports = ['--csv', 'r.csv', '--json', 'r.json', '--report', 'r.html', '--svg', 'r.svg']
    run('mxq', 'f.safetensors', '--format', 'mxfp4', *reports, whole=[n for n in ALL])
    run('mxq', 'f.safetensors', '--format', 'mxint8', '--each')
    run('mxq', FILE + '.npy', '--format', 'mxfp4', *reports)
    run('mxq', 'e.safetensors', '--format', 'mxfp4')


def modelrun():
    with open('c.json', 'w', encoding='utf-8') as out:
        json.dump({'model_type': 'llama', 'vocab_size': 7, 'hidden_size': 4, 'intermediate_size': 4, 'num_hidden_layers': 1,
                   'rms_norm_eps': 1e-5, 'num_attention_heads': 1, 'num_key_value_heads': 1,
                   'max_position_embeddings': 8}, out)
    model, tokens = FILE + '.m', FILE + '.t'
    run('modelrun', '--random', 'c.json', '--write-random', model)
    with open(tokens, 'w', encoding='utf-8') as out:
        out.write('1 2 3\n')
    run('modelrun', model, '--tokens', tokens, '--setting', 'bf16', '--setting', 'bf16,act=ideal', '--csv', 'r.csv', '--json', 'r.json',
        '--html', 'r.html', whole=[model])
    run('modelrun', model, '--tokens', tokens, '--setting', 'bf16')
    run('modelrun', model, '--tokens', tokens, '--setting', 'f32', '--generate', '2')
    with open(os.path.join(model, 'config.json'), encoding='utf-8') as file:
        config = json.load(file)
    for key in ('model_type', 'hidden_act', 'rope_scaling', 'layer_types', 'vocab_size'):
        other = dict(config, **{key: {'rope_scaling': {'type': FILE}, 'layer_types': [FILE]}.get(key, FILE)})
        with open(os.path.join(model, 'config.json'), 'w', encoding='utf-8') as out:
            json.dump(other, out, ensure_ascii=False)
        run('modelrun', model, '--tokens', tokens, '--setting', 'bf16', status=(0, 2))
    with open(os.path.join(model, 'config.json'), 'w', encoding='utf-8') as out:
        json.dump(config, out)
    # A tokenizer whose tokens steer a terminal, and whose parts have names nobody knows.
    letters = {chr(256 + i) if i < 33 else chr(i): i for i in (27, 10, 13, 93, 48)}
    made = {'model': {'type': 'BPE', 'vocab': dict(letters, **{FILE: 5, 'x': 6}), 'merges': []},
            'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': False},
            'decoder': {'type': 'ByteLevel'}}
    made['model']['vocab'] = {k: i for i, k in enumerate(made['model']['vocab'])}
    for wrong in ({}, {'normalizer': {'type': FILE}}, {'post_processor': {'type': FILE}}, {'pre_tokenizer': {'type': FILE}},
                  {'model': {'type': FILE}}, {'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(?<' + FILE},
                                                               'behavior': 'Isolated', 'invert': False}}):
        with open(os.path.join(model, 'tokenizer.json'), 'w', encoding='utf-8') as out:
            json.dump(dict(made, **wrong), out)
        with open('words', 'wb') as out:
            out.write(b'\x1b]0\x1b')
        run('modelrun', model, '--text', 'words', '--generate', '3', '--setting', 'f32', status=(0, 2), tabs=True)


def shardplan():
    with open(os.path.join(ROOT, 'examples/shardplan/models/llama-3-8b.json'), encoding='utf-8') as file:
        model = json.load(file)
    with open(os.path.join(ROOT, 'examples/topologies/trn1.32xlarge.txt'), encoding='utf-8') as file:
        net = file.read()
    with open(FILE + '.json', 'w', encoding='utf-8') as out:
        json.dump(model, out)
    for name in chunks(PIECES, 60):
        with open('net.txt', 'w', encoding='utf-8', newline='') as out:
            out.write(re.sub('^name = .*', lambda _: 'name = ' + name, net, flags=re.M))
        run('shardplan', FILE + '.json', '--topology', 'net.txt', '--top', '1', '--tp', '8', '--batch', '64', '--csv', 'r.csv',
            '--json', 'r.json', '--html', 'r.html', status=(0, 2))
        run('trnbench', 'collective', '--topology', 'net.txt', '-b', '64', '-e', '64', '--csv', 'r.csv', '--json', 'r.json',
            status=(0, 2))
    run('shardplan', FILE + '.json', '--tp', '8', '--top', '1', '--trace', 'r.json')
    run('shardplan', FILE + '.json', '--tp', '8', '--top', '1', '--html', 'r.html')
    for key in ('model_type', 'num_hidden_layers', 'architectures'):
        with open('m.json', 'w', encoding='utf-8') as out:
            json.dump(dict(model, **{key: [FILE] if key == 'architectures' else FILE}), out)
        run('shardplan', 'm.json', status=(0, 2))


def probe():
    run('probe', '--write', FILE + '.p', '--generation', 'trn1')
    run('probe', '--run', FILE + '.p')
    run('probe', '--identify', FILE + '.p', '--json', 'r.json')
    with open(FILE + '.p/generation.txt', 'w', encoding='utf-8') as out:
        out.write(FILE + '\n')
    run('probe', '--identify', FILE + '.p', status=(2,))


def srlab():
    with open(FILE + '.words', 'w', encoding='utf-8', newline='') as out:
        out.write(('the quick brown\x1b]0;x\x07 <b>fox</b> \u202ejumps\r\n' * 60))
    run('srlab', 'char', '--text', FILE + '.words', '--width', '32', '--layers', '1', '--heads', '2', '--context', '16',
        '--steps', '1', '--words', '8', '--arms', 'f32', '--csv', 'r.csv', '--json', 'r.json', '--html', 'r.html', '--svg',
        'r.svg')


def trnbench():
    npy(FILE + '.a.npy', 8, 8)
    run('trnbench', 'matmul', '--a', FILE + '.a.npy', '--b', FILE + '.a.npy', '--format', 'f32', '--system', 'trn1.2xlarge',
        '--no-host', '--csv', 'r.csv', '--json', 'r.json', '--report', 'r.html')
    with open(FILE + '.log', 'w', encoding='utf-8') as out:
        out.write(f'# {FILE}\n#  size count type redop root time\n {FILE} 16 {MARKUP} sum -1 3\n')
    run('trnbench', 'collective', '--calibrate', FILE + '.log', status=(0, 2))


def others():
    """Programs without a page of their own: kernels, cores."""
    npy(FILE + '.k.npy', 8, 64)
    run('kernels/run', 'softmax', '--input', FILE + '.k.npy', '--generation', 'trn2', '--csv', 'r.csv', '--json', 'r.json',
        '--svg', 'r.svg', '--trace', 'r.trace.json')
    run('kernels/run', FILE, status=(2,))
    run('cores/block', FILE, status=(2,))


# ---- any tool, whatever its options are ----

def helped(*command):
    done = subprocess.run([os.path.join(PROGRAMS, command[0]), *command[1:], '--help'], capture_output=True, text=True,
                          check=False)
    return done.stdout


def manners(tool):
    """Each value of each option, a file that is not there, a command that is none."""
    text = helped(tool)
    commands = re.findall(rf'^  (?:{tool} )?([a-z]+)  ', text, re.M) if 'options:' not in text else []
    for command in commands or ['']:
        words = [tool, command] if command else [tool]
        text = helped(*words)
        options = re.findall(r'^  (--?[a-z][a-z0-9-]*) [^ ]', text, re.M)
        if '\n  --help ' not in text:
            fail(f'{" ".join(words)} --help lists no options')
        for option in options:
            run(*words, option, BAD + FILE.encode() * 40, '--help', status=(0, 2))
        run(*words, ('--' + FILE).encode(), status=(2,))
        run(*words, FILE + 'none', status=(1, 2))
        run(*words, BAD + LONG.encode(), status=(1, 2))


KNOWN = {'fp8conv': fp8conv, 'ulpdiff': ulpdiff, 'mxq': mxq, 'modelrun': modelrun, 'shardplan': shardplan, 'probe': probe,
         'srlab': srlab, 'trnbench': trnbench}
os.mkdir('work')
os.chdir('work')
npy(FILE + '.npy')
npy('b.npy')
safetensors(FILE + '.safetensors', fp8(['w']))
for tool in sorted(TOOLS, key=list(KNOWN).index if set(TOOLS) <= set(KNOWN) else None):
    if tool not in KNOWN:
        fail(f'{tool} is a tool of scripts/package.sh, and nobody feeds it evil names: lib/evil_names.py')
    elif os.path.exists(os.path.join(PROGRAMS, tool)):
        KNOWN[tool]()
        manners(tool)
others()
print(f'evil_names: {runs} runs, {failures} failures')
sys.exit(failures > 0)
