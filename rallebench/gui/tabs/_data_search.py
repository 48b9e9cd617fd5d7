"""Ask any index or combination, with its search-time settings, and see where the gold is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Gold
from rallebench.gui import views, views_data
from rallebench.gui.session import guard, guard_stream
from rallebench.gui.tabs._data_settings import Known, draw_settings, given, show_group
from rallebench.gui.tabs.develop import choices
from rallebench.services.data import Search, search_form
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.build import kinds
from rallebench.workspace.paths import DEFAULT_DATASET

NOTHING = "Choose a retriever, type a query or take a question of a set, and press Search. It is loaded if it is not yet."


def knobs() -> Known:
    """Kind → what can be set when it is searched, of the kinds that have such settings."""
    return {kind: form for kind in kinds() if (form := search_form(kind))}


def draw_search(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    with gr.Row(equal_height=True):
        names = list(workbench.workspace.retrievers())
        retriever = gr.Dropdown(
            names, value=names[0], label="Retriever", elem_id="data-search-retriever", scale=4
        )
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            elem_id="data-search-dataset",
            scale=3,
        )
        words = gr.Textbox(
            label="Find a question",
            placeholder="words of it",
            max_lines=1,
            elem_id="data-search-words",
            scale=3,
        )
        question = gr.Dropdown(
            choices(workbench.asking.questions(DEFAULT_DATASET), ""),
            value=None,
            label="Question whose gold is marked",
            elem_id="data-search-question",
            scale=6,
        )
    form = draw_settings(knobs(), "data-search", "")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        query = gr.Textbox(
            label="Query", max_lines=3, elem_id="data-search-query", scale=8, min_width=260
        )
        k = gr.Number(10, label="k", precision=0, elem_id="data-search-k", scale=1, min_width=90)
        ask = gr.Button(
            "Search", variant="primary", elem_id="data-search-ask", scale=2, min_width=120
        )
    gold = gr.HTML(elem_id="data-search-gold", elem_classes="rb-flush")
    found = gr.HTML(views.empty(NOTHING), elem_id="data-search-found", elem_classes="rb-flush")
    retriever.change(
        partial(guard, on_retriever, workbench),
        [retriever],
        list(form.groups.values()),
        show_progress="hidden",
    )
    listed = partial(guard, on_words, workbench)
    gr.on(
        [dataset.input, words.change],
        listed,
        [dataset, words],
        [question],
        show_progress="hidden",
        trigger_mode="always_last",
    )
    chosen = [dataset, question]
    question.input(
        partial(guard, on_question, workbench), chosen, [query, gold], show_progress="hidden"
    )
    handler = partial(guard_stream, on_search, workbench, form.names)
    asked = [retriever, query, k, *chosen, *form.inputs]
    gr.on([ask.click, query.submit], handler, asked, [found], show_progress="hidden")
    return {"searchable": retriever, "search_sets": dataset}


def kind_of(workbench: Workbench, name: str | None) -> str:
    """The index kind of a retriever, '' for anything else."""
    manifest = workbench.workspace.manifests().get(name or "")
    return manifest.kind if manifest else ""


def on_retriever(workbench: Workbench, name: str | None) -> list[Any]:
    """Show the settings that its search has."""
    shown = show_group(list(knobs()), kind_of(workbench, name))
    return shown if len(shown) > 1 else shown[0]


def on_words(workbench: Workbench, dataset: str, words: str) -> Any:
    """Offer the questions of the set that hold the words."""
    found = choices(workbench.asking.questions(dataset), words or "")
    return gr.update(
        choices=found, value=None, label=f"Question whose gold is marked ({len(found)} offered)"
    )


def on_question(workbench: Workbench, dataset: str, chosen: str | None) -> list[Any]:
    """Take a question as the query, and show its gold."""
    if not chosen:
        return [gr.skip(), ""]
    example = workbench.asking.example(dataset, chosen)
    return [example.question.text, views.gold_line(example)]


def gold_of(workbench: Workbench, dataset: str, chosen: str | None) -> Gold:
    """The gold of the chosen question; none if no question is."""
    return workbench.asking.example(dataset, chosen).gold if chosen else Gold()


def on_search(
    workbench: Workbench,
    names: list[tuple[str, str]],
    retriever: str | None,
    query: str,
    k: float | None,
    dataset: str,
    chosen: str | None,
    *values: Any,
) -> Iterator[str]:
    """Search, loading the retriever if it is not."""
    try:
        if not retriever:
            raise UsageError("No retriever is chosen; build an index first.")
        gold = gold_of(workbench, dataset, chosen)
        settings = given(names, kind_of(workbench, retriever), values)
        for piece in workbench.data.search(
            retriever, query or "", int(k or 0), knobs=settings, gold_pages=gold.pages
        ):
            yield (
                views_data.found(piece, gold, int(k or 0))
                if isinstance(piece, Search)
                else views.note(f"{piece} …")
            )
    except RalleError as error:
        yield views.error(str(error))
