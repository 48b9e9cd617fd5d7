"""Entry point of the command line. With ``--json``, stdout carries one JSON document."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rallebench import __version__
from rallebench.cli.flags import COMMON
from rallebench.cli.verbs import VERBS, Result
from rallebench.cli.wording import word_error
from rallebench.core.env_file import ENV_FILE, load_env_file, named_variables
from rallebench.core.errors import BackendError, RalleError, StoppedError
from rallebench.core.files import disk_error, is_full
from rallebench.core.own_folders import removing_new_folders
from rallebench.core.registry import unknown as unknown_name
from rallebench.core.terminal import VisibleFormatter, visible, visible_json


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit code (0 done, 1 failed, 2 wrong request, 130 stopped; 3 and 4 of ``gate``)."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if logging.lastResort is not None:  # prints warnings, because no logging is configured
        logging.lastResort.setFormatter(VisibleFormatter())
    try:
        args = _parser().parse_args(argv)
        words = sys.argv[1:] if argv is None else argv
        load_env_file(Path(ENV_FILE), named_variables(words, args.workspace))
        verb = VERBS.entry(args.verb)
        with (
            _own_stdout() as out,
            removing_new_folders(args.workspace),
            contextlib.ExitStack() as args.ending,
        ):
            args.stdout = out
            result = verb.value(args)
            if result is not None and (args.json or result.blocks):
                print(_output_text(result, args.json), file=out)
        if result is not None and result.failure:
            raise BackendError(result.failure)
        return 0 if result is None else result.exit_code
    except RalleError as error:
        print(visible(word_error(error)), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Stopped by you; what was finished is kept.", file=sys.stderr)
        return StoppedError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the disk or the operating system failed; a traceback would not help
        if error.filename and is_full(error):
            print(visible(word_error(disk_error(Path(error.filename), error))), file=sys.stderr)
        else:
            where, reason = error.filename or "The output", error.strerror or error
            print(visible(f"{where} failed: {reason}."), file=sys.stderr)
        return RalleError.exit_code


def _output_text(result: Result, as_json: bool) -> str:
    if as_json:
        return visible_json(json.dumps(result.json, ensure_ascii=False, indent=2))
    from rallebench.render import text

    return visible(text.blocks(result.blocks))


class _own_stdout:
    """Reserve stdout for the result: output of libraries, including C++ code, goes to stderr."""

    def __enter__(self) -> Any:
        sys.stdout.flush()
        try:
            self._saved = os.dup(1)
            os.dup2(2, 1)
        except OSError:
            self._saved = -1
            return sys.stdout
        # UTF-8 cannot encode half a surrogate pair; it is printed as a JSON escape.
        self._out = os.fdopen(os.dup(self._saved), "w", encoding="utf-8", errors="backslashreplace")
        return self._out

    def __exit__(self, *_: object) -> None:
        if self._saved >= 0:
            try:
                self._out.close()
            finally:
                sys.stdout.flush()
                os.dup2(self._saved, 1)
                os.close(self._saved)


class _Parser(argparse.ArgumentParser):
    """A parser that refuses wrong arguments in one line and suggests the nearest verb, flag or choice."""

    fill: Callable[[], None] | None = None
    """Callback that imports the module of a verb and adds its flags; called only for the verb in use."""

    def with_flags(self) -> _Parser:
        """Return this parser after adding the flags of its verb."""
        if self.fill:
            fill, self.fill = self.fill, None
            fill()
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; only the verb in use adds its flags."""
        self.with_flags()
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; unknown flags are reported by the parser of the verb, which knows the valid ones."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._verbs().get(parsed.verb, self).refuse_flags(unknown)
        return parsed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            if action.dest == "verb":
                raise argparse.ArgumentError(None, unknown_name("verb", str(value), known))
            raise argparse.ArgumentError(
                action, f"{value!r} is not one of {', '.join(known)}{nearest(str(value), known)}"
            )

    def refuse_flags(self, unknown: Sequence[str]) -> None:
        """Exit with an error that lists the unknown arguments and suggests the flag nearest to the first."""
        flags = [name for action in self._actions for name in action.option_strings]
        near = nearest(unknown[0].partition("=")[0], flags)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")

    def _verbs(self) -> dict[str, _Parser]:
        groups = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
        return {name: verb for group in groups for name, verb in group.choices.items()}

    def error(self, message: str) -> Any:
        """Print one sentence on stderr and exit with code 2."""
        message, end = visible(message), "" if message.endswith(("?", ".")) else "."
        self.exit(2, f"{message[:1].upper()}{message[1:]}{end} See: {self.prog} --help\n")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a question that suggests the nearest known verb or flag, or ''.

    >>> nearest("rnu", ["run", "report"]), nearest("--chian", ["--chain"]), nearest("xyz", ["run"])
    (". Did you mean 'run'?", ". Did you mean '--chain'?", '')
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f". Did you mean {near[0]!r}?" if near else ""


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        # argparse reserves too little room for names, because verbs are indented two columns deeper.
        self._action_max_length = 18


def _add_flags(parser: argparse.ArgumentParser, verb: str) -> None:
    for flag in COMMON:  # a common flag after the verb overrides the same flag before it
        flag.add(parser, default=argparse.SUPPRESS)
    for flag in VERBS.entry(verb).traits.get("flags", ()):
        flag.add(parser)


def _parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="rallebench",
        description="Develop, prove, track and chat with retrieval-augmented chains.",
        formatter_class=_Help,
    )
    top.add_argument("--version", action="version", version=__version__)
    for flag in COMMON:
        flag.add(top)
    add = top.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_Parser)
    for verb in sorted(
        VERBS.listings().values(), key=lambda verb: float(verb.traits["order"] or 0)
    ):
        parser = add.add_parser(
            verb.name,
            help=verb.about,
            description=f"{verb.about[:1].upper()}{verb.about[1:]}.",
            epilog=f"example: {verb.traits['example']}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.fill = partial(_add_flags, parser, verb.name)
    return top


if __name__ == "__main__":
    sys.exit(main())
