"""The filter of system calls, interpreted here as in the kernel, for both architectures on either machine."""

from __future__ import annotations

import struct

import pytest

from rallebench.sandbox.calls import MACHINES, call_filter, calls, pack

PID = 4321
ALLOWED, EPERM = 0x7FFF0000, 0x00050001


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Return the filter's answer to the call ``number`` with up to six 64-bit ``arguments``."""
    arch = MACHINES[machine] if arch is None else arch
    six = (*arguments, *[0] * (6 - len(arguments)))
    record = struct.pack("<iIQ6Q", number, arch, 0, *six)
    program, at, value = call_filter(machine, PID), 0, 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            value = int.from_bytes(record[operand : operand + 4], "little")
        elif operation in (0x15, 0x45):
            holds = value == operand if operation == 0x15 else bool(value & operand)
            at += if_true if holds else if_false
        else:
            raise AssertionError(f"an operation that no filter needs: {operation:#x}")


def allowed(machine: str, name: str, *arguments: int) -> bool:
    return verdict(machine, dict(calls(machine))[name], *arguments) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_that_the_table_does_not_name_is_denied(machine: str) -> None:
    named = {number for _, number in calls(machine)}
    assert all(
        verdict(machine, number) == EPERM for number in range(-1, 600) if number not in named
    )
    assert len(named) == len(list(calls(machine)))


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_machine_and_of_x32_are_denied(machine: str) -> None:
    other_forms = (
        0x40000003,
        0x40000028,
        0x8000003E,
        0x800000B7,
    )  # i386, arm, and related big-endian and 32-bit machines
    assert all(
        verdict(machine, number, arch=arch) == EPERM
        for _, number in calls(machine)
        for arch in other_forms
    )
    assert all(verdict(machine, number | 0x40000000) == EPERM for _, number in calls(machine))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "openat",
            [(0, 0, 0), (0, 0, 0o2000000)],
            [(0, 0, 1), (0, 0, 2), (0, 0, 0o100), (0, 0, 0o1000), (0, 0, 0o20200002)],
        ),
        (
            "fcntl",
            [(3, 0), (3, 1), (3, 2), (3, 3), (3, 1030)],
            [(3, 4), (3, 6), (3, 8), (3, 10), (3, 15), (3, 1024), (3, 1031), (3, 1033)],
        ),
        ("ioctl", [(3, 0x5401), (3, 0x5451)], [(3, 0x5412), (3, 0x5421), (3, 0x8901), (3, 0x8902)]),
        ("kill", [(PID, 6)], [(1, 9), (0, 9), (2**64 - 1, 9), (2**32 - PID, 9)]),
        ("tgkill", [(PID, PID, 6)], [(1, PID, 9)]),
        ("madvise", [(0, 0, 4), (0, 0, 8)], [(0, 0, 100), (0, 0, 101), (0, 0, 12)]),
        ("prlimit64", [(0, 7, 0, 64)], [(1, 7, 0, 64), (0, 7, 64, 0), (0, 7, 2**32, 0)]),
        ("read", [(0, 2**63, 2**63)], []),
        ("exit_group", [(0,)], []),
    ],
)
def test_a_call_with_other_uses_is_allowed_with_harmless_arguments_only(
    machine: str, name: str, good: list[tuple[int, ...]], bad: list[tuple[int, ...]]
) -> None:
    assert [allowed(machine, name, *arguments) for arguments in good] == [True] * len(good)
    assert [allowed(machine, name, *arguments) for arguments in bad] == [False] * len(bad)


def test_a_machine_without_a_table_gets_no_filter_and_kernels_read_eight_bytes() -> None:
    assert call_filter("riscv64", PID) == []
    assert len(pack(call_filter("aarch64", PID))) == 8 * len(call_filter("aarch64", PID))
