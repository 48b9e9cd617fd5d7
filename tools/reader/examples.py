"""Questions → groups: a question with one window of its paragraph, or with several windows to choose among.

Windows are read side by side and scored together (the shared normalisation of Clark and Gardner
2018, arXiv:1710.10723): the answer must win over every place of every window and over saying
nothing, and where no window holds it, saying nothing must win.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.reader.sources import Context, Question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_QUESTION = 40
"""Tokens of a question; the rest of a longer one is cut."""

DEPTH = 8
"""Number of distractors, taken from the paragraphs most similar to the question."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training. ``shares``: set → how often its answerable questions are used (a fraction: that
    share of them); ``unanswerable``: the same for questions without an answer; ``elsewhere``: how often an
    answerable question is asked once more of one paragraph that does not hold its answer; ``windows``: how many
    windows a question gets → weight; ``absent``: the share of those with several whose own paragraph is left out;
    ``width``: the least and most tokens of a sequence; ``rate``: the learning rate at its height; ``falls``: how it
    falls, see ``loop.rate_at``; ``tokens``: in a batch, with padding."""

    name: str
    rate: float
    shares: Mapping[str, float]
    unanswerable: float
    elsewhere: float
    windows: Mapping[int, float]
    absent: float
    width: tuple[int, int]
    falls: tuple[tuple[int, int], ...]
    tokens: int = 1800


# From the base model: some questions with two or four windows side by side, to learn to choose among passages.
SIDE_BY_SIDE = Stage(
    "side-by-side",
    rate=2e-4,
    shares={"squad_dev": 2.0, "squadshifts_new_wiki": 1.2, "qed_nq": 2.0, "qamr": 0.3},
    unanswerable=0.8,
    elsewhere=0.0,
    windows={1: 0.75, 2: 0.15, 4: 0.1},
    absent=0.2,
    width=(120, 160),
    falls=((1187, 1116),),
    tokens=3600,
)
# From the base model: short windows, one a question, so that a batch holds many questions.
SHORT = Stage(
    "short",
    rate=2e-4,
    shares={"squad_dev": 3.2, "squadshifts_new_wiki": 3.2, "qed_nq": 6.4, "qamr": 0.56},
    unanswerable=1.92,
    elsewhere=0.4,
    windows={1: 1.0},
    absent=0.0,
    width=(115, 150),
    falls=((1560, 1404),),
    tokens=3600,
)
# From a mean of these trainings: some questions with three windows.
MIXED = Stage(
    "mixed",
    rate=1e-4,
    shares={"squad_dev": 2.0, "squadshifts_new_wiki": 2.0, "qed_nq": 3.0, "qamr": 0.35},
    unanswerable=1.2,
    elsewhere=0.2,
    windows={1: 0.9, 3: 0.1},
    absent=0.2,
    width=(110, 190),
    falls=((1700, 1530), (950, 573)),
)


@dataclass(frozen=True, slots=True)
class Window:
    """Token ids of ``[CLS] question [SEP] window [SEP]``; ``context``: the first place of the window."""

    ids: tuple[int, ...]
    context: int


@dataclass(frozen=True, slots=True)
class Group:
    """The windows of one question; ``answer``: (window, first, last place), None where there is none."""

    windows: tuple[Window, ...]
    answer: tuple[int, int, int] | None


class Paragraphs:
    """The training paragraphs as tokens, and for every question those that look like it."""

    def __init__(self, contexts: Sequence[Context], tokenizer: Any) -> None:
        self.contexts = contexts
        encoded = tokenizer(
            [c.text for c in contexts],
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        self.ids: list[list[int]] = encoded["input_ids"]
        self.offsets: list[list[tuple[int, int]]] = encoded["offset_mapping"]
        self.bare = [c.text.lower() for c in contexts]
        self._tokenizer = tokenizer
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id

    def question_ids(self, questions: Sequence[str]) -> list[list[int]]:
        """Token ids of questions, cut at MAX_QUESTION."""
        encoded = self._tokenizer(list(questions), add_special_tokens=False, verbose=False)[
            "input_ids"
        ]
        return [ids[:MAX_QUESTION] for ids in encoded]

    def alike(self, questions: Sequence[str]) -> NDArray[np.int64]:
        """(questions, DEPTH + 1) numbers of the paragraphs that BM25 ranks first."""
        import bm25s

        index = bm25s.BM25(method="lucene")
        settings: dict[str, Any] = {"stopwords": "en", "show_progress": False}
        index.index(
            bm25s.tokenize([c.text for c in self.contexts], **settings), show_progress=False
        )
        queries = bm25s.tokenize(list(questions), **settings)
        depth = min(DEPTH + 1, len(self.contexts))
        numbers: NDArray[np.int64] = index.retrieve(queries, k=depth, show_progress=False).documents
        return numbers

    def place_of(self, number: int, text: str, start: int) -> tuple[int, int] | None:
        """(first, last) token of a span of characters; None where no token lies in it."""
        stop = start + len(text)
        inside = [i for i, (a, b) in enumerate(self.offsets[number]) if a < stop and b > start]
        return (inside[0], inside[-1]) if inside else None

    def window(
        self,
        number: int,
        question_ids: Sequence[int],
        room: int,
        rng: random.Random,
        span: tuple[int, int] | None,
    ) -> tuple[Window, int]:
        """A sequence of at most ``room`` tokens around ``span`` (anywhere without one), and what to add to a
        token's place in the paragraph to get its place in the sequence."""
        ids = self.ids[number]
        length = max(8, room - len(question_ids) - 3)
        begin = 0
        if len(ids) > length:
            least, most = 0, len(ids) - length
            if span is not None:
                least, most = max(least, span[1] + 1 - length), min(most, span[0])
            begin = rng.randint(least, max(least, most))
        cut = ids[begin : begin + length]
        context = len(question_ids) + 2
        return Window((self.cls, *question_ids, self.sep, *cut, self.sep), context), context - begin


def groups_of(paragraphs: Paragraphs, stage: Stage, rng: random.Random) -> list[Group]:
    """The groups of one stage, shuffled."""
    picked = list(_picked(paragraphs.contexts, stage, rng))
    rng.shuffle(picked)
    texts = [_worded(question.text, rng) for _, question, _ in picked]
    question_ids = paragraphs.question_ids(texts)
    alike = paragraphs.alike([question.text for _, question, _ in picked])
    by_title: dict[str, list[int]] = {}
    for number, context in enumerate(paragraphs.contexts):
        by_title.setdefault(context.title, []).append(number)
    sizes, weights = list(stage.windows), list(stage.windows.values())
    groups = []
    for row, (number, question, elsewhere) in enumerate(picked):
        context = paragraphs.contexts[number]
        size = 1 if elsewhere or context.source == "qamr" else rng.choices(sizes, weights)[0]
        room = rng.randint(*stage.width)
        absent = elsewhere or (size > 1 and rng.random() < stage.absent)
        others = _others(paragraphs, number, question, alike[row], by_title[context.title], rng)
        # Of several annotators' answers the first is the original one; the others only check it.
        group = _group(
            paragraphs,
            number,
            question.answers[:1],
            question_ids[row],
            size,
            room,
            absent,
            others,
            rng,
        )
        if group is not None:
            groups.append(group)
    return groups


def _picked(
    contexts: Sequence[Context], stage: Stage, rng: random.Random
) -> Iterator[tuple[int, Question, bool]]:
    """(number of the paragraph, question, whether it is asked of another paragraph)."""
    for number, context in enumerate(contexts):
        for question in context.questions:
            share = (
                stage.shares.get(context.source, 0.0) if question.answers else stage.unanswerable
            )
            for _ in range(_times(share, rng)):
                yield number, question, False
            if question.answers and context.source != "qamr":
                for _ in range(_times(stage.elsewhere, rng)):
                    yield number, question, True


def _times(share: float, rng: random.Random) -> int:
    return int(share) + (rng.random() < share % 1)


def _worded(text: str, rng: random.Random) -> str:
    """A fifth of the questions lose their mark; the encoder knows no capitals anyway."""
    return text.rstrip("? ") if rng.random() < 0.2 else text


def _others(
    paragraphs: Paragraphs,
    number: int,
    question: Question,
    alike: Sequence[int],
    same: Sequence[int],
    rng: random.Random,
) -> Iterator[int]:
    """Paragraphs without the answer, each once: mostly those like the question, some of the same article."""
    answers = [text.lower() for text, _ in question.answers]
    near = [int(n) for n in alike]
    rng.shuffle(near)
    seen = {number}
    for _ in range(50):
        pool = near if near and rng.random() < 0.75 else None
        candidate = (
            pool.pop()
            if pool
            else rng.choice(same)
            if rng.random() < 0.8
            else rng.randrange(len(paragraphs.contexts))
        )
        if candidate in seen or paragraphs.contexts[candidate].source == "qamr":
            continue
        seen.add(candidate)
        if not any(answer in paragraphs.bare[candidate] for answer in answers):
            yield candidate


def _group(
    paragraphs: Paragraphs,
    number: int,
    answers: Sequence[tuple[str, int]],
    question_ids: Sequence[int],
    size: int,
    room: int,
    absent: bool,
    others: Iterator[int],
    rng: random.Random,
) -> Group | None:
    span = None
    if answers:
        span = paragraphs.place_of(number, *answers[0])
        if span is None or span[1] - span[0] >= 40:
            return None
    numbers = [] if absent else [number]
    for other in others:
        if len(numbers) >= size:
            break
        numbers.append(other)
    if len(numbers) < size:
        return None
    rng.shuffle(numbers)
    windows, answer = [], None
    for place, n in enumerate(numbers):
        own = span if n == number else None
        sequence, shift = paragraphs.window(n, question_ids, room, rng, own)
        windows.append(sequence)
        if own is not None:
            answer = (place, own[0] + shift, own[1] + shift)
            if answer[2] >= len(sequence.ids) - 1:
                return None
    return Group(tuple(windows), answer)
