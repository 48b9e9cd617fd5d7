"""What the backend for local models costs over ``model.generate``, and what sorting by length gains.

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


def asked(texts: Sequence[str], tokens: int) -> list[Generate]:
    """One greedy request a text."""
    return [
        Generate("small", (Message("user", text),), max_tokens=tokens, temperature=0.0)
        for text in texts
    ]


def said(replies: Sequence[Any]) -> list[str]:
    """The texts of the replies; a failed one is ''."""
    return [reply.text if isinstance(reply, Reply) else "" for reply in replies]


def batches(texts: Sequence[str]) -> list[Sequence[str]]:
    """The texts, a batch at a time."""
    return [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]


def directly(model: Any, tokenizer: Any, texts: Sequence[str], tokens: int) -> list[str]:
    """The bare library, greedy, batch by batch."""
    answers: list[str] = []
    for batch in batches(texts):
        inputs = tokenizer(list(batch), return_tensors="pt", padding=True)
        output = model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        written = output[:, inputs["input_ids"].shape[1] :]
        answers += tokenizer.batch_decode(
            written, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    return answers


def measure(
    folder: Path, *, prompts: int, mixed: int, longest: int, tokens: int, rounds: int
) -> Report:
    """Ours and the bare library, then sorted and as they come, turn by turn."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = write_model(folder / "small", SMALL)
    llm = LLMS["transformers"]("small", model=str(where), device_map="cpu", batch_size=BATCH)
    model = AutoModelForCausalLM.from_pretrained(where, device_map="cpu").eval()
    tokenizer = AutoTokenizer.from_pretrained(where, padding_side="left")
    texts = sorted(mixed_prompts(prompts, 200, seed=1), key=lambda text: len(text.split()))
    many = mixed_prompts(mixed, longest)
    llm.generate(asked(texts[:BATCH], 2))
    directly(model, tokenizer, texts[:BATCH], 2)
    ours: list[Took] = []
    bare: list[Took] = []
    wrong = 0
    for _ in range(rounds):
        took, expected = _report.timed(lambda: directly(model, tokenizer, texts, tokens))
        bare.append(took)
        took, replies = _report.timed(lambda: llm.generate(asked(texts, tokens)))
        ours.append(took)
        wrong += sum(a != b for a, b in zip(said(replies), expected, strict=True))
    arrived: list[Took] = []
    sorted_: list[Took] = []
    same = 0
    for _ in range(max(1, rounds // 2)):
        took, one = _report.timed(
            lambda: [text for part in batches(many) for text in said(llm.generate(asked(part, 8)))]
        )
        arrived.append(took)
        took, replies = _report.timed(lambda: llm.generate(asked(many, 8)))
        sorted_.append(took)
        same += sum(a == b != "" for a, b in zip(one, said(replies), strict=True))
    share = same / (len(many) * len(arrived))
    return Report(
        "transformers_batch",
        {
            "prompts": prompts,
            "batch": BATCH,
            "new tokens": tokens,
            "mixed": mixed,
            "longest": longest,
        },
        [
            Measure(
                "processor time over model.generate's, best round",
                "times",
                [min(took.processor for took in ours) / min(took.processor for took in bare)],
                most=TARGET_OVERHEAD,
            ),
            Measure(
                "our backend, processor time per prompt",
                "ms",
                [took.processor * 1000 / prompts for took in ours],
                [took.processor * 1000 / prompts for took in bare],
                "model.generate",
            ),
            Measure(
                "gain by sorting mixed lengths, in processor time",
                "times",
                [a.processor / s.processor for a, s in zip(arrived, sorted_, strict=True)],
                least=TARGET_SORTED,
            ),
            Measure(
                "mixed lengths, processor time per prompt",
                "ms",
                [took.processor * 1000 / mixed for took in sorted_],
                [took.processor * 1000 / mixed for took in arrived],
                "as they come",
            ),
        ],
        [
            Fact("texts that differ from model.generate's on the same batches", wrong, 0),
            # In another batch a sum is rounded differently, and two words may all but tie.
            Fact(
                "at least 99 % of the mixed texts are the same in both orders", share >= 0.99, True
            ),
        ],
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
