"""RGB's one prompt for all its tests, as messages, and the flow that sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.prompts import filled, prompt_text
from rallebench.core.types import Evidence, Flow, Generate, Message, Outcome, Question
from rallebench.experiments.papers.rgb.records import Language

FOLDER = "suites/rgb"
JOIN = "\n"
"""Between two documents."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """``user`` holds ``{DOCS}`` and ``{QUERY}``. ``merged``: for models without a system role, the system's text
    comes before the user's, with a blank line between."""

    system: str
    user: str
    merged: bool = False


def names_of(language: Language) -> tuple[str, str]:
    """The files of a language: the system's text, and the user's."""
    return f"system-{language}.txt", f"user-{language}.txt"


def read_prompt(language: Language, folder: str = "", merged: bool = False) -> Prompt:
    """The prompt of a language. Raises BadFileError."""
    system, user = names_of(language)
    fields = ("DOCS", "QUERY")
    return Prompt(
        prompt_text(FOLDER, system, folder), prompt_text(FOLDER, user, folder, fields), merged
    )


def messages(prompt: Prompt, question: Question) -> tuple[Message, ...]:
    """The messages of a question. Without documents the system's text is not sent."""
    documents = JOIN.join(passage.text for passage in question.passages)
    user = filled(prompt.user, {"DOCS": documents, "QUERY": question.text})
    if not question.passages:
        return (Message("user", user),)
    if prompt.merged:
        return (Message("user", f"{prompt.system}\n\n{user}"),)
    return (Message("system", prompt.system), Message("user", user))


def answering(question: Question, llm: str, prompt: Prompt, decoding: Mapping[str, Any]) -> Flow:
    """Ask one question with its documents; the reply is the answer, as it came.

    ``decoding``: temperature, max_tokens, seed, and top_p, whose 0 leaves it to the model's entry.
    """
    reply = yield Generate(
        llm,
        messages(prompt, question),
        max_tokens=decoding["max_tokens"],
        temperature=decoding["temperature"],
        seed=decoding["seed"],
        options={"top_p": decoding["top_p"]} if decoding["top_p"] else {},
        evidence=Evidence(question.text, question.passages),
    )
    return Outcome(reply.text)
