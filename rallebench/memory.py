"""How much memory this process holds, how much is free, and giving back what was dropped.

Bytes everywhere; people read megabytes and gigabytes of 10^6 and 10^9 bytes. Nothing here imports
torch: where nobody else has, there is no VRAM to count.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of RAM and of VRAM: held, or (as a difference) taken or given back.

    >>> str(Memory(412_000_000))
    '412 MB RAM'
    >>> str(Memory(700_000_000, 6_100_000_000) - Memory(288_000_000, 1_000_000_000))
    '5.1 GB VRAM, 412 MB RAM'
    """

    ram: int = 0
    vram: int = 0

    @classmethod
    def now(cls) -> Memory:
        """What this process holds at this moment."""
        return cls(rss_bytes(), vram_bytes())

    def __sub__(self, other: Memory) -> Memory:
        return Memory(self.ram - other.ram, self.vram - other.vram)

    def __str__(self) -> str:
        return (f"{size(self.vram)} VRAM, " if self.vram > 0 else "") + f"{size(self.ram)} RAM"


def size(count: int) -> str:
    """Bytes as people read them; less than nothing (noise of a measurement) is nothing.

    >>> [size(count) for count in (-3, 240_000, 84_400_000, 5_080_000_000)]
    ['0 MB', '0.2 MB', '84 MB', '5.1 GB']
    """
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} GB"
    return f"{max(count, 0) / 1e6:.{1 if 0 < count < 10_000_000 else 0}f} MB"


def rss_bytes() -> int:
    """Resident memory of this process, mapped files that are in memory included."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def free_ram_bytes() -> int:
    """RAM that a process can take without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


def vram_bytes() -> int:
    """Bytes that torch's tensors hold on all CUDA devices; 0 without torch, CUDA or any use of it."""
    torch = _torch_on_cuda()
    if torch is None:
        return 0
    return sum(int(torch.cuda.memory_allocated(device)) for device in range(torch.cuda.device_count()))


def release() -> None:
    """Give dropped memory back to the system: collect cycles, empty torch's cache, trim the C heap."""
    gc.collect()
    torch = _torch_on_cuda()
    if torch is not None:
        torch.cuda.empty_cache()
    # glibc keeps freed blocks for later; elsewhere there is no malloc_trim and nothing to do.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _torch_on_cuda() -> Any:
    """torch, if it was imported and has begun to use CUDA: asking would otherwise start it.

    Another thread may be in the middle of importing it, when it has no ``cuda`` yet.
    """
    torch = sys.modules.get("torch")
    begun = getattr(getattr(torch, "cuda", None), "is_initialized", None)
    return torch if begun is not None and begun() else None
