"""Vectors in Milvus, with the engine embedded in a file: the same client connects to a server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.events import complete
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.vector_indexes import _milvus as server
from rallebench.vector_indexes.milvus import ABOUT, Milvus
from rallebench.vector_indexes.numpy_flat import NumpyFlat

pytestmark = pytest.mark.slow
pytest.importorskip("pymilvus", reason="pymilvus is not installed")
pytest.importorskip("milvus_lite", reason="the embedded engine of Milvus is not installed")

DEFAULTS = {name: setting.default for name, setting in VECTOR_INDEXES.entry("milvus").form.items()}


@pytest.fixture(scope="module")
def vectors() -> Any:
    drawn = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def folder(vectors: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("milvus") / "half"
    made.mkdir()
    complete(Milvus.build(made, vectors))
    return made.rename(made.parent / "whole")


@pytest.fixture()
def index(folder: Path) -> Iterator[Any]:
    with closing(Milvus.load(folder)) as opened:
        yield opened


def test_a_folder_moved_after_the_build_is_opened_where_it_is(folder: Path, index: Any) -> None:
    assert json.loads((folder / ABOUT).read_text())["uri"] == ""
    assert (folder / server.FILE).exists()


def test_scores_and_rows_are_those_of_the_exact_reference(index: Any, vectors: Any) -> None:
    true_scores, true_rows = NumpyFlat(vectors).search(vectors[:20], 10)
    for rescore, digits in ((False, 1e-5), (True, 1e-7)):
        scores, rows = index.search(vectors[:20], 10, rescore=rescore)
        assert rows.tolist() == true_rows.tolist()
        np.testing.assert_allclose(scores, true_scores, atol=digits)
    for number in range(20):  # rescored, a query has the same scores alone
        (alone,), _ = index.search(vectors[number : number + 1], 10, rescore=True)
        assert alone.tolist() == scores[number].tolist()


def test_opening_and_searching_changes_no_file(folder: Path, vectors: Any) -> None:
    def files() -> dict[str, int]:
        return {str(p): p.stat().st_size for p in folder.rglob("*") if p.is_file()}

    before = files()
    with closing(Milvus.load(folder)) as opened:
        opened.search(vectors[:2], 3)
    assert files() == before


def test_two_open_the_same_file_and_the_last_one_lets_go_of_it(folder: Path, vectors: Any) -> None:
    one, two = Milvus.load(folder), Milvus.load(folder)
    one.close()
    assert two.search(vectors[:1], 1)[1][0][0] == 0
    two.close()
    assert not [path for path in server._open_files if path.startswith(str(folder))]


@pytest.mark.parametrize("index_type", ["HNSW", pytest.param("AUTOINDEX", marks=pytest.mark.slow)])
def test_an_engines_graph_finds_nearly_all(index_type: str, vectors: Any, tmp_path: Path) -> None:
    complete(Milvus.build(tmp_path, vectors, index_type=index_type))
    with closing(Milvus.load(tmp_path)) as opened:
        _, rows = opened.search(vectors, 10, ef_search=100)
    _, true_rows = NumpyFlat(vectors).search(vectors, 10)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(rows, true_rows)]) >= 0.95


# ── existing collections ─────────────────────────────────────────────────────


def a_collection(path: Path, name: str) -> None:
    place = server.parse_address(str(path), None)
    with server.open_client(place) as client:
        client.create_collection(name, dimension=4)


def test_a_collection_of_somebody_else_is_refused_and_stays(vectors: Any, tmp_path: Path) -> None:
    shared = tmp_path / "shared.db"
    a_collection(shared, "theirs")
    with pytest.raises(
        UsageError,
        match=r"'theirs' at .* exists already with other content; remove it there, or choose another",
    ):
        complete(Milvus.build(tmp_path, vectors, uri=str(shared), collection="theirs"))
    with server.open_client(server.parse_address(str(shared), None)) as client:
        assert client.list_collections() == ["theirs"]
        assert client.describe_collection("theirs")["fields"][0]["name"] == "id"


def test_a_collection_of_other_vectors_is_refused(vectors: Any, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared.db")
    complete(Milvus.build(tmp_path, vectors, uri=shared, collection="ours"))
    with pytest.raises(UsageError, match=r"'ours' at .* exists already with other content"):
        complete(Milvus.build(tmp_path, vectors[:100], uri=shared, collection="ours"))


def test_one_file_holds_several_indexes_and_equal_ones_share(vectors: Any, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared.db")
    names = []
    for number, some in enumerate((vectors, vectors[:50], vectors)):
        folder = tmp_path / str(number)
        folder.mkdir()
        names.append(complete(Milvus.build(folder, some, uri=shared))["collection"])
    assert names[0] == names[2] != names[1]
    with closing(Milvus.load(tmp_path / "1")) as opened:
        assert opened.search(vectors[:1], 100)[1].max() == 49


def test_a_build_that_was_killed_is_completed_by_the_next(vectors: Any, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared.db")
    complete(Milvus.build(tmp_path, vectors, uri=shared, collection="ours"))
    place = server.parse_address(shared, None)
    with server.open_client(place) as client:
        client.delete("ours", filter=f"{server.primary_key(client, 'ours')} >= 120")
    complete(Milvus.build(tmp_path, vectors, uri=shared, collection="ours"))
    with closing(Milvus.load(tmp_path)) as opened:
        assert (opened.search(vectors, 1)[1][:, 0] == np.arange(200)).all()


def test_a_build_that_is_stopped_leaves_no_collection(vectors: Any, tmp_path: Path) -> None:
    shared = tmp_path / "shared.db"
    steps = Milvus.build(tmp_path, vectors, uri=str(shared), collection="ours")
    next(steps), next(steps)
    steps.close()
    with server.open_client(server.parse_address(str(shared), None)) as client:
        assert client.list_collections() == []
    assert not (tmp_path / ABOUT).exists()


def test_a_collection_that_lost_vectors_is_not_searched(vectors: Any, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared.db")
    complete(Milvus.build(tmp_path, vectors, uri=shared, collection="ours"))
    with server.open_client(server.parse_address(shared, None)) as client:
        client.delete("ours", filter=f"{server.primary_key(client, 'ours')} < 10")
    with pytest.raises(BackendError, match="has 190 of 200 vectors; build the index again"):
        Milvus.load(tmp_path)
    with server.open_client(server.parse_address(shared, None)) as client:
        client.drop_collection("ours")
    with pytest.raises(BackendError, match=r"'ours' .* is gone, or was replaced"):
        Milvus.load(tmp_path)


# ── requests refused before anything is encoded ──────────────────────────────


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"index_type": "DISKANN"}, "offers FLAT, HNSW, AUTOINDEX; DISKANN needs a server"),
        ({"uri": "milvus"}, "a Milvus address is http://host:19530, or a file"),
        ({"uri": "/no/such/folder/x.db"}, "a file in an existing folder whose name ends in .db"),
        ({"uri": "http://root:secret@127.0.0.1:19530"}, "environment variable MILVUS_TOKEN"),
        ({"collection": "my-index"}, "Milvus takes letters, digits and '_'"),
    ],
)
def test_a_wrong_setting_is_a_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as error:
        server.check({**DEFAULTS, **settings})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "mute", [False, True], ids=["no server listens", "a server that says nothing"]
)
def test_a_silent_server_is_a_sentence(monkeypatch: pytest.MonkeyPatch, mute: bool) -> None:
    monkeypatch.setattr(server, "CONNECT_SECONDS", 1.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if mute:
            listener.listen()  # the system accepts the connection, and no program reads from it
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started = time.monotonic()
        sentence = f"Milvus at {uri} failed .* is it running, and is MILVUS_TOKEN right"
        with pytest.raises(BackendError, match=sentence):
            server.check({**DEFAULTS, "uri": uri, "index_type": "DISKANN"})
        assert time.monotonic() - started < 10


def test_a_file_that_another_process_has_open_is_a_sentence(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system locks files in another way")
    (tmp_path / "busy.db").mkdir()
    with open(tmp_path / "busy.db" / "LOCK", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BackendError, match="another process has it open, or it is damaged"):
            server.connect(server.parse_address(str(tmp_path / "busy.db"), None))


IDLE = """
import sys, time
from pathlib import Path
import numpy
from rallebench.vector_indexes.milvus import Milvus
index = Milvus.load(Path(sys.argv[1]))
time.sleep(35)
print(index.search(numpy.load(sys.argv[2])[:1], 1)[1][0, 0])
index.close()
"""


@pytest.mark.slow
def test_an_index_left_alone_still_answers(folder: Path, vectors: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", vectors)
    ran = subprocess.run(
        [sys.executable, "-c", IDLE, str(folder), str(tmp_path / "v.npy")],
        env={**os.environ, "GRPC_VERBOSITY": "ERROR"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("0", ""), (
        "three pings of an idle client end its connection, with noise"
    )
