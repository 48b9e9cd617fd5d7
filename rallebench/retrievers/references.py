"""What a chain is compared with: the passages it would have with no retrieval, by chance, and with the gold.

::

    nothing:my-index                   no passage at all: what the model knows by itself
    random:my-index?seed=1             passages drawn from the corpus, the same for the same query
    gold:my-index?questions=my-qa      the passages of the query's gold pages: what perfect retrieval would bring

All of them hand out the passages of the indexes they are made of, and ask none of these. Only the retriever
sees the gold: the flow gets passages, as from any other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from rallebench.core.answers import holds_answer
from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting
from rallebench.core.types import Example, Gold, Hit, Passage, digest
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import COMBINATIONS, Retriever
from rallebench.retrievers._parts import IDENTITIES, Combined

MAX_PARTS = 64
Row = tuple[int, int]
"""Which store, and which row of it."""


def stores_of(name: str, parts: Iterable[Any]) -> list[PassageStore]:
    """The passages of all indexes that ``parts`` are made of, in order, each once."""
    stores: list[PassageStore] = []
    for part in parts:
        if isinstance(inner := getattr(part, "parts", None), tuple):
            stores += stores_of(name, inner)
        elif (store := getattr(part, "passages", None)) is not None:
            stores.append(store)
        else:
            raise UsageError(
                f"{name!r} needs an index whose passages can be read; {part.name!r} has none."
            )
    return list({id(store): store for store in stores}.values())


def _ranked(passages: Iterable[Passage], k: int) -> tuple[Hit, ...]:
    """The first k different passages; their score is 1 / rank."""
    different: dict[Any, Passage] = {}
    for passage in passages:
        different.setdefault(IDENTITIES["passage"](passage), passage)
        if len(different) >= k:
            break
    return tuple(Hit(passage, 1.0 / rank) for rank, passage in enumerate(different.values(), 1))


class Reference(Combined):
    """Hands out what ``passages_of`` a query there are. A smaller k is a prefix of a larger one."""

    prefix_stable = True

    def __init__(
        self,
        name: str,
        kind: str,
        parts: Sequence[Retriever],
        settings: Mapping[str, Any],
        passages_of: Callable[[str], Iterable[Passage]],
    ) -> None:
        super().__init__(name, kind, parts, settings)
        self._passages_of = passages_of

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        return [_ranked(self._passages_of(query), k) if query.strip() else () for query in queries]


def drawn(stores: Sequence[PassageStore], seed: int, query: str) -> Iterator[Passage]:
    """All passages of the stores, drawn evenly and without repetition, by query and seed."""
    chosen = random.Random(int(digest([seed, query])[:16], 16))
    for row in shuffled(sum(map(len, stores)), chosen):
        for store in stores:
            if row < len(store):
                yield store[row]
                break
            row -= len(store)


def shuffled(n: int, chosen: random.Random) -> Iterator[int]:
    """0 … n - 1 in a random order (Fisher and Yates), made only as far as it is read.

    >>> sorted(shuffled(5, random.Random(0)))
    [0, 1, 2, 3, 4]
    """
    moved: dict[int, int] = {}
    for place in range(n):
        other = chosen.randrange(place, n)
        yield moved.get(other, other)
        here = moved.pop(place, place)
        if other != place:
            moved[other] = here


@dataclass(frozen=True, slots=True)
class _QueryGold:
    """What the gold names for a query: page ids in order, passage ids, and the accepted answers."""

    pages: tuple[str, ...]
    passages: frozenset[str]
    answers: tuple[str, ...]

    @classmethod
    def of(cls, golds: Sequence[Gold]) -> _QueryGold:
        """Of all questions that have one text, which share their gold."""
        named_pages = (
            (gold, page) for gold in golds for page in (*gold.titles, *sorted(gold.pages))
        )
        pages = dict.fromkeys(page for gold, page in named_pages if page in gold.pages)
        named = frozenset(chain.from_iterable(ids for gold in golds for ids in gold.passages))
        answers = dict.fromkeys(answer for gold in golds for answer in gold.answers)
        return cls(tuple(pages), named, tuple(answers))


class GoldPassages:
    """Where the passages of the questions' gold pages stand; the corpus is read once, to find them."""

    def __init__(
        self, stores: Sequence[PassageStore], questions: str, examples: Sequence[Example]
    ) -> None:
        golds: dict[str, list[Gold]] = {}
        for example in examples:
            golds.setdefault(example.question.text.strip(), []).append(example.gold)
        self._golds = {text: _QueryGold.of(same) for text, same in golds.items()}
        pages = {page for gold in self._golds.values() for page in gold.pages}
        named = {doc_id for gold in self._golds.values() for doc_id in gold.passages}
        if not pages and not named:
            raise UsageError(
                f"The dataset {questions!r} names no gold pages, so there are no oracle passages; "
                "choose a dataset with provenance."
            )
        golds_by_text = self._golds.items()
        self.fingerprint = digest(
            [[text, g.pages, sorted(g.passages), g.answers] for text, g in golds_by_text]
        )
        self._questions, self._stores = questions, stores
        self._of_page: dict[str, list[Row]] = {}
        self._of_id: dict[str, list[Row]] = {}
        for number, store in enumerate(stores):
            for row, passage in enumerate(store):
                if passage.page_id in pages:
                    self._of_page.setdefault(passage.page_id, []).append((number, row))
                if passage.doc_id in named:
                    self._of_id.setdefault(passage.doc_id, []).append((number, row))

    def of(self, query: str) -> list[Passage]:
        """Those that the gold names, then those that hold a gold answer, then the others; each in the order of the
        pages and, within a page, of the corpus. A page that the corpus lacks has none.

        Raises UsageError for a query that is not a question of the set.
        """
        gold = self._golds.get(query.strip())
        if gold is None:
            raise UsageError(
                f"{query[:80]!r} is not a question of {self._questions!r}, so its gold pages are not known; "
                "ask a question of that set, word for word."
            )
        rows = [row for page in gold.pages for row in self._of_page.get(page, ())]
        if not gold.pages:  # beside pages, passage ids may be another cut of the corpus: they count on those pages only
            rows = [row for doc_id in sorted(gold.passages) for row in self._of_id.get(doc_id, ())]
        passages = [self._stores[number][row] for number, row in dict.fromkeys(rows)]

        def order(p: Passage) -> tuple[bool, bool]:
            return p.doc_id not in gold.passages, not holds_answer(p.text, gold.answers)

        return sorted(passages, key=order)


@COMBINATIONS.register("nothing", parts=(1, MAX_PARTS), form={})
def nothing(name: str, parts: Sequence[Retriever], settings: Mapping[str, Any]) -> Reference:
    """No passages at all: the baseline 'closed book'."""
    return Reference(name, "nothing", parts, {}, lambda query: ())


@COMBINATIONS.register(
    "random",
    parts=(1, MAX_PARTS),
    form={"seed": Setting(int, 0, 0, 2**31 - 1, about="another seed draws other passages")},
)
def random_(name: str, parts: Sequence[Retriever], settings: Mapping[str, Any]) -> Reference:
    """Passages drawn by chance, the same for the same query: the baseline 'random passage'."""
    passages_of = partial(drawn, stores_of(name, parts), settings["seed"])
    return Reference(name, "random", parts, settings, passages_of)


@COMBINATIONS.register(
    "gold",
    parts=(1, MAX_PARTS),
    form={
        "questions": Setting(
            str,
            "",
            required=True,
            about="dataset (name or file) whose gold pages are handed out",
            names="dataset file",
        )
    },
    questions=True,
)
def gold(
    name: str, parts: Sequence[Retriever], settings: Mapping[str, Any], examples: Sequence[Example]
) -> Reference:
    """The passages of the question's gold pages: the baseline 'oracle passage'."""
    passages = GoldPassages(stores_of(name, parts), settings["questions"], examples)
    return Reference(name, "gold", parts, {"gold": passages.fingerprint}, passages.of)
