"""Warnings beside a run's numbers, counted while it is answered."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from rallebench.core.backends import Backends
from rallebench.core.choosing import Choose
from rallebench.core.runs import FlowSpec
from rallebench.core.types import Episode, Generate

Counts = Mapping[tuple[str, str], tuple[int, int]]
"""(retriever, kind of its replies) → (replies requested, unreadable ones)."""

_UNREAD = {
    "judgements": "{unread} of {requests} judgements of {name!r} could not be read; the order stayed as it was. "
    "Use a model that follows the re-ranker's prompt, or another prompt.",
    "rewrites": "{unread} of {requests} replies for {name!r} contained no query; there the question was searched as it is. "
    "Use a model that follows its prompt, or another prompt.",
}
"""Kind of replies, the name of a retriever's attribute → sentence about unreadable ones."""


def judgements(names: Iterable[str], backends: Backends) -> Counts:
    """Count the replies so far, for retrievers in which a language model re-ranks or writes queries."""
    return {
        (name, kind): counts
        for name in names
        for kind in _UNREAD
        if (counts := getattr(backends.retrievers.get(name), kind, None)) is not None
    }


def unread(before: Counts, after: Counts) -> tuple[str, ...]:
    """One sentence per retriever with unreadable replies between two counts."""
    sentences = []
    for (name, kind), counts in after.items():
        requests, unparsed = (now - then for now, then in zip(counts, before[name, kind]))
        if unparsed:
            sentences.append(_UNREAD[kind].format(unread=unparsed, requests=requests, name=name))
    return tuple(sentences)


def refused_to(names: Iterable[str], backends: Backends) -> tuple[str, ...]:
    """One sentence per re-ranker whose server refuses fields of its requests."""
    return tuple(
        f"The judgements of {name!r} {LACKING['refused'].format(fields=', '.join(fields))}"
        for name in names
        if (fields := getattr(backends.retrievers.get(name), "refuses", ()))
    )


def text_choices(names: Iterable[str], backends: Backends) -> tuple[str, ...]:
    """One sentence per re-ranker whose model gives no probabilities."""
    return tuple(
        f"Judgements of {name!r} {LACKING['choice']}"
        for name in names
        if getattr(backends.retrievers.get(name), "reads_texts", False)
    )


def lost_tools(flow: FlowSpec, backends: Backends) -> tuple[str, ...]:
    """One sentence if the model drops tools that a flow would offer. To find out, a server may be sent a request."""
    if not flow.offers_tools:
        return ()
    return tuple(
        f"{name!r} drops the tools that it is sent (its chat template has none, or its server refuses them), {WITHOUT_TOOLS[flow.offers_tools]}"
        for name in flow.llms
        if name in backends.llms and getattr(backends.llms[name], "calls_tools", None) is False
    )


class ReplyCounts:
    """Counts replies without a requested part, by model."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._lacking: Counter[tuple[str, str]] = Counter()
        self._questions: Counter[tuple[str, str]] = Counter()
        self._refused: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def count(self, episode: Episode) -> None:
        """Count the replies of an episode. An empty reply has no tokens, so its log-probabilities are not missing."""
        before = Counter(self._lacking)
        for step in episode.steps:
            request, reply = step.request, step.reply
            if not isinstance(request, Generate):
                continue
            self._count(request.llm, "model", "answered with the model" in reply.note)
            held_back = WITHHELD.search(_word(reply.finish_reason)) is not None
            self._count(request.llm, "withheld", held_back)
            blank = not reply.text.strip() and not reply.tool_calls
            self._count(request.llm, "blank", blank and not held_back)
            self._count(request.llm, "prompt", "has cut the prompt" in reply.note)
            refused = REFUSED.search(reply.note)
            self._count(request.llm, "refused", bool(refused))
            self._refused[request.llm].update(
                dict.fromkeys(refused[1].split(", ") if refused else ())
            )
            if isinstance(request, Choose):
                by_text = reply.choice is None or not reply.choice.probabilities
                self._count(request.llm, "choice", by_text)
            if request.options.get("logprobs"):
                self._count(request.llm, "logprobs", bool(reply.text) and not reply.logprobs)
            if request.options.get("response_format"):
                self._count(request.llm, "response_format", "response_format" in reply.note)
                self._count(request.llm, "form", any(sign in reply.note for sign in FORMLESS))
            if request.options.get("tool_choice") not in (None, "auto", "none"):
                self._count(request.llm, "tool_choice", "holds no call" in reply.note)
            if request.seed is not None:
                self._count(request.llm, "seed", " seed, so " in reply.note)
            if request.stop:
                self._count(request.llm, "stop", "ignores stop" in reply.note)
        self._questions.update(set(self._lacking - before))

    def _count(self, llm: str, option: str, lacking: bool) -> None:
        self._requests[llm, option] += 1
        self._lacking[llm, option] += lacking

    def sentences(self) -> tuple[str, ...]:
        """One sentence per model and missing option."""
        return tuple(
            f"{count} of {self._requests[llm, option]} replies of {llm!r} "
            f"{LACKING[option].format(fields=', '.join(self._refused[llm]))} "
            f"Questions concerned: {self._questions[llm, option]}."
            for (llm, option), count in self._lacking.items()
            if count
        )


def _word(reason: str) -> str:
    return reason.lower().replace("-", "_")


WITHOUT_TOOLS: Mapping[str, str] = {
    "auto": "so the functions are called in text; a model whose template has tools calls them itself.",
    "always": "so it is not told of any function; set protocol (of BARAG: calls) to auto or text to call them in text.",
}
"""Tool offer (``auto``, ``always``) → the consequence if the model drops the tools."""

LACKING: Mapping[str, str] = {
    "choice": (
        "give no probabilities of the options, so the option was read from the text; choose a model in this process or a server with "
        "logprobs."
    ),
    "logprobs": (
        "hold no log-probabilities, so nothing that is computed of them is known there, and a workflow that decides by them reads "
        "passages; choose a model or a server that gives them, or another signal."
    ),
    "response_format": (
        "were written without response_format, which the server refuses or ignores; the schema was put into the prompt."
    ),
    "form": (
        "have not the form that response_format asks for, as their notes say; use a simpler form, more max_tokens, or a model that "
        "follows it."
    ),
    "model": (
        "came from another model than those before, as the server says; answer the questions again with one model."
    ),
    "withheld": (
        "were refused by the model, or withheld by the server's filter in part or as a whole; what is left counts as the answer."
    ),
    "blank": "hold no text, which counts as the answer where it was the last one asked for.",
    "prompt": (
        "are to a prompt that the server cut, as its count of tokens shows; give the server a longer context (num_ctx of Ollama, "
        "max_model_len of vLLM), or send fewer or shorter passages."
    ),
    "refused": (
        "came without {fields}, which the server refuses: its own values hold there, stop strings are obeyed here, and system "
        "messages stand before the user's text."
    ),
    "seed": (
        "show that the server ignores seed or temperature, so their sampled texts cannot be repeated, or are not sampled."
    ),
    "tool_choice": (
        "hold no call although tool_choice demands one; choose a model or a server that calls tools, or call functions in text."
    ),
    "stop": (
        "went on after a stop string, which the server ignores; they were cut there, but all their tokens took time and count."
    ),
}
WITHHELD = re.compile("^refusal$|content_?filter|safety|sensitive|recitation|blocklist|prohibited")
"""Finish reasons of withheld answers."""

REFUSED = re.compile(r"The server refuses (.+?); it was asked without\.")
"""The note on a reply if the server refused fields of the request and gave it only without them."""

FORMLESS = (
    "does not fit the",
    "is none of the choices",
    "is not JSON",
    "reached max_tokens before its",
)
"""Phrases in the notes of replies that do not have the requested form (``core.formats``)."""
