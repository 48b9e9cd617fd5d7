"""``index``: build an index over a corpus."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rallebench.cli.flags import flag, settings
from rallebench.cli.printing import Paced, say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.entries import Manifest
from rallebench.core.errors import UsageError
from rallebench.core.events import Progress
from rallebench.core.settings import parse_settings
from rallebench.render.numbers import text
from rallebench.views import catalog, library

ENCODER = "minilm"


@VERBS.register(
    "index",
    about="build an index over a corpus",
    example="rallebench index --corpus corpus.tsv --name mine --kind bm25 --page-map map.json",
    order=2,
    flags=(
        flag(
            "--corpus",
            "FILE|NAME",
            "an imported corpus, a file (TSV id<TAB>text<TAB>title, JSONL, CSV), or a folder (BEIR, documents)",
            required=True,
        ),
        flag(
            "--format",
            "F",
            f"{', '.join(catalog.names('corpora'))} (default: recognised)",
            default="",
        ),
        flag("--name", "N", required=True),
        flag("--kind", "K", ", ".join(catalog.names("index kinds")), required=True),
        flag("--encoder", "E", f"who makes the vectors (default: {ENCODER}); bm25 has none"),
        flag(
            "--from",
            "PATH",
            "vectors (.npy, .npz, .npmmap, .fvecs, .bvecs, .fbin, .u8bin …), a Faiss file, or a folder of Pyserini or DiskANN (FOLDER/PREFIX) over this corpus, instead of encoding",
            dest="source",
            type=Path,
        ),
        flag(
            "--ids",
            "FILE",
            "of --from: the passage id of each vector, a line each or .npy, if they are not in the corpus's order",
            type=Path,
        ),
        flag(
            "--page-map",
            "FILE",
            "passage id → page id: JSON, JSON lines, TSV or RaLLe's pickle",
            type=Path,
        ),
        flag(
            "--chunking",
            help="default: documents (a folder, PDF, HTML, Markdown) are cut between sentences, about as long as the encoder reads; none: a passage per document",
            choices=("default", "none"),
            default="default",
        ),
        flag("--chunk-preset", "P", ", ".join(catalog.names("chunk presets")), default=""),
        flag("--chunk-how", choices=("blocks", "recursive", "sentences"), default=""),
        flag("--chunk-size", "N", type=int),
        flag("--chunk-overlap", "N", type=int),
        flag("--chunk-unit", choices=("words", "tokens", "characters"), default=""),
        settings("a setting of the index kind, as in k1=1.2"),
    ),
)
def index(args: argparse.Namespace) -> Result:
    """Build an index and return its manifest."""
    has_encoder = args.kind not in catalog.names("index kinds") or catalog.takes_encoder(args.kind)
    if args.encoder is not None and not has_encoder:
        raise UsageError(
            f"An index of the kind {args.kind!r} has no encoder; leave --encoder out, or choose another --kind."
        )
    data = open_workbench(args).data
    encoder = ENCODER if args.encoder is None else args.encoder
    chunking = _chunking(args)
    if chunking == "default" and args.source is not None:
        chunking = None  # vectors are computed per row of the corpus
    if chunking == "default":
        chunking = data.default_chunking(args.corpus, encoder if has_encoder else "", args.format)
        if chunking is not None:
            say(
                f"The documents are cut into passages of {library.cut_words(chunking.to_json())}; "
                "--chunking none keeps them whole."
            )
    build = data.build_index(
        args.name,
        args.corpus,
        args.kind,
        chunking=chunking,
        encoder=encoder,
        page_map=args.page_map,
        form=args.format,
        parameters=parse_settings(args.set),
        source=args.source,
        ids=args.ids,
    )
    stage, paced = "", Paced()
    manifest: Manifest | None = None
    for event in build:
        if isinstance(event, Manifest):
            manifest = event
            for sentence in filter(None, [*event.warnings, library.long_passages_sentence(event)]):
                say(f"Warning: {sentence}")
        if not isinstance(event, Progress):
            continue
        count = f" {event.done}/{event.total}" if event.total else ""
        left = (
            f", {event.rate:.3g} a second, {event.seconds_left:.0f} s left"
            if event.seconds_left
            else ""
        )
        changed = event.message != stage or event.done == event.total
        paced.say(f"{event.message}{count} ({event.seconds:.1f} s{left})", always=changed)
        stage = event.message
    assert manifest is not None
    if without := manifest.passages_without_page:
        say(f"Warning: {without} of {manifest.passages} passages are not in {args.page_map}.")
    size = text(manifest.bytes, "bytes")
    line = f"{manifest.name}: {manifest.passages:,} passages, {manifest.kind}, {size}"
    return Result(manifest.model_dump(), (line,))


def _chunking(args: argparse.Namespace) -> Any:
    """Return the chunking that the flags select: None for no chunking, "default" if no flag is given."""
    chosen = {
        "preset": args.chunk_preset,
        "how": args.chunk_how,
        "size": args.chunk_size,
        "overlap": args.chunk_overlap,
        "unit": args.chunk_unit,
    }
    if all(value in ("", None) for value in chosen.values()):
        return None if args.chunking == "none" else "default"
    if args.chunking == "none":
        raise UsageError(
            "--chunking none keeps the documents whole; leave it out, or the other flags of chunks."
        )
    return chosen
