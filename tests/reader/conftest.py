"""One reader on the real encoder for all tests of this folder: it loads in seconds and keeps no visible state."""

from __future__ import annotations

import pytest

from rallebench.reader.spans import SpanReader, load


@pytest.fixture(scope="session")
def reader() -> SpanReader:
    import torch

    torch.set_num_threads(1)
    return load("float32")
