"""From stored episodes to numbers: counted and omitted questions, the certainty of a mean, RaLLe's files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from run_folders import described

from rallebench.analysis import deployment
from rallebench.chains.ralle import experiment_from_json, experiment_to_json
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.report import Estimate, RunReport
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Example,
    Generate,
    Gold,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.metric_choice import choose_metrics, has_gold
from rallebench.engine.ralle_files import (
    output_row,
    prompts_text,
    reduced_row,
    results,
    write_ralle_files,
)
from rallebench.engine.score import score_episode, score_run, stored_examples
from rallebench.engine.store import RunFolder
from rallebench.papers.ralle.predictions import score_kilt
from rallebench.tracking.metrics import headlines

GOLD = [
    ("q0", "Titan", "p1"),
    ("q1", "Triton", "p2"),
    ("q2", "Texas", "p3"),
    ("q3", "Danube", "p4"),
]
RECORDS: list[dict[str, Any]] = [
    {
        "id": qid,
        "input": f"{qid}?",
        "output": [{"answer": answer, "provenance": [{"wikipedia_id": page}]}],
    }
    for qid, answer, page in GOLD
]
CHAIN = Chain(
    "read",
    (
        Action("retrieve", "{question}", target="tiny", k=3),
        Action("generate", "{response[0]} {question}", target="far", generation={"max_tokens": 5}),
        Action("identity", "'the ' + response[1]", "eval"),
    ),
)
SPEC: dict[str, Any] = {
    "fingerprint": "0123456789ab",
    "spec": {"dataset": "tiny", "workflow": "chain", "settings": {}, "limit": None, "seed": 0},
    "metrics": ["em"],
    "batch_size": 2,
}
METRICS = (
    "em",
    "f1",
    "has_answer",
    "has_answer_all",
    "Rprec",
    "recall@5",
    "KILT-em",
    "seconds",
    "prompt_tokens",
)


def episode(qid: str, answer: str, pages: Sequence[str] = (), error: str = "") -> Episode:
    """Three actions: a retrieval of one passage per page, a model that replies ``answer``, an identity."""
    hits = tuple(
        Hit(Passage(f"d{p}", f"Text {p}.", f"Title {p}", p), 1.0 / n)
        for n, p in enumerate(pages, 1)
    )
    steps = (
        Step(
            Retrieve("tiny", f"{qid}?", 3),
            Reply("; ".join(h.passage.text for h in hits), hits),
            0.25,
        ),
        Step(
            Generate("far", (Message("system", "Be brief."), Message("user", f"prompt {qid}"))),
            Reply(answer, prompt_tokens=10, completion_tokens=2),
            0.5,
            cached=qid == "q1",
        ),
        Step(Note(answer), Reply(answer)),
    )
    return Episode(
        qid, "chain", steps[:1] if error else steps, None if error else Outcome(answer), error
    )


RIGHT = episode("q0", "Titan", ["p1", "p1", "p9"])
NO_PAGE = episode("q1", "triton.", ["p9"])
SILENT = episode("q2", "", ["p3"])
FAILED = episode("q3", "", ["p4"], error="far is down")


def make(
    runs: Path, episodes: Sequence[Episode], records: Sequence[Mapping[str, Any]] = RECORDS
) -> RunFolder:
    folder = RunFolder.create(runs, described("x", SPEC), records)
    with folder.log() as log:
        for number, done in enumerate(episodes, 1):
            folder.append(log, done, "s1", number * 2.0)
    return folder


def scored(
    folder: RunFolder, names: Sequence[str] = METRICS
) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """The report, and (question, metric) → the line of ``scores.jsonl``."""
    report = score_run(folder, names).to_json()
    rows = [json.loads(line) for line in (folder.path / "scores.jsonl").read_text().splitlines()]
    return report, {(row["qid"], row["metric"]): row for row in rows}


# ── the report ───────────────────────────────────────────────────────────────


def test_a_report_counts_what_was_asked_done_and_failed(tmp_path: Path) -> None:
    report, _ = scored(make(tmp_path, [RIGHT, NO_PAGE, FAILED]))
    counts = {key: report[key] for key in ("n", "n_done", "n_errors", "complete")}
    assert counts == {"n": 4, "n_done": 3, "n_errors": 1, "complete": False}
    assert report["errors"] == {"far is down": 1}
    assert (report["steps"], report["steps_from_memory"]) == (7, 1)
    assert (report["prompt_tokens"], report["completion_tokens"]) == (20, 4)
    assert report["seconds"] == 6.0, "by the clock"
    assert (report["dataset"], report["fingerprint"]) == ("tiny", "0123456789ab")
    stored = RunFolder(tmp_path / "x").report()
    assert stored is not None and json.loads(json.dumps(stored.to_json())) == json.loads(
        json.dumps(report)
    )


def test_seconds_a_question_are_those_of_its_steps_whoever_says_it(tmp_path: Path) -> None:
    folder = make(tmp_path, [RIGHT, NO_PAGE, FAILED])
    report, _ = scored(folder)
    mean = report["metrics"]["seconds"]["value"]
    assert mean == 0.75 and report["seconds_per_question"] == mean != report["seconds"] / 3
    assert report["cost"]["per_question"]["seconds"]["mean"] == mean
    value = folder.report()
    assert value is not None
    assert results(value)["sec per query"] == mean
    assert headlines(value)["sec per query"] == mean
    assert deployment.costs(value)["seconds_per_question"] == mean


def test_a_failed_question_is_counted_and_never_scored_0(tmp_path: Path) -> None:
    report, rows = scored(make(tmp_path, [RIGHT, NO_PAGE, SILENT, FAILED]))
    for name in METRICS:
        failed = {"qid": "q3", "metric": name, "value": None, "note": "far is down"}
        assert rows["q3", name] == failed
    assert report["metrics"]["em"]["value"] == pytest.approx(2 / 3), "two of three, not two of four"
    assert {name: report["metrics"][name]["n"] for name in METRICS} == {
        **dict.fromkeys(METRICS, 3),
        "has_answer": 2,
    }, "has_answer leaves the empty answer out, as RaLLe does"
    assert (report["n"], report["n_errors"], report["complete"]) == (4, 1, True)


def test_values_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    report, rows = scored(make(tmp_path, [RIGHT, NO_PAGE, SILENT, FAILED]))
    by_hand = {
        "em": (1.0, 1.0, 0.0),
        "f1": (1.0, 1.0, 0.0),
        "has_answer": (1.0, 1.0, None),
        "has_answer_all": (1.0, 1.0, 0.0),
        "Rprec": (1.0, 0.0, 1.0),
        "recall@5": (1.0, 0.0, 1.0),
        "KILT-em": (1.0, 0.0, 0.0),
        "seconds": (0.75, 0.75, 0.75),
        "prompt_tokens": (10.0, 10.0, 10.0),
    }
    for name, values in by_hand.items():
        assert tuple(rows[f"q{n}", name]["value"] for n in range(3)) == values, name
        known = [value for value in values if value is not None]
        assert report["metrics"][name]["value"] == pytest.approx(sum(known) / len(known)), name


def test_a_run_without_any_answer_has_no_means(tmp_path: Path) -> None:
    report, _ = scored(make(tmp_path, [FAILED]), ["em"])
    assert report["metrics"]["em"] == {"value": None, "low": None, "high": None, "n": 0}
    report, _ = scored(make(tmp_path / "other", []), ["em"])
    assert (report["n"], report["n_done"], report["seconds_per_question"]) == (4, 0, None)
    assert report["metrics"]["em"]["n"] == 0


def test_the_last_line_of_a_question_is_the_one_that_is_scored(tmp_path: Path) -> None:
    report, rows = scored(
        make(tmp_path, [episode("q0", "wrong"), FAILED, RIGHT, episode("q3", "Danube")])
    )
    assert (rows["q0", "em"]["value"], rows["q3", "em"]["value"]) == (1.0, 1.0)
    assert (report["n_done"], report["n_errors"], report["errors"]) == (2, 0, {})


def test_a_question_without_gold_says_so(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [*RECORDS[:1], {"id": "q1", "input": "?", "output": []}]
    _, rows = scored(make(tmp_path, [RIGHT, NO_PAGE], records), ["em", "Rprec"])
    unscored = {"qid": "q1", "metric": "em", "value": None, "note": "no gold answers"}
    assert rows["q1", "em"] == unscored
    assert rows["q1", "Rprec"]["note"] == "no gold provenance"
    assert "note" not in rows["q0", "em"]


def test_scoring_again_asks_nothing_and_keeps_the_episodes(tmp_path: Path) -> None:
    folder = make(tmp_path, [RIGHT, NO_PAGE])
    before = (folder.path / "episodes.jsonl").read_bytes()
    scored(folder, ["em"])
    report, _ = scored(folder, ["recall@1"])
    assert list(report["metrics"]) == ["recall@1"]
    assert (folder.path / "episodes.jsonl").read_bytes() == before


def test_ids_are_compared_as_stripped_text(tmp_path: Path) -> None:
    records = [{**RECORDS[0], "id": 7}, {**RECORDS[1], "id": " q1 "}]
    folder = make(tmp_path, [episode("7", "Titan"), episode("q1", "Triton")], records)
    assert [example.question.qid for example in stored_examples(folder)] == ["7", "q1"]
    report = score_run(folder, ["em"])
    assert report["em"].estimate.value == 1.0
    write_ralle_files(folder.path, folder.records(), folder.episodes(), report, None, None)
    rows = [json.loads(line) for line in (folder.path / "output.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [7, " q1 "], "RaLLe writes ids as they came"


# ── which metrics ────────────────────────────────────────────────────────────


def examples(**gold: Any) -> list[Example]:
    return [Example(Question("q", "?"), Gold(**gold)), Example(Question("r", "?"), Gold())]


def test_by_default_all_metrics_are_taken_that_the_gold_allows() -> None:
    both = choose_metrics(None, examples(answers=("x",), provenance=(frozenset("p"),)), "d")
    assert {"em", "f1", "rougel", "has_answer", "KILT-em", "Rprec", "recall@5"} <= set(both)
    only_answers = choose_metrics(None, examples(answers=("x",)), "d")
    assert "em" in only_answers and not {"Rprec", "KILT-em", "recall@5"} & set(only_answers)
    only_pages = choose_metrics((), examples(provenance=(frozenset("p"),)), "d")
    assert "Rprec" in only_pages and not {"em", "KILT-em", "answer_in_context@5"} & set(only_pages)
    without_gold = {"seconds", "prompt_tokens", "completion_tokens"}
    assert set(choose_metrics(None, examples(), "d")) == without_gold
    counts = has_gold(examples(answers=("x",)))
    assert counts == {"answers": 1, "provenance": 0, "required": 0, "unanswerable": 0, "claims": 0}


def test_a_set_with_required_answers_is_also_scored_by_them() -> None:
    required = {"str_em", "str_hit", "list_f1"}
    assert required <= set(choose_metrics(None, examples(required=(("x",),)), "d"))
    assert not required & set(choose_metrics(None, examples(answers=("x",)), "d"))
    with pytest.raises(UsageError, match=r"str_em needs required answers; d has none"):
        choose_metrics(["str_em"], examples(answers=("x",)), "d")


def test_a_set_with_unanswerable_questions_is_also_scored_by_kind() -> None:
    kinds = {"em_answerable", "f1_answerable", "em_unanswerable"}
    mixed = [*examples(answers=("x",)), *examples(unanswerable=True)]
    assert kinds | {"em", "f1", "rougel"} <= set(choose_metrics(None, mixed, "d"))
    assert not kinds & set(choose_metrics(None, examples(answers=("x",)), "d"))
    only = choose_metrics(None, examples(unanswerable=True), "d")
    assert {"em", "f1", "em_unanswerable"} <= set(only)
    assert not {"em_answerable", "rougel", "Rprec", "KILT-em"} & set(only)
    with pytest.raises(UsageError, match=r"rougel needs answers; d has none"):
        choose_metrics(["rougel"], examples(unanswerable=True), "d")
    with pytest.raises(UsageError, match=r"em_unanswerable needs unanswerable questions; d has"):
        choose_metrics(["em_unanswerable"], examples(answers=("x",)), "d")


def test_a_metric_whose_gold_is_absent_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"KILT-em needs provenance; squad has none\. Drop that metric"
    ):
        choose_metrics(["em", "KILT-em"], examples(answers=("x",)), "squad")


def test_ralles_names_of_metrics_are_understood_and_unknown_ones_are_not() -> None:
    have = examples(answers=("x",), provenance=(frozenset("p"),))
    assert choose_metrics(["recall_at_5", "em"], have, "d") == ("recall@5", "em")
    twice = choose_metrics(["recall@5", "em", "recall_at_5", "em"], have, "d")
    assert twice == ("recall@5", "em"), "a metric that is asked for twice is computed once"
    with pytest.raises(NotFoundError, match=r"There is no metric 'rouge'\. Did you mean 'rougel'"):
        choose_metrics(["rouge"], have, "d")


def test_an_episode_is_scored_by_each_metric_in_the_asked_order() -> None:
    (example, _) = examples(answers=("Titan",))
    found = score_episode(RIGHT, example, ["f1", "em"])
    assert [(score.metric, score.value) for score in found] == [("f1", 1.0), ("em", 1.0)]


# ── RaLLe's files ────────────────────────────────────────────────────────────


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder of a run of four questions, one of them failed, with RaLLe's files."""
    folder = make(tmp_path, [RIGHT, NO_PAGE, SILENT, FAILED])
    report = score_run(folder, (*METRICS, "accuracy", "rougel", "KILT-f1", "recall@10"))
    config = experiment_to_json(CHAIN, "tiny", -1, 2)
    write_ralle_files(folder.path, folder.records(), folder.episodes(), report, CHAIN, config)
    return folder.path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_output_has_a_line_per_question_with_prompts_and_outcomes(written: Path) -> None:
    rows = read(written / "output.jsonl")
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    page = {"wikipedia_id": "p9", "doc_id": "dp9", "wikipedia_title": "Title p9"}
    assert rows[1] == {
        "id": "q1",
        "input": "q1?",
        "output": [
            {"prompt": "q1?", "provenance": [{**page, "text": "Text p9."}]},
            {"prompt": "prompt q1", "answer": "triton."},
            {"prompt": "triton.", "answer": "triton."},
        ],
    }
    assert rows[3]["error"] == "far is down"
    assert len(rows[3]["output"]) == 1


def test_reduced_output_has_all_pages_and_the_last_answers_alone(written: Path) -> None:
    rows = read(written / "output_reduced.jsonl")
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    provenance = [{"wikipedia_id": page, "doc_id": f"d{page}"} for page in ("p1", "p1", "p9")]
    assert rows[0] == {"id": "q0", "output": [{"provenance": provenance, "answer": "Titan"}]}
    assert rows[2]["output"][0]["answer"] == ""


def test_two_retrievals_are_joined_in_order_and_no_model_means_no_answer() -> None:
    pages = [Hit(Passage(f"d{n}", "t", "T", f"p{n}"), 1.0) for n in range(3)]
    steps = (
        Step(Retrieve("a", "x", 2), Reply("", tuple(pages[:2]))),
        Step(Retrieve("b", "y", 1), Reply("", (pages[2],))),
    )
    episode = Episode("q", "chain", steps, Outcome(""))
    row = reduced_row({"id": "q"}, episode)
    assert [item["wikipedia_id"] for item in row["output"][0]["provenance"]] == ["p0", "p1", "p2"]
    assert row["output"][0]["answer"] == ""
    parts = output_row({"id": "q"}, episode)["output"]
    assert [list(part) for part in parts] == [["prompt", "provenance"]] * 2


def test_results_have_ralles_structure_and_say_of_how_many(written: Path) -> None:
    value = json.loads((written / "results.json").read_text())
    assert value["kilt"].keys() == {"KILT-em", "KILT-f1"}
    assert value["downstream"].keys() == {"accuracy", "em", "f1", "rougel", "has_answer"}
    assert value["retrieval"].keys() == {"Rprec", "recall_at_5"}
    assert value["downstream"]["em"] == pytest.approx(2 / 3)
    assert (value["n"], value["n_errors"], value["sec per query"]) == (4, 1, 0.75)


def test_results_of_a_retrieval_only_run_have_no_answers() -> None:
    values = {"Rprec": 0.5, "recall@5": 0.25, "seconds": 1.0}
    report = RunReport(n=2, seconds_per_question=1.0)
    means = {name: Estimate(value) for name, value in values.items()}
    value = results(report.with_means(means))
    assert (value["kilt"], value["downstream"]) == ({}, {})
    assert value["retrieval"] == {"Rprec": 0.5, "recall_at_5": 0.25}


def test_results_equal_kilts_scores_of_the_reduced_output(written: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text("".join(json.dumps(record) + "\n" for record in RECORDS[:3]))
    theirs = score_kilt(written / "output_reduced.jsonl", gold)
    ours = json.loads((written / "results.json").read_text())
    for part in ("kilt", "downstream", "retrieval"):
        for name, value in ours[part].items():
            assert value == pytest.approx(theirs[part][name], abs=1e-12), name


def test_the_configuration_is_ralles_own_sorted_and_reads_back_as_the_chain(written: Path) -> None:
    content = (written / "config.json").read_text()
    value = json.loads(content)
    assert content == json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False) + "\n"
    back = experiment_from_json(value, "config.json", "read")
    assert back.chain == CHAIN
    assert (back.dataset_name, back.num_evaluate, back.batch_size) == ("tiny", None, 2)
    retrieve, generate, identity = value["chain_config"]["chain"]
    target = {"function": "Retriever", "retriever_name": "tiny", "npassage": 3}
    template = {"prompt_template": "{question}", "f-strings_or_eval": "f-strings"}
    assert retrieve == {**target, **template}
    assert (generate["function"], generate["llm_name"]) == ("LLM", "far")
    assert (identity["function"], identity["f-strings_or_eval"]) == ("Identity", "eval")


def test_the_prompts_file_holds_the_templates_word_for_word(written: Path) -> None:
    text = (written / "prompt.txt").read_text()
    assert text == prompts_text(CHAIN)
    for action in CHAIN.actions:
        assert f"\n{action.template}\n" in text
    assert "## Action 1: retrieve tiny, k = 3 (fstring)" in text
    assert "## Action 3: identity (eval)" in text
