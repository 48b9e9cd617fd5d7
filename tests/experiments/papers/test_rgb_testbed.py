"""A testbed of one's own: what a retriever finds becomes records that RGB's tests take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, make_workspace, read_lines, write_lines

from rallebench.experiments.papers.rgb import from_index
from rallebench.experiments.papers.rgb.from_index import (
    SourceQuestion,
    fakes_of,
    replaced,
    shape_of,
    split_by_answer,
)


def test_documents_are_sorted_by_the_answer_at_word_boundaries_each_once() -> None:
    found = split_by_answer(
        (("art", "arts"),), ["A party.", "The Arts grew.", "The Arts grew.", "Art!"]
    )
    assert found.groups == (("The Arts grew.", "Art!"),) and found.negative == ("A party.",)


def test_of_several_required_answers_each_has_its_own_group() -> None:
    found = split_by_answer(
        (("Rome",), ("1990",)), ["In Rome in 1990.", "It was 1990.", "In 19901."]
    )
    assert found.groups == (("In Rome in 1990.",), ("It was 1990.",)) and found.complete
    assert split_by_answer((("Rome",), ("1990",)), ["In Rome in 1990.", "Rome, 1990!"]).complete
    assert not split_by_answer((("Rome",), ("1990",)), ["In Rome."]).complete


def test_a_false_copy_has_every_occurrence_replaced_and_the_rest_as_it_was() -> None:
    assert replaced("Titan, TITAN and titanic.", ("Titan",), "Rhea") == "Rhea, Rhea and titanic."
    assert replaced("第六届共有70个议席。", ("70",), "90") == "第六届共有90个议席。"


def test_a_false_answer_looks_like_the_true_one_and_differs_from_it() -> None:
    asked = [
        SourceQuestion("a", "?", (("Tampa",),)),
        SourceQuestion("b", "?", (("Paris",),)),
        SourceQuestion("c", "?", (("1990",),)),
        SourceQuestion("d", "?", (("New Paris",),)),
        SourceQuestion("e", "?", (("Rome",), ("1991",))),
        SourceQuestion("f", "?", (("1955",),), "1066"),
    ]
    found = fakes_of(asked)
    assert found == {"a": "Paris", "b": "Tampa", "c": "1955", "f": "1066"}
    assert found == fakes_of(asked)
    assert shape_of("12 May 1999") == "99 A 9999"


def test_an_answer_is_written_as_rgb_writes_it() -> None:
    assert from_index.answer_of((("a",), ("b", "c"))) == ["a", ["b", "c"]]


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, make_workspace(tmp_path / "workspace"))


def bed_of(rallebench: CommandLine, run: str, *pairs: str) -> Any:
    return rallebench.report("rgb-testbed", "data=tiny-qa", "index=tiny", "k=6", *pairs, run=run)


def test_an_index_becomes_files_that_the_tests_take(rallebench: CommandLine) -> None:
    question = {"id": "s", "input": "Which moons have Saturn and Pluto?", "output": []}
    several = {**question, "answer": ["Titan", "Charon"]}
    path = rallebench.workspace / "datasets" / "tiny-qa.jsonl"
    write_lines(path, [*read_lines(path), several, {"id": "n", "input": "Who?", "output": []}])
    made = bed_of(rallebench, "bed")
    assert (made["questions"], made["unanswered"]) == (9, 1)
    assert made["records"] == {"en": 8, "en_int": 1, "en_fact": 8}
    folder = Path(made["folder"])
    first = read_lines(folder / "en_fact.jsonl")[0]
    assert (first["answer"], len(first["positive"])) == ("Titan", 2)
    assert all("Titan" in text for text in first["positive"])
    assert not any("Titan" in text for text in first["negative"] + first["positive_wrong"])
    assert all(first["fakeanswer"] in text for text in first["positive_wrong"])
    more = bed_of(rallebench, "more", "positives=2")
    assert more["too_few_positives"] > 0
    assert more["records"]["en"] == made["records"]["en"] - more["too_few_positives"]
    assert all(len(row["positive"]) >= 2 for row in read_lines(Path(more["folder"]) / "en.jsonl"))
    data = f"data={folder}"
    noise = rallebench.report("rgb-counterfactual", data, llm="titan", run="c")
    assert noise["dataset"] == "en_fact" and noise["acc"] == 0.125
    parts = rallebench.report("rgb-integration", data, llm="titan", run="i")
    assert parts["dataset"] == "en_int"
    known = bed_of(rallebench, "known", "known=c without documents")
    assert known["records"]["en_fact"] == 1 and known["not_known"] == 7


def test_questions_in_rgbs_form_and_an_unknown_index(rallebench: CommandLine) -> None:
    path = rallebench.workspace / "datasets" / "own.jsonl"
    aliases = [["Christiaan Huygens", "Huygens"]]
    row = {"id": 1, "query": "Who discovered Titan?", "answer": aliases, "fakeanswer": "Ada"}
    path.write_text(json.dumps(row) + "\n")
    made = rallebench.report("rgb-testbed", f"data={path}", "index=tiny", run="own")
    (row,) = read_lines(Path(made["folder"]) / "en_fact.jsonl")
    assert row["positive_wrong"][0].startswith("Ada discovered Titan")
    ran = rallebench.suite("rgb-testbed", f"data={path}", "index=nowhere")
    assert ran.code == 2 and "nowhere" in ran.last
