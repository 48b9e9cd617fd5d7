"""Experiments of CRUD-RAG and BARAG, which move to ``papers``."""

from rallebench.experiments.papers import SCORERS, SUITES, Suite, settings_of

__all__ = ["SCORERS", "SUITES", "Suite", "settings_of"]
