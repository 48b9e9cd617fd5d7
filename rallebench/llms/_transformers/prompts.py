"""Preparation of requests: settings, tokens, and room in the context window."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.formats import NAMES, Format, read_format
from rallebench.core.registry import unknown
from rallebench.core.thinking import begun_thoughts, extract_answer
from rallebench.core.types import Generate, Json, Message, ToolCall, ToolSpec
from rallebench.llms._calls_in_text import CALL_MARK, before_calls, calls_grammar, parse_calls
from rallebench.llms._transformers.cutting import shorten
from rallebench.llms._transformers.loading import vocabulary
from rallebench.llms._transformers.settings import (
    DECODING,
    OPTIONS,
    TOOL_CHOICE,
    DecodingRules,
    TransformersSettings,
    check_options,
)
from rallebench.llms._transformers.templates import fold_system, in_template, plain, with_wish

if TYPE_CHECKING:
    from rallebench.llms._transformers.forcing import Forcing, Matcher

PROBE = "rallebench probes this"

MARK_TOKENS = 48
"""Maximum tokens of a thought marker with the white space after it, if the vocabulary has no token for it."""

ROOM_STEP = 16
"""The room left in the window is rounded down to a multiple of this (from twice this on): prompts of a batch share one
room, so without rounding every prompt near the limit would form a batch of its own.
"""


@dataclass(frozen=True)
class PreparedPrompt:
    """A tokenized request.

    ``notes``: differences between prompt and messages. ``room_note``: note for a reply that the window cuts. ``begun``:
    thought marker at the end of the prompt; the model continues it, so the text begins with it. ``format``: format of the
    answer; ``calls``: True if the model may call tools. ``matcher``: enforces the format, or a call, during generation; None
    if nothing does. A matcher serves one reply.
    """

    tokens: list[int]
    decoding: DecodingRules
    stop: tuple[str, ...]
    seed: int
    notes: tuple[str, ...] = ()
    room_note: str = ""
    format: Format | None = None
    calls: bool = False
    logprobs: bool = False
    matcher: Matcher | None = None
    begun: str = ""

    def read(self, text: str, finished: bool = True) -> tuple[str, tuple[ToolCall, ...], str]:
        """Return the text of the reply, its tool calls, and a note about both. ``finished``: False if max_tokens cut it."""
        text, calls = parse_calls(text) if self.calls else (text, ())
        if calls or (self.format is None and self.matcher is None):
            return text, calls, ""
        name = NAMES[self.format.kind] if self.format else "call"
        if self.matcher is not None and not finished:
            return text, (), f"The answer reached max_tokens before its {name} was complete."
        if self.format is None:
            return text, (), "The answer holds no call."
        if self.matcher is not None:
            return text, (), self.format.fault(extract_answer(text))
        text, note = self.format.read(text)
        return text, (), note

    def certain(self, text: str) -> str:
        """Return the part of an unfinished text that will certainly be in the reply."""
        if self.format is not None and self.matcher is None:
            return ""
        return before_calls(text) if self.calls else text


class Prompter:
    """Prepares the requests of one model. ``chat``: True if its chat template is used.

    ``window``: tokens of prompt and answer together (of the prompt alone for an encoder–decoder model), None if the
    model has no limit. Thread-safe.
    """

    def __init__(
        self,
        name: str,
        settings: TransformersSettings,
        tokenizer: Any,
        config: Any,
        ends: frozenset[int],
    ) -> None:
        self._name, self._settings, self._tokenizer = name, settings, tokenizer
        self._ends, self._unforced = ends, ""
        self._encoder_decoder = bool(config.is_encoder_decoder)
        # a hard limit: beyond the last learned position there is an index error
        self._positions: int | None = getattr(
            config.get_text_config(), "max_position_embeddings", None
        )
        self._vocabulary = vocabulary(config)
        self._lock = threading.RLock()  # tokenizers set options on themselves while they encode
        self.chat = self._uses_chat()
        if settings.chat_template_kwargs and not self.chat:
            raise self._no_template()
        self.window = self._window(config)

    def prepare(self, request: Generate) -> PreparedPrompt:
        """Return the prompt of a request. Raises RalleError if the request is too long or not supported by the model."""
        settings = self._settings
        for option in request.options:
            if option not in (*OPTIONS, TOOL_CHOICE):
                raise UsageError(
                    f"{self._name!r}: {unknown('generation setting', option, OPTIONS)}"
                )
        options = {part: getattr(settings, part) for part in (*DECODING, *OPTIONS)} | dict(
            request.options
        )
        own = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        options |= {part: value for part, value in own.items() if value is not None}
        check_options(self._name, options)
        decoding = DecodingRules(*(options[part] for part in DECODING))
        extra = {**settings.chat_template_kwargs, **options["chat_template_kwargs"]}
        if extra and not self.chat:
            raise self._no_template()
        if request.tools and not self.calls_tools:
            raise UsageError(
                f"{self._name!r} cannot call tools: it has no chat template with a place for them; use a "
                "model that was trained to call tools, or one behind an openai_compatible server."
            )
        form = read_format(repr(self._name), options["response_format"])
        called = called_tools(self._name, request)
        matcher = self._matcher(form, request.tools, called)
        wish = form if matcher is None else None
        tokens, notes = self._fitting(request, wish, extra, decoding.max_tokens)
        room = self._room(len(tokens)) or decoding.max_tokens
        if 2 * ROOM_STEP <= room < decoding.max_tokens:
            room -= room % ROOM_STEP
        room = min(room, decoding.max_tokens)
        seeds = [seed for seed in (request.seed, settings.seed) if seed is not None]
        return PreparedPrompt(
            tokens,
            decoding._replace(max_tokens=room),
            tuple(text for text in (request.stop or settings.stop) if text),
            seeds[0] if seeds else random.SystemRandom().getrandbits(63),
            notes,
            f"The context window left room for only {room} tokens."
            if room < decoding.max_tokens
            else "",
            form,
            bool(request.tools) and request.options.get(TOOL_CHOICE) != "none",
            options["logprobs"],
            matcher,
            self._begun_by(tokens) if matcher is None else "",
        )

    def _begun_by(self, tokens: Sequence[int]) -> str:
        """Return the thought marker at the end of a prompt, '' if there is none."""
        with self._lock:
            end = self._tokenizer.decode(tokens[-MARK_TOKENS:])
        return begun_thoughts(str(end))

    # ── format of the answer ─────────────────────────────────────────────────

    @cached_property
    def forcing(self) -> Forcing | None:
        """The tokenizer's ``Forcing``; None if the setting is off, or the tokenizer cannot be used."""
        if not self._settings.forced_formats:
            return None
        from rallebench.llms._transformers.forcing import Forcing, UnreadableTokenizer

        with self._lock:
            try:
                return Forcing(self._tokenizer, self._ends)
            except UnreadableTokenizer as reason:
                self._unforced = f"It could not be enforced ({reason})."
                return None

    def _matcher(
        self, form: Format | None, tools: Sequence[ToolSpec], called: Sequence[ToolSpec]
    ) -> Matcher | None:
        """Return the matcher for a demanded call or the format; None without either, or if a call may replace the
        formatted answer.
        """
        if (not called and (form is None or tools)) or self.forcing is None:
            return None
        if called:
            marked = CALL_MARK in str(self._tokenizer.chat_template)
            grammar = calls_grammar(called, marked)
        else:
            grammar = form.grammar if form else ""
        return self.forcing.matcher(self._name, grammar) if grammar else None

    # ── tokens ───────────────────────────────────────────────────────────────

    def _fitting(
        self,
        request: Generate,
        wish: Format | None,
        extra: Json,
        max_tokens: int,
    ) -> tuple[list[int], tuple[str, ...]]:
        """Return the tokens, shortened if the setting is cut, and notes about differences from the messages."""
        if not any(message.content.strip() for message in request.messages):
            raise self._empty()
        notes = [f"The {NAMES[wish.kind]} was added to the prompt."] if wish else []
        notes += [self._unforced] if wish and self._unforced else []

        def tokenize(messages: Sequence[Message]) -> list[int]:
            sent = with_wish(messages, wish.wish, self.chat) if wish else messages
            return self._tokens(sent, request.tools, extra)

        system = self._settings.system
        messages = request.messages
        if system and not any(message.role == "system" for message in messages):
            messages = (Message("system", system), *messages)
        tokens = tokenize(messages)
        limit = self._limit(max_tokens)
        if self._settings.context_rule == "cut" and limit is not None and len(tokens) > limit:
            cut = shorten(messages, request.evidence, lambda rest: len(tokenize(rest)) <= limit)
            if cut is not None:
                return tokenize(cut[0]), (cut[1], *notes)
        return tokens, tuple(notes)

    def _tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], extra: Json
    ) -> list[int]:
        with self._lock:
            text = self._in_template(messages, tools, extra) if self.chat else plain(messages)
            try:
                # a chat template writes its own beginning of text; a second one would change the answer
                encoded = self._tokenizer(text, add_special_tokens=not self.chat, verbose=False)
            except (UnicodeError, TypeError):  # tokenizers in Rust raise TypeError
                raise BackendError(
                    f"The prompt for {self._name!r} holds half of a surrogate pair, which is not text; mend the "
                    "passage or question that it comes from."
                ) from None
        tokens = list(encoded["input_ids"])
        if not tokens:
            raise self._empty()
        if self._vocabulary is not None and max(tokens) >= self._vocabulary:
            raise BackendError(
                f"The tokenizer of {self._name!r} gave the token {max(tokens)}, but the model knows only "
                f"{self._vocabulary}; put the tokenizer that belongs to the model into its folder."
            )
        return tokens

    def _in_template(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], extra: Json
    ) -> str:
        if not self._has_system_role:
            messages = fold_system(messages)
        try:
            return in_template(self._tokenizer, messages, tools, extra)
        except Exception as error:  # a template is a program and may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BackendError(
                f"The chat template of {self._name!r} refuses these messages ({reason}); put everything into "
                "one user message, or set chat_template to off."
            ) from None

    @cached_property
    def _has_system_role(self) -> bool:
        """True if the chat template renders system messages: some refuse them, some leave them out."""
        return PROBE in self._probe([Message("system", PROBE), Message("user", "a")])

    @cached_property
    def calls_tools(self) -> bool:
        """True if the chat template renders tools: a prompt with a tool differs from one without."""
        tool, messages = ToolSpec("probe", PROBE, {}), [Message("user", "a")]
        with self._lock:
            return self.chat and self._probe(messages, tool) not in ("", self._probe(messages))

    def _probe(self, messages: Sequence[Message], *tools: ToolSpec) -> str:
        """Return the prompt of a trial, '' if the template refuses it."""
        with suppress(Exception):  # a template may raise anything
            return in_template(
                self._tokenizer, messages, tools, self._settings.chat_template_kwargs
            )
        return ""

    def _uses_chat(self) -> bool:
        setting = self._settings.chat_template
        has = bool(getattr(self._tokenizer, "chat_template", None))
        if setting == "auto":
            return has and not self._encoder_decoder
        if setting in ("on", True) and not has:
            raise UsageError(
                f"{self._name!r}: the tokenizer of {self._settings.model} has no chat template; set "
                "chat_template to off."
            )
        return setting in ("on", True)

    def _empty(self) -> BackendError:
        return BackendError(f"The prompt for {self._name!r} is empty; give it at least one word.")

    def _no_template(self) -> UsageError:
        return UsageError(
            f"{self._name!r}: chat_template_kwargs needs a chat template, and none is used; leave it out."
        )

    # ── room in the window ───────────────────────────────────────────────────

    def _room(self, length: int) -> int | None:
        """Return the number of tokens that fit after a prompt of ``length`` tokens, None without a limit. Raises
        BackendError for 0.
        """
        shared = 0 if self._encoder_decoder else 1
        if self.window is not None and length > self.window - shared:
            cut = self._settings.context_rule == "cut"
            left = "no more of its passages can be left out" if cut else "nothing was cut"
            raise BackendError(
                f"The prompt for {self._name!r} has {length} tokens, but its context window holds "
                f"{self.window} ({left}): retrieve fewer or shorter passages, or use a model with a "
                "larger window."
            )
        if self._encoder_decoder:
            # one position is the decoder's start token
            return self._positions - 1 if self._positions else None
        return None if self.window is None else self.window - length

    def _limit(self, max_tokens: int) -> int | None:
        """Return the length from which a prompt is cut: in a causal model the answer shares the window."""
        if self.window is None or self._encoder_decoder:
            return self.window
        return self.window - max(1, min(max_tokens, self.window // 4))

    def _window(self, config: Any) -> int | None:
        setting = self._settings.context_window
        if setting and self._positions and setting > self._positions:
            raise UsageError(
                f"{self._name!r}: context_window is {setting}, but {self._settings.model} has only "
                f"{self._positions} positions; set it to at most that."
            )
        # transformers sets 10^30 if a tokenizer states no length
        advised = length if (length := self._tokenizer.model_max_length) < 10**9 else None
        return setting or self._positions or getattr(config, "n_positions", None) or advised


def called_tools(name: str, request: Generate) -> tuple[ToolSpec, ...]:
    """Return the tools one of which must be called according to the option tool_choice; () if none must. Raises
    UsageError.
    """
    choice = request.options.get(TOOL_CHOICE)
    if choice in (None, "auto", "none"):
        return ()
    function = choice.get("function") if isinstance(choice, Mapping) else None
    called = function.get("name") if isinstance(function, Mapping) else None
    tools = tuple(tool for tool in request.tools if choice == "required" or tool.name == called)
    if not tools:
        raise UsageError(
            f'{name!r}: tool_choice must be auto, none, required or {{"type": "function", "function": {{"name": …}}}} '
            "with the name of a tool that is offered."
        )
    return tools
