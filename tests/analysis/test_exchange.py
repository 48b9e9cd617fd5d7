"""A run is exported to files that other tools read; other tools' predictions are imported as runs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from small_workspace import CommandLine, Ran

from rallebench.core.errors import UsageError
from rallebench.services.workbench import Workbench


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    command = CommandLine(capfd, workspace)
    assert command.run("a b", "picky").code in (0, 1)
    return command


def export_run(cli: CommandLine, form: str) -> str:
    ran = cli("export", "a b", "--format", form)
    assert ran.code == 0, ran.err
    return ran.out


def import_predictions(cli: CommandLine, file: Path, *more: str) -> Ran:
    return cli.predictions(file, "back", *more)


def test_a_trec_run_has_every_page_once_in_the_order_it_was_found(cli: CommandLine) -> None:
    lines = [line.split() for line in export_run(cli, "trec").splitlines()]
    assert all(len(line) == 6 and line[1] == "Q0" and line[5] == "a_b" for line in lines)
    by_question: dict[str, list[list[str]]] = {}
    for line in lines:
        by_question.setdefault(line[0], []).append(line)
    for found in by_question.values():
        assert [int(line[3]) for line in found] == list(range(1, len(found) + 1))
        assert len({line[2] for line in found}) == len(found)
        scores = [float(line[4]) for line in found]
        assert all(a > b for a, b in zip(scores, scores[1:])), "trec_eval would break a tie by name"


def test_scores_that_trec_eval_cannot_tell_apart_give_way_to_ranks(
    cli: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "near.trec"
    file.write_text("q1 Q0 p1 1 1.00000002 t\nq1 Q0 p2 2 1.0 t\n")
    import_predictions(cli, file)
    lines = [line.split() for line in cli("export", "back", "--format", "trec").out.splitlines()]
    assert [(line[2], line[4]) for line in lines] == [("p2", "1"), ("p1", "0.5")]


def test_qrels_name_every_gold_page(cli: CommandLine) -> None:
    assert export_run(cli, "qrels").splitlines()[0] == "q1 0 p1 1"
    assert len(export_run(cli, "qrels").splitlines()) == 8


def test_a_failed_question_is_in_tables_and_not_in_predictions(cli: CommandLine) -> None:
    table = list(csv.DictReader(io.StringIO(export_run(cli, "csv"))))
    rows = [json.loads(line) for line in export_run(cli, "jsonl").splitlines()]
    failed = [row["id"] for row in rows if row["error"]]
    assert failed and [row["id"] for row in table if row["error"]] == failed
    assert all(row["em"] == "" for row in table if row["error"]), "what failed is not scored 0"
    kept = [json.loads(line)["id"] for line in export_run(cli, "kilt").splitlines()]
    assert kept == [row["id"] for row in rows if not row["error"]]
    assert (
        f"{len(failed)} failed questions are left out"
        in cli("export", "a b", "--format", "kilt").err
    )


@pytest.mark.parametrize(("form", "metric"), [("kilt", "em"), ("trec", "Rprec")])
def test_exports_keep_the_scores(cli: CommandLine, tmp_path: Path, form: str, metric: str) -> None:
    file = tmp_path / f"predictions.{form}"
    assert cli("export", "a b", "--format", form, "--out", file).code == 0
    ran = import_predictions(cli, file)
    assert ran.code == 0, ran.err
    assert ("score 0" if form == "trec" else "they count as failed") in ran.err
    found = cli("compare", "a b", "back", "--metric", metric, "--json").json
    assert found["n"] > 0 and found["difference"] == 0.0 and found["ties"] == found["n"]


def test_a_table_of_answers_becomes_a_run_that_is_scored_by_what_it_holds(
    cli: CommandLine, tmp_path: Path, workspace: Path
) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("id,prediction\nq1,Titan\nq2,Charon\n", encoding="utf-8")
    assert import_predictions(cli, file).code == 0
    report = json.loads((workspace / "runs" / "back" / "report.json").read_text())
    em = report["metrics"]["em"]
    assert (em["value"], em["n"]) == (0.5, 2)
    assert report["n_errors"] == 6
    assert not {"Rprec", "seconds", "prompt_tokens"} & set(report["metrics"]), (
        "nothing is said of pages or costs"
    )


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "p.jsonl",
            '{"id": "q1", "answer": "x"}\n{"id": "q9", "answer": "x"}\n',
            "does not have: 'q9' in line 2",
        ),
        (
            "p.jsonl",
            '{"id": "q1", "answer": "x"}\n{"id": "q1", "answer": "y"}\n',
            "has 1 id repeated: 'q1' in line 2; mend",
        ),
        ("p.jsonl", '{"id": "z", "answer": "x"}\n', "No id of"),
        ("p.jsonl", "", "holds no prediction"),
        ("p.jsonl", '{"answer": "x"}\n', "line 1 has no 'id'"),
        ("p.csv", "name,text\nq1,x\n", "needs a header row with the columns id and answer"),
        ("p.csv", "z" * 9000 + "\n", f"it has {'z' * 200}."),
        ("p.run", "q1 Q0 p1 first 2.0 tag\n", "line 1 is not 'qid Q0 page rank score tag'"),
        ("p.txt", "what is this\n", "in no known form of predictions"),
        ("p.jsonl", '{"id": "q1", "answer": \n', "line 1 is not valid JSON"),
        (
            "p.jsonl",
            '{"id": "q1", "answer": ' + "[" * 50_000 + "\n",
            "line 1 is not valid JSON (too deeply nested)",
        ),
        ("p.jsonl", '{"id": "q1", "answer": NaN}\n', "line 1: the answer is not a text"),
        ("p.jsonl", '{"id": null, "answer": "x"}\n', "line 1: the id is NoneType"),
        ("p.jsonl", '{"id": "q1", "pages": 5}\n', "'pages' must be a list, not int"),
        ("p.jsonl", '{"id": "q1", "pages": [{"p": 1}]}\n', "line 1: a page is not an id"),
        (
            "p.jsonl",
            '{"id": "q1", "output": [{"answer": "x", "provenance": "p1"}]}\n',
            "'provenance' must be a list",
        ),
        ("p.csv", "id,answer\nq1,Titan, the moon\n", "line 2 has 3 columns where its header has 2"),
        ("p.run", "q1 Q0 p1 1 nan tag\n", "line 1 has the score nan, which is not a number"),
    ],
)
def test_a_file_that_cannot_be_believed_is_one_sentence_and_leaves_no_run(
    cli: CommandLine, tmp_path: Path, workspace: Path, name: str, text: str, sentence: str
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    ran = import_predictions(cli, file)
    assert ran.code == 2 and sentence in ran.last
    assert not (workspace / "runs" / "back").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.jsonl", '\ufeff{"id": "q1", "answer": "Titan"}\n\n{"id": "q2", "answer": "Charon"}'),
        ("p.csv", "\ufeffid;answer\r\nq1;Titan\r\nq2;Charon"),
        ("p.csv", 'id,note,answer\nq1,"a, ""b"",\nc",Titan\nq2,' + "x" * 200_000 + ",Charon"),
        ("p.run", "q1 Q0 p1 1 2.5 tag\nq2 Q0 p1 1 2.5 tag"),
    ],
)
def test_every_line_counts_also_the_last_one_without_its_end(
    cli: CommandLine, tmp_path: Path, workspace: Path, name: str, text: str
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode())
    ran = import_predictions(cli, file)
    assert ran.code == 0, ran.err
    report = json.loads((workspace / "runs" / "back" / "report.json").read_text())
    assert report["n"] - report["n_errors"] == (8 if name == "p.run" else 2)


def test_bad_lines_are_left_out_on_demand(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(
        '{"id": "q1", "answer": "Titan"}\n{"id": "q9", "answer": "x"}\n', encoding="utf-8"
    )
    assert import_predictions(cli, file, "--skip-bad").code == 0


def test_imports_are_not_continued(cli: CommandLine, tmp_path: Path, workspace: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("id,answer\nq1,Titan\n", encoding="utf-8")
    assert import_predictions(cli, file).code == 0
    bench = Workbench(workspace)
    with pytest.raises(UsageError, match="was made by 'imported', not by a chain"):
        bench.runs.open_question("back", 1)
    with pytest.raises(UsageError, match="no chain to open or to continue"):
        bench.runs.resume("back")
