import os
import shutil
from fnmatch import fnmatch


def load(recipe, path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def copy(recipe, pattern, src, dst):
    """Conan's: files below src whose path fits, with their folders."""
    copied = 0
    for folder, _, names in os.walk(src):
        for name in names:
            path = os.path.join(folder, name)
            below = os.path.relpath(path, src)
            if fnmatch(below, pattern):
                os.makedirs(os.path.dirname(os.path.join(dst, below)), exist_ok=True)
                shutil.copy(path, os.path.join(dst, below))
                copied += 1
    assert copied, f"nothing fits {pattern} in {src}"


def rmdir(recipe, path):
    shutil.rmtree(path)
