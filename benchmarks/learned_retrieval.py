"""Learned sparse retrieval and late interaction beside sentence-transformers' own loops, over the same random models.

The models have six layers of MiniLM's size and a vocabulary of 30,000 terms, with random weights: the work is that of real
ones, the answers mean nothing. Passages of the starter's corpus are encoded (``encode_document``), then questions searched
(``encode_query``, ``semantic_search`` for sparse vectors, ``similarity`` for late interaction), turn by turn.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took
from encoding import passages as starter_passages

sys.path.insert(0, str(_report.PROJECT / "tests" / "support"))

TERMS, HIDDEN, LAYERS, TOKENS = 30_000, 384, 6, 128
K = 10


def save_models(folder: Path, texts: list[str], terms: int, layers: int) -> tuple[Path, Path]:
    """Write a SPLADE and a ColBERT model of real size."""
    import torch
    from sentence_transformers import MultiVectorEncoder, SparseEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from tiny_bert import save_bert
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(_report.SEED)
    size: dict[str, Any] = {"hidden": HIDDEN, "inner": 4 * HIDDEN, "layers": layers}
    base = save_bert(
        folder / "base", words=terms, positions=TOKENS, bare=True, text=" ".join(texts), **size
    )
    late = MultiVectorEncoder(
        modules=[
            Transformer(str(base)),
            Dense(
                in_features=HIDDEN,
                out_features=128,
                bias=False,
                activation_function=torch.nn.Identity(),
                module_input_name="token_embeddings",
            ),
            MultiVectorMask(),
            Normalize(module_input_name="token_embeddings"),
        ],
        device="cpu",
    )
    late.save_pretrained(str(folder / "colbert"))
    model = BertForMaskedLM(BertConfig.from_pretrained(base)).eval()
    with torch.no_grad():
        # about one term in a hundred gets a weight, as in a trained model
        ids = torch.randint(5, model.config.vocab_size, (8, 60))
        strongest = model(input_ids=ids).logits.amax(dim=1)
        model.cls.predictions.bias.fill_(-float(strongest.quantile(0.99)))
    model.save_pretrained(base)
    SparseEncoder(str(base), device="cpu").save_pretrained(str(folder / "splade"))
    return folder / "splade", folder / "colbert"


def take_turns(
    rounds: int, ours: Callable[[], Any], library: Callable[[], Any]
) -> tuple[list[Took], list[Took], Any, Any]:
    """Time both, turn by turn; return the times and the last values."""
    own_times, library_times = [], []
    for _ in range(rounds):
        took, theirs = _report.timed(library)
        library_times.append(took)
        took, own = _report.timed(ours)
        own_times.append(took)
    return own_times, library_times, own, theirs


def measures(name: str, own: list[Took], library: list[Took], bare: str) -> list[Measure]:
    """The seconds of both, and their ratio in processor time."""
    ratio = [a.processor / b.processor for a, b in zip(own, library)]
    return [
        Measure(name, "s", [t.wall for t in own], [t.wall for t in library], bare),
        Measure(f"{name}, processor time over the library's", "times", ratio, most=1.1),
    ]


def build(kind: str, folder: Path, corpus: list[Any], settings: dict[str, Any]) -> Any:
    """The parameters of a new index of a kind."""
    from rallebench.core.events import complete
    from rallebench.retrievers import INDEX_KINDS

    return complete(INDEX_KINDS[kind].build(folder, corpus, None, settings))


def measure_kind(
    kind: str, model: Path, folder: Path, texts: list[str], queries: list[str], rounds: int
) -> tuple[list[Measure], Fact]:
    """Encoding and search of one kind beside the library's."""
    import sentence_transformers
    import torch
    from sentence_transformers.util import semantic_search

    from rallebench.core.settings import check_values
    from rallebench.core.types import Passage
    from rallebench.corpora.store import write_store
    from rallebench.retrievers import INDEX_KINDS

    sparse = kind == "splade"
    settings = {"model": str(model), "device": "cpu"}
    full = dict(check_values(kind, INDEX_KINDS.entry(kind).form, settings))
    corpus = [Passage(str(n), text, "") for n, text in enumerate(texts)]
    plain = [f", {text}" for text in texts]
    load = (
        sentence_transformers.SparseEncoder if sparse else sentence_transformers.MultiVectorEncoder
    )
    library: Any = load(str(model), device="cpu", local_files_only=True)
    number = iter(range(10_000))

    def build_ours() -> tuple[Path, Any]:
        target = folder / f"{kind}-{next(number)}"
        target.mkdir()
        write_store(target, corpus)
        return target, build(kind, target, corpus, full)

    own, bare, (target, parameters), vectors = take_turns(
        rounds, build_ours, lambda: library.encode_document(plain)
    )
    lines = measures(f"{kind}: build", own, bare, "encode_document")

    class Written:
        passages, fingerprint = len(corpus), "x"

    Written.parameters = parameters  # type: ignore[attr-defined]
    index: Any = INDEX_KINDS[kind].open("x", target, Written, None)

    def search_library() -> list[int]:
        encoded = library.encode_query(queries)
        if sparse:
            hits = semantic_search(encoded, vectors, top_k=K, score_function=library.similarity)
            return [row[0]["corpus_id"] for row in hits]
        with torch.inference_mode():
            scores = library.similarity(encoded, vectors)
            return [int(row[0]) for row in torch.topk(scores, K).indices]

    own, bare, hits, theirs = take_turns(rounds, lambda: index.search(queries, K), search_library)
    lines += measures(f"{kind}: search", own, bare, "the library's search")
    first = [int(row[0].passage.doc_id) for row in hits]
    agree = sum(a == b for a, b in zip(first, theirs)) / len(queries)
    return lines, Fact(f"{kind}: the first passage is the library's", agree >= 0.99, True)


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument("--passages", type=int, default=400, metavar="N")
    flags.add_argument("--questions", type=int, default=100, metavar="N")
    arguments = flags.parse_args()
    count, questions, rounds, terms, layers = (
        *(arguments.passages, arguments.questions, arguments.rounds),
        *(TERMS, LAYERS),
    )
    if arguments.quick:
        count, questions, rounds, terms, layers = 24, 8, 1, 500, 1
    texts = list(dict.fromkeys(starter_passages(count, [])))
    queries = [record["input"] for record in _report.starter_records(questions)]
    lines: list[Measure] = []
    facts: list[Fact] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        splade, colbert = save_models(folder / "models", texts, terms, layers)
        for kind, model in (("splade", splade), ("late-interaction", colbert)):
            some, fact = measure_kind(kind, model, folder, texts, queries, rounds)
            lines += some
            facts.append(fact)
    settings = {"passages": len(texts), "questions": len(queries), "terms": terms, "rounds": rounds}
    return Report("learned_retrieval", settings, lines, facts).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
