"""``rallebench list metrics``: short definitions, and the cards of named metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.cli.main import main
from rallebench.metrics import METRICS, card, read_card


def test_metrics_are_listed_and_defined(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "metrics", "--workspace", str(tmp_path)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == len(METRICS.plain_names()) + 1
    assert any(line.split() == ["em", *METRICS.entry("em").about.split()] for line in lines)


def test_cards_are_printed_also_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["list", "metrics", "recall_at_7", "bleu:zh", "--workspace", str(tmp_path)]
    assert main(asked) == 0
    printed = capfd.readouterr().out
    assert (
        read_card("recall@7").text() in printed
        and "Option:        13a, zh, char or jieba" in printed
    )
    assert main([*asked, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"metrics": [card("recall@7"), card("bleu:zh")]}


def test_a_judge_has_a_card_like_any_metric_which_names_its_columns_and_its_model(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "metrics", "truthfulness", "--workspace", str(tmp_path)]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "Range: 1 to 5 (points)" in printed and "relevance: The judge's score" in printed
    assert "Needs: an article, a reference or accepted answers, a language model" in printed
    assert "Source: BARAG" in printed and "Beware: Every judge has its own bias" in printed


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["llms", "echo"], "Only metrics have a card; write: rallebench list metrics echo"),
        (["metrics", "ndgc@5"], "Did you mean 'ndcg@5'"),
    ],
)
def test_what_has_no_card_is_refused(
    asked: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *asked, "--workspace", str(tmp_path)]) == 2
    assert said in capfd.readouterr().err
