"""CRUD-RAG's chunks (arXiv:2401.17043): 128 tokens without overlap; the grid covers 64 to 512 tokens and 0 to 70 % overlap."""

from __future__ import annotations

from rallebench.core.chunking import Chunking
from rallebench.corpora.chunking import PRESETS

PRESETS.register("crud", about="sentences of up to 128 tokens")(
    Chunking(128, 0, "tokens", "sentences")
)
PRESETS.register("crud-original", about="sentences as the code of CRUD-RAG splits them")(
    Chunking(128, 0, "tokens", "sentences", compat="original")
)
