"""What a load is estimated to take lies within 15 % of what it takes, also for small models and for the first of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import save_llama

from rallebench.llms._memory import need as needs

LOADS_TWICE = """
import json, sys
from pathlib import Path
from rallebench.workspace.entries import LLMEntry
from rallebench.services.models import Loads
from rallebench.workspace.paths import Workspace

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
workspace = Workspace(folder)
workspace.save_llm("small", LLMEntry(backend="transformers", settings=settings))
loads, rows = Loads(workspace), []
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
    child = subprocess.run(
        [sys.executable, "-c", LOADS_TWICE, str(tmp_path), json.dumps(settings)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for estimate, expected, measured in json.loads(child.stdout.splitlines()[-1]):
        assert estimate == expected
        assert estimate == pytest.approx(measured, rel=0.15)


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
