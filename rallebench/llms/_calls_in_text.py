"""Tool calls written as text by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.formats import quote_literal, schema_rule
from rallebench.core.structured import FENCE, decode_json
from rallebench.core.thinking import answer_begins, extract_answer
from rallebench.core.types import ToolCall, ToolSpec

CALL_MARK, _END_MARK = "<tool_call>", "</tool_call>"

_RECIPIENT = r"to=(?:functions\.)?(?P<{}>[\w-]+)\s*"
_HARMONY = re.compile(
    r"(?:<\|start\|>\s*)?(?:assistant\s*)?"
    rf"(?:{_RECIPIENT.format('role')}<\|channel\|>\s*(?:commentary|analysis)|"
    rf"(?:<\|channel\|>\s*|(?<=assistant)|(?<![\w ]))(?:commentary|analysis)\s*{_RECIPIENT.format('channel')})"
    r"\s*(?:<\|constrain\|>)?\s*(?:json|code)?\s*(?:<\|message\|>)?\s*(?=\{)"
)
"""Header of a call in a harmony channel; the tokenizer may have dropped its markers."""
_HARMONY_END = re.compile(r"\s*(?:<\|(?:call|end|return)\|>\s*)*")
_CHANNELS = ("<|start|>", "<|channel|>")
_CHANNEL_HEADER = re.compile(r"<\|start\|>[^<]*(?:<\|channel\|>[^<]*)?|<\|channel\|>[^<]*")
_MARKLESS = re.compile(r"analysis(?=[A-Z])")
_BARE_CALL = "commentary to="
_DECODER = json.JSONDecoder()


def parse_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text without its tool calls, and the calls in order (ids ``call_0``, ``call_1`` …).

    Three formats are read: Hermes' ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` anywhere in the text (the last
    may lack its end marker); harmony's ``<|channel|>commentary to=functions.NAME …<|message|>{…}<|call|>``; and a text that
    consists of one object with name and arguments, or a list of such objects. Anything that cannot be parsed stays in the text.

    >>> parse_calls('Let me see.\\n<tool_call>{"name": "search", "arguments": {"q": "Ada"}}</tool_call>')
    ('Let me see.', (ToolCall(id='call_0', name='search', arguments='{"q": "Ada"}'),))
    >>> parse_calls('[{"name": "search", "parameters": {}}]')
    ('', (ToolCall(id='call_0', name='search', arguments='{}'),))
    >>> parse_calls("search(Ada)")
    ('search(Ada)', ())
    """
    if "to=" in text and (channels := _harmony_calls(text))[1]:
        return channels
    thoughts, answer = text[: answer_begins(text)], extract_answer(text)
    if CALL_MARK not in answer:
        plain = _plain_calls(answer)
        return (thoughts, _number_calls(plain)) if plain else (text, ())
    calls: list[tuple[str, str]] = []
    first, *pieces = answer.split(CALL_MARK)
    texts = [first]
    for piece in pieces:
        inside, _, after = piece.partition(_END_MARK)
        call = _call(decode_json(inside))
        if call:
            calls.append(call)
            texts.append(after)
        else:
            texts.append(CALL_MARK + piece)
    if not calls:
        return text, ()
    return f"{thoughts}{''.join(texts)}".rstrip(), _number_calls(calls)


def calls_grammar(tools: Sequence[ToolSpec], marked: bool) -> str:
    """Return a grammar for one call of any of these tools, in the format that ``parse_calls`` reads; ``marked``: with
    Hermes' markers.
    """
    rules = []
    for number, tool in enumerate(tools):
        head = quote_literal(
            f'{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
        )
        schema = {"type": "object", "properties": {}, **tool.parameters}
        rules.append(f"call{number}: {head} {schema_rule(schema)} {quote_literal('}')}")
    call = f"({' | '.join(f'call{number}' for number in range(len(tools)))})"
    if marked:
        call = f"{quote_literal(CALL_MARK + chr(10))} {call} {quote_literal(chr(10) + _END_MARK)}"
    return "\n".join([f"start: {call}", *rules])


def before_calls(text: str) -> str:
    """Return the beginning of an unfinished text that no later tool call can remove.

    >>> before_calls('Let me see. <tool'), before_calls(' {"name": "se'), before_calls("a { b")
    ('Let me see.', '', 'a { b')
    """
    text = text[: _open_header(text)]
    thoughts, answer = text[: answer_begins(text)], extract_answer(text)
    if answer.lstrip().startswith(("{", "[", "`")):
        answer = ""
    answer = answer.partition(CALL_MARK)[0]
    begun = max(
        (size for size in range(1, len(CALL_MARK)) if answer.endswith(CALL_MARK[:size])), default=0
    )
    return f"{thoughts}{answer[: len(answer) - begun]}".rstrip()


def _harmony_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the calls in harmony channels, and the text without them."""
    calls: list[tuple[str, str]] = []
    rest, start = "", 0
    for header in _HARMONY.finditer(text):
        if header.start() < start:
            continue
        try:
            arguments, end = _DECODER.raw_decode(text, header.end())
        except (ValueError, RecursionError):
            continue
        name = header["role"] or header["channel"]
        calls.append((name, json.dumps(arguments, ensure_ascii=False)))
        rest += text[start : header.start()]
        end_mark = _HARMONY_END.match(text, end)
        start = end_mark.end() if end_mark else end
    return (rest + text[start:]).rstrip(), _number_calls(calls)


def _open_header(text: str) -> int:
    """Return the start of a harmony message header that addresses a function or is incomplete; else the end of the text."""
    if _MARKLESS.match(text):
        ends = (size for size in range(1, 9) if text.endswith("assistant"[:size]))
        return len(text.partition("assistant")[0].removesuffix("assistant"[: max(ends, default=0)]))
    if text and (text.startswith(_BARE_CALL) or _BARE_CALL.startswith(text)):
        return 0
    if "<" not in text[-12:] and not any(mark in text for mark in _CHANNELS):
        return len(text)
    for header in _CHANNEL_HEADER.finditer(text):
        rest = text[header.end() :]
        if "to=" in header[0] or not rest.startswith(("<|message|>", "<|constrain|>")):
            return header.start()
    return len(text) - max(
        (
            size
            for size in range(1, min(len(text), 10) + 1)
            if any(mark.startswith(text[-size:]) for mark in _CHANNELS)
        ),
        default=0,
    )


def _plain_calls(text: str) -> list[tuple[str, str]]:
    text = text.strip()
    if fenced := FENCE.fullmatch(text):
        text = fenced[1]
    if not text.lstrip().startswith(("{", "[")):
        return []
    value = decode_json(text)
    calls = [_call(part) for part in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call] if all(calls) else []


def _call(value: Any) -> tuple[str, str] | None:
    """Return (name, arguments as JSON text) if the object is a call. Llama's key for arguments is ``parameters``."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]  # OpenAI's own shape
    if not isinstance(value, Mapping):
        return None
    name = value.get("name")
    arguments = value["arguments"] if "arguments" in value else value.get("parameters")
    if isinstance(arguments, str):  # JSON inside JSON
        arguments = decode_json(arguments)
    if not isinstance(name, str) or not name or not isinstance(arguments, Mapping):
        return None
    return name, json.dumps(arguments, ensure_ascii=False)


def _number_calls(calls: list[tuple[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"call_{number}", *call) for number, call in enumerate(calls))
