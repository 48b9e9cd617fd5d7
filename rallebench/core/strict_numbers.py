"""Numbers and flags of stored files, as pydantic checks them: never text or a bool, always finite and within bounds.

The module does not import pydantic, so values with these types load at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic_core.core_schema import CoreSchema

LARGEST = 1e15
"""No score, time or count is larger."""


@dataclass(frozen=True, slots=True)
class Between:
    """The bounds of a number, both inclusive."""

    low: float
    high: float

    def __get_pydantic_core_schema__(self, source: type, handler: Any) -> CoreSchema:
        """The check of a strict number of the annotated type."""
        from pydantic_core import core_schema

        if source is int:
            return core_schema.int_schema(strict=True, ge=int(self.low), le=int(self.high))
        return core_schema.float_schema(strict=True, allow_inf_nan=False, ge=self.low, le=self.high)


@dataclass(frozen=True, slots=True)
class Exactly:
    """True or False, and nothing similar."""

    def __get_pydantic_core_schema__(self, source: type, handler: Any) -> CoreSchema:
        """The check of a strict bool."""
        from pydantic_core import core_schema

        return core_schema.bool_schema(strict=True)


Flag = Annotated[bool, Exactly()]
Number = Annotated[float, Between(-LARGEST, LARGEST)]
Count = Annotated[int, Between(0, 2**53 - 1)]
Whole = Annotated[int, Between(-(2**64), 2**64)]
Seconds = Annotated[float, Between(0, LARGEST)]
Batch = Annotated[int, Between(1, 2**31 - 1)]
"""A number of requests that were answered together."""
