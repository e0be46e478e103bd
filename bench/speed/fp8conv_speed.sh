#!/bin/sh
# fp8conv beside cp: the same file, in memory (tmpfs, or the disk cache), in turns.
# Usage: bench/speed/fp8conv_speed.sh FP8CONV [MIB [ROUNDS [DIRECTORY]]]   default 1024, 7, /dev/shm; needs python3
set -eu
program=$1 mib=${2:-1024} rounds=${3:-7}
folder=$(mktemp -d "${4:-/dev/shm}/fp8conv.XXXXXX")
trap 'rm -rf "$folder"' EXIT INT TERM

# Weights like real ones: Gaussian, the largest at 5.3 standard deviations, and that is 448. One MiB of them, repeated.
python3 - "$folder/in" "$mib" <<'END'
import bisect, json, random, struct, sys
values = [m * 2.0 ** -9 if e == 0 else (8 + m) * 2.0 ** (e - 10) for e in range(16) for m in range(8)][:127]
middles = [(a + b) / 2 for a, b in zip(values, values[1:])]
random.seed(1)
weights = (random.gauss(0, 448 / 5.3) for i in range(1 << 20))
tile = bytes(bisect.bisect(middles, abs(w)) + (128 if w < 0 else 0) for w in weights)
mib = int(sys.argv[2])


def save(path, name, blocks):
    """Weights of [rows, 4096], each of at most 64 MiB; one scale for each, or one for each block of 128x128."""
    head, at, count = {}, 0, (mib + 63) // 64
    for i in range(count):
        rows = min(64, mib - 64 * i) * 256
        shape = [rows // 128, 32] if blocks else [1]
        size = 4 * shape[0] * shape[-1] if blocks else 4
        head[f'layers.{i}.{name}'] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + size]}
        at += size
    scales = at // 4
    for i in range(count):
        rows = min(64, mib - 64 * i) * 256
        head[f'layers.{i}.weight'] = {'dtype': 'F8_E4M3', 'shape': [rows, 4096], 'data_offsets': [at, at + rows * 4096]}
        at += rows * 4096
    text = json.dumps(head).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + struct.pack('<f', 0.01) * scales)
        for i in range(mib): f.write(tile)


save(sys.argv[1], 'weight_scale', False)
save(sys.argv[1] + '.blocks', 'weight_scale_inv', True)
END

python3 - "$program" "$folder" "$rounds" <<'END'
import os, statistics, subprocess, sys, time
program, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
source, target = folder + '/in', folder + '/out'
size = os.path.getsize(source)
ways = {'cp': ['cp', source, target], 'halve': [program, source, target],
        'ratio': [program, source, target, '--mode', 'ratio'],
        'halve, 1 thread': [program, source, target, '--threads', '1'],
        'halve, 128x128': [program, source + '.blocks', target],
        'requant': [program, source, target, '--mode', 'requant']}
seconds = {name: [] for name in ways}
for i in range(rounds + 1):
    for name, command in ways.items():
        if os.path.exists(target): os.remove(target)
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if i: seconds[name].append(time.monotonic() - start)
print(f'{size / 1e9:.2f} GB in {folder.rsplit("/", 1)[0]}, {rounds} rounds')
for name, all_of in seconds.items():
    ratio = statistics.median(c / t for c, t in zip(seconds['cp'], all_of))
    best, median = (size / f(all_of) / 1e9 for f in (min, statistics.median))
    print(f'  {name:16s} best {best:5.2f} GB/s   median {median:5.2f} GB/s   {100 * ratio:4.0f} % of cp '
          f'(best rounds: {100 * min(seconds["cp"]) / min(all_of):.0f} %)')
END
