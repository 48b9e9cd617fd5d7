"""The transformers backend, tested with models made here: batches, stops, streams, seeds, memory."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from asking import ask_tiny as ask
from asking import reply_of as one
from project import PROJECT

from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    Hint,
    MissingPackageError,
    NotFoundError,
    RalleError,
    UsageError,
)
from rallebench.core.memory import Memory
from rallebench.core.types import Generate, Message, Reply
from rallebench.llms import LLMS

QUESTIONS = (
    "who won ?",
    "the river of the old city was blue , and the king founded a new city by the river . who founded it ?",
    "when was Ada Byron lost in Paris ?",
    "a",
)


NO_SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}

Folder = Callable[[str], Path]


def texts(llm: Any, requests: list[Generate]) -> list[str]:
    return [reply.text for reply in llm.generate(requests)]


# ── decoding ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["llama", "chat", "no pad", "ends", "gpt2", "t5"])
def test_a_batch_gives_what_each_request_gives_alone_in_that_order(tiny: Any, which: str) -> None:
    llm = tiny(which)
    requests = [ask(text) for text in QUESTIONS]
    alone = [one(llm, request).text for request in requests]
    assert texts(llm, requests) == alone
    assert texts(llm, requests[::-1]) == alone[::-1]
    assert len(set(alone)) == len(alone)


def test_greedy_text_equals_what_the_bare_library_gives(tiny: Any, folder: Folder) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder("llama"))
    model = AutoModelForCausalLM.from_pretrained(folder("llama"))
    ids = tokenizer(QUESTIONS[2], return_tensors="pt").input_ids
    bare = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert one(tiny(), ask(QUESTIONS[2])).text == tokenizer.decode(bare)


@pytest.mark.parametrize("which", ["llama", "t5"])
def test_a_reply_is_what_was_written_without_prompt_and_start(tiny: Any, which: str) -> None:
    reply = one(tiny(which), ask(QUESTIONS[1]))
    assert "founded a new city" not in reply.text
    assert len(reply.text.split()) == reply.completion_tokens == 12
    assert (reply.prompt_tokens, reply.finish_reason) == (1 + len(QUESTIONS[1].split()), "length")


def test_an_end_of_text_token_ends_a_reply_and_is_not_shown(tiny: Any) -> None:
    replies = tiny("ends").generate(
        [ask(f"{word} ?", max_tokens=60) for word in tiny_models.WORDS[:20]]
    )
    ended = [reply for reply in replies if reply.finish_reason == "stop"]
    assert ended, "no text of this model ends by itself; take another seed"
    assert all(reply.completion_tokens < 60 and "</s>" not in reply.text for reply in ended)


def test_max_tokens_of_the_request_wins_over_the_setting(tiny: Any) -> None:
    llm = tiny(max_tokens=3)
    assert one(llm, ask("who ?", max_tokens=None)).completion_tokens == 3
    assert one(llm, ask("who ?", max_tokens=5)).completion_tokens == 5


def test_requests_of_different_settings_share_a_call_and_keep_their_places(tiny: Any) -> None:
    llm = tiny()
    requests = [
        ask(QUESTIONS[0], max_tokens=4),
        ask(QUESTIONS[1], temperature=1.0, seed=5),
        ask(QUESTIONS[2], options={"repetition_penalty": 1.5}),
        ask(QUESTIONS[3], max_tokens=4),
    ]
    assert texts(llm, requests) == [one(llm, request).text for request in requests]


def test_a_repetition_penalty_changes_the_text(tiny: Any) -> None:
    plain, penalised = texts(
        tiny("gpt2"), [ask("who ?"), ask("who ?", options={"repetition_penalty": 5.0})]
    )
    assert plain != penalised


def test_a_batch_size_limits_the_rows_asks_for_batches_and_changes_no_text(tiny: Any) -> None:
    requests = [ask(text) for text in QUESTIONS]
    assert texts(tiny(batch_size=2), requests) == texts(tiny(), requests)
    assert (tiny(batch_size=2).preferred_batch, tiny().preferred_batch) == (16, None)


# ── stop strings ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["llama", "t5"])
def test_text_is_cut_before_a_stop_string_and_no_more_is_written(tiny: Any, which: str) -> None:
    llm = tiny(which)
    words = one(llm, ask(QUESTIONS[1])).text.split()
    stop = next(
        word for place, word in enumerate(words) if place >= 3 and word not in words[:place]
    )
    reply = one(llm, ask(QUESTIONS[1], stop=(stop,)))
    place = words.index(stop)
    assert reply.text.split() == words[:place]
    assert (reply.finish_reason, reply.completion_tokens) == ("stop", place + 1)


def test_a_stop_string_may_span_several_tokens(tiny: Any) -> None:
    words = one(tiny(), ask(QUESTIONS[1])).text.split()
    reply = one(tiny(), ask(QUESTIONS[1], stop=(" ".join(words[4:7]),)))
    assert reply.text == " ".join(words[:4]) + " "
    assert reply.completion_tokens == 7


@pytest.mark.parametrize("stop", ["Stop", "Danube"])
def test_a_stop_string_in_the_prompt_stops_nothing(tiny: Any, stop: str) -> None:
    assert one(tiny(), ask("Stop Danube", stop=(stop,))).completion_tokens > 1


def test_each_row_of_a_batch_has_its_own_stop_strings(tiny: Any) -> None:
    whole = [one(tiny(), ask(text)).text.split() for text in QUESTIONS[:3]]
    requests = [ask(text, stop=(words[2],)) for text, words in zip(QUESTIONS, whole, strict=False)]
    requests[1] = ask(QUESTIONS[1])
    replies = tiny().generate(requests)
    assert replies[1].text.split() == whole[1]
    for row in (0, 2):
        assert replies[row].text.split() == whole[row][: whole[row].index(whole[row][2])]
        assert replies[row].finish_reason == "stop"


def test_stop_strings_of_the_settings_apply_where_a_request_has_none(tiny: Any) -> None:
    words = one(tiny(), ask("who ?")).text.split()
    assert one(tiny(stop=[words[3]]), ask("who ?")).text.split() == words[: words.index(words[3])]


# ── sampling ─────────────────────────────────────────────────────────────────


def test_a_seed_gives_the_same_text_again_and_another_seed_another_text(tiny: Any) -> None:
    llm = tiny()
    first, again, other = (
        one(llm, ask("who ?", temperature=1.0, seed=seed)).text for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_seeded_text_is_the_same_alone_and_in_a_batch_of_other_seeds(tiny: Any) -> None:
    llm = tiny()
    requests = [ask(text, temperature=0.9, seed=seed) for seed, text in enumerate(QUESTIONS)]
    assert texts(llm, requests) == [one(llm, request).text for request in requests]


def test_sampling_without_a_seed_varies_and_leaves_torchs_own_generator_alone(tiny: Any) -> None:
    import torch

    before = torch.random.get_rng_state()
    drawn = {one(tiny(), ask("who ?", temperature=2.0)).text for _ in range(4)}
    assert len(drawn) > 1
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("options", [{"top_k": 1}, {"min_p": 1.0}], ids=str)
def test_with_one_word_to_choose_from_text_is_greedy_at_any_temperature(
    tiny: Any, options: dict[str, float]
) -> None:
    request = ask("who ?", temperature=2.0, seed=1, options=options)
    assert one(tiny(), request).text == one(tiny(), ask("who ?")).text


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, (0.6, 0.3, 0.0, 0.1)),
        ({"top_p": 0.8}, (2 / 3, 1 / 3, 0.0, 0.0)),
        ({"min_p": 0.4}, (2 / 3, 1 / 3, 0.0, 0.0)),
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_their_probabilities_say(
    rules: dict[str, float], expected: tuple[float, ...]
) -> None:
    import torch

    from rallebench.llms._transformers.decoding import DrawRows

    draw = DrawRows(range(4000), **{"temperature": 1.0, "top_k": None, "top_p": None, **rules})
    scores = torch.log(torch.tensor([[0.6, 0.3, 0.0, 0.1]])).repeat(4000, 1)
    shares = torch.bincount(draw(None, scores).argmax(dim=-1), minlength=4) / 4000
    assert shares.tolist() == pytest.approx(expected, abs=0.03)
    assert [share == 0 for share in shares] == [share == 0 for share in expected]


# ── streaming ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["llama", "chat", "t5", "ends"])
@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.0, "seed": 9}], ids=["greedy", "seeded"]
)
def test_a_streams_pieces_join_to_what_generate_says(tiny: Any, which: str, settings: Any) -> None:
    llm = tiny(which)
    request = ask(QUESTIONS[1], **settings)
    *pieces, last = llm.stream(request)
    whole = one(llm, request)
    assert "".join(pieces) == last.text == whole.text
    assert len(pieces) > 3
    assert (last.prompt_tokens, last.completion_tokens) == (
        whole.prompt_tokens,
        whole.completion_tokens,
    )
    assert last.finish_reason == whole.finish_reason
    assert last.first_token_seconds > 0


def test_no_piece_of_a_stop_string_is_ever_streamed(tiny: Any) -> None:
    words = one(tiny(), ask(QUESTIONS[1])).text.split()
    request = ask(QUESTIONS[1], stop=(" ".join(words[4:7]),))
    *pieces, last = tiny().stream(request)
    assert "".join(pieces) == last.text == one(tiny(), request).text
    assert last.finish_reason == "stop"


def test_closing_a_stream_stops_the_model_now(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = tiny()
    steps = []
    forward = type(llm._model).forward

    def slow(model: Any, *args: Any, **kwargs: Any) -> Any:
        steps.append(1)
        time.sleep(0.05)
        return forward(model, *args, **kwargs)

    monkeypatch.setattr(type(llm._model), "forward", slow)
    started = time.perf_counter()
    with closing(llm.stream(ask("who ?", max_tokens=100))) as pieces:
        next(pieces)
    assert len(steps) <= 4 and time.perf_counter() - started < 1.0
    assert not [thread for thread in threading.enumerate() if "(work)" in thread.name]
    assert not llm._lock.locked()


def test_two_streams_at_once_do_not_mix(tiny: Any) -> None:
    llm = tiny()
    alone = [one(llm, ask(text)).text for text in QUESTIONS[:3]]
    said: dict[int, str] = {}

    def read(row: int) -> None:
        *_, last = llm.stream(ask(QUESTIONS[row]))
        said[row] = last.text

    threads = [threading.Thread(target=read, args=(row,)) for row in range(3)]
    for thread in threads:
        thread.start()
    batch = texts(llm, [ask(text) for text in QUESTIONS[:3]])
    for thread in threads:
        thread.join()
    assert [said[row] for row in range(3)] == batch == alone


def test_a_stream_raises_what_was_wrong_with_its_request(tiny: Any) -> None:
    with pytest.raises(BackendError, match="context window"):
        list(tiny().stream(ask("the river " * 100)))


def test_torn_characters_are_streamed_whole() -> None:
    from rallebench.llms._transformers.decoding import GrowingText

    octets = list("a Dunărea, 多瑙河!".encode())
    text = GrowingText(lambda tokens: bytes(tokens).decode("utf-8", "replace"))
    pieces = [text.add(octet) for octet in octets] + [text.rest()]
    assert "".join(pieces) == "a Dunărea, 多瑙河!"
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)


# ── prompts ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("which", "text", "tokens", "window"),
    [
        ("llama", "the river " * 100, 201, 128),
        ("llama", "the " * 127, 128, 128),  # no room is left for an answer
        ("t5", "the " * 64, 65, 64),
    ],
)
def test_a_prompt_longer_than_the_window_is_refused_in_its_place_with_both_numbers(
    tiny: Any, which: str, text: str, tokens: int, window: int
) -> None:
    short, long, other = tiny(which).generate([ask("who ?"), ask(text), ask("the " * 63)])
    assert isinstance(short, Reply) and isinstance(other, Reply)
    assert isinstance(long, BackendError)
    assert f"has {tokens} tokens" in str(long) and f"holds {window}" in str(long)


@pytest.mark.parametrize(("which", "window"), [("llama", 128), ("gpt2", 48)])
def test_a_reply_ends_where_the_window_ends_and_says_so(tiny: Any, which: str, window: int) -> None:
    prompts = ["the " * (window - 4), "who ?", "the " * (window - 2)]
    long, short, full = tiny(which).generate([ask(text) for text in prompts])
    assert (long.completion_tokens, long.finish_reason) == (3, "length")
    assert "3 tokens" in long.note
    assert (full.completion_tokens, short.completion_tokens) == (1, 12)
    assert short.note == ""


def test_a_relative_position_model_may_be_given_a_larger_window(tiny: Any) -> None:
    assert isinstance(tiny("t5", context_window=200).generate([ask("the " * 150)])[0], Reply)


def test_a_window_larger_than_the_models_positions_is_refused(tiny: Any) -> None:
    with pytest.raises(UsageError, match="only 128 positions"):
        tiny(context_window=129)


def test_a_chat_template_is_used_where_there_is_one_and_can_be_switched_off(tiny: Any) -> None:
    # <s> user : who ? ; answer :
    assert one(tiny("chat"), ask("who ?")).prompt_tokens == 8
    assert one(tiny("chat", chat_template="off"), ask("who ?")).prompt_tokens == 3
    assert one(tiny("llama"), ask("who ?")).prompt_tokens == 3


def test_a_system_text_comes_first_unless_the_request_has_its_own(tiny: Any) -> None:
    llm = tiny("chat", system="stop lost")
    # <s> system : stop lost ; user : who ? ; answer :
    assert one(llm, ask("who ?")).prompt_tokens == 13
    own = Generate("tiny", (Message("system", "won"), Message("user", "who ?")), max_tokens=2)
    assert one(llm, own).prompt_tokens == 12


def test_a_system_text_stands_before_a_plain_prompt(tiny: Any) -> None:
    told = one(tiny("llama", system="stop lost"), ask("who ?"))
    assert told.text == one(tiny("llama"), ask("stop lost\n\nwho ?")).text


def test_messages_that_the_template_refuses_are_a_sentence_in_their_place(tiny: Any) -> None:
    twice = (Message("user", "who ?"), Message("system", "won"))
    good, bad = tiny("chat").generate([ask("who ?"), Generate("tiny", twice)])
    assert isinstance(good, Reply)
    assert isinstance(bad, BackendError) and "a system message must come first" in str(bad)


def test_asking_for_a_template_that_is_not_there_is_refused(tiny: Any) -> None:
    with pytest.raises(UsageError, match="has no chat template; set chat_template to off"):
        tiny("llama", chat_template="on")


@pytest.mark.parametrize("which", ["llama", "chat", "t5"])
@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_prompt_is_refused_in_its_place(tiny: Any, which: str, text: str) -> None:
    refused, answered = tiny(which).generate([ask(text), ask("who ?")])
    assert isinstance(refused, BackendError) and "is empty; give it at least one word" in str(
        refused
    )
    assert isinstance(answered, Reply)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ask("who ?", options={"topp": 0.5}), "Did you mean 'top_p'"),
        (ask("who ?", options={"top_p": 7}), "top_p is 7"),
        (ask("who ?", max_tokens=0), "max_tokens is 0"),
        (ask("who ?", temperature=-1.0), "temperature is -1.0"),
        (ask("who ?", options={"min_p": -1}), "min_p is -1"),
        (ask("who ?", options={"logprobs": 1}), "logprobs is 1"),
        (ask("who ?", options={"chat_template_kwargs": {"a": 1}}), "needs a chat template"),
        (
            ask("who ?", options={"chat_template_kwargs": {"tokenize": True}}),
            "may not set tokenize",
        ),
        (ask("who ?", options={"chat_template_kwargs": [1]}), "must be an object"),
        (ask("who ?", options={"response_format": "json"}), "response_format must be"),
        (ask("who ?", options={"response_format": NO_SCHEMA}), "is not a JSON schema"),
        (ask("who \ud83d ?"), "half of a surrogate pair"),
    ],
)
def test_what_the_model_cannot_do_is_refused(tiny: Any, request_: Generate, words: str) -> None:
    refused, answered = tiny().generate([request_, ask("who ?")])
    assert isinstance(refused, RalleError) and words in str(refused)
    assert isinstance(answered, Reply)


# ── settings, names, fingerprints ────────────────────────────────────────────


def test_an_unknown_setting_names_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"no setting 'quantisation'.*Did you mean 'quantization'.*device_map"
    ):
        LLMS["transformers"]("tiny", model="x", quantisation="8bit")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"quantization": "3bit"}, "none, 8bit, 4bit"),
        ({"dtype": "int8"}, "auto, float32"),
        ({"chat_template": "maybe"}, "auto, on, off"),
        ({"context_rule": "truncate"}, "refuse, cut"),
        ({"attn_implementation": "fast"}, "auto, eager, sdpa, flash_attention_2"),
        ({"bnb_4bit_quant_type": "int4"}, "nf4, fp4"),
        ({"bnb_4bit_quant_type": "fp4"}, "quantization is none; set that to 4bit"),
        ({"quantization": "4bit", "llm_int8_threshold": 5.0}, "set that to 8bit"),
        ({"bnb_4bit_use_double_quant": 1}, "true or false"),
        ({"device_map": "gpu"}, "device_map is 'gpu'"),
        ({"max_memory": {"cpu": "1GB"}}, "needs device_map auto"),
        ({"device_map": "auto", "max_memory": {"gpu": "1GB"}}, "max_memory must name each device"),
        ({"chat_template_kwargs": {"tools": []}}, "may not set tools"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"stop": "Q:"}, "list of texts"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"device_map": 3}, "device_map"),
        ({"model": " "}, "model must be"),
        ({"system": 3}, "system is 3; it must be text"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_early(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        LLMS["transformers"]("tiny", **{"model": "/nowhere", **settings})


def test_the_fingerprint_stays_if_a_folder_moves(tiny: Any, folder: Folder, tmp_path: Path) -> None:
    moved = shutil.copytree(folder("llama"), tmp_path / "moved")
    llm = LLMS["transformers"]("other name", model=str(moved), device_map="cpu", batch_size=3)
    assert llm.fingerprint == tiny().fingerprint


def test_the_fingerprint_changes_with_all_that_changes_an_answer(tiny: Any, folder: Folder) -> None:
    variants = [
        tiny(),
        tiny("no pad"),
        tiny("ends"),
        tiny("chat"),
        tiny("chat", chat_template="off"),
        tiny(dtype="bfloat16"),
        tiny(system="won"),
        tiny(max_tokens=3),
        tiny(stop=["won"]),
        tiny(temperature=0.5),
        tiny(context_rule="cut"),
    ]
    fingerprints = {llm.fingerprint for llm in variants}
    assert len(fingerprints) == len(variants)


def test_one_changed_weight_changes_a_models_fingerprint(folder: Folder, tmp_path: Path) -> None:
    from rallebench.checkpoints.files import content_hash

    copy = shutil.copytree(folder("llama"), tmp_path / "copy")
    before = content_hash(copy)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert content_hash(copy) != before


# ── loading and unloading ────────────────────────────────────────────────────


WEIGHTS, CONFIG = "model.safetensors", "config.json"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
INDEX = json.dumps({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}})
OWN_CODE = {"auto_map": {"AutoConfig": "x.C", "AutoModelForCausalLM": "x.M"}}


def without(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names]  # type: ignore[return-value]


def holding(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text)  # type: ignore[return-value]


def configured(**changes: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        config = json.loads((folder / CONFIG).read_text())
        (folder / CONFIG).write_text(json.dumps(config | changes))

    return damage


def cut_weights(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-5000])


def lose_a_shard(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "other.bin")
    (folder / f"{WEIGHTS}.index.json").write_text(INDEX)


def become_an_adapter(folder: Path) -> None:
    (folder / CONFIG).rename(folder / "adapter_config.json")


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        (without(WEIGHTS), BadFileError, "contains no weights"),
        (cut_weights, BadFileError, "damaged, truncated"),
        (holding(WEIGHTS, POINTER), BadFileError, "git-lfs pointer"),
        (lose_a_shard, BadFileError, "copy all 1 shards"),
        (without(CONFIG), BadFileError, "has no config.json"),
        (become_an_adapter, BadFileError, "merge the adapter"),
        (holding(CONFIG, "{"), BadFileError, "not valid JSON"),
        (
            without("tokenizer.json", "tokenizer_config.json"),
            BadFileError,
            "contains no readable tokenizer",
        ),
        (configured(model_type="wonder"), UsageError, "does not know the architecture"),
        (configured(model_type="wonder", **OWN_CODE), UsageError, "trust_remote_code"),
        (configured(model_type="vit"), UsageError, "not a causal or encoder–decoder model"),
        (configured(num_hidden_layers=3), BadFileError, "lack 9 tensors"),
        (configured(hidden_size=128), BadFileError, "do not have the shapes"),
    ],
)
def test_a_folder_that_holds_no_whole_model_is_one_sentence(
    folder: Folder,
    tmp_path: Path,
    damage: Callable[[Path], None],
    kind: type[RalleError],
    words: str,
) -> None:
    broken = shutil.copytree(folder("llama"), tmp_path / "bad")
    damage(broken)
    with pytest.raises(kind, match=words) as raised:
        LLMS["transformers"]("tiny", model=str(broken), device_map="cpu")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        ("/nowhere/at/all", BadFileError, "does not exist"),
        ("./nowhere", BadFileError, "does not exist"),
        ("nobody/no-such-model", BackendError, "the hub cannot be reached"),
        ("not a name", NotFoundError, "neither a folder here nor a model"),
    ],
)
def test_a_model_nowhere_is_one_sentence(model: str, kind: type[RalleError], words: str) -> None:
    with pytest.raises(kind, match=words):
        LLMS["transformers"]("tiny", model=model, device_map="cpu")


def test_a_missing_package_is_named_so(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(MissingPackageError, match="pip install bitsandbytes"):
        LLMS["transformers"]("tiny", model=str(folder("llama")), quantization="8bit")


def test_a_model_that_cannot_fit_is_refused_before_it_is_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rallebench.checkpoints import memory

    monkeypatch.setattr(memory, "free_ram_bytes", lambda: 1000)
    with pytest.raises(
        BackendMemoryError, match=r"0.3 MB RAM as float32, but only 0.0 MB are free"
    ):
        LLMS["transformers"]("tiny", model=str(folder("llama")), device_map="cpu")


def test_running_out_of_memory_asks_for_less(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    llm = tiny("gpt2", batch_size=7)

    def too_much(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(llm._model, "generate", too_much)
    with pytest.raises(BackendMemoryError, match="smaller batch size"):
        llm.generate([ask("who ?")])


def test_loading_tells_what_it_does_and_what_it_took(folder: Folder) -> None:
    steps = LLMS.entry("transformers").traits["loading"](
        "tiny", model=str(folder("llama")), device_map="cpu"
    )
    *lines, llm = steps
    assert [line.split()[0] for line in lines] == ["Reading", "Loading", "Loaded"]
    assert "float32 (0.3 MB)" in lines[1]
    assert "LlamaForCausalLM (float32) on cpu, window 128 tokens, took" in lines[2]
    assert llm.about in lines[2]
    llm.close()


def test_a_second_model_leaves_the_first_as_it_was(tiny: Any, folder: Folder) -> None:
    first = tiny("llama")
    before = one(first, ask("who ?")).text
    second = LLMS["transformers"]("second", model=str(folder("gpt2")), device_map="cpu")
    assert one(first, ask("who ?")).text == before
    assert one(second, ask("who ?")).text != before
    second.close()
    assert one(first, ask("who ?")).text == before


def test_an_unloaded_model_says_so_and_ends_the_stream_being_written(folder: Folder) -> None:
    llm = LLMS["transformers"]("tiny", model=str(folder("llama")), device_map="cpu")
    pieces = llm.stream(ask("who ?", max_tokens=120))
    next(pieces)
    llm.close()
    (answer,) = llm.generate([ask("who ?")])
    assert isinstance(answer, NotFoundError) and answer.hint == Hint("load", "tiny")
    for stream in (pieces, llm.stream(ask("who ?"))):
        with pytest.raises(NotFoundError, match="was unloaded"):
            list(stream)


IN_A_FRESH_PROCESS = """
import json, sys
from rallebench.llms import LLMS
from rallebench.core.memory import Memory
from rallebench.core.types import Generate, Message
LLMS["transformers"]("small", model=sys.argv[1], device_map="cpu").close()
before = Memory.now()
llm = LLMS["transformers"]("wide", model=sys.argv[2], device_map="cpu")
llm.generate([Generate("wide", (Message("user", "who ?"),), max_tokens=2)])
held = Memory.now() - before
llm.close()
left = Memory.now() - before
print(json.dumps([held.ram, llm.memory.ram, llm.freed.ram, left.ram]))
"""


@pytest.mark.slow
def test_closing_a_model_gives_its_memory_back_and_says_how_much(tmp_path: Path) -> None:
    """Runs in its own process; otherwise the measurement would include the heap of other tests."""
    wide = tiny_models.save_llama(tmp_path / "wide", hidden=1024, layers=5)
    small = tiny_models.save_llama(tmp_path / "small")
    weights = (wide / "model.safetensors").stat().st_size
    assert weights > 150_000_000
    said = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, str(small), str(wide)],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    )
    held, told, freed, left = json.loads(said.stdout.strip().split("\n")[-1])
    assert held > 0.9 * weights
    assert told == pytest.approx(weights, rel=0.2)
    assert freed > 0.9 * weights
    assert left < 0.15 * weights


# ── quantisation ─────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def square(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with matrices that are wide enough for blocks of 64."""
    if importlib.util.find_spec("bitsandbytes") is None:
        pytest.skip("bitsandbytes is not installed")
    return tiny_models.save_llama(tmp_path_factory.mktemp("square") / "llama", hidden=256, layers=2)


@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
def test_a_quantised_model_answers_on_the_cpu_in_less_memory(
    square: Path, quantization: str, caplog: pytest.LogCaptureFixture
) -> None:
    from rallebench.checkpoints.files import tensors, weight_bits, weight_files

    def weights(kind: str) -> float:
        return sum(
            n * weight_bits(name, stored, dims, "float32", kind) / 8
            for file in weight_files(square)
            for name, n, stored, dims in tensors(file)
        )

    llm = LLMS["transformers"](
        "small", model=str(square), quantization=quantization, device_map="cpu"
    )
    with caplog.at_level(logging.WARNING):
        batch = texts(llm, [ask(text, max_tokens=6) for text in QUESTIONS[:2]])
    assert batch == [one(llm, ask(text, max_tokens=6)).text for text in QUESTIONS[:2]]
    assert all(len(text.split()) == 6 for text in batch)
    assert not [record for record in caplog.records if "cast" in record.getMessage()]
    footprint = llm._model.get_memory_footprint()
    assert footprint < 0.4 * weights("none")
    assert weights(quantization) == pytest.approx(footprint, rel=0.1)
    assert f"/{quantization}/" in llm.fingerprint
    *pieces, last = llm.stream(ask("who ?", max_tokens=6))
    assert "".join(pieces) == last.text
    llm.close()


# ── on a GPU ─────────────────────────────────────────────────────────────────


@pytest.fixture
def needs_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")


@pytest.mark.parametrize(
    "settings", [{"dtype": "float16"}, {"quantization": "8bit"}, {"quantization": "4bit"}]
)
def test_a_gpu_answers_and_gets_memory_back(needs_gpu: None, tmp_path: Path, settings: Any) -> None:
    folder = tiny_models.save_llama(tmp_path / "wide", hidden=1024, layers=5)
    for _ in range(2):  # at the first use CUDA keeps work space for itself
        before = Memory.now()
        llm = LLMS["transformers"]("wide", model=str(folder), device_map="cuda", **settings)
        assert llm.memory.vram > 20_000_000
        requests = [ask(text) for text in QUESTIONS]
        assert all(isinstance(reply, Reply) for reply in llm.generate(requests))
        *pieces, last = llm.stream(requests[0])
        assert "".join(pieces) == last.text
        took = llm.memory.vram
        llm.close()
        assert llm.freed.vram >= 0.95 * took
    assert (Memory.now() - before).vram <= 0.05 * took


def test_a_prompt_past_learned_positions_reaches_no_gpu(needs_gpu: None, folder: Folder) -> None:
    llm = LLMS["transformers"]("tiny", model=str(folder("gpt2")), device_map="cuda")
    refused, near, short = llm.generate([ask("the " * 60), ask("the " * 46), ask("who ?")])
    assert (
        isinstance(refused, BackendError) and isinstance(near, Reply) and isinstance(short, Reply)
    )
    llm.close()
