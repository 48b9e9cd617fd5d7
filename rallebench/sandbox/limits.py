"""What a program may use, and what holds it to that here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """``seconds``: of its own running, waiting for answers not counted. ``memory``: MiB of address space, Python's own
    (about 30) included. ``output``: characters printed. ``written``: MiB of a file. ``calls``: how often it may call."""

    seconds: float = 10.0
    memory: int = 256
    output: int = 20_000
    written: int = 10
    calls: int = 100


@dataclass(frozen=True, slots=True)
class Protection:
    """What the operating system holds a program to, beside its time: each whether it does so here."""

    memory: bool
    network: bool
    processes: bool
    files: bool
    means: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """For the page and the command line: what is protected here, and what is not."""
        rows = (
            (self.memory, "memory, processor time and file sizes are limited", "memory is NOT limited"),
            (self.network, "no network", "the network is NOT closed (only Python's own hooks refuse it)"),
            (
                self.processes,
                "no other processes",
                "other processes are NOT prevented (only Python's own hooks refuse them)",
            ),
            (
                self.files,
                "no files but Python's own library and an empty folder",
                "files that this user may read and write are NOT closed",
            ),
        )
        held = [good for holds, good, _ in rows if holds]
        missing = [bad for holds, _, bad in rows if not holds]
        first = f"A program runs in a Python of its own, with limits of time and output; {', '.join(held)}." if held else (
            "A program runs in a Python of its own, with limits of time and output only."
        )
        rest = f"On this machine {'; '.join(missing)}." if missing else ""
        last = "This keeps accidents small; it is no security boundary against a program that is meant to do harm."
        return tuple(filter(None, (first, rest, last)))
