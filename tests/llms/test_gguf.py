"""A GGUF file is converted once to a folder of transformers, whole or not at all, and is then a model like any other."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import ask_tiny as ask
from asking import reply_of as reply_to
from full_disk import no_file_grows_beyond
from project import PROJECT
from small_workspace import environment
from tiny_gguf import save_gguf, weights

from rallebench.checkpoints.gguf import converted_copy, gguf_model
from rallebench.checkpoints.memory import memory_need
from rallebench.core import locks
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.core.events import complete
from rallebench.llms import LLMS
from rallebench.llms._transformers import converting
from rallebench.llms.load_progress import reporting
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.workspace.paths import WorkspaceFolder

Opened = tuple[list[str], Any]


def opened(path: Path, cache: Path, **settings: Any) -> Opened:
    """(the lines of a load, the model)."""
    own = {"model": str(path), "device_map": "cpu", **settings}
    *lines, llm = LLMS.entry("transformers").traits["loading"]("tiny", cache, **own)
    return lines, llm


def folders(cache: Path) -> list[Path]:
    """Return converted models, and parts of unfinished conversions."""
    return sorted(path for path in (cache / "gguf").glob("*") if path.suffix != ".lock")


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Opened]:
    """(a GGUF file, the cache with its conversion, the first load)."""
    root = tmp_path_factory.mktemp("gguf")
    path = save_gguf(root / "x.gguf")
    return path, root / "cache", opened(path, root / "cache")


def test_every_weight_is_that_of_the_file(converted: tuple[Path, Path, Opened]) -> None:
    loaded = converted[2][1]._model.state_dict()
    for name, tensor in weights().items():
        assert (loaded[name].numpy() == tensor).all(), name


def test_the_conversion_tells_steps_and_happens_once(converted: tuple[Path, Path, Opened]) -> None:
    path, cache, (lines, first) = converted
    steps = [line for line in lines if line.startswith(f"Converting {path} once")]
    assert [step.rsplit(": ")[-1].split()[0] for step in steps] == [
        "the", "the", "the", "writing"
    ]  # fmt: skip
    assert converted_copy(cache, path) == folders(cache)[0]
    again, second = opened(path, cache)
    assert not [line for line in again if line.startswith("Converting")]
    assert len(folders(cache)) == 1
    assert second.fingerprint == first.fingerprint
    assert reply_to(second, ask("the river")).text == reply_to(first, ask("the river")).text


def test_the_count_of_tensors_is_reported_while_they_are_converted(tmp_path: Path) -> None:
    path, lines = save_gguf(tmp_path / "x.gguf", stored="Q8_0"), list[str]()
    with reporting(lines.append):
        complete(converting.convert_model(gguf_model(path), tmp_path))
    assert [line for line in lines if line.endswith(f" 1/{len(weights())}")]


def test_the_fingerprint_and_the_folder_are_by_the_content_of_the_file(
    converted: tuple[Path, Path, Opened], tmp_path: Path
) -> None:
    path, cache, (_, llm) = converted
    moved = shutil.copy(path, tmp_path / "another name.gguf")
    lines, same = opened(tmp_path, cache, gguf_file=moved.name)
    assert same.fingerprint == llm.fingerprint and gguf_model(path).sha256[:12] in llm.fingerprint
    assert not [line for line in lines if line.startswith("Converting")]
    other = opened(save_gguf(tmp_path / "x.gguf", seed=8), tmp_path / "cache")[1]
    assert other.fingerprint != llm.fingerprint


@pytest.mark.parametrize("quantization", ["none", "8bit", "4bit"])
@pytest.mark.parametrize("dtype", ["auto", "float32", "bfloat16"])
def test_the_memory_that_a_file_needs_is_that_of_its_converted_folder(
    converted: tuple[Path, Path, Opened], quantization: str, dtype: str
) -> None:
    path, cache, _ = converted
    chosen = {"quantization": quantization, "dtype": dtype, "device_map": "cpu"}
    (folder,) = folders(cache)
    assert memory_need("tiny", str(path), **chosen) == memory_need("tiny", str(folder), **chosen)


def test_a_converted_file_is_quantised_as_a_folder_is(converted: tuple[Path, Path, Opened]) -> None:
    path, cache, _ = converted
    llm = opened(path, cache, quantization="8bit", dtype="bfloat16")[1]
    assert "8bit, bfloat16" in llm.about and reply_to(llm, ask("the river")).completion_tokens == 12


def test_a_workspace_converts_into_its_cache(tmp_path: Path) -> None:
    workspace, path = WorkspaceFolder(tmp_path / "w"), save_gguf(tmp_path / "x.gguf")
    workspace.save_llm("tiny", LLMEntry(backend="transformers", settings={"model": str(path)}))
    loads = ModelManager(workspace, JobManager())
    try:
        lines = list(loads.load("tiny", "language model"))
        assert [line for line in lines if "Converting" in line] and lines[-1].startswith("loaded")
        assert len(folders(workspace.cache)) == 1
    finally:
        loads.close()


def test_a_cancelled_conversion_leaves_nothing(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf")

    def cancel(message: str) -> None:
        if message.endswith("/20"):
            raise StoppedError("cancelled")

    with reporting(cancel), pytest.raises(StoppedError):
        opened(path, tmp_path)
    assert folders(tmp_path) == []


def test_a_second_conversion_waits_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.01)
    model = gguf_model(save_gguf(tmp_path / "x.gguf"))
    first = converting.convert_model(model, tmp_path)
    while "tokenizer" not in next(first):
        pass
    waits, ends = threading.Event(), []

    def convert() -> None:
        for line in (second := converting.convert_model(model, tmp_path)):
            assert not line.startswith("Converting")
            if line.startswith("waiting"):
                waits.set()
                break
        ends.append(complete(second))

    other = threading.Thread(target=convert)
    other.start()
    assert waits.wait(20)
    folder = complete(first)
    other.join(20)
    assert ends == [folder] == folders(tmp_path)


TWO = """
import sys
from pathlib import Path
from rallebench.llms import LLMS
*lines, llm = LLMS.entry("transformers").traits["loading"]("tiny", Path(sys.argv[2]), model=sys.argv[1], device_map="cpu")
print(llm.fingerprint)
"""


@pytest.mark.slow
def test_two_processes_that_convert_the_same_file_end_with_the_same_folder(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    command = [sys.executable, "-c", TWO, str(path), str(tmp_path)]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT, env=environment())
        for _ in range(2)
    ]
    prints = {child.communicate(timeout=300)[0].split()[-1] for child in children}
    assert len(prints) == 1 and len(folders(tmp_path)) == 1


# ── refused ──────────────────────────────────────────────────────────────────


def refused(path: Path, cache: Path, kind: type[RalleError], words: str, **settings: Any) -> None:
    """The load is refused in one sentence that names llama.cpp's server, and leaves no files."""
    with pytest.raises(kind, match=words) as caught:
        opened(path, cache, **settings)
    assert f"llama-server -m {path}" in str(caught.value) and "\n" not in str(caught.value)
    assert folders(cache) == []


def test_an_architecture_that_transformers_does_not_read_is_one_sentence(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf", architecture="strange")
    refused(path, tmp_path, UsageError, "does not read the architecture strange")


def test_a_file_that_lacks_a_tensor_is_one_sentence(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf", without="blk.1.ffn_up.weight")
    refused(path, tmp_path, BadFileError, "lacks 1 tensors of a llama language model")


def test_a_file_without_a_chat_template_is_asked_plainly_or_refused(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf", template=None)
    refused(
        path,
        tmp_path,
        UsageError,
        "has no chat template; set chat_template to off",
        chat_template="on",
    )
    llm = opened(path, tmp_path)[1]
    assert "chat-off" in llm.fingerprint
    assert reply_to(llm, ask("the river")).prompt_tokens == len(
        llm._tokenizer("the river").input_ids
    )


def test_no_room_on_disk_is_said_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    monkeypatch.setattr(converting, "free_bytes", lambda place: 1000)
    refused(path, tmp_path, BackendError, "the disk is full. It takes")


def test_a_disk_that_fills_meanwhile_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    with no_file_grows_beyond(40_000):
        refused(
            path, tmp_path, BackendError, "no file may grow beyond 40,000 bytes in this session"
        )


def test_a_quota_that_ends_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: Any) -> Any:
        raise RuntimeError("I/O error: Disk quota exceeded (os error 122)")
        yield

    monkeypatch.setattr(converting, "_write_folder", write)
    refused(save_gguf(tmp_path / "x.gguf"), tmp_path, BackendError, "your quota on this disk")


def test_no_room_in_memory_is_said_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    monkeypatch.setattr(converting, "free_on", lambda device: 1000)
    refused(path, tmp_path, BackendMemoryError, "conversion of .* needs about")


def test_what_cannot_be_converted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer

    def fail(*_: Any, **__: Any) -> Callable[..., Any]:
        raise KeyError("strange merges")

    path = save_gguf(tmp_path / "x.gguf")
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", fail)
    refused(path, tmp_path, BackendError, r"could not be converted \('strange merges'\)")
