"""Gold is read under any usual name and form; unreadable gold is named."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from importing import imported_dataset

from rallebench.core.errors import BadFileError
from rallebench.datasets.fields import GOLD, PAGES, WEAK
from rallebench.datasets.importing import ImportedDataset
from rallebench.datasets.reading import dataset_form, read_questions


def imported(
    path: Path, rows: Sequence[Mapping[str, Any]] | str, **settings: Any
) -> ImportedDataset:
    """Import rows, as JSON lines or as CSV text, as a dataset of a workspace beside the file."""
    file = path / ("q.csv" if isinstance(rows, str) else "q.jsonl")
    file.write_text(rows if isinstance(rows, str) else "".join(json.dumps(r) + "\n" for r in rows))
    return imported_dataset(path / "datasets", "mine", file, **settings)


def answers(dataset: ImportedDataset) -> list[tuple[str, ...]]:
    return [example.gold.answers for example in read_questions(dataset.path)]


def pages(dataset: ImportedDataset) -> list[list[list[str]]]:
    golds = (example.gold for example in read_questions(dataset.path))
    return [[sorted(ids) for ids in gold.provenance] for gold in golds]


@pytest.mark.parametrize("name", [*GOLD, *WEAK, "goldenAnswers", "Ground Truth", "Expected-Answer"])
def test_every_usual_name_of_the_gold_is_read(name: str, tmp_path: Path) -> None:
    made = imported(tmp_path, [{"id": 1, "question": "Which moon?", name: "Titan"}])
    assert answers(made) == [("Titan",)]
    assert (made.answers, made.pages, made.neither, made.warnings) == (1, 0, 0, ())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["Titan", "Saturn VI"], ("Titan", "Saturn VI")),
        ("['Titan', \"Saturn's moon\"]", ("Titan", "Saturn's moon")),
        ('["Titan", "Saturn VI"]', ("Titan", "Saturn VI")),
        ("['Titan' 'Saturn VI']", ("Titan", "Saturn VI")),
        ("array(['Titan', 'Saturn VI'], dtype=object)", ("Titan", "Saturn VI")),
        ({"text": ["Titan"], "answer_start": [3]}, ("Titan",)),
        ("{'text': array(['Titan'], dtype=object), 'answer_start': array([3])}", ("Titan",)),
        ([{"text": "Titan", "answer_start": 3}, {"text": "Saturn VI"}], ("Titan", "Saturn VI")),
        ({"value": "Titan", "aliases": ["Saturn VI"], "type": "x"}, ("Titan", "Saturn VI")),
        ({"spans": ["Titan"], "number": "", "date": {}}, ("Titan",)),
        ({"number": "3", "spans": [], "date": {"day": "", "year": ""}}, ("3",)),
        ({"number": "", "spans": [], "date": {"day": "3", "month": "May"}}, ("3 May",)),
        ("('Titan', 'Saturn VI')", ("Titan", "Saturn VI")),
        ("[np.str_('Titan'), np.str_('Saturn VI')]", ("Titan", "Saturn VI")),
        ("np.array(['Titan', nan, NaT], dtype=object)", ("Titan",)),
        ("[np.float64(1898.0), np.int64(3), np.float64(nan), np.nan]", ("1898", "3")),
        ("{np.str_('Titan')}", ("Titan",)),
        ('"[\\"Titan\\", \\"Saturn VI\\"]"', ("Titan", "Saturn VI")),
        ('"Titan"', ('"Titan"',)),
        ("[os.system('x')]", ("[os.system('x')]",)),
        (1898, ("1898",)),
        (1898.0, ("1898",)),
        ("1898.0", ("1898", "1898.0")),
        (2.5, ("2.5",)),
        ([1898, "1898年"], ("1898", "1898年")),
        ("(3, 4)", ("(3, 4)",)),
        ("[sic] Titan", ("[sic] Titan",)),
        ("none", ("none",)),
    ],
)
def test_every_usual_form_of_answers_is_read(
    value: Any, expected: tuple[str, ...], tmp_path: Path
) -> None:
    made = imported(tmp_path, [{"question": "Which?", "answers": value}])
    assert answers(made) == [expected]


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), "", " ", "nan", "NaN", "None", "null", "<NA>", [], ["nan"], [None]],
)
def test_a_missing_value_is_no_answer(value: Any, tmp_path: Path) -> None:
    rows = [{"question": "Which?", "answer": value}, {"question": "Who?", "answer": "Ada"}]
    made = imported(tmp_path, rows)
    assert answers(made) == [(), ("Ada",)] and (made.answers, made.neither) == (1, 1)


def test_an_answer_that_is_read_as_missing_is_told(tmp_path: Path) -> None:
    made = imported(tmp_path, "question,answer\nWhich?,nan\nWho?,None\nWhere?,Ulm\n")
    assert made.notes[-1] == (
        "2 answers ('nan', 'None') interpreted as missing, since programs write empty cells this way."
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "an answer is an object with no field"),
        ({"start": 3}, "an answer is an object with start"),
        (True, "an answer is true without quotes"),
        ([["Titan"], ["Triton"]], "an answer is a list inside a list"),
    ],
)
def test_gold_of_an_unknown_form_is_a_bad_row(value: Any, fault: str, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=fault):
        imported(tmp_path, [{"question": "Which?", "answer": value}])


def test_a_question_may_be_an_object_with_its_text(tmp_path: Path) -> None:
    made = imported(tmp_path, [{"question": {"text": "Which?", "tokens": []}, "answer": "Titan"}])
    assert [e.question.text for e in read_questions(made.path)] == ["Which?"]


def test_a_cell_with_bars_holds_several_answers_but_a_formula_is_one(tmp_path: Path) -> None:
    made = imported(tmp_path, "question,answer\na?,Titan|Saturn VI\nb?,|x|\nc?,P(A|B)\n")
    assert answers(made) == [("Titan", "Saturn VI"), ("|x|",), ("P(A|B)",)]
    assert made.notes == (
        "No question names a gold page: retrieval can only be scored by the answers' text.",
        "1 cell with | or ; between several answers: each of them is accepted.",
    )


def test_answers_with_semicolons_are_named_because_each_counts_as_one(tmp_path: Path) -> None:
    made = imported(tmp_path, "question,answer\na?,Titan; Saturn VI\nb?,Oslo; Bergen\n")
    assert answers(made) == [("Titan; Saturn VI",), ("Oslo; Bergen",)]
    assert made.warnings == (
        "2 answers contain ; and are each accepted only as a whole. If each means several, put | between them in the file.",
    )


def test_the_gold_is_preferred_to_a_systems_answer_which_is_named(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "answer": "Rhea", "ground_truth": "Titan", "level": "hard"}]
    made = imported(tmp_path, rows)
    assert answers(made) == [("Titan",)]
    (warning,) = made.warnings
    assert warning.startswith("Unused fields that look like gold: 'answer' (1 row).")
    rows = [{"user_input": "Which?", "response": "Rhea", "reference": "Titan"}]
    other = imported(tmp_path / "datasets", rows)
    assert answers(other) == [("Titan",)] and "'response' (1 row)" in other.warnings[0]


def test_answers_that_say_the_same_twice_are_no_warning(tmp_path: Path) -> None:
    made = imported(tmp_path, [{"question": "?", "answers": ["Titan", "VI"], "answer": "Titan"}])
    assert made.warnings == ()


def test_a_link_that_is_called_reference_is_no_answer(tmp_path: Path) -> None:
    made = imported(tmp_path, [{"question": "?", "reference": "https://example.org/titan"}])
    assert answers(made) == [()]
    assert made.warnings[0].startswith("None of 1 question has an answer or a gold page")


def test_a_file_without_gold_names_the_fields_that_are_left_over(tmp_path: Path) -> None:
    rows = [
        {"question": "a?", "names": ["Titan"], "level": "easy", "gold_text": ""},
        {"question": "b?", "names": ["Ulm"], "gold_text": "x"},
    ]
    made = imported(tmp_path, rows)
    assert (made.questions, made.answers, made.pages, made.neither) == (2, 0, 0, 2)
    assert made.warnings == (
        "None of 2 questions has an answer or a gold page: only time and tokens can be measured. Unused fields: 'names' "
        "(2 rows), 'level' (1 row), 'gold_text' (1 row).",
        "Unused fields that look like gold: 'names' (2 rows), 'gold_text' (1 row). If they are the gold, rename the right field to 'answers' (or "
        "'page_id') and import again.",
    )


def test_gold_of_another_form_beside_kilts_input_is_read(tmp_path: Path) -> None:
    made = imported(tmp_path, [{"id": "a", "input": "Which?", "answers": ["Titan"]}])
    assert (made.form, answers(made)) == ("jsonl", [("Titan",)])
    plain = imported(tmp_path / "datasets", [{"id": "a", "input": "Which?", "names": ["Titan"]}])
    assert plain.form == "kilt" and "'names' (1 row)" in plain.warnings[1]


# gold pages


@pytest.mark.parametrize(
    "name", [n for n in PAGES if n not in ("supporting_facts", "evidence_list")]
)
def test_every_usual_name_of_a_gold_page_is_read(name: str, tmp_path: Path) -> None:
    made = imported(tmp_path, [{"question": "?", "answer": "a", name: "p1"}])
    assert pages(made) == [[["p1"]]] and made.pages == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12.0, ["12"]),
        ("12.0", ["12"]),
        ("[12, 15]", ["12", "15"]),
        ([12, 15.0], ["12", "15"]),
        ("['a b', 'c']", ["a b", "c"]),
        ([{"title": "Titan", "url": "u"}], ["Titan"]),
        ("https://example.org/titan", ["https://example.org/titan"]),
        ({"title": ["Titan", "Titan", "Ulm"], "sent_id": [0, 1, 0]}, ["Titan", "Ulm"]),
        ([["Titan", 0], ["Ulm", 2]], ["Titan", "Ulm"]),
        ("12, 15", ["12", "15"]),
        ("12,15.0", ["12", "15"]),
        ("12;15|16 17", ["12", "15", "16", "17"]),
        ("{12, 15}", ["12", "15"]),
        ("(12, 15)", ["12", "15"]),
        ("Apollo 11, 12", ["Apollo 11, 12"]),
    ],
)
def test_every_usual_form_of_gold_pages_is_read(
    value: Any, expected: list[str], tmp_path: Path
) -> None:
    made = imported(tmp_path, [{"question": "?", "answer": "a", "page_id": value}])
    assert pages(made) == [[sorted(expected)]]


@pytest.mark.parametrize("value", [None, float("nan"), "", "nan", []])
def test_a_missing_page_is_no_gold_page(value: Any, tmp_path: Path) -> None:
    made = imported(tmp_path, [{"question": "?", "answer": "a", "page_id": value}])
    assert pages(made) == [[]] and made.pages == 0


def test_the_evidence_list_of_multihop_rag_gives_the_gold_pages(tmp_path: Path) -> None:
    evidence = [{"title": "Titan", "url": "u1", "fact": "x"}, {"title": "Ulm", "url": "u2"}]
    made = imported(tmp_path, [{"query": "?", "answer": "a", "evidence_list": evidence}])
    assert pages(made) == [[["Titan", "Ulm"]]] and made.warnings == ()


def test_hotpotqa_as_on_hugging_face_has_its_gold_pages(tmp_path: Path) -> None:
    row = {
        "id": "h1",
        "question": "Which sea does the river of Ulm reach?",
        "answer": "Black Sea",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": ["Ulm", "Danube", "Danube"], "sent_id": [0, 0, 1]},
        "context": {
            "title": ["Ulm", "Danube", "Linz"],
            "sentences": [["Ulm lies on it."], ["A river.", " It ends."], ["A city."]],
        },
    }
    made = imported(tmp_path, [row])
    assert (made.form, answers(made), pages(made)) == (
        "hotpotqa",
        [("Black Sea",)],
        [[["Danube", "Ulm"]]],
    )
    evidences = {**row, "evidences": [["Ulm", "river", "Danube"]]}
    file = tmp_path / "w.jsonl"
    file.write_text(json.dumps(evidences) + "\n")
    assert dataset_form(file) == "2wikimultihopqa"
    squad = {"id": "1", "question": "?", "context": "Titan is a moon.", "answers": {"text": ["a"]}}
    file.write_text(json.dumps(squad) + "\n")
    assert dataset_form(file) == "jsonl"


CORPUS = {"titan.md": ["d1"], "Titan": ["d1"], "Ulm": ["d2", "d3"]}


def find(names: Collection[str]) -> dict[str, dict[str, list[str]]]:
    return {"docs": {n: CORPUS[n] for n in names if n in CORPUS}, "other": {}}


def test_a_field_that_names_pages_of_a_corpus_gives_the_gold_pages(tmp_path: Path) -> None:
    text = "question,answer,source\na?,x,titan.md\nb?,y,Ulm\nc?,,unknown\n"
    made = imported(tmp_path, text, find_pages=find)
    assert pages(made) == [[["d1"]], [["d2"], ["d3"]], []]
    assert answers(made) == [("x",), ("y",), ()]
    assert (made.pages, made.neither, made.warnings) == (2, 1, ())
    assert made.notes == (
        "The field 'source' names pages of the corpus 'docs' in 2 of 3 rows; they are the gold pages.",
    )


def test_a_gold_page_that_the_corpus_lacks_stays_and_is_counted(tmp_path: Path) -> None:
    text = "question,answer,{0}\na?,x,titan.md; lost.md\nb?,y,Titan\n"
    for name in ("source", "gold_docs"):
        folder = tmp_path / name
        folder.mkdir()
        made = imported(folder, text.format(name), find_pages=find)
        assert pages(made) == [[["d1", "lost.md"]], [["d1"]]]
        assert made.warnings == (
            "Not in the corpus 'docs': 1 gold page, such as 'lost.md'; no search of it can find them.",
        )


def test_gold_pages_that_no_corpus_has_are_told_once_there_is_one(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "a", "gold_docs": "lost.md"}]
    assert imported(tmp_path, rows, find_pages=lambda _: {}).warnings == ()
    (made,) = imported(tmp_path, rows, find_pages=find).warnings
    assert made.startswith("For 1 row with gold pages, such as")


def test_what_metadata_says_of_the_source_is_read(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "a", "metadata": {"source": "titan.md", "level": 1}}]
    assert pages(imported(tmp_path, rows, find_pages=find)) == [[["d1"]]]


def test_numbered_answers_are_named_and_aliases_are_accepted(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer_0": "Titan", "answer1": "Saturn VI"}]
    (_, left) = imported(tmp_path, rows).warnings
    assert (
        "'answer_0' (1 row), 'answer1' (1 row)" in left or "'answer1' (1 row), 'answer_0'" in left
    )
    rows = [{"question": "?", "answer": "Titan", "aliases": ["Saturn VI"]}]
    assert answers(imported(tmp_path / "datasets", rows)) == [("Titan", "Saturn VI")]


@pytest.mark.parametrize(
    "cell",
    [
        "titan.md; Rhine",
        "titan.md,Rhine",
        "titan.md|Rhine",
        "titan.md, Rhine",
        "['titan.md', 'Rhine']",
    ],
)
def test_a_cell_may_name_several_pages_that_are_needed_together(cell: str, tmp_path: Path) -> None:
    known = {"titan.md": ["d1"], "Rhine": ["d4"], "Paris, Texas": ["d5"], "Paris": ["d6"]}
    text = f'question,answer,source_docs\na?,x,"{cell}"\nb?,y,"Paris, Texas"\n'
    made = imported(
        tmp_path, text, find_pages=lambda names: {"c": {n: known[n] for n in names if n in known}}
    )
    assert pages(made) == [[["d1", "d4"]], [["d5"]]]


def test_a_field_that_names_no_known_page_is_named_as_ignored(tmp_path: Path) -> None:
    made = imported(
        tmp_path,
        "question,answer,url\na?,x,https://e.org/1\nb?,y,https://e.org/2\n",
        find_pages=find,
    )
    assert pages(made) == [[], []]
    assert made.warnings == (
        "Ignored: 'url' (2 rows) may name gold pages, but in no imported corpus half of the rows match a page id, title "
        "or address, such as 'https://e.org/1'. Import the corpus first, then the questions.",
    )


def test_titles_in_a_field_of_gold_pages_become_the_ids_of_the_corpus(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "a", "page_id": "Titan"}]
    assert pages(imported(tmp_path, rows, find_pages=find)) == [[["d1"]]]
    rows = [{"question": "?", "answer": "a", "page_id": "p9"}]
    assert pages(imported(tmp_path / "datasets", rows, find_pages=find)) == [[["p9"]]]


SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Titan",
            "paragraphs": [
                {
                    "context": "A moon.",
                    "qas": [
                        {"id": "a", "question": "Which moon?", "answers": [{"text": "Titan"}]},
                        {"id": "b", "question": "Which sea?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}
TRIVIA = {
    "Domain": "web",
    "Data": [{"Question": "Which moon?", "Answer": {"Value": "Titan", "Aliases": ["Saturn VI"]}}],
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SQUAD, [("Titan",), ()]),
        (TRIVIA, [("Titan", "Saturn VI")]),
        ({"examples": [{"query": "Which?", "reference_answer": "Titan"}]}, [("Titan",)]),
        ({"question": ["Which?", "Who?"], "answer": ["Titan", "Ada"]}, [("Titan",), ("Ada",)]),
        ({"question": {"0": "Which?"}, "answer": {"0": "Titan"}}, [("Titan",)]),
    ],
)
def test_an_object_around_the_questions_is_read(
    value: Any, expected: list[tuple[str, ...]], tmp_path: Path
) -> None:
    file = tmp_path / "q.json"
    for indent in (None, 1):
        file.write_text(json.dumps(value, indent=indent))
        made = imported_dataset(tmp_path / f"datasets{indent}", "mine", file)
        assert answers(made) == expected


@pytest.mark.parametrize("name", ["q.tsv", "q.csv", "q.tab"])
@pytest.mark.parametrize("header", ["question\tpossible_answers\n", ""])
def test_tables_with_tabs_are_read_also_without_a_header_as_dpr_writes_them(
    name: str, header: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(header + "Which moon, then?\t['Titan', \"Saturn's VI\"]\nWho?\t['Ada']\n")
    made = imported_dataset(tmp_path / "datasets", "mine", file)
    assert answers(made) == [("Titan", "Saturn's VI"), ("Ada",)]
    assert read_questions(made.path)[0].question.text == "Which moon, then?"


def test_a_table_of_passages_is_no_question_set(tmp_path: Path) -> None:
    file = tmp_path / "c.tsv"
    file.write_text("id\ttext\ttitle\n1\tA moon.\tTitan\n")
    assert dataset_form(file) == "kilt"


@pytest.mark.parametrize(
    "value", ["['a' 'b' ... 'z']", "['a', 'b'", "[b'a']", "array(['a', ..., 'z'])", "[“a”, “b”]"]
)
def test_a_list_that_is_cut_off_is_a_bad_row(value: str, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="an answer is a list that is cut off or cannot be read"):
        imported(tmp_path, [{"question": "?", "answers": value}])


def test_semicolons_part_the_answers_of_a_field_in_the_plural(tmp_path: Path) -> None:
    made = imported(tmp_path, "question,answers\n?,Titan; Saturn VI\n")
    assert answers(made) == [("Titan", "Saturn VI")]
    assert made.notes[-1].startswith("1 cell with | or ; between several answers")
    other = imported(tmp_path / "datasets", "question,answer\n?,Titan; Saturn VI\n")
    assert answers(other) == [("Titan; Saturn VI",)]


# questions without a right answer


@pytest.mark.parametrize(
    ("fields", "unanswerable"),
    [
        ({"is_impossible": True}, True),
        ({"is_impossible": False, "answer": "Titan"}, False),
        ({"isImpossible": True, "answers": []}, True),
        ({"answerable": False}, True),
        ({"answerable": True, "answer": "Titan"}, False),
        ({"is_answerable": 0}, True),
        ({"unanswerable": "true"}, True),
        ({"unanswerable": 1.0}, True),
        ({"unanswerable": None, "answer": "Titan"}, False),
        ({"answerable": float("nan"), "answer": "Titan"}, False),
        ({"unanswerable": True, "answer": "I don't know."}, True),
        ({"unanswerable": True, "answers": {"text": [], "answer_start": []}}, True),
    ],
)
def test_a_field_may_say_that_there_is_no_answer(
    fields: Mapping[str, Any], unanswerable: bool, tmp_path: Path
) -> None:
    made = imported(tmp_path, [{"question": "Which?", **fields}])
    (example,) = read_questions(made.path)
    assert example.gold.unanswerable is unanswerable
    assert example.gold.answers == (() if unanswerable else ("Titan",))
    assert (made.unanswerable, made.neither) == (int(unanswerable), 0)


def test_a_column_may_say_that_there_is_no_answer(tmp_path: Path) -> None:
    text = "question,answer,answerable\na?,x,yes\nb?,,No\nc?,y,\n"
    made = imported(tmp_path, text)
    assert [e.gold.unanswerable for e in read_questions(made.path)] == [False, True, False]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"answerable": "perhaps"}, "line 1: 'answerable' is neither true nor false"),
        ({"is_impossible": [True]}, "line 1: 'is_impossible' is neither true nor false"),
        (
            {"answerable": False, "answer": "Titan"},
            "is unanswerable, but accepts the answer 'Titan'",
        ),
    ],
)
def test_a_field_that_contradicts_the_gold_is_a_bad_row(
    fields: Mapping[str, Any], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=fault):
        imported(tmp_path, [{"question": "Which?", **fields}])
