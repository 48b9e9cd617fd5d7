"""Folding: texts that look alike have one form, and so the same words."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.core.folding import _PLAIN, fold, fold_with_offsets, is_ignorable
from rallebench.core.text import TOKENIZERS, UNFOLDED, tokenize

EVERY = [chr(n) for n in range(sys.maxunicode + 1) if not 0xD800 <= n < 0xE000]
ALIKE = [
    ("Zoë Brontë", "Zoe\u0308 Bronte\u0308"),
    ("İZMİR'DE", "izmir'de"),
    ("DIYARBAKIR", "Diyarbakır"),
    ("note\u200bbook", "notebook"),
    ("\ufeffGrüße", "GRÜSSE"),
    ("ＲＦＣ ７２３０", "rfc 7230"),
    ("ﬂuﬀy ĳs", "fluffy ijs"),
    ("مُحَمَّد", "محمد"),
    ("كتـــاب", "كتاب"),
    ("שָׁלוֹם", "שלום"),
    ("Wasser\u00adfall", "Wasserfall"),
    ("ΟΔΥΣΣΕΎΣ", "Οδυσσεύς"),
    ("می\u200cروم", "میروم"),
    ("क\u094d\u200dष", "क\u094dष"),
    ("\u0958लम", "\u0915\u093cलम"),
    ("ｶﾞﾗｽ", "ガラス"),
    ("\u1112\u1161\u11ab국", "한국"),
    ("葛\U000e0100飾", "葛飾"),
    ("น\u0e4d\u0e49\u0e32ตก", "น\u0e49\u0e33ตก"),
    ("ນ\u0ecd\u0ec9\u0eb2", "ນ\u0ec9\u0eb3"),
    ("അവ\u0d28\u0d4d\u200d", "അവ\u0d7b"),
    ("Tie\u0302\u0301ng Vie\u0323\u0302t", "Tiếng Việt"),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_texts_that_read_alike_have_the_same_words(first: str, second: str) -> None:
    assert fold(first) == fold(second)
    assert tokenize(first) == tokenize(second) != []


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.slow, id="every"), pytest.param(29, id="some")]
)
def test_all_forms_and_cases_of_a_character_fold_alike_and_folding_twice_changes_nothing(
    step: int,
) -> None:
    signs = ("℠", "™")  # letters in NFKC, but no part of the word before them
    for character in EVERY[::step]:
        folded = fold(character)
        forms = {unicodedata.normalize(form, character) for form in ("NFD", "NFKD", "NFKC")}
        assert fold(folded) == folded
        if character not in signs:
            assert {fold(form) for form in (*forms, character.upper(), character.lower())} == {
                folded
            }, hex(ord(character))


def test_every_format_character_is_dropped() -> None:
    formats = [character for character in EVERY if unicodedata.category(character) == "Cf"]
    assert len(formats) > 100
    assert all(fold(f"a{character}b") == "ab" and is_ignorable(character) for character in formats)


def test_characters_that_are_called_plain_lose_nothing_but_their_case() -> None:
    import re

    plain = re.findall(f"[{_PLAIN}]", "".join(EVERY))
    assert len(plain) > 30_000
    for character in plain:
        low = character.casefold()
        assert unicodedata.normalize("NFKC", low) == low and not unicodedata.combining(character)
        assert fold(f"{character}\u00ad") == low and character not in "ıİ"


def test_marks_stay_inside_their_words() -> None:
    assert tokenize("हिन्दी में पुस्तकें") == ["हिन्दी", "में", "पुस्तकें"]
    assert tokenize("தமிழ் மொழி") == ["தமிழ்", "மொழி"]
    assert tokenize("বাংলা ভাষা, తెలుగు") == ["বাংলা", "ভাষা", "తెలుగు"]
    assert tokenize("ẹ̀kọ́ x̂") == ["ẹ̀kọ́", "x̂"]
    assert tokenize("𑄌𑄋𑄴𑄟𑄳𑄦") == ["𑄌𑄋𑄴𑄟𑄳𑄦"]  # marks beyond the first plane


def test_a_word_with_a_mark_is_not_the_word_without_it() -> None:
    assert tokenize("résumé") != tokenize("resume")
    assert tokenize("कि") != tokenize("क")


def test_scripts_without_spaces_give_bigrams_of_letters_with_their_marks() -> None:
    assert tokenize("กรุงเทพ") == ["กรุ", "รุง", "งเ", "เท", "ทพ"]
    assert set(tokenize("กรุงเทพ")) <= set(tokenize("ผมไปกรุงเทพเมื่อวาน"))
    assert tokenize("ភាសា\u200bខ្មែរ") == tokenize("ភាសាខ្មែរ")
    assert tokenize("多瑙河 ๆ") == ["多瑙", "瑙河", "ๆ"]


def test_a_trademark_sign_is_no_part_of_a_word() -> None:
    assert tokenize("Lego™ bricks") == ["lego", "bricks"]


@given(
    st.text(
        st.sampled_from(
            "Ab1 .,_'é\u0301\u0327\u00ad\u200dﬁＡİıß字ｶﾞ한ิก\u0e4d\u0e49\u0e33\u0d7bหि™ئِ\U000e0100"
        )
    )
)
def test_a_folded_letter_stands_where_the_text_has_it(text: str) -> None:
    folded, starts, ends = fold_with_offsets(text)
    assert len(folded) == len(starts) == len(ends)
    letters = dict.fromkeys(zip(starts, ends))
    assert "".join(fold(text[start:end]) for start, end in letters) == folded
    assert list(letters) == sorted(letters) and all(start < end for start, end in letters)


@given(st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("字多।，“”\u00ad")))
def test_tokens_of_latin_and_chinese_text_are_those_of_before_where_folding_changes_nothing(
    text: str,
) -> None:
    if fold(text) == text.lower():
        assert tokenize(text) == TOKENIZERS[UNFOLDED](text)
