"""A read-only page and its calls start and change nothing: every action is played, and every file stays as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import expect, go, serving, visiting
from hostile_workspace import (
    NAME,
    TEXT,
    Shown,
    addresses,
    fill_hostile_workspace,
    make_hostile_workspace,
)
from page_views import ended, texts
from small_workspace import everything, make_workspace

from rallebench.core.errors import READ_ONLY, RalleError, ReadOnlyError
from rallebench.gui.app import skeleton
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.remote.calls import Calls
from rallebench.services.workbench import Workbench

WINDOW = "0123456789abcdef" * 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace that shows something in every view, with a run in the bin, an interrupted run, a damaged conversation
    and the remains of a killed program."""
    folder = make_hostile_workspace(tmp_path_factory.mktemp("read-only") / "workspace")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rallebench.services.tracking.Tracking.trace", lambda *_: None)
        workbench = Workbench(folder)
        page = Page(workbench)
        fill_hostile_workspace(page)
        articles = folder / "articles.jsonl"
        article = {"title": "One", "content": f"One. {TEXT}", "date": "2022-01-01"}
        articles.write_text(json.dumps(article))
        page.call(
            "builder.start", {"maker": "barag", "name": "made", "llm": NAME, "path": str(articles)}
        )
        ended(page, "dataset builder", "made")
        for name in ("binned", "interrupted"):
            shutil.copytree(folder / "runs" / "first", folder / "runs" / name)
        page.call("runs.delete", {"id": "binned"})
        workbench.close()
    state = folder / "runs" / "interrupted" / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "state": "running"}))
    for made in (folder / "cache" / "stages", folder / "indexes" / "starter-bm25"):
        shutil.rmtree(made, ignore_errors=True)
    (folder / "conversations").mkdir(exist_ok=True)
    (folder / "conversations" / f"{WINDOW}.json").write_text("{")
    (folder / "corpora" / ".hostile.0123456789ab.part").mkdir()
    yield folder


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    """The read-only page of the workspace."""
    workbench = Workbench(folder, read_only=True)
    yield Page(workbench)
    workbench.close()


class Played:
    """Every view and list of a page, and every action that a patch offers, performed once. ``answers``: action →
    its refusal, or ''."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.answers: dict[str, str] = {}
        for address in (*addresses(page), "runs/list?new=1", "data/builder?id=made"):
            self._follow(lambda address=address: page.open(address, window=WINDOW))

    def _follow(self, perform: Callable[[], Patch], action: str = "") -> None:
        try:
            sent = perform().to_json()
        except RalleError as error:
            self.answers[action] = str(error)
            return
        self.answers[action] = ""
        panels = [sent.get(name, "") for name in ("dialog", "drawer", "chain", "undo")]
        shown = Shown("".join([*panels, *(part for key, part in sent.items() if key[0] == "#")]))
        pressable = shown.pressable
        for name, key in shown.lists:
            message = {"list": name, "key": key, "start": 0, "count": 50, "window": WINDOW}
            rows = self._page.list_rows(message).rows
            pressable = pressable + Shown("".join(row for _, row in rows)).pressable
        for name, data in pressable:
            if name and name != "open" and name not in self.answers:
                self.press(name, {**shown.fields, **data})

    def press(self, name: str, data: dict[str, Any]) -> None:
        """Perform an action, then every new one that its answer offers."""
        self.answers[name] = ""
        self._follow(lambda: self._page.call(name, data, window=WINDOW), name)


def test_every_action_and_view_leaves_every_file_and_starts_no_work(
    folder: Path, page: Page, bench: Workbench
) -> None:
    before, all_actions = everything(folder), set(Page(bench).action_names)
    played = Played(page)
    for name in all_actions - played.answers.keys():
        played.press(name, {"id": "first", "run": "first", "index": "0"})
    assert all_actions <= played.answers.keys()
    refused = {name for name, answer in played.answers.items() if answer == READ_ONLY}
    assert refused == all_actions - set(page.action_names)
    assert {job.kind for job in page.workbench.jobs.list()} <= {"load"}
    assert everything(folder) == before


def test_every_call_of_a_program_leaves_every_file_and_starts_no_work(
    folder: Path, page: Page
) -> None:
    before, calls = everything(folder), Calls(page.workbench)
    for refused in (  # ask a model, start and stop work
        lambda: calls.ask("Who discovered Titan?"),
        lambda: calls.start_run("starter", "hostile"),
        lambda: calls.stop_run("first"),
    ):
        with pytest.raises(ReadOnlyError, match="read-only"):
            refused()
    assert calls.search("Titan", "hostile")
    assert calls.run_status("first")["state"] == "finished"
    assert calls.run_status("interrupted")["state"] == "finished"
    assert calls.report("first")["complete"] is True
    assert calls.compare("first", "second")["runs"] == ["first", "second"]
    assert "first" in calls.list_names("runs")
    assert {job.kind for job in page.workbench.jobs.list()} <= {"load"}
    assert everything(folder) == before


def test_results_are_read_compared_and_searched(page: Page) -> None:
    assert "hostile" in texts(str(page.open("runs/run?id=first").html["v-runs-run"]))
    page.call("runs.stages", {"run": "first"})
    compared = page.open("runs/compare?a=first&b=second").html["v-runs-compare"]
    assert "no difference" in texts(compared) or "questions" in texts(compared)
    hits = page.call("index.search", {"id": "hostile", "query": "Titan"}).html["index-hits"]
    assert "Titan" in texts(hits)


def test_a_search_builds_no_index_and_asks_no_model(page: Page) -> None:
    with pytest.raises(ReadOnlyError, match="'starter-bm25' is not built"):
        page.call("index.search", {"id": "starter-bm25", "query": "Titan"})
    with pytest.raises(ReadOnlyError, match="asks no model"):
        page.call("index.search", {"id": "reranked", "query": "Titan"})


def test_opening_build_runs_no_chain_and_says_why(page: Page) -> None:
    opened = page.open("build/one").html["v-build-one"]
    assert "Read-only: no chain is run here." in texts(opened)


def test_a_read_only_page_is_marked_and_any_other_is_not(page: Page, bench: Workbench) -> None:
    assert "Read-only: this page" in skeleton(page)
    assert "Read-only" not in skeleton(Page(bench))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, workspace) of a read-only page in its own process, over a small workspace."""
    workspace = make_workspace(tmp_path_factory.mktemp("served") / "workspace")
    with serving(workspace, "--read-only") as url:
        yield url, workspace


def files_of(workspace: Path) -> dict[str, tuple[int, int]]:
    """Every file but the log that the test itself writes."""
    return {path: of for path, of in everything(workspace).items() if path != "app.log"}


def test_a_read_only_server_takes_no_file_and_no_call_that_changes_something(
    server: tuple[str, Path],
) -> None:
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    url, workspace = server
    before = files_of(workspace)
    sent = httpx.post(f"{url}/gradio_api/upload", files={"files": ("a.tsv", b"id\ttext")})
    assert sent.status_code == 403 and READ_ONLY in sent.text
    client = Client(url, verbose=False)
    with pytest.raises(AppError) as refused:
        client.predict("Who discovered Titan?", api_name="/ask")
    assert str(refused.value) == READ_ONLY
    assert client.predict("moon", "tiny", 2, api_name="/search")
    assert files_of(workspace) == before


@pytest.mark.browser
@pytest.mark.slow
def test_the_buttons_that_would_change_something_rest_and_a_search_works(
    browser: Any, server: tuple[str, Path]
) -> None:
    url, workspace = server
    before = files_of(workspace)
    with visiting(browser, url) as tab:
        expect(tab.locator(".read-only-note")).to_be_visible()
        for action in ("build.run", "build.benchmark", "versions.save"):
            expect(tab.locator(f"[data-do='{action}']").first).to_be_disabled()
        expect(tab.locator("[data-do='code.show']").first).to_be_enabled()
        go(tab, "#/runs/list")
        expect(tab.locator("[data-do='runs.new']").first).to_be_disabled()
        go(tab, "#/data/list")
        expect(tab.locator("[data-upload] input").first).to_be_disabled()
        go(tab, "#/data/index?id=tiny")
        tab.locator("[name=query]").fill("Which moon?")
        tab.locator("[data-do='index.search'][data-primary]").click()
        expect(tab.locator("#index-hits")).to_contain_text("Titan")
        expect(tab.locator(".problem")).to_have_count(0)
    assert files_of(workspace) == before
