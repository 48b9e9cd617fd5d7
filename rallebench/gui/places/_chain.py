"""The chain as fields of the page, and the fields as a chain. The fields are the chain: an edit is never elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event
from rallebench.gui.html import button, e, menu
from rallebench.services.chain_forms import MAX_ACTIONS, checked_generation
from rallebench.services.workbench import Workbench

KINDS = {"retrieve": "Retrieve", "generate": "Generate", "identity": "Pass on"}
DIALECTS = [("fstring", "f-string"), ("eval", "eval")]
OWN = ("max_tokens", "temperature", "seed", "stop", "system")
"""Settings of a generate action that have fields of their own."""

HINTS = {
    "fstring": "{question} {response[0]} {prompt[0]} {documents[0][0][title]} {history}",
    "eval": "'; '.join(d['text'] for d in documents[0][:3])",
}


def read_chain(event: Event) -> Chain:
    """The fields → Chain. Raises UsageError naming the action and the field."""
    count = int(event.text("count", "0") or 0)
    if not 1 <= count <= MAX_ACTIONS:
        raise UsageError("The chain on this page is older than the program; reload the page.")
    name = event.text("name") or "untitled"
    return Chain(name, tuple(_read(event, i) for i in range(count)), event.text("about"))


def _read(event: Event, index: int) -> Action:
    def raw(field: str) -> str:
        value = event.data.get(f"a{index}_{field}", "")
        return str(value[0] if isinstance(value, list) else value).replace("\r\n", "\n")

    kind, where = raw("kind"), f"Action {index + 1}"
    k = event.whole(f"a{index}_k", f"{where}: k") if kind == "retrieve" else 5
    if k is not None and not 1 <= k <= 10_000:
        raise UsageError(f"{where}: k is {k}; it must be a whole number from 1 to 10000.")
    generation = _generation(event, index, where, raw) if kind == "generate" else {}
    target = "" if kind == "identity" else raw("target").strip()
    return Action(kind, raw("template"), raw("dialect") or "fstring", target, k or 5, generation)  # type: ignore[arg-type]


def _generation(event: Event, index: int, where: str, raw: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if raw("options").strip():
        try:
            settings = json.loads(raw("options"))
        except ValueError as error:
            raise UsageError(f"{where}: the other settings are not valid JSON ({error}).") from None
        if not isinstance(settings, dict):
            raise UsageError(
                f'{where}: the other settings must be a JSON object, as in {{"top_p": 0.9}}.'
            )
    for name, label in (("max_tokens", "tokens at most"), ("seed", "seed")):
        if (whole := event.whole(f"a{index}_{name}", f"{where}: {label}")) is not None:
            settings[name] = whole
    if (number := event.number(f"a{index}_temperature", f"{where}: temperature")) is not None:
        settings["temperature"] = int(number) if number == int(number) else number
    if raw("system"):
        settings["system"] = raw("system")
    stops = [
        line.encode("latin-1", "backslashreplace").decode("unicode_escape")
        if "\\" in line
        else line
        for line in raw("stop").split("\n")
        if line
    ]
    if stops:
        settings["stop"] = stops
    return checked_generation(settings, where)


def summary(action: Action) -> str:
    """What an action asks, in a few words.

    >>> summary(Action("retrieve", "{question}", target="wiki", k=3))
    'wiki · k 3'
    """
    if action.kind == "identity":
        return "the text of its template"
    words = [action.target or "nothing chosen"]
    if action.kind == "retrieve":
        words.append(f"k {action.k}")
    if "max_tokens" in action.generation:
        words.append(f"{action.generation['max_tokens']} tokens at most")
    return " · ".join(words)


def fields_in(action: Action, index: int) -> str:
    """The names that the template of an action may use, those of earlier actions only."""
    names = ["{question}"]
    for earlier in range(index):
        names += [f"{{response[{earlier}]}}", f"{{documents[{earlier}]}}"]
    names.append("{history}")
    return "Fields " + " ".join(f"<code>{e(name)}</code>" for name in names)


def editor(workbench: Workbench, action: Action, index: int) -> str:
    """The fields of an action."""
    key, generation = f"a{index}_", action.generation
    parts = [f'<input type="hidden" name="{key}kind" value="{action.kind}">']
    if action.kind == "retrieve":
        names = list(workbench.workspace.retrievers())
        chosen = labelled("Index", select(f"{key}target", names, action.target, blank="Choose one"))
        k = labelled(
            "k", f'<input type="number" name="{key}k" min="1" max="10000" value="{action.k}">'
        )
        parts.append(f'<div class="field-pair">{chosen}{k}</div>')
    elif action.kind == "generate":
        names = list(workbench.workspace.llms())
        chosen = labelled("Model", select(f"{key}target", names, action.target, blank="Choose one"))
        most = _number(f"{key}max_tokens", generation.get("max_tokens"))
        parts.append(f'<div class="field-pair">{chosen}{labelled("Tokens at most", most)}</div>')
    title = {"retrieve": "Query", "generate": "Prompt"}.get(action.kind, "Text")
    text = (
        f'<textarea class="mono" name="{key}template" id="{key}template" rows="2" spellcheck="false" '
        f'placeholder="{e(HINTS.get(action.dialect, ""))}">\n{e(action.template)}</textarea>'
    )
    parts += [labelled(title, text), f'<small class="names">{fields_in(action, index)}</small>']
    parts.append(
        f'<details class="fold" id="{key}more"><summary>More settings</summary>{_more(action, key)}</details>'
    )
    return "".join(parts)


def _more(action: Action, key: str) -> str:
    dialect = labelled("Template", select(f"{key}dialect", DIALECTS, action.dialect))
    if action.kind != "generate":
        return f'<div class="fields">{dialect}</div>'
    generation = action.generation
    other = {name: value for name, value in generation.items() if name not in OWN}
    stops = "\n".join(stop.replace("\n", "\\n") for stop in generation.get("stop", ()))
    fields = [
        dialect,
        labelled("Temperature", _number(f"{key}temperature", generation.get("temperature"), "any")),
        labelled("Seed", _number(f"{key}seed", generation.get("seed"))),
        labelled(
            "Stop texts, one a line", f'<textarea name="{key}stop" rows="1">\n{e(stops)}</textarea>'
        ),
        labelled(
            "System prompt",
            f'<textarea name="{key}system" rows="1">\n{e(generation.get("system", ""))}</textarea>',
        ),
        labelled(
            "Other settings, JSON",
            f'<input name="{key}options" value="{e(json.dumps(other, ensure_ascii=False) if other else "")}">',
        ),
    ]
    return f'<div class="fields">{"".join(fields)}</div>'


def _number(name: str, value: Any, step: str = "1") -> str:
    return f'<input type="number" name="{name}" step="{step}" value="{"" if value is None else e(value)}" placeholder="auto">'


def action_menu(index: int, count: int) -> str:
    """Moving, removing and running one action."""
    return menu(
        button("Run this action", "build.action", index=index),
        button("Show the prompt", "build.prompt", index=index),
        button("Move up", "build.move", index=index, by=-1, disabled=index == 0),
        button("Move down", "build.move", index=index, by=1, disabled=index == count - 1),
        button("Remove", "build.remove", index=index, kind="danger", disabled=count == 1),
        label=f"Action {index + 1}",
    )


def draw(
    workbench: Workbench,
    chain: Chain,
    outputs: Mapping[int, str],
    gists: Mapping[int, str],
    opened: int | None = None,
) -> str:
    """All actions, one line each, which opens into its fields and its output."""
    count = len(chain.actions)
    rows = "".join(
        _row(workbench, action, index, count, outputs, gists, index == opened)
        for index, action in enumerate(chain.actions)
    )
    more = "".join(
        button(f"+ {label}", "build.add", kind="dashed", add=kind, disabled=count >= MAX_ACTIONS)
        for kind, label in KINDS.items()
    )
    hidden = f'<input type="hidden" name="count" value="{count}"><input type="hidden" name="about" value="{e(chain.about)}"><input type="hidden" name="name" value="{e(chain.name)}">'
    return f'{hidden}{rows}<div class="row add">{more}</div>'


def _row(
    workbench: Workbench,
    action: Action,
    index: int,
    count: int,
    outputs: Mapping[int, str],
    gists: Mapping[int, str],
    opened: bool,
) -> str:
    return (
        f'<details class="act" id="act-{index}"{" open" if opened else ""}><summary><b class="no">{index + 1}</b><strong>{KINDS[action.kind]}</strong>'
        f'<span class="what">{e(summary(action))}</span><span class="gap"></span><span class="gist" id="gist-{index}">{gists.get(index, "")}</span>{action_menu(index, count)}</summary>'
        f'<div class="body"><div class="edit">{editor(workbench, action, index)}</div><div class="out" id="out-{index}">{outputs.get(index, "")}</div></div></details>'
    )


def edited(chain: Chain, verb: str, index: int = 0, by: int = 0, kind: str = "") -> Chain:
    """The chain with an action added, removed or moved. Raises UsageError."""
    actions: Sequence[Action] = chain.actions
    rows = list(actions)
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
