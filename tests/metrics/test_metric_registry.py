"""Every metric can be requested by name and has its card."""

from __future__ import annotations

import pytest

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.metrics import METRICS, STANDARD_KS, card, metric

KILT = ["accuracy", "em", "f1", "rougel", "has_answer", "has_answer_all"]
AT_K = ["precision", "recall", "success_rate", "answer_in_context", "answer_in_passage"]


def test_the_names_of_kilt_and_ralle_are_known() -> None:
    names = {*KILT, *(f"KILT-{name}" for name in KILT)}
    names |= {"Rprec", "seconds", "prompt_tokens", "completion_tokens"}
    names |= {f"{family}@{k}" for family in AT_K for k in STANDARD_KS}
    assert names <= set(METRICS.names())


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("recall_at_5", "recall@5"),
        ("recall@7", "recall@7"),
        ("success_rate_at_1000", "success_rate@1000"),
        (" em ", "em"),
    ],
)
def test_any_cut_off_and_both_spellings_are_accepted(asked: str, canonical: str) -> None:
    assert metric(asked).name == canonical


def test_a_cut_off_outside_one_to_a_thousand_is_refused() -> None:
    for name in ("recall@0", "recall@1001", "recall@999999999"):
        with pytest.raises(UsageError, match="from 1 to 1000"):
            metric(name)


@pytest.mark.parametrize(
    "name", ["recall", "recall@", "recall@-1", "recall@five", "em@5", "Recall@5", "recall@٥", ""]
)
def test_a_name_that_nobody_knows_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(NotFoundError, match="There is no metric"):
        metric(name)


def test_the_card_of_a_cut_off_names_it() -> None:
    assert card("recall_at_7")["label"] == "Recall@7" and card("recall@7")["k"] == 7
    assert card("KILT-em")["label"] == "KILT-EM" and "R-precision" in card("KILT-em")["definition"]
