"""Forced choice in process: log-probabilities of options, against a bare forward pass over prompt and option."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.choices import IN_PROCESS, TEXT
from rallebench.core.choosing import choose
from rallebench.core.errors import BackendError
from rallebench.core.types import Message, Reply
from rallebench.llms import LLMS

Folder = Callable[[str], Path]
PROMPTS = (
    "who won ?",
    "the river of the old city was blue , and the king founded a new city . who founded it ?",
    "was Ada Byron lost in Paris ?",
)
OPTIONS = {
    "one token each": ("Paris", "Danube", "France"),
    "several tokens": ("Ada Byron", "the old king", "Paris"),
    "a shared first token": ("the king", "the queen", "the old river"),
}


def ask(text: str, options: Sequence[str]) -> Any:
    return choose("tiny", (Message("user", text),), options)


def make_choices(llm: Any, *requests: Any) -> list[Any]:
    replies = llm.choose(requests)
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [reply.choice for reply in replies]


def bare_logprobs(folder: Path, prompt: str, options: Sequence[str]) -> list[float]:
    """The sum of log-probabilities of each option's tokens, from one pass over prompt and option together."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    before = tokenizer(prompt)["input_ids"]
    sums = []
    for option in options:
        after = tokenizer(option, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[*before, *after]])).logits[0].double()
        table = torch.log_softmax(logits, dim=-1)
        sums.append(sum(float(table[len(before) - 1 + n, t]) for n, t in enumerate(after)))
    return sums


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("which", ["llama", "gpt2", "bloom"])
def test_probabilities_are_those_of_a_bare_forward_pass(
    tiny: Any, folder: Folder, which: str, options: tuple[str, ...]
) -> None:
    choices = make_choices(tiny(which), *(ask(prompt, options) for prompt in PROMPTS))
    for prompt, choice in zip(PROMPTS, choices):
        weights = [math.exp(value) for value in bare_logprobs(folder(which), prompt, options)]
        assert choice.source == IN_PROCESS
        assert choice.covered == pytest.approx(sum(weights), rel=1e-4)
        assert choice.probabilities == pytest.approx(
            [weight / sum(weights) for weight in weights], rel=1e-4
        )
        assert choice.chosen == options[weights.index(max(weights))]


def test_an_encoder_decoder_model_reads_the_options_by_its_decoder(
    tiny: Any, folder: Folder
) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder("t5"))
    model = AutoModelForSeq2SeqLM.from_pretrained(folder("t5"))
    options = ("Ada Byron", "the old king")
    start = model.config.decoder_start_token_id
    for prompt, choice in zip(
        PROMPTS, make_choices(tiny("t5"), *(ask(p, options) for p in PROMPTS))
    ):
        sums = []
        for option in options:
            tokens = tokenizer(option, add_special_tokens=False)["input_ids"]
            with torch.no_grad():
                logits = model(
                    **tokenizer(prompt, return_tensors="pt"),
                    decoder_input_ids=torch.tensor([[start, *tokens[:-1]]]),
                ).logits[0]
            table = torch.log_softmax(logits, dim=-1)
            sums.append(sum(float(table[n, token]) for n, token in enumerate(tokens)))
        weights = [math.exp(value) for value in sums]
        assert choice.probabilities == pytest.approx(
            [weight / sum(weights) for weight in weights], rel=1e-4
        )


def test_an_option_that_another_one_continues_counts_with_the_end_of_the_text(
    tiny: Any, folder: Folder
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder("llama"))
    model = AutoModelForCausalLM.from_pretrained(folder("llama"))
    (choice,) = make_choices(tiny(), ask(PROMPTS[0], ("the", "the king")))
    before = tokenizer(PROMPTS[0])["input_ids"]
    the, king = tokenizer("the king", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        table = torch.log_softmax(model(torch.tensor([[*before, the, king]])).logits[0], dim=-1)
    first, last = table[len(before) - 1, the], table[len(before)]
    weights = [math.exp(first + last[tokenizer.eos_token_id]), math.exp(first + last[king])]
    assert choice.probabilities == pytest.approx([w / sum(weights) for w in weights], rel=1e-4)


def test_a_cache_that_cannot_be_continued_gives_the_same(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = tiny()
    requests = [ask(prompt, OPTIONS["several tokens"]) for prompt in PROMPTS]
    shared = make_choices(llm, *requests)
    monkeypatch.setattr("rallebench.llms._transformers.choosing._row_cache", lambda *_: None)
    for one, other in zip(shared, make_choices(llm, *requests)):
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4)


def test_a_batch_gives_what_each_request_gives_alone_in_that_order(tiny: Any) -> None:
    llm = tiny("chat")
    requests = [ask(prompt, options) for prompt in PROMPTS for options in OPTIONS.values()]
    alone = [make_choices(llm, request)[0] for request in requests]
    for one, other in zip(alone, make_choices(llm, *requests)):
        assert one.options == other.options
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4)


def test_the_prompt_is_read_once_whatever_the_number_of_options(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm, widths = tiny(), []
    forward = llm._model.forward

    def record_width(*args: Any, **kwargs: Any) -> Any:
        widths.append(kwargs["input_ids"].shape[1])
        return forward(*args, **kwargs)

    monkeypatch.setattr(llm._model, "forward", record_width)
    make_choices(llm, ask(PROMPTS[1], OPTIONS["one token each"]))
    assert len(widths) == 1
    widths.clear()
    make_choices(llm, ask(PROMPTS[1], OPTIONS["several tokens"]))
    assert len(widths) == 2 and widths[1] == 2, "three tokens, the last of which is only predicted"


def test_a_reply_counts_its_tokens_and_has_the_option_as_its_text(tiny: Any) -> None:
    (reply,) = tiny().choose([ask(PROMPTS[0], ("Ada Byron", "the old king"))])
    assert reply.text == reply.choice.chosen
    assert reply.prompt_tokens == tiny().count_tokens(ask(PROMPTS[0], ("a", "b")).as_generation())
    assert reply.completion_tokens == len(reply.text.split())
    assert reply.confidence == max(reply.choice.probabilities)


def test_options_that_the_model_cannot_tell_apart_are_an_error_of_their_request_only(
    tiny: Any,
) -> None:
    unknown, good = tiny().choose(
        [ask(PROMPTS[0], ("zebra", "yak")), ask(PROMPTS[0], ("Paris", "France"))]
    )
    assert isinstance(unknown, BackendError) and isinstance(good, Reply)
    assert str(unknown) == (
        "For 'tiny' the options 'zebra' and 'yak' have the same tokens, so neither can be chosen; use other words for them."
    )


def test_a_prompt_that_begins_thoughts_is_answered_by_a_text_and_says_so(tiny: Any) -> None:
    (reply,) = tiny("thinks from the prompt on").choose([ask("Where ?", ("Rome", "Milan"))])
    assert (reply.choice.chosen, reply.choice.source) == ("Rome", TEXT)
    assert reply.choice.why == "'tiny' thinks before it answers, so its text was read."


def test_options_beyond_the_window_are_an_error_that_names_the_room(tiny: Any) -> None:
    (error,) = tiny("gpt2").choose([ask("a " * 46, ("the old king", "the new old queen"))])
    assert "leaves room for 1" in str(error) and "shorten the prompt" in str(error)


def test_scores_that_are_not_numbers_are_an_error(tmp_path: Path) -> None:
    import tiny_models
    import torch
    from transformers import AutoModelForCausalLM

    tiny_models.save_llama(tmp_path / "broken")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "broken")
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    model.save_pretrained(tmp_path / "broken")
    llm: Any = LLMS["transformers"]("tiny", model=str(tmp_path / "broken"), device_map="cpu")
    (error,) = llm.choose([ask("who ?", ("Paris", "France"))])
    assert "computed scores that are not numbers" in str(error)
    llm.close()
