"""Layout of a free prompt: the roles of its lines (instruction, question, passages, conversation).

The roles follow from labels ('Context:', 'Question:', '[1]', 'Answer:'), from the wording (an imperative that mentions
documents or answers, a question mark) and from the order. Every passage is a verbatim piece of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rallebench.core.types import Passage

Role = Literal["evidence", "question", "instruction", "dialogue", "titles", "description", "cue"]

_EVIDENCE_LABEL = re.compile(
    r"(?:the |retrieved |relevant |given |following |reference |background |supporting )*(?:documents?|passages?|contexts?|"
    r"evidence|sources?|articles?|paragraphs?|references?|information|background|search results?|excerpts?|extracts?|"
    r"knowledge|notes?|text)(?: ?\[?\(?\d{1,3}\]?\)?)?(?: \([^()\n]{0,80}\))?",
    re.IGNORECASE,
)
_QUESTION_LABEL = re.compile(
    r"(?:the |user |user's |input |original |rewritten |my |test )*(?:questions?|quer(?:y|ies)|q|claim|statement|mention|user|human|task input)",
    re.IGNORECASE,
)
_DIALOGUE_LABEL = re.compile(
    r"(?:the |this |previous )*(?:conversation|dialogue|dialog|chat history|history)[^:\n]{0,60}",
    re.IGNORECASE,
)
_TITLES_LABEL = re.compile(
    r"(?:the |candidate |possible |wikipedia |retrieved )*(?:titles|candidates|options|pages)",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"(?:[\w-]+ ){0,4}(?:answers?|a|response|output|reply|title|description|verdict|label|assistant|ai|result|solution|explanation)"
    r"(?: in [^:\n]{1,40}| \([^)\n]{1,60}\))?",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"^\s*(?:#{1,6}\s*|\*\*|<\|?)?([^:：\n>]{1,200}?)\s*(?:\*\*)?\s*(?:[:：]|\|?>)\s*(?:\*\*)?\s*(.*)$",
    re.DOTALL,
)
_INLINE_LABEL = re.compile(
    r"(?<=[.!?;\"')\]])[ \t]+(?=(?:Question|Answer|Context|Documents?|Passages?|Claim|Query)\s?:(?:\s|$))"
)
_IMPERATIVE = re.compile(
    r"^(?:please\b|kindly\b|refer|answer|explain|detect|pick|use\b|using\b|read\b|given\b|based on|according to the (?:following|given|above|document|passage|context|information)|"
    r"you (?:are|will|have|must|should)\b|your (?:task|job|answer|goal)|respond|reply|tell\b|decide|choose|select|describe|write|give\b|just\b|"
    r"below\b|the following|here (?:is|are)\b|if\b|do not|don't|only\b|keep\b|from the|in the (?:following|above)|consider|determine|judge|"
    r"rate\b|score\b|grade\b|evaluate|assess|compare|translate|continue|convert|turn the|classify|generate|create|find\b|extract|identify|provide|return|output|say\b|name the|imagine|with the (?:help|following)|the conversation|which wikipedia|make\b|let's|i want you|rewrite|summari)",
    re.IGNORECASE,
)
_TASK_WORDS = re.compile(
    r"\b(?:questions?|documents?|passages?|following|contexts?|answer(?:s|ing)?|below|above|words? or less|wikipedia title|evidence|"
    r"informative|conversation|supports|refutes|mention|paragraphs?|explain|claim|sentences?|information provided|as if i|titles?)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\banswer [\"“]|\b(?:in|with) \w+ words? or (?:less|fewer)\b|\bin one (?:word|sentence)\b|\bsupports\b\W+or\W+refutes\b|\bas if i were\b|"
    r"\b(?:following|given|above) (?:documents?|passages?|contexts?|text|information|questions?|claim|conversation)\b|"
    r"\b(?:documents?|passages?|contexts?|information|questions?|claim|notes)\b[^.?]{0,20}\b(?:below|above|provided)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"^\s*(?:\[(\d{1,3})\]|\((\d{1,3})\)|(\d{1,3})[.)](?=\s)|[-*•](?=\s)|(?:passage|document|doc|source|context|paragraph|text|evidence|article|result)s?\s*\[?#?(\d{1,3})\]?\s*(?=[:.)(-]))"
    r"\s*[:.)-]?\s*",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"^\s*\(?(title|text|content|body|passage|abstract|wikipedia title)\s*:\s*", re.IGNORECASE
)
_JOINT = re.compile(r"(?<=[.!?\"')\]…]); (?=\S)")
_MOSTLY_MARKS = re.compile(r"^[\W_\d]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """Adjacent lines with one role."""

    role: Role
    text: str


def parts(prompt: str) -> list[Part]:
    """Split the prompt into parts, in order; text that is neither question nor instruction is evidence.

    >>> [p.role for p in parts("Context: Rome lies on the Tiber.\\nQuestion: Where is Rome?\\nAnswer:")]
    ['evidence', 'question', 'cue']
    """
    pieces: list[Part] = []
    section: Role | None = None  # role of unlabelled lines
    blank = True
    for line in _INLINE_LABEL.sub("\n", prompt).replace("\r", "\n").split("\n"):
        text = line.strip()
        if not text:
            # A label applies to the lines below it; evidence continues after blank lines, a question does not.
            section = section if section in ("evidence", "dialogue") else None
            blank = True
            if pieces and pieces[-1].role == "evidence":
                pieces[-1] = Part("evidence", pieces[-1].text + "\n")
            continue
        role, body = _label(text)
        if role is not None:
            section = role if not body or role == "evidence" else None
            if role == "evidence" and _NUMBERED.match(text):
                body = text  # "Passage 3: …" is split later
            if role == "question" and body:
                section = "question"
        else:
            role, body = _line_role(text, section, blank), text
            if role in ("instruction", "question") and section == "evidence":
                section = None
            if role == "instruction" and section != "question":
                section = None
        blank = False
        if pieces and pieces[-1].role == role:
            pieces[-1] = Part(role, f"{pieces[-1].text}\n{body}" if body else pieces[-1].text)
        else:
            pieces.append(Part(role, body))
    pieces = [Part(p.role, p.text.strip("\n")) for p in pieces]
    if pieces and pieces[-1].role == "question" and not pieces[-1].text:
        pieces[-1] = Part("cue", "question")  # "Rewritten question:" at the end is to be completed
    return pieces


def _label(text: str) -> tuple[Role | None, str]:
    """Return the role and the rest of a line that begins with a known label."""
    match = _LABELLED.match(text[:4000])
    if match is None:
        return None, text
    label, body = match.group(1).strip("*#< "), text[match.start(2) :].strip()
    if body and _FIELD.match(text):
        return None, text  # a field of a passage
    if _TITLES_LABEL.fullmatch(label) and ("/" in body or ";" in body or not body):
        return "titles", body
    if label.lower() == "description" and body:
        return "description", body
    if _CUE.fullmatch(label):
        return "cue", text if body else label
    if _DIALOGUE_LABEL.fullmatch(label):
        return "dialogue", body
    if _QUESTION_LABEL.fullmatch(label):
        return "question", body
    if _EVIDENCE_LABEL.fullmatch(label) and len(label) <= 60:
        return "evidence", body
    if not body and is_instruction(label):
        talk = re.search(r"conversation|dialogue", label, re.I) and not re.search(
            r"document|passage|context", label, re.I
        )
        return ("dialogue", "") if talk else ("instruction", text)
    if not body and len(label.split()) <= 8 and not _TASK_WORDS.search(label):
        return "cue", label  # "The place of birth:"
    return None, text


def _line_role(text: str, section: Role | None, blank: bool) -> Role:
    if section in ("question", "dialogue", "titles") and not blank:
        return section
    if section == "dialogue":
        return "cue" if _CUE.fullmatch(text.rstrip(": ")) else "dialogue"
    if is_instruction(text):
        return "instruction"
    if (
        text.endswith("?")
        and len(text.split()) <= 60
        and not _NUMBERED.match(text)
        and not _has_statement(text)
    ):
        return "question"
    if "[START_ENT]" in text or "[SEP]" in text:
        return "instruction" if '"' in text else "question"
    return "evidence"


def is_instruction(text: str) -> bool:
    """Return whether a line addresses the model rather than describing the world."""
    head = text[:600]
    if len(text) >= 1500:
        return False
    if _ORDER.search(head):
        return True
    return bool(_IMPERATIVE.match(head.lstrip("\"'*#- ")) and _TASK_WORDS.search(head))


def _has_statement(text: str) -> bool:
    """Return whether a statement of at least eight words precedes the question."""
    before = re.split(r"(?<=[.!?])\s+", text)[:-1]
    return any(len(s.split()) >= 8 and not s.endswith("?") for s in before)


def split_passages(text: str) -> list[Passage]:
    """Split an evidence part into passages, in order: numbered, one per block, one per line, or joined
    by '; ' after the end of a sentence (as RaLLe joins them). A visible title is split off.

    >>> [(p.title, p.text) for p in split_passages("Rome, Rome is a city.; Oslo, Oslo is a city.")]
    [('Rome', 'Rome is a city.'), ('Oslo', 'Oslo is a city.')]
    """
    text = text.strip()
    if not text:
        return []
    lines = text.split("\n")
    if sum(bool(_NUMBERED.match(line)) for line in lines) >= min(
        2, len([x for x in lines if x.strip()])
    ):
        pieces = _group_lines(lines)
    else:
        blocks = [b for b in re.split(r"\n\s*\n", text) if b.strip()]
        pieces = (
            blocks
            if len(blocks) > 1 or _is_one_titled_block(lines)
            else [x for x in lines if x.strip()]
        )
        pieces = [part for piece in pieces for part in _JOINT.split(piece)]
    passages = [_passage(i, piece) for i, piece in enumerate(pieces, 1)]
    return [p for p in passages if not _MOSTLY_MARKS.match(p.text)]


def _group_lines(lines: Sequence[str]) -> list[str]:
    """Group lines into pieces that begin with a number or bullet; other lines continue the previous piece."""
    pieces: list[str] = []
    new = True
    for line in lines:
        match = _NUMBERED.match(line)
        if match:
            pieces.append(line[match.end() :])
        elif line.strip() and (new or not pieces):
            pieces.append(line)
        elif line.strip():
            pieces[-1] += "\n" + line
        new = not line.strip()
    return [part for piece in pieces for part in _JOINT.split(piece)]


def _is_one_titled_block(lines: Sequence[str]) -> bool:
    return len(lines) == 2 and (bool(_FIELD.match(lines[0])) or _is_heading(lines[0]))


def _is_heading(line: str) -> bool:
    return 0 < len(line.split()) <= 10 and line.strip()[-1] not in ".!?;,"


def _passage(number: int, piece: str) -> Passage:
    title, text = "", piece.strip()
    lines = text.split("\n")
    field = _FIELD.match(lines[0])
    if field and "title" in field.group(1).lower():
        title = lines[0][field.end() :].strip(" )")
        text = "\n".join(lines[1:]).strip()
        if not text and re.search(r"\.\s", title):
            title, text = title.split(".", 1)
    elif len(lines) > 1 and _is_heading(lines[0]) and len(lines[1].split()) >= 8:
        title, text = lines[0].strip(" #*:"), "\n".join(lines[1:]).strip()
    text = _FIELD.sub("", text, count=1).strip() if _FIELD.match(text) else text.strip()
    if not title:
        title, text = _comma_title(text)
    return Passage(str(number), text, title)


def _comma_title(text: str) -> tuple[str, str]:
    """Split 'Paris, Texas, Paris is a city in Texas' into title and text: the text repeats the title's words."""
    best = ("", text)
    for match in list(re.finditer(r", (?=[A-Z0-9\"'“(])", text[:160]))[:4]:
        title, tail = text[: match.start()], text[match.end() :]
        telling = [
            w for w in re.findall(r"\w+", re.sub(r"\(.*?\)", "", title).lower()) if len(w) > 2
        ]
        following = set(re.findall(r"\w+", tail[:400].lower()))
        if telling and all(w in following for w in telling) and not title[:1].islower():
            best = (title, tail)
    return best
