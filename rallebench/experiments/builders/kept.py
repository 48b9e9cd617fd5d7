"""Question sets that are being made or were made in a workspace, for whoever looks at them later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.core.files import read_json
from rallebench.core.folders import check_name
from rallebench.experiments.builders import FOLDER, Order
from rallebench.experiments.builders._counts import counts_of
from rallebench.experiments.builders._files import CARD, REPORT
from rallebench.experiments.builders.rows import Row, Rows
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class Kept:
    """A making as its folder has it. ``stages``: label → counts, of what the files hold now; ``report`` None: not ended yet."""

    maker: str
    order: Order
    stages: Mapping[str, Mapping[str, Any]]
    report: Mapping[str, Any] | None


def kept(workspace: Workspace) -> list[str]:
    """The names, the one that was worked on last first."""
    cards = [
        path
        for path in (workspace.path / FOLDER).glob(f"*/{CARD}")
        if not path.parent.name.startswith(".")
    ]
    return [
        path.parent.name
        for path in sorted(cards, key=lambda path: (-path.stat().st_mtime, path.parent.name))
    ]


def order_of(workspace: Workspace, name: str) -> tuple[str, Order]:
    """(maker, order) of a making, to continue it as it was asked for last. Raises NotFoundError, BadFileError."""
    path = workspace.path / FOLDER / check_name("question set", name) / CARD
    if not path.exists():
        raise NotFoundError(f"No question set {name!r} is being made in {workspace.path / FOLDER}.")
    try:
        card = read_json(path)
        order = Order(
            workspace,
            name,
            dict(card["settings"]),
            str(card["articles"]),
            str(card["llm"]),
            card["limit"],
        )
        return str(card["maker"]), order
    except (LookupError, TypeError, ValueError):
        raise NotFoundError(
            f"{path} was changed by another program; start it again under another name."
        ) from None


def opened(workspace: Workspace, name: str) -> Kept:
    """What there is of a making. Raises NotFoundError, BadFileError."""
    maker, order = order_of(workspace, name)
    card = read_json(order.folder / CARD)
    stages = {}
    for path in stage_files(order.folder):
        rows = _settled(path)
        rows.told = ((card.get("read") or {}).get(path.stem) or {}).get("told") or {}
        stages[path.stem] = counts_of(rows)
    path = order.folder / REPORT
    return Kept(maker, order, stages, read_json(path) if path.exists() else None)


def stage_files(folder: Path) -> list[Path]:
    """The stages' files, in order."""
    return sorted(path for path in folder.glob("[0-9]*-*.jsonl"))


def first_rows(
    workspace: Workspace, name: str, stage: str, shown: str, most: int = 8
) -> Iterator[Row]:
    """The first rows of a stage; ``shown``: ``all``, ``kept``, ``left out`` or ``unknown``. Raises RalleError."""
    folder = order_of(workspace, name)[1].folder
    path = folder / f"{stage}.jsonl"
    if path not in stage_files(folder):
        raise NotFoundError(f"{name!r} has no stage {stage!r}.")
    found = 0
    for row in _settled(path):
        is_unknown = bool(row.get("unknown") or row.get("error"))
        if shown == "all" or (
            is_unknown if shown == "unknown" else row["keep"] == (shown == "kept")
        ):
            yield row
            found += 1
            if found == most:
                return


def _settled(path: Path) -> Rows:
    rows = Rows(path)
    rows.settle_all()
    return rows
