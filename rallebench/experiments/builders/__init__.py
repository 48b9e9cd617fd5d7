"""Question sets of one's own, made in stages: every stage is a file of JSON lines to look at, edit and continue from.

A maker is a generator, as a suite is: it yields a ``Stage``, is sent the stage's rows (``rows.Rows``), and returns what it
``Made``. It writes no file and asks no model; ``running`` performs its stages, below ``<workspace>/making/<name>/``::

    @MAKERS.register("titles", form={"k": Setting(int, 1)})
    def titles(order):
        rows = yield Stage("1-articles", "articles", lambda: read(order), make=lambda article: [article])
        return Made(tuple(question_of(row) for row in rows if row["keep"]))

A row has an ``id``; ``keep`` says whether it goes on and ``why`` not. A stage makes rows only of inputs that have none
in its file; rows that a person has changed or written stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, checked
from rallebench.core.types import Episode, Flow
from rallebench.experiments.builders.rows import Row
from rallebench.workspace.paths import Workspace

FOLDER = "making"


@dataclass(frozen=True, slots=True)
class Order:
    """What a maker is asked for. ``settings``: all of its own, checked. ``articles``: a path or a corpus's name, '' if none was
    given; ``llm``: '' if none was named; ``limit``: so many articles (or questions) at most."""

    workspace: Workspace
    name: str
    settings: Mapping[str, Any]
    articles: str = ""
    llm: str = ""
    limit: int | None = None

    @property
    def folder(self) -> Path:
        """Where the stages are."""
        return self.workspace.path / FOLDER / self.name


@dataclass(frozen=True, slots=True)
class Stage:
    """One file, ``<label>.jsonl``: the rows that are made of ``inputs``, each of which has an ``id``.

    ``make``: an input's rows, without a model. Else ``flow`` asks ``llms`` about an input, and ``read`` says what rows its
    episode gives, also if it failed (``episode.error``; such a row has ``error``, and the next run tries it again).
    ``of``: what an input's rows depend on, JSON-able; rows that were made of something else are made again.
    ``once``: all that ``inputs`` reads and depends on; a stage that was ended with the same is not read again.
    ``told``: what to know of the inputs when they have been read, JSON-able; ``left_out`` in it (why → how many) joins the counts.
    ``about``: what the rows are, in a word or two.
    """

    label: str
    about: str
    inputs: Callable[[], Iterable[Row]]
    make: Callable[[Row], Sequence[Row]] | None = None
    flow: Callable[[Row], Flow] | None = None
    read: Callable[[Row, Episode], Sequence[Row]] | None = None
    of: Callable[[Row], Any] = lambda row: None
    llms: tuple[str, ...] = ()
    once: str = ""
    told: Callable[[], Mapping[str, Any]] = dict


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite that does the work of a maker, under the maker's own name; the maker is sent its ``ExperimentResult``."""

    suite: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What a maker ends with. ``questions``: records in KILT's form, to be asked under the maker's name; ``files``: path below
    its folder → pieces of text; ``counts``, ``notes``: what a reader must know beside the stages' own counts."""

    questions: tuple[Mapping[str, Any], ...] = ()
    files: Mapping[str, Iterable[str]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Steps = Generator[Union[Stage, Suite], Any, Made]
Maker = Callable[[Order], Steps]

MAKERS: Registry[Maker] = Registry(
    "maker of question sets",
    "rallebench.experiments.builders",
    traits={"articles": "whether it reads articles; default true"},
)
"""What can be wrong must be found before the first stage is yielded."""


def settings_of(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a maker, those given as they were written. Raises UsageError."""
    known: Mapping[str, Setting] = MAKERS.entry(name).form
    return checked(f"maker {name!r}", known, given, flag="--set ")
