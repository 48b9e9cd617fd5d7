"""``index``, ``search``, ``pick``: build an index, ask it, keep the questions that it can answer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.cli.verbs import VERBS, Paced, checked_out, drain, say, settings_flag, workbench_of
from rallebench.core.errors import UsageError
from rallebench.core.files import write_text
from rallebench.core.sources import Source
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import PRESETS, choose
from rallebench.engine.record import hit_to_json
from rallebench.workspace.entries import Manifest
from rallebench.workspace.indexes.build import kinds, needs_encoder
from rallebench.workspace.paths import parse_settings

ENCODER = "minilm"


def _index_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus",
        required=True,
        metavar="FILE|NAME",
        help="an imported corpus, a file (TSV id<TAB>text<TAB>title, JSONL, CSV), or a folder (BEIR, documents)",
    )
    parser.add_argument(
        "--format",
        default="",
        metavar="F",
        help=f"{', '.join(CORPORA.names())} (default: recognised)",
    )
    parser.add_argument("--name", required=True, metavar="N")
    parser.add_argument("--kind", required=True, metavar="K", help=", ".join(kinds()))
    parser.add_argument(
        "--encoder", metavar="E", help=f"who makes the vectors (default: {ENCODER}); bm25 has none"
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="PATH",
        help="vectors (.npmmap, .npy), a Faiss file or a DiskANN folder (FOLDER/PREFIX) over this corpus, instead of encoding",
    )
    parser.add_argument(
        "--page-map",
        type=Path,
        metavar="FILE",
        help="passage id → page id: JSON, JSON lines or TSV",
    )
    parser.add_argument("--chunk-preset", default="", metavar="P", help=", ".join(PRESETS))
    parser.add_argument("--chunk-how", choices=("blocks", "recursive", "sentences"), default="")
    parser.add_argument("--chunk-size", type=int, metavar="N")
    parser.add_argument("--chunk-overlap", type=int, metavar="N")
    parser.add_argument("--chunk-unit", choices=("words", "tokens", "characters"), default="")
    settings_flag(parser, "a setting of the index kind, as in k1=1.2")


@VERBS.register(
    "index",
    about="build an index over a corpus",
    example="rallebench index --corpus corpus.tsv --name mine --kind bm25 --page-map map.json",
    order=2,
    flags=_index_flags,
)
def index(args: argparse.Namespace) -> dict[str, Any]:
    """Build an index."""
    if args.encoder is not None and args.kind in kinds() and not needs_encoder(args.kind):
        raise UsageError(
            f"An index of the kind {args.kind!r} has no encoder; leave --encoder out, or choose another --kind."
        )
    chunking = choose(
        preset=args.chunk_preset,
        how=args.chunk_how,
        size=args.chunk_size,
        overlap=args.chunk_overlap,
        unit=args.chunk_unit,
    )
    manifest, stage, told = None, "", Paced()
    for progress in workbench_of(args).build_index(
        args.name,
        args.corpus,
        args.kind,
        encoder=ENCODER if args.encoder is None else args.encoder,
        page_map=args.page_map,
        chunking=chunking,
        form=args.format,
        parameters=parse_settings(args.set),
        source=args.source,
    ):
        if isinstance(progress, Manifest):
            manifest = progress
        else:
            new, stage = progress.stage != stage or progress.done == progress.total, progress.stage
            far = f" {progress.done}/{progress.total}" if progress.total else ""
            left = (
                f", {progress.rate:.3g} a second, {progress.left:.0f} s left"
                if progress.left
                else ""
            )
            told.say(f"{progress.stage}{far} ({progress.seconds:.1f} s{left})", always=new)
    assert manifest is not None
    if manifest.passages_without_page:
        say(
            f"Warning: {manifest.passages_without_page} of {manifest.passages} passages are not in {args.page_map}."
        )
    return manifest.model_dump()


def _search_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY")
    parser.add_argument("--index", required=True, metavar="N")
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--queries", type=Path, metavar="FILE", help="UTF-8, one query per line")


def _search_plain(value: list[Mapping[str, Any]]) -> str:
    return "\n\n".join(_search_lines(found) for found in value)


def _search_lines(found: Mapping[str, Any]) -> str:
    lines = [
        f"{hit['rank']:>3}. [{hit['score']:.3f}] {hit['title']} (page {hit['page_id']})\n     {hit['text']}"
        for hit in found["hits"]
    ]
    return "\n".join([found["query"], *(lines or ["  nothing found"])])


@VERBS.register(
    "search",
    about="retrieve passages",
    example='rallebench search --index starter-bm25 -k 5 "Who discovered Titan?"',
    order=3,
    flags=_search_flags,
    plain=_search_plain,
)
def search(args: argparse.Namespace) -> Any:
    """Retrieve passages."""
    if args.k < 1:
        raise UsageError(f"-k is {args.k}; it must be at least 1.")
    queries = [
        *args.query,
        *([line for _, line in Source(args.queries).lines()] if args.queries else []),
    ]
    if not queries:
        raise UsageError("No query was given; write one after the flags, or use --queries FILE.")
    workbench = workbench_of(args)
    drain(workbench.load(args.index, "retriever"))
    found = workbench.backends.retrievers[args.index].search(queries, args.k)
    return [
        {
            "query": query,
            "hits": [{"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(hits, 1)],
        }
        for query, hits in zip(queries, found)
    ]


def _pick_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, metavar="FILE|NAME")
    parser.add_argument("--index", required=True, metavar="N")
    parser.add_argument("--number", type=int, default=100, metavar="N")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")


@VERBS.register(
    "pick",
    about="keep the questions that a corpus can answer",
    example="rallebench pick --dataset nq.jsonl --index mine --number 100 --output picked.jsonl",
    order=8,
    flags=_pick_flags,
)
def pick(args: argparse.Namespace) -> dict[str, Any]:
    """Keep the first questions whose gold pages the index holds."""
    from rallebench.datasets.pickup import pick_up

    if args.number < 1:
        raise UsageError(f"--number is {args.number}; it must be at least 1.")
    workbench = workbench_of(args)
    _, path = workbench.workspace.dataset(args.dataset)
    output = checked_out(args.output, workbench.workspace, flag="--output", read=path).resolve()
    drain(workbench.load(args.index, "retriever"))
    pages = workbench.backends.retrievers[args.index].page_ids()
    records, read = pick_up(path, pages, args.number)
    write_text(output, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return {
        "output": str(args.output),
        "kept": len(records),
        "read": read,
        "without": read - len(records),
    }
