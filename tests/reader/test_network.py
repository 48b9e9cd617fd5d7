"""The network: optimisations for speed change no relevant score."""

from __future__ import annotations

from rallebench.encoders.minilm import WEIGHTS_SHA256, model_folder
from rallebench.reader import delta
from rallebench.reader.network import build, use_onednn
from rallebench.reader.spans import WEIGHTS


def test_quickened_layers_score_as_torchs_own() -> None:
    import torch

    difference, _ = delta.read(WEIGHTS, WEIGHTS_SHA256)
    network = build(model_folder(), difference).eval()
    ids = torch.arange(1000, 1120).reshape(2, 60)
    given = (ids, (ids > 1030).long(), torch.ones_like(ids))
    with torch.inference_mode():
        plain = network(*given)
        network.bert = use_onednn(network.bert)
        quick = network(*given)
    assert torch.allclose(plain, quick, atol=1e-3)
    assert not torch.allclose(plain, torch.zeros_like(plain), atol=1.0)


def test_a_network_without_a_difference_scores_every_place_zero() -> None:
    import torch

    ids = torch.arange(1000, 1006).reshape(1, 6)
    with torch.inference_mode():
        scores = build(model_folder()).eval()(ids, torch.zeros_like(ids), torch.ones_like(ids))
    assert scores.shape == (1, 6, 2) and not scores.any()
