"""Edits of datasets: what they write, what they refuse, and how they are undone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from full_disk import no_file_grows_beyond
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from performing import prepared
from small_workspace import QUESTIONS, RECORDS, write_lines

from rallebench.core.dataset_edits import GoldPage, QuestionDraft
from rallebench.core.errors import BackendError, BadFileError, NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.datasets.edit_history import history_file
from rallebench.services.dataset_edits import ChangedQuestionError, DatasetEdits
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import WorkspaceFolder


def read_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(bench: Workbench) -> Path:
    return bench.workspace.path / "datasets" / "tiny-qa.jsonl"


def draft(bench: Workbench, qid: str) -> QuestionDraft:
    return bench.edits.read("tiny-qa", qid).draft


# adding


def test_a_question_is_added_to_a_new_dataset_with_its_pages(bench: Workbench) -> None:
    pages = (GoldPage("p5", "H"),)
    answers = ("Huygens ", "", "Christiaan Huygens")
    add = bench.edits.add
    assert add("mine", QuestionDraft("Who found Titan?", answers, (pages,))).added == ("own-1",)
    assert add("mine", QuestionDraft("Which moon?", ("Titan",)), source="chat").added == ("chat-2",)
    path = bench.workspace.path / "datasets" / "mine.jsonl"
    assert read_lines(path) == [
        {
            "id": "own-1",
            "input": "Who found Titan?",
            "output": [
                {"answer": "Huygens", "provenance": [{"wikipedia_id": "p5", "title": "H"}]},
                {"answer": "Christiaan Huygens"},
            ],
        },
        {"id": "chat-2", "input": "Which moon?", "output": [{"answer": "Titan"}]},
    ]
    assert [x.gold.answers for x in bench.workspace.questions("mine")][1] == ("Titan",)
    assert not list(path.parent.glob(".*")), "no lock and no part is left"
    assert "mine.history" not in bench.workspace.dataset_paths(), "a history is not listed"


@pytest.mark.parametrize(
    ("name", "question", "answers", "sentence"),
    [
        ("tiny-qa", "Which moon goes round Neptune backwards?", ("Triton",), "with the id 'q2'"),
        ("starter-qa", "New?", ("x",), "does not lie in this workspace"),
        ("mine", " ", ("x",), "no question to save"),
        ("mine", "New?", (" ",), "no answer to save"),
        ("a/b", "New?", ("x",), "cannot be a folder name"),
        ("beir", "New?", ("x",), "only KILT's format can be edited"),
        ("packed", "New?", ("x",), "is compressed"),
        ("bad", "New?", ("x",), r"bad.jsonl, line 2 is not valid JSON"),
    ],
)
def test_a_refused_addition_leaves_all_files_as_they_are(
    bench: Workbench, name: str, question: str, answers: tuple[str, ...], sentence: str
) -> None:
    folder = bench.workspace.path / "datasets"
    (folder / "beir.jsonl").write_text('{"question": "Which sea?", "answer": "Black Sea"}\n')
    (folder / "packed.jsonl.gz").write_bytes(b"")
    (folder / "bad.jsonl").write_text('{"id": "a", "input": "A?", "output": []}\n{"id": "b"\n')
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises((UsageError, BadFileError), match=sentence):
        bench.edits.add(name, QuestionDraft(question, answers))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_id_is_given_once(bench: Workbench) -> None:
    new = QuestionDraft("New?", ("x",))
    with pytest.raises(UsageError, match="already has a question with the id 'q2'"):
        bench.edits.add("tiny-qa", new, qid="q2")
    assert bench.edits.add("tiny-qa", new, qid=" mine ").added == ("mine",)


def test_a_file_without_a_last_line_end_stays_one(bench: Workbench, path: Path) -> None:
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    bench.edits.add("tiny-qa", QuestionDraft("New?", ("x",)))
    assert read_lines(path)[-1]["id"] == "own-9" and not path.read_bytes().endswith(b"\n")


# changing


def test_a_change_keeps_all_that_it_does_not_touch(bench: Workbench, path: Path) -> None:
    pages = [
        {"wikipedia_id": "p1", "title": "Titan", "start": 3},
        {"wikipedia_id": "p9", "relevance": 0},
    ]
    record = {
        "id": "a",
        "source": {"year": 1655},
        "input": "Which moon?",
        "output": [{"answer": "Titan", "provenance": pages, "meta": 1}, {"answer": "Saturn VI"}],
    }
    write_lines(path, [record])
    edits, old = bench.edits, draft(bench, "a")
    assert old.evidence == ((GoldPage("p1", "Titan"),),)
    edits.change("tiny-qa", {"a": replace(old, answers=("Saturn VI", "Titan"))})
    (now,) = read_lines(path)
    assert now == {**record, "output": [{"answer": "Saturn VI"}, record["output"][0]]}  # type: ignore[index]
    evidence = ((GoldPage("p1", "Titan"), GoldPage("p2")), (GoldPage("p3", "C", "d7"),))
    edits.change("tiny-qa", {"a": replace(draft(bench, "a"), evidence=evidence, group="moons")})
    (now,) = read_lines(path)
    assert now == {
        **record,
        "output": [
            {"answer": "Saturn VI", "provenance": [pages[0], {"wikipedia_id": "p2"}, pages[1]]},
            {"answer": "Titan", "meta": 1},
            {"provenance": [{"wikipedia_id": "p3", "title": "C", "doc_id": "d7"}]},
        ],
        "group": "moons",
    }
    gold = bench.workspace.questions("tiny-qa")[0].gold
    assert gold.provenance == (frozenset({"p1", "p2"}), frozenset({"p3"}))
    assert gold.passages == (frozenset({"d7"}),)
    edits.change("tiny-qa", {"a": replace(draft(bench, "a"), answers=("Titan",))})
    assert draft(bench, "a").evidence == evidence, "the evidence of a removed answer stays"


def test_a_question_becomes_unanswerable_and_answerable_again(bench: Workbench) -> None:
    change = bench.edits.change
    with pytest.raises(UsageError, match="unanswerable, but accepts an answer"):
        change("tiny-qa", {"q1": replace(draft(bench, "q1"), unanswerable=True)})
    change("tiny-qa", {"q1": replace(draft(bench, "q1"), answers=(), unanswerable=True)})
    gold = bench.workspace.questions("tiny-qa")[0].gold
    assert (gold.unanswerable, gold.answers, gold.pages) == (True, (), frozenset({"p1"}))
    change("tiny-qa", {"q1": replace(draft(bench, "q1"), answers=("Titan",), unanswerable=False)})
    assert bench.workspace.questions("tiny-qa")[0].record == RECORDS[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text": "  "}, "no question to save"),
        ({"text": QUESTIONS[2][1]}, "already contains this question, with the id 'q3'"),
        ({"answers": (), "evidence": ()}, "no answer to save"),
    ],
)
def test_a_refused_change_writes_nothing(
    bench: Workbench, path: Path, changes: dict[str, object], sentence: str
) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match=sentence):
        bench.edits.change("tiny-qa", {"q1": replace(draft(bench, "q1"), **changes)})  # type: ignore[arg-type]
    assert path.read_bytes() == before and not history_file(path).exists()


def test_nothing_changed_is_no_edit(bench: Workbench, path: Path) -> None:
    assert bench.edits.change("tiny-qa", {"q1": draft(bench, "q1")}) == 0
    assert bench.edits.history("tiny-qa").edits == ()


def test_the_second_of_two_windows_is_told(bench: Workbench) -> None:
    edits, opened = bench.edits, bench.edits.read("tiny-qa", "q1")
    known = {"q1": opened.mark}
    first, second = (replace(opened.draft, answers=(answer,)) for answer in ("A", "B"))
    assert edits.change("tiny-qa", {"q1": first}, known) == 1
    with pytest.raises(
        ChangedQuestionError, match="'q1' of tiny-qa was changed meanwhile"
    ) as error:
        edits.change("tiny-qa", {"q1": second}, known)
    assert error.value.record == bench.workspace.questions("tiny-qa")[0].record
    with pytest.raises(ChangedQuestionError):
        edits.delete("tiny-qa", ["q1"], known)
    assert draft(bench, "q1").answers == ("A",)
    edits.delete("tiny-qa", ["q1"])
    with pytest.raises(ChangedQuestionError, match="was deleted meanwhile") as error:
        edits.change("tiny-qa", {"q1": second}, known)
    assert error.value.record is None
    with pytest.raises(NotFoundError, match="has no question 'q1'"):
        edits.change("tiny-qa", {"q1": second})
    with pytest.raises(NotFoundError, match="has no question 'q1'"):
        edits.read("tiny-qa", "q1")


# deleting, copies, and datasets that cannot be edited


def test_questions_are_deleted_but_never_the_last(bench: Workbench, path: Path) -> None:
    assert bench.edits.delete("tiny-qa", ["q2", "q7", "q2"]) == 6
    assert [record["id"] for record in read_lines(path)] == ["q1", "q3", "q4", "q5", "q6", "q8"]
    with pytest.raises(UsageError, match="would hold no question; delete the dataset instead"):
        bench.edits.delete("tiny-qa", ["q1", "q3", "q4", "q5", "q6", "q8"])
    with pytest.raises(UsageError, match="No question is chosen"):
        bench.edits.delete("tiny-qa", [])
    with pytest.raises(NotFoundError, match="no question 'q2'"):
        bench.edits.delete("tiny-qa", ["q2"])


def test_a_dataset_from_elsewhere_is_copied_and_stays(bench: Workbench, tmp_path: Path) -> None:
    starter = bench.workspace.dataset_paths()["starter-qa"]
    before = starter.read_bytes()
    assert "does not lie in this workspace" in bench.edits.refusal("starter-qa")
    *_, copy = bench.edits.copy("starter-qa", "mine")
    assert copy.questions == 222 and bench.edits.refusal("mine") == ""
    assert bench.workspace.questions("mine") == bench.workspace.questions("starter-qa")
    assert bench.data.import_notes("mine").origin == "the dataset starter-qa"
    bench.edits.delete("mine", ["qa-001"])
    assert starter.read_bytes() == before and len(bench.workspace.questions("mine")) == 221
    with pytest.raises(UsageError, match="'mine' exists already"):
        list(bench.edits.copy("starter-qa", "mine"))
    file = write_lines(tmp_path / "far.jsonl", [{"question": "Which sea?", "answer": "Black Sea"}])
    assert "does not lie in this workspace" in bench.edits.refusal(str(file))
    list(bench.edits.copy(str(file), "near"))
    bench.edits.add("near", QuestionDraft("New?", ("x",)))
    assert len(bench.workspace.questions("near")) == 2


def test_a_deleted_dataset_is_not_written_again(bench: Workbench, path: Path) -> None:
    bench.edits.delete("tiny-qa", ["q1"])
    assert history_file(path).exists()
    bench.data.delete_dataset("tiny-qa")
    assert not history_file(path).exists(), "a later dataset of the name begins its own history"
    with pytest.raises(NotFoundError, match="tiny-qa"):
        bench.edits.delete("tiny-qa", ["q2"])
    assert not path.exists()


# questions of a run


def test_questions_of_a_run_are_added_once(bench: Workbench) -> None:
    chain = bench.workspace.chain("read")
    complete(bench.runs.run(prepared(bench.workspace, chain, "tiny-qa", name="x")))
    run, edits = bench.runs.open("x"), bench.edits
    assert edits.add_from_run("hard", run, ["q2", "q3", "q2"]).added == ("q2", "q3")
    again = edits.add_from_run("hard", run, ["q3", "q4"])
    assert (again.added, again.present) == (("q4",), 1)
    assert [x.record for x in bench.workspace.questions("hard")] == [*RECORDS[1:4]]
    with pytest.raises(UsageError, match="already has all 2 of them"):
        edits.add_from_run("hard", run, ["q2", "q3"])
    with pytest.raises(UsageError, match="has no question 'q99'"):
        edits.add_from_run("hard", run, ["q99"])
    with pytest.raises(UsageError, match="No question is chosen"):
        edits.add_from_run("hard", run, [])
    edits.add("other", QuestionDraft("Another?", ("x",)), qid="q1")
    assert edits.add_from_run("other", run, ["q1"]).added == ("q1-2",)
    assert edits.history("hard").edits[0].about == "the run x"


# history


def test_edits_are_listed_undone_and_redone(bench: Workbench, path: Path) -> None:
    edits, before = bench.edits, path.read_bytes()
    edits.change("tiny-qa", {"q1": replace(draft(bench, "q1"), answers=("T",))})
    edits.delete("tiny-qa", ["q2"])
    edits.add("tiny-qa", QuestionDraft("New?", ("x",)))
    history = edits.history("tiny-qa")
    assert [edit.kind for edit in history.edits] == ["change", "delete", "add"]
    assert history.continuous and not history.problem
    (change,) = history.edits[0].changes
    assert change.qid == "q1" and '"Titan"' in str(change.before) and '"T"' in str(change.after)
    assert "1 question as before" in edits.undo("tiny-qa", 1)
    assert draft(bench, "q1").answers == ("Titan",)
    edits.undo("tiny-qa", 4)
    assert draft(bench, "q1").answers == ("T",), "an undone edit is done again"
    with pytest.raises(UsageError, match="'q1' was changed again since"):
        edits.undo("tiny-qa", 4)
    edits.restore("tiny-qa", 0)
    assert path.read_bytes() == before
    assert [edit.kind for edit in edits.history("tiny-qa").edits][3:] == ["undo", "undo", "return"]
    with pytest.raises(UsageError, match="has no edit 9; it has 6"):
        edits.undo("tiny-qa", 9)
    with pytest.raises(UsageError, match="has no edit 7"):
        edits.restore("tiny-qa", 7)
    with pytest.raises(UsageError, match="at its version 6 already"):
        edits.restore("tiny-qa", 6)


def test_a_question_does_not_come_back_over_another_of_its_id(bench: Workbench) -> None:
    bench.edits.delete("tiny-qa", ["q2"])
    bench.edits.add("tiny-qa", QuestionDraft("New?", ("x",)), qid="q2")
    with pytest.raises(UsageError, match="has another question 'q2' by now"):
        bench.edits.undo("tiny-qa", 1)


def test_the_first_question_of_a_dataset_stays(bench: Workbench) -> None:
    bench.edits.add("mine", QuestionDraft("New?", ("x",)))
    with pytest.raises(UsageError, match="would hold no question"):
        bench.edits.undo("mine", 1)


def test_a_damaged_history_is_told_and_edits_go_on(bench: Workbench, path: Path) -> None:
    edits = bench.edits
    edits.delete("tiny-qa", ["q2"])
    edits.delete("tiny-qa", ["q3"])
    file = history_file(path)
    _, second = file.read_text().splitlines()
    for bad in ("{", '{"kind": "delete"}', '"text"'):
        file.write_text(f"{bad}\n{second}\n")
        history = edits.history("tiny-qa")
        assert "line 1 was damaged by another program" in history.problem
        assert len(history.edits) == 1 and not history.continuous
        with pytest.raises(UsageError, match="Another program changed"):
            edits.restore("tiny-qa", 0)
    edits.undo("tiny-qa", 1)
    assert draft(bench, "q3").answers == ("Texas",)
    assert len(edits.history("tiny-qa").edits) == 2


def test_a_change_by_another_program_is_noticed(bench: Workbench, path: Path) -> None:
    bench.edits.delete("tiny-qa", ["q2"])
    path.write_text(path.read_text().replace("Texas", "texas"))
    assert not bench.edits.history("tiny-qa").continuous
    with pytest.raises(UsageError, match="Another program changed the dataset 'tiny-qa'"):
        bench.edits.restore("tiny-qa", 0)
    bench.edits.undo("tiny-qa", 1)
    assert draft(bench, "q2").answers == ("Triton",), "single edits are undone all the same"


def test_a_full_disk_at_the_first_edit_leaves_no_empty_history(
    bench: Workbench, path: Path
) -> None:
    before = path.read_bytes()
    changed = {"q1": replace(draft(bench, "q1"), text="Which?")}
    with no_file_grows_beyond(10), pytest.raises(BackendError, match="disk"):
        bench.edits.change("tiny-qa", changed)
    assert path.read_bytes() == before and not history_file(path).parent.exists()
    assert bench.edits.change("tiny-qa", changed) == 1
    stored = history_file(path).read_bytes()
    with no_file_grows_beyond(10), pytest.raises(BackendError):
        bench.edits.change("tiny-qa", {"q1": replace(draft(bench, "q1"), text="Who?")})
    assert history_file(path).read_bytes().startswith(stored)


def test_an_edit_that_was_recorded_but_not_written_is_no_edit(bench: Workbench, path: Path) -> None:
    bench.edits.delete("tiny-qa", ["q2"])
    before = path.read_bytes()
    bench.edits.delete("tiny-qa", ["q3"])
    path.write_bytes(before)  # the computer was switched off between the two writes
    history = bench.edits.history("tiny-qa")
    assert len(history.edits) == 1 and history.continuous
    bench.edits.delete("tiny-qa", ["q4"])
    bench.edits.restore("tiny-qa", 0)
    assert len(bench.workspace.questions("tiny-qa")) == 8


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "change", "delete"]), st.integers(0, 7), WORDS, WORDS),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, ending=st.sampled_from(["\n", "\r\n"]), last=st.booleans(), mark=st.booleans())
def test_all_edits_undone_in_turn_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, str, str]],
    ending: str,
    last: bool,
    mark: bool,
) -> None:
    folder = tmp_path_factory.mktemp("ws")
    path = folder / "datasets" / "a.jsonl"
    path.parent.mkdir()
    text = ending.join(json.dumps(record) for record in RECORDS) + (ending if last else "")
    path.write_bytes((b"\xef\xbb\xbf" if mark else b"") + text.encode())
    edits, versions = DatasetEdits(WorkspaceFolder(folder)), [path.read_bytes()]
    for kind, place, question, answer in steps:
        ids = [x.question.qid for x in WorkspaceFolder(folder).questions("a")]
        qid, new = ids[place % len(ids)], QuestionDraft(question, (answer,))
        try:
            if kind == "add":
                edits.add("a", new)
            elif kind == "change":
                edits.change("a", {qid: new})
            else:
                edits.delete("a", [qid])
        except UsageError:
            assert path.read_bytes() == versions[-1], "a refused edit writes nothing"
        if path.read_bytes() != versions[-1]:
            versions.append(path.read_bytes())
    done = len(edits.history("a").edits)
    assert done == len(versions) - 1
    for number in range(done, 0, -1):
        edits.undo("a", number)
        assert path.read_bytes() == versions[number - 1]
    for number in range(done):
        edits.restore("a", number + 1)
        assert path.read_bytes() == versions[number + 1]


def test_parts_of_a_question_are_changed(bench: Workbench) -> None:
    edit = bench.edits.edit
    assert edit("tiny-qa", "q1", answers=["Titan"]) == 0
    assert edit("tiny-qa", "q1", unanswerable=True) == 1
    assert (draft(bench, "q1").answers, draft(bench, "q1").unanswerable) == ((), True)
    assert edit("tiny-qa", "q1", answers=["T"], pages=["p1", "p2"], group="g") == 1
    assert draft(bench, "q1") == QuestionDraft(
        QUESTIONS[0][1], ("T",), ((GoldPage("p1"), GoldPage("p2")),), False, "g"
    )
