"""What the tests of all tools ask of mxq. Read by lib/tools.py; each function is what the test of its name asks."""


def crash_points():
    yield replaced('mxq', ['mxq', 'a.npy', '--format', 'mxfp4', '--svg', 'r.svg', '--threads', '1'] + REPORTS, ['a.npy'],
                   two_arrays)


def evil_names():
    reports = ['--csv', 'r.csv', '--json', 'r.json', '--report', 'r.html', '--svg', 'r.svg']
    run('mxq', 'f.safetensors', '--format', 'mxfp4', *reports, whole=[n for n in ALL])
    run('mxq', 'f.safetensors', '--format', 'mxint8', '--each')
    run('mxq', FILE + '.npy', '--format', 'mxfp4', *reports)
    run('mxq', 'e.safetensors', '--format', 'mxfp4')
    broken('mxq', 'bad.safetensors')
