"""Tasks that a span cannot answer: verdicts on claims, and the choice of a title.

Both compare texts by the vectors of the unchanged encoder and by shared rare words.
"""

from __future__ import annotations

import math

from rallebench.reader import ReaderAnswer, Task, verdict
from rallebench.reader.similarity import Vectors, choose_candidates, rank, telling_words
from rallebench.reader.text import Rarity, words


class Comparer:
    """Judges claims and chooses titles. The encoder is loaded for the first task that needs it."""

    def __init__(self, rarity: Rarity) -> None:
        self._rarity = rarity
        self._vectors: Vectors | None = None

    def verdict(self, task: Task) -> ReaderAnswer:
        """Return the first label if nothing differs, the second if something does, '' if no sentence is about the claim."""
        labels = task.labels or ("Yes", "No")
        candidates = choose_candidates(task.passages, telling_words(task.question, self._rarity))
        if not candidates:
            return ReaderAnswer("", 0.0)
        vectors = self._load_vectors().of([task.question, *(s.near_text for s in candidates)])
        ranked = rank(task.question, candidates, vectors)
        best = ranked[0]
        if best.sentence.around < 0.15 and best.similarity < 0.3:
            text = labels[2] if len(labels) > 2 else ""
            return ReaderAnswer(text, 0.0, best.sentence.passage, best.sentence.text)
        differing = verdict.differences(words(task.question), ranked)
        sure = verdict.confidence(differing)
        return ReaderAnswer(
            labels[bool(differing)], sure, best.sentence.passage, best.sentence.text
        )

    def title(self, task: Task) -> ReaderAnswer:
        """Return the title whose text is most similar to the question; ties: the earlier title."""
        query = task.context or task.question
        mention = {w.stem for w in words(task.question) if w.is_word}
        texts = {title: title for title in task.titles}
        for passage in task.passages:
            if passage.title in texts:
                texts[passage.title] = f"{passage.title}. {passage.text}"
        vectors = self._load_vectors().of([query, *texts.values()])
        target = vectors[query]

        def value(place: int, title: str) -> float:
            inside = {w.stem for w in words(title) if w.is_word}
            shared = len(mention & inside) / (len(mention) or 1)
            return round(float(vectors[texts[title]] @ target), 4) + 0.3 * shared - 0.01 * place

        values = [(value(i, title), -i, title) for i, title in enumerate(task.titles)]
        best, _, title = max(values)
        spread = sum(math.exp(8 * (v - best)) for v, _, _ in values)
        at = next((i for i, passage in enumerate(task.passages) if passage.title == title), -1)
        return ReaderAnswer(title, 1 / spread, at, title)

    def _load_vectors(self) -> Vectors:
        if self._vectors is None:
            from rallebench.encoders.minilm import MiniLM

            self._vectors = Vectors(MiniLM())
        return self._vectors
