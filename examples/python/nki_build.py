"""Builds trnmath for Python: an in-tree PEP 517 backend that needs a C compiler, and nothing else.

    pip install examples/python          a wheel, compiled for this interpreter and machine
    python3 nki_build.py                 both libraries in this folder, beside the sources
    python3 nki_build.py DIRECTORY       a wheel there

It compiles libtrnmath.so, which trnmath.py loads, and nki/_core, NKI's front door. CC and CFLAGS are looked at; without
OpenMP the compiler's calls run in one thread: same bits. SPDX-License-Identifier: MIT
"""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME = "trnmath"
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-fast-math", "-ffp-contract=off"]


def include():
    """The directory with trnmath/*.h: the repository's, or the one in a source archive."""
    for place in (HERE / "include", HERE.parents[1] if len(HERE.parents) > 1 else HERE):
        if (place / "trnmath" / "trn_core.h").is_file():
            return place
    raise SystemExit("trnmath's headers are neither in include/trnmath beside nki_build.py nor two folders above it; "
                     "build from the repository, or from an archive that `nki_build.py --sdist` made")


def version():
    text = (include() / "trnmath" / "trn_base.h").read_text(encoding="utf-8")
    return re.search(r'#define TRN_VERSION "([^"]+)"', text).group(1)


# ---- compiling ----

def _compiler():
    return shlex.split(os.environ.get("CC", "cc")) + FLAGS + shlex.split(os.environ.get("CFLAGS", ""))


def _cc(source, target, *more):
    command = _compiler() + [f"-I{include()}", str(source), "-o", str(target), "-lm"] + list(more)
    for openmp in (["-fopenmp"], []):
        try:
            done = subprocess.run(command + openmp, capture_output=True, text=True, check=False)
        except OSError as trouble:
            raise SystemExit(f"the C compiler does not run ({trouble}); CC names another") from None
        if done.returncode == 0:
            return
    raise SystemExit(f"{source.name} does not compile:\n{' '.join(command)}\n{done.stderr}")


def extension():
    return "nki/_core" + sysconfig.get_config_var("EXT_SUFFIX")


def build(folder):
    """libtrnmath.so and nki/_core in this folder."""
    folder = pathlib.Path(folder)
    (folder / "nki").mkdir(parents=True, exist_ok=True)
    python = sysconfig.get_paths()["include"]
    if not (pathlib.Path(python) / "Python.h").is_file():
        raise SystemExit(f"Python.h is not in {python} (Debian: python3-dev)")
    _cc(HERE / "trnmath_flat.c", folder / "libtrnmath.so",
        f"-Wl,-soname,libtrnmath.so.{version().rsplit('.', 1)[0]}")
    _cc(HERE / "nki" / "_core.c", folder / extension(), f"-I{python}")


# ---- a wheel ----

def _tag():
    interpreter = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{interpreter}-{interpreter}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _metadata():
    readme = HERE / "README.md"
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
            "Summary: The Trainium you can import: trnmath's numbers, and NKI kernels on a simulated NeuronCore\n"
            "License: MIT\nRequires-Python: >=3.10\nProvides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
            "Description-Content-Type: text/markdown\n\n"
            + (readme.read_text(encoding="utf-8") if readme.is_file() else ""))


def _sources():
    """Python's files of every package here, by their names in the wheel."""
    found = ["trnmath.py"]
    for package in ("nki", "neuronxcc"):
        for path in sorted((HERE / package).rglob("*")):
            if path.suffix in (".py", ".pyi") or path.name == "py.typed":
                found.append(path.relative_to(HERE).as_posix())
    return found


class _Wheel:
    def __init__(self, folder):
        self.name = f"{NAME}-{version()}-{_tag()}.whl"
        self.info = f"{NAME}-{version()}.dist-info"
        self.rows = []
        self.zip = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)

    def add(self, name, data, mode=0o644):
        data = data.encode() if isinstance(data, str) else data
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, f"sha256={digest}", len(data)))

    def close(self):
        self.add(f"{self.info}/METADATA", _metadata())
        self.add(f"{self.info}/WHEEL",
                 f"Wheel-Version: 1.0\nGenerator: nki_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n")
        self.add(f"{self.info}/top_level.txt", "nki\nneuronxcc\ntrnmath\n")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.rows + [(f"{self.info}/RECORD", "", "")])
        self.zip.writestr(zipfile.ZipInfo(f"{self.info}/RECORD", (1980, 1, 1, 0, 0, 0)), text.getvalue())
        self.zip.close()
        return self.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel = _Wheel(wheel_directory)
    with tempfile.TemporaryDirectory() as scratch:
        build(scratch)
        for name in ("libtrnmath.so", extension()):
            wheel.add(name, (pathlib.Path(scratch) / name).read_bytes(), 0o755)
    for name in _sources():
        wheel.add(name, (HERE / name).read_bytes())
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build(HERE)
    wheel = _Wheel(wheel_directory)
    wheel.add(f"{NAME}.pth", f"{HERE}\n")
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    """Python's sources, the flat interface and trnmath's headers, in one archive that builds anywhere."""
    base = f"{NAME}-{version()}"
    files = _sources() + ["nki_build.py", "pyproject.toml", "README.md", "trnmath_flat.c", "trnmath_flat.h"]
    files += [p.relative_to(HERE).as_posix() for p in sorted((HERE / "nki").glob("*.[ch]"))]
    headers = include()
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as archive:
        for name in files:
            archive.add(HERE / name, f"{base}/{name}")
        for path in sorted((headers / "trnmath").rglob("*.h")):
            archive.add(path, f"{base}/include/{path.relative_to(headers).as_posix()}")
        entry, data = tarfile.TarInfo(f"{base}/PKG-INFO"), _metadata().encode()
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return f"{base}.tar.gz"


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--sdist":
        print(build_sdist(sys.argv[2]))
    elif len(sys.argv) > 1:
        print(build_wheel(sys.argv[1]))
    else:
        build(HERE)
