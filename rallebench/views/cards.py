"""Cards of metrics, judges, imported corpora and the built-in reader, and the runs that have a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rallebench.core.errors import NotFoundError
from rallebench.core.registry import unknown
from rallebench.core.starter import READER
from rallebench.engine.store import REPORT
from rallebench.reader import MODEL_CARD
from rallebench.views import lists
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class CardKind:
    """A kind of card. ``names``: the names that have one, each with a line about it; ``read``: the text of a card."""

    names: Callable[[WorkspaceFolder], Mapping[str, str]]
    read: Callable[[WorkspaceFolder, str], str]
    media_type: str = "application/json"


def reported_runs(workspace: WorkspaceFolder) -> dict[str, str]:
    """Name → line of the runs that have results, newest first."""
    abouts = lists.abouts(workspace, "runs")
    return {
        name: line for name, line in abouts.items() if (workspace.runs / name / REPORT).is_file()
    }


def card_kind(kind: str) -> CardKind:
    """Return a kind of card. Raises NotFoundError."""
    if kind not in CARDS:
        raise NotFoundError(unknown("kind of card", kind, [*CARDS]))
    return CARDS[kind]


def _metric(_: WorkspaceFolder, name: str) -> str:
    return _as_json(lists.whole_card(name).to_json())


def _corpora(workspace: WorkspaceFolder) -> Mapping[str, str]:
    abouts = lists.abouts(workspace, "corpora")
    return {name: abouts[name] for name in workspace.corpus_cards()}


def _corpus(workspace: WorkspaceFolder, name: str) -> str:
    cards = workspace.corpus_cards()
    if name not in cards:
        raise NotFoundError(unknown("corpus", name, [*cards]))
    return _as_json(cards[name].model_dump(mode="json"))


def _readers(workspace: WorkspaceFolder) -> Mapping[str, str]:
    abouts = lists.abouts(workspace, "llms")
    return {name: abouts[name] for name, llm in workspace.llms().items() if llm.backend == READER}


def _reader(workspace: WorkspaceFolder, name: str) -> str:
    names = _readers(workspace)
    if name not in names:
        raise NotFoundError(unknown("model with a card", name, [*names]))
    return MODEL_CARD.read_text(encoding="utf-8")


def _as_json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


CARDS: Mapping[str, CardKind] = {
    "metrics": CardKind(lambda workspace: lists.abouts(workspace, "metrics"), _metric),
    "judges": CardKind(lambda workspace: lists.abouts(workspace, "judges"), _metric),
    "corpora": CardKind(_corpora, _corpus),
    "llms": CardKind(_readers, _reader, "text/markdown"),
}
"""Kind of a card, as ``rallebench list`` names it → its names and cards. Metrics also have cards for other cut-offs."""
