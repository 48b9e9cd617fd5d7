"""Tiny random support models, one for each public format, and answers with passages in their prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiny_bert import save_cross_encoder
from tiny_models import save_t5

from rallebench.core.scoring import Pair
from rallebench.core.types import (
    Episode,
    Example,
    Generate,
    Gold,
    Hit,
    Message,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
)


def save_classifier(
    folder: Path,
    labels: Sequence[str],
    kind: str = "BertForSequenceClassification",
    positions: int = 64,
    **config: Any,
) -> Path:
    """Write a BERT with these labels; ``config``: more keys of config.json."""
    save_cross_encoder(folder, labels=len(labels), kind=kind, positions=positions)
    return change_config(
        folder, id2label={str(i): label for i, label in enumerate(labels)}, **config
    )


def change_config(folder: Path, **values: Any) -> Path:
    """Change keys of config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return folder


def save_writer(folder: Path, name: str) -> Path:
    """Write a T5 whose config.json names the published model ``name``."""
    return change_config(save_t5(folder, bytewise=True), _name_or_path=name)


def save_hhem(folder: Path, base: Path, seed: int = 5) -> Path:
    """Write weights as HHEM-2.1 has them, and its base model's configuration and tokenizer into ``base``."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, T5ForTokenClassification

    save_t5(base, bytewise=True)
    torch.manual_seed(seed)
    config = AutoConfig.from_pretrained(base, num_labels=2)
    config.initializer_factor = 4.0
    model = T5ForTokenClassification(config)
    folder.mkdir()
    state = {
        name: tensor for name, tensor in model.state_dict().items() if "embed_tokens" not in name
    }
    save_file({f"t5.{name}": t.clone() for name, t in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(
        json.dumps(
            {
                "architectures": ["HHEMv2ForSequenceClassification"],
                "model_type": "HHEMv2",
                "foundation": "google/flan-t5-base",
                "auto_map": {"AutoModel": "modeling_hhem_v2.HHEMv2ForSequenceClassification"},
            }
        )
    )
    return folder


def passage(number: int, text: str, title: str = "") -> Passage:
    return Passage(f"p{number}", text, title)


def answer_pair(
    answer: str,
    texts: Sequence[str],
    question: str = "Which?",
    gold: Gold = Gold(),  # noqa: B008 - frozen
    prompt: str | None = None,
) -> Pair:
    """A question whose prompt holds these passages, with its answer."""
    hits = tuple(Hit(passage(i, text), 1.0) for i, text in enumerate(texts, 1))
    sent = "\n".join(texts) if prompt is None else prompt
    steps = (
        Step(Retrieve("index", question), Reply("", hits)),
        Step(Generate("llm", (Message("user", sent),)), Reply(answer)),
    )
    return Pair(
        Example(Question("q", question), gold), Episode("q", "chain", steps, Outcome(answer))
    )
