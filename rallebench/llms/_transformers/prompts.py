"""Messages → tokens that fit: chat template or plain text, the settings that apply, the room that is left."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.errors import BackendError, UsageError
from rallebench.llms._transformers.settings import (
    DECODING,
    OPTIONS,
    Decoding,
    Settings,
    check_decoding,
)
from rallebench.registry import unknown
from rallebench.types import Generate, Message


@dataclass(frozen=True)
class Prompt:
    """A request as the model sees it. ``note``: what a reply cut by the window should say of it."""

    tokens: list[int]
    decoding: Decoding
    stop: tuple[str, ...]
    seed: int
    note: str = ""


class Prompter:
    """Prepares the requests of one model. ``chat``: whether its chat template is used.

    ``window``: tokens of prompt and answer together (of the prompt alone for an encoder–decoder
    model), None where the model has no limit. Safe to use from several threads.
    """

    def __init__(self, name: str, settings: Settings, tokenizer: Any, config: Any) -> None:
        self._name, self._settings, self._tokenizer = name, settings, tokenizer
        self._encoder_decoder = bool(config.is_encoder_decoder)
        # What the model cannot exceed: past the last of learned positions there is an index error.
        self._positions: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._lock = threading.Lock()  # tokenizers set options on themselves while they encode
        self.chat = self._uses_chat()
        self.window = self._window(config)

    def prepare(self, request: Generate) -> Prompt:
        """Raises RalleError if the request asks for what this model cannot do, or is too long."""
        given = self._settings
        if request.tools:
            raise UsageError(
                f"{self._name!r} runs through transformers, which calls no tools here; use a model behind an "
                "openai_compatible server for function calling."
            )
        for option in request.options:
            if option not in OPTIONS:
                raise UsageError(f"{self._name!r}: {unknown('generation setting', option, OPTIONS)}")
        asked = {part: getattr(given, part) for part in DECODING} | dict(request.options)
        asked |= {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        asked |= {} if request.temperature is None else {"temperature": request.temperature}
        check_decoding(self._name, Decoding(**asked))
        tokens = self._tokens(request.messages)
        room = min(asked["max_tokens"], self._room(len(tokens)) or asked["max_tokens"])
        seeds = [seed for seed in (request.seed, given.seed) if seed is not None]
        return Prompt(
            tokens,
            Decoding(**{**asked, "max_tokens": room}),
            tuple(text for text in (request.stop or given.stop) if text),
            seeds[0] if seeds else random.SystemRandom().getrandbits(63),
            "" if room == asked["max_tokens"] else f"the context window left room for {room} tokens only",
        )

    def _tokens(self, messages: Sequence[Message]) -> list[int]:
        system = self._settings.system
        if system and not any(message.role == "system" for message in messages):
            messages = (Message("system", system), *messages)
        with self._lock:
            text = self._in_template(messages) if self.chat else plain(messages)
            # A chat template writes its own beginning of text; a second one would change the answer.
            tokens = list(self._tokenizer(text, add_special_tokens=not self.chat, verbose=False)["input_ids"])
        if not tokens and self._tokenizer.bos_token_id is not None:
            tokens = [self._tokenizer.bos_token_id]
        if not tokens:
            raise BackendError(f"The prompt for {self._name!r} is empty; give it at least one word.")
        return tokens

    def _in_template(self, messages: Sequence[Message]) -> str:
        import jinja2

        turns = [{"role": "user" if m.role == "tool" else m.role, "content": m.content} for m in messages]
        try:
            return str(self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        except jinja2.TemplateError as error:
            raise BackendError(
                f"The chat template of {self._name!r} refuses these messages ({error}); put everything into "
                "one user message, or set chat_template to off."
            ) from None

    def _room(self, length: int) -> int | None:
        """How many tokens fit after a prompt of ``length`` tokens, None if any; BackendError if none do."""
        shared = 0 if self._encoder_decoder else 1
        if self.window is not None and length > self.window - shared:
            raise BackendError(
                f"The prompt for {self._name!r} has {length} tokens, but its context window holds "
                f"{self.window} (nothing was cut): retrieve fewer or shorter passages, or use a model with a "
                "larger window."
            )
        if self._encoder_decoder:
            return self._positions - 1 if self._positions else None  # one is the decoder's start token
        return None if self.window is None else self.window - length

    def _uses_chat(self) -> bool:
        asked = self._settings.chat_template
        has = bool(getattr(self._tokenizer, "chat_template", None))
        if asked == "auto":
            return has and not self._encoder_decoder
        if asked in ("on", True) and not has:
            raise UsageError(
                f"{self._name!r}: the tokenizer of {self._settings.model} has no chat template; set "
                "chat_template to off."
            )
        return asked in ("on", True)

    def _window(self, config: Any) -> int | None:
        asked = self._settings.context_window
        if asked and self._positions and asked > self._positions:
            raise UsageError(
                f"{self._name!r}: context_window is {asked}, but {self._settings.model} has only "
                f"{self._positions} positions; set it to at most that."
            )
        # transformers writes 10^30 where a tokenizer names no length.
        advised = length if (length := self._tokenizer.model_max_length) < 10**9 else None
        return asked or self._positions or getattr(config, "n_positions", None) or advised


def plain(messages: Sequence[Message]) -> str:
    """Messages as one text for a model without a chat template; a lone prompt stays as it is.

    >>> plain([Message("system", "Be brief."), Message("user", "Who?")])
    'Be brief.\\n\\nWho?'
    >>> plain([Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Who?")])
    'User: Hi\\nAssistant: Hello\\nUser: Who?\\nAssistant:'
    """
    system = [message.content for message in messages if message.role == "system"]
    turns = [message for message in messages if message.role != "system"]
    if len(turns) > 1:
        lines = [f"{message.role.capitalize()}: {message.content}" for message in turns]
        return "\n\n".join([*system, "\n".join([*lines, "Assistant:"])])
    return "\n\n".join([*system, *(message.content for message in turns)])
