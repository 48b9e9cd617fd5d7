"""The effect of a chunking on documents that are not imported yet: the number of chunks, the longest, the share that an encoder
truncates, and the gold answers that no chunk holds whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rallebench.core.answers import find_answers, normalize_answer
from rallebench.core.chunking import Chunking
from rallebench.core.events import Pacer
from rallebench.core.types import Example, Passage
from rallebench.corpora.chunking import chunk
from rallebench.encoders.windows import EncoderWindow, encoder_window
from rallebench.workspace.indexes.reading import LongPassages
from rallebench.workspace.indexes.vectors import passage_text

MOST_CHARACTERS = 1_000_000
"""Characters of documents that are cut for a preview; of more, a sample is."""
MOST_QUESTIONS = 200
"""Questions whose answers are looked for."""
PACE = 0.2
"""Seconds between two reports."""
BESIDE = 60
"""Characters on either side of a border in an example."""


@dataclass(frozen=True, slots=True)
class DocumentSample:
    """Documents for a survey. ``total``: the number of documents that were read; ``share``: of their characters."""

    documents: tuple[Passage, ...]
    total: int
    share: float

    @property
    def is_whole(self) -> bool:
        """True if the sample is all of the documents."""
        return self.share == 1.0


def sample_documents(documents: Sequence[Passage]) -> DocumentSample:
    """Return all documents, or some of them, evenly spread, with at most MOST_CHARACTERS in all."""
    total = sum(len(document.text) for document in documents)
    if total <= MOST_CHARACTERS:
        return DocumentSample(tuple(documents), len(documents), 1.0)
    step = -(-total // MOST_CHARACTERS)
    chosen, room = list[Passage](), MOST_CHARACTERS
    for document in documents[::step]:
        if room <= 0:
            break
        chosen.append(replace(document, text=document.text[:room]))
        room -= len(chosen[-1].text)
    return DocumentSample(tuple(chosen), len(documents), (MOST_CHARACTERS - room) / total)


@dataclass(frozen=True, slots=True)
class AnswerPlaces:
    """Places of gold answers. ``places``: row of a document → (start, end, row of the question)."""

    questions: tuple[Example, ...] = ()
    places: Mapping[int, Sequence[tuple[int, int, int]]] = field(default_factory=dict)


def find_places(documents: Sequence[Passage], examples: Iterable[Example]) -> AnswerPlaces:
    """Find the gold answers of the first questions in their gold pages; in all documents, if none of their pages is among these."""
    questions = [x for x in examples if x.gold.answers and not x.gold.unanswerable][:MOST_QUESTIONS]
    askers: dict[str, list[int]] = {}
    aliases: dict[str, str] = {}
    for row, example in enumerate(questions):
        for answer in example.gold.answers:
            normal = normalize_answer(answer)
            aliases.setdefault(normal, answer)
            askers.setdefault(normal, []).append(row)
    normals, present = list(aliases), {document.page_id for document in documents}
    golds = [example.gold.pages & present for example in questions]
    places = {
        at: [
            (start, end, row)
            for start, end, alias in find_answers(
                document.text, [*aliases.values()], overlapping=True
            )
            for row in askers[normals[alias]]
            if not golds[row] or document.page_id in golds[row]
        ]
        for at, document in enumerate(documents)
    }
    return AnswerPlaces(tuple(questions), places)


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """An answer that no chunk holds whole. ``before``, ``after``: its parts on both sides of the border, with the text beside them."""

    question: str
    document: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChunkSurvey:
    """The chunks of the first ``documents``. ``longest``, in tokens if the ``window`` of the encoder is known, else in words;
    ``longer``: chunks that the encoder truncates. ``answers``: questions with an answer in the documents; ``cut``: those whose
    answer no chunk holds whole.
    """

    documents: int = 0
    chunks: int = 0
    longest: int = 0
    longer: int = 0
    window: int | None = None
    answers: int = 0
    cut: int = 0
    example: CutAnswer | None = None


def survey_chunks(
    documents: Sequence[Passage],
    chunking: Chunking | None,
    encoder: str,
    answers: AnswerPlaces | None = None,
) -> Iterator[ChunkSurvey]:
    """Cut the documents and count; yield the counts from time to time and at the end."""
    window = encoder_window(encoder) if encoder else None
    survey = ChunkSurvey(window=window.tokens if window else None)
    answers, pacer = answers or AnswerPlaces(), Pacer(PACE)
    held: dict[int, bool] = {}
    first_cuts: dict[int, CutAnswer] = {}
    for row, document in enumerate(documents):
        pieces = list(chunk([document], chunking))
        lengths = [_length(passage, window) for passage, _ in pieces]
        spans = [span or (0, len(document.text)) for _, span in pieces]
        for start, end, asker in answers.places.get(row, ()):
            whole = any(first <= start and end <= last for first, last in spans)
            held[asker] = held.get(asker, False) or whole
            if not whole:
                question = answers.questions[asker].question.text
                first_cuts.setdefault(asker, _cut_answer(document, question, start, end, spans))
        survey = replace(
            survey,
            documents=row + 1,
            chunks=survey.chunks + len(pieces),
            longest=max([survey.longest, *lengths]),
            longer=survey.longer + sum(window is not None and n > window.tokens for n in lengths),
        )
        if pacer.due():
            yield _with_answers(survey, held, first_cuts)
    yield _with_answers(survey, held, first_cuts)


def long_sentence(
    survey: ChunkSurvey, chunking: Chunking | None, encoder: str, *, more: bool = False
) -> str:
    """Return a warning, with a remedy, if some chunks are longer than the encoder reads; otherwise ''. ``more``: there are more
    documents than those of the survey.
    """
    if survey.window is None or not survey.longer:
        return ""
    counted = survey.chunks
    long = LongPassages(encoder, survey.window, survey.longer, counted, counted)
    rest = " These are the first; there are more." if more else ""
    mend = "Cut them into chunks." if chunking is None else "Choose smaller chunks."
    return f"{long.sentence}{rest} {mend}"


def _length(passage: Passage, window: EncoderWindow | None) -> int:
    text = passage_text(passage)
    return len(window.starts(text)) if window else len(text.split())


def _with_answers(
    survey: ChunkSurvey, held: Mapping[int, bool], first_cuts: Mapping[int, CutAnswer]
) -> ChunkSurvey:
    lost = [asker for asker, whole in held.items() if not whole]
    example = first_cuts[lost[0]] if lost else None
    return replace(survey, answers=len(held), cut=len(lost), example=example)


def _cut_answer(
    document: Passage, question: str, start: int, end: int, spans: Sequence[tuple[int, int]]
) -> CutAnswer:
    borders = [last for _, last in spans if start < last < end]
    border = borders[0] if borders else start
    text = document.text
    before = text[max(0, start - BESIDE) : border]
    after = text[border : end + BESIDE]
    return CutAnswer(question, document.title or document.doc_id, before, after)
