"""Every aspect as one JSON-able document, its tables and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.analysis.agents import Cell, Told, mean, places_of, systems_of
from rallebench.analysis.agents import aspects as made
from rallebench.analysis.agents import figures as drawn
from rallebench.analysis.agents.errors import CLASSES, ORIGINAL, RIGHT, THRESHOLD, WRONG, breakdowns
from rallebench.analysis.agents.leaderboard import Board, board_of, domain_name
from rallebench.core.errors import UsageError

LONGEST = 300
"""Characters of a text that an example shows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an analysis is asked for beside the runs. ``reference``: of normalisation; ``sizes``: model → billions of parameters."""

    original: bool = False
    reference: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)
    examples: int = 3


@dataclass(frozen=True, slots=True)
class Analysed:
    """``value``: the document. ``tables``: ``{title, columns, rows, percent, note}`` each. ``figures``: name → plotly figure.
    ``tex``: a LaTeX table, '' where there is none."""

    aspect: str
    value: Mapping[str, Any]
    tables: tuple[Mapping[str, Any], ...]
    figures: Mapping[str, Any]
    tex: str = ""
    notes: tuple[str, ...] = ()


def analyse(cells: Sequence[Cell], aspect: str, asked: Asked | None = None) -> Analysed:
    """One aspect of runs. Raises UsageError."""
    if aspect not in ASPECTS:
        raise UsageError(f"There is no aspect {aspect!r}; known: {', '.join(ASPECTS)}.")
    if not cells:
        raise UsageError("No run is named; name one or more runs of agents.")
    return ASPECTS[aspect](cells, asked or Asked())


def notes_of(cells: Sequence[Cell], original: bool = False) -> tuple[str, ...]:
    """What a reader of any number must know: failed and missing questions, tasks that not every system answered."""
    said = [
        f"{cell.run}: {cell.failed} questions failed and are in no figure."
        for cell in cells
        if cell.failed and not original
    ]
    said += [
        f"{cell.run}: {cell.failed} questions failed and count as 0, as in R-Eval."
        for cell in cells
        if cell.failed and original
    ]
    said += [
        f"{cell.run}: {cell.missing} questions are not answered yet."
        for cell in cells
        if cell.missing
    ]
    by_task: dict[str, set[int]] = {}
    for cell in cells:
        by_task.setdefault(cell.task.name, set()).add(len(cell.rows) + cell.failed + cell.missing)
    said += [
        f"{task}: the runs asked different numbers of questions ({', '.join(map(str, sorted(found)))})."
        for task, found in by_task.items()
        if len(found) > 1
    ]
    return tuple(said)


def _table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    note: str = "",
    percent: bool = False,
) -> dict[str, Any]:
    return {
        "title": title,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
        "percent": percent,
        "note": note,
    }


# performance


def performance(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """Scores by task, means and ranks."""
    board = board_of(cells)
    value = {
        "tasks": [{"name": t.name, "environment": t.domain, "level": t.level} for t in board.tasks],
        "systems": [
            {
                "system": system.label,
                "scores": {task.name: board.scores[system][task] for task in board.tasks},
                "means": dict(board.means[system]),
                "ranks": dict(board.ranks[system]),
            }
            for system in board.systems
        ],
        "metrics": [
            {
                "run": c.run,
                "system": c.system.label,
                "task": c.task.name,
                "n": len(c.rows),
                "failed": c.failed,
                **_three(c),
            }
            for c in cells
        ],
    }
    return Analysed(
        "performance", value, tables_of(board), {}, tex_of(board), notes_of(cells, asked.original)
    )


def _three(cell: Cell) -> dict[str, float | None]:
    """R-Eval's reward, EM, and the position match of its appendix."""
    return {
        name: mean([getattr(row, name) for row in cell.rows])
        for name in ("reward", "correct", "position")
    }


def tables_of(board: Board) -> tuple[dict[str, Any], ...]:
    """The scores and their means in percent; the ranks by environment and level."""
    domains = board.domains
    heads = [
        "system",
        *(task.name for task in board.tasks),
        *(f"{domain_name(domain)} mean" for domain in domains),
    ]
    rows = [
        [
            system.label,
            *(board.scores[system][task] for task in board.tasks),
            *(board.means[system][domain] for domain in domains),
        ]
        for system in board.systems
    ]
    ranks = [
        [system.label, *(_rank(board.ranks[system][name]) for name in board.ranked)]
        for system in board.systems
    ]
    rank_heads = [
        "system",
        *(place.label for place in board.places),
        *(domain_name(domain) for domain in domains),
    ]
    note = "Means are over tasks, each of the same weight; a system without one of them has none."
    return (
        _table("F1 (rule for yes and no) by task", heads, rows, note, percent=True),
        _table(
            "Ranks",
            rank_heads,
            ranks,
            "1 is best; of sums over the tasks of a level, equal ones share the mean of their ranks.",
        ),
    )


def _rank(rank: float | None) -> float | None:
    return rank if rank is None or rank % 1 else int(rank)


def tex_of(board: Board) -> str:
    """A LaTeX table: scores ×100 by task with one decimal, the rank after each level and mean; the best in bold."""
    columns: list[tuple[str, list[float | None], str]] = []
    for place in board.places:
        for task in board.tasks:
            if task.place == place:
                columns.append(
                    (task.name, [board.scores[system][task] for system in board.systems], "")
                )
        columns.append(
            ("rank", [board.ranks[system][place.label] for system in board.systems], "rank")
        )
    for domain in board.domains:
        columns.append(
            (domain_name(domain), [board.means[system][domain] for system in board.systems], "")
        )
        columns.append(("rank", [board.ranks[system][domain] for system in board.systems], "rank"))
    lines = [
        r"\begin{tabular}{l" + "r" * len(columns) + "}",
        r"\hline",
        " & ".join(["System", *(_escaped(name) for name, _, _ in columns)]) + r" \\",
        r"\hline",
    ]
    for i, system in enumerate(board.systems):
        cells = [_cell(values[i], values, kind) for _, values, kind in columns]
        lines.append(" & ".join([_escaped(system.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _cell(value: float | None, column: Sequence[float | None], kind: str) -> str:
    if value is None:
        return "--"
    if kind == "rank":
        return f"{value:g}"
    text = f"{100 * value:.1f}"
    return rf"\textbf{{{text}}}" if value == max(v for v in column if v is not None) else text


_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "·": r"$\cdot$",
}


def _escaped(text: str) -> str:
    """Text as LaTeX prints it.

    >>> _escaped("low_freq_ent")
    'low\\\\_freq\\\\_ent'
    """
    return "".join(_TEX.get(character, character) for character in text)


# matching


def matching(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """A radar per workflow."""
    found = made.matching(cells)
    value = {
        "workflows": [
            {
                "workflow": one.workflow,
                "axes": [p.label for p in one.places],
                "models": {llm: list(row) for llm, row in one.values.items()},
            }
            for one in found
        ]
    }
    tables = [
        _table(
            one.workflow,
            ["model", *(p.label for p in one.places)],
            [[llm, *row] for llm, row in one.values.items()],
            "Mean F1 over the tasks of each.",
            True,
        )
        for one in found
    ]
    return Analysed(
        "matching",
        value,
        tuple(tables),
        {one.workflow: drawn.radar(one) for one in found},
        notes=notes_of(cells, asked.original),
    )


# errors


def errors(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """Classes of right and wrong answers, with examples."""
    found = breakdowns(cells, original=asked.original, examples=asked.examples)
    names = ORIGINAL if asked.original else tuple(CLASSES)
    value = {
        "compat": "original" if asked.original else "corrected",
        "classes": {name: CLASSES[name] for name in names},
        "systems": [
            {
                "system": one.system.label,
                "n": one.n,
                "failed": one.failed,
                "unscored": one.unscored,
                "verdicts": one.verdicts,
                "blind": one.blind,
                "percent": {name: round(one.shares[name], 4) for name in names},
                "ACC": round(one.sum(RIGHT), 4),
                "WA": round(one.sum(WRONG), 4),
                "counts": dict(one.counts),
                "stop_reasons": {name: dict(row) for name, row in one.stops.items()},
                "averaged_over": [place.label for place in one.places],
                "examples": {
                    name: [_example(row) for row in rows] for name, rows in one.examples.items()
                },
            }
            for one in found
        ],
    }
    heads = ["system", "ACC", "WA", *names, "n"]
    rows = [
        [
            one.system.label,
            *(
                x / 100
                for x in (one.sum(RIGHT), one.sum(WRONG), *(one.shares[name] for name in names))
            ),
            one.n,
        ]
        for one in found
    ]
    border = f"An answer counts as right from F1 {THRESHOLD} on, R-Eval's border; the class EM is not exact match. "
    note = (
        "The mean over environments and levels. "
        + border
        + "; ".join(f"{name}: {CLASSES[name]}" for name in names)
        + "."
    )
    return Analysed(
        "errors",
        value,
        (_table("Errors", heads, rows, note, True),),
        {one.system.label: drawn.rings(one) for one in found},
        notes=(*notes_of(cells, asked.original), *_error_notes(found, asked.original)),
    )


def _error_notes(found: Sequence[Any], original: bool) -> list[str]:
    if original:
        other = [one.system.label for one in found if abs(one.sum(CLASSES) - 100) > 0.05]
        return [
            f"Counted as R-Eval's code does, out of 100 a task: the shares of {', '.join(other)} are not of its questions."
        ] * bool(other)
    verdicts = sum(one.verdicts for one in found)
    unscored = sum(one.unscored for one in found)
    said = [
        f"Of {verdicts} questions (of all systems together) the gold is a bare verdict (yes, no, SUPPORTS …), for which no observation is evidence: right answers count as AM, wrong ones never as GE."
    ] * bool(verdicts)
    if blind := sum(one.blind for one in found):
        said.append(
            f"In the traces of {blind} questions nothing was observed: the environment was not asked, or a log marks its answers "
            "otherwise than by 'Observation 1: …'. Right ones count as AM, wrong ones never as GE."
        )
    return said + [f"{unscored} questions name no answer and are in no class."] * bool(unscored)


def _example(row: Told) -> dict[str, Any]:
    return {
        "qid": row.qid,
        "question": _short(row.question),
        "gold": [_short(gold) for gold in row.golds],
        "answer": _short(row.answer),
        "reward": row.reward,
        "stop_reason": row.reason,
        "observed": _short(row.observed),
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


# deployment


def deployment(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """F1 against seconds and tokens, by environment."""
    unknown = [
        name for name in asked.sizes if name not in {system.llm for system in systems_of(cells)}
    ]
    if unknown:
        raise UsageError(f"The size of {unknown[0]!r} is given, but no run is of that model.")
    found = made.deployment(cells, asked.sizes)
    points = [
        {
            "system": p.system.label,
            "environment": p.domain,
            "reward": p.reward,
            "seconds": p.seconds,
            "tokens": p.tokens,
            "size": p.size,
            "memory": p.memory,
            "n_timed": p.n,
        }
        for p in found
    ]
    rows = [
        [
            p.system.label,
            domain_name(p.domain),
            None if p.reward is None else 100 * p.reward,
            p.seconds,
            p.tokens,
            p.size,
            p.memory / 1e6 if p.memory else None,
        ]
        for p in found
    ]
    note = f"Seconds that a question's requests took, over at most {made.TIMED} questions drawn at random; size in billions of parameters."
    if all(p.size is None for p in found):
        note += " No model's name tells its size, so a bubble's area is the memory; sizes can be given as MODEL=7."
    domains = dict.fromkeys(p.domain for p in found)
    known = [
        across
        for across in ("seconds", "tokens")
        if any(getattr(p, across) is not None for p in found)
    ]
    figures = {
        f"{domain} {across}": drawn.bubbles(found, domain, across)
        for domain in domains
        for across in known
    }
    table = _table(
        "Deployment",
        ["system", "environment", "F1 (percent)", "seconds", "tokens", "size", "memory (MB)"],
        rows,
        note,
    )
    return Analysed(
        "deployment", {"points": points}, (table,), figures, notes=notes_of(cells, asked.original)
    )


# normalisation


def normalization(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """Every system by a reference."""
    found = made.normalised(cells, asked.reference)
    places = places_of(cells)
    rows = [
        [system.label, *(row.get(place) for place in places)]
        for system, row in found.ratios.items()
    ]
    value = {
        "reference": found.reference.label,
        "ratios": {
            system.label: {place.label: ratio for place, ratio in row.items()}
            for system, row in found.ratios.items()
        },
        "without": [place.label for place in found.without],
    }
    note = f"Mean F1 by that of {found.reference.label}; 1 is the same."
    where = ", ".join(place.label for place in found.without)
    said = (
        (
            f"{found.reference.label} has no score, or 0, on {where}: nothing can be divided by it there; another reference may have.",
        )
        if where
        else ()
    )
    figures = {
        "by workflow": drawn.boxes(found, "workflow"),
        "by model": drawn.boxes(found, "model"),
    }
    table = _table("Normalised", ["system", *(place.label for place in places)], rows, note)
    return Analysed(
        "normalization", value, (table,), figures, notes=(*notes_of(cells, asked.original), *said)
    )


# combination


def combination(cells: Sequence[Cell], asked: Asked) -> Analysed:
    """The best of all systems, question by question."""
    found = made.combination(cells)
    value = {
        "tasks": [
            {
                "task": one.task.name,
                "n": one.n,
                "systems": one.systems,
                "oracle": one.mean,
                "deviation": one.deviation,
                "best": one.best.label if one.best else None,
                "tied": one.tied,
                "best_mean": one.best_mean,
                "best_deviation": one.best_deviation,
            }
            for one in found
        ]
    }
    rows = [
        [
            o.task.name,
            o.systems,
            o.n,
            o.best.label if o.best else f"{o.tied} are equal" if o.tied else None,
            _plus(o.best_mean, o.best_deviation),
            _plus(o.mean, o.deviation),
        ]
        for o in found
    ]
    table = _table(
        "Combination",
        ["task", "systems", "questions", "best single", "its F1", "best of all"],
        rows,
        "F1 ± standard deviation of a question; best of all: the highest of all systems, question by question, over those that all answered.",
    )
    return Analysed(
        "combination",
        value,
        (table,),
        {"combination": drawn.oracle(found)},
        notes=notes_of(cells, asked.original),
    )


def _plus(value: float | None, deviation: float | None) -> str | None:
    return (
        None if value is None or deviation is None else f"{100 * value:.1f} ± {100 * deviation:.1f}"
    )


ASPECTS: Mapping[str, Callable[[Sequence[Cell], Asked], Analysed]] = {
    "performance": performance,
    "matching": matching,
    "errors": errors,
    "deployment": deployment,
    "normalization": normalization,
    "combination": combination,
}
"""R-Eval's word for an analysis → what makes it."""
