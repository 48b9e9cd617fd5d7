"""Mismatched languages of questions, documents and prompts: an error if the results would be meaningless, otherwise a note."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import IndexRecipe
from rallebench.core.letters import CHINESE, LATIN, main_script
from rallebench.core.types import Example
from rallebench.corpora.reading import read_corpus

LANGUAGES: Mapping[str, str] = {"English": LATIN, "Chinese": CHINESE}
"""Language of prompts → the script of matching questions."""
WORDS, ENGLISH_ENCODER = "bm25", "minilm"
SAMPLE = 200
"""Number of questions or documents to examine."""


def letters_of_questions(examples: Iterable[Example]) -> str:
    """The script of most questions."""
    return main_script(example.question.text for example in islice(examples, SAMPLE))


def prompts_note(language: str, questions: Iterable[str], mend: str, of: str = "") -> str:
    """A note on questions in another language than the prompts; '' if they match. ``mend``: the setting to change, in words;
    ``of``: the owner of the questions."""
    letters = main_script(islice(questions, SAMPLE))
    if letters in ("", LANGUAGES[language]):
        return ""
    start = f"{of}: most" if of else "Most"
    return f"{start} questions are in {letters}, and the prompts are {language}: {mend}."


def unlike_english(examples: Iterable[Example]) -> str:
    """The reason why results on these questions are not comparable with printed results on English questions, or ''."""
    letters = letters_of_questions(examples)
    return "" if letters in ("", LATIN) else f"ours are in {letters}, the paper's in English"


def searchable(
    where: str, examples: Iterable[Example], recipes: Iterable[IndexRecipe | None], encoder: str
) -> tuple[str, ...]:
    """Notes on an encoder that may not support the language of the questions or documents. ``recipes``: the recipes of the
    searched indexes of one corpus; None for an existing index, whose recipe is unknown.

    Raises UsageError if a word index would find almost nothing because questions and documents are in different scripts.
    """
    built = list(filter(None, recipes))
    passages = read_corpus(built[0].corpus, form=built[0].form) if built else ()
    documents = main_script(passage.text for passage in islice(passages, SAMPLE))
    questions = letters_of_questions(examples)
    if not questions or not documents:
        return ()
    kinds = [recipe.kind for recipe in built]
    vectors = [kind for kind in kinds if kind != WORDS]
    if questions != documents:
        differ = f"{where}: the questions are in {questions} and the documents in {documents}"
        if WORDS in kinds:
            raise UsageError(
                f"{differ}, so {WORDS} finds next to nothing. Take both in one language, or, with an encoder that reads both, vectors.",
                hint=Hint("set", "kinds=flat"),
            )
        return (f"{differ}; the encoder must read both (encoder={encoder}).",) if vectors else ()
    if vectors and questions != LATIN and encoder == ENGLISH_ENCODER:
        return (
            f"{where}: the questions are in {questions}, and encoder={encoder} reads English only.",
        )
    return ()
