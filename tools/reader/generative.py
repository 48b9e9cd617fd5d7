"""Train a low-rank adapter that lets a small chat model answer from passages, or decline.

Three steps, so that the long one can run on another machine: ``examples`` writes questions with passages from the same
clean paragraphs as the embedded reader's training; ``train`` learns an adapter from them (LoRA, Hu et al. 2021,
arXiv:2106.09685); ``read`` answers prompts. ``benchmarks/README.md`` says how good the adapter was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.reader import REFUSAL

PROMPT = (
    "Answer the question from the passages.\n\nQuestion: {question}\n\n{passages}\n\n"
    "Question: {question}\nAnswer:"
)
"""The question stands before and after the passages: the model reads from left to right only."""

SHARES = {"squad_dev": 3.0, "squadshifts_new_wiki": 3.0, "qed_nq": 9.0, "qamr": 0.3}
"""Set → how often its questions are used; each time with other passages."""

UNANSWERABLE, ELSEWHERE, ABSENT = 1.0, 0.25, 0.2
"""The shares of unanswerable questions, of questions beside a foreign paragraph alone, and of prompts with several
passages that lack the question's own."""

SIZES = {1: 0.5, 3: 0.15, 5: 0.35}
"""Passages in a prompt → weight."""

RANK, ALPHA, RATE, WARM_UP, CLIP = 16, 32, 2e-3, 60, 1.0
LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
TOKENS = 32768
"""Tokens in a batch of training, with padding."""

MOST_TOKENS, NEW_TOKENS = 1800, 32
"""Tokens of a prompt in training, and of an answer."""


# ── examples ─────────────────────────────────────────────────────────────────


def write_examples(data: Path, exclude: Sequence[Path], out: Path, seed: int) -> None:
    """Write paragraphs and examples (question, numbers of paragraphs, answer or None), shuffled."""
    from transformers import AutoTokenizer

    from rallebench.encoders.minilm import model_folder
    from tools.reader.examples import Paragraphs
    from tools.reader.train import contexts_of

    parts, _ = contexts_of(data, exclude)
    tokenizer = AutoTokenizer.from_pretrained(str(model_folder()), local_files_only=True)
    paragraphs = Paragraphs(parts["train"], tokenizer)
    rng = random.Random(seed)
    questions = [
        (number, question)
        for number, context in enumerate(paragraphs.contexts)
        for question in context.questions
    ]
    alike = paragraphs.alike([question.text for _, question in questions])
    rows = [
        row
        for (number, question), near in zip(questions, alike)
        for row in _prompts_of(paragraphs, number, question, [int(n) for n in near], rng)
    ]
    rng.shuffle(rows)
    used = sorted({n for _, numbers, _ in rows for n in numbers})
    places = {number: place for place, number in enumerate(used)}
    document = {
        "paragraphs": [paragraphs.contexts[n].text.strip() for n in used],
        "examples": [[q, [places[n] for n in numbers], answer] for q, numbers, answer in rows],
    }
    with gzip.open(out, "wt", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False)
    print(f"{len(rows)} examples, {sum(a is None for *_, a in rows)} without an answer")


def _prompts_of(
    paragraphs: Any, number: int, question: Any, near: Sequence[int], rng: random.Random
) -> Iterator[tuple[str, list[int], str | None]]:
    source = paragraphs.contexts[number].source
    answers = [text for text, _ in question.answers]
    for _ in range(_times(SHARES[source] if answers else UNANSWERABLE, rng)):
        size = 1 if source == "qamr" else rng.choices(list(SIZES), list(SIZES.values()))[0]
        absent = bool(answers) and size > 1 and rng.random() < ABSENT
        others = _others(paragraphs, number, answers, near, rng)
        numbers = ([] if absent else [number]) + others[: size - (not absent)]
        rng.shuffle(numbers)
        if numbers:
            yield question.text, numbers, None if absent or not answers else answers[0]
    if answers and source != "qamr":
        for _ in range(_times(ELSEWHERE, rng)):
            if others := _others(paragraphs, number, answers, near, rng)[:1]:
                yield question.text, others, None


def _others(
    paragraphs: Any, number: int, answers: Sequence[str], near: Sequence[int], rng: random.Random
) -> list[int]:
    """Paragraphs that resemble the question and hold none of its answers, in random order."""
    low = [answer.lower() for answer in answers]
    pool = [
        n
        for n in near
        if n != number
        and paragraphs.contexts[n].source != "qamr"
        and not any(answer in paragraphs.bare[n] for answer in low)
    ]
    rng.shuffle(pool)
    return pool


def _times(share: float, rng: random.Random) -> int:
    return int(share) + (rng.random() < share % 1)


# ── model ────────────────────────────────────────────────────────────────────


def load(gguf: Path, device: str, dtype: str) -> tuple[Any, Any]:
    """(model, tokenizer) of a GGUF file, dequantised."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=getattr(torch, dtype),
    )
    return model.to(device), tokenizer


def prompt_text(tokenizer: Any, question: str, passages: Sequence[str]) -> str:
    """Return the model's prompt in its chat template; a question without a mark gets none."""
    content = PROMPT.format(question=question, passages="\n\n".join(passages))
    messages = [{"role": "user", "content": content}]
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text


# ── training ─────────────────────────────────────────────────────────────────


def batches_of(
    tokenizer: Any, document: Mapping[str, Any], seed: int, limit: int, size: int
) -> list[list[tuple[list[int], int]]]:
    """Batches of (tokens, where the answer begins), of like lengths, shuffled; at most ``limit`` examples
    and, with padding, ``size`` tokens a batch."""
    rng = random.Random(seed)
    paragraphs = document["paragraphs"]
    rows = document["examples"][: limit or None]
    prompts = [
        # A tenth of the questions lose their mark, as search questions have none.
        prompt_text(
            tokenizer,
            q.rstrip("? ") if rng.random() < 0.1 else q,
            [paragraphs[n] for n in numbers],
        )
        for q, numbers, _ in rows
    ]
    answers = [(REFUSAL if answer is None else answer) + "<|im_end|>" for *_, answer in rows]
    prompt_ids = tokenizer(prompts, add_special_tokens=False)["input_ids"]
    answer_ids = tokenizer(answers, add_special_tokens=False)["input_ids"]
    sequences = [(a + b, len(a)) for a, b in zip(prompt_ids, answer_ids) if len(a) <= MOST_TOKENS]
    batches = []
    for start in range(0, len(sequences), 2048):
        pool = sorted(sequences[start : start + 2048], key=lambda s: len(s[0]))
        batch: list[tuple[list[int], int]] = []
        for sequence in pool:
            if batch and (len(batch) + 1) * len(sequence[0]) > size:
                batches.append(batch)
                batch = []
            batch.append(sequence)
        batches.append(batch)
    rng.shuffle(batches)
    return batches


def loss_of(model: Any, batch: Sequence[tuple[list[int], int]], device: str) -> Any:
    """The mean over examples of −log P(answer); the padding stands on the right, where no token looks."""
    import torch

    width = max(len(ids) for ids, _ in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    of_answer = torch.zeros((len(batch), width), dtype=torch.bool)
    for row, (tokens, start) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        of_answer[row, start - 1 : len(tokens) - 1] = True
    ids, of_answer = ids.to(device), of_answer.to(device)
    hidden = model.model(input_ids=ids).last_hidden_state[of_answer]
    targets = ids.roll(-1, 1)[of_answer]
    scores = model.lm_head(hidden).float()
    return torch.nn.functional.cross_entropy(scores, targets, reduction="sum") / len(batch)


def train(flags: argparse.Namespace) -> None:
    """Learn an adapter; write it in bfloat16."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(flags.seed)
    torch.set_float32_matmul_precision("high")
    with gzip.open(flags.examples, "rt", encoding="utf-8") as file:
        document = json.load(file)
    model, tokenizer = load(flags.model, flags.device, "bfloat16")
    batches = batches_of(tokenizer, document, flags.seed, flags.limit, flags.tokens)
    steps = min(flags.steps or len(batches), len(batches))
    config = LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=list(LAYERS), task_type="CAUSAL_LM"
    )
    adapted = get_peft_model(model, config)
    weights = [p for p in adapted.parameters() if p.requires_grad]
    fused = flags.device != "cpu"
    optimizer = torch.optim.AdamW(
        weights, lr=flags.rate, weight_decay=0.0, betas=(0.9, 0.98), fused=fused
    )
    print(f"{len(batches)} batches, {sum(p.numel() for p in weights):,} weights", flush=True)
    token_count, total, started = 0, torch.zeros((), device=flags.device), time.monotonic()
    for step, batch in enumerate(batches[:steps], 1):
        for group in optimizer.param_groups:
            group["lr"] = flags.rate * min(step / WARM_UP, 1.0, (steps - step + 1) / (0.9 * steps))
        with torch.autocast(flags.device, torch.bfloat16):
            loss = loss_of(adapted.get_base_model(), batch, flags.device)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, CLIP)
        optimizer.step()
        total += loss.detach()
        token_count += sum(len(ids) for ids, _ in batch)
        if step % flags.every == 0 or step == steps:
            mean, total = float(total) / ((step - 1) % flags.every + 1), torch.zeros_like(total)
            speed = token_count / (time.monotonic() - started)
            print(
                f"{step}/{steps}: loss {mean:.3f}, {token_count:,} tokens, {speed:.0f} a second",
                flush=True,
            )
    for values in weights:
        values.data = values.data.to(torch.bfloat16)
    adapted.save_pretrained(flags.out)


# ── reading ──────────────────────────────────────────────────────────────────


def read(flags: argparse.Namespace) -> None:
    """Answer prompts (question, passages): as the model writes, and where it declines the best answer besides."""
    import torch
    from peft import PeftModel

    torch.set_float32_matmul_precision("high")
    with gzip.open(flags.prompts, "rt", encoding="utf-8") as file:
        rows = json.load(file)[: flags.limit or None]
    model, tokenizer = load(flags.model, flags.device, "float32")
    if flags.adapter:
        model = PeftModel.from_pretrained(model, str(flags.adapter)).merge_and_unload()
    model.eval()
    tokens = tokenizer(
        [prompt_text(tokenizer, row["question"], row["passages"]) for row in rows],
        add_special_tokens=False,
    )["input_ids"]
    declines = tokenizer(REFUSAL, add_special_tokens=False)["input_ids"][0]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    started = time.monotonic()
    answers: list[dict[str, Any]] = [{} for _ in rows]
    order = sorted(range(len(rows)), key=lambda i: -len(tokens[i]))
    for start in range(0, len(order), flags.batch):
        part = order[start : start + flags.batch]
        written = answers_of(model, tokenizer, [tokens[i] for i in part], end, None)
        for i, (text, sure, chances) in zip(part, written):
            answers[i] = {"text": text, "sure": sure, "declines": float(chances[declines])}
    again = [i for i in order if answers[i]["text"] == REFUSAL]
    for start in range(0, len(again), flags.batch):
        part = again[start : start + flags.batch]
        written = answers_of(model, tokenizer, [tokens[i] for i in part], end, declines)
        for i, (text, sure, _) in zip(part, written):
            answers[i].update(forced=text, sure=sure)
    took = time.monotonic() - started
    print(f"{len(rows)} prompts in {took:.1f} s, {len(again)} declined", flush=True)
    with gzip.open(flags.out, "wt", encoding="utf-8") as file:
        json.dump(answers, file, ensure_ascii=False)


def answers_of(
    model: Any, tokenizer: Any, rows: Sequence[list[int]], end: int, never_first: int | None
) -> Iterator[tuple[str, float, Any]]:
    """(text, log P(text), chances of the first token) of each prompt, greedy. ``never_first``: a token that may not
    begin an answer."""
    import torch

    width = max(map(len, rows))
    ids = torch.full((len(rows), width), end)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(rows):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    rules = {"begin_suppress_tokens": [never_first]} if never_first is not None else {}
    with torch.inference_mode():
        output = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=end,
            output_logits=True,
            return_dict_in_generate=True,
            **rules,
        )
    written = output.sequences[:, width:]
    chances = torch.stack(output.logits, 1).float().log_softmax(-1)
    taken = chances.gather(-1, written.unsqueeze(-1)).squeeze(-1)
    first = chances[:, 0].exp().cpu()
    for row, sequence in enumerate(written.tolist()):
        length = sequence.index(end) + 1 if end in sequence else len(sequence)
        text = tokenizer.decode(sequence[: length - (end in sequence)]).strip()
        yield text, float(taken[row, :length].sum()), first[row]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    examples = steps.add_parser("examples", help="write what an adapter learns from")
    examples.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    examples.add_argument("--exclude", type=Path, nargs="*", default=[], metavar="CORPUS.tsv")
    training = steps.add_parser("train", help="learn an adapter")
    training.add_argument("--examples", type=Path, required=True, metavar="FILE")
    training.add_argument(
        "--steps", type=int, default=0, metavar="N", help="default: each example once"
    )
    training.add_argument("--tokens", type=int, default=TOKENS, metavar="N", help="of a batch")
    training.add_argument("--rate", type=float, default=RATE)
    training.add_argument("--every", type=int, default=100, metavar="N", help="steps between lines")
    reading = steps.add_parser("read", help="answer prompts")
    reading.add_argument("--prompts", type=Path, required=True, metavar="FILE")
    reading.add_argument("--adapter", type=Path, metavar="FOLDER", help="default: the model alone")
    reading.add_argument("--batch", type=int, default=128, metavar="N")
    for step in (examples, training, reading):
        step.add_argument("--out", type=Path, required=True)
        step.add_argument("--seed", type=int, default=1)
    for step in (training, reading):
        step.add_argument("--model", type=Path, required=True, metavar="FILE.gguf")
        step.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
        step.add_argument("--limit", type=int, default=0, metavar="N", help="only the first N")
    flags = parser.parse_args(arguments)
    if flags.step == "examples":
        write_examples(flags.data, flags.exclude, flags.out, flags.seed)
    else:
        {"train": train, "read": read}[flags.step](flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())
