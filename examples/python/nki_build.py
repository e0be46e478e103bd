"""Builds trnmath for Python: an in-tree PEP 517 backend that needs a C compiler, and nothing else.

    pip install examples/python          a wheel, compiled for this interpreter and machine
    python3 nki_build.py                 both libraries in src/, in their packages
    python3 nki_build.py DIRECTORY       a wheel there

It compiles libtrnmath_flat.so, which the module trnmath loads, and nki/_core, NKI's front door. CC and CFLAGS are
looked at. Kernels choose AVX2 or AVX-512 when they run, so a wheel is for every machine of the architecture, and the same sources
and compiler give the same bytes. Its tag tells what it needs:

    linux_x86_64             the default, with OpenMP: a call uses all cores, by the libgomp of the machine it runs on
    manylinux_2_34_x86_64    TRNMATH_OPENMP=off, or pip's --config-settings openmp=off: glibc 2.34, no more, to be
                             given away; a call runs in one thread (same bits), calls of several threads side by side

(2.34 on Debian 12, by pthread_create: elf_needs.py reads it.) No libgomp is put into a wheel: it would need a glibc of
the builder's age, and two in one process would have two pools of threads.

A wheel has nki and neuronxcc below trnmath/fronts, where they are in nobody's way (trnmath_fronts.py). Where another
package of these names is installed, `import nki` would go on meaning that one, so the build refuses; with
TRNMATH_BESIDE=yes, or --config-settings beside=yes, it goes on. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import base64
import concurrent.futures
import csv
import gzip
import hashlib
import importlib.metadata
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
from collections.abc import Mapping, Sequence
from typing import Any, Union, cast

Settings = Union[Mapping[str, str], None]
HERE = pathlib.Path(__file__).resolve().parent
SRC, EXT = HERE / "src", HERE / "ext"  # what is imported; what is compiled for it
NAME = "trnmath"
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-fast-math", "-ffp-contract=off",
         "-s"]


def include() -> pathlib.Path:
    """The directory with trnmath/*.h: the repository's, or the one in a source archive."""
    for place in (HERE / "include", HERE.parents[1] if len(HERE.parents) > 1 else HERE):
        if (place / "trnmath" / "trn_core.h").is_file():
            return place
    raise SystemExit("trnmath's headers are neither in include/trnmath beside nki_build.py nor two folders above it; "
                     "build from the repository, or from an archive that `nki_build.py --sdist` made")


def version() -> str:
    text = (include() / "trnmath" / "base" / "base.h").read_text(encoding="utf-8")
    return re.findall(r'#define TRN_VERSION "([^"]+)"', text)[0]


# ---- compiling ----

def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc")) + FLAGS + shlex.split(os.environ.get("CFLAGS", ""))


def _cc(source: pathlib.Path, target: pathlib.Path, openmp: bool, *more: str) -> None:
    here = [f"-ffile-prefix-map={place}=." for place in (include(), HERE)]  # the bytes tell nothing of the folder
    command = _compiler() + here + [f"-I{include()}", str(source), "-o", str(target), "-lm"] + list(more)
    for flags in ([["-fopenmp"]] if openmp else []) + [[]]:
        try:
            done = subprocess.run(command + flags, capture_output=True, text=True, check=False)
        except OSError as trouble:
            raise SystemExit(f"the C compiler does not run ({trouble}); CC names another") from None
        if done.returncode == 0:
            return
    raise SystemExit(f"{source.name} does not compile:\n{' '.join(command)}\n{done.stderr}")


def extension() -> str:
    return "nki/_core" + sysconfig.get_config_var("EXT_SUFFIX")


def _asked(config_settings: Settings, name: str, default: str, other: str) -> bool:
    """A setting of pip's, or else of the environment: is it what it is by default?"""
    asked = (config_settings or {}).get(name, os.environ.get(f"TRNMATH_{name.upper()}", default))
    if asked not in (default, other):
        raise SystemExit(f"{name} is '{asked}', expected {default} or {other}")
    return asked == default


def with_openmp(config_settings: Settings = None) -> bool:
    return _asked(config_settings, "openmp", "on", "off")


# ---- other packages' names ----

FRONTS = ("nki", "neuronxcc")
FLAT = f"{NAME}/libtrnmath_flat.so"


def _owner(place: str, front: str) -> str | None:
    """Whose package this is: the distribution that lists it among its files."""
    for found in importlib.metadata.distributions(path=[str(place)]):
        if any(file.parts[:1] == (front,) for file in found.files or ()):
            return found.metadata["Name"]
    return None


def refuse_others(config_settings: Settings = None) -> None:
    """A sentence where `import nki` would not mean this one after it is installed."""
    if not _asked(config_settings, "beside", "no", "yes"):
        return
    for place in sorted({sysconfig.get_paths()[scheme] for scheme in ("purelib", "platlib")}):
        for front in FRONTS:
            other = pathlib.Path(place) / front
            owner = _owner(place, front)
            if not other.exists() or owner == NAME:  # an older trnmath had it there: pip takes it away
                continue
            raise SystemExit(
                f"{front} of {owner or 'another package'} is installed in {place}, and `import {front}` would go on "
                f"meaning that one. Either install {NAME} into an environment of its own (python3 -m venv), or beside "
                f"it with --config-settings beside=yes: none of its files is touched, and TRNMATH_FRONTS=first chooses "
                f"{NAME}'s.")


def build(folder: str | pathlib.Path, openmp: bool = True) -> None:
    """trnmath/libtrnmath_flat.so and nki/_core in this folder."""
    folder = pathlib.Path(folder)
    for package in ("nki", NAME):
        (folder / package).mkdir(parents=True, exist_ok=True)
    python = sysconfig.get_paths()["include"]
    if not (pathlib.Path(python) / "Python.h").is_file():
        raise SystemExit(f"Python.h is not in {python} (Debian: python3-dev)")
    soname = f"-Wl,-soname,libtrnmath_flat.so.{version().rsplit('.', 1)[0]}"
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        for one in (both.submit(_cc, EXT / "trnmath_flat.c", folder / FLAT, openmp, soname),
                    both.submit(_cc, EXT / "core.c", folder / extension(), openmp, f"-I{python}")):
            one.result()


# ---- a wheel ----

def _tag(objects: Sequence[pathlib.Path]) -> str:
    """The interpreter and the platform that these shared objects, or a folder of sources (none), are for."""
    import elf_needs  # here: a build that cannot begin says why in one sentence, whatever lies beside this file
    interpreter, own = f"cp{sys.version_info[0]}{sys.version_info[1]}", sysconfig.get_platform()
    if objects and own.startswith("linux-"):
        own = elf_needs.tag(objects, own[len("linux-"):])
    return f"{interpreter}-{interpreter}-{own.replace('-', '_').replace('.', '_')}"


def _metadata() -> str:
    readme = HERE / "README.md"
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
            "Summary: The Trainium you can import: trnmath's numbers, and NKI kernels on a simulated NeuronCore\n"
            "License: MIT\nRequires-Python: >=3.10\nRequires-Dist: numpy\n"
            "Description-Content-Type: text/markdown\n\n"
            + (readme.read_text(encoding="utf-8") if readme.is_file() else ""))


def _sources() -> list[str]:
    """Python's files of every package, by their names in src/."""
    found = ["trnmath_fronts.py"]
    for package in (NAME, *FRONTS):
        for path in sorted((SRC / package).rglob("*")):
            if path.suffix in (".py", ".pyi", ".json") or path.name == "py.typed":
                found.append(path.relative_to(SRC).as_posix())
    return found


def _installed(name: str) -> str:
    """Where a file of src/ lies in a wheel: the fronts in the package of trnmath."""
    return f"{NAME}/fronts/{name}" if name.startswith(tuple(f"{front}/" for front in FRONTS)) else name


def _licence() -> pathlib.Path:
    for place in (HERE, HERE.parents[1] if len(HERE.parents) > 1 else HERE):
        if (place / "LICENSE").is_file():
            return place / "LICENSE"
    raise SystemExit("LICENSE is neither beside nki_build.py nor two folders above it")


class _Wheel:
    def __init__(self, folder: str | pathlib.Path, objects: Sequence[pathlib.Path] = ()) -> None:
        self.tag = _tag(objects)
        self.name = f"{NAME}-{version()}-{self.tag}.whl"
        self.info = f"{NAME}-{version()}.dist-info"
        self.rows: list[tuple[str, str, int | str]] = []
        self.zip = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, data: str | bytes, mode: int = 0o644) -> None:
        data = data.encode() if isinstance(data, str) else data
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, f"sha256={digest}", len(data)))

    def close(self) -> str:
        self.add(f"{self.info}/METADATA", _metadata())
        self.add(f"{self.info}/LICENSE", _licence().read_bytes())
        self.add(f"{self.info}/WHEEL",
                 f"Wheel-Version: 1.0\nGenerator: nki_build\nRoot-Is-Purelib: false\nTag: {self.tag}\n")
        self.add(f"{self.info}/top_level.txt", "trnmath\ntrnmath_fronts\n")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.rows + [(f"{self.info}/RECORD", "", "")])
        self.zip.writestr(zipfile.ZipInfo(f"{self.info}/RECORD", (1980, 1, 1, 0, 0, 0)), text.getvalue())
        self.zip.close()
        return self.name


def build_wheel(wheel_directory: str, config_settings: Settings = None,
                metadata_directory: str | None = None) -> str:
    refuse_others(config_settings)
    with tempfile.TemporaryDirectory() as scratch:
        build(scratch, with_openmp(config_settings))
        library, core = pathlib.Path(scratch) / FLAT, pathlib.Path(scratch) / extension()
        wheel = _Wheel(wheel_directory, (library, core))
        wheel.add(FLAT, library.read_bytes(), 0o755)
        wheel.add(_installed(extension()), core.read_bytes(), 0o755)
    for name in _sources():
        wheel.add(_installed(name), (SRC / name).read_bytes())
    wheel.add(f"{NAME}.pth", "import trnmath_fronts\n")
    return wheel.close()


def build_editable(wheel_directory: str, config_settings: Settings = None,
                   metadata_directory: str | None = None) -> str:
    refuse_others(config_settings)
    build(SRC, with_openmp(config_settings))
    wheel = _Wheel(wheel_directory)
    wheel.add(f"{NAME}.pth", f"{SRC}\n")
    return wheel.close()


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Python's sources, the flat interface and trnmath's headers, in one archive that builds anywhere."""
    base = f"{NAME}-{version()}"
    names = ["nki_build.py", "elf_needs.py", "pyproject.toml", "README.md", *(f"src/{name}" for name in _sources()),
             *(f"ext/{path.name}" for path in EXT.glob("*.[ch]"))]
    files = {name: HERE / name for name in names}
    files["LICENSE"] = _licence()
    for path in (include() / "trnmath").rglob("*.h"):
        files[f"include/{path.relative_to(include()).as_posix()}"] = path
    with open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "wb") as file, \
            gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed, \
            tarfile.open(fileobj=cast(Any, packed), mode="w", format=tarfile.PAX_FORMAT) as archive:
        texts = {"PKG-INFO": _metadata().encode(), **{name: path.read_bytes() for name, path in files.items()}}
        for name, data in sorted(texts.items()):
            entry = tarfile.TarInfo(f"{base}/{name}")  # no owner, time or mode of the machine it was made on
            entry.size, entry.mtime = len(data), 315532800
            archive.addfile(entry, io.BytesIO(data))
    return f"{base}.tar.gz"


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--sdist":
        print(build_sdist(sys.argv[2]))
    elif len(sys.argv) > 1:
        print(build_wheel(sys.argv[1]))
    else:
        build(SRC)
