"""conan create, without Conan: create.py RECIPE FOLDER exports, builds and packages into FOLDER/package and prints the
version. The recipe is moved away before it builds, as it is in Conan's cache. SPDX-License-Identifier: MIT
"""
import importlib.util
import os
import sys


class Settings:
    os, compiler = "Linux", "gcc"

    def get_safe(self, name):
        return getattr(self, name, None)


class Info:
    cleared = False

    def clear(self):
        self.cleared = True


class CppInfo:
    def __init__(self):
        self.properties = {}

    def set_property(self, name, value):
        self.properties[name] = value


def main(path, folder):
    spec = importlib.util.spec_from_file_location("recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recipe = module.Trnmath()
    recipe.settings, recipe.info, recipe.cpp_info = Settings(), Info(), CppInfo()
    recipe.recipe_folder = os.path.dirname(os.path.abspath(path))
    for name in ("export_sources", "build", "package"):
        setattr(recipe, name + "_folder", os.path.join(folder, name))
        os.makedirs(os.path.join(folder, name))
    recipe.set_version()
    recipe.export_sources()
    recipe.recipe_folder = "/nowhere"
    recipe.layout()
    recipe.package_id()
    recipe.validate()
    recipe.generate()
    recipe.build()
    recipe.package()
    recipe.package_info()
    assert recipe.info.cleared and recipe.package_type == "header-library"
    assert recipe.cpp_info.properties["cmake_target_name"] == "trnmath::trnmath"
    assert recipe.cpp_info.libdirs == [] and recipe.cpp_info.system_libs == ["m"]
    recipe.settings.compiler = "msvc"
    try:
        recipe.validate()
    except sys.modules["conan.errors"].ConanInvalidConfiguration:
        print(recipe.version)


if __name__ == "__main__":
    main(*sys.argv[1:])
