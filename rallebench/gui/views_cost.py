"""Costs as HTML and as lines of text: of a step, a question, a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.types import Episode, Generate, Step
from rallebench.engine.cost import Prices, total
from rallebench.gui.views import note
from rallebench.metrics import card
from rallebench.metrics.cost import first_token_of
from rallebench.metrics.recorded import IMPORTED
from rallebench.render import costs
from rallebench.render.numbers import NOT_COUNTED, UNKNOWN, text

MONEY = "US dollars: prompt and completion tokens times the model's prices per million tokens, as recorded with the run."

_TOTAL_COLUMNS = (
    ("questions", "questions", ""),
    ("model_calls", "model calls", "model_calls"),
    ("retrievals", "retrievals", "retrievals"),
    ("seconds", "seconds", "seconds"),
    ("retrieval_seconds", "retrieval s", "retrieval_seconds"),
    ("generation_seconds", "generation s", "generation_seconds"),
    ("prompt_tokens", "prompt tokens", "prompt_tokens"),
    ("completion_tokens", "completion tokens", "completion_tokens"),
    ("tokens_per_second", "tokens/s", "tokens_per_second"),
    ("usd", "US $", "usd"),
)
"""Key of a total, heading, whose definition is its tooltip."""

_KINDS = {"retrieve": "Retriever", "generate": "LLM", "identity": "Identity", "tool": "Tool"}


def definition(name: str) -> str:
    """The definition of a quantity and what to beware of; '' for a name without one."""
    if name == "usd":
        return MONEY
    if not name:
        return ""
    about = card(name)
    return f"{about['definition']} {about['traps']}".strip()


# ── a question ───────────────────────────────────────────────────────────────


def question_line(steps: Sequence[Step], prices: Prices) -> str:
    """What a question cost, in a line: time, tokens, speed, dollars."""
    spent = total(steps, prices)
    parts = [text(spent["seconds"], "seconds", UNKNOWN)]
    if spent["model_calls"]:
        parts += [
            costs.counted(spent),
            costs.speed(spent["tokens_per_second"]),
            dollars(spent),
        ]
    return ", ".join(filter(None, parts))


def dollars(spent: Mapping[str, Any]) -> str:
    """The US dollars of a total; where they are not known, the known part and that there is more.

    >>> dollars({"usd": 0.5}), dollars({"usd": None, "usd_known": 0.25}), dollars({"usd": None, "usd_known": 0.0})
    ('$0.50', '$0.25 + unknown', '$ unknown')
    """
    if spent["usd"] is not None:
        return text(spent["usd"], "usd")
    return f"{text(spent['usd_known'], 'usd')} + unknown" if spent["usd_known"] else "$ unknown"


def question_remark(steps: Sequence[Step]) -> str:
    """When the first token of the answer came, and what came from memory, so that this time cost nothing."""
    calls = [step for step in steps if isinstance(step.request, Generate)]
    first = first_token_of(calls[-1]) if calls else None
    cached = sum(step.cached for step in steps)
    parts = [f"first token after {text(first, 'seconds')}"] if first is not None else []
    parts += (
        [f"{cached} of {len(steps)} steps from memory (cost of the first time)"] if cached else []
    )
    return ", ".join(parts)


def steps_table(steps: Sequence[Step], prices: Prices) -> str:
    """A question's cost step by step, the sum last."""
    columns = [column for column in _TOTAL_COLUMNS if column[0] != "questions"]
    rows = [
        _row(
            f"{number}",
            "from memory" if step.cached else "",
            _total_cells(total([step], prices), columns),
        )
        for number, step in enumerate(steps, 1)
    ]
    rows.append(_row("all", "", _total_cells(total(steps, prices), columns), bold=True))
    return _table("action", columns, rows)


# ── cells of other tables ────────────────────────────────────────────────────


def run_cells(cost: Mapping[str, Any] | None) -> list[str]:
    """Tokens per question and dollars in all; '' where a report is of an earlier version."""
    if not cost:
        return ["", ""]
    if not costs.recorded(cost):
        return [UNKNOWN, UNKNOWN]
    if not cost["total"]["model_calls"]:
        return ["–", "–"]
    read, written = (
        cost["per_question"][name]["mean"] for name in ("prompt_tokens", "completion_tokens")
    )
    return [_pair(read, written), dollars(cost["total"]).replace("$ unknown", UNKNOWN)]


def question_cells(episode: Episode) -> list[str]:
    """Seconds and tokens of a question, as when it was really asked."""
    if episode.workflow == IMPORTED:
        return [UNKNOWN, UNKNOWN]
    spent = total(episode.steps, {}, failed_seconds=episode.failed_seconds)
    if not spent["model_calls"]:
        return [text(spent["seconds"], "quantity"), "–"]
    some = " *" if spent["calls_not_counted"] and spent["prompt_tokens"] is not None else ""
    return [
        text(spent["seconds"], "quantity"),
        _pair(spent["prompt_tokens"], spent["completion_tokens"]) + some,
    ]


def _pair(read: float | None, written: float | None) -> str:
    if read is None and written is None:
        return NOT_COUNTED
    return costs.tokens(read, written).removesuffix(" tokens")


# ── a run ────────────────────────────────────────────────────────────────────


def report(cost: Mapping[str, Any]) -> str:
    """The cost section of a run's report: in all, per question, per action, and what is not known."""
    if not cost["total"]["questions"]:
        return ""
    if not costs.recorded(cost):
        return _heading("Cost: unknown") + note(
            "The predictions were imported; they do not say what they cost."
        )
    return (
        _heading("Cost in all")
        + _totals(cost)
        + _remarks(cost)
        + _heading(
            f"Cost per answered question (n = {cost['answered']['questions']}), as when it was really asked"
        )
        + _per_question(cost["per_question"])
        + _heading("Cost per action, as when it was really asked")
        + _per_action(cost["per_action"])
    )


def _heading(words: str) -> str:
    return f'<div class="rb-label rb-cost"><b>{escape(words)}</b></div>'


def _totals(cost: Mapping[str, Any]) -> str:
    rows = [
        _row(label, about, _total_cells(cost[key], _TOTAL_COLUMNS))
        for key, label, about in costs.TOTALS
        if key != "failed" or cost[key]["questions"]
    ]
    return _table("", _TOTAL_COLUMNS, rows)


def _total_cells(spent: Mapping[str, Any], columns: Sequence[tuple[str, str, str]]) -> list[str]:
    return [_total_cell(key, spent) for key, _, _ in columns]


def _total_cell(key: str, spent: Mapping[str, Any]) -> str:
    value = spent[key]
    calls = spent["model_calls"]
    if key in ("prompt_tokens", "completion_tokens"):
        some = "*" if value is not None and spent["calls_not_counted"] else ""
        return text(value, "count", NOT_COUNTED) + some if calls else "–"
    if key == "usd":
        return dollars(spent).replace("$ unknown", UNKNOWN) if calls else "–"
    if key == "tokens_per_second" and value is None:
        return "–"
    return text(value, "count" if isinstance(value, int) else "quantity")


def _remarks(cost: Mapping[str, Any]) -> str:
    spent = cost["total"]
    said = []
    if uncounted := costs.uncounted(spent):
        said.append(
            f"{'* ' if spent['prompt_tokens'] else ''}Tokens not counted by the backend: {uncounted}."
        )
    if spent["usd_unknown_for"]:
        said.append(f"US dollars {costs.price(spent)}.")
    said.append(costs.left_out(cost))
    return "".join(note(sentence) for sentence in said if sentence)


def _per_question(spreads: Mapping[str, Any]) -> str:
    rows = []
    for name, (label, _) in costs.QUANTITIES.items():
        cells = [costs.cell(name, spreads[name][key]) for key in ("mean", "median", "p95")]
        rows.append(_row(label, definition(name), [*cells, text(spreads[name]["n"], "count")]))
    columns = (("", "mean", ""), ("", "median", ""), ("", "95th percentile", ""), ("", "n", ""))
    return _table("per question", columns, rows)


_ACTION_COLUMNS = (
    ("seconds", "mean", "seconds, mean", "seconds"),
    ("seconds", "median", "median", "seconds"),
    ("seconds", "p95", "95th percentile", "seconds"),
    ("first_token_seconds", "median", "s to first token, median", "first_token_seconds"),
    ("first_token_seconds", "p95", "95th percentile", "first_token_seconds"),
    ("prompt_tokens", "mean", "prompt tokens, mean", "prompt_tokens"),
    ("completion_tokens", "mean", "completion tokens, mean", "completion_tokens"),
    ("tokens_per_second", "mean", "tokens/s, mean", "tokens_per_second"),
    ("usd", "mean", "US $, mean", "usd"),
)


def _per_action(actions: Sequence[Mapping[str, Any]]) -> str:
    columns = [("", "n", ""), ("", "from memory", "")]
    columns += [(name, heading, about) for name, _, heading, about in _ACTION_COLUMNS]
    rows = []
    for one in actions:
        label = f"{one['action']} · {_KINDS.get(one['kind'], one['kind'])} {one['target']}".strip()
        cells = [text(one["seconds"]["n"], "count"), text(one["cached"], "count")]
        cells += [_spread_cell(one, name, key) for name, key, _, _ in _ACTION_COLUMNS]
        rows.append(_row(label, "", cells))
    return _table("action", columns, rows)


def _spread_cell(one: Mapping[str, Any], name: str, key: str) -> str:
    """One number of an action; with its own n where that is not the action's."""
    if name not in one:
        return "–"
    n = one[name]["n"]
    some = f" (n = {n})" if 0 < n < one["seconds"]["n"] else ""
    return costs.cell(name, one[name][key]) + some


def _table(first: str, columns: Sequence[tuple[str, str, str]], rows: Sequence[str]) -> str:
    headings = "".join(
        f'<th class="num" title="{escape(definition(about), quote=True)}">{escape(heading)}</th>'
        for _, heading, about in columns
    )
    return (
        f'<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead><tr><th>{escape(first)}</th>{headings}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(label: str, about: str, cells: Sequence[str], bold: bool = False) -> str:
    shown = f"<b>{escape(label)}</b>" if bold else escape(label)
    numbers = "".join(f'<td class="num">{escape(cell)}</td>' for cell in cells)
    return f'<tr><td title="{escape(about, quote=True)}">{shown}</td>{numbers}</tr>'
