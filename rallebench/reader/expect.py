"""What a question asks for: the expected answer type and the noun it turns on.

Closed word lists and the question's shape, as in the rule-based answer typing of the first
TREC question-answering systems (Li and Roth 2002 give the type hierarchy this follows).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rallebench.reader.text import (
    ADVERBS,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    Word,
    word_set,
    words,
)

PERSON, PLACE, DATE, NUMBER, NAME, THING, REASON, MANNER, YESNO = (
    "person", "place", "date", "number", "name", "thing", "reason", "manner", "yesno",
)  # fmt: skip
KINDS = (PERSON, PLACE, DATE, NUMBER, NAME, THING, REASON, MANNER, YESNO)

_PERSON_NOUNS = word_set(
    "person man woman king queen emperor pope president minister chancellor mayor governor general "
    "admiral captain author poet painter artist architect philosopher scientist physicist chemist "
    "astronomer mathematician doctor physician surgeon nurse father mother son daughter brother sister "
    "wife husband spouse uncle aunt child children grandfather grandmother grandson friend pupil "
    "student teacher soldier saint bishop monk priest nobleman duke prince princess tsar leader founder "
    "composer inventor explorer engineer farmer singer actor actress director player quarterback coach "
    "librettist parent sibling lawyer judge prophet god goddess botanist"
)
_PLACE_NOUNS = word_set(
    "city town village country state nation county province region district island islands continent "
    "river lake sea ocean bay strait mountain mountains peak desert place location capital area "
    "neighborhood neighbourhood street church cathedral cemetery castle palace house university school "
    "college museum theatre theater hospital hotel building stadium airport port birthplace planet "
    "kingdom empire republic colony border headquarters suburb inlet gulf peninsula valley park garden"
)
_DATE_NOUNS = word_set("year date day month century decade period era time season years birthday")
_NUMBER_NOUNS = word_set(
    "number percentage percent percentile proportion population amount height length size temperature "
    "age cost price distance weight speed rate total depth area width sum score diameter elevation "
    "altitude wavelength mass"
)
_HOW_NUMBER = word_set(
    "many much long far old tall high big large deep wide fast heavy often hot cold few thick"
)
# What the number after "how long" and its like counts: the units resemble these words.
_MEASURED = {
    "long": ("length", "kilometres", "years"),
    "far": ("distance", "kilometres"),
    "tall": ("height", "metres"),
    "high": ("height", "metres"),
    "deep": ("depth", "metres"),
    "wide": ("width", "metres"),
    "old": ("age", "years"),
    "much": ("amount", "money"),
    "fast": ("speed", "kilometres", "hour"),
    "hot": ("temperature", "degrees"),
    "cold": ("temperature", "degrees"),
    "heavy": ("weight", "kilograms"),
    "often": ("frequency", "times"),
}
_YESNO_STARTS = AUXILIARIES - {"been", "being", "be", "having", "done", "doing"}
_LIGHT = word_set("kind type sort form name title term word nickname branch class species variety example")
_VERBS = word_set(
    "lies lie plays play makes make takes take holds hold flows flow runs run stands stand bears bear "
    "contains contain connects connect includes include borders border covers cover means mean comes "
    "come shows show serves serve begins begin ends end gives give goes go lives live links link causes "
    "cause uses use can raises owns own controls needs wrote began won gave went came led became got "
    "held ran saw knew grew drew fell fought met sat stood broke chose rose sank left kept sent spent "
    "said found built brought bought taught sold told put set wore spoke sang born written taken given "
    "known seen done made called named took lost hit paid swam fled"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """``kind``: one of KINDS. ``focus``: stems of the noun phrase that the question word governs,
    head last ('which larger company …' → ('larg', 'compan')). ``head``: its head as written, lower
    case. ``phrase``: words that the answer should resemble."""

    kind: str
    focus: tuple[str, ...] = ()
    head: str = ""
    phrase: tuple[str, ...] = ()


def expect(question: str) -> Expected:
    """Read the expected answer type off a question, a noun phrase or a claim.

    >>> expect("In which year did John Herschel marry?").kind
    'date'
    >>> expect("what is the place of birth of Ada Lovelace").kind
    'place'
    >>> expect("Which larger company swallowed up the firm?").head
    'company'
    """
    found = [w for w in words(question) if w.is_word]
    at = _question_word(found)
    if at is None:
        if found and found[0].low in _YESNO_STARTS:
            return Expected(YESNO)
        return Expected(THING)
    wh = found[at].low
    following = found[at + 1 :]
    if found[0].low in _YESNO_STARTS and at > 1:
        return Expected(YESNO)
    if wh in ("who", "whom", "whose"):
        return Expected(PERSON)
    if wh == "when":
        return Expected(DATE)
    if wh == "where":
        return Expected(PLACE)
    if wh == "why":
        return Expected(REASON)
    if wh == "how":
        return _how(following)
    phrase = _noun_phrase(following, after_preposition=at > 0)
    head = phrase[-1].low if phrase else ""
    kind = _kind_of_noun(phrase)
    return Expected(kind, tuple(w.stem for w in phrase), head, tuple(w.low for w in phrase))


def _question_word(found: list[Word]) -> int | None:
    """The first question word that is not a relative pronoun ('the man who …')."""
    spots = [i for i, w in enumerate(found) if w.low in QUESTION_WORDS]
    if not spots:
        return None
    for i in spots:
        before = found[i - 1].low if i else ""
        if i == 0 or before in PREPOSITIONS or before in AUXILIARIES or before in ("and", "exactly"):
            return i
    strong = [i for i in spots if found[i].low in ("what", "which", "who", "how")]
    return (strong or spots)[0]


def _how(following: list[Word]) -> Expected:
    first = following[0].low if following else ""
    if first not in _HOW_NUMBER:
        return Expected(MANNER)
    counted = _noun_phrase(following[1:]) if first in ("many", "much", "few") else []
    measured = tuple(w.low for w in counted) or _MEASURED.get(first, ())
    head = counted[-1].low if counted else ""
    return Expected(NUMBER, tuple(w.stem for w in counted), head, measured)


def _noun_phrase(following: list[Word], *, after_preposition: bool = False) -> list[Word]:
    """The words of the noun phrase that 'what' or 'which' asks for, head last; [] if there is none."""
    rest = list(following)
    if rest and rest[0].low in AUXILIARIES:  # what is the name of …
        linking = rest[0].low in ("is", "are", "was", "were") and not after_preposition
        if not linking or len(rest) < 2 or rest[1].low not in DETERMINERS:
            return []
        phrase, after = _until_break(rest[2:])
        if (
            after
            and after[0].low not in PREPOSITIONS
            and after[0].low not in ("that", "which", "who", "where")
        ):
            return phrase if len(after) < 2 else []  # what was the dog called
    else:
        phrase, after = _until_break(
            [w for i, w in enumerate(rest) if i or w.low not in ("the", "of", "these")]
        )
    if phrase and phrase[-1].low.removesuffix("s") in _LIGHT and after and after[0].low in ("of", "for"):
        inner, _ = _until_break([w for i, w in enumerate(after[1:]) if i or w.low not in DETERMINERS])
        return inner or phrase
    return phrase


def _until_break(rest: list[Word]) -> tuple[list[Word], list[Word]]:
    """(the words of one noun phrase, what follows it)."""
    phrase: list[Word] = []
    for i, word in enumerate(rest):
        low = word.low
        verb = phrase and not word.is_capital and (low in _VERBS or (low.endswith("ed") and len(low) > 4))
        if i >= 4 or verb or low in _BREAKING or word.text.endswith(("'s", "’s")):
            return phrase, rest[i:]
        phrase.append(word)
        if len(low) > 4 and low.endswith("s") and not low.endswith(("ss", "us", "is")):
            return phrase, rest[i + 1 :]
    return phrase, []


_BREAKING = AUXILIARIES | PREPOSITIONS | DETERMINERS | CONJUNCTIONS | PRONOUNS | ADVERBS


def _kind_of_noun(phrase: list[Word]) -> str:
    if not phrase:
        return THING
    head = phrase[-1].low
    single = head.removesuffix("s")
    if head in ("name", "title", "nickname"):
        return NAME
    for nouns, kind in (
        (_DATE_NOUNS, DATE),
        (_NUMBER_NOUNS, NUMBER),
        (_PLACE_NOUNS, PLACE),
        (_PERSON_NOUNS, PERSON),
    ):
        if head in nouns or single in nouns:
            return kind
    if re.search(r"(?:ist|ician|ographer|ologist|monarch)s?$", head):
        return PERSON
    return THING
