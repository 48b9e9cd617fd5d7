"""Writes what comes from the code: the generated parts of ``docs/`` (verbs, metrics, registries with their settings), and
``rallebench/registered.json``, the names that are listed without importing what they name. Then records new names, flags and keys
in the inventories of ``tests/safety``, which fail if any is gone.

    python -m tools.docs            write them
    python -m tools.docs --check    write nothing; name the files that are out of date and exit with 1

A generated part stands between ``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``; the text around it is written by hand.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import rallebench
from rallebench.core import registered
from rallebench.core.registry import ROOMS, Registry
from rallebench.core.registry import all as all_registries

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
INVENTORY = PROJECT / "tests" / "safety" / "test_inventory.py"
COMMAND = "python -m tools.docs"

_PART = re.compile(r"(<!-- begin: ([\w-]+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


# ── Markdown ─────────────────────────────────────────────────────────────────


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *(map(_cell, row) for row in rows)]
    first, rule, *others = (list(line) for line in lines)
    return "\n".join([_row(first), "|" + "|".join(rule) + "|", *(_row(line) for line in others)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# ── verbs ────────────────────────────────────────────────────────────────────


def verbs() -> str:
    """Every verb of the command line: what it does, an example, its flags."""
    parsers = _verb_parsers()
    common = set.intersection(*({_name(a) for a in _flags(p)} for p in parsers.values()))
    first = next(iter(parsers.values()))
    parts = [
        "## Every verb",
        table(
            ["verb", "what it does"],
            ([f"[`{name}`](#{name})", _about(p)] for name, p in parsers.items()),
        ),
        "Flags of every verb, before it or behind it:",
        _flag_table(a for a in _flags(first) if _name(a) in common),
    ]
    for name, parser in parsers.items():
        own = [action for action in _flags(parser) if _name(action) not in common]
        example = str(parser.epilog or "").removeprefix("example: ")
        parts += [f"### {name}", f"{_about(parser)}.", f"```bash\n{example}\n```"]
        parts += [_flag_table(own, parser)] if own else []
    return "\n\n".join(parts)


def _verb_parsers() -> Mapping[str, argparse.ArgumentParser]:
    # ``rallebench.cli`` has a function of the module's name.
    command_line = importlib.import_module("rallebench.cli.main")
    for action in command_line._parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {name: parser.with_flags() for name, parser in action.choices.items()}
    raise AssertionError("the command line has verbs")


def _about(parser: argparse.ArgumentParser) -> str:
    return str(parser.description or "").rstrip(".")


def _flags(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [a for a in parser._actions if a.help != argparse.SUPPRESS and a.dest != "help"]


def _name(action: argparse.Action) -> str:
    """The flag with its value, ``--limit N``; of an argument without a flag its name."""
    metavar = action.metavar
    if isinstance(metavar, tuple):
        metavar = " ".join(metavar)
    if metavar is None and action.choices is not None:
        metavar = "|".join(map(str, action.choices))
    if not action.option_strings:
        return str(metavar or action.dest)
    value = "" if action.nargs == 0 else f" {metavar or action.dest.upper()}"
    return f"{', '.join(action.option_strings)}{value}"


def _flag_table(
    actions: Iterable[argparse.Action], parser: argparse.ArgumentParser | None = None
) -> str:
    return table(["flag", "meaning"], ([_code(_name(a)), _help(a)] for a in actions))


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": "rallebench"}
    choices = action.choices is not None and action.metavar is not None
    parts = [text, f"one of {', '.join(map(str, action.choices or ()))}" if choices else ""]
    required = "required" if action.required and action.option_strings else ""
    return "; ".join(filter(None, [*parts, required]))


# ── metrics ──────────────────────────────────────────────────────────────────


def metrics() -> str:
    """One row a metric, one for all cut-offs of a family, from the cards."""
    from rallebench.metrics import METRICS, read_card

    cards = {re.sub(r"@\d+$", "@k", name): read_card(name) for name in METRICS.names()}
    return table(
        ["name", "what it is", "range", "better", "needs", "source"],
        (
            [
                _code(f"{name}:MODEL" if METRICS.is_judge(name) else name),
                card.definition,
                card.bounds,
                {True: "higher", False: "lower", None: "–"}[card.higher_is_better],
                card.requirements,
                card.source,
            ]
            for name, card in sorted(cards.items(), key=lambda pair: pair[0].lower())
        ),
    )


# ── registries ───────────────────────────────────────────────────────────────

ELSEWHERE = {"METRICS", "VERBS"}
"""Registries that have a page of their own."""

FRONT_ENDS = {"rallebench.cli", "rallebench.gui", "rallebench.server"}
"""Packages whose names no user writes."""


def registries() -> str:
    """Every registry: its names, a line about each, and its settings."""
    from rallebench.views.lists import line

    parts = []
    for variable, registry in sorted(_registries().items()):
        if variable in ELSEWHERE:
            continue
        noun = str(getattr(registry, "noun", "") or registry.kind)
        entries = [registry.entry(name) for name in registry.names()]
        parts += [
            f"### {noun[:1].upper()}{noun[1:]}",
            f"`{variable}`; {_folders(registry)}.",
            table(["name", "what it is"], ([_code(e.name), line(e)] for e in entries)),
        ]
        for names, form in _forms(entries):
            parts += [f"Settings of {', '.join(map(_code, names))}:", _form_table(form)]
    return "\n\n".join(parts)


def _folders(registry: Any) -> str:
    """The folders of a registry's files, in words."""
    rooms = " or ".join(f"`{name}.py`" for name in registry.rooms if name != "*")
    inside = rooms or "any file"
    papers = f"; for a paper, {inside} of its folder in `{_path(ROOMS)}/`" if registry.rooms else ""
    return f"one file each in `{_path(registry.package)}/`{papers}"


def _path(package: str) -> str:
    return package.replace(".", "/")


def _registries() -> dict[str, Any]:
    """Variable → registry, of every registry that a package holds."""
    registries_by_name: dict[str, Any] = {}
    for top in pkgutil.iter_modules(rallebench.__path__, "rallebench."):
        if not top.ispkg or top.name in FRONT_ENDS:
            continue
        package = importlib.import_module(top.name)
        inner = pkgutil.walk_packages(package.__path__, f"{top.name}.")
        for name in (top.name, *(module.name for module in inner if module.ispkg)):
            names = vars(importlib.import_module(name))
            registries_by_name |= {
                key: value for key, value in names.items() if isinstance(value, Registry)
            }
    return registries_by_name


def _forms(entries: Iterable[Any]) -> list[tuple[list[str], Mapping[str, Any]]]:
    """Names that share their settings, with these settings; names without settings are left out."""
    forms: list[tuple[list[str], Mapping[str, Any]]] = []
    for entry in entries:
        form = entry.form
        if not form:
            continue
        same = next((names for names, other in forms if other == form), None)
        if same is None:
            forms.append(([entry.name], form))
        else:
            same.append(entry.name)
    return forms


def _form_table(form: Mapping[str, Any]) -> str:
    return table(
        ["setting", "default", "values", "what it is"],
        ([_code(k), _code(_value(s.default)), s.takes, s.about] for k, s in form.items()),
    )


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: ""}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


# ── plug-ins ─────────────────────────────────────────────────────────────────

EXAMPLE = DOCS / "example-plugin"
FIRST_FILES = {"pyproject.toml": "toml", "rallebench_example/metric.py": "python"}
"""Files of the example that the manual shows → their language."""


def plugins() -> str:
    """Every entry-point group: the kind of thing that it adds, the protocol of an entry, and its traits."""
    _import_registries()
    importlib.import_module("rallebench.gui.frame")
    own = [item for item in all_registries().values() if item.package.startswith("rallebench.")]
    groups = sorted((f"rallebench.{registry.name}", registry) for registry in own)
    rows = ([_code(group), r.kind, _plain(r.expects), _code(_variable(r))] for group, r in groups)
    parts = [
        table(["group", "adds a", "an entry is", "registered in"], rows),
        "An entry may have a line about it (`about`; by default the first line of its docstring) and a `form` of settings. "
        "Its further traits:",
    ]
    for group, registry in groups:
        if registry.traits:
            names = sorted(registry.traits, key=lambda name: name not in registry.required)
            lines = ([_code(n), _needed(registry, n), _plain(registry.traits[n])] for n in names)
            parts += [f"### {group}", table(["trait", "", "meaning"], lines)]
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Text whose asterisks are not Markdown's."""
    return text.replace("*", "\\*").replace("``", "`")


def _variable(registry: Registry[Any]) -> str:
    """The variable that a plug-in imports, with its module."""
    names = vars(sys.modules[registry.module])
    return f"{registry.module}.{next(name for name, value in names.items() if value is registry)}"


def _needed(registry: Registry[Any], trait: str) -> str:
    return "required" if trait in registry.required else ""


def example() -> str:
    """The first files of the example plug-in."""
    return "\n\n".join(
        f"`{name}`:\n\n```{language}\n{(EXAMPLE / name).read_text('utf-8').strip()}\n```"
        for name, language in FIRST_FILES.items()
    )


# ── files ────────────────────────────────────────────────────────────────────

PARTS: Mapping[str, Callable[[], str]] = {
    "verbs": verbs,
    "metrics": metrics,
    "registries": registries,
    "plugins": plugins,
    "example": example,
}


def _import_registries() -> None:
    """Import every module that makes a registry, but for that of the page's places."""
    package = Path(rallebench.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if "Registry[" in path.read_text("utf-8") and path.parent.name != "gui":
            parts = path.relative_to(package.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))


def _all_listings() -> dict[str, registered.Modules]:
    """Registry → module → names, of all registries but that of the page's places, which are always all imported.

    Every module that makes a registry is imported first, so that the result does not depend on earlier imports.
    """
    _import_registries()
    own = {name: item for name, item in all_registries().items() if name != "places"}
    return {n: item.load() for n, item in own.items() if item.package.startswith("rallebench.")}


def generated(text: str) -> str:
    """``text`` with every generated part as the code has it now."""
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", text)


def outdated(folder: Path | None = None) -> Iterator[tuple[Path, str]]:
    """Every file that is out of date, or has a generated part that is, and its new text."""
    if folder is None:
        names = registered.text(_all_listings())
        if not registered.FILE.is_file() or registered.FILE.read_text("utf-8") != names:
            yield registered.FILE, names
    for path in sorted((folder or DOCS).glob("*.md")):
        text = path.read_text(encoding="utf-8")
        new = generated(text)
        if new != text:
            yield path, new


def main(argv: list[str] | None = None) -> int:
    """Write what is out of date, or with ``--check`` name it."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
    check = parser.parse_args(argv).check
    files = list(outdated())
    for path, text in files:
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name} {'is out of date' if check else 'is written anew'}")
    if check and files:
        print(f"Write them anew: {COMMAND}", file=sys.stderr)
    return int(bool(files)) if check else record_additions()


def record_additions() -> int:
    """Record what is new in the inventories; return 1 if anything is gone from one, which then stays as it is."""
    words = ["-m", "pytest", "-n", "0", "-q", "--no-header", "--tb=short", str(INVENTORY)]
    environment = {**os.environ, "UPDATE_GOLDEN": "additions"}
    return int(
        subprocess.run([sys.executable, *words], cwd=PROJECT, env=environment).returncode > 0
    )


if __name__ == "__main__":
    sys.exit(main())
