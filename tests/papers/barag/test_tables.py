"""Tables I to III from the published run files, to the digit, and hand-made runs for cases that these lack."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines

from rallebench.papers.barag.points import choice_table
from rallebench.papers.barag.runs import (
    BINS,
    AnswerRow,
    BaragRun,
    by_question,
    find_bin,
    read_runs,
    summarize,
)
from rallebench.papers.barag.tables import RUNS, agrees, round_like

# rows, truthfulness, relevance, input tokens, output tokens, flagged as retrieved, given a context, both 5: of the rows in the
# data folder, added up by a script that shares no code with this project.
PRESENT: dict[str, tuple[int, float, float, int, int, int, int, int]] = {
    "A_d_20240123_100407": (217, 2.6313, 2.8479, 10127, 38148, 0, 0, 39),
    "A_f_20240123_100424": (165, 2.4091, 2.4, 7592, 20564, 0, 0, 18),
    "A_f_20240123_100551": (165, 4.7606, 4.703, 145466, 15461, 0, 165, 148),
    "A_f_20240123_150202": (165, 4.4818, 4.4061, 176241, 34673, 145, 145, 137),
    "A_f_20240124_172520": (165, 4.5273, 4.5455, 173233, 34585, 144, 144, 136),
    "A_f_20240125_112730": (165, 4.4788, 4.5091, 162421, 34995, 133, 133, 127),
    "A_r_first300_20240123_100214": (207, 3.5362, 3.8937, 9586, 42141, 0, 0, 88),
    "A_r_first300_20240123_150039": (206, 4.8083, 4.8058, 181932, 23335, 0, 206, 192),
    "A_r_first300_20240123_150212": (207, 3.8768, 3.8406, 181716, 61701, 113, 113, 137),
    "A_r_first300_20240124_172529": (207, 4.558, 4.6667, 178510, 57264, 117, 117, 167),
    "A_r_first300_20240125_111901": (207, 4.4396, 4.6401, 152923, 53347, 92, 92, 152),
}


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, tmp_path / "workspace")


def tables(cli: CommandLine, runs: Path) -> Any:
    return cli.report("barag-tables", f"runs={runs}", run="t")


def test_the_published_rows_give_their_sums_to_the_digit(shared_data: Path) -> None:
    found = {
        run.name: summarize(run.rows) for run in read_runs(str(shared_data / "barag" / "runs"))
    }
    counts = attrgetter("n_in", "n_out", "flagged", "retrieved", "perfect")
    assert {
        name: (
            one.n,
            round(one.truthfulness.value or 0, 4),
            round(one.relevance.value or 0, 4),
            *counts(one),
        )
        for name, one in found.items()
    } == PRESENT
    assert all(sum(one.histogram.values()) == one.n for one in found.values())


def test_a_limit_cuts_the_rows_of_every_table(cli: CommandLine, shared_data: Path) -> None:
    runs = f"runs={shared_data / 'barag' / 'runs'}"
    report = cli.report("barag-tables", runs, run="t", flags=("--limit", "5"))
    titles = [table["title"] for table in report["tables"]]
    assert "What the decision is worth, Table III: 5 questions" in titles
    assert all(run["n"] == 5 for run in report["runs"].values())


def test_tables_show_what_disagrees_with_print(cli: CommandLine, shared_data: Path) -> None:
    found = tables(cli, shared_data / "barag")
    printed = {f"Table {'I' * n}": table for n, table in enumerate(found["tables"][:3], 1)}
    for name, table in printed.items():
        assert table["title"].startswith(f"BARAG, {name}")
    rows = [(name, row) for name, table in printed.items() for row in table["rows"]]
    whole = {(row[0], name): row[2:-1] for name, row in rows if row[1].startswith("whole")}
    assert whole["BARAG", "Table II"] == ["4.4933", "4.6850", 224443, 78013, 138]
    assert whole["NRAG", "Table II"] == ["4.8043", "4.7993", 261596, 34179, 0]
    assert whole["BARAG", "Table III"] == ["4.5605", "4.5859", 260303, 57043, 214]
    assert whole["A_d", "Table I"] == ["2.6183", "2.7967"]
    verdicts = {(name, row[0]): row[-1] for name, row in rows if row[1] == "printed"}
    assert verdicts == {
        ("Table I", "A_r"): "agrees",
        ("Table I", "A_d"): "agrees",
        ("Table I", "A_f"): "Truthfulness should be 2.49",
        ("Table I", "A_f GT"): "not to be compared",
        ("Table II", "Baseline"): "agrees",
        ("Table II", "NRAG"): "Retrieved by definition",
        ("Table II", "BARAG"): "Relevance should be 4.69",
        ("Table III", "Baseline"): "agrees",
        ("Table III", "NRAG"): "Retrieved by definition",
        ("Table III", "BARAG"): "agrees",
    }
    tests = cli.tests_in(found)
    ways = ("NRAG less Baseline", "BARAG less Baseline", "BARAG less NRAG")
    assert {label for label, _ in tests} == {f"Table {n}: {w}" for n in ("II", "III") for w in ways}
    row = tests["Table III: BARAG less NRAG", "Truthfulness"]
    runs = {run.name: run.rows for run in read_runs(str(shared_data / "barag" / "runs"))}
    always, own = (
        {key: of.truthfulness for key, of in by_question(runs[RUNS["Table III"][way]]).items()}
        for way in ("NRAG", "BARAG")
    )
    gaps = [own[key] - score for key, score in always.items() if key in own]
    assert row[2]["n"] == len(gaps) == sum(row[5:]) == 165
    assert row[2]["value"] == pytest.approx(sum(gaps) / 165) and row[4] == "yes"
    notes = "\n".join(found["notes"])
    for note in (
        "relevance is printed 4.67; the run gives 4.69 (4.685) and is that of another run, A_r_first300_20240124_172529.",
        "and 1 of 300 answers is missing",
        "11 of 11 files hold a part of their run",
        "-14.2% input tokens (224,443 against 261,596) and +128.2% output tokens (78,013 against 34,179)",
        "+16.0% input tokens (260,303 against 224,319)",
    ):
        assert note in notes
    expected = {"A_d", "A_f", "A_r_first300"}
    assert {plot["title"].rpartition(" ")[2] for plot in found["plots"]} == expected


def test_the_printed_tables_name_runs_of_the_manifest(shared_data: Path) -> None:
    known = {
        one["run"] for one in json.loads((shared_data / "barag" / "runs_manifest.json").read_text())
    }
    assert {run for runs in RUNS.values() for run in runs.values() if run} <= known


@pytest.mark.parametrize(
    ("cell", "value", "fits"),
    [
        ("3.9", 3.9033, True),
        ("2.42", 2.418, True),
        ("2.48", 2.4863, False),
        ("4.67", 4.685, False),
        ("4.68", 4.685, True),
        ("4.69", 4.685, True),
        ("14k", 13883, True),
        ("61k", 61501, False),
        ("138", 138, True),
    ],
)
def test_a_printed_cell_agrees_if_rounding_gives_it(cell: str, value: float, fits: bool) -> None:
    assert agrees(cell, value) is fits and (fits or round_like(cell, value) != cell)


def row(n: int, truthfulness: Any, relevance: Any, **more: Any) -> dict[str, Any]:
    texts = {"id": f"x{n}", "title": "T", "question": "Q?", "answer": "A", "context": ""}
    tokens = {"n_input_tokens": 10, "n_output_tokens": 2, "retrieved": False}
    return {**texts, **tokens, "truthfulness": truthfulness, "relevance": relevance, **more}


def test_a_run_of_ones_own_needs_no_manifest(cli: CommandLine, tmp_path: Path) -> None:
    rows = [
        row(1, 5, 5),
        row(2, 4.5, 5, retrieved=True),
        row(3, None, None),
        row(4, 1, 1, n_input_tokens=None, context="\n \nTitle: T\nx\n \n"),
    ]
    write_lines(tmp_path / "mine.jsonl", rows)
    found = tables(cli, tmp_path / "mine.jsonl")
    mine = found["runs"]["mine"]
    keys = ("n", "scored", "truthfulness", "both_5", "retrieved", "flagged", "n_in", "n_out")
    assert [mine[key] for key in keys] == [4, 3, 3.5, 1, 2, 1, None, 8]
    assert mine["histogram"] == {**{str(b): 0 for b in BINS}, "2": 1, "10": 2}
    assert "mine: 1 of 4 answers have no scores; they are in no mean." in found["notes"]
    assert len(found["tables"]) == 1


def test_a_question_that_a_set_repeats_is_counted_as_often_as_it_was_asked() -> None:
    def answers(*worth: int) -> BaragRun:
        rows = [
            AnswerRow(
                f"r{n}", "T", "Q?" if n < 2 else f"Q{n}?", "A", 10, 2, False, score, score, ""
            )
            for n, score in enumerate(worth)
        ]
        return BaragRun("run", "A_f", "", tuple(rows), {})

    table = choice_table("Choice", answers(1, 3, 5), answers(5, 5, 5), answers(1, 5, 5))
    assert table is not None and table.title == "Choice: 3 questions"
    qualities = {row[0]: row[4].value for row in table.rows}
    assert (qualities["never"], qualities["always"]) == (3.0, 5.0)
    fewer = choice_table("Choice", answers(1, 3, 5), answers(5, 5), answers(1, 5, 5))
    assert fewer is not None and fewer.title == "Choice: 2 questions"
    assert fewer.note.endswith("not all three runs have an answer with scores and tokens: 1.")


def test_sums_fall_into_unit_bins_centred_on_whole_numbers() -> None:
    assert [find_bin(total) for total in (2, 2.4, 2.5, 9.5, 10)] == [2, 2, 3, 10, 10]


FLAG = "'retrieved' is {!r}; it should be true or false"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"title": "T"}', "line 1 has no 'question'"),
        ("{", "line 1 is not valid JSON"),
        (json.dumps(row(1, "5", 5)), "'truthfulness' is '5'; it should be a number"),
        (json.dumps(row(1, True, 5)), "'truthfulness' is True; it should be a number"),
        (json.dumps(row(1, 10**400, 5)), "it should be a number"),
        (json.dumps(row(1, 5, 5, n_input_tokens=float("inf"))), "'n_input_tokens' is inf"),
        ("", "holds no answer"),
        *(
            (json.dumps(row(2, 5, 5, retrieved=flag)), FLAG.format(flag))
            for flag in ("no", "false", "", 2, [], float("nan"))
        ),
    ],
)
def test_what_is_no_run_file_is_refused_with_its_line(
    cli: CommandLine, tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(line)
    ran = cli("suite", "barag-tables", "--set", f"runs={tmp_path / 'bad.jsonl'}")
    assert ran.code == 2 and said in ran.last


@pytest.mark.parametrize(("said", "counts"), [(True, 1), (1, 1), (False, 0), (0, 0), (None, 0)])
def test_retrieved_is_true_or_false_or_1_or_0(tmp_path: Path, said: Any, counts: int) -> None:
    write_lines(tmp_path / "mine.jsonl", [row(1, 5, 5, retrieved=said)])
    assert [one.retrieved for one in read_runs(str(tmp_path / "mine.jsonl"))[0].rows] == [
        bool(counts)
    ]


def test_an_answer_that_stands_twice_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    nameless = {key: value for key, value in row(1, 5, 5).items() if key != "id"}
    for twice, said in (
        ([row(1, 5, 5), row(2, 5, 5), row(1, 3, 3)], "line 3 repeats the id 'x1' of line 1"),
        ([row(1, 5, 5, id=7), row(2, 5, 5, id="7")], "line 2 repeats the id '7' of line 1"),
        ([nameless, nameless], "line 2 is the same as line 1"),
        ([row(1, 5, 5, id=""), row(1, 5, 5, id="")], "line 2 is the same as line 1"),
    ):
        write_lines(tmp_path / "bad.jsonl", twice)
        ran = cli("suite", "barag-tables", "--set", f"runs={tmp_path / 'bad.jsonl'}")
        assert ran.code == 2 and said in ran.last and "each answer may stand there once" in ran.last
    write_lines(tmp_path / "good.jsonl", [nameless, {**nameless, "answer": "B"}])
    assert len(read_runs(str(tmp_path / "good.jsonl"))[0].rows) == 2
