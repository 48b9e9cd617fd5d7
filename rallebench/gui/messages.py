"""Messages of the page's script, checked against one schema before a handler runs."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints, ValidationError

from rallebench.core.errors import UsageError

Name = Annotated[str, StringConstraints(max_length=300)]
Text = Annotated[str, StringConstraints(max_length=2_000_000)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]
Scalar = Union[Text, bool, Whole, FiniteFloat, None]


class PageMessage(BaseModel):
    """A message. Values are not converted, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    window: Name = ""


class FileMessage(BaseModel):
    """A file that the browser uploaded earlier."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    path: Text
    name: Text


class ActMessage(PageMessage):
    """An action, with the fields around the pressed element and the query of the address."""

    action: Name
    number: Annotated[int, Field(ge=0, le=2**53)] = 0
    data: dict[Name, Union[Scalar, list[Text], list[FileMessage]]] = Field(default_factory=dict)
    query: dict[Name, Text] = Field(default_factory=dict)


class MoreMessage(PageMessage):
    """Request for the next patch of a stream."""

    stream: Name


class StopMessage(PageMessage):
    """Request to end the stream of an action."""

    action: Name


class RowsMessage(PageMessage):
    """Request for rows of a windowed list."""

    list: Name
    key: dict[Name, Scalar] = Field(default_factory=dict)
    start: Annotated[int, Field(ge=0, le=2**53)]
    count: Annotated[int, Field(ge=0, le=2**53)]


Kind = TypeVar("Kind", bound=PageMessage)


def read(kind: type[Kind], message: Any) -> Kind:
    """Parse a message. Raises UsageError that names the first wrong field."""
    try:
        return kind.model_validate(message)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in wrong["loc"])[:80] or "the whole"
        raise UsageError(
            f"The page sent a message that is wrong at {place} ({wrong['msg']}); reload the page."
        ) from None
