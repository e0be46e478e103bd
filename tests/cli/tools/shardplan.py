"""What the tests of all tools ask of shardplan. Read by lib/tools.py; each function is what the test of its name asks."""


def crash_points():
    model = os.path.join(ROOT, 'examples/tools/shardplan/models/llama-3-70b.json')
    yield replaced('shardplan', ['shardplan', model, '--trace', 'r.trace'] + REPORTS, [])
    model = os.path.join(ROOT, 'examples/tools/shardplan/models/llama-3-8b.json')
    yield dict(name='shardplan --chakra', command=['shardplan', model, '--chips', '2', '--tp', '2', '--job', 'decode',
                                                   '--chakra', 'traces'],
               inputs=[], outputs=['traces'], force=False, start=start('shardplan-chakra'))


def evil_names():
    with open(os.path.join(ROOT, 'examples/tools/shardplan/models/llama-3-8b.json'), encoding='utf-8') as file:
        model = json.load(file)
    with open(FILE + '.json', 'w', encoding='utf-8') as out:
        json.dump(model, out)
    for net in networks():
        run('shardplan', FILE + '.json', '--topology', net, '--top', '1', '--tp', '8', '--batch', '64', '--csv', 'r.csv',
            '--json', 'r.json', '--html', 'r.html', status=(0, 2))
    run('shardplan', FILE + '.json', '--tp', '8', '--top', '1', '--trace', 'r.json')
    run('shardplan', FILE + '.json', '--tp', '8', '--top', '1', '--html', 'r.html')
    run('shardplan', FILE + '.json', '--system', 'trn2.48xlarge', '--tp', '16', '--job', 'decode', '--chakra',
        FILE + '.traces')
    with open(FILE + '.g', 'w', encoding='utf-8') as out:
        json.dump({FILE: [0]}, out)
    run('shardplan', '--chakra-in', FILE + '.traces/step', '--chakra-groups', FILE + '.g', '--system', 'trn2.48xlarge',
        '--csv', 'r.csv', '--json', 'r.json')
    run('shardplan', '--chakra-in', FILE, status=(2,))
    for key in ('model_type', 'num_hidden_layers', 'architectures'):
        with open('m.json', 'w', encoding='utf-8') as out:
            json.dump(dict(model, **{key: [FILE] if key == 'architectures' else FILE}), out)
        run('shardplan', 'm.json', status=(0, 2))
