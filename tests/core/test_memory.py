"""Memory is counted in bytes, shown in megabytes, and really given back."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from rallebench.core.memory import Memory, free_ram_bytes, release, rss_bytes, size, vram_bytes

MB = 1_000_000


def test_memory_is_shown_by_kind_in_the_unit_of_its_size() -> None:
    assert Memory(9, 7) - Memory(4, 1) == Memory(5, 6)
    assert str(Memory(412 * MB)) == "412 MB RAM"
    assert str(Memory(12 * MB, 5_100 * MB)) == "5.1 GB VRAM, 12 MB RAM"
    assert str(Memory(-5 * MB, -1)) == "0 MB RAM", "less than nothing is noise"
    assert (size(999 * MB), size(1_000 * MB), size(9 * MB)) == ("999 MB", "1.0 GB", "9.0 MB")


def test_held_memory_grows_with_an_array_and_shrinks_after_release() -> None:
    before = Memory.now()
    array = np.ones(20 * MB)
    taken = Memory.now() - before
    assert 150 * MB < taken.ram < 250 * MB
    del array
    release()
    assert (Memory.now() - before).ram < 20 * MB


def test_small_freed_blocks_are_given_back_too() -> None:
    before = rss_bytes()
    blocks = [bytes(4000) for _ in range(25_000)]
    assert rss_bytes() - before > 80 * MB
    del blocks
    release()
    assert rss_bytes() - before < 40 * MB


def test_free_memory_is_less_than_the_machine_has() -> None:
    import psutil

    assert 0 < free_ram_bytes() <= psutil.virtual_memory().total


def test_asking_for_memory_imports_no_torch_and_so_starts_no_cuda() -> None:
    code = (
        "import sys; from rallebench.core.memory import Memory, release; "
        "print(Memory.now().vram, release(), 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["0", "None", "False"]


def test_there_is_no_vram_before_cuda_was_used() -> None:
    import torch

    if not torch.cuda.is_initialized():
        assert vram_bytes() == 0
