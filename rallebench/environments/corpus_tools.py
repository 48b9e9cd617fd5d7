"""Search, Read and Finish over the user's own corpus; a page opens by its id or title.

A long page is read in parts: each reading of the same page gives the next part.
"""

from __future__ import annotations

from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.types import Hit, Json, Note, Passage, Retrieve, ToolSpec
from rallebench.environments import ENVIRONMENTS, MakeEnvironment, Observed
from rallebench.environments._tools import single_argument, tool
from rallebench.environments.pages import CorpusPage, PageStore

SETTINGS = {
    "retriever": Setting(str, "starter-bm25", about="index to search", names="retriever"),
    "corpus": Setting(
        str,
        "",
        about="imported corpus with the pages to read; default: the index's own",
        names="corpus",
    ),
    "k": Setting(int, 5, 1, 50, about="passages listed per search"),
    "shown": Setting(int, 300, 20, 10_000, about="characters shown of each passage"),
    "part": Setting(int, 2_000, 100, 100_000, about="maximum characters per reading"),
}
INVALID = "Invalid Action. Valid Actions are Search[<query>] Read[<id>] and Finish[<answer>]."
NOTHING = "Nothing was found, please try other words."
UNREAD = "There is no page or passage with that id, please read one that a search listed."
FINISHED = "Episode finished."
MAX_QUERY = 1_000

TOOLS: tuple[ToolSpec, ...] = (
    tool(
        "Search",
        "Find passages; each is listed with its id, title and beginning.",
        query="what to look for",
    ),
    tool(
        "Read",
        "Read a page or passage; reading it again gives its next part.",
        id="an id or title that a search listed",
    ),
)


class CorpusTools:
    """The state of one episode: the listed passages and, per page, the number of parts read."""

    brackets = "[]"
    tools = TOOLS

    def __init__(
        self, retriever: str, pages: PageStore, k: int, characters: int, part_size: int
    ) -> None:
        self._retriever, self._pages, self._k = retriever, pages, k
        self._characters, self._part_size = characters, part_size
        self._listed: dict[str, Passage] = {}
        self._read: dict[str, int] = {}

    def act(self, verb: str, argument: str) -> Observed:
        """See Environment. The verb's case does not matter."""
        name = verb.lower()
        if name == "search":
            return (yield from self._search(argument.strip()))
        if name == "read":
            return (yield from self._open(argument.strip()))
        return FINISHED if name == "finish" else INVALID

    def call(self, name: str, arguments: Json) -> Observed:
        argument, wrong = single_argument(TOOLS, name, arguments)
        return wrong or (yield from self.act(name, argument))

    def _search(self, query: str) -> Observed:
        if not query:
            return NOTHING
        reply = yield Retrieve(self._retriever, query[:MAX_QUERY], self._k)
        self._listed |= {hit.passage.doc_id: hit.passage for hit in reply.hits}
        return "\n".join(map(self._line, reply.hits)) or NOTHING

    def _line(self, hit: Hit) -> str:
        text = " ".join(hit.passage.text.split())
        if len(text) > self._characters:
            text = text[: self._characters].rsplit(" ", 1)[0] + " …"
        title = f"{hit.passage.title}: " if hit.passage.title else ""
        return f"[{hit.passage.doc_id}] {title}{text}"

    def _open(self, name: str) -> Observed:
        try:
            page = self._find_page(name.strip("[] "))
        except Exception:  # the corpus is damaged, or was removed during the episode
            page = None
        if page is None or not page.text.strip():
            return UNREAD
        parts = _parts(page.text.strip(), self._part_size)
        key, name = page.page_id or page.title, page.title or page.page_id
        number = self._read.get(key, 0)
        if number >= len(parts):
            yield Note(f"Read all {len(parts)} parts of the page {name!r} before.")
            self._read[key] = 0
            return "No more parts; the next reading begins anew."
        progress = f"Read the page {name!r}, part {number + 1} of {len(parts)}."
        yield Note(progress, (page.passage(parts[number]),))
        self._read[key] = number + 1
        return parts[0] if len(parts) == 1 else f"(Part {number + 1}/{len(parts)}) {parts[number]}"

    def _find_page(self, name: str) -> CorpusPage | None:
        if not name:
            return None
        passage = self._listed.get(name)
        if passage is not None:
            whole = self._pages.page(passage.page_id) if passage.page_id else None
            return whole or CorpusPage(passage.doc_id, passage.title, passage.text)
        return self._pages.page(name) or next(iter(self._pages.with_title(name)), None)


def _parts(text: str, most: int) -> list[str]:
    """Split a text into parts of at most ``most`` characters, at a blank in the last third if there is one.

    >>> _parts("one two three", 8)
    ['one two', 'three']
    """
    parts = []
    while len(text) > most:
        at = max(text.rfind(blank, most * 2 // 3, most + 1) for blank in " \n")
        at = at if at > 0 else most
        parts.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*parts, text] if text else parts


@ENVIRONMENTS.register("corpus-tools", form=SETTINGS, retriever=True, pages=True)
def corpus_tools(*, retriever: str, pages: PageStore, **settings: Any) -> MakeEnvironment:
    """Search, read and finish over the user's own corpus."""
    k, characters, part_size = (settings[name] for name in ("k", "shown", "part"))
    return lambda: CorpusTools(retriever, pages, k, characters, part_size)
