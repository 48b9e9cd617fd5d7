"""Convert a chain to form fields and back. The fields are the only copy of an edited chain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from rallebench.core.entries import MAX_ACTIONS
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.core.types import Action, Chain, Json
from rallebench.gui import form, html
from rallebench.gui.events import Event
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch
from rallebench.services.workbench import Workbench
from rallebench.views.chain_forms import read_generation

KINDS = {"retrieve": "Retrieve", "generate": "Generate", "identity": "Pass on"}
DIALECTS = [("fstring", "f-string"), ("eval", "eval")]
NUMBERS = {"max_tokens": "Tokens at most", "temperature": "Temperature", "seed": "Seed"}
OWN = (*NUMBERS, "stop", "system")
"""Settings of a generate action that have their own fields."""

HINTS = {
    "fstring": "{question} {response[0]} {prompt[0]} {documents[0][0][title]} {history}",
    "eval": "'; '.join(d['text'] for d in documents[0][:3])",
}


def read_chain(event: Event) -> Chain:
    """Return the chain in the form. Raises UsageError that names the action and the field."""
    count = event.whole("count") or 0
    if not 1 <= count <= MAX_ACTIONS:
        raise UsageError("The chain on this page is older than the program; reload the page.")
    name = event.text("name") or "untitled"
    return Chain(name, tuple(_read(event, i) for i in range(count)), event.text("about"))


def _read(event: Event, index: int) -> Action:
    key, where = f"a{index}_", f"Action {index + 1}"
    kind, target = event.text(f"{key}kind"), event.text(f"{key}target")
    k = event.whole(f"{key}k", f"{where}: k") if kind == "retrieve" else None
    is_empty = kind == "retrieve" and k is None and event.has(f"{key}k")
    if is_empty or (k is not None and not 1 <= k <= 10_000):
        value = "empty" if k is None else k
        raise UsageError(
            f"{where}: k is {value}; it must be a whole number from 1 to 10000.", f"{key}k"
        )
    generation = _generation(event, key, where) if kind == "generate" else {}
    target = "" if kind == "identity" else target
    dialect = event.text(f"{key}dialect") or "fstring"
    return Action(kind, event.raw_text(f"{key}template"), dialect, target, k or 5, generation)  # type: ignore[arg-type]


def _generation(event: Event, key: str, where: str) -> Json:
    try:
        settings = json.loads(event.text(f"{key}options") or "{}")
    except ValueError as error:
        raise UsageError(f"{where}: the other settings are not valid JSON ({error}).") from None
    if not isinstance(settings, dict):
        raise UsageError(
            f'{where}: the other settings must be a JSON object, as in {{"top_p": 0.9}}.'
        )
    for name, label in NUMBERS.items():
        if (number := event.number(f"{key}{name}", f"{where}: {label.lower()}")) is not None:
            settings[name] = int(number) if number == int(number) else number
    if system := event.raw_text(f"{key}system"):
        settings["system"] = system
    if stops := [_unescape(line) for line in event.raw_text(f"{key}stop").split("\n") if line]:
        settings["stop"] = stops
    return read_generation(settings, where)


def _unescape(line: str) -> str:
    r"""Replace each typed \n in a stop text by a line break."""
    if "\\" not in line:
        return line
    return line.encode("latin-1", "backslashreplace").decode("unicode_escape")


def summary(action: Action) -> str:
    """Summarise the request of an action in a few words.

    >>> summary(Action("retrieve", "{question}", target="wiki", k=3))
    'wiki · k 3'
    """
    if action.kind == "identity":
        return "the text of its template"
    k = f"k {action.k}" if action.kind == "retrieve" else ""
    most = action.generation.get("max_tokens")
    tokens = "" if most is None else f"{plural(most, 'token')} at most"
    return html.join_facts(action.target or "nothing chosen", k, tokens)


def summaries(chain: Chain) -> Patch:
    """Return a patch with the summary line of every action."""
    return Patch({f"what-{i}": escape(summary(action)) for i, action in enumerate(chain.actions)})


def editor(workbench: Workbench, action: Action, index: int, state: str) -> Markup:
    """Draw the fields of an action; its template may use the outputs of earlier actions. ``state``: the line below it."""
    key, space = f"a{index}_", workbench.workspace
    pair, title = Markup(), "Text"
    if action.kind == "retrieve":
        title, names = "Query", list(space.retrievers())
        pair = form.chooser("Index", f"{key}target", names, action.target, blank="Choose one")
        pair += form.number(f"{key}k", "k", action.k, 1, hint="5", more=Markup(' max="10000"'))
    elif action.kind == "generate":
        title, names = "Prompt", list(space.llms())
        pair = form.chooser("Model", f"{key}target", names, action.target, blank="Choose one")
        pair += _number(action, key, "max_tokens")
    hint = escape(HINTS.get(action.dialect, ""))
    names = variables(index)
    written = Markup(" ").join(Markup("<code>{{{}}}</code>").format(name) for name in names)
    more = Markup(
        ' class="mono" id="{}template" spellcheck="false" placeholder="{}" data-variables="{}"'
    ).format(key, hint, json.dumps(names))
    return (
        form.hidden_fields(**{f"{key}kind": action.kind})
        + (Markup('<div class="field-pair">{}</div>').format(pair) if pair else Markup())
        + Markup('<div class="with-editor">{}</div>').format(
            form.area(f"{key}template", title, action.template, 2, more)
        )
        + Markup(
            '<div class="below-template"><small class="names">Variables {}</small>'
            '<div class="template-state" id="{}state">{}</div></div>'
        ).format(written, key, state)
        + html.fold("More settings", _more(action, key), id=f"{key}more")
    )


def variables(index: int) -> list[str]:
    """Return the variables that the template of an action may use, each as it is written there.

    >>> variables(1)
    ['question', 'response[0]', 'prompt[0]', 'documents[0]', 'wiki_id_title[0]', 'history']
    """
    earlier = [
        f"{name}[{i}]"
        for i in range(index)
        for name in ("response", "prompt", "documents", "wiki_id_title")
    ]
    return ["question", *earlier, "history"]


def _number(action: Action, key: str, name: str) -> Markup:
    step = Markup(' step="any"') if name == "temperature" else Markup()
    value = action.generation.get(name)
    return form.number(f"{key}{name}", NUMBERS[name], value, hint="auto", more=step)


def _more(action: Action, key: str) -> Markup:
    controls = [form.chooser("Template", f"{key}dialect", DIALECTS, action.dialect)]
    if action.kind == "generate":
        generation = action.generation
        other = {name: value for name, value in generation.items() if name not in OWN}
        stops = "\n".join(stop.replace("\n", "\\n") for stop in generation.get("stop", ()))
        options = json.dumps(other, ensure_ascii=False) if other else ""
        controls += [
            _number(action, key, "temperature"),
            _number(action, key, "seed"),
            form.area(f"{key}stop", "Stop texts, one a line", stops),
            form.area(f"{key}system", "System prompt", generation.get("system", "")),
            form.text(f"{key}options", "Other settings, JSON", options),
        ]
    return form.fields(*controls)


def hidden_fields(chain: Chain) -> Markup:
    """Draw the fields that a chain's form sends in addition to its actions."""
    return form.hidden_fields(count=len(chain.actions), about=chain.about, name=chain.name)


def draw(
    workbench: Workbench,
    chain: Chain,
    outputs: Mapping[int, str],
    gists: Mapping[int, str],
    states: Sequence[str],
    opened: int | None = None,
) -> Markup:
    """Draw all actions, one line each; a line opens to show the action's fields and output."""
    count, rows = len(chain.actions), Markup()
    for index, action in enumerate(chain.actions):
        menu = html.menu(
            html.button("Run this action", "build.run_action", index=index),
            html.button("Show the prompt", "build.show_prompt", index=index),
            html.button("Move up", "build.move", index=index, by=-1, disabled=index == 0),
            html.button("Move down", "build.move", index=index, by=1, disabled=index == count - 1),
            html.button("Remove", "build.remove", index=index, kind="danger", disabled=count == 1),
            label=f"Action {index + 1}",
        )
        head = Markup(
            '<b class="no">{}</b><h2 class="part">{}</h2><span class="what" id="what-{}">{}</span>'
            '<span class="gap"></span><span class="gist" id="gist-{}">{}</span>'
        ).format(index + 1, KINDS[action.kind], index, summary(action), index, gists.get(index, ""))
        body = Markup('<div class="edit">{}</div><div class="out" id="out-{}">{}</div>').format(
            editor(workbench, action, index, states[index]), index, outputs.get(index, "")
        )
        opens = Markup(" open") if index == opened else html.NOTHING
        rows += Markup(
            '<div class="act-row"><details class="act" id="act-{}"{}><summary>{}</summary>'
            '<div class="body">{}</div></details>{}</div>'
        ).format(index, opens, head, body, menu)
    full = count >= MAX_ACTIONS
    more = Markup().join(
        html.button(f"+ {label}", "build.add", kind="dashed", disabled=full, add=kind)
        for kind, label in KINDS.items()
    )
    return Markup('{}{}<div class="row add">{}</div>').format(hidden_fields(chain), rows, more)


def edit_actions(chain: Chain, verb: str, index: int = 0, by: int = 0, kind: str = "") -> Chain:
    """Return the chain with an action added, removed or moved. Raises UsageError."""
    rows = list(chain.actions)
    if verb == "add":
        if len(rows) >= MAX_ACTIONS:
            raise UsageError(f"A chain has at most {MAX_ACTIONS} actions.")
        target = next((a.target for a in reversed(rows) if a.kind == kind), "")
        rows.append(Action(kind, "{question}", target=target))  # type: ignore[arg-type]
    elif verb == "remove":
        if len(rows) == 1:
            raise UsageError("A chain needs at least one action.")
        del rows[index]
    elif verb == "move" and 0 <= index + by < len(rows):
        rows[index], rows[index + by] = rows[index + by], rows[index]
    return Chain(chain.name, tuple(rows), chain.about)
