"""The command line: each verb is one core call. With ``--json`` stdout carries one JSON document."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rallebench import __version__
from rallebench.errors import RalleError, StoppedError

VERBS: dict[str, tuple[str, str]] = {
    "list": ("what can be named", "rallebench list metrics"),
    "index": (
        "build an index over a corpus",
        "rallebench index --corpus corpus.tsv --name mine --kind bm25 --page-map map.json",
    ),
    "search": ("retrieve passages", 'rallebench search --index starter-bm25 -k 5 "Who discovered Titan?"'),
    "render": (
        "interpret one template, run nothing",
        "rallebench render --template '{question}?' --dialect fstring --question 'Who'",
    ),
    "ask": ("run one chain once", 'rallebench ask --chain starter --question "Who discovered Titan?"'),
    "run": (
        "benchmark a chain, or a folder of chains",
        "rallebench run --chain starter --dataset starter-qa --limit 50",
    ),
    "score": (
        "score a file of predictions",
        "rallebench score --suite kilt --gold gold.jsonl --guess output_reduced.jsonl",
    ),
    "pick": (
        "keep the questions that a corpus can answer",
        "rallebench pick --dataset nq.jsonl --index mine --number 100 --output picked.jsonl",
    ),
    "track": ("send a finished run to MLflow", "rallebench track my-run"),
    "ui": ("open the page", "rallebench ui --port 7860"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit code (0 done, 1 failed, 2 wrong request, 130 stopped)."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    args = _parser().parse_args(argv)
    from rallebench import verbs
    from rallebench.workspace import nothing_left

    try:
        verb: Callable[[argparse.Namespace], Any] = getattr(verbs, args.verb)
        with _own_stdout() as out, nothing_left(args.workspace), contextlib.ExitStack() as args.ending:
            value = verb(args)
            if value is not None:
                text = (
                    json.dumps(value, ensure_ascii=False, indent=2)
                    if args.json
                    else verbs.plain(args.verb, value)
                )
                print(text, file=out)
        return 0
    except RalleError as error:
        print(" ".join(str(error).splitlines()), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Stopped by you; what was finished is kept.", file=sys.stderr)
        return StoppedError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the disk or the system, not a bug: nobody needs the traceback
        print(f"{error.filename or 'The output'} failed: {error.strerror or error}.", file=sys.stderr)
        return RalleError.exit_code


class _own_stdout:
    """Keep stdout for the result: whatever a library prints meanwhile, also from C++, goes to stderr."""

    def __enter__(self) -> Any:
        sys.stdout.flush()
        try:
            self._saved = os.dup(1)
            os.dup2(2, 1)
        except OSError:
            self._saved = -1
            return sys.stdout
        # Half a surrogate pair, which UTF-8 cannot hold, is printed as JSON escapes it.
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
    def error(self, message: str) -> Any:
        """One sentence on stderr, exit code 2."""
        self.exit(2, f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="rallebench", description="Develop, prove, track and chat with retrieval-augmented chains."
    )
    top.add_argument("--version", action="version", version=__version__)
    add = top.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_Parser)
    verbs = {}
    for name, (about, example) in VERBS.items():
        verb = add.add_parser(
            name,
            help=about,
            description=f"{about[:1].upper()}{about[1:]}.",
            epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_argument(
            "--workspace",
            type=Path,
            default=Path("."),
            metavar="DIR",
            help="holds indexes/, runs/, … (default: .)",
        )
        verb.add_argument("--json", action="store_true", help="print exactly one JSON document on stdout")
        verb.add_argument(
            "--base-settings",
            type=Path,
            metavar="DIR",
            help="folder with RaLLe's base settings (llms.json, …)",
        )
        verbs[name] = verb
    verbs["list"].add_argument(
        "kind",
        nargs="?",
        metavar="KIND",
        help="retrievers, encoders, indexes, llms, datasets, metrics, chains, …",
    )
    _index(verbs["index"])
    search = verbs["search"]
    search.add_argument("query", nargs="*", metavar="QUERY")
    search.add_argument("--index", required=True, metavar="N")
    search.add_argument("-k", type=int, default=5)
    search.add_argument("--queries", type=Path, metavar="FILE", help="UTF-8, one query per line")
    render = verbs["render"]
    render.add_argument("--template", required=True, metavar="T")
    render.add_argument("--dialect", choices=("fstring", "eval"), default="fstring")
    render.add_argument("--question", default="", metavar="Q")
    for flag in ("prompt", "response", "wiki-id-title"):
        render.add_argument(
            f"--{flag}", action="append", default=[], metavar=flag[0].upper(), help="once per earlier action"
        )
    render.add_argument("--documents", type=Path, metavar="FILE", help="JSON: per action a list of passages")
    ask = verbs["ask"]
    ask.add_argument("--chain", required=True, metavar="FILE|NAME")
    ask.add_argument("--question", required=True, metavar="Q")
    _overrides(ask)
    _run(verbs["run"])
    score = verbs["score"]
    score.add_argument("--gold", type=Path, required=True, metavar="FILE")
    score.add_argument("--guess", type=Path, required=True, metavar="FILE")
    score.add_argument("--suite", choices=("kilt",), default="kilt")
    score.add_argument("--rank-keys", default="wikipedia_id", metavar="KEY,…")
    score.add_argument("--ks", default="1,5,10,20", metavar="K,…")
    pick = verbs["pick"]
    pick.add_argument("--dataset", required=True, metavar="FILE|NAME")
    pick.add_argument("--index", required=True, metavar="N")
    pick.add_argument("--number", type=int, default=100, metavar="N")
    pick.add_argument("--output", type=Path, required=True, metavar="FILE")
    verbs["track"].add_argument("run", metavar="RUN")
    verbs["track"].add_argument("--tracking-uri", metavar="URI")
    ui = verbs["ui"]
    ui.add_argument("--host", default="127.0.0.1")
    ui.add_argument("--port", type=int, default=7860)
    ui.add_argument("--auth", metavar="USER:PASSWORD")
    ui.add_argument("--no-browser", action="store_true")
    return top


def _index(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--corpus", type=Path, required=True, metavar="FILE", help="TSV id<TAB>text<TAB>title, or JSONL"
    )
    verb.add_argument("--name", required=True, metavar="N")
    verb.add_argument("--kind", required=True, metavar="bm25|flat")
    verb.add_argument("--encoder", default="minilm", metavar="E")
    verb.add_argument("--page-map", type=Path, metavar="FILE", help="JSON: passage id → page id")
    verb.add_argument("--chunk-size", type=int, metavar="N")
    verb.add_argument("--chunk-overlap", type=int, default=0, metavar="N")
    verb.add_argument("--chunk-unit", choices=("words", "tokens", "characters"), default="words")
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")


def _overrides(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--llm", metavar="L", help="use this model in every generate action")
    verb.add_argument("--retriever", metavar="R", help="use this retriever in every retrieve action")
    verb.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="k=10, temperature=0.2, 2.max_tokens=32 …",
    )


def _run(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--chain", required=True, metavar="FILE|NAME", help="a chain, or a folder of chains to run each"
    )
    verb.add_argument(
        "--dataset", metavar="FILE|NAME", help="default: what RaLLe's file names, else starter-qa"
    )
    verb.add_argument("--limit", type=int, metavar="N")
    verb.add_argument("--batch-size", type=int, metavar="B")
    verb.add_argument("--name", default="", metavar="RUN")
    verb.add_argument("--resume", action="store_true")
    verb.add_argument("--metrics", metavar="M,…")
    verb.add_argument("--max-errors", type=int, metavar="N")
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--no-mlflow", action="store_true")
    verb.add_argument("--tracking-uri", metavar="URI")
    _overrides(verb)
