"""Conversion of any prompt into a task: the question, the format of the answer, and the visible passages.

Passages come as data if the caller knows them (``Evidence``), and count only if the prompt contains them verbatim;
otherwise they are found in the prompt's layout. Nothing outside the prompt is ever used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rallebench.core.types import Evidence, Generate, Message, Passage
from rallebench.reader import FOREIGN, REFUSAL, UNABLE, Task
from rallebench.reader.layout import Part, parts, split_passages

# Unsupported task → wording of its instructions.
_WRITING = {
    "summarise": r"(?i)\bsummari[sz]e\b|\b(?:write|give|make|provide)\b[^.\n]{0,30}\bsummary\b",
    "translate": r"(?i)\btranslate\b",
    "judge": r"(?i)\b(?:score|rate|grade|evaluate)\b[^\n]{0,120}\b(?:[01]|one|zero)\b\s*(?:to|-|–|and)\s*"
    r"(?:[1-9]\d*|five|ten)\b|\b(?:scores?|ratings?) (?:from|between) \d|\bas (?:a|an impartial) judge\b",
    "write texts": r"(?i)\bcontinue (?:my|the|this|writing)\b[^.\n]{0,40}\b(?:text|story|article|essay|news)?|"
    r"\bwrite (?:a|an|the|some)?\s*(?:\w+ ){0,3}"
    r"(?:poem|story|essay|article|program|code|letter|function|paragraph|report|email)\b",
    "act as an agent or write programs": r"\bThought \d+\b|\bAction \d+\b|\bFinish\[|```python|\bdef solution\b",
}
_REWRITING = re.compile(
    r"\b(?:rewrite|rephrase|paraphrase|reformulate|restate)\b|"
    r"\b(?:make|create|generate|write|formulate|form|turn|convert|put)\b[^.\n\"]{0,60}\b(?:as|into|to|a|one|clear|new|search)\s(?:\w+ )?(?:question|query)\b",
    re.I,
)
_QUESTION_CUE = re.compile(
    r"(?:rewritten |clear(?:er)? |new |rephrased |the )*(?:question|query)", re.I
)
_VERDICT = re.compile(
    r"\bsupports?\b\W+(?:or|and|,|/)\W+(?:\w+\W+)?refutes?\b|\brefutes?\b\W+(?:or|/)\W+supports?\b",
    re.I,
)
_TRUE_FALSE = re.compile(r"\btrue\b\W+(?:or|/)\W+\bfalse\b", re.I)
_YES_NO = re.compile(r"\byes\b\W+(?:or|/)\W+\bno\b", re.I)
_NOT_ENOUGH = re.compile(r"\bnot enough info(?:rmation)?\b", re.I)
_MAY_DECLINE = re.compile(
    r"\b(?:unanswerable|insufficient|unknown|unsure|not sure|not enough|no (?:answer|information)|(?:refuse|decline) to answer)\b"
    r"|\b(?:can ?not|can't|could not|couldn't|unable to) (?:be )?(?:answer|find|found|determine|tell)"
    r"|\b(?:do|does|did)(?: not|n't) (?:know|contain|hold|have)\b"
    r"|\b(?:does|did)(?: not|n't) (?:say|mention|provide|include|answer|give|state)\b"
    r"|\bnot (?:mentioned|stated|answered|found|given|present|available|provided|known)\b",
    re.I,
)
_RULE = re.compile(
    r"^(?:if|when|say|write|reply|respond|answer|otherwise)\b[^\n]{0,200}$", re.I | re.M
)
_TITLE = re.compile(
    r"\b(?:answer|give|output|return|choose|pick|select|spit out|write|say|find|name|propose|which|best|relevant|only)\b[^.\n?]{0,60}\btitles?\b",
    re.I,
)
_LONG = re.compile(
    r"\bexplain\b|\bas if i (?:were|was|am)\b|\bin detail\b|\bparagraphs?\b[^.\n]{0,20}\blong\b|\bseveral sentences\b|\bdescribe\b|"
    r"\binformative\b|\blong(?:er)? answer\b|\bfull sentences?\b|\bcomplete sentences?\b|\bconversation\b|\belaborate\b",
    re.I,
)
_REPLY = re.compile(
    r"\binformative\b|\bconversation\b|\bone (?:short )?sentence\b|\bdescribe\b", re.I
)
_WORD_LIMIT = re.compile(
    r"\b(?:in|with|within|at most|no more than|using|maximum(?: of)?) (\d{1,2}|one|two|three|five|ten) words?\b(?: or (?:less|fewer))?",
    re.I,
)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "five": 5, "ten": 10}
_DETECT = re.compile(
    r"\b(?:detect|spit out|pick up|find|extract|identify|give) (?:and (?:just )?\w+ (?:out )?)?(the .{2,200}? of .{1,300}?)(?: in \d+ words\b| from the\b| in the following|[.\n]|$)",
    re.I,
)
_SEP = re.compile(r"^\s*(.{1,300}?)\s*\[SEP\]\s*(.{1,120}?)\s*$", re.S)
_OPENING = '"“«„'
_CLOSING = '"”»“'
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
EXPLAIN_SENTENCES = 3


def read_prompt(request: Generate) -> Task:
    """Return the task of a request. Never raises: a prompt without question or passages is declined."""
    text = _turn(request.messages)
    if not text.strip():
        return Task("say", REFUSAL)
    passages, frame = _visible(text, request.evidence)
    if not passages:
        open_fetched = parts(text)
        passages = [
            p for part in open_fetched if part.role == "evidence" for p in split_passages(part.text)
        ]
        frame_parts = [part for part in open_fetched if part.role != "evidence"]
        passages, frame_parts = _settle_dialogue(passages, frame_parts, open_fetched)
    else:
        frame_parts = [p for p in parts(frame) if not _is_rest(p)]
    stated = request.evidence.question.strip() if request.evidence else ""
    if stated in text:
        passages = _without(stated, passages)
    question, context = _question(frame_parts, stated if stated in text else "", bool(passages))
    if not passages:
        passages, question = _statements_and_question(question)
    elif not question:
        statements, question = _statements_and_question(passages[-1].text)
        passages = [*passages[:-1], *statements] if statements else passages
    task = _task(frame_parts, question, context, tuple(passages), bool(request.tools))
    return replace(
        task, may_decline=task.kind == "short" and _may_decline(request.messages, frame_parts, task)
    )


def _may_decline(messages: Sequence[Message], frame: Sequence[Part], task: Task) -> bool:
    """Return whether the prompt, outside its question and passages, mentions having no answer."""
    spoken = [p.text for p in frame if p.role in ("instruction", "cue", "description")]
    spoken += [m.content for m in messages if m.role == "system"]
    speech = "\n".join(spoken)
    for text in (task.question, *(p.text for p in task.passages)):
        speech = speech.replace(text, " ") if text else speech
    # a rule in a separate block may have been taken for a passage
    rules = [r.group() for p in task.passages for r in _RULE.finditer(p.text)]
    return any(_MAY_DECLINE.search(text) for text in (speech, *rules))


def _turn(messages: Sequence[Message]) -> str:
    """Return the text to answer: the last run of user messages, and a system message that holds documents."""
    last: list[str] = []
    for message in reversed(messages):
        if message.role not in ("user", "tool"):
            break
        last.append(message.content)
    if not last and messages:
        last = [messages[-1].content] if messages[-1].role != "assistant" else []
    body = "\n\n".join(reversed(last))
    system = "\n\n".join(
        m.content for m in messages if m.role == "system" and m.content not in last
    )
    if system and any(
        p.role == "evidence" and split_passages(p.text) for p in _labelled_evidence(system)
    ):
        return f"{system}\n\n{body}"
    return body


def _labelled_evidence(system: str) -> list[Part]:
    """Return the evidence parts of a system message that a label introduces: 'Context: …'."""
    at = re.search(
        r"(?:^|\n)[^\n:]{0,60}\b(?:documents?|contexts?|passages?|information|extracts?|evidence)\b[^\n:]{0,60}:\s",
        system,
        re.I,
    )
    return parts(system[at.start() :].strip()) if at else []


def _visible(text: str, evidence: Evidence | None) -> tuple[list[Passage], str]:
    """Return the evidence passages contained in the text, and the text without them."""
    if evidence is None:
        return [], text
    placed: list[tuple[int, Passage]] = []
    frame = text
    # longest first, so that a passage inside another one is not cut out of it
    for passage in sorted(evidence.passages, key=lambda p: -len(p.text)):
        body = passage.text.strip()
        place = text.find(body)
        if not body or place < 0:
            continue
        has_title = bool(passage.title) and re.search(
            rf"{re.escape(passage.title)}[^\w]{{0,6}}$|{re.escape(passage.title)}[^\w]*(?:text|content)?[^\w]*$",
            text[max(0, place - len(passage.title) - 20) : place],
            re.I,
        )
        titled = (
            passage if has_title else Passage(passage.doc_id, passage.text, "", passage.page_id)
        )
        placed.append((place, Passage(titled.doc_id, body, titled.title, titled.page_id)))
        if has_title:
            frame = re.sub(
                rf"{re.escape(passage.title)}[^\w\n]{{0,6}}{re.escape(body)}", "\n\n", frame
            )
        frame = frame.replace(body, "\n\n")
    return [p for _, p in sorted(placed, key=lambda pair: pair[0])], frame


def _is_rest(part: Part) -> bool:
    """Return whether a part consists only of separators, numbers and labels left after cutting out the passages."""
    return part.role == "evidence" and not re.search(r"\w{3,}.*\w{3,}", part.text)


def _settle_dialogue(
    passages: list[Passage], frame: list[Part], open_fetched: Sequence[Part]
) -> tuple[list[Passage], list[Part]]:
    """Take the last block as the conversation if the instruction mentions one and none is labelled."""
    spoken = any(
        p.role in ("instruction", "cue") and re.search(r"conversation|dialogue", p.text, re.I)
        for p in frame
    )
    if not spoken or any(p.role == "dialogue" and p.text for p in frame):
        return passages, frame
    blocks = [
        b
        for p in open_fetched
        if p.role == "evidence"
        for b in re.split(r"\n\s*\n", p.text)
        if b.strip()
    ]
    if not blocks:
        return passages, frame
    rest = [p for b in blocks[:-1] for p in split_passages(b)]
    questions = [p.text for p in frame if p.role == "question"]
    talk = "\n".join([blocks[-1].strip(), *questions])
    return rest, [p for p in frame if p.role != "question"] + [Part("dialogue", talk)]


def _question(frame: Sequence[Part], stated: str, has_passages: bool) -> tuple[str, str]:
    """Return the question or claim, and the conversation before it."""
    if stated:
        *before, last = [line for line in stated.split("\n") if line.strip()]
        return _plain(last), "\n".join(before)
    instructions = "\n".join(p.text for p in frame if p.role == "instruction")
    for part in frame:
        if part.role == "dialogue" and part.text.strip():
            turns = [line for line in part.text.split("\n") if line.strip()]
            return re.sub(
                r"^\s*(?:user|human|a|b|speaker \w+|you)\s*:\s*", "", turns[-1], flags=re.I
            ), "\n".join(turns[:-1])
    questions = [p.text for p in frame if p.role == "question" and p.text.strip()]
    detected = _DETECT.search(instructions)
    if detected:
        return f"What is {detected.group(1).strip()}?", ""
    quoted = _quotation(instructions)
    if quoted and not questions:
        return _plain(quoted), ""
    if questions:
        lines = questions[-1].strip().split("\n")
        return _plain(questions[-1].strip() if len(lines) < 3 else lines[-1]), ""
    loose = (
        [p.text for p in frame if p.role == "evidence" and p.text.strip()] if has_passages else []
    )
    if loose:
        return _plain(loose[-1].strip().split("\n")[-1]), ""
    # "Who wrote Hamlet, according to the documents below": the instruction is the question
    return _plain(instructions.strip().split("\n")[-1] if instructions.strip() else ""), ""


def _quotation(text: str) -> str:
    """Return the longest quoted text of a line, from the first quote to the last, because questions contain quotes, too."""
    best = ""
    for line in text.split("\n"):
        opens = [
            i for i, c in enumerate(line) if c in _OPENING and (i == 0 or not line[i - 1].isalnum())
        ]
        closes = [i for i, c in enumerate(line) if c in _CLOSING]
        # several short quotes in one line are labels to choose from ("SUPPORTS" or "REFUTES")
        if opens and closes and closes[-1] - opens[0] > len(best) + 1:
            inner = line[opens[0] + 1 : closes[-1]]
            short = re.sub(
                r'^\W*(?:supports|refutes|yes|no|true|false)"\W+(?:\w+\W+)?"(?:supports|refutes|yes|no|true|false)\W*(?:.*?["“])?',
                "",
                inner,
                flags=re.I,
            )
            best = short if len(short) > len(best) else best
    return best.strip()


def _plain(question: str) -> str:
    """Normalise a question: doubled question marks and slot statements."""
    question = re.sub(r"\?(?:\s*\?)+", "?", question.strip()).strip()
    slot = _SEP.match(question.rstrip("?. "))
    if slot:
        return f"What is the {slot.group(2)} of {slot.group(1)}?"
    return question


def _without(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """Remove the question from the passages if it shares a line with the last of them."""
    if not question or not passages or not passages[-1].text.endswith(question):
        return list(passages)
    last = passages[-1]
    rest = last.text[: -len(question)].strip()
    return [
        *passages[:-1],
        *([Passage(last.doc_id, rest, last.title, last.page_id)] if rest else []),
    ]


def _statements_and_question(question: str) -> tuple[list[Passage], str]:
    """Split 'Rome lies on the Tiber and is old. Where is Rome?' into passage and question."""
    pieces = re.split(r"(?<=[.!?])\s+", question.strip())
    statements = [s for s in pieces[:-1] if not s.endswith("?")]
    if (
        len(pieces) < 2
        or not pieces[-1].endswith("?")
        or not any(len(s.split()) >= 8 for s in statements)
    ):
        return [], question
    cut = question.rindex(pieces[-1])
    return split_passages(question[:cut]), pieces[-1]


def _task(
    frame: Sequence[Part], question: str, context: str, passages: tuple[Passage, ...], tools: bool
) -> Task:
    spoken = "\n".join(
        p.text
        for p in frame
        if p.role in ("instruction", "cue", "dialogue", "description", "titles")
    )
    # Words of the question do not count as orders ("Who translated …"), unless there is nothing else.
    orders = "\n".join(
        x if x.strip() == question or not question else x.replace(question, " ")
        for x in spoken.split("\n")
    )
    if _is_foreign(question) or (not question and _is_foreign(" ".join(p.text for p in passages))):
        return Task("say", FOREIGN)
    labels = _labels(orders)
    if labels:
        if question and passages:
            return Task("verdict", question, passages, labels=labels)
        return Task("say", labels[2] if len(labels) > 2 else REFUSAL)
    cue = next((p.text for p in reversed(frame) if p.role == "cue"), "")
    if _REWRITING.search(orders) or _QUESTION_CUE.fullmatch(cue):
        # passing the question on unchanged keeps chains working that rewrite it first
        return Task("say", _repeats_question(frame, question) or UNABLE.format(what="rewrite"))
    for what, pattern in _WRITING.items():
        if re.search(pattern, orders):
            return Task("say", UNABLE.format(what=what))
    titles = tuple(t for p in frame if p.role == "titles" for t in _titles(p.text))
    if titles or (_TITLE.search(orders) and not re.search(r"\btitle\b", question, re.I)):
        choices = titles or tuple(dict.fromkeys(p.title for p in passages if p.title))
        return (
            Task("title", _mention(question), passages, titles=choices, context=question)
            if choices
            else Task("say", REFUSAL)
        )
    if tools and not passages:
        return Task("say", UNABLE.format(what="call tools"))
    if not passages or not question:
        return Task("say", REFUSAL)
    if _LONG.search(orders):
        count = 1 if _REPLY.search(orders) else EXPLAIN_SENTENCES
        return Task("long", question, passages, context=context, sentences=count)
    limit = _WORD_LIMIT.search(orders)
    words = int(_NUMBERS.get(limit.group(1).lower(), 0) or limit.group(1)) if limit else 0
    return Task("short", question, passages, context=context, max_words=words)


def _labels(orders: str) -> tuple[str, ...]:
    third = ("NOT ENOUGH INFO",) if _NOT_ENOUGH.search(orders) else ()
    if _VERDICT.search(orders):
        return ("SUPPORTS", "REFUTES", *third)
    if _TRUE_FALSE.search(orders):
        return ("True", "False", *third)
    return ("Yes", "No", *third) if _YES_NO.search(orders) else ()


def _repeats_question(frame: Sequence[Part], question: str) -> str:
    for part in frame:
        statement = re.search(r"[^\n\"“”]{1,300}\[SEP\][^\n\"“”]{1,120}", part.text)
        if statement:
            return statement.group().strip()
    return question if question.endswith("?") else ""


def _titles(text: str) -> list[str]:
    """Split 'A / B', or 'A, 12; B, 13', RaLLe's list of titles with page ids."""
    if " / " in text:
        return [t.strip() for t in text.split(" / ") if t.strip()]
    return [re.sub(r",\s*[\w-]+$", "", t).strip() for t in re.split(r"; |\n", text) if t.strip()]


def _mention(question: str) -> str:
    marked = re.search(r"\[START_ENT\]\s*(.*?)\s*\[END_ENT\]", question)
    if marked:
        return marked.group(1)
    quoted = re.search(r"[\"“]([^\"”]{1,120})[\"”]", question)
    return quoted.group(1) if quoted else question


def _is_foreign(text: str) -> bool:
    """Return whether most letters are not Latin; MiniLM's vocabulary covers only English."""
    letters = _LETTER.findall(text[:2000])
    return len(letters) >= 2 and sum(bool(_LATIN.match(c)) for c in letters) < len(letters) / 2
