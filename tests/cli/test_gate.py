"""``rallebench gate``: every exit code on small scripted runs, and the files for CI."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from small_workspace import (
    CommandLine,
    Ran,
    chain,
    everything,
    generate,
    read_lines,
    record,
    scripted,
    write_lines,
)

from rallebench import RalleError, Workspace, gate
from rallebench.analysis.timing import REPLAYED

COUNT = 60
LONG = "yes and much more than that " * 2
"""A reply of twelve tokens; the usual one has one."""


def no_to(count: int) -> dict[str, Any]:
    """Settings of a model that is wrong on the first ``count`` questions."""
    return {"replies": {f"number {i:02}": "no" for i in range(count)}, "default": "yes"}


MODELS: Mapping[str, Mapping[str, Any]] = {
    "right": {"default": "yes"},
    "two-wrong": no_to(2),
    "many-wrong": no_to(12),
    "three-words": {"default": "yes it is"},
    "wordy": {"replies": {f"number {i}": LONG for i in (1, 2, 3)}, "default": "yes"},
    "judge": {"default": '{"truthfulness": 4, "relevance": 5}'},
}


@pytest.fixture(scope="session")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gates") / "workspace"
    for name in ("chains", "datasets"):
        (folder / name).mkdir(parents=True)
    (folder / "llms.json").write_text(json.dumps(scripted(MODELS)))
    (folder / "chains" / "closed.json").write_text(
        json.dumps(chain("closed", generate("{question}", "right")))
    )
    rows = [record(f"q{i:02}", f"Is number {i:02} so?", "yes", f"p{i}") for i in range(COUNT)]
    write_lines(folder / "datasets" / "items.jsonl", rows)
    return folder


@pytest.fixture
def run(cli: CommandLine) -> Any:
    """Run the chain with a model, under the model's name or another."""

    def start(llm: str, name: str = "", *more: str | int) -> None:
        words = ("--llm", llm, "--name", name or llm, "--metrics", "em,completion_tokens,seconds")
        ran = cli("run --no-mlflow --chain closed --dataset items", *words, *more)
        assert ran.code == 0, ran.err

    return start


@pytest.fixture
def three(run: Any) -> None:
    for llm in ("right", "two-wrong", "many-wrong"):
        run(llm)


def test_each_outcome_has_its_exit_code_and_sentence(cli: CommandLine, three: None) -> None:
    expected = {
        "many-wrong right": (0, "right is not worse than many-wrong by more than 0.02."),
        "right two-wrong": (3, "Undecided: two-wrong may or may not be worse than right by"),
        "right many-wrong": (4, "many-wrong is worse than right by more than 0.02."),
    }
    for names, (code, sentence) in expected.items():
        base, new = names.split()
        ran = cli(f"gate {new} --against {base} --metric em")
        assert ran.code == code and ran.out.startswith(sentence), ran.out + ran.err
        assert "95 % interval" in ran.out


def test_the_interval_is_that_of_compare_and_the_margin_decides(
    cli: CommandLine, three: None
) -> None:
    compared = cli.json("compare right many-wrong --metric em")
    for margin, code in ((0.0, 4), (-compared["high"] - 0.01, 4), (0.2, 3), (0.5, 0)):
        ran = cli(f"gate many-wrong --against right --margin {margin} --json")
        value = ran.json
        assert (ran.code, value["exit_code"]) == (code, code)
        same = ("difference", "low", "high", "n")
        assert [value[key] for key in same] == [compared[key] for key in same]
    assert value["difference"] == pytest.approx(-12 / COUNT) and value["n"] == COUNT


def test_a_lower_confidence_decides_what_a_higher_leaves_open(
    cli: CommandLine, three: None
) -> None:
    codes = []
    for confidence in (0.5, 0.9, 0.999):
        ran = cli(f"gate many-wrong --against right --margin 0.12 --confidence {confidence} --json")
        codes.append(ran.code)
        assert ran.json["confidence"] == confidence
    assert codes == [4, 4, 3] or codes == [4, 3, 3]


def test_an_undecided_gate_says_how_many_more_articles_would_decide(
    cli: CommandLine, three: None
) -> None:
    value = cli("gate two-wrong --against right --json").json
    gaps = np.array([-1.0] * 2 + [0.0] * (COUNT - 2))
    ratio = gaps.std(ddof=1) / abs(gaps.mean() + 0.02)
    needed = math.ceil((ratio * (1.959964 + 0.841621)) ** 2 + 1.959964**2 / 2) - COUNT
    assert (value["outcome"], value["needed"], value["units"]) == ("undecided", needed, COUNT)
    assert f"it takes about {needed:,} more articles (80 % power)" in value["reason"]
    assert value["lost"] == ["q00", "q01"] and value["gained"] == []


def test_equal_runs_pass_and_no_number_of_articles_decides_a_difference_at_the_margin(
    cli: CommandLine, run: Any
) -> None:
    run("right")
    run("right", "again")
    assert cli("gate again --against right --margin 0.06").code == 0
    ran = cli("gate again --against right")
    assert ran.code == 3 and f"it takes {183 - COUNT} more articles" in ran.out
    ran = cli("gate again --against right --margin 0")
    assert ran.code == 3 and "more articles would not decide it" in ran.out


def test_of_a_metric_of_which_less_is_better_the_gate_is_flipped(
    cli: CommandLine, run: Any
) -> None:
    run("three-words")
    run("wordy")
    longer = [
        cli(f"gate wordy --against three-words --metric completion_tokens --margin {margin}").code
        for margin in (0.5, 3.5, 9)
    ]
    assert longer == [4, 3, 0], "half of the answers have nine tokens more, half have two less"
    shorter = cli("gate three-words --against wordy --metric completion_tokens --margin 0 --json")
    assert shorter.code == 0 and shorter.json["difference"] == pytest.approx(-3.5)
    assert shorter.json["higher_is_better"] is False


def test_too_few_articles_are_undecided_with_the_reason(cli: CommandLine, run: Any) -> None:
    for llm in ("right", "many-wrong"):
        run(llm, "", "--limit", 6)
    ran = cli("gate many-wrong --against right")
    assert ran.code == 3
    assert "6 articles are too few for an interval: to decide it takes about 4 more" in ran.out


def test_an_edited_dataset_is_compared_by_its_common_questions(
    cli: CommandLine, run: Any, workspace: Path
) -> None:
    run("right")
    file = workspace / "datasets" / "items.jsonl"
    rows = read_lines(file)
    rows[3]["output"][0]["answer"] = "never"
    write_lines(file, rows[:-1])
    run("right", "edited")
    ran = cli("gate edited --against right")
    assert ran.code == 2 and ran.out == ""
    assert ran.last == (
        "Only 58 of 60 questions are the same in 'right' and 'edited'; compare these alone with --common."
    )
    ran = cli("gate edited --against right --common --margin 0.1 --json")
    assert (ran.code, ran.json["n"]) == (0, 58)
    assert "58 of 60 questions are the same in both" in ran.json["warnings"][0]


def test_runs_scored_by_two_versions_are_not_compared_until_both_are_scored_again(
    cli: CommandLine, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("right")
    run("right", "later")
    with monkeypatch.context() as patch:
        patch.setattr("rallebench.engine.score.__version__", "9.9")
        assert cli("score --run later").code == 0
    ran = cli("gate later --against right")
    assert ran.code == 2 and "'right' and 'later' were scored by rallebench" in ran.last
    assert ran.last.endswith("and 9.9; score both again.")
    assert cli("score --run later").code == 0
    assert cli("gate later --against right --margin 0.1").code == 0


def test_scores_of_another_judge_are_not_compared(
    cli: CommandLine, run: Any, workspace: Path
) -> None:
    run("right")
    run("right", "other")
    llms = json.loads((workspace / "llms.json").read_text())
    for name, score in (("right", 4), ("other", 5)):
        reply = json.dumps({"truthfulness": score, "relevance": 5})
        llms["judge"]["settings"]["default"] = reply
        (workspace / "llms.json").write_text(json.dumps(llms))
        assert cli(f"score --run {name} --metrics truthfulness:judge").code == 0
    ran = cli("gate other --against right --metric truthfulness:judge")
    assert ran.code == 2
    assert "were judged by another model or prompt for truthfulness:judge" in ran.last


def test_times_from_the_cache_are_not_compared(cli: CommandLine, run: Any) -> None:
    run("right")
    run("right", "again")
    ran = cli("gate again --against right --metric seconds")
    assert (ran.code, ran.last) == (2, REPLAYED)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("right --against right", "One run is chosen twice; compare different runs."),
        ("right --against none", "There is no run 'none'"),
        ("right --against half", "The run 'half' is not finished: no question answered"),
        ("right --against wordy --metric nope", "nope"),
        ("right --against wordy --margin -0.1", "The margin is -0.1; it must be 0 or more."),
        ("right --against wordy --margin nan", "The margin is nan; it must be 0 or more."),
        ("right --against wordy --margin x", "invalid float value: 'x'"),
        (
            "right --against wordy --margin 2",
            "The margin is 2, but em ranges from 0 to 1, so no run could be worse by more; 2 points are written 0.02.",
        ),
        ("right --against wordy --metric em --margin 1", "2 points are written 0.02."),
        ("right --against wordy --confidence 1", "The confidence is 1; it must lie between 0"),
        ("right --against wordy --confidence 95", "The confidence is 95; it must lie between 0"),
        ("right --against wordy --metric length", "Neither a higher nor a lower length"),
        ("right --against wordy --junit .", "--junit . is a folder"),
        ("right", "--against"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    words: str, sentence: str, cli: CommandLine, run: Any, workspace: Path
) -> None:
    for llm, name in (("right", ""), ("wordy", ""), ("right", "half")):
        run(llm, name)
    (workspace / "runs" / "half" / "report.json").unlink()
    before = everything(workspace)
    ran = cli(f"gate {words}")
    assert ran.code == 2 and ran.out == "" and everything(workspace) == before
    assert sentence in ran.last and "Traceback" not in ran.err


def read_files(
    cli: CommandLine, tmp_path: Path, new: str, margin: float
) -> tuple[Ran, ElementTree.Element, str]:
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    ran = cli(f"gate {new} --against right --margin {margin} --junit", junit, "--summary", summary)
    return ran, ElementTree.parse(junit).getroot(), summary.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("new", "margin", "element", "heading"),
    [
        ("again", 0.1, "", "### Passed: again against right"),
        ("two-wrong", 0.02, "error", "### Undecided: two-wrong against right"),
        ("many-wrong", 0.02, "failure", "### Worse: many-wrong against right"),
    ],
)
def test_junit_and_summary_tell_the_outcome(
    new: str,
    margin: float,
    element: str,
    heading: str,
    cli: CommandLine,
    run: Any,
    three: None,
    tmp_path: Path,
) -> None:
    run("right", "again")
    ran, root, summary = read_files(cli, tmp_path, new, margin)
    (case,) = root.iter("testcase")
    assert case.get("name") == f"{new} against right by em"
    assert [child.tag for child in case] == [element] * bool(element)
    for level in (root, *root.iter("testsuite")):
        counts = {kind: level.get(f"{kind}s") for kind in ("failure", "error")}
        assert counts == {kind: str(int(kind == element)) for kind in counts}
    verdict = ran.out.splitlines()[0]
    if element:
        reason = case[0].get("message")
        assert reason == verdict
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert (properties["metric"], properties["margin"], properties["n"]) == (
        *("em", str(margin), "60"),
    )
    assert summary.startswith(heading) and f"**{verdict}**" in summary
    rows = [line for line in summary.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and {line.count("|") for line in rows} == {9}
    assert ("Worse on 12: q00, q01" in summary) == (new == "many-wrong")


def test_python_has_the_same_gate(cli: CommandLine, three: None, workspace: Path) -> None:
    value = cli("gate many-wrong --against right --json").json
    with Workspace(workspace, track=False) as ws:
        new, base = ws.run_result("many-wrong"), ws.run_result("right")
        decided = gate(new, base)
        assert not decided.passed and json.loads(json.dumps(decided.to_json())) == value
        assert str(decided) == value["reason"]
        with pytest.raises(RalleError, match="it must be 0 or more"):
            gate(new, base, margin=-1)
        with pytest.raises(RalleError, match=r"2 points are written 0\.02"):
            gate(new, base, margin=2)
