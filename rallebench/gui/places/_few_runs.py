"""Names of the grid's variants, and their runs on the whole dataset."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.core.types import Chain
from rallebench.gui import form, html, panels
from rallebench.gui.events import Event
from rallebench.gui.forecasts import run_words
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._few import draw_parts, window_grid, window_sheet
from rallebench.gui.places._few_table import PATIENCE, Sheet, forecast_all
from rallebench.views.run_requests import BenchmarkOptions, of_chain
from rallebench.views.variants import answer_key

LONGEST_NAME = 60


def register(page: Page) -> None:
    """Register the actions of names and runs."""
    page.actions("few", ask_name, rename, reads=True)
    page.actions("few", ask_all, count_all, run_all)


def ask_all(page: Page, event: Event) -> Patch:
    """Ask for confirmation of runs on the whole dataset."""
    sheet = window_sheet(page, event)
    choices = [(answer_key(chain), sheet.label(chain)) for chain in sheet.chains]
    boxes = form.checks("variant", choices, [key for key, _ in choices], "Variants")
    body = Markup('<div{}>{}</div><p class="note" id="few-all">{}</p>{}').format(
        form.on_edit("few.count_all"),
        boxes,
        all_words(sheet, sheet.chains),
        html.note("Untick those to leave out."),
    )
    return panels.ask(f"Run on all of {sheet.dataset}?", body, "Start the runs", "few.run_all")


def all_words(sheet: Sheet, chains: Sequence[Chain]) -> str:
    """Describe the runs of chains on the whole dataset, with their time and price."""
    if not chains:
        return "No variant is ticked."
    whole = len(sheet.page.workspace.questions(sheet.dataset))
    size = f"{plural(len(chains), 'run')} of {plural(whole, 'question')}"
    forecast = forecast_all(sheet, chains, PATIENCE)
    return f"{html.join_facts(size, run_words(forecast))}."


def ticked_chains(sheet: Sheet, event: Event) -> list[Chain]:
    """Return the columns that are ticked in the dialog."""
    ticked = event.many("variant")
    return [chain for chain in sheet.chains if answer_key(chain) in ticked]


def count_all(page: Page, event: Event) -> Patch:
    """Follow the ticks of the dialog."""
    sheet = window_sheet(page, event)
    return Patch({"few-all": all_words(sheet, ticked_chains(sheet, event))})


def run_all(page: Page, event: Event) -> Patch:
    """Start a run of every ticked column on the whole dataset; compare them in the list of runs."""
    sheet, stamp = window_sheet(page, event), time.strftime("%Y%m%d-%H%M%S")
    options, chosen = BenchmarkOptions(dataset=sheet.dataset), ticked_chains(sheet, event)
    if not chosen:
        raise UsageError("No variant is ticked; tick those to run.")
    planned = []
    for number, chain in enumerate(chosen, 1):
        named = replace(chain, name=sheet.grid.names.get(answer_key(chain), chain.name))
        run = f"{named.name}-{sheet.dataset}-{stamp}-{number}"
        planned.append(of_chain(page.workspace, named, options, run=run))
    for prepared in planned:
        page.workbench.runs.start(prepared)
    started = f"{plural(len(planned), 'run')} {'has' if len(planned) == 1 else 'have'}"
    return Patch(dialog="", go="#/runs/list", say=f"{started} started.")


def ask_name(page: Page, event: Event) -> Patch:
    """Open the dialog that renames a variant."""
    chain, sheet = variant_at(event), window_sheet(page, event)
    index = event.text("index")
    more = form.on_enter("few.rename", index=index)
    note = html.note(
        "Its runs have this name, too. Leave it empty to return to the automatic name."
    )
    body = form.text("as", "Name", sheet.label(chain), more=more) + note
    return panels.ask("Rename the variant", body, "Rename", "few.rename", index=index)


def rename(page: Page, event: Event) -> Patch:
    """Rename a variant."""
    name, names = event.text("as"), window_grid(event).names
    if len(name) > LONGEST_NAME or any(c in name for c in '/\\:*?"<>|') or name.startswith("."):
        raise UsageError(
            f"Use at most {LONGEST_NAME} characters without slashes, colons and quotes.", "as"
        )
    key = answer_key(variant_at(event))
    names.pop(key, None)
    if name:
        names[key] = name
    return Patch(dialog="") | draw_parts(page, event)


def variant_at(event: Event) -> Chain:
    """Return the variant at the position that the event names. Raises UsageError."""
    others = window_grid(event).variants
    return others[event.position("index", len(others))]
