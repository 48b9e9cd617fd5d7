"""Where a chain loses its questions, told from the stored steps without any judge.

A question falls into the first stage that applies: its gold pages are not in the corpus → not among what was
retrieved, or what came with the question → retrieved, but not in any prompt → in the prompt, but the answer does
not hold a gold answer → the answer holds one, but the exact-match metric does not count it → right, though the
gold pages were never in a prompt → right with support.

Imported predictions record no prompt, and some no retrieval: of them only what they record is told.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench.core.types import Episode, Example, Generate, Gold, Note, Passage, Retrieve
from rallebench.metrics import METRICS
from rallebench.metrics.recorded import IMPORTED, has_pages
from rallebench.metrics.text import passage_has_answer
from rallebench.metrics.words import has_cjk

STAGES = {
    "failed": "the question failed; nothing can be said",
    "not_in_corpus": "a gold page is not in the corpus",
    "not_retrieved": "the gold pages are in the corpus, but were not retrieved within k",
    "not_found": "the gold was not retrieved within k; whether the corpus holds it is not known",
    "not_given": "no passage that came with the question holds a gold answer",
    "not_in_prompt": "retrieved, but not word for word in a prompt: cut by template, k or context window",
    "not_in_answer": "in the prompt, but no gold answer is in the answer",
    "lost_by_format": "a gold answer is in the answer, but more is, so exact match is 0",
    "right_without_support": "right, though no support (gold pages, or else a passage with an answer) stood in a prompt",
    "right": "right, with its support in the prompt",
    "in_prompt": "in the prompt; the answers are too long to be compared by exact match",
    "without_answers": "in the prompt; the gold has no answers to compare with",
    "unanswerable": "the gold accepts no answer",
    "retrieved": "imported: the gold pages were retrieved; no prompt is recorded, so what became of them is not known",
    "not_recorded": "imported: no retrieval is recorded, so where the question was lost is not known",
}
"""Stage → what it means, in the order in which a question passes them."""

SHORT: Mapping[str, str] = {
    "failed": "failed",
    "not_in_corpus": "not in the corpus",
    "not_retrieved": "not retrieved",
    "not_found": "not retrieved, corpus unknown",
    "not_given": "not in the given passages",
    "not_in_prompt": "not in the prompt",
    "not_in_answer": "not in the answer",
    "lost_by_format": "lost by format",
    "right_without_support": "right without support",
    "right": "right",
    "in_prompt": "in the prompt",
    "without_answers": "in the prompt, no gold answers",
    "unanswerable": "unanswerable",
    "retrieved": "retrieved, prompt unknown",
    "not_recorded": "no retrieval recorded",
}
"""Stage → its name."""

UNTRACED = (
    "nothing was retrieved and no question names gold pages, so there is no way on which one could be traced; the metrics "
    "say what the answers were worth."
)
"""What is said of a run whose waterfall tells nothing."""

LONG_ANSWER = 10
"""Words. Where the usual gold answer is longer, exact match says nothing."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one question fell. ``by``, what was looked for: the gold's ``pages``; where it names none, its ``answers``
    in what was retrieved, or in the passages that were ``given`` with the question."""

    qid: str
    stage: str
    by: str = "pages"


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All questions of a run in their order. ``corpus_known``: whether the corpus could be looked at; ``imported``: whether
    the answers are another program's predictions, of which no prompt is recorded."""

    placed: tuple[Placed, ...]
    corpus_known: bool
    retrieves: bool = True
    imported: bool = False

    @property
    def without_pages(self) -> int:
        """Questions without gold pages whose answers were looked for in what was retrieved."""
        return sum(one.by == "answers" for one in self.placed)

    @property
    def given(self) -> int:
        """Questions that came with their passages, so that no corpus was asked."""
        return sum(one.by == "given" for one in self.placed)

    @property
    def tells(self) -> bool:
        """Whether there is a way on which questions can be lost: something was retrieved or came with a
        question, or gold pages are named."""
        return self.retrieves or self.imported or self.without_pages < len(self.placed)

    @property
    def misses_corpus(self) -> bool:
        """Whether a corpus was asked that could not be looked at."""
        return self.retrieves and not (
            self.corpus_known or self.imported or self.given == len(self.placed)
        )

    def counts(self) -> dict[str, int]:
        """Stage → number of questions, all stages in their order."""
        found = Counter(one.stage for one in self.placed)
        return {stage: found[stage] for stage in STAGES}

    def questions(self, stage: str) -> list[str]:
        """The ids that fell into ``stage``, in order."""
        return [one.qid for one in self.placed if one.stage == stage]

    def within(self, qids: Collection[str]) -> Waterfall:
        """The same for some of the questions only."""
        return replace(self, placed=tuple(one for one in self.placed if one.qid in qids))


def waterfall(
    examples: Sequence[Example],
    episodes: Iterable[Episode],
    corpus_pages: Collection[str] | None = None,
) -> Waterfall:
    """Place every episode. ``corpus_pages``: all page ids of the corpora asked, None where they are not known."""
    episodes = list(episodes)
    asked = {example.question.qid: example for example in examples}
    long = _are_long(examples)
    placed = tuple(
        _place(episode, asked[episode.qid], corpus_pages, long)
        for episode in episodes
        if episode.qid in asked
    )
    retrieves = any(
        isinstance(step.request, Retrieve) or step.reply.hits
        for episode in episodes
        for step in episode.steps
    )
    return Waterfall(
        placed,
        corpus_pages is not None,
        retrieves,
        any(episode.workflow == IMPORTED for episode in episodes),
    )


def _are_long(examples: Sequence[Example]) -> bool:
    lengths = [
        min(len(answer.split()) for answer in e.gold.answers) for e in examples if e.gold.answers
    ]
    return bool(lengths) and statistics.median(lengths) > LONG_ANSWER


def _given(example: Example, episode: Episode) -> tuple[Passage, ...]:
    """The passages that came with the question, where nothing was retrieved; a stored record of RGB's holds their texts."""
    if any(isinstance(step.request, Retrieve) or step.reply.hits for step in episode.steps):
        return ()
    kept = example.record.get("rgb")
    documents = kept.get("docs") if isinstance(kept, Mapping) else None
    documents = documents if isinstance(documents, list) else []
    texts = [
        one["text"]
        for one in documents
        if isinstance(one, Mapping) and isinstance(one.get("text"), str)
    ]
    return example.question.passages or tuple(
        Passage(f"document {n}", text) for n, text in enumerate(texts, 1)
    )


def _place(
    episode: Episode, example: Example, corpus: Collection[str] | None, long: bool
) -> Placed:
    gold, given = example.gold, _given(example, episode)
    sets = [pages for pages in gold.provenance if pages]
    by = "pages" if sets else "given" if given else "answers"
    if episode.error:
        return Placed(episode.qid, "failed", by)
    if not gold.answers and not sets:
        return Placed(episode.qid, "unanswerable", by)
    if episode.workflow == IMPORTED:
        return Placed(episode.qid, _of_imported(episode, sets), by)
    supported = _in_prompt(episode, gold, sets, given)
    if _is_right(episode, gold) and not long:
        return Placed(episode.qid, "right" if supported else "right_without_support", by)
    if supported:
        return Placed(episode.qid, _after_prompt(episode, gold, long), by)
    if sets and corpus is not None and not any(pages <= set(corpus) for pages in sets):
        return Placed(episode.qid, "not_in_corpus", by)
    if _retrieved(episode, gold, sets, given):
        return Placed(episode.qid, "not_in_prompt", by)
    # Of gold without pages nobody can say whether the corpus holds it.
    unknown = "not_given" if by == "given" else "not_found"
    return Placed(episode.qid, "not_retrieved" if sets and corpus is not None else unknown, by)


def _of_imported(episode: Episode, sets: Sequence[frozenset[str]]) -> str:
    """Pages are all that predictions can record of a retrieval: nothing is said of prompts, nor without gold pages."""
    if not has_pages(episode) or not sets:
        return "not_recorded"
    found = {hit.passage.page_id for hit in episode.hits}
    return "retrieved" if any(pages <= found for pages in sets) else "not_found"


def _after_prompt(episode: Episode, gold: Gold, long: bool) -> str:
    if not gold.answers:
        return "without_answers"
    if long:
        return "in_prompt"
    return "lost_by_format" if METRICS["has_answer"](episode, gold) else "not_in_answer"


def _is_right(episode: Episode, gold: Gold) -> bool:
    return bool(gold.answers) and METRICS["em"](episode, gold) == 1.0


def _retrieved(
    episode: Episode, gold: Gold, sets: Sequence[frozenset[str]], given: Sequence[Passage]
) -> bool:
    if sets:
        found = {hit.passage.page_id for hit in episode.hits}
        return any(pages <= found for pages in sets)
    return any(_holds(passage.text, gold.answers) for passage in (*given, *_passages(episode)))


def _holds(text: str, answers: Sequence[str]) -> bool:
    """Whether an answer stands in a text: as words, or where it is Chinese, which parts no words, as characters."""
    return passage_has_answer(text, answers) or any(
        has_cjk(answer) and answer in text for answer in answers
    )


def _in_prompt(
    episode: Episode, gold: Gold, sets: Sequence[frozenset[str]], given: Sequence[Passage]
) -> bool:
    """Whether a whole evidence set (or, without pages, a passage with an answer) stands in one prompt."""
    seen = list(given)
    if given and not sets and not any(isinstance(step.request, Generate) for step in episode.steps):
        # An answer of an earlier time, used again: it was made of these passages.
        return any(_holds(passage.text, gold.answers) for passage in given)
    for step in episode.steps:
        seen += [hit.passage for hit in step.reply.hits]
        if isinstance(step.request, Retrieve):
            continue
        prompt = _prompt(step.request)
        there = [passage for passage in seen if _stands(passage, prompt)]
        pages = {passage.page_id for passage in there}
        if any(wanted <= pages for wanted in sets):
            return True
        if not sets and any(_holds(passage.text, gold.answers) for passage in there):
            return True
    return False


def _stands(passage: Passage, prompt: str) -> bool:
    """A passage stands in a prompt with its text; a chain that works with titles alone shows its title."""
    return (bool(passage.text) and passage.text in prompt) or (
        bool(passage.title) and prompt.strip() == passage.title
    )


def _prompt(request: object) -> str:
    if isinstance(request, Generate):
        return "\n".join(message.content for message in request.messages)
    return request.text if isinstance(request, Note) else ""


def _passages(episode: Episode) -> list[Passage]:
    return [hit.passage for step in episode.steps for hit in step.reply.hits]
