"""Citations and quotations of an answer, checked without a model."""

from __future__ import annotations

from rallebench.core.citing import find_quotations, marked_sentences, prompt_passages
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import final_answer


@METRICS.register(
    "wrong_citations",
    needs="",
    reads="answer",
    label="Wrong citations",
    higher_is_better=False,
)
def wrong_citations(episode: Episode, gold: Gold) -> float | None:
    """The share of the answer's citations whose number no passage of the prompt has.

    Normalisation: [1], [1, 3], [2-4] and 【1】 are citations; passages are numbered in their order in the last prompt, from 1.
    Not scored: the answer cites nothing.
    Source: this project; ALCE, Gao et al. 2023, arXiv:2305.14627, counts a sentence with one as not supported.
    Traps: A passage counts only if the prompt holds it word for word; a prompt that shortens passages makes every citation
    wrong.
    """
    marked = marked_sentences(final_answer(episode))
    numbers = [number for sentence in marked for number in sentence.numbers]
    count = len(prompt_passages(episode))
    if not numbers:
        return None
    return sum(not 1 <= number <= count for number in numbers) / len(numbers)


@METRICS.register("quotations", needs="", reads="answer", label="True quotations")
def quotations(episode: Episode, gold: Gold) -> float | None:
    """The share of the answer's quotations that a passage of the prompt holds word for word.

    A quotation stands between quotation marks and has four words or six Chinese characters at least.

    Normalisation: case, white space, Unicode's form, typeset marks and dashes; an ellipsis leaves words out.
    Not scored: the answer quotes nothing.
    Source: this project.
    Traps: Titles and invented names of four words or more count as quotations.
    """
    quoted = find_quotations(final_answer(episode), prompt_passages(episode))
    return sum(quote.passage > 0 for quote in quoted) / len(quoted) if quoted else None
