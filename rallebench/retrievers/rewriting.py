"""Queries that a language model writes before the search, and lists of hits for several queries at once.

::

    hyde:my-index?llm=my-llm          a passage that could answer the question is searched for (HyDE)
    multi-query:my-index?llm=my-llm   the question in other words, too; lists fused by rank (RAG-Fusion)
    step-back:my-index?llm=my-llm     a more general question, too
    decompose:my-index?llm=my-llm     simpler questions, each with its share of the hits
    lines:my-index                    the lines of a query that a chain wrote, without a model

A reply without a query counts as unread, and the question is searched as it is. Decoding is greedy, but for several
passages of HyDE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.backends import LLM, Retriever
from rallebench.core.errors import UsageError
from rallebench.core.prompts import fill_template
from rallebench.core.settings import Setting, dataclass_form, declare
from rallebench.core.types import Generate, Hit, Json, Message, digest
from rallebench.encoders import Role
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._asking import AskingCombined
from rallebench.retrievers._parts import IDENTITIES, MAX_DEPTH, Combined, search_parts
from rallebench.retrievers.dense import Dense
from rallebench.retrievers.fusion import CONSTANT, by_rank

FOLDER = "rewrite"
"""Folder of the prompts."""

DEPTH = 100
MAX_QUERIES = 16
WARMTH = 0.7
"""Temperature of several hypothetical passages, as in the paper."""

_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、]|[Qq]\d{1,2}[.:])\s*")
_QUOTES = "\"'“”‘’「」『』`"


def read_queries(reply: str, question: str, most: int) -> list[str]:
    """Return the different queries of a reply, one a line, without list marks and quotes; the question itself is left out.

    >>> read_queries("1. moons of Saturn\\n\\n- “Titan”\\n2) Who?", "who?", 3)
    ['moons of Saturn', 'Titan']
    """
    queries: dict[str, str] = {}
    for line in reply.splitlines():
        query = _MARK.sub("", line).strip().strip(_QUOTES).strip()
        if query and query.casefold() != question.strip().casefold():
            queries.setdefault(query.casefold(), query)
    return list(queries.values())[:most]


def take_turns(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge lists in turns: the first hit of each, then the second; the score is 1 / rank in the own list."""
    ranked = [Hit(hit.passage, 1.0 / rank) for hits in lists for rank, hit in enumerate(hits, 1)]
    merged: dict[Any, Hit] = {}
    for hit in sorted(ranked, key=lambda hit: -hit.score):
        merged.setdefault(IDENTITIES["passage"](hit.passage), hit)
    return list(merged.values())


def fuse_evenly(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Fuse lists by reciprocal rank with equal weights of sum 1; a single list keeps its scores."""
    if len(lists) == 1:
        return list(lists[0])
    weights = [1.0 / len(lists)] * len(lists)
    return by_rank(lists, weights, CONSTANT, IDENTITIES["passage"])


MERGES: Mapping[str, Callable[[Sequence[Sequence[Hit]]], list[Hit]]] = {
    "fuse": fuse_evenly,
    "turns": take_turns,
}
"""Way of merging the lists of several queries."""


def search_groups(
    part: Retriever, groups: Sequence[Sequence[str]], depth: int, merge: str
) -> list[list[Hit]]:
    """Search all queries of all groups at once; return one merged list per group, empty for a group without queries."""
    flat = [query for group in groups for query in group]
    lists = iter(search_parts([part], flat, depth) if flat else ())
    return [
        MERGES[merge]([hits for (hits,) in (next(lists) for _ in group)]) if group else []
        for group in groups
    ]


@dataclass(frozen=True, slots=True)
class LinesSettings:
    """Settings of the search for several lines."""

    merge: str = declare(
        str,
        "fuse",
        choices=tuple(MERGES),
        about="fuse: by reciprocal rank; turns: the first hit of each line, then the second",
    )
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about="hits requested for each line")


class Lines(Combined):
    """Searches each line of a query and merges the lists; a query of one line is searched as it is."""

    prefix_stable = True

    def __init__(self, name: str, part: Retriever, settings: Json) -> None:
        super().__init__(name, "lines", [part], settings)
        self._settings = LinesSettings(**settings)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query, best first; none for a blank query."""
        groups = [read_queries(query, "", MAX_QUERIES) for query in queries]
        lists = search_groups(self.parts[0], groups, self._settings.depth, self._settings.merge)
        return [tuple(hits[:k]) for hits in lists]


@COMBINATIONS.register("lines", parts=(1, 1), form=dataclass_form(LinesSettings))
def lines(name: str, parts: Sequence[Retriever], settings: Json) -> Lines:
    """Each line of a query searched, lists merged: for the queries that an action of a chain wrote."""
    return Lines(name, parts[0], settings)


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """Settings of queries that a language model writes."""

    llm: str = declare(
        str, "", required=True, about="a language model of the workspace", names="llm"
    )
    count: int = declare(
        int, 4, 1, MAX_QUERIES, about="most queries that the model writes for a question"
    )
    question: bool = declare(bool, True, about="search the question itself, too")
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about="hits requested for each query")
    max_tokens: int = declare(int, 256, 1, 8192, about="longest reply of the model")
    prompt: str = declare(str, "", about="file with another prompt", names="file")


class Rewritten(AskingCombined):
    """A retriever whose queries are written by a language model. ``merge``: the way of merging their lists."""

    prefix_stable = True

    def __init__(
        self, name: str, kind: str, part: Retriever, llm: LLM, prompt: str, settings: Json
    ) -> None:
        if "{question}" not in prompt:
            raise UsageError(f"The prompt of the retriever {name!r} lacks {{question}}.")
        named = {key: value for key, value in settings.items() if key not in ("llm", "prompt")}
        named |= {"llm": llm.fingerprint, "prompt": digest(prompt)}
        super().__init__(name, kind, part, llm, settings["llm"], named)
        self._kind, self._prompt, self._settings = kind, prompt, RewriteSettings(**settings)

    @property
    def rewrites(self) -> tuple[int, int]:
        """Return its own replies and those of its part."""
        requests, unread = super().rewrites
        return requests + self.requests, unread + self.unread

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query, best first; none for a blank query. Raises the model's errors."""
        filled = [number for number, query in enumerate(queries) if query.strip()]
        questions = [queries[number] for number in filled]
        results: list[tuple[Hit, ...]] = [()] * len(queries)
        for number, hits in zip(filled, self._lists(questions)):
            results[number] = tuple(hits[:k])
        return results

    def _lists(self, questions: Sequence[str]) -> list[list[Hit]]:
        settings = self._settings
        replies = self.ask([self._request(question) for question in questions])
        written = [
            self._count(read_queries(reply, question, settings.count), reply, question)
            for question, reply in zip(questions, replies)
        ]
        groups = [
            [question, *own] if settings.question or not own else own
            for question, own in zip(questions, written)
        ]
        merge = "turns" if self._kind == "decompose" else "fuse"
        return search_groups(self.parts[0], groups, settings.depth, merge)

    def _count(self, queries: list[str], reply: str, question: str) -> list[str]:
        """Return the queries; count a reply without any, unless it repeats the question."""
        repeated = read_queries(reply, "", 1)
        self.unread += not queries and not repeated
        return queries

    def _request(self, question: str, seed: int | None = None) -> Generate:
        settings = self._settings
        values = {"question": question, "count": str(settings.count)}
        return Generate(
            "",
            (Message("user", fill_template(self._prompt, values)),),
            max_tokens=settings.max_tokens,
            temperature=0.0 if seed is None else WARMTH,
            seed=seed,
            roomy=True,
        )


class Hypothetical(Rewritten):
    """HyDE: the search for passages like those that a model writes as an answer (Gao et al. 2022, arXiv:2212.10496).

    A dense index searches the mean of their vectors and the question's, as in the paper; any other retriever searches
    each text, and the lists are fused by rank.
    """

    def _lists(self, questions: Sequence[str]) -> list[list[Hit]]:
        settings, part = self._settings, self.parts[0]
        seeds: Sequence[int | None] = range(settings.count) if settings.count > 1 else (None,)
        replies = iter(self.ask([self._request(q, seed) for q in questions for seed in seeds]))
        groups: list[list[tuple[str, Role]]] = []
        for question in questions:
            passages = [" ".join(next(replies).split()) for _ in seeds]
            self.unread += sum(not passage for passage in passages)
            written: list[tuple[str, Role]] = [(text, "passage") for text in passages if text]
            own = settings.question or not written
            first: list[tuple[str, Role]] = [(question, "query")] if own else []
            groups.append([*first, *written])
        if isinstance(part, Dense):
            return [list(hits) for hits in part.search_means(groups, settings.depth)]
        texts = [[text for text, _ in group] for group in groups]
        return search_groups(part, texts, settings.depth, "fuse")


def _count_form(count: int, about: str) -> dict[str, Setting]:
    """Return the settings with another meaning and default of ``count``."""
    form = dataclass_form(RewriteSettings)
    return {**form, "count": replace(form["count"], default=count, about=about)}


Prompts = Callable[[str], str]
"""Name of a prompt → its text."""


@COMBINATIONS.register(
    "hyde",
    parts=(1, 1),
    form=_count_form(1, "passages that the model writes; several are sampled with fixed seeds"),
    llm=True,
    prompts=FOLDER,
)
def hyde(
    name: str, parts: Sequence[Retriever], settings: Json, llm: LLM, prompt: Prompts
) -> Rewritten:
    """A hypothetical passage, written by a language model, searched with the question (HyDE)."""
    return Hypothetical(name, "hyde", parts[0], llm, prompt("hyde"), settings)


@COMBINATIONS.register(
    "multi-query",
    parts=(1, 1),
    form=dataclass_form(RewriteSettings),
    llm=True,
    prompts=FOLDER,
)
def multi_query(
    name: str, parts: Sequence[Retriever], settings: Json, llm: LLM, prompt: Prompts
) -> Rewritten:
    """The question in other words, too, lists fused by rank (RAG-Fusion; Rackauckas 2024, arXiv:2402.03367)."""
    return Rewritten(name, "multi-query", parts[0], llm, prompt("multi-query"), settings)


@COMBINATIONS.register(
    "step-back",
    parts=(1, 1),
    form=_count_form(1, "more general questions that are read from the reply"),
    llm=True,
    prompts=FOLDER,
)
def step_back(
    name: str, parts: Sequence[Retriever], settings: Json, llm: LLM, prompt: Prompts
) -> Rewritten:
    """A more general question, too, lists fused by rank (step-back; Zheng et al. 2023, arXiv:2310.06117)."""
    return Rewritten(name, "step-back", parts[0], llm, prompt("step-back"), settings)


@COMBINATIONS.register(
    "decompose",
    parts=(1, 1),
    form=dataclass_form(RewriteSettings),
    llm=True,
    prompts=FOLDER,
)
def decompose(
    name: str, parts: Sequence[Retriever], settings: Json, llm: LLM, prompt: Prompts
) -> Rewritten:
    """Simpler questions searched one by one; the hits take turns, so that each question has its share."""
    return Rewritten(name, "decompose", parts[0], llm, prompt("decompose"), settings)
