"""Where a chain loses its questions, told from the stored steps without any judge.

A question falls into the first stage that applies: its gold pages are not in the corpus → not among what was
retrieved → retrieved, but not in any prompt → in the prompt, but the answer does not hold a gold answer →
the answer holds one, but the exact-match metric does not count it → right, though the gold pages were
never in a prompt → right with support.

Imported predictions record no prompt, and some no retrieval: of them only what they record is told.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rallebench.metrics import METRICS
from rallebench.metrics.recorded import IMPORTED, has_pages
from rallebench.metrics.text import passage_has_answer
from rallebench.types import Episode, Example, Generate, Gold, Note, Passage, Retrieve

STAGES = {
    "failed": "the question failed; nothing can be said",
    "not_in_corpus": "a gold page is not in the corpus",
    "not_retrieved": "the gold pages are in the corpus, but were not retrieved within k",
    "not_in_prompt": "retrieved, but not word for word in a prompt: cut by template, k or context window",
    "not_in_answer": "in the prompt, but no gold answer is in the answer",
    "lost_by_format": "a gold answer is in the answer, but more is, so exact match is 0",
    "right_without_support": "right, though the gold pages never stood in a prompt",
    "right": "right, with the gold pages in the prompt",
    "in_prompt": "in the prompt; the answers are too long to be compared by exact match",
    "unanswerable": "the gold accepts no answer",
    "retrieved": "imported: the gold pages were retrieved; no prompt is recorded, so what became of them is not known",
    "not_recorded": "imported: no retrieval is recorded, so where the question was lost is not known",
}
"""Stage → what it means, in the order in which a question passes them."""

SHORT: Mapping[str, str] = {
    "failed": "failed",
    "not_in_corpus": "not in the corpus",
    "not_retrieved": "not retrieved",
    "not_in_prompt": "not in the prompt",
    "not_in_answer": "not in the answer",
    "lost_by_format": "lost by format",
    "right_without_support": "right without support",
    "right": "right",
    "in_prompt": "in the prompt",
    "unanswerable": "unanswerable",
    "retrieved": "retrieved, prompt unknown",
    "not_recorded": "no retrieval recorded",
}
"""Stage → its name."""

LONG_ANSWER = 10
"""Words. Where the usual gold answer is longer, exact match says nothing."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one question fell. ``by``: ``pages``, or ``answers`` where the gold names no pages."""

    qid: str
    stage: str
    by: str = "pages"


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All questions of a run in their order. ``corpus_known``: whether the corpus could be looked at."""

    placed: tuple[Placed, ...]
    corpus_known: bool
    without_pages: int
    retrieves: bool = True

    @property
    def tells(self) -> bool:
        """Whether there is a way on which questions can be lost: something was retrieved, or gold pages are named."""
        return self.retrieves or self.imported or self.without_pages < len(self.placed)

    @property
    def imported(self) -> bool:
        """Whether the questions are imported predictions, of which no prompt is recorded."""
        return any(one.stage in ("retrieved", "not_recorded") for one in self.placed)

    def counts(self) -> dict[str, int]:
        """Stage → number of questions, all stages in their order."""
        found = Counter(one.stage for one in self.placed)
        return {stage: found[stage] for stage in STAGES}

    def questions(self, stage: str) -> list[str]:
        """The ids that fell into ``stage``, in order."""
        return [one.qid for one in self.placed if one.stage == stage]

    def within(self, qids: Collection[str]) -> Waterfall:
        """The same for some of the questions only."""
        placed = tuple(one for one in self.placed if one.qid in qids)
        return Waterfall(placed, self.corpus_known, sum(one.by == "answers" for one in placed), self.retrieves)


def waterfall(
    examples: Sequence[Example], episodes: Iterable[Episode], corpus_pages: Collection[str] | None = None
) -> Waterfall:
    """Place every episode. ``corpus_pages``: all page ids of the corpora asked, None where they are not known."""
    episodes = list(episodes)
    gold = {example.question.qid: example.gold for example in examples}
    long = _are_long(examples)
    placed = tuple(
        _place(episode, gold[episode.qid], corpus_pages, long)
        for episode in episodes
        if episode.qid in gold
    )
    retrieves = any(isinstance(step.request, Retrieve) or step.reply.hits for episode in episodes for step in episode.steps)
    return Waterfall(placed, corpus_pages is not None, sum(one.by == "answers" for one in placed), retrieves)


def _are_long(examples: Sequence[Example]) -> bool:
    lengths = [min(len(answer.split()) for answer in e.gold.answers) for e in examples if e.gold.answers]
    return bool(lengths) and statistics.median(lengths) > LONG_ANSWER


def _place(episode: Episode, gold: Gold, corpus: Collection[str] | None, long: bool) -> Placed:
    sets = [pages for pages in gold.provenance if pages]
    by = "pages" if sets else "answers"
    if episode.error:
        return Placed(episode.qid, "failed", by)
    if not gold.answers and not sets:
        return Placed(episode.qid, "unanswerable", by)
    if episode.workflow == IMPORTED:
        return Placed(episode.qid, _of_imported(episode, sets), by)
    supported = _in_prompt(episode, gold, sets)
    if _is_right(episode, gold) and not long:
        return Placed(episode.qid, "right" if supported else "right_without_support", by)
    if supported:
        return Placed(episode.qid, _after_prompt(episode, gold, long), by)
    if sets and corpus is not None and not any(pages <= set(corpus) for pages in sets):
        return Placed(episode.qid, "not_in_corpus", by)
    return Placed(episode.qid, "not_in_prompt" if _retrieved(episode, gold, sets) else "not_retrieved", by)


def _of_imported(episode: Episode, sets: Sequence[frozenset[str]]) -> str:
    """Pages are all that predictions can record of a retrieval: nothing is said of prompts, nor without gold pages."""
    if not has_pages(episode) or not sets:
        return "not_recorded"
    found = {hit.passage.page_id for hit in episode.hits}
    return "retrieved" if any(pages <= found for pages in sets) else "not_retrieved"


def _after_prompt(episode: Episode, gold: Gold, long: bool) -> str:
    if long or not gold.answers:
        return "in_prompt"
    return "lost_by_format" if METRICS["has_answer"](episode, gold) else "not_in_answer"


def _is_right(episode: Episode, gold: Gold) -> bool:
    return bool(gold.answers) and METRICS["em"](episode, gold) == 1.0


def _retrieved(episode: Episode, gold: Gold, sets: Sequence[frozenset[str]]) -> bool:
    if sets:
        found = {hit.passage.page_id for hit in episode.hits}
        return any(pages <= found for pages in sets)
    return any(passage_has_answer(passage.text, gold.answers) for passage in _passages(episode))


def _in_prompt(episode: Episode, gold: Gold, sets: Sequence[frozenset[str]]) -> bool:
    """Whether a whole evidence set (or, without pages, a passage with an answer) stands in one prompt."""
    seen: list[Passage] = []
    for step in episode.steps:
        seen += [hit.passage for hit in step.reply.hits]
        if isinstance(step.request, Retrieve):
            continue
        prompt = _prompt(step.request)
        there = [passage for passage in seen if _stands(passage, prompt)]
        pages = {passage.page_id for passage in there}
        if any(wanted <= pages for wanted in sets):
            return True
        if not sets and any(passage_has_answer(passage.text, gold.answers) for passage in there):
            return True
    return False


def _stands(passage: Passage, prompt: str) -> bool:
    """A passage stands in a prompt with its text; a chain that works with titles alone shows its title."""
    return (bool(passage.text) and passage.text in prompt) or (bool(passage.title) and prompt.strip() == passage.title)


def _prompt(request: object) -> str:
    if isinstance(request, Generate):
        return "\n".join(message.content for message in request.messages)
    return request.text if isinstance(request, Note) else ""


def _passages(episode: Episode) -> list[Passage]:
    return [hit.passage for step in episode.steps for hit in step.reply.hits]
