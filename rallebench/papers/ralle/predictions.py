"""KILT's scores of a prediction file against a gold file, structured like the output of KILT and RaLLe.

Each prediction becomes an episode with this result, so that a run and its prediction file are scored by the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from rallebench.core.errors import BadFileError, Hint, MismatchError, UsageError
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Gold, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.datasets.kilt import (
    PAGE_KEY,
    provenance_id,
    read_gold,
    read_output,
    read_provenance,
    record_id,
)
from rallebench.experiments.scorers import SCORERS
from rallebench.metrics import MAX_K, metric

DOWNSTREAM = ("accuracy", "em", "f1", "rougel", "has_answer", "has_answer_all")
AT_K = ("precision", "recall", "success_rate")
Compat = Literal["corrected", "original"]


@SCORERS.register("kilt")
def score_kilt(
    guess: Path,
    gold: Path | None = None,
    *,
    ks: Sequence[int] = (1, 5, 10, 20),
    rank_keys: Sequence[str] = (PAGE_KEY,),
    compat: Compat = "corrected",
) -> dict[str, Any]:
    """KILT's records with one output each, scored against ``gold``; RaLLe's ``output_reduced.jsonl`` is such a file.

    Returns ``{"kilt", "downstream", "retrieval", "n", …}``: fractions 0..1, as means over all gold records. ``downstream``
    (and ``kilt``) is None if no gold record has an answer or no prediction gives one. ``retrieval`` (and ``kilt``) is None if
    no gold record names a page. ``notes`` gives the reason.

    Counts: ``n`` gold records. ``n_without_answer`` of them accept no answer and are left out of the downstream means (KILT's
    own script fails on them). ``n_without_provenance`` name no page and score 0 in retrieval. ``n_empty_answer`` predictions
    are empty and score 0, except in ``has_answer``, whose mean covers the ``n_has_answer`` non-empty predictions, as in RaLLe.
    ``has_answer_all`` covers ``n_has_answer_all`` predictions.

    ``rank_keys`` name the provenance fields that make up an id in ``retrieval`` (KILT-* always uses pages).
    ``compat="original"``: a gold element with a provenance list but no id counts as an unreachable evidence set, as in KILT's
    script, and lowers recall.

    Raises BadFileError for a bad file, MismatchError if the two files do not belong together, and UsageError for a bad ``ks``
    or ``rank_keys`` or a missing ``gold``.
    """
    if gold is None:
        raise UsageError(
            "The file of the questions with their answers is missing.", hint=Hint("choose", "gold")
        )
    _check_settings(ks, rank_keys)
    truths = _read_truths(gold, tuple(rank_keys), compat)
    guesses = {
        qid: _read_guess(qid, record, where, tuple(rank_keys))
        for where, qid, record in _records(guess, "one prediction a question")
    }
    pairs = _align(truths, guesses, gold, guess)
    notes: list[str] = []
    surplus = len(guesses) - len(pairs)
    if surplus:
        notes.append(
            f"{surplus} of {len(guesses)} predictions answer no question of the gold file and are ignored."
        )
    answered = _answers_are_scored(pairs, guess, notes)
    ranked = any(pair.gold_by_key.pages for pair in pairs)
    if not ranked:
        notes.append(f"No gold record names a {'+'.join(rank_keys)}, so retrieval is not scored.")
    paged = answered and any(pair.gold.pages for pair in pairs)
    kilt = [f"KILT-{name}" for name in DOWNSTREAM]
    means = _means([*DOWNSTREAM, *(kilt if paged else ())], pairs) if answered else {}
    return {
        "kilt": {name: means[name] for name in kilt} if paged else None,
        "downstream": {name: means[name] for name in DOWNSTREAM} if answered else None,
        "retrieval": _retrieval(pairs, ks) if ranked else None,
        **_counts(pairs, answered),
        "notes": notes,
    }


# reading


@dataclass(frozen=True, slots=True)
class _Pair:
    """A gold record and its prediction, with evidence and hits by page and by the rank keys. ``answer``: None if the key is
    absent."""

    qid: str
    gold: Gold
    gold_by_key: Gold
    answer: str | None
    episode: Episode
    episode_by_key: Episode
    has_text: bool


def _check_settings(ks: Sequence[int], rank_keys: Sequence[str]) -> None:
    bad = [k for k in ks if not 1 <= k <= MAX_K]
    if bad:
        raise UsageError(f"The cut-off {bad[0]!r} is not a whole number from 1 to {MAX_K}.")
    if not rank_keys or not all(rank_keys):
        raise UsageError(
            f"rank_keys is a list of provenance fields, as [{PAGE_KEY!r}], not {rank_keys!r}."
        )


def _records(path: Path, rule: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(location in words, id, record) of every record. Raises BadFileError for a repeated id; ``rule`` ends the message."""
    lines: dict[str, int] = {}
    for number, record in Source(path).objects():
        where = f"{path}, line {number}"
        qid = record_id(record, where)
        if lines.setdefault(qid, number) != number:
            raise BadFileError(f"{where} repeats the id {qid!r} of line {lines[qid]}; {rule}.")
        yield where, qid, record


def _read_truths(
    path: Path, rank_keys: tuple[str, ...], compat: Compat
) -> dict[str, tuple[Gold, Gold]]:
    """Id → evidence by page and by the rank keys."""
    truths = {}
    for where, qid, record in _records(path, "ids must be unique"):
        by_page = read_gold(record, where)
        by_key = by_page if rank_keys == (PAGE_KEY,) else read_gold(record, where, rank_keys)
        if compat == "original" and _has_hollow_set(record, rank_keys, where):
            by_key = replace(by_key, provenance=(*by_key.provenance, frozenset()))
        truths[qid] = by_page, by_key
    if not truths:
        raise BadFileError(f"{path} holds no gold record.")
    return truths


def _has_hollow_set(record: Mapping[str, Any], rank_keys: tuple[str, ...], where: str) -> bool:
    """Return whether an output element has a provenance list without ids."""
    return any(
        element.get("provenance") is not None
        and not any(
            provenance_id(item, rank_keys, where) for item in read_provenance(element, where)
        )
        for element in read_output(record, where)
    )


def _read_guess(
    qid: str, record: Mapping[str, Any], where: str, rank_keys: tuple[str, ...]
) -> tuple[str | None, Episode, Episode, bool]:
    """(answer, hits by page, hits by the rank keys, true if any has a text)."""
    elements = read_output(record, where)
    if len(elements) != 1:
        raise BadFileError(
            f"{where} (id {qid!r}) has {len(elements)} outputs; a prediction has exactly one. "
            "Of a RaLLe run, score output_reduced.jsonl, not output.jsonl."
        )
    (element,) = elements
    items = read_provenance(element, where)
    answer = _text(element["answer"]).strip() if "answer" in element else None
    by_page = _episode(qid, answer, items, (PAGE_KEY,), where)
    by_key = by_page if rank_keys == (PAGE_KEY,) else _episode(qid, answer, items, rank_keys, where)
    return answer, by_page, by_key, any(item.get("text") for item in items)


def _episode(
    qid: str,
    answer: str | None,
    items: Sequence[Mapping[str, Any]],
    rank_keys: Sequence[str],
    where: str,
) -> Episode:
    """An episode with this answer and one retrieval with these items as hits."""
    passages = (
        Passage(
            doc_id=_text(item.get("doc_id")),
            text=_text(item.get("text")),
            title=_text(item.get("title") or item.get("wikipedia_title")),
            page_id=provenance_id(item, rank_keys, where),
        )
        for item in items
    )
    hits = tuple(Hit(passage, score=-float(place)) for place, passage in enumerate(passages))
    step = Step(Retrieve("", "", max(1, len(hits))), Reply("", hits))
    return Episode(qid, "prediction", (step,), Outcome(answer or ""))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


# alignment


def _align(
    truths: Mapping[str, tuple[Gold, Gold]], guesses: Mapping[str, Any], gold: Path, guess: Path
) -> list[_Pair]:
    """Each gold record with its prediction, in gold order. Raises MismatchError for a record without a prediction."""
    missing = [qid for qid in truths if qid not in guesses]
    if missing:
        raise MismatchError(
            f"{guess} has no prediction for {len(missing)} of the {len(truths)} questions of {gold}: "
            f"{_first(missing)}. Predict them (an empty answer scores 0) or drop them from the gold."
        )
    return [_Pair(qid, *truth, *guesses[qid]) for qid, truth in truths.items()]


def _answers_are_scored(pairs: Sequence[_Pair], guess: Path, notes: list[str]) -> bool:
    """Return whether answers can be compared; a mixture of records with and without answers is an error."""
    silent = [pair.qid for pair in pairs if pair.answer is None]
    if not any(pair.gold.answers for pair in pairs):
        notes.append("No gold record has an answer, so answers are not scored.")
        return False
    if len(silent) == len(pairs):
        notes.append("No prediction has an answer, so answers are not scored.")
        return False
    if silent:
        raise BadFileError(
            f"{guess} has {len(silent)} of {len(pairs)} predictions without 'answer': {_first(silent)}. "
            'Write "answer": "" where the system gave none.'
        )
    return True


def _first(ids: Sequence[str], most: int = 5) -> str:
    """The first ids, in quotes."""
    return ", ".join(map(repr, ids[:most])) + (", …" if len(ids) > most else "")


# scores


def _means(names: Sequence[str], pairs: Sequence[_Pair]) -> dict[str, float]:
    """The means over the scored records; 0.0 without scored records, as in KILT's output."""
    scores = {name: metric(name).value for name in names}
    return {
        name: _mean(score(pair.episode, pair.gold) for pair in pairs)
        for name, score in scores.items()
    }


def _retrieval(pairs: Sequence[_Pair], ks: Sequence[int]) -> dict[str, float]:
    ks = sorted(set(ks))
    names = ["Rprec", "recall@5", *(f"{family}@{k}" for k in ks for family in AT_K)]
    if any(pair.has_text for pair in pairs) and any(pair.gold.answers for pair in pairs):
        names += [f"answer_in_context@{k}" for k in ks]
    means: dict[str, float] = {}
    for name in names:
        score = metric(name).value
        means[name] = _mean(score(pair.episode_by_key, pair.gold_by_key) for pair in pairs)
        if name == "recall@5":
            means["recall_at_5"] = means[name]
    return means


def _mean(values: Iterable[float | None]) -> float:
    scored = [value for value in values if value is not None]
    return fmean(scored) if scored else 0.0


def _counts(pairs: Sequence[_Pair], answered: bool) -> dict[str, int]:
    n_gold = sum(bool(pair.gold.answers) for pair in pairs)
    n_said = sum(bool(pair.gold.answers and pair.answer) for pair in pairs)
    counts = {
        "n": len(pairs),
        "n_without_answer": len(pairs) - n_gold,
        "n_without_provenance": sum(not pair.gold_by_key.pages for pair in pairs),
    }
    if answered:
        counts |= {"n_empty_answer": n_gold - n_said, "n_has_answer": n_said}
        counts["n_has_answer_all"] = n_gold
    return counts
