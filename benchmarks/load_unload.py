"""Memory released by a model that is loaded and unloaded repeatedly.

A random Llama, made in a temporary folder, is loaded and unloaded in one process, whole and quantised,
through the same table as on the page. Resident memory is read after every unload. The first two rounds
are not counted: libraries import parts of themselves late, and the heap takes its shape. The bare figure
is ``from_pretrained`` alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

FORMS = ("none", "8bit", "4bit")
TARGET_GROWTH, TARGET_LEFT = 2.0, 15.0
SETTLED = 2
"""Rounds that are not counted."""


def make_model(folder: Path, hidden: int, layers: int) -> None:
    """A random Llama with a tokenizer of a few words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = [
        "<unk>",
        "</s>",
        *sorted({word for word in _report.starter_words() if word.isalpha()})[:1000],
    ]
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")
    fast.save_pretrained(folder)
    torch.manual_seed(_report.SEED)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def bare(model: Path) -> float:
    """Seconds that the library takes to load the model."""
    from transformers import AutoModelForCausalLM

    started = time.perf_counter()
    AutoModelForCausalLM.from_pretrained(model, device_map="cpu")
    return time.perf_counter() - started


def rounds_of(model: Path, form: str, rounds: int) -> dict[str, Any]:
    """Load, ask, and unload: per round MB after it, MB that the model took, % of that left, seconds."""
    from rallebench.core.entries import LLMEntry
    from rallebench.core.memory import release, rss_bytes
    from rallebench.core.types import Generate, Message
    from rallebench.services.jobs import JobManager
    from rallebench.services.models import ModelManager
    from rallebench.workspace.paths import WorkspaceFolder

    workspace = WorkspaceFolder(model.parent)
    settings = {"model": str(model), "quantization": form, "device_map": "cpu", "max_tokens": 4}
    workspace.save_llm("random", LLMEntry(backend="transformers", settings=settings))
    table = ModelManager(workspace, JobManager())
    figures: dict[str, Any] = {
        "after": [],
        "took": [],
        "left": [],
        "seconds": [],
        "asked": 0,
        "estimate": 0.0,
    }
    for number in range(rounds + SETTLED):
        release()
        before, started = rss_bytes(), time.perf_counter()
        list(table.load("random", "language model"))
        seconds = time.perf_counter() - started
        (loaded,) = table.status()
        (reply,) = table.backends.llms["random"].generate(
            [Generate("random", (Message("user", "the city"),))]
        )
        figures["asked"] += getattr(reply, "completion_tokens", 0) == 4
        del reply
        table.unload("random")
        figures["after"].append(rss_bytes() / 1e6)
        figures["estimate"] = loaded.expected / 1e6
        if number >= SETTLED:
            figures["took"].append(loaded.ram / 1e6)
            figures["left"].append(100 * max(0, rss_bytes() - before) / max(1, loaded.expected))
            figures["seconds"].append(seconds)
    table.close()
    return figures


def measure(folder: Path, rounds: int, hidden: int, layers: int) -> Report:
    """Every form in turn, in this one process. Growth is that of the worst round over the third."""
    model = folder / "model"
    make_model(model, hidden, layers)
    bare(model)
    seconds = [bare(model) for _ in range(rounds)]
    measures, facts, notes = [], [], []
    for form in FORMS:
        figures = rounds_of(model, form, rounds)
        settled = figures["after"][SETTLED]
        growth = 100 * max(0.0, max(figures["after"][SETTLED:]) / settled - 1)
        lasting = 100 * (figures["after"][-1] / settled - 1)
        compared: dict[str, Any] = (
            {"bare": seconds, "bare_name": "from_pretrained"} if form == "none" else {}
        )
        measures += [
            Measure(f"{form}: growth of resident memory", "%", [growth], most=TARGET_GROWTH),
            Measure(
                f"{form}: growth that is left after the last round",
                "%",
                [lasting],
                most=TARGET_GROWTH,
            ),
            Measure(
                f"{form}: left after an unload, of what it took",
                "%",
                figures["left"],
                most=TARGET_LEFT,
            ),
            Measure(
                f"{form}: taken",
                "MB",
                figures["took"],
                [figures["estimate"]] * rounds,
                "the estimate",
            ),
            Measure(f"{form}: load", "s", figures["seconds"], **compared),
        ]
        facts.append(Fact(f"{form}: rounds that answered", figures["asked"], rounds + SETTLED))
        notes.append(
            f"{form}: MB after each round: {' '.join(f'{size:.0f}' for size in figures['after'])}"
        )
    size = (model / "model.safetensors").stat().st_size / 1e6
    return Report(
        "load_unload", {"model": f"{size:.0f} MB", "rounds": rounds}, measures, facts, notes
    )


def main() -> int:
    """Measure and print."""
    flags: argparse.ArgumentParser = _report.parser(__doc__, rounds=20)
    arguments = flags.parse_args()
    rounds, hidden, layers = (2, 64, 2) if arguments.quick else (arguments.rounds, 768, 8)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), rounds, hidden, layers).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
