"""KILT's chunks (arXiv:2009.02252): 100 words."""

from __future__ import annotations

from rallebench.corpora.chunking import PRESETS, Chunking

PRESETS.register("kilt", about="100 words")(Chunking(100))
