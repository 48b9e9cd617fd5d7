"""Prompt → text. A backend is a factory ``(name, **settings) -> LLM``, one file each.

``name`` is what users call the model and serves in messages only. Everything else is a keyword
setting; an unknown or unfit one is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.registry import Registry, unknown
from rallebench.core.types import Generate, Reply

DEFAULT_MAX_TOKENS = 256
"""What a backend generates at most where neither the request nor its settings say."""

DEFAULT_TEMPERATURE = 0.0
"""Greedy, so that a run can be repeated. ``top_p`` and ``seed`` stay unset."""

S = TypeVar("S")


class LLM(Protocol):
    """A loaded language model.

    Beyond these two members a backend may have, each read with ``getattr`` and a default:

    * ``stream(request)``: see :class:`StreamingLLM`;
    * ``concurrency: int`` (1): how many threads may call ``generate`` at once, one request each.
      A backend above 1 is thread-safe; the loop keeps that many requests in flight;
    * ``temperature: float`` (0.0) and ``seed: int | None`` (None): its own defaults, by which the memory
      decides whether a reply may be remembered: sampled ones only with a seed;
    * ``handover: int | None`` (None): how many requests it is best handed at once;
    * ``prices`` (None): US dollars for a million tokens, ``{"prompt": …, "completion": …}``;
    * ``close()``: give memory and connections back; called once, nothing is asked afterwards;
    * ``calls_tools: bool`` (False): whether it can be offered tools, and calls them;
    * ``about: str`` (""): one line for people, which may change while it works.
    """

    @property
    def fingerprint(self) -> str:
        """Names all that changes an answer (backend, model, endpoint, defaults); never a key."""
        ...

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """One result per request, in the asked order.

        A request that failed by itself comes back as its RalleError, in its place; an exception
        raised means that the whole batch failed. ``None`` in a request is the model's default.
        """
        ...


@runtime_checkable
class StreamingLLM(Protocol):
    """A model that can hand out its answer while it is written."""

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then one Reply with the whole text, which equals their concatenation.

        Raises RalleError; pieces that came before an error are not an answer.
        """
        ...


LLMS: Registry[Callable[..., LLM]] = Registry(
    "language model backend",
    "rallebench.llms",
    traits={
        "loading": "(name, **settings) → sentences, the model last, for one that takes long to load",
        "need": "(name, context, batch, **settings) → the memory that it will take, without loading it",
        "quantizations": "the quantisations that it has, the largest first",
    },
)


def settings_from(shape: type[S], name: str, given: Mapping[str, Any]) -> S:
    """``shape``, a dataclass of settings, made of ``given``; UsageError for unknown and missing names.

    >>> from dataclasses import dataclass
    >>> Shape = dataclass(type("Shape", (), {"__annotations__": {"model": str}}))
    >>> settings_from(Shape, "my-llm", {"modle": "x"})
    Traceback (most recent call last):
    rallebench.core.errors.UsageError: 'my-llm': There is no setting 'modle'. Did you mean 'model'? Known: model.
    """
    known = {field.name: field for field in fields(shape)}  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            raise UsageError(f"{name!r}: {unknown('setting', key, list(known))}")
    for key, field in known.items():
        if key not in given and field.default is MISSING and field.default_factory is MISSING:
            raise UsageError(f"{name!r} needs the setting {key!r}.")
    return shape(**given)


def checked_number(
    name: str,
    setting: str,
    value: Any,
    low: float,
    high: float,
    *,
    whole: bool = False,
    optional: bool = False,
) -> None:
    """Pass if ``value`` is a number from ``low`` to ``high`` (or None, if ``optional``); else UsageError."""
    if value is None and optional:
        return
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        nothing = " or null" if optional else ""
        raise UsageError(
            f"{name!r}: {setting} is {value!r}; it must be {kind} from {low:g} to {high:g}{nothing}."
        )
