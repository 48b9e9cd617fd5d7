"""RGB's records: a question, its required answers, and its documents, selected by RGB's rules.

The random generator is seeded for each record, so the documents of a record do not depend on other records.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError
from rallebench.core.sources import Source
from rallebench.core.streams import with_packed
from rallebench.core.types import Example, Gold, Question
from rallebench.experiments.common import in_folder

Required = tuple[tuple[str, ...], ...]
"""Groups of aliases; an answer must contain one alias from every group."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
SUFFIXES = with_packed(".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class RgbRecord:
    """A record. ``answer``: as in the file. ``positive``: groups of documents, a single group for a flat list; ``grouped``:
    true if the file groups them. ``wrong``: counterfactual copies of the positives; () without any."""

    id: str
    query: str
    answer: Any
    required: Required
    positive: tuple[tuple[str, ...], ...] = ()
    negative: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    fake: str = ""
    grouped: bool = False

    @property
    def flat(self) -> tuple[str, ...]:
        """All positives of an ungrouped set."""
        return self.positive[0] if self.positive else ()


@dataclass(frozen=True, slots=True)
class RgbRecords:
    """A file of records. ``language``: ``en`` or ``zh``; ``without``: missing part (answers, positives …) → ids of the records
    without it."""

    name: str
    path: Path
    language: str
    records: tuple[RgbRecord, ...]
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_required(answer: Any) -> Required:
    """Parse RGB's answers. A text is one required answer; in a list, every element is required. A nested list, at any depth,
    holds aliases.

    Blank aliases would match any prediction, so they are dropped; so are groups with only blank aliases.

    >>> read_required("Rome"), read_required(["3 January", ["12 January", "Jan 12"]])
    ((('Rome',),), (('3 January',), ('12 January', 'Jan 12')))
    """
    groups = (
        tuple(str(alias) for alias in _aliases(element) if alias is not None and str(alias).strip())
        for element in (answer if isinstance(answer, list) else [answer])
    )
    return tuple(filter(None, groups))


def _aliases(value: Any) -> Iterator[Any]:
    """The elements of nested lists, in order."""
    left = [value]
    while left:
        element = left.pop()
        if isinstance(element, list):
            left.extend(reversed(element))
        else:
            yield element


def write_required(required: Required) -> Any:
    """The required answers in RGB's form.

    >>> write_required((("Rome",),)), write_required((("Rome", "Roma"),))
    ('Rome', [['Rome', 'Roma']])
    """
    if len(required) == 1 and len(required[0]) == 1:
        return required[0][0]
    return [group[0] if len(group) == 1 else list(group) for group in required]


def bare_example(record: RgbRecord) -> Example:
    """A question with its gold but no documents; any alias is accepted."""
    aliases = dict.fromkeys(alias.strip() for group in record.required for alias in group)
    output = [{"answer": alias} for alias in aliases]
    row = {"id": record.id, "input": record.query, "output": output}
    return Example(Question(record.id, record.query), Gold(tuple(aliases), record.required), row)


def read_records(path: Path, language: str = "") -> RgbRecords:
    """Read all records of a file. Raises BadFileError with the line of a row that is not a record of RGB.

    ``language``: ``en``, ``zh``, or '' to detect it from the file name or else the questions.
    """
    records: dict[str, RgbRecord] = {}
    without: dict[str, tuple[str, ...]] = {}
    for line, row in Source(path).objects():
        record = _record(row, f"{path}, line {line}")
        if record.id in records:
            raise BadFileError(
                f"{path}, line {line} repeats the id {record.id!r}; every record needs its own."
            )
        records[record.id] = record
        for part in _lacking(record):
            without[part] = (*without.get(part, ()), record.id)
    if not records:
        raise BadFileError(f"{path} holds no record.")
    name = path.name.split(".json")[0]
    language = language or detect_language(name, [record.query for record in records.values()])
    return RgbRecords(name, path, language, tuple(records.values()), without)


def _lacking(record: RgbRecord) -> Iterator[str]:
    if not record.required:
        yield "answers"
    if not any(record.positive):
        yield "positives"
    elif record.grouped and not all(record.positive):
        yield "positives for one part of the question"
    if not record.negative:
        yield "negatives"


def detect_language(name: str, questions: Sequence[str]) -> str:
    """The first language code in the file name, outside the model's name; otherwise the language of most questions.

    >>> detect_language("zh_int", ()), detect_language("mine", ["谁?", "Who?", "何时？"]), detect_language("prediction_en_llama3-zh", ())
    ('zh', 'zh', 'en')
    """
    for part in re.split(r"[^a-z]+", name.lower()):
        if part in ("zh", "en"):
            return part
    chinese = sum(bool(_CHINESE.search(question)) for question in questions)
    return "zh" if 2 * chinese > len(questions) else "en"


def _record(row: Mapping[str, Any], where: str) -> RgbRecord:
    missing = [key for key in ("id", "query") if row.get(key) is None]
    missing += ["answer"] * ("answer" not in row)
    if missing:
        raise BadFileError(
            f"{where} has no {missing[0]!r}; a record of RGB has id, query, answer, positive, negative."
        )
    if not isinstance(row["query"], str) or not row["query"].strip():
        raise BadFileError(f"{where}: 'query' is not a question; it should be text.")
    if any(isinstance(alias, (dict, bool)) for alias in _aliases(row["answer"])):
        raise BadFileError(
            f"{where}: 'answer' is not an answer; it should be a text, or a list of texts and of lists of aliases."
        )
    positive = row.get("positive") or []
    grouped = isinstance(positive, list) and any(isinstance(group, list) for group in positive)
    groups = tuple(
        _texts(group, "positive", where) for group in (positive if grouped else [positive])
    )
    wrong = _texts(row.get("positive_wrong") or [], "positive_wrong", where)
    if wrong and len(wrong) != len(groups[0]):
        raise BadFileError(
            f"{where}: 'positive_wrong' has {len(wrong)} documents and 'positive' {len(groups[0])}; each is a copy of one."
        )
    return RgbRecord(
        str(row["id"]).strip(),
        row["query"],
        row["answer"],
        read_required(row["answer"]),
        groups,
        _texts(row.get("negative") or [], "negative", where),
        wrong,
        str(row.get("fakeanswer") or ""),
        grouped,
    )


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadFileError(f"{where}: {key!r} should be a list of texts.")
    return tuple(value)


def sets_in(folder: Path) -> set[str]:
    """Names of the files in a folder that end in one of SUFFIXES, without this suffix."""
    names = (file.name for file in folder.iterdir())
    return {name.split(".json")[0] for name in names if name.endswith(SUFFIXES)}


def find_file(path: Path, set_name: str, names: tuple[str, ...]) -> Path:
    """Return ``path`` if it is a file. In a folder, return the file ``set_name``, or else the first of ``names``. Raises
    NotFoundError."""
    if path.is_file():
        return path
    stems = (set_name,) if set_name else names
    if file := in_folder(path, (f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES)):
        return file
    have = sets_in(path)
    missed = set_name or f"{' or '.join(names)}, which this test is made for"
    raise NotFoundError(
        f"{path} holds no {missed}; it holds {', '.join(sorted(have)) or 'no JSON lines'}.",
        hint=Hint("set", "set=NAME"),
    )


SEED = 2333


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a record, as (``positive``, ``negative`` or ``wrong``, text). ``short``: true if there are fewer than
    requested."""

    items: tuple[tuple[str, str], ...]
    short: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.items)

    @property
    def negatives(self) -> int:
        return sum(kind == "negative" for kind, _ in self.items)


def share(number: int, rate: float, original: bool = False) -> int:
    """``number`` × ``rate``, rounded up. ``original`` uses floating point, where 100 × 0.07 is 7.000000000000001.

    >>> share(5, 0.2), share(5, 0.25), share(100, 0.07), share(100, 0.07, original=True)
    (1, 2, 7, 8)
    """
    return math.ceil(number * rate) if original else math.ceil(number * Fraction(str(rate)))


def base_documents(
    record: RgbRecord, number: int, noise: float, *, original: bool = False
) -> Documents:
    """The first positives and negatives. If one kind runs short, the other fills the gap, except at noise 1."""
    negatives = share(number, noise, original)
    if noise == 1:
        negatives = number
    elif negatives > len(record.negative):
        negatives = len(record.negative)
    else:
        negatives = max(negatives, number - len(record.flat))
    positives = number - negatives
    kinds = {"positive": record.flat[:positives], "negative": record.negative[:negatives]}
    return _shuffle(kinds, number, random.Random(SEED))


def integration_documents(
    record: RgbRecord, number: int, noise: float, *, original: bool = False
) -> Documents:
    """One positive from every group, even if this exceeds the request; then second positives, third ones and so on, then
    noise.

    Groups without documents are skipped; the original fails on them.
    """
    if not number:
        return Documents(())
    positives = number - share(number, noise, original)
    chance = random.Random(SEED)
    groups = [list(group) for group in record.positive]
    for group in groups:
        chance.shuffle(group)
    deepest = max(map(len, groups), default=0)
    chosen = [group[0] for group in groups if group]
    later = [group[depth] for depth in range(1, deepest) for group in groups if len(group) > depth]
    chosen += later[: max(0, positives - len(chosen))]
    noisy = record.negative[: max(0, number - len(chosen))]
    return _shuffle({"positive": chosen, "negative": noisy}, number, chance)


def counterfactual_documents(
    record: RgbRecord, number: int, noise: float, correct: float, *, original: bool = False
) -> Documents:
    """Wrong copies of some positives, correct copies of others, then noise; never both copies of the same passage."""
    if not number:
        return Documents(())
    negatives, trues = share(number, noise, original), share(number, correct, original)
    chance = random.Random(SEED)
    places = list(range(len(record.wrong)))
    # If the shares add up to more than 1, the original requests a negative sample size and fails.
    wrong = chance.sample(places, min(len(places), max(0, number - negatives - trues)))
    others = [place for place in places if place not in wrong]
    right = chance.sample(others, min(len(others), trues)) if trues and others else []
    kinds = {
        "wrong": [record.wrong[place] for place in wrong],
        "positive": [record.flat[place] for place in right],
        "negative": record.negative[:negatives],
    }
    return _shuffle(kinds, number, chance)


def _shuffle(
    texts_by_kind: Mapping[str, Iterable[str]], number: int, chance: random.Random
) -> Documents:
    items = [(kind, text) for kind, texts in texts_by_kind.items() for text in texts]
    chance.shuffle(items)
    return Documents(tuple(items), len(items) < number)
