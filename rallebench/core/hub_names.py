"""Names of datasets on the Hugging Face hub: ``hf:OWNER/NAME?config=…&split=…&revision=…&file=…``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from urllib.parse import parse_qsl, quote, urlencode

from rallebench.core.errors import Hint, NotFoundError, UsageError

PREFIX = "hf:"
_ADDRESSES = ("//datasets/", "datasets/")
"""Beginnings of other programs' names for a dataset: ``hf://datasets/OWNER/NAME``."""
_REPO = re.compile(
    r"(?=.{1,192}$)(?!.*(\.\.|--))[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII
)
FORM = "hf:OWNER/NAME?split=…, with config=, revision= and file= where needed"


@dataclass(frozen=True, slots=True)
class HubName:
    """``config`` and ``split``: '' if there is only one; ``revision``: a branch, a tag or a commit, '' for the newest; ``file``: a
    path in the repository, which may have ``*``, in place of config and split."""

    repo: str
    config: str = ""
    split: str = ""
    revision: str = ""
    file: str = ""

    def __str__(self) -> str:
        pairs = [(key, getattr(self, key)) for key in KEYS if getattr(self, key)]
        query = urlencode(pairs, quote_via=quote, safe="/*")
        return f"{PREFIX}{self.repo}{'?' if query else ''}{query}"

    @property
    def label(self) -> str:
        """A name for the imported data.

        >>> HubName("rajpurkar/squad_v2", split="validation").label
        'squad_v2-validation'
        """
        name = self.repo.rpartition("/")[2]
        parts = (name, self.config if self.config not in ("default", name) else "", self.split)
        return re.sub(r"[^\w.-]+", "-", "-".join(filter(None, parts))).strip("-.")


KEYS = tuple(field.name for field in fields(HubName) if field.name != "repo")


def is_hub_name(text: object) -> bool:
    """Return whether a source is named on the hub.

    >>> is_hub_name("hf:squad"), is_hub_name("squad.parquet")
    (True, False)
    """
    return str(text).lower().startswith(PREFIX)


def refuse_hub_name(reference: str, kind: str) -> None:
    """Raise NotFoundError for a name of the hub where only what is here already can be named. ``kind``: corpus or dataset."""
    if is_hub_name(reference):
        parse_hub_name(reference)
        raise NotFoundError(
            f"{reference} is on the Hugging Face hub, not in this workspace.",
            hint=Hint("import", reference, kind),
        )


def parse_hub_name(text: str) -> HubName:
    """Parse a name. Raises UsageError.

    >>> parse_hub_name("hf:rajpurkar/squad_v2?split=validation")
    HubName(repo='rajpurkar/squad_v2', config='', split='validation', revision='', file='')
    >>> str(parse_hub_name("hf://datasets/a/b?revision=refs%2Fpr%2F1&split=test"))
    'hf:a/b?split=test&revision=refs/pr/1'
    """
    repo, _, query = text[len(PREFIX) :].strip().partition("?")
    for beginning in _ADDRESSES:
        repo = repo.removeprefix(beginning)
    if not _REPO.fullmatch(repo):
        raise UsageError(f"{text[:200]!r} is not the name of a dataset on the hub: {FORM}.")
    values: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in KEYS or key in values:
            fault = "twice" if key in values else f"unknown; the keys are {', '.join(KEYS)}"
            raise UsageError(f"In the name {text[:200]!r}, the key {key!r} is {fault}.")
        if not value.isprintable() or len(value) > 500:
            raise UsageError(f"In the name {text[:200]!r}, the value of {key!r} is not plain text.")
        values[key] = value.strip()
    if query and not values:
        raise UsageError(f"{text[:200]!r} is not the name of a dataset on the hub: {FORM}.")
    name = HubName(repo, **values)
    if name.file and (name.split or name.config):
        raise UsageError(f"The name {text[:200]!r} has a file, so it has no split and config.")
    return name
