"""The weights' file: small, exact enough, and refused for any other model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.reader import delta
from tools.reader import packing

BASE = "5" * 64


def change(seed: int = 0) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(seed)
    return {
        "layer.weight": drawn.normal(0, 0.01, (128, 384)).astype(np.float32),
        "layer.bias": drawn.normal(0, 0.01, 384).astype(np.float32),
        "head.weight": drawn.normal(0, 1, (2, 384)).astype(np.float32),
    }


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    packing.write(path, change(), BASE, {"seed": 3})
    return path


def test_a_matrix_comes_back_within_a_fifteenth_of_its_spread_the_rest_exact(written: Path) -> None:
    found, about = delta.read(written, BASE)
    given = change()
    assert about == {"seed": 3}
    assert set(found) == set(given)
    off = found["layer.weight"] - given["layer.weight"]
    assert np.sqrt(np.mean(off**2)) < 0.067 * given["layer.weight"].std()
    for name in ("layer.bias", "head.weight"):
        assert np.array_equal(found[name], given[name])


def test_a_weight_of_a_matrix_takes_five_bits_and_a_group_one_scale(written: Path) -> None:
    matrix = 128 * 384
    assert written.stat().st_size < matrix * 5 / 8 + matrix / 64 * 2 + 3 * 384 * 4 + 2000


def test_a_group_of_zeros_stays_zero() -> None:
    zeros = np.zeros(128, dtype=np.float32)
    assert np.array_equal(delta.restore(*packing.quantise(zeros)), zeros)


def test_another_base_model_is_refused(written: Path) -> None:
    with pytest.raises(MismatchError, match="made for a base model with sha256 555555555555"):
        delta.read(written, "6" * 64)


@pytest.mark.parametrize("keep", [0, 7, 300, -10])
def test_a_file_that_is_cut_short_is_refused_with_one_sentence(written: Path, keep: int) -> None:
    written.write_bytes(written.read_bytes()[:keep])
    with pytest.raises(BadFileError, match="reinstall the package"):
        delta.read(written, BASE)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "other.safetensors"
    save_file({"x": np.zeros(3, dtype=np.float32)}, str(path))
    with pytest.raises(BadFileError, match="does not contain the reader's weights"):
        delta.read(path, BASE)
    with pytest.raises(BadFileError, match="cannot be read"):
        delta.read(tmp_path / "missing.safetensors", BASE)
