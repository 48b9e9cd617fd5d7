"""The settings of the dataset builder ``barag``."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.settings import declare, declare_text
from rallebench.experiments.builders.articles import SOURCES

KEEP, LEAVE_OUT = "keep", "leave-out"


@dataclass(frozen=True, slots=True)
class BaragBuilderSettings:
    """The settings of the dataset builder ``barag``."""

    source: str = declare_text("kind of source; mediawiki draws random articles online", *SOURCES)
    api: str = declare(str, "https://en.wikipedia.org/w/api.php", about="of source=mediawiki")
    pick: str = declare_text("the articles that a limit takes", "first", "random")
    length: int = declare(int, 1000, 0, 10_000_000, about="shorter articles are left out")
    after: str = declare(
        str, "2021-10-01", about="an article's date is later than this; empty = any"
    )
    dates: str = declare_text(
        "file: article id or title → date (JSON, or two columns)", names="file"
    )
    undated: str = declare_text("articles without a date", LEAVE_OUT, KEEP)
    recency: bool = declare(bool, True, about="also ask if the content is later than the date")
    questions: int = declare(int, 1, 0, 20, about="per article; 0 = those given with the articles")
    answers: bool = declare(bool, True, about="also ask for a short answer, for KILT's metrics")
    answerable: bool = declare(bool, True, about="check: answered by the article alone")
    closed_book: bool = declare(bool, True, about="check: not answered correctly without it")
    near: float = declare(
        float, 0.8, 0, 1, about="check: shared words of two questions; 0 = no check"
    )
    leaks: bool = declare(bool, True, about="check: does not mention “the text”")
    unknown: str = declare_text("rows whose verdict cannot be read", KEEP, LEAVE_OUT)
    judge: str = declare_text("another model for the verdicts; empty = the same", names="llm")
    characters: int = declare(
        int, 15_000, 100, 10_000_000, about="of an article are shown to a model"
    )
    temperature: float = declare(float, 1.0, 0, 2, about="of the questions; verdicts have 0")
    seed: int = declare(int, 0, 0, 2**31 - 1, about="of questions and of pick=random")
    max_tokens: int = declare(int, 512, 1, 100_000, about="of a reply")
    forced: bool = declare(bool, True, about="demand the form of replies as a JSON schema")
    tries: int = declare(int, 2, 1, 5, about="most requests until a reply can be read")
    prompts: str = declare_text("folder with prompts of your own", names="folder")
