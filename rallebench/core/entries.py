"""The formats of JSON files that several packages read: a language model, a combination of retrievers, a server, an index."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rallebench.core.errors import BadFileError
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.prices import read_prices
from rallebench.core.strict_numbers import Count
from rallebench.core.text import UNFOLDED
from rallebench.core.types import Json, digest

MAX_ACTIONS = 8
"""The most actions of a chain."""
UNFOLDED_NOTE = "words not folded: build it anew, and all spellings of a word in Unicode meet"


class Strict(BaseModel):
    """A format that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


Shape = TypeVar("Shape", bound=BaseModel)


def parse_entry(shape: type[Shape], value: object, place: str, more: str = "") -> Shape:
    """Parse ``value`` in a format. Raises BadFileError about ``place``, one sentence for the first wrong field, then
    ``more``."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise BadFileError(problem(error, place) + more) from None


def problem(error: ValidationError, place: str) -> str:
    """The first validation error as one sentence.

    >>> try: LLMEntry.model_validate({"backend": 5})
    ... except ValidationError as e: problem(e, "llms.json")
    "llms.json: 'backend' is wrong (input should be a valid string)."
    """
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    extra = first["type"] == "extra_forbidden"
    message = "there is no such field" if extra else first["msg"].removeprefix("Value error, ")
    return f"{place}: {where!r} is wrong ({message[:1].lower()}{message[1:]})."


class LLMEntry(Strict):
    """A language model that can be loaded: its backend and settings."""

    backend: str
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def prices(self) -> dict[str, float] | None:
        """US dollars per million tokens, ``prompt`` and ``completion``; None without prices."""
        return read_prices(self.settings.get("prices"))


class Combination(Strict):
    """A retriever made of others: its kind, the names of the others, and its settings."""

    kind: str
    of: list[str] = Field(min_length=1, max_length=64)
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)


class McpServerEntry(BaseModel):
    """A server of the Model Context Protocol, in the format of its clients, whose further fields are ignored.

    Either a program (``command``, ``args``, ``env``, ``cwd``), which is started, or an address (``url``, ``headers``).
    """

    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    type: str = ""

    @model_validator(mode="after")
    def _is_one_server(self) -> McpServerEntry:
        if bool(self.command.strip()) == bool(self.url.strip()):
            raise ValueError("a server has either a command or a url")
        if self.url and not self.url.lower().startswith(("http://", "https://")):
            raise ValueError("a url begins with http:// or https://")
        if self.type == "sse":
            raise ValueError(
                "the transport sse is out of date; use the server's address of streamable HTTP"
            )
        if any("\0" in text for text in (self.command, *self.args, *self.env, *self.env.values())):
            raise ValueError("a text holds the character NUL")
        return self


class Manifest(Strict):
    """The description of an index in its folder. ``fingerprint`` changes whenever a search result may.

    ``retriever``: ``dense`` for a vector index, else the kind. ``passage_dtype``: the numeric type of the encoded
    passages; ``encoding``: the figures behind this choice. ``window``: the tokens of a passage that the encoder reads, 0
    if unknown; ``longer``: number of longer passages, an estimate if only ``longer_counted`` of them were read for it.
    ``warnings``: about omitted parts of the corpus, and passages that the index does not find. ``seal``: see
    ``seal_manifest``; '' in a manifest of an earlier version, which is trusted without it.
    """

    format: Literal["rallebench-index/1"] = "rallebench-index/1"
    name: str
    retriever: str
    kind: str
    corpus: str = ""
    corpus_sha256: str
    chunking: Json | None = None
    passages: Count
    passages_without_page: Count = 0
    encoder: str = ""
    encoder_name: str = ""
    passage_dtype: str = ""
    encoding: dict[str, Any] = Field(default_factory=dict)
    dim: Count = 0
    window: int = 0
    longer: int = 0
    longer_counted: int = 0
    warnings: list[str] = Field(default_factory=list)
    metric: str = "inner product"
    parameters: dict[str, Any] = Field(default_factory=dict)
    fingerprint: str
    files: dict[str, Count] = Field(default_factory=dict)
    sha256: dict[str, str] = Field(default_factory=dict)
    seconds: float = Field(0.0, ge=0, le=1e12)
    bytes: Count = 0
    versions: dict[str, str] = Field(default_factory=dict)
    seal: str = ""

    @property
    def words_note(self) -> str:
        """The mark of a sparse index with unfolded words; '' for any other."""
        return UNFOLDED_NOTE if self.parameters.get("tokens") == UNFOLDED else ""


def seal_manifest(value: JsonObject) -> dict[str, JsonValue]:
    """The JSON form of a manifest with a seal of 12 hex digits, which no longer fits after any edit."""
    content = {key: item for key, item in value.items() if key != "seal"}
    return {**content, "seal": digest(content)[:12]}
