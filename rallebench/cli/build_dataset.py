"""``build-dataset``: a question set of one's own, from articles or an index, stage by stage."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.verbs import (
    VERBS,
    Paced,
    described,
    described_text,
    say,
    settings_flag,
    workbench_of,
    written,
)
from rallebench.core.errors import UsageError
from rallebench.core.events import Event, Finished, Progress, complete
from rallebench.core.runs import RunOptions
from rallebench.experiments.builders import MAKERS, settings_of
from rallebench.services.builders import FilledRows, builder_request


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "maker", nargs="?", metavar="MAKER", help="without it: all makers with their settings"
    )
    parser.add_argument(
        "--articles",
        default="",
        metavar="PATH",
        help="a folder (.txt, .md, .html, .pdf), a JSON-lines list, a corpus by name or file, or a MediaWiki dump (.xml, .xml.bz2)",
    )
    parser.add_argument(
        "--name", default="", metavar="N", help="the question set's; the same name again continues"
    )
    parser.add_argument("--llm", default="", metavar="L", help="who writes and judges")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N articles")
    parser.add_argument("--batch-size", type=int, default=20, metavar="B")
    parser.add_argument(
        "--max-errors", type=int, metavar="N", help="stop after so many requests that failed"
    )
    settings_flag(parser, "a setting of the maker, as in after=2023-01-01 or questions=3")


def _plain(value: Mapping[str, Any]) -> str:
    if "makers" in value:
        return "\n\n".join(described_text(one) for one in value["makers"])
    stages = value["counts"]["stages"]
    wide = max(map(len, stages), default=0)
    lines = [f"{value['name']} ({value['maker']}), stages in {value['folder']}"]
    lines += [f"{label:<{wide}}  {sentence_of(counts)}" for label, counts in stages.items()]
    lines += [
        f"{key.replace('_', ' ')}: {count}"
        for key, count in value["counts"].items()
        if key != "stages"
    ]
    lines += [f"Note: {note}" for note in value["notes"]]
    return "\n".join([*lines, *value["files"]])


def sentence_of(counts: Mapping[str, Any]) -> str:
    """The counts of a stage in a line."""
    parts = [f"{counts['kept']} of {counts['rows']} kept"]
    parts += [f"{count} {reason}" for reason, count in counts.get("left_out", {}).items()]
    names = {"unknown": "unread verdicts", "failed": "failed", "edited": "by hand"}
    parts += [f"{counts[key]} {name}" for key, name in names.items() if counts.get(key)]
    if counts.get("calls"):
        parts.append(
            f"{counts['calls']} requests, {counts['prompt_tokens']} + {counts['completion_tokens']} tokens"
        )
    return "; ".join(parts)


@VERBS.register(
    "build-dataset",
    about="make questions of your own articles, stage by stage",
    example="rallebench build-dataset barag --articles news.jsonl --name news-qa --llm my-llm --set after=2023-01-01",
    order=6.6,
    flags=_flags,
    plain=_plain,
)
def make_dataset(args: argparse.Namespace) -> dict[str, Any]:
    """The files that were made, the question set first, and the counts of every stage with why rows were left out."""
    if not args.maker:
        return {"makers": [described(MAKERS, name) for name in MAKERS.names()]}
    settings = settings_of(args.maker, written(args.set))
    if not args.name:
        raise UsageError("The question set needs a name: --name N; its stages are kept under it.")
    workbench = workbench_of(args)
    request = builder_request(
        workbench.workspace, args.maker, args.name, settings, args.articles, args.llm, args.limit
    )
    progress = Paced()

    def hear(event: Event) -> None:
        if isinstance(event, Finished) and isinstance(event.result, FilledRows):
            say(f"{event.task}: {sentence_of(event.result.counts)}")
        elif isinstance(event, Progress):
            of = f" of {event.total}" if event.total else ""
            progress.say(f"{event.task}: {event.message or f'{event.done}{of}'}")

    options = RunOptions(args.batch_size, args.max_errors, track=False)
    value = complete(workbench.experiments.run(request, options), hear).document
    return {key: value[key] for key in ("name", "maker", "folder", "files", "counts", "notes")}
