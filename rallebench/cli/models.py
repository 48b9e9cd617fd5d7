"""``models``: add, change, delete and test language models; list the models of a server."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import flag, settings, switch
from rallebench.cli.printing import drain, say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.settings import parse_settings
from rallebench.services import model_entries
from rallebench.views.answers import show_step

ACTIONS = ("add", "change", "delete", "ask", "find")


@VERBS.register(
    "models",
    about="add, change, delete and ask a language model; list the models of a server",
    example="rallebench models add tiny --preset smollm2-135m --set quantization=8bit",
    order=2,
    flags=(
        flag("action", "ACTION", ", ".join(ACTIONS), choices=ACTIONS),
        flag("name", "NAME", "of the model; find: not needed", nargs="?", default=""),
        flag("prompt", "PROMPT", "ask: what to ask it", nargs="?", default=""),
        flag("--preset", "P", "begin with this one: rallebench list presets", default=""),
        flag("--backend", "B", "without a preset: rallebench list backends", default=""),
        flag("--base-url", "URL", "find: the server's address", default=""),
        switch("--converted", "delete: only the converted copy of its GGUF file"),
        flag("--api-key-env", "V", "find: the variable that holds its key", default=""),
        settings("a setting of the model, as in model=llama3.2 or quantization=4bit"),
    ),
)
def models(args: argparse.Namespace) -> Result:
    """Manage the language models of the workspace (``llms.json``)."""
    if args.action != "find" and not args.name.strip():
        raise UsageError(f"models {args.action} needs the name of a model.")
    if args.action != "ask" and args.prompt:
        raise UsageError(f"models {args.action} takes one name; {args.prompt!r} is one too many.")
    verbs = {"add": _add, "change": _add, "delete": _delete, "ask": _ask, "find": _find}
    return verbs[args.action](args)


def _add(args: argparse.Namespace) -> Result:
    workbench = open_workbench(args)
    change = args.action == "change"
    if args.preset and args.backend:
        raise UsageError("A preset has its backend; give --preset or --backend.")
    if not (args.preset or args.backend or change):
        raise UsageError(
            "Give --preset (rallebench list presets) or --backend (rallebench list backends)."
        )
    entry = model_entries.build_entry(
        workbench.workspace,
        parse_settings(args.set),
        preset=args.preset,
        backend=args.backend,
        changes=args.name if change else "",
    )
    sentences = workbench.models.add(args.name, entry, replace=change)
    value = {
        "name": args.name.strip(),
        "backend": entry.backend,
        "settings": entry.settings,
        "said": sentences,
    }
    return Result(value, tuple(sentences))


def _delete(args: argparse.Namespace) -> Result:
    workbench = open_workbench(args)
    if args.converted:
        sentence = workbench.models.delete_converted(args.name)
        return Result({"name": args.name, "said": [sentence]}, (sentence,))
    users = workbench.workspace.users(args.name, "language model")
    sentence = workbench.models.delete(args.name)
    return Result({"name": args.name, "users": users, "said": [sentence]}, (sentence,))


def _ask(args: argparse.Namespace) -> Result:
    if not args.prompt.strip():
        raise UsageError('The prompt is empty: rallebench models ask NAME "Who discovered Titan?"')
    workbench = open_workbench(args)
    drain(workbench.models.load(args.name, "language model"))
    step = workbench.asking.ask_model(args.name, args.prompt)
    if step.reply.note:
        say(step.reply.note)
    answer = show_step(step, workbench.models.prices_of_use())
    return Result({"name": args.name, **answer.to_json()}, (answer.response,))


def _find(args: argparse.Namespace) -> Result:
    workbench = open_workbench(args)
    own = {"base_url": args.base_url, "api_key_env": args.api_key_env}
    settings = {**parse_settings(args.set), **{key: value for key, value in own.items() if value}}
    server = model_entries.server_settings(
        workbench.workspace, settings, preset=args.preset, model=args.name
    )
    url = server.get("base_url")
    if not url:
        raise UsageError(
            "Give the server's address: --base-url http://127.0.0.1:8000/v1, or --preset ollama."
        )
    names = list(model_entries.server_models(server))
    lines = names or [f"{url} has no models yet; load one there first."]
    return Result({"base_url": url, "models": names}, tuple(lines))
