"""RGB's one prompt for all its tests, as messages, and the flow that sends it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rallebench.errors import BadFileError
from rallebench.suites._rgb.records import Language
from rallebench.types import Evidence, Flow, Generate, Message, Outcome, Question
from rallebench.workspace import prompts_folder

FOLDER = "suites/rgb"
JOIN = "\n"
"""What stands between two documents."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """``user`` holds ``{DOCS}`` and ``{QUERY}``. ``merged``: for models without a system role, the system's text
    stands before the user's, with a blank line between."""

    system: str
    user: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Decoding:
    """How an answer is drawn; ``top_p`` 0 leaves it to the model's entry."""

    temperature: float = 0.7
    top_p: float = 0.0
    max_tokens: int = 256
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """As keywords of Generate."""
        options = {"top_p": self.top_p} if self.top_p else {}
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed, "options": options}

    def as_json(self) -> dict[str, Any]:
        """For a fingerprint."""
        return asdict(self)


def text_of(name: str, folder: str = "", fields: tuple[str, ...] = ()) -> str:
    """A prompt file of ``folder``, or the shipped one where it has none. Raises BadFileError.

    ``fields``: what must stand in it in braces.
    """
    own = Path(folder).expanduser() / name
    path = own if folder and own.is_file() else prompts_folder() / FOLDER / name
    if folder and not Path(folder).expanduser().is_dir():
        raise BadFileError(f"{folder} is no folder of prompts; it may hold {name} and its kin.")
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"The prompt {path} cannot be read ({error}).") from None
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def read_prompt(language: Language, folder: str = "", merged: bool = False) -> Prompt:
    """The prompt of a language. Raises BadFileError."""
    return Prompt(
        text_of(f"system-{language}.txt", folder), text_of(f"user-{language}.txt", folder, ("DOCS", "QUERY")), merged
    )


def filled(template: str, values: Mapping[str, str]) -> str:
    """``{NAME}`` replaced by its value; what a value holds in braces is not looked at.

    >>> filled("{DOCS} {QUERY} {other}", {"DOCS": "{QUERY}", "QUERY": "who"})
    '{QUERY} who {other}'
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


def messages(prompt: Prompt, question: Question) -> tuple[Message, ...]:
    """What is sent. Without documents the system's text is not."""
    user = filled(prompt.user, {"DOCS": JOIN.join(p.text for p in question.passages), "QUERY": question.text})
    if not question.passages:
        return (Message("user", user),)
    if prompt.merged:
        return (Message("user", f"{prompt.system}\n\n{user}"),)
    return (Message("system", prompt.system), Message("user", user))


def answering(question: Question, llm: str, prompt: Prompt, decoding: Decoding) -> Flow:
    """Ask one question with its documents; the reply is the answer, as it came."""
    evidence = Evidence(question.text, question.passages)
    reply = yield Generate(llm, messages(prompt, question), evidence=evidence, **decoding.settings())
    return Outcome(reply.text)
