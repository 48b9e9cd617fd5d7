"""Quality of the retrievers: BM25, the embedded encoder, both fused, both fused and re-ranked.

``--data FOLDER`` holds datasets in KILT's form, in the folder or one level below: ``NAME_corpus.tsv`` with
``NAME_kilt.jsonl`` and, where a page has several passages, ``NAME_doc_id_to_wikipedia_id.json``; a folder with
``corpus.tsv`` and one ``*_kilt.jsonl`` is a set of its folder's name. Without ``--data`` the starter corpus and
its questions are asked. ``--together`` puts all passages of the sets into one corpus, so that each set's passages
are distractors of the others.

page hit@1: the first passage is of a gold page; page hit@5: one of the first five is. passage hit@1 and @5: the same
for the gold passage itself, over the questions that name one. The bare figure of every other retriever is BM25's.
The re-ranker is what ``--reranker`` names, a folder or hub id of a cross-encoder; none comes with the project, so
without it nothing is re-ranked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

from rallebench.core.types import Hit, Passage
from rallebench.services.workbench import Workbench

DEPTH = 5
QUICK = 20
REFERENCE = {
    "xquad_en": (0.966, 0.990, 0.925, 0.984),
    "xquad_zh": (0.983, 0.997, 0.942, 0.990),
    "newwiki": (0.908, 0.974, 0.768, 0.911),
    "qed_nq": (0.845, 0.945, 0.828, 0.942),
    "crud": (0.475, 0.829, None, None),
}
"""The figures that BM25 (k1 0.9, b 0.4, title and text, no stop words, no stemming, Chinese bigrams) reaches on known sets."""

FIGURES = ("page hit@1", "page hit@5", "passage hit@1", "passage hit@5")
ROUNDING = 0.0005
"""The reference is given to three places."""


@dataclass(frozen=True)
class GoldQuestion:
    """A question with the pages and passages that answer it."""

    text: str
    pages: frozenset[str]
    passages: frozenset[str]


@dataclass(frozen=True)
class ImportedDataset:
    """A corpus with its questions; passage ids are unique across sets."""

    name: str
    passages: Sequence[Passage]
    questions: Sequence[GoldQuestion]


def datasets(folder: Path, names: Sequence[str]) -> Iterator[ImportedDataset]:
    """The sets of a folder, by name; corpora without questions, and questions without a corpus, are left out."""
    for corpus in sorted([*folder.glob("*corpus.tsv"), *folder.glob("*/*corpus.tsv")]):
        stem = corpus.name.removesuffix("corpus.tsv")
        named = sorted(corpus.parent.glob(f"{stem or '*'}kilt.jsonl"))
        name = stem.rstrip("_") or corpus.parent.name
        if len(named) == 1 and (not names or name in names):
            yield read_set(
                name, corpus, named[0], corpus.parent / f"{stem}doc_id_to_wikipedia_id.json"
            )


def read_set(name: str, corpus: Path, questions: Path, page_map: Path) -> ImportedDataset:
    """One set; a passage that no map gives a page is a page of its own."""
    from rallebench.corpora.reading import read_corpus

    pages: dict[str, Any] = (
        json.loads(page_map.read_text(encoding="utf-8")) if page_map.is_file() else {}
    )
    passages = [
        Passage(f"{name}/{p.doc_id}", p.text, p.title, f"{name}/{pages.get(p.doc_id, p.doc_id)}")
        for p in read_corpus(corpus)
    ]
    examples = []
    with open(questions, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            gold = [p for output in record["output"] for p in output.get("provenance") or []]
            examples.append(
                GoldQuestion(
                    record["input"],
                    frozenset(f"{name}/{p['wikipedia_id']}" for p in gold),
                    frozenset(f"{name}/{p['doc_id']}" for p in gold if "doc_id" in p),
                )
            )
    return ImportedDataset(name, passages, [question for question in examples if question.pages])


def starter() -> ImportedDataset:
    """The corpus and the questions that come with the project."""
    folder = _report.PROJECT / "rallebench" / "starter"
    questions = next(
        path for path in sorted((folder / "questions").glob("*.jsonl")) if path.stem == "starter-qa"
    )
    return read_set("starter", folder / "corpus.tsv", questions, folder / "page_map.json")


def build(workbench: Workbench, passages: Sequence[Passage], name: str) -> tuple[str, str]:
    """The names of a BM25 and a dense index over ``passages``."""
    folder = workbench.workspace.path
    corpus, pages = folder / f"{name}.jsonl", folder / f"{name}.json"
    with open(corpus, "w", encoding="utf-8") as handle:
        for p in passages:
            handle.write(
                json.dumps({"id": p.doc_id, "text": p.text, "title": p.title}, ensure_ascii=False)
                + "\n"
            )
    pages.write_text(json.dumps({p.doc_id: p.page_id for p in passages}), encoding="utf-8")
    indexes = (f"{name}-bm25", f"{name}-dense")
    for index, kind in zip(indexes, ("bm25", "flat")):
        print(f"building {index} over {len(passages):,} passages", file=sys.stderr)
        for _ in workbench.data.build_index(index, corpus, kind, page_map=pages):
            pass
    return indexes


def retrievers(sparse: str, dense: str, reranker: str) -> dict[str, str]:
    """The compared retrievers: label → name in the workbench."""
    hybrid = f"rrf:{sparse},{dense}?weights=0.5,0.5"
    targets = {"BM25": sparse, "dense (MiniLM)": dense, "hybrid (rrf)": hybrid}
    if reranker:
        targets["hybrid + re-rank"] = f"rerank:({hybrid})?model={reranker}&depth=50"
    return targets


def ask(
    workbench: Workbench, retriever: str, questions: Sequence[GoldQuestion]
) -> list[tuple[Hit, ...]]:
    """The first five hits of every question."""
    for _ in workbench.models.load(retriever, "retriever"):
        pass
    hits: list[tuple[Hit, ...]] = workbench.models.backends.retrievers[retriever].search(
        [q.text for q in questions], DEPTH
    )
    return hits


def shares(
    questions: Sequence[GoldQuestion], results: Sequence[Sequence[Hit]]
) -> dict[str, tuple[float, int]]:
    """Figure → (share, number of questions it is over)."""
    rows: dict[str, list[bool]] = {figure: [] for figure in FIGURES}
    for question, hits in zip(questions, results):
        pages = [hit.passage.page_id in question.pages for hit in hits]
        rows["page hit@1"].append(any(pages[:1]))
        rows["page hit@5"].append(any(pages[:5]))
        if question.passages:
            passages = [hit.passage.doc_id in question.passages for hit in hits]
            rows["passage hit@1"].append(any(passages[:1]))
            rows["passage hit@5"].append(any(passages[:5]))
    return {figure: (sum(row) / len(row), len(row)) for figure, row in rows.items() if row}


def measure(
    report: Report, workbench: Workbench, group: Sequence[ImportedDataset], reranker: str
) -> None:
    """Build over all passages of a group of sets, ask each set's questions, and add the figures."""
    name = group[0].name if len(group) == 1 else "together"
    passages = [passage for dataset in group for passage in dataset.passages]
    named = retrievers(*build(workbench, passages, name), reranker)
    for dataset in group:
        bare: dict[str, float] = {}
        for people, retriever in named.items():
            results = ask(workbench, retriever, dataset.questions)
            for figure, (share, count) in shares(dataset.questions, results).items():
                known = (
                    REFERENCE.get(dataset.name, (None,) * 4)[FIGURES.index(figure)]
                    if len(group) == 1
                    else None
                )
                judged = known is not None and people == "BM25"
                report.measures.append(
                    Measure(
                        f"{dataset.name}, {people}, {figure} (n = {count:,}, {len(passages):,} passages)",
                        "of questions",
                        [share],
                        [] if people == "BM25" or not bare.get(figure) else [bare[figure]],
                        "BM25",
                        least=known - ROUNDING if judged and known is not None else None,
                    )
                )
                if people == "BM25":
                    bare[figure] = share
            report.facts.append(
                Fact(
                    f"{dataset.name}, {people}: questions answered for",
                    len(results),
                    len(dataset.questions),
                )
            )


def main() -> int:
    """Measure and print; the exit code."""
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, metavar="FOLDER", help="default: the starter corpus")
    flags.add_argument(
        "--sets", default="", metavar="NAME,…", help="default: all sets of the folder"
    )
    flags.add_argument("--together", action="store_true", help="all passages in one corpus")
    flags.add_argument(
        "--reranker", default="", metavar="MODEL", help="folder or hub id of a cross-encoder"
    )
    arguments = flags.parse_args()
    names = [name for name in arguments.sets.split(",") if name]
    sets = [*datasets(arguments.data, names)] if arguments.data else [starter()]
    if not sets:
        flags.error(f"{arguments.data} holds no corpus with questions")
    if arguments.quick:
        sets = [ImportedDataset(s.name, s.passages, s.questions[:QUICK]) for s in sets]
    report = Report(
        "retrieval_quality", {"depth": DEPTH, "sets": len(sets), "together": arguments.together}
    )
    if not arguments.reranker:
        report.notes.append(
            "hybrid + re-rank: not run, no --reranker was given and none comes with the project"
        )
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench(Path(folder))
        try:
            for group in [sets] if arguments.together else [[dataset] for dataset in sets]:
                measure(report, workbench, group, arguments.reranker)
        finally:
            workbench.close()
    return report.tell(arguments)


if __name__ == "__main__":
    sys.exit(main())
