"""Language models: prompt → text. Each file registers a factory ``(name, **settings) -> LLM``.

``name``: the user's name for the model, used in messages only. All other arguments are keyword settings; an unknown or
invalid setting raises UsageError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rallebench.core.backends import LLM
from rallebench.core.errors import UsageError
from rallebench.core.registry import Registry, unknown
from rallebench.core.settings import DataClass, Setting, dataclass_form
from rallebench.core.types import Json, ToolCall, ToolSpec

DEFAULT_MAX_TOKENS = 256
"""Default limit of generated tokens, if neither the request nor the settings set one."""

MOST_TOKENS = 10_000_000
"""Largest number of tokens that a setting accepts."""

DEFAULT_TEMPERATURE = 0.0
"""Greedy, so that a run is repeatable. ``top_p`` and ``seed`` stay unset."""

LOWEST_LOGPROB = -9999.0
"""Log-probability of a token of probability 0, as vLLM writes it: JSON has no infinity."""

S = TypeVar("S", bound=DataClass)


LLMS: Registry[Callable[..., LLM]] = Registry(
    "language model backend",
    "rallebench.llms",
    expects="a function (name, **settings) → an LLM: fingerprint, generate(batch)",
    traits={
        "loading": "(name, cache, **settings) → sentences, then the model, for a model that takes long to load; ``cache``: "
        "a folder for files it makes once",
        "need": "(name, context, batch, **settings) → estimated memory, without loading the model",
        "quantizations": "its quantisations, largest first",
        "settings": "(name, **settings) → its checked settings; reads no weights and needs no key",
        "libraries": "(**settings) → None: import the packages that a load needs; they stay imported after an unload",
        "copies": "True if it copies its answers from the prompt and never writes text of its own",
    },
)


def copies(backend: str) -> bool:
    """Return whether a backend copies its answers from the prompt and never writes text of its own."""
    return backend in LLMS and bool(LLMS.entry(backend).traits.get("copies"))


def settings_from(shape: type[S], name: str, values: Json) -> S:
    """Return an instance of the dataclass ``shape``, whose fields are declared settings.

    Raises UsageError for an unknown or missing name and for a value that its setting does not permit.

    >>> from dataclasses import dataclass
    >>> from rallebench.core.settings import declare
    >>> Shape = dataclass(type("Shape", (), {"__annotations__": {"model": str}, "model": declare(str, "")}))
    >>> settings_from(Shape, "my-llm", {"modle": "x"})
    Traceback (most recent call last):
    rallebench.core.errors.UsageError: 'my-llm': There is no setting 'modle'. Did you mean 'model'? Known: model.
    """
    form = dataclass_form(shape)
    for key in values:
        if key not in form:
            raise UsageError(f"{name!r}: {unknown('setting', key, list(form))}")
    for key, setting in form.items():
        if setting.required and key not in values:
            raise UsageError(f"{name!r} needs the setting {key!r}.")
    return shape(**{key: checked_value(name, key, form[key], values[key]) for key in values})


def checked_value(name: str, key: str, setting: Setting, value: Any) -> Any:
    """Convert ``value`` to the setting's type; a number in quotes is refused. Raises UsageError.

    A number for a float keeps its spelling, since requests and fingerprints contain it.
    """
    try:
        if isinstance(value, str) and setting.kind in (int, float):
            raise ValueError(setting.must_be)
        read = setting.reads(value)
    except ValueError as must_be:
        nothing = " or null" if setting.null or setting.default is None else ""
        raise UsageError(f"{name!r}: {key} is {value!r}; it must be {must_be}{nothing}.") from None
    return value if setting.kind is float else read


def tool_json(tool: ToolSpec, parameters: Json) -> dict[str, Any]:
    """Return a tool in OpenAI's format, which chat templates read too."""
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def call_json(call: ToolCall, arguments: Any) -> dict[str, Any]:
    """Return a tool call in OpenAI's format; ``arguments``: JSON text, or the object for a chat template."""
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}
