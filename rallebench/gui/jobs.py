"""The chip in the header: all work that is running, and how the last of it ended."""

from __future__ import annotations

import time
from typing import Any

from rallebench.core.events import Progress
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench

RECENT = 8
"""How many jobs that have ended the list names."""

VERBS = {
    "run": "Run",
    "load": "Load",
    "build": "Index",
    "import": "Import",
    "check": "Check of the index",
    "suite": "Benchmark",
    "dataset builder": "Dataset",
    "test": "Test of",
}


def chip(workbench: Workbench) -> dict[str, Any]:
    """The chip, the list below it, and the version of every job: news for what follows it."""
    jobs = workbench.jobs.list()
    active = [job for job in jobs if not job.done]
    ended = sorted((job for job in jobs if job.done), key=lambda job: -(job.ended or 0))[:RECENT]
    return {
        "any": bool(jobs),
        "active": len(active),
        "chip": _chip(active, ended),
        "list": "".join(map(row, (*active, *ended))),
        "versions": {job.id: job.version for job in jobs}
        | {"loaded": " ".join(line.name for line in workbench.models.status())},
    }


def _chip(active: list[Job], ended: list[Job]) -> str:
    if not active:
        failed = ended and ended[0].status == "failed"
        return "Last job failed" if failed else "Jobs"
    words = [f"{len(active)} job{'s' * (len(active) > 1)}"]
    share = share_of(active[0])
    if share is not None and len(active) == 1:
        words += [f"{share:.0%}".replace("%", " %"), left(active[0], share)]
    ring = f'<span class="ring" style="--share:{100 * (share or 0.05):.0f}%"></span>'
    return ring + e(" · ".join(filter(None, words)))


def progress_of(job: Job) -> Progress | None:
    """The newest progress of a job that knows its total, of its outermost task."""
    tasks = [task for task in job.tasks.values() if isinstance(task, Progress) and task.total]
    return min(tasks, key=lambda task: task.task.count("/"), default=None)


def share_of(job: Job) -> float | None:
    """The share of a job that is done, None if it is not known."""
    progress = progress_of(job)
    return min(1.0, progress.done / progress.total) if progress and progress.total else None


def left(job: Job, share: float) -> str:
    """The time that a job still takes, "" if it cannot be said yet."""
    elapsed = time.time() - job.started
    if share < 0.03 or elapsed < 2:
        return ""
    return f"{text(elapsed / share - elapsed, 'duration')} left"


def row(job: Job) -> str:
    """A job in the list, with its stop."""
    share, title = share_of(job), f"{VERBS.get(job.kind, job.kind.capitalize())} {job.name}"
    if job.done:
        end = {"failed": on_page(job.error), "stopped": "stopped"}.get(job.status, "done")
        clock = time.strftime("%H:%M", time.localtime(job.ended))
        return f'<div class="job {job.status}"><span>{e(title)}</span><small>{e(end)} · {clock}</small></div>'
    progress = progress_of(job)
    counts = f"{progress.done:,} of {progress.total:,}" if progress and progress.total else ""
    words = [
        counts,
        left(job, share) if share else "",
        job.message or str(getattr(job.newest, "message", job.newest) or ""),
    ]
    bar = (
        f'<progress max="100" value="{100 * share:.0f}"></progress>'
        if share is not None
        else "<progress></progress>"
    )
    stop = (
        "<small>stopping</small>"
        if job.stopping
        else f'<button type="button" class="quiet" data-do="jobs.stop" data-id="{e(job.id)}">Stop</button>'
    )
    return f'<div class="job"><span>{e(title)}</span>{stop}<small>{e(" · ".join(filter(None, words)))}</small>{bar}</div>'


def stop_job(page: Page, event: Event) -> Patch:
    """Stop a job; it shows so itself."""
    page.workbench.jobs.stop(event.text("id"))
    return {"say": "Stopping. What is done is kept."}
