"""Chains written in Python: the same values as saved chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.api.wording import in_python
from rallebench.core.types import Action, Chain, Dialect
from rallebench.services.asking import checked_chain


def retrieve(
    retriever: str, template: str = "{question}", *, k: int = 5, dialect: Dialect = "fstring"
) -> Action:
    """Return an action that asks a retriever for its ``k`` best passages.

    ``template``: the query. It may use ``{question}``, and ``{prompt[i]}``, ``{response[i]}``, ``{wiki_id_title[i]}`` of an
    earlier action, counted from 0. ``dialect="eval"``: the template is a Python expression.

    >>> retrieve("docs-bm25", k=3).target
    'docs-bm25'
    """
    return Action("retrieve", template, dialect, retriever, k)


def generate(
    llm: str,
    template: str,
    *,
    max_tokens: int | None = None,
    temperature: float | None = None,
    seed: int | None = None,
    stop: Sequence[str] = (),
    system: str = "",
    response_format: Mapping[str, object] | None = None,
    dialect: Dialect = "fstring",
    **options: object,
) -> Action:
    """Return an action that asks a language model; ``template`` is the prompt, as for ``retrieve``.

    An omitted setting keeps the model's own value. ``response_format``: the required form of the reply, such as ``{"type":
    "json_object"}``. ``options``: further settings of the backend, such as ``top_p``.

    >>> generate("my-llm", "Answer {question} from:\\n{response[0]}", max_tokens=32).generation
    {'max_tokens': 32}
    """
    settings = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "seed": seed,
        "stop": [stop] if isinstance(stop, str) else list(stop) or None,
        "system": system or None,
        "response_format": None if response_format is None else dict(response_format),
        **options,
    }
    generation = {name: value for name, value in settings.items() if value is not None}
    return Action("generate", template, dialect, llm, generation=generation)


def identity(template: str, *, dialect: Dialect = "fstring") -> Action:
    """Return an action without a request: its response is its filled-in template.

    >>> identity("{response[0]}").kind
    'identity'
    """
    return Action("identity", template, dialect)


@in_python
def chain(*actions: Action, name: str = "chain", about: str = "") -> Chain:
    """Return a chain of 1 to 8 actions, run in order; the last response is the answer.

    ``name``: the start of the names of its runs. ``Workspace.save_chain`` keeps a chain for the page and the command line.
    Raises RalleError for a setting that an action cannot have.

    >>> rag = chain(retrieve("docs-bm25"), generate("my-llm", "{question}"), name="rag")
    >>> rag.retrievers, rag.llms
    (('docs-bm25',), ('my-llm',))
    """
    return checked_chain(Chain(name, actions, about))
