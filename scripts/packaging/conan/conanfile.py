"""trnmath for Conan 2, from the checkout that this file lies in: conan create scripts/packaging/conan

SPDX-License-Identifier: MIT
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Trnmath(ConanFile):
    name = "trnmath"
    license = "MIT"
    description = "What the engines of Trainium 1, 2 and 3 compute, as C headers"
    topics = ("trainium", "bfloat16", "float8", "mx", "matmul", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def _checkout(self):
        return os.path.abspath(os.path.join(self.recipe_folder, "..", "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._checkout(), "trnmath", "base", "base.h"))
        self.version = re.search(r'^#define TRN_VERSION "([^"]+)"$', text, re.MULTILINE).group(1)

    def export_sources(self):
        copy(self, "LICENSE", self._checkout(), self.export_sources_folder)
        copy(self, "trnmath/*", self._checkout(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self, src_folder=".")

    def package_id(self):
        self.info.clear()

    def validate(self):
        if str(self.settings.get_safe("compiler")) == "msvc":
            raise ConanInvalidConfiguration("trnmath needs gcc or clang (on Windows: mingw-w64)")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TRN_LIBRARY"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure(build_script_folder="trnmath")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share"))  # Conan writes what CMake and pkg-config look for

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "trnmath")
        self.cpp_info.set_property("cmake_target_name", "trnmath::trnmath")
        self.cpp_info.set_property("pkg_config_name", "trnmath")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m"]
