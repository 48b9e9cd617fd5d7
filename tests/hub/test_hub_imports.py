"""Datasets of the hub in every front end: imported, run and read by name, with the commit in the notes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_workspace import CommandLine, everything
from stand_in_hub import StandInHub

from rallebench import RalleError, Workspace, load_dataset

pytestmark = pytest.mark.slow
QUESTIONS = [
    {"id": f"s{n}", "context": "…", "question": f"Which moon {n}?", "answers": {"text": ["Titan"], "answer_start": [0]}}
    for n in range(4)
]  # fmt: skip
PASSAGES = [{"_id": f"d{n}", "title": "", "text": f"Moon {n}."} for n in range(4)]


def parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


@pytest.fixture
def commit(hub: StandInHub) -> str:
    """The commit of a repository like SQuAD's, with a corpus in two shards."""
    files = {
        "qa/train-00000-of-00001.parquet": parquet(QUESTIONS[:1]),
        "qa/validation-00000-of-00001.parquet": parquet(QUESTIONS),
        "corpus/train-00000-of-00002.parquet": parquet(PASSAGES[:2]),
        "corpus/train-00001-of-00002.parquet": parquet(PASSAGES[2:]),
        "raw/their.csv": b"q,a\nWhich sea?,Black Sea\n",
    }
    return hub.add("owner/moons", files)


def test_a_dataset_and_a_corpus_are_imported_by_name_and_pinned(
    commit: str, hub: StandInHub, cli: CommandLine, workspace: Path
) -> None:
    name = "hf:owner/moons?config=qa&split=validation"
    made = cli.json("import", name, "--kind", "dataset", "--name", "qa")
    assert (made["rows"], made["gold"]["answers"]) == (4, 4)
    notes = json.loads((workspace / "datasets" / "qa.import.json").read_text())
    assert notes["origin"] == f"hf:owner/moons?config=qa&split=validation&revision={commit}"
    corpus = ("import", "hf:owner/moons?config=corpus", "--kind", "corpus", "--name", "moons")
    assert cli.json(*corpus)["rows"] == 4
    card = json.loads((workspace / "corpora" / "moons" / "corpus.json").read_text())
    assert card["origin"] == f"hf:owner/moons?config=corpus&split=train&revision={commit}"
    before, asked = everything(workspace), len(hub.paths("GET"))
    assert cli.json(*corpus)["rows"] == 4 and everything(workspace) == before
    assert cli.json("import", notes["origin"], "--kind", "dataset", "--name", "qa")["rows"] == 4
    assert everything(workspace) == before
    assert not any("resolve" in path for path in hub.paths("GET")[asked:]), "all is in the cache"


def test_a_run_imports_a_name_of_the_hub_first(
    commit: str, hub: StandInHub, cli: CommandLine, workspace: Path
) -> None:
    run = ("run", "--chain", "closed", "--no-mlflow", "--name", "r", "--dataset")
    name = "hf:owner/moons?config=qa&split=validation"
    ran = cli(*run, name)
    assert ran.code == 0 and "are imported as the dataset moons-qa-validation" in ran.err
    assert (workspace / "datasets" / "moons-qa-validation.jsonl").exists()
    hub.status = 503
    assert cli.json(*run, name, "--resume")["n"] == 4, "a run continues without the hub"
    mapped = ("run", "--chain", "closed", "--no-mlflow", "--name", "m", "--dataset")
    hub.status = 0
    ran = cli(*mapped, "hf:owner/moons?file=raw/their.csv", "--columns", "question=q,answer=a")
    assert ran.code == 0 and "as the dataset moons." in ran.err


REFUSALS = [
    (("import", "hf:owner/moons", "--kind", "dataset", "--name", "x"), "has the configurations corpus, qa, raw; name one"),
    (("import", "hf:owner/moons?config=qa&split=dev", "--kind", "dataset", "--name", "x"), "has no split 'dev'. Its splits: train, validation"),
    (("import", "hf:owner/none", "--kind", "corpus", "--name", "x"), "There is no dataset 'owner/none'"),
    (("import", "hf:owner/moons?file=raw/their.csv", "--kind", "dataset", "--name", "x"), "import it with --columns question=COLUMN"),
    (("import", "hf:a/b/c", "--kind", "dataset", "--name", "x"), "is not the name of a dataset on the hub"),
    (("import", "hf:owner/moons", "--kind", "predictions", "--name", "x"), "is a corpus or a dataset"),
    (("index", "--corpus", "hf:owner/moons", "--name", "x", "--kind", "bm25"), "import it first: rallebench import hf:owner/moons --kind corpus --name N"),
    (("sweep", "--chain", "closed", "--dataset", "hf:owner/moons", "--vary", "1.temperature=0,1"), "import it first: rallebench import hf:owner/moons --kind dataset"),
]  # fmt: skip


@pytest.mark.parametrize("words, sentence", REFUSALS, ids=[x[1][:30] for x in REFUSALS])
def test_what_cannot_be_imported_is_one_sentence_and_leaves_nothing(
    words: tuple[str, ...], sentence: str, commit: str, cli: CommandLine, workspace: Path
) -> None:
    before = everything(workspace)
    failed = cli(*words)
    assert failed.code == 2 and sentence in failed.last and "Traceback" not in failed.err
    assert everything(workspace) == before


def test_python_reads_and_imports_a_name_of_the_hub(
    commit: str, hub: StandInHub, tmp_path: Path
) -> None:
    read = load_dataset("hf:owner/moons?config=qa&split=validation")
    assert (read.name, len(read), read[3].gold.answers) == ("moons-qa-validation", 4, ("Titan",))
    mapped = load_dataset("hf:owner/moons?file=raw/*.csv", columns={"question": "q", "answer": "a"})
    assert [example.question.text for example in mapped] == ["Which sea?"]
    with Workspace(tmp_path / "study", progress=False) as ws:
        assert ws.import_corpus("hf:owner/moons?config=corpus", name="moons").rows == 4
        assert ws.import_dataset("hf:owner/moons?config=qa&split=train", name="qa").rows == 1
        with pytest.raises(
            RalleError, match=r"import it first with import_corpus\('hf:owner/moons'"
        ):
            ws.build_index("hf:owner/moons", name="x")
