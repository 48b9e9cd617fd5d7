"""Normalisation, answers located in the original text, and DPR's tokens."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.core.answers import (
    dpr_tokens,
    find_answers,
    holds_answer,
    normalize_answer,
    passage_has_answer,
)

LAW = settings(database=None, max_examples=60)
WORDS = st.sampled_from(
    [
        "art",
        "the",
        "A",
        "an",
        "Party",
        "U.S.",
        "well-known",
        "İzmir",
        "ΟΔΟΣ",
        "東京",
        "10,000",
        "3.5",
        "é",
    ]
)
GLUE = st.sampled_from([" ", "", ", ", "—", "\n", "-", "'", "“", "。"])
TEXTS = st.lists(st.tuples(WORDS, GLUE), max_size=12).map(
    lambda pairs: "".join(a + b for a, b in pairs)
)
ALIASES = st.lists(st.one_of(WORDS, TEXTS), max_size=4)


def texts_of(text: str, aliases: list[str]) -> list[str]:
    return [text[start:end] for start, end, _ in find_answers(text, aliases)]


# ── normalisation ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Cat, a dog & an ant.", "cat dog ant"),
        ("well-known", "wellknown"),
        ("“The” end", "“ ” end"),
        ("theatre an-other", "theatre another"),
        ("a.", ""),
        ("the—end", "—end"),
        ("东京。", "东京。"),
        ("x\u2003y\u00a0z", "x y z"),
    ],
)
def test_normal_forms(text: str, normal: str) -> None:
    assert normalize_answer(text) == normal


@LAW
@given(st.text(max_size=80))
def test_the_normal_form_has_single_spaces_and_no_ascii_punctuation(text: str) -> None:
    normal = normalize_answer(text)
    assert normal == " ".join(normal.split())
    assert not re.search(r"[!-/:-@\[-`{-~]", normal)


# ── answers in a text ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "aliases", "found"),
    [
        ("The party of art, the Art.", ["art"], ["art", "Art"]),
        ("Obama's hat; Trump-Pence", ["obama", "Pence"], ["Obama", "Pence"]),
        ("It is well-known.", ["wellknown", "known"], ["well-known"]),
        ("the U.S. Navy sailed", ["US Navy"], ["U.S. Navy"]),
        ("House  of\nthe Lords", ["the House of Lords"], ["House  of\nthe Lords"]),
        ("10,000 or 3.5 or 10 or 5", ["10", "5"], ["10", "5"]),
        ("It was 10,000.", ["10000"], ["10,000"]),
        ("İzmir and İstanbul", ["izmir", "İSTANBUL"], ["İzmir", "İstanbul"]),
        (
            "Die Donau\u00addampfer, e\u0301te\u0301",
            ["DONAUDAMPFER", "été"],
            ["Donau\u00addampfer", "e\u0301te\u0301"],
        ),
        ("in par\u00adty and \u200bart\u200b", ["art", "par"], ["art"]),
        (
            "the ﬁrst ＢＯＸ, Große Straße",
            ["first", "box", "grosse strasse"],
            ["ﬁrst", "ＢＯＸ", "Große Straße"],
        ),
        ("هذا كِتَابٌ جديد", ["كتاب"], ["كِتَابٌ"]),
        ("ｶﾞﾗｽの靴", ["ガラス"], ["ｶﾞﾗｽ"]),
        ("x\u0302 and x", ["x"], ["x"]),
        ("ΟΔΟΣ οδος", ["οδος"], ["ΟΔΟΣ", "οδος"]),
        ("我住在東京都，2008年起", ["東京", "2008"], ["東京", "2008"]),
        ("서울은 크다", ["서울"], ["서울"]),
        ("हिन्दी में", ["हि"], []),
        ("“Paris”—he said", ["Paris"], ["Paris"]),
        ("snake_case case", ["case"], ["case"]),
        ("anything", ["", "the", "...", " "], []),
        ("İ i", ["i"], ["İ", "i"]),
        ("", ["x"], []),
    ],
)
def test_answers_are_found_as_words(text: str, aliases: list[str], found: list[str]) -> None:
    assert texts_of(text, aliases) == found


def test_of_overlapping_answers_the_first_and_longest_is_kept_unless_all_are_asked_for() -> None:
    text, aliases = "by Ringo Starr", ["Starr", "Ringo Starr", "ringo"]
    assert find_answers(text, aliases) == [(3, 14, 1)]
    assert find_answers(text, aliases, overlapping=True) == [(3, 14, 1), (3, 8, 2), (9, 14, 0)]


def test_an_alias_named_twice_keeps_its_first_number() -> None:
    assert find_answers("Rome", ["x", "rome", "The Rome"]) == [(0, 4, 1)]


@LAW
@given(TEXTS, ALIASES)
def test_a_found_range_reads_as_its_alias_and_overlaps_none(text: str, aliases: list[str]) -> None:
    end = 0
    for start, stop, index in find_answers(text, aliases):
        assert end <= start < stop <= len(text)
        said, alias = (
            normalize_answer(re.sub("[—“]", "", part)).replace("ς", "σ")
            for part in (text[start:stop], aliases[index])
        )
        assert said == alias
        end = stop


@LAW
@given(st.text(max_size=60), st.text(max_size=6))
def test_any_text_and_alias_are_searched_without_harm(text: str, alias: str) -> None:
    for start, stop, _ in find_answers(text, [alias], overlapping=True):
        assert 0 <= start < stop <= len(text)


@LAW
@given(TEXTS, ALIASES, TEXTS)
def test_more_text_hides_nothing_that_was_found(text: str, aliases: list[str], more: str) -> None:
    alone = find_answers(text, aliases, overlapping=True)
    assert set(alone) <= set(find_answers(f"{text} | {more}", aliases, overlapping=True))


@LAW
@given(TEXTS, WORDS.filter(lambda word: bool(normalize_answer(word))))
def test_a_word_set_apart_is_always_found(text: str, word: str) -> None:
    begin = len(text) + 3
    spans = find_answers(f"{text} | {word} | {text}", [word], overlapping=True)
    assert any(begin <= start and end <= begin + len(word) for start, end, _ in spans)


def test_a_found_answer_is_an_answer_that_ralle_finds_too() -> None:
    for text, alias in [("The Art of war", "art"), ("東京都", "東京"), ("U.S. law", "US")]:
        assert find_answers(text, [alias]) and normalize_answer(alias) in normalize_answer(text)


def test_a_long_text_is_searched_in_time_proportional_to_its_length() -> None:
    text = "the art of party, a—b " * 20_000
    started = time.monotonic()
    assert len(find_answers(text, ["art", "b", "nowhere", "a" * 50])) == 40_000
    assert find_answers("a" * 300_000, ["a" * 10]) == []
    assert time.monotonic() - started < 15


# ── DPR's tokens ─────────────────────────────────────────────────────────────


@LAW
@given(st.text(max_size=80))
def test_tokens_are_those_of_dprs_expression(text: str) -> None:
    regex = pytest.importorskip("regex")
    pattern = regex.compile(
        r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
    )
    # Python's own Unicode tables may be older than regex's: characters unknown to them are left out.
    text = "".join(c for c in text if unicodedata.category(c) != "Cn")
    assert dpr_tokens(text) == [
        m.group().lower() for m in pattern.finditer(unicodedata.normalize("NFD", text))
    ]


@pytest.mark.parametrize(
    ("passage", "alias", "held"),
    [
        ("a party in Paris", "art", False),
        ("the ART of war", "art", True),
        ("the U.S. Navy", "U.S.", True),
        ("the US Navy", "U.S.", False),
        ("le café noir", "cafe\u0301", True),
        ("one two", "two one", False),
        ("one two", "\u200b", False),
        ("東京都", "東京", False),
    ],
)
def test_a_passage_holds_an_answer_if_its_tokens_do(passage: str, alias: str, held: bool) -> None:
    assert passage_has_answer(passage, [alias]) is held


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("in L\u2019Aquila today", "L'Aquila"),
        ("Austria\u2013Hungary", "Austria-Hungary"),
        ("well\u2011known", "well-known"),
        ("the \u201cTitan\u201d moon", 'the "Titan" moon'),
    ],
)
def test_typeset_signs_meet_those_of_a_keyboard(text: str, alias: str) -> None:
    assert find_answers(text, [alias])
    assert holds_answer(text, [alias])
    assert find_answers("1914\u20131918", ["1914", "1918"]) == [(0, 4, 0), (5, 9, 1)]
