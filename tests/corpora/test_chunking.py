"""Ways of splitting documents: every chunk is part of its document, none is too long, nothing is lost."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import GOLDEN

from rallebench.core.chunking import Chunking
from rallebench.core.errors import UsageError
from rallebench.core.types import Passage
from rallebench.corpora._blocks import PIECES
from rallebench.corpora.chunking import PRESETS, choose, chunk, default_chunking, spans
from rallebench.encoders.windows import passage_window

GOLDEN = GOLDEN / "recursive_chunks.json"

PLAIN = "a moon of Mr. e.g. 3.14 山 水。 好吗？ “是。” end. so! why? a,b;c שלום 🏳️‍🌈 …"
WORDS = [*PLAIN.split(), "x" * 30]
GAPS = [" ", "  ", "", "\n", "\n\n", "\n\n\n", "\t", "\u3000"]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=60).map(
    lambda parts: "".join(word + gap for word, gap in parts)
)
SIZES = st.integers(1, 40)


def tokens(text: str) -> int:
    return len(PIECES["tokens"].findall(text))


def length(text: str, chunking: Chunking) -> int:
    return {
        "words": lambda: len(text.split()),
        "tokens": lambda: tokens(text),
        "characters": lambda: len(text),
    }[chunking.unit]()


@st.composite
def chunkings(draw: st.DrawFn) -> Chunking:
    how = draw(st.sampled_from(["blocks", "recursive", "sentences"]))
    unit = {"recursive": "characters", "sentences": "tokens"}.get(how) or draw(
        st.sampled_from(["words", "tokens", "characters"])
    )
    size = draw(SIZES)
    return Chunking(size, draw(st.integers(0, size - 1)), unit, how)  # type: ignore[arg-type]


@settings(max_examples=100)
@given(TEXTS, chunkings())
def test_chunks_cover_every_character_in_order_keep_their_size_and_share_at_most_the_overlap(
    text: str, chunking: Chunking
) -> None:
    found = spans(text, chunking)
    covered = set().union(*(range(start, end) for start, end in found))
    assert {n for n, c in enumerate(text) if not c.isspace()} <= covered
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in zip(found, found[1:]))
    if (
        chunking.how != "recursive"
    ):  # as in the original, a chunk may add nothing but omitted white space
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(found, found[1:]))
    assert all(length(text[start:end], chunking) <= chunking.size for start, end in found)
    shared = [length(text[b[0] : a[1]], chunking) for a, b in zip(found, found[1:])]
    assert all(part <= chunking.overlap for part in shared)
    assert chunking.how != "blocks" or set(shared) <= {chunking.overlap}


@settings(max_examples=100)
@given(TEXTS, SIZES)
def test_the_originals_sentences_cover_every_character_too(text: str, size: int) -> None:
    found = spans(
        text, Chunking(size, size // 3, "tokens", "sentences", compat="original"), "part_1"
    )
    covered = set().union(*(range(start, end) for start, end in found))
    assert {n for n, c in enumerate(text) if not c.isspace()} <= covered
    assert found == sorted(found)


# ── recursive ────────────────────────────────────────────────────────────────


def test_recursive_chunks_are_those_of_langchains_splitter() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert len(golden["cases"]) > 200
    for number, size, overlap, expected in golden["cases"]:
        text = golden["texts"][number]
        found = spans(text, Chunking(size, overlap, "characters", "recursive"))
        assert [text[start:end] for start, end in found] == expected, (text, size, overlap)


def test_barags_chunks_carry_the_title_and_keep_their_place_in_the_article() -> None:
    text = "\n\n".join(f"Paragraph {n} " + "moon " * 60 for n in range(9))
    pieces = list(chunk([Passage("7", text, "Titan", "p")], PRESETS["barag"]))
    assert [passage.doc_id for passage, _ in pieces] == [f"7#{n}" for n in range(len(pieces))]
    for passage, span in pieces:
        assert span is not None
        assert passage.text == "Title: Titan\n" + text[slice(*span)]
        assert span[1] - span[0] <= 1024
    [(short, _)] = chunk([Passage("8", "Short.", "Triton")], PRESETS["barag"])
    assert (short.doc_id, short.text) == ("8#0", "Title: Triton\nShort.")


def test_a_cut_document_keeps_title_and_page_and_numbers_its_chunks() -> None:
    document = Passage("d", "one two three", "T", "p")
    assert [p for p, _ in chunk([document], Chunking(2))] == [
        Passage("d#0", "one two", "T", "p"),
        Passage("d#1", "three", "T", "p"),
    ]
    assert [p for p, _ in chunk([document], Chunking(3))] == [document]


# ── sentences ────────────────────────────────────────────────────────────────


def sentences(text: str, size: int, overlap: int = 0) -> list[str]:
    return [
        text[start:end]
        for start, end in spans(text, Chunking(size, overlap, "tokens", "sentences"))
    ]


def test_sentences_stay_whole_in_english_and_in_chinese() -> None:
    english = 'Mr. Smith saw it. He said: "Go!" Then, at 3.14 p.m. sharp, J. Doe left.'
    assert sentences(english, 20) == [
        'Mr. Smith saw it. He said: "Go!"',
        "Then, at 3.14 p.m. sharp, J. Doe left.",
    ]
    chinese = "今天下雨。你好吗？“很好。”他走了！完"
    assert sentences(chinese, 5) == ["今天下雨。", "你好吗？", "“很好。”", "他走了！完"]
    assert sentences(chinese, 9) == ["今天下雨。你好吗？", "“很好。”他走了！", "完"]


def test_the_last_sentences_are_repeated_as_far_as_the_overlap_allows() -> None:
    assert sentences("A b. C d. E f. G h.", 6, 3) == ["A b. C d.", "C d. E f.", "E f. G h."]
    assert sentences("A b. C d. E f. G h.", 6, 2) == ["A b. C d.", "E f. G h."]


def test_a_sentence_that_is_too_long_is_cut_at_its_commas_and_then_between_words() -> None:
    assert sentences("one two, three four, five six seven eight nine.", 6) == [
        "one two, three four,",
        "five six seven eight nine.",
    ]
    assert sentences("甲" * 7, 3) == ["甲甲甲", "甲甲甲", "甲"]


def test_the_original_counts_the_file_path_and_cuts_shorter_chunks() -> None:
    text = "".join(f"第{n}句话说了一些事情。" for n in range(40))
    ours = spans(text, PRESETS["crud"], "documents_dup_part_1_part_1")
    theirs = spans(text, PRESETS["crud-original"], "documents_dup_part_1_part_1")
    # file_path: and the name are four tokens here, and two are added.
    assert max(tokens(text[a:b]) for a, b in ours) <= 128
    assert max(tokens(text[a:b]) for a, b in theirs) <= 122
    assert len(theirs) >= len(ours)


def test_the_originals_chunks_cross_articles_where_a_file_is_read_as_one() -> None:
    news = [Passage("part_1", "甲乙。\n丙丁。", "part_1")]
    articles = [Passage("part_1:1", "甲乙。"), Passage("part_1:2", "丙丁。")]
    assert [p.text for p, _ in chunk(news, PRESETS["crud-original"])] == ["甲乙。\n丙丁。"]
    assert [p.text for p, _ in chunk(articles, PRESETS["crud"])] == ["甲乙。", "丙丁。"]


# ── choosing ─────────────────────────────────────────────────────────────────


def test_the_presets_are_those_of_the_papers() -> None:
    assert PRESETS["kilt"] == Chunking(100, 0, "words")
    assert (PRESETS["barag"].size, PRESETS["barag"].overlap) == (1024, 48)
    assert PRESETS["barag-code"].size == 1028
    crud = PRESETS["crud"]
    assert (crud.size, crud.overlap, crud.unit) == (128, 0, "tokens")


def test_what_is_given_goes_over_the_preset_and_nothing_given_is_no_chunking() -> None:
    assert choose() is None
    assert choose(size=100) == PRESETS["kilt"]
    assert choose(size=9, overlap=2, unit="tokens") == Chunking(9, 2, "tokens")
    assert choose(how="recursive", size=64) == Chunking(64, 0, "characters", "recursive")
    assert choose(preset="barag", size=200) == Chunking(
        200, 48, "characters", "recursive", "Title: {title}\n"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"preset": "brag"}, "no chunking preset 'brag'. Did you mean 'barag'"),
        ({"preset": "crud", "how": "blocks"}, "uses sentences, not blocks"),
        ({"preset": "crud", "overlap": 128}, "must lie between 0 and 127"),
        (
            {"preset": "barag", "unit": "words"},
            "'words' does not fit 'recursive', which counts characters",
        ),
        ({"how": "recursive"}, "needs a chunk size"),
        ({"overlap": 3}, "An overlap needs a chunk size"),
        ({"unit": "words"}, "A chunk unit needs a chunk size"),
        ({"how": "pages", "size": 3}, "'pages' is unknown"),
        ({"how": "sentences", "size": 3, "unit": "words"}, "does not fit"),
        ({"size": 0}, "chunk size is 0; it must be at least 1"),
        ({"size": 3, "overlap": 3}, "must lie between 0 and 2"),
        ({"size": 3, "overlap": -1}, "must lie between 0 and 2"),
        ({"size": 3, "unit": "pages"}, "chunk unit 'pages' is unknown"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        choose(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS.names())
def test_what_a_manifest_keeps_makes_the_same_chunking_again(name: str) -> None:
    assert Chunking(**json.loads(json.dumps(PRESETS[name].to_json()))) == PRESETS[name]
    assert PRESETS["kilt"].to_json() == {"size": 100, "overlap": 0, "unit": "words"}


@pytest.mark.parametrize("name", PRESETS.names())
@pytest.mark.parametrize(
    "text",
    ["moon " * 50_000, "月" * 200_000, "a" * 1_000_000, "One. " * 50_000],
    ids=["words", "Chinese", "no space", "sentences"],
)
def test_a_very_long_paragraph_is_cut_in_seconds(name: str, text: str) -> None:
    started = time.perf_counter()
    found = spans(text, PRESETS[name])
    assert time.perf_counter() - started < 5
    assert found[0][0] == 0
    assert found[-1][1] == len(text.rstrip())


# in an encoder's tokens


@settings(max_examples=60)
@given(TEXTS, st.integers(4, 40), st.integers(0, 3))
def test_chunks_in_tokens_of_an_encoder_cover_all_and_fit_into_its_window(
    text: str, size: int, overlap: int
) -> None:
    window = passage_window("minilm")
    cuts = spans(text, default_chunking("minilm", size, overlap))
    covered = set().union(*(range(start, end) for start, end in cuts))
    assert {n for n, c in enumerate(text) if not c.isspace()} <= covered
    for start, end in cuts:
        fits = len(window.starts(text[start:end])) <= size
        assert fits or not re.search(r"\W", text[start:end]), "only a single word may be longer"


def test_a_word_of_any_length_is_cut_so_that_the_encoder_reads_all_of_it() -> None:
    text = "abcd9" * 2000
    window = passage_window("minilm")
    cuts = spans(text, default_chunking("minilm"))
    assert len(cuts) > 10 and cuts[-1][1] == len(text)
    assert max(len(window.starts(text[start:end])) for start, end in cuts) <= 254


@pytest.mark.parametrize(
    "word", ["ภาษาไทยเป็นภาษาที่มีระดับเสียง", "👩\u200d👩\u200d👧zebra", "ភាសាខ្មែរ"]
)
def test_a_text_that_the_encoder_reads_as_one_unknown_word_is_cut_too(word: str) -> None:
    text = word * 300
    cuts = spans(text, default_chunking("minilm"))
    assert max(end - start for start, end in cuts) <= 254 and cuts[-1][1] == len(text)


def test_the_rest_of_a_token_never_begins_a_chunk() -> None:
    text = "🏳️\u200d🌈 " + "x" * 30
    starts = [start for start, _ in spans(text, default_chunking("minilm", 4, 0))]
    assert starts == [0, text.index("x")]


def test_a_title_leaves_less_room_in_the_window_for_its_chunks() -> None:
    document = Passage("d", "The gate is old. " * 200, "The castle at the river " * 5, "page")
    window = passage_window("minilm")
    pieces = [passage for passage, _ in chunk([document], default_chunking("minilm"))]
    lengths = [len(window.starts(f"{p.title}, {p.text}")) for p in pieces]
    assert max(lengths) <= 254 and sum(length > 240 for length in lengths) >= len(lengths) - 1
    assert {passage.page_id for passage in pieces} == {"page"}


def test_a_tokenizer_stands_in_the_manifest_and_belongs_to_sentences() -> None:
    chunking = default_chunking("minilm")
    assert Chunking(**chunking.to_json()) == chunking
    assert chunking.to_json()["tokenizer"] == "minilm" and "tokenizer" not in Chunking(9).to_json()
    with pytest.raises(UsageError, match="only sentences are counted in an encoder's tokens"):
        Chunking(9, tokenizer="minilm")
