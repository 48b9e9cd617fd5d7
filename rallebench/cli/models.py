"""``models``: add, change, delete and try a language model; find those of a server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.ask import step_json
from rallebench.cli.verbs import VERBS, drain, say, settings_flag, workbench_of
from rallebench.core.errors import UsageError
from rallebench.core.types import Generate
from rallebench.llms.presets import entry_of
from rallebench.workspace.entries import LLMEntry
from rallebench.workspace.paths import parse_settings

ACTIONS = ("add", "change", "delete", "ask", "find")


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="of the model; find: not needed"
    )
    parser.add_argument(
        "prompt", nargs="?", default="", metavar="PROMPT", help="ask: what to ask it"
    )
    parser.add_argument(
        "--preset", default="", metavar="P", help="begin with this one: rallebench list presets"
    )
    parser.add_argument(
        "--backend", default="", metavar="B", help="without a preset: rallebench list backends"
    )
    parser.add_argument("--base-url", default="", metavar="URL", help="find: the server's address")
    parser.add_argument(
        "--api-key-env", default="", metavar="V", help="find: the variable that holds its key"
    )
    settings_flag(parser, "a setting of the model, as in model=llama3.2 or quantization=4bit")


def _plain(value: Mapping[str, Any]) -> str:
    if "models" in value:
        return (
            "\n".join(value["models"])
            or f"{value['base_url']} has no models yet; load one there first."
        )
    return str(value.get("response") or "\n".join(value.get("said", [])))


@VERBS.register(
    "models",
    about="add, change, delete and ask a language model; find those of a server",
    example="rallebench models add tiny --preset smollm2-135m --set quantization=8bit",
    order=2,
    flags=_flags,
    plain=_plain,
)
def models(args: argparse.Namespace) -> dict[str, Any]:
    """Work on the workspace's own entries (``llms.json``)."""
    if args.action != "find" and not args.name.strip():
        raise UsageError(f"models {args.action} needs the name of a model.")
    if args.action != "ask" and args.prompt:
        raise UsageError(f"models {args.action} takes one name; {args.prompt!r} is one too many.")
    does = {"add": _add, "change": _add, "delete": _delete, "ask": _ask, "find": _find}
    return does[args.action](args)


def _add(args: argparse.Namespace) -> dict[str, Any]:
    workbench, settings = workbench_of(args), parse_settings(args.set)
    change = args.action == "change"
    if args.preset and args.backend:
        raise UsageError("A preset has its backend; give --preset or --backend.")
    if args.preset:
        entry = entry_of(args.preset, settings)
    elif change and not args.backend:
        before = workbench.models.entry(args.name)
        entry = LLMEntry(backend=before.backend, settings={**before.settings, **settings})
    elif args.backend:
        entry = LLMEntry(backend=args.backend, settings=settings)
    else:
        raise UsageError(
            "Give --preset (rallebench list presets) or --backend (rallebench list backends)."
        )
    said = workbench.models.add(args.name, entry, replace=change)
    return {
        "name": args.name.strip(),
        "backend": entry.backend,
        "settings": entry.settings,
        "said": said,
    }


def _delete(args: argparse.Namespace) -> dict[str, Any]:
    workbench = workbench_of(args)
    users = workbench.models.users(args.name)
    return {"name": args.name, "users": users, "said": [workbench.models.delete(args.name)]}


def _ask(args: argparse.Namespace) -> dict[str, Any]:
    if not args.prompt.strip():
        raise UsageError('The prompt is empty: rallebench models ask NAME "Who discovered Titan?"')
    workbench = workbench_of(args)
    drain(workbench.load(args.name, "language model"))
    step = workbench.ask_model(args.name, args.prompt)
    assert isinstance(step.request, Generate)
    if step.reply.note:
        say(step.reply.note)
    return {"name": args.name, **step_json(step, workbench.prices())}


def _find(args: argparse.Namespace) -> dict[str, Any]:
    workbench, settings = workbench_of(args), parse_settings(args.set)
    if args.preset:
        settings = {**entry_of(args.preset).settings, **settings}
    elif args.name:
        settings = {**workbench.workspace.llm(args.name).settings, **settings}
    settings |= {"base_url": args.base_url} if args.base_url else {}
    settings |= {"api_key_env": args.api_key_env} if args.api_key_env else {}
    if not settings.get("base_url"):
        raise UsageError(
            "Give the server's address: --base-url http://127.0.0.1:8000/v1, or --preset ollama."
        )
    return {"base_url": settings["base_url"], "models": list(workbench.models.served(settings))}
