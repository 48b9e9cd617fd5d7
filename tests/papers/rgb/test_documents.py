"""The documents of a record by RGB's rules, against a second implementation and against fixed lists."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_workspace import write_lines

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.papers.rgb.records import (
    RgbRecord,
    base_documents,
    counterfactual_documents,
    find_file,
    integration_documents,
    read_records,
    read_required,
)

ORDER = [1, 4, 3, 2, 0]
"""The order of five documents after ``random.seed(2333)``."""


def record(
    positive: int = 0, negative: int = 0, groups: tuple[int, ...] = (), wrong: bool = False
) -> RgbRecord:
    """Positives p0, p1 … (of groups: a0, a1 …, b0 …), negatives n0 …, false copies w0 …"""
    flat = tuple(f"p{i}" for i in range(positive))
    several = tuple(
        tuple(f"{'abcdefg'[g]}{i}" for i in range(size)) for g, size in enumerate(groups)
    )
    copies = tuple(f"w{i}" for i in range(positive)) if wrong else ()
    noise = tuple(f"n{i}" for i in range(negative))
    return RgbRecord(
        "1", "who?", "x", (("x",),), several or (flat,), noise, copies, grouped=bool(groups)
    )


@pytest.mark.parametrize(
    ("positive", "negative", "noise", "texts"),
    [
        (9, 9, 0, "p0 p1 p2 p3 p4"),
        (9, 9, 0.2, "n0 p0 p1 p2 p3"),
        (9, 9, 0.5, "n0 n1 n2 p0 p1"),
        (9, 1, 0.8, "n0 p0 p1 p2 p3"),
        (1, 9, 0.2, "n0 n1 n2 n3 p0"),
        (1, 1, 0.8, "n0 p0"),
        (9, 2, 1, "n0 n1"),
        (0, 9, 0, "n0 n1 n2 n3 n4"),
    ],
)
def test_base_takes_the_first_of_each_kind_and_fills_up_with_the_other(
    positive: int, negative: int, noise: float, texts: str
) -> None:
    chosen = base_documents(record(positive, negative), 5, noise)
    assert sorted(chosen.texts) == texts.split() and chosen.short is (len(chosen.texts) < 5)


def test_of_no_documents_the_list_is_empty() -> None:
    for build in (base_documents, integration_documents):
        assert build(record(3, 3), 0, 0).texts == ()
    assert counterfactual_documents(record(3, 3, wrong=True), 0, 0, 0).texts == ()


def test_the_order_is_that_of_seed_2333_for_every_record_anew() -> None:
    for _ in range(2):
        assert base_documents(record(9), 5, 0).texts == tuple(f"p{i}" for i in ORDER)


@pytest.mark.parametrize(
    ("groups", "number", "noise", "initials"),
    [((3, 3, 3, 3, 3, 3, 3), 5, 0.4, "abcdefg"), ((1, 4), 5, 0.2, "abbbn"), ((0, 2), 3, 0, "bbn")],
    ids=["one of every group, also if that is more", "second ones, then noise", "an empty group"],
)
def test_integration_takes_one_of_every_group_then_second_ones_then_noise(
    groups: tuple[int, ...], number: int, noise: float, initials: str
) -> None:
    source = record(negative=9, groups=groups)
    texts = integration_documents(source, number, noise).texts
    assert "".join(sorted(text[0] for text in texts)) == initials
    assert "n0" in texts or "n" not in initials
    assert source == record(negative=9, groups=groups), "the record stays as it was"


def test_a_false_and_a_true_copy_of_one_passage_never_meet() -> None:
    for positives in range(1, 8):
        source = record(positives, 5, wrong=True)
        for correct in (0, 0.2, 0.4, 0.6):
            texts = counterfactual_documents(source, 5, 0.2, correct).texts
            wrong, right = ({text[1:] for text in texts if text[0] == kind} for kind in "wp")
            assert not wrong & right and "n0" in texts
            assert len(wrong) == min(positives, 4 - math.ceil(5 * correct))


def test_shares_are_rounded_up_exactly_and_in_floating_point_only_as_the_original_does() -> None:
    source = record(100, 100)
    negatives = [base_documents(source, 100, 0.07, original=o).negatives for o in (False, True)]
    assert negatives == [7, 8]


# published records


def by_the_published_rules(
    name: str, row: Mapping[str, Any], number: int, noise: float, correct: float = 0.0
) -> list[str]:
    """The rules once more, over plain lists and the global generator, as they were published."""
    random.seed(2333)
    negatives, good, bad = math.ceil(number * noise), row["positive"], row["negative"]
    if name.endswith("_int"):
        for group in good:
            random.shuffle(group)
        chosen, depth = [group[0] for group in good], 1
        while len(chosen) < number - negatives and any(len(group) > depth for group in good):
            for group in good:
                if len(group) > depth and len(chosen) < number - negatives:
                    chosen.append(group[depth])
            depth += 1
        chosen += bad[: max(0, number - len(chosen))]
    elif name.endswith("_fact"):
        true = math.ceil(number * correct)
        places = range(len(good))
        picked = random.sample(list(places), min(len(good), number - negatives - true))
        left = [i for i in places if i not in picked]
        chosen = [row["positive_wrong"][i] for i in picked]
        if true and left:
            chosen += [good[i] for i in random.sample(left, min(len(left), true))]
        chosen += bad[:negatives]
    elif noise == 1:
        chosen = bad[:number]
    elif negatives > len(bad):
        chosen = good[: number - len(bad)] + bad
    elif number - negatives > len(good):
        chosen = good + bad[: number - len(good)]
    else:
        chosen = good[: number - negatives] + bad[:negatives]
    random.shuffle(chosen)
    return chosen


SHARES: Mapping[str, Any] = {
    "_refine": (base_documents, [(0,), (0.2,), (0.8,), (1,)]),
    "_int": (integration_documents, [(0,), (0.2,), (0.4,)]),
    "_fact": (counterfactual_documents, [(0, 0), (0.2, 0.4)]),
}
"""End of a set's name → the rule, and the shares of noise and of true documents."""
GOLDEN = {
    "zh_refine": "6e06da13adc16aaf",
    "zh_int": "583bb551f4c149aa",
    "en_fact": "faefdfab7a1c5ba3",
    "zh_fact": "5af73dc53d3d9e56",
}
"""The first 16 digits of sha256 over the lists of the first ten records, five documents each."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_lists_of_published_records_follow_the_rules(shared_data: Path, name: str) -> None:
    path = shared_data / "rgb" / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ours = read_records(path).records
    assert len(ours) == len(rows) > 50
    build, shares = SHARES[name[2:]]
    total = hashlib.sha256()
    for of_test in shares:
        for number, (source, row) in enumerate(zip(ours, json.loads(json.dumps(rows)))):
            texts = build(source, 5, *of_test).texts
            assert list(texts) == by_the_published_rules(name, row, 5, *of_test), source.id
            if number < 10:
                total.update("\n".join(texts).encode())
    assert total.hexdigest()[:16] == GOLDEN[name]


def test_the_published_chinese_facts_hold_records_without_negatives(shared_data: Path) -> None:
    assert len(read_records(shared_data / "rgb" / "zh_fact.jsonl").without["negatives"]) >= 1


# reading


ROW = {"id": 1, "query": "who?", "answer": "x", "positive": ["p"], "negative": ["n"]}


def test_an_answer_is_one_text_all_of_a_list_and_any_of_a_list_in_it() -> None:
    assert read_required("x") == (("x",),)
    assert read_required(["x", ["y", "z"]]) == (("x",), ("y", "z"))
    expected = (("x",), ("w", "y", "z"))
    assert read_required(["x", ["w", ["y", "z"]]]) == expected
    assert read_required(["", ["y", " "], []]) == (("y",),) and read_required(None) == ()


def test_what_records_lack_is_named(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "id": 2, "answer": [], "negative": []}, {**ROW, "id": 3, "positive": []}]
    records = read_records(write_lines(tmp_path / "zh_x.json", rows))
    assert records.without == {"answers": ("2",), "negatives": ("2",), "positives": ("3",)}


@pytest.mark.parametrize(
    ("name", "query", "chosen", "language"),
    [
        ("zh_x.json", "who?", "", "zh"),
        ("mine.jsonl", "谁？", "", "zh"),
        ("mine.jsonl", "who?", "", "en"),
        ("mine.jsonl", "who?", "zh", "zh"),
    ],
)
def test_the_language_follows_from_name_or_questions(
    tmp_path: Path, name: str, query: str, chosen: str, language: str
) -> None:
    path = write_lines(tmp_path / name, [{**ROW, "query": query}])
    assert read_records(path, chosen).language == language


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": None}, "has no 'id'"),
        ({"query": 3}, "'query' is not a question"),
        ({"answer": ["x", {"y": 1}]}, "'answer' is not an answer"),
        ({"positive": "p"}, "'positive' should be a list of texts"),
        ({"negative": [1]}, "'negative' should be a list of texts"),
        ({"positive_wrong": ["a", "b"]}, "'positive_wrong' has 2 documents and 'positive' 1"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(
    tmp_path: Path, change: Mapping[str, Any], sentence: str
) -> None:
    path = write_lines(tmp_path / "en.jsonl", [ROW, {**ROW, "id": 2, **change}])
    with pytest.raises(BadFileError, match=f"line 2.*{sentence}"):
        read_records(path)


def test_a_folder_offers_the_set_that_a_test_is_made_for(tmp_path: Path) -> None:
    write_lines(tmp_path / "en_fact.jsonl", [ROW])
    assert find_file(tmp_path, "", ("en_refine", "en", "en_fact")).name == "en_fact.jsonl"
    with pytest.raises(NotFoundError, match=r"holds no en_int, .*; it holds en_fact"):
        find_file(tmp_path, "", ("en_int",))
    with pytest.raises(NotFoundError, match=r"holds no zh_int; it holds en_fact"):
        find_file(tmp_path, "zh_int", ("en_int",))
