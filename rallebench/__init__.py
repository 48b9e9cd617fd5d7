"""rallebench: build a retrieval-augmented chain step by step, prove it, track it, chat with it.

The Python API (docs/python.md)::

    from rallebench import Workspace, chain, generate, retrieve

    with Workspace("my-study") as ws:
        rag = chain(retrieve("starter-bm25", k=5), generate("extractive-reader", "{response[0]}\\n\\n{question}"))
        run = ws.run(rag, "starter-qa", limit=100)
        print(run["em"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rallebench.api.chains import chain, generate, identity, retrieve
    from rallebench.api.questions import Dataset, load_dataset
    from rallebench.api.runs import Run, compare, gate
    from rallebench.api.workspace import Workspace
    from rallebench.core.errors import RalleError

__version__ = "0.1.0"

_PLACES = {
    "Dataset": "api.questions",
    "RalleError": "core.errors",
    "Run": "api.runs",
    "Workspace": "api.workspace",
    "chain": "api.chains",
    "compare": "api.runs",
    "gate": "api.runs",
    "generate": "api.chains",
    "identity": "api.chains",
    "load_dataset": "api.questions",
    "retrieve": "api.chains",
}
"""Public name → its module, which is imported when the name is first used."""

__all__ = [
    "Dataset",
    "RalleError",
    "Run",
    "Workspace",
    "chain",
    "compare",
    "gate",
    "generate",
    "identity",
    "load_dataset",
    "retrieve",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
