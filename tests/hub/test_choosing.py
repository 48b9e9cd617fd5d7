"""The files of a name: configurations and splits as a card declares them, or as files are named; nothing outside a
repository."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rallebench.core.errors import BadFileError, NotFoundError, RalleError, UsageError
from rallebench.core.hub_names import HubName, parse_hub_name
from rallebench.hub.choosing import RepoFile, choose_files, is_data, is_safe, matches, read_card

SQUAD = ["README.md", ".gitattributes", "squad_v2/train-00000-of-00001.parquet", "squad_v2/validation-00000-of-00001.parquet"]  # fmt: skip
SQUAD_CARD = {"configs": [{"config_name": "squad_v2", "data_files": [{"split": "train", "path": "squad_v2/train-*"}, {"split": "validation", "path": "squad_v2/validation-*"}]}]}  # fmt: skip
BEIR = ["corpus/corpus-00000-of-00002.parquet", "corpus/corpus-00001-of-00002.parquet", "queries/queries-00000-of-00001.parquet"]  # fmt: skip
BEIR_CARD = {"configs": [{"config_name": "corpus", "data_files": "corpus/*"}, {"config_name": "queries", "default": True, "data_files": {"queries": ["queries/*.parquet"]}}]}  # fmt: skip
CONVERTED = ["default/train/0000.parquet", "default/train/0001.parquet", "default/partial-test/0000.parquet"]  # fmt: skip


EVERYTHING = read_card({"configs": [{"data_files": "**"}]})


def choose(paths: list[str], card: dict[str, Any], query: str = "") -> Any:
    files = [RepoFile(path) for path in paths]
    return choose_files(files, read_card(card), parse_hub_name(f"hf:owner/set{query}"))


@pytest.mark.parametrize(
    "paths, card, query, chosen",
    [
        (SQUAD, SQUAD_CARD, "?split=validation", ["squad_v2", "validation", SQUAD[3]]),
        (SQUAD, {}, "?split=train", ["squad_v2", "train", SQUAD[2]]),
        (BEIR, BEIR_CARD, "", ["queries", "queries", BEIR[2]]),
        (BEIR, BEIR_CARD, "?config=corpus", ["corpus", "train", *BEIR[:2]]),
        (BEIR, {}, "?config=corpus&split=corpus", ["corpus", "corpus", *BEIR[:2]]),
        (CONVERTED, {}, "?split=train", ["default", "train", *CONVERTED[:2]]),
        (["data/train.jsonl", "data/dev.jsonl"], {}, "?split=validation", ["default", "validation", "data/dev.jsonl"]),
        (["en/test/a.csv", "fr/test/a.csv"], {}, "?config=fr", ["fr", "test", "fr/test/a.csv"]),
        (["questions.json", "dataset_infos.json"], {}, "", ["default", "train", "questions.json"]),
        (["test.jsonl.gz", "LICENSE"], {}, "", ["default", "test", "test.jsonl.gz"]),
        (["train.csv", "train.parquet"], {}, "", ["default", "train", "train.parquet"]),
        (["en/a.json", "de/a.json"], {"configs": [{"config_name": "en", "data_dir": "en"}]}, "", ["en", "train", "en/a.json"]),
        (["a.json"], {"configs": [{"config_name": "x", "description": "no files"}]}, "", ["default", "train", "a.json"]),
        (["x/a.csv", "x/b.csv", "y/c.csv"], {}, "?file=x/*.csv", ["", "", "x/a.csv", "x/b.csv"]),
    ],
)  # fmt: skip
def test_a_name_means_the_files_of_one_split(
    paths: list[str], card: dict[str, Any], query: str, chosen: list[str]
) -> None:
    choice = choose(paths, card, query)
    assert [choice.config, choice.split, *(file.path for file in choice.files)] == chosen
    assert not choice.partial


def test_the_beginning_of_a_split_is_marked() -> None:
    assert choose(CONVERTED, {}, "?split=test").partial


@pytest.mark.parametrize(
    "paths, card, query, kind, sentence",
    [
        (SQUAD, SQUAD_CARD, "?split=dev", NotFoundError, r"owner/set has no split 'dev'. Its splits: train, validation."),
        (SQUAD, SQUAD_CARD, "", NotFoundError, r"has the splits train, validation; name one of them, as in owner/set\?split=train"),
        (SQUAD, SQUAD_CARD, "?config=v1&split=train", NotFoundError, "no configuration 'v1'. Its configurations: squad_v2"),
        (["en/a.csv", "fr/a.csv"], {}, "", NotFoundError, "has the configurations en, fr; name one of them"),
        (["a.csv", "b.json"], {}, "?file=x.csv", NotFoundError, "no file 'x.csv'. Its tables: a.csv, b.json"),
        (["a.csv", "b.json"], {}, "?file=*", BadFileError, "means 2 files of different kinds"),
    ],
)  # fmt: skip
def test_an_unknown_or_ambiguous_name_lists_what_there_is(
    paths: list[str], card: dict[str, Any], query: str, kind: type[RalleError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        choose(paths, card, query)


@pytest.mark.parametrize(
    "paths", [[], ["set.py", "README.md"], ["data.zip"], ["../evil.csv"], ["a\x00.csv"]]
)
def test_a_repository_without_tables_has_no_files(paths: list[str]) -> None:
    assert choose(paths, {}) is None


@pytest.mark.parametrize(
    "path",
    ["../x.csv", "a/../../x.csv", "/etc/x.csv", "C:\\x.csv", "a\\..\\x.csv", "a//x.csv", ".ssh/x.csv", "a/.x.csv", "x.csv\n", "CON:/x.csv", "a./x.csv", "x" * 1001 + ".csv"],
)  # fmt: skip
def test_a_path_that_leaves_the_repository_is_no_data(path: str) -> None:
    assert not is_safe(path) and not is_data(path)
    assert choose_files([RepoFile(path)], EVERYTHING, HubName("a/b")) is None


CARDS: list[dict[str, Any]] = [
    {"configs": 3}, {"configs": [3, None, "x"]}, {"configs": [{}]}, {"configs": [{"data_files": 3}]},
    {"configs": [{"data_files": [{"split": 3, "path": {"a": 1}}]}]}, {"configs": [{"data_files": {"train": None}}]},
    {"configs": [{"config_name": ["x"], "data_files": "https://evil.example/x.csv"}]},
    {"configs": [{"data_files": "../../*", "data_dir": "/.."}]}, {"configs": [{"data_files": "*" * 10_000}]},
]  # fmt: skip


@pytest.mark.parametrize("card", CARDS)
def test_a_card_of_any_form_chooses_a_file_of_the_repository_or_none(card: dict[str, Any]) -> None:
    choice = choose(["train.csv"], card)
    assert choice is None or [file.path for file in choice.files] == ["train.csv"]


def test_a_hostile_pattern_takes_little_time() -> None:
    begun = time.process_time()
    assert not matches("/".join(["a" * 30] * 30), "/".join(["**", "*a*a*a*a*a*b"] * 20))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("hf:", "is not the name of a dataset on the hub: hf:OWNER/NAME"),
        ("hf:a/b/c", "is not the name of a dataset"),
        ("hf:../../etc", "is not the name of a dataset"),
        ("hf:a/b?split", "is not the name|unknown|not plain"),
        (
            "hf:a/b?branch=x",
            "the key 'branch' is unknown; the keys are config, split, revision, file",
        ),
        ("hf:a/b?split=x&split=y", "the key 'split' is twice"),
        ("hf:a/b?split=%00", "not plain text"),
        ("hf:a/b?file=x.csv&split=y", "has a file, so it has no split"),
    ],
)
def test_a_name_of_another_form_is_one_sentence(text: str, sentence: str) -> None:
    if text == "hf:a/b?split":
        assert parse_hub_name(text) == HubName("a/b")
        return
    with pytest.raises(UsageError, match=sentence):
        parse_hub_name(text)
