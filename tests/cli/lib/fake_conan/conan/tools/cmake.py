import os
import subprocess


def cmake_layout(recipe, src_folder="."):
    recipe.source_folder = os.path.join(recipe.export_sources_folder, src_folder)


class CMakeToolchain:
    def __init__(self, recipe):
        self.recipe, self.cache_variables = recipe, {}

    def generate(self):
        self.recipe.cached = [f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"
                              for name, value in self.cache_variables.items()]


class CMake:
    def __init__(self, recipe):
        self.recipe = recipe

    def _run(self, *words):
        subprocess.run(["cmake", *words], check=True, stdout=subprocess.DEVNULL)

    def configure(self, build_script_folder="."):
        self._run("-S", os.path.join(self.recipe.source_folder, build_script_folder), "-B", self.recipe.build_folder,
                  f"-DCMAKE_INSTALL_PREFIX={self.recipe.package_folder}", *self.recipe.cached)

    def build(self):
        self._run("--build", self.recipe.build_folder)

    def install(self):
        self._run("--install", self.recipe.build_folder)
