"""Text from files and command lines that is more than text, through every tool; run by tests/cli/evil_names.sh.

    evil_names.py PROGRAMS ROOT

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

import tools

PROGRAMS, ROOT = sys.argv[1:]
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


def networks():
    """A topology for each name, one after the other in the same file."""
    with open(os.path.join(ROOT, 'examples/topologies/trn1.32xlarge.txt'), encoding='utf-8') as file:
        net = file.read()
    for name in chunks(PIECES, 60):
        with open('net.txt', 'w', encoding='utf-8', newline='') as out:
            out.write(re.sub('^name = .*', lambda _: 'name = ' + name, net, flags=re.M))
        yield 'net.txt'


def broken(*command):
    """The command refuses bad.safetensors, whose header says each of these."""
    for raw in (b'{"a\\u0000b": 1}', b'{"' + BAD + b'": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}',
                json.dumps({FILE: {'dtype': FILE, 'shape': [], 'data_offsets': [0, 4]}}).encode(),
                json.dumps({FILE: {FILE: 3}}).encode(), json.dumps({'__metadata__': {FILE: 3}}).encode(),
                b'{"a": {"dtype": "\x1b]0;x\x07"}}', FILE.encode()):
        safetensors('bad.safetensors', {}, raw=raw)
        run(*command, status=(2,))


# ---- the tools: tests/cli/tools/TOOL.py; and other programs ----

def others():
    if not os.path.exists(os.path.join(PROGRAMS, 'kernels/run')):
        return
    npy(FILE + '.k.npy', 8, 64)
    run('kernels/run', 'softmax', '--input', FILE + '.k.npy', '--generation', 'trn2', '--csv', 'r.csv', '--json', 'r.json',
        '--svg', 'r.svg', '--trace', 'r.trace.json')
    run('kernels/run', FILE, status=(2,))
    if os.path.exists(os.path.join(PROGRAMS, 'cores/block')):
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


os.mkdir('work')
os.chdir('work')
npy(FILE + '.npy')
npy('b.npy')
safetensors(FILE + '.safetensors', fp8(['w']))
safetensors('e.safetensors', fp8(ALL))
safetensors('f.safetensors', {n: ('F32', [2, 8], struct.pack('<16f', *range(16))) for n in ALL})
safetensors('g.safetensors', {n: ('F32', [2, 8], struct.pack('<16f', *[1.001 * i for i in range(16)])) for n in ALL})
for tool, feed in tools.asked(ROOT, 'evil_names', globals(), fail):
    if os.path.exists(os.path.join(PROGRAMS, tool)):
        feed()
        manners(tool)
others()
print(f'evil_names: {runs} runs, {failures} failures')
sys.exit(failures > 0)
