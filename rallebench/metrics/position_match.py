"""R-Eval's "relaxed F1" as stated in its appendix: tokens that are equal at the same position."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best, final_answer
from rallebench.metrics.words import has_cjk, jieba_words

_TOKEN = re.compile(r"\w+|[^\w\s]")


_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "*.model")
"""A tokenizer's folder contains at least one of these; the last is SentencePiece's."""


def check_folder(option: str) -> None:
    """Raise NotFoundError unless ``option`` is a folder with a tokenizer, BadFileError for one that cannot be loaded."""
    folder = Path(option)
    if not folder.is_dir():
        raise NotFoundError(
            f"There is no folder {option!r} with a tokenizer; give one that holds its files."
        )
    if not any(next(folder.glob(name), None) for name in _FILES):
        raise NotFoundError(
            f"The folder {option!r} holds no tokenizer; give one that holds its tokenizer.json (or vocab.json, vocab.txt, *.model)."
        )
    _encode(option)


@METRICS.register("position_match", label="Position match", check=check_folder)
def position_match(episode: Episode, gold: Gold, option: str = "") -> float | None:
    """F-measure of tokens that equal the best-fitting accepted answer's token at the same position.

    Precision is over the tokens of the answer, recall over those of the accepted answer; an empty answer scores 0.

    Normalisation: none; tokens are words and other single characters, or jieba's words if a text contains Chinese.
    Not scored: the gold has no answers.
    Option: a folder with a tokenizer, for example GPT-2's, whose tokens are compared instead, as in the paper.
    Source: R-Eval, Tu et al. 2024, appendix (its code computes f1_yes_no).
    Traps: With one additional word at the start, nothing matches. With another tokenizer the numbers differ. R-Eval uses
    the first accepted answer only.
    """
    return best(
        lambda answer, alias: position_score(*_tokens(option, answer, alias)),
        final_answer(episode),
        gold,
    )


def position_score(answer: Sequence[object], alias: Sequence[object]) -> float:
    """Return the F-measure of equal positions of two token lists; 0.0 if none is equal.

    >>> position_score(["a", "b", "c"], ["a", "x", "c", "d"])
    0.5714285714285714
    """
    equal = sum(a == b for a, b in zip(answer, alias))
    return 2 * equal / (len(answer) + len(alias)) if equal else 0.0


def _tokens(folder: str, *texts: str) -> list[Sequence[object]]:
    if folder:
        encode = _encode(folder)
        return [encode(text) for text in texts]
    if any(map(has_cjk, texts)):
        return [jieba_words(text) for text in texts]
    return [_TOKEN.findall(text) for text in texts]


@functools.lru_cache(maxsize=2)
def _encode(folder: str) -> Callable[[str], list[int]]:
    """Return a folder's tokenizer as a function text → ids, without special tokens."""
    whole = Path(folder) / "tokenizer.json"
    try:
        if whole.is_file():  # avoids importing transformers, which takes seconds
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(whole))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            return lambda text: list(tokenizer.encode(_clean(text), add_special_tokens=False).ids)
        from transformers import AutoTokenizer

        slow = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return lambda text: list(slow.encode(_clean(text), add_special_tokens=False))
    except Exception as error:  # tokenizers raises bare Exceptions
        reason = " ".join(str(error).split())[:200]
        raise BadFileError(
            f"The folder {folder} holds no tokenizer that can be loaded: {reason}"
        ) from None


def _clean(text: str) -> str:
    # surrogate halves, which JSON may contain, are not valid Unicode for a tokenizer
    return text.encode("utf-8", "replace").decode("utf-8")
