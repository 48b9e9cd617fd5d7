"""Shapes of figures in the reports of experiments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rallebench.core.own_files import Count, Stored

LARGEST = 1e15
"""A larger score, time or count was never measured."""

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]


class StoredMean(Stored):
    value: Number | None
    low: Number | None = None
    high: Number | None = None
    n: Count
