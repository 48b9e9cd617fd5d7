"""RGB's one prompt for all its tests, as messages, and the flow that sends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.prompts import filled, prompt_text
from rallebench.core.types import Evidence, Flow, Generate, Message, Outcome, Question
from rallebench.experiments.papers.rgb.records import Language

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
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "options": options,
        }

    def as_json(self) -> dict[str, Any]:
        """For a fingerprint."""
        return asdict(self)


def text_of(name: str, folder: str = "", fields: tuple[str, ...] = ()) -> str:
    """RGB's prompt file ``name``, see ``prompt_text``. Raises BadFileError."""
    return prompt_text(FOLDER, name, folder, fields)


def names_of(language: Language) -> tuple[str, str]:
    """The files of a language: the system's text, and the user's."""
    return f"system-{language}.txt", f"user-{language}.txt"


def read_prompt(language: Language, folder: str = "", merged: bool = False) -> Prompt:
    """The prompt of a language. Raises BadFileError."""
    system, user = names_of(language)
    return Prompt(text_of(system, folder), text_of(user, folder, ("DOCS", "QUERY")), merged)


def messages(prompt: Prompt, question: Question) -> tuple[Message, ...]:
    """What is sent. Without documents the system's text is not."""
    user = filled(
        prompt.user, {"DOCS": JOIN.join(p.text for p in question.passages), "QUERY": question.text}
    )
    if not question.passages:
        return (Message("user", user),)
    if prompt.merged:
        return (Message("user", f"{prompt.system}\n\n{user}"),)
    return (Message("system", prompt.system), Message("user", user))


def answering(question: Question, llm: str, prompt: Prompt, decoding: Decoding) -> Flow:
    """Ask one question with its documents; the reply is the answer, as it came."""
    evidence = Evidence(question.text, question.passages)
    reply = yield Generate(
        llm, messages(prompt, question), evidence=evidence, **decoding.settings()
    )
    return Outcome(reply.text)
