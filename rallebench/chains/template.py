"""The template language of chains: prompts with the variables of the steps so far.

Two dialects, both RaLLe's: ``fstring`` is ``str.format`` (``{question}``, ``{response[0]}``), ``eval`` is one
Python expression. Neither reaches Python's own ``eval``, ``exec`` or ``str.format``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rallebench.chains.safe_eval import evaluate
from rallebench.chains.safe_format import Field, fill, not_a_variable, parse_format
from rallebench.chains.safe_syntax import parse
from rallebench.chains.safe_values import (
    MAX_TEMPLATE,
    Budget,
    TemplateRefused,
    Value,
    check_limit,
    clip,
    kind,
    listing,
    plain,
)
from rallebench.core.errors import TemplateError

VARIABLES = ("question", "history", "prompt", "response", "wiki_id_title", "documents")


def render(template: str, dialect: str, variables: Mapping[str, object]) -> str:
    """Fill ``template`` with its variables.

    ``variables``: ``question`` and ``history`` are texts; ``prompt``, ``response`` and ``wiki_id_title`` are
    lists of texts and ``documents`` a list of lists of dicts (``rank title text page_id doc_id score``), each with one
    element per finished action. Raises only TemplateError, within 100 ms.

    >>> render("{question}?", "fstring", {"question": "who"})
    'who?'
    >>> render("question.split(' ')[1].upper()", "eval", {"question": "who wrote"})
    'WROTE'
    """
    with _template_errors(template, variables):
        names = _names(template, dialect)
        _check_names(names, variables)
        known = {name: plain(variables[name], name) for name in names}
        return _fill(template, known) if dialect == "fstring" else _evaluate(template, known)


def check(template: str, dialect: str) -> None:
    """Raise TemplateError for any error in ``template`` that can be found without values."""
    with _template_errors(template, VARIABLES):
        _check_names(_names(template, dialect), VARIABLES)


def names_used(template: str, dialect: str) -> frozenset[str]:
    """Return the variables in ``template``. Raises TemplateError if it is malformed.

    >>> sorted(names_used("' / '.join(d['title'] for d in documents[0])", "eval"))
    ['documents']
    """
    with _template_errors(template, VARIABLES):
        return frozenset(_names(template, dialect))


@contextmanager
def _template_errors(template: str, variables: Iterable[str]) -> Iterator[None]:
    """Turn a refusal into a TemplateError that names the place and the ``variables``."""
    try:
        yield
    except TemplateRefused as refusal:
        raise _error(refusal, template, variables) from None
    except (RecursionError, MemoryError):
        too_deep = TemplateRefused("the template is nested too deeply")
        raise _error(too_deep, template, variables) from None


def _names(template: str, dialect: str) -> dict[str, int]:
    """Return every name in the template with its first position."""
    if dialect == "eval":
        return parse(template).names
    if dialect != "fstring":
        name = clip(str(dialect))
        raise TemplateRefused(f"there is no dialect {name!r}: choose 'fstring' or 'eval'")
    check_limit(len(template), MAX_TEMPLATE, "a template of {} characters")
    fields = [piece for piece in parse_format(template) if isinstance(piece, Field)]
    return {field.name: field.at for field in reversed(fields)}


def _check_names(names: Mapping[str, int], known: Iterable[str]) -> None:
    known = list(known)
    for name, at in names.items():
        if name not in known:
            raise TemplateRefused(_why_no_variable(name, known), at)


def _why_no_variable(name: str, known: list[str]) -> str:
    if not name.isidentifier():
        return not_a_variable(name)
    close = difflib.get_close_matches(name, known, 1) if len(name) < 40 else []
    hint = f", did you mean {close[0]!r}" if close else ""
    return f"there is no variable {clip(name)!r}{hint}"


def _fill(template: str, variables: Mapping[str, Value]) -> str:
    return fill(parse_format(template), lambda field: variables[field.name], Budget())


def _evaluate(template: str, variables: Mapping[str, Value]) -> str:
    value = evaluate(parse(template), variables, Budget())
    if type(value) in (int, float, bool):
        return str(value)
    if type(value) is str:
        return value
    join = "use ', '.join(...)"
    hints: dict[type, str] = {list: join, tuple: join, set: "use ', '.join(sorted(...))"}
    hint = hints.get(type(value), "use str(...)")
    raise TemplateRefused(f"the template gives {kind(value)}, and a prompt must be a text: {hint}")


def _error(refusal: TemplateRefused, template: str, variables: Iterable[str]) -> TemplateError:
    place = ""
    if refusal.at is not None:
        before = template[: refusal.at].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        place = f" at line {len(before)}, character {len(before[-1]) + 1}"
    known = listing([clip(str(name)) for name in variables])
    sentence = f"Template{place}: {refusal.message}; the variables are {known or 'none here'}."
    # one printable line: a template may contain a lone surrogate
    error = TemplateError(
        " ".join(sentence.split()).encode("utf-8", "backslashreplace").decode("utf-8")
    )
    error.at = refusal.at
    return error
