"""Other programs' files of predictions are read as they are; a file that cannot be believed is one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine

from rallebench.analysis.prediction_files import READERS, Prediction, detect_form
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.sources import Problems, Source
from rallebench.engine.store import RunFolder

FLASHRAG: list[dict[str, Any]] = [
    {
        "id": "q1",
        "question": "Which moon?",
        "golden_answers": ["Titan"],
        "output": {
            "retrieval_result": [{"id": "p1", "contents": '"Titan"\nA moon.'}, {"id": "p9"}],
            "prompt": "Answer: ",
            "pred": "Titan",
            "metric_score": {"em": 1.0},
        },
    },
    {"id": "q2", "question": "?", "golden_answers": ["x"], "output": {"pred": ""}},
]
TITAN, NONE = Prediction(1, "q1", "Titan"), Prediction(2, "q2", "")
RANKED = Prediction(1, "q1", None, (("p1", 1.0), ("p2", 0.5)))
SCORED = Prediction(1, "q1", None, (("p2", 27.5), ("p1", 8.25)))


def read(folder: Path, name: str, text: str) -> tuple[str, list[Prediction], list[str]]:
    """(form, predictions, warnings) of a file."""
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    form, source = detect_form(file), Source(file)
    return form, list(READERS[form](source)), source.problems.warnings


@pytest.mark.parametrize(
    ("name", "text", "form", "first", "second"),
    [
        ("dev.json", '{"q1": "Titan", "q2": ""}', "squad", TITAN, NONE),
        ("dev.json", '{\n "q1": "Titan",\n "q2": ""\n}\n', "squad", TITAN, NONE),
        ("dev.json.gz", '{"q1": "Titan", "q2": ""}', "squad", TITAN, NONE),
        ("bom.json", '\ufeff{"q1": "Titan", "q2": ""}', "squad", TITAN, NONE),
        ("years", '{"7": 1898, "8": null}', "squad", Prediction(1, "7", "1898"), Prediction(2, "8", None)),
        (
            "hotpot.json",
            '{"answer": {"q1": "Titan", "q2": ""}, "sp": {"q1": [["Titan", 0]]}}',
            "squad",
            TITAN,
            Prediction(1, "q2", ""),
        ),
        ("list.json", '[{"id": "q1", "pred": "Titan"},\n {"qid": "q2", "response": ""}]', "jsonl", TITAN, NONE),
        ("rows.json", '{"v": 1, "data": [{"id": "q1", "answer": "Titan"}, {"id": "q2", "answer": ""}]}', "jsonl", TITAN, NONE),
        ("rows.jsonl", '{"_id": "q1", "prediction": "Titan"}\n{"question_id": "q2", "prediction": ""}', "jsonl", TITAN, NONE),
        ("one.json", '{"id": "q1", "answer": "Titan"}\n{"id": "q2", "answer": ""}\n', "jsonl", TITAN, NONE),
        ("t.tsv", "qid\tprediction\nq1\tTitan\nq2\t\n", "csv", Prediction(2, "q1", "Titan"), Prediction(3, "q2", "")),
        (
            "intermediate_data.json",
            json.dumps(FLASHRAG, indent=4),
            "jsonl",
            Prediction(1, "q1", "Titan", (("p1", 1.0), ("p9", 0.5))),
            NONE,
        ),
        ("run.tsv", "q1\tp1\t1\nq1\tp2\t2\nq2\tp7\t1\n", "msmarco", RANKED, Prediction(3, "q2", None, (("p7", 1.0),))),
        ("run.txt", "query-id\tcorpus-id\trank\nq1\tp2\t2\nq1\tp1\t1\n", "msmarco", Prediction(2, *["q1", None, RANKED.pages]), None),
        ("scores.tsv", "q1\tp1\t8.25\nq1\tp2\t27.5\n", "msmarco", SCORED, None),
        ("ranking.tsv", "q1\tp2\t1\t27.5\nq1\tp1\t2\t8.25\n", "msmarco", SCORED, None),
        ("run.trec", "q1 Q0 p2 1 27.5 t\nq1 Q0 p1 2 8.25 t\n", "trec", SCORED, None),
        ("run.json", '{"q1": {"p1": 8.25, "p2": 27.5}, "q2": {}}', "run-json", SCORED, Prediction(2, "q2", None, ())),
        ("lists.json", '{"q1": ["p1", "p2"]}', "run-json", RANKED, None),
    ],
)  # fmt: skip
def test_a_file_is_recognised_and_read(
    name: str, text: str, form: str, first: Prediction, second: Prediction | None, tmp_path: Path
) -> None:
    recognised, rows, _ = read(tmp_path, name, text)
    assert recognised == form
    assert rows == [row for row in (first, second) if row is not None]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "p.jsonl",
            '{"id": "q1", "answer": "gold", "pred": "Titan"}',
            "In 1 rows the prediction stands beside an 'answer', which was not read",
        ),
        ("h.json", '{"answer": {"q1": "Titan"}, "sp": {"q1": []}}', "Only the answers were read"),
    ],
)
def test_parts_that_are_not_read_are_told(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    _, (row,), (warning,) = read(tmp_path, name, text)
    assert row.answer == "Titan" and sentence in warning


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("p.json", '{"q1": "Titan", "q2": "x"', "entry 3 is cut off"),
        ("p.json", '{"q1": "Titan", "q2', "entry 2 is cut off"),
        ("p.json", '{"q1": "Titan" "q2": "x"}', "entry 2 is not valid JSON (',' or '}' is missing"),
        ("p.json", '{"q1": "Titan"} x', "entry 2 is not a member: there is text behind the end"),
        ("p.json", '{q1: "Titan"}', "entry 1 is not valid JSON (a name is missing)"),
        ("p.json", '{"q1": NaN}', "entry 1 ('q1'): the answer is not a text"),
        ("p.json", '{"q1": "a", "q2": ["a"]}', "entry 2 ('q2'): the answer is not a text"),
        ("p.json", '{"q1": ' + "[" * 90_000, "entry 1 is not valid JSON (too deeply nested)"),
        ("p.json", '{"q1": ' + "9" * 5_000 + "}", "entry 1 is not valid JSON"),
        ("p.json", '{"q1": "\udc81"}', "entry 1 is not UTF-8; save the file as UTF-8"),
        ("p.json", '{"\udc81": "x"}', "entry 1 is not UTF-8; save the file as UTF-8"),
        ("p.json", '[{"id": "q1", "answer": "x"}, 7]', "record 2 is not a JSON object but int"),
        ("p.json", '[{"id": "q1", "answer": "x"}', "record 2 is cut off"),
        ("p.json", '[{"answer": "x"}]', "record 1 has no 'id'"),
        ("p.json", '[{"id": ["q1"], "answer": "x"}]', "record 1: the id is list"),
        ("p.json", '[{"id": "q1", "answer": {"a": 1}}]', "record 1: the answer is not a text"),
        ("p.json", '[{"id": "q1", "pages": [true]}]', "record 1: a page is not an id"),
        ("p.json", '[{"id": "q1", "output": {"retrieval_result": 3}}]', "'retrieval_result' must be a list"),
        ("r.json", '{"q1": {"p1": "high"}}', "('q1') gives 'p1' a score that is not a number"),
        ("r.json", '{"q1": {"p1": NaN}}', "('q1') gives 'p1' a score that is not a number"),
        ("r.json", '{"q1": {"p1": ' + "9" * 400 + "}}", "gives 'p1' a score that is not a number"),
        ("r.json", '{"q1": {"p1": 1}, "q2": 5}', "entry 2 ('q2') is not an object of pages"),
        ("r.json", '{"q1": ["p1", 5.5]}', "entry 1 ('q1'): a page is not an id"),
        ("r.tsv", "q1\tp1\t1\nq1\tp1\t2\n", "line 2 names 'p1' a second time for the question 'q1'"),
        ("r.tsv", "q1\tp1\t1\nq1\tp2\t1\n", "line 1 begins the question 'q1', which has a rank twice"),
        ("r.tsv", "q1\tp1\t1\nq1\tp2\tx\n", "line 2 has the score x, which is not a number"),
        ("r.tsv", "q1\tp1\t1\nq1\tp2\n", "line 2 is not 'qid Q0 page rank score tag'"),
        ("r.tsv", "q1\tp1\t1\nq1\tp2\tinf\n", "line 2 has the score inf, which is not a number"),
        ("r.tsv", "q1\tp\0\t1\n", "line 1 holds binary data"),
        ("p.json", '{"q1": "a"}'.encode("utf-16").decode("latin-1"), "is not a JSON object"),
    ],
)  # fmt: skip
def test_bad_rows_are_one_sentence_and_can_be_left_out(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    form = "msmarco" if "p\0" in text else detect_form(file)
    with pytest.raises(BadFileError) as refusal:
        list(READERS[form](Source(file)))
    message = str(refusal.value)
    assert sentence in message and message.startswith(str(file)) and len(message.splitlines()) == 1
    problems = Problems(skip=True)
    assert len(list(READERS[form](Source(file, problems)))) <= 2
    assert problems.count == 1


def test_a_judgements_file_is_not_taken_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 77 1\nq1 0 78 0\n")
    with pytest.raises(RalleError, match="in no known form of predictions"):
        detect_form(tmp_path / "qrels.txt")


def test_numbers_at_the_edge_of_a_piece_stay_whole(tmp_path: Path) -> None:
    from rallebench.core import json_lists

    values = {f"q{number}": number * 7919 for number in range(40)}
    (tmp_path / "n.json").write_text(json.dumps(values))
    for size in range(1, 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_lists, "PIECE", size)
            members = Source(tmp_path / "n.json").members()
            assert {name: value for _, name, value in members} == values


def test_an_id_that_stands_twice_in_one_object_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"q1": "Titan", "q2": "x", "q1": "Triton"}')
    ran = cli.predictions(tmp_path / "p.json", "twice")
    assert ran.code == 2 and "has 1 id repeated: 'q1' in entry 3; mend" in ran.last


def test_what_is_left_out_is_counted_and_named(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"q1": "Titan", "z": "x", "q2": ["x"], "q1": "Triton"}')
    ran = cli.predictions(tmp_path / "p.json", "part", "--skip-bad")
    assert ran.code == 0, ran.err
    for sentence in (
        "1 id that tiny-qa does not have: 'z' in entry 2; left out",
        "1 id repeated: 'q1' in entry 4; left out",
        "entry 3 ('q2'): the answer is not a text",
        "1 bad row of p.json left out",
    ):
        assert sentence in ran.out
    assert "7 of 8 questions have no prediction; they count as failed" in ran.err


def test_an_empty_answer_of_squad_2_is_an_answer_and_null_is_none(
    cli: CommandLine, tmp_path: Path, workspace: Path
) -> None:
    (tmp_path / "p.json").write_text('{"q1": "Titan", "q2": "", "q3": null}')
    assert cli.predictions(tmp_path / "p.json", "declined").code == 0
    run = RunFolder.open(workspace / "runs", "declined")
    answers = {qid: None if e.error else e.answer for qid, e in run.episodes().items()}
    assert (answers["q1"], answers["q2"], answers["q3"]) == ("Titan", "", None)


def test_answers_are_exported_as_squads_script_reads_them_and_come_back(
    cli: CommandLine, tmp_path: Path
) -> None:
    odd = {"q1": 'a "quote"\n', "q2": "", "q3": "\ud83c\udf19 moon"}
    (tmp_path / "p.json").write_text(json.dumps(odd))
    assert cli.predictions(tmp_path / "p.json", "first").code == 0
    ran = cli("export", "first", "--format", "squad", "--out", tmp_path / "again.json")
    assert ran.code == 0 and "5 failed questions are left out" in ran.err
    written = json.loads((tmp_path / "again.json").read_text())
    assert written == json.loads((tmp_path / "p.json").read_text())
    assert cli.predictions(tmp_path / "again.json", "second").code == 0


@pytest.mark.parametrize("form", ["squad", "run-json"])
def test_a_run_of_which_all_failed_is_an_empty_object(
    form: str, cli: CommandLine, tmp_path: Path, workspace: Path
) -> None:
    from rallebench.analysis.exporting import FORMS

    (tmp_path / "p.json").write_text('{"q1": "Titan"}')
    assert cli.predictions(tmp_path / "p.json", "lone").code == 0
    run = RunFolder.open(workspace / "runs", "lone")
    text = "".join(FORMS[form][0](run))
    assert json.loads(text) == (
        {"q1": "Titan"} if form == "squad" else {q: {} for q in run.heads()}
    )
