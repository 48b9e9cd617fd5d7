"""The memory of this process, the free memory, and the release of dropped memory.

All numbers are bytes; texts show megabytes and gigabytes of 10^6 and 10^9 bytes. Nothing here imports torch: if no
other module has, there is no VRAM to count.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.versions import imported_module

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


class Weights(Protocol):
    """A torch tensor, as far as it is needed here."""

    device: Any
    data: Any

    def is_contiguous(self) -> bool: ...

    def is_floating_point(self) -> bool: ...

    def element_size(self) -> int: ...


class Network(Protocol):
    """A torch model, as far as it is needed here."""

    def parameters(self) -> Iterable[Weights]: ...

    def buffers(self) -> Iterable[Weights]: ...


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of RAM and of VRAM, as a state or as a difference.

    >>> str(Memory(412_000_000))
    '412 MB RAM'
    >>> str(Memory(700_000_000, 6_100_000_000) - Memory(288_000_000, 1_000_000_000))
    '5.1 GB VRAM, 412 MB RAM'
    """

    ram: int = 0
    vram: int = 0

    @classmethod
    def now(cls) -> Memory:
        return cls(rss_bytes(), vram_bytes())

    def __sub__(self, other: Memory) -> Memory:
        return Memory(self.ram - other.ram, self.vram - other.vram)

    def __str__(self) -> str:
        return (f"{size(self.vram)} VRAM, " if self.vram > 0 else "") + f"{size(self.ram)} RAM"


def size(count: int) -> str:
    """Bytes as text; a negative number (noise of a measurement) is 0.

    >>> [size(count) for count in (-3, 240_000, 84_400_000, 5_080_000_000)]
    ['0 MB', '0.2 MB', '84 MB', '5.1 GB']
    """
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} GB"
    return f"{max(count, 0) / 1e6:.{1 if 0 < count < 10_000_000 else 0}f} MB"


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Switch the cycle collector off during the block; it would visit a million new objects several times."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def rss_bytes() -> int:
    """Resident memory of this process, including mapped files in memory."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """The most resident memory that this process has held since it began."""
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def free_ram_bytes() -> int:
    """Free RAM for this process, without swapping and within its container's limit."""
    import psutil

    return min([int(psutil.virtual_memory().available), *container_room()])


def container_room(root: Path = CGROUPS, own: Path = OWN_CGROUP) -> Iterator[int]:
    """Free bytes below each memory limit of this process's container; none outside a container.

    Both versions of Linux's control groups; cached file pages count as free, because the kernel drops them.
    """
    for folder, limit, used, cached in _groups(root, own):
        try:
            most, now = int((folder / limit).read_text()), int((folder / used).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
        yield max(0, most - now + int(stat.get(cached, 0)))


def _groups(root: Path, own: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The folders of this process's groups and of their parents, each with its file names."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            top = root / "memory"
        else:
            continue
        # Inside a container the path may be the host's, and only its top is visible.
        inner = top.joinpath(*path.strip("/").split("/"))
        for folder in dict.fromkeys([inner, *inner.parents]):
            if folder == top or top in folder.parents:
                yield (folder, *names)


def vram_bytes() -> int:
    """Bytes of torch's tensors on all CUDA devices; 0 if torch or CUDA is absent or unused."""
    torch = _torch_on_cuda()
    if torch is None:
        return 0
    return sum(
        int(torch.cuda.memory_allocated(device)) for device in range(torch.cuda.device_count())
    )


def free_vram_bytes() -> dict[int, int]:
    """Free bytes by number of the CUDA device; {} without CUDA.

    If torch does not use CUDA yet, the numbers come from nvidia-smi, because starting CUDA would take memory of the
    device.
    """
    torch = _torch_on_cuda()
    if torch is None:
        return _free_by_nvidia_smi()
    free = {}
    for device in range(torch.cuda.device_count()):
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free[device] = int(torch.cuda.mem_get_info(device)[0]) + int(cached)
    return free


def _free_by_nvidia_smi() -> dict[int, int]:
    tool = shutil.which("nvidia-smi")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if tool is None or visible == "":
        return {}
    try:
        output = subprocess.run(
            [tool, "--query-gpu=index,uuid,memory.free", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout
        rows = [[part.strip() for part in line.split(",")] for line in output.strip().splitlines()]
        free = {key: int(row[2]) * 2**20 for row in rows for key in row[:2]}
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return {}
    devices = visible.split(",") if visible else [row[0] for row in rows]
    return {number: free[key.strip()] for number, key in enumerate(devices) if key.strip() in free}


def release() -> None:
    """Return dropped memory to the system: collect cycles, empty torch's cache, trim the C heap."""
    gc.collect()
    torch = _torch_on_cuda()
    if torch is not None:
        torch.cuda.empty_cache()
    # glibc keeps freed blocks for later; other C libraries have no malloc_trim.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def read_mapped(model: Network) -> None:
    """Read weights that are only mapped from their file into RAM, so that they are measured now and the first answer is
    fast."""
    for parameter in model.parameters():
        if parameter.device.type == "cpu" and parameter.is_contiguous():
            parameter.data.view(-1)[:: 4096 // parameter.element_size()].max()


def copy_mapped(model: Network) -> None:
    """Copy unquantised weights out of the mapped file, which would otherwise stay in RAM as a whole."""
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.device.type == "cpu" and tensor.is_floating_point():
            tensor.data = tensor.data.clone()


@contextlib.contextmanager
def pages_of_their_own() -> Iterator[None]:
    """During the block, map every memory block of 128 KiB and more, so that it returns to the system when freed.

    After some blocks are freed, glibc puts blocks of up to 32 MiB on the thread's heap. It keeps up to 64 MiB at its end,
    beyond the reach of ``malloc_trim``. After the block glibc's own upper bounds apply again, because repeated allocation
    of equal blocks is faster on the heap.
    """
    _place_blocks(1 << 17, 1 << 17)
    try:
        yield
    finally:
        _place_blocks(32 << 20, 64 << 20)


def _place_blocks(mapped_from: int, most_free: int) -> None:
    """Set the size above which blocks are mapped, and the most free bytes at the end of a heap."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, mapped_from)  # M_MMAP_THRESHOLD
        mallopt(-1, most_free)  # M_TRIM_THRESHOLD


def forget_frames(error: BaseException) -> None:
    """Empty the frames of an error's traceback, which hold references to the loaded objects."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__


def _torch_on_cuda() -> Any:
    """torch, if it is imported and already uses CUDA. A query would otherwise start CUDA."""
    torch = imported_module("torch")
    begun = getattr(getattr(torch, "cuda", None), "is_initialized", None)
    return torch if begun is not None and begun() else None
