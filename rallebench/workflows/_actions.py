"""Parsing of an agent's action in the ways that models write it: Markdown, labels, other brackets, JSON, tags, two lines."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.structured import FENCE, decode_json
from rallebench.workflows._conversation import without_imitation

_NUMBER = r"\s*(?:#?\d+|\(\d+\))?\s*[*_]*\s*"
_WORDS = r"(?:(?:Next|Final)\s+)?(?:Thought|Action|Act|Step|Tool|Next|思考|想法|行动|行動|动作|動作|操作)"
_LABEL = re.compile(rf"^(?:{_WORDS}{_NUMBER}(?:[:：.]|[-–—]+(?=\s))\s*)+", re.IGNORECASE)
_ACTION_LABEL = rf"(?:{{}}(?!\s*Input)|行动|行動|动作|動作){_NUMBER}[:：](?:[*_]{{{{1,3}}}}(?=\s))?"
_LINE_LABEL = re.compile(rf"^[^\w\n]*{_ACTION_LABEL.format('(?i:Action)')}", re.MULTILINE)
_INNER_LABEL = re.compile(rf"(?<!\w){_ACTION_LABEL.format('Action')}")
_LATER_LABEL = re.compile(rf"(?:\n\W*|[.!?。！？]\s+\W*){_ACTION_LABEL.format('Action')}")
_INPUT_LABEL = r"(?:(?:Action|Tool)\s*)?(?:Inputs?|Arguments?|Args|Parameters?|输入|輸入|参数)\s*\d*\s*[:：]\s*"
_INPUT = re.compile(
    rf"^(?P<verb>(?!action\b)\w+)\s*(?:\[\s*\]|\(\s*\))?\s*[,;.]?\s*{_INPUT_LABEL}(?P<input>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FENCE_LINE = re.compile(r"^\s*(?:```|~~~)\w*\s*$", re.MULTILINE)
_BULLETS = re.compile(r"^\s*(?:(?:[^\w\s\"'<{(\[\\*_`$]+|\*(?=\s)|\d+[.)]|\(\d+\)|[a-z]\))\s+)+")
_EMPHASIS = re.compile(r"(?<![^\W_])(\*{1,3}|_{1,3}|`+)(?=\S)(.+?)(?<=\S)\1(?![^\W_])")
_SIGNS = re.compile(r"[*_`]")
_BARE = re.compile(r"[^\W\d_]+[\[(][^*_`]*")
"""An action without label and Markdown, the most frequent form."""
_TAGGED = re.compile(r"^<(\w+)>\s*(.*?)\s*(?:</\1>|$)", re.DOTALL)
_WIDE = {"[": "［【〔", "]": "］】〕", "(": "（", ")": "）"}
"""Full-width characters that stand for a bracket."""
_PAIRS = dict(zip("[({<［【〔（「《『“\"'", "])}>］】〕）」》』”\"'"))
_NAMES = ("action", "name", "tool", "tool_name", "function", "verb")
_ARGUMENTS = ("action_input", "arguments", "parameters", "input", "args", "tool_input", "argument")
_NAMED = re.compile(r"\w+\s*=\s*[\"'](.*)[\"']", re.DOTALL)
_INVISIBLE = re.compile("[\u200b\u2060\ufeff]")


def strip_decoration(text: str) -> str:
    """Remove Markdown around a text: fences, emphasis, back-ticks, dashes, list numbers.

    >>> strip_decoration("- **Action 1:** `Search[Ada]`"), strip_decoration("**Search**[*Ada*]")
    ('Action 1: Search[Ada]', 'Search[Ada]')
    """
    if "```" in text or "~~~" in text:
        text = _FENCE_LINE.sub("", text).strip()
    if not text[:1].isalpha() or text[1:2] == ")":
        text = _BULLETS.sub("", text)
    return without_emphasis(text)


def without_emphasis(text: str) -> str:
    """Remove emphasis and back-ticks around a text or parts of it."""
    if not _SIGNS.search(text):
        return text.strip()
    return _EMPHASIS.sub(r"\2", text).strip().strip("*`").strip()


def parse_action(
    text: str, brackets: str, *, verbs: Sequence[str] = (), original: bool = False
) -> tuple[str, str]:
    """Return verb and argument of an action; any other text is a verb without an argument.

    ``original``: only R-Eval's two patterns. Ours also reads Markdown, full-width brackets and colons, and an
    ``Action Input:``, and drops a label before the action, invented observations after it, and text after the closing bracket.
    ``verbs``: these are also recognised within a sentence, a JSON object or a tag, with other brackets, and before a colon.

    >>> parse_action("Search[Paris [Texas], US]", "[]")
    ('Search', 'Paris [Texas], US')
    >>> parse_action("Action 2: Search[Ada] and Finish[1815]", "[]")
    ('Search', 'Ada')
    >>> parse_action("Search[Ada] and Finish[1815]", "[]", original=True)
    ('Search', 'Ada] and Finish[1815')
    >>> parse_action("**Action：** `Search`\\nAction Input: \\"Ada\\"", "[]")
    ('Search', 'Ada')
    >>> parse_action('{"action": "Search", "action_input": "Ada"}', "[]", verbs=["Search"])
    ('Search', 'Ada')
    >>> parse_action("I know it.", "[]")
    ('I know it.', '')
    """
    left, right = tuple(brackets)
    if not original:
        text = without_imitation(text).strip()
        if not _BARE.fullmatch(text):
            text = _without_label(_INVISIBLE.sub("", text))
        for opening, closing in zip(left + _WIDE.get(left, ""), right + _WIDE.get(right, "")):
            if (balanced := _split_balanced(text, opening, closing)) is not None:
                verb = unicodedata.normalize("NFKC", balanced[0])
                named = _NAMED.fullmatch(balanced[1]) if brackets == "[]" else None
                return verb, without_emphasis(named[1] if named else balanced[1])
        if separate := _INPUT.match("\n".join(map(strip_decoration, text.splitlines()))):
            return separate["verb"], parse_input(separate["input"], brackets)
        if verbs and (other := _other_form(text, brackets, verbs)) is not None:
            return other
    pattern = rf"^(\w+){re.escape(left)}(.+){re.escape(right)}"
    match = re.match(pattern + "$", text) or re.match(pattern, text.strip(" ."))
    return (match[1], match[2]) if match else (text, "")


def split_action(text: str) -> tuple[str, str]:
    """Return the thought before the label of an action, and the text after it; '' without a label.

    >>> split_action("The next action: to look.\\n**Action 1:** Search[Ada]")
    ('The next action: to look.\\n', ' Search[Ada]')
    """
    label = _LINE_LABEL.search(text) or _INNER_LABEL.search(text)
    return (text[: label.start()], text[label.end() :]) if label else (text, "")


def parse_input(text: str, brackets: str) -> str:
    """Parse an argument after its label: a text, perhaps quoted, or a JSON value.

    >>> [parse_input(text, "[]") for text in ("`Ada`", '{"name": "Ada"}', "[Ada]", "Ada\\nSo …")]
    ['Ada', 'Ada', 'Ada', 'Ada']
    """
    text = re.sub(rf"^{_INPUT_LABEL}", "", strip_decoration(text), flags=re.IGNORECASE)
    value = decode_json(text)
    if value is not None:
        return _argument(value, brackets) or text
    line = strip_decoration(text.splitlines()[0]) if text else ""
    return _unwrap(line)


def bare_verb(text: str, verbs: Sequence[str]) -> str | None:
    """Return the verb if the action consists of it alone, without an argument; else None.

    >>> bare_verb("**Action:** `Search`", ["Search"]), bare_verb("Search[Ada]", ["Search"])
    ('Search', None)
    """
    return _find_verb(_without_label(text).rstrip(" :：.,"), verbs)


def is_decoration(text: str) -> bool:
    """Return whether a line contains only markup, such as the start of a fence, or a label.

    >>> is_decoration("```json"), is_decoration("**Action:**"), is_decoration(""), is_decoration("Search")
    (True, True, False, False)
    """
    return bool(text) and not re.search(r"\w", _without_label(text))


def format_action(verb: str, argument: str, brackets: str) -> str:
    """Return the action as shown on the page."""
    return f"{verb}{brackets[0]}{argument}{brackets[1]}"


def _without_label(text: str) -> str:
    text = strip_decoration(text)
    if later := _LATER_LABEL.search(text):
        text = strip_decoration(text[later.end() :])
    return strip_decoration(_LABEL.sub("", text))


def _split_balanced(text: str, left: str, right: str, start: int = 0) -> tuple[str, str] | None:
    """Return verb and argument up to the matching bracket; None without one."""
    opened = re.compile(rf"(\w+)\s*[:：]?\s*\\?{re.escape(left)}").match(text, start)
    depth = 1
    for at in range(opened.end(), len(text)) if opened else ():
        depth += -1 if text[at] == right else text[at] == left
        if depth == 0:
            argument = text[opened.end() : at].removesuffix("\\").strip() if opened else ""
            return (opened[1], argument) if opened and argument else None
    return None


def _other_form(text: str, brackets: str, verbs: Sequence[str]) -> tuple[str, str] | None:
    """Parse a known verb in JSON, as a tag, before a colon, with other brackets, or with its own within a sentence."""
    fenced = FENCE.fullmatch(text)
    if tagged := _TAGGED.match(text):
        if verb := _find_verb(tagged[1], verbs):
            return (verb, _unwrap(tagged[2])) if tagged[2] else None
        return parse_action(tagged[2], brackets, verbs=verbs) if tagged[2] else None
    if text.startswith(("{", "[{")) or fenced:
        return _from_json(decode_json(fenced[1] if fenced else text), brackets, verbs)
    names = "|".join(map(re.escape, verbs))
    for match in re.finditer(rf"(?<!\w)(?:{names})(?=\s?\\?[\[({{<［【〔（「《『“\"'])", text):
        opening = text[match.end() :].lstrip(" \\")[0]
        closing = _PAIRS[opening]
        within = bool(text[: match.start()].strip("\"'([{$ "))
        if within and opening not in "[(" + brackets + _WIDE[brackets[0]]:
            continue
        if (balanced := _split_balanced(text, opening, closing, match.start())) is not None:
            own = opening in brackets
            argument = balanced[1] if own or brackets == "()" else _unwrap(balanced[1])
            return match[0], argument
    opened = re.match(r"(\w+)\s*(?:[:：=→]|->|=>)\s*(\S[^\n]*)", text)
    if opened and (verb := _find_verb(opened[1], verbs)):
        return verb, _unwrap(strip_decoration(opened[2]))
    return None


def _from_json(value: Any, brackets: str, verbs: Sequence[str]) -> tuple[str, str] | None:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping):
        return None
    names = (value[key] for key in _NAMES if isinstance(value.get(key), str))
    verb = next(filter(None, (_find_verb(name, verbs) for name in names)), None)
    if verb is not None:
        argument = next((value[key] for key in _ARGUMENTS if key in value), None)
    elif len(value) == 1 and (verb := _find_verb(next(iter(value)), verbs)):
        argument = next(iter(value.values()))
    if verb is None or not (text := _argument(argument, brackets, verb == verbs[-1])):
        return None
    return verb, text


def _argument(value: Any, brackets: str, plain: bool = False) -> str:
    """Return a JSON value as the argument of a call; '' if it cannot be one. ``plain``: without argument names."""
    if isinstance(value, str) and isinstance(inner := decode_json(value), Mapping):
        value = inner
    if isinstance(value, Mapping) and brackets == "()" and not plain:
        return ", ".join(
            f"{name}={json.dumps(item, ensure_ascii=False)}" for name, item in value.items()
        )
    if isinstance(value, (Mapping, list)) and len(value) == 1:
        value = next(iter(value.values() if isinstance(value, Mapping) else value))
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value).strip()


def _unwrap(text: str) -> str:
    """Strip a name, quotes or brackets around a whole argument."""
    if named := _NAMED.fullmatch(text):
        return named[1].strip()
    if len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        return text[1:-1].strip()
    return text.strip()


def _find_verb(name: str, verbs: Sequence[str]) -> str | None:
    """Return the verb with that name, ignoring case."""
    plain = unicodedata.normalize("NFKC", name).strip().removeprefix("functions.").lower()
    return next((verb for verb in verbs if verb.lower() == plain), None)
