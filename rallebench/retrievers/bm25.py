"""BM25, Lucene's variant, k1 0.9 and b 0.4, with bm25s (Lù 2024, arXiv:2407.03618): numpy, no Java."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.corpora.store import PassageStore
from rallebench.errors import MismatchError, MissingPackageError
from rallebench.retrievers import RETRIEVERS
from rallebench.tokens import FINGERPRINT, tokenize
from rallebench.types import Hit, Passage

K1, B = 0.9, 0.4
FOLDER = "bm25"


def _bm25s() -> Any:
    try:
        import bm25s
    except ImportError:
        raise MissingPackageError("bm25s", "and BM25 needs it") from None
    return bm25s


def build(folder: Path, passages: Iterable[Passage], *, k1: float = K1, b: float = B) -> dict[str, Any]:
    """Index ``"{title}, {text}"`` of the passages into ``folder``; return the parameters."""
    bm25s = _bm25s()
    vocabulary: dict[str, int] = {}
    documents: list[Any] = []
    for passage in passages:
        # Four bytes a token: the text itself is never held.
        documents.append(
            array(
                "i",
                (
                    vocabulary.setdefault(t, len(vocabulary))
                    for t in tokenize(f"{passage.title}, {passage.text}")
                ),
            )
        )
    if not vocabulary:
        vocabulary["\0"] = 0
    model = bm25s.BM25(method="lucene", k1=k1, b=b, backend="numpy")
    model.index(
        bm25s.tokenization.Tokenized(ids=documents, vocab=vocabulary),
        show_progress=False,
        create_empty_token=False,
    )
    model.save(str(folder / FOLDER), show_progress=False)
    return {"k1": k1, "b": b, "tokens": FINGERPRINT}


class BM25:
    """A loaded BM25 index; memory-mapped."""

    titled = True
    prefix_stable = True

    def __init__(self, name: str, folder: Path, fingerprint: str, parameters: Mapping[str, Any]) -> None:
        if parameters.get("tokens") != FINGERPRINT:
            raise MismatchError(
                f"The index {name!r} was built with the tokens {parameters.get('tokens')!r}, this version uses "
                f"{FINGERPRINT!r}; build it again with 'rallebench index'."
            )
        self.name = name
        self.fingerprint = fingerprint
        self._store = PassageStore(folder)
        self._pages: frozenset[str] | None = None
        self._model = _bm25s().BM25.load(str(folder / FOLDER), mmap=True, show_progress=False)
        self._vocabulary: dict[str, int] = self._model.vocab_dict

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Best first; ties go to the earlier passage. A query of which the corpus knows no word has no hits; for
        any other, passages that share no word come last with score 0, so that k beyond the corpus returns all."""
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> tuple[Hit, ...]:
        import numpy as np

        known = [token for token in tokenize(query) if token in self._vocabulary]
        if not known:
            return ()
        scores = self._model.get_scores(known)
        k = min(k, len(scores))
        # All that tie with the k-th are candidates, so that ties are cut in corpus order.
        rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        best = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return tuple(Hit(self._store[int(row)], float(scores[row])) for row in best)

    def page_ids(self) -> frozenset[str]:
        """Every page id of the corpus; reads the store once."""
        if self._pages is None:
            self._pages = self._store.page_ids()
        return self._pages

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()


@RETRIEVERS.register("bm25")
def open_bm25(name: str, folder: Path, manifest: Any, encoder: Any = None) -> BM25:
    """BM25 (Lucene variant, k1 0.9, b 0.4)."""
    return BM25(name, folder, manifest.fingerprint, manifest.parameters)
