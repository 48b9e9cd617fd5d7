"""Reference retrievers to compare a chain with: no passages, random passages, gold passages.

::

    nothing:my-index                   no passages: the model's own knowledge
    random:my-index?seed=1             random passages of the corpus, the same for the same query
    gold:my-index?questions=my-qa      the passages of the query's gold pages: perfect retrieval

They return passages of the underlying indexes without searching these. Only the retriever sees the gold; the flow gets
passages, as from any other retriever.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from rallebench.core.answers import holds_answer
from rallebench.core.backends import Retriever
from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting
from rallebench.core.types import Example, Gold, Hit, Json, Passage, digest
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._parts import IDENTITIES, Combined

MAX_PARTS = 64
Row = tuple[int, int]
"""A store's number, and a row in it."""


def passage_stores(name: str, parts: Iterable[Any]) -> list[PassageStore]:
    """Return the passage stores of all indexes behind ``parts``, in order, without duplicates."""
    stores: list[PassageStore] = []
    for part in parts:
        if isinstance(inner := getattr(part, "parts", None), tuple):
            stores += passage_stores(name, inner)
        elif (store := getattr(part, "passages", None)) is not None:
            stores.append(store)
        else:
            raise UsageError(
                f"{name!r} needs an index whose passages can be read; {part.name!r} has none."
            )
    return list({id(store): store for store in stores}.values())


def _number_hits(passages: Iterable[Passage], k: int) -> tuple[Hit, ...]:
    """Return the first k distinct passages as hits; the score is 1 / rank."""
    different: dict[Any, Passage] = {}
    for passage in passages:
        different.setdefault(IDENTITIES["passage"](passage), passage)
        if len(different) >= k:
            break
    return tuple(Hit(passage, 1.0 / rank) for rank, passage in enumerate(different.values(), 1))


class Reference(Combined):
    """Returns the passages that ``passages_of`` yields for a query. A smaller k is a prefix of a larger one."""

    prefix_stable = True

    def __init__(
        self,
        name: str,
        kind: str,
        parts: Sequence[Retriever],
        settings: Json,
        passages_of: Callable[[str], Iterable[Passage]],
    ) -> None:
        super().__init__(name, kind, parts, settings)
        self._passages_of = passages_of

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        return [
            _number_hits(self._passages_of(query), k) if query.strip() else () for query in queries
        ]


def random_passages(stores: Sequence[PassageStore], seed: int, query: str) -> Iterator[Passage]:
    """Yield all passages of the stores in a random order that depends on query and seed."""
    chosen = random.Random(int(digest([seed, query])[:16], 16))
    for row in random_order(sum(map(len, stores)), chosen):
        for store in stores:
            if row < len(store):
                yield store[row]
                break
            row -= len(store)


def random_order(n: int, chosen: random.Random) -> Iterator[int]:
    """Yield 0 … n - 1 in a random order (Fisher and Yates), generated lazily.

    >>> sorted(random_order(5, random.Random(0)))
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
    """The gold of a query: page ids in order, passage ids, and the accepted answers."""

    pages: tuple[str, ...]
    passages: frozenset[str]
    answers: tuple[str, ...]

    @classmethod
    def of(cls, golds: Sequence[Gold]) -> _QueryGold:
        """Merge the gold of all questions with the same text."""
        named_pages = (
            (gold, page) for gold in golds for page in (*gold.titles, *sorted(gold.pages))
        )
        pages = dict.fromkeys(page for gold, page in named_pages if page in gold.pages)
        named = frozenset(chain.from_iterable(ids for gold in golds for ids in gold.passages))
        answers = dict.fromkeys(answer for gold in golds for answer in gold.answers)
        return cls(tuple(pages), named, tuple(answers))


class GoldPassages:
    """Look-up of the passages on the questions' gold pages; the corpus is read once."""

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
        """Return gold passages, then passages with a gold answer, then the rest of the gold pages; each in the order of the
        pages and, within a page, of the corpus. Pages missing from the corpus are skipped.

        Raises UsageError for a query that is not a question of the set.
        """
        gold = self._golds.get(query.strip())
        if gold is None:
            raise UsageError(
                f"{query[:80]!r} is not a question of {self._questions!r}, so its gold pages are unknown; "
                "ask a question of that set, word for word."
            )
        rows = [row for page in gold.pages for row in self._of_page.get(page, ())]
        if not gold.pages:  # passage ids may be from another chunking of the corpus, so they count only on the gold pages
            rows = [row for doc_id in sorted(gold.passages) for row in self._of_id.get(doc_id, ())]
        passages = [self._stores[number][row] for number, row in dict.fromkeys(rows)]

        def order(p: Passage) -> tuple[bool, bool]:
            return p.doc_id not in gold.passages, not holds_answer(p.text, gold.answers)

        return sorted(passages, key=order)


@COMBINATIONS.register("nothing", parts=(1, MAX_PARTS), form={})
def nothing(name: str, parts: Sequence[Retriever], settings: Json) -> Reference:
    """No passages: the baseline 'closed book'."""
    return Reference(name, "nothing", parts, {}, lambda query: ())


@COMBINATIONS.register(
    "random",
    parts=(1, MAX_PARTS),
    form={"seed": Setting(int, 0, 0, 2**31 - 1, about="another seed draws other passages")},
)
def random_(name: str, parts: Sequence[Retriever], settings: Json) -> Reference:
    """Random passages, the same for the same query: the baseline 'random passage'."""
    passages_of = partial(random_passages, passage_stores(name, parts), settings["seed"])
    return Reference(name, "random", parts, settings, passages_of)


@COMBINATIONS.register(
    "gold",
    parts=(1, MAX_PARTS),
    form={
        "questions": Setting(
            str,
            "",
            required=True,
            about="dataset (name or file) whose gold pages are returned",
            names="dataset file",
        )
    },
    questions=True,
)
def gold(
    name: str, parts: Sequence[Retriever], settings: Json, examples: Sequence[Example]
) -> Reference:
    """The passages of the question's gold pages: the baseline 'oracle passage'."""
    passages = GoldPassages(passage_stores(name, parts), settings["questions"], examples)
    return Reference(name, "gold", parts, {"gold": passages.fingerprint}, passages.of)
