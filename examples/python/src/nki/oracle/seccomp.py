"""Which system calls a program may make, by libseccomp (Debian: libseccomp2): none that names a file, a socket or a
process.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes
import errno
import os

# What NumPy, threads of OpenMP and Python's memory need; nothing that names a file, a socket or a process.
_CALLS = """
    read write readv writev close fstat newfstatat lseek mmap mprotect munmap mremap madvise brk futex clock_gettime
    clock_getres gettimeofday time clock_nanosleep nanosleep getpid gettid getppid exit exit_group rt_sigaction
    rt_sigprocmask rt_sigreturn sigaltstack getrandom sched_yield sched_getaffinity set_robust_list rseq poll ppoll
    getrusage times uname getcwd restart_syscall membarrier sysinfo getuid geteuid getgid getegid
""".split()
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES = 38  # of prctl
_THREAD = 0x00010000  # CLONE_THREAD


class Unsafe(RuntimeError):
    """Programs cannot be run here without danger, and why."""


class _Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


class Filter:
    """libseccomp's filter of _CALLS, made once; load() in the child."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        except OSError:
            raise Unsafe("libseccomp.so.2 is not installed (Debian: libseccomp2)") from None
        lib = self.library
        lib.seccomp_init.restype, lib.seccomp_init.argtypes = ctypes.c_void_p, [ctypes.c_uint32]
        lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                               ctypes.POINTER(_Compare)]
        lib.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.context = lib.seccomp_init(_REFUSE | errno.EPERM)
        if not self.context:
            raise Unsafe("libseccomp makes no filter on this machine")
        for name in _CALLS:
            self._rule(_ALLOW, name)
        self._rule(_REFUSE | errno.ENOSYS, "clone3")  # the C library takes clone then, whose flags can be looked at
        self._rule(_ALLOW, "clone", _Compare(0, 7, _THREAD, _THREAD))
        self.bytes = self._exported()
        self.text = ctypes.create_string_buffer(self.bytes, len(self.bytes))
        self.program = _Program(len(self.bytes) // 8, ctypes.addressof(self.text))
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.prctl, self.seccomp = (lib.seccomp_syscall_resolve_name(name) for name in (b"prctl", b"seccomp"))

    def _rule(self, action: int, name: str, *compare: _Compare) -> None:
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # this architecture has none of that name
            return
        array = (_Compare * max(len(compare), 1))(*compare)
        if self.library.seccomp_rule_add_array(self.context, action, number, len(compare), array):
            raise Unsafe(f"libseccomp has no rule for {name}")

    def _exported(self) -> bytes:
        descriptor = os.memfd_create("filter")
        try:
            if self.library.seccomp_export_bpf(self.context, descriptor):
                raise Unsafe("libseccomp writes no filter on this machine")
            os.lseek(descriptor, 0, os.SEEK_SET)
            return os.read(descriptor, 1 << 16)
        finally:
            os.close(descriptor)

    def load(self) -> None:
        """With SECCOMP_FILTER_FLAG_SPEC_ALLOW: else some systems make every program half as slow again."""
        whole = ctypes.c_long
        if (self.syscall(whole(self.prctl), whole(_NO_NEW_PRIVILEGES), whole(1), whole(0), whole(0), whole(0)) or
                self.syscall(whole(self.seccomp), whole(1), whole(4), ctypes.byref(self.program))):
            raise Unsafe("this machine's kernel takes no seccomp filter")
