"""A suite's runs and costs are known before it runs: exactly if possible, else marked as a guess."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from performing import plan, probe, run_suite
from small_suites import SETTINGS, part, small_suites  # noqa: F401 - a fixture
from small_workspace import CommandLine, add_llm, everything

from rallebench.core.errors import BackendError, MismatchError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.forecast import Forecast, Interval, PilotCosts, PilotSample, Range
from rallebench.core.registry import Entry
from rallebench.experiments import EXPERIMENTS, SUITES
from rallebench.services.workbench import Workbench

pytestmark = pytest.mark.usefixtures("small_suites")


def suite_request(
    bench: Workbench, suite: str, llm: str = "titan", limit: int | None = None, **settings: str
) -> ExperimentRequest:
    return ExperimentRequest(bench.workspace, llm, SUITES.settings(suite, settings), limit)


def plan_suite(bench: Workbench, suite: str, name: str = "n", **more: Any) -> Forecast:
    return plan(suite, suite_request(bench, suite, **more), name)


def run(bench: Workbench, suite: str, name: str = "n", **more: Any) -> None:
    list(run_suite(bench, suite, suite_request(bench, suite, **more), name, track=False))


def test_parts_calls_and_searches_are_counted_without_loading_anything(bench: Workbench) -> None:
    before = everything(bench.workspace.path)
    found = plan_suite(bench, "small-alone", times="3", search="true", limit=5)
    assert [(p.label, p.questions, p.open, p.generations, p.retrievals) for p in found.runs] == [
        (f"time {n}", 5, 5, Range(5, 5), Range(5, 5)) for n in (1, 2, 3)
    ]
    assert found.notes == ()
    assert bench.models.status() == []
    assert everything(bench.workspace.path) == before


def test_what_a_run_of_that_name_has_answered_is_not_left(bench: Workbench) -> None:
    run(bench, "small-alone", times="1")
    actual = [(p.open, p.generations) for p in plan_suite(bench, "small-alone", times="2").runs]
    assert actual == [(0, Range(0, 0)), (8, Range(8, 8))]


def test_a_part_made_of_answers_is_a_guess_until_they_are_there(bench: Workbench) -> None:
    first, judged = plan_suite(bench, "small-judged").runs
    assert (first.depends, judged.depends, judged.questions, judged.run) == (False, True, 8, "")
    assert (
        "judged: made of the answers of earlier runs" in plan_suite(bench, "small-judged").notes[0]
    )
    run(bench, "small-judged")
    again = plan_suite(bench, "small-judged")
    expected = [(False, 0), (False, 0)]
    assert [(p.depends, p.open) for p in again.runs] == expected
    assert again.notes == ()


def test_an_end_that_only_answers_tell_is_said_to_be_open(bench: Workbench) -> None:
    found = plan_suite(bench, "small-unforeseen")
    assert [(p.label, p.depends) for p in found.runs] == [("time 1", False), ("time 2", True)]
    assert found.open_end == "How many runs there are depends on the answers; at least 1."
    run(bench, "small-unforeseen")
    assert [p.label for p in plan_suite(bench, "small-unforeseen").runs] == ["time 1"]
    assert not plan_suite(bench, "small-unforeseen").notes


def test_a_name_of_other_settings_is_refused_before_anything_runs(bench: Workbench) -> None:
    run(bench, "small-alone", times="1")
    with pytest.raises(MismatchError, match=r"settings\.words = 'short', you asked for 'long'"):
        plan_suite(bench, "small-alone", words="long")
    with pytest.raises(UsageError, match="needs a language model"):
        plan_suite(bench, "small-alone", llm="")


def costs(forecast: Forecast) -> PilotCosts:
    assert forecast.pilot is not None
    return forecast.pilot


def test_a_suite_that_asks_no_model_says_so_and_costs_nothing() -> None:
    found = Forecast("small-alone", "n", ()).measure([])
    assert found.notes == ("It asks no model: it only works on existing files.",)
    assert costs(found).total["usd"] == Interval(0, 0, 0)


# costs


def probe_suite(bench: Workbench, suite: str, questions: int = 2, **more: Any) -> Forecast:
    found = plan_suite(bench, suite, **more)
    *_, last = probe(bench, found, suite_request(bench, suite, **more), questions=questions)
    assert isinstance(last, Forecast)
    return last


def test_a_few_questions_are_answered_and_carried_over_to_all_left(bench: Workbench) -> None:
    found = probe_suite(bench, "small-alone")
    assert [sample.questions for sample in costs(found).samples if sample] == [2, 2]
    assert costs(found).total["model_calls"] == Interval(16, 16, 16)
    assert costs(found).total["completion_tokens"].value == 16
    assert (
        costs(found).total["seconds"].value is not None and costs(found).total["usd"] == Interval()
    )
    assert "US dollars are not known for titan (no prices)." in found.notes
    assert not (bench.workspace.path / "runs").exists()


def test_what_the_probe_asked_is_not_asked_again(bench: Workbench) -> None:
    probe_suite(bench, "small-alone", times="1")
    run(bench, "small-alone", times="1")
    steps = [
        step
        for episode in bench.runs.open("n time 1").episodes().values()
        for step in episode.steps
    ]
    assert sum(step.cached for step in steps) == 2


def test_a_later_part_is_probed_with_the_answers_of_the_probe(bench: Workbench) -> None:
    found = probe_suite(bench, "small-judged")
    assert [sample.questions for sample in costs(found).samples if sample] == [2, 2]
    assert costs(found).parts[1]["model_calls"].value == 8


def cost(seconds: float = 1.0, usd: float | None = None) -> dict[str, float | None]:
    """The cost of an answer."""
    counts = {"model_calls": 1, "retrievals": 0, "prompt_tokens": 10, "completion_tokens": None}
    return {**counts, "seconds": seconds, "usd": usd}


def test_the_bounds_are_those_of_the_least_and_the_largest_question(bench: Workbench) -> None:
    made = plan_suite(bench, "small-alone", times="1")
    rows = (cost(1.0, 0.5), cost(3.0, 0.5))
    total = costs(made.measure([PilotSample(2, 0, rows)])).total
    assert total["seconds"] == Interval(16, 8, 24)
    assert total["usd"] == Interval(4, 4, 4) and total["completion_tokens"] == Interval()
    assert costs(made.measure([PilotSample(1, 0, rows[:1])])).total["seconds"] == Interval(8, 8, 8)


def test_a_part_that_was_not_reached_is_estimated_from_similar_parts_and_says_so(
    bench: Workbench,
) -> None:
    made = plan_suite(bench, "small-alone", times="2")
    found = made.measure([PilotSample(2, 1, (cost(), cost()), "It broke."), None])
    assert costs(found).parts[1]["seconds"].value == 8
    assert "time 2: not asked; estimated from similar runs." in found.notes
    (failure,) = [note for note in found.notes if note.startswith("1 of the probe's questions")]
    assert "It broke." in failure
    assert costs(made.measure([None, None])).total["seconds"] == Interval()


def test_a_probe_whose_questions_all_fail_ends_with_the_reason(bench: Workbench) -> None:
    with pytest.raises(
        BackendError,
        match="All 2 questions that the probe asked of 'time 1' failed: The script of 'mute'",
    ):
        probe_suite(bench, "small-alone", llm="mute")
    with pytest.raises(UsageError, match="at least 1"):
        probe_suite(bench, "small-alone", questions=0)


def forgiving(asked: ExperimentRequest) -> Experiment:
    """Continue without the failing parts, as R-Eval does; raise an error of its own if none is left."""
    answered = None
    for number in (1, 2):
        with contextlib.suppress(BackendError):
            answered = yield part(asked, number)
    if answered is None:
        raise BackendError("No part could be run.")
    return Report()


def test_why_parts_could_not_be_probed_is_said_where_the_suite_goes_on_without_them(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    add_llm(cli.workspace, "dead", "openai_compatible", **dead)
    monkeypatch.setitem(
        EXPERIMENTS._entries,
        "small-forgiving",
        Entry("small-forgiving", forgiving, "Forgives.", {"place": "suites"}, SETTINGS),
    )
    ran = cli("suite small-forgiving --plan --llm dead --probe 1")
    (said,) = [line for line in ran.out.splitlines() if "could not be probed" in line]
    assert said.startswith("Note: time 1, time 2: could not be probed: ") and "127.0.0.1:9" in said
    assert ran.code == 0
    assert "not reached by the probe" not in ran.out
    assert "Measured on" not in ran.out
    assert "The sums are not known." in ran.out


def test_an_unprobed_part_is_estimated_from_others_beside_the_reason(bench: Workbench) -> None:
    made = plan_suite(bench, "small-alone", times="2")
    down = PilotSample(0, 0, (), "The server is down.")
    found = made.measure([PilotSample(1, 0, (cost(usd=0.0),)), down])
    assert costs(found).parts[1]["seconds"].value == 8 and costs(found).total["seconds"].value == 16
    assert found.notes[0] == "time 2: could not be probed: The server is down."
    assert "1 questions of 1 part " in found.notes[1]
    assert "time 2: not asked; estimated from similar runs." in found.notes


# on the command line


def test_plan_prints_parts_and_costs_and_writes_no_run(cli: CommandLine) -> None:
    ran = cli("suite", "small-alone", "--plan", "--llm", "titan", "--name", "n", "--probe", "1")
    assert ran.code == 0 and "n would run" in ran.out and "completion tokens" in ran.out
    expected = [["time", "1", "8", "8"], ["time", "2", "8", "8"], ["all", "16", "16", "16"]]
    assert [line.split()[:4] for line in ran.out.splitlines()[2:5]] == expected
    value = cli.json("suite", "small-alone", "--plan", "--llm", "titan", "--probe", "0")
    assert value["total"]["generations"] == {"low": 16, "high": 16} and value["probe"] is None
    assert not (cli.workspace / "runs").exists()
    assert not (cli.workspace / "experiments").exists()
    assert cli("suite", "small-alone", "--llm", "titan", "--probe", "1").code == 2
    assert cli("suite", "small-alone", "--plan", "--llm", "titan", "--probe", "-1").code == 2


def test_the_suites_tables_are_printed_and_in_json_with_intervals(cli: CommandLine) -> None:
    ran = cli("suite", "small-alone", "--llm", "titan", "--name", "n", "--no-mlflow")
    lines = ran.out.splitlines()
    at = lines.index("Right <i>answers</i> (percent)")
    assert lines[at + 1].split() == ["time", "right", "not", "measured", "word"]
    assert lines[at + 2].startswith("time 1")
    assert "12.50 [1.0, 156.6] n=8" in lines[at + 2]
    assert "–" in lines[at + 2]
    assert lines[at + 4].split()[:4] == ["the", "paper", "50.00", "3"]
    assert lines[at + 5] == "A note."
    value = cli.json("suite", "small-alone", "--llm", "titan", "--name", "n", "--no-mlflow")
    assert value["tables"][0]["rows"][0][1]["n"] == 8
    assert value["plots"][0]["series"]["ours"][0][1]["value"] == 0.125


def test_a_name_that_another_suite_has_is_refused_and_its_report_stays(cli: CommandLine) -> None:
    cli.json("suite", "small-alone", "--llm", "titan", "--name", "n", "--no-mlflow")
    before = everything(cli.workspace)
    ran = cli("suite", "small-judged", "--llm", "titan", "--name", "n", "--no-mlflow")
    assert ran.code == 2 and "The name 'n' is that of the suite 'small-alone' already" in ran.last
    changed = {path for path, when in everything(cli.workspace).items() if before.get(path) != when}
    assert not {path for path in changed if path.startswith(("runs", "suites"))}
