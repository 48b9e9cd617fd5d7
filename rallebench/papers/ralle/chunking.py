"""KILT's chunks (arXiv:2009.02252): 100 words."""

from __future__ import annotations

from rallebench.core.chunking import Chunking
from rallebench.corpora.chunking import PRESETS

PRESETS.register("kilt", about="100 words")(Chunking(100))
