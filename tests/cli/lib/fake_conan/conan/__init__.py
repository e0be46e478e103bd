"""As much of Conan 2 as our recipe asks for; run by tests/cli/lib/fake_conan/create.py. SPDX-License-Identifier: MIT"""


class ConanFile:
    pass
