"""The state of Build in one browser window: chain, question, steps, and verdicts so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.starter import DEFAULT_CHAIN, DEFAULT_DATASET
from rallebench.core.stopping import Stop, stop_of_thread
from rallebench.core.types import Action, Chain, Episode, Example, Message, Step
from rallebench.gui import html
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Meanwhile, Patch
from rallebench.gui.places._chain import read_chain
from rallebench.render.numbers import text
from rallebench.views.verdicts import Verdict

UNDO_DEPTH = 60
"""Versions of a chain kept for undo."""

PAUSE = 0.2
"""Seconds between checks of another stream's work."""


@dataclass(eq=False)
class Execution:
    """A run of this window's chain or part of it, including its model requests.

    ``action``: the action that owns the stream and whose stop button ends it. ``doing``: its current task; ``needs``:
    the models and indexes to load first; ``work``: the stop signal of its stream, which identifies its requests.
    """

    action: str
    doing: str = "Running"
    needs: tuple[str, ...] = ()
    began: float = field(default_factory=time.time)
    work: Stop = field(default_factory=stop_of_thread)

    def missing(self, page: Page, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return those ``names`` that are not loaded."""
        models = page.workbench.models
        return tuple(name for name in dict.fromkeys(names) if not models.is_loaded(name))

    def words(self, page: Page, llms: tuple[str, ...]) -> Markup:
        """Return the current task, its duration, the reason for a retry, and the stop button, as HTML."""
        words = self.sentence(page, llms)
        return Markup('{}<span title="{}">{}</span>').format(
            html.stop_stream(self.action), words, words
        )

    def sentence(self, page: Page, llms: tuple[str, ...] = ()) -> str:
        """Return the current task, its duration, and the reason for a retry."""
        waited = time.time() - self.began
        since = text(int(waited), "duration") if waited > 1 else ""
        doing = f"{self.doing[:1].upper()}{self.doing[1:]}"
        left, total = len(self.missing(page, self.needs)), len(self.needs)
        share = f"{total - left + 1} of {total}" if left and total > 1 else ""
        trouble = page.workbench.models.trouble(llms, self.work)
        return f"{html.join_facts(share, doing, since, trouble)} …"


@dataclass
class Busy:
    """The executions of a window. ``running``: the current one."""

    running: Execution | None = field(default=None, kw_only=True)

    @contextmanager
    def executing(self, action: str) -> Iterator[Execution]:
        """Track an execution from start to end."""
        self.running = going = Execution(action)
        try:
            yield going
        finally:
            self.end(going)

    def end(self, going: Execution) -> bool:
        """End an execution. Return whether it was the current one; a newer one is not affected."""
        was_running = self.running is going
        self.running = None if was_running else self.running
        return was_running


@dataclass
class Bench(Busy):
    """The state of Build in one window.

    ``steps``: action → its step; ``before``: the steps of the previous chain. ``ran``: action → the action that
    produced its step. ``executed``: the chain of the last execution; ``answered``: the chain of ``episode``.
    ``past``: earlier chains for undo. ``history``: (time, chain, answer, verdict, question) of each execution.
    ``known``: saved chains as this window last read or saved them. ``verdicts``: (dataset, question) → (verdict,
    answer). ``earlier``: the turns before a question from Chat. ``draft``: the edited chain in the browser;
    ``left_behind``: a draft that survived a crash, until it is restored or discarded. ``is_stopped``: True if the
    user stopped the last execution. ``source``: the address from which the chain came.
    """

    chain: Chain
    dataset: str = DEFAULT_DATASET
    question: str = ""
    only: str = ""
    words: str = ""
    executed: Chain | None = None
    answered: Chain | None = None
    steps: dict[int, Step] = field(default_factory=dict)
    ran: dict[int, Action] = field(default_factory=dict)
    before: dict[int, Step] = field(default_factory=dict)
    episode: Episode | None = None
    verdict: Verdict | None = None
    verdict_before: str = ""
    past: list[Chain] = field(default_factory=list)
    known: dict[str, Chain] = field(default_factory=dict)
    history: list[tuple[float, Chain, str, str, str]] = field(default_factory=list)
    verdicts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    window: str = ""
    draft: str | None = None
    left_behind: Chain | None = None
    earlier: tuple[Message, ...] = ()
    is_stopped: bool = False
    source: QuestionAddress | None = None

    def edit(self, chain: Chain) -> None:
        """Replace the chain. Undo restores the previous one."""
        if chain != self.chain:
            self.past = [*self.past[-UNDO_DEPTH:], self.chain]
            self.chain = chain

    def forget_steps(self) -> None:
        """Forget the steps of the previous question; a running execution is not affected."""
        self.is_stopped = False
        self.running, self.answered, self.earlier = None, None, ()
        self.executed, self.episode, self.verdict = None, None, None
        self.steps, self.ran, self.before, self.verdict_before = {}, {}, {}, ""

    def stop(self, *, is_opening: bool) -> None:
        """Record that the user stopped an execution. Its steps stay, and no earlier answer is shown in its place."""
        self.episode, self.verdict, self.answered, self.is_stopped = None, None, None, True
        if is_opening:
            self.executed = None

    def put(self, example: Example, episode: Episode, verdict: Verdict) -> None:
        """Record the result of an execution."""
        self.episode, self.verdict, self.answered = episode, verdict, self.executed
        self.verdicts[self.dataset, example.question.qid] = (verdict.kind, episode.answer)

    @property
    def verdict_kind(self) -> str:
        """The verdict as one word; "" if unknown."""
        return self.verdict.kind if self.verdict else ""

    def is_answered_by(self, chain: Chain) -> bool:
        """Return whether exactly this chain produced the result."""
        return self.answered is not None and self.answered.actions == chain.actions

    @property
    def stale_from(self) -> int | None:
        """Index of the first action whose output is out of date; one past the last if only the result is."""
        actions = self.chain.actions
        changed = (i for i, action in enumerate(actions) if self.ran.get(i, action) != action)
        old = self.episode is not None and not self.is_answered_by(self.chain)
        return next(changed, len(actions) if old else None)


def window_bench(page: Page, event: Event) -> Bench:
    """Return the state of Build in the event's window. A new window starts with the starter's chain and its first
    question.
    """

    def new_bench() -> Bench:
        chain = page.workspace.chain(DEFAULT_CHAIN)
        first = page.workspace.questions(DEFAULT_DATASET)[0].question.qid
        known = {DEFAULT_CHAIN: chain}
        return Bench(chain, question=first, window=event.session.window, known=known)

    return event.session.state(Bench, new_bench)


def prepare(page: Page) -> None:
    """Start importing the libraries that the chain of a new window needs; a read-only page runs none."""
    if page.read_only:
        return
    with suppress(RalleError):  # the window reports the error
        chain = page.workspace.chain(DEFAULT_CHAIN)
        loads = [(name, "language model") for name in chain.llms]
        loads += [(name, "retriever") for name in chain.retrievers]
        page.workbench.models.prepare(DEFAULT_CHAIN, loads)


def saved_chain(page: Page, bench: Bench, name: str) -> Chain:
    """Return a saved chain of the workspace and remember it in the window. Raises RalleError."""
    bench.known[name] = page.workspace.chain(name)
    return bench.known[name]


def read_bench(page: Page, event: Event) -> Bench:
    """Return the state of Build, with the chain in the form if the event contains it. Raises UsageError."""
    bench = window_bench(page, event)
    if event.text("count"):
        bench.edit(read_chain(event))
    return bench


def meanwhile(
    page: Page,
    at: str,
    going: Execution,
    llms: tuple[str, ...],
    stopped: Callable[[], Patch],
    beside: Callable[[], str] = lambda: "",
) -> Meanwhile:
    """Return the status shown in the element ``at`` during an execution.

    ``stopped``: the patch after a stop. ``beside``: the element for the full reason of a retry.
    """

    def show(end: bool) -> Patch:
        if end:
            return stopped()
        trouble, place = page.workbench.models.trouble(llms, going.work), beside()
        more = {place: html.warning(f"{trouble}.")} if trouble and place else {}
        return Patch({at: going.words(page, llms), **more})

    return show


def follow_other(page: Page, at: str, busy: Busy) -> Iterator[Patch]:
    """Show the status of this window's other stream in the element ``at`` until it ends."""
    going = busy.running
    while going is not None and busy.running is going:
        yield Patch({at: going.words(page, ())})
        time.sleep(PAUSE)


def bench_example(page: Page, bench: Bench) -> Example:
    """Return the current question with its gold; a typed question has none. Raises RalleError."""
    example = page.workbench.asking.example(bench.dataset, bench.question)
    return replace(example, question=replace(example.question, history=bench.earlier))
