"""What a load is estimated to take lies within 15 % of what it takes, also for small models and for the first of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_bert import save_bert
from tiny_models import save_llama

from rallebench.checkpoints import memory as needs

LOADS_TWICE = """
import json, sys
from pathlib import Path
from rallebench.workspace.entries import LLMEntry
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.workspace.paths import Workspace

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
workspace = Workspace(folder)
workspace.save_llm("small", LLMEntry(backend="transformers", settings=settings))
loads, rows = ModelManager(workspace, JobManager()), []
for _ in range(2):
    estimate = loads.room("small").need.loaded
    list(loads.load("small", "language model"))
    (row,) = loads.status()
    rows.append([estimate, row.expected, row.ram])
    loads.unload("small")
print(json.dumps(rows))
"""


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["none", "8bit", "4bit"])
def test_the_estimate_of_a_small_model_lies_within_15_percent_of_its_first_and_second_load(
    tmp_path: Path, quantization: str
) -> None:
    save_llama(tmp_path / "model", hidden=512, layers=4)
    settings = {"model": str(tmp_path / "model"), "quantization": quantization, "device_map": "cpu"}
    for estimate, expected, taken in measured(LOADS_TWICE, str(tmp_path), json.dumps(settings)):
        assert estimate == expected
        assert estimate == pytest.approx(taken, rel=0.15)


READER_TWICE = """
import json, sys
from pathlib import Path
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.workspace.entries import LLMEntry
from rallebench.workspace.paths import Workspace

workspace = Workspace(Path(sys.argv[1]))
workspace.save_llm("reader", LLMEntry(backend="extractive-reader", settings=json.loads(sys.argv[2])))
loads, rows = ModelManager(workspace, JobManager()), []
for _ in range(2):
    estimate = loads.room("reader").need.loaded
    list(loads.load("reader", "language model"))
    (row,) = loads.status()
    rows.append([estimate, row.expected, row.ram])
    loads.unload("reader")
print(json.dumps(rows))
"""

ENCODER_TWICE = """
import json, sys
from rallebench.core.memory import release
from rallebench.encoders.references import encoder_need, open_encoder, quantizations

rows = []
for _ in range(2):
    estimate = encoder_need(sys.argv[2], quantizations(sys.argv[2])[0]).loaded
    encoder = open_encoder(sys.argv[2])
    rows.append([estimate, estimate, encoder.memory.ram])
    del encoder
    release()
print(json.dumps(rows))
"""


def measured(code: str, *arguments: str) -> list[list[int]]:
    """What a child process says of its first and its second load: [estimate, estimate in the table, bytes measured]."""
    child = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    rows: list[list[int]] = json.loads(child.stdout.splitlines()[-1])
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_estimate_of_the_embedded_reader_lies_within_15_percent_of_both_loads(
    tmp_path: Path, dtype: str
) -> None:
    for estimate, expected, taken in measured(
        READER_TWICE, str(tmp_path), json.dumps({"dtype": dtype})
    ):
        assert estimate == expected == pytest.approx(taken, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["none", "8bit"])
def test_the_estimate_of_a_sentence_encoder_lies_within_15_percent_of_both_loads(
    tmp_path: Path, quantization: str
) -> None:
    """Of MiniLM's size: six layers of 384, a vocabulary of 30,522."""
    save_bert(tmp_path / "model", hidden=384, layers=6, positions=512, inner=1536, words=30_522)
    reference = f"sentence_transformers:{tmp_path / 'model'}?quantization={quantization}"
    for estimate, _, taken in measured(ENCODER_TWICE, str(tmp_path), reference):
        assert estimate == pytest.approx(taken, rel=0.15)


@pytest.mark.slow
def test_the_estimate_of_the_embedded_encoder_lies_within_15_percent_of_both_loads(
    tmp_path: Path,
) -> None:
    for estimate, _, taken in measured(ENCODER_TWICE, str(tmp_path), "minilm"):
        assert estimate == pytest.approx(taken, rel=0.15)


def test_what_libraries_take_is_expected_of_the_first_load_of_a_process_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "_used", set())
    assert needs.first_use("none") == needs.FIRST_USE["none"]
    needs.note_use("none")
    assert needs.first_use("none") == 0
    assert needs.first_use("4bit") == needs.FIRST_USE["4bit"] - needs.FIRST_USE["none"]
    needs.note_use("4bit")
    assert needs.first_use("8bit") == 0


def test_what_libraries_take_counts_in_ram_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_used", set())
    tensors = [("model.layers.0.mlp.up_proj.weight", 1_000_000, "BF16", 2)]
    on_cpu, on_gpu = (
        needs.need_from(tensors, {}, "none", "bfloat16", device, 10) for device in ("cpu", "cuda")
    )
    assert on_cpu.loaded == on_gpu.loaded + needs.FIRST_USE["none"]
    assert on_cpu.total == on_cpu.to_load == on_cpu.weights + on_cpu.first_use
