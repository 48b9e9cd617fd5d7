"""Contextual chunks: a model writes each passage's context once, and an index reads context and passage together.

After Anthropic's "Contextual Retrieval" (2024). Each context is a row that a person may edit. The result is a corpus with the
ids, titles and pages of the passages, whose texts begin with their contexts. ``originals:CONTEXTS,INDEX`` searches an index
of it and returns the passages of the index without contexts, so that prompts stay the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row, RowsRequest
from rallebench.core.json_values import JsonValue
from rallebench.core.prompts import fill_template
from rallebench.core.registry import unknown
from rallebench.core.settings import dataclass_form, declare, declare_text
from rallebench.core.types import Episode, Flow, Generate, Message, Outcome, Passage, digest
from rallebench.corpora.store import PassageStore
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.replies import keep_state, read_prompts
from rallebench.experiments.common import sentences
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.paths import WorkspaceFolder

CORPUS = "contexts-corpus.jsonl"
FIELDS = ("TITLE", "DOCUMENT", "PASSAGE")
SILENT = "the model wrote nothing"


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The settings of the builder ``contexts``."""

    index: str = declare(str, "", required=True, about="the index with the passages", names="index")
    around: int = declare(
        int, 3000, 0, 1_000_000, about="characters of the page before and after a passage to read"
    )
    max_tokens: int = declare(int, 128, 1, 4096, about="longest context")
    prompts: str = declare_text("folder of prompts of your own", names="folder")


@dataclass(frozen=True, slots=True)
class PassageOnPage:
    """A passage with the text of its page around it."""

    passage: Passage
    document: str

    @property
    def id(self) -> str:
        return self.passage.doc_id


@EXPERIMENTS.register(
    "build-contexts", place="builders", form=dataclass_form(ContextSettings), articles=False
)
def contexts(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """A context for each passage of an index, written once by a model, and a corpus of contexts with their passages."""
    settings = request.read(ContextSettings)
    if request.settings["articles"]:
        raise UsageError(
            "Contexts are written for the passages of an index, not of articles.",
            hint=Hint("set", "index=NAME"),
        )
    if not request.llm:
        raise UsageError("A language model writes the contexts.", hint=Hint("choose", "llm"))
    request.workspace.llm(request.llm)
    folder = request.workspace.index_folder(settings.index)
    if folder is None:
        raise NotFoundError(unknown("index", settings.index, list(request.workspace.manifests())))
    prompt = read_prompts("contexts", settings.prompts, {"context": FIELDS})["context"]
    rows: RowFile = yield _context_rows(request, settings, folder, prompt)
    written = {str(row["id"]): str(row.get("context", "")).strip() for row in rows if row["keep"]}
    if not any(written.values()):
        raise BadFileError(
            f"No passage got a context; {request.folder / '1-contexts.jsonl'} says why."
        )
    passages = read_manifest(folder).passages
    n = sum(map(bool, written.values()))
    missing = passages - n
    return Report(
        {"passages": passages, "contexts": n, "index": settings.index, "corpus": CORPUS},
        sentences(
            (missing > 0, f"{missing:,} of {passages:,} passages have no context and stand alone."),
            (True, _next_step(request, settings.index)),
        ),
        {CORPUS: _corpus_lines(folder, written)},
    )


def _next_step(request: ExperimentRequest[WorkspaceFolder], index: str) -> str:
    name = request.name or "contexts"
    return (
        f"Build an index of any kind over {request.folder / CORPUS}, such as {name}-bm25, and search "
        f"originals:{name}-bm25,{index}: it finds passages by their contexts and returns them without."
    )


def _context_rows(
    request: ExperimentRequest[WorkspaceFolder],
    settings: ContextSettings,
    folder: Path,
    prompt: str,
) -> RowsRequest[PassageOnPage]:
    def flow(entry: PassageOnPage) -> Flow:
        values = dict(zip(FIELDS, (entry.passage.title, entry.document, entry.passage.text)))
        reply = yield Generate(
            request.llm,
            (Message("user", fill_template(prompt, values)),),
            max_tokens=settings.max_tokens,
            temperature=0.0,
            roomy=True,
        )
        return Outcome(reply.text)

    manifest = read_manifest(folder)
    more: list[JsonValue] = [prompt, settings.max_tokens, request.llm]
    return RowsRequest(
        "1-contexts",
        "contexts",
        lambda: passages_on_pages(folder, settings.around, request.limit),
        flow=flow,
        read=read_context,
        depends_on=lambda entry: [entry.passage.title, entry.document, entry.passage.text, *more],
        llms=(request.llm,),
        source=f"{manifest.corpus_sha256}/{settings.around}/{request.limit}/{digest(more)[:12]}",
    )


def read_context(entry: PassageOnPage, episode: Episode) -> list[Row]:
    """The row of a reply: its text as one line; not kept if the model failed or wrote nothing."""
    row: Row = {"id": entry.id, "title": entry.passage.title}
    if episode.error:
        return [{**row, "context": "", **keep_state("the model failed"), "error": episode.error}]
    context = " ".join(episode.answer.split())
    return [{**row, "context": context, **keep_state("" if context else SILENT)}]


def passages_on_pages(folder: Path, around: int, limit: int | None) -> Iterator[PassageOnPage]:
    """Yield the passages of an index, the first ``limit``, each with its page's text around it.

    The text of a page is that of its passages in their order; a passage without a page stands alone.
    """
    with closing(PassageStore(folder)) as store:
        pages: dict[str, list[int]] = {}
        for row, passage in enumerate(store):
            if passage.page_id:
                pages.setdefault(passage.page_id, []).append(row)
        for row in range(len(store) if limit is None else min(limit, len(store))):
            passage = store[row]
            rows = pages.get(passage.page_id, [row])
            place = rows.index(row)
            before = _nearest(store, rows[:place][::-1], around)[::-1]
            after = _nearest(store, rows[place + 1 :], around)
            text = "\n".join([*before, passage.text, *after])
            yield PassageOnPage(passage, text)


def _nearest(store: PassageStore, rows: Sequence[int], most: int) -> list[str]:
    """Return the texts of the first rows, up to ``most`` characters in all, whole passages only."""
    texts: list[str] = []
    for row in rows:
        text = store[row].text
        most -= len(text)
        if most < 0:
            break
        texts.append(text)
    return texts


def _corpus_lines(folder: Path, written: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the corpus: every passage, its context before its text."""
    with closing(PassageStore(folder)) as store:
        for passage in store:
            context = written.get(passage.doc_id, "")
            record = {
                "id": passage.doc_id,
                "title": passage.title,
                "text": f"{context}\n{passage.text}" if context else passage.text,
                "page_id": passage.page_id,
            }
            yield json.dumps(record, ensure_ascii=False) + "\n"
