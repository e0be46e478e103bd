#!/bin/sh
# Archives that fuzz_zip builds, as Python's zipfile and NumPy read them: what it takes for true is true to others, too.
# Usage: tests/cli/npz.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$1/fuzz_zip
[ -x "$program" ] || { echo "SKIP npz: fuzz_zip was not built"; exit 0; }
. "$here/lib/program.sh"
. "$here/lib/numpy.sh"

mkdir archives
works --write archives 400 7
if grep -q 'zlib is not installed' out; then echo "SKIP npz: zlib is not installed"; exit 0; fi
"$python" - <<'END' || fail "Python reads other archives than were written"
import numpy, zipfile, zlib
told = {}
for line in open("out", encoding="utf-8"):
    archive, member, crc, size, name = line.rstrip("\n").split(" ", 4)
    told.setdefault(int(archive), []).append((name, int(crc, 16), int(size)))
members = 0
for number in range(400):
    path = "archives/%d.npz" % number
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None, path
        held = [(i.filename, zlib.crc32(z.read(i)), i.file_size) for i in z.infolist()]
    assert held == told.get(number, []), (path, held)
    if not held:  # NumPy does not know an empty archive by its first bytes if they are zip64's
        continue
    with numpy.load(path) as arrays:
        for name, crc, size in held:
            assert arrays[name[:-4]].nbytes <= size
            members += 1
assert members > 800, members
END
exit $failed
