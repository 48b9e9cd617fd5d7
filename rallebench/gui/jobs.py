"""The status chip in the header: all running work, and the most recent results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from rallebench.core.events import Progress
from rallebench.core.numbers import plural
from rallebench.gui.addresses import (
    BuilderAddress,
    ExperimentAddress,
    ModelAddress,
    Query,
    RunAddress,
)
from rallebench.gui.html import button, doing, escape, join_facts, link, problem, progress, state
from rallebench.render.numbers import about_time, moment
from rallebench.services import hub_sources, imports
from rallebench.services.index_builds import BUILD
from rallebench.services.interrupted import interrupted_jobs
from rallebench.services.job_records import JobRecord
from rallebench.services.jobs import Job
from rallebench.services.models import PREPARATION
from rallebench.services.pace import JobStanding
from rallebench.services.workbench import Workbench
from rallebench.views import run_list

RECENT = 8
"""Finished jobs shown in the list."""

VERBS = {
    "run": "Run",
    "scoring": "Scoring of",
    "load": "Load",
    "build": "Index",
    "import": "Import",
    "download": "Download of",
    "check": "Check of the index",
    "suite": "Benchmark",
    "dataset builder": "Dataset",
    "test": "Test of",
}


DATA_KINDS = (imports.KIND, BUILD, hub_sources.KIND)
"""Kinds of job that are continued in Data."""


@dataclass(frozen=True, slots=True)
class JobNews:
    """All jobs as shown in the header. ``versions``: a version per job; a new version notifies its followers. ``program``:
    another one after a restart, which has lost the state of all windows.
    """

    program: str
    any: bool
    active: int
    chip: Markup
    list: Markup
    versions: Mapping[str, str | int]

    def to_json(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "any": self.any,
            "active": self.active,
            "chip": str(self.chip),
            "list": str(self.list),
            "versions": dict(self.versions),
        }


def job_news(workbench: Workbench, program: str = "") -> JobNews:
    """Return the chip, the list below it, and the version of every job."""
    jobs = [job for job in workbench.jobs.list() if job.kind != PREPARATION]
    lost = interrupted_jobs(workbench.workspace, workbench.jobs, workbench.experiments.store)
    active = [job for job in jobs if not job.done]
    ended = sorted((job for job in jobs if job.done), key=lambda job: -(job.ended or 0))[:RECENT]
    called = run_list.titles(
        workbench.workspace,
        [(job.name, job.identity) for job in jobs if job.kind in ("run", "scoring")],
    )
    listed = Markup().join(row(job, called.get(job.name, job.name)) for job in active)
    listed += Markup().join(map(interrupted_row, lost))
    listed += Markup().join(row(job, called.get(job.name, job.name)) for job in ended)
    loaded = " ".join(line.name for line in workbench.models.status())
    versions: dict[str, str | int] = {job.id: job.version for job in jobs}
    versions["loaded"] = loaded
    versions["interrupted"] = " ".join(record.id for record in lost)
    chip = _chip(active, ended, len(lost))
    return JobNews(program, bool(jobs or lost), len(active), chip, listed, versions)


def _chip(active: list[Job], ended: list[Job], interrupted: int) -> Markup:
    if not active and interrupted:
        words = f"{plural(interrupted, 'job')} interrupted"
        return Markup('<span class="bad">{}</span>').format(words)
    if not active:
        failed = ended and ended[0].status == "failed"
        return Markup('<span class="bad">Last job failed</span>') if failed else Markup("Jobs")
    words, now = plural(len(active), "job"), active[0].standing
    if now is not None and len(active) == 1:
        words = join_facts(words, f"{100 * now.share:.0f} %", remaining_time(now))
    share = now.share if now is not None else 0.05
    ring = Markup('<span class="ring" style="--share:{:.0f}%"></span>').format(100 * share)
    return ring + escape(words)


def remaining_time(now: JobStanding) -> str:
    """Describe the remaining time; "" if unknown."""
    return "" if now.left is None else f"{about_time(now.left)} left"


def title(kind: str, name: str) -> str:
    """Return the name of a job in the list."""
    return f"{VERBS.get(kind, kind.capitalize())} {name}"


def row(job: Job, name: str) -> Markup:
    """Draw a job in the list, with its stop button."""
    words = title(job.kind, name)
    if job.done:
        clock = time.strftime("%H:%M", time.localtime(job.ended))
        end = state("done", kind="good") if job.status == "finished" else state(job.status)
        kind = "bad" if job.status == "failed" else ""
        ended_itself = job.error is not None and not job.stopping
        reason = f" · {job.error}" if kind or ended_itself else ""
        return Markup(
            '<div class="job"><span>{}</span>{}<small class="{}">{}{}</small></div>'
        ).format(words, end, kind, clock, reason)
    facts = join_facts(
        progress_words(job), job.message or str(getattr(job.newest, "message", job.newest) or "")
    )
    bar = progress(done_share(job))
    return Markup('<div class="job"><span>{}</span>{}<small>{}</small>{}</div>').format(
        words, stop_button(job), facts, bar
    )


def interrupted_row(record: JobRecord) -> Markup:
    """Draw a job that ended with an earlier program, with the place where it goes on."""
    began = moment(datetime.fromtimestamp(record.started))
    return Markup(
        '<div class="job"><span>{}</span>{}<small>{}</small><div class="row">{}{}</div></div>'
    ).format(
        title(record.kind, record.name),
        state("interrupted", kind="bad"),
        f"It began {began} and ended with the program.",
        link("Open", interrupted_href(record)),
        dismiss_button(record),
    )


def dismiss_button(record: JobRecord) -> Markup:
    """Draw the button that forgets an interrupted job."""
    return button("Dismiss", "jobs.forget", kind="quiet", id=record.id)


def interrupted_href(record: JobRecord) -> str:
    """Return the address of the view that continues an interrupted job."""
    if record.kind in DATA_KINDS:
        return "#/data/list"
    places: Mapping[str, Callable[[str], Query]] = {
        "run": RunAddress,
        "scoring": RunAddress,
        "test": ModelAddress,
        "dataset builder": BuilderAddress,
    }
    return places.get(record.kind, ExperimentAddress)(record.name).href


def done_share(job: Job) -> float | None:
    """Return the finished share of a job; None if unknown."""
    now = job.standing
    return None if now is None else now.share


def progress_words(job: Job) -> str:
    """Describe the progress of a job: "40 of 222 · about 2 min left"; "" if the total is unknown."""
    now = job.standing
    return "" if now is None else join_facts(f"{now.done:,} of {now.total:,}", remaining_time(now))


def doing_now(job: Job, name: Callable[[str], str] = str) -> str:
    """Describe the current task of a job with its message or count; "" before its first progress."""
    news = next((x for x in reversed(job.events()) if isinstance(x, Progress)), None)
    if news is None:
        return ""
    counts = f"{news.done:,} of {news.total:,}" if news.total else f"{news.done:,}"
    return f"{name(news.task)}: {news.message or counts}"


def stop_button(job: Job, do: str = "jobs.stop", id: str = "", kind: str = "quiet") -> Markup:
    """Draw the stop button of a job; ``id``: the argument of ``do``, by default the job's id."""
    if job.stopping:
        return Markup("<small>stopping</small>")
    return button("Stop", do, kind=kind, id=id or job.id)


def running(job: Job, title: str, words: str, *more: str, name: str, stop: str = "") -> Markup:
    """Draw running work as a row of a list: its title (HTML), its progress, ``more``, and its ``stop`` button."""
    figures = Markup('<span class="num">{}</span>').format(words)
    parts = title, progress(done_share(job), name), figures, *more, stop or stop_button(job)
    return Markup('<div class="running">{}</div>').format(Markup().join(parts))


def going(job: Job | None, words: str = "") -> Markup:
    """Draw the progress of a job with its stop button, or why it failed; "" once it is done.

    ``words``: replaces its newest message.
    """
    if job is None or job.done:
        return problem(job and job.error)
    return doing(words or job.message or "starting", stop_button(job, kind=""))
