"""Parsing of scores from a judge's reply: a tool call, JSON in any wrapping, or words. An unclear reply is unparsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rallebench.core.structured import json_in
from rallebench.core.types import Reply
from rallebench.metrics.judges import Judgement

_DIGITS = "zero one two three four five six seven eight nine ten"
WORDS = {word: number for number, word in enumerate(_DIGITS.split())}
REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "comment")
_NUMBER = r"[-−]?\d+(?:[.,]\d+)?|\b(?:" + "|".join(WORDS) + r")\b"
_OUT_OF = r"(?:\s*(?:/|out of|of)\s*(?P<whole>\d+(?:\.\d+)?))?"
_TO = rf"(?:\s*(?:-|–|—|to|or)\s*(?P<high>{_NUMBER}))?"
_SCORE = rf"(?P<low>{_NUMBER}){_TO}{_OUT_OF}(?P<percent>\s*%)?"
_SAYING = (
    "a|an|answer|as|assign|at|be|deserves|earns|equals|gets|give|given|grade|graded|i|i'd|id|is|it|level|my|of|rate|rated|rating|"
    "receives|reply|response|say|score|scored|scores|should|that|the|this|to|value|was|with|would"
)
"""Words that may stand between a name and its score. Anything else is prose, and a number in prose is not a score."""
_GAP = rf"(?:[ \t]*\([^()\n]*\))?(?:[ \t:=>|(\[–—−]|-(?=\s)|,(?=\s)|\b(?:{_SAYING})\b){{0,40}}?"
_END = r"(?![\d½¼¾⅓⅔])(?=\s*(?:$|[;:!)\]}|(/\n]|[.,](?!\d)|[-–—](?!\d)|\b(?:and|as|because|but|for|given|in|on|out|since|stars?|while|with|NAMES)\b))"
"""Text that may follow a score. Before anything else the number is a count, as in "2 minor errors"."""
_REASON = re.compile(
    rf"\b(?:{'|'.join(REASONS)})\b[^\w\n]{{0,6}}[:=\-–][^\w\n]{{0,4}}(.+)",
    re.IGNORECASE | re.DOTALL,
)


def read_scores(reply: Reply, names: Sequence[str], low: float = 1, high: float = 5) -> Judgement:
    """Parse one number from ``low`` to ``high`` for every name, in the given order, or explain the failure in a sentence.

    Tried in this order: arguments of a tool call; a JSON object in the text; the text's words ("Truthfulness: 4/5",
    "four for relevance", or nothing but as many numbers as names). A range ("4-5") counts as its middle. The whole reply is
    unparsed if a value is out of range, on another scale (8/10, 80 %), given twice with different numbers, or missing.

    >>> read_scores(Reply("Truthfulness: 4/5. I'd say relevance is five."), ("truthfulness", "relevance")).values
    {'truthfulness': 4.0, 'relevance': 5.0}
    >>> read_scores(Reply("Truthfulness 9, relevance 2"), ("truthfulness", "relevance")).failure
    'truthfulness is 9, which is not from 1 to 5.'
    """
    text = reply.text.strip()
    for content in _objects(reply, names):
        lowered = {str(key).strip().lower(): value for key, value in content.items()}
        if any(name in lowered for name in names):
            reasons = (lowered[key].strip() for key in REASONS if isinstance(lowered.get(key), str))
            scores = {name: _plain(lowered.get(name)) for name in names}
            return _from_texts(scores, low, high, next(reasons, ""))
    if not text:
        return Judgement(failure="The reply is empty.")
    stated = _REASON.search(text)
    return _from_texts(
        dict(_stated_scores(text, names, low, high)), low, high, stated[1].strip() if stated else ""
    )


def _from_texts(scores: Mapping[str, list[str]], low: float, high: float, reason: str) -> Judgement:
    """Return the judgement from texts that state a score, by name; a failure if any name has no clear number."""
    values: dict[str, float] = {}
    for name, texts in scores.items():
        numbers = {text: _value(text) for text in texts}
        distinct = {number for number in numbers.values() if number is not None}
        unclear = [text for text, number in numbers.items() if number is None]
        failure = ""
        if not texts:
            failure = f"The reply contains no score for {name}."
        elif unclear:
            failure = f"{name} is {unclear[0]!r}, which is not a number on the scale."
        elif len(distinct) > 1:
            failure = (
                f"{name} has several scores: {', '.join(map('{:g}'.format, sorted(distinct)))}."
            )
        elif not low <= (value := distinct.pop()) <= high:
            failure = f"{name} is {value:g}, which is not from {low:g} to {high:g}."
        else:
            values[name] = value
        if failure:
            return Judgement(failure=failure, reason=reason)
    return Judgement(values, reason)


def _objects(reply: Reply, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield JSON objects that may contain the scores, also one level down (``{"scores": {…}}``)."""
    schema = {"type": "object", "anyOf": [{"required": [name]} for name in names]}
    for value in json_in(reply, schema):
        if isinstance(value, Mapping):
            yield value
            yield from (inside for inside in value.values() if isinstance(inside, Mapping))


def _plain(value: Any) -> list[str]:
    """Return a JSON value as the texts of its scores; an object may contain its score with a reason."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("score", "value", "rating") if key in value), None)
    if value is None:
        return []
    return [json.dumps(value) if isinstance(value, bool) else str(value).strip()]


def _stated_scores(
    text: str, names: Sequence[str], low: float, high: float
) -> Iterator[tuple[str, list[str]]]:
    """Yield every name with the scores that the text states for it."""
    plain = _without_scale(
        re.sub(r"\\boxed\{|(?<=\d)\}|[*_`\"“”$]", "", _without_tags(text)), low, high
    )
    if below := _in_table(plain, names) or _below_headings(plain, names):
        yield from below.items()
        return
    if bare := _bare_numbers(plain, len(names)):
        yield from ((name, [number]) for name, number in zip(names, bare))
        return
    name, end = rf"(?P<name>{'|'.join(names)})\b", _END.replace("NAMES", "|".join(names))
    forms = (
        # "4 for truthfulness and 5 for relevance": the number after a name belongs to the next one
        _find(rf"(?<![\d.,])(?P<score>{_SCORE})\s+(?:for|in|on)\s+(?:the\s+)?{name}", plain),
        _find(rf"\b{name}{_GAP}(?P<score>{_SCORE}){end}", plain),
        _find(rf"(?<![\d.,])(?P<score>{_SCORE})\s*\(?\s*{name}", plain),
    )
    chosen = next(
        (scores for scores in forms if {label for label, _ in scores} == set(names)),
        forms[0] or forms[1],
    )
    for label in names:
        yield label, list(dict.fromkeys(score for other, score in chosen if other == label))


def _without_tags(text: str) -> str:
    """Turn XML tags into lines: a name above its value, and an end."""
    return re.sub(
        r"<(/?)([A-Za-z][\w-]*)([^<>]*)>",
        lambda tag: "\n" if tag[1] else f"\n{tag[2]}{tag[3]}: ",
        text,
    )


_ALONE = re.compile(
    rf"\W*?(?:(?:(?:my|the|final|overall)\s+)?(?:score|rating|grade|value|mark)\s*(?:is|[:=–-])?\s*)?"
    rf"(?P<score>{_SCORE})(?:\s*(?:points?|stars?))?[^\w\n%½¼¾⅓⅔]*",
    re.IGNORECASE,
)
"""A line that contains a score and nothing else."""


def _below_headings(text: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the scores on separate lines below each name, or beside it; {} unless every name has one."""
    heading = re.compile(
        rf"\W*(?:\d+[.)]\s*)?(?:the\s+)?(?P<name>{'|'.join(names)})(?:\s*\([^()\n]*\))?(?:\s+(?:score|rating))?(?!\w)(?P<rest>.*)",
        re.IGNORECASE,
    )
    scores: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        head = heading.fullmatch(line)
        alone = _ALONE.fullmatch(head["rest"] if head else line)
        if head and (alone or not re.search(r"\w", head["rest"])):
            name = head["name"].lower()
        if name and alone:
            scores.setdefault(name, []).append(alone["score"])
    return (
        {name: list(dict.fromkeys(scores[name])) for name in names}
        if len(scores) == len(names)
        else {}
    )


def _in_table(text: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the scores below the names in a table header, in Markdown or CSV; {} without one."""
    rows = [
        [cell.strip().lower() for cell in re.split(r"[|,;\t]", line.strip().strip("|"))]
        for line in text.splitlines()
        if line.strip("-|: \t")
    ]
    for head, row in zip(rows, rows[1:]):
        if set(names) <= set(head) and len(row) >= len(head):
            cells = {name: row[head.index(name)] for name in names}
            if all(_ALONE.fullmatch(cell) for cell in cells.values()):
                return {name: [cell] for name, cell in cells.items()}
    return {}


def _find(pattern: str, text: str) -> list[tuple[str, str]]:
    """Return (name, score) for each match of the pattern."""
    return [
        (match["name"].lower(), match["score"])
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def _without_scale(text: str, low: float, high: float) -> str:
    """Remove mentions of the scale itself: (1-5), from 1 to 5, between 1 and 5; a bare "1 and 5" is two scores."""
    ends = rf"(?:(?:of |from )?\b{low:g}\s*(?:-|–|to)\s*{high:g}|(?:between|from|of|scale)\s+{low:g}\s*and\s*{high:g})\b"
    return re.sub(rf"\(?\s*(?:on a )?(?:scale )?{ends}\s*\)?", " ", text, flags=re.IGNORECASE)


def _bare_numbers(text: str, count: int) -> list[str]:
    """Return the scores of a reply that consists of nothing but scores; "4,5" is two."""
    number = rf"(?:\d+(?:\.\d+)?|\b(?:{'|'.join(WORDS)})\b)(?:\s*(?:/|out of)\s*\d+)?"
    marked = re.sub(number, "#", text, flags=re.IGNORECASE)
    if (
        re.fullmatch(r"[\s\[({]*#(?:(?:\s*[,;/&|\n]\s*|\s+(?:and\s+)?)#)*[\s\])}.]*", marked)
        and marked.count("#") == count
    ):
        return re.findall(number, text, re.IGNORECASE)
    return []


def _value(text: str) -> float | None:
    """Parse one score.

    >>> _value("4/5"), _value("four"), _value("4-5"), _value("8/10"), _value("1 to 4"), _value("80 %")
    (4.0, 4.0, 4.5, None, None, None)
    """
    match = re.fullmatch(_SCORE, text.strip(), re.IGNORECASE)
    if not match or match["percent"] or (match["whole"] and float(match["whole"]) != 5):
        return None
    low = _number(match["low"])
    if match["high"] is None:
        return low
    high = _number(match["high"])
    return (low + high) / 2 if 0 < high - low <= 1 else None


def _number(text: str) -> float:
    text = text.lower().replace("−", "-").replace(",", ".")
    return float(WORDS[text]) if text in WORDS else float(text)
