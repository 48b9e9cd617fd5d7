"""Every reader of a benchmark's files, by the command line: half a file, another version, another language, no gold.

Each case is one sentence with exit code 2 before anything is written, or a note that counts omitted rows or names the
setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from samples import write_sample
from small_workspace import CommandLine, write_lines

from rallebench.datasets import DATASETS
from rallebench.datasets.tasks import TASKS

HALF, VERSION, LANGUAGE, GOLD = "half a file", "another version", "another language", "no gold"
CHINESE = "多瑙河流入哪个海洋的问题"


Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Reader:
    """A suite over files that ``write`` makes below a folder: the pairs of settings and the file to spoil."""

    suite: str
    write: Callable[[Path], tuple[tuple[str, ...], Path]]
    question: str
    gold: Change
    """A row without its gold."""
    field: str = ""
    llm: str = ""


def read_rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    value = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else None
    value = json.loads(text) if value is None else value
    return value if isinstance(value, list) else next(iter(value.values()))


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows in the format of the file."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    value: Any = {next(iter(before)): rows} if isinstance(before, dict) else rows
    path.write_text(json.dumps(value, ensure_ascii=False))


def spoilt(reader: Reader, path: Path, kind: str) -> None:
    """Turn a good file into a bad one of this kind."""
    rows = read_rows(path)
    if kind == HALF:
        path.write_bytes(path.read_bytes().rstrip()[:-15])
    elif kind == VERSION:
        for row in rows:
            row["another"] = row.pop(reader.field or reader.question)
        write_rows(path, rows)
    elif kind == LANGUAGE:
        other = "The games began in Hangzhou. " if reader.suite.startswith("crud") else CHINESE
        for number, row in enumerate(rows):
            row[reader.question] = replace_text(row[reader.question], other * 9 + str(number))
        write_rows(path, rows)
    else:
        write_rows(path, [reader.gold(row) for row in rows])


def replace_text(value: Any, text: str) -> Any:
    """The text, or its field if the set has an object with a name in its place."""
    return {**value, "name": text} if isinstance(value, dict) else text


def public(task: str) -> Callable[[Path], tuple[tuple[str, ...], Path]]:
    """The sample of a task's public set, under the file name from the task's command."""
    of_task = next(each for each in TASKS if each.name == task)

    def write(folder: Path) -> tuple[tuple[str, ...], Path]:
        sample = write_sample(folder / "sample", DATASETS.entry(of_task.form).traits["sample"])
        path = folder / "data" / of_task.names[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        sample.rename(path)
        file = next(path.iterdir()) if path.is_dir() else path
        return (f"data={folder / 'data'}", f"tasks={task}", "retriever=tiny", "steps=1"), file

    return write


def without(*names: str) -> Change:
    return lambda row: {**row, **dict.fromkeys(names)}


def write_records(folder: Path) -> tuple[tuple[str, ...], Path]:
    rows = [{"input": f"Which moon {n}?", "outputs": ["Titan"], "_id": str(n)} for n in range(2)]
    (folder / "data").mkdir(parents=True)
    path = write_lines(folder / "data" / "3-1_hotpotqa.jsonl", rows)
    return (f"data={folder / 'data'}", "tasks=hotpotqa", "retriever=tiny", "steps=1"), path


DOCUMENTS = {"d1": "Titan is a moon of Saturn.", "d2": "The Danube reaches the Black Sea."}


def write_beir(folder: Path) -> tuple[tuple[str, ...], Path]:
    path = folder / "scifact"
    (path / "qrels").mkdir(parents=True)
    write_lines(path / "corpus.jsonl", [{"_id": i, "text": t} for i, t in DOCUMENTS.items()])
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    rows = [{"_id": "q1", "text": "Which moon?"}, {"_id": "q2", "text": "Which sea?"}]
    return (f"data={path}",), write_lines(path / "queries.jsonl", rows)


def write_mtrag(folder: Path) -> tuple[tuple[str, ...], Path]:
    tasks = folder / "mtrag-human" / "retrieval_tasks" / "clapnq"
    (tasks / "qrels").mkdir(parents=True)
    (folder / "corpora" / "passage_level").mkdir(parents=True)
    (tasks / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    corpus = [{"_id": i, "title": "", "text": t} for i, t in DOCUMENTS.items()]
    write_lines(folder / "corpora" / "passage_level" / "clapnq.jsonl", corpus)
    rows = [{"_id": f"q{n}", "text": f"|user|: Which moon {n}?"} for n in (1, 2)]
    return (f"data={folder}", "forms=lastturn"), write_lines(tasks / "clapnq_lastturn.jsonl", rows)


def write_browsecomp(folder: Path) -> tuple[tuple[str, ...], Path]:
    folder.mkdir(parents=True)
    documents = [{"docid": i, "text": text} for i, text in DOCUMENTS.items()]
    lists = {"gold_docs": documents[:1], "evidence_docs": documents, "negative_docs": []}
    rows = [
        {"query_id": str(n), "query": f"Which moon {n}?", "answer": "Titan", **lists}
        for n in range(2)
    ]
    corpus = write_lines(folder / "corpus.jsonl", documents)
    file = write_lines(folder / "decrypted.jsonl", rows)
    return (f"data={file}", f"corpus={corpus}"), file


def write_rgb(folder: Path) -> tuple[tuple[str, ...], Path]:
    folder.mkdir(parents=True)
    more = {"positive": ["Game 1 was in Tampa."], "negative": ["It rained."]}
    rows = [{"id": n, "query": f"Where was {n}?", "answer": "Tampa", **more} for n in range(2)]
    file = write_lines(folder / "en_refine.jsonl", rows)
    return (f"data={folder}", "noise=0", "passages=1"), file


def write_crud(folder: Path) -> tuple[tuple[str, ...], Path]:
    folder.mkdir(parents=True)
    rows = [
        {"ID": f"r{n}", "event": f"第{n}届亚运会在杭州开幕。", "summary": "杭州亚运会开幕。"}
        for n in range(2)
    ]
    return (f"data={folder / 'summary.jsonl'}", "k=0"), write_lines(folder / "summary.jsonl", rows)


def write_barag(folder: Path) -> tuple[tuple[str, ...], Path]:
    folder.mkdir(parents=True)
    rows = [
        {"id": f"a{n}", "title": "Titan", "question": f"Which moon {n}?", "content": "A moon."}
        for n in range(2)
    ]
    file = write_lines(folder / "articles_A.jsonl", rows)
    return (f"data={file}", "index=tiny", "modes=naive"), file


def of_task(task: str, question: str, gold: Change) -> Reader:
    """The public set of one of R-Eval's tasks."""
    return Reader("reval", public(task), question, gold, llm="titan")


def rename_id(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "_id": f"x{row['_id']}"}


READERS: dict[str, Reader] = {
    "HotpotQA": of_task("hotpotqa", "question", without("answer")),
    "2WikiMultihopQA": of_task("2wikimultihopqa", "question", without("answer")),
    "MuSiQue": of_task(
        "musique", "question", lambda r: {**r, "answer": None, "answer_aliases": []}
    ),
    "KQA Pro": of_task("kqapro", "question", without("answer")),
    "COPEN 1": of_task("csj", "query", lambda row: {**row, "y": {"name": ""}}),
    "COPEN 2": of_task("cpj", "text", without("label")),
    "COPEN 3": of_task("cic", "sentence", without("my_label")),
    "SoAyBench easy": of_task("soay_easy", "Query_en", without("Answer")),
    "SoAyBench hard": of_task("soay_hard", "Query_en", without("Answer")),
    "R-Eval": Reader("reval", write_records, "input", without("outputs"), llm="titan"),
    "BEIR": Reader("beir", write_beir, "text", rename_id),
    "MTRAG": Reader("mtrag", write_mtrag, "text", rename_id),
    "BrowseComp": Reader(
        "browsecomp", write_browsecomp, "query", without("answer"), field="gold_docs"
    ),
    "RGB": Reader("rgb-noise", write_rgb, "query", without("answer"), llm="titan"),
    "CRUD": Reader("crud-summary", write_crud, "event", without("summary"), llm="titan"),
    "BARAG": Reader("barag-modes", write_barag, "question", without("content"), llm="titan"),
}


SENTENCES: dict[str, tuple[str, ...]] = {
    HALF: ("download or copy it again",),
    VERSION: (
        "take ",
        "import it with --columns question=COLUMN",
        "needs '_id'",
        "a record",
        "are needed",
        "KILT record",
    ),
    GOLD: (
        "has no answer, like a test set",
        "contains no question",
        "has a passage in",
        "nothing can be scored",
        "have no summary",
        "has both a question and an article",
        "'outputs' should be a list",
    ),
}
"""Kind → parts of its possible sentences: the fault of the file, or the file to use instead."""


@pytest.mark.parametrize("kind", SENTENCES)
@pytest.mark.parametrize("name", READERS)
def test_a_bad_file_writes_nothing(name: str, kind: str, cli: CommandLine, tmp_path: Path) -> None:
    reader = READERS[name]
    pairs, file = reader.write(tmp_path / "files")
    spoilt(reader, file, kind)
    said = cli.refused(reader.suite, *pairs, llm=reader.llm)
    assert str(tmp_path / "files") in said and any(each in said for each in SENTENCES[kind])


NOTED = {
    "R-Eval": "hotpotqa: most questions are in Chinese or Japanese characters, and the prompts are English: name the other tasks (tasks=",
    "CRUD": "summary: most questions are in Latin letters, and the prompts are Chinese: send your own (prompts=FOLDER)",
    "BARAG": "Most questions are in Chinese or Japanese characters, and the prompts are English: send your own (prompts=FOLDER)",
}
"""Reader → the note on questions that may still be used."""


@pytest.mark.parametrize("name", READERS)
def test_another_language_is_refused_or_noted(name: str, cli: CommandLine, tmp_path: Path) -> None:
    reader = READERS[name]
    pairs, file = reader.write(tmp_path / "files")
    spoilt(reader, file, LANGUAGE)
    if name in NOTED:
        (note,) = cli.report(reader.suite, *pairs, llm=reader.llm, run="n")["notes"]
        assert note.startswith(NOTED[name])
        return
    said = cli.refused(reader.suite, *pairs, llm=reader.llm)
    words = ("is not in English", "so bm25 finds next to nothing", "give --set language=zh")
    assert any(each in said for each in words) and "None of the formats" not in said


@pytest.mark.parametrize("name", READERS)
def test_a_good_file_has_no_note_on_language(name: str, cli: CommandLine, tmp_path: Path) -> None:
    reader = READERS[name]
    pairs, _ = reader.write(tmp_path / "files")
    notes = cli.report(reader.suite, *pairs, llm=reader.llm, run="n")["notes"]
    assert not [note for note in notes if "letters" in note or "characters" in note]


@pytest.mark.slow  # loads MiniLM
def test_chinese_sets_are_searched_and_are_not_beside_english_figures(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair,), file = write_beir(tmp_path / "files")
    spoilt(READERS["BEIR"], file, LANGUAGE)
    corpus = [{"_id": i, "text": f"{CHINESE}{i}"} for i in DOCUMENTS]
    write_lines(file.with_name("corpus.jsonl"), corpus)
    monkeypatch.setattr("rallebench.experiments.benchmarks.beir.suite.unlike", lambda *_: "")
    report = cli.report("beir", pair, "kinds=bm25,flat", "depth=10", run="n")
    (row,) = report["tables"][0]["rows"]
    why = "ours are in Chinese or Japanese characters, the paper's in English"
    assert report["published"][0]["why"] == why and row[-3:] == [None] * 3
    assert row[3]["value"] == 1.0
    assert any(note.endswith("and encoder=minilm reads English only.") for note in report["notes"])


def test_prompts_of_a_named_language_are_sent_with_a_note(cli: CommandLine, tmp_path: Path) -> None:
    pairs, file = write_rgb(tmp_path / "files")
    spoilt(READERS["RGB"], file, LANGUAGE)
    sent = cli.report("rgb-noise", *pairs, "language=en", llm="titan", run="n")
    assert sent["language"] == "en" and "language=en says so" in sent["notes"][0]
    pair = f"data={file}"
    fitting = cli.report("rgb-noise", pair, *pairs[1:], "language=zh", llm="titan", run="z")
    assert fitting["language"] == "zh" and fitting["notes"][:1] != sent["notes"][:1]


def test_a_task_without_answers_is_refused_and_some_without_are_counted(
    cli: CommandLine, tmp_path: Path
) -> None:
    pairs, file = write_records(tmp_path / "files")
    first, second = read_rows(file)
    write_rows(file, [{**first, "outputs": []}, {**second, "outputs": []}])
    why = f"No question of {file} has an answer, so nothing of hotpotqa can be scored"
    assert why in cli.refused("reval", *pairs, llm="titan")
    write_rows(file, [{**first, "outputs": []}, second])
    report = cli.report("reval", *pairs, llm="titan", run="n")
    assert report["notes"] == ["1 questions of hotpotqa have no answer and are in no mean: 0."]
    assert report["parts"][0]["metrics"]["f1_yes_no"]["n"] == 1
