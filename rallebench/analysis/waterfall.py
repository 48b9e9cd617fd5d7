"""Find the stage at which a chain loses each question, from the stored steps and without a judge.

A question belongs to the first stage that applies:

* Its gold pages are missing from the corpus.
* They are not among the retrieved or given passages.
* They were retrieved but never reached a prompt.
* They were in the prompt, but the answer does not contain a gold answer.
* The answer contains a gold answer, but exact match is 0.
* The answer is right, although the gold pages were in no prompt.
* The answer is right and supported.

An unanswerable question has two stages: the answer declines, or it does not.

A closed-book chain retrieves nothing, so only its answer can lose a question. A chain without an answer succeeds once
the gold pages are retrieved.

Imported predictions record no prompt, and some record no retrieval; their stages use only the recorded steps.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence

from rallebench.core.answers import holds_answer
from rallebench.core.errors import RalleError
from rallebench.core.memory import pause_collector
from rallebench.core.numbers import plural
from rallebench.core.tables import Figure
from rallebench.core.types import Episode, Example, Generate, Gold, Note, Passage, Retrieve
from rallebench.core.waterfall import SHORT, UNTRACED, QuestionStage, Waterfall
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS
from rallebench.metrics.recorded import IMPORTED, has_answer, has_retrieval
from rallebench.metrics.words import has_cjk
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages
from rallebench.workspace.paths import WorkspaceFolder

LONG_ANSWER = 10
"""In words. If the median gold answer is longer, exact match is meaningless."""


def figure(named: Sequence[tuple[str, Waterfall]]) -> Figure:
    """Draw one bar per traceable run, divided into stages. ``named``: (name of the run, its waterfall)."""
    series = {name: tuple(fall.counts().items()) for name, fall in named if fall.tells}
    return Figure("Where questions were lost", "", "questions", series, "waterfall", SHORT)


def notes(named: Sequence[tuple[str, Waterfall]]) -> list[str]:
    """Return the caveats of the waterfalls, one sentence each."""
    traced = [(name, fall) for name, fall in named if fall.tells]
    sentences = [
        f"{name}: imported predictions; no prompt is recorded, and where no page is, no retrieval either."
        for name, fall in traced
        if fall.imported
    ]
    if unknown := [name for name, fall in traced if fall.misses_corpus]:
        sentences.append(
            f"{', '.join(unknown)}: the index is not in this workspace, so it is unknown whether the corpus holds the "
            "pages that were not retrieved."
        )
    for name, fall in traced:
        if fall.given_passages:
            sentences.append(
                f"{name}: {plural(fall.given_passages, 'question')} came with passages; one that holds an answer counts as support."
            )
        if fall.without_pages:
            sentences.append(
                f"{name}: {fall.without_pages} questions name no gold pages; there a passage that holds an answer counts as support."
            )
    if untraced := [name for name, fall in named if not fall.tells]:
        sentences.append(f"{', '.join(untraced)}: {UNTRACED}")
    return sentences


def waterfall(
    examples: Sequence[Example],
    episodes: Iterable[Episode],
    corpus_pages: Collection[str] | None = None,
) -> Waterfall:
    """Assign every episode to a stage. ``corpus_pages``: all page ids of the searched corpora; None if unknown."""
    episodes = list(episodes)
    by_qid = {example.question.qid: example for example in examples}
    long = are_long(examples)
    placed = tuple(
        _place(episode, by_qid[episode.qid], corpus_pages, long)
        for episode in episodes
        if episode.qid in by_qid
    )
    imported = any(episode.workflow == IMPORTED for episode in episodes)
    return Waterfall(placed, corpus_pages is not None, any(map(_retrieves, episodes)), imported)


def are_long(examples: Sequence[Example]) -> bool:
    """Return whether the gold answers are too long for exact match."""
    lengths = [
        min(len(answer.split()) for answer in e.gold.answers) for e in examples if e.gold.answers
    ]
    return bool(lengths) and statistics.median(lengths) > LONG_ANSWER


def _passages_given(example: Example, episode: Episode) -> tuple[Passage, ...]:
    """Return the passages given with the question, if nothing was retrieved: ``docs`` of its record, with their
    texts.
    """
    if _retrieves(episode):
        return ()
    lists = (value.get("docs") for value in example.record.values() if isinstance(value, Mapping))
    documents = next((docs for docs in lists if isinstance(docs, list)), None)
    texts = [
        document["text"]
        for document in (documents if isinstance(documents, list) else ())
        if isinstance(document, Mapping) and isinstance(document.get("text"), str)
    ]
    return example.question.passages or tuple(
        Passage(f"document {n}", text) for n, text in enumerate(texts, 1)
    )


def _retrieves(episode: Episode) -> bool:
    return any(isinstance(step.request, Retrieve) or step.reply.hits for step in episode.steps)


def _place(
    episode: Episode, example: Example, corpus: Collection[str] | None, long: bool
) -> QuestionStage:
    provided = _passages_given(example, episode)
    sets = [pages for pages in example.gold.provenance if pages]
    basis = "pages" if sets else "given" if provided else "answers"
    return QuestionStage(episode.qid, _stage(episode, example.gold, provided, corpus, long), basis)


def _stage(
    episode: Episode,
    gold: Gold,
    provided: Sequence[Passage],
    corpus: Collection[str] | None,
    long: bool,
) -> str:
    sets = [pages for pages in gold.provenance if pages]
    if episode.error:
        return "failed"
    if gold.unanswerable and has_answer(episode):
        return "declined" if METRICS["em"](episode, gold) == 1.0 else "not_declined"
    if not gold.answers and not sets:
        return "unanswerable"
    retrieved = [hit.passage for hit in episode.hits]
    if (
        episode.workflow == IMPORTED
    ):  # count at most the retrieved pages; comparing needs gold pages
        if not has_retrieval(episode) or not sets:
            return "not_recorded"
        return "retrieved" if _is_support(retrieved, gold) else "not_found"
    if not has_answer(episode):
        if _is_support(retrieved, gold):
            return "retrieved"
        return _not_retrieved(sets, corpus)
    if not provided and not has_retrieval(episode):
        return _without_passages(episode, gold, long)
    supported = _in_prompt(episode, gold, provided)
    if not long and gold.answers and METRICS["em"](episode, gold) == 1.0:
        return "right" if supported else "right_without_support"
    if supported:
        if not gold.answers:
            return "without_answers"
        if long:
            return "in_prompt"
        return "lost_by_format" if METRICS["has_answer"](episode, gold) else "not_in_answer"
    missed = _not_retrieved(sets, corpus)
    if missed == "not_in_corpus":
        return missed
    if _is_support(retrieved if sets else [*provided, *retrieved], gold):
        return "not_in_prompt"
    return "not_given" if provided and not sets else missed


def _not_retrieved(sets: Sequence[frozenset[str]], corpus: Collection[str] | None) -> str:
    """Return the stage of a question whose gold is not among the passages. Without gold ``sets``, it is unknown
    whether the corpus contains the gold.
    """
    if not sets or corpus is None:
        return "not_found"
    in_corpus = any(pages <= set(corpus) for pages in sets)
    return "not_retrieved" if in_corpus else "not_in_corpus"


def _without_passages(episode: Episode, gold: Gold, long: bool) -> str:
    """Return the stage of an answer given without passages."""
    if not gold.answers:
        return "unanswerable"
    if long:
        return "in_prompt"
    if METRICS["em"](episode, gold) == 1.0:
        return "right_without_support"
    return "lost_by_format" if METRICS["has_answer"](episode, gold) else "not_in_answer"


def _is_support(passages: Sequence[Passage], gold: Gold) -> bool:
    """Return whether passages contain a whole evidence set. Without gold pages, they must contain a gold answer: as
    whole words, or in Chinese, which does not separate words, as a substring.
    """
    if any(gold.provenance):
        pages = {passage.page_id for passage in passages}
        return any(evidence and evidence <= pages for evidence in gold.provenance)
    return any(
        holds_answer(passage.text, gold.answers)
        or any(has_cjk(answer) and answer in passage.text for answer in gold.answers)
        for passage in passages
    )


def _in_prompt(episode: Episode, gold: Gold, provided: Sequence[Passage]) -> bool:
    """Return whether one prompt contains the support of the answer, in passages given or retrieved before it."""
    asks = any(isinstance(step.request, Generate) for step in episode.steps)
    if provided and not asks and not any(gold.provenance):
        return _is_support(
            provided, gold
        )  # an earlier answer was reused; its prompt held these passages
    known = list(provided)
    for step in episode.steps:
        known += [hit.passage for hit in step.reply.hits]
        prompt = _prompt(step.request)
        if _is_support([passage for passage in known if _is_in(passage, prompt)], gold):
            return True
    return False


def _is_in(passage: Passage, prompt: str) -> bool:
    """Return whether a prompt contains a passage's text, or equals its title (in chains that use only titles)."""
    return (bool(passage.text) and passage.text in prompt) or (
        bool(passage.title) and prompt.strip() == passage.title
    )


def _prompt(request: object) -> str:
    if isinstance(request, Generate):
        return "\n".join(message.content for message in request.messages)
    return request.text if isinstance(request, Note) else ""


@pause_collector()
def run_waterfall(
    run: RunFolder,
    workspace: WorkspaceFolder,
    *,
    at_most: int | None = None,
    examples: Sequence[Example] | None = None,
) -> Waterfall:
    """Return the waterfall of a run, reading its corpora if their indexes are in the workspace.

    ``at_most``: to save time, corpora that together have more passages are not read. ``examples``: the questions to
    count; by default all.
    """
    episodes = run.episodes()
    retrievers = {
        step.request.retriever
        for episode in episodes.values()
        for step in episode.steps
        if isinstance(step.request, Retrieve)
    }
    # An agent may open pages by title without a search; its retriever is in the settings.
    backends = run.description().backends
    retrievers |= {
        name.removeprefix("retriever ") for name in backends if name.startswith("retriever ")
    }
    questions = stored_examples(run) if examples is None else examples
    return waterfall(
        questions, episodes.values(), corpus_pages(workspace, retrievers, at_most=at_most)
    )


def quick_waterfall(run: RunFolder, workspace: WorkspaceFolder) -> Waterfall | None:
    """Return the waterfall of a finished run without reading corpora of more than MOST_PASSAGES passages; None if the run is
    unreadable.
    """
    try:
        return run_waterfall(run, workspace, at_most=MOST_PASSAGES)
    except RalleError:
        return None
