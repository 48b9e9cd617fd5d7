"""Permitted system calls of a program, as a filter for the Linux kernel (seccomp, classic BPF).

Any other call fails with EPERM: computing, printing, calling functions and reading libraries take few system calls. Some
are permitted with certain arguments only.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

_TABLE = """
talking   read 0 63, write 1 64, readv 19 65, writev 20 66, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72
memory    brk 12 214, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, futex 202 98
libraries open 2 -, openat 257 56, close 3 57, lseek 8 62, pread64 17 67, getdents64 217 61, getcwd 79 17
libraries stat 4 -, lstat 6 -, fstat 5 80, newfstatat 262 79, statx 332 291, access 21 -, faccessat 269 48
libraries faccessat2 439 439, readlink 89 -, readlinkat 267 78, fcntl 72 25, ioctl 16 29
libraries dup 32 23, dup2 33 -, dup3 292 24
time      clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -, times 100 153, getrusage 98 165
time      nanosleep 35 101, clock_nanosleep 230 115, getitimer 36 102, setitimer 38 103, alarm 37 -
signals   rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, sigaltstack 131 132
signals   restart_syscall 219 128, kill 62 129, tgkill 234 131
itself    getpid 39 172, getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176
itself    getegid 108 177, getrlimit 97 163, prlimit64 302 261, sched_getaffinity 204 123, sched_yield 24 124
itself    uname 63 160, sysinfo 99 179, getrandom 318 278, exit 60 93, exit_group 231 94
"""
"""Purpose, then each call with its number on x86_64 and on aarch64 (``-``: not on this machine)."""

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The supported machines, with the kernel's number of each (AUDIT_ARCH)."""

_WRITING = (
    0o3 | 0o100 | 0o1000 | 0o20000 | 0o20000000
)  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_ASYNC, O_TMPFILE
_DUPLICATE_AND_FLAGS = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
_TERMINAL_AND_CLOSING = (0x5401, 0x5450, 0x5451)  # TCGETS, FIONCLEX, FIOCLEX
_GIVING_BACK = (4, 8)  # MADV_DONTNEED, MADV_FREE; root could damage pages with others

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_DENY, _ALLOW = 0x00050001, 0x7FFF0000  # SECCOMP_RET_ERRNO with EPERM, SECCOMP_RET_ALLOW

Instruction = tuple[int, int, int, int]
"""Operation, instructions to skip if true and if false, operand."""


def call_filter(machine: str, pid: int) -> list[Instruction]:
    """Return the filter for the process ``pid`` on ``machine``; empty for an unsupported machine.

    Calls with an ABI other than the machine's own (32 bits on 64, x32) are denied, too.
    """
    if machine not in MACHINES or sys.maxsize < 2**32:
        return []
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, MACHINES[machine]),
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, 0),
    ]
    for name, number in calls(machine):
        checks = _checks(name, pid)
        program += [(_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, _ALLOW)]
    return [*program, (_RETURN, 0, 0, _DENY)]


def pack(instructions: list[Instruction]) -> bytes:
    """Return the filter as bytes for the kernel, 8 per instruction."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def calls(machine: str) -> Iterator[tuple[str, int]]:
    """Yield the permitted calls with their numbers on ``machine``."""
    column = list(MACHINES).index(machine)
    for line in _TABLE.strip().splitlines():
        for entry in line.partition(" ")[2].split(","):
            name, *numbers = entry.split()
            if numbers[column] != "-":
                yield name, int(numbers[column])


def _checks(name: str, pid: int) -> list[Instruction]:
    """Return the instructions that deny the call ``name`` unless its arguments are permitted.

    The kernel reads 32 bits of these arguments, except of pointers.
    """
    if name in ("kill", "tgkill"):
        return _is_among(_low(0), (pid,))
    if name == "fcntl":
        return _is_among(_low(1), _DUPLICATE_AND_FLAGS)
    if name == "ioctl":
        return _is_among(_low(1), _TERMINAL_AND_CLOSING)
    if name == "madvise":
        return _is_among(_low(2), _GIVING_BACK)
    if name in ("open", "openat"):
        flags = 1 if name == "open" else 2
        return [(_LOAD, 0, 0, _low(flags)), (_ANY_BIT, 0, 1, _WRITING), (_RETURN, 0, 0, _DENY)]
    if name == "prlimit64":  # its own limits, and no pointer to new ones
        return [
            check for word in (_low(0), _low(2), _low(2) + 4) for check in _is_among(word, (0,))
        ]
    return []


def _is_among(word: int, values: tuple[int, ...]) -> list[Instruction]:
    matches = [(_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return [(_LOAD, 0, 0, word), *matches, (_RETURN, 0, 0, _DENY)]


def _low(argument: int) -> int:
    """Return the offset of an argument's lower 32 bits in the kernel's record of a call (both machines are little-endian)."""
    return 16 + 8 * argument
