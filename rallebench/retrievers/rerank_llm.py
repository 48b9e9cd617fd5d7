"""Re-ranking by a language model: passage by passage, or lists in a sliding window.

A model may answer anything. An answer that names no passage, or says neither yes nor no, leaves the order unchanged and
counts as ``unread``; a model with log-probabilities may give that of yes for each passage instead. Decoding is greedy. A model that enforces formats always names a passage or says yes or no; the
prompts are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.backends import LLM, Retriever
from rallebench.core.choosing import choose
from rallebench.core.errors import UsageError
from rallebench.core.prompts import fill_template
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Generate, Hit, Json, Message, digest
from rallebench.core.verdicts import Claim, read_verdict
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._asking import AskingCombined
from rallebench.retrievers._parts import MAX_DEPTH, search_parts
from rallebench.retrievers.rerank import TITLES, passage_text

DEPTH = 20
PASSAGE_WORDS = 300
"""Maximum words of a passage that a model reads, as in RankGPT's code."""

LETTERS = 10
"""Maximum characters of a word; text without spaces is cut by this."""

VERDICTS = ("Yes", "No", "yes", "no", "是", "否")
"""Enforceable answers to the pointwise prompt: the words of ``parse_verdict``, in the prompt's language."""

_NUMBER = re.compile(r"\d+")
_BRACKETED = re.compile(r"\[\s*(\d+)\s*\]")
RELEVANT = Claim(
    r"relevant", r"irrelevant|unrelated", r"passage|it|this|document", "相关", "无关|离题"
)
LISTWISE, POINTWISE, CHOICE = "listwise", "pointwise", "choice"
FIELDS = {
    LISTWISE: ("question", "passages", "count"),
    POINTWISE: ("question", "passage"),
    CHOICE: ("question", "passage"),
}
"""Way of ranking → fields of its prompt."""

YES_NO, CHINESE = ("Yes", "No"), ("是", "否")
"""Options of a typed decision; the Chinese ones for a prompt that names both."""


def parse_order(answer: str, count: int) -> list[int] | None:
    """Return the order (from 0) in an answer such as ``[2] > [1]``; unnamed passages follow in their old order.

    Reads numbers in brackets if there are any, else all numbers; skips repeated and out-of-range ones. None if no
    passage is named.

    >>> parse_order("[3] > [1]", 3), parse_order("2, 1", 3), parse_order("I cannot.", 3)
    ([2, 0, 1], [1, 0, 2], None)
    """
    texts = _BRACKETED.findall(answer) or _NUMBER.findall(answer)
    named = [int(text) - 1 for text in texts if len(text) < 9]
    order = list(dict.fromkeys(n for n in named if 0 <= n < count))
    return [*order, *(n for n in range(count) if n not in order)] if order else None


def parse_verdict(answer: str) -> bool | None:
    """Return True for yes and False for no; None for any other answer.

    >>> parse_verdict("Yes, it does."), parse_verdict("No."), parse_verdict("Perhaps")
    (True, False, None)
    """
    return read_verdict(answer, RELEVANT)


def list_form(count: int) -> Json:
    """Return the format of an order of at most ``count`` passages, as ``parse_order`` reads it.

    A passage may be repeated, because a format that forbids it has a state for every set of passages: too many from
    ten on.
    """
    number = rf"\[(?:{'|'.join(map(str, range(1, count + 1)))})\]"
    pattern = f"{number}(?: > {number}){{0,{count - 1}}}"
    return {"response_format": {"type": "regex", "regex": pattern}}


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """Settings of a re-ranker, as its form declares them."""

    llm: str = declare(
        str, "", required=True, about="a language model of the workspace", names="llm"
    )
    way: str = declare(
        str,
        LISTWISE,
        choices=tuple(FIELDS),
        about="a list at a time, or each passage alone: by a word, or by the probability of yes",
    )
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about="hits to judge")
    window: int = declare(int, 20, 2, 200, about="passages in one prompt")
    step: int = declare(
        int, 10, 1, 200, about="passages that the window moves, fewer than it holds"
    )
    passage_words: int = declare(int, PASSAGE_WORDS, 1, 100_000, about="words read per passage")
    titles: bool = declare(bool, True, about=TITLES)
    prompt: str = declare(str, "", about="file with another prompt", names="file")


class LLMReranked(AskingCombined):
    """The first ``depth`` hits of a retriever in a language model's order; deeper hits are never returned.

    ``listwise``: windows of ``window`` passages, moved by ``step`` from the end of the list to its front (RankGPT; Sun
    et al. 2023, arXiv:2304.09542); the score of a hit is 1 / rank. ``pointwise``: one yes or no per passage (as in Liang
    et al. 2022, arXiv:2211.09110); yes scores 1, an unreadable answer 0.5, no 0, and ties keep the retriever's order.
    ``choice``: the same prompt, scored by the probability of yes; of a model without log-probabilities as ``pointwise``.
    ``unread``: number of unreadable answers. ``texts``: number of choices read from a text.
    """

    prefix_stable = True

    def __init__(self, name: str, part: Retriever, llm: LLM, prompt: str, settings: Json) -> None:
        named = {key: value for key, value in settings.items() if key not in ("llm", "prompt")}
        named |= {"llm": llm.fingerprint, "prompt": digest(prompt)}
        super().__init__(name, "llm-rerank", part, llm, settings["llm"], named)
        self._prompt, self._settings = prompt, RerankSettings(**settings)
        self.texts = 0

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query, best first; none for a blank query. Raises the model's errors."""
        lists = [list(hits) for (hits,) in search_parts(self.parts, queries, self._settings.depth)]
        rank = self._listwise if self._settings.way == LISTWISE else self._pointwise
        return [tuple(hits[:k]) for hits in rank(queries, lists)]

    @property
    def judgements(self) -> tuple[int, int]:
        """Return its own judgements plus those of its part."""
        requests, unread = super().judgements
        return requests + self.requests, unread + self.unread

    @property
    def reads_texts(self) -> bool:
        """True if a model without log-probabilities had to choose by its text, here or in the part."""
        return super().reads_texts or self.texts > 0

    def _listwise(self, queries: Sequence[str], lists: list[list[Hit]]) -> list[list[Hit]]:
        window, step = self._settings.window, self._settings.step
        # all queries move their windows together, in one batch per position, so that no query waits for another
        places = [windows(len(hits), window, step) for hits in lists]
        for turn in range(max(map(len, places), default=0)):
            due = [i for i, place in enumerate(places) if turn < len(place)]
            parts = [lists[i][slice(*places[i][turn])] for i in due]
            prompts = [self._list_prompt(queries[i], part) for i, part in zip(due, parts)]
            answers = self._ask(prompts, [list_form(len(part)) for part in parts])
            for i, part, answer in zip(due, parts, answers):
                order = self._read(parse_order(answer, len(part)))
                if order is not None:
                    lists[i][slice(*places[i][turn])] = [part[n] for n in order]
        return [
            [Hit(hit.passage, 1.0 / rank) for rank, hit in enumerate(hits, 1)] for hits in lists
        ]

    def _pointwise(self, queries: Sequence[str], lists: list[list[Hit]]) -> list[list[Hit]]:
        pairs = [(query, hit) for query, hits in zip(queries, lists) for hit in hits]
        prompts = [self._pair_prompt(query, hit) for query, hit in pairs]
        if self._settings.way == CHOICE:
            values = iter(self._probabilities(prompts))
        else:
            form = {"response_format": {"type": "choice", "choices": VERDICTS}}
            values = iter(map(self._value, self._ask(prompts, [form] * len(prompts))))
        judged = [[Hit(hit.passage, next(values)) for hit in hits] for hits in lists]
        return [sorted(hits, key=lambda hit: -hit.score) for hits in judged]

    def _value(self, answer: str) -> float:
        """The score of an answer in words."""
        return {True: 1.0, None: 0.5, False: 0.0}[self._read(parse_verdict(answer))]

    def _probabilities(self, prompts: Sequence[str]) -> list[float]:
        """The probability of yes for each prompt; of a model without log-probabilities, the score of its answer."""
        options = CHINESE if all(word in self._prompt for word in CHINESE) else YES_NO
        requests = [choose("", (Message("user", prompt),), options) for prompt in prompts]
        values = []
        for reply in self.choose(requests):
            probability = reply.choice.probability(options[0]) if reply.choice else None
            self.texts += probability is None
            values.append(self._value(reply.text) if probability is None else probability)
        return values

    def _read(self, value: Any) -> Any:
        self.unread += value is None
        return value

    def _list_prompt(self, query: str, hits: Sequence[Hit]) -> str:
        passages = "\n\n".join(f"[{n}] {self._text(hit)}" for n, hit in enumerate(hits, 1))
        return fill_template(
            self._prompt, {"question": query, "passages": passages, "count": str(len(hits))}
        )

    def _pair_prompt(self, query: str, hit: Hit) -> str:
        return fill_template(self._prompt, {"question": query, "passage": self._text(hit)})

    def _text(self, hit: Hit) -> str:
        most = self._settings.passage_words
        words = passage_text(hit.passage, self._settings.titles).split()
        return " ".join(words[:most])[: most * LETTERS]

    def _ask(self, prompts: Sequence[str], forms: Sequence[Json]) -> list[str]:
        longest = 8 if self._settings.way == POINTWISE else 8 * self._settings.window
        requests = [
            Generate(
                "",
                (Message("user", prompt),),
                max_tokens=longest,
                temperature=0.0,
                forced=form,
                roomy=True,
            )
            for prompt, form in zip(prompts, forms)
        ]
        return self.ask(requests)


def windows(count: int, window: int, step: int) -> list[tuple[int, int]]:
    """Return (start, end) of each window over ``count`` passages, the last first; none if there is nothing to order.

    >>> windows(30, 20, 10), windows(5, 20, 10), windows(1, 20, 10)
    ([(10, 30), (0, 20)], [(0, 5)], [])
    """
    if count < 2:
        return []
    starts = [*range(count - window, 0, -step), 0]
    return [(start, min(start + window, count)) for start in starts]


def checked_prompt(name: str, way: str, prompt: str) -> str:
    """Return ``prompt`` if it has the fields of this way of ranking. Raises UsageError naming the missing field."""
    for field in FIELDS[way]:
        if field != "count" and f"{{{field}}}" not in prompt:
            raise UsageError(
                f"The prompt of the re-ranker {name!r} lacks {{{field}}}, which a {way} prompt must contain."
            )
    return prompt


def check_window(name: str, parts: int, settings: Json) -> None:
    """Raise UsageError if the windows would not overlap."""
    chosen = RerankSettings(**settings)
    if chosen.step >= chosen.window:
        raise UsageError(
            f"{name!r}: step is {chosen.step}; it must be less than window, {chosen.window}."
        )


@COMBINATIONS.register(
    "llm-rerank",
    parts=(1, 1),
    form=dataclass_form(RerankSettings),
    check=check_window,
    llm=True,
)
def llm_rerank(
    name: str,
    parts: Sequence[Retriever],
    settings: Json,
    llm: Any,
    prompt: Callable[[str], str],
) -> LLMReranked:
    """Re-ranking by a language model: listwise, pointwise, or by the probability of yes."""
    way = RerankSettings(**settings).way
    text = prompt(POINTWISE if way == CHOICE else way)
    return LLMReranked(name, parts[0], llm, checked_prompt(name, way, text), settings)
