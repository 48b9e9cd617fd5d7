"""The embedded reader (placeholder, being replaced): the best-matching sentence's first fitting span."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rallebench.errors import RalleError
from rallebench.llms import LLMS
from rallebench.tokens import tokenize
from rallebench.types import Generate, Reply

REFUSAL = "I can not answer the question because of the insufficient information in documents."


class ExtractiveReader:
    """Copies a short span from the retrieved passages or declines; it does not write, reason or know facts."""

    fingerprint = "extractive-reader/0"
    about = "extractive: copies a short span from the retrieved passages or declines"
    temperature = 0.0

    def __init__(self, name: str) -> None:
        self.name = name

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """One Reply per request."""
        return [self._read(request) for request in batch]

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """The answer, then the Reply."""
        reply = self._read(request)
        yield reply.text
        yield reply

    def _read(self, request: Generate) -> Reply:
        found = request.evidence
        if found is None or not found.passages or not found.question:
            return Reply(REFUSAL)
        wanted = set(tokenize(found.question))
        sentences = [s for p in found.passages for s in re.split(r"(?<=[.!?]) ", p.text)]
        best = max(sentences, key=lambda s: len(wanted & set(tokenize(s))))
        pattern = r"\b1\d{3}|20\d\d\b" if re.search(r"\b(when|year)\b", found.question.lower()) else r"[A-Z]\w+(?: [A-Z]\w+)*"
        spans = [s for s in re.findall(pattern, best) if not set(tokenize(s)) & wanted]
        return Reply(spans[-1] if spans else REFUSAL)


@LLMS.register("extractive-reader")
def extractive_reader(name: str) -> ExtractiveReader:
    """Extractive mini reader: copies a short span from the retrieved passages or declines."""
    return ExtractiveReader(name)
