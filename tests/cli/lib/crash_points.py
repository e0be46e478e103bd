"""Ends a program at each of its steps, and fails each of them from there on; then looks at what is there.

Steps are the system calls that change files. strace counts them, kills before the n-th (inject=...:signal=KILL), or lets
the n-th and all that follow fail as on a full disk (error=ENOSPC). After that
  - inputs are what they were;
  - each output is the old one or the new one, byte for byte; before the first of them moved, all are the old ones;
    after a kill, all are the old ones or all are the new ones;
  - the same command once more succeeds, makes the new ones, and nothing is left beside them.
Usage: crash_points.py PROGRAMS ROOT MOST, in an empty directory: at most so many steps of each command, evenly, and those
around the first and the last that moves an output; 0: all.
"""
import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

import tools

CALLS = ('write pwrite64 writev rename renameat renameat2 fsync fdatasync openat mkdir mkdirat unlink unlinkat rmdir '
         'ftruncate fchmod chmod close wait4 setsid').split()
programs, ROOT, most = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3])
environment = dict(os.environ, ASAN_OPTIONS='detect_leaks=0', OMP_NUM_THREADS='1')  # leaks cannot be sought under strace
failures = 0


def fail(text):
    global failures
    failures += 1
    print('FAILED:', text)


# ---- what programs read ----

def checkpoint(path, tensors):
    header, data = {}, b''
    for name, (kind, shape, content) in tensors.items():
        header[name] = {'dtype': kind, 'shape': shape, 'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as out:
        out.write(struct.pack('<Q', len(text)) + text + data)


def codes(layer, size):
    return bytes((37 * i + 11 * layer) % 127 for i in range(size))


def sharded(folder, shards):
    """Layers with a scale each, spread over so many files."""
    os.mkdir(folder)
    where = {}
    for s in range(shards):
        file = f'model-{s + 1:05d}-of-{shards:05d}.safetensors'
        tensors = {}
        for layer in range(6):
            if layer % shards == s:
                tensors[f'm.{layer}.weight_scale'] = ('F32', [1], struct.pack('<f', 1 + layer))
                tensors[f'm.{layer}.weight'] = ('F8_E4M3', [8, 16], codes(layer, 128))
        checkpoint(f'{folder}/{file}', tensors)
        where.update((name, file) for name in tensors)
    with open(f'{folder}/model.safetensors.index.json', 'w') as out:
        json.dump({'metadata': {'total_size': 6 * 132}, 'weight_map': where}, out)
    with open(f'{folder}/config.json', 'w') as out:
        out.write('{"model_type": "llama"}\n')


def array(path, count, step):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}"
    text += ' ' * (-(len(text) + 11) % 64) + '\n'
    with open(path, 'wb') as out:
        out.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text)) + text.encode())
        out.write(b''.join(struct.pack('<f', i * step) for i in range(count)))


# ---- running, and looking ----

def run(arguments, folder, strace=()):
    command = [f'{programs}/{arguments[0]}'] + list(arguments[1:])
    return subprocess.run(list(strace) + command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def digest(path):
    """Of a file, or of a directory with all names and contents in it; None: it is not there."""
    if not os.path.lexists(path):
        return None
    h = hashlib.sha256()
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            h.update(f'{name}\0{digest(os.path.join(path, name))}\0'.encode())
    else:
        with open(path, 'rb') as file:
            h.update(file.read())
    return h.hexdigest()


def look(folder, outputs):
    return [digest(f'{folder}/{name}') for name in outputs]


def steps(case):
    """[(call, how many of its kind with it, calls of each kind before it, does it move an output?)]"""
    folder = fresh(case)
    log = os.path.abspath('log')
    done = run(case['command'], folder, ['strace', '-f', '-qq', '-o', log, '-e', 'trace=' + ','.join(CALLS)])
    if done.returncode != case.get('status', 0):
        fail(f'{case["name"]}: exit {done.returncode} under strace: {done.stderr.decode()}')
        return [], folder
    found, counts = [], {}  # strace counts each process for itself
    with open(log) as file:
        for line in file:
            match = re.match(r'(\d+) +(\w+)\((.*)', line)
            if not match or match.group(2) not in CALLS:
                continue
            process, call, rest = match.groups()
            count = counts.setdefault(process, dict.fromkeys(CALLS, 0))
            before = dict(count)
            count[call] += 1
            target = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)[-1:]
            moves = call.startswith('rename') and not any('.part' in t for t in target)
            if call != 'openat' or 'O_CREAT' in rest:
                found.append((call, count[call], before, moves))
    return found, folder


def fresh(case):
    shutil.rmtree('work', ignore_errors=True)
    shutil.copytree(case['start'], 'work', symlinks=True)
    return 'work'


def injections(kind, step):
    call, number, before, _ = step
    if kind == 'kill':
        return ['-e', f'inject={call}:signal=KILL:when={number}']
    result = []
    for other in CALLS:
        result += ['-e', f'inject={other}:error=ENOSPC:when={before[other] + 1}+']
    return result


def one_point(case, kind, step, moved, old, new):
    label = f'{case["name"]}, {kind} at {step[0]} {step[1]}'
    folder = fresh(case)
    strace = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=' + ','.join(CALLS)]
    done = run(case['command'], folder, strace + injections(kind, step))
    now = look(folder, case['outputs'])
    if look(folder, case['inputs']) != case['read']:
        fail(f'{label}: an input is not what it was')
    if any(n not in (o, w) for n, o, w in zip(now, old, new)):
        fail(f'{label}: neither the old nor the new: {case["outputs"]}')
    elif kind == 'kill' and now not in (old, new):
        fail(f'{label}: new beside old: {[n == w for n, w in zip(now, new)]} of {case["outputs"]}')
    closing = kind == 'fail' and step[0] == 'close'  # of what is synced; a helper's calls are counted anew
    if not moved and not closing and now != old:
        fail(f'{label}: something appeared before all was written')
    if done.returncode == 0 and now != new:
        fail(f'{label}: it says that all is well')
    again = run(case['command'], folder)
    after = look(folder, case['outputs'])
    stays = not case['force'] and now[0] == new[0] != old[0]  # what is there already is refused
    if again.returncode != (2 if stays else case.get('status', 0)):
        fail(f'{label}: once more: exit {again.returncode}: {again.stderr.decode()}')
    if after != (now if stays else new):
        fail(f'{label}: once more: it does not make the new one')
    if sorted(os.listdir(folder)) != sorted(set(case['names']) - {o for o, a in zip(case['outputs'], after) if not a}):
        fail(f'{label}: left behind: {sorted(os.listdir(folder))}')


def all_points(case):
    old = look(case['start'], case['outputs'])
    case['read'] = look(case['start'], case['inputs'])
    found, folder = steps(case)
    new = look(folder, case['outputs'])
    case['names'] = os.listdir(folder)
    if None in new or new == old:
        fail(f'{case["name"]}: it makes nothing new')
        return 0
    moves = [i for i, s in enumerate(found) if s[3] or s[0] in ('setsid', 'wait4')]  # a helper moves several outputs
    points = 0
    every = -(-len(found) // (most // case.get('less', 1))) if most else 1
    for i, step in enumerate(found):
        if i % every and not moves[0] - 1 <= i <= moves[-1] + 1:
            continue
        for kind in ('kill', 'fail'):
            one_point(case, kind, step, i >= moves[0], old, new)
            points += 1
    print(f'{case["name"]}: {points} points of {2 * len(found)}')
    return points


# ---- the cases ----

def start(name, *makers):
    folder = os.path.abspath(f'start-{name}')
    os.mkdir(folder)
    for make in makers:
        make(folder)
    return folder


def put(name):
    def make(folder):
        with open(f'{folder}/{name}', 'w') as out:
            out.write('old\n')
    return make


def two_arrays(folder):
    array(f'{folder}/a.npy', 500, 0.1)
    array(f'{folder}/b.npy', 500, 0.1001)


REPORTS = ['--csv', 'r.csv', '--json', 'r.json']


def old_reports():
    return [put('r.csv'), put('r.json')]


def replaced(name, command, inputs, *makers):
    """A case of reports that were there already."""
    names = [command[i + 1] for i, word in enumerate(command) if word in ('--csv', '--json', '--svg', '--html', '--trace')]
    return dict(name=name, command=command, inputs=inputs, outputs=names, force=True, less=2,
                start=start(re.sub(r'\W', '-', name), *old_reports(), *makers))


def cases():
    for tool, of_tool in tools.asked(ROOT, 'crash_points', globals(), fail):
        if os.path.exists(f'{programs}/{tool}'):
            yield from of_tool()
    if os.path.exists(f'{programs}/kernels/run'):
        yield replaced('kernels', ['kernels/run', 'matmul', '--generation', 'trn2', '--svg', 'r.svg'] + REPORTS, [])


total = sum(all_points(case) for case in cases())
print(f'{total} points')
sys.exit(1 if failures else 0)
