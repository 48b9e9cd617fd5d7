"""The section that analyses agents' runs: its handlers called as plain functions, everything escaped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import make_workspace, write_lines

from rallebench.analysis.agents.logs import import_log
from rallebench.gui import views_agents
from rallebench.gui.tabs import _agent_analysis as tab
from rallebench.services.workbench import Workbench

NASTY = "<script>alert(1)</script>"


def row(question: str, prediction: str, seen: str = "") -> dict[str, Any]:
    pad = f"\nAction 1: Search[x]\nObservation 1: {seen}\nAction 2: Finish[{prediction}]"
    return {
        "question": question,
        "answer": "Ada",
        "prediction": prediction,
        "reward": 0,
        "scratchpad": pad,
    }


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """Two systems' logs as runs."""
    folder = make_workspace(tmp_path_factory.mktemp("analysis") / "w")
    bench = Workbench(folder)
    for name, rows in (
        ("one", [row("Who?", "Ada", "Ada wrote."), row(NASTY, NASTY, NASTY)]),
        ("two", [row("Who?", "Bob"), row(NASTY, "Ada")]),
    ):
        log = write_lines(folder / "hotpotqa_log.jsonl", rows)
        import_log(bench.workspace, log, name, workflow="react", llm=f"{name}-7b")
    return bench


def analysed(
    bench: Workbench,
    aspect: str,
    runs: list[str] | None = None,
    compat: str = "corrected",
    reference: str = "",
    sizes: str = "",
) -> list[Any]:
    return tab.on_analyse(
        bench, ["one", "two"] if runs is None else runs, aspect, compat, reference, sizes
    )


def test_runs_of_agents_are_offered_and_what_is_gone_is_no_longer_chosen(bench: Workbench) -> None:
    assert set(tab.offered(bench)) == {"one", "two"}
    assert (
        tab.on_offer(bench, ["one"]).get("value", ["one"]) == ["one"]
        and tab.on_offer(bench, ["gone"])["value"] == []
    )


@pytest.mark.parametrize("aspect", views_agents.ASPECT_NAMES)
def test_every_aspect_is_drawn_and_nothing_of_a_run_is_markup(
    bench: Workbench, aspect: str
) -> None:
    shown, command, *plots = analysed(bench, aspect)
    assert "rb-table" in shown and NASTY not in shown and f"--aspect {aspect}" in command
    assert (
        any(plot["visible"] for plot in plots) == (aspect not in ("performance", "deployment"))
        and len(plots) == tab.MOST_PLOTS
    )
    json.dumps([plot["value"].to_json() for plot in plots if plot["visible"]])


def test_errors_show_examples_of_every_class_with_what_was_seen(bench: Workbench) -> None:
    shown, *_ = analysed(bench, "errors")
    assert (
        "Examples of every class" in shown
        and "seen: Ada wrote." in shown
        and "answer: Bob" in shown
    )
    assert "no step" not in shown and "as R-Eval" not in shown
    assert "out of 100 a task" in analysed(bench, "errors", compat="original")[0]


def test_only_what_an_aspect_takes_is_asked_for() -> None:
    assert [update["visible"] for update in tab.on_aspect("normalization")] == [True, False]
    assert [update["visible"] for update in tab.on_aspect("deployment")] == [False, True]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"runs": []}, "No run is chosen"),
        ({"runs": ["gone"]}, "There is no run"),
        ({"aspect": "normalization", "reference": "x"}, "none of the systems"),
        ({"aspect": "deployment", "sizes": "one-7b=much"}, "is not MODEL=BILLIONS"),
    ],
)
def test_what_cannot_be_is_said_on_the_page(
    bench: Workbench, asked: dict[str, Any], said: str
) -> None:
    shown, command, *plots = analysed(bench, **{"aspect": "performance", **asked})
    assert said in shown and not command and not any(plot["visible"] for plot in plots)


def test_what_an_aspect_does_not_take_is_left_alone(bench: Workbench) -> None:
    shown, command, *_ = analysed(bench, "errors", reference="x", sizes="y")
    assert "rb-table" in shown and "--size" not in command and "--reference" not in command
    assert Path(str(bench.workspace.path)).name in command
