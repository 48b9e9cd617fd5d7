"""A boolean agent with a numeric decision: it reads passages if its draft is too uncertain.

The number is the draft's confidence (provided by the embedded reader), the geometric mean of its token probabilities, its
agreement with samples (self-consistency, Wang et al. 2022, arXiv:2203.11171), or the score of the best passage.
``both_branches`` runs both branches once, so that every threshold can be evaluated afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rallebench.core.answers import f1_score
from rallebench.core.declining import declines
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Note,
    Outcome,
    Question,
    Reply,
    Retrieve,
    Step,
    SubFlow,
)
from rallebench.papers.barag.workflow import (
    MODE_FORM,
    OWN,
    READ,
    BaragAgent,
    answer,
    draft,
    more_information,
    refusal,
    register_mode,
)

SIGNALS = ("confidence", "logprob", "agreement", "retrieval")
UNKNOWN = "The draft has no such number, so passages are read."


def declare_draft_passages() -> int:
    """A settings field: the number of passages in a draft's prompt."""
    return declare(int, 0, 0, 1000, about="passages in the prompt of a draft", advanced=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for reading passages: the draft's certainty is below ``threshold`` or, with the signal ``retrieval``, the best
    passage's score is at least ``threshold``. ``samples``: number of further drafts for ``agreement``; ``draft_passages``:
    number of passages in the draft's prompt (0 as published)."""

    signal: str = declare(
        str, "confidence", choices=SIGNALS, about="the number by which the uncertain agent decides"
    )
    threshold: float = declare(
        float, 0.5, about="passages are read below it; for the signal retrieval, from it on"
    )
    samples: int = declare(int, 0, 0, 100, about="further drafts, for agreement")
    draft_passages: int = declare_draft_passages()


def certainty(signal: str, drafted: Reply, samples: Sequence[Reply] = ()) -> float | None:
    """The certainty of the draft, from 0 to 1; 0 for a refusal, None if unknown.

    ``agreement`` is the mean word F1 between the samples and the draft.

    >>> certainty("agreement", Reply("in Rome"), [Reply("in Rome"), Reply("Paris")])
    0.5
    """
    if declines(drafted.text):
        return 0.0
    if signal == "confidence":
        return drafted.confidence
    if signal == "logprob":
        return math.exp(sum(drafted.logprobs) / len(drafted.logprobs)) if drafted.logprobs else None
    return (
        sum(f1_score(sample.text, drafted.text) for sample in samples) / len(samples)
        if samples
        else None
    )


def best_score(hits: Sequence[Hit]) -> float | None:
    return max((hit.score for hit in hits), default=None)


def reads(signal: str, value: float | None, threshold: float) -> bool:
    """Return whether passages are read; an unknown certainty counts as too low."""
    if signal == "retrieval":
        return value is not None and value >= threshold
    return value is None or value < threshold


@register_mode("barag-uncertain", form={**MODE_FORM, **dataclass_form(Rule)})
def uncertain_agent(question: Question, *, agent: BaragAgent, rule: Rule) -> Flow:
    """The draft is the answer if it is certain enough; otherwise passages are read."""
    hits: tuple[Hit, ...] | None = None
    if rule.signal == "retrieval" or rule.draft_passages:
        hits = (yield Retrieve(agent.retriever, question.text, agent.k)).hits
    if rule.signal == "retrieval":
        value = best_score(hits or ())
        if not reads(rule.signal, value, rule.threshold):
            return Outcome((yield from _draft(question, agent, rule, hits or ())).text, OWN)
    else:
        drafted = yield from _draft(question, agent, rule, hits or ())
        samples = yield from _samples(question, agent, rule, hits or ())
        value = certainty(rule.signal, drafted, samples)
        yield Note(UNKNOWN if value is None else f"{rule.signal} {value:.4f}")
        if not reads(rule.signal, value, rule.threshold):
            return Outcome(drafted.text, OWN)
    if hits is None:
        hits = (yield Retrieve(agent.retriever, question.text, agent.k)).hits
    reply = yield from answer(question, agent, agent.prompts.naive, hits)
    return Outcome(reply.text, READ)


# ── both branches of every question, for a curve ─────────────────────────────


@dataclass(frozen=True, slots=True)
class Branches:
    """The steps of an episode of ``both_branches``; ``decision`` is None if the model was not asked."""

    draft: Step
    samples: tuple[Step, ...]
    decision: Step | None
    read: Step
    hits: tuple[Hit, ...]

    def step(self, branch: str) -> Step:
        """The step with a branch's answer, ``draft`` or ``read``."""
        return self.draft if branch == "draft" else self.read


def both_branches(question: Question, *, agent: BaragAgent, rule: Rule, ask: bool = False) -> Flow:
    """Retrieve, draft, sample, ask the yes-or-no question (``ask``), and answer with passages. The last answer is the
    episode's."""
    if (refused := refusal(question)) is not None:
        return refused
    hits = (yield Retrieve(agent.retriever, question.text, agent.k)).hits
    drafted = yield from _draft(question, agent, rule, hits)
    yield from _samples(question, agent, rule, hits)
    if ask:
        yield from more_information(question, drafted, agent)
    reply = yield from answer(question, agent, agent.prompts.naive, hits)
    return Outcome(reply.text, READ)


def find_branches(episode: Episode, samples: int, ask: bool) -> Branches | None:
    """The steps of an episode of ``both_branches``; None if the question was refused."""
    generations = [step for step in episode.steps if isinstance(step.request, Generate)]
    if len(generations) != 2 + samples + ask:
        return None
    drafted, *others, read = generations
    decision = others[samples] if ask else None
    return Branches(drafted, tuple(others[:samples]), decision, read, episode.hits)


def _draft(
    question: Question, agent: BaragAgent, rule: Rule, hits: Sequence[Hit], seed: int | None = None
) -> SubFlow[Reply]:
    seen = hits[: rule.draft_passages]
    if seen:
        drafting = replace(agent, llm=agent.drafter)
        return (yield from answer(question, drafting, agent.prompts.naive, seen, seed=seed))
    return (yield from draft(question, agent, seed=seed))


def _samples(
    question: Question, agent: BaragAgent, rule: Rule, hits: Sequence[Hit]
) -> SubFlow[tuple[Reply, ...]]:
    """Further drafts, with the seeds after the agent's own."""
    replies = []
    for number in range(1, rule.samples + 1):
        replies.append((yield from _draft(question, agent, rule, hits, (agent.seed or 0) + number)))
    return tuple(replies)
