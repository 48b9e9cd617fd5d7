"""The extractive reader without training: the passage, the sentence, then the shortest span that fits.

Sentences are ranked by MiniLM similarity and shared rare words; the spans of the best ones are
ranked by a small log-linear model over hand-made features. A later trained reader takes this
module's place behind the same ``read``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rallebench.encoders import Encoder
from rallebench.reader import REFUSAL, Found, Task, verdict
from rallebench.reader.candidates import Setting, spans
from rallebench.reader.expect import DATE, NUMBER, PERSON, PLACE, YESNO, Expected, expect
from rallebench.reader.similarity import Ranked, Sentence, Vectors, candidates_of, rank, telling_words
from rallebench.reader.text import FUNCTION_WORDS, Rarity, clean, words
from rallebench.reader.weights import WEIGHTS

if TYPE_CHECKING:
    from rallebench.reader.similarity import Vector

VERSION = 1
REFUSE_BELOW = 0.07
"""An answer less likely right than this is withheld: on the development questions that declines a
quarter of those without an answer and loses 2 % of the right answers."""

SOFT_FROM = 0.55
"""Two words whose vectors are closer than this begin to count as the same word."""

REACH = 6.0
"""Words: how fast a question word's pull on a span fades with distance."""

_KIND_NAMES = {PERSON: "person", PLACE: "place", DATE: "date", NUMBER: "number"}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A task with what was read off its words before anything was encoded."""

    task: Task
    query: str
    expected: Expected
    weights: Mapping[str, float]
    asked: Mapping[str, str]  # stem → word, lower case
    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True)
class Scored:
    """A span as text with its score and the sentence it stands in; higher is better."""

    text: str
    score: float
    ranked: Ranked


class SpanReader:
    """Reads tasks with an encoder. ``tokenizer`` serves for token counts and word rarity."""

    def __init__(self, encoder: Encoder, tokenizer: Any) -> None:
        self.fingerprint = f"extractive-spans/{VERSION}/{encoder.fingerprint}"
        self._tokenizer = tokenizer
        self._vectors = Vectors(encoder)
        self._rarity = Rarity(tokenizer.get_vocab())

    def read(self, tasks: Sequence[Task]) -> list[Found]:
        """One result per task, in order; sentences of all tasks are encoded together, then their words."""
        prepared = [self._prepare(task) for task in tasks]
        vectors = self._vectors.of(
            text for p in prepared if p for text in (p.query, *(s.near_text for s in p.sentences))
        )
        ranked = [rank(p.query, p.sentences, vectors) if p else [] for p in prepared]
        lexicon = self._vectors.of(
            word for p, r in zip(prepared, ranked) if p and _needs_words(p) for word in self._words_of(p, r)
        )
        return [
            self._find(p, r, lexicon) if p else _said(task) for task, p, r in zip(tasks, prepared, ranked)
        ]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """WordPiece tokens per text, without [CLS] and [SEP]."""
        if not texts:
            return []
        encoded = self._tokenizer(
            [clean(text) for text in texts], add_special_tokens=False, truncation=False, verbose=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def _prepare(self, task: Task) -> _Prepared | None:
        if task.kind == "say" or not (task.passages or task.titles):
            return None
        query = f"{task.context}\n{task.question}".strip() if task.kind == "long" else task.question
        if task.kind == "title":
            query = task.context or task.question
        weights = telling_words(query, self._rarity)
        asked = {w.stem: w.low for w in words(query) if w.is_word and self._rarity(w.low) > 0}
        found = candidates_of(task.passages, weights)
        return _Prepared(task, query, expect(task.question), weights, asked, found)

    def _words_of(self, p: _Prepared, ranked: Sequence[Ranked]) -> list[str]:
        found = [w.low for w in words(p.query) if self._rarity(w.low) > 0]
        found += [w.low for r in ranked for w in r.sentence.words if self._rarity(w.low) > 0]
        focus = _focus(p.expected)
        return [*found, focus] if focus else found

    def _find(self, p: _Prepared, ranked: Sequence[Ranked], lexicon: Mapping[str, Vector]) -> Found:
        if p.task.kind == "title":
            return self._title(p, ranked)
        if not ranked:
            return Found("", 0.0)
        if p.task.kind == "long":
            return _long(p.task, ranked)
        if p.task.kind == "verdict" or p.expected.kind == YESNO:
            return _verdict(p, ranked)
        return self._short(p, ranked, lexicon)

    def _short(self, p: _Prepared, ranked: Sequence[Ranked], lexicon: Mapping[str, Vector]) -> Found:
        scored = _scored(p, ranked, lexicon)
        if not scored:
            return Found("", 0.0)
        best = scored[0]
        sure = confidence(scored, p.weights)
        sentence = best.ranked.sentence
        text = best.text if sure >= REFUSE_BELOW else ""
        return Found(text, sure, sentence.passage, sentence.text)

    def _title(self, p: _Prepared, ranked: Sequence[Ranked]) -> Found:
        mention = {w.stem for w in words(p.task.question) if w.is_word}
        texts = {t: t for t in p.task.titles}
        for passage in p.task.passages:
            if passage.title in texts:
                texts[passage.title] = f"{passage.title}. {passage.text}"
        vectors = self._vectors.of([p.query, *texts.values()])
        asked = vectors[p.query]

        def value(place: int, title: str) -> float:
            inside = {w.stem for w in words(title) if w.is_word}
            shared = len(mention & inside) / (len(mention) or 1)
            return round(float(vectors[texts[title]] @ asked), 4) + 0.3 * shared - 0.01 * place

        values = [(value(i, title), -i, title) for i, title in enumerate(p.task.titles)]
        best, _, title = max(values)
        spread = sum(math.exp(8 * (v - best)) for v, _, _ in values)
        at = next((i for i, passage in enumerate(p.task.passages) if passage.title == title), -1)
        return Found(title, 1 / spread, at, title)


def load() -> SpanReader:
    """The reader on the embedded encoder's own, unchanged weights; raises if they are not the known ones."""
    from rallebench.encoders.minilm import MiniLM

    encoder = MiniLM()
    return SpanReader(encoder, encoder.tokenizer)


def _said(task: Task) -> Found:
    if task.kind != "say":
        return Found("", 0.0)
    return Found("" if task.question == REFUSAL else task.question, 0.0)


def _needs_words(p: _Prepared) -> bool:
    return p.task.kind == "short" and p.expected.kind != YESNO


def _focus(expected: Expected) -> str:
    """What the answer should resemble: the noun phrase asked for, or the name of the kind."""
    return " ".join(expected.phrase) or _KIND_NAMES.get(expected.kind, "")


def _setting(
    sentence: Sentence,
    asked: Mapping[str, str],
    weights: Mapping[str, float],
    lexicon: Mapping[str, Vector],
    focus: str,
) -> tuple[Setting, float]:
    """(the words of a sentence as a question sees them, the share of the question met in it)."""
    import numpy as np

    n, stems = len(sentence.words), list(asked)
    match = np.zeros((len(stems), n))
    fit: list[float | None] = [None] * n
    known = [i for i, w in enumerate(sentence.words) if w.low in lexicon]
    if known:
        here = np.stack([lexicon[sentence.words[i].low] for i in known])
        if stems:
            close = np.round(np.stack([lexicon[asked[s]] for s in stems]) @ here.T, 4)
            match[:, known] = np.clip((close - SOFT_FROM) / (1 - SOFT_FROM), 0, 1)
        if focus:
            for i, value in zip(known, np.round(here @ lexicon[focus], 4).tolist()):
                fit[i] = value
    for row, stem in enumerate(stems):
        for i, word in enumerate(sentence.words):
            if word.stem == stem and word.low not in FUNCTION_WORDS:
                match[row, i] = 1.0
    telling = np.array([weights[s] for s in stems])
    total = float(telling.sum()) or 1.0
    places = np.arange(n)
    fading = np.exp(-np.abs(places[:, None] - places[None]) / REACH)
    near = np.zeros(n)
    for row in range(len(stems)):
        near += telling[row] * (match[row][None] * fading).max(1)
    soft = float(match.max(1) @ telling) / total if stems and n else 0.0
    shared = [w.stem in asked and w.is_word and w.low not in FUNCTION_WORDS for w in sentence.words]
    return Setting(sentence.words, sentence.classes, shared, (near / total).tolist(), fit), soft


def _scored(p: _Prepared, ranked: Sequence[Ranked], lexicon: Mapping[str, Vector]) -> list[Scored]:
    """All spans of the ranked sentences that keep the word limit, best first."""
    found: list[Scored] = []
    for place, r in enumerate(ranked):
        at, soft = _setting(r.sentence, p.asked, p.weights, lexicon, _focus(p.expected))
        about_sentence = {
            "sim": r.similarity,
            "own": r.sentence.own,
            "ctx": r.sentence.around,
            "gap": ranked[0].score - r.score,
            "passage": min(r.sentence.passage, 10) / 5,
            "top": float(place == 0),
            "soft": soft,
        }
        base = sum(WEIGHTS.get(name, 0.0) * value for name, value in about_sentence.items())
        for span in spans(at, p.expected):
            start, end = r.sentence.words[span.first].start, r.sentence.words[span.last].end
            text = r.sentence.text[start:end]
            if p.task.max_words and len(text.split()) > p.task.max_words:
                continue
            value = base + sum(WEIGHTS.get(name, 0.0) * v for name, v in span.features.items())
            found.append(Scored(text, round(value, 3), r))
    # Equal scores: the shorter span, then the earlier one.
    return sorted(found, key=lambda s: (-s.score, len(s.text)))


def confidence(scored: Sequence[Scored], weights: Mapping[str, float]) -> float:
    """How likely the best span is right, 0..1."""
    return 1.0 / (1.0 + math.exp(-_certainty(certainty_features(scored, weights))))


def certainty_features(scored: Sequence[Scored], weights: Mapping[str, float]) -> dict[str, float]:
    """What tells a right best span from a wrong one."""
    best = scored[0]
    mass = [math.exp(s.score - best.score) for s in scored[:200]]
    same = sum(m for m, s in zip(mass, scored) if s.text.lower() == best.text.lower())
    return {
        "share": same / sum(mass),
        "score": best.score / 10,
        "similarity": best.ranked.similarity,
        "own": best.ranked.sentence.own,
        "around": best.ranked.sentence.around,
        "question length": min(len(weights), 12) / 12,
    }


def _certainty(features: Mapping[str, float]) -> float:
    return _CERTAINTY["one"] + sum(_CERTAINTY[name] * value for name, value in features.items())


# Logistic regression on 748 questions of SQuAD's development set (the half that the ranker saw, too):
# 47 % with an answer in five BM25 passages, the others without; "right" is token F1 of one half.
_CERTAINTY = {
    "one": -6.5,
    "share": 1.7,
    "score": 1.6,
    "similarity": 1.1,
    "own": 0.9,
    "around": 1.5,
    "question length": 1.4,
}


def _verdict(p: _Prepared, ranked: Sequence[Ranked]) -> Found:
    """The first label if nothing differs, the second if something does, none if nothing is about it."""
    labels = p.task.labels or ("Yes", "No")
    best = ranked[0]
    if best.sentence.around < 0.15 and best.similarity < 0.3:
        text = labels[2] if len(labels) > 2 else ""
        return Found(text, 0.0, best.sentence.passage, best.sentence.text)
    found = verdict.differences(words(p.task.question), ranked)
    return Found(labels[bool(found)], verdict.confidence(found), best.sentence.passage, best.sentence.text)


def _long(task: Task, ranked: Sequence[Ranked]) -> Found:
    """The best sentence and its best neighbours of the same passage, in the passage's order."""
    best = ranked[0]
    if best.similarity < 0.15 and best.sentence.around == 0:
        return Found("", 0.0, best.sentence.passage, best.sentence.text)
    same = [r.sentence.text for r in ranked if r.sentence.passage == best.sentence.passage][: task.sentences]
    text = task.passages[best.sentence.passage].text
    joined = " ".join(sorted(same, key=text.find))
    return Found(joined, max(0.0, min(1.0, best.similarity)), best.sentence.passage, best.sentence.text)
