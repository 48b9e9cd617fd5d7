"""The last stage of ``barag``: what holds a question back, told without a model where that is enough."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rallebench.core.experiments import Row, RowsRequest
from rallebench.core.types import Episode, Outcome
from rallebench.engine.rowfile import RowFile
from rallebench.experiments.builders._barag import asking
from rallebench.experiments.builders._barag import definitions as why
from rallebench.experiments.builders._barag.asking import Checks, mentions_its_text
from rallebench.experiments.builders._barag.stages import (
    BaragPlan,
    article_of,
    brief,
    kept_or,
    unknown_or,
    whole,
)
from rallebench.experiments.builders._near import near_duplicates
from rallebench.experiments.builders._replies import without_request


def checks(plan: BaragPlan, store: RowFile, questions: RowFile) -> RowsRequest:
    """Verdicts on every question, without a model where that is enough."""
    asks = plan.asks(plan.judge, 0.0)
    tests = Checks(
        plan.setting("answerable"),
        plan.setting("closed_book"),
        plan.prompts["answerable"],
        plan.prompts["closed-book"],
        plan.prompts["right"],
    )
    inputs = _to_check(plan, store, questions)

    def flow(row: Row) -> Any:
        return asking.checking(
            asks, tests, row["question"], row["answers"], plan.text(whole(store, row["article"]))
        )

    def read(row: Row, episode: Episode) -> list[Row]:
        return [
            _checked(plan, row, json.loads(episode.answer) if not episode.error else {}, episode)
        ]

    def plain(row: Row) -> list[Row]:
        return [_checked(plan, row, {}, None)]

    def of(row: Row) -> Any:
        return [
            {**row},
            asdict(asks),
            asdict(tests),
            plan.setting("characters"),
            plan.setting("unknown"),
        ]

    if not (tests.answerable or tests.closed_book):
        return RowsRequest("5-checks", "quality checks", lambda: inputs, make=plain, depends_on=of)
    return RowsRequest(
        "5-checks",
        "quality checks",
        lambda: inputs,
        flow=_unless_left_out(flow),
        read=read,
        depends_on=of,
        llms=(plan.judge,),
    )


def _to_check(plan: BaragPlan, store: RowFile, questions: RowFile) -> list[Row]:
    """The questions that are kept, with what can be told of them without a model."""
    shas = {row["id"]: row["sha"] for row in brief(store, store)}
    rows = [
        row
        for row in questions
        if row["keep"] and str(row.get("question", "")).strip() and article_of(row) in shas
    ]
    texts = [(row["id"], row["question"]) for row in rows]
    leaks = (
        {name: mentions_its_text(question) for name, question in texts}
        if plan.setting("leaks")
        else {}
    )
    standing = [(name, question) for name, question in texts if not leaks.get(name)]
    near = near_duplicates(standing, plan.setting("near")) if plan.setting("near") else {}
    return [
        {
            "id": row["id"],
            "article": article_of(row),
            "question": row["question"],
            "answers": list(row.get("answers") or ()),
            "near": near.get(row["id"], ""),
            "leak": leaks.get(row["id"], ""),
            "sha": shas[article_of(row)],
        }
        for row in rows
    ]


def _unless_left_out(flow: Any) -> Any:
    """A question that is left out anyhow is asked of nobody."""

    def ask(row: Row) -> Any:
        if row["near"] or row["leak"]:
            return without_request(Outcome("{}"))
        return flow(row)

    return ask


def _checked(
    plan: BaragPlan, row: Row, verdicts: Mapping[str, Any], episode: Episode | None
) -> Row:
    values = [verdicts[name]["value"] for name in ("answerable", "without") if name in verdicts]
    reasons: Sequence[tuple[Any, str]] = (
        (row["near"], why.NEAR),
        (row["leak"], why.LEAK),
        (verdicts.get("answerable", {}).get("value") is False, why.NOT_ANSWERABLE),
        (verdicts.get("without", {}).get("value") is True, why.ANSWERED_WITHOUT),
    )
    reason = next((text for holds, text in reasons if holds), "")
    failed = episode is not None and bool(episode.error)
    state = kept_or(reason)
    if not reason and (failed or None in values) and episode is not None:
        state = unknown_or(plan, None, "", episode)
    marks = {key: row[key] for key in ("near", "leak") if row[key]}
    return {
        "id": row["id"],
        "article": row["article"],
        "question": row["question"],
        **state,
        **marks,
        **verdicts,
    }
