"""The data files of a repository by configuration and split, as its card declares them or as they are named.

The rules are those of the library ``datasets``, without its scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.hub_names import HubName
from rallebench.core.numbers import plural
from rallebench.core.sources import TABLES
from rallebench.core.streams import plain_name

DEFAULT, TRAIN = "default", "train"
_NO_DATA = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
"""Files of other programs beside the data."""
_KEYWORDS = {
    "train": TRAIN,
    "training": TRAIN,
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
}
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}\..*")
_CONVERTED = re.compile(r"\d{4,}\.parquet")
_CONSTANT = re.compile(r"[^*?\[]*")
"""The beginning of a pattern that stands for itself."""
PARTIAL = "partial-"
"""Beginning of the folder of a split that the hub has converted only in part."""
LARGEST_PATTERN, MOST_LISTED = 300, 20


@dataclass(frozen=True, slots=True)
class RepoFile:
    """A file of a repository: its path and its size in bytes, 0 if unknown."""

    path: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The files of one split. ``partial``: True if the hub has converted only its beginning."""

    config: str
    split: str
    files: tuple[RepoFile, ...]
    partial: bool = False


Layout = Mapping[str, Mapping[str, Sequence[RepoFile]]]
"""Configuration → split → its files."""


def is_safe(path: str) -> bool:
    """Return whether a path stays inside its repository on every system, and is visible.

    >>> is_safe("data/train.parquet"), is_safe("../x.csv"), is_safe("/etc/x.csv"), is_safe("C:/x.csv"), is_safe(".git/x.csv")
    (True, False, False, False, False)
    """
    parts = path.split("/")
    return (
        path.isprintable()
        and len(path) <= 1000
        and not any(char in path for char in '\\:*?"<>|')
        and not any(
            part == "" or part.startswith(".") or part.endswith((".", " ")) for part in parts
        )
    )


def is_data(path: str) -> bool:
    """Return whether a file is a table that is read here."""
    name = path.rpartition("/")[2]
    return is_safe(path) and name not in _NO_DATA and plain_name(name).lower().endswith(TABLES)


def choose_files(files: Iterable[RepoFile], card: DatasetCard, name: HubName) -> SplitFiles | None:
    """Return the files that a name means; None if the repository has no tables.

    Raises NotFoundError for an unknown file, configuration or split, and for an ambiguous name; the sentence lists those that
    there are.
    """
    every = sorted(files, key=lambda file: file.path)
    if name.file:
        return _named_files(every, name)
    declared = {config.config_name: config for config in card.configs}
    layout = {} if declared else layout_by_names(every)
    known = list(declared or layout)
    if not known:
        return None
    config = _choose("configuration", "config", name.config, known, name, card.default)
    splits = declared_splits(every, declared[config]) if declared else layout[config]
    if not splits:
        return None
    split = _choose("split", "split", name.split, splits, name)
    chosen = _one_kind(splits[split])
    return SplitFiles(config, split, chosen, any(f"/{PARTIAL}" in file.path for file in chosen))


def _named_files(files: Sequence[RepoFile], name: HubName) -> SplitFiles:
    chosen = tuple(file for file in files if is_safe(file.path) and matches(file.path, name.file))
    if not chosen:
        known = _enumerate_names([file.path for file in files if is_data(file.path)])
        raise NotFoundError(f"{name.repo} has no file {name.file!r}. Its tables: {known}.")
    endings = {plain_name(file.path).rpartition(".")[2] for file in chosen}
    if len(chosen) > 1 and len(endings) > 1:
        raise BadFileError(
            f"{name.file!r} means {plural(len(chosen), 'file')} of different kinds in {name.repo}: "
            f"{_enumerate_names([file.path for file in chosen])}; name files of one kind."
        )
    return SplitFiles("", "", chosen)


def _choose(
    noun: str, key: str, choice: str, known: Iterable[str], name: HubName, default: str = ""
) -> str:
    names = list(known)
    if choice in names:
        return choice
    listed = _enumerate_names(names)
    if choice:
        raise NotFoundError(f"{name.repo} has no {noun} {choice!r}. Its {noun}s: {listed}.")
    if len(names) == 1:
        return names[0]
    if default in names:
        return default
    raise NotFoundError(
        f"{name.repo} has the {noun}s {listed}; name one of them, as in {name.repo}?{key}={names[0]}."
    )


def _enumerate_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return (", ".join(names[:MOST_LISTED]) or "none") + more


def _one_kind(files: Sequence[RepoFile]) -> tuple[RepoFile, ...]:
    """Return the files of one ending, since some repositories offer the same rows in several."""
    endings = [plain_name(file.path).lower().rpartition(".")[2] for file in files]
    order = ("parquet", "arrow", "jsonl", "ndjson", "json", "csv", "tsv")
    kind = next((kind for kind in order if kind in endings), endings[0])
    return tuple(file for file, ending in zip(files, endings) if ending == kind)


# ── declared in the card ─────────────────────────────────────────────────────


class DeclaredConfig(BaseModel):
    """A configuration of a card: the files of its splits in one of several forms, or its folder."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    config_name: str = DEFAULT
    data_files: object = None
    data_dir: str = ""
    default: bool = False


class DatasetCard(BaseModel):
    """The part of a dataset's card that says where its files are. Anything else in it is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    configs: tuple[DeclaredConfig, ...] = ()

    @field_validator("configs", mode="before")
    @classmethod
    def _leave_out_others(cls, value: object) -> list[DeclaredConfig]:
        """Leave out configurations of another form, and those that name no files."""
        declared: list[DeclaredConfig] = []
        for config in value if isinstance(value, (list, tuple)) else []:
            with suppress(ValidationError):
                declared.append(DeclaredConfig.model_validate(config))
        return [config for config in declared if config.data_files or config.data_dir]

    @property
    def default(self) -> str:
        """The name of the configuration that is meant where none is named."""
        return next((config.config_name for config in self.configs if config.default), DEFAULT)


def read_card(value: object) -> DatasetCard:
    """Return the card in a value of any form."""
    return DatasetCard.model_validate(value) if isinstance(value, Mapping) else DatasetCard()


def declared_splits(
    files: Sequence[RepoFile], config: DeclaredConfig
) -> Mapping[str, Sequence[RepoFile]]:
    """Return split → the tables of a declared configuration, without splits that have none."""
    folder = config.data_dir.strip("./")
    if not config.data_files:
        inside = [file for file in files if file.path.startswith(f"{folder}/")]
        by_names = layout_by_names(inside).values()
        return {split: tables for splits in by_names for split, tables in splits.items()}
    splits: dict[str, list[RepoFile]] = {}
    for split, pattern in _patterns(config.data_files):
        path = f"{folder}/{pattern}" if folder else pattern
        tables = (file for file in files if matches(file.path, path) and is_data(file.path))
        splits.setdefault(split, []).extend(tables)
    return {split: list(dict.fromkeys(tables)) for split, tables in splits.items() if tables}


class _SplitFiles(BaseModel):
    """A split in a list of ``data_files``: ``{split: train, path: "data/train-*"}``."""

    model_config = ConfigDict(extra="ignore")

    split: str = TRAIN
    path: str | list[str] = ""


def _patterns(value: object) -> Iterator[tuple[str, str]]:
    """Yield (split, pattern) of the forms that ``data_files`` has; parts of another form are left out."""
    if isinstance(value, Mapping):
        value = [{"split": split, "path": path} for split, path in value.items()]
    for part in value if isinstance(value, list) else [value]:
        with suppress(ValidationError):
            named = _SplitFiles.model_validate({"path": part} if isinstance(part, str) else part)
            paths = named.path if isinstance(named.path, list) else [named.path]
            yield from ((named.split, path) for path in paths if path)


def matches(path: str, pattern: str) -> bool:
    """Return whether a path fits a pattern, in which ``*`` stands for a part of a name and ``**`` for any folders.

    >>> matches("data/train-0.parquet", "data/train-*"), matches("a/b/c.csv", "**/*.csv"), matches("a/b.csv", "*.csv")
    (True, True, False)
    """
    constant = _CONSTANT.match(pattern.removeprefix("./"))
    if len(pattern) > LARGEST_PATTERN or (constant and not path.startswith(constant[0])):
        return False
    pieces = pattern.removeprefix("./").split("/")
    reached = {0}  # parts of the pattern that fit the parts of the path so far
    for part in path.split("/"):
        following: set[int] = set()
        for at in _skip_folders(reached, pieces):
            if at < len(pieces) and pieces[at] == "**":
                following.add(at)
            elif at < len(pieces) and fnmatchcase(part, pieces[at]):
                following.add(at + 1)
        reached = following
    return any(
        at == len(pieces) or (at == len(pieces) - 1 and pieces[at] == "**") for at in reached
    )


def _skip_folders(reached: set[int], pieces: Sequence[str]) -> set[int]:
    """Add the places behind ``**``, which also stands for no folder."""
    places = set(reached)
    for at in reached:
        while at < len(pieces) and pieces[at] == "**":
            at += 1
            places.add(at)
    return places


# ── told by the names of the files ───────────────────────────────────────────


def layout_by_names(files: Sequence[RepoFile]) -> Layout:
    """Return the layout that the names of files tell: ``CONFIG/SPLIT-00000-of-00002.parquet``, ``CONFIG/SPLIT/0000.parquet``,
    ``data/dev.jsonl``. Without any split in a configuration, its files are ``train``."""
    layout: dict[str, dict[str, list[RepoFile]]] = {}
    for file in files:
        if is_data(file.path):
            config, split = _place(file.path)
            layout.setdefault(config or DEFAULT, {}).setdefault(split, []).append(file)
    for splits in layout.values():
        unnamed = splits.pop("", [])
        if not splits:
            splits[TRAIN] = unnamed
    return layout


def _place(path: str) -> tuple[str, str]:
    """Return the configuration and split of a file; '' for what its path does not tell.

    >>> _place("plain_text/train-00000-of-00001.parquet"), _place("data/dev.jsonl"), _place("en/partial-train/0000.parquet")
    (('plain_text', 'train'), ('', 'validation'), ('en', 'train'))
    >>> _place("corpus/corpus-00000-of-00002.parquet"), _place("all.csv"), _place("default/corpus/0000.parquet")
    (('corpus', 'corpus'), ('', ''), ('default', 'corpus'))
    """
    *folders, name = path.split("/")
    if (shard := _SHARD.fullmatch(name)) is not None:
        split = shard[1]
    elif _CONVERTED.fullmatch(name) and folders:
        split = folders.pop().removeprefix(PARTIAL)
    else:
        split = _keyword(plain_name(name).rpartition(".")[0])
        if not split and folders and (split := _keyword(folders[-1])):
            folders.pop()
    return "/".join(folder for folder in folders if folder != "data"), split


def _keyword(name: str) -> str:
    words = re.split(r"[-._ ]+", name.lower())
    return next((_KEYWORDS[word] for word in reversed(words) if word in _KEYWORDS), "")
