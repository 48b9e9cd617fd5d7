"""The estimated memory of a load is within 15 % of the measured one, even for small models and the first load of a
process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_bert import save_bert
from tiny_models import save_llama

from rallebench.checkpoints import memory as needs

MODEL_TWICE = """
import json, sys
from pathlib import Path
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.workspace.entries import LLMEntry
from rallebench.workspace.paths import WorkspaceFolder

workspace = WorkspaceFolder(Path(sys.argv[1]))
workspace.save_llm("small", LLMEntry(backend=sys.argv[2], settings=json.loads(sys.argv[3])))
loads, rows = ModelManager(workspace, JobManager()), []
for _ in range(2):
    estimate = loads.room("small").need.resident
    list(loads.load("small", "language model"))
    (row,) = loads.status()
    rows.append([estimate, row.expected, row.ram])
    loads.unload("small")
print(json.dumps(rows))
"""


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["none", "8bit", "4bit"])
def test_the_estimate_of_a_model_is_near_both_loads(tmp_path: Path, quantization: str) -> None:
    save_llama(tmp_path / "model", hidden=512, layers=4)
    settings = {"model": str(tmp_path / "model"), "quantization": quantization, "device_map": "cpu"}
    check_both_loads(MODEL_TWICE, str(tmp_path), "transformers", json.dumps(settings))


ENCODER_TWICE = """
import json, sys
from rallebench.core.memory import release
from rallebench.encoders.references import encoder_need, open_encoder, quantizations

rows = []
for _ in range(2):
    estimate = encoder_need(sys.argv[1], quantizations(sys.argv[1])[0]).resident
    encoder = open_encoder(sys.argv[1])
    rows.append([estimate, estimate, encoder.memory.ram])
    del encoder
    release()
print(json.dumps(rows))
"""


def check_both_loads(code: str, *arguments: str) -> None:
    """A child process reports for its first and second load: the estimate, the table's estimate, the measured bytes."""
    child = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for estimate, expected, taken in json.loads(child.stdout.splitlines()[-1]):
        assert estimate == expected == pytest.approx(taken, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_estimate_of_the_embedded_reader_is_near_both_loads(tmp_path: Path, dtype: str) -> None:
    check_both_loads(MODEL_TWICE, str(tmp_path), "extractive-reader", json.dumps({"dtype": dtype}))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["minilm", "none", "8bit"])
def test_the_estimate_of_a_sentence_encoder_is_near_both_loads(tmp_path: Path, model: str) -> None:
    """The embedded encoder, and one of its size in two forms: six layers of 384, a vocabulary of 30,522."""
    if model != "minilm":
        folder = save_bert(
            tmp_path / "model", hidden=384, layers=6, positions=512, inner=1536, words=30_522
        )
        model = f"sentence_transformers:{folder}?quantization={model}"
    check_both_loads(ENCODER_TWICE, model)


def test_what_libraries_take_is_expected_of_the_first_load_of_a_process_alone_and_in_ram_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "_used", set())
    tensors = [("model.layers.0.mlp.up_proj.weight", 1_000_000, "BF16", 2)]
    on_cpu, on_gpu = (
        needs.need_from(tensors, {}, "none", "bfloat16", device, 10) for device in ("cpu", "cuda")
    )
    assert on_cpu.first_use == needs.FIRST_USE["none"] and on_gpu.first_use == 0
    assert on_cpu.total == on_cpu.to_load == on_cpu.weights + on_cpu.first_use
    needs.note_use("none")
    assert needs.first_use("none") == 0
    assert needs.first_use("4bit") == needs.FIRST_USE["4bit"] - needs.FIRST_USE["none"]
    needs.note_use("4bit")
    assert needs.first_use("8bit") == 0
