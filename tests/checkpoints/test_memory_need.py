"""The memory of a model is estimated before it is loaded, only from the headers of its weights or its configuration."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rallebench.checkpoints import files
from rallebench.checkpoints import memory as needs
from rallebench.checkpoints.files import cache_bytes
from rallebench.checkpoints.memory import (
    MemoryNeed,
    check_fit,
    has_cuda,
    mapped_device,
    memory_need,
)
from rallebench.cli.main import main
from rallebench.core import memory
from rallebench.core.errors import BackendMemoryError, BadFileError
from rallebench.core.versions import imported_module
from rallebench.encoders.half_precision import has_bfloat16_here

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
MATRIX, EMBEDDING, NORM = 1_000_000, 500_000, 1_000


def write_model(folder: Path, tensors: dict[str, tuple[list[int], str]], **config: Any) -> Path:
    """A folder with weights that are only a header."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**LLAMA, **config}))
    header = {
        name: {"shape": shape, "dtype": dtype, "data_offsets": [0, 0]}
        for name, (shape, dtype) in tensors.items()
    }
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(
        tmp_path / "model",
        {
            "model.layers.0.mlp.up_proj.weight": ([1000, 1000], "BF16"),
            "model.embed_tokens.weight": ([500, 1000], "BF16"),
            "model.norm.weight": ([1000], "BF16"),
        },
    )


def of(folder: Path, **settings: Any) -> MemoryNeed:
    found = memory_need("m", str(folder), **{"device_map": "cpu", **settings})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 2 * (MATRIX + EMBEDDING + NORM)),
        ({"dtype": "float32"}, 4 * (MATRIX + EMBEDDING + NORM)),
        ({"quantization": "8bit"}, MATRIX + 2 * (EMBEDDING + NORM)),
        ({"quantization": "4bit"}, 4.13 / 8 * MATRIX + 2 * (EMBEDDING + NORM)),
    ],
)
def test_only_matrices_are_quantised_embeddings_and_norms_stay(
    folder: Path, settings: dict[str, Any], expected: float
) -> None:
    found = of(folder, **settings)
    assert found.weights == pytest.approx(expected, abs=1)
    assert found.parameters == MATRIX + EMBEDDING + NORM


@pytest.mark.parametrize(
    ("tensors", "settings", "weights"),
    [
        # Experts, which are joined into one tensor, are not quantised; weights that are already quantised stay.
        (
            {"model.layers.0.mlp.experts.0.up_proj.weight": ([1000, 1000], "BF16")},
            {"quantization": "4bit"},
            2 * MATRIX,
        ),
        (
            {"a.qweight": ([1000, 125], "I32"), "b.weight": ([1000, 1000], "U8")},
            {"dtype": "float32"},
            4 * 125_000 + MATRIX,
        ),
    ],
)
def test_some_tensors_stay_as_they_are(
    tmp_path: Path, tensors: Any, settings: dict[str, str], weights: int
) -> None:
    assert of(write_model(tmp_path, tensors), **settings).weights == weights


def test_the_cache_grows_with_context_and_batch(folder: Path) -> None:
    one = of(folder)
    assert (one.context, one.batch) == (2048, 1)
    assert (
        one.cache == 2 * 2 * 2 * 16 * 2048 * 2
    )  # keys and values, layers, key heads, width, tokens, bytes
    assert of(folder, context=4096, batch=8).cache == 16 * one.cache
    assert one.total == one.resident + one.cache
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 128}))
    assert of(folder).context == 128


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"n_layer": 2, "n_head": 4, "n_embd": 64}, 2 * 2 * 64 * 10 * 4),
        (
            {
                "num_layers": 6,
                "num_decoder_layers": 2,
                "num_heads": 4,
                "d_kv": 16,
                "is_encoder_decoder": True,
            },
            4 * 2 * 64 * 10 * 4,
        ),
        (
            {"text_config": {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}},
            2 * 2 * 64 * 10 * 4,
        ),
        ({}, 0),
    ],
    ids=["gpt2", "t5", "text within", "unknown"],
)
def test_the_cache_is_known_by_the_names_of_families(config: dict[str, Any], expected: int) -> None:
    assert cache_bytes(config, 10, 1, "float32") == expected


def test_a_hub_id_is_known_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert memory_need("m", "someone/somewhat") is None
    snapshot = tmp_path / "models--someone--somewhat" / "snapshots" / "abc"
    write_model(snapshot, {"w": ([1000, 1000], "BF16")})
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("abc")
    found = memory_need("m", "someone/somewhat", device_map="cpu")
    assert found is not None and found.weights == 2 * MATRIX
    assert memory_need("m", "not a name") is None


def test_a_configuration_alone_is_counted_as_its_weights_would_be(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    counted = files._empty_model(tmp_path)
    layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
    assert sum(tensor[1] for tensor in counted) == 2 * 100 * 64 + 64 + 2 * layer
    (tmp_path / "config.json").write_text('{"model_type": "never-heard-of"}')
    assert files._empty_model(tmp_path) == ()


def test_a_folder_without_weights_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    with pytest.raises(BadFileError, match="contains no weights"):
        memory_need("m", str(tmp_path))


def test_reading_headers_imports_no_torch(folder: Path) -> None:
    code = (
        "import sys; from rallebench.checkpoints.memory import memory_need; "
        "print(memory_need('m', sys.argv[1], device_map='cpu').weights, 'torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [str(2 * (MATRIX + EMBEDDING + NORM)), "False"]


def test_what_cannot_fit_is_refused_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "free_ram_bytes", lambda: 3_000_000_000)
    big = MemoryNeed(4_000_000_000, 1, 0, 1, "bfloat16", "cpu", 128, 1)
    with pytest.raises(
        BackendMemoryError,
        match=r"needs about 4.0 GB RAM as bfloat16, but only 3.0 GB are free; choose",
    ):
        check_fit("m", big)
    check_fit("m", replace(big, weights=2_000_000_000))


def test_free_vram_is_that_of_the_device_and_a_spread_model_may_take_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "free_ram_bytes", lambda: 5)
    monkeypatch.setattr(needs, "free_vram_bytes", lambda: {0: 10, 1: 20})
    found = [needs.free_on(device) for device in ("cpu", "cuda", "cuda:1", "cuda:7", "auto", "mps")]
    assert found == [5, 10, 20, None, 35, None]
    monkeypatch.setattr(needs, "has_cuda", lambda: True)
    assert [mapped_device(said) for said in (None, "auto", {"": 0})] == ["cuda", "auto", "cuda:0"]


def test_the_limit_of_a_container_counts_its_file_pages_as_free(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/outer/inner\n9:name=systemd:/\n4:memory:/job\n")
    for folder, most, used, cached in (
        ("outer", "900", "500", "100"),
        ("outer/inner", "max", "300", "0"),
    ):
        group = tmp_path / folder
        group.mkdir(parents=True)
        (group / "memory.max").write_text(f"{most}\n")
        (group / "memory.current").write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 1\ninactive_file {cached}\n")
    old = tmp_path / "memory"  # the older version, seen from inside: only its top is visible
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("700")
    (old / "memory.usage_in_bytes").write_text("650")
    (old / "memory.stat").write_text("total_inactive_file 30\n")
    assert sorted(memory.container_room(tmp_path, own)) == [80, 500]
    assert list(memory.container_room(tmp_path, tmp_path / "nothing")) == []


def memory_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Return the JSON of the verb ``memory``."""
    assert main(["memory", *arguments, "--json"]) == 0
    value: dict[str, Any] = json.loads(capfd.readouterr().out)
    return value


def test_every_quantisation_is_told_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flags = ["--workspace", str(folder.parent)]
    reference = f"transformers:{folder}?quantization=8bit&device_map=cpu"
    value = memory_of(capfd, reference, "--context", "128", *flags)
    forms = value["quantization"]
    weights = [row["weights"] for row in forms.values()]
    assert value["chosen"] == "8bit" and list(forms) == ["none", "8bit", "4bit"]
    assert weights == sorted(weights, reverse=True) and forms["4bit"]["context"] == 128
    for arguments, sentence in (
        (["scripted:?echo=true"], "Nothing here says what scripted:?echo=true needs"),
        (["no-such"], "There is no language model 'no-such'."),
        ([reference, "--batch", "0"], "0"),
    ):
        assert main(["memory", *arguments, *flags]) == 2
        assert sentence in capfd.readouterr().err


@pytest.mark.parametrize("model", ["minilm", "extractive-reader"])
def test_what_is_embedded_says_its_need_before_it_is_loaded(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = memory_of(capfd, model, "--workspace", str(tmp_path))
    assert list(value["quantization"]) == ["none"] == [value["chosen"]]
    need = value["quantization"]["none"]
    assert need["parameters"] == pytest.approx(22.6e6, rel=0.02) and need["needs"] > need["weights"]
    assert value["sentence"].startswith(f"{model} needs about ")


def test_an_encoder_says_its_need_in_each_of_its_quantisations(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_model(
        tmp_path / "encoder",
        {
            "embeddings.word_embeddings.weight": ([500, 1000], "F32"),
            "encoder.layer.0.output.dense.weight": ([1000, 1000], "F32"),
        },
        model_type="bert",
    )
    (folder / "tokenizer.json").write_text("{}")
    reference = f"sentence_transformers:{folder}?quantization=8bit&device=cpu"
    value = memory_of(capfd, reference, "--workspace", str(tmp_path))
    assert value["chosen"] == "8bit"
    assert {form: row["weights"] for form, row in value["quantization"].items()} == {
        "none": 4 * (MATRIX + EMBEDDING),
        "8bit": MATRIX + 4 * EMBEDDING,
    }


@pytest.mark.slow
def test_the_processor_is_asked_for_bfloat16_without_torch() -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from rallebench.encoders.half_precision import has_bfloat16, has_bfloat16_here\n"
            "said = has_bfloat16_here(); assert 'torch' not in sys.modules\n"
            "import torch; assert said == has_bfloat16(torch.device('cpu'))",
        ],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr


def test_a_torch_that_is_being_imported_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its C++ part and the import wait for each other: both threads would block for good."""
    half_imported = types.ModuleType("torch")
    half_imported.__spec__ = types.SimpleNamespace(_initializing=True)  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "torch", half_imported)
    assert imported_module("torch") is None
    assert isinstance(has_bfloat16_here(), bool) and isinstance(has_cuda(), bool)
    assert memory.Memory.now().ram > 0
