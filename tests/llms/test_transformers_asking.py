"""Requests to a local model beyond a prompt: tools, JSON, log-probabilities, its template, a short window."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from asking import ask_tiny as ask
from asking import reply_of as one

from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    RalleError,
    UsageError,
)
from rallebench.core.types import Evidence, Generate, Message, Passage, Reply, ToolCall, ToolSpec
from rallebench.llms import LLMS

SEARCH = ToolSpec(
    "search", "the river", {"type": "object", "properties": {"query": {"type": "string"}}}
)
CALL = '{"name": "search", "arguments": {"query": "Ada"}}'
QUESTIONS = (
    "who won ?",
    "when was Ada Byron lost in Paris ?",
    "the river of the old city was blue",
    "a",
)
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
AS_PERSON = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}

# ── log-probabilities ────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["llama", "t5", "no pad, ends"])
@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.0, "seed": 3}], ids=["greedy", "sampled"]
)
def test_logprobs_are_the_same_alone_batched_streamed(tiny: Any, which: str, settings: Any) -> None:
    requests = [ask(text, options={"logprobs": True}, **settings) for text in QUESTIONS]
    batch = tiny(which).generate(requests)
    for request, reply in zip(requests, batch, strict=True):
        assert len(reply.logprobs) == reply.completion_tokens > 0
        assert all(value <= 0 for value in reply.logprobs)
        assert one(tiny(which), request).logprobs == pytest.approx(reply.logprobs, abs=1e-4)
    *_, last = tiny(which).stream(requests[0])
    assert last.logprobs == pytest.approx(batch[0].logprobs, abs=1e-4)


def test_logprobs_are_those_of_the_bare_model_whatever_the_temperature(tiny: Any) -> None:
    import torch

    llm = tiny()
    for settings in ({}, {"temperature": 0.5, "seed": 1}):
        options = {"logprobs": True, "repetition_penalty": 1.3, "top_k": 5}
        reply = one(llm, ask(QUESTIONS[0], options=options, **settings))
        prompt, written = (llm._tokenizer(text)["input_ids"] for text in (QUESTIONS[0], reply.text))
        ids = torch.tensor([prompt + written[1:]])  # without a second <s>
        with torch.no_grad():
            scores = torch.log_softmax(
                llm._model(ids).logits[0, len(prompt) - 1 : -1].float(), dim=-1
            )
        bare = scores.gather(1, ids[0, len(prompt) :, None])[:, 0].tolist()
        assert reply.logprobs == pytest.approx(bare, abs=1e-4)


def test_logprobs_are_given_only_to_who_asks(tiny: Any) -> None:
    asked, other = tiny().generate([ask("who ?", options={"logprobs": True}), ask("who ?")])
    assert asked.logprobs and not other.logprobs
    assert asked.text == other.text
    assert one(tiny(logprobs=True), ask("who ?")).logprobs == pytest.approx(
        asked.logprobs, abs=1e-4
    )


# ── choice of words ──────────────────────────────────────────────────────────


def test_a_repetition_penalty_does_not_depend_on_the_padding_of_a_batch(tiny: Any) -> None:
    llm = tiny("no pad, ends")  # its padding is its end of text, which a penalty would make rarer
    requests = [ask(text, max_tokens=40, options={"repetition_penalty": 3.0}) for text in QUESTIONS]
    assert [reply.text for reply in llm.generate(requests)] == [one(llm, r).text for r in requests]


# ── tools ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("which", "text", "calls"),
    [
        ("calls", "Let me see.", (ToolCall("call_0", "search", '{"query": "Ada"}'),)),
        ("plain call", "", (ToolCall("call_0", "search", '{"query": "Ada"}'),)),
        ("no call", "<tool_call> search(Ada) </tool_call>", ()),
    ],
)
def test_calls_are_read_from_what_the_model_writes_and_a_stream_never_shows_them(
    tiny: Any, which: str, text: str, calls: tuple[ToolCall, ...]
) -> None:
    request = ask("who ?", tools=(SEARCH,))
    reply = one(tiny(which), request)
    assert (reply.text, reply.tool_calls) == (text, calls)
    assert reply.finish_reason == ("tool_calls" if calls else "stop")
    *pieces, last = tiny(which).stream(request)
    assert "".join(pieces) == last.text == text
    assert last.tool_calls == calls


def test_without_tools_a_call_is_text(tiny: Any) -> None:
    reply = one(tiny("plain call"), ask("who ?"))
    assert (reply.text, reply.tool_calls) == (CALL, ())


def test_tools_stand_in_the_prompt_and_a_tools_answer_keeps_its_role(tiny: Any) -> None:
    llm = tiny("tools")
    bare, told = llm.generate([ask("who ?"), ask("who ?", tools=(SEARCH,))])
    assert told.prompt_tokens > bare.prompt_tokens + 10
    prompter = llm._prompter
    answered = Generate("tiny", (Message("user", "who ?"), Message("tool", "Ada")), tools=(SEARCH,))
    assert "tool : Ada ;" in prompter._in_template(answered.messages, (SEARCH,), {})
    assert "user : Ada ;" in prompter._in_template(answered.messages, (), {})
    call = ToolCall("call_0", "search", '{"query": "king"}')
    turns = (
        Message("user", "who ?"),
        Message("assistant", "", (call,)),
        Message("tool", "Ada", (), "call_0"),
    )
    assert "assistant :  search king ; tool : Ada ;" in prompter._in_template(turns, (), {})


@pytest.mark.parametrize("which", ["llama", "deaf", "t5"])
def test_tools_that_the_template_would_not_show_are_refused(tiny: Any, which: str) -> None:
    refused, answered = tiny(which).generate([ask("who ?", tools=(SEARCH,)), ask("who ?")])
    assert isinstance(refused, UsageError) and "no chat template with a place for them" in str(
        refused
    )
    assert isinstance(answered, Reply)


def test_a_template_takes_tools_if_a_prompt_with_one_differs_from_without(tiny: Any) -> None:
    assert tiny("names").calls_tools  # only the name of a tool is written
    assert not tiny("refuses").calls_tools and not tiny("deaf").calls_tools


# ── JSON ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("which", "faulty"), [("person", False), ("nobody", True)])
def test_an_answer_is_checked_against_its_schema_and_the_note_says_what_was_done(
    tiny: Any, which: str, faulty: bool
) -> None:
    request = ask("who ?", options={"response_format": AS_PERSON})
    reply = one(tiny(which), request)
    assert reply.note.startswith("The JSON schema was added to the prompt.")
    assert ("does not fit the schema: at $.name: 3 is not of type 'string'" in reply.note) == faulty
    assert ("around its JSON was left out" in reply.note) == (not faulty)
    assert reply.text == ('{"name": 3 }' if faulty else '{"name": "Ada"}')
    assert reply.prompt_tokens > one(tiny(which), ask("who ?")).prompt_tokens
    *pieces, last = tiny(which).stream(request)
    assert "".join(pieces) == last.text == reply.text and last.note == reply.note
    assert one(tiny(which, response_format=AS_PERSON), ask("who ?")).note == reply.note
    assert one(tiny(which), ask("who ?", options={"response_format": {"type": "text"}})).note == ""


def test_a_text_that_is_no_json_is_said_not_hidden(tiny: Any) -> None:
    reply = one(tiny("llama"), ask("who ?", options={"response_format": {"type": "json_object"}}))
    assert "the answer holds no JSON" in reply.note and reply.text


# ── the chat template ────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["no system", "deaf"])
def test_a_system_text_without_a_place_goes_before_the_question(tiny: Any, which: str) -> None:
    asked = Generate(
        "tiny", (Message("system", "stop lost"), Message("user", "who ?")), max_tokens=12
    )
    as_one = one(tiny(which), ask("stop lost\n\nwho ?"))
    for llm, request in ((tiny(which), asked), (tiny(which, system="stop lost"), ask("who ?"))):
        reply = one(llm, request)
        assert (reply.text, reply.prompt_tokens) == (as_one.text, as_one.prompt_tokens)


def test_arguments_for_the_template_change_the_prompt_of_one_request_or_of_all(tiny: Any) -> None:
    quick = {"chat_template_kwargs": {"enable_thinking": False}}
    plain = one(tiny("tools"), ask("who ?")).prompt_tokens
    assert one(tiny("tools"), ask("who ?", options=quick)).prompt_tokens == plain + 1
    assert one(tiny("tools", **quick), ask("who ?")).prompt_tokens == plain + 1
    slow = {"chat_template_kwargs": {"enable_thinking": True}}
    assert one(tiny("tools", **quick), ask("who ?", options=slow)).prompt_tokens == plain


# ── longer than the window ───────────────────────────────────────────────────

WORDS = "the old city of the blue river was founded by a king"
PASSAGES = tuple(
    Passage(f"p{n}", f"{word} {WORDS}", "City")
    for n, word in enumerate(("one", "two", "six", "ten"))
)
LONG = "passage : " + " ; ".join(p.text for p in PASSAGES) + " . question : who won ?"


def with_evidence(
    text: str = LONG, passages: tuple[Passage, ...] = PASSAGES, **more: Any
) -> Generate:
    return ask(text, evidence=Evidence("who won ?", passages), **more)


def test_by_default_a_long_prompt_is_refused(tiny: Any) -> None:
    (refused,) = tiny(context_window=50).generate([with_evidence()])
    assert isinstance(refused, BackendError) and "nothing was cut" in str(refused)


def test_with_the_rule_cut_last_passages_are_left_out_and_the_note_says_so(tiny: Any) -> None:
    llm = tiny(context_window=64, context_rule="cut")
    cut, short = llm.generate([with_evidence(), ask("who ?")])
    assert cut.note == "1 of 4 passages was left out of the prompt: p3 (City)."
    shown = LONG.replace(f" ; {PASSAGES[3].text}", "")
    assert (cut.text, cut.prompt_tokens) == (
        (same := one(llm, ask(shown))).text,
        same.prompt_tokens,
    )
    assert cut.prompt_tokens <= 64 - 12 and cut.completion_tokens == 12
    assert short.note == ""
    *_, last = llm.stream(with_evidence())
    assert (last.text, last.note) == (cut.text, cut.note)


def test_a_lone_passage_is_cut_at_its_end(tiny: Any) -> None:
    reply = one(tiny(context_window=20, context_rule="cut"), with_evidence(max_tokens=4))
    assert (
        "3 of 4 passages were left out" in reply.note
        and "of p0 (City) only the first" in reply.note
    )
    assert reply.completion_tokens == 4


@pytest.mark.parametrize("passages", [(), PASSAGES])
def test_what_cannot_be_cut_is_refused_by_it(tiny: Any, passages: tuple[Passage, ...]) -> None:
    llm = tiny(context_window=20, context_rule="cut")
    text = "the river " * 40 + (PASSAGES[0].text if passages else "")
    refused, answered = llm.generate([with_evidence(text, passages), ask("who ?")])
    assert isinstance(refused, BackendError) and "no more of its passages can be left out" in str(
        refused
    )
    assert isinstance(answered, Reply)


def test_prompts_near_the_window_share_batches(tiny: Any) -> None:
    llm = tiny()
    requests = [
        ask("the " * length, max_tokens=100) for length in range(63, 93)
    ]  # leave 64 to 35 of 128
    rooms = [llm._prepare(request).decoding.max_tokens for request in requests]
    assert rooms == [64] + [48] * 16 + [32] * 13
    replies = llm.generate([requests[1], requests[16]])
    assert [reply.completion_tokens for reply in replies] == [48, 48]
    assert "left room for only 48 tokens" in replies[0].note


def test_an_encoder_is_cut_to_its_whole_window(tiny: Any) -> None:
    reply = one(tiny("t5", context_window=58, context_rule="cut"), with_evidence())
    assert reply.note.startswith("1 of 4 passages") and 45 < reply.prompt_tokens <= 58


# ── bad input ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["\x00\x07\x1b[2J\u202e\ufeff who ?", "who \U0001f600 ?", "\x00"])
def test_control_characters_are_words_like_any_other(tiny: Any, text: str) -> None:
    assert one(tiny("tools"), ask(text)).completion_tokens == 12


@pytest.mark.parametrize("rule", ["refuse", "cut"])
def test_200000_characters_are_refused_or_cut_in_their_place(tiny: Any, rule: str) -> None:
    huge = Passage("huge", "the river " * 20_000)
    request = with_evidence(f"{huge.text} . who won ?", (huge,))
    answer, short = tiny(context_rule=rule).generate([request, ask("who ?")])
    assert isinstance(short, Reply)
    if rule == "refuse":
        assert isinstance(answer, BackendError) and "has 40005 tokens" in str(answer)
    else:
        assert "only the first" in answer.note and "of 200000 characters" in answer.note


def test_a_tokenizer_with_more_words_than_the_model_is_refused(folder: Any, tmp_path: Path) -> None:
    wrong = shutil.copytree(folder("llama"), tmp_path / "wrong")
    tiny_models.save_tokenizer(wrong, more=["many", "more"])
    with pytest.raises(
        BadFileError, match=r"tokenizer in .* has \d+ tokens, but the model knows only \d+"
    ):
        LLMS["transformers"]("tiny", model=str(wrong), device_map="cpu")


def test_an_unknown_padding_token_does_no_harm(folder: Any, tiny: Any, tmp_path: Path) -> None:
    odd = shutil.copytree(folder("llama"), tmp_path / "odd")
    config = json.loads((odd / "tokenizer_config.json").read_text())
    (odd / "tokenizer_config.json").write_text(json.dumps(config | {"pad_token": "[EXTRA]"}))
    llm = LLMS["transformers"]("tiny", model=str(odd), device_map="cpu")
    assert llm._tokenizer.pad_token_id >= llm._model.config.vocab_size
    requests = [ask(text) for text in QUESTIONS]
    assert [r.text for r in llm.generate(requests)] == [r.text for r in tiny().generate(requests)]
    (refused,) = llm.generate([ask("who [EXTRA] ?")])
    assert isinstance(refused, BackendError) and "the model knows only" in str(refused)


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"device_map": "cuda:99"}, UsageError, "device_map names 'cuda:99', but"),
        ({"device_map": {"": 99}}, UsageError, "device_map names 99, but"),
        (
            {"attn_implementation": "flash_attention_2"},
            UsageError,
            "needs a CUDA device; set it to auto",
        ),
        (
            {"model": "bloom", "attn_implementation": "sdpa"},
            UsageError,
            "set it to auto .BloomForCausalLM does not",
        ),
        pytest.param(
            {"quantization": "4bit", "device_map": "auto", "max_memory": {"cpu": 1000}},
            BackendMemoryError,
            "does not fit into memory",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_this_machine_or_model_cannot_do_is_one_sentence(
    folder: Any, settings: dict[str, Any], kind: type[RalleError], words: str
) -> None:
    model = str(folder(settings.pop("model", "llama")))
    with pytest.raises(kind, match=words) as raised:
        LLMS["transformers"]("tiny", **{"model": model, "device_map": "cpu", **settings})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"attn_implementation": "eager"},
        {"attn_implementation": "sdpa"},
        {"device_map": "auto", "max_memory": {"cpu": "8GB"}},
        {"device_map": "auto", "max_memory": {"cpu": 1000}},
    ],
)
def test_attention_and_device_map_change_no_text(tiny: Any, settings: dict[str, Any]) -> None:
    requests = [ask(text) for text in QUESTIONS]
    llm = tiny(**settings)
    assert [r.text for r in llm.generate(requests)] == [r.text for r in tiny().generate(requests)]
    if "attn_implementation" in settings:
        assert llm._model.config._attn_implementation == settings["attn_implementation"]
        assert llm.fingerprint != tiny().fingerprint
    if settings.get("max_memory") == {"cpu": 1000}:
        assert " on disk, " in llm.about


# ── 4-bit, as requested ──────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_form_of_4_bit_is_what_was_asked_for_and_fingerprinted(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    folder = tiny_models.save_llama(tmp_path / "square", hidden=256, layers=1)
    asked = {
        "bnb_4bit_quant_type": "fp4",
        "bnb_4bit_use_double_quant": False,
        "bnb_4bit_compute_dtype": "bfloat16",
    }
    llm = LLMS["transformers"](
        "tiny", model=str(folder), device_map="cpu", quantization="4bit", **asked
    )
    form = llm._model.config.quantization_config
    assert {name: str(getattr(form, name)).removeprefix("torch.") for name in asked} == {
        name: str(value) for name, value in asked.items()
    }
    weight = llm._model.model.layers[0].mlp.up_proj.weight
    assert (weight.quant_state.quant_type, weight.quant_state.nested) == ("fp4", False)
    assert "/4bit fp4 single computed in bfloat16/" in llm.fingerprint
    assert one(llm, ask("who ?", max_tokens=3)).completion_tokens == 3
    llm.close()
