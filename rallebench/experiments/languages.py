"""Questions, documents and prompts in different languages: an error if no result could make sense, else a note."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import IndexRecipe
from rallebench.core.letters import CHINESE, LATIN, main_script
from rallebench.core.types import Example
from rallebench.corpora.reading import read_corpus

LANGUAGES: Mapping[str, str] = {"English": LATIN, "Chinese": CHINESE}
"""Language of prompts → script of the questions that they fit."""
WORDS, ENGLISH_ENCODER = "bm25", "minilm"
SAMPLE = 200
"""Number of questions, or documents, whose script is examined."""


def letters_of_questions(examples: Iterable[Example]) -> str:
    """Script of most questions."""
    return main_script(example.question.text for example in islice(examples, SAMPLE))


def prompts_note(language: str, questions: Iterable[str], mend: str, of: str = "") -> str:
    """A note on questions that do not fit the language of the prompts, '' if they do. ``mend``: the setting that
    changes it, in words; ``of``: the owner of the questions."""
    letters = main_script(islice(questions, SAMPLE))
    if letters in ("", LANGUAGES[language]):
        return ""
    start = f"{of}: most" if of else "Most"
    return f"{start} questions are in {letters}, and the prompts are {language}: {mend}."


def unlike_english(examples: Iterable[Example]) -> str:
    """Reason why figures of these questions are not comparable with printed ones of English questions; '' without a
    reason."""
    letters = letters_of_questions(examples)
    return "" if letters in ("", LATIN) else f"ours are in {letters}, the paper's in English"


def searchable(
    where: str, examples: Iterable[Example], recipes: Iterable[IndexRecipe | None], encoder: str
) -> tuple[str, ...]:
    """Notes on an encoder that may not read the questions or the documents. ``recipes``: of the searched indexes of one
    corpus, None for an existing one, of which nothing is known. Raises UsageError if an index of words would find
    next to nothing because questions and documents are in different scripts."""
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
