"""Long passages in overlapping windows: nothing is lost, and a very long prompt stays affordable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rallebench.reader import windows
from rallebench.reader.windows import (
    MAX_QUESTION,
    MAX_TOKENS,
    OVERLAP,
    WINDOW,
    make_batches,
    make_windows,
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    from rallebench.encoders.minilm import model_folder

    return AutoTokenizer.from_pretrained(str(model_folder()), local_files_only=True)


def numbers(count: int, of: Callable[[int], str] = str) -> str:
    return " ".join(of(i) for i in range(count))


def test_a_short_passage_is_one_window_behind_the_question(tokenizer: Any) -> None:
    (window,) = make_windows("Who won?", ["Ada won."], tokenizer)
    assert tokenizer.decode(window.ids) == "[CLS] who won? [SEP] ada won. [SEP]"
    assert ["Ada won."[a:b] for a, b in window.offsets] == ["Ada", "won", "."]
    assert tokenizer.decode([window.ids[window.context]]) == "ada"


def test_neighbouring_windows_overlap_and_together_hold_every_token(tokenizer: Any) -> None:
    text = numbers(900)
    found = make_windows("which number", [text, "one"], tokenizer)
    first = [w for w in found if w.passage == 0]
    held = {at for w in first for offset in w.offsets for at in range(*offset)}
    assert held == {at for at, character in enumerate(text) if not character.isspace()}
    for left, right in zip(first, first[1:]):
        assert right.first - left.first == WINDOW - OVERLAP
        assert len(set(left.offsets) & set(right.offsets)) >= OVERLAP or right is first[-1]
    assert [w.passage for w in found] == [0] * len(first) + [1]


@pytest.mark.parametrize(
    "length", [1, OVERLAP, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW - OVERLAP]
)
def test_no_window_repeats_what_another_holds_whole(tokenizer: Any, length: int) -> None:
    found = make_windows("which", [" ".join(["one"] * length)], tokenizer)
    ends = [w.first + len(w.offsets) for w in found]
    assert ends == sorted(set(ends)) and ends[-1] == length


def test_of_a_long_question_the_end_is_read(tokenizer: Any) -> None:
    (window,) = make_windows(numbers(200) + " who won", ["Ada"], tokenizer)
    assert window.context == MAX_QUESTION + 2
    assert tokenizer.decode(window.ids[: window.context]).endswith("who won [SEP]")


@pytest.mark.parametrize(
    ("question", "texts", "count"),
    [
        ("", ["text"], 0),
        ("who", ["", "  "], 0),
        ("who", [], 0),
        ("Who won?", ["Ada won."] * 300, 300),
    ],
)
def test_only_question_and_text_together_make_windows_and_many_short_ones_are_all_read(
    tokenizer: Any, question: str, texts: list[str], count: int
) -> None:
    assert len(make_windows(question, texts, tokenizer)) == count


def test_of_a_long_prompt_the_windows_that_speak_of_the_question_are_kept(tokenizer: Any) -> None:
    texts = [numbers(90, lambda i: "the town lies on the river") for _ in range(20)]
    texts[13] = f"{texts[13]} The saxophone was patented by Sax. {texts[13]}"
    found = make_windows("Who patented the saxophone?", texts, tokenizer)
    assert MAX_TOKENS - WINDOW - MAX_QUESTION < sum(len(w.ids) for w in found) <= MAX_TOKENS
    assert any(
        "saxophone" in tokenizer.decode(w.ids[w.context :]) for w in found if w.passage == 13
    )
    assert found == sorted(found, key=lambda w: (w.passage, w.first))


def test_batches_hold_every_window_once_and_keep_to_their_size(tokenizer: Any) -> None:
    texts = [numbers(n) for n in (3, 80, 150, 20, 190, 60)]
    found = make_windows("which number", texts, tokenizer)
    batches = make_batches(found, tokens=500)
    assert sorted(row for b in batches for row in b.rows) == list(range(len(found)))
    for batch in batches:
        assert batch.ids.shape == batch.mask.shape == batch.types.shape
        assert batch.ids.size <= 500
        for row, ids, mask, types in zip(batch.rows, batch.ids, batch.mask, batch.types):
            window = found[row]
            assert tuple(ids[mask == 1]) == window.ids
            assert types.sum() == len(window.offsets) + 1


def test_the_sizes_leave_room_in_the_encoder() -> None:
    assert windows.WINDOW + windows.MAX_QUESTION + 3 <= 512
