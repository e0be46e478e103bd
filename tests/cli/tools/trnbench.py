"""What the tests of all tools ask of trnbench. Read by lib/tools.py; each function is what the test of its name asks."""


def crash_points():
    yield replaced('trnbench spec', ['trnbench', 'spec'] + REPORTS, [])


def evil_names():
    npy(FILE + '.a.npy', 8, 8)
    run('trnbench', 'matmul', '--a', FILE + '.a.npy', '--b', FILE + '.a.npy', '--format', 'f32', '--system', 'trn1.2xlarge',
        '--no-host', '--csv', 'r.csv', '--json', 'r.json', '--report', 'r.html')
    with open(FILE + '.log', 'w', encoding='utf-8') as out:
        out.write(f'# {FILE}\n#  size count type redop root time\n {FILE} 16 {MARKUP} sum -1 3\n')
    run('trnbench', 'collective', '--calibrate', FILE + '.log', status=(0, 2))
    for net in networks():
        run('trnbench', 'collective', '--topology', net, '-b', '64', '-e', '64', '--csv', 'r.csv', '--json', 'r.json',
            status=(0, 2))
