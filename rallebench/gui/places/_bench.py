"""What Build keeps for one browser window: the chain, the question, what was executed, and the verdicts so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rallebench.core.types import Chain, Episode, Example, Step
from rallebench.gui.frame import Event, Page
from rallebench.services.chain_forms import DEFAULT_CHAIN, DEFAULT_DATASET
from rallebench.services.verdicts import Verdict

KEPT = 60
"""Versions of a chain that undo remembers."""


@dataclass
class Bench:
    """``steps`` and ``before``: action → its step now, and of the chain as it was executed before. ``executed``: the
    chain of ``steps``. ``past``: chains to which undo returns. ``verdicts``: (dataset, question) → (verdict, answer). ``draft``: the edited chain as the
    browser keeps it. ``left_behind``: the edited chain that a crash left in the browser, until it is restored or discarded."""

    chain: Chain
    dataset: str = DEFAULT_DATASET
    question: str = ""
    only: str = ""
    words: str = ""
    executed: Chain | None = None
    steps: dict[int, Step] = field(default_factory=dict)
    before: dict[int, Step] = field(default_factory=dict)
    episode: Episode | None = None
    verdict: Verdict | None = None
    verdict_before: str = ""
    past: list[Chain] = field(default_factory=list)
    history: list[tuple[float, Chain, str, str]] = field(default_factory=list)
    verdicts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    window: str = ""
    draft: str | None = None
    left_behind: Chain | None = None

    def edit(self, chain: Chain) -> None:
        """Another chain; undo returns to the one before."""
        if chain != self.chain:
            self.past = [*self.past[-KEPT:], self.chain]
            self.chain = chain

    def forget_steps(self) -> None:
        """Another question: nothing is executed yet."""
        self.executed, self.episode, self.verdict = None, None, None
        self.steps, self.before, self.verdict_before = {}, {}, ""

    def put(self, example: Example, episode: Episode, verdict: Verdict) -> None:
        """The end of an execution."""
        self.episode, self.verdict = episode, verdict
        self.verdicts[self.dataset, example.question.qid] = (verdict.kind, episode.answer)

    @property
    def verdict_kind(self) -> str:
        """The verdict in a word, "" before one is known."""
        return self.verdict.kind if self.verdict else ""

    def answered_by(self, chain: Chain) -> bool:
        """Whether what is shown was answered by this very chain."""
        same = replace(chain, name="")
        return self.executed is not None and replace(self.executed, name="") == same


def bench_of(page: Page, event: Event) -> Bench:
    """What Build keeps for the window of an event; the starter's chain and first question in a new one."""
    bench = event.session.get("build")
    if not isinstance(bench, Bench):
        chain = page.workbench.workspace.chain(DEFAULT_CHAIN)
        first = page.workbench.asking.questions(DEFAULT_DATASET)[0].question.qid
        window = str(event.session.get("window", ""))
        bench = event.session["build"] = Bench(chain, question=first, window=window)
    return bench


def example_of(page: Page, bench: Bench) -> Example:
    """The question of the bench with its gold; a question of the user's own has none. Raises RalleError."""
    return page.workbench.asking.example(bench.dataset, bench.question)
