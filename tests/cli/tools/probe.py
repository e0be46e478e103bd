"""What the tests of all tools ask of probe. Read by lib/tools.py; each function is what the test of its name asks."""


def questions(folder):
    assert run(['probe', '--write', 'p', '--generation', 'trn1'], folder).returncode == 0


def answers(folder):
    questions(folder)
    assert run(['probe', '--run', 'p', '--numerics', 'chains=1'], folder).returncode == 0


def crash_points():
    yield dict(name='probe --write', command=['probe', '--write', 'p', '--generation', 'trn1'], inputs=[], outputs=['p'],
               force=False, start=start('probe'))
    yield dict(name='probe --run --force', command=['probe', '--run', 'p', '--force'],
               inputs=['p/in', 'p/generation.txt'], outputs=['p/out'], force=True, start=start('run', answers))


def evil_names():
    run('probe', '--write', FILE + '.p', '--generation', 'trn1')
    run('probe', '--run', FILE + '.p')
    run('probe', '--identify', FILE + '.p', '--json', 'r.json')
    with open(FILE + '.p/generation.txt', 'w', encoding='utf-8') as out:
        out.write(FILE + '\n')
    run('probe', '--identify', FILE + '.p', status=(2,))
