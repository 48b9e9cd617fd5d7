"""A builder on the common driver: planned, measured by a pilot, stopped and continued; a person's edits stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_workspace import everything, make_workspace, read_lines, write_lines

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.events import Progress, complete
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexRequest,
    Report,
    RowId,
    RowsRequest,
)
from rallebench.core.forecast import QUANTITIES, Interval
from rallebench.core.registry import Entry
from rallebench.core.runs import RunOptions
from rallebench.core.types import Flow, Generate, Message, Outcome
from rallebench.engine.dry_run import plan
from rallebench.experiments import BUILDERS, EXPERIMENTS
from rallebench.services.builders import builder_request, open_builder
from rallebench.services.workbench import Workbench

NAMES = ("Titan", "Rhea", "Dione")
OPTIONS = RunOptions(batch_size=1, track=False)


def moons(request: ExperimentRequest) -> Experiment:
    """One stage without a model and one with a model; its kept rows become the questions."""
    names = yield RowsRequest(
        "1-names",
        "names",
        lambda: map(RowId, NAMES),
        make=lambda name: [{"id": name.id, "keep": True}],
    )

    def flow(name: RowId) -> Flow:
        reply = yield Generate(request.llm, (Message("user", f"What is {name.id}?"),))
        return Outcome(reply.text)

    replies = yield RowsRequest(
        "2-replies",
        "replies",
        lambda: names.read_kept(RowId),
        flow=flow,
        read=lambda name, episode: [{"id": name.id, "reply": episode.answer, "keep": True}],
        depends_on=lambda name: name.id,
        llms=(request.llm,),
    )
    questions = tuple(
        {"id": row["id"], "input": row["id"], "output": [{"answer": row["reply"]}]}
        for row in replies
        if row["keep"]
    )
    return Report(questions=questions, files={"names.txt": " ".join(row["id"] for row in names)})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    assert "moons" not in BUILDERS, "the registry is loaded before a builder is added"
    monkeypatch.setitem(
        EXPERIMENTS._entries,
        "build-moons",
        Entry("build-moons", moons, traits={"place": "builders"}),
    )
    bench = Workbench(make_workspace(tmp_path / "workspace"))
    yield bench
    bench.close()


def request(bench: Workbench, **settings: Any) -> ExperimentRequest:
    return builder_request(bench.workspace, "moons", "mine", settings, llm="titan")


def test_a_builders_plan_and_pilot_write_nothing_and_promise_no_cost(bench: Workbench) -> None:
    before = everything(bench.workspace.path)
    planned = bench.experiments.plan(request(bench))
    assert planned.rows == ("1-names", "2-replies") and not planned.runs and not planned.open_end
    (note,) = planned.notes
    assert "2-replies" in note and "1-names" not in note, (
        "only stages that ask a model cost requests"
    )
    estimate = complete(bench.experiments.pilot(planned, request(bench)))
    assert estimate.pilot is not None
    assert estimate.pilot.total == dict.fromkeys(QUANTITIES, Interval()), (
        "not known, which is not 0"
    )
    assert "the sums are not known" in estimate.notes[0]
    assert everything(bench.workspace.path) == before


def test_a_builder_that_is_stopped_continues_and_asks_only_for_the_rest(bench: Workbench) -> None:
    building = bench.experiments.run(request(bench), OPTIONS)
    for event in building:
        if isinstance(event, Progress) and event.task == "2-replies" and event.done == 1:
            break
    building.close()
    stored = open_builder(bench.workspace, "mine")
    assert stored.report is None and stored.stages["2-replies"].rows == 1
    counts = {
        rows.label: rows.counts.new
        for rows in complete(bench.experiments.run(stored.request, OPTIONS)).rows
    }
    assert counts == {"1-names": 0, "2-replies": 2}


def test_an_edited_stage_is_honoured_and_files_of_the_report_are_whole(bench: Workbench) -> None:
    result = complete(bench.experiments.run(request(bench), OPTIONS))
    assert [Path(file).name for file in result.files] == ["mine.jsonl", "names.txt"]
    assert (result.folder / "names.txt").read_text() == "Titan Rhea Dione"
    stage = result.folder / "1-names.jsonl"
    write_lines(stage, [{**row, "keep": row["id"] != "Rhea"} for row in read_lines(stage)])
    again = complete(bench.experiments.run(request(bench), OPTIONS))
    assert [row["id"] for row in read_lines(Path(again.files[0]))] == ["Titan", "Dione"]
    assert [rows.counts.new for rows in again.rows] == [0, 0]


@pytest.mark.parametrize(
    "damage",
    [
        "[]",
        '{"1-names": "x"}',
        '{"1-names": {"of": 1, "told": {}}}',
        '{"1-names": {"of": "x", "told": {"left_out": {"why": "x"}}}}',
    ],
)
def test_damaged_summaries_are_named_with_their_mend_and_made_anew_by_the_next_build(
    bench: Workbench, damage: str
) -> None:
    result = complete(bench.experiments.run(request(bench), OPTIONS))
    path = result.folder / "summaries.json"
    path.write_text(damage)
    with pytest.raises(BadFileError, match=r"summaries\.json was damaged .* build again"):
        open_builder(bench.workspace, "mine")
    again = complete(bench.experiments.run(request(bench), OPTIONS))
    assert [rows.counts.new for rows in again.rows] == [0, 0]


def test_other_articles_under_the_name_of_a_builder_are_refused(bench: Workbench) -> None:
    complete(bench.experiments.run(request(bench), OPTIONS))
    other = builder_request(bench.workspace, "moons", "mine", {}, articles="other", llm="titan")
    before = everything(bench.workspace.path / "experiments")
    with pytest.raises(UsageError, match="articles"):
        complete(bench.experiments.run(other, OPTIONS))
    assert everything(bench.workspace.path / "experiments") == before


def test_a_plan_says_that_it_ends_after_an_index_that_is_built(bench: Workbench) -> None:
    class Built:
        def foresee(self, recipe: Any) -> tuple[str, bool]:
            return "tiny", True

    def experiment(request: ExperimentRequest) -> Experiment:
        index = yield IndexRequest("tiny", None)
        raise LookupError(f"{index.name} is not open in a dry run")

    context: Any = Built()
    assert "after 'tiny' depends" in plan(request(bench), experiment, context).open_end
