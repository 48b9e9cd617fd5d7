"""Questions, documents and prompts of different languages: an error where no result could make sense, else a note."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import IndexRecipe
from rallebench.core.letters import CHINESE, LATIN, main_script
from rallebench.core.types import Example
from rallebench.corpora.reading import read_corpus

LANGUAGES: Mapping[str, str] = {"English": LATIN, "Chinese": CHINESE}
"""Language of prompts → the letters of the questions that they fit."""
WORDS, ENGLISH_ENCODER = "bm25", "minilm"
SAMPLE = 200
"""The questions, or documents, that are looked at."""


def letters_of_questions(examples: Iterable[Example]) -> str:
    """The letters of most of the questions."""
    return main_script(example.question.text for example in islice(examples, SAMPLE))


def prompts_note(language: str, questions: Iterable[str], mend: str, of: str = "") -> str:
    """The note on questions that the prompts of a language do not fit, '' if they do. ``mend``: the setting that changes it, in
    words; ``of``: whose questions they are."""
    letters = main_script(islice(questions, SAMPLE))
    if letters in ("", LANGUAGES[language]):
        return ""
    start = f"{of}: most" if of else "Most"
    return f"{start} questions are in {letters}, and the prompts are {language}: {mend}."


def unlike_english(examples: Iterable[Example]) -> str:
    """Why figures of these questions are not like printed ones of English questions, '' if nothing tells so."""
    letters = letters_of_questions(examples)
    return "" if letters in ("", LATIN) else f"ours are in {letters}, the paper's in English"


def searchable(
    where: str, examples: Iterable[Example], recipes: Iterable[IndexRecipe | None], encoder: str
) -> tuple[str, ...]:
    """The notes on an encoder that may not read the questions or the documents. ``recipes``: of the indexes of one corpus that
    search; of one that exists, None, nothing is known.

    Raises UsageError where an index of words would find next to nothing, as questions and documents are in different letters.
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
