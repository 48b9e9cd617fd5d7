"""The files of a making beside its stages: what it was asked for, and what it wrote, which nobody else's replaces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, MismatchError, UsageError
from rallebench.core.files import read_json, sha256_file, writing
from rallebench.experiments.builders import Order

CARD, REPORT = "making.json", "report.json"
FORMAT = "rallebench-making/1"
UNFINISHED = "unfinished"


def card_of(order: Order, maker: str) -> dict[str, Any]:
    """``making.json`` as it is to be. MismatchError if another set of that name is being made there."""
    path = order.folder / CARD
    place = Path(order.articles).expanduser()
    articles = str(place.resolve()) if order.articles and place.exists() else order.articles
    card = {
        "format": FORMAT,
        "maker": maker,
        "articles": articles,
        "llm": order.llm,
        "limit": order.limit,
        "settings": dict(order.settings),
    }
    if not path.exists():
        return {**card, "read": {}, "writing": []}
    there = read_json(path)
    if not isinstance(there, dict) or there.get("format") != FORMAT:
        raise BadFileError(
            f"{path} was changed by another program; move {order.folder} away or choose another name."
        )
    for what in ("maker", "articles"):
        if there.get(what) != card[what]:
            raise MismatchError(
                f"{order.name!r} is being made with the {what} {there.get(what)!r}, not {card[what]!r}; choose another name."
            )
    return {**card, "read": there.get("read") or {}, "writing": there.get("writing") or []}


def written(order: Order) -> dict[str, str]:
    """File → sha256 of what the last making wrote, or UNFINISHED of one that was being written when it ended."""
    path, card = order.folder / REPORT, order.folder / CARD
    report = read_json(path) if path.exists() else {}
    files = report.get("sha256") if isinstance(report, dict) else None
    begun = read_json(card).get("writing") or [] if card.exists() else []
    return {**(files if isinstance(files, dict) else {}), **dict.fromkeys(begun, UNFINISHED)}


def refuse_foreign(order: Order) -> None:
    """UsageError if the question set of that name is somebody else's, before any model is asked."""
    target = question_file(order)
    if order.workspace.dataset_paths().get(order.name, target) != target:
        raise UsageError(f"A question set {order.name!r} exists already; choose another name.")
    refuse_changed([target], written(order))


def refuse_changed(paths: Iterable[Path], made: Mapping[str, str]) -> None:
    """Raise UsageError for a file that is there and is not as it was made (``made``: path to sha256)."""
    for path in paths:
        if path.exists() and made.get(str(path)) not in (UNFINISHED, sha256_file(path)):
            ours = (
                "was changed since it was made"
                if str(path) in made
                else "exists already and was not made here"
            )
            raise UsageError(f"{path} {ours}; move it away, or choose another name.")


def question_file(order: Order) -> Path:
    """Where the made question set lies in the workspace."""
    return order.workspace.path / "datasets" / f"{order.name}.jsonl"


def write(path: Path, pieces: Iterable[str]) -> str:
    """Write a file, whole or not at all; its sha256."""
    total = hashlib.sha256()
    with writing(path) as handle:
        for piece in pieces:
            data = piece.encode("utf-8", "backslashreplace")
            total.update(data)
            handle.write(data)
    return total.hexdigest()
