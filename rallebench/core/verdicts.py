"""Yes or no in a text of a language model: a labelled verdict, a plain yes or no, or a sentence that states or denies a
claim.

The text is split into clauses. A clause may be a *verdict* ("No"), or a *statement* about the claim ("it isn't
addressed"), with negations that count within the clause. Text in brackets or quotes, a consideration ("whether it is
addressed", "perhaps") and a concession ("although …") decide nothing. A text with both verdicts is unclear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_YES = r"yes|y|yeah|yep|yup|affirmative|true|correct|是的|是|对的|对|没错|正确|可以|能够"
_NO = (
    r"no|n|nope|nah|negative|false|incorrect|(?:absolutely |certainly |definitely |of course )?not(?: at all| really| quite| exactly)?(?=\W*$)|"
    r"(?:is|are|was|were|does|do|did|has|have|had)(?:n't| not)(?=\W*$)|不相关|不是|不对|不正确|不能|不可以|无法|未能|并没有|并非如此|没有|否|不"
)
_GOES_ON = r"(?:the|it|it's|this|that|they|there|there's|i|you|we|he|she|its|these|those|because|since|as|not|nothing|none|neither|any)\b"
"""The word after a verdict: "No the question isn't …". Before any other word "no" negates that word."""
_WORD = rf"(?P<yes>(?:{_YES}))(?![\w'-])|(?P<no>(?:{_NO}))(?![\w'-])(?!\s+(?!{_GOES_ON})\w)"
_PLAIN = re.compile(rf"(?:{_WORD})")

_LABEL = (
    r"(?:(?:答案|结论|判断|结果)(?:应该是|应为|是|为)\s*:?\s*|\b(?:answer|verdict|judge?ment|conclusion|decision|result|response|output|label|evaluation|assessment|reply|final)s?"
    r"(?:\s*(?:[:=]|[-–—>]+)\s*|\s+(?:is|was|would be|must be|should be)\s*:?\s*(?:(?:a|clearly|definitely|simply)\s+)?))"
)
_FIELD = r"\b(?P<key>(?!(?:yes|no)\b)\w+)\s*[:=]\s*"
_FIELD_ENDS = r"(?=\s*(?:$|\n|[,;]\s*(?:$|\n|\w+\s*[:=])))"
_LABELLED = re.compile(rf"{_LABEL}(?:{_WORD})(?!\s*(?:/|\bor\b|\band\b))")
_IN_FIELD = re.compile(rf"{_FIELD}(?:{_WORD}){_FIELD_ENDS}", re.MULTILINE)
"""A verdict with its label, as in "Final answer: no" or ``{"addressed": false}``; "yes or no" is not one."""
_DENYING_KEY = re.compile(r"not_|no_|un[a-z]|in(?:correct|valid)|reject|declin|refus")

_OPENING = (
    r"(?:(?:well|hmm|ok|okay|sure|so|thus|hence|therefore|overall|then|and|but|also|clearly|definitely|certainly|simply|a|that|is|"
    r"i|i'd|would|say|think|believe|judge|conclude|my|the|final|verdict|it|they|this|i'm afraid|sorry|probably|to be clear|in short|in conclusion)\s+)*"
)
_VERDICT = re.compile(rf"{_OPENING}(?:{_WORD})\s*(?P<rest>.*)", re.DOTALL)
_ENDING = re.compile(
    rf"\b(?:is|be|say|answer|conclude|with)\s+(?:(?:a|an|clear|definite|simple|that)\s+)*(?:{_WORD})(?P<rest>\W*)$"
)
_ASSENT = re.compile(
    r"\W*(?:(?:it|they|this|that) (?:is|does|did|has|was|do|are|have|were)|"
    r"(?:yes,? )?(?:certainly|absolutely|definitely|of course|indeed|exactly|sure|undoubtedly))\W*"
)
"""A whole reply that agrees without the word yes."""
_EXPLANATION = re.compile(
    r"\n\s*(?:explanation|reason(?:ing|s)?|rationale|justification|解释|理由|原因)\s*:"
)
_ECHO = re.compile(r"(?:/|or\b|and\b|would\b)")
"""The rest of the question "yes or no", and of "yes would …"."""
_SEPARATOR = re.compile(
    r"(?P<end>[.!?\n。！？]+(?!\w)|\n)|(?P<mark>[;:,，；：—–]+(?!\d)|\s-+\s)|"
    r"\b(?P<word>but|however|nevertheless|nonetheless|yet|although|though|even though|while|whereas|despite|because|since|"
    r"therefore|thus|hence|so)\b|"
    r"\b(?P<and>and(?=\s+(?:the|it|this|that|they|there|no|none|nothing|so|thus|therefore|hence|i|we)\b))"
)
_CONCESSIONS = ("although", "though", "even though", "while", "whereas", "despite")
_CONTRASTS = (
    "but",
    "however",
    "nevertheless",
    "nonetheless",
    "yet",
    "therefore",
    "thus",
    "hence",
    "so",
)
_INSERTED = re.compile(
    r"\b((?:is|are|was|were|not|has|have|had|does|do|did|be|been)|\w+n't),\s+[\w' ]{1,30},\s+"
)
_CONSIDERED = re.compile(
    r"\b(?:whether|if|unless|unclear|uncertain|unsure|perhaps|maybe|possibly|might|may|could be|not (?:sure|clear|certain)|"
    r"(?:cannot|can't|can not|could not|couldn't|unable to|impossible to|hard to|difficult to) "
    r"(?:\w+ly )?(?:tell|say|judge|determine|decide|know|assess|verify)|depends)\b|"
    r"是否|可能|也许|或许|如果|不确定|不清楚|(?:无法|不能|难以)(?:判断|确定|得知|断定)"
)
_NO_NEGATION = re.compile(
    r"\b(?:not (?:only|just|merely|simply)|no doubt|without (?:a |any )?doubt|no question (?:that|but)|beyond (?:any )?doubt|"
    r"not to mention|(?:cannot|can't) be denied)\b|毫无疑问|无疑|不仅|不但|不只|不光"
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|nothing|nobody|none|neither|nor|nowhere|without|cannot|fail(?:s|ed|ing|ure)?|unable|inability|hardly|barely|"
    r"scarcely|rarely|lacks?|lacking|lacked|insufficient(?:ly)?|inadequate(?:ly)?|refus(?:es|ed|ing|e)|declin(?:es|ed|ing|e)|"
    r"avoid(?:s|ed|ing)?|far from|instead of|rather than|too little|wrong to|untrue|deny|denies|dont|doesnt|didnt|isnt|wasnt|arent|hasnt|havent|cant)\b"
    r"|n't\b|(?:不|没|未|无|拒绝|难以|并非|避免)"
)
_NEGATED_BEHIND = re.compile(
    r"\W*(?:(?:by|in|at|any|with|exactly|of|absolutely)\s+)*(?:no|none|nothing|nowhere|neither|zero|0)\b"
)
_PARTLY = re.compile(
    r"\b(?:(?:only|just) |partial(?:ly)?\b|partly\b|somewhat\b|vaguely\b|to some extent\b)[\w ]*$"
)
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）")
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|(?<![\w'])'(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)|«[^»]*»|「[^」]*」"
)
_TAG = re.compile(r"<(/?)([a-z][\w-]*)>")
_QUOTES = str.maketrans("“”„‟’‘‛`´", "\"\"\"\"'''''")
_DECORATION = re.compile(
    r"\\boxed|\\text|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|^[ \t]*(?:[-•>#=→]+|\d+[.)])[ \t]+|```\w*|[{}|$]",
    re.M,
)


@dataclass(frozen=True)
class Claim:
    """The statement behind a yes. ``holds``: the pattern of words that state it; ``fails``: of words that deny it by
    themselves; ``about``: its subject, so that a statement about another subject does not contradict a verdict.
    ``chinese`` and ``chinese_fails``: Chinese words, which have no spaces between them."""

    holds: str
    fails: str
    about: str
    chinese: str = "(?!)"
    chinese_fails: str = "(?!)"


@dataclass(frozen=True)
class _Clause:
    """``joined``: the word that joins it to the preceding text; ``open``: a question, or a consideration."""

    text: str
    joined: str
    open: bool


def read_verdict(text: str, claim: Claim | None = None) -> bool | None:
    """True for yes, False for no, None for a text with neither or both. With a ``claim``, statements count, too.

    >>> [read_verdict(text) for text in ("**No.**", "Answer: yes", "Yes and no.", "It has no end.")]
    [False, True, None, None]
    >>> found = Claim(r"(?:finds?|found)", r"missed", r"errors?")
    >>> read_verdict("It hasn't found any error.", found), read_verdict("No error? It did not fail to find them.", found)
    (False, True)
    """
    plain = _plain(text)
    if _ASSENT.fullmatch(plain):
        return True
    short = _EXPLANATION.split(plain, maxsplit=1)[0]
    if short != plain and (verdict := read_verdict(short, claim)) is not None:
        return verdict
    bare = _strip_quotes(plain)
    if labelled := [*_LABELLED.finditer(bare)]:
        return labelled[-1]["yes"] is not None
    if fields := [*_IN_FIELD.finditer(bare)]:
        denied = bool(_DENYING_KEY.match(fields[-1]["key"]))
        return (fields[-1]["yes"] is not None) is not denied
    settled = _BRACKETED.sub(" ", _QUOTED.sub(_short, _strip_wrapping(plain)))
    if not re.search(r"\w", settled):
        settled = _strip_quotes(plain).strip("[](){}")
    clauses = list(_clauses(settled))
    verdicts = [(clause, verdict) for clause in clauses for verdict in _verdicts(clause)]
    statements = [
        (clause, value)
        for clause in clauses
        if claim and not clause.open
        for value in _claim_values(clause, claim)
    ]
    if len({verdict for _, verdict in verdicts}) == 1:
        verdict = verdicts[0][1]
        return None if claim and _contradicted(verdict, statements, claim) else verdict
    return _settle(statements)


def _settle(statements: Sequence[tuple[_Clause, bool]]) -> bool | None:
    """The verdict of several statements. Concessions are ignored, and in a contrast the last statement counts."""
    main = [pair for pair in statements if pair[0].joined not in _CONCESSIONS] or list(statements)
    if len({value for _, value in main}) > 1:
        main = [pair for pair in main if pair[0].joined in _CONTRASTS][-1:]
    return main[0][1] if main else None


def _contradicted(verdict: bool, statements: Sequence[tuple[_Clause, bool]], claim: Claim) -> bool:
    weighty = [
        pair
        for pair in statements
        if re.search(rf"\b(?:{claim.about})\b|{claim.chinese}|{claim.chinese_fails}", pair[0].text)
    ]
    return bool(weighty) and _settle(weighty) is (not verdict)


def _plain(text: str) -> str:
    """Small letters, straight quotes, no Markdown; a tag becomes the label of its content."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).lower()
    text = _TAG.sub(lambda tag: "\n" if tag[1] else f"\n{tag[2]}: ", text)
    return _DECORATION.sub("", text).strip()


def _strip_quotes(text: str) -> str:
    return re.sub(r"\"|(?<!\w)'|'(?!\w)", "", text)


def _strip_wrapping(text: str) -> str:
    """A text without quotes or brackets that enclose all of it."""
    for left, right in ('""', "''", "()", "[]"):
        inside = text[1:-1]
        if len(text) > 2 and text[0] == left and text[-1] == right and left not in inside:
            return inside
    return text


def _short(quoted: re.Match[str]) -> str:
    """A quoted word belongs to the sentence; a quoted sentence is someone else's."""
    inside = quoted[0][1:-1]
    return inside if len(inside.split()) < 3 else " "


def _clauses(text: str) -> Iterator[_Clause]:
    start, joined = 0, ""
    text = _INSERTED.sub(r"\1 ", text)
    for cut in (*_SEPARATOR.finditer(text), None):
        part = text[start : cut.start() if cut else len(text)].strip(" \t\r\n.\"'")
        if part:
            asks = cut is not None and "?" in (cut["end"] or "")
            yield _Clause(part, joined, asks or bool(_CONSIDERED.search(part)))
            joined = ""
        if cut is None:
            return
        start = cut.end()
        if cut["end"]:
            joined = ""
        joined = cut["word"] or joined


def _verdicts(clause: _Clause) -> Iterator[bool]:
    match = _VERDICT.match(clause.text) or _ENDING.search(clause.text)
    if match is None or _ECHO.match(match["rest"]):
        return
    if match["rest"] and (match["yes"] or match["no"]) in ("true", "correct", "negative"):
        return  # an adjective
    yield match["yes"] is not None


def _claim_values(clause: _Clause, claim: Claim) -> Iterator[bool]:
    """The claim in a clause, once for each occurrence: True if it holds, False if not."""
    text = _NO_NEGATION.sub("", _after_verdict(clause.text))
    words = rf"\b(?:(?P<holds>{claim.holds})|(?P<fails>{claim.fails}))\b"
    chinese = rf"(?P<chinese>{claim.chinese})|(?P<chinese_fails>{claim.chinese_fails})"
    for match in re.finditer(f"{words}|{chinese}", text):
        holds = bool(match["holds"] or match["chinese"])
        before, behind = text[: match.start()], text[match.end() :]
        negations = _NEGATION.findall(before)
        count = len([word for word in negations if word != "nor"]) or len(negations)
        if holds and not count:
            if _PARTLY.search(before):
                continue
            count += bool(_NEGATED_BEHIND.match(behind))
        yield holds is (count % 2 == 0)


def _after_verdict(text: str) -> str:
    """A clause without its initial verdict, whose "no" negates nothing after it."""
    match = _PLAIN.match(text)
    return text[match.end() :] if match else text
