"""What the tests of all tools ask of srlab. Read by lib/tools.py; each function is what the test of its name asks."""


def crash_points():
    yield replaced('srlab sums', ['srlab', 'sums', '--svg', 'r.svg', '--html', 'r.html'] + REPORTS, [])


def evil_names():
    with open(FILE + '.words', 'w', encoding='utf-8', newline='') as out:
        out.write(('the quick brown\x1b]0;x\x07 <b>fox</b> \u202ejumps\r\n' * 60))
    run('srlab', 'char', '--text', FILE + '.words', '--width', '32', '--layers', '1', '--heads', '2', '--context', '16',
        '--steps', '1', '--words', '8', '--arms', 'f32', '--csv', 'r.csv', '--json', 'r.json', '--html', 'r.html', '--svg',
        'r.svg')
