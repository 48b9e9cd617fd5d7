"""The Runs tab: its handlers called as plain functions on a workspace with runs, whole and damaged."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from performing import prepared

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.types import Action, Chain
from rallebench.engine.store import RunFolder
from rallebench.gui import views_runs
from rallebench.gui.tabs import runs
from rallebench.services.workbench import Workbench

CHAIN = Chain(
    "mine",
    (
        Action("retrieve", "{question}", "fstring", "starter-bm25", 3),
        Action(
            "generate", "<b>Read</b> {response[0]}", "fstring", "echo", generation={"max_tokens": 7}
        ),
    ),
)
NAMES = ("first", "second", "third")


class OfflineBench(Workbench):
    """A workbench whose MLflow is a plain fake: it says what it was told to, and remembers what it got."""

    problem = ""
    said: tuple[str, ...] = ("MLflow is starting (0 s) …", "http://127.0.0.1:5000/?a=1&b=<2>")

    def __init__(self, *places: Path, **settings: Any) -> None:
        super().__init__(*places, **settings)
        self.tracking.track_run = self.track_run  # type: ignore[method-assign]
        self.tracking.start_mlflow = self.start_mlflow  # type: ignore[method-assign]

    def track_run(self, folder: RunFolder) -> str:
        self.sent = folder.name
        return self.problem

    def start_mlflow(self) -> Iterator[str]:
        yield from self.said[:1]
        if self.problem:
            raise BackendError(self.problem)
        yield from self.said[1:]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with three runs of two questions each, the last of them the newest."""
    workspace = tmp_path_factory.mktemp("runs")
    (workspace / "llms.json").write_text(
        '{"echo": {"backend": "scripted", "settings": {"echo": true}}}'
    )
    bench = Workbench(workspace)
    for name in NAMES:
        plan = prepared(bench.workspace, CHAIN, "starter-qa", limit=2, name=name, track=False)
        list(bench.runs.run(plan))
    return workspace


@pytest.fixture
def bench(made: Path, tmp_path: Path) -> OfflineBench:
    """A copy of it, so that a test may damage what it likes."""
    shutil.copytree(made, tmp_path / "copy")
    return OfflineBench(tmp_path / "copy")


def rows(bench: Workbench, words: str = "") -> list[list[Any]]:
    return runs.listing(bench, words)[1]["value"]  # type: ignore[no-any-return]


def damage(bench: Workbench, name: str, file: str, text: str) -> None:
    (bench.workspace.runs / name / file).write_text(text)


# the list


def test_all_runs_are_listed_the_newest_first(bench: OfflineBench) -> None:
    said, table = runs.on_filter(bench, "")
    assert [row[0] for row in table["value"]] == ["third", "second", "first"] and table["visible"]
    assert "3 runs" in said and "rb-error" not in said
    assert (
        {len(row) for row in table["value"]} == {len(views_runs.RUN_COLUMNS)} == {len(runs.WIDTHS)}
    )
    assert table["value"][0][:4] == ["third", "done", "2 / 2", 0]


def test_an_empty_workspace_says_how_to_make_the_first_run(tmp_path: Path) -> None:
    said, table = runs.listing(Workbench(tmp_path), "")
    assert "press Run benchmark" in said and "rallebench run --chain starter" in said
    assert table == gr.update(value=[], visible=False)


def test_the_filter_wants_every_word_in_any_column(bench: OfflineBench) -> None:
    assert [row[0] for row in rows(bench, "second")] == ["second"]
    assert [row[0] for row in rows(bench, " FIRST starter-qa done ")] == ["first"]
    assert len(rows(bench, "starter")) == 3
    said, table = runs.on_filter(bench, "first second")
    assert "None of the 3 runs fits" in said and not table["visible"]
    assert "1 of 3 runs" in runs.on_filter(bench, "third")[0]


DAMAGES = [
    ("run.json", '{"format": "rallebench-run/1", "na', "is not valid JSON"),
    ("run.json", "", "is empty"),
    ("run.json", "[]", "run.json was damaged"),
    ("run.json", '{"format": "rallebench-run/1"}', "run.json was damaged"),
    ("report.json", '{"metrics": {', "is not valid JSON"),
    ("report.json", "[1]", "report.json"),
    ("state.json", '{"state": "done"}', "lacks &#x27;done&#x27;"),
]


@pytest.mark.parametrize(("file", "text", "sentence"), DAMAGES)
def test_a_damaged_run_is_a_row_and_a_sentence_and_the_others_stay(
    bench: OfflineBench, file: str, text: str, sentence: str
) -> None:
    damage(bench, "second", file, text)
    said, table = runs.listing(bench, "")
    states = {row[0]: row[1] for row in table["value"]}
    assert states == {"first": "done", "second": "damaged", "third": "done"}
    assert "The run &#x27;second&#x27; is damaged." in said and sentence in said and "away." in said


def test_a_damaged_run_can_be_read_about_but_not_opened_or_sent(bench: OfflineBench) -> None:
    damage(bench, "second", "run.json", "{")
    shown, benchmark_button, send = runs.on_chosen(bench, "second")
    assert "rb-error" in shown and benchmark_button["interactive"] is send["interactive"] is False
    with pytest.raises(UsageError, match="is damaged"):
        runs.on_open_benchmark(bench, "second")
    with pytest.raises(UsageError, match="is damaged"):
        list(runs.on_send(bench, "second"))


def test_a_chain_that_is_damaged_is_found_when_the_run_is_read(bench: OfflineBench) -> None:
    spec = json.loads((bench.workspace.runs / "first" / "run.json").read_text())
    spec["spec"]["settings"]["chain"]["actions"] = "none"
    damage(bench, "first", "run.json", json.dumps(spec))
    assert "is damaged" in runs.on_chosen(bench, "first")[0]


# one run


def test_a_click_anywhere_in_a_row_chooses_its_run() -> None:
    click = gr.SelectData(
        None, {"index": [1, 4], "value": "0.5", "row_value": ["second", "done", "2 / 2"]}
    )
    assert runs.on_select(click) == ["second", ""]


def test_a_chosen_run_shows_facts_chain_and_report(bench: OfflineBench) -> None:
    shown, benchmark_button, send = runs.on_chosen(bench, "first")
    assert benchmark_button["interactive"] is send["interactive"] is True
    assert "batch size 20" in shown and "limit 2" in shown and "not in MLflow" in shown
    assert str(bench.workspace.runs / "first") in shown
    assert "Action 1: Retriever" in shown and "k = 3" in shown and "starter-bm25" in shown
    assert "Action 2: LLM" in shown and "max_tokens: 7" in shown
    assert "&lt;b&gt;Read&lt;/b&gt; {response[0]}" in shown and "<b>Read" not in shown
    assert "R-precision" in shown and "2 of 2 questions answered" in shown


def test_nothing_chosen_says_what_a_click_does(bench: OfflineBench) -> None:
    shown, benchmark_button, _ = runs.on_chosen(bench, "")
    assert "Click a run" in shown and benchmark_button["interactive"] is False
    with pytest.raises(UsageError, match="No run is chosen"):
        runs.on_open_benchmark(bench, "")


@pytest.mark.parametrize(
    ("state", "message", "expected"),
    [
        ("failed", "The disk <is> full.", '<div class="rb-error">The disk &lt;is&gt; full.</div>'),
        (
            "done",
            "3 of 9 gold pages are not in the corpus.",
            '<div class="rb-note">3 of 9 gold pages',
        ),
        ("stopped", "", "press Resume to go on"),
        ("interrupted", "", "press Resume to go on"),
    ],
)
def test_warnings_and_errors_of_a_run_are_shown(
    bench: OfflineBench, state: str, message: str, expected: str
) -> None:
    bench.runs.open("first").set_state(state, done=1, total=2, errors=0, message=message)
    assert expected in runs.on_chosen(bench, "first")[0]


def test_a_run_that_is_gone_is_a_sentence(bench: OfflineBench) -> None:
    assert "There is no run" in runs.on_chosen(bench, "gone")[0]


def test_a_run_of_another_workflow_shows_its_settings(bench: OfflineBench) -> None:
    shown = runs.chain({"workflow": "agent", "settings": {"steps": "<5>"}})
    assert "Workflow agent" in shown and "&lt;5&gt;" in shown


def test_opening_in_benchmark_follows_the_run_there(bench: OfflineBench) -> None:
    tabs, followed = runs.on_open_benchmark(bench, "second")
    assert tabs.selected == "benchmark" and followed == "second"


def test_a_refresh_shows_a_new_run_and_the_chosen_one_as_they_are_now(bench: OfflineBench) -> None:
    runs.on_refresh(bench, "", "first")
    shutil.copytree(bench.workspace.runs / "first", bench.workspace.runs / "fourth")
    bench.runs.open("first").set_state("stopped", done=1, total=2, errors=0)
    said, table, shown, *_ = runs.on_refresh(bench, "", "first")
    assert "4 runs" in said and len(table["value"]) == 4 and "It was stopped" in shown


# MLflow


def test_sending_says_what_it_does_and_that_it_is_done(bench: OfflineBench) -> None:
    first, last = runs.on_send(bench, "second")
    assert "Sending second to MLflow" in first[0] and "second is in MLflow now." in last[0]
    assert bench.sent == "second" and "batch size" in last[1]


def test_a_failed_sending_is_the_sentence_of_the_workbench(bench: OfflineBench) -> None:
    bench.problem = "The run is complete but was not logged to MLflow: no <server>."
    last = list(runs.on_send(bench, "second"))[-1][0]
    assert "rb-error" in last and "no &lt;server&gt;." in last


def test_a_run_that_was_sent_says_where_it_is(bench: OfflineBench) -> None:
    damage(bench, "first", "mlflow.json", '{"run_id": "abc", "tracking_uri": "sqlite:///x.db"}')
    assert "in MLflow: sqlite:///x.db" in runs.on_chosen(bench, "first")[0]


def test_starting_mlflow_shows_news_then_a_link_and_the_command(bench: OfflineBench) -> None:
    news, last = runs.on_start_mlflow(bench)
    assert "is starting" in news and "<a " not in news
    assert 'href="http://127.0.0.1:5000/?a=1&amp;b=&lt;2&gt;"' in last and 'rel="noopener"' in last
    assert "mlflow server --host 127.0.0.1" in last and str(bench.workspace.path) in last


def test_mlflow_that_does_not_start_says_why_and_how_to_do_it_by_hand(bench: OfflineBench) -> None:
    bench.problem = "MLflow's page did not start within 90 seconds; try again."
    last = list(runs.on_start_mlflow(bench))[-1]
    assert "rb-error" in last and "did not start" in last and "mlflow server" in last


class Healthy(http.server.BaseHTTPRequestHandler):
    """Answers as MLflow's server does when asked how it is."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_a_fresh_page_links_to_mlflow_only_while_it_answers(
    bench: OfflineBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "<a " not in runs.mlflow_line(bench)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        (bench.workspace.path / ".mlflow-ui.json").write_text(json.dumps({"url": url}))
        assert f'href="{url}"' in runs.on_refresh(bench, "", "")[-1]
        server.shutdown()
    assert "<a " not in runs.mlflow_line(bench)


def test_the_link_leads_to_the_table_that_holds_the_runs(bench: OfflineBench) -> None:
    assert runs.runs_page(bench, "http://127.0.0.1:5000") == "http://127.0.0.1:5000"
    here = "sqlite:///" + str(bench.workspace.path.resolve() / "mlflow.db")
    for name, uri, experiment in (("third", "https://elsewhere", "9"), ("first", here, "4")):
        entry = {"tracking_uri": uri, "experiment_id": experiment, "run_id": "f00"}
        (bench.workspace.runs / name / "mlflow.json").write_text(json.dumps(entry))
    page = runs.runs_page(bench, "http://127.0.0.1:5000")
    assert page == "http://127.0.0.1:5000/#/experiments/4/runs"


def test_a_tracking_server_of_ones_own_is_linked_without_its_password(made: Path) -> None:
    line = runs.mlflow_line(Workbench(made, tracking_uri="https://me:secret@mlflow.example"))
    assert 'href="https://mlflow.example"' in line and "secret" not in line
    assert "on the machine that runs rallebench" not in line
