"""The copy guard: no prompt may quote the questions, the gold or the passages of articles that variants compete or are proved on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from rallebench.core.answers import holds_answer, normalize_answer
from rallebench.core.text import tokenize
from rallebench.core.types import Chain, Example, Passage
from rallebench.corpora.store import PassageStore
from rallebench.experiments.improving.parts import Parts, list_questions
from rallebench.workspace.coverage import MOST_PASSAGES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.paths import WorkspaceFolder

LONG = 6
"""Words in a row that count as a quotation; English stop words are not counted."""
USUAL = 2
"""Articles to learn from with the same gold answer, such as "yes", that make it a usual one, which a prompt may name."""

Words = tuple[str, ...]


class CopyGuard:
    """``parts``: the articles; ``chain``: the chain as it was given, whose own words every variant may use; ``passages``:
    those of the gold pages of held-out articles."""

    def __init__(self, parts: Parts, chain: Chain, passages: Iterable[Passage] = ()) -> None:
        self._own_text = "\n".join(list_texts(chain))
        usual = Counter(
            answer
            for article in parts.train
            for answer in {normalize_answer(a) for e in article for a in e.gold.answers}
        )
        self._own = set(_quotations(self._own_text))
        self._answers = {
            answer: example.question.qid
            for example in parts.held_out
            for answer in _gold_texts(example)
            if normalize_answer(answer) and usual[normalize_answer(answer)] < USUAL
        }
        self._quotations: dict[Words, str] = {}
        for example in parts.held_out:
            for text in (example.question.text, *_gold_texts(example)):
                for words in _quotations(text):
                    self._quotations.setdefault(words, f"the question {example.question.qid}")
        for passage in passages:
            for words in _quotations(passage.text):
                self._quotations.setdefault(words, f"the gold passage {passage.doc_id}")

    def refuse(self, texts: Iterable[str]) -> str:
        """Return the reason why the texts of a prompt must not be used, '' if they may."""
        for text in texts:
            for words in _quotations(text):
                if words in self._quotations and words not in self._own:
                    return f"its prompt quotes {self._quotations[words]}, which it must not know"
            if not holds_answer(text, (*self._answers,)):
                continue
            for answer, qid in self._answers.items():
                if holds_answer(text, (answer,)) and not holds_answer(self._own_text, (answer,)):
                    return f"its prompt holds the gold answer of the question {qid}, which it must not know"
        return ""


def list_texts(chain: Chain) -> list[str]:
    """Every text of a chain that reaches a model: templates and system prompts."""
    systems = (str(action.generation.get("system", "")) for action in chain.actions)
    return [*(action.template for action in chain.actions), *filter(None, systems)]


def _gold_texts(example: Example) -> Iterator[str]:
    yield from example.gold.answers
    for group in example.gold.required:
        yield from group
    if example.gold.reference:
        yield example.gold.reference


def _quotations(text: str) -> Iterator[Words]:
    """Every ``LONG`` words in a row."""
    words = tokenize(text)
    return (tuple(words[i : i + LONG]) for i in range(len(words) - LONG + 1))


def read_gold_passages(
    workspace: WorkspaceFolder, retrievers: Sequence[str], parts: Parts
) -> list[Passage]:
    """Return the passages on the gold pages of held-out articles in the built indexes of ``retrievers``; none of indexes
    with more than MOST_PASSAGES passages. Passages on a page to learn from are left out.
    """
    pages = {page for example in parts.held_out for page in example.gold.pages}
    pages -= {page for example in list_questions(parts.train) for page in example.gold.pages}
    indexes = {index for name in retrievers for index in workspace.component_indexes(name)}
    passages: list[Passage] = []
    for index in sorted(indexes) if pages else ():
        folder = workspace.index_folder(index)
        if folder is None or read_manifest(folder).passages > MOST_PASSAGES:
            continue
        with closing(PassageStore(folder)) as store:
            passages += [passage for passage in store if passage.page_id in pages]
    return passages
