"""The form of a reply: permitted values of response_format, faults of a text, and forms that no text can have."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.core.formats import (
    CHOICE,
    GRAMMAR,
    REGEX,
    SCHEMA,
    Format,
    quote_literal,
    read_format,
    schema_rule,
)
from rallebench.core.structured import AROUND

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
CALL = f'start: "Action: " {quote_literal("Say it")} " " {schema_rule(PERSON)}'


def of_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, Format(SCHEMA, {"type": "object"})),
        (of_schema(PERSON), Format(SCHEMA, PERSON)),
        ({"type": "choice", "choices": ["yes", " no "]}, Format(CHOICE, ("yes", "no"))),
        ({"type": "regex", "regex": "[0-9]+"}, Format(REGEX, "[0-9]+")),
        ({"type": "grammar", "grammar": CALL}, Format(GRAMMAR, CALL)),
    ],
)
def test_a_response_format_names_a_form(given: object, form: object) -> None:
    assert read_format("'m'", given) == form


@pytest.mark.parametrize(
    "given",
    [
        "json",
        {},
        {"type": "xml"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": PERSON},
        {"type": "choice", "choices": []},
        {"type": "choice", "choices": "yes"},
        {"type": "choice", "choices": ["yes", " "]},
        {"type": "regex", "regex": ""},
        {"type": "grammar", "regex": "a"},
    ],
)
def test_another_response_format_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="response_format must be"):
        read_format("'m'", given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (of_schema({"type": "texts"}), r"is not a JSON schema \(at \$\.type"),
        (of_schema({"type": "integer", "minimum": 2, "maximum": 1}), r"fits no text \(minimum"),
        (of_schema({"required": ["a"], "properties": {"a": False}, "type": "object"}), "no text"),
        ({"type": "regex", "regex": "(a"}, r"expression .* cannot be read \(unclosed group\)"),
        ({"type": "regex", "regex": "(?=a)b"}, "look-around"),
        ({"type": "regex", "regex": "\ud800"}, "surrogate"),
        ({"type": "grammar", "grammar": "start: word"}, 'unknown name: "word"'),
    ],
)
def test_a_form_that_nothing_fits_is_refused_in_one_sentence(given: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read_format("'m'", given)
    assert str(refused.value).startswith("'m': ") and "\n" not in str(refused.value)


@pytest.mark.parametrize("schema", [{"not": {"type": "string"}}, {"uniqueItems": True}])
def test_a_keyword_that_cannot_be_enforced_leaves_the_others_to_be(schema: dict[str, Any]) -> None:
    assert Format(SCHEMA, {"type": "array", **schema}).grammar


def test_a_schema_that_cannot_be_enforced_at_all_is_still_a_form() -> None:
    form = read_format("'m'", of_schema({"type": "string", "pattern": "(?=a)b"}))
    assert form is not None and form.grammar == ""


@pytest.mark.parametrize(
    ("form", "text", "part", "note"),
    [
        (Format(SCHEMA, PERSON), 'See: {"name": "Ada"}', '{"name": "Ada"}', AROUND),
        (Format(CHOICE, ("yes", "no")), " no\n", "no", ""),
        (Format(CHOICE, ("yes", "no")), "nope", "nope", "The answer is none of the choices."),
        (Format(REGEX, "[0-9]+ é"), " 12 é ", "12 é", ""),
        (Format(REGEX, " [0-9]+"), " 12", " 12", ""),
        (Format(REGEX, "(a?){30}a{30}"), "a" * 29, "a" * 29, "regular expression."),
        (Format(REGEX, "é"), "\ud800", "\ud800", "regular expression."),
        (Format(GRAMMAR, CALL), 'Action: Say it {"name": "é"}', None, ""),
        (Format(GRAMMAR, CALL), 'Action: Say it {"name": 3}', None, "does not fit the grammar."),
        (Format(GRAMMAR, CALL), 'Action: Say it {"name": "A', None, "does not fit the grammar."),
    ],
)
def test_a_reply_is_read_by_its_form(form: Format, text: str, part: str | None, note: str) -> None:
    read, said = form.read(text)
    assert read == (text if part is None else part)
    assert said.endswith(note) and bool(said) == bool(note)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": "Ada"}', ""),
        ('See: {"name": "Ada"}', "not JSON from its beginning"),
        ('{"name": 3}', "at $.name"),
    ],
)
def test_a_whole_text_has_a_form_or_not(text: str, words: str) -> None:
    fault = Format(SCHEMA, PERSON).fault(text)
    assert words in fault and bool(words) == bool(fault)


def test_a_prompt_can_say_every_form() -> None:
    forms = [Format(SCHEMA, PERSON), Format(CHOICE, ("yes", "no")), Format(REGEX, "[0-9]+")]
    assert [form.wish.splitlines()[-1] for form in forms] == [forms[0].text, "no", "[0-9]+"]


def test_without_the_library_only_a_grammar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    odd = {"type": "string", "maxLength": 7919}  # not compiled before
    assert read_format("'m'", of_schema(odd)) == Format(SCHEMA, odd)
    with pytest.raises(MissingPackageError, match="pip install llguidance"):
        read_format("'m'", {"type": "regex", "regex": "[0-7]{79}"})
