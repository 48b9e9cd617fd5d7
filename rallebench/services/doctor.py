"""Examine an installation: packages, devices, memory, disk, threads, network. Loads no libraries or models."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rallebench import __version__
from rallebench.core.env_file import KNOWN
from rallebench.core.extras import EXTRAS, RUN_TIME, extra_with, install_line
from rallebench.core.files import free_bytes
from rallebench.core.memory import free_ram_bytes, free_vram_bytes
from rallebench.core.types import Json
from rallebench.core.versions import versions

HUB = ("huggingface.co", 443)
"""The server used to test the network; models are downloaded from it."""

HUB_SECONDS = 3.0
"""Seconds to wait for its response."""

OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
_PARTS = ("cache", "indexes", "runs", "bin", "corpora", "datasets", "experiments", "conversations")


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A package that may be installed. ``version``: '' if missing; ``install`` is then the command that installs it."""

    name: str
    version: str
    extra: str = ""
    install: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU; sizes in bytes, ``free`` None if unknown."""

    name: str
    bytes: int
    free: int | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of an installation, sizes in bytes.

    ``network``: True if the hub can be reached, None if not tried. ``variables``: names of the environment variables
    that are set, never their values. ``sizes``: folder of the workspace → its bytes.
    """

    rallebench: str
    python: str
    platform: str
    packages: tuple[InstalledPackage, ...]
    gpus: tuple[Device, ...]
    memory: int
    memory_free: int
    disk: int
    disk_free: int
    cores: int
    threads: int
    network: bool | None
    variables: tuple[str, ...]
    sizes: dict[str, int]

    @property
    def missing(self) -> tuple[InstalledPackage, ...]:
        """Required packages that are not installed."""
        return tuple(p for p in self.packages if not p.version and not p.extra)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each problem that limits rallebench."""
        sentences = [f"{p.name} is not installed: {p.install}" for p in self.missing]
        torch, numpy, diskann = map(self._version, ("torch", "numpy", "diskannpy"))
        if self.gpus and torch.endswith("+cpu"):
            sentences.append(
                f"torch {torch} is a build for CPUs, so models do not use the GPU: install torch as "
                "pytorch.org says for your CUDA version."
            )
        if diskann and numpy and not numpy.startswith("1."):
            sentences.append(
                f"diskannpy answers wrongly with numpy {numpy}: {install_line('numpy', 'numpy==1.25.0')}"
            )
        return tuple(sentences)

    def _version(self, package: str) -> str:
        return next((p.version for p in self.packages if p.name == package), "")

    def to_json(self) -> Json:
        """Return the diagnosis as JSON."""
        return {**asdict(self), "problems": list(self.problems)}


def diagnose(workspace: Path, *, hub: tuple[str, int] = HUB) -> Diagnosis:
    """Examine the installation and the disk of a workspace. ``hub``: the server to connect to, unless offline mode
    is set.
    """
    import psutil

    return Diagnosis(
        rallebench=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        packages=list_packages(),
        gpus=list_gpus(),
        memory=int(psutil.virtual_memory().total),
        memory_free=free_ram_bytes(),
        disk=shutil.disk_usage(_existing(workspace)).total,
        disk_free=free_bytes(workspace),
        cores=usable_cores(),
        threads=_threads(),
        network=None if is_offline() else is_reachable(hub),
        variables=tuple(sorted(KNOWN & os.environ.keys())),
        sizes=folder_sizes(workspace),
    )


def list_packages() -> tuple[InstalledPackage, ...]:
    """Return the required packages, then those of the extras."""
    names = [*RUN_TIME, *(name for packages in EXTRAS.values() for name in packages)]
    installed = versions(*names)
    return tuple(
        InstalledPackage(
            name,
            installed.get(name, ""),
            extra_with(name),
            "" if name in installed else install_line(name),
        )
        for name in names
    )


def list_gpus() -> tuple[Device, ...]:
    """Return the GPUs listed by nvidia-smi; empty if it is not installed."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    fields = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(
            [tool, *fields], capture_output=True, text=True, timeout=10, check=True
        )
        rows = [line.rsplit(",", 1) for line in ran.stdout.strip().splitlines()]
        free = free_vram_bytes()
        return tuple(
            Device(name.strip(), int(total) * 2**20, free.get(number))
            for number, (name, total) in enumerate(rows)
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


def usable_cores() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _threads() -> int:
    text = os.getenv("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) else usable_cores()


def is_offline() -> bool:
    """Return whether the environment forbids contacting the hub."""
    return os.getenv(OFFLINE_VARIABLE, "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def is_reachable(server: tuple[str, int]) -> bool:
    """Return whether a server, or the proxy in front of it, accepts a connection."""
    proxy = os.getenv("HTTPS_PROXY") or os.getenv("https_proxy") or ""
    try:
        parts = urlsplit(proxy)
        address = (parts.hostname, parts.port or 443) if parts.hostname else server
        socket.create_connection(address, timeout=HUB_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def folder_sizes(workspace: Path, names: Sequence[str] = _PARTS) -> dict[str, int]:
    """Return the sizes in bytes of a workspace's existing folders."""
    return {name: bytes_below(workspace / name) for name in names if (workspace / name).is_dir()}


def bytes_below(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    total = 0
    for file in [path, *path.rglob("*")] if path.is_dir() else [path]:
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # removed in the meantime
    return total


def _existing(path: Path) -> Path:
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
