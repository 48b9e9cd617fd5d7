"""The answers of a run, one by one: what was asked and came back at every step, what was read of it, what it was worth. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.types import Episode, Example, Gold, Note, Step, UseTool
from rallebench.engine.cost import Prices, who
from rallebench.gui import views, views_cost
from rallebench.metrics.judges import JUDGED, UNPARSED

COLUMNS = ("#", "question", "answer", "values", "stopped", "s", "tokens", "error")
MOST_ROWS = 2_000
ALL, FAILED, UNSCORED = "all", "failed", "without a value"

Values = Mapping[str, "float | None"]


def filters(episodes: Mapping[str, Episode]) -> list[str]:
    """What a list of answers can be cut down to: those that failed, and every reason to stop that occurs."""
    reasons = sorted(
        {episode.outcome.stop_reason for episode in episodes.values() if episode.outcome}
    )
    return [ALL, FAILED, UNSCORED, *reasons]


def fits(chosen: str, episode: Episode, values: Values) -> bool:
    """Whether an answer belongs to one of ``filters``."""
    if chosen == FAILED:
        return bool(episode.error)
    if chosen == UNSCORED:
        return not episode.error and any(value is None for value in values.values())
    return chosen == ALL or (episode.outcome is not None and episode.outcome.stop_reason == chosen)


def rows(
    examples: Sequence[Example],
    episodes: Mapping[str, Episode],
    values: Mapping[str, Values],
    chosen: str = ALL,
) -> list[list[Any]]:
    """One row per answered question that fits, in the order asked, at most MOST_ROWS."""
    found: list[list[Any]] = []
    for number, example in enumerate(examples, 1):
        episode = episodes.get(example.question.qid)
        own = values.get(example.question.qid, {})
        if episode is not None and fits(chosen, episode, own) and len(found) < MOST_ROWS:
            stopped = episode.outcome.stop_reason if episode.outcome else ""
            found.append(
                [
                    number,
                    _cut(example.question.text),
                    _cut(said(episode)),
                    in_words(own),
                    stopped,
                    *views_cost.question_cells(episode),
                    episode.error,
                ]
            )
    return found


def in_words(values: Values) -> str:
    """Values in a line.

    >>> in_words({"all_rate": 1.0, "truth": 0.25, "judged": None})
    'all_rate 1, truth 0.25, judged not scored'
    """
    return ", ".join(
        f"{name} {'not scored' if value is None else f'{value:.4g}'}"
        for name, value in values.items()
    )


def said(episode: Episode) -> str:
    """The answer; of a judge what was read, or why nothing was."""
    judged = judgement(episode)
    if judged is None:
        return episode.answer
    values = judged.get("values")
    return (
        in_words(values)
        if isinstance(values, Mapping) and values
        else str(judged.get("failure", ""))
    )


def judgement(episode: Episode) -> dict[str, Any] | None:
    """What a judge's episode ended with, as JSON; None for any other."""
    if (
        not episode.outcome
        or episode.outcome.stop_reason not in (JUDGED, UNPARSED)
        or not episode.answer.startswith("{")
    ):
        return None
    try:
        value = json.loads(episode.answer)
    except ValueError:
        return None
    return value if isinstance(value, dict) and {"values", "failure"} & value.keys() else None


def _cut(text: str, most: int = 400) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# one of them


def answer(
    example: Example, episode: Episode, values: Values, told: Mapping[str, str], prices: Prices
) -> str:
    """A question with everything that happened to it; ``told``: metric → its definition."""
    stopped = episode.outcome.stop_reason if episode.outcome else ""
    badges = (
        views.badge(f"stopped: {stopped}", "bad" if stopped == UNPARSED else "") if stopped else ""
    )
    badges += views.badge(example.question.qid) + views.badge(
        f"{len(episode.steps)} step{'s' * (len(episode.steps) != 1)}"
    )
    head = f'<div class="rb-section"><h3>{escape(_cut(example.question.text, 2000))}</h3></div><div class="rb-label">{badges}</div>'
    gold = views.gold_line(example) if example.gold.answers or example.gold.pages else ""
    # To a judge's words the gold answers of the question say nothing.
    marked = (
        Gold() if stopped in (JUDGED, UNPARSED) or "judge" in episode.workflow else example.gold
    )
    steps = "".join(
        step(number, one, marked, prices) for number, one in enumerate(episode.steps, 1)
    )
    return head + gold + _outcome(episode) + _values(values, told) + steps


def _outcome(episode: Episode) -> str:
    if episode.error:
        return views.error(f"Failed: {episode.error}")
    judged = judgement(episode)
    if judged is None:
        if episode.outcome and episode.outcome.stop_reason == UNPARSED:
            return views.error(
                "Nothing could be read from the reply; it is counted as unparsed and not scored."
            )
        return views.text_box(
            "Answer, as it is scored",
            escape(episode.answer) or '<span class="rb-empty">empty</span>',
        )
    each = judged.get("each") or ()
    times = "".join(f"<li>{_judged(one)}</li>" for one in each if isinstance(one, dict))
    return views.text_box("Read from the reply", _judged(judged)) + (
        f'<ol class="rb-list">{times}</ol>' if times else ""
    )


def _judged(value: Mapping[str, Any]) -> str:
    """Values and reason of a judgement, or why nothing could be read."""
    values = value.get("values")
    if not isinstance(values, Mapping) or not values:
        return f"Unparsed: {escape(str(value.get('failure') or 'nothing was read.'))}"
    reason = str(value.get("reason") or "")
    return f"<b>{escape(in_words(values))}</b>" + (f"<br>{escape(reason)}" if reason else "")


def _values(values: Values, told: Mapping[str, str]) -> str:
    badges = "".join(
        views.badge(in_words({name: value}), about=told.get(name, ""))
        for name, value in values.items()
    )
    return f'<div class="rb-label"><span>Values:</span>{badges}</div>' if badges else ""


def step(number: int, one: Step, gold: Gold, prices: Prices) -> str:
    """What was asked at a step and what came back, word for word."""
    kind, target = who(one)
    if isinstance(one.request, Note):
        return _heading(number, "note") + views.text_box(
            "Noted, asked of nobody", escape(one.request.text)
        )
    head = _heading(number, f"{kind} {target}")
    if isinstance(one.request, UseTool):
        arguments = json.dumps(dict(one.request.arguments), ensure_ascii=False, indent=2)
        return (
            head
            + views.text_box("Arguments", escape(arguments))
            + views.response(one, gold, True, prices=prices)
        )
    calls = "\n".join(f"{call.name} {call.arguments}" for call in one.reply.tool_calls)
    called = views.text_box("Tool calls", escape(calls)) if calls else ""
    return (
        head
        + views.step_prompt(one, gold, True)
        + views.response(one, gold, True, prices=prices)
        + called
    )


def _heading(number: int, text: str) -> str:
    return f'<div class="rb-label"><b>Step {number}</b>{views.badge(text, "page")}</div>'
