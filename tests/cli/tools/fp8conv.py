"""What the tests of all tools ask of fp8conv. Read by lib/tools.py; each function is what the test of its name asks."""


def converted(shards, mode):
    def make(folder):
        sharded(f'{folder}/other', shards)
        done = run(['fp8conv', 'other', 'out', '--mode', mode], folder)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(f'{folder}/other')
    return make


def model(folder):
    sharded(f'{folder}/in', 3)


def refused(folder, sentence, *words):
    done = run(['fp8conv', 'in', 'out', *words], folder)
    if done.returncode != 2 or sentence not in done.stderr.decode():
        fail(f'two runs: exit {done.returncode}, {done.stderr.decode()}')


def two_runs():
    folder = start('two', model)
    slow = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'inject=fsync:delay_enter=3000000:when=1']
    first = subprocess.Popen(slow + [f'{programs}/fp8conv', 'in', 'out'], cwd=folder, env=environment,
                             stdout=subprocess.DEVNULL)
    for _ in range(1000):
        if os.path.exists(f'{folder}/out.part/lock'):
            break
        time.sleep(.005)
    refused(folder, 'fp8conv: out: another run is writing it (out.part)')
    if first.wait() != 0 or sorted(os.listdir(folder)) != ['in', 'out']:
        fail(f'two runs: the first one failed, or left something: {os.listdir(folder)}')
    whole = digest(f'{folder}/out')
    refused(folder, 'fp8conv: out: it is there already; --force replaces it')
    os.mkdir(f'{folder}/out.part')
    with open(f'{folder}/out.part/lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(folder, 'fp8conv: out: another run is writing it (out.part)', '--force')
    os.rename(f'{folder}/out.part/lock', f'{folder}/out.part/mine')
    refused(folder, 'fp8conv: out: out.part is in the way, and not what a run left; remove it', '--force')
    if digest(f'{folder}/out') != whole or os.listdir(f'{folder}/out.part') != ['mine']:
        fail('two runs: something else was touched')


def crash_points():
    two_runs()
    convert = ['fp8conv', 'in', 'out', '--threads', '1', '--verify']
    yield dict(name='fp8conv, first run', command=convert + REPORTS, inputs=['in'], outputs=['out', 'r.csv', 'r.json'],
               force=False, start=start('first', model, *old_reports()))
    yield dict(name='fp8conv --force over another sharding', command=convert + ['--force'] + REPORTS, inputs=['in'],
               outputs=['out', 'r.csv', 'r.json'], force=True,
               start=start('force', model, converted(2, 'ratio'), *old_reports()))
    yield dict(name='fp8conv, one file', command=['fp8conv', 'x.safetensors', 'y', '--threads', '1', '--force'],
               inputs=['x.safetensors'], outputs=['y'], force=True,
               start=start('file', lambda f: checkpoint(f'{f}/x.safetensors', {'w': ('F8_E4M3', [64], codes(1, 64))}),
                           put('y')))
    yield replaced('fp8conv --codes', ['fp8conv', '--codes'] + REPORTS, [])


def evil_names():
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
    run('fp8conv', 'e.gguf', 'w.safetensors', '--gguf', 'bf16', '--force', '--verify')
    gguf('e.gguf', [BAD])
    run('fp8conv', 'e.gguf', 'w.safetensors', '--gguf', 'bf16', '--force', status=(2,))
    broken('fp8conv', 'bad.safetensors', '--check')
