"""Every metric has a card, and its docstring has the form from which cards are read."""

from __future__ import annotations

import functools
import inspect
import json

import pytest

from rallebench.core.cards import NEEDS, TOOLS
from rallebench.metrics import METRICS, card, read_card
from rallebench.metrics._card import SECTIONS, parse


def function_of(name: str) -> object:
    value = METRICS.entry(name).value
    return value.func if isinstance(value, functools.partial) else value


@pytest.mark.parametrize("name", METRICS.names())
def test_every_card_says_all_a_reader_needs(name: str) -> None:
    shown = read_card(name)
    texts = {
        "first line": shown.definition,
        "Normalisation": shown.normalisation,
        "Not scored": shown.not_scored,
    }
    for part, text in texts.items():
        assert text.endswith(".") and "\n" not in text, f"{name}: {part} must be a sentence"
    assert len(shown.definition) <= 130 and shown.label and shown.unit and shown.source
    assert shown.direction in ("higher is better", "lower is better", "neither direction is better")
    low, high = shown.range
    estimate = "Student's t" if high is None else "the interval of Agresti and Coull"
    assert shown.interval.startswith(f"{estimate} with a cluster-robust standard error: ")
    assert low is not None and (high is None or low < high) and shown.bounds[0] in "-0123456789"
    assert set(shown.needs.split("+")) <= {"", *NEEDS} and (not shown.tool or shown.tool in TOOLS)
    assert json.loads(json.dumps(card(name)))["direction"] == shown.direction


@pytest.mark.parametrize("name", METRICS.names())
def test_every_docstring_has_the_form_of_a_card(name: str) -> None:
    function = function_of(name)
    doc = inspect.cleandoc(function.__doc__ or "")
    heads = [
        line.partition(":")[0] for line in doc.splitlines() if line.partition(":")[0] in SECTIONS
    ]
    order = list(SECTIONS)
    assert heads == sorted(heads, key=order.index) and len(heads) == len(set(heads))
    missing = {"Normalisation", "Not scored", "Source", "Traps"}.difference(heads)
    assert not missing, f"the docstring of {name} lacks the sections {', '.join(sorted(missing))}"
    found = parse(doc)
    assert all(found[SECTIONS[head]].endswith(".") for head in heads)
    traits = METRICS.entry(name).traits
    assert bool(found["option"]) == ("check" in traits) and bool(found["over_all"]) == (
        "over_all" in traits
    )
    assert not {"source", "traps", "normalisation"} & set(traits), "the docstring says it"


@pytest.mark.parametrize(
    ("name", "trap"),
    [
        ("accuracy", "'supports' is not 'SUPPORTS'"),
        ("has_answer", "left out of the mean"),
        ("recall@5", "counts where its last page is found"),
        ("f1", "little about Chinese"),
        ("KILT-has_answer", "left out of the mean"),
        ("bleu-avg", "not corpus BLEU"),
        ("bertscore", "cannot be compared"),
    ],
)
def test_known_traps_are_told(name: str, trap: str) -> None:
    assert trap in read_card(name).traps


def test_a_card_reads_as_facts_in_lines_of_a_terminals_width() -> None:
    text = read_card("has_answer").text()
    assert text.startswith(
        "has_answer — has_answer\n  Definition:    1 if the normalised answer contains"
    )
    assert "  Direction:     higher is better\n  Range:         0 to 1 (fraction)\n" in text
    assert "Option:" not in text and "Beware:        Characters, not words" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert (
        "  Direction:     neither direction is better\n  Range:         0 or more"
        in read_card("length").text()
    )


def test_the_card_of_an_option_is_that_of_its_metric_under_its_own_name() -> None:
    plain, chosen = read_card("rouge-L"), read_card("rouge-L:char")
    assert (chosen.name, chosen.label) == ("rouge-L:char", "ROUGE-L (Lin) (char)")
    assert chosen.definition == plain.definition and chosen.traps == plain.traps


def test_labels_tell_metrics_apart() -> None:
    labels = [read_card(name).label for name in METRICS.names()]
    assert len(labels) == len(set(labels))
