"""What the tests of all tools ask of ulpdiff. Read by lib/tools.py; each function is what the test of its name asks."""


def crash_points():
    yield replaced('ulpdiff', ['ulpdiff', 'a.npy', 'b.npy', '--fail-above-rel', '1', '--html', 'r.html'] + REPORTS,
                   ['a.npy', 'b.npy'], two_arrays)


def evil_names():
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
    broken('ulpdiff', 'bad.safetensors', 'bad.safetensors')
