"""The corpora, datasets and retrievers of a workspace, one row each, and the consequences of deleting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from pathlib import Path

from rallebench.core.entries import Manifest
from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.sources import Problems, Source, stamps
from rallebench.core.starter import (
    DEFAULT_DATASET,
    STARTER,
    STARTER_CORPUS,
    STARTER_INDEXES,
    STARTER_PAGES,
)
from rallebench.core.types import Example, Json, Passage
from rallebench.corpora.reading import read_corpus
from rallebench.corpora.store import PassageStore
from rallebench.datasets.reading import dataset_form, read_examples
from rallebench.encoders import DEFAULT_ENCODER
from rallebench.engine.stored_runs import lost_with_questions
from rallebench.views.gold_coverage import (
    STARTER_NAME,
    corpus_of_index,
    coverage,
    indexed_pages,
)
from rallebench.workspace.indexes.reading import long_passages, recorded_long_passages
from rallebench.workspace.indexes.recipes import corpus_chunking
from rallebench.workspace.paths import WorkspaceFolder

SHIPPED = "comes with rallebench"
SEEN = 200
"""Number of questions read to determine the kind of a dataset."""

YES_NO = frozenset({"yes", "no", "true", "false", "supports", "refutes"})


@dataclass(frozen=True, slots=True)
class CorpusLine:
    """A corpus as one row. ``pages``: None if not counted. ``bytes``: size on disk. ``own``: True if it can be
    deleted; ``problem``: why it cannot be read.
    """

    name: str
    about: str
    passages: int
    pages: int | None
    bytes: int
    own: bool = True
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DatasetLine:
    """A dataset as one row. ``questions``: None if the file cannot be read; ``problem`` then says why. ``kind``: the
    kind of its answers in a word or two.
    """

    name: str
    path: Path
    questions: int | None
    kind: str
    own: bool
    problem: str = ""


NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class RetrieverLine:
    """An index, built or not, or a combination of retrievers.

    ``kind``: the kind of an index, or the method of a combination. ``parts``: members of a combination. ``state``:
    ``loaded``, ``loading``, ``building``, ``damaged``, ``checked``, ``not built`` or ''. ``own``: True if it can be
    deleted.
    """

    name: str
    kind: str
    corpus: str = ""
    passages: int | None = None
    bytes: int | None = None
    parts: tuple[str, ...] = ()
    state: str = ""
    about: str = ""
    own: bool = True


# corpora

FORMS = {"folder": "documents"}
"""Format of a corpus → its name for people, if another."""


def corpora(workspace: WorkspaceFolder) -> list[CorpusLine]:
    """Return the shipped corpus, then the imported ones."""
    lines = []
    cards = workspace.corpus_cards()
    if STARTER_NAME not in cards:
        passages = starter_passages()
        pages = len({passage.page_id for passage in passages})
        size = STARTER_CORPUS.stat().st_size
        lines = [CorpusLine(STARTER_NAME, SHIPPED, len(passages), pages, size, own=False)]
    lines += [
        CorpusLine(name, "", 0, None, 0, problem=sentence)
        for name, sentence in workspace.damaged_corpora().items()
    ]
    for name, card in cards.items():
        held = indexed_pages(workspace, name)
        about = f"{card.source}, {FORMS.get(card.form, card.form)}" + (
            f", {plural(card.skipped, 'row')} left out" if card.skipped else ""
        )
        lines.append(
            CorpusLine(name, about, card.passages, None if held is None else len(held), card.bytes)
        )
    return lines


@lru_cache(maxsize=1)
def starter_passages() -> tuple[Passage, ...]:
    """Return all passages of the shipped corpus."""
    from rallebench.corpora.page_maps import read_page_map

    return tuple(read_corpus(STARTER_CORPUS, read_page_map(STARTER_PAGES)))


# datasets


def datasets(workspace: WorkspaceFolder) -> list[DatasetLine]:
    """Return all datasets, the workspace's own first."""
    own = set(workspace.own_datasets())
    lines = [_dataset(name, path, name in own) for name, path in workspace.dataset_paths().items()]
    return sorted(lines, key=lambda line: not line.own)


def _dataset(name: str, path: Path, own: bool) -> DatasetLine:
    try:
        count, kind = _card(path, tuple(stamps(path)))
        return DatasetLine(name, path, count, kind, own)
    except (RalleError, OSError) as error:
        return DatasetLine(name, path, None, "", own, str(error))


@lru_cache(maxsize=256)
def _card(path: Path, version: tuple[tuple[str, int, int], ...]) -> tuple[int, str]:
    """Return (number of questions, kind) of a file; ``version`` changes when the file changes."""
    reading = read_examples(path, source=Source(path, Problems(skip=True)))
    first = list(islice(reading, SEEN))
    if len(first) < SEEN:
        return len(first), answers_kind(first)
    if dataset_form(path) == "kilt":  # one question per line, so no parsing is needed to count
        return sum(
            1 for _, line in Source(path, Problems(skip=True)).lines() if line.strip()
        ), answers_kind(first)
    return len(first) + sum(1 for _ in reading), answers_kind(first)


def answers_kind(examples: list[Example]) -> str:
    """Return the kind of a dataset's answers, judged by its first questions."""
    if not examples:
        return "empty"
    golds = [example.gold for example in examples]
    answers = [answer.strip() for gold in golds for answer in gold.answers[:1]]
    if answers and all(answer.lower() in YES_NO for answer in answers):
        return "yes or no"
    if answers and sum(len(answer.split()) for answer in answers) / len(answers) > 20:
        return "long answers"
    if not any(gold.pages for gold in golds):
        return "no gold page" if answers else "no gold"
    several = sum(any(len(pages) > 1 for pages in gold.provenance) for gold in golds)
    if several > len(golds) / 2:
        return "several pages"
    return "short answers" if answers else "gold pages only"


# retrievers


def retrievers(workspace: WorkspaceFolder, states: Mapping[str, str]) -> list[RetrieverLine]:
    """Return all indexes, including the starter's unbuilt ones, then all combinations. Damaged ones are marked by
    their state.

    ``states``: see ``Data.states``.
    """
    good, damaged = workspace.all_manifests()
    lines = [
        RetrieverLine(
            name, m.kind, corpus_of_index(name, good), m.passages, m.bytes, about=about_index(m)
        )
        for name, m in good.items()
    ]
    lines += [RetrieverLine(n, "", state="damaged", about=why) for n, why in damaged.items()]
    lines += [
        RetrieverLine(
            name,
            kind,
            STARTER_NAME,
            state=NOT_BUILT,
            about="built when it is first used",
            own=False,
        )
        for name, kind in STARTER_INDEXES.items()
        if name not in good and name not in damaged
    ]
    lines += [
        RetrieverLine(name, entry.type, state=NOT_BUILT, about="of RaLLe's settings", own=False)
        for name, entry in (workspace.base.retrievers if workspace.base else {}).items()
        if name not in good
    ]
    lines.sort(key=lambda line: (line.corpus != STARTER_NAME, line.corpus))
    corpus_of = {line.name: line.corpus for line in lines}
    not_built = {line.name for line in lines if line.state == NOT_BUILT}
    own = set(workspace.own_combinations())
    for name, entry in workspace.combinations().items():
        over = sorted({_corpus(workspace, part, corpus_of) for part in entry.of} - {""})
        state = "" if not_built.isdisjoint(entry.of) else NOT_BUILT
        lines.append(
            RetrieverLine(
                name,
                entry.kind,
                ", ".join(over),
                parts=tuple(entry.of),
                state=state,
                about=entry.about,
                own=name in own,
            )
        )
    broken = workspace.damaged_combinations()
    lines += [
        RetrieverLine(n, "", state="damaged", about=why, own=False) for n, why in broken.items()
    ]
    return [
        line if line.state == "damaged" else replace(line, state=states.get(line.name, line.state))
        for line in lines
    ]


def retriever_states(workspace: WorkspaceFolder, states: Mapping[str, str]) -> dict[str, str]:
    """Retriever → its state, as in ``retrievers``."""
    return {line.name: line.state for line in retrievers(workspace, states)}


def _corpus(workspace: WorkspaceFolder, part: str, corpus_of: Mapping[str, str]) -> str:
    if part in corpus_of:
        return corpus_of[part]
    with suppress(RalleError):
        names = workspace.component_indexes(part)
        return ", ".join(sorted({corpus_of.get(name, "") for name in names}))
    return ""


def about_index(manifest: Manifest) -> str:
    """Describe an index by its encoder, chunking and other distinguishing settings.

    >>> from rallebench.workspace.entries import Manifest
    >>> about_index(Manifest(name="x", retriever="dense", kind="flat", corpus_sha256="", passages=1, fingerprint="",
    ...     encoder_name="minilm", dim=384, chunking={"size": 100, "unit": "words"}))
    'minilm, 384 dimensions, 100 words'
    """
    parts = [manifest.encoder_name, f"{manifest.dim} dimensions" if manifest.dim else ""]
    parts += [cut_words(manifest.chunking)] if manifest.chunking else []
    keys = ("m", "ef_construction", "nlist", "k1", "b")
    parts += [f"{key} {value}" for key, value in manifest.parameters.items() if key in keys]
    parts.append("words not folded" if manifest.words_note else "")
    return ", ".join(filter(None, parts))


def cut_words(chunking: Json | None) -> str:
    """Describe the chunking of documents.

    >>> cut_words(None), cut_words({"size": 100, "overlap": 20})
    ('none', '100 words, overlap 20')
    >>> cut_words({"size": 254, "overlap": 50, "unit": "tokens", "how": "sentences", "tokenizer": "minilm"})
    '254 tokens of minilm between sentences, overlap 50'
    """
    if not chunking:
        return "none"
    overlap = f", overlap {chunking['overlap']}" if chunking.get("overlap") else ""
    of = f" of {chunking['tokenizer']} between sentences" if chunking.get("tokenizer") else ""
    return f"{chunking['size']} {chunking.get('unit', 'words')}{of}{overlap}"


def about_lengths(workspace: WorkspaceFolder, corpus: str, encoder: str = DEFAULT_ENCODER) -> str:
    """Return a sentence about passages of an imported corpus that an encoder truncates; '' if there are none."""
    folder = workspace.corpora / corpus
    with closing(PassageStore(folder)) as store:
        long = long_passages(encoder, len(store), store.__getitem__)
    if long is None or not long.longer:
        return ""
    chunking = corpus_chunking(folder, encoder)
    if chunking is None:
        return f"Warning: {long.sentence} Choose a chunking for its indexes."
    cut = cut_words(chunking.to_json())
    return f"{long.count}; its indexes cut them into {cut}, unless another chunking is chosen."


def long_passages_sentence(manifest: Manifest) -> str:
    """Return a sentence about passages of an index that its encoder truncates; '' if none are known."""
    long = recorded_long_passages(manifest)
    return long.sentence if long else ""


def fitting_dataset(workspace: WorkspaceFolder, corpus: str, default: str = DEFAULT_DATASET) -> str:
    """Return the dataset whose gold pages are best covered by a corpus. Ties go to the usual dataset, then to the
    most similar name. ``default``: returned if no dataset is covered.
    """
    lines = datasets(workspace)
    known = {line.name: coverage(workspace, line.name, corpus) for line in lines}
    shares = {name: value.share for name, value in known.items() if value and value.share}

    def rank(name: str) -> tuple[float, bool, float]:
        return shares[name], name == DEFAULT_DATASET, SequenceMatcher(None, name, corpus).ratio()

    return max(shares, key=rank, default=default)


# consequences of deleting


def corpus_users(workspace: WorkspaceFolder, name: str) -> list[str]:
    """Return the indexes built from an imported corpus."""
    manifests = workspace.manifests()
    return [index for index, manifest in manifests.items() if manifest.corpus == name]


def lost_with(workspace: WorkspaceFolder, what: str, name: str) -> str:
    """Say in one sentence what else breaks or is kept if a corpus, dataset, index, combination or model is deleted;
    '' if nothing.
    """
    if what == "dataset":
        return lost_with_questions(workspace.runs, name, workspace.dataset_paths()[name])
    if what == "corpus":
        indexes = corpus_users(workspace, name)
        if not indexes:
            return ""
        them = "it keeps its passages" if len(indexes) == 1 else "they keep their passages"
        return f"{join_names(indexes)} {'was' if len(indexes) == 1 else 'were'} built from it: {them}, but cannot be built again."
    if what == "index" and name in STARTER_INDEXES:
        return "It is built again when it is next used."
    kind = "language model" if what == "model" else "retriever"
    names = workspace.users(name, kind)
    return f"{join_names(names).capitalize()} can no longer run with it." if names else ""


def join_names(names: Iterable[str]) -> str:
    """Join names for use in a sentence.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    names = list(names)
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def is_shipped(path: Path) -> bool:
    """Return whether a file is shipped with rallebench."""
    return STARTER in path.parents
