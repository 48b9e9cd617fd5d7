"""The limits of a program, and the protection on this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a program. ``seconds``: running time, without waiting for answers; ``memory``: MiB of address space, including
    about 30 for Python itself; ``output``: printed characters; ``calls``: function calls. Nothing may be written to files."""

    seconds: float = 10.0
    memory: int = 256
    output: int = 20_000
    calls: int = 100


@dataclass(frozen=True, slots=True)
class Protection:
    """Limits that the operating system enforces on this machine, besides the time."""

    memory: bool
    network: bool
    processes: bool
    writing: bool
    reading: bool
    means: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """Return the protection on this machine and its gaps, for the page and the command line."""
        hooks = "(only Python's own hooks refuse {})"
        rows = (
            (self.memory, "memory and processor time are limited", "memory is NOT limited"),
            (self.network, "no network", f"the network is NOT closed {hooks.format('it')}"),
            (
                self.processes,
                "no other processes or threads, and no signals to any",
                f"other processes are NOT out of reach {hooks.format('to start and to signal them')}",
            ),
            (
                self.writing,
                "no file is written, changed or removed",
                f"the files of this user are NOT safe from changes {hooks.format('them')}",
            ),
            (
                self.reading,
                "no file is read except in the library folders of Python and of the system",
                "files readable by this user are NOT closed",
            ),
        )
        enforced = [good for works, good, _ in rows if works]
        missing = [bad for works, _, bad in rows if not works]
        limits = f"; {', '.join(enforced)}" if enforced else " only"
        return (
            f"A program runs in a separate Python process, with limits of time and output{limits}.",
            *([f"On this machine {'; '.join(missing)}."] if missing else []),
            "A kernel bug would be a way out, so this is not a security boundary against malicious programs.",
        )
