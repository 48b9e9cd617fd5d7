"""The settings of ``barag``, and what its rows say."""

from __future__ import annotations

from rallebench.core.settings import Setting
from rallebench.experiments.builders.articles import SOURCES
from rallebench.experiments.papers.common import string

KEEP, LEAVE_OUT = "keep", "leave-out"

SETTINGS = {
    "source": string("what the articles are; mediawiki draws random ones online", *SOURCES),
    "api": Setting(str, "https://en.wikipedia.org/w/api.php", about="of source=mediawiki"),
    "pick": string("which articles, where not all are taken", "first", "random"),
    "length": Setting(int, 1000, 0, 10_000_000, about="an article has more characters than this"),
    "after": Setting(str, "2021-10-01", about="an article's date is later than this; empty = any"),
    "dates": string("file: article id or title → date (JSON, or two columns)"),
    "undated": string("articles without a date", LEAVE_OUT, KEEP),
    "recency": Setting(bool, True, about="ask whether the content is later than the date, too"),
    "questions": Setting(int, 1, 0, 20, about="per article; 0 = those that the list brings"),
    "answers": Setting(bool, True, about="ask for a short answer, too, for KILT's metrics"),
    "answerable": Setting(bool, True, about="check: answered by the article alone"),
    "closed_book": Setting(bool, True, about="check: not answered right without it"),
    "near": Setting(float, 0.8, 0, 1, about="check: shared words of two questions; 0 = no check"),
    "leaks": Setting(bool, True, about="check: does not mention “the text”"),
    "unknown": string("where a verdict cannot be read", KEEP, LEAVE_OUT),
    "judge": string("another model for the verdicts; empty = the same"),
    "characters": Setting(int, 15_000, 100, 10_000_000, about="of an article are shown to a model"),
    "temperature": Setting(float, 1.0, 0, 2, about="of the questions; verdicts have 0"),
    "seed": Setting(int, 0, 0, 2**31 - 1, about="of questions and of pick=random"),
    "max_tokens": Setting(int, 512, 1, 100_000, about="of a reply"),
    "forced": Setting(bool, True, about="demand the form of replies as a JSON schema"),
    "tries": Setting(int, 2, 1, 5, about="asks again where a reply cannot be read"),
    "prompts": string("folder with prompts of your own"),
}

SHORT = "not longer than wanted"
SAME_TITLE, SAME_TEXT = "same title", "same text"
NO_DATE, BAD_DATE, EARLY = "no date", "date cannot be read", "not after the date"
OLD, UNKNOWN = "content not recent", "verdict cannot be read"
NO_QUESTION, FAILED = "no question in the reply", "the request failed"
NONE_GIVEN = "brings no question"
NEAR, LEAK = "nearly the same question", "mentions its text"
NOT_ANSWERABLE, ANSWERED_WITHOUT = "not answered by its article", "answered without its article"
