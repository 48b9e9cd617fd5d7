"""A workspace in Python: the same folder, verbs and errors as on the page and the command line."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_workspace import QUESTIONS, everything

from rallebench import RalleError, Workspace
from rallebench.core.types import Episode, Retrieve


@pytest.fixture
def ws(workspace: Path) -> Iterator[Workspace]:
    with Workspace(workspace, track=False) as opened:
        yield opened


def test_a_folder_of_documents_becomes_an_index_that_is_searched(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "titan.md").write_text("# Titan\n\nTitan is the largest moon of Saturn.\n")
    (docs / "danube.md").write_text("# Danube\n\nThe Danube flows into the Black Sea.\n")
    with Workspace(tmp_path / "study") as ws:
        assert ws.import_corpus(docs, name="docs").rows == 2
        index = ws.build_index("docs", kind="bm25")
        assert (index.name, index.rows) == ("docs-bm25", 2)
        hits = ws.search("docs-bm25", "Which moon of Saturn?", k=1)
        assert "largest moon" in hits[0].passage.text and len(hits) == 1
        assert list(ws.list("corpora")) == ["docs"] and "docs-bm25" in ws.list("retrievers")


def test_the_same_cell_twice_does_nothing_the_second_time(ws: Workspace, workspace: Path) -> None:
    def cell() -> None:
        ws.import_corpus(workspace / "corpus.tsv", name="moons")
        ws.build_index("moons", kind="bm25", k1=1.2)
        ws.import_dataset(workspace / "datasets" / "tiny-qa.jsonl", name="again")
        ws.add_model("mine", backend="scripted", default="Titan")
        ws.save_chain(ws.chain("read"), "mine")

    cell()
    before = everything(workspace)
    cell()
    changed = {path for path, stat in everything(workspace).items() if before.get(path) != stat}
    assert not {path for path in changed if path.startswith(("corpora", "indexes", "llms"))}


def test_hits_are_a_tuple_a_table_and_a_data_frame(ws: Workspace) -> None:
    hits = ws.search("tiny", "moon of Saturn", k=2)
    assert isinstance(hits, tuple) and hits[0].passage.doc_id == "1"
    assert repr(hits).startswith("  1. [") and "Titan (moon)" in hits._repr_html_()
    frame = hits.to_pandas()
    assert list(frame.index) == [1, 2] and frame.loc[1, "page_id"] == "p1"


def test_a_question_is_asked_by_a_chain_or_the_name_of_one(ws: Workspace) -> None:
    episode = ws.ask("read", QUESTIONS[0][1])
    assert isinstance(episode, Episode) and episode.answer == "Titan"
    assert isinstance(episode.steps[0].request, Retrieve) and len(episode.hits) == 2
    changed = ws.ask("read", QUESTIONS[0][1], llm="echo", k=1)
    assert len(changed.hits) == 1 and QUESTIONS[0][1] in changed.answer


def test_an_episode_is_shown_step_by_step_and_escaped(ws: Workspace) -> None:
    episode = ws.ask("read", "Which <b>moon</b>?", llm="echo")
    lines = repr(episode).splitlines()
    assert lines[0].startswith("1. retrieve tiny (") and lines[1].startswith("2. generate echo (")
    assert "answer: " in repr(episode)
    shown = episode._repr_html_()
    assert "Which &lt;b&gt;moon" in shown and "<b>moon" not in shown


def test_models_are_added_listed_loaded_and_unloaded(ws: Workspace) -> None:
    ws.add_model("mine", backend="scripted", default="Rome")
    assert "mine" in ws.list("llms")
    ws.load("mine", "tiny")
    assert ws.ask("read", "Where?", llm="mine").answer == "Rome"
    with pytest.raises(RalleError, match="There is a language model 'mine' already"):
        ws.add_model("mine", backend="scripted", default="Paris")
    ws.add_model("mine", backend="scripted", default="Paris", replace=True)
    ws.unload()
    assert ws.ask("read", "Where?", llm="mine").answer == "Paris"
    with pytest.raises(RalleError, match="backend= or preset="):
        ws.add_model("other")


def test_two_workspaces_are_open_at_once(ws: Workspace, tmp_path: Path) -> None:
    with Workspace(tmp_path / "other") as other:
        other.add_model("mine", backend="scripted", default="Rome")
        assert "mine" in other.list("llms") and "mine" not in ws.list("llms")
    assert ws.ask("read", "Which moon?").answer == "Titan"


def test_a_closed_workspace_says_so(workspace: Path) -> None:
    ws = Workspace(workspace)
    ws.close()
    ws.close()
    assert repr(ws).endswith("closed)")
    with pytest.raises(RalleError, match=r"is closed; open it again: Workspace\('"):
        ws.search("tiny", "moon")
    assert Workspace(workspace).search("tiny", "moon")


def test_no_thread_is_left_after_a_workspace_was_closed(workspace: Path) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    with Workspace(workspace) as ws:
        ws.import_corpus(workspace / "corpus.tsv", name="moons")
        ws.build_index("moons")
        ws.ask("read", "Which moon?")
    after = [t for t in threading.enumerate() if t.ident not in before and t.is_alive()]
    assert [thread.name for thread in after if thread.name != "tqdm_monitor"] == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ws: ws.list("chain"), "chains"),
        (lambda ws: ws.search("tinny", "moon"), "tiny"),
        (lambda ws: ws.search("tiny", " "), "The query is empty"),
        (lambda ws: ws.search("tiny", "moon", k=0), "k is 0; it must be from 1"),
        (lambda ws: ws.search("tiny", "moon", ef=3), "ef"),
        (lambda ws: ws.import_corpus("absent.tsv", "x"), "absent.tsv does not exist"),
        (lambda ws: ws.import_corpus("absent.tsv", "a/b"), "a/b"),
        (lambda ws: ws.build_index(ws.path / "corpus.tsv", kind="bn25"), "bm25"),
        (lambda ws: ws.ask("reed", "Which moon?"), "read"),
        (lambda ws: ws.ask("read", " "), "The question is empty"),
        (lambda ws: ws.ask("read", "Which moon?", llm="mute"), "mute"),
        (lambda ws: ws.add_model("x", backend="scripted", dealy=1), "dealy"),
    ],
)
def test_a_wrong_argument_is_one_sentence_without_a_flag(
    ws: Workspace, call: object, words: str
) -> None:
    with pytest.raises(RalleError, match=words) as error:
        call(ws)  # type: ignore[operator]
    assert "--" not in str(error.value) and "\n" not in str(error.value)


def test_the_text_of_an_error_names_the_argument(ws: Workspace, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("id\ttext\ttitle\n1\t\tempty\n")
    with pytest.raises(RalleError, match="leave bad rows out with skip_bad=True"):
        ws.import_corpus(bad, name="bad")


def test_warnings_are_logged_unless_progress_is_off(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from rallebench.api.progress import Bar
    from rallebench.core.events import Warned

    for show, count in ((None, 1), (False, 0)):
        caplog.clear()
        with caplog.at_level(logging.WARNING), Bar("run", show) as bar:
            bar.hear(Warned("", "Few questions."))
            bar.hear(Warned("", "Few questions."))
        assert len(caplog.records) == count
