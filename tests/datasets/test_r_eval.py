"""R-Eval's records are read as they are published, and its twelve tasks are found among the datasets by their names."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from importing import imported_dataset

from rallebench.core.errors import BadFileError
from rallebench.datasets import DATASETS
from rallebench.datasets.r_eval import as_record, id_holds, ids_that_hold
from rallebench.datasets.reading import dataset_form, read_examples
from rallebench.datasets.tasks import (
    LEVELS,
    TASKS,
    available,
    describe_tasks,
    draw_sample,
    find_task,
)

RECORD = as_record("Where was he born?", ["Rome", "Roma"], environment="wiki", dataset="own")


def written(path: Path, *rows: object) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows),
        encoding="utf-8",
    )
    return path


def test_a_record_has_r_evals_fields_lengths_in_words_and_its_hash() -> None:
    keys = "input outputs input_length output_length language environment dataset _id"
    assert " ".join(RECORD) == keys
    assert (RECORD["input_length"], RECORD["output_length"]) == (4, 1.0)
    assert id_holds(RECORD) and not id_holds({**RECORD, "outputs": ["Paris"]})


def test_all_outputs_are_accepted_and_in_the_original_form_only_the_first(tmp_path: Path) -> None:
    path = written(tmp_path / "own.jsonl", RECORD)
    (ours,), (theirs,) = (read_examples(path, form=f) for f in ("r-eval", "r-eval-original"))
    assert ours.question.qid == RECORD["_id"] and ours.question.text == "Where was he born?"
    assert ours.gold.answers == ("Rome", "Roma") and theirs.gold.answers == ("Rome",)
    assert ours.record["environment"] == "wiki"


def test_the_form_is_recognised_and_kept_with_all_that_its_records_hold(tmp_path: Path) -> None:
    path = written(
        tmp_path / "own.jsonl", RECORD, {"input": "Who?", "outputs": ["Ada"], "level": "KS"}
    )
    assert dataset_form(path) == "r-eval"
    made = imported_dataset(tmp_path / "datasets", "own", path)
    rows = [json.loads(line) for line in made.path.read_text(encoding="utf-8").splitlines()]
    assert (made.form, made.questions) == ("r-eval", 2)
    assert (
        rows[0]["output"] == [{"answer": "Rome"}, {"answer": "Roma"}] and rows[1]["level"] == "KS"
    )
    assert ids_that_hold(path) == (1, 2)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"outputs": ["x"]}, "has no 'input'"),
        ({"input": "Who?", "outputs": {"a": 1}}, "list of texts"),
        ({"input": "Who?", "outputs": [1.5, None]}, "list of texts"),
        ({"input": "Who?", "outputs": ["x"], "_id": {"a": 1}}, "'_id' should be text"),
        ("not json", "line 2"),
    ],
)
def test_a_bad_record_names_its_line(tmp_path: Path, row: object, why: str) -> None:
    with pytest.raises(BadFileError, match=why) as caught:
        list(read_examples(written(tmp_path / "a.jsonl", RECORD, row), form="r-eval"))
    assert "line 2" in str(caught.value)


def test_a_sample_is_the_one_that_r_eval_draws(tmp_path: Path) -> None:
    rows = [{"input": f"Question {n}?", "outputs": [str(n)], "_id": f"q{n}"} for n in range(30)]
    made = imported_dataset(
        tmp_path / "datasets", "own", written(tmp_path / "a.jsonl", *rows), sample=5
    )
    ids = [json.loads(line)["id"] for line in made.path.read_text(encoding="utf-8").splitlines()]
    random.seed(42)
    assert ids == [f"q{n}" for n in random.sample(range(30), 5)]
    assert draw_sample([1, 2], 5) == [1, 2]


@pytest.mark.shared_data
def test_published_questions_are_read(shared_data: Path) -> None:
    folder = shared_data / "r-eval-ish"
    assert len(list(read_examples(folder / "kola_sample_format.jsonl"))) == 11
    hotpot = list(read_examples(folder / "hotpotqa_dev.jsonl"))
    assert hotpot[0].gold.answers == ("yes",) and hotpot[0].record["dataset"] == "hotpotqa"
    assert dataset_form(folder / "fever_paper_dev.jsonl") == "r-eval"


# ── the tasks ────────────────────────────────────────────────────────────────


def test_there_are_twelve_tasks_nine_over_wiki_and_three_over_scholars_in_three_levels() -> None:
    assert len({task.name for task in TASKS}) == 12
    assert [sum(task.domain == domain for task in TASKS) for domain in ("wiki", "aminer")] == [9, 3]
    assert [sum(task.level == level for task in TASKS) for level in LEVELS] == [3, 4, 5]
    assert TASKS[7].file == "3-1_hotpotqa.jsonl" and TASKS[7].environment == "wikipedia"


def test_a_task_is_found_by_its_own_dataset_before_the_starters_stand_in() -> None:
    assert available(["starter-scholar-easy", "starter-scholar-hard", "hotpotqa_dev", "mine"]) == {
        "soay_easy": "starter-scholar-easy",
        "soay_hard": "starter-scholar-hard",
        "hotpotqa": "hotpotqa_dev",
    }
    assert available(["soay_easy", "starter-scholar-easy"]) == {"soay_easy": "soay_easy"}
    assert find_task("hotpot") is None


def test_a_task_without_questions_says_in_one_sentence_how_to_get_them() -> None:
    lines = describe_tasks({"musique": Path("x")})
    assert "dataset musique" in lines["musique"]
    assert all("Not here. " in line for name, line in lines.items() if name != "musique")


def test_the_command_that_fetches_a_public_set_names_its_files_or_says_there_are_none() -> None:
    by_name = {task.name: task for task in TASKS}
    hotpot = by_name["hotpotqa"].how
    assert (
        "curl -LO http" in hotpot and "import hotpot_dev_distractor_v1.json as hotpotqa" in hotpot
    )
    assert all("`" in task.how for task in TASKS if task.name != "profiling")
    assert "not published" in by_name["profiling"].how
    assert all(task.form in DATASETS for task in TASKS if task.names)
    assert [task.name for task in TASKS if not task.names] == [
        *("high_freq_ent", "low_freq_ent", "profiling")
    ]
