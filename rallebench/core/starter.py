"""The chain, questions, corpus and indexes of every new workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

STARTER = Path(__file__).resolve().parents[1] / "starter"
STARTER_CORPUS, STARTER_PAGES = STARTER / "corpus.tsv", STARTER / "page_map.json"
"""The shipped corpus and its page map."""
DEFAULT_CHAIN, DEFAULT_DATASET, READER = "starter", "starter-qa", "extractive-reader"

STARTER_INDEXES: Mapping[str, str] = {"starter-bm25": "bm25", "starter-minilm": "flat"}
"""Name → kind of the indexes over the starter corpus, built on first use."""
