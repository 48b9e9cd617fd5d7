"""The support of one answer for the page: each sentence with its verdict and its passage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rallebench.core.citing import marked_sentences, prompt_passages
from rallebench.core.support import AnswerSupport, Quotation, SentenceSupport
from rallebench.core.types import Episode, Passage
from rallebench.engine.store import RunFolder
from rallebench.engine.support_file import read_support

SentenceState = Literal["supported", "unsupported", "wrong", "unchecked"]


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence with its verdict. ``number``: the number of ``passage``, the one that supports it best; 0 for none."""

    sentence: SentenceSupport
    state: SentenceState
    number: int = 0
    passage: Passage | None = None


@dataclass(frozen=True, slots=True)
class ShownSupport:
    """The support of an answer by one model. ``checker``: its name, '' for the embedded head; ``note``: why nothing was
    checked."""

    checker: str
    sentences: tuple[ShownSentence, ...]
    quotations: tuple[Quotation, ...]
    note: str = ""

    def count(self, state: SentenceState) -> int:
        """Return the number of sentences in a state."""
        return sum(sentence.state == state for sentence in self.sentences)


def answer_support(run: RunFolder, episode: Episode) -> tuple[ShownSupport, ...]:
    """Return the stored support of an answer, by each model that checked it; of another answer to the question nothing."""
    texts = tuple(sentence.text for sentence in marked_sentences(episode.answer))
    passages = prompt_passages(episode)
    return tuple(
        _show(stored, passages)
        for stored in read_support(run, episode.qid)
        if tuple(sentence.text for sentence in stored.sentences) == texts
    )


def _show(stored: AnswerSupport, passages: tuple[Passage, ...]) -> ShownSupport:
    sentences = tuple(_show_sentence(sentence, passages) for sentence in stored.sentences)
    return ShownSupport(stored.checker, sentences, stored.quotations, stored.note)


def _show_sentence(sentence: SentenceSupport, passages: tuple[Passage, ...]) -> ShownSentence:
    number = sentence.best if sentence.best <= len(passages) else 0
    passage = passages[number - 1] if number else None
    if sentence.wrong:
        return ShownSentence(sentence, "wrong", number, passage)
    if sentence.supported is None:
        return ShownSentence(sentence, "unchecked")
    return ShownSentence(
        sentence, "supported" if sentence.supported else "unsupported", number, passage
    )
