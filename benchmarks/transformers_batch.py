"""Overhead of the backend for local models over ``model.generate``, and gain of sorting by length.

A random Llama and a tokenizer of the starter's words are written into a temporary folder; nothing is
downloaded. The bare figure is ``tokenizer`` → ``model.generate`` → ``batch_decode`` on the same
batches with the same weights. The second figure answers 200 prompts of mixed length, once handed
over as they come, a batch at a time, and once all together, so that the backend can sort them.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took

from rallebench.core.types import Generate, Message, Reply
from rallebench.llms import LLMS

BATCH = 8
TARGET_OVERHEAD = 1.03
TARGET_SORTED = 1.5
POSITIONS = 2048
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
SMALL = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}


def write_model(
    folder: Path, shape: dict[str, int], dtype: str = "float32", device: str = "cpu"
) -> Path:
    """A random Llama that never ends a text by itself, with a tokenizer of one token a word; made on ``device``."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    words = sorted(set(_report.starter_words()))
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(_report.SEED)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=POSITIONS,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        **shape,
    )
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)  # as it is initialised one word would win everywhere
        model.lm_head.weight[: len(SPECIAL)] = 0.0
    model.save_pretrained(folder)
    return folder


def mixed_prompts(count: int, longest: int, seed: int = _report.SEED) -> list[str]:
    """Texts of the starter's words; their lengths are spread as those of real prompts: few are long."""
    drawn = random.Random(seed)
    words = sorted(set(_report.starter_words()))
    lengths = [min(longest, max(8, round(drawn.lognormvariate(4.2, 1.0)))) for _ in range(count)]
    return [" ".join(drawn.choices(words, k=length)) for length in lengths]


def requests(texts: Sequence[str], tokens: int) -> list[Generate]:
    """One greedy request a text."""
    return [
        Generate("small", (Message("user", text),), max_tokens=tokens, temperature=0.0)
        for text in texts
    ]


def answers(replies: Sequence[Any]) -> list[str]:
    """The texts of the replies; a failed one is ''."""
    return [reply.text if isinstance(reply, Reply) else "" for reply in replies]


def batches(texts: Sequence[str]) -> list[Sequence[str]]:
    """The texts, a batch at a time."""
    return [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]


def directly(model: Any, tokenizer: Any, texts: Sequence[str], tokens: int) -> list[str]:
    """The bare library, greedy, batch by batch."""
    decoded: list[str] = []
    for batch in batches(texts):
        inputs = tokenizer(list(batch), return_tensors="pt", padding=True)
        output = model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        written = output[:, inputs["input_ids"].shape[1] :]
        decoded += tokenizer.batch_decode(
            written, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    return decoded


def measure_against_library(
    llm: Any, folder: Path, texts: Sequence[str], tokens: int, rounds: int
) -> tuple[list[Measure], Fact]:
    """Our backend and the bare library on the same batches, turn by turn."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, device_map="cpu").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    llm.generate(requests(texts[:BATCH], 2))
    directly(model, tokenizer, texts[:BATCH], 2)
    ours: list[Took] = []
    bare: list[Took] = []
    wrong = 0
    for _ in range(rounds):
        took, expected = _report.timed(lambda: directly(model, tokenizer, texts, tokens))
        bare.append(took)
        took, replies = _report.timed(lambda: llm.generate(requests(texts, tokens)))
        ours.append(took)
        wrong += sum(a != b for a, b in zip(answers(replies), expected, strict=True))
    return [
        Measure(
            "processor time over model.generate's, best round",
            "times",
            [min(took.processor for took in ours) / min(took.processor for took in bare)],
            most=TARGET_OVERHEAD,
        ),
        Measure(
            "our backend, processor time per prompt",
            "ms",
            [took.processor * 1000 / len(texts) for took in ours],
            [took.processor * 1000 / len(texts) for took in bare],
            "model.generate",
        ),
    ], Fact("texts that differ from model.generate's on the same batches", wrong, 0)


def measure_sorting(llm: Any, texts: Sequence[str], rounds: int) -> tuple[list[Measure], Fact]:
    """Mixed lengths as they come, a batch at a time, and all at once, so that the backend sorts them."""
    arrived: list[Took] = []
    sorted_: list[Took] = []
    same = 0
    for _ in range(rounds):
        took, unsorted = _report.timed(
            lambda: [
                answer
                for batch in batches(texts)
                for answer in answers(llm.generate(requests(batch, 8)))
            ]
        )
        arrived.append(took)
        took, replies = _report.timed(lambda: llm.generate(requests(texts, 8)))
        sorted_.append(took)
        same += sum(a == b != "" for a, b in zip(unsorted, answers(replies), strict=True))
    share = same / (len(texts) * rounds)
    return [
        Measure(
            "gain by sorting mixed lengths, in processor time",
            "times",
            [a.processor / s.processor for a, s in zip(arrived, sorted_, strict=True)],
            least=TARGET_SORTED,
        ),
        Measure(
            "mixed lengths, processor time per prompt",
            "ms",
            [took.processor * 1000 / len(texts) for took in sorted_],
            [took.processor * 1000 / len(texts) for took in arrived],
            "as they come",
        ),
        # In another batch a sum is rounded differently, and two words may all but tie.
    ], Fact("at least 99 % of the mixed texts are the same in both orders", share >= 0.99, True)


def measure(
    folder: Path, *, prompts: int, mixed: int, longest: int, tokens: int, rounds: int
) -> Report:
    """Ours against the bare library, then the gain by sorting."""
    model = write_model(folder / "small", SMALL)
    llm = LLMS["transformers"]("small", model=str(model), device_map="cpu", batch_size=BATCH)
    texts = sorted(mixed_prompts(prompts, 200, seed=1), key=lambda text: len(text.split()))
    overhead, equal = measure_against_library(llm, model, texts, tokens, rounds)
    sorting, stable = measure_sorting(llm, mixed_prompts(mixed, longest), max(1, rounds // 2))
    return Report(
        "transformers_batch",
        {
            "prompts": prompts,
            "batch": BATCH,
            "new tokens": tokens,
            "mixed": mixed,
            "longest": longest,
        },
        [*overhead, *sorting],
        [equal, stable],
    )


def main() -> int:
    """Measure and print."""
    import torch

    torch.set_num_threads(_report.THREADS)
    arguments = _report.parser(__doc__, rounds=5).parse_args()
    size: dict[str, int] = {
        "prompts": 48,
        "mixed": 200,
        "longest": 1000,
        "tokens": 48,
        "rounds": arguments.rounds,
    }
    if arguments.quick:
        size = {"prompts": 6, "mixed": 12, "longest": 60, "tokens": 4, "rounds": 1}
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), **size).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
