"""Support of answers by the embedded head: values, reasons for missing ones, and one matrix for all numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tiny_support import answer_pair, passage, save_classifier

from rallebench.core.errors import NotFoundError
from rallebench.core.scoring import Pair
from rallebench.core.support import AnswerClaim
from rallebench.core.types import Episode, Gold, GoldClaim, Outcome
from rallebench.engine.score import score_metrics
from rallebench.metrics import METRICS, metric
from rallebench.metrics.scorers import metric_scorers
from rallebench.metrics.support import scorer
from rallebench.metrics.support.checker import SupportPair
from rallebench.metrics.support.features import FEATURES
from rallebench.metrics.support.head import FILE, support_head

TITAN = "Titan is the largest moon of Saturn. Christiaan Huygens discovered it in 1655."
TRITON = "Triton is the largest moon of Neptune. William Lassell discovered it in 1846."
NAMES = ("support", "citation_recall", "citation_precision", "faithfulness")


def reason(pair: Pair, name: str = "support") -> str:
    series = score_metrics([name], [pair])[name]
    assert series.values == (None,)
    return series.notes[0]


@pytest.mark.parametrize(
    ("answer", "supported"),
    [
        ("Christiaan Huygens discovered Titan in 1655.", True),
        ("Christiaan Huygens discovered Titan in 1846.", False),
        ("William Lassell discovered Titan in 1655.", False),
        ("Titan is not the largest moon of Saturn.", False),
        ("Titan is the largest moon of Neptune.", False),
        ("Triton is the largest moon of Neptune.", True),
    ],
)
def test_the_head_sees_swapped_numbers_names_and_negations(answer: str, supported: bool) -> None:
    pair = answer_pair(answer, [f"{TITAN} {TRITON}"])
    assert score_metrics(["support"], [pair])["support"].values == (float(supported),)


def test_the_shipped_head_reached_the_bar_on_unseen_articles_for_every_swap() -> None:
    about = json.loads(FILE.read_text(encoding="utf-8"))
    areas = about["about"]["areas"]
    assert list(about["weights"]) == list(FEATURES)
    assert areas["swapped"]["auroc"] >= 0.9 and areas["swapped"]["false"] > 2000
    assert all(area["auroc"] >= 0.8 for area in areas.values()), areas
    assert about["about"]["test_articles"] == 14


def test_a_short_answer_is_read_behind_its_question() -> None:
    texts = [TITAN, TRITON]
    right = answer_pair("1655", texts, "When did Christiaan Huygens discover Titan?")
    wrong = answer_pair("1846", texts, "When did Christiaan Huygens discover Titan?")
    assert score_metrics(["support"], [right, wrong])["support"].values == (1.0, 0.0)
    head = support_head()
    pairs = [
        SupportPair((passage(1, TITAN),), AnswerClaim("1655", "When was Titan discovered?")),
        SupportPair((passage(1, TITAN),), AnswerClaim("When was Titan discovered? 1655")),
    ]
    first, second = head.score(pairs)
    assert first == second


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (answer_pair("", ["A text."]), "the answer is empty"),
        (answer_pair("[1]", ["A text."]), "the answer has no sentence"),
        (answer_pair("... !", ["A text."]), "the answer has no sentence"),
        (answer_pair("I don't know.", ["A text."]), "the answer declines"),
        (answer_pair("It is so.", []), "holds no retrieved passage word for word"),
        (answer_pair("It is so.", ["A text."], prompt=""), "holds no retrieved passage"),
        (answer_pair("It is so.", ["A text."], prompt="A te"), "holds no retrieved passage"),
        (answer_pair("泰坦是土星最大的卫星。", ["泰坦是土星最大的卫星。"]), "reads English only"),
        (
            Pair(answer_pair("", []).example, Episode("q", "chain", (), Outcome("So."))),
            "no prompt of a language model is recorded",
        ),
    ],
)
def test_an_answer_that_cannot_be_checked_has_a_reason_and_no_score(pair: Pair, words: str) -> None:
    assert words in reason(pair)
    assert words in reason(pair, "citation_precision")


def test_gold_claims_are_needed_by_their_metrics_alone() -> None:
    pair = answer_pair("Titan is a moon [1].", [TITAN])
    assert reason(pair, "claim_recall") == "not scored: no gold claims"
    gold = Gold(claims=(GoldClaim("Titan is the largest moon of Saturn."), GoldClaim("Io is hot.")))
    scored = score_metrics(
        ["claim_recall", "support"], [answer_pair("Titan is a moon [1].", [TITAN], gold=gold)]
    )
    assert scored["claim_recall"].values == (0.5,) and scored["support"].values[0] is not None


def test_chinese_answers_are_read_by_a_model_of_a_folder(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = save_classifier(
        tmp_path_factory.mktemp("m") / "nli", ["entailment", "neutral"], positions=128
    )
    pair = answer_pair(
        "泰坦是土星最大的卫星[1]。它有大气。", ["泰坦是土星最大的卫星。", "海王星。"]
    )
    series = score_metrics([f"support:{folder}"], [pair])[f"support:{folder}"]
    assert series.values[0] is not None
    (support,) = series.support
    assert [s.text for s in support.sentences] == ["泰坦是土星最大的卫星。", "它有大气。"]
    assert support.sentences[0].cited == (1,)
    assert all(len(s.scores) == 2 for s in support.sentences)


def test_all_numbers_of_a_model_come_from_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Counting:
        name, threshold = "", 0.5

        def score(self, pairs: Sequence[SupportPair]) -> list[float]:
            seen.append(len(pairs))
            return [0.9] * len(pairs)

        def refuses(self, claim: AnswerClaim) -> str:
            return ""

    monkeypatch.setattr(scorer, "open_checker", lambda option: Counting())
    pairs = [answer_pair("A fact [1][2]. Another [3].", [TITAN, TRITON])] * 3
    assert len(metric_scorers([*NAMES, "em"])) == 2
    scored = score_metrics(NAMES, pairs)
    assert seen == [3 * 2 * 2, 3], "two sentences by two passages, then the two cited together"
    assert [scored[name].values[0] for name in NAMES] == [1.0, 0.5, 1.0, 1.0]
    assert [len(scored[name].support) for name in NAMES] == [3, 0, 0, 0]
    (sentence, other) = scored["support"].support[0].sentences
    assert (sentence.cited, sentence.wrong, other.cited, other.wrong) == ((1, 2), (), (), (3,))


def test_the_support_of_an_answer_tells_quotations_and_wrong_citations() -> None:
    pair = answer_pair('He said "the largest moon of Saturn" [2][1].', [TITAN])
    (support,) = score_metrics(["support"], [pair])["support"].support
    assert support.quotations[0].passage == 1 and support.sentences[0].wrong == (2,)


def test_a_language_model_is_a_judge_and_a_folder_is_not() -> None:
    assert [METRICS.is_judge(f"support{x}") for x in ("", ":llm", ":/folder", ":owner/model")] == [
        False,
        True,
        False,
        False,
    ]
    with pytest.raises(NotFoundError, match="is a judge"):
        metric("support:llm")


def test_a_metric_alone_reads_an_episode_without_its_question() -> None:
    pair = answer_pair("Christiaan Huygens discovered Titan in 1655.", [TITAN])
    assert METRICS["support"](pair.episode, Gold()) == 1.0
    assert METRICS["support"](answer_pair("", []).episode, Gold()) is None
