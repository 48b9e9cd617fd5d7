"""Own files changed by another program: one marked row with its mend, and every list still shows everything else."""

from __future__ import annotations

import html as html_names
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_views import opened_page, run_of

from rallebench.cli.main import main
from rallebench.core.events import complete
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.services.conversations import Talk
from rallebench.services.stored_conversations import save

WINDOW = "0123456789abcdef" * 2

LISTS = {
    "runs/list": ("first", "second"),
    "experiments/list": ("ks",),
    "data/list": ("tiny-qa", "flat", "docs", "tiny"),
    "models/list": ("titan", "echo"),
}
"""View → names that stay in it after any damage; the damaged one is marked."""

VIEWS = (
    *LISTS, "runs/run?id=first", "runs/run?id=first&q=q1", "runs/compare?a=first&b=second",
    "experiments/one?id=ks", "experiments/published", "data/dataset?id=tiny-qa", "data/corpus?id=docs",
    "data/index?id=flat", "models/one?id=titan", "build/few", "build/chat", "build/agent",
)  # fmt: skip

VERBS: tuple[tuple[str, ...], ...] = (
    ("list",), ("compare", "first", "second"), ("analyse", "first"), ("sweep", "--name", "ks"),
    ("score", "--run", "first", "--metrics", "f1"), ("search", "--index", "tiny", "moon"),
)  # fmt: skip

FILES = (
    "runs/first/*.json", "runs/first/*.jsonl", "runs/first/judges/*/*.json", "experiments/ks/*.json",
    "indexes/flat/manifest.json", "llms.json", "retrievers.json", "chains/read.json",
    "corpora/docs/corpus.json", "conversations/*.json", "cache/vectors/*/progress.jsonl",
)  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page over two runs, one of them judged, a sweep, an imported corpus with a dense index, and a conversation."""
    folder = tmp_path_factory.mktemp("damaged") / "workspace"
    with opened_page(folder) as page:
        bench = page.workbench
        run_of(bench, "first")
        run_of(bench, "second", llm="echo", settings=("k=1",))
        complete(bench.runs.rescore("first", ["rgb-rejection:titan"]))
        talk = Talk()
        turn = talk.ask(bench.asking, bench.workspace.chain("read"), "Which moon?", None)
        for event in bench.asking.chat(turn.chain, turn.history, turn.question):
            turn.take(event)
        save(bench.workspace, WINDOW, [talk])
        list(bench.data.import_corpus("docs", folder / "corpus.tsv"))
        list(bench.data.build_index("flat", "docs", "flat", encoder="hashing"))
        bench.data.combine("both", "rrf", ["tiny", "flat"], {})
        sweep = "sweep --chain read --dataset tiny-qa --name ks --vary k=1,2 --no-mlflow"
        assert main([*sweep.split(), "--workspace", str(folder)]) == 0
        yield page


def open_address(page: Page, address: str) -> Patch:
    """Patch of an opened address, streams read to their end."""
    view, _, query = address.partition("?")
    pairs = dict(pair.split("=") for pair in query.split("&") if pair)
    message = {"action": "open", "data": {"view": view}, "window": WINDOW, "query": pairs}
    patch = page.act(message)
    stream, patch = patch.stream, replace(patch, stream="")
    while stream and not patch.over:
        patch |= page.more({"stream": stream})
    return patch


def view_text(page: Page, address: str) -> str:
    """Text of a view, with the rows of its windowed lists."""
    patch = open_address(page, address)
    text = json.dumps(patch.to_json())
    drawn = "".join(patch.html.values())
    for name, key, total in re.findall(
        r'data-list="([^"]*)" data-key="([^"]*)" data-total="(\d+)"', drawn
    ):
        inside = json.loads(html_names.unescape(key))
        message = {"list": name, "key": inside, "start": 0, "count": int(total), "window": WINDOW}
        text += json.dumps(page.list_rows(message).to_json())
    return text


def check_everything(page: Page, verbs: Sequence[Sequence[str]] = ()) -> None:
    """Check that every list has all its names, and that no unexpected error occurred."""
    for view in VIEWS:
        text = view_text(page, view)
        assert "unexpected error" not in text, f"{view}: {text[:300]}"
        missing = [name for name in LISTS.get(view, ()) if name not in text]
        assert not missing, f"{view} without {missing}: {text[:300]}"
    for verb in verbs:
        code = main([*verb, "--workspace", str(page.workbench.workspace.path)])
        assert code in ((0,) if verb == ("list",) else (0, 1, 2)), verb


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values within a JSON value."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inside in items:
        if isinstance(inside, (dict, list)):
            yield from places(inside, (*place, key))
        else:
            yield (*place, key)


def with_text(value: Any, place: tuple[Any, ...], text: str) -> str:
    """JSON text of a value with ``text`` inserted unquoted at a place. The seal is removed, so that only types are left to
    check."""
    mark = "@@HERE@@"
    if not place:
        return text
    changed = json.loads(json.dumps(value))
    changed = {k: v for k, v in changed.items() if k != "seal"} if "seal" not in place else changed
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = mark
    return json.dumps(changed).replace(f'"{mark}"', text)


ODD = ("9" * 5000, "9" * 400, "-1", "NaN", "-Infinity", "1e999", "[" * 300 + "]" * 300, "[" * 9999)
JSON_TEXTS = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
).map(json.dumps)


def is_json(text: str) -> bool:
    """Return whether a text can be read as JSON, so that the rest of its file can be read, too."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


SHARED_FILES = ("llms.json", "retrievers.json")
"""Files that hold several names: the names are lost with the whole, and the list shows the file as one marked row."""


@st.composite
def damages(draw: st.DrawFn, folder: Path) -> tuple[Path, bytes]:
    """A file of the workspace, and its content after a change of any of its values."""
    files = [path for pattern in FILES for path in sorted(folder.glob(pattern))]
    path = draw(st.sampled_from(files))
    lines = path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    number = draw(st.integers(0, min(2, len(lines) - 1)))
    value = json.loads(lines[number])
    whole = path.name not in SHARED_FILES
    place = draw(st.sampled_from([place for place in places(value) if place or whole]))
    texts = JSON_TEXTS if whole else JSON_TEXTS.filter(is_json)
    lines[number] = with_text(value, place, draw(texts))
    return path, ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_may_be_another_and_every_list_shows_everything_else(
    page: Page, data: st.DataObject
) -> None:
    path, content = data.draw(damages(page.workbench.workspace.path))
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        check_everything(page, VERBS)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("file", "place", "text", "view", "mend"),
    [
        ("runs/first/run.json", ("created",), "{}", "runs/list", "start a run with another name"),
        ("runs/first/run.json", ("spec", "limit"), '"x"', "runs/list", "start a run"),
        ("runs/first/run.json", ("spec", "seed"), "9" * 5000, "runs/list", "start a run"),
        ("runs/first/run.json", ("spec", "settings", "chain", "format"), "9", "runs/list", "start"),
        ("runs/first/run.json", ("spec", "settings", "chain"), "[1]", "runs/list", "start a run"),
        ("runs/first/report.json", ("n",), "NaN", "runs/list", "resume the run to score"),
        ("runs/first/report.json", ("metrics", "em"), "[]", "runs/list", "resume the run to score"),
        ("experiments/ks/report.json", ("variants", 0, "run"), "5", "experiments/list", "run the"),
        ("experiments/ks/report.json", ("metric",), "[]", "experiments/list", "run the experiment"),
        ("experiments/ks/experiment.json", ("runs",), "[1]", "experiments/list", "run the"),
        ("llms.json", ("titan", "backend"), "7", "models/list", "An entry has backend"),
        ("retrievers.json", ("both", "of"), "{}", "data/list", "An entry has kind"),
        ("corpora/docs/corpus.json", ("bytes",), "-1", "data/list", "import the corpus again"),
        ("indexes/flat/manifest.json", ("dim",), '"x"', "data/list", "build it again"),
    ],
)
def test_a_damaged_file_is_one_marked_row_with_its_mend(
    page: Page, file: str, place: tuple[Any, ...], text: str, view: str, mend: str
) -> None:
    path = page.workbench.workspace.path / file
    before = path.read_bytes()
    path.write_text(with_text(json.loads(before), place, text), encoding="utf-8")
    try:
        words = html_names.unescape(view_text(page, view))
        assert path.name in words and mend in words
        check_everything(page, [("list",)])
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("text", ['"x"', "-1", "NaN", "9" * 400, "[" * 9999])
def test_a_damaged_state_of_a_run_is_counted_from_its_answers(page: Page, text: str) -> None:
    path = page.workbench.workspace.path / "runs" / "first" / "state.json"
    before = path.read_bytes()
    path.write_text(with_text(json.loads(before), ("total",), text), encoding="utf-8")
    try:
        state = page.workbench.runs.open("first").state()
        assert (state.state, state.done, state.total) == ("interrupted", 8, 8)
        check_everything(page)
    finally:
        path.write_bytes(before)


def test_vectors_without_their_dimension_are_listed_with_their_mend(page: Page) -> None:
    workspace = page.workbench.workspace
    (path,) = [
        p for p in workspace.vectors.glob("*/progress.jsonl") if b"hashing" in p.read_bytes()
    ]
    before = path.read_bytes()
    header, *rest = before.decode().splitlines()
    path.write_text("\n".join([with_text(json.loads(header), ("dim",), "null"), *rest]) + "\n")
    try:
        assert "delete these vectors" in view_text(page, "data/list")
        list(page.workbench.data.build_index("again", "docs", "flat", encoder="hashing"))
    finally:
        path.write_bytes(before)


def test_no_damage_leaves_a_line_in_the_log(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        check_everything(page, VERBS)
    assert caplog.records == []


# ── impossible names and files ───────────────────────────────────────────────

ODD_NAMES = {
    "control characters": b"a\x1b[31m\x07b",
    "a new line": b"a\nb",
    "bytes that are not UTF-8": b"a\xff\xfeb",
    "as long as possible": b"n" * 250,
    "a blank": b" ",
    "an element": b"<img src=x onerror=1>",
}
FOLDERS = {
    "runs/first": "run.json",
    "experiments/ks": "experiment.json",
    "indexes/flat": "manifest.json",
    "corpora/docs": "corpus.json",
}
CONTENTS = {"datasets": "x.jsonl", "chains": "read.json", "conversations": "x.json"}


def check_lists(page: Page) -> None:
    """Check that the lists are whole and can be sent, and that the verbs that list end well."""
    for view in VIEWS:
        text = view_text(page, view)
        assert '"problem"' not in text, f"{view}: {text[:300]}"
        json.dumps(open_address(page, view).to_json(), ensure_ascii=False, default=str).encode()
        missing = [name for name in LISTS.get(view, ()) if name not in text]
        assert not missing, f"{view} without {missing}"
    workspace = str(page.workbench.workspace.path)
    assert main(["list", "--workspace", workspace]) == 0
    report = ["report", "first", "second", "--out", f"{workspace}/r.html", "--workspace", workspace]
    assert main(report) == 0


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
def test_a_folder_or_file_of_an_impossible_name_hides_nothing_else(page: Page, name: bytes) -> None:
    root = page.workbench.workspace.path
    made: list[bytes] = []
    for source in FOLDERS:
        made.append(os.fsencode((root / source).parent) + b"/" + name)
        shutil.copytree(os.fsencode(root / source), made[-1])
    for folder, example in CONTENTS.items():
        (root / folder).mkdir(exist_ok=True)
        file = os.fsencode(root / folder) + b"/" + name[:240] + Path(example).suffix.encode()
        source = root / folder / example
        content = source.read_bytes() if source.exists() else b"{}\n"
        Path(os.fsdecode(file)).write_bytes(content)
        made.append(file)
    try:
        check_lists(page)
    finally:
        for path in made:
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


@pytest.mark.parametrize("kind", ["link", "loop", "folder", "pipe", "file for a folder"])
def test_something_else_in_place_of_a_file_hides_nothing_else(page: Page, kind: str) -> None:
    root = page.workbench.workspace.path
    files = [(root / source).parent / "odd" / file for source, file in FOLDERS.items()]
    (root / "conversations").mkdir(exist_ok=True)
    files += [root / folder / f"odd{Path(name).suffix}" for folder, name in CONTENTS.items()]
    for file in files:
        file.parent.mkdir(exist_ok=True) if kind != "file for a folder" else None
        if kind == "link":
            file.symlink_to("/nowhere/at/all")
        elif kind == "loop":
            file.symlink_to(file.name)
        elif kind == "folder":
            file.mkdir()
        elif kind == "pipe":
            os.mkfifo(file)
        elif file.parent.name == "odd":
            file.parent.write_text("x")
    try:
        check_lists(page)
    finally:
        for file in files:
            odd = file.parent if file.parent.name == "odd" else file
            if odd.is_dir() and not odd.is_symlink():
                shutil.rmtree(odd)
            else:
                odd.unlink(missing_ok=True)


def test_a_run_of_an_impossible_name_is_a_marked_row(page: Page) -> None:
    runs = page.workbench.workspace.runs
    odd = shutil.copytree(runs / "first", runs / "a\nb")
    try:
        assert "cannot be a folder name" in html_names.unescape(view_text(page, "runs/list"))
    finally:
        shutil.rmtree(odd)


def test_what_is_left_out_is_in_the_log_once(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    odd = page.workbench.workspace.runs / "gone"
    odd.mkdir()
    (odd / "run.json").symlink_to("/nowhere")
    try:
        with caplog.at_level(logging.WARNING, "rallebench.core.own_folders"):
            view_text(page, "runs/list")
            view_text(page, "runs/list")
        assert [r.getMessage().count("is left out of the lists") for r in caplog.records] == [1]
    finally:
        shutil.rmtree(odd)
