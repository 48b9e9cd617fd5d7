"""``completion``: print a shell script that completes verbs and flags."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rallebench.cli.flags import COMMON, Flag, flag
from rallebench.cli.verbs import VERBS, Result

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class VerbWords:
    """Completions of one verb. ``flags``: its flags; ``choices``: values of its positional arguments; ``values``:
    flag → its allowed values.
    """

    name: str
    about: str
    flags: tuple[str, ...]
    choices: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]


@VERBS.register(
    "completion",
    about="print the script by which bash, zsh or fish completes verbs and flags",
    example="rallebench completion bash",
    order=98,
    flags=(flag("shell", "SHELL", ", ".join(SHELLS), choices=SHELLS),),
)
def completion(args: argparse.Namespace) -> Result:
    """Print the completion script of a shell, generated from the registered verbs and their flags."""
    writers: Mapping[str, Callable[[Sequence[VerbWords]], str]] = {
        "bash": bash_script,
        "zsh": zsh_script,
        "fish": fish_script,
    }
    script = writers[args.shell](list_words())
    return Result({"shell": args.shell, "script": script}, (script,))


def list_words() -> list[VerbWords]:
    """Return the completions of every registered verb, in the order of the help."""
    entries = sorted(VERBS.listings().values(), key=lambda entry: float(entry.traits["order"] or 0))
    return [
        verb_words(entry.name, entry.about, VERBS.entry(entry.name).traits.get("flags", ()))
        for entry in entries
    ]


def verb_words(name: str, about: str, own: Sequence[Flag]) -> VerbWords:
    """Return the completions of a verb with its ``own`` flags and the common ones."""
    every = [*own, *COMMON]
    named = {n: f for f in every for n in f.names if n.startswith("--")}
    positional = [f for f in every if not f.names[0].startswith("-")]
    values = {n: _choices(f) for n, f in named.items() if _choices(f)}
    choices = tuple(choice for f in positional for choice in _choices(f))
    return VerbWords(name, about, (*named, "--help"), choices, values)


def _choices(of: Flag) -> tuple[str, ...]:
    return tuple(str(choice) for choice in of.options.get("choices") or ())


def bash_script(verbs: Sequence[VerbWords]) -> str:
    """Return the script for bash: ``source <(rallebench completion bash)``."""
    cases = "\n".join(
        f"    {verb.name}) words={shlex.quote(' '.join((*verb.flags, *verb.choices)))} ;;"
        for verb in verbs
    )
    values = "\n".join(
        f'    {verb.name}:{name}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(of))} -- "$current")); return ;;'
        for verb in verbs
        for name, of in verb.values.items()
    )
    names = shlex.quote(" ".join((*(verb.name for verb in verbs), "--help", "--version")))
    return f"""\
# bash completion of rallebench: source <(rallebench completion bash)
_rallebench() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words={names}
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}:$before" in
{values or "    :) ;;"}
    esac
    case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _rallebench rallebench"""


def zsh_script(verbs: Sequence[VerbWords]) -> str:
    """Return the script for zsh, to be saved as ``_rallebench`` in a folder of ``fpath``."""
    listed = "\n".join(f"    {shlex.quote(f'{verb.name}:{verb.about}')}" for verb in verbs)
    cases = "\n".join(
        f"    {verb.name}) compadd -- {' '.join((*verb.flags, *verb.choices))} ;;" for verb in verbs
    )
    return f"""\
#compdef rallebench
# zsh completion of rallebench: rallebench completion zsh > ~/.zfunc/_rallebench
_rallebench() {{
  local -a verbs
  verbs=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  case "$words[2]" in
{cases}
  esac
  _files
}}
compdef _rallebench rallebench"""


def fish_script(verbs: Sequence[VerbWords]) -> str:
    """Return the script for fish: ``rallebench completion fish | source``."""
    lines = ["# fish completion of rallebench: rallebench completion fish | source"]
    for verb in verbs:
        lines.append(
            f"complete -c rallebench -n __fish_use_subcommand -a {verb.name} -d {_fish_quote(verb.about)}"
        )
        within = f"complete -c rallebench -n '__fish_seen_subcommand_from {verb.name}'"
        for name in verb.flags:
            values = verb.values.get(name, ())
            of = f" -x -a {_fish_quote(' '.join(values))}" if values else ""
            lines.append(f"{within} -l {name.removeprefix('--')}{of}")
        if verb.choices:
            lines.append(f"{within} -a {_fish_quote(' '.join(verb.choices))}")
    return "\n".join(lines)


def _fish_quote(text: str) -> str:
    r"""Quote ``text`` for fish.

    >>> print(_fish_quote("a chain's"))
    'a chain\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
