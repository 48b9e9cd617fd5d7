"""Lists that are filtered, sorted and grouped, with chosen columns; all of it is in the address, and can be saved.

A place declares a ``ListView`` once: its rows, its columns and how it is drawn. This module draws the fields above the list
and its heads, and answers their actions, ``NAME-list.filter``, ``NAME-list.sort`` and so on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic
from urllib.parse import parse_qsl, quote, unquote, urlencode

from markupsafe import Markup

from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.list_columns import (
    TEXTUAL,
    Arrangement,
    Cell,
    ListColumn,
    Row,
    filter_rows,
    find_column,
    sort_rows,
)
from rallebench.core.table_files import csv_lines
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import Query
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes, escape
from rallebench.gui.patches import Download, Patch
from rallebench.services.saved_lists import read_saved_lists, save_list

MOST_OFFERS, MOST_READ = 200, 3000
"""The most values of a column that the filter suggests, and the most rows that are read for them."""
SHORT = 8
"""Lists with at most so many rows need no filter."""
UNLISTED = ("name", "note", "about")
"""Columns whose values are not suggested."""


@dataclass(frozen=True)
class ListState(Query):
    """The state of a list in the address. ``sort``: see ``Arrangement``; ``show``: the chosen columns; ``group``: the
    column of the groups; ``folded``: the folded groups; ``mark``: changes when the rows change (not in the address).
    """

    where: str = ""
    sort: str = ""
    show: str = ""
    group: str = ""
    folded: str = ""
    mark: str = ""

    @property
    def folded_groups(self) -> set[str]:
        return {unquote(name) for name in self.folded.split(",")} if self.folded else set()

    def with_folded(self, groups: set[str]) -> ListState:
        return replace(self, folded=",".join(sorted(quote(name, safe="") for name in groups)))


@dataclass(frozen=True)
class ListView(Generic[Row]):
    """A list of a place. ``view``: the address of the place; ``prefix``: of its values there, if a view has several
    lists; ``draw``: the changed parts of the page for a state; ``initial``: the columns visible at first, () if they
    cannot be chosen; ``more``: columns that are drawn only, name → label; ``groups``: columns to group by; ``orders``:
    columns to sort by where there are no heads.
    """

    name: str
    view: str
    rows: Callable[[Page], Sequence[Row]]
    columns: Callable[[Page], Sequence[ListColumn[Row]]]
    draw: Callable[[Page, Event, ListState], Mapping[str, str]]
    prefix: str = ""
    initial: tuple[str, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    hint: str = "Filter"

    def register(self, page: Page) -> None:
        """Register the actions of the list."""
        readers = {"filter": set_filter, "sort": set_sort, "show": set_columns, "group": set_group}
        readers |= {"fold": fold, "clear": clear, "export": export}
        for name, handler in readers.items():
            page.action(f"{self.name}-list.{name}", partial(handler, self), reads=True)
        for name, handler in zip(("ask_save", "save", "forget"), (ask_save, save, forget)):
            page.action(f"{self.name}-list.{name}", partial(handler, self))

    def do(self, verb: str) -> str:
        return f"{self.name}-list.{verb}"

    def state(self, event: Event) -> ListState:
        """Return the state in the address."""
        own = {
            key.removeprefix(self.prefix): value
            for key, value in event.query.items()
            if key.startswith(self.prefix)
        }
        return replace(ListState.read(own), mark="")

    def address(self, event: Event, state: ListState) -> str:
        """Return the address with a state; values of other lists stay."""
        others = {
            key: value
            for key, value in event.query.items()
            if key.removeprefix(self.prefix) not in ListState().__dict__
            or not key.startswith(self.prefix)
        }
        own = {
            f"{self.prefix}{key}": value for key, value in replace(state, mark="").values().items()
        }
        query = urlencode({**others, **own}, quote_via=quote, safe=":,")
        return f"#/{self.view}?{query}" if query else f"#/{self.view}"

    def arrange(self, page: Page, state: ListState) -> list[Row]:
        """Return the rows that fit, in order. Raises UsageError."""
        return Arrangement(state.where, state.sort).apply(self.rows(page), self.columns(page))

    def visible_columns(self, state: ListState) -> tuple[str, ...]:
        """Return the names of the columns to show."""
        return tuple(filter(None, map(unquote, state.show.split(",")))) or self.initial


AnyList = ListView[Any]


# drawing


def toolbar(view: AnyList, page: Page, state: ListState, *more: str) -> Markup:
    """Draw the filter with its suggestions, and the menus of columns, groups and saved filters."""
    columns = view.columns(page)
    listed = f"{view.name}-offers"
    filter_field = form.filter_field(
        f"{view.name}-where", state.where, view.do("filter"), view.hint, "where"
    )
    offers = Markup('<datalist id="{}"{}></datalist>').format(
        listed, attributes(offers=json.dumps(filter_offers(view, page, columns)))
    )
    menus = [filter_field + offers]
    if view.groups:
        labels = [(name, f"By {name}") for name in view.groups]
        change = Markup(' class="short" aria-label="Groups"{}').format(
            form.on_change(view.do("group"))
        )
        menus.append(form.select("group", labels, state.group, blank="No groups", more=change))
    if view.orders:
        labels = [(name, f"By {name}") for name in view.orders]
        change = Markup(' class="short" aria-label="Order"{}').format(
            form.on_change(view.do("sort"))
        )
        chosen = state.sort.removeprefix("-")
        menus.append(form.select("column", labels, chosen, blank="As listed", more=change))
    if view.initial:
        menus.append(columns_menu(view, columns, state))
    menus.append(saved_menu(view, page))
    title = "Save the rows that fit the filter as CSV, with all columns"
    menus.append(html.button("Export", view.do("export"), title=title))
    return Markup('<div class="listbar" data-form data-problems>{}{}</div>').format(
        Markup().join(menus), Markup().join(more)
    )


def filter_bar(view: AnyList, page: Page, event: Event) -> Markup:
    """Draw the filter of a list that is long, or filtered already."""
    state = view.state(event)
    try:
        is_long = len(view.rows(page)) > (1 if view.orders else SHORT)
    except RalleError:
        is_long = False
    if not (is_long or state.where):
        return Markup()
    bar = toolbar(view, page, state)
    return Markup('<div id="{}-toolbar">{}</div>').format(view.name, bar)


def filter_offers(
    view: AnyList, page: Page, columns: Sequence[ListColumn[Any]]
) -> dict[str, list[str]]:
    """Return column → its values if they are texts, for the suggestions of the filter."""
    offers: dict[str, list[str]] = {}
    rows = view.rows(page)[:MOST_READ]
    for column in columns:
        cells: set[Any] = set()
        if column.kind in TEXTUAL and column.name not in UNLISTED:
            cells = {column.value(row) for row in rows}
        texts = {text for cell in cells for text in (cell if isinstance(cell, tuple) else (cell,))}
        offers[column.name] = sorted(str(text) for text in texts if text)[:MOST_OFFERS]
    return offers


def columns_menu(view: AnyList, columns: Sequence[ListColumn[Any]], state: ListState) -> Markup:
    """Draw the menu with a box for each column."""
    labels = {column.name: column.label for column in columns if column.name != "name"}
    visible = view.visible_columns(state)
    boxes = Markup().join(
        Markup(
            '<label class="check"><input type="checkbox" name="show" value="{}"{}{}> {}</label>'
        ).format(
            name,
            Markup(" checked") if name in visible else html.NOTHING,
            form.on_change(view.do("show")),
            label,
        )
        for name, label in {**view.more, **labels}.items()
    )
    return Markup(
        '<details class="menu wide-menu" id="{}-columns"><summary class="button">Columns</summary>'
        '<div class="boxes">{}</div></details>'
    ).format(view.name, boxes)


def saved_menu(view: AnyList, page: Page) -> Markup:
    """Draw the menu of saved filters."""
    try:
        saved, broken = read_saved_lists(page.workspace.path, view.name), Markup()
    except BadFileError as error:
        saved, broken = {}, html.problem(error)
    lines = Markup().join(
        Markup('<div class="row">{}{}</div>').format(
            html.link(name, f"#/{view.view}?{query}", ""),
            html.button("✕", view.do("forget"), kind="quiet", title=f"Remove {name}", saved=name),
        )
        for name, query in saved.items()
    )
    save_button = html.button("Save this filter …", view.do("ask_save"))
    return Markup(
        '<details class="menu wide-menu"><summary class="button" title="Saved filters of {}">Saved</summary>'
        "<div>{}{}{}</div></details>"
    ).format(view.name, broken, lines, save_button)


def head(view: AnyList, column: ListColumn[Any], state: ListState, label: str = "") -> Markup:
    """Draw the head of a column as a button that sorts."""
    order = sort_order(state, column.name)
    sign = {"ascending": "↑", "descending": "↓"}.get(order, "")
    arrow = Markup(' <i aria-hidden="true">{}</i>').format(sign) if sign else Markup()
    title = f"Sort by {column.label}" + (f": {column.about}" if column.about else "")
    named = (
        Markup(' aria-label="{}, {}"').format(column.label, view.name) if view.prefix else Markup()
    )
    return Markup('<button type="button" class="sort" title="{}"{}{}>{}{}</button>').format(
        title,
        named,
        attributes(do=view.do("sort"), column=column.name),
        label or column.label,
        arrow,
    )


def sort_order(state: ListState, name: str) -> str:
    """Return a column's value of ``aria-sort``."""
    if state.sort.removeprefix("-") != name:
        return "none"
    return "descending" if state.sort.startswith("-") else "ascending"


def table(
    view: AnyList,
    page: Page,
    state: ListState,
    heads: Sequence[tuple[str, str]],
    line: Callable[[Any], Sequence[str]],
    *,
    kind: str = "",
    address: Callable[[Any], str] | None = None,
) -> Markup:
    """Draw a list as a table: heads (column or "", label), and the cells of each row. A fault of the filter takes the
    place of the rows.
    """
    try:
        rows = view.arrange(page, state)
    except RalleError as error:
        return html.problem(error)
    columns, drawn, sorts = view.columns(page), list[str](), list[str]()
    for name, label in heads:
        column = find_column(columns, name) if name else None
        side = Markup(">") if label.startswith(">") or (column and column.is_number) else Markup()
        text = label.lstrip(">")
        drawn.append(side + (head(view, column, state, text) if column else escape(text)))
        sorts.append(sort_order(state, name) if column else "")
    if not rows:
        return html.note("Nothing fits the filter.")
    return html.rows(
        drawn,
        [line(row) for row in rows],
        kind=kind,
        addresses=[address(row) for row in rows] if address else (),
        sorts=sorts,
    )


# actions


def show(view: AnyList, page: Page, event: Event, state: ListState) -> Patch:
    """Return the patch for a new state of the list, which is in the address from then on."""
    columns = view.columns(page)
    filter_rows((), columns, state.where)
    sort_rows((), columns, state.sort)
    return Patch(dict(view.draw(page, event, state)), address=view.address(event, state))


def set_filter(view: AnyList, page: Page, event: Event) -> Patch:
    """Filter the list; a fault is visible at the field, and the list stays as it is."""
    state = replace(view.state(event), where=event.text("where"))
    return show(view, page, event, state) | Patch(sound=True)


def set_sort(view: AnyList, page: Page, event: Event) -> Patch:
    """Sort by a column: texts from A, numbers and dates from the largest; then the other way round; then not."""
    name, before = event.text("column"), view.state(event)
    if view.orders and not name:
        return show(view, page, event, replace(before, sort=""))
    column = find_column(view.columns(page), name)
    first = name if column is None or column.kind in TEXTUAL else f"-{name}"
    second = f"-{name}" if first == name else name
    sort = {"": first, first: second, second: ""}.get(before.sort, first)
    return show(view, page, event, replace(before, sort=sort))


def set_columns(view: AnyList, page: Page, event: Event) -> Patch:
    """Show the ticked columns; a new one comes last."""
    ticked, visible = event.many("show"), view.visible_columns(view.state(event))
    names = [*(n for n in visible if n in ticked), *(n for n in ticked if n not in visible)]
    chosen = (
        "" if tuple(names) == view.initial else ",".join(quote(name, safe="") for name in names)
    )
    return show(view, page, event, replace(view.state(event), show=chosen))


def set_group(view: AnyList, page: Page, event: Event) -> Patch:
    group = event.choice("group", ("", *view.groups))
    return show(view, page, event, replace(view.state(event), group=group, folded=""))


def fold(view: AnyList, page: Page, event: Event) -> Patch:
    """Fold or unfold a group."""
    state = view.state(event)
    return show(
        view, page, event, state.with_folded(state.folded_groups ^ {event.raw_text("fold")})
    )


def export(view: AnyList, page: Page, event: Event) -> Patch:
    """Download the rows that fit the filter as CSV, with all columns under the names that filters use."""
    columns = view.columns(page)
    rows = view.arrange(page, view.state(event))
    lines: list[list[object]] = [[column.name for column in columns]]
    lines += [[_plain_value(column.value(row)) for column in columns] for row in rows]
    return Patch(download=Download(f"{view.name}.csv", csv_lines(lines)))


def _plain_value(cell: Cell) -> object:
    return list(cell) if isinstance(cell, tuple) else cell


def clear(view: AnyList, page: Page, event: Event) -> Patch:
    """Remove the filter."""
    return Patch(go=view.address(event, replace(view.state(event), where="")))


def ask_save(view: AnyList, page: Page, event: Event) -> Patch:
    more = form.on_enter(view.do("save"))
    body = form.text("as", "Name", view.state(event).where[:60], more=more)
    note = "Saved in the workspace: the filter, order, columns and groups of this list."
    return panels.ask("Save the filter", body + html.note(note), "Save", view.do("save"))


def save(view: AnyList, page: Page, event: Event) -> Patch:
    """Save the state of the list under a name."""
    query = view.address(event, view.state(event)).partition("?")[2]
    own = [(key, value) for key, value in parse_qsl(query) if key.startswith(view.prefix)]
    save_list(
        page.workspace.path,
        view.name,
        event.text("as"),
        urlencode(own, quote_via=quote) or "where=",
    )
    saved = Patch(dialog="", say=f"The filter is saved as {event.text('as')}.")
    return _with_toolbar(view, page, event) | saved


def forget(view: AnyList, page: Page, event: Event) -> Patch:
    """Remove a saved filter."""
    save_list(page.workspace.path, view.name, event.text("saved"), "")
    return _with_toolbar(view, page, event)


def _with_toolbar(view: AnyList, page: Page, event: Event) -> Patch:
    return Patch({f"{view.name}-toolbar": toolbar(view, page, view.state(event))})
