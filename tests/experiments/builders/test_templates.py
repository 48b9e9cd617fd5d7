"""Rows of tables put into templates: one hop and several, ambiguity counted, templates of a model checked against the columns."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from performing import build
from small_workspace import read_lines, scripted

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.experiments import ExperimentResult
from rallebench.core.starter import STARTER
from rallebench.datasets.reading import read_questions
from rallebench.experiments import BUILDERS
from rallebench.experiments.builders._templates.tables import read_table
from rallebench.services.builders import builder_request
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import WorkspaceFolder

BOOKS = "id,title,author,year,price\n1,Tide,a1,1990,5\n2,Moss,a2,1990,7\n3,Fern,a1,2001,9\n4,Tide,a3,2005,\n5,Reed,a9,2010,3\n"
AUTHORS = [
    {"id": "a1", "name": "Ada Quill", "towns": ["Lakeview", "Northmere"]},
    {"id": "a2", "name": "Bo Lind", "towns": []},
    {"id": "a3", "name": "Bo Lind"},
]
TRIPLES = "Q1\tP19\tQ5\nQ1\tP40\tQ3\nQ1\tP40\tQ4\nQ2\tP19\tQ6\nQ5\tP17\tQ7\nQ6\tP17\tQ7\n"
LABELS = "Q1\tAda Quill\tA. Quill\nQ2\tBo Lind\nQ3\tCy\nQ4\tDee\nQ5\tLakeview\tLake View\nQ6\tTarnwick\nQ7\tMerland\n"

PROPOSED = json.dumps(
    [
        {"question": "Who wrote {title}, of {year}?", "answer": "author"},
        {"question": "How heavy is {title}?", "answer": "weight"},
        {"question": "Which book is it?", "answer": "title"},
        {"question": "What is {title}?", "answer": "title"},
        "nonsense",
    ]
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "books.csv").write_text(BOOKS, encoding="utf-8")
    (tmp_path / "authors.json").write_text(json.dumps(AUTHORS), encoding="utf-8")
    (tmp_path / "facts.tsv").write_text(TRIPLES, encoding="utf-8")
    (tmp_path / "labels.txt").write_text(LABELS, encoding="utf-8")
    writes = f"Sure, here they are:\n```json\n{PROPOSED}\n```"
    models = scripted({"writes": {"default": writes}, "mute": {"default": "I would rather not."}})
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "llms.json").write_text(json.dumps(models), encoding="utf-8")
    return tmp_path


def build_templates(
    folder: Path,
    *templates: dict[str, Any],
    name: str = "own",
    llm: str = "",
    limit: int | None = None,
    **settings: Any,
) -> ExperimentResult:
    given = {
        "tables": f"books={folder / 'books.csv'},authors={folder / 'authors.json'}",
        **settings,
    }
    if templates:
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"templates": templates}), encoding="utf-8")
        given["templates"] = str(path)
    space = WorkspaceFolder(folder / "space")
    return build(space, "templates", name, BUILDERS.settings("templates", given), "", llm, limit)


def read_answers(done: ExperimentResult) -> dict[str, tuple[str, ...]]:
    return {
        example.question.text: example.gold.answers
        for example in read_questions(Path(done.files[0]))
    }


YEAR = {"table": "books", "question": "When did {title} appear?", "answer": "year"}
WRITER = {
    "table": "books",
    "question": "Who wrote {title} in {year}?",
    "answer": "writer.name",
    "join": {"table": "authors", "as": "writer", "on": "author = id"},
}
BOOKS_OF: dict[str, Any] = {
    "table": "authors",
    "join": {"table": "books", "as": "book", "on": "id = author"},
}
SEVERAL = "that fit several with different answers"
OTHERS = {"Moss": ("1990",), "Fern": ("2001",), "Reed": ("2010",)}
AS_ONE, ANY = {"Tide": ("1990; 2005",)} | OTHERS, {"Tide": ("1990", "2005")} | OTHERS
WRITERS = {"Tide in 1990": "Ada Quill", "Moss in 1990": "Bo Lind", "Fern in 2001": "Ada Quill"}
WRITERS |= {"Tide in 2005": "Bo Lind"}
DEAREST = {"question": "Which is the dearest book of {name}?", "answer": "book.title"}
DEAREST |= {**BOOKS_OF, "best": "-book.price"}
COUNT = {**BOOKS_OF, "question": "How many has {name} written?", "answer": "book.id", "count": True}


@pytest.mark.parametrize(
    ("template", "several", "questions", "left_out"),
    [
        (YEAR, "drop", OTHERS, {SEVERAL: 1}),
        (YEAR, "all", AS_ONE, {}),
        (YEAR, "any", ANY, {}),
        ({**YEAR, "several": "any"}, "drop", ANY, {}),
        (WRITER, "drop", {part: (name,) for part, name in WRITERS.items()}, {}),
        (
            DEAREST,
            "drop",
            {"Ada Quill": ("Fern",), "Bo Lind": ("Moss",)},
            {"with an empty value": 1},
        ),
        (COUNT, "drop", {"Ada Quill": ("2",)}, {SEVERAL: 1}),
    ],
)
def test_a_template_gives_these_questions_and_counts_the_others(
    folder: Path,
    template: dict[str, Any],
    several: str,
    questions: dict[str, tuple[str, ...]],
    left_out: dict[str, int],
) -> None:
    """Ambiguous questions, second hops, the best row, counts. Two authors with one name give no question."""
    done = build_templates(folder, template, several=several)
    answers = {
        part: answers
        for question, answers in read_answers(done).items()
        for part in questions
        if part in question
    }
    assert answers == questions and len(read_answers(done)) == len(questions)
    assert done.stored.stages["3-questions"].left_out == left_out


def test_several_rows_with_one_answer_are_no_ambiguity(folder: Path) -> None:
    (folder / "books.csv").write_text(BOOKS.replace("2005", "1990"), encoding="utf-8")
    assert read_answers(build_templates(folder, YEAR))["When did Tide appear?"] == ("1990",)


def test_a_tie_of_the_best_rows_is_no_question(folder: Path) -> None:
    (folder / "books.csv").write_text(BOOKS.replace("2001", "1990"), encoding="utf-8")
    earliest = {
        **BOOKS_OF,
        "question": "Which is the earliest book of {name}, {id}?",
        "answer": "book.title",
        "best": "book.year",
    }
    done = build_templates(folder, earliest)
    assert list(read_answers(done).values()) == [("Moss",), ("Tide",)]
    left_out = done.stored.stages["3-questions"].left_out
    assert left_out == {"with several equally good answers": 1}


def test_relation_templates_over_triples_ask_one_hop_and_two_with_all_names(folder: Path) -> None:
    born = {"question": "Where was {head_name} born?", "answer": "tail_names"}
    country = {"question": "In which country was {head_name} born?", "answer": "then.tail_name"}
    child = {"question": "Who is a child of {head_name}?", "answer": "tail_name", "several": "all"}
    then = {"table": "facts", "as": "then", "on": "tail = head"}
    done = build_templates(
        folder,
        {**born, "where": {"relation": "P19"}},
        {**country, "where": {"relation": "P19", "then.relation": "P17"}, "join": then},
        {**child, "where": {"relation": "P40"}},
        tables=str(folder / "facts.tsv"),
        labels=str(folder / "labels.txt"),
    )
    assert read_answers(done) == {
        "Where was Ada Quill born?": ("Lakeview", "Lake View"),
        "Where was Bo Lind born?": ("Tarnwick",),
        "In which country was Ada Quill born?": ("Merland",),
        "In which country was Bo Lind born?": ("Merland",),
        "Who is a child of Ada Quill?": ("Cy; Dee",),
    }


def test_frequent_and_rare_entities_of_triples_are_told_apart(folder: Path) -> None:
    lines = [f"hub\tP1\tt{n}" for n in range(30)]
    lines += [f"m{n}\tP1\tt{n}" for n in range(30)] + [f"r{n}\tP2\tr{n + 1}" for n in range(30)]
    (folder / "many.tsv").write_text("".join(f"{line}\n" for line in lines))
    table = read_table("many", folder / "many.tsv")
    bands = {row["head"]: (row["head_count"], row["head_band"]) for row in table.rows}
    assert bands["hub"] == (30, "frequent")
    assert bands["m3"] == (1, "rare")
    assert bands["r3"][0] == 2 and bands["r3"][1] != "rare"
    few = {"question": "What is P1 of {head}?", "answer": "tail", "where": {"head_band": "rare"}}
    done = build_templates(
        folder, {**few, "several": "all"}, tables=str(folder / "many.tsv"), limit=5
    )
    assert all(question.startswith("What is P1 of m") for question in read_answers(done))


def test_triples_whose_entities_are_all_alike_have_no_bands(folder: Path) -> None:
    (folder / "ring.tsv").write_text("".join(f"r{n}\tP1\tr{(n + 1) % 9}\n" for n in range(9)))
    assert {row["head_band"] for row in read_table("ring", folder / "ring.tsv").rows} == {""}


@pytest.mark.parametrize("band", ["frequent", "rare"])
def test_the_starters_triples_make_questions_of_either_kind(folder: Path, band: str) -> None:
    templates = STARTER / "triples" / "templates" / f"{band}.json"
    done = build_templates(
        folder, tables="starter-triples", templates=str(templates), limit=8, name=band
    )
    assert len(read_answers(done)) == 8
    assert all(
        answers and not answers[0].startswith("X") for answers in read_answers(done).values()
    )


def test_a_header_of_triples_is_no_triple_and_that_of_a_corpus_is_refused(folder: Path) -> None:
    file = folder / "few.tsv"
    born = {"question": "Where was {head} born?", "answer": "tail", "table": "few"}
    file.write_text("Head\tRelation\tTail\nAda\tP19\tLakeview\n")
    assert read_answers(build_templates(folder, born, tables=str(file))) == {
        "Where was Ada born?": ("Lakeview",)
    }
    file.write_text("id\ttext\ttitle\n1\tThe Danube reaches the Black Sea.\tDanube\n")
    why = r"few.tsv, line 1 names the columns id, text, title, and .* save the table as \.csv"
    for skip_bad in (False, True):
        with pytest.raises(BadFileError, match=why):
            build_templates(folder, born, tables=str(file), skip_bad=skip_bad, name="corpus")
    file.write_text("Title\tP1\tText\n")
    with pytest.raises(BadFileError, match=why.replace("id, text, title", "Title, P1, Text")):
        build_templates(folder, born, tables=str(file), name="any-order")


def test_the_same_seed_draws_the_same_questions_and_templates_take_turns(folder: Path) -> None:
    first, again, other = (
        build_templates(folder, YEAR, WRITER, name=name, limit=4, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert read_answers(first) == read_answers(again) != read_answers(other)
    assert list(first.stored.counts["by_template"].values()) == [2, 2]


def test_records_say_where_they_come_from_and_are_written_in_r_evals_form_too(folder: Path) -> None:
    done = build_templates(folder, {**WRITER, "id": "writer", "level": "KA"}, environment="scholar")
    record = json.loads(Path(done.files[0]).read_text(encoding="utf-8").splitlines()[0])
    names = ("environment", "dataset", "level", "template", "hops")
    assert [record[name] for name in names] == ["scholar", "own", "KA", "writer", 2]
    own = json.loads(Path(done.files[1]).read_text(encoding="utf-8").splitlines()[0])
    assert own["environment"] == "aminer"
    assert own["_id"] == record["_id"]
    assert own["outputs"] == [record["output"][0]["answer"]]


def test_templates_of_a_model_are_checked_against_the_columns(folder: Path) -> None:
    done = build_templates(folder, llm="writes", propose=5, tables=str(folder / "books.csv"))
    assert done.stored.counts["by_template"].keys() == {"books-1"}
    assert read_answers(done)["Who wrote Moss, of 1990?"] == ("a2",)
    why = done.stored.stages["2-proposed"].left_out
    assert len(why) == 3 and any("'weight'" in reason for reason in why)


def test_without_a_usable_template_or_a_question_it_ends_in_a_sentence(folder: Path) -> None:
    with pytest.raises(BadFileError, match="No template can be used"):
        build_templates(folder, llm="mute", propose=3)
    with pytest.raises(BadFileError, match="No template gives a question"):
        build_templates(folder, {**YEAR, "where": {"title": "Nothing"}}, name="none")


BOOK = {"table": "books", "question": "Who is {title}?", "answer": "year"}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({**BOOK, "question": "Who is {titel}?"}, "the column 'titel'.*Did you mean 'title'"),
        ({**BOOK, "answer": "weight"}, "the column 'weight'.*Its columns are id, title"),
        ({**BOOK, "answer": "title"}, "names its answer 'title' in its question"),
        ({**BOOK, "table": "shops"}, "no table 'shops'; they are books, authors"),
        ({**BOOK, "table": ""}, 'needs a "table"'),
        ({**BOOK, "question": "Who is it?"}, "names no column in braces"),
        ({**BOOK, "colour": "red"}, "'colour' is wrong .there is no such field.*parts of a templ"),
        ({**WRITER, "join": {"table": "authors", "on": "author"}}, "a join is"),
        (
            {**WRITER, "join": {"table": "authors", "as": "writer", "on": "author = key"}},
            "the column 'key', which the table 'authors'",
        ),
        ({**YEAR, "several": "some"}, "'several' is wrong .*'drop', 'all' or 'any'"),
        ({**YEAR, "number": -1}, "'number' is wrong"),
        ({**YEAR, "strata": {"year": 3}}, "'strata.year' is wrong"),
    ],
)
def test_a_wrong_template_writes_nothing(folder: Path, template: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        build_templates(folder, template)
    assert not (folder / "space" / "experiments").exists()


@pytest.mark.parametrize(
    ("settings", "kind", "why"),
    [
        ({"tables": "nowhere.csv"}, NotFoundError, "nowhere.csv does not exist"),
        ({"tables": ""}, UsageError, "No table is given"),
        ({"templates": "nowhere.json"}, BadFileError, "nowhere.json does not exist"),
        ({"templates": ""}, UsageError, "No file of templates is named"),
        ({"propose": 3, "templates": ""}, UsageError, "asks a language model for templates"),
        ({"prompts": "/"}, BadFileError, "reads no prompt, so / would change nothing"),
    ],
)
def test_what_is_missing_is_one_sentence(
    folder: Path, settings: dict[str, Any], kind: type[Exception], why: str
) -> None:
    own = {"tables": str(folder / "books.csv"), "templates": str(folder / "none.json")}
    with pytest.raises(kind, match=why):
        build_templates(folder, **{**own, **settings})


def test_bad_rows_end_it_with_their_line_or_are_left_out_if_chosen(folder: Path) -> None:
    (folder / "books.csv").write_text(BOOKS + "6,Torn\n", encoding="utf-8")
    with pytest.raises(BadFileError, match="line 7 has 2 fields"):
        build_templates(folder, YEAR)
    assert len(read_answers(build_templates(folder, YEAR, skip_bad=True))) == 3


def test_a_making_that_died_while_it_wrote_its_files_can_be_made_again(folder: Path) -> None:
    """After kill -9: the dataset exists, but its sha256 was not recorded yet."""
    template = {"table": "books", "question": "Who wrote {title} in {year}?", "answer": "author"}
    first = build_templates(folder, template)
    questions = Path(first.files[0])
    record = first.folder / "written.json"
    record.write_text(json.dumps({"sha256": {}, "writing": list(first.files)}))
    assert build_templates(folder, template).files == first.files and read_questions(questions)
    assert json.loads(record.read_text())["writing"] == []
    record.unlink()
    with pytest.raises(UsageError, match="exists already and was not made here"):
        build_templates(folder, template)


def test_a_plan_names_the_stages_and_asks_no_model(folder: Path) -> None:
    space = WorkspaceFolder(folder / "space")
    tables = {"tables": f"books={folder / 'books.csv'}", "propose": 3}
    settings = BUILDERS.settings("templates", tables)
    bench = Workbench(space.path)
    request = builder_request(space, "templates", "own", settings, llm="writes")
    plan = bench.experiments.plan(request)
    assert plan.rows == ("1-templates", "2-proposed")
    assert "depends on what they are made of" in plan.notes[0] and not request.folder.exists()
    bench.close()


# ── the starter's ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["easy", "hard", "profiling"])
def test_the_starters_scholar_questions_are_of_its_templates(folder: Path, kind: str) -> None:
    name = f"starter-scholar-{kind}"
    path = STARTER / "scholars" / "templates" / f"{kind}.json"
    done = build_templates(folder, dataset=name, tables="starter-scholars", templates=str(path))
    committed = STARTER / "questions" / f"{name}.jsonl"
    assert Path(done.files[0]).read_bytes() == committed.read_bytes()
    rows = read_lines(committed)
    assert len(rows) == 100 and {row["environment"] for row in rows} == {"scholar"}


def test_the_profiling_questions_have_r_evals_strata() -> None:
    rows = read_lines(STARTER / "questions" / "starter-scholar-profiling.jsonl")
    template = json.loads((STARTER / "scholars" / "templates" / "profiling.json").read_text())
    (strata,) = template["templates"][0]["strata"].values()
    assert list(strata.values()) == [20, 16, 14, 14, 10, 10, 6, 3, 3, 2, 2]
    assert list(strata)[:3] == ["Professor", "Other", "Researcher"]
    assert Counter(row["output"][0]["answer"] for row in rows) == strata
