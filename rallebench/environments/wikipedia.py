"""Search, Lookup and Finish over the pages of a corpus, with the observations of R-Eval's Wikipedia.

The title of a page opens that page, any other name opens the page of the first hit. A page is one text: all its
passages in the order of the corpus. R-Eval: Tu et al. 2024.
"""

from __future__ import annotations

from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.types import Json, Note, Passage, Retrieve, ToolSpec
from rallebench.environments import ENVIRONMENTS, MakeEnvironment, Observed
from rallebench.environments._tools import single_argument, tool
from rallebench.environments.pages import CorpusPage, PageStore, plain_title

SETTINGS = {
    "retriever": Setting(
        str, "starter-bm25", about="index for names that are not titles", names="retriever"
    ),
    "corpus": Setting(
        str,
        "",
        about="imported corpus with the pages to open; default: the index's own",
        names="corpus",
    ),
    "similar": Setting(int, 10, 1, 100, about="titles listed by a failed search"),
    "otherwise": Setting(
        str,
        "first-hit",
        choices=("first-hit", "similar"),
        about="for a name that is not a title: open the first hit, or list similar titles",
    ),
    "compat": Setting(
        str,
        "corrected",
        choices=("corrected", "original"),
        about="original: keep counting results of a looked-up keyword after a new search",
    ),
}

INVALID = "Invalid Action. Valid Actions are Lookup[<topic>] Search[<topic>] and Finish[<answer>]."
NOT_FOUND = "Could not find that page, please try again."
NO_PAGE = (
    "The last page Searched was not found, so you cannot Lookup a keyword in it. "
    "Please try one of the similar pages given."
)
FINISHED = "Episode finished."
MAX_QUERY = 1_000
"""Maximum characters of a search; a model may write a whole chapter."""

TOOLS: tuple[ToolSpec, ...] = (
    tool(
        "Search",
        "Open the page of an entity and return its first paragraph.",
        entity="the entity's name or a page's title",
    ),
    tool(
        "Lookup", "The next paragraph of the open page that holds a keyword.", keyword="the keyword"
    ),
)


class Wikipedia:
    """The state of one episode: the open page, the keyword and the number of its results so far."""

    brackets = "[]"
    tools = TOOLS

    def __init__(
        self, retriever: str, pages: PageStore, similar: int, otherwise: str, compat: str
    ) -> None:
        self._retriever, self._pages, self._similar = retriever, pages, similar
        self._first_hit, self._original = otherwise == "first-hit", compat == "original"
        self._page: CorpusPage | None = None
        self._keyword, self._count = "", 0

    def act(self, verb: str, argument: str) -> Observed:
        """See Environment. The verb's case matters."""
        if verb == "Search":
            return (yield from self._search(argument))
        if verb == "Lookup":
            return (yield from self._lookup(argument))
        return FINISHED if verb == "Finish" else INVALID

    def call(self, name: str, arguments: Json) -> Observed:
        argument, wrong = single_argument(TOOLS, name, arguments)
        return wrong or (yield from self.act(name, argument))

    def _search(self, entity: str) -> Observed:
        self._page = None
        if not self._original:
            self._keyword = ""
        if not plain_title(entity):
            return NOT_FOUND
        try:
            pages = self._pages.with_title(entity)
        except Exception:  # the corpus is damaged, or was removed during the episode
            return NOT_FOUND
        if len(pages) == 1 and not _lists_others(pages[0]):
            return (yield from self._open(pages[0]))
        reply = yield Retrieve(self._retriever, entity.strip()[:MAX_QUERY], self._similar)
        titles = [page.title for page in pages if not _lists_others(page)]
        if not pages and self._first_hit:
            for hit in reply.hits:
                with_page = self._pages.page(hit.passage.page_id) if hit.passage.page_id else None
                page = with_page or CorpusPage(
                    hit.passage.page_id, hit.passage.title, hit.passage.text
                )
                if not _lists_others(page):
                    return (yield from self._open(page))
        titles += [hit.passage.title or hit.passage.doc_id for hit in reply.hits]
        return f"Could not find [{entity}]. Similar: {list(dict.fromkeys(titles))[: self._similar]}"

    def _open(self, page: CorpusPage) -> Observed:
        paragraphs = page.paragraphs
        if not paragraphs:
            return NOT_FOUND
        extent = f"the first of its {len(paragraphs)} paragraphs"
        extent = extent if len(paragraphs) > 1 else "its one paragraph"
        event = f"Opened the page {page.title or page.page_id!r}; {extent} is shown."
        yield Note(event, (page.passage(paragraphs[0]),))
        self._page = page
        return paragraphs[0]

    def _lookup(self, keyword: str) -> Observed:
        if self._page is None:
            return NO_PAGE
        word = keyword.strip().lower()
        if word and word == self._keyword:
            self._count += 1
        else:
            self._keyword, self._count = word, 0
        texts = self._page.paragraphs if word else ()
        paragraphs = [text for text in texts if word in text.lower()]
        seen: tuple[Passage, ...] = ()
        if not paragraphs:
            observation = "No Results"
        elif self._count >= len(paragraphs):
            observation = "No More Results"
        else:
            observation = f"(Result {self._count + 1}/{len(paragraphs)}) {paragraphs[self._count]}"
            seen = (self._page.passage(paragraphs[self._count]),)
        yield Note(
            f"Looked up {keyword[:100]!r} in {self._page.title!r}: {len(paragraphs)} paragraph{'s' * (len(paragraphs) != 1)}.",
            seen,
        )
        return observation


def _lists_others(page: CorpusPage) -> bool:
    """Return whether this is a disambiguation page."""
    first = page.paragraphs[0] if page.paragraphs else ""
    ends = ("may refer to:", "may also refer to:")
    return page.title.lower().endswith("(disambiguation)") or first[:300].rstrip().endswith(ends)


@ENVIRONMENTS.register("wikipedia", form=SETTINGS, retriever=True, pages=True)
def wikipedia(
    *, retriever: str, pages: PageStore, similar: int, otherwise: str, compat: str, **_: Any
) -> MakeEnvironment:
    """Search, Lookup and Finish over the pages of a corpus, with R-Eval's observations."""
    return lambda: Wikipedia(retriever, pages, similar, otherwise, compat)
