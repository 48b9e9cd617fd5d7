"""BARAG's chunks (arXiv:2403.00820): 1024 characters in the paper, 1028 in its code."""

from __future__ import annotations

from rallebench.core.chunking import Chunking
from rallebench.corpora.chunking import PRESETS, TITLE

PRESETS.register("barag", about="1024 characters, 48 of them shared, after the title")(
    Chunking(1024, 48, "characters", "recursive", prefix=f"Title: {TITLE}\n")
)
PRESETS.register("barag-code", about="1028 characters, as the code of BARAG has them")(
    Chunking(1028, 48, "characters", "recursive", prefix=f"Title: {TITLE}\n")
)
