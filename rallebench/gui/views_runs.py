"""Runs and reports as HTML and tables. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.baselines import CEILING, COLUMNS, BaselineComparison
from rallebench.engine.score import cost_of
from rallebench.engine.statistics import Mean
from rallebench.engine.store import RunFolder
from rallebench.gui import views_cost
from rallebench.gui.views import badge, duration, empty, error, note, progress_bar
from rallebench.metrics import card
from rallebench.render import costs
from rallebench.render.numbers import independence, no_interval

RUN_COLUMNS = (
    "run",
    "state",
    "questions",
    "failed",
    "EM",
    "F1",
    "KILT-EM",
    "R-precision",
    "Recall@5",
    "s / question",
    "tokens / question",
    "US $",
    "question set",
    "made",
)
_STATES = {
    "done": "good",
    "running": "page",
    "loading": "page",
    "scoring": "page",
    "tracking": "page",
    "failed": "bad",
}


def state_badge(state: str) -> str:
    """A run's state as a badge."""
    return badge(state, _STATES.get(state, ""))


def live(
    name: str, state: Mapping[str, Any], phase: str = "", message: str = "", failure: str = ""
) -> str:
    """What a run is doing now: done/total, rate, time left, means so far."""
    if failure:
        return error(failure)
    done, total = int(state.get("done", 0)), int(state.get("total", 0))
    rate = float(state.get("rate") or 0.0)
    parts = [f"<b>{escape(name)}</b>", state_badge(phase or str(state.get("state", "")))]
    if total:
        parts.append(f"{done} of {total} questions")
    if state.get("errors"):
        parts.append(badge(f"{state['errors']} failed", "bad"))
    if rate and state.get("state") == "running":
        parts += [f"{rate:.1f} questions/s", f"about {duration((total - done) / rate)} left"]
    head = f'<div class="rb-label">{" ".join(f"<span>{p}</span>" for p in parts)}</div>'
    means = "".join(
        badge(f"{card(metric)['label']} {mean:.3f} (n = {n})")
        for metric, (mean, n) in (state.get("means") or {}).items()
    )
    said = message or str(state.get("message") or "")
    bad = state.get("state") == "failed"
    return (
        head
        + progress_bar(done, total)
        + f'<div class="rb-label">{means}</div>'
        + ((error(said) if bad else note(said)) if said else "")
    )


def lines_live(lines: Sequence[tuple[str, Mapping[str, Any], str, str]]) -> str:
    """Where the baselines of a run stand: (name, state, phase, error) of each."""
    return "".join(
        error(f"{name}: {failed}") if failed else _line_live(name, state, phase)
        for name, state, phase, failed in lines
    )


def _line_live(name: str, state: Mapping[str, Any], phase: str) -> str:
    done, total = int(state.get("done", 0)), int(state.get("total", 0))
    parts = [
        f"baseline <b>{escape(name)}</b>",
        state_badge(phase or str(state.get("state", ""))),
    ]
    parts += [f"{done} of {total} questions"] * bool(total)
    return f'<div class="rb-label">{" ".join(f"<span>{part}</span>" for part in parts)}</div>'


def report_table(
    report: Mapping[str, Any] | None,
    cost: Mapping[str, Any] | None = None,
    lines: BaselineComparison | None = None,
) -> str:
    """All metrics with interval, count and definition; then ``cost``, the report's own if none is given.

    ``lines``: the baselines that stand beside the means.
    """
    if not report:
        return empty("No report yet: it is written when the run ends or is stopped.")
    cost = cost or report.get("cost")
    over_all = report.get("over_all", {})
    rows = "".join(
        _metric_row(name, value, over_all.get(name), lines, report.get("clusters"))
        for name, value in report["metrics"].items()
    )
    beside = (
        "".join(f'<th class="num rb-line">{COLUMNS[column]}</th>' for column in lines.columns)
        if lines
        else ""
    )
    table = (
        '<div class="rb-wide"><table class="rb-table"><thead><tr><th>Metric</th><th class="num">Mean</th>'
        f'<th class="num">95 % interval</th><th class="num">n</th>{beside}<th>Definition</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{basis_note(report)}{_lines_note(lines) if lines else ''}"
    )
    spent = views_cost.report(cost) if cost else ""
    return _summary(report, cost) + table + spent + _errors(report)


def whole_report(folder: RunFolder, lines: BaselineComparison | None = None) -> str:
    """The report of a run with its cost section, also of a run that was scored by an earlier version."""
    report = folder.report()
    return report_table(report, cost_of(folder) if report else None, lines)


def basis_note(report: Mapping[str, Any]) -> str:
    """What the intervals of a report count as independent, and whether one article holds most questions."""
    text = independence(report.get("clusters"), report["n_done"])
    return f'<div class="rb-label"><span>{escape(text)}</span></div>' if text else ""


def interval_of(mean: Mean, unit: str, clusters: Mapping[str, Any] | None = None) -> str:
    """The interval of a mean in its unit, or why it has none."""
    if mean.low is None or mean.high is None:
        return no_interval(mean.n, clusters)
    return f"{number(mean.low, unit)} – {number(mean.high, unit)}"


def _lines_note(lines: BaselineComparison) -> str:
    """What the columns of the baselines mean."""
    about = {
        "closed-book": "the same chain with no passages",
        "random": "with passages drawn by chance",
        "oracle": "with the passages of the gold pages, as many as the chain asks for",
        CEILING: "no model: the gold answer wherever a retrieved passage of this run holds one",
    }
    said = "; ".join(f"<b>{COLUMNS[column]}</b>: {about[column]}" for column in lines.columns)
    return f'<div class="rb-label"><span>{said}. Each on the questions that all of them and this run have scored.</span></div>'


def _summary(report: Mapping[str, Any], cost: Mapping[str, Any] | None) -> str:
    per_question = report["seconds_per_question"]
    facts = [
        f"{report['n_done'] - report['n_errors']} of {report['n']} questions answered",
        f"{report['n_errors']} failed",
        f"{per_question:.3f} s per question" if per_question is not None else "",
        f"{report['steps_from_memory']} of {report['steps']} steps from memory"
        if not cost or costs.recorded(cost)
        else "",
        *(
            _spent(cost["total"])
            if cost and costs.recorded(cost)
            else ["cost unknown"]
            if cost
            else ()
        ),
    ]
    badges = "".join(
        badge(fact, "bad" if fact.endswith("failed") and not fact.startswith("0") else "")
        for fact in facts
        if fact
    )
    return f'<div class="rb-label"><b>{escape(str(report["run"]))}</b> on {escape(str(report["dataset"]))} {badges}</div>'


def _spent(total: Mapping[str, Any]) -> list[str]:
    if not total["model_calls"]:
        return ["no model calls"]
    return [
        costs.counted(total),
        costs.speed(total["tokens_per_second"]),
        views_cost.dollars(total),
    ]


def _metric_row(
    name: str,
    value: Mapping[str, Any],
    over_all: float | None = None,
    lines: BaselineComparison | None = None,
    clusters: Mapping[str, Any] | None = None,
) -> str:
    """``over_all``: the figure over all answers at once, which is no mean (corpus BLEU)."""
    about = card(name)
    traps = f" Beware: {about['traps']}" if about.get("traps") else ""
    mean = "not scored" if value["value"] is None else number(value["value"], about.get("unit", ""))
    interval = (
        ""
        if value["value"] is None
        else interval_of(
            Mean(value["value"], value["low"], value["high"], value["n"]),
            about.get("unit", ""),
            clusters,
        )
    )
    if over_all is not None:
        mean += f'<br><span class="rb-basis">over all answers {number(over_all, about.get("unit", ""))}</span>'
    beside = lines.cells.get(name, {}) if lines else {}
    if beside and beside["run"].value is not None and beside["run"].n != value["n"]:
        n = beside["run"].n
        mean += f'<br><span class="rb-basis">{number(beside["run"].value, about.get("unit", ""))} on the {n} compared</span>'
    columns = (
        "".join(
            f'<td class="num rb-line">{_line_cell(beside.get(column), about.get("unit", ""))}</td>'
            for column in lines.columns
        )
        if lines
        else ""
    )
    return (
        f'<tr title="{escape(traps.strip(), quote=True)}"><td><b>{escape(about["label"])}</b><br><code>{escape(name)}</code></td>'
        f'<td class="num">{mean}</td><td class="num">{interval}</td><td class="num">{value["n"]}</td>{columns}'
        f'<td class="definition">{escape(about["definition"])}</td></tr>'
    )


def _line_cell(mean: Mean | None, unit: str) -> str:
    if mean is None or mean.value is None:
        return "–"
    told = f"{interval_of(mean, unit)}, n = {mean.n}"
    return f'<span title="{told}">{number(mean.value, unit)}</span>'


_DIGITS = {"seconds": 2, "tokens": 1, "characters": 1, "words": 1, "tokens/s": 1}


def number(value: float, unit: str) -> str:
    """A metric's value in its unit."""
    return f"{value:.{_DIGITS.get(unit, 4)}f}"


def _errors(report: Mapping[str, Any]) -> str:
    return "".join(error(f"{count}× {message}") for message, count in report["errors"].items())


def run_rows(runs: Sequence[RunFolder]) -> list[list[Any]]:
    """One row per run for the Runs table."""
    return [_run_row(run) for run in runs]


def _run_row(run: RunFolder) -> list[Any]:
    report, state = run.report() or {}, run.state()
    metrics = report.get("metrics", {})

    def shown(name: str) -> str:
        value = metrics.get(name, {}).get("value")
        return "" if value is None else f"{value:.4f}"

    seconds = report.get("seconds_per_question")
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime((run.path / "run.json").stat().st_mtime))
    return [
        run.name,
        state["state"],
        f"{state['done']} / {state['total']}",
        state["errors"],
        shown("em"),
        shown("f1"),
        shown("KILT-em"),
        shown("Rprec"),
        shown("recall@5"),
        ("unknown" if report else "") if seconds is None else f"{seconds:.3f}",
        *views_cost.run_cells(report.get("cost")),
        run.spec()["spec"]["dataset"],
        made,
    ]
