"""Helpers for tests of the page's places without a browser."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, hang
from small_workspace import READ, make_workspace

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import complete
from rallebench.core.runs import RunOptions
from rallebench.gui.frame import Page
from rallebench.services.workbench import Workbench
from rallebench.views.run_requests import BenchmarkOptions, of_chain

# fmt: off
FIELDS: dict[str, Any] = {
    "count": "2", "name": "read", "about": "",
    "a0_kind": "retrieve", "a0_target": "tiny", "a0_k": "2", "a0_template": "{question}", "a0_dialect": "fstring",
    "a1_kind": "generate", "a1_target": "titan", "a1_template": READ, "a1_dialect": "fstring",
    "a1_max_tokens": "", "a1_system": "", "a1_stop": "", "a1_options": "",
}
# fmt: on
"""The chain ``read``, as the fields of Build send it."""


@contextlib.contextmanager
def opened_page(folder: Path) -> Iterator[Page]:
    """The page over a small workspace, made if it does not exist."""
    workbench = Workbench(folder if folder.exists() else make_workspace(folder))
    yield Page(workbench)
    workbench.close()


@contextlib.contextmanager
def hanging_model(workbench: Workbench, name: str) -> Iterator[Loopback]:
    """A server that answers no request, as the model ``name`` of a workspace."""
    with Loopback(hang(60)) as server:
        settings = {"base_url": server.url, "model": "m"}
        entry = LLMEntry(backend="openai_compatible", settings=settings)
        workbench.workspace.save_llm(name, entry)
        yield server


def view_of(page: Page, address: str, **more: str) -> str:
    """The HTML of the view that an address opens."""
    view = address.removeprefix("#/").partition("?")[0]
    return str(page.open(address, **more).html[f"v-{view.replace('/', '-')}"])


def texts(html: str) -> str:
    """The words of some HTML, without its elements."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def text_of(page: Page, address: str, **more: str) -> str:
    """The words of the view that an address opens."""
    return texts(view_of(page, address, **more))


def ended(page: Page, kind: str, name: str) -> Any:
    """A job of the page, after its end."""
    job = page.workbench.jobs.get(kind, name)
    assert job is not None and job.wait(60)
    return job


def refused(
    page: Page,
    action: str,
    data: dict[str, Any],
    words: str,
    kind: type[RalleError] = UsageError,
) -> None:
    """Check that an action is refused with an error of exactly this kind, with these words."""
    with pytest.raises(kind, match=words) as caught:
        page.call(action, data)
    assert caught.type is kind


def run_of(workbench: Workbench, name: str, **options: Any) -> str:
    """The name of a run of the chain ``read``, after its end. ``options``: of the run or of the benchmark."""
    of_run = {field.name for field in fields(RunOptions)} & options.keys()
    run = RunOptions(track=False, **{key: options.pop(key) for key in of_run})
    chosen = BenchmarkOptions(dataset="tiny-qa", run=run, **options)
    complete(workbench.runs.run(of_chain(workbench.workspace, "read", chosen, run=name)))
    return name


def stored_noise(experiments: Path, name: str = "noise", **report: Any) -> Path:
    """The folder of a finished experiment on noise, with additions to its usual report."""
    request = {"llm": "titan", "settings": {"labels": ""}, "limit": None, "seed": 0}
    value = {"kind": "rgb-noise", "noun": "suite", "request": request, "runs": {}}
    ended = {"request": request, "made": "", "parts": [], "tables": [], "notes": [], **report}
    (experiments / name).mkdir(parents=True)
    (experiments / name / "experiment.json").write_text(json.dumps(value))
    (experiments / name / "report.json").write_text(json.dumps(ended))
    return experiments / name
