"""The addresses of the page's views: parse an address into values, and format values as an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote, urlencode

from rallebench.gui.messages import Scalar

AnyQuery = TypeVar("AnyQuery", bound="Query")


@dataclass(frozen=True)
class Query:
    """The values of an address, or the key of a windowed list. Subclasses name the values.

    All values are texts, "" if absent. Of a tuple ``r``, the texts are ``r0``, ``r1`` and so on.

    >>> @dataclass(frozen=True)
    ... class Index(Query):
    ...     VIEW = "data/index"
    ...     id: str = ""
    ...     q: str = ""
    >>> Index.read({"id": "wiki", "other": "x"})
    Index(id='wiki', q='')
    >>> Index("a b").href
    '#/data/index?id=a%20b'
    """

    VIEW: ClassVar[str] = ""

    @classmethod
    def read(cls: type[AnyQuery], values: Mapping[str, Scalar]) -> AnyQuery:
        """Read the values that this class names and ignore others."""
        texts = {name: "" if value is None else str(value) for name, value in values.items()}
        return cls(
            **{
                part.name: _read_numbered(part.name, texts)
                if part.default == ()
                else texts[part.name]
                for part in fields(cls)
                if part.default == () or part.name in texts
            }
        )

    def values(self) -> dict[str, Any]:
        """The non-empty texts by name, as a button's data uses them too."""
        texts = dict[str, Any]()
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, tuple):
                texts |= {f"{part.name}{number}": text for number, text in enumerate(value)}
            elif value:
                texts[part.name] = value
        return texts

    @property
    def href(self) -> str:
        """The address with these values."""
        return f"#/{self.VIEW}?{self.query_text}" if self.query_text else f"#/{self.VIEW}"

    @property
    def query_text(self) -> str:
        """The part of the address behind ``?``."""
        return urlencode(self.values(), quote_via=quote, safe=":,~")


def _read_numbered(name: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Read the texts ``name0``, ``name1`` and so on."""
    texts = list[str]()
    while text := values.get(f"{name}{len(texts)}", ""):
        texts.append(text)
    return tuple(texts)


@dataclass(frozen=True)
class Door(Query):
    """A question whose trace is open in the drawer of any view: ``trace=RUN:QUESTION``.

    ``source``: a run; or a variant of the grid, as ``~`` before its key.

    >>> Door("night", "q:1").over(RunAddress("night"))
    '#/runs/run?id=night&trace=night:q:1'
    >>> Door.read({"trace": "night:q:1"})
    Door(trace='night:q:1')
    """

    trace: str = ""

    @classmethod
    def to(cls, source: str, qid: str) -> Door:
        """Return the door to a question of a source."""
        return cls(f"{source}:{qid}")

    @property
    def source(self) -> str:
        return self.trace.partition(":")[0]

    @property
    def qid(self) -> str:
        return self.trace.partition(":")[2]

    def over(self, place: Query) -> str:
        """Return the address of a view with this trace open in it."""
        return f"{place.href}{'&' if place.query_text else '?'}{self.query_text}"


@dataclass(frozen=True)
class QuestionAddress(Query):
    """A chain on one question. ``set``: the question's dataset; ``q``: the id of the question; ``ask``: a typed
    question; ``run``, ``chain``: the source of the chain.
    """

    VIEW = "build/one"
    set: str = ""
    q: str = ""
    ask: str = ""
    run: str = ""
    chain: str = ""


@dataclass(frozen=True)
class GridAddress(Query):
    """A grid of variants. ``sample``: the choice of questions; ``q``: ids picked by hand, separated by commas; ``v``: the
    variants, each as ``chain_forms.to_address`` writes it; ``c``: further columns.
    """

    VIEW = "build/few"
    set: str = ""
    sample: str = ""
    q: str = ""
    v: tuple[str, ...] = ()
    c: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentAddress(Query):
    """An episode. ``run`` and ``q``: an episode from a run."""

    VIEW = "build/agent"
    run: str = ""
    q: str = ""


@dataclass(frozen=True)
class RunsAddress(Query):
    """The list of runs. ``new``: open the dialog for a new run."""

    VIEW = "runs/list"
    new: str = ""


@dataclass(frozen=True)
class RunAddress(Query):
    """A run. ``part``: its section; ``only``, ``words``: the filter of its questions; ``q``: the open question; ``label``: the
    mode of labelling, ``open`` or ``blind``.
    """

    VIEW = "runs/run"
    id: str = ""
    part: str = ""
    only: str = ""
    words: str = ""
    q: str = ""
    label: str = ""


@dataclass(frozen=True)
class ExperimentsAddress(Query):
    """The steps of a new experiment. ``paper``: the paper of a published benchmark; ``run``: the run for baselines."""

    VIEW = "experiments/list"
    kind: str = ""
    paper: str = ""
    run: str = ""


@dataclass(frozen=True)
class ExperimentAddress(Query):
    """An experiment. ``by``: the ranking metric; ``beside``: another experiment; ``x``, ``y``: axes of a trade-off."""

    VIEW = "experiments/one"
    id: str = ""
    by: str = ""
    beside: str = ""
    x: str = ""
    y: str = ""


@dataclass(frozen=True)
class PaperTableAddress(Query):
    """A table of a paper; without one, all tables."""

    VIEW = "experiments/published"
    table: str = ""


@dataclass(frozen=True)
class CorpusAddress(Query):
    """The passages of a corpus. ``find``: the filter; ``q``: the open passage."""

    VIEW = "data/corpus"
    id: str = ""
    find: str = ""
    q: str = ""


@dataclass(frozen=True)
class PageAddress(Query):
    """The page of passage ``q`` of a retriever (``index``) or a corpus. ``at``: the cited characters of the passage,
    as in "12-30".
    """

    VIEW = "data/page"
    index: str = ""
    corpus: str = ""
    q: str = ""
    at: str = ""


@dataclass(frozen=True)
class DatasetAddress(Query):
    """The records of a dataset. ``find``: the filter; ``q``: the open record; ``new``: add a question."""

    VIEW = "data/dataset"
    id: str = ""
    find: str = ""
    q: str = ""
    new: str = ""


@dataclass(frozen=True)
class GoldAddress(Query):
    """The choice of gold pages of a dataset by searching an index. ``q``: the open question."""

    VIEW = "data/gold"
    id: str = ""
    index: str = ""
    q: str = ""


@dataclass(frozen=True)
class IndexAddress(Query):
    """An index and a search. ``set``, ``q``: the question whose gold is highlighted."""

    VIEW = "data/index"
    id: str = ""
    set: str = ""
    q: str = ""
    query: str = ""


@dataclass(frozen=True)
class BuilderAddress(Query):
    """A builder, or a dataset being built. ``which``: the rows of its ``stage``."""

    VIEW = "data/builder"
    id: str = ""
    stage: str = ""
    which: str = ""
    articles: str = ""


@dataclass(frozen=True)
class ModelAddress(Query):
    """A language model."""

    VIEW = "models/one"
    id: str = ""


@dataclass(frozen=True)
class ComparisonAddress(Query):
    """Runs ``a`` and ``b``, or several as ``r``. ``metric``: the deciding metric."""

    VIEW = "runs/compare"
    a: str = ""
    b: str = ""
    r: tuple[str, ...] = ()
    metric: str = ""
