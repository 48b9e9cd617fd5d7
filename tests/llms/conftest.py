"""Backends for a server on this machine, closed after the test, and tiny models in this process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from asking import KEY
from loopback import Behaviour, Loopback

from rallebench.llms import LLMS

CALL = '{"name": "search", "arguments": {"query": "Ada"}}'
PARROTS = {
    "calls": ["Let", "me", "see.", "<tool_call>", CALL, "</tool_call>"],
    "plain call": [CALL],
    "no call": ["<tool_call>", "search(Ada)", "</tool_call>"],
    "person": ["Sure:", '{"name":', '"Ada"', "}"],
    "nobody": ['{"name":', "3", "}"],
    "thinks": ["<think>", "Rome?", "Or", "Milan?", "</think>"],
    "thinks on": ["<think>", "Rome?", "Or", "Milan?", "Perhaps", "Turin?"],
    "thinks in brackets": ["[THINK]", "Rome?", "[/THINK]", "Rome"],
    "thinks, answers": ["<think>", "Rome?", "</think>", "Rome"],
    "thinks in channels": [
        *["<|channel|>", "analysis", "<|message|>", "Rome?", "<|end|>", "<|start|>"],
        *["assistant<|channel|>final<|message|>", "Rome", "<|return|>"],
    ],
    "calls in channels": [
        *["<|channel|>", "analysis", "<|message|>", "Rome?", "<|end|>", "<|start|>"],
        *[
            "assistant<|channel|>commentary",
            "to=functions.search",
            "<|constrain|>",
            "json<|message|>",
        ],
        *['{"query":', '"Ada"}', "<|call|>"],
    ],
    "thinks from the prompt on": [
        "<think>",
        *["Rome?", "Or", "Milan?", "</think>", "Rome", "it", "is."],
    ],
}
"""The answer of every model."""
THINKING_TEMPLATE = tiny_models.TOOL_TEMPLATE + "<think>\n"

MODELS: dict[str, Callable[[Path], Path]] = {
    "llama": lambda folder: tiny_models.save_llama(folder),
    "chat": lambda folder: tiny_models.save_llama(folder, chat=True),
    "no pad": lambda folder: tiny_models.save_llama(folder, pad=False),
    "ends": lambda folder: tiny_models.save_llama(folder, ends=True, seed=11),
    "no pad, ends": lambda folder: tiny_models.save_llama(folder, pad=False, ends=True, seed=11),
    "gpt2": lambda folder: tiny_models.save_gpt2(folder),
    "t5": lambda folder: tiny_models.save_t5(folder),
    "bloom": lambda folder: tiny_models.save_bloom(folder),
    "tools": lambda folder: tiny_models.save_llama(
        folder, chat=tiny_models.TOOL_TEMPLATE, positions=256
    ),
    "bytes": lambda folder: tiny_models.save_llama(folder, positions=2048, bytewise=True),
    "bytes, marked calls": lambda folder: tiny_models.save_llama(
        folder, chat=tiny_models.TOOL_TEMPLATE + "{# <tool_call> #}", positions=2048, bytewise=True
    ),
    "bytes, calls": lambda folder: tiny_models.save_llama(
        folder, chat=tiny_models.TOOL_TEMPLATE, positions=2048, bytewise=True
    ),
    "bytes, t5": lambda folder: tiny_models.save_t5(folder, bytewise=True),
    "no system": lambda folder: tiny_models.save_llama(folder, chat=tiny_models.NO_SYSTEM_TEMPLATE),
    "deaf": lambda folder: tiny_models.save_llama(folder, chat=tiny_models.DEAF_TEMPLATE),
    "names": lambda folder: tiny_models.save_llama(
        folder, chat="{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}answer :"
    ),
    "refuses": lambda folder: tiny_models.save_llama(
        folder, chat="{% if tools %}{{ raise_exception('no tools') }}{% endif %}answer :"
    ),
    **{
        name: lambda folder, name=name, pieces=pieces: tiny_models.save_parrot(
            folder, pieces, **({"chat": THINKING_TEMPLATE} if "prompt" in name else {})
        )
        for name, pieces in PARROTS.items()
    },
}


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for servers on this machine."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """``make(**settings)`` → a backend: short pauses, and a time-out of 5 seconds."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Any:
            own = {"model": "m", "backoff": 0.01, "timeout": 5}
            llm: Any = LLMS["openai_compatible"]("gpt", **{**own, **settings})
            stack.callback(llm.close)
            return llm

        yield start


@pytest.fixture
def load(make: Callable[..., Any]) -> Callable[..., Any]:
    """``load(server, **settings)`` → a backend for it."""
    return lambda server, **settings: make(base_url=server.url, **settings)


@pytest.fixture
def serve(load: Callable[..., Any]) -> Iterator[Callable[..., tuple[Loopback, Any]]]:
    """``serve(behaviour, …, **settings)`` → a running server and a backend that asks it."""
    with ExitStack() as stack:

        def start(*behaviours: Behaviour, **settings: Any) -> tuple[Loopback, Any]:
            server = stack.enter_context(Loopback(*behaviours))
            return server, load(server, **settings)

        yield start


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``folder(which)`` → the folder of a model of ``MODELS``."""
    root = tmp_path_factory.mktemp("models")

    def path(which: str) -> Path:
        if not (root / which).exists():
            MODELS[which](root / which)
        return root / which

    return path


@pytest.fixture(scope="session")
def tiny(folder: Callable[[str], Path]) -> Callable[..., Any]:
    """``tiny(which, **settings)`` → a loaded model on the CPU; equal settings give the same model."""
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # every load collects garbage, and need not search the libraries for it
    loaded: dict[str, Any] = {}

    def load(which: str = "llama", **settings: Any) -> Any:
        key = f"{which} {sorted(settings.items())}"
        if key not in loaded:
            own = {"model": str(folder(which)), "device_map": "cpu", **settings}
            loaded[key] = LLMS["transformers"]("tiny", **own)
        return loaded[key]

    return load
