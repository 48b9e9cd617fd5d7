"""The form of a reply as requested by ``response_format``: its description in a prompt, its check and its grammar.

OpenAI's ``json_schema``, ``json_object`` and ``text``, and three more: ``{"type": "choice", "choices": [texts]}``,
``{"type": "regex", "regex": …}`` and ``{"type": "grammar", "grammar": …}``. Grammars are in Lark, where ``%json {…}``
stands for JSON of that schema. A backend may enforce the form during generation, by ``Format.grammar``. Any other backend
describes the form in the prompt and checks the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.structured import in_form, never_fits, schema_fault, shorten_complaint
from rallebench.core.thinking import answer_begins, extract_answer
from rallebench.core.types import Json

SCHEMA, CHOICE, REGEX, GRAMMAR = "schema", "choice", "regex", "grammar"

WISHES = {
    SCHEMA: "Answer with JSON that fits this JSON schema, and with nothing else:\n",
    CHOICE: "Answer with one of these lines, and with nothing else:\n",
    REGEX: "Answer with a text that this regular expression matches, and with nothing else:\n",
    GRAMMAR: "Answer with a text of this grammar, and with nothing else:\n",
}
"""The introduction to the form in a prompt."""

NAMES = {
    SCHEMA: "JSON schema",
    CHOICE: "list of choices",
    REGEX: "regular expression",
    GRAMMAR: "grammar",
}

JSON_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as Python writes it. With free white space a model might write nothing else."""

_UNSATISFIABLE = "Unsatisfiable schema: "


@dataclass(frozen=True)
class Format:
    """One form. ``kind``: SCHEMA, CHOICE, REGEX or GRAMMAR; ``value``: the schema, the choices, the pattern or the
    grammar."""

    kind: str
    value: Json | tuple[str, ...] | str

    @property
    def schema(self) -> Json:
        """The JSON schema, {} for any other form."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def text(self) -> str:
        """The form as shown in a prompt."""
        if self.kind == SCHEMA:
            return json.dumps(self.value, ensure_ascii=False)
        return "\n".join(self.value) if self.kind == CHOICE else str(self.value)

    @property
    def wish(self) -> str:
        """The description of the form in a prompt."""
        return WISHES[self.kind] + self.text

    @property
    def grammar(self) -> str:
        """The form as a grammar for llguidance; '' if llguidance cannot enforce it. Raises MissingPackageError."""
        return _compile(self.kind, json.dumps(self.value))[0]

    def read(self, text: str) -> tuple[str, str]:
        """Extract the part of a reply in this form, else the whole reply; also return the text of ``Reply.note``. Thoughts
        stay.

        >>> Format(CHOICE, ("yes", "no")).read(" yes ")
        ('yes', '')
        >>> Format(CHOICE, ("yes", "no")).read("It depends.")
        ('It depends.', 'The answer is none of the choices.')
        """
        thoughts, answer = text[: answer_begins(text)], extract_answer(text)
        if self.kind == SCHEMA:
            answer, fault = in_form(answer, self.schema)
            return thoughts + answer, fault
        for part in (answer, answer.strip()):
            if not (fault := self.fault(part)):
                return thoughts + part, ""
        return text, fault

    def fault(self, text: str) -> str:
        """Return '' if a whole text has this form, else one sentence about the fault."""
        if self.kind == SCHEMA:
            value, note = in_form(text, self.schema)
            whole = value == text
            return note if whole else "The answer is not JSON from its beginning to its end."
        if self.kind == CHOICE:
            return "" if text in self.value else "The answer is none of the choices."
        return "" if self._matches(text) else f"The answer does not fit the {NAMES[self.kind]}."

    def _matches(self, text: str) -> bool:
        from llguidance import LLMatcher

        reader = _bytes()
        matcher = LLMatcher(reader, self.grammar, log_level=0)
        tokens = reader.tokenize_bytes(text.encode("utf-8", "replace"))
        taken: int = matcher.try_consume_tokens(tokens)
        return taken == len(tokens) and bool(matcher.is_accepting())


def read_format(where: str, response_format: JsonValue) -> Format | None:
    """Parse ``response_format``; None for plain text. ``where``: its owner, for errors.

    ``{"type": "json_object"}`` is any object. Raises UsageError for an unknown form, and for a form that no text can have.

    >>> read_format("'m'", {"type": "choice", "choices": ["yes", "no"]})
    Format(kind='choice', value=('yes', 'no'))
    """
    if response_format is None:
        return None
    wish = response_format if isinstance(response_format, Mapping) else {}
    kind = wish.get("type")
    if kind == "text":
        return None
    form = _read_schema(wish) or _read_other(wish)
    if form is None:
        raise UsageError(
            f'{where}: response_format must be {{"type": "json_schema", "json_schema": {{"name": …, "schema": '
            '…}}, {"type": "json_object"}, {"type": "text"}, {"type": "choice", "choices": [texts]}, {"type": '
            '"regex", "regex": …} or {"type": "grammar", "grammar": …}.'
        )
    if form.kind == SCHEMA and (fault := schema_fault(form.schema)):
        raise UsageError(
            f"{where}: the schema of response_format is not a JSON schema ({fault}); mend the schema."
        )
    try:
        fault = _compile(form.kind, json.dumps(form.value))[1]
    except MissingPackageError:
        if form.kind != SCHEMA:
            raise
        fault = ""  # a schema is then described in the prompt, and checked
    if fault:
        raise UsageError(f"{where}: the {NAMES[form.kind]} of response_format {fault}.")
    return form


def _read_schema(wish: JsonObject) -> Format | None:
    kind, inside = wish.get("type"), wish.get("json_schema")
    if kind == "json_object":
        return Format(SCHEMA, {"type": "object"})
    if kind != "json_schema" or not isinstance(inside, Mapping):
        return None
    schema = inside.get("schema")
    return Format(SCHEMA, schema) if isinstance(schema, Mapping) else None


def _read_other(wish: JsonObject) -> Format | None:
    kind = wish.get("type")
    if kind == CHOICE:
        listed = wish.get("choices")
        texts = listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ()
        choices = tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())
        return Format(CHOICE, choices) if choices and len(choices) == len(texts) else None
    value = wish.get(kind) if kind in (REGEX, GRAMMAR) else None
    return Format(str(kind), value) if isinstance(value, str) and value else None


# ── the grammar of a form ────────────────────────────────────────────────────


def schema_rule(schema: Json) -> str:
    """JSON of a schema as a part of a grammar. Its texts hold no control characters, because each escape has six
    letters."""
    style = {**JSON_STYLE, "lenient": True, "json_allowed_escapes": '"\\nt'}
    return "%json " + json.dumps({**schema, "x-guidance": style})


def quote_literal(text: str) -> str:
    r"""A text as a part of a grammar.

    >>> quote_literal('Say "yes"')
    '"Say \\"yes\\""'
    """
    return json.dumps(text, ensure_ascii=False)


@lru_cache(maxsize=256)
def _compile(kind: str, content: str) -> tuple[str, str]:
    """(the grammar, '') of a form; ('', '') for a schema that cannot be enforced; ('', the fault) if no text can fit."""
    value = json.loads(content)
    if kind == SCHEMA and (reason := never_fits(value)):
        return "", f"fits no text ({reason}); mend the schema"
    try:
        from llguidance import LLMatcher
    except ImportError:
        raise MissingPackageError("llguidance", "and this response_format needs it") from None
    if kind == SCHEMA:
        for lenient in (False, True):  # a keyword that cannot be enforced is checked afterwards
            own = {**JSON_STYLE, "lenient": lenient}
            grammar = str(LLMatcher.grammar_from_json_schema(content, overrides=own))
            fault = str(LLMatcher.validate_grammar(grammar))
            if _UNSATISFIABLE in fault:
                reason = shorten_complaint(fault.partition(_UNSATISFIABLE)[2])
                return "", f"fits no text ({reason}); mend the schema"
            if not fault or fault.startswith("WARNING"):
                return grammar, ""
        return "", ""
    if kind == CHOICE:
        value = "start: " + " | ".join(map(quote_literal, value))
    make = LLMatcher.grammar_from_regex if kind == REGEX else LLMatcher.grammar_from_lark
    try:
        grammar = str(make(value))
        fault = str(LLMatcher.validate_grammar(grammar))
    except UnicodeError:
        return "", "holds half of a surrogate pair; mend it"
    if fault and not fault.startswith("WARNING"):
        return "", f"cannot be read ({shorten_complaint(_words(fault))}); mend it"
    if LLMatcher(_bytes(), grammar, log_level=0).is_error():
        return "", "is too large; write a smaller one"
    return grammar, ""


def _words(fault: str) -> str:
    """The complaint of llguidance, without the lines that point at the place."""
    reason = re.search(r"^error: (.+)", fault, re.MULTILINE)
    return reason[1] if reason else fault.splitlines()[0]


@lru_cache(maxsize=1)
def _bytes() -> Any:
    """A tokenizer with a token for every byte, which can read any text."""
    from llguidance import LLTokenizer

    return LLTokenizer("byte")
