"""What the tests of all tools ask of modelrun. Read by lib/tools.py; each function is what the test of its name asks."""
import json


def configuration(folder):
    size = {'vocab_size': 7, 'hidden_size': 4, 'intermediate_size': 4, 'num_hidden_layers': 1, 'rms_norm_eps': 1e-5,
            'num_attention_heads': 1, 'num_key_value_heads': 1, 'max_position_embeddings': 8}
    with open(f'{folder}/c.json', 'w') as file:
        json.dump({'model_type': 'llama', **size}, file)


def crash_points():
    yield dict(name='modelrun --write-random', command=['modelrun', '--random', 'c.json', '--write-random', 'm'],
               inputs=['c.json'], outputs=['m'], force=False, less=2, start=start('random', configuration))


def evil_names():
    with open('c.json', 'w', encoding='utf-8') as out:
        json.dump({'model_type': 'llama', 'vocab_size': 7, 'hidden_size': 4, 'intermediate_size': 4, 'num_hidden_layers': 1,
                   'rms_norm_eps': 1e-5, 'num_attention_heads': 1, 'num_key_value_heads': 1,
                   'max_position_embeddings': 8}, out)
    model, tokens = FILE + '.m', FILE + '.t'
    run('modelrun', '--random', 'c.json', '--write-random', model)
    with open(tokens, 'w', encoding='utf-8') as out:
        out.write('1 2 3\n')
    run('modelrun', model, '--tokens', tokens, '--setting', 'bf16', '--setting', 'bf16,act=ideal', '--csv', 'r.csv', '--json', 'r.json',
        '--html', 'r.html', whole=[model])
    run('modelrun', model, '--tokens', tokens, '--setting', 'bf16')
    run('modelrun', model, '--tokens', tokens, '--setting', 'f32', '--generate', '2')
    run('modelrun', model, '--tokens', tokens, '--certify', 'batch', '--setting', 'bf16,tp=2', '--csv', 'c.csv',
        '--json', 'c.json', '--html', 'c.html', whole=[model])
    with open(os.path.join(model, 'config.json'), encoding='utf-8') as file:
        config = json.load(file)
    for key in ('model_type', 'hidden_act', 'rope_scaling', 'layer_types', 'vocab_size'):
        other = dict(config, **{key: {'rope_scaling': {'type': FILE}, 'layer_types': [FILE]}.get(key, FILE)})
        with open(os.path.join(model, 'config.json'), 'w', encoding='utf-8') as out:
            json.dump(other, out, ensure_ascii=False)
        run('modelrun', model, '--tokens', tokens, '--setting', 'bf16', status=(0, 2))
    with open(os.path.join(model, 'config.json'), 'w', encoding='utf-8') as out:
        json.dump(config, out)
    # A tokenizer whose tokens steer a terminal, and whose parts have names nobody knows.
    letters = {chr(256 + i) if i < 33 else chr(i): i for i in (27, 10, 13, 93, 48)}
    made = {'model': {'type': 'BPE', 'vocab': dict(letters, **{FILE: 5, 'x': 6}), 'merges': []},
            'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': False},
            'decoder': {'type': 'ByteLevel'}}
    made['model']['vocab'] = {k: i for i, k in enumerate(made['model']['vocab'])}
    for wrong in ({}, {'normalizer': {'type': FILE}}, {'post_processor': {'type': FILE}}, {'pre_tokenizer': {'type': FILE}},
                  {'model': {'type': FILE}}, {'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(?<' + FILE},
                                                               'behavior': 'Isolated', 'invert': False}}):
        with open(os.path.join(model, 'tokenizer.json'), 'w', encoding='utf-8') as out:
            json.dump(dict(made, **wrong), out)
        with open('words', 'wb') as out:
            out.write(b'\x1b]0\x1b')
        run('modelrun', model, '--text', 'words', '--generate', '3', '--setting', 'f32', status=(0, 2), tabs=True)
