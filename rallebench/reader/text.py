"""Sentences and words with their positions in the text, and the informativeness of a word.

Based on lists of closed-class English words: no model, no part-of-speech tagger. Words of other
languages are left alone, because they never match a list.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_SENTENCE_WORDS = 80
"""Words after which text without a full stop (tables, lists) is cut, to bound the time."""

_WORD = re.compile(
    r"[$£€]?\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?%?(?![^\W\d_])"  # 3,500  $12  1990s  42%  5th
    r"|(?:[^\W\d_]\.){2,}"  # U.S.  a.m.
    r"|[^\W_]+(?:[’'\-–][^\W_]+)*"  # words with inner hyphens and apostrophes
    r"|\S",
    re.UNICODE,
)
_STOP_MARK = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s)|\n+")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text; for lists that read better as text."""
    return frozenset(text.split())


_ABBREVIATIONS = word_set(
    "mr mrs ms dr st prof sr jr gen col capt lt sgt rev hon gov sen rep no nos vol vs etc e.g i.e ca c "
    "cf approx jan feb mar apr jun jul aug sep sept oct nov dec inc ltd co corp u.s u.k mt ft"
)

DETERMINERS = word_set(
    "a an the this that these those his her its their our my your some any each every no"
)
PREPOSITIONS = word_set(
    "of in on at by for with from to into onto upon about over under between among during through "
    "across after before against within without near around along behind beyond beside above below off "
    "since until till as like per via toward towards throughout despite except including than"
)
CONJUNCTIONS = word_set(
    "and or but nor yet so because although though while whereas if when where which who whom whose "
    "that unless once both either neither"
)
PRONOUNS = word_set(
    "i you he she it we they him me us them himself herself itself themselves there one what whatever "
    "who whom someone anyone something"
)
AUXILIARIES = word_set(
    "is are was were be been being am has have had having do does did done doing will would shall "
    "should may might can could must cannot 's 're n't isn't wasn't weren't aren't doesn't didn't don't "
    "won't couldn't wouldn't"
)
ADVERBS = word_set(
    "not also only then now still just even however therefore thus very too more most less least much "
    "many well later earlier soon often never ever always already again once here such rather quite "
    "almost nearly about approximately roughly up out down away back together instead perhaps usually "
    "sometimes first"
)
FUNCTION_WORDS = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | PRONOUNS | AUXILIARIES
QUESTION_WORDS = word_set("what which who whom whose when where why how")
NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion dozen half"
)

# Forms that no suffix rule joins; the first form of a family is their common stem.
_FAMILIES = """
write wrote written writer author · found founded founder founding · begin began begun beginning
win won winner winning victory · die died death dead dying · birth born bear
build built builder building · make made maker making · take took taken · give gave given
get got gotten · become became · go went gone · come came · lead led leader · speak spoke spoken
sing sang sung singer song · bring brought · buy bought · think thought · teach taught teacher
sell sold sale · tell told · lose lost loss · hold held holder · run ran · see saw seen
know knew known · grow grew grown growth · draw drew drawn · fall fell fallen · fight fought
meet met · sit sat · stand stood · break broke broken · choose chose chosen choice
drive drove driven · eat ate eaten · rise rose risen · sink sank sunk · swim swam
wear wore worn · leave left · keep kept · mean meant · send sent · spend spent · pay paid
say said · catch caught · seek sought · marry married marriage wife husband spouse wed
invent inventor invention · discover discovery discoverer · produce production product producer
create creation creator · man men · woman women · child children · foot feet · person people
live life lives lived · high height highest tall · long length longest · wide width · deep depth
old age oldest · large largest larger big biggest size · locate location located
bury burial buried grave · compose composer composition · paint painter painting
direct director directed · rule ruler reign · kill killed killer
"""
_IRREGULAR = {
    form: family.split()[0] for family in re.split("[·\n]", _FAMILIES) for form in family.split()
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word or one punctuation mark; ``start`` and ``end`` index the text it came from."""

    text: str
    start: int
    end: int
    low: str
    stem: str

    @property
    def is_word(self) -> bool:
        """False for punctuation."""
        return self.text[0].isalnum() or len(self.text) > 1

    @property
    def is_capital(self) -> bool:
        """True if it begins with a capital letter."""
        return self.text[0].isupper()

    @property
    def is_number(self) -> bool:
        """True for digits (with currency or per-cent sign) and number words."""
        return any(c.isdigit() for c in self.text) or self.low in NUMBER_WORDS


_ENDINGS = "ations ation ities ity ments ment ies ied ings ing ions ion edly ed ers ors er or ally ly es s e y"
"""Suffixes; the first match is cut off."""


@lru_cache(maxsize=50_000)
def stem(low: str) -> str:
    """Return a rough stem, so that 'founded', 'founder' and 'founding' match.

    >>> stem("discovered") == stem("discovery"), stem("wrote") == stem("author"), stem("cities") == stem("city")
    (True, True, True)
    """
    low = low.removesuffix("'s").removesuffix("’s")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    bare = (
        "".join(c for c in unicodedata.normalize("NFKD", low) if not unicodedata.combining(c))
        or low
    )
    for ending in _ENDINGS.split():
        if bare.endswith(ending) and len(bare) - len(ending) >= 3:
            bare = bare.removesuffix(ending) + ("y" if ending in ("ies", "ied") else "")
            break
    bare = bare.removesuffix("e").removesuffix("y") if len(bare) > 3 else bare
    if len(bare) > 4 and bare[-1] == bare[-2]:
        bare = bare[:-1]
    return _IRREGULAR.get(bare, bare)


def words(text: str) -> tuple[Word, ...]:
    """Return words and punctuation marks in order, with lower case and stem.

    >>> [w.text for w in words("Born on 9 April 1991, the U.S. won $3,500 (42%).")]
    ['Born', 'on', '9', 'April', '1991', ',', 'the', 'U.S.', 'won', '$3,500', '(', '42%', ')', '.']
    """
    tokens = []
    for match in _WORD.finditer(text):
        form = match.group()
        low = form.lower()
        tokens.append(Word(form, match.start(), match.end(), low, stem(low)))
    return tuple(tokens)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence, without surrounding space; abbreviations and initials do not end one.

    >>> t = "Dr. J. Smith won 3.5 points. He left!"
    >>> [t[a:b] for a, b in sentences(t)]
    ['Dr. J. Smith won 3.5 points.', 'He left!']
    """
    cuts: list[tuple[int, int]] = []
    start = 0
    for mark in _STOP_MARK.finditer(text):
        if mark.group()[0] == "." and _is_abbreviation(text, start, mark.start(), mark.end()):
            continue
        cuts += _trim(text, start, mark.end())
        start = mark.end()
    cuts += _trim(text, start, len(text))
    return [piece for cut in cuts for piece in _shorten(text, *cut)]


def _is_abbreviation(text: str, start: int, dot: int, end: int) -> bool:
    left = dot
    while left > start and not text[left - 1].isspace() and dot - left < 12:
        left -= 1
    last = text[left:dot].strip("(\"'“").lower()
    if last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha() and last != "i"):
        return True
    # "approx. five": the next sentence would not begin in lower case
    following = text[end : end + 40].lstrip()
    return bool(following) and following[0].islower()


def _trim(text: str, start: int, end: int) -> list[tuple[int, int]]:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    return [(start, end)] if end > start else []


def _shorten(text: str, start: int, end: int) -> Iterable[tuple[int, int]]:
    if end - start <= MAX_SENTENCE_WORDS * 4:
        return [(start, end)]
    pieces = [m.end() for m in re.finditer(r"\S{1,80}\s*", text[start:end])]
    edges = [
        start,
        *(start + at for at in pieces[MAX_SENTENCE_WORDS - 1 : -1 : MAX_SENTENCE_WORDS]),
        end,
    ]
    return [cut for a, b in zip(edges, edges[1:]) for cut in _trim(text, a, b)]


def clean(text: str) -> str:
    """Replace lone surrogates, which no tokenizer accepts."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def weight_share(weights: Mapping[str, float], stems: Collection[str]) -> float:
    """Return the share, by weight, of the stems in ``weights`` that are among ``stems``, 0..1.

    >>> weight_share({"moon": 0.75, "find": 0.25}, {"moon", "saturn"})
    0.75
    """
    return sum(v for stem, v in weights.items() if stem in stems) / (sum(weights.values()) or 1.0)


class Rarity:
    """Informativeness of a word, 0 to 1, from its position in the encoder's vocabulary.

    BERT's WordPiece vocabulary lists whole words roughly by falling frequency, so the logarithm of the
    position is a usable inverse document frequency without a corpus. A word that is not in the
    vocabulary is rare: 1.
    """

    FIRST_WORD = 1996  # 'the' in bert-base-uncased's list
    SPREAD = 10.3  # ln of the number of whole words

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary

    def __call__(self, low: str) -> float:
        """Return the weight of a lower-case word; 0 for function words."""
        bare = low.removesuffix("'s").removesuffix("’s")
        is_word = any(c.isalnum() for c in bare)
        if low in FUNCTION_WORDS or low in QUESTION_WORDS or not is_word:
            return 0.0
        place = self._vocabulary.get(bare)
        if place is None:
            return 1.0
        return min(1.0, max(0.15, math.log(max(1, place - self.FIRST_WORD + 1)) / self.SPREAD))
