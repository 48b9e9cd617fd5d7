"""The reader's network: MiniLM's layers with a linear head that scores the start and end of a span.

MiniLM keeps its embedding table; a trained difference changes its six layers. A position is scored
against the sequence's first token, ``[CLS]``, which stands for "no answer here", so scores of
different windows are comparable (Devlin et al. 2019, arXiv:1810.04805, section 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.checkpoints.files import mapped_tensor
from rallebench.encoders.half_precision import with_linear_layers

HIDDEN = 384
TABLE = "embeddings.word_embeddings.weight"


def build(
    folder: Path, difference: Mapping[str, Any] | None = None, *, attention: str = "sdpa"
) -> Any:
    """Build a torch module: (ids, types, mask) int64 (n, tokens) → float32 (n, tokens, 2), start and end scores.

    ``difference``: name → float32 array to add to the base model's weight of that name; the head's entries are its
    weights. Without one the head is zero. There is no dropout. The embedding table stays mapped from the base model's
    file, so that processes and models share its 47 MB.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    config = BertConfig.from_pretrained(
        str(folder),
        local_files_only=True,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config._attn_implementation = attention
    file = folder / "model.safetensors"
    # cloned, because one tensor of a mapped file keeps the pages of the whole file in memory
    state = {
        name: values.clone()
        for name, values in load_file(str(file)).items()
        if name != TABLE and not name.startswith("pooler.")
    }
    state[TABLE] = torch.from_numpy(mapped_tensor(file, TABLE))
    head = {"weight": torch.zeros(2, HIDDEN), "bias": torch.zeros(2)}
    for name, values in (difference or {}).items():
        change = torch.from_numpy(values)
        if name.startswith("head."):
            head[name.removeprefix("head.")] = change
        else:
            state[name] += change
    with torch.device("meta"):
        bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(state, strict=False, assign=True)
    places = torch.arange(config.max_position_embeddings).unsqueeze(0)
    bert.embeddings.position_ids = places
    bert.embeddings.token_type_ids = torch.zeros_like(places)

    class SpanNetwork(torch.nn.Module):  # type: ignore[misc]
        def __init__(
            self, bert: Any
        ) -> None:  # a closure would keep the replaced layers from being freed
            super().__init__()
            self.bert = bert
            self.head = torch.nn.Linear(HIDDEN, 2)
            self.head.load_state_dict(head)

        def forward(self, ids: Any, types: Any, mask: Any) -> Any:
            hidden = self.bert(
                input_ids=ids, token_type_ids=types, attention_mask=mask
            ).last_hidden_state
            with torch.autocast(hidden.device.type, enabled=False):
                return self.head(hidden.float())

    return SpanNetwork(bert)


def use_onednn(model: Any) -> Any:
    """Make the linear layers of ``model`` use oneDNN in float32, in place; no change if torch lacks it.

    On processors other than Intel's, torch's own choice for float32, MKL, takes twice as long. Results differ
    after the sixth decimal. For inference only: there is no gradient.
    """
    import torch

    class OneDnnLinear(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.weight, self.bias = layer.weight.detach(), layer.bias.detach()

        def forward(self, x: Any) -> Any:
            return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    try:
        tried = torch.nn.Linear(8, 8)
        x = torch.ones(1, 2, 8)
        with torch.inference_mode():
            same = torch.allclose(OneDnnLinear(tried)(x), tried(x), atol=1e-5)
    except (
        RuntimeError,
        AttributeError,
        TypeError,
    ):  # the operator is not part of torch's public API
        return model
    return with_linear_layers(model, OneDnnLinear) if same else model
