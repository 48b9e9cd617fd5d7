"""One run: tiles, where its questions were lost, the questions beside their steps; metrics, cost and settings second."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import independence
from rallebench.core.types import Generate, Retrieve
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import (
    attributes,
    button,
    chips,
    crumb,
    defs,
    e,
    empty,
    fold,
    mark,
    menu,
    number,
    percent,
    problem,
    rows,
    segments,
    warning,
    waterfall_bar,
    window,
)
from rallebench.gui.places._runs_list import STATES, delete_button, running, when
from rallebench.gui.places._runs_more import agents
from rallebench.gui.places._steps import gist, marked, output, passages, price, seconds
from rallebench.render import numbers
from rallebench.services import run_list, run_views
from rallebench.services.jobs import Job
from rallebench.services.run_questions import (
    counts,
    filtered,
    lost_parts,
    opened,
    questions,
    read_stages,
    stages_known,
)
from rallebench.services.run_views import RunFolder

FILTERS = (
    ("", "All"),
    ("wrong", "Wrong"),
    ("lost", "Not retrieved"),
    ("format", "Format"),
    ("failed", "Failed"),
    ("none", "No verdict yet"),
    ("right", "Right"),
)
PARTS = (("questions", "Questions"), ("metrics", "Metrics"), ("cost", "Cost"), ("config", "Config"))


def register(page: Page) -> None:
    """Add the view."""
    page.view("runs/run", open_run)
    page.rows("run-questions", question_rows)
    for name, handler in (
        ("question", pick),
        ("only", choose),
        ("words", choose),
        ("stages", stages),
        ("live", live),
        ("resume", resume),
        ("use", use),
        ("begun", begun),
    ):
        page.action(f"runs.{name}", handler)


def folder(page: Page, event: Event) -> RunFolder:
    """The run that the event or the address names. Raises UsageError."""
    name = event.text("run") or event.query.get("id", "")
    if not name:
        raise UsageError("The address names no run; choose one of the list.")
    return page.workbench.runs.open(name)


def open_run(page: Page, event: Event) -> Patch:
    """The run, with the filter and the question of the address."""
    name = event.query.get("id", "")
    job = page.workbench.jobs.get("run", name)
    if job is not None and not job.done and page.workbench.runs.folder_of(job) is None:
        return {"#v-runs-run": starting(page, job), "title": name}
    run = folder(page, event)
    row = run_list.row_of(page.workbench, run.name)
    part = event.query.get("part", "questions")
    head = heading(page, row, part)
    inside = {"metrics": metrics, "cost": cost, "config": config}.get(part)
    body = inside(page, run) if inside else questions_part(page, run, event.query)
    return {
        "#v-runs-run": f'<div class="wrap-page wide" data-problems><div id="run-head">{head}</div>{body}</div>',
        "title": row.title,
    }


def starting(page: Page, job: Job) -> str:
    """A run whose index and models are being made ready."""
    head = crumb("Runs", "#/runs/list", job.name, "starting")
    follow = attributes(follow="*", do="runs.begun", run=job.name)
    return f'<div class="wrap-page wide">{head}<div{follow} data-on="none">{running(page, job)}</div></div>'


def begun(page: Page, event: Event) -> Patch:
    """The run once it is there."""
    return {"go": f"#/runs/run?id={event.text('run')}"}


def heading(page: Page, row: run_list.RunRow, part: str) -> str:
    """Name, what it is about, what can be done with it."""
    state = STATES.get(row.state, row.state)
    counted = (
        f"{row.done:,} of {row.total:,} questions"
        if row.done != row.total
        else f"{row.total:,} questions"
    )
    about = " · ".join(filter(None, [f"on {row.dataset}", counted, when(row.created), state]))
    more = (
        button("Resume", "runs.resume", run=row.name)
        if row.state not in ("done", "running", "scoring") and not row.problem
        else ""
    )
    use_button = (
        button("Open in Build", "runs.use", kind="primary", run=row.name) if row.chain else ""
    )
    base = f"#/runs/run?id={row.name}"
    parts = segments(
        [(base if key == "questions" else f"{base}&part={key}", label) for key, label in PARTS],
        base if part == "questions" else f"{base}&part={part}",
        "Parts of the run",
    )
    others = [
        r for r in run_list.rows(page.workbench) if r.name != row.name and r.dataset == row.dataset
    ][:30]
    beside = ""
    if row.chain and row.state == "done":
        beside = f'<a class="button" href="#/experiments/list?run={quote(row.name)}">Baselines</a>'
    if others:
        links = "".join(
            f'<a href="#/runs/compare?a={e(r.name)}&b={e(row.name)}">{e(r.title)} · {e(when(r.created))}</a>'
            for r in others
        )
        beside += f'<details class="menu wide-menu"><summary class="button">Compare with …</summary><div>{links}</div></details>'
    rest = menu(
        button("Rename", "runs.rename", id=row.name),
        button("Export", "runs.export", run=row.name),
        button("Open in MLflow", "runs.mlflow", run=row.name) if row.state == "done" else "",
        delete_button(row),
        label=f"More for {row.title}",
    )
    return (
        crumb(
            "Runs",
            "#/runs/list",
            row.title,
            about,
            buttons=f"{more}{beside}{use_button}{rest}",
        )
        + f'<div class="row">{parts}</div>'
    )


def tiles(page: Page, run: RunFolder, report: Mapping[str, Any]) -> str:
    """Six figures."""
    boxes = ""
    for tile in run_views.tiles(report):
        n = tile.mean.get("n", 0)
        right = (
            f"{round((tile.mean.get('value') or 0) * n):,} of {n:,} right"
            if tile.label == "EM"
            else tile.about[:60]
        )
        boxes += f'<div title="{e(tile.about)}"><span>{e(tile.label)}</span><b>{percent(tile.mean, share=tile.share)}</b><small>{e(right)}</small></div>'
    mean, total = run_views.seconds_of(report), (report.get("cost") or {}).get("total") or {}
    if mean:
        half = (
            f" <small>± {(mean['high'] - mean['low']) / 2:.2f}</small>"
            if mean.get("low") is not None and mean["high"] - mean["low"] >= 0.01
            else ""
        )
        whole = numbers.text(report.get("seconds") or 0, "duration")
        boxes += f"<div><span>Time a question</span><b>{number(mean['value'], 2, 's')}{half}</b><small>{whole} in all</small></div>"
    usd = total.get("usd")
    unpriced = run_views.is_unpriced(page.workbench, list(report["cost"].get("prices", {})))
    money = numbers.text(usd, "usd") if usd else "unknown" if unpriced else "none"
    each = f"{numbers.text(usd / max(1, total['questions']), 'usd')} a question" if usd else ""
    why = each or (
        "set the prices of the model in Models" if unpriced else "the model runs on this machine"
    )
    boxes += f"<div><span>Price</span><b>{money}</b><small>{e(why)}</small></div>"
    return f'<div class="tiles">{boxes}</div>'


def questions_part(page: Page, run: RunFolder, query: Mapping[str, str]) -> str:
    """Tiles, the bar, the list beside one question."""
    job = page.workbench.jobs.get("run", run.name)
    live_part = ""
    if job:
        follow = attributes(follow=f"run {run.name}", do="runs.live", run=run.name)
        inside = "" if job.done else running(page, job)
        live_part = f'<div id="run-live"{follow}>{inside}</div>'
    return f'{live_part}<div id="run-top">{top(page, run)}</div><div class="cols two runcols"><div class="leftlist" id="run-list" data-form>{listed(page, run, query)}</div><div class="detail" id="run-question" data-problems>{detail(page, run, query.get("q", ""))}</div></div>'


def top(page: Page, run: RunFolder) -> str:
    """Tiles and the bar where questions were lost."""
    report = run.report()
    if report is None:
        return '<p class="note">The run is not scored yet.</p>' + bar(page, run)
    problems = "".join(warning(text) for text in report.get("warnings", []))
    return tiles(page, run, report) + bar(page, run) + problems


def bar(page: Page, run: RunFolder) -> str:
    """Where questions were lost; read from the steps when it is first seen."""
    shown = questions(page.workbench, run)
    parts = lost_parts(shown)
    lazy = (
        ""
        if stages_known(page.workbench, run) or not shown
        else f'<span data-lazy data-do="runs.stages" data-run="{e(run.name)}" class="note">reading where questions were lost …</span>'
    )
    words = "".join(f"<span>{e(text)}</span>" for _, text, _ in parts)
    return f'{waterfall_bar(parts, tall=True, address=f"#/runs/run?id={run.name}&only={{verdict}}")}<div class="legend">{words}{lazy}</div>'


def listed(page: Page, run: RunFolder, query: Mapping[str, str]) -> str:
    """Chips with counts, a filter by words, and the list."""
    name, only, words = e(run.name), query.get("only", ""), e(query.get("words", ""))
    field = f'<input name="words" value="{words}" placeholder="Filter by words" aria-label="Filter by words" data-filter data-do="runs.words" data-on="input" data-run="{name}" data-only="{e(only)}" id="run-words">'
    return f'<div id="run-chips">{verdicts(page, run, only)}</div>{field}<div id="run-rows">{listing(page, run, query)}</div>'


def verdicts(page: Page, run: RunFolder, only: str) -> str:
    """Chips that filter by verdict."""
    count = counts(questions(page.workbench, run))
    items = [(key, label, count.get(key, 0)) for key, label in FILTERS if not key or count.get(key)]
    return chips(items, only, "runs.only", run=run.name)


def listing(page: Page, run: RunFolder, query: Mapping[str, str]) -> str:
    """The questions that fit the filter."""
    only, words = query.get("only", ""), query.get("words", "")
    shown = questions(page.workbench, run)
    fitting = filtered(shown, only, words)
    if not fitting:
        return '<p class="note">No question fits the filter.</p>'
    at = next((i for i, row in enumerate(fitting) if row.qid == query.get("q", "")), -1)
    known = stages_known(page.workbench, run)
    key = {"run": run.name, "only": only, "words": words, "n": len(shown), "known": known}
    return window("run-questions", key, len(fitting), "runs.question", at=at, row=66)


def question_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """Rows of the list."""
    run = page.workbench.runs.open(key["run"])
    shown = filtered(questions(page.workbench, run), key["only"], key["words"])[
        start : start + count
    ]
    return [
        (
            row.qid,
            f'{mark(row.kind)}<span><em dir="auto">{e(row.text[:240])}</em><small dir="auto">{e(row.answer[:120]) or "–"} <s>gold</s> {e(row.gold[:80])}</small></span>',
        )
        for row in shown
    ]


def detail(page: Page, run: RunFolder, qid: str) -> str:
    """One question: its answer over the gold, and every step as it was asked and answered."""
    if not qid:
        return empty("Choose a question: its steps appear here. J and K move through the list.")
    try:
        example, episode = opened(run, qid)
    except RalleError as error:
        return problem(error)
    gold, prices = example.gold, page.workbench.models.prices()
    row = next((r for r in questions(page.workbench, run) if r.qid == qid), None)
    answer = run_views.answered(example, episode)
    steps = ""
    for index, step in enumerate(episode.steps if episode else (), 1):
        inside = (
            passages(step.reply.hits, gold, step.request.k, answer)
            if isinstance(step.request, Retrieve)
            else output(step, gold, None, prices)
        )
        name = {
            "Retrieve": f"Retrieve · {getattr(step.request, 'retriever', '')} · k {getattr(step.request, 'k', '')}",
            "Generate": f"Generate · {getattr(step.request, 'llm', '')}",
        }.get(type(step.request).__name__, "Tool" if not hasattr(step.request, "text") else "Note")
        steps += f'<details class="fold" id="step-{index}"{" open" if index <= 2 or isinstance(step.request, Generate) else ""}><summary><b class="no">{index}</b>{e(name)}<em>{gist(step, gold)}</em></summary><div>{inside}</div></details>'
    spec = run.spec()["spec"]
    build = (
        f'<a class="link" href="#/build/one?set={e(spec["dataset"])}&q={e(qid)}&run={e(run.name)}">Open in Build</a>'
        if spec["settings"].get("chain")
        else ""
    )
    if spec["settings"].get("agent"):
        build = (
            f'<a class="link" href="#/build/agent?run={e(run.name)}&q={e(qid)}">Open in Build</a>'
        )
    accepted = f"<small>gold</small> <mark>{e(gold.answers[0])}</mark>" if gold.answers else ""
    spent = (
        f"{seconds(sum(s.seconds for s in episode.steps))} · price {price(episode.steps, prices)}"
        if episode
        else ""
    )
    record = fold(
        "Record of the dataset",
        f'<p class="pre">{e(json.dumps(dict(example.record), ensure_ascii=False, indent=1))}</p>',
        id="run-record",
    )
    return f'<div class="dh"><h3 dir="auto">{e(example.question.text)}</h3>{build}</div><p class="ans" dir="auto">{mark(row.kind if row else "none")}<span>{marked(answer, gold.answers)}</span> {accepted}</p><p class="note">{e(qid)} · {spent}</p>{steps}{record}'


def metrics(page: Page, run: RunFolder) -> str:
    """Every metric."""
    report = run.report()
    if report is None:
        return empty("The run is not scored yet.")
    lines = []
    for name, mean in {**report.get("suite", {}), **report["metrics"]}.items():
        is_share = run_views.is_share(report, name)
        interval = (
            f"{100 * mean['low']:.1f} to {100 * mean['high']:.1f}"
            if is_share and mean.get("low") is not None
            else "–"
        )
        lines.append(
            [
                f'<b class="nm">{e(name)}</b><small>{e(run_views.definition(report, name))}</small>',
                percent(mean, share=is_share),
                interval,
                f"{mean.get('n', 0):,}",
            ]
        )
    clusters = independence(report.get("clusters"), report.get("n", 0))
    scorer = button("Score by more metrics", "runs.rescore", run=run.name)
    analysis = agents(page, [run.name])
    cards = "".join(
        f"<h4>{e(name)}</h4>{defs(facts.items())}"
        for name, facts in run_views.cards(report).items()
    )
    cards = fold("Metric cards", cards, gist="definition, range, caveats", id="metric-cards")
    return f'<div class="row">{scorer}</div>{analysis}{rows(["Metric", ">Mean", ">95 % interval", ">Questions"], lines)}<p class="note">{e(clusters)}</p>{cards}'


def cost(page: Page, run: RunFolder) -> str:
    """Time, tokens and price, in all and of each action."""
    report = run.report()
    if report is None or not report.get("cost"):
        return empty("The cost is known once the run is scored.")
    lines = []
    for part in report["cost"].get("per_action", []):
        spread = part.get("seconds") or {}
        tokens = (
            " + ".join(
                numbers.text((part.get(key) or {}).get("mean"), "count")
                for key in ("prompt_tokens", "completion_tokens")
            )
            if part.get("prompt_tokens")
            else "–"
        )
        lines.append(
            [
                f"{part['action']} {e(part['kind'])} {e(part['target'])}",
                seconds(spread.get("mean")),
                seconds(spread.get("median")),
                seconds(spread.get("p95")),
                tokens,
                f"{part.get('cached', 0):,}",
            ]
        )
    total = report["cost"]["total"]
    facts = [
        ["Questions", f"{total['questions']:,}"],
        ["Time of all steps", numbers.text(total["seconds"], "duration")],
        ["Calls to models", f"{total['model_calls']:,}"],
        ["Retrievals", f"{total['retrievals']:,}"],
        ["Tokens", f"{total['prompt_tokens'] or 0:,} + {total['completion_tokens'] or 0:,}"],
        [
            "Price",
            numbers.text(total["usd"], "usd") if total["usd"] is not None else "no price is set",
        ],
    ]
    return f'<h3 class="sub first">In all</h3>{rows(["", ">"], facts, kind="narrow")}<h3 class="sub">An action, seconds a question</h3>{rows(["Action", ">Mean", ">Median", ">95 of 100", ">Tokens in + out", ">From the cache"], lines)}'


def config(page: Page, run: RunFolder) -> str:
    """Everything that the run was made with."""
    spec = run.spec()
    text = json.dumps(spec, ensure_ascii=False, indent=2)
    return f'<pre class="pre code" tabindex="0">{e(text)}</pre>'


# actions


def pick(page: Page, event: Event) -> Patch:
    """Another question of the list."""
    return {"#run-question": detail(page, folder(page, event), event.text("id"))}


def choose(page: Page, event: Event) -> Patch:
    """Another filter; the address keeps it."""
    run, only, words = folder(page, event), event.text("only"), event.text("words")
    query = {"only": only, "words": words, "q": event.query.get("q", "")}
    kept = "".join(f"&{key}={quote(value)}" for key, value in query.items() if value)
    return {"#run-list": listed(page, run, query), "address": f"#/runs/run?id={run.name}{kept}"}


def stages(page: Page, event: Event) -> Patch:
    """Read where the questions were lost, which takes a while for a large run."""
    run = folder(page, event)
    read_stages(page.workbench, run)
    return {"#run-top": top(page, run), "#run-list": listed(page, run, event.query)}


def live(page: Page, event: Event) -> Patch:
    """The run while it runs: rows arrive as they are answered."""
    run = folder(page, event)
    job = page.workbench.jobs.get("run", run.name)
    row = run_list.row_of(page.workbench, run.name)
    going = job is not None and not job.done
    patch: Patch = {
        "#run-head": heading(page, row, "questions"),
        "#run-live": running(page, job) if job is not None and going else "",
        "#run-chips": verdicts(page, run, event.query.get("only", "")),
        "#run-rows": listing(page, run, event.query),
        "event": {"name": "rb-rows", "list": "run-questions"},
    }
    return patch if going else {**patch, "#run-top": top(page, run)}


def resume(page: Page, event: Event) -> Patch:
    """Continue a run that was stopped."""
    run = folder(page, event)
    page.workbench.runs.start(page.workbench.runs.resume(run.name))
    return {"go": f"#/runs/run?id={run.name}", "say": "The run continues."}


def use(page: Page, event: Event) -> Patch:
    """Open the chain of the run in Build."""
    run = folder(page, event)
    return {"go": f"#/build/one?set={run.spec()['spec']['dataset']}&run={run.name}"}
