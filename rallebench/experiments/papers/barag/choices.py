"""What a published decision is worth: the same questions without and with passages, and which of them the agent read for.

Of every question three runs have a scored answer: without retrieval, with it, and the agent's own. So the agent can be set against a
coin that reads as often, and against the better of the two answers each time.
"""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.core.experiments import Table
from rallebench.engine.statistics import Mean, means
from rallebench.experiments.papers.barag import points
from rallebench.experiments.papers.barag.points import BranchedCase, CurvePoint
from rallebench.experiments.papers.barag.runs import AnswerRow, Run

Key = tuple[str, str]
HEAD = ("Way", "Retrieved", "Input tokens", "Output tokens", "Quality", "Coin")
NOTE = (
    "Quality: mean of truthfulness and relevance. Coin: reading as many questions, chosen at random. Its choice: these two answers, "
    "chosen as the agent did, without the price of choosing."
)


def choice_table(title: str, without: Run, always: Run, agent: Run) -> Table | None:
    """Never, always, the agent, its choice alone, and the better answer each time; None if no question is in all three."""
    rows = [_scored(run) for run in (without, always, agent)]
    shared = [key for key in rows[2] if key in rows[0] and key in rows[1]]
    cases = [_case(*(of_run[key] for of_run in rows)) for key in shared]
    if not cases:
        return None
    own = [rows[2][key] for key in shared]
    worth = means({"agent": [_worth(row) for row in own]})["agent"]
    choice = points.chosen(cases)
    lines = [_line("never", points.never(cases)), _line("always", points.always(cases))]
    spent = sum(row.n_in or 0 for row in own), sum(row.n_out or 0 for row in own)
    lines.append(_cells("agent", choice.share, spent, worth, choice.coin))
    lines += [_line("its choice", choice), _line("oracle", points.oracle(cases))]
    helped = [case for case in cases if case.read_worth > case.draft_worth]
    rest = [case for case in cases if case.read_worth <= case.draft_worth]
    shares = f" Passages help {len(helped)} of {len(cases)} questions; the agent reads for {_share(helped)} of these and {_share(rest)} of the others."
    return Table(f"{title}: {len(cases)} questions", HEAD, tuple(lines), note=NOTE + shares)


def _scored(run: Run) -> Mapping[Key, AnswerRow]:
    scored: dict[Key, AnswerRow] = {}
    for row in run.rows:
        if row.total is not None and row.n_in is not None and row.n_out is not None:
            scored.setdefault((row.title, row.question), row)
    return scored


def _case(without: AnswerRow, always: AnswerRow, agent: AnswerRow) -> BranchedCase:
    tokens = [(row.n_in or 0, row.n_out or 0) for row in (without, always)]
    return BranchedCase(
        agent.id, _worth(without), _worth(always), tokens[0], tokens[1], wants=agent.read
    )


def _worth(row: AnswerRow) -> float:
    return (row.total or 0) / 2


def _share(cases: list[BranchedCase]) -> str:
    return f"{sum(bool(case.wants) for case in cases) / len(cases):.0%}" if cases else "none"


def _line(name: str, point: CurvePoint) -> tuple[object, ...]:
    return _cells(name, point.share, (point.n_in, point.n_out), point.quality, point.coin)


def _cells(
    name: str, share: float, tokens: tuple[int, int], quality: Mean, coin: float
) -> tuple[object, ...]:
    return (name, f"{share:.0%}", *tokens, quality, coin)
