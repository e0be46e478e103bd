"""shardplan --chakra-in and --chakra: traces written by hand, their times beside trnbench's and beside sums, what is
refused; plans written as traces and read again; and, where there is a checkout of ASTRA-sim, its own traces.

Usage: check_chakra.py PROGRAMS ROOT [ASTRA-SIM], in an empty directory.
"""
import csv
import glob
import gzip
import json
import os
import re
import subprocess
import sys
from typing import Callable

from chakra_bytes import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, COLLECTIVE, RECEIVE, REDUCE_SCATTER, SEND,
                          WORK, attribute, field, framed, metadata, node, number, write)

PROGRAMS, MODELS = sys.argv[1], f'{sys.argv[2]}/examples/tools/shardplan/models'
ASTRA_SIM = sys.argv[3] if len(sys.argv) > 3 else ''
MIB = 1 << 20
failures = 0


def fail(text: str) -> None:
    global failures
    failures += 1
    print('FAILED:', text)


def shardplan(*arguments: str) -> 'subprocess.CompletedProcess[str]':
    return subprocess.run([f'{PROGRAMS}/shardplan', *arguments], capture_output=True, text=True, errors='replace',
                          check=False)


def priced(prefix: str, *arguments: str) -> 'list[dict[str, str]]':
    done = shardplan('--chakra-in', prefix, '--system', 'trn2.48xlarge', '--csv', '-', *arguments)
    if done.returncode:
        fail(f'{prefix}: exit {done.returncode}: {done.stderr}')
        return [{key: '0' for key in ('ideal_s', 'expected_s', 'exposed_s', 'hidden_s', 'expected_low_s')}]
    return list(csv.DictReader(done.stdout.splitlines()))


def near(found: float, expected: float, what: str, within: float = 1e-9) -> None:
    if not abs(found - expected) <= within * abs(expected):
        fail(f'{what}: {found!r}, expected {expected!r}')


def step(prefix: str, *arguments: str) -> 'dict[str, str]':
    return priced(prefix, *arguments)[0]


# ---- collectives: what trnbench says of the same ----

def benched(operation: str, size: int, chips: int) -> 'tuple[float, float]':
    out = subprocess.run([f'{PROGRAMS}/trnbench', 'collective', operation, '--system', 'trn2.48xlarge', '--ranks',
                          str(chips), '--ranks-per-chip', '1', '-b', str(size), '-e', str(size), '--csv', '-'],
                         capture_output=True, text=True, check=True).stdout
    row = next(csv.DictReader(out.splitlines()))
    return 1e-6 * float(row['time_us']), 1e-6 * float(row['expected_us'])


def collectives() -> None:
    for kind, name, times in ((ALL_REDUCE, 'all_reduce', 1), (ALL_GATHER, 'all_gather', 4),
                              (ALL_TO_ALL, 'all_to_all', 1), (REDUCE_SCATTER, 'reduce_scatter', 1),
                              (BROADCAST, 'broadcast', 1)):
        write(name, [[node(r, COLLECTIVE, comm_type=kind, comm_size=MIB, is_cpu_op=0)] for r in range(4)])
        found = step(name)
        ideal, expected = benched(name, times * MIB, 4)
        near(float(found['ideal_s']), ideal, f'{name}, ideal')
        near(float(found['expected_s']), expected, f'{name}, expected')
        near(float(found['exposed_s']), float(found['expected_s']), f'{name}, exposed')


# ---- when: two ranks, work of a recorded length, sums by hand ----

def order() -> None:
    """Rank 1 is late for the first collective; the second runs beside work that does not wait for it."""
    late = 3000
    rank = [[node(1, WORK, 'a', micros=1000 if r == 0 else late),
             node(2, COLLECTIVE, 'first', (1,), comm_type=ALL_REDUCE, comm_size=MIB),
             node(3, COLLECTIVE, 'second', (2,), comm_type=ALL_REDUCE, comm_size=MIB),
             node(4, WORK, 'b', (2, 2), micros=5000),
             node(5, WORK, 'c', (3, 4), micros=1)] for r in range(2)]
    write('order', rank)
    write('one', [[node(1, WORK, micros=1), node(2, COLLECTIVE, waits=(1,), comm_type=ALL_REDUCE, comm_size=MIB)]
                  for r in range(2)])
    one = float(step('one')['expected_s']) - 1e-6
    found = step('order', '--assume', 'contention=0')
    near(float(found['expected_s']), 1e-6 * (late + 5001) + one, 'the late rank')
    near(float(found['hidden_s']), one, 'beside work')
    near(float(found['exposed_s']), one, 'exposed')
    near(float(step('order', '--assume', 'contention=0.5')['expected_s']), 1e-6 * (late + 5001) + 1.5 * one,
         'contention')
    host = [[node(1, WORK, micros=100), node(2, WORK, micros=100, is_cpu_op=1), node(3, WORK, micros=100)]]
    write('host', host)
    near(float(step('host')['expected_s']), 200e-6, 'the host beside the chip')


def roofline() -> None:
    chip = {'flops': 667e12, 'bytes': 2.9e12}
    write('roof', [[node(1, WORK, num_ops=10 ** 15, tensor_size=1, micros=7), node(2, WORK, tensor_size=10 ** 12)]])
    near(float(step('roof')['ideal_s']), 1e15 / chip['flops'] + 1e12 / chip['bytes'], 'operations, then bytes')
    near(float(step('roof', '--assume', 'tensor_share=0.5,hbm_share=0.25,kernel_s=0.01')['expected_s']),
         2e15 / chip['flops'] + 4e12 / chip['bytes'] + 0.02, 'shares and floors')
    near(float(step('roof', '--chakra-recorded')['expected_s']), 7e-6, 'recorded', 1e-6)
    write('told', [[node(1, WORK, num_ops=5, model_ideal_s=2.0, model_expected_s=3.0)]])
    found = step('told', '--chakra-recorded')
    near(float(found['ideal_s']), 2, 'a model, ideal')
    near(float(found['expected_s']), 3, 'a model, expected')


def pairs() -> None:
    sends = [node(1, SEND, comm_dst=1, comm_size=MIB, comm_tag=3), node(2, WORK, micros=50)]
    write('pair', [sends, [node(9, RECEIVE, comm_src=0, comm_size=MIB, comm_tag=3),
                           node(4, WORK, waits=(9,), micros=50)]])
    kinds = {row['kind']: row for row in priced('pair') if row['part'] == 'path'}
    near(float(step('pair')['expected_s']), float(kinds['send']['expected_s']) + 50e-6,
         'what is received is waited for')


def groups() -> None:
    """Two rings of two ranks side by side are one group's time, and names of groups are any text."""
    rank = [[node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=MIB, pg_name='a' if r < 2 else 'b')] for r in range(4)]
    write('groups', rank)
    with open('groups.json', 'w', encoding='utf-8') as out:
        json.dump({'a': [0, 1], 'b': [2, 3]}, out)
    found = step('groups', '--chakra-groups', 'groups.json')
    if not float(found['expected_s']) > 0:
        fail('groups take no time')


def packings() -> None:
    """gzip, the converters' version, a list of flags that are all set, barriers."""
    flags = field(1, bytes([1, 1]))
    body = [node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=MIB, involved_dim=flags, comm_priority=0, pg_name='0')]
    head = framed(field(2, field(1, 'schema') + field(29, '1.0.2-chakra.0.0.4')))
    write('new', [body, body], head)
    write('old', [body, body])
    for r in range(2):
        with open(f'old.{r}.et', 'rb') as file, gzip.open(f'zip.{r}.et', 'wb') as out:
            out.write(file.read())
    expected = float(step('old')['expected_s'])
    for prefix in ('new', 'zip'):
        near(float(step(prefix)['expected_s']), expected, prefix)
    for text in (shardplan('--chakra-in', 'old', '--system', 'trn2.48xlarge', '--json', 'old.out').stdout,):
        if 'a step in' not in text or 'the critical path' not in text:
            fail(f'no answer: {text}')
    with open('old.out', encoding='utf-8') as file:
        if json.load(file)['ranks'] != 2:
            fail('JSON has other ranks')


# ---- what is refused ----

def refuses(sentence: str, prefix: str, *arguments: str) -> None:
    done = shardplan('--chakra-in', prefix, '--system', 'trn2.48xlarge', '--csv', 'refused.csv', *arguments)
    if done.returncode != 2 or done.stdout or done.stderr != f'shardplan: {sentence}\n':
        fail(f'{prefix}: exit {done.returncode}, {done.stderr!r}, expected {sentence!r}')
    try:
        with open('refused.csv', encoding='utf-8'):
            fail(f'{prefix}: it wrote something')
    except FileNotFoundError:
        pass


def alone(name: str, *nodes: bytes, head: bytes = metadata()) -> str:
    write(name, [list(nodes)], head)
    return name


def talk(**more: 'int | float | bytes | str') -> bytes:
    has: 'dict[str, int | float | bytes | str]' = {'comm_type': ALL_REDUCE, 'comm_size': 8}
    has.update(more)
    return framed(field(1, 7) + field(2, 'y') + field(3, COLLECTIVE) +
                  b''.join(attribute(key, value) for key, value in has.items()))


def broken_files() -> None:
    good = metadata() + talk()
    for name, data, sentence in (
            ('empty', b'', 'it is empty'),
            ('cut', good[:-1], 'it ends inside of the message at byte 8'),
            ('length', metadata() + b'\xff', 'it ends inside of a message at byte 8'),
            ('huge', metadata() + b'\xff\xff\xff\xff\x0f',
             'the message at byte 8 has 4294967295 bytes; 2^28 are the most'),
            ('endless', metadata() + b'\x80' * 9, 'the message at byte 8 has no length'),
            ('text', b'\x05hello', 'it does not begin with the metadata of a Chakra trace'),
            ('wire', metadata() + framed(b'\x0b' * 9), 'the message at byte 8 is no node'),
            ('gzip', b'\x1f\x8b\x08' + bytes(20), 'its compressed data is broken'),
            ('version', metadata('9.9') + talk(), "its version is '9.9'; 0.0.4 is read")):
        with open(f'{name}.0.et', 'wb') as out:
            out.write(data)
        refuses(f'{name}.0.et: {sentence}', name)


def broken_nodes() -> None:
    twice = field(1, 7) + field(2, 'y') + field(3, COLLECTIVE) + attribute('comm_size', 8) * 2
    for name, nodes, sentence in (
            ('kind', [node(7, 8, 'y')], 'its type 8 is not known'),
            ('memory', [node(7, 2, 'y', tensor_size=8)], 'it is a MEM_LOAD_NODE, which has no time here'),
            ('invalid', [node(7, 0, 'y')], 'it is a INVALID_NODE, which has no time here'),
            ('unknown', [talk(frobnicate=1)],
             "its attribute 'frobnicate' is not known, and may change a size or a time"),
            ('twice', [framed(twice)], "its 'comm_size' stands twice"),
            ('negative', [talk(comm_size=-1)], "its 'comm_size' is no whole number from 0 to 2^60"),
            ('priority', [talk(comm_priority=1)], "its 'comm_priority' is not 0, which is not understood"),
            ('dims', [talk(involved_dim=field(1, bytes([1, 0])))],
             "its 'involved_dim' leaves out dimensions of another simulator's network: a process group (pg_name) says "
             'which ranks are meant'),
            ('collective', [talk(comm_type=10)], "its 'comm_type' 10 is no collective"),
            ('unsized', [node(7, COLLECTIVE, 'y', comm_type=0)], "it has no 'comm_size'"),
            ('untyped', [node(7, COLLECTIVE, 'y', comm_size=8)], "it has no 'comm_type'"),
            ('nobody', [node(7, SEND, 'y', comm_size=8)], "it has no 'comm_dst'"),
            ('forever', [node(7, WORK, 'y', micros=1 << 51)], 'it takes more than 2^50 microseconds'),
            ('same', [node(7, WORK, 'y', micros=1), node(7, WORK, 'y', micros=1)], 'its id stands twice'),
            ('missing', [node(7, WORK, 'y', (8,), micros=1)], 'it waits for node 8, which is not there'),
            ('cycle', [node(7, WORK, 'y', (8,), micros=1), node(8, WORK, 'z', (7,), micros=1)],
             'it waits for itself, by way of others')):
        refuses(f"{name}.0.et: node 7 'y': {sentence}", alone(name, *nodes))
    done = shardplan('--chakra-in', alone('evil', talk(frobnicate=1).replace(b'\x01y', b'\x01\x1b')))
    if '\x1b' in done.stderr or done.returncode != 2:
        fail(f'a name steers the terminal: {done.stderr!r}')


def ranks_that_disagree() -> None:
    one, two = [talk()], [talk(comm_size=16)]
    write('size', [one, two])
    refuses("size: rank 1, node 7 'y' is all_reduce of 16 bytes, but rank 0's is all_reduce of 8", 'size')
    write('more', [one, [*one, node(8, COLLECTIVE, 'z', comm_type=0, comm_size=8)]])
    refuses("more: rank 1 has one collective more than rank 0 in the group of all ranks: node 8 'z'", 'more')
    write('hole', [one, one, one])
    subprocess.run(['rm', 'hole.1.et'], check=True)
    refuses('hole: rank 1 is missing, but rank 2 is there', 'hole')
    refuses('there: there is no there.0.et', 'there')
    write('many', [one] * 17)
    refuses('--chakra-in: there are 17 ranks, but trn2.48xlarge has 16 chips', 'many')
    write('alone', [[node(7, SEND, 'y', comm_dst=1, comm_size=8)], []])
    refuses("alone: rank 0, node 7 'y' sends what nobody receives", 'alone')
    write('self', [[node(7, SEND, 'y', comm_dst=0, comm_size=8)]])
    refuses("self: rank 0, node 7 'y' is not with another rank of the trace", 'self')
    write('group', [[talk(pg_name='3')]])
    refuses("group: rank 0, node 7 'y' is of a process group that --chakra-groups does not name", 'group')
    write('reduce', [[talk(comm_type=1)], [talk(comm_type=1)]])
    refuses("rank 0, node 7 'y': reduce, gather and scatter have no price here", 'reduce')
    first, second = (node(1, COLLECTIVE, 'a', comm_type=0, comm_size=8), node(2, COLLECTIVE, 'b', (1,), comm_type=0,
                                                                             comm_size=8))
    last, early = (node(1, COLLECTIVE, 'a', (2,), comm_type=0, comm_size=8), node(2, COLLECTIVE, 'b', comm_type=0,
                                                                                 comm_size=8))
    write('knot', [[first, second], [last, early]])
    refuses("rank 0, node 1 'a': it never begins: ranks wait for each other", 'knot')
    write('none', [[], []])
    refuses('none: there is no operation in these traces', 'none')


def broken_groups() -> None:
    write('good', [[talk()], [talk()]])
    for text, sentence in (('[', 'it is no JSON object of process groups: '),
                           ('{"1": [2]}', "group '1': 2 is no rank from 0 to 1"),
                           ('{"1": [0, 0]}', "group '1': rank 0 stands twice"), ('{"1": []}', "group '1' is empty"),
                           ('{"1": [0], "1": [1]}', "group '1' stands twice")):
        with open('g.json', 'w', encoding='utf-8') as out:
            out.write(text)
        done = shardplan('--chakra-in', 'good', '--chakra-groups', 'g.json')
        if done.returncode != 2 or not done.stderr.startswith(f'shardplan: g.json: {sentence}'):
            fail(f'{text}: {done.stderr}')


# ---- a plan, written and read ----

# The trace's time over the plan's, ideal and expected: 1 where nothing is hidden, or all of it. cp's and dp's
# collectives meet tp's in the trace, of which a rank does one at a time; the ends of a model are on two stages of a
# pipeline, not on the slowest one.
TRIPS = (
    (('llama-3-8b', '--job', 'decode', '--batch', '64', '--tp', '16'), 1, 1),
    (('llama-3-8b', '--job', 'prefill', '--batch', '16', '--seq', '2048', '--tp', '4', '--dp', '4'), 1, 1),
    (('llama-3-8b', '--batch', '32', '--seq', '2048', '--tp', '1', '--pp', '1', '--zero', 'weights'), 1, 1),
    (('llama-3-8b', '--batch', '16', '--seq', '4096', '--tp', '4', '--dp', '4'), 1.019, 1.016),
    (('llama-3-8b', '--batch', '16', '--seq', '4096', '--tp', '4', '--pp', '4'), 0.964, 0.9645),
    (('llama-3-8b', '--batch', '16', '--seq', '8192', '--tp', '4', '--cp', '4'), 1.012, 1.010),
    (('qwen3-30b-a3b', '--job', 'prefill', '--batch', '16', '--seq', '2048', '--tp', '4', '--ep', '4'), 1, 1),
)


def planned(out: str, model: str, *arguments: str) -> 'dict[str, str]':
    done = shardplan(f'{MODELS}/{model}.json', '--system', 'trn2.48xlarge', '--csv', '-', '--chakra', out, *arguments)
    if done.returncode:
        fail(f'{model} {arguments}: {done.stderr}')
    return next(csv.DictReader(done.stdout.splitlines()))


def round_trips() -> None:
    for i, (arguments, ideal, expected) in enumerate(TRIPS):
        plan = planned(f'plan{i}', *arguments)
        found = step(f'plan{i}/step', '--chakra-groups', f'plan{i}/step.json', '--chakra-recorded')
        near(float(found['ideal_s']) / float(plan['time_s']), ideal, f'{arguments}: ideal',
             1e-3 if ideal != 1 else 1e-6)
        near(float(found['expected_s']) / float(plan['expected_s']), expected, f'{arguments}: expected',
             1e-3 if expected != 1 else 1e-6)
    sized = step('plan3/step', '--chakra-groups', 'plan3/step.json')
    told = step('plan3/step', '--chakra-groups', 'plan3/step.json', '--chakra-recorded')
    near(float(sized['expected_s']) / float(told['expected_s']), 0.958, 'sizes beside the model', 1e-3)


def written() -> None:
    names = {f'step.{rank}.et' for rank in range(16)} | {'step.json'}
    if set(os.listdir('plan0')) != names:
        fail(f'other files: {sorted(os.listdir("plan0"))}')
    with open('plan3/step.json', encoding='utf-8') as file:
        groups_of = json.load(file)
    if sorted(groups_of) != list('12345678') or [0, 1, 2, 3] not in groups_of.values():
        fail(f'other groups: {groups_of}')
    with open('plan0/step.3.et', 'rb') as data:
        head = data.read(400)
    if b'never measurements' not in head or b'llama-3-8b' not in head:
        fail('the metadata does not say whose times they are')
    model = f'{MODELS}/llama-3-8b.json'
    few = shardplan(model, '--tp', '16', '--chakra', 'few', '--chakra-ranks', '0-2,17', '--batch', '4')
    if few.returncode or sorted(os.listdir('few')) != ['step.0.et', 'step.1.et', 'step.17.et', 'step.2.et',
                                                         'step.json']:
        fail(f'some ranks: {few.stderr}')
    for sentence, arguments in (
            ('plan0: it is there already; name another', [model, '--chakra', 'plan0']),
            ('--chakra: the plan has 144 ranks, and without --chakra-ranks 64 files are the most',
             [model, '--system', 'trn3-gen2-ultraserver', '--chakra', 'wrong']),
            ('--chakra-ranks 9-3: expected a whole number from 9 to 63', [model, '--chakra', 'wrong', '--chakra-ranks',
                                                                         '9-3']),
            ('--chakra-ranks belongs to --chakra', [model, '--chakra-ranks', '1']),
            ('--chakra-groups and --chakra-recorded belong to --chakra-in', [model, '--chakra-recorded']),
            ('--chakra-in excludes CONFIG and --chakra: a trace or a model', [model, '--chakra-in', 'x']),
            ('--chakra: a recommender, or an encoder\'s forward pass alone, is not made of operations that follow each '
             'other', [f'{MODELS}/dlrm.json', '--chakra', 'wrong']),
            ('--chakra: operations are those of chips: without lnc and ranks_per_chip',
             [model, '--tp', '8', '--lnc', '2', '--chakra', 'wrong'])):
        done = shardplan(*arguments)
        if done.returncode != 2 or done.stdout or done.stderr != f'shardplan: {sentence}\n' or os.path.exists('wrong'):
            fail(f'{arguments}: exit {done.returncode}, {done.stderr!r}, expected {sentence!r}')


# ---- ASTRA-sim's own ----

def astra_sim() -> None:
    names = glob.glob(f'{ASTRA_SIM}/examples/**/*.et', recursive=True)
    prefixes = sorted({re.sub(r'\.\d+\.et$', '', name) for name in names})
    files = 0
    for prefix in prefixes:
        ranks = len(glob.glob(f'{glob.escape(prefix)}.*.et'))
        files += ranks
        found = step(prefix)
        told = f'{os.path.basename(prefix)}, {ranks} ranks: ideal {1e6 * float(found["ideal_s"]):.2f} us, ' \
               f'expected {1e6 * float(found["expected_s"]):.2f} us'
        kind = os.path.basename(prefix)
        if '/microbenchmarks/' in prefix:
            ideal, expected = benched(kind, MIB * (ranks if kind == 'all_gather' else 1), ranks)
            near(float(found['ideal_s']), ideal, f'{prefix}, ideal')
            near(float(found['expected_s']), expected, f'{prefix}, expected')
            told += f'; trnbench {1e6 * ideal:.2f} and {1e6 * expected:.2f} us'
        print(told)
    print(f'{files} files of ASTRA-sim')
    if not files:
        fail(f'{ASTRA_SIM}: there is no trace')


TESTS: 'list[Callable[[], None]]' = [collectives, order, roofline, pairs, groups, packings, broken_files, broken_nodes,
                                     ranks_that_disagree, broken_groups, round_trips, written]
for test in [astra_sim] if ASTRA_SIM else TESTS:
    test()
assert number(300) == b'\xac\x02'
sys.exit(failures > 0)
