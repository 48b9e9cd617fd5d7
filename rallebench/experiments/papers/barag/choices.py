"""What a published decision is worth: the same questions without and with passages, and which of them the agent read for.

Of every question three runs have a scored answer: without retrieval, with it, and the agent's own. So the agent can be set against a
coin that reads as often, and against the better of the two answers each time.
"""

from __future__ import annotations

from rallebench.core.experiments import Table
from rallebench.engine.statistics import means
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
    by_question: list[dict[Key, AnswerRow]] = [{}, {}, {}]
    for scored, run in zip(by_question, (without, always, agent)):
        for row in run.rows:
            if row.total is not None and row.n_in is not None and row.n_out is not None:
                scored.setdefault((row.title, row.question), row)
    triples = [
        tuple(scored[key] for scored in by_question)
        for key in by_question[2]
        if key in by_question[0] and key in by_question[1]
    ]
    if not triples:
        return None
    cases = [
        BranchedCase(
            own.id, _worth(bare), _worth(read), _tokens(bare), _tokens(read), wants=own.read
        )
        for bare, read, own in triples
    ]
    answers = [own for *_, own in triples]
    worth = means({"agent": list(map(_worth, answers))})["agent"]
    choice = points.chosen(cases)
    spent = [sum(counts) for counts in zip(*map(_tokens, answers))]
    lines = (
        _line("never", points.never(cases)),
        _line("always", points.always(cases)),
        ("agent", f"{choice.share:.0%}", *spent, worth, choice.coin),
        _line("its choice", choice),
        _line("oracle", points.oracle(cases)),
    )
    helped = [case for case in cases if case.read_worth > case.draft_worth]
    rest = [case for case in cases if case.read_worth <= case.draft_worth]
    shares = f" Passages help {len(helped)} of {len(cases)} questions; the agent reads for {_share(helped)} of these and {_share(rest)} of the others."
    return Table(f"{title}: {len(cases)} questions", HEAD, lines, note=NOTE + shares)


def _worth(row: AnswerRow) -> float:
    return (row.total or 0) / 2


def _share(cases: list[BranchedCase]) -> str:
    return f"{sum(bool(case.wants) for case in cases) / len(cases):.0%}" if cases else "none"


def _tokens(row: AnswerRow) -> tuple[int, int]:
    return row.n_in or 0, row.n_out or 0


def _line(name: str, point: CurvePoint) -> tuple[object, ...]:
    return (name, f"{point.share:.0%}", point.n_in, point.n_out, point.quality, point.coin)
