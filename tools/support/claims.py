"""Claims about passages of SQuAD, true and false.

A true claim is a question with its answer turned into a statement, the two side by side, or a shortened sentence of the
passage. A false claim is the same with a number, a name or a date of the same passage in place of the right one, or with a
negation put in or taken out. Its topic is therefore always that of the passage.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.reader.text import FUNCTION_WORDS, Word, sentences, word_set, words

MONTHS = word_set(
    "january february march april may june july august september october november december"
)
LONGEST_ANSWER, SHORTEST_SENTENCE = 6, 6
"""In words."""
NEGATED, FRAGMENTS, ELSEWHERE = 0.35, 0.5, 0.3
"""Shares of claims that are negated, repeated as question and answer, and set beside another paragraph of the article."""
_AUX = r"(is|are|was|were|did|does|do|has|have|had|can|could|will|would|should|may|might|must)"
_WHEN = re.compile(
    rf"(?:when|(?:in |on )?(?:what|which) (?:year|date|day|month)) {_AUX} (.*)", re.I
)
_WHERE = re.compile(rf"where {_AUX} (.*)", re.I)
_SUBJECT = re.compile(rf"(?:who|what|which) {_AUX} (.*)", re.I)
_WHO = re.compile(r"who (\w+) (.*)", re.I)
_COUNT = re.compile(rf"how (?:many|much) (.*?) {_AUX} (.*)", re.I)
_NOUN = re.compile(rf"(?:what|which) (?:\w+ ){{1,3}}?{_AUX} (.*)", re.I)
_OTHER = re.compile(r"(?:what|which) \w+ (.*)", re.I)
_PREPOSITION = re.compile(r"(in|on|at|near|from|to|since|by|after|before|during|between)\b", re.I)
_NEGATIVE = re.compile(r"\b(?:not|never)\s")
_VERB = re.compile(r"\b(?:is|are|was|were|has|had|have|can|could|will|would|did|may|must)\b")
_PARTICIPLE = re.compile(r"\w+(?:ed|en|orn|ade|ent|ung|unk|ilt|held|lost|won|set|put)\b")
_YEAR = re.compile(r"(?:1\d|20)\d\d")


@dataclass(frozen=True, slots=True)
class SwappedClaim:
    """``swapped``: number, name, date or negation, '' for a true claim, "elsewhere" for one beside another paragraph.
    ``wording``: "statement" or "fragment" of a person's question, or "sentence" of the passage."""

    title: str
    passage: str
    text: str
    swapped: str
    wording: str

    @property
    def true(self) -> bool:
        return not self.swapped


def claims(file: Path, seed: int) -> list[SwappedClaim]:
    """Return all claims about a file of paragraphs with questions, in a fixed order."""
    rng = random.Random(seed)
    every: list[SwappedClaim] = []
    paragraphs: dict[str, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            paragraphs.setdefault(row["title"], []).append(row["context"])
            every += [*_of_questions(row, rng), *_of_sentences(row, rng)]
    elsewhere = []
    for claim in every:
        if claim.true and rng.random() < ELSEWHERE:
            other = rng.choice(paragraphs[claim.title])
            if other != claim.passage:
                elsewhere.append(replace(claim, passage=other, swapped="elsewhere"))
    return every + elsewhere


def _of_questions(row: Mapping[str, Any], rng: random.Random) -> Iterator[SwappedClaim]:
    context, title = row["context"], row["title"]
    answered = [item for item in row["qas"] if item["answers"] and not item["is_impossible"]]
    others = {answer["text"] for item in answered for answer in item["answers"]}
    others |= {context[start:end] for start, end, _ in items(context)}
    for item in answered:
        accepted = {answer["text"].lower() for answer in item["answers"]}
        answer = min((a["text"] for a in item["answers"]), key=len)
        text = statement(item["question"], answer)
        if not text or len(answer.split()) > LONGEST_ANSWER:
            continue
        fragment = rng.random() < FRAGMENTS
        yield SwappedClaim(title, context, text, "", "statement")
        if fragment:
            yield SwappedClaim(title, context, f"{item['question']} {answer}", "", "fragment")
        if rng.random() < NEGATED and (denied := negate(text)):
            yield SwappedClaim(title, context, denied, "negation", "statement")
        kind = item_kind(answer)
        fits = [
            other
            for other in sorted(others)
            if kind and item_kind(other) == kind and _is_other(other, accepted, item["question"])
        ]
        if fits:
            wrong = rng.choice(fits)
            yield SwappedClaim(
                title, context, statement(item["question"], wrong), kind, "statement"
            )
            if fragment:
                yield SwappedClaim(title, context, f"{item['question']} {wrong}", kind, "fragment")


def _is_other(item: str, accepted: set[str], question: str) -> bool:
    low = item.lower()
    return low not in question.lower() and not any(low in a or a in low for a in accepted)


def _of_sentences(row: Mapping[str, Any], rng: random.Random) -> Iterator[SwappedClaim]:
    context, title = row["context"], row["title"]
    cuts = [context[start:end] for start, end in sentences(context)]
    for sentence in rng.sample(cuts, min(2, len(cuts))):
        text = shorten(sentence, rng)
        if len(text.split()) < SHORTEST_SENTENCE:
            continue
        yield SwappedClaim(title, context, text, "", "sentence")
        if spans := items(text):
            start, end, kind = rng.choice(spans)
            right = text[start:end].lower()
            pool = {context[a:b] for a, b, other in items(context) if other == kind}
            fits = sorted(
                x for x in pool if x.lower() not in text.lower() and right not in x.lower()
            )
            if fits:
                wrong = text[:start] + rng.choice(fits) + text[end:]
                yield SwappedClaim(title, context, wrong, kind, "sentence")
        if rng.random() < NEGATED and (denied := negate(text)):
            yield SwappedClaim(title, context, denied, "negation", "sentence")


def item_kind(text: str) -> str:
    """Return number, name or date, '' for anything else."""
    tokens = [token for token in words(text) if token.is_word]
    if any(token.low in MONTHS for token in tokens) or _YEAR.fullmatch(text.strip()):
        return "date"
    if any(token.is_number for token in tokens):
        return "number"
    capital = all(token.is_capital or token.low in FUNCTION_WORDS for token in tokens)
    return "name" if tokens and capital and len(tokens) < LONGEST_ANSWER else ""


def items(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, kind) of the numbers, names and dates of a text."""
    tokens, spans, i = words(text), [], 0
    while i < len(tokens):
        last, kind = _item_end(text, tokens, i)
        if kind:
            spans.append((tokens[i].start, tokens[last].end, kind))
        i = last + 1
    return spans


def _item_end(text: str, tokens: Sequence[Word], i: int) -> tuple[int, str]:
    token, last = tokens[i], i
    if token.low in MONTHS and i + 1 < len(tokens) and tokens[i + 1].is_number:
        last = i + 1
        if i + 3 < len(tokens) and tokens[i + 2].text == "," and tokens[i + 3].is_number:
            last = i + 3
        return last, "date"
    if token.is_number and token.low != "one":
        return i, "date" if _YEAR.fullmatch(token.text) else "number"
    name = token.is_word and token.is_capital and token.low not in FUNCTION_WORDS
    if not name or i == 0 or tokens[i - 1].text in ".!?":
        return i, ""
    while last + 1 < len(tokens):
        after = tokens[last + 1]
        if not (after.is_capital and after.is_word and text[tokens[last].end : after.start] == " "):
            break
        last += 1
    return last, "name"


def statement(question: str, answer: str) -> str:
    """Return a question with its answer as a statement, in rough English; '' for a question of another form.

    >>> statement("When was the bridge built?", "1840"), statement("Who designed it?", "Ada Byron")
    ('the bridge was built in 1840.', 'Ada Byron designed it.')
    """
    plain = question.strip().rstrip("?").strip()
    if (match := _WHEN.match(plain)) or (match := _WHERE.match(plain)):
        tail = answer if _PREPOSITION.match(answer) else f"in {answer}"
        return _end(match[2], match[1].lower(), tail)
    if match := _SUBJECT.match(plain):
        verb = match[1].lower()
        done = verb in ("did", "does", "do")
        return f"{match[2]} {answer}." if done else f"{_capital(answer)} {verb} {match[2]}."
    if match := _WHO.match(plain):
        return f"{answer} {match[1]} {match[2]}."
    if match := _COUNT.match(plain):
        counted = "" if answer.lower().endswith(match[1].lower()) else f" {match[1]}"
        verb = match[2].lower()
        if verb in ("did", "does", "do"):
            return f"{match[3]} {answer}{counted}."
        return f"{answer}{counted} {verb} {match[3]}."
    if match := _NOUN.match(plain):
        verb = match[1].lower()
        done = verb in ("did", "does", "do")
        return f"{match[2]} {answer}." if done else f"{_capital(answer)} {verb} {match[2]}."
    match = _OTHER.match(plain)
    return f"{answer} {match[1]}." if match else ""


def _end(rest: str, verb: str, tail: str) -> str:
    if verb in ("did", "does", "do"):
        return f"{rest} {tail}."
    for match in _PARTICIPLE.finditer(rest):
        if match.start():
            return f"{rest[: match.start()]}{verb} {rest[match.start() :]} {tail}."
    return f"{rest} {verb} {tail}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def negate(text: str) -> str:
    """Return a text with a negation put in, or the first one taken out; '' if it has no verb that is recognised.

    >>> negate("It was red."), negate("It was not red.")
    ('It was not red.', 'It was red.')
    """
    if match := _NEGATIVE.search(text):
        return text[: match.start()] + text[match.end() :]
    match = _VERB.search(text)
    return f"{text[: match.end()]} not{text[match.end() :]}" if match else ""


def shorten(sentence: str, rng: random.Random) -> str:
    """Return a sentence without brackets, and mostly without one of its parts between commas."""
    parts = re.sub(r"\s*\([^)]*\)", "", sentence).split(", ")
    if len(parts) > 2 and rng.random() < 0.7:
        parts = parts[:2] if rng.random() < 0.5 else [parts[0], *parts[2:]]
    elif len(parts) == 2 and rng.random() < 0.5:
        parts = [max(parts, key=len)]
    text = ", ".join(parts).strip().rstrip(".;,")
    return f"{_capital(text)}." if text else ""
