"""What can be named here, and what the front ends must know of it: names, settings, cards, defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rallebench.analysis.agents import logs
from rallebench.analysis.agents.report import ASPECTS
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.predictions import READERS
from rallebench.core.registry import Entry, Registry
from rallebench.core.settings import Setting
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import PRESETS
from rallebench.datasets import DATASETS
from rallebench.environments import ENVIRONMENTS
from rallebench.experiments import BUILDERS, SUITES, ExperimentGroup
from rallebench.experiments.papers import SCORERS
from rallebench.experiments.sweeps import STRATEGIES
from rallebench.metrics import METRICS, card, read_card
from rallebench.retrievers import INDEX_KINDS
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.catalog import listing
from rallebench.workspace.indexes.build import kinds, needs_encoder
from rallebench.workspace.paths import DEFAULT_DATASET, Workspace, nothing_left

__all__ = ["DEFAULT_DATASET", "card", "needs_encoder", "nothing_left"]

REGISTRIES: Mapping[str, Registry[Any] | ExperimentGroup] = {
    registry.name: registry
    for registry in (
        CORPORA,
        DATASETS,
        ENVIRONMENTS,
        INDEX_KINDS,
        BUILDERS,
        METRICS,
        SCORERS,
        SUITES,
        WORKFLOWS,
    )
}
_LISTS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "aspects": lambda: tuple(ASPECTS),
    "chunk presets": lambda: tuple(PRESETS),
    "export formats": lambda: tuple(FORMS),
    "index kinds": lambda: tuple(kinds()),
    "prediction formats": lambda: (*READERS, logs.FORM),
    "strategies": lambda: tuple(STRATEGIES),
}


def names(kind: str) -> tuple[str, ...]:
    """The names of a registry, or of one of the fixed lists."""
    return _LISTS[kind]() if kind in _LISTS else REGISTRIES[kind].names()


def entry(kind: str, name: str) -> Entry[Any]:
    """A registered thing: its line, traits and settings. Raises NotFoundError with the nearest names."""
    return REGISTRIES[kind].entry(name)


def list_all(workspace: Workspace, kind: str | None) -> dict[str, list[dict[str, str]]]:
    """``{kind: [{name, about}]}`` for one kind or all. Raises NotFoundError."""
    return listing(workspace, kind, {"suites": SUITES})


def card_text(name: str) -> str:
    """The whole card of a metric as text."""
    return read_card(name).text()


def described(kind: str) -> list[dict[str, Any]]:
    """Every entry of a registry with its settings, JSON-able."""
    return [_described(entry(kind, name)) for name in names(kind)]


def _described(item: Entry[Any]) -> dict[str, Any]:
    settings = [_setting(name, setting) for name, setting in item.form.items()]
    return {"name": item.name, "about": item.about, "settings": settings}


def _setting(name: str, setting: Setting) -> dict[str, Any]:
    about = {"about": setting.about, "must_be": setting.must_be}
    return {"name": name, "default": setting.default, **about}
